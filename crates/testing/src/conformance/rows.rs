//! One call after the other: what calls do to rows, and what they see.

use super::programs::CHOICES;
use super::{aborts, bank, big, int, ints, settle, shop, text};
use crate::differential::history::History;
use crate::rig::{Make, Rig};
use fabius_engine::BatchBuilder;
use fabius_program::arguments::encode;
use fabius_program::catalog::ProcedureId;
use fabius_value::{SqlState, Value};

pub(super) fn committed_effects_are_read_back(make: Make<'_>) {
    let rig = bank(make, 3, 100);
    assert_eq!(rig.call("transfer", &[int(0), int(1), big(30)]), Ok(vec![big(70)]));
    assert_eq!(rig.call("see", &[int(1)]), Ok(vec![big(130), big(100)]));
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(70), big(100)]));
    assert_eq!(rig.query("see", &[int(9)]), Ok(vec![Value::Null, Value::Null]));
    aborts(rig.call("add", &[int(9), big(1)]), SqlState::NO_SUCH_ROW);
    rig.call("rename", &[int(2), text("somebody")]).unwrap();
    assert_eq!(rig.rows("accounts")[2], [int(2), text("somebody"), big(100), big(100)]);
    rig.call("rename", &[int(2), Value::Null]).unwrap();
    assert_eq!(rig.rows("accounts")[2][1], Value::Null);
    // To oneself.
    assert_eq!(rig.call("transfer", &[int(0), int(0), big(70)]), Ok(vec![big(70)]));
    let counts = rig.engine.counts();
    assert_eq!((counts.committed, counts.aborted), (3 + 7, 1));
}

pub(super) fn an_abort_undoes_everything(make: Make<'_>) {
    let rig = shop(make);
    for id in 1..=3 {
        rig.call("item", &[int(id), text(&format!("c{id}")), int(10)]).unwrap();
    }
    let before = rig.dump();
    let error = rig.call("half_done", &[int(7)]).unwrap_err();
    assert_eq!((error.state(), error.message()), (SqlState::RAISED, "never"));
    assert_eq!(rig.dump(), before);
    // Nothing is left in the way, neither keys nor values.
    rig.call("item", &[int(7), text("half"), int(1)]).unwrap();
    rig.call("item", &[int(8), text("moved"), int(1)]).unwrap();
    aborts(rig.call("item", &[int(9), text("c3"), int(1)]), SqlState::UNIQUE_VIOLATION);
    // The abort shows the values it looked at.
    let bank = bank(make, 1, 5);
    let error = bank.call("transfer", &[int(0), int(1), big(9)]).unwrap_err();
    assert!(error.to_string().contains('9') && error.line().is_some(), "{error}");
    aborts(bank.call("transfer", &[int(0), int(1), big(1)]), SqlState::NO_SUCH_ROW);
    assert_eq!(bank.query("see", &[int(0)]), Ok(vec![big(5), big(5)]));
}

pub(super) fn bad_calls_abort(make: Make<'_>) {
    let rig = bank(make, 1, 5);
    let mut batch = BatchBuilder::new();
    batch.push(ProcedureId(999), &[], None, true).unwrap();
    batch.push(rig.procedure("add").id, &[0xff; 3], None, true).unwrap();
    batch.push(rig.procedure("add").id, &[], None, false).unwrap();
    rig.push(&mut batch, "add", &[int(0), big(1)], None);
    let batch = batch.build();
    rig.run(&batch);
    aborts(batch.outcome(0), SqlState::UNDEFINED_FUNCTION);
    batch.outcome(1).unwrap_err();
    batch.outcome(2).unwrap_err();
    batch.outcome(3).unwrap();
    assert!(batch.ticket(0).is_none() && batch.ticket(3).is_some());
    aborts(rig.call("add", &[int(0), big(i64::MAX)]), SqlState::OUT_OF_RANGE);
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(6), big(5)]));
    let empty = BatchBuilder::new().build();
    rig.run(&empty);
}

