//! Condition locks, and who waits for whom, on every engine.

mod shop;

use fabius::{Concurrency, Hold, SqlState, TransactionOptions, Value, block_on};
use shop::*;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Goal: the compatibility matrix of lazy state determination, Figure 5. A lock is asked for in the mode of the
/// row while another transaction holds one in the mode of the column.
///
/// | | R | W | R(c) | W(v: c(v)) | W(v: not c(v)) |
/// |---|---|---|---|---|---|
/// | R | + | - | + | - | - |
/// | W | - | - | - | - | - |
/// | R(c) | + | - | + | + | - |
/// | W(v: c(v)) | - | - | + | - | - |
/// | W(v: not c(v)) | - | - | - | - | - |
///
/// Writes of values happen in one moment, at commit, so their columns are the state before and after it; the
/// rows are what can be told apart here.
#[test]
fn compatibility() {
    on_every_engine(|shop| {
        let modes: [(&str, &str, &[Value], Hold); 3] = [
            ("R", READ, &[1.into()], Hold::Lock),
            ("W", READ, &[1.into()], Hold::LockForUpdate),
            ("R(c)", TAKE, &[1.into(), 4.into()], Hold::Lock),
        ];
        // 10 are there. The condition is that taking 4 succeeds.
        let writes = [("W(v: c(v))", 5i64), ("W(v: not c(v))", 3)];
        let passes = |row: &str, column: &str| {
            matches!((row, column), ("R" | "R(c)", "R" | "R(c)") | ("W(v: c(v))", "R(c)"))
        };
        for (column, text, arguments, hold) in modes {
            for (row, wanted, wanted_arguments, wanted_hold) in modes {
                let (mut holder, mut other) = (shop.begin(), shop.begin());
                block_on(holder.holding(text, arguments, hold)).expect("nobody else is there");
                let mut asked = Box::pin(other.holding(wanted, wanted_arguments, wanted_hold));
                assert_eq!(!waits(&mut asked), passes(row, column), "{row} where {column} is held");
                drop(holder);
            }
            for (row, value) in writes {
                let mut holder = shop.begin();
                block_on(holder.holding(text, arguments, hold)).expect("nobody else is there");
                let statement = shop.statement(SET);
                let arguments = [1.into(), value.into()];
                let mut written = Box::pin(shop.database.run(&statement, &arguments, None));
                let has_passed = !waits(&mut written);
                assert_eq!(has_passed, passes(row, column), "{row} where {column} is held");
                drop(holder);
                if !has_passed {
                    block_on(written).expect("nobody is in the way any more");
                }
                assert_eq!(shop.quantity(1), value);
                shop.run(SET, &[1.into(), 10.into()]).unwrap();
            }
        }
        assert_eq!((shop.database.condition_locks(), shop.database.waits()), (vec![], vec![]));
    });
}

/// Goal: every way in respects locks: statements, calls by name, batches, commits of optimistic transactions.
#[test]
fn all_ways_in_wait() {
    on_every_engine(|shop| {
        shop.database.define("procedure set_one(quantity: bigint) { stock[1].quantity = quantity }").unwrap();
        let mut holder = shop.begin_as("holder", Concurrency::Pessimistic);
        holder.ok(READ, &[1.into()]);
        let prepared = shop.database.prepare("set_one").unwrap();
        let call = prepared.submit(&[1.into()]).unwrap();
        assert!(call.wait_for(Duration::ZERO).is_err());
        let call = prepared.submit(&[2.into()]).unwrap();
        let mut client = shop.begin();
        client.ok(SET, &[1.into(), 3.into()]);
        let mut commit = Box::pin(client.transaction.commit(None));
        assert!(waits(&mut commit));
        let other = prepared.procedure().id;
        assert_eq!(shop.database.waits().len(), 3, "{other:?}");
        let wait = &shop.database.waits()[0];
        assert_eq!(
            (wait.holder.as_str(), wait.row.as_str(), wait.writes),
            ("holder", "stock (item) = (1)", true)
        );
        assert_eq!(shop.database.condition_locks()[0].holder, "holder");
        // What nobody has locked goes on.
        shop.run(SET, &[3.into(), 8.into()]).expect("not locked");
        assert_eq!(holder.ok(READ, &[1.into()]), holder.ok(READ, &[1.into()]));
        assert_eq!(shop.quantity(1), 10);
        holder.commit().expect("nobody could change it");
        call.wait().expect("admitted");
        block_on(commit).expect("admitted");
        assert_eq!(shop.quantity(1), 3);
    });
}

