//! What a graph has made of a record so far (LADS, section 4.2.2).
//!
//! The record itself is written once, when all actions of the graph have been executed: what the last write
//! left becomes one version, with the last writer's seq. Until then, values stay here. The record has a
//! pointer to its overlay, as it has one to its action queue in the paper.

use bumpalo::Bump;
use fabius_engine::eager::workspace::Image;
use fabius_storage::{Cell as Value, Record, Table, chain};
use fabius_value::{ColumnId, ColumnMask, Datum, Seq};
use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A record as the graph has left it so far.
pub struct Overlay<'a> {
    /// Its table.
    pub table: &'a Arc<Table>,
    /// The record.
    pub record: &'a Record,
    image: Cell<Image<'a>>,
    seq: Cell<Seq>,
}

impl<'a> Overlay<'a> {
    /// What is to be written.
    pub fn image(&self) -> Image<'a> {
        self.image.get()
    }

    /// The seq of the last writer.
    pub fn seq(&self) -> Seq {
        self.seq.get()
    }
}

/// The overlay of a record.
///
/// # Safety
/// It is the caller's turn at the record, in a graph whose memory lives as long as `'a`.
#[inline]
pub unsafe fn find<'a>(record: &'a Record) -> Option<&'a Overlay<'a>> {
    let address = record.lock().load(Relaxed) as usize;
    // SAFETY: the word is zero or the address of an overlay, exposed below; it is zeroed before the graph's
    // memory goes, and whoever has the turn has synchronised with whoever had it before.
    (address != 0).then(|| unsafe { &*std::ptr::with_exposed_provenance(address) })
}

/// Whether the row is there.
///
/// # Safety
/// As [`find`]; the epoch is pinned.
#[inline]
pub unsafe fn is_present(record: &Record) -> bool {
    // SAFETY: the caller's promise.
    match unsafe { find(record) } {
        Some(overlay) => !matches!(overlay.image(), Image::Gone),
        // SAFETY: likewise.
        None => unsafe { chain::is_present(record.head()) },
    }
}

/// A column of a row; null if it is not there.
///
/// # Safety
/// As [`is_present`].
#[inline]
pub unsafe fn read<'a>(table: &Table, record: &'a Record, column: ColumnId) -> Datum<'a> {
    // SAFETY: the caller's promise.
    match unsafe { find(record) }.map(Overlay::image) {
        Some(Image::Row(values)) => return values[usize::from(column.0)],
        Some(Image::Columns(columns, values)) if columns.contains(column) => {
            return values[columns.rank(column)];
        }
        Some(Image::Gone) => return Datum::Null,
        _ => {}
    }
    let data_type = table.types()[usize::from(column.0)];
    // SAFETY: likewise.
    match unsafe { chain::read(record.head(), column, data_type, std::ptr::null_mut()) } {
        Value::Value(value) => value,
        Value::Absent => Datum::Null,
        Value::Pending(_) => unreachable!("this engine leaves no stickies"),
    }
}

/// Puts a committed call's image over what was there; gives the overlay if it is new.
///
/// # Safety
/// As [`find`]; `arena` is the caller's alone.
pub unsafe fn write<'a>(
    table: &'a Arc<Table>,
    record: &'a Record,
    image: Image<'a>,
    seq: Seq,
    arena: &'a Bump,
) -> Option<&'a Overlay<'a>> {
    // SAFETY: the caller's promise.
    if let Some(overlay) = unsafe { find(record) } {
        overlay.image.set(merge(overlay.image(), image, arena));
        overlay.seq.set(seq);
        return None;
    }
    let overlay = &*arena.alloc(Overlay { table, record, image: Cell::new(image), seq: Cell::new(seq) });
    record.lock().store(std::ptr::from_ref(overlay).expose_provenance() as u64, Relaxed);
    Some(overlay)
}

/// Forgets a record's overlay, once its image has been written.
pub fn forget(record: &Record) {
    record.lock().store(0, Relaxed);
}

fn merge<'a>(below: Image<'a>, above: Image<'a>, arena: &'a Bump) -> Image<'a> {
    let Image::Columns(columns, values) = above else { return above };
    match below {
        Image::Row(row) => {
            let row = arena.alloc_slice_copy(row);
            columns.iter().zip(values).for_each(|(column, value)| row[usize::from(column.0)] = *value);
            Image::Row(row)
        }
        Image::Columns(had, _) if columns.covers(had) => above,
        Image::Columns(had, before) => {
            let all: ColumnMask = had.union(columns);
            let pick = |column: ColumnId| match columns.contains(column) {
                true => values[columns.rank(column)],
                false => before[had.rank(column)],
            };
            let merged = arena.alloc_slice_fill_default(all.len());
            all.iter().zip(merged.iter_mut()).for_each(|(column, to)| *to = pick(column));
            Image::Columns(all, merged)
        }
        Image::Gone => unreachable!("a row that is gone is not updated"),
    }
}
