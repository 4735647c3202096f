//! Locks on tables and names, between connections: statements share a table, definitions have it to themselves.
//!
//! Rows are not locked here: what a transaction depends on is checked, or held, by the database beneath.

use crate::catalog::{ObjectName, Oid};
use fabius_value::{Error, Result, SqlState};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;

/// Who holds or wants a lock: a connection's number.
pub type Owner = i32;

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LockKey {
    /// A table.
    Relation(Oid),
    /// A name that something is to have.
    Name(ObjectName),
}

/// How.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockMode {
    /// With others.
    Shared,
    /// Alone.
    Exclusive,
}

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Patience {
    /// Not at all: `NOWAIT`.
    None,
    /// So long.
    For(Duration),
    /// Until it is free.
    Unbounded,
}

/// A lock as a listing shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LockEntry {
    /// What is locked.
    pub key: LockKey,
    /// By whom.
    pub owner: Owner,
    /// How.
    pub mode: LockMode,
    /// Whether it is held, not waited for.
    pub is_granted: bool,
}

/// All locks of a database.
#[derive(Default)]
pub struct LockTable {
    locks: Mutex<HashMap<LockKey, Lock>>,
}

#[derive(Default)]
struct Lock {
    holders: Vec<(Owner, LockMode)>,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    owner: Owner,
    mode: LockMode,
    granted: oneshot::Sender<()>,
}

impl Lock {
    fn held(&self, owner: Owner) -> Option<LockMode> {
        self.holders.iter().find(|(holder, _)| *holder == owner).map(|(_, mode)| *mode)
    }

    fn is_compatible(&self, owner: Owner, mode: LockMode) -> bool {
        self.holders
            .iter()
            .all(|(holder, held)| *holder == owner || (mode == LockMode::Shared && *held == LockMode::Shared))
    }

    fn grant(&mut self, owner: Owner, mode: LockMode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some((_, held)) => *held = (*held).max(mode),
            None => self.holders.push((owner, mode)),
        }
    }

    /// Gives it to those who wait, in their order, as far as that goes.
    fn pass_on(&mut self) {
        while let Some(first) = self.waiters.front() {
            if !self.is_compatible(first.owner, first.mode) {
                return;
            }
            if let Some(waiter) = self.waiters.pop_front()
                && waiter.granted.send(()).is_ok()
            {
                self.grant(waiter.owner, waiter.mode);
            }
        }
    }
}

impl LockTable {
    /// Takes a lock, or makes one stronger. What is held stays held until [`LockTable::release`].
    /// Whether it had to wait: the catalog may be another by then.
    ///
    /// # Errors
    /// `40P01` if those who hold it wait for the owner, `55P03` if it takes too long.
    pub async fn acquire(
        &self,
        owner: Owner,
        key: &LockKey,
        mode: LockMode,
        patience: Patience,
    ) -> Result<bool> {
        let receiver = {
            let mut locks = self.locks.lock();
            let lock = locks.entry(key.clone()).or_default();
            let held = lock.held(owner);
            if held.is_some_and(|held| held >= mode) {
                return Ok(false);
            }
            // Whoever has it already would wait for itself behind others.
            if lock.is_compatible(owner, mode) && (lock.waiters.is_empty() || held.is_some()) {
                lock.grant(owner, mode);
                return Ok(false);
            }
            if patience == Patience::None {
                return Err(not_available(key));
            }
            let (granted, receiver) = oneshot::channel();
            let waiter = Waiter { owner, mode, granted };
            if held.is_some() {
                lock.waiters.push_front(waiter)
            } else {
                lock.waiters.push_back(waiter)
            }
            if is_circular(&locks, owner) {
                withdraw(&mut locks, key, owner);
                return Err(Error::new(SqlState(*b"40P01"), "deadlock detected")
                    .with_detail(format!("process {owner} waits for a lock whose holders wait for it"))
                    .with_hint("the transaction might succeed if retried"));
            }
            receiver
        };
        let withdrawal = Withdrawal { table: self, key, owner };
        let outcome = match patience {
            Patience::For(most) => tokio::time::timeout(most, receiver)
                .await
                .map_err(|_| Error::new(SqlState(*b"55P03"), "canceling statement due to lock timeout"))?,
            _ => receiver.await,
        };
        std::mem::forget(withdrawal);
        outcome.map(|()| true).map_err(|_| not_available(key))
    }