/// Goal: `FOR UPDATE` queues: the second client sees what the first has written, and neither fails.
#[test]
fn for_update_queues() {
    on_every_engine(|shop| {
        let (mut first, mut second) = (shop.begin(), shop.begin());
        second.ok(READ, &[3.into()]);
        block_on(first.holding(READ, &[1.into()], Hold::LockForUpdate)).unwrap();
        let one = [1.into()];
        let mut waiting = Box::pin(second.holding(READ, &one, Hold::LockForUpdate));
        assert!(waits(&mut waiting));
        first.ok(SET, &[1.into(), 7.into()]);
        first.commit().expect("locked");
        let seen = block_on(waiting).expect("it is its turn");
        assert_eq!(seen, Value::List(vec![vec!["pen".into(), 7i64.into()]]));
        second.ok(SET, &[1.into(), 6.into()]);
        second.commit().expect("locked");
        assert_eq!(shop.quantity(1), 6);

        // What an optimistic transaction has seen before has to be so when it locks.
        let mut client = shop.begin();
        client.ok(READ, &[1.into()]);
        shop.run(SET, &[1.into(), 5.into()]).unwrap();
        let error = block_on(client.holding(READ, &[3.into()], Hold::LockForUpdate)).unwrap_err();
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
    });
}

/// Goal: the older wounds the younger; nobody waits in a circle, and the wounded is told by whom.
#[test]
fn the_older_wounds_the_younger() {
    on_every_engine(|shop| {
        let mut older = shop.begin_as("older", Concurrency::Pessimistic);
        let mut younger = shop.begin_as("younger", Concurrency::Pessimistic);
        older.ok(READ, &[1.into()]);
        younger.ok(READ, &[3.into()]);
        younger.ok(SET, &[1.into(), 0.into()]);
        older.ok(SET, &[3.into(), 0.into()]);
        let mut commit = Box::pin(younger.transaction.commit(None));
        assert!(waits(&mut commit), "what the older has seen");
        older.commit().expect("the oldest is never wounded");
        let error = block_on(commit).unwrap_err();
        assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE);
        let detail = "younger gave way to older, which is older and wanted stock (item) = (3)";
        assert_eq!(error.detail(), Some(detail));
        assert_eq!((shop.quantity(1), shop.quantity(3)), (10, 0));
    });
}

/// How often someone was woken.
#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Whether a future has to wait; who it wakes then.
fn waits_with<F: Future>(future: &mut Pin<Box<F>>, alarm: &Arc<Alarm>) -> bool {
    let waker = Waker::from(alarm.clone());
    future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
}

