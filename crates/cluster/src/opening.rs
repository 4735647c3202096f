//! Opening a replica: hard state, log, and what of the log is in a checkpoint already.

use crate::agreed_log::Collected;
use crate::agreement::Agreement;
use crate::hard_state::{HardState, HardStateError};
use crate::{KeptCheckpoints, Member, Point, Replica, Replication};
use fabius_env::Disk;
use fabius_log::{Frame, Log};
use fabius_value::{Error, Result, Seq, SqlState};
use std::sync::Arc;

/// A replica whose log is being read.
pub struct Opening {
    disk: Arc<dyn Disk>,
    hard_state: HardState,
    collected: Collected,
    /// What the checkpoint has, as a sequence number.
    checkpoint: u64,
    /// What the checkpoint has, as a place in the log, once it has come by.
    taken: Option<Point>,
}

/// Makes the directory of a disk that of a node, and of a cluster of these members; they are the first.
///
/// # Errors
/// `55000` if it is one already; as the disk fails.
pub fn init(disk: &dyn Disk, node: u64, members: Vec<Member>) -> Result<()> {
    if HardState::read(disk).map_err(|error| unusable(disk, error))?.is_some() {
        return Err(Error::new(
            SqlState::NOT_IN_STATE,
            "the directory belongs to a node of a cluster already",
        )
        .with_detail(disk.directory().display().to_string()));
    }
    let state = HardState { node, members, ..HardState::default() };
    state.write(disk).map_err(|error| unusable(disk, HardStateError::Disk(error)))
}

impl Opening {
    /// Begins to open the node in a directory, with a checkpoint of the state after a sequence number, or with
    /// none (zero).
    ///
    /// # Errors
    /// `XX001` if what it must not forget is damaged: then it does not know what it has promised, and stays out.
    /// `55000` if the directory belongs to no node.
    pub fn begin(disk: Arc<dyn Disk>, checkpoint: Seq) -> Result<Opening> {
        let Some(hard_state) = HardState::read(&*disk).map_err(|error| unusable(&*disk, error))? else {
            return Err(Error::new(SqlState::NOT_IN_STATE, "the directory belongs to no node of a cluster")
                .with_detail(disk.directory().display().to_string()));
        };
        if hard_state.differs_at > 0 {
            return Err(crate::digests::differs(
                Seq(hard_state.differs_at),
                "what it differs in was told when it stopped",
            ));
        }
        let taken = (checkpoint.0 == hard_state.begins.seq).then_some(hard_state.begins);
        let collected = Collected::begin(hard_state.begins);
        Ok(Opening { disk, hard_state, collected, checkpoint: checkpoint.0, taken })
    }

    /// The first sequence number that the log has to have: also what is in the checkpoint others may still need from
    /// this node.
    pub fn needed(&self) -> u64 {
        self.hard_state.begins.seq + 1
    }

    /// Notes a batch of the log, in order.
    ///
    /// # Errors
    /// `XX001` if it is not what agreement leaves there.
    pub fn note(&mut self, frame: &Frame<'_>) -> Result<()> {
        if frame.last_seq() <= self.hard_state.begins.seq {
            // A segment may have more than is needed.
            return Ok(());
        }
        let entry = self
            .collected
            .note(frame)
            .map_err(|fact| Error::new(SqlState::DATA_CORRUPTED, "the log does not fit").with_detail(fact))?;
        if frame.last_seq() == self.checkpoint {
            self.taken = Some(Point { seq: self.checkpoint, index: entry.index, term: entry.term });
        }
        Ok(())
    }

    /// The replica, on its opened log. It lives under a number that it has never had, and draws what it draws from
    /// it; others can be filled from its checkpoints.
    ///
    /// # Errors
    /// `XX001` if the checkpoint is of no state between two entries of the log.
    pub fn finish(
        self,
        log: Arc<Log>,
        life: u64,
        checkpoints: Arc<KeptCheckpoints>,
        replication: Replication,
    ) -> Result<Replica> {
        let taken = self.taken.ok_or_else(|| {
            Error::new(SqlState::DATA_CORRUPTED, "the checkpoint is not one of this log").with_detail(
                format!("it has the state after sequence number {}, at which no entry ends", self.checkpoint),
            )
        })?;
        if taken.seq > 0 {
            checkpoints.note(taken);
            checkpoints.confirm(Seq(taken.seq));
        }
        let agreement =
            Agreement::new(self.disk, log, self.collected, self.hard_state, taken, life, replication)?;
        Ok(Replica::new(agreement, life, taken, checkpoints))
    }
}

pub(crate) fn unusable(disk: &dyn Disk, error: HardStateError) -> Error {
    let directory = disk.directory().display();
    match error {
        HardStateError::Damaged(why) => {
            Error::new(SqlState::DATA_CORRUPTED, "what this node must not forget is damaged")
                .with_detail(format!("{directory}/hard-state: {why}"))
                .with_hint(
                    "the node stays out, since it may have voted; remove it from the cluster and add it anew",
                )
        }
        HardStateError::Newer(version) => {
            Error::new(SqlState::DATA_CORRUPTED, "the node was run by a later version of Fabius")
                .with_detail(format!("{directory}/hard-state has format version {version}"))
                .with_hint("use that version")
        }
        HardStateError::Disk(error) => {
            Error::new(SqlState::IO_ERROR, "the hard state of this node cannot be read or written")
                .with_detail(format!("{directory}: {error}"))
        }
    }
}
