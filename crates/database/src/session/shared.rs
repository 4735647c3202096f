//! What the transactions of one database share.

use crate::session::admission::Admission;
use crate::session::alarm::Alarm;
use crate::session::compound::Compounds;
use crate::session::conflict::Committers;
use crate::session::conventional::lock_table::LockTable;
use crate::session::requirement::Requiring;
use crate::statement::Interned;
use crate::unnamed::Unnamed;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

/// What the transactions of one database share.
#[derive(Default)]
pub(crate) struct Sessions {
    /// Locks, and who waits for them.
    pub(crate) admission: Admission,
    /// Locks of conventional transactions, and who waits for them.
    pub(crate) lock_table: LockTable,
    /// Wakes those who have waited long enough.
    pub(crate) alarm: Alarm,
    /// Who has committed lately.
    pub(crate) committers: Mutex<Committers>,
    /// The programs of transactions.
    pub(crate) compounds: Mutex<Compounds>,
    /// Programs behind what they require.
    pub(crate) requiring: Mutex<Requiring>,
    /// Statements that the database itself makes.
    pub(crate) interned: Mutex<Interned>,
    /// Transactions that are open.
    pub(crate) open: AtomicUsize,
    /// What statements were defined as.
    pub(crate) unnamed: Arc<Unnamed>,
}
