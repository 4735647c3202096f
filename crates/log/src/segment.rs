//! A segment: one file of the log, its name and its header.
//!
//! Segment 1 is `000000000001.log`, and so on without gaps; old ones may have been discarded from
//! the front. A file is a header, then frames (`frame.rs`) back to back up to the end of the file.
//!
//! ```text
//! offset  bytes
//!      0      8  "FABIUSLG"
//!      8      4  format version, 1
//!     12      4  durability: 1 every group was synced, 0 not
//!     16     16  database id
//!     32      8  segment number, that of the file name
//!     40      8  first sequence number: that of the first frame, or of the next segment if
//!                there is no frame
//!     48      8  synced sequence number: entries up to here were synced when this was written
//!     56      4  generation: grows whenever a tail was cut off
//!     60      4  crc32c of bytes 0..60; also seeds the checksum of every frame in the file
//! ```
//!
//! Numbers are little-endian. In every future version the first 64 bytes keep the magic, the
//! version and this checksum at these places, so that "newer" can be told from "damaged".
//!
//! The header and the file's name are synced before any frame is written, in every durability
//! mode. A bad header in a file with more than a header's bytes is therefore always damage, never
//! an interrupted creation.

use crate::little_endian::{u32_at, u64_at};
use crate::{DatabaseId, Durability, LogError, LogErrorKind};

pub(crate) const HEADER_BYTES: usize = 64;
const MAGIC: [u8; 8] = *b"FABIUSLG";
pub(crate) const FORMAT_VERSION: u32 = 1;
/// Sequence numbers have 53 bits; no segment or frame begins within the last frame's reach of that.
pub(crate) const SEQ_END: u64 = (1 << 53) - (1 << 32);

/// Names have twelve digits.
const NUMBER_END: u64 = 10u64.pow(12);

/// The name of a segment's file.
pub(crate) fn file_name(number: u64) -> String {
    format!("{number:012}.log")
}

/// The segment number of a file name, if it is one.
pub(crate) fn number_of(name: &str) -> Option<u64> {
    let number: u64 = name.strip_suffix(".log")?.parse().ok()?;
    // Only the one spelling: "1.log" or "+00000000001.log" are none of ours.
    (0 < number && number < NUMBER_END && file_name(number) == name).then_some(number)
}

/// What the header of a segment says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// How its groups were written.
    pub durability: Durability,
    /// The database it belongs to.
    pub database_id: DatabaseId,
    /// The segment's number, as in the file name.
    pub number: u64,
    /// The sequence number of its first entry.
    pub first_seq: u64,
    /// Entries up to here were synced when the segment was begun.
    pub synced_seq: u64,
    /// How many times a torn tail had been cut off the log before.
    pub generation: u32,
}

/// Why 64 bytes are not a header of ours.
#[derive(Debug)]
pub(crate) enum HeaderFault {
    /// Too short, not ours or changed: the creation was interrupted, or damage.
    Bad(&'static str),
    /// Sound, but written by a later version.
    Newer { version: u32 },
}

impl SegmentHeader {
    /// The header's bytes and the seed of the frames that follow it.
    pub(crate) fn encode(&self) -> ([u8; HEADER_BYTES], FrameSeed) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        let synced: u32 = match self.durability {
            Durability::Fsync => 1,
            Durability::None => 0,
        };
        bytes[12..16].copy_from_slice(&synced.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database_id.0);
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_seq.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.synced_seq.to_le_bytes());
        bytes[56..60].copy_from_slice(&self.generation.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
        (bytes, FrameSeed(checksum))
    }

