//! The bound on the turns that a call's loops take.
//!
//! Every program ends, but `for n in 1 to 9000000000000000000` not soon. So each loop over integers or
//! a list says when it is entered how many turns it will take, and a call whose loops come to more than
//! [`limit::LOOP_TURNS`] aborts there, before the turns are taken. A turn itself costs nothing more.
//!
//! Loops over tables are not counted: there are no more turns than rows.
//!
//! The count is part of what a program means: the interpreter, compiled code and the now-phase come to
//! the same. A now-phase leaves out loops that are the later-phase's alone, but only if all loops of
//! the program together are proven to stay within the bound (`slice/proof.rs`).

use crate::abort;
use fabius_value::{Result, limit};

/// How many turns a call has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turns {
    left: u64,
}

impl Default for Turns {
    fn default() -> Turns {
        Turns { left: limit::LOOP_TURNS }
    }
}

impl Turns {
    /// Enters a loop from one number to another, both included.
    ///
    /// # Errors
    /// `54000` if the call has fewer turns left.
    #[inline]
    pub fn enter_range(&mut self, from: i64, to: i64) -> Result<()> {
        self.enter(if from > to { 0 } else { u128::from(from.abs_diff(to)) + 1 })
    }

    /// Enters a loop over a list of so many elements.
    ///
    /// # Errors
    /// As [`enter_range`](Turns::enter_range).
    #[inline]
    pub fn enter_list(&mut self, elements: usize) -> Result<()> {
        self.enter(elements as u128)
    }

    fn enter(&mut self, turns: u128) -> Result<()> {
        match u64::try_from(turns).ok().and_then(|turns| self.left.checked_sub(turns)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(abort::too_many_turns(limit::LOOP_TURNS - self.left, turns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the bound itself is allowed, one more is not, and no range is too long to be refused.
    #[test]
    fn turns_add_up_to_the_bound() {
        let most = limit::LOOP_TURNS as i64;
        let mut turns = Turns::default();
        turns.enter_range(5, 4).unwrap();
        turns.enter_list(3).unwrap();
        turns.enter_range(-1, most - 5).unwrap();
        turns.enter_list(0).unwrap();
        turns.enter_list(1).unwrap_err();
        let error = Turns::default().enter_range(i64::MIN, i64::MAX).unwrap_err();
        assert_eq!(
            format!("{error:?}"),
            "[54000] loops of one call may take 10000000 turns; here are 18446744073709551616, after 0 \
             before; hint: divide the work among several calls"
        );
    }
}
