//! Writing a checkpoint.

use super::block::{BLOCK_HEADER_BYTES, BlockKind, Counts, Header, seal};
use super::directory::{file_name, unfinished_name};
use super::fault::io_error;
use fabius_env::{Disk, DiskFile};
use fabius_value::{Error, Result, SqlState};
use std::io;

/// A block with this much in it is written.
const BLOCK_BYTES: usize = 256 << 10;

/// A block is at most as long as its header can say: a longer item is refused.
const BLOCK_BYTES_MAX: usize = u32::MAX as usize;

/// So much is synced at a time: one sync of everything at the end would hold up those of the log.
const SYNCED_BYTES: u64 = 32 << 20;

/// Items of one kind on their way into a block, which any thread can fill.
pub struct BlockItems {
    /// Behind room for the block's header.
    bytes: Vec<u8>,
    count: u32,
}

impl Default for BlockItems {
    fn default() -> BlockItems {
        BlockItems { bytes: vec![0; BLOCK_HEADER_BYTES], count: 0 }
    }
}

impl BlockItems {
    /// Adds an item, which `encode` appends to the bytes it is given.
    pub fn add(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bytes);
        self.count += 1;
    }

    /// Whether these are worth writing.
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BLOCK_BYTES
    }

    fn clear(&mut self) {
        self.bytes.truncate(BLOCK_HEADER_BYTES);
        self.count = 0;
    }
}

/// A checkpoint in the making. Dropped before it is finished, it leaves nothing.
pub struct CheckpointWriter<'d> {
    disk: &'d dyn Disk,
    file: Box<dyn DiskFile>,
    header: Header,
    seed: u32,
    /// The block that is being filled.
    block: BlockItems,
    kind: BlockKind,
    counts: Counts,
    bytes: u64,
    synced: u64,
    finished: bool,
}

impl<'d> CheckpointWriter<'d> {
    /// Begins a checkpoint.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn create(disk: &'d dyn Disk, header: Header) -> Result<CheckpointWriter<'d>> {
        let name = unfinished_name(header.seq);
        let (bytes, seed) = header.encode();
        let created = (|| {
            match disk.delete(&name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            disk.create(&name)
        })();
        let file = created.map_err(|error| io_error("beginning a checkpoint", disk, &name, &error))?;
        let mut writer = CheckpointWriter {
            disk,
            file,
            header,
            seed,
            block: BlockItems::default(),
            kind: BlockKind::Definitions,
            counts: Counts::default(),
            bytes: 0,
            synced: 0,
            finished: false,
        };
        writer.write(&bytes)?;
        Ok(writer)
    }

    /// Adds an item, which `encode` appends to the bytes it is given.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn add(&mut self, kind: BlockKind, encode: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if kind != self.kind || self.block.is_full() {
            self.end_block()?;
            self.kind = kind;
        }
        self.block.add(encode);
        Ok(())
    }

    /// Writes items as a block, if there are any, and leaves room for others.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn add_block(&mut self, kind: BlockKind, items: &mut BlockItems) -> Result<()> {
        self.end_block()?;
        self.write_block(kind, items)
    }

    /// How much has been added; the block that is being filled is not counted.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// How many bytes have been written.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the end, syncs, and gives the file its name if `may_count` agrees: from then on the database
    /// relies on it. Gives its size.
    ///
    /// # Errors
    /// As the disk fails, or why `may_count` refuses.
    pub fn finish(mut self, may_count: impl FnOnce() -> Result<()>) -> Result<(Counts, u64)> {
        self.end_block()?;
        let counts = self.counts;
        self.add(BlockKind::End, |to| to.extend_from_slice(&counts.encode()))?;
        self.end_block()?;
        self.sync()?;
        may_count()?;
        let (from, to) = (unfinished_name(self.header.seq), file_name(self.header.seq));
        let named = self.disk.rename(&from, &to).and_then(|()| {
            self.finished = true;
            self.disk.sync()
        });
        named.map_err(|error| io_error("naming a checkpoint", self.disk, &to, &error))?;
        Ok((counts, self.bytes))
    }

    fn end_block(&mut self) -> Result<()> {
        let mut block = std::mem::take(&mut self.block);
        self.write_block(self.kind, &mut block)?;
        self.block = block;
        Ok(())
    }

    fn write_block(&mut self, kind: BlockKind, block: &mut BlockItems) -> Result<()> {
        if block.count == 0 {
            return Ok(());
        }
        if block.bytes.len() > BLOCK_BYTES_MAX {
            let fact = format!("a checkpoint cannot take an item of {} bytes", block.bytes.len());
            return Err(Error::new(SqlState::PROGRAM_LIMIT, fact)
                .with_detail("it is a row, or the result of a call with an idempotency key"));
        }
        seal(&mut block.bytes, kind, block.count, self.seed, self.bytes);
        self.counts.add(kind, block.count);
        self.write(&block.bytes)?;
        block.clear();
        if self.bytes - self.synced >= SYNCED_BYTES { self.sync() } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.append_all(bytes).map_err(|error| self.failed("writing a checkpoint", &error))?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync().map_err(|error| self.failed("syncing a checkpoint", &error))?;
        self.synced = self.bytes;
        Ok(())
    }

    fn failed(&self, doing: &str, error: &io::Error) -> Error {
        io_error(doing, self.disk, &unfinished_name(self.header.seq), error)
    }
}

impl Drop for CheckpointWriter<'_> {
    fn drop(&mut self) {
        if !self.finished {
            // What cannot be deleted now is deleted when the database is opened next.
            let _ = self.disk.delete(&unfinished_name(self.header.seq));
        }
    }
}
