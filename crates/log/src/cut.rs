//! Cutting the end off a log: a torn tail at opening, or entries that a log under agreement has to give up; or all of
//! it.
//!
//! Later segments go last to first, then the one in which the cut is is shortened, each step durable before the next,
//! so that a crash in between leaves a log that ends later than it should, and without a gap. After a cut a new
//! segment with a new generation is begun: whatever the disk may still show of the old end later, no frame of it fits
//! any more.

use fabius_env::Disk;

use crate::{LogError, closing_mark};

/// Where a log is cut.
#[derive(Debug)]
pub(crate) struct Cut<'a> {
    /// The file in which the cut is.
    pub(crate) segment: &'a str,
    /// Where it ends afterwards. Zero if the whole file goes.
    pub(crate) offset: u64,
    /// Segments behind it, oldest first; they go.
    pub(crate) later: &'a [String],
    /// What is done, for an error.
    pub(crate) doing: &'static str,
}

impl Cut<'_> {
    /// Makes the cut, durably.
    pub(crate) fn make(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let made = (|| {
            for name in self.later.iter().rev() {
                disk.delete(name)?;
                disk.sync()?;
            }
            if self.offset == 0 {
                disk.delete(self.segment)?;
                return disk.sync();
            }
            let mut file = disk.open_append(self.segment)?;
            file.truncate(self.offset)?;
            file.sync()
        })();
        made.map_err(|error| LogError::io(self.doing, disk.directory(), error).at(self.segment, self.offset))
    }
}

/// Removes a whole log that nobody has open, durably.
///
/// # Errors
/// As the disk fails; then some of it may be there still.
pub fn delete(disk: &dyn Disk) -> Result<(), LogError> {
    let is_of_log = |name: &String| name.ends_with(".log") || name.starts_with(closing_mark::FILE_NAME);
    let deleted = disk.list().and_then(|names| {
        // The newest go first: what is left of it has no gap.
        names.iter().rev().filter(|name| is_of_log(name)).try_for_each(|name| disk.delete(name))?;
        disk.sync()
    });
    deleted.map_err(|error| LogError::io("removing a log", disk.directory(), error))
}
