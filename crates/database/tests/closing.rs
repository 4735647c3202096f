//! What a closed database leaves behind: nothing. A file of its own, since the memory account is the process's.

use fabius::{Database, EngineKind, Options, Policy, Value};
use fabius_storage::memory;

/// What threads have not told the account yet.
const UNTOLD_BYTES: usize = 64 << 10;

/// Goal: whatever an engine has in memory is given back when the database is closed: rows, versions, long values, and
/// calls that have been promised and never run.
#[test]
fn memory_is_given_back() {
    for engine in EngineKind::ALL {
        let policy = Policy { idle: false, chain_bound: 1_000_000, ..Policy::default() };
        let options = Options { engine, policy, workers: 1, ..Options::default() };
        let database = Database::in_memory(options);
        database
            .define(
                "table items { id: int, sold: bigint, note: text, seen: bigint, primary key (id), index notes (note) }
                 procedure add(id: int, note: text) { insert items { id: id, sold: 0, note: note, seen: 0 } }
                 procedure sell(id: int) {
                     if items[id].sold < 100 { items[id].sold += 1 }
                     items[id].seen += 1
                 }",
            )
            .unwrap();
        for id in 0..10_000 {
            let note = Value::Text(format!("{id} ").repeat(40));
            database.call("add", &[Value::Int(id), note]).unwrap();
        }
        for at in 0..20_000 {
            database.call("sell", &[Value::Int(at % 7)]).unwrap();
        }
        let open = memory::used();
        assert!(open > 500_000, "{engine}: {open} bytes in use");
        database.close().unwrap();
        let left = memory::used();
        assert!(left < UNTOLD_BYTES, "{engine}: {left} of {open} bytes are left");
    }
}
