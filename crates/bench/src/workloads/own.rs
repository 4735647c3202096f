//! A user's own program file as a workload.
//!
//! Calls are described as they are written, with ranges in the place of values: `transfer(1..1000, 1..1000, 5)` draws
//! two accounts at random for each call. For loading, the first range of a description is gone through in order,
//! one call for each of its numbers. The check replays the log on another engine, one call at a time.

use crate::loader::Loader;
use crate::settings::Settings;
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Mode, Operation, Verdict, Workload};
use fabius::program::arguments;
use fabius::program::ir::{Program, Type};
use fabius::{Database, EngineKind, Options, Result};
use fabius_env::Random;
use fabius_log::LogItem;
use fabius_value::{DataType, Error, Seq, SqlState, Value};
use std::path::Path;
use std::sync::Arc;

/// A program file and the calls to make.
pub struct Own {
    programs: &'static str,
    operations: &'static [Operation],
    load: Vec<Template>,
    calls: Vec<Template>,
    seed: u64,
}

/// A call with ranges in the place of some arguments.
#[derive(Clone)]
struct Template {
    procedure: &'static str,
    program: Arc<Program>,
    weight: u64,
    arguments: Vec<Slot>,
}

/// What stands for an argument.
#[derive(Clone, Debug, PartialEq)]
enum Slot {
    /// Always this.
    Fixed(Value),
    /// A whole number from the one to the other, both included.
    Range(i64, i64),
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
            let first = template.arguments.iter().position(|slot| matches!(slot, Slot::Range(..)));
            let (low, high) = match first.map(|at| &template.arguments[at]) {
                Some(Slot::Range(low, high)) => (*low, *high),
                _ => (0, 0),
            };
            for number in low..=high {
                let encoded = template.encode(&mut random, first.map(|at| (at, number)))?;
                loader.call_encoded(template.procedure, &encoded)?;
            }
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
                .replay(Seq(frame.first_seq), frame.entry_count, frame.payload)
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

impl Template {
    fn parse(description: &str, database: &Database) -> Result<Template> {
        let wrong = |why: String| {
            Error::new(SqlState::INVALID_PARAMETER, format!("{description:?} describes no call: {why}"))
                .with_hint(
                    "write procedure(1..1000, 5, 'text', null), with a weight in front if you like: 3*...",
                )
        };
        let (weight, call) = match description.split_once('*') {
            Some((weight, call)) if !weight.contains('(') => {
                let weight = weight.trim().parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
                (weight.ok_or_else(|| wrong("a weight is a whole number from 1".into()))?, call)
            }
            _ => (1, description),
        };
        let (name, rest) =
            call.trim().split_once('(').ok_or_else(|| wrong("it has no parenthesis".into()))?;
        let inside =
            rest.strip_suffix(')').ok_or_else(|| wrong("it does not end with a parenthesis".into()))?;
        let program = database.procedure(name.trim())?.program.clone();
        let parameters = &program.variables[..program.parameter_count];
        let pieces = pieces(inside);
        if pieces.len() != parameters.len() {
            return Err(wrong(format!("{} has other parameters", signature(&program))));
        }
        let mut arguments = Vec::new();
        for (piece, parameter) in pieces.into_iter().zip(parameters) {
            let Type::Scalar(scalar) = &parameter.ty else {
                return Err(wrong(format!("{} is a list, which cannot be described", parameter.name)));
            };
            let slot = Slot::parse(piece, scalar.data_type);
            arguments.push(slot.map_err(|error| wrong(format!("{}: {}", parameter.name, error.message())))?);
        }
        let template =
            Template { procedure: program.name.clone().leak(), program: program.clone(), weight, arguments };
        for end in [0, u64::MAX] {
            template.encode_with(|low, high| if end == 0 { low } else { high })?;
        }
        Ok(template)
    }

