//! Opening a database replays its log by several threads: what is there then is what the log's calls give one after the
//! other, whichever engine wrote it and whichever goes on from there; and what is wrong with the log is told as one
//! thread tells it.

use fabius::{Batch, BatchBuilder, Database, EngineKind, Error, Options, Result, SqlState, Value, identity};
use fabius_engine::entry::{self, Call};
use fabius_env::{Clock, Disk, Random, RealClock, SimulatedDisk};
use fabius_log::{DatabaseId, Durability, Flusher, Log, LogError, LogItem, LogOptions};
use fabius_program::arguments;
use fabius_program::catalog::{Catalog, ProcedureId};
use fabius_testing::differential::history::{History, texts};
use fabius_testing::generate;
use fabius_testing::rig::Logged;
use fabius_value::Seq;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering::SeqCst};
use std::time::Duration;

/// Threads that replay.
const THREADS: [usize; 3] = [1, 2, 4];
/// Programs of a log, and as many that come later.
const PROGRAMS: usize = 4;

fn options(engine: EngineKind, threads: usize) -> Options {
    let durability = fabius::Durability::None;
    Options { engine, durability, workers: 0, recovery_threads: Some(threads), ..Options::default() }
}

fn open(disk: &SimulatedDisk, engine: EngineKind, threads: usize) -> Result<Database> {
    let clock = Arc::new(RealClock::new());
    Database::open_on(Arc::new(disk.clone()), clock, Flusher::Manual, options(engine, threads))
}

/// The disk as it is when the process is killed now.
fn killed(disk: &SimulatedDisk) -> SimulatedDisk {
    let copy = disk.copy();
    copy.release_locks();
    copy
}

/// The log of a database, as it is now.
fn logged(disk: &SimulatedDisk) -> Vec<Logged> {
    let mut list = Vec::new();
    fabius_log::dump(&killed(disk).within("log").expect("there is a log"), |item| {
        if let LogItem::Frame(frame) = item {
            let payload = frame.payload.to_vec();
            list.push(Logged { first_seq: Seq(frame.first_seq), count: frame.entry_count, payload });
        }
        Ok::<(), LogError>(())
    })
    .expect("what was written is read");
    list
}

/// A database with random tables and programs, and what is known of its calls.
struct Story {
    random: Random,
    catalog: Catalog,
    texts: Vec<String>,
    /// Calls with keys, and what became of them.
    keyed: Vec<(String, Vec<Value>, Vec<u8>, String)>,
}

impl Story {
    fn begin(seed: u64, database: &Database) -> Story {
        let mut random = Random::seeded(seed);
        let seed = random.next_u64();
        let catalog = generate::schema(seed);
        database.define(&generate::schema_text(seed)).expect("it was loaded");
        let texts = (0..2 * PROGRAMS).map(|number| {
            let seed = random.next_u64();
            let program = match random.chance(2, 5) {
                true => generate::brief_program(seed, &catalog),
                false => generate::program(seed, &catalog),
            };
            program.text.replacen(&format!("procedure {}", program.name), &format!("procedure p{number}"), 1)
        });
        let texts: Vec<String> = texts.collect();
        texts[..PROGRAMS].iter().for_each(|text| database.define(text).expect("it was verified"));
        let mut batch = BatchBuilder::new();
        for (table, row) in generate::rows(random.next_u64(), &catalog) {
            let loader = generate::loader(&catalog, table);
            if database.procedure(&loader.name).is_err() {
                database.define(&loader.text).expect("it was verified");
            }
            push(database, &mut batch, &loader.name, &row, None, false);
        }
        run(database, batch);
        Story { random, catalog, texts, keyed: Vec::new() }
    }

    /// Makes so many calls in batches, with definitions between some; whoever repeats a key gets the first outcome.
    fn go_on(&mut self, database: &Database, calls: usize) {
        let mut made = 0;
        while made < calls {
            match self.random.below(40) {
                0 => self.define(database),
                1 => self.repeat(database),
                2 => self.call_with_key(database),
                _ => {
                    let mut batch = BatchBuilder::new();
                    let most = if self.random.chance(1, 10) { 100 } else { 8 };
                    for _ in 0..1 + self.random.index(most) {
                        let (name, values) = self.call(database);
                        let key = self.random.chance(1, 8).then(|| self.random.next_u64().to_le_bytes());
                        let key = key.as_ref().map(|key| &key[..]);
                        push(database, &mut batch, &name, &values, key, self.random.chance(1, 2));
                    }
                    made += run(database, batch).count() as usize;
                }
            }
            made += 1;
        }
    }

