//! Planning: where a statement is read, bound and optimised, and what that may take.
//!
//! ```text
//! short text ---> here, in a bounded number of steps ---> plan
//!                   | not enough
//!                   v
//! long text ----> a thread of its own, whose stack is large ---> plan
//!                   ^ heed: is anybody still waiting? is there room?
//!                   |
//!                 the session waits, and is answered at once when its statement is given up
//! ```
//!
//! Statements are trees, and are gone through, copied and dropped by recursion, some of it in libraries. How deep
//! they may be is bounded (`crates/sql-syntax/src/dialect.rs`, `crates/sql-query/src/extent.rs`), and here is a stack
//! that is large enough for it. What goes through a tree calls [`heed`] now and then: it ends the work once nobody
//! waits for it, or when it has taken more memory than the session may hold. So that no such place is forgotten for
//! ever, the session does not wait for work that was given up.

use fabius::{Allowance, Held, Patience};
use fabius_env::memory::taken_by_thread;
use fabius_value::{Error, Result, SqlState};
use std::cell::RefCell;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::task::Poll;
use std::thread;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::block_in_place;

/// A text of so many bytes is short: whatever it says, reading it takes a few milliseconds.
pub const SHORT_BYTES: usize = 4 << 10;

/// Steps that are done here before the work goes to a thread of its own: some milliseconds.
const STEPS: u32 = 20_000;

/// Stack of a thread that plans. What is not used takes no memory.
const STACK_BYTES: usize = 1 << 30;

/// Steps between two questions whether anybody still waits.
const STEPS_BETWEEN: u32 = 32;

/// Growth of memory that is not looked at.
const UNCOUNTED_BYTES: usize = 256 << 10;

/// Statements that are planned on threads of their own at a time.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| {
    let threads = thread::available_parallelism().map_or(2, usize::from);
    Arc::new(Semaphore::new(threads.max(2)))
});

thread_local! {
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// What the thread is working on, and within which bounds.
enum Work {
    /// Something that should be done in so many steps.
    Brief { left: u32 },
    /// Something that somebody waits for.
    Long(Bounds),
}

/// Whom long work is for.
struct Bounds {
    patience: Arc<dyn Patience>,
    /// What the work has taken, as far as it has been counted.
    held: Held,
    /// What the thread had taken when it began with this, less what it had taken for it before.
    base: isize,
    steps: u32,
}

impl Bounds {
    fn new(patience: Arc<dyn Patience>, memory: &Arc<Allowance>) -> Bounds {
        Bounds { patience, held: Held::new(Some(memory.clone())), base: taken_by_thread(), steps: 0 }
    }

    /// These bounds when the work goes on, maybe on another thread.
    fn resumed(self) -> Bounds {
        Bounds { base: taken_by_thread() - self.held.bytes() as isize, ..self }
    }

    /// Bytes that the work has taken.
    fn taken(&self) -> usize {
        usize::try_from(taken_by_thread() - self.base).unwrap_or(0)
    }

    fn step(&mut self) -> Result<()> {
        let taken = self.taken();
        match taken.checked_sub(self.held.bytes()) {
            Some(more) if more > UNCOUNTED_BYTES => self.held.take(more)?,
            Some(_) => {}
            None => self.held.shrink_to(taken),
        }
        self.steps = self.steps.wrapping_add(1);
        match self.steps % STEPS_BETWEEN {
            1 => self.patience.over().map_or(Ok(()), Err),
            _ => Ok(()),
        }
    }
}

/// Is called by whatever goes through parts of a statement, once for each.
///
/// # Errors
/// Why the work is to end: nobody waits for it any more, there is no room for it, or it is more than was thought. It
/// is to be handed on as it is.
pub fn heed() -> Result<()> {
    WORK.with_borrow_mut(|work| match work {
        None => Ok(()),
        Some(Work::Brief { left }) => {
            *left = left.saturating_sub(1);
            if *left == 0 { Err(too_much()) } else { Ok(()) }
        }
        Some(Work::Long(bounds)) => bounds.step(),
    })
}

/// Is called before something is begun that takes so many bytes and does not heed by itself.
///
/// # Errors
/// As [`heed`].
pub fn heed_bytes(bytes: usize) -> Result<()> {
    if bytes <= SHORT_BYTES {
        return heed();
    }
    WORK.with_borrow_mut(|work| match work {
        None => Ok(()),
        Some(Work::Brief { left }) => {
            *left = 0;
            Err(too_much())
        }
        Some(Work::Long(bounds)) => {
            bounds.step()?;
            match bounds.held.left() {
                left if left < bytes => bounds.held.take(bytes),
                _ => Ok(()),
            }
        }
    })
}

/// Seen by nobody: [`briefly`] begins anew.
fn too_much() -> Error {
    Error::new(SqlState::PROGRAM_LIMIT, "the statement is too complex")
}

/// Has the thread work on something else while this lives.
struct Working(Option<Work>);

impl Working {
    fn on(work: Work) -> Working {
        Working(WORK.replace(Some(work)))
    }

    /// What the thread worked on.
    fn end(mut self) -> Option<Work> {
        let before = self.0.take();
        let done = WORK.replace(before);
        std::mem::forget(self);
        done
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        WORK.set(self.0.take());
    }
}

/// Does something that takes a few steps. `None` if it takes more: then nothing has come of it.
pub fn briefly<T>(work: impl FnOnce() -> Result<T>) -> Option<Result<T>> {
    let working = Working::on(Work::Brief { left: STEPS });
    let done = work();
    match working.end() {
        Some(Work::Brief { left: 0 }) => None,
        _ => Some(done),
    }
}

/// Whoever waited is gone.
#[derive(Default)]
struct Gone(AtomicBool);

impl Patience for Gone {
    fn over(&self) -> Option<Error> {
        let is_over = self.0.load(Relaxed);
        is_over.then(|| Error::new(SqlState::CANCELED, "canceling statement due to user request"))
    }
}

/// Says so when it is dropped.
struct Waiting(Arc<Gone>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.0.store(true, Relaxed);
    }
}

