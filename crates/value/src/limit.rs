//! Every bound that a user can meet, in one place.

/// Columns of one table: a column mask is one 64-bit word.
pub const COLUMNS: usize = 64;
/// Digits of a numeric.
pub const NUMERIC_PRECISION: u8 = 38;
/// Bytes of one text or bytea value.
pub const BLOB_BYTES: usize = 16 << 20;
/// Bytes of an encoded key.
pub const KEY_BYTES: usize = 2048;
/// Bytes of a table or procedure name, a column or variable name (PostgreSQL's bound).
pub const NAME_BYTES: usize = 63;
/// Bytes of one call's arguments.
pub const ARGUMENT_BYTES: usize = 64 << 20;
/// Bytes of a program's text.
pub const PROGRAM_BYTES: usize = 1 << 20;
/// Nested blocks or parentheses in a program.
pub const NESTING: usize = 64;
/// Operators on the longest path from an expression's root to one of its operands.
pub const EXPRESSION_HEIGHT: usize = 256;
/// Variables, rows or steps of one program.
pub const PROGRAM_PARTS: usize = 60_000;
/// Turns that the loops over integers and lists of one call take together.
pub const LOOP_TURNS: u64 = 10_000_000;
/// Bytes of an idempotency key.
pub const IDEMPOTENCY_KEY_BYTES: usize = 256;
