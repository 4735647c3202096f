//! A cluster whose nodes are processes of this machine, and what can be done to them.

use crate::link::Link;
use crate::server_process::{ServerProcess, command_of, free_port};
use crate::temporary::TemporaryDirectory;
use fabius::{Member, Result, identity, init_member};
use std::path::Path;
use std::time::Duration;

/// A cluster of `fabius serve` processes; they end when it is dropped.
pub struct ClusterProcess {
    /// The nodes; the first has number 1.
    pub nodes: Vec<ServerProcess>,
    /// From whom, to whom, over what; nothing if nodes are connected without links.
    links: Vec<(usize, usize, Link)>,
}

/// How nodes reach each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wiring {
    /// Each by the other's own port.
    Direct,
    /// Over links, so that nodes can be cut off and be far from each other.
    Links,
}

impl ClusterProcess {
    /// Starts so many nodes, each with a new database and these arguments, and returns once they take connections.
    ///
    /// # Errors
    /// If they cannot be set up, or do not take connections within a minute.
    pub fn start(
        program: &Path,
        parent: Option<&Path>,
        count: usize,
        wiring: Wiring,
        arguments: &[&str],
    ) -> Result<ClusterProcess> {
        let ports = (0..count).map(|_| free_port()).collect::<Result<Vec<u16>>>()?;
        let mut links = Vec::new();
        if wiring == Wiring::Links {
            for from in 0..count {
                for to in (0..count).filter(|to| *to != from) {
                    links.push((from, to, Link::to(ports[to])?));
                }
            }
        }
        let id = identity::make();
        let mut nodes = Vec::new();
        for from in 0..count {
            let port_of = |to: usize| {
                let link = links.iter().find(|(near, far, _)| (*near, *far) == (from, to));
                link.map_or(ports[to], |(_, _, link)| link.port)
            };
            let member = |to: usize| Member {
                node: to as u64 + 1,
                address: format!("127.0.0.1:{}", port_of(to)),
                votes: true,
            };
            let directory = TemporaryDirectory::new(parent)?;
            let data = directory.path().join("data");
            init_member(&data, from as u64 + 1, (0..count).map(member).collect(), id)?;
            let port = free_port()?;
            let mut command = command_of(program);
            command.arg("serve").arg(&data).args(["--listen", &format!("127.0.0.1:{port}"), "--http", "off"]);
            command.args(arguments);
            nodes.push(ServerProcess::spawn("fabius", command, port, "fabius", directory)?);
        }
        nodes.iter_mut().try_for_each(ServerProcess::await_connections)?;
        Ok(ClusterProcess { nodes, links })
    }

    /// Cuts a node off from the others, or mends its links. Clients still reach it.
    pub fn cut_off(&self, node: usize, is_cut: bool) {
        let links = self.links.iter().filter(|(from, to, _)| *from == node || *to == node);
        links.for_each(|(_, _, link)| link.cut(is_cut));
    }

    /// Cuts or mends what one node has begun with another: what it asks does not arrive, nor what it is answered.
    /// What the other begins with it still does.
    pub fn cut(&self, from: usize, to: usize, is_cut: bool) {
        let links = self.links.iter().filter(|(near, far, _)| (*near, *far) == (from, to));
        links.for_each(|(_, _, link)| link.cut(is_cut));
    }

    /// Has all that nodes send each other be on its way for so long: from whom, to whom.
    pub fn delay(&self, between: impl Fn(usize, usize) -> Duration) {
        self.links.iter().for_each(|(from, to, link)| link.delay(between(*from, *to)));
    }
}
