//! Who may write past the locks of others.
//!
//! As long as nobody holds a lock, a call goes straight to the engine; finding that out is one load. Otherwise a
//! call that may write a table with locks is tried first, on the newest state: if every lock's statement still
//! gives its answer, it is admitted, else it is *held back* until who is in its way is done. One at a time, from
//! the trial until the call is decided, so that what was tried is what happens.
//!
//! ```text
//! submit --- no locks ----------------------------------------> engine
//!        \-- locks --> try: answers stay the same ------------> engine, decided before the next is tried
//!                      try: one changes --> held back --release, or the holder is younger: wounded--> try
//! ```
//!
//! A lock is asked for in the same place, on the newest state too; who does not get it stands in a queue
//! ([`super::queue`]). A call that was under way when a table got its first lock may slip past it; so the call that
//! commits a transaction checks everything all the same, and a lock only makes it likely that nothing is found.

use super::condition_lock::{Holder, RowKey};
use super::hold::Hold;
use super::lock::Lock;
use super::observation::Observation;
use super::queue::Queue;
use super::recall::Recall;
use super::row_name::row_name;
use super::wait::Wait;
use super::wound_wait::{Age, Owner};
use crate::Database;
use crate::statement::{Caller, written_tables};
use fabius_engine::speculation::Overlay;
use fabius_engine::{Batch, Definitions, Room, entry};
use fabius_program::catalog::ProcedureId;
use fabius_value::{Error, Result, SqlState, TableId};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Relaxed, SeqCst},
};
use std::time::Instant;

/// The locks of a database, and who waits for them.
#[derive(Default)]
pub(crate) struct Admission {
    /// How many hold locks.
    holders: AtomicUsize,
    ages: AtomicU64,
    /// Tables with locks, and of how many holders.
    tables: RwLock<BTreeMap<TableId, usize>>,
    /// What procedures write, as far as somebody asked.
    writes: RwLock<HashMap<ProcedureId, Arc<BTreeSet<TableId>>>>,
    pub(super) gate: Mutex<Gate>,
}

#[derive(Default)]
pub(super) struct Gate {
    pub(super) holders: Vec<Holder>,
    held: Vec<Held>,
    pub(super) queue: Queue,
    /// Whether locks were given up since what is held back was tried.
    has_freed: bool,
}

/// A batch that is held back.
struct Held {
    trial: Trial,
    wait: Wait,
}

impl Admission {
    /// An owner younger than all before, unless it is said to be of an age.
    pub(crate) fn owner(&self, label: &str, age: Option<Age>) -> Arc<Owner> {
        let age = age.map_or_else(|| self.ages.fetch_add(1, Relaxed) + 1, |Age(age)| age);
        Arc::new(Owner::new(age, label))
    }

    /// Whether nobody holds a lock.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.holders.load(Relaxed) == 0
    }

    fn has_locks(&self, tables: &BTreeSet<TableId>) -> bool {
        let locked = self.tables.read();
        tables.iter().any(|table| locked.contains_key(table))
    }

    /// The tables that a batch may write.
    fn written_by(&self, definitions: &Definitions, batch: &Batch) -> BTreeSet<TableId> {
        let mut tables = BTreeSet::new();
        for call in entry::calls(batch.calls()).map_while(Result::ok) {
            let known = self.writes.read().get(&call.procedure).cloned();
            let writes = known.unwrap_or_else(|| {
                let procedure = definitions.procedure(call.procedure);
                let writes: BTreeSet<TableId> = procedure
                    .map_or_else(|_| BTreeSet::new(), |procedure| written_tables(&procedure.program));
                let writes = Arc::new(writes);
                self.writes.write().insert(call.procedure, writes.clone());
                writes
            });
            tables.extend(writes.iter().copied());
        }
        tables
    }

    /// Who waits for whom.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        let gate = self.gate.lock();
        let held = gate.held.iter().map(|held| held.wait.clone());
        held.chain(gate.queue.waits()).collect()
    }

    /// Whether anybody waits for the locks of others.
    pub(crate) fn has_waits(&self) -> bool {
        let gate = self.gate.lock();
        !gate.held.is_empty() || gate.queue.waits().next().is_some()
    }

    /// Who holds locks.
    pub(crate) fn locks(&self) -> Vec<Lock> {
        let gate = self.gate.lock();
        let lock = |holder: &Holder| Lock {
            holder: holder.owner.label.clone(),
            tables: holder.tables().iter().copied().collect(),
            statements: holder.observations.iter().filter(|of| of.hold != Hold::Observe).count(),
        };
        gate.holders.iter().map(lock).collect()
    }
}

