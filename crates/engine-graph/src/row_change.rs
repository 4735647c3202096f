//! Rows that have come or gone in a run of actions: their records and index entries.
//!
//! ```text
//! queue of bids[17]     insert    update {amount}    --> the record, its entries, one version with all columns
//! queue of carts[3]     delete    insert             --> the entries that differ, one version with all columns
//! queue of carts[4]     insert    delete             --> nothing
//! ```

use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::eager::commit::{Unread, install};
use fabius_engine::eager::shared::Shared;
use fabius_engine::eager::trail::Trail;
use fabius_engine::eager::workspace::{Entry, Image, Workspace};
use fabius_storage::{Cell, Record, Table, chain};
use fabius_value::{ColumnId, Datum, IndexId, Key, Seq};
use std::sync::Arc;

/// What row changes are made with.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    /// Where notes about what is to be purged go.
    pub shared: &'a Shared,
    /// Pinned for as long as records are used.
    pub guard: &'a Guard,
    /// Memory until the end of the graph.
    pub arena: &'a Bump,
}

/// A row before a run of actions has changed whether it is there.
pub struct Before<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The primary key, encoded.
    pub key: &'a [u8],
    /// The record, if the key had one.
    pub record: Option<&'a Record>,
}

impl<'a> Before<'a> {
    /// Puts the row where others see it, with these values, or without any if it has gone; `seq` is that of the last
    /// call that has written. Nobody else comes to the key meanwhile, but for readers at their seqs.
    #[inline(never)]
    pub fn replace(self, values: Option<&[Datum<'a>]>, seq: Seq, means: Means<'a>, trail: &mut Trail<'a>) {
        let Before { table, key, record } = self;
        let Means { shared, guard, arena } = means;
        // SAFETY: the epoch is pinned.
        let was_there = record.is_some_and(|record| unsafe { chain::is_present(record.head()) });
        let (record, is_new) = match (record, values) {
            (None, None) => return,
            (Some(record), _) => (record, false),
            (None, Some(_)) => {
                let mut whole = Key::new();
                whole.extend(key);
                table.find_or_create(&whole, guard)
            }
        };
        let mut workspace = Workspace::default();
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            if !is_new {
                // Entries with other values may lead to the record.
                table.mark_stale(index);
            }
            let old = was_there.then(|| entry(table, index, record, |column| current(table, record, column)));
            let new =
                values.map(|values| entry(table, index, record, |column| values[usize::from(column.0)]));
            if old == new {
                continue;
            }
            let left = old.map(|key| Entry { table, record, index, key: Box::new(key) });
            workspace.left.extend(left);
            if let Some(key) = new {
                table.add_entry(index, &key, record, guard);
            }
        }
        let image = values.map_or(Image::Gone, |values| Image::Row(arena.alloc_slice_copy(values)));
        workspace.set(table, record, image);
        let unread = Unread { collected: shared.collected(), held: Seq(u64::MAX) };
        install(&workspace, seq, unread, trail, &shared.purge);
    }
}

fn entry<'v>(
    table: &Table,
    index: IndexId,
    record: &Record,
    value: impl FnMut(ColumnId) -> Datum<'v>,
) -> Key {
    let mut key = Key::new();
    let encoded = table.encode_entry(index, value, record.key(), &mut key);
    encoded.expect("whoever has inserted the row has encoded it");
    key
}

fn current<'a>(table: &Table, record: &'a Record, column: ColumnId) -> Datum<'a> {
    let data_type = table.types()[usize::from(column.0)];
    // SAFETY: the epoch is pinned.
    match unsafe { chain::read(record.head(), column, data_type, std::ptr::null_mut()) } {
        Cell::Value(value) => value,
        Cell::Absent | Cell::Pending(_) => unreachable!("a row that is there has every value"),
    }
}
