//! Goal: statements are defined as procedures when they first run, and dropped when nobody has use for them,
//! whatever the engine; also over checkpoints and restarts.

use fabius::block_on;
use fabius::{Database, EngineKind, Options, Value};

const ENGINES: [EngineKind; 3] = [EngineKind::Lazy, EngineKind::TwoPhaseLocking, EngineKind::Graph];

/// One more than is kept, with those that are dropped at a time.
const STATEMENTS: i64 = 512 + 128 + 1;

fn add(database: &Database, amount: i64) {
    let text = format!("procedure add(id: int) {{ counters[id].number += {amount} }}");
    let statement = database.statement_text(&text).unwrap();
    block_on(database.run(&statement, &[Value::Int(1)], None)).unwrap();
}

fn procedures(database: &Database) -> usize {
    database.definitions().catalog.procedures().count()
}

#[test]
fn statements_that_nobody_uses_are_dropped() {
    for engine in ENGINES {
        let directory = tempfile::tempdir().unwrap();
        let options =
            Options { engine, durability: fabius::Durability::None, workers: 1, ..Options::default() };
        let open = || Database::open(directory.path(), options).unwrap();
        let database = open();
        database.define("table counters { id: int, number: bigint, primary key (id) }").unwrap();
        database.define("procedure make(id: int) { insert counters { id: id, number: 0 } }").unwrap();
        database.call("make", &[Value::Int(1)]).unwrap();
        let held =
            database.statement_text("procedure p(id: int) { counters[id].number += 1000000 }").unwrap();
        block_on(database.run(&held, &[Value::Int(1)], None)).unwrap();
        (1..=STATEMENTS).for_each(|amount| add(&database, amount));
        // What is left: the user's own, the one that is held, and some of the others.
        let left = procedures(&database);
        assert!((2 + 512..2 + 512 + 128).contains(&left), "{engine:?}: {left}");
        // A dropped one comes back when it is run again.
        add(&database, 1);
        block_on(database.run(&held, &[Value::Int(1)], None)).unwrap();
        let sum = Value::BigInt(STATEMENTS * (STATEMENTS + 1) / 2 + 1 + 2_000_000);
        let number = |database: &Database| database.rows("counters").unwrap()[0][1].clone();
        assert_eq!(number(&database), sum);
        database.checkpoint().unwrap();
        let entries = database.definitions().entries.iter().map(|(_, entry)| entry.len()).sum::<usize>();
        drop(held);
        database.close().unwrap();
        let again = open();
        assert_eq!(number(&again), sum);
        let read = again.definitions().entries.iter().map(|(_, entry)| entry.len()).sum::<usize>();
        assert_eq!(read, entries, "{engine:?}: a dropped procedure is a name");
        // Those of before rest here, too.
        (1..=300).for_each(|amount| add(&again, STATEMENTS + amount));
        assert!(procedures(&again) < 2 + 512 + 128, "{engine:?}: {}", procedures(&again));
        again.close().unwrap();
    }
}
