//! What SQL means: names, types, conversions, functions, and values as text and bytes.
//!
//! ```text
//! syntax --analysis: names, types, functions--> a back end, leaves first: a program, or a query
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`catalog`] | tables, views, sequences, functions, types: what names mean |
//! | [`sql_type`] | the types that SQL has, and how each is stored |
//! | [`type_rules`], [`conversion`] | which types fit together; a value as one of another type |
//! | [`parameter_types`] | the types of `$1`, `$2`, ... |
//! | [`analysis`] | what expressions mean, whichever way they run |
//! | [`functions`], [`session_facts`] | the table of functions and operators; what they ask about the session |
//! | [`pg_catalog`] | the catalog as relations that clients ask: `pg_catalog`, `information_schema` |
//! | [`text_format`], [`binary_format`] | values as clients write and read them |
//! | [`number_literal`] | numbers as SQL writes them |
//! | [`output`], [`column_name`] | what a query shows, and what its columns are called |
//!
//! Nothing here knows how a statement is run: neither programs' syntax trees nor the query library.

pub mod analysis;
pub mod binary_format;
pub mod catalog;
pub mod column_name;
pub mod conversion;
pub mod functions;
pub mod number_literal;
pub mod output;
pub mod parameter_types;
pub mod pg_catalog;
pub mod session_facts;
pub mod sql_type;
pub mod text_format;
pub mod type_rules;
