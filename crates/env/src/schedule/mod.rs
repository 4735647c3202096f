//! Threads that run one at a time, in an order that a seed decides.
//!
//! In a simulation every thread is a thread of the system, but only the one that holds the *baton* runs.
//! At each *point* the next holder is drawn from the seed, so the same seed takes the same way through
//! the same code:
//!
//! ```text
//! caller   ==claim==|                    |==settle==|
//! worker            |==lock==|           |          |=waits for caller...
//! flusher                    |==sync=====|                              -> time
//!                   ^ points: the baton goes on, or stays
//! ```
//!
//! Code that may run in a simulation follows three rules; outside of one, what it calls here does what
//! real threads do, and a [`point`] costs one load of a number that never changes.
//!
//! - It blocks only by [`wait_until`], [`give_way`], [`JoinHandle::join`] and the locks of
//!   [`crate::sync`]. A waiting thread leaves its question with the scheduler, so a deadlock is found at
//!   once: nobody has the baton to want.
//! - Another lock may be used where no point is passed while it is held: then nobody finds it taken.
//! - Nothing it decides depends on addresses, real time, or what other simulations do.
//!
//! A deadlock, threads that only give way to each other, and a panic on any thread end the simulation with
//! a panic of [`simulate`]. The other threads then stay where they are for good, with all that they own:
//! they may be halfway through anything.

mod baton;

pub use baton::Trace;

use baton::{Baton, Standing};
use crossbeam_utils::Backoff;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// Simulations that run in this process now.
static SIMULATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static ROLE: RefCell<Option<Role>> = const { RefCell::new(None) };
}

/// Which thread of which simulation this is.
#[derive(Clone)]
struct Role {
    baton: Arc<Baton>,
    number: usize,
}

fn role() -> Option<Role> {
    if SIMULATIONS.load(Relaxed) == 0 {
        return None;
    }
    let role = ROLE.try_with(|role| role.borrow().clone()).ok().flatten()?;
    if std::thread::panicking() {
        // What it drops on its way out may wait for threads that will not run any more.
        role.baton.fail(Box::new("a thread of the simulation panicked"));
        baton::stand_still();
    }
    Some(role)
}

/// Whether the calling thread is part of a simulation.
#[inline]
#[must_use]
pub fn is_simulated() -> bool {
    SIMULATIONS.load(Relaxed) != 0 && role().is_some()
}

/// A number for the calling thread, small and its own as long as there are not many: the simulation's number of it, or
/// one that counts the threads of this process that have asked.
#[inline]
#[must_use]
pub fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Relaxed);
    }
    match role() {
        Some(role) => role.number,
        None => NUMBER.with(|number| *number),
    }
}

/// A place where a simulation may let another thread run.
#[inline]
pub fn point(place: &'static str) {
    if SIMULATIONS.load(Relaxed) != 0 {
        simulated_point(place);
    }
}

#[cold]
fn simulated_point(place: &'static str) {
    let Some(role) = role() else { return };
    if let Some(mut interruption) = role.baton.begin_interruption() {
        ROLE.take();
        interruption();
        ROLE.set(Some(role.clone()));
        role.baton.end_interruption(interruption);
    }
    role.baton.pass(role.number, Standing::Ready, place);
}

/// Waits until a condition holds that another thread brings about, soon.
///
/// The condition must not pass a point, nor change anything.
pub fn wait_until(place: &'static str, condition: impl Fn() -> bool + Sync) {
    if let Some(role) = role() {
        role.baton.wait(role.number, place, &condition);
        return;
    }
    let backoff = Backoff::new();
    while !condition() {
        backoff.snooze();
    }
}

/// Lets other threads run, because there is nothing to do now.
pub fn give_way(place: &'static str) {
    match role() {
        Some(role) => role.baton.pass(role.number, Standing::Resting, place),
        None => std::thread::yield_now(),
    }
}

/// At about one point in `one_in`, runs `interruption` while every thread of this simulation stands still:
/// for looking at everything from outside. It is not part of the simulation.
///
/// # Panics
/// Outside of a simulation.
pub fn interrupt(one_in: u64, interruption: impl FnMut() + Send + 'static) {
    let role = role().expect("only a simulation can be interrupted");
    role.baton.interrupt(Some((one_in, Box::new(interruption))));
}

/// Ends what [`interrupt`] began.
pub fn interrupt_no_more() {
    if let Some(role) = role() {
        role.baton.interrupt(None);
    }
}

/// How the simulation has gone so far; `None` outside of one.
#[must_use]
pub fn trace() -> Option<Trace> {
    role().map(|role| role.baton.trace())
}

/// Runs `story` as the first thread of a simulation, and gives what it returns once it and all threads
/// that it [spawned](spawn) have ended.
///
/// # Panics
/// If any thread panics, or none can go on.
pub fn simulate<R: Send + 'static>(seed: u64, story: impl FnOnce() -> R + Send + 'static) -> (R, Trace) {
    let _running = Running::begin();
    let baton = Arc::new(Baton::new(seed));
    let result = Arc::new(std::sync::Mutex::new(None));
    let slot = result.clone();
    let told = move || *slot.lock().expect("one thread stores") = Some(story());
    let first = start(&baton, "story".into(), told).expect("the system gives us a thread");
    baton.begin();
    let trace = baton.await_end();
    let _ = first.thread.join();
    let result = result.lock().expect("stored before").take();
    (result.expect("the story has ended"), trace)
}

struct Running;

impl Running {
    fn begin() -> Running {
        SIMULATIONS.fetch_add(1, Relaxed);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        SIMULATIONS.fetch_sub(1, Relaxed);
    }
}

/// A thread that was [spawned](spawn).
#[derive(Debug)]
pub struct JoinHandle {
    thread: std::thread::JoinHandle<()>,
    has_ended: Arc<AtomicBool>,
}

impl JoinHandle {
    /// Waits until the thread has ended.
    ///
    /// # Errors
    /// What it panicked with.
    pub fn join(self) -> std::thread::Result<()> {
        if is_simulated() {
            wait_until("join", || self.has_ended.load(Acquire));
        }
        self.thread.join()
    }
}

/// Starts a thread: in a simulation, one of the simulation.
///
/// # Errors
/// If the system gives us none.
pub fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle> {
    match role() {
        Some(role) => start(&role.baton, name.into(), work),
        None => Ok(JoinHandle {
            thread: std::thread::Builder::new().name(name.into()).spawn(work)?,
            has_ended: Arc::default(),
        }),
    }
}

/// Starts a thread of a simulation; it runs when it is given the baton.
fn start(baton: &Arc<Baton>, name: String, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle> {
    let has_ended = Arc::new(AtomicBool::new(false));
    let number = baton.enrol(&name);
    let (its_baton, ended) = (baton.clone(), has_ended.clone());
    let thread = std::thread::Builder::new().name(name).spawn(move || {
        its_baton.await_turn(number);
        ROLE.set(Some(Role { baton: its_baton.clone(), number }));
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // What thread-locals do when they are dropped is not part of the simulation.
        ROLE.take();
        match done {
            Ok(()) => {
                ended.store(true, Release);
                its_baton.leave(number);
            }
            Err(panic) => its_baton.fail(panic),
        }
    })?;
    baton.arrive(number, thread.thread().clone());
    Ok(JoinHandle { thread, has_ended })
}
