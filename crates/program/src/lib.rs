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
//! | [`slice`](mod@slice) | which phase each part of a program runs in, and why |
//! | [`access`] | read and write sets as functions of arguments |
//! | [`argument_tuple`] | keys and other tuples, computed from a call's arguments before it runs |
//! | [`known_key`] | how much of each key is known before a call runs |
//! | [`key_plan`] | the lookups whose keys are such tuples |
//! | [`read_write_set`] | what is known of a call's accesses before it runs, and what decides the rest |
//! | [`record_action`] | a program as record actions with their dependencies |
//! | [`explain`] | a program's phases and record actions for a reader |
//! | [`explain_svg`] | the record actions as a picture |
//! | [`compose`] | the statements of a transaction as one program |
//! | [`compile`] | programs to flat register code |
//! | [`operation`] | what every operator, function, cast and aggregate computes |
//! | [`execute`] | runs compiled code over a context |
//! | [`interpret`] | the reference interpreter |
//! | [`shelf`] | a list whose versions share what they have in common |
//! | `turns` | the bound on the turns that a call's loops take |
//! | [`context`] | what a running program asks of its engine |
//!
//! This crate knows nothing of storage, threads, logs or time: all come in through [`context`].

/// Another number whenever the same call on the same rows could give something else than before, be it by an
/// operator, a cast or the text form.
const RULES: u32 = 1;

/// What calls compute, as a number. Letters are mapped and classified by the standard library's tables, so their
/// version is part of it. Nodes of a cluster that have other numbers refuse each other.
pub const SEMANTICS: u32 = {
    let (major, minor, _) = char::UNICODE_VERSION;
    RULES << 16 | (major as u32) << 8 | minor as u32
};

pub(crate) mod abort;
pub mod access;
pub mod argument_range;
pub mod argument_tuple;
pub mod arguments;
pub mod catalog;
pub mod compile;
pub mod compose;
pub mod context;
pub mod execute;
pub mod explain;
pub mod explain_svg;
pub mod interpret;
pub mod ir;
pub mod key_plan;
pub mod known_key;
pub mod operation;
pub mod read_write_set;
pub mod record_action;
pub mod shelf;
pub mod slice;
pub mod syntax;
pub(crate) mod turns;
pub mod verify;
