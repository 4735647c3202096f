//! The papers' figures: what one is, and what making one needs.

use crate::arrivals::Offered;
use crate::chart::{self, Chart};
use crate::claim::Claim;
use crate::closed_loop::{self, Limit, Plan};
use crate::figures::{
    calvin_2, calvin_10, doppel_adapt, doppel_incr_cores, doppel_incr_share, doppel_like, doppel_phase,
    doppel_rubis, lads_8, lads_9, lads_10, lads_11, lads_12, lads_13, lads_14, lads_15, lads_17, lads_18,
    lazy_3, lazy_4, lazy_5, lazy_6, lazy_7, lazy_8, lsd_7, lsd_8,
};
use crate::interrupt::Interrupt;
use crate::loading;
use crate::machine;
use crate::measured::Measured;
use crate::open_loop::{self, Open};
use crate::settings::Settings;
use crate::sites::Sites;
use crate::table::Table;
use crate::target::{Target, TargetOptions};
use crate::workload::WorkloadKind;
use fabius::{Durability, EngineKind, Replication, Result};
use fabius_value::{Error, SqlState};
use serde_json::{Value as Json, json};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Every figure; a new one is one file and one line here.
pub const FIGURES: &[FigureKind] = &[
    lazy_3::KIND,
    lazy_4::KIND,
    lazy_5::KIND,
    lazy_6::KIND,
    lazy_7::KIND,
    lazy_8::KIND,
    lsd_7::HIGH,
    lsd_7::LOW,
    lsd_8::HOTKEY,
    lsd_8::PRIVATE,
    lsd_8::HOT,
    lads_8::KIND,
    lads_9::KIND,
    lads_10::KIND,
    lads_11::KIND,
    lads_12::KIND,
    lads_13::KIND,
    lads_14::KIND,
    lads_15::THROUGHPUT,
    lads_15::LATENCY,
    lads_17::KIND,
    lads_18::KIND,
    calvin_2::KIND,
    calvin_10::THROUGHPUT,
    calvin_10::RESTARTS,
    calvin_10::LATENCY,
    doppel_incr_cores::KIND,
    doppel_incr_share::KIND,
    doppel_adapt::KIND,
    doppel_like::KIND,
    doppel_rubis::KIND,
    doppel_phase::KIND,
];

/// A figure as `fabius bench list` shows it.
#[derive(Clone, Copy)]
pub struct FigureKind {
    /// The figure's name, by paper and number.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// Makes it.
    pub make: fn(&mut Laboratory<'_>) -> Result<Figure>,
}

impl FigureKind {
    /// The figure of a name.
    ///
    /// # Errors
    /// `22023` if there is none; the hint names those there are.
    pub fn find(id: &str) -> Result<&'static FigureKind> {
        FIGURES.iter().find(|kind| kind.id == id).ok_or_else(|| {
            let ids: Vec<&str> = FIGURES.iter().map(|kind| kind.id).collect();
            Error::new(SqlState::INVALID_PARAMETER, format!("there is no figure {id:?}"))
                .with_hint(format!("figures are {}", ids.join(", ")))
        })
    }
}

/// A figure that was made.
#[derive(Default)]
pub struct Figure {
    /// Numbers, each table under a line that says what they are.
    pub tables: Vec<(String, Table)>,
    /// Drawings.
    pub charts: Vec<Chart>,
    /// What the paper says.
    pub claims: Vec<Claim>,
    /// What differs from the paper's setting, and points that could not be run.
    pub notes: Vec<String>,
}

/// Where figures are made: threads, time, a place for databases.
pub struct Laboratory<'l> {
    /// Whether everything is to be done within a minute.
    pub is_quick: bool,
    /// Threads of every run.
    pub threads: usize,
    /// Where databases are made.
    pub parent: Option<PathBuf>,
    /// How long messages of interactive clients are held back.
    pub network_delay: Duration,
    /// Raised if the user wants to stop.
    pub interrupt: Interrupt,
    /// Told what is going on.
    pub say: &'l mut dyn FnMut(String),
    /// Takes so many bytes of memory from the system before they are needed, or as many as is prudent.
    pub reserve: &'l mut dyn FnMut(u64) -> Result<()>,
}

