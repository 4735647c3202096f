//! Random statements on PostgreSQL and on Fabius, side by side: `cargo xtask fuzz sql-differential`.
//!
//! ```text
//! seed --> schema and rows --> statements as trees --> printed in several forms --> PostgreSQL --+
//!                                                                       |                       +--> compared
//!                                                                       +----------> Fabius ----+       |
//!                                                             script of a few statements <-- shrunk <---+
//! ```
//!
//! | module | concept |
//! |---|---|
//! | `tree.rs`, `literal.rs`, `value_type.rs` | statements as trees, values, types |
//! | `schema.rs` | random tables and rows |
//! | `generator.rs` | choices, and what is in scope |
//! | `expression.rs`, `predicate.rs`, `window.rs`, `function_list.rs` | random expressions |
//! | `from_clause.rs`, `select.rs`, `write.rs`, `merge.rs` | random queries, and statements that write |
//! | `case.rs`, `statement.rs` | scripts, and the ways in which their statements are sent |
//! | `session.rs`, `server.rs`, `pair.rs` | the two databases |
//! | `compare.rs` | whether two answers are the same |
//! | `campaign.rs`, `shrink.rs`, `report.rs` | cases one after another, what differs, and how it is shown |
//! | `self_check.rs` | what a database says of itself |
//! | `known.rs` | what differs on purpose |

mod campaign;
mod case;
mod compare;
mod expression;
mod from_clause;
mod function_list;
mod generator;
pub mod known;
mod literal;
mod merge;
mod pair;
mod predicate;
mod report;
mod schema;
mod select;
mod self_check;
mod server;
mod session;
mod shrink;
mod statement;
mod tree;
mod value_type;
mod window;
mod write;

use pair::Pair;
use report::Report;
pub use server::{SERVE, serve};
use std::io::Result;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// What is to be run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The seed of the first case; those behind have the seeds that follow.
    pub seed: u64,
    /// Ends with this many cases.
    pub cases: Option<u64>,
    /// Ends when this many statements were compared.
    pub statements: Option<usize>,
    /// Cases at a time.
    pub jobs: usize,
    /// Whether to compare with a PostgreSQL, if it is there.
    pub with_postgres: bool,
    /// Where scripts of differences go.
    pub folder: PathBuf,
    /// The program whose `SERVE` is Fabius.
    pub program: PathBuf,
}

/// What a run has come to.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Statements that were sent.
    pub statements: usize,
    /// Cases that ended with a difference.
    pub differences: usize,
    /// For people.
    pub text: String,
}

/// Runs cases until there are enough.
///
/// # Errors
/// If a server does not start.
pub fn run(settings: &Settings) -> Result<Summary> {
    let postgres = match settings.with_postgres {
        true => server::Postgres::start(settings.jobs)?.map(Arc::new),
        false => None,
    };
    if postgres.is_none() {
        eprintln!(
            "there is no PostgreSQL to compare with: programs and queries are compared with queries that are not optimized"
        );
    }
    let next = AtomicU64::new(0);
    let total = Mutex::new(Report::new(settings));
    let compared = AtomicU64::new(0);
    let worker = |worker: usize| {
        let log = std::env::temp_dir().join(format!("sql-differential-{}-{worker}.log", std::process::id()));
        let mut pair = Pair::new(postgres.clone(), worker, settings.program.clone(), log.clone())?;
        loop {
            let case = next.fetch_add(1, Relaxed);
            let enough = settings.statements.is_some_and(|enough| compared.load(Relaxed) >= enough as u64);
            if enough || settings.cases.is_some_and(|cases| case >= cases) {
                let _ = std::fs::remove_file(&log);
                return Ok::<(), std::io::Error>(());
            }
            // What was found before tells what is worth shrinking.
            let mut report = Report::new(settings);
            if let Ok(total) = total.lock() {
                report.know(&total);
            }
            campaign::run_case(&mut pair, settings.seed + case, &mut report)?;
            compared.fetch_add(report.statements() as u64, Relaxed);
            if let Ok(mut total) = total.lock() {
                total.merge(report);
                if total.cases % 20 == 0 {
                    eprintln!("{}", total.progress());
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let worker = &worker;
        let workers: Vec<_> = (0..settings.jobs).map(|at| scope.spawn(move || worker(at))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker")).collect::<Result<Vec<()>>>()
    })?;
    let total = total.into_inner().expect("no worker has panicked");
    Ok(Summary { statements: total.statements(), differences: total.differences(), text: total.summary() })
}
