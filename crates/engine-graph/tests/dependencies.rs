//! Calls whose record actions depend on each other are executed action by action, and come to what the serial oracle
//! comes to.

use fabius_engine::BatchBuilder;
use fabius_engine_graph::{GraphEngine, Settings};
use fabius_env::{Random, schedule};
use fabius_program::arguments;
use fabius_program::slice::{ColumnBounds, take_apart};
use fabius_testing::differential::history::texts;
use fabius_testing::oracle::Oracle;
use fabius_testing::rig::Rig;
use fabius_value::Value;
use std::sync::Arc;

const TABLES: &str = "
    table accounts { id: int, balance: bigint, limits: int, note: text, primary key (id) }
    table prices { id: int, price: bigint, label: text, primary key (id) using hash }
    table counters { id: int, n: bigint, last: bigint, primary key (id) using hash }
    table notes { id: int, owner: int, amount: bigint, label: text null, primary key (id) using hash,
        index by_owner (owner), index by_label (label, owner) }
    table logs { id: int, number: bigint, amount: bigint, primary key (id, number), index by_amount (amount) }
    procedure notes_of(owner: int) -> list of (id: int, amount: bigint) {
        var found: list of (id: int, amount: bigint) = []
        for note in notes by by_owner[owner] { append found (note.id, note.amount) }
        return found
    }
    procedure notes_with(label: text) -> list of (id: int, amount: bigint) {
        var found: list of (id: int, amount: bigint) = []
        for note in notes by by_label[label] { append found (note.id, note.amount) }
        return found
    }
    procedure logs_of(amount: bigint) -> list of (id: int, number: bigint) {
        var found: list of (id: int, number: bigint) = []
        for log in logs by by_amount[amount] { append found (log.id, log.number) }
        return found
    }
    procedure fill(count: int) {
        for id in 0 to count - 1 {
            if id % 3 = 0 { insert notes { id: id::int, owner: 1, amount: id, label: 'old' } }
            insert accounts { id: id::int, balance: id * 3, limits: 2147483600, note: 'account ' || id::text }
            insert counters { id: id::int, n: 0, last: 0 }
            insert prices { id: id::int, price: id, label: 'price ' || id::text }
        }
    }
";

