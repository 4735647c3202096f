//! A client's way in: SQL prepared, run and answered, definitions, transactions.
//!
//! ```text
//! text --syntax--> statement --program--> a call     --run--> rows, or a count of rows
//!                      |
//!                      +------query-----> DataFusion over scans at one seq
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`connection`] | one client's way in: prepare, execute, transactions |
//! | `ddl`, `copy`, `sequence` | definitions; `COPY`; numbers in order |
//! | [`settings`] | `SET`, `SHOW`, `RESET` |
//! | [`lock`] | locks on tables and names, between connections |
//! | `closed_tables` | which tables the leader keeps other nodes from writing |
//!
//! This crate knows nothing of sockets or wire formats.

mod closed_tables;
pub mod connection;
mod copy;
mod ddl;
pub mod lock;
pub mod notification;
mod sequence;
pub mod settings;
