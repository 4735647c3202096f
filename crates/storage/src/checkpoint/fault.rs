//! What goes wrong with a checkpoint, as told to its users.

use fabius_env::Disk;
use fabius_value::{Error, SqlState};
use std::io;

/// The error of a file that is not what was written.
pub fn damaged(disk: &dyn Disk, name: &str, offset: u64, fact: &str) -> Error {
    let place = disk.directory().join(name);
    Error::new(SqlState::DATA_CORRUPTED, "the checkpoint is damaged")
        .with_detail(format!("{}, offset {offset}: {fact}", place.display()))
        .with_hint("restore the file from a copy, or move it away: an older checkpoint and the log may do")
}

/// The error of a file that a later version has written.
pub(super) fn newer(disk: &dyn Disk, name: &str, version: u32, known: u32) -> Error {
    let fact = format!("checkpoint format {version} is newer than this program's, {known}");
    Error::new(SqlState::NOT_SUPPORTED, fact)
        .with_detail(disk.directory().join(name).display().to_string())
        .with_hint("use the version of Fabius that wrote the checkpoint, or a later one")
}

/// The error of a file that belongs to another database.
pub(super) fn of_another_database(disk: &dyn Disk, name: &str) -> Error {
    Error::new(SqlState(*b"55000"), "the checkpoint belongs to another database")
        .with_detail(disk.directory().join(name).display().to_string())
        .with_hint("move it to the directory that it belongs to")
}

/// An input or output error met while `doing` (as in "writing a checkpoint").
pub fn io_error(doing: &str, disk: &dyn Disk, name: &str, error: &io::Error) -> Error {
    let (state, hint) = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            (SqlState::DISK_FULL, Some("free some space; the database goes on without this checkpoint"))
        }
        io::ErrorKind::ResourceBusy => {
            (SqlState::IN_USE, Some("stop the other process, or ask it for what you need"))
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            (SqlState::IO_ERROR, Some("the directory must be writable by this user"))
        }
        _ => (SqlState::IO_ERROR, None),
    };
    let place = disk.directory().join(name);
    let result =
        Error::new(state, format!("{doing} failed")).with_detail(format!("{}: {error}", place.display()));
    match hint {
        Some(hint) => result.with_hint(hint),
        None => result,
    }
}