    /// The encoded arguments; one of them may be given.
    fn encode(&self, random: &mut Random, given: Option<(usize, i64)>) -> Result<Vec<u8>> {
        let mut at = 0;
        let ranges: Vec<usize> = (0..self.arguments.len())
            .filter(|slot| matches!(self.arguments[*slot], Slot::Range(..)))
            .collect();
        self.encode_with(|low, high| {
            let slot = ranges[at];
            at += 1;
            match given {
                Some((chosen, number)) if chosen == slot => number,
                _ => low.wrapping_add_unsigned(random.below(high.abs_diff(low).saturating_add(1))),
            }
        })
    }

    fn encode_with(&self, mut draw: impl FnMut(i64, i64) -> i64) -> Result<Vec<u8>> {
        let mut values = Vec::with_capacity(self.arguments.len());
        for (slot, parameter) in self.arguments.iter().zip(&self.program.variables) {
            let Type::Scalar(scalar) = &parameter.ty else { continue };
            values.push(match slot {
                Slot::Fixed(value) => value.clone(),
                Slot::Range(low, high) => Value::BigInt(draw(*low, *high)).cast(scalar.data_type)?,
            });
        }
        arguments::encode(&self.program, &values)
    }
}

impl Slot {
    fn parse(text: &str, data_type: DataType) -> Result<Slot> {
        if let Some((low, high)) = text.split_once("..")
            && let (Ok(low), Ok(high)) = (low.trim().parse::<i64>(), high.trim().parse::<i64>())
        {
            if low > high {
                return Err(Error::new(SqlState::INVALID_PARAMETER, format!("the range {text} is empty")));
            }
            return Ok(Slot::Range(low, high));
        }
        if text.eq_ignore_ascii_case("null") {
            return Ok(Slot::Fixed(Value::Null));
        }
        let inside = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        let text = inside.map_or_else(|| text.to_string(), |inside| inside.replace("''", "'"));
        Value::Text(text).cast(data_type).map(Slot::Fixed)
    }
}

/// What stands between commas outside of quotes; nothing if there is nothing.
fn pieces(text: &str) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let mut is_quoted = false;
    let is_comma = |c: char| {
        is_quoted ^= c == '\'';
        c == ',' && !is_quoted
    };
    text.split(is_comma).map(str::trim).collect()
}

fn signature(program: &Program) -> String {
    let parameters = program.variables[..program.parameter_count].iter();
    let names: Vec<&str> = parameters.map(|parameter| parameter.name.as_str()).collect();
    format!("{}({})", program.name, names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Database {
        let database = Database::in_memory(Options { workers: 0, ..Options::default() });
        database.define(include_str!("../../programs/bank.fab")).unwrap();
        database
    }

    /// Goal: descriptions become arguments of the parameters' types.
    #[test]
    fn descriptions_are_understood() {
        let database = database();
        let template = Template::parse("3*open_account(1..10, 'a, ''b''', 2.50)", &database).unwrap();
        assert_eq!((template.weight, template.procedure), (3, "open_account"));
        assert_eq!(template.arguments[0], Slot::Range(1, 10));
        assert_eq!(template.arguments[1], Slot::Fixed(Value::Text("a, 'b'".into())));
        let null = Template::parse("open_account(5, null, 1)", &database).unwrap();
        assert_eq!(null.arguments[..2], [Slot::Fixed(Value::BigInt(5)), Slot::Fixed(Value::Null)]);
    }

    /// Goal: what is wrong with a description is said.
    #[test]
    fn mistakes_are_named() {
        let database = database();
        for (description, why) in [
            ("deposit", "it has no parenthesis"),
            ("deposit(1, 2", "it does not end with a parenthesis"),
            ("deposit(1)", "deposit(id, amount) has other parameters"),
            ("deposit(9..1, 2)", "id: the range 9..1 is empty"),
            ("0*deposit(1, 2)", "a weight is a whole number from 1"),
            ("open_accounts(1)", "rows is a list"),
        ] {
            let error = Template::parse(description, &database).err().unwrap();
            assert!(error.message().contains(why), "{description}: {}", error.message());
        }
        assert!(Template::parse("withdraw(1)", &database).is_err());
        assert!(Template::parse("deposit(1, 'much')", &database).is_err());
    }
}
