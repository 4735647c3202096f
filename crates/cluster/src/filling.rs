//! Filling a node from a checkpoint of another, when what it needs next of the log is not there any more.
//!
//! A node that is too far behind is told so by the leader's `MsgSnapshot`. It notes in its hard state up to where it
//! has to be filled, stops, and is filled when it is opened again, before it takes part in anything:
//!
//! ```text
//!   stopped --open--> ask a member for a part --> write it --> ... --> whole? --> hard state begins at the
//!                        ^         |                                    |         checkpoint, old log and
//!                        |         |                                    |         checkpoints go
//!                        '-- next <- no answer, too old, damaged <------'
//!                             '--> nobody has one: go on with the old log, until it is told again
//! ```
//!
//! Nothing that the node has promised is lost by it: the leader found the last entry that both logs have, and it is
//! before the first that the leader still has; entries behind it that were agreed on with this node's help would be
//! in the leader's log too, and both would have them. So whatever is agreed on and was in this node's log is in a
//! checkpoint behind that point, and term and vote stay.
//!
//! Who is told to be filled may be needed for a majority without the node that told it: so it does not wait for ever.

use crate::hard_state::{Fill, HardState};
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

/// How often each member is asked in vain before the node goes on with what it has.
const ROUNDS: usize = 2;
/// Ticks without an answer, after which a member is asked again.
const PATIENCE_TICKS: u64 = 10;
/// How often, before another one is asked.
const REPEATS: u32 = 3;
/// The name under which a checkpoint is written that is not whole yet.
const UNFINISHED: &str = "filling.checkpoint.new";

/// A node that is being filled.
pub struct Filling {
    disk: Arc<dyn Disk>,
    checkpoints: Arc<dyn Disk>,
    log: Arc<dyn Disk>,
    database: DatabaseId,
    hard_state: HardState,
    up_to: u64,
    /// The member that is asked, by its place among the others.
    asked: usize,
    /// Members that were asked in vain since something has come.
    in_vain: usize,
    /// How often the same was asked of the same without an answer.
    repeated: u32,
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
    /// The node can be opened, and begins with the checkpoint.
    Whole,
    /// Nobody has a checkpoint that goes far enough: the node can be opened as it was.
    InVain,
}

