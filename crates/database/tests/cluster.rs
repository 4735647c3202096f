//! Three nodes of a cluster in one process, over TCP.

use fabius::{
    Database, Member, MemberChange, Options, SqlState, Value, block_on, identity, init_member, must_be_filled,
};
use std::path::Path;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const DEFINITIONS: &str = "
table counters { id: int, value: bigint, primary key (id) }
procedure open(id: int) { insert counters { id: id, value: 0 } }
procedure count(id: int) -> bigint { counters[id].value += 1  return counters[id].value }
procedure value(id: int) -> bigint { return counters[id].value }";

/// How long anything may take before it counts as stuck.
const PATIENCE: Duration = Duration::from_secs(60);

fn members(count: u64) -> Vec<Member> {
    let address = || format!("127.0.0.1:{}", fabius_env::free_port().expect("a free port"));
    (1..=count).map(|node| Member { node, address: address(), votes: true }).collect()
}

fn options() -> Options {
    Options { workers: 1, ..Options::default() }
}

fn open(path: &Path) -> Database {
    Database::open_member(path, options(), None).unwrap_or_else(|error| panic!("{error}"))
}

/// A cluster of three, in directories of their own.
fn cluster() -> (Vec<TempDir>, Vec<Database>) {
    let (members, id) = (members(3), identity::make());
    let directories: Vec<TempDir> = (0..3).map(|_| TempDir::new().expect("a directory")).collect();
    for (member, directory) in members.iter().zip(&directories) {
        init_member(directory.path(), member.node, members.clone(), id).expect("an empty directory");
    }
    let databases = directories.iter().map(|directory| open(directory.path())).collect();
    (directories, databases)
}

