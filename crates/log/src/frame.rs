//! A frame: one batch as it stands in a segment.
//!
//! ```text
//! offset  bytes
//!      0      4  length of the payload
//!      4      4  number of entries; 0 in a mark, which has no payload
//!      8      8  sequence number of the first entry (of a mark: of the entry to come)
//!     16      8  synced sequence number: when this frame was written, every entry up to here had
//!                been synced
//!     24      4  crc32c of the payload
//!     28      4  crc32c, seeded by the segment header's checksum, of the frame's offset in the
//!                file (8 bytes) and bytes 0..28
//!     32         payload
//! ```
//!
//! **Reading.** At an offset, a frame is good if 32 bytes are there, their checksum fits seed and
//! offset, the payload is whole, and its checksum fits. The next frame begins where it ends.
//! No length is used before its checksum is known to be right.
//!
//! The header has a checksum of its own because it is worth something even when its payload is
//! lost: a sound header beyond a damaged place, whose synced sequence number covers that place,
//! proves that the place had once been good (see `reading.rs`). The seed and the offset keep bytes
//! of another file, another place or an earlier life of this one from passing for a frame.

use crate::little_endian::{u32_at, u64_at};
use crate::segment::{FrameSeed, SEQ_END};

pub(crate) const FRAME_HEADER_BYTES: usize = 32;

/// One batch read from the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The number of the segment it stands in.
    pub segment: u64,
    /// Where its header begins in the segment's file.
    pub offset: u64,
    /// The sequence number of its first entry.
    pub first_seq: u64,
    /// How many entries it has.
    pub entry_count: u32,
    /// When it was written, every entry up to here had been synced.
    pub synced_seq: u64,
    /// The entries' bytes, as appended.
    pub payload: &'a [u8],
}

impl Frame<'_> {
    /// The sequence number of its last entry.
    #[must_use]
    pub fn last_seq(&self) -> u64 {
        self.first_seq + u64::from(self.entry_count) - 1
    }
}

/// Why the bytes at an offset are not a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameFault {
    HeaderIncomplete,
    HeaderChecksum,
    PayloadIncomplete,
    PayloadChecksum,
}

impl FrameFault {
    pub(crate) fn fact(self) -> &'static str {
        match self {
            Self::HeaderIncomplete => "the frame header is incomplete",
            Self::HeaderChecksum => "the frame header's checksum is wrong",
            Self::PayloadIncomplete => "the frame is incomplete",
            Self::PayloadChecksum => "the frame's checksum is wrong",
        }
    }
}

/// The fields of a frame header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) payload_bytes: u32,
    pub(crate) entry_count: u32,
    pub(crate) first_seq: u64,
    pub(crate) synced_seq: u64,
    pub(crate) payload_checksum: u32,
}

impl FrameHeader {
    pub(crate) fn frame_bytes(&self) -> usize {
        FRAME_HEADER_BYTES + self.payload_bytes as usize
    }

    /// The sequence number after this frame, or nothing if there is none.
    pub(crate) fn next_seq(&self) -> Option<u64> {
        self.first_seq.checked_add(u64::from(self.entry_count))
    }

    fn fields(bytes: &[u8]) -> Self {
        Self {
            payload_bytes: u32_at(bytes, 0),
            entry_count: u32_at(bytes, 4),
            first_seq: u64_at(bytes, 8),
            synced_seq: u64_at(bytes, 16),
            payload_checksum: u32_at(bytes, 24),
        }
    }
}

/// Adds a frame whose synced sequence number and checksums are still missing; [`seal`] puts them in
/// when its place in a file is known.
pub(crate) fn append_unsealed(buffer: &mut Vec<u8>, first_seq: u64, entry_count: u32, payload: &[u8]) {
    let mut header = [0; FRAME_HEADER_BYTES];
    // The caller has checked the length against the buffer's bound, which is far below 4 GiB.
    header[0..4].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    header[4..8].copy_from_slice(&entry_count.to_le_bytes());
    header[8..16].copy_from_slice(&first_seq.to_le_bytes());
    buffer.extend_from_slice(&header);
    buffer.extend_from_slice(payload);
}

/// The length and first sequence number of the unsealed frame at the start of `bytes`.
pub(crate) fn unsealed(bytes: &[u8]) -> FrameHeader {
    FrameHeader::fields(bytes)
}

