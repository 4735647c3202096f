//! What tests of programs and engines stand on.
//!
//! | module | concept |
//! |---|---|
//! | [`generate`] | random schemas, programs, rows and arguments from a seed |
//! | [`oracle`] | one call after the other, to compare engines with |
//! | [`memory`] | rows in memory, as simple as can be, for programs alone |
//! | [`ways`] | the ways of running a program that have to give the same |
//! | [`rig`] | an engine set up for a test |
//! | [`conformance`] | what every engine must do, as tests |
//! | [`differential`] | random programs on an engine and on the oracle, side by side |
//! | [`recorded`] | whether what clients saw, side by side, has an order |
//!
//! Nothing that is shipped depends on this crate. It knows no engine by name: tests hand it one.

pub mod conformance;
pub mod differential;
pub mod generate;
pub mod memory;
pub mod oracle;
pub mod recorded;
pub mod rig;
pub mod ways;
