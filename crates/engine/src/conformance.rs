//! What every engine must do, as tests that every engine runs.
//!
//! An engine's own tests call [`run`] with a way to make one; each case gets a fresh engine. Cases that
//! use threads say what must hold in every interleaving, and leave the interleaving to chance;
//! [`crate::differential`] compares whole histories with the oracle.

use crate::rig::{Make, Rig};
use crate::{BatchBuilder, Engine, Foundation};
use fabius_env::Random;
use fabius_program::catalog::ProcedureId;
use fabius_value::{SqlState, Value};
use std::panic::RefUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// A case: its name and what it does.
type Case = (&'static str, fn(Make<'_>));

const CASES: &[Case] = &[
    ("committed_effects_are_read_back", committed_effects_are_read_back),
    ("an_abort_undoes_everything", an_abort_undoes_everything),
    ("bad_calls_abort", bad_calls_abort),
    ("taken_values_are_refused", taken_values_are_refused),
    ("increments_and_extremes_add_up", increments_and_extremes_add_up),
    ("scans_follow_their_index", scans_follow_their_index),
    ("a_call_scans_its_own_writes", a_call_scans_its_own_writes),
    ("a_row_leaves_an_index_and_comes_back", a_row_leaves_an_index_and_comes_back),
    ("deleted_keys_come_back", deleted_keys_come_back),
    ("a_key_is_used_once", a_key_is_used_once),
    ("calls_that_only_read_give_results", calls_that_only_read_give_results),
    ("now_is_the_logged_time", now_is_the_logged_time),
    ("definitions_take_their_place", definitions_take_their_place),
    ("calls_wait_for_the_log", calls_wait_for_the_log),
    ("a_closed_engine_refuses", a_closed_engine_refuses),
    ("settling_leaves_nothing_open", settling_leaves_nothing_open),
    ("many_rows_in_one_call", many_rows_in_one_call),
    ("transfers_keep_the_sum", transfers_keep_the_sum),
    ("hot_increments_count_exactly", hot_increments_count_exactly),
    ("scans_meet_no_phantoms", scans_meet_no_phantoms),
    ("one_of_many_gets_a_unique_value", one_of_many_gets_a_unique_value),
    ("queues_give_each_entry_once", queues_give_each_entry_once),
    ("snapshots_stand_still", snapshots_stand_still),
    ("one_key_from_many_threads", one_key_from_many_threads),
    ("replay_gives_the_same", replay_gives_the_same),
];

/// Runs every case.
///
/// # Panics
/// After all cases have run, if in some the engine did not do as it must.
pub fn run(make: impl Fn(Arc<Foundation>) -> Arc<dyn Engine> + Sync + RefUnwindSafe) {
    run_matching(&make, "");
}

