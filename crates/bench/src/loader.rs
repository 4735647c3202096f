//! Filling a database with the rows that a workload begins with.

use crate::interrupt::Interrupt;
use fabius::{Batch, BatchBuilder, Database};
use fabius_program::arguments::ArgumentWriter;
use fabius_program::catalog::ProcedureId;
use fabius_value::{Error, Result, SqlState};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A batch is handed in when its arguments have this many bytes.
const BATCH_BYTES: usize = 256 << 10;
/// Batches on their way at most.
const IN_FLIGHT: usize = 4;

/// Hands calls in in batches; a call that aborts is an error.
pub struct Loader<'d> {
    database: &'d Database,
    interrupt: &'d Interrupt,
    procedures: HashMap<&'static str, ProcedureId>,
    builder: BatchBuilder,
    bytes: usize,
    arguments: Vec<u8>,
    in_flight: VecDeque<Arc<Batch>>,
}

impl<'d> Loader<'d> {
    /// Loads into `database`, until it is interrupted.
    pub fn new(database: &'d Database, interrupt: &'d Interrupt) -> Loader<'d> {
        Loader {
            database,
            interrupt,
            procedures: HashMap::new(),
            builder: BatchBuilder::new(),
            bytes: 0,
            arguments: Vec::new(),
            in_flight: VecDeque::new(),
        }
    }

    /// Calls a procedure with the arguments that `write` writes.
    ///
    /// # Errors
    /// `42883` for an unknown procedure; why this or an earlier call aborted; `57014` if interrupted.
    pub fn call(
        &mut self,
        procedure: &'static str,
        write: impl FnOnce(&mut ArgumentWriter<'_>),
    ) -> Result<()> {
        let mut arguments = std::mem::take(&mut self.arguments);
        arguments.clear();
        write(&mut ArgumentWriter::new(&mut arguments));
        let handed_in = self.call_encoded(procedure, &arguments);
        self.arguments = arguments;
        handed_in
    }

    /// Calls a procedure with encoded arguments.
    ///
    /// # Errors
    /// As [`Loader::call`].
    pub fn call_encoded(&mut self, procedure: &'static str, arguments: &[u8]) -> Result<()> {
        let id = match self.procedures.get(procedure) {
            Some(id) => *id,
            None => {
                let id = self.database.procedure(procedure)?.id;
                self.procedures.insert(procedure, id);
                id
            }
        };
        self.builder.push(id, arguments, None, false)?;
        self.bytes += arguments.len();
        if self.bytes >= BATCH_BYTES {
            self.submit()?;
        }
        Ok(())
    }

    /// Calls a procedure of the form `load(from, until)` for consecutive ranges of `0..count`.
    ///
    /// # Errors
    /// As [`Loader::call`].
    pub fn ranges(
        &mut self,
        procedure: &'static str,
        count: u64,
        rest: impl Fn(&mut ArgumentWriter<'_>),
    ) -> Result<()> {
        for from in (0..count).step_by(500) {
            let until = (from + 500).min(count) - 1;
            self.call(procedure, |writer| rest(writer.int(from as i64).int(until as i64)))?;
            // Few bytes of arguments make many rows here.
            if self.builder.count() >= 8 {
                self.submit()?;
            }
        }
        Ok(())
    }

    /// Waits for everything, and until it is settled.
    ///
    /// # Errors
    /// Why a call aborted.
    pub fn finish(mut self) -> Result<()> {
        self.wait()?;
        self.database.settle();
        Ok(())
    }

    /// Waits until everything so far is decided.
    ///
    /// # Errors
    /// Why a call aborted.
    pub fn wait(&mut self) -> Result<()> {
        self.submit()?;
        while !self.in_flight.is_empty() {
            self.reap()?;
        }
        Ok(())
    }

    fn submit(&mut self) -> Result<()> {
        if self.interrupt.is_raised() {
            return Err(Error::new(SqlState::CANCELED, "interrupted while rows were loaded"));
        }
        if self.in_flight.len() >= IN_FLIGHT {
            self.reap()?;
        }
        let batch = std::mem::take(&mut self.builder).build();
        self.bytes = 0;
        self.database.submit(batch.clone());
        self.in_flight.push_back(batch);
        Ok(())
    }

    fn reap(&mut self) -> Result<()> {
        let Some(batch) = self.in_flight.pop_front() else { return Ok(()) };
        self.database.wait(&batch);
        let outcomes = batch.outcomes();
        match (&outcomes.failure, outcomes.aborts.first()) {
            (Some(error), _) | (None, Some((_, error))) => Err(error.clone()),
            (None, None) => Ok(()),
        }
    }
}
