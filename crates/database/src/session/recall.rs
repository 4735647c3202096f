//! Whether a call can still be taken back, and whether anybody waits for what is read.
//!
//! Who waits for a call may be told to give up while somebody else, in the same moment, hands the call in. One of
//! them is first:
//!
//! ```text
//!          hand in                 outcome known
//! free ---------------> past recall -----------> free
//!   \------ give up --> given up: it is not handed in any more; renew --> free
//! ```

use fabius_engine::room::{Patience, Room};
use fabius_value::{Error, SqlState};
use std::fmt;
use std::sync::atomic::{
    AtomicU8,
    Ordering::{AcqRel, Acquire, Release},
};
use std::sync::{Arc, OnceLock};

const FREE: u8 = 0;
const PAST_RECALL: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Asked by programs that read: why nobody waits for them any more, if that is so.
type Question = dyn Fn() -> Option<Error> + Send + Sync;

/// Whether the calls of somebody, one after the other, can still be taken back, and whether programs that read are to
/// go on.
#[derive(Default)]
pub struct Recall {
    state: AtomicU8,
    question: OnceLock<Box<Question>>,
}

impl fmt::Debug for Recall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recall").field(&self.state).finish()
    }
}

impl Patience for Recall {
    fn over(&self) -> Option<Error> {
        self.question.get().and_then(|question| question())
    }
}

impl Recall {
    /// Has programs that read for it ask this, now and then: why they are to end before they are done, if they
    /// are. The first question stays.
    pub fn ask(&self, question: impl Fn() -> Option<Error> + Send + Sync + 'static) {
        let _ = self.question.set(Box::new(question));
    }

    /// Gives up. False if it is too late: the call is in the order, and its outcome has to be waited for.
    pub fn give_up(&self) -> bool {
        let found = self.state.compare_exchange(FREE, GIVEN_UP, AcqRel, Acquire);
        found != Err(PAST_RECALL)
    }

    /// Goes on with the next call, after one that was given up.
    pub fn renew(&self) {
        self.state.store(FREE, Release);
    }

    /// Before a call is handed in; false if it was given up.
    pub(crate) fn hand_in(&self) -> bool {
        self.state.compare_exchange(FREE, PAST_RECALL, AcqRel, Acquire).is_ok()
    }

    /// The outcome of a call that was handed in is known.
    pub(crate) fn settle(&self) {
        // What was given up stays so until it is renewed.
        let _ = self.state.compare_exchange(PAST_RECALL, FREE, AcqRel, Acquire);
    }
}

/// Room for so many bytes, for a program that reads until it is given up.
pub(crate) fn room(bytes_max: usize, recall: Option<&Arc<Recall>>) -> Room {
    Room::new(bytes_max).with_patience(recall.map(|recall| recall.clone() as Arc<dyn Patience>))
}

/// Whether a program ended because nobody waited for it any more.
pub(crate) fn is_given_up(error: &Error) -> bool {
    [SqlState::CANCELED, SqlState::SHUTDOWN].contains(&error.state())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_both_is_first() {
        let recall = Recall::default();
        assert!(recall.hand_in() && !recall.give_up());
        recall.settle();
        assert!(recall.give_up() && !recall.hand_in() && recall.give_up());
        recall.settle();
        assert!(!recall.hand_in());
        recall.renew();
        assert!(recall.hand_in());
    }
}
