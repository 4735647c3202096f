//! What is known of a procedure's read and write sets, and the locks that follow from a call's arguments.
//!
//! | [`Way`] | calls |
//! |---|---|
//! | declared | every access is a function of the arguments |
//! | dependent | some reads decide what else is accessed: reconnaissance first (Calvin, section 3.2.1) |
//! | certain | a prediction would be worth nothing: the procedure draws random numbers |
//!
//! Calls of a procedure that writes what decides make each other's predictions wrong, as New-Orders of one
//! district do; or hardly ever do, if they rarely meet. Which it is shows: such a procedure is predicted as
//! long as that comes true more often than not, and tried again after some calls ([`Footprint::way`]).

use crate::lock::{Lock, LockSet, Mode};
use fabius_engine::Procedure;
use fabius_engine::eager::granule::{Granules, Space};
use fabius_engine::eager::plan::{Around, Schema};
use fabius_engine::entry::Call;
use fabius_program::catalog::Catalog;
use fabius_program::read_write_set::{Declared, ReadWriteSet, TableColumns};
use fabius_value::{ColumnMask, Datum, Key, TableId};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// How calls of a procedure come by their locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the arguments.
    Declared,
    /// From the arguments and from reconnaissance.
    Dependent,
    /// From the arguments, and whole tables where those say too little.
    Certain,
}

/// By table: the columns that decide what calls of some procedure lock.
pub type Deciding = Arc<[ColumnMask]>;

/// Whether one who writes these columns may decide what others lock.
pub fn decide(deciding: &Deciding, table: TableId, columns: ColumnMask) -> bool {
    deciding.get(table.0 as usize).is_some_and(|deciding| deciding.iter().any(|of| columns.contains(of)))
}

/// A procedure as the scheduler sees it.
#[derive(Debug, Default)]
pub struct Footprint {
    set: ReadWriteSet,
    way: Option<Way>,
    /// Whether it writes nothing.
    pub is_read_only: bool,
    /// What its predictions have been worth so far; below zero they have not (the scheduler's alone).
    luck: AtomicI32,
    /// Calls that pass until the next try, then.
    rest: AtomicI32,
}

/// The best and the worst that is remembered of predictions; so many calls pass until the next try, at most.
const LUCK_MAX: i32 = 64;
/// How many good predictions make up for a bad one.
const LUCK_LOST: i32 = 8;

impl Footprint {
    /// What is known of a procedure.
    pub fn of(procedure: &Procedure, catalog: &Catalog, draws_random: bool) -> Footprint {
        let set = ReadWriteSet::of(&procedure.program, catalog);
        let way = match (set.is_declared(), draws_random) {
            (true, _) => Way::Declared,
            (false, true) => Way::Certain,
            (false, false) => Way::Dependent,
        };
        let is_read_only = procedure.is_read_only;
        Footprint { set, way: Some(way), is_read_only, ..Footprint::default() }
    }

    /// How the next call comes by its locks. Calls of what is no procedure need none.
    pub fn way(&self) -> Way {
        let luck = self.luck.load(Relaxed);
        match self.way.unwrap_or(Way::Declared) {
            Way::Dependent if luck < 0 && self.set.is_self_determined => {
                let rest = self.rest.load(Relaxed);
                self.rest.store(if rest > 0 { rest - 1 } else { -luck }, Relaxed);
                if rest > 0 { Way::Certain } else { Way::Dependent }
            }
            way => way,
        }
    }

    /// Whether calls may have to be predicted.
    pub fn may_be_dependent(&self) -> bool {
        self.way == Some(Way::Dependent)
    }

    /// Learns whether a prediction came true.
    pub fn learn(&self, came_true: bool) {
        let luck = match (self.luck.load(Relaxed), came_true) {
            (luck @ ..0, true) => luck / 2,
            (luck, true) => (luck + 1).min(LUCK_MAX),
            (luck, false) => (luck - LUCK_LOST).max(-LUCK_MAX),
        };
        self.luck.store(luck, Relaxed);
    }

    /// Whether what is in rows of a table that are looked up decides what else is accessed.
    pub fn determines_located(&self, table: TableId) -> bool {
        self.set.determines_located[table.0 as usize]
    }

