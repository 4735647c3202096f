//! Repairing a node of a cluster whose disk is damaged: what it has is set aside, and the others give it everything
//! anew.
//!
//! Damage says nothing of how much else is wrong, and what a node has lost it may have promised to keep. So nothing
//! of it is taken over: the node comes back as its own successor ([`fabius_cluster::begin_anew`]).

use crate::identity::io_error;
use crate::opening;
use fabius_env::{Disk, NodeId, RealDisk};
use fabius_value::{Error, Result, SqlState};
use std::path::{Path, PathBuf};

/// What was done to repair a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The node that it is now, once the others have let it in.
    pub node: NodeId,
    /// Where its log and checkpoints lie now; nothing needs them once the node has caught up.
    pub aside: PathBuf,
}

/// Whether a node, in this directory, cannot go on for damage that can be repaired from the others. One that has
/// computed something else than the others is not damaged: somebody has to look at why.
pub fn is_damaged_member(path: &Path, error: &Error) -> bool {
    let is_repairable = |disk: RealDisk| fabius_cluster::can_begin_anew(&disk);
    error.state() == SqlState::DATA_CORRUPTED && RealDisk::open(path).is_ok_and(is_repairable)
}

/// Sets aside what a node has, and makes it its own successor: opened the next time, it asks the others to let it in
/// and to fill it.
///
/// # Errors
/// `55000` if the directory belongs to no node; `55006` if a process has it; `XX001` if what tells who the members
/// are is damaged; as the disk fails.
pub fn repair_member(path: &Path) -> Result<Repair> {
    let disk = RealDisk::open(path).map_err(|error| {
        Error::new(SqlState::IO_ERROR, "the directory of the node cannot be opened")
            .with_detail(format!("{}: {error}", path.display()))
    })?;
    let failed = |error| io_error("repairing the node", &disk, &error);
    let held = opening::hold(&disk, &*disk.subdirectory("checkpoints").map_err(failed)?)?;
    let number = (1..u32::MAX).find(|number| !path.join(format!("damaged-{number}")).exists());
    let aside = path.join(format!("damaged-{}", number.unwrap_or(u32::MAX)));
    let node = fabius_cluster::begin_anew(&disk)?;
    let moved = std::fs::create_dir(&aside)
        .and_then(|()| std::fs::rename(path.join("log"), aside.join("log")))
        .and_then(|()| std::fs::rename(path.join("checkpoints"), aside.join("checkpoints")));
    moved.map_err(failed)?;
    disk.sync().map_err(failed)?;
    drop(held);
    Ok(Repair { node, aside })
}
