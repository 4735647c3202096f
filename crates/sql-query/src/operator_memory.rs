//! What operators of queries hold: sorts, joins and groups take their memory from the session's allowance.

use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use fabius::Allowance;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The memory of one query's operators.
#[derive(Debug)]
pub(super) struct OperatorMemory {
    allowance: Arc<Allowance>,
    reserved: AtomicUsize,
}

impl OperatorMemory {
    pub(super) fn new(allowance: Arc<Allowance>) -> OperatorMemory {
        OperatorMemory { allowance, reserved: AtomicUsize::new(0) }
    }
}

impl fmt::Display for OperatorMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl MemoryPool for OperatorMemory {
    fn name(&self) -> &str {
        "session"
    }

    fn grow(&self, _: &MemoryReservation, additional: usize) {
        self.allowance.add(additional);
        self.reserved.fetch_add(additional, Relaxed);
    }

    fn shrink(&self, _: &MemoryReservation, shrink: usize) {
        self.allowance.give_back(shrink);
        self.reserved.fetch_sub(shrink, Relaxed);
    }

    fn try_grow(&self, _: &MemoryReservation, additional: usize) -> Result<()> {
        // An operator that can do with less asks for this kind of error; see `failure::inbound` for what clients see.
        let refused = |error: fabius::Error| {
            DataFusionError::ResourcesExhausted(error.detail().unwrap_or_default().to_string())
        };
        self.allowance.take(additional).map_err(refused)?;
        self.reserved.fetch_add(additional, Relaxed);
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.reserved.load(Relaxed)
    }

    fn memory_limit(&self) -> MemoryLimit {
        MemoryLimit::Finite(self.reserved() + self.allowance.left())
    }
}
