//! What is known of a procedure's read and write sets, and the locks that follow from a call's arguments.
//!
//! | [`Way`] | calls |
//! |---|---|
//! | query | nothing is written, and nobody repeats it: no locks |
//! | declared | every access is a function of the arguments, or lies below a prefix that is |
//! | dependent | some reads decide what else is accessed: reconnaissance first (Calvin, section 3.2.1) |
//! | certain | a prediction would be worth nothing: the procedure draws random numbers |
//!
//! **Prefixes.** A procedure that writes what decides makes the predictions of its own calls wrong: two New-Orders
//! of one district get their numbers there. If arguments say below which prefixes of primary keys all lies that
//! is not known by its whole key ([`fabius_program::read_write_set`]), its calls lock these ranges, as granules
//! of the primary key, and are declared. Whoever locks a row in such a table locks the granules of these prefixes
//! around it too, in a mode that goes with others who do (granularity of locks: Gray et al., 1976).
//!
//! ```text
//! new_order(1, 4, ..)    orders[1, 4]  exclusive   orders[1]  intent
//! delivery(1, ..)        orders[1]     exclusive
//! pay_order(1, 4, 77)    orders[1, 4]  intent      orders[1]  intent      orders[1, 4, 77]  exclusive
//! ```

use crate::lock::{Lock, LockSet, around_row};
use fabius_engine::eager::granule::{Granules, Space};
use fabius_engine::eager::lock_mode::Mode;
use fabius_engine::eager::plan::{Around, Schema};
use fabius_engine::entry::Call;
use fabius_engine::{Definitions, Procedure};
use fabius_program::arguments::DecodedArguments;
use fabius_program::catalog::{Catalog, ProcedureId};
use fabius_program::read_write_set::{Declared, Extent, ReadWriteSet, TableColumns};
use fabius_program::shelf::Shelf;
use fabius_value::key::prefix_bytes;
use fabius_value::{ColumnMask, Datum, IndexId, Key, TableId};
use std::sync::Arc;

/// How calls of a procedure come by their locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// They need none.
    Query,
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
    draws_random: bool,
    is_read_only: bool,
    /// Secondary indexes in which its entries are known by so many columns, not by all.
    partial: Vec<(TableId, IndexId, usize)>,
}

impl Footprint {
    /// What is known of a procedure.
    fn of(procedure: &Procedure, catalog: &Catalog, draws_random: bool) -> Footprint {
        let set = ReadWriteSet::of(&procedure.program, catalog);
        let below = set.declared.iter().filter(|declared| declared.extent == Extent::Below);
        let partial = below.filter_map(|of| Some((of.table, of.index?, of.key.len()))).collect();
        Footprint { set, draws_random, is_read_only: procedure.is_read_only, partial }
    }

    /// Whether what arguments say is enough.
    fn is_declared(&self, schema: &Schema) -> bool {
        // Nobody scans, or claims, less of an index than is known of its entries.
        let is_known = |(table, index, columns): &(TableId, IndexId, usize)| {
            let table = schema.definitions.table(*table);
            let is_whole = *columns == table.index_columns(*index).len();
            is_whole
                || !table.is_unique(*index) && schema.prefixes(table.id(), Some(*index)) >> (columns + 1) == 0
        };
        self.set.is_declared() || self.set.has_prefixes && self.partial.iter().all(is_known)
    }

    /// Whether its calls lock ranges.
    pub fn has_ranges(&self) -> bool {
        self.set.has_prefixes
    }

    /// Whether what is in rows of a table that are looked up decides what else is accessed.
    pub fn determines_located(&self, table: TableId) -> bool {
        self.set.determines_located[table.0 as usize]
    }

    /// Whether what is in rows that scans find does, besides that they are in range.
    pub fn determines_scanned(&self, table: TableId) -> bool {
        self.set.determines_scanned[table.0 as usize]
    }

    /// Whether rows of a table that are looked up by key may be written.
    pub fn writes_located(&self, table: TableId) -> bool {
        self.set.writes_located[table.0 as usize]
    }

