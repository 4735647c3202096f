//! The names that a statement can use, and what each stands for.

use crate::ir::{Field, RowId, ScalarType, VariableId};
use fabius_value::TableId;
use std::collections::HashMap;

/// How a scalar variable came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Declared {
    Parameter,
    Let,
    Var,
    /// By a `for`, for each of its turns.
    For,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) enum Binding {
    /// A scalar variable; only a `var` changes.
    Scalar { variable: VariableId, scalar: ScalarType, declared: Declared },
    /// A list variable; parameters are not mutable.
    List { variable: VariableId, fields: Vec<Field>, mutable: bool },
    /// The element of a list in a `for`: its fields, each a variable.
    Record { fields: Vec<(Field, VariableId)> },
    /// The row of a table in a `for`.
    Row { row: RowId, table: TableId },
    /// Something whose declaration was refused; using it is no further error.
    Refused,
}

/// The names in force. A name is declared once among those visible, so no name hides another.
#[derive(Default)]
pub(super) struct Scope {
    bindings: HashMap<String, Binding>,
    order: Vec<String>,
    /// Names that were in force, with the line of their block.
    left: HashMap<String, u32>,
}

impl Scope {
    pub(super) fn get(&self, name: &str) -> Option<&Binding> {
        self.bindings.get(name)
    }

    /// Adds a name; `false` if it is taken.
    pub(super) fn declare(&mut self, name: &str, binding: Binding) -> bool {
        if self.bindings.contains_key(name) {
            return false;
        }
        self.bindings.insert(name.into(), binding);
        self.order.push(name.into());
        true
    }

    /// A mark to [`leave`](Scope::leave) to at a block's end.
    pub(super) fn enter(&self) -> usize {
        self.order.len()
    }

    /// Ends the block that a statement of this line has.
    pub(super) fn leave(&mut self, mark: usize, line: u32) {
        for name in self.order.drain(mark..) {
            self.bindings.remove(&name);
            self.left.insert(name, line);
        }
    }

    /// The line of the block that a name was last visible in.
    pub(super) fn left(&self, name: &str) -> Option<u32> {
        self.left.get(name).copied()
    }

    /// The rows of the loops in force, innermost first.
    pub(super) fn rows(&self) -> impl Iterator<Item = (&str, TableId)> {
        self.names().rev().filter_map(|name| match self.get(name) {
            Some(Binding::Row { table, .. }) => Some((name, *table)),
            _ => None,
        })
    }

    /// The lists among the names.
    pub(super) fn lists(&self) -> Vec<&str> {
        let is_list = |name: &&str| matches!(self.get(name), Some(Binding::List { .. }));
        self.names().filter(is_list).collect()
    }

    pub(super) fn names(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.order.iter().map(String::as_str)
    }
}
