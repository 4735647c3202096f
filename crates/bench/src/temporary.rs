//! Directories of databases that nobody keeps: deleted when dropped, or by whoever ends the process before that.

use fabius::Result;
use fabius_value::{Error, SqlState};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// All that there are.
static THERE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory that is deleted when dropped.
pub struct TemporaryDirectory(TempDir);

impl TemporaryDirectory {
    /// A new one, in `parent` or the system's place for such.
    ///
    /// # Errors
    /// `58030` if it cannot be made.
    pub fn new(parent: Option<&Path>) -> Result<TemporaryDirectory> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("fabius-");
        let made = match parent {
            Some(parent) => std::fs::create_dir_all(parent).and_then(|()| builder.tempdir_in(parent)),
            None => builder.tempdir(),
        };
        let made = made.map_err(|error| {
            let place = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
            Error::new(SqlState::IO_ERROR, "no directory for the database")
                .with_detail(format!("{}: {error}", place.display()))
                .with_hint("choose a directory in which this user may write with --dir")
        })?;
        THERE.lock().push(made.path().to_path_buf());
        Ok(TemporaryDirectory(made))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // First, since the process may be ended meanwhile. What cannot be deleted stays.
        let _ = std::fs::remove_dir_all(self.0.path());
        THERE.lock().retain(|path| path != self.0.path());
    }
}

/// Deletes them all, for a process that ends at once; whoever makes a file by its path from now on fails.
pub fn delete_all() {
    for path in THERE.lock().drain(..) {
        let gone = path.with_extension("gone");
        let _ = std::fs::rename(&path, &gone).and_then(|()| std::fs::remove_dir_all(&gone));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: directories go with their handles, and with the process.
    #[test]
    fn nothing_is_left() {
        let (one, other) = (TemporaryDirectory::new(None).unwrap(), TemporaryDirectory::new(None).unwrap());
        let paths = [one.path().to_path_buf(), other.path().to_path_buf()];
        assert!(paths.iter().all(|path| path.is_dir()));
        drop(one);
        assert_eq!(paths.each_ref().map(|path| path.is_dir()), [false, true]);
        std::fs::write(other.path().join("file"), "text").unwrap();
        std::fs::remove_dir_all(other.path()).unwrap();
        drop(other);
        let nowhere = TemporaryDirectory::new(Some(Path::new("/dev/null/place"))).err().unwrap();
        assert!(nowhere.detail().unwrap().starts_with("/dev/null/place"));
    }
}
