//! The memory account: how many bytes rows take, counted where they are taken.
//!
//! Counting must not make cores fight over a cache line, so each thread adds to a cell of its own (64
//! cells, shared if there are more threads) and a reader sums them. The account is the process's:
//! several databases in one process share it.

use crossbeam_utils::CachePadded;
use std::cell::Cell;
use std::sync::atomic::{AtomicIsize, AtomicUsize, Ordering::Relaxed};

const CELLS: usize = 64;

static ACCOUNT: [CachePadded<AtomicIsize>; CELLS] = [const { CachePadded::new(AtomicIsize::new(0)) }; CELLS];
static NEXT_CELL: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static CELL: Cell<usize> = Cell::new(NEXT_CELL.fetch_add(1, Relaxed) % CELLS);
}

/// Adds bytes taken, or given back if negative.
#[inline]
pub fn add(bytes: isize) {
    // A thread that is being torn down has lost its cell; any cell will do.
    let cell = CELL.try_with(Cell::get).unwrap_or(0);
    ACCOUNT[cell].fetch_add(bytes, Relaxed);
}

/// Bytes taken by records, versions and values at this moment.
pub fn used() -> usize {
    let sum: isize = ACCOUNT.iter().map(|cell| cell.load(Relaxed)).sum();
    sum.max(0) as usize
}
