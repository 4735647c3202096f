//! A program's phases for a reader: each line of its text with what happens when and why, then keys,
//! deltas, record actions.
//!
//! ```text
//!  1  procedure increment(id: bigint) {
//!  2      counters[id].n += 1               delta  adds 1 to counters.n
//!  3  }
//!
//! keys
//!   counters[id]   from arguments   must exist   writes n
//! ```
//!
//! The word beside a line says when its work is done: *now*, before the outcome is promised; *later*,
//! when someone needs it (the write's place is kept now); *delta*, stored now as an operation; *both*,
//! partly; *free*, now, because everything it needs is at hand.

use crate::access::{KeySource, accesses};
use crate::catalog::Catalog;
use crate::context::DeltaOperator;
use crate::ir::{Expression, ExpressionKind, Program, StepId, StepKind, Type, VariableId};
use crate::known_key::AccessKind;
use crate::record_action::{DependencyKind, RecordAction, record_actions};
use crate::slice::expression_text::expression_text;
use crate::slice::now_slice::AT_HAND;
use crate::slice::operation::{Operation, operations};
use crate::slice::outline::{Outline, Part};
use crate::slice::{ColumnPhase, Interval, Phases};
use fabius_value::{ColumnId, ColumnMask, DataType, Decimal, TableId};
use std::collections::BTreeSet;

/// Longer lines are cut.
const TEXT_COLUMNS: usize = 84;
/// Most columns named at once.
const NAMES: usize = 6;
/// Most notes beside a line.
const NOTES: usize = 2;
/// The weight of a note that is only made if there is no other.
const DULL: usize = 4;
/// What every write needs.
const PLACING: [&str; 7] = [
    "places ",
    "deletes from ",
    "key of ",
    "decides a write",
    "decides an insert",
    "decides a delete",
    "operand of a delta",
];

/// When the work of a line is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Now,
    Later,
    Delta,
    Both,
    Free,
}

impl Tag {
    fn word(self) -> &'static str {
        match self {
            Tag::Now => "now",
            Tag::Later => "later",
            Tag::Delta => "delta",
            Tag::Both => "both",
            Tag::Free => "free",
        }
    }
}

/// What there is to say of a program under its phases.
#[derive(Clone, Debug)]
pub struct Report {
    /// When its work is done, in a few words behind its name.
    pub summary: String,
    /// The report, line by line.
    pub lines: Vec<Line>,
    /// Keys, deltas and so on: titles with their lines; none is empty.
    pub sections: Vec<(&'static str, String)>,
}

/// A line of a program.
#[derive(Clone, Debug)]
pub struct Line {
    /// The line.
    pub text: String,
    /// When its work is done: a word, or none.
    pub when: &'static str,
    /// Why.
    pub reason: String,
}

impl Report {
    /// The program's text, each line with when it is done and why; `shown` may put other names for those of tables.
    pub fn shown(&self, shown: &dyn Fn(&str) -> String) -> String {
        let lines: Vec<String> = self.lines.iter().map(|line| shown(&line.text)).collect();
        let width = lines.iter().map(|line| line.chars().count().min(TEXT_COLUMNS)).max();
        let (width, digits) = (width.unwrap_or(0), lines.len().to_string().len());
        let mut text = String::new();
        for (at, (line, Line { when, reason, .. })) in lines.iter().zip(&self.lines).enumerate() {
            let (number, line) = (at + 1, shortened(line, TEXT_COLUMNS));
            let row = format!("{number:>digits$}  {line:<width$}  {when:<5}  {}", shown(reason));
            text += row.trim_end();
            text.push('\n');
        }
        text
    }
}

/// Explains a program under its phases, as one text.
pub fn explain(program: &Program, catalog: &Catalog, phases: &Phases) -> String {
    let report = report(program, catalog, phases);
    let mut text = format!("{}\n\n{}", report.summary, report.shown(&str::to_string));
    for (title, rows) in report.sections {
        text += &format!("\n{title}\n{rows}");
    }
    text
}

/// A text that a program was made of.
pub struct Origin<'a> {
    /// The text.
    pub text: &'a str,
    /// The line of it, from 1, that a line of the program comes from; 0 for none.
    pub line_of: &'a dyn Fn(u32) -> u32,
}

