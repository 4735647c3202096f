//! Where in functions the parts of a program come from: what `CONTEXT` says of an error at run time.
//!
//! The span of a statement that comes from a body is the number of its place, from 1: see
//! [`Lowered::places`](crate::lowered::Lowered::places).

use super::Compiler;
use crate::lowered::Frame;
use crate::plpgsql::definition::Definition;
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{self as program};
use fabius_sql_meaning::catalog;
use fabius_sql_syntax::plpgsql::tree::{LoopKind, Statement, StatementKind};
use std::sync::Arc;

/// What a statement of SQL is.
const SQL: &str = "SQL statement";

impl Compiler<'_> {
    /// Gives statements of the program that have no place yet that of the statement of the body which they were made
    /// of. What comes from a function that it calls gets it as a caller.
    pub(super) fn mark(&mut self, block: &mut [program::Statement], statement: &Statement) {
        let source = &self.definition.source;
        let line = source.line(statement.span.start);
        let (place, sql) = match self.definition.language.as_str() {
            "python" => (format!("line {line}"), None),
            _ => {
                let sql = sql(&statement.kind, text(&source.text, statement.span));
                (format!("line {line} at {}", what(&statement.kind)), sql)
            }
        };
        self.mark_as(block, format!("{} {place}", self.called()), sql, line);
    }

    /// Marks, as [`Compiler::mark`] does, what was made of a statement of a function in SQL, by its number from 1.
    pub(super) fn mark_of_sql(&mut self, block: &mut [program::Statement], number: usize) {
        let words = format!("SQL function \"{}\" statement {number}", self.definition.name.name);
        self.mark_as(block, words, None, 0);
    }

    /// Marks what was made of declarations of a block that begins there.
    pub(super) fn mark_declarations(&mut self, block: &mut [program::Statement], begin: Span) {
        let line = self.definition.source.line(begin.start);
        let words =
            format!("{} line {line} during statement block local variable initialization", self.called());
        self.mark_as(block, words, None, 0);
    }

    /// Marks what belongs to the function as a whole.
    pub(super) fn mark_rest(&mut self, block: &mut [program::Statement]) {
        self.mark_as(block, self.called(), None, 0);
    }

    /// What errors call the function.
    fn called(&self) -> String {
        match self.definition.language.as_str() {
            "python" => format!("Python function \"{}\"", self.definition.name.name),
            _ => format!("PL/pgSQL function {}", self.signature),
        }
    }

    fn mark_as(&mut self, block: &mut [program::Statement], words: String, sql: Option<String>, line: u32) {
        let depth = self.following.len();
        let at = (self.definition.source.clone(), line);
        let frame = Frame { depth, words: words.into(), sql: sql.map(Arc::from), at };
        let mut own = None;
        mark(block, &frame, &mut own, &mut self.inputs.places);
    }
}

/// `own` is the number of the frame's own place, once it has one.
fn mark(
    block: &mut [program::Statement],
    frame: &Frame,
    own: &mut Option<u32>,
    places: &mut Vec<Vec<Frame>>,
) {
    for statement in block {
        let number = statement.span.start as usize;
        match number.checked_sub(1).and_then(|at| places.get_mut(at)) {
            None => {
                let number = *own.get_or_insert_with(|| {
                    places.push(vec![frame.clone()]);
                    places.len() as u32
                });
                statement.span = Span { start: number, end: number };
            }
            Some(place) if place.last().is_some_and(|last| last.depth > frame.depth) => {
                place.push(frame.clone());
            }
            Some(_) => {}
        }
        match &mut statement.kind {
            program::StatementKind::If { arms, otherwise } => {
                arms.iter_mut().for_each(|(_, then)| mark(then, frame, own, places));
                otherwise.iter_mut().for_each(|otherwise| mark(otherwise, frame, own, places));
            }
            program::StatementKind::ForRange { body, .. } | program::StatementKind::ForEach { body, .. } => {
                mark(body, frame, own, places);
            }
            _ => {}
        }
    }
}

/// A function as errors call it: `f(integer,text)`.
pub(super) fn signature(definition: &Definition) -> Arc<str> {
    let types = catalog::input_types(&definition.parameters).map(ToString::to_string);
    match definition.name.name.as_str() {
        block @ crate::plpgsql::definition::BLOCK => block.into(),
        name => format!("{name}({})", types.collect::<Vec<_>>().join(",")).into(),
    }
}

/// What PostgreSQL calls a statement in errors (`plpgsql_stmt_typename`).
fn what(statement: &StatementKind) -> &'static str {
    match statement {
        StatementKind::Block(_) => "statement block",
        StatementKind::Assign { .. } | StatementKind::AssignElement { .. } => "assignment",
        StatementKind::If { .. } => "IF",
        StatementKind::Case { .. } => "CASE",
        StatementKind::Loop(repeat) => match repeat.kind {
            LoopKind::Forever => "LOOP",
            LoopKind::While(_) => "WHILE",
            LoopKind::Range { .. } => "FOR with integer loop variable",
            LoopKind::Query { .. } => "FOR over SELECT rows",
            LoopKind::Array { .. } => "FOREACH over array",
        },
        StatementKind::Leave { is_continue: false, .. } => "EXIT",
        StatementKind::Leave { is_continue: true, .. } => "CONTINUE",
        StatementKind::Return(_) => "RETURN",
        StatementKind::ReturnNext(_) => "RETURN NEXT",
        StatementKind::ReturnQuery(_) => "RETURN QUERY",
        // What a `CASE` without `ELSE` ends with.
        StatementKind::Raise(raise) if raise.state.as_deref() == Some("20000") => "CASE",
        StatementKind::Raise(_) => "RAISE",
        StatementKind::Assert { .. } => "ASSERT",
        StatementKind::Perform(_) => "PERFORM",
        StatementKind::Call(_) => "CALL",
        StatementKind::Sql { .. } => SQL,
        StatementKind::RowCount(_) => "GET DIAGNOSTICS",
        StatementKind::Nothing => "NULL",
    }
}

/// The SQL that a statement runs, if it is one of its own.
fn sql(statement: &StatementKind, text: &str) -> Option<String> {
    match statement {
        StatementKind::Sql { into: None, .. } | StatementKind::Call(_) => Some(text.to_string()),
        // `PERFORM ...` runs `SELECT ...`.
        StatementKind::Perform(_) => text.get("perform".len()..).map(|rest| format!("SELECT{rest}")),
        _ => None,
    }
}

/// A part of a text, without a semicolon at its end.
fn text(text: &str, span: Span) -> &str {
    let part = text.get(span.start as usize..span.end as usize).unwrap_or_default();
    part.trim_end().trim_end_matches(';').trim_end()
}
