//! Calls of the log that are looked at again, in a database that is as it was before them.

use fabius::LoggedCall as Call;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A call as the log has it.
#[pyclass(frozen, module = "fabius._fabius")]
pub struct LoggedCall(pub Call);

#[pymethods]
impl LoggedCall {
    /// When it got its place in the order, in microseconds since 1970.
    #[getter]
    fn time_us(&self) -> i64 {
        self.0.time_us
    }

    /// The key under which it happens once.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.0.key.as_ref().map(|key| PyBytes::new(py, key))
    }

    /// The text of the program that was called.
    #[getter]
    fn program(&self) -> &str {
        &self.0.procedure.program.text
    }
}
