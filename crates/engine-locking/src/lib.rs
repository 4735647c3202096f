//! Deterministic locking (Calvin: Thomson et al., TODS 39(2), 2014; sections 3.2 and 9).
//!
//! Calls get their place in the order, and in the log, before they run. One thread at a time scans the order
//! and requests every lock that a call will need in its lifetime; locks are granted in request order; a call
//! that has all its locks is run by whichever thread is free. So whatever runs together gives what running
//! one call after the other, as they stand in the log, would have given, without deadlock, and no call ever
//! gives way to another.
//!
//! | module | concept |
//! |---|---|
//! | [`lock`] | locks by name: rows, ranges, unique values, keys |
//! | [`lock_manager`] | queues of requests, or counters |
//! | [`footprint`] | read and write sets from the program |
//! | [`reconnaissance`] | calls that must read to know what they access (OLLP) |
//! | [`scheduler`] | places in the log, requests in that order |
//! | [`control`] | what calls tell of themselves while they run |
//! | [`engine`] | the engine behind the contract: threads lent and taken |
//! | [`policy`] | its settings |
//!
//! What it has in common with other engines that run calls whole is [`fabius_engine::eager`].

pub mod control;
pub mod engine;
pub mod footprint;
pub mod lock;
pub mod lock_manager;
pub mod policy;
pub mod reconnaissance;
pub mod scheduler;

pub use engine::LockingEngine;
pub use policy::Policy;