/// Explains a program under its phases.
pub fn report(program: &Program, catalog: &Catalog, phases: &Phases) -> Report {
    report_of(program, catalog, phases, &Origin { text: &program.text, line_of: &|line| line })
}

/// Explains a program under its phases, by the lines of what it was made of.
pub fn report_of(program: &Program, catalog: &Catalog, phases: &Phases, origin: &Origin<'_>) -> Report {
    let outline = Outline::of(program);
    let explanation = Explanation { program, catalog, phases, outline: &outline, origin };
    let sections = [
        ("keys", explanation.keys()),
        ("deltas", explanation.deltas()),
        ("splittable", explanation.splittable()),
        ("captured for later", explanation.captured()),
        ("relied on", explanation.relied_on()),
        ("hidden requires", explanation.hidden_requires()),
        ("record actions", explanation.actions()),
    ];
    Report {
        summary: explanation.summary(),
        lines: explanation.lines(),
        sections: sections
            .into_iter()
            .filter(|(_, rows)| !rows.is_empty())
            .map(|(title, rows)| (title, aligned(&rows)))
            .collect(),
    }
}

struct Explanation<'a, 'p> {
    program: &'p Program,
    catalog: &'a Catalog,
    phases: &'a Phases,
    outline: &'a Outline<'p>,
    /// Whose lines are shown.
    origin: &'a Origin<'a>,
}

impl Explanation<'_, '_> {
    /// The line that is shown of a step.
    fn line(&self, step: StepId) -> u32 {
        (self.origin.line_of)(self.outline.at(step).step.line)
    }

    fn summary(&self) -> String {
        let name = &self.program.name;
        let later = self.phases.steps.iter().any(|step| step.later);
        if !self.program.writes_anything() {
            return format!("{name}: read only");
        }
        let writes = self.phases.writes.iter().flatten();
        let has_deltas = writes.into_iter().any(|(_, phase)| matches!(phase, ColumnPhase::Delta(_)));
        let what = match (self.phases.has_later_writes, later, has_deltas) {
            (true, _, _) => "values are computed later",
            (false, true, true) => {
                "all writes are done now or stored as deltas, only results are computed later"
            }
            (false, true, false) => "all writes are done now, only results are computed later",
            (false, false, true) => {
                "everything is done now, but for deltas, which are stored now and applied when someone reads"
            }
            (false, false, false) => "everything is done now",
        };
        format!("{name}: {what}")
    }

    fn lines(&self) -> Vec<Line> {
        let lines = self.origin.text.lines().zip(1u32..);
        let lines = lines.map(|(text, number)| {
            let (tag, reason) = self.of_line(number);
            Line { text: text.to_string(), when: tag.map_or("", Tag::word), reason }
        });
        lines.collect()
    }

    /// When the work of a line is done, and why.
    fn of_line(&self, line: u32) -> (Option<Tag>, String) {
        let steps: Vec<StepId> =
            self.outline.order.iter().copied().filter(|step| self.line(*step) == line).collect();
        // Finding a row is part of what is done with it, unless nothing else is.
        let finds = |step: &StepId| {
            matches!(
                self.outline.at(*step).step.kind,
                StepKind::Locate { .. } | StepKind::RequireRow { .. } | StepKind::Clear { .. }
            )
        };
        let tags_of = |finding: bool| {
            let steps = steps.iter().filter(|step| finds(step) == finding);
            let tags = steps.filter_map(|step| tag(self.outline, self.phases, *step));
            tags.reduce(|one, other| match (one, other) {
                (one, other) if one == other => one,
                (Tag::Free, other) | (other, Tag::Free) => other,
                _ => Tag::Both,
            })
        };
        let tag = tags_of(false).or_else(|| tags_of(true));
        let mut notes: Vec<(usize, String)> = steps.iter().flat_map(|step| self.notes(*step, tag)).collect();
        notes.sort_by_key(|(weight, _)| *weight);
        let dull = notes.first().is_none_or(|(weight, _)| *weight == DULL);
        let mut said: Vec<String> = Vec::new();
        for (weight, note) in notes {
            if said.len() < NOTES && (dull || weight < DULL) && !said.contains(&note) {
                said.push(note);
            }
        }
        (tag, said.join("; "))
    }

