//! The control of calls that run one after the other: there is nothing to control.

use crate::eager::Control;

/// One thread runs calls, and no other does: how a log is replayed.
pub struct Alone;

impl Control<'_> for Alone {
    // Nobody else comes to make the row that is missing.
    const RECORDS_MISSES: bool = false;
    const HAS_GRANULES: bool = false;
}
