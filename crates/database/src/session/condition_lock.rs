//! A condition lock: a statement with its answer.
//!
//! The lock says: *this statement, with these arguments, still gives this answer*. Whatever leaves the answer
//! as it is may pass:
//!
//! ```text
//! held                                              admitted            waits
//! take 4 of item 1 -> 1 row      (42 are there)     quantity := 10      quantity := 3
//! show item 1 -> 42                                 name := 'x'         quantity := 10
//! show item 1 for update                                                anything on item 1
//! ```
//!
//! (Lazy state determination, section 3.3.3.) A condition over several rows needs nothing of its own: a
//! statement reads as many rows as it likes (3.3.4). A value lock is a statement that shows the value; it lets
//! pass a write of the same value, which the paper's read mode does not, and nobody can tell. An exclusive lock
//! is about rows, not about an answer.
//!
//! A transaction's statements build on each other, so its locks are kept together and checked in their order,
//! over its own writes.

use super::hold::Hold;
use super::observation::Observation;
use super::wound_wait::Owner;
use fabius_engine::speculation::{Footprint, KeyBytes, Mark, Overlay};
use fabius_engine::{Engine, Room};
use fabius_value::{Seq, TableId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A row: its table and key.
pub(crate) type RowKey = (TableId, KeyBytes);

/// Everything that one transaction has locked.
pub(crate) struct Holder {
    pub(crate) owner: Arc<Owner>,
    /// What it has run, in order, locked or not.
    pub(crate) observations: Vec<Arc<Observation>>,
    /// What the locked ones have looked at.
    shared: Footprint,
    /// The rows that nobody else may lock or write.
    exclusive: BTreeSet<RowKey>,
    tables: BTreeSet<TableId>,
}

impl Holder {
    /// The locks of a transaction that has run this.
    pub(crate) fn new(owner: Arc<Owner>, observations: &[Arc<Observation>]) -> Holder {
        let mut holder = Holder {
            owner,
            observations: Vec::new(),
            shared: Footprint::default(),
            exclusive: BTreeSet::new(),
            tables: BTreeSet::new(),
        };
        holder.add(observations);
        holder
    }

    /// The holder's locks once it has run these statements: those that it ran before, and more.
    pub(crate) fn grown(mut self, observations: &[Arc<Observation>]) -> Holder {
        let so_far = self.observations.len();
        let is_more = match (self.observations.last(), observations.get(..so_far).and_then(<[_]>::last)) {
            (Some(last), Some(same)) => Arc::ptr_eq(last, same),
            _ => false,
        };
        if !is_more {
            return Holder::new(self.owner, observations);
        }
        self.add(&observations[so_far..]);
        self
    }

    fn add(&mut self, observations: &[Arc<Observation>]) {
        for observation in observations {
            self.observations.push(observation.clone());
            if observation.hold == Hold::Observe {
                continue;
            }
            let Footprint { rows, scanned, .. } = &observation.footprint;
            self.tables.extend(observation.footprint.tables());
            self.shared.rows.extend(rows.iter().cloned());
            self.shared.scanned.extend(scanned.iter().copied());
            if observation.hold == Hold::LockForUpdate {
                self.exclusive.extend(rows.iter().cloned());
            }
        }
    }

    /// The tables it has locked something of.
    pub(crate) fn tables(&self) -> &BTreeSet<TableId> {
        &self.tables
    }

    /// A row that both this and a new lock are about, if they do not go together.
    pub(crate) fn excludes(&self, footprint: &Footprint, hold: Hold) -> Option<RowKey> {
        let wanted = match hold {
            // An exclusive lock goes together with no lock on the row at all.
            Hold::LockForUpdate => &self.shared.rows,
            Hold::Lock | Hold::Observe => &self.exclusive,
        };
        footprint.rows.iter().find(|row| wanted.contains(*row)).cloned()
    }

    /// A row that writes laid over the state at `at` have touched, if they break any of the locks.
    pub(crate) fn breaks(
        &self,
        engine: &dyn Engine,
        at: Seq,
        overlay: &mut Overlay,
        begin: Mark,
    ) -> Option<RowKey> {
        let row = |(table, key): (TableId, &KeyBytes)| (table, key.clone());
        if let Some(row) = overlay.written_since(begin).map(row).find(|row| self.exclusive.contains(row)) {
            return Some(row);
        }
        if !self.shared.meets(overlay, begin) {
            return None;
        }
        let met = overlay
            .written_since(begin)
            .map(row)
            .find(|row| self.shared.rows.contains(row) || self.shared.scanned.contains(&row.0));
        let mark = overlay.mark();
        let holds = self.observations.iter().all(|observation| {
            let procedure = observation.statement.procedure();
            let before = overlay.mark();
            let again = engine.speculate(at, procedure, &observation.encoded, overlay, Room::unbounded());
            if observation.is_apart {
                overlay.undo_to(before);
            }
            observation.hold == Hold::Observe || again.is_ok_and(|again| again.results == observation.results)
        });
        overlay.undo_to(mark);
        if holds { None } else { met }
    }
}
