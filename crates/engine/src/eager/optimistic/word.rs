//! What the words of records and granules hold.
//!
//! ```text
//! record     owner: 0 if it is not locked, else the slot of the call that installs, plus 1;
//!            or, if the highest bit is set, the place of a split record: nobody can lock it
//!
//!             63             24 23           8 7      0
//! granule    +-----------------+--------------+--------+
//!            | changes made    | changes      | owner  |
//!            |                 | under way    |        |
//!            +-----------------+--------------+--------+
//! ```
//!
//! A granule's word serves scans (the two counts) and claims (the owner), because two names may share it.

use std::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const OWNER: u64 = 0xff;
const UNDER_WAY: u64 = 1 << 8;
const UNDER_WAY_MASK: u64 = 0xffff << 8;
const MADE: u64 = 1 << 24;
const SPLIT: u64 = 1 << 63;

/// Calls that run at one time, at most: each has a slot, and words have eight bits for the slot of an owner.
pub const SLOTS_MAX: usize = OWNER as usize;

/// Who holds a word: the slot of a running call, plus 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner(u64);

impl Owner {
    /// The call in a slot, below [`SLOTS_MAX`].
    pub fn of_slot(slot: usize) -> Owner {
        assert!(slot < SLOTS_MAX, "an owner has 8 bits");
        Owner(slot as u64 + 1)
    }
}

/// The counts of a granule, as a scan has seen them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count(u64);

/// Whether someone else installs a version.
#[inline]
pub fn is_locked_by_other(word: &AtomicU64, owner: Owner) -> bool {
    let holder = word.load(Acquire);
    holder != 0 && holder != owner.0
}

/// Locks a record that nobody has locked; whether it is.
#[inline]
pub fn try_lock(word: &AtomicU64, owner: Owner) -> bool {
    word.load(Relaxed) == 0 && word.compare_exchange(0, owner.0, AcqRel, Relaxed).is_ok()
}

/// Gives a record back.
#[inline]
pub fn unlock(word: &AtomicU64) {
    word.store(0, Release);
}

/// Makes a record a split one, with a place in some list; no call runs.
pub fn split(word: &AtomicU64, place: usize) {
    word.store(SPLIT | place as u64, Release);
}

/// The place of a split record; `None` if it is not split.
#[inline]
pub fn split_place(word: &AtomicU64) -> Option<usize> {
    let word = word.load(Acquire);
    (word & SPLIT != 0).then_some((word & !SPLIT) as usize)
}

/// The counts of a granule; `None` while a change is under way.
#[inline]
pub fn observe(word: &AtomicU64) -> Option<Count> {
    let count = word.load(Acquire) & !OWNER;
    (count & UNDER_WAY_MASK == 0).then_some(Count(count))
}

/// Whether a granule is as it was, but for the observer's own change under way, if it has one.
#[inline]
pub fn is_unchanged(word: &AtomicU64, count: Count, has_own: bool) -> bool {
    word.load(Acquire) & !OWNER == count.0 + if has_own { UNDER_WAY } else { 0 }
}

/// Says that a change of the granule is under way. One thread has one at a time, so the count has room.
#[inline]
pub fn raise(word: &AtomicU64) {
    word.fetch_add(UNDER_WAY, AcqRel);
}

/// Says that the change was made, or given up.
#[inline]
pub fn lower(word: &AtomicU64, is_made: bool) {
    word.fetch_add(if is_made { MADE } else { 0 }.wrapping_sub(UNDER_WAY), AcqRel);
}

/// Claims a granule that no other has claimed: whether it is the owner's now, and whether it was before.
#[inline]
pub fn claim(word: &AtomicU64, owner: Owner) -> Claim {
    let mut seen = word.load(Relaxed);
    loop {
        match seen & OWNER {
            0 => {}
            holder if holder == owner.0 => return Claim::Held,
            _ => return Claim::Refused,
        }
        match word.compare_exchange_weak(seen, seen | owner.0, AcqRel, Relaxed) {
            Ok(_) => return Claim::Taken,
            Err(now) => seen = now,
        }
    }
}

/// What became of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is the owner's from now on.
    Taken,
    /// It was before.
    Held,
    /// It is another's.
    Refused,
}

/// Gives a claim back.
#[inline]
pub fn disclaim(word: &AtomicU64) {
    word.fetch_and(!OWNER, AcqRel);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_claims_do_not_disturb_each_other() {
        let word = AtomicU64::new(0);
        let (one, other) = (Owner::of_slot(0), Owner::of_slot(1));
        let before = observe(&word).expect("nothing is under way");
        assert_eq!(claim(&word, one), Claim::Taken);
        assert_eq!(claim(&word, one), Claim::Held);
        assert_eq!(claim(&word, other), Claim::Refused);
        assert!(is_unchanged(&word, before, false));
        raise(&word);
        assert_eq!(observe(&word), None);
        assert!(is_unchanged(&word, before, true) && !is_unchanged(&word, before, false));
        disclaim(&word);
        lower(&word, false);
        assert!(is_unchanged(&word, before, false));
        raise(&word);
        lower(&word, true);
        assert!(!is_unchanged(&word, before, false));
    }

    #[test]
    fn a_record_has_one_owner() {
        let word = AtomicU64::new(0);
        let (one, other) = (Owner::of_slot(0), Owner::of_slot(1));
        assert!(try_lock(&word, one) && !try_lock(&word, other));
        assert!(is_locked_by_other(&word, other) && !is_locked_by_other(&word, one));
        unlock(&word);
        assert!(!is_locked_by_other(&word, other) && try_lock(&word, other));
    }
}
