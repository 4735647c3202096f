//! A turn: one thread runs a chunk of calls, each from beginning to end.
//!
//! ```text
//! attempt --> reads, writes aside --> take a seq, log --> install --> release --> promised
//!    ^             |                       |
//!    \-- refused --/          aborted calls go this way too, and install nothing
//! ```
//!
//! An aborted call takes a seq and is logged like any other, at the same point, so that its outcome is
//! that of its place in the order. Calls of programs that only read are logged only if they have an
//! idempotency key. A call that is refused once it has taken a seq leaves that void.

use crate::ahead::{Ahead, Coming};
use crate::eager::commit::{Unread, abandon, install};
use crate::eager::control::Control;
use crate::eager::intake::Outcomes;
use crate::eager::place::Place;
use crate::eager::plan::{Plan, Schema};
use crate::eager::sequencer::Taken;
use crate::eager::shared::Shared;
use crate::eager::trail::Trail;
use crate::eager::transaction::Transaction;
use crate::entry::{self, Call};
use crate::idempotency::First;
use crate::random::CallRandom;
use crate::reader::SnapshotContext;
use crate::{Procedure, Ticket};
use bumpalo::Bump;
use crossbeam_epoch::Guard;
use fabius_env::schedule;
use fabius_program::arguments::{ArgumentPlace, DecodedArguments};
use fabius_program::context::Stop;
use fabius_program::execute::{self, FrameFor};
use fabius_value::{Error, Seq};
use parking_lot::{RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;

/// How often a call is rehearsed before it is given up on.
pub const REHEARSALS_MAX: u32 = 32;

/// Where a call's place in the order comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The call takes the next place, and goes to the log there, when it ends.
    Now,
    /// It is in the log: every call has a place, also one that repeats another.
    Logged,
    /// It has this place already, in the log too.
    At(Seq),
    /// It has this place already, and whoever gave it that says when it is installed.
    Placed(Seq),
}

/// A turn in progress.
pub struct Turn<'a, C: Control<'a>> {
    shared: &'a Shared,
    schema: &'a Schema,
    guard: &'a Guard,
    arena: &'a Bump,
    order: Order,
    time_us: i64,
    unread: Unread,
    transaction: Transaction<'a, C>,
    /// What the last call has run: most often the next one does too.
    last_called: Option<Called<'a>>,
    /// The arguments of the call that runs, and where they are, if they decode.
    decoded: DecodedArguments<'a>,
    place: Result<ArgumentPlace, Error>,
    frame: FrameFor<'a, Transaction<'a, C>>,
    snapshot_frame: FrameFor<'a, SnapshotContext<'a>>,
    trail: Trail<'a>,
    payload: Vec<u8>,
    /// The seq that the last attempt took and was refused at.
    void: Option<Seq>,
    /// Calls that commute, to be logged together.
    group: Vec<u8>,
    group_calls: u32,
    outcomes: Outcomes,
    committed: u64,
    aborted: u64,
    retries: u64,
}

/// What calls of one procedure run.
#[derive(Clone, Copy)]
struct Called<'a> {
    procedure: &'a Procedure,
    plan: &'a Plan,
}

