//! Telling a flipped bit from a torn write.
//!
//! What stands at the end of a log and is not as it should be was either never wholly written, or was, and has
//! changed since. The first is what a loss of power leaves behind, and nobody was told of it; the second has to be
//! noticed, most of all in a cluster, where a node that has lost what it acknowledged must not vote. A changed bit
//! shows: a checksum that is linear gives for each single bit of the bytes another difference, so that it can be said
//! whether one bit alone explains the difference. A torn write looks like that by chance once in 2^32 for each bit of
//! the frame; and where of a sector that was never written only a byte or two are the frame's.

use crate::frame::{self, FRAME_HEADER_BYTES, FrameFault, FrameHeader};
use crate::segment::FrameSeed;

/// The polynomial of crc32c, reflected (Castagnoli et al., 1993).
const POLYNOMIAL: u32 = 0x82f6_3b78;

/// Whether the frame at an offset of a segment's file, which has a fault, would be sound but for one bit.
pub(crate) fn explains(fault: FrameFault, file: &[u8], offset: usize, seed: FrameSeed) -> bool {
    match fault {
        FrameFault::HeaderIncomplete | FrameFault::PayloadIncomplete => false,
        FrameFault::HeaderChecksum => {
            let Some(bytes) = file.get(offset..offset + FRAME_HEADER_BYTES) else { return false };
            let mut header = [0; FRAME_HEADER_BYTES];
            (0..FRAME_HEADER_BYTES * 8).any(|bit| {
                header.copy_from_slice(bytes);
                header[bit / 8] ^= 1 << (bit % 8);
                let found = frame::header_at(&header, offset as u64, seed);
                found.is_some_and(|found| payload_fits(&found, file, offset))
            })
        }
        FrameFault::PayloadChecksum => {
            let Ok(header) = frame::read_header(file, offset, seed) else { return false };
            let payload = &file[offset + FRAME_HEADER_BYTES..][..header.payload_bytes as usize];
            is_one_bit(crc32c::crc32c(payload) ^ header.payload_checksum, payload.len())
        }
    }
}

fn payload_fits(header: &FrameHeader, file: &[u8], offset: usize) -> bool {
    let payload = file[offset + FRAME_HEADER_BYTES..].get(..header.payload_bytes as usize);
    payload.is_some_and(|payload| crc32c::crc32c(payload) == header.payload_checksum)
}

/// Whether one changed bit in so many bytes makes this difference to their checksum.
fn is_one_bit(difference: u32, bytes: usize) -> bool {
    // What the last bit makes, then the one before it, and so on.
    let mut made = POLYNOMIAL;
    (0..bytes * 8).any(|_| {
        let is_it = made == difference;
        made = (made >> 1) ^ if made & 1 == 1 { POLYNOMIAL } else { 0 };
        is_it
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{append_unsealed, seal};
    use fabius_env::Random;

    const SEED: FrameSeed = FrameSeed(77);

    fn file(payload: &[u8]) -> Vec<u8> {
        let mut file = vec![0; 64];
        append_unsealed(&mut file, 5, 1, payload);
        seal(&mut file[64..], SEED, 64, 4);
        file
    }

    fn fault(file: &[u8]) -> FrameFault {
        frame::read(file, 64, SEED).expect_err("it was changed")
    }

    /// Goal: every single bit of a frame is found to be one.
    #[test]
    fn every_flipped_bit_is_one() {
        let mut random = Random::seeded(3);
        let mut payload = vec![0; 1_000];
        random.fill(&mut payload);
        let sound = file(&payload);
        for bit in 64 * 8..sound.len() * 8 {
            let mut flipped = sound.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(explains(fault(&flipped), &flipped, 64, SEED), "bit {bit}");
        }
    }

    /// Goal: what a torn write leaves is not taken for a flipped bit: two bits, sectors of zeros, an end that is
    /// missing.
    #[test]
    fn what_is_torn_is_more_than_one_bit() {
        let mut random = Random::seeded(4);
        for _ in 0..300 {
            let mut payload = vec![0; 600 + random.index(2_000)];
            random.fill(&mut payload);
            let sound = file(&payload);
            let mut torn = sound.clone();
            match random.below(3) {
                0 => torn.truncate(64 + random.index(sound.len() - 64)),
                1 => {
                    let from = 64 + random.index(sound.len() - 64 - 100);
                    torn[from..from + 100].fill(0);
                }
                _ => {
                    let (one, two) = (64 + random.index(500), 64 + random.index(500));
                    torn[one] ^= 1;
                    torn[two] ^= 2;
                }
            }
            if frame::read(&torn, 64, SEED).is_err() {
                assert!(!explains(fault(&torn), &torn, 64, SEED));
            }
        }
    }
}
