//! From one engine to another, in memory.

use super::{Ranges, State, include};
use crate::Engine;
use fabius_value::{Result, TableId};

/// What an engine leaves to another one that goes on from there, on the same foundation: nothing is under way or
/// deferred, and nothing is done by it any more. To find the ranges of columns takes a look at every row, so that is
/// left out unless the other engine's proofs rest upon them.
///
/// # Errors
/// Why the engine has stopped.
pub fn hand_over(engine: &dyn Engine, with_ranges: bool) -> Result<State> {
    // Also what it has noted of keys that no reader needs: nobody else knows of it.
    while engine.help() {}
    let foundation = engine.foundation();
    let at = engine.stand();
    let definitions = at.definitions();
    let tables = if with_ranges { &*definitions.tables } else { &[] };
    let ranges = tables.iter().zip(0..).map(|(table, number)| {
        let mut ranges: Ranges = vec![None; table.schema().columns.len()];
        engine.rows_at(&at, TableId(number), &mut |row| {
            ranges.iter_mut().zip(row).for_each(|(range, value)| include(range, *value));
            Ok(())
        })?;
        Ok(ranges)
    });
    let ranges = ranges.collect::<Result<_>>()?;
    let state = State {
        seq: at.seq(),
        time_us: foundation.clock.now_us(),
        definitions: (**definitions).clone(),
        keys: Default::default(),
        ranges,
    };
    // The walk over the keys ends first.
    drop(at);
    let keys = std::mem::take(&mut *foundation.keys.lock());
    Ok(State { keys, ..state })
}