/// Whether others run beside a call: it holds what all share, or what one alone can have.
enum Company<'a> {
    Together { _guard: RwLockReadGuard<'a, ()> },
    Alone { _guard: RwLockWriteGuard<'a, ()> },
    Neither,
}

impl<'a> Company<'a> {
    fn is_alone(&self) -> bool {
        matches!(self, Company::Alone { .. })
    }

    /// Waits until no other call runs.
    fn leave(&mut self, shared: &'a Shared) {
        *self = Company::Neither;
        *self = Company::Alone { _guard: shared.alone.write() };
    }

    /// Lets others run beside the next call.
    fn rejoin(&mut self, shared: &'a Shared) {
        if !matches!(self, Company::Together { .. }) {
            *self = Company::Neither;
            *self = Company::Together { _guard: shared.alone.read() };
        }
    }
}

/// The control has refused an attempt: the call has to begin again.
struct Refused;

impl From<Stop> for Refused {
    fn from(stop: Stop) -> Refused {
        match stop {
            Stop::Restart => Refused,
            Stop::Abort(_) | Stop::Blocked => unreachable!("a control only restarts calls"),
        }
    }
}

/// How an attempt ended that was not given up.
struct Outcome {
    seq: Seq,
    abort: Option<Error>,
    ticket: Option<Arc<Ticket>>,
}

impl<'a, C: Control<'a>> Turn<'a, C> {
    /// A turn at `time_us`.
    pub fn new(
        shared: &'a Shared,
        schema: &'a Schema,
        guard: &'a Guard,
        arena: &'a Bump,
        order: Order,
        time_us: i64,
        control: C,
    ) -> Turn<'a, C> {
        let held = if control.holds_back() { shared.foundation.promised() } else { Seq(u64::MAX) };
        let unread = Unread { collected: shared.collected(), held };
        Turn {
            shared,
            schema,
            guard,
            arena,
            order,
            time_us,
            unread,
            transaction: Transaction::new(shared, schema, guard, arena, time_us, control),
            last_called: None,
            decoded: DecodedArguments::default(),
            place: Ok(ArgumentPlace::default()),
            frame: FrameFor::<Transaction<'a, C>>::default(),
            snapshot_frame: FrameFor::<SnapshotContext<'a>>::default(),
            trail: Trail::default(),
            payload: Vec::new(),
            void: None,
            group: Vec::new(),
            group_calls: 0,
            outcomes: Outcomes::default(),
            committed: 0,
            aborted: 0,
            retries: 0,
        }
    }

    /// Runs encoded calls, which have these places in their batch, until the phase ends; gives how many it has begun.
    pub fn run(&mut self, calls: &'a [u8], place: impl Fn(u32) -> u32) -> u32 {
        let shared = self.shared;
        let mut company = Company::Together { _guard: shared.alone.read() };
        // What a call leaves behind that panics bears this thread's number, and nobody may run alone beside it: the
        // engine stops before others can have either.
        shared.foundation.watched(|| self.run_beside(calls, place, &mut company))
    }

    fn run_beside(
        &mut self,
        mut calls: &'a [u8],
        place: impl Fn(u32) -> u32,
        company: &mut Company<'a>,
    ) -> u32 {
        let mut at = 0;
        let schema = self.schema;
        let mut ahead = Ahead::new(&schema.definitions, self.guard);
        let looks_ahead = ahead.is_worth_while();
        let mut to_come = calls;
        while !calls.is_empty() && self.outcomes.failure.is_none() {
            let bytes = calls;
            let call = entry::take_call(&mut calls).expect("calls are checked when they come in");
            let bytes = &bytes[..bytes.len() - calls.len()];
            if looks_ahead {
                while ahead.is_short()
                    && let Some(call) = entry::take_call(&mut to_come)
                {
                    ahead.look(call);
                }
                let mut coming = ahead.proceed().expect("a call that is to come was looked at");
                self.receive(&mut coming);
                ahead.recycle(coming);
            } else {
                self.decode(&call);
            }
            if self.draws_random(&call) {
                // Nobody else takes a seq while it runs, so its own is known.
                self.log_group();
                company.leave(self.shared);
                self.call(&call, bytes, place(at), Some(self.shared.sequencer.next()), company);
            } else {
                self.call(&call, bytes, place(at), None, company);
            }
            company.rejoin(self.shared);
            at += 1;
            if self.transaction.control.is_ending() {
                break;
            }
        }
        self.log_group();
        at
    }

    /// Gives those calls their places that commute with all that run beside them: together, since nobody
    /// can tell in which order they ran.
    fn log_group(&mut self) {
        if self.group_calls == 0 {
            return;
        }
        let shared = self.shared;
        match shared.sequencer.append_run(&shared.foundation, self.group_calls, &self.group) {
            Ok(first) => {
                let last = Seq(first.0 + u64::from(self.group_calls) - 1);
                self.outcomes.last = self.outcomes.last.max(last);
            }
            Err(failure) => {
                // What they do may be in some place already from which it cannot be taken back.
                shared.foundation.fail(failure.clone());
                self.outcomes.failure = Some(failure);
            }
        }
        self.group.clear();
        self.group_calls = 0;
    }

    /// Runs a call that has its place already, in the log too, with its logged time; gives what became of
    /// it. The control refuses nothing.
    pub fn run_at(&mut self, mut bytes: &'a [u8], place: u32, seq: Seq, time_us: i64) -> Outcomes {
        self.order = Order::At(seq);
        self.transaction.set_time(time_us);
        let whole = bytes;
        let call = entry::take_call(&mut bytes).expect("calls are checked when they come in");
        self.decode(&call);
        self.call(&call, whole, place, Some(seq), &mut Company::Neither);
        std::mem::take(&mut self.outcomes)
    }

    /// Runs a call only for what its control is told of it, and takes everything back; begins again if rows change
    /// while a scan looks at them, and gives `None` if they have done so [`REHEARSALS_MAX`] times. It must not draw
    /// random numbers.
    ///
    /// # Errors
    /// Why it aborts.
    pub fn rehearse(&mut self, mut bytes: &'a [u8]) -> Option<Result<(), Error>> {
        let call = entry::take_call(&mut bytes).expect("calls are checked when they come in");
        self.decode(&call);
        self.transaction.control.begin();
        let called = match self.called(&call) {
            Ok(called) => called,
            Err(gone) => return Some(Err(gone)),
        };
        for _ in 0..REHEARSALS_MAX {
            let ended = self.execute(called, call.wants_result, None);
            self.give_up(self.shared.sequencer.issued());
            match ended {
                Ok(result) => return Some(result),
                Err(Refused) => self.transaction.control.begin_again(),
            }
        }
        None
    }

    /// Readers see none of the calls that follow, or all of them, and the next place in the order is behind `before`:
    /// of the versions that they leave of a row, the last is enough.
    pub fn is_seen_whole(&mut self, before: Seq) {
        self.unread.held = before;
    }

    /// What keeps the turn's calls and others apart.
    pub fn control(&mut self) -> &mut C {
        &mut self.transaction.control
    }

    /// Runs one call that was logged at `at` before it began, or that needs no place because it only
    /// reads. Nobody who runs meanwhile may be in conflict with it, and calls in conflict run in the
    /// order of their seqs. Whoever logged it says when it is installed.
    pub fn run_placed(&mut self, at: Option<Seq>, coming: &mut Coming<'a>, place: u32) {
        self.order = at.map_or(Order::Now, Order::Placed);
        self.receive(coming);
        self.call(&coming.call, &[], place, at, &mut Company::Neither);
    }

    /// Runs a call that was logged at `seq`, with its logged time, and has not been looked at; gives what became of it.
    pub fn run_in_turn(&mut self, seq: Seq, call: &Call<'a>, place: u32, time_us: i64) -> Outcomes {
        self.order = Order::Placed(seq);
        self.transaction.set_time(time_us);
        self.decode(call);
        self.call(call, &[], place, Some(seq), &mut Company::Neither);
        std::mem::take(&mut self.outcomes)
    }

    /// Takes the arguments of the call that runs next, and leaves buffers in their place.
    fn receive(&mut self, coming: &mut Coming<'a>) {
        coming.swap(&mut self.decoded, &mut self.place, &mut self.transaction.expected);
    }

    /// Ends the turn: what became of its calls.
    pub fn end(self) -> Outcomes {
        let counters = &self.shared.foundation.counters;
        counters.committed.add(self.committed);
        counters.immediate.add(self.committed);
        counters.aborted.add(self.aborted);
        counters.retries.add(self.retries);
        self.trail.end(self.shared.collect(), self.guard);
        self.outcomes
    }

    /// What a call runs.
    fn called(&mut self, call: &Call<'_>) -> Result<Called<'a>, Error> {
        if let Some(last) = self.last_called
            && last.procedure.id == call.procedure
        {
            return Ok(last);
        }
        let procedure = &**self.schema.definitions.procedure(call.procedure)?;
        let plan = self.schema.plan(procedure.id.0 as usize);
        Ok(*self.last_called.insert(Called { procedure, plan }))
    }

    fn decode(&mut self, call: &Call<'a>) {
        self.decoded.clear();
        self.place = match self.called(call) {
            Ok(called) => self.decoded.push(&called.procedure.signature, call.arguments),
            // The attempt to run it says so.
            Err(_) => Ok(ArgumentPlace::default()),
        };
    }

    fn draws_random(&mut self, call: &Call<'_>) -> bool {
        self.called(call).is_ok_and(|called| called.plan.draws_random)
    }

    fn call(
        &mut self,
        call: &Call<'a>,
        bytes: &[u8],
        place: u32,
        known: Option<Seq>,
        company: &mut Company<'a>,
    ) {
        self.transaction.control.begin();
        let mut refused = 0;
        let ended = loop {
            match self.attempt(call, bytes, place, known) {
                Ok(ended) => break ended,
                Err(Refused) if self.transaction.control.is_put_off() => {
                    self.withdraw();
                    self.outcomes.put_off.push(place, bytes);
                    return;
                }
                Err(Refused) => {
                    refused += 1;
                    self.retries += 1;
                    self.withdraw();
                    // What it is refused for may never be given back.
                    if let Some(failure) = self.shared.foundation.failure() {
                        break Err(failure.clone());
                    }
                    if refused >= self.transaction.control.attempts_max() {
                        assert!(!company.is_alone(), "a call that runs alone is not refused");
                        company.leave(self.shared);
                    }
                    self.transaction.control.begin_again();
                }
            }
        };
        match ended {
            Ok(outcome) => {
                self.outcomes.last = self.outcomes.last.max(outcome.seq);
                self.outcomes.aborts.extend(outcome.abort.map(|error| (place, error)));
                self.outcomes.tickets.extend(outcome.ticket.map(|ticket| (place, ticket)));
            }
            Err(failure) => self.outcomes.failure = Some(failure),
        }
    }

    /// Takes back what a call has made.
    fn give_up(&mut self, seq: Seq) {
        abandon(&self.transaction.workspace, seq, &self.shared.purge);
        self.transaction.release();
    }

    /// Takes back what a refused attempt has made, and passes over the seq that it took.
    fn withdraw(&mut self) {
        self.give_up(self.shared.sequencer.issued());
        if let Some(seq) = self.void.take()
            && !self.transaction.control.holds_back()
        {
            schedule::point("void");
            self.shared.sequencer.installed(seq, &self.shared.foundation);
        }
    }

    /// Runs a call from the beginning to its end, or until it has to give way. The inner error says that
    /// the log has ended, and the outcome is not known.
    fn attempt(
        &mut self,
        call: &Call<'a>,
        bytes: &[u8],
        place: u32,
        known: Option<Seq>,
    ) -> Result<Result<Outcome, Error>, Refused> {
        let shared = self.shared;
        if let Some(key) = call.key {
            self.transaction.claim_key(key)?;
            // Its own seq is this or a later one: what is too old now will be too old when the log is replayed.
            let own = known.unwrap_or_else(|| shared.sequencer.next());
            let oldest = self.schema.definitions.key_window.oldest(own);
            let first = shared.foundation.keys.lock().get(key, oldest).cloned();
            if let Some(first) = first {
                self.transaction.release();
                match self.order {
                    Order::Now | Order::Placed(_) => {}
                    Order::Logged => shared.sequencer.installed(shared.sequencer.take(), &shared.foundation),
                    Order::At(seq) => shared.sequencer.installed(seq, &shared.foundation),
                }
                return Ok(Ok(Outcome { seq: first.seq, abort: first.abort, ticket: first.ticket }));
            }
        }
        let called = self.called(call);
        let only_reads = called.as_ref().is_ok_and(|called| called.procedure.is_read_only);
        if let Ok(Called { procedure, .. }) = called
            && only_reads
            && call.key.is_none()
            && known.is_none()
            && self.order == Order::Now
            && self.transaction.control.holds_back()
        {
            return Ok(Ok(self.look_back(procedure, call, place)));
        }
        let result = match called {
            Ok(called) => self.execute(called, call.wants_result, known)?,
            Err(error) => Err(error),
        };
        let has_place = self.order != Order::Now || call.key.is_some() || !only_reads;
        if result.is_err() {
            self.transaction.control.aborts()?;
            self.transaction.workspace.writes.clear();
        } else if self.order == Order::Now
            && !only_reads
            && call.key.is_none()
            && known.is_none()
            && self.transaction.control.commutes(&self.transaction.workspace)
        {
            let Transaction { control, workspace, .. } = &mut self.transaction;
            control.takes(workspace, Seq::ZERO)?;
            if self.group_calls == 0 {
                entry::begin_calls(self.time_us, &mut self.group);
            }
            self.group.extend_from_slice(bytes);
            self.group_calls += 1;
            self.transaction.release();
            self.committed += 1;
            let ticket = self.tell(call, place);
            return Ok(Ok(Outcome { seq: Seq::ZERO, abort: None, ticket }));
        }
        let in_order = match (has_place, self.order) {
            (true, Order::Now) => {
                self.payload.clear();
                entry::begin_calls(self.time_us, &mut self.payload);
                self.payload.extend_from_slice(bytes);
                Place::Next(&self.payload)
            }
            (true, Order::Logged) => Place::Logged,
            (true, Order::At(seq) | Order::Placed(seq)) => Place::At(seq),
            (false, _) => Place::None,
        };
        let Transaction { control, workspace, .. } = &mut self.transaction;
        let void = &mut self.void;
        let mut take = |is_valid: &mut dyn FnMut() -> bool| match in_order.take(shared, is_valid)? {
            Taken::At(seq) => Ok(Some(seq)),
            Taken::Refused(seq) => {
                *void = seq;
                Ok(None)
            }
        };
        let seq = match control.certify(workspace, &mut take) {
            Ok(Some(seq)) => seq,
            Ok(None) => return Err(Refused),
            Err(failure) => {
                self.give_up(shared.sequencer.issued());
                return Ok(Err(failure));
            }
        };
        schedule::point("logged");
        let workspace = &self.transaction.workspace;
        let outcome = match result {
            Ok(()) => {
                let Transaction { control, workspace, .. } = &mut self.transaction;
                let taken = control.takes(workspace, seq);
                assert!(taken.is_ok(), "a call is not refused once it is in the log");
                install(workspace, seq, self.unread, &mut self.trail, &shared.purge);
                self.committed += 1;
                Outcome { seq, abort: None, ticket: self.tell(call, place) }
            }
            Err(error) => {
                abandon(workspace, seq, &shared.purge);
                self.aborted += 1;
                Outcome { seq, abort: Some(error), ticket: None }
            }
        };
        if let Some(key) = call.key {
            let first = First { seq, abort: outcome.abort.clone(), ticket: outcome.ticket.clone() };
            // Calls that still run may have lower seqs, but none that has been promised.
            let oldest = self.schema.definitions.key_window.oldest(shared.foundation.promised());
            shared.foundation.keys.lock().remember(key, first, oldest);
        }
        schedule::point("release");
        self.transaction.release();
        let tells = !matches!(self.order, Order::Placed(_)) && !self.transaction.control.holds_back();
        if has_place && tells {
            shared.sequencer.installed(seq, &shared.foundation);
        }
        Ok(Ok(outcome))
    }

    /// Runs a call that only reads before all calls of this phase, at the seq where readers stand: nobody has been
    /// told of any call of the phase, so that it comes after all that its caller can know of.
    fn look_back(&mut self, procedure: &'a Procedure, call: &Call<'a>, place: u32) -> Outcome {
        let seq = self.shared.foundation.promised();
        let definitions = &self.schema.definitions;
        let mut context = SnapshotContext::new(definitions, self.guard, seq, self.time_us);
        let code = procedure.code(call.wants_result, &definitions.catalog);
        let arguments = self.place.clone().map_err(Stop::Abort);
        let ended = arguments.and_then(|arguments| {
            self.snapshot_frame.begin(code, self.decoded.at(arguments), self.arena);
            execute::run(&mut self.snapshot_frame, code, &mut context, self.arena)
        });
        match ended {
            Ok(()) => {
                self.committed += 1;
                if call.wants_result {
                    self.outcomes.returned.push(place, self.snapshot_frame.returned(code));
                }
                Outcome { seq, abort: None, ticket: None }
            }
            Err(Stop::Abort(error)) => {
                self.aborted += 1;
                Outcome { seq, abort: Some(error), ticket: None }
            }
            Err(Stop::Restart | Stop::Blocked) => unreachable!("a snapshot has every value"),
        }
    }

    /// Notes what a call has returned that commits, if it wants its result; gives a ticket if it is to be remembered
    /// under a key.
    fn tell(&mut self, call: &Call<'a>, place: u32) -> Option<Arc<Ticket>> {
        if !call.wants_result {
            return None;
        }
        let called = self.called(call).expect("a call that commits has a procedure");
        let values = self.frame.returned(&called.procedure.whole);
        if call.key.is_some() {
            return Some(Arc::new(Ticket::ready(Ok(values.collect()))));
        }
        self.outcomes.returned.push(place, values);
        None
    }

    /// Runs the program, and computes its results if they are wanted.
    fn execute(
        &mut self,
        Called { procedure, plan }: Called<'a>,
        wants_result: bool,
        known: Option<Seq>,
    ) -> Result<Result<(), Error>, Refused> {
        let code = procedure.code(wants_result, &self.schema.definitions.catalog);
        self.transaction.draws(known.map(CallRandom::new));
        self.transaction.control.runs(plan);
        match &self.place {
            Ok(place) => self.frame.begin(code, self.decoded.at(*place), self.arena),
            Err(error) => return Ok(Err(error.clone())),
        }
        match execute::run(&mut self.frame, code, &mut self.transaction, self.arena) {
            Ok(()) => Ok(Ok(())),
            Err(Stop::Abort(error)) => Ok(Err(error)),
            Err(Stop::Restart) => Err(Refused),
            Err(Stop::Blocked) => unreachable!("an eager engine has every value"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Foundation;
    use crate::eager::Ground;
    use fabius_env::SimulatedClock;
    use fabius_program::arguments::ArgumentWriter;
    use fabius_program::catalog::ProcedureId;
    use fabius_storage::Record;
    use fabius_value::TableId;

    /// A table, and a program that looks a row up in it.
    fn ground() -> Ground {
        let ground = Ground::new(Arc::new(Foundation::new(Arc::new(SimulatedClock::at(0)))));
        for text in ["table t { a: int, primary key (a) }", "procedure remove(a: int) { delete t[a] }"] {
            ground.amend(ground.gate.write(), &entry::encode_definition(text)).expect("a definition");
        }
        ground
    }

    /// A call of the program, encoded; there is no row.
    fn removal(a: i64) -> Vec<u8> {
        let (mut arguments, mut bytes) = (Vec::new(), Vec::new());
        ArgumentWriter::new(&mut arguments).int(a);
        let call = Call { procedure: ProcedureId(0), arguments: &arguments, key: None, wants_result: false };
        entry::encode_call(&call, &mut bytes);
        bytes
    }

    /// Refuses the first lookups, so many.
    struct Refusing(u32);

    /// A call that was refused so often runs alone.
    const ATTEMPTS_MAX: u32 = 3;

    impl<'a> Control<'a> for Refusing {
        fn attempts_max(&self) -> u32 {
            ATTEMPTS_MAX
        }

        fn begin_again(&mut self) {}

        fn looks_up(&mut self, _: TableId, _: &'a Record) -> Result<(), Stop> {
            let left = self.0.checked_sub(1);
            self.0 = left.unwrap_or_default();
            left.map_or(Ok(()), |_| Err(Stop::Restart))
        }
    }

    /// Runs two calls of which the first is refused so often.
    fn run_refused(refusals: u32) {
        let (ground, bytes) = (ground(), removal(7).repeat(2));
        let (schema, guard, arena) = (ground.gate.read(), crossbeam_epoch::pin(), Bump::new());
        let control = Refusing(refusals);
        let mut turn = Turn::new(&ground.shared, &schema, &guard, &arena, Order::Logged, 0, control);
        assert_eq!(turn.run(&bytes, |at| at), 2);
        assert_eq!((turn.retries, turn.aborted), (refusals.into(), 2), "there is no such row");
        turn.end();
    }

    /// Goal: a call begins again as often as it is refused while it has company, and once more alone.
    #[test]
    fn a_call_is_refused_so_often() {
        (0..=ATTEMPTS_MAX).for_each(run_refused);
    }

    /// Goal: the attempt after that many refusals is the call's last: nobody is left who could be in its way.
    #[test]
    #[should_panic(expected = "a call that runs alone is not refused")]
    fn a_call_that_was_refused_so_often_runs_alone() {
        run_refused(ATTEMPTS_MAX + 1);
    }

    /// Goal: a rehearsal that is disturbed begins again, so often and no more.
    #[test]
    fn rehearsals_are_bounded() {
        let (ground, bytes) = (ground(), removal(7));
        let (schema, guard, arena) = (ground.gate.read(), crossbeam_epoch::pin(), Bump::new());
        for (disturbances, is_done) in [(0, true), (REHEARSALS_MAX - 1, true), (REHEARSALS_MAX, false)] {
            let control = Refusing(disturbances);
            let mut turn = Turn::new(&ground.shared, &schema, &guard, &arena, Order::Logged, 0, control);
            let ended = turn.rehearse(&bytes);
            assert_eq!(ended.is_some(), is_done, "{disturbances} disturbances");
            assert!(ended.is_none_or(|result| result.is_err()));
            turn.end();
        }
    }
}
