//! What the system is told about memory.

use std::ffi::c_void;

/// Bytes of a large page of the processors that have any.
const LARGE_PAGE_BYTES: usize = 2 << 20;

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
}
