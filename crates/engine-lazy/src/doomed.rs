//! Deferred calls that blind writes have made pointless (lazy evaluation, section 4.3).
//!
//! ```text
//! lane     ... add, add, add, clear ......... turn ......... turn  | lane given free
//!              doomed: nobody who comes         readers of before  | dropped, and
//!              from now on can read them        the clear have gone| unlinked
//! ```
//!
//! Below a version that covers it and does not depend on it, a sticky can be read only by snapshots of the past (they
//! are waited for), by later-phases that captured it (it is marked then) or that search the table, by the call that
//! wrote the version above it, which is doomed first, and by the call that overwrites it, if that is deferred too. So
//! whoever overwrites stickies walks down the chain as far as that goes, and nothing that comes later in the turn
//! changes how far.

use crate::backlog::let_go;
use crate::deferred::{Chunk, Deferred, State};
use crate::now::{Written, deferred_at};
use crate::variant::Variant;
use crossbeam_epoch::Guard;
use fabius_env::schedule;
use fabius_storage::fold::Retired;
use fabius_storage::{
    Record, Table, Version,
    index::{prefetch, prefetch_to_write},
};
use fabius_value::{ColumnMask, Seq};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Relaxed, Release},
};

/// Calls that are brought near ahead of the one that is dropped.
const AHEAD: usize = 16;
/// Walks that go on with each call.
const WALKS: usize = 4;

/// Doomed calls, for the lane; and the chunks that they live in.
#[derive(Default)]
pub struct Doomed {
    /// Walks of this turn, in the order of the calls that began them.
    walks: VecDeque<Walk>,
    overwritten: VecDeque<Overwritten>,
    /// The calls of all of them, one after the other.
    calls: VecDeque<DoomedCall>,
    /// Chunks with calls that may be doomed yet, oldest first.
    chunks: VecDeque<Arc<Chunk>>,
    /// Chunks whose calls are all done, and the next call's seq when that was seen: whatever overwrites later
    /// dooms none of them.
    leaving: VecDeque<(Seq, Arc<Chunk>)>,
    /// Whether a thread has calls in hand that it has taken out to drop.
    is_taken: Arc<AtomicBool>,
    /// Buffers of walks that have ended.
    spare: Vec<Vec<NonNull<Version>>>,
}

/// A walk down the stickies that a version has overwritten, a step per call of the lane: each sticky is likely in
/// nobody's cache, and only there it says where the next one is.
struct Walk {
    overwritten: Overwritten,
    covers: ColumnMask,
    /// What the call that overwrites will read itself.
    reads: ColumnMask,
    /// The newest call whose later-phase searches the table, when the walk began.
    searcher: Seq,
    /// Stickies that nobody can read.
    found: Vec<NonNull<Version>>,
    /// The version below, which is on its way too; null at the end of the walk.
    below: *const Version,
}

/// Calls whose stickies follow each other in a chain, and may be dropped once every reader sees what overwrote them.
struct Overwritten {
    at: Seq,
    by: NonNull<Version>,
    record: NonNull<Record>,
    table: Arc<Table>,
    /// How many there are.
    calls: usize,
}

/// A call, which only the one before it in the chain reads, and its sticky there.
struct DoomedCall {
    call: NonNull<Deferred>,
    sticky: NonNull<Version>,
}

// SAFETY: the addresses lead into chunks and tables that are kept alive beside them.
unsafe impl Send for Doomed {}

/// Doomed calls that no reader can miss any more. Whoever has taken them out drops them before its epoch ends. One
/// thread has such calls at a time, so that none is dropped before one that reads it, nor unlinked below one that is.
#[derive(Default)]
#[must_use]
pub struct Unread {
    overwritten: Vec<Overwritten>,
    calls: Vec<DoomedCall>,
    /// Set back once they are dropped.
    is_taken: Option<Arc<AtomicBool>>,
}

impl Walk {
    /// Takes a step, to a version that the one before has asked for; whether it was not the last.
    ///
    /// # Safety
    /// As [`Doomed::overwrite`], in the same turn.
    unsafe fn step(&mut self) -> bool {
        // SAFETY: linked when this turn began, under an epoch that was pinned before.
        let version = unsafe { self.below.as_ref() };
        let is_unread = |version: &&Version| {
            !version.sticky().is_empty()
                && self.covers.covers(version.columns())
                && !self.reads.intersects(version.columns())
                && !version.is_read_elsewhere()
                && version.seq() != self.overwritten.at
                && self.searcher <= version.seq()
        };
        let Some(version) = version.filter(is_unread) else {
            self.below = std::ptr::null();
            return false;
        };
        self.found.push(version.owner());
        self.below = version.next();
        Version::prefetch_at(self.below);
        if !version.is_all_of_its_call() {
            prefetch(version.deferred().cast_const().cast::<Deferred>());
        }
        true
    }
}