    /// One that exists, with arguments.
    fn call(&mut self, database: &Database) -> (String, Vec<Value>) {
        loop {
            let name = format!("p{}", self.random.index(2 * PROGRAMS));
            if let Ok(procedure) = database.procedure(&name) {
                let values = generate::arguments(self.random.next_u64(), &procedure.program);
                return (name, values);
            }
        }
    }

    fn define(&mut self, database: &Database) {
        let number = self.random.index(2 * PROGRAMS);
        if number >= PROGRAMS && database.procedure(&format!("p{number}")).is_ok() {
            database.define(&format!("drop procedure p{number}")).expect("it is there");
        } else {
            database.define(&self.texts[number]).expect("it was verified");
        }
    }

    fn call_with_key(&mut self, database: &Database) {
        let (name, values) = self.call(database);
        let key = self.random.next_u64().to_le_bytes().to_vec();
        let outcome = outcome(database, &name, &values, &key);
        self.keyed.push((name, values, key, outcome));
    }

    /// Repeats a call with a key.
    fn repeat(&mut self, database: &Database) {
        if self.keyed.is_empty() {
            return;
        }
        let (name, values, key, expected) = &self.keyed[self.random.index(self.keyed.len())];
        if database.procedure(name).is_ok() {
            assert_eq!(outcome(database, name, values, key), *expected, "{name} {values:?}");
        }
    }

    /// Compares rows, and what became of calls with keys, with what the log's calls give one after the other.
    fn compare(&self, database: &Database, disk: &SimulatedDisk, who: &str) {
        database.flush().expect("the disk takes it");
        let mut history = History::default();
        history.follow(&logged(disk), Vec::new());
        let expected: Vec<String> = history.rows().collect();
        let tables = self.catalog.tables().map(|(_, schema)| &schema.name);
        let rows = tables.flat_map(|name| texts(database.rows(name).expect("the table is there")));
        assert_eq!(rows.collect::<Vec<_>>(), expected, "{who}");
        for (name, values, key, expected) in &self.keyed {
            if database.procedure(name).is_ok() {
                assert_eq!(outcome(database, name, values, key), *expected, "{who}: {name} {values:?}");
            }
        }
    }
}

fn push(
    database: &Database,
    batch: &mut BatchBuilder,
    name: &str,
    values: &[Value],
    key: Option<&[u8]>,
    wants_result: bool,
) {
    let procedure = database.procedure(name).expect("it is defined");
    let bytes = arguments::encode(&procedure.program, values).expect("they fit");
    batch.push(procedure.id, &bytes, key, wants_result).expect("a small call");
}

fn run(database: &Database, batch: BatchBuilder) -> Arc<Batch> {
    let batch = batch.build();
    database.submit(batch.clone());
    while !batch.is_complete() {
        database.help();
    }
    batch
}

fn outcome(database: &Database, name: &str, values: &[Value], key: &[u8]) -> String {
    let called = database.prepare(name).expect("it is defined").with_key(key).call(values);
    format!("{:?}", called.and_then(|promise| promise.result()))
}

