//! Read and write sets before a call runs, for engines that lock or schedule in advance (Calvin, 3.2).
//!
//! An access is *declared* if its key is a function of the arguments: then it is known without reading
//! anything. Where every access is, a call's read and write set can be computed from the arguments alone.
//! Otherwise the call is *dependent* (Calvin, 3.2.1): some reads decide what else it accesses.
//!
//! ```text
//! procedure pay(name, amount)         customers by name[name, ..]   undeclared: which rows are found depends
//! { for c in customers by name[name]                                on what is in the range
//!     { c.balance -= amount } }       determining: customers
//! ```
//!
//! *Determining* tables are those of the reads that decide: whose values flow into keys of undeclared accesses, into
//! the loops and conditions around them, or into entries of indexes; and scans, because what is in a range decides
//! which rows are met. Where a program reads what it may itself have written, what it has written there decides too.
//! As long as nothing that a call has read in these tables changes, and it does not abort, it accesses what it
//! accessed before.
//!
//! A change of an entry of a secondary index (an update of an indexed column, a deletion) counts as undeclared: the
//! old entry has to be read.
//!
//! *Prefixes* ([`crate::known_key`]): a program that writes what determines its accesses changes the sets of its
//! other calls all the time. If arguments say of each undeclared access in which range of the primary key it lies, by
//! some leading columns, then these ranges are declared instead ([`Extent::Below`]).
//!
//! ```text
//! procedure new_order(w, d, ..)           orders[w, d, ?]      the number is read, and raised, in districts[w, d]:
//! { insert orders { w_id: w, d_id: d,                          declared is all that lies below orders[w, d]
//!     o_id: districts[w, d].next, .. } .. }
//! ```

use crate::access::{Access, Origins, accesses};
use crate::argument_tuple::ArgumentTuple;
use crate::catalog::Catalog;
use crate::ir::{Expression, Program, RowId, Scan, StepId, StepKind};
use crate::known_key::{AccessKind, KnownKey};
use crate::slice::outline::{Outline, variables};
use fabius_value::{ColumnMask, IndexId, TableId};
use std::collections::BTreeSet;

/// What a tuple names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The row or the entry with this key.
    Whole,
    /// Some of those whose keys begin with these columns.
    Below,
}

/// An access whose key, or the first columns of it, is a function of the arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct Declared {
    /// The table.
    pub table: TableId,
    /// Columns of this index in its order, of the primary key if `None`.
    pub index: Option<IndexId>,
    /// Their values.
    pub key: ArgumentTuple,
    /// What these name.
    pub extent: Extent,
    /// Whether rows are inserted or deleted.
    pub moves: bool,
    /// Whether the row may be written.
    pub writes: bool,
}

/// Columns of a table. Who inserts or deletes a row writes all of its columns; who asks which rows there are
/// reads the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableColumns {
    /// The table.
    pub table: TableId,
    /// The columns.
    pub columns: ColumnMask,
}

/// What is known of a program's accesses before it runs.
#[derive(Clone, Debug, Default)]
pub struct ReadWriteSet {
    /// Declared accesses.
    pub declared: Vec<Declared>,
    /// Every table that it accesses, with the columns that it may write.
    pub tables: Vec<TableColumns>,
    /// Whether undeclared accesses are declared below prefixes.
    pub has_prefixes: bool,
    /// Tables with accesses that are not declared by their whole keys, and the columns that these may write.
    pub undeclared: Vec<TableColumns>,
    /// Tables of reads that determine what is accessed, and the columns read.
    pub determining: Vec<TableColumns>,
    /// Whether the program itself writes what determines its accesses, so that calls of it that run at
    /// the same time change each other's sets.
    pub is_self_determined: bool,
    /// By table: rows that are looked up may be written.
    pub writes_located: Vec<bool>,
    /// By table: rows that are found by scans may be written.
    pub writes_scanned: Vec<bool>,
    /// By table: what is in rows that are looked up determines accesses.
    pub determines_located: Vec<bool>,
    /// By table: what is in rows that are found by scans determines accesses, besides that they are in range.
    pub determines_scanned: Vec<bool>,
}

