//! Repeated calls get their first outcome.
//!
//! A key is remembered with the outcome of the first call that bore it, also across restarts,
//! because replaying the log meets the same keys in the same order.

use crate::Ticket;
use fabius_value::{Error, Seq};
use std::collections::HashMap;
use std::sync::Arc;

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

/// Keys seen so far.
#[derive(Default)]
pub struct Keys {
    seen: HashMap<Box<[u8]>, First>,
}

impl Keys {
    /// The first outcome under this key, if the key was seen.
    pub fn get(&self, key: &[u8]) -> Option<&First> {
        self.seen.get(key)
    }

    /// Remembers the first outcome.
    pub fn remember(&mut self, key: &[u8], first: First) {
        self.seen.insert(key.into(), first);
    }
}
