//! The workloads, one file each.

pub mod burst;
pub mod cart;
pub mod hot;
pub mod rmw10;
pub mod tpcc;

use crate::target::Target;
use crate::workload::ClientPlace;
use fabius::Result;
use fabius_env::Random;
use fabius_value::{Error, SqlState, TableId};

/// A client's random numbers: a sequence of its own for each seed, run and client.
pub(crate) fn random_for(seed: u64, place: ClientPlace) -> Random {
    let spread = |value: u64, by: u64| value.wrapping_add(1).wrapping_mul(by);
    Random::seeded(
        seed ^ spread(place.run, 0x9e37_79b9_7f4a_7c15) ^ spread(place.number as u64, 0xd1b5_4a32_d192_ed03),
    )
}

/// The number of a table.
pub(crate) fn table(target: &Target, name: &str) -> Result<TableId> {
    target
        .database
        .definitions()
        .catalog
        .find_table(name)
        .ok_or_else(|| Error::new(SqlState::UNDEFINED_TABLE, format!("there is no table {name:?}")))
}
