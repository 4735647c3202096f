//! What is dropped, and who notices.

use super::{aborts, big, int, on_threads, settle};
use crate::rig::{Make, Rig};
use fabius_engine::{BatchBuilder, Procedure, Standpoint};
use fabius_program::arguments;
use fabius_value::{SqlState, Value};
use std::sync::Arc;

const TABLES: &str = "
table kept { id: int, sum: bigint, primary key (id) }
table gone { id: int, sum: bigint, note: text null, primary key (id), index by_sum (sum) }
procedure put(id: int, sum: bigint) {
    upsert gone { id: id, sum: sum, note: 'a note that is longer than a word: ' || sum::text }
    upsert kept { id: id, sum: sum }
}
procedure add(id: int, by: bigint) -> bigint {
    gone[id].sum += by
    kept[id].sum += by
    return gone[id].sum
}
procedure take(id: int) { delete gone[id] }
procedure keep(id: int, by: bigint) -> bigint { kept[id].sum += by return kept[id].sum }
procedure see(id: int) -> bigint null { return gone[id]?.sum }
";

fn filled(make: Make<'_>) -> Rig {
    let rig = Rig::new(make);
    rig.define(TABLES);
    // Calls of one batch may come in any order; those of the next come after.
    let (mut put, mut add, mut take) = (BatchBuilder::new(), BatchBuilder::new(), BatchBuilder::new());
    for id in 0..300 {
        rig.push(&mut put, "put", &[int(id), big(i64::from(id))], None);
        rig.push(&mut add, "add", &[int(id), big(1)], None);
    }
    (0..100).for_each(|id| _ = rig.push(&mut take, "take", &[int(id)], None));
    [put, add, take].into_iter().for_each(|batch| rig.run(&batch.build()));
    rig
}

/// Calls a procedure by the number that it had.
fn call(rig: &Rig, procedure: &Procedure, values: &[Value]) -> fabius_value::Result<()> {
    let mut batch = BatchBuilder::new();
    let bytes = arguments::encode(&procedure.program, values).unwrap();
    batch.push(procedure.id, &bytes, None, true).unwrap();
    let batch = batch.build();
    rig.run(&batch);
    batch.outcome(0).map(|_| ())
}

pub(super) fn a_dropped_table_is_gone(make: Make<'_>) {
    let rig = filled(make);
    let (add, see) = (rig.procedure("add"), rig.procedure("see"));
    let before = Standpoint::held(&rig.foundation);
    let old = before.definitions().catalog.find_table("gone").unwrap();
    let memory = Arc::downgrade(before.definitions().table(old));
    let with_rows = rig.checkpoint();
    rig.define("drop table gone");

    aborts(call(&rig, &add, &[int(200), big(1)]), SqlState::UNDEFINED_TABLE);
    aborts(call(&rig, &see, &[int(200)]), SqlState::UNDEFINED_TABLE);
    let bytes = arguments::encode(&see.program, &[int(200)]).unwrap();
    aborts(rig.engine.query(&see, &bytes), SqlState::UNDEFINED_TABLE);
    assert_eq!(rig.call("keep", &[int(200), big(1)]), Ok(vec![big(202)]));
    assert_eq!(rig.engine.define("drop table gone").unwrap_err().state(), SqlState::UNDEFINED_TABLE);

    // Who stood before it sees it still.
    let mut rows = 0;
    let visit = &mut |_: &[fabius_value::Datum<'_>]| {
        rows += 1;
        Ok(())
    };
    rig.engine.rows_at(&before, old, visit).unwrap();
    assert_eq!(rows, 200);
    drop(before);

    // The name is free, and stands for something else.
    rig.define("table gone { id: int, primary key (id) }");
    rig.define("procedure see(id: int) -> boolean { return exists gone[id] }");
    rig.define("procedure put(id: int) { insert gone { id: id } }");
    rig.call("put", &[int(7)]).unwrap();
    assert_eq!(rig.query("see", &[int(7)]), Ok(vec![Value::Boolean(true)]));
    assert_eq!(rig.query("see", &[int(200)]), Ok(vec![Value::Boolean(false)]));
    assert_eq!(rig.rows("gone"), [[int(7)]]);

    // The rows' memory goes once nobody can see them.
    drop((add, see));
    for n in 0..200 {
        rig.call("keep", &[int(n), big(0)]).unwrap();
        settle(&rig);
        if memory.strong_count() == 0 {
            break;
        }
    }
    assert_eq!(memory.strong_count(), 0, "the table is kept");

    let replayed = [
        rig.replayed(make),
        rig.after_checkpoint(make, &with_rows),
        rig.after_checkpoint(make, &rig.checkpoint()),
        rig.at_checkpoint(make, &rig.checkpoint()),
    ];
    for again in replayed {
        assert_eq!(again.dump(), rig.dump());
        again.call("put", &[int(8)]).unwrap();
        assert_eq!(again.query("see", &[int(8)]), Ok(vec![Value::Boolean(true)]));
    }
}

pub(super) fn a_dropped_procedure_is_gone(make: Make<'_>) {
    let rig = filled(make);
    let keep = rig.procedure("keep");
    rig.define("drop procedure keep");
    aborts(call(&rig, &keep, &[int(1), big(1)]), SqlState::UNDEFINED_FUNCTION);
    assert_eq!(rig.foundation.definitions().catalog.find_procedure("keep"), None);
    rig.define("procedure keep(id: int) -> bigint { return kept[id].sum }");
    assert_eq!(rig.query("keep", &[int(1)]), Ok(vec![big(2)]));
    assert_eq!(rig.replayed(make).query("keep", &[int(1)]), Ok(vec![big(2)]));
    assert_eq!(rig.after_checkpoint(make, &rig.checkpoint()).dump(), rig.dump());
}

/// Goal: dropping while calls go on, on other threads, breaks nothing.
pub(super) fn tables_come_and_go(make: Make<'_>) {
    let rig = filled(make);
    on_threads(&rig, |random, thread| {
        for round in 0..12 {
            if thread == 0 {
                rig.define(&format!("table t{round} {{ id: int, sum: bigint, primary key (id) }}"));
                rig.define(&format!(
                    "procedure p{round}(id: int) {{ upsert t{round} {{ id: id, sum: 1 }} t{round}[id].sum += 1 }}"
                ));
                let mut batch = BatchBuilder::new();
                (0..50).for_each(|id| _ = rig.push(&mut batch, &format!("p{round}"), &[int(id % 9)], None));
                let batch = batch.build();
                rig.engine.submit(batch.clone());
                if round % 2 == 0 {
                    rig.wait(&batch);
                }
                rig.define(&format!("drop table t{round}"));
                rig.wait(&batch);
            } else {
                let mut batch = BatchBuilder::new();
                for _ in 0..30 {
                    let id = int(100 + random.below(200) as i32);
                    rig.push(&mut batch, "add", &[id, big(1)], None);
                }
                rig.run(&batch.build());
            }
        }
    });
    let replayed = rig.replayed(make);
    assert_eq!(replayed.dump(), rig.dump());
    assert_eq!(rig.after_checkpoint(make, &rig.checkpoint()).dump(), rig.dump());
}
