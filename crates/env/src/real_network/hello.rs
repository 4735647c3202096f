//! How two nodes make sure that they have to do with each other, before anything else is sent.
//!
//! ```text
//!   hello, of whoever connects          answer
//!       0  4  "FABN"                        0  4  "FABN"
//!       4  2  version of the protocol       4  2  version of the protocol
//!       6 16  cluster                       6  1  1 accepted, 0 refused
//!      22  8  from: a node                  7  2  length of the reason, at most 512
//!      30  8  to: a node                    9     reason, in plain words
//!      38  4  number of the semantics
//!      42  4  crc32c of all before
//! ```
//!
//! Numbers are little-endian. The first six bytes of a hello, and all of an answer, are the same in every
//! version: a node of another version can be told why it is refused.

use crate::NodeId;
use std::fmt::{self, Display};

const MAGIC: [u8; 4] = *b"FABN";

/// The version of hellos and frames that this code speaks.
const VERSION: u16 = 1;

const HELLO_BYTES: usize = 46;
const ANSWER_HEAD_BYTES: usize = 9;
const REASON_BYTES_MAX: usize = 512;

/// What tells one cluster from all others; random, and the same for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterId(pub [u8; 16]);

/// Who connects, and to whom it believes to connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) cluster: ClusterId,
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    /// What messages make the sender do. Nodes of other numbers would do something else, and part from each other.
    pub(super) semantics: u32,
}

/// What the other one says to a hello.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Accepted,
    Refused { reason: String },
}

/// Why bytes are no hello and no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HelloError {
    /// Whatever talks there is no node of Fabius.
    Magic,
    /// It is one of another version.
    Version(u16),
    Checksum,
    ReasonTooLong,
}

/// Decodes what bytes begin with, and says how many bytes that takes; none if it is not all there yet.
pub(super) type Decode<T> = fn(&[u8]) -> Result<Option<(T, usize)>, HelloError>;

impl Display for HelloError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Magic => formatter.write_str(
                "what came is not the protocol of Fabius nodes, or only one of the two is configured for TLS",
            ),
            Self::Version(theirs) => {
                write!(
                    formatter,
                    "a node of protocol version {theirs} and one of version {VERSION} cannot talk"
                )
            }
            Self::Checksum => formatter.write_str("a hello whose checksum is wrong"),
            Self::ReasonTooLong => formatter.write_str("an answer that is too long"),
        }
    }
}

impl Hello {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HELLO_BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.cluster.0);
        bytes.extend_from_slice(&self.from.0.to_le_bytes());
        bytes.extend_from_slice(&self.to.0.to_le_bytes());
        bytes.extend_from_slice(&self.semantics.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// The hello that `bytes` begin with, and how many bytes it takes; none if it is not all there yet.
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Hello, usize)>, HelloError> {
        let Some(version) = decode_version(bytes)? else { return Ok(None) };
        if version != VERSION {
            return Err(HelloError::Version(version));
        }
        let Some((bytes, _)) = bytes.split_first_chunk::<HELLO_BYTES>() else { return Ok(None) };
        let (content, checksum) = bytes.split_at(HELLO_BYTES - 4);
        if crc32c::crc32c(content).to_le_bytes() != checksum {
            return Err(HelloError::Checksum);
        }
        let cluster = ClusterId(std::array::from_fn(|index| bytes[6 + index]));
        let node =
            |start: usize| NodeId(u64::from_le_bytes(std::array::from_fn(|index| bytes[start + index])));
        let semantics = u32::from_le_bytes(std::array::from_fn(|index| bytes[38 + index]));
        Ok(Some((Hello { cluster, from: node(22), to: node(30), semantics }, HELLO_BYTES)))
    }

    /// Whether this node, of this cluster, is the one that the hello is for; if not, the reason.
    pub(super) fn judge(&self, cluster: ClusterId, me: NodeId, semantics: u32) -> Result<(), String> {
        if self.cluster != cluster {
            return Err("the two nodes belong to different clusters".to_owned());
        }
        if self.to != me {
            return Err(format!("{} was wanted, and this is {me}", self.to));
        }
        if self.from == me {
            return Err(format!("both nodes say that they are {me}"));
        }
        if self.semantics != semantics {
            return Err(format!(
                "{} computes by semantics {}, and {me} by {semantics}: run the same version of Fabius on both",
                self.from, self.semantics
            ));
        }
        Ok(())
    }
}

impl Answer {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (verdict, reason) = match self {
            Self::Accepted => (1, ""),
            Self::Refused { reason } => (0, &reason[..reason.floor_char_boundary(REASON_BYTES_MAX)]),
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.push(verdict);
        bytes.extend_from_slice(&(reason.len() as u16).to_le_bytes());
        bytes.extend_from_slice(reason.as_bytes());
        bytes
    }

    /// The answer that `bytes` begin with, and how many bytes it takes; none if it is not all there yet.
    pub(super) fn decode(bytes: &[u8]) -> Result<Option<(Answer, usize)>, HelloError> {
        let Some(version) = decode_version(bytes)? else { return Ok(None) };
        let Some((head, rest)) = bytes.split_first_chunk::<ANSWER_HEAD_BYTES>() else { return Ok(None) };
        let len = usize::from(u16::from_le_bytes([head[7], head[8]]));
        if len > REASON_BYTES_MAX {
            return Err(HelloError::ReasonTooLong);
        }
        let Some(reason) = rest.get(..len) else { return Ok(None) };
        let answer = match head[6] {
            1 if version == VERSION => Answer::Accepted,
            1 => return Err(HelloError::Version(version)),
            _ => Answer::Refused { reason: printable(reason) },
        };
        Ok(Some((answer, ANSWER_HEAD_BYTES + len)))
    }
}

