//! What an index maps a key to: the address of a record.
//!
//! ```text
//!  63      48 47                                     0
//! +----------+---------------------------------------+
//! |    0     |  address of a Record, never null       |   Pointer
//! +----------+---------------------------------------+
//! ```
//!
//! An index never looks behind a pointer. Whoever removes a record from the indexes retires it through
//! `crossbeam_epoch`, so a pointer that was found while a guard is pinned may be followed until that
//! guard is dropped.

use std::fmt;
use std::num::NonZeroU64;

/// Bits of a word that hold the address; user-space addresses on x86-64 and AArch64 have no more.
pub const ADDRESS_BITS: u32 = 48;

/// The address of a record, as the indexes store it: not null, below 2^48.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pointer(NonZeroU64);

impl Pointer {
    /// The pointer with this address; `None` if it is null or does not fit in 48 bits.
    #[inline]
    pub const fn new(address: u64) -> Option<Pointer> {
        if address >> ADDRESS_BITS != 0 {
            return None;
        }
        match NonZeroU64::new(address) {
            Some(address) => Some(Pointer(address)),
            None => None,
        }
    }

    /// The pointer to `target`. Exposes its provenance, so that [`Pointer::cast`] may be followed.
    ///
    /// # Panics
    ///
    /// If `target` is null or lies above the 48-bit address range.
    #[inline]
    pub fn from_raw<T>(target: *const T) -> Pointer {
        Pointer::new(target.expose_provenance() as u64).expect("a record address is not null and has 48 bits")
    }

    /// The address.
    #[inline]
    pub const fn address(self) -> u64 {
        self.0.get()
    }

    /// The raw pointer to follow.
    #[inline]
    pub fn cast<T>(self) -> *const T {
        std::ptr::with_exposed_provenance(self.address() as usize)
    }

    /// Asks for the cache line behind the pointer; costs about a nanosecond, whether or not the line is near.
    #[inline]
    pub fn prefetch(self) {
        prefetch(self.cast::<u8>());
    }
}

impl fmt::Debug for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pointer({:#x})", self.address())
    }
}

/// Asks for the cache line of `address`, which need not be mapped. Does nothing where there is no such
/// instruction.
#[inline]
pub fn prefetch<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: SSE is part of x86-64, and a prefetch of any address neither faults nor reads anything.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}

/// Asks for a cache line that is going to be written, which another core may have written last: takes it from there.
#[inline]
pub fn prefetch_to_write<T>(address: *const T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch of any address neither faults nor reads anything; where there is no such instruction, it
    // means nothing.
    unsafe {
        // The compiler's own function asks for a line to read unless it is told of a newer processor.
        std::arch::asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = address;
}
