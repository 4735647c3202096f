//! Repeated calls get their first outcome.
//!
//! A key is remembered with the outcome of the first call that bore it, for so many calls as the
//! [`KeyWindow`] says, also across restarts: replaying the log meets the same keys at the same seqs, and
//! whether a key is still remembered depends on nothing but seqs.
//!
//! ```text
//! window of 100 calls, a key first used at seq 40
//!
//!     40 .......................... 140 | 141 ..........
//!     a call with the key gets the      | the key is as good as new, and the memory
//!     outcome of 40, and does nothing   | it took is given back before long
//! ```
//!
//! Looking a key up is one lookup in a hash map. Entries are numbered as they come, so that the oldest
//! can be forgotten, and a checkpoint can walk over them, without looking at the others.

use crate::Ticket;
use fabius_env::sync::Mutex;
use fabius_storage::memory;
use fabius_value::{Error, Seq, SqlState};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How many calls back keys are remembered, as long as the log does not say otherwise.
pub const KEY_WINDOW_CALLS: u64 = 10_000_000;

/// Keys forgotten whenever one is remembered, at most: a bound on the pause.
const FORGOTTEN_MAX: usize = 64;

/// How far back keys are remembered at some place in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyWindow {
    /// In calls.
    pub calls: u64,
    /// What is older was forgotten under an earlier, narrower window, and stays so.
    floor: Seq,
}

impl Default for KeyWindow {
    fn default() -> KeyWindow {
        KeyWindow { calls: KEY_WINDOW_CALLS, floor: Seq::ZERO }
    }
}

impl KeyWindow {
    /// The oldest seq whose key is remembered by a call at `at`.
    #[inline]
    pub fn oldest(self, at: Seq) -> Seq {
        self.floor.max(Seq(at.0.saturating_sub(self.calls)))
    }

    /// The window from `at` on, if it is changed there.
    #[must_use]
    pub fn changed(self, at: Seq, calls: u64) -> KeyWindow {
        KeyWindow { calls, floor: self.oldest(at) }
    }
}

/// The first outcome under a key.
#[derive(Clone)]
pub struct First {
    /// The first call's seq.
    pub seq: Seq,
    /// Why it aborted, if it did.
    pub abort: Option<Error>,
    /// Where its result is, if it wanted one.
    pub ticket: Option<Arc<Ticket>>,
}

/// A key with its first outcome.
pub type Remembered = (Arc<[u8]>, First);

/// Keys seen so far, as far back as they are remembered.
#[derive(Default)]
pub struct Keys {
    /// By key: the number of its newest entry.
    seen: HashMap<Arc<[u8]>, u64>,
    /// Almost in order of seq: engines with several committers enter them slightly out of order.
    entries: VecDeque<Remembered>,
    /// The number of the oldest entry.
    first: u64,
    /// Who walks over the entries; as long as anyone does, none is taken away.
    walks: usize,
}

impl Keys {
    /// The first outcome under this key, if it is remembered from `oldest` on.
    #[inline]
    pub fn get(&self, key: &[u8], oldest: Seq) -> Option<&First> {
        let number = *self.seen.get(key)?;
        let (_, first) = &self.entries[(number - self.first) as usize];
        (first.seq >= oldest).then_some(first)
    }

    /// Remembers a first outcome, unless it is [to be tried again](is_final), and forgets some that are older than
    /// `oldest`.
    pub fn remember(&mut self, key: &[u8], first: First, oldest: Seq) {
        self.forget(oldest);
        if !is_final(first.abort.as_ref()) {
            return;
        }
        let key: Arc<[u8]> = key.into();
        memory::add(bytes(&key));
        self.seen.insert(key.clone(), self.first + self.entries.len() as u64);
        self.entries.push_back((key, first));
    }

    fn forget(&mut self, oldest: Seq) {
        if self.walks > 0 {
            return;
        }
        for _ in 0..FORGOTTEN_MAX {
            let Some((key, _)) = self.entries.pop_front_if(|(_, first)| first.seq < oldest) else { return };
            if self.seen.get(&key) == Some(&self.first) {
                self.seen.remove(&key);
            }
            memory::add(-bytes(&key));
            self.first += 1;
        }
    }

