//! Rows, definitions and keys of one seq, for as long as somebody looks.
//!
//! A reader of tables and ranges: it holds a snapshot, so that its rows stay, but an epoch only for some
//! rows at a time, so that what calls leave behind meanwhile can be freed. A range is gone over in parts:
//!
//! ```text
//! entries   a b c d e f g h i j k ...
//!           |-- epoch --|
//!                       |-- epoch --|        from behind the last entry of the part before
//! ```

use crate::idempotency::KeyWalk;
use crate::{Definitions, Foundation, HeldSnapshot};
use fabius_env::schedule;
use fabius_storage::scan::Range;
use fabius_storage::snapshot::Snapshot;
use fabius_storage::{Cell, Record, Table, Version, chain, checkpoint};
use fabius_value::{
    ColumnId, DataType, Datum, Error, IndexId, Key, Result, Seq, SqlState, TableId, TableSchema, Value,
};
use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::Arc;

/// Rows read under one epoch.
const ROWS_PER_EPOCH: usize = 256;

/// Rows of a table to be read: a range of an index, and columns.
#[derive(Clone, Debug, PartialEq)]
pub struct TableScan {
    /// The table.
    pub table: TableId,
    /// A secondary index, or `None` for the primary key.
    pub index: Option<IndexId>,
    /// Values that the leading index columns equal, of the columns' types; with a null there is no row.
    pub equal: Vec<Value>,
    /// Lower bound on the column after those, and whether it is included; with a null there is no row.
    pub lower: Option<(Value, bool)>,
    /// Upper bound on the same column, likewise.
    pub upper: Option<(Value, bool)>,
    /// From the upper end down.
    pub descending: bool,
    /// What of each row is shown, in this order.
    pub columns: Vec<ColumnId>,
}

impl TableScan {
    /// Every row and column, in the order of the primary key.
    pub fn whole(table: TableId, schema: &TableSchema) -> TableScan {
        let columns = (0..schema.columns.len()).map(|at| ColumnId(at as u8)).collect();
        TableScan {
            table,
            index: None,
            equal: Vec::new(),
            lower: None,
            upper: None,
            descending: false,
            columns,
        }
    }

    /// Whether all rows will do, in any order that the table has.
    fn is_unbounded(&self) -> bool {
        let bounded = !self.equal.is_empty() || self.lower.is_some() || self.upper.is_some();
        self.index.is_none() && !self.descending && !bounded
    }
}

/// How far a scan has come that is made in parts.
#[derive(Clone, Debug, Default)]
pub enum ScanPlace {
    /// It has not begun.
    #[default]
    Begin,
    /// What is left are the entries between these two.
    Between(Key, Option<Key>),
    /// There is no more.
    End,
}

/// A snapshot for the time of a function, or for as long as its owner likes.
enum Place<'f> {
    Borrowed(Snapshot<'f>),
    Held(HeldSnapshot),
}

/// What is done about a sticky, given its address, under the epoch in which it was read. An error says that it cannot
/// be computed any more.
pub type Substantiate<'s> = dyn FnMut(*mut ()) -> Result<()> + 's;

/// A seq with everything that belongs to it.
pub struct Standpoint<'f> {
    place: Place<'f>,
    definitions: Arc<Definitions>,
    keys: Option<KeyWalk<'f>>,
}

impl<'f> Standpoint<'f> {
    /// The newest promised seq. There may be newer definitions than those of that seq.
    pub fn newest(foundation: &'f Foundation) -> Standpoint<'f> {
        let place = Place::Borrowed(foundation.begin_snapshot());
        Standpoint { place, definitions: foundation.definitions(), keys: None }
    }

    /// The newest promised seq, for a reader that borrows nothing: a query that takes its time, on any
    /// thread. It blocks no call; what it can see is kept until it is dropped.
    pub fn held(foundation: &Arc<Foundation>) -> Standpoint<'static> {
        let mut before = foundation.definitions();
        loop {
            let snapshot = foundation.hold_snapshot();
            // Those of the snapshot's seq: none have come into force beside it, or are about to.
            let definitions = foundation.definitions();
            if Arc::ptr_eq(&before, &definitions) && definitions.last_seq() <= snapshot.seq() {
                return Standpoint { place: Place::Held(snapshot), definitions, keys: None };
            }
            before = definitions;
            schedule::give_way("definitions");
        }
    }

    /// Whether this is a place in what stands on this foundation.
    pub fn is_of(&self, foundation: &Foundation) -> bool {
        match &self.place {
            Place::Borrowed(snapshot) => snapshot.is_of(&foundation.snapshots),
            Place::Held(snapshot) => snapshot.is_of(foundation),
        }
    }

