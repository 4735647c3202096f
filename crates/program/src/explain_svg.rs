//! The record actions of a program as a picture: a layered graph in SVG.
//!
//! An action stands one layer to the right of the last action it depends on; within a layer actions
//! stand in the order of the text. Colours say when an action's work is done, lines say why one action
//! comes after another. The picture is plain SVG text without scripts or external fonts.

use crate::catalog::Catalog;
use crate::explain::{Tag, kind_word, shortened, tag};
use crate::ir::Program;
use crate::record_action::{DependencyKind, RecordAction, record_actions};
use crate::slice::Phases;
use crate::slice::outline::Outline;
use std::fmt::Write;

const BOX_WIDTH: usize = 290;
const BOX_HEIGHT: usize = 78;
const GAP_ACROSS: usize = 90;
const GAP_DOWN: usize = 26;
const MARGIN: usize = 28;
const HEADER: usize = 48;
const LEGEND: usize = 56;
/// Characters that fit a box in its two font sizes.
const TITLE_CHARACTERS: usize = 34;
const DETAIL_CHARACTERS: usize = 46;

/// Draws the record actions of a program under its phases.
pub fn explain_svg(program: &Program, catalog: &Catalog, phases: &Phases) -> String {
    let actions = record_actions(program, catalog);
    let outline = Outline::of(program);
    let places = places(&actions);
    let columns = places.iter().map(|place| place.0 + 1).max().unwrap_or(1);
    let rows = places.iter().map(|place| place.1 + 1).max().unwrap_or(1);
    let across = columns * BOX_WIDTH + (columns - 1) * GAP_ACROSS;
    let width = 2 * MARGIN + across.max(2 * BOX_WIDTH + GAP_ACROSS);
    let height = HEADER + rows * (BOX_HEIGHT + GAP_DOWN) + LEGEND + MARGIN;
    let mut svg = Svg(String::new());
    svg.add(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"ui-sans-serif, system-ui, sans-serif\">"
    ));
    svg.add(format_args!("<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>"));
    svg.text(MARGIN, 32, "font-size=\"18\" font-weight=\"600\" fill=\"#1c1917\"", &program.name);
    for (at, action) in actions.iter().enumerate() {
        for dependency in &action.dependencies {
            svg.edge(places[dependency.on], places[at], Some(dependency.kind));
        }
        if let Some(previous) = action.previous {
            svg.edge(places[previous], places[at], None);
        }
    }
    for (at, action) in actions.iter().enumerate() {
        let tags = action.steps.iter().filter_map(|step| tag(&outline, phases, *step)).collect::<Vec<_>>();
        svg.action(places[at], at + 1, action, catalog, colours(&tags));
    }
    svg.legend(height - LEGEND);
    svg.add(format_args!("</svg>"));
    svg.0
}

/// By action: its layer, and its place in that.
fn places(actions: &[RecordAction]) -> Vec<(usize, usize)> {
    let mut layers = vec![0usize; actions.len()];
    // Longest paths; the graph has no cycles, so this many rounds reach all of them.
    for _ in 0..actions.len() {
        for (at, action) in actions.iter().enumerate() {
            let before = action.dependencies.iter().map(|dependency| dependency.on).chain(action.previous);
            let layer = before.map(|on| layers[on] + 1).max().unwrap_or(0);
            layers[at] = layers[at].max(layer).min(actions.len());
        }
    }
    let mut filled = vec![0usize; actions.len() + 1];
    let place = |layer: &usize| {
        filled[*layer] += 1;
        (*layer, filled[*layer] - 1)
    };
    layers.iter().map(place).collect()
}

/// Fill and line of an action whose steps have these tags.
fn colours(tags: &[Tag]) -> (&'static str, &'static str) {
    let has = |wanted: Tag| tags.contains(&wanted);
    if has(Tag::Delta) {
        ("#ecfdf5", "#059669")
    } else if has(Tag::Later) || has(Tag::Both) {
        ("#eff6ff", "#2563eb")
    } else {
        ("#fff7ed", "#ea580c")
    }
}

/// Colour and dashes of a dependency.
fn stroke(kind: Option<DependencyKind>) -> (&'static str, &'static str) {
    match kind {
        Some(DependencyKind::Data) => ("#57534e", ""),
        Some(DependencyKind::Key) => ("#7c3aed", "7 4"),
        Some(DependencyKind::Condition) => ("#a8a29e", "2 4"),
        None => ("#dc2626", ""),
    }
}

struct Svg(String);

