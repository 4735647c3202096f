//! Locks on tables, names and numbers, between connections.
//!
//! Rows are not locked here: what a transaction depends on is checked, or held, by the database beneath. Whoever waits
//! here looks from time to time whether those who wait there close a circle with those who wait here.

use fabius_sql_meaning::catalog::{ObjectName, Oid};
use fabius_sql_meaning::session_facts::AdvisoryKey;
pub use fabius_sql_syntax::lock_mode::LockMode;
use fabius_sql_syntax::lock_mode::Modes;
use fabius_value::{Error, Result, SqlState};
use parking_lot::Mutex;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Instant;

/// Who holds or wants a lock: a connection's number.
pub type Owner = i32;

/// How often who waits looks for circles over waits elsewhere, which may close later.
const CIRCLES: Duration = Duration::from_millis(200);

/// What the database beneath calls a connection.
pub fn label(owner: Owner) -> String {
    format!("process {owner}")
}

/// The connection that the database beneath calls so.
pub fn owner_of(label: &str) -> Option<Owner> {
    label.strip_prefix("process ")?.parse().ok()
}

/// What is locked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LockKey {
    /// A table.
    Relation(Oid),
    /// A name that something is to have.
    Name(ObjectName),
    /// A number that clients agree on (`pg_advisory_lock`).
    Advisory(AdvisoryKey),
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
    /// Since when it is waited for; `None` if it is held.
    pub waits_since: Option<std::time::Instant>,
}

/// Who waits for whom, but not in a lock table.
type Elsewhere = Box<dyn Fn() -> Vec<(Owner, Owner)> + Send + Sync>;

/// All locks of a database.
pub struct LockTable {
    locks: Mutex<HashMap<LockKey, Lock>>,
    elsewhere: Elsewhere,
}

#[derive(Default)]
struct Lock {
    holders: Vec<(Owner, Modes)>,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    owner: Owner,
    mode: LockMode,
    since: std::time::Instant,
    granted: oneshot::Sender<()>,
}

impl Lock {
    fn held(&self, owner: Owner) -> Modes {
        self.holders.iter().find(|(holder, _)| *holder == owner).map(|(_, modes)| *modes).unwrap_or_default()
    }

    fn is_compatible(&self, owner: Owner, mode: LockMode) -> bool {
        let excluded = mode.excluded();
        self.holders.iter().all(|(holder, held)| *holder == owner || !held.meets(excluded))
    }

    fn grant(&mut self, owner: Owner, mode: LockMode) {
        match self.holders.iter_mut().find(|(holder, _)| *holder == owner) {
            Some((_, held)) => *held = held.with(mode),
            None => self.holders.push((owner, Modes::default().with(mode))),
        }
    }

    fn take_away(&mut self, owner: Owner, mode: LockMode) {
        for (_, held) in self.holders.iter_mut().filter(|(holder, _)| *holder == owner) {
            *held = held.without(mode);
        }
        self.holders.retain(|(_, held)| !held.is_empty());
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

    /// For whom an owner waits: those who hold it, and those who want it before, in modes that its own excludes.
    fn blockers(&self, owner: Owner) -> impl Iterator<Item = Owner> {
        let at = self.waiters.iter().position(|waiter| waiter.owner == owner);
        let excluded = at.map(|at| self.waiters[at].mode.excluded()).unwrap_or_default();
        let holders = self.holders.iter().filter(move |(_, held)| held.meets(excluded));
        let ahead = self.waiters.iter().take(at.unwrap_or(0));
        let ahead = ahead.filter(move |waiter| excluded.has(waiter.mode));
        let all = holders.map(|(holder, _)| *holder).chain(ahead.map(|waiter| waiter.owner));
        all.filter(move |other| *other != owner)
    }
}

impl LockTable {
    /// No locks; `elsewhere` says who waits for whom besides.
    pub fn new(elsewhere: impl Fn() -> Vec<(Owner, Owner)> + Send + Sync + 'static) -> LockTable {
        LockTable { locks: Mutex::default(), elsewhere: Box::new(elsewhere) }
    }

