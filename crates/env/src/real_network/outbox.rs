//! Messages that wait to be sent to one peer.

use super::inbox::MESSAGE_OVERHEAD_BYTES;
use crate::sync::{Condvar, Mutex};
use parking_lot::MutexGuard;
use std::collections::VecDeque;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How many messages are written at once.
const BATCH_MESSAGES_MAX: usize = 256;

/// How many bytes are written at once, unless one message is longer.
const BATCH_BYTES_MAX: usize = 256 << 10;

/// A queue bounded by bytes, and the address that its messages go to.
#[derive(Debug)]
pub(super) struct Outbox {
    bytes_max: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Vec<u8>>,
    bytes: usize,
    target: Target,
    is_closed: bool,
    /// The stream of the present connection, held only to end it.
    stream: Option<TcpStream>,
}

/// Where messages go; equal only as long as it was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) address: String,
    revision: u64,
}

/// What there is to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Batch {
    Messages(Vec<Vec<u8>>),
    /// No message came in time.
    Nothing,
    /// The peer has another address, or is none any more.
    TargetLeft,
}

impl Outbox {
    pub(super) fn bounded(bytes_max: usize, address: String) -> Self {
        let target = Target { address, revision: 0 };
        let state = State { queue: VecDeque::new(), bytes: 0, target, is_closed: false, stream: None };
        Self { bytes_max, state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Takes a message if there is room for it; whether there was. One has room in an empty queue, however
    /// long it is.
    pub(super) fn put(&self, message: Vec<u8>) -> bool {
        let mut state = self.state.lock();
        let bytes = state.bytes + message.len() + MESSAGE_OVERHEAD_BYTES;
        if state.is_closed || (bytes > self.bytes_max && !state.queue.is_empty()) {
            return false;
        }
        state.bytes = bytes;
        state.queue.push_back(message);
        self.changed.notify_all();
        true
    }

    /// Waits for a message, and says where to connect for it; none once the outbox is closed.
    pub(super) fn wait_for_message(&self) -> Option<Target> {
        let state = self.wait(Duration::MAX, |state| state.is_closed || !state.queue.is_empty());
        (!state.is_closed).then(|| state.target.clone())
    }

    /// Takes the next messages, after waiting this long for the first of them.
    pub(super) fn take(&self, target: &Target, at_most: Duration) -> Batch {
        let mut state = self.wait(at_most, |state| state.has_left(target) || !state.queue.is_empty());
        if state.has_left(target) {
            return Batch::TargetLeft;
        }
        let (mut batch, mut batch_bytes) = (Vec::new(), 0);
        while let Some(next) = state.queue.front() {
            batch_bytes += next.len();
            let is_full = batch.len() == BATCH_MESSAGES_MAX || batch_bytes > BATCH_BYTES_MAX;
            if is_full && !batch.is_empty() {
                break;
            }
            batch.extend(state.queue.pop_front());
        }
        let taken: usize = batch.iter().map(|message| message.len() + MESSAGE_OVERHEAD_BYTES).sum();
        state.bytes -= taken;
        if batch.is_empty() { Batch::Nothing } else { Batch::Messages(batch) }
    }

    /// Drops all messages, and says how many.
    pub(super) fn clear(&self) -> u64 {
        let mut state = self.state.lock();
        state.bytes = 0;
        std::mem::take(&mut state.queue).len() as u64
    }

    /// Waits this long, or until the peer has another address or is none any more.
    pub(super) fn pause(&self, target: &Target, time: Duration) {
        drop(self.wait(time, |state| state.has_left(target)));
    }

    /// Makes the stream the one that is shut down when the target changes; false if that has happened already.
    pub(super) fn hold(&self, target: &Target, stream: TcpStream) -> bool {
        let mut state = self.state.lock();
        let is_current = !state.has_left(target);
        state.stream = is_current.then_some(stream);
        is_current
    }

    /// Lets go of the stream, whose connection is over.
    pub(super) fn release(&self) {
        self.state.lock().stream = None;
    }

    /// Sends what waits, and what comes, to this address from now on.
    pub(super) fn retarget(&self, address: &str) {
        let mut state = self.state.lock();
        if state.target.address != address {
            state.target = Target { address: address.to_owned(), revision: state.target.revision + 1 };
            self.hang_up(&mut state);
        }
    }

    /// Takes and sends nothing any more.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        self.hang_up(&mut state);
    }

    fn hang_up(&self, state: &mut State) {
        if let Some(stream) = state.stream.take() {
            // It fails only if the connection is over already.
            let _ = stream.shutdown(Shutdown::Both);
        }
        self.changed.notify_all();
    }

    fn wait(&self, at_most: Duration, condition: impl Fn(&State) -> bool) -> MutexGuard<'_, State> {
        let began = Instant::now();
        let mut state = self.state.lock();
        while !condition(&state) {
            let left = at_most.saturating_sub(began.elapsed());
            if left.is_zero() {
                break;
            }
            self.changed.wait_for(&mut state, left);
        }
        state
    }
}

