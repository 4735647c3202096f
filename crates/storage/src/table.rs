//! A table: its indexes, and what is looked up in them.
//!
//! Every index leads from an encoded key to a [`Record`]. A secondary index's key is the indexed columns
//! followed by the primary key, so entries never collide.
//!
//! An entry says that *some* version of the record has had that key. A row that is deleted, or whose
//! indexed columns change, keeps its old entries until no reader can need them; readers therefore
//! compare a visible row with the entry that led to it ([`Table::entry_is_current`]), unless nothing in
//! the index has ever become stale.

use crate::index::{AnyIndex, Direction, HashIndex, Pointer};
use crate::scan::{Range, TableScan};
use crate::slot::{long_columns, may_allocate};
use crate::{Record, chain};
use crossbeam_epoch::Guard;
use fabius_value::{
    ColumnId, ColumnMask, DataType, Datum, IndexId, Key, Result, ShortKey, TableId, TableSchema,
    key::width_bound, short_key::ShortColumns,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The primary key's index.
enum Primary {
    Hash(HashIndex),
    Ordered(AnyIndex),
}

/// A secondary index.
struct Secondary {
    ordered: AnyIndex,
    columns: Box<[ColumnId]>,
    unique: bool,
    /// Whether an entry may be stale: a row was deleted, or an indexed column changed.
    stale: AtomicBool,
}

/// A table: its schema and its indexes.
pub struct Table {
    id: TableId,
    schema: Arc<TableSchema>,
    types: Arc<[DataType]>,
    primary: Primary,
    secondary: Box<[Secondary]>,
    /// The primary key's columns, unless one of them may be long.
    bounded_key: ColumnMask,
    /// The primary key's columns, if they are hashed, and such keys are short.
    short_columns: Option<ShortColumns>,
    /// Columns whose values may be long.
    long_columns: ColumnMask,
}

impl Table {
    /// A table without rows.
    pub fn new(id: TableId, schema: Arc<TableSchema>) -> Table {
        let width = |columns: &[ColumnId]| {
            width_bound(columns.iter().map(|&column| {
                let column = &schema.columns[column.0 as usize];
                (&column.data_type, column.nullable)
            }))
        };
        let key_width = width(&schema.primary_key);
        let primary = if schema.hash {
            Primary::Hash(HashIndex::new())
        } else {
            Primary::Ordered(AnyIndex::for_width(key_width))
        };
        let secondary = schema.indexes.iter().map(|index| Secondary {
            ordered: AnyIndex::for_width(width(&index.columns).zip(key_width).map(|(a, b)| a + b)),
            columns: index.columns.clone().into(),
            unique: index.unique,
            stale: AtomicBool::new(false),
        });
        let is_long = |column: ColumnId| may_allocate(schema.columns[column.0 as usize].data_type);
        let types: Arc<[DataType]> = schema.columns.iter().map(|column| column.data_type).collect();
        Table {
            id,
            long_columns: long_columns(&types),
            primary,
            secondary: secondary.collect(),
            short_columns: ShortColumns::of(
                schema.primary_key.iter().map(|column| types[usize::from(column.0)]),
            )
            .filter(|_| schema.hash),
            bounded_key: if schema.primary_key.iter().any(|&column| is_long(column)) {
                ColumnMask::EMPTY
            } else {
                schema.primary_key.iter().copied().collect()
            },
            types,
            schema,
        }
    }

    /// The table's number.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// The table's definition.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    /// The types of all columns.
    #[inline]
    pub fn types(&self) -> &Arc<[DataType]> {
        &self.types
    }

    /// The columns whose values may be blocks of their own.
    #[inline]
    pub fn long_columns(&self) -> ColumnMask {
        self.long_columns
    }

    /// What an update of `columns` lacks to be a whole row, if that is no more than a short key: then
    /// the row is better written whole, and nothing below it is needed any more.
    #[inline]
    pub fn lacks_only_key(&self, columns: ColumnMask) -> Option<ColumnMask> {
        let rest = ColumnMask::first(self.types.len()).without(columns);
        (!rest.is_empty() && self.bounded_key.covers(rest)).then_some(rest)
    }

    /// Encodes a primary key given in key order.
    ///
    /// # Errors
    /// `54000` if it is too long.
    #[inline]
    pub fn encode_key(&self, values: &[Datum<'_>], key: &mut Key) -> Result<()> {
        key.clear();
        for (&column, &value) in self.schema.primary_key.iter().zip(values) {
            key.push(value, self.types[column.0 as usize], false)?;
        }
        Ok(())
    }

    /// Encodes the primary key of a whole row.
    ///
    /// # Errors
    /// `54000` if it is too long.
    #[inline]
    pub fn encode_row_key(&self, row: &[Datum<'_>], key: &mut Key) -> Result<()> {
        key.clear();
        for &column in &self.schema.primary_key {
            key.push(row[column.0 as usize], self.types[column.0 as usize], false)?;
        }
        Ok(())
    }

    /// The primary key with these values, in key order, if keys of this table are hashed and short.
    #[inline]
    pub fn short_key(&self, values: &[Datum<'_>]) -> Option<ShortKey> {
        self.short_columns.as_ref()?.key(values)
    }

    /// The record of a primary key.
    #[inline]
    pub fn find<'g>(&self, key: &Key, guard: &'g Guard) -> Option<&'g Record> {
        let pointer = match &self.primary {
            Primary::Hash(index) => {
                // SAFETY: what the index holds is readable while the epoch is pinned.
                let matches = |pointer: Pointer| unsafe { &*pointer.cast::<Record>() }.key() == key.bytes();
                index.get(key.hash(), matches, guard)
            }
            Primary::Ordered(index) => index.get(key, guard),
        };
        // SAFETY: what the index holds is readable while the epoch is pinned.
        pointer.map(|pointer| unsafe { &*pointer.cast::<Record>() })
    }

    /// The record of a short key.
    #[inline]
    pub fn find_short<'g>(&self, key: &ShortKey, guard: &'g Guard) -> Option<&'g Record> {
        let Primary::Hash(index) = &self.primary else { return None };
        // SAFETY: what the index holds is readable while the epoch is pinned.
        let matches = |pointer: Pointer| key.has_bytes(unsafe { &*pointer.cast::<Record>() }.key());
        // SAFETY: what the index holds is readable while the epoch is pinned.
        index.get(key.hash(), matches, guard).map(|pointer| unsafe { &*pointer.cast::<Record>() })
    }

    /// How many records it has, those of rows that are gone or not yet there among them.
    pub fn records(&self) -> usize {
        match &self.primary {
            Primary::Hash(index) => index.len(),
            Primary::Ordered(index) => index.len(),
        }
    }

    /// Whether lookups may be prepared by [`Table::prefetch`], and so many records make that worth while:
    /// a small table is in the cache anyway.
    pub fn is_worth_prefetching(&self) -> bool {
        // Where assertions are checked, small tables go the same way as large ones.
        const RECORDS_MIN: usize = if cfg!(debug_assertions) { 1 } else { 4096 };
        matches!(&self.primary, Primary::Hash(index) if index.len() >= RECORDS_MIN)
    }

    /// Asks for the memory that looking up a key of this hash will read first; false if the table has
    /// no hash index.
    #[inline]
    pub fn prefetch(&self, hash: u64, guard: &Guard) -> bool {
        match &self.primary {
            Primary::Hash(index) => {
                index.prefetch(hash, guard);
                true
            }
            Primary::Ordered(_) => false,
        }
    }

    /// The record that a key of this hash most likely leads to, without looking at the record.
    #[inline]
    pub fn likely_record<'g>(&self, hash: u64, guard: &'g Guard) -> Option<&'g Record> {
        match &self.primary {
            // SAFETY: what the index holds is readable while the epoch is pinned.
            Primary::Hash(index) => {
                index.get(hash, |_| true, guard).map(|pointer| unsafe { &*pointer.cast() })
            }
            Primary::Ordered(_) => None,
        }
    }

    /// The record of a primary key, made and indexed if it is new; whether it is new. One caller per
    /// key at a time.
    pub fn find_or_create<'g>(&self, key: &Key, guard: &'g Guard) -> (&'g Record, bool) {
        match &self.primary {
            Primary::Hash(index) => {
                if let Some(record) = self.find(key, guard) {
                    return (record, false);
                }
                let record = Record::create(key.bytes());
                // SAFETY: records in the index are readable; used only to grow it.
                let hash_of = |pointer: Pointer| {
                    let mut key = Key::new();
                    key.extend(unsafe { &*pointer.cast::<Record>() }.key());
                    key.hash()
                };
                index.insert(key.hash(), Pointer::from_raw(record.as_ptr()), hash_of, guard);
                // SAFETY: just made; it lives while the epoch is pinned.
                (unsafe { &*record.as_ptr() }, true)
            }
            Primary::Ordered(index) => {
                let record = Record::create(key.bytes());
                match index.insert(key, Pointer::from_raw(record.as_ptr()), guard) {
                    // SAFETY: just made; it lives while the epoch is pinned.
                    Ok(()) => (unsafe { &*record.as_ptr() }, true),
                    Err(existing) => {
                        // SAFETY: never published; the existing one is readable.
                        unsafe {
                            Record::free(record);
                            (&*existing.cast::<Record>(), false)
                        }
                    }
                }
            }
        }
    }

    /// Takes a record out of the primary index.
    pub fn unlink(&self, record: &Record, guard: &Guard) {
        record.mark_unlinked();
        let mut key = Key::new();
        key.extend(record.key());
        match &self.primary {
            Primary::Hash(index) => {
                index.remove(key.hash(), Pointer::from_raw(record), guard);
            }
            Primary::Ordered(index) => {
                index.remove(&key, guard);
            }
        }
    }

    /// The secondary indexes that hold any of the columns.
    pub fn indexes_of(&self, columns: ColumnMask) -> impl Iterator<Item = IndexId> {
        self.secondary.iter().enumerate().filter_map(move |(at, index)| {
            index.columns.iter().any(|&column| columns.contains(column)).then_some(IndexId(at as u16))
        })
    }

    /// How many secondary indexes there are.
    pub fn index_count(&self) -> usize {
        self.secondary.len()
    }

    /// Whether an index demands uniqueness.
    pub fn is_unique(&self, index: IndexId) -> bool {
        self.secondary[index.0 as usize].unique
    }

    /// The columns of an index, in order.
    pub fn index_columns(&self, index: IndexId) -> &[ColumnId] {
        &self.secondary[index.0 as usize].columns
    }

    /// Encodes an index entry: the indexed values (in index order), then the primary key's bytes.
    ///
    /// # Errors
    /// `54000` if it is too long.
    pub fn encode_entry<'v>(
        &self,
        index: IndexId,
        mut value: impl FnMut(ColumnId) -> Datum<'v>,
        primary: &[u8],
        key: &mut Key,
    ) -> Result<()> {
        key.clear();
        for &column in &self.secondary[index.0 as usize].columns {
            key.push(value(column), self.types[column.0 as usize], self.nullable(column))?;
        }
        key.extend(primary);
        if key.bytes().len() > fabius_value::limit::KEY_BYTES {
            return Err(fabius_value::key::entry_too_long(&self.schema, index));
        }
        Ok(())
    }

    fn nullable(&self, column: ColumnId) -> bool {
        self.schema.columns[column.0 as usize].nullable
    }

    /// Adds an index entry; false if it is there already (left by an earlier version).
    pub fn add_entry(&self, index: IndexId, key: &Key, record: &Record, guard: &Guard) -> bool {
        self.secondary[index.0 as usize].ordered.insert(key, Pointer::from_raw(record), guard).is_ok()
    }

    /// Takes an index entry out.
    pub fn remove_entry(&self, index: IndexId, key: &Key, guard: &Guard) {
        self.secondary[index.0 as usize].ordered.remove(key, guard);
    }

    /// Notes that entries of the index may be stale from now on.
    pub fn mark_stale(&self, index: IndexId) {
        let stale = &self.secondary[index.0 as usize].stale;
        if !stale.load(Relaxed) {
            stale.store(true, Relaxed);
        }
    }

    /// Whether a visible row still has the values under which an index entry led to it.
    ///
    /// # Safety
    /// `version` is readable; indexed columns are never stickies.
    pub unsafe fn entry_is_current(
        &self,
        index: IndexId,
        entry: &Key,
        version: *const crate::Version,
    ) -> bool {
        let index = &self.secondary[index.0 as usize];
        if !index.stale.load(Relaxed) {
            return true;
        }
        let mut key = Key::new();
        for &column in &index.columns {
            let data_type = self.types[column.0 as usize];
            // SAFETY: the version, and what is below it, are readable, as whoever calls this sees to.
            let cell = unsafe { chain::read(version, column, data_type, std::ptr::null_mut()) };
            let chain::Cell::Value(value) = cell else { return false };
            if key.push(value, data_type, self.nullable(column)).is_err() {
                return false;
            }
        }
        entry.bytes().starts_with(key.bytes())
    }

    /// The bytes between which a range's entries lie, the upper ones excluded; `None` if there can be none.
    ///
    /// # Errors
    /// `54000` if a bound is too long.
    pub fn range_bytes(&self, range: &Range<'_, '_>) -> Result<Option<(Key, Option<Key>)>> {
        let columns = match range.index {
            Some(index) => self.index_columns(index),
            None => &self.schema.primary_key[..],
        };
        let mut prefix = Key::new();
        for (&value, &column) in range.equal.iter().zip(columns) {
            prefix.push(value, self.types[column.0 as usize], self.nullable(column))?;
        }
        let bounded = |value: Datum<'_>| -> Result<Key> {
            let column = columns[range.equal.len()];
            let mut key = prefix.clone();
            key.push(value, self.types[column.0 as usize], self.nullable(column))?;
            Ok(key)
        };
        let lower = match range.lower {
            None => Some(prefix.clone()),
            Some((value, true)) => Some(bounded(value)?),
            Some((value, false)) => bounded(value)?.prefix_end(),
        };
        let upper = match range.upper {
            None if range.lower.is_some() && self.nullable(columns[range.equal.len()]) => {
                // Nulls sort last and match no bound.
                let mut key = prefix.clone();
                key.extend(&[1]);
                Some(key)
            }
            None => prefix.prefix_end(),
            Some((value, true)) => bounded(value)?.prefix_end(),
            Some((value, false)) => Some(bounded(value)?),
        };
        // A lower bound beyond every key leaves nothing.
        Ok(lower.filter(|lower| upper.as_ref().is_none_or(|upper| upper > lower)).map(|lower| (lower, upper)))
    }

    /// Opens a scan over the records of a range.
    ///
    /// # Errors
    /// `54000` if a bound is too long; `42809`-like misuse (a scan by a hash key) is excluded by the
    /// verifier.
    pub fn scan<'g>(&'g self, range: &Range<'_, '_>, guard: &'g Guard) -> Result<TableScan<'g>> {
        let bounds = self.range_bytes(range)?;
        Ok(self.scan_between(range.index, bounds, range.descending, guard))
    }

    /// Opens a scan over the entries between two keys: from the first, included, to the second,
    /// excluded. Without bounds there is no entry.
    pub fn scan_between<'g>(
        &'g self,
        index: Option<IndexId>,
        bounds: Option<(Key, Option<Key>)>,
        descending: bool,
        guard: &'g Guard,
    ) -> TableScan<'g> {
        let ordered = match index {
            Some(index) => &self.secondary[index.0 as usize].ordered,
            None => match &self.primary {
                Primary::Ordered(ordered) => ordered,
                Primary::Hash(_) => panic!("a hash key has no order to scan in"),
            },
        };
        let direction = if descending { Direction::Descending } else { Direction::Ascending };
        TableScan::new(ordered.scan(bounds, direction, guard))
    }

    /// Calls `visit` for every record, in no particular order for hash tables.
    pub fn for_each_record<'g>(&'g self, guard: &'g Guard, mut visit: impl FnMut(&'g Record)) {
        match &self.primary {
            Primary::Hash(index) => {
                // SAFETY: what the index holds is readable while the epoch is pinned.
                index.for_each(guard, |pointer| visit(unsafe { &*pointer.cast::<Record>() }));
            }
            Primary::Ordered(ordered) => {
                let all = Some((Key::new(), None));
                let mut scan = TableScan::new(ordered.scan(all, Direction::Ascending, guard));
                while let Some(record) = scan.next_record() {
                    visit(record);
                }
            }
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        let guard = crossbeam_epoch::pin();
        let mut retired = crate::fold::Retired::default();
        let mut records = Vec::new();
        self.for_each_record(&guard, |record| records.push(record.owner()));
        for record in records {
            // SAFETY: the table is nobody's any more, and so are its indexes and records.
            unsafe { crate::fold::retire_record(record, &self.types, &mut retired) };
        }
        retired.hand_over(&guard);
    }
}