/// Completes the frame that fills `frame`, for its place in a file.
pub(crate) fn seal(frame: &mut [u8], seed: FrameSeed, offset: u64, synced_seq: u64) {
    let payload_checksum = crc32c::crc32c(&frame[FRAME_HEADER_BYTES..]);
    frame[16..24].copy_from_slice(&synced_seq.to_le_bytes());
    frame[24..28].copy_from_slice(&payload_checksum.to_le_bytes());
    let checksum = header_checksum(frame, seed, offset);
    frame[28..32].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads the header of the frame at `offset` of a segment's file.
pub(crate) fn read_header(file: &[u8], offset: usize, seed: FrameSeed) -> Result<FrameHeader, FrameFault> {
    let bytes = file
        .get(offset..)
        .and_then(|rest| rest.get(..FRAME_HEADER_BYTES))
        .ok_or(FrameFault::HeaderIncomplete)?;
    header_at(bytes, offset as u64, seed).ok_or(FrameFault::HeaderChecksum)
}

/// The frame header in its bytes, if its checksum is the one for the offset that they were read at.
pub(crate) fn header_at(bytes: &[u8], offset: u64, seed: FrameSeed) -> Option<FrameHeader> {
    (u32_at(bytes, 28) == header_checksum(bytes, seed, offset)).then(|| FrameHeader::fields(bytes))
}

/// Reads the frame at `offset` of a segment's file: its header and its payload.
pub(crate) fn read(file: &[u8], offset: usize, seed: FrameSeed) -> Result<(FrameHeader, &[u8]), FrameFault> {
    let header = read_header(file, offset, seed)?;
    let payload = file[offset + FRAME_HEADER_BYTES..]
        .get(..header.payload_bytes as usize)
        .ok_or(FrameFault::PayloadIncomplete)?;
    if crc32c::crc32c(payload) != header.payload_checksum {
        return Err(FrameFault::PayloadChecksum);
    }
    Ok((header, payload))
}

/// Looks through everything from `from` on, at every offset, for a sound frame header that proves
/// the entry `seq` to have been synced; gives its offset.
pub(crate) fn find_witness(file: &[u8], from: usize, seed: FrameSeed, seq: u64) -> Option<usize> {
    let last = file.len().checked_sub(FRAME_HEADER_BYTES)?;
    (from..=last).find(|&offset| {
        // The fields are looked at first, because that is ten times cheaper than the checksum.
        // They keep chance out besides: of some GB, 32 bits would let one of a few starts pass.
        let fields = FrameHeader::fields(&file[offset..offset + FRAME_HEADER_BYTES]);
        (seq..fields.first_seq).contains(&fields.synced_seq)
            && fields.first_seq < SEQ_END
            && read_header(file, offset, seed).is_ok()
    })
}

fn header_checksum(frame: &[u8], seed: FrameSeed, offset: u64) -> u32 {
    let placed = crc32c::crc32c_append(seed.0, &offset.to_le_bytes());
    crc32c::crc32c_append(placed, &frame[..28])
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: FrameSeed = FrameSeed(0x1234_5678);

    /// Goal: what looks like a header and has numbers that no log comes to proves nothing.
    #[test]
    fn only_numbers_of_a_log_are_a_witness() {
        for (first_seq, is_one) in [(100, true), (SEQ_END - 1, true), (SEQ_END, false), (u64::MAX, false)] {
            let mut file = vec![0; 64];
            append_unsealed(&mut file, first_seq, 1, b"entry");
            seal(&mut file[64..], SEED, 64, 50);
            assert_eq!(find_witness(&file, 0, SEED, 42), is_one.then_some(64), "{first_seq}");
            assert_eq!(find_witness(&file, 0, SEED, 51), None);
        }
    }

    fn file() -> Vec<u8> {
        let mut file = vec![0xAA; 64];
        append_unsealed(&mut file, 8, 3, b"three entries");
        seal(&mut file[64..], SEED, 64, 7);
        file
    }

    /// Goal: a frame reads back as appended and sealed.
    #[test]
    fn reads_back() {
        let file = file();
        let (header, payload) = read(&file, 64, SEED).expect("a good frame");
        assert_eq!(payload, b"three entries");
        assert_eq!((header.first_seq, header.entry_count, header.synced_seq), (8, 3, 7));
        assert_eq!(header.next_seq(), Some(11));
    }

    /// Goal: every flipped bit and every cut is noticed.
    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let file = file();
        for bit in 64 * 8..file.len() * 8 {
            let mut flipped = file.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&flipped, 64, SEED).is_err(), "bit {bit}");
        }
        for len in 0..file.len() {
            assert!(read(&file[..len], 64, SEED).is_err(), "length {len}");
        }
    }

    /// Goal: a frame is good at its own offset of its own segment only.
    #[test]
    fn a_frame_is_bound_to_its_place() {
        let file = file();
        assert_eq!(read(&file, 64, FrameSeed(1)), Err(FrameFault::HeaderChecksum));
        let mut moved = file.clone();
        moved.insert(0, 0);
        assert_eq!(read(&moved, 65, SEED), Err(FrameFault::HeaderChecksum));
    }

    /// Goal: a witness is found wherever it stands, and only if it vouches for the entry.
    #[test]
    fn finds_a_witness() {
        let file = file();
        assert_eq!(find_witness(&file, 0, SEED, 7), Some(64));
        assert_eq!(find_witness(&file, 0, SEED, 8), None);
        assert_eq!(find_witness(&file, 65, SEED, 7), None);
        assert_eq!(find_witness(&file[..10], 0, SEED, 7), None);
    }
}
