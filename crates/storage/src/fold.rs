//! Shortening chains behind the oldest reader, and giving memory back.
//!
//! ```text
//! head                collected = 60
//!  |   seq 90   seq 70  |  seq 55    seq 40    seq 30    seq 10
//!  v   {qty} -> {qty} ->|-> {qty} -> {qty} --> {ytd +5} -> {ytd +2} -> whole row
//!                           pivot    shadowed    \--- merged into one ---/
//! ```
//!
//! The *pivot* is the newest version at or below `collected`: every present and future reader begins
//! at it or above, and deferred calls hold pointers only to such versions. So the pivot stays where it
//! is, and what is below it may be unlinked (if it is shadowed) or replaced by one merged version.
//! Nothing is changed in place: a reader that is half way down goes on over the old versions, which
//! are freed after its epoch has ended.
//!
//! Beside a record's writer, whoever comes may shorten its chain, one at a time ([`shorten`], [`shorten_at`]): the
//! writer only touches what is above the pivot.
//!
//! What unsafe code stands on here, by name:
//!
//! - *unlinked*: what is given to [`Retired`] cannot be reached by anybody who pins an epoch from now on, and is
//!   given once. Whoever takes a version out of a chain keeps that.
//! - *one shortener*: below a record's pivot one thread at a time takes versions out ([`Record::begin_shortening`]),
//!   so that what it finds linked stays so until it has taken it out itself.
//! - *pinned*: a version that was linked in an epoch that is still pinned is not freed.

use crate::{Record, Version, block, chain, slot, version::Contents};
use crossbeam_epoch::Guard;
use fabius_value::{ColumnId, ColumnMask, DataType, Deltas, Seq};
use std::ptr::NonNull;
use std::sync::Arc;

/// More versions than this below the pivot are merged into one.
const BELOW_PIVOT_MAX: usize = 2;

/// Versions handed to the collector at a time: few enough that they are still in the cache.
const HAND_OVER: usize = 512;

/// A version that is unlinked.
#[derive(Clone, Copy)]
enum Unlinked {
    /// It is one block, of so many bytes, and is not looked at again.
    Block(NonNull<u8>, u32),
    /// It may have blocks besides; with the place of its table.
    Version(NonNull<Version>, u32),
}

/// Versions that are unlinked and wait for the epochs pinned now to end.
#[derive(Default)]
pub struct Retired {
    versions: Vec<Unlinked>,
    records: Vec<NonNull<Record>>,
    /// The types of tables, and which columns may be long.
    tables: Vec<(Arc<[DataType]>, ColumnMask)>,
    /// The place of the table that came last.
    last: u32,
}

// SAFETY: unlinked: nobody else gives back what is in the list.
unsafe impl Send for Retired {}

impl Retired {
    /// Makes room for so many versions, and the usual number at most.
    pub fn reserve(&mut self, count: usize) {
        self.versions.reserve(count.min(HAND_OVER));
    }

    /// Adds a version.
    ///
    /// # Safety
    /// *Unlinked*; it can still be read.
    #[inline]
    pub unsafe fn version(&mut self, version: NonNull<Version>, types: &Arc<[DataType]>) {
        // SAFETY: it can be read, as whoever calls this sees to.
        let this = unsafe { version.as_ref() };
        this.mark_unlinked();
        if this.has_twin() {
            if this.is_last_twin() {
                let (block, bytes) = Version::twins(version);
                self.versions.push(Unlinked::Block(block, bytes as u32));
            }
            return;
        }
        let long_columns = self.long_columns(types);
        self.versions.push(if this.columns_with_blocks(long_columns).is_empty() {
            Unlinked::Block(version.cast(), this.own_bytes() as u32)
        } else {
            Unlinked::Version(version, self.last)
        });
    }

    /// Adds a version that [is like](Version::is_like) another one, without looking at it.
    ///
    /// # Safety
    /// *Unlinked*, and it is like that one.
    #[inline]
    unsafe fn alike(&mut self, version: *const Version, like: &Version, types: &Arc<[DataType]>) {
        let version = Version::owner_of(version);
        let long_columns = self.long_columns(types);
        self.versions.push(if like.columns().intersects(long_columns) {
            Unlinked::Version(version, self.last)
        } else {
            Unlinked::Block(version.cast(), like.own_bytes() as u32)
        });
    }

