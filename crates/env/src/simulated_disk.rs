//! A disk in memory that can be crashed and made to fail, all from one seed.
//!
//! A file's bytes are lost, whole or in part, unless [`DiskFile::sync`] made them safe; see
//! `simulated_file.rs`. Names are journalled as real file systems do: of the creations, renamings
//! and deletions since [`Disk::sync`] a crash keeps any prefix. (Some file systems make a new name
//! durable with the file's own sync; the simulation promises no more than POSIX does.)

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{check_inside, directory_in_use};
use crate::schedule::point;
use crate::simulated_directory::{Directory, FileId, NameChange};
use crate::simulated_file::FileContent;
use crate::{DirectoryLock, Disk, DiskFile, Random};

/// Something that goes wrong with a [`SimulatedDisk`] from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// About half of the appends write only a part of what they were given, and say so.
    ShortWrites,
    /// After `syncs_before` more file syncs that work, one fails; later ones report success again,
    /// but never save what the failed one lost.
    FailSync {
        /// How many file syncs still work.
        syncs_before: u64,
    },
    /// After `bytes` more bytes appended the disk is full.
    Full {
        /// How many bytes still fit.
        bytes: u64,
    },
    /// Every change is refused.
    ReadOnly,
    /// After `operations` more changes or syncs the power is lost: every operation fails, until
    /// [`SimulatedDisk::crash`] gives the disk that is found when the power is back.
    PowerLoss {
        /// How many changes or syncs still work.
        operations: u64,
    },
    /// After `operations` more changes or syncs one panics, as code with an error in it does.
    Panic {
        /// How many changes or syncs still work.
        operations: u64,
    },
}

/// A handle on one directory of a disk in memory. Clones and subdirectories share the disk.
#[derive(Debug, Clone)]
pub struct SimulatedDisk {
    directory: PathBuf,
    platter: Arc<Mutex<Platter>>,
}

/// The whole disk behind all handles.
#[derive(Debug)]
struct Platter {
    random: Random,
    directories: BTreeMap<PathBuf, Directory>,
    files: BTreeMap<FileId, FileContent>,
    file_next: u64,
    locked: BTreeSet<PathBuf>,
    faults: Faults,
    sync_count: u64,
    operation_count: u64,
}

#[derive(Debug, Default)]
struct Faults {
    short_writes: bool,
    syncs_before_failure: Option<u64>,
    bytes_before_full: Option<u64>,
    read_only: bool,
    operations_before_power_loss: Option<u64>,
    operations_before_panic: Option<u64>,
}

