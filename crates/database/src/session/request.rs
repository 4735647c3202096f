//! Asking for a lock, and waiting until it is granted.
//!
//! ```text
//! ask --- nobody older holds or wants it --> those who are younger and hold it are wounded --> granted
//!  ^  \-- somebody does --> a place in the queue --woken--+
//!  +------------------------------------------------------+
//! ```

use super::admission::Gate;
use super::condition_lock::{Holder, RowKey};
use super::observation::Observation;
use super::queue::{Waiting, older_holder};
use super::row_name::row_name;
use super::wait::{Wait, waited_too_long};
use super::wound_wait::Owner;
use crate::Database;
use fabius_value::Result;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::{Duration, Instant};

/// A lock that was asked for.
pub(crate) enum Asked {
    /// It is held now.
    Granted,
    /// Someone is in the way; the waker is woken when it is its turn.
    Blocked(Wait),
}

/// A place among those who wait, which is given up when this is dropped.
struct Place {
    database: Arc<Database>,
    owner: Arc<Owner>,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut gate = self.database.sessions().admission.gate.lock();
        gate.queue.leave(&self.owner);
        self.database.wake(&mut gate);
    }
}

/// Asks for a lock until it is granted, or the time is over. A timeout of zero does not wait, nor makes it anybody
/// give way.
///
/// # Errors
/// Those of `ask`; `55P03`.
pub(crate) async fn until_granted<T>(
    database: &Arc<Database>,
    owner: &Arc<Owner>,
    timeout: Option<Duration>,
    mut ask: impl FnMut(Wish<'_>) -> Result<Result<T, Wait>>,
) -> Result<T> {
    let since = Instant::now();
    let deadline = timeout.map(|timeout| since + timeout);
    let waits = timeout != Some(Duration::ZERO);
    let mut place: Option<Place> = None;
    poll_fn(|context| match ask(Wish { waker: context.waker(), since, waits }) {
        Ok(Ok(granted)) => Poll::Ready(Ok(granted)),
        Ok(Err(wait)) => {
            place.get_or_insert_with(|| Place { database: database.clone(), owner: owner.clone() });
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Poll::Ready(Err(waited_too_long(&wait)));
            }
            if let Some(deadline) = deadline {
                database.sessions().alarm.at(deadline, context.waker().clone());
            }
            Poll::Pending
        }
        Err(error) => Poll::Ready(Err(error)),
    })
    .await
}

/// How a lock is asked for.
#[derive(Clone, Copy)]
pub(crate) struct Wish<'w> {
    /// Woken when it is worth asking again.
    waker: &'w Waker,
    /// When it was asked for first.
    since: Instant,
    /// Whether it is waited for.
    waits: bool,
}

/// The moment in which a lock is asked for.
pub(crate) struct Asking<'d> {
    pub(super) database: &'d Arc<Database>,
    pub(super) gate: &'d mut Gate,
    pub(super) owner: &'d Arc<Owner>,
}

impl Asking<'_> {
    /// Locks what the last of these observations has looked at, unless someone is in the way: someone older who
    /// holds it or waits for it, or anyone if it is not waited for.
    pub(crate) fn lock(
        &mut self,
        observations: &[Arc<Observation>],
        wants: &Arc<Observation>,
        wish: Wish<'_>,
    ) -> Asked {
        let owner = self.owner;
        self.gate.queue.leave(owner);
        if let Some((holder, row)) = self.in_the_way(wants, wish.waits) {
            let definitions = self.database.definitions();
            let (waiting, holder) = (owner.label.clone(), holder.label.clone());
            let (table, row) = (row.0, row_name(&definitions, &row));
            let wait = Wait { waiting, holder, table, row, writes: false, since: wish.since };
            if wish.waits {
                let (owner, waker, wants) = (owner.clone(), wish.waker.clone(), wants.clone());
                self.gate.queue.stand(Waiting { owner, waker, wait: wait.clone(), wants, is_woken: false });
            }
            return Asked::Blocked(wait);
        }
        while let Some((at, key)) = self.held_by_another(wants) {
            let row = row_name(&self.database.definitions(), &key);
            self.database.wound(self.gate, at, owner, &row);
        }
        let holder = match self.gate.holder(self.owner) {
            None => Holder::new(self.owner.clone(), observations),
            Some(at) => {
                let before = self.gate.holders.remove(at);
                self.database.count_tables(before.tables(), &BTreeSet::new());
                before.grown(observations)
            }
        };
        self.database.add(self.gate, holder);
        Asked::Granted
    }

    /// Whom it has to wait for, or not to disturb.
    fn in_the_way(&self, wants: &Observation, waits: bool) -> Option<(&Owner, RowKey)> {
        let (age, footprint, hold) = (self.owner.age, &wants.footprint, wants.hold);
        if !waits && let Some((at, row)) = self.held_by_another(wants) {
            return Some((&self.gate.holders[at].owner, row));
        }
        let holder = older_holder(&self.gate.holders, age, footprint, hold);
        holder.or_else(|| self.gate.queue.ahead(age, footprint, hold))
    }

    fn held_by_another(&self, wants: &Observation) -> Option<(usize, RowKey)> {
        let others = self.gate.holders.iter().enumerate();
        others
            .filter(|(_, holder)| !Arc::ptr_eq(&holder.owner, self.owner))
            .find_map(|(at, holder)| Some((at, holder.excludes(&wants.footprint, wants.hold)?)))
    }
}
