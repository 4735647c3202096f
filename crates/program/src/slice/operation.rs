//! What a program does to the columns of each table, seen from outside: which it only applies an operation
//! to (Doppel's splittable operations), and which it reads or writes otherwise.
//!
//! ```text
//! pages[p].likes += 1                              applies add to likes
//! require pages[p].likes < 10                      reads likes, whatever else is done to it
//! items[i].max_bid = greatest(items[i].max_bid, b) applies max to max_bid
//! ```
//!
//! A column counts as applied to if every update of it is one operation with an operand that does not
//! depend on it, always the same operation, and the program looks at its value for nothing else. Then
//! neither outcome nor results depend on the value, but for an operation that leaves the column's range.

use super::delta::{self, DeltaShape};
use super::outline::{Outline, used_variables};
use crate::catalog::Catalog;
use crate::context::DeltaOperator;
use crate::ir::{Program, StepKind, VariableId};
use fabius_value::{ColumnId, ColumnMask, TableId};

/// What a program does to a table's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableOperations {
    /// The table.
    pub table: TableId,
    /// Columns of exact numbers or times that it only applies this operation to.
    pub applied: Vec<(ColumnId, DeltaOperator)>,
    /// Columns that it reads otherwise.
    pub read: ColumnMask,
    /// Columns that it updates otherwise.
    pub written: ColumnMask,
    /// Whether it deletes rows.
    pub deletes: bool,
}

/// What a program does to the tables that it looks at or changes, in no particular order.
pub fn operations(program: &Program, catalog: &Catalog) -> Vec<TableOperations> {
    let outline = Outline::of(program);
    let shapes = delta::delta_shapes(&outline, catalog);
    let mut uses = vec![0u32; program.variables.len()];
    for step in &outline.order {
        used_variables(outline.at(*step).step).iter().for_each(|used| uses[usize::from(used.0)] += 1);
    }
    let is_pure = |shape: &DeltaShape| {
        uses[usize::from(shape.variable.0)] == 1 && delta::uniform(&outline, &shapes, shape)
    };
    let site_is_pure = |site| shapes.iter().any(|shape| shape.site == site && is_pure(shape));
    let mut tables: Vec<TableOperations> = Vec::new();
    for site in outline.writes.iter().filter(|site| !site.insert) {
        let column = (site.table, site.column);
        let mut sites =
            outline.writes.iter().filter(|other| !other.insert && (other.table, other.column) == column);
        let table = of(&mut tables, site.table);
        if !sites.all(|other| site_is_pure(*other)) {
            table.written.insert(site.column);
        } else if table.applied.iter().all(|(known, _)| *known != site.column) {
            let shape = shapes.iter().find(|shape| shape.site == *site).expect("it has a shape");
            table.applied.push((site.column, shape.operator));
        }
    }
    let serves_operation = |tables: &[TableOperations], table: TableId, column, variable: VariableId| {
        let is_applied = tables
            .iter()
            .any(|known| known.table == table && known.applied.iter().any(|(applied, _)| *applied == column));
        is_applied && shapes.iter().any(|shape| shape.variable == variable && is_pure(shape))
    };
    for step in &outline.order {
        match &outline.at(*step).step.kind {
            StepKind::Read { row, columns } => {
                let id = outline.table(*row);
                for (column, variable) in columns {
                    if uses[usize::from(variable.0)] > 0 && !serves_operation(&tables, id, *column, *variable)
                    {
                        let table = of(&mut tables, id);
                        table.read.insert(*column);
                    }
                }
            }
            StepKind::Delete { row } => of(&mut tables, outline.table(*row)).deletes = true,
            _ => {}
        }
    }
    tables
}

fn of(tables: &mut Vec<TableOperations>, id: TableId) -> &mut TableOperations {
    if let Some(at) = tables.iter().position(|known| known.table == id) {
        return &mut tables[at];
    }
    tables.push(TableOperations {
        table: id,
        applied: Vec::new(),
        read: ColumnMask::EMPTY,
        written: ColumnMask::EMPTY,
        deletes: false,
    });
    tables.last_mut().expect("just added")
}
