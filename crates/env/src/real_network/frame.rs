//! Messages as bytes of a connection.
//!
//! ```text
//!   message       len: u32 le    crc32c of len and payload: u32 le    payload: len bytes
//!   sign of life  0xffff_ffff    crc32c of len: u32 le
//! ```
//!
//! Both ends of a connection send a sign of life about each second, so that each notices when the other is
//! gone without a word.

use crate::MAX_MESSAGE;
use std::fmt::{self, Display};

/// The bytes before the payload.
pub(super) const HEAD_BYTES: usize = 8;

/// The length that no message has.
const LEN_SIGN_OF_LIFE: u32 = u32::MAX;

/// One frame, decoded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame<'a> {
    Message(&'a [u8]),
    SignOfLife,
}

/// Why bytes are no frame. What follows them cannot be read either.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FrameError {
    TooLong { len: u32 },
    Checksum,
}

impl Display for FrameError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { len } => {
                write!(formatter, "a frame of {len} bytes, of which {MAX_MESSAGE} are allowed")
            }
            Self::Checksum => formatter.write_str("a frame whose checksum is wrong"),
        }
    }
}

/// What is sent before a message, which is at most [`MAX_MESSAGE`] bytes.
pub(super) fn head(message: &[u8]) -> [u8; HEAD_BYTES] {
    encode(message.len() as u32, message)
}

/// A sign of life.
pub(super) fn sign_of_life() -> [u8; HEAD_BYTES] {
    encode(LEN_SIGN_OF_LIFE, &[])
}

fn encode(len: u32, payload: &[u8]) -> [u8; HEAD_BYTES] {
    let mut head = [0; HEAD_BYTES];
    head[..4].copy_from_slice(&len.to_le_bytes());
    head[4..].copy_from_slice(&checksum(len, payload).to_le_bytes());
    head
}

fn checksum(len: u32, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&len.to_le_bytes()), payload)
}

/// The frame that `bytes` begin with, and how many bytes it takes; none if it is not all there yet.
pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let Some((head, rest)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(None) };
    let [a, b, c, d, e, f, g, h] = *head;
    let (len, expected) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    let payload = match len {
        LEN_SIGN_OF_LIFE => &[],
        _ if len as usize > MAX_MESSAGE => return Err(FrameError::TooLong { len }),
        _ => match rest.get(..len as usize) {
            Some(payload) => payload,
            None => return Ok(None),
        },
    };
    if checksum(len, payload) != expected {
        return Err(FrameError::Checksum);
    }
    let frame = if len == LEN_SIGN_OF_LIFE { Frame::SignOfLife } else { Frame::Message(payload) };
    Ok(Some((frame, HEAD_BYTES + payload.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(message: &[u8]) -> Vec<u8> {
        [&head(message), message].concat()
    }

    /// Goal: frames are read as they were written, one after the other, empty ones too.
    #[test]
    fn frames_are_read_back() {
        let bytes = [framed(b"hello"), sign_of_life().to_vec(), framed(b"")].concat();
        assert_eq!(decode(&bytes), Ok(Some((Frame::Message(b"hello"), 13))));
        assert_eq!(decode(&bytes[13..]), Ok(Some((Frame::SignOfLife, 8))));
        assert_eq!(decode(&bytes[21..]), Ok(Some((Frame::Message(b""), 8))));
    }

    /// Goal: of a frame that is not all there, nothing is read, wherever it ends.
    #[test]
    fn a_part_of_a_frame_is_none_yet() {
        let bytes = framed(b"hello");
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), Ok(None));
        }
    }

    /// Goal: a length above the bound is refused before its bytes are there.
    #[test]
    fn a_frame_too_long_is_refused() {
        let len = MAX_MESSAGE as u32 + 1;
        assert_eq!(decode(&encode(len, &[])), Err(FrameError::TooLong { len }));
        assert_eq!(decode(&encode(u32::MAX - 1, &[])), Err(FrameError::TooLong { len: u32::MAX - 1 }));
        assert_eq!(decode(&encode(MAX_MESSAGE as u32, &[])), Ok(None));
    }

    /// Goal: a bit that flips anywhere in a frame does not go unnoticed.
    #[test]
    fn a_damaged_frame_is_refused() {
        for bytes in [framed(b"hello"), sign_of_life().to_vec()] {
            for bit in 0..bytes.len() * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                // A longer length asks for bytes that are not there.
                assert!(matches!(decode(&damaged), Err(_) | Ok(None)), "bit {bit}");
            }
        }
        let mut damaged = framed(b"hello");
        damaged[9] ^= 1;
        assert_eq!(decode(&damaged), Err(FrameError::Checksum));
    }
}
