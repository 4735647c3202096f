//! Waking tasks at a time.
//!
//! The database has no asynchronous runtime, but who waits for a lock may not want to wait for ever. One
//! thread, which begins with the first alarm, wakes whoever asked for it.

use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

#[derive(Default)]
struct Set {
    /// By time, and a number that tells alarms of one time apart.
    alarms: BTreeMap<(Instant, u64), Waker>,
    number: u64,
    is_running: bool,
    is_over: bool,
}

#[derive(Default)]
struct Shared {
    set: Mutex<Set>,
    changed: Condvar,
}

/// Wakes tasks at a time.
#[derive(Default)]
pub(crate) struct Alarm(Arc<Shared>);

impl Alarm {
    /// Wakes this waker at that time, or later.
    pub(crate) fn at(&self, time: Instant, waker: Waker) {
        let mut set = self.0.set.lock();
        set.number += 1;
        let number = set.number;
        set.alarms.insert((time, number), waker);
        if !set.is_running {
            let shared = self.0.clone();
            let thread = std::thread::Builder::new().name("fabius-alarm".to_string());
            // Without a thread the wait has no end but its own.
            set.is_running = thread.spawn(move || shared.run()).is_ok();
        }
        drop(set);
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn run(&self) {
        let mut set = self.set.lock();
        while !set.is_over {
            let now = Instant::now();
            match set.alarms.first_key_value() {
                Some((&(time, _), _)) if time <= now => {
                    if let Some((_, waker)) = set.alarms.pop_first() {
                        waker.wake();
                    }
                }
                Some((&(time, _), _)) => drop(self.changed.wait_until(&mut set, time)),
                None => self.changed.wait(&mut set),
            }
        }
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.set.lock().is_over = true;
        self.0.changed.notify_one();
    }
}