/// Goal: whichever engine has written a log, and whichever opens it, with any number of threads: rows and remembered
/// outcomes are those of the log's calls one after the other, and remain so as calls go on. There are calls that
/// abort, calls with idempotency keys, definitions between calls, batches longer than what is replayed together, and
/// in some a checkpoint in between.
#[test]
fn any_number_of_threads_gives_the_same() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seeds = match (number("FABIUS_SEED"), number("FABIUS_SEEDS")) {
        (Some(seed), _) => seed..seed + 1,
        (None, count) => 0..count.unwrap_or(16),
    };
    for seed in seeds {
        println!("FABIUS_SEED={seed} cargo test -p fabius --test recovery");
        let writer = EngineKind::ALL[seed as usize % EngineKind::ALL.len()];
        let disk = SimulatedDisk::new(seed);
        let database = open(&disk, writer, 1).expect("it is new");
        let mut story = Story::begin(seed, &database);
        story.go_on(&database, 150);
        if seed % 3 == 0 {
            database.checkpoint().expect("the disk takes it");
        }
        story.go_on(&database, 400);
        story.compare(&database, &disk, "before");
        database.flush().expect("the disk takes it");
        for engine in EngineKind::ALL {
            for threads in THREADS {
                let disk = killed(&disk);
                let again = open(&disk, engine, threads).unwrap_or_else(|error| panic!("{error:?}"));
                let who = format!("{engine} after {writer}, {threads} threads");
                story.compare(&again, &disk, &who);
                if threads > 1 {
                    let mut sequel = Story {
                        random: story.random.split(),
                        catalog: story.catalog.clone(),
                        texts: story.texts.clone(),
                        keyed: story.keyed.clone(),
                    };
                    sequel.go_on(&again, 40);
                    sequel.compare(&again, &disk, &who);
                }
                again.close().expect("the disk takes it");
            }
        }
    }
}

const COUNTERS: &str = "
table counters { id: bigint, n: bigint, primary key (id) }
procedure make(id: bigint) { insert counters { id: id, n: 0 } }
procedure increment(id: bigint) -> bigint { counters[id].n += 1 return counters[id].n }
procedure half(id: bigint) { counters[id].n = counters[id].n / 2 }";

/// A closed database with some hundred calls, most of them alone in their batches.
fn counters() -> SimulatedDisk {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk, EngineKind::TwoPhaseLocking, 1).expect("it is new");
    database.define(COUNTERS).expect("it is right");
    (0..4i64).for_each(|id| _ = database.call("make", &[id.into()]).expect("it is new"));
    for number in 0..500i64 {
        let name = if number % 7 == 0 { "half" } else { "increment" };
        database.call(name, &[(number % 5 % 4).into()]).expect("it is there");
    }
    database.close().expect("the disk takes it");
    disk
}

/// What opening says, with its rows if it is none.
fn opened(disk: &SimulatedDisk, engine: EngineKind, threads: usize) -> std::result::Result<String, Error> {
    let database = open(&killed(disk), engine, threads)?;
    Ok(format!("{:?}", database.rows("counters").expect("it is there")))
}

/// Goal: damage anywhere in the log is told in the same words, whoever replays it, and changes nothing on the disk.
#[test]
fn damage_is_told_as_by_one_thread() {
    let disk = counters();
    let log = disk.within("log").expect("it is there");
    let names = log.list().expect("it is read");
    let name = names.iter().find(|name| name.ends_with(".log")).expect("there is a segment");
    let length = log.read(name).expect("it is read").len() as u64;
    let (mut random, mut refused) = (Random::seeded(1), 0);
    for number in 0..40 {
        let damaged = killed(&disk);
        let place = if number == 0 { length - 1 } else { random.below(length) } as usize;
        let within = damaged.within("log").expect("it is there");
        within.damage(name, |bytes| bytes[place] ^= 1 << (number % 8)).expect("it is there");
        let before = within.read(name).expect("it is read");
        let expected = opened(&damaged, EngineKind::TwoPhaseLocking, 1);
        refused += usize::from(expected.is_err());
        for (engine, threads) in
            [(EngineKind::TwoPhaseLocking, 2), (EngineKind::Graph, 4), (EngineKind::Lazy, 3)]
        {
            assert_eq!(opened(&damaged, engine, threads), expected, "byte {place}, {engine}");
        }
        assert_eq!(within.read(name).expect("it is read"), before);
    }
    assert!(refused > 30, "{refused}");
}

fn open_log(disk: &SimulatedDisk, id: DatabaseId) -> Log {
    let options =
        LogOptions { flusher: Flusher::Manual, durability: Durability::None, ..LogOptions::new(id) };
    let within = Arc::new(disk.within("log").expect("it is there"));
    Log::open(within, options, |_| Ok::<(), LogError>(())).expect("it is whole").0
}

