//! The contract every engine keeps.
//!
//! | module | concept |
//! |---|---|
//! | [`contract`] | what an engine can be asked to do |
//! | [`batch`] | calls on their way in, and their promises on the way out |
//! | [`entry`] | the log's entries: calls and definitions as bytes |
//! | [`foundation`] | what every engine stands on: definitions, log, clock, snapshots |
//! | [`priority`] | which calls come first of those that wait |
//! | [`procedure`] | a program with its compiled code |
//! | [`idempotency`] | repeated calls get their first outcome |
//! | [`constraint`] | the errors of constraints that engines check |
//! | [`ahead`] | bringing rows near before their calls run |
//! | [`expected`] | the rows that a call is going to look up, found before it does |
//! | [`join`] | what a scan's rows lead to, brought near for some of them at a time |
//! | [`eager`] | what engines that run calls whole have in common |
//! | [`random`] | the random numbers of a call |
//! | [`reader`] | a view of the rows at one seq |
//! | [`room`] | how much a program that reads may hold |
//! | [`speculation`] | a program run ahead of its place in the order, over a transaction's own writes |
//! | [`standpoint`] | rows, definitions and keys of one seq, for as long as somebody looks |
//! | [`checkpoint`] | the state at one seq, to a file and back |
//! | [`lend`] | values in the arena of a run |
//! | [`counters`] | what an engine has done so far |
//!
//! This crate knows nothing of any one strategy for ordering and running calls.

pub mod ahead;
pub mod batch;
pub mod checkpoint;
pub mod constraint;
pub mod contract;
pub mod counters;
pub mod eager;
pub mod entry;
pub mod expected;
pub mod foundation;
pub mod idempotency;
pub mod join;
pub mod lend;
pub mod priority;
pub mod procedure;
pub mod random;
pub mod reader;
pub mod returned;
pub mod room;
pub mod speculation;
pub mod standpoint;

pub use batch::{Batch, BatchBuilder, Ticket};
pub use contract::Engine;
pub use counters::{Counter, Counters};
pub use foundation::{Definitions, Foundation, HeldSnapshot};
pub use priority::Priority;
pub use procedure::Procedure;
pub use room::Room;
pub use standpoint::{Records, ScanPlace, Standpoint, TableScan};
