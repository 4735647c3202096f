//! The splitting engine does what every engine must do.

use fabius_testing::conformance;

use std::sync::Arc;

#[test]
fn the_splitting_engine_conforms() {
    conformance::run(|foundation| Arc::new(fabius_engine_split::new(foundation)));
}
