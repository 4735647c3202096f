//! `rmw10`: read-modify-write of ten distinct records (lazy evaluation, section 4.1).

use crate::history;
use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting, Settings};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use crate::zipf::Zipf;
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::{self, Argument, ArgumentWriter};
use fabius_value::{Datum, Value};
use std::sync::Arc;

/// Settings, also those of `burst`.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "distribution",
        default: "uniform",
        domain: Domain::Choice(&["uniform", "normal", "zipfian"]),
        help: "normal: the first record uniform, the others Gaussian around it (deviation 30)",
    },
    Setting { name: "records", default: "1000000", domain: Domain::Integer(1000, 1 << 32), help: "records" },
    Setting {
        name: "record_bytes",
        default: "1024",
        domain: Domain::Integer(32, 1 << 16),
        help: "bytes of a record: key, counter and payload",
    },
    Setting {
        name: "reads",
        default: "0",
        domain: Domain::Number(0.0, 1.0),
        help: "share of operations that read one record instead",
    },
    Setting {
        name: "theta",
        default: "0.9",
        domain: Domain::Number(0.0, 2.0),
        help: "skew of the zipfian distribution",
    },
];

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "rmw10",
    summary: "read-modify-write of 10 distinct records, uniform, clustered or Zipfian",
    settings: SETTINGS,
    build: |settings| Box::new(Rmw10::new(settings)),
};

/// Records that a call writes.
const KEYS: usize = 10;
/// Bytes that a call puts at the front of each payload.
const PATCH: usize = 8;
/// The standard deviation of the clustered distribution, in records.
const DEVIATION: f64 = 30.0;

/// Which records a call writes.
#[derive(Clone)]
enum Distribution {
    Uniform,
    /// Around the first, which is uniform.
    Normal,
    Zipfian(Arc<Zipf>),
}

/// The workload.
pub struct Rmw10 {
    seed: u64,
    records: u64,
    payload: usize,
    distribution: Distribution,
    reads_below: u64,
}

impl Rmw10 {
    /// From its settings.
    pub fn new(settings: &Settings) -> Rmw10 {
        let records = settings.integer("records");
        let distribution = match settings.text("distribution") {
            "normal" => Distribution::Normal,
            "zipfian" => {
                let theta = settings.number("theta").unwrap_or_default();
                Distribution::Zipfian(Arc::new(Zipf::new(records, theta)))
            }
            _ => Distribution::Uniform,
        };
        Rmw10 {
            seed: settings.integer("seed"),
            records,
            // Key and counter have 8 bytes each.
            payload: settings.integer("record_bytes") as usize - 16,
            distribution,
            reads_below: (settings.number("reads").unwrap_or(0.0) * u64::MAX as f64) as u64,
        }
    }

    fn payload(&self) -> Vec<u8> {
        (0..self.payload).map(|at| at as u8).collect()
    }
}

impl Workload for Rmw10 {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/rmw10.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const { &[Operation::new("rmw10", Mode::Call), Operation::new("read_one", Mode::Query)] }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        let payload = self.payload();
        loader.ranges("load_records", self.records, |writer| _ = writer.bytes(&payload))
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        Box::new(Rmw10Client {
            random: super::random_for(self.seed, place),
            records: self.records,
            distribution: self.distribution.clone(),
            reads_below: self.reads_below,
            spare: None,
        })
    }

    /// Runs the log's calls over plain arrays: what a record holds depends on how often it was
    /// written, and on who wrote it last.
    fn check(&self, target: &Target) -> Result<Verdict> {
        let procedure = target.database.procedure("rmw10")?;
        let mut counters = vec![0i64; self.records as usize];
        let mut patches = vec![None::<[u8; PATCH]>; self.records as usize];
        let mut logged = 0u64;
        history::calls(target, &mut |call| {
            if call.procedure != procedure.id {
                return Ok(());
            }
            logged += 1;
            let decoded = arguments::decode(&procedure.program, call.arguments)?;
            let [Argument::List { values: keys, .. }, Argument::Scalar(Datum::Bytes(patch))] = &decoded[..]
            else {
                unreachable!("decoded by the procedure's own types")
            };
            for key in keys {
                let Datum::Int(key) = key else { unreachable!("a key is a bigint") };
                let counter = &mut counters[*key as usize];
                *counter = (*counter * 31 + 7) % 1_000_003;
                patches[*key as usize] = patch.first_chunk().copied();
            }
            Ok(())
        })?;
        let committed = target.committed("rmw10");
        if logged != committed {
            return Ok(Err(format!("the log has {logged} calls, but {committed} were committed")));
        }
        let initial = self.payload();
        let mut wrong = None;
        target.database.engine().rows(super::table(target, "records")?, &mut |row| {
            let (Value::BigInt(key), Value::BigInt(counter), Value::Bytea(payload)) =
                (&row[0], &row[1], &row[2])
            else {
                unreachable!("the table's own types")
            };
            let at = *key as usize;
            let front: &[u8] = patches[at].as_ref().map_or(&initial[..PATCH], |patch| &patch[..]);
            if *counter != counters[at] || payload[..PATCH] != *front || payload[PATCH..] != initial[PATCH..]
            {
                wrong = Some(*key);
            }
            Ok(())
        })?;
        Ok(match wrong {
            Some(key) => Err(format!("record {key} is not what the log's calls make of it")),
            None => {
                Ok(format!("all {} records are what the log's {committed} calls make of them", self.records))
            }
        })
    }
}

