//! What the system is told about memory, and asked for beforehand.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ffi::c_void;
use std::io;
use std::mem::MaybeUninit;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of a large page of the processors that have any.
const LARGE_PAGE_BYTES: usize = 2 << 20;
/// Bytes of a page, if it is not a large one.
const PAGE_BYTES: usize = 4 << 10;
/// Whoever waits for a reservation is told each time so much is there.
const RESERVED_STEP_BYTES: usize = 64 << 20;

static RESERVED_BYTES: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    // Without a destructor, so that an allocator may use it at any time.
    static TAKEN: Cell<isize> = const { Cell::new(0) };
}

/// Bytes that the thread has taken from the allocator less those that it has given back, of its own or of others: what
/// some work takes is how much this grows meanwhile. Zero for ever in programs whose allocator does not [count](count).
pub fn taken_by_thread() -> isize {
    TAKEN.get()
}

/// For the program's allocator: the thread has taken bytes, or has given them back if they are negative.
#[inline]
pub fn count(bytes: isize) {
    TAKEN.set(TAKEN.get().wrapping_add(bytes));
}

/// Bytes that this process has [reserved](reserve).
pub fn reserved_bytes() -> usize {
    RESERVED_BYTES.load(Relaxed)
}

/// Bytes that the system could give to this process, within the bound of its control group; `None` where it does not
/// say.
pub fn available_bytes() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)?;
    Some(free.min(left_to_group().unwrap_or(u64::MAX)))
}

/// Bytes that the control groups of this process may take besides what they have; `None` if nothing bounds them. What
/// the system keeps of files for them goes when it is needed.
fn left_to_group() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = own.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let groups = Path::new("/sys/fs/cgroup").join(path);
    let left = groups.ancestors().filter_map(|group| {
        let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
        let number = |text: &str| text.trim().parse::<u64>().ok();
        let (max, current) = (number(&read("memory.max")?)?, number(&read("memory.current")?)?);
        let stat = read("memory.stat").unwrap_or_default();
        let files = stat.lines().find_map(|line| number(line.strip_prefix("inactive_file ")?));
        Some(max.saturating_sub(current.saturating_sub(files.unwrap_or_default())))
    });
    left.min()
}

/// Takes memory from the system and touches all of it, on large pages where there are any, so that nobody waits for
/// that later. `goes_on` is told how many bytes are there, every now and then.
///
/// # Errors
/// `OutOfMemory`; `Interrupted` if `goes_on` says no, and then nothing is kept.
///
/// # Panics
/// If the layout has no bytes.
pub fn reserve(layout: Layout, goes_on: &mut dyn FnMut(usize) -> bool) -> io::Result<NonNull<u8>> {
    assert!(layout.size() > 0, "there is something to reserve");
    // SAFETY: there are bytes.
    let start = NonNull::new(unsafe { System.alloc(layout) }).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: just allocated, and nobody reads what is in there.
    prefer_large_pages(unsafe {
        std::slice::from_raw_parts(start.cast::<MaybeUninit<u8>>().as_ptr(), layout.size())
    });
    for at in (0..layout.size()).step_by(PAGE_BYTES) {
        if at % RESERVED_STEP_BYTES == 0 && !goes_on(at) {
            // SAFETY: allocated above with this layout.
            unsafe { System.dealloc(start.as_ptr(), layout) };
            return Err(io::ErrorKind::Interrupted.into());
        }
        // SAFETY: within the allocation.
        unsafe { start.as_ptr().add(at).write_volatile(0) };
    }
    RESERVED_BYTES.fetch_add(layout.size(), Relaxed);
    Ok(start)
}

/// Asks the system to back memory that is read here and there with large pages, whose addresses the processor
/// translates without walking over tables. A wish: where it cannot be fulfilled, nothing happens.
///
/// Memory that grows a little with every call does better without: the system clears a large page all at once, while
/// the one who touched it first waits.
pub fn prefer_large_pages<T>(memory: &[T]) {
    let start = std::ptr::from_ref(memory).cast::<u8>();
    // Whole pages only: what is around the memory is not ours to speak about.
    let skipped = start.align_offset(LARGE_PAGE_BYTES);
    let bytes = size_of_val(memory).saturating_sub(skipped) / LARGE_PAGE_BYTES * LARGE_PAGE_BYTES;
    if bytes > 0 {
        advise(start.wrapping_add(skipped).cast(), bytes);
    }
}

#[cfg(all(target_os = "linux", not(miri)))]
fn advise(start: *const c_void, bytes: usize) {
    // SAFETY: the range is inside of memory that the caller refers to, and the advice changes nothing in it.
    unsafe { libc::madvise(start.cast_mut(), bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise(_: *const c_void, _: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: memory of any size and place may be meant, and keeps what is in it.
    #[test]
    fn memory_keeps_what_is_in_it() {
        for words in [0, 1, LARGE_PAGE_BYTES / 8, LARGE_PAGE_BYTES] {
            let memory = vec![7u64; words];
            prefer_large_pages(&memory[words.min(1)..]);
            prefer_large_pages(&memory);
            assert!(memory.iter().all(|&word| word == 7), "{words}");
        }
    }
    /// Goal: what is reserved is there, counted, and of the alignment asked for; who does not want to wait keeps
    /// nothing.
    #[test]
    fn memory_is_reserved() {
        let layout = Layout::from_size_align(3 * RESERVED_STEP_BYTES, LARGE_PAGE_BYTES).expect("a layout");
        let before = reserved_bytes();
        let stopped = reserve(layout, &mut |bytes| bytes < RESERVED_STEP_BYTES);
        assert_eq!(stopped.map_err(|error| error.kind()), Err(io::ErrorKind::Interrupted));
        assert_eq!(reserved_bytes(), before);
        let mut told = Vec::new();
        let start = reserve(layout, &mut |bytes| {
            told.push(bytes / RESERVED_STEP_BYTES);
            true
        });
        let start = start.expect("there is memory");
        assert_eq!((told, start.as_ptr().align_offset(LARGE_PAGE_BYTES)), (vec![0, 1, 2], 0));
        assert_eq!(reserved_bytes(), before + layout.size());
        // SAFETY: allocated with this layout.
        unsafe { System.dealloc(start.as_ptr(), layout) };
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_system_says_what_is_available() {
        assert!(available_bytes().is_some_and(|bytes| bytes > 1 << 20));
    }
}
