//! The two-phase locking engine does what every engine must do.

use fabius_testing::conformance;

use std::sync::Arc;

#[test]
fn the_two_phase_locking_engine_conforms() {
    conformance::run(|foundation| Arc::new(fabius_engine_2pl::new(foundation)));
}
