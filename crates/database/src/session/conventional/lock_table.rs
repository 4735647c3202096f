//! Shared and exclusive locks on rows and ranges of keys, for conventional two-phase locking.
//!
//! ```text
//! stock    rows     (5)  -> 7 reads {quantity}, 9 reads {quantity}          a holder by its age
//!                   (8)  -> 7 writes {quantity}
//!          ranges   [20, 30) <- 9 reads
//!          queue    11 wants to write (5)                                     waits for 7 and 9
//! ```
//!
//! Each table has a mutex of its own, which is held for one lookup. Columns that are read are locked for reading,
//! those that are written for writing ([`Access`]); at the grain of rows these are all columns. A range is locked
//! against rows that come or go in it. Who waits for whom is wound-wait ([`super::super::wound_wait`]); who is older
//! and waits comes first. An owner keeps its locks until it has ended, or is wounded.

use super::grain::Access;
use crate::session::lock::Lock;
use crate::session::wait::Wait;
use crate::session::wound_wait::Owner;
use fabius_engine::speculation::{KeyBytes, KeyRange};
use fabius_value::{Result, TableId};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::Waker;
use std::time::Instant;

/// What is locked.
#[derive(Clone, Debug)]
pub(crate) enum Target {
    /// A row, there or not.
    Row(TableId, KeyBytes),
    /// The rows that may be in a range.
    Range(KeyRange),
}

/// A lock that is wanted.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) target: Target,
    pub(crate) access: Access,
}

/// The locks of conventional transactions.
#[derive(Default)]
pub(crate) struct LockTable {
    tables: RwLock<HashMap<TableId, Arc<Mutex<TableLocks>>>>,
    /// How many owners hold locks, each once for every table.
    holders: AtomicUsize,
}

/// The locks of one table.
#[derive(Default)]
struct TableLocks {
    rows: BTreeMap<KeyBytes, Vec<Held>>,
    ranges: Vec<(KeyRange, Held)>,
    /// Those who wait, the oldest first.
    queue: Vec<Waiting>,
    /// Which rows each owner has locked; an owner of ranges alone has none.
    owned: HashMap<usize, (Arc<Owner>, Vec<KeyBytes>)>,
}

struct Held {
    owner: Arc<Owner>,
    access: Access,
}

struct Waiting {
    owner: Arc<Owner>,
    wanted: Wanted,
    waker: Waker,
    /// Who is ahead.
    holder: Arc<Owner>,
    since: Instant,
    /// Whether it was told that it is its turn.
    is_woken: bool,
}

/// How a lock is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'w> {
    /// Woken when it is worth asking again.
    pub(crate) waker: &'w Waker,
    /// When it was asked for first.
    pub(crate) since: Instant,
    /// Whether it is waited for; if not, nobody gives way to it either.
    pub(crate) waits: bool,
}

/// What comes of asking.
pub(crate) enum Answer {
    /// It is held now.
    Granted,
    /// Someone is in the way.
    Blocked(Arc<Owner>),
}

/// Who is in the way of a lock.
enum Obstacle {
    None,
    /// Someone to wait for.
    Ahead(Arc<Owner>),
    /// Nobody but those who have to give way, of whom this is one.
    Younger(Arc<Owner>),
}

impl Target {
    pub(crate) fn table(&self) -> TableId {
        match self {
            Target::Row(table, _) => *table,
            Target::Range(range) => range.table,
        }
    }

    fn meets(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Row(_, one), Target::Row(_, other)) => one == other,
            (Target::Row(_, key), Target::Range(range)) | (Target::Range(range), Target::Row(_, key)) => {
                range.contains(key)
            }
            // Ranges are read only.
            (Target::Range(_), Target::Range(_)) => false,
        }
    }
}

