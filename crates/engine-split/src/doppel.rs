//! The protocol: joined and split phases, and when one gives way to the other.
//!
//! ```text
//!          records are worth splitting, nothing stashed is left, calls wait
//!        +---------------------------------------------------------------+
//!        |                                                               v
//!   joined phase                                                    split phase
//!        ^                                                               |
//!        +---------------------------------------------------------------+
//!          t > 10 ms, or stashed > 100,000, or nothing is left to begin
//! ```
//!
//! Doppel's rule is `(stashed > 0 and t > 10 ms) or stashed > 100,000`: a phase lasts as long as nobody waits for its
//! end. Here whoever has called does, stashed or not, because answers are held back until then.
//!
//! Whoever has a thread to lend and finds a change due makes it, alone, while no call runs; so a phase is the
//! same for all calls of a turn. Cores hear that a split phase ends between two calls, end their turn, and reconcile
//! their own slices; the rest is done by whoever makes the change.

use crate::phase::SplitPhase;
use crate::sample::{Candidate, Samples};
use crate::slice::Slice;
use crossbeam_utils::CachePadded;
use fabius_engine::eager::control::Waiting;
use fabius_engine::eager::optimistic::{ATTEMPTS_MAX, word};
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::shared::Shared;
use fabius_engine::eager::slots::Slots;
use fabius_program::slice::operation::TableOperations;
use fabius_storage::Record;
use fabius_value::TableId;
use parking_lot::{Mutex, MutexGuard};
use std::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// When to split, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// So many conflicts of calls that could commute make a record worth splitting,
    pub conflicts_min: u32,
    /// if they come within so many calls: where conflicts are rarer, phases cost more than splitting saves.
    pub sample_calls: u64,
    /// Besides, they are at least so many for 100 conflicts of other calls on it.
    pub impact_percent: u32,
    /// Fewer operations than this in a phase, and the record is split no more.
    pub applied_min: u64,
    /// A split phase ends after so many milliseconds.
    pub phase_ms_max: u64,
    /// It ends when so many calls are stashed.
    pub stashed_max: usize,
    /// A call that was refused so often for a conflict runs alone.
    pub attempts_max: u32,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            conflicts_min: 64,
            sample_calls: 200_000,
            impact_percent: 50,
            applied_min: 32,
            phase_ms_max: 10,
            stashed_max: 100_000,
            attempts_max: ATTEMPTS_MAX,
        }
    }
}

impl Policy {
    /// Whether a record stays split to which this was done in a phase. Phases are short where callers wait for the
    /// answers to few calls: then they cost more than the few operations save that fit into one.
    fn keeps(&self, done: &Slice) -> bool {
        done.applied >= self.applied_min
            && done.applied * 100 >= done.stashed * u64::from(self.impact_percent)
    }
}

/// Doppel's phases.
pub struct Doppel {
    pub(crate) policy: Policy,
    /// That of the policy, until it is set.
    phase_ms_max: AtomicU64,
    slots: Slots,
    /// The split phase; null in a joined phase. Changes while no call runs.
    phase: AtomicPtr<SplitPhase>,
    /// When it began, on the monotonic clock.
    since_ns: AtomicU64,
    is_ending: AtomicBool,
    /// By thread; empty unless the thread runs calls in a split phase.
    slices: Box<[CachePadded<Mutex<Vec<Slice>>>]>,
    /// Above the number of every thread that has run calls in a split phase: the others' slices are empty.
    cores: AtomicUsize,
    samples: Mutex<Samples>,
    /// Calls since they began.
    sampled_calls: CachePadded<AtomicU64>,
    /// What to split in the next split phase, besides what samples show.
    kept: Mutex<Vec<Candidate>>,
    wants_split: AtomicBool,
}

impl Doppel {
    /// A joined phase, with nothing known.
    pub fn new(policy: Policy) -> Doppel {
        Doppel {
            policy,
            phase_ms_max: policy.phase_ms_max.into(),
            slots: Slots::new(word::SLOTS_MAX),
            phase: AtomicPtr::default(),
            since_ns: AtomicU64::new(0),
            is_ending: AtomicBool::default(),
            slices: (0..word::SLOTS_MAX).map(|_| CachePadded::default()).collect(),
            cores: AtomicUsize::new(0),
            samples: Mutex::default(),
            sampled_calls: CachePadded::default(),
            kept: Mutex::default(),
            wants_split: AtomicBool::default(),
        }
    }

