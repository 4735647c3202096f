//! `fabius cluster ...`: databases of which several machines hold a copy.

mod certificates;
mod client;
pub mod demo;
pub mod members;

use crate::message::out;
use clap::{Args, Subcommand};
use fabius::{Error, Member, Result, SqlState, identity, init_member, repair_member};
use fabius_bench::interrupt::Interrupt;
use fabius_log::DatabaseId;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// `fabius cluster ...`
#[derive(Subcommand)]
pub enum Command {
    /// Make a directory that of a node of a new cluster
    Init(Init),
    /// How the nodes stand, and who the members are
    Status(members::Status),
    /// Let a node in while calls go on, and give it a vote once it follows
    Add(members::Add),
    /// Remove a node
    Remove(members::Remove),
    /// Hand the lead to a node
    Transfer(members::Transfer),
    /// Have a damaged node begin anew, filled by the others; `serve` does so by itself where it finds damage
    Repair(Repair),
    /// Make the certificates by which nodes of different machines know each other
    Certificates(certificates::Make),
    /// Three nodes on this machine: the leader is killed, the next one cut off, and nothing is lost
    Demo(demo::Demo),
}

/// `fabius cluster init ...`
#[derive(Args)]
#[command(
    after_help = "Every node's directory is made on its own machine, with the same members in the same words and the same
identity: the first one prints it, the others are given it. Then each is served: `fabius serve DIR`. Calls are
agreed on once a majority of the members is there.

Nodes of different machines talk TLS: `fabius cluster certificates --help` says how. Without certificates their
addresses have to be on one machine.

A node that joins later is made with --join and its address, served, and let in: `fabius cluster add --help`.

Examples, three nodes on one machine:
  M=1=127.0.0.1:7001,2=127.0.0.1:7002,3=127.0.0.1:7003
  fabius cluster init n1 --node 1 --members $M             prints --id 0123...
  fabius cluster init n2 --node 2 --members $M --id 0123...
  fabius cluster init n3 --node 3 --members $M --id 0123...
  fabius serve n1 --listen 5433 & fabius serve n2 --listen 5434 & fabius serve n3 --listen 5435 &
  psql \"host=127.0.0.1,127.0.0.1,127.0.0.1 port=5433,5434,5435 dbname=fabius target_session_attrs=read-write\"
"
)]
pub struct Init {
    /// The node's directory; there must be no database in it
    dir: PathBuf,
    /// The node's number, from 1 on
    #[arg(long)]
    node: u64,
    /// The members of the cluster: their numbers, and where the others reach them
    #[arg(long, value_name = "NODE=HOST:PORT,...")]
    members: String,
    /// The node is to join a cluster that is there, and is reached here; the members are those that the cluster began
    /// with
    #[arg(long, value_name = "HOST:PORT", requires = "id")]
    join: Option<String>,
    /// The cluster's identity, which the first node's `init` has printed [default: a new one]
    #[arg(long, value_name = "HEX")]
    id: Option<String>,
}

/// Does what it says.
///
/// # Errors
/// Members that do not fit each other, a directory that is in use; as the disk fails.
pub fn run(command: &Command, interrupt: &Interrupt) -> Result<ExitCode> {
    match command {
        Command::Init(arguments) => init(arguments),
        Command::Status(arguments) => members::status(arguments),
        Command::Add(arguments) => members::add(arguments, interrupt),
        Command::Remove(arguments) => members::remove(arguments),
        Command::Transfer(arguments) => members::transfer(arguments),
        Command::Repair(arguments) => repair(&arguments.dir),
        Command::Certificates(arguments) => certificates::run(arguments),
        Command::Demo(arguments) => demo::run(arguments, interrupt),
    }
}