impl LockTable {
    /// Whether nobody holds a lock.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.holders.load(SeqCst) == 0
    }

    fn of(&self, table: TableId) -> Arc<Mutex<TableLocks>> {
        if let Some(locks) = self.tables.read().get(&table) {
            return locks.clone();
        }
        self.tables.write().entry(table).or_default().clone()
    }

    /// Asks for a lock: granted, unless someone is in the way who is older, or commits, or is older and waits. Those
    /// who are younger and hold it give way. Who is blocked and waits has a place in the queue until it asks again,
    /// or [leaves](LockTable::leave).
    ///
    /// # Errors
    /// That the owner was wounded itself.
    pub(crate) fn ask(
        &self,
        owner: &Arc<Owner>,
        wanted: &Wanted,
        name: impl Fn(&Target) -> String,
        wish: Wish<'_>,
    ) -> Result<Answer> {
        let locks = self.of(wanted.target.table());
        loop {
            let younger = {
                let mut locks = locks.lock();
                if let Some(error) = owner.wounded() {
                    return Err(error);
                }
                match locks.obstacle(owner, wanted) {
                    Obstacle::None => {
                        self.grant(&mut locks, owner, wanted);
                        return Ok(Answer::Granted);
                    }
                    Obstacle::Ahead(holder) => {
                        if wish.waits {
                            locks.stand(owner, wanted, &holder, wish);
                        }
                        return Ok(Answer::Blocked(holder));
                    }
                    Obstacle::Younger(holder) if !wish.waits => return Ok(Answer::Blocked(holder)),
                    Obstacle::Younger(holder) => holder,
                }
            };
            // One that has begun to commit meanwhile is waited for.
            if younger.wound(owner, &name(&wanted.target)) {
                self.release(&younger);
            }
        }
    }

    fn grant(&self, locks: &mut TableLocks, owner: &Arc<Owner>, wanted: &Wanted) {
        let place = locks.queue.iter().position(|waiting| Arc::ptr_eq(&waiting.owner, owner));
        place.map(|at| locks.queue.remove(at));
        let is_first = !locks.owned.contains_key(&address(owner));
        if is_first {
            self.holders.fetch_add(1, SeqCst);
        }
        locks.grant(owner, wanted);
    }

    /// Gives all locks of an owner up, and its place if it waits.
    pub(crate) fn release(&self, owner: &Arc<Owner>) {
        let tables: Vec<_> = self.tables.read().values().cloned().collect();
        for locks in tables {
            let mut locks = locks.lock();
            if locks.forget(owner) {
                self.holders.fetch_sub(1, SeqCst);
            }
            locks.wake();
        }
    }

    /// Gives a place in the queue up, if one was taken.
    pub(crate) fn leave(&self, owner: &Arc<Owner>, table: TableId) {
        let locks = self.of(table);
        let mut locks = locks.lock();
        let count = locks.queue.len();
        locks.queue.retain(|waiting| !Arc::ptr_eq(&waiting.owner, owner));
        if locks.queue.len() != count {
            locks.wake();
        }
    }

    /// Whether anybody waits.
    pub(crate) fn has_waits(&self) -> bool {
        !self.is_free() && self.tables.read().values().any(|locks| !locks.lock().queue.is_empty())
    }

    /// Who waits for whom; `name` says what a target is called.
    pub(crate) fn waits(&self, name: impl Fn(&Target) -> String) -> Vec<Wait> {
        let mut waits = Vec::new();
        for (table, locks) in &*self.tables.read() {
            waits.extend(locks.lock().queue.iter().filter(|waiting| !waiting.is_woken).map(|waiting| Wait {
                waiting: waiting.owner.label.clone(),
                holder: waiting.holder.label.clone(),
                table: *table,
                row: name(&waiting.wanted.target),
                writes: false,
                since: waiting.since,
            }));
        }
        waits
    }

    /// Who holds locks, the oldest first.
    pub(crate) fn locks(&self) -> Vec<Lock> {
        let mut locks: BTreeMap<u64, Lock> = BTreeMap::new();
        for (table, of_table) in &*self.tables.read() {
            let of_table = of_table.lock();
            for (owner, rows) in of_table.owned.values() {
                let ranges = of_table.ranges.iter().filter(|(_, held)| Arc::ptr_eq(&held.owner, owner));
                let lock = locks.entry(owner.age).or_insert_with(|| Lock {
                    holder: owner.label.clone(),
                    tables: Vec::new(),
                    statements: 0,
                });
                lock.tables.push(*table);
                lock.statements += rows.len() + ranges.count();
            }
        }
        locks.into_values().collect()
    }
}

impl TableLocks {
    fn obstacle(&self, owner: &Arc<Owner>, wanted: &Wanted) -> Obstacle {
        let mut younger = None;
        for holder in self.holders_against(owner, wanted) {
            if holder.age < owner.age || holder.is_committing() {
                return Obstacle::Ahead(holder.clone());
            }
            younger = Some(holder);
        }
        let mut older = self.queue.iter().take_while(|waiting| waiting.owner.age < owner.age);
        if let Some(waiting) = older.find(|waiting| waiting.is_against(wanted)) {
            return Obstacle::Ahead(waiting.owner.clone());
        }
        younger.map_or(Obstacle::None, |holder| Obstacle::Younger(holder.clone()))
    }

