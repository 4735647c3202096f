//! Admission control: how many transactions of several messages go on at once while locks are waited for.
//!
//! A transaction holds its locks until its last message, and each message waits for those of all other clients. So
//! where somebody waits for a lock, each client that is served besides makes that wait longer, and gets little done
//! that it would not get done later as well. Then clients that find no place wait behind their `BEGIN`, when they hold
//! nothing, until one is free or nobody waits for a lock any more.
//!
//! A place is kept by going on: who sends nothing for [`STILL`], or waits or computes for [`LONG`], loses it and goes
//! on without. So nobody waits for a client that thinks, nor for a lock that such a client holds.

use metrics::Counter;
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

/// Places for each processor, if nothing else is said: one is served while others read their answers, wait for the
/// disk or for a lock.
const FOR_EACH_PROCESSOR: usize = 4;
/// How long a place is kept for a client that sends nothing.
const STILL: Duration = Duration::from_millis(2);
/// How long a place is kept for a message that is not answered: longer than most wait for the locks of transactions
/// that have places.
const LONG: Duration = Duration::from_millis(20);
/// How often those who wait look whether they still have to.
const LOOK: Duration = Duration::from_millis(1);

/// The places, and who waits for one.
pub(crate) struct Admission {
    free: Arc<Semaphore>,
    /// Who has a place. It is free when its entry is gone.
    held: Mutex<Vec<Held>>,
    /// How many transactions have waited.
    held_back: Counter,
    began: Instant,
    /// When it was looked last for places that are not used any more, in microseconds.
    looked: AtomicU64,
}

struct Held {
    until: Arc<AtomicU64>,
    _permit: OwnedSemaphorePermit,
}

/// A transaction that is under way. Its place is free when this is dropped.
pub(crate) struct Place {
    admission: Arc<Admission>,
    /// Until when the place is kept, in microseconds.
    until: Arc<AtomicU64>,
}

impl Admission {
    /// With so many places; without a number, four for each processor.
    pub(crate) fn new(places: Option<usize>, held_back: Counter) -> Admission {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get());
        let places = places.unwrap_or(FOR_EACH_PROCESSOR * processors).min(Semaphore::MAX_PERMITS);
        Admission {
            free: Arc::new(Semaphore::new(places)),
            held: Mutex::default(),
            held_back,
            began: Instant::now(),
            looked: AtomicU64::new(0),
        }
    }

    /// Waits for a place while `locks_are_waited_for`. Who came first gets the first.
    pub(crate) async fn enter(self: &Arc<Admission>, locks_are_waited_for: impl Fn() -> bool) -> Place {
        let permit = match self.free.clone().try_acquire_owned() {
            Ok(permit) => Some(permit),
            Err(_) => self.wait(locks_are_waited_for).await,
        };
        let place = Place { admission: self.clone(), until: Arc::new(AtomicU64::new(self.after(STILL))) };
        if let Some(permit) = permit {
            self.held.lock().push(Held { until: place.until.clone(), _permit: permit });
        }
        place
    }

    async fn wait(&self, locks_are_waited_for: impl Fn() -> bool) -> Option<OwnedSemaphorePermit> {
        let (mut permit, mut has_waited) = (pin!(self.free.clone().acquire_owned()), false);
        while locks_are_waited_for() {
            if !std::mem::replace(&mut has_waited, true) {
                self.held_back.increment(1);
            }
            match timeout(LOOK, permit.as_mut()).await {
                Ok(permit) => return permit.ok(),
                Err(_) => self.take_back(),
            }
        }
        None
    }

    /// Frees the places that are not used any more.
    fn take_back(&self) {
        let now = self.after(Duration::ZERO);
        let looked = self.looked.load(Relaxed);
        // Of all who wait, one looks.
        let is_due = now >= looked + LOOK.as_micros() as u64;
        if is_due && self.looked.compare_exchange(looked, now, Relaxed, Relaxed).is_ok() {
            self.held.lock().retain(|held| held.until.load(Relaxed) >= now);
        }
    }

    fn after(&self, time: Duration) -> u64 {
        (self.began.elapsed() + time).as_micros() as u64
    }
}

impl Place {
    /// A message has come.
    pub(crate) fn asked(&self) {
        self.until.store(self.admission.after(LONG), Relaxed);
    }

    /// It is answered.
    pub(crate) fn answered(&self) {
        self.until.store(self.admission.after(STILL), Relaxed);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.admission.held.lock().retain(|held| !Arc::ptr_eq(&held.until, &self.until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::sleep;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime")
    }

    async fn is_let_in(admission: &Arc<Admission>, locks_are_waited_for: bool, within: Duration) -> bool {
        timeout(within, admission.enter(|| locks_are_waited_for)).await.is_ok()
    }

    /// Goal: who finds no place waits for one as long as locks are waited for, and otherwise does not.
    #[test]
    fn a_place_is_waited_for_while_locks_are() {
        runtime().block_on(async {
            let admission = Arc::new(Admission::new(Some(1), Counter::noop()));
            let first = admission.enter(|| true).await;
            first.asked();
            assert!(!is_let_in(&admission, true, LONG / 4).await);
            assert!(is_let_in(&admission, false, LONG / 4).await);
            drop(first);
            assert!(is_let_in(&admission, true, LONG / 4).await);
        });
    }

    /// Goal: a place is lost by a client that thinks, and kept by one that goes on.
    #[test]
    fn who_stands_still_loses_the_place() {
        runtime().block_on(async {
            let admission = Arc::new(Admission::new(Some(1), Counter::noop()));
            let thinks = admission.enter(|| true).await;
            thinks.answered();
            let second = admission.enter(|| true).await;
            let goes_on = async {
                loop {
                    second.asked();
                    sleep(LOOK).await;
                }
            };
            let is_let_in = is_let_in(&admission, true, 4 * LONG);
            tokio::select! {
                () = goes_on => {}
                is_let_in = is_let_in => assert!(!is_let_in),
            }
            drop(thinks);
            assert_eq!(admission.held.lock().len(), 1);
        });
    }

    /// Goal: with hundreds who wait, all get in, though those before them never end.
    #[test]
    fn nobody_waits_for_ever() {
        runtime().block_on(async {
            let admission = Arc::new(Admission::new(Some(8), Counter::noop()));
            let all = (0..300).map(|_| admission.enter(|| true));
            assert_eq!(futures::future::join_all(all).await.len(), 300);
        });
    }
}
