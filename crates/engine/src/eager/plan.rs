//! What is known of a program before it runs.
//!
//! Read from the IR once, when the program is defined:
//!
//! - **Which rows to lock exclusively at once.** A row that is read and then written would be locked
//!   shared first and raised later; two calls that do so to one row must both give way once. If every row
//!   that the program looks up (or scans) in a table is one that it may write, it takes the exclusive lock
//!   right away, as `select ... for update` does.
//! - **By which prefixes of indexes it scans**, so that writers know which granules they change
//!   ([`crate::eager::granule`]).
//! - **What it does to each table's columns**: which it only adds to, or raises, or lowers.
//! - **Whether it draws random numbers.** They come from the call's seq, which an engine without a fixed order
//!   knows only when the call ends. Such calls run alone, with the seq that will be theirs.

use crate::eager::granule::Space;
use crate::entry::Call;
use crate::{Definitions, Procedure};
use fabius_program::catalog::Catalog;
use fabius_program::context::Stop;
use fabius_program::ir::Program;
use fabius_program::known_key::{AccessKind, NamedRows, named_rows};
use fabius_program::shelf::Shelf;
use fabius_program::slice::operation::{TableOperations, operations};
use fabius_storage::Table;
use fabius_value::{ColumnId, Datum, IndexId, Key, TableId};
use std::sync::Arc;

/// What is known of one program.
#[derive(Debug, Default)]
pub struct Plan {
    /// Whether it draws random numbers.
    pub draws_random: bool,
    /// Whether it writes nothing.
    pub only_reads: bool,
    /// By table: rows that are looked up are locked exclusively.
    pub locates_to_write: Vec<bool>,
    /// By table: rows that are scanned are locked exclusively.
    pub scans_to_write: Vec<bool>,
    /// What it does to the tables that it looks at or changes.
    pub operations: Vec<TableOperations>,
    /// Scans: table, index, equal leading columns.
    scans: Vec<(TableId, Option<IndexId>, usize)>,
}

/// What an entry of an index touches beside its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around<'k> {
    /// A granule that the entry lies in.
    Granule(Space, &'k [u8]),
    /// The value that no other row may have.
    Unique(Space, &'k [u8]),
}

/// The definitions in force, with the plans of their programs.
#[derive(Default)]
pub struct Schema {
    /// Tables and procedures.
    pub definitions: Arc<Definitions>,
    /// By procedure number.
    plans: Shelf<Arc<Plan>>,
    /// By table, then index (the primary key first): bit `n` if some scan is by a prefix of `n` columns.
    prefixes: Vec<Vec<u128>>,
}

impl Schema {
    /// The schema of some definitions, which are those of `before` and more.
    pub fn of(definitions: Arc<Definitions>, before: &Schema) -> Schema {
        let mut plans = before.plans.clone();
        let mut prefixes = before.prefixes.clone();
        let new_tables = &definitions.tables[prefixes.len()..];
        prefixes.extend(new_tables.iter().map(|table| vec![0; table.index_count() + 1]));
        for procedure in definitions.procedures.iter_from(plans.len()) {
            let plan = Plan::of(&procedure.program, &definitions.catalog, definitions.tables.len());
            for (table, index, length) in &plan.scans {
                prefixes[table.0 as usize][place(*index)] |= 1u128 << length;
            }
            plans.push(Arc::new(plan));
        }
        Schema { definitions, plans, prefixes }
    }

    /// The plan of a procedure, by its number.
    pub fn plan(&self, procedure: usize) -> &Plan {
        self.plans.get(procedure).expect("every procedure has a plan")
    }

    /// Whether a call that gets its place before it runs needs one: not if it only reads, and nobody may repeat it.
    #[inline]
    pub fn has_place(&self, call: &Call<'_>) -> bool {
        let only_reads = |procedure: &Arc<Procedure>| {
            procedure.is_read_only && !self.plan(procedure.id.0 as usize).draws_random
        };
        call.key.is_some() || !self.definitions.procedure(call.procedure).is_ok_and(only_reads)
    }

    /// Encodes the indexed columns of a row's entry, and tells `visit` of the granules around it and, if the
    /// index is unique and no column is null, of the value that only one row can have.
    ///
    /// # Errors
    /// `54000` if the key is too long; what `visit` gives.
    pub fn around_entry<'v>(
        &self,
        table: &Table,
        index: Option<IndexId>,
        value: &mut dyn FnMut(ColumnId) -> Datum<'v>,
        visit: &mut dyn FnMut(Around<'_>) -> Result<(), Stop>,
    ) -> Result<Key, Stop> {
        let columns = match index {
            None => &table.schema().primary_key[..],
            Some(index) => table.index_columns(index),
        };
        let number = index.map_or(0, |index| index.0 + 1);
        let space = Space::prefixes(table.id().0, number);
        let prefixes = self.prefixes(table.id(), index);
        let mut key = Key::new();
        let mut has_null = false;
        for (length, &column) in columns.iter().enumerate() {
            if prefixes >> length & 1 == 1 {
                visit(Around::Granule(space, key.bytes()))?;
            }
            let value = value(column);
            has_null |= value.is_null();
            let column = usize::from(column.0);
            let nullable = index.is_some() && table.schema().columns[column].nullable;
            key.push(value, table.types()[column], nullable)?;
        }
        if prefixes >> columns.len() & 1 == 1 {
            visit(Around::Granule(space, key.bytes()))?;
        }
        if index.is_some_and(|index| table.is_unique(index)) && !has_null {
            visit(Around::Unique(Space::unique(table.id().0, number), key.bytes()))?;
        }
        Ok(key)
    }

    /// The prefixes by which programs scan an index: bit `n` for `n` columns.
    #[inline]
    pub fn prefixes(&self, table: TableId, index: Option<IndexId>) -> u128 {
        self.prefixes[table.0 as usize][place(index)]
    }
}

fn place(index: Option<IndexId>) -> usize {
    index.map_or(0, |index| index.0 as usize + 1)
}

impl Plan {
    /// Reads a program. Tables it does not know of are those defined after it.
    pub fn of(program: &Program, catalog: &Catalog, tables: usize) -> Plan {
        let named = named_rows(program, catalog);
        // A row that a filter may drop is read, whatever the body does to the others.
        let is_for_writing = |named: &NamedRows| named.is_written && !named.is_filtered;
        let all_written = |kind: AccessKind| {
            let of_kind = || named.iter().filter(|named| named.kind == kind);
            let mut answer = vec![false; tables];
            of_kind().for_each(|named| answer[named.table.0 as usize] = true);
            of_kind()
                .filter(|named| !is_for_writing(named))
                .for_each(|named| answer[named.table.0 as usize] = false);
            answer
        };
        let scans = named.iter().filter(|named| named.kind == AccessKind::Range);
        Plan {
            draws_random: program.draws_random(),
            only_reads: !program.writes_anything(),
            locates_to_write: all_written(AccessKind::Row),
            scans_to_write: all_written(AccessKind::Range),
            operations: operations(program, catalog),
            scans: scans
                .map(|named| (named.table, named.found_by().index, named.found_by().columns))
                .collect(),
        }
    }
}
