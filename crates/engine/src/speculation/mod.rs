//! A program run ahead of its place in the order, over a transaction's own writes.
//!
//! An interactive transaction shows its client results before anything is ordered. Its statements run on
//! the rows of one seq with what the transaction itself has written laid over them:
//!
//! ```text
//!             overlay     (2, 'new')          (7, deleted)
//!             snapshot    (2, 'old')  (5, ..) (7, ..)         at one seq
//!   ------------------------------------------------------
//!   the program sees      (2, 'new')  (5, ..)
//! ```
//!
//! Nothing here decides anything: the calls that commit the transaction run again at their place in the
//! order, and check that what was shown still holds. The overlay only ever has whole rows; a program that
//! aborts leaves it as it was.

mod footprint;
mod overlay;

pub use footprint::{Footprint, KeyRange};
pub use overlay::{Image, KeyBytes, Mark, Overlay};

use crate::constraint::{PRIMARY_KEY, duplicate};
use crate::lend::lend;
use crate::standpoint::Substantiate;
use crate::{Definitions, Foundation, Procedure, Room, random::CallRandom};
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_program::execute::{self, FrameFor};
use fabius_storage::scan::{Range, RowScan};
use fabius_storage::{Cell, Table, chain, chain::Visible};
use fabius_value::{ColumnId, ColumnMask, Datum, Error, IndexId, Key, Result, Seq, SqlState, TableId, Value};
use footprint::NOTE_BYTES;
use overlay::entry;
use std::sync::Arc;

/// What a program that ran ahead has given.
#[derive(Clone, Debug)]
pub struct Speculated {
    /// What it returned.
    pub results: Vec<Value>,
    /// What it looked at.
    pub footprint: Footprint,
}

/// Runs a program on the rows of one seq, at which the caller holds a snapshot, and on an overlay, which gets
/// its writes. It holds no more than there is room for. `substantiate` computes what a sticky stands for.
///
/// # Errors
/// Why the program aborted, or what `substantiate` says; then the overlay is as before.
pub fn speculate(
    foundation: &Foundation,
    at: Seq,
    procedure: &Procedure,
    arguments: &[u8],
    overlay: &mut Overlay,
    room: Room,
    substantiate: &mut Substantiate<'_>,
) -> Result<Speculated> {
    let definitions = foundation.definitions();
    let guard = crossbeam_epoch::pin();
    let arena = Bump::new();
    let begin = overlay.mark();
    let mut context = Speculation {
        definitions: &definitions,
        guard: &guard,
        arena: &arena,
        seq: at,
        time_us: foundation.clock.now_us(),
        random: CallRandom::new(at),
        key: Key::new(),
        overlay,
        footprint: Footprint::default(),
        extents: Vec::new(),
        room,
        substantiate,
    };
    let mut frame = FrameFor::<Speculation<'_, '_>>::default();
    let admitted = context.definitions.admit(procedure);
    let outcome = match admitted.and_then(|()| frame.start(&procedure.whole, arguments, &arena)) {
        Ok(()) => execute::run(&mut frame, &procedure.whole, &mut context, &arena),
        Err(error) => Err(Stop::Abort(error)),
    };
    let mut footprint = std::mem::take(&mut context.footprint);
    footprint.ranges = context.extents.into_iter().map(Extent::range).collect();
    match outcome {
        Ok(()) => {
            let results = frame.results(&procedure.whole).unwrap_or_default();
            Ok(Speculated { results, footprint })
        }
        Err(Stop::Abort(error)) => {
            overlay.undo_to(begin);
            Err(error)
        }
        Err(Stop::Blocked | Stop::Restart) => unreachable!("nothing is waited for"),
    }
}

/// A row at one seq.
#[derive(Clone, Debug, PartialEq)]
pub struct RowAt {
    /// The row's values, if it is there.
    pub values: Option<Vec<Value>>,
    /// The call that wrote it last; 0 if none ever has.
    pub seq: Seq,
}

