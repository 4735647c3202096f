//! What eager engines have in common: calls run whole, and differ in how they are kept apart.
//!
//! ```text
//! batches --> intake --> turns, on any number of threads --------------------------> promised --> durable
//!                         read, write aside | certify: seq, log | install | release
//!                              \-----------------\-- the control is told --/
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`control`] | what tells eager engines apart: concurrency control |
//! | [`granule`] | words for what is not a record: ranges, unique values, idempotency keys |
//! | [`lock_mode`] | modes of locks, for controls that lock |
//! | [`plan`] | what is known of a program before it runs |
//! | [`transaction`] | what a call sees, and tells its control |
//! | [`workspace`] | what it has written so far |
//! | [`turn`] | calls from beginning to end |
//! | [`place`] | how a call comes to its place in the order |
//! | [`sequencer`] | the order of calls, and what of it readers may see |
//! | [`commit`] | versions, and notes for purging |
//! | [`trail`] | the records that a turn has written |
//! | [`optimistic`] | optimistic concurrency control, for the engines built on it |
//! | [`slots`] | numbers for threads that run calls |
//! | [`intake`] | calls that have not begun |
//! | [`queue`] | things on their way from one thread to others |
//! | [`answers`] | batches that have ended, until readers see them whole |
//! | [`shared`] | what all calls share |
//! | [`alone`] | the control of calls that run one after the other |
//! | [`ground`] | definitions, replay, snapshots, purging: whichever way calls are chosen |
//! | [`runner`] | the contract, for engines with an intake and a ground |
//! | [`engine`] | the engine whose calls a protocol keeps apart |

pub mod alone;
pub mod answers;
pub mod commit;
pub mod control;
pub mod engine;
pub mod granule;
pub mod ground;
pub mod intake;
pub mod lock_mode;
pub mod optimistic;
pub mod place;
pub mod plan;
pub mod queue;
pub mod runner;
pub mod sequencer;
pub mod shared;
pub mod slots;
pub mod trail;
pub mod transaction;
pub mod turn;
pub mod workspace;

pub use control::{Control, Protocol};
pub use engine::EagerEngine;
pub use ground::Ground;
pub use runner::Runner;
