//! `hot`: increments, of which a share goes to one shared counter (LSD, HOTKEY; Doppel, INCR1).

use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use crate::zipf::Zipf;
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::ArgumentWriter;
use std::sync::Arc;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "hot",
    summary: "increments of one shared counter with a given probability, else of another one",
    settings: &[
        Setting {
            name: "only",
            default: "none",
            domain: Domain::Choice(&["none", "hot"]),
            help: "hot: every increment goes to the shared counter",
        },
        Setting {
            name: "hot_share",
            default: "0.5",
            domain: Domain::Number(0.0, 1.0),
            help: "probability that an increment goes to the shared counter",
        },
        Setting {
            name: "keys",
            default: "1000000",
            domain: Domain::Integer(1, 1 << 32),
            help: "other counters",
        },
        Setting {
            name: "hot_key",
            default: "0",
            domain: Domain::Integer(0, 1 << 32),
            help: "which counter is the shared one; 0 is none of the others",
        },
        Setting {
            name: "theta",
            default: "0",
            domain: Domain::Number(0.0, 2.0),
            help: "Zipfian skew among the other counters; 0 is uniform",
        },
        Setting {
            name: "batch",
            default: "512",
            domain: Domain::Integer(1, 65_536),
            help: "calls handed in together",
        },
    ],
    build: |settings| {
        let keys = settings.integer("keys");
        let is_only_hot = settings.text("only") == "hot";
        Box::new(Hot {
            seed: settings.integer("seed"),
            hot_share: if is_only_hot { 1.0 } else { settings.number("hot_share").unwrap_or(0.5) },
            hot_key: if is_only_hot { 0 } else { settings.integer("hot_key").min(keys) },
            keys: if is_only_hot { 1 } else { keys },
            zipf: Arc::new(Zipf::new(
                keys,
                if is_only_hot { 0.0 } else { settings.number("theta").unwrap_or(0.0) },
            )),
        })
    },
};

struct Hot {
    seed: u64,
    hot_share: f64,
    hot_key: u64,
    keys: u64,
    zipf: Arc<Zipf>,
}

impl Workload for Hot {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/hot.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const { &[Operation::new("increment", Mode::Call)] }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        loader.ranges("load_counters", self.keys + 1, |_| {})
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        Box::new(HotClient {
            random: super::random_for(self.seed, place),
            hot_below: super::below(self.hot_share),
            hot_key: self.hot_key,
            zipf: self.zipf.clone(),
        })
    }

    fn check(&self, target: &Target) -> Result<Verdict> {
        let expected = target.committed("increment");
        let mut total = 0;
        super::rows(target, "counters", &mut |row| total += super::integer(&row[1]))?;
        Ok(if total == i128::from(expected) {
            Ok(format!("the counters add up to {expected}, one for each increment"))
        } else {
            Err(format!("the counters add up to {total}, but {expected} increments committed"))
        })
    }
}

struct HotClient {
    random: Random,
    hot_below: u64,
    hot_key: u64,
    zipf: Arc<Zipf>,
}

impl Client for HotClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let is_hot = super::happens(self.hot_below, &mut self.random);
        let key = if is_hot { self.hot_key } else { 1 + self.zipf.draw(&mut self.random) };
        ArgumentWriter::new(arguments).int(key as i64);
        0
    }
}
