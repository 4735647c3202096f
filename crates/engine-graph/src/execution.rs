//! Transaction execution (LADS, section 3.3, algorithm 3).
//!
//! A worker executes whatever of its partition is executable, that is, has no in-edges any more. What was the head of
//! its queue is removed then, and the next in the queue may become executable, perhaps in another partition, whose
//! worker is sent a message:
//!
//! ```text
//! partition 0   queue a: (1) (2) [5] (7)     (independent)  [of a whole call]
//! partition 1   queue b: [5] (8)
//!
//! worker 0      run 1, 2 on a; write a   [5] is at all its heads: run it   7 on a
//! worker 1                                                        \--> message: run 8 on b
//! ```
//!
//! An action that depends on others waits at the head of its queue for them: whoever ends one sends a message for each
//! that has waited for it alone, and if a call aborts, or a branch is not taken, for those that come to nothing
//! (sections 3.3.1 and 4.2.3; `docs/decisions/record-actions-with-dependencies.md`):
//!
//! ```text
//! partition 0   accounts[1003]: (8 minus)   checks, holds ------------------> writes, next in the queue
//! partition 1   accounts[1005]: (8 add)     waits   \--> message: adds --/ message, next in the queue
//! ```
//!
//! Workers take no locks on records or keys, and never wait for a call before the end of the graph. The call with the
//! lowest timestamp of all that are left is at the head of all its queues, and its actions wait in no circle, so
//! somebody can always go on. What is left of latches: whoever is at a partition holds its mutex, which others try and
//! go past ([`Partition::progress`]); a call in one piece that inserts rows latches indexes for as long as a key goes
//! in.

use crate::composite::InTurn;
use crate::construction::Material;
use crate::graph::{
    Action, CallNode, Executable, Graph, Kind, NONE, Partition, Progress, Stamped, UnwrittenByQueue,
};
use crate::record_action::{ActionRunner, DependentCall, Run};
use crate::standing::{Next, Standing};
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_engine::eager::Ground;
use fabius_engine::eager::intake::Outcomes;
use fabius_engine::eager::plan::Schema;
use fabius_engine::eager::turn::{Order, Turn};
use fabius_env::schedule;
use fabius_storage::index::prefetch;
use fabius_value::Error;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

/// Queues between one stage of bringing rows near and the next.
const STRIDE: usize = 4;
/// Calls between one stage of bringing rows near and the next.
const CALL_STRIDE: u32 = 2;

/// What the execution of a graph stands on.
#[derive(Clone, Copy)]
pub struct Grounds<'a> {
    /// What graphs are built from.
    pub material: &'a Material<'a>,
    /// Order, log, answers.
    pub ground: &'a Ground,
    /// The definitions in force.
    pub schema: &'a Schema,
}

/// What the end of an action decides about its call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decision {
    /// Nothing: that has been decided already, or it is others that do.
    Open,
    /// Nothing can abort it any more.
    Commits,
    /// One of the turns has failed.
    Aborts,
}

/// A thread that executes parts of a graph.
pub struct Worker<'w> {
    graph: &'w Graph<'w>,
    ground: &'w Ground,
    guard: &'w Guard,
    calls: Turn<'w, InTurn>,
    actions: ActionRunner<'w>,
    /// The partition that it is at,
    partition: u32,
    /// and what has become executable there since it is.
    ready: Vec<Executable>,
}

