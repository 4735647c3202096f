//! One page with all figures: pictures, what the papers say, what was measured, verdicts with their reasons.
//!
//! Each figure is made by a process of its own (`fabius bench figure ID`), so that none finds what another has left in
//! memory:
//!
//! ```text
//! figure ID --out DIR --> ID.svg, ID.json --+
//! figure ID --out DIR --> ID.svg, ID.json --+--> DIR/figures.md
//! ```

use crate::claim::Verdict;
use crate::figure::{FigureKind, write};
use fabius::Result;
use serde_json::Value as Json;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

/// The page's name.
pub const PAGE: &str = "figures.md";
/// How wide its lists are.
const COLUMNS: usize = 120;

/// What became of a figure.
pub struct Made {
    /// Which.
    pub kind: &'static FigureKind,
    /// Why it was not made, if it was not.
    pub failure: Option<String>,
}

/// Writes the page of figures whose pictures and data are in a directory, and were made by a command in some time.
///
/// # Errors
/// As the directory cannot be written.
pub fn write_page(out: &Path, made: &[Made], command: &str, took: Duration) -> Result<()> {
    let begin = format!("Made by `{command}`, in {} minutes.", took.as_secs().div_ceil(60));
    let figures = made.iter().map(|made| match &made.failure {
        Some(failure) => section(made.kind, &Err(failure.clone())),
        None => section(made.kind, &read(out, made.kind.id)),
    });
    let sections: Vec<(String, [usize; 4])> = figures.collect();
    write(out, PAGE, &page(&begin, &sections))
}

fn read(out: &Path, id: &str) -> std::result::Result<Json, String> {
    let text = std::fs::read_to_string(out.join(format!("{id}.json"))).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

const VERDICTS: [Verdict; 4] = [Verdict::Holds, Verdict::Differs, Verdict::Fails, Verdict::NotMeasured];

/// The page: how many claims came out how, and a section for each figure.
fn page(begin: &str, sections: &[(String, [usize; 4])]) -> String {
    let mut text = format!(
        "# Figures of the papers\n\n{begin}\n\nA claim is a band around what the paper reports: it *holds* within, *does not \
         hold* below, and *differs* above.\n\n"
    );
    let all = VERDICTS.iter().enumerate().map(|(at, verdict)| {
        let count: usize = sections.iter().map(|(_, counts)| counts[at]).sum();
        format!("{count} {}", verdict.word())
    });
    let _ = writeln!(text, "Of all claims: {}.", all.collect::<Vec<_>>().join(", "));
    sections.iter().for_each(|(section, _)| text += section);
    text
}

/// A figure's section, and how many of its claims came out how.
fn section(kind: &FigureKind, data: &std::result::Result<Json, String>) -> (String, [usize; 4]) {
    let mut text = format!("\n## {}: {}\n\n", kind.id, kind.title);
    let mut counts = [0; 4];
    let data = match data {
        Ok(data) => data,
        Err(failure) => {
            let _ = writeln!(text, "Not made: {failure}");
            return (text, counts);
        }
    };
    let _ = writeln!(text, "![{0}]({0}.svg)\n", kind.id);
    text += "| claim | measured (holds from, to) | verdict | reason |\n|---|---|---|---|\n";
    for claim in list(&data["claims"]) {
        let verdict = string(&claim["verdict"]);
        if let Some(at) = VERDICTS.iter().position(|one| one.word() == verdict) {
            counts[at] += 1;
        }
        let number = |value: &Json| value.as_f64().map_or("none".into(), |number| format!("{number:.2}"));
        let measured = list(&claim["measured"]).iter().map(|one| {
            let [value, from, to] = [&one["value"], &one["from"], &one["to"]].map(number);
            format!("{}: **{value}** ({from}, {to})", string(&one["what"]))
        });
        let measured = measured.collect::<Vec<_>>().join("; ");
        let cells = [string(&claim["text"]), measured, verdict, string(&claim["reason"])];
        let _ = writeln!(text, "| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "));
    }
    text.push('\n');
    for note in list(&data["notes"]) {
        text += &item(&string(note));
    }
    (text, counts)
}

/// An item of a list, in lines of at most [`COLUMNS`].
fn item(note: &str) -> String {
    let mut lines = vec!["-".to_string()];
    for word in note.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= COLUMNS => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("  {word}")),
        }
    }
    lines.join("\n") + "\n"
}

fn list(value: &Json) -> &[Json] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn string(value: &Json) -> String {
    value.as_str().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::{Band, Claim, Finding, Reasons};
    use crate::figure::FIGURES;
    use serde_json::json;

    /// Goal: a page has each claim with its numbers, bands and reasons, and counts them; what was not made says why.
    #[test]
    fn a_page_has_every_claim() {
        let reasons = Reasons { fails: "two cores", differs: "more than there" };
        let claim =
            |value| Claim::new("five times", vec![Finding::new("ratio", value, Band::about(5.0))], reasons);
        let claims = [claim(5.0), claim(50.0), claim(1.0), Claim::not_measured("many hosts", "one here")];
        let claims: Vec<Json> = claims.iter().map(Claim::json).collect();
        let data = json!({ "claims": claims, "notes": ["2 threads in all"] });
        let sections =
            [section(&FIGURES[0], &Ok(data)), section(&FIGURES[1], &Err("the disk is full".into()))];
        let page = page("Made by hand.", &sections);
        assert!(
            page.contains("Of all claims: 1 holds, 1 differs, 1 does not hold, 1 not measured."),
            "{page}"
        );
        assert!(
            page.contains("| five times | ratio: **50.00** (4.00, 6.25) | differs | more than there |"),
            "{page}"
        );
        assert!(
            page.contains("Made by hand.")
                && item(&"word ".repeat(50)).lines().all(|line| line.len() <= COLUMNS)
        );
        assert!(page.contains("Not made: the disk is full") && page.contains("- 2 threads in all"), "{page}");
    }
}
