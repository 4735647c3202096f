//! Functions and procedures in PL/pgSQL and SQL, as parts of programs.
//!
//! ```text
//! CREATE FUNCTION --parse--> definition, kept as text
//!                                |
//! SELECT f(1), CALL p(2) --------+--compile--> one program
//! ```

pub mod condition;
pub mod cursor;
pub mod definition;
pub mod parser;
pub mod piece;
pub mod raise;
pub mod statement;
pub mod token;
pub mod tree;
pub mod type_name;
