//! Locks and condition variables that simulations can schedule ([`crate::schedule`]).
//!
//! They are those of `parking_lot`; only where a thread would sleep, a simulated one gives the baton on
//! instead. Taking a free lock costs what it costs there. Guards are those of `parking_lot` too.

use crate::schedule::{give_way, is_simulated, wait_until};
use parking_lot::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Pauses between two looks at a mutex, about half a microsecond in all.
const PAUSES: u32 = 32;

/// A mutex that may be held across points of a schedule.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized> {
    inner: parking_lot::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A free mutex.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex { inner: parking_lot::Mutex::new(value) }
    }
}

impl<T: Send> Mutex<T> {
    /// Waits for the mutex and takes it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.inner.try_lock().unwrap_or_else(|| self.lock_taken())
    }

    #[cold]
    fn lock_taken(&self) -> MutexGuard<'_, T> {
        if is_simulated() {
            wait_until("mutex", || !self.inner.is_locked());
        }
        self.inner.lock()
    }

    /// Waits for a mutex that others hold for less time than it takes to be woken: tries so many times to take it,
    /// and gives way to other threads in between, before it sleeps.
    pub fn lock_awake(&self, tries: u32) -> MutexGuard<'_, T> {
        if !is_simulated() {
            for _ in 0..tries {
                if let Some(guard) = self.inner.try_lock() {
                    return guard;
                }
                (0..PAUSES).for_each(|_| std::hint::spin_loop());
                std::thread::yield_now();
            }
        }
        self.lock()
    }

    /// Takes the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.inner.try_lock()
    }
}

/// A lock for many readers or one writer that may be held across points of a schedule.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized> {
    inner: parking_lot::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A free lock.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock { inner: parking_lot::RwLock::new(value) }
    }
}

impl<T: Send + Sync> RwLock<T> {
    /// Waits until nobody writes, and takes the lock for reading.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.inner.try_read().unwrap_or_else(|| self.read_taken())
    }

    #[cold]
    fn read_taken(&self) -> RwLockReadGuard<'_, T> {
        if is_simulated() {
            wait_until("read lock", || !self.inner.is_locked_exclusive());
        }
        self.inner.read()
    }

    /// Waits until nobody reads or writes, and takes the lock for writing.
    #[inline]
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.inner.try_write().unwrap_or_else(|| self.write_taken())
    }

    #[cold]
    fn write_taken(&self) -> RwLockWriteGuard<'_, T> {
        if is_simulated() {
            wait_until("write lock", || !self.inner.is_locked());
        }
        self.inner.write()
    }

    /// Takes the lock for writing if nobody reads or writes.
    #[inline]
    pub fn try_write(&self) -> Option<RwLockWriteGuard<'_, T>> {
        self.inner.try_write()
    }
}

/// A condition variable. In a simulation every notification wakes all who wait, and a time-out may come
/// at any moment, because how fast threads run is not simulated.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: parking_lot::Condvar,
    /// Notifications so far, counted for simulations.
    notified: AtomicU64,
}

impl Condvar {
    /// A condition variable for which nobody waits.
    #[must_use]
    pub const fn new() -> Condvar {
        Condvar { inner: parking_lot::Condvar::new(), notified: AtomicU64::new(0) }
    }

    /// Gives the mutex free, waits for a notification, and takes the mutex again. May return without one.
    pub fn wait<T: Send>(&self, guard: &mut MutexGuard<'_, T>) {
        if !is_simulated() {
            self.inner.wait(guard);
            return;
        }
        let (mutex, seen) = (MutexGuard::mutex(guard), self.notified.load(Relaxed));
        let woken = || self.notified.load(Relaxed) != seen && !mutex.is_locked();
        MutexGuard::unlocked(guard, || wait_until("condition variable", woken));
    }

    /// As [`wait`](Self::wait), at most for some time; whether the time has passed.
    pub fn wait_for<T: Send>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) -> bool {
        if !is_simulated() {
            return self.inner.wait_for(guard, time).timed_out();
        }
        let (mutex, seen) = (MutexGuard::mutex(guard), self.notified.load(Relaxed));
        MutexGuard::unlocked(guard, || {
            give_way("condition variable with a time");
            if mutex.is_locked() {
                wait_until("mutex", || !mutex.is_locked());
            }
        });
        self.notified.load(Relaxed) == seen
    }

    /// Wakes one who waits.
    #[inline]
    pub fn notify_one(&self) {
        self.count();
        self.inner.notify_one();
    }

    /// Wakes all who wait.
    #[inline]
    pub fn notify_all(&self) {
        self.count();
        self.inner.notify_all();
    }

    #[inline]
    fn count(&self) {
        if is_simulated() {
            self.notified.fetch_add(1, Relaxed);
        }
    }
}
