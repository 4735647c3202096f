//! What became of a call that bore an idempotency key.

use crate::database::Database;

/// How far a call has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyedCall {
    /// It has its place in the order, which is not durable yet.
    InProgress,
    /// It committed, durably.
    Committed,
    /// It aborted, durably: no repetition under its key does anything.
    Aborted,
}

impl Database {
    /// The first call with this key; `None` if there was none, or none that is still remembered.
    pub fn keyed_call(&self, key: &[u8]) -> Option<KeyedCall> {
        let promised = self.foundation().promised();
        let oldest = self.definitions().key_window.oldest(promised.next());
        let keys = self.foundation().keys.lock();
        let first = keys.get(key, oldest)?;
        Some(match &first.abort {
            _ if first.seq > promised => KeyedCall::InProgress,
            Some(_) => KeyedCall::Aborted,
            None => KeyedCall::Committed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;

    /// Goal: a key that no call bore has no outcome.
    #[test]
    fn unknown_keys_have_no_outcome() {
        assert_eq!(Database::in_memory(Options::default()).keyed_call(b"k"), None);
    }
}
