//! What static and logical partitions have in common, as dispatch and the threads that are lent see them.

use crate::route::Routes;
use crate::run::{Dispatched, Runs};
use fabius_engine::eager::intake::Work;
use fabius_engine::eager::plan::Schema;
use std::sync::Arc;

/// Partitions, and what keeps their calls apart.
pub trait Division: Send + Sync {
    /// Puts calls of one batch into the queues of the partitions that they touch, in their order; one thread at
    /// a time.
    fn dispatch(&self, work: &Arc<Work>, calls: &mut dyn Iterator<Item = Dispatched>, routes: &Routes);

    /// Does some of what was dispatched; whether there was anything to do that no other thread is at.
    fn take_turn(&self, runs: &Runs, schema: &Schema, routes: &Routes) -> bool;
}
