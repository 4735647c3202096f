//! The nodes, their network, their clients, and what befalls them.

use super::client::Client;
use super::ledger::{DEFINITIONS, Ledger};
use super::node::{DATABASE, History, Life, checkpoints_of, log_options};
use super::{Mutation, Report};
use bytes::Bytes;
use fabius_cluster::{
    Filled, Filling, HardState, Member, Replica, Replication, begin_anew, has_run_ahead, init, must_be_filled,
};
use fabius_engine::entry::{self, Entries};
use fabius_engine::{Batch, BatchBuilder};
use fabius_env::{
    Clock, Disk, Fault, Network, NodeId, Random, SimulatedClock, SimulatedDisk, SimulatedNetwork, Weather,
};
use fabius_log::{Log, LogError};
use fabius_testing::oracle::Oracle;
use fabius_testing::rig::Make;
use fabius_value::{Error, Seq, SqlState, Value};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Time between two ticks of a node, about.
const TICK_NS: u64 = 50_000_000;
/// Steps in which things go wrong.
const STORM_STEPS: u64 = 12_000;
/// Steps after which everything must be well again.
const MENDED_STEPS: u64 = 100_000;

/// A simulated cluster.
pub(super) struct World<'m> {
    make: Make<'m>,
    random: Random,
    time: SimulatedClock,
    network: SimulatedNetwork,
    nodes: Vec<Node>,
    clients: Vec<Client>,
    ledger: Ledger,
    history: History,
    /// Who led in each term.
    leaders: BTreeMap<u64, u64>,
    counts: BTreeMap<&'static str, u64>,
    /// Nodes that may lose what they have written: fewer than half.
    fragile: usize,
    /// What is broken on purpose.
    mutation: Option<Mutation>,
    replication: Replication,
    /// The last node is no member at first.
    has_spare: bool,
    was_removed: bool,
}

struct Node {
    number: u64,
    disk: SimulatedDisk,
    /// The node's time of day.
    clock: SimulatedClock,
    life: Option<Life>,
    /// It lives no more and is not out: it is being filled.
    filling: Option<(Filling, Arc<dyn Network>)>,
    lives: u64,
    next_tick_ns: u64,
    tick_ns: u64,
    /// Why it stays out.
    out: Option<String>,
}

impl Node {
    /// A node that has not begun to live.
    fn new(number: u64, disk: SimulatedDisk, clock: SimulatedClock, tick_ns: u64) -> Node {
        let (life, filling, out) = (None, None, None);
        Node { number, disk, clock, life, filling, lives: 0, next_tick_ns: 0, tick_ns, out }
    }
}

