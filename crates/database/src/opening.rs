//! What a directory holds when it is opened: the newest whole checkpoint, and what to say if there is none.

use crate::identity::io_error;
use fabius_engine::checkpoint::{self, State};
use fabius_engine::foundation::log_error;
use fabius_env::{DirectoryLock, Disk};
use fabius_log::{DatabaseId, LogError, LogErrorKind};
use fabius_storage::checkpoint as files;
use fabius_value::{Error, Result, Seq, SqlState};
use std::io;

/// The newest checkpoint that is whole, and those before it that are not.
#[derive(Default)]
pub(crate) struct Begin {
    /// What to begin with; nothing without a checkpoint.
    pub(crate) state: Option<State>,
    /// The size of its file.
    pub(crate) bytes: u64,
    /// Why newer ones were passed over, newest first.
    pub(crate) passed_over: Vec<Error>,
}

/// Takes a database for this process, by the directory of its checkpoints.
///
/// # Errors
/// `55006` if it is held already, by this process or another.
pub(crate) fn hold(database: &dyn Disk, checkpoints: &dyn Disk) -> Result<DirectoryLock> {
    checkpoints.lock().map_err(|error| match error.kind() {
        io::ErrorKind::ResourceBusy => {
            Error::new(SqlState::IN_USE, "the database is open already")
                .with_detail(database.directory().display().to_string())
                .with_hint("close it in the process that has it open, which may be this one, or connect to its server instead")
        }
        _ => io_error("locking the checkpoints", checkpoints, &error),
    })
}

/// Loads the newest whole checkpoint by so many threads. Damage, and parts of the disk that cannot be read, lead to the
/// one before: with the log behind it that gives the same state. A file of a later version or of another database leads
/// nowhere: whoever put it there has to say what is meant.
///
/// # Errors
/// Such a file; checkpoints without any log.
pub(crate) fn begin(
    checkpoints: &dyn Disk,
    log: &dyn Disk,
    database: DatabaseId,
    threads: usize,
) -> Result<Begin> {
    let found = files::list(checkpoints)?;
    if found.is_empty() {
        return Ok(Begin::default());
    }
    check_log(log)?;
    let mut begin = Begin::default();
    for found in found {
        match checkpoint::read(checkpoints, &found, database, threads) {
            Ok(state) => {
                begin.state = Some(state);
                begin.bytes = checkpoints.open_read(&found.name).and_then(|file| file.len()).unwrap_or(0);
                break;
            }
            Err(error) if [SqlState::DATA_CORRUPTED, SqlState::IO_ERROR].contains(&error.state()) => {
                begin.passed_over.push(error);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(begin)
}

/// The state of the newest whole checkpoint from before a seq; nothing if there is none.
///
/// # Errors
/// As [`begin`].
pub(crate) fn begin_before(checkpoints: &dyn Disk, database: DatabaseId, seq: Seq) -> Result<Option<State>> {
    for found in files::list(checkpoints)?.iter().filter(|found| found.seq < seq) {
        match checkpoint::read(checkpoints, found, database, 1) {
            Ok(state) => return Ok(Some(state)),
            Err(error) if [SqlState::DATA_CORRUPTED, SqlState::IO_ERROR].contains(&error.state()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// There is a segment at every moment of a database's life, and more so of one with checkpoints.
fn check_log(log: &dyn Disk) -> Result<()> {
    let names = log.list().map_err(|error| io_error("listing the log", log, &error))?;
    if names.iter().any(|name| name.ends_with(".log")) {
        return Ok(());
    }
    Err(Error::new(SqlState::DATA_CORRUPTED, "there are checkpoints, but no log")
        .with_detail(format!("{} has no segments", log.directory().display()))
        .with_hint("restore the log from a copy: it has the calls since the newest checkpoint"))
}

/// The error of a log that does not reach back to where it is needed, because checkpoints are damaged; any
/// other error of the log as it is.
pub(crate) fn explain(error: &LogError, passed_over: &[Error]) -> Error {
    if error.kind() != LogErrorKind::MissingEntries || passed_over.is_empty() {
        return log_error(error);
    }
    let damage = passed_over.iter().map(|error| error.detail().unwrap_or(error.message()));
    let detail: Vec<String> = damage.map(str::to_string).chain([error.to_string()]).collect();
    Error::new(SqlState::DATA_CORRUPTED, "checkpoints are damaged, and the log does not reach back behind them")
        .with_detail(detail.join("; "))
        .with_hint(
            "nothing was changed; restore one of these checkpoints from a copy. What the log still \
             has can be saved with `fabius log dump`, what is whole of a checkpoint is told by `fabius log verify`",
        )
}