    /// The parts of a step's reason, each with how little it tells.
    fn notes(&self, step: StepId, line: Option<Tag>) -> Vec<(usize, String)> {
        if self.is_found(step) {
            return Vec::new();
        }
        let restores = matches!(tag(self.outline, self.phases, step), Some(Tag::Now | Tag::Free));
        let parts = self.phases.reasons[usize::from(step.0)].split("; ");
        let parts = parts.filter(|part| !(part.is_empty() || restores && part.starts_with("later: ")));
        parts
            .map(|part| {
                let (weight, note) = match part.split_once(": ") {
                    Some(("delta", note)) => (1, note),
                    Some(("later", note)) => (2, if line == Some(Tag::Both) { part } else { note }),
                    Some(("now", note)) if PLACING.iter().any(|dull| note.starts_with(dull)) => (DULL, note),
                    Some(("now", note)) if note.ends_with(" must exist") => (3, note),
                    Some(("now", "values at hand")) => (3, "values at hand"),
                    Some((_, note)) => (0, note),
                    None => (0, part),
                };
                (weight, note.to_string())
            })
            .collect()
    }

    /// Whether a step requires a row in the branch that is taken if the row exists, and nothing deletes it.
    fn is_found(&self, step: StepId) -> bool {
        let StepKind::RequireRow { row } = &self.outline.at(step).step.kind else { return false };
        let asks = |(parent, part): (StepId, Part)| match &self.outline.at(parent).step.kind {
            StepKind::If { condition: Expression { kind: ExpressionKind::Variable(asked), .. }, .. } => {
                part == Part::Then && self.outline.asked_row(*asked) == Some(*row)
            }
            _ => false,
        };
        let table = self.outline.table(*row);
        let loses_rows = self.outline.existence_changes.iter().any(|&(_, of, added)| of == table && !added);
        !loses_rows && self.outline.branches(step).into_iter().any(asks)
    }

    fn keys(&self) -> Vec<Vec<String>> {
        let accesses = accesses(self.program, self.catalog);
        let mut rows = Vec::new();
        for access in &accesses {
            let source = match &access.source {
                KeySource::Arguments => "from arguments".to_string(),
                KeySource::EarlierReads(steps) => {
                    let lines: BTreeSet<u32> = steps.iter().map(|step| self.line(*step)).collect();
                    let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
                    format!("from reads, line {}", lines.join(", "))
                }
            };
            let what = match access.kind {
                AccessKind::Insert => "is added",
                AccessKind::Range => "range",
                AccessKind::Row if access.required => "must exist",
                AccessKind::Row => "may be missing",
            };
            let what = if access.deletes { "is deleted" } else { what };
            let phase = self.phases.steps[usize::from(access.step.0)];
            let when = match (phase.now, phase.later) {
                (true, _) => "now",
                (false, true) => "later",
                (false, false) => "unused",
            };
            let writes = if access.kind == AccessKind::Insert || access.deletes {
                String::new()
            } else {
                self.columns("writes", access.table, access.writes)
            };
            let reads = self.columns("reads", access.table, access.reads);
            let uses =
                [reads, writes].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
            rows.push(vec![access.text.clone(), when.into(), source, what.into(), uses]);
        }
        rows
    }

    fn columns(&self, verb: &str, table: TableId, columns: ColumnMask) -> String {
        if columns.is_empty() {
            return String::new();
        }
        let schema = self.catalog.table(table);
        let names = columns.iter().map(|column| schema.columns[usize::from(column.0)].name.as_str());
        let named: Vec<&str> = names.take(NAMES).collect();
        let more = match columns.len().saturating_sub(NAMES) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{verb} {}{more}", named.join(" "))
    }

