//! Whether a call can still be taken back.
//!
//! Who waits for a call may be told to give up while somebody else, in the same moment, hands the call in. One of
//! them is first:
//!
//! ```text
//!          hand in                 outcome known
//! free ---------------> past recall -----------> free
//!   \------ give up --> given up: it is not handed in any more; renew --> free
//! ```

use std::sync::atomic::{
    AtomicU8,
    Ordering::{AcqRel, Acquire, Release},
};

const FREE: u8 = 0;
const PAST_RECALL: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Whether the calls of somebody, one after the other, can still be taken back.
#[derive(Debug, Default)]
pub struct Recall(AtomicU8);

impl Recall {
    /// Gives up. False if it is too late: the call is in the order, and its outcome has to be waited for.
    pub fn give_up(&self) -> bool {
        let found = self.0.compare_exchange(FREE, GIVEN_UP, AcqRel, Acquire);
        found != Err(PAST_RECALL)
    }

    /// Goes on with the next call, after one that was given up.
    pub fn renew(&self) {
        self.0.store(FREE, Release);
    }

    /// Before a call is handed in; false if it was given up.
    pub(crate) fn hand_in(&self) -> bool {
        self.0.compare_exchange(FREE, PAST_RECALL, AcqRel, Acquire).is_ok()
    }

    /// The outcome of a call that was handed in is known.
    pub(crate) fn settle(&self) {
        // What was given up stays so until it is renewed.
        let _ = self.0.compare_exchange(PAST_RECALL, FREE, AcqRel, Acquire);
    }
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
