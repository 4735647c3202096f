//! Blocks of memory for records, versions and long values, recycled while they are warm.
//!
//! Every write takes a block or two, and gives back those of the version that it shadows. What was
//! given back last is in the cache, so it is taken again first:
//!
//! ```text
//! take   this thread's loaded list --> its spare list --> depot --> allocator
//! give   this thread's loaded list --> its spare list --> depot --> allocator
//!        (at most BATCH blocks)       (BATCH blocks)      (whole lists, at most DEPOT_BYTES)
//! ```
//!
//! The lists are the magazines of Bonwick and Adams ("Magazines and Vmem", section 3): blocks may be given back by
//! another thread than took them, and the depot evens that out, a batch at a time. Each size class has lists of its
//! own. A thread that others are going to wait for can have new blocks [made ready](make_ready) before. Bytes in use
//! are counted here for the [memory account](crate::memory), thread by thread and handed on in lumps.

use crate::{index::prefetch, memory};
use parking_lot::Mutex;
use std::alloc::Layout;
use std::cell::UnsafeCell;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Sizes are rounded up to this.
const GRAIN: usize = 16;
/// How often an epoch is asked to end before what was unlinked in it is left to others.
const FLUSHES_MAX: usize = 100;
/// Larger blocks come straight from the allocator.
const CLASS_BYTES_MAX: usize = 1024;
const CLASSES: usize = CLASS_BYTES_MAX / GRAIN;
/// Blocks of a full list.
const BATCH: usize = 64;
/// Bytes that the depot keeps per size class.
const DEPOT_BYTES: usize = 8 << 20;
/// A cache line.
pub(crate) const LINE_BYTES: usize = 64;
/// So much of a block is brought near before it is taken,
const NEAR_BYTES: usize = 256;
/// so many blocks ahead.
const AHEAD: usize = 3;
/// Blocks of a class that are made ready beforehand, at most.
const READY_MAX: usize = 4096;
/// The account is told when a thread has taken or given back this much.
const LUMP_BYTES: isize = 16 << 10;

/// Free blocks of one class. Their addresses are kept apart from them, so that a block is not touched before it is
/// used.
#[derive(Default)]
struct Magazine(Vec<NonNull<u8>>);

// SAFETY: the blocks belong to the list, and no one else has their addresses.
unsafe impl Send for Magazine {}

impl Magazine {
    const EMPTY: Magazine = Magazine(Vec::new());

    /// Takes off the block of this class that came last.
    #[inline]
    fn pop(&mut self, class: usize) -> Option<NonNull<u8>> {
        let block = self.0.pop()?;
        // The next ones may have been given back long ago, and will be written from the front.
        self.bring_near(AHEAD, class);
        Some(block)
    }

    /// Asks for the memory of the block that comes after so many, if there is one.
    #[inline]
    fn bring_near(&self, ahead: usize, class: usize) {
        if let Some(next) = self.0.len().checked_sub(ahead).and_then(|at| self.0.get(at)) {
            for line in (0..class_bytes(class).min(NEAR_BYTES)).step_by(LINE_BYTES) {
                prefetch(next.as_ptr().wrapping_byte_add(line));
            }
        }
    }

    /// Adds a block of this list's class.
    #[inline]
    fn push(&mut self, block: NonNull<u8>) {
        if self.0.capacity() == 0 {
            self.0.reserve_exact(BATCH);
        }
        self.0.push(block);
    }
}

/// A thread's lists, and the bytes it has not told the account of.
struct Thread {
    loaded: [Magazine; CLASSES],
    spare: [Magazine; CLASSES],
    /// How many blocks were made ready in each loaded list.
    ready: [usize; CLASSES],
    /// How often there was none since then.
    missed: [usize; CLASSES],
    untold: isize,
}

static DEPOT: [Mutex<Vec<Magazine>>; CLASSES] = [const { Mutex::new(Vec::new()) }; CLASSES];

thread_local! {
    static THREAD: UnsafeCell<Thread> = const {
        UnsafeCell::new(Thread {
            loaded: [const { Magazine::EMPTY }; CLASSES],
            spare: [const { Magazine::EMPTY }; CLASSES],
            ready: [0; CLASSES],
            missed: [0; CLASSES],
            untold: 0,
        })
    };
}

impl Thread {
    #[inline]
    fn tell(&mut self, bytes: isize) {
        self.untold += bytes;
        if self.untold.abs() >= LUMP_BYTES {
            memory::add(std::mem::take(&mut self.untold));
        }
    }

