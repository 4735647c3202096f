//! Who runs next, and who cannot.

use crate::Random;
use std::any::Any;
use std::fmt::Write;
use std::sync::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Release},
};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Nobody holds the baton.
const NOBODY: usize = usize::MAX;

/// So often in a row threads may give way to each other with nothing done in between.
const IDLE_MAX: u32 = 10_000;

/// So many points are taken for a simulation that does not end.
const POINTS_MAX: u64 = 50_000_000;

/// How a simulation has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Points passed.
    pub points: u64,
    /// Hash over every choice of a thread, and where it stood.
    pub digest: u64,
}

/// What a thread without the baton wants.
pub(super) enum Standing {
    /// To go on.
    Ready,
    /// To go on once this holds.
    Waiting(Question),
    /// To look again once another thread has moved.
    Resting,
    /// Nothing any more.
    Ended,
}

/// The condition that a waiting thread leaves with the scheduler.
pub(super) struct Question(*const (dyn Fn() -> bool + Sync));

// SAFETY: the condition can be asked by any thread, and stays where it is: whoever left it stands still
// until it is given the baton, which takes the question away.
unsafe impl Send for Question {}

impl Question {
    fn holds(&self) -> bool {
        // SAFETY: whoever left it stands still until the question is taken away, and it stays where it is.
        unsafe { (*self.0)() }
    }
}

type Interruption = Box<dyn FnMut() + Send>;

struct Thread {
    name: String,
    standing: Standing,
    /// Where it passed the baton on.
    place: &'static str,
    /// Moves made when it began to rest.
    rests_since: u64,
    system: Option<std::thread::Thread>,
}

/// Why a simulation is over.
enum End {
    Done,
    Stuck(String),
    Panicked(Box<dyn Any + Send>),
}

struct State {
    random: Random,
    /// Draws interruptions, which must not change the schedule.
    other_random: Random,
    threads: Vec<Thread>,
    trace: Trace,
    /// At about one point in so many the baton goes on.
    stay: u64,
    /// Points that were not mere rests.
    moves: u64,
    idle: u32,
    interruption: Option<(u64, Interruption)>,
    end: Option<End>,
}

/// The right to run, and the order in which it goes round.
pub(super) struct Baton {
    holder: AtomicUsize,
    state: Mutex<State>,
    ended: Condvar,
}

