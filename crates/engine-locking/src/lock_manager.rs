//! The lock manager: requests in log order, grants in request order (Calvin, sections 3.2 and 9).
//!
//! ```text
//! queues      place 17:  [call 41, shared] [call 43, shared] | [call 44, exclusive] [call 47, shared]
//!                         granted                              waiting
//!
//! counters    place 17:  3 shared, 0 intent, 1 exclusive: who asks now waits until it is the oldest
//! ```
//!
//! With queues, a release hands the lock to whoever stands next, however many calls are older. With
//! counters nobody knows who waits for what: a request is granted at once if no request before it is
//! against it, or else when its call is the oldest, because then all others before it have been released.
//!
//! Only the scheduler touches it, one thread at a time, so that nothing of it is atomic. Nothing is
//! allocated once there have been as many requests at a time as there are now.

use crate::lock::{Lock, LockSet, Mode, PLACES};
use crate::policy;

/// No request.
const NONE: u32 = 0;

/// The requests of the calls in progress; calls are known by their place among those.
pub enum LockManager {
    /// Who waits for what.
    Queues(Queues),
    /// How many have asked for what.
    Counters(Counters),
}

impl LockManager {
    /// One without requests.
    pub fn new(kind: policy::LockManager) -> LockManager {
        match kind {
            policy::LockManager::Queues => LockManager::Queues(Queues::default()),
            policy::LockManager::Counters => LockManager::Counters(Counters::default()),
        }
    }

    /// Requests a call's locks; gives how many grants it has to wait for ([`LockManager::release`] tells of
    /// each), or, with counters, 1 if it has to wait until it is the oldest. `first` is the call's
    /// handle on its requests.
    pub fn request(&mut self, call: u32, locks: &LockSet, first: &mut u32) -> u32 {
        match self {
            LockManager::Queues(queues) => {
                *first = NONE;
                locks.iter().map(|lock| u32::from(!queues.request(call, lock, first))).sum()
            }
            LockManager::Counters(counters) => {
                let opposed = locks.iter().filter(|lock| counters.request(*lock)).count();
                u32::from(opposed > 0)
            }
        }
    }

    /// Releases a call's locks; `granted` is told of every call that has one lock more.
    pub fn release(&mut self, locks: &LockSet, first: u32, granted: impl FnMut(u32)) {
        match self {
            LockManager::Queues(queues) => queues.release(first, granted),
            LockManager::Counters(counters) => locks.iter().for_each(|lock| counters.release(lock)),
        }
    }
}

/// A request in its lock's queue, and in the list of its call's.
#[derive(Clone, Copy)]
struct Request {
    call: u32,
    place: u32,
    /// Towards the front of the queue.
    before: u32,
    /// Towards its end.
    after: u32,
    /// The next request of the same call, or the next free one.
    next: u32,
    mode: Mode,
    is_granted: bool,
}

/// The ends of a queue.
#[derive(Clone, Copy, Default)]
struct Queue {
    front: u32,
    back: u32,
}

/// A queue of requests for each lock. All requests that are granted stand at the front, and go with each
/// other.
pub struct Queues {
    queues: Box<[Queue]>,
    /// The one at 0 is none.
    requests: Vec<Request>,
    free: u32,
}

impl Default for Queues {
    fn default() -> Queues {
        let none = Request {
            call: 0,
            place: 0,
            before: NONE,
            after: NONE,
            next: NONE,
            mode: Mode::Shared,
            is_granted: false,
        };
        Queues { queues: vec![Queue::default(); PLACES].into(), requests: vec![none], free: NONE }
    }
}

impl Queues {
    /// Puts a request at the end of its queue, and in front of the list at `first`; whether it is granted.
    fn request(&mut self, call: u32, lock: Lock, first: &mut u32) -> bool {
        let queue = self.queues[lock.place()];
        let mode = lock.mode();
        let is_granted = queue.back == NONE || {
            let last = &self.requests[queue.back as usize];
            last.is_granted && last.mode.goes_with(mode)
        };
        let place = lock.place() as u32;
        let request =
            Request { call, place, before: queue.back, after: NONE, next: *first, mode, is_granted };
        let number = self.store(request);
        *first = number;
        match queue.back {
            NONE => self.queues[lock.place()].front = number,
            last => self.requests[last as usize].after = number,
        }
        self.queues[lock.place()].back = number;
        is_granted
    }

    fn store(&mut self, request: Request) -> u32 {
        if self.free == NONE {
            self.requests.push(request);
            return (self.requests.len() - 1) as u32;
        }
        let number = self.free;
        self.free = self.requests[number as usize].next;
        self.requests[number as usize] = request;
        number
    }

