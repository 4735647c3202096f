//! Interactive transactions over the wire: what Lazy State Determination is measured by (LSD, section 4).
//!
//! Clients are PostgreSQL clients over TCP. Each message to the server is held back by an added network delay. What the
//! papers' interfaces are in SQL:
//!
//! | interface | reads and writes |
//! |---|---|
//! | conventional, by rows or by columns | `SELECT` the value, compute in the client, `UPDATE` to the result: every value that is used is read |
//! | LSD | `UPDATE ... SET v = v + 1`, `... WHERE v > 1`: expressions and conditions; only a row count is seen |
//! | LSD+ | the same, the answer of a condition assumed and the commit sent along with it |
//!
//! | module | concept |
//! |---|---|
//! | [`client`] | a connection, its interface, and the delay |
//! | [`clients`] | many of them at a time, measured |
//! | [`counters`] | the microbenchmarks HOTKEY and ASSERT |
//! | [`tpcc`] | TPC-C with its statements sent one by one |

pub mod client;
pub mod clients;
pub mod counters;
pub mod tpcc;

pub use client::{Client, Control, Interface, Protocol};
