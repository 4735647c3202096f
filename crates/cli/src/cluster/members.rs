//! `fabius cluster status | add | remove | transfer`: who the members are, and changes of that, while calls go on.

use super::client::{ANSWER, failed, shown_by};
use crate::message::out;
use crate::progress::Line;
use clap::Args;
use fabius::{Error, Result, SqlState};
use fabius_bench::interrupt::Interrupt;
use fabius_bench::table::{Table, grouped};
use serde_json::Value;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::time::timeout;
use tokio_postgres::config::{Host, TargetSessionAttrs};
use tokio_postgres::{Client, Config, NoTls};

/// How long it may take until a node leads, and answers: longer than an election on a machine with much to do.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often it is looked whether a node has caught up, or leads.
const NAP: Duration = Duration::from_millis(200);

/// What is said to the first signal.
pub const INTERRUPTED: &str = "giving up waiting; again to stop at once\n";

/// Where nodes are reached.
#[derive(Args)]
pub struct Nodes {
    /// The nodes, as clients of PostgreSQL name them: hosts and ports of some or all, a user, a password
    #[arg(long, value_name = "CONNINFO", default_value = "host=127.0.0.1 port=5433")]
    connect: String,
}

/// `fabius cluster status ...`
#[derive(Args)]
#[command(
    after_help = "Every node that is named is asked for itself, and tells what it knows, also one that is cut off from the others.

Example:
  fabius cluster status --connect 'host=db1,db2,db3 port=5433 user=admin'
"
)]
pub struct Status {
    #[command(flatten)]
    nodes: Nodes,
}

/// `fabius cluster add ...`
#[derive(Args)]
#[command(
    after_help = "The node's directory is made first, with `fabius cluster init DIR --node N --join HOST:PORT ...`, and served. It is let in, is
given what the others have while calls go on, and has a vote once it follows closely. Given again, the command goes on
where it was.

Example:
  fabius cluster add 4 db4:7001 --connect 'host=db1,db2,db3 port=5433'
"
)]
pub struct Add {
    /// The node's number
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    node: u32,
    /// Where the others reach it
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Give it no vote: it has everything, and counts for no majority
    #[arg(long)]
    learner: bool,
    #[command(flatten)]
    nodes: Nodes,
}

/// `fabius cluster remove ...`
#[derive(Args)]
#[command(after_help = "Its number is not used again. The node stops once it learns of it.")]
pub struct Remove {
    /// The node's number
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    node: u32,
    #[command(flatten)]
    nodes: Nodes,
}

/// `fabius cluster transfer ...`
#[derive(Args)]
#[command(
    after_help = "Transactions that are open at the node that leads end with 40001 when they commit. Before a machine is stopped on
purpose, this saves the half second in which the others find out."
)]
pub struct Transfer {
    /// The number of the node that is to lead
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    node: u32,
    #[command(flatten)]
    nodes: Nodes,
}

