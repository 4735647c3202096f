//! `fabius serve` as its clients see it: a real process, real clients, and clients that mean no good.

mod clients;
mod hostile;
mod kill;
mod language;
mod limits;
mod pgbench;
mod protocol;
mod psql;
mod raw;
mod shutdown;
mod support;