impl ReadWriteSet {
    /// Reads a program.
    pub fn of(program: &Program, catalog: &Catalog) -> ReadWriteSet {
        let outline = Outline::of(program);
        let origins = Origins::of(&outline);
        let all = accesses(program, catalog);
        let tables = all.iter().map(|access| access.table.0 as usize + 1).max().unwrap_or(0);
        let mut set = ReadWriteSet {
            writes_located: vec![false; tables],
            writes_scanned: vec![false; tables],
            determines_located: vec![false; tables],
            determines_scanned: vec![false; tables],
            ..ReadWriteSet::default()
        };
        let mut reading = Reading { outline: &outline, origins: &origins, catalog, steps: BTreeSet::new() };
        let mut undeclared = Vec::new();
        for access in &all {
            let writes = access.writes_anything();
            note(&mut set.tables, access.table, access.writes);
            match access.kind {
                AccessKind::Row => set.writes_located[access.table.0 as usize] |= writes,
                AccessKind::Range => set.writes_scanned[access.table.0 as usize] |= writes,
                AccessKind::Insert => {}
            }
            if !reading.declare_whole(access, &mut set.declared) {
                undeclared.push(access);
                note(&mut set.undeclared, access.table, access.writes);
                if reading.determine(access, &mut set.determining) {
                    match access.kind {
                        AccessKind::Range => set.determines_scanned[access.table.0 as usize] = true,
                        _ => set.determines_located[access.table.0 as usize] = true,
                    }
                }
            }
        }
        if !set.is_declared() {
            reading.follow_reads();
        }
        for &step in &reading.steps {
            let row = reading.row_read(step);
            let table = outline.table(row);
            note(&mut set.determining, table, reading.columns_read(step));
            let (located, scanned) = reading.reads_inside(step, row);
            set.determines_located[table.0 as usize] |= located;
            set.determines_scanned[table.0 as usize] |= scanned;
            set.is_self_determined |= reading.is_written(step, row, &all);
        }
        if set.is_self_determined && undeclared.iter().all(|access| reading.has_prefixes(access)) {
            undeclared.iter().for_each(|access| reading.declare_below(access, &mut set.declared));
            set.has_prefixes = true;
        }
        set
    }

    /// Whether arguments say the keys of all that is accessed.
    pub fn is_declared(&self) -> bool {
        self.undeclared.is_empty()
    }
}

fn declare(access: &Access, key: &KnownKey, extent: Extent) -> Declared {
    let moves = access.kind == AccessKind::Insert || access.deletes;
    let KnownKey { index, prefix, .. } = key.clone();
    Declared { table: access.table, index, key: prefix, extent, moves, writes: access.writes_anything() }
}

fn note(list: &mut Vec<TableColumns>, table: TableId, columns: ColumnMask) {
    match list.iter_mut().find(|already| already.table == table) {
        Some(already) => already.columns = already.columns.union(columns),
        None => list.push(TableColumns { table, columns }),
    }
}

struct Reading<'p, 'o> {
    outline: &'o Outline<'p>,
    origins: &'o Origins,
    catalog: &'o Catalog,
    /// Steps that determine accesses.
    steps: BTreeSet<StepId>,
}

