//! `fabius serve` as its clients see it: a real process, real clients, and clients that mean no good.

mod clients;
mod cluster;
mod cluster_tls;
mod cursors;
mod database_names;
mod every_shape;
mod histories;
mod hostile;
mod idempotency;
mod interleaving;
mod isolation;
mod kill;
mod language;
mod large_statements;
mod lazy_state;
mod limits;
mod long_queries;
mod memory;
mod pgbench;
mod protocol;
mod psql;
mod raw;
mod shapes;
mod shutdown;
mod support;
mod waiting;
