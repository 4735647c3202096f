//! The program's allocator, how long it keeps memory that is not in use, and what it has beforehand.

use crate::progress::Line;
use fabius::{Error, Result, SqlState};
use fabius_bench::interrupt::Interrupt;
use fabius_env::memory;
use libmimalloc_sys::{mi_manage_os_memory_ex, mi_option_set_default, mi_option_t};
use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::ffi::c_long;
use std::io::ErrorKind;
use std::ops::Range;

#[global_allocator]
static ALLOCATOR: Counting = Counting(MiMalloc);

/// An allocator that counts what each thread takes: work that is bounded asks for it
/// (`fabius_env::memory::taken_by_thread`).
struct Counting(MiMalloc);

// SAFETY: all is left to an allocator that keeps the contract; counting neither allocates nor panics.
unsafe impl GlobalAlloc for Counting {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        memory::count(layout.size() as isize);
        // SAFETY: as the caller vouches.
        unsafe { self.0.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        memory::count(layout.size() as isize);
        // SAFETY: as the caller vouches.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        memory::count(-(layout.size() as isize));
        // SAFETY: as the caller vouches.
        unsafe { self.0.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        memory::count(size as isize - layout.size() as isize);
        // SAFETY: as the caller vouches.
        unsafe { self.0.realloc(block, layout, size) }
    }
}

/// `mi_option_purge_delay` of mimalloc 2, which the bindings do not name.
const PURGE_DELAY: mi_option_t = 15;
/// Milliseconds for which memory out of use is kept.
const KEPT_MS: c_long = 10_000;

/// Lets the allocator keep memory for seconds instead of 10 ms before it is given back to the system
/// (`docs/decisions/blocks-are-recycled.md`), unless the environment says something else (`MIMALLOC_PURGE_DELAY`).
pub fn keep_memory() {
    // SAFETY: the option exists, and may be set at any time.
    unsafe { mi_option_set_default(PURGE_DELAY, KEPT_MS) };
}

/// What mimalloc's arenas are aligned to, and a multiple of what they are divided into.
const ARENA_ALIGN: usize = 64 << 20;

/// What mimalloc takes for an arena by itself.
const OLDER_ARENA_BYTES: usize = 1 << 30;

/// Takes so much memory from the system now, for whatever is allocated from then on, and never gives it back. The first
/// touch of memory can cost more than what is written there, on virtual machines most of all: here it is paid before
/// anyone waits, by an operator who expects spikes. `goes_on` is told how many bytes are there, every now and then.
///
/// # Errors
/// `53200` if there is not so much memory; `57014` if `goes_on` says no.
pub fn reserve(bytes: u64, goes_on: &mut dyn FnMut(usize) -> bool) -> Result<()> {
    if bytes == 0 {
        return Ok(());
    }
    let refused = |detail: String| {
        let gigabytes = bytes as f64 / f64::from(1 << 30);
        Error::new(SqlState::OUT_OF_MEMORY, format!("{gigabytes:.1} GB of memory cannot be reserved"))
            .with_detail(detail)
            .with_hint("reserve less")
    };
    if let Some(available) = memory::available_bytes().filter(|available| *available < bytes) {
        return Err(refused(format!("{:.1} GB are available", available as f64 / f64::from(1 << 30))));
    }
    let layout = usize::try_from(bytes)
        .ok()
        .and_then(|bytes| bytes.checked_next_multiple_of(ARENA_ALIGN))
        .and_then(|bytes| Layout::from_size_align(bytes, ARENA_ALIGN).ok())
        .ok_or_else(|| refused("no process has as much".into()))?;
    let start = memory::reserve(layout, goes_on).map_err(|error| match error.kind() {
        ErrorKind::Interrupted => Error::new(SqlState::CANCELED, "interrupted while memory was reserved"),
        _ => refused(error.to_string()),
    })?;
    // SAFETY: aligned as it has to be, touched, and nobody else's from here on.
    let is_taken = unsafe {
        let (is_committed, is_pinned, is_zero, any_node, is_exclusive) = (true, true, false, -1, false);
        let mut arena = 0;
        mi_manage_os_memory_ex(
            start.as_ptr().cast(),
            layout.size(),
            is_committed,
            is_pinned,
            is_zero,
            any_node,
            is_exclusive,
            &mut arena,
        )
    };
    if !is_taken {
        return Err(refused("the allocator does not take it".into()));
    }
    use_up_older_arenas(start.as_ptr() as usize..start.as_ptr() as usize + layout.size());
    Ok(())
}

/// Takes memory as [`reserve`] does, showing how far it is, until the user does not want it any more.
///
/// # Errors
/// As [`reserve`].
pub fn reserve_visibly(bytes: u64, line: &Line, interrupt: &Interrupt) -> Result<()> {
    reserve(bytes, &mut |done| {
        line.say(format!("reserving memory: {} of {} MB", done >> 20, bytes >> 20));
        !interrupt.is_raised()
    })
}

/// Takes memory as [`reserve_visibly`] does, but at most half of what is available: for those whom nobody has told how
/// much there is.
///
/// # Errors
/// As [`reserve`].
pub fn reserve_prudently(bytes: u64, line: &Line, interrupt: &Interrupt) -> Result<()> {
    reserve_visibly(bytes.min(memory::available_bytes().unwrap_or(0) / 2), line, interrupt)
}

/// Takes what mimalloc would use before this arena: addresses that it has asked the system for as the program began, in
/// arenas of a gigabyte. They are never touched, so they take no memory.
fn use_up_older_arenas(arena: Range<usize>) {
    let layout = Layout::from_size_align(ARENA_ALIGN / 2 - (1 << 20), 8).expect("a small layout");
    for _ in 0..4 * OLDER_ARENA_BYTES / layout.size() {
        // SAFETY: the layout is not empty.
        let piece = unsafe { ALLOCATOR.alloc(layout) };
        if arena.contains(&(piece as usize)) {
            // SAFETY: just allocated with this layout.
            unsafe { ALLOCATOR.dealloc(piece, layout) };
            return;
        }
    }
}