    /// How many there are, some of them perhaps too old to be found.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        memory::add(-self.entries.iter().map(|(key, _)| bytes(key)).sum::<isize>());
    }
}

/// Whether a call that ended so has its outcome for good. After a conflict whoever made it is told to try again,
/// under the same key; so is whoever called a procedure that was dropped.
pub fn is_final(abort: Option<&Error>) -> bool {
    let is_for_now = |state| [SqlState::SERIALIZATION_FAILURE, SqlState::UNDEFINED_FUNCTION].contains(&state);
    abort.is_none_or(|error| !is_for_now(error.state()))
}

/// What a key takes: entry, key with its counts, a place in the map. Results count for themselves.
fn bytes(key: &[u8]) -> isize {
    const MAP_PLACE: usize = 40;
    (size_of::<Remembered>() + 2 * size_of::<usize>() + key.len().next_multiple_of(8) + MAP_PLACE) as isize
}

/// A walk over keys. Those who remember and look up go on meanwhile; nothing is taken away.
pub struct KeyWalk<'k> {
    keys: &'k Mutex<Keys>,
    next: u64,
    end: u64,
}

impl<'k> KeyWalk<'k> {
    /// A walk over the keys that are there now.
    pub fn new(keys: &'k Mutex<Keys>) -> KeyWalk<'k> {
        let next = {
            let mut keys = keys.lock();
            keys.walks += 1;
            keys.first
        };
        let mut walk = KeyWalk { keys, next, end: next };
        walk.reach_now();
        walk
    }

    /// Takes in those remembered since.
    pub fn reach_now(&mut self) {
        let keys = self.keys.lock();
        self.end = keys.first + keys.entries.len() as u64;
    }

    /// The next entries, at most `most`; none at the end.
    pub fn part(&mut self, most: usize) -> Vec<Remembered> {
        let keys = self.keys.lock();
        let begin = (self.next - keys.first) as usize;
        let count = most.min((self.end - self.next) as usize);
        self.next += count as u64;
        keys.entries.range(begin..begin + count).cloned().collect()
    }
}

impl Drop for KeyWalk<'_> {
    fn drop(&mut self) {
        self.keys.lock().walks -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seq: u64) -> First {
        First { seq: Seq(seq), abort: None, ticket: None }
    }

    /// Goal: whether a key is remembered depends on seqs alone, also while a walk keeps it in memory.
    #[test]
    fn keys_are_forgotten_by_seq() {
        let window = KeyWindow::default().changed(Seq(1), 10);
        let keys = Mutex::new(Keys::default());
        let found = |key: &[u8], at| keys.lock().get(key, window.oldest(Seq(at))).map(|first| first.seq.0);
        let remember = |key: &[u8], at| keys.lock().remember(key, first(at), window.oldest(Seq(at)));
        remember(b"a", 2);
        remember(b"b", 5);
        assert_eq!((found(b"a", 12), found(b"a", 13), found(b"b", 13)), (Some(2), None, Some(5)));
        let mut walk = KeyWalk::new(&keys);
        remember(b"a", 13);
        assert_eq!((found(b"a", 20), keys.lock().len()), (Some(13), 3));
        let walked: Vec<u64> = walk.part(9).iter().map(|(_, first)| first.seq.0).collect();
        assert_eq!((walked, walk.part(9).len()), (vec![2, 5], 0));
        drop(walk);
        remember(b"c", 20);
        assert_eq!((found(b"a", 20), found(b"b", 14), keys.lock().len()), (Some(13), None, 2));
    }

    /// Goal: a wider window does not bring back what a narrower one has forgotten.
    #[test]
    fn what_is_forgotten_stays_forgotten() {
        let narrow = KeyWindow::default().changed(Seq(1), 10);
        let wide = narrow.changed(Seq(100), 1000);
        assert_eq!((wide.oldest(Seq(101)), wide.oldest(Seq(1095))), (Seq(90), Seq(95)));
    }
}