    /// A seq of the past with definitions that were in force, as [`HeldSnapshot::at`] gives it.
    pub fn past(snapshot: HeldSnapshot, definitions: Arc<Definitions>) -> Standpoint<'static> {
        Standpoint { place: Place::Held(snapshot), definitions, keys: None }
    }

    /// The newest promised seq, with the keys. The caller sees to it that no definition comes in between.
    pub fn whole(foundation: &'f Foundation) -> Standpoint<'f> {
        // Nothing is forgotten from before the snapshot on, and what is remembered until after it counts.
        let mut keys = KeyWalk::new(&foundation.keys);
        let mut at = Standpoint::newest(foundation);
        keys.reach_now();
        at.keys = Some(keys);
        at
    }

    /// The seq.
    pub fn seq(&self) -> Seq {
        match &self.place {
            Place::Borrowed(snapshot) => snapshot.seq(),
            Place::Held(snapshot) => snapshot.seq(),
        }
    }

    /// The definitions in force.
    pub fn definitions(&self) -> &Arc<Definitions> {
        &self.definitions
    }

    /// The walk over the keys, once.
    pub fn take_keys(&mut self) -> Option<KeyWalk<'f>> {
        self.keys.take()
    }

    /// Shows rows of a table until `visit` says no; `substantiate` computes what a sticky stands for.
    ///
    /// # Errors
    /// The first error of `visit` or `substantiate`; `42P17` for an order that the table does not have, `54000` for a
    /// bound that is too long.
    pub fn scan(
        &self,
        scan: &TableScan,
        substantiate: &mut Substantiate<'_>,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
    ) -> Result<()> {
        let table = self.definitions.table(scan.table);
        let mut show = Show { types: table.types(), columns: &scan.columns, substantiate, visit };
        if scan.is_unbounded() {
            return self.scan_whole(table, &mut show);
        }
        self.scan_ordered(table, scan, &mut ScanPlace::Begin, &mut show)
    }

    /// Shows rows in parts: from `place` until `visit` says no, behind which `place` is then. Not for tables without an
    /// order.
    ///
    /// # Errors
    /// As [`Standpoint::scan`].
    pub fn scan_on(
        &self,
        scan: &TableScan,
        place: &mut ScanPlace,
        substantiate: &mut Substantiate<'_>,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
    ) -> Result<()> {
        let table = self.definitions.table(scan.table);
        let mut show = Show { types: table.types(), columns: &scan.columns, substantiate, visit };
        self.scan_ordered(table, scan, place, &mut show)
    }

    fn scan_ordered(
        &self,
        table: &Table,
        scan: &TableScan,
        place: &mut ScanPlace,
        show: &mut Show<'_, '_>,
    ) -> Result<()> {
        let bounds = scan.lower.iter().chain(&scan.upper).map(|(value, _)| value);
        if scan.equal.iter().chain(bounds).any(Value::is_null) {
            *place = ScanPlace::End;
            return Ok(());
        }
        match (scan.index, &place) {
            (_, ScanPlace::End) => Ok(()),
            (None, _) if scan.equal.len() == table.schema().primary_key.len() => {
                *place = ScanPlace::End;
                self.find(table, scan, show)
            }
            (None, _) if table.schema().hash => {
                let message = format!("table {} has no order to scan in", table.schema().name);
                Err(Error::new(SqlState::INVALID_OBJECT_DEFINITION, message))
            }
            _ => self.scan_range(table, scan, place, show),
        }
    }

    /// The records of a table whose rows are there, for threads that read a part each.
    pub fn records(&self, table: TableId) -> Records<'_> {
        let present = checkpoint::present(self.definitions.table(table), self.seq(), &crossbeam_epoch::pin());
        Records { table, present, _standpoint: PhantomData }
    }

    /// Shows all columns of some of a table's rows, by their places among its records.
    ///
    /// # Errors
    /// As [`Standpoint::scan`].
    pub fn scan_part(
        &self,
        records: &Records<'_>,
        part: std::ops::Range<usize>,
        substantiate: &mut Substantiate<'_>,
        visit: &mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
    ) -> Result<()> {
        let table = self.definitions.table(records.table);
        let scan = TableScan::whole(records.table, table.schema());
        let mut show = Show { types: table.types(), columns: &scan.columns, substantiate, visit };
        self.show_records(&records.present[part], &mut show)
    }

    fn scan_whole(&self, table: &Table, show: &mut Show<'_, '_>) -> Result<()> {
        let records = checkpoint::present(table, self.seq(), &crossbeam_epoch::pin());
        self.show_records(&records, show)
    }

    fn show_records(&self, records: &[NonNull<Record>], show: &mut Show<'_, '_>) -> Result<()> {
        for records in records.chunks(ROWS_PER_EPOCH) {
            let _guard = crossbeam_epoch::pin();
            let mut row: Vec<Datum<'_>> = Vec::with_capacity(show.columns.len());
            for record in records {
                // SAFETY: the snapshot keeps a record that is present at its seq (see `present`), and the
                // epoch is pinned for its versions.
                let version = unsafe { record.as_ref().visible(self.seq()) };
                // SAFETY: the epoch is pinned, and the snapshot keeps what is visible at its seq.
                if !unsafe { show.row(version, &mut row) }? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The row with the key that `scan.equal` is.
    fn find(&self, table: &Table, scan: &TableScan, show: &mut Show<'_, '_>) -> Result<()> {
        let mut key = Key::new();
        let values: Vec<Datum<'_>> = scan.equal.iter().map(Datum::from_value).collect();
        table.encode_key(&values, &mut key)?;
        let guard = crossbeam_epoch::pin();
        let Some(record) = table.find(&key, &guard) else { return Ok(()) };
        // SAFETY: the epoch is pinned, and the snapshot keeps what is visible at its seq.
        unsafe {
            let version = record.visible(self.seq());
            if chain::is_present(version) {
                show.row(version, &mut Vec::new())?;
            }
        }
        Ok(())
    }

    fn scan_range(
        &self,
        table: &Table,
        scan: &TableScan,
        place: &mut ScanPlace,
        show: &mut Show<'_, '_>,
    ) -> Result<()> {
        let mut rest = match std::mem::replace(place, ScanPlace::End) {
            ScanPlace::Begin => self.bounds(table, scan)?,
            ScanPlace::Between(lower, upper) => Some((lower, upper)),
            ScanPlace::End => None,
        };
        while let Some(bounds) = rest.take() {
            let guard = crossbeam_epoch::pin();
            let mut entries = table.scan_between(scan.index, Some(bounds.clone()), scan.descending, &guard);
            let mut row: Vec<Datum<'_>> = Vec::with_capacity(show.columns.len());
            let (mut last, mut goes_on) = (None, true);
            for _ in 0..ROWS_PER_EPOCH {
                let Some((record, entry)) = entries.next_entry() else {
                    last = None;
                    break;
                };
                // SAFETY: the epoch is pinned, and the snapshot keeps what is visible at its seq; indexed
                // columns are never stickies.
                unsafe {
                    let version = record.visible(self.seq());
                    let current = |index| table.entry_is_current(index, &entry, version);
                    if chain::is_present(version) && scan.index.is_none_or(current) {
                        goes_on = show.row(version, &mut row)?;
                    }
                }
                last = Some(entry);
                if !goes_on {
                    break;
                }
            }
            rest = last.and_then(|last| match scan.descending {
                true => Some((bounds.0, Some(last))).filter(|(lower, upper)| Some(lower) < upper.as_ref()),
                false => last
                    .prefix_end()
                    .map(|next| (next, bounds.1))
                    .filter(|(next, upper)| upper.as_ref().is_none_or(|upper| next < upper)),
            });
            if !goes_on {
                *place = rest.map_or(ScanPlace::End, |(lower, upper)| ScanPlace::Between(lower, upper));
                return Ok(());
            }
        }
        Ok(())
    }

    /// The entries that a scan is about lie between these.
    fn bounds(&self, table: &Table, scan: &TableScan) -> Result<Option<(Key, Option<Key>)>> {
        let equal: Vec<Datum<'_>> = scan.equal.iter().map(Datum::from_value).collect();
        let (lower, upper) = (scan.lower.as_ref(), scan.upper.as_ref());
        let range = Range {
            index: scan.index,
            equal: &equal,
            lower: lower.map(|(value, inclusive)| (Datum::from_value(value), *inclusive)),
            upper: upper.map(|(value, inclusive)| (Datum::from_value(value), *inclusive)),
            descending: scan.descending,
        };
        table.range_bytes(&range)
    }
}

/// The records of a table whose rows are there at a standpoint, in key order for ordered tables.
pub struct Records<'s> {
    table: TableId,
    present: Vec<NonNull<Record>>,
    _standpoint: PhantomData<&'s ()>,
}

// SAFETY: threads share records; these stay where they are as long as the standpoint, which is borrowed, holds its
// snapshot (see `present`).
unsafe impl Send for Records<'_> {}
// SAFETY: threads read records by way of them and change nothing; the standpoint holds its snapshot as long.
unsafe impl Sync for Records<'_> {}

impl Records<'_> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.present.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.present.is_empty()
    }
}

/// Shows columns of rows.
struct Show<'s, 'v> {
    types: &'s [DataType],
    columns: &'s [ColumnId],
    substantiate: &'s mut Substantiate<'v>,
    visit: &'s mut dyn FnMut(&[Datum<'_>]) -> Result<bool>,
}

impl Show<'_, '_> {
    /// Shows a row in the room of `row`; whether to go on.
    ///
    /// # Safety
    /// The version is of a present row, and stays readable for `'g`.
    unsafe fn row<'g>(&mut self, version: *const Version, row: &mut Vec<Datum<'g>>) -> Result<bool> {
        row.clear();
        for column in self.columns {
            let data_type = self.types[usize::from(column.0)];
            loop {
                // SAFETY: the version stays readable for 'g, as whoever calls this sees to.
                match unsafe { chain::read(version, *column, data_type, std::ptr::null_mut()) } {
                    Cell::Value(value) => break row.push(value),
                    Cell::Pending(source) => (self.substantiate)(source)?,
                    Cell::Absent => unreachable!("a present row has every column"),
                }
            }
        }
        (self.visit)(row)
    }
}
