//! What a call leaves behind when it ends: versions, and notes about entries and records to purge.

use crate::eager::workspace::{Image, Workspace, Write};
use fabius_storage::fold::{Retired, fold};
use fabius_storage::purge::Purge;
use fabius_storage::{Cell, Version, chain, version::Contents};
use fabius_value::{ColumnMask, Datum, Deltas, Seq};
use parking_lot::Mutex;
use std::ptr::{NonNull, null_mut};

/// A record's chain is folded at every second write: each time, versions below the newest have to be fetched from
/// memory, if only to find that they stay.
const FOLD_AFTER: u32 = 2;
/// An update of all columns but the key is completed to a whole row in tables of at most so many columns: then nothing
/// below it is needed any more, and chains have a version less.
const COMPLETED_MAX: usize = 8;

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
pub fn install(
    workspace: &Workspace<'_>,
    seq: Seq,
    unread: Unread,
    retired: &mut Retired,
    purge: &Mutex<Purge>,
) {
    for write in &workspace.writes {
        // SAFETY: the call holds the record exclusively, so it is its writer.
        unsafe {
            if !supersede(write, seq, unread.held, retired) {
                put(write, seq, unread.collected, retired);
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
        // SAFETY: as above.
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
unsafe fn supersede(write: &Write<'_>, seq: Seq, held: Seq, retired: &mut Retired) -> bool {
    // SAFETY: the writer reads its own chain.
    let Some(newest) = (unsafe { write.record.head().as_ref() }) else { return false };
    let covers = match write.image {
        Image::Columns(columns, _) => {
            let key = write.table.lacks_only_key(columns).unwrap_or(ColumnMask::EMPTY);
            columns.union(key).covers(newest.columns())
        }
        Image::Row(_) | Image::Gone => false,
    };
    if newest.seq() <= held || !covers || newest.is_tombstone() {
        return false;
    }
    let version = version_of(write, seq).expect("columns make a version");
    write.record.replace(version);
    retired.version(newest.owner(), write.table.types());
    true
}

/// Puts a written row where others see it: one version, and the chain below is shortened now and then.
///
/// # Safety
/// The caller is the record's writer; nobody reads, now or later, below `collected`, and nothing below it is
/// unsettled.
pub unsafe fn put(write: &Write<'_>, seq: Seq, collected: Seq, retired: &mut Retired) {
    let Some(version) = version_of(write, seq) else { return };
    write.record.push(version);
    if write.record.count_pending() < FOLD_AFTER {
        return;
    }
    write.record.reset_pending();
    // SAFETY: the caller's promise.
    unsafe { fold(write.record, collected, write.table.types(), retired) };
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
    let head = write.record.head();
    let mut row = [Datum::Null; COMPLETED_MAX];
    let (values_mask, values) = match write.image {
        Image::Columns(columns, values) => match write.table.lacks_only_key(columns) {
            Some(key) if types.len() <= COMPLETED_MAX => {
                for (value, column) in row.iter_mut().zip(columns.union(key).iter()) {
                    *value = match columns.contains(column) {
                        true => values[columns.rank(column)],
                        // SAFETY: the epoch is pinned.
                        false => match unsafe {
                            chain::read(head, column, types[usize::from(column.0)], null_mut())
                        } {
                            Cell::Value(value) => value,
                            Cell::Absent | Cell::Pending(_) => {
                                unreachable!("a row that is updated has a key")
                            }
                        },
                    };
                }
                (columns.union(key), &row[..types.len()])
            }
            _ => (columns, values),
        },
        Image::Row(values) => (ColumnMask::first(values.len()), values),
        Image::Gone => {
            // SAFETY: the epoch is pinned.
            let was_there = unsafe { chain::is_present(head) };
            return was_there.then(|| Version::create_tombstone(seq));
        }
    };
    let deltas = Deltas::default();
    let sticky = ColumnMask::EMPTY;
    let contents = Contents { seq, values_mask, values, deltas, sticky, deferred: null_mut() };
    Some(Version::create(&contents, types))
}
