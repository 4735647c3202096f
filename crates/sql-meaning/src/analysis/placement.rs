//! Where calls may not stand that are about several rows: window functions outside of what a query returns and sorts
//! by, aggregates and functions that return sets in what is one value of one row (PostgreSQL 15, 4.2.7, 4.2.8, 7.2.4).
//!
//! What aggregates and sets may not stand in within queries is found when these are bound: which query an aggregate is
//! over, its arguments say.

use super::written_call::Called;
use crate::catalog::folded;
use fabius_value::{Error, SqlState};
use sqlparser::ast::{self, Expr, Visit, Visitor};
use std::ops::ControlFlow;

/// The error of the first call that stands where it may not.
pub fn misplaced(tree: &impl Visit) -> Option<Error> {
    tree.visit(&mut Statements).break_value()
}

type Judged = ControlFlow<Error>;

/// Looks at each statement, query and `SELECT`, however deep.
struct Statements;

impl Visitor for Statements {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &ast::Query) -> Judged {
        if let Some(order) = &query.order_by {
            once_only(order)?;
        }
        of_one_row(&query.limit_clause, "LIMIT")?;
        of_one_row(&query.fetch, "LIMIT")?;
        rows_of_values(&query.body)
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> Judged {
        once_only(&select.projection)?;
        once_only(&select.distinct)?;
        for table in &select.from {
            table_with_joins(table)?;
        }
        no_windows(&select.selection, "WHERE")?;
        no_windows(&select.group_by, "GROUP BY")?;
        no_windows(&select.having, "HAVING")?;
        no_windows(&select.named_window, "window definitions")
    }

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> Judged {
        match statement {
            ast::Statement::Insert(insert) => {
                returned(&insert.returning)?;
                if let Some(values) = insert.source.as_ref().map(|query| query.body.as_ref())
                    && let ast::SetExpr::Values(values) = values
                {
                    refuse(values, Refuses::Aggregates, "VALUES")?;
                }
                match &insert.on {
                    Some(ast::OnInsert::OnConflict(conflict)) => on_conflict(conflict),
                    _ => ControlFlow::Continue(()),
                }
            }
            ast::Statement::Update(update) => {
                of_one_row(&update.assignments, "UPDATE")?;
                update.from.iter().try_for_each(|from| {
                    let (ast::UpdateTableFromKind::BeforeSet(tables)
                    | ast::UpdateTableFromKind::AfterSet(tables)) = from;
                    tables.iter().try_for_each(table_with_joins)
                })?;
                no_windows(&update.selection, "WHERE")?;
                returned(&update.returning)
            }
            ast::Statement::Delete(delete) => {
                delete.using.iter().flatten().try_for_each(table_with_joins)?;
                no_windows(&delete.selection, "WHERE")?;
                returned(&delete.returning)
            }
            ast::Statement::Merge(merge) => {
                of_one_row(&merge.on, "JOIN conditions")?;
                merge.clauses.iter().try_for_each(|clause| {
                    of_one_row(&clause.predicate, "MERGE WHEN conditions")?;
                    match &clause.action {
                        ast::MergeAction::Update(update) => of_one_row(update, "UPDATE"),
                        ast::MergeAction::Insert(insert) => of_one_row(insert, "VALUES"),
                        ast::MergeAction::Delete { .. } => ControlFlow::Continue(()),
                    }
                })
            }
            ast::Statement::CreateTable(create) => {
                create.columns.iter().try_for_each(column_definition)?;
                create.constraints.iter().try_for_each(constraint)
            }
            ast::Statement::AlterTable(alter) => alter.operations.iter().try_for_each(alteration),
            ast::Statement::CreateIndex(create) => {
                of_one_row(&create.columns, "index expressions")?;
                of_one_row(&create.predicate, "index predicates")
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn column_definition(column: &ast::ColumnDef) -> Judged {
    column.options.iter().try_for_each(|option| match &option.option {
        ast::ColumnOption::Default(value) => of_one_row(value, "DEFAULT expressions"),
        ast::ColumnOption::Check(check) => of_one_row(&check.expr, "check constraints"),
        generated @ ast::ColumnOption::Generated { .. } => {
            of_one_row(generated, "column generation expressions")
        }
        _ => ControlFlow::Continue(()),
    })
}

fn constraint(constraint: &ast::TableConstraint) -> Judged {
    match constraint {
        ast::TableConstraint::Check(check) => of_one_row(&check.expr, "check constraints"),
        _ => ControlFlow::Continue(()),
    }
}

fn alteration(operation: &ast::AlterTableOperation) -> Judged {
    use ast::AlterColumnOperation::{SetDataType, SetDefault};
    match operation {
        ast::AlterTableOperation::AddColumn { column_def, .. } => column_definition(column_def),
        ast::AlterTableOperation::AddConstraint { constraint: added, .. } => constraint(added),
        ast::AlterTableOperation::AlterColumn { op: SetDefault { value }, .. } => {
            of_one_row(value, "DEFAULT expressions")
        }
        ast::AlterTableOperation::AlterColumn { op: SetDataType { using, .. }, .. } => {
            of_one_row(using, "transform expressions")
        }
        _ => ControlFlow::Continue(()),
    }
}

/// What a statement that writes returns; programs and queries refuse its aggregates.
fn returned(items: &Option<Vec<ast::SelectItem>>) -> Judged {
    no_windows(items, "RETURNING")?;
    refuse(items, Refuses::Sets, "RETURNING")
}

fn on_conflict(conflict: &ast::OnConflict) -> Judged {
    match &conflict.action {
        ast::OnConflictAction::DoUpdate(update) => {
            of_one_row(&update.assignments, "UPDATE")?;
            of_one_row(&update.selection, "WHERE")
        }
        ast::OnConflictAction::DoNothing => ControlFlow::Continue(()),
    }
}

/// `VALUES` on either side of set operations.
fn rows_of_values(body: &ast::SetExpr) -> Judged {
    match body {
        ast::SetExpr::Values(values) => no_windows(values, "VALUES"),
        ast::SetExpr::SetOperation { left, right, .. } => {
            rows_of_values(left)?;
            rows_of_values(right)
        }
        _ => ControlFlow::Continue(()),
    }
}

fn table_with_joins(table: &ast::TableWithJoins) -> Judged {
    let factor = |factor: &ast::TableFactor| match factor {
        ast::TableFactor::NestedJoin { table_with_joins: within, .. } => table_with_joins(within),
        _ => no_windows(factor, "functions in FROM"),
    };
    factor(&table.relation)?;
    for join in &table.joins {
        factor(&join.relation)?;
        no_windows(&join.join_operator, "JOIN conditions")?;
    }
    ControlFlow::Continue(())
}

fn refuse(part: &impl Visit, refuses: Refuses, clause: &'static str) -> Judged {
    part.visit(&mut Calls { clause, refuses, depth: 0 })
}

/// Refuses window functions; those of queries within are these queries' own.
fn no_windows(part: &impl Visit, clause: &'static str) -> Judged {
    refuse(part, Refuses::Windows, clause)
}

/// Whether parts of a query call a function that returns a set; what queries within call is these queries' own.
pub fn calls_sets(parts: &impl Visit) -> bool {
    refuse(parts, Refuses::Sets, "").is_break()
}

/// Refuses all that is no value of one row.
fn of_one_row(part: &impl Visit, clause: &'static str) -> Judged {
    no_windows(part, clause)?;
    refuse(part, Refuses::Aggregates, clause)?;
    refuse(part, Refuses::Sets, clause)
}

/// Refuses window functions of window functions, and aggregates of them.
fn once_only(part: &impl Visit) -> Judged {
    refuse(part, Refuses::Nested, "")
}

/// What is refused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Refuses {
    Windows,
    Aggregates,
    Sets,
    Nested,
}

/// Looks at the calls of one query.
struct Calls {
    clause: &'static str,
    refuses: Refuses,
    /// How many queries are around what is visited.
    depth: usize,
}

impl Visitor for Calls {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &ast::Query) -> Judged {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &ast::Query) -> Judged {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Judged {
        let Expr::Function(call) = expr else { return ControlFlow::Continue(()) };
        let (is_window, clause) = (call.over.is_some(), self.clause);
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let wrong =
            |state: &[u8; 5], message: String| ControlFlow::Break(Error::new(SqlState(*state), message));
        let not_in = |what: &str| format!("{what} functions are not allowed in {clause}");
        match self.refuses {
            Refuses::Windows if is_window => wrong(b"42P20", not_in("window")),
            Refuses::Aggregates if !is_window && is(call, Called::Aggregate) => {
                wrong(b"42803", not_in("aggregate"))
            }
            Refuses::Sets if is(call, Called::Set) => wrong(b"0A000", not_in("set-returning")),
            Refuses::Nested if is_window && has_windows(call) => {
                wrong(b"42P20", "window function calls cannot be nested".into())
            }
            Refuses::Nested if is(call, Called::Aggregate) => {
                no_windows(&call.filter, "FILTER")?;
                match has_windows(call) {
                    true => wrong(
                        b"42803",
                        "aggregate function calls cannot contain window function calls".into(),
                    ),
                    false => ControlFlow::Continue(()),
                }
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn is(call: &ast::Function, called: Called) -> bool {
    let path: Option<Vec<String>> = call.name.0.iter().map(|part| part.as_ident().map(folded)).collect();
    match path.unwrap_or_default().as_slice() {
        [name] => Called::of(name) == called,
        [schema, name] => schema == "pg_catalog" && Called::of(name) == called,
        _ => false,
    }
}

/// Whether parts of a call are window functions of the query that it stands in.
fn has_windows(call: &ast::Function) -> bool {
    let window = call.over.as_ref().and_then(|over| match over {
        ast::WindowType::WindowSpec(window) => Some(window),
        ast::WindowType::NamedWindow(_) => None,
    });
    no_windows(&call.args, "").is_break()
        || no_windows(&call.filter, "").is_break()
        || no_windows(&call.within_group, "").is_break()
        || window.is_some_and(|window| no_windows(window, "").is_break())
}
