//! How fast batches can be appended: `append_throughput DIRECTORY [BATCH_BYTES] [fsync]`.
//!
//! Appends 2 GB in one thread, waits until everything is durable, and prints the rate and the
//! processor time the whole process used for it.

use std::sync::Arc;
use std::time::Instant;

use fabius_env::RealDisk;
use fabius_log::{DatabaseId, Durability, Log, LogError, LogOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let directory = arguments.first().ok_or("no directory given")?;
    let batch_bytes = match arguments.get(1) {
        Some(text) => text.parse()?,
        None => 64 << 10,
    };
    let mut options = LogOptions::new(DatabaseId(*b"append_throughpu"));
    if !arguments.iter().any(|argument| argument == "fsync") {
        options.durability = Durability::None;
    }
    let disk = Arc::new(RealDisk::create(directory.as_str())?);
    let (log, _) = Log::open(disk, options, |_| Ok::<(), LogError>(()))?;

    let batch = vec![0x5A; batch_bytes];
    let batches = (2_000_000_000 / batch_bytes) as u64;
    let mut seq = log.next_seq();
    let cpu_before = cpu_seconds();
    let started = Instant::now();
    for _ in 0..batches {
        log.append(seq, 1, &batch)?;
        seq += 1;
    }
    let appended = started.elapsed();
    log.wait_durable(seq - 1)?;
    let durable = started.elapsed();
    let megabytes = (batches * batch_bytes as u64) as f64 / 1e6;
    println!(
        "{batches} batches of {batch_bytes} bytes: appended in {:.2} s, durable in {:.2} s, \
         {:.0} MB/s, {:.2} s of processor time",
        appended.as_secs_f64(),
        durable.as_secs_f64(),
        megabytes / durable.as_secs_f64(),
        cpu_seconds() - cpu_before,
    );
    log.close()?;
    Ok(())
}

/// Processor time of this process so far, from Linux's accounting in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.split_whitespace().collect();
    let ticks = |index: usize| fields.get(index).and_then(|field| field.parse::<f64>().ok());
    ticks(13).unwrap_or(0.0) / 100.0 + ticks(14).unwrap_or(0.0) / 100.0
}
