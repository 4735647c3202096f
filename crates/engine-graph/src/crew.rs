//! The threads that work on a round (LADS, section 4.1: the worker threads).
//!
//! Whoever forms a batch leads its round, and could do everything alone. Others who lend a thread meanwhile join, and
//! do the same:
//!
//! ```text
//! leader   announce | construct, execute, commit | withdraw
//! helper        join ^ construct, execute, commit | leave
//! ```

use fabius_env::schedule;
use fabius_env::sync::RwLock;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// Work that threads take part in: it returns when it is over; whether there was a place in it.
type Labour<'l> = dyn Fn() -> bool + Sync + 'l;

/// Work that has been announced.
struct Announced(*const Labour<'static>);

// SAFETY: what it points to is `Sync`.
unsafe impl Send for Announced {}
// SAFETY: likewise.
unsafe impl Sync for Announced {}

/// Who works on the round in progress.
#[derive(Default)]
pub struct Crew {
    announced: RwLock<Option<Announced>>,
    /// Whether it is worth joining: who comes late would only keep the leader from withdrawing the work.
    is_open: AtomicBool,
}

impl Crew {
    /// Joins the round in progress until it is over; whether there was one, and a place in its crew.
    pub fn join(&self) -> bool {
        if !self.is_open.load(Acquire) {
            return false;
        }
        let announced = self.announced.read();
        let Some(labour) = announced.as_ref().filter(|_| self.is_open.load(Acquire)) else { return false };
        schedule::point("join");
        // SAFETY: `lead` withdraws it, which waits for our lock, before what it points to goes.
        unsafe { (*labour.0)() }
    }

    /// Takes part in work, which others may join meanwhile; returns when all have left it.
    pub fn lead(&self, labour: &Labour<'_>) {
        struct Withdraw<'c>(&'c Crew);
        impl Drop for Withdraw<'_> {
            fn drop(&mut self) {
                self.0.is_open.store(false, Release);
                *self.0.announced.write() = None;
            }
        }
        // SAFETY: only the lifetime changes; see `join`.
        let shared = unsafe { std::mem::transmute::<*const Labour<'_>, *const Labour<'static>>(labour) };
        *self.announced.write() = Some(Announced(shared));
        self.is_open.store(true, Release);
        let _withdraw = Withdraw(self);
        labour();
    }
}
