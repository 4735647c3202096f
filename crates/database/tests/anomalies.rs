//! The anomalies that isolation levels are told apart by (after the Hermitage suite), in all modes: none is possible.

mod shop;

use fabius::{Concurrency, Grain, Hold, Result, SqlState, TransactionOptions, Value, block_on};
use shop::*;

/// A transaction of each kind.
fn clients<'s>(shop: &'s Shop, count: usize, kind: &TransactionOptions) -> Vec<Client<'s>> {
    (0..count).map(|_| Client { shop, transaction: shop.database.begin(kind.clone()) }).collect()
}

fn on_all(test: impl Fn(&Shop, &TransactionOptions)) {
    on_every_engine(|shop| {
        for concurrency in [Concurrency::Optimistic, Concurrency::Pessimistic] {
            for conventional in [None, Some(Grain::Row), Some(Grain::Column)] {
                println!("{concurrency:?}, conventional: {conventional:?}");
                for (item, quantity) in [(1, 10), (2, 1), (3, 5)] {
                    shop.run(SET, &[item.into(), quantity.into()]).unwrap();
                }
                let _ = shop.run(REMOVE, &[9.into()]);
                test(shop, &TransactionOptions { concurrency, conventional, ..Default::default() });
            }
        }
    });
}

/// Runs a statement, or finds that it would have to wait or give way: then nobody else is held up by it.
fn attempt(client: &mut Client<'_>, text: &str, arguments: &[Value]) -> Result<Value> {
    client.transaction.options_mut().lock_timeout = Some(std::time::Duration::from_nanos(1));
    block_on(client.holding(text, arguments, Hold::Observe))
}

fn committed(client: Client<'_>, so_far: Result<Value>) -> bool {
    match so_far.and_then(|_| client.commit()) {
        Ok(()) => true,
        Err(error) => {
            let expected = [SqlState::SERIALIZATION_FAILURE, SqlState::LOCK_NOT_AVAILABLE];
            assert!(expected.contains(&error.state()), "{error:?}");
            false
        }
    }
}

/// G0, G1a, G1b: nobody sees what was not committed, and writes of two do not mix.
#[test]
fn dirty_writes_and_reads() {
    on_all(|shop, kind| {
        let mut both = clients(shop, 2, kind);
        let first = attempt(&mut both[0], SET, &[1.into(), 101.into()]);
        assert_eq!(shop.quantity(1), 10);
        let second = attempt(&mut both[1], SET, &[1.into(), 102.into()])
            .and_then(|_| attempt(&mut both[1], SET, &[3.into(), 302.into()]));
        let first = first.and_then(|_| attempt(&mut both[0], SET, &[3.into(), 301.into()]));
        let two = both.pop().map(|client| (client, second));
        let one = both.pop().map(|client| (client, first));
        let (one, two) =
            (one.is_some_and(|(c, r)| committed(c, r)), two.is_some_and(|(c, r)| committed(c, r)));
        assert!(one || two);
        let pair = (shop.quantity(1), shop.quantity(3));
        assert!([(101, 301), (102, 302)].contains(&pair), "{pair:?}");
    });
}

/// P4: an increment of a value that was read is not lost.
#[test]
fn lost_update() {
    on_all(|shop, kind| {
        let mut both = clients(shop, 2, kind);
        let mut outcomes: Vec<Result<Value>> =
            both.iter_mut().map(|client| attempt(client, READ, &[1.into()])).collect();
        for (client, outcome) in both.iter_mut().zip(&mut outcomes) {
            if outcome.is_ok() {
                *outcome = attempt(client, SET, &[1.into(), 11.into()]);
            }
        }
        let done = both.into_iter().zip(outcomes).map(|(c, r)| committed(c, r));
        assert_eq!(done.filter(|done| *done).count(), 1);
        assert_eq!(shop.quantity(1), 11);
    });
}

