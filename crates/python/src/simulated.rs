//! A simulated disk, and databases on it: what users test their transactions on (`python/fabius/testing.py`).
//!
//! Nothing happens there by itself. The database has no threads, and its log is written by the session that waits for
//! it, so that the same statements change the disk in the same order each time:
//!
//! ```text
//! session    statement ...... waits |                    | goes on ... done |      |
//! log                               | a group and a sync |                  | mark |
//! ```

use fabius::{Database, Options};
use fabius_env::{Fault, RealClock, SimulatedDisk as Disk};
use fabius_log::Flusher;
use fabius_value::Result;
use futures::poll;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

/// How soon is looked again whether the log has to be written.
const NAP: Duration = Duration::from_millis(1);

/// A disk in memory that loses what was not synced, and fails on request.
#[pyclass(frozen, module = "fabius._fabius")]
pub struct SimulatedDisk(Disk);

#[pymethods]
impl SimulatedDisk {
    /// An empty disk whose accidents a seed decides.
    #[new]
    fn new(seed: u64) -> SimulatedDisk {
        SimulatedDisk(Disk::new(seed))
    }

    /// Makes the disk fail from now on, or after so many bytes, syncs or changes that still work.
    fn fault(&self, name: &str, count: u64) -> PyResult<()> {
        self.0.fault(match name {
            "short writes" => Fault::ShortWrites,
            "failing sync" => Fault::FailSync { syncs_before: count },
            "full" => Fault::Full { bytes: count },
            "read only" => Fault::ReadOnly,
            "power loss" => Fault::PowerLoss { operations: count },
            _ => return Err(PyValueError::new_err(format!("a disk has no fault {name:?}"))),
        });
        Ok(())
    }

    /// The disk as it is found after a power loss at this moment, without faults; this one goes on untouched.
    fn crash(&self, seed: u64) -> SimulatedDisk {
        SimulatedDisk(self.0.crash(seed))
    }

    /// How many changes and syncs there were.
    #[getter]
    fn operation_count(&self) -> u64 {
        self.0.operation_count()
    }
}

impl SimulatedDisk {
    /// Opens the database on the disk, or begins one there.
    pub fn open(&self) -> Result<Arc<Database>> {
        let options = Options { workers: 0, ..Options::default() };
        let disk = Arc::new(self.0.clone());
        Database::open_on(disk, Arc::new(RealClock::new()), Flusher::Manual, options).map(Arc::new)
    }
}

/// Work in such a database, which writes the log when it waits for that, and at its end.
pub async fn writing_the_log<T>(database: Weak<Database>, work: impl Future<Output = T>) -> T {
    let write = || {
        if let Some(database) = database.upgrade() {
            // If it fails, whoever waits for the log is told.
            drop(database.flush());
        }
    };
    let mut work = pin!(work);
    let done = loop {
        if let Poll::Ready(done) = poll!(work.as_mut()) {
            break done;
        }
        write();
        if let Ok(done) = tokio::time::timeout(NAP, work.as_mut()).await {
            break done;
        }
    };
    // A mark that a sync has happened is due now, and would otherwise be written whenever somebody waits next.
    write();
    done
}