pub(super) fn nulls_are_kept_out(make: Make<'_>) {
    let rig = bank(make, 1, 5);
    rig.call("put_or_null", &[int(0), big(7)]).unwrap();
    let error = rig.call("put_or_null", &[int(0), Value::Null]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "null value in column \"balance\" of relation \"accounts\" violates not-null constraint (line 2)"
    );
    assert_eq!(error.state(), SqlState::NOT_NULL_VIOLATION);
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(7), big(5)]));
}

pub(super) fn taken_values_are_refused(make: Make<'_>) {
    let rig = shop(make);
    rig.call("item", &[int(1), text("a"), int(1)]).unwrap();
    rig.call("item", &[int(2), Value::Null, int(1)]).unwrap();
    rig.call("item", &[int(3), Value::Null, int(1)]).unwrap();
    let error = rig.call("item", &[int(1), text("z"), int(1)]).unwrap_err();
    assert_eq!(
        (error.state(), error.message()),
        (SqlState::UNIQUE_VIOLATION, "duplicate key value violates unique constraint \"items_pkey\"")
    );
    aborts(rig.call("item", &[int(4), text("a"), int(1)]), SqlState::UNIQUE_VIOLATION);
    aborts(rig.call("recode", &[int(2), text("a")]), SqlState::UNIQUE_VIOLATION);
    rig.call("recode", &[int(1), text("a")]).unwrap();
    rig.call("recode", &[int(1), text("b")]).unwrap();
    rig.call("recode", &[int(2), text("a")]).unwrap();
    rig.call("swap_codes", &[int(1), int(2)]).unwrap();
    rig.call("drop_item", &[int(1)]).unwrap();
    aborts(rig.call("recode", &[int(3), text("b")]), SqlState::UNIQUE_VIOLATION);
    rig.call("recode", &[int(3), text("a")]).unwrap();
    let codes: Vec<Value> = rig.rows("items").iter().map(|row| row[1].clone()).collect();
    assert_eq!(codes, [text("b"), text("a")]);
}

pub(super) fn a_value_is_given_away_in_one_call(make: Make<'_>) {
    let rig = shop(make);
    rig.call("item", &[int(1), text("a"), int(1)]).unwrap();
    // Nothing has been deleted before.
    rig.call("give_code_away", &[int(1), int(2)]).unwrap();
    let codes: Vec<Value> = rig.rows("items").iter().map(|row| row[1].clone()).collect();
    assert_eq!(codes, [text("none"), text("a")]);
    aborts(rig.call("give_code_away", &[int(2), int(3)]), SqlState::UNIQUE_VIOLATION);
}

pub(super) fn what_is_promised_is_kept(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.define(CHOICES);
    rig.call("add", &[int(1), int(7), int(1), int(3), text("aaaa")]).unwrap();
    rig.call("add", &[int(2), int(0), int(0), int(0), text("~")]).unwrap();
    // Without results what depends on a list goes the same way.
    let procedure = rig.procedure("choose");
    let values = [int(1), Value::List(vec![vec![int(1)]])];
    let bytes = encode(&procedure.program, &values).unwrap();
    let mut batch = BatchBuilder::new();
    batch.push(procedure.id, &bytes, None, false).unwrap();
    let batch = batch.build();
    rig.run(&batch);
    batch.outcome(0).unwrap();
    assert_eq!(rig.rows("choices")[0][2], int(3));
    // The least text is not the shortest.
    aborts(rig.call("tag", &[int(1)]), SqlState::TOO_LONG);
    rig.call("tag", &[int(2)]).unwrap();
    rig.call("share", &[int(1)]).unwrap();
    aborts(rig.call("share", &[int(2)]), SqlState::DIVISION_BY_ZERO);
    let tags: Vec<Value> = rig.rows("choices").iter().map(|row| row[5].clone()).collect();
    assert_eq!(tags, [text(""), text("b")]);
}

