//! The simple protocol: a text with statements, all of their results at once.
//!
//! Several statements in one text are one transaction, unless the text says otherwise by `BEGIN`, `COMMIT` or
//! `ROLLBACK`. The last statement's tag is sent when that transaction is committed: until then it could fail.

use super::execution::Completion;
use super::{Client, Failure, Outcome};
use crate::wire::backend;
use crate::wire::frontend::Formats;
use fabius_value::Error;

impl Client {
    /// Runs the statements of a text, up to the first that fails.
    ///
    /// # Errors
    /// Only what ends the connection; statements that fail are told to the client.
    pub(super) async fn simple(&mut self, text: &str) -> Outcome {
        self.session.forget_cancel();
        match self.simple_statements(text).await {
            Ok(()) => Ok(()),
            Err(Failure::Statement(error)) => {
                self.refuse(&error);
                self.session.forget_cancel();
                let rolled_back = self.attend(None, async |sql| sql.end_implicit(false).await).await;
                match rolled_back {
                    Err(Failure::Statement(error)) => {
                        tracing::debug!(%error, "rolling back failed");
                        Ok(())
                    }
                    other => other,
                }
            }
            Err(failure) => Err(failure),
        }
    }

    async fn simple_statements(&mut self, text: &str) -> Outcome {
        let deadline = self.deadline();
        let statements = self.attend(deadline, async |sql| sql.split(text).await).await?;
        if statements.is_empty() {
            backend::empty_query_response(&mut self.socket.output);
        }
        let is_batch = statements.len() > 1;
        for (at, range) in statements.iter().enumerate() {
            let Some(statement) = text.get(range.clone()) else { continue };
            self.refuse_if_cancelled()?;
            let deadline = self.deadline();
            if is_batch {
                self.attend(deadline, async |sql| sql.begin_implicit().await).await?;
            }
            let run = self.simple_statement(statement).await;
            let completion = run.map_err(|failure| shifted(failure, &text[..range.start]))?;
            if is_batch && at + 1 == statements.len() {
                self.attend(deadline, async |sql| sql.end_implicit(true).await).await?;
            }
            self.complete(&completion);
        }
        Ok(())
    }

    async fn simple_statement(&mut self, statement: &str) -> Outcome<Completion> {
        let begun = std::time::Instant::now();
        let deadline = self.deadline();
        let prepared = self.attend(deadline, async |sql| sql.prepare(statement, &[]).await).await?;
        let response = self.attend(deadline, async |sql| sql.execute(&prepared, &[]).await).await?;
        let completion = self.give(response, &Formats::Text, deadline).await?;
        self.metrics().statement(completion.tag(), begun.elapsed());
        Ok(completion)
    }
}

/// Positions are counted in the whole text.
fn shifted(failure: Failure, before: &str) -> Failure {
    match failure {
        Failure::Statement(error) => Failure::Statement(shift(error, before.chars().count() as u32)),
        other => other,
    }
}

fn shift(error: Error, characters: u32) -> Error {
    match error.position() {
        Some(position) => error.at_position(position.saturating_add(characters)),
        None => error,
    }
}
