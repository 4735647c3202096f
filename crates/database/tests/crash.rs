//! Killing the process at any moment loses nothing that was acknowledged, and leaves nothing half done.
//!
//! The test runs itself again as a child that calls as fast as it can and prints a line per
//! acknowledged call; the parent kills it, opens the directory, and compares. Every call moves money
//! between two accounts, enters itself in a ledger, and counts itself, so half a call would show.
//!
//! `FABIUS_KILLS` sets how often (200 in CI, 2,000 in the long form); `FABIUS_SEED` the moments.

use fabius::{Database, EngineKind, Options, Value};
use fabius_env::Random;
use std::collections::HashSet;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const ACCOUNTS: i64 = 8;
const OPENING_BALANCE: i64 = 1_000_000;
const CHILD: &str = "FABIUS_CRASH_CHILD";

const PROGRAM: &str = "
table accounts { id: bigint, balance: bigint, primary key (id) using hash }
table ledger { id: bigint, amount: bigint, primary key (id) }
table totals { id: bigint, calls: bigint, primary key (id) using hash }
procedure set_up(accounts: bigint, balance: bigint) {
    for id in 1 to accounts {
        insert accounts { id: id, balance: balance }
    }
    insert totals { id: 1, calls: 0 }
}
procedure move_money(id: bigint, src: bigint, dst: bigint, amount: bigint) {
    require accounts[src].balance >= amount, \"insufficient funds\"
    accounts[src].balance -= amount
    accounts[dst].balance += amount
    insert ledger { id: id, amount: amount }
    totals[1].calls += 1
}";

fn options(engine: EngineKind) -> Options {
    Options { engine, workers: 1, ..Options::default() }
}

fn engine_of(round: u64) -> EngineKind {
    EngineKind::ALL[round as usize % EngineKind::ALL.len()]
}

/// What the child does until it is killed.
fn call_for_ever(directory: &Path, round: u64) {
    let database =
        Database::open(directory, options(engine_of(round))).expect("the child opens the database");
    if database.procedure("set_up").is_err() {
        database.define(PROGRAM).expect("the program is right");
        database.call("set_up", &[ACCOUNTS.into(), OPENING_BALANCE.into()]).expect("set up");
    }
    std::thread::scope(|scope| {
        // In every third life checkpoints are taken, so that some are killed with one half written, and the
        // next life begins with whatever they left.
        let checkpoints = if round.is_multiple_of(3) { 1 + round % 20 } else { 0 };
        scope.spawn({
            let database = &database;
            move || {
                if let Some(error) = (0..checkpoints).find_map(|_| database.checkpoint().err()) {
                    eprintln!("{error:?}");
                    std::process::exit(1);
                }
            }
        });
        for thread in 0..4u64 {
            let database = &database;
            scope.spawn(move || {
                let mut random = Random::seeded(round * 31 + thread);
                for number in 0u64.. {
                    let id = (round << 32 | thread << 24 | number) as i64;
                    let src = 1 + random.below(ACCOUNTS as u64) as i64;
                    let dst = 1 + random.below(ACCOUNTS as u64) as i64;
                    let call = [id.into(), src.into(), dst.into(), (random.below(100) as i64).into()];
                    if database.call("move_money", &call).is_ok() {
                        // One write per line, so that a line is whole or absent.
                        let line = format!("{id}\n");
                        std::io::stdout().write_all(line.as_bytes()).expect("the parent listens");
                    }
                }
            });
        }
    });
}

#[test]
fn killed_at_any_moment() {
    if let Ok(child) = std::env::var(CHILD) {
        let (round, directory) = child.split_once(' ').expect("round and directory");
        call_for_ever(Path::new(directory), round.parse().expect("a number"));
        return;
    }
    let number = |name: &str, otherwise: u64| {
        std::env::var(name).map_or(otherwise, |text| text.parse().expect("a number"))
    };
    let (kills, seed) = (number("FABIUS_KILLS", 200), number("FABIUS_SEED", 1));
    let mut random = Random::seeded(seed);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut acknowledged = HashSet::new();
    for round in 0..kills {
        let mut child = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "killed_at_any_moment", "--nocapture", "--test-threads=1"])
            .env(CHILD, format!("{round} {}", directory.path().display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the test runs itself");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let mut heard = lines.map_while(Result::ok).filter_map(|line| line.parse::<i64>().ok());
        if round % 4 == 3 {
            // While it opens, replays or begins: the moment is what is random here.
            std::thread::sleep(Duration::from_micros(random.below(30_000)));
        } else {
            acknowledged.extend(heard.by_ref().take(1 + random.index(200)));
        }
        child.kill().expect("the child is ours");
        acknowledged.extend(heard);
        let status = child.wait().expect("it ends");
        assert_eq!(status.code(), None, "the child of round {round} ended by itself: FABIUS_SEED={seed}");
        if round % 10 == 9 || round + 1 == kills {
            check(directory.path(), round, &acknowledged, seed);
        }
    }
    assert!(!acknowledged.is_empty(), "calls were acknowledged between the kills");
}

fn check(directory: &Path, round: u64, acknowledged: &HashSet<i64>, seed: u64) {
    let again = format!("FABIUS_SEED={seed} cargo test -p fabius --test crash (round {round})");
    let database = Database::open(directory, options(engine_of(round / 10)))
        .unwrap_or_else(|error| panic!("{error:?}: {again}"));
    if database.procedure("set_up").is_err() || database.rows("totals").expect(&again).is_empty() {
        assert!(acknowledged.is_empty(), "acknowledged calls are gone with their tables: {again}");
        return;
    }
    let integer = |value: &Value| value.as_integer().expect("a bigint");
    let ledger: HashSet<i64> =
        database.rows("ledger").expect(&again).iter().map(|row| integer(&row[0])).collect();
    let lost: Vec<&i64> = acknowledged.difference(&ledger).collect();
    assert!(lost.is_empty(), "{} acknowledged calls are gone, e.g. {:?}: {again}", lost.len(), lost[0]);
    let calls: i64 = database.rows("totals").expect(&again).iter().map(|row| integer(&row[1])).sum();
    assert_eq!(calls, ledger.len() as i64, "a call is half there: {again}");
    let money: i64 = database.rows("accounts").expect(&again).iter().map(|row| integer(&row[1])).sum();
    assert_eq!(money, ACCOUNTS * OPENING_BALANCE, "money was made or lost: {again}");
    database.close().expect(&again);
}
