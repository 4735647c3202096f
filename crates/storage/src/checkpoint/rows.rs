//! Rows on their way into a checkpoint, and back into a table.

use crate::version::Contents;
use crate::{Record, Table, Version, chain};
use crossbeam_epoch::Guard;
use fabius_value::{ColumnMask, Datum, Deltas, Error, IndexId, Key, Result, Seq, SqlState};
use std::ptr::NonNull;

/// The records of a table whose rows are there at `seq`, in key order for ordered tables.
///
/// They stay where they are for as long as the caller holds a snapshot at `seq`, also under other epochs
/// than `guard`'s: a key is purged only when `collected` has reached the seq at which its row went, and a
/// snapshot holds that back.
pub fn present(table: &Table, seq: Seq, guard: &Guard) -> Vec<NonNull<Record>> {
    let mut records = Vec::new();
    table.for_each_record(guard, |record| {
        // SAFETY: the epoch is pinned.
        if unsafe { chain::is_present(record.visible(seq)) } {
            records.push(NonNull::from(record));
        }
    });
    records
}

/// Puts a row into a table and its indexes, as of `seq`; `key` is room to work in. Nobody else uses the
/// table.
///
/// # Errors
/// `XX001` if its key is there already, `54000` if one of its keys is too long.
pub fn restore(table: &Table, seq: Seq, row: &[Datum<'_>], key: &mut Key, guard: &Guard) -> Result<()> {
    table.encode_row_key(row, key)?;
    let (record, is_new) = table.find_or_create(key, guard);
    if !is_new {
        return Err(Error::new(SqlState::DATA_CORRUPTED, "two rows have the same key"));
    }
    let contents = Contents {
        seq,
        values_mask: ColumnMask::first(row.len()),
        values: row,
        deltas: Deltas::default(),
        sticky: ColumnMask::EMPTY,
        deferred: std::ptr::null_mut(),
    };
    record.push(Version::create(&contents, table.types()));
    for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
        table.encode_entry(index, |column| row[usize::from(column.0)], record.key(), key)?;
        table.add_entry(index, key, record, guard);
    }
    Ok(())
}
