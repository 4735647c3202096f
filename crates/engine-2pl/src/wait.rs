//! Waiting for locks, and wound-wait (Rosenkrantz, Stearns, Lewis; TODS 3(2), 1978).
//!
//! Every call has a timestamp, which it keeps when it starts again. A call that is refused a lock joins
//! the lock's queue, oldest first, and *wounds* every younger holder that is against it:
//!
//! ```text
//! queue of record 17:  [ts 4, exclusive] [ts 9, shared]     holders: ts 2, ts 6 (wounded by ts 4)
//! ```
//!
//! A wounded call goes on for as long as it need not wait. If it would have to, or is waiting already, it
//! gives its locks back and starts again from the beginning.
//!
//! **No deadlock.** A waiting call waits for holders, and for waiters before it. Waiters before it are
//! older. Holders against it are older or wounded: those it met, it wounded if younger, and after it has
//! joined the queue only older ones are granted the lock, by this queue's order. So along any chain of
//! waits timestamps fall, except into a wounded call, which does not wait.
//!
//! **Every call ends.** The oldest running call is never wounded, so it ends; timestamps are never given
//! again, so every call becomes the oldest.
//!
//! A wound may come late and hit a call that has given the lock back meanwhile, or that has a slot after
//! the one that was meant (then its timestamp is another, and nothing happens). The first costs one
//! needless attempt.

use crate::lock::{self, Attempt, SLOTS};
use crossbeam_utils::CachePadded;
use fabius_engine::eager::lock_mode::Mode;
use fabius_engine::eager::slots::Slots;
use fabius_env::schedule;
use fabius_env::sync::{Condvar, Mutex};
use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// Queues are spread over this many mutexes.
const SHARDS: usize = 64;
/// How often a waiting call looks before it sleeps: a lock is held for some microseconds.
const SPINS: u32 = 200;
/// How often it lets other threads run in between.
const YIELDS: u32 = 8;

/// The call has to give its locks back and start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wounded;

/// A running call as others see it.
#[derive(Default)]
struct Slot {
    /// The call's timestamp, 0 if none runs.
    timestamp: AtomicU64,
    /// The timestamp of the call that was last wounded here.
    wounded: AtomicU64,
    /// The lock it waits for was granted.
    granted: AtomicBool,
    sleep: Mutex<()>,
    wake: Condvar,
}

impl Slot {
    fn is_wounded(&self) -> bool {
        let wounded = self.wounded.load(Acquire);
        wounded != 0 && wounded == self.timestamp.load(Relaxed)
    }

    fn rouse(&self) {
        // Whoever holds the mutex has looked and is not asleep yet.
        drop(self.sleep.lock());
        self.wake.notify_one();
    }
}

struct Waiter {
    slot: usize,
    timestamp: u64,
    mode: Mode,
}

type Queues = HashMap<usize, Vec<Waiter>>;

/// The running calls and who waits for what.
pub struct Locks {
    slots: Box<[CachePadded<Slot>]>,
    used: Slots,
    shards: Box<[CachePadded<Mutex<Queues>>]>,
    next_timestamp: CachePadded<AtomicU64>,
    /// Whoever would wait is refused: locks may have been left behind.
    stopped: AtomicBool,
}

impl Default for Locks {
    fn default() -> Locks {
        Locks {
            slots: (0..SLOTS).map(|_| CachePadded::default()).collect(),
            used: Slots::new(SLOTS),
            shards: (0..SHARDS).map(|_| CachePadded::default()).collect(),
            next_timestamp: CachePadded::new(AtomicU64::new(1)),
            stopped: AtomicBool::default(),
        }
    }
}

impl Locks {
    /// A slot to run calls in; `None` if there are as many running as can.
    pub fn claim(&self) -> Option<usize> {
        self.used.claim()
    }

    /// Gives a claimed slot back.
    pub fn leave(&self, slot: usize) {
        self.slots[slot].timestamp.store(0, Release);
        self.used.leave(slot);
    }

    /// Refuses whoever waits, or would have to from now on.
    pub fn stop(&self) {
        self.stopped.store(true, Release);
        self.slots.iter().for_each(|slot| slot.rouse());
    }

    /// Begins a call in a slot: it is younger than all before.
    pub fn begin(&self, slot: usize) {
        let timestamp = self.next_timestamp.fetch_add(1, Relaxed);
        self.slots[slot].timestamp.store(timestamp, Release);
    }

    /// Lets a wounded call, which has given all locks back, begin again at its old age.
    pub fn begin_again(&self, slot: usize) {
        self.slots[slot].wounded.store(0, Release);
    }

