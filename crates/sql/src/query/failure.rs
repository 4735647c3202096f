//! Errors of DataFusion as PostgreSQL's.

use datafusion::error::DataFusionError;
use fabius_value::{Error, SqlState};

/// `0A000`
pub fn unsupported(what: impl Into<String>) -> Error {
    Error::new(SqlState::NOT_SUPPORTED, what)
}

/// `XX000`: what should not happen.
pub fn internal(what: &str) -> Error {
    Error::new(SqlState(*b"XX000"), what.lines().next().unwrap_or_default().to_string())
}

/// `22003` for a numeric beyond 38 digits.
pub fn numeric_overflow() -> Error {
    Error::new(SqlState::OUT_OF_RANGE, "value overflows numeric format")
        .with_detail("a numeric has at most 38 digits, those after the point included")
}

/// An error on its way through DataFusion.
pub fn outbound(error: Error) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// An error that came out of DataFusion. Ours come out as they went in.
pub fn inbound(error: DataFusionError) -> Error {
    let root = error.find_root();
    if let DataFusionError::External(inner) = root
        && let Some(ours) = inner.downcast_ref::<Error>()
    {
        return ours.clone();
    }
    let text = root.strip_backtrace();
    let message = text.lines().next().unwrap_or_default().to_string();
    let has = |words: &str| message.contains(words);
    if has("Divide by zero") {
        return Error::new(SqlState::DIVISION_BY_ZERO, "division by zero");
    }
    if has("verflow") || has("out of range") || has("too large to store") {
        return Error::new(SqlState::OUT_OF_RANGE, "value out of range").with_detail(message);
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
    match root {
        DataFusionError::NotImplemented(_) => unsupported("this query is not supported").with_detail(message),
        DataFusionError::ResourcesExhausted(_) => {
            let detail = message.strip_prefix("Resources exhausted: ").unwrap_or(&message);
            Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                .with_detail(detail)
                .with_hint("sort, join or group less at a time, or raise session_memory")
        }
        _ => internal("the query could not be run").with_detail(message),
    }
}
