//! The locking engine does what every engine must do.

use fabius_engine::conformance;
use fabius_engine_locking::{LockingEngine, Policy};

use std::sync::Arc;

#[test]
fn the_locking_engine_conforms() {
    conformance::run(|foundation| Arc::new(LockingEngine::new(foundation, Policy::default())));
}
