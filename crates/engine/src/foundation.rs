//! What every engine stands on: definitions, log, clock, snapshots, and completion of batches.

use crate::checkpoint::State;
use crate::entry::{self, Entries};
use crate::idempotency::{KeyWindow, Keys};
use crate::{Batch, Counters, Procedure};
use fabius_env::sync::Mutex;
use fabius_env::{Clock, ForwardClock, schedule};
use fabius_log::Log;
use fabius_program::catalog::{Catalog, ProcedureId};
use fabius_program::shelf::Shelf;
use fabius_program::syntax::tree::{Dropped, Name};
use fabius_program::{syntax, verify};
use fabius_storage::{Table, snapshot::Claim, snapshot::Snapshot, snapshot::Snapshots};
use fabius_value::{Error, Result, Seq, SqlState, TableId};
use parking_lot::RwLock;
use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Release},
};
use std::sync::{Arc, OnceLock};

/// The definitions in force at some point, with what stands behind them. Numbers index the lists;
/// lists only grow, so a number means the same in every later version. Where a table was dropped, one
/// without rows stands that nobody names; where a procedure was, one that says so.
#[derive(Clone, Default)]
pub struct Definitions {
    /// Names and schemas.
    pub catalog: Arc<Catalog>,
    /// By table number.
    pub tables: Vec<Arc<Table>>,
    /// By procedure number.
    pub procedures: Shelf<Arc<Procedure>>,
    /// How far back idempotency keys are remembered.
    pub key_window: KeyWindow,
    /// The log's entries that have made all of this, in order, with their seqs. Of a procedure that was
    /// dropped only the name is left.
    pub entries: Shelf<(Seq, Arc<[u8]>)>,
    /// By procedure number: the entry that defines it and nothing else.
    own_entries: Shelf<Option<usize>>,
}

impl Definitions {
    /// The seq of the newest of them.
    pub fn last_seq(&self) -> Seq {
        let last = self.entries.len().checked_sub(1).and_then(|last| self.entries.get(last));
        last.map_or(Seq::ZERO, |(seq, _)| *seq)
    }

    /// The procedure with this number.
    ///
    /// # Errors
    /// `42883` if there is none, or it was dropped; `42P01` if a table that it names was.
    pub fn procedure(&self, procedure: ProcedureId) -> Result<&Arc<Procedure>> {
        let found = self.procedures.get(procedure.0 as usize).ok_or_else(|| {
            Error::new(SqlState::UNDEFINED_FUNCTION, format!("there is no procedure number {}", procedure.0))
        })?;
        match &found.gone {
            None => Ok(found),
            Some(reason) => Err(reason.clone()),
        }
    }

    /// Checks that a procedure, which may be one of no number, can run under these definitions.
    ///
    /// # Errors
    /// `42P01` if a table that it names was dropped.
    pub fn admit(&self, procedure: &Procedure) -> Result<()> {
        match procedure.program.rows.iter().find(|row| self.catalog.is_dropped(row.table)) {
            None => Ok(()),
            Some(row) => Err(table_gone(&self.catalog.table(row.table).name)),
        }
    }

    /// The table with this number.
    #[inline]
    pub fn table(&self, table: TableId) -> &Arc<Table> {
        &self.tables[table.0 as usize]
    }

    /// These definitions and what the log's entry at `seq` adds, which is not one of calls.
    ///
    /// # Errors
    /// What the parser and the verifier find wrong; `XX001` if it is no such entry.
    pub fn with(&self, seq: Seq, entry: &[u8]) -> Result<Definitions> {
        let mut next = self.clone();
        match entry::decode(entry)? {
            Entries::Definition(text) => next.define(text)?,
            Entries::KeyWindow(calls) => next.key_window = self.key_window.changed(seq, calls),
            Entries::Nothing | Entries::Checkpoint => return Ok(next),
            Entries::Calls { .. } => {
                return Err(Error::new(SqlState::DATA_CORRUPTED, "calls where a definition should be"));
            }
        }
        next.entries.push((seq, entry.into()));
        Ok(next)
    }

