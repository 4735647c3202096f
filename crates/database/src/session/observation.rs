//! What a statement has shown.

use super::hold::Hold;
use crate::Statement;
use fabius_engine::speculation::Footprint;
use fabius_value::Value;
use std::sync::Arc;

/// A statement that a transaction has run, and what it has shown the client.
pub struct Observation {
    /// The statement.
    pub statement: Arc<Statement>,
    /// With what it was run.
    pub arguments: Vec<Value>,
    /// The arguments, encoded.
    pub encoded: Arc<[u8]>,
    /// What it returned.
    pub results: Vec<Value>,
    /// What it looked at.
    pub footprint: Footprint,
    /// Whether that is locked, or checked at commit.
    pub hold: Hold,
    /// Whether it was run on the rows alone, without what statements before it have written.
    pub is_apart: bool,
}

impl Observation {
    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        let values = self.arguments.iter().chain(&self.results).map(Value::bytes);
        values.sum::<usize>() + self.encoded.len() + self.footprint.bytes()
    }
}
