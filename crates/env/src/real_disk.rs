//! The file system's directories and files.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::disk::{check_inside, directory_in_use};
use crate::{DirectoryLock, Disk, DiskFile};

const LOCK_FILE: &str = "LOCK";

/// A directory of the machine's file system.
#[derive(Debug, Clone)]
pub struct RealDisk {
    directory: PathBuf,
}

impl RealDisk {
    /// The directory at `path`, which must exist; writes nothing.
    ///
    /// # Errors
    /// When `path` is not a directory that can be read.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = path.into();
        if !fs::metadata(&directory)?.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotADirectory,
                format!("{} is not a directory", directory.display()),
            ));
        }
        Ok(Self { directory })
    }

    /// The directory at `path`, created with its parents if it is not there.
    ///
    /// # Errors
    /// When it cannot be created or read.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let directory = path.into();
        if !directory.is_dir() {
            // Every directory on the way that is new has to be synced in its parent, or a power
            // loss takes the whole branch.
            let missing: Vec<&Path> = directory
                .ancestors()
                .take_while(|ancestor| !ancestor.as_os_str().is_empty() && !ancestor.exists())
                .collect();
            fs::create_dir_all(&directory)?;
            for created in missing {
                match created.parent() {
                    Some(parent) if parent.as_os_str().is_empty() => {
                        sync_directory(Path::new("."))?;
                    }
                    Some(parent) => sync_directory(parent)?,
                    None => {}
                }
            }
        }
        Self::open(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

impl Disk for RealDisk {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(Self::create(self.path(name))?))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                continue;
            }
            // A name that is not Unicode is none of ours.
            if let Ok(name) = entry.file_name().into_string() {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.path(name))?;
        Ok(Box::new(RealFile { file, end: 0 }))
    }

    fn open_append(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(name))?;
        let end = file.metadata()?.len();
        Ok(Box::new(RealFile { file, end }))
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let file = File::open(self.path(name))?;
        let end = file.metadata()?.len();
        Ok(Box::new(RealFile { file, end }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path(from), self.path(to))
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    fn sync(&self) -> io::Result<()> {
        sync_directory(&self.directory)
    }

    fn lock(&self) -> io::Result<DirectoryLock> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(self.path(LOCK_FILE))?;
        match file.try_lock() {
            // The operating system gives the lock back when the file is closed, also by a crash.
            Ok(()) => Ok(DirectoryLock::holding(file)),
            Err(TryLockError::WouldBlock) => Err(directory_in_use(&self.directory)),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Windows cannot open a directory as a file, and NTFS journals its names itself.
#[cfg(not(unix))]
fn sync_directory(_path: &Path) -> io::Result<()> {
    Ok(())
}

#[derive(Debug)]
struct RealFile {
    file: File,
    /// Where appending goes on. Not left to `O_APPEND`, under which Linux also moves positioned
    /// writes to the end.
    end: u64,
}

impl RealFile {
    #[cfg(unix)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::write_at(&self.file, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_write(&self.file, bytes, offset)
    }
}

impl DiskFile for RealFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.write_at(bytes, self.end)?;
        self.end += count as u64;
        Ok(count)
    }

    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        check_inside(offset, bytes.len(), self.end)?;
        let mut written = 0;
        while written < bytes.len() {
            match self.write_at(&bytes[written..], offset + written as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(&self.file, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(&self.file, buffer, offset)
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)?;
        self.end = len;
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        // fdatasync: also the length, which is all the metadata that reading needs.
        self.file.sync_data()
    }
}
