//! `fabius log dump | verify DIR`: what a database's log and checkpoints hold, and whether they are sound.

use crate::checkpoint::{self, Verified};
use crate::message::{out, print, tell};
use crate::number::whole;
use clap::{Args, Subcommand};
use fabius::{Error, Result, Seq, SqlState, Value, identity};
use fabius_bench::table::{Table, bytes, grouped};
use fabius_engine::Definitions;
use fabius_engine::entry::{self, Call, Entries};
use fabius_engine::foundation::log_error;
use fabius_env::RealDisk;
use fabius_log::{DatabaseId, Frame, Inspection, LogError, LogItem};
use fabius_program::arguments;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// `fabius log ...`
#[derive(Subcommand)]
pub enum Command {
    /// Print every definition and call that the log still has, in order
    Dump(Dump),
    /// Read the whole log and all checkpoints, and report segments, torn tail and damage; exit code 1 if
    /// anything is damaged
    Verify(Verify),
}

/// `fabius log dump ...`
#[derive(Args)]
pub struct Dump {
    /// The database's directory
    dir: PathBuf,
    /// Begin with this sequence number [default: the first that the log has]
    #[arg(long, value_name = "SEQ", value_parser = whole::<u64>(1, u64::MAX), allow_negative_numbers = true)]
    from: Option<u64>,
    /// Print at most this many entries
    #[arg(long, value_name = "N", value_parser = whole::<u64>(1, u64::MAX), allow_negative_numbers = true)]
    limit: Option<u64>,
}

/// `fabius log verify ...`
#[derive(Args)]
pub struct Verify {
    /// The database's directory
    dir: PathBuf,
}

