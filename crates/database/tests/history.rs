//! Goal: what was can be read for as long as it is kept, by seq and by time, and not beyond.

use fabius::program::arguments;
use fabius::{BatchBuilder, Database, Datum, EngineKind, Options, Seq, Standpoint, TableScan, Value};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const TABLES: &str = "
table counters { id: int, number: bigint, primary key (id) }
procedure put(id: int, number: bigint) { upsert counters { id: id, number: number } }
procedure get(id: int) -> bigint { return counters[id].number }
";

fn database(engine: EngineKind, history: Option<Duration>) -> Database {
    let database = Database::in_memory(Options { engine, history, workers: 1, ..Options::default() });
    database.define(TABLES).unwrap();
    database
}

fn numbers(database: &Database, at: &Standpoint<'_>) -> Vec<i64> {
    let table = at.definitions().catalog.find_table("counters").unwrap();
    let scan = TableScan::whole(table, at.definitions().table(table).schema());
    let mut numbers = Vec::new();
    let mut visit = |row: &[Datum<'_>]| {
        numbers.push(row[1].int());
        Ok(true)
    };
    database.engine().scan_at(at, &scan, &mut visit).unwrap();
    numbers
}

/// The present by its time, once `seq` counts as promised then: times are known to a few milliseconds.
fn newest_by_time(database: &Database, seq: Seq) -> (i64, Standpoint<'static>) {
    let begun = Instant::now();
    loop {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as i64;
        let newest = database.standpoint_at_time(now).unwrap();
        if newest.seq() == seq {
            return (now, newest);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?} instead of {seq:?}", newest.seq());
    }
}

#[test]
fn the_past_is_there() {
    for engine in [EngineKind::Lazy, EngineKind::TwoPhaseLocking, EngineKind::Graph] {
        let database = database(engine, Some(Duration::from_secs(3600)));
        let mut seqs = Vec::new();
        for number in 0..50i64 {
            database.call("put", &[Value::Int(1), number.into()]).unwrap();
            seqs.push(database.standpoint().seq());
        }
        for (number, seq) in seqs.iter().enumerate() {
            let at = database.standpoint_at(*seq).unwrap();
            assert_eq!((at.seq(), numbers(&database, &at)), (*seq, vec![number as i64]));
        }
        let (now, newest) = newest_by_time(&database, seqs[49]);
        assert_eq!(numbers(&database, &newest), [49]);
        let state = |result: fabius::Result<Standpoint<'static>>| result.err().unwrap().state().to_string();
        assert_eq!(state(database.standpoint_at(Seq(1_000_000))), "55000");
        assert_eq!(state(database.standpoint_at_time(now + 60_000_000)), "55000");
        assert_eq!(state(database.standpoint_at_time(0)), "55000");
        // A table that was dropped is in its past.
        database.define("drop table counters").unwrap();
        let at = database.standpoint_at(seqs[7]).unwrap();
        assert_eq!(at.seq(), seqs[7]);
    }
}

/// Goal: procedures read what was where the caller stands, now or in the past, with the procedures and tables there
/// were then.
#[test]
fn procedures_are_run_where_one_stands() {
    for engine in EngineKind::ALL {
        let database = database(engine, Some(Duration::from_secs(3600)));
        let mut places = Vec::new();
        for number in 0..20i64 {
            database.call("put", &[Value::Int(1), number.into()]).unwrap();
            places.push(database.standpoint());
        }
        database.define("procedure get(id: int) -> bigint { return counters[id].number + 1000 }").unwrap();
        let get = |at: &Standpoint<'static>| database.query_at(at, "get", &[Value::Int(1)]);
        for (number, held) in places.iter().enumerate() {
            let expected = Ok(vec![Value::BigInt(number as i64)]);
            assert_eq!(get(held), expected, "{engine}");
            assert_eq!(get(&database.standpoint_at(held.seq()).unwrap()), expected, "{engine}");
        }
        assert_eq!(get(&database.standpoint()), Ok(vec![Value::BigInt(1019)]), "{engine}");
        assert_eq!(database.query("get", &[Value::Int(1)]), Ok(vec![Value::BigInt(1019)]), "{engine}");
        let state = |result: fabius::Result<Vec<Value>>| result.err().unwrap().state().to_string();
        assert_eq!(state(database.query_at(&places[0], "gone", &[])), "42883");
        assert_eq!(state(database.query_at(&places[0], "put", &[Value::Int(1), 0i64.into()])), "25006");
        let elsewhere = Database::in_memory(Options { engine, workers: 0, ..Options::default() });
        assert_eq!(state(elsewhere.query_at(&places[0], "get", &[Value::Int(1)])), "22023");
        database.define("drop table counters").unwrap();
        assert_eq!(get(&places[7]), Ok(vec![Value::BigInt(7)]), "{engine}");
    }
}

