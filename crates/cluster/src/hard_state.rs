//! What a node must not forget besides its log: whom it voted for, and who the members are.
//!
//! Two votes in one term by one node are what Raft must never see, so the file is written and synced before a vote or
//! a term leaves the node, and a file that is damaged keeps the node out: it cannot know what it has promised.
//!
//! ```text
//! offset  bytes
//!      0      8  "FABIUSHS"
//!      8      4  format version, 1
//!     12      4  length of the rest without its checksum
//!     16      8  this node
//!     24      8  term
//!     32      8  the node voted for in that term; 0 none
//!     40      8  commit index, as far as it was known
//!     48     24  where the log begins: seq, index and term of the entry before its first
//!     72      8  0, or the index that a checkpoint has to reach from which the node is filled before it
//!                goes on; all ones once it is there, or the node begins anew, and its log is to go
//!     80      8  0, or the seq after which the node had computed something else than the majority: it stays out
//!     88      8  1 if the node is the successor of one that had a vote, and claims it
//!     96      8  index of the newest change of members that is in what follows
//!    104         members: 4 their number, then of each: node 8, 4 bytes voter (1) or learner (0), 4 + n address
//!                4 crc32c of everything before it
//! ```

use std::io;

use fabius_env::Disk;

use crate::Point;
use crate::fields::{Fields, put_bytes, put_u64};

/// The file in the directory of a node.
pub const FILE_NAME: &str = "hard-state";
const NEW_FILE_NAME: &str = "hard-state.new";
const MAGIC: [u8; 8] = *b"FABIUSHS";
const FORMAT_VERSION: u32 = 1;

/// One node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The member's number.
    pub node: u64,
    /// Where the others reach it.
    pub address: String,
    /// Whether it has a vote; otherwise it only learns what is agreed on.
    pub votes: bool,
}

/// Whether a node has to be filled from another's checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fill {
    /// It goes on with what it has.
    #[default]
    No,
    /// From one that goes at least to this index.
    UpTo(u64),
    /// The checkpoint is there, and `begins` is its place, or the node begins anew; the log that it had is to go.
    TakesOver,
}

impl Fill {
    const TAKES_OVER: u64 = u64::MAX;

    fn encode(self) -> u64 {
        match self {
            Fill::No => 0,
            Fill::UpTo(index) => index,
            Fill::TakesOver => Fill::TAKES_OVER,
        }
    }

    fn decode(number: u64) -> Fill {
        match number {
            0 => Fill::No,
            Fill::TAKES_OVER => Fill::TakesOver,
            index => Fill::UpTo(index),
        }
    }
}

/// What a node must not forget besides its log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HardState {
    /// This node.
    pub node: u64,
    /// The newest term that it knows of.
    pub term: u64,
    /// Whom it voted for in that term; zero if nobody.
    pub vote: u64,
    /// What was known to be agreed on when this was written: an index.
    pub commit: u64,
    /// The entry before the first one that its log has ever had.
    pub begins: Point,
    /// Whether it has to be filled before it goes on.
    pub fill: Fill,
    /// The seq after which it had computed something else than the majority, which keeps it out; zero if it never had.
    pub differs_at: u64,
    /// Whether the node has come in the place of one that had a vote.
    pub claims_vote: bool,
    /// The index of the newest change of members that is in `members`.
    pub members_at: u64,
    /// The members, by number.
    pub members: Vec<Member>,
}

/// Why there is no hard state to be had.
#[derive(Debug)]
pub enum HardStateError {
    /// The file is there, and is not as it was written.
    Damaged(&'static str),
    /// A later version wrote it.
    Newer(u32),
    /// The disk fails.
    Disk(io::Error),
}

impl HardState {
    /// Reads it; nothing if there never was one.
    ///
    /// # Errors
    /// If it is damaged, a later version's, or the disk fails.
    pub fn read(disk: &dyn Disk) -> Result<Option<HardState>, HardStateError> {
        match disk.read(FILE_NAME) {
            Ok(bytes) => HardState::decode(&bytes).map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(HardStateError::Disk(error)),
        }
    }