    /// Others whose locks do not go together with one.
    fn holders_against<'l>(
        &'l self,
        owner: &'l Arc<Owner>,
        wanted: &'l Wanted,
    ) -> impl Iterator<Item = &'l Arc<Owner>> {
        let (lower, upper, key) = match &wanted.target {
            Target::Row(_, key) => (key, Bound::Included(key), Some(key)),
            Target::Range(range) => {
                (&range.lower, range.upper.as_ref().map_or(Bound::Unbounded, Bound::Excluded), None)
            }
        };
        let is_empty = matches!(upper, Bound::Excluded(upper) if upper <= lower);
        let rows = (!is_empty).then(|| self.rows.range::<KeyBytes, _>((Bound::Included(lower), upper)));
        let of_rows = rows.into_iter().flatten().flat_map(|(_, held)| held);
        let of_ranges =
            self.ranges.iter().filter(move |(range, _)| key.is_some_and(|key| range.contains(key)));
        of_rows
            .chain(of_ranges.map(|(_, held)| held))
            .filter(|held| !Arc::ptr_eq(&held.owner, owner) && held.access.excludes(wanted.access))
            .map(|held| &held.owner)
    }

    fn grant(&mut self, owner: &Arc<Owner>, wanted: &Wanted) {
        let (_, owned) = self.owned.entry(address(owner)).or_insert_with(|| (owner.clone(), Vec::new()));
        let held = |access| Held { owner: owner.clone(), access };
        match &wanted.target {
            Target::Range(range) => self.ranges.push((range.clone(), held(wanted.access))),
            Target::Row(_, key) => match self.rows.get_mut(key) {
                Some(all) => match all.iter_mut().find(|held| Arc::ptr_eq(&held.owner, owner)) {
                    Some(own) => own.access = own.access.union(wanted.access),
                    None => {
                        all.push(held(wanted.access));
                        owned.push(key.clone());
                    }
                },
                None => {
                    self.rows.insert(key.clone(), vec![held(wanted.access)]);
                    owned.push(key.clone());
                }
            },
        }
    }

    fn stand(&mut self, owner: &Arc<Owner>, wanted: &Wanted, holder: &Arc<Owner>, wish: Wish<'_>) {
        self.queue.retain(|waiting| !Arc::ptr_eq(&waiting.owner, owner));
        let at = self.queue.partition_point(|other| other.owner.age <= owner.age);
        let waiting = Waiting {
            owner: owner.clone(),
            wanted: wanted.clone(),
            waker: wish.waker.clone(),
            holder: holder.clone(),
            since: wish.since,
            is_woken: false,
        };
        self.queue.insert(at, waiting);
    }

    /// Takes all of an owner out; whether it held anything.
    fn forget(&mut self, owner: &Arc<Owner>) -> bool {
        if let Some(at) = self.queue.iter().position(|waiting| Arc::ptr_eq(&waiting.owner, owner)) {
            self.queue.remove(at).waker.wake();
        }
        let Some((_, rows)) = self.owned.remove(&address(owner)) else { return false };
        self.ranges.retain(|(_, held)| !Arc::ptr_eq(&held.owner, owner));
        for key in rows {
            if let Some(held) = self.rows.get_mut(&key) {
                held.retain(|held| !Arc::ptr_eq(&held.owner, owner));
                if held.is_empty() {
                    self.rows.remove(&key);
                }
            }
        }
        true
    }

    /// Wakes those who have nobody ahead of them any more.
    fn wake(&mut self) {
        for at in 0..self.queue.len() {
            let waiting = &self.queue[at];
            let changed = match self.obstacle(&waiting.owner, &waiting.wanted) {
                Obstacle::Ahead(holder) if waiting.owner.wounded().is_none() => Some(holder),
                _ => None,
            };
            let waiting = &mut self.queue[at];
            match changed {
                Some(holder) => waiting.holder = holder,
                None if !waiting.is_woken => {
                    waiting.is_woken = true;
                    waiting.waker.wake_by_ref();
                }
                None => {}
            }
        }
    }
}

impl Waiting {
    fn is_against(&self, wanted: &Wanted) -> bool {
        self.wanted.target.meets(&wanted.target) && self.wanted.access.excludes(wanted.access)
    }
}

/// What tells an owner from others while it is there.
fn address(owner: &Arc<Owner>) -> usize {
    Arc::as_ptr(owner).addr()
}
