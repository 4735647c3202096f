//! The lock manager: requests in log order, grants in request order (Calvin, sections 3.2 and 9).
//!
//! ```text
//! queues      place 17:  held: 2 shared   waiting: [call 44, exclusive] [call 47, shared]
//!
//! counters    place 17:  asked for: 3 shared, 1 exclusive; who asks now waits until it is the oldest
//! ```
//!
//! With queues, a release hands the lock to whoever stands next, however many calls are older. With
//! counters nobody knows who waits for what: a request is granted at once if no request before it is
//! against it, or else when its call is the oldest, because then all others before it have been released.
//!
//! Only the scheduler touches it, one thread at a time, so that nothing of it is atomic. Nothing is
//! allocated once as many requests have waited at a time as wait now.

use crate::lock::{LockSet, PLACES};
use crate::policy;
use fabius_engine::eager::lock_mode::Mode;

/// No request.
const NONE: u32 = 0;

/// The requests of the calls in progress; calls are known by their place among those.
pub struct LockManager {
    kind: policy::LockManager,
    locks: Box<[Held]>,
    /// Those that wait; the one at 0 is none.
    requests: Vec<Request>,
    free: u32,
}

/// How many requests of each mode there are: granted ones or, with counters, all.
#[derive(Clone, Copy, Default)]
struct Tally([u16; 4]);

impl Tally {
    /// Whether one more goes with all of them.
    fn admits(&self, mode: Mode) -> bool {
        Mode::ALL.into_iter().all(|held| self.0[held as usize] == 0 || mode.goes_with(held))
    }
}

/// A lock: who holds it, and who waits for it.
#[derive(Clone, Copy, Default)]
struct Held {
    tally: Tally,
    first: u32,
    last: u32,
}

/// A request that waits, or a free place for one.
#[derive(Clone, Copy)]
struct Request {
    call: u32,
    mode: Mode,
    /// The next in the queue, or the next free one.
    next: u32,
}

impl LockManager {
    /// One without requests.
    pub fn new(kind: policy::LockManager) -> LockManager {
        let none = Request { call: 0, mode: Mode::Visit, next: NONE };
        LockManager { kind, locks: vec![Held::default(); PLACES].into(), requests: vec![none], free: NONE }
    }

    /// Requests a call's locks; gives how many grants it has to wait for ([`LockManager::release`] tells of
    /// each), or, with counters, 1 if it has to wait until it is the oldest.
    pub fn request(&mut self, call: u32, locks: &LockSet) -> u32 {
        let mut waits = 0;
        for lock in locks.iter() {
            let held = &mut self.locks[lock.place()];
            let is_granted = held.first == NONE && held.tally.admits(lock.mode());
            match self.kind {
                policy::LockManager::Queues if !is_granted => {
                    waits += 1;
                    self.enqueue(lock.place(), call, lock.mode());
                }
                _ => {
                    waits |= u32::from(!is_granted);
                    held.tally.0[lock.mode() as usize] += 1;
                }
            }
        }
        waits
    }

    fn enqueue(&mut self, place: usize, call: u32, mode: Mode) {
        let request = Request { call, mode, next: NONE };
        let number = match self.free {
            NONE => {
                self.requests.push(request);
                (self.requests.len() - 1) as u32
            }
            free => {
                self.free = self.requests[free as usize].next;
                self.requests[free as usize] = request;
                free
            }
        };
        let held = &mut self.locks[place];
        match held.first {
            NONE => held.first = number,
            _ => self.requests[held.last as usize].next = number,
        }
        held.last = number;
    }

