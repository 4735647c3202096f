//! What a call leaves behind when it ends: versions, and notes about entries and records to purge.

use crate::eager::trail::{Pushed, Trail};
use crate::eager::workspace::{Image, Workspace, Write};
use fabius_storage::fold::fold_with_others;
use fabius_storage::purge::Purge;
use fabius_storage::version::renew;
use fabius_storage::{Version, chain};
use fabius_value::{ColumnMask, Datum, Seq};
use parking_lot::Mutex;
use std::ptr::NonNull;

/// After so many versions of some columns of a row, those at the bottom of its chain are merged into one.
const MERGE_AFTER: u32 = 16;

/// Which versions nobody is going to read any more.
#[derive(Clone, Copy, Debug)]
pub struct Unread {
    /// All but the newest at or below this.
    pub collected: Seq,
    /// All but the newest of those above this: readers stand here at most, and go on past everything that has been
    /// written so far.
    pub held: Seq,
}

/// Puts what a call has written where others see it. The call holds its locks and has its seq.
pub fn install<'a>(
    workspace: &Workspace<'a>,
    seq: Seq,
    unread: Unread,
    trail: &mut Trail<'a>,
    purge: &Mutex<Purge>,
) {
    for write in &workspace.writes {
        // SAFETY: the call holds the record exclusively, so it is its writer.
        unsafe {
            if !supersede(write, seq, unread.held, trail)
                && let Some(pushed) = put(write, seq, unread.collected, trail)
            {
                trail.push(write.table, write.record, pushed);
            }
        }
    }
    if workspace.left.is_empty() && workspace.touched.is_empty() && !has_deletions(workspace) {
        return;
    }
    let mut purge = purge.lock();
    for entry in &workspace.left {
        let head = entry.record.head();
        // The call may have brought the row back to these values.
        // SAFETY: the epoch is pinned.
        let is_right =
            unsafe { chain::is_present(head) && entry.table.entry_is_current(entry.index, &entry.key, head) };
        if !is_right {
            purge.entry(seq, entry.table, entry.record, entry.index, (*entry.key).clone());
        }
    }
    let deleted = workspace.writes.iter().filter(|write| matches!(write.image, Image::Gone));
    let records = workspace.touched.iter().copied().chain(deleted.map(|write| (write.table, write.record)));
    for (table, record) in records {
        // SAFETY: the epoch is pinned.
        if !unsafe { chain::is_present(record.head()) } {
            purge.record(seq, table, record);
        }
    }
}

/// Puts columns of a row in the place of those that were written above `held`, if it has written all of these, so that
/// chains do not grow while readers are held back; whether it has.
///
/// # Safety
/// The caller is the record's writer; whoever reads, now or later, does so at or below `held`, or at or above `seq`.
#[inline]
unsafe fn supersede(write: &Write<'_>, seq: Seq, held: Seq, trail: &mut Trail<'_>) -> bool {
    if held == Seq(u64::MAX) {
        return false;
    }
    // SAFETY: the writer reads its own chain.
    let Some(newest) = (unsafe { write.record.head().as_ref() }) else { return false };
    let covers = match write.image {
        Image::Columns(columns, _) => {
            let key = write.table.lacks_only_key(columns).unwrap_or(ColumnMask::EMPTY);
            columns.union(key).covers(newest.columns())
        }
        Image::Row(_) | Image::Gone => false,
    };
    if newest.seq() <= held || !covers || newest.is_tombstone() || newest.has_twin() {
        return false;
    }
    let version = version_of(write, seq).expect("columns make a version");
    write.record.replace(version);
    // SAFETY: unlinked by the line above; it is read in the epoch that is pinned.
    unsafe { trail.retired.version(newest.owner(), write.table.types()) };
    true
}

