//! SQL and PL/pgSQL to programs; queries.
//!
//! ```text
//! text --parse--> statement --bind--> program --run--> rows, or a count of rows
//!                     |
//!                     +-- query --> DataFusion over scans at one seq
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`parse`] | text to statements |
//! | [`parameter_types`] | the types of `$1`, `$2`, ... |
//! | [`sql_type`] | the types that SQL has, and how each is stored |
//! | [`catalog`] | tables, views, sequences, functions: what SQL names mean |
//! | [`lowered`] | a statement as a program, with where its arguments come from |
//! | [`pg_catalog`] | the catalog as relations that clients ask: `pg_catalog`, `information_schema` |
//! | [`query`] | queries that are not programs, by DataFusion |
//! | [`connection`] | one client's way in: prepare, execute, transactions |
//!
//! This crate knows nothing of sockets or wire formats.

pub mod catalog;
pub mod connection;
pub mod lowered;
pub mod parameter_types;
pub mod parse;
pub mod pg_catalog;
pub mod query;
pub mod sql_type;
