//! Filling a node from a checkpoint of another, when what it needs next of the log is not there any more.
//!
//! A node that is too far behind is told so by the leader's `MsgSnapshot`. It notes in its hard state up to where it has to be filled,
//! stops, and is filled when it is opened again, before it takes part in anything:
//!
//! ```text
//!   stopped --open--> ask a member for a part --> write it --> ... --> whole? --> old log and checkpoints go,
//!                        ^         |                                    |         hard state begins at the checkpoint
//!                        '-- next <- no answer, too old, damaged <------'
//! ```
//!
//! Nothing that the node has promised is lost by it: the leader found the last entry that both logs have, and it is before the
//! first that the leader still has; entries behind it that were agreed on with this node's help would be in the leader's log too, and both
//! would have them. So whatever is agreed on and was in this node's log is in a checkpoint behind that point, and term and vote stay.

use crate::hard_state::HardState;
use crate::kept::{PART_BYTES, Part};
use crate::opening::unusable;
use crate::wire::Message;
use crate::{Member, Outbox};
use bytes::Bytes;
use fabius_engine::foundation::log_error;
use fabius_env::{Disk, DiskFile};
use fabius_log::{DatabaseId, Flusher, Log, LogError, LogOptions};
use fabius_storage::checkpoint::{self, Found, io_error};
use fabius_value::{Error, Result, Seq, SqlState};
use std::io;
use std::sync::Arc;

/// Ticks without an answer, after which another member is asked.
const PATIENCE_TICKS: u64 = 20;
/// The name under which a checkpoint is written that is not whole yet.
const UNFINISHED: &str = "filling.checkpoint.new";

/// A node that is being filled.
pub struct Filling {
    disk: Arc<dyn Disk>,
    checkpoints: Arc<dyn Disk>,
    log: Arc<dyn Disk>,
    database: DatabaseId,
    hard_state: HardState,
    /// The member that is asked, by its place among the others.
    asked: usize,
    /// Ticks since it was.
    silence: Option<u64>,
    receiving: Option<Receiving>,
}

/// A checkpoint of which some parts are there.
struct Receiving {
    seq: u64,
    file: Box<dyn DiskFile>,
    bytes: u64,
    total: u64,
}

/// What has come of hearing something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// It goes on.
    NotYet,
    /// The node can be opened.
    Whole,
}

/// Whether the node in a directory has to be filled before it is opened.
pub fn must_be_filled(disk: &dyn Disk) -> bool {
    matches!(HardState::read(disk), Ok(Some(HardState { fill: 1.., .. })))
}

impl Filling {
    /// Begins, if the node in a directory has to be filled; with the directories of its checkpoints and its log.
    ///
    /// # Errors
    /// As [`Opening::begin`](crate::Opening::begin).
    pub fn begin(
        disk: Arc<dyn Disk>,
        checkpoints: Arc<dyn Disk>,
        log: Arc<dyn Disk>,
        database: DatabaseId,
    ) -> Result<Option<Filling>> {
        let hard_state = HardState::read(&*disk).map_err(|error| unusable(&*disk, error))?;
        let Some(hard_state) = hard_state.filter(|state| state.fill > 0) else { return Ok(None) };
        let (asked, silence, receiving) = (0, None, None);
        Ok(Some(Filling { disk, checkpoints, log, database, hard_state, asked, silence, receiving }))
    }

    /// This node.
    pub fn node(&self) -> u64 {
        self.hard_state.node
    }

    /// The members that it knows of.
    pub fn members(&self) -> &[Member] {
        &self.hard_state.members
    }

    /// Lets time go on.
    pub fn tick(&mut self, outbox: &mut dyn Outbox) {
        match &mut self.silence {
            Some(silence) if *silence < PATIENCE_TICKS => *silence += 1,
            Some(_) => self.ask_another(outbox),
            None => self.ask(outbox),
        }
    }

    fn ask_another(&mut self, outbox: &mut dyn Outbox) {
        self.asked += 1;
        self.receiving = None;
        self.ask(outbox);
    }