fn leader(databases: &[Option<Database>]) -> usize {
    let begun = Instant::now();
    loop {
        let leads = |database: &Option<Database>| database.as_ref().is_some_and(Database::leads);
        if let Some(at) = databases.iter().position(leads) {
            return at;
        }
        assert!(begun.elapsed() < PATIENCE, "nobody leads");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Goal: calls are agreed on whichever node they are handed in at, every node has all of them, and reads what was
/// answered anywhere; without one of three nodes the others go on; one that comes back has what it missed.
#[test]
fn any_node_takes_calls_and_any_may_be_missing() {
    let (directories, databases) = cluster();
    databases[1].define(DEFINITIONS).expect("they are agreed on");
    block_on(databases[2].catch_up()).expect("a majority answers");
    databases[2].call("open", &[1.into()]).expect("it is agreed on");
    let mut databases: Vec<Option<Database>> = databases.into_iter().map(Some).collect();
    let mut counted = 0;
    for missing in [None, Some(leader(&databases)), None] {
        if let Some(missing) = missing {
            databases[missing].take().expect("it was there").close().expect("it closes");
        }
        for turn in 0..30 {
            let database = databases.iter().flatten().cycle().nth(turn).expect("some are there");
            counted += 1;
            // It may have been opened a moment ago, and know no procedure yet.
            block_on(database.catch_up()).expect("a majority answers");
            let promise = database.call("count", &[1.into()]).expect("it is agreed on");
            assert_eq!(promise.result().expect("a result"), [Value::BigInt(counted)]);
            for reader in databases.iter().flatten() {
                block_on(reader.catch_up()).expect("a majority answers");
                assert_eq!(reader.query("value", &[1.into()]).expect("it reads"), [Value::BigInt(counted)]);
            }
        }
        for (database, directory) in databases.iter_mut().zip(&directories) {
            database.get_or_insert_with(|| open(directory.path()));
        }
    }
    let rows = |database: &Database| database.rows("counters").expect("a table");
    let all: Vec<_> = databases.iter().flatten().map(rows).collect();
    assert!(all.iter().all(|rows| *rows == all[0]), "{all:?}");
}

/// Goal: a key is answered with the first outcome, by whichever node and after whichever failure.
#[test]
fn keys_hold_over_a_change_of_leaders() {
    let (_directories, databases) = cluster();
    databases[0].define(DEFINITIONS).expect("they are agreed on");
    databases[0].call("open", &[1.into()]).expect("it is agreed on");
    let mut databases: Vec<Option<Database>> = databases.into_iter().map(Some).collect();
    let count = |database: &Database, key: &str| {
        block_on(database.catch_up()).expect("a majority answers");
        let prepared = database.prepare("count").expect("a procedure").with_key(key);
        let promise = prepared.call(&[1.into()]).expect("it is agreed on");
        promise.result().expect("a result")
    };
    let at = leader(&databases);
    assert_eq!(count(databases[at].as_ref().expect("it leads"), "first"), [Value::BigInt(1)]);
    drop(databases[at].take());
    let other = databases.iter().flatten().next().expect("two are left");
    assert_eq!(count(other, "first"), [Value::BigInt(1)]);
    assert_eq!(count(other, "second"), [Value::BigInt(2)]);
}

fn await_that(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "not yet: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Goal: nodes take checkpoints at the same place and compare digests of them; a node opens again from one, and goes
/// on behind it.
#[test]
fn a_node_begins_with_a_checkpoint() {
    let (directories, mut databases) = cluster();
    databases[0].define(DEFINITIONS).expect("they are agreed on");
    databases[0].call("open", &[1.into()]).expect("it is agreed on");
    block_on(databases[1].catch_up()).expect("a majority answers");
    for _ in 0..20 {
        databases[1].call("count", &[1.into()]).expect("it is agreed on");
    }
    let last = databases.pop().expect("three");
    block_on(last.catch_up()).expect("a majority answers");
    let checkpoint = last.checkpoint().expect("it is written");
    assert!(checkpoint.is_new);
    // Every node has taken one there, and found that all have the same.
    for database in databases.iter().chain([&last]) {
        let compared = || database.member_status().and_then(|status| status.compared);
        await_that("digests were compared", || compared().is_some_and(|compared| compared.same == [1, 2, 3]));
        assert_eq!(compared().map(|compared| compared.seq), Some(checkpoint.seq));
        assert_eq!(database.checkpoint_status().newest, Some(checkpoint.seq));
    }
    databases[1].call("count", &[1.into()]).expect("it is agreed on");
    last.close().expect("it closes");
    let last = open(directories[2].path());
    block_on(last.catch_up()).expect("a majority answers");
    assert_eq!(last.query("value", &[1.into()]).expect("it reads"), [Value::BigInt(21)]);
    assert_eq!(last.member_status().expect("a member").members.len(), 3);
}

/// Goal: a node that was away for more than any message holds gets all of it, also from nodes that have begun with a
/// checkpoint meanwhile.
#[test]
fn who_was_away_for_long_catches_up() {
    let (directories, mut databases) = cluster();
    let keep = "table kept { id: int, note: text, primary key (id) }
        procedure keep(id: int, note: text) { insert kept { id: id, note: note } }
        procedure kept(id: int) -> bigint { return length(kept[id].note)::bigint }";
    databases[0].define(keep).expect("they are agreed on");
    databases.pop().expect("three").close().expect("it closes");
    let note = "x".repeat(500_000);
    block_on(databases[0].catch_up()).expect("a majority answers");
    let pending = |id: i32| {
        let prepared = databases[0].prepare("keep").expect("a procedure");
        prepared.submit(&[id.into(), note.as_str().into()]).expect("arguments fit")
    };
    // More than the 64 MiB of a message.
    for ids in (0..160).collect::<Vec<i32>>().chunks(20) {
        let pending: Vec<_> = ids.iter().map(|id| pending(*id)).collect();
        pending.into_iter().for_each(|pending| drop(pending.wait().expect("two agree on it")));
    }
    databases[0].checkpoint().expect("it is written");
    databases.into_iter().for_each(|database| database.close().expect("it closes"));
    let databases: Vec<_> = directories.iter().map(|directory| open(directory.path())).collect();
    block_on(databases[2].catch_up()).expect("a majority answers");
    for id in [0, 80, 159] {
        assert_eq!(databases[2].query("kept", &[id.into()]).expect("it reads"), [Value::BigInt(500_000)]);
    }
    databases.into_iter().for_each(|database| database.close().expect("it closes"));
}

/// Goal: a node that needs what the others have let go of says so and stops; opened again it is filled from a
/// checkpoint and goes on, a node that is new likewise; rows, keys and definitions are those of the others.
#[test]
fn who_was_away_for_too_long_is_filled() {
    let (members, id) = (members(4), identity::make());
    let directories: Vec<TempDir> = (0..4).map(|_| TempDir::new().expect("a directory")).collect();
    let newcomer = Member { votes: false, ..members[3].clone() };
    for (at, directory) in directories.iter().enumerate() {
        let me = if at < 3 { None } else { Some(newcomer.clone()) };
        let known = members[..3].iter().cloned().chain(me).collect();
        init_member(directory.path(), members[at].node, known, id).expect("an empty directory");
    }
    let mut databases: Vec<_> = (0..3).map(|at| Some(open(directories[at].path()))).collect();
    databases[0].as_ref().expect("it is there").define(DEFINITIONS).expect("they are agreed on");
    databases[2].take().expect("it is there").close().expect("it closes");
    let counts = |database: &Database, key: String| {
        let prepared = database.prepare("count").expect("a procedure").with_key(key);
        prepared.call(&[1.into()]).expect("two agree on it").result().expect("a result")
    };
    let of = |at: usize| databases[at].as_ref().expect("it is there");
    block_on(of(1).catch_up()).expect("a majority answers");
    of(1).call("open", &[1.into()]).expect("two agree on it");
    (0..20).for_each(|number| drop(counts(of(1), format!("key {number}"))));
    let leader = leader(&databases);
    // It lets go of its log once it has noticed that the node is away.
    let first = |at: usize| of(at).member_status().map_or(0, |status| status.standing.first);
    await_that("the log begins at a checkpoint", || {
        of(1).call("count", &[1.into()]).expect("two agree on it");
        of(leader).checkpoint().expect("it is written");
        first(leader) > 20
    });
    let value = of(leader).query("value", &[1.into()]).expect("it reads");
    for at in [2, 3] {
        let path = directories[at].path();
        let behind = open(path);
        if at == 3 {
            assert_eq!(of(leader).change_members(MemberChange::Add(newcomer.clone())), Ok(true));
        }
        await_that("it is too far behind", || must_be_filled(path));
        let told = behind.close().expect_err("it has stopped").to_string();
        assert!(told.contains("too far behind"), "{told}");
        let filled = open(path);
        assert!(!must_be_filled(path));
        block_on(filled.catch_up()).expect("a majority answers");
        assert_eq!(filled.query("value", &[1.into()]).expect("it reads"), value);
        assert_eq!(counts(&filled, "key 7".into()), [Value::BigInt(8)], "the first outcome of a key");
        let compared = || filled.member_status().and_then(|status| status.compared);
        of(leader).checkpoint().expect("it is written");
        await_that("digests were compared", || compared().is_some_and(|compared| compared.same.len() >= 3));
        filled.close().expect("it closes");
        // It goes on from its own log.
        let again = open(path);
        block_on(again.catch_up()).expect("a majority answers");
        assert_eq!(again.query("value", &[1.into()]).expect("it reads"), value);
    }
}

/// Goal: a node is let in, catches up, is given a vote and the lead, and removes another; the others go on.
#[test]
fn members_come_and_go() {
    let (members, id) = (members(4), identity::make());
    let directories: Vec<TempDir> = (0..4).map(|_| TempDir::new().expect("a directory")).collect();
    let newcomer = Member { votes: false, ..members[3].clone() };
    for (at, directory) in directories.iter().enumerate() {
        let known = if at < 3 {
            members[..3].to_vec()
        } else {
            [&members[..3], std::slice::from_ref(&newcomer)].concat()
        };
        init_member(directory.path(), members[at].node, known, id).expect("an empty directory");
    }
    let databases: Vec<_> = directories.iter().map(|directory| Some(open(directory.path()))).collect();
    let of = |at: usize| databases[at].as_ref().expect("it is there");
    of(0).define(DEFINITIONS).expect("they are agreed on");
    of(0).call("open", &[1.into()]).expect("it is agreed on");
    let first = leader(&databases);
    let change = |at: usize, change: MemberChange| of(at).change_members(change);
    assert_eq!(change(first, MemberChange::Add(newcomer.clone())), Ok(true));
    block_on(of(first).catch_up()).expect("a majority answers");
    of(first).call("count", &[1.into()]).expect("it is agreed on");
    block_on(of(3).catch_up()).expect("it follows");
    assert_eq!(of(3).query("value", &[1.into()]).expect("it reads"), [Value::BigInt(1)]);
    assert_eq!(change(first, MemberChange::Add(Member { votes: true, ..newcomer })), Ok(true));
    let refused = change(3, MemberChange::Remove(1)).expect_err("it does not lead");
    assert_eq!(refused.state(), SqlState::NOT_IN_STATE);
    assert_eq!(change(first, MemberChange::Lead(4)), Ok(true));
    let begun = Instant::now();
    while !of(3).leads() {
        assert!(begun.elapsed() < PATIENCE, "it has the lead");
        std::thread::sleep(Duration::from_millis(5));
    }
    let itself = change(3, MemberChange::Remove(4)).expect_err("it leads");
    assert!(itself.to_string().contains("remove itself"), "{itself}");
    assert_eq!(change(3, MemberChange::Remove(members[first].node)), Ok(true));
    of(3).call("count", &[1.into()]).expect("three others agree on it");
}

/// Goal: what was at a time is the same on every node.
#[test]
fn every_node_has_the_same_past() {
    let (members, id) = (members(3), identity::make());
    let directories: Vec<TempDir> = (0..3).map(|_| TempDir::new().expect("a directory")).collect();
    let keeping = Options { history: Some(Duration::from_secs(600)), ..options() };
    let open = |at: usize| {
        init_member(directories[at].path(), members[at].node, members.clone(), id)
            .expect("an empty directory");
        Database::open_member(directories[at].path(), keeping, None).unwrap_or_else(|error| panic!("{error}"))
    };
    let databases: Vec<Database> = (0..3).map(open).collect();
    databases[0].define(DEFINITIONS).expect("they are agreed on");
    databases[0].call("open", &[1.into()]).expect("it is agreed on");
    let now = || {
        let since = std::time::UNIX_EPOCH.elapsed().expect("it is later than that");
        i64::try_from(since.as_micros()).expect("it is not that late")
    };
    let begun = now();
    for _ in 0..50 {
        databases[0].call("count", &[1.into()]).expect("it is agreed on");
        std::thread::sleep(Duration::from_millis(1));
    }
    let ended = now();
    std::thread::sleep(Duration::from_millis(5));
    // Behind a later call nothing before it changes.
    databases[0].call("count", &[1.into()]).expect("it is agreed on");
    databases.iter().for_each(|database| block_on(database.catch_up()).expect("a majority answers"));
    let mut seen = Vec::new();
    for step in 0..200 {
        let time_us = begun + (ended - begun) * step / 200;
        let at = |database: &Database| {
            let standpoint = database.standpoint_at_time(time_us).expect("it is kept");
            database.query_at(&standpoint, "value", &[1.into()]).expect("it reads")
        };
        let values: Vec<_> = databases.iter().map(at).collect();
        assert!(values.iter().all(|value| *value == values[0]), "at {time_us}: {values:?}");
        seen.push(values[0].clone());
    }
    seen.dedup();
    assert!(seen.len() > 10, "time has gone on: {seen:?}");
}

/// Goal: what cannot be a node of a cluster says why.
#[test]
fn what_cannot_be_a_node_says_why() {
    let directory = TempDir::new().expect("a directory");
    let error = |result: fabius::Result<()>| result.expect_err("refused").to_string();
    let id = identity::make();
    let stranger = error(init_member(directory.path(), 9, members(3), id));
    assert!(stranger.contains("node 9 is not one of the members"), "{stranger}");
    let mut twice = members(2);
    twice[1].node = 1;
    assert!(error(init_member(directory.path(), 1, twice, id)).contains("not twice 1"));
    init_member(directory.path(), 1, members(3), id).expect("an empty directory");
    let again = error(init_member(directory.path(), 1, members(3), id));
    assert!(again.contains("already"), "{again}");
    let alone = error(Database::open(directory.path(), options()).map(drop));
    assert!(alone.contains("node of a cluster"), "{alone}");
    let other = TempDir::new().expect("a directory");
    let none = error(Database::open_member(other.path(), options(), None).map(drop));
    assert!(none.contains("no node of a cluster"), "{none}");
}