    /// Sets how long split phases are from now on, at most.
    pub fn set_phase_ms_max(&self, ms: u64) {
        self.phase_ms_max.store(ms, Release);
    }

    /// The split phase that is now, if it is one; for calls of the turn that runs, and under the gate.
    pub(crate) fn phase(&self) -> Option<&SplitPhase> {
        // SAFETY: freed only by `end_split_phase`, while no call runs and nobody else is under the gate.
        unsafe { self.phase.load(Acquire).as_ref() }
    }

    /// Whether cores should come to the end of the split phase although calls are left to begin.
    #[inline]
    pub(crate) fn is_ending(&self) -> bool {
        self.is_ending.load(Acquire)
    }

    /// The slices of a core, as the turn before has left them in this phase.
    pub(crate) fn begin_turn(&self, phase: Option<&SplitPhase>, core: usize) -> MutexGuard<'_, Vec<Slice>> {
        let mut slices = self.slices[core].lock();
        if let Some(phase) = phase
            && slices.is_empty()
        {
            *slices = phase.slices();
            self.cores.fetch_max(core + 1, Relaxed);
        }
        slices
    }

    /// A core's turn is over: if it has heard that the phase ends, it reconciles its slices.
    pub(crate) fn end_turn(&self, phase: &SplitPhase, core: usize, slices: &mut [Slice]) {
        if self.is_ending() {
            phase.merge(core, slices);
        }
    }

    /// A call was refused for a record.
    pub(crate) fn sample(&self, table: TableId, record: &Record, does: Option<&TableOperations>) {
        let conflicts = self.samples.lock().conflict(table, record, does);
        if conflicts >= self.policy.conflicts_min {
            self.wants_split.store(true, Release);
        }
    }

    /// A core has run so many calls; after a while sampling begins anew, with what is contended then.
    pub(crate) fn count(&self, calls: u64) {
        if self.sampled_calls.fetch_add(calls, Relaxed) + calls >= self.policy.sample_calls {
            self.sampled_calls.store(0, Relaxed);
            self.samples.lock().forget();
        }
    }

    pub(crate) fn begin_split_phase(&self, schema: &Schema, now_ns: u64) {
        let mut candidates = std::mem::take(&mut *self.kept.lock());
        let mut samples = self.samples.lock();
        for hot in samples.take(self.policy.conflicts_min, self.policy.impact_percent) {
            if candidates.iter().all(|known| known.name != hot.name) {
                candidates.push(hot);
            }
        }
        self.wants_split.store(false, Release);
        if let Some(phase) = SplitPhase::begin(&candidates, schema) {
            self.since_ns.store(now_ns, Release);
            // Whoever asked for the end of the last phase may have come late.
            self.is_ending.store(false, Release);
            self.phase.store(Box::into_raw(Box::new(phase)), Release);
        }
    }

    pub(crate) fn end_split_phase(&self, shared: &Shared) {
        let phase = self.phase.swap(std::ptr::null_mut(), Release);
        // SAFETY: made by `begin_split_phase`; nobody looks at it any more.
        let phase = unsafe { Box::from_raw(phase) };
        // Turns that have raised it were under the gate.
        let cores = self.cores.load(Relaxed);
        for (core, slices) in self.slices[..cores].iter().enumerate() {
            let mut slices = slices.lock();
            phase.merge(core, &mut slices);
            slices.clear();
        }
        // No call runs, so everything up to here is in its place but for what was split, and nobody has read
        // that: it becomes true at once.
        let last = shared.sequencer.issued();
        let ended = phase.reconcile(last, shared.collect());
        shared.foundation.see_together(shared.foundation.promised().next(), last);
        shared.foundation.raise_promised(last);
        let staying = ended.iter().filter(|(_, done)| self.policy.keeps(done));
        *self.kept.lock() = staying.map(|(record, _)| record.candidate()).collect();
        self.is_ending.store(false, Release);
        if !self.kept.lock().is_empty() {
            self.wants_split.store(true, Release);
        }
    }
}

impl Doppel {
    /// The places of threads that run calls.
    pub(crate) fn slots(&self) -> &Slots {
        &self.slots
    }

    /// Whether this is a split phase.
    pub(crate) fn is_split(&self) -> bool {
        !self.phase.load(Acquire).is_null()
    }

