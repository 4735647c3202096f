//! The lane: takes calls in, gives them their place, runs their now-phases, and promises.
//!
//! One thread at a time holds the lane (lazy evaluation, section 3.1: the stickification layer); a
//! *turn* takes what callers have handed in, up to a bound:
//!
//! ```text
//! queue --> number --> append to the log --> now-phase of each call --> publish `promised`
//!                                             |                           |
//!                                             stickies in chains          deferred calls to the backlog
//! ```
//!
//! Readers take their seq from `promised`, so they never see part of a turn, and what a turn writes may
//! be rewritten or merged until it is published.

use crate::awaited::Awaited;
use crate::backlog::Backlog;
use crate::captured::RowList;
use crate::deferred::Chunk;
use crate::doomed::{Doomed, Unread};
use crate::intake::Intake;
use crate::interval::Intervals;
use crate::now::{NowContext, Tools};
use crate::policy::Policy;
use crate::substantiate::Substantiation;
use crate::turn::{Left, Outcome, Turn};
use crate::variant::Variants;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::checkpoint;
use fabius_engine::entry;
use fabius_engine::{Batch, Definitions, Foundation};
use fabius_env::schedule;
use fabius_program::execute::FrameFor;
use fabius_program::slice::Interval;
use fabius_storage::fold::{Retired, fold_with_others};
use fabius_storage::memory;
use fabius_storage::purge::Purge;
use fabius_value::{ColumnId, Error, Seq, SqlState, TableId};
use std::sync::Arc;

/// Keys purged per turn, at most: a bound on the pause.
const PURGES_MAX: usize = 4096;

/// The lane's state; whoever holds it is the writer of all chains.
pub struct Lane {
    next_seq: Seq,
    variants: Variants,
    intervals: Intervals,
    purge: Purge,
    retired: Retired,
    later_reader: Vec<Box<[Seq]>>,
    later_searcher: Vec<Seq>,
    doomed: Doomed,
    payload: Vec<u8>,
    arena: Bump,
}

/// What a turn leaves to the thread that took it, once the lane is free.
#[derive(Default)]
pub struct Rest {
    /// The deferred calls that it leaves.
    pub chunk: Option<Arc<Chunk>>,
    /// Those that need not be run any more.
    pub unread: Unread,
}

/// What a turn shares with the engine.
pub struct Surroundings<'e> {
    /// Definitions, log, snapshots.
    pub foundation: &'e Foundation,
    /// Where deferred calls go.
    pub backlog: &'e Backlog,
    /// When deferred work is done.
    pub policy: Policy,
    /// Whether deferred work is best done from the old end only.
    pub is_far_behind: bool,
    /// Where now-phases say that they had to wait.
    pub awaited: &'e Awaited,
}

impl Surroundings<'_> {
    /// Drops calls that need not be run any more, taken out in this epoch; the lane may be another thread's.
    pub fn drop_unread(&self, unread: Unread, guard: &Guard) {
        let mut retired = Retired::default();
        // SAFETY: the caller's epoch.
        let skipped = unsafe { unread.drop_calls(&mut retired) };
        self.foundation.counters.skipped.add(skipped);
        // A chain has been taken from as many places as there were turns.
        retired.sort_by_address();
        retired.hand_over_unsaid(guard);
    }
}

impl Default for Lane {
    fn default() -> Lane {
        Lane::new()
    }
}

impl Lane {
    /// A lane whose next call gets seq 1.
    pub fn new() -> Lane {
        Lane {
            next_seq: Seq(1),
            variants: Variants::default(),
            intervals: Intervals::default(),
            purge: Purge::default(),
            retired: Retired::default(),
            later_reader: Vec::new(),
            later_searcher: Vec::new(),
            doomed: Doomed::default(),
            payload: Vec::new(),
            arena: Bump::new(),
        }
    }

    /// The seq that the next call or definition gets.
    pub fn next_seq(&self) -> Seq {
        self.next_seq
    }

