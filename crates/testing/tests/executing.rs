//! What a caller sees of a run: results, and errors with their line and values. Every case goes
//! through the interpreter and through compiled code.

use bumpalo::Bump;
use fabius_program::arguments;
use fabius_program::catalog::Catalog;
use fabius_program::compile::{compile_later, compile_now, compile_whole};
use fabius_program::context::Stop;
use fabius_program::execute::{Frame, run};
use fabius_program::interpret::interpret;
use fabius_program::slice::{TypesOnly, slice};
use fabius_program::verify;
use fabius_testing::memory::{Call, Handle, Memory, Phase, View};
use fabius_value::{Value, limit};

const TABLES: &str = "
table accounts { id: bigint, owner: text null, balance: numeric(8, 2), primary key (id), index owners (owner) }
table stock { warehouse: int, item: varchar(4), count: int, primary key (warehouse, item) }
procedure setup() {
    insert accounts { id: 1, owner: 'ann', balance: 10.00 }
    insert accounts { id: 2, owner: 'bob', balance: 3.00 }
    insert accounts { id: 3, balance: 0.00 }
    insert stock { warehouse: 1, item: 'ax', count: 5 }
}
";

fn told(outcome: Result<Vec<Value>, Stop>) -> String {
    match outcome {
        Ok(values) => values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "),
        Err(Stop::Abort(error)) => format!("{error:?}"),
        Err(other) => format!("{other:?}"),
    }
}

/// What calling the procedure `p` of `text` tells, by both ways of running it.
fn call(text: &str, values: &[Value]) -> String {
    let catalog = verify::load(&format!("{TABLES}\n{text}"), "test", &Catalog::new())
        .unwrap_or_else(|errors| panic!("{errors}"));
    let arena = Bump::new();
    let mut memory = Memory::new(&catalog);
    let program = |name: &str| catalog.procedure(catalog.find_procedure(name).unwrap()).unwrap();
    let mut state = Call::new(1);
    let mut view = View { memory: &mut memory, call: &mut state, phase: Phase::Whole, arena: &arena };
    interpret(program("setup"), &catalog, &[], &mut view, &arena).unwrap();

    let bytes = match arguments::encode(program("p"), values) {
        Ok(bytes) => bytes,
        Err(error) => return format!("{error:?}"),
    };
    let (mut other, mut state) = (memory.clone(), Call::new(2));
    let mut view = View { memory: &mut memory, call: &mut state, phase: Phase::Whole, arena: &arena };
    let interpreted = told(interpret(program("p"), &catalog, &bytes, &mut view, &arena));

    let code = compile_whole(program("p"), &catalog).unwrap();
    let (mut frame, mut state) = (Frame::new(), Call::new(2));
    let mut view = View { memory: &mut other, call: &mut state, phase: Phase::Whole, arena: &arena };
    frame.start(&code, &bytes, &arena).unwrap();
    let outcome = run(&mut frame, &code, &mut view, &arena);
    let executed = told(outcome.map(|()| frame.results(&code).unwrap_or_default()));
    assert_eq!(interpreted, executed, "{code}");
    executed
}

/// Goal: a failed require says what its condition saw; lines are those of the procedure.
#[test]
fn a_failed_require_lists_the_values_it_mentions() {
    let transfer = "procedure p(src: bigint, amount: numeric(8, 2)) {
        require accounts[src].balance >= amount, \"insufficient funds\"
    }";
    assert_eq!(
        call(transfer, &[2i64.into(), 5i64.into()]),
        "[P0001] insufficient funds (line 2); accounts[src].balance = 3.00, amount = 5.00"
    );
    assert_eq!(call(transfer, &[1i64.into(), 5i64.into()]), "");
    let owner = "procedure p(name: text null, l: list of int) {
        require count(l) > 1 and name = 'ann', \"not you\"
    }";
    let list = |numbers: &[i64]| Value::List(numbers.iter().map(|number| vec![(*number).into()]).collect());
    assert_eq!(
        call(owner, &["bob".into(), list(&[1, 2])]),
        "[P0001] not you (line 2); l = [(1), (2)], name = 'bob'"
    );
    assert_eq!(
        call(owner, &[Value::Null, list(&[1, 2])]),
        "[P0001] not you (line 2); l = [(1), (2)], name = null"
    );
    let long = "x".repeat(200);
    let shown = format!("[P0001] not you (line 2); l = [], name = '{}...", "x".repeat(79));
    assert_eq!(call(owner, &[long.into(), list(&[])]), shown);
}

