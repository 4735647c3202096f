//! A database server as a process of our own: started in a directory that goes with it, stopped when dropped.

use crate::temporary::TemporaryDirectory;
use fabius::{Error, Result, SqlState};
use parking_lot::Mutex;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a server may take until it takes connections.
const START: Duration = Duration::from_secs(60);

/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(1);

/// The message that asks whether a server has TLS.
const SSL_REQUEST: u32 = 80_877_103;

/// How long it may take to end when asked to.
const END: Duration = Duration::from_secs(20);

/// The file in its directory that takes what it prints.
const LOG: &str = "server.log";

/// All that run.
static RUNNING: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// What an interpreter that is this program is given first, so that it is Fabius.
static INTERPRETED: OnceLock<Vec<OsString>> = OnceLock::new();

/// Says that this program is an interpreter, which is Fabius with these arguments before all others.
pub fn is_interpreted(arguments: Vec<OsString>) {
    let _ = INTERPRETED.set(arguments);
}

/// The command that is Fabius by a program, to which its arguments are added.
pub fn command_of(program: &Path) -> Command {
    let mut command = Command::new(program);
    if ServerProcess::this_program().is_ok_and(|own| own == program) {
        command.args(INTERPRETED.get().into_iter().flatten());
    }
    command
}

/// A server that runs.
pub struct ServerProcess {
    /// What it is called in tables.
    pub name: String,
    /// The server's port on the loopback address.
    pub port: u16,
    /// The user to connect as.
    pub user: String,
    /// What it was told when it was started, and does not tell.
    pub settings: Vec<(&'static str, String)>,
    /// Other nodes of its cluster, or its standbys.
    pub others: Vec<ServerProcess>,
    command: Command,
    child: Child,
    directory: TemporaryDirectory,
}

impl ServerProcess {
    /// The program that is running, which has `serve`.
    ///
    /// # Errors
    /// If the system does not say where it is.
    pub fn this_program() -> Result<PathBuf> {
        std::env::current_exe().map_err(|error| failed("this program cannot be found", &error))
    }

    /// Starts `fabius serve` on an empty database; `arguments` are added to its own.
    ///
    /// # Errors
    /// If the program does not start, or takes no connections within a minute.
    pub fn fabius(program: &Path, parent: Option<&Path>, arguments: &[&str]) -> Result<ServerProcess> {
        let directory = TemporaryDirectory::new(parent)?;
        let port = free_port()?;
        let mut command = command_of(program);
        command.arg("serve").arg(directory.path().join("data"));
        command.args(["--listen", &format!("127.0.0.1:{port}"), "--http", "off"]).args(arguments);
        let mut server = ServerProcess::start("fabius", command, port, "fabius", directory)?;
        server.settings = arguments
            .chunks(2)
            .filter_map(|pair| match pair {
                ["--durability", value] => Some(("durability", (*value).to_string())),
                _ => None,
            })
            .collect();
        Ok(server)
    }

