//! What a transaction means.
//!
//! A program goes through these rooms, left to right:
//!
//! ```text
//! text --parse--> syntax --verify--> ir --slice--> phases --compile--> code --execute--> effects
//!                   |                 |
//!                 print            interpret (the reference)
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`catalog`] | the tables and procedures that a program can name |
//! | [`ir`] | the typed intermediate representation |
//! | [`slice`] | which phase each part of a program runs in, and why |
//! | [`context`] | what a running program asks of its engine |
//!
//! This crate knows nothing of storage, threads, logs or time: all come in through [`context`].

pub mod catalog;
pub mod context;
pub mod ir;
pub mod slice;