/// Programs of two accounts, a price, and lists of accounts and prices, each taken apart, but for the last ones.
const PROGRAMS: [(&str, &str); 55] = [
    (
        "transfer",
        "-> bigint {
            require accounts[a].balance >= n, \"insufficient funds\"
            accounts[a].balance -= n
            accounts[b].balance += n
            return accounts[a].balance
        }",
    ),
    // Each may be the one that leaves its range.
    ("raise", "{ accounts[a].limits += n::int accounts[b].limits += n::int prices[p].price = n }"),
    ("buy", "{ accounts[a].balance = accounts[a].balance - prices[p].price prices[p].label = 'bought' }"),
    // Two rows decide together; the first has to wait for the second with what it writes.
    (
        "cover",
        "-> (a: bigint, b: bigint) {
            let x = accounts[a].balance
            let y = accounts[b].balance
            require x + y >= n, \"not together\"
            accounts[a].balance = greatest(x, n)
            accounts[b].balance = 0
            return x, y
        }",
    ),
    (
        "together",
        "{
            require accounts[a].balance + accounts[b].balance >= n, \"not together\"
            accounts[a].note = 'covered'
            prices[p].label = concat(accounts[b].note, '!')
        }",
    ),
    (
        "either",
        "{
            if accounts[a].balance > n { accounts[b].note = 'rich' } else { prices[p].label = accounts[a].note }
        }",
    ),
    (
        "nested",
        "{
            if accounts[a].balance > n {
                require prices[p].price > 2, \"too cheap\"
                if prices[p].price > 7 { accounts[b].limits += 17 }
            } else {
                prices[p].price = n
            }
        }",
    ),
    (
        "divide",
        "-> bigint {
            prices[p].price = n / accounts[a].balance
            accounts[b].balance = n
            return prices[p].price
        }",
    ),
    (
        "relay",
        "-> text {
            prices[p].price = accounts[a].balance
            accounts[b].balance = prices[p].price
            accounts[b].note = accounts[a].note
            return prices[p].label
        }",
    ),
    ("look", "-> (x: bigint, y: bigint, z: text) { return accounts[a].balance, prices[p].price, accounts[b].note }"),
    ("arguments", "{ require n > 3, \"small\" accounts[a].balance = n accounts[b].balance = n }"),
    ("deposit", "-> bigint { accounts[a].balance += n return accounts[a].balance }"),
    ("blind", "{ accounts[a].balance = n prices[p].price = n }"),
    // Turns: each decides, and the first in the text to fail counts.
    (
        "pay_all",
        "{
            for e in l { require accounts[e.k].balance >= e.v, \"account\" }
            for e in l { accounts[e.k].balance = n / (accounts[e.k].balance - e.v) }
            prices[p].label = 'paid'
        }",
    ),
    (
        "divide_all",
        "{
            for e in l { accounts[e.k].balance = n / (accounts[e.k].balance - e.v) }
            for k in m { prices[k].price = n }
        }",
    ),
    (
        "raise_all",
        "{ accounts[a].limits += n::int for k in m { prices[k].price += 1 } prices[p].label = 'raised' }",
    ),
    // Turns hand over to the same turn, or to one action.
    ("copy_all", "{ for e in l { accounts[e.k].balance = prices[e.k].price prices[e.k].label = 'copied' } }"),
    (
        "sum",
        "-> bigint {
            var highest: bigint = n
            for e in l { highest = greatest(highest, accounts[e.k].balance) }
            prices[p].price = highest
            return highest
        }",
    ),
    (
        "spread",
        "{
            var highest: bigint = n
            for e in l { highest = greatest(highest, accounts[e.k].balance) }
            for k in m { prices[k].price = highest }
        }",
    ),
    (
        "list_all",
        "-> (found: list of (id: int, balance: bigint, label: text)) {
            var found: list of (id: int, balance: bigint, label: text) = []
            for e in l {
                append found (e.k, accounts[e.k].balance, prices[e.k].label)
                accounts[e.k].balance = e.v
            }
            return found
        }",
    ),
    // Turns that come to nothing, one by one or together.
    (
        "some",
        "{
            for e in l {
                if accounts[e.k].balance > n { prices[e.k].label = accounts[e.k].note }
                else { accounts[e.k].note = 'poor' }
            }
        }",
    ),
    (
        "all_or_none",
        "{
            if accounts[a].balance > n {
                for k in m { require prices[k].price < 12, \"dear\" prices[k].price = n }
            } else {
                accounts[b].note = 'none'
            }
        }",
    ),
    ("both", "{ for e in l { accounts[e.k].balance = e.v } for k in m { prices[k].price = n } }"),
    (
        "chain",
        "-> bigint {
            for e in l { require accounts[e.k].balance < 15 + e.v, \"rich\" accounts[e.k].note = 'first' }
            require accounts[a].limits > 0, \"limits\"
            for k in m { require prices[k].price < 15, \"dear\" prices[k].price = n }
            return accounts[a].balance
        }",
    ),
    (
        "one_row",
        "{ for e in l { accounts[a].balance = least(accounts[a].balance, e.v) } for k in m { prices[k].price = n } }",
    ),
    // What is known of the values of counters proves that nothing fails.
    ("count_all", "{ for e in l { require counters[e.k].n >= 0, \"n\" counters[e.k].n += 1 } }"),
    (
        "count_and_pay",
        "-> bigint {
            counters[a].n += 2
            for e in l { counters[e.k].last = counters[e.k].n % 1000 }
            require accounts[b].balance > n, \"poor\"
            return counters[a].n
        }",
    ),
    // Rows come,
    ("log", "{ insert logs { id: a, number: n, amount: n } }"),
    ("log_price", "{ insert logs { id: a, number: n, amount: prices[p].price } accounts[b].balance = n }"),
    ("pay_and_log", "{ prices[p].price = n insert logs { id: a, number: n, amount: accounts[b].balance } }"),
    (
        "pay_and_log_all",
        "{
            require accounts[a].balance >= n, \"insufficient funds\"
            accounts[a].balance -= n
            for k in m { insert logs { id: k, number: n, amount: 1 } }
            prices[p].label = 'logged'
        }",
    ),
    ("copy_log", "-> bigint { accounts[b].balance = logs[a, n].amount return logs[a, n].amount }"),
    ("change_log", "{ if exists logs[a, n] { accounts[b].note = 'exists' } prices[p].price = 3 }"),
    ("note", "{ insert notes { id: a, owner: b, amount: n, label: 'new' } accounts[b].note = 'noted' }"),
    // or go,
    ("strike", "-> bigint { let was = notes[a].amount delete notes[a] accounts[b].note = 'struck' return was }"),
    ("strike_only", "{ delete notes[a] }"),
    (
        "strike_all",
        "{ for k in m { if exists notes[k] { delete notes[k] prices[k].label = 'struck' } } accounts[a].note = 's' }",
    ),
    // or both.
    ("renew", "{ delete notes[a] insert notes { id: a, owner: p, amount: n, label: null } prices[p].price = n }"),
    (
        "come_and_go",
        "{ insert notes { id: a, owner: p, amount: n } notes[a].amount += 1 delete notes[a] accounts[b].note = 'gone' }",
    ),
    (
        "rename",
        "-> bigint {
            let amount = notes[a].amount
            delete notes[a]
            insert notes { id: b, owner: p, amount: amount + n, label: accounts[a].note }
            return notes[b].amount
        }",
    ),
    (
        "count_note",
        "-> bigint {
            if exists notes[a] { update notes[a] { amount: notes[a].amount + n } }
            else { insert notes { id: a, owner: b, amount: n, label: 'counted' } }
            prices[p].price = notes[a].amount
            return notes[a].amount
        }",
    ),
    (
        "if_free",
        "-> boolean {
            if not exists notes[a] { accounts[b].note = 'free' } else { prices[p].label = 'taken' }
            return exists notes[a]
        }",
    ),
    (
        "note_all",
        "{
            for e in l { if not exists notes[e.k] { insert notes { id: e.k, owner: b, amount: e.v, label: 'all' } } }
            prices[p].price = n
        }",
    ),
    ("read_note", "-> bigint { prices[p].price = notes[a].amount return notes[a].amount + 0 * n }"),
    // Whole; the row of a call that aborts leaves a record without any.
    (
        "log_once",
        "{ for i in 1 to 1 { insert logs { id: a, number: n, amount: i } } require accounts[b].balance > 9, \"no\" }",
    ),
    // Ranges, of which records are others' meanwhile: of an index, of a key's first column, of a whole table.
    (
        "notes_by",
        "-> list of int {
            var found: list of int = []
            for note in notes by by_owner[b] { append found (note.id) }
            return found
        }",
    ),
    ("strike_by", "{ for note in notes by by_owner[b] { delete note } accounts[a].note = 'struck' }"),
    ("change_logs", "{ for log in logs[a] { log.amount = n } prices[p].label = 'changed' }"),
    (
        "sum_logs",
        "-> bigint {
            var sum: bigint = 0
            for log in logs[a] { sum += log.amount + log.number }
            accounts[b].balance = sum
            return sum
        }",
    ),
    (
        "shift_logs",
        "{
            var sum: bigint = n
            for log in logs[a] { sum += log.amount }
            if exists logs[b, n] { logs[b, n].amount = sum }
        }",
    ),
    (
        "follow",
        "{
            let found = (accounts[a].balance % 8)::int
            if exists prices[found] { prices[found].label = 'followed' } else { accounts[b].note = 'lost' }
        }",
    ),
    ("log_balance", "{ insert logs { id: a, number: accounts[b].balance, amount: n } }"),
    ("level", "{ for account in accounts[a ..] { account.balance = n } }"),
    ("carried", "{ var i = n for e in l { i = 7 - i accounts[e.k].balance = i } }"),
    (
        "turns",
        "{ for i in 1 to 2 { accounts[a].balance += i require accounts[b].balance > 3, \"no\" prices[p].price -= i } }",
    ),
];
const LISTS: &str = "l: list of (k: int, v: bigint), m: list of int";
/// Programs at the end of those that are not taken apart.
const WHOLE: usize = 11;
const ROWS: u64 = 8;

