//! A database that is one node of a cluster.
//!
//! The directory is that of any database, and one file more (`hard-state`). What is different is who orders calls:
//! they are agreed on with the other nodes before the engine takes them ([`fabius_cluster`]), here and there alike.

use crate::checkpoints::CheckpointStatus;
use crate::database::{Database, Files};
use crate::identity::{self, io_error};
use crate::opening;
use crate::options::{Durability, Options};
use fabius_cluster::{
    AgreedEngine, Certificates, Executor, Filled, Filling, KeptCheckpoints, Member, Node, Opening, Status,
    TICK,
};
use fabius_engine::{Batch, Foundation};
use fabius_env::{
    Clock, ClusterId, Disk, Network, NetworkSettings, NodeId, RealClock, RealDisk, RealNetwork,
};
use fabius_log::{DatabaseId, Flusher, Log, LogError, LogOptions};
use fabius_value::{Error, Result, SqlState};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What connects a node to the others: it is told who it is, and which database it has.
pub type Connect<'c> = &'c mut dyn FnMut(&Member, &[Member], DatabaseId) -> Result<Arc<dyn Network>>;

/// Makes a directory that of a node of a new cluster; every node's is made with the same members and the same identity.
///
/// # Errors
/// `22023` if the node is not one of the members, or two have one number or address; `55000` if there is a
/// database in the directory; as the disk fails.
pub fn init_member(path: &Path, node: u64, members: Vec<Member>, id: DatabaseId) -> Result<()> {
    let invalid = |fact: String| Error::new(SqlState::INVALID_PARAMETER, fact);
    if !members.iter().any(|member| member.node == node) {
        return Err(invalid(format!("node {node} is not one of the members")));
    }
    for (at, member) in members.iter().enumerate() {
        let others = &members[at + 1..];
        if member.node == 0
            || member.node > u64::from(u32::MAX)
            || others.iter().any(|other| other.node == member.node)
        {
            return Err(invalid(format!(
                "members have numbers of their own, from 1 to 4294967295, and not twice {}",
                member.node
            )));
        }
        if others.iter().any(|other| other.address == member.address) {
            return Err(invalid(format!("two members have the address {}", member.address)));
        }
    }
    let disk = RealDisk::create(path).map_err(|error| {
        Error::new(SqlState::IO_ERROR, "the directory of the node cannot be created")
            .with_detail(format!("{}: {error}", path.display()))
    })?;
    if identity::read(&disk, &[])?.is_some() {
        return Err(Error::new(SqlState::NOT_IN_STATE, "there is a database in the directory already")
            .with_detail(path.display().to_string())
            .with_hint("name another directory"));
    }
    identity::give(&disk, id)?;
    fabius_cluster::init(&disk, node, members)
}

/// A change of who is a member of a cluster, or leads it; nodes are meant by their seats ([`NodeId::seat`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MemberChange {
    /// A node is let in, or given a vote.
    Add(Member),
    /// A node is no member any more; its number is not used again.
    Remove(u64),
    /// A node leads.
    Lead(u64),
}

impl MemberChange {
    /// The change of the node that has the seat now.
    fn of_node(self, members: &[Member]) -> MemberChange {
        let in_seat = |seat| {
            let has_it = |member: &&Member| NodeId(member.node).seat() == seat;
            members.iter().filter(has_it).max_by_key(|member| member.node)
        };
        let node_in = |seat| in_seat(seat).map_or(seat, |member| member.node);
        match self {
            MemberChange::Add(member) => {
                let node = node_in(member.node);
                MemberChange::Add(Member { node, ..member })
            }
            MemberChange::Remove(seat) => MemberChange::Remove(node_in(seat)),
            MemberChange::Lead(seat) => MemberChange::Lead(node_in(seat)),
        }
    }
}

/// How long it is waited for that a change of members is agreed on.
const CHANGE_PATIENCE: Duration = Duration::from_secs(5);
/// How long a node that is to lead has for that, before it is asked again.
const ASKED_AGAIN: Duration = Duration::from_secs(1);
/// How often it is looked.
const NAP: Duration = Duration::from_millis(5);