    fn deltas(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (step, operands) in self.phases.delta_operands.iter().enumerate() {
            for (column, operand) in operands {
                let at = self.outline.at(StepId(step as u16)).step;
                let StepKind::Update { row, .. } = &at.kind else { continue };
                let operator =
                    self.phases.writes[step].iter().find(|(of, _)| of == column).map(|write| write.1);
                let operator = match operator {
                    Some(ColumnPhase::Delta(DeltaOperator::Add)) => "+=",
                    Some(ColumnPhase::Delta(DeltaOperator::Max)) => "max=",
                    _ => "min=",
                };
                rows.push(vec![
                    self.column_name(self.outline.table(*row), *column),
                    operator.into(),
                    expression_text(self.program, operand),
                    format!("line {}", self.line(StepId(step as u16))),
                ]);
            }
        }
        rows
    }

    /// Rows that calls of this program only apply operations to, which cores can do aside.
    fn splittable(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for does in operations(self.program, self.catalog).iter().filter(|does| does.is_splittable()) {
            for (column, operation) in &does.applied {
                let others = |columns: ColumnMask| columns.without(ColumnMask::of(*column));
                let operation = match operation {
                    Operation::Add => "add".to_string(),
                    Operation::Max => "max".to_string(),
                    Operation::Min => "min".to_string(),
                    Operation::Multiply => "mult".to_string(),
                    Operation::Order(columns) => {
                        self.columns("max, and with it", does.table, others(*columns))
                    }
                    Operation::Put(_) => "ordered put".to_string(),
                };
                rows.push(vec![self.column_name(does.table, *column), operation]);
            }
        }
        rows
    }

    fn column_name(&self, table: TableId, column: ColumnId) -> String {
        let schema = self.catalog.table(table);
        format!("{}.{}", schema.name, schema.columns[usize::from(column.0)].name)
    }

    fn captured(&self) -> Vec<Vec<String>> {
        let row = |name: &String, kind: &str| vec![name.clone(), kind.to_string()];
        let rows =
            self.phases.captured_rows.iter().map(|id| row(&self.program.rows[usize::from(id.0)].name, "row"));
        let values = self
            .phases
            .captured_variables
            .iter()
            .map(|id| row(&self.program.variables[usize::from(id.0)].name, "value"));
        rows.chain(values).collect()
    }

    fn relied_on(&self) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for (parameter, field, interval) in &self.phases.relied_on {
            let (name, data_type) = self.parameter(*parameter, *field);
            rows.push(vec![name, format!("in {}", range_text(*interval, data_type))]);
        }
        for (parameter, length) in &self.phases.relied_on_lengths {
            let name = &self.program.variables[usize::from(parameter.0)].name;
            rows.push(vec![name.clone(), format!("at most {length} elements")]);
        }
        for (table, column, interval) in &self.phases.relied_on_columns {
            let data_type = self.catalog.table(*table).data_type(*column);
            rows.push(vec![
                self.column_name(*table, *column),
                format!("in {}", range_text(*interval, data_type)),
            ]);
        }
        rows
    }

    fn parameter(&self, parameter: VariableId, field: u16) -> (String, DataType) {
        let variable = &self.program.variables[usize::from(parameter.0)];
        match &variable.ty {
            Type::Scalar(scalar) => (variable.name.clone(), scalar.data_type),
            Type::List(fields) => {
                let field = &fields[usize::from(field)];
                let dot = if field.name.is_empty() { "" } else { "." };
                (format!("{}{dot}{}", variable.name, field.name), field.scalar.data_type)
            }
        }
    }

    fn hidden_requires(&self) -> Vec<Vec<String>> {
        let line = |step: &StepId| format!("line {}", self.line(*step));
        let all = self.phases.hidden_requires.iter();
        all.map(|(step, reason)| vec![line(step), reason.clone()]).collect()
    }

    fn actions(&self) -> Vec<Vec<String>> {
        let actions = record_actions(self.program, self.catalog);
        actions.iter().enumerate().map(|(at, action)| self.action(at, action)).collect()
    }

    fn action(&self, at: usize, action: &RecordAction) -> Vec<String> {
        let mut uses = Vec::new();
        if action.inserts {
            uses.push("inserts".to_string());
        } else if action.deletes {
            uses.push("deletes".to_string());
        }
        uses.push(self.columns("reads", action.table, action.reads));
        if !action.inserts && !action.deletes {
            uses.push(self.columns("writes", action.table, action.writes));
        }
        uses.retain(|part| !part.is_empty());
        let record =
            if action.loops.is_empty() { action.record.clone() } else { format!("{} *", action.record) };
        let mut rest = Vec::new();
        rest.extend(action.previous.map(|previous| format!("after {} (same record)", previous + 1)));
        for kind in [DependencyKind::Data, DependencyKind::Key, DependencyKind::Condition] {
            let on = action.dependencies.iter().filter(|dependency| dependency.kind == kind);
            let on: Vec<String> = on.map(|dependency| (dependency.on + 1).to_string()).collect();
            if !on.is_empty() {
                rest.push(format!("after {} ({})", on.join(" "), kind_word(kind)));
            }
        }
        let decides = if action.decides { "decides" } else { "" };
        vec![(at + 1).to_string(), record, decides.into(), rest.join(", "), uses.join(", ")]
    }
}