fn text() -> String {
    let program = |(name, body): &(&str, &str)| {
        format!("procedure {name}(a: int, b: int, p: int, {LISTS}, n: bigint) {body}\n")
    };
    TABLES.to_string() + &PROGRAMS.iter().map(program).collect::<String>()
}

fn rig(partitions: usize) -> Rig {
    let settings = Settings { partitions: Some(partitions), workers_max: 3, ..Settings::default() };
    let rig = Rig::new(&|foundation| Arc::new(GraphEngine::new(foundation, settings)));
    rig.define(&text());
    rig
}

/// A list of some rows' keys, mostly different ones, with values if it `has_values`.
fn list(random: &mut Random, rows: u64, has_values: bool) -> Value {
    let first = random.below(rows);
    let mut keys: Vec<u64> = (0..random.below(rows.min(5))).map(|at| (first + at * 3) % rows).collect();
    if random.chance(1, 2) {
        keys.sort_unstable();
        keys.dedup();
    }
    let element = |key: u64| {
        let value = has_values.then(|| Value::BigInt(random.below(20) as i64));
        std::iter::once(Value::Int(key as i32)).chain(value).collect()
    };
    Value::List(keys.into_iter().map(element).collect())
}

/// Runs batches of random calls, and compares outcomes, results and rows with the oracle's.
fn compare(rig: &Rig, seed: u64, batches: u64, calls: u64) {
    let mut random = Random::seeded(seed);
    let mut oracle = Oracle::new();
    oracle.define(&text()).expect("it is well-formed");
    let mut told = Vec::new();
    let mut run = |calls: &[(&str, Vec<Value>, bool)]| {
        let mut batch = BatchBuilder::new();
        for (name, values, wants_result) in calls {
            rig.push_call(&mut batch, name, values, None, *wants_result);
        }
        let batch = batch.build();
        rig.run(&batch);
        for (at, (name, values, wants_result)) in calls.iter().enumerate() {
            let procedure = rig.procedure(name);
            let bytes = arguments::encode(&procedure.program, values).expect("they fit");
            let expected = oracle.call(procedure.id, &bytes, None, 0).result;
            let actual = match wants_result {
                true => rig.result(&batch, at as u32),
                false => batch.outcome(at as u32).map(|_| expected.clone().unwrap_or_default()),
            };
            told.push(format!("{name} {values:?}: {expected:?}"));
            let shown = |result: &fabius_value::Result<Vec<Value>>| match result {
                Ok(values) => format!("{values:?}"),
                Err(error) => format!("{error:?}"),
            };
            assert_eq!(shown(&actual), shown(&expected), "seed {seed}, call {at}\n{}", told.join("\n"));
        }
    };
    run(&[("fill", vec![Value::Int(ROWS as i32)], false)]);
    for _ in 0..batches {
        // In some batches all calls meet at few rows.
        let rows = if random.chance(1, 2) { ROWS } else { 3 };
        let whole = random.chance(1, 2);
        let programs = if whole { PROGRAMS.len() } else { PROGRAMS.len() - WHOLE };
        let call = |random: &mut Random| {
            let (name, _) = PROGRAMS[random.index(programs)];
            // Now and then a row that is not there.
            let above = if random.chance(1, 40) { 2 } else { 0 };
            let mut id = |above| Value::Int(random.below(rows + above) as i32);
            let ids = [id(above), id(0), id(0)];
            let lists = [list(random, rows + above, true), list(random, rows, false)];
            let values = ids.into_iter().chain(lists).chain([Value::BigInt(random.below(20) as i64)]);
            (name, values.collect(), random.chance(1, 2))
        };
        let count = 1 + random.below(calls);
        run(&(0..count).map(|_| call(&mut random)).collect::<Vec<_>>());
    }
    for name in ["accounts", "counters", "prices", "notes", "logs"] {
        let table = oracle.catalog().find_table(name).expect("it is there");
        assert_eq!(
            texts(rig.rows(name)),
            texts(oracle.rows(table)),
            "seed {seed}, {name}\n{}",
            told.join("\n")
        );
    }
    let owners = (0..ROWS as i32 + 2).map(|owner| ("notes_of", Value::Int(owner)));
    let labels =
        ["old", "new", "counted", "all", "first"].map(|label| ("notes_with", Value::Text(label.into())));
    let amounts = (0..40).map(|amount| ("logs_of", Value::BigInt(amount)));
    for (name, argument) in owners.chain(labels).chain(amounts) {
        let procedure = rig.procedure(name);
        let bytes = arguments::encode(&procedure.program, std::slice::from_ref(&argument)).expect("it fits");
        let expected = oracle.call(procedure.id, &bytes, None, 0).result;
        let actual = rig.call(name, &[argument]);
        assert_eq!(
            format!("{actual:?}"),
            format!("{expected:?}"),
            "seed {seed}, {name}\n{}",
            told.join("\n")
        );
    }
}