/// What comes behind an entry that is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behind {
    /// Nothing but calls.
    Calls,
    /// A torn end.
    TornEnd,
    /// Damage, in a log that was closed.
    Damage,
}

/// A database with an entry that is wrong, and calls behind it; and its last segment.
fn with_wrong_entry(
    whole: &SimulatedDisk,
    entry: &(u32, Vec<u8>),
    calls: usize,
    behind: Behind,
) -> (SimulatedDisk, String) {
    let id = identity::read(whole, &[]).expect("it is read").expect("it is there");
    let disk = killed(whole);
    let log = open_log(&disk, id);
    log.append(log.next_seq(), entry.0, &entry.1).expect("there is room");
    for _ in 0..calls {
        let mut call = Vec::new();
        entry::begin_calls(0, &mut call);
        let (procedure, arguments) = (ProcedureId(1), &[2u8][..]);
        entry::encode_call(&Call { procedure, arguments, key: None, wants_result: false }, &mut call);
        log.append(log.next_seq(), 1, &call).expect("there is room");
    }
    log.flush_now().expect("the disk takes it");
    if behind == Behind::Damage {
        log.close().expect("the disk takes it");
    }
    // Before it is dropped, which closes it.
    let disk = killed(&disk);
    let log = disk.within("log").expect("it is there");
    let name = log.list().expect("it is read").into_iter().rfind(|name| name.ends_with(".log"));
    let name = name.expect("there is a segment");
    let change = |bytes: &mut Vec<u8>| match behind {
        Behind::Calls => {}
        Behind::TornEnd => bytes.extend([1, 2, 3]),
        Behind::Damage => *bytes.last_mut().expect("it has some") ^= 1,
    };
    log.damage(&name, change).expect("it is there");
    (disk, name)
}

/// Goal: what an entry has wrong is told in the same words, also if there is damage behind it, and a log that is
/// refused for it is not changed; not even its torn end is cut off.
#[test]
fn what_is_wrong_with_an_entry_is_told_as_by_one_thread() {
    let whole = counters();
    let mut two_calls = Vec::new();
    entry::begin_calls(0, &mut two_calls);
    let wrong: [(u32, Vec<u8>); 5] = [
        (1, b"\x09what is this".to_vec()),
        (1, b"\x01\0\0\0\0\0\0\0\0\xff\xff".to_vec()),
        (3, two_calls),
        (1, entry::encode_definition("table counters { id: bigint, primary key (id) }")),
        (1, entry::encode_definition("nonsense")),
    ];
    for entry in wrong {
        for calls in [0, 10, 700] {
            for behind in [Behind::Calls, Behind::TornEnd, Behind::Damage] {
                let (disk, name) = with_wrong_entry(&whole, &entry, calls, behind);
                let content = |disk: &SimulatedDisk| {
                    disk.within("log").and_then(|log| log.read(&name)).expect("it is read")
                };
                let before = content(&disk);
                let expected = opened(&disk, EngineKind::TwoPhaseLocking, 1).expect_err("it is wrong");
                for (engine, threads) in
                    [(EngineKind::TwoPhaseLocking, 2), (EngineKind::Graph, 3), (EngineKind::Lazy, 4)]
                {
                    let refused = killed(&disk);
                    let error = open(&refused, engine, threads).map(drop).expect_err("it is wrong");
                    assert_eq!(error, expected, "{engine}, {calls} calls and {behind:?} behind");
                    assert_eq!(content(&refused), before);
                }
            }
        }
    }
}

