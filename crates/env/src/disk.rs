//! What Fabius asks of a disk: a directory of append-only files.
//!
//! Durability is in two parts, as POSIX has it, and both are explicit here because both have lost
//! data elsewhere:
//!
//! - bytes of a file are safe after [`DiskFile::sync`];
//! - that a file exists under its name (created, renamed, deleted) is safe after [`Disk::sync`].
//!
//! After a failed [`DiskFile::sync`] nothing is known of the bytes written since the last good one,
//! and a later sync that succeeds says nothing about them either (Rebello et al., "Can
//! Applications Recover from fsync Failures?", 2020). Callers give the file up.

use std::any::Any;
use std::fmt::{self, Debug};
use std::io;
use std::path::Path;
use std::sync::Arc;

/// One directory and the files directly in it. Names are plain file names, without separators.
pub trait Disk: Debug + Send + Sync {
    /// The directory, as messages should name it.
    fn directory(&self) -> &Path;

    /// A directory inside this one, created (and synced in its parent) if it is not there.
    ///
    /// # Errors
    /// When it cannot be created or is not a directory.
    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Disk>>;

    /// The names of the files in the directory, in byte order; directories are left out.
    ///
    /// # Errors
    /// When the directory cannot be read.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is one; otherwise as the disk fails.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading and for appending at its end.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none; otherwise as the disk fails.
    fn open_append(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// Opens a file for reading only; works on a read-only disk.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none; otherwise as the disk fails.
    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;

    /// The whole content of a file.
    ///
    /// # Errors
    /// As [`open_read`](Self::open_read) and [`DiskFile::read_at`].
    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        let file = self.open_read(name)?;
        let mut content = vec![0; usize::try_from(file.len()?).map_err(io::Error::other)?];
        let mut filled = 0;
        while filled < content.len() {
            match file.read_at(&mut content[filled..], filled as u64)? {
                // The file shrank meanwhile: what there is, is what there is.
                0 => break,
                count => filled += count,
            }
        }
        content.truncate(filled);
        Ok(content)
    }

    /// Gives a file another name, atomically replacing a file of that name.
    ///
    /// # Errors
    /// As the disk fails.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Deletes a file.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is none; otherwise as the disk fails.
    fn delete(&self, name: &str) -> io::Result<()>;

    /// Makes every creation, renaming and deletion so far durable (fsync of the directory).
    ///
    /// # Errors
    /// As the disk fails.
    fn sync(&self) -> io::Result<()>;

    /// Takes the directory for this process until the guard is dropped, through a file `LOCK`.
    ///
    /// # Errors
    /// [`io::ErrorKind::ResourceBusy`], naming the directory, if another holder has it; otherwise
    /// as the disk fails.
    fn lock(&self) -> io::Result<DirectoryLock>;
}

/// One open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Writes a prefix of `bytes` at the end of the file and says how long a prefix; fewer than
    /// all is no error. [`append_all`](Self::append_all) is what most callers want.
    ///
    /// # Errors
    /// As the disk fails; then nothing is known of how much was written.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Writes all of `bytes` at the end of the file.
    ///
    /// # Errors
    /// As the disk fails; then any prefix of `bytes` may have been written.
    fn append_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.append(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes `bytes` over bytes that are there already, and marks them for the next
    /// [`sync`](Self::sync). With equal bytes this is how data that the system only believes to be
    /// on the disk, because a sync before failed, is brought there after all.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] if the bytes are not all inside the file; otherwise as the
    /// disk fails.
    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Reads at `offset` into `buffer` and says how many bytes; zero at the end of the file.
    ///
    /// # Errors
    /// As the disk fails.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// The length of the file in bytes.
    ///
    /// # Errors
    /// As the disk fails.
    fn len(&self) -> io::Result<u64>;

    /// Whether the file has no bytes.
    ///
    /// # Errors
    /// As the disk fails.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file off at `len` bytes; durable after [`sync`](Self::sync).
    ///
    /// # Errors
    /// As the disk fails.
    fn truncate(&mut self, len: u64) -> io::Result<()>;

    /// Makes the file's bytes and length durable.
    ///
    /// # Errors
    /// As the disk fails. The file must not be trusted with anything afterwards.
    fn sync(&mut self) -> io::Result<()>;
}

/// Holds a directory for this process until dropped.
pub struct DirectoryLock {
    _held: Box<dyn Any + Send + Sync>,
}

impl DirectoryLock {
    /// A lock that is given back when `held` is dropped.
    pub(crate) fn holding(held: impl Any + Send + Sync) -> Self {
        Self { _held: Box::new(held) }
    }
}

impl Debug for DirectoryLock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("DirectoryLock")
    }
}

/// The error of a directory that another holder has locked.
pub(crate) fn directory_in_use(directory: &Path) -> io::Error {
    io::Error::new(
        io::ErrorKind::ResourceBusy,
        format!("directory {} is in use by another process", directory.display()),
    )
}

/// Overwriting never makes a file longer.
pub(crate) fn check_inside(offset: u64, len: usize, end: u64) -> io::Result<()> {
    match offset.checked_add(len as u64) {
        Some(last) if last <= end => Ok(()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "overwriting beyond the end of the file")),
    }
}
