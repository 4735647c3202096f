//! The records that a turn has written.
//!
//! A version is needed for as long as somebody reads before the one above it. Most often nobody does, so chains are
//! shortened as soon as the turn ends: memory that a call has just read is given back while it is still in the
//! cache, and taken again by the next calls. A record has one version then, and what is written takes no new memory.
//!
//! ```text
//! turn           write a   write b   write a ... end: promised moves on, readers are asked
//! chain of a     3 -> 2              4 -> 3 -> 2      4
//! ```
//!
//! A chain that somebody still needs is shortened by whoever writes its record next.

use crossbeam_epoch::Guard;
use fabius_storage::fold::{Retired, shorten, shorten_alike};
use fabius_storage::index::prefetch;
use fabius_storage::{Record, Table, Version};
use fabius_value::Seq;
use std::ptr::NonNull;
use std::sync::Arc;

/// Records between one stage of bringing chains near and the next, and the chain that is shortened.
const AHEAD: usize = 6;

/// A version that has been pushed on another one.
#[derive(Clone, Copy)]
pub enum Pushed {
    /// On one that [it is like](Version::is_like), which is not needed near again.
    OnOneLikeIt(NonNull<Version>),
    /// On any other.
    OnAnother,
}

/// A record whose chain has become longer.
struct Written<'a> {
    table: &'a Arc<Table>,
    record: &'a Record,
    pushed: Pushed,
}

/// Records whose chains have become longer.
#[derive(Default)]
pub struct Trail<'a> {
    written: Vec<Written<'a>>,
    /// Versions that are unlinked already.
    pub retired: Retired,
}

impl<'a> Trail<'a> {
    /// Adds a record, and what has been pushed there.
    #[inline]
    pub fn push(&mut self, table: &'a Arc<Table>, record: &'a Record, pushed: Pushed) {
        self.written.push(Written { table, record, pushed });
    }

    /// Takes out what nobody reads any more, now or later, who reads at or above `collected`; `guard` has been pinned
    /// since before the first record was added.
    pub fn end(mut self, collected: Seq, guard: &Guard) {
        self.retired.reserve(self.written.len());
        for (at, Written { table, record, pushed }) in self.written.iter().enumerate() {
            // What a long turn has written first is not in the cache any more.
            if let Some(last) = self.written.get(at + 3 * AHEAD) {
                prefetch(last.record);
            }
            match self.written.get(at + 2 * AHEAD) {
                Some(Written { pushed: Pushed::OnOneLikeIt(version), .. }) => prefetch(version.as_ptr()),
                Some(later) => prefetch(later.record.head()),
                None => {}
            }
            if let Some(Written { record: next, pushed: Pushed::OnAnother, .. }) =
                self.written.get(at + AHEAD)
            {
                // SAFETY: an epoch is pinned.
                unsafe { next.prefetch_below() };
            }
            let (types, retired) = (table.types(), &mut self.retired);
            // SAFETY: an epoch is pinned, as whoever calls this sees to, and an eager engine leaves nothing
            // unsettled; the record is in the trail of a turn, and none is freed while one goes on.
            unsafe {
                let is_done = match *pushed {
                    Pushed::OnOneLikeIt(version) => shorten_alike(record, version, collected, types, retired),
                    Pushed::OnAnother => false,
                };
                if !is_done {
                    shorten(record, collected, types, retired);
                }
            }
            if self.retired.is_full() {
                self.retired.hand_over(guard);
            }
        }
        self.retired.hand_over(guard);
    }
}
