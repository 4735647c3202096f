//! Calls of the log run again, whichever engine has put them there, and by however many threads.

use fabius::{Database, Durability, EngineKind, Options, Seq, Value};
use std::thread;

const COUNTER: &str = "
table counters { id: bigint, n: bigint, primary key (id) using hash }
procedure make(id: bigint) { insert counters { id: id, n: 0 } }
procedure increment(id: bigint) -> bigint { counters[id].n += 1  return counters[id].n }";
const THREADS: i64 = 4;
const CALLS: i64 = 8;

/// Goal: every call of the log can be run again, in the state that it saw, though calls of several threads have come to
/// the log in any order; what is behind the last is said not to be there.
#[test]
fn calls_of_every_engine_run_again() {
    for engine in EngineKind::ALL {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { engine, workers: 2, durability: Durability::None, ..Options::default() };
        let database = Database::open(directory.path(), options).unwrap();
        database.define(COUNTER).unwrap();
        database.call("make", &[1i64.into()]).unwrap();
        thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    for _ in 0..CALLS {
                        let promise = database.call("increment", &[1i64.into()]).unwrap();
                        promise.result().unwrap();
                    }
                });
            }
        });
        let mut seen = Vec::new();
        for seq in 1.. {
            match database.replay(Seq(seq)) {
                Ok((before, call)) if call.procedure.program.name == "increment" => {
                    let again = before.call("increment", &call.arguments).unwrap();
                    seen.extend(again.result().unwrap());
                }
                Ok(_) => {}
                Err(error) if error.message().ends_with("is no call") => {}
                Err(error) => {
                    assert_eq!(error.message(), format!("the log has no entry {seq}"), "{engine}");
                    break;
                }
            }
        }
        let all: Vec<Value> = (1..=THREADS * CALLS).map(Value::BigInt).collect();
        assert_eq!(seen, all, "{engine}");
    }
}
