//! Where the thread that executes what is agreed on meets the one that takes checkpoints: the one goes on once the
//! other stands.
//!
//! ```text
//!   executing       ... 898 899 900(a checkpoint here) call --wait--> 901 902 ...
//!   checkpoints     attend ----------------------------> stand -----> write the state after 900 ... free again
//! ```

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// Who is where; who calls says something.
#[derive(Default)]
pub(crate) struct Meeting<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Default)]
enum State<T> {
    /// Nobody comes now: the thread that takes checkpoints has not begun, or is writing one.
    #[default]
    Away,
    /// Nobody will come any more.
    Gone,
    /// It comes when it is called.
    Free,
    /// The thread that executes waits for it.
    Called(T),
    /// It has heard, and is about to stand.
    Heard,
}

/// The side of the thread that takes checkpoints; nobody waits for it once this is dropped.
pub(crate) struct Attendant<'m, T>(&'m Meeting<T>);

impl<T> Meeting<T> {
    /// Calls the other thread, and returns once it stands; at once if it would not come.
    pub(crate) fn call(&self, said: T) {
        let mut state = self.state.lock();
        if matches!(*state, State::Free) {
            *state = State::Called(said);
            self.changed.notify_all();
            self.changed.wait_while(&mut state, |state| matches!(state, State::Called(_) | State::Heard));
        }
    }

    /// From now on somebody comes.
    pub(crate) fn attendant(&self) -> Attendant<'_, T> {
        self.set(State::Free);
        Attendant(self)
    }

    /// Returns once whoever was called has done what it was called for; whether it will come again.
    pub(crate) fn wait(&self) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| !matches!(state, State::Free | State::Gone));
        matches!(*state, State::Free)
    }

    fn set(&self, state: State<T>) {
        *self.state.lock() = state;
        self.changed.notify_all();
    }
}

impl<T> Attendant<'_, T> {
    /// Waits so long for a call; what was said and what `stand` gives, if there was one. Nobody else comes until
    /// [`Attendant::is_free`].
    pub(crate) fn attend<R>(&self, time: Duration, stand: impl FnOnce() -> R) -> Option<(T, R)> {
        let mut state = self.0.state.lock();
        self.0.changed.wait_while_for(&mut state, |state| !matches!(state, State::Called(_)), time);
        let said = match std::mem::replace(&mut *state, State::Heard) {
            State::Called(said) => said,
            other => {
                *state = other;
                return None;
            }
        };
        drop(state);
        let stands = stand();
        self.0.set(State::Away);
        Some((said, stands))
    }

    /// It comes again when it is called.
    pub(crate) fn is_free(&self) {
        self.0.set(State::Free);
    }
}

impl<T> Drop for Attendant<'_, T> {
    fn drop(&mut self) {
        self.0.set(State::Gone);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

    /// Goal: who calls goes on once the other stands, and at once while it writes, or is gone, in a panic too.
    #[test]
    fn who_calls_goes_on_once_the_other_stands() {
        let (meeting, at) = (Meeting::<u32>::default(), AtomicU32::new(0));
        meeting.call(1);
        std::thread::scope(|scope| {
            let attendant = meeting.attendant();
            scope.spawn(|| {
                at.store(1, SeqCst);
                meeting.call(2);
                assert_eq!(at.swap(3, SeqCst), 2, "the other stands");
                // It is writing.
                meeting.call(3);
            });
            let stood =
                std::iter::repeat_with(|| attendant.attend(Duration::from_millis(10), || at.swap(2, SeqCst)));
            assert_eq!(stood.flatten().next(), Some((2, 1)), "the other waits");
            attendant.is_free();
            assert!(meeting.wait(), "it comes again");
        });
        meeting.call(4);
        std::thread::scope(|scope| {
            let attendant = meeting.attendant();
            scope.spawn(|| meeting.call(5));
            let panics = AssertUnwindSafe(|| {
                let attendant = attendant;
                while attendant.attend::<()>(Duration::from_millis(10), || panic!("for the test")).is_none() {
                }
            });
            assert!(catch_unwind(panics).is_err());
            assert!(!meeting.wait(), "nobody comes any more");
        });
    }
}
