//! What a running call sees, and how it comes to its record actions in turn.
//!
//! Each access names a queue. If the call has its turn there, it goes on; if the queue is this worker's and
//! the call's action is at its head, it gets the turn; else it is [`Stop::Blocked`]: its frame is kept, and
//! goes on from there once the queue's worker says so ([`crate::execution`]). Turns are kept until the call
//! has ended.
//!
//! The call's writes are its own until then ([`Workspace`]), over what the graph's earlier calls have left
//! ([`crate::overlay`]), over the record. Index entries are made at once, since scans of later calls have to
//! find them; entries and records that come to nothing are noted for purging.

use crate::construction::Material;
use crate::graph::{Graph, Queue};
use crate::overlay;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::constraint::{PRIMARY_KEY, check_unique, duplicate, entry_of};
use fabius_engine::eager::workspace::{Entry, Image, Workspace};
use fabius_engine::random::CallRandom;
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_storage::{Record, Table, TableScan, scan::Range};
use fabius_value::{ColumnId, Datum, IndexId, Key, Result, TableId};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A row that was looked up, found by a scan, or inserted.
#[derive(Clone, Copy, Default)]
pub enum Row<'a> {
    /// There is not even a record.
    #[default]
    Missing,
    /// A record, perhaps without a row.
    Here(&'a Record),
    /// There is a row, which is another part's.
    Elsewhere,
}

impl<'a> Row<'a> {
    /// The record of a row that the call writes.
    fn record(self) -> &'a Record {
        let Row::Here(record) = self else { unreachable!("a row that is written is there") };
        record
    }
}

/// An open scan.
pub struct Scan<'a> {
    scan: TableScan<'a>,
    table: &'a Arc<Table>,
    index: Option<IndexId>,
}

/// What a call takes along while it is executed, from worker to worker.
#[derive(Default)]
pub struct Progress<'a> {
    /// The call, by its place in the graph.
    pub call: u32,
    /// Whether it is executed in parts, and this is one.
    pub is_part: bool,
    /// The action that it waits for.
    pub wanted: u32,
    /// The action that it will probably come to next: keys are in the order of the text, mostly.
    next: u32,
    /// What it has written.
    pub workspace: Workspace<'a>,
    /// Its random numbers, once it has drawn one.
    pub random: Option<CallRandom>,
}

impl Progress<'_> {
    /// Begins a call.
    pub fn begin(&mut self, call: u32, is_part: bool) {
        (self.call, self.is_part, self.next) = (call, is_part, 0);
        self.random = None;
    }
}

/// The context of a call on the worker that executes it now.
pub struct CallContext<'a, 'r> {
    /// The graph.
    pub graph: &'r Graph<'a>,
    /// Tables and procedures, and how records are told apart.
    pub material: &'r Material<'a>,
    /// This thread's own; for changing indexes.
    pub own_guard: &'r Guard,
    /// The worker's memory.
    pub arena: &'a Bump,
    /// The partition whose worker this is.
    pub partition: u32,
    /// The logged time.
    pub time_us: i64,
    /// A buffer.
    pub key: &'r mut Key,
    /// The call.
    pub progress: &'r mut Progress<'a>,
}

impl<'a, 'r> CallContext<'a, 'r> {
    /// The action on what the key's leading columns name, which are encoded in `self.key`.
    #[inline]
    fn action(&mut self, table: TableId) -> (u32, &'r Queue<'a>) {
        let graph = self.graph;
        let own = graph.actions_of(self.progress.call);
        let next = own.start.max(self.progress.next.min(own.end));
        for action in (next..own.end).chain(own.start..next) {
            let queue = graph.queue_of(action);
            if queue.table == table && queue.key == self.key.bytes() {
                self.progress.next = action + 1;
                return (action, queue);
            }
        }
        panic!("a call accesses what its decomposition does not name");
    }

    /// Waits for the turn of an action.
    #[inline]
    fn take_turn(&mut self, action: u32, queue: &Queue<'a>) -> Result<(), Stop> {
        let turn = &self.graph.turns[queue.turn as usize];
        let call = self.progress.call;
        if queue.partition == self.partition && turn.head.load(Relaxed) == action {
            turn.give(call);
        } else if !turn.is_held_by(call) {
            self.progress.wanted = action;
            return Err(Stop::Blocked);
        }
        Ok(())
    }

    fn encode(&mut self, table: &Table, values: impl Iterator<Item = Datum<'a>>) -> Result<()> {
        self.key.clear();
        for (&column, value) in table.schema().primary_key.iter().zip(values) {
            self.key.push(value, table.types()[usize::from(column.0)], false)?;
        }
        Ok(())
    }

