//! The program that a transaction is.
//!
//! Transactions of the same statements, in the same order, are one program, whatever their arguments and
//! whatever they have seen. It is made, verified and defined once, and kept for as long as it is used.

use super::observation::Observation;
use super::recent::Recent;
use crate::{Database, Statement, StatementId};
use fabius_program::compose::{self, Part, Run};
use fabius_value::{Error, Result, SqlState, Value};
use std::sync::Arc;

/// Statements of one transaction, at most.
pub const STATEMENTS_MAX: usize = 100_000;

/// Transactions' programs by the statements they consist of.
pub(crate) type Compounds = Recent<Vec<Part<StatementId>>>;

/// A statement in a list of them.
#[derive(Clone)]
struct Listed<'o>(&'o Arc<Statement>);

impl PartialEq for Listed<'_> {
    fn eq(&self, other: &Listed<'_>) -> bool {
        self.0.id() == other.0.id()
    }
}

impl Database {
    /// The program of a transaction, and its arguments.
    ///
    /// # Errors
    /// `54000` if it is too large.
    pub(crate) fn compound(&self, observations: &[Arc<Observation>]) -> Result<(Arc<Statement>, Vec<Value>)> {
        let statements: Vec<Listed<'_>> =
            observations.iter().map(|observation| Listed(&observation.statement)).collect();
        let parts = compose::parts(&statements, |listed| listed.0.is_repeatable());
        let runs: Vec<Run<'_, Listed<'_>>> = observations
            .iter()
            .map(|observation| Run {
                statement: Listed(&observation.statement),
                arguments: &observation.arguments,
                results: &observation.results,
            })
            .collect();
        let arguments = compose::arguments(&parts, &runs);
        let known: Vec<Part<StatementId>> =
            parts.iter().map(|(part, _)| mapped(part, |listed| listed.0.id())).collect();
        if let Some(program) = self.sessions().compounds.lock().get(&known) {
            return Ok((program, arguments));
        }
        let parts: Vec<_> =
            parts.iter().map(|(part, _)| mapped(part, |listed| listed.0.definition())).collect();
        let definitions = self.definitions();
        let tables = definitions.catalog.tables().map(|(_, schema)| schema.name.as_str());
        let definition = compose::compose("transaction", &parts, tables)?;
        let program = self.statement(&definition).map_err(|error| match error.state() {
            SqlState::PROGRAM_LIMIT => too_large(error),
            _ => error,
        })?;
        self.sessions().compounds.lock().keep(known, program.clone());
        Ok((program, arguments))
    }
}

fn mapped<'p, S, T>(part: &'p Part<S>, map: impl Fn(&'p S) -> T) -> Part<T> {
    match part {
        Part::Once(statement) => Part::Once(map(statement)),
        Part::Repeated(statements) => Part::Repeated(statements.iter().map(map).collect()),
    }
}

fn too_large(error: Error) -> Error {
    Error::new(SqlState::PROGRAM_LIMIT, "transaction too large")
        .with_detail(error.message().to_string())
        .with_hint("divide it among several transactions, or write several rows in one statement")
}
