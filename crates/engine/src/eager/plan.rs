//! What is known of a program before it runs.
//!
//! Read from the IR once, when the program is defined:
//!
//! - **Which rows to lock exclusively at once.** A row that is read and then written would be locked
//!   shared first and raised later; two calls that do so to one row must both give way once. If every row
//!   that the program looks up (or scans) in a table is one that it may write, it takes the exclusive lock
//!   right away, as `select ... for update` does.
//! - **At which depths it scans**, so that writers know which granules they change ([`crate::eager::granule`]).
//! - **What it does to each table's columns**: which it only adds to, or raises, or lowers.
//! - **Whether it draws random numbers.** They come from the call's seq, which an engine without a fixed order
//!   knows only when the call ends. Such calls run alone, with the seq that will be theirs.

use crate::eager::granule::Space;
use crate::entry::Call;
use crate::{Definitions, Procedure};
use fabius_program::catalog::Catalog;
use fabius_program::context::Stop;
use fabius_program::ir::{Block, Expression, ExpressionKind, Program, Returned, RowId, Scan, StepKind};
use fabius_program::shelf::Shelf;
use fabius_program::slice::operation::{TableOperations, operations};
use fabius_storage::Table;
use fabius_value::{ColumnId, Datum, IndexId, Key, TableId};
use std::collections::HashSet;
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
    /// By table, then index (the primary key first): a bit for each depth of some scan.
    depths: Vec<Vec<u128>>,
}

impl Schema {
    /// The schema of some definitions, which are those of `before` and more.
    pub fn of(definitions: Arc<Definitions>, before: &Schema) -> Schema {
        let mut plans = before.plans.clone();
        let mut depths = before.depths.clone();
        let new_tables = &definitions.tables[depths.len()..];
        depths.extend(new_tables.iter().map(|table| vec![0; table.index_count() + 1]));
        for procedure in definitions.procedures.iter_from(plans.len()) {
            let plan = Plan::of(&procedure.program, &definitions.catalog, definitions.tables.len());
            for (table, index, depth) in &plan.scans {
                depths[table.0 as usize][place(*index)] |= 1u128 << depth;
            }
            plans.push(Arc::new(plan));
        }
        Schema { definitions, plans, depths }
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
        let depths = self.depths(table.id(), index);
        let mut key = Key::new();
        let mut has_null = false;
        for (depth, &column) in columns.iter().enumerate() {
            if depths >> depth & 1 == 1 {
                visit(Around::Granule(space, key.bytes()))?;
            }
            let value = value(column);
            has_null |= value.is_null();
            let column = usize::from(column.0);
            let nullable = index.is_some() && table.schema().columns[column].nullable;
            key.push(value, table.types()[column], nullable)?;
        }
        if depths >> columns.len() & 1 == 1 {
            visit(Around::Granule(space, key.bytes()))?;
        }
        if index.is_some_and(|index| table.is_unique(index)) && !has_null {
            visit(Around::Unique(Space::unique(table.id().0, number), key.bytes()))?;
        }
        Ok(key)
    }

    /// The depths at which programs scan an index: bit `n` for scans of `n` equal columns.
    #[inline]
    pub fn depths(&self, table: TableId, index: Option<IndexId>) -> u128 {
        self.depths[table.0 as usize][place(index)]
    }
}

fn place(index: Option<IndexId>) -> usize {
    index.map_or(0, |index| index.0 as usize + 1)
}

impl Plan {
    /// Reads a program. Tables it does not know of are those defined after it.
    pub fn of(program: &Program, catalog: &Catalog, tables: usize) -> Plan {
        let mut reading = Reading::default();
        reading.block(&program.body);
        let table = |row: &RowId| program.rows[usize::from(row.0)].table;
        let all_written = |rows: &HashSet<RowId>| {
            let mut answer = vec![false; tables];
            rows.iter().for_each(|row| answer[table(row).0 as usize] = true);
            for row in
                rows.iter().filter(|row| !reading.written.contains(row) || reading.filtered.contains(row))
            {
                answer[table(row).0 as usize] = false;
            }
            answer
        };
        let scans = reading.scans.iter();
        Plan {
            draws_random: reading.draws_random,
            only_reads: !program.writes_anything(),
            locates_to_write: all_written(&reading.located),
            scans_to_write: all_written(&reading.scanned),
            operations: operations(program, catalog),
            scans: scans.map(|(row, index, depth)| (table(row), *index, *depth)).collect(),
        }
    }
}

