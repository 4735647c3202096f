//! What the transactions of one database share.

use crate::session::compound::Compounds;
use parking_lot::Mutex;
use std::sync::atomic::AtomicUsize;

/// What the transactions of one database share.
#[derive(Default)]
pub(crate) struct Sessions {
    /// The programs of transactions.
    pub(crate) compounds: Mutex<Compounds>,
    /// Transactions that are open.
    pub(crate) open: AtomicUsize,
    /// Held by whoever defines a statement.
    pub(crate) defining: Mutex<()>,
}
