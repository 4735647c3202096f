//! Replaying the log when a database is opened: by the engine that it is opened with, on one thread, or by dependency
//! graphs on several (LADS, section 4.2.4; `docs/decisions/parallel-recovery.md`).
//!
//! ```text
//! opening thread   read, check, copy | ... | helps while the queue is full | read, check, copy | end
//!                           stretch \                                                 stretch \
//! leader                             graphs: build, execute ................................... graphs
//! helpers                            build, execute ...
//! ```
//!
//! A *stretch* is some batches of the log with some thousand calls. A log that is shorter is replayed by the chosen
//! engine: threads would gain nothing, and the lazy one need not do yet what it can defer. Otherwise a graph engine
//! replays it on the foundation of the database and hands its state over in the end, as a checkpoint would.
//!
//! The opening thread sees the log's damage, and the leader what its entries have wrong, some stretches later. Whatever
//! is told in the end is what stands first in the log, and nothing of the log is changed before.

use crate::options::EngineKind;
use fabius_engine::checkpoint::{State, hand_over};
use fabius_engine::{Engine, Foundation};
use fabius_engine_graph::{GraphEngine, Logged, Settings as GraphSettings};
use fabius_env::schedule;
use fabius_log::Frame;
use fabius_value::{Error, Result, Seq, SqlState};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Entries of a stretch, about. Few in debug builds, so that tests come to a second one.
const STRETCH_ENTRIES: usize = if cfg!(debug_assertions) { 64 } else { 1 << 14 };
/// Bytes of a stretch, about.
const STRETCH_BYTES: usize = 4 << 20;
/// Stretches that wait for the leader, at most.
const WAITING_MAX: usize = 2;
/// How often a thread looks for work without sleeping.
const LOOKS: u32 = 100;
/// How long it sleeps then.
const NAP: Duration = Duration::from_micros(50);

/// Who replays the log.
pub(crate) struct Recovery {
    /// The engine that the database is opened with,
    chosen: Arc<dyn Engine>,
    /// and which one it is.
    kind: EngineKind,
    foundation: Arc<Foundation>,
    /// The chosen engine once more, if it is the one that builds graphs.
    graph: Option<Arc<GraphEngine>>,
    threads: usize,
    /// What has been read and handed to nobody.
    stretch: Stretch,
    way: Way,
}

/// Who replays.
enum Way {
    /// The chosen engine, batch by batch.
    Alone,
    /// It depends on how long the log is; meanwhile, with what to begin.
    Undecided(Option<State>),
    /// Several threads.
    Together(Crew),
}

/// Batches that follow each other in the log.
#[derive(Default)]
struct Stretch {
    bytes: Vec<u8>,
    /// The first seq of each, its entries, and its bytes.
    batches: Vec<(Seq, u32, Range<usize>)>,
    entries: usize,
}

impl Stretch {
    fn push(&mut self, frame: &Frame<'_>) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(frame.payload);
        self.batches.push((Seq(frame.first_seq), frame.entry_count, begin..self.bytes.len()));
        self.entries += frame.entry_count as usize;
    }

    fn is_full(&self) -> bool {
        self.entries >= STRETCH_ENTRIES || self.bytes.len() >= STRETCH_BYTES
    }

    fn batches(&self) -> impl Iterator<Item = Logged<'_>> {
        self.batches.iter().map(|(first_seq, count, bytes)| Logged {
            first_seq: *first_seq,
            count: *count,
            payload: &self.bytes[bytes.clone()],
        })
    }
}

impl Recovery {
    /// A recovery that begins with the state of a checkpoint, if there is one, and ends with that of the log in the
    /// chosen engine, which is on this foundation; `graph` is the chosen engine once more, if it is that one.
    pub(crate) fn begin(
        (kind, chosen): (EngineKind, Arc<dyn Engine>),
        graph: Option<Arc<GraphEngine>>,
        foundation: Arc<Foundation>,
        state: Option<State>,
        threads: usize,
    ) -> Recovery {
        // Threads of a simulation take turns, of which these would not know.
        let way = if threads > 1 && !schedule::is_simulated() {
            Way::Undecided(state)
        } else {
            state.into_iter().for_each(|state| chosen.restore(state));
            Way::Alone
        };
        Recovery { chosen, kind, foundation, graph, threads, stretch: Stretch::default(), way }
    }

    /// Takes the next batch of the log.
    ///
    /// # Errors
    /// What is wrong with it, or with one before.
    pub(crate) fn take(&mut self, frame: &Frame<'_>) -> Result<()> {
        if let Way::Alone = self.way {
            let logged =
                Logged { first_seq: Seq(frame.first_seq), count: frame.entry_count, payload: frame.payload };
            return take(&*self.chosen, &self.foundation, logged);
        }
        self.stretch.push(frame);
        if self.stretch.is_full() { self.hand_on() } else { Ok(()) }
    }

    /// Hands on what has been read to those who replay.
    fn hand_on(&mut self) -> Result<()> {
        if let Way::Undecided(state) = &mut self.way {
            let state = state.take();
            let settings = GraphSettings { workers_max: self.threads, ..GraphSettings::default() };
            let new = || Arc::new(GraphEngine::new(self.foundation.clone(), settings));
            let engine = self.graph.clone().unwrap_or_else(new);
            state.into_iter().for_each(|state| engine.restore(state));
            self.way = Way::Together(Crew::start(engine, self.foundation.clone(), self.threads));
        }
        let Way::Together(crew) = &mut self.way else { unreachable!("nothing is gathered for one thread") };
        crew.hand_on(std::mem::take(&mut self.stretch))
    }

