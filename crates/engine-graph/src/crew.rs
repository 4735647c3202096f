//! The threads that work on a batch (LADS, section 4.1: the worker threads).
//!
//! Whoever forms a batch leads it, and could do everything alone. Others who lend a thread meanwhile join:
//!
//! ```text
//! leader   form, log | construct | execute | conclude | ... | over, withdraw
//! helper        join ----^ construct | execute | ....... | leave
//! ```

use fabius_env::schedule;
use fabius_env::sync::RwLock;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// Work that threads join, each under its own number; it returns when it is over.
type Labour<'l> = dyn Fn(usize) + Sync + 'l;

/// Work that has been announced.
struct Announced(*const Labour<'static>);

// SAFETY: what it points to is `Sync`.
unsafe impl Send for Announced {}
// SAFETY: likewise.
unsafe impl Sync for Announced {}

/// Who works on the batch in progress.
pub struct Crew {
    announced: RwLock<Option<Announced>>,
    /// Whether it is worth joining: who comes late would only keep the leader from withdrawing the work.
    is_open: AtomicBool,
    /// Helpers that are in.
    present: AtomicUsize,
    /// The most that were in at a time, lately.
    seen: AtomicUsize,
    size_max: usize,
}

impl Crew {
    /// A crew of at most so many, the leader included.
    pub fn new(size_max: usize) -> Crew {
        Crew {
            announced: RwLock::default(),
            is_open: false.into(),
            present: 0.into(),
            seen: 0.into(),
            size_max,
        }
    }

    /// Joins the batch in progress until it is over; whether there was one, and a place in its crew.
    pub fn join(&self) -> bool {
        if !self.is_open.load(Acquire) {
            return false;
        }
        let announced = self.announced.read();
        let Some(labour) = announced.as_ref().filter(|_| self.is_open.load(Acquire)) else { return false };
        let before = self.present.fetch_add(1, AcqRel);
        let has_place = before + 1 < self.size_max;
        if has_place {
            self.seen.fetch_max(before + 1, Relaxed);
            schedule::point("join");
            // SAFETY: `lead` withdraws it, which waits for our lock, before what it points to goes.
            unsafe { (*labour.0)(before + 1) };
        }
        self.present.fetch_sub(1, AcqRel);
        has_place
    }

    /// Leads work, which others may join until `lead` returns.
    pub fn lead<R>(&self, labour: &Labour<'_>, lead: impl FnOnce() -> R) -> R {
        struct Withdraw<'c>(&'c Crew);
        impl Drop for Withdraw<'_> {
            fn drop(&mut self) {
                self.0.is_open.store(false, Release);
                *self.0.announced.write() = None;
            }
        }
        let labour: *const Labour<'_> = labour;
        // SAFETY: only the lifetime changes; see `join`.
        let labour = unsafe { std::mem::transmute::<*const Labour<'_>, *const Labour<'static>>(labour) };
        *self.announced.write() = Some(Announced(labour));
        self.is_open.store(true, Release);
        let _withdraw = Withdraw(self);
        lead()
    }

    /// How many have worked at a time, the leader included, since this was last asked.
    pub fn take_size(&self) -> usize {
        1 + self.seen.swap(self.present.load(Relaxed), Relaxed)
    }
}
