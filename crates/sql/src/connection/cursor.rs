//! Cursors of SQL: the rows of a query, and a place among them.

use super::run::rows_response;
use super::{Connection, Response};
use crate::lowered::OutputColumn;
use crate::parse::command::Step;
use fabius_value::{Error, Result, SqlState, Value};
use futures::TryStreamExt;

/// A cursor. Its rows are those of the moment when it was declared.
pub(super) struct Cursor {
    pub columns: Vec<OutputColumn>,
    rows: Vec<Vec<Value>>,
    /// Rows that it has passed: it stands on the last of them, before the first, or behind all.
    at: usize,
    is_held: bool,
}

impl Connection {
    pub(super) fn cursor_named(&self, name: &str) -> Result<&Cursor> {
        self.cursors.get(name).ok_or_else(|| no_cursor(name))
    }

    /// The columns of a cursor: clients may describe it as the portal that it is in PostgreSQL.
    pub fn cursor_columns(&self, name: &str) -> Option<&[OutputColumn]> {
        self.cursors.get(name).map(|cursor| cursor.columns.as_slice())
    }

    /// `DECLARE`
    pub(super) async fn declare(&mut self, name: &str, is_held: bool, text: &str) -> Result<Response> {
        if !is_held && self.transaction.is_none() {
            return Err(Error::new(
                SqlState(*b"25P01"),
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if self.cursors.contains_key(name) {
            return Err(Error::new(SqlState(*b"42P03"), format!("cursor \"{name}\" already exists")));
        }
        let prepared = Box::pin(self.prepare(text, &[])).await?;
        match Box::pin(self.execute(&prepared, &[])).await? {
            Response::Rows { columns, rows, .. } => {
                let rows = rows.try_collect().await?;
                self.cursors.insert(name.to_string(), Cursor { columns, rows, at: 0, is_held });
                Ok(Response::Done { tag: "DECLARE CURSOR".into() })
            }
            _ => Err(Error::new(SqlState(*b"42601"), "a cursor is of a query")),
        }
    }

    /// `FETCH`, `MOVE`
    pub(super) fn fetch(&mut self, name: &str, step: Step, is_move: bool) -> Result<Response> {
        let cursor = self.cursors.get_mut(name).ok_or_else(|| no_cursor(name))?;
        let rows = cursor.take(step);
        if is_move {
            return Ok(Response::Done { tag: format!("MOVE {}", rows.len()) });
        }
        Ok(rows_response(cursor.columns.clone(), rows, "FETCH"))
    }

    /// `CLOSE`
    pub(super) fn close(&mut self, name: Option<&str>) -> Result<Response> {
        let tag = match name {
            None => {
                self.cursors.clear();
                "CLOSE CURSOR ALL"
            }
            Some(name) => {
                self.cursors.remove(name).ok_or_else(|| no_cursor(name))?;
                "CLOSE CURSOR"
            }
        };
        Ok(Response::Done { tag: tag.into() })
    }

    /// A transaction has ended: so have its cursors, but for those `WITH HOLD` if it was committed.
    pub(super) fn end_cursors(&mut self, is_committed: bool) {
        self.cursors.retain(|_, cursor| is_committed && cursor.is_held);
    }
}

impl Cursor {
    fn take(&mut self, step: Step) -> Vec<Vec<Value>> {
        let all = self.rows.len();
        let row = |cursor: &mut Cursor, place: Option<usize>| match place {
            // Places from 1; 0 is before the first.
            Some(place) if (1..=all).contains(&place) => {
                cursor.at = place;
                vec![cursor.rows[place - 1].clone()]
            }
            Some(0) | None => {
                cursor.at = 0;
                Vec::new()
            }
            Some(_) => {
                cursor.at = all + 1;
                Vec::new()
            }
        };
        let shifted = |at: usize, by: i64| {
            i64::try_from(at).ok().and_then(|at| usize::try_from(at.saturating_add(by)).ok())
        };
        match step {
            Step::By(0) => row(self, Some(self.at)),
            Step::By(count) if count > 0 => self.forward(usize::try_from(count).unwrap_or(usize::MAX)),
            Step::By(count) => self.backward(usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX)),
            Step::AllForward => self.forward(usize::MAX),
            Step::AllBackward => self.backward(usize::MAX),
            Step::Absolute(place) if place >= 0 => row(self, usize::try_from(place).ok()),
            Step::Absolute(place) => row(self, shifted(all + 1, place)),
            Step::Relative(by) => row(self, shifted(self.at, by)),
        }
    }

    fn forward(&mut self, count: usize) -> Vec<Vec<Value>> {
        let all = self.rows.len();
        let first = self.at.min(all);
        let last = first.saturating_add(count).min(all);
        // Whoever asks for more than there is stands behind the last.
        self.at = if last - first < count { all + 1 } else { last };
        self.rows[first..last].to_vec()
    }

    fn backward(&mut self, count: usize) -> Vec<Vec<Value>> {
        let last = self.at.saturating_sub(1).min(self.rows.len());
        let first = last.saturating_sub(count);
        self.at = if last - first < count { 0 } else { first + 1 };
        self.rows[first..last].iter().rev().cloned().collect()
    }
}

fn no_cursor(name: &str) -> Error {
    Error::new(SqlState(*b"34000"), format!("cursor \"{name}\" does not exist"))
}
