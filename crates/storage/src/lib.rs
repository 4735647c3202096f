//! Where rows live.
//!
//! ```text
//! table --index--> Record --head--> Version --next--> Version --next--> ...   (newest first)
//!                  (key)            seq 90             seq 40
//!                                   {qty: sticky}      {id, qty, name: values}
//! ```
//!
//! | module | concept |
//! |---|---|
//! | [`slot`] | a value in eight bytes, longer ones on the heap |
//! | [`version`] | what one call wrote to a row: values, deltas, stickies, or a tombstone |
//! | [`record`] | a key and its chain of versions |
//! | [`chain`] | reading a chain at a seq |
//! | [`fold`] | shortening chains behind the oldest reader, and giving memory back |
//! | [`index`] | ordered and hash indexes |
//! | [`table`] | a table: its indexes, and what is looked up in them |
//! | [`scan`] | scans over a range of an index |
//! | [`snapshot`] | who reads at which seq, and the `collected` watermark |
//! | [`purge`] | taking keys out of indexes once no reader can need them |
//! | [`block`] | blocks of memory, recycled while they are warm |
//! | [`memory`] | the memory account |
//! | [`checkpoint`] | the file that holds the state at one seq; rows on their way there and back |
//!
//! This crate knows nothing of programs or of the order of calls: engines say which seq a version
//! has, and what a sticky stands for is an address that only they understand.
//!
//! # Who may do what
//! - Indexes may be read by anyone who has pinned an epoch; writers take the index's own latch.
//! - A chain's head is changed only by the record's *writer*: the now-phase lane in the lazy engine,
//!   the holder of the exclusive lock in a locking engine.
//! - What is below the pivot of a chain ([`fold`]) is taken out by its writer, or by anyone beside it, one at a time.
//! - A version's columns and values do not change once another thread can see them, with four exceptions: sticky
//!   slots, filled by whoever claimed the deferred call and published by clearing the sticky mask; deltas beside
//!   them, which the same one turns into values ([`chain::resolve`]); deltas merged by the writer into a version that
//!   no snapshot can see yet; and numbers that come where one was that no snapshot can see any more
//!   ([`version::renew`]).
//! - A version that is unlinked stays readable until every epoch pinned at the time has ended.

pub mod block;
pub mod chain;
pub mod checkpoint;
pub mod fold;
pub mod index;
pub mod memory;
pub mod purge;
pub mod record;
pub mod scan;
pub mod slot;
pub mod snapshot;
pub mod table;
pub mod version;

pub use chain::Cell;
pub use record::Record;
pub use scan::TableScan;
pub use table::Table;
pub use version::Version;