    /// Reads the header at the start of a segment file.
    pub(crate) fn decode(file: &[u8]) -> Result<(Self, FrameSeed), HeaderFault> {
        let Some(bytes) = file.get(..HEADER_BYTES) else {
            return Err(HeaderFault::Bad("the segment header is incomplete"));
        };
        if bytes[0..8] != MAGIC {
            return Err(HeaderFault::Bad("the segment header is not one of Fabius"));
        }
        let checksum = u32_at(bytes, 60);
        if crc32c::crc32c(&bytes[..60]) != checksum {
            return Err(HeaderFault::Bad("the segment header's checksum is wrong"));
        }
        let version = u32_at(bytes, 8);
        if version > FORMAT_VERSION {
            return Err(HeaderFault::Newer { version });
        }
        let durability = match u32_at(bytes, 12) {
            0 => Durability::None,
            1 => Durability::Fsync,
            _ => return Err(HeaderFault::Bad("the segment header's durability is unknown")),
        };
        if version == 0 {
            return Err(HeaderFault::Bad("the segment header's version is zero"));
        }
        let mut database_id = [0; 16];
        database_id.copy_from_slice(&bytes[16..32]);
        let header = Self {
            durability,
            database_id: DatabaseId(database_id),
            number: u64_at(bytes, 32),
            first_seq: u64_at(bytes, 40),
            synced_seq: u64_at(bytes, 48),
            generation: u32_at(bytes, 56),
        };
        if header.first_seq <= header.synced_seq {
            return Err(HeaderFault::Bad("the segment header is of entries synced before it"));
        }
        // No log comes this far, and what is counted from here on does not overflow.
        if header.first_seq >= SEQ_END || header.generation == u32::MAX {
            return Err(HeaderFault::Bad("the segment header's numbers are beyond any log"));
        }
        Ok((header, FrameSeed(checksum)))
    }
}

/// The error of a file written by a later version.
pub(crate) fn newer_format(name: &str, version: u32) -> LogError {
    LogError::new(
        LogErrorKind::NewerFormat,
        format!("log format {version} is newer than this program's, {FORMAT_VERSION}"),
    )
    .in_file(name)
    .hint_is("use the version of Fabius that wrote the log, or a later one")
}

/// What the frames of one segment mix into their checksums, so that no frame is taken for one of
/// another segment, database or generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameSeed(pub(crate) u32);

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            durability: Durability::Fsync,
            database_id: DatabaseId(*b"sixteen letters!"),
            number: 3,
            first_seq: 17,
            synced_seq: 16,
            generation: 2,
        }
    }

    /// Goal: a header reads back as written.
    #[test]
    fn reads_back() {
        let (bytes, seed) = header().encode();
        let (read, read_seed) = SegmentHeader::decode(&bytes).expect("a good header");
        assert_eq!((read, read_seed), (header(), seed));
    }

    /// Goal: every flipped bit of a header is noticed, and none passes for a newer version.
    #[test]
    fn every_flipped_bit_is_noticed() {
        let (bytes, _) = header().encode();
        for bit in 0..HEADER_BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(SegmentHeader::decode(&flipped), Err(HeaderFault::Bad(_))), "bit {bit}");
        }
    }

    /// Goal: numbers that no log reaches are refused, so that counting on from them cannot overflow.
    #[test]
    fn numbers_beyond_any_log_are_refused() {
        let beyond = [
            SegmentHeader { generation: u32::MAX, ..header() },
            SegmentHeader { first_seq: SEQ_END, ..header() },
            SegmentHeader { first_seq: u64::MAX, ..header() },
            SegmentHeader { first_seq: 0, synced_seq: 0, ..header() },
        ];
        for header in beyond {
            let (bytes, _) = header.encode();
            assert!(matches!(SegmentHeader::decode(&bytes), Err(HeaderFault::Bad(_))), "{header:?}");
        }
    }

    /// Goal: only the canonical spelling of a number is a segment's name.
    #[test]
    fn names() {
        assert_eq!(file_name(1), "000000000001.log");
        assert_eq!(number_of("000000000012.log"), Some(12));
        let others = [
            "12.log",
            "000000000000.log",
            "18446744073709551615.log",
            "+00000000012.log",
            "000000000012.log.old",
            "CLOSED",
            "00000000001x.log",
        ];
        for other in others {
            assert_eq!(number_of(other), None, "{other}");
        }
    }
}