    /// Which columns of a table may be long; the table is the last one from now on.
    #[inline]
    fn long_columns(&mut self, types: &Arc<[DataType]>) -> ColumnMask {
        if !self.tables.get(self.last as usize).is_some_and(|known| Arc::ptr_eq(&known.0, types)) {
            self.last = self.place(types);
        }
        self.tables[self.last as usize].1
    }

    /// The place of a table.
    fn place(&mut self, types: &Arc<[DataType]>) -> u32 {
        let known = self.tables.iter().position(|known| Arc::ptr_eq(&known.0, types));
        let place = known.unwrap_or_else(|| {
            self.tables.push((types.clone(), slot::long_columns(types)));
            self.tables.len() - 1
        });
        place as u32
    }

    /// Puts what waits in the order of its addresses, so that blocks are taken again in that order: whoever goes from
    /// one to the next stays on the same pages for a while, whose addresses the processor has translated already. For
    /// much that was taken here and there.
    pub fn sort_by_address(&mut self) {
        self.versions.sort_unstable_by_key(|unlinked| match unlinked {
            Unlinked::Block(block, _) => block.as_ptr().addr(),
            Unlinked::Version(version, _) => version.as_ptr().addr(),
        });
    }

    /// Adds a record whose versions were added before.
    ///
    /// # Safety
    /// *Unlinked*: it is in no index any more.
    pub unsafe fn record(&mut self, record: NonNull<Record>) {
        self.records.push(record);
    }

    /// Whether so many versions wait that they should be handed over.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.versions.len() >= HAND_OVER
    }

    /// How many versions wait.
    pub fn len(&self) -> usize {
        self.versions.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty() && self.records.is_empty()
    }

    /// Hands everything to the epoch's garbage collector as one piece, and tells it to free what nobody can see any
    /// more: garbage comes in large pieces and pins are rare. Leaves the list empty.
    pub fn hand_over(&mut self, guard: &Guard) {
        if !self.is_empty() {
            self.hand_over_unsaid(guard);
            guard.flush();
        }
    }

    /// Hands everything to the epoch's garbage collector without telling it, for a thread that others wait for: it
    /// flushes the guard when they do not any more.
    pub fn hand_over_unsaid(&mut self, guard: &Guard) {
        if !self.is_empty() {
            let batch = std::mem::take(self);
            // SAFETY: unlinked: once the epochs pinned now have ended, nobody reads what the batch has. It is sent to
            // whoever collects.
            unsafe { guard.defer_unchecked(move || batch.free()) };
        }
    }

    /// Frees everything at once.
    ///
    /// # Safety
    /// No epoch that was pinned when something was added is pinned any more.
    unsafe fn free(self) {
        for (at, unlinked) in self.versions.iter().enumerate() {
            if let Some(Unlinked::Version(later, _)) = self.versions.get(at + 8) {
                Version::prefetch_at(later.as_ptr());
            }
            if let Some(Unlinked::Version(later, table)) = self.versions.get(at + 3) {
                // SAFETY: it is given back only when its turn comes.
                let later = unsafe { later.as_ref() };
                later.prefetch_values(later.columns_with_blocks(self.tables[*table as usize].1));
            }
            // SAFETY: unlinked, and nobody is left who could have found it before; a block was taken with this size.
            unsafe {
                match *unlinked {
                    Unlinked::Block(block, bytes) => block::give(block, bytes as usize),
                    Unlinked::Version(version, table) => {
                        Version::free(version, self.tables[table as usize].1)
                    }
                }
            }
        }
        for record in self.records {
            // SAFETY: unlinked, and nobody is left who could have found it before.
            unsafe { Record::free(record) };
        }
    }
}

/// Shortens a record's chain behind `collected`; called by the record's writer with an epoch pinned.
///
/// # Safety
/// No reader begins below the newest version at or below `collected`, and everything at or below
/// `collected` is settled.
pub unsafe fn fold(record: &Record, collected: Seq, types: &Arc<[DataType]>, retired: &mut Retired) {
    // SAFETY: the record's writer calls this, and nobody shortens beside it; what is at or below `collected` is
    // settled.
    unsafe {
        if let Some((pivot, kept)) = shorten_below(record, collected, types, retired)
            && kept > BELOW_PIVOT_MAX
        {
            merge_below(record, pivot, types, retired);
        }
    }
}

