//! Who is connected, and how each is told to give up or to go.

use futures::task::AtomicWaker;
use rand::RngCore;
use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Instant;

/// How urgently a session is asked to end. Only grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// It is not.
    No,
    /// Once its running statement is done.
    Soon,
    /// Now; only a commit that is in the order already is waited for.
    Now,
}

/// One connection, as others see it.
pub struct Session {
    /// The session's number: `pg_backend_pid()`.
    pub process: u32,
    /// What its client, and nobody else, knows.
    pub secret: Vec<u8>,
    cancelled: AtomicBool,
    ending: AtomicU8,
    waker: AtomicWaker,
    begun: Instant,
    /// When the running statement is to be given up, in microseconds since then; 0 for never.
    deadline_us: AtomicU64,
}

impl Session {
    /// Has this waker called when something is asked of the session.
    pub fn listen(&self, waker: &Waker) {
        self.waker.register(waker);
    }

    /// Asks that the running statement be given up.
    fn cancel(&self) {
        self.cancelled.store(true, Release);
        self.waker.wake();
    }

    /// Whether the statement is to be given up.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Acquire)
    }

    /// Forgets what was asked before: of an earlier query or batch of messages.
    pub fn forget_cancel(&self) {
        self.cancelled.store(false, Release);
    }

    /// The statement that runs from now on is to be given up then.
    pub fn set_deadline(&self, deadline: Option<Instant>) {
        let micros = |deadline: Instant| deadline.saturating_duration_since(self.begun).as_micros().max(1);
        let deadline_us = deadline.map_or(0, |deadline| u64::try_from(micros(deadline)).unwrap_or(u64::MAX));
        self.deadline_us.store(deadline_us, Release);
    }

    /// Whether its time is over.
    pub fn is_timed_out(&self) -> bool {
        match self.deadline_us.load(Acquire) {
            0 => false,
            deadline_us => self.begun.elapsed().as_micros() >= u128::from(deadline_us),
        }
    }

    /// How urgently it is asked to end.
    pub fn ending(&self) -> Ending {
        match self.ending.load(Acquire) {
            0 => Ending::No,
            1 => Ending::Soon,
            _ => Ending::Now,
        }
    }

    fn end(&self, ending: Ending) {
        self.ending.fetch_max(ending as u8, AcqRel);
        self.waker.wake();
    }
}

/// All sessions.
#[derive(Default)]
pub struct Registry {
    sessions: Mutex<HashMap<u32, Arc<Session>>>,
    last_process: AtomicUsize,
    ending: AtomicU8,
}

impl Registry {
    fn sessions(&self) -> MutexGuard<'_, HashMap<u32, Arc<Session>>> {
        // The map is whole after each operation, also if one panicked.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a session with a secret of so many bytes, unless there are `most` already.
    pub fn enter(&self, secret_bytes: usize, most: usize) -> Option<Arc<Session>> {
        let mut secret = vec![0; secret_bytes];
        rand::rng().fill_bytes(&mut secret);
        let mut sessions = self.sessions();
        if sessions.len() >= most {
            return None;
        }
        let process = loop {
            let next = self.last_process.fetch_add(1, AcqRel) as u32 % (i32::MAX as u32 - 1) + 1;
            if !sessions.contains_key(&next) {
                break next;
            }
        };
        let session = Arc::new(Session {
            process,
            secret,
            cancelled: AtomicBool::new(false),
            ending: AtomicU8::new(self.ending.load(Acquire)),
            waker: AtomicWaker::new(),
            begun: Instant::now(),
            deadline_us: AtomicU64::new(0),
        });
        sessions.insert(process, session.clone());
        Some(session)
    }

    /// Takes a session out.
    pub fn leave(&self, session: &Session) {
        self.sessions().remove(&session.process);
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.sessions().len()
    }

    /// Gives up the statement of the session with this number, if the secret is its own.
    pub fn cancel(&self, process: u32, secret: &[u8]) -> bool {
        let session = self.sessions().get(&process).cloned();
        let known = session.filter(|session| is_same(&session.secret, secret));
        known.as_ref().inspect(|session| session.cancel()).is_some()
    }

    /// Gives up the statement of a session of the same database, which needs no secret; or the session is to end.
    pub fn interrupt(&self, process: u32, ends: bool) -> bool {
        let session = self.sessions().get(&process).cloned();
        let asked = session.inspect(|session| if ends { session.end(Ending::Now) } else { session.cancel() });
        asked.is_some()
    }

    /// Asks every session to end, those that come later too.
    pub fn end(&self, ending: Ending) {
        self.ending.fetch_max(ending as u8, AcqRel);
        self.sessions().values().for_each(|session| session.end(ending));
    }
}

/// Whether two secrets are the same; takes as long whatever they are.
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: only who knows the secret cancels; the number of sessions is bounded; the end reaches newcomers.
    #[test]
    fn sessions_are_told() {
        let registry = Registry::default();
        let session = registry.enter(4, 2).expect("a place");
        assert!(!registry.cancel(session.process, &[0; 3]));
        assert!(!registry.cancel(session.process + 1, &session.secret));
        assert!(!session.is_cancelled());
        assert!(registry.cancel(session.process, &session.secret));
        assert!(session.is_cancelled());
        session.forget_cancel();
        assert!(!session.is_cancelled());
        let other = registry.enter(32, 2).expect("a place");
        assert!(registry.enter(4, 2).is_none());
        registry.leave(&other);
        registry.end(Ending::Soon);
        assert_eq!(session.ending(), Ending::Soon);
        assert_eq!(registry.enter(4, 2).expect("a place").ending(), Ending::Soon);
    }
}