    /// Whether rows of a table that are found by scans may be written.
    pub fn writes_scanned(&self, table: TableId) -> bool {
        self.set.writes_scanned[table.0 as usize]
    }

    /// Whether calls may access tables that a call of `certain` has locked whole, and not both only read.
    pub fn conflicts_with(&self, certain: &Footprint) -> bool {
        let writes = |of: &TableColumns| !of.columns.is_empty();
        self.set.tables.iter().any(|own| {
            let mut whole = certain.set.undeclared.iter();
            whole.any(|whole| own.table == whole.table && (writes(own) || writes(whole)))
        })
    }

    /// The columns of a table that calls may write.
    fn columns(&self, table: TableId) -> ColumnMask {
        let of = self.set.tables.iter().find(|of| of.table == table);
        of.map_or(ColumnMask::EMPTY, |of| of.columns)
    }
}

/// All procedures, and what calls of one have to know of the others.
#[derive(Default)]
pub struct Footprints {
    /// The definitions that these are of.
    pub definitions: Arc<Definitions>,
    footprints: Shelf<Arc<Footprint>>,
    /// Of what is no procedure.
    none: Arc<Footprint>,
    /// By table: the columns that decide what calls of some procedure lock.
    deciding: Vec<ColumnMask>,
    /// By table: a bit for each number of columns of the primary key below which some procedure locks ranges.
    prefixes: Vec<u64>,
    /// Whether calls may have to be predicted.
    pub has_dependent: bool,
}

impl Footprints {
    /// These and those that have been defined since.
    pub fn follow(&self, schema: &Schema) -> Footprints {
        let definitions = schema.definitions.clone();
        let mut all = Footprints {
            footprints: self.footprints.clone(),
            none: self.none.clone(),
            deciding: self.deciding.clone(),
            prefixes: self.prefixes.clone(),
            has_dependent: self.has_dependent,
            definitions,
        };
        all.deciding.resize(all.definitions.tables.len(), ColumnMask::EMPTY);
        all.prefixes.resize(all.definitions.tables.len(), 0);
        for procedure in schema.definitions.procedures.iter_from(self.footprints.len()) {
            let draws_random = schema.plan(procedure.id.0 as usize).draws_random;
            let footprint = Footprint::of(procedure, &schema.definitions.catalog, draws_random);
            for of in &footprint.set.determining {
                let deciding = &mut all.deciding[of.table.0 as usize];
                *deciding = deciding.union(of.columns);
            }
            let is_range = |of: &&Declared| of.extent == Extent::Below && of.index.is_none();
            for of in footprint.set.declared.iter().filter(is_range) {
                all.prefixes[of.table.0 as usize] |= 1 << of.key.len();
            }
            all.has_dependent |= !footprint.set.is_declared();
            all.footprints.push(Arc::new(footprint));
        }
        all
    }

    /// What is known of a procedure; nothing, if there is none.
    pub fn get(&self, procedure: ProcedureId) -> &Arc<Footprint> {
        self.footprints.get(procedure.0 as usize).unwrap_or(&self.none)
    }

    /// How a call comes by its locks.
    pub fn way(&self, call: &Call<'_>, schema: &Schema) -> Way {
        let footprint = self.get(call.procedure);
        match footprint.is_declared(schema) {
            _ if footprint.is_read_only && call.key.is_none() => Way::Query,
            true => Way::Declared,
            false if footprint.draws_random => Way::Certain,
            false => Way::Dependent,
        }
    }

    /// Whether one who writes these columns may decide what others lock.
    pub fn decide(&self, table: TableId, columns: ColumnMask) -> bool {
        self.deciding[table.0 as usize].iter().any(|of| columns.contains(of))
    }

