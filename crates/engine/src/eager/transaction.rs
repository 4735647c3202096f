//! A call that runs: what it sees, what its [`Control`] is told, and where its writes go.
//!
//! | access | what the control is told of |
//! |---|---|
//! | lookup by key | the record; one is made for a key that is new, if a miss is to be controlled too |
//! | scan | its granule; each row found |
//! | insert | the record, written; granules around its entries, changed; its unique values, claimed |
//! | update | the record, written; for each index whose entry changes, as insert, old and new entry |
//! | delete | the record, written; for each index, as insert |
//!
//! Records and entries made for a call that then leaves nothing there are noted for purging, entries
//! before records, because a note about a record may free it.

use crate::constraint::{PRIMARY_KEY, check_unique, duplicate, entry_of};
use crate::eager::control::Control;
use crate::eager::granule::Space;
use crate::eager::plan::{Around, Schema};
use crate::eager::shared::Shared;
use crate::eager::workspace::{Entry, Image, Workspace};
use crate::expected::ExpectedRows;
use crate::random::CallRandom;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_storage::{Record, Table, TableScan, Version, scan::Range};
use fabius_value::{ColumnId, ColumnMask, Datum, IndexId, Key, TableId};
use std::sync::Arc;

/// A row as the call has found it. All that the call reads of it comes from one version, so that a call
/// whose control lets others write meanwhile sees whole rows all the same, until the control refuses it.
#[derive(Clone, Copy)]
pub struct Found<'a> {
    record: &'a Record,
    /// The newest when the row was found; `None` if there was none.
    version: Option<&'a Version>,
}

/// A row that was looked up, found by a scan, or inserted; `None` if there is not even a record.
pub type Row<'a> = Option<Found<'a>>;

fn same(one: Option<&Version>, other: Option<&Version>) -> bool {
    one.map(std::ptr::from_ref) == other.map(std::ptr::from_ref)
}

/// An open scan.
pub struct Scan<'a> {
    scan: TableScan<'a>,
    table: &'a Arc<Table>,
    index: Option<IndexId>,
}

/// The context of the calls that a thread runs in one turn, one after the other.
pub struct Transaction<'a, C> {
    shared: &'a Shared,
    schema: &'a Schema,
    guard: &'a Guard,
    arena: &'a Bump,
    time_us: i64,
    random: Option<CallRandom>,
    key: Key,
    /// Records that the call is going to look up.
    pub expected: ExpectedRows<'a>,
    /// What keeps the call and others apart.
    pub control: C,
    /// What the call has written.
    pub workspace: Workspace<'a>,
}

