//! The optimistic engine does what every engine must do.

use fabius_testing::conformance;

use std::sync::Arc;

#[test]
fn the_optimistic_engine_conforms() {
    conformance::run(|foundation| Arc::new(fabius_engine_occ::new(foundation)));
}