impl Gate {
    pub(super) fn holder(&self, owner: &Arc<Owner>) -> Option<usize> {
        self.holders.iter().position(|holder| Arc::ptr_eq(&holder.owner, owner))
    }
}

impl Database {
    /// Who waits for the locks of whom.
    pub fn waits(&self) -> Vec<Wait> {
        let mut waits = self.sessions().admission.waits();
        waits.extend(self.sessions().lock_table.waits(|target| self.target_name(target)));
        waits
    }

    /// Whether anybody waits for the locks of others.
    pub fn has_waits(&self) -> bool {
        self.sessions().admission.has_waits() || self.sessions().lock_table.has_waits()
    }

    /// Who holds condition locks, and who holds locks of conventional transactions.
    pub fn condition_locks(&self) -> Vec<Lock> {
        let mut locks = self.sessions().admission.locks();
        locks.extend(self.sessions().lock_table.locks());
        locks
    }

    /// Hands a batch in; if it would change what others have locked, as soon as it would not. Whether it went
    /// straight to the engine. A caller without locks of its own waits at this age, else as the youngest.
    pub(crate) fn admit(&self, batch: Arc<Batch>, caller: &Caller<'_>, age: Option<Age>) -> bool {
        let admission = &self.sessions().admission;
        if caller.footing.is_anywhere()
            && let Some(agreed) = &self.agreed
        {
            // Locks are the leader's, and it checks at commit what has come past them.
            self.hand_in_unless_given_up(batch, caller.recall.as_deref(), |batch| {
                agreed.submit_anywhere(batch)
            });
            return true;
        }
        let is_free =
            admission.is_free() || !admission.has_locks(&admission.written_by(&self.definitions(), &batch));
        if is_free {
            if let Some(error) = caller.owner.as_ref().and_then(|owner| owner.begin_commit().err()) {
                batch.fail(error, self.foundation().clock.monotonic_ns());
                return true;
            }
            self.hand_in_or_fail(batch, caller.recall.as_deref(), caller.footing.term());
            return true;
        }
        let label = if caller.label.is_empty() { "a call" } else { caller.label };
        let owner = caller.owner.clone().unwrap_or_else(|| admission.owner(label, age));
        let mut gate = admission.gate.lock();
        self.try_batch(
            &mut gate,
            Trial {
                batch,
                owner,
                recall: caller.recall.clone(),
                term: caller.footing.term(),
                since: Instant::now(),
            },
        );
        self.retry(&mut gate);
        false
    }

    /// Hands a batch in, for one term or whichever it is, unless whoever waits for it has given it up.
    fn hand_in_or_fail(&self, batch: Arc<Batch>, recall: Option<&Recall>, term: Option<u64>) {
        self.hand_in_unless_given_up(batch, recall, |batch| match (term, &self.agreed) {
            (Some(term), Some(agreed)) => agreed.submit_in(batch, term),
            _ => self.hand_in(batch),
        });
    }

    fn hand_in_unless_given_up(
        &self,
        batch: Arc<Batch>,
        recall: Option<&Recall>,
        hand_in: impl FnOnce(Arc<Batch>),
    ) {
        match recall.is_none_or(Recall::hand_in) {
            true => hand_in(batch),
            false => batch.fail(given_up(), self.foundation().clock.monotonic_ns()),
        }
    }