/// Goal: these programs are taken apart, but for the last.
#[test]
fn programs_are_taken_apart() {
    let rig = rig(1);
    let catalog = &rig.foundation.definitions().catalog;
    let mut bounds = ColumnBounds::default();
    bounds.follow(catalog, &catalog.procedures().map(|(_, program)| &**program).collect::<Vec<_>>(), 0);
    for (at, (name, _)) in PROGRAMS.iter().enumerate() {
        let apart = take_apart(&rig.procedure(name).program, catalog, &bounds);
        assert_eq!(apart.is_ok(), at < PROGRAMS.len() - WHOLE, "{name}: {:?}", apart.err());
    }
}

/// Goal: whatever the schedule, each call's outcome, error and results are those of its place in the order.
#[test]
fn any_schedule_comes_to_the_same() {
    let seeds = std::env::var("FABIUS_SIM_SEEDS").ok();
    let seeds = seeds
        .as_deref()
        .and_then(|text| text.split_once(".."))
        .map_or(0..120, |(from, until)| from.parse().expect("a number")..until.parse().expect("a number"));
    for seed in seeds {
        schedule::simulate(seed, move || {
            let rig = Arc::new(rig(1 + seed as usize % 4));
            rig.helped_in_simulation(2, || compare(&rig, seed, 6, 60));
        });
    }
}

/// Goal: likewise on threads that run freely.
#[test]
fn free_threads_come_to_the_same() {
    for seed in 1000..1010 {
        let rig = rig(3);
        rig.helped(2, || compare(&rig, seed, 20, 300));
    }
}
