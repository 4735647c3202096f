//! Calls of one statement that are handed in together, each a transaction of its own.

use crate::Database;
use crate::session::requirement::Footing;
use crate::session::transaction_options::TransactionOptions;
use crate::statement::{Caller, Outcome, Statement};
use fabius_engine::{Batch, BatchBuilder, Procedure};
use fabius_value::{Result, Seq, SqlState, Value};
use std::sync::Arc;

/// Calls of one batch, at most: what a call returns is looked for below all that came behind it in its batch.
const TOGETHER: usize = 32;

/// Calls that are decided: their places in the batch, and what they return.
struct HandedIn {
    batch: Arc<Batch>,
    places: Vec<Result<u32>>,
    results: Vec<Result<Vec<Value>>>,
}

impl Database {
    /// Runs a statement once for each list of arguments, in this order, with nothing waited for in between: what each
    /// run gave, when all are durable. As [`Database::run_as`] does it for one.
    pub async fn run_each(
        &self,
        options: &TransactionOptions,
        statement: &Statement,
        calls: &[Vec<Value>],
    ) -> Vec<Result<Outcome>> {
        let caller = Caller::of(options);
        if !statement.is_read_only() && !matches!(caller.footing, Footing::State(_)) {
            match self.call_each(&caller, statement, calls).await {
                Ok(Some(outcomes)) => return outcomes,
                Ok(None) => {}
                Err(error) => return calls.iter().map(|_| Err(error.clone())).collect(),
            }
        }
        let mut outcomes: Vec<Result<Outcome>> = Vec::with_capacity(calls.len());
        for arguments in calls {
            outcomes.push(self.run_by(&caller, statement, arguments, None).await);
        }
        outcomes
    }

    /// As [`Database::run_each`]; `None` if nothing was run, because somebody has dropped the procedure.
    async fn call_each(
        &self,
        caller: &Caller<'_>,
        statement: &Statement,
        calls: &[Vec<Value>],
    ) -> Result<Option<Vec<Result<Outcome>>>> {
        let procedure = self.define_statement(statement).await?;
        let mut handed_in = Vec::with_capacity(calls.len() / TOGETHER + 1);
        for calls in calls.chunks(TOGETHER) {
            handed_in.push(self.hand_in_each(caller, (statement, &procedure), calls).await?);
        }
        let mut outcomes: Vec<Result<Outcome>> = Vec::with_capacity(calls.len());
        for HandedIn { batch, places, results } in handed_in {
            self.complete(&batch).await;
            let first = batch.outcomes().first_seq.unwrap_or_default();
            let values = places.into_iter().zip(results).map(|(place, results)| {
                let place = place?;
                batch.outcome(place)?;
                Ok(Outcome { seq: Seq(first.0 + u64::from(place)), results: results? })
            });
            outcomes.extend(values);
        }
        let is_gone = outcomes.iter().all(|outcome| {
            outcome.as_ref().is_err_and(|error| error.state() == SqlState::UNDEFINED_FUNCTION)
        });
        if !caller.label.is_empty() {
            let mut committers = self.sessions().committers.lock();
            outcomes.iter().flatten().for_each(|outcome| committers.note(outcome.seq, caller.label));
        }
        Ok((!is_gone || calls.is_empty()).then_some(outcomes))
    }

    /// Hands calls in, and returns when they are decided: what they return is computed while it is near.
    async fn hand_in_each(
        &self,
        caller: &Caller<'_>,
        (statement, procedure): (&Statement, &Procedure),
        calls: &[Vec<Value>],
    ) -> Result<HandedIn> {
        let wants_result = !procedure.program.results.is_empty();
        let mut builder = BatchBuilder::with_capacity(64 * calls.len()).with_priority(caller.priority);
        // Arguments that do not fit are not handed in.
        let mut places = Vec::with_capacity(calls.len());
        for arguments in calls {
            let pushed = statement
                .encode(arguments)
                .and_then(|bytes| builder.push(procedure.id, &bytes, None, wants_result));
            places.push(pushed);
        }
        let batch = builder.build();
        if !self.admit(batch.clone(), caller, None) {
            self.admitted(&batch, caller.lock_timeout).await;
        } else if self.agreed.is_some() {
            self.complete(&batch).await;
        } else {
            self.decide(&batch);
        }
        if let Some(recall) = &caller.recall {
            recall.settle();
        }
        let result = |place: &Result<u32>| match place {
            Ok(place) => batch.ticket(*place).map_or(Ok(Vec::new()), |ticket| self.resolve(&ticket)),
            Err(_) => Ok(Vec::new()),
        };
        let results = places.iter().map(result).collect();
        Ok(HandedIn { batch, places, results })
    }
}
