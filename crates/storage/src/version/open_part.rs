//! The open part of a version: what its deferred call has yet to say.
//!
//! Filling a sticky: the worker that claimed the deferred call stores slots and sets bits in `filled` as its program
//! goes (its own reads look there), then [`Version::settle`] clears `sticky` with release order: everyone else looks
//! at `sticky` first.
//!
//! Deltas beside stickies become values when the call is done ([`crate::chain::resolve`]), so that its version
//! shadows what is below. While they are neither, they are stickies too:
//!
//! ```text
//!             sticky   deltas    slot of d
//!  made         s         d       operand
//!  begin       s d        d       operand, then value
//!  end         s d                value
//!  settle                         value
//! ```
//!
//! So a reader that has met a delta looks at both masks again after it has read the slot.

use super::{ALL_OF_ITS_CALL, HAS_OPEN_PART, Mask, SEQ_BITS, Version};
use crate::slot;
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, Seq};
use std::sync::atomic::{
    Ordering::{Relaxed, Release},
    fence,
};

impl Version {
    /// The deferred call that its stickies name; meaningful while `sticky` is not empty.
    #[inline]
    pub fn deferred(&self) -> *mut () {
        if self.has_open_part() { self.deferred_word().load(Relaxed) } else { std::ptr::null_mut() }
    }

    /// Names the deferred call that is to fill its stickies, before anyone else can see the version; and says whether
    /// all that the call has left to do is to fill it.
    ///
    /// # Panics
    /// If it was made without any.
    #[inline]
    pub fn set_deferred(&self, deferred: *mut (), is_all: bool) {
        assert!(self.has_open_part(), "a version with stickies");
        self.deferred_word().store(deferred, Relaxed);
        if is_all {
            self.seq_and_flags.store(self.seq_and_flags.load(Relaxed) | ALL_OF_ITS_CALL, Relaxed);
        }
    }

    /// Whether to fill it is all that its deferred call has left to do.
    #[inline]
    pub fn is_all_of_its_call(&self) -> bool {
        let flags = ALL_OF_ITS_CALL | HAS_OPEN_PART;
        self.seq_and_flags.load(Relaxed) & flags == flags
    }

    /// Stores a sticky column's value, for the worker that claimed the deferred call. A second store
    /// replaces the first and gives back its block, if it had one: the worker frees it when it no
    /// longer holds a datum of it.
    #[must_use]
    pub fn fill(&self, column: ColumnId, value: Datum<'_>, data_type: DataType) -> Option<u64> {
        let bit = ColumnMask::of(column).0;
        debug_assert!(self.sticky().contains(column), "only stickies are filled");
        let stored = slot::store(value, data_type);
        let slot = self.slot(column);
        // Nobody else stores there until the version is settled.
        let before = slot.load(Relaxed);
        slot.store(stored, Relaxed);
        let (filled, nulls) = (self.filled().0, self.nulls().0);
        self.set_mask(Mask::Nulls, if value.is_null() { nulls | bit } else { nulls & !bit }, Relaxed);
        self.set_mask(Mask::Filled, filled | bit, Relaxed);
        (filled & bit != 0 && slot::may_allocate(data_type) && slot::is_long(before)).then_some(before)
    }

    /// Has delta columns treated as stickies of the deferred call, which is running, until their values are there.
    pub(crate) fn begin_resolving(&self, deltas: ColumnMask) {
        debug_assert!(!self.sticky().is_empty() && self.deltas().covers(deltas));
        self.set_mask(Mask::Sticky, self.sticky().union(deltas).0, Relaxed);
        // Whoever reads a value as an operand has to see that.
        fence(Release);
    }

    /// Replaces the operand of a delta by a value that is not long.
    pub(crate) fn resolve(&self, column: ColumnId, value: Datum<'_>, data_type: DataType) {
        debug_assert!(!slot::may_allocate(data_type) && !value.is_null());
        self.slot(column).store(slot::store(value, data_type), Relaxed);
    }

    /// Ends what [`begin_resolving`](Version::begin_resolving) began: some are plain values once the version settles,
    /// the others deltas as before.
    pub(crate) fn end_resolving(&self, deltas: ColumnMask, resolved: ColumnMask) {
        self.set_mask(Mask::Deltas, self.deltas().without(resolved).0, Release);
        self.set_mask(Mask::Sticky, self.sticky().without(deltas.without(resolved)).0, Release);
    }

    /// Publishes what was filled: the version has no stickies any more.
    pub fn settle(&self) {
        if self.has_open_part() {
            self.set_mask(Mask::Sticky, 0, Release);
        }
    }

    /// Merges one more delta into a version that only its writer can see, moving it up to `seq`;
    /// false (and nothing changed) if the combined operand would not fit.
    pub fn merge_delta(&self, seq: Seq, column: ColumnId, operand: Datum<'_>, data_type: DataType) -> bool {
        debug_assert!(self.deltas().contains(column));
        // SAFETY: the slot stays as it is until it is replaced below.
        let before = unsafe { self.value(column, data_type) };
        let Some(merged) = self.operator(column).combine(before, operand) else { return false };
        if data_type.is_wide_numeric() {
            // Wide operands are blocks on the heap that a reader may be looking at.
            return false;
        }
        if let Datum::Numeric(wide) = merged
            && i64::try_from(wide).is_err()
        {
            return false;
        }
        self.slot(column).store(slot::store(merged, data_type), Relaxed);
        let flags = self.seq_and_flags.load(Relaxed) & !((1 << SEQ_BITS) - 1);
        self.seq_and_flags.store(flags | seq.0, Relaxed);
        true
    }

    /// Puts a merged delta back to what it was, with its seq (undoing [`Version::merge_delta`]).
    pub fn restore_delta(&self, seq: Seq, column: ColumnId, slot: u64) {
        self.slot(column).store(slot, Relaxed);
        let flags = self.seq_and_flags.load(Relaxed) & !((1 << SEQ_BITS) - 1);
        self.seq_and_flags.store(flags | seq.0, Relaxed);
    }
}
