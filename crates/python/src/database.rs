//! A database that is open in this process.

use super::connection::{Connection, Slot};
use super::failure::{interface_error, raised};
use super::replay::LoggedCall;
use super::simulated::{SimulatedDisk, writing_the_log};
use super::waiting::wait;
use fabius::{Database as Beneath, Options};
use fabius_sql::connection::SqlDatabase;
use fabius_value::{Error, Result, Seq, SqlState};
use parking_lot::Mutex;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// A database that is open in this process.
#[pyclass(frozen, module = "fabius._fabius")]
pub struct Database {
    open: Mutex<Option<Open>>,
}

struct Open {
    sql: Arc<SqlDatabase>,
    beneath: Arc<Beneath>,
    sessions: Vec<Weak<Slot>>,
    /// Whether it is on a simulated disk.
    is_simulated: bool,
}

fn options(
    engine: Option<&str>,
    durability: Option<&str>,
    workers: Option<usize>,
    history: Option<f64>,
) -> Result<Options> {
    let mut options = Options::default();
    if let Some(engine) = engine {
        options.engine = engine.parse()?;
    }
    if let Some(durability) = durability {
        options.durability = durability.parse()?;
    }
    if let Some(workers) = workers {
        options.workers = workers;
    }
    if let Some(seconds) = history {
        options.history = Some(Duration::try_from_secs_f64(seconds).map_err(|_| {
            Error::new(SqlState::INVALID_PARAMETER, format!("history {seconds} is no number of seconds"))
        })?);
    }
    Ok(options)
}

impl Database {
    fn of(sql: Arc<SqlDatabase>, beneath: Arc<Beneath>, is_simulated: bool) -> Database {
        Database { open: Mutex::new(Some(Open { sql, beneath, sessions: Vec::new(), is_simulated })) }
    }
}

#[pymethods]
impl Database {
    /// Opens the database of a directory, which is begun there if there is none; without one, a database in memory.
    #[staticmethod]
    #[pyo3(signature = (path=None, *, engine=None, durability=None, workers=None, history=None))]
    fn open(
        py: Python<'_>,
        path: Option<PathBuf>,
        engine: Option<&str>,
        durability: Option<&str>,
        workers: Option<usize>,
        history: Option<f64>,
    ) -> PyResult<Database> {
        let options = options(engine, durability, workers, history).map_err(|error| raised(py, &error))?;
        let beneath = py.detach(|| match path {
            Some(path) => Beneath::open(path, options).map(Arc::new),
            None => Ok(Arc::new(Beneath::in_memory(options))),
        });
        let beneath = beneath.map_err(|error| raised(py, &error))?;
        let sql =
            py.detach(|| wait(SqlDatabase::open(beneath.clone())))?.map_err(|error| raised(py, &error))?;
        Ok(Database::of(sql, beneath, false))
    }

    /// Opens the database of a simulated disk, or begins one there.
    #[staticmethod]
    fn open_simulated(py: Python<'_>, disk: &SimulatedDisk) -> PyResult<Database> {
        let beneath = py.detach(|| disk.open()).map_err(|error| raised(py, &error))?;
        let opening = writing_the_log(Arc::downgrade(&beneath), SqlDatabase::open(beneath.clone()));
        let sql = py.detach(|| wait(opening))?.map_err(|error| raised(py, &error))?;
        Ok(Database::of(sql, beneath, true))
    }

    /// A session of a user; of `fabius` if none is named.
    #[pyo3(signature = (user=None))]
    fn connect(&self, py: Python<'_>, user: Option<&str>) -> PyResult<Connection> {
        let mut open = self.open.lock();
        let open = open.as_mut().ok_or_else(|| closed(py))?;
        let simulated = open.is_simulated.then(|| Arc::downgrade(&open.beneath));
        let connection = Connection::of(open.sql.clone(), user.unwrap_or("fabius"), simulated);
        open.sessions.retain(|session| session.strong_count() > 0);
        open.sessions.push(Arc::downgrade(connection.slot()));
        Ok(connection)
    }

    /// Makes the next opening short.
    fn checkpoint(&self, py: Python<'_>) -> PyResult<()> {
        let beneath = self.open.lock().as_ref().map(|open| open.beneath.clone());
        let beneath = beneath.ok_or_else(|| closed(py))?;
        py.detach(|| beneath.checkpoint()).map(drop).map_err(|error| raised(py, &error))
    }

    /// Ends all sessions, makes everything promised durable, and closes the database; once more, nothing happens.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(Open { sql, beneath, sessions, .. }) = self.open.lock().take() else { return Ok(()) };
        let closed = py.detach(move || {
            for session in sessions.iter().filter_map(Weak::upgrade) {
                session.lock().take();
            }
            drop(sql);
            // Whoever still has it closes it when that is dropped.
            Arc::try_unwrap(beneath).map_or(Ok(()), Beneath::close)
        });
        closed.map_err(|error| raised(py, &error))
    }

    /// A database in memory that is as this one was before a call of its log, and that call.
    fn replay(&self, py: Python<'_>, seq: u64) -> PyResult<(Database, LoggedCall)> {
        let beneath = self.open.lock().as_ref().map(|open| open.beneath.clone());
        let beneath = beneath.ok_or_else(|| closed(py))?;
        let replayed = py.detach(|| beneath.replay(Seq(seq))).map_err(|error| raised(py, &error))?;
        let (before, call) = (Arc::new(replayed.0), replayed.1);
        let sql =
            py.detach(|| wait(SqlDatabase::open(before.clone())))?.map_err(|error| raised(py, &error))?;
        Ok((Database::of(sql, before, false), LoggedCall(call)))
    }

    /// A number that changes with every definition.
    #[getter]
    fn catalog_version(&self, py: Python<'_>) -> PyResult<u64> {
        self.open.lock().as_ref().map(|open| open.sql.version()).ok_or_else(|| closed(py))
    }

    /// Whether it is closed.
    #[getter]
    fn is_closed(&self) -> bool {
        self.open.lock().is_none()
    }
}

fn closed(py: Python<'_>) -> PyErr {
    interface_error(py, "the database is closed")
}
