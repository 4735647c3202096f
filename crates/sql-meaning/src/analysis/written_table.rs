//! What a statement does with the table that it writes, besides writing: values that are read need `SELECT` too
//! (PostgreSQL's documentation of `INSERT`, `UPDATE` and `DELETE`).

use fabius_sql_syntax::privilege::Privilege;
use sqlparser::ast::{self, Visit, Visitor};
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