pub(crate) fn kind_word(kind: DependencyKind) -> &'static str {
    match kind {
        DependencyKind::Data => "data",
        DependencyKind::Key => "key",
        DependencyKind::Condition => "condition",
    }
}

/// When the work of a step is done; `None` if there is nothing to say.
pub(crate) fn tag(outline: &Outline<'_>, phases: &Phases, step: StepId) -> Option<Tag> {
    let at = usize::from(step.0);
    let phase = phases.steps[at];
    match &outline.at(step).step.kind {
        StepKind::Insert { .. } | StepKind::Update { .. } => {
            let has =
                |wanted: fn(ColumnPhase) -> bool| phases.writes[at].iter().any(|(_, phase)| wanted(*phase));
            let later = has(|phase| phase == ColumnPhase::Later);
            let delta = has(|phase| matches!(phase, ColumnPhase::Delta(_)));
            let all: ColumnMask = phases.writes[at].iter().map(|(column, _)| *column).collect();
            let needed = all.without(phases.at_hand[at]);
            let now = phases.writes[at]
                .iter()
                .any(|(column, phase)| *phase == ColumnPhase::Now && needed.contains(*column));
            Some(match (now, later, delta) {
                (_, true, true) => Tag::Both,
                (_, true, false) => Tag::Later,
                (_, false, true) => Tag::Delta,
                (true, false, false) => Tag::Now,
                (false, false, false) => Tag::Free,
            })
        }
        StepKind::Locate { .. } | StepKind::RequireRow { .. } if phase.now => Some(Tag::Now),
        StepKind::Read { .. } => match (phases.reads_now[at].is_empty(), phases.reads_later[at].is_empty()) {
            (false, false) => Some(Tag::Both),
            (false, true) => Some(Tag::Now),
            (true, false) => Some(Tag::Later),
            (true, true) => None,
        },
        StepKind::Assign { variable, .. } | StepKind::Exists { variable, .. }
            if phases.captured_variables.contains(variable) =>
        {
            Some(Tag::Now)
        }
        _ => match (phase.now, phase.later) {
            (true, false) if phases.reasons[at].ends_with(AT_HAND) => Some(Tag::Free),
            (true, true) => Some(Tag::Both),
            (true, false) => Some(Tag::Now),
            (false, true) => Some(Tag::Later),
            (false, false) => None,
        },
    }
}

/// An interval of a type's values, as values.
fn range_text(interval: Interval, data_type: DataType) -> String {
    let value = |mantissa: i128| Decimal { mantissa, scale: data_type.scale() }.to_string();
    format!("[{}, {}]", value(interval.low), value(interval.high))
}

/// A text of at most so many characters.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    let kept: String = text.chars().take(most - 2).collect();
    format!("{} …", kept.trim_end())
}

/// Rows of cells in columns, indented, without blanks at line ends.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |at: usize| rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|at| width(at).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::from("  ");
        for (cell, width) in row.iter().zip(&widths).filter(|(_, width)| **width > 0) {
            line += &format!("{cell:<width$}   ", width = *width);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