    /// Leaves a procedure's number, and the reason why there is no more of it.
    fn forget(&mut self, procedure: ProcedureId, reason: Error) -> Result<()> {
        let gone = Procedure::gone(procedure, reason, &self.catalog)?;
        self.procedures.set(procedure.0 as usize, Arc::new(gone));
        Ok(())
    }

    /// Leaves no more than the name in the entry that defines a procedure, which another entry drops.
    fn empty_entry(&mut self, procedure: ProcedureId, name: &Name) {
        let place = self.own_entries.get(procedure.0 as usize).copied().flatten();
        if let Some((place, seq)) = place.and_then(|place| Some((place, self.entries.get(place)?.0))) {
            let nothing = entry::encode_definition(&format!("procedure {name}() {{ }}"));
            self.entries.set(place, (seq, nothing.into()));
        }
    }

    /// Whether an entry drops a table: then nothing may be left to do in any.
    pub fn drops_table(entry: &[u8]) -> bool {
        let Ok(Entries::Definition(text)) = entry::decode(entry) else { return false };
        let Ok(definitions) = syntax::parse(text, "definition") else { return false };
        definitions.iter().any(
            |definition| matches!(definition, syntax::Definition::Drop(drop) if drop.what == Dropped::Table),
        )
    }

    fn define(&mut self, text: &str) -> Result<()> {
        let definitions = syntax::parse(text, "definition")?;
        let own_entry = (definitions.len() == 1).then_some(self.entries.len());
        for definition in definitions {
            match definition {
                syntax::Definition::Table(table) => {
                    let schema = verify::table(&table, &self.catalog)?;
                    let (catalog, id) = self.catalog.with_table(schema)?;
                    self.tables.push(Arc::new(Table::new(id, catalog.table(id).clone())));
                    self.catalog = Arc::new(catalog);
                }
                syntax::Definition::Procedure(procedure) => {
                    let program = verify::procedure(&procedure, &self.catalog)?;
                    let (catalog, id) = self.catalog.with_procedure(program);
                    let program = catalog.procedure(id).expect("just defined").clone();
                    self.procedures.push(Arc::new(Procedure::new(id, program, &catalog)?));
                    self.own_entries.push(own_entry);
                    self.catalog = Arc::new(catalog);
                }
                syntax::Definition::Drop(drop) => match drop.what {
                    Dropped::Table => {
                        let (catalog, id, gone) = self.catalog.without_table(&drop.name.text)?;
                        self.tables[id.0 as usize] = Arc::new(Table::new(id, catalog.table(id).clone()));
                        self.catalog = Arc::new(catalog);
                        for procedure in gone {
                            self.forget(procedure, table_gone(&drop.name.text))?;
                        }
                    }
                    Dropped::Procedure => {
                        let (catalog, id) = self.catalog.without_procedure(&drop.name.text)?;
                        self.catalog = Arc::new(catalog);
                        self.empty_entry(id, &drop.name);
                        let message = format!("procedure {} was dropped", drop.name.text);
                        self.forget(id, Error::new(SqlState::UNDEFINED_FUNCTION, message))?;
                    }
                },
            }
        }
        Ok(())
    }
}

fn table_gone(name: &str) -> Error {
    Error::new(SqlState::UNDEFINED_TABLE, format!("table {name} was dropped"))
}

/// What times are told apart: all of one such span have one state.
const SPAN_US: i64 = 2_000;

/// Where calls of another time begin: the first of each span that any call is of, and its number; oldest first.
#[derive(Default)]
struct Times(VecDeque<(i64, Seq)>);

impl Times {
    fn note(&mut self, time_us: i64, first: Seq) {
        let span = time_us.div_euclid(SPAN_US);
        if self.0.back().is_none_or(|(last, _)| *last < span) {
            self.0.push_back((span, first));
        }
    }

    /// The seq before the first call of a later span; `None` if there is none yet.
    fn behind(&self, time_us: i64) -> Option<Seq> {
        let span = time_us.div_euclid(SPAN_US);
        let after = self.0.partition_point(|(noted, _)| *noted <= span);
        self.0.get(after).map(|(_, first)| first.before())
    }

