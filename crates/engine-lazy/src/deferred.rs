//! Deferred calls, and the chunks they live in.
//!
//! A call whose now-phase left something for later becomes a [`Deferred`]: its arguments, the values
//! and rows that the now-phase captured, and the versions it has to fill. It is run once, by whoever
//! claims it, or dropped:
//!
//! ```text
//!             claim                 settle its versions
//!  Pending ----------> Running ---------------------------> Done
//!     |                   |
//!     |                   +--- its run panicked ----------> Failed
//!     +--- all its versions overwritten and unreadable ---> Dropped
//! ```
//!
//! A call that has failed may have filled some of its versions, so it is not run again: what it should have written
//! cannot be read any more.
//!
//! Deferred calls of one turn of the lane live together in a [`Chunk`], an arena that is recycled as a
//! whole once all of them are done and no pinned epoch can hold an address into it.

use crate::captured::{RowList, Rows, Sticky};
use crate::variant::Variant;
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use crossbeam_utils::CachePadded;
use fabius_engine::{Definitions, Ticket};
use fabius_env::schedule;
use fabius_storage::fold::{Retired, shorten_at};
use fabius_storage::{chain, index::prefetch, memory};
use fabius_value::{Datum, Seq};
use parking_lot::Mutex;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{
    AtomicI64, AtomicU8, AtomicU32, AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};

/// Where a deferred call is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Not begun.
    Pending,
    /// Claimed by a worker.
    Running,
    /// All its versions are settled.
    Done,
    /// It will never run.
    Dropped,
    /// A run has panicked: this call's, or one that it waited for.
    Failed,
}

/// A call whose later-phase has not run yet. Small, because each call of a backlog is out of all caches when its turn
/// comes.
pub struct Deferred {
    state: AtomicU8,
    /// Versions of this call that nothing has overwritten yet; the lane alone counts.
    pub live: AtomicU32,
    /// The call's place in the order.
    pub seq: Seq,
    /// The call's code, which lives as long as the call is not done.
    pub variant: NonNull<Variant>,
    /// Who waits for the returned values.
    pub ticket: Option<Arc<Ticket>>,
    /// The chunk it lives in.
    chunk: NonNull<Chunk>,
    /// What it needs: values, rows, arguments, one behind the other in the chunk;
    parts: NonNull<u8>,
    /// and how many of each.
    counts: Counts,
}

/// How many of each part a call has.
#[derive(Clone, Copy)]
struct Counts {
    values: u32,
    row_words: u32,
    arguments: u32,
}

impl Counts {
    /// Where rows and arguments begin, and where these end, in bytes from the beginning of the values.
    fn places(self) -> (usize, usize, usize) {
        let rows = self.values as usize * size_of::<Datum<'static>>();
        let arguments = rows + self.row_words as usize * size_of::<u64>();
        (rows, arguments, arguments + self.arguments as usize)
    }
}

/// What a call's now-phase leaves for later.
pub struct Leavings<'c, V> {
    /// The call's place in the order.
    pub seq: Seq,
    /// The call's code.
    pub variant: NonNull<Variant>,
    /// Who waits for the returned values.
    pub ticket: Option<Arc<Ticket>>,
    /// Captured values in order; what they refer to is in the chunk.
    pub values: V,
    /// Captured rows in order, and behind them what else it has to fill.
    pub rows: &'c RowList,
    /// How many versions it has to fill.
    pub stickies: u32,
    /// Encoded arguments.
    pub arguments: &'c [u8],
}

impl Deferred {
    /// Where the call is in its life.
    #[inline]
    pub fn state(&self) -> State {
        match self.state.load(Acquire) {
            0 => State::Pending,
            1 => State::Running,
            2 => State::Done,
            3 => State::Dropped,
            _ => State::Failed,
        }
    }

