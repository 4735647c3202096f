//! PostgreSQL's protocol, version 3: what its messages are, and the socket they come through.
//!
//! Messages are read where they lie and written straight into the buffer that is sent
//! (`docs/decisions/own-connection-loop.md` says why these are not `pgwire`'s).

pub mod backend;
pub mod frontend;
pub mod socket;
pub mod stream;