    #[inline]
    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        self.loaded[class].pop(class).or_else(|| self.reload(class))
    }

    #[cold]
    fn reload(&mut self, class: usize) -> Option<NonNull<u8>> {
        let (loaded, spare) = (&mut self.loaded[class], &mut self.spare[class]);
        if !spare.0.is_empty() {
            std::mem::swap(loaded, spare);
        } else if let Some(full) = DEPOT[class].lock().pop() {
            *loaded = full;
        } else {
            self.missed[class] += 1;
        }
        (1..=AHEAD).for_each(|ahead| loaded.bring_near(ahead, class));
        loaded.pop(class)
    }

    /// See [`make_ready`].
    fn make_ready(&mut self) {
        for (class, loaded) in self.loaded.iter_mut().enumerate() {
            let used = self.ready[class].saturating_sub(loaded.0.len());
            let wanted = (used + std::mem::take(&mut self.missed[class])).min(READY_MAX);
            while loaded.0.len() < wanted {
                let block = allocate(class_bytes(class));
                // SAFETY: just allocated.
                unsafe { block.as_ptr().write_volatile(0) };
                loaded.push(block);
            }
            self.ready[class] = wanted;
        }
    }

    #[inline]
    fn give(&mut self, block: NonNull<u8>, class: usize) {
        if self.loaded[class].0.len() >= BATCH {
            self.unload(class);
        }
        self.loaded[class].push(block);
    }

    #[cold]
    fn unload(&mut self, class: usize) {
        let (loaded, spare) = (&mut self.loaded[class], &mut self.spare[class]);
        std::mem::swap(loaded, spare);
        if !loaded.0.is_empty() {
            put_away(std::mem::take(loaded), class);
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        for class in 0..CLASSES {
            put_away(std::mem::take(&mut self.loaded[class]), class);
            put_away(std::mem::take(&mut self.spare[class]), class);
        }
        memory::add(self.untold);
    }
}

/// Leaves blocks in the depot, or with the allocator if the depot has enough.
fn put_away(mut list: Magazine, class: usize) {
    while !list.0.is_empty() {
        let part = Magazine(list.0.split_off(list.0.len().saturating_sub(BATCH)));
        let mut depot = DEPOT[class].lock();
        if depot.len() < DEPOT_BYTES / (class_bytes(class) * BATCH) {
            depot.push(part);
            continue;
        }
        drop(depot);
        give_back(part, class);
    }
}

/// Hands blocks back to the allocator.
fn give_back(mut list: Magazine, class: usize) {
    while let Some(block) = list.pop(class) {
        // SAFETY: taken from the allocator with this layout.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout(class_bytes(class))) };
    }
}

const fn class_bytes(class: usize) -> usize {
    (class + 1) * GRAIN
}

fn layout(bytes: usize) -> Layout {
    // A block of a line is not on two, and one of two begins at a multiple of its size; those of larger powers of two
    // need no more lines than they have to either.
    let is_lines = bytes.is_power_of_two() && (LINE_BYTES..=CLASS_BYTES_MAX).contains(&bytes);
    Layout::from_size_align(bytes, if is_lines { bytes.min(2 * LINE_BYTES) } else { 8 })
        .expect("a block's size is bounded")
}

fn allocate(bytes: usize) -> NonNull<u8> {
    let layout = layout(bytes);
    // SAFETY: the layout is not empty.
    NonNull::new(unsafe { std::alloc::alloc(layout) })
        .unwrap_or_else(|| std::alloc::handle_alloc_error(layout))
}

/// A block of at least `bytes` (more than none), aligned to words; its content is arbitrary.
#[inline]
pub fn take(bytes: usize) -> NonNull<u8> {
    debug_assert!(bytes > 0);
    let class = (bytes - 1) / GRAIN;
    THREAD
        .try_with(|thread| {
            // SAFETY: this thread's own, and nothing below calls back here.
            let thread = unsafe { &mut *thread.get() };
            thread.tell(bytes as isize);
            if class < CLASSES { thread.take(class) } else { None }
        })
        .unwrap_or_else(|_| {
            memory::add(bytes as isize);
            None
        })
        .unwrap_or_else(|| allocate(if class < CLASSES { class_bytes(class) } else { bytes }))
}

