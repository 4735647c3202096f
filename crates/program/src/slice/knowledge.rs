//! What is known of values at one point of a program: the state of the interval analysis.
//!
//! Every variable, list field, list length and table column that the program touches has a *cell*
//! with an interval: numbers for exact types, dates and timestamps; the length in characters (bytes
//! for bytea) for text. A column's cell stands for all rows of the table, as this program can see
//! them at this point: what the caller assumes, and what the program has written so far.
//!
//! Beyond intervals it knows which variables are equal (two reads of one column with no write in
//! between), so that `require accounts[src].balance >= amount` narrows a later read of the balance
//! too, and *facts* about expressions (`quantity - count >= 10`).

use super::Assumptions;
use super::interval::Interval;
use super::outline::{Outline, mentions};
use crate::catalog::Catalog;
use crate::ir::{Expression, RowId, StepKind, Type, VariableId};
use fabius_value::{ColumnId, DataType, TableId, limit};
use std::collections::BTreeMap;

/// A place in the state that an interval is kept for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cell(pub usize);

/// The cells of a program, and the widest interval of each.
pub(super) struct Cells {
    variables: Vec<usize>,
    columns: BTreeMap<(TableId, ColumnId), usize>,
    /// By cell: what its type allows.
    pub tops: Vec<Interval>,
}

impl Cells {
    /// The cells of a program.
    pub fn of(outline: &Outline<'_>, catalog: &Catalog) -> Cells {
        let mut cells = Cells { variables: Vec::new(), columns: BTreeMap::new(), tops: Vec::new() };
        for (at, variable) in outline.program.variables.iter().enumerate() {
            cells.variables.push(cells.tops.len());
            let argument = outline.is_parameter(VariableId(at as u16));
            match &variable.ty {
                Type::Scalar(scalar) => cells.tops.push(type_range(scalar.data_type)),
                Type::List(fields) => {
                    let longest = if argument { MOST_ELEMENTS } else { MOST_ROWS as i128 };
                    cells.tops.push(Interval::new(0, longest));
                    cells.tops.extend(fields.iter().map(|field| type_range(field.scalar.data_type)));
                }
            }
        }
        let mut column = |table: TableId, column: ColumnId| {
            let top = type_range(catalog.table(table).data_type(column));
            let next = cells.tops.len();
            if *cells.columns.entry((table, column)).or_insert(next) == next {
                cells.tops.push(top);
            }
        };
        for &step in &outline.order {
            match &outline.at(step).step.kind {
                StepKind::Read { row, columns } => {
                    columns.iter().for_each(|(read, _)| column(outline.table(*row), *read));
                }
                StepKind::ForScan { row, .. } => {
                    let table = outline.table(*row);
                    catalog.table(table).primary_key.iter().for_each(|key| column(table, *key));
                }
                _ => {}
            }
        }
        outline.writes.iter().for_each(|site| column(site.table, site.column));
        cells
    }

    /// The cell of a scalar variable.
    pub fn variable(&self, variable: VariableId) -> Cell {
        Cell(self.variables[usize::from(variable.0)])
    }

    /// The cell of a list's length.
    pub fn length(&self, list: VariableId) -> Cell {
        self.variable(list)
    }

    /// The cell of a list's field.
    pub fn field(&self, list: VariableId, field: u16) -> Cell {
        Cell(self.variables[usize::from(list.0)] + 1 + usize::from(field))
    }

    /// The cell of a column that the program reads, writes or scans by.
    pub fn column(&self, table: TableId, column: ColumnId) -> Cell {
        Cell(self.columns[&(table, column)])
    }

    /// The columns that the program reads, writes or scans by.
    pub fn columns(&self) -> impl Iterator<Item = (TableId, ColumnId)> + '_ {
        self.columns.keys().copied()
    }

    /// The state before the first step: parameters and columns as assumed, everything else without
    /// a value yet.
    pub fn start(&self, outline: &Outline<'_>, assumptions: &dyn Assumptions) -> Knowledge {
        let mut cells = vec![Interval::EMPTY; self.tops.len()];
        let mut set = |cell: Cell, assumed: Option<Interval>| {
            let top = self.tops[cell.0];
            cells[cell.0] = assumed.map_or(top, |assumed| top.meet(assumed));
        };
        for (at, variable) in outline.program.variables.iter().enumerate() {
            let id = VariableId(at as u16);
            match &variable.ty {
                Type::Scalar(_) if outline.is_parameter(id) => {
                    set(self.variable(id), assumptions.parameter(id, 0));
                }
                Type::List(fields) if outline.is_parameter(id) => {
                    let longest = assumptions.length(id).map(|most| Interval::new(0, most.into()));
                    set(self.length(id), longest);
                    for field in 0..fields.len() as u16 {
                        set(self.field(id, field), assumptions.parameter(id, field));
                    }
                }
                Type::List(_) => set(self.length(id), Some(Interval::only(0))),
                Type::Scalar(_) => {}
            }
        }
        for &(table, column) in self.columns.keys() {
            set(self.column(table, column), assumptions.column(table, column));
        }
        Knowledge { reachable: true, cells, held: Vec::new(), equal: Vec::new(), facts: Vec::new() }
    }
}