/// What can go wrong while the log is read.
enum Read {
    Log(LogError),
    Replica(Error),
}

impl From<LogError> for Read {
    fn from(error: LogError) -> Read {
        Read::Log(error)
    }
}

impl Database {
    /// Opens a node of a cluster, which talks to the others over TCP, by TLS if there are certificates; without, only
    /// on this machine. Calls that are handed in wait until a majority is there.
    ///
    /// # Errors
    /// As [`Database::open`]; `55000` if the directory is not that of a node; what keeps it from listening.
    pub fn open_member(
        path: impl AsRef<Path>,
        options: Options,
        certificates: Option<Certificates>,
    ) -> Result<Database> {
        let path = path.as_ref();
        let disk = RealDisk::create(path).map_err(|error| {
            Error::new(SqlState::IO_ERROR, "the directory of the node cannot be opened")
                .with_detail(format!("{}: {error}", path.display()))
        })?;
        let clock = Arc::new(RealClock::new());
        let connect: Connect<'_> = &mut |me, members, id| listen(me, members, id, certificates.as_ref());
        Database::open_member_on(Arc::new(disk), clock, Flusher::Thread, options, connect)
    }

    /// Opens a node of a cluster on any disk, clock and network.
    ///
    /// # Errors
    /// As [`Database::open_member`].
    pub fn open_member_on(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        flusher: Flusher,
        options: Options,
        connect: Connect<'_>,
    ) -> Result<Database> {
        if options.durability == Durability::None {
            return Err(Error::new(
                SqlState::INVALID_PARAMETER,
                "a node of a cluster syncs what it acknowledges to the others",
            )
            .with_hint("open it with durability fsync; one that forgets would let the cluster part"));
        }
        let Files { log_disk, checkpoints, held, id } = Files::of(&*disk)?;
        if let Some(filling) = Filling::begin(disk.clone(), checkpoints.clone(), log_disk.clone(), id)? {
            fill(filling, id, &*clock, connect)?;
        }
        let begin = opening::begin(&*checkpoints, &*log_disk, id, options.recovery_threads())?;
        let foundation = Arc::new(Foundation::new(clock));
        let mut database = Database::start(foundation.clone(), Options { workers: 0, ..options });
        let newest = begin.state.as_ref().map(|state| state.seq);
        let engine = database.engine.clone();
        begin.state.into_iter().for_each(|state| engine.restore(state));

        let mut opening = Opening::begin(disk.clone(), newest.unwrap_or_default())?;
        let log_options =
            LogOptions { flusher, first_seq: opening.needed(), doubts_tails: true, ..LogOptions::new(id) };
        let opened = Log::open(log_disk, log_options, |frame| opening.note(&frame).map_err(Read::Replica));
        let (log, report) = opened.map_err(|error| match error {
            Read::Log(error) => opening::explain(&error, &begin.passed_over),
            Read::Replica(error) => error,
        })?;
        fabius_storage::checkpoint::delete_unfinished(&*checkpoints)?;
        let log = Arc::new(log);
        // What is agreed on is durable: nobody waits for this node's log.
        foundation.attach_log(log.clone(), false);
        if options.history.is_some() {
            foundation.keep_times();
        }
        let kept = Arc::new(KeptCheckpoints::new(checkpoints.clone()));
        let replica = opening.finish(log.clone(), life(), kept.clone(), options.replication)?;
        let me = replica.members().iter().find(|member| member.node == replica.node()).cloned();
        let me = me.ok_or_else(no_member)?;
        let network = connect(&me, replica.members(), id)?;
        let mut executor = Executor::new(engine.clone());
        let meeting = database.meeting.clone();
        executor.at_checkpoint(Box::new(move |point| meeting.call(point)));
        let between = executor.between();
        let node = Node::start(replica, executor, foundation.clone(), network);
        let agreed = Arc::new(AgreedEngine::new(engine, node, between, options.replication));
        database.engine = agreed.clone();
        database.agreed = Some(agreed);
        database.log = Some(log.clone());
        database.recovery = Some(report);
        let status = CheckpointStatus { newest, passed_over: begin.passed_over, failed: None };
        let threads = options.checkpoint_threads();
        database.keep_checkpoints(checkpoints, id, log, held, begin.bytes, 0, status, Some(kept), threads);
        database.begin_work(options)?;
        Ok(database)
    }