struct Rmw10Client {
    random: Random,
    records: u64,
    distribution: Distribution,
    reads_below: u64,
    /// The second of the last pair of normal numbers.
    spare: Option<f64>,
}

impl Rmw10Client {
    /// A normal number (Box and Muller, 1958).
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = (-2.0 * (1.0 - self.random.unit_f64()).ln()).sqrt();
        let (sine, cosine) = (self.random.unit_f64() * std::f64::consts::TAU).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }

    fn keys(&mut self) -> [u64; KEYS] {
        let mut keys = [0; KEYS];
        let mut count = 0;
        while count < KEYS {
            let key = match &self.distribution {
                Distribution::Zipfian(zipf) => zipf.draw(&mut self.random),
                Distribution::Normal if count > 0 => {
                    let offset = (self.normal() * DEVIATION).round() as i64;
                    // Around the ends of the key space, so that every record is as likely as any other.
                    (keys[0] as i64 + offset).rem_euclid(self.records as i64) as u64
                }
                Distribution::Normal | Distribution::Uniform => self.random.below(self.records),
            };
            if !keys[..count].contains(&key) {
                keys[count] = key;
                count += 1;
            }
        }
        keys
    }
}

impl Client for Rmw10Client {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        if self.reads_below > 0 && self.random.next_u64() < self.reads_below {
            let key = match &self.distribution {
                Distribution::Zipfian(zipf) => zipf.draw(&mut self.random),
                _ => self.random.below(self.records),
            };
            ArgumentWriter::new(arguments).int(key as i64);
            return 1;
        }
        let keys = self.keys();
        let patch = self.random.next_u64().to_le_bytes();
        let mut writer = ArgumentWriter::new(arguments);
        writer.list(KEYS);
        keys.iter().for_each(|key| _ = writer.int(*key as i64));
        writer.bytes(&patch);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(is_normal: bool) -> Rmw10Client {
        let distribution = if is_normal { Distribution::Normal } else { Distribution::Uniform };
        Rmw10Client { random: Random::seeded(1), records: 100_000, distribution, reads_below: 0, spare: None }
    }

    /// Goal: ten distinct records, within the table; clustered ones lie as far apart as the paper says.
    #[test]
    fn keys_are_distinct_and_clustered() {
        for is_normal in [false, true] {
            let mut client = client(is_normal);
            let mut squares = 0.0;
            for _ in 0..2000 {
                let keys = client.keys();
                let mut sorted = keys;
                sorted.sort_unstable();
                assert!(sorted.windows(2).all(|pair| pair[0] < pair[1]) && sorted[9] < 100_000);
                squares += keys[1..]
                    .iter()
                    .map(|&key| {
                        let apart = key.abs_diff(keys[0]).min(100_000 - key.abs_diff(keys[0])) as f64;
                        apart * apart
                    })
                    .sum::<f64>();
            }
            let deviation = (squares / (2000.0 * 9.0)).sqrt();
            assert_eq!(is_normal, (28.0..33.0).contains(&deviation), "{deviation}");
        }
    }
}
