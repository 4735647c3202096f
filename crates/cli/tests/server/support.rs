//! A server of a test's own, and what speaks to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// How long a server may take to begin, and a client to answer.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A `fabius serve` process; killed when dropped.
pub struct Server {
    pub process: Child,
    pub address: SocketAddr,
    pub http: Option<SocketAddr>,
    directory: TempDir,
}

impl Server {
    /// A server with a new database and these flags.
    pub fn start(flags: &[&str]) -> Server {
        Server::start_in(tempfile::tempdir().expect("a directory"), flags)
    }

    /// A server with the database of a directory.
    pub fn start_in(directory: TempDir, flags: &[&str]) -> Server {
        let mut process = Command::new(env!("CARGO_BIN_EXE_fabius"))
            .arg("serve")
            .arg(directory.path())
            .args(["--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"])
            .args(flags)
            // So that what is resident is what is in use.
            .env("MIMALLOC_PURGE_DELAY", "100")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut line = || lines.next().expect("the server says where it is").expect("text");
        let address = line().split_once(" on ").and_then(|(_, rest)| rest.split(';').next()?.parse().ok());
        let _psql = line();
        let http = line().split_once("http://").and_then(|(_, rest)| rest.split('/').next()?.parse().ok());
        // What comes later is read so that the server never waits for us.
        std::thread::spawn(move || lines.for_each(drop));
        Server { process, address: address.expect("its address"), http, directory }
    }

    /// The database's directory, once the server has ended.
    pub fn into_directory(mut self) -> TempDir {
        self.kill();
        std::mem::replace(&mut self.directory, tempfile::tempdir().expect("a directory"))
    }

    /// `kill -9`.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let status =
            Command::new("kill").args([&format!("-{name}"), &self.process.id().to_string()]).status();
        assert!(status.is_ok_and(|status| status.success()), "a signal");
    }

    pub fn port(&self) -> String {
        self.address.port().to_string()
    }

    /// A connection string for libpq and its like.
    pub fn conninfo(&self) -> String {
        format!("host=127.0.0.1 port={} dbname=fabius user=tester", self.address.port())
    }

    /// Runs statements with tokio-postgres on a connection of their own; all must succeed.
    pub fn run(&self, statements: &str) {
        let conninfo = self.conninfo();
        block_on(async {
            let client = connect(&conninfo).await;
            client.batch_execute(statements).await.unwrap_or_else(|error| panic!("{error:?}"));
        });
    }

    /// Returns once a query gives a row.
    pub fn wait_until(&self, query: &str) {
        let conninfo = self.conninfo();
        block_on(async {
            let client = connect(&conninfo).await;
            while client.query_opt(query, &[]).await.unwrap_or_else(|error| panic!("{error:?}")).is_none() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }

    /// Returns once another connection runs a statement of this text.
    pub fn wait_for(&self, statement: &str) {
        self.wait_until(&format!(
            "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query = '{statement}'"
        ));
    }

    /// A page of the HTTP port.
    pub fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(self.http.expect("an HTTP port")).expect("a connection");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: fabius\r\nConnection: close\r\n\r\n")
            .expect("a request");
        let mut page = String::new();
        stream.read_to_string(&mut page).expect("a page");
        page
    }

    /// What the process has computed so far, in hundredths of a second on most systems.
    pub fn processor_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("numbers");
        // Behind the name, which may hold anything: the state is the first, user time the twelfth, system time next.
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        fields.split_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    }

    /// Time of processors that the process has used.
    pub fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id())).expect("its state");
        // Behind the name, which may have spaces: `utime` and `stime`, proc(5), in hundredths of a second.
        let fields = stat.rsplit_once(')').map(|(_, fields)| fields.split_whitespace()).expect("fields");
        let ticks: u64 = fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
        Duration::from_millis(10 * ticks)
    }

    /// Memory of the process, bytes.
    pub fn resident_bytes(&self) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.process.id())).expect("a status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("memory");
        line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
    }
}

impl From<&Server> for SocketAddr {
    fn from(server: &Server) -> SocketAddr {
        server.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs a future to its end.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.expect("it ends in time") })
}

/// A tokio-postgres connection that is driven in the background.
pub async fn connect(conninfo: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(conninfo, tokio_postgres::NoTls)
        .await
        .unwrap_or_else(|error| panic!("{error:?}"));
    tokio::spawn(connection);
    client
}

/// Where the clients are that tests need: `cargo xtask clients` puts them there.
pub fn clients() -> PathBuf {
    let cache = || {
        let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
        home.join(".cache/fabius/clients")
    };
    std::env::var_os("FABIUS_CLIENTS").map_or_else(cache, PathBuf::from)
}

/// Whether a client is there. Without it the test says so, and fails where all of them have to be.
pub fn has(client: &str, path: &Path) -> bool {
    let is_there = path.exists();
    if !is_there {
        let advice = format!("{client} is not there ({}): run cargo xtask clients", path.display());
        assert!(std::env::var_os("FABIUS_CLIENTS_REQUIRED").is_none(), "{advice}");
        eprintln!("not tested: {advice}");
    }
    is_there
}

/// A program on the path.
pub fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.exists());
    found.unwrap_or_else(|| PathBuf::from(name))
}

/// Runs a client; what it printed, if it succeeded.
///
/// # Panics
/// With all it printed, if not.
pub fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().expect("the client starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}\n{stdout}\n{stderr}");
    stdout.into_owned()
}