/// Goal: those who wait are woken one at a time, the oldest first, however they came; nobody younger gets in before.
#[test]
fn the_oldest_who_waits_is_next() {
    on_every_engine(|shop| {
        let begin = |name| shop.begin_as(name, Concurrency::Optimistic);
        let (mut holder, mut a, mut b, mut c, mut d) =
            (begin("holder"), begin("a"), begin("b"), begin("c"), begin("d"));
        let (one, exclusive) = ([1.into()], Hold::LockForUpdate);
        block_on(holder.holding(READ, &one, exclusive)).expect("nobody else is there");
        // It locks something before the others do, so it is older.
        block_on(b.holding(READ, &[3.into()], exclusive)).expect("nobody else is there");

        let alarms: [Arc<Alarm>; 3] = Default::default();
        let woken = || [0, 1, 2].map(|at| alarms[at].0.load(SeqCst));
        let mut asked_a = Box::pin(a.holding(READ, &one, exclusive));
        let mut asked_c = Box::pin(c.holding(READ, &one, exclusive));
        let mut asked_b = Box::pin(b.holding(READ, &one, exclusive));
        assert!(waits_with(&mut asked_a, &alarms[0]) && waits_with(&mut asked_c, &alarms[2]));
        assert!(waits_with(&mut asked_b, &alarms[1]));
        let waiting = || {
            let waits = shop.database.waits().into_iter();
            waits.map(|wait| format!("{} for {}", wait.waiting, wait.holder)).collect::<Vec<_>>()
        };
        assert_eq!(waiting(), ["b for holder", "a for holder", "c for holder"]);

        drop(holder);
        assert_eq!(woken(), [0, 1, 0]);
        // Who comes now is younger than all who wait, and waits too, though nobody holds the row.
        let mut asked_d = Box::pin(d.holding(READ, &one, exclusive));
        assert!(waits(&mut asked_d));
        assert_eq!(waiting(), ["a for b", "c for b", "d for b"]);
        assert!(!waits_with(&mut asked_b, &alarms[1]), "it is its turn");
        assert_eq!(woken(), [0, 1, 0]);
        drop(asked_b);
        b.commit().expect("locked");
        assert_eq!(woken(), [1, 1, 0]);
        // Who gives up leaves its turn to the next.
        drop(asked_a);
        assert_eq!(woken(), [1, 1, 1]);
        assert!(!waits_with(&mut asked_c, &alarms[2]), "it is its turn");
        assert_eq!(waiting(), ["d for c"]);
        drop(asked_c);
        c.commit().expect("locked");
        block_on(asked_d).expect("it is its turn");
        assert_eq!(shop.database.waits(), []);
    });
}

/// Goal: who has given way and tries again at its age does not give way to those who came meanwhile.
#[test]
fn who_gave_way_keeps_its_age() {
    on_every_engine(|shop| {
        let begin = |name| shop.begin_as(name, Concurrency::Pessimistic);
        let (mut older, mut younger, mut youngest) = (begin("older"), begin("younger"), begin("youngest"));
        older.ok(READ, &[3.into()]);
        younger.ok(READ, &[1.into()]);
        youngest.ok(READ, &[2.into()]);
        block_on(older.holding(READ, &[1.into()], Hold::LockForUpdate)).expect("it is the oldest");
        assert!(younger.transaction.has_given_way());
        let age = younger.transaction.age();
        is_conflict(younger.run(READ, &[1.into()]).map(drop));
        drop((younger, older));

        let mut again = begin("again");
        again.transaction.options_mut().age = age;
        block_on(again.holding(READ, &[2.into()], Hold::LockForUpdate)).expect("older than its holder");
        assert!(youngest.transaction.has_given_way() && !again.transaction.has_given_way());
    });
}

/// Goal: who does not want to wait makes nobody give way either, however old it is.
#[test]
fn not_waiting_disturbs_nobody() {
    on_every_engine(|shop| {
        let (mut older, mut younger) = (shop.begin_as("older", Concurrency::Optimistic), shop.begin());
        block_on(older.holding(READ, &[3.into()], Hold::LockForUpdate)).expect("nobody else is there");
        block_on(younger.holding(READ, &[1.into()], Hold::LockForUpdate)).expect("nobody else is there");
        older.transaction.options_mut().lock_timeout = Some(Duration::ZERO);
        let error = block_on(older.holding(READ, &[1.into()], Hold::LockForUpdate)).unwrap_err();
        assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE);
        assert!(!younger.transaction.has_given_way());
        assert_eq!(shop.database.waits(), []);
    });
}

