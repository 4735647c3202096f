//! The program's allocator, and how long it keeps memory that is not in use.

use libmimalloc_sys::{mi_option_set_default, mi_option_t};
use std::ffi::c_long;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