/// Goal: the lazy engine, whose proofs rest upon what is in columns, knows what several threads have put there.
#[test]
fn proofs_rest_upon_what_was_replayed() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk, EngineKind::TwoPhaseLocking, 1).expect("it is new");
    database
        .define(
            "table t { id: int, n: int, primary key (id) }
             procedure make(id: int, n: int) { insert t { id: id, n: n } }
             procedure add(id: int, by: int) { t[id].n += by }",
        )
        .expect("it is right");
    (0..200i32)
        .for_each(|id| _ = database.call("make", &[id.into(), (i32::MAX - id).into()]).expect("it is new"));
    database.close().expect("the disk takes it");
    for engine in EngineKind::ALL {
        let database = open(&killed(&disk), engine, 2).expect("it is whole");
        let refused = database.call("add", &[7.into(), 8.into()]).map(drop).expect_err("it does not fit");
        assert_eq!(refused.state(), SqlState::OUT_OF_RANGE, "{engine}: {refused:?}");
        database.call("add", &[7.into(), (-7).into()]).expect("it fits");
        assert_eq!(database.rows("t").expect("it is there").len(), 200);
    }
}

/// Goal: each call has the time that it was logged with, though calls of many batches are replayed together: calls that
/// run whole, those whose actions are independent, and those whose actions depend on each other.
#[test]
fn calls_keep_their_times() {
    let disk = SimulatedDisk::new(1);
    let database = open(&disk, EngineKind::TwoPhaseLocking, 1).expect("it is new");
    database
        .define(
            "table t { id: int, n: int, at: timestamp, primary key (id) }
             procedure make(id: int) { insert t { id: id, n: 0, at: now() } }
             procedure touch(id: int) { t[id].at = now() }
             procedure move(src: int, dst: int) {
                 require t[src].n < 1000, \"enough\"
                 t[src].n += 1
                 t[src].at = now()
                 t[dst].at = now()
             }",
        )
        .expect("it is right");
    let call = |name: &str, arguments: &[Value]| {
        // The next call has another time.
        std::thread::sleep(Duration::from_micros(2));
        database.call(name, arguments).map(drop).expect("it commits");
    };
    (0..70i32).for_each(|id| call("make", &[id.into()]));
    (0..70i32).for_each(|id| call("touch", &[(id / 2).into()]));
    (0..70i32).for_each(|id| call("move", &[id.into(), ((id * 7 + 1) % 70).into()]));
    let expected = database.rows("t").expect("it is there");
    database.close().expect("the disk takes it");
    for threads in THREADS {
        let again = open(&killed(&disk), EngineKind::Optimistic, threads).expect("it is whole");
        assert_eq!(again.rows("t").expect("it is there"), expected, "{threads} threads");
    }
}

/// A clock that panics when it has been asked so often, in whichever thread.
#[derive(Debug)]
struct Trap {
    clock: RealClock,
    left: AtomicI64,
}

impl Clock for Trap {
    fn now_us(&self) -> i64 {
        self.clock.now_us()
    }

    fn monotonic_ns(&self) -> u64 {
        assert_ne!(self.left.fetch_sub(1, SeqCst), 1, "the trap");
        self.clock.monotonic_ns()
    }
}

/// Goal: a thread that panics while the log is replayed, wherever it is, ends the opening with an error that says so,
/// and nobody waits for it.
#[test]
fn a_panic_ends_the_opening() {
    let disk = counters();
    let mut trapped = 0;
    for engine in [EngineKind::TwoPhaseLocking, EngineKind::Graph] {
        for threads in [2, 4] {
            for left in (1..80).step_by(3) {
                let disk = killed(&disk);
                let (done, heard) = std::sync::mpsc::channel();
                std::thread::spawn(move || {
                    let clock = Arc::new(Trap { clock: RealClock::new(), left: left.into() });
                    let options = options(engine, threads);
                    let opened = Database::open_on(Arc::new(disk), clock.clone(), Flusher::Manual, options);
                    // The trap may be in nobody's way before the end.
                    let is_trapped = clock.left.load(SeqCst) <= 0;
                    clock.left.store(i64::MIN / 2, SeqCst);
                    done.send((opened.map(drop).err(), is_trapped)).expect("it is waited for");
                });
                let (error, is_trapped) =
                    heard.recv_timeout(Duration::from_secs(60)).expect("opening ends, one way or the other");
                assert_eq!(error.is_some(), is_trapped, "{engine}, {threads} threads, after {left}");
                if let Some(error) = error {
                    assert_eq!(error.state(), SqlState::INTERNAL, "{error:?}");
                    trapped += 1;
                }
            }
        }
    }
    assert!(trapped > 40, "{trapped}");
}
