//! `fabius serve`: a database that PostgreSQL clients connect to.

use crate::allocator;
use crate::message::{out, print};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use fabius::{
    Certificates, Database, Durability, Error, NodeId, Options, Repair, Replication, Result, SqlState,
    has_run_ahead, is_damaged_member, is_member, must_be_filled, repair_member,
};
use fabius_env::memory::{available_bytes, reserved_bytes};
use fabius_server::configuration::{Configuration, Effective, Given, SETTINGS, effective};
use fabius_server::{HURRIED_END, Haste, Prepared, Server, logging};
use fabius_sql::connection::{MemoryBounds, SqlDatabase};
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};

const CONFIG: &str = "config";
const PRINT_CONFIG: &str = "print-config";

/// `fabius serve ...`: one flag for each of the server's settings.
pub struct Serve {
    given: Given,
    print_config: bool,
}

impl Args for Serve {
    fn augment_args(command: Command) -> Command {
        let command = SETTINGS.iter().fold(command, |command, setting| {
            let variable = format!(" [{}]", setting.variable());
            let arg = Arg::new(setting.name)
                .value_name(setting.value_name)
                .help(setting.help.to_string() + &variable);
            // A value that begins with a hyphen is a wrong value there, and no flag: that is what is said of it.
            let arg =
                arg.allow_hyphen_values(matches!(setting.value_name, "N" | "TIME" | "SIZE" | "ADDRESS"));
            command.arg(match setting.name {
                // What most people give has no flag before it.
                "directory" => arg.help(format!("{} [default: fabius-data]{variable}", setting.help)),
                // The help lives as long as the program.
                _ => arg.long(&*setting.flag().leak()),
            })
        });
        command
            .about("Serve a database to PostgreSQL clients")
            .arg(
                Arg::new(CONFIG).long(CONFIG).value_name("FILE").help(
                    "A file with settings, NAME = VALUE in TOML [default: fabius.toml in DIRECTORY] [FABIUS_CONFIG]",
                ),
            )
            .arg(
                Arg::new(PRINT_CONFIG)
                    .long(PRINT_CONFIG)
                    .action(ArgAction::SetTrue)
                    .help("Print the settings in force and where each comes from, and do nothing else"),
            )
            .after_help(
                "Settings come from the file, the environment and flags; later ones win.

Examples:
  fabius serve                                     begin, or go on with, a database in ./fabius-data
  psql \"host=127.0.0.1 port=5433 dbname=fabius\"    connect to it: any user name, no password
  fabius serve data --listen 5440 --http off       another directory and port, no metrics
  fabius serve data --listen 0.0.0.0:5433 --users users.txt --tls-certificate c.pem --tls-key k.pem
  fabius serve data --print-config > data/fabius.toml
",
            )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Serve::augment_args(command)
    }
}