/// Goal: a row that had to be there is named by its table and key.
#[test]
fn a_missing_row_is_named_by_its_key() {
    let one = "procedure p(a: bigint) { accounts[a + 4].balance = 1 }";
    assert_eq!(call(one, &[3i64.into()]), "[P0002] no such row (line 2); accounts[7]");
    let two = "procedure p(w: int, i: varchar(4)) -> int { return stock[w, i].count }";
    assert_eq!(call(two, &[1i64.into(), "pin".into()]), "[P0002] no such row (line 2); stock[1, 'pin']");
    let in_loop = "procedure p() {
        for n in 1 to 9 {
            accounts[n].balance += 1
        }
    }";
    assert_eq!(call(in_loop, &[]), "[P0002] no such row (line 3); accounts[4]");
    let deleted = "procedure p(a: bigint) -> numeric(8, 2) {
        delete accounts[a]
        return accounts[a].balance
    }";
    assert_eq!(call(deleted, &[1i64.into()]), "[P0002] no such row (line 3); accounts[1]");
}

/// Goal: null keys find nothing, null bounds match nothing, null limits bound nothing.
#[test]
fn nulls_where_rows_are_looked_up() {
    let key = "procedure p(a: bigint null) -> numeric(8, 2) null { return accounts[a]?.balance }";
    assert_eq!(call(key, &[Value::Null]), "null");
    assert_eq!(call(key, &[1i64.into()]), "10.00");
    let range = "procedure p(low: bigint null, most: bigint null) -> bigint {
        var ids: list of bigint = []
        for a in accounts[low ..] limit most {
            append ids (a.id)
        }
        return count(ids)
    }";
    assert_eq!(call(range, &[Value::Null, Value::Null]), "0");
    assert_eq!(call(range, &[2i64.into(), Value::Null]), "2");
    assert_eq!(call(range, &[1i64.into(), 1i64.into()]), "1");
    assert_eq!(call(range, &[1i64.into(), 0i64.into()]), "0");
    assert_eq!(
        call(range, &[1i64.into(), (-1i64).into()]),
        "[22023] limit must not be negative (line 3); limit is -1"
    );
}

/// Goal: an operation that fails aborts with its code, line and operands.
#[test]
fn operations_abort_with_their_line() {
    let divide = "procedure p(a: int, b: int) -> int {
        let c = a
        return c / b
    }";
    assert_eq!(call(divide, &[7i64.into(), 2i64.into()]), "3");
    assert_eq!(call(divide, &[7i64.into(), 0i64.into()]), "[22012] division by zero (line 3); 7 / 0");
    let add = "procedure p(a: int) -> int { return a + 1 }";
    assert_eq!(
        call(add, &[i64::from(i32::MAX).into()]),
        "[22003] integer out of range (line 2); 2147483647 + 1"
    );
    let store = "procedure p(a: bigint) { accounts[1].balance = a }";
    assert_eq!(
        call(store, &[1_000_000i64.into()]),
        "[22003] numeric field overflow (line 2); A field with precision 8, scale 2 must round to an absolute value less than 10^6. \
         Here: 1000000::numeric(8, 2)."
    );
    let duplicate = "procedure p() {
        insert accounts { id: 1, balance: 0 }
    }";
    assert!(call(duplicate, &[]).starts_with("[23505]"), "{}", call(duplicate, &[]));
    assert!(call(duplicate, &[]).contains("(line 2)"));
    assert_eq!(
        call(add, &[Value::Null]),
        "[23502] argument a: null is not allowed; expected int, given null"
    );
}

