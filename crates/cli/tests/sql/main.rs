//! SQL by feature: scripts in the sqllogictest format, run on `fabius serve`, and on PostgreSQL where there is one.
//!
//! A script in `scripts` says for each statement what PostgreSQL 15 gives: the number of rows that are changed, rows
//! with the types of their columns (`client.rs` says which letter is which), or a SQLSTATE. Each runs on a fresh
//! database, once with simple and once with extended queries, on Fabius and on a PostgreSQL that the test starts, so
//! what a script expects is true of both. Where Fabius differs on purpose, a record says `skipif` or `onlyif`, and
//! `docs/sql.md` why.
//!
//! `expressions` has expressions alone, each run as a program and as a query.
//!
//! ```text
//! cargo test --test sql -- joins                          scripts of that name
//! UPDATE_SCRIPTS=1 cargo test --test sql -- joins         writes what PostgreSQL gives into the script
//! ```

mod client;
mod expressions;
#[path = "../server/raw.rs"]
#[allow(dead_code, reason = "shared with tests that need more of it")]
mod raw;
mod script;

use client::{Client, Protocol};
use expressions::Expressions;
use fabius_bench::peers::pgbench::find_postgres;
use fabius_bench::server_process::ServerProcess;
use script::Script;
use sqllogictest::harness::{Arguments, Failed, Trial, run};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long PostgreSQL may take to begin.
const PATIENCE: Duration = Duration::from_secs(60);

/// The PostgreSQL that all scripts share; it starts with the first that needs it.
type Postgres = Arc<Mutex<Option<ServerProcess>>>;

fn main() {
    let postgres = Postgres::default();
    let is_there = find_postgres().is_some();
    if !is_there {
        assert!(std::env::var_os("FABIUS_CLIENTS_REQUIRED").is_none(), "PostgreSQL is not there");
        eprintln!("not compared: PostgreSQL is not there (Debian: apt install postgresql)");
    }
    let updates = std::env::var_os("UPDATE_SCRIPTS").is_some();
    let mut trials = Vec::new();
    for script in Script::all(Path::new("tests/sql/scripts")) {
        let script = Arc::new(script);
        if updates {
            let (script, postgres) = (script.clone(), postgres.clone());
            trials.push(Trial::test(script.name.clone(), move || {
                let _alone = alone(&script);
                script.update(|| on_postgres(&postgres, &script.name, Protocol::Simple))
            }));
            continue;
        }
        for protocol in [Protocol::Simple, Protocol::Extended] {
            let name = format!("{}::{}", script.name, protocol.name());
            let (on_both, shared) = (script.clone(), postgres.clone());
            trials.push(Trial::test(format!("fabius::{name}"), move || on_fabius(&on_both, protocol)));
            if is_there {
                let (script, database) = (script.clone(), format!("{}_{}", script.name, protocol.name()));
                trials.push(Trial::test(format!("postgresql::{name}"), move || {
                    let _alone = alone(&script);
                    script.check(|| on_postgres(&shared, &database, protocol))
                }));
            }
        }
    }
    for expressions in Expressions::all(Path::new("tests/sql/expressions")) {
        let expressions = Arc::new(expressions);
        let (name, database) = (expressions.name.clone(), format!("expressions_{}", expressions.name));
        if updates {
            let (expressions, postgres) = (expressions.clone(), postgres.clone());
            trials.push(Trial::test(format!("expressions::{name}"), move || {
                let other = on_postgres(&postgres, &database, Protocol::Simple)?;
                with_fabius(|fabius| expressions.update(other, fabius))
            }));
            continue;
        }
        let on_both = expressions.clone();
        trials.push(Trial::test(format!("fabius::expressions::{name}"), move || {
            with_fabius(|fabius| on_both.check_fabius(fabius))
        }));
        if is_there {
            let shared = postgres.clone();
            trials.push(Trial::test(format!("postgresql::expressions::{name}"), move || {
                expressions.check_postgresql(on_postgres(&shared, &database, Protocol::Simple)?)
            }));
        }
    }
    let conclusion = run(&Arguments::from_args(), trials);
    // It is stopped before the process ends.
    drop(postgres.lock().map(|mut server| server.take()));
    conclusion.exit();
}

/// Roles are those of the whole server: scripts that make some take turns on PostgreSQL, and leave none.
fn alone(script: &Script) -> Option<MutexGuard<'static, ()>> {
    static ROLES: Mutex<()> = Mutex::new(());
    let makes_roles = script.name.starts_with("roles");
    makes_roles.then(|| ROLES.lock().unwrap_or_else(PoisonError::into_inner))
}

fn on_fabius(script: &Script, protocol: Protocol) -> Result<(), Failed> {
    let program = Path::new(env!("CARGO_BIN_EXE_fabius"));
    let mut server = ServerProcess::fabius(program, None, &["--durability", "none"])?;
    script.check(|| Client::begin("fabius", server.port, &server.user, "fabius", protocol)).map_err(
        |failed| {
            format!("{}\n\nthe server says:\n{}", failed.message().unwrap_or_default(), server.log()).into()
        },
    )
}

/// Does something in a session on a new database.
fn with_fabius(work: impl FnOnce(Client) -> Result<(), Failed>) -> Result<(), Failed> {
    let program = Path::new(env!("CARGO_BIN_EXE_fabius"));
    let server = ServerProcess::fabius(program, None, &["--durability", "none"])?;
    work(Client::begin("fabius", server.port, &server.user, "fabius", Protocol::Simple)?)
}

/// A session on a database of the script's own.
fn on_postgres(postgres: &Postgres, database: &str, protocol: Protocol) -> Result<Client, client::Refused> {
    let mut server = postgres.lock().map_err(|_| client::Refused::other("PostgreSQL did not start"))?;
    if server.is_none() {
        let programs = find_postgres().ok_or_else(|| client::Refused::other("there is no PostgreSQL"))?;
        let started = ServerProcess::postgres(&programs, None, 50);
        *server = Some(started.map_err(|error| client::Refused::other(&error.to_string()))?);
    }
    let (port, user) = server.as_ref().map(|server| (server.port, server.user.clone())).expect("it runs");
    let begun = Instant::now();
    let mut admin = loop {
        match Client::begin("postgresql", port, &user, "postgres", Protocol::Simple) {
            // It takes connections before it takes sessions.
            Err(refused) if refused.state == "57P03" && begun.elapsed() < PATIENCE => {}
            other => break other?,
        }
    };
    // A second session of a script finds it there.
    let _ = admin.answer(&format!("CREATE DATABASE \"{database}\""));
    Client::begin("postgresql", port, &user, database, protocol)
}