/// Does something on a thread of its own. If the future is dropped before, the work ends when it heeds that.
///
/// # Errors
/// The work's own; `53200` if it takes more memory than there is; `53000` if there is no thread for it.
///
/// # Panics
/// If the work does.
pub async fn apart<T: Send + 'static>(
    memory: &Arc<Allowance>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    let place = PLACES.clone().acquire_owned().await;
    let waiting = Waiting(Arc::default());
    let (patience, memory) = (waiting.0.clone(), memory.clone());
    let (give, done) = oneshot::channel();
    let thread = move || {
        let working = Working::on(Work::Long(Bounds::new(patience, &memory)));
        let done = catch_unwind(AssertUnwindSafe(work));
        drop(working);
        // What nobody takes is dropped here, where there is a stack for it.
        drop(give.send(done));
        drop(place);
    };
    let begun = thread::Builder::new().name("fabius-planner".into()).stack_size(STACK_BYTES).spawn(thread);
    begun.map_err(|error| no_thread(&error.to_string()))?;
    match done.await {
        Ok(Ok(done)) => done,
        Ok(Err(panic)) => resume_unwind(panic),
        Err(_) => Err(no_thread("it has ended")),
    }
}

/// Reads a text by a rule, on a thread of its own if that may take long.
///
/// # Errors
/// As [`apart`].
pub async fn read<T: Send + 'static>(
    memory: &Arc<Allowance>,
    text: &str,
    rule: fn(&str) -> Result<T>,
) -> Result<T> {
    if text.len() <= SHORT_BYTES
        && let Some(read) = briefly(|| rule(text))
    {
        return read;
    }
    let text = text.to_string();
    apart(memory, move || rule(&text)).await
}

fn no_thread(detail: &str) -> Error {
    Error::new(SqlState(*b"53000"), "no thread can be had for planning").with_detail(detail)
}

/// Does something of the session's own that may be long: it heeds what its patience says. A long text's work lets the
/// thread's other tasks go to another one.
pub async fn here<T>(
    patience: Arc<dyn Patience>,
    memory: &Arc<Allowance>,
    is_long: bool,
    work: impl Future<Output = T>,
) -> T {
    let mut bounds = Some(Bounds::new(patience, memory));
    let mut work = pin!(work);
    poll_fn(|context| {
        let Some(bounds_now) = bounds.take() else { return Poll::Pending };
        let working = Working::on(Work::Long(bounds_now.resumed()));
        let polled = beside_others(is_long, || work.as_mut().poll(context));
        if let Some(Work::Long(left)) = working.end() {
            bounds = Some(left);
        }
        polled
    })
    .await
}

/// Runs something. If that may take long, this thread's other tasks go to another one.
fn beside_others<T>(is_long: bool, run: impl FnOnce() -> T) -> T {
    let runtime = Handle::try_current().map(|handle| handle.runtime_flavor());
    match runtime {
        Ok(RuntimeFlavor::MultiThread) if is_long => block_in_place(run),
        _ => run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn memory() -> Arc<Allowance> {
        Allowance::new("test_memory", 1 << 30)
    }

    /// Goal: what takes few steps is done, what takes more is not, and nobody heeds anything afterwards.
    #[test]
    fn brief_work_is_bounded() {
        let steps = |count: u32| briefly(|| (0..count).try_for_each(|_| heed()));
        assert!(matches!(steps(STEPS - 1), Some(Ok(()))));
        assert!(steps(STEPS).is_none());
        assert!(briefly(|| heed_bytes(SHORT_BYTES + 1)).is_none());
        assert!((0..2 * STEPS).all(|_| heed().is_ok()));
        // What stands in the midst of other work has its own steps.
        let within = briefly(|| {
            assert!(steps(STEPS).is_none());
            heed()
        });
        assert!(matches!(within, Some(Ok(()))));
    }

    /// Goal: work apart has a stack for deep recursion, gives what it gives, and panics where it is waited for.
    #[tokio::test]
    async fn work_apart_is_waited_for() {
        fn deep(levels: usize) -> usize {
            let room = std::hint::black_box([levels; 64]);
            if levels == 0 { 0 } else { deep(levels - 1) + 1 + usize::from(room[0] == usize::MAX) }
        }
        assert_eq!(apart(&memory(), || Ok(deep(500_000))).await.ok(), Some(500_000));
        let panicked = tokio::spawn(async { apart::<()>(&memory(), || panic!("as it was meant to")).await });
        assert!(panicked.await.is_err_and(|error| error.is_panic()));
    }

    /// Goal: work that nobody waits for any more ends; others find a place then.
    #[tokio::test]
    async fn work_that_was_given_up_ends() {
        let memory = memory();
        for _ in 0..2 * PLACES.available_permits() {
            let endless = apart::<()>(&memory, || {
                loop {
                    heed()?;
                }
            });
            assert!(tokio::time::timeout(Duration::from_millis(20), endless).await.is_err());
        }
        let begun = Instant::now();
        assert!(apart(&memory, || Ok(())).await.is_ok());
        assert!(begun.elapsed() < Duration::from_secs(10));
    }
}
