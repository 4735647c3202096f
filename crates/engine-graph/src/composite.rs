//! Calls that are one composite action (LADS, section 3.3.2).
//!
//! A call that is not taken apart is executed in one piece, once it is at the head of all its record queues: no
//! other call is at them until it has ended. So nothing that it does is controlled any further, and an abort
//! has no consequences for others (section 3.3.1).

use fabius_engine::eager::Control;

/// The control of a call whose turn has come at all that it accesses: there is nothing left to refuse.
pub struct InTurn;

impl Control<'_> for InTurn {
    // Nobody else comes to make the row that is missing.
    const RECORDS_MISSES: bool = false;
    const HAS_GRANULES: bool = false;

    /// Readers see whole graphs: of the versions that a graph leaves of a record, the last is enough (section 4.2.2).
    fn holds_back(&self) -> bool {
        true
    }
}
