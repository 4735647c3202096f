//! How far an action is that others depend on, or that depends on others (LADS, definition 2 and section 4.2.3).
//!
//! ```text
//!   waits for its queue, and for actions that it comes after ----> executable --> runs --> leaves its queue
//!           |                                                      \-- holds: writes at the word, leaves --/
//!           \-- disabled: it is in a branch that is not taken, or the call aborts: leaves without running
//! ```
//!
//! All of it is one word, so that of those who change it exactly one finds that the action can go on.
//!
//! A branch that is not taken is known before the actions in it can run: they come after the one that says so. It
//! leaves its queue at once, but what comes after it waits until all has been that it comes after itself. An abort may
//! meet actions that run, or have run, and hold what they have written; nothing waits for them any more.

use std::sync::atomic::{
    AtomicU32,
    Ordering::{AcqRel, Acquire},
};

/// The action is at its queue's head.
const AT_HEAD: u32 = 1 << 31;
/// It is in a branch that is not taken.
const DISABLED: u32 = 1 << 30;
/// The action's call aborts.
const ABORTED: u32 = 1 << 29;
/// It has begun to run.
const BEGUN: u32 = 1 << 28;
/// Actions that it comes after and that have not ended.
const BEFORE: u32 = BEGUN - 1;

/// How far an action is.
#[derive(Debug)]
pub struct Standing(AtomicU32);

/// What follows for an action from a change of its standing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing, yet or at all.
    Nothing,
    /// It can run.
    Run,
    /// It leaves the head of its queue without running.
    Leave,
    /// It has ended without running: what comes after it goes on.
    End,
}

impl Standing {
    /// That of an action that comes after so many.
    pub fn new(before: u32) -> Standing {
        Standing(AtomicU32::new(before))
    }

    /// The head of its queue has come to it.
    pub fn reach(&self) -> Next {
        let was = self.0.fetch_or(AT_HEAD, AcqRel);
        match was & BEFORE {
            _ if was & (DISABLED | ABORTED) != 0 => Next::Leave,
            0 => Next::Run,
            _ => Next::Nothing,
        }
    }

    /// One of the actions that it comes after has ended.
    pub fn follow(&self) -> Next {
        let was = self.0.fetch_sub(1, AcqRel);
        match was & BEFORE {
            1 if was & ABORTED != 0 => Next::Nothing,
            1 if was & DISABLED != 0 => Next::End,
            1 if was & AT_HEAD != 0 => Next::Run,
            _ => Next::Nothing,
        }
    }

    /// It is in a branch that is not taken: who says so has not ended, so it waits.
    pub fn disable(&self) -> Next {
        let was = self.0.fetch_or(DISABLED, AcqRel);
        let leaves = was & AT_HEAD != 0 && was & (DISABLED | ABORTED) == 0;
        if leaves { Next::Leave } else { Next::Nothing }
    }

    /// The call aborts. An action that `holds` what it has written leaves its queue then. If it `begins` before it
    /// runs, it may be that it can run, but has not begun: then it leaves instead. Others that can run have run.
    pub fn abort(&self, holds: bool, begins: bool) -> Next {
        let was = self.0.fetch_or(ABORTED, AcqRel);
        let has_run = if begins { was & BEGUN != 0 } else { was & BEFORE == 0 };
        let leaves = was & AT_HEAD != 0 && (was & BEFORE != 0 || has_run && holds);
        if leaves && was & (DISABLED | ABORTED) == 0 { Next::Leave } else { Next::Nothing }
    }

    /// It has run, and failed: its call is going to abort.
    pub fn fail(&self) {
        self.0.fetch_or(ABORTED, AcqRel);
    }

    /// It can run, and begins to, or leaves if its call has aborted meanwhile.
    pub fn begin(&self) -> Next {
        if self.0.fetch_or(BEGUN, AcqRel) & ABORTED == 0 { Next::Run } else { Next::Leave }
    }

    /// Whether it comes to nothing.
    pub fn is_disabled(&self) -> bool {
        self.0.load(Acquire) & (DISABLED | ABORTED) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: whoever comes last, its queue or what it comes after, finds that it can run; nobody else does.
    #[test]
    fn the_last_to_come_lets_it_run() {
        let standing = Standing::new(2);
        assert_eq!(
            [standing.follow(), standing.reach(), standing.follow()],
            [Next::Nothing, Next::Nothing, Next::Run]
        );
        let standing = Standing::new(1);
        assert_eq!(
            [standing.follow(), standing.reach(), standing.begin()],
            [Next::Nothing, Next::Run, Next::Run]
        );
    }

    /// Goal: what is disabled leaves once, at the head of its queue, and ends after what it comes after.
    #[test]
    fn what_is_disabled_leaves_once() {
        let standing = Standing::new(2);
        assert_eq!(standing.reach(), Next::Nothing);
        assert_eq!([standing.disable(), standing.disable()], [Next::Leave, Next::Nothing]);
        assert_eq!([standing.follow(), standing.follow()], [Next::Nothing, Next::End]);
        let standing = Standing::new(1);
        assert_eq!(
            [standing.disable(), standing.follow(), standing.reach()],
            [Next::Nothing, Next::End, Next::Leave]
        );
    }

    /// Goal: when its call aborts an action leaves once, by the abort, by its queue, or instead of running; what holds
    /// leaves by the abort.
    #[test]
    fn an_abort_lets_everything_leave_once() {
        let standing = Standing::new(1);
        assert_eq!([standing.abort(false, true), standing.reach()], [Next::Nothing, Next::Leave]);
        let standing = Standing::new(1);
        assert_eq!([standing.reach(), standing.abort(false, true)], [Next::Nothing, Next::Leave]);
        assert_eq!(standing.follow(), Next::Nothing);
        let standing = Standing::new(0);
        let steps = [standing.reach(), standing.abort(true, true), standing.begin()];
        assert_eq!(steps, [Next::Run, Next::Nothing, Next::Leave]);
        let standing = Standing::new(0);
        let steps = [standing.reach(), standing.begin(), standing.abort(true, true)];
        assert_eq!(steps, [Next::Run, Next::Run, Next::Leave]);
        let standing = Standing::new(0);
        assert_eq!([standing.reach(), standing.abort(true, false)], [Next::Run, Next::Leave]);
        let standing = Standing::new(0);
        assert_eq!([standing.reach(), standing.abort(false, false)], [Next::Run, Next::Nothing]);
        let standing = Standing::new(1);
        let steps = [standing.reach(), standing.disable(), standing.abort(false, true)];
        assert_eq!(steps, [Next::Nothing, Next::Leave, Next::Nothing]);
    }
}