/// Puts a written row where others see it, as one version. If there is one below, the record belongs in the trail with
/// what this gives.
///
/// # Safety
/// The caller is the record's writer; nobody reads, now or later, below `collected`, and nothing below it is
/// unsettled.
pub unsafe fn put(write: &Write<'_>, seq: Seq, collected: Seq, trail: &mut Trail<'_>) -> Option<Pushed> {
    let version = version_of(write, seq)?;
    let record = write.record;
    // SAFETY: the writer reads its own chain.
    let below = unsafe { record.head().as_ref() };
    record.push(version);
    // SAFETY: just pushed; nobody but its writer takes the newest version out.
    let this = unsafe { version.as_ref() };
    let pushed = if this.is_like(below?) { Pushed::OnOneLikeIt(version) } else { Pushed::OnAnother };
    if !this.is_whole() && record.count_pending() >= MERGE_AFTER {
        record.reset_pending();
        // SAFETY: an epoch is pinned, and everything at or below `collected` is settled, as whoever calls this sees to.
        unsafe { fold_with_others(record, collected, write.table.types(), &mut trail.retired) };
    }
    Some(pushed)
}

/// Puts a row that only readers at their seqs meet where others see it: numbers [take
/// turns](Version::of_number_with_twin) then, and a record whose numbers do is in no trail.
///
/// # Safety
/// As [`put`]. Whoever reads the record without a snapshot comes before the writer or after.
pub unsafe fn put_in_turns(
    write: &Write<'_>,
    seq: Seq,
    collected: Seq,
    trail: &mut Trail<'_>,
) -> Option<Pushed> {
    let Write { table, record, image } = write;
    if let Image::Columns(column, [Datum::Int(number)]) = *image
        && table.types().len() > 1
        && table.lacks_only_key(column).is_none()
    {
        // SAFETY: the writer calls this with an epoch pinned, as whoever calls this sees to.
        if unsafe { renew(record, seq, column, *number, collected) } {
            return None;
        }
        // SAFETY: the writer reads its own chain.
        let newest = unsafe { record.head().as_ref() }?;
        if newest.may_be_followed_by_twins(column) {
            record.push(Version::of_number_with_twin(seq, column, *number, table.types()));
            return (!newest.is_whole()).then_some(Pushed::OnAnother);
        }
    }
    // SAFETY: the writer calls this with an epoch pinned, as whoever calls this sees to.
    unsafe { put(write, seq, collected, trail) }
}

/// Ends a call that has come to nothing: notes what it has made in indexes. The call holds its locks;
/// `seq` is at or after everything that has been given a seq.
pub fn abandon(workspace: &Workspace<'_>, seq: Seq, purge: &Mutex<Purge>) {
    if workspace.entered.is_empty() && workspace.touched.is_empty() {
        return;
    }
    let mut purge = purge.lock();
    for entry in &workspace.entered {
        purge.entry(seq, entry.table, entry.record, entry.index, (*entry.key).clone());
    }
    for (table, record) in &workspace.touched {
        purge.record(seq, table, record);
    }
}

fn has_deletions(workspace: &Workspace<'_>) -> bool {
    workspace.writes.iter().any(|write| matches!(write.image, Image::Gone))
}

/// The version that a write makes; `None` if it changes nothing.
fn version_of(write: &Write<'_>, seq: Seq) -> Option<NonNull<Version>> {
    let types = write.table.types();
    match write.image {
        Image::Columns(columns, values) => {
            // An update of all columns but the key becomes a whole row: then nothing below it is needed any more.
            let row = write.table.lacks_only_key(columns).and_then(|_| base_of(write));
            Some(match row {
                Some(row) => Version::of_changed_row(row, seq, columns, values, types),
                None => Version::of_values(seq, columns, values, types),
            })
        }
        Image::Row(values) => Some(Version::of_values(seq, ColumnMask::first(values.len()), values, types)),
        Image::Gone => {
            // SAFETY: the epoch is pinned.
            let was_there = unsafe { chain::is_present(write.record.head()) };
            was_there.then(|| Version::create_tombstone(seq))
        }
    }
}

/// The whole row that a record's chain stands on; all versions above it have the same key.
fn base_of<'a>(write: &Write<'a>) -> Option<&'a Version> {
    // SAFETY: the caller holds the record exclusively and has the epoch pinned: what is linked stays readable.
    let base = unsafe { write.record.head().as_ref()?.base().as_ref() };
    base.filter(|base| base.is_plain_row())
}
