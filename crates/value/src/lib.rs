//! What a value, row, key, error and limit is: the vocabulary that every other crate speaks.
//!
//! | module | concept |
//! |---|---|
//! | [`data_type`] | the SQL types a column, parameter or expression can have |
//! | [`value`] | an owned SQL value, as callers pass and receive it |
//! | [`datum`] | a borrowed SQL value, as programs compute with it |
//! | [`value_text`] | values from text |
//! | [`float_text`] | floating-point numbers as text |
//! | [`decimal`] | exact numerics: a 128-bit integer and a scale |
//! | [`letter_case`] | upper and lower case, letter by letter |
//! | [`delta`] | commutative operations that a version can hold instead of a value |
//! | [`calendar`] | days and moments by calendar field |
//! | [`date_field`] | the fields that `extract` and `date_trunc` name |
//! | [`interval`] | intervals, their text and arithmetic |
//! | [`moment_text`] | days and moments as text |
//! | [`network`] | addresses of hosts and networks |
//! | [`schema`] | tables, columns, indexes, and the numbers that name them |
//! | [`key`] | the order-preserving byte form of a key |
//! | [`short_key`] | the same of a few whole numbers, in two words |
//! | [`error`] | the one error type, with SQLSTATE, detail and hint |
//! | [`limit`] | every bound that a user can meet |
//!
//! This crate knows nothing of where values live, of programs, or of I/O.

pub mod calendar;
pub mod data_type;
pub mod date_field;
pub mod datum;
pub mod decimal;
pub mod delta;
pub mod error;
pub mod float_text;
pub mod interval;
pub mod key;
pub mod letter_case;
pub mod limit;
pub mod moment_text;
pub mod network;
pub mod schema;
pub mod short_key;
pub mod value;
pub mod value_text;

pub use data_type::DataType;
pub use date_field::DateField;
pub use datum::Datum;
pub use decimal::Decimal;
pub use delta::{DeltaOperator, Deltas};
pub use error::{Error, Place, Result, SqlState};
pub use key::Key;
pub use schema::{Column, ColumnId, ColumnMask, IndexId, IndexSchema, Seq, TableId, TableSchema};
pub use short_key::ShortKey;
pub use value::Value;
