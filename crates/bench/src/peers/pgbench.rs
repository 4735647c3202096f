//! pgbench as the client: the same for every peer.

use super::script::{Script, Transaction};
use crate::server_process::ServerProcess;
use crate::temporary::TemporaryDirectory;
use fabius::{Error, Result, SqlState};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How clients behave.
#[derive(Clone, Debug)]
pub struct Load {
    /// Clients at a time.
    pub clients: usize,
    /// Threads of pgbench.
    pub threads: usize,
    /// Seconds of one run.
    pub seconds: u64,
    /// Rows of the large table.
    pub rows: u64,
    /// `simple`, `extended` or `prepared`.
    pub protocol: String,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Transactions that committed, per second.
    pub tps: f64,
    /// What became of each of the script's transactions.
    pub by_transaction: Vec<Outcomes>,
}

/// What became of transactions.
#[derive(Clone, Debug, Default)]
pub struct Outcomes {
    /// Transactions that failed.
    pub failures: usize,
    /// Latencies of those that committed, in microseconds, ascending.
    pub latencies_us: Vec<u64>,
}

impl Sample {
    /// What became of all transactions.
    pub fn all(&self) -> Outcomes {
        let mut all = Outcomes::default();
        for outcomes in &self.by_transaction {
            all.failures += outcomes.failures;
            all.latencies_us.extend(&outcomes.latencies_us);
        }
        all.latencies_us.sort_unstable();
        all
    }
}

impl Outcomes {
    /// The latency that this share of transactions stays below, in microseconds.
    pub fn latency_us(&self, share: f64) -> u64 {
        let last = self.latencies_us.len().saturating_sub(1);
        self.latencies_us.get((last as f64 * share).round() as usize).copied().unwrap_or(0)
    }

    /// The mean of the latencies, in microseconds.
    pub fn mean_us(&self) -> u64 {
        self.latencies_us.iter().sum::<u64>() / (self.latencies_us.len() as u64).max(1)
    }

    /// Transactions that failed, of all that were tried.
    pub fn failed_share(&self) -> f64 {
        self.failures as f64 / (self.failures + self.latencies_us.len()).max(1) as f64
    }
}

/// The programs of a PostgreSQL on this machine: the folder with `initdb`, `postgres` and `pgbench`.
pub fn find_postgres() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort();
    folders.reverse();
    let path = std::env::var_os("PATH").unwrap_or_default();
    folders.extend(std::env::split_paths(&path));
    folders
        .into_iter()
        .find(|folder| ["initdb", "postgres"].iter().all(|program| folder.join(program).exists()))
}

/// pgbench: beside PostgreSQL's other programs, or on the path.
///
/// # Errors
/// `58P01` with what to install.
pub fn find(postgres: Option<&Path>) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = postgres.map(Path::to_path_buf).into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join("pgbench")).find(|program| program.exists()).ok_or_else(|| {
        Error::new(SqlState(*b"58P01"), "pgbench, which makes the load, is not on this machine")
            .with_hint("install PostgreSQL (Debian: apt install postgresql)")
    })
}

