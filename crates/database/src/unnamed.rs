//! Procedures without a name of the user's: those that statements were defined as.
//!
//! A log holds calls, so what is called has to be defined; but a program that makes up its statements as it
//! goes along would define procedures without end. Those that no statement stands for any more are kept for
//! whoever runs the same text again; of these, the ones that have rested longest are dropped:
//!
//! ```text
//! defined --> used by statements --last one gone--> rests --> dropped, a batch at a time
//!                     ^                               |
//!                     '-------- the same text --------'
//! ```

use crate::statement_id::StatementId;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Procedures that rest, about.
const RESTING: usize = 512;
/// Procedures dropped at a time: each definition has to reach the disk.
const DROPPED: usize = 128;

/// The procedures of statements, by what tells them apart.
#[derive(Default)]
pub(crate) struct Unnamed {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    procedures: HashMap<StatementId, Standing>,
    /// Those that began to rest, oldest first; some are in use again, or rest anew.
    rested: VecDeque<(u64, StatementId)>,
    resting: usize,
    clock: u64,
}

enum Standing {
    /// So many statements stand for it.
    Used(usize),
    /// Since when, by [`State::clock`].
    Rests(u64),
}

/// That a statement stands for a procedure.
pub(crate) struct Use {
    unnamed: Arc<Unnamed>,
    statement: StatementId,
}

impl Unnamed {
    /// A statement stands for its procedure, which is defined or will be right now.
    pub(crate) fn hold(self: &Arc<Self>, statement: StatementId) -> Use {
        let state = &mut *self.state.lock();
        let standing = state.procedures.entry(statement).or_insert(Standing::Used(0));
        match standing {
            Standing::Used(users) => *users += 1,
            Standing::Rests(_) => {
                *standing = Standing::Used(1);
                state.resting -= 1;
            }
        }
        Use { unnamed: self.clone(), statement }
    }

    /// The procedures that should be dropped now; they are forgotten here. Nobody holds one meanwhile.
    pub(crate) fn take_tired(&self) -> Vec<StatementId> {
        let state = &mut *self.state.lock();
        let mut tired = Vec::new();
        if state.resting < RESTING + DROPPED {
            return tired;
        }
        while state.resting > RESTING
            && let Some((since, statement)) = state.rested.pop_front()
        {
            if matches!(state.procedures.get(&statement), Some(Standing::Rests(at)) if *at == since) {
                state.procedures.remove(&statement);
                state.resting -= 1;
                tired.push(statement);
            }
        }
        tired
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let state = &mut *self.unnamed.state.lock();
        let Some(standing) = state.procedures.get_mut(&self.statement) else { return };
        match standing {
            Standing::Used(users @ 2..) => *users -= 1,
            _ => {
                state.clock += 1;
                *standing = Standing::Rests(state.clock);
                state.rested.push_back((state.clock, self.statement));
                state.resting += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rests_longest_goes_first() {
        let unnamed = Arc::new(Unnamed::default());
        let statement = |number: usize| StatementId(number as u128);
        let held = unnamed.hold(statement(0));
        (0..RESTING + DROPPED).for_each(|number| drop(unnamed.hold(statement(number))));
        assert!(unnamed.take_tired().is_empty(), "one of them is held");
        drop(unnamed.hold(statement(1)));
        drop(held);
        let tired: Vec<_> = (2..DROPPED + 2).map(statement).collect();
        assert_eq!(unnamed.take_tired(), tired);
        assert!(unnamed.take_tired().is_empty());
    }
}
