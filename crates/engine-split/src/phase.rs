//! A split phase: which records are split, what calls see of them, and how they are reconciled.
//!
//! While a record is split its word says so ([`word::split`]), so nobody can lock it or validate it, and its
//! newest version stays what it was. A phase begins and ends while no call runs, under the engine's gate.

use crate::sample::{Candidate, Name};
use crate::slice::{Operation, Slice};
use fabius_engine::eager::optimistic::word;
use fabius_engine::eager::plan::Schema;
use fabius_program::slice::operation::TableOperations;
use fabius_storage::fold::{Retired, fold};
use fabius_storage::version::Contents;
use fabius_storage::{Cell, Record, Table, Version, chain};
use fabius_value::{ColumnId, ColumnMask, DataType, Datum, DeltaOperator, Key, Seq};
use parking_lot::Mutex;
use std::ptr::NonNull;
use std::sync::Arc;

/// Records that are split at one time.
pub const RECORDS_MAX: usize = 256;

/// A split record.
pub struct SplitRecord {
    /// Its name.
    pub name: Name,
    /// The operations on its split columns, in the order of columns.
    pub operations: Vec<(ColumnId, Operation)>,
    columns: ColumnMask,
    before: Vec<i128>,
    table: Arc<Table>,
    record: NonNull<Record>,
    stand_in: NonNull<Version>,
}

// SAFETY: the record is in its table's index while it is split, because nobody can delete it; the stand-in
// belongs to the split record, and is only read.
unsafe impl Send for SplitRecord {}
// SAFETY: as above.
unsafe impl Sync for SplitRecord {}

impl Drop for SplitRecord {
    fn drop(&mut self) {
        // SAFETY: no call runs that could look at it, or the engine is gone.
        unsafe { Version::free(self.stand_in, self.table.types()) };
    }
}

impl SplitRecord {
    /// Splits a record, unless it is not there any more or a column cannot be split.
    fn new(candidate: &Candidate, place: usize, cores: i128, schema: &Schema) -> Option<SplitRecord> {
        let table = schema.definitions.table(candidate.name.table);
        let guard = crossbeam_epoch::pin();
        let mut key = Key::new();
        key.extend(&candidate.name.key);
        let record = table.find(&key, &guard)?;
        // SAFETY: the epoch is pinned.
        let head = unsafe { record.head().as_ref() }.filter(|head| !head.is_tombstone())?;
        let mut row = Vec::with_capacity(table.types().len());
        for (at, data_type) in table.types().iter().enumerate() {
            // SAFETY: as above; whole calls leave nothing pending.
            match unsafe { chain::read(head, ColumnId(at as u8), *data_type, std::ptr::null_mut()) } {
                Cell::Value(value) => row.push(value),
                Cell::Absent | Cell::Pending(_) => return None,
            }
        }
        let mut columns = candidate.operations.clone();
        columns.sort_unstable_by_key(|(column, _)| *column);
        let mut split = Vec::new();
        let mut before = Vec::new();
        for (column, operator) in columns {
            let at = usize::from(column.0);
            let data_type = table.types()[at];
            let (low, high) = data_type.exact_range()?;
            if row[at].is_null() {
                // Nothing is added to it as long as it is null.
                return None;
            }
            let value = row[at].exact();
            let identity = match operator {
                DeltaOperator::Add => 0,
                DeltaOperator::Max => low,
                DeltaOperator::Min => high,
            };
            let room = (high - value).min(value - low) / cores;
            split.push((column, Operation { operator, identity, room }));
            before.push(value);
            row[at] = datum(identity, data_type);
        }
        let contents = whole(head.seq(), ColumnMask::first(row.len()), &row);
        let stand_in = Version::create(&contents, table.types());
        // SAFETY: above nothing, and nobody sees it yet.
        unsafe { stand_in.as_ref().place_above(std::ptr::null()) };
        word::split(record.lock(), place);
        Some(SplitRecord {
            name: candidate.name.clone(),
            columns: split.iter().map(|(column, _)| *column).collect(),
            operations: split,
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
        let is_ours = |(column, operator): &(ColumnId, DeltaOperator)| {
            self.operations.iter().any(|(split, ours)| split == column && ours.operator == *operator)
        };
        does.written.is_empty()
            && !does.deletes
            && !does.read.intersects(self.columns)
            && does.applied.iter().all(is_ours)
    }

    /// A slice of it on which nothing was done.
    fn slice(&self) -> Slice {
        Slice::new(self.operations.iter().map(|(_, operation)| *operation))
    }

    /// Its name and operations.
    pub fn candidate(&self) -> Candidate {
        let operations = self.operations.iter().map(|(column, operation)| (*column, operation.operator));
        Candidate { name: self.name.clone(), operations: operations.collect() }
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
        let summaries = done.columns.iter().zip(&self.before).zip(self.columns.iter());
        let values: Vec<Datum<'_>> = summaries
            .map(|((summary, before), column)| {
                let data_type = types[usize::from(column.0)];
                let value = summary.applied_to(*before);
                let range = data_type.exact_range().expect("only exact numbers are split");
                assert!((range.0..=range.1).contains(&value), "cores stay within their room");
                datum(value, data_type)
            })
            .collect();
        record.push(Version::create(&whole(seq, self.columns, &values), types));
        // SAFETY: no call runs, so this thread is the record's writer; nobody reads below `collected`.
        unsafe { fold(record, collected, types, retired) };
    }
}

fn datum<'a>(value: i128, data_type: DataType) -> Datum<'a> {
    match data_type {
        DataType::Numeric { .. } => Datum::Numeric(value),
        _ => Datum::Int(i64::try_from(value).expect("an integer's range")),
    }
}

fn whole<'r, 'a>(seq: Seq, columns: ColumnMask, values: &'r [Datum<'a>]) -> Contents<'r, 'a> {
    Contents {
        seq,
        values_mask: columns,
        values,
        deltas: &[],
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
    /// Splits records for so many cores; `None` if there is none to split. No call runs.
    pub fn begin(candidates: &[Candidate], cores: usize, schema: &Schema) -> Option<SplitPhase> {
        let mut records = Vec::new();
        for candidate in candidates.iter().take(RECORDS_MAX) {
            records.extend(SplitRecord::new(candidate, records.len(), cores as i128, schema));
        }
        let merged = records.iter().map(|record| Mutex::new(record.slice())).collect();
        (!records.is_empty()).then_some(SplitPhase { records, merged })
    }

    /// Slices on which nothing was done, one for each record.
    pub fn slices(&self) -> Vec<Slice> {
        self.records.iter().map(SplitRecord::slice).collect()
    }

    /// Reconciles one core's slices, and leaves it none: cores do so side by side when they hear that the
    /// phase ends. Each goes through the records from another place on.
    pub fn merge(&self, core: usize, slices: &mut Vec<Slice>) {
        let count = slices.len();
        for place in (0..count).map(|at| (at + core) % count) {
            self.merged[place].lock().merge(&slices[place]);
        }
        slices.clear();
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
