//! Advisory locks: numbers that clients lock, for whatever these mean to them.
//!
//! Functions take and give them back while a query runs, and cannot wait there. A query that would have to wait is
//! stopped, the lock is waited for, and the query is run again, with the lock in hand:
//!
//! ```text
//! run --- not free: wanted ---> stop, give back what this run took ---> wait ---> run again
//! ```

use super::Connection;
use crate::lock::{LockKey, LockTable, Owner, Patience};
use fabius_sql_meaning::session_facts::AdvisoryLock;
use fabius_value::{Error, Result, SqlState};
use std::collections::HashMap;

/// The advisory locks of a session.
#[derive(Default)]
pub(super) struct AdvisoryLocks {
    /// How often each is held.
    held: HashMap<AdvisoryLock, u32>,
    /// The term in which this node led its cluster when they were taken: they are in force in that alone.
    term: Option<u64>,
    /// What the query that runs has taken.
    taken: Vec<AdvisoryLock>,
    /// What it has stopped for.
    wanted: Option<AdvisoryLock>,
    /// What was waited for, for the query to take.
    in_hand: Option<AdvisoryLock>,
}

impl AdvisoryLocks {
    /// Whether all that are held were taken in this term.
    pub fn are_of(&self, term: Option<u64>) -> bool {
        self.held.is_empty() || self.term == term
    }

    /// The node leads its cluster in this term, in which locks are taken next.
    pub fn lead_in(&mut self, term: Option<u64>) {
        if self.held.is_empty() {
            self.term = term;
        }
    }

    /// Takes a lock, if it is free.
    pub fn take(&mut self, table: &LockTable, owner: Owner, lock: AdvisoryLock) -> bool {
        let is_free = self.in_hand.take_if(|in_hand| *in_hand == lock).is_some()
            || table.try_acquire(owner, &LockKey::Advisory(lock.key), lock.mode());
        if is_free {
            *self.held.entry(lock).or_default() += 1;
            self.taken.push(lock);
        }
        is_free
    }

    /// Takes a lock, or stops the query until it is free.
    ///
    /// # Errors
    /// What stops the query.
    pub fn take_or_stop(&mut self, table: &LockTable, owner: Owner, lock: AdvisoryLock) -> Result<()> {
        if self.take(table, owner, lock) {
            return Ok(());
        }
        self.wanted = Some(lock);
        Err(Error::new(SqlState(*b"55P03"), "could not obtain an advisory lock")
            .with_detail("it is held by another session, and this query cannot wait for it")
            .with_hint("take the lock in a statement of its own: SELECT pg_advisory_lock(...)"))
    }

    /// Before a query is run: what it takes from here on is its own.
    pub fn begin_taking(&mut self) {
        self.taken.clear();
        self.wanted = None;
    }

    /// Gives back a lock of the session, once; whether it had it.
    pub fn give_back(&mut self, table: &LockTable, owner: Owner, lock: AdvisoryLock) -> bool {
        let Some(count) = self.held.get_mut(&lock) else { return false };
        *count -= 1;
        if *count == 0 {
            self.held.remove(&lock);
        }
        self.let_go(table, owner, lock);
        true
    }

    /// Gives back all that are of the transaction, or of the session.
    pub fn give_back_all(&mut self, table: &LockTable, owner: Owner, is_of_transaction: bool) {
        if self.held.is_empty() {
            return;
        }
        let all = self.held.keys().filter(|lock| lock.is_of_transaction == is_of_transaction);
        for lock in all.copied().collect::<Vec<_>>() {
            self.held.remove(&lock);
            self.let_go(table, owner, lock);
        }
    }

    /// Frees a lock if neither the transaction nor the session holds it any more.
    fn let_go(&self, table: &LockTable, owner: Owner, lock: AdvisoryLock) {
        let other = AdvisoryLock { is_of_transaction: !lock.is_of_transaction, ..lock };
        if !self.held.contains_key(&lock) && !self.held.contains_key(&other) {
            table.release_mode(owner, &LockKey::Advisory(lock.key), lock.mode());
        }
    }
}

impl Connection {
    /// After a query has failed: waits for the lock that it has stopped for. Whether it is to be run again.
    ///
    /// # Errors
    /// `55P03`, `40P01`.
    pub(super) async fn wait_for_advisory(&mut self) -> Result<bool> {
        let (table, owner) = (&self.database.locks, self.session.process);
        let lock = {
            let mut locks = self.session.facts.advisory.lock();
            let Some(lock) = locks.wanted.take() else { return Ok(false) };
            for taken in std::mem::take(&mut locks.taken) {
                locks.give_back(table, owner, taken);
            }
            lock
        };
        let patience = self.session.settings.lock_timeout().map_or(Patience::Unbounded, Patience::For);
        table.acquire(owner, &LockKey::Advisory(lock.key), lock.mode(), patience).await?;
        self.session.facts.advisory.lock().in_hand = Some(lock);
        Ok(true)
    }

    /// After a query: a lock that was waited for and not taken is free again.
    pub(super) fn end_taking(&self) {
        let mut locks = self.session.facts.advisory.lock();
        locks.taken.clear();
        if let Some(lock) = locks.in_hand.take() {
            locks.let_go(&self.database.locks, self.session.process, lock);
        }
        if self.transaction.is_idle() {
            locks.give_back_all(&self.database.locks, self.session.process, true);
        }
    }
}
