//! The backlog: deferred calls that wait, oldest first, and those that should not wait any longer.
//!
//! ```text
//! old end    done   done | open   done   open   open ...   new end
//!            \-- leave --/
//! ```
//!
//! A chunk whose calls are all done leaves at the old end only: until then nobody takes out what its calls have
//! written. Whoever lets it leave may shorten the chains that they have written to, whose values are still near: what
//! they shadow is needed by nobody any more, unless by a reader of the past.

use crate::deferred::{Arenas, Chunk, Deferred};
use crossbeam_epoch::Guard;
use crossbeam_queue::SegQueue;
use fabius_value::Seq;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Deferred calls between the lane and the workers.
#[derive(Default)]
pub struct Backlog {
    /// Chunks with calls that are not done.
    chunks: Mutex<VecDeque<Arc<Chunk>>>,
    /// Those of them with calls that no worker has looked at.
    untaken: Mutex<VecDeque<Arc<Chunk>>>,
    urgent: SegQueue<(Arc<Chunk>, u32)>,
    pushed: AtomicU64,
    arenas: Arc<Arenas>,
}

impl Backlog {
    /// Where chunks come from.
    pub fn arenas(&self) -> &Arc<Arenas> {
        &self.arenas
    }

    /// Adds a closed chunk; `urgent` calls of it are to be run soon.
    pub fn push(&self, chunk: Arc<Chunk>, urgent: &[u32]) {
        self.pushed.fetch_add(chunk.calls().len() as u64, Relaxed);
        // First where workers take it from: a chunk that leaves the other queue is not looked for here again.
        self.untaken.lock().push_back(chunk.clone());
        self.chunks.lock().push_back(chunk.clone());
        urgent.iter().for_each(|&place| self.urgent.push((chunk.clone(), place)));
    }

    /// Deferred calls ever pushed.
    pub fn pushed(&self) -> u64 {
        self.pushed.load(Relaxed)
    }

    /// A call that was handed to substantiation.
    pub fn take_urgent(&self) -> Option<(Arc<Chunk>, NonNull<Deferred>)> {
        let (chunk, place) = self.urgent.pop()?;
        let call = chunk.calls()[place as usize];
        Some((chunk, call))
    }

    /// A few calls one after another from the old end, and their chunk; `None` if all have been taken.
    pub fn take_oldest(&self, most: u32) -> Option<(Arc<Chunk>, Vec<NonNull<Deferred>>)> {
        let mut untaken = self.untaken.lock();
        while let Some(chunk) = untaken.front() {
            let taken = chunk.take(most);
            if !taken.is_empty() {
                return Some((chunk.clone(), taken.to_vec()));
            }
            untaken.pop_front();
        }
        None
    }

    /// The oldest chunk with open calls up to `limit`, for who wants everything done.
    pub fn oldest_open(&self, limit: Seq) -> Option<Arc<Chunk>> {
        self.shrink();
        let chunks = self.chunks.lock();
        chunks.front().filter(|chunk| first_seq(chunk) <= limit).cloned()
    }

    /// The oldest seq that may still be pending, `None` if nothing is.
    pub fn oldest_pending(&self) -> Option<Seq> {
        self.shrink();
        self.chunks.lock().front().map(first_seq)
    }

    /// Lets chunks leave at the old end whose calls are all done.
    fn shrink(&self) {
        while let Some(chunk) = self.take_done() {
            let_go(chunk, &crossbeam_epoch::pin());
        }
    }

    /// Takes the oldest chunk out if its calls are all done; the caller [lets it go](let_go).
    pub fn take_done(&self) -> Option<Arc<Chunk>> {
        let mut chunks = self.chunks.lock();
        let done = chunks.pop_front_if(|chunk| chunk.remaining() == 0)?;
        drop(chunks);
        // Mostly its calls were all taken, but they may have been run for others, or dropped.
        self.untaken.lock().pop_front_if(|untaken| Arc::ptr_eq(untaken, &done));
        Some(done)
    }
}

/// Drops a chunk that has left where it was kept. Addresses into it may still be held by pinned epochs.
pub fn let_go(chunk: Arc<Chunk>, guard: &Guard) {
    // SAFETY: an `Arc` may be dropped by any thread; later epochs find no address into it.
    unsafe { guard.defer_unchecked(move || drop(chunk)) };
}

fn first_seq(chunk: &Arc<Chunk>) -> Seq {
    // SAFETY: the chunk is alive.
    chunk.calls().first().map_or(Seq::MAX, |call| unsafe { call.as_ref() }.seq)
}
