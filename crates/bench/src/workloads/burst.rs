//! `burst`: `rmw10` at a base rate, then a spike, then the base rate again (lazy evaluation, section
//! 4.2).

use super::rmw10::{self, Rmw10};
use crate::arrivals::Arrivals;
use crate::loader::Loader;
use crate::operation::Operation;
use crate::settings::{Domain, Setting};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use fabius::Result;

const SETTINGS: &[Setting] = &[
    rmw10::SETTINGS[0],
    rmw10::SETTINGS[1],
    rmw10::SETTINGS[2],
    rmw10::SETTINGS[3],
    rmw10::SETTINGS[4],
    Setting {
        name: "base",
        default: "20000",
        domain: Domain::Integer(1, 1 << 32),
        help: "calls per second outside the spike",
    },
    Setting {
        name: "spike",
        default: "6.6",
        domain: Domain::Number(1.0, 1000.0),
        help: "the spike's rate, as a multiple of the base; it lasts from 20 % to 40 % of the time",
    },
    Setting {
        name: "queue",
        default: "20000",
        domain: Domain::Integer(64, 1 << 32),
        help: "calls waiting for their outcome before further ones are refused",
    },
    Setting {
        name: "backlog",
        default: "100000000",
        domain: Domain::Integer(1, 1 << 40),
        help: "lazy: deferred calls before callers are slowed down",
    },
];

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "burst",
    summary: "rmw10 arriving at a base rate with a spike of 6.6 times that",
    settings: SETTINGS,
    build: |settings| {
        Box::new(Burst {
            inner: Rmw10::new(settings),
            arrivals: Arrivals {
                base_tps: settings.integer("base") as f64,
                spike: settings.number("spike").unwrap_or(6.6),
                spike_between: (0.2, 0.4),
                queue_calls: settings.integer("queue") as usize,
                is_random: false,
            },
        })
    },
};

struct Burst {
    inner: Rmw10,
    arrivals: Arrivals,
}

impl Workload for Burst {
    fn programs(&self) -> &'static str {
        self.inner.programs()
    }

    fn operations(&self) -> &'static [Operation] {
        self.inner.operations()
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        self.inner.load(loader)
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        self.inner.client(place)
    }

    fn check(&self, target: &Target) -> Result<Verdict> {
        self.inner.check(target)
    }

    fn arrivals(&self) -> Option<Arrivals> {
        Some(self.arrivals.clone())
    }
}