pub(super) fn increments_and_extremes_add_up(make: Make<'_>) {
    let rig = bank(make, 1, 0);
    let mut batch = BatchBuilder::new();
    for n in 0..100 {
        rig.push(&mut batch, "add", &[int(0), big(n)], None);
        rig.push(&mut batch, "raise", &[int(0), big(n * 7 % 100)], None);
        if n == 50 {
            rig.push(&mut batch, "put", &[int(0), big(1000)], None);
        }
    }
    let batch = batch.build();
    rig.run(&batch);
    // One thread: in the order handed in.
    assert_eq!(rig.call("see", &[int(0)]), Ok(vec![big(1000 + (51..100).sum::<i64>()), big(99)]));
}

/// A call adds to a row and then writes another column of it, while an earlier call that put off reading a
/// third still has to.
pub(super) fn increments_leave_earlier_reads_alone(make: Make<'_>) {
    let rig = bank(make, 100, 7);
    let mut batch = BatchBuilder::new();
    for id in 0..50 {
        rig.push(&mut batch, "raise", &[int(id), big(10)], None);
        rig.push(&mut batch, "add", &[int(id), big(1)], None);
        rig.push(&mut batch, "copy_best", &[int(id), int(id + 50)], None);
        rig.push(&mut batch, "add_and_rename", &[int(id), big(2), text("somebody")], None);
        rig.push(&mut batch, "put", &[int(id + 50), big(i64::from(id))], None);
    }
    rig.run(&batch.build());
    // Memory that was let go of too early would be used again by these.
    rig.call("open", &[int(100), big(3)]).unwrap();
    for _ in 0..20 {
        let mut batch = BatchBuilder::new();
        for n in 0..100 {
            rig.push(&mut batch, "put", &[int(100), big(n)], None);
        }
        rig.run(&batch.build());
    }
    for id in 0..50 {
        assert_eq!(rig.query("see", &[int(id)]), Ok(vec![big(10), big(10)]));
        assert_eq!(rig.query("see", &[int(id + 50)]), Ok(vec![big(i64::from(id)), big(10)]));
    }
}

pub(super) fn long_loops_abort(make: Make<'_>) {
    let rig = bank(make, 1, 0);
    let by = |count| Value::List(vec![vec![int(1)]; count]);
    assert_eq!(rig.call("repeat", &[int(0), big(3), by(2)]), Ok(vec![big(3)]));
    let error = rig.call("repeat", &[int(0), big(i64::MAX), by(1)]).unwrap_err();
    assert_eq!((error.state(), error.line()), (SqlState::PROGRAM_LIMIT, Some(3)), "{error}");
    let error = rig.call("repeat", &[int(0), big(2_000), by(5_000)]).unwrap_err();
    assert_eq!((error.state(), error.line()), (SqlState::PROGRAM_LIMIT, Some(4)), "{error}");
    assert_eq!(rig.call("repeat", &[int(0), big(2), by(2)]), Ok(vec![big(2)]));
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(2), big(0)]));
}

pub(super) fn scans_follow_their_index(make: Make<'_>) {
    let rig = shop(make);
    for number in [5, 1, 3, 9, 7] {
        rig.call("order", &[int(1), int(number), int(number % 2), text("new")]).unwrap();
    }
    rig.call("order", &[int(2), int(4), Value::Null, text("new")]).unwrap();
    let null = Value::Null;
    let numbers =
        |low: Value, high: Value, most: Value| rig.query("numbers", &[int(1), low, high, most]).unwrap();
    assert_eq!(numbers(null.clone(), null.clone(), null.clone()), ints(&[1, 3, 5, 7, 9]));
    assert_eq!(numbers(int(3), int(7), null.clone()), ints(&[3, 5, 7]));
    assert_eq!(numbers(int(2), null.clone(), big(2)), ints(&[3, 5]));
    assert_eq!(numbers(int(8), int(2), null.clone()), ints(&[]));
    aborts(rig.query("numbers", &[int(1), null.clone(), null, big(-1)]), SqlState::INVALID_PARAMETER);
    assert_eq!(rig.call("down", &[int(1)]).unwrap(), ints(&[9, 7, 5, 3, 1]));
    rig.call("move", &[int(1), int(3), text("sent")]).unwrap();
    rig.call("cancel", &[int(1), int(7)]).unwrap();
    assert_eq!(rig.call("in_state", &[text("new")]).unwrap(), ints(&[1, 5, 9, 4]));
    assert_eq!(rig.query("in_state", &[text("sent")]).unwrap(), ints(&[3]));
    let pairs =
        |list: &[(i32, i32)]| Value::List(list.iter().map(|pair| vec![int(pair.0), int(pair.1)]).collect());
    assert_eq!(rig.query("of_customer", &[int(1), int(1)]).unwrap(), [pairs(&[(1, 3), (1, 5), (1, 9)])]);
    assert_eq!(rig.call("of_customer", &[int(0), int(0)]).unwrap(), [pairs(&[])]);
    rig.engine.settle();
    assert_eq!(rig.query("in_state", &[text("new")]).unwrap(), ints(&[1, 5, 9, 4]));
}

