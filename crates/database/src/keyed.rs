//! What became of a call that bore an idempotency key.

use crate::database::Database;
use fabius_engine::idempotency::First;
use fabius_value::{Result, Seq};

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
        let first = self.first_call(key)?;
        let is_durable = first.seq <= self.foundation().promised() && self.foundation().is_durable(first.seq);
        Some(match &first.abort {
            _ if !is_durable => KeyedCall::InProgress,
            Some(_) => KeyedCall::Aborted,
            None => KeyedCall::Committed,
        })
    }

    /// The seq of the first call with this key, or why it aborted, once that is durable; `None` as for
    /// [`Database::keyed_call`].
    ///
    /// # Errors
    /// What ended the log.
    pub async fn first_outcome(&self, key: &[u8]) -> Result<Option<Result<Seq>>> {
        let Some(first) = self.first_call(key) else { return Ok(None) };
        self.durable(first.seq).await?;
        Ok(Some(first.abort.map_or(Ok(first.seq), Err)))
    }

    fn first_call(&self, key: &[u8]) -> Option<First> {
        let promised = self.foundation().promised();
        let oldest = self.definitions().key_window.oldest(promised.next());
        self.foundation().keys.lock().get(key, oldest).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use fabius_env::{RealClock, SimulatedDisk};
    use fabius_log::Flusher;
    use std::sync::Arc;

    /// Goal: a key that no call bore has no outcome.
    #[test]
    fn unknown_keys_have_no_outcome() {
        assert_eq!(Database::in_memory(Options::default()).keyed_call(b"k"), None);
    }

    /// Goal: a call that is in the order has no outcome before it is durable.
    #[test]
    fn outcomes_are_durable() {
        let disk = Arc::new(SimulatedDisk::new(1));
        let options = Options { workers: 0, ..Options::default() };
        let database = Database::open_on(disk, Arc::new(RealClock::new()), Flusher::Manual, options).unwrap();
        database
            .define(
                "table t { id: bigint, primary key (id) }
                 procedure put(id: bigint) { insert t { id: id } }",
            )
            .unwrap();
        let put = database.prepare("put").unwrap().with_key("k");
        let pending = put.submit(&[1i64.into()]).unwrap();
        while database.engine().admit() {}
        assert_eq!(database.keyed_call(b"k"), Some(KeyedCall::InProgress));
        database.foundation().wait_durable(database.foundation().promised()).unwrap();
        assert_eq!(database.keyed_call(b"k"), Some(KeyedCall::Committed));
        pending.wait().unwrap();
    }
}