impl Baton {
    pub fn new(seed: u64) -> Baton {
        let mut random = Random::seeded(seed);
        // Some schedules change threads everywhere, others let each run for long.
        let stay = [1, 2, 4, 16][random.index(4)];
        let state = State {
            other_random: random.split(),
            random,
            threads: Vec::new(),
            trace: Trace::default(),
            stay,
            moves: 0,
            idle: 0,
            interruption: None,
            end: None,
        };
        Baton { holder: AtomicUsize::new(NOBODY), state: Mutex::new(state), ended: Condvar::new() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a thread that is about to be started.
    pub fn enrol(&self, name: &str) -> usize {
        let threads = &mut self.state().threads;
        threads.push(Thread {
            name: name.into(),
            standing: Standing::Ready,
            place: "start",
            rests_since: 0,
            system: None,
        });
        threads.len() - 1
    }

    /// Says which thread of the system it is.
    pub fn arrive(&self, number: usize, system: std::thread::Thread) {
        self.state().threads[number].system = Some(system);
    }

    /// Gives the baton to the first thread.
    pub fn begin(&self) {
        let system = self.state().threads[0].system.clone();
        self.hand_to(0, system);
    }

    /// Passes the baton on, and returns when this thread has it again.
    pub fn pass(&self, me: usize, standing: Standing, place: &'static str) {
        let next = {
            let mut state = self.state();
            if matches!(standing, Standing::Resting) {
                state.threads[me].rests_since = state.moves;
            } else {
                state.moves += 1;
            }
            let thread = &mut state.threads[me];
            (thread.standing, thread.place) = (standing, place);
            self.choose(&mut state, me)
        };
        match next {
            Some((next, _)) if next == me => {}
            Some((next, system)) => {
                self.hand_to(next, system);
                self.await_turn(me);
            }
            None => stand_still(),
        }
    }

    /// Passes the baton on until the condition holds.
    pub fn wait(&self, me: usize, place: &'static str, condition: &(dyn Fn() -> bool + Sync)) {
        let condition = std::ptr::from_ref(condition);
        // SAFETY: only the lifetime changes; see `Question`.
        let condition: *const (dyn Fn() -> bool + Sync + 'static) = unsafe { std::mem::transmute(condition) };
        self.pass(me, Standing::Waiting(Question(condition)), place);
    }

    /// Passes the baton on for good.
    pub fn leave(&self, me: usize) {
        let next = {
            let mut state = self.state();
            state.moves += 1;
            state.threads[me].standing = Standing::Ended;
            if state.threads.iter().all(|thread| matches!(thread.standing, Standing::Ended)) {
                self.finish(&mut state, End::Done);
                return;
            }
            self.choose(&mut state, me)
        };
        if let Some((next, system)) = next {
            self.hand_to(next, system);
        }
    }

    /// Ends the simulation with a panic.
    pub fn fail(&self, panic: Box<dyn Any + Send>) {
        self.finish(&mut self.state(), End::Panicked(panic));
    }

    fn finish(&self, state: &mut State, end: End) {
        state.end.get_or_insert(end);
        self.ended.notify_all();
    }

    /// Waits, outside of the simulation, until it is over.
    pub fn await_end(&self) -> Trace {
        let mut state = self.state();
        loop {
            match state.end.take() {
                Some(End::Done) => return state.trace,
                Some(End::Stuck(report)) => {
                    drop(state);
                    panic!("{report}");
                }
                Some(End::Panicked(panic)) => {
                    drop(state);
                    std::panic::resume_unwind(panic);
                }
                None => state = self.ended.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn hand_to(&self, next: usize, system: Option<std::thread::Thread>) {
        self.holder.store(next, Release);
        system.expect("a thread arrives before it can be chosen").unpark();
    }

    /// Waits for the baton.
    pub fn await_turn(&self, me: usize) {
        while self.holder.load(Acquire) != me {
            std::thread::park();
        }
    }

    /// Chooses who is next; `None` if the simulation is over, because nobody can go on.
    fn choose(&self, state: &mut State, me: usize) -> Option<(usize, Option<std::thread::Thread>)> {
        match state.choose(me) {
            Ok(next) => Some((next, state.threads[next].system.clone())),
            Err(what) => {
                let report = state.report(what);
                self.finish(state, End::Stuck(report));
                None
            }
        }
    }

    pub fn trace(&self) -> Trace {
        self.state().trace
    }

    pub fn interrupt(&self, interruption: Option<(u64, Interruption)>) {
        self.state().interruption = interruption;
    }

    /// What is to run at this point, if anything.
    pub fn begin_interruption(&self) -> Option<Interruption> {
        let mut state = self.state();
        let State { interruption, other_random, .. } = &mut *state;
        let (one_in, interruption) = interruption.as_mut()?;
        other_random.chance(1, *one_in).then(|| std::mem::replace(interruption, Box::new(|| {})))
    }

    /// Puts it back for another time.
    pub fn end_interruption(&self, ended: Interruption) {
        if let Some((_, interruption)) = &mut self.state().interruption {
            *interruption = ended;
        }
    }
}

impl State {
    fn choose(&mut self, me: usize) -> Result<usize, &'static str> {
        self.trace.points += 1;
        if self.trace.points > POINTS_MAX {
            return Err("no end is in sight");
        }
        let stays = matches!(self.threads[me].standing, Standing::Ready) && !self.random.chance(1, self.stay);
        let next = if stays { me } else { self.draw()? };
        let thread = &mut self.threads[next];
        if !matches!(thread.standing, Standing::Resting) {
            self.idle = 0;
        }
        thread.standing = Standing::Ready;
        let choice = thread.place.bytes().fold(next as u64, |hash, byte| mix(hash, byte.into()));
        self.trace.digest = mix(self.trace.digest, choice);
        Ok(next)
    }

    fn draw(&mut self) -> Result<usize, &'static str> {
        let (mut ready, mut rested, mut resting) = (Vec::new(), Vec::new(), Vec::new());
        for (number, thread) in self.threads.iter().enumerate() {
            match &thread.standing {
                Standing::Ready => ready.push(number),
                Standing::Waiting(question) if question.holds() => ready.push(number),
                Standing::Resting if thread.rests_since != self.moves => rested.push(number),
                Standing::Resting => resting.push(number),
                Standing::Waiting(_) | Standing::Ended => {}
            }
        }
        // Whoever rests looks in vain most of the time.
        let among = if !rested.is_empty() && (ready.is_empty() || self.random.chance(1, 4)) {
            rested
        } else if !ready.is_empty() {
            ready
        } else {
            self.idle += 1;
            resting
        };
        match among.len() {
            0 => Err("deadlock: every thread waits"),
            _ if self.idle > IDLE_MAX => Err("every thread waits, or looks for work in vain"),
            count => Ok(among[self.random.index(count)]),
        }
    }

    fn report(&self, what: &str) -> String {
        let mut report = format!("{what}, after {} points:\n", self.trace.points);
        for thread in &self.threads {
            let standing = match thread.standing {
                Standing::Ready => "is ready",
                Standing::Waiting(_) => "waits",
                Standing::Resting => "rests",
                Standing::Ended => "has ended",
            };
            writeln!(report, "  {} {standing} at {:?}", thread.name, thread.place)
                .expect("writing to a string");
        }
        report
    }
}

fn mix(hash: u64, value: u64) -> u64 {
    let product = u128::from(hash ^ 0x9e37_79b9_7f4a_7c15) * u128::from(value ^ 0xd6e8_feb8_6659_fd93);
    product as u64 ^ (product >> 64) as u64
}

/// For a thread of a simulation that is over.
pub(super) fn stand_still() -> ! {
    loop {
        std::thread::park();
    }
}
