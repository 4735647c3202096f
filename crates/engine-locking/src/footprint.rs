//! What is known of a procedure's read and write sets, and the locks that follow from a call's arguments.
//!
//! | [`Way`] | calls |
//! |---|---|
//! | declared | every access is a function of the arguments |
//! | dependent | some reads decide what else is accessed: reconnaissance first (Calvin, section 3.2.1) |
//! | certain | a prediction would be worth nothing: the procedure writes what decides, or draws random numbers |

use crate::lock::{Lock, LockSet, Mode};
use fabius_engine::Procedure;
use fabius_engine::eager::granule::{Granules, Space};
use fabius_engine::eager::plan::{Around, Schema};
use fabius_engine::entry::Call;
use fabius_program::catalog::Catalog;
use fabius_program::read_write_set::{Declared, ReadWriteSet, TableColumns};
use fabius_value::{Datum, Key, TableId};

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

/// A procedure as the scheduler sees it.
#[derive(Debug, Default)]
pub struct Footprint {
    set: ReadWriteSet,
    /// By table.
    is_determining: Vec<bool>,
    way: Option<Way>,
    /// Whether it writes nothing.
    pub is_read_only: bool,
}

impl Footprint {
    /// What is known of a procedure.
    pub fn of(procedure: &Procedure, catalog: &Catalog, draws_random: bool) -> Footprint {
        let set = ReadWriteSet::of(&procedure.program, catalog);
        let tables = set.tables.iter().map(|of| of.table.0 as usize + 1).max().unwrap_or(0);
        let mut is_determining = vec![false; tables];
        set.determining.iter().for_each(|of| is_determining[of.table.0 as usize] = true);
        let way = if set.is_declared() {
            Way::Declared
        } else if set.is_self_determined || draws_random {
            Way::Certain
        } else {
            Way::Dependent
        };
        Footprint { set, is_determining, way: Some(way), is_read_only: procedure.is_read_only }
    }

    /// How calls come by their locks. Calls of what is no procedure need none.
    pub fn way(&self) -> Way {
        self.way.unwrap_or(Way::Declared)
    }

    /// Whether reads in a table decide what else is accessed.
    pub fn is_determining(&self, table: TableId) -> bool {
        self.is_determining.get(table.0 as usize).is_some_and(|is| *is)
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
    pub fn declared_locks(&self, call: &Call<'_>, schema: &Schema, granules: &Granules, locks: &mut LockSet) {
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
                locks.add(Lock::of_row(declared.table, key.hash(), mode));
            }
            if declared.inserts {
                entry_locks(declared, values, schema, granules, locks);
            }
        });
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
            locks.add(Lock::of_granule(granules, granules.word(space, bytes), mode));
            Ok(())
        },
    );
    // A key that is too long aborts the call when it gets there.
    drop(added);
}