    /// Takes a lock, waiting if need be; adds it to `held` unless the call had it before.
    ///
    /// # Errors
    /// If the call was wounded and would have to wait.
    #[inline]
    pub fn take<'w>(
        &self,
        word: &'w AtomicU64,
        slot: usize,
        mode: Mode,
        held: &mut Vec<&'w AtomicU64>,
    ) -> Result<(), Wounded> {
        schedule::point("lock");
        match lock::attempt(word, slot, mode) {
            Attempt::Held | Attempt::Raised => Ok(()),
            Attempt::Taken => {
                held.push(word);
                Ok(())
            }
            Attempt::Refused => {
                let is_new = !lock::holds(word, slot);
                self.wait(word, slot, mode)?;
                if is_new {
                    held.push(word);
                }
                Ok(())
            }
        }
    }

    /// Gives locks back, and grants them to those who wait.
    #[inline]
    pub fn give_back(&self, slot: usize, held: &mut Vec<&AtomicU64>) {
        for word in held.drain(..) {
            if lock::give_back(word, slot) {
                self.pass_on(word);
            }
        }
    }

    fn shard(&self, word: &AtomicU64) -> &Mutex<Queues> {
        let address = std::ptr::from_ref(word).addr();
        &self.shards[(address >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58]
    }

    #[cold]
    fn wait(&self, word: &AtomicU64, slot: usize, mode: Mode) -> Result<(), Wounded> {
        let me = &self.slots[slot];
        let timestamp = me.timestamp.load(Relaxed);
        let address = std::ptr::from_ref(word).addr();
        {
            let mut queues = self.shard(word).lock();
            let queue = queues.entry(address).or_default();
            let seen = lock::announce_waiter(word);
            let is_oldest = queue.first().is_none_or(|first| timestamp < first.timestamp);
            let is_granted = is_oldest && lock::grant(word, slot, mode);
            if is_granted || me.is_wounded() {
                if queue.is_empty() {
                    queues.remove(&address);
                    lock::no_waiters(word);
                }
                return if is_granted { Ok(()) } else { Err(Wounded) };
            }
            me.granted.store(false, Relaxed);
            let place = queue.partition_point(|waiter| waiter.timestamp < timestamp);
            queue.insert(place, Waiter { slot, timestamp, mode });
            if lock::is_opposed(seen, slot, mode) {
                lock::others(seen, slot).slots().for_each(|holder| self.wound(holder, timestamp));
            }
        }
        // In a simulation nobody comes while this thread looks.
        let mut looks = if schedule::is_simulated() { SPINS + YIELDS } else { 0 };
        loop {
            if me.granted.load(Acquire) {
                return Ok(());
            }
            if me.is_wounded() || self.stopped.load(Acquire) {
                return self.stop_waiting(word, slot);
            }
            looks += 1;
            if looks < SPINS {
                std::hint::spin_loop();
            } else if looks < SPINS + YIELDS {
                std::thread::yield_now();
            } else {
                let mut asleep = me.sleep.lock();
                if !me.granted.load(Acquire) && !me.is_wounded() && !self.stopped.load(Acquire) {
                    me.wake.wait(&mut asleep);
                }
            }
        }
    }

    /// Wounds the call in a slot if it is younger.
    fn wound(&self, slot: usize, timestamp: u64) {
        let slot = &self.slots[slot];
        let holder = slot.timestamp.load(Acquire);
        if holder > timestamp {
            slot.wounded.store(holder, Release);
            slot.rouse();
        }
    }

    /// Takes a wounded call out of a queue, unless it has been granted the lock meanwhile.
    fn stop_waiting(&self, word: &AtomicU64, slot: usize) -> Result<(), Wounded> {
        let address = std::ptr::from_ref(word).addr();
        let mut queues = self.shard(word).lock();
        if self.slots[slot].granted.load(Acquire) {
            return Ok(());
        }
        if let Some(queue) = queues.get_mut(&address) {
            queue.retain(|waiter| waiter.slot != slot);
        }
        self.grant_waiters(word, &mut queues);
        Err(Wounded)
    }

    #[cold]
    fn pass_on(&self, word: &AtomicU64) {
        self.grant_waiters(word, &mut self.shard(word).lock());
    }

    /// Grants a lock to the oldest waiters, as many as can have it together.
    fn grant_waiters(&self, word: &AtomicU64, queues: &mut Queues) {
        let address = std::ptr::from_ref(word).addr();
        let Some(queue) = queues.get_mut(&address) else { return };
        let is_served = |waiter: &Waiter| lock::grant(word, waiter.slot, waiter.mode);
        let served = queue.iter().take_while(|waiter| is_served(waiter)).count();
        for waiter in queue.drain(..served) {
            let slot = &self.slots[waiter.slot];
            slot.granted.store(true, Release);
            slot.rouse();
        }
        if queue.is_empty() {
            queues.remove(&address);
            lock::no_waiters(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::Random;
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;

    /// What the holders of one lock do while they hold it: by mode, how many there are.
    #[derive(Default)]
    struct Inside([AtomicU64; 3]);

    impl Inside {
        fn enter(&self, mode: Mode) {
            self.0[mode as usize - 1].fetch_add(1, SeqCst);
            let [shared, intent, exclusive] = self.0.each_ref().map(|count| count.load(SeqCst));
            let kinds = u64::from(shared > 0) + u64::from(intent > 0) + exclusive;
            assert_eq!(kinds, 1, "{shared} shared, {intent} intent, {exclusive} exclusive");
        }

        fn leave(&self, mode: Mode) {
            self.0[mode as usize - 1].fetch_sub(1, SeqCst);
        }
    }

    /// Goal: random calls that take random locks in random modes, some of them twice, never hold what
    /// does not go together, all end, and leave nothing behind. Under Miri each seed is another schedule.
    #[test]
    fn random_calls_never_hold_what_does_not_go_together() {
        let (runs, calls) = if cfg!(miri) { (1, 4) } else { (20, 1_000) };
        for run in 0..runs {
            let locks = Locks::default();
            let words: [AtomicU64; 3] = Default::default();
            let inside: [Inside; 3] = Default::default();
            std::thread::scope(|scope| {
                for thread in 0..3 {
                    let (locks, words, inside) = (&locks, &words, &inside);
                    scope.spawn(move || {
                        let slot = locks.claim().expect("a slot");
                        let mut random = Random::seeded(run * 10 + thread);
                        for _ in 0..calls {
                            let script: Vec<(usize, Mode)> = (0..random.index(4) + 1)
                                .map(|_| {
                                    let mode = [Mode::Shared, Mode::Intent, Mode::Exclusive];
                                    (random.index(3), mode[random.index(3)])
                                })
                                .collect();
                            run_call(locks, words, inside, slot, &script);
                        }
                    });
                }
            });
            assert!(words.iter().all(lock::is_free));
            assert!(locks.shards.iter().all(|shard| shard.lock().is_empty()));
        }
    }

    fn run_call(
        locks: &Locks,
        words: &[AtomicU64; 3],
        inside: &[Inside; 3],
        slot: usize,
        script: &[(usize, Mode)],
    ) {
        locks.begin(slot);
        loop {
            let mut held = Vec::new();
            let taken =
                script.iter().try_for_each(|(at, mode)| locks.take(&words[*at], slot, *mode, &mut held));
            if taken.is_ok() {
                // What is held in the end, as one call's modes of a lock add up.
                let mut modes = [0; 3];
                script.iter().for_each(|(at, mode)| modes[*at] |= *mode as u64);
                let modes = modes.map(|mode| {
                    [Mode::Shared, Mode::Intent, Mode::Exclusive].into_iter().find(|of| *of as u64 == mode)
                });
                let each = || modes.iter().zip(inside).filter_map(|(mode, inside)| Some(((*mode)?, inside)));
                each().for_each(|(mode, inside)| inside.enter(mode));
                std::thread::yield_now();
                each().for_each(|(mode, inside)| inside.leave(mode));
            }
            locks.give_back(slot, &mut held);
            if taken.is_ok() {
                return;
            }
            locks.begin_again(slot);
        }
    }

    /// Threads that take two locks in opposite order, as readers first and then as writers, all end,
    /// and are alone when they write.
    #[test]
    fn opposite_orders_and_raised_locks_end() {
        let turns = if cfg!(miri) { 5 } else { 2000 };
        let locks = Arc::new(Locks::default());
        let words = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let sums = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
        let threads: Vec<_> = (0..4usize)
            .map(|thread| {
                let (locks, words, sums) = (locks.clone(), words.clone(), sums.clone());
                std::thread::spawn(move || {
                    let slot = locks.claim().unwrap();
                    for _ in 0..turns {
                        locks.begin(slot);
                        let mut held = Vec::new();
                        loop {
                            let mut run = || {
                                for at in [thread % 2, 1 - thread % 2] {
                                    locks.take(&words[at], slot, Mode::Shared, &mut held)?;
                                    locks.take(&words[at], slot, Mode::Exclusive, &mut held)?;
                                }
                                Ok::<(), Wounded>(())
                            };
                            let done = run();
                            if done.is_ok() {
                                for sum in &*sums {
                                    sum.store(sum.load(Relaxed) + 1, Relaxed);
                                }
                            }
                            locks.give_back(slot, &mut held);
                            if done.is_ok() {
                                break;
                            }
                            locks.begin_again(slot);
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(sums.each_ref().map(|sum| sum.load(Relaxed)), [4 * turns, 4 * turns]);
        assert!(words.iter().all(lock::is_free));
    }
}
