//! Header and blocks as bytes.

use crate::version::SEQ_END;
use fabius_value::{Seq, TableId};

pub(super) const HEADER_BYTES: usize = 64;
pub(super) const BLOCK_HEADER_BYTES: usize = 24;
/// Version 2 has errors with the names of what they are about under keys; all else is as in version 1.
pub(super) const FORMAT_VERSION: u32 = 2;
const MAGIC: [u8; 8] = *b"FABIUSCP";

/// What a checkpoint's first bytes say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The database it belongs to.
    pub database_id: [u8; 16],
    /// The state is that after the entry with this seq.
    pub seq: Seq,
    /// When it was begun, in microseconds since 1970.
    pub begun_us: i64,
}

/// What the items of a block are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Definitions, in order.
    Definitions,
    /// Idempotency keys with their outcomes.
    Keys,
    /// Rows of a table.
    Rows(TableId),
    /// Nothing: the counts of everything before.
    End,
}

/// How much a checkpoint holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks, the last one not counted.
    pub blocks: u64,
    /// Definitions.
    pub definitions: u64,
    /// Idempotency keys.
    pub keys: u64,
    /// Rows of all tables.
    pub rows: u64,
}

/// Why 64 bytes are not a header.
pub(super) enum HeaderFault {
    Bad(&'static str),
    Newer(u32),
}

impl Header {
    /// The header's bytes and the seed of the blocks that follow it.
    pub(super) fn encode(&self) -> ([u8; HEADER_BYTES], u32) {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.database_id);
        bytes[32..40].copy_from_slice(&self.seq.0.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.begun_us.to_le_bytes());
        let checksum = crc32c::crc32c(&bytes[..60]);
        bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
        (bytes, checksum)
    }

    pub(super) fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<(Header, u32), HeaderFault> {
        if bytes[0..8] != MAGIC {
            return Err(HeaderFault::Bad("the header is not one of Fabius"));
        }
        let checksum = u32_at(bytes, 60);
        if crc32c::crc32c(&bytes[..60]) != checksum {
            return Err(HeaderFault::Bad("the header's checksum is wrong"));
        }
        match u32_at(bytes, 8) {
            0 => return Err(HeaderFault::Bad("the header's version is zero")),
            version if version > FORMAT_VERSION => return Err(HeaderFault::Newer(version)),
            _ => {}
        }
        let mut database_id = [0; 16];
        database_id.copy_from_slice(&bytes[16..32]);
        let header = Header { database_id, seq: Seq(u64_at(bytes, 32)), begun_us: u64_at(bytes, 40) as i64 };
        if header.seq >= SEQ_END {
            return Err(HeaderFault::Bad("the header's seq is beyond any log"));
        }
        Ok((header, checksum))
    }
}

impl BlockKind {
    fn numbers(self) -> (u32, u32) {
        match self {
            BlockKind::Definitions => (1, 0),
            BlockKind::Keys => (2, 0),
            BlockKind::Rows(table) => (3, table.0),
            BlockKind::End => (4, 0),
        }
    }

    pub(super) fn of(kind: u32, table: u32) -> Option<BlockKind> {
        match (kind, table) {
            (1, 0) => Some(BlockKind::Definitions),
            (2, 0) => Some(BlockKind::Keys),
            (3, table) => Some(BlockKind::Rows(TableId(table))),
            (4, 0) => Some(BlockKind::End),
            _ => None,
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, kind: BlockKind, items: u32) {
        self.blocks += 1;
        let count = match kind {
            BlockKind::Definitions => &mut self.definitions,
            BlockKind::Keys => &mut self.keys,
            BlockKind::Rows(_) => &mut self.rows,
            BlockKind::End => return,
        };
        *count += u64::from(items);
    }

    pub(super) fn encode(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (at, count) in [self.blocks, self.definitions, self.keys, self.rows].into_iter().enumerate() {
            bytes[at * 8..at * 8 + 8].copy_from_slice(&count.to_le_bytes());
        }
        bytes
    }
}

/// A block's first bytes.
pub(super) struct BlockHeader {
    pub(super) payload_bytes: u32,
    pub(super) items: u32,
    pub(super) kind: u32,
    pub(super) table: u32,
    pub(super) payload_checksum: u32,
}

/// Completes a block whose payload stands behind room for its header, for its place in a file.
pub(super) fn seal(block: &mut [u8], kind: BlockKind, items: u32, seed: u32, offset: u64) {
    let (head, payload) = block.split_at_mut(BLOCK_HEADER_BYTES);
    let (number, table) = kind.numbers();
    let length = u32::try_from(payload.len()).expect("a larger block is refused");
    for (at, word) in [length, items, number, table, crc32c::crc32c(payload)].into_iter().enumerate() {
        head[at * 4..at * 4 + 4].copy_from_slice(&word.to_le_bytes());
    }
    let checksum = head_checksum(head, seed, offset);
    head[20..24].copy_from_slice(&checksum.to_le_bytes());
}

/// Reads a block's header; nothing if its checksum is wrong.
pub(super) fn open(head: &[u8; BLOCK_HEADER_BYTES], seed: u32, offset: u64) -> Option<BlockHeader> {
    (u32_at(head, 20) == head_checksum(head, seed, offset)).then(|| BlockHeader {
        payload_bytes: u32_at(head, 0),
        items: u32_at(head, 4),
        kind: u32_at(head, 8),
        table: u32_at(head, 12),
        payload_checksum: u32_at(head, 16),
    })
}

fn head_checksum(head: &[u8], seed: u32, offset: u64) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c_append(seed, &offset.to_le_bytes()), &head[..20])
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(word)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}
