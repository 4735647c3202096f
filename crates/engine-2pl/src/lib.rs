//! Strict two-phase locking with wound-wait, the eager engine to compare with.
