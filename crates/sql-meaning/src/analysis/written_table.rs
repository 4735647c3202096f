//! The table that a statement writes: which columns an `INSERT` gives values, and what may have to be granted. Values
//! that are read need `SELECT` too (PostgreSQL's documentation of `INSERT`, `UPDATE` and `DELETE`).

use crate::catalog::{Table, folded};
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Visit, Visitor};
use std::cmp::Ordering;
use std::ops::ControlFlow;

/// What an `INSERT` needs on its table.
pub fn needs_of_insert(insert: &ast::Insert) -> Vec<Privilege> {
    let mut needs = vec![Privilege::Insert];
    if insert.returning.is_some() {
        needs.push(Privilege::Select);
    }
    if let Some(ast::OnInsert::OnConflict(conflict)) = &insert.on {
        if conflict.conflict_target.is_some() {
            needs.push(Privilege::Select);
        }
        if matches!(conflict.action, ast::OnConflictAction::DoUpdate(_)) {
            needs.push(Privilege::Update);
        }
    }
    needs
}

/// The columns of a table that an `INSERT` gives values.
#[derive(Clone, Debug)]
pub struct InsertTargets {
    /// Their places, in the order of the values.
    pub places: Vec<usize>,
    are_named: bool,
}

impl InsertTargets {
    /// Columns at some places, as if the statement had named them.
    pub fn named(places: Vec<usize>) -> InsertTargets {
        InsertTargets { places, are_named: true }
    }

    /// Those that a statement names, or all.
    ///
    /// # Errors
    /// `42703` for a column that is not there, `42701` for one that is named twice, each with the name.
    pub fn of<'c>(
        table: &Table,
        columns: &'c [ast::ObjectName],
    ) -> std::result::Result<InsertTargets, (Error, Option<&'c ast::Ident>)> {
        let mut places = Vec::with_capacity(columns.len());
        for name in columns {
            let last = name.0.last().and_then(|part| part.as_ident());
            let wanted = last.map(folded).unwrap_or_default();
            let place = table.place_of(&wanted).map_err(|error| (error, last))?;
            if places.contains(&place) {
                let message = format!("column \"{wanted}\" specified more than once");
                return Err((Error::new(SqlState(*b"42701"), message), last));
            }
            places.push(place);
        }
        let are_named = !places.is_empty();
        if !are_named {
            places = (0..table.columns.len()).filter(|at| !table.columns[*at].is_hidden).collect();
        }
        Ok(InsertTargets { places, are_named })
    }

    /// Leaves those that get one of so many values; the others get their defaults.
    ///
    /// # Errors
    /// `42601` if there are more values than columns, or fewer than columns that are named.
    pub fn take(&mut self, values: usize) -> Result<()> {
        let message = match values.cmp(&self.places.len()) {
            Ordering::Greater => "INSERT has more expressions than target columns",
            Ordering::Less if self.are_named => "INSERT has more target columns than expressions",
            _ => {
                self.places.truncate(values);
                return Ok(());
            }
        };
        Err(Error::new(SqlState::SYNTAX_ERROR, message))
    }
}

/// What an `UPDATE` needs on its table.
pub fn needs_of_update(update: &ast::Update) -> Vec<Privilege> {
    let reads = update.selection.is_some()
        || update.from.is_some()
        || update.returning.is_some()
        || update.assignments.iter().any(|assignment| names_column(&assignment.value));
    if reads { vec![Privilege::Update, Privilege::Select] } else { vec![Privilege::Update] }
}

/// What a `DELETE` needs on its table.
pub fn needs_of_delete(delete: &ast::Delete) -> Vec<Privilege> {
    let reads = delete.selection.is_some() || delete.using.is_some() || delete.returning.is_some();
    if reads { vec![Privilege::Delete, Privilege::Select] } else { vec![Privilege::Delete] }
}

/// Whether an expression names a column.
fn names_column(expression: &ast::Expr) -> bool {
    struct Names;
    impl Visitor for Names {
        type Break = ();

        fn pre_visit_expr(&mut self, expression: &ast::Expr) -> ControlFlow<()> {
            match expression {
                ast::Expr::Identifier(name) if name.value.eq_ignore_ascii_case("default") => {
                    ControlFlow::Continue(())
                }
                ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
    }
    expression.visit(&mut Names).is_break()
}
