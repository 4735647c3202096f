//! The threads of one network: told to stop all at once, and waited for.

use crate::sync::{Condvar, Mutex};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Counts the threads that run.
#[derive(Debug, Default)]
pub(super) struct Threads {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    running: usize,
    is_stopping: bool,
}

impl Threads {
    /// Begins a thread. What `work` owns is dropped before the thread counts as ended.
    pub(super) fn spawn(
        self: &Arc<Self>,
        name: String,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<()> {
        self.state.lock().running += 1;
        let running = Running { threads: Arc::clone(self) };
        let thread = std::thread::Builder::new().name(name);
        thread.spawn(move || {
            let _running = running;
            work();
        })?;
        Ok(())
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().is_stopping
    }

    /// Waits this long, or until the threads have to stop.
    pub(super) fn pause(&self, time: Duration) {
        self.wait(time, |state| state.is_stopping);
    }

    /// Tells all threads to stop.
    pub(super) fn stop(&self) {
        self.state.lock().is_stopping = true;
        self.changed.notify_all();
    }

    /// Waits until all threads have ended, but no longer than this.
    pub(super) fn wait_for_end(&self, at_most: Duration) {
        self.wait(at_most, |state| state.running == 0);
    }

    fn wait(&self, at_most: Duration, condition: impl Fn(&State) -> bool) {
        let began = Instant::now();
        let mut state = self.state.lock();
        while !condition(&state) {
            let left = at_most.saturating_sub(began.elapsed());
            if left.is_zero() {
                return;
            }
            self.changed.wait_for(&mut state, left);
        }
    }
}

/// A thread that runs, until this is dropped.
struct Running {
    threads: Arc<Threads>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.threads.state.lock().running -= 1;
        self.threads.changed.notify_all();
    }
}