/// What a walk over a program has met.
#[derive(Default)]
struct Reading {
    draws_random: bool,
    located: HashSet<RowId>,
    scanned: HashSet<RowId>,
    /// Of those, the ones a filter may drop: they are read, whatever the body does to the others.
    filtered: HashSet<RowId>,
    written: HashSet<RowId>,
    scans: Vec<(RowId, Option<IndexId>, usize)>,
}

impl Reading {
    fn block(&mut self, block: &Block) {
        block.iter().for_each(|step| self.step(&step.kind));
    }

    fn step(&mut self, step: &StepKind) {
        match step {
            StepKind::Assign { value, .. } => self.expression(value),
            StepKind::Append { values, .. } | StepKind::Insert { values, .. } => {
                values.iter().for_each(|value| self.expression(value));
            }
            StepKind::Locate { row, key } => {
                self.located.insert(*row);
                key.iter().for_each(|value| self.expression(value));
            }
            StepKind::Require { condition, failure } => {
                self.expression(condition);
                failure.expressions().for_each(|text| self.expression(text));
            }
            StepKind::If { condition, then, otherwise } => {
                self.expression(condition);
                self.block(then);
                self.block(otherwise);
            }
            StepKind::ForList { body, .. } => self.block(body),
            StepKind::ForRange { from, to, body, .. } => {
                self.expression(from);
                self.expression(to);
                self.block(body);
            }
            StepKind::ForScan { row, scan, body } => {
                self.scan(*row, scan);
                self.block(body);
            }
            StepKind::Update { row, sets } => {
                self.written.insert(*row);
                sets.iter().for_each(|(_, value)| self.expression(value));
            }
            StepKind::Delete { row } => {
                self.written.insert(*row);
            }
            StepKind::Return { values } => {
                for value in values {
                    match value {
                        Returned::Scalar(value) => self.expression(value),
                        Returned::List(_) => {}
                    }
                }
            }
            StepKind::Clear { .. }
            | StepKind::Sort { .. }
            | StepKind::RequireRow { .. }
            | StepKind::Exists { .. }
            | StepKind::Read { .. } => {}
        }
    }

    fn scan(&mut self, row: RowId, scan: &Scan) {
        self.scans.push((row, scan.index, scan.equal.len()));
        self.scanned.insert(row);
        let bounds = scan.lower.iter().chain(&scan.upper).map(|bound| &bound.value);
        bounds.chain(&scan.equal).chain(&scan.limit).for_each(|value| self.expression(value));
        if let Some(filter) = &scan.filter {
            self.filtered.insert(row);
            self.block(&filter.steps);
            self.expression(&filter.condition);
        }
    }

    fn expression(&mut self, expression: &Expression) {
        match &expression.kind {
            ExpressionKind::Random => self.draws_random = true,
            ExpressionKind::Unary(_, operand) | ExpressionKind::Cast(operand) => self.expression(operand),
            ExpressionKind::Element { index, .. } => self.expression(index),
            ExpressionKind::Binary(_, left, right) => {
                self.expression(left);
                self.expression(right);
            }
            ExpressionKind::Case { arms, otherwise } => {
                for (condition, value) in arms {
                    self.expression(condition);
                    self.expression(value);
                }
                self.expression(otherwise);
            }
            ExpressionKind::Call(_, arguments) => arguments.iter().for_each(|value| self.expression(value)),
            ExpressionKind::Constant(_)
            | ExpressionKind::Variable(_)
            | ExpressionKind::Aggregate { .. }
            | ExpressionKind::Now => {}
        }
    }
}
