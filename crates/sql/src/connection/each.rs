//! Calls of one program that are handed in together, each a transaction of its own.

use super::plan::{Body, Given, Program, Ready};
use super::prepared::Prepared;
use super::stance::Stance;
use super::{Connection, Notice, Response};
use crate::lock::LockMode;
use fabius_sql_meaning::catalog::Catalog;
use fabius_value::{Result, Value};
use std::sync::Arc;

/// What a call gave, and what it said.
pub type Answered = Result<(Response, Vec<Notice>)>;

impl Connection {
    /// Runs a statement once for each list of parameters, in this order, each as a transaction of its own: what
    /// [`Connection::execute`] gives for each. Where the statement is a program that writes, nothing is waited for in
    /// between.
    pub async fn execute_each(&mut self, prepared: &Arc<Prepared>, calls: &[Vec<Value>]) -> Vec<Answered> {
        match self.call_each(prepared, calls).await {
            Ok(Some(answers)) => answers,
            Ok(None) => {
                let mut answers = Vec::with_capacity(calls.len());
                for parameters in calls {
                    let answer = self.execute(prepared, parameters).await;
                    answers.push(answer.map(|response| (response, self.take_notices())));
                    self.rest();
                }
                answers
            }
            Err(error) => calls.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    /// `None` if the calls have to be run one by one.
    async fn call_each(
        &mut self,
        prepared: &Arc<Prepared>,
        calls: &[Vec<Value>],
    ) -> Result<Option<Vec<Answered>>> {
        let is_plain = self.transaction.is_idle()
            && !self.database.database().is_replicated()
            && !self.session.is_keyed()
            && !self.session.settings.reads_only();
        let [first, ..] = calls else { return Ok(Some(Vec::new())) };
        if !is_plain {
            return Ok(None);
        }
        self.execution.begin(super::clock::now_us());
        self.session.presence.begin(prepared, self.execution.began_us, None);
        self.execution.stance = Stance::now(&self.database).await?;
        let (catalog, ready) = self.hold_plan(prepared, LockMode::AccessShare).await?;
        let answers = self.call_each_of(&catalog, &ready, first, calls).await;
        self.release_statement_locks();
        answers
    }

    async fn call_each_of(
        &mut self,
        catalog: &Arc<Catalog>,
        ready: &Ready,
        first: &[Value],
        calls: &[Vec<Value>],
    ) -> Result<Option<Vec<Answered>>> {
        let Body::Program(program) = &ready.plan.body else { return Ok(None) };
        let nulls: Vec<bool> = first.iter().map(Value::is_null).collect();
        let program = program.for_nulls(self.database.database(), catalog, &nulls)?;
        let is_alike = |parameters: &Vec<Value>| {
            parameters.len() >= ready.plan.parameters.len()
                && parameters.iter().map(Value::is_null).eq(nulls.iter().copied())
        };
        let Program { lowered, statement, .. } = &*program;
        let is_plain = !statement.is_read_only()
            && lowered.reserves.is_empty()
            && lowered.row_lock.is_none()
            && calls.iter().all(is_alike);
        if !is_plain {
            return Ok(None);
        }
        if ready.plan.adds_rows() {
            self.database.refuse_rows()?;
        }
        let mut arguments = Vec::with_capacity(calls.len());
        for parameters in calls {
            let given = Given { parameters, literals: &ready.literals, text: None };
            arguments.push(self.arguments(catalog, &program, given).await?);
        }
        let options = self.options();
        let outcomes = self.database.database().run_each(&options, statement, &arguments).await;
        let answers = outcomes.into_iter().map(|outcome| {
            // What has aborted has no place in the log.
            self.session.note_place(outcome.as_ref().ok().map(|outcome| outcome.seq), true);
            let outcome =
                outcome.map_err(|error| Connection::explained(error, (lowered, statement), catalog))?;
            self.execution.has_committed = true;
            let mut results = outcome.results;
            lowered.take_doubtful(&mut results);
            if lowered.notices {
                self.session.say(results.pop());
            }
            let notices = self.take_notices();
            Ok((self.session.respond(lowered, results)?, notices))
        });
        Ok(Some(answers.collect()))
    }
}