    /// Whether what is in rows that scans find does, besides that they are in range.
    pub fn determines_scanned(&self, table: TableId) -> bool {
        self.set.determines_scanned[table.0 as usize]
    }

    /// The mode in which rows of a table are locked that are looked up by key.
    pub fn located_mode(&self, table: TableId) -> Mode {
        mode_of(self.set.writes_located[table.0 as usize])
    }

    /// The mode in which rows of a table are locked that are found by scans.
    pub fn scanned_mode(&self, table: TableId) -> Mode {
        mode_of(self.set.writes_scanned[table.0 as usize])
    }

    /// Whether calls may access tables that a call of `certain` has locked whole, and not both only read.
    pub fn conflicts_with(&self, certain: &Footprint) -> bool {
        let writes = |of: &TableColumns| !of.columns.is_empty();
        self.set.tables.iter().any(|own| {
            let mut whole = certain.set.undeclared.iter();
            whole.any(|whole| own.table == whole.table && (writes(own) || writes(whole)))
        })
    }

    /// Tables that a certain call locks whole, and the columns that it may write.
    pub fn written_whole(&self) -> impl Iterator<Item = &TableColumns> {
        self.set.undeclared.iter()
    }

    /// Columns that decide what else calls access.
    pub fn determining(&self) -> impl Iterator<Item = &TableColumns> {
        self.set.determining.iter()
    }

    /// Tables that calls may access.
    pub fn tables(&self) -> impl Iterator<Item = TableId> {
        self.set.tables.iter().map(|of| of.table)
    }

    /// Adds the locks that a call's arguments and its key say it needs; not sealed.
    pub fn declared_locks(
        &self,
        call: &Call<'_>,
        schema: &Schema,
        granules: &Granules,
        deciding: &Deciding,
        locks: &mut LockSet,
    ) {
        if let Some(key) = call.key {
            let word = granules.word(Space::KEYS, key);
            locks.add(Lock::of_granule(granules, word, Mode::Exclusive));
        }
        let mut key = Key::new();
        self.set.tuples.for_each(call.arguments, |number, values| {
            let declared = &self.set.declared[number];
            let table = schema.definitions.table(declared.table);
            if declared.index.is_none()
                && !values.iter().any(|value| value.is_null())
                && table.encode_key(values, &mut key).is_ok()
            {
                let mode = mode_of(declared.writes || declared.inserts);
                let lock = Lock::of_row(declared.table, key.hash(), mode);
                let is_deciding = declared.inserts
                    || declared.writes && decide(deciding, declared.table, self.columns(declared.table));
                locks.add(lock.deciding(is_deciding));
            }
            if declared.inserts {
                entry_locks(declared, values, schema, granules, locks);
            }
        });
    }
}

impl Footprint {
    /// The columns of a table that calls may write.
    fn columns(&self, table: TableId) -> ColumnMask {
        let of = self.set.tables.iter().find(|of| of.table == table);
        of.map_or(ColumnMask::EMPTY, |of| of.columns)
    }
}

fn mode_of(writes: bool) -> Mode {
    if writes { Mode::Exclusive } else { Mode::Shared }
}

/// Adds the locks of what an inserted row's entry touches.
fn entry_locks(
    declared: &Declared,
    values: &[Datum<'_>],
    schema: &Schema,
    granules: &Granules,
    locks: &mut LockSet,
) {
    let table = schema.definitions.table(declared.table);
    // The values are in the order in which the columns are asked for.
    let mut values = values.iter().copied();
    let added = schema.around_entry(
        table,
        declared.index,
        &mut |_| values.next().expect("a value for each column of the index"),
        &mut |around| {
            let (space, bytes, mode) = match around {
                Around::Granule(space, bytes) => (space, bytes, Mode::Intent),
                Around::Unique(space, bytes) => (space, bytes, Mode::Exclusive),
            };
            locks.add(Lock::of_granule(granules, granules.word(space, bytes), mode).deciding(true));
            Ok(())
        },
    );
    // A key that is too long aborts the call when it gets there.
    drop(added);
}
