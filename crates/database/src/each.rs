//! Calls of one statement that are handed in together, each a transaction of its own.

use crate::Database;
use crate::session::requirement::Footing;
use crate::session::transaction_options::TransactionOptions;
use crate::statement::{Caller, Outcome, Statement};
use fabius_engine::BatchBuilder;
use fabius_value::{Result, Seq, SqlState, Value};

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
        let mut outcomes = Vec::with_capacity(calls.len());
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
        let wants_result = !procedure.program.results.is_empty();
        let mut builder = BatchBuilder::with_capacity(64 * calls.len());
        // Arguments that do not fit are not handed in.
        let mut places = Vec::with_capacity(calls.len());
        for arguments in calls {
            let pushed = statement
                .encode(arguments)
                .and_then(|bytes| builder.push(procedure.id, &bytes, None, wants_result));
            places.push(pushed);
        }
        let batch = builder.build();
        if self.admit(batch.clone(), caller) {
            self.complete(&batch).await;
        } else {
            self.admitted(&batch, caller.lock_timeout).await;
        }
        if let Some(recall) = &caller.recall {
            recall.settle();
        }
        let first = batch.outcomes().first_seq;
        let mut outcomes = Vec::with_capacity(calls.len());
        for place in places {
            let outcome = place.and_then(|place| {
                batch.outcome(place)?;
                let seq = first.map_or_else(Seq::default, |first| Seq(first.0 + u64::from(place)));
                let results = match batch.ticket(place) {
                    Some(ticket) => self.resolve(&ticket)?,
                    None => Vec::new(),
                };
                Ok(Outcome { seq, results })
            });
            outcomes.push(outcome);
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
}
