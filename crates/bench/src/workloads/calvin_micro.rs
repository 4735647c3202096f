//! `calvin-micro`: Calvin's microbenchmark on one machine (Calvin, sections 7.2 and 7.4).
//!
//! A call reads 10 records, checks a constraint, and updates a counter at each. One record is of a small hot
//! set (the contention index is 1 / `hot_records`), the others are not. In a share of calls one record is known
//! by its name only, which a secondary index leads to; names change places `volatility` times a second each,
//! by the clock: with a volatility, the calls of a run do not follow from the seed alone.

use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting, Settings};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::ArgumentWriter;
use std::time::Instant;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "calvin-micro",
    summary: "read 10 records, check, update 10 counters; one record is hot, one may be found by an index",
    settings: &[
        Setting {
            name: "hot_records",
            default: "100",
            domain: Domain::Integer(1, 1 << 24),
            help: "records of the hot set; the contention index is 1 / hot_records",
        },
        Setting {
            name: "records",
            default: "100000",
            domain: Domain::Integer(100, 1 << 32),
            help: "other records",
        },
        Setting {
            name: "dependent",
            default: "0",
            domain: Domain::Number(0.0, 1.0),
            help: "share of calls that find one of their records by the secondary index",
        },
        Setting {
            name: "names",
            default: "1000",
            domain: Domain::Integer(2, 1 << 32),
            help: "further records, which are found by their names",
        },
        Setting {
            name: "volatility",
            default: "0",
            domain: Domain::Number(0.0, 1e6),
            help: "how often a second each of these names changes its record",
        },
    ],
    build: |settings| Box::new(CalvinMicro { shape: Shape::new(settings), seed: settings.integer("seed") }),
};

/// Records of a call.
const KEYS: usize = 10;
const MICRO: usize = 0;
const DEPENDENT: usize = 1;
const EXCHANGE: usize = 2;

/// How large everything is, and how often what happens.
#[derive(Clone, Copy, Debug)]
struct Shape {
    hot: u64,
    cold: u64,
    dependent_below: u64,
    names: u64,
    volatility: f64,
}

impl Shape {
    /// From the workload's settings.
    fn new(settings: &Settings) -> Shape {
        Shape {
            hot: settings.integer("hot_records"),
            cold: settings.integer("records"),
            dependent_below: super::below(settings.number("dependent").unwrap_or_default()),
            names: settings.integer("names"),
            volatility: settings.number("volatility").unwrap_or_default(),
        }
    }

    /// Exchanges of names a second: each changes two.
    fn exchanges_per_second(&self) -> f64 {
        self.volatility * self.names as f64 / 2.0
    }

    /// Whether the next call is dependent.
    fn is_dependent(&self, random: &mut Random) -> bool {
        super::happens(self.dependent_below, random)
    }

    /// A hot record and other ones, distinct, `count` in all.
    fn keys(&self, count: usize, random: &mut Random, keys: &mut Vec<u64>) {
        keys.clear();
        keys.push(random.below(self.hot));
        while keys.len() < count {
            let key = self.hot + random.below(self.cold);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
    }

    /// A name of one of the records that are found by name; at first it is also the record's key.
    fn name(&self, random: &mut Random) -> u64 {
        self.hot + self.cold + random.below(self.names)
    }

    /// Two different records whose names are to be exchanged.
    fn exchange(&self, random: &mut Random) -> [u64; 2] {
        let base = self.hot + self.cold;
        let one = random.below(self.names);
        let other = (one + 1 + random.below(self.names - 1)) % self.names;
        [base + one, base + other]
    }
}

struct CalvinMicro {
    shape: Shape,
    seed: u64,
}

impl Workload for CalvinMicro {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/calvin_micro.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const {
            &[
                Operation::new("micro", Mode::Call),
                Operation::new("micro_dependent", Mode::Call),
                Operation::new("exchange_names", Mode::Call),
            ]
        }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        loader.ranges("load_records", self.shape.hot + self.shape.cold + self.shape.names, |_| {})
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        Box::new(CalvinClient {
            random: super::random_for(self.seed, place),
            shape: self.shape,
            exchanges_per_second: self.shape.exchanges_per_second() / place.count as f64,
            exchanged: 0,
            started: None,
            keys: Vec::with_capacity(KEYS),
        })
    }

    /// The counters add up to ten for each call, and names are still a permutation.
    fn check(&self, target: &Target) -> Result<Verdict> {
        let count = (self.shape.hot + self.shape.cold + self.shape.names) as usize;
        let (mut total, mut has_name) = (0, vec![false; count]);
        super::rows(target, "records", &mut |row| {
            total += super::integer(&row[1]);
            has_name[super::integer(&row[2]) as usize] = true;
        })?;
        let calls = target.committed("micro") + target.committed("micro_dependent");
        let lost = has_name.iter().filter(|has| !**has).count();
        let found = format!("{calls} calls counted {total} times; {lost} names are lost");
        Ok(if total == i128::from(calls) * KEYS as i128 && lost == 0 { Ok(found) } else { Err(found) })
    }
}

struct CalvinClient {
    random: Random,
    shape: Shape,
    /// Of this client.
    exchanges_per_second: f64,
    exchanged: u64,
    started: Option<Instant>,
    keys: Vec<u64>,
}

impl CalvinClient {
    fn is_exchange_due(&mut self) -> bool {
        if self.exchanges_per_second == 0.0 {
            return false;
        }
        let elapsed = self.started.get_or_insert_with(Instant::now).elapsed().as_secs_f64();
        let is_due = (self.exchanged as f64) < elapsed * self.exchanges_per_second;
        self.exchanged += u64::from(is_due);
        is_due
    }
}

impl Client for CalvinClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let mut writer = ArgumentWriter::new(arguments);
        if self.is_exchange_due() {
            let [one, other] = self.shape.exchange(&mut self.random);
            writer.int(one as i64).int(other as i64);
            return EXCHANGE;
        }
        let is_dependent = self.shape.is_dependent(&mut self.random);
        let known = if is_dependent { KEYS - 1 } else { KEYS };
        self.shape.keys(known, &mut self.random, &mut self.keys);
        writer.list(self.keys.len());
        self.keys.iter().for_each(|key| _ = writer.int(*key as i64));
        if !is_dependent {
            return MICRO;
        }
        writer.int(self.shape.name(&mut self.random) as i64);
        DEPENDENT
    }
}