    /// Starts a PostgreSQL of its own on an empty database cluster, as it is configured by default, with as many
    /// connections as asked for.
    ///
    /// # Errors
    /// If it cannot be set up, or takes no connections within a minute.
    pub fn postgres(programs: &Path, parent: Option<&Path>, connections: usize) -> Result<ServerProcess> {
        let directory = postgres_directory(parent)?;
        let data = directory.path().join("data");
        let mut initdb = Command::new(programs.join("initdb"));
        initdb
            .args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "-D"])
            .arg(&data);
        finish(&mut initdb, &directory)?;
        ServerProcess::serve_postgres(programs, directory, connections)
    }

    /// Starts the PostgreSQL whose data a directory has.
    pub(crate) fn serve_postgres(
        programs: &Path,
        directory: TemporaryDirectory,
        connections: usize,
    ) -> Result<ServerProcess> {
        let port = free_port()?;
        let mut command = Command::new(programs.join("postgres"));
        command.arg("-D").arg(directory.path().join("data")).args(["-p", &port.to_string(), "-k", ""]);
        command.args(["-c", "listen_addresses=127.0.0.1", "-c", "synchronous_commit=on", "-c", "fsync=on"]);
        command.args(["-c", &format!("max_connections={}", connections + 20)]);
        run_as_postgres(&mut command, &directory);
        ServerProcess::start("postgresql", command, port, "postgres", directory)
    }

    fn start(
        name: &str,
        command: Command,
        port: u16,
        user: &str,
        directory: TemporaryDirectory,
    ) -> Result<ServerProcess> {
        let mut server = ServerProcess::spawn(name, command, port, user, directory)?;
        server.await_connections()?;
        Ok(server)
    }

    /// Starts a server that may take connections only once others are there.
    pub(crate) fn spawn(
        name: &str,
        mut command: Command,
        port: u16,
        user: &str,
        directory: TemporaryDirectory,
    ) -> Result<ServerProcess> {
        let log = directory.path().join(LOG);
        let output = std::fs::File::create(&log).map_err(|error| failed("a log cannot be made", &error))?;
        let again = output.try_clone().map_err(|error| failed("a log cannot be made", &error))?;
        command.stdin(Stdio::null()).stdout(output).stderr(again);
        let child = command.spawn().map_err(|error| failed(&format!("{name} does not start"), &error))?;
        RUNNING.lock().push(child.id());
        let (name, user, settings) = (name.to_string(), user.to_string(), Vec::new());
        Ok(ServerProcess { name, port, user, settings, others: Vec::new(), command, child, directory })
    }

    /// Returns once it takes connections.
    ///
    /// # Errors
    /// If it does not within a minute.
    pub(crate) fn await_connections(&mut self) -> Result<()> {
        let begin = Instant::now();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        loop {
            let is_there = answers(address);
            // Another's server may be the one that answers.
            let ended = self.child.try_wait().ok().flatten();
            if is_there && ended.is_none() {
                return Ok(());
            }
            if ended.is_some() || begin.elapsed() > START {
                return Err(Error::new(SqlState::IO_ERROR, format!("{} takes no connections", self.name))
                    .with_detail(self.log()));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl ServerProcess {
    /// The database to connect to.
    pub fn database(&self) -> &'static str {
        if self.name == "fabius" { "fabius" } else { "postgres" }
    }

    /// The process's number.
    pub fn process(&self) -> u32 {
        self.child.id()
    }

    /// Ends it without a word to it (`SIGKILL`).
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        RUNNING.lock().retain(|&id| id != self.child.id());
    }

    /// Starts it again as it was started, on what it has left.
    ///
    /// # Errors
    /// If the program does not start.
    pub fn start_again(&mut self) -> Result<()> {
        let again = self.command.spawn();
        self.child = again.map_err(|error| failed(&format!("{} does not start", self.name), &error))?;
        RUNNING.lock().push(self.child.id());
        Ok(())
    }

    /// What it has printed, and how it has ended if it has.
    pub fn log(&mut self) -> String {
        let said = std::fs::read_to_string(self.directory.path().join(LOG)).unwrap_or_default();
        match self.child.try_wait() {
            Ok(Some(status)) => format!("{}\n(ended: {status})", said.trim()),
            _ => said.trim().to_string(),
        }
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        // PostgreSQL ends connections at once on SIGINT; for `fabius serve` it is the same as SIGTERM.
        let asked = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        let begin = Instant::now();
        while asked.is_ok() && begin.elapsed() < END {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        // Nothing happens to one that has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
        RUNNING.lock().retain(|&id| id != self.child.id());
    }
}

/// Ends them all, for a process that ends at once.
pub fn end_all() {
    let running: Vec<String> = RUNNING.lock().drain(..).map(|id| id.to_string()).collect();
    if !running.is_empty() {
        let _ = Command::new("kill").arg("-KILL").args(running).status();
    }
}

/// Whether a server answers: whether it has TLS (PostgreSQL's protocol, 55.2.10). To connect is not enough: what
/// another thread listens on to find a port stays open in a process that is being started until that runs its own
/// program.
fn answers(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<u8> {
        let mut stream = TcpStream::connect_timeout(&address, ANSWER)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.write_all(&[8u32.to_be_bytes(), SSL_REQUEST.to_be_bytes()].concat())?;
        let mut answer = [0];
        stream.read_exact(&mut answer)?;
        Ok(answer[0])
    };
    matches!(ask(), Ok(b'S' | b'N'))
}

/// A port that nothing listens on.
pub(crate) fn free_port() -> Result<u16> {
    fabius_env::free_port().map_err(|error| failed("there is no free port", &error))
}

/// Whom to run PostgreSQL as, which refuses to run as root; `None` if we are not root.
fn unprivileged() -> Option<(u32, u32)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let accounts = std::fs::read_to_string("/etc/passwd").ok().filter(|_| is_root)?;
    let of = |name: &str| {
        let account = accounts.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = account.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    of("postgres").or_else(|| of("nobody"))
}

/// A directory for a PostgreSQL, which belongs to whom that is run as.
pub(crate) fn postgres_directory(parent: Option<&Path>) -> Result<TemporaryDirectory> {
    let directory = TemporaryDirectory::new(parent)?;
    if let Some((user, group)) = unprivileged() {
        std::os::unix::fs::chown(directory.path(), Some(user), Some(group))
            .map_err(|error| failed("the directory cannot be given to another user", &error))?;
    }
    Ok(directory)
}

/// Has a program of PostgreSQL run in its directory, as who may.
fn run_as_postgres(command: &mut Command, directory: &TemporaryDirectory) {
    command.current_dir(directory.path());
    if let Some((user, group)) = unprivileged() {
        command.uid(user).gid(group);
    }
}

/// Runs a program of PostgreSQL to its end.
pub(crate) fn finish(command: &mut Command, directory: &TemporaryDirectory) -> Result<()> {
    run_as_postgres(command, directory);
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| failed(&format!("{program} does not start"), &error))?;
    if !output.status.success() {
        return Err(Error::new(SqlState::IO_ERROR, format!("{program} failed"))
            .with_detail(String::from_utf8_lossy(&output.stderr).trim().to_string()));
    }
    Ok(())
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    Error::new(SqlState::IO_ERROR, what).with_detail(error.to_string())
}