/// Runs a log command. Nothing is changed or locked.
///
/// # Errors
/// If the log cannot be read at all.
pub fn run(command: &Command) -> Result<ExitCode> {
    match command {
        Command::Dump(arguments) => {
            let mut dumper = Dumper {
                definitions: Definitions::default(),
                earlier: checkpoint::definitions(&arguments.dir)?,
                from: arguments.from.unwrap_or_default(),
                rest: arguments.limit.unwrap_or(u64::MAX),
            };
            let inspection = fabius_log::dump(&disk(&arguments.dir)?, |item| dumper.show(item));
            match inspection {
                Ok(inspection) => {
                    check_is_log(&inspection, &arguments.dir)?;
                    let code = report_damage(&inspection);
                    if inspection.is_sound() {
                        check_reach(&inspection, arguments.from)?;
                    }
                    Ok(code)
                }
                Err(Ended::Enough) => Ok(ExitCode::SUCCESS),
                Err(Ended::Error(error)) => Err(error),
            }
        }
        Command::Verify(arguments) => {
            // Before the log: whoever writes the database meanwhile may take another that is behind what was read.
            let id = if is_database(&arguments.dir) { identity(&arguments.dir) } else { Ok(None) };
            let known = id.as_ref().ok().copied().flatten();
            let checkpoints = checkpoint::verify(&arguments.dir, known)?;
            let inspection = fabius_log::verify(&disk(&arguments.dir)?).map_err(|error| log_error(&error))?;
            check_is_log(&inspection, &arguments.dir)?;
            out(&summary(&inspection));
            report_damage(&inspection);
            out(&checkpoints.table);
            checkpoints.faults.iter().for_each(print);
            if inspection.is_sound() {
                check_identity(&inspection, id?)?;
            }
            if !inspection.is_sound() || !checkpoints.faults.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
            if is_database(&arguments.dir) {
                check_end(&inspection, &checkpoints)?;
                // Two more checkpoints may have come meanwhile, and taken the beginning of the log with them.
                check_beginning(&inspection, &checkpoints)
                    .or_else(|_| check_beginning(&inspection, &checkpoint::verify(&arguments.dir, known)?))?;
            }
            out("sound\n");
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Whether this is a database's directory, and not only that of its log.
fn is_database(dir: &Path) -> bool {
    dir.join("log").is_dir()
}

fn disk(dir: &Path) -> Result<RealDisk> {
    let path = if is_database(dir) { dir.join("log") } else { dir.to_path_buf() };
    let disk = RealDisk::open(&path).map_err(|error| {
        Error::new(SqlState::IO_ERROR, "the log cannot be read")
            .with_detail(format!("{}: {error}", path.display()))
            .with_hint("name the directory of a database")
    })?;
    Ok(disk)
}

/// Which database the directory is of; `None` if there is nothing of one.
fn identity(dir: &Path) -> Result<Option<DatabaseId>> {
    let open = |path: &Path| {
        RealDisk::open(path).map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the database cannot be read")
                .with_detail(format!("{}: {error}", path.display()))
        })
    };
    let (database, log) = (open(dir)?, open(&dir.join("log"))?);
    identity::read(&database, &[&log])
}

/// The log is that of the database.
fn check_identity(inspection: &Inspection, id: Option<DatabaseId>) -> Result<()> {
    match inspection.segments.first() {
        Some(segment) if id.is_some_and(|id| id != segment.header.database_id) => {
            Err(Error::new(SqlState::NOT_IN_STATE, "the log is that of another database")
                .with_detail(format!("{} says {}", segment.name, segment.header.database_id))
                .with_hint("bring the log or the file IDENTITY back from a copy of the same database"))
        }
        _ => Ok(()),
    }
}

/// A checkpoint is taken when the log up to it is durable.
fn check_end(inspection: &Inspection, checkpoints: &Verified) -> Result<()> {
    let last = inspection.next_seq.map_or(0, |next| next - 1);
    let newest = checkpoints.newest.unwrap_or_default().0;
    if newest <= last {
        return Ok(());
    }
    Err(unopenable(format!("the log ends at {last}, before the checkpoint at {newest}"))
        .with_hint("bring the end of the log back from a copy: it was durable when the checkpoint was taken"))
}

/// Opening begins with the newest checkpoint, and needs what comes behind it.
fn check_beginning(inspection: &Inspection, checkpoints: &Verified) -> Result<()> {
    let first = inspection.first_seq.unwrap_or(1);
    if first <= checkpoints.newest.unwrap_or_default().0 + 1 {
        return Ok(());
    }
    Err(unopenable(format!("the log begins at {first}, and no whole checkpoint reaches up to it"))
        .with_hint("bring the checkpoint, or the segments before, back from a copy"))
}

fn unopenable(fact: String) -> Error {
    Error::new(SqlState::DATA_CORRUPTED, fact).with_detail("the database cannot be opened")
}

/// A directory without a single segment, whole or not, is not that of a log.
fn check_is_log(inspection: &Inspection, dir: &Path) -> Result<()> {
    let has_segments = !inspection.segments.is_empty() || inspection.torn_tail.is_some();
    if has_segments || !inspection.is_sound() {
        return Ok(());
    }
    Err(Error::new(SqlState::IO_ERROR, "there is no log here")
        .with_detail(dir.display().to_string())
        .with_hint("name the directory of a database"))
}

/// Says why nothing was printed, if the log has nothing where it was to begin.
fn check_reach(inspection: &Inspection, from: Option<u64>) -> Result<()> {
    let entries: u64 = inspection.segments.iter().map(|segment| segment.entries).sum();
    let next = inspection.next_seq.unwrap_or_default();
    match from {
        None if entries == 0 => tell("the log has no entries\n"),
        Some(from) if from >= next => {
            let what = match entries {
                0 => "it has no entries".to_string(),
                _ => format!("its last entry is {}", next.saturating_sub(1)),
            };
            return Err(Error::new(SqlState::OUT_OF_RANGE, format!("the log ends before {from}"))
                .with_detail(what)
                .with_hint("give --from a sequence number that the log has; fabius log verify shows which"));
        }
        _ => {}
    }
    Ok(())
}

fn summary(inspection: &Inspection) -> String {
    let mut text = segments(inspection).unwrap_or_default();
    if let Some(torn) = &inspection.torn_tail {
        text += &format!(
            "torn tail in {} at offset {}: {}; {} never acknowledged as synced, cut when the database is opened; \
             good up to {}\n",
            torn.segment,
            torn.offset,
            torn.why,
            bytes(torn.bytes_cut),
            torn.last_good_seq
        );
    }
    if inspection.is_sound() {
        text += "every checksum is right\n";
    }
    text
}

/// The segments and what they hold; nothing if not one is whole.
fn segments(inspection: &Inspection) -> Option<String> {
    let (first, next) = inspection.first_seq.zip(inspection.next_seq)?;
    let mut table = Table::new(["segment", "first seq", "batches", "entries", "size"]);
    for segment in &inspection.segments {
        table.row([
            segment.name.clone(),
            segment.header.first_seq.to_string(),
            grouped(segment.batches as f64),
            grouped(segment.entries as f64),
            bytes(segment.bytes),
        ]);
    }
    let entries = match next.saturating_sub(1) {
        last if last < first => "no entries".to_string(),
        last => format!("entries {first} to {last}"),
    };
    let end = match (inspection.is_sound(), inspection.closed_cleanly) {
        (false, _) => "damaged behind them",
        (true, true) => "closed cleanly",
        (true, false) => "not closed, or still being written",
    };
    Some(format!("{table}\n{entries}; {end}\n"))
}

fn report_damage(inspection: &Inspection) -> ExitCode {
    match &inspection.damage {
        None => ExitCode::SUCCESS,
        Some(damage) => {
            crate::message::print(&log_error(damage));
            ExitCode::FAILURE
        }
    }
}

/// A value in one line, texts in quotes.
fn literal(value: &Value) -> String {
    match value {
        Value::Text(text) => {
            let one = |character: char| match character {
                '\'' => "''".to_string(),
                '\\' => r"\\".to_string(),
                _ if character.is_control() => character.escape_default().to_string(),
                _ => character.to_string(),
            };
            format!("'{}'", text.chars().map(one).collect::<String>())
        }
        Value::List(rows) => {
            let row =
                |row: &Vec<Value>| format!("({})", row.iter().map(literal).collect::<Vec<_>>().join(", "));
            format!("[{}]", rows.iter().map(row).collect::<Vec<_>>().join(", "))
        }
        _ => value.to_string(),
    }
}

enum Ended {
    Enough,
    Error(Error),
}

impl From<LogError> for Ended {
    fn from(error: LogError) -> Ended {
        Ended::Error(log_error(&error))
    }
}

struct Dumper {
    definitions: Definitions,
    /// What a checkpoint has of definitions that the log may have no longer.
    earlier: Vec<(Seq, Arc<[u8]>)>,
    from: u64,
    rest: u64,
}

impl Dumper {
    fn show(&mut self, item: LogItem<'_>) -> std::result::Result<(), Ended> {
        let LogItem::Frame(frame) = item else { return Ok(()) };
        let seq = Seq(frame.first_seq);
        for (at, entry) in std::mem::take(&mut self.earlier).iter().filter(|(at, _)| *at < seq) {
            self.definitions = self.definitions.with(*at, entry).map_err(Ended::Error)?;
        }
        match entry::decode(frame.payload).map_err(Ended::Error)? {
            Entries::Definition(text) => {
                // Also before `from`: later calls are printed by what it says.
                self.definitions = self.definitions.with(seq, frame.payload).map_err(Ended::Error)?;
                self.line(frame.first_seq, text)
            }
            Entries::KeyWindow(calls) => {
                self.line(frame.first_seq, &format!("idempotency keys are remembered {calls} calls back"))
            }
            Entries::Nothing => self.line(frame.first_seq, "nothing"),
            Entries::Checkpoint => self.line(frame.first_seq, "every node takes a checkpoint"),
            Entries::Calls { time_us, bytes } => self.calls(&frame, time_us, bytes),
        }
    }

    fn calls(&mut self, frame: &Frame<'_>, time_us: i64, bytes: &[u8]) -> std::result::Result<(), Ended> {
        if frame.last_seq() < self.from {
            return Ok(());
        }
        let time = fabius_value::moment_text::timestamp_text(time_us);
        for (seq, call) in (frame.first_seq..).zip(entry::calls(bytes)) {
            let text = self.describe(&call.map_err(Ended::Error)?);
            self.line(seq, &format!("{time}  {text}"))?;
        }
        Ok(())
    }

    fn describe(&self, call: &Call<'_>) -> String {
        let key = call.key.map_or(String::new(), |key| format!("  key {:?}", String::from_utf8_lossy(key)));
        let Ok(procedure) = self.definitions.procedure(call.procedure) else {
            return format!("procedure {} that is not defined{key}", call.procedure.0);
        };
        let name = &procedure.program.name;
        match arguments::to_values(&procedure.program, call.arguments) {
            Ok(values) => {
                let values: Vec<String> = values.iter().map(literal).collect();
                format!("{name}({}){key}", values.join(", "))
            }
            Err(error) => {
                format!("{name}({} bytes that are no arguments of it: {error}){key}", call.arguments.len())
            }
        }
    }

    fn line(&mut self, seq: u64, text: &str) -> std::result::Result<(), Ended> {
        if seq < self.from {
            return Ok(());
        }
        if self.rest == 0 {
            return Err(Ended::Enough);
        }
        self.rest -= 1;
        out(&format!("{seq}  {text}\n"));
        Ok(())
    }
}