/// Goal: at the seq of a call there is the state behind it, or it is said that there is none, and which are nearest:
/// whatever engines do with calls that come together.
#[test]
fn a_state_that_never_was_is_not_shown() {
    const CALLS: i64 = 40;
    for engine in EngineKind::ALL {
        let database = database(engine, Some(Duration::from_secs(3600)));
        database.define("procedure raise(id: int, by: bigint) { counters[id].number += by }").unwrap();
        database.call("put", &[Value::Int(1), 0i64.into()]).unwrap();
        let before = database.standpoint().seq();
        for _ in 0..5 {
            let mut batch = BatchBuilder::new();
            let raise = database.procedure("raise").unwrap();
            let arguments = arguments::encode(&raise.program, &[Value::Int(1), 1i64.into()]).unwrap();
            (0..CALLS).for_each(|_| _ = batch.push(raise.id, &arguments, None, false).unwrap());
            let batch = batch.build();
            database.submit(batch.clone());
            database.wait(&batch);
        }
        let after = database.standpoint().seq();
        assert_eq!(after.0 - before.0, 5 * CALLS as u64);
        for seq in before.0..=after.0 {
            match database.standpoint_at(Seq(seq)) {
                Ok(at) => {
                    let number = (seq - before.0) as i64;
                    assert_eq!((at.seq(), numbers(&database, &at)), (Seq(seq), vec![number]), "{engine:?}");
                }
                Err(error) => {
                    assert_eq!(error.message(), format!("there is no state of its own at seq {seq}"));
                    let hint = error.hint().unwrap();
                    let nearest =
                        hint.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
                    let nearest: Vec<u64> = nearest.collect();
                    assert!(nearest[0] < seq && seq < nearest[1], "{engine:?} at {seq}: {hint}");
                    nearest.iter().for_each(|seq| _ = database.standpoint_at(Seq(*seq)).unwrap());
                }
            }
        }
    }
}

#[test]
fn what_is_not_kept_goes() {
    let none = database(EngineKind::Lazy, None);
    assert_eq!(none.standpoint_at(Seq(1)).err().unwrap().state().to_string(), "55000");
    let short = database(EngineKind::Lazy, Some(Duration::from_millis(20)));
    short.call("put", &[Value::Int(1), 1i64.into()]).unwrap();
    let seq = short.standpoint().seq();
    let begun = Instant::now();
    while short.standpoint_at(seq).is_ok() {
        short.call("put", &[Value::Int(1), 2i64.into()]).unwrap();
        assert!(begun.elapsed() < Duration::from_secs(20), "it is kept for ever");
    }
    assert_eq!(numbers(&short, &short.standpoint()), [2]);
}

/// Goal: tens of thousands of procedures are defined as fast as a few, and called as fast.
#[test]
fn many_procedures() {
    let database = database(EngineKind::Lazy, None);
    let define = |from: u32, to: u32| {
        let begun = Instant::now();
        for number in from..to {
            let text =
                format!("procedure p{number}(id: int) -> bigint null {{ return counters[id]?.number }}");
            database.define(&text).unwrap();
        }
        begun.elapsed()
    };
    let first = define(0, 500);
    define(500, 5_000);
    let last = define(5_000, 5_500);
    assert!(last < first * 5 + Duration::from_millis(200), "{first:?} for the first, {last:?} for the last");
    database.call("p4999", &[Value::Int(1)]).unwrap();
    for number in 0..500 {
        database.define(&format!("drop procedure p{number}")).unwrap();
    }
    assert!(database.call("p7", &[Value::Int(1)]).is_err());
    println!("500 definitions: {first:?} at first, {last:?} behind 5,000");
}
