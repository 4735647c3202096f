//! Phase reconciliation as in Doppel (Narula, Cutler, Kohler, Morris: Phase reconciliation for contended
//! in-memory transactions; OSDI 2014), on optimistic concurrency control.
//!
//! Records that many calls only add to, or raise, or lower, are *split*: for some milliseconds each core has
//! a *slice* of its own, and applies its calls' operations to it without asking anyone. Calls that write and do
//! anything else to a split record are *stashed*. Then the slices are *reconciled* with the record, and what
//! was stashed runs in a short *joined phase*, where all records are under optimistic control.
//!
//! ```text
//!            split phase (t)                          joined phase          split phase
//!  core 0    add 1 | add 3 | swap: stash | add 2      reconcile  swap       add 1 ...
//!  core 1    add 2 | read | add 1                     reconcile  sample     add 4 ...
//!                                             ^ t > 10 ms, or stashed > 100,000, or nothing is left to begin
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`doppel`] | phases, and when they change |
//! | `protocol` | the protocol of eager turns |
//! | [`sample`] | conflict sampling, and the decision what to split |
//! | [`phase`] | a split phase: its records, and their reconciliation |
//! | [`slice`] | what a core has done to the split records |
//! | [`room`] | how far cores may go, so that no order of what they do leaves a column's range |
//! | [`control`] | what a call does in a phase |
//!
//! **What to split** is decided by how many of the calls conflict ([`sample`]): where conflicts are rare, splitting
//! saves less than phases cost. A split record to which a phase has applied few operations is split no more: it is
//! not in demand any more, or phases are too short to pay, since callers wait for each answer before they go on.
//! Where nothing was stashed the joined phase has no calls, and is over at once.
//!
//! **Operations are found, not annotated**: `fabius_program::slice::operation` reads off a program which columns it
//! only applies an operation to, so that nothing else of it depends on their values. Records have columns here, so
//! one operation *per column* of a split record and phase: `bids += 1` and `max_bid = greatest(max_bid, b)` in one
//! row go together. There are `add` (also what is subtracted), `max` and `min`, on integers and numerics, `mult` on
//! integers, and the ordered put: `if b > r.max_bid { update r { max_bid: b, bidder: u } }` puts any columns in the
//! order of one.
//!
//! **The program runs as it is.** A call that applies operations to a split record reads a *stand-in*, a copy of
//! the row with zero in columns that are added to, one in those that are multiplied, and the least value in those
//! that are raised. What the program then writes is the operand: `0 + e`, `1 * e`. No other code is needed, and none
//! per operation.
//!
//! **Outcomes stay true.** `x + e` may leave the column's range where `0 + e` does not. So a core takes what it needs
//! of the room that there is on either side of the record's value, or above it for a product ([`room`]), and a call
//! for which too little is left is stashed; so is one that aborts after it has met a stand-in, or writes one column
//! twice.
//!
//! **The order.** A call of a split phase gets its seq like any other; those that touch nothing but split records
//! commute with all that run beside them, so a turn logs them together. Nobody reads a split value before all that
//! was done to it is reconciled, so any order of the operations is as good as the log's. What is held back is
//! `promised`: it moves over a split phase's calls when they are reconciled, and only then are their callers told. So
//! a snapshot never shows a part of a phase, a call that was promised before another was submitted comes first, and
//! replay gives the same rows. The price is that a call waits for the end of its phase; to be told before is not sound
//! here (`docs/decisions/answers-wait-for-the-phase.md`). So a phase ends after 10 ms, and when no calls are left to
//! begin.
//!
//! **When the log fails** in the midst of a split phase, slices hold what it has not taken. So the phase ends unseen:
//! nothing of it is reconciled, `promised` stays where it was, and all who wait for a call of it are told why.
//!
//! Of two puts that are as high, the log's first stays, so calls that put take a place of their own at once.
//!
//! **Reads.** Whoever is told of a call of a phase is told when it has ended. So a call that only reads comes before
//! the phase: it reads where snapshots do, and is not stashed.
//!
//! There is no top-K insert: who wants the best K entries reads them from an index, and inserts into an index do not
//! contend.

pub mod control;
pub mod doppel;
pub mod phase;
mod protocol;
pub mod room;
pub mod sample;
pub mod slice;

pub use doppel::{Doppel, Policy};
use fabius_engine::Foundation;
use fabius_engine::eager::EagerEngine;
use std::sync::Arc;

/// The engine that splits contended records.
pub type SplitEngine = EagerEngine<Doppel>;

/// A splitting engine with the foundation's definitions.
pub fn new(foundation: Arc<Foundation>) -> SplitEngine {
    with_policy(foundation, Policy::default())
}

/// A splitting engine with thresholds of one's own.
pub fn with_policy(foundation: Arc<Foundation>, policy: Policy) -> SplitEngine {
    EagerEngine::new(foundation, Doppel::new(policy))
}
