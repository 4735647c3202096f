//! The turns of a loop whose record actions run side by side: when all have ended, and which of those that have failed
//! counts.
//!
//! ```text
//! turn 0  checks, holds        \
//! turn 1  fails                 >  the last to end: 1 has failed first, so the call aborts with its error
//! turn 2  checks, holds        /
//! ```

use fabius_env::sync::Mutex;
use fabius_value::Error;
use std::sync::atomic::{AtomicU32, Ordering::AcqRel};

/// Which of several failures the text comes to first: the lower one.
pub type Rank = (usize, u32);

/// How far the turns of an action are.
pub struct Turns {
    left: AtomicU32,
    failure: Mutex<Option<(Rank, Error)>>,
}

impl Turns {
    /// So many turns, none of which has ended.
    pub fn new(count: u32) -> Turns {
        Turns { left: AtomicU32::new(count), failure: Mutex::new(None) }
    }

    /// One of them has failed, and is about to end.
    pub fn fail(&self, rank: Rank, error: Error) {
        let mut failure = self.failure.lock();
        if failure.as_ref().is_none_or(|(other, _)| rank < *other) {
            *failure = Some((rank, error));
        }
    }

    /// One of them ends; if it is the last: the error of the first that has failed, if any has.
    pub fn end(&self) -> Option<Result<(), Error>> {
        let is_last = self.left.fetch_sub(1, AcqRel) == 1;
        is_last.then(|| self.failure.lock().take().map_or(Ok(()), |(_, error)| Err(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::SqlState;

    /// Goal: the last to end is told of the first failure in the order of the text, whenever that was.
    #[test]
    fn the_first_failure_counts() {
        let failure = |text: &str| Error::new(SqlState::INVALID_PARAMETER, text);
        let turns = Turns::new(3);
        turns.fail((0, 2), failure("third"));
        assert!(turns.end().is_none());
        turns.fail((0, 1), failure("second"));
        assert!(turns.end().is_none());
        turns.fail((1, 0), failure("later loop"));
        let ended = turns.end().expect("it is the last");
        assert_eq!(ended.expect_err("some have failed").message(), "second");
        assert!(Turns::new(1).end().expect("it is the last").is_ok());
    }
}