/// Shortens a chain beside its writers, who push versions meanwhile, and shorten it by this or by
/// [`fold_with_others`]. Nothing is merged: a version that is pushed meanwhile may stand on what is there.
///
/// # Safety
/// As [`fold`]; an epoch is pinned, and the record is not freed meanwhile.
#[inline]
pub unsafe fn shorten(record: &Record, collected: Seq, types: &Arc<[DataType]>, retired: &mut Retired) {
    // SAFETY: the epoch is pinned.
    let Some(head) = (unsafe { record.head().as_ref() }) else { return };
    // Below a version that has just been shortened, or stands on a row that nothing is below, nothing can go.
    let is_short = head.next().is_null() || head.is_bare() && head.next() == head.base();
    if is_short || head.seq() > collected && !record.is_fold_due(collected) {
        return;
    }
    if !record.begin_shortening() {
        return;
    }
    // SAFETY: one shortener, begun above; pushed versions are above the pivot, and an epoch is pinned. The head is
    // asked for again: the one above may have been taken out before.
    unsafe {
        match record.head().as_ref() {
            Some(head) if head.is_plain_row() && head.seq() <= collected => {
                let below = head.next();
                head.set_next(std::ptr::null());
                head.mark_bare();
                retire_chain(below, types, retired);
            }
            _ => _ = shorten_below(record, collected, types, retired),
        }
    }
    record.end_shortening();
}

/// Does what [`shorten`] does for a version that [is like](Version::is_like) the one on which it was pushed, which is
/// not looked at again. Whether that is all there was to do: not if another version has been pushed, or the chain has
/// been shortened, or somebody still reads there.
///
/// # Safety
/// As [`shorten`]. The version is of this record, and was pushed when the caller's epoch had been pinned already; no
/// deferred call has pointers to the record's versions.
#[inline]
pub unsafe fn shorten_alike(
    record: &Record,
    version: NonNull<Version>,
    collected: Seq,
    types: &Arc<[DataType]>,
    retired: &mut Retired,
) -> bool {
    // SAFETY: pinned: it was pushed in the epoch that is pinned.
    let this = unsafe { version.as_ref() };
    if this.seq() > collected || !std::ptr::eq(record.head(), this) || !record.begin_shortening() {
        return false;
    }
    // Asked again: the one above may have been shortened before. Below what the version was pushed on is their base,
    // or has been: where that, or a merged one, has come up, nothing is left to take out.
    let (below, base) = (this.next(), this.base());
    let is_there = std::ptr::eq(record.head(), this) && below != base;
    if is_there {
        this.set_next(base);
        // SAFETY: one shortener: it was linked below `this` until just now, and is like it.
        unsafe { retired.alike(below, this, types) };
        record.fold_after(pushes_to_merge(1));
    }
    record.end_shortening();
    is_there
}

/// Takes out what a version shadows that a deferred call has just settled, beside the record's writer: calls that
/// came later may have left many versions on top, which are not looked at. Does nothing while another one shortens
/// the chain.
///
/// # Safety
/// As [`fold`]. The version is of this record, at or below `collected`, and was linked when the caller's epoch had been
/// pinned already.
pub unsafe fn shorten_at(record: &Record, version: &Version, types: &Arc<[DataType]>, retired: &mut Retired) {
    if version.next().is_null() || !record.begin_shortening() {
        return;
    }
    if !version.is_unlinked() {
        // SAFETY: one shortener, begun above; the version is linked, and at or below the pivot.
        unsafe { cut_below(version, BELOW_PIVOT_MAX, types, retired) };
    }
    record.end_shortening();
}

/// Does what [`fold`] does where others may [`shorten`] the chain: does nothing while one does.
///
/// # Safety
/// As [`fold`].
pub unsafe fn fold_with_others(
    record: &Record,
    collected: Seq,
    types: &Arc<[DataType]>,
    retired: &mut Retired,
) {
    if record.begin_shortening() {
        // SAFETY: one shortener, begun above; readers and `collected` are as whoever calls this sees to.
        unsafe { fold(record, collected, types, retired) };
        record.end_shortening();
    }
}