/// Runs the cases whose names contain `part`.
///
/// # Panics
/// As [`run`].
pub fn run_matching(make: Make<'_>, part: &str) {
    let mut failed = Vec::new();
    for (name, case) in CASES.iter().filter(|(name, _)| name.contains(part)) {
        println!("case {name}");
        if std::panic::catch_unwind(|| case(make)).is_err() {
            failed.push(*name);
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

const BANK: &str = "
table accounts { id: int, owner: varchar(20) null, balance: bigint, best: bigint, primary key (id) using hash }
procedure open(id: int, balance: bigint) { insert accounts { id: id, balance: balance, best: balance } }
procedure transfer(src: int, dst: int, amount: bigint) -> bigint {
    require accounts[src].balance >= amount, \"insufficient funds\"
    accounts[src].balance -= amount
    accounts[dst].balance += amount
    return accounts[src].balance
}
procedure add(id: int, amount: bigint) { accounts[id].balance += amount }
procedure raise(id: int, level: bigint) { accounts[id].best = greatest(accounts[id].best, level) }
procedure put(id: int, balance: bigint) { accounts[id].balance = balance }
procedure rename(id: int, owner: varchar(20) null) { accounts[id].owner = owner }
procedure see(id: int) -> (balance: bigint null, best: bigint null) {
    return accounts[id]?.balance, accounts[id]?.best
}
procedure sum_of(ids: list of int) -> bigint {
    var sum: bigint = 0
    for id in ids { sum += accounts[id].balance }
    return sum
}
procedure stamp(id: int) {
    accounts[id].best = (random() * 1000000)::bigint
    accounts[id].owner = now()::text
}
";

const SHOP: &str = "
table orders {
    shop: int, number: int, customer: int null, state: varchar(10), total: numeric(10, 2),
    primary key (shop, number), index by_customer (customer, number), index by_state (state),
}
table items { id: int, code: varchar(8) null, quantity: int, primary key (id), unique index by_code (code) }
procedure order(shop: int, number: int, customer: int null, state: varchar(10)) {
    insert orders { shop: shop, number: number, customer: customer, state: state, total: 1.50 }
}
procedure move(shop: int, number: int, state: varchar(10)) { orders[shop, number].state = state }
procedure there_and_back(shop: int, number: int, state: varchar(10)) {
    let before = orders[shop, number].state
    orders[shop, number].state = state
    orders[shop, number].state = before
}
procedure replace(shop: int, number: int) {
    let state = orders[shop, number].state
    let customer = orders[shop, number].customer
    delete orders[shop, number]
    insert orders { shop: shop, number: number, customer: customer, state: state, total: 2 }
}
procedure cancel(shop: int, number: int) { delete orders[shop, number] }
procedure numbers(shop: int, low: int null, high: int null, most: bigint null) -> list of int {
    var found: list of int = []
    for order in orders[shop, coalesce(low, -1000) .. coalesce(high, 1000)] limit most { append found (order.number) }
    return found
}
procedure down(shop: int) -> list of int {
    var found: list of int = []
    for order in orders[shop] descending { append found (order.number) }
    return found
}
procedure of_customer(customer: int, above: int) -> list of (shop: int, number: int) {
    var found: list of (shop: int, number: int) = []
    for order in orders by by_customer[customer, above <..] { append found (order.shop, order.number) }
    return found
}
procedure in_state(state: varchar(10)) -> list of int {
    var found: list of int = []
    for order in orders by by_state[state] { append found (order.number) }
    return found
}
procedure next_number(shop: int, most: int) -> int {
    var last: int = 0
    for order in orders[shop] descending limit 1 { last = order.number }
    require last < most, \"the book is full\"
    insert orders { shop: shop, number: last + 1, state: 'new', total: 0 }
    return last + 1
}
procedure number_in_state(state: varchar(10), shop: int) -> bigint {
    var found: list of int = []
    for order in orders by by_state[state] { append found (order.number) }
    insert orders { shop: shop, number: count(found)::int, state: state, total: 0 }
    return count(found)
}
procedure take_first(shop: int) -> int {
    var taken: int = 0
    for order in orders[shop] limit 1 {
        taken = order.number
        delete order
    }
    return taken
}
procedure insert_and_count(shop: int, count: int) -> (before: bigint, after: bigint, in_state: bigint) {
    var found: list of int = []
    for order in orders[shop] { append found (order.number) }
    let before = count(found)
    for number in 1 to count { insert orders { shop: shop, number: number::int, state: 'mine', total: 0 } }
    delete orders[shop, 1]
    orders[shop, 2].state = 'yours'
    found = []
    for order in orders[shop] { append found (order.number) }
    let after = count(found)
    found = []
    for order in orders by by_state['mine'] { append found (order.number) }
    return before, after, count(found)
}
procedure item(id: int, code: varchar(8) null, quantity: int) {
    insert items { id: id, code: code, quantity: quantity }
}
procedure recode(id: int, code: varchar(8) null) { items[id].code = code }
procedure drop_item(id: int) { delete items[id] }
procedure swap_codes(a: int, b: int) {
    let first = items[a].code
    let second = items[b].code
    items[a].code = null
    items[b].code = first
    items[a].code = second
}
procedure half_done(id: int) {
    insert items { id: id, code: 'half', quantity: 1 }
    items[1].quantity += 5
    delete items[2]
    items[3].code = 'moved'
    require id < 0, \"never\"
}
";

fn bank(make: Make<'_>, accounts: i32, balance: i64) -> Rig {
    let rig = Rig::new(make);
    rig.define(BANK);
    let mut batch = BatchBuilder::new();
    for id in 0..accounts {
        rig.push(&mut batch, "open", &[Value::Int(id), Value::BigInt(balance)], None);
    }
    let batch = batch.build();
    rig.run(&batch);
    assert!((0..accounts as u32).all(|call| batch.outcome(call).is_ok()));
    rig
}

fn shop(make: Make<'_>) -> Rig {
    let rig = Rig::new(make);
    rig.define(SHOP);
    rig
}

fn int(value: i32) -> Value {
    Value::Int(value)
}

fn big(value: i64) -> Value {
    Value::BigInt(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.into())
}

fn ints(values: &[i32]) -> Vec<Value> {
    vec![Value::List(values.iter().map(|&value| vec![int(value)]).collect())]
}

#[track_caller]
fn aborts<T: std::fmt::Debug>(result: fabius_value::Result<T>, state: SqlState) {
    assert_eq!(result.expect_err("it aborts").state(), state);
}

fn committed_effects_are_read_back(make: Make<'_>) {
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

fn an_abort_undoes_everything(make: Make<'_>) {
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

fn bad_calls_abort(make: Make<'_>) {
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

fn taken_values_are_refused(make: Make<'_>) {
    let rig = shop(make);
    rig.call("item", &[int(1), text("a"), int(1)]).unwrap();
    rig.call("item", &[int(2), Value::Null, int(1)]).unwrap();
    rig.call("item", &[int(3), Value::Null, int(1)]).unwrap();
    let error = rig.call("item", &[int(1), text("z"), int(1)]).unwrap_err();
    assert_eq!((error.state(), error.message()), (SqlState::UNIQUE_VIOLATION, "duplicate key in items"));
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

fn increments_and_extremes_add_up(make: Make<'_>) {
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

fn scans_follow_their_index(make: Make<'_>) {
    let rig = shop(make);
    for number in [5, 1, 3, 9, 7] {
        rig.call("order", &[int(1), int(number), int(number % 2), text("new")]).unwrap();
    }
    rig.call("order", &[int(2), int(4), Value::Null, text("new")]).unwrap();
    let null = Value::Null;
    let numbers = |low: Value, high: Value, most: Value| rig.query("numbers", &[int(1), low, high, most]).unwrap();
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
    let pairs = |list: &[(i32, i32)]| Value::List(list.iter().map(|pair| vec![int(pair.0), int(pair.1)]).collect());
    assert_eq!(rig.query("of_customer", &[int(1), int(1)]).unwrap(), [pairs(&[(1, 3), (1, 5), (1, 9)])]);
    assert_eq!(rig.call("of_customer", &[int(0), int(0)]).unwrap(), [pairs(&[])]);
    rig.engine.settle();
    assert_eq!(rig.query("in_state", &[text("new")]).unwrap(), ints(&[1, 5, 9, 4]));
}

fn a_call_scans_its_own_writes(make: Make<'_>) {
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

fn a_row_leaves_an_index_and_comes_back(make: Make<'_>) {
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

/// Lets the engine do everything it has put off, purging included.
fn settle(rig: &Rig) {
    rig.engine.settle();
    for _ in 0..3 {
        while rig.engine.help() {}
    }
}

fn deleted_keys_come_back(make: Make<'_>) {
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

fn a_key_is_used_once(make: Make<'_>) {
    let rig = bank(make, 2, 100);
    let transfer = |amount, key: &[u8]| rig.call_with("transfer", &[int(0), int(1), big(amount)], Some(key));
    assert_eq!(transfer(10, b"one"), Ok(vec![big(90)]));
    assert_eq!(transfer(10, b"one"), Ok(vec![big(90)]));
    let refused = transfer(1000, b"two").unwrap_err();
    rig.call("add", &[int(0), big(5000)]).unwrap();
    assert_eq!(transfer(1000, b"two"), Err(refused.clone()));
    assert_eq!(transfer(1000, b"three"), Ok(vec![big(4090)]));
    // Also after the log has been read again.
    let again = rig.replayed(make);
    let transfer = |amount, key: &[u8]| again.call_with("transfer", &[int(0), int(1), big(amount)], Some(key));
    assert_eq!(transfer(10, b"one"), Ok(vec![big(90)]));
    assert_eq!(transfer(1000, b"two"), Err(refused));
    assert_eq!(again.query("see", &[int(0)]), Ok(vec![big(4090), big(100)]));
}

fn calls_that_only_read_give_results(make: Make<'_>) {
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

fn now_is_the_logged_time(make: Make<'_>) {
    let rig = bank(make, 2, 10);
    for id in [0, 1, 0] {
        rig.clock.advance(Duration::from_secs(100));
        rig.call("stamp", &[int(id)]).unwrap();
    }
    let rows = rig.rows("accounts");
    assert_ne!(rows[0][1], rows[1][1]);
    assert_ne!(rows[0][3], rows[1][3]);
    // Another time has come, and the same is said again.
    assert_eq!(rig.replayed(make).rows("accounts"), rows);
}

fn definitions_take_their_place(make: Make<'_>) {
    let rig = bank(make, 1, 10);
    let refused = rig.engine.define("procedure bad() { nothing[1].here += 1 }").unwrap_err();
    assert_eq!(refused.state(), SqlState::UNDEFINED_TABLE);
    rig.engine.define("table accounts { id: int, primary key (id) }").unwrap_err();
    let old = rig.procedure("add");
    rig.define("procedure add(id: int, amount: bigint) { accounts[id].balance += amount * 2 }");
    rig.define("table marks { id: int, primary key (id) } procedure mark(id: int) { insert marks { id: id } }");
    rig.call("mark", &[int(1)]).unwrap();
    rig.call("add", &[int(0), big(1)]).unwrap();
    // Calls name a definition, not whatever has the name by now.
    let mut batch = BatchBuilder::new();
    let arguments = fabius_program::arguments::encode(&old.program, &[int(0), big(1)]).unwrap();
    batch.push(old.id, &arguments, None, false).unwrap();
    let batch = batch.build();
    rig.run(&batch);
    batch.outcome(0).unwrap();
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(13), big(10)]));
    assert_eq!(rig.replayed(make).dump(), rig.dump());
    // Definitions while calls go on.
    rig.helped(2, || {
        let mut batches = Vec::new();
        for round in 0..20 {
            let mut batch = BatchBuilder::new();
            for _ in 0..50 {
                rig.push(&mut batch, "add", &[int(0), big(1)], None);
            }
            let batch = batch.build();
            rig.engine.submit(batch.clone());
            batches.push(batch);
            rig.define(&format!("procedure p{round}() -> int {{ return {round} }}"));
        }
        batches.iter().for_each(|batch| rig.wait(batch));
    });
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(2013), big(10)]));
    assert_eq!(rig.query("p19", &[]), Ok(vec![int(19)]));
}

fn calls_wait_for_the_log(make: Make<'_>) {
    let rig = Rig::with_log(make, true);
    rig.define(BANK);
    let mut batch = BatchBuilder::new();
    rig.push(&mut batch, "open", &[int(1), big(1)], None);
    let batch = batch.build();
    rig.engine.submit(batch.clone());
    for _ in 0..100 {
        rig.engine.admit();
        rig.engine.help();
    }
    assert!(!batch.is_complete(), "it is not in the log yet");
    rig.log.flush_now().unwrap();
    assert!(batch.is_complete());
    batch.outcome(0).unwrap();
}

fn a_closed_engine_refuses(make: Make<'_>) {
    let rig = bank(make, 1, 5);
    let mut pending = BatchBuilder::new();
    rig.push(&mut pending, "add", &[int(0), big(1)], None);
    let pending = pending.build();
    rig.engine.submit(pending.clone());
    rig.close();
    rig.wait(&pending);
    let _either = pending.outcome(0);
    aborts(rig.call("add", &[int(0), big(1)]), SqlState::SHUTDOWN);
    rig.engine.define("procedure late() { }").unwrap_err();
    // What was promised can still be read.
    assert_eq!(rig.rows("accounts").len(), 1);
}

fn settling_leaves_nothing_open(make: Make<'_>) {
    let rig = bank(make, 50, 100);
    let mut random = Random::seeded(4);
    let mut batch = BatchBuilder::new();
    for _ in 0..500 {
        let (src, dst) = (random.below(50) as i32, random.below(50) as i32);
        rig.push(&mut batch, "transfer", &[int(src), int(dst), big(random.below(20) as i64)], None);
    }
    let batch = batch.build();
    rig.engine.submit(batch.clone());
    rig.engine.settle();
    assert!(batch.is_complete());
    let counts = rig.engine.counts();
    assert_eq!((counts.backlog, counts.committed + counts.aborted), (0, 550));
    let committed = (0..500).filter(|call| batch.outcome(*call).is_ok()).count();
    assert_eq!(counts.committed, 50 + committed as u64);
}

fn many_rows_in_one_call(make: Make<'_>) {
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

/// Runs `work` on several threads, each with its own random numbers, while others help.
fn on_threads(rig: &Rig, work: impl Fn(&mut Random, usize) + Sync) {
    rig.helped(1, || {
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let work = &work;
                scope.spawn(move || work(&mut Random::seeded(thread as u64 + 1), thread));
            }
        });
    });
}

fn transfers_keep_the_sum(make: Make<'_>) {
    let rig = bank(make, 10, 100);
    let all: Vec<Vec<Value>> = (0..10).map(|id| vec![int(id)]).collect();
    on_threads(&rig, |random, _| {
        for _ in 0..20 {
            let mut batch = BatchBuilder::new();
            for _ in 0..20 {
                let (src, dst) = (random.below(10) as i32, random.below(10) as i32);
                rig.push(&mut batch, "transfer", &[int(src), int(dst), big(random.below(60) as i64)], None);
            }
            let sum = rig.push(&mut batch, "sum_of", &[Value::List(all.clone())], None);
            let batch = batch.build();
            rig.run(&batch);
            assert_eq!(rig.result(&batch, sum), Ok(vec![big(1000)]));
            assert_eq!(rig.query("sum_of", &[Value::List(all.clone())]), Ok(vec![big(1000)]));
        }
    });
    assert!(rig.rows("accounts").iter().all(|row| matches!(row[2], Value::BigInt(balance) if balance >= 0)));
}

fn hot_increments_count_exactly(make: Make<'_>) {
    let rig = bank(make, 2, 0);
    on_threads(&rig, |_, _| {
        for round in 0..30 {
            let mut batch = BatchBuilder::new();
            for n in 0..50 {
                let name = if n % 2 == 0 { "add" } else { "raise" };
                rig.push(&mut batch, name, &[int(0), big(if n % 2 == 0 { 1 } else { round })], None);
            }
            let batch = batch.build();
            rig.run(&batch);
            assert!((0..50).all(|call| batch.outcome(call).is_ok()));
        }
    });
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(3 * 30 * 25), big(29)]));
}

fn scans_meet_no_phantoms(make: Make<'_>) {
    let rig = shop(make);
    // Each call scans, and inserts where its scan says: two that saw the same would collide.
    on_threads(&rig, |_, thread| {
        let mut batch = BatchBuilder::new();
        for _ in 0..100 {
            rig.push(&mut batch, "next_number", &[int(1), int(250)], None);
            rig.push(&mut batch, "number_in_state", &[text("open"), int(2)], None);
            rig.push(&mut batch, "number_in_state", &[text("shut"), int(10 + thread as i32)], None);
        }
        let batch = batch.build();
        rig.run(&batch);
        for call in 0..300 {
            if let Err(error) = batch.outcome(call) {
                assert_eq!(error.state(), SqlState::RAISED, "{error}");
            }
        }
    });
    let numbers = |shop: i32| rig.query("down", &[int(shop)]).unwrap();
    assert_eq!(numbers(1), ints(&(1..=250).rev().collect::<Vec<_>>()));
    assert_eq!(numbers(2), ints(&(0..300).rev().collect::<Vec<_>>()));
}

fn one_of_many_gets_a_unique_value(make: Make<'_>) {
    let rig = shop(make);
    for id in 0..3 {
        rig.call("item", &[int(id), Value::Null, int(0)]).unwrap();
    }
    on_threads(&rig, |random, thread| {
        for round in 0..200 {
            let code = text(&format!("c{}", random.below(2)));
            let code = if round % 3 == 0 { Value::Null } else { code };
            let _either = rig.call("recode", &[int(thread as i32), code]);
            let rows = rig.rows("items");
            let codes: Vec<&Value> = rows.iter().map(|row| &row[1]).filter(|code| !code.is_null()).collect();
            assert!(codes.len() < 2 || codes[0] != codes[1], "{codes:?}");
            assert!(codes.len() < 3, "{codes:?}");
        }
    });
}

fn queues_give_each_entry_once(make: Make<'_>) {
    let rig = shop(make);
    let taken = parking_lot::Mutex::new(Vec::new());
    on_threads(&rig, |_, thread| {
        for round in 0..60 {
            let number = thread as i32 * 1000 + round + 1;
            rig.call("order", &[int(1), int(number), Value::Null, text("queued")]).unwrap();
            if round % 2 == 1 {
                for _ in 0..2 {
                    let found = rig.call("take_first", &[int(1)]).unwrap();
                    taken.lock().extend(found);
                }
            }
        }
    });
    let mut taken = taken.into_inner();
    assert!(!taken.contains(&int(0)), "each thread puts in before it takes out");
    taken.sort_by_key(|value| format!("{value:?}"));
    taken.dedup();
    assert_eq!(taken.len(), 180);
    settle(&rig);
    assert!(rig.rows("orders").is_empty());
    assert_eq!(rig.query("in_state", &[text("queued")]).unwrap(), ints(&[]));
}

fn snapshots_stand_still(make: Make<'_>) {
    let rig = bank(make, 20, 100);
    let all: Vec<Vec<Value>> = (0..20).flat_map(|id| [vec![int(id)], vec![int(id)]]).collect();
    let done = AtomicBool::new(false);
    rig.helped(1, || {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut random = Random::seeded(9);
                for _ in 0..60 {
                    let mut batch = BatchBuilder::new();
                    for _ in 0..30 {
                        let (src, dst) = (random.below(20) as i32, random.below(20) as i32);
                        rig.push(&mut batch, "transfer", &[int(src), int(dst), big(7)], None);
                    }
                    rig.run(&batch.build());
                }
                done.store(true, Relaxed);
            });
            // Every balance is read twice, so a snapshot that moves would show.
            while !done.load(Relaxed) {
                assert_eq!(rig.query("sum_of", &[Value::List(all.clone())]), Ok(vec![big(4000)]));
                let sum: i64 = rig.rows("accounts").iter().map(|row| match row[2] {
                    Value::BigInt(balance) => balance,
                    _ => unreachable!("a balance"),
                }).sum();
                assert_eq!(sum, 2000);
            }
        });
    });
}

