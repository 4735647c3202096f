//! What expressions of SQL mean, whichever way they run.
//!
//! Analysis takes an expression apart and finds what is wrong with it. What it is made of it hands to a [`BackEnd`],
//! leaves first, each with the types of its parts known: programs (`bind`) and queries (`query::bind`) are two. A back
//! end declines what it has no way to compute.
//!
//! | module | concept |
//! |---|---|
//! | [`back_end`] | what analysis asks of those who compute expressions |
//! | [`expression`] | expressions |
//! | [`call_of_rows`] | which aggregate or function over a window is meant |
//! | [`cast`] | what `CAST` leads to |
//! | [`chain`] | long chains of operators, of `AND` and of `OR` |
//! | [`operator`], [`function`] | which operator or function of the table is meant |
//! | [`function_form`] | functions in words of their own: `EXTRACT (year FROM ...)` |
//! | [`list_item`] | what items of `ORDER BY`, `GROUP BY`, `DISTINCT ON` stand for |
//! | [`named`] | object identifiers that show as names |
//! | [`placement`] | where aggregates and window functions may not stand |
//! | [`row_window`] | `LIMIT`, `OFFSET` and `FETCH` |
//! | [`select_list`] | what entries of a list are, and what `*` stands for |
//! | [`row_value`] | row values: `(a, b) < (c, d)` |
//! | [`scope`] | names of columns: relations, joins, `USING` |
//! | [`written_call`] | calls with their clauses, and which functions are of many rows |
//! | [`subquery`] | how many columns a subquery may have where it stands |
//! | [`written_table`] | the table that a statement writes: columns that get values, what has to be granted |

mod back_end;
mod call_of_rows;
mod cast;
mod chain;
mod expression;
mod function;
mod function_form;
mod list_item;
mod named;
mod operator;
mod placement;
mod row_value;
mod row_window;
mod scope;
mod select_list;
mod subquery;
mod written_call;
mod written_table;

pub use back_end::{BackEnd, Choice, Comparison, Like, Many, Sense};
pub use call_of_rows::call_of_rows;
pub use expression::{expression, no_column};
pub use function::function;
pub use list_item::{ListItem, list_item, place_of_name};
pub use named::Named;
pub use operator::{condition, infix, prefix, resolved, truth};
pub use placement::{calls_sets, misplaced};
pub use row_value::row_of;
pub use row_window::{RowCount, RowWindow, row_count};
pub use scope::{Column, Merged, Scope, ScopeColumn, Side, Sight};
pub use select_list::{Entry, all_columns, no_relation};
pub use subquery::{only_one_column, operands, refuse_other_width};
pub use written_call::{Called, WrittenCall};
pub use written_table::{InsertTargets, needs_of_delete, needs_of_insert, needs_of_update};