impl State {
    fn has_left(&self, target: &Target) -> bool {
        self.is_closed || self.target != *target
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(batch: Batch) -> Vec<usize> {
        match batch {
            Batch::Messages(messages) => messages.iter().map(Vec::len).collect(),
            Batch::Nothing | Batch::TargetLeft => panic!("no messages but {batch:?}"),
        }
    }

    /// Goal: what has no room is not taken, and there is room again once something was sent.
    #[test]
    fn a_full_outbox_takes_no_more() {
        let outbox = Outbox::bounded(2 * (MESSAGE_OVERHEAD_BYTES + 10), "x:1".to_owned());
        let target = outbox.wait_for_message_of(vec![0; 10]);
        assert!(outbox.put(vec![0; 10]) && !outbox.put(Vec::new()));
        assert_eq!(lengths(outbox.take(&target, Duration::ZERO)), [10, 10]);
        assert!(outbox.put(vec![0; 1_000]) && !outbox.put(Vec::new()));
        assert_eq!(outbox.clear(), 1);
        assert!(outbox.put(vec![0; 10]) && outbox.put(vec![0; 10]));
    }

    /// Goal: many messages are taken at once, up to a bound of number and of bytes, and a longer one alone.
    #[test]
    fn messages_are_taken_in_batches() {
        let outbox = Outbox::bounded(usize::MAX, "x:1".to_owned());
        let target = outbox.wait_for_message_of(Vec::new());
        (0..BATCH_MESSAGES_MAX).for_each(|_| assert!(outbox.put(Vec::new())));
        for len in [BATCH_BYTES_MAX * 2, BATCH_BYTES_MAX - 1, 1, 1] {
            assert!(outbox.put(vec![0; len]));
        }
        assert_eq!(lengths(outbox.take(&target, Duration::ZERO)), vec![0; BATCH_MESSAGES_MAX]);
        assert_eq!(lengths(outbox.take(&target, Duration::ZERO)), [0]);
        assert_eq!(lengths(outbox.take(&target, Duration::ZERO)), [BATCH_BYTES_MAX * 2]);
        assert_eq!(lengths(outbox.take(&target, Duration::ZERO)), [BATCH_BYTES_MAX - 1, 1]);
        assert_eq!(lengths(outbox.take(&target, Duration::ZERO)), [1]);
        assert_eq!(outbox.take(&target, Duration::ZERO), Batch::Nothing);
    }

    /// Goal: another address ends what goes on with the old one, and keeps the messages; closing ends all.
    #[test]
    fn a_target_can_change() {
        let outbox = Outbox::bounded(1_000, "x:1".to_owned());
        let target = outbox.wait_for_message_of(vec![7]);
        outbox.retarget("x:1");
        outbox.pause(&target, Duration::ZERO);
        outbox.retarget("x:2");
        outbox.pause(&target, Duration::MAX);
        assert_eq!(outbox.take(&target, Duration::MAX), Batch::TargetLeft);
        let target = outbox.wait_for_message().expect("open");
        assert_eq!(target.address, "x:2");
        assert_eq!(lengths(outbox.take(&target, Duration::MAX)), [1]);
        outbox.close();
        assert_eq!(outbox.take(&target, Duration::MAX), Batch::TargetLeft);
        assert_eq!((outbox.put(Vec::new()), outbox.wait_for_message()), (false, None));
    }

    impl Outbox {
        /// Puts a message in, so that there is something to wait for.
        fn wait_for_message_of(&self, message: Vec<u8>) -> Target {
            assert!(self.put(message));
            self.wait_for_message().expect("open")
        }
    }
}
