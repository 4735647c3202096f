//! The program `fabius`, run by an interpreter of Python.

use pyo3::prelude::*;
use std::ffi::OsString;

/// Runs the program `fabius` with these words behind its name, and returns its exit code. `interpreter` is what an
/// interpreter is given so that it is the program: programs that start others start it so.
#[pyfunction]
pub fn main(py: Python<'_>, arguments: Vec<OsString>, interpreter: Vec<OsString>) -> u8 {
    fabius_bench::server_process::is_interpreted(interpreter);
    let words = std::iter::once(OsString::from("fabius")).chain(arguments);
    py.detach(|| fabius_cli::run(words))
}
