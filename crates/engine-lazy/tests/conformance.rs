//! The lazy engine does what every engine must do, whenever it does the deferred work.

use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_testing::conformance;
use std::sync::Arc;

#[test]
fn the_lazy_engine_conforms() {
    conformance::run(|foundation| Arc::new(LazyEngine::new(foundation, Policy::default())));
}

#[test]
fn the_lazy_engine_conforms_when_it_never_works_ahead() {
    let policy = Policy { idle: false, ..Policy::default() };
    conformance::run(move |foundation| Arc::new(LazyEngine::new(foundation, policy)));
}

#[test]
fn the_lazy_engine_conforms_with_short_chains() {
    let policy = Policy { chain_bound: 1, ..Policy::default() };
    conformance::run(move |foundation| Arc::new(LazyEngine::new(foundation, policy)));
}
