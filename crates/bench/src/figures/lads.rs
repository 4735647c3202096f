//! What the figures of LADS have in common: the systems compared, and the two benchmarks' settings.

use crate::figure::Laboratory;
use crate::settings::Settings;
use crate::workloads::{tpcc, ycsb};

/// LADS, H-Store, DORA and Silo, by the names of their engines here.
pub const ENGINES: &[&str] = &["graph", "partitioned", "dora", "occ"];
/// The paper's threads, and those below that machines like ours have.
pub const THREADS: [usize; 9] = [1, 2, 4, 8, 12, 16, 20, 24, 48];
/// Zipfian theta of low, medium and high contention.
pub const CONTENTION: [f64; 3] = [0.5, 0.8, 0.9];
/// Shares of calls that cross partitions.
pub const CROSS: [f64; 8] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 1.0];
/// Shares of calls that cross partitions, of those that claims are about: for a run in a hurry.
pub const CROSS_QUICK: [f64; 3] = [0.0, 0.01, 0.1];

/// Records of YCSB, unless in a hurry.
pub const YCSB_RECORDS: u64 = 1_000_000;

/// The setting of engines with partitions: into how many they divide rows.
pub const PARTITIONS: &str = "engine_partitions";

/// How often each point is measured: one slow second of a shared machine must not decide.
pub const ROUNDS: usize = 5;

/// How often each point is measured, briefly, in the figures about the highest and the lowest of a line: a slow
/// second of a shared machine would be one of them, and the first rounds come right after loading, and are the first
/// to write most rows.
pub fn rounds(laboratory: &Laboratory<'_>) -> usize {
    laboratory.choose(15, 30)
}

/// Calls that wait, of all threads together: the paper keeps all systems at full capacity, with as many calls in the
/// queue as a batch of LADS takes at the most (section 5.7).
const QUEUE_CALLS: u64 = 5000;

/// [`QUEUE_CALLS`] as a number of batches on the way from each thread.
fn queue(laboratory: &Laboratory<'_>, settings: Settings) -> Settings {
    let in_flight = QUEUE_CALLS / settings.integer("batch") / laboratory.threads as u64;
    settings.with(&[("in_flight", &in_flight.max(1))])
}

/// YCSB by the defaults of table 1: 20 operations a call, half of them writes, theta 0.5, 10 % of the calls across
/// partitions, of which there is one for each thread. So H-Store's threads block at calls that cross, as in the paper.
pub fn ycsb(laboratory: &Laboratory<'_>) -> Settings {
    let partitions = laboratory.threads.max(2);
    let settings = ycsb::KIND.defaults().with(&[
        ("records", &laboratory.choose(120_000, YCSB_RECORDS)),
        ("cross", &0.1),
        ("partitions", &partitions),
        (PARTITIONS, &partitions),
        ("waiting", &"blocks"),
    ]);
    queue(laboratory, settings)
}

/// TPC-C with so many warehouses (section 5.4), as many of them in each partition, of which there is one for each
/// thread; small ones in a hurry. H-Store's threads block at calls that cross, as with YCSB.
pub fn tpcc(laboratory: &Laboratory<'_>, warehouses: usize) -> Settings {
    let partitions = laboratory.threads.max(2);
    let settings = tpcc::KIND.defaults().with(&[
        ("warehouses", &warehouses),
        (PARTITIONS, &partitions),
        ("waiting", &"blocks"),
    ]);
    let settings = queue(laboratory, settings);
    if laboratory.is_quick { settings.with(&[("items", &1000), ("customers", &60)]) } else { settings }
}

/// Notes on the scale of the runs.
pub fn notes(laboratory: &Laboratory<'_>) -> Vec<String> {
    let scale = if laboratory.is_quick {
        "YCSB with 120,000 records; TPC-C with 1,000 items and 60 customers a district"
    } else {
        "YCSB with 1,000,000 records"
    };
    vec![
        format!(
            "{scale}; a partition for each thread; the paper ran 24 threads on 24 cores, and a warehouse was a partition"
        ),
        "graph is LADS, partitioned H-Store, dora DORA, occ Silo".to_string(),
        "dora has the paper's one logical partition for each core; its default is eight".to_string(),
        "YCSB: nobody wants what calls have read, unless a panel says so, and no engine computes it then".to_string(),
        "a thread of partitioned sleeps while a call that crosses waits for other partitions (waiting=blocks)".to_string(),
        "TPC-C: a call that crosses warehouses stays within a partition if both are there, with two partitions half of them"
            .to_string(),
    ]
}