impl Doomed {
    /// Keeps a chunk for as long as its calls may be doomed.
    pub fn keep(&mut self, chunk: Arc<Chunk>) {
        self.chunks.push_back(chunk);
    }

    /// How much waits: for readers to go, and for chunks to be done.
    pub fn len(&self) -> usize {
        self.overwritten.len() + self.chunks.len() + self.leaving.len()
    }

    /// Whether nothing could be dropped or let go now.
    pub fn is_at_rest(&self) -> bool {
        let has_done = || self.chunks.front().is_some_and(|chunk| chunk.remaining() == 0);
        self.overwritten.is_empty() && self.leaving.is_empty() && !has_done()
    }

    /// Begins to look for the deferred calls that the call at `seq` has made pointless by what it wrote, and goes on
    /// looking for those of the calls before. `later_searcher` has the newest call, by table, whose later-phase
    /// searches it.
    ///
    /// # Safety
    /// The caller is the lane, in an epoch that was pinned before the turn, and ends the turn with
    /// [`end_walks`](Doomed::end_walks).
    pub unsafe fn overwrite(
        &mut self,
        written: &[Written<'_>],
        seq: Seq,
        variant: &Variant,
        later_searcher: &[Seq],
    ) {
        for written in written {
            let table = written.table.id().0 as usize;
            // SAFETY: the call's own version, and the one below, under a pinned epoch.
            let own = unsafe { written.version.as_ref() };
            let Some(first) = (unsafe { own.next().as_ref() }) else { continue };
            let covers =
                if own.is_tombstone() { ColumnMask(u64::MAX) } else { own.columns().without(own.deltas()) };
            let reads = match own.sticky().is_empty() {
                true => ColumnMask::default(),
                false => variant.reads.get(table).copied().unwrap_or_default(),
            };
            if first.sticky().is_empty() || reads.intersects(first.columns()) {
                continue;
            }
            let mut walk = Walk {
                overwritten: Overwritten {
                    at: seq,
                    by: written.version,
                    record: written.record.owner(),
                    table: written.table.clone(),
                    calls: 0,
                },
                covers,
                reads,
                searcher: later_searcher[table],
                found: self.spare.pop().unwrap_or_default(),
                below: first,
            };
            // SAFETY: the chain is as [`overwrite`](Doomed::overwrite) wants it, as whoever calls this sees to.
            if unsafe { walk.step() } {
                // Counted once: another walk that comes down the chain ends here.
                first.mark_read_elsewhere();
                // Nothing that comes later depends on what is below.
                written.record.reset_pending();
                self.walks.push_back(walk);
            } else {
                self.spare.push(walk.found);
            }
        }
        if !self.walks.is_empty() {
            // SAFETY: the chains are as [`overwrite`](Doomed::overwrite) wants them, as whoever calls this sees to.
            unsafe { self.go_on(WALKS) };
        }
    }

    /// Ends all walks.
    ///
    /// # Safety
    /// As [`overwrite`](Doomed::overwrite).
    pub unsafe fn end_walks(&mut self) {
        while !self.walks.is_empty() {
            // SAFETY: the chains are as [`overwrite`](Doomed::overwrite) wants them, as whoever calls this sees to.
            unsafe { self.go_on(usize::MAX) };
        }
    }

    /// Takes a step of each of so many walks, the oldest ones.
    ///
    /// # Safety
    /// As [`overwrite`](Doomed::overwrite).
    unsafe fn go_on(&mut self, walks: usize) {
        for walk in self.walks.iter_mut().take(walks) {
            // SAFETY: the chain is as [`overwrite`](Doomed::overwrite) wants it, as whoever calls this sees to.
            unsafe { walk.step() };
        }
        while let Some(walk) = self.walks.pop_front_if(|walk| walk.below.is_null()) {
            // SAFETY: the chain is as [`overwrite`](Doomed::overwrite) wants it, as whoever calls this sees to.
            unsafe { self.doom(walk) };
        }
    }

    /// Dooms the calls of the stickies that a walk has found, down to the first that has something else to do. Walks
    /// end in the order in which they began: a call comes behind all that read it, in whatever chain.
    ///
    /// # Safety
    /// As [`overwrite`](Doomed::overwrite).
    unsafe fn doom(&mut self, mut walk: Walk) {
        let before = self.calls.len();
        for sticky in walk.found.drain(..) {
            // SAFETY: under a pinned epoch.
            let version = unsafe { sticky.as_ref() };
            version.mark_read_elsewhere();
            let call = version.deferred();
            if !version.is_all_of_its_call() {
                // SAFETY: the call was named by an open sticky in this epoch.
                let deferred = unsafe { deferred_at(call) };
                let live = deferred.live.load(Relaxed) - 1;
                deferred.live.store(live, Relaxed);
                if live > 0 || deferred.ticket.is_some() || deferred.state() != State::Pending {
                    break;
                }
            }
            let Some(call) = NonNull::new(call.cast()) else { break };
            self.calls.push_back(DoomedCall { call, sticky });
        }
        self.spare.push(walk.found);
        let calls = self.calls.len() - before;
        if calls > 0 {
            self.overwritten.push_back(Overwritten { calls, ..walk.overwritten });
        }
    }

    /// Takes out the doomed calls that no reader can miss, when all see what is up to `readers`, unless another
    /// thread still has some in hand; and lets chunks go that have nothing else. `next` is the next call's seq.
    pub fn take_unread(&mut self, readers: Seq, next: Seq, guard: &Guard) -> Unread {
        let mut unread = Unread::default();
        if !self.is_taken.load(Acquire) {
            let mut calls = 0;
            while let Some(overwritten) =
                self.overwritten.pop_front_if(|overwritten| overwritten.at <= readers)
            {
                calls += overwritten.calls;
                unread.overwritten.push(overwritten);
            }
            if calls > 0 {
                unread.calls.extend(self.calls.drain(..calls));
                self.is_taken.store(true, Relaxed);
                unread.is_taken = Some(self.is_taken.clone());
            }
        }
        self.release(next, guard);
        unread
    }

    /// Records that were overwritten at or after this seq are still to be looked at.
    pub fn oldest(&self) -> Seq {
        self.overwritten.front().map_or(Seq::MAX, |overwritten| overwritten.at)
    }

    fn release(&mut self, next: Seq, guard: &Guard) {
        while let Some(chunk) = self.chunks.pop_front_if(|chunk| chunk.remaining() == 0) {
            self.leaving.push_back((next, chunk));
        }
        let oldest = self.oldest();
        while let Some((_, chunk)) = self.leaving.pop_front_if(|(seen, _)| *seen <= oldest) {
            let_go(chunk, guard);
        }
    }
}

impl Unread {
    /// Drops the calls that nobody has begun to run, and takes their stickies out of the chain; gives how many.
    /// Others may be in the lane meanwhile.
    ///
    /// # Safety
    /// The calls were taken out in the epoch of the caller.
    pub unsafe fn drop_calls(self, retired: &mut Retired) -> u64 {
        let mut dropped = 0;
        let mut at = 0;
        retired.reserve(self.calls.len());
        for overwritten in self.overwritten {
            schedule::point("doomed");
            // SAFETY: no record is freed that was overwritten since the oldest that waits (`Doomed::oldest`); the
            // epoch is pinned.
            let record = unsafe { overwritten.record.as_ref() };
            let may_unlink = record.begin_shortening();
            let mut is_unread = true;
            for DoomedCall { call, sticky } in &self.calls[at..at + overwritten.calls] {
                at += 1;
                if let Some(later) = self.calls.get(at + AHEAD) {
                    prefetch_to_write(later.call.as_ptr());
                    Version::prefetch_at(later.sticky.as_ptr());
                }
                // SAFETY: the call's chunk was kept alive until the epoch was pinned.
                is_unread = is_unread && unsafe { call.as_ref() }.drop_unrun();
                dropped += u64::from(is_unread);
                schedule::point("dropped");
                if is_unread && may_unlink {
                    // SAFETY: while a call below was pending, what overwrote it has stayed, and nobody comes below
                    // that any more: the sticky is unlinked by this, whose shortening keeps others from it.
                    unsafe {
                        overwritten.by.as_ref().set_next(sticky.as_ref().next());
                        retired.version(*sticky, overwritten.table.types());
                    }
                }
            }
            if may_unlink {
                record.end_shortening();
            }
        }
        if let Some(is_taken) = self.is_taken {
            is_taken.store(false, Release);
        }
        dropped
    }
}
