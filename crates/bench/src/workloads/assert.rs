//! `assert`: counters that are decremented while they stay above zero (LSD, ASSERT).
//!
//! A call decrements a counter if it remains above zero, and otherwise gives it its initial value `n` again; so
//! the condition changes with one call in `n`. The counter is a shared one, or one of the client's own.

use crate::history;
use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::{self, Argument, ArgumentWriter};
use fabius_value::Datum;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "assert",
    summary: "counters decremented while they stay above zero, else restored",
    settings: &[
        Setting {
            name: "hot_share",
            default: "0.5",
            domain: Domain::Number(0.0, 1.0),
            help: "probability that a call goes to the shared counter; 0: private counters only",
        },
        Setting {
            name: "initial",
            default: "100",
            domain: Domain::Integer(1, 1 << 40),
            help: "what counters begin with and are restored to",
        },
        Setting {
            name: "keys",
            default: "100000",
            domain: Domain::Integer(64, 1 << 32),
            help: "private counters, divided among the clients",
        },
    ],
    build: |settings| {
        Box::new(Assert {
            seed: settings.integer("seed"),
            hot_below: super::below(settings.number("hot_share").unwrap_or_default()),
            initial: settings.integer("initial"),
            keys: settings.integer("keys"),
        })
    },
};

struct Assert {
    seed: u64,
    hot_below: u64,
    initial: u64,
    keys: u64,
}

impl Workload for Assert {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/assert.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const { &[Operation::new("decrement", Mode::Call)] }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        loader.ranges("load_counters", self.keys + 1, |writer| _ = writer.int(self.initial as i64))
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        let own = self.keys / place.count as u64;
        Box::new(AssertClient {
            random: super::random_for(self.seed, place),
            hot_below: self.hot_below,
            initial: self.initial as i64,
            first: 1 + own * place.number as u64,
            own,
        })
    }

    /// A counter goes round: after `c` calls it is `n - c % n`.
    fn check(&self, target: &Target) -> Result<Verdict> {
        let procedure = target.database.procedure("decrement")?;
        let mut calls = vec![0u64; self.keys as usize + 1];
        history::calls(target, &mut |call| {
            if call.procedure == procedure.id {
                let decoded = arguments::decode(&procedure.program, call.arguments)?;
                let [Argument::Scalar(Datum::Int(id)), _] = decoded[..] else {
                    unreachable!("decoded by the procedure's own types")
                };
                calls[id as usize] += 1;
            }
            Ok(())
        })?;
        let (logged, committed) = (calls.iter().sum::<u64>(), target.committed("decrement"));
        let mut wrong = 0u64;
        super::rows(target, "counters", &mut |row| {
            let expected = self.initial - calls[super::integer(&row[0]) as usize] % self.initial;
            wrong += u64::from(super::integer(&row[1]) != i128::from(expected));
        })?;
        Ok(if wrong == 0 && logged == committed {
            Ok(format!("every counter is above zero, and where {committed} calls must have left it"))
        } else {
            Err(format!("{wrong} counters are wrong; {logged} calls in the log, {committed} committed"))
        })
    }
}

struct AssertClient {
    random: Random,
    hot_below: u64,
    initial: i64,
    first: u64,
    own: u64,
}

impl Client for AssertClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let is_hot = super::happens(self.hot_below, &mut self.random);
        let id = if is_hot { 0 } else { self.first + self.random.below(self.own) };
        ArgumentWriter::new(arguments).int(id as i64).int(self.initial);
        0
    }
}