    fn release(&mut self, first: u32, mut granted: impl FnMut(u32)) {
        let mut number = first;
        while number != NONE {
            let request = self.requests[number as usize];
            debug_assert!(request.is_granted, "a call has run without a lock");
            match request.before {
                NONE => self.queues[request.place as usize].front = request.after,
                before => self.requests[before as usize].after = request.after,
            }
            match request.after {
                NONE => self.queues[request.place as usize].back = request.before,
                after => self.requests[after as usize].before = request.before,
            }
            if request.before == NONE {
                self.grant_front(request.after, &mut granted);
            }
            self.requests[number as usize].next = self.free;
            self.free = number;
            number = request.next;
        }
    }

    /// Grants requests from the front of a queue on, as many as go together.
    fn grant_front(&mut self, front: u32, granted: &mut impl FnMut(u32)) {
        let mut number = front;
        if number == NONE || self.requests[number as usize].is_granted {
            return;
        }
        let mode = self.requests[number as usize].mode;
        while number != NONE {
            let request = &mut self.requests[number as usize];
            if number != front && !request.mode.goes_with(mode) {
                return;
            }
            request.is_granted = true;
            granted(request.call);
            number = request.after;
        }
    }
}

/// How many requests there are for each lock: shared, intent, exclusive.
pub struct Counters {
    counts: Box<[[u16; 3]]>,
}

impl Default for Counters {
    fn default() -> Counters {
        Counters { counts: vec![[0; 3]; PLACES].into() }
    }
}

impl Counters {
    /// Counts a request; whether one before it is against it.
    fn request(&mut self, lock: Lock) -> bool {
        let counts = &mut self.counts[lock.place()];
        let [shared, intent, exclusive] = *counts;
        counts[lock.mode() as usize - 1] += 1;
        match lock.mode() {
            Mode::Shared => intent | exclusive != 0,
            Mode::Intent => shared | exclusive != 0,
            Mode::Exclusive => shared | intent | exclusive != 0,
        }
    }

    fn release(&mut self, lock: Lock) {
        self.counts[lock.place()][lock.mode() as usize - 1] -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(locks: &[(usize, Mode)]) -> LockSet {
        let mut set = LockSet::default();
        locks.iter().for_each(|(place, mode)| set.add(Lock::new(*place, *mode)));
        set.seal();
        set
    }

    /// Goal: a lock is granted in request order, to as many at once as go together, and a request that
    /// would go with the holders does not overtake one that does not.
    #[test]
    fn queues_grant_in_request_order() {
        let mut manager = LockManager::new(policy::LockManager::Queues);
        let modes = [Mode::Shared, Mode::Shared, Mode::Exclusive, Mode::Shared, Mode::Shared, Mode::Intent];
        let sets = modes.map(|mode| set(&[(5, mode)]));
        let mut firsts = [NONE; 6];
        let waits: Vec<u32> =
            (0..6).map(|call| manager.request(call as u32, &sets[call], &mut firsts[call])).collect();
        assert_eq!(waits, [0, 0, 1, 1, 1, 1]);
        let mut release = |call: usize| {
            let mut granted = Vec::new();
            manager.release(&sets[call], firsts[call], |call| granted.push(call));
            granted
        };
        assert_eq!(release(0), [] as [u32; 0]);
        assert_eq!(release(1), [2]);
        assert_eq!(release(2), [3, 4]);
        assert_eq!(release(4), [] as [u32; 0]);
        assert_eq!(release(3), [5]);
        assert_eq!(release(5), [] as [u32; 0]);
    }

    /// Goal: places of requests that are gone are taken again.
    #[test]
    fn requests_are_recycled() {
        let mut queues = Queues::default();
        for call in 0..100 {
            let mut first = NONE;
            assert!(queues.request(call, Lock::new(1, Mode::Exclusive), &mut first));
            assert!(queues.request(call, Lock::new(2, Mode::Shared), &mut first));
            queues.release(first, |_| panic!("nobody waits"));
        }
        assert_eq!(queues.requests.len(), 3);
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
        let waits = sets.each_ref().map(|set| manager.request(0, set, &mut NONE.clone()));
        assert_eq!(waits, [0, 0, 1, 1]);
        sets.iter().for_each(|set| manager.release(set, NONE, |_| panic!("counters hand nothing on")));
        assert_eq!(manager.request(0, &sets[2], &mut NONE.clone()), 0);
    }
}