fn init(arguments: &Init) -> Result<ExitCode> {
    let mut members = members(&arguments.members)?;
    if let Some(address) = &arguments.join {
        if members.iter().any(|member| member.node == arguments.node) {
            let message =
                format!("node {} is one of the members that the cluster began with", arguments.node);
            return Err(Error::new(SqlState::INVALID_PARAMETER, message)
                .with_hint("a node that joins has a number of its own"));
        }
        members.extend(
            self::members(&format!("{}={address}", arguments.node))?
                .into_iter()
                .map(|me| Member { votes: false, ..me }),
        );
    }
    let id = arguments.id.as_deref().map_or_else(|| Ok(identity::make()), identity_of)?;
    let count = members.len();
    init_member(&arguments.dir, arguments.node, members, id)?;
    out(&format!(
        "{} is node {} of {count}\nthe others are made with  --id {id}\nserve it with  fabius serve {}\n",
        arguments.dir.display(),
        arguments.node,
        arguments.dir.display()
    ));
    Ok(ExitCode::SUCCESS)
}

/// `fabius cluster repair ...`
#[derive(Args)]
#[command(
    after_help = "What the node has, its log and its checkpoints, is set aside in its directory. Served again, it asks the others to
let it in in the place of the node that it was, is filled from one of them, and has its vote back once it has caught up.
A majority of the others has to be there.

This is also how a node comes back that has stopped because it had computed something else than the others."
)]
pub struct Repair {
    /// The node's directory
    dir: PathBuf,
}

fn repair(dir: &Path) -> Result<ExitCode> {
    let fabius::Repair { node, aside } = repair_member(dir)?;
    let (dir, aside) = (dir.display(), aside.display());
    out(&format!("what the node had lies in {aside}\nserved again, it is {node}:  fabius serve {dir}\n"));
    Ok(ExitCode::SUCCESS)
}

/// `1=a:7001,2=b:7001` as members, all of which have a vote.
fn members(text: &str) -> Result<Vec<Member>> {
    let wrong = |part: &str| {
        Error::new(SqlState::INVALID_PARAMETER, format!("{part:?} is no member"))
            .with_hint("members are given as NODE=HOST:PORT, divided by commas, such as 1=127.0.0.1:7001,2=127.0.0.1:7002")
    };
    let member = |part: &str| {
        let (node, address) = part.trim().split_once('=').ok_or_else(|| wrong(part))?;
        let (host, port) = address.rsplit_once(':').ok_or_else(|| wrong(part))?;
        let node = node.parse().ok().filter(|node| *node > 0).ok_or_else(|| wrong(part))?;
        if host.is_empty() || port.parse::<u16>().is_err() {
            return Err(wrong(part));
        }
        Ok(Member { node, address: address.to_string(), votes: true })
    };
    text.split(',').map(member).collect()
}

fn identity_of(text: &str) -> Result<DatabaseId> {
    let number = u128::from_str_radix(text, 16).ok().filter(|_| text.len() == 32);
    number.map(|number| DatabaseId(number.to_be_bytes())).ok_or_else(|| {
        Error::new(SqlState::INVALID_PARAMETER, format!("{text:?} is no identity of a cluster")).with_hint(
            "it has 32 hexadecimal digits, which `fabius cluster init` of the first node has printed",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: members are read as they are meant, and what is none is named.
    #[test]
    fn members_are_read() {
        let read = members("1=127.0.0.1:7001, 2=[::1]:7002,30=db3:7003").expect("members");
        let read: Vec<_> = read.iter().map(|member| (member.node, member.address.as_str())).collect();
        assert_eq!(read, [(1, "127.0.0.1:7001"), (2, "[::1]:7002"), (30, "db3:7003")]);
        for wrong in ["", "1", "1=host", "1=:7001", "0=host:1", "x=host:1", "1=host:99999", "1=a:1,,2=b:2"] {
            assert!(members(wrong).is_err(), "{wrong:?}");
        }
        assert!(identity_of("0123").is_err() && identity_of(&"0f".repeat(16)).is_ok());
    }
}