    /// Takes a lock in a mode, besides those that the owner has. What is held stays held until it is released.
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
        let mut receiver = {
            let mut locks = self.locks.lock();
            let lock = locks.entry(key.clone()).or_default();
            let held = lock.held(owner);
            if held.has(mode) {
                return Ok(false);
            }
            // Whoever has it already would wait for itself behind others.
            if lock.is_compatible(owner, mode) && (lock.waiters.is_empty() || !held.is_empty()) {
                lock.grant(owner, mode);
                return Ok(false);
            }
            if patience == Patience::None {
                return Err(not_available(key));
            }
            let (granted, receiver) = oneshot::channel();
            let waiter = Waiter { owner, mode, since: std::time::Instant::now(), granted };
            match held.is_empty() {
                true => lock.waiters.push_back(waiter),
                false => lock.waiters.push_front(waiter),
            }
            receiver
        };
        let withdrawal = Withdrawal { table: self, key, owner, mode };
        let deadline = match patience {
            Patience::For(most) => Some(Instant::now() + most),
            _ => None,
        };
        loop {
            if self.is_circular(owner) {
                return Err(Error::new(SqlState(*b"40P01"), "deadlock detected")
                    .with_detail(format!("{} waits for a lock whose holders wait for it", label(owner)))
                    .with_hint("the transaction might succeed if retried"));
            }
            let look = Instant::now() + CIRCLES;
            let until = deadline.map_or(look, |deadline| deadline.min(look));
            if let Ok(granted) = tokio::time::timeout_at(until, &mut receiver).await {
                std::mem::forget(withdrawal);
                return granted.map(|()| true).map_err(|_| not_available(key));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(Error::new(SqlState(*b"55P03"), "canceling statement due to lock timeout"));
            }
        }
    }

    /// Gives up locks, in whatever modes.
    pub fn release(&self, owner: Owner, keys: &[LockKey]) {
        if keys.is_empty() {
            return;
        }
        let mut locks = self.locks.lock();
        for key in keys {
            change(&mut locks, key, |lock| lock.holders.retain(|(holder, _)| *holder != owner));
        }
    }

    /// Gives up a lock in one mode.
    pub fn release_mode(&self, owner: Owner, key: &LockKey, mode: LockMode) {
        change(&mut self.locks.lock(), key, |lock| lock.take_away(owner, mode));
    }

    /// Takes a lock if nobody has to be waited for.
    pub fn try_acquire(&self, owner: Owner, key: &LockKey, mode: LockMode) -> bool {
        let mut locks = self.locks.lock();
        let lock = locks.entry(key.clone()).or_default();
        let is_free =
            lock.is_compatible(owner, mode) && (lock.waiters.is_empty() || !lock.held(owner).is_empty());
        if is_free {
            lock.grant(owner, mode);
        }
        is_free
    }

    /// Who holds and who waits.
    pub fn entries(&self) -> Vec<LockEntry> {
        let locks = self.locks.lock();
        let entry = |key: &LockKey, owner, mode, waits_since| LockEntry {
            key: key.clone(),
            owner,
            mode,
            waits_since,
        };
        let of_lock = |(key, lock): (&LockKey, &Lock)| -> Vec<LockEntry> {
            let held = lock.holders.iter();
            let held =
                held.flat_map(|(owner, modes)| modes.each().map(|mode| entry(key, *owner, mode, None)));
            let waiting = lock.waiters.iter();
            held.chain(waiting.map(|waiter| entry(key, waiter.owner, waiter.mode, Some(waiter.since))))
                .collect()
        };
        locks.iter().flat_map(of_lock).collect()
    }

    /// For whom an owner waits, here and elsewhere.
    pub fn blockers(&self, owner: Owner) -> Vec<Owner> {
        let mut blockers: Vec<Owner> = {
            let locks = self.locks.lock();
            locks.values().flat_map(|lock| lock.blockers(owner)).collect()
        };
        let elsewhere = (self.elsewhere)().into_iter();
        blockers.extend(elsewhere.filter(|(waiting, _)| *waiting == owner).map(|(_, holder)| holder));
        blockers.sort_unstable();
        blockers.dedup();
        blockers
    }

    /// Whether an owner waits, over others, for itself.
    fn is_circular(&self, start: Owner) -> bool {
        let elsewhere = (self.elsewhere)();
        let locks = self.locks.lock();
        let mut seen = HashSet::new();
        let mut next = vec![start];
        while let Some(owner) = next.pop() {
            let here = locks.values().flat_map(|lock| lock.blockers(owner));
            let there = elsewhere.iter().filter(|(waiting, _)| *waiting == owner).map(|(_, holder)| *holder);
            for other in here.chain(there) {
                if other == start {
                    return true;
                }
                if seen.insert(other) {
                    next.push(other);
                }
            }
        }
        false
    }
}

/// Changes a lock, passes on what has become free, and forgets it if nobody wants it.
fn change(locks: &mut HashMap<LockKey, Lock>, key: &LockKey, step: impl FnOnce(&mut Lock)) {
    if let Some(lock) = locks.get_mut(key) {
        step(lock);
        lock.pass_on();
        if lock.holders.is_empty() && lock.waiters.is_empty() {
            locks.remove(key);
        }
    }
}

