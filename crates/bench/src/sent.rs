//! Calls and queries that were made: what became of them.

use crate::operation::Operation;
use crate::recorder::Recorder;
use fabius::{Batch, Database, Result};
use std::sync::Arc;
use std::time::Duration;

/// The most operations that a workload may have.
const OPERATIONS_MAX: usize = 32;

/// A batch on its way.
pub struct Sent {
    /// Handed in.
    pub batch: Arc<Batch>,
    /// When, on the engine's clock; for calls that were late, when they were due.
    pub sent_ns: u64,
    /// The operation of each call.
    pub operations: Vec<u8>,
}

impl Sent {
    /// Counts a decided batch, and waits for the results that its calls want.
    ///
    /// # Errors
    /// Why no outcome is known, if the engine stopped.
    pub fn record(
        &self,
        database: &Database,
        operations: &[Operation],
        recorder: &mut Recorder,
    ) -> Result<()> {
        let (tickets, returned) = {
            let mut outcomes = self.batch.outcomes();
            if let Some(failure) = &outcomes.failure {
                return Err(failure.clone());
            }
            let mut counts = [(0u64, 0u64); OPERATIONS_MAX];
            self.operations.iter().for_each(|&operation| counts[operation as usize].0 += 1);
            for (place, error) in &outcomes.aborts {
                let count = &mut counts[self.operations[*place as usize] as usize];
                *count = (count.0 - 1, count.1 + 1);
                // Class 40 is transaction rollback: the engine's own reasons.
                recorder.conflicts += u64::from(error.state().as_str().starts_with("40"));
                recorder.note_abort(error);
            }
            let latency = self.batch.completed_ns().saturating_sub(self.sent_ns);
            for (operation, &(committed, aborted)) in counts.iter().take(operations.len()).enumerate() {
                if committed + aborted > 0 {
                    recorder.decided(operation, latency, committed, aborted);
                }
            }
            (std::mem::take(&mut outcomes.tickets), std::mem::take(&mut outcomes.returned))
        };
        let clock = &database.engine().foundation().clock;
        let mut now = clock.monotonic_ns();
        for place in returned.places() {
            recorder.returned(self.operations[place as usize] as usize, now - self.sent_ns);
        }
        for (place, ticket) in tickets {
            if ticket.values().is_none() {
                while ticket.values().is_none() {
                    database.engine().resolve(&ticket);
                }
                now = clock.monotonic_ns();
            }
            recorder.returned(self.operations[place as usize] as usize, now - self.sent_ns);
        }
        Ok(())
    }
}

/// Counts a query's answer.
///
/// # Errors
/// The query's error, unless its own program raised it.
pub fn note_query(
    recorder: &mut Recorder,
    operation: usize,
    took: Duration,
    outcome: Result<()>,
) -> Result<()> {
    match outcome {
        Ok(()) => recorder.committed[operation] += 1,
        // Class P0 is raised by programs; anything else is not the query's own fault.
        Err(error) if error.state().as_str().starts_with("P0") => {
            recorder.aborted[operation] += 1;
            recorder.note_abort(&error);
        }
        Err(error) => return Err(error),
    }
    recorder.returned(operation, took.as_nanos() as u64);
    Ok(())
}