    /// Takes the next seq for a definition that is in force from now on.
    pub fn follow(&mut self, definitions: &Definitions) -> Seq {
        let tables = definitions.tables.len();
        self.intervals.follow(&definitions.catalog);
        for table in &definitions.tables[self.later_reader.len()..] {
            self.later_reader.push(vec![Seq::ZERO; table.types().len()].into());
        }
        self.later_searcher.resize(tables, Seq::ZERO);
        let seq = self.next_seq;
        self.variants.follow(seq, definitions);
        self.next_seq = seq.next();
        seq
    }

    /// Goes on behind a checkpoint. Every value that a call can meet from now on is in a row of it, or
    /// written by such a call, so the rows' ranges are all that proofs need.
    pub fn restore(&mut self, state: &checkpoint::State) {
        self.next_seq = state.seq;
        self.follow(&state.definitions);
        for (table, columns) in state.ranges.iter().enumerate() {
            for (column, range) in columns.iter().enumerate() {
                if let Some((low, high)) = *range {
                    let (table, column) = (TableId(table as u32), ColumnId(column as u8));
                    self.intervals.include(table, column, Interval { low, high });
                }
            }
        }
    }

    /// Runs a turn over batches that callers have handed in. The deferred calls that it leaves are in `chunk`.
    pub fn turn(
        &mut self,
        around: &Surroundings<'_>,
        batches: &[Arc<Batch>],
        intake: &Intake<'_>,
        chunk: Arc<Chunk>,
    ) -> Rest {
        let foundation = around.foundation;
        let time_us = foundation.clock.now_us();
        let count: u32 = batches.iter().map(|batch| batch.count()).sum();
        self.payload.clear();
        entry::begin_calls(time_us, &mut self.payload);
        batches.iter().for_each(|batch| self.payload.extend_from_slice(batch.calls()));
        let appended = foundation.append(self.next_seq, count, &self.payload);
        if let Err(error) = appended {
            let now = foundation.clock.monotonic_ns();
            batches.iter().for_each(|batch| batch.fail(error.clone(), now));
            return Rest::default();
        }
        let mut promised = Promised { batches, at: 0, place: 0 };
        let mut last = self.next_seq;
        let note = &mut |seq, outcome| promised.note(seq, outcome);
        let rest = self.promise(around, time_us, intake, chunk, note);
        for batch in batches {
            last = Seq(last.0 + u64::from(batch.count()));
            foundation.decided(last.before(), batch.clone());
        }
        rest
    }

    /// Runs the now-phases of calls, and publishes what they promise.
    pub fn promise(
        &mut self,
        around: &Surroundings<'_>,
        time_us: i64,
        intake: &Intake<'_>,
        chunk: Arc<Chunk>,
        sink: &mut dyn FnMut(Seq, Outcome),
    ) -> Rest {
        let foundation = around.foundation;
        let definitions = intake.definitions();
        let guard = intake.guard();
        let (collected, unread) = self.collect(around, guard);
        let mut arena = std::mem::take(&mut self.arena);
        arena.reset();
        let mut keys = foundation.keys.lock();
        let mut context = NowContext::new(
            definitions,
            guard,
            Tools {
                retired: &mut self.retired,
                purge: &mut self.purge,
                later_reader: &mut self.later_reader,
                intervals: &mut self.intervals,
                collected,
                is_far_behind: around.is_far_behind,
                is_eager: around.policy.is_eager(),
                turn: self.next_seq,
                merged: 0,
            },
        );
        chunk.begin(time_us);
        let mut turn = Turn {
            foundation,
            awaited: around.awaited,
            definitions,
            arena: &arena,
            chunk: &chunk,
            chain_bound: around.policy.chain_bound,
            variants: &mut self.variants,
            keys: &mut keys,
            key_window: definitions.key_window,
            later_searcher: &mut self.later_searcher,
            doomed: &mut self.doomed,
            context: &mut context,
            frame: FrameFor::<NowContext<'_, '_>>::default(),
            rows: RowList::default(),
            substantiation: Substantiation::new(definitions, guard, &arena),
            left: Left { seq: self.next_seq, ..Left::default() },
            time_us,
        };
        for at in 0..intake.count() {
            let seq = turn.left.seq;
            schedule::point("now-phase");
            sink(seq, turn.run(intake, at));
        }
        let left = turn.end();
        let counters = &foundation.counters;
        counters.committed.add(left.committed);
        counters.aborted.add(left.aborted);
        counters.immediate.add(left.immediate);
        counters.merged.add(context.tools().merged);
        counters.substantiated.add(left.substantiated);
        counters.substantiated_in_lane.add(left.substantiated);
        drop(context);
        drop(keys);
        foundation.see_together(self.next_seq, left.seq.before());
        self.next_seq = left.seq;
        let chunk = (!left.calls.is_empty()).then(|| {
            chunk.close(left.calls);
            around.backlog.push(chunk.clone(), &left.urgent);
            self.doomed.keep(chunk.clone());
            chunk
        });
        schedule::point("promise");
        foundation.set_promised(left.seq.before());
        schedule::point("promised");
        self.retired.hand_over_unsaid(guard);
        self.arena = arena;
        Rest { chunk, unread }
    }

