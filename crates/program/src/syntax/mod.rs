//! The text form of tables and procedures.
//!
//! ```text
//! text --lexer--> tokens --parser--> tree --printer--> canonical text
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`tree`] | what a text says |
//! | [`lexer`] | text to tokens |
//! | [`parser`] | tokens to definitions; the grammar stands there |
//! | [`statement`] | tokens to statements |
//! | [`expression`] | tokens to expressions; the operators' precedence stands there |
//! | [`printer`] | the canonical text, which is also the form stored in the log |
//! | [`diagnostic`] | what is wrong with a text, and where |
//!
//! Nothing here knows which tables exist or what has which type: that is [`crate::verify`].

pub mod diagnostic;
pub mod expression;
pub mod lexer;
pub mod parser;
pub mod printer;
pub mod statement;
pub mod tree;

pub use diagnostic::{Diagnostic, Diagnostics, Source, Span};
pub use parser::parse;
pub use tree::{Definition, ProcedureDefinition, TableDefinition};
