//! What a simulated file holds now, and what of it a power loss would leave.
//!
//! ```text
//!   durable  AAAAAAAA                  what the last sync made safe
//!   pending          [write BBBB] [write CCC] [truncate] ...   since then, in order
//!   live     AAAAAAAABBBBCCC...        what a reader sees now: durable with pending applied
//! ```
//!
//! A crash keeps `durable` and some part of `pending`, see [`Tear`].

use crate::Random;

/// The unit in which real disks write whole or not at all.
const SECTOR_BYTES: u64 = 512;

/// What a power loss leaves of the operations since the last sync.
#[derive(Debug, Clone, Copy)]
enum Tear {
    /// None of them.
    Nothing,
    /// All of them.
    Everything,
    /// The operations before some point, and of the write at that point any prefix of bytes.
    BytePrefix,
    /// The operations before some point, and of the write at that point any number of whole sectors.
    SectorPrefix,
    /// Any subset of the sectors; the others are as if never written (zeros in new space), while
    /// the length may already have been recorded.
    SectorHoles,
    /// As `SectorHoles`, but new sectors not written show what the disk held there before.
    SectorGarbage,
}

impl Tear {
    fn draw(random: &mut Random) -> Self {
        match random.below(6) {
            0 => Self::Nothing,
            1 => Self::Everything,
            2 => Self::BytePrefix,
            3 => Self::SectorPrefix,
            4 => Self::SectorHoles,
            _ => Self::SectorGarbage,
        }
    }
}

#[derive(Debug, Clone)]
enum Pending {
    Write { offset: u64, bytes: Vec<u8> },
    Truncate { len: u64 },
}

/// One file's content, live and durable.
#[derive(Debug, Clone, Default)]
pub(crate) struct FileContent {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
}

impl FileContent {
    /// What a reader sees now.
    pub(crate) fn live(&self) -> &[u8] {
        &self.live
    }

    /// For tests that damage a file at rest: changes live and durable bytes alike.
    pub(crate) fn damage(&mut self, change: &mut dyn FnMut(&mut Vec<u8>)) {
        change(&mut self.live);
        self.durable.clone_from(&self.live);
        self.pending.clear();
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.pending.push(Pending::Write { offset: self.live.len() as u64, bytes: bytes.to_vec() });
        self.live.extend_from_slice(bytes);
    }

    /// Changes bytes that are there; the caller has checked that they are.
    pub(crate) fn overwrite(&mut self, offset: u64, bytes: &[u8]) {
        write_at(&mut self.live, offset, bytes);
        self.pending.push(Pending::Write { offset, bytes: bytes.to_vec() });
    }

    pub(crate) fn truncate(&mut self, len: u64) {
        self.pending.push(Pending::Truncate { len });
        self.live.resize(len as usize, 0);
    }

    /// A sync that worked: everything since the last one is safe.
    pub(crate) fn sync(&mut self) {
        for operation in self.pending.drain(..) {
            match operation {
                Pending::Write { offset, bytes } => write_at(&mut self.durable, offset, &bytes),
                Pending::Truncate { len } => self.durable.resize(len as usize, 0),
            }
        }
    }

    /// A sync that failed: some of the operations since the last one have reached the disk, and
    /// the system now takes all of them for written, so that no later sync tries them again.
    pub(crate) fn fail_sync(&mut self, random: &mut Random) {
        self.durable = self.after_crash(random).live;
        self.pending.clear();
    }

    /// The file as found after a power loss.
    pub(crate) fn after_crash(&self, random: &mut Random) -> Self {
        let mut survived = self.durable.clone();
        let tear = Tear::draw(random);
        let stop = match tear {
            Tear::Nothing => 0,
            Tear::BytePrefix | Tear::SectorPrefix => random.index(self.pending.len() + 1),
            Tear::Everything | Tear::SectorHoles | Tear::SectorGarbage => self.pending.len(),
        };
        for operation in &self.pending[..stop] {
            match operation {
                Pending::Truncate { len } => survived.resize(*len as usize, 0),
                Pending::Write { offset, bytes } => match tear {
                    Tear::SectorHoles => write_some(&mut survived, *offset, bytes, random, false),
                    Tear::SectorGarbage => write_some(&mut survived, *offset, bytes, random, true),
                    _ => write_at(&mut survived, *offset, bytes),
                },
            }
        }
        if let Some(Pending::Write { offset, bytes }) = self.pending.get(stop) {
            let kept = match tear {
                Tear::BytePrefix => random.index(bytes.len() + 1),
                Tear::SectorPrefix => {
                    let end = offset + random.below(bytes.len() as u64 + 1);
                    let cut = end - end % SECTOR_BYTES;
                    cut.saturating_sub(*offset) as usize
                }
                _ => 0,
            };
            write_at(&mut survived, *offset, &bytes[..kept]);
        }
        Self { live: survived.clone(), durable: survived, pending: Vec::new() }
    }
}

/// Writes `bytes` at `offset`; space between the end and `offset` reads as zeros.
fn write_at(content: &mut Vec<u8>, offset: u64, bytes: &[u8]) {
    if bytes.is_empty() {
        return;
    }
    let start = offset as usize;
    let end = start + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[start..end].copy_from_slice(bytes);
}

/// Writes each sector of `bytes` or not, by chance.
fn write_some(content: &mut Vec<u8>, offset: u64, bytes: &[u8], random: &mut Random, garbage: bool) {
    let mut start = 0;
    while start < bytes.len() {
        let position = offset + start as u64;
        let in_sector = (SECTOR_BYTES - position % SECTOR_BYTES) as usize;
        let end = bytes.len().min(start + in_sector);
        if random.chance(1, 2) {
            write_at(content, position, &bytes[start..end]);
        } else if garbage && position >= content.len() as u64 {
            // Only new space: a sector that was there keeps what it held.
            let mut old = vec![0; end - start];
            random.fill(&mut old);
            write_at(content, position, &old);
        }
        start = end;
    }
    // The new length may reach the disk before the data does.
    let end = offset as usize + bytes.len();
    if content.len() < end && random.chance(1, 2) {
        content.resize(end, 0);
    }
}