/// The version that a hello or an answer begins with; none if it is not all there yet.
fn decode_version(bytes: &[u8]) -> Result<Option<u16>, HelloError> {
    let len = bytes.len().min(MAGIC.len());
    if bytes[..len] != MAGIC[..len] {
        return Err(HelloError::Magic);
    }
    Ok(bytes.get(4..6).map(|version| u16::from_le_bytes([version[0], version[1]])))
}

/// Words of somebody else, without what would move a terminal's cursor.
fn printable(words: &[u8]) -> String {
    String::from_utf8_lossy(words).chars().map(|char| if char.is_control() { ' ' } else { char }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: Hello =
        Hello { cluster: ClusterId([7; 16]), from: NodeId(1), to: NodeId(u64::MAX), semantics: 3 };

    /// Goal: a hello is read as it was written, and what follows it is left.
    #[test]
    fn a_hello_is_read_back() {
        let mut bytes = HELLO.encode();
        assert_eq!(Hello::decode(&bytes), Ok(Some((HELLO, bytes.len()))));
        bytes.push(0);
        assert_eq!(Hello::decode(&bytes), Ok(Some((HELLO, bytes.len() - 1))));
    }

    /// Goal: of a hello or an answer that is not all there, nothing is read, wherever it ends.
    #[test]
    fn a_part_is_none_yet() {
        let hello = HELLO.encode();
        let answer = Answer::Refused { reason: "no".to_owned() }.encode();
        (0..hello.len()).for_each(|end| assert_eq!(Hello::decode(&hello[..end]), Ok(None)));
        (0..answer.len()).for_each(|end| assert_eq!(Answer::decode(&answer[..end]), Ok(None)));
    }

    /// Goal: other protocols are known by their first byte, other versions before anything that they might lay
    /// out otherwise, and damage everywhere.
    #[test]
    fn what_is_no_hello_is_refused() {
        assert_eq!(Hello::decode(b"G"), Err(HelloError::Magic));
        assert_eq!(Hello::decode(b"GET / HTTP/1.1\r\n\r\n"), Err(HelloError::Magic));
        assert_eq!(Hello::decode(b"FABN\x02\x00"), Err(HelloError::Version(2)));
        let bytes = HELLO.encode();
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            let error = Hello::decode(&damaged).expect_err("damaged");
            let expected = match bit / 8 {
                0..4 => error == HelloError::Magic,
                4..6 => matches!(error, HelloError::Version(_)),
                _ => error == HelloError::Checksum,
            };
            assert!(expected, "bit {bit}: {error:?}");
        }
    }

    /// Goal: a hello is accepted by the node and the cluster it is for, and by no other.
    #[test]
    fn a_hello_is_for_one_node_of_one_cluster() {
        let (cluster, me) = (HELLO.cluster, HELLO.to);
        assert_eq!(HELLO.judge(cluster, me, 3), Ok(()));
        let refusals = [
            HELLO.judge(ClusterId([8; 16]), me, 3),
            HELLO.judge(cluster, NodeId(2), 3),
            Hello { from: me, ..HELLO }.judge(cluster, me, 3),
            HELLO.judge(cluster, me, 4),
        ];
        let reasons = refusals.map(|refusal| refusal.expect_err("refused"));
        assert_eq!(reasons[0], "the two nodes belong to different clusters");
        assert_eq!(reasons[1], "node 4294967295.4294967295 was wanted, and this is node 2");
        assert_eq!(reasons[2], "both nodes say that they are node 4294967295.4294967295");
        assert!(reasons[3].contains("semantics 3") && reasons[3].contains("by 4"), "{}", reasons[3]);
    }

    /// Goal: answers are read as they were written; a long reason is shortened between characters, and one that
    /// would move the cursor is made harmless.
    #[test]
    fn an_answer_is_read_back() {
        let there_and_back = |answer: &Answer| {
            let bytes = answer.encode();
            let (decoded, len) = Answer::decode(&bytes).expect("good").expect("whole");
            assert_eq!(len, bytes.len());
            decoded
        };
        assert_eq!(there_and_back(&Answer::Accepted), Answer::Accepted);
        let refused = |reason: &str| Answer::Refused { reason: reason.to_owned() };
        assert_eq!(there_and_back(&refused("no")), refused("no"));
        assert_eq!(there_and_back(&refused("a\r\x1b[2Jb")), refused("a  [2Jb"));
        assert_eq!(there_and_back(&refused(&"…".repeat(400))), refused(&"…".repeat(170)));
    }

    /// Goal: answers are bounded, an acceptance must be of this version, and a refusal may be of any.
    #[test]
    fn what_is_no_answer_is_refused() {
        assert_eq!(Answer::decode(b"HTTP"), Err(HelloError::Magic));
        assert_eq!(Answer::decode(b"FABN\x01\x00\x00\x01\x02"), Err(HelloError::ReasonTooLong));
        assert_eq!(Answer::decode(b"FABN\x02\x00\x01\x00\x00"), Err(HelloError::Version(2)));
        let refused = Answer::Refused { reason: "x".to_owned() };
        assert_eq!(Answer::decode(b"FABN\x02\x00\x00\x01\x00x"), Ok(Some((refused, 10))));
    }
}
