//! An engine whose calls are agreed on before they run.
//!
//! To whoever hands calls in it is an engine like any other. What is handed in goes to the leader, and comes back as
//! an entry that every node's own engine takes at the same place in the order.

use crate::{Node, Replication, Status};
use fabius_engine::batch::Outcomes;
use fabius_engine::checkpoint::State;
use fabius_engine::counters::Counts;
use fabius_engine::{Batch, Engine, Foundation, Procedure, Room, Standpoint, Ticket};
use fabius_value::{Error, Result, Seq, SqlState, Value};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use std::time::{Duration, Instant};

/// How long a thread that waits for agreement sleeps before it looks again.
const NAP: Duration = Duration::from_millis(50);
/// How long it waits at most.
const PATIENCE: Duration = Duration::from_secs(20);

/// An engine of a cluster's node.
pub struct AgreedEngine {
    engine: Arc<dyn Engine>,
    node: Node,
    /// Held while an entry is taken: who stands stands between two.
    between: Arc<Mutex<()>>,
    /// Whether calls are handed in where this node leads alone.
    leads_only: AtomicBool,
    replication: Replication,
}

impl AgreedEngine {
    /// The engine of a node; `between` is what the node's [`Executor`](crate::Executor) holds.
    pub fn new(
        engine: Arc<dyn Engine>,
        node: Node,
        between: Arc<Mutex<()>>,
        replication: Replication,
    ) -> AgreedEngine {
        AgreedEngine { engine, node, between, leads_only: AtomicBool::new(false), replication }
    }

    /// Whether this node leads and runs calls before they are agreed on: then nobody knows of newer ones.
    pub fn runs_ahead(&self) -> bool {
        self.replication == Replication::Asynchronous && self.node.leads()
    }

    /// From now on what is handed in is agreed on in the term in which this node leads, or refused: for callers whose
    /// calls stand on what is in this node's memory, as locks and what names mean. What stands on nothing there is
    /// handed in by [`submit_anywhere`](Self::submit_anywhere).
    pub fn hand_in_where_it_leads(&self) {
        self.leads_only.store(true, Release);
    }

    /// The term in which this node leads, if what is handed in is agreed on where it leads alone.
    pub fn term_of_lead(&self) -> Option<u64> {
        if self.leads_only.load(Acquire) { self.node.leads_in() } else { None }
    }

    /// The term for which something is handed in.
    fn fence(&self) -> Result<Option<u64>> {
        if !self.leads_only.load(Acquire) {
            return Ok(None);
        }
        self.node.leads_in().map(Some).ok_or_else(|| {
            let hint = match self.status().standing.leader {
                Some(leader) => format!("node {leader} leads the cluster; connect to it"),
                None => "the cluster has no leader at the moment; try again".into(),
            };
            Error::new(SqlState(*b"25006"), "this node of the cluster does not lead it").with_hint(hint)
        })
    }

    /// Hands calls in that stand on nothing in this node's memory: whoever leads may have them agreed on.
    pub fn submit_anywhere(&self, batch: Arc<Batch>) {
        self.node.hand_in(batch, None);
    }

    /// Hands calls in that stand on what has been in this node's memory since it leads in this term: they are agreed
    /// on in it, or refused ([`other_leader`](crate::other_leader)).
    pub fn submit_in(&self, batch: Arc<Batch>, term: u64) {
        self.node.hand_in(batch, Some(term));
    }

    /// Adds an entry that stands on nothing in this node's memory; what becomes of it is the batch's first outcome.
    pub fn amend_anywhere(&self, entry: &[u8]) -> Arc<Batch> {
        self.amend_in(entry, None)
    }

    fn amend_in(&self, entry: &[u8], fence: Option<u64>) -> Arc<Batch> {
        let batch = Batch::of(entry.to_vec(), 1);
        self.node.amend(batch.clone(), fence);
        batch
    }

    /// The engine that takes what is agreed on.
    pub fn beneath(&self) -> &dyn Engine {
        &*self.engine
    }

    /// The node.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// How the node stands.
    pub fn status(&self) -> Status {
        self.node.status()
    }
}

impl Engine for AgreedEngine {
    fn name(&self) -> &'static str {
        self.engine.name()
    }

    fn foundation(&self) -> &Foundation {
        self.engine.foundation()
    }

    fn submit(&self, batch: Arc<Batch>) {
        match self.fence() {
            Ok(fence) => self.node.hand_in(batch, fence),
            Err(refused) => batch.fail(refused, self.foundation().clock.monotonic_ns()),
        }
    }

    fn admit(&self) -> bool {
        false
    }

    fn help(&self) -> bool {
        self.engine.help()
    }

    fn amend(&self, entry: &[u8]) -> Result<()> {
        let batch = self.amend_in(entry, self.fence()?);
        let begun = Instant::now();
        while !batch.wait(NAP) {
            if begun.elapsed() > PATIENCE {
                return Err(Error::new(SqlState(*b"08007"), "a majority of the cluster does not answer")
                    .with_detail("what was to be defined may be defined later")
                    .with_hint("look at the other nodes, and try again"));
            }
        }
        batch.outcome(0)
    }

    fn query_at(
        &self,
        at: &Standpoint<'_>,
        procedure: &Procedure,
        arguments: &[u8],
        room: Room,
    ) -> Result<Vec<Value>> {
        self.engine.query_at(at, procedure, arguments, room)
    }

    unsafe fn substantiate(&self, source: *mut ()) -> Result<()> {
        // SAFETY: it was read from an open sticky of this engine, whose rows are those of the one below.
        unsafe { self.engine.substantiate(source) }
    }

    fn resolve(&self, ticket: &Ticket) {
        self.engine.resolve(ticket);
    }

    fn stand(&self) -> Standpoint<'_> {
        let _between = self.between.lock();
        self.engine.stand()
    }

    fn settle(&self) {
        self.engine.settle();
    }

    fn restore(&self, _state: State) {
        unreachable!("an engine begins with a checkpoint before it is a node's");
    }

    fn take(&self, _first_seq: Seq, _count: u32, _payload: &[u8]) -> Result<Outcomes> {
        unreachable!("what is agreed on is taken by the engine beneath");
    }

    fn close(&self, reason: Error) {
        self.node.stop(&reason);
        self.engine.close(reason);
    }

    fn counts(&self) -> Counts {
        self.engine.counts()
    }

    fn times(&self) -> Vec<(&'static str, u64)> {
        self.engine.times()
    }
}
