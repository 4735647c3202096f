//! Functions and procedures in PL/pgSQL and SQL, as parts of programs.
//!
//! ```text
//! CREATE FUNCTION --parse--> definition, kept as text in the catalog
//!                                |
//! SELECT f(1), CALL p(2) --------+--compile--> one program: ordered, durable, without conflicts
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`creation`] | `CREATE FUNCTION`: what the catalog gets |
//! | [`call`] | which function a call means |
//! | `outermost` | `CALL` and `DO` as programs of their own |
//! | [`inline`] | a call inside a program |
//! | `compile` | bodies as blocks of a program |
//! | [`definition`] | its header: parameters, result, language |
//! | [`type_name`] | types in headers and declarations |
//!
//! A body says what it does without running: every loop is over a range, an array or a query, or has a bound on its
//! turns, and there is no dynamic SQL, no transaction control, no handler that would undo a part of a call. What is
//! not so is refused by name and line when the function is created.

pub mod call;
mod compile;
pub mod creation;
pub mod definition;
pub mod inline;
pub mod outermost;
pub mod type_name;

pub use call::resolve_signature;
pub(crate) use compile::{NOTICES, Returned, declare_notices};
pub use creation::{Creation, create};
pub use definition::is_create;
pub(crate) use inline::{
    gathered, returns_array, returns_row_with_array, returns_values, row_of_list, scalar, table,
};
pub use outermost::{is_do, lower_call, lower_do};
