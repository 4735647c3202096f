//! Clients of a simulated cluster.
//!
//! A client does one thing at a time, at a node of its choice, and waits for as long as it has patience. What it was
//! not told it does not know. Then it asks again under the call's key, at any node, or it forgets.

use super::ledger::{Begun, Ledger};
use super::node::Life;
use fabius_cluster::Standing;
use fabius_engine::entry;
use fabius_engine::{Batch, BatchBuilder};
use fabius_env::Random;
use fabius_program::arguments;
use fabius_value::{Error, SqlState, Value};
use std::sync::Arc;

/// How long a client waits, in nanoseconds.
const PATIENCE_NS: u64 = 3_000_000_000;

/// A client and what it does.
#[derive(Default)]
pub(super) struct Client {
    doing: Option<Doing>,
    /// Calls of whose outcomes it was not told, to be asked for again.
    unknown: Vec<Call>,
}

/// A call of `work`.
#[derive(Clone)]
struct Call {
    op: i64,
    pad: usize,
    has_key: bool,
    begun: Begun,
}

struct Doing {
    /// The node, and its life then.
    at: (usize, u64),
    until_ns: u64,
    what: What,
    /// What it waits for.
    batch: Arc<Batch>,
}

enum What {
    Calls(Vec<Call>),
    Read(Begun),
    Define,
}

impl Client {
    /// Whether it waits for something, or has to ask again.
    pub(super) fn is_busy(&self) -> bool {
        self.doing.is_some() || !self.unknown.is_empty()
    }

    /// Begins something at a node; nothing new if it only has to come to an end.
    pub(super) fn begin(
        &mut self,
        at: (usize, u64),
        life: &mut Life,
        now_ns: u64,
        random: &mut Random,
        ledger: &mut Ledger,
        ending: bool,
    ) {
        let kind = random.below(20);
        let (what, batch) = if !self.unknown.is_empty() {
            let calls = std::mem::take(&mut self.unknown);
            let Some(batch) = calls_batch(life, &calls) else {
                self.unknown = calls;
                return;
            };
            (What::Calls(calls), batch)
        } else if ending {
            return;
        } else if kind < 6 {
            (What::Read(ledger.begin()), Batch::of(Vec::new(), 0))
        } else if kind == 6 {
            let text = format!("table extra{} {{ id: int, primary key (id) }}", random.below(5));
            (What::Define, Batch::of(entry::encode_definition(&text), 1))
        } else {
            let begun = ledger.begin();
            let count = if random.chance(1, 4) { 1 + random.below(6) } else { 1 };
            let call = |random: &mut Random, ledger: &mut Ledger| Call {
                op: ledger.next_op(),
                pad: if random.chance(1, 40) { random.index(70_000) } else { random.index(300) },
                has_key: random.chance(2, 3),
                begun,
            };
            let calls: Vec<Call> = (0..count).map(|_| call(random, ledger)).collect();
            let Some(batch) = calls_batch(life, &calls) else { return };
            (What::Calls(calls), batch)
        };
        match &what {
            What::Calls(_) => {
                let Standing { term, leads, .. } = life.replica.standing();
                let fence = (leads && random.chance(1, 3)).then_some(term);
                life.replica.hand_in(batch.clone(), fence).expect("small calls");
            }
            What::Read(_) => life.replica.read(batch.clone()),
            What::Define => life.replica.amend(batch.clone(), None).expect("a small entry"),
        }
        self.doing = Some(Doing { at, until_ns: now_ns + PATIENCE_NS, what, batch });
    }

    /// The node that it has asked, and its life then.
    pub(super) fn asked(&self) -> Option<(usize, u64)> {
        self.doing.as_ref().map(|doing| doing.at)
    }

    /// Does not wait for what a reader has to wait for.
    pub(super) fn read_at_once(&mut self) {
        if let Some(Doing { what: What::Read(_), batch, .. }) = &self.doing {
            batch.complete(1);
        }
    }

    /// Looks whether what it waits for has come; `life` is the one that it asked, if that goes on.
    pub(super) fn look(
        &mut self,
        life: Option<&Life>,
        now_ns: u64,
        ledger: &mut Ledger,
    ) -> Result<(), String> {
        let Some(doing) = self.doing.take() else { return Ok(()) };
        let Some(life) = life.filter(|_| doing.batch.is_complete()) else {
            if life.is_none() || now_ns >= doing.until_ns {
                self.give_up(doing.what);
            } else {
                self.doing = Some(doing);
            }
            return Ok(());
        };
        match doing.what {
            What::Calls(calls) => {
                for (place, call) in (0..).zip(calls) {
                    match outcome(life, &doing.batch, place) {
                        Ok(value) => ledger.returned(call.op, call.begun, value)?,
                        // It was not run, which its client takes to be unknown all the same.
                        Err(error) if error.state() == SqlState::SERIALIZATION_FAILURE => {
                            self.give_up(What::Calls(vec![call]));
                        }
                        Err(error) => return Err(format!("call {} has ended with {error}", call.op)),
                    }
                }
            }
            What::Read(begun) => {
                let value = life.query("see").map_err(|error| format!("a reader was told {error}"))?;
                ledger.read(begun, number(&value))?;
            }
            What::Define => match doing.batch.outcome(0) {
                Ok(()) => {}
                Err(error) if error.state() == SqlState::DUPLICATE_OBJECT => {}
                Err(error) => return Err(format!("a definition was refused by {error}")),
            },
        }
        Ok(())
    }

    fn give_up(&mut self, what: What) {
        if let What::Calls(calls) = what {
            self.unknown.extend(calls.into_iter().filter(|call| call.has_key));
        }
    }
}

fn calls_batch(life: &Life, calls: &[Call]) -> Option<Arc<Batch>> {
    let definitions = life.foundation.definitions();
    let procedure = definitions.procedure(definitions.catalog.find_procedure("work")?).ok()?.clone();
    let mut batch = BatchBuilder::new();
    for call in calls {
        let values = [Value::BigInt(call.op), Value::Text("x".repeat(call.pad))];
        let bytes = arguments::encode(&procedure.program, &values).expect("arguments fit");
        let key = call.op.to_le_bytes();
        batch.push(procedure.id, &bytes, call.has_key.then_some(&key[..]), true).expect("a small call");
    }
    Some(batch.build())
}

fn outcome(life: &Life, batch: &Batch, place: u32) -> Result<i64, Error> {
    batch.outcome(place)?;
    let ticket = batch.ticket(place).expect("a committed call that wants its result has a ticket");
    loop {
        if let Some(values) = ticket.values() {
            return values.clone().map(|values| number(&values));
        }
        life.engine.resolve(&ticket);
    }
}

fn number(values: &[Value]) -> i64 {
    match values {
        [Value::BigInt(number)] => *number,
        other => panic!("a number, not {other:?}"),
    }
}