    /// Admits a batch, or holds it back.
    fn try_batch(&self, gate: &mut Gate, trial: Trial) {
        loop {
            let Trial { batch, owner, .. } = &trial;
            let Some((at, key)) = self.in_the_way(gate, batch, owner) else {
                self.hand_in_or_fail(batch.clone(), trial.recall.as_deref(), trial.term);
                if self.agreed.is_none() {
                    self.decide(batch);
                }
                return;
            };
            let row = row_name(&self.definitions(), &key);
            if gate.holders[at].owner.age < owner.age {
                let (waiting, holder) = (owner.label.clone(), gate.holders[at].owner.label.clone());
                let wait = Wait { waiting, holder, table: key.0, row, writes: true, since: trial.since };
                gate.held.push(Held { trial, wait });
                return;
            }
            self.wound(gate, at, owner, &row);
        }
    }

    /// The first holder that a batch would change the answer of, and a row that it is about.
    fn in_the_way(&self, gate: &Gate, batch: &Batch, owner: &Arc<Owner>) -> Option<(usize, RowKey)> {
        let definitions = self.definitions();
        let written = self.sessions().admission.written_by(&definitions, batch);
        let is_near =
            |holder: &Holder| !Arc::ptr_eq(&holder.owner, owner) && !holder.tables().is_disjoint(&written);
        if !gate.holders.iter().any(is_near) {
            return None;
        }
        let snapshot = self.foundation().begin_snapshot();
        let mut overlay = Overlay::default();
        let begin = overlay.mark();
        for call in entry::calls(batch.calls()).map_while(Result::ok) {
            if let Ok(procedure) = definitions.procedure(call.procedure) {
                // A call that aborts writes nothing.
                let _ = self.engine().speculate(
                    snapshot.seq(),
                    procedure,
                    call.arguments,
                    &mut overlay,
                    Room::unbounded(),
                );
            }
        }
        // Who has to wait for one who is older makes nobody give way meanwhile.
        let near = |is_older: bool| {
            let all = gate.holders.iter().enumerate();
            all.filter(move |(_, of)| is_near(of) && (of.owner.age < owner.age) == is_older)
        };
        near(true).chain(near(false)).find_map(|(at, holder)| {
            Some((at, holder.breaks(self.engine(), snapshot.seq(), &mut overlay, begin)?))
        })
    }

    /// Makes a holder give up its locks, and the batch that it may be waiting to commit with.
    pub(super) fn wound(&self, gate: &mut Gate, at: usize, culprit: &Owner, row: &str) {
        let owner = gate.holders[at].owner.clone();
        owner.wound(culprit, row);
        let error = owner.wounded();
        gate.held.retain(|held| {
            let is_its = Arc::ptr_eq(&held.trial.owner, &owner);
            if let (true, Some(error)) = (is_its, &error) {
                held.trial.batch.fail(error.clone(), self.foundation().clock.monotonic_ns());
            }
            !is_its
        });
        self.remove(gate, at);
    }

    /// Wakes whose turn it is.
    pub(super) fn wake(&self, gate: &mut Gate) {
        let Gate { holders, queue, .. } = gate;
        queue.wake(holders, |key| row_name(&self.definitions(), key));
    }

    fn remove(&self, gate: &mut Gate, at: usize) {
        let holder = gate.holders.remove(at);
        gate.has_freed = true;
        self.count_tables(holder.tables(), &BTreeSet::new());
        self.sessions().admission.holders.store(gate.holders.len(), SeqCst);
        gate.queue.stir();
    }

    /// Tries what was held back again, the oldest first; then it is the turn of those who wait for locks.
    fn retry(&self, gate: &mut Gate) {
        loop {
            gate.has_freed = false;
            let mut held = std::mem::take(&mut gate.held);
            let count = held.len();
            held.sort_by_key(|held| held.trial.owner.age);
            for Held { trial, .. } in held {
                // Its own transaction may have been wounded by one before it.
                match trial.owner.wounded() {
                    Some(error) => trial.batch.fail(error, self.foundation().clock.monotonic_ns()),
                    None => self.try_batch(gate, trial),
                }
            }
            // Whoever was admitted, or wounded, may have been in the way of one tried before.
            if gate.held.len() == count || gate.held.is_empty() {
                break;
            }
        }
        self.wake(gate);
    }

