//! What a call requires of the state that it finds at its place in the order, besides what its own statements say.
//!
//! A call that is made on one node of a cluster and led by another stands on nothing in the leader's memory: what it
//! was made for is written into the state, and required there. It aborts with `40001` where that is not so any more.

use super::recent::Recent;
use crate::{Database, Statement, StatementId};
use fabius_program::compose;
use fabius_value::{Error, Result, SqlState, Value};
use std::sync::Arc;

/// What a call of a cluster's node stands on, besides its statements.
#[derive(Clone, Debug, Default)]
pub enum Footing {
    /// What is in this node's memory, as locks and what names mean: it is agreed on in the term in which this node
    /// leads when it is handed in, or not at all.
    #[default]
    Lead,
    /// What has been in this node's memory since it leads in this term: it is agreed on in that term, or not at all.
    Term(u64),
    /// Nothing: whoever leads may have it agreed on.
    Nothing,
    /// What it requires of the state that it finds: whoever leads may have it agreed on.
    State(Arc<Requirement>),
}

impl Footing {
    /// Whether whoever leads may have it agreed on.
    pub(crate) fn is_anywhere(&self) -> bool {
        matches!(self, Footing::Nothing | Footing::State(_))
    }

    /// The one term in which it may be agreed on, if it is of a certain one.
    pub(crate) fn term(&self) -> Option<u64> {
        match self {
            Footing::Term(term) => Some(*term),
            _ => None,
        }
    }
}

/// A statement that only reads, and what it has to return.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// The statement.
    pub statement: Arc<Statement>,
    /// With what it runs.
    pub arguments: Vec<Value>,
    /// What it has to return.
    pub results: Vec<Value>,
}

/// Why a call was not run whose [requirement](Footing::State) was not met where it came in the order.
pub fn lost_footing() -> Error {
    Error::new(SqlState::SERIALIZATION_FAILURE, "what the call stands on is not so any more")
        .with_hint("the transaction might succeed if retried")
}

/// Programs with requirements in front of them: by the statement that is required to return something, and the one
/// that runs then.
pub(crate) type Requiring = Recent<(StatementId, StatementId)>;

/// A call with what it requires in front of it.
pub(crate) struct Required {
    pub(crate) program: Arc<Statement>,
    pub(crate) arguments: Vec<Value>,
    /// By how many lines the statement's own begin later.
    lines: u32,
}

impl Database {
    /// A statement's program and arguments, behind a requirement.
    ///
    /// # Errors
    /// `54000` if that is too large.
    pub(crate) fn required(
        &self,
        requirement: &Requirement,
        statement: &Statement,
        arguments: &[Value],
    ) -> Result<Required> {
        let pair = (requirement.statement.id(), statement.id());
        let known = self.sessions().requiring.lock().get(&pair);
        let program = match known {
            Some(program) => program,
            None => {
                let definitions = self.definitions();
                let tables = definitions.catalog.tables().map(|(_, schema)| schema.name.as_str());
                let required = requirement.statement.definition();
                let definition = compose::requiring("call", required, statement.definition(), tables)?;
                let program = self.statement(&definition)?;
                self.sessions().requiring.lock().keep(pair, program.clone());
                program
            }
        };
        let arguments = requirement.arguments.iter().chain(&requirement.results).chain(arguments);
        let lines = |statement: &Statement| statement.text().lines().count() as u32;
        Ok(Required {
            arguments: arguments.cloned().collect(),
            lines: lines(&program).saturating_sub(lines(statement)),
            program,
        })
    }
}

impl Required {
    /// An error of the program as one of the statement: with the line that is its own; [`lost_footing`] if it is one
    /// of the requirement.
    pub(crate) fn of_statement(&self, error: Error) -> Error {
        match error.line() {
            _ if error.message() == compose::CHANGED => lost_footing(),
            Some(line) if line > self.lines => error.at_line(line - self.lines),
            Some(_) => error.without_line(),
            None => error,
        }
    }
}
