//! What running compiled code costs. Not a test of correctness: run it by hand, in release.
//!
//! ```text
//! cargo test --release -p fabius-program --test executor_speed -- --ignored --nocapture
//! ```

use bumpalo::Bump;
use fabius_program::arguments::ArgumentWriter;
use fabius_program::catalog::Catalog;
use fabius_program::compile::{Code, compile_whole};
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_program::execute::{Frame, run};
use fabius_program::verify;
use fabius_value::{ColumnId, Datum, TableId};
use std::hint::black_box;

/// Rows that are always there, with one number in every column: what is left is the executor.
struct Flat {
    value: i64,
}

impl<'a> Context<'a> for Flat {
    type Row = u32;
    type Scan = ();

    fn locate(&mut self, _: TableId, key: &[Datum<'a>]) -> Result<u32, Stop> {
        Ok(key[0].int() as u32)
    }
    fn exists(&mut self, _: TableId, _: u32) -> Result<bool, Stop> {
        Ok(true)
    }
    fn read(&mut self, _: TableId, _: u32, column: ColumnId) -> Result<Datum<'a>, Stop> {
        Ok(match column.0 {
            0 | 1 => Datum::Int(self.value),
            _ => Datum::Numeric(self.value.into()),
        })
    }
    fn scan_open(&mut self, _: ScanRange<'_, 'a>) -> Result<(), Stop> {
        Ok(())
    }
    fn scan_next(&mut self, _: &mut ()) -> Result<Option<u32>, Stop> {
        Ok(None)
    }
    fn insert(&mut self, _: TableId, _: WriteSet<'_, 'a>) -> Result<u32, Stop> {
        Ok(1)
    }
    fn update(&mut self, _: TableId, _: u32, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        black_box(write.values);
        Ok(())
    }
    fn delete(&mut self, _: TableId, _: u32) -> Result<(), Stop> {
        Ok(())
    }
    fn now(&self) -> i64 {
        0
    }
    fn random(&mut self) -> f64 {
        0.5
    }
    fn is_missing(&self, row: u32) -> bool {
        row == 0
    }
}

const TEXT: &str = "
table accounts { id: bigint, owner: bigint, balance: numeric(12, 2), primary key (id) }
procedure transfer(src: bigint, dst: bigint, amount: numeric(12, 2)) -> numeric(12, 2) {
    require accounts[src].balance >= amount, \"insufficient funds\"
    accounts[src].balance -= amount
    accounts[dst].balance += amount
    return accounts[src].balance
}
procedure integers(a: bigint, b: bigint, c: bigint) -> bigint {
    var x = a
    x = x + b
    x = x * 3 - c
    x = if x > 1000 then x - 1000 else x + 7
    x = x + a - b
    x = x + c
    x = if x > b and x < 100000 then x + 1 else x - 1
    x = x % 1000 + a
    x = x + b + c
    x = x - a * 2
    x = x + a - b
    x = x + c - 4
    x = x + 1
    require x < 1000000, \"too large\"
    return x
}
procedure numerics(a: numeric(12, 2), b: numeric(12, 2), c: bigint) -> numeric(20, 2) {
    var x: numeric(20, 2) = a
    x = x + b
    x = x + a - b
    x = x + a + b - 1.00
    x = (a * b)::numeric(20, 2)
    x = if x > b then x + 1 else x - 1
    x = x + a - b
    return x
}
procedure nothing(a: bigint, b: bigint, c: bigint) {
    require a < 100, \"no\"
}
";

/// What this thread has used of a processor: other work on the machine disturbs it least.
fn cpu_ns() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux tells processor time");
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number of nanoseconds")
}

fn measure(name: &str, code: &Code, bytes: &[u8]) {
    const RUNS: u32 = 2_000_000;
    let mut arena = Bump::new();
    let mut context = Flat { value: black_box(500) };
    let mut recycled: Frame<'static, u32, ()> = Frame::new();
    let mut best = [f64::MAX; 2];
    for _ in 0..5 {
        let (mut entry, mut whole) = (0.0, 0.0);
        arena.reset();
        let mut frame: Frame<'_, u32, ()> = recycled.recycle();
        let start = cpu_ns();
        for _ in 0..RUNS {
            frame.start(black_box(code), black_box(bytes), &arena).unwrap();
        }
        entry += cpu_ns() - start;
        let start = cpu_ns();
        for _ in 0..RUNS {
            frame.start(black_box(code), black_box(bytes), &arena).unwrap();
            run(&mut frame, code, &mut context, &arena).unwrap();
            black_box(&frame);
        }
        whole += cpu_ns() - start;
        recycled = frame.recycle();
        best[0] = best[0].min(entry / f64::from(RUNS));
        best[1] = best[1].min((whole - entry) / f64::from(RUNS));
    }
    println!("{name:10} {:3} instructions: entry {:5.1} ns, run {:5.1} ns", code.len(), best[0], best[1]);
}

#[test]
#[ignore = "a measurement"]
fn executor_speed() {
    let catalog = verify::load(TEXT, "speed", &Catalog::new()).unwrap_or_else(|errors| panic!("{errors}"));
    for (_, program) in catalog.procedures() {
        let code = compile_whole(program, &catalog).unwrap();
        let mut bytes = Vec::new();
        let mut writer = ArgumentWriter::new(&mut bytes);
        match program.name.as_str() {
            "transfer" => writer.int(3).int(4).numeric(250),
            "numerics" => writer.numeric(1250).numeric(250).int(3),
            _ => writer.int(3).int(4).int(2500),
        };
        if std::env::var("FABIUS_SHOW").is_ok() {
            println!("{code}");
        }
        measure(&program.name, &code, &bytes);
    }
}