    fn forget(&mut self, before: Seq) {
        while self.0.front().is_some_and(|(_, first)| *first < before) {
            self.0.pop_front();
        }
    }
}

/// Definitions of the past, each with the seq from which others were in force; oldest first.
type Replaced = VecDeque<(Seq, Arc<Definitions>)>;

/// What every engine stands on.
pub struct Foundation {
    /// Time for `now()` and for measuring: never before that of a call that has been ordered.
    pub clock: ForwardClock,
    /// The input log; `None` keeps nothing (tests, and replay before the log is attached).
    log: OnceLock<Arc<Log>>,
    /// Whether batches wait for the log before they are complete.
    waits_for_log: std::sync::atomic::AtomicBool,
    /// Who reads at which seq.
    pub snapshots: Snapshots,
    /// What has been done so far.
    pub counters: Counters,
    /// First outcomes by idempotency key.
    pub keys: Mutex<Keys>,
    definitions: RwLock<Arc<Definitions>>,
    /// Only if they are kept.
    replaced: parking_lot::Mutex<Option<Replaced>>,
    /// Calls that readers see together or not at all, first and last, if they are kept.
    together: parking_lot::Mutex<Option<BTreeMap<Seq, Seq>>>,
    /// Where calls of another time begin, if that is kept.
    times: parking_lot::Mutex<Option<Times>>,
    promised: AtomicU64,
    unlogged: parking_lot::Mutex<VecDeque<(Seq, Arc<Batch>)>>,
    /// Why the engine has stopped for good, if it has.
    failure: OnceLock<Error>,
}

impl Foundation {
    /// A foundation without definitions or log.
    pub fn new(clock: Arc<dyn Clock>) -> Foundation {
        Foundation {
            clock: ForwardClock::over(clock),
            log: OnceLock::new(),
            waits_for_log: false.into(),
            snapshots: Snapshots::default(),
            counters: Counters::default(),
            keys: Mutex::default(),
            definitions: RwLock::default(),
            replaced: parking_lot::Mutex::default(),
            together: parking_lot::Mutex::default(),
            times: parking_lot::Mutex::default(),
            promised: AtomicU64::new(0),
            unlogged: parking_lot::Mutex::default(),
            failure: OnceLock::new(),
        }
    }

    /// Stops the engine for good: from now on nothing is logged, so that no call ends well. The first reason stays.
    pub fn fail(&self, reason: Error) {
        // The first reason stays.
        let _ = self.failure.set(reason);
    }

    /// Why the engine has stopped for good, if it has.
    #[inline]
    pub fn failure(&self) -> Option<&Error> {
        self.failure.get()
    }

    /// Why the engine has stopped, for whoever has met what a panic has left behind: it may be about to stop.
    pub fn why_stopped(&self) -> Error {
        schedule::wait_until("stopped", || self.failure().is_some());
        self.failure().expect("waited for").clone()
    }

