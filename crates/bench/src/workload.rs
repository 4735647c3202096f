//! What a workload is: programs, rows to begin with, clients that make calls, and a check.

use crate::arrivals::Arrivals;
use crate::loader::Loader;
use crate::operation::Operation;
use crate::settings::{Setting, Settings};
use crate::target::Target;
use fabius_value::Result;

/// A workload as `fabius bench list` shows it.
#[derive(Clone, Copy)]
pub struct WorkloadKind {
    /// The workload's name.
    pub name: &'static str,
    /// One line.
    pub summary: &'static str,
    /// Settings of its own, besides [`crate::settings::COMMON`].
    pub settings: &'static [Setting],
    /// Makes it from its settings.
    pub build: fn(&Settings) -> Box<dyn Workload>,
}

impl WorkloadKind {
    /// The workload's settings with their defaults.
    pub fn defaults(&self) -> Settings {
        Settings::new(self.name, self.settings)
    }
}

/// Which client of which run is made; every random choice of a client follows from it and the seed.
#[derive(Clone, Copy, Debug)]
pub struct ClientPlace {
    /// From 0.
    pub number: usize,
    /// Clients in all.
    pub count: usize,
    /// How many runs there were on this database before.
    pub run: u64,
}

/// Calls to make.
pub trait Client: Send {
    /// The next one: appends its encoded arguments and gives the place of its operation in
    /// [`Workload::operations`].
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize;
}

/// Work for an engine.
pub trait Workload: Send + Sync {
    /// Tables and procedures in the text form.
    fn programs(&self) -> &'static str;

    /// What its clients do.
    fn operations(&self) -> &'static [Operation];

    /// Fills an empty database.
    ///
    /// # Errors
    /// Any call that aborts.
    fn load(&self, loader: &mut Loader<'_>) -> Result<()>;

    /// A client.
    fn client(&self, place: ClientPlace) -> Box<dyn Client>;

    /// Compares the rows with what the calls so far must have made of them. `Ok(Err(why))` if they
    /// differ.
    ///
    /// # Errors
    /// If the rows cannot be read.
    fn check(&self, target: &Target) -> Result<Verdict>;

    /// The most calls that a client may have in flight: more, and calls that follow each other could
    /// be ordered otherwise.
    fn in_flight_max(&self, _clients: usize) -> usize {
        usize::MAX
    }

    /// When calls arrive, if not as fast as they are answered.
    fn arrivals(&self) -> Option<Arrivals> {
        None
    }
}

/// Whether a check holds: what was found, or what is wrong.
pub type Verdict = std::result::Result<String, String>;
