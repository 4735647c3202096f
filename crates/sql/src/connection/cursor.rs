//! Cursors of SQL: the rows of a query, and a place among them.

use super::held_rows::HeldRows;
use super::listed::Listing;
use super::prepared::Prepared;
use super::{Connection, Response};
use fabius::Held;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::Command;
use fabius_sql_syntax::command::{Scroll, Step};
use fabius_value::{Error, Result, SqlState, Value};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::collections::BTreeMap;

/// Bytes of rows behind a cursor that are kept for going back, about, unless it is to scroll: then all are.
const KEPT_BYTES: usize = 4 << 20;

/// Cursors of a connection that were declared outside of transactions and have rows to come, at most: each stands at
/// a moment of its own. What one of them has still to read is taken in before there are more.
const STANDING_MAX: usize = 16;

/// A cursor. Its rows are those of the moment when it was declared, and come as they are fetched.
pub(super) struct Cursor {
    pub columns: Vec<OutputColumn>,
    /// Rows that have come, but for those in front that are forgotten.
    kept: HeldRows,
    forgotten: usize,
    rest: BoxStream<'static, Result<Vec<Value>>>,
    /// Whether all have come.
    is_whole: bool,
    /// Rows that it has passed: it stands on the last of them, before the first, or behind all.
    at: usize,
    is_held: bool,
    /// Whether it was declared in a transaction, which it may outlive.
    is_inside: bool,
    scroll: Scroll,
    /// It is in `pg_cursors` as long as it is there.
    _listed: Listing,
}

/// The cursors of a session, by their names.
#[derive(Default)]
pub(super) struct Cursors {
    named: BTreeMap<String, Cursor>,
}

/// What `DECLARE` says.
pub(super) struct Declaration<'c> {
    pub name: &'c str,
    pub is_held: bool,
    pub scroll: Scroll,
    pub query: &'c str,
}

impl Connection {
    /// The columns that a statement has now: those of `FETCH` are its cursor's, which may have been declared since the
    /// statement was prepared.
    pub fn columns_of<'c>(&'c self, prepared: &'c Prepared) -> Option<&'c [OutputColumn]> {
        match &*prepared.command {
            Command::Fetch { name, is_move: false, .. } => self.cursor_columns(name),
            Command::Execute { name, .. } => self.session.prepared.get(name)?.columns.as_deref(),
            _ => prepared.columns.as_deref(),
        }
    }

    /// The columns of a cursor: clients may describe it as the portal that it is in PostgreSQL.
    pub fn cursor_columns(&self, name: &str) -> Option<&[OutputColumn]> {
        self.session.cursors.get(name).map(|cursor| cursor.columns.as_slice())
    }

