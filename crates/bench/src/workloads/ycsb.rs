//! `ycsb`: YCSB with many reads and writes a call, Zipfian, over partitions (LADS, section 5.1).
//!
//! A call has `ops` operations on different records of one partition, or of two. The partition is the first
//! column of the primary key, as the warehouse is in TPC-C; within it, records have Zipfian popularity. A write
//! replaces one field without looking at it. What a call reads is its result, which nobody waits for unless
//! `results=on`: without, no engine computes what the call would return.

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
use fabius_value::Datum;
use std::sync::Arc;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "ycsb",
    summary: "20 reads or writes of small records a call, Zipfian, in one partition or two",
    settings: &[
        Setting {
            name: "theta",
            default: "0.5",
            domain: Domain::Number(0.0, 2.0),
            help: "Zipfian skew within a partition; 0 is uniform",
        },
        Setting {
            name: "writes",
            default: "0.5",
            domain: Domain::Number(0.0, 1.0),
            help: "share of operations that write",
        },
        Setting {
            name: "ops",
            default: "20",
            domain: Domain::Integer(1, 1000),
            help: "operations of a call",
        },
        Setting {
            name: "cross",
            default: "0",
            domain: Domain::Number(0.0, 1.0),
            help: "share of calls with operations in two partitions",
        },
        Setting {
            name: "records",
            default: "1000000",
            domain: Domain::Integer(1000, 1 << 31),
            help: "records, divided evenly among the partitions",
        },
        Setting {
            name: "record_bytes",
            default: "100",
            domain: Domain::Integer(16, 1 << 16),
            help: "bytes of a record: key, field and filler",
        },
        Setting { name: "partitions", default: "24", domain: Domain::Integer(1, 64), help: "partitions" },
        Setting {
            name: "active_partitions",
            default: "auto",
            domain: Domain::IntegerOrAuto(1, 64),
            help: "how many of them calls go to; auto: all",
        },
        Setting {
            name: "results",
            default: "off",
            domain: Domain::Choice(&["on", "off"]),
            help: "on: clients wait for what their calls read",
        },
    ],
    build: |settings| Box::new(Ycsb::new(settings)),
};

struct Ycsb {
    seed: u64,
    operation: usize,
    writes_below: u64,
    cross_below: u64,
    ops: usize,
    partitions: u64,
    active: u64,
    /// Records of a partition.
    records: u64,
    filler: usize,
    zipf: Arc<Zipf>,
}

impl Ycsb {
    fn new(settings: &Settings) -> Ycsb {
        let partitions = settings.integer("partitions");
        let ops = settings.integer("ops");
        // Different records for every operation, also if all are in one partition.
        let records = (settings.integer("records") / partitions).max(ops);
        let theta = settings.number("theta").unwrap_or_default();
        Ycsb {
            seed: settings.integer("seed"),
            operation: usize::from(settings.text("results") == "on"),
            writes_below: super::below(settings.number("writes").unwrap_or_default()),
            cross_below: super::below(settings.number("cross").unwrap_or_default()),
            ops: ops as usize,
            partitions,
            active: settings.auto("active_partitions").unwrap_or(partitions).min(partitions),
            records,
            // Both columns of the key have 4 bytes, the field has 8.
            filler: settings.integer("record_bytes") as usize - 16,
            zipf: Arc::new(Zipf::new(records, theta)),
        }
    }
}

impl Workload for Ycsb {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/ycsb.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const { &[Operation::new("ycsb", Mode::Call), Operation::new("ycsb", Mode::CallForResult)] }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        let filler = vec![b'.'; self.filler];
        (0..self.partitions).try_for_each(|partition| {
            loader.ranges("load_usertable", self.records, |writer| {
                writer.int(partition as i64).bytes(&filler);
            })
        })
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        Box::new(YcsbClient {
            random: super::random_for(self.seed, place),
            operation: self.operation,
            writes_below: self.writes_below,
            cross_below: self.cross_below,
            ops: self.ops,
            active: self.active,
            zipf: self.zipf.clone(),
            drawn: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
        })
    }

    /// A record's field is what the last of the log's calls that wrote it made of it.
    fn check(&self, target: &Target) -> Result<Verdict> {
        let procedure = target.database.procedure("ycsb")?;
        let mut fields = vec![0i64; (self.partitions * self.records) as usize];
        let (mut logged, mut written) = (0u64, 0u64);
        history::calls(target, &mut |call| {
            if call.procedure != procedure.id {
                return Ok(());
            }
            logged += 1;
            let decoded = arguments::decode(&procedure.program, call.arguments)?;
            let [_, Argument::List { values, .. }] = &decoded[..] else {
                unreachable!("decoded by the procedure's own types")
            };
            for write in values.chunks(3) {
                let [Datum::Int(partition), Datum::Int(key), Datum::Int(value)] = write else {
                    unreachable!("whole numbers")
                };
                fields[(*partition as u64 * self.records + *key as u64) as usize] = *value;
                written += 1;
            }
            Ok(())
        })?;
        let committed = target.committed("ycsb");
        if logged != committed {
            return Ok(Err(format!("the log has {logged} calls, but {committed} were committed")));
        }
        let (mut seen, mut wrong) = (0u64, None);
        super::rows(target, "usertable", &mut |row| {
            seen += 1;
            let at = super::integer(&row[0]) as u64 * self.records + super::integer(&row[1]) as u64;
            if super::integer(&row[2]) != i128::from(fields[at as usize]) {
                wrong = Some(at);
            }
        })?;
        Ok(match wrong {
            Some(at) => Err(format!("record {at} is not what the last call that wrote it made of it")),
            None if seen != fields.len() as u64 => {
                Err(format!("there are {seen} records, not {}", fields.len()))
            }
            None => {
                Ok(format!("all {seen} records are as the last of {written} writes in the log made them"))
            }
        })
    }
}

struct YcsbClient {
    random: Random,
    operation: usize,
    writes_below: u64,
    cross_below: u64,
    ops: usize,
    active: u64,
    zipf: Arc<Zipf>,
    /// Those of the call, in one word each.
    drawn: Vec<u64>,
    reads: Vec<(u64, u64)>,
    writes: Vec<(u64, u64)>,
}

impl YcsbClient {
    /// One partition, twice, or two.
    fn places(&mut self) -> [u64; 2] {
        let first = self.random.below(self.active);
        let is_cross = self.active > 1 && super::happens(self.cross_below, &mut self.random);
        let apart = if is_cross { 1 + self.random.below(self.active - 1) } else { 0 };
        [first, (first + apart) % self.active]
    }
}

impl Client for YcsbClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let places = self.places();
        self.drawn.clear();
        self.reads.clear();
        self.writes.clear();
        while self.drawn.len() < self.ops {
            let record = (places[self.drawn.len() % 2], self.zipf.draw(&mut self.random));
            let word = record.0 << 32 | record.1;
            // All of them, in steps of several.
            if self.drawn.iter().fold(false, |is_known, drawn| is_known | (*drawn == word)) {
                continue;
            }
            self.drawn.push(word);
            let is_write = super::happens(self.writes_below, &mut self.random);
            if is_write { &mut self.writes } else { &mut self.reads }.push(record);
        }
        let mut writer = ArgumentWriter::new(arguments);
        writer.list(self.reads.len());
        for &(partition, key) in &self.reads {
            writer.int(partition as i64).int(key as i64);
        }
        writer.list(self.writes.len());
        for &(partition, key) in &self.writes {
            writer.int(partition as i64).int(key as i64).int((self.random.next_u64() >> 24) as i64);
        }
        self.operation
    }
}