    /// Takes the right to run it; `None` if someone else has.
    #[inline]
    pub fn claim(&self) -> Option<Claim<'_>> {
        let (from, to) = (State::Pending as u8, State::Running as u8);
        self.state.compare_exchange(from, to, AcqRel, Acquire).is_ok().then(|| Claim(self))
    }

    /// Waits until whoever has claimed it has come to an end.
    pub fn wait(&self) {
        let state = &self.state;
        schedule::wait_until("deferred call", || state.load(Acquire) != State::Running as u8);
    }

    /// Drops it unless someone has claimed it; whether it was dropped.
    pub fn drop_unrun(&self) -> bool {
        let dropped =
            self.state.compare_exchange(State::Pending as u8, State::Dropped as u8, AcqRel, Acquire).is_ok();
        if dropped {
            self.leave_chunk();
        }
        dropped
    }

    fn leave_chunk(&self) {
        self.chunk().remaining.fetch_sub(1, AcqRel);
    }

    fn chunk(&self) -> &Chunk {
        // SAFETY: a chunk outlives its calls (see the module).
        unsafe { self.chunk.as_ref() }
    }

    /// When its turn was logged.
    pub fn time_us(&self) -> i64 {
        self.chunk().time_us.load(Relaxed)
    }

    /// Captured values in order.
    #[inline]
    pub fn values(&self) -> &[Datum<'static>] {
        // SAFETY: written by `Chunk::defer`, as all parts.
        unsafe { self.parts(0, self.counts.values) }
    }

    /// Captured rows in order, and behind them what else it has to fill.
    #[inline]
    pub fn rows(&self) -> Rows<'_> {
        // SAFETY: written by `Chunk::defer`, as all parts.
        Rows::new(unsafe { self.parts(self.counts.places().0, self.counts.row_words) })
    }

    /// What it has to fill.
    #[inline]
    pub fn stickies(&self) -> impl Iterator<Item = Sticky> + '_ {
        self.rows().stickies()
    }

    /// Encoded arguments.
    #[inline]
    pub fn arguments(&self) -> &[u8] {
        // SAFETY: written by `Chunk::defer`, as all parts.
        unsafe { self.parts(self.counts.places().1, self.counts.arguments) }
    }

    /// # Safety
    /// So many parts of this type begin there.
    #[inline]
    unsafe fn parts<T>(&self, at: usize, count: u32) -> &[T] {
        // SAFETY: so many parts begin there, as whoever calls this sees to; the chunk outlives its calls.
        unsafe { std::slice::from_raw_parts(self.parts.byte_add(at).cast().as_ptr(), count as usize) }
    }
}

#[cfg(test)]
impl Deferred {
    /// Makes a run of this call panic.
    ///
    /// # Safety
    /// Nobody uses the call meanwhile.
    pub unsafe fn spoil(call: NonNull<Deferred>) {
        // SAFETY: nobody uses the call meanwhile, as whoever calls this sees to.
        unsafe { (*call.as_ptr()).counts.arguments = 0 };
    }
}

/// The right to run a call. If it is let go before the call is settled, the call has failed.
pub struct Claim<'d>(&'d Deferred);

impl<'d> Claim<'d> {
    /// The call.
    #[inline]
    pub fn call(&self) -> &'d Deferred {
        self.0
    }

    /// Publishes the values of all the call's versions, which the caller has filled in the epoch that is pinned.
    #[inline]
    pub fn settle(self, definitions: &Definitions) {
        let deferred = self.0;
        deferred.stickies().for_each(|sticky| {
            // SAFETY: versions with open stickies are linked, or kept by whoever overwrote them, until
            // the call is done.
            let version = unsafe { sticky.version.as_ref() };
            // SAFETY: the version is readable as said above; its open stickies are those of the call, which is claimed.
            unsafe { chain::resolve(version, definitions.table(sticky.table).types()) };
            version.settle();
            schedule::point("settled");
        });
        std::mem::forget(self);
        deferred.state.store(State::Done as u8, Release);
        deferred.leave_chunk();
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.state.store(State::Failed as u8, Release);
    }
}