impl Svg {
    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{element}").expect("a string takes it");
    }

    fn text(&mut self, x: usize, y: usize, style: &str, text: &str) {
        self.add(format_args!("<text x=\"{x}\" y=\"{y}\" {style}>{}</text>", escaped(text)));
    }

    fn edge(&mut self, from: (usize, usize), to: (usize, usize), kind: Option<DependencyKind>) {
        let ((x1, y1), (x2, y2)) = (corner(from), corner(to));
        let (colour, dashes) = stroke(kind);
        // Kinds between the same two boxes run beside each other.
        let beside = match kind {
            Some(DependencyKind::Data) => 26,
            Some(DependencyKind::Key) => 39,
            Some(DependencyKind::Condition) => 52,
            None => 64,
        };
        let (x1, y1, y2) = (x1 + BOX_WIDTH, y1 + beside, y2 + beside);
        let bend = GAP_ACROSS / 2;
        let (a, b) = (x1 + bend, x2.saturating_sub(bend));
        self.add(format_args!(
            "<path d=\"M{x1} {y1} C{a} {y1} {b} {y2} {x2} {y2}\" fill=\"none\" stroke=\"{colour}\" \
             stroke-width=\"1.6\" stroke-dasharray=\"{dashes}\"/>"
        ));
        let (tip, low) = (x2.saturating_sub(7), y2 + 4);
        let high = y2 - 4;
        self.add(format_args!("<path d=\"M{x2} {y2} L{tip} {high} L{tip} {low} Z\" fill=\"{colour}\"/>"));
    }

    fn action(
        &mut self,
        place: (usize, usize),
        number: usize,
        action: &RecordAction,
        catalog: &Catalog,
        (fill, line): (&str, &str),
    ) {
        let (x, y) = corner(place);
        if !action.loops.is_empty() {
            // One per turn: a second sheet behind.
            self.rectangle((x + 5, y + 5), fill, line);
        }
        self.rectangle((x, y), fill, line);
        let title = shortened(&format!("{number}  {}", action.record), TITLE_CHARACTERS);
        let title_style =
            "font-size=\"13\" font-weight=\"600\" fill=\"#1c1917\" font-family=\"ui-monospace, monospace\"";
        self.text(x + 12, y + 24, title_style, &title);
        let mut details = Vec::new();
        if !action.reads.is_empty() {
            details.push(format!("reads {}", action.column_names(catalog, action.reads).join(" ")));
        }
        if action.inserts {
            details.push("inserts".into());
        } else if action.deletes {
            details.push("deletes".into());
        } else if !action.writes.is_empty() {
            details.push(format!("writes {}", action.column_names(catalog, action.writes).join(" ")));
        }
        for (at, detail) in details.iter().enumerate() {
            let style = "font-size=\"12\" fill=\"#57534e\"";
            self.text(x + 12, y + 44 + 18 * at, style, &shortened(detail, DETAIL_CHARACTERS));
        }
    }

    fn rectangle(&mut self, (x, y): (usize, usize), fill: &str, line: &str) {
        self.add(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"{BOX_WIDTH}\" height=\"{BOX_HEIGHT}\" rx=\"8\" \
             fill=\"{fill}\" stroke=\"{line}\" stroke-width=\"1.5\"/>"
        ));
    }

    fn legend(&mut self, y: usize) {
        let mut x = MARGIN;
        let style = "font-size=\"12\" fill=\"#57534e\"";
        for (word, tags) in [("now", [Tag::Now]), ("later", [Tag::Later]), ("delta", [Tag::Delta])] {
            let (fill, line) = colours(&tags);
            self.add(format_args!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"16\" height=\"16\" rx=\"3\" fill=\"{fill}\" stroke=\"{line}\"/>"
            ));
            self.text(x + 23, y + 13, style, word);
            x += 76;
        }
        for kind in [DependencyKind::Data, DependencyKind::Key, DependencyKind::Condition] {
            let (colour, dashes) = stroke(Some(kind));
            let (end, middle) = (x + 30, y + 8);
            self.add(format_args!(
                "<path d=\"M{x} {middle} L{end} {middle}\" stroke=\"{colour}\" stroke-width=\"1.6\" \
                 stroke-dasharray=\"{dashes}\"/>"
            ));
            self.text(x + 37, y + 13, style, kind_word(kind));
            x += 104;
        }
        self.text(MARGIN, y + 36, style, "two sheets: one action per turn of a loop");
    }
}

/// The top left corner of a place.
fn corner((layer, rank): (usize, usize)) -> (usize, usize) {
    (MARGIN + layer * (BOX_WIDTH + GAP_ACROSS), HEADER + rank * (BOX_HEIGHT + GAP_DOWN))
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
