//! What a transaction may hold, and what it reads without holding it.

mod shop;

use fabius::{Allowance, Concurrency, EngineKind, Error, SqlState, TransactionOptions, Value, block_on};
use shop::{ALL, Client, READ, SET, Shop, TAKE};

/// Reads everything without keeping it.
fn note_all(client: &mut Client<'_>) -> Result<(), Error> {
    let statement = client.shop.statement(ALL);
    let at = block_on(client.transaction.stand())?;
    client.transaction.note(at.seq(), &statement, &[])
}

/// Goal: what was shown without being kept holds at commit as everything else does, wherever it was read.
#[test]
fn what_is_noted_counts_as_shown() {
    for engine in EngineKind::ALL {
        let shop = Shop::new(engine);
        for is_changed in [false, true] {
            let mut client = shop.begin();
            note_all(&mut client).unwrap();
            if is_changed {
                shop.run(SET, &[2.into(), 7.into()]).unwrap();
            }
            let point = client.transaction.savepoint();
            client.ok(TAKE, &[1.into(), 1.into()]);
            assert!(!client.transaction.is_reader());
            client.transaction.roll_back_to(&point);
            client.ok(TAKE, &[1.into(), 1.into()]);
            assert_eq!(client.commit().is_ok(), !is_changed, "{engine}");
            shop.run(SET, &[2.into(), 1.into()]).unwrap();
        }
        // Read at the transaction's seq after it has written: its own writes are no part of it.
        for is_changed in [false, true] {
            let mut client = shop.begin();
            let at = block_on(client.transaction.stand()).unwrap();
            client.ok(TAKE, &[1.into(), 1.into()]);
            if is_changed {
                shop.run(SET, &[2.into(), 7.into()]).unwrap();
            }
            client.transaction.note(at.seq(), &shop.statement(ALL), &[]).unwrap();
            assert_eq!(client.commit().is_ok(), !is_changed, "{engine}");
            shop.run(SET, &[2.into(), 1.into()]).unwrap();
        }
        // Nothing is written: nothing is checked.
        let mut client = shop.begin();
        note_all(&mut client).unwrap();
        shop.run(SET, &[2.into(), 7.into()]).unwrap();
        client.commit().unwrap();
    }
}

/// Goal: a transaction holds no more than is allowed; what it gives up it can use again.
#[test]
fn transactions_hold_what_is_allowed() {
    let shop = Shop::new(EngineKind::Lazy);
    let memory = Allowance::new("session_memory", 3000);
    let begin = |concurrency| {
        let options = TransactionOptions { concurrency, memory: Some(memory.clone()), ..Default::default() };
        Client { shop: &shop, transaction: shop.database.begin(options) }
    };
    let refused = |outcome: Result<Value, Error>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.state(), SqlState::OUT_OF_MEMORY, "{error:?}");
        assert!(error.detail().unwrap().contains("session_memory"), "{error:?}");
    };
    for concurrency in [Concurrency::Optimistic, Concurrency::Pessimistic] {
        let mut client = begin(concurrency);
        let point = client.transaction.savepoint();
        let mut shown = 0;
        let outcome = loop {
            match client.run(READ, &[1.into()]) {
                Ok(_) => shown += 1,
                refused => break refused,
            }
        };
        refused(outcome);
        assert!(shown > 1, "{shown}");
        client.transaction.roll_back_to(&point);
        client.ok(TAKE, &[1.into(), 1.into()]);
        client.commit().unwrap();
        assert_eq!(memory.used(), 0);
    }
    // What is noted takes its room when the transaction writes.
    let mut client = begin(Concurrency::Optimistic);
    (0..20).for_each(|_| note_all(&mut client).unwrap());
    assert_eq!(memory.used(), 0);
    refused(client.run(TAKE, &[1.into(), 1.into()]));
    refused(client.run(TAKE, &[1.into(), 1.into()]));
}
