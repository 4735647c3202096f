//! Statements to programs: names looked up, types found as PostgreSQL finds them, rows reached by key or index.
//!
//! ```text
//! UPDATE stock SET qty = qty - 1        var count: bigint = 0
//! WHERE id = $1 AND qty >= 1            if exists stock[p1] {
//!                                           if stock[p1].qty >= p2 {
//!                                               update stock[p1] { qty: stock[p1].qty - p3 }
//!                                               count += 1
//!                                           }
//!                                       }
//!                                       return count
//! ```
//!
//! | module | concept |
//! |---|---|
//! | `binder` | the state of binding: the program so far, its parameters |
//! | `scope`, `lookup` | relations with their columns, and where their values are; what names mean |
//! | `bound` | an expression of a program with its SQL type |
//! | `constant` | values that are known, and how they come from literals |
//! | `held`, `conversion` | how programs hold values; a value as one of another type |
//! | `inputs`, `drawing` | parameters; numbers of sequences, what looks random |
//! | `expression`, `operator`, `function`, `builtin` | expressions |
//! | `condition`, `access`, `from` | WHERE taken apart; ways to rows; FROM as loops |
//! | `partner` | joins that keep the number of rows |
//! | `derived` | queries in FROM |
//! | `query_keys` | rows that are found by what a query gives |
//! | `select`, `sorted`, `aggregate`, `grouped`, `subquery` | queries |
//! | `row_body`, `query_facts` | what is done for their rows, and what is known of them |
//! | `catch` | exceptions of Python that do not end the call |
//! | `array`, `list`, `virtual_relation` | arrays as lists; rows that are computed |
//! | `table_function` | functions of the catalog |
//! | `write`, `insert`, `conflict`, `update`, `key_change`, `delete` | writes |
//! | `constraint`, `late_reference`, `deferred` | CHECK and REFERENCES; behind all rows, at a transaction's end |
//! | `late_unique` | UNIQUE that can be deferred |
//! | `cascade`, `generated` | what is done to rows that refer to others; generated columns |
//! | `lowering` | a whole statement as a program |
//! | `untyped` | literals and parameters that are given to columns |
//! | `rows` | writes of rows that were computed before |
//! | `stop` | why something is not bound |
//! | [`wording`] | errors of programs in the words of SQL |
//! | `tree` | parts of programs |

mod access;
mod aggregate;
mod array;
mod binder;
mod bound;
mod builtin;
mod cascade;
mod catch;
mod condition;
mod conflict;
mod constant;
mod constraint;
mod conversion;
mod deferred;
mod delete;
mod derived;
mod drawing;
mod expression;
mod from;
mod function;
mod generated;
mod grouped;
mod held;
mod inputs;
mod insert;
mod key_change;
mod late_reference;
mod late_unique;
mod list;
mod lookup;
mod lowering;
mod operator;
mod partner;
mod query_facts;
mod query_keys;
mod row_body;
mod rows;
mod scope;
mod select;
mod sorted;
mod stop;
mod subquery;
mod table_function;
pub(crate) mod tree;
mod untyped;
mod update;
mod virtual_relation;
pub mod wording;
mod write;

pub use binder::{Binder, Variables};
pub use bound::Bound;
pub use catch::{Catches, Catching};
pub use conflict::{arbiter, is_own_key};
pub use constant::{Recipe, arguments};
pub use generated::{refuse_given, refuse_updated};
pub use held::some_value;
pub use inputs::Inputs;
pub(crate) use list::List;
pub use lowering::{explained, lower};
pub use query_facts::QueryFacts;
pub use row_body::RowBody;
pub use rows::{FOUND, RowsOf, counted, lower_delete_rows, lower_insert_rows, lower_update_rows};
pub use select::is_aggregated;
pub use stop::{Bind, Stop};
pub use untyped::{is_default, type_items, typed};

use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;

/// Whether values of two types can be compared.
pub fn compares(left: &SqlType, right: &SqlType) -> bool {
    type_rules::operand(&left.of_values(), &right.of_values()).is_some()
}