    /// Ends it, once there is no more of the log: the chosen engine has the state. Nothing happens the second time.
    ///
    /// # Errors
    /// What is wrong with anything that was taken.
    pub(crate) fn end(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.way, Way::Alone) {
            Way::Alone => Ok(()),
            Way::Undecided(state) => {
                state.into_iter().for_each(|state| self.chosen.restore(state));
                let stretch = std::mem::take(&mut self.stretch);
                stretch.batches().try_for_each(|logged| take(&*self.chosen, &self.foundation, logged))
            }
            Way::Together(mut crew) => {
                crew.hand_on(std::mem::take(&mut self.stretch))?;
                let engine = crew.end()?;
                // Somebody may have panicked who helped when there was nothing left for the leader.
                if let Some(failure) = self.foundation.failure() {
                    return Err(failure.clone());
                }
                if self.graph.is_none() {
                    // Of all others only the lazy engine's proofs rest upon what is in the rows.
                    let with_ranges = self.kind == EngineKind::Lazy;
                    let state = self.foundation.attempt(|| hand_over(&*engine, with_ranges))?;
                    drop(engine);
                    self.chosen.restore(state);
                }
                Ok(())
            }
        }
    }
}

/// Takes a batch on this thread.
fn take(engine: &dyn Engine, foundation: &Foundation, logged: Logged<'_>) -> Result<()> {
    let Logged { first_seq, count, payload } = logged;
    foundation.attempt(|| engine.take(first_seq, count, payload)).map(drop)
}

/// Threads that replay together with the one that opens the database.
struct Crew {
    engine: Arc<GraphEngine>,
    /// To the leader.
    stretches: Option<SyncSender<Stretch>>,
    leader: Option<JoinHandle<Result<()>>>,
    helpers: Vec<JoinHandle<()>>,
    has_ended: Arc<AtomicBool>,
}

impl Crew {
    /// Starts so many threads, counting the one that opens the database.
    fn start(engine: Arc<GraphEngine>, foundation: Arc<Foundation>, threads: usize) -> Crew {
        let (stretches, waiting) = sync_channel(WAITING_MAX);
        let stretches = Some(stretches);
        let mut crew =
            Crew { engine, stretches, leader: None, helpers: Vec::new(), has_ended: Arc::default() };
        let leading = crew.engine.clone();
        crew.leader = Some(spawn(0, move || lead(&leading, &foundation, &waiting)));
        for number in 1..threads.saturating_sub(1) {
            let (engine, has_ended) = (crew.engine.clone(), crew.has_ended.clone());
            let lend = move || {
                let mut looks = 0;
                while !has_ended.load(Acquire) {
                    look_for_work(&engine, &mut looks);
                }
            };
            crew.helpers.push(spawn(number, lend));
        }
        crew
    }

    /// Hands a stretch to the leader, and helps while too many wait.
    ///
    /// # Errors
    /// Why the leader has given up.
    fn hand_on(&mut self, mut stretch: Stretch) -> Result<()> {
        let mut looks = 0;
        while let Some(stretches) = &self.stretches {
            match stretches.try_send(stretch) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Full(back)) => {
                    stretch = back;
                    look_for_work(&self.engine, &mut looks);
                }
                Err(TrySendError::Disconnected(_)) => break,
            }
        }
        self.stop()
    }

    /// Waits until everything that was handed on has been replayed; gives the engine that has.
    ///
    /// # Errors
    /// Why that was not possible.
    fn end(mut self) -> Result<Arc<GraphEngine>> {
        self.stretches = None;
        let mut looks = 0;
        while self.leader.as_ref().is_some_and(|leader| !leader.is_finished()) {
            look_for_work(&self.engine, &mut looks);
        }
        self.stop()?;
        Ok(self.engine.clone())
    }

    /// Ends all threads; gives why the leader has given up, if it has.
    fn stop(&mut self) -> Result<()> {
        self.stretches = None;
        let led = self.leader.take().map_or(Ok(Ok(())), JoinHandle::join);
        self.has_ended.store(true, Release);
        // What helpers do is contained, and the leader is told of it.
        self.helpers.drain(..).for_each(|helper| _ = helper.join());
        led.unwrap_or_else(|_| {
            Err(Error::new(SqlState::INTERNAL, "the thread that replays the log has panicked"))
        })
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        // Whoever wants to know has ended it.
        let _ = self.stop();
    }
}

/// Replays stretches until there are no more.
fn lead(engine: &GraphEngine, foundation: &Foundation, stretches: &Receiver<Stretch>) -> Result<()> {
    stretches.iter().try_for_each(|stretch| foundation.attempt(|| engine.replay(stretch.batches())))
}

/// Does some work if there is any; sleeps if there has been none for a while.
fn look_for_work(engine: &GraphEngine, looks: &mut u32) {
    if engine.help() {
        *looks = 0;
        return;
    }
    *looks += 1;
    if *looks < LOOKS { std::thread::yield_now() } else { std::thread::sleep(NAP) }
}

fn spawn<R: Send + 'static>(number: usize, work: impl FnOnce() -> R + Send + 'static) -> JoinHandle<R> {
    let thread = std::thread::Builder::new().name(format!("fabius-recovery-{number}")).spawn(work);
    thread.expect("the system gives us a thread")
}