impl<'a, C: Control<'a>> Transaction<'a, C> {
    /// A context for a turn at `time_us`.
    pub fn new(
        shared: &'a Shared,
        schema: &'a Schema,
        guard: &'a Guard,
        arena: &'a Bump,
        time_us: i64,
        control: C,
    ) -> Transaction<'a, C> {
        Transaction {
            shared,
            schema,
            guard,
            arena,
            time_us,
            random: None,
            key: Key::new(),
            expected: ExpectedRows::default(),
            control,
            workspace: Workspace::default(),
        }
    }

    /// The random numbers of the call that begins, if it draws any.
    pub fn draws(&mut self, random: Option<CallRandom>) {
        self.random = random;
    }

    /// The logged time of the calls that begin from now on.
    pub fn set_time(&mut self, time_us: i64) {
        self.time_us = time_us;
    }

    /// Makes an idempotency key this call's.
    ///
    /// # Errors
    /// If the call has to begin again.
    pub fn claim_key(&mut self, key: &[u8]) -> Result<(), Stop> {
        if !C::HAS_GRANULES {
            return Ok(());
        }
        self.control.claims(self.shared.granules.word(Space::KEYS, key))
    }

    /// Ends the call for others.
    pub fn release(&mut self) {
        self.workspace.clear();
        self.expected.restart();
        self.control.release();
    }

    /// The record of the key in `self.key`, and whether it was made since the key is new.
    #[inline]
    fn find_or_create(&mut self, table: &'a Arc<Table>) -> (&'a Record, bool) {
        match table.find(&self.key, self.guard) {
            Some(record) => (record, false),
            None => self.create(table),
        }
    }

    #[cold]
    fn create(&mut self, table: &'a Arc<Table>) -> (&'a Record, bool) {
        let (record, is_new) = {
            let _only_one =
                self.shared.creation[self.key.hash() as usize % self.shared.creation.len()].lock();
            table.find_or_create(&self.key, self.guard)
        };
        if is_new {
            self.workspace.touched.push((table, record));
        }
        (record, is_new)
    }

    /// The newest version of a record.
    #[inline]
    fn newest(&self, record: &Record) -> Option<&'a Version> {
        // SAFETY: the epoch is pinned during 'a.
        unsafe { record.head().as_ref() }
    }

    /// The row of a record that the control has been told of.
    #[inline]
    fn find(&mut self, table: &Table, record: &'a Record) -> Found<'a> {
        let version = self.newest(record);
        let version = self.control.observes(table.id(), record, version);
        Found { record, version }
    }

    /// Tells of a change of an entry: the granules around it and, if the index is unique, its values. Gives
    /// the encoded columns of the index.
    fn change_entry(
        &mut self,
        table: &'a Arc<Table>,
        index: Option<IndexId>,
        value: &dyn Fn(&Workspace<'a>, ColumnId) -> Datum<'a>,
    ) -> Result<Key, Stop> {
        let Transaction { shared, schema, workspace, control, .. } = self;
        schema.around_entry(
            table,
            index,
            &mut |column| value(workspace, column),
            &mut |around| match around {
                _ if !C::HAS_GRANULES => Ok(()),
                Around::Granule(space, bytes) => control.changes(shared.granules.word(space, bytes)),
                Around::Unique(space, bytes) => control.claims(shared.granules.word(space, bytes)),
            },
        )
    }

    /// Makes an entry for a row; the values it will have come from `value`.
    fn enter(
        &mut self,
        table: &'a Arc<Table>,
        record: &'a Record,
        index: IndexId,
        value: &dyn Fn(&Workspace<'a>, ColumnId) -> Datum<'a>,
    ) -> Result<(), Stop> {
        let key = self.change_entry(table, Some(index), value)?;
        if table.is_unique(index) {
            let columns = table.index_columns(index);
            let values: Vec<Datum<'a>> =
                columns.iter().map(|&column| value(&self.workspace, column)).collect();
            // This call has claimed the values.
            check_unique(table, index, &values, self.guard, |other, entry| {
                !std::ptr::eq(other, record)
                    && self.is_entry_of(table, index, entry, other, self.newest(other))
            })?;
        }
        let key = entry_of(table, index, key, record)?;
        if table.add_entry(index, &key, record, self.guard) {
            self.workspace.entered.push(Entry { table, record, index, key: Box::new(key) });
        }
        Ok(())
    }

    /// Whether an entry leads to a row that is there and has the entry's values, for this call, if the
    /// record's newest version is `version`.
    fn is_entry_of(
        &self,
        table: &Arc<Table>,
        index: IndexId,
        entry: &Key,
        record: &'a Record,
        version: Option<&'a Version>,
    ) -> bool {
        let Some(image) = self.workspace.image(record) else {
            let Some(version) = version.filter(|version| !version.is_tombstone()) else { return false };
            // SAFETY: the epoch is pinned.
            return unsafe { table.entry_is_current(index, entry, version) };
        };
        if matches!(image, Image::Gone) {
            return false;
        }
        let mut key = Key::new();
        for &column in table.index_columns(index) {
            let value = self.workspace.read(table, record, version, column);
            let column = usize::from(column.0);
            if key.push(value, table.types()[column], table.schema().columns[column].nullable).is_err() {
                return false;
            }
        }
        entry.bytes().starts_with(key.bytes())
    }

    /// Notes that the row's entry with these encoded columns will be wrong.
    fn leave(&mut self, table: &'a Arc<Table>, record: &'a Record, index: IndexId, mut key: Key) {
        // Before any new entry can be seen: readers look at old versions through new entries.
        table.mark_stale(index);
        key.extend(record.key());
        self.workspace.left.push(Entry { table, record, index, key: Box::new(key) });
    }
}

impl<'a, C: Control<'a>> Context<'a> for Transaction<'a, C> {
    type Row = Row<'a>;
    type Scan = Scan<'a>;

    #[inline]
    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Row<'a>, Stop> {
        let rows = self.schema.definitions.table(table);
        let find = || rows.find_short(&rows.short_key(key)?, self.guard);
        let record = match self.expected.find(table, key).or_else(find) {
            Some(record) => record,
            None => {
                rows.encode_key(key, &mut self.key)?;
                match rows.find(&self.key, self.guard) {
                    Some(record) => record,
                    None if C::RECORDS_MISSES => self.create(rows).0,
                    None => return Ok(None),
                }
            }
        };
        self.control.looks_up(table, record)?;
        Ok(Some(self.find(rows, record)))
    }

    #[inline]
    fn exists(&mut self, _: TableId, row: Row<'a>) -> Result<bool, Stop> {
        Ok(row.is_some_and(|found| self.workspace.is_present(found.record, found.version)))
    }

    #[inline]
    fn read(&mut self, table: TableId, row: Row<'a>, column: ColumnId) -> Result<Datum<'a>, Stop> {
        let Some(Found { record, version }) = row else { return Ok(Datum::Null) };
        let table = self.schema.definitions.table(table);
        if let Some(version) = version
            && !self.workspace.is_marked(record)
            && let Some(number) = version.plain_number(column, table.types()[usize::from(column.0)])
        {
            return Ok(Datum::Int(number));
        }
        Ok(self.workspace.read(table, record, version, column))
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<Scan<'a>, Stop> {
        let ScanRange { table: id, index, equal, lower, upper, descending, limit_hint, .. } = range;
        let table = self.schema.definitions.table(id);
        let columns = match index {
            None => &table.schema().primary_key[..],
            Some(index) => table.index_columns(index),
        };
        let mut prefix = Key::new();
        for (&value, &column) in equal.iter().zip(columns) {
            let column = usize::from(column.0);
            let nullable = index.is_some() && table.schema().columns[column].nullable;
            prefix.push(value, table.types()[column], nullable)?;
        }
        let space = Space::prefixes(id.0, index.map_or(0, |index| index.0 + 1));
        if C::HAS_GRANULES {
            if index.is_none() {
                self.control.scans_below(id, &prefix, equal.len());
            }
            self.control.scans(id, self.shared.granules.word(space, prefix.bytes()))?;
        }
        let scan = table.scan(&Range { index, equal, lower, upper, descending }, self.guard)?;
        Ok(Scan { scan: scan.expecting(limit_hint), table, index })
    }

    fn scan_next(&mut self, scan: &mut Scan<'a>) -> Result<Option<Row<'a>>, Stop> {
        loop {
            let (record, entry) = match scan.index {
                None => match scan.scan.next_record() {
                    Some(record) => (record, None),
                    None => return Ok(None),
                },
                Some(index) => match scan.scan.next_entry() {
                    Some((record, entry)) => (record, Some((index, entry))),
                    None => return Ok(None),
                },
            };
            let is_there = |call: &Self, version| match &entry {
                None => call.workspace.is_present(record, version),
                Some((index, entry)) => call.is_entry_of(scan.table, *index, entry, record, version),
            };
            let version = self.newest(record);
            if !is_there(self, version) {
                continue;
            }
            self.control.meets(scan.table.id(), record)?;
            let found = self.find(scan.table, record);
            // Which rows are there does not change for a call that is not refused in the end.
            if !same(found.version, version) && !is_there(self, found.version) {
                return Err(Stop::Restart);
            }
            return Ok(Some(Some(found)));
        }
    }

    fn insert(&mut self, table: TableId, write: WriteSet<'_, 'a>) -> Result<Row<'a>, Stop> {
        let table = self.schema.definitions.table(table);
        table.encode_row_key(write.values, &mut self.key)?;
        let (record, is_new) = self.find_or_create(table);
        if !is_new {
            // Others may have made it, and entries with other values, which lead to what this call inserts until they
            // give up.
            (0..table.index_count()).for_each(|at| table.mark_stale(IndexId(at as u16)));
        }
        self.control.writes(table.id(), record, ColumnMask::first(table.types().len()))?;
        let found = self.find(table, record);
        if self.workspace.is_present(record, found.version) {
            let columns = &table.schema().primary_key;
            let values: Vec<Datum<'a>> =
                columns.iter().map(|column| write.values[usize::from(column.0)]).collect();
            return Err(duplicate(table.schema(), columns, &values, PRIMARY_KEY).into());
        }
        let row: &'a [Datum<'a>] = self.arena.alloc_slice_copy(write.values);
        let value = |_: &Workspace<'a>, column: ColumnId| row[usize::from(column.0)];
        self.change_entry(table, None, &value)?;
        self.workspace.touched.push((table, record));
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            self.enter(table, record, index, &value)?;
        }
        self.workspace.set(table, record, Image::Row(row));
        Ok(Some(found))
    }

    fn update(&mut self, table: TableId, row: Row<'a>, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        debug_assert!(
            write.deltas.is_empty() && write.sticky == ColumnMask::EMPTY,
            "whole programs have none"
        );
        let table = self.schema.definitions.table(table);
        let Found { record, version } = row.expect("a row that is updated is there");
        self.control.writes(table.id(), record, write.columns)?;
        if table.index_count() > 0 {
            let values: &'a [Datum<'a>] = self.arena.alloc_slice_copy(write.values);
            let before = |workspace: &Workspace<'a>, column| workspace.read(table, record, version, column);
            let after = |workspace: &Workspace<'a>, column| match write.columns.contains(column) {
                true => values[write.columns.rank(column)],
                false => workspace.read(table, record, version, column),
            };
            for index in table.indexes_of(write.columns) {
                let columns = table.index_columns(index);
                if columns
                    .iter()
                    .all(|&column| before(&self.workspace, column) == after(&self.workspace, column))
                {
                    continue;
                }
                let old = self.change_entry(table, Some(index), &before)?;
                self.leave(table, record, index, old);
                self.enter(table, record, index, &after)?;
            }
        }
        self.workspace.update(table, record, write.columns, write.values, self.arena);
        Ok(())
    }

    fn delete(&mut self, table: TableId, row: Row<'a>) -> Result<(), Stop> {
        let table = self.schema.definitions.table(table);
        let Found { record, version } = row.expect("a row that is deleted is there");
        self.control.writes(table.id(), record, ColumnMask::first(table.types().len()))?;
        let value = |workspace: &Workspace<'a>, column| workspace.read(table, record, version, column);
        self.change_entry(table, None, &value)?;
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            let key = self.change_entry(table, Some(index), &value)?;
            self.leave(table, record, index, key);
        }
        self.workspace.set(table, record, Image::Gone);
        Ok(())
    }

    fn now(&self) -> i64 {
        self.time_us
    }

    fn random(&mut self) -> f64 {
        self.random.as_mut().expect("a call that draws random numbers knows its seq").next()
    }

    fn is_missing(&self, row: Row<'a>) -> bool {
        row.is_none()
    }
}