/// Goal: pessimistic decrements of plenty all commit; of the last item one does, and the other is told.
#[test]
fn conditions_do_not_exclude_each_other() {
    on_every_engine(|shop| {
        let mut clients: Vec<Client<'_>> =
            (0..3).map(|_| shop.begin_as("", Concurrency::Pessimistic)).collect();
        for client in &mut clients {
            assert_eq!(client.ok(TAKE, &[1.into(), 3.into()]), Value::BigInt(1));
        }
        for client in clients.into_iter().rev() {
            client.commit().expect("plenty");
        }
        assert_eq!(shop.quantity(1), 1);

        let mut first = shop.begin_as("first", Concurrency::Pessimistic);
        let mut second = shop.begin_as("second", Concurrency::Pessimistic);
        first.ok(TAKE, &[1.into(), 1.into()]);
        second.ok(TAKE, &[1.into(), 1.into()]);
        first.commit().expect("the oldest");
        is_conflict(second.commit());
        assert_eq!(shop.quantity(1), 0);
    });
}

/// Goal: waiting ends after the time given, with 55P03, and leaves nothing behind.
#[test]
fn waiting_has_an_end() {
    on_every_engine(|shop| {
        let mut holder = shop.begin_as("holder", Concurrency::Pessimistic);
        holder.ok(READ, &[1.into()]);
        let options =
            TransactionOptions { lock_timeout: Some(Duration::from_millis(5)), ..Default::default() };
        let statement = shop.statement(SET);
        let arguments = [1.into(), 0.into()];
        let error = block_on(shop.database.run_as(&options, &statement, &arguments, None)).unwrap_err();
        assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE);
        assert_eq!(error.detail(), Some("stock (item) = (1) is locked by holder"));

        let mut client = shop.begin();
        client.transaction.options_mut().lock_timeout = Some(Duration::from_millis(5));
        let error = block_on(client.holding(READ, &[1.into()], Hold::LockForUpdate)).unwrap_err();
        assert_eq!(error.state(), SqlState::LOCK_NOT_AVAILABLE);
        // A client that gives up leaves nothing behind either.
        let mut given_up = Box::pin(shop.database.run(&statement, &arguments, None));
        assert!(waits(&mut given_up));
        drop(given_up);
        drop(holder);
        assert_eq!(shop.quantity(1), 10);
        client.ok(SET, &[1.into(), 9.into()]);
        client.commit().expect("the transaction was as before");
        assert_eq!(shop.quantity(1), 9);
    });
}

/// Goal: going back to a savepoint gives up the locks taken since.
#[test]
fn savepoints_give_up_locks() {
    on_every_engine(|shop| {
        let mut client = shop.begin_as("", Concurrency::Pessimistic);
        client.ok(READ, &[3.into()]);
        let point = client.transaction.savepoint();
        client.ok(READ, &[1.into()]);
        let statement = shop.statement(SET);
        let (one, three) = ([1.into(), 0.into()], [3.into(), 0.into()]);
        let mut first = Box::pin(shop.database.run(&statement, &one, None));
        let mut third = Box::pin(shop.database.run(&statement, &three, None));
        assert!(waits(&mut first) && waits(&mut third));
        client.transaction.roll_back_to(&point);
        block_on(first).expect("its lock is gone");
        assert!(waits(&mut third));
        drop(client);
        block_on(third).expect("its lock is gone");
    });
}

/// Goal: phantoms are locked out: a range that was shown gets no new rows.
#[test]
fn ranges_are_locked() {
    on_every_engine(|shop| {
        let mut client = shop.begin_as("", Concurrency::Pessimistic);
        client.ok(FULL, &[5.into()]);
        let add = shop.statement(ADD);
        let (few, many) = ([7.into(), "few".into(), 2.into()], [8.into(), "many".into(), 20.into()]);
        block_on(shop.database.run(&add, &few, None)).expect("outside the range");
        let mut inside = Box::pin(shop.database.run(&add, &many, None));
        assert!(waits(&mut inside));
        client.ok(SET, &[3.into(), 5.into()]);
        client.commit().expect("nothing has changed");
        block_on(inside).expect("admitted");
    });
}
