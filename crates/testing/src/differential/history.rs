//! What the oracle makes of a log, and whether an engine agrees.

use crate::differential::work::Submitted;
use crate::oracle::{Oracle, Outcome};
use crate::rig::{Logged, Rig};
use fabius_engine::entry::{self, Call, Entries};
use fabius_program::arguments;
use fabius_value::{Error, Seq, Value};
use std::collections::HashMap;
use std::fmt::Write;

/// A log as the oracle has run it.
#[derive(Default)]
pub struct History {
    oracle: Oracle,
    by_key: HashMap<Vec<u8>, Outcome>,
    by_seq: HashMap<Seq, Outcome>,
    nameless: HashMap<Nameless, usize>,
    log: Vec<Logged>,
}

/// What a call without a key looks like, with its outcome: its procedure's name, its arguments, and why it aborted.
type Nameless = (String, Vec<u8>, Option<String>);

/// Rows that a reader was shown: those of one state within a stretch of the order.
pub struct Seen {
    /// Where the stretch begins: at what had been promised when the reader asked, or at the seq that it was told,
    pub from: Seq,
    /// and where it ends: at what had been promised when the reader was answered, or likewise.
    pub until: Seq,
    /// The table's name.
    pub table: String,
    /// The table's rows, as text, sorted.
    pub rows: Vec<String>,
}

impl History {
    /// Runs the next batches of the log, and compares what readers were shown on the way.
    ///
    /// # Panics
    /// If a reader was shown rows of no state that it may have seen.
    pub fn follow(&mut self, log: &[Logged], mut seen: Vec<Seen>) {
        let mut compare = |oracle: &Oracle| {
            let at = oracle.last();
            seen.retain(|seen| {
                let Seen { from, until, table, rows } = seen;
                let is_it = *from <= at && *rows == rows_of(oracle, table);
                assert!(
                    is_it || at < *until,
                    "{table} from {from} to {until}: {rows:#?}\nthe oracle's at {until}: {:#?}",
                    rows_of(oracle, table)
                );
                !is_it
            });
        };
        compare(&self.oracle);
        for batch in log {
            assert_eq!(batch.first_seq, self.oracle.last().next(), "the log has a gap");
            self.log.push(batch.clone());
            run(&mut self.oracle, batch, &mut |oracle, called| {
                if let Some((call, outcome)) = called {
                    if let Some(key) = call.key {
                        self.by_key.entry(key.to_vec()).or_insert_with(|| outcome.clone());
                    } else if let Some(program) = oracle.catalog().procedure(call.procedure) {
                        let looks = nameless(&program.name, call.arguments, outcome.result.as_ref().err());
                        *self.nameless.entry(looks).or_default() += 1;
                    }
                    self.by_seq.insert(outcome.seq, outcome);
                }
                compare(oracle);
            });
        }
        assert!(seen.is_empty(), "a reader is ahead of the log");
    }

    /// Batches of the log that were run.
    pub fn batches(&self) -> usize {
        self.log.len()
    }

    /// Whether the log has every call of these batches: with its outcome, those that can only be told by how they look.
    pub fn has(&self, rig: &Rig, submitted: &[Submitted]) -> bool {
        let mut seen: HashMap<Nameless, usize> = HashMap::new();
        submitted.iter().all(|submitted| {
            (0..submitted.calls.len()).all(|place| {
                if !submitted.is_nameless(place) {
                    return self.outcome(submitted, place).is_some();
                }
                let call = &submitted.calls[place];
                let bytes = arguments::encode(&rig.procedure(&call.name).program, &call.arguments);
                let aborted = submitted.batch.outcome(place as u32).err();
                let looks = nameless(&call.name, &bytes.expect("arguments fit"), aborted.as_ref());
                let logged = self.nameless.get(&looks).copied().unwrap_or_default();
                let seen = seen.entry(looks).or_default();
                *seen += 1;
                *seen <= logged
            })
        })
    }

    fn outcome(&self, submitted: &Submitted, place: usize) -> Option<&Outcome> {
        match &submitted.calls[place].key {
            Some(key) => self.by_key.get(key),
            None => self.by_seq.get(&submitted.batch.outcomes().first_seq?),
        }
    }

