//! `fabius checkpoint DIR`: takes a checkpoint; and what `fabius log` tells of those that are there.

use crate::message::{out, tell};
use crate::progress::Line;
use clap::Args;
use fabius::{Database, EngineKind, Error, Options, Result, Seq, SqlState};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::machine;
use fabius_bench::table::{Table, bytes, grouped};
use fabius_env::RealDisk;
use fabius_log::DatabaseId;
use fabius_storage::checkpoint::{self, Found};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

/// `fabius checkpoint ...`
#[derive(Args)]
#[command(
    after_help = "Opens the database, as a program that embeds it does, so nobody else may have it open; a program that
has it open takes checkpoints by itself as the log grows, or when it calls Database::checkpoint. The two
newest checkpoints are kept, and the log from the older one on; what is before that is deleted.

Examples:
  fabius checkpoint bank
  fabius log verify bank        are log and checkpoints sound?
"
)]
pub struct Checkpoint {
    /// The database's directory
    dir: PathBuf,
    /// The engine that replays the log behind the newest checkpoint; see docs/engines.md
    #[arg(long, default_value = "lazy")]
    engine: String,
}

/// What is said to the first signal.
pub const INTERRUPTED: &str = "giving the checkpoint up; again to stop at once\n";

/// Takes a checkpoint.
///
/// # Errors
/// A directory that is no database, is in use or is damaged; or as the disk fails.
pub fn run(arguments: &Checkpoint, interrupt: &Interrupt) -> Result<ExitCode> {
    let engine: EngineKind = arguments.engine.parse()?;
    if !arguments.dir.join("log").is_dir() {
        return Err(Error::new(SqlState::IO_ERROR, "there is no database here")
            .with_detail(arguments.dir.display().to_string())
            .with_hint("name the directory of a database"));
    }
    let line = Line::new();
    line.say("opening");
    let began = Instant::now();
    let options = Options {
        engine,
        checkpoint_log_bytes: None,
        checkpoint_threads: Some(machine::cores()),
        ..Options::default()
    };
    let database = Database::open(&arguments.dir, options)?;
    let opened = began.elapsed();
    line.clear();
    database.warnings().iter().for_each(|warning| tell(&format!("warning: {warning}\n")));
    let heed = || match interrupt.is_raised() {
        true => Err(Error::new(SqlState::CANCELED, "given up; the database is as it was")),
        false => Ok(()),
    };
    heed()?;
    let line = Line::new();
    let began = Instant::now();
    let taken = database.checkpoint_watched(&mut |progress| {
        line.say(format!(
            "{}: {}, {} written",
            progress.part,
            grouped(progress.items as f64),
            bytes(progress.bytes)
        ));
        heed()
    });
    line.clear();
    let taken = taken?;
    let name = &taken.name;
    out(&if taken.is_new {
        format!(
            "checkpoint at {} in {:.1} s (opened in {:.1} s): {} rows, {} keys, {} in checkpoints/{name}; \
             {} segments of the log deleted\n",
            taken.seq,
            began.elapsed().as_secs_f64(),
            opened.as_secs_f64(),
            grouped(taken.counts.rows as f64),
            grouped(taken.counts.keys as f64),
            bytes(taken.bytes),
            taken.segments_deleted
        )
    } else {
        format!("nothing has happened since the checkpoint at {}: checkpoints/{name}\n", taken.seq)
    });
    database.close()?;
    Ok(ExitCode::SUCCESS)
}

/// What there is of checkpoints.
#[derive(Default)]
pub struct Verified {
    /// The newest that is whole.
    pub newest: Option<Seq>,
    /// A line for each, if there is any.
    pub table: String,
    /// Why some are not whole.
    pub faults: Vec<Error>,
}

/// Reads all checkpoints of a database; with its `id`, those of another are none of its.
///
/// # Errors
/// If they cannot be listed.
pub fn verify(dir: &Path, id: Option<DatabaseId>) -> Result<Verified> {
    let Some((disk, found)) = list(dir)? else { return Ok(Verified::default()) };
    let mut verified = Verified::default();
    let mut table = Table::new(["checkpoint", "seq", "rows", "keys", "size", ""]);
    for found in &found {
        let seq = found.seq.to_string();
        match checkpoint::inspect(&disk, found, id.map(|id| id.0)) {
            Ok(inspection) => {
                verified.newest = verified.newest.max(Some(found.seq));
                table.row([
                    found.name.clone(),
                    seq,
                    grouped(inspection.counts.rows as f64),
                    grouped(inspection.counts.keys as f64),
                    bytes(inspection.bytes),
                    "whole".to_string(),
                ]);
            }
            Err(error) => {
                let what = match error.state() {
                    SqlState::DATA_CORRUPTED => "damaged",
                    SqlState::NOT_IN_STATE => "of another database",
                    _ => "not readable",
                };
                table.row([&found.name, &seq, "", "", "", what]);
                verified.faults.push(error);
            }
        }
    }
    if !found.is_empty() {
        verified.table = format!("\n{table}");
    }
    Ok(verified)
}

/// The entries behind the definitions of the oldest checkpoint that can be read: the log begins there, or
/// before.
///
/// # Errors
/// If checkpoints cannot be listed.
pub fn definitions(dir: &Path) -> Result<Vec<(Seq, Arc<[u8]>)>> {
    let Some((disk, found)) = list(dir)? else { return Ok(Vec::new()) };
    let read = |found: &Found| fabius_engine::checkpoint::read_definitions(&disk, found).ok();
    Ok(found
        .iter()
        .rev()
        .find_map(read)
        .map_or_else(Vec::new, |definitions| definitions.entries.iter().cloned().collect()))
}

/// The checkpoints of a database, newest first; `None` if it has no place for them.
fn list(dir: &Path) -> Result<Option<(RealDisk, Vec<Found>)>> {
    let path = dir.join("checkpoints");
    if !path.is_dir() {
        return Ok(None);
    }
    let disk = RealDisk::open(&path).map_err(|error| {
        Error::new(SqlState::IO_ERROR, "the checkpoints cannot be read")
            .with_detail(format!("{}: {error}", path.display()))
    })?;
    let found = checkpoint::list(&disk)?;
    Ok(Some((disk, found)))
}