impl Laboratory<'_> {
    /// One thing in a hurry, another in full.
    pub fn choose<T>(&self, quick: T, full: T) -> T {
        if self.is_quick { quick } else { full }
    }

    /// Asks for memory that the system is to have made ready when a spike needs it: for figures about what an operator
    /// has prepared for. To be called before anything else.
    ///
    /// # Errors
    /// `53200` if it is not to be had; `57014` if the user wants to stop.
    pub fn reserve(&mut self, bytes: u64) -> Result<()> {
        (self.reserve)(bytes)
    }

    /// A database with the workload's rows. Figures compare engines, not disks: the log is written
    /// but not synced, as in the papers.
    ///
    /// # Errors
    /// As [`loading::load`]; `57014` if the user wants to stop.
    pub fn target(&mut self, engine: EngineKind, kind: &WorkloadKind, settings: &Settings) -> Result<Target> {
        self.target_with(engine, kind, settings, Durability::None)
    }

    /// A database with the workload's rows, and a log that may be synced.
    ///
    /// # Errors
    /// As [`Laboratory::target`].
    pub fn target_with(
        &mut self,
        engine: EngineKind,
        kind: &WorkloadKind,
        settings: &Settings,
        durability: Durability,
    ) -> Result<Target> {
        self.go_on()?;
        (self.say)(format!("{} on {engine}: loading", kind.name));
        let (parent, interrupt) = (self.parent.clone(), self.interrupt.clone());
        let options = TargetOptions { engine, durability, parent, interrupt };
        loading::load(&options, &*(kind.build)(settings), settings)
    }

    /// A database with the workload's rows on three nodes, that leads them, and the sites that they are at.
    ///
    /// # Errors
    /// As [`loading::load_replicated`]; `57014` if the user wants to stop.
    pub fn replicated(
        &mut self,
        engine: EngineKind,
        kind: &WorkloadKind,
        settings: &Settings,
        replication: Replication,
    ) -> Result<(Target, Sites)> {
        self.go_on()?;
        (self.say)(format!("{} on {engine}, three nodes: loading", kind.name));
        let (parent, interrupt) = (self.parent.clone(), self.interrupt.clone());
        let options = TargetOptions { engine, durability: Durability::Fsync, parent, interrupt };
        loading::load_replicated(&options, replication, &*(kind.build)(settings), settings)
    }

    /// Runs the workload on a target for some time.
    ///
    /// # Errors
    /// As [`closed_loop::run`]; `57014` if the user wants to stop.
    pub fn measure(
        &mut self,
        target: &Target,
        kind: &WorkloadKind,
        settings: &Settings,
        seconds: f64,
        what: &str,
    ) -> Result<Measured> {
        self.measure_on(self.threads, target, kind, settings, seconds, what)
    }

    /// Runs the workload on a target for some time, on this number of threads.
    ///
    /// # Errors
    /// As [`Laboratory::measure`].
    pub fn measure_on(
        &mut self,
        threads: usize,
        target: &Target,
        kind: &WorkloadKind,
        settings: &Settings,
        seconds: f64,
        what: &str,
    ) -> Result<Measured> {
        self.go_on()?;
        (self.say)(format!("{what} on {}", target.engine));
        let plan = Plan { threads, limit: Limit::Time(Duration::from_secs_f64(seconds)) };
        let workload = (kind.build)(settings);
        let measured = closed_loop::run(target, &*workload, settings, plan, &self.interrupt, &mut |_| {})?;
        self.go_on()?;
        Ok(measured)
    }

    /// Runs the workload on a target at a given load.
    ///
    /// # Errors
    /// As [`open_loop::run`]; `57014` if the user wants to stop.
    pub fn offer(
        &mut self,
        target: &Target,
        kind: &WorkloadKind,
        settings: &Settings,
        offered: &Offered,
        what: &str,
    ) -> Result<Open> {
        self.go_on()?;
        (self.say)(format!("{what} on {}", target.engine));
        let workload = (kind.build)(settings);
        let open = open_loop::run(target, &*workload, settings, offered, self.threads, &self.interrupt)?;
        self.go_on()?;
        Ok(open)
    }

    /// Checks a target's rows and lets go of it.
    ///
    /// # Errors
    /// `XX000` if the check fails: then the figure means nothing.
    pub fn finish(&mut self, target: Target, kind: &WorkloadKind, settings: &Settings) -> Result<()> {
        (self.say)(format!("{} on {}: checking", kind.name, target.engine));
        let verdict = (kind.build)(settings).check(&target)?;
        let engine = target.engine;
        target.database.close()?;
        verdict.map(drop).map_err(|why| {
            Error::new(SqlState(*b"XX000"), format!("{} on {engine}: the check failed", kind.name))
                .with_detail(why)
        })
    }

    /// # Errors
    /// `57014` if the user wants to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        if self.interrupt.is_raised() {
            return Err(Error::new(SqlState::CANCELED, "interrupted")
                .with_detail("a figure with points missing is not written"));
        }
        Ok(())
    }
}

