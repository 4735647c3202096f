//! The closing mark: a file `CLOSED` beside the segments that says where a cleanly closed log ends.
//!
//! Without it, damage to the very end of a log looks like a group that was being written when the
//! power was lost. With it, the log has to be exactly as described, and anything else is damage.
//!
//! ```text
//! offset  bytes
//!      0      8  "FABIUSCL"
//!      8      4  format version, 1
//!     12      4  zero
//!     16     16  database id
//!     32      8  number of the first segment
//!     40      8  number of the last segment
//!     48      8  length of the last segment's file
//!     56      8  next sequence number
//!     64      4  crc32c of bytes 0..64
//! ```
//!
//! It is written after everything else has been synced, as `CLOSED.new`, synced and then renamed,
//! so it is whole or not there. It is deleted, and the deletion synced, before the log is written
//! again; opening alone leaves it.

use std::io;

use fabius_env::Disk;

use crate::little_endian::{u32_at, u64_at};
use crate::segment::{FORMAT_VERSION, newer_format};
use crate::{DatabaseId, LogError, LogErrorKind};

pub(crate) const FILE_NAME: &str = "CLOSED";
pub(crate) const NEW_FILE_NAME: &str = "CLOSED.new";
const MAGIC: [u8; 8] = *b"FABIUSCL";
const MARK_BYTES: usize = 68;

/// Where a cleanly closed log begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClosingMark {
    pub(crate) database_id: DatabaseId,
    pub(crate) first_segment: u64,
    pub(crate) last_segment: u64,
    pub(crate) last_segment_bytes: u64,
    pub(crate) next_seq: u64,
}

impl ClosingMark {
    fn encode(&self) -> [u8; MARK_BYTES] {
        let mut bytes = [0; MARK_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database_id.0);
        bytes[32..40].copy_from_slice(&self.first_segment.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.last_segment.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.last_segment_bytes.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.next_seq.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..64]);
        bytes[64..68].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, LogError> {
        let sound = bytes.len() >= MARK_BYTES
            && bytes[0..8] == MAGIC
            && crc32c::crc32c(&bytes[..64]) == u32_at(bytes, 64);
        if !sound {
            return Err(damaged("the closing mark is damaged"));
        }
        let version = u32_at(bytes, 8);
        if version > FORMAT_VERSION {
            return Err(newer_format(FILE_NAME, version));
        }
        if bytes.len() > MARK_BYTES {
            return Err(damaged("the closing mark is too long"));
        }
        let mut database_id = [0; 16];
        database_id.copy_from_slice(&bytes[16..32]);
        Ok(Self {
            database_id: DatabaseId(database_id),
            first_segment: u64_at(bytes, 32),
            last_segment: u64_at(bytes, 40),
            last_segment_bytes: u64_at(bytes, 48),
            next_seq: u64_at(bytes, 56),
        })
    }

    /// The mark of a log, if it was closed cleanly.
    pub(crate) fn read(disk: &dyn Disk) -> Result<Option<Self>, LogError> {
        match disk.read(FILE_NAME) {
            Ok(bytes) => Self::decode(&bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::io("reading", disk.directory(), error).in_file(FILE_NAME)),
        }
    }

    /// Writes the mark, whole or not at all.
    pub(crate) fn write(&self, disk: &dyn Disk) -> Result<(), LogError> {
        let written = (|| {
            delete_if_there(disk, NEW_FILE_NAME)?;
            let mut file = disk.create(NEW_FILE_NAME)?;
            file.append_all(&self.encode())?;
            file.sync()?;
            disk.rename(NEW_FILE_NAME, FILE_NAME)?;
            disk.sync()
        })();
        written.map_err(|error| {
            LogError::io("writing the closing mark", disk.directory(), error).in_file(FILE_NAME)
        })
    }

    /// Takes the mark away durably, before the log is changed.
    pub(crate) fn remove(disk: &dyn Disk) -> Result<(), LogError> {
        let removed = (|| {
            delete_if_there(disk, FILE_NAME)?;
            disk.sync()
        })();
        removed.map_err(|error| {
            LogError::io("removing the closing mark", disk.directory(), error).in_file(FILE_NAME)
        })
    }
}

fn delete_if_there(disk: &dyn Disk, name: &str) -> io::Result<()> {
    match disk.delete(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

fn damaged(fact: &str) -> LogError {
    LogError::new(LogErrorKind::Damaged, fact).in_file(FILE_NAME).hint_is(
        "restore the file from a copy; without it, moved away, the log is read as after a \
             power loss",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the mark reads back, and every flipped bit or other length is noticed.
    #[test]
    fn reads_back_and_notices_every_change() {
        let mark = ClosingMark {
            database_id: DatabaseId([9; 16]),
            first_segment: 1,
            last_segment: 4,
            last_segment_bytes: 1_000,
            next_seq: 77,
        };
        let bytes = mark.encode();
        assert_eq!(ClosingMark::decode(&bytes).expect("a good mark"), mark);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(ClosingMark::decode(&flipped).is_err(), "bit {bit}");
        }
        assert!(ClosingMark::decode(&bytes[..MARK_BYTES - 1]).is_err());
        assert!(ClosingMark::decode(&[&bytes[..], &[0]].concat()).is_err());
    }
}