impl SimulatedDisk {
    /// An empty disk whose accidents are decided by `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let directory = PathBuf::from("/simulated");
        Self {
            platter: Arc::new(Mutex::new(Platter {
                random: Random::seeded(seed),
                directories: BTreeMap::from([(directory.clone(), Directory::default())]),
                files: BTreeMap::new(),
                file_next: 0,
                locked: BTreeSet::new(),
                faults: Faults::default(),
                sync_count: 0,
                operation_count: 0,
            })),
            directory,
        }
    }

    /// Makes the disk fail in this way from now on, in addition to earlier faults.
    pub fn fault(&self, fault: Fault) {
        let faults = &mut self.platter().faults;
        match fault {
            Fault::ShortWrites => faults.short_writes = true,
            Fault::FailSync { syncs_before } => faults.syncs_before_failure = Some(syncs_before),
            Fault::Full { bytes } => faults.bytes_before_full = Some(bytes),
            Fault::ReadOnly => faults.read_only = true,
            Fault::PowerLoss { operations } => {
                faults.operations_before_power_loss = Some(operations);
            }
            Fault::Panic { operations } => faults.operations_before_panic = Some(operations),
        }
    }

    /// Takes all faults away; what they have done stays done.
    pub fn repair(&self) {
        self.platter().faults = Faults::default();
    }

    /// The disk as it would be found after a power loss at this moment, without faults and locks;
    /// `seed` decides what the loss leaves. This disk goes on untouched, so that many endings of
    /// one moment can be tried.
    #[must_use]
    pub fn crash(&self, seed: u64) -> Self {
        let mut random = Random::seeded(seed);
        let platter = self.platter();
        let directories: BTreeMap<PathBuf, Directory> = platter
            .directories
            .iter()
            .map(|(path, directory)| (path.clone(), directory.after_crash(&mut random)))
            .collect();
        let named: BTreeSet<FileId> =
            directories.values().flat_map(|directory| directory.live.values().copied()).collect();
        let files = platter
            .files
            .iter()
            .filter(|(id, _)| named.contains(id))
            .map(|(id, content)| (*id, content.after_crash(&mut random)))
            .collect();
        Self {
            directory: self.directory.clone(),
            platter: Arc::new(Mutex::new(Platter {
                random,
                directories,
                files,
                file_next: platter.file_next,
                locked: BTreeSet::new(),
                faults: Faults::default(),
                sync_count: 0,
                operation_count: 0,
            })),
        }
    }

    /// An exact copy of the disk at rest, for trying several things on it; everything counts as
    /// synced, and faults and locks are not copied.
    #[must_use]
    pub fn copy(&self) -> Self {
        let copy = self.crash(0);
        {
            let platter = self.platter();
            let mut target = copy.platter();
            target.files = platter.files.clone();
            target.files.values_mut().for_each(|content| content.damage(&mut |_| {}));
            target.directories = platter.directories.clone();
            target.directories.values_mut().for_each(Directory::sync);
        }
        copy
    }

    /// Gives all locked directories free, as the end of the process that held them does.
    pub fn release_locks(&self) {
        self.platter().locked.clear();
    }

    /// Changes a file's bytes at rest, as a bad sector, a stray process or an operator would.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no such file.
    pub fn damage(&self, name: &str, mut change: impl FnMut(&mut Vec<u8>)) -> io::Result<()> {
        let mut platter = self.platter();
        let id = platter.find(&self.directory, name)?;
        if let Some(content) = platter.files.get_mut(&id) {
            content.damage(&mut change);
        }
        Ok(())
    }

    /// A directory within this one; it is made if there is none.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn within(&self, name: &str) -> io::Result<Self> {
        let directory = self.directory.join(name);
        let mut platter = self.platter();
        platter.power()?;
        if !platter.directories.contains_key(&directory) {
            platter.begin_change()?;
            platter.directories.insert(directory.clone(), Directory::default());
        }
        drop(platter);
        Ok(Self { directory, platter: Arc::clone(&self.platter) })
    }

    /// How many file syncs were asked for so far, failed ones included.
    #[must_use]
    pub fn sync_count(&self) -> u64 {
        self.platter().sync_count
    }

    /// How many changes and syncs were asked for so far; the scale of [`Fault::PowerLoss`].
    #[must_use]
    pub fn operation_count(&self) -> u64 {
        self.platter().operation_count
    }

    fn platter(&self) -> MutexGuard<'_, Platter> {
        // A panic elsewhere does not leave the maps half changed: every change is one insertion.
        self.platter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, id: FileId, writable: bool) -> Box<dyn DiskFile> {
        Box::new(SimulatedFile { id, writable, disk: self.clone() })
    }
}

impl Platter {
    fn power(&self) -> io::Result<()> {
        match self.faults.operations_before_power_loss {
            Some(0) => Err(io::Error::other("the power is lost")),
            _ => Ok(()),
        }
    }

    /// Every change and sync passes here first.
    fn begin_change(&mut self) -> io::Result<()> {
        self.power()?;
        self.operation_count += 1;
        if let Some(operations) = &mut self.faults.operations_before_power_loss {
            *operations -= 1;
        }
        if let Some(operations) = self.faults.operations_before_panic.take() {
            assert!(operations > 0, "the simulated disk has an error");
            self.faults.operations_before_panic = Some(operations - 1);
        }
        if self.faults.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        Ok(())
    }

