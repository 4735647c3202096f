//! Eager strict two-phase locking with wound-wait: the conventional engine.

pub mod engine;

pub use engine::LockingEngine;
