//! A view of the rows at one seq.
//!
//! Every multiversion engine reads the same way; what differs is what to do about a sticky: the
//! engine that left it there computes it (see [`SnapshotContext::blocked_on`]), others never meet one.
//! A deferred call reads through the same view at its own seq, where it sees what it has filled so far.

use crate::join::{JoinScan, Nearby};
use crate::{Definitions, Foundation, Procedure, Room, Standpoint, random::CallRandom};
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_program::execute::{self, FrameFor};
use fabius_storage::{
    Cell,
    chain::{self, Visible},
    scan::{Range, RowScan},
};
use fabius_value::{ColumnId, Datum, Key, Result, Seq, TableId, Value};

/// The context of a program that reads at one seq. The caller holds a snapshot at that seq.
pub struct SnapshotContext<'a> {
    definitions: &'a Definitions,
    guard: &'a Guard,
    seq: Seq,
    time_us: i64,
    random: CallRandom,
    key: Key,
    own: *mut (),
    room: Room,
    /// Once a scan has joins.
    nearby: Option<Box<Nearby<'a>>>,
    /// What the sticky that ended the last step belongs to.
    pub blocked_on: *mut (),
}

impl<'a> SnapshotContext<'a> {
    /// A context at `seq`.
    pub fn new(
        definitions: &'a Definitions,
        guard: &'a Guard,
        seq: Seq,
        time_us: i64,
    ) -> SnapshotContext<'a> {
        SnapshotContext {
            definitions,
            guard,
            seq,
            time_us,
            random: CallRandom::new(seq),
            key: Key::new(),
            own: std::ptr::null_mut(),
            room: Room::unbounded(),
            nearby: None,
            blocked_on: std::ptr::null_mut(),
        }
    }

    /// The view for a program that may not hold more than there is room for.
    #[must_use]
    pub fn within(mut self, room: Room) -> SnapshotContext<'a> {
        self.room = room;
        self
    }

    /// The view for the deferred call at this address, which fills versions at the view's seq.
    #[must_use]
    pub fn on_behalf_of(mut self, own: *mut ()) -> SnapshotContext<'a> {
        self.own = own;
        self
    }
}

impl<'a> Context<'a> for SnapshotContext<'a> {
    type Row = Visible;
    type Scan = JoinScan<'a>;

    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Visible, Stop> {
        let record = match self.nearby.as_mut().and_then(|nearby| nearby.expected.find(table, key)) {
            Some(record) => Some(record),
            None => {
                let table = self.definitions.table(table);
                table.encode_key(key, &mut self.key)?;
                table.find(&self.key, self.guard)
            }
        };
        // SAFETY: the epoch is pinned during 'a.
        Ok(record.map_or_else(Visible::default, |record| Visible(unsafe { record.visible(self.seq) })))
    }

    fn exists(&mut self, _: TableId, row: Visible) -> Result<bool, Stop> {
        // SAFETY: the epoch is pinned during 'a.
        Ok(unsafe { chain::is_present(row.0) })
    }

    #[inline]
    fn read(&mut self, table: TableId, row: Visible, column: ColumnId) -> Result<Datum<'a>, Stop> {
        let data_type = self.definitions.table(table).types()[column.0 as usize];
        // SAFETY: the epoch is pinned during 'a; the snapshot keeps what is visible at its seq.
        match unsafe { chain::read(row.0, column, data_type, self.own) } {
            Cell::Value(value) => Ok(value),
            Cell::Pending(source) => {
                self.blocked_on = source;
                Err(Stop::Blocked)
            }
            Cell::Absent => Ok(Datum::Null),
        }
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<JoinScan<'a>, Stop> {
        let ScanRange { table, index, equal, lower, upper, descending, limit_hint, joins } = range;
        let range = Range { index, equal, lower, upper, descending };
        let rows = RowScan::open(self.definitions.table(table), &range, self.guard)?;
        Ok(JoinScan::new(rows, limit_hint, joins, self.definitions))
    }

    fn scan_next(&mut self, scan: &mut JoinScan<'a>) -> Result<Option<Visible>, Stop> {
        let (seq, room) = (self.seq, &mut self.room);
        if !scan.has_joins() {
            return Ok(scan.take_row(seq, room)?);
        }
        let nearby = self.nearby.get_or_insert_default();
        Ok(nearby.next_row(scan, seq, room, self.definitions, self.guard)?)
    }

    fn insert(&mut self, _: TableId, _: WriteSet<'_, 'a>) -> Result<Visible, Stop> {
        unreachable!("a program that writes nothing")
    }

    fn update(&mut self, _: TableId, _: Visible, _: WriteSet<'_, 'a>) -> Result<(), Stop> {
        unreachable!("a program that writes nothing")
    }

    fn delete(&mut self, _: TableId, _: Visible) -> Result<(), Stop> {
        unreachable!("a program that writes nothing")
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

    fn is_missing(&self, row: Visible) -> bool {
        row.0.is_null()
    }
}

/// Runs a procedure that writes nothing at a standpoint, for an engine that leaves no stickies: see
/// [`Engine::query_at`](crate::Engine::query_at).
///
/// # Errors
/// Why the procedure aborted.
pub fn query_at(
    foundation: &Foundation,
    at: &Standpoint<'_>,
    procedure: &Procedure,
    arguments: &[u8],
    room: Room,
) -> Result<Vec<Value>> {
    let definitions = at.definitions();
    let guard = crossbeam_epoch::pin();
    let arena = Bump::new();
    let now_us = foundation.clock.now_us();
    let mut context = SnapshotContext::new(definitions, &guard, at.seq(), now_us).within(room);
    let mut frame = FrameFor::<SnapshotContext<'_>>::default();
    let started = definitions.admit(procedure);
    let outcome = match started.and_then(|()| frame.start(&procedure.whole, arguments, &arena)) {
        Ok(()) => execute::run(&mut frame, &procedure.whole, &mut context, &arena),
        Err(error) => Err(Stop::Abort(error)),
    };
    match outcome {
        Ok(()) => {
            foundation.counters.committed.add(1);
            Ok(frame.results(&procedure.whole).unwrap_or_default())
        }
        Err(Stop::Abort(error)) => {
            foundation.counters.aborted.add(1);
            Err(error)
        }
        Err(Stop::Blocked | Stop::Restart) => unreachable!("a snapshot has every value"),
    }
}
