//! How idle workers are woken.

use parking_lot::{Condvar, Mutex};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// A bell: workers without work wait for it, whoever hands work in rings it. Ringing costs one load
/// when nobody waits.
#[derive(Default)]
pub struct Signal {
    waiting: AtomicUsize,
    rings: Mutex<u64>,
    bell: Condvar,
}

impl Signal {
    /// Wakes everyone who waits.
    pub fn ring(&self) {
        if self.waiting.load(SeqCst) > 0 {
            *self.rings.lock() += 1;
            self.bell.notify_all();
        }
    }

    /// Waits for a ring after the caller found, with `has_work`, that there is nothing to do.
    pub fn wait(&self, has_work: impl Fn() -> bool, timeout: Duration) {
        let mut rings = self.rings.lock();
        self.waiting.fetch_add(1, SeqCst);
        // Asked again after it is known that we wait: work handed in before is seen here, work handed
        // in later rings.
        if !has_work() {
            let heard = *rings;
            self.bell.wait_while_for(&mut rings, |now| *now == heard, timeout);
        }
        self.waiting.fetch_sub(1, SeqCst);
    }
}
