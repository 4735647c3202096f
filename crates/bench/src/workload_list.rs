//! The workloads there are, by their names.

use crate::workload::WorkloadKind;
use crate::workloads::{assert, burst, calvin_micro, cart, hot, like, rmw10, rubis, tpcc, ycsb};
use fabius_value::{Error, Result, SqlState};

/// Every workload; a new one is one file and one line here.
pub const WORKLOADS: &[WorkloadKind] = &[
    rmw10::KIND,
    cart::KIND,
    burst::KIND,
    tpcc::KIND,
    ycsb::KIND,
    hot::KIND,
    assert::KIND,
    like::KIND,
    rubis::KIND,
    calvin_micro::KIND,
];

/// The workload of a name.
///
/// # Errors
/// `22023` if there is none; the hint names those there are.
pub fn find(name: &str) -> Result<&'static WorkloadKind> {
    WORKLOADS.iter().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<&str> = WORKLOADS.iter().map(|kind| kind.name).collect();
        Error::new(SqlState::INVALID_PARAMETER, format!("there is no workload {name:?}"))
            .with_hint(format!("workloads are {}", names.join(", ")))
    })
}