    /// `DECLARE`, with what was written for it, and its query's parameters by their types and values.
    pub(super) async fn declare(
        &mut self,
        declaration: Declaration<'_>,
        written: &str,
        (types, parameters): (&[SqlType], &[Value]),
    ) -> Result<Response> {
        let Declaration { name, is_held, scroll, query } = declaration;
        if !is_held && self.transaction.is_idle() {
            return Err(Error::new(
                SqlState(*b"25P01"),
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if self.session.cursors.get(name).is_some() {
            return Err(Error::new(SqlState(*b"42P03"), format!("cursor \"{name}\" already exists")));
        }
        let prepared = Box::pin(self.prepare(query, types)).await?;
        if self.transaction.is_idle() {
            self.session.cursors.stand_less().await?;
        }
        match Box::pin(self.execute(&prepared, parameters)).await? {
            Response::Rows { columns, rows, .. } => {
                let kept = HeldRows::new(self.session.holding());
                let cursor = Cursor {
                    columns,
                    kept,
                    forgotten: 0,
                    rest: rows,
                    is_whole: false,
                    at: 0,
                    is_held,
                    is_inside: !self.transaction.is_idle(),
                    scroll,
                    _listed: self.session.facts.listed.cursor(name, written, is_held, scroll),
                };
                self.session.cursors.named.insert(name.to_string(), cursor);
                Ok(Response::Done { tag: "DECLARE CURSOR".into() })
            }
            _ => Err(Error::new(SqlState(*b"42601"), "a cursor is of a query")),
        }
    }
}

impl Cursors {
    /// Makes room for one more cursor that stands at a moment of its own.
    pub async fn stand_less(&mut self) -> Result<()> {
        let standing = |cursor: &&mut Cursor| !cursor.is_inside && !cursor.is_whole;
        if self.named.values_mut().filter(standing).count() >= STANDING_MAX
            && let Some(cursor) = self.named.values_mut().find(standing)
        {
            cursor.come(usize::MAX).await?;
        }
        Ok(())
    }

    /// The cursor of a name.
    pub fn get(&self, name: &str) -> Option<&Cursor> {
        self.named.get(name)
    }

    /// `FETCH`, `MOVE`
    pub async fn fetch(&mut self, name: &str, step: Step, is_move: bool, holding: Held) -> Result<Response> {
        let cursor = self.named.get_mut(name).ok_or_else(|| no_cursor(name))?;
        let mut found = HeldRows::new(holding);
        let passed = cursor.take(step, (!is_move).then_some(&mut found)).await?;
        if is_move {
            return Ok(Response::Done { tag: format!("MOVE {passed}") });
        }
        Ok(Response::Rows { columns: cursor.columns.clone(), rows: found.stream(), tag: "FETCH" })
    }

    /// `CLOSE`
    pub fn close(&mut self, name: Option<&str>) -> Result<Response> {
        let tag = match name {
            None => {
                self.named.clear();
                "CLOSE CURSOR ALL"
            }
            Some(name) => {
                self.named.remove(name).ok_or_else(|| no_cursor(name))?;
                "CLOSE CURSOR"
            }
        };
        Ok(Response::Done { tag: tag.into() })
    }

    /// Before a commit: what cursors that outlive the transaction have still to read of it.
    pub async fn complete(&mut self) -> Result<()> {
        for cursor in self.named.values_mut().filter(|cursor| cursor.is_held && cursor.is_inside) {
            cursor.come(usize::MAX).await?;
        }
        Ok(())
    }

    /// A transaction has ended: so have its cursors, but for those `WITH HOLD` if it was committed.
    pub fn end(&mut self, is_committed: bool) {
        self.named.retain(|_, cursor| is_committed && cursor.is_held);
    }
}

impl Cursor {
    /// How many rows there are, as far as that is known.
    fn known(&self) -> usize {
        self.forgotten + self.kept.rows.len()
    }

    /// Waits until there are so many rows, or all; how many there are.
    async fn come(&mut self, count: usize) -> Result<usize> {
        if !self.is_whole && self.known() < count {
            let wanted = count - self.forgotten;
            self.is_whole = self.kept.fill(&mut self.rest, (wanted, usize::MAX)).await?;
            if self.is_whole {
                // What it stands at is not needed any more.
                self.rest = futures::stream::empty().boxed();
            }
        }
        Ok(self.known())
    }

    /// Goes so far, and shows what it meets. How many rows these are.
    async fn take(&mut self, step: Step, mut found: Option<&mut HeldRows>) -> Result<usize> {
        let shifted = |at: usize, by: i64| {
            i64::try_from(at).ok().and_then(|at| usize::try_from(at.saturating_add(by)).ok())
        };
        let goes_back = match step {
            Step::By(count) | Step::Relative(count) => count < 0,
            Step::Absolute(place) => usize::try_from(place).is_ok_and(|place| place <= self.at) || place < 0,
            Step::AllForward => false,
            Step::AllBackward => true,
        };
        if goes_back && self.scroll == Scroll::Forward {
            return Err(only_forward());
        }
        match step {
            Step::By(0) => self.row(Some(self.at), &mut found).await,
            Step::By(count) if count > 0 => self.forward(usize::try_from(count).ok(), &mut found).await,
            Step::By(count) => self.backward(usize::try_from(count.unsigned_abs()).ok(), &mut found).await,
            Step::AllForward => self.forward(None, &mut found).await,
            Step::AllBackward => self.backward(None, &mut found).await,
            Step::Absolute(place) if place >= 0 => self.row(usize::try_from(place).ok(), &mut found).await,
            Step::Absolute(place) => {
                let all = self.come(usize::MAX).await?;
                self.row(shifted(all + 1, place), &mut found).await
            }
            Step::Relative(by) => self.row(shifted(self.at, by), &mut found).await,
        }
    }

    /// The row at a place; places count from 1, and 0 is before the first.
    async fn row(&mut self, place: Option<usize>, found: &mut Option<&mut HeldRows>) -> Result<usize> {
        let Some(place) = place.filter(|place| *place > 0) else {
            self.reach_back(1)?;
            self.at = 0;
            return Ok(0);
        };
        let all = self.come(place).await?;
        if place > all {
            self.at = all + 1;
            return Ok(0);
        }
        self.show(place, found)?;
        self.at = place;
        self.let_go();
        Ok(1)
    }

    /// Shows a row that has come.
    fn show(&self, place: usize, found: &mut Option<&mut HeldRows>) -> Result<()> {
        self.reach_back(place)?;
        if let (Some(found), Some(row)) = (found, self.kept.rows.get(place - 1 - self.forgotten)) {
            found.push(row.clone())?;
        }
        Ok(())
    }

    /// Whether the row at a place is still there.
    ///
    /// # Errors
    /// `55000` if not.
    fn reach_back(&self, place: usize) -> Result<()> {
        if place > self.forgotten { Ok(()) } else { Err(only_forward()) }
    }

    async fn forward(&mut self, count: Option<usize>, found: &mut Option<&mut HeldRows>) -> Result<usize> {
        let mut passed = 0;
        while count.is_none_or(|count| passed < count) {
            let next = self.at + 1;
            let all = self.come(next).await?;
            // Whoever asks for more than there is stands behind the last.
            self.at = next.min(all + 1);
            if next > all {
                break;
            }
            self.show(next, found)?;
            passed += 1;
            self.let_go();
        }
        Ok(passed)
    }

    async fn backward(&mut self, count: Option<usize>, found: &mut Option<&mut HeldRows>) -> Result<usize> {
        let mut passed = 0;
        while count.is_none_or(|count| passed < count) {
            self.at = self.at.saturating_sub(1);
            if self.at == 0 {
                self.reach_back(1)?;
                break;
            }
            self.show(self.at, found)?;
            passed += 1;
        }
        Ok(passed)
    }

    /// Forgets rows before the one it stands on, unless it has to go back to them.
    fn let_go(&mut self) {
        let is_much = match self.scroll {
            Scroll::Both => false,
            Scroll::Usual => self.kept.held.bytes() > KEPT_BYTES,
            Scroll::Forward => true,
        };
        let behind = self.at.saturating_sub(1 + self.forgotten).min(self.kept.rows.len());
        // Not one by one, as that would move all others.
        if is_much && behind * 2 > self.kept.rows.len() {
            self.kept.forget(behind);
            self.forgotten += behind;
        }
    }
}

fn only_forward() -> Error {
    Error::new(SqlState::NOT_IN_STATE, "cursor can only scan forward")
        .with_hint("Declare it with SCROLL option to enable backward scan.")
}

fn no_cursor(name: &str) -> Error {
    Error::new(SqlState(*b"34000"), format!("cursor \"{name}\" does not exist"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{SqlDatabase, run_counting};
    use fabius::{Database, Options};
    use std::sync::Arc;

    /// Goal: a connection stands at no more than so many moments with its cursors; each has its rows all the same.
    #[tokio::test]
    async fn cursors_stand_at_few_moments() {
        let database = Arc::new(Database::in_memory(Options::default()));
        let mut connection = Connection::new(SqlDatabase::open(database).await.unwrap(), "me");
        run_counting(&mut connection, "CREATE TABLE t (a integer PRIMARY KEY)").await;
        run_counting(&mut connection, "INSERT INTO t SELECT i FROM generate_series(1, 3000) AS s(i)").await;
        for number in 0..STANDING_MAX + 4 {
            let declare = format!("DECLARE c{number:02} CURSOR WITH HOLD FOR SELECT a FROM t");
            run_counting(&mut connection, &declare).await;
            run_counting(&mut connection, &format!("DELETE FROM t WHERE a = {}", number + 1)).await;
        }
        let standing = connection.session.cursors.named.values().filter(|cursor| !cursor.is_whole).count();
        assert_eq!(standing, STANDING_MAX);
        for number in 0..STANDING_MAX + 4 {
            assert_eq!(
                run_counting(&mut connection, &format!("FETCH ALL FROM c{number:02}")).await,
                3000 - number
            );
        }
    }
}