impl<'p> Reading<'p, '_> {
    /// The keys of an access; none if a secondary index says which rows it finds.
    fn keys<'a>(&self, access: &'a Access) -> &'a [KnownKey] {
        let is_secondary = access.kind == AccessKind::Range && access.keys.len() > 1;
        if is_secondary { &[] } else { &access.keys }
    }

    /// Declares an access if its keys are functions of the arguments, and it changes no other entries.
    fn declare_whole(&self, access: &Access, declared: &mut Vec<Declared>) -> bool {
        let is_known = access.keys.iter().all(KnownKey::is_whole);
        if !is_known || access.kind == AccessKind::Range || self.changes_entries(access) {
            return false;
        }
        declared.extend(access.keys.iter().map(|key| declare(access, key, Extent::Whole)));
        true
    }

    /// Whether arguments say in which range of the primary key an access lies, and it changes no other entries.
    fn has_prefixes(&self, access: &Access) -> bool {
        let primary = self.keys(access).first();
        primary.is_some_and(|key| !key.prefix.is_empty()) && !self.changes_entries(access)
    }

    /// Declares an access by the known prefixes of its keys.
    fn declare_below(&self, access: &Access, declared: &mut Vec<Declared>) {
        declared.extend(self.keys(access).iter().map(|key| declare(access, key, Extent::Below)));
    }

    fn indexed_columns(&self, table: TableId) -> ColumnMask {
        let schema = self.catalog.table(table);
        schema.indexes.iter().flat_map(|index| index.columns.iter().copied()).collect()
    }

    /// Whether the program takes entries of the row out of secondary indexes.
    fn changes_entries(&self, access: &Access) -> bool {
        let indexed = self.indexed_columns(access.table);
        let written =
            if access.kind == AccessKind::Insert { self.updated_columns(access.row) } else { access.writes };
        let has_entries = !self.catalog.table(access.table).indexes.is_empty();
        access.deletes && has_entries || written.iter().any(|column| indexed.contains(column))
    }

    fn updated_columns(&self, row: RowId) -> ColumnMask {
        let mut columns = ColumnMask::EMPTY;
        for &step in &self.outline.order {
            if let StepKind::Update { row: updated, sets } = &self.outline.at(step).step.kind
                && *updated == row
            {
                sets.iter().for_each(|(column, _)| columns.insert(*column));
            }
        }
        columns
    }

    /// Notes what determines an access that is not declared, and the entries that it changes; whether there
    /// are any.
    fn determine(&mut self, access: &Access, tables: &mut Vec<TableColumns>) -> bool {
        let mut changes_entries = false;
        let step = access.step;
        self.steps.extend(self.origins.of_key(self.outline, self.catalog, step));
        self.steps.extend(self.origins.of_control(self.outline, step));
        let indexed = self.indexed_columns(access.table);
        match &self.outline.at(step).step.kind {
            StepKind::ForScan { .. } => {
                self.steps.insert(step);
                // Its filter and its limit say how far it goes.
                self.steps.extend(self.origins.of_step(self.outline, step));
            }
            StepKind::Insert { values, .. } => {
                for column in indexed.iter() {
                    self.flows_from(&values[usize::from(column.0)]);
                }
            }
            _ => {}
        }
        for &change in &self.outline.order {
            match &self.outline.at(change).step.kind {
                StepKind::Update { row, sets } if *row == access.row => {
                    for (_, value) in sets.iter().filter(|(column, _)| indexed.contains(*column)) {
                        self.flows_from(value);
                    }
                }
                StepKind::Delete { row } if *row == access.row => {}
                _ => continue,
            }
            self.steps.extend(self.origins.of_control(self.outline, change));
            // The row's old entries.
            note(tables, access.table, indexed.union(self.key_columns(access.table)));
            changes_entries = true;
        }
        changes_entries
    }

    /// Whether a determining step looks into rows that are looked up, and into rows that are found by scans: at
    /// more than what the scan itself has said of them.
    fn reads_inside(&self, step: StepId, row: RowId) -> (bool, bool) {
        if let StepKind::ForScan { .. } = self.outline.at(step).step.kind {
            return (false, false);
        }
        let (mut located, mut scanned) = (false, false);
        for &handle in &self.outline.handles[usize::from(row.0)] {
            match self.outline.at(handle).step.kind {
                StepKind::ForScan { .. } => {
                    let said = self.columns_read(handle);
                    scanned |= self.columns_read(step).iter().any(|column| !said.contains(column));
                }
                _ => located = true,
            }
        }
        (located, scanned)
    }

    /// Adds what determines which rows the determining steps read, what the program has written there before, and
    /// whether it ends early.
    fn follow_reads(&mut self) {
        for &step in &self.outline.order {
            if let StepKind::Return { .. } = self.outline.at(step).step.kind {
                self.steps.extend(self.origins.of_control(self.outline, step));
            }
        }
        loop {
            let mut found = self.steps.clone();
            for &step in &self.steps {
                for &handle in &self.outline.handles[usize::from(self.row_read(step).0)] {
                    found.extend(self.origins.of_key(self.outline, self.catalog, handle));
                    found.extend(self.origins.of_control(self.outline, handle));
                }
                self.follow_own_writes(step, &mut found);
            }
            if found.len() == self.steps.len() {
                return;
            }
            self.steps = found;
        }
    }

    /// Adds the origins of what the program may itself have written where a determining step reads: those of the
    /// values, and of whether they are written.
    fn follow_own_writes(&self, step: StepId, found: &mut BTreeSet<StepId>) {
        let (table, read) = (self.outline.table(self.row_read(step)), self.columns_read(step));
        let is_there = |row: &RowId| self.outline.table(*row) == table;
        for &write in &self.outline.order {
            let values: Vec<&Expression> = match &self.outline.at(write).step.kind {
                StepKind::Update { row, sets } if is_there(row) => {
                    let met: Vec<_> = sets.iter().filter(|(column, _)| read.contains(*column)).collect();
                    if met.is_empty() {
                        continue;
                    }
                    met.into_iter().map(|(_, value)| value).collect()
                }
                StepKind::Insert { row, values } if is_there(row) => {
                    read.iter().map(|column| &values[usize::from(column.0)]).collect()
                }
                StepKind::Delete { row } if is_there(row) => Vec::new(),
                _ => continue,
            };
            for value in values {
                variables(value, &mut |variable| found.extend(self.origins.of_variable(variable)));
            }
            found.extend(self.origins.of_control(self.outline, write));
        }
    }

    fn flows_from(&mut self, value: &Expression) {
        variables(value, &mut |variable| self.steps.extend(self.origins.of_variable(variable)));
    }

    fn row_read(&self, step: StepId) -> RowId {
        match &self.outline.at(step).step.kind {
            StepKind::Read { row, .. } | StepKind::Exists { row, .. } | StepKind::ForScan { row, .. } => *row,
            other => unreachable!("{other:?} reads nothing"),
        }
    }

    fn key_columns(&self, table: TableId) -> ColumnMask {
        self.catalog.table(table).primary_key.iter().copied().collect()
    }

    /// The columns that a determining step reads.
    fn columns_read(&self, step: StepId) -> ColumnMask {
        let table = self.outline.table(self.row_read(step));
        match &self.outline.at(step).step.kind {
            StepKind::Read { columns, .. } => columns.iter().map(|(column, _)| *column).collect(),
            StepKind::ForScan { scan: Scan { index: Some(index), .. }, .. } => {
                let index = &self.catalog.table(table).indexes[usize::from(index.0)];
                index.columns.iter().copied().collect::<ColumnMask>().union(self.key_columns(table))
            }
            _ => self.key_columns(table),
        }
    }

    /// Whether the program may change what a determining step reads, of this or another row.
    fn is_written(&self, step: StepId, row: RowId, all: &[Access]) -> bool {
        let (table, read) = (self.outline.table(row), self.columns_read(step));
        let is_met = |access: &Access| access.writes.iter().any(|column| read.contains(column));
        all.iter().any(|access| access.table == table && is_met(access))
    }
}
