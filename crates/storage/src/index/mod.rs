//! Indexes: from a key to the address of a record.
//!
//! ```text
//!   whole key, hashed   --> HashIndex     ----\
//!                                              >--> Pointer --> Record
//!   key, range of keys  --> OrderedIndex  ----/
//! ```
//!
//! Both are read without locks by any number of threads and written by one at a time (each has a latch
//! that writers take for themselves). Memory that readers may still be looking at is retired through
//! `crossbeam_epoch`; every method takes a pinned guard. All guards must be of the default collector, that
//! is, come from `crossbeam_epoch::pin`.
//!
//! Not done here: versions, visibility, uniqueness beyond that of whole keys, and freeing records.

mod any_width;
mod hash;
mod key;
mod long_key;
mod ordered;
mod ordered_change;
mod ordered_cursor;
mod ordered_node;
mod pointer;

#[cfg(test)]
mod hash_tests;
#[cfg(test)]
mod ordered_tests;

pub(crate) use any_width::{AnyCursor, AnyIndex};
pub use hash::HashIndex;
pub use key::{IndexKey, Words, key_words};
pub use long_key::LongKey;
pub use ordered::OrderedIndex;
pub use ordered_cursor::{Cursor, Direction, Entry};
pub use pointer::{ADDRESS_BITS, Pointer, prefetch, prefetch_to_write};