impl<'m> World<'m> {
    pub(super) fn new(seed: u64, make: Make<'m>, mutation: Option<Mutation>) -> World<'m> {
        let mut random = Random::seeded(seed);
        let time = SimulatedClock::at(0);
        let network = SimulatedNetwork::seeded(random.next_u64(), time.clone());
        let count = if random.chance(1, 3) { 5 } else { 3 };
        let member = |node| Member { node, address: format!("node{node}"), votes: true };
        let members: Vec<Member> = (1..=count).map(member).collect();
        let nodes = (1..=count).map(|number| {
            let disk = SimulatedDisk::new(random.next_u64());
            let alone = number == 1 && mutation == Some(Mutation::MajorityTooSmall);
            let known = if alone { vec![member(1)] } else { members.clone() };
            init(&disk, number, known).expect("an empty disk");
            let clock = SimulatedClock::at(1_700_000_000_000_000 + random.below(5_000_000) as i64);
            let tick_ns = TICK_NS * (90 + random.below(21)) / 100;
            Node::new(number, disk, clock, tick_ns)
        });
        let mut nodes: Vec<Node> = nodes.collect();
        let fragile = if random.chance(1, 3) { nodes.len() / 2 } else { 0 };
        let has_spare = mutation.is_none() && random.chance(1, 2);
        if has_spare {
            let number = count + 1;
            let disk = SimulatedDisk::new(random.next_u64());
            let mut known = members.clone();
            known.push(Member { votes: false, ..member(number) });
            init(&disk, number, known).expect("an empty disk");
            let clock = SimulatedClock::at(1_700_000_000_000_000);
            nodes.push(Node::new(number, disk, clock, TICK_NS));
        }
        let replication = match mutation.is_none() && random.chance(1, 6) {
            true => Replication::Asynchronous,
            false => Replication::Agreed,
        };
        let mut ledger = Ledger::default();
        ledger.forgives = replication == Replication::Asynchronous;
        World {
            make,
            random,
            time,
            network,
            nodes,
            clients: (0..4).map(|_| Client::default()).collect(),
            ledger,
            history: History::new(),
            leaders: BTreeMap::new(),
            counts: BTreeMap::new(),
            fragile,
            mutation,
            replication,
            has_spare,
            was_removed: false,
        }
    }

    pub(super) fn run(mut self) -> Result<Report, String> {
        for node in 0..self.nodes.len() {
            self.restart(node)?;
        }
        self.set_up()?;
        for _ in 0..STORM_STEPS {
            self.step()?;
            self.clients(false)?;
            if self.random.chance(1, 150) {
                self.befall()?;
            }
        }
        self.mend()?;
        self.settle()?;
        self.check()?;
        for node in std::mem::take(&mut self.nodes) {
            if let Some(life) = node.life {
                self.add_counts(&life.replica);
            }
        }
        for (name, count) in self.network.counters() {
            self.counts.insert(name, count);
        }
        self.counts.insert("calls acknowledged", self.ledger.acknowledged());
        self.counts.insert("entries agreed on", self.history.len() as u64);
        Ok(Report { counts: self.counts, history: self.network.history() })
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// Defines what the clients need, and begins the counter.
    fn set_up(&mut self) -> Result<(), String> {
        for text in DEFINITIONS {
            let batch = Batch::of(entry::encode_definition(text), 1);
            self.life(0).replica.amend(batch.clone(), None).expect("a small entry");
            self.await_batch(&batch)?;
        }
        let definitions = self.life(0).foundation.definitions();
        let begin = definitions.catalog.find_procedure("begin").expect("it was defined");
        let mut batch = BatchBuilder::new();
        batch.push(begin, &[], None, false).expect("a small call");
        let batch = batch.build();
        self.life(0).replica.hand_in(batch.clone(), None).expect("a small call");
        self.await_batch(&batch)?;
        // With asynchronous replication it could still be lost.
        for _ in 0..MENDED_STEPS {
            let life = self.life(0);
            if life.replica.standing().agreed >= life.taken {
                return Ok(());
            }
            self.step()?;
        }
        Err("in calm weather nothing is agreed on".into())
    }

    fn life(&mut self, node: usize) -> &mut Life {
        self.nodes[node].life.as_mut().expect("it lives")
    }

    fn await_batch(&mut self, batch: &Batch) -> Result<(), String> {
        for _ in 0..MENDED_STEPS {
            if batch.is_complete() {
                return batch.outcome(0).map_err(|error| error.to_string());
            }
            self.step()?;
        }
        Err("in calm weather nothing is agreed on".into())
    }

    /// Something that happens all the time.
    fn step(&mut self) -> Result<(), String> {
        let now_ns = self.time.monotonic_ns();
        for node in 0..self.nodes.len() {
            if self.nodes[node].next_tick_ns <= now_ns {
                self.nodes[node].next_tick_ns = now_ns + self.nodes[node].tick_ns;
                if let Some((filling, network)) = &mut self.nodes[node].filling {
                    let filled = filling.tick(&mut &**network);
                    self.filled(node, filled)?;
                }
                let leaves_out = self.leaves_out(node);
                self.at_node(node, |life, history| {
                    life.replica.tick()?;
                    life.turn(0, history, leaves_out)
                })?;
            }
        }
        let node = self.random.index(self.nodes.len());
        let leaves_out = self.leaves_out(node);
        self.fill(node)?;
        match self.random.below(10) {
            0..=3 => {
                let messages = 1 + self.random.index(8);
                // One alone: it cannot answer its own clients.
                let hasty =
                    self.mutation == Some(Mutation::TakenBeforeAgreement) && node + 1 == self.nodes.len();
                self.at_node(node, |life, history| {
                    life.turn(messages, history, leaves_out)?;
                    if hasty { life.take_what_is_there() } else { Ok(()) }
                })
            }
            4 | 5 => self.at_node(node, |life, history| {
                life.log.flush_now().map_err(|error| fabius_engine::foundation::log_error(&error))?;
                life.turn(0, history, leaves_out)
            }),
            6 => self.at_node(node, |life, _| {
                life.engine.help();
                Ok(())
            }),
            _ => {
                self.pass_time();
                Ok(())
            }
        }
    }

    /// A node that is being filled hears what has come; once it is whole it begins another life.
    fn fill(&mut self, node: usize) -> Result<(), String> {
        let Some((filling, network)) = &mut self.nodes[node].filling else { return Ok(()) };
        let Some((_, message)) = network.receive() else { return Ok(()) };
        let filled = filling.hear(&Bytes::from(message), &mut &**network);
        self.filled(node, filled)
    }

    fn filled(&mut self, node: usize, filled: fabius_value::Result<Filled>) -> Result<(), String> {
        match filled {
            Ok(Filled::NotYet) => return Ok(()),
            Ok(Filled::Whole) => self.count("a node was filled from a checkpoint"),
            Ok(Filled::InVain) => self.count("a node found nobody to be filled from"),
            Err(_) => self.count("a node could not be filled, because its disk failed"),
        }
        self.end_life(node);
        self.restart(node)
    }

    /// Whether a node leaves calls out: one alone.
    fn leaves_out(&self, node: usize) -> bool {
        self.mutation == Some(Mutation::CallLeftOut) && node + 1 == self.nodes.len()
    }

    /// Lets time go on, to where something happens or a little.
    fn pass_time(&mut self) {
        let now_ns = self.time.monotonic_ns();
        let next_tick_ns = self.nodes.iter().map(|node| node.next_tick_ns).min().unwrap_or(now_ns);
        let next_ns = self.network.next_arrival_ns().map_or(next_tick_ns, |next| next.min(next_tick_ns));
        let most_ns = if self.random.chance(1, 8) { 20_000_000 } else { 1_000_000 };
        let passed_ns = match self.random.chance(1, 2) {
            true => next_ns.saturating_sub(now_ns),
            false => self.random.below(most_ns),
        };
        let passed = Duration::from_nanos(passed_ns);
        self.time.advance(passed);
        self.nodes.iter().for_each(|node| node.clock.advance(passed));
    }

    /// Has a node do something, if it lives. What it cannot go on from ends its life.
    fn at_node(
        &mut self,
        node: usize,
        work: impl FnOnce(&mut Life, &mut History) -> fabius_value::Result<()>,
    ) -> Result<(), String> {
        let Some(life) = self.nodes[node].life.as_mut() else { return Ok(()) };
        let done = catch_unwind(AssertUnwindSafe(|| work(life, &mut self.history)));
        let number = self.nodes[node].number;
        match done.map_err(|panic| format!("node {number}: {}", panic_text(&*panic)))? {
            Ok(()) => {}
            Err(_) if must_be_filled(&self.nodes[node].disk) => {
                self.count("a node learned that it was too far behind");
                self.end_life(node);
            }
            Err(error) if has_run_ahead(&error) => {
                self.count("a node had run what was not agreed on");
                self.end_life(node);
            }
            Err(error) if error.state() == SqlState::DATA_CORRUPTED => {
                if node >= self.fragile {
                    return Err(format!("node {number}, whose disk is sound, has stopped: {error}"));
                }
                self.count("a node found while it ran that it had lost something");
                self.end_life(node);
                self.begin_anew(node, &error);
            }
            Err(error) if error.state() == SqlState::NOT_IN_STATE && self.was_removed => {
                self.count("a node learned that it was removed");
                self.nodes[node].out = Some(error.to_string());
                self.end_life(node);
            }
            Err(error) if error.state() == SqlState::INTERNAL => {
                return Err(format!("node {number}: {error}"));
            }
            // The disk fails.
            Err(_) => {
                self.count("a node stopped because its disk failed");
                self.end_life(node);
            }
        }
        let Some(life) = &self.nodes[node].life else { return Ok(()) };
        let standing = life.replica.standing();
        if standing.leads {
            let leader = *self.leaders.entry(standing.term).or_insert(number);
            if leader != number {
                return Err(format!("nodes {leader} and {number} both lead in term {}", standing.term));
            }
        }
        Ok(())
    }

    /// Clients look, and begin something now and then.
    fn clients(&mut self, ending: bool) -> Result<(), String> {
        let now_ns = self.time.monotonic_ns();
        let at = self.random.index(self.clients.len());
        let World { clients, nodes, ledger, random, .. } = self;
        let client = &mut clients[at];
        if let Some((node, lives)) = client.asked() {
            let life = nodes[node].life.as_ref().filter(|_| nodes[node].lives == lives);
            return client.look(life, now_ns, ledger);
        }
        let at = random.index(nodes.len());
        let node = &mut nodes[at];
        if let Some(life) = &mut node.life
            && random.chance(1, 4)
        {
            client.begin((at, node.lives), life, now_ns, random, ledger, ending);
            if self.mutation == Some(Mutation::StaleRead) {
                client.read_at_once();
            }
        }
        Ok(())
    }

    /// Something that should not happen, or the end of it.
    fn befall(&mut self) -> Result<(), String> {
        let node = self.random.index(self.nodes.len());
        let other = self.random.index(self.nodes.len());
        let id = |node: &Node| NodeId(node.number);
        let (from, to) = (id(&self.nodes[node]), id(&self.nodes[other]));
        match self.random.below(28) {
            20..=23 => self.change_members(),
            24..=27 => self.take_checkpoints(),
            0 | 1 => self.kill(node),
            2 => self.power_loss(node),
            3..=6 => self.restart(node)?,
            7 => {
                self.network.cut(from, to);
                self.count("a link was cut one way");
            }
            8 => {
                self.network.cut(from, to);
                self.network.cut(to, from);
            }
            9 => {
                for other in &self.nodes {
                    self.network.cut(from, id(other));
                    self.network.cut(id(other), from);
                }
                self.count("a node was cut off");
            }
            10 | 11 => self.network.heal_all(),
            16..=19 => {
                self.network.heal_all();
                for node in 0..self.nodes.len() {
                    self.restart(node)?;
                }
            }
            12 => {
                let stormy = self.random.chance(1, 2);
                self.network.set_weather(if stormy { Weather::stormy() } else { Weather::calm() });
            }
            13 => {
                let factor = 1 + self.random.below(8) * self.random.below(2);
                self.network.set_slowness(from, factor);
            }
            14 => {
                let step_us = self.random.below(20_000_000) as i64 - 10_000_000;
                self.nodes[node].clock.step_us(step_us);
                self.count("a clock was set");
            }
            _ => self.fail_disk(node),
        }
        Ok(())
    }

    /// The leader lets the spare node in, gives it a vote, or removes it; or it hands the lead on.
    fn change_members(&mut self) {
        let leads = |node: &Node| node.life.as_ref().is_some_and(|life| life.replica.standing().leads);
        let Some(leader) = self.nodes.iter().position(leads) else { return };
        let other = self.nodes[self.random.index(self.nodes.len())].number;
        let spare = self.nodes.last().expect("there are some").number;
        let is_out = self.nodes.last().is_some_and(|node| node.out.is_some());
        let (has_spare, was_removed, chance) = (self.has_spare, self.was_removed, self.random.below(4));
        let replica = &mut self.life(leader).replica;
        if !has_spare || chance == 0 {
            replica.transfer(other);
            self.count("the lead was to be handed on");
            return;
        }
        let known = replica.members().iter().find(|member| member.node == spare).map(|member| member.votes);
        let member = |votes| Member { node: spare, address: format!("node{spare}"), votes };
        let (done, what) = match known {
            None if is_out || was_removed => return,
            None => (replica.add(&member(false)), "a node was let in"),
            Some(false) if chance > 1 => (replica.add(&member(true)), "a node was given a vote"),
            Some(true) if chance > 1 => (replica.remove(spare), "a node was removed"),
            Some(_) => return,
        };
        if done.is_ok() {
            self.count(what);
            // Its number is not used again, whatever becomes of the proposal.
            self.was_removed |= what == "a node was removed";
        }
    }

    /// The leader has all nodes take a checkpoint at one place.
    fn take_checkpoints(&mut self) {
        let leads = |node: &Node| node.life.as_ref().is_some_and(|life| life.replica.standing().leads);
        if let Some(leader) = self.nodes.iter().position(leads) {
            let checkpoint = Batch::of(entry::encode_checkpoint(), 1);
            self.life(leader).replica.amend(checkpoint, None).expect("a small entry");
        }
    }

    fn fail_disk(&mut self, node: usize) {
        if self.nodes[node].life.is_none() {
            return;
        }
        let fault = match self.random.below(3) {
            0 => Fault::FailSync { syncs_before: self.random.below(6) },
            1 => Fault::Full { bytes: self.random.below(20_000) },
            _ => Fault::PowerLoss { operations: self.random.below(40) },
        };
        self.nodes[node].disk.fault(fault);
    }

    /// The process ends; what it has written is with the system.
    fn kill(&mut self, node: usize) {
        if self.nodes[node].life.is_some() {
            self.count("a node was killed");
            self.end_life(node);
            self.nodes[node].disk.repair();
        }
    }

    /// The machine ends; what was not synced may be lost, in any pattern.
    fn power_loss(&mut self, node: usize) {
        if self.nodes[node].life.is_some() {
            self.count("a node lost its power");
            self.end_life(node);
            self.lose_unsynced(node);
        }
    }

    fn lose_unsynced(&mut self, node: usize) {
        self.nodes[node].disk = self.nodes[node].disk.crash(self.random.next_u64());
    }

    fn end_life(&mut self, node: usize) {
        self.nodes[node].filling = None;
        self.network.crash(NodeId(self.nodes[node].number));
        if let Some(life) = self.nodes[node].life.take() {
            self.add_counts(&life.replica);
            // Closing the log would write what a process that ends does not write.
            self.nodes[node].disk.fault(Fault::PowerLoss { operations: 0 });
            drop(life);
            self.nodes[node].disk.repair();
        }
        self.nodes[node].disk.release_locks();
    }

    fn add_counts(&mut self, replica: &Replica) {
        for (name, count) in replica.counts() {
            *self.counts.entry(name).or_default() += count;
        }
    }

    fn restart(&mut self, node: usize) -> Result<(), String> {
        let Node { life, filling, out, .. } = &self.nodes[node];
        if life.is_some() || filling.is_some() || out.is_some() {
            return Ok(());
        }
        if self.nodes[node].disk.operation_count() > 0 && self.random.chance(1, 2) {
            self.lose_unsynced(node);
        }
        if node < self.fragile && self.nodes[node].lives > 0 && self.random.chance(1, 3) {
            self.flip_bit(node);
        }
        self.nodes[node].disk.repair();
        match self.mutation {
            Some(Mutation::VoteForgotten) => forget_vote(&self.nodes[node].disk),
            Some(Mutation::SyncLeftOut) => {
                let kept = self.random.below(4);
                lose_synced(&self.nodes[node].disk, kept);
            }
            _ => {}
        }
        let number = self.random.next_u64();
        let network = self.network.restart(NodeId(self.nodes[node].number));
        let Node { disk, clock, .. } = &self.nodes[node];
        let filling = checkpoints_of(disk).and_then(|checkpoints| {
            let disk = Arc::new(disk.clone());
            Filling::begin(disk.clone(), checkpoints, disk, DATABASE)
        });
        if let Ok(Some(filling)) = filling {
            self.nodes[node].filling = Some((filling, network));
            return Ok(());
        }
        let opened = Life::open(self.make, disk, clock, network, number, self.replication);
        let all_in = self.nodes.iter().all(|node| node.out.is_none());
        let state = &mut self.nodes[node];
        state.lives += 1;
        match opened {
            Ok(life) => {
                state.next_tick_ns = self.time.monotonic_ns() + self.random.below(state.tick_ns);
                state.life = Some(life);
                if state.lives > 1 {
                    self.count("a node began another life");
                }
                Ok(())
            }
            Err(error) if node < self.fragile => {
                self.network.crash(NodeId(state.number));
                self.begin_anew(node, &error);
                Ok(())
            }
            // One torn tail in many thousands looks like a changed bit. Then no other node may be lost.
            Err(error) if all_in && error.message().contains("one bit") => {
                state.out = Some(error.to_string());
                self.network.crash(NodeId(state.number));
                self.fragile = 0;
                self.count("a torn tail was taken for damage");
                Ok(())
            }
            Err(error) => Err(format!("node {} cannot be opened: {error}", state.number)),
        }
    }

    /// A damaged node is its own successor from now on, if it still knows enough for that.
    fn begin_anew(&mut self, node: usize, error: &Error) {
        match begin_anew(&self.nodes[node].disk) {
            Ok(successor) => {
                self.nodes[node].number = successor.0;
                self.count("a damaged node began anew");
            }
            Err(_) => {
                self.nodes[node].out = Some(error.to_string());
                self.count("damage kept a node out");
            }
        }
    }

    fn flip_bit(&mut self, node: usize) {
        let whole = &self.nodes[node].disk;
        let in_checkpoint = self.random.chance(1, 5);
        let Ok(disk) = (if in_checkpoint { whole.within("checkpoints") } else { Ok(whole.clone()) }) else {
            return;
        };
        let names = disk.list().unwrap_or_default();
        let last_segment = names.iter().rfind(|name| name.ends_with(".log"));
        let any = names.get(self.random.index(names.len().max(1)));
        // The end of the log is what is hardest to tell from a torn tail.
        let at_end = self.random.chance(1, 2);
        let Some(name) = (if at_end { last_segment } else { any }) else { return };
        let place = self.random.next_u64();
        let flipped = disk.damage(name, |bytes| {
            let all = bytes.len();
            let from = if at_end { all.saturating_sub(400) } else { 0 };
            if all > 0 {
                let bit = place as usize % ((all - from) * 8);
                bytes[from + bit / 8] ^= 1 << (bit % 8);
            }
        });
        if flipped.is_ok() {
            self.count(if in_checkpoint { "a bit of a checkpoint was flipped" } else { "a bit was flipped" });
        }
    }

    /// Ends everything that was wrong.
    fn mend(&mut self) -> Result<(), String> {
        self.network.heal_all();
        self.network.set_weather(Weather::calm());
        for node in 0..self.nodes.len() {
            self.network.set_slowness(NodeId(self.nodes[node].number), 1);
            self.nodes[node].disk.repair();
            self.restart(node)?;
        }
        Ok(())
    }

    /// Goes on until nobody waits and all nodes that are not out have taken the same.
    fn settle(&mut self) -> Result<(), String> {
        for _ in 0..MENDED_STEPS {
            self.step()?;
            self.clients(true)?;
            for node in 0..self.nodes.len() {
                // One that stopped late, of a fault from before.
                self.restart(node)?;
            }
            self.end_removed();
            let taken =
                |node: &Node| node.life.as_ref().map(|life| (life.taken, life.replica.standing().last));
            let mut ends = self.nodes.iter().filter(|node| node.out.is_none()).map(taken);
            let first = ends.next().flatten();
            let are_seated =
                self.nodes.iter().all(|node| node.life.as_ref().is_none_or(|life| life.replica.is_seated()));
            let all_the_same = are_seated
                && first.is_some_and(|(taken, last)| taken == last)
                && ends.all(|end| end == first);
            if all_the_same && !self.clients.iter().any(Client::is_busy) {
                return Ok(());
            }
        }
        let standings = self.nodes.iter().map(|node| match (&node.life, &node.out) {
            (Some(life), _) => {
                format!("node {}: taken {}, {:?}", node.number, life.taken, life.replica.standing())
            }
            (None, out) => format!("node {}: {out:?}", node.number),
        });
        let standings: Vec<String> = standings.collect();
        Err(format!("all is mended, and the cluster does not answer again: {}", standings.join("; ")))
    }

    /// A node that was removed may not know it, and one that was never let in knows nothing.
    fn end_removed(&mut self) {
        let last = self.nodes.len() - 1;
        let spare = self.nodes[last].number;
        let leads = |node: &&Node| node.life.as_ref().is_some_and(|life| life.replica.standing().leads);
        let Some(leader) = self.nodes.iter().find(leads).and_then(|node| node.life.as_ref()) else { return };
        let is_member = leader.replica.members().iter().any(|member| member.node == spare);
        if self.has_spare && !is_member {
            self.nodes[last].out.get_or_insert_with(|| "it is no member".into());
            if self.nodes[last].life.is_some() {
                self.end_life(last);
            }
        }
    }

    /// Everything that must be so in the end.
    fn check(&self) -> Result<(), String> {
        let mut oracle = Oracle::new();
        for (index, (first_seq, taken)) in &self.history {
            if oracle.last().next() != Seq(*first_seq) {
                return Err(format!(
                    "the entry with index {index} begins at {first_seq}, behind {}",
                    oracle.last()
                ));
            }
            run(&mut oracle, taken);
        }
        let expected = oracle_rows(&oracle);
        for node in &self.nodes {
            let Some(life) = &node.life else { continue };
            let found = rows(life);
            if found != expected {
                return Err(format!("node {} has other rows than the oracle", node.number));
            }
        }
        let done = oracle.catalog().find_table("done").ok_or("there is no table")?;
        let of = |row: Vec<Value>| match row[..] {
            [Value::BigInt(at), Value::BigInt(op), _] => (at, op),
            _ => (0, 0),
        };
        let there: Vec<_> = oracle.rows(done).into_iter().map(of).collect();
        self.ledger.check(&there)
    }
}

/// What a node that forgets its vote finds.
fn forget_vote(disk: &SimulatedDisk) {
    if let Ok(Some(state)) = HardState::read(disk) {
        HardState { term: 0, vote: 0, ..state }.write(disk).expect("a disk without faults");
    }
}

/// What a node finds whose last syncs did nothing: a log without its last entries.
fn lose_synced(disk: &SimulatedDisk, entries: u64) {
    let mut ends = Vec::new();
    let Ok(Some(HardState { begins, .. })) = HardState::read(disk) else { return };
    let opened = Log::open(Arc::new(disk.clone()), log_options(begins.seq + 1), |frame| {
        ends.push(frame.last_seq());
        Ok::<(), LogError>(())
    });
    if let Ok((log, _)) = opened {
        let kept = ends.iter().rev().nth(entries as usize).copied().unwrap_or(0).max(begins.seq);
        log.truncate_after(kept).expect("a disk without faults");
        log.close().expect("a disk without faults");
        let _ = disk.delete("CLOSED");
    }
    disk.release_locks();
}

/// Runs an agreed entry as every node does.
fn run(oracle: &mut Oracle, taken: &[u8]) {
    match entry::decode(taken) {
        Ok(Entries::Calls { time_us, bytes }) => {
            for call in entry::calls(bytes).flatten() {
                oracle.call(call.procedure, call.arguments, call.key, time_us);
            }
        }
        Ok(Entries::Definition(text)) => {
            if oracle.define(text).is_err() {
                oracle.pass();
            }
        }
        Ok(Entries::KeyWindow(calls)) => oracle.set_key_window(calls),
        Ok(Entries::Nothing | Entries::Checkpoint) | Err(_) => oracle.pass(),
    }
}

fn oracle_rows(oracle: &Oracle) -> Vec<String> {
    let tables = oracle.catalog().tables().map(|(id, schema)| (id, schema.name.clone()));
    let rows = tables.flat_map(|(id, name)| {
        oracle.rows(id).into_iter().map(move |row| format!("{name}: {row:?}")).collect::<Vec<_>>()
    });
    let mut rows: Vec<String> = rows.collect();
    rows.sort_unstable();
    rows
}

fn rows(life: &Life) -> Vec<String> {
    let definitions = life.foundation.definitions();
    let mut rows = Vec::new();
    for (id, schema) in definitions.catalog.tables() {
        let visited = life.engine.rows(id, &mut |row| {
            rows.push(format!("{}: {row:?}", schema.name));
            Ok(())
        });
        visited.expect("rows are read");
    }
    rows.sort_unstable();
    rows
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "a panic".into())
}
