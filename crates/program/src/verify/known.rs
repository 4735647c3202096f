//! What is known of rows at a point of a program: which key has a handle already, which rows must be
//! there, which columns have been read and not written since.
//!
//! Knowledge holds in a straight line. A block starts with what was known before it; what it learns
//! is forgotten at its end; what it may have undone ([`Effects`]) is undone after it, and for a loop
//! also before it, because the body runs again.

use crate::ir::{Expression, ExpressionKind, RowId, RowVariable, VariableId};
use fabius_value::{ColumnId, TableId};
use std::rc::Rc;

/// How many located keys are remembered: bounds the search, so that long programs verify in linear
/// time. Forgetting one costs a second lookup at run time.
const LOCATED_MAX: usize = 256;

/// What a block may do to knowledge gained before it.
#[derive(Default, Debug)]
pub(super) struct Effects {
    /// Variables assigned, lists appended to.
    pub(super) assigned: Vec<VariableId>,
    /// Tables that get rows.
    pub(super) inserted: Vec<TableId>,
    /// Tables that lose rows.
    pub(super) deleted: Vec<TableId>,
    /// Columns written.
    pub(super) updated: Vec<(TableId, ColumnId)>,
}

impl Effects {
    /// Each effect once.
    pub(super) fn simplify(&mut self) {
        fn once<T: Ord>(effects: &mut Vec<T>) {
            effects.sort_unstable();
            effects.dedup();
        }
        once(&mut self.assigned);
        once(&mut self.inserted);
        once(&mut self.deleted);
        once(&mut self.updated);
    }
}

#[derive(Clone, Debug)]
struct Located {
    row: RowId,
    table: TableId,
    /// Shared by the copies of what is known that every block makes.
    key: Rc<[Expression]>,
}

#[derive(Clone, Debug)]
struct KnownRead {
    row: RowId,
    table: TableId,
    column: ColumnId,
    variable: VariableId,
    /// Read by `?.` from a row that may be missing.
    optional: bool,
}

/// Knowledge at one point.
#[derive(Clone, Default, Debug)]
pub(super) struct Known {
    located: Vec<Located>,
    present: Vec<(RowId, TableId)>,
    reads: Vec<KnownRead>,
}

impl Known {
    /// The handle that this key has.
    pub(super) fn find(&self, table: TableId, key: &[Expression]) -> Option<RowId> {
        self.located
            .iter()
            .rev()
            .find(|known| known.table == table && *known.key == *key)
            .map(|known| known.row)
    }

    pub(super) fn locate(&mut self, row: RowId, table: TableId, key: Vec<Expression>) {
        // A random key is another one each time.
        if key.iter().any(|value| mentions(value, &|kind| matches!(kind, ExpressionKind::Random))) {
            return;
        }
        if self.located.len() == LOCATED_MAX {
            self.located.remove(0);
        }
        self.located.push(Located { row, table, key: key.into() });
    }

    pub(super) fn is_present(&self, row: RowId) -> bool {
        self.present.iter().any(|&(present, _)| present == row)
    }

    pub(super) fn require(&mut self, row: RowId, table: TableId) {
        if self.present.len() == LOCATED_MAX {
            self.present.remove(0);
        }
        self.present.push((row, table));
    }

    /// The variable that holds a column, if it was read since it was last written.
    pub(super) fn find_read(&self, row: RowId, column: ColumnId, optional: bool) -> Option<VariableId> {
        self.reads
            .iter()
            .rev()
            .find(|known| known.row == row && known.column == column && (optional || !known.optional))
            .map(|known| known.variable)
    }

    pub(super) fn read(
        &mut self,
        row: RowId,
        rows: &[RowVariable],
        column: ColumnId,
        variable: VariableId,
        optional: bool,
    ) {
        if self.reads.len() == LOCATED_MAX {
            self.reads.remove(0);
        }
        let table = rows[usize::from(row.0)].table;
        self.reads.push(KnownRead { row, table, column, variable, optional });
    }

    /// A variable has another value: keys computed from it mean other rows.
    pub(super) fn assigned(&mut self, variable: VariableId) {
        let uses = |kind: &ExpressionKind| match kind {
            ExpressionKind::Variable(used) => *used == variable,
            ExpressionKind::Aggregate { list, .. } | ExpressionKind::Element { list, .. } => {
                *list == variable
            }
            _ => false,
        };
        self.located.retain(|known| !known.key.iter().any(|value| mentions(value, &uses)));
    }

    /// A table has another row: keys that found nothing may find it.
    pub(super) fn inserted(&mut self, table: TableId) {
        self.located.retain(|known| known.table != table);
        self.reads.retain(|known| known.table != table);
    }

    /// A table has lost a row, by whichever handle.
    pub(super) fn deleted(&mut self, table: TableId) {
        self.present.retain(|&(_, present)| present != table);
        self.reads.retain(|known| known.table != table);
    }

    /// A column was written, by whichever handle.
    pub(super) fn updated(&mut self, table: TableId, column: ColumnId) {
        self.reads.retain(|known| known.table != table || known.column != column);
    }

    /// Undoes what a block may have undone.
    pub(super) fn apply(&mut self, effects: &Effects) {
        effects.assigned.iter().for_each(|&variable| self.assigned(variable));
        effects.inserted.iter().for_each(|&table| self.inserted(table));
        effects.deleted.iter().for_each(|&table| self.deleted(table));
        effects.updated.iter().for_each(|&(table, column)| self.updated(table, column));
    }
}

/// Whether the expression or a part of it is of a kind.
fn mentions(expression: &Expression, kind: &impl Fn(&ExpressionKind) -> bool) -> bool {
    kind(&expression.kind)
        || match &expression.kind {
            ExpressionKind::Unary(_, operand)
            | ExpressionKind::Cast(operand)
            | ExpressionKind::Element { index: operand, .. } => mentions(operand, kind),
            ExpressionKind::Binary(_, left, right) => mentions(left, kind) || mentions(right, kind),
            ExpressionKind::Case { arms, otherwise } => {
                mentions(otherwise, kind)
                    || arms
                        .iter()
                        .any(|(condition, value)| mentions(condition, kind) || mentions(value, kind))
            }
            ExpressionKind::Call(_, arguments) => arguments.iter().any(|argument| mentions(argument, kind)),
            ExpressionKind::Constant(_)
            | ExpressionKind::Variable(_)
            | ExpressionKind::Aggregate { .. }
            | ExpressionKind::Now
            | ExpressionKind::Random => false,
        }
}
