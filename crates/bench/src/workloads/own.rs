//! A user's own program file as a workload.
//!
//! Calls are described by templates (`own/template.rs`): `transfer(1..1000, 1..1000, 5)` draws two accounts at random
//! for each call. For loading, the first range of a description is gone through in order, one call for each of its
//! numbers. The check replays the log on another engine, one call at a time.

mod template;

use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::Settings;
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload};
use fabius::{Database, EngineKind, Options, Result};
use fabius_env::Random;
use fabius_log::LogItem;
use fabius_value::{Error, Seq, SqlState};
use std::path::Path;
use template::{Template, signature};

/// A program file and the calls to make.
pub struct Own {
    programs: &'static str,
    operations: &'static [Operation],
    load: Vec<Template>,
    calls: Vec<Template>,
    seed: u64,
}

impl Own {
    /// Reads a program file. Descriptions of calls may begin with a weight: `3*balance(1..1000)`.
    ///
    /// # Errors
    /// What is wrong with the file or a description, with its place; what could be called if nothing is.
    pub fn open(path: &Path, load: &[String], calls: &[String], settings: &Settings) -> Result<Own> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the program file cannot be read")
                .with_detail(format!("{}: {error}", path.display()))
                .with_hint("name a file with tables and procedures in the text form")
        })?;
        let scratch = Database::in_memory(Options { workers: 0, ..Options::default() });
        scratch.define(&text)?;
        if calls.is_empty() {
            let definitions = scratch.definitions();
            let callable: Vec<String> =
                definitions.catalog.procedures().map(|(_, program)| signature(program)).collect();
            return Err(Error::new(SqlState::INVALID_PARAMETER, "nothing says what to call")
                .with_detail(format!("the file has {}", callable.join("; ")))
                .with_hint(
                    "say it with --call 'procedure(1..1000, 5)', and --load for the rows to begin with",
                ));
        }
        let templates = |descriptions: &[String]| -> Result<Vec<Template>> {
            descriptions.iter().map(|description| Template::parse(description, &scratch)).collect()
        };
        let (load, calls) = (templates(load)?, templates(calls)?);
        let operations: Vec<Operation> =
            calls.iter().map(|call| Operation::new(call.procedure, Mode::Call)).collect();
        // A run lasts as long as its process; workloads of our own are written into the program.
        Ok(Own {
            programs: text.leak(),
            operations: operations.leak(),
            load,
            calls,
            seed: settings.integer("seed"),
        })
    }
}

impl Workload for Own {
    fn programs(&self) -> &'static str {
        self.programs
    }

    fn operations(&self) -> &'static [Operation] {
        self.operations
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        let mut random = Random::seeded(self.seed);
        for template in &self.load {
            let first = template.first_range();
            let (low, high) = first.map_or((0, 0), |(_, low, high)| (low, high));
            let mut load = || {
                for number in low..=high {
                    let encoded = template.encode(&mut random, first.map(|(at, ..)| (at, number)))?;
                    loader.call_encoded(template.procedure, &encoded)?;
                }
                loader.wait()
            };
            load().map_err(|error| {
                let detail = error.detail().map_or(String::new(), |detail| format!("{detail}; "));
                error.with_detail(format!("{detail}while rows were loaded by {}", template.procedure))
            })?;
        }
        Ok(())
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        let random = super::random_for(self.seed, place);
        Box::new(OwnClient {
            random,
            total: self.calls.iter().map(|call| call.weight).sum(),
            calls: self.calls.clone(),
        })
    }

    fn check(&self, target: &Target) -> Result<Verdict> {
        let serial = Database::in_memory(Options {
            workers: 0,
            engine: EngineKind::TwoPhaseLocking,
            ..Options::default()
        });
        let disk = target.written_log()?;
        fabius_log::dump(&disk, |item| match item {
            LogItem::Frame(frame) => serial
                .engine()
                .take(Seq(frame.first_seq), frame.entry_count, frame.payload)
                .map(|_| ())
                .map_err(Replay::Engine),
            _ => Ok(()),
        })
        .map_err(|stopped| match stopped {
            Replay::Engine(error) => error,
            Replay::Log(error) => fabius_engine::foundation::log_error(&error),
        })?;
        let (mut rows, mut tables) = (0u64, 0u64);
        for (_, table) in target.database.definitions().catalog.tables() {
            let sorted = |database: &Database| -> Result<Vec<String>> {
                let mut lines: Vec<String> =
                    database.rows(&table.name)?.iter().map(|row| format!("{row:?}")).collect();
                lines.sort_unstable();
                Ok(lines)
            };
            let (here, there) = (sorted(&target.database)?, sorted(&serial)?);
            if here != there {
                let differing = here.iter().zip(&there).find(|(a, b)| a != b);
                return Ok(Err(format!(
                    "table {} has {} rows and {} when the calls run one at a time{}",
                    table.name,
                    here.len(),
                    there.len(),
                    differing.map_or(String::new(), |(a, b)| format!("; {a} is {b} there")),
                )));
            }
            rows += here.len() as u64;
            tables += 1;
        }
        Ok(Ok(format!("{rows} rows of {tables} tables are what the calls give one at a time")))
    }
}

enum Replay {
    Engine(Error),
    Log(fabius_log::LogError),
}

impl From<fabius_log::LogError> for Replay {
    fn from(error: fabius_log::LogError) -> Replay {
        Replay::Log(error)
    }
}

struct OwnClient {
    random: Random,
    total: u64,
    calls: Vec<Template>,
}

impl Client for OwnClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let mut ticket = self.random.below(self.total);
        let is_it = |call: &Template| match ticket.checked_sub(call.weight) {
            Some(rest) => {
                ticket = rest;
                false
            }
            None => true,
        };
        let at = self.calls.iter().position(is_it).unwrap_or_default();
        let encoded = self.calls[at].encode(&mut self.random, None);
        arguments.extend(encoded.expect("both ends of every range were tried when the file was read"));
        at
    }
}