    /// Gives up locks.
    pub fn release(&self, owner: Owner, keys: &[LockKey]) {
        if keys.is_empty() {
            return;
        }
        let mut locks = self.locks.lock();
        for key in keys {
            if let Some(lock) = locks.get_mut(key) {
                lock.holders.retain(|(holder, _)| *holder != owner);
                lock.pass_on();
                if lock.holders.is_empty() && lock.waiters.is_empty() {
                    locks.remove(key);
                }
            }
        }
    }

    /// Who holds and who waits.
    pub fn entries(&self) -> Vec<LockEntry> {
        let locks = self.locks.lock();
        let entry =
            |key: &LockKey, owner, mode, is_granted| LockEntry { key: key.clone(), owner, mode, is_granted };
        let of_lock = |(key, lock): (&LockKey, &Lock)| -> Vec<LockEntry> {
            let held = lock.holders.iter().map(|(owner, mode)| entry(key, *owner, *mode, true));
            held.chain(lock.waiters.iter().map(|waiter| entry(key, waiter.owner, waiter.mode, false)))
                .collect()
        };
        locks.iter().flat_map(of_lock).collect()
    }
}

/// Takes a waiter out again when it stops waiting.
struct Withdrawal<'t> {
    table: &'t LockTable,
    key: &'t LockKey,
    owner: Owner,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        withdraw(&mut self.table.locks.lock(), self.key, self.owner);
    }
}

fn withdraw(locks: &mut HashMap<LockKey, Lock>, key: &LockKey, owner: Owner) {
    if let Some(lock) = locks.get_mut(key) {
        lock.waiters.retain(|waiter| waiter.owner != owner);
        lock.pass_on();
        if lock.holders.is_empty() && lock.waiters.is_empty() {
            locks.remove(key);
        }
    }
}

/// Whether an owner waits, over others, for itself.
fn is_circular(locks: &HashMap<LockKey, Lock>, start: Owner) -> bool {
    let mut seen = HashSet::new();
    let mut next = vec![start];
    while let Some(owner) = next.pop() {
        for lock in locks.values() {
            let Some(at) = lock.waiters.iter().position(|waiter| waiter.owner == owner) else { continue };
            let wanted = lock.waiters[at].mode;
            let holders = lock.holders.iter().filter(|(_, held)| wanted.max(*held) == LockMode::Exclusive);
            let ahead = lock.waiters.iter().take(at).filter(|w| wanted.max(w.mode) == LockMode::Exclusive);
            for other in holders.map(|(holder, _)| *holder).chain(ahead.map(|waiter| waiter.owner)) {
                if other == owner {
                    continue;
                }
                if other == start {
                    return true;
                }
                if seen.insert(other) {
                    next.push(other);
                }
            }
        }
    }
    false
}

fn not_available(key: &LockKey) -> Error {
    let what = match key {
        LockKey::Relation(oid) => format!("relation {oid}"),
        LockKey::Name(name) => format!("relation \"{}\"", name.name),
    };
    Error::new(SqlState(*b"55P03"), format!("could not obtain lock on {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_circle_of_waiters_is_refused_at_once() {
        let table = std::sync::Arc::new(LockTable::default());
        let (a, b) = (LockKey::Relation(1), LockKey::Relation(2));
        let (exclusive, patience) = (LockMode::Exclusive, Patience::Unbounded);
        table.acquire(1, &a, exclusive, patience).await.unwrap();
        table.acquire(2, &b, exclusive, patience).await.unwrap();
        let (other, key) = (table.clone(), b.clone());
        let waiting = tokio::spawn(async move { other.acquire(1, &key, exclusive, patience).await });
        while table.entries().len() < 3 {
            tokio::task::yield_now().await;
        }
        let refused = table.acquire(2, &a, LockMode::Shared, patience).await.unwrap_err();
        assert_eq!(refused.state().as_str(), "40P01");
        table.release(2, &[b]);
        assert_eq!(waiting.await.unwrap(), Ok(true));
    }
}