    /// Purges keys that nobody searches for any more, and moves `collected`; gives how far chains may be folded, and
    /// the doomed calls that no reader can miss.
    fn collect(&mut self, around: &Surroundings<'_>, guard: &Guard) -> (Seq, Unread) {
        let foundation = around.foundation;
        let promised = foundation.promised();
        let readers = foundation.snapshots.collect(promised);
        let unread = self.doomed.take_unread(readers, self.next_seq, guard);
        let pending = around.backlog.oldest_pending();
        let collected = pending.map_or(readers, |pending| readers.min(pending.before()));
        self.variants.collect(pending.unwrap_or(self.next_seq), guard);
        let later_searcher = &self.later_searcher;
        let searched = |table: TableId| match pending {
            Some(pending) if later_searcher[table.0 as usize] >= pending => collected,
            _ => readers,
        };
        let freed = collected.min(self.doomed.oldest().before());
        self.purge.run(searched, freed, PURGES_MAX, &mut self.retired, guard);
        (collected, unread)
    }

    /// Work without calls: purging, folding behind readers. Whether there was any.
    pub fn tidy(&mut self, around: &Surroundings<'_>) -> bool {
        if self.purge.is_empty() && self.doomed.is_at_rest() {
            return false;
        }
        let before = (self.purge.len(), self.doomed.len());
        let guard = crossbeam_epoch::pin();
        let (_, unread) = self.collect(around, &guard);
        around.drop_unread(unread, &guard);
        self.retired.hand_over(&guard);
        before != (self.purge.len(), self.doomed.len())
    }

    /// Folds every chain of every table, to give memory back; for when it is short.
    pub fn sweep(&mut self, around: &Surroundings<'_>) {
        let guard = crossbeam_epoch::pin();
        let (collected, unread) = self.collect(around, &guard);
        around.drop_unread(unread, &guard);
        for table in &around.foundation.definitions().tables {
            table.for_each_record(&guard, |record| {
                // SAFETY: the lane is the records' writer.
                unsafe { fold_with_others(record, collected, table.types(), &mut self.retired) };
            });
        }
        self.retired.hand_over(&guard);
        guard.flush();
    }
}

/// Where the outcomes of a turn's calls go: to their batches.
struct Promised<'b> {
    batches: &'b [Arc<Batch>],
    /// The next call's batch, and its place in it.
    at: usize,
    place: u32,
}

impl Promised<'_> {
    fn note(&mut self, seq: Seq, outcome: Outcome) {
        let (batch, place) = (&self.batches[self.at], self.place);
        self.place += 1;
        if self.place == batch.count() {
            self.at += 1;
            self.place = 0;
        }
        if place == 0 || outcome.abort.is_some() || outcome.ticket.is_some() {
            let mut outcomes = batch.outcomes();
            outcomes.first_seq.get_or_insert(seq);
            outcomes.aborts.extend(outcome.abort.map(|error| (place, error)));
            outcomes.tickets.extend(outcome.ticket.map(|ticket| (place, ticket)));
        }
    }
}

/// Whether memory is so short that callers must wait for substantiation.
pub fn is_memory_short(policy: &Policy) -> bool {
    memory::used() > policy.memory_bytes
}

/// The error for calls that come after the database was closed.
pub fn closed() -> Error {
    Error::new(SqlState::SHUTDOWN, "the database is closed")
}