/// Makes a figure; writes `ID.svg` and `ID.json` into `out` if given. Gives the text for people.
///
/// # Errors
/// What stopped a run; if `out` cannot be written.
pub fn make(kind: &FigureKind, laboratory: &mut Laboratory<'_>, out: Option<&Path>) -> Result<String> {
    let began = Instant::now();
    let mut figure = (kind.make)(laboratory)?;
    figure.notes.insert(0, format!("{} threads in all; {}", laboratory.threads, machine::summary()));
    if laboratory.is_quick {
        figure
            .notes
            .push("--quick: fewer and shorter points; run it without for numbers to quote".to_string());
    }
    let mut text = format!("{}  {}\n", kind.id, kind.title);
    for (title, table) in &figure.tables {
        text += &format!("\n{title}\n{table}");
    }
    text += "\nclaims of the paper\n";
    figure.claims.iter().for_each(|claim| text += &claim.text());
    text += "\nnotes\n";
    figure.notes.iter().for_each(|note| text += &format!("  {note}\n"));
    if let Some(out) = out {
        let svg = chart::svg(&figure.charts)?;
        write(out, &format!("{}.svg", kind.id), &svg)?;
        write(out, &format!("{}.json", kind.id), &format!("{:#}\n", json_of(kind, &figure, laboratory)))?;
        text += &format!(
            "  drawn in {}, data in {}\n",
            out.join(format!("{}.svg", kind.id)).display(),
            out.join(format!("{}.json", kind.id)).display()
        );
    }
    text += &format!("  made in {:.0} s\n", began.elapsed().as_secs_f64());
    Ok(text)
}

fn json_of(kind: &FigureKind, figure: &Figure, laboratory: &Laboratory<'_>) -> Json {
    json!({
        "id": kind.id,
        "title": kind.title,
        "quick": laboratory.is_quick,
        "threads": laboratory.threads,
        "machine": machine::summary(),
        "claims": figure.claims.iter().map(Claim::json).collect::<Vec<_>>(),
        "charts": figure.charts.iter().map(Chart::json).collect::<Vec<_>>(),
        "notes": figure.notes,
    })
}

/// Writes a file into a directory, which is made if it is not there.
///
/// # Errors
/// As the system says.
pub(crate) fn write(out: &Path, name: &str, text: &str) -> Result<()> {
    std::fs::create_dir_all(out).and_then(|()| std::fs::write(out.join(name), text)).map_err(|error| {
        Error::new(SqlState::IO_ERROR, format!("{name} cannot be written"))
            .with_detail(format!("{}: {error}", out.display()))
            .with_hint("name a directory in which this user may write with --out")
    })
}
