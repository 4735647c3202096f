//! Lists that are longer than PostgreSQL takes them are refused, with its words.
//!
//! Most are its own limits, which object-relational mappers and the like know and keep to.

use fabius_value::{Error, SqlState};
use sqlparser::ast::{self, Expr, Visit, Visitor};
use std::ops::ControlFlow;

/// Entries of a list of what is selected, with what is sorted or grouped by besides.
pub const TARGETS: usize = 1664;
/// Arguments of a function.
pub const ARGUMENTS: usize = 100;
/// What is written like a function, and takes any number of arguments.
const WORDS: [&str; 3] = ["coalesce", "greatest", "least"];
/// Columns of a table.
const COLUMNS: usize = 1600;
/// Constraints that one statement adds, or parts of a table that it changes: our own bound.
const CONSTRAINTS: usize = 1000;
/// `WHEN` clauses of a `MERGE`, each of which may be a program: our own bound.
const CLAUSES: usize = 100;
/// Expressions that a window is divided and sorted by: our own bound, as planning them takes the third power of it.
const WINDOW_KEYS: usize = 100;
/// Columns of an index or a key.
const KEYS: usize = 32;

/// `54011`: the list has more entries than [`TARGETS`].
pub fn too_many_targets() -> Error {
    too_many(b"54011", format!("target lists can have at most {TARGETS} entries"))
}

/// `54023`: a call has more arguments than [`ARGUMENTS`].
pub fn too_many_arguments() -> Error {
    too_many(b"54023", format!("cannot pass more than {ARGUMENTS} arguments to a function"))
}

fn too_many(state: &[u8; 5], message: String) -> Error {
    Error::new(SqlState(*state), message)
}

/// The error of the first list that is too long.
pub fn exceeded(tree: &impl Visit) -> Option<Error> {
    tree.visit(&mut Lists).break_value()
}

struct Lists;

type Judged = ControlFlow<Error>;

fn within(count: usize, most: usize, error: impl FnOnce() -> Error) -> Judged {
    if count > most { ControlFlow::Break(error()) } else { ControlFlow::Continue(()) }
}

fn targets(count: usize) -> Judged {
    within(count, TARGETS, too_many_targets)
}

/// Keys of a window, or of `DISTINCT ON`, which is one.
fn keys(count: usize) -> Judged {
    within(count, WINDOW_KEYS, || {
        too_many(b"54000", format!("windows and DISTINCT ON can have at most {WINDOW_KEYS} keys"))
    })
}

/// Whether something that is sorted or grouped by is an entry of its own: a column or a place is not.
fn is_entry(expr: &Expr) -> bool {
    !matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_) | Expr::Value(_))
}

fn entries<'e>(expressions: impl IntoIterator<Item = &'e Expr>) -> usize {
    expressions.into_iter().filter(|expr| is_entry(expr)).count()
}

fn ordered(items: &[ast::OrderByExpr]) -> usize {
    entries(items.iter().map(|item| &item.expr))
}

