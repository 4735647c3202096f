//! Idempotency keys of calls that were dispatched and have not ended.
//!
//! A call that repeats a key must come after the first that bore it, wherever that one runs. Keys have no
//! partition; so a call whose key is in flight touches all partitions, as the first touches at least one.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The keys, by hash: two that share one only make a call wait that need not.
#[derive(Default)]
pub struct KeysInFlight {
    counts: Mutex<HashMap<u64, u32>>,
}

fn hash(key: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl KeysInFlight {
    /// Adds the key of a call that is dispatched; whether it was in flight before.
    pub fn add(&self, key: &[u8]) -> bool {
        let mut counts = self.counts.lock();
        let count = counts.entry(hash(key)).or_default();
        *count += 1;
        *count > 1
    }

    /// Takes off the key of a call that has ended.
    pub fn remove(&self, key: &[u8]) {
        let mut counts = self.counts.lock();
        let hash = hash(key);
        let count = counts.get_mut(&hash).expect("it was added");
        *count -= 1;
        if *count == 0 {
            counts.remove(&hash);
        }
    }
}
