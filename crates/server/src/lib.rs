//! The PostgreSQL wire protocol, metrics, configuration.
//!
//! | module | concept |
//! |---|---|
//! | [`server`] | listening, limits, shutting down |
//! | [`configuration`] | the settings, and where they come from |
//! | `client` | one client, from its first byte to its last: startup, simple and extended queries, copies |
//! | [`wire`] | messages: read where they lie, written where they are sent from |
//! | [`registry`] | who is connected; cancel requests |
//! | [`users`] | who may connect, and what proves that it is them |
//! | [`tls`] | certificates |
//! | [`metrics`] | what is counted |
//! | [`http`] | metrics and health on a port of their own |
//! | [`logging`] | logs, as text or JSON |
//!
//! This crate knows nothing of what statements mean: `fabius_sql` does.

mod admission;
mod client;
pub mod configuration;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod registry;
pub mod server;
pub mod shared;
pub mod tls;
pub mod users;
pub mod wire;

pub use configuration::Configuration;
pub use server::{HURRIED_END, Haste, Prepared, Server};
