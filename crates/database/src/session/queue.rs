//! Who waits for a lock: a queue by age.
//!
//! Someone who waits is woken when it is its turn, and not before: when nobody older holds, or waits for, a lock
//! that does not go together with the one it wants. So of those who want the same, one is woken at a time, the
//! oldest, and nobody younger gets in before it:
//!
//! ```text
//! held by 3      waiting: 5  7  8      3 is done: 5 is woken; 7 and 8 wait for 5, and so does 9, which asks now
//! ```
//!
//! What someone wants is what its statement looked at when it asked. Once woken it asks again, on the newest state,
//! and may find that it looks at other rows by now.

use super::condition_lock::{Holder, RowKey};
use super::hold::Hold;
use super::observation::Observation;
use super::wait::Wait;
use super::wound_wait::Owner;
use fabius_engine::speculation::Footprint;
use std::sync::Arc;
use std::task::Waker;

/// Those who wait for locks.
#[derive(Default)]
pub(super) struct Queue {
    /// The oldest first.
    places: Vec<Waiting>,
    /// Whether it may be somebody's turn.
    has_moved: bool,
}

/// A statement that waits for its lock.
pub(super) struct Waiting {
    pub(super) owner: Arc<Owner>,
    pub(super) waker: Waker,
    pub(super) wait: Wait,
    /// What it has run when it asked, and how it wants to hold that.
    pub(super) wants: Arc<Observation>,
    /// Whether it was told that it is its turn.
    pub(super) is_woken: bool,
}

impl Queue {
    /// Who waits for whom.
    pub(super) fn waits(&self) -> impl Iterator<Item = Wait> {
        self.places.iter().filter(|waiting| !waiting.is_woken).map(|waiting| waiting.wait.clone())
    }

    /// Takes a place.
    pub(super) fn stand(&mut self, waiting: Waiting) {
        let at = self.places.partition_point(|other| other.owner.age <= waiting.owner.age);
        self.places.insert(at, waiting);
    }

    /// Gives up a place, if one was taken.
    pub(super) fn leave(&mut self, owner: &Arc<Owner>) {
        let count = self.places.len();
        self.places.retain(|waiting| !Arc::ptr_eq(&waiting.owner, owner));
        self.has_moved |= self.places.len() != count;
    }

    /// Locks were given up, or somebody was wounded.
    pub(super) fn stir(&mut self) {
        self.has_moved = true;
    }

    /// Who is older, waits, and wants a lock that does not go together with another; and a row of both.
    pub(super) fn ahead(&self, age: u64, footprint: &Footprint, hold: Hold) -> Option<(&Owner, RowKey)> {
        let older = self.places.iter().take_while(|waiting| waiting.owner.age < age);
        older.into_iter().find_map(|waiting| {
            let wanted = &waiting.wants;
            let excludes = hold == Hold::LockForUpdate || wanted.hold == Hold::LockForUpdate;
            let row = footprint.rows.iter().find(|row| excludes && wanted.footprint.rows.contains(*row))?;
            Some((&*waiting.owner, row.clone()))
        })
    }

    /// Wakes those whose turn it is, and says of the others for whom they wait now.
    pub(super) fn wake(&mut self, holders: &[Holder], row_name: impl Fn(&RowKey) -> String) {
        if !std::mem::take(&mut self.has_moved) {
            return;
        }
        for at in 0..self.places.len() {
            let waiting = &self.places[at];
            let (age, wants) = (waiting.owner.age, &waiting.wants);
            let in_the_way = match waiting.owner.wounded() {
                Some(_) => None,
                None => older_holder(holders, age, &wants.footprint, wants.hold)
                    .or_else(|| self.ahead(age, &wants.footprint, wants.hold)),
            };
            let changed = in_the_way.map(|(owner, row)| {
                let is_same = owner.label == waiting.wait.holder;
                (!is_same).then(|| (owner.label.clone(), row))
            });
            let waiting = &mut self.places[at];
            match changed {
                Some(None) => {}
                Some(Some((holder, row))) => {
                    (waiting.wait.table, waiting.wait.row, waiting.wait.holder) =
                        (row.0, row_name(&row), holder);
                }
                None if !waiting.is_woken => {
                    waiting.is_woken = true;
                    waiting.waker.wake_by_ref();
                }
                None => {}
            }
        }
    }
}

/// Who is older and holds a lock that does not go together with another; and a row of both.
pub(super) fn older_holder<'h>(
    holders: &'h [Holder],
    age: u64,
    footprint: &Footprint,
    hold: Hold,
) -> Option<(&'h Owner, RowKey)> {
    let older = holders.iter().filter(|holder| holder.owner.age < age);
    older.into_iter().find_map(|holder| Some((&*holder.owner, holder.excludes(footprint, hold)?)))
}