/// Goal: null for a column that cannot have it names table, column and line, however it gets there.
#[test]
fn null_is_kept_out_of_columns() {
    let balance = "[23502] null value in column \"balance\" of relation \"accounts\" violates not-null constraint (line 2)";
    let update = "procedure p(b: numeric(8, 2) null) { accounts[1].balance = b }";
    assert_eq!(call(update, &[Value::Null]), balance);
    let computed = "procedure p(b: int null) { update accounts[1] { owner: 'x', balance: b + 1 } }";
    assert_eq!(call(computed, &[Value::Null]), balance);
    let added = "procedure p(b: int null) { accounts[1].balance += b }";
    assert_eq!(call(added, &[Value::Null]), balance);
    let insert = "procedure p(b: int null) { insert accounts { id: 9, balance: b } }";
    assert_eq!(call(insert, &[Value::Null]), balance);
    let upsert = "procedure p(b: int null) { upsert accounts { id: 1, balance: b } }";
    assert_eq!(call(upsert, &[Value::Null]), balance);
    let key = "procedure p(i: varchar(4) null) {
        let count = 7
        insert stock { warehouse: 1, item: i, count: count }
    }";
    assert_eq!(
        call(key, &[Value::Null]),
        "[23502] null value in column \"item\" of relation \"stock\" violates not-null constraint (line 3)"
    );
}

/// Goal: what need not be evaluated is not; what must be is, even if a null has decided already.
#[test]
fn evaluation_is_as_lazy_as_sql_says() {
    let text = |body: &str| format!("procedure p(a: int null, b: int) -> boolean null {{ return {body} }}");
    let both = |body: &str, a: Value| call(&text(body), &[a, 0i64.into()]);
    assert_eq!(both("a > 0 and 1 / b > 0", (-1i64).into()), "false");
    assert_eq!(both("a > 0 or 1 / b > 0", 1i64.into()), "true");
    assert_eq!(both("a > 0 and 1 / b > 0", Value::Null), "[22012] division by zero (line 2); 1 / 0");
    assert_eq!(both("coalesce(a, 1 / b) = 1", 1i64.into()), "true");
    assert_eq!(both("(if a is null then 1 else 1 / b) = 1", Value::Null), "true");
    let branch = "procedure p(a: int null, b: int) -> int {
        var x = 0
        if a > 0 and 1 / b > 0 {
            x = 1
        }
        return x
    }";
    assert_eq!(call(branch, &[Value::Null, 0i64.into()]), "[22012] division by zero (line 3); 1 / 0");
    assert_eq!(call(branch, &[(-1i64).into(), 0i64.into()]), "0");
}

/// Goal: loops end where they should, at the ends of the integers too.
#[test]
fn loops_are_finite() {
    let range = "procedure p(from: bigint, last: bigint null) -> bigint {
        var turns = 0
        for n in from to last {
            turns += 1
        }
        return turns
    }";
    let turns = |from: i64, to: Value| call(range, &[from.into(), to]);
    assert_eq!(turns(1, 5i64.into()), "5");
    assert_eq!(turns(5, 1i64.into()), "0");
    assert_eq!(turns(1, Value::Null), "0");
    assert_eq!(turns(i64::MAX - 1, i64::MAX.into()), "2");
    assert_eq!(turns(i64::MIN, i64::MIN.into()), "1");
    let nested = "procedure p() -> (pairs: list of (a: bigint, owner: text null)) {
        var pairs: list of (a: bigint, owner: text null) = []
        for x in accounts where x.owner is not null descending {
            for y in accounts by owners[x.owner] {
                append pairs (x.id, y.owner)
            }
        }
        return pairs
    }";
    assert_eq!(call(nested, &[]), "[(2, bob), (1, ann)]");
}

/// Goal: loops whose turns come to too many abort before they take them, nested ones and those over
/// lists too.
#[test]
fn loops_have_a_bound() {
    let range = "procedure p(last: bigint) -> bigint {
        var turns: bigint = 0
        for n in 1 to 3 { turns += 1 }
        for n in 1 to last { }
        return turns
    }";
    let most = limit::LOOP_TURNS as i64;
    assert_eq!(call(range, &[(most - 3).into()]), "3");
    let too_many = "[54000] loops of one call may take 10000000 turns (line 5); here are 9999998, after 3 \
                    before; hint: divide the work among several calls";
    assert_eq!(call(range, &[(most - 2).into()]), too_many.replace("line 5", "line 6"));
    assert!(call(range, &[i64::MAX.into()]).contains("here are 9223372036854775807"));
    let nested = "procedure p(l: list of int, times: bigint) -> bigint {
        var turns: bigint = 0
        for n in 1 to times {
            for x in l { turns += x }
        }
        return turns
    }";
    let l = Value::List(vec![vec![Value::Int(1)]; 1000]);
    assert_eq!(call(nested, &[l.clone(), 9i64.into()]), "9000");
    let half = most / 2;
    assert_eq!(
        call(nested, &[Value::List(vec![vec![Value::Int(1)]]), (half + 1).into()]),
        format!(
            "[54000] loops of one call may take {most} turns (line 4); here are 1, after {most} before; \
             hint: divide the work among several calls"
        )
    );
}