/// Arenas that chunks have left, for those to come: warm, and known to the system.
#[derive(Default)]
pub struct Arenas {
    spare: Mutex<Vec<Bump>>,
    /// Bytes that the last chunk took.
    usual_bytes: AtomicUsize,
}

/// Arenas kept for chunks to come; more are freed.
const SPARE_MAX: usize = 64;

impl Arenas {
    /// A chunk without calls. To be made before others wait for this thread: a new arena is touched here for the
    /// first time.
    pub fn chunk(self: &Arc<Arenas>) -> Arc<Chunk> {
        let spare = self.spare.lock().pop();
        let arena = spare.unwrap_or_else(|| touched(self.usual_bytes.load(Relaxed)));
        Arc::new(Chunk {
            calls: OnceLock::new(),
            time_us: AtomicI64::new(0),
            remaining: CachePadded::new(AtomicU32::new(0)),
            next: CachePadded::new(AtomicU32::new(0)),
            arena,
            home: self.clone(),
        })
    }

    fn take_back(&self, mut arena: Bump) {
        arena.reset();
        let mut spare = self.spare.lock();
        if spare.len() < SPARE_MAX {
            spare.push(arena);
        }
    }
}

/// An arena with room for so many bytes.
fn touched(bytes: usize) -> Bump {
    let mut arena = Bump::with_capacity(bytes);
    arena.alloc_slice_fill_copy(bytes, 0u8);
    arena.reset();
    arena
}

/// The deferred calls of one turn of the lane.
pub struct Chunk {
    calls: OnceLock<Box<[NonNull<Deferred>]>>,
    time_us: AtomicI64,
    /// Of a closed one: calls neither done nor dropped.
    remaining: CachePadded<AtomicU32>,
    next: CachePadded<AtomicU32>,
    arena: Bump,
    home: Arc<Arenas>,
}

// SAFETY: the arena is used by the lane alone; the calls in it are shared through atomics and the
// claim protocol.
unsafe impl Send for Chunk {}
// SAFETY: the arena is used by the lane alone; calls are shared through atomics and the claim protocol.
unsafe impl Sync for Chunk {}

impl Chunk {
    /// Where its calls keep what they need; for the lane, until the chunk is closed.
    pub fn arena(&self) -> &Bump {
        &self.arena
    }

    /// Says when the turn was logged, before any of its calls is deferred.
    pub fn begin(&self, time_us: i64) {
        self.time_us.store(time_us, Relaxed);
    }