/// G-single: what a transaction reads is of one moment.
#[test]
fn read_skew() {
    on_all(|shop, kind| {
        let mut client = clients(shop, 1, kind).remove(0);
        client.ok(READ, &[1.into()]);
        let writer = TransactionOptions {
            lock_timeout: Some(std::time::Duration::from_nanos(1)),
            ..Default::default()
        };
        let mut other = Client { shop, transaction: shop.database.begin(writer) };
        other.ok(SET, &[1.into(), 12.into()]);
        other.ok(SET, &[3.into(), 18.into()]);
        let is_written = other.commit().is_ok();
        assert_eq!(is_written, kind.concurrency == Concurrency::Optimistic);
        let third = client.ok(READ, &[3.into()]);
        assert_eq!(third, Value::List(vec![vec!["cup".into(), 5i64.into()]]));
        client.commit().expect("it has only read");
    });
}

/// G2-item: two transactions that each read what the other writes.
#[test]
fn write_skew() {
    on_all(|shop, kind| {
        let mut both = clients(shop, 2, kind);
        let mut outcomes = Vec::new();
        for client in &mut both {
            outcomes
                .push(attempt(client, READ, &[1.into()]).and_then(|_| attempt(client, READ, &[3.into()])));
        }
        for ((client, outcome), item) in both.iter_mut().zip(&mut outcomes).zip([1, 3]) {
            if outcome.is_ok() {
                *outcome = attempt(client, SET, &[item.into(), 0.into()]);
            }
        }
        let done: Vec<bool> = both.into_iter().zip(outcomes).map(|(c, r)| committed(c, r)).collect();
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
    });
}

/// G2: two transactions that each look for rows like the one that the other adds.
#[test]
fn phantoms() {
    on_all(|shop, kind| {
        let mut both = clients(shop, 2, kind);
        let mut outcomes: Vec<Result<Value>> =
            both.iter_mut().map(|client| attempt(client, FULL, &[100.into()])).collect();
        for ((client, outcome), item) in both.iter_mut().zip(&mut outcomes).zip([1, 3]) {
            if outcome.is_ok() {
                *outcome = attempt(client, SET, &[item.into(), 200.into()]);
            }
        }
        let done: Vec<bool> = both.into_iter().zip(outcomes).map(|(c, r)| committed(c, r)).collect();
        assert_eq!(done.iter().filter(|done| **done).count(), 1, "{done:?}");
    });
}

/// The read-only anomaly of snapshot isolation (Fekete and others): a reader sees the second without the first.
#[test]
fn read_only_anomaly() {
    on_all(|shop, kind| {
        let mut first = clients(shop, 1, kind).remove(0);
        let outcome =
            attempt(&mut first, READ, &[1.into()]).and_then(|_| attempt(&mut first, READ, &[3.into()]));
        let options = TransactionOptions {
            lock_timeout: Some(std::time::Duration::from_nanos(1)),
            ..Default::default()
        };
        let add = shop.statement(SET);
        let second = block_on(shop.database.run_as(&options, &add, &[3.into(), 25.into()], None));
        let reader = (shop.quantity(1), shop.quantity(3));
        let outcome = outcome.and_then(|_| attempt(&mut first, SET, &[1.into(), (-11).into()]));
        let first = committed(first, outcome);
        // The reader has seen the second before the first, so the first has not seen the state before both.
        assert!(!(first && second.is_ok() && reader == (10, 25)), "first {first}, second {second:?}");
    });
}

/// Goal: a conflict says what was shown, what is there now, and who has changed it.
#[test]
fn conflicts_say_why() {
    on_every_engine(|shop| {
        let mut client = shop.begin_as("process 11", Concurrency::Optimistic);
        client.ok(TAKE, &[3.into(), 1.into()]);
        client.ok(READ, &[1.into()]);
        let mut other = shop.begin_as("process 12", Concurrency::Optimistic);
        other.ok(TAKE, &[1.into(), 1.into()]);
        let seq = block_on(other.transaction.commit(None)).unwrap();
        let error = is_conflict(client.commit());
        assert_eq!(error.message(), "could not serialize access due to concurrent update");
        let detail = format!(
            "statement 2 of process 11; stock (item) = (1): quantity was 10, is 9, changed by process 12 (seq {seq})"
        );
        assert_eq!(error.detail(), Some(detail.as_str()));
        assert_eq!(error.hint(), Some("the transaction might succeed if retried"));
        assert!(error.is_transient());
    });
}
