//! Conventional transactions, to compare with: they see reads and writes, and no conditions or expressions.
//!
//! What a database without conditions can know is which objects a statement has looked at and which it has written:
//! rows, or columns of rows ([`grain`]). Whoever has looked at an object depends on all of it:
//!
//! ```text
//! update stock set quantity = quantity - 1 where item = 5
//!
//! optimistic    reads stock[5] at the transaction's seq, 17
//!               commit: its newest version has seq 23, so it was written since: 40001
//! pessimistic   stock[5] is locked exclusively, and stays so until the transaction ends
//! ```
//!
//! **Optimistic** transactions compare versions when they commit: nothing that was looked at has a version with a
//! higher seq than that at which it was read. **Pessimistic** ones hold shared and exclusive locks in a plain
//! [lock table](lock_table), on rows and on ranges of keys, with wound-wait.
//!
//! Both decide before the transaction's call is handed in. That call requires what was shown, as that of every
//! transaction does, since there are others who know nothing of these locks and versions: so whatever comes between,
//! nobody sees what is not so. A call by others waits for the locks of conventional transactions, as a transaction of
//! one statement would.

pub mod grain;
pub(crate) mod lock_table;
pub(crate) mod waiting;

use super::hold::Hold;
use super::observation::Observation;
use super::transaction::{Run, Transaction};
use super::wound_wait::Owner;
use crate::Database;
use fabius_engine::speculation::{Footprint, KeyBytes, has_changed};
use fabius_value::{ColumnMask, Result, Seq, TableId, Value};
use grain::Grain;
use lock_table::{Answer, Target, Wanted, Wish};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

impl Transaction {
    /// What is one object to it, if it takes locks on objects. The past does not change.
    pub(super) fn locks_by(&self) -> Option<Grain> {
        self.options.locks_by().filter(|_| !self.is_past)
    }

    /// Runs a statement on the newest state, and locks the objects that it has looked at.
    pub(super) async fn run_on_locked(&mut self, run: &Run<'_>, grain: Grain) -> Result<Vec<Value>> {
        let database = self.database.clone();
        let (label, age) = (&self.options.label, self.options.age);
        let owner = self.owner.get_or_insert_with(|| database.sessions().admission.owner(label, age)).clone();
        // What was looked at when all of it was locked.
        let mut locked: Option<Footprint> = None;
        loop {
            let at = self.move_on()?;
            let observation = self.run_at(at, run)?;
            let locking = match locked.as_ref() == Some(&observation.footprint) {
                true => Locking::Held,
                false => {
                    let begin = self.begins[self.observations.len() - 1].0;
                    let written = self.overlay.written_since(begin).collect();
                    database.lock_observed(&owner, &observation, &written, (grain, at))?
                }
            };
            if let Locking::Held = locking {
                self.database.durable(at).await?;
                return Ok(observation.results.clone());
            }
            self.truncate(self.observations.len() - 1);
            match locking {
                Locking::Blocked(wanted) => database.lock(&owner, &wanted, self.options.lock_timeout).await?,
                Locking::Held | Locking::Late => locked = Some(observation.footprint.clone()),
            }
        }
    }
}

impl Database {
    /// Whether anything that statements have looked at was written since the seq at which the caller holds a snapshot.
    ///
    /// # Errors
    /// `40001` with the object that was.
    pub(super) fn compare_versions(
        &self,
        label: &str,
        observations: &[Arc<Observation>],
        grain: Grain,
        seen: Seq,
    ) -> Result<()> {
        let definitions = self.definitions();
        let now = self.foundation().begin_snapshot();
        for (number, observation) in observations.iter().enumerate() {
            let accesses = observation.statement.accesses(&definitions);
            for (table, key) in &observation.footprint.rows {
                let columns = accesses.reading(*table, grain).read;
                if has_changed(self.foundation(), (seen, now.seq()), (*table, key), columns) {
                    return Err(self.written_since(label, number, &(*table, key.clone()), (seen, now.seq())));
                }
            }
        }
        Ok(())
    }

    /// The locks on what a statement has looked at, and on what it has written.
    fn wanted(
        &self,
        observation: &Observation,
        written: &BTreeSet<(TableId, &KeyBytes)>,
        grain: Grain,
    ) -> Vec<Wanted> {
        let definitions = self.definitions();
        let accesses = observation.statement.accesses(&definitions);
        let footprint = &observation.footprint;
        let rows = footprint.rows.iter().map(|(table, key)| {
            let access = match observation.hold {
                _ if written.contains(&(*table, key)) => accesses.writing(*table, grain),
                Hold::LockForUpdate => {
                    let mut key_columns = ColumnMask::EMPTY;
                    let schema = definitions.table(*table).schema();
                    schema.primary_key.iter().for_each(|column| key_columns.insert(*column));
                    accesses.reading_for_update(*table, key_columns, grain)
                }
                Hold::Lock | Hold::Observe => accesses.reading(*table, grain),
            };
            Wanted { target: Target::Row(*table, key.clone()), access }
        });
        let ranges = footprint.ranges.iter().map(|range| {
            let access = accesses.reading(range.table, grain);
            Wanted { target: Target::Range(range.clone()), access }
        });
        rows.chain(ranges).collect()
    }

    /// Locks what a statement has looked at, and written, when it was run at a seq, as far as nobody is in the way.
    ///
    /// # Errors
    /// `40001` if the owner has to give way itself.
    pub(super) fn lock_observed(
        &self,
        owner: &Arc<Owner>,
        observation: &Observation,
        written: &BTreeSet<(TableId, &KeyBytes)>,
        (grain, at): (Grain, Seq),
    ) -> Result<Locking> {
        let wish = Wish { waker: Waker::noop(), since: Instant::now(), waits: false };
        for wanted in self.wanted(observation, written, grain) {
            let name = |target: &Target| self.target_name(target);
            if let Answer::Blocked(_) = self.sessions().lock_table.ask(owner, &wanted, name, wish)? {
                return Ok(Locking::Blocked(wanted));
            }
        }
        Ok(if self.may_have_changed(observation, grain, at) { Locking::Late } else { Locking::Held })
    }

    /// Whether what a statement has looked at may have changed since; of ranges that is not known.
    fn may_have_changed(&self, observation: &Observation, grain: Grain, seen: Seq) -> bool {
        let now = self.foundation().begin_snapshot();
        if now.seq() == seen {
            return false;
        }
        let accesses = observation.statement.accesses(&self.definitions());
        let footprint = &observation.footprint;
        !footprint.ranges.is_empty()
            || footprint.rows.iter().any(|(table, key)| {
                let columns = accesses.reading(*table, grain).read;
                has_changed(self.foundation(), (seen, now.seq()), (*table, key), columns)
            })
    }
}

/// What has become of the locks on what was looked at.
pub(super) enum Locking {
    /// They are held, and it is as it was.
    Held,
    /// They are held, but something may have been written before.
    Late,
    /// Someone has this one.
    Blocked(Wanted),
}