pub(super) fn a_call_scans_its_own_writes(make: Make<'_>) {
    let rig = shop(make);
    rig.call("order", &[int(1), int(100), Value::Null, text("mine")]).unwrap();
    let counted = rig.call("insert_and_count", &[int(1), int(40)]).unwrap();
    assert_eq!(counted, [big(1), big(40), big(39)]);
    assert_eq!(rig.rows("orders").len(), 40);
    // A second time, the keys are taken: all of it is undone.
    aborts(rig.call("insert_and_count", &[int(1), int(40)]), SqlState::UNIQUE_VIOLATION);
    assert_eq!(rig.rows("orders").len(), 40);
    assert_eq!(rig.query("in_state", &[text("yours")]).unwrap(), ints(&[2]));
}

pub(super) fn a_row_leaves_an_index_and_comes_back(make: Make<'_>) {
    let rig = shop(make);
    rig.call("order", &[int(1), int(1), int(7), text("new")]).unwrap();
    for state in ["sent", "new", "sent", "new"] {
        rig.call("move", &[int(1), int(1), text(state)]).unwrap();
    }
    rig.call("there_and_back", &[int(1), int(1), text("sent")]).unwrap();
    rig.call("replace", &[int(1), int(1)]).unwrap();
    // Old entries are taken out by now, the right one is not.
    settle(&rig);
    rig.call("order", &[int(1), int(2), int(7), text("other")]).unwrap();
    settle(&rig);
    assert_eq!(rig.query("in_state", &[text("new")]).unwrap(), ints(&[1]));
    assert_eq!(rig.call("in_state", &[text("new")]).unwrap(), ints(&[1]));
    assert_eq!(rig.call("in_state", &[text("sent")]).unwrap(), ints(&[]));
}

pub(super) fn deleted_keys_come_back(make: Make<'_>) {
    let rig = shop(make);
    for round in 0..5 {
        rig.call("item", &[int(1), text("a"), int(round)]).unwrap();
        rig.call("drop_item", &[int(1)]).unwrap();
        aborts(rig.call("drop_item", &[int(1)]), SqlState::NO_SUCH_ROW);
        if round == 2 {
            settle(&rig);
        }
    }
    assert!(rig.rows("items").is_empty());
    rig.call("item", &[int(1), text("a"), int(9)]).unwrap();
    settle(&rig);
    assert_eq!(rig.rows("items"), [[int(1), text("a"), int(9)]]);
    aborts(rig.call("item", &[int(2), text("a"), int(9)]), SqlState::UNIQUE_VIOLATION);
}