/// A row at one seq, at which the caller holds a snapshot, by the bytes of its key.
///
/// # Errors
/// Those of `substantiate`.
pub fn row_at(
    foundation: &Foundation,
    at: Seq,
    table: TableId,
    bytes: &[u8],
    substantiate: &mut Substantiate<'_>,
) -> Result<RowAt> {
    let definitions = foundation.definitions();
    let table = definitions.table(table);
    let guard = crossbeam_epoch::pin();
    let mut key = Key::new();
    key.extend(bytes);
    let Some(record) = table.find(&key, &guard) else {
        return Ok(RowAt { values: None, seq: Seq::default() });
    };
    // SAFETY: the epoch is pinned; the snapshot keeps what is visible at its seq.
    let version = unsafe { record.visible(at) };
    // SAFETY: the epoch is pinned; the snapshot keeps what is visible at its seq.
    let seq = unsafe { version.as_ref() }.map_or(Seq::default(), |version| version.seq());
    // SAFETY: the epoch is pinned; the snapshot keeps what is visible at its seq.
    if !unsafe { chain::is_present(version) } {
        return Ok(RowAt { values: None, seq });
    }
    let columns = table.types().iter().enumerate();
    let values = columns.map(|(column, &data_type)| {
        loop {
            // SAFETY: the epoch is pinned; the snapshot keeps what is visible at its seq.
            match unsafe { chain::read(version, ColumnId(column as u8), data_type, std::ptr::null_mut()) } {
                Cell::Value(value) => break Ok(value.to_value(data_type)),
                Cell::Pending(source) => substantiate(source)?,
                Cell::Absent => break Ok(Value::Null),
            }
        }
    });
    Ok(RowAt { values: Some(values.collect::<Result<_>>()?), seq })
}

/// Whether columns of a row were written between two seqs, or the row has come or gone; the caller holds a snapshot at
/// both of them.
pub fn has_changed(
    foundation: &Foundation,
    (seen, now): (Seq, Seq),
    (table, bytes): (TableId, &[u8]),
    columns: ColumnMask,
) -> bool {
    let definitions = foundation.definitions();
    let guard = crossbeam_epoch::pin();
    let mut key = Key::new();
    key.extend(bytes);
    let Some(record) = definitions.table(table).find(&key, &guard) else { return false };
    // SAFETY: the epoch is pinned; the snapshots keep what is visible at their seqs, and what is between.
    let mut version = unsafe { record.visible(now).as_ref() };
    while let Some(newer) = version.filter(|version| version.seq() > seen) {
        if newer.is_tombstone() || newer.columns().intersects(columns) {
            return true;
        }
        // SAFETY: the epoch is pinned; the snapshots keep what is between their seqs.
        version = unsafe { newer.next().as_ref() };
    }
    false
}

/// A row that was looked up: its key, and what the snapshot has of it.
#[derive(Clone, Copy)]
struct Found<'a> {
    key: &'a [u8],
    version: Visible,
}

/// The context of a program that runs ahead.
struct Speculation<'a, 'o> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    arena: &'a Bump,
    seq: Seq,
    time_us: i64,
    random: CallRandom,
    key: Key,
    overlay: &'o mut Overlay,
    footprint: Footprint,
    extents: Vec<Extent<'a>>,
    room: Room,
    substantiate: &'o mut Substantiate<'o>,
}

/// A range of the primary key that is gone over, and how far.
struct Extent<'a> {
    range: KeyRange,
    descending: bool,
    /// The last row that was met; none once the end was.
    reached: Option<&'a [u8]>,
}

impl Extent<'_> {
    /// The part of the range in which a row more or less would have been noticed.
    fn range(self) -> KeyRange {
        let Extent { mut range, descending, reached } = self;
        match reached {
            Some(key) if descending => range.lower = key.into(),
            Some(key) => range.upper = Some([key, &[0]].concat().into()),
            None => {}
        }
        range
    }
}