    /// Compares what became of each call, and whether it comes after whatever had been promised before it was
    /// handed in: with the log's order as the serial one, that is strict serializability.
    ///
    /// # Panics
    /// At the first difference, with all calls up to there.
    pub fn compare_calls(&self, rig: &Rig, submitted: &[Submitted]) {
        assert!(
            self.has(rig, submitted),
            "{}calls are not in the log, or not with their outcomes",
            self.tale()
        );
        for submitted in submitted {
            for (place, call) in submitted.calls.iter().enumerate() {
                if submitted.is_nameless(place) {
                    continue;
                }
                let expected = self.outcome(submitted, place).expect("a call of a complete batch is logged");
                let (name, after) = (&call.name, submitted.after);
                assert!(expected.seq > after, "{name} has {}, but {after} was promised before", expected.seq);
                let (expected, actual) = match call.wants_result {
                    true => (expected.result.clone(), rig.result(&submitted.batch, place as u32)),
                    false => {
                        let outcome = submitted.batch.outcome(place as u32);
                        (expected.result.clone().map(|_| Vec::new()), outcome.map(|()| Vec::new()))
                    }
                };
                // Not every value equals itself, but what it looks like does.
                if actual != expected && format!("{actual:?}") != format!("{expected:?}") {
                    let key = call.key.as_deref().map(String::from_utf8_lossy);
                    let tale = self.tale();
                    let call = format!("{} {:?} key {key:?}", call.name, call.arguments);
                    panic!("{tale}outcome of call {call}:\nengine {actual:?}\noracle {expected:?}");
                }
            }
        }
    }

    /// Compares every row.
    ///
    /// # Panics
    /// If a table differs.
    pub fn compare_rows(&self, rig: &Rig, whose: &str) {
        for (_, schema) in self.oracle.catalog().tables() {
            let (actual, expected) = (texts(rig.rows(&schema.name)), rows_of(&self.oracle, &schema.name));
            if actual != expected {
                let (tale, name) = (self.tale(), &schema.name);
                panic!("{tale}rows of {name}: {whose} {actual:#?}\nthe oracle's {expected:#?}");
            }
        }
    }

    /// Every row of every table, as text.
    pub fn rows(&self) -> impl Iterator<Item = String> {
        self.oracle.catalog().tables().flat_map(|(_, schema)| rows_of(&self.oracle, &schema.name))
    }

    /// The log, a line for each call.
    fn tale(&self) -> String {
        let mut tale = String::new();
        let mut oracle = Oracle::new();
        for batch in &self.log {
            run(&mut oracle, batch, &mut |oracle, called| {
                let Some((call, outcome)) = called else { return };
                let (seq, result) = (outcome.seq, outcome.result);
                writeln!(tale, "{seq}: {} -> {result:?}", shown(oracle, &call)).expect("writing to a string");
            });
        }
        tale
    }
}

fn nameless(name: &str, arguments: &[u8], aborted: Option<&Error>) -> Nameless {
    (name.to_string(), arguments.to_vec(), aborted.map(|error| format!("{error:?}")))
}

/// Follows each entry of a log, and what became of it if it was a call.
type Then<'t> = dyn FnMut(&Oracle, Option<(Call<'_>, Outcome)>) + 't;

/// Runs a batch of the log; `then` follows each entry.
fn run(oracle: &mut Oracle, batch: &Logged, then: &mut Then<'_>) {
    match entry::decode(&batch.payload).expect("the engine's own entries") {
        Entries::Definition(text) => {
            oracle.define(text).expect("the engine took it");
            then(oracle, None);
        }
        Entries::KeyWindow(calls) => {
            oracle.set_key_window(calls);
            then(oracle, None);
        }
        Entries::Nothing | Entries::Checkpoint => {
            oracle.pass();
            then(oracle, None);
        }
        Entries::Calls { time_us, bytes } => {
            for call in entry::calls(bytes) {
                let call = call.expect("the engine's own entries");
                let outcome = oracle.call(call.procedure, call.arguments, call.key, time_us);
                then(oracle, Some((call, outcome)));
            }
        }
    }
}

fn shown(oracle: &Oracle, call: &Call<'_>) -> String {
    let Some(program) = oracle.catalog().procedure(call.procedure) else { return "?".into() };
    let values = arguments::decode(program, call.arguments);
    let key = call.key.map(String::from_utf8_lossy);
    format!("{} {values:?} key {key:?}", program.name)
}

/// Rows as sorted lines.
pub fn texts(rows: Vec<Vec<Value>>) -> Vec<String> {
    let mut lines: Vec<String> = rows.into_iter().map(|row| format!("{row:?}")).collect();
    lines.sort();
    lines
}

fn rows_of(oracle: &Oracle, table: &str) -> Vec<String> {
    let id = oracle.catalog().find_table(table).expect("the engine knew it");
    texts(oracle.rows(id))
}