    /// Asks for the next part.
    fn ask(&mut self, outbox: &mut dyn Outbox) {
        let node = self.hard_state.node;
        let others = self.hard_state.members.iter().map(|member| member.node).filter(|other| *other != node);
        let others: Vec<u64> = others.collect();
        let Some(other) = others.get(self.asked % others.len().max(1)) else { return };
        let (seq, offset) =
            self.receiving.as_ref().map_or((None, 0), |receiving| (Some(receiving.seq), receiving.bytes));
        outbox.send(*other, Message::WantPart { node, seq, offset }.encode());
        self.silence = Some(0);
    }

    /// Hears what another node says.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn hear(&mut self, message: &Bytes, outbox: &mut dyn Outbox) -> Result<Filled> {
        let Some(Message::Part { part, members, members_at }) = Message::decode(message) else {
            return Ok(Filled::NotYet);
        };
        let is_new_enough = part.point.index >= self.hard_state.fill;
        let begun =
            self.receiving.as_ref().map(|receiving| (receiving.seq, receiving.bytes, receiving.total));
        let (seq, bytes, total) = begun.unwrap_or((part.point.seq, 0, part.total));
        if !is_new_enough {
            self.ask_another(outbox);
            return Ok(Filled::NotYet);
        }
        if (part.point.seq, part.offset, part.total) != (seq, bytes, total) {
            // It was asked for twice.
            return Ok(Filled::NotYet);
        }
        self.write(&part).map_err(|error| self.failed(&error))?;
        if self.receiving.as_ref().is_some_and(|receiving| receiving.bytes < receiving.total) {
            self.ask(outbox);
            return Ok(Filled::NotYet);
        }
        if !self.take_over(&part)? {
            self.ask_another(outbox);
            return Ok(Filled::NotYet);
        }
        let hard_state = HardState {
            commit: part.point.index,
            begins: part.point,
            fill: 0,
            members,
            members_at,
            ..self.hard_state.clone()
        };
        hard_state.write(&*self.disk).map_err(|error| self.failed(&error))?;
        Ok(Filled::Whole)
    }

    fn write(&mut self, part: &Part) -> io::Result<()> {
        if self.receiving.is_none() {
            match self.checkpoints.delete(UNFINISHED) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = self.checkpoints.create(UNFINISHED)?;
            self.receiving = Some(Receiving { seq: part.point.seq, file, bytes: 0, total: part.total });
        }
        if let Some(receiving) = &mut self.receiving {
            receiving.file.append_all(&part.bytes)?;
            receiving.bytes += part.bytes.len() as u64;
        }
        Ok(())
    }

    /// Puts a checkpoint that is all there in the place of everything that the node had; whether it is sound.
    fn take_over(&mut self, part: &Part) -> Result<bool> {
        let Some(mut receiving) = self.receiving.take() else { return Ok(false) };
        let found = Found { name: checkpoint::file_name(Seq(part.point.seq)), seq: Seq(part.point.seq) };
        let named = receiving.file.sync().and_then(|()| {
            self.checkpoints.rename(UNFINISHED, &found.name)?;
            self.checkpoints.sync()
        });
        named.map_err(|error| self.failed(&error))?;
        if let Err(damage) = checkpoint::inspect(&*self.checkpoints, &found, Some(self.database.0)) {
            if damage.state() != SqlState::DATA_CORRUPTED {
                return Err(damage);
            }
            checkpoint::delete(&*self.checkpoints, &[found.name])?;
            return Ok(false);
        }
        let others = checkpoint::list(&*self.checkpoints)?;
        let others = others.into_iter().filter(|other| *other != found).map(|other| other.name);
        checkpoint::delete(&*self.checkpoints, &others.collect::<Vec<String>>())?;
        fabius_log::delete(&*self.log).map_err(|error| log_error(&error))?;
        let options = LogOptions {
            flusher: Flusher::Manual,
            first_seq: part.point.seq + 1,
            ..LogOptions::new(self.database)
        };
        let (log, _) = Log::open(self.log.clone(), options, |_| Ok::<(), LogError>(()))
            .map_err(|error| log_error(&error))?;
        log.close().map_err(|error| log_error(&error))?;
        Ok(true)
    }

    fn failed(&self, error: &io::Error) -> Error {
        io_error("filling the node", &*self.disk, "", error)
    }
}

/// Parts are asked for one after the other.
const _: () = assert!(PART_BYTES < fabius_env::MAX_MESSAGE as u64);