/// The most elements an argument can have: they take a byte each.
pub(super) const MOST_ELEMENTS: i128 = limit::ARGUMENT_BYTES as i128;
/// Rows a scan can give at most, and elements that a program can append: more than memory can hold.
pub(super) const MOST_ROWS: u128 = 1 << 40;

/// The numbers, or lengths, that values of a type can have; everything for types without either.
pub(super) fn type_range(data_type: DataType) -> Interval {
    match data_type {
        DataType::Text { limit: Some(most) } | DataType::Char { length: most } => {
            Interval::new(0, most.into())
        }
        DataType::Text { limit: None } | DataType::Bytea => Interval::new(0, limit::BLOB_BYTES as i128),
        other => other.number_range().map_or(Interval::EVERY, |(low, high)| Interval::new(low, high)),
    }
}

/// What is known at one point of a program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Knowledge {
    /// Whether the point can be reached.
    pub reachable: bool,
    cells: Vec<Interval>,
    /// Columns of rows that were read, and the variables that hold them still.
    held: Vec<(RowId, ColumnId, VariableId)>,
    /// Variables that are equal.
    equal: Vec<(VariableId, VariableId)>,
    /// Intervals of expressions.
    pub facts: Vec<(Expression, Interval)>,
}

impl Knowledge {
    /// The interval of a cell.
    pub fn get(&self, cell: Cell) -> Interval {
        self.cells[cell.0]
    }

    /// Replaces the interval of a cell that is not a variable's.
    pub fn set(&mut self, cell: Cell, interval: Interval) {
        self.cells[cell.0] = interval;
    }

    /// Widens a cell.
    pub fn add(&mut self, cell: Cell, interval: Interval) {
        self.cells[cell.0] = self.cells[cell.0].hull(interval);
    }

    /// A variable gets a new value.
    pub fn assign(&mut self, cells: &Cells, variable: VariableId, interval: Interval) {
        self.held.retain(|(_, _, holder)| *holder != variable);
        self.equal.retain(|(one, other)| *one != variable && *other != variable);
        self.facts.retain(|(expression, _)| !mentions(expression, variable));
        self.set(cells.variable(variable), interval);
    }

    /// A variable gets another's value.
    pub fn assign_variable(&mut self, cells: &Cells, variable: VariableId, from: VariableId) {
        if variable != from {
            self.assign(cells, variable, self.get(cells.variable(from)));
            self.equal.push((variable, from));
        }
    }

    /// A variable gets a column's value.
    pub fn read(
        &mut self,
        cells: &Cells,
        variable: VariableId,
        table: TableId,
        row: RowId,
        column: ColumnId,
    ) {
        let holder = self.held.iter().find(|(r, c, _)| (*r, *c) == (row, column)).map(|held| held.2);
        match holder {
            Some(holder) => self.assign_variable(cells, variable, holder),
            None => self.assign(cells, variable, self.get(cells.column(table, column))),
        }
        self.held.push((row, column, variable));
    }

    /// A column of some row of a table changed.
    pub fn forget_column(&mut self, outline: &Outline<'_>, table: TableId, column: ColumnId) {
        self.held.retain(|(row, held, _)| outline.table(*row) != table || *held != column);
    }

    /// A row handle is set again.
    pub fn forget_row(&mut self, row: RowId) {
        self.held.retain(|(held, _, _)| *held != row);
    }

    /// A variable is known to be within an interval; so are those equal to it.
    pub fn narrow(&mut self, cells: &Cells, variable: VariableId, to: Interval) {
        let mut class = vec![variable];
        let mut next = 0;
        while let Some(&member) = class.get(next) {
            next += 1;
            for (one, other) in &self.equal {
                for (a, b) in [(one, other), (other, one)] {
                    if *a == member && !class.contains(b) {
                        class.push(*b);
                    }
                }
            }
        }
        for member in class {
            let cell = cells.variable(member);
            let narrowed = self.get(cell).meet(to);
            self.reachable &= !narrowed.is_empty();
            self.set(cell, narrowed);
        }
    }

    /// What is known where two paths meet.
    pub fn join(self, other: Knowledge) -> Knowledge {
        if !other.reachable {
            return self;
        }
        if !self.reachable {
            return other;
        }
        let cells = self.cells.iter().zip(&other.cells).map(|(a, b)| a.hull(*b)).collect();
        let facts = self
            .facts
            .into_iter()
            .filter_map(|(expression, here)| {
                let (_, there) = other.facts.iter().find(|(fact, _)| *fact == expression)?;
                Some((expression, here.hull(*there)))
            })
            .collect();
        Knowledge {
            reachable: true,
            cells,
            held: self.held.into_iter().filter(|held| other.held.contains(held)).collect(),
            equal: self.equal.into_iter().filter(|pair| other.equal.contains(pair)).collect(),
            facts,
        }
    }

    /// Drops what a turn of a loop may change beyond intervals.
    pub fn forget_relations(&mut self) {
        self.held.clear();
        self.equal.clear();
        self.facts.clear();
    }
}