    /// Releases the locks of a call that has them all; `granted` is told of every call that has one lock more.
    pub fn release(&mut self, locks: &LockSet, mut granted: impl FnMut(u32)) {
        for lock in locks.iter() {
            let held = &mut self.locks[lock.place()];
            held.tally.0[lock.mode() as usize] -= 1;
            while held.first != NONE {
                let request = &mut self.requests[held.first as usize];
                if !held.tally.admits(request.mode) {
                    break;
                }
                held.tally.0[request.mode as usize] += 1;
                granted(request.call);
                (self.free, held.first, request.next) = (held.first, request.next, self.free);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::Lock;

    fn set(locks: &[(usize, Mode)]) -> LockSet {
        let mut set = LockSet::default();
        locks.iter().for_each(|(place, mode)| set.add(Lock::new(*place, *mode)));
        set.seal();
        set
    }

    /// Requests one lock in each of these modes; gives the sets and how many grants each waits for.
    fn request<const N: usize>(manager: &mut LockManager, modes: [Mode; N]) -> ([LockSet; N], [u32; N]) {
        let sets = modes.map(|mode| set(&[(5, mode)]));
        let waits = std::array::from_fn(|call| manager.request(call as u32, &sets[call]));
        (sets, waits)
    }

    fn release(manager: &mut LockManager, set: &LockSet) -> Vec<u32> {
        let mut granted = Vec::new();
        manager.release(set, |call| granted.push(call));
        granted
    }

    /// Goal: a lock is granted in request order, to as many at once as go together, and a request that
    /// would go with the holders does not overtake one that does not.
    #[test]
    fn queues_grant_in_request_order() {
        use Mode::{Exclusive, Intent, Shared};
        let mut manager = LockManager::new(policy::LockManager::Queues);
        let (sets, waits) = request(&mut manager, [Shared, Shared, Exclusive, Shared, Shared, Intent]);
        assert_eq!(waits, [0, 0, 1, 1, 1, 1]);
        let mut release = |call: usize| release(&mut manager, &sets[call]);
        assert_eq!(release(0), []);
        assert_eq!(release(1), [2]);
        assert_eq!(release(2), [3, 4]);
        assert_eq!(release(4), []);
        assert_eq!(release(3), [5]);
        assert_eq!(release(5), []);
    }

    /// Goal: visits go with whatever is not exclusive, and do not hide who else holds the lock.
    #[test]
    fn visits_leave_the_other_modes_apart() {
        use Mode::{Exclusive, Intent, Shared, Visit};
        let mut manager = LockManager::new(policy::LockManager::Queues);
        let (sets, waits) = request(&mut manager, [Shared, Visit, Intent, Visit, Exclusive]);
        assert_eq!(waits, [0, 0, 1, 1, 1]);
        let mut release = |call: usize| release(&mut manager, &sets[call]);
        assert_eq!(release(0), [2, 3]);
        assert_eq!(release(2), []);
        assert_eq!(release(1), []);
        assert_eq!(release(3), [4]);
    }

    /// Goal: places of requests that are gone are taken again.
    #[test]
    fn requests_are_recycled() {
        let mut manager = LockManager::new(policy::LockManager::Queues);
        let locks = set(&[(1, Mode::Exclusive), (2, Mode::Shared)]);
        for _ in 0..100 {
            assert_eq!(manager.request(0, &locks), 0);
            assert_eq!(manager.request(1, &locks), 1);
            assert_eq!(release(&mut manager, &locks), [1]);
            assert_eq!(release(&mut manager, &locks), []);
        }
        assert_eq!(manager.requests.len(), 2);
    }

    /// Goal: with counters, a request is granted at once only if none before it is against it.
    #[test]
    fn counters_say_who_has_to_wait() {
        let mut manager = LockManager::new(policy::LockManager::Counters);
        let sets = [
            set(&[(5, Mode::Shared), (6, Mode::Exclusive)]),
            set(&[(5, Mode::Shared)]),
            set(&[(5, Mode::Exclusive)]),
            set(&[(5, Mode::Shared)]),
        ];
        let waits = sets.each_ref().map(|set| manager.request(0, set));
        assert_eq!(waits, [0, 0, 1, 1]);
        sets.iter().for_each(|set| manager.release(set, |_| panic!("counters hand nothing on")));
        assert_eq!(manager.request(0, &sets[2]), 0);
    }
}
