//! SQL and PL/pgSQL to programs.
//!
//! ```text
//! statement --bind--> program --polish--> program, with where its arguments come from
//!               |
//!               +-- PL/pgSQL functions that it calls are compiled into it
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`bind`] | statements to programs |
//! | [`plpgsql`] | functions and procedures, in PL/pgSQL and SQL |
//! | [`lowered`] | a statement as a program, with where its arguments come from |
//! | [`bulk_write`] | a program that writes many rows at a time |
//!
//! Nothing here runs a program, and nothing here knows queries that are not programs.

pub mod bind;
pub mod bulk_write;
pub mod lowered;
pub mod plpgsql;
mod python;
