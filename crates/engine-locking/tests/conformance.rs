//! The locking engine does what every engine must do.

use fabius_engine_locking::{LockingEngine, Policy};
use fabius_testing::conformance;

use std::sync::Arc;

#[test]
fn the_locking_engine_conforms() {
    conformance::run(|foundation| Arc::new(LockingEngine::new(foundation, Policy::default())));
}
