//! A split phase: which records are split, what calls see of them, and how they are reconciled.
//!
//! While a record is split its word says so ([`word::split`]), so nobody can lock it or validate it, and its
//! newest version stays what it was. A phase begins and ends while no call runs, under the engine's gate.

use crate::room::Room;
use crate::sample::{Candidate, Name};
use crate::slice::{Slice, SplitColumn, datum};
use fabius_engine::eager::optimistic::word;
use fabius_engine::eager::plan::Schema;
use fabius_program::slice::operation::{Operation, TableOperations};
use fabius_storage::fold::{Retired, fold};
use fabius_storage::version::Contents;
use fabius_storage::{Cell, Record, Table, Version, chain};
use fabius_value::{ColumnId, ColumnMask, Datum, Deltas, Key, Seq, Value};
use parking_lot::Mutex;
use std::ptr::NonNull;
use std::sync::Arc;

/// Records that are split at one time.
pub const RECORDS_MAX: usize = 256;

/// A split record.
pub struct SplitRecord {
    /// The record's name.
    pub name: Name,
    /// The record's split columns, in their order.
    pub split: Vec<SplitColumn>,
    /// How far all cores together may move each of them.
    pub rooms: Vec<Room>,
    columns: ColumnMask,
    before: Vec<Value>,
    table: Arc<Table>,
    record: NonNull<Record>,
    stand_in: NonNull<Version>,
}

// SAFETY: the record is in its table's index while it is split, because nobody can delete it; the stand-in
// belongs to the split record, and is only read.
unsafe impl Send for SplitRecord {}
// SAFETY: the record stays in its index while it is split, and the stand-in is only read.
unsafe impl Sync for SplitRecord {}

impl Drop for SplitRecord {
    fn drop(&mut self) {
        // SAFETY: no call runs that could look at it, or the engine is gone.
        unsafe { Version::free(self.stand_in, self.table.long_columns()) };
    }
}

impl SplitRecord {
    /// Splits a record, unless it is not there any more or a column cannot be split.
    fn new(candidate: &Candidate, place: usize, schema: &Schema) -> Option<SplitRecord> {
        let table = schema.definitions.table(candidate.name.table);
        let guard = crossbeam_epoch::pin();
        let mut key = Key::new();
        key.extend(&candidate.name.key);
        let record = table.find(&key, &guard)?;
        // SAFETY: the epoch is pinned.
        let head = unsafe { record.head().as_ref() }.filter(|head| !head.is_tombstone())?;
        let mut row = Vec::with_capacity(table.types().len());
        for (at, data_type) in table.types().iter().enumerate() {
            // SAFETY: the epoch is pinned; whole calls leave nothing pending.
            match unsafe { chain::read(head, ColumnId(at as u8), *data_type, std::ptr::null_mut()) } {
                Cell::Value(value) => row.push(value),
                Cell::Absent | Cell::Pending(_) => return None,
            }
        }
        let mut columns = candidate.operations.clone();
        columns.sort_unstable_by_key(|(column, _)| *column);
        let (mut split, mut rooms) = (Vec::new(), Vec::new());
        let mut before = Vec::new();
        for (column, operation) in columns {
            let at = usize::from(column.0);
            let data_type = table.types()[at];
            before.push(row[at].to_value(data_type));
            if let Operation::Put(_) = operation {
                // Nobody looks at it.
                split.push(SplitColumn { column, data_type, operation, identity: 0 });
                rooms.push(Room::new(0));
                continue;
            }
            let (low, high) = data_type.number_range()?;
            let value = row[at].exact();
            let (identity, room) = match operation {
                Operation::Multiply => (1, high / value.abs().max(1)),
                Operation::Max | Operation::Order(_) => (low, 0),
                Operation::Min => (high, 0),
                _ => (0, high.saturating_sub(value).min(value.saturating_sub(low))),
            };
            split.push(SplitColumn { column, data_type, operation, identity });
            rooms.push(Room::new(room));
            row[at] = datum(identity, data_type);
        }
        let contents = whole(head.seq(), ColumnMask::first(row.len()), &row);
        let stand_in = Version::create(&contents, table.types());
        // SAFETY: above nothing, and nobody sees it yet.
        unsafe { stand_in.as_ref().place_above(std::ptr::null()) };
        word::split(record.lock(), place);
        Some(SplitRecord {
            name: candidate.name.clone(),
            columns: split.iter().map(|split| split.column).collect(),
            split,
            rooms,
            before,
            table: table.clone(),
            record: record.owner(),
            stand_in,
        })
    }