/// What pgbench calls itself: `pgbench (PostgreSQL) 15.6`.
///
/// # Errors
/// If it cannot be run.
pub fn version(pgbench: &Path) -> Result<String> {
    let output = Command::new(pgbench).arg("--version").output().map_err(|error| failed(&error))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Makes a script's tables.
///
/// # Errors
/// What pgbench says.
pub fn set_up(pgbench: &Path, server: &ServerProcess, script: &Script, load: &Load) -> Result<()> {
    let directory = TemporaryDirectory::new(None)?;
    let file = directory.path().join("setup.sql");
    std::fs::write(&file, script.setup.replace("{rows}", &load.rows.to_string()))
        .map_err(|error| failed(&error))?;
    let mut command = to(pgbench, server);
    command.args(["-n", "-c", "1", "-t", "1", "-M", "simple", "-f"]).arg(&file);
    run(&mut command, server).map(|_| ())
}

/// Runs it for a while.
///
/// # Errors
/// What pgbench says.
pub fn measure(pgbench: &Path, server: &ServerProcess, script: &Script, load: &Load) -> Result<Sample> {
    let directory = TemporaryDirectory::new(None)?;
    let mut command = to(pgbench, server);
    command.args(["-n", "-c", &load.clients.to_string(), "-j", &load.threads.to_string()]);
    command.args(["-T", &load.seconds.to_string(), "-M", &load.protocol]);
    let transactions = (script.transactions)();
    for (at, Transaction { weight, text, .. }) in transactions.iter().enumerate() {
        let name = format!("{at}.sql");
        std::fs::write(directory.path().join(&name), text.replace("{rows}", &load.rows.to_string()))
            .map_err(|error| failed(&error))?;
        command.arg("-f").arg(format!("{name}@{weight}"));
    }
    command.arg("-l").arg("--log-prefix=transactions").current_dir(directory.path());
    let said = run(&mut command, server)?;
    let mut by_transaction = vec![Outcomes::default(); transactions.len()];
    for entry in std::fs::read_dir(directory.path()).map_err(|error| failed(&error))?.flatten() {
        if entry.file_name().to_string_lossy().starts_with("transactions") {
            let log = std::fs::read_to_string(entry.path()).map_err(|error| failed(&error))?;
            read_log(&log, &mut by_transaction);
        }
    }
    by_transaction.iter_mut().for_each(|outcomes| outcomes.latencies_us.sort_unstable());
    Ok(Sample { tps: rate(&said)?, by_transaction })
}

/// Takes in what a log of pgbench says.
fn read_log(log: &str, by_transaction: &mut [Outcomes]) {
    for line in log.lines() {
        // Client, number, microseconds (or what went wrong), which script, and when.
        let mut fields = line.split(' ').skip(2);
        let (Some(latency), Some(script)) = (fields.next(), fields.next()) else { continue };
        let Some(outcomes) = script.parse().ok().and_then(|at: usize| by_transaction.get_mut(at)) else {
            continue;
        };
        match latency.parse() {
            Ok(latency) => outcomes.latencies_us.push(latency),
            Err(_) => outcomes.failures += 1,
        }
    }
}

fn rate(said: &str) -> Result<f64> {
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "));
    line.and_then(|line| line.split(' ').next()?.parse().ok()).ok_or_else(|| {
        Error::new(SqlState::IO_ERROR, "pgbench gave no rate").with_detail(said.trim().to_string())
    })
}

fn to(pgbench: &Path, server: &ServerProcess) -> Command {
    let mut command = Command::new(pgbench);
    let port = server.port.to_string();
    command.args(["-h", "127.0.0.1", "-p", &port, "-U", &server.user, server.database()]);
    command
}

/// Lines of what pgbench complains of that are shown.
const LINES: usize = 5;

fn run(command: &mut Command, server: &ServerProcess) -> Result<String> {
    let output = command.output().map_err(|error| failed(&error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // With many clients the same thing is said many times.
    let mut lines: Vec<&str> = Vec::new();
    for line in said.lines().filter(|line| !line.trim().is_empty()) {
        if lines.len() < LINES && !lines.contains(&line) {
            lines.push(line);
        }
    }
    Err(Error::new(SqlState::IO_ERROR, format!("pgbench failed on {}", server.name))
        .with_detail(lines.join("\n")))
}

fn failed(error: &std::io::Error) -> Error {
    Error::new(SqlState::IO_ERROR, "pgbench cannot be run").with_detail(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: rates, latencies and failures are read from what pgbench prints.
    #[test]
    fn what_pgbench_prints_is_understood() {
        let said = "latency average = 1.2 ms\ntps = 2812.5 (without initial connection time)\n";
        assert_eq!(rate(said).unwrap(), 2812.5);
        assert!(rate("nothing").is_err());
        let mut read = vec![Outcomes::default(); 2];
        read_log("0 1 1500 0 17 3\n1 1 failed 0 17 4\n0 2 500 0 17 9\n1 2 70 1 17 9\n", &mut read);
        let all = Sample { by_transaction: read.clone(), ..Sample::default() }.all();
        assert_eq!((all.latency_us(0.0), all.latency_us(1.0), all.mean_us()), (70, 1500, 690));
        assert_eq!((all.failed_share(), read[0].failures, &read[1].latencies_us[..]), (0.25, 1, &[70][..]));
        assert_eq!((Outcomes::default().latency_us(0.5), Outcomes::default().mean_us()), (0, 0));
    }
}