/// Shows how each node stands.
///
/// # Errors
/// No node that answers.
pub fn status(arguments: &Status) -> Result<ExitCode> {
    let config = arguments.nodes.config()?;
    let told = runtime()?.block_on(async {
        let mut told = Vec::new();
        for node in each(&config) {
            let shown = match connect(&node).await {
                Ok(client) => shown_by(&client, ANSWER).await.ok_or_else(|| silent("it does not answer")),
                Err(error) => Err(error),
            };
            told.push((place(&node), shown));
        }
        told
    });
    let mut table = Table::new([
        "asked",
        "node",
        "leads",
        "term",
        "agreed",
        "executed",
        "seq",
        "log from",
        "compared after",
    ]);
    for (place, shown) in &told {
        match shown {
            Ok(shown) if shown.is_object() => table.row(row(place, shown)),
            Ok(_) => table.row([place, "is of no cluster"]),
            Err(error) => {
                table.row([place.clone(), format!("{} {}", error.message(), error.detail().unwrap_or(""))])
            }
        }
    }
    out(&table.to_string());
    let shown = || told.iter().filter_map(|(_, shown)| shown.as_ref().ok());
    // Who has seen the most knows best.
    let Some(newest) = shown().max_by_key(|shown| shown["agreed"].as_u64()) else {
        return Err(silent("no node answers")
            .with_hint("name where clients reach them: --connect 'host=... port=...'"));
    };
    out(&format!("\n{}", members(newest)));
    let complaints = shown().flat_map(|shown| {
        let texts = shown["complaints"].as_array().into_iter().flatten().filter_map(Value::as_str);
        texts.map(|text| format!("node {}: {text}\n", shown["node"]))
    });
    let complaints: String = complaints.collect();
    if !complaints.is_empty() {
        out(&format!("\n{complaints}"));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets a node in, and gives it a vote once it follows.
///
/// # Errors
/// What the node that leads refuses.
pub fn add(arguments: &Add, interrupt: &Interrupt) -> Result<ExitCode> {
    let Add { node, address, learner, nodes } = arguments;
    let config = nodes.config()?;
    runtime()?.block_on(async {
        let known = member(&leader(&config).await?, *node).await?;
        match known.as_ref().map(|known| known["address"].as_str().unwrap_or_default()) {
            None => {
                change(&config, &format!("SELECT fabius_cluster_add({node}, {})", quoted(address))).await?
            }
            Some(known) if known == address => {}
            Some(known) => {
                let what = format!("node {node} is a member already, at {known}");
                return Err(
                    Error::new(SqlState::NOT_IN_STATE, what).with_hint("a new node has a number of its own")
                );
            }
        }
        if *learner {
            return Ok(());
        }
        let line = Line::new();
        line.say(format!("waiting until node {node} has what the others have"));
        while !member(&leader(&config).await?, *node).await?.is_some_and(|member| member["votes"] == true) {
            if interrupt.is_raised() {
                let what = format!("node {node} is let in, and has no vote yet");
                return Err(
                    Error::new(SqlState::CANCELED, what).with_hint("the same command goes on from there")
                );
            }
            match change(&config, &format!("SELECT fabius_cluster_vote({node})")).await {
                // It does not follow closely enough yet.
                Err(error) if error.state() == SqlState::NOT_IN_STATE => tokio::time::sleep(NAP).await,
                done => done?,
            }
        }
        line.clear();
        Ok(())
    })?;
    let what = if *learner { "is a member without a vote" } else { "is a member, and has a vote" };
    out(&format!("node {node} {what}\n"));
    Ok(ExitCode::SUCCESS)
}

/// Removes a node.
///
/// # Errors
/// What the node that leads refuses.
pub fn remove(arguments: &Remove) -> Result<ExitCode> {
    let Remove { node, nodes } = arguments;
    let config = nodes.config()?;
    runtime()?.block_on(change(&config, &format!("SELECT fabius_cluster_remove({node})")))?;
    out(&format!("node {node} is no member any more\n"));
    Ok(ExitCode::SUCCESS)
}

/// Hands the lead to a node.
///
/// # Errors
/// What the node that leads refuses.
pub fn transfer(arguments: &Transfer) -> Result<ExitCode> {
    let Transfer { node, nodes } = arguments;
    let config = nodes.config()?;
    runtime()?.block_on(async {
        let client = leader(&config).await?;
        let what = format!("node {node} cannot lead");
        match member(&client, *node).await? {
            None => return Err(Error::new(SqlState::NOT_IN_STATE, what).with_detail("it is no member")),
            Some(member) if member["votes"] == false => {
                return Err(Error::new(SqlState::NOT_IN_STATE, what).with_detail("it has no vote"));
            }
            Some(member) if member["leads"] == true => return Ok(()),
            Some(_) => {}
        }
        change(&config, &format!("SELECT fabius_cluster_lead({node})")).await
    })?;
    out(&format!("node {node} leads\n"));
    Ok(ExitCode::SUCCESS)
}

impl Nodes {
    fn config(&self) -> Result<Config> {
        let mut config: Config = self.connect.parse().map_err(|error: tokio_postgres::Error| {
            Error::new(
                SqlState::INVALID_PARAMETER,
                format!("{:?} does not say where nodes are", self.connect),
            )
            .with_detail(error.to_string())
            .with_hint("such as 'host=db1,db2,db3 port=5433 user=admin', or postgresql://admin@db1:5433")
        })?;
        if config.get_user().is_none() {
            config.user("fabius");
        }
        config.connect_timeout(ANSWER);
        Ok(config)
    }
}

/// Each node that is named by itself, to be asked for what it knows.
fn each(config: &Config) -> Vec<Config> {
    let ports = config.get_ports();
    let port = |at: usize| ports.get(at).or(ports.first()).copied().unwrap_or(5433);
    let alone = |(at, host): (usize, &Host)| {
        let mut alone = Config::new();
        match host {
            Host::Tcp(name) => alone.host(name),
            Host::Unix(path) => alone.host_path(path),
        };
        alone.port(port(at)).connect_timeout(ANSWER).options("-c fabius.reads=snapshot");
        if let Some(user) = config.get_user() {
            alone.user(user);
        }
        if let Some(password) = config.get_password() {
            alone.password(password);
        }
        if let Some(name) = config.get_dbname() {
            alone.dbname(name);
        }
        alone
    };
    config.get_hosts().iter().enumerate().map(alone).collect()
}

fn place(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => String::new(),
    };
    format!("{host}:{}", config.get_ports().first().copied().unwrap_or_default())
}

fn runtime() -> Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
        Error::new(SqlState::IO_ERROR, "threads cannot be started").with_detail(error.to_string())
    })
}