/// Whether the node in a directory has to be filled before it is opened.
pub fn must_be_filled(disk: &dyn Disk) -> bool {
    HardState::read(disk).is_ok_and(|state| state.is_some_and(|state| state.fill != Fill::No))
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
        let Some(hard_state) = HardState::read(&*disk).map_err(|error| unusable(&*disk, error))? else {
            return Ok(None);
        };
        let mut filling = Filling {
            disk,
            checkpoints,
            log,
            database,
            hard_state,
            up_to: 0,
            asked: 0,
            in_vain: 0,
            repeated: 0,
            silence: None,
            receiving: None,
        };
        match filling.hard_state.fill {
            Fill::No => Ok(None),
            Fill::UpTo(index) => {
                filling.up_to = index;
                Ok(Some(filling))
            }
            Fill::TakesOver => filling.take_over().map(|()| None),
        }
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
    ///
    /// # Errors
    /// As the disk fails.
    pub fn tick(&mut self, outbox: &mut dyn Outbox) -> Result<Filled> {
        match &mut self.silence {
            Some(silence) if *silence < PATIENCE_TICKS => *silence += 1,
            Some(_) if self.repeated < REPEATS => {
                self.repeated += 1;
                self.ask(outbox);
            }
            Some(_) => return self.ask_another(outbox),
            None => self.ask(outbox),
        }
        Ok(Filled::NotYet)
    }

    fn ask_another(&mut self, outbox: &mut dyn Outbox) -> Result<Filled> {
        (self.asked, self.in_vain, self.repeated) = (self.asked + 1, self.in_vain + 1, 0);
        self.receiving = None;
        if self.in_vain > ROUNDS * self.hard_state.members.len() {
            self.hard_state.fill = Fill::No;
            self.write_hard_state()?;
            return Ok(Filled::InVain);
        }
        self.ask(outbox);
        Ok(Filled::NotYet)
    }

    fn write_hard_state(&self) -> Result<()> {
        self.hard_state.write(&*self.disk).map_err(|error| self.failed(&error))
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
        // Whoever leads by the time this node is full has to have what comes behind.
        if let Some(seq) = seq {
            let keep = Message::FilledFrom { seq }.encode();
            others.iter().filter(|one| *one != other).for_each(|one| outbox.send(*one, keep.clone()));
        }
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
        if part.point.index < self.up_to {
            // It may be the late answer of one who was asked before.
            return if self.receiving.is_some() { Ok(Filled::NotYet) } else { self.ask_another(outbox) };
        }
        let begun =
            self.receiving.as_ref().map(|receiving| (receiving.seq, receiving.bytes, receiving.total));
        let expected = begun.unwrap_or((part.point.seq, 0, part.total));
        if (part.point.seq, part.offset, part.total) != expected {
            // It was asked for twice.
            return Ok(Filled::NotYet);
        }
        self.write(&part).map_err(|error| self.failed(&error))?;
        (self.in_vain, self.repeated) = (0, 0);
        if self.receiving.as_ref().is_some_and(|receiving| receiving.bytes < receiving.total) {
            self.ask(outbox);
            return Ok(Filled::NotYet);
        }
        if !self.is_sound(&part)? {
            return self.ask_another(outbox);
        }
        self.hard_state = HardState {
            commit: part.point.index,
            begins: part.point,
            fill: Fill::TakesOver,
            members,
            members_at,
            ..self.hard_state.clone()
        };
        self.write_hard_state()?;
        self.take_over().map(|()| Filled::Whole)
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

    /// Whether a checkpoint that is all there, and durable, is what was written. It does not have its name yet:
    /// should this end here, the node may have to go on without it.
    fn is_sound(&mut self, part: &Part) -> Result<bool> {
        let Some(mut receiving) = self.receiving.take() else { return Ok(false) };
        let synced = receiving.file.sync().and_then(|()| self.checkpoints.sync());
        synced.map_err(|error| self.failed(&error))?;
        let found = Found { name: UNFINISHED.into(), seq: Seq(part.point.seq) };
        match checkpoint::inspect(&*self.checkpoints, &found, Some(self.database.0)) {
            Ok(_) => Ok(true),
            Err(damage) if damage.state() == SqlState::DATA_CORRUPTED => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Puts the checkpoint at which the hard state begins in the place of everything else that the node had. Begun
    /// again after a crash, it ends the same.
    fn take_over(&mut self) -> Result<()> {
        let begins = self.hard_state.begins;
        let there = checkpoint::list(&*self.checkpoints)?;
        // One that begins anew has none.
        if begins.seq > 0 && there.iter().all(|found| found.seq.0 != begins.seq) {
            let name = checkpoint::file_name(Seq(begins.seq));
            let named = self.checkpoints.rename(UNFINISHED, &name).and_then(|()| self.checkpoints.sync());
            named.map_err(|error| self.failed(&error))?;
        }
        let others = there.into_iter().filter(|other| other.seq.0 != begins.seq).map(|other| other.name);
        checkpoint::delete(&*self.checkpoints, &others.collect::<Vec<String>>())?;
        fabius_log::delete(&*self.log).map_err(|error| log_error(&error))?;
        let options = LogOptions {
            flusher: Flusher::Manual,
            first_seq: begins.seq + 1,
            ..LogOptions::new(self.database)
        };
        let (log, _) = Log::open(self.log.clone(), options, |_| Ok::<(), LogError>(()))
            .map_err(|error| log_error(&error))?;
        log.close().map_err(|error| log_error(&error))?;
        self.hard_state.fill = Fill::No;
        self.write_hard_state()
    }

    fn failed(&self, error: &io::Error) -> Error {
        io_error("filling the node", &*self.disk, "", error)
    }
}

/// Parts are asked for one after the other.
const _: () = assert!(PART_BYTES < fabius_env::MAX_MESSAGE as u64);
