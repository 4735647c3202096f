//! Cases one after another: each statement in several ways on both databases, what differs kept with its script.
//!
//! | statement | how often |
//! |---|---|
//! | reads | as it is, and every second one also as a query |
//! | writes | every second one first in a transaction that is rolled back; then to stay; the rows of the table after each |

use super::case::Case;
use super::pair::{Differs, Pair, Verdict};
use super::report::{Found, Report};
use super::shrink;
use super::statement::{Form, Kind, Statement, Way};
use fabius_env::Random;
use std::io::Result;

/// Runs the case of a seed; what differs first is found, shrunk, and ends the case.
///
/// # Errors
/// If a server cannot be started again.
pub fn run_case(pair: &mut Pair, seed: u64, report: &mut Report) -> Result<()> {
    let Case { setup, statements, random } = Case::of(seed);
    pair.begin()?;
    report.cases += 1;
    let (history, log) = (Vec::new(), Vec::new());
    let mut run = Run { pair, report, history, log, block: None, random };
    let found = run.all(setup, statements);
    let Err(Stop { difference: Some((last, differs)) }) = found else { return Ok(()) };
    let (history, mut log) = (run.history, run.log);
    // The last one is that which differs.
    log.pop();
    report.count(last.kind, true);
    let last_words = pair.last_words();
    let found = Found { seed, history, last, differs: *differs, last_words };
    if report.is_worth_shrinking(&found) {
        let found = shrink::shrink(pair, found, log)?;
        // Which of several errors is told is not determined.
        return if shrink::has_two_faults(pair, &found)? { Ok(()) } else { report.add(pair, found) };
    }
    report.add_unshrunk(&found);
    Ok(())
}

/// Why a case does not go on: a difference, or that the two cannot be compared any more.
struct Stop {
    difference: Option<(Statement, Box<Differs>)>,
}

/// A case that runs.
struct Run<'r> {
    pair: &'r mut Pair,
    report: &'r mut Report,
    /// What has led to the state that both are in.
    history: Vec<Statement>,
    /// All that was sent, also what has been rolled back or has changed nothing.
    log: Vec<Statement>,
    /// Where in it the transaction begins that is open.
    block: Option<usize>,
    random: Random,
}

impl Run<'_> {
    fn all(&mut self, setup: Vec<Statement>, statements: Vec<Statement>) -> std::result::Result<(), Stop> {
        for statement in setup {
            self.one(&statement)?;
        }
        let mut is_skipping = false;
        for statement in statements {
            let is_control = statement.kind == Kind::Control;
            if is_skipping {
                is_skipping = !(is_control && matches!(statement.node.sql().as_str(), "COMMIT" | "ROLLBACK"));
                continue;
            }
            let is_done = match statement.kind {
                kind if kind.writes() => self.write(&statement)?,
                Kind::Select => self.read(&statement)?,
                _ => self.one(&statement)?,
            };
            // A transaction that has failed has nothing more to compare.
            if !is_done && self.block.is_some() {
                self.roll_back();
                // A commit that has failed is its end.
                is_skipping = statement.node.sql() != "COMMIT";
            }
        }
        Ok(())
    }

    fn read(&mut self, statement: &Statement) -> std::result::Result<bool, Stop> {
        let way = Way::random(&mut self.random, Form::Plain);
        let is_done = self.one(&statement.sent(way))?;
        if (is_done || self.block.is_none()) && self.random.chance(1, 2) {
            let way = Way::random(&mut self.random, Form::Query);
            return self.one(&statement.sent(way));
        }
        Ok(is_done)
    }

    fn write(&mut self, statement: &Statement) -> std::result::Result<bool, Stop> {
        if self.random.chance(1, 2) {
            let (begin, end) = match self.block {
                None => ("BEGIN", "ROLLBACK"),
                Some(_) => ("SAVEPOINT attempt", "ROLLBACK TO attempt"),
            };
            let length = self.history.len();
            self.one(&Statement::text(Kind::Control, begin))?;
            let form = if self.random.chance(1, 2) { Form::Query } else { Form::Plain };
            let way = Way::random(&mut self.random, form);
            if self.one(&statement.sent(way))? {
                self.probe(statement)?;
            }
            self.roll_back_to(end);
            self.history.truncate(length);
            if end == "ROLLBACK" {
                self.block = None;
            }
        }
        let form = if self.random.chance(1, 3) { Form::Query } else { Form::Plain };
        let way = Way::random(&mut self.random, form);
        let is_done = self.one(&statement.sent(way))?;
        if is_done {
            self.probe(statement)?;
        }
        Ok(is_done)
    }

    /// Compares all rows of the tables that a statement has written to.
    fn probe(&mut self, statement: &Statement) -> std::result::Result<(), Stop> {
        for table in &statement.tables {
            let probe = Statement::text(Kind::Probe, format!("SELECT * FROM {table}"));
            self.log.push(probe.clone());
            match self.pair.run(&probe) {
                Verdict::Same { .. } => self.report.count(Kind::Probe, true),
                Verdict::Different(differs) => {
                    return Err(Stop { difference: Some((probe, differs)) });
                }
                _ => return Err(Stop { difference: None }),
            }
        }
        Ok(())
    }

    fn roll_back(&mut self) {
        self.roll_back_to("ROLLBACK");
        if let Some(begin) = self.block.take() {
            self.history.truncate(begin);
        }
    }

    fn roll_back_to(&mut self, text: &str) {
        self.log.push(Statement::text(Kind::Control, text));
        self.pair.roll_back(text);
    }

    /// One statement; whether it was done.
    fn one(&mut self, statement: &Statement) -> std::result::Result<bool, Stop> {
        self.log.push(statement.clone());
        match self.pair.run(statement) {
            Verdict::Same { refusal } => {
                let is_done = refusal.is_none();
                self.report.count(statement.kind, is_done);
                if is_done && !statement.kind.only_reads() {
                    self.remember(statement);
                }
                Ok(is_done)
            }
            Verdict::NotSupported(message) => {
                self.report.not_supported(statement, &message);
                Ok(false)
            }
            Verdict::NotComparable => {
                self.report.not_comparable += 1;
                // Both have to have done the same.
                if statement.kind.only_reads() && self.block.is_none() {
                    return Ok(false);
                }
                Err(Stop { difference: None })
            }
            Verdict::Different(differs) => Err(Stop { difference: Some((statement.clone(), differs)) }),
        }
    }

    /// Keeps a statement that has changed the state of both.
    fn remember(&mut self, statement: &Statement) {
        if statement.kind == Kind::Control {
            match statement.node.sql().as_str() {
                "BEGIN" => self.block = Some(self.history.len()),
                "COMMIT" => self.block = None,
                "ROLLBACK" => {
                    if let Some(begin) = self.block.take() {
                        self.history.truncate(begin);
                    }
                    return;
                }
                _ => {}
            }
        }
        self.history.push(statement.clone());
    }
}

impl Kind {
    /// All kinds, as they are reported.
    pub const ALL: [Kind; 10] = [
        Kind::Setup,
        Kind::Select,
        Kind::Partition,
        Kind::Insert,
        Kind::Update,
        Kind::Delete,
        Kind::Merge,
        Kind::WithWrites,
        Kind::Control,
        Kind::Probe,
    ];
}
