//! What all connections of a server share.

use crate::admission::Admission;
use crate::configuration::Configuration;
use crate::metrics::Metrics;
use crate::registry::{Ending, Registry};
use crate::tls::Tls;
use crate::users::Users;
use fabius_sql::connection::SqlDatabase;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use tokio::sync::watch;

/// What all connections share.
pub struct Shared {
    /// The settings.
    pub configuration: Configuration,
    /// The database.
    pub sql: Arc<SqlDatabase>,
    /// Who is connected.
    pub registry: Registry,
    /// What is counted.
    pub metrics: Metrics,
    /// Who may connect; without this, anybody.
    pub users: Option<Users>,
    /// How connections are encrypted, if they can be.
    pub tls: Option<Tls>,
    /// The transactions that are under way.
    pub(crate) admission: Arc<Admission>,
    /// How many connections there are, strangers included.
    pub(crate) sockets: AtomicUsize,
    /// Whether the server is ending, for those who wait to hear it.
    pub(crate) ending: watch::Sender<Ending>,
}

impl Shared {
    /// Whether the server is ending.
    pub fn is_closing(&self) -> bool {
        *self.ending.borrow() > Ending::No
    }
}
