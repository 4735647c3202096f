//! Work that Python waits for: without the interpreter's lock, and no longer than until Ctrl-C.

use pyo3::prelude::*;
use std::future::Future;
use std::pin::pin;
use std::sync::LazyLock;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How often is looked whether a signal has come.
const LOOKS: Duration = Duration::from_millis(50);

/// Threads on which queries of all databases of the process run.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder.enable_time().thread_name("fabius-query").build().expect("threads can be started")
});

/// Does work, until it is done or a signal has raised something: then the work is dropped. The interpreter's lock must
/// not be held: others may need it before they give up what the work waits for.
pub fn wait<T>(work: impl Future<Output = T>) -> PyResult<T> {
    RUNTIME.block_on(async {
        let mut work = pin!(work);
        loop {
            if let Ok(done) = tokio::time::timeout(LOOKS, work.as_mut()).await {
                return Ok(done);
            }
            Python::attach(|py| py.check_signals())?;
        }
    })
}
