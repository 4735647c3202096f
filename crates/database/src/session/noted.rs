//! What was read without being kept.

use crate::Statement;
use fabius_value::{Seq, Value};
use std::sync::Arc;

/// A statement that has shown something at a seq, of which only it is kept.
pub(super) struct Noted {
    pub statement: Arc<Statement>,
    pub arguments: Vec<Value>,
    pub at: Seq,
}