/// A scan over what the snapshot and the overlay have together, in order.
struct Scan<'a> {
    table: &'a Arc<Table>,
    index: Option<IndexId>,
    descending: bool,
    base: RowScan<'a>,
    /// The snapshot's next row with its entry, once it has been asked for.
    next: Option<Option<(KeyBytes, Found<'a>)>>,
    /// The overlay's entries at `opened`, the next one last.
    own: Vec<(KeyBytes, KeyBytes)>,
    opened: Mark,
    /// The scan's number among the extents, if what it meets counts as looked at.
    extent: Option<usize>,
}

impl<'a> Speculation<'a, '_> {
    fn table(&self, table: TableId) -> &'a Arc<Table> {
        self.definitions.table(table)
    }

    /// What the snapshot has of the key in `self.key`.
    fn base(&self, table: &'a Table) -> Visible {
        let record = table.find(&self.key, self.guard);
        // SAFETY: the epoch is pinned during 'a.
        record.map_or_else(Visible::default, |record| Visible(unsafe { record.visible(self.seq) }))
    }

    fn found(&mut self, table: &'a Table) -> Found<'a> {
        let key = self.arena.alloc_slice_copy(self.key.bytes());
        self.footprint.rows.insert((table.id(), (&*key).into()));
        Found { key, version: self.base(table) }
    }

    fn is_there(&self, table: TableId, row: Found<'a>) -> bool {
        match self.overlay.image(table, row.key) {
            Some(image) => image.is_some(),
            // SAFETY: the epoch is pinned during 'a.
            None => unsafe { chain::is_present(row.version.0) },
        }
    }

    /// A column of the snapshot's version.
    fn base_column(&mut self, table: &Table, version: Visible, column: ColumnId) -> Result<Datum<'a>> {
        let data_type = table.types()[usize::from(column.0)];
        loop {
            // SAFETY: the epoch is pinned during 'a; the snapshot keeps what is visible at its seq.
            match unsafe { chain::read(version.0, column, data_type, std::ptr::null_mut()) } {
                Cell::Value(value) => return Ok(value),
                Cell::Pending(source) => (self.substantiate)(source)?,
                Cell::Absent => return Ok(Datum::Null),
            }
        }
    }

    fn column(&mut self, table: &'a Table, row: Found<'a>, column: ColumnId) -> Result<Datum<'a>> {
        match self.overlay.image(table.id(), row.key) {
            Some(Some(row)) => Ok(lend(self.arena, &row[usize::from(column.0)])),
            Some(None) => Ok(Datum::Null),
            None => self.base_column(table, row.version, column),
        }
    }

    /// The whole row, owned.
    fn whole(&mut self, table: &'a Table, row: Found<'a>) -> Result<Vec<Value>> {
        if let Some(Some(row)) = self.overlay.image(table.id(), row.key) {
            return Ok(row.to_vec());
        }
        let types = table.types();
        let columns = (0..types.len()).map(|at| ColumnId(at as u8));
        columns
            .map(|column| {
                let value = self.base_column(table, row.version, column)?;
                Ok(value.to_value(types[usize::from(column.0)]))
            })
            .collect()
    }

    fn open(&mut self, table: &'a Arc<Table>, range: &Range<'_, 'a>) -> Result<Scan<'a>> {
        let own = match table.range_bytes(range)? {
            Some((lower, upper)) => {
                self.overlay.entries(table.id(), range.index, lower.bytes(), upper.as_ref().map(Key::bytes))
            }
            None => Vec::new(),
        };
        let mut scan = Scan {
            table,
            index: range.index,
            descending: range.descending,
            base: RowScan::open(table, range, self.guard)?,
            next: None,
            own,
            opened: self.overlay.mark(),
            extent: None,
        };
        if !scan.descending {
            scan.own.reverse();
        }
        Ok(scan)
    }

    /// The snapshot's next row that the transaction had not written when the scan was opened.
    fn next_base(&mut self, scan: &mut Scan<'a>) -> Result<Option<(KeyBytes, Found<'a>)>> {
        loop {
            // SAFETY: the epoch is pinned during 'a.
            let next =
                unsafe { scan.base.next_row(|record| self.room.look().map(|()| record.visible(self.seq))) }?;
            let Some((record, version)) = next else { return Ok(None) };
            if self.overlay.had_image(scan.table.id(), record.key(), scan.opened) {
                continue;
            }
            let found = Found { key: record.key(), version: Visible(version) };
            let entry = match scan.index {
                None => record.key().into(),
                Some(index) => {
                    let columns = scan.table.index_columns(index).iter();
                    let values: Vec<(ColumnId, Datum<'a>)> = columns
                        .map(|&column| Ok((column, self.base_column(scan.table, found.version, column)?)))
                        .collect::<Result<_>>()?;
                    let value = |wanted| {
                        values.iter().find(|(column, _)| *column == wanted).map_or(Datum::Null, |pair| pair.1)
                    };
                    scan.table.encode_entry(index, value, record.key(), &mut self.key)?;
                    self.key.bytes().into()
                }
            };
            return Ok(Some((entry, found)));
        }
    }

    /// The next row of both together.
    fn next_row(&mut self, scan: &mut Scan<'a>) -> Result<Option<Found<'a>>> {
        loop {
            if scan.next.is_none() {
                scan.next = Some(self.next_base(scan)?);
            }
            let own_first = match (scan.own.last(), scan.next.as_ref().and_then(Option::as_ref)) {
                (None, None) => return Ok(None),
                (Some(_), None) => true,
                (None, Some(_)) => false,
                (Some((own, _)), Some((base, _))) => (own < base) != scan.descending,
            };
            let found = match own_first {
                true => scan.own.pop().map(|(_, key)| {
                    let key = self.arena.alloc_slice_copy(&key);
                    Found { key, version: Visible::default() }
                }),
                false => scan.next.take().flatten().map(|(_, found)| found),
            };
            // The loop's body may have deleted it.
            if let Some(found) = found.filter(|found| self.is_there(scan.table.id(), *found)) {
                return Ok(Some(found));
            }
        }
    }

    /// Refuses a row whose values another row has in a unique index, or whose entry is too long.
    fn check_index(
        &mut self,
        table: &'a Arc<Table>,
        index: IndexId,
        key: &[u8],
        row: &[Value],
    ) -> Result<()> {
        entry(table, index, row, key)?;
        let columns = table.index_columns(index);
        let equal: Vec<Datum<'a>> =
            columns.iter().map(|column| lend(self.arena, &row[usize::from(column.0)])).collect();
        if !table.is_unique(index) || equal.iter().any(|value| value.is_null()) {
            return Ok(());
        }
        let range = Range { index: Some(index), equal: &equal, lower: None, upper: None, descending: false };
        let mut scan = self.open(table, &range)?;
        while let Some(found) = self.next_row(&mut scan)? {
            if found.key != key {
                let name = &table.schema().indexes[usize::from(index.0)].name;
                return Err(duplicate(table.schema(), columns, &equal, name));
            }
        }
        Ok(())
    }
}

impl<'a> Context<'a> for Speculation<'a, '_> {
    type Row = Option<Found<'a>>;
    type Scan = Scan<'a>;

    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Self::Row, Stop> {
        let table = self.table(table);
        table.encode_key(key, &mut self.key)?;
        self.room.take(self.key.bytes().len() + NOTE_BYTES)?;
        Ok(Some(self.found(table)))
    }

    fn exists(&mut self, table: TableId, row: Self::Row) -> Result<bool, Stop> {
        Ok(row.is_some_and(|row| self.is_there(table, row)))
    }

    fn read(&mut self, table: TableId, row: Self::Row, column: ColumnId) -> Result<Datum<'a>, Stop> {
        let table = self.table(table);
        Ok(row.map_or(Ok(Datum::Null), |row| self.column(table, row, column))?)
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<Scan<'a>, Stop> {
        let ScanRange { table, index, equal, lower, upper, descending, .. } = range;
        self.footprint.scanned.insert(table);
        let range = Range { index, equal, lower, upper, descending };
        let mut scan = self.open(self.table(table), &range)?;
        if let Some(range) = key_range(scan.table, &range)? {
            scan.extent = Some(self.extents.len());
            self.room.take(range.lower.len() + NOTE_BYTES)?;
            self.extents.push(Extent { range, descending, reached: None });
        }
        Ok(scan)
    }

    fn scan_next(&mut self, scan: &mut Scan<'a>) -> Result<Option<Self::Row>, Stop> {
        let found = self.next_row(scan)?;
        if let Some(extent) = scan.extent.filter(|_| scan.index.is_none()) {
            self.extents[extent].reached = found.map(|found| found.key);
        }
        if let Some(found) = found {
            self.room.take(found.key.len() + NOTE_BYTES)?;
            self.footprint.rows.insert((scan.table.id(), found.key.into()));
        }
        Ok(found.map(Some))
    }

    fn insert(&mut self, table: TableId, write: WriteSet<'_, 'a>) -> Result<Self::Row, Stop> {
        let table = self.table(table);
        table.encode_row_key(write.values, &mut self.key)?;
        let found = self.found(table);
        if self.is_there(table.id(), found) {
            let columns = &table.schema().primary_key;
            let values: Vec<Datum<'a>> =
                columns.iter().map(|column| write.values[usize::from(column.0)]).collect();
            return Err(duplicate(table.schema(), columns, &values, PRIMARY_KEY).into());
        }
        let row: Vec<Value> =
            write.values.iter().zip(&**table.types()).map(|(value, ty)| value.to_value(*ty)).collect();
        for index in (0..table.index_count()).map(|at| IndexId(at as u16)) {
            self.check_index(table, index, found.key, &row)?;
        }
        self.overlay.set(table, found.key, Some(row.into()));
        Ok(Some(found))
    }

    fn update(&mut self, table: TableId, row: Self::Row, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        let table = self.table(table);
        let row = row.ok_or_else(gone)?;
        let before = self.whole(table, row)?;
        let mut after = before.clone();
        for (column, value) in write.columns.iter().zip(write.values) {
            after[usize::from(column.0)] = value.to_value(table.types()[usize::from(column.0)]);
        }
        for index in table.indexes_of(write.columns) {
            let columns = table.index_columns(index).iter().map(|column| usize::from(column.0));
            if columns.into_iter().any(|column| before[column] != after[column]) {
                self.check_index(table, index, row.key, &after)?;
            }
        }
        self.overlay.set(table, row.key, Some(after.into()));
        Ok(())
    }

    fn delete(&mut self, table: TableId, row: Self::Row) -> Result<(), Stop> {
        let row = row.ok_or_else(gone)?;
        self.overlay.set(self.definitions.table(table), row.key, None);
        Ok(())
    }

    #[inline]
    fn keep(&mut self, element: &[Datum<'a>]) -> Result<(), Stop> {
        Ok(self.room.keep(element)?)
    }

    #[inline]
    fn let_go(&mut self, list: &[Datum<'a>]) {
        self.room.let_go(list);
    }

    fn now(&self) -> i64 {
        self.time_us
    }

    fn random(&mut self) -> f64 {
        self.random.next()
    }

    fn is_missing(&self, row: Self::Row) -> bool {
        row.is_none()
    }
}

/// The keys of rows that may be in a range: for one of a secondary index, all that there are. `None` if it is empty.
fn key_range(table: &Table, range: &Range<'_, '_>) -> Result<Option<KeyRange>> {
    if range.index.is_some() {
        return Ok(Some(KeyRange::whole(table.id())));
    }
    let Some((lower, upper)) = table.range_bytes(range)? else { return Ok(None) };
    let upper = upper.map(|upper| upper.bytes().into());
    Ok(Some(KeyRange { table: table.id(), lower: lower.bytes().into(), upper }))
}

/// Code asks whether a row is there before it writes it.
fn gone() -> Error {
    Error::new(SqlState::NO_SUCH_ROW, "no such row")
}