    /// Whether the row is there for this call.
    fn is_present(&self, record: &'a Record) -> bool {
        match self.progress.workspace.image(record) {
            Some(Image::Gone) => false,
            Some(Image::Row(_) | Image::Columns(..)) => true,
            // SAFETY: the call has its turn at the record, or nothing in the graph writes its table.
            None => unsafe { overlay::is_present(record) },
        }
    }

    /// A column as this call sees it; null if the row is not there.
    #[inline]
    fn value(&self, table: &Table, record: &'a Record, column: ColumnId) -> Datum<'a> {
        match self.progress.workspace.image(record) {
            Some(Image::Row(values)) => values[usize::from(column.0)],
            Some(Image::Columns(columns, values)) if columns.contains(column) => values[columns.rank(column)],
            Some(Image::Gone) => Datum::Null,
            // SAFETY: as above.
            _ => unsafe { overlay::read(table, record, column) },
        }
    }

    /// The encoded columns of an index.
    fn entry_key(
        &self,
        table: &Table,
        index: IndexId,
        value: &dyn Fn(&Self, ColumnId) -> Datum<'a>,
    ) -> Result<Key> {
        let mut key = Key::new();
        for &column in table.index_columns(index) {
            let schema = &table.schema().columns[usize::from(column.0)];
            key.push(value(self, column), schema.data_type, schema.nullable)?;
        }
        Ok(key)
    }

    /// Makes an entry for a row; the values it will have come from `value`.
    fn enter(
        &mut self,
        table: &'a Arc<Table>,
        record: &'a Record,
        index: IndexId,
        value: &dyn Fn(&Self, ColumnId) -> Datum<'a>,
    ) -> Result<()> {
        let key = self.entry_key(table, index, value)?;
        if table.is_unique(index) {
            let columns = table.index_columns(index);
            let values: Vec<Datum<'a>> = columns.iter().map(|&column| value(self, column)).collect();
            // Rows with the same values are of this call's grain.
            check_unique(table, index, &values, self.material.guard, |other, entry| {
                !std::ptr::eq(other, record) && self.is_entry_of(table, index, entry, other)
            })?;
        }
        let key = entry_of(key, record)?;
        if table.add_entry(index, &key, record, self.own_guard) {
            self.progress.workspace.entered.push(Entry { table, record, index, key: Box::new(key) });
        }
        Ok(())
    }

    /// Whether an entry leads to a row that is there and has the entry's values, for this call.
    fn is_entry_of(&self, table: &Table, index: IndexId, entry: &Key, record: &'a Record) -> bool {
        self.is_present(record)
            && self
                .entry_key(table, index, &|this, column| this.value(table, record, column))
                .is_ok_and(|key| entry.bytes().starts_with(key.bytes()))
    }

    /// Notes that the row's entry with these encoded columns will be wrong.
    fn leave(&mut self, table: &'a Arc<Table>, record: &'a Record, index: IndexId, mut key: Key) {
        // Before any new entry can be seen: readers look at old versions through new entries.
        table.mark_stale(index);
        key.extend(record.key());
        self.progress.workspace.left.push(Entry { table, record, index, key: Box::new(key) });
    }
}

impl<'a> Context<'a> for CallContext<'a, '_> {
    type Row = Row<'a>;
    type Scan = Scan<'a>;

