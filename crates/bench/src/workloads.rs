//! The workloads, one file each; [`own`] is a user's.

pub mod assert;
pub mod burst;
pub mod calvin_micro;
pub mod cart;
pub mod hot;
pub mod like;
pub mod own;
pub mod rmw10;
pub mod rubis;
pub mod tpcc;
pub mod ycsb;

use crate::settings::{Domain, Setting};
use crate::target::Target;
use crate::workload::ClientPlace;
use fabius::Result;
use fabius_env::Random;
use fabius_value::{Error, SqlState, TableId, Value};

/// How a workload's reading calls are run. The papers' engines run them like any other call, so that is the
/// default.
pub(crate) const READ_AS: Setting = Setting {
    name: "read_as",
    default: "call",
    domain: Domain::Choice(&["call", "snapshot"]),
    help: "call: in the order of calls, like those that write; snapshot: at the newest promised state",
};

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

/// A table's rows, one after another, as the calls so far have made them.
pub(crate) fn rows(target: &Target, name: &str, visit: &mut dyn FnMut(&[Value])) -> Result<()> {
    let rows = target.database.engine().rows(table(target, name)?, &mut |row| {
        visit(&row);
        Ok(())
    });
    rows.map(drop)
}

/// A whole number of any type; of a numeric, its digits.
pub(crate) fn integer(value: &Value) -> i128 {
    match value {
        Value::SmallInt(v) => i128::from(*v),
        Value::Int(v) => i128::from(*v),
        Value::BigInt(v) => i128::from(*v),
        Value::Numeric(v) => v.mantissa,
        _ => 0,
    }
}

/// A share as what a random word has to be below.
pub(crate) fn below(share: f64) -> u64 {
    if share >= 1.0 { u64::MAX } else { (share * u64::MAX as f64) as u64 }
}

/// Whether something with the share behind `below` happens.
pub(crate) fn happens(below: u64, random: &mut Random) -> bool {
    below == u64::MAX || (below > 0 && random.next_u64() < below)
}
