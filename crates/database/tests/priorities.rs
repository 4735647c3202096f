//! Urgent calls overtake others that have not begun.

use fabius::{Database, EngineKind, Options, Priority};

const PROGRAM: &str = "
table counters { id: int, n: bigint, primary key (id) }
procedure add(id: int) -> bigint {
    counters[id].n += 1
    return counters[id].n
}
procedure make(id: int) { insert counters { id: id, n: 0 } }";

/// Goal: on every engine the calls that wait come by their priority, those of one priority in the order in which they
/// were handed in, and those of low priority in the end.
#[test]
fn urgent_calls_come_first() {
    for engine in EngineKind::ALL {
        let database = Database::in_memory(Options { engine, workers: 0, ..Options::default() });
        database.define(PROGRAM).unwrap();
        database.call("make", &[0.into()]).unwrap();
        let add = database.prepare("add").unwrap();
        let submit = |priority| add.clone().with_priority(priority).submit(&[0.into()]).unwrap();
        let waiting: Vec<_> = [
            Priority::Low,
            Priority::Normal,
            Priority::Low,
            Priority::Normal,
            Priority::High,
            Priority::High,
        ]
        .map(submit)
        .into();
        let promises = waiting.into_iter().map(|pending| pending.wait().unwrap());
        let order: Vec<_> = promises.map(|promise| promise.result().unwrap()[0].as_integer()).collect();
        assert_eq!(order, [5, 3, 6, 4, 1, 2].map(Some), "{engine}");
    }
}
