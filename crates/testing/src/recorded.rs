//! Recorded histories: what clients saw of transactions that ran side by side, and whether one after the other they
//! would have seen the same.
//!
//! Every commit has its seq, so the order need not be searched for: transactions that wrote are at their own seq,
//! those that only read at the seq that they read at. Replaying them in that order on a model gives every answer
//! again (serializability); and a transaction that ended before another began is not behind it (real time):
//!
//! ```text
//! client 1   [--- seq 5 ---]        [-- seq 9 --]
//! client 2         [------ seq 7 ------]            5, 7, 9: each might have happened in one moment of its time
//! client 3                              [ seq 6 ]   no: it began when 7 was over
//! ```

use fabius_value::Seq;
use std::fmt::Debug;

/// A transaction that has committed, as its client saw it.
#[derive(Clone, Debug)]
pub struct Committed<Operation, Answer> {
    /// The transaction's place in the order.
    pub seq: Seq,
    /// Whether that is its own; else it only read, and has seen what wrote there.
    pub wrote: bool,
    /// When its client began it: a number of a clock that all clients share.
    pub began: u64,
    /// When its client knew that it had committed.
    pub ended: u64,
    /// What it did, and what it was shown, in order.
    pub shown: Vec<(Operation, Answer)>,
}

/// Checks that a history is strictly serializable. `answer` does an operation on the model, which is the state before
/// the history, and afterwards the state behind it.
///
/// # Errors
/// The transaction that is out of order, or was shown something else.
pub fn check<Model, Operation: Debug, Answer: Debug + PartialEq>(
    mut history: Vec<Committed<Operation, Answer>>,
    model: &mut Model,
    answer: impl Fn(&Operation, &mut Model) -> Answer,
) -> Result<(), String> {
    // Who only read comes after the writer whose seq it has seen; among those, any order will do.
    history.sort_by_key(|committed| (committed.seq, !committed.wrote, committed.began));
    let mut began_last = 0;
    for committed in &history {
        if committed.ended < began_last {
            return Err(format!("behind one that began when it was over ({began_last}): {committed:?}"));
        }
        began_last = began_last.max(committed.began);
        for (operation, shown) in &committed.shown {
            let right = answer(operation, model);
            if right != *shown {
                return Err(format!("{operation:?} should have shown {right:?}: {committed:?}"));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(seq: u64, began: u64, ended: u64, value: i64) -> Committed<Option<i64>, i64> {
        Committed { seq: Seq(seq), wrote: true, began, ended, shown: vec![(Some(value), value)] }
    }

    fn get(seq: u64, began: u64, ended: u64, value: i64) -> Committed<Option<i64>, i64> {
        Committed { seq: Seq(seq), wrote: false, began, ended, shown: vec![(None, value)] }
    }

    fn is_right(history: Vec<Committed<Option<i64>, i64>>) -> bool {
        let register = |operation: &Option<i64>, model: &mut i64| {
            *model = operation.unwrap_or(*model);
            *model
        };
        check(history, &mut 0, register).is_ok()
    }

    /// Goal: what is right passes; a value of another order and a read of the past do not.
    #[test]
    fn histories_are_told_apart() {
        assert!(is_right(vec![get(1, 2, 3, 5), put(1, 0, 1, 5), put(2, 2, 4, 6), get(2, 5, 6, 6)]));
        assert!(!is_right(vec![put(1, 0, 1, 5), get(1, 2, 3, 6)]));
        assert!(!is_right(vec![put(1, 0, 1, 5), put(2, 2, 3, 6), get(1, 4, 5, 5)]));
    }
}