    /// Writes it, durably, whole or not at all.
    ///
    /// # Errors
    /// If the disk fails.
    pub fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        match disk.delete(NEW_FILE_NAME) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = disk.create(NEW_FILE_NAME)?;
        file.append_all(&self.encode())?;
        file.sync()?;
        disk.rename(NEW_FILE_NAME, FILE_NAME)?;
        disk.sync()
    }

    fn encode(&self) -> Vec<u8> {
        let mut rest = Vec::new();
        let numbers = [
            self.node,
            self.term,
            self.vote,
            self.commit,
            self.begins.seq,
            self.begins.index,
            self.begins.term,
            self.fill.encode(),
            self.differs_at,
            self.claims_vote.into(),
            self.members_at,
        ];
        numbers.iter().for_each(|number| put_u64(&mut rest, *number));
        rest.extend_from_slice(&(self.members.len() as u32).to_le_bytes());
        for member in &self.members {
            put_u64(&mut rest, member.node);
            rest.extend_from_slice(&u32::from(member.votes).to_le_bytes());
            put_bytes(&mut rest, member.address.as_bytes());
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes.extend_from_slice(&(rest.len() as u32).to_le_bytes());
        bytes.append(&mut rest);
        let checksum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Result<HardState, HardStateError> {
        let damaged = HardStateError::Damaged;
        let (content, checksum) = bytes.split_last_chunk::<4>().ok_or(damaged("the file is too short"))?;
        if crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
            return Err(damaged("the checksum is wrong"));
        }
        let mut reader = Fields(content);
        if reader.take(8) != Some(&MAGIC[..]) {
            return Err(damaged("the file is not one of Fabius"));
        }
        match reader.u32() {
            Some(FORMAT_VERSION) => {}
            Some(version) if version > FORMAT_VERSION => return Err(HardStateError::Newer(version)),
            _ => return Err(damaged("the version is not known")),
        }
        let read = (|| {
            (reader.u32()? as usize == reader.0.len()).then_some(())?;
            let mut state = HardState {
                node: reader.u64()?,
                term: reader.u64()?,
                vote: reader.u64()?,
                commit: reader.u64()?,
                begins: Point { seq: reader.u64()?, index: reader.u64()?, term: reader.u64()? },
                fill: Fill::decode(reader.u64()?),
                differs_at: reader.u64()?,
                claims_vote: reader.u64()? == 1,
                members_at: reader.u64()?,
                members: Vec::new(),
            };
            for _ in 0..reader.u32()? {
                let (node, votes) = (reader.u64()?, reader.u32()? == 1);
                state.members.push(Member { node, address: reader.text()?, votes });
            }
            reader.whole(state)
        })();
        read.ok_or(damaged("the fields do not fit each other"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::SimulatedDisk;

    fn state() -> HardState {
        HardState {
            node: 2,
            term: 9,
            vote: 3,
            commit: 40,
            begins: Point { seq: 7, index: 5, term: 1 },
            fill: Fill::UpTo(6),
            differs_at: 5,
            claims_vote: true,
            members_at: 12,
            members: vec![
                Member { node: 1, address: "127.0.0.1:7001".into(), votes: true },
                Member { node: 2, address: String::new(), votes: false },
            ],
        }
    }

    /// Goal: it reads back, and every flipped bit and every other length is noticed.
    #[test]
    fn reads_back_and_notices_every_change() {
        let bytes = state().encode();
        assert_eq!(HardState::decode(&bytes).expect("sound"), state());
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(HardState::decode(&flipped).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(HardState::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
    }

    /// Goal: after a power loss at any operation, it is the one from before or the one from after.
    #[test]
    fn a_power_loss_leaves_one_or_the_other() {
        let (before, after) = (HardState { term: 8, ..state() }, state());
        for operations in 0..12 {
            for seed in 0..20 {
                let disk = SimulatedDisk::new(seed);
                before.write(&disk).expect("written");
                disk.fault(fabius_env::Fault::PowerLoss { operations });
                let done = after.write(&disk).is_ok();
                let found = HardState::read(&disk.crash(seed)).expect("sound").expect("there");
                assert!(found == after || (!done && found == before), "after {operations} operations");
            }
        }
    }
}