impl<'w> Worker<'w> {
    /// A worker with memory for the graph's time.
    pub fn new(grounds: Grounds<'w>, graph: &'w Graph<'w>, guard: &'w Guard, arena: &'w Bump) -> Worker<'w> {
        let Grounds { material, ground, schema } = grounds;
        let shared = &ground.shared;
        // Each call has a time of its own.
        let time_us = 0;
        Worker {
            graph,
            ground,
            calls: Turn::new(shared, schema, guard, arena, Order::Logged, time_us, InTurn),
            actions: ActionRunner::new(material.decompositions, graph, (guard, arena), shared),
            partition: 0,
            ready: Vec::new(),
            guard,
        }
    }

    /// Executes what is executable of the partitions that nobody is at, `first` to begin with; how many actions, and
    /// whole calls, that was.
    pub fn work(&mut self, first: usize) -> usize {
        let count = self.graph.partitions.len();
        let mut ended = 0;
        for number in (first..first + count).map(|number| number % count) {
            let partition = &self.graph.partitions[number];
            let Some(mut progress) = partition.progress.try_lock() else { continue };
            self.partition = number as u32;
            while let Some(next) = self.next(partition, &mut progress.begun) {
                ended += self.execute(next, &mut progress);
            }
        }
        ended
    }

    /// Ends with the graph, whose calls have been committed.
    pub fn end(self) {
        self.actions.end(self.ground.shared.collect(), self.guard);
        self.calls.end();
    }

    /// What comes next in a partition of which so much has begun: the rest of a call that has just gone on, whose rows
    /// are near.
    fn next(&mut self, partition: &Partition, begun: &mut usize) -> Option<Executable> {
        if let Some(ready) = self.ready.pop() {
            return Some(ready);
        }
        let Some(next) = partition.starts.get(*begun) else { return partition.inbox.pop() };
        self.bring_near(|ahead| match partition.starts.get(*begun + ahead * STRIDE)? {
            Executable::Actions(first) => {
                let action = &self.graph.actions[*first as usize];
                let is_of_few =
                    self.graph.calls[action.call as usize].kind == Kind::Dependent && action.list == u16::MAX;
                Some(if is_of_few {
                    self.graph.actions_of(action.call)
                } else {
                    std::slice::from_ref(action)
                })
            }
            Executable::Call(_) | Executable::Write(_) | Executable::Leave(_) => None,
        });
        *begun += 1;
        Some(*next)
    }

    /// Asks for the rows of actions that are executed soon, step by step; for what is written to be this core's alone:
    /// whoever built the graph may have looked at it on another.
    fn bring_near(&self, later: impl Fn(usize) -> Option<&'w [Action]>) {
        let records = |ahead: usize| {
            let queues = later(ahead).unwrap_or_default().iter().map(|action| self.graph.queue_of(action));
            queues.filter_map(|queue| Some((queue.record()?, queue.is_written)))
        };
        for (record, is_written) in records(2) {
            if is_written { record.prefetch_to_write() } else { record.prefetch() }
        }
        for (record, is_written) in records(1) {
            // SAFETY: linked versions stay readable while the epoch is pinned.
            let Some(newest) = (unsafe { record.head().as_ref() }) else { continue };
            if is_written { newest.prefetch_twins() } else { newest.prefetch() }
        }
    }

    /// Executes what is executable, and all that is so behind it in its queue; how much that was.
    fn execute(&mut self, what: Executable, progress: &mut Progress) -> usize {
        let graph = self.graph;
        match what {
            Executable::Call(call) => {
                schedule::point("call");
                // Calls that wait for others come in their order, most often.
                self.bring_near(|ahead| {
                    let later = call + ahead as u32 * CALL_STRIDE;
                    graph.calls.get(later as usize).map(|_| graph.actions_of(later))
                });
                let Stamped { call: what, seq, time_us, batch } = &graph.calls[call as usize].stamped;
                let place = batch.map_or(0, |(_, place)| place);
                let outcomes = self.calls.run_in_turn(*seq, what, place, *time_us);
                if let Some((work, _)) = batch {
                    self.ground.end(work, 1, outcomes);
                }
                graph.actions_of(call).iter().for_each(|action| self.pass(action));
                1
            }
            Executable::Actions(first) | Executable::Write(first) | Executable::Leave(first) => {
                self.run_queue(first, what, &mut progress.unwritten)
            }
        }
    }

    /// Goes on with a queue from the action at its head on, up to one that waits for others; how many actions left it.
    fn run_queue(&mut self, first: u32, mut what: Executable, unwritten: &mut UnwrittenByQueue) -> usize {
        let graph = self.graph;
        let number = graph.actions[first as usize].queue;
        let queue = &graph.queues[number as usize];
        let mut run = self.actions.begin(queue);
        // Most queues are gone through in one run.
        if first != queue.first || !matches!(what, Executable::Actions(_)) {
            let left = unwritten.find_entry(queue.hash, |(of, _)| *of == number);
            left.into_iter().for_each(|left| self.actions.resume(&mut run, left.remove().0.1));
        }
        let (mut at, mut ended) = (first, 0);
        loop {
            let action = &graph.actions[at as usize];
            let node = &graph.calls[action.call as usize];
            if node.kind == Kind::Independent {
                self.actions.run_independent(&mut run, action, node);
            } else if !self.run_dependent(&mut run, at, what) {
                self.keep(run, number, unwritten);
                return ended;
            }
            ended += 1;
            at = action.next;
            let Some(next) = graph.actions.get(at as usize) else {
                self.actions.write(run);
                self.end_queue(number);
                return ended;
            };
            prefetch(next);
            what = match graph.calls[next.call as usize].kind {
                Kind::Independent => Executable::Actions(at),
                Kind::Dependent => match graph.reach(at) {
                    Some((_, executable)) => executable,
                    None => {
                        self.keep(run, number, unwritten);
                        return ended;
                    }
                },
                Kind::Whole => {
                    self.actions.write(run);
                    self.reach(at);
                    return ended;
                }
            };
        }
    }

    /// Ends a run of a queue's actions before one that waits.
    fn keep(&mut self, run: Run<'w>, number: u32, unwritten: &mut UnwrittenByQueue) {
        let hash = |of: u32| self.graph.queues[of as usize].hash;
        if let Some(left) = self.actions.keep(run) {
            unwritten.insert_unique(hash(number), (number, left), |(of, _)| hash(*of));
        }
    }

    /// Does what can be done about a dependent action at the head of its queue; whether it leaves the queue.
    fn run_dependent(&mut self, run: &mut Run<'w>, at: u32, what: Executable) -> bool {
        let graph = self.graph;
        let action = &graph.actions[at as usize];
        let call = self.actions.dependent(action.call);
        match what {
            Executable::Actions(_) => {
                let slice = call.slice_of(action);
                let turn = if slice.has_turns { call.turn(action, at) } else { 0 };
                let standing = graph.standing(call.node, at - call.node.first_action);
                if !slice.begins || standing.begin() == Next::Run {
                    schedule::point("action");
                    match self.actions.run_dependent(run, action, turn, call) {
                        Ok(()) => {
                            run.disabled()
                                .for_each(|other| self.disable(call, other, slice.has_turns.then_some(turn)));
                            match self.end_action(call, at) {
                                Decision::Open if slice.holds => return false,
                                Decision::Commits => run.write_held(),
                                Decision::Open | Decision::Aborts => run.drop_held(),
                            }
                        }
                        Err((rank, error)) if slice.has_turns => {
                            standing.fail();
                            graph.turns_of(call.node, action.slice).fail(rank, error);
                            self.end_turn(call, at);
                        }
                        Err((_, error)) => self.abort(call, at, error),
                    }
                }
            }
            Executable::Write(_) => run.write_held(),
            Executable::Leave(_) => run.drop_held(),
            Executable::Call(_) => unreachable!("a call in one piece is no action"),
        }
        if call.node.stamped.call.wants_result {
            self.leave(run, call);
        }
        true
    }

    /// A dependent call's action has come to its end, so what waits for this turn of it goes on; gives what that
    /// decides.
    fn end_action(&mut self, call: DependentCall<'w>, at: u32) -> Decision {
        let action = &self.graph.actions[at as usize];
        let slice = call.slice_of(action);
        if !slice.has_turns {
            return self.end_all(call, at);
        }
        let turn = call.turn(action, at);
        for follower in slice.followers.iter().filter(|follower| follower.is_same_turn) {
            self.follow(call, call.turns_of(follower.action).start + turn);
        }
        self.end_turn(call, at)
    }

    /// A turn has come to its end; gives what that decides.
    fn end_turn(&mut self, call: DependentCall<'w>, at: u32) -> Decision {
        let turns = self.graph.turns_of(call.node, self.graph.actions[at as usize].slice);
        match turns.end() {
            None => Decision::Open,
            Some(Ok(())) => self.end_all(call, at),
            Some(Err(error)) => {
                self.abort(call, at, error);
                Decision::Aborts
            }
        }
    }

    /// An action, with all its turns, has come to its end, the last of them this one: what waits for it goes on, and
    /// what holds writes if nothing can abort the call any more; gives whether that is so since.
    fn end_all(&mut self, call: DependentCall<'w>, at: u32) -> Decision {
        let number = self.graph.actions[at as usize].slice;
        let followers = &call.dependent.actions[usize::from(number)].followers;
        for follower in followers.iter().filter(|follower| !follower.is_same_turn) {
            call.turns_of(follower.action).for_each(|follower| self.follow(call, follower));
        }
        if call.dependent.last_deciding != Some(number.into()) {
            return Decision::Open;
        }
        for holding in call.dependent.holding.iter().flat_map(|holding| call.turns_of(*holding)) {
            if holding != at && !self.standing(call, holding).is_disabled() {
                self.send(holding, Executable::Write);
            }
        }
        Decision::Commits
    }

    /// One of the actions has ended that an action comes after.
    fn follow(&mut self, call: DependentCall<'w>, at: u32) {
        match self.standing(call, at).follow() {
            Next::Run => self.send(at, Executable::Actions),
            Next::End => {
                self.end_action(call, at);
            }
            Next::Leave | Next::Nothing => {}
        }
    }

    /// A branch is not taken, as one turn of an action, or an action without turns, has found out: another action comes
    /// to nothing, in that turn or as a whole.
    fn disable(&mut self, call: DependentCall<'w>, action: u32, turn: Option<u32>) {
        let turns = call.turns_of(action);
        let turns = turn.map_or(turns.clone(), |turn| turns.start + turn..turns.start + turn + 1);
        for at in turns {
            if self.standing(call, at).disable() == Next::Leave {
                self.send(at, Executable::Leave);
            }
        }
    }

    /// A dependent call aborts: its other actions come to nothing, and who waits for it is told why.
    fn abort(&mut self, call: DependentCall<'w>, at: u32, error: Error) {
        let place = call.node.stamped.batch.map_or(0, |(_, place)| place);
        let counters = &self.ground.foundation().counters;
        counters.aborted.add(1);
        self.answer(call.node, Outcomes { aborts: vec![(place, error)], ..Outcomes::default() });
        for (slice, action) in (0..).zip(&call.dependent.actions) {
            for other in call.turns_of(slice).filter(|other| *other != at) {
                if self.standing(call, other).abort(action.holds, action.begins) == Next::Leave {
                    self.send(other, Executable::Leave);
                }
            }
        }
    }

    /// How far an action is.
    fn standing(&self, call: DependentCall<'w>, at: u32) -> &'w Standing {
        self.graph.standing(call.node, at - call.node.first_action)
    }

    /// An action has left its queue whose call wants results: they are computed when the last has.
    fn leave(&mut self, run: &mut Run<'w>, call: DependentCall<'w>) {
        let node = call.node;
        let is_last = node.waits.fetch_sub(1, AcqRel) == 1;
        if is_last && !node.is_answered.load(Acquire) {
            let mut outcomes = Outcomes::default();
            let place = node.stamped.batch.map_or(0, |(_, place)| place);
            outcomes.returned.push(place, self.actions.results(run, call));
            let counters = &self.ground.foundation().counters;
            counters.committed.add(1);
            counters.immediate.add(1);
            self.answer(node, outcomes);
        }
    }

    /// What has become of a dependent call, before its graph is committed.
    fn answer(&self, node: &CallNode<'_>, outcomes: Outcomes) {
        node.is_answered.store(true, Release);
        if let Some((work, _)) = node.stamped.batch {
            self.ground.end(work, 1, Outcomes { last: node.stamped.seq, ..outcomes });
        }
    }

    /// Something can be done about an action that waits at the head of its queue: sends that to its partition.
    fn send(&mut self, action: u32, what: impl Fn(u32) -> Executable) {
        let partition = self.graph.queue_of(&self.graph.actions[action as usize]).partition;
        if partition == self.partition {
            self.ready.push(what(action));
        } else {
            self.graph.partitions[partition as usize].inbox.push(what(action));
            schedule::point("message");
        }
    }

    /// An action of a whole call has ended: the next of its queue comes to the head.
    fn pass(&self, action: &Action) {
        match action.next {
            NONE => self.end_queue(action.queue),
            next => self.reach(next),
        }
    }

    /// All actions of a queue have ended, and the record has been written: the next stretch of its range may begin.
    #[inline]
    fn end_queue(&self, number: u32) {
        if self.graph.queues[number as usize].stretch.is_some() {
            self.begin_after(number);
        }
    }

    #[inline(never)]
    fn begin_after(&self, ended: u32) {
        self.graph.follow(ended).for_each(|queue| self.reach(queue.first));
    }

    /// An action has come to the head of its queue.
    fn reach(&self, action: u32) {
        if let Some((partition, executable)) = self.graph.reach(action) {
            self.graph.partitions[partition as usize].inbox.push(executable);
            schedule::point("message");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::accounts::{Named, with_grounds};
    use crate::partitioning::partition;

    /// The actions of each call that have run, by the places of their accounts in the call, and whether it has come to
    /// an end before its graph was committed.
    fn run(partitions: usize, calls: &[Named<'_>]) -> Vec<(Vec<usize>, bool)> {
        with_grounds(8, calls, |graph, grounds| {
            partition(graph, partitions);
            let graph = &*graph;
            let (guard, arena) = (crossbeam_epoch::pin(), Bump::new());
            let mut worker = Worker::new(grounds, graph, &guard, &arena);
            while !graph.has_ended() {
                let ended = worker.work(0);
                assert!(ended > 0, "{} are left, and nothing can be executed", graph.open.load(Acquire));
                graph.end(ended);
            }
            let of_call = |(number, node): (u32, &CallNode<'_>)| {
                assert_eq!(node.kind, Kind::Dependent);
                let count = graph.actions_of(number).len() as u32;
                let has_run = |number: &u32| !graph.standing(node, *number).is_disabled();
                let ran = (0..count).filter(has_run).map(|number| number as usize).collect();
                (ran, node.is_answered.load(Acquire))
            };
            (0..).zip(&graph.calls).map(of_call).collect()
        })
    }

    /// Goal: who decides disables what comes to nothing (sections 3.3.1 and 4.2.3): the second action of a call that
    /// aborts, and that of a branch that is not taken, leave their queues without running, and what is behind them goes
    /// on; of turns, those do for which the branch is not taken.
    #[test]
    fn what_comes_to_nothing_does_not_run() {
        for partitions in 1..4 {
            // Every account has 0, and a value is 1.
            let calls: [Named<'_>; 6] = [
                ("pay", &[0, 7]),
                ("choose", &[0, 7, 1]),
                ("pay", &[7, 1]),
                ("choose", &[7, 2, 3]),
                ("pay", &[2, 7]),
                // Accounts by turns, and marks: of them that of the account that has something.
                ("mark", &[6, 7, 5]),
            ];
            let expected = [(vec![0], true), (vec![0, 1], false), (vec![0, 1], false), (vec![0, 1], false)];
            let found = run(partitions, &calls);
            assert_eq!(found[..4], expected, "{partitions} partitions");
            assert_eq!(found[4], (vec![0, 1], false), "{partitions} partitions");
            assert_eq!(found[5], (vec![0, 1, 2, 4], false), "{partitions} partitions");
        }
    }
}