    pub(super) fn count_tables(&self, before: &BTreeSet<TableId>, after: &BTreeSet<TableId>) -> bool {
        let mut tables = self.sessions().admission.tables.write();
        let mut is_first = false;
        for table in after.difference(before) {
            let count = tables.entry(*table).or_default();
            is_first |= *count == 0;
            *count += 1;
        }
        for table in before.difference(after) {
            if let Some(count) = tables.get_mut(table) {
                *count -= 1;
                if *count == 0 {
                    tables.remove(table);
                }
            }
        }
        is_first
    }

    /// Runs `step` while nobody is admitted, on behalf of an owner; what it looked at is then to be locked.
    ///
    /// # Errors
    /// Those of `step`; that the owner was wounded.
    pub(super) fn with_gate<T>(
        self: &Arc<Self>,
        owner: &Arc<Owner>,
        tables: &BTreeSet<TableId>,
        step: impl FnOnce(&mut Gate) -> Result<T>,
    ) -> Result<T> {
        let admission = &self.sessions().admission;
        let mut gate = admission.gate.lock();
        if let Some(error) = owner.wounded() {
            return Err(error);
        }
        // From here on, whoever writes these tables asks first.
        let is_first = self.count_tables(&BTreeSet::new(), tables);
        admission.holders.store(gate.holders.len().max(1), SeqCst);
        if is_first {
            while self.engine().admit() {}
            drop(self.engine().stand());
        }
        let result = step(&mut gate);
        // It may have wounded who was in the way of others.
        match gate.has_freed {
            true => self.retry(&mut gate),
            false => self.wake(&mut gate),
        }
        self.count_tables(tables, &BTreeSet::new());
        admission.holders.store(gate.holders.len(), SeqCst);
        result
    }

    /// Replaces what an owner has locked; with nothing, its locks are gone.
    pub(crate) fn set_locks(&self, owner: &Arc<Owner>, observations: &[Arc<Observation>]) {
        let mut gate = self.sessions().admission.gate.lock();
        let Some(at) = gate.holder(owner) else { return };
        self.remove(&mut gate, at);
        let holder = Holder::new(owner.clone(), observations);
        if !holder.tables().is_empty() {
            self.add(&mut gate, holder);
        }
        self.retry(&mut gate);
    }

    pub(super) fn add(&self, gate: &mut Gate, holder: Holder) {
        self.count_tables(&BTreeSet::new(), holder.tables());
        gate.holders.push(holder);
        self.sessions().admission.holders.store(gate.holders.len(), SeqCst);
    }

    /// Takes a batch back that is held back; whether it was.
    pub(crate) fn withdraw(&self, batch: &Arc<Batch>, reason: impl FnOnce(&Wait) -> Error) -> bool {
        let mut gate = self.sessions().admission.gate.lock();
        let Some(at) = gate.held.iter().position(|held| Arc::ptr_eq(&held.trial.batch, batch)) else {
            return false;
        };
        let held = gate.held.remove(at);
        drop(gate);
        held.trial.batch.fail(reason(&held.wait), self.foundation().clock.monotonic_ns());
        true
    }
}

/// A batch that is to be admitted, since when.
struct Trial {
    batch: Arc<Batch>,
    owner: Arc<Owner>,
    recall: Option<Arc<Recall>>,
    /// The one term in which it may be agreed on, if it is of a certain one.
    term: Option<u64>,
    since: Instant,
}

/// The error of a call that nobody waits for any more.
fn given_up() -> Error {
    Error::new(SqlState::CANCELED, "gave up waiting for a lock")
}