impl Visitor for Lists {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &ast::Query) -> Judged {
        let sorted = match &query.order_by {
            Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(items), .. }) => ordered(items),
            _ => 0,
        };
        match query.body.as_ref() {
            ast::SetExpr::Select(select) => targets(sorted + select.projection.len()),
            ast::SetExpr::Values(values) => targets(values.rows.first().map_or(0, |row| row.len())),
            _ => targets(sorted),
        }
    }

    fn pre_visit_select(&mut self, select: &ast::Select) -> Judged {
        let grouped = match &select.group_by {
            ast::GroupByExpr::Expressions(items, _) => entries(items),
            ast::GroupByExpr::All(_) => 0,
        };
        let distinct = match &select.distinct {
            Some(ast::Distinct::On(items)) => {
                keys(items.len())?;
                entries(items)
            }
            _ => 0,
        };
        targets(select.projection.len() + grouped + distinct)?;
        targets(select.named_window.len())?;
        select.named_window.iter().try_for_each(|ast::NamedWindowDefinition(_, window)| match window {
            ast::NamedWindowExpr::WindowSpec(window) => {
                keys(window.partition_by.len() + window.order_by.len())
            }
            ast::NamedWindowExpr::NamedWindow(_) => ControlFlow::Continue(()),
        })
    }

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> Judged {
        let returned = |items: &Option<Vec<ast::SelectItem>>| targets(items.as_ref().map_or(0, Vec::len));
        match statement {
            ast::Statement::Insert(insert) => returned(&insert.returning),
            ast::Statement::Update(update) => {
                targets(update.assignments.len())?;
                returned(&update.returning)
            }
            ast::Statement::Delete(delete) => returned(&delete.returning),
            ast::Statement::Merge(merge) => {
                within(merge.clauses.len(), CLAUSES, || {
                    too_many(b"54001", format!("MERGE can have at most {CLAUSES} WHEN clauses"))
                })?;
                merge.clauses.iter().try_for_each(|clause| match &clause.action {
                    ast::MergeAction::Update(update) => targets(update.assignments.len()),
                    ast::MergeAction::Insert(insert) => targets(insert.columns.len()),
                    ast::MergeAction::Delete { .. } => ControlFlow::Continue(()),
                })
            }
            ast::Statement::CreateTable(create) => {
                within(create.columns.len(), COLUMNS, || {
                    too_many(b"54011", format!("tables can have at most {COLUMNS} columns"))
                })?;
                // A column has a few options that are no constraints.
                let options = create.columns.iter().map(|column| column.options.len().saturating_sub(4));
                within(create.constraints.len() + options.sum::<usize>(), CONSTRAINTS, || {
                    too_many(b"54000", format!("a statement can add at most {CONSTRAINTS} constraints"))
                })
            }
            ast::Statement::AlterTable(alter) => within(alter.operations.len(), CONSTRAINTS, || {
                too_many(b"54000", format!("a statement can change at most {CONSTRAINTS} parts of a table"))
            }),
            ast::Statement::CreateIndex(create) => within(create.columns.len(), KEYS, || {
                too_many(b"54011", format!("cannot use more than {KEYS} columns in an index"))
            }),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> Judged {
        match expr {
            Expr::Function(call) => {
                let (count, ordered_within) = match &call.args {
                    ast::FunctionArguments::List(list) => (list.args.len(), &list.clauses[..]),
                    _ => (0, &[][..]),
                };
                // These are no functions in PostgreSQL.
                let is_word = matches!(call.name.0.as_slice(), [part] if part.as_ident().is_some_and(|word| {
                    WORDS.iter().any(|known| word.value.eq_ignore_ascii_case(known))
                }));
                within(count, if is_word { usize::MAX } else { ARGUMENTS }, too_many_arguments)?;
                for clause in ordered_within {
                    if let ast::FunctionArgumentClause::OrderBy(items) = clause {
                        targets(ordered(items))?;
                    }
                }
                match &call.over {
                    Some(ast::WindowType::WindowSpec(window)) => {
                        keys(window.partition_by.len() + window.order_by.len())
                    }
                    _ => ControlFlow::Continue(()),
                }
            }
            Expr::Tuple(fields) => within(fields.len(), TARGETS, || {
                too_many(b"54011", format!("ROW expressions can have at most {TARGETS} entries"))
            }),
            _ => ControlFlow::Continue(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use fabius_value::SqlState;

    /// Goal: lists of PostgreSQL's length are read, longer ones are refused with its code.
    #[test]
    fn lists_are_as_long_as_they_may_be() {
        let list = |count: usize, part: &str| vec![part; count].join(", ");
        type Text<'t> = &'t dyn Fn(usize) -> String;
        let lists: [(usize, &[u8; 5], Text); 10] = [
            (1664, b"54011", &|n| format!("SELECT {}", list(n, "a"))),
            (1663, b"54011", &|n| format!("SELECT 1 FROM t ORDER BY {}", list(n, "a + 1"))),
            (1663, b"54011", &|n| format!("SELECT 1 FROM t GROUP BY {}", list(n, "a + 1"))),
            (100, b"54000", &|n| format!("SELECT DISTINCT ON ({}) a FROM t", list(n, "a + 1"))),
            (100, b"54000", &|n| format!("SELECT sum(a) OVER (PARTITION BY {}) FROM t", list(n, "a + 1"))),
            (1664, b"54011", &|n| format!("UPDATE t SET a = 1 RETURNING {}", list(n, "a"))),
            (1664, b"54011", &|n| format!("SELECT 1 WHERE ({}) < ({})", list(n, "a"), list(n, "1"))),
            (100, b"54023", &|n| format!("SELECT f({})", list(n, "a"))),
            (1600, b"54011", &|n| format!("CREATE TABLE t ({})", list(n, "a integer"))),
            (32, b"54011", &|n| format!("CREATE INDEX ON t ({})", list(n, "a"))),
        ];
        for (most, code, text) in lists {
            assert!(parse(&text(most)).is_ok(), "{}", &text(3));
            let state = parse(&text(most + 1)).map(|_| ()).map_err(|error| error.state());
            assert_eq!(state, Err(SqlState(*code)), "{}", &text(3));
        }
        assert!(parse(&format!("SELECT 1 FROM t ORDER BY {}", list(10_000, "a"))).is_ok());
    }
}
