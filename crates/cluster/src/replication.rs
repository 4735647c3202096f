//! When the node that leads answers: agreed or asynchronous replication (Calvin, section 3.1.1).

use fabius_value::{Error, Result, SqlState};
use std::fmt;
use std::str::FromStr;

/// When a call is run, and whoever waits for it is told, on the node that leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Replication {
    /// When a majority has it: it is never lost.
    #[default]
    Agreed,
    /// When the leader has it. What the others do not have yet when the leader is lost may be lost with it.
    Asynchronous,
}

impl FromStr for Replication {
    type Err = Error;

    fn from_str(name: &str) -> Result<Replication> {
        match name {
            "sync" => Ok(Replication::Agreed),
            "async" => Ok(Replication::Asynchronous),
            _ => Err(Error::new(SqlState::INVALID_PARAMETER, format!("there is no replication {name:?}"))
                .with_hint("replication is sync or async")),
        }
    }
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Replication::Agreed => "sync",
            Replication::Asynchronous => "async",
        })
    }
}