    /// The row with columns that operations are applied to as if nothing had been.
    pub fn stand_in(&self) -> &Version {
        // SAFETY: it lives as long as the split record.
        unsafe { self.stand_in.as_ref() }
    }

    /// Whether a program that does this to the table's rows only applies this phase's operations to the
    /// record, if anything, and does not look at what they have done.
    pub fn admits(&self, does: Option<&TableOperations>) -> bool {
        let Some(does) = does else { return true };
        let is_ours = |(column, operation): &(ColumnId, Operation)| {
            self.split.iter().any(|split| split.column == *column && split.operation == *operation)
        };
        does.written.is_empty()
            && !does.deletes
            && !does.read.intersects(self.columns)
            && does.applied.iter().all(is_ours)
    }

    /// A slice of it on which nothing was done.
    fn slice(&self) -> Slice {
        Slice::new(self.split.iter().copied())
    }

    /// The record's name and operations.
    pub fn candidate(&self) -> Candidate {
        let operations = self.split.iter().map(|split| (split.column, split.operation));
        Candidate { name: self.name.clone(), operations: operations.collect() }
    }

    /// Whether calls' places in the order matter: of two puts that are as high, the first stays.
    pub fn is_ordered(&self) -> bool {
        self.split.iter().any(|split| matches!(split.operation, Operation::Order(_)))
    }

    /// The place of a split column among them.
    #[inline]
    pub fn place(&self, column: ColumnId) -> usize {
        self.columns.rank(column)
    }

    /// Installs what all cores have done together, as a version with this seq; the record is split no more.
    fn reconcile(&self, done: &Slice, seq: Seq, collected: Seq, retired: &mut Retired) {
        // SAFETY: in its index, see above.
        let record = unsafe { self.record.as_ref() };
        word::unlock(record.lock());
        if done.applied == 0 {
            return;
        }
        let types = self.table.types();
        let after = done.applied_to(&self.before);
        let values: Vec<Datum<'_>> = after.iter().map(Datum::from_value).collect();
        record.push(Version::create(&whole(seq, self.columns, &values), types));
        // SAFETY: no call runs, so this thread is the record's writer; nobody reads below `collected`.
        unsafe { fold(record, collected, types, retired) };
    }
}

fn whole<'r, 'a>(seq: Seq, columns: ColumnMask, values: &'r [Datum<'a>]) -> Contents<'r, 'a> {
    Contents {
        seq,
        values_mask: columns,
        values,
        deltas: Deltas::default(),
        sticky: ColumnMask::EMPTY,
        deferred: std::ptr::null_mut(),
    }
}

/// A split phase.
pub struct SplitPhase {
    /// The split records, by place.
    pub records: Vec<SplitRecord>,
    /// What cores have reconciled already, by place.
    merged: Vec<Mutex<Slice>>,
}

impl SplitPhase {
    /// Splits records; `None` if there is none to split. No call runs.
    pub fn begin(candidates: &[Candidate], schema: &Schema) -> Option<SplitPhase> {
        let mut records = Vec::new();
        for candidate in candidates.iter().take(RECORDS_MAX) {
            records.extend(SplitRecord::new(candidate, records.len(), schema));
        }
        let merged = records.iter().map(|record| Mutex::new(record.slice())).collect();
        (!records.is_empty()).then_some(SplitPhase { records, merged })
    }

    /// Slices on which nothing was done, one for each record.
    pub fn slices(&self) -> Vec<Slice> {
        self.records.iter().map(SplitRecord::slice).collect()
    }

    /// Reconciles one core's slices: cores do so side by side when they hear that the phase ends, and may run another
    /// turn before it has. Each goes through the records from another place on.
    pub fn merge(&self, core: usize, slices: &mut [Slice]) {
        let count = slices.len();
        for place in (0..count).map(|at| (at + core) % count) {
            let slice = &mut slices[place];
            if slice.applied + slice.stashed > 0 {
                self.merged[place].lock().merge(slice);
                slice.restart();
            }
        }
    }

    /// Ends the phase, after all slices were merged: what was done is installed at `seq`. No call runs. Gives
    /// what was done, by place.
    pub fn reconcile(self, seq: Seq, collected: Seq) -> Vec<(SplitRecord, Slice)> {
        let guard = crossbeam_epoch::pin();
        let mut retired = Retired::default();
        let merged = self.merged.into_iter().map(Mutex::into_inner);
        let ended: Vec<(SplitRecord, Slice)> = self.records.into_iter().zip(merged).collect();
        ended.iter().for_each(|(record, done)| record.reconcile(done, seq, collected, &mut retired));
        retired.hand_over(&guard);
        ended
    }
}
