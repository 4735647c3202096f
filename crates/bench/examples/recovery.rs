//! How long opening a database takes whose log has some million calls behind the newest checkpoint, with one recovery
//! thread and with several.
//!
//! ```sh
//! cargo run --release -p fabius-bench --example recovery -- [CALLS [ROUNDS [ENGINES [THREADS [WORKLOADS [WRITER]]]]]]
//! ```
//!
//! Lists are separated by commas; `WRITER` is the engine that writes the log. Each round opens the database once with
//! each engine and each number of threads, in turns. *Opened* is the median time from opening until the first call
//! could be made, without that of loading the checkpoint, which was measured before there was anything to replay;
//! *settled* also has the work that the lazy engine has put off.

use fabius::{BatchBuilder, Database, Durability, EngineKind, Options, Result, Value};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::loader::Loader;
use fabius_bench::machine;
use fabius_bench::table::{Table, grouped};
use fabius_bench::temporary::TemporaryDirectory;
use fabius_bench::workload::ClientPlace;
use fabius_bench::workload_list;
use fabius_env::Random;
use fabius_program::arguments::ArgumentWriter;
use mimalloc::MiMalloc;
use std::path::Path;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Calls handed in together.
const BATCH: u64 = 512;
/// Accounts of the bank.
const ACCOUNTS: i64 = 100_000;

/// What is called, until there are enough calls.
type MakeCall = Box<dyn FnMut(&mut Vec<u8>) -> &'static str>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |otherwise: &str| arguments.next().unwrap_or(otherwise.to_string());
    let number = |text: &str| text.parse::<u64>().expect("a number");
    let (calls, rounds) = (number(&next("5000000")), number(&next("3")) as usize);
    let engines = next("2pl,graph,lazy");
    let engines: Vec<EngineKind> = engines.split(',').map(str::parse).collect::<Result<_>>()?;
    let threads = next("1,2");
    let threads: Vec<usize> = threads.split(',').map(|count| number(count) as usize).collect();
    let workloads = next("hot,rmw10,transfer,ycsb");
    let writer: EngineKind = next("lazy").parse()?;
    println!("{}; {} calls, written by {writer}", machine::summary(), grouped(calls as f64));
    for workload in workloads.split(',') {
        let directory = TemporaryDirectory::new(None)?;
        let loading = write(directory.path(), workload, writer, calls, &threads)?;
        let mut table =
            Table::new([workload, "threads", "opened, s", "calls/s", "settled, s", "calls/s", "peak, MB"]);
        let mut times = (0..engines.len() * threads.len()).map(|_| Vec::new()).collect::<Vec<Vec<Opened>>>();
        for _ in 0..rounds {
            for (at, of) in times.iter_mut().enumerate() {
                of.push(open(directory.path(), engines[at / threads.len()], threads[at % threads.len()])?);
            }
        }
        for (at, of) in times.iter().enumerate() {
            let median = |of_time: &dyn Fn(&Opened) -> Duration| {
                let mut all: Vec<Duration> = of.iter().map(of_time).collect();
                all.sort_unstable();
                all[all.len() / 2].saturating_sub(loading[at % threads.len()]).as_secs_f64()
            };
            let (opened, settled) = (median(&|of| of.opened), median(&|of| of.settled));
            let peak = of.iter().map(|of| of.peak_bytes).max().unwrap_or_default();
            table.row([
                engines[at / threads.len()].to_string(),
                threads[at % threads.len()].to_string(),
                format!("{opened:.2}"),
                grouped(calls as f64 / opened),
                format!("{settled:.2}"),
                grouped(calls as f64 / settled),
                grouped(peak as f64 / 1e6),
            ]);
        }
        println!("{table}");
        for (count, loading) in threads.iter().zip(&loading) {
            println!("checkpoint loaded by {count} threads in {:.2} s", loading.as_secs_f64());
        }
        println!();
    }
    Ok(())
}

/// How long it took.
struct Opened {
    opened: Duration,
    settled: Duration,
    peak_bytes: u64,
}

fn options(engine: EngineKind) -> Options {
    Options {
        engine,
        durability: Durability::None,
        workers: 0,
        checkpoint_log_bytes: None,
        ..Options::default()
    }
}

fn open(directory: &Path, engine: EngineKind, threads: usize) -> Result<Opened> {
    machine::reset_peak();
    let began = Instant::now();
    let database = Database::open(directory, Options { recovery_threads: Some(threads), ..options(engine) })?;
    let opened = began.elapsed();
    database.settle();
    let settled = began.elapsed();
    let peak_bytes = machine::peak_rss_bytes();
    database.close()?;
    Ok(Opened { opened, settled, peak_bytes })
}

/// Loads a database, takes a checkpoint, and makes calls; gives how long loading the checkpoint takes each number of
/// threads, the median of five times in turns.
fn write(
    directory: &Path,
    workload: &str,
    writer: EngineKind,
    calls: u64,
    threads: &[usize],
) -> Result<Vec<Duration>> {
    let database = Database::open(directory, options(writer))?;
    let mut make_call = begin(&database, workload)?;
    database.checkpoint()?;
    database.close()?;
    let mut times = vec![Vec::new(); threads.len()];
    for _ in 0..5 {
        for (count, of) in threads.iter().zip(&mut times) {
            of.push(open(directory, EngineKind::TwoPhaseLocking, *count)?.opened);
        }
    }
    times.iter_mut().for_each(|of| of.sort_unstable());
    let database = Database::open(directory, options(writer))?;
    let mut arguments = Vec::new();
    let mut made = 0;
    while made < calls {
        let mut builder = BatchBuilder::new();
        for _ in 0..BATCH.min(calls - made) {
            arguments.clear();
            let procedure = database.procedure(make_call(&mut arguments))?.id;
            builder.push(procedure, &arguments, None, false)?;
        }
        let batch = builder.build();
        made += u64::from(batch.count());
        database.submit(batch.clone());
        while !batch.is_complete() {
            database.help();
        }
    }
    database.settle();
    database.close()?;
    Ok(times.iter().map(|of| of[2]).collect())
}

/// Fills the database, and gives what makes its calls.
fn begin(database: &Database, workload: &str) -> Result<MakeCall> {
    if workload == "transfer" {
        database.define(include_str!("../programs/bank.fab"))?;
        for id in 0..ACCOUNTS {
            database.call("open_account", &[id.into(), Value::Null, Value::BigInt(1_000_000)])?;
        }
        let mut random = Random::seeded(1);
        return Ok(Box::new(move |arguments| {
            let src = random.below(ACCOUNTS as u64) as i64;
            let dst = (src + 1 + random.below(ACCOUNTS as u64 - 1) as i64) % ACCOUNTS;
            ArgumentWriter::new(arguments).int(src).int(dst).numeric(random.below(1000).into());
            "transfer"
        }));
    }
    let kind = workload_list::find(workload)?;
    let mut settings = kind.defaults();
    if workload == "rmw10" {
        settings.set("record_bytes=100")?;
    }
    let built = (kind.build)(&settings);
    database.define(built.programs())?;
    let interrupt = Interrupt::default();
    let mut loader = Loader::new(database, &interrupt);
    built.load(&mut loader)?;
    loader.finish()?;
    let mut client = built.client(ClientPlace { number: 0, count: 1, run: 0 });
    let operations = built.operations();
    Ok(Box::new(move |arguments| operations[client.next(arguments)].procedure))
}
