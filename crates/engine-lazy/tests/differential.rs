//! The lazy engine agrees with the serial oracle on random programs, whenever it does the deferred work.

use fabius_engine_lazy::{LazyEngine, Policy};
use fabius_testing::differential::{self, Size};
use std::sync::Arc;

fn run(policy: Policy) {
    differential::run(
        &move |foundation| Arc::new(LazyEngine::new(foundation, policy)),
        0..60,
        Size::default(),
    );
}

#[test]
fn the_lazy_engine_agrees_with_the_oracle() {
    run(Policy::default());
}

#[test]
fn the_lazy_engine_agrees_with_the_oracle_when_it_never_works_ahead() {
    run(Policy { idle: false, ..Policy::default() });
}

#[test]
fn the_lazy_engine_agrees_with_the_oracle_with_short_chains() {
    run(Policy { chain_bound: 2, ..Policy::default() });
}
