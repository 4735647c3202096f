//! Messages that have arrived and were not received yet.

use crate::NodeId;
use crate::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What a message takes besides its bytes, so that empty ones are bounded too.
pub(super) const MESSAGE_OVERHEAD_BYTES: usize = 64;

/// A queue bounded by bytes. Whoever wants to put more into it waits.
#[derive(Debug)]
pub(super) struct Inbox {
    bytes_max: usize,
    state: Mutex<State>,
    arrived: Condvar,
    room: Condvar,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<(NodeId, Vec<u8>)>,
    bytes: usize,
    is_woken: bool,
    is_closed: bool,
}

impl State {
    /// One message has room in an empty queue, however long it is.
    fn has_room(&self, message: &[u8], bytes_max: usize) -> bool {
        self.queue.is_empty() || self.bytes + size(message) <= bytes_max
    }
}

fn size(message: &[u8]) -> usize {
    message.len() + MESSAGE_OVERHEAD_BYTES
}

impl Inbox {
    pub(super) fn bounded(bytes_max: usize) -> Self {
        Self { bytes_max, state: Mutex::default(), arrived: Condvar::new(), room: Condvar::new() }
    }

    /// Puts a message in, or gives it back if there is no room for it within this time.
    pub(super) fn put(&self, from: NodeId, message: Vec<u8>, at_most: Duration) -> Result<(), Vec<u8>> {
        let began = Instant::now();
        let mut state = self.state.lock();
        while !state.has_room(&message, self.bytes_max) {
            let left = at_most.saturating_sub(began.elapsed());
            if left.is_zero() || state.is_closed {
                return Err(message);
            }
            self.room.wait_for(&mut state, left);
        }
        state.bytes += size(&message);
        state.queue.push_back((from, message));
        self.arrived.notify_one();
        Ok(())
    }

    pub(super) fn take(&self) -> Option<(NodeId, Vec<u8>)> {
        let mut state = self.state.lock();
        let (from, message) = state.queue.pop_front()?;
        state.bytes -= size(&message);
        self.room.notify_all();
        Some((from, message))
    }

    /// Waits until a message is there, or [`wake`](Self::wake), or this time has passed.
    pub(super) fn wait(&self, at_most: Duration) {
        let began = Instant::now();
        let mut state = self.state.lock();
        while state.queue.is_empty() && !state.is_woken {
            let left = at_most.saturating_sub(began.elapsed());
            if left.is_zero() {
                break;
            }
            self.arrived.wait_for(&mut state, left);
        }
        state.is_woken = false;
    }

    pub(super) fn wake(&self) {
        self.state.lock().is_woken = true;
        self.arrived.notify_all();
    }

    /// From now on nobody waits for room.
    pub(super) fn close(&self) {
        self.state.lock().is_closed = true;
        self.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a message has room while the bound is kept, or if it is alone; otherwise it is given back.
    #[test]
    fn a_full_inbox_takes_no_more() {
        let inbox = Inbox::bounded(2 * (MESSAGE_OVERHEAD_BYTES + 10));
        let put = |len: usize| inbox.put(NodeId(1), vec![0; len], Duration::ZERO).is_ok();
        assert!(put(10) && put(10) && !put(0));
        assert!(inbox.take().is_some());
        assert!(put(10) && !put(0));
        assert!(inbox.take().is_some() && inbox.take().is_some() && inbox.take().is_none());
        assert!(put(1_000) && !put(0));
    }

    /// Goal: a wait ends at once if somebody has woken it before, or a message is there; and only once for one
    /// waking.
    #[test]
    fn a_wait_is_woken_also_before_it_begins() {
        let inbox = Inbox::bounded(1_000);
        inbox.wake();
        inbox.wait(Duration::MAX);
        assert!(!inbox.state.lock().is_woken);
        inbox.put(NodeId(1), Vec::new(), Duration::ZERO).expect("room");
        inbox.wait(Duration::MAX);
        inbox.take().expect("there");
        inbox.wait(Duration::ZERO);
    }

    /// Goal: whoever waits for room gets it when there is some, or gives up when the inbox is closed.
    #[test]
    fn room_is_waited_for() {
        let inbox = Inbox::bounded(1);
        let put = || inbox.put(NodeId(1), Vec::new(), Duration::MAX).is_ok();
        assert!(put());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(put);
            while inbox.take().is_none() {}
            assert!(waiting.join().expect("no panic"));
            let waiting = scope.spawn(put);
            inbox.close();
            assert!(!waiting.join().expect("no panic"));
        });
    }
}