    /// Whether another phase is to begin.
    pub(crate) fn is_change_due(&self, waiting: &Waiting, now_ns: u64) -> bool {
        if !self.is_split() {
            return !waiting.is_idle && waiting.resumed == 0 && self.wants_split.load(Acquire);
        }
        let ms = now_ns.saturating_sub(self.since_ns.load(Acquire)) / 1_000_000;
        if ms >= self.phase_ms_max.load(Acquire) || waiting.put_off > self.policy.stashed_max {
            self.is_ending.store(true, Release);
        }
        waiting.is_idle || self.is_ending()
    }
}

impl Drop for Doppel {
    fn drop(&mut self) {
        let phase = *self.phase.get_mut();
        if !phase.is_null() {
            // SAFETY: made by `begin_split_phase`, and nobody has it any more.
            drop(unsafe { Box::from_raw(phase) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SplitEngine;
    use fabius_engine::eager::Protocol;
    use fabius_engine::eager::Runner;
    use fabius_engine::{Batch, BatchBuilder, Standpoint};
    use fabius_env::Fault;
    use fabius_testing::rig::{Make, Rig};
    use fabius_value::{Datum, Key, Seq, SqlState, Value};
    use std::panic::AssertUnwindSafe;
    use std::sync::{Arc, OnceLock};

    const PROGRAMS: &str = "
        table counters { id: int, total: bigint, product: bigint, primary key (id) }
        procedure open(id: int) { insert counters { id: id, total: 0, product: 1 } }
        procedure add(id: int, n: bigint) { counters[id].total += n }
        procedure grow(id: int, n: bigint) { counters[id].product *= n }
        procedure grow_and_count(id: int, n: bigint) {
            counters[id].product *= n
            counters[1].total += 1
        }
        procedure see(id: int) -> bigint { return counters[id].total }
    ";
    const MS: u64 = 1_000_000;
    /// When the first phase begins.
    const BEGIN_NS: u64 = 5 * MS;

    /// Counters 0 and 1, whose phases a test changes.
    struct Counters {
        engine: Arc<SplitEngine>,
        rig: Rig,
    }

    impl Counters {
        fn new(policy: Policy) -> Counters {
            Counters::on(&Rig::new, policy)
        }

        fn on(open: &dyn Fn(Make<'_>) -> Rig, policy: Policy) -> Counters {
            let made = AssertUnwindSafe(OnceLock::new());
            let make = |foundation| Arc::new(crate::with_policy(foundation, policy));
            let rig = open(&|foundation| made.get_or_init(|| make(foundation)).clone());
            rig.define(PROGRAMS);
            (0..2).for_each(|id| drop(rig.call("open", &[Value::Int(id)]).expect("it is new")));
            Counters { engine: made.get().expect("it was made").clone(), rig }
        }

        fn doppel(&self) -> &Doppel {
            self.engine.protocol()
        }

        fn with_record<R>(&self, id: i64, look: impl FnOnce(TableId, &Record) -> R) -> R {
            let definitions = self.rig.foundation.definitions();
            let id_of_table = definitions.catalog.find_table("counters").expect("it was defined");
            let (guard, mut key) = (crossbeam_epoch::pin(), Key::new());
            let table = definitions.table(id_of_table);
            table.encode_key(&[Datum::Int(id)], &mut key).expect("a short key");
            look(id_of_table, table.find(&key, &guard).expect("the counter is open"))
        }

        /// So many calls that add to a counter are refused for it.
        fn conflict(&self, id: i64, count: u32) {
            self.conflict_of("add", id, count);
        }

        /// So many calls of a procedure are refused for a counter.
        fn conflict_of(&self, name: &str, id: i64, count: u32) {
            let schema = self.engine.ground().gate.read();
            let plan = schema.plan(self.rig.procedure(name).id.0 as usize);
            self.with_record(id, |table, record| {
                let does = plan.operations.iter().find(|operations| operations.table == table);
                (0..count).for_each(|_| self.doppel().sample(table, record, does));
            });
        }

        /// Counters that are split.
        fn split(&self) -> Vec<i64> {
            let is_split =
                |id: &i64| self.with_record(*id, |_, record| word::split_place(record.lock()).is_some());
            (0..2).filter(is_split).collect()
        }

        /// A core adds one to the split record of this place, so often.
        fn add(&self, place: usize, count: u64) {
            let doppel = self.doppel();
            let phase = doppel.phase().expect("a split phase");
            let mut slices = doppel.begin_turn(Some(phase), 7);
            for _ in 0..count {
                let operands = [(0, Datum::Int(1))].into_iter();
                assert!(slices[place].apply_within_room(operands, &phase.records[place].rooms, Seq::ZERO));
            }
        }

        fn is_due(&self, put_off: usize, resumed: usize, is_idle: bool, now_ns: u64) -> bool {
            self.doppel().is_phase_due(&Waiting { put_off, resumed, is_idle }, now_ns)
        }

        fn change_phase(&self, now_ns: u64) {
            let ground = self.engine.ground();
            self.doppel().change_phase(&ground.shared, &ground.gate.write(), now_ns);
        }
    }

    /// Counters whose log is written through, the first of which the next phase is going to split; phases last until
    /// nothing is left to begin.
    fn contended() -> Counters {
        contended_by("add")
    }

    /// Counters as [`contended`] makes them, split for the sake of calls of another procedure.
    fn contended_by(name: &str) -> Counters {
        let policy = Policy { conflicts_min: 1, phase_ms_max: 1000, ..Policy::default() };
        let counters = Counters::on(&Rig::writing_through, policy);
        counters.conflict_of(name, 0, 1);
        counters
    }

    fn adds(rig: &Rig, calls: u32) -> Arc<Batch> {
        calls_with(rig, "add", std::iter::repeat_n(1, calls as usize))
    }

    /// Calls of a procedure on counter 0, with these operands.
    fn calls_with(rig: &Rig, name: &str, operands: impl Iterator<Item = i64>) -> Arc<Batch> {
        let mut batch = BatchBuilder::new();
        operands.for_each(|n| _ = rig.push(&mut batch, name, &[Value::Int(0), Value::BigInt(n)], None));
        batch.build()
    }

    /// Goal: a split phase begins if a record has become worth splitting, calls wait, and none of those is left that
    /// were stashed in the phase before.
    #[test]
    fn a_split_phase_begins_when_it_is_worth_while() {
        let counters = Counters::new(Policy::default());
        let min = counters.doppel().policy.conflicts_min;
        counters.conflict(0, min - 1);
        assert!(!counters.is_due(0, 0, false, BEGIN_NS));
        counters.conflict(0, 1);
        assert!(counters.is_due(0, 0, false, BEGIN_NS));
        assert!(!counters.is_due(0, 0, true, BEGIN_NS), "nobody waits");
        assert!(!counters.is_due(0, 1, false, BEGIN_NS), "one that was stashed is left");
        counters.change_phase(BEGIN_NS);
        assert!(counters.doppel().holds_back());
        assert_eq!(counters.split(), [0]);
    }

    /// Goal: a split phase ends after its time, stashed calls or not, or when too many are stashed, or when nothing is
    /// left to begin; once it is due it stays so until it is over.
    #[test]
    fn a_split_phase_ends_by_the_rule() {
        let counters = Counters::new(Policy { stashed_max: 3, ..Policy::default() });
        let begin = |now_ns| {
            counters.conflict(0, counters.doppel().policy.conflicts_min);
            counters.change_phase(now_ns);
            assert!(counters.doppel().holds_back() && !counters.doppel().is_ending());
        };
        begin(BEGIN_NS);
        let end_ns = BEGIN_NS + 10 * MS;
        assert!(!counters.is_due(0, 0, false, end_ns - 1) && !counters.is_due(3, 0, false, end_ns - 1));
        assert!(counters.is_due(0, 0, false, end_ns), "its time is over, and nobody is stashed");
        assert!(counters.is_due(0, 0, false, BEGIN_NS), "cores have been told");
        counters.change_phase(end_ns);
        assert!(!counters.doppel().holds_back() && counters.split().is_empty());
        begin(end_ns);
        assert!(counters.is_due(4, 0, false, end_ns), "too many are stashed");
        counters.change_phase(end_ns);
        begin(end_ns);
        assert!(counters.is_due(0, 0, true, end_ns), "nothing is left to begin");
        assert!(!counters.doppel().is_ending(), "nobody has to stop for it");
        counters.doppel().set_phase_ms_max(1);
        assert!(counters.is_due(0, 0, false, end_ns + MS));
    }

    /// Goal: a record stays split, without any conflicts, as long as phases apply enough to it; when the workload
    /// moves to another one, that is split in its place.
    #[test]
    fn splitting_follows_the_workload() {
        let counters = Counters::new(Policy::default());
        let Policy { conflicts_min, applied_min, .. } = counters.doppel().policy;
        counters.conflict(0, conflicts_min);
        for _ in 0..3 {
            assert!(counters.is_due(0, 0, false, BEGIN_NS));
            counters.change_phase(BEGIN_NS);
            assert_eq!(counters.split(), [0]);
            counters.add(0, applied_min);
            counters.change_phase(BEGIN_NS);
            assert!(counters.split().is_empty(), "between split phases it is under optimistic control");
        }
        counters.change_phase(BEGIN_NS);
        counters.add(0, applied_min - 1);
        counters.change_phase(BEGIN_NS);
        assert!(!counters.is_due(0, 0, false, BEGIN_NS), "nothing is worth splitting any more");
        counters.conflict(1, conflicts_min);
        counters.change_phase(BEGIN_NS);
        assert_eq!(counters.split(), [1]);
        counters.add(0, 5);
        counters.change_phase(BEGIN_NS);
        let totals: Vec<Value> =
            counters.rig.rows("counters").into_iter().map(|mut row| row.remove(1)).collect();
        let applied = 4 * applied_min as i64 - 1;
        assert_eq!(totals, [Value::BigInt(applied), Value::BigInt(5)]);
    }

    /// Goal: after so many calls, what has conflicted before counts no more.
    #[test]
    fn sampling_begins_anew() {
        for (calls, is_forgotten) in [(900, false), (1000, true)] {
            let counters = Counters::new(Policy { sample_calls: 1000, ..Policy::default() });
            counters.conflict(0, counters.doppel().policy.conflicts_min - 1);
            counters.doppel().count(calls);
            counters.conflict(0, 1);
            assert_eq!(counters.is_due(0, 0, false, BEGIN_NS), !is_forgotten, "after {calls} calls");
        }
    }

    /// Goal: what cores have done to their slices is not reconciled when it is not in the log, and whoever waits for
    /// any call of the phase is told.
    #[test]
    fn what_is_not_logged_is_not_reconciled() {
        let Counters { rig, engine } = contended();
        // The first batch is logged.
        let (first, second) = (adds(&rig, 1), adds(&rig, 10));
        rig.engine.submit(first.clone());
        assert!(rig.engine.admit() && engine.protocol().holds_back(), "a split phase begins");
        assert!(rig.engine.admit() && !first.is_complete(), "it is held back");
        assert!(rig.foundation.promised() < engine.ground().shared.sequencer.issued());
        rig.fault(Fault::Full { bytes: 0 });
        rig.run(&second);
        for batch in [&first, &second] {
            rig.wait(batch);
            assert_eq!(batch.outcome(0).unwrap_err().state(), SqlState::DISK_FULL);
        }
        rig.engine.settle();
        assert_eq!(rig.query("see", &[Value::Int(0)]), Ok(vec![Value::BigInt(0)]));
        rig.close();
        assert_eq!(rig.query("see", &[Value::Int(0)]), Ok(vec![Value::BigInt(0)]));
    }

    /// Goal: within a split phase there is no state that could be read later.
    #[test]
    fn the_calls_of_a_phase_are_seen_together() {
        let Counters { rig, engine } = contended();
        rig.foundation.keep_past();
        let before = rig.foundation.promised();
        let batch = adds(&rig, 3);
        rig.engine.submit(batch.clone());
        assert!(rig.engine.admit() && engine.protocol().holds_back(), "a split phase begins");
        rig.wait(&batch);
        let (first, last) = (before.next(), Seq(before.0 + 3));
        assert_eq!(rig.foundation.promised(), last);
        let together = [before, first, first.next(), last].map(|seq| rig.foundation.seen_together(seq));
        assert_eq!(together, [None, Some((first, last)), Some((first, last)), None]);
        rig.foundation.forget_past(last.next());
        assert_eq!(rig.foundation.seen_together(first), None);
    }

    /// Goal: readers stand before the phase wherever they stand, though its calls are durable and their order does not
    /// matter. So nobody is told of a call before the phase has ended: who then read would miss it
    /// (`docs/decisions/answers-wait-for-the-phase.md`).
    #[test]
    fn readers_stand_before_the_phase() {
        let Counters { rig, engine } = contended();
        let before = rig.foundation.promised();
        let batch = adds(&rig, 3);
        rig.engine.submit(batch.clone());
        assert!(rig.engine.admit() && engine.protocol().holds_back(), "a split phase begins");
        assert!(rig.engine.admit(), "the calls run");
        let last = engine.ground().shared.sequencer.issued();
        assert!(last == Seq(before.0 + 3) && rig.foundation.is_durable(last), "they are in the log");
        let mut see = BatchBuilder::new();
        rig.push(&mut see, "see", &[Value::Int(0)], None);
        let see = see.build();
        rig.engine.submit(see.clone());
        assert!(rig.engine.admit() && see.is_complete(), "what only reads does not wait");
        assert_eq!(rig.result(&see, 0), Ok(vec![Value::BigInt(0)]));
        let stands = [
            Standpoint::newest(&rig.foundation).seq(),
            Standpoint::held(&rig.foundation).seq(),
            rig.engine.stand().seq(),
        ];
        assert_eq!(stands, [before; 3], "queries, transactions, checkpoints");
        assert_eq!(rig.query("see", &[Value::Int(0)]), Ok(vec![Value::BigInt(0)]));
        assert!(engine.protocol().holds_back() && !batch.is_complete(), "who reads now would miss the calls");
        rig.wait(&batch);
        assert_eq!(rig.foundation.promised(), last);
        assert_eq!(rig.query("see", &[Value::Int(0)]), Ok(vec![Value::BigInt(3)]));
    }

    /// Goal: factors of two and three split as long as no order of them can leave the column's type; the others run in
    /// the joined phase, where those abort that would leave it, and no others.
    #[test]
    fn factors_split_within_the_type() {
        for (factors, split) in [
            (vec![2; 70], 62),
            (vec![3; 40], 39),
            ([vec![2; 61], vec![3, 1, -1, 2, 0, 2]].concat(), 61 + 4),
            (vec![i64::MAX, 2, 1], 2),
        ] {
            let Counters { rig, engine } = contended_by("grow");
            let batch = calls_with(&rig, "grow", factors.iter().copied());
            rig.engine.submit(batch.clone());
            assert!(rig.engine.admit() && engine.protocol().holds_back(), "a split phase begins");
            while !engine.intake().is_empty() {
                assert!(rig.engine.admit() && engine.protocol().holds_back(), "{factors:?}");
            }
            assert_eq!(factors.len() - engine.intake().waiting().put_off, split, "{factors:?}");
            rig.wait(&batch);
            let mut left = i64::MAX;
            let (at_once, put_off): (Vec<usize>, Vec<usize>) = (0..factors.len()).partition(|place| {
                let fits = factors[*place].abs().max(1) <= left;
                left /= if fits { factors[*place].abs().max(1) } else { 1 };
                fits
            });
            let mut product = 1i64;
            for place in at_once.into_iter().chain(put_off) {
                let next = product.checked_mul(factors[place]);
                let outcome = batch.outcome(place as u32).map_err(|error| error.state());
                assert_eq!(outcome, next.map(drop).ok_or(SqlState::OUT_OF_RANGE), "{factors:?}");
                product = next.unwrap_or(product);
            }
            assert_eq!(rig.rows("counters")[0][2], Value::BigInt(product), "{factors:?}");
        }
    }

    /// Goal: a record is split no more if most of its calls were stashed because they had no room.
    #[test]
    fn a_record_without_room_is_split_no_more() {
        for (name, calls, is_kept) in [
            ("grow", 62 + 124, true),
            ("grow", 62 + 125, false),
            ("grow_and_count", 62 + 124, true),
            ("grow_and_count", 62 + 125, false),
        ] {
            let Counters { rig, engine } = contended_by(name);
            let batch = calls_with(&rig, name, std::iter::repeat_n(2, calls));
            rig.run(&batch);
            rig.wait(&batch);
            assert!(!engine.protocol().holds_back());
            let waiting = Waiting::default();
            assert_eq!(
                engine.protocol().is_phase_due(&waiting, BEGIN_NS),
                is_kept,
                "{calls} calls of {name}"
            );
        }
    }

    /// Goal: a record stays split if a phase has applied enough to it, and stashed little for its sake.
    #[test]
    fn few_operations_and_many_stashed_calls_end_splitting() {
        let policy = Policy { applied_min: 32, impact_percent: 50, ..Policy::default() };
        let keeps =
            |applied, stashed| policy.keeps(&Slice { applied, stashed, ..Slice::new(std::iter::empty()) });
        assert!(keeps(32, 0) && keeps(32, 64));
        assert!(!keeps(31, 0) && !keeps(32, 65));
    }
}