impl FromArgMatches for Serve {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Serve, clap::Error> {
        let flags = SETTINGS.iter().filter_map(|setting| {
            let value = matches.get_one::<String>(setting.name)?;
            Some((setting.name.to_string(), value.clone()))
        });
        let file = matches.get_one::<String>(CONFIG).map(PathBuf::from);
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        Ok(Serve {
            given: Given { file, variables: variables.collect(), flags: flags.collect() },
            print_config: matches.get_flag(PRINT_CONFIG),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Serve::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Stack of each of the server's threads: statements are trees, and are gone through, copied and given up by recursion.
/// What is not used takes no memory.
const STACK_BYTES: usize = 64 << 20;

/// How often a thread of the server is woken if it sleeps, so that one looks at sockets while others compute.
const BEAT: Duration = Duration::from_millis(20);

/// How long threads have to be done with what they compute once nobody waits for it.
const THREADS_END: Duration = Duration::from_secs(1);

/// Serves until a signal ends it.
///
/// # Errors
/// Settings that do not hold together, a database that cannot be opened, addresses that are taken.
pub fn run(arguments: &Serve) -> Result<ExitCode> {
    let effective = effective(&arguments.given)?;
    if arguments.print_config {
        out(&effective.print());
        return Ok(ExitCode::SUCCESS);
    }
    logging::begin(&effective.configuration)?;
    if effective.configuration.reserved_memory > 0 {
        allocator::reserve(effective.configuration.reserved_memory, &mut |_| true)?;
        tracing::info!(bytes = reserved_bytes(), "memory is reserved");
    }
    let rows_memory = rows_memory(&effective.configuration);
    // Signals and the time to end are seen to by this thread, which never computes, whatever the others do.
    let overseer =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(without_threads)?;
    let mut signals = overseer.block_on(async { Signals::new() })?;
    while run_once(&effective, rows_memory, &overseer, &mut signals)? == Ended::OpensAgain {
        tracing::info!("this node is opened again");
    }
    overseer.shutdown_background();
    out("fabius has ended\n");
    Ok(ExitCode::SUCCESS)
}

/// Why it serves no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    /// It was told to end.
    Told,
    /// It is a node of a cluster that has to be filled from another one's checkpoint, or repaired, which opening it
    /// does.
    OpensAgain,
}

/// Opens the database, and serves until it ends.
fn run_once(
    effective: &Effective,
    rows_memory: Option<u64>,
    overseer: &Runtime,
    signals: &mut Signals,
) -> Result<Ended> {
    let configuration = &effective.configuration;
    let prepared = prepare(effective)?;
    if must_be_filled(&configuration.directory) {
        tracing::info!("this node is filled from another node's checkpoint");
    }
    let opening = {
        let configuration = configuration.clone();
        overseer.spawn_blocking(move || open(&configuration))
    };
    // A node may be filled for long.
    let opened = overseer.block_on(async {
        tokio::select! {
            opened = opening => Some(opened.unwrap_or_else(|failed| resume_unwind(failed.into_panic()))),
            () = signals.next() => None,
        }
    });
    let Some(database) = opened.transpose()?.map(Arc::new) else { return Ok(Ended::Told) };
    database.warnings().iter().for_each(|warning| tracing::warn!("{warning}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .thread_name("fabius-server")
        .thread_stack_size(STACK_BYTES)
        .build()
        .map_err(without_threads)?;
    let shared = (database.clone(), rows_memory);
    let served = overseer.block_on(serve(&runtime, configuration, prepared, shared, signals));
    // Everyone who holds the database is gone with the runtime's tasks, but for those whose threads still compute.
    runtime.shutdown_timeout(THREADS_END);
    let haste = served.as_ref().copied().unwrap_or(Haste::No);
    if configuration.durability == Durability::None {
        // What was acknowledged may be on its way to the log's files, and closing may be cut short.
        database.flush()?;
    }
    let opens_again = why_it_opens_again(&database, configuration);
    let closed = close(overseer, database, haste, signals);
    if let Some(reason) = opens_again.filter(|_| !signals.have_come) {
        tracing::warn!(%reason, "this node has stopped");
        return Ok(Ended::OpensAgain);
    }
    closed?;
    served.map(|_| Ended::Told)
}

/// Why a node of a cluster has stopped, if opening it again helps: others do not have any more what it needs next,
/// its disk is damaged, or it has run what was not agreed on.
fn why_it_opens_again(database: &Database, configuration: &Configuration) -> Option<Error> {
    let directory = &configuration.directory;
    database.failure().filter(|failure| {
        must_be_filled(directory) || is_damaged_member(directory, failure) || has_run_ahead(failure)
    })
}

fn without_threads(error: std::io::Error) -> Error {
    Error::new(SqlState::IO_ERROR, "threads cannot be started").with_detail(error.to_string())
}

/// Closes the database, unless somebody holds it or has no time for that: what was acknowledged is in the log either
/// way.
///
/// # Errors
/// What ended the log, or stopped the database.
fn close(overseer: &Runtime, database: Arc<Database>, haste: Haste, signals: &mut Signals) -> Result<()> {
    let Ok(database) = Arc::try_unwrap(database) else {
        tracing::warn!("the database is still in use; what was acknowledged is in its log");
        return Ok(());
    };
    let closing = overseer.spawn_blocking(move || database.close());
    overseer.block_on(async {
        tokio::select! {
            closed = closing => closed.unwrap_or_else(|failed| resume_unwind(failed.into_panic())),
            () = signals.next() => {
                tracing::warn!("told to hurry: the database is not closed; what was acknowledged is in its log");
                Ok(())
            }
            () = tokio::time::sleep(HURRIED_END), if haste == Haste::Hurried => {
                tracing::warn!("the database was not closed in time; what was acknowledged is in its log");
                Ok(())
            }
        }
    })
}

/// What rows may take, if they are bounded. Asked before there are any.
fn rows_memory(configuration: &Configuration) -> Option<u64> {
    match configuration.rows_memory {
        Some(0) => None,
        Some(bytes) => Some(bytes),
        None => available_bytes().map(|available| available / 2),
    }
}

fn open(configuration: &Configuration) -> Result<Database> {
    let usual = Options::default();
    let options = Options {
        engine: configuration.engine,
        durability: configuration.durability,
        workers: configuration.workers.unwrap_or(usual.workers),
        recovery_threads: configuration.recovery_threads,
        checkpoint_threads: configuration.checkpoint_threads,
        checkpoint_log_bytes: Some(configuration.checkpoint_log_bytes),
        replication: configuration.replication,
        history: Some(configuration.history).filter(|history| !history.is_zero()),
        ..usual
    };
    let directory = &configuration.directory;
    if !is_member(directory) {
        return Database::open(directory, options);
    }
    match Database::open_member(directory, options, certificates(configuration)) {
        Err(damage) if is_damaged_member(directory, &damage) => {
            tracing::error!(%damage, "this node is damaged");
            let Repair { node, aside } = repair_member(directory)?;
            let aside = aside.display();
            tracing::warn!(%aside, "what it had is set aside; it asks the others to let it in as {node}, and to fill it");
            Database::open_member(directory, options, certificates(configuration))
        }
        opened => opened,
    }
}

/// By what a node and the others of its cluster know each other.
fn certificates(configuration: &Configuration) -> Option<Certificates> {
    Some(Certificates {
        authority: configuration.peer_authority.clone()?,
        certificate: configuration.peer_certificate.clone()?,
        key: configuration.peer_key.clone()?,
    })
}

/// Serves until a signal, on the threads of a runtime; those who are told so end on the caller's thread.
async fn serve(
    runtime: &Runtime,
    settings: &Configuration,
    prepared: Prepared,
    (database, rows_memory): (Arc<Database>, Option<u64>),
    signals: &mut Signals,
) -> Result<Haste> {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let rows = rows_memory.map_or(usize::MAX, bytes);
    let memory = MemoryBounds {
        session: bytes(settings.session_memory),
        sessions: bytes(settings.sessions_memory),
        rows,
    };
    let name = settings.database.clone();
    if let Some(status) = database.member_status() {
        let others = status.members.len() - 1;
        tracing::info!(others, "waiting for a majority of the cluster, as {}", NodeId(status.node));
        if settings.replication == Replication::Asynchronous {
            tracing::warn!(
                "replication is async: what this node has answered while it led may be lost with it"
            );
        }
    }
    let starting = runtime.spawn(async move {
        let sql = SqlDatabase::open_within(database, memory).await?;
        sql.call_it(&name);
        Server::start(prepared, sql)
    });
    // A node of a cluster may wait for the others for long.
    let server = tokio::select! {
        started = starting => started.unwrap_or_else(|failed| resume_unwind(failed.into_panic()))?,
        () = signals.next() => return Ok(Haste::No),
    };
    let configuration = &server.shared().configuration;
    let address = server.address();
    let mut text = format!(
        "fabius serves {} on {address}; connect with\n  psql \"host={} port={} dbname={}\"\n",
        configuration.directory.display(),
        address.ip(),
        address.port(),
        configuration.database
    );
    if let Some(status) = server.shared().sql.database().member_status() {
        text += &format!("it is {} of a cluster of {}\n", NodeId(status.node), status.members.len());
    }
    if let Some(http) = server.http_address() {
        text += &format!("metrics and health are on http://{http}/metrics and http://{http}/health\n");
    }
    out(&text);
    // A thread that has taken a statement in and computes does not look at sockets any more, and one that sleeps does
    // not begin to unless it is woken.
    let mut beat = tokio::time::interval(BEAT);
    let mut has_told = false;
    loop {
        tokio::select! {
            () = signals.next() => break,
            _ = beat.tick() => drop(runtime.spawn(async {})),
        }
        let database = server.shared().sql.database();
        if why_it_opens_again(database, configuration).is_some() {
            break;
        }
        if let Some(failure) = database.failure().filter(|_| !has_told) {
            tracing::error!(%failure, "the database has stopped; it answers nothing any more");
            has_told = true;
        }
    }
    Ok(server.shut_down(async || signals.next().await).await)
}

/// What comes before the database. A port for metrics that nobody asked for may be taken.
fn prepare(effective: &Effective) -> Result<Prepared> {
    let configuration = effective.configuration.clone();
    match Prepared::of(configuration.clone()) {
        Err(error) if effective.is_default("http") => {
            let prepared = Prepared::of(Configuration { http: None, ..configuration })?;
            print(&error);
            tracing::warn!("there are no metrics");
            Ok(prepared)
        }
        other => other,
    }
}

/// The signals that end the server.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Whether there was one.
    have_come: bool,
}

impl Signals {
    fn new() -> Result<Signals> {
        let of = |kind| {
            signal(kind).map_err(|error| {
                Error::new(SqlState::IO_ERROR, "signals cannot be received").with_detail(error.to_string())
            })
        };
        Ok(Signals {
            interrupt: of(SignalKind::interrupt())?,
            terminate: of(SignalKind::terminate())?,
            have_come: false,
        })
    }

    /// The next of them.
    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        self.have_come = true;
    }
}
