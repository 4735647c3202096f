//! Errors as exceptions: Python's side of the package finds the class by the SQLSTATE.

use fabius_value::{Error, SqlState};
use pyo3::prelude::*;

/// The module of Python that has the classes.
const ERRORS: &str = "fabius.errors";

/// An error as the exception of its SQLSTATE, with all that it says.
pub fn raised(py: Python<'_>, error: &Error) -> PyErr {
    let made = py.import(ERRORS).and_then(|errors| {
        let said = (
            error.state().as_str().to_string(),
            error.message(),
            error.detail(),
            error.hint(),
            error.position(),
            error.place().and_then(|place| place.constraint.as_deref()),
            error.place().and_then(|place| place.context.as_deref()),
        );
        errors.getattr("of_sqlstate")?.call1(said)
    });
    made.map_or_else(|failure| failure, PyErr::from_value)
}

/// An error that only the package itself finds.
pub fn interface_error(py: Python<'_>, message: &str) -> PyErr {
    let made = py.import(ERRORS).and_then(|errors| errors.getattr("InterfaceError")?.call1((message,)));
    made.map_or_else(|failure| failure, PyErr::from_value)
}

/// That a value of Python cannot be a parameter.
pub fn no_parameter(value: &Bound<'_, PyAny>) -> Error {
    let class = value.get_type().name().map_or_else(|_| "object".into(), |name| name.to_string());
    Error::new(SqlState::DATATYPE_MISMATCH, format!("a value of class {class} cannot be a parameter"))
        .with_hint(
            "pass a number, text, bytes, a date, time, timedelta, UUID, list of these, fabius.Json or None",
        )
}
