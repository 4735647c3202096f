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
//! | [`arguments`] | the encoded form of a call's arguments |
//! | [`catalog`] | the tables and procedures that a program can name |
//! | [`syntax`] | the text form: tree, lexer, parser, printer, diagnostics |
//! | [`verify`] | names and types looked up: syntax to [`ir`] |
//! | [`ir`] | the typed intermediate representation |
//! | [`slice`] | which phase each part of a program runs in, and why |
//! | [`compile`] | programs to flat register code |
//! | [`operation`] | what every operator, function, cast and aggregate computes |
//! | [`execute`] | runs compiled code over a context |
//! | [`interpret`] | the reference interpreter |
//! | [`context`] | what a running program asks of its engine |
//!
//! This crate knows nothing of storage, threads, logs or time: all come in through [`context`].

pub(crate) mod abort;
pub mod arguments;
pub mod catalog;
pub mod compile;
pub mod context;
pub mod execute;
pub mod interpret;
pub mod ir;
pub mod operation;
pub mod slice;
pub mod syntax;
pub mod verify;