async fn connect(config: &Config) -> Result<Client> {
    let connecting = timeout(ANSWER * config.get_hosts().len().max(1) as u32, config.connect(NoTls));
    let connected = connecting.await.map_err(|_| silent("no answer"))?;
    let (client, connection) = connected.map_err(|error| failed("no connection", &error))?;
    tokio::spawn(connection);
    Ok(client)
}

/// A connection to the node that leads.
async fn leader(config: &Config) -> Result<Client> {
    let mut config = config.clone();
    config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    let begun = Instant::now();
    loop {
        match connect(&config).await {
            Ok(client) => return Ok(client),
            // There may be an election.
            Err(_) if begun.elapsed() < PATIENCE => tokio::time::sleep(NAP).await,
            Err(error) => {
                let hint = "name all nodes, or the one that leads: --connect 'host=... port=...'; \
                            `fabius cluster status` shows it";
                return Err(Error::new(error.state(), "the node that leads is not reached")
                    .with_detail(error.detail().unwrap_or(error.message()).to_string())
                    .with_hint(hint));
            }
        }
    }
}

/// What the cluster says of one of its members.
async fn member(client: &Client, node: u32) -> Result<Option<Value>> {
    let shown =
        shown_by(client, PATIENCE).await.ok_or_else(|| silent("the node that leads does not answer"))?;
    if !shown.is_object() {
        return Err(Error::new(SqlState::NOT_IN_STATE, "this database is of no cluster")
            .with_hint("fabius cluster init --help tells how to make one"));
    }
    let mut members = shown["members"].as_array().into_iter().flatten();
    Ok(members.rfind(|member| member["node"] == node).cloned())
}

/// Has the node that leads make a change, which says whether it was agreed on in time.
async fn change(config: &Config, call: &str) -> Result<()> {
    let client = leader(config).await?;
    let row =
        client.query_one(call, &[]).await.map_err(|error| failed("the members are as they were", &error))?;
    if row.get::<_, Option<bool>>(0) == Some(true) {
        return Ok(());
    }
    Err(Error::new(SqlState(*b"57014"), "the change was not agreed on in time")
        .with_detail("it may still be: a majority of the members has to be there")
        .with_hint("fabius cluster status shows it"))
}

fn silent(what: &str) -> Error {
    Error::new(SqlState(*b"08006"), what)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// How a node stands, as a row.
fn row(place: &str, shown: &Value) -> Vec<String> {
    let number = |name: &str| grouped(shown[name].as_f64().unwrap_or_default());
    let leads = if shown["leads"] == true { "leads" } else { "" };
    let compared = shown["compared"]["seq"].as_f64().map_or_else(|| "-".to_string(), grouped);
    let cells = [place.to_string(), shown["node"].to_string(), leads.to_string()];
    let numbers = ["term", "agreed", "taken", "seq", "first"].map(number);
    cells.into_iter().chain(numbers).chain([compared]).collect()
}

/// The members, as the node knows them that has seen the most.
fn members(shown: &Value) -> String {
    let mut table = Table::new(["member", "address", "vote", "leads"]);
    for member in shown["members"].as_array().into_iter().flatten() {
        let before = member["predecessors"].as_u64().map_or_else(String::new, |before| format!(".{before}"));
        let yes = |is: bool| if is { "yes" } else { "" };
        table.row([
            format!("{}{before}", member["node"]),
            member["address"].as_str().unwrap_or_default().to_string(),
            yes(member["votes"] == true).to_string(),
            yes(member["leads"] == true).to_string(),
        ]);
    }
    table.to_string()
}