/// Takes a waiter out again when it stops waiting; also if the lock was granted and it has not noticed.
struct Withdrawal<'t> {
    table: &'t LockTable,
    key: &'t LockKey,
    owner: Owner,
    mode: LockMode,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let (owner, mode) = (self.owner, self.mode);
        change(&mut self.table.locks.lock(), self.key, |lock| {
            let before = lock.waiters.len();
            lock.waiters.retain(|waiter| waiter.owner != owner);
            if lock.waiters.len() == before {
                lock.take_away(owner, mode);
            }
        });
    }
}

fn not_available(key: &LockKey) -> Error {
    let what = match key {
        LockKey::Relation(oid) => format!("relation {oid}"),
        LockKey::Name(name) => format!("relation \"{}\"", name.name),
        LockKey::Advisory(_) => "an advisory key".to_string(),
    };
    Error::new(SqlState(*b"55P03"), format!("could not obtain lock on {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_sql_syntax::lock_mode::LockMode::{
        AccessExclusive, AccessShare, Exclusive, Share, ShareUpdateExclusive,
    };
    use std::sync::Arc;

    fn table() -> Arc<LockTable> {
        Arc::new(LockTable::new(Vec::new))
    }

    /// Waits in another task.
    fn wait(table: &Arc<LockTable>, owner: Owner, key: LockKey) -> tokio::task::JoinHandle<Result<bool>> {
        let table = table.clone();
        tokio::spawn(async move { table.acquire(owner, &key, AccessExclusive, Patience::Unbounded).await })
    }

    #[tokio::test]
    async fn a_circle_of_waiters_is_refused_at_once() {
        let table = table();
        let (a, b) = (LockKey::Relation(1), LockKey::Relation(2));
        table.acquire(1, &a, AccessExclusive, Patience::Unbounded).await.unwrap();
        table.acquire(2, &b, AccessExclusive, Patience::Unbounded).await.unwrap();
        let waiting = wait(&table, 1, b.clone());
        while table.entries().len() < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(table.blockers(1), [2]);
        let refused = table.acquire(2, &a, AccessShare, Patience::Unbounded).await.unwrap_err();
        assert_eq!(refused.state().as_str(), "40P01");
        table.release(2, &[b]);
        assert_eq!(waiting.await.unwrap(), Ok(true));
    }

    /// Goal: a circle that is closed by a wait elsewhere, later, is found too.
    #[tokio::test]
    async fn a_circle_over_other_waits_is_refused() {
        let elsewhere: Arc<Mutex<Vec<(Owner, Owner)>>> = Arc::default();
        let said = elsewhere.clone();
        let table = Arc::new(LockTable::new(move || said.lock().clone()));
        let key = LockKey::Relation(1);
        assert!(table.try_acquire(1, &key, AccessExclusive));
        let waiting = wait(&table, 2, key);
        while table.entries().len() < 2 {
            tokio::task::yield_now().await;
        }
        elsewhere.lock().push((1, 2));
        assert_eq!(waiting.await.unwrap().unwrap_err().state().as_str(), "40P01");
        assert_eq!(table.entries().len(), 1);
    }

    /// Goal: who stops waiting in the moment in which the lock is granted does not keep it.
    #[tokio::test]
    async fn a_lock_that_nobody_waits_for_any_more_is_free() {
        let table = table();
        let key = LockKey::Relation(1);
        assert!(table.try_acquire(1, &key, Share));
        {
            let mut waiting = Box::pin(table.acquire(2, &key, Exclusive, Patience::Unbounded));
            assert!(futures::poll!(&mut waiting).is_pending());
            table.release(1, std::slice::from_ref(&key));
        }
        assert_eq!(table.entries(), []);
    }

    /// Goal: the matrix is symmetric, as PostgreSQL's is, and has as many conflicts.
    #[test]
    fn modes_exclude_each_other() {
        let excludes = |a: LockMode, b: LockMode| a.excluded().has(b);
        let pairs = LockMode::ALL.into_iter().flat_map(|a| LockMode::ALL.into_iter().map(move |b| (a, b)));
        assert!(pairs.clone().all(|(a, b)| excludes(a, b) == excludes(b, a)));
        assert_eq!(pairs.filter(|(a, b)| excludes(*a, *b)).count(), 1 + 2 + 4 + 5 + 5 + 6 + 7 + 8);
        assert!(!excludes(Share, Share) && excludes(ShareUpdateExclusive, ShareUpdateExclusive));
    }
}
