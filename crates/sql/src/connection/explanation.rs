//! `EXPLAIN`: how a statement runs, as a tree of steps, with its keys and what of its program is done when.
//!
//! ```text
//!  Update on stock  (actual time=0.041 rows=1)
//!    Phase: values are computed later
//!    Key: stock[p1]   now   from arguments   may be missing   reads qty, writes qty
//!    ->  Row of stock by primary key (id)
//! ```

use super::explain_format::Format;
use super::plan::Given;
use super::plan::{Body, Explanation, Plan, Program};
use super::result::rows_response;
use super::{Connection, Response};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::catalog::ObjectName;
use fabius_sql_program::bind;
use fabius_value::{Result, Value};
use futures::TryStreamExt;
use serde_json::{Map, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A step of a plan, with what it gets its rows from.
#[derive(Default)]
struct Step {
    words: String,
    /// `Phase: ...`
    facts: Vec<(&'static str, String)>,
    parts: Vec<Step>,
}

/// Texts by their titles: a program's, or a function's.
type Texts = Vec<(&'static str, Vec<String>)>;

/// What running it has shown.
struct Measured {
    rows: u64,
    time: Duration,
}

impl Step {
    fn new(words: impl Into<String>) -> Step {
        Step { words: words.into(), ..Step::default() }
    }

    /// The step's lines, as PostgreSQL indents them.
    fn lines(&self, depth: usize, lines: &mut Vec<String>) {
        let arrow = if depth == 0 { String::new() } else { format!("{}->  ", " ".repeat(6 * depth - 4)) };
        lines.push(format!("{arrow}{}", self.words));
        for (what, fact) in &self.facts {
            lines.push(format!("{}{what}: {fact}", " ".repeat(6 * depth + 2)));
        }
        self.parts.iter().for_each(|part| part.lines(depth + 1, lines));
    }

    fn json(&self) -> Map<String, serde_json::Value> {
        let mut object = Map::new();
        object.insert("Node Type".into(), json!(self.words));
        for (what, fact) in &self.facts {
            match object.get_mut(*what) {
                Some(serde_json::Value::Array(facts)) => facts.push(json!(fact)),
                Some(one) => *one = json!([one.clone(), fact]),
                None => {
                    object.insert((*what).into(), json!(fact));
                }
            }
        }
        if !self.parts.is_empty() {
            let parts = self.parts.iter().map(|part| serde_json::Value::Object(part.json())).collect();
            object.insert("Plans".into(), serde_json::Value::Array(parts));
        }
        object
    }
}

/// The steps of a program, and its text with what is done when if that is wanted; of a function the lines of its body.
fn of_program(
    program: &Program,
    catalog: &Catalog,
    programs: &fabius_program::catalog::Catalog,
    verbose: bool,
) -> Result<(Step, Texts)> {
    let lowered = &program.lowered;
    let body = lowered.body().filter(|_| !verbose);
    let report = bind::explained(lowered, programs, None, body.map(|body| &**body))?;
    let shown = |text: &str| in_words(text, catalog, &lowered.reads, &lowered.writes);
    let written: Vec<&str> = lowered.writes.iter().map(|name| name.name.as_str()).collect();
    let mut root = match lowered.tag {
        "INSERT" => Step::new(format!("Insert on {}", written.join(", "))),
        "UPDATE" => Step::new(format!("Update on {}", written.join(", "))),
        "DELETE" => Step::new(format!("Delete on {}", written.join(", "))),
        "CALL" | "DO" => Step::new("Call"),
        _ if !lowered.places.is_empty() => Step::new("Function"),
        _ if lowered.paths.is_empty() => Step::new("Result"),
        _ if lowered.paths.len() == 1 => Step::new(lowered.paths[0].clone()),
        _ => Step::new("Nested Loop"),
    };
    if root.words != lowered.paths.first().map_or("", String::as_str) {
        root.parts = lowered.paths.iter().map(Step::new).collect();
    }
    let phase = report.summary.split_once(": ").map_or(report.summary.as_str(), |(_, phase)| phase);
    root.facts.push(("Phase", phase.to_string()));
    let mut text = Vec::new();
    let mut program_text: Vec<String> = report.shown(&shown).lines().map(String::from).collect();
    for (title, rows) in &report.sections {
        match *title {
            "keys" => root.facts.extend(rows.lines().map(|row| ("Key", shown(row.trim())))),
            "deltas" => root.facts.extend(rows.lines().map(|row| ("Delta", shown(row.trim())))),
            _ if verbose => {
                text.push(String::new());
                text.push((*title).to_string());
                text.extend(rows.lines().map(&shown));
            }
            _ => {}
        }
    }
    if verbose || !lowered.places.is_empty() {
        program_text.append(&mut text);
        let title = if body.is_some() { "Function" } else { "Program" };
        return Ok((root, vec![(title, program_text)]));
    }
    Ok((root, Texts::new()))
}

/// A text with the tables' own names for those of the storage.
fn in_words(text: &str, catalog: &Catalog, reads: &[ObjectName], writes: &[ObjectName]) -> String {
    let tables = reads.iter().chain(writes).filter_map(|name| catalog.tables.get(name));
    tables.fold(text.to_string(), |text, table| {
        let quoted = format!("`{}`", table.storage);
        text.replace(&quoted, &table.name.name).replace(&table.storage, &table.name.name)
    })
}

/// The steps of a query: its operators, a level of two blanks each.
fn of_operators(lines: &[String]) -> Step {
    let mut open: Vec<Step> = Vec::new();
    fn close(open: &mut Vec<Step>) {
        if let Some(done) = open.pop()
            && let Some(around) = open.last_mut()
        {
            around.parts.push(done);
        }
    }
    for line in lines {
        let level = (line.len() - line.trim_start().len()) / 2;
        while open.len() > level.max(1) || open.len() == 1 && level == 0 {
            close(&mut open);
        }
        let (name, rest) = line.trim_start().split_once(':').unwrap_or((line.trim_start(), ""));
        let name = name.trim_end_matches("Exec");
        open.push(Step::new(if rest.is_empty() { name.to_string() } else { format!("{name}:{rest}") }));
    }
    while open.len() > 1 {
        close(&mut open);
    }
    open.pop().map_or_else(|| Step::new("Result"), without_cooperation)
}

/// The steps without those that only give way to others now and then.
fn without_cooperation(mut step: Step) -> Step {
    while step.words == "Cooperative" && step.parts.len() == 1 {
        step = step.parts.swap_remove(0);
    }
    step.parts = step.parts.into_iter().map(without_cooperation).collect();
    step
}

impl Connection {
    /// Answers an `EXPLAIN`; with `ANALYZE`, the statement runs, and what it writes is written.
    pub(super) async fn explain(
        &mut self,
        catalog: &Arc<Catalog>,
        explanation: &Explanation,
        given: Given<'_>,
    ) -> Result<Response> {
        let wanted = explanation.wanted;
        let subject = &explanation.subject;
        let began = Instant::now();
        let (mut step, texts) = self.steps(catalog, subject, wanted.verbose, given.parameters).await?;
        let planning = began.elapsed();
        let measured = match wanted.analyze {
            false => None,
            true => {
                let began = Instant::now();
                let response = Box::pin(self.perform(catalog, subject, given)).await?;
                let rows = match response {
                    Response::Rows { rows, .. } => {
                        let rows: Vec<Vec<Value>> = rows.try_collect().await?;
                        rows.len() as u64
                    }
                    Response::Done { tag } => {
                        tag.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or_default()
                    }
                    _ => 0,
                };
                Some(Measured { rows, time: began.elapsed() })
            }
        };
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let summary = wanted.summary.then(|| {
            let mut times = vec![("Planning Time", planning)];
            times.extend(measured.as_ref().map(|measured| ("Execution Time", measured.time)));
            times
        });
        if wanted.format != Format::Text {
            let mut plan = step.json();
            if let Some(measured) = &measured {
                if wanted.timing {
                    plan.insert("Actual Total Time".into(), json!(rounded(millis(measured.time))));
                }
                plan.insert("Actual Rows".into(), json!(measured.rows));
                plan.insert("Actual Loops".into(), json!(1));
            }
            let mut whole = Map::new();
            whole.insert("Plan".into(), serde_json::Value::Object(plan));
            for (title, lines) in texts {
                whole.insert(title.into(), json!(lines));
            }
            for (what, time) in summary.into_iter().flatten() {
                whole.insert(what.into(), json!(rounded(millis(time))));
            }
            let text = wanted.format.write(whole).unwrap_or_default();
            return Ok(rows_response(vec![wanted.column()], vec![vec![Value::Text(text)]], "EXPLAIN"));
        }
        if let Some(measured) = &measured {
            let time =
                if wanted.timing { format!("time={:.3} ", millis(measured.time)) } else { String::new() };
            step.words = format!("{}  (actual {time}rows={} loops=1)", step.words, measured.rows);
        }
        let mut lines = Vec::new();
        step.lines(0, &mut lines);
        for (title, text) in texts {
            lines.push(format!("{title}:"));
            lines.extend(text.iter().map(|line| format!("  {line}").trim_end().to_string()));
        }
        for (what, time) in summary.into_iter().flatten() {
            lines.push(format!("{what}: {:.3} ms", millis(time)));
        }
        let rows = lines.into_iter().map(|line| vec![Value::Text(line)]).collect();
        Ok(rows_response(vec![wanted.column()], rows, "EXPLAIN"))
    }

    /// The steps of a plan, and the text of its program if that is to be shown.
    async fn steps(
        &mut self,
        catalog: &Arc<Catalog>,
        plan: &Plan,
        verbose: bool,
        parameters: &[Value],
    ) -> Result<(Step, Texts)> {
        Ok(match &plan.body {
            Body::Program(program) => {
                let nulls: Vec<bool> = parameters.iter().map(Value::is_null).collect();
                let program = program.for_nulls(self.database.database(), catalog, &nulls)?;
                of_program(&program, catalog, &self.database.database().definitions().catalog, verbose)?
            }
            Body::Query(query) => {
                (of_operators(&query.explain(parameters, &self.session.memory).await?), Texts::new())
            }
            Body::WriteQuery(write) => {
                let what = match write.tag {
                    "UPDATE" => "Update",
                    "DELETE" => "Delete",
                    _ => "Insert",
                };
                let mut root = Step::new(format!("{what} on {}", write.table.name));
                root.facts
                    .push(("Phase", "the rows are found first, then written in one transaction".into()));
                root.parts.push(of_operators(&write.query.explain(parameters, &self.session.memory).await?));
                (root, Texts::new())
            }
            Body::Merge(merge) => {
                let mut root = Step::new(format!("Merge on {}", merge.table.name));
                root.facts
                    .push(("Phase", "the rows are found first, then written in one transaction".into()));
                root.parts.push(of_operators(&merge.query.explain(parameters, &self.session.memory).await?));
                (root, Texts::new())
            }
            Body::WithWrites(all) => {
                let mut root = Step::new("Parts one after the other, in one transaction");
                let mut text = Texts::new();
                for part in &all.parts {
                    let steps = Box::pin(self.steps(catalog, &part.plan, verbose, parameters));
                    let (step, program) = steps.await?;
                    root.parts.push(step);
                    text.extend(program);
                }
                (root, text)
            }
            Body::SkipLocked(skipping) => {
                let steps = Box::pin(self.steps(catalog, &skipping.direct, verbose, parameters));
                let (step, program) = steps.await?;
                let mut root = Step::new("Rows that are locked are passed over");
                root.parts.push(step);
                (root, program)
            }
            Body::Explanation(_) | Body::Other => (Step::new("Result"), Texts::new()),
        })
    }
}

/// Milliseconds to three places.
fn rounded(millis: f64) -> f64 {
    (millis * 1e3).round() / 1e3
}