    /// Puts a call there that is to be done later; for the lane, until the chunk is closed.
    pub fn defer<V>(self: &Arc<Chunk>, left: Leavings<'_, V>) -> NonNull<Deferred>
    where
        V: ExactSizeIterator<Item = Datum<'static>>,
    {
        let count = |count: usize| u32::try_from(count).expect("a call is far smaller than 4 GB");
        let counts = Counts {
            values: count(left.values.len()),
            row_words: count(left.rows.words().len()),
            arguments: count(left.arguments.len()),
        };
        let (rows, arguments, end) = counts.places();
        let layout = Layout::new::<Deferred>();
        let bytes = layout.size() + end;
        let layout =
            Layout::from_size_align(bytes, align_of::<Datum<'static>>()).expect("far smaller than memory");
        let deferred = self.arena.alloc_layout(layout).cast::<Deferred>();
        // SAFETY: room for the call, and its parts behind it, which are as long as counted, and nobody else's.
        unsafe {
            let parts = deferred.add(1).cast::<u8>();
            write_all(parts, left.values, counts.values);
            copy_all(parts.byte_add(rows), left.rows.words());
            copy_all(parts.byte_add(arguments), left.arguments);
            deferred.write(Deferred {
                state: AtomicU8::new(State::Pending as u8),
                live: AtomicU32::new(left.stickies),
                seq: left.seq,
                variant: left.variant,
                ticket: left.ticket,
                chunk: NonNull::from(&**self),
                parts,
                counts,
            });
        }
        deferred
    }

    /// Says which calls there are, oldest first, once the turn has ended.
    pub fn close(&self, calls: Vec<NonNull<Deferred>>) {
        let closed = self.calls.set(calls.into());
        assert!(closed.is_ok(), "a chunk is closed once");
        // All at once: what has been done in the turn itself was counted below zero.
        self.remaining.fetch_add(self.calls().len() as u32, Relaxed);
        let used = self.arena.allocated_bytes() - self.arena.chunk_capacity();
        self.home.usual_bytes.store(used, Relaxed);
        memory::add(self.bytes() as isize);
    }

    fn bytes(&self) -> usize {
        self.arena.allocated_bytes() + size_of_val(self.calls()) + size_of::<Chunk>()
    }

    /// The calls of a closed chunk, oldest first.
    pub fn calls(&self) -> &[NonNull<Deferred>] {
        self.calls.get().map_or(&[], |calls| calls)
    }

    /// Calls neither done nor dropped, once it is closed.
    pub fn remaining(&self) -> u32 {
        self.remaining.load(Acquire)
    }

    /// Takes out of chains what its calls' versions shadow, once all of them are done; see [`crate::backlog`].
    ///
    /// # Safety
    /// The caller has taken the chunk out of the backlog, in the epoch of `guard`. Nobody reads below `collected`, and
    /// everything up to there is settled.
    pub unsafe fn shorten(
        &self,
        collected: Seq,
        definitions: &Definitions,
        retired: &mut Retired,
        guard: &Guard,
    ) {
        for (at, call) in self.calls().iter().enumerate() {
            if let Some(later) = self.calls().get(at + 2) {
                // SAFETY: the chunk is alive.
                let later = unsafe { later.as_ref() }.stickies();
                later.for_each(|sticky| prefetch(sticky.record.as_ptr()));
            }
            // SAFETY: the chunk is alive.
            let call = unsafe { call.as_ref() };
            if call.state() != State::Done || call.seq > collected {
                continue;
            }
            for sticky in call.stickies() {
                // A table may be newer than what the caller knows: its rows are left to whoever writes them next.
                let Some(table) = definitions.tables.get(sticky.table.0 as usize) else { continue };
                // SAFETY: what a call has written stays at least for as long as its chunk is in the backlog, and then
                // until the epoch ends; and the caller's promise.
                unsafe {
                    shorten_at(sticky.record.as_ref(), sticky.version.as_ref(), table.types(), retired);
                }
            }
            if retired.is_full() {
                retired.hand_over(guard);
            }
        }
    }

    /// Takes the next few calls to look at; empty when all have been taken.
    pub fn take(&self, most: u32) -> &[NonNull<Deferred>] {
        let calls = self.calls();
        let count = calls.len() as u32;
        if self.next.load(Relaxed) >= count {
            return &[];
        }
        let most = most.min(count);
        let from = self.next.fetch_add(most, Relaxed).min(count);
        &calls[from as usize..(from + most).min(count) as usize]
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        if self.calls.get().is_some() {
            memory::add(-(self.bytes() as isize));
        }
        for call in self.calls() {
            // SAFETY: allocated in the arena, dropped once; the arena itself drops nothing.
            unsafe { call.drop_in_place() };
        }
        self.home.take_back(std::mem::take(&mut self.arena));
    }
}

/// Writes so many items, one behind the other.
///
/// # Safety
/// There is room for them.
unsafe fn write_all<T>(to: NonNull<u8>, items: impl Iterator<Item = T>, count: u32) {
    let mut written = 0;
    for item in items.take(count as usize) {
        // SAFETY: there is room for them, as whoever calls this sees to.
        unsafe { to.cast::<T>().add(written).write(item) };
        written += 1;
    }
    assert_eq!(written, count as usize, "as many as counted");
}

/// Writes a copy of these items.
///
/// # Safety
/// There is room for them.
unsafe fn copy_all<T: Copy>(to: NonNull<u8>, items: &[T]) {
    // SAFETY: there is room for them, as whoever calls this sees to.
    unsafe { to.cast::<T>().copy_from_nonoverlapping(NonNull::from(items).cast(), items.len()) };
}