/// Takes out what the pivot and versions below it shadow; gives the pivot, and how many versions below it stay.
///
/// # Safety
/// As [`fold`], but for versions that the record's writer may push meanwhile.
unsafe fn shorten_below<'r>(
    record: &'r Record,
    collected: Seq,
    types: &Arc<[DataType]>,
    retired: &mut Retired,
) -> Option<(&'r Version, usize)> {
    let mut above = 0;
    let mut at = record.head();
    // SAFETY: one shortener: nobody else takes versions out.
    let pivot = loop {
        let Some(version) = (unsafe { at.as_ref() }) else {
            record.fold_after(above);
            return None;
        };
        if version.seq() <= collected {
            break version;
        }
        above += 1;
        at = version.next();
    };
    if pivot.next().is_null() || !pivot.sticky().is_empty() {
        record.fold_after(above);
        return None;
    }
    // SAFETY: one shortener, as whoever calls this sees to; the pivot is linked.
    let kept = unsafe { cut_below(pivot, usize::MAX, types, retired) };
    record.fold_after(above.max(pushes_to_merge(kept)));
    Some((pivot, kept))
}

/// Takes out what a settled version and those below it shadow; gives how many below it stay. Once `most` stay, the
/// rest is not looked at.
///
/// # Safety
/// The version is linked, and it or a newer one is the pivot; nobody else takes versions out.
unsafe fn cut_below(pivot: &Version, most: usize, types: &Arc<[DataType]>, retired: &mut Retired) -> usize {
    // A whole row at the end of a chain stays: most often nothing else is there, and it is not even looked at.
    let end = if pivot.is_bare() { pivot.base() } else { std::ptr::null() };
    let all = ColumnMask::first(types.len());
    let mut covered = if pivot.is_tombstone() { all } else { pivot.columns().without(pivot.deltas()) };
    let mut last = pivot;
    let mut kept = 0;
    let mut ended = pivot.is_tombstone();
    let mut at = pivot.next();
    // SAFETY: linked, for every version below.
    while let Some(version) = unsafe { at.as_ref() } {
        if at == end {
            kept += 1;
            break;
        }
        let below = version.next();
        if ended || covered.covers(version.columns()) && !version.is_tombstone() {
            last.set_next(below);
            // SAFETY: one shortener: it was linked until just now.
            unsafe { retired.version(version.owner(), types) };
        } else if version.is_tombstone() {
            // A whole row stands above every tombstone, so it was covered; be safe all the same.
            last.set_next(below);
            // SAFETY: one shortener: it was linked until just now.
            unsafe { retired.version(version.owner(), types) };
            ended = true;
        } else {
            covered = covered.union(version.columns().without(version.deltas()));
            last = version;
            kept += 1;
            if kept == most {
                return kept;
            }
        }
        at = below;
    }
    pivot.mark_bare();
    kept
}

/// Pushes until there is something to merge, while so many versions below the pivot are kept: until then a fold
/// would most often walk over them in vain.
fn pushes_to_merge(kept: usize) -> u32 {
    match kept {
        0 => 0,
        1..=BELOW_PIVOT_MAX => (BELOW_PIVOT_MAX + 1 - kept) as u32,
        // Just one is left when they have been merged.
        _ => BELOW_PIVOT_MAX as u32,
    }
}

