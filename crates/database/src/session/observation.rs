//! What a statement has shown.

use crate::Statement;
use fabius_engine::speculation::{Footprint, Mark};
use fabius_value::Value;
use std::sync::Arc;

/// A statement that a transaction has run, and what it has shown the client.
#[derive(Clone)]
pub struct Observation {
    /// The statement.
    pub statement: Arc<Statement>,
    /// With what it was run.
    pub arguments: Vec<Value>,
    /// The same, encoded.
    pub encoded: Arc<[u8]>,
    /// What it returned.
    pub results: Vec<Value>,
    /// What it looked at.
    pub footprint: Footprint,
    /// Where its writes begin.
    pub begin: Mark,
}