pub(super) fn calls_that_only_read_give_results(make: Make<'_>) {
    let rig = bank(make, 3, 10);
    let mut batch = BatchBuilder::new();
    rig.push(&mut batch, "see", &[int(0)], None);
    rig.push(&mut batch, "see", &[int(77)], None);
    rig.push(&mut batch, "sum_of", &[Value::List(vec![vec![int(0)], vec![int(2)]])], Some(b"sum"));
    rig.push(&mut batch, "sum_of", &[Value::List(vec![vec![int(5)]])], None);
    let batch = batch.build();
    rig.run(&batch);
    assert_eq!(rig.result(&batch, 0), Ok(vec![big(10), big(10)]));
    assert_eq!(rig.result(&batch, 1), Ok(vec![Value::Null, Value::Null]));
    assert_eq!(rig.result(&batch, 2), Ok(vec![big(20)]));
    aborts(rig.result(&batch, 3), SqlState::NO_SUCH_ROW);
    // The key that was looked up in vain is not there, and can be inserted.
    assert_eq!(rig.rows("accounts").len(), 3);
    rig.call("open", &[int(77), big(1)]).unwrap();
    assert_eq!(rig.call_with("sum_of", &[Value::List(vec![])], Some(b"sum")), Ok(vec![big(20)]));
}

pub(super) fn many_rows_in_one_call(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.define(
        "table t { a: int, b: int, c: text, primary key (a), index by_b (b) }
         procedure fill(n: int) { for a in 1 to n { insert t { a: a::int, b: (a % 10)::int, c: 'x' } } }
         procedure shift(n: int) { for a in 1 to n { t[a::int].b = t[a::int].b + 1 t[a::int].c = t[a::int].c || 'y' } }
         procedure clear(n: int) { for a in 1 to n { delete t[a::int] } }
         procedure having(b: int) -> bigint {
             var found: list of int = []
             for row in t by by_b[b] { append found (row.a) }
             return count(found)
         }",
    );
    rig.call("fill", &[int(2000)]).unwrap();
    rig.call("shift", &[int(2000)]).unwrap();
    assert_eq!(rig.query("having", &[int(0)]), Ok(vec![big(0)]));
    assert_eq!(rig.call("having", &[int(10)]), Ok(vec![big(200)]));
    assert_eq!(rig.rows("t")[0][2], text("xy"));
    aborts(rig.call("clear", &[int(2001)]), SqlState::NO_SUCH_ROW);
    rig.call("clear", &[int(1999)]).unwrap();
    settle(&rig);
    assert_eq!(rig.rows("t"), [[int(2000), int(1), text("xy")]]);
    rig.call("fill", &[int(1999)]).unwrap();
    assert_eq!(rig.query("having", &[int(1)]), Ok(vec![big(201)]));
}

/// Goal: a key that is too long aborts its call where that gets there, and otherwise changes nothing about it.
pub(super) fn a_key_that_is_too_long_matters_where_it_is_used(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.define(
        "table names { name: text, n: int, primary key (name) }
         table cells { id: int, v: bigint, primary key (id) }
         procedure open(id: int) { insert cells { id: id, v: 0 } }
         procedure put(id: int, v: bigint) { cells[id].v = v }
         procedure step(flag: boolean, name: text, id: int) {
             if flag { names[name].n = 1 }
             cells[id].v += 1
         }
         procedure twice(id: int) { cells[id].v = cells[id].v * 2 % 1000003 }",
    );
    rig.call("open", &[int(1)]).expect("a new cell");
    let long = text(&"x".repeat(3000));
    let mut batch = BatchBuilder::new();
    rig.push_call(&mut batch, "put", &[int(1), big(7)], None, false);
    for _ in 0..50 {
        rig.push_call(&mut batch, "step", &[Value::Boolean(false), long.clone(), int(1)], None, false);
        rig.push_call(&mut batch, "twice", &[int(1)], None, false);
    }
    let batch = batch.build();
    rig.helped(2, || rig.run(&batch));
    (0..batch.count()).for_each(|call| assert_eq!(batch.outcome(call), Ok(())));
    aborts(rig.call("step", &[Value::Boolean(true), long, int(1)]), SqlState::PROGRAM_LIMIT);
    // In whatever order the engine has taken them.
    let mut history = History::default();
    history.follow(&rig.logged(), Vec::new());
    history.compare_rows(&rig, "the engine's");
}
