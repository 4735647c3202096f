//! What every operator, function, cast and aggregate computes.
//!
//! The reference interpreter and the executor both compute through this module, so they can differ
//! only in control. An operation is resolved once from static types and applied to any number of
//! [`Datum`]s, which do not carry their types:
//!
//! ```
//! use bumpalo::Bump;
//! use fabius_program::{ir::BinaryOperator, operation::BinaryOperation};
//! use fabius_value::{DataType, Datum};
//!
//! let price = DataType::Numeric { precision: 5, scale: 2 };
//! let total = DataType::Numeric { precision: 7, scale: 2 };
//! let multiply = BinaryOperation::of(BinaryOperator::Multiply, price, price, total)?;
//! // 1.50 * 0.35 = 0.525, rounded to 0.53: half away from zero, as PostgreSQL rounds.
//! let arena = Bump::new();
//! let product = multiply.apply(Datum::Numeric(150), Datum::Numeric(35), &arena)?;
//! assert_eq!(product, Datum::Numeric(53));
//! # Ok::<(), fabius_value::Error>(())
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`mod@compare`] | the one order of the values of a type, and comparisons under three-valued logic |
//! | [`arithmetic`] | exact and floating arithmetic with its errors |
//! | [`binary`] | operators on two operands |
//! | [`unary`] | operators on one operand |
//! | [`cast`] | conversions between types |
//! | [`function`] | built-in functions |
//! | [`mod@sort`] | the order of a list's rows |
//! | [`mod@aggregate`] | aggregates over a field of a list |
//!
//! Null operands give null except where SQL says otherwise (`and`, `or`, `is null`, `coalesce`,
//! `least`, `greatest`, aggregates). Text that an operation makes lives in the arena passed to it.
//!
//! An operand whose representation does not fit its static type is a bug in the verifier; operations
//! panic on it.

pub mod aggregate;
pub mod arithmetic;
pub mod binary;
pub mod cast;
pub mod compare;
pub mod function;
pub mod sort;
pub mod unary;

pub use aggregate::aggregate;
pub use binary::BinaryOperation;
pub use cast::Cast;
pub use compare::{Comparison, compare};
pub use function::FunctionOperation;
pub use sort::sort;
pub use unary::UnaryOperation;

use fabius_value::{Datum, Error, SqlState};

/// Null if an operand is null; anything else is a broken invariant.
#[cold]
#[track_caller]
fn null_of(operation: &dyn std::fmt::Debug, operands: &[Datum<'_>]) -> Datum<'static> {
    assert!(operands.iter().any(|operand| operand.is_null()), "{operation:?} does not apply to {operands:?}");
    Datum::Null
}

/// The error for operands that the verifier should have refused.
fn ill_typed(operation: impl std::fmt::Display) -> Error {
    Error::new(SqlState::DATATYPE_MISMATCH, format!("operation does not exist: {operation}"))
}