/// Goal: loops that could take too many turns are entered now, others only if there is something to do.
#[test]
fn turns_are_counted_before_the_promise() {
    let text = format!(
        "{TABLES} procedure p(times: int, name: text) -> text {{
            var all = ''
            for n in 1 to times {{ all = name }}
            return all
        }}"
    );
    let catalog = verify::load(&text, "test", &Catalog::new()).unwrap_or_else(|errors| panic!("{errors}"));
    let program = catalog.procedure(catalog.find_procedure("p").unwrap()).unwrap();
    let now = |phases| compile_now(program, &catalog, phases).unwrap().to_string();
    let anything = slice(program, &catalog, &TypesOnly);
    assert_eq!(anything.hidden_requires.len(), 1);
    assert!(now(&anything).contains("EnterRange"), "{}", now(&anything));
    let later = compile_later(program, &catalog, &anything, true).unwrap().to_string();
    assert!(!later.contains("EnterRange"), "{later}");
}

/// Goal: a variable may be computed from itself, whatever the expression becomes.
#[test]
fn assignments_read_before_they_write() {
    let text = "procedure p(a: int null) -> (x: int null, y: int null, z: boolean) {
        var x: int null = 5
        x = coalesce(a, x)
        var y: int null = 1
        y = if y = 1 then y + 1 else y
        var z = true
        z = not z or z
        return x, y, z
    }";
    assert_eq!(call(text, &[Value::Null]), "5, 2, true");
    assert_eq!(call(text, &[7i64.into()]), "7, 2, true");
}

/// Goal: the parts of a program do only their part.
#[test]
fn phases_of_a_transfer() {
    let text = format!(
        "{TABLES} procedure p(src: bigint, amount: numeric(8, 2)) -> numeric(8, 2) {{
            require accounts[src].balance >= amount, \"insufficient funds\"
            accounts[src].owner = upper(accounts[src].owner)
            return accounts[src].balance
        }}"
    );
    let catalog = verify::load(&text, "test", &Catalog::new()).unwrap_or_else(|errors| panic!("{errors}"));
    let program = catalog.procedure(catalog.find_procedure("p").unwrap()).unwrap();
    let phases = slice(program, &catalog, &TypesOnly);
    let whole = compile_whole(program, &catalog).unwrap();
    let now = compile_now(program, &catalog, &phases).unwrap();
    let later = compile_later(program, &catalog, &phases, false).unwrap();
    assert!(whole.computes_results());
    assert!(!later.computes_results());
    assert!(now.to_string().contains("Fail") && !later.to_string().contains("Fail"));
    assert!(later.len() < whole.len());
}

/// Goal: a frame keeps its buffers from arena to arena.
#[test]
fn frames_are_recycled() {
    let catalog = verify::load(
        "procedure p(a: int, l: list of int) -> bigint null { return a + sum(l) }",
        "t",
        &Catalog::new(),
    )
    .unwrap_or_else(|errors| panic!("{errors}"));
    let program = catalog.procedures().next().unwrap().1;
    let code = compile_whole(program, &catalog).unwrap();
    let bytes =
        arguments::encode(program, &[2i64.into(), Value::List(vec![vec![3i64.into()], vec![4i64.into()]])])
            .unwrap();
    let mut arena = Bump::new();
    let mut idle: Frame<'static, Handle, fabius_testing::memory::Found> = Frame::new();
    let mut memory = Memory::new(&catalog);
    for _ in 0..3 {
        let mut frame = idle.recycle();
        frame.start(&code, &bytes, &arena).unwrap();
        let mut state = Call::new(1);
        let mut view = View { memory: &mut memory, call: &mut state, phase: Phase::Whole, arena: &arena };
        run(&mut frame, &code, &mut view, &arena).unwrap();
        assert_eq!(frame.results(&code), Some(vec![Value::BigInt(9)]));
        idle = frame.recycle();
        arena.reset();
    }
}
