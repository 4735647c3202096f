//! How fast the two-phase locking engine runs calls of ten read-modify-writes on records of about 100 bytes.
//!
//! ```text
//! cargo test --release -p fabius-engine-2pl --test speed -- --ignored --nocapture
//! ```

use fabius_engine::{Batch, BatchBuilder, Engine, Foundation};

use fabius_env::{Random, RealClock};
use fabius_program::arguments::ArgumentWriter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

const TEXT: &str = "
procedure load(first: int, last: int) {
    for id in first to last {
        insert records { id: id::int, value: 0, filler:
            '0123456789012345678901234567890123456789012345678901234567890123456789012345' }
    }
}
procedure rmw(ids: list of int) { for id in ids { records[id].value += 1 } }";

fn batches(engine: &dyn Engine, records: u64, count: usize, hot: u64) -> Vec<Arc<Batch>> {
    let definitions = engine.foundation().definitions();
    let rmw = definitions.catalog.find_procedure("rmw").unwrap();
    let mut random = Random::seeded(7);
    (0..count)
        .map(|_| {
            let mut batch = BatchBuilder::with_capacity(64 * 1000);
            for _ in 0..1000 {
                let mut bytes = Vec::with_capacity(64);
                let mut writer = ArgumentWriter::new(&mut bytes);
                writer.list(10);
                for at in 0..10 {
                    writer.int(
                        if at == 5 && hot > 0 { random.below(hot) } else { random.below(records) } as i64
                    );
                }
                batch.push(rmw, &bytes, None, false).unwrap();
            }
            batch.build()
        })
        .collect()
}

fn measure(records: u64, hot: u64, threads: usize) {
    let foundation = Arc::new(Foundation::new(Arc::new(RealClock::new())));
    let engine = fabius_engine_2pl::new(foundation);
    let table = "table records { id: int, value: bigint, filler: char(80), primary key (id) using hash }";
    engine.define(table).unwrap();
    engine.define(&TEXT[..TEXT.find("procedure rmw").unwrap()]).unwrap();
    engine.define(&TEXT[TEXT.find("procedure rmw").unwrap()..]).unwrap();
    let mut load = BatchBuilder::new();
    let id = engine.foundation().definitions().catalog.find_procedure("load").unwrap();
    for first in (0..records as i64).step_by(1000) {
        let mut bytes = Vec::new();
        ArgumentWriter::new(&mut bytes).int(first).int(first + 999);
        load.push(id, &bytes, None, false).unwrap();
    }
    let load = load.build();
    engine.submit(load.clone());
    while engine.help() {}
    assert!(load.is_complete() && load.outcome(0).is_ok());
    let batches = batches(&engine, records, 400, hot);
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Relaxed);
                    let Some(batch) = batches.get(at) else { break };
                    engine.submit(batch.clone());
                    while !batch.is_complete() {
                        engine.help();
                    }
                }
            });
        }
    });
    let seconds = begun.elapsed().as_secs_f64();
    let calls = batches.len() as f64 * 1000.0;
    println!(
        "{records} records, {hot} hot, {threads} threads: {:.0} calls/s, {} retries",
        calls / seconds,
        engine.counts().retries
    );
}

#[test]
#[ignore = "a measurement"]
fn ten_updates_a_call() {
    for threads in std::env::var("THREADS").map_or(vec![1, 2], |threads| vec![threads.parse().unwrap()]) {
        measure(1_000_000, 0, threads);
        measure(100_000, 0, threads);
        measure(100_000, 10, threads);
    }
}
