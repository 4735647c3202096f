//! Deferred calls that blind writes have made pointless (lazy evaluation, section 4.3).
//!
//! ```text
//! lane     ... add, add, add, clear ......... turn ......... turn
//!              doomed: nobody who comes         readers of before the clear
//!              from now on can read them        have gone: dropped, and unlinked
//! ```
//!
//! Below a version that covers it and does not depend on it, a sticky can be read only by snapshots of the past (they
//! are waited for), by later-phases that captured it (it is marked then) or that search the table, and by the call that
//! wrote the version above it, which is doomed first.

use crate::backlog::let_go;
use crate::deferred::{Chunk, Deferred, State};
use crate::now::{Written, deferred_at};
use crate::variant::Variant;
use crossbeam_epoch::Guard;
use fabius_env::schedule;
use fabius_storage::fold::Retired;
use fabius_storage::{Record, Table, Version, index::prefetch};
use fabius_value::{ColumnMask, Seq};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Calls looked at ahead of the one that is dropped.
const AHEAD: usize = 8;

/// Doomed calls, for the lane; and the chunks that they live in.
#[derive(Default)]
pub struct Doomed {
    overwritten: VecDeque<Overwritten>,
    /// The calls of all of them, one after the other.
    calls: VecDeque<DoomedCall>,
    /// Chunks with calls that may be doomed yet, oldest first.
    chunks: VecDeque<Arc<Chunk>>,
    /// Chunks whose calls are all done, and the next call's seq when that was seen: whatever overwrites later
    /// dooms none of them.
    leaving: VecDeque<(Seq, Arc<Chunk>)>,
    /// Stickies of one chain, while they are looked at.
    stickies: Vec<NonNull<Version>>,
}

/// Calls whose stickies follow each other in a chain, and may be dropped once every reader sees what overwrote them.
struct Overwritten {
    at: Seq,
    by: NonNull<Version>,
    record: NonNull<Record>,
    table: Arc<Table>,
    calls: usize,
}

/// A call, which only the one before it in the chain reads, and its sticky there.
struct DoomedCall {
    call: NonNull<Deferred>,
    sticky: NonNull<Version>,
}

// SAFETY: the addresses lead into chunks and tables that are kept alive beside them.
unsafe impl Send for Doomed {}

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

    /// Finds the deferred calls that the call at `seq` has made pointless by what it wrote. `later_searcher` has the
    /// newest call, by table, whose later-phase searches it.
    ///
    /// # Safety
    /// The caller is the lane, in an epoch that was pinned before the turn.
    pub unsafe fn overwrite(
        &mut self,
        written: &[Written<'_>],
        seq: Seq,
        variant: &Variant,
        later_searcher: &[Seq],
    ) {
        for written in written {
            let table = written.table.id().0 as usize;
            // SAFETY: the call's own version, and the chain below, under a pinned epoch.
            let own = unsafe { written.version.as_ref() };
            let Some(first) = (unsafe { own.next().as_ref() }) else { continue };
            let covers =
                if own.is_tombstone() { ColumnMask(u64::MAX) } else { own.columns().without(own.deltas()) };
            let reads = variant.reads.get(table).copied().unwrap_or_default();
            if first.sticky().is_empty() || !own.sticky().is_empty() && reads.intersects(first.columns()) {
                continue;
            }
            let is_unread = |version: &Version| {
                !version.sticky().is_empty()
                    && covers.covers(version.columns())
                    && !version.is_read_elsewhere()
                    && version.seq() != seq
                    && later_searcher[table] <= version.seq()
            };
            let mut at = Some(first);
            while let Some(version) = at.filter(|version| is_unread(version)) {
                // The calls of all of them are on their way while the chain is walked.
                prefetch(version.deferred().cast_const().cast::<Deferred>());
                self.stickies.push(NonNull::from(version));
                // SAFETY: as above.
                at = unsafe { version.next().as_ref() };
            }
            // SAFETY: as above.
            let calls = unsafe { self.doom() };
            if calls > 0 {
                let (by, record) = (written.version, written.record.owner());
                let table = written.table.clone();
                self.overwritten.push_back(Overwritten { at: seq, by, record, table, calls });
            }
        }
    }

    /// Dooms the calls of the stickies found, down to the first that has something else to do; gives how many.
    ///
    /// # Safety
    /// As [`Doomed::overwrite`].
    unsafe fn doom(&mut self) -> usize {
        let before = self.calls.len();
        for sticky in self.stickies.drain(..) {
            // SAFETY: linked, under a pinned epoch, and its call read from an open sticky.
            let (version, deferred) = unsafe { (sticky.as_ref(), deferred_at(sticky.as_ref().deferred())) };
            // Counted once: a later overwriting call walks down to here and no further.
            version.mark_read_elsewhere();
            let live = deferred.live.load(Relaxed) - 1;
            deferred.live.store(live, Relaxed);
            if live > 0 || deferred.ticket.is_some() || deferred.state() != State::Pending {
                break;
            }
            self.calls.push_back(DoomedCall { call: NonNull::from(deferred), sticky: version.owner() });
        }
        self.calls.len() - before
    }

    /// Drops doomed calls that no reader can miss, when all see what is up to `readers`, and takes their stickies out of
    /// the chain; gives how many. `next` is the next call's seq.
    pub fn drop_unread(&mut self, readers: Seq, next: Seq, retired: &mut Retired, guard: &Guard) -> u64 {
        let mut dropped = 0;
        while let Some(overwritten) = self.overwritten.pop_front_if(|overwritten| overwritten.at <= readers) {
            schedule::point("doomed");
            // SAFETY: as long as a call below is pending, the record and what overwrote it there stay.
            let (record, by) = unsafe { (overwritten.record.as_ref(), overwritten.by.as_ref()) };
            let may_unlink = record.begin_shortening();
            let mut is_unread = true;
            for _ in 0..overwritten.calls {
                let Some(DoomedCall { call, sticky }) = self.calls.pop_front() else { break };
                if let Some(later) = self.calls.get(AHEAD) {
                    prefetch(later.call.as_ptr());
                    prefetch(later.sticky.as_ptr());
                }
                // SAFETY: the call's chunk is kept alive by `chunks` or `leaving`.
                is_unread = is_unread && unsafe { call.as_ref() }.drop_unrun();
                dropped += u64::from(is_unread);
                if is_unread && may_unlink {
                    // SAFETY: linked below `by`, and by what doomed the call, nobody comes there any more.
                    by.set_next(unsafe { sticky.as_ref() }.next());
                    retired.version(sticky, overwritten.table.types());
                }
            }
            if may_unlink {
                record.end_shortening();
            }
        }
        self.release(next, guard);
        dropped
    }

    fn release(&mut self, next: Seq, guard: &Guard) {
        while let Some(chunk) = self.chunks.pop_front_if(|chunk| chunk.remaining() == 0) {
            self.leaving.push_back((next, chunk));
        }
        let oldest = self.overwritten.front().map_or(Seq::MAX, |overwritten| overwritten.at);
        while let Some((_, chunk)) = self.leaving.pop_front_if(|(seen, _)| *seen <= oldest) {
            let_go(chunk, guard);
        }
    }
}