    /// Visits the granules of a table that begin a primary key, as far as its first columns go and ranges of that many
    /// columns are locked: longer ones last.
    fn prefixes<'g>(
        &'g self,
        table: TableId,
        key: &'g [u8],
        columns: usize,
        granules: &'g Granules,
    ) -> impl Iterator<Item = Lock> + 'g {
        let lengths = self.prefixes[table.0 as usize];
        let lengths = (0..=columns).filter(move |length| lengths >> length & 1 == 1);
        lengths.filter_map(move |length| {
            let table = self.definitions.table(table);
            let columns = table.schema().primary_key[..length].iter();
            let end = prefix_bytes(key, columns.map(|column| &table.types()[usize::from(column.0)]))?;
            let word = granules.word(Space::prefixes(table.id().0, 0), &key[..end]);
            Some(Lock::of_granule(granules, word, Mode::Visit))
        })
    }

    /// Adds the locks around rows whose keys begin with so many columns.
    pub fn lock_around(
        &self,
        table: TableId,
        key: &[u8],
        columns: usize,
        writes: bool,
        granules: &Granules,
        locks: &mut LockSet,
    ) {
        for lock in self.prefixes(table, key, columns, granules) {
            locks.add(Lock::new(lock.place(), around_row(writes)));
        }
    }

    /// Whether a range that a row lies in is locked, in this mode or more.
    pub fn covers(
        &self,
        table: TableId,
        key: &[u8],
        mode: Mode,
        granules: &Granules,
        locks: &LockSet,
    ) -> bool {
        let mut ranges = self.prefixes(table, key, self.key_columns(table), granules);
        ranges.any(|range| locks.covers(Lock::new(range.place(), mode)))
    }

    /// How many columns the primary key of a table has.
    pub fn key_columns(&self, table: TableId) -> usize {
        self.definitions.table(table).schema().primary_key.len()
    }

    /// Adds the locks that a call's arguments and its key say it needs; not sealed. Arguments that do not decode
    /// abort a call before it accesses anything.
    pub fn declared_locks<'c>(
        &self,
        call: &Call<'c>,
        decoded: &mut DecodedArguments<'c>,
        schema: &Schema,
        granules: &Granules,
        locks: &mut LockSet,
    ) {
        if let Some(key) = call.key {
            let word = granules.word(Space::KEYS, key);
            locks.add(Lock::of_granule(granules, word, Mode::Exclusive));
        }
        let footprint = self.get(call.procedure);
        let Ok(procedure) = self.definitions.procedure(call.procedure) else { return };
        let Ok(place) = decoded.push(&procedure.signature, call.arguments) else { return };
        let mut encoded = Key::new();
        for Declared { table: id, index, key, extent, moves, writes } in &footprint.set.declared {
            let table = self.definitions.table(*id);
            key.for_each(decoded.at(place), |values, _| {
                if index.is_none()
                    && !values.iter().any(|value| value.is_null())
                    && table.encode_key(values, &mut encoded).is_ok()
                {
                    let mode = Mode::of_row(*writes);
                    let (lock, around) = match extent {
                        Extent::Whole => (Lock::of_row(*id, encoded.hash(), mode), values.len()),
                        Extent::Below => {
                            let word = granules.word(Space::prefixes(id.0, 0), encoded.bytes());
                            (Lock::of_granule(granules, word, mode), values.len() - 1)
                        }
                    };
                    let is_deciding = *moves || *writes && self.decide(*id, footprint.columns(*id));
                    locks.add(lock.deciding(is_deciding));
                    self.lock_around(*id, encoded.bytes(), around, *writes, granules, locks);
                }
                if *moves {
                    lock_entry(*id, *index, values, schema, granules, locks);
                }
            });
        }
    }
}

/// Adds the locks of what the entry of a row touches that comes or goes.
fn lock_entry(
    table: TableId,
    index: Option<IndexId>,
    values: &[Datum<'_>],
    schema: &Schema,
    granules: &Granules,
    locks: &mut LockSet,
) {
    // The values are in the order in which the columns are asked for. Of a range of the primary key, the columns that
    // are not known add nothing, and what lies below it is itself: it is locked already.
    let mut values = values.iter().copied();
    let added = schema.around_entry(
        schema.definitions.table(table),
        index,
        &mut |_| values.next().unwrap_or(Datum::Null),
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
