//! Fabius, embedded: a transactional database for the rows that everyone wants at once.
//!
//! A transaction is a stored procedure; a call of it is put in order, made durable and promised, and
//! its work is done when it is cheapest. What you read is always what running the calls one at a time
//! would have given.
//!
//! ```
//! use fabius::{Database, Options, Value};
//!
//! # fn main() -> fabius::Result<()> {
//! let directory = tempfile::tempdir().expect("a temporary directory");
//! let database = Database::open(directory.path(), Options::default())?;
//! database.define(
//!     "table accounts { id: bigint, balance: bigint, primary key (id) using hash }
//!      procedure open_account(id: bigint, balance: bigint) {
//!          insert accounts { id: id, balance: balance }
//!      }
//!      procedure transfer(src: bigint, dst: bigint, amount: bigint) -> bigint {
//!          require accounts[src].balance >= amount, \"insufficient funds\"
//!          accounts[src].balance -= amount
//!          accounts[dst].balance += amount
//!          return accounts[src].balance
//!      }",
//! )?;
//! database.call("open_account", &[1i64.into(), 100i64.into()])?;
//! database.call("open_account", &[2i64.into(), 0i64.into()])?;
//!
//! // Returns when the transfer is decided and durable; the balance is computed when asked for.
//! let promise = database.call("transfer", &[1i64.into(), 2i64.into(), 30i64.into()])?;
//! assert_eq!(promise.result()?, [Value::BigInt(70)]);
//!
//! let refused = database.call("transfer", &[1i64.into(), 2i64.into(), 500i64.into()]);
//! assert_eq!(refused.unwrap_err().message(), "insufficient funds");
//! database.close()
//! # }
//! ```
//!
//! Clients that talk while their transaction is open use a [`Transaction`]; see [`session`].
//!
//! This crate knows nothing of wire formats or SQL.

mod call;
mod checkpoints;
mod database;
mod each;
mod history;
pub mod identity;
mod keyed;
mod meeting;
mod member;
mod opening;
mod options;
pub mod quantity;
mod recovery;
mod repair;
mod replay;
pub mod session;
mod signal;
mod statement;
mod statement_id;
mod unnamed;

pub use call::{Pending, Prepared, Promise};
pub use checkpoints::{Checkpoint, CheckpointStatus};
pub use database::Database;
pub use fabius_cluster::{
    Certificates, Member, Replication, Standing, Status as MemberStatus, certificate_name, has_run_ahead,
    other_leader,
};
pub use fabius_engine::checkpoint::Progress as CheckpointProgress;
pub use fabius_engine::counters::Counts;
pub use fabius_engine::room::Patience;
pub use fabius_engine::{
    Batch, BatchBuilder, Engine, Priority, Procedure, ScanPlace, Standpoint, TableScan, Ticket,
};
pub use fabius_engine_graph::Settings as GraphSettings;
pub use fabius_engine_lazy::Policy;
pub use fabius_engine_locking::Policy as LockingPolicy;
pub use fabius_engine_locking::policy::LockManager;
pub use fabius_engine_partitioned::Waiting;
pub use fabius_engine_split::Policy as SplitPolicy;
pub use fabius_env::NodeId;
pub use fabius_log::RecoveryReport;
pub use fabius_program as program;
pub use fabius_value::{DataType, Datum, Decimal, Error, Result, Seq, SqlState, Value};
pub use history::Moment;
pub use identity::is_member;
pub use keyed::KeyedCall;
pub use member::{Connect, MemberChange, init_member, must_be_filled};
pub use options::{Durability, EngineKind, Options, THREADS_MAX};
pub use repair::{Repair, is_damaged_member, repair_member};
pub use replay::LoggedCall;
pub use session::allowance::{Allowance, Held};
pub use session::block_on::block_on;
pub use session::conventional::grain::Grain;
pub use session::expression::FutureValue;
pub use session::future::FutureTransaction;
pub use session::hold::Hold;
pub use session::lock::Lock;
pub use session::reading::ReaderStandpoint;
pub use session::recall::Recall;
pub use session::requirement::{Footing, Requirement, lost_footing};
pub use session::row_range::{FutureRows, RowRange};
pub use session::savepoint::Savepoint;
pub use session::transaction::Transaction;
pub use session::transaction_options::{Concurrency, TransactionOptions};
pub use session::wait::Wait;
pub use session::wound_wait::Age;
pub use statement::{Outcome, Statement};
pub use statement_id::StatementId;

/// The Rust of README, which has to compile too.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
