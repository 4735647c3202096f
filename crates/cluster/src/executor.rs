//! An engine that takes what is agreed on.

use crate::{Agreed, Execution, Point};
use fabius_engine::batch::Outcomes;
use fabius_engine::entry::{self, Entries};
use fabius_engine::{Batch, Engine};
use fabius_value::{Error, Result, Seq};
use parking_lot::Mutex;
use std::sync::Arc;

/// Hands agreed entries to an engine, and tells those who wait on this node what has become of them.
pub struct Executor {
    engine: Arc<dyn Engine>,
    /// Held while an entry is taken, so that others can stand between two.
    between: Arc<Mutex<()>>,
    at_checkpoint: Option<AtCheckpoint>,
}

/// What is done at a place where every node takes a checkpoint, while nothing else is executed.
pub type AtCheckpoint = Box<dyn FnMut(Point) + Send>;

impl Executor {
    /// Of an engine to which nobody else hands anything in.
    pub fn new(engine: Arc<dyn Engine>) -> Executor {
        Executor { engine, between: Arc::default(), at_checkpoint: None }
    }

    /// Has something done where every node takes a checkpoint.
    pub fn at_checkpoint(&mut self, then: AtCheckpoint) {
        self.at_checkpoint = Some(then);
    }

    /// What is held while an entry is taken.
    pub fn between(&self) -> Arc<Mutex<()>> {
        self.between.clone()
    }

    /// Has the engine take an entry. A definition that does not fit those before it is refused by every node alike:
    /// the entry then does nothing.
    fn run(&mut self, agreed: &Agreed) -> Result<Outcomes> {
        let (seq, count) = (agreed.first_seq, agreed.count);
        let nothing = || self.engine.take(seq, count, &entry::encode_nothing());
        let Some(taken) = agreed.taken() else { return nothing() };
        match entry::decode(taken)? {
            Entries::Calls { time_us, .. } => {
                self.engine.foundation().note_time(time_us, seq);
                return self.engine.take(seq, count, taken);
            }
            Entries::Checkpoint => {
                let outcomes = self.engine.take(seq, count, taken)?;
                self.at_checkpoint.iter_mut().for_each(|then| then(agreed.point()));
                return Ok(outcomes);
            }
            Entries::Definition(_) | Entries::KeyWindow(_) | Entries::Nothing => {}
        }
        match self.engine.foundation().definitions().with(seq, taken) {
            Ok(_) => self.engine.take(seq, count, taken),
            Err(refused) => Ok(Outcomes { aborts: vec![(0, refused)], ..nothing()? }),
        }
    }
}

impl Execution for Executor {
    fn take(&mut self, agreed: Agreed) -> Result<()> {
        let engine = self.engine.clone();
        let foundation = engine.foundation();
        let outcomes = {
            let between = self.between.clone();
            let _between = between.lock();
            foundation.attempt(|| self.run(&agreed))?
        };
        foundation.counters.log_bytes.add(agreed.bytes());
        outcomes.deal(&agreed.ours);
        for (first, batch) in agreed.ours {
            let last = Seq(agreed.first_seq.0 + u64::from(first + batch.count()) - 1);
            foundation.decided(last, batch);
        }
        Ok(())
    }

    fn refuse(&mut self, batch: Arc<Batch>, reason: Error) {
        batch.fail(reason, self.engine.foundation().clock.monotonic_ns());
    }

    fn reached(&mut self, readers: Vec<Arc<Batch>>) {
        let now = self.engine.foundation().clock.monotonic_ns();
        readers.into_iter().for_each(|reader| reader.complete(now));
    }
}