    /// How this node of a cluster stands; `None` for a database that is none.
    pub fn member_status(&self) -> Option<Status> {
        self.agreed.as_ref().map(|agreed| agreed.status())
    }

    /// The term in which this node leads its cluster, where that matters: see [`Database::hand_in_where_it_leads`].
    pub fn term_of_lead(&self) -> Option<u64> {
        self.agreed.as_ref().and_then(|agreed| agreed.term_of_lead())
    }

    /// For how long this node of a cluster has not known for certain what was agreed on: what it shows at once may be
    /// older than the newest by so much, and by what it is about to take. `None` for a database that is none.
    pub fn silence(&self) -> Option<Duration> {
        let status = self.member_status()?;
        Some(TICK * u32::try_from(status.standing.silent).unwrap_or(u32::MAX))
    }

    /// Whether it is a node of a cluster.
    pub fn is_replicated(&self) -> bool {
        self.agreed.is_some()
    }

    /// Whether calls are ordered here: in a cluster, whether this node leads it.
    pub fn leads(&self) -> bool {
        self.agreed.as_ref().is_none_or(|agreed| agreed.node().leads())
    }

    /// Whether this node has run calls that are not agreed on yet, and are lost if it is lost now: with asynchronous
    /// replication, where it leads.
    pub fn is_ahead(&self) -> bool {
        self.member_status().is_some_and(|status| status.taken > status.standing.agreed)
    }

    /// From now on what is handed in is agreed on in the term in which this node leads, or refused: for callers whose
    /// calls stand on what is in this node's memory. Nothing changes in a database that is no node of a cluster.
    pub fn hand_in_where_it_leads(&self) {
        if let Some(agreed) = &self.agreed {
            agreed.hand_in_where_it_leads();
        }
    }

    /// Changes who is a member of the cluster, or leads it, at the node that leads; whether it was agreed on within
    /// some seconds. If not, it may be later.
    ///
    /// # Errors
    /// `55000` if this node does not lead, or another change is on its way.
    pub fn change_members(&self, change: MemberChange) -> Result<bool> {
        let Some(agreed) = &self.agreed else {
            return Err(Error::new(SqlState::NOT_IN_STATE, "this database is of no cluster"));
        };
        if matches!(change, MemberChange::Lead(_)) && !agreed.node().leads() {
            return Err(Error::new(SqlState::NOT_IN_STATE, "this node has no lead to hand on"));
        }
        let change = change.of_node(&agreed.status().members);
        let proposed = Batch::of(Vec::new(), 0);
        match &change {
            MemberChange::Add(member) => agreed.node().add(member.clone(), proposed.clone()),
            MemberChange::Remove(node) => agreed.node().remove(*node, proposed.clone()),
            MemberChange::Lead(node) => agreed.node().transfer(*node),
        }
        let is_made = |status: &Status| match &change {
            MemberChange::Add(member) => status.members.contains(member),
            MemberChange::Remove(node) => status.members.iter().all(|member| member.node != *node),
            MemberChange::Lead(node) => status.standing.leader == Some(*node),
        };
        let begun = Instant::now();
        let mut asked = begun;
        while begun.elapsed() < CHANGE_PATIENCE {
            if let Some(failure) = proposed.outcomes().failure.clone() {
                return Err(failure);
            }
            if is_made(&agreed.status()) {
                return Ok(true);
            }
            // A node that is slow to follow lets the lead pass by.
            if let MemberChange::Lead(node) = change
                && asked.elapsed() >= ASKED_AGAIN
                && agreed.node().leads()
            {
                agreed.node().transfer(node);
                asked = Instant::now();
            }
            std::thread::sleep(NAP);
        }
        Ok(false)
    }

