//! What a call has written so far, seen by itself alone.
//!
//! ```text
//! accounts[7]   {balance: 12}          on top of the record's newest version
//! orders[1,5]   whole row              inserted
//! orders[1,3]   gone                   deleted
//! ```
//!
//! Records change when the call commits, so giving up needs no undo: the workspace is emptied. The
//! exception are index entries, which are made at once so that the call's own scans find its own rows;
//! no one else looks at them while the call holds the granules around them. Which entries were made, and
//! which will be wrong once the call commits, is noted here too.

use bumpalo::Bump;
use fabius_storage::{Cell, Record, Table, Version, chain};
use fabius_value::{ColumnId, ColumnMask, Datum, IndexId, Key};
use foldhash::HashMap;
use std::sync::Arc;

/// Up to this many written rows, looking through them all is faster than hashing.
const LINEAR_MAX: usize = 12;

/// A row as the call has left it.
#[derive(Clone, Copy, Debug)]
pub enum Image<'a> {
    /// These columns on top of the record's newest version; values in column order.
    Columns(ColumnMask, &'a [Datum<'a>]),
    /// A whole row, inserted.
    Row(&'a [Datum<'a>]),
    /// Deleted.
    Gone,
}

/// A row that the call has written.
pub struct Write<'a> {
    /// The row's table.
    pub table: &'a Arc<Table>,
    /// The row's record.
    pub record: &'a Record,
    /// What it is now.
    pub image: Image<'a>,
}

/// An index entry of a row.
pub struct Entry<'a> {
    /// The table.
    pub table: &'a Arc<Table>,
    /// The row.
    pub record: &'a Record,
    /// Which index.
    pub index: IndexId,
    /// The whole key of the entry.
    pub key: Box<Key>,
}

/// A call's writes.
#[derive(Default)]
pub struct Workspace<'a> {
    /// Each row once, in the order of its first write.
    pub writes: Vec<Write<'a>>,
    /// The marks of their records: a record whose mark is missing was not written, which most questions are about.
    marks: u64,
    /// By the address of a record, once there are many.
    places: HashMap<usize, usize>,
    /// Entries that the call has made; wrong if it gives up.
    pub entered: Vec<Entry<'a>>,
    /// Entries that are wrong if it commits, unless a row has come back to one.
    pub left: Vec<Entry<'a>>,
    /// Records that the call has made, or inserted into.
    pub touched: Vec<(&'a Arc<Table>, &'a Record)>,
}

impl<'a> Workspace<'a> {
    /// Forgets everything.
    pub fn clear(&mut self) {
        self.writes.clear();
        self.marks = 0;
        self.places.clear();
        self.entered.clear();
        self.left.clear();
        self.touched.clear();
    }

    /// Whether the record may have been written.
    #[inline]
    pub fn is_marked(&self, record: &Record) -> bool {
        self.marks & mark(record) != 0
    }

    fn place(&self, record: &Record) -> Option<usize> {
        if self.writes.len() <= LINEAR_MAX {
            self.writes.iter().rposition(|write| std::ptr::eq(write.record, record))
        } else {
            self.places.get(&address(record)).copied()
        }
    }

    /// What the call has made of a record, if it has written it.
    #[inline]
    pub fn image(&self, record: &Record) -> Option<Image<'a>> {
        if !self.is_marked(record) {
            return None;
        }
        self.place(record).map(|place| self.writes[place].image)
    }

    /// Whether the row is there for this call, if the record's newest version is `version`.
    #[inline]
    pub fn is_present(&self, record: &Record, version: Option<&Version>) -> bool {
        match self.image(record) {
            Some(Image::Gone) => false,
            Some(Image::Row(_) | Image::Columns(..)) => true,
            None => version.is_some_and(|version| !version.is_tombstone()),
        }
    }

    /// A column as this call sees it, if the record's newest version is `version`; null if the row is
    /// not there.
    #[inline]
    pub fn read(
        &self,
        table: &Table,
        record: &Record,
        version: Option<&'a Version>,
        column: ColumnId,
    ) -> Datum<'a> {
        if self.is_marked(record)
            && let Some(value) = self.read_written(record, column)
        {
            return value;
        }
        let data_type = table.types()[usize::from(column.0)];
        let version = version.map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: the call's epoch is pinned during 'a.
        match unsafe { chain::read(version, column, data_type, std::ptr::null_mut()) } {
            Cell::Value(value) => value,
            Cell::Absent => Datum::Null,
            Cell::Pending(_) => unreachable!("an eager engine leaves no stickies"),
        }
    }

    /// A column of a row as the call has left it, if it has written it.
    #[inline(never)]
    fn read_written(&self, record: &Record, column: ColumnId) -> Option<Datum<'a>> {
        match self.image(record)? {
            Image::Row(values) => Some(values[usize::from(column.0)]),
            Image::Columns(columns, values) => columns.contains(column).then(|| values[columns.rank(column)]),
            Image::Gone => Some(Datum::Null),
        }
    }

    /// Sets what a row is.
    pub fn set(&mut self, table: &'a Arc<Table>, record: &'a Record, image: Image<'a>) {
        match self.is_marked(record).then(|| self.place(record)).flatten() {
            Some(place) => self.writes[place].image = image,
            None => self.add(Write { table, record, image }),
        }
    }

    /// Adds the first write of a row.
    fn add(&mut self, write: Write<'a>) {
        self.marks |= mark(write.record);
        self.writes.push(write);
        let at = self.writes.len() - 1;
        if at == LINEAR_MAX {
            self.places.extend(self.writes.iter().enumerate().map(|(at, write)| (address(write.record), at)));
        } else if at > LINEAR_MAX {
            self.places.insert(address(self.writes[at].record), at);
        }
    }

    /// Writes columns of a row that is there.
    pub fn update(
        &mut self,
        table: &'a Arc<Table>,
        record: &'a Record,
        columns: ColumnMask,
        values: &[Datum<'a>],
        arena: &'a Bump,
    ) {
        let Some(place) = self.is_marked(record).then(|| self.place(record)).flatten() else {
            let image = Image::Columns(columns, arena.alloc_slice_copy(values));
            return self.add(Write { table, record, image });
        };
        let image = &mut self.writes[place].image;
        *image = match *image {
            Image::Row(before) => {
                let row = arena.alloc_slice_copy(before);
                columns.iter().zip(values).for_each(|(column, value)| row[usize::from(column.0)] = *value);
                Image::Row(row)
            }
            Image::Columns(had, before) => {
                let all = had.union(columns);
                let pick = |column: ColumnId| {
                    if columns.contains(column) {
                        values[columns.rank(column)]
                    } else {
                        before[had.rank(column)]
                    }
                };
                let merged = arena.alloc_slice_fill_default(all.len());
                all.iter().zip(merged.iter_mut()).for_each(|(column, to)| *to = pick(column));
                Image::Columns(all, merged)
            }
            Image::Gone => Image::Columns(columns, arena.alloc_slice_copy(values)),
        };
    }
}

fn address(record: &Record) -> usize {
    std::ptr::from_ref(record).addr()
}

/// One of 64 marks of a record, by the bits of its address that tell neighbours apart.
#[inline]
fn mark(record: &Record) -> u64 {
    let spread = (address(record) as u64 >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    1 << (spread >> 58)
}
