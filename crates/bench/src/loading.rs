//! Databases made for a workload, and loaded with the rows that it begins with.

use crate::loader::Loader;
use crate::settings::Settings;
use crate::sites::{SITES, Sites};
use crate::target::{Target, TargetOptions, database_options};
use crate::temporary::TemporaryDirectory;
use crate::workload::Workload;
use fabius::{Database, Options, Replication, Result};

/// Makes a database in a new directory and loads it.
///
/// # Errors
/// If the directory cannot be made, or a call of the loader aborts; `57014` if the user does not want it any more.
pub fn load(options: &TargetOptions, workload: &dyn Workload, settings: &Settings) -> Result<Target> {
    let directory = TemporaryDirectory::new(options.parent.as_deref())?;
    let of_database = database_options(options.engine, options.durability, settings);
    let database = Database::open(directory.path(), of_database)?;
    fill(&database, options, workload)?;
    Ok(Target::new(database, directory, options))
}

/// Makes a cluster of three nodes in this process and loads it; the target is the one that leads.
///
/// # Errors
/// As [`load`] and [`Sites::open`].
pub fn load_replicated(
    options: &TargetOptions,
    replication: Replication,
    workload: &dyn Workload,
    settings: &Settings,
) -> Result<(Target, Sites)> {
    let directory = TemporaryDirectory::new(options.parent.as_deref())?;
    let of_node = Options {
        replication,
        checkpoint_log_bytes: None,
        ..database_options(options.engine, options.durability, settings)
    };
    let (database, sites) = Sites::open(directory.path(), &[of_node; SITES])?;
    fill(&database, options, workload)?;
    Ok((Target::new(database, directory, options), sites))
}

fn fill(database: &Database, options: &TargetOptions, workload: &dyn Workload) -> Result<()> {
    database.define(workload.programs())?;
    let mut loader = Loader::new(database, &options.interrupt);
    workload.load(&mut loader)?;
    loader.finish()
}