    /// Does some work for which others may wait. If it panics, the engine stops before the panic goes on: whatever the
    /// work has left halfway done, nobody goes on from there.
    pub fn watched<R>(&self, work: impl FnOnce() -> R) -> R {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(result) => result,
            Err(panic) => {
                self.fail(panicked(&*panic));
                resume_unwind(panic)
            }
        }
    }

    /// Watches the outermost work of a thread, whose caller goes on: gives `stopped` in its place after a panic. A
    /// simulation is told of a panic by the panic.
    pub fn contained<R>(&self, stopped: R, work: impl FnOnce() -> R) -> R {
        if schedule::is_simulated() {
            return self.watched(work);
        }
        catch_unwind(AssertUnwindSafe(|| self.watched(work))).unwrap_or(stopped)
    }

    /// Watches work whose caller is told what has become of it: after a panic, why the engine has stopped.
    ///
    /// # Errors
    /// Those of the work, and that.
    pub fn attempt<R>(&self, work: impl FnOnce() -> Result<R>) -> Result<R> {
        let done = self.contained(None, || Some(work()));
        done.unwrap_or_else(|| Err(self.why_stopped()))
    }

    /// The definitions in force.
    pub fn definitions(&self) -> Arc<Definitions> {
        self.definitions.read().clone()
    }

    /// Puts new definitions in force; the engine calls this at their place in the order.
    pub fn set_definitions(&self, definitions: Arc<Definitions>) {
        let from = definitions.last_seq();
        let mut in_force = self.definitions.write();
        let before = std::mem::replace(&mut *in_force, definitions);
        // Whoever sees the new ones finds the old ones kept.
        if let Some(replaced) = &mut *self.replaced.lock() {
            replaced.push_back((from, before));
            return;
        }
        // Outside of the lock: with them may go the rows of a table that was dropped.
        drop(in_force);
        drop(before);
    }

    /// Keeps what reading at a seq of the past takes besides a snapshot, from now on: definitions that are replaced,
    /// and which calls are seen together.
    pub fn keep_past(&self) {
        self.replaced.lock().get_or_insert_default();
        self.together.lock().get_or_insert_default();
    }

    /// Says that readers see these calls together or not at all, because what one of them has written may stand in the
    /// place of what another one has. To be called before they are promised.
    pub fn see_together(&self, first: Seq, last: Seq) {
        if first < last
            && let Some(together) = &mut *self.together.lock()
        {
            together.insert(first, last);
        }
    }

    /// The first and the last of the calls that are seen together with the one at a seq and some behind it; `None` if
    /// what was then can be read at that seq.
    pub fn seen_together(&self, seq: Seq) -> Option<(Seq, Seq)> {
        let together = self.together.lock();
        let (first, last) = together.as_ref()?.range(..=seq).next_back()?;
        (seq < *last).then_some((*first, *last))
    }

    /// The definitions that were in force at a seq, if they are kept from there on.
    pub fn definitions_at(&self, seq: Seq) -> Arc<Definitions> {
        let in_force = self.definitions();
        let replaced = self.replaced.lock();
        let later = replaced.iter().flatten().find(|(until, _)| *until > seq);
        later.map_or(in_force, |(_, definitions)| definitions.clone())
    }

    /// Keeps from now on at which seqs time went on, for calls that are agreed on: by them every node finds the same
    /// state at a time.
    pub fn keep_times(&self) {
        self.times.lock().get_or_insert_default();
    }

    /// Calls of this time follow, from a seq on.
    pub fn note_time(&self, time_us: i64, first: Seq) {
        if let Some(times) = &mut *self.times.lock() {
            times.note(time_us, first);
        }
    }

    /// The last seq of all calls of a time and before, to some milliseconds; `None` if that is not kept.
    pub fn seq_at_time(&self, time_us: i64) -> Option<Seq> {
        let times = self.times.lock();
        Some(times.as_ref()?.behind(time_us).unwrap_or_else(|| self.promised()))
    }

    /// Lets go of what was kept for reading before a seq.
    pub fn forget_past(&self, before: Seq) {
        if let Some(times) = &mut *self.times.lock() {
            times.forget(before);
        }
        if let Some(together) = &mut *self.together.lock() {
            while let Some(oldest) = together.first_entry().filter(|oldest| *oldest.get() < before) {
                oldest.remove();
            }
        }
        let mut gone = Vec::new();
        if let Some(replaced) = &mut *self.replaced.lock() {
            while let Some(oldest) = replaced.pop_front_if(|(until, _)| *until <= before) {
                gone.push(oldest);
            }
        }
    }

    /// Begins with the state of a checkpoint; the engine calls this before anything else.
    pub fn restore(&self, state: State) {
        self.clock.has_been(state.time_us);
        *self.keys.lock() = state.keys;
        self.set_definitions(Arc::new(state.definitions));
        self.set_promised(state.seq);
    }

    /// Starts to log. With `waits`, batches are complete only once the log says they are durable.
    ///
    /// # Panics
    /// If there is a log already.
    pub fn attach_log(self: &Arc<Self>, log: Arc<Log>, waits: bool) {
        if waits {
            let foundation = Arc::downgrade(self);
            log.on_durable(move |durable| {
                let Some(foundation) = foundation.upgrade() else { return };
                match durable {
                    Ok(seq) => foundation.complete_logged(Seq(seq)),
                    Err(error) => foundation.fail_unlogged(&log_error(error)),
                }
            });
        }
        self.waits_for_log.store(waits, Release);
        assert!(self.log.set(log).is_ok(), "a database has one log");
    }

    /// The log, if there is one.
    pub fn log(&self) -> Option<Arc<Log>> {
        self.log.get().cloned()
    }

    /// Appends a batch of entries to the log.
    ///
    /// # Errors
    /// What ended the log, or stopped the engine.
    pub fn append(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        if let Some(failure) = self.failure() {
            return Err(failure.clone());
        }
        if let Some(log) = self.log.get() {
            log.append(first_seq.0, count, payload).map_err(|error| log_error(&error))?;
            self.counters.log_bytes.add(payload.len() as u64);
        }
        Ok(())
    }

    /// Waits until so many bytes can be appended by this thread without waiting.
    ///
    /// # Errors
    /// What ended the log, or stopped the engine; or that the log takes no batch of that size.
    pub fn make_room(&self, payload_bytes: usize) -> Result<()> {
        if let Some(failure) = self.failure() {
            return Err(failure.clone());
        }
        self.log.get().map_or(Ok(()), |log| log.make_room(payload_bytes).map_err(|error| log_error(&error)))
    }

    /// Appends a batch of entries at the place that its seq says, without waiting, where others append theirs at the
    /// same time. Nothing behind it becomes durable before it.
    ///
    /// # Errors
    /// What ended the log. Then the engine has stopped: there is a place in the order that nobody fills.
    pub fn append_at(&self, first_seq: Seq, count: u32, payload: &[u8]) -> Result<()> {
        let Some(log) = self.log.get() else { return Ok(()) };
        if let Err(error) = log.append_at(first_seq.0, count, payload) {
            let failure = log_error(&error);
            self.fail(failure.clone());
            return Err(failure);
        }
        self.counters.log_bytes.add(payload.len() as u64);
        Ok(())
    }

    /// Every call at or below this seq is decided, and readers may see it.
    #[inline]
    pub fn promised(&self) -> Seq {
        Seq(self.promised.load(Acquire))
    }

    /// Begins to read at the newest promised seq.
    pub fn begin_snapshot(&self) -> Snapshot<'_> {
        self.snapshots.begin(|| {
            let promised = self.promised();
            schedule::point("snapshot");
            promised
        })
    }

    /// A snapshot for as long as the owner likes.
    pub fn hold_snapshot(self: &Arc<Self>) -> HeldSnapshot {
        HeldSnapshot { foundation: self.clone(), claim: Some(self.begin_snapshot().into_claim()) }
    }

    /// Moves `promised` up.
    pub fn set_promised(&self, seq: Seq) {
        self.promised.store(seq.0, Release);
    }

    /// Moves `promised` up to `seq` unless it is there already (several committers).
    pub fn raise_promised(&self, seq: Seq) {
        self.promised.fetch_max(seq.0, Release);
    }

    /// Completes a decided batch whose last call has `last`: at once, or when the log is that far.
    pub fn decided(&self, last: Seq, batch: Arc<Batch>) {
        batch.decide();
        if self.is_durable(last) {
            batch.complete(self.clock.monotonic_ns());
            return;
        }
        schedule::point("decided");
        self.unlogged.lock().push_back((last, batch));
        // The log may have become durable before the batch was in the queue, or failed.
        if let Some(log) = self.log() {
            match log.failure() {
                Some(error) => self.fail_unlogged(&log_error(&error)),
                None => self.complete_logged(Seq(log.durable_seq())),
            }
        }
    }

    /// Whether callers may be told of what has this seq.
    pub fn is_durable(&self, seq: Seq) -> bool {
        if !self.waits_for_log.load(Acquire) {
            return true;
        }
        self.log.get().is_none_or(|log| log.durable_seq() >= seq.0)
    }

    /// Waits until callers may be told of what has this seq.
    ///
    /// # Errors
    /// What ended the log.
    pub fn wait_durable(&self, seq: Seq) -> Result<()> {
        if self.is_durable(seq) {
            return Ok(());
        }
        match self.log() {
            Some(log) => log.wait_durable(seq.0).map_err(|error| log_error(&error)),
            None => Ok(()),
        }
    }

    fn complete_logged(&self, durable: Seq) {
        let now = self.clock.monotonic_ns();
        let mut unlogged = self.unlogged.lock();
        // Engines with several committers queue slightly out of order, so look past the front.
        while let Some((last, _)) = unlogged.front() {
            if *last > durable {
                break;
            }
            let (_, batch) = unlogged.pop_front().expect("there is a front");
            batch.complete(now);
        }
        if unlogged.iter().any(|(last, _)| *last <= durable) {
            unlogged.retain(|(last, batch)| {
                let is_open = *last > durable;
                if !is_open {
                    batch.complete(now);
                }
                is_open
            });
        }
    }

    fn fail_unlogged(&self, error: &Error) {
        let now = self.clock.monotonic_ns();
        self.unlogged.lock().drain(..).for_each(|(_, batch)| batch.fail(error.clone(), now));
    }
}