    #[inline]
    fn locate(&mut self, id: TableId, key: &[Datum<'a>]) -> Result<Row<'a>, Stop> {
        let table = self.material.definitions.table(id);
        table.encode_key(key, self.key)?;
        if let Some(grain) = self.material.grains.get(id) {
            // The whole key came first: if it is too long, there is no action for it.
            if grain < key.len() {
                table.encode_key(&key[..grain], self.key)?;
            }
            let (action, queue) = self.action(id);
            if self.progress.is_part && queue.partition != self.partition {
                return Ok(if queue.record.is_some() { Row::Elsewhere } else { Row::Missing });
            }
            self.take_turn(action, queue)?;
            match queue.record {
                Some(record) => return Ok(Row::Here(record)),
                None if self.material.grains.is_still(id) => return Ok(Row::Missing),
                None => table.encode_key(key, self.key)?,
            }
        }
        Ok(table.find(self.key, self.material.guard).map_or(Row::Missing, Row::Here))
    }

    #[inline]
    fn exists(&mut self, table: TableId, row: Row<'a>) -> Result<bool, Stop> {
        Ok(match row {
            Row::Missing => false,
            Row::Here(record) => self.material.grains.is_still(table) || self.is_present(record),
            Row::Elsewhere => true,
        })
    }

    /// What another part reads goes into nothing that this part writes.
    #[inline]
    fn read(&mut self, table: TableId, row: Row<'a>, column: ColumnId) -> Result<Datum<'a>, Stop> {
        let Row::Here(record) = row else { return Ok(Datum::Null) };
        Ok(self.value(self.material.definitions.table(table), record, column))
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<Scan<'a>, Stop> {
        let ScanRange { table: id, index, equal, lower, upper, descending, .. } = range;
        let table = self.material.definitions.table(id);
        if let Some(grain) = self.material.grains.get(id) {
            let primary_key = &table.schema().primary_key[..];
            let columns = index.map_or(primary_key, |index| table.index_columns(index));
            let value = |wanted: &ColumnId| {
                let place = columns.iter().position(|column| column == wanted);
                place.and_then(|place| equal.get(place)).copied().expect("a grain that the scan determines")
            };
            self.encode(table, primary_key[..grain].iter().map(value))?;
            let (action, queue) = self.action(id);
            self.take_turn(action, queue)?;
        }
        let scan = table.scan(&Range { index, equal, lower, upper, descending }, self.material.guard)?;
        Ok(Scan { scan, table, index })
    }

    fn scan_next(&mut self, scan: &mut Scan<'a>) -> Result<Option<Row<'a>>, Stop> {
        loop {
            let (record, is_there) = match scan.index {
                None => match scan.scan.next_record() {
                    Some(record) => (record, self.is_present(record)),
                    None => return Ok(None),
                },
                Some(index) => match scan.scan.next_entry() {
                    Some((record, entry)) => (record, self.is_entry_of(scan.table, index, &entry, record)),
                    None => return Ok(None),
                },
            };
            if is_there {
                return Ok(Some(Row::Here(record)));
            }
        }
    }

    fn insert(&mut self, id: TableId, write: WriteSet<'_, 'a>) -> Result<Row<'a>, Stop> {
        let table = self.material.definitions.table(id);
        let primary_key = &table.schema().primary_key;
        let grain = self.material.grains.get(id).expect("a table that is written has a grain");
        table.encode_row_key(write.values, self.key)?;
        if grain < primary_key.len() {
            let leading = primary_key[..grain].iter().map(|column| write.values[usize::from(column.0)]);
            self.encode(table, leading)?;
        }
        let (action, queue) = self.action(id);
        self.take_turn(action, queue)?;
        table.encode_row_key(write.values, self.key)?;
        let (record, is_new) = table.find_or_create(self.key, self.own_guard);
        // SAFETY: records stay for as long as the graph's own epoch is pinned.
        let record: &'a Record = unsafe { &*std::ptr::from_ref(record) };
        if is_new {
            self.progress.workspace.touched.push((table, record));
        }
        if self.is_present(record) {
            let values: Vec<Datum<'a>> =
                primary_key.iter().map(|column| write.values[usize::from(column.0)]).collect();
            return Err(duplicate(table.schema(), primary_key, &values, PRIMARY_KEY).into());
        }
        let row: &'a [Datum<'a>] = self.arena.alloc_slice_copy(write.values);
        let value = |_: &Self, column: ColumnId| row[usize::from(column.0)];
        if !is_new {
            self.progress.workspace.touched.push((table, record));
        }
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            self.enter(table, record, index, &value)?;
        }
        self.progress.workspace.set(table, record, Image::Row(row));
        Ok(Row::Here(record))
    }

    fn update(&mut self, table: TableId, row: Row<'a>, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        if let Row::Elsewhere = row {
            return Ok(());
        }
        let table = self.material.definitions.table(table);
        let record = row.record();
        if table.index_count() > 0 {
            let values: &'a [Datum<'a>] = self.arena.alloc_slice_copy(write.values);
            let before = |this: &Self, column| this.value(table, record, column);
            let after = |this: &Self, column| match write.columns.contains(column) {
                true => values[write.columns.rank(column)],
                false => this.value(table, record, column),
            };
            for index in table.indexes_of(write.columns) {
                let columns = table.index_columns(index);
                if columns.iter().all(|&column| before(self, column) == after(self, column)) {
                    continue;
                }
                let old = self.entry_key(table, index, &before)?;
                self.leave(table, record, index, old);
                self.enter(table, record, index, &after)?;
            }
        }
        self.progress.workspace.update(table, record, write.columns, write.values, self.arena);
        Ok(())
    }

    fn delete(&mut self, table: TableId, row: Row<'a>) -> Result<(), Stop> {
        let table = self.material.definitions.table(table);
        let record = row.record();
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            let key = self.entry_key(table, index, &|this, column| this.value(table, record, column))?;
            self.leave(table, record, index, key);
        }
        self.progress.workspace.set(table, record, Image::Gone);
        Ok(())
    }

    fn now(&self) -> i64 {
        self.time_us
    }

    fn random(&mut self) -> f64 {
        let seq = self.graph.calls[self.progress.call as usize].seq;
        self.progress.random.get_or_insert_with(|| CallRandom::new(seq)).next()
    }

    fn is_missing(&self, row: Row<'a>) -> bool {
        matches!(row, Row::Missing)
    }
}