    /// Returns once this node shows everything that anybody was told of before, on any node: what reads there are
    /// strictly serializable by. At once in a database that is no node of a cluster, and where a leader runs calls
    /// before they are agreed on.
    ///
    /// # Errors
    /// Why the node has stopped.
    pub async fn catch_up(&self) -> Result<()> {
        let Some(agreed) = self.agreed.as_ref().filter(|agreed| !agreed.runs_ahead()) else { return Ok(()) };
        let reader = Batch::of(Vec::new(), 0);
        agreed.node().read(reader.clone());
        self.complete(&reader).await;
        let failure = reader.outcomes().failure.clone();
        failure.map_or(Ok(()), Err)
    }
}

/// Fills a node from the checkpoint of another, however long that takes, unless nobody has one.
fn fill(mut filling: Filling, id: DatabaseId, clock: &dyn Clock, connect: Connect<'_>) -> Result<()> {
    let me = filling.members().iter().find(|member| member.node == filling.node()).cloned();
    let network = connect(&me.ok_or_else(no_member)?, filling.members(), id)?;
    let mut outbox = &*network;
    let tick_ns = TICK.as_nanos() as u64;
    let mut next_tick_ns = clock.monotonic_ns();
    loop {
        if clock.monotonic_ns() >= next_tick_ns {
            if filling.tick(&mut outbox)? != Filled::NotYet {
                return Ok(());
            }
            next_tick_ns = clock.monotonic_ns() + tick_ns;
        }
        while let Some((_, message)) = network.receive() {
            if filling.hear(&message.into(), &mut outbox)? != Filled::NotYet {
                return Ok(());
            }
        }
        network.wait(Duration::from_nanos(next_tick_ns.saturating_sub(clock.monotonic_ns())));
    }
}

/// Whether a node, in this directory, has stopped because it is too far behind: opening it fills it from another
/// node's checkpoint.
pub fn must_be_filled(path: &Path) -> bool {
    RealDisk::open(path).is_ok_and(|disk| fabius_cluster::must_be_filled(&disk))
}

fn no_member() -> Error {
    Error::new(SqlState::NOT_IN_STATE, "this node is no member of its cluster any more")
        .with_hint("a directory that was removed from a cluster does not come back; add a new node")
}

/// A number that no life of the node has had.
fn life() -> u64 {
    let [first, ..] = identity::random_numbers();
    first
}

/// Listens where the cluster says that this node does.
fn listen(
    me: &Member,
    members: &[Member],
    id: DatabaseId,
    certificates: Option<&Certificates>,
) -> Result<Arc<dyn Network>> {
    let peers: Vec<(NodeId, String)> =
        members.iter().map(|member| (NodeId(member.node), member.address.clone())).collect();
    let mut settings = NetworkSettings { semantics: fabius_program::SEMANTICS, ..NetworkSettings::default() };
    if let Some(certificates) = certificates {
        certificates.check(NodeId(me.node)).map_err(|error| {
            Error::new(SqlState::INVALID_PARAMETER, "the node cannot show the others its certificate")
                .with_detail(error.to_string())
                .with_hint("`fabius cluster certificates` makes certificates for all nodes")
        })?;
        settings.transport = Arc::new(certificates.clone());
    }
    let network = RealNetwork::listen(NodeId(me.node), ClusterId(id.0), &me.address, &peers, settings);
    let network = network.map_err(|error| {
        Error::new(SqlState::IO_ERROR, "the node cannot listen for the others of its cluster")
            .with_detail(format!("node {} at {}: {error}", me.node, me.address))
            .with_hint("another process may have the port; addresses beyond this machine need TLS (certificates for the nodes)")
    })?;
    Ok(Arc::new(network))
}

/// The log of a database that a directory has, with what goes with it.
impl Files {
    /// Takes a directory for this process.
    ///
    /// # Errors
    /// `55006` if another process has it; as the disk fails.
    pub(crate) fn of(disk: &dyn Disk) -> Result<Files> {
        let inside = |name| disk.subdirectory(name).map_err(|error| io_error("opening", disk, &error));
        let (log_disk, checkpoints) = (inside("log")?, inside("checkpoints")?);
        // Before anything is read: of two who find nothing, one alone gives the database its identity.
        let held = opening::hold(disk, &*checkpoints)?;
        let id = identity::of(disk, &[&*log_disk, &*checkpoints])?;
        Ok(Files { log_disk, checkpoints, held, id })
    }
}