/// A snapshot that keeps what it stands on: for readers that outlive a function.
pub struct HeldSnapshot {
    foundation: Arc<Foundation>,
    claim: Option<Claim>,
}

impl HeldSnapshot {
    /// The seq that this reader sees.
    pub fn seq(&self) -> Seq {
        self.claim.as_ref().map_or(Seq::default(), Claim::seq)
    }

    /// Whether it is one of this foundation.
    pub fn is_of(&self, foundation: &Foundation) -> bool {
        std::ptr::eq(&*self.foundation, foundation)
    }
}

impl HeldSnapshot {
    /// One at a later seq, which is promised. This one keeps what it reads until it has begun.
    ///
    /// # Panics
    /// If the seq is below this one's.
    pub fn at(&self, seq: Seq) -> HeldSnapshot {
        let under = self.claim.as_ref().expect("it is held until it is dropped");
        let claim = self.foundation.snapshots.claim_under(under, seq);
        HeldSnapshot { foundation: self.foundation.clone(), claim: Some(claim) }
    }
}

impl Drop for HeldSnapshot {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            self.foundation.snapshots.end(claim);
        }
    }
}

/// A thread's panic as the user meets it who waits for what the thread did.
pub fn panicked(panic: &(dyn Any + Send)) -> Error {
    let said = panic.downcast_ref::<&str>().map(|text| text.to_string());
    let said = said.or_else(|| panic.downcast_ref::<String>().cloned());
    Error::new(SqlState::INTERNAL, "the database has stopped: a thread that ran calls has panicked")
        .with_detail(said.unwrap_or_else(|| "it has not said why".into()))
        .with_hint(
            "this is an error of Fabius, please report it; open the database again to go on from its log",
        )
}

/// A log's error as the user meets it.
pub fn log_error(error: &fabius_log::LogError) -> Error {
    let state = error.sqlstate().as_bytes().try_into().map_or(SqlState::IO_ERROR, SqlState);
    let offset = error.offset().map(|offset| format!(", offset {offset}")).unwrap_or_default();
    let details = [
        error.segment().map(|segment| format!("segment {segment}{offset}")),
        error.last_good_seq().map(|seq| format!("good up to sequence number {seq}")),
        std::error::Error::source(error).map(ToString::to_string),
    ];
    let mut result = Error::new(state, error.fact());
    let details: Vec<String> = details.into_iter().flatten().collect();
    if !details.is_empty() {
        result = result.with_detail(details.join("; "));
    }
    match error.hint() {
        Some(hint) => result.with_hint(hint),
        None => result,
    }
}