    fn directory(&mut self, path: &Path) -> io::Result<&mut Directory> {
        self.directories.get_mut(path).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn find(&mut self, path: &Path, name: &str) -> io::Result<FileId> {
        let found = self.directory(path)?.live.get(name).copied();
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no file {name}")))
    }

    fn content(&mut self, id: FileId) -> io::Result<&mut FileContent> {
        self.files.get_mut(&id).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn append(&mut self, id: FileId, bytes: &[u8]) -> io::Result<usize> {
        self.begin_change()?;
        let mut count = bytes.len();
        if self.faults.short_writes && count > 1 && self.random.chance(1, 2) {
            count = 1 + self.random.index(count - 1);
        }
        if let Some(left) = &mut self.faults.bytes_before_full {
            count = count.min(usize::try_from(*left).unwrap_or(usize::MAX));
            if count == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *left -= count as u64;
        }
        self.content(id)?.append(&bytes[..count]);
        Ok(count)
    }

    fn sync_file(&mut self, id: FileId) -> io::Result<()> {
        self.begin_change()?;
        self.sync_count += 1;
        match &mut self.faults.syncs_before_failure {
            Some(0) => {
                self.faults.syncs_before_failure = None;
                let mut random = self.random.split();
                self.content(id)?.fail_sync(&mut random);
                return Err(io::Error::other("simulated input/output error"));
            }
            Some(syncs) => *syncs -= 1,
            None => {}
        }
        self.content(id)?.sync();
        Ok(())
    }
}

impl Disk for SimulatedDisk {
    fn directory(&self) -> &Path {
        &self.directory
    }

    fn subdirectory(&self, name: &str) -> io::Result<Arc<dyn Disk>> {
        Ok(Arc::new(self.within(name)?))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut platter = self.platter();
        platter.power()?;
        let directory = platter.directory(&self.directory)?;
        Ok(directory.live.keys().cloned().collect())
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        point("disk create");
        let mut platter = self.platter();
        platter.begin_change()?;
        let id = FileId(platter.file_next);
        let directory = platter.directory(&self.directory)?;
        if directory.live.contains_key(name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        directory.change(NameChange::Create(name.to_owned(), id));
        platter.file_next += 1;
        platter.files.insert(id, FileContent::default());
        Ok(self.file(id, true))
    }

    fn open_append(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut platter = self.platter();
        platter.power()?;
        if platter.faults.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        let id = platter.find(&self.directory, name)?;
        Ok(self.file(id, true))
    }

    fn open_read(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut platter = self.platter();
        platter.power()?;
        let id = platter.find(&self.directory, name)?;
        Ok(self.file(id, false))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut platter = self.platter();
        platter.begin_change()?;
        platter.find(&self.directory, from)?;
        let change = NameChange::Rename(from.to_owned(), to.to_owned());
        platter.directory(&self.directory)?.change(change);
        Ok(())
    }

    fn delete(&self, name: &str) -> io::Result<()> {
        let mut platter = self.platter();
        platter.begin_change()?;
        platter.find(&self.directory, name)?;
        let change = NameChange::Delete(name.to_owned());
        platter.directory(&self.directory)?.change(change);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        point("disk sync of names");
        let mut platter = self.platter();
        platter.begin_change()?;
        platter.directory(&self.directory)?.sync();
        Ok(())
    }

    fn lock(&self) -> io::Result<DirectoryLock> {
        let mut platter = self.platter();
        platter.power()?;
        if platter.faults.read_only {
            return Err(io::ErrorKind::ReadOnlyFilesystem.into());
        }
        if !platter.locked.insert(self.directory.clone()) {
            return Err(directory_in_use(&self.directory));
        }
        drop(platter);
        Ok(DirectoryLock::holding(HeldDirectory { disk: self.clone() }))
    }
}

struct HeldDirectory {
    disk: SimulatedDisk,
}

impl Drop for HeldDirectory {
    fn drop(&mut self) {
        self.disk.platter().locked.remove(&self.disk.directory);
    }
}

#[derive(Debug)]
struct SimulatedFile {
    id: FileId,
    writable: bool,
    disk: SimulatedDisk,
}

impl SimulatedFile {
    fn check_writable(&self) -> io::Result<()> {
        if self.writable { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl DiskFile for SimulatedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.check_writable()?;
        point("disk append");
        self.disk.platter().append(self.id, bytes)
    }

    fn overwrite(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.check_writable()?;
        point("disk overwrite");
        let mut platter = self.disk.platter();
        platter.begin_change()?;
        let content = platter.content(self.id)?;
        check_inside(offset, bytes.len(), content.live().len() as u64)?;
        content.overwrite(offset, bytes);
        Ok(())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut platter = self.disk.platter();
        platter.power()?;
        let live = platter.content(self.id)?.live();
        let start = usize::try_from(offset).map_or(live.len(), |start| start.min(live.len()));
        let count = buffer.len().min(live.len() - start);
        buffer[..count].copy_from_slice(&live[start..start + count]);
        Ok(count)
    }

    fn len(&self) -> io::Result<u64> {
        let mut platter = self.disk.platter();
        platter.power()?;
        Ok(platter.content(self.id)?.live().len() as u64)
    }

    fn truncate(&mut self, len: u64) -> io::Result<()> {
        self.check_writable()?;
        let mut platter = self.disk.platter();
        platter.begin_change()?;
        platter.content(self.id)?.truncate(len);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        point("disk sync");
        self.disk.platter().sync_file(self.id)
    }
}
