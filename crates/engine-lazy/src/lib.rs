//! Lazy evaluation of transactions (Faleiro, Thomson, Abadi; SIGMOD 2014).
//!
//! A call is promised when its now-phase has run: its outcome is decided, and everything it will write
//! is marked in the chains, by values where they cost nothing, by deltas, or by *stickies* that name the
//! deferred call. The rest of it, the later-phase, runs when someone reads what it writes, when a chain
//! or the memory reaches its bound, when a thread has nothing else to do, or never, if all it writes is
//! overwritten unread.
//!
//! | module | concept | in the paper |
//! |---|---|---|
//! | [`intake`] | calls made ready for the lane | - |
//! | [`lane`], [`turn`] | now-phases in log order, promises | 3.1 stickification layer |
//! | [`awaited`] | which calls have what they wait for run before they come to the lane | 3.1 |
//! | [`now`] | what a now-phase sees and leaves behind | 2.3, 2.4 |
//! | [`deferred`], [`captured`] | deferred calls, and the rows that they read and fill | 2.1 |
//! | [`substantiate`] | running them, dependencies first | 2.2, 3.2 |
//! | [`later`] | what a later-phase sees and fills | 2.2 |
//! | [`doomed`] | those that blind writes made pointless | 4.3 |
//! | [`backlog`] | what waits, and what should not wait longer | 2.6, 3.1.2 |
//! | [`policy`] | when deferred work is done | 2.6, 3.1.2 |
//! | [`variant`], [`interval`] | which part of a program can wait | 2.3.1, here by proof |
//!
//! Where this differs from the paper: dependencies are not kept in a graph of their own but found in
//! the version chains, and what a call leaves for later is derived from its program.

mod awaited;
mod backlog;
pub mod captured;
pub mod deferred;
mod doomed;
pub mod engine;
pub mod intake;
mod interval;
pub mod lane;
pub mod later;
pub mod now;
pub mod policy;
pub mod substantiate;
mod turn;
pub mod variant;

pub use engine::LazyEngine;
pub use policy::Policy;
