//! Which calls come first (LADS, section 4.1: queues of transaction requests have priorities).
//!
//! Calls that have not begun have no place in the order yet, so an urgent one may overtake others. Those of one
//! priority come in the order in which they were handed in.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// How urgent calls are that were handed in together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// They wait until nothing else does, but not for ever.
    Low,
    /// As usual.
    #[default]
    Normal,
    /// They come first.
    High,
}

impl Priority {
    /// From the most urgent down.
    pub const ALL: [Priority; 3] = [Priority::High, Priority::Normal, Priority::Low];
}

/// How often a queue is passed over, at most, before it comes next.
const PATIENCE: u32 = 16;

/// A queue for each priority.
#[derive(Default)]
pub struct Queues<Q> {
    queues: [Q; 3],
    /// How often each was passed over while something waited in it.
    passed: [AtomicU32; 3],
}

impl<Q> Queues<Q> {
    /// The queue of a priority.
    pub fn of(&self, priority: Priority) -> &Q {
        &self.queues[priority as usize]
    }

    /// As [`Queues::of`].
    pub fn of_mut(&mut self, priority: Priority) -> &mut Q {
        &mut self.queues[priority as usize]
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Q> {
        self.queues.iter()
    }

    /// As [`Queues::iter`].
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Q> {
        self.queues.iter_mut()
    }

    /// Whose turn it is among those in which something waits: the most urgent one's, or one's that was passed over
    /// for too long.
    pub fn next(&self, waits: impl Fn(&Q) -> bool) -> Option<Priority> {
        let mut waiting = Priority::ALL.into_iter().filter(|priority| waits(self.of(*priority)));
        let first = waiting.next()?;
        for other in waiting {
            let passed = &self.passed[other as usize];
            if passed.fetch_add(1, Relaxed) >= PATIENCE {
                passed.store(0, Relaxed);
                return Some(other);
            }
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

    /// Goal: the more urgent come first, and none waits for ever.
    #[test]
    fn urgent_ones_come_first_and_none_waits_for_ever() {
        let mut queues: Queues<VecDeque<u32>> = Queues::default();
        for priority in Priority::ALL {
            queues.of_mut(priority).extend(0..1000);
        }
        let mut counts = [0; 3];
        for _ in 0..340 {
            let next = queues.next(|queue| !queue.is_empty()).unwrap();
            queues.of_mut(next).pop_front();
            counts[next as usize] += 1;
        }
        let [low, normal, high] = counts;
        assert!(high > 290 && normal >= 15 && low >= 15, "{counts:?}");
        queues.of_mut(Priority::High).clear();
        assert_eq!(queues.next(|queue| !queue.is_empty()), Some(Priority::Normal));
        queues.iter_mut().for_each(VecDeque::clear);
        assert_eq!(queues.next(|queue| !queue.is_empty()), None);
    }
}
