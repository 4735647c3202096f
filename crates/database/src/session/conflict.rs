//! Why a transaction could not be committed: which row, what it was, what it is, and who has changed it.
//!
//! Found out afterwards, by running the statements again on the newest state up to the first that shows
//! something else, and comparing the rows it looks at, then and now:
//!
//! ```text
//! could not serialize access due to concurrent update
//! DETAIL: statement 2 of process 11; stock (item) = (1): quantity was 5, is 4, changed by process 12 (seq 345)
//! ```

use super::condition_lock::RowKey;
use super::observation::Observation;
use super::row_name::row_name;
use crate::Database;
use fabius_engine::Room;
use fabius_engine::speculation::Overlay;
use fabius_program::compose::CHANGED;
use fabius_value::{Error, Seq, SqlState, Value};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// Changed rows that a message names.
const NAMED: usize = 3;

/// Commits whose labels are remembered.
const REMEMBERED: usize = 4096;

/// Who has committed lately.
#[derive(Default)]
pub(crate) struct Committers(VecDeque<(Seq, String)>);

impl Committers {
    /// Notes who a call was of.
    pub(crate) fn note(&mut self, seq: Seq, label: &str) {
        if self.0.len() >= REMEMBERED {
            self.0.pop_front();
        }
        self.0.push_back((seq, label.to_string()));
    }

    fn label(&self, seq: Seq) -> Option<&str> {
        self.0.iter().rev().find(|(of, _)| *of == seq).map(|(_, label)| label.as_str())
    }
}

impl Database {
    /// What a client is told whose transaction has seen at `seen` what is not so any more.
    pub(crate) fn conflict(&self, label: &str, seen: Seq, observations: &[Arc<Observation>]) -> Error {
        let error = Error::new(SqlState::SERIALIZATION_FAILURE, CHANGED)
            .with_hint("the transaction might succeed if retried");
        let snapshot = self.foundation().begin_snapshot();
        let mut overlay = Overlay::default();
        for (at, observation) in observations.iter().enumerate() {
            let procedure = observation.statement.procedure();
            let before = overlay.mark();
            let again = self.engine().speculate(
                snapshot.seq(),
                procedure,
                &observation.encoded,
                &mut overlay,
                Room::unbounded(),
            );
            if observation.is_apart {
                overlay.undo_to(before);
            }
            let (met, is_same) = match again {
                Ok(again) => (again.footprint.rows, again.results == observation.results),
                Err(_) => (BTreeSet::new(), false),
            };
            if is_same {
                continue;
            }
            let rows = observation.footprint.rows.union(&met);
            let changes = rows.filter_map(|row| self.change(row, seen, snapshot.seq())).take(NAMED);
            let facts = std::iter::once(statement_of(at, label)).chain(changes);
            return error.with_detail(facts.collect::<Vec<_>>().join("; "));
        }
        // It has changed back.
        if label.is_empty() { error } else { error.with_detail(label.to_string()) }
    }

    /// What a client is told whose statement of this number has looked at a row that was written since.
    pub(super) fn written_since(
        &self,
        label: &str,
        number: usize,
        row: &RowKey,
        (seen, now): (Seq, Seq),
    ) -> Error {
        let change = self.change(row, seen, now);
        let change = change.unwrap_or_else(|| {
            format!("{}: was written, as it was before", row_name(&self.definitions(), row))
        });
        Error::new(SqlState::SERIALIZATION_FAILURE, CHANGED)
            .with_hint("the transaction might succeed if retried")
            .with_detail(format!("{}; {change}", statement_of(number, label)))
    }

    /// What has become of a row, if anything has.
    fn change(&self, row: &RowKey, before: Seq, now: Seq) -> Option<String> {
        let definitions = self.definitions();
        let old = self.engine().row_at(before, row.0, &row.1).ok()?;
        let new = self.engine().row_at(now, row.0, &row.1).ok()?;
        if old.seq == new.seq {
            return None;
        }
        let columns = &definitions.table(row.0).schema().columns;
        let what = match (&old.values, &new.values) {
            (Some(old), Some(new)) => {
                let changed = columns.iter().zip(old.iter().zip(new)).filter(|(_, (old, new))| old != new);
                let changed: Vec<String> = changed
                    .map(|(column, (old, new))| {
                        format!("{} was {}, is {}", column.name, shown(old), shown(new))
                    })
                    .collect();
                if changed.is_empty() {
                    return None;
                }
                changed.join(", ")
            }
            (Some(_), None) => "is gone".to_string(),
            (None, Some(_)) => "is new".to_string(),
            (None, None) => return None,
        };
        let committers = self.sessions().committers.lock();
        let who = match committers.label(new.seq) {
            Some(label) => format!("changed by {label} (seq {})", new.seq),
            None => format!("changed by the call with seq {}", new.seq),
        };
        Some(format!("{}: {what}, {who}", row_name(&definitions, row)))
    }
}

/// `statement 2 of process 11`
fn statement_of(at: usize, label: &str) -> String {
    let who = if label.is_empty() { String::new() } else { format!(" of {label}") };
    format!("statement {}{who}", at + 1)
}

/// A value, at most 40 characters of it.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}