/// Prepares for this thread to take as many new blocks as it has taken since the last time, none if those that were
/// given back sufficed. To be called before others wait for this thread: new memory is dear when it is touched for
/// the first time.
pub fn make_ready() {
    _ = THREAD.try_with(|thread| {
        // SAFETY: as in `take`.
        unsafe { &mut *thread.get() }.make_ready();
    });
}

/// Frees what was unlinked before, unless some thread may still be looking at it, and hands all free blocks back to
/// the allocator: for when a database has been closed, so that the next one of the process finds memory as the first
/// one did.
pub fn give_back_all() {
    let is_freed = Arc::new(AtomicBool::new(false));
    let last = Arc::clone(&is_freed);
    // What was unlinked before comes before this.
    crossbeam_epoch::pin().defer(move || last.store(true, Release));
    for _ in 0..FLUSHES_MAX {
        crossbeam_epoch::pin().flush();
        if is_freed.load(Acquire) {
            break;
        }
        std::thread::yield_now();
    }
    keep_none();
}

/// Hands the free blocks of this thread and of the depot back to the allocator. A block that is kept keeps the whole
/// page of its allocator from being cleared up, and pages that are in part free are filled here and there.
fn keep_none() {
    _ = THREAD.try_with(|thread| {
        // SAFETY: as in `take`.
        let thread = unsafe { &mut *thread.get() };
        for (class, list) in thread.loaded.iter_mut().enumerate().chain(thread.spare.iter_mut().enumerate()) {
            give_back(std::mem::take(list), class);
        }
        thread.ready = [0; CLASSES];
    });
    for (class, depot) in DEPOT.iter().enumerate() {
        let lists = std::mem::take(&mut *depot.lock());
        lists.into_iter().for_each(|list| give_back(list, class));
    }
}

/// Gives back a block that was taken with this size.
///
/// # Safety
/// It came from [`take`] with the same `bytes`, and no one uses it any more.
#[inline]
pub unsafe fn give(block: NonNull<u8>, bytes: usize) {
    let class = (bytes - 1) / GRAIN;
    let kept = THREAD.try_with(|thread| {
        // SAFETY: as in `take`.
        let thread = unsafe { &mut *thread.get() };
        thread.tell(-(bytes as isize));
        if class < CLASSES {
            thread.give(block, class);
        }
        class < CLASSES
    });
    if kept.is_err() {
        memory::add(-(bytes as isize));
    }
    if kept != Ok(true) {
        let bytes = if class < CLASSES { class_bytes(class) } else { bytes };
        // SAFETY: taken from the allocator with this layout.
        unsafe { std::alloc::dealloc(block.as_ptr(), layout(bytes)) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With sizes that no other test has, since threads share the depot.
    #[test]
    fn what_was_given_back_last_is_taken_first() {
        let blocks: Vec<_> = (0..200).map(|_| take(1000)).collect();
        // SAFETY: taken above with this size.
        blocks.iter().for_each(|&block| unsafe { give(block, 1000) });
        let again: Vec<_> = (0..200).map(|_| take(993)).collect();
        assert_eq!(again[0], blocks[199]);
        let mut sorted = (blocks, again.clone());
        sorted.0.sort();
        sorted.1.sort();
        assert_eq!(sorted.0, sorted.1, "all of them are taken again");
        // SAFETY: taken above with this size.
        again.into_iter().for_each(|block| unsafe { give(block, 993) });
    }

    #[test]
    fn blocks_may_be_given_back_by_another_thread() {
        let (sender, receiver) = std::sync::mpsc::channel::<(usize, usize)>();
        let giver = std::thread::spawn(move || {
            for (address, bytes) in receiver {
                let block =
                    NonNull::new(std::ptr::with_exposed_provenance_mut::<u8>(address)).expect("an address");
                // SAFETY: taken by the other thread with this size, which has forgotten it.
                unsafe { give(block, bytes) };
            }
        });
        for round in 0..if cfg!(miri) { 300 } else { 10_000 } {
            // Of all classes but that of the test above, and larger ones.
            let bytes = match round * 7 % 1500 {
                at @ ..900 => at + 1,
                at => at + 200,
            };
            let block = take(bytes);
            // SAFETY: the block is at least that long.
            unsafe { block.as_ptr().write_bytes(0xa5, bytes) };
            sender.send((block.as_ptr().expose_provenance(), bytes)).expect("the other thread listens");
        }
        drop(sender);
        giver.join().expect("no panic");
    }
}
