//! The Python module `fabius._fabius`: databases within the process, and SQL on them.
//!
//! | module | concept |
//! |---|---|
//! | `database` | a database that is open in this process |
//! | `connection` | a session of it: statements in, rows out |
//! | `reading`, `writing` | values of SQL as Python's; Python's as parameters |
//! | `classes` | classes of Python's library that values become |
//! | `failure` | errors as exceptions |
//! | `plain` | arguments that are of just the classes that are annotated |
//! | `program` | the program `fabius` |
//! | `replay` | calls of the log that are looked at again |
//! | `simulated` | a simulated disk, and databases on it |
//! | `waiting` | work that Python waits for: without the interpreter's lock, and until Ctrl-C |
//!
//! What users import is Python (`python/fabius`); it is written on this module alone. Nothing here knows DB-API.

mod classes;
mod connection;
mod database;
mod failure;
mod plain;
mod program;
mod reading;
mod replay;
mod simulated;
mod waiting;
mod writing;

/// Databases within the process.
#[pyo3::pymodule]
mod _fabius {
    #[pymodule_export]
    use super::connection::Connection;
    #[pymodule_export]
    use super::database::Database;
    #[pymodule_export]
    use super::plain::PlainParameters;
    #[pymodule_export]
    use super::program::main;
    #[pymodule_export]
    use super::replay::LoggedCall;
    #[pymodule_export]
    use super::simulated::SimulatedDisk;
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}
