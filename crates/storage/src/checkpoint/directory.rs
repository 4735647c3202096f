//! The checkpoints in a directory: names, finding them, taking them away.

use super::fault::io_error;
use fabius_env::Disk;
use fabius_value::{Result, Seq};

const ENDING: &str = ".checkpoint";
const UNFINISHED: &str = ".checkpoint.new";

/// A file with a checkpoint's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The file's name.
    pub name: String,
    /// The seq in its name.
    pub seq: Seq,
}

/// The name of the checkpoint at a seq.
pub fn file_name(seq: Seq) -> String {
    format!("{:020}{ENDING}", seq.0)
}

/// The name under which the checkpoint at a seq is written.
pub(super) fn unfinished_name(seq: Seq) -> String {
    format!("{:020}{UNFINISHED}", seq.0)
}

fn seq_of(name: &str) -> Option<Seq> {
    let seq = Seq(name.strip_suffix(ENDING)?.parse().ok()?);
    // Only the one spelling.
    (file_name(seq) == name).then_some(seq)
}

/// The checkpoints in `disk`, newest first, sound or not.
///
/// # Errors
/// If the directory cannot be read.
pub fn list(disk: &dyn Disk) -> Result<Vec<Found>> {
    let names = disk.list().map_err(|error| io_error("looking for checkpoints", disk, "", &error))?;
    let found = names.into_iter().filter_map(|name| seq_of(&name).map(|seq| Found { name, seq }));
    let mut found: Vec<Found> = found.collect();
    found.sort_by_key(|found| std::cmp::Reverse(found.seq));
    Ok(found)
}

/// Deletes the checkpoints of these names, durably.
///
/// # Errors
/// As the disk fails.
pub fn delete(disk: &dyn Disk, names: &[String]) -> Result<()> {
    for name in names {
        disk.delete(name).map_err(|error| io_error("deleting an old checkpoint", disk, name, &error))?;
    }
    if names.is_empty() {
        return Ok(());
    }
    disk.sync().map_err(|error| io_error("deleting old checkpoints", disk, "", &error))
}

/// Deletes what a process has left that ended while it wrote a checkpoint.
///
/// # Errors
/// As the disk fails.
pub fn delete_unfinished(disk: &dyn Disk) -> Result<()> {
    let names = disk.list().map_err(|error| io_error("looking for checkpoints", disk, "", &error))?;
    let unfinished: Vec<String> = names.into_iter().filter(|name| name.ends_with(UNFINISHED)).collect();
    delete(disk, &unfinished)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only the canonical spelling of a seq is a checkpoint's name.
    #[test]
    fn names() {
        assert_eq!(file_name(Seq(12)), "00000000000000000012.checkpoint");
        assert_eq!(seq_of("00000000000000000012.checkpoint"), Some(Seq(12)));
        let others = [
            "12.checkpoint",
            "00000000000000000012.checkpoint.new",
            "+0000000000000000012.checkpoint",
            "LOCK",
        ];
        for other in others {
            assert_eq!(seq_of(other), None, "{other}");
        }
    }
}