/// Replaces everything below the pivot by one version of the same meaning.
///
/// # Safety
/// The record's writer calls this as the *one shortener*; everything below the pivot is settled.
unsafe fn merge_below(record: &Record, pivot: &Version, types: &Arc<[DataType]>, retired: &mut Retired) {
    let first = pivot.next();
    let mut columns = ColumnMask::EMPTY;
    let mut has_base = false;
    let mut seq = Seq::ZERO;
    let mut at = first;
    // SAFETY: one shortener: what is linked stays.
    while let Some(version) = unsafe { at.as_ref() } {
        if seq == Seq::ZERO {
            seq = version.seq();
        }
        if !version.sticky().is_empty() {
            return;
        }
        columns = columns.union(version.columns());
        has_base = version.columns().covers(ColumnMask::first(types.len()));
        at = version.next();
    }
    if !has_base {
        return;
    }
    // SAFETY: one shortener: the chain stays until it is replaced below.
    let newest = |column| unsafe { newest_with(first, column) };
    let is_computed =
        |&column: &ColumnId| !newest(column).can_give_away(column, types[usize::from(column.0)]);
    let computed: ColumnMask = columns.iter().filter(is_computed).collect();
    let mut values = Vec::new();
    for column in computed.iter() {
        // SAFETY: everything below the pivot is settled and stays until the epoch has ended.
        match unsafe { chain::read(first, column, types[column.0 as usize], std::ptr::null_mut()) } {
            chain::Cell::Value(value) => values.push(value),
            _ => unreachable!("a settled chain that ends in a whole row has every column"),
        }
    }
    let contents = Contents {
        seq,
        values_mask: computed,
        values: &values,
        deltas: Deltas::default(),
        sticky: ColumnMask::EMPTY,
        deferred: std::ptr::null_mut(),
    };
    let taken_over = columns.without(computed);
    let merged = Version::create_with(&contents, taken_over, |column| newest(column).word_of(column), types);
    // SAFETY: just made, and nobody else's until it is linked below.
    let merged = unsafe { merged.as_ref() };
    // SAFETY: it stands above nothing.
    unsafe { merged.place_above(std::ptr::null()) };
    pivot.set_next(merged);
    // Whoever stood on the old base stands on the new one, and reaches no further than the pivot.
    let mut above = Vec::new();
    let mut at = record.head();
    // SAFETY: the writer calls this: nobody else pushes, and below the pivot it is the one shortener.
    while let Some(version) = unsafe { at.as_ref() } {
        if version.is_whole() {
            above.clear();
        } else {
            above.push(version);
        }
        if std::ptr::eq(version, pivot) {
            break;
        }
        at = version.next();
    }
    let mut reach = ColumnMask::EMPTY;
    for version in above.into_iter().rev() {
        reach = reach.union(version.columns());
        version.set_base(merged, reach);
    }
    let mut open = taken_over;
    let mut at = first;
    // SAFETY: one shortener: what was there is retired only behind this loop.
    while let Some(version) = unsafe { at.as_ref() } {
        at = version.next();
        let here = version.columns().intersection(open);
        if !here.is_empty() && !version.has_values() {
            version.give_away(here);
        }
        open = open.without(version.columns());
    }
    // SAFETY: unlinked: the merged one is in their place.
    unsafe { retire_chain(first, types, retired) };
}

/// The newest version from this one down that says something about a column, which one does.
///
/// # Safety
/// The chain from `first` on stays as it is for as long as what is returned is used.
unsafe fn newest_with<'a>(first: *const Version, column: ColumnId) -> &'a Version {
    let mut at = first;
    // SAFETY: the chain stays, as whoever calls this sees to.
    while let Some(version) = unsafe { at.as_ref() } {
        let version = version.shortcut(ColumnMask::of(column)).unwrap_or(version);
        if version.columns().contains(column) {
            return version;
        }
        at = version.next();
    }
    unreachable!("a chain that ends in a whole row has every column")
}

/// Retires a record's whole chain, and the record.
///
/// # Safety
/// The record is *unlinked*: in no index any more. Nobody pushes to its chain, nor shortens it, from now on.
pub unsafe fn retire_record(record: NonNull<Record>, types: &Arc<[DataType]>, retired: &mut Retired) {
    // SAFETY: with the record all of its chain is unlinked, and nobody changes it any more.
    unsafe {
        retire_chain(record.as_ref().head(), types, retired);
        retired.record(record);
    }
}

/// Retires a version and all below it.
///
/// # Safety
/// They are unlinked, and nobody else retires them.
#[inline]
unsafe fn retire_chain(first: *const Version, types: &Arc<[DataType]>, retired: &mut Retired) {
    let mut at = first;
    // SAFETY: unlinked, and each can be read, since nobody else retires them.
    while let Some(version) = unsafe { at.as_ref() } {
        at = version.next();
        // SAFETY: unlinked, and not retired yet.
        unsafe { retired.version(version.owner(), types) };
    }
}
