//! The locking engine behind the contract.

use fabius_engine::counters::Counts;
use fabius_engine::{Batch, Engine, Foundation, Procedure, Ticket};
use fabius_value::{Error, Result, Seq, TableId, Value};
use std::sync::Arc;

/// The locking engine.
pub struct LockingEngine {
    foundation: Arc<Foundation>,
}

impl LockingEngine {
    /// An engine without definitions.
    pub fn new(foundation: Arc<Foundation>) -> LockingEngine {
        LockingEngine { foundation }
    }
}

impl Engine for LockingEngine {
    fn name(&self) -> &'static str {
        "2pl"
    }

    fn foundation(&self) -> &Foundation {
        &self.foundation
    }

    fn submit(&self, _batch: Arc<Batch>) {
        todo!()
    }

    fn admit(&self) -> bool {
        todo!()
    }

    fn help(&self) -> bool {
        todo!()
    }

    fn define(&self, _text: &str) -> Result<()> {
        todo!()
    }

    fn query(&self, _procedure: &Procedure, _arguments: &[u8]) -> Result<Vec<Value>> {
        todo!()
    }

    fn resolve(&self, _ticket: &Ticket) {}

    fn rows(&self, _table: TableId, _visit: &mut dyn FnMut(Vec<Value>) -> Result<()>) -> Result<Seq> {
        todo!()
    }

    fn settle(&self) {
        todo!()
    }

    fn replay(&self, _first_seq: Seq, _count: u32, _payload: &[u8]) -> Result<()> {
        todo!()
    }

    fn close(&self, _reason: Error) {
        todo!()
    }

    fn counts(&self) -> Counts {
        self.foundation.counters.counts(0)
    }
}
