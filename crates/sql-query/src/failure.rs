//! Errors of DataFusion as PostgreSQL's.
//!
//! What DataFusion cannot plan or run is a form of query that is not supported: it was bound, so nothing is wrong
//! with it. `XX000` is for what breaks a promise of our own code.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use fabius_value::{Error, SqlState};
use std::io::ErrorKind;

/// `0A000`
pub fn unsupported(what: impl Into<String>) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, what)
}

/// `XX000`: what should not happen.
pub fn internal(what: &str) -> Error {
    Error::new(SqlState(*b"XX000"), what.lines().next().unwrap_or_default().to_string())
}

/// An error on its way through DataFusion.
pub fn outbound(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// An error that came out of DataFusion. Ours come out as they went in.
pub fn inbound(error: DataFusionError) -> Error {
    let root = error.find_root();
    let text = root.strip_backtrace();
    let message = text.lines().next().unwrap_or_default().to_string();
    match root {
        DataFusionError::External(inner) => match inner.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => of_words(message),
        },
        DataFusionError::ArrowError(error, _) => of_arrow(error, message),
        DataFusionError::ResourcesExhausted(_) => {
            let detail = message.strip_prefix("Resources exhausted: ").unwrap_or(&message);
            Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                .with_detail(detail)
                .with_hint("sort, join or group less at a time, or raise session_memory")
        }
        DataFusionError::IoError(error) => of_disk(error, message),
        DataFusionError::ExecutionJoin(_) => {
            internal("a part of the query ended by a fault").with_detail(message)
        }
        _ => of_words(message),
    }
}

fn of_arrow(error: &ArrowError, message: String) -> Error {
    match error {
        ArrowError::DivideByZero => Error::new(SqlState::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(_) | ArrowError::OffsetOverflowError(_) => beyond(message),
        ArrowError::IoError(_, error) => of_disk(error, message),
        ArrowError::ExternalError(inner) => match inner.downcast_ref::<Error>() {
            Some(ours) => ours.clone(),
            None => of_words(message),
        },
        _ => of_words(message),
    }
}

/// What sorts and joins keep in temporary files.
fn of_disk(error: &std::io::Error, message: String) -> Error {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Error::new(SqlState(*b"53100"), "no room on the disk for a temporary file").with_detail(message)
        }
        _ => Error::new(SqlState(*b"58030"), "could not use a temporary file").with_detail(message),
    }
}

fn beyond(message: String) -> Error {
    Error::new(SqlState::OUT_OF_RANGE, "value out of range").with_detail(message)
}

/// Errors that have no type of their own, by their words; any other is about the form of the query.
fn of_words(message: String) -> Error {
    let has = |words: &str| message.contains(words);
    if has("Divide by zero") {
        return Error::new(SqlState::DIVISION_BY_ZERO, "division by zero");
    }
    if has("verflow") || has("out of range") || has("too large to store") {
        return beyond(message);
    }
    if has("more than one row") {
        return Error::new(
            SqlState(*b"21000"),
            "more than one row returned by a subquery used as an expression",
        );
    }
    if has("Regular expression") || has("regex parse error") || has("Regex") {
        return Error::new(SqlState(*b"2201B"), "invalid regular expression").with_detail(message);
    }
    let what = message.strip_prefix("This feature is not implemented: ").unwrap_or(&message);
    unsupported("a query of this form is not supported").with_detail(what)
}

/// `42803` for an aggregate over rows that are not grouped yet.
pub fn no_aggregates_in(clause: &str) -> Error {
    Error::new(SqlState(*b"42803"), format!("aggregate functions are not allowed in {clause}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: whatever DataFusion says, a user sees an error with a SQLSTATE of its own.
    #[test]
    fn no_error_of_the_library_is_internal() {
        let plan = |text: &str| DataFusionError::Plan(text.into());
        let cases = [
            (plan("no such thing"), *b"0A000"),
            (DataFusionError::Internal("this cannot be".into()), *b"0A000"),
            (DataFusionError::NotImplemented("later".into()), *b"0A000"),
            (DataFusionError::Execution("Divide by zero".into()), *b"22012"),
            (ArrowError::DivideByZero.into(), *b"22012"),
            (ArrowError::ArithmeticOverflow("1 + 1".into()).into(), *b"22003"),
            (DataFusionError::ResourcesExhausted("all".into()), *b"53200"),
            (std::io::Error::from(ErrorKind::StorageFull).into(), *b"53100"),
            (plan("inner").context("outer"), *b"0A000"),
            (outbound(unsupported("x")).context("outer"), *b"0A000"),
        ];
        for (error, state) in cases {
            let shown = error.to_string();
            assert_eq!(inbound(error).state(), SqlState(state), "{shown}");
        }
    }
}
