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
//! | [`binary_format`] | values as bytes, as clients send and receive them |
//! | [`parse`] | text to statements |
//! | `column_name` | what the columns of a result are called |
//! | [`parameter_types`] | the types of `$1`, `$2`, ... |
//! | `type_rules`, `conversion` | which types fit together; a value as one of another type |
//! | [`sql_type`] | the types that SQL has, and how each is stored |
//! | [`catalog`] | tables, views, sequences, functions: what SQL names mean |
//! | `analysis` | what expressions mean, whichever way they run |
//! | [`bind`] | statements to programs |
//! | [`lowered`] | a statement as a program, with where its arguments come from |
//! | `bulk_write` | a program that writes many rows at a time |
//! | [`plpgsql`] | functions and procedures |
//! | `planning` | where statements are read, bound and optimised, and what that may take |
//! | [`pg_catalog`] | the catalog as relations that clients ask: `pg_catalog`, `information_schema` |
//! | `number_literal`, `identifier` | numbers and names as SQL writes them |
//! | [`functions`], [`session_facts`] | the table of functions; what they ask about the session |
//! | [`query`] | queries that are not programs, by DataFusion |
//! | `interval` | intervals, their text and arithmetic |
//! | [`text_format`] | values as PostgreSQL writes and reads them |
//! | [`settings`] | `SET`, `SHOW`, `RESET` |
//! | `closed_tables` | which tables the leader keeps other nodes from writing |
//! | [`lock`] | locks on tables and names, between connections |
//! | `copy`, `ddl`, `sequence` | `COPY`; definitions; numbers in order |
//! | [`connection`] | one client's way in: prepare, execute, transactions |
//!
//! This crate knows nothing of sockets or wire formats.

mod analysis;
pub mod binary_format;
pub mod bind;
mod bulk_write;
pub mod catalog;
mod closed_tables;
mod column_name;
pub mod connection;
mod conversion;
mod copy;
mod ddl;
pub mod functions;
mod interval;
pub mod lock;
pub mod lowered;
mod number_literal;
pub mod parameter_types;
pub mod pg_catalog;
pub mod plpgsql;
pub mod query;
mod sequence;
pub mod session_facts;
pub mod settings;
pub mod sql_type;
pub mod text_format;
mod type_rules;