fn one_key_from_many_threads(make: Make<'_>) {
    let rig = bank(make, 2, 0);
    on_threads(&rig, |_, _| {
        for round in 0u32..100 {
            rig.call_with("add", &[int(0), big(1)], Some(&(round / 2).to_le_bytes())).unwrap();
        }
    });
    assert_eq!(rig.query("see", &[int(0)]), Ok(vec![big(50), big(0)]));
}

fn replay_gives_the_same(make: Make<'_>) {
    let rig = bank(make, 8, 100);
    rig.define(SHOP);
    on_threads(&rig, |random, thread| {
        for round in 0..15 {
            let mut batch = BatchBuilder::new();
            for n in 0..10 {
                let (src, dst) = (random.below(8) as i32, random.below(8) as i32);
                let key = format!("{thread} {round} {n}");
                let key = (n % 3 == 0).then_some(key.as_bytes());
                match random.below(6) {
                    0 => rig.push(&mut batch, "stamp", &[int(src)], key),
                    1 => rig.push(&mut batch, "order", &[int(src), int(dst), int(1), text("new")], key),
                    2 => rig.push(&mut batch, "cancel", &[int(src), int(dst)], key),
                    3 => rig.push(&mut batch, "replace", &[int(src), int(dst)], key),
                    4 => rig.push(&mut batch, "next_number", &[int(src), int(30)], key),
                    _ => rig.push(&mut batch, "transfer", &[int(src), int(dst), big(40)], key),
                };
            }
            rig.run(&batch.build());
        }
    });
    let again = rig.replayed(make);
    assert_eq!(again.dump(), rig.dump());
    for shop in 0..8 {
        assert_eq!(again.query("down", &[int(shop)]), rig.query("down", &[int(shop)]));
    }
    assert_eq!(again.query("in_state", &[text("new")]), rig.query("in_state", &[text("new")]));
    // A log that does not go on where the engine stands is refused.
    let logged = rig.logged();
    aborts(again.engine.replay(logged[0].first_seq, logged[0].count, &logged[0].payload), SqlState::DATA_CORRUPTED);
}
