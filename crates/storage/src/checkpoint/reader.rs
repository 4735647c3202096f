//! Reading a checkpoint, whatever the bytes are.

use super::block::FORMAT_VERSION;
use super::block::{BLOCK_HEADER_BYTES, BlockKind, Counts, HEADER_BYTES, Header, HeaderFault, open};
use super::directory::Found;
use super::fault::{damaged, io_error, newer, of_another_database};
use fabius_env::{Disk, DiskFile};
use fabius_value::{Error, Result};

/// A checkpoint that is read from its beginning to its end.
pub struct CheckpointReader<'d> {
    disk: &'d dyn Disk,
    file: Box<dyn DiskFile>,
    name: String,
    header: Header,
    seed: u32,
    bytes: u64,
    offset: u64,
    counts: Counts,
    payload: Vec<u8>,
}

/// A block that was read.
#[derive(Clone, Copy, Debug)]
pub struct Block<'r> {
    /// What its items are.
    pub kind: BlockKind,
    /// How many there are.
    pub items: u32,
    /// Where it begins in the file.
    pub offset: u64,
    /// The items.
    pub payload: &'r [u8],
}

/// What an inspection found of a checkpoint that is whole.
#[derive(Clone, Copy, Debug)]
pub struct Inspection {
    /// What it says of itself.
    pub header: Header,
    /// What it holds.
    pub counts: Counts,
    /// The checkpoint's size in the file.
    pub bytes: u64,
}

impl<'d> CheckpointReader<'d> {
    /// Begins to read; with `database_id`, a checkpoint of that database.
    ///
    /// # Errors
    /// `XX001` if the header is damaged or not that of the name, `0A000` if a later version has written it,
    /// `55000` if it belongs to another database; or as the disk fails.
    pub fn open(
        disk: &'d dyn Disk,
        found: &Found,
        database_id: Option<[u8; 16]>,
    ) -> Result<CheckpointReader<'d>> {
        let name = found.name.as_str();
        let opened = disk.open_read(name).and_then(|file| Ok((file.len()?, file)));
        let (bytes, file) = opened.map_err(|error| io_error("opening a checkpoint", disk, name, &error))?;
        let mut head = [0; HEADER_BYTES];
        let damaged = |fact: &str| damaged(disk, name, 0, fact);
        if bytes < HEADER_BYTES as u64 {
            return Err(damaged("the header is incomplete"));
        }
        read_exact(&*file, &mut head, 0)
            .map_err(|error| io_error("reading a checkpoint", disk, name, &error))?;
        let (header, seed) = match Header::decode(&head) {
            Ok(decoded) => decoded,
            Err(HeaderFault::Bad(fact)) => return Err(damaged(fact)),
            Err(HeaderFault::Newer(version)) => return Err(newer(disk, name, version, FORMAT_VERSION)),
        };
        if database_id.is_some_and(|id| id != header.database_id) {
            return Err(of_another_database(disk, name));
        }
        if header.seq != found.seq {
            return Err(damaged(&format!("it is the checkpoint at {}, not that of its name", header.seq)));
        }
        Ok(CheckpointReader {
            disk,
            file,
            name: name.to_string(),
            header,
            seed,
            bytes,
            offset: HEADER_BYTES as u64,
            counts: Counts::default(),
            payload: Vec::new(),
        })
    }

    /// What the checkpoint says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The checkpoint's size in the file.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What has been read so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The error of an item that is not what it should be, in a block at `offset`.
    pub fn damaged(&self, offset: u64, fact: &str) -> Error {
        damaged(self.disk, &self.name, offset, fact)
    }

    /// The next block; `None` once the end has been read, and everything was there.
    ///
    /// # Errors
    /// `XX001` with file and offset if the next block is not what was written; or as the disk fails.
    pub fn next_block(&mut self) -> Result<Option<Block<'_>>> {
        let offset = self.offset;
        let mut head = [0; BLOCK_HEADER_BYTES];
        if self.bytes - offset < BLOCK_HEADER_BYTES as u64 {
            return Err(self.damaged(offset, "the file ends early"));
        }
        self.read(offset, &mut head)?;
        let Some(block) = open(&head, self.seed, offset) else {
            return Err(self.damaged(offset, "a block header's checksum is wrong"));
        };
        let start = offset + BLOCK_HEADER_BYTES as u64;
        if self.bytes - start < u64::from(block.payload_bytes) {
            return Err(self.damaged(offset, "the file ends inside a block"));
        }
        let mut payload = std::mem::take(&mut self.payload);
        payload.resize(block.payload_bytes as usize, 0);
        self.read(start, &mut payload)?;
        if crc32c::crc32c(&payload) != block.payload_checksum {
            return Err(self.damaged(offset, "a block's checksum is wrong"));
        }
        self.payload = payload;
        self.offset = start + u64::from(block.payload_bytes);
        match BlockKind::of(block.kind, block.table) {
            None => Err(self.damaged(offset, "a block is of no known kind")),
            Some(BlockKind::End) => self.check_end(offset).map(|()| None),
            Some(kind) => {
                self.counts.add(kind, block.items);
                Ok(Some(Block { kind, items: block.items, offset, payload: &self.payload }))
            }
        }
    }

    fn check_end(&self, offset: u64) -> Result<()> {
        if self.payload != self.counts.encode() {
            return Err(self.damaged(offset, "blocks are missing"));
        }
        if self.offset != self.bytes {
            return Err(self.damaged(self.offset, "there are bytes after the end"));
        }
        Ok(())
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read_exact(&*self.file, buffer, offset)
            .map_err(|error| io_error("reading a checkpoint", self.disk, &self.name, &error))
    }
}

fn read_exact(file: &dyn DiskFile, mut buffer: &mut [u8], mut offset: u64) -> std::io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset) {
            Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                buffer = &mut buffer[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads a whole checkpoint without using what it holds: whether it is what was written, and with `database_id` by that
/// database.
///
/// # Errors
/// As [`CheckpointReader::open`] and [`CheckpointReader::next_block`].
pub fn inspect(disk: &dyn Disk, found: &Found, database_id: Option<[u8; 16]>) -> Result<Inspection> {
    let mut reader = CheckpointReader::open(disk, found, database_id)?;
    while reader.next_block()?.is_some() {}
    Ok(Inspection { header: reader.header, counts: reader.counts, bytes: reader.bytes })
}
