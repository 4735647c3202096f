//! A call of the log, and the state that it saw: what it did can be looked at again, beside the database.
//!
//! ```text
//! checkpoint (100)    log 101 ... 499 | 500
//!        \________________/              \
//!         a database in memory            the call, shown and not made
//! ```

use crate::{Database, Options, Procedure, StatementId, opening};
use fabius_engine::entry::{self, Entries};
use fabius_engine::foundation::log_error;
use fabius_engine::{Definitions, Foundation};
use fabius_env::RealClock;
use fabius_log::{LogError, LogErrorKind};
use fabius_program::arguments;
use fabius_value::{Error, Result, Seq, SqlState, Value};
use std::sync::Arc;

/// A call as the log has it.
#[derive(Clone)]
pub struct LoggedCall {
    /// The call's place in the order.
    pub seq: Seq,
    /// When it got that, in microseconds since 1970.
    pub time_us: i64,
    /// What was called.
    pub procedure: Arc<Procedure>,
    /// With which arguments.
    pub arguments: Vec<Value>,
    /// The key under which it happens once.
    pub key: Option<Vec<u8>>,
}

impl LoggedCall {
    fn of(call: &entry::Call<'_>, seq: Seq, time_us: i64, definitions: &Definitions) -> Result<LoggedCall> {
        let procedure = definitions.procedure(call.procedure)?.clone();
        let arguments = arguments::to_values(&procedure.program, call.arguments)?;
        Ok(LoggedCall { seq, time_us, procedure, arguments, key: call.key.map(<[u8]>::to_vec) })
    }

    /// The statement that was run, if it was no procedure with a name.
    pub fn statement(&self) -> Option<StatementId> {
        StatementId::of_name(&self.procedure.program.name)
    }
}

impl Database {
    /// The call with a seq, and a database in memory that is as this was before it. What is done there is done nowhere
    /// else.
    ///
    /// # Errors
    /// `0A000` without a log of its own, as in memory and on a node of a cluster; `55000` if the log does not have that
    /// seq, or no longer what is needed to go back there, and if it is no call; damage, with its place.
    pub fn replay(&self, seq: Seq) -> Result<(Database, LoggedCall)> {
        let (Some(log), Some(checkpoints)) = (&self.log, &self.checkpoints) else {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "the database has no log of its own to replay")
                .with_hint("open one that is in a directory, and no node of a cluster"));
        };
        log.flush_now().map_err(|error| log_error(&error))?;
        let last = log.durable_seq();
        if seq.0 > last || seq.0 == 0 {
            return Err(Error::new(SqlState::NOT_IN_STATE, format!("the log has no entry {seq}"))
                .with_detail(format!("its last is {last}")));
        }
        let begin = opening::begin_before(&*checkpoints.disk, checkpoints.database, seq)?;
        let database =
            Database::start(Arc::new(Foundation::new(Arc::new(RealClock::new()))), Options::default());
        let mut next = begin.as_ref().map_or(Seq(0), |state| state.seq).next();
        begin.into_iter().for_each(|state| database.engine.restore(state));
        let mut batches = log.read_from(next.0).map_err(|error| out_of_reach(seq, &error))?;
        while let Some(batch) = batches.next_batch().map_err(|error| out_of_reach(seq, &error))? {
            let first = Seq(batch.first_seq);
            if batch.last_seq() < seq.0 {
                database.engine.take(first, batch.entry_count, &batch.payload)?;
                next = Seq(batch.last_seq()).next();
                continue;
            }
            let Entries::Calls { time_us, bytes } =
                entry::decode_next(&batch.payload, first, batch.entry_count, next)?
            else {
                return Err(Error::new(SqlState::NOT_IN_STATE, format!("entry {seq} is no call")));
            };
            let calls = entry::calls(bytes).collect::<Result<Vec<_>>>()?;
            let (before, call) = calls.split_at((seq.0 - first.0) as usize);
            if !before.is_empty() {
                let mut payload = Vec::new();
                entry::begin_calls(time_us, &mut payload);
                before.iter().for_each(|call| entry::encode_call(call, &mut payload));
                database.engine.take(first, before.len() as u32, &payload)?;
            }
            let call = LoggedCall::of(&call[0], seq, time_us, &database.definitions())?;
            return Ok((database, call));
        }
        Err(Error::new(SqlState::NOT_IN_STATE, format!("the log has no entry {seq}")))
    }
}

/// What to say of a log that does not give what is needed for a seq.
fn out_of_reach(seq: Seq, error: &LogError) -> Error {
    if error.kind() != LogErrorKind::MissingEntries {
        return log_error(error);
    }
    Error::new(SqlState::NOT_IN_STATE, format!("the state before {seq} is no longer there"))
        .with_detail(error.to_string())
        .with_hint("a database keeps its two newest checkpoints, and the log from the older of them on")
}
