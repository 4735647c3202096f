//! Interactive transactions in optimistic mode, on every engine.

mod shop;

use fabius::{EngineKind, SqlState, TransactionOptions, Value};
use shop::*;

/// Goal: a statement by itself is a call, or a query; statements of the same text are one procedure.
#[test]
fn statements_run_by_themselves() {
    on_every_engine(|shop| {
        assert_eq!(shop.run(TAKE, &[1.into(), 4.into()]).unwrap(), [Value::BigInt(1)]);
        assert_eq!(shop.run(TAKE, &[1.into(), 7.into()]).unwrap(), [Value::BigInt(0)]);
        assert_eq!(shop.quantity(1), 6);
        let error = shop.run(ADD, &[1.into(), "x".into(), 1.into()]).unwrap_err();
        assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
        let names = shop.database.definitions().catalog.procedures().count();
        assert_eq!(names, 2, "ADD and TAKE");
    });
}

/// Goal: a transaction sees its own writes in lookups and in scans of either index, in either direction;
/// others see them when it has committed.
#[test]
fn a_transaction_sees_its_own_writes() {
    on_every_engine(|shop| {
        let mut client = shop.begin();
        client.ok(ADD, &[0.into(), "ox".into(), 7.into()]);
        client.ok(SET, &[3.into(), 20.into()]);
        client.ok(REMOVE, &[2.into()]);
        client.ok(ADD, &[4.into(), "ink".into(), 8.into()]);
        assert_eq!(client.ok(ALL, &[]), rows(&[&[0, 7], &[1, 10], &[3, 20], &[4, 8]]));
        assert_eq!(client.ok(FULL, &[8.into()]), rows(&[&[3], &[1], &[4]]));
        let error = client.run(ADD, &[9.into(), "pen".into(), 1.into()]).unwrap_err();
        assert_eq!(error.state(), SqlState::UNIQUE_VIOLATION);
        assert_eq!(client.ok(ALL, &[]), rows(&[&[0, 7], &[1, 10], &[3, 20], &[4, 8]]));
        assert_eq!(shop.run(ALL, &[]).unwrap()[0], rows(&[&[1, 10], &[2, 1], &[3, 5]]));
        client.commit().expect("nobody else is there");
        assert_eq!(shop.run(ALL, &[]).unwrap()[0], rows(&[&[0, 7], &[1, 10], &[3, 20], &[4, 8]]));
    });
}

/// Goal: decrements of plenty commit in any interleaving; of the last item, exactly one.
#[test]
fn conditions_are_not_values() {
    on_every_engine(|shop| {
        let (mut first, mut second) = (shop.begin(), shop.begin());
        for client in [&mut first, &mut second] {
            assert_eq!(client.ok(TAKE, &[1.into(), 3.into()]), Value::BigInt(1));
        }
        first.commit().expect("plenty");
        second.commit().expect("plenty");
        assert_eq!(shop.quantity(1), 4);

        let (mut first, mut second) = (shop.begin(), shop.begin());
        for client in [&mut first, &mut second] {
            assert_eq!(client.ok(TAKE, &[2.into(), 1.into()]), Value::BigInt(1));
        }
        second.commit().expect("the first to commit");
        is_conflict(first.commit());
        assert_eq!(shop.quantity(2), 0);
    });
}

/// Goal: a value that was shown has to stay, a row that was not there too.
#[test]
fn what_was_shown_has_to_hold() {
    on_every_engine(|shop| {
        let mut client = shop.begin();
        client.ok(READ, &[1.into()]);
        client.ok(SET, &[3.into(), 1.into()]);
        shop.run(TAKE, &[1.into(), 1.into()]).unwrap();
        is_conflict(client.commit());

        let mut client = shop.begin();
        assert_eq!(client.ok(READ, &[9.into()]), rows(&[]));
        client.ok(SET, &[3.into(), 1.into()]);
        shop.run(ADD, &[9.into(), "new".into(), 1.into()]).unwrap();
        is_conflict(client.commit());
        assert_eq!(shop.quantity(3), 5);

        // A constraint that is violated only now is one all the same.
        let mut client = shop.begin();
        client.ok(ADD, &[10.into(), "late".into(), 1.into()]);
        shop.run(ADD, &[10.into(), "early".into(), 1.into()]).unwrap();
        assert_eq!(client.commit().unwrap_err().state(), SqlState::UNIQUE_VIOLATION);
    });
}

/// Goal: a constraint that only what others have done meanwhile violates is a conflict where that had been asked for,
/// and the violation that it is where it had not.
#[test]
fn a_violation_after_a_change_is_a_conflict() {
    on_every_engine(|shop| {
        let (mut asked, mut blind) = (shop.begin(), shop.begin());
        assert_eq!(asked.ok(ALL, &[]), rows(&[&[1, 10], &[2, 1], &[3, 5]]));
        for client in [&mut asked, &mut blind] {
            client.ok(ADD, &[9.into(), "nine".into(), 1.into()]);
        }
        shop.run(ADD, &[9.into(), "other".into(), 1.into()]).unwrap();
        is_conflict(asked.commit());
        assert_eq!(blind.commit().unwrap_err().state(), SqlState::UNIQUE_VIOLATION);
        // What it was shown is still so: the violation is its own.
        let mut asked = shop.begin();
        asked.ok(READ, &[1.into()]);
        asked.ok(ADD, &[8.into(), "eight".into(), 1.into()]);
        shop.run(ADD, &[8.into(), "other eight".into(), 1.into()]).unwrap();
        assert_eq!(asked.commit().unwrap_err().state(), SqlState::UNIQUE_VIOLATION);
    });
}

/// Goal: going back to a savepoint forgets writes, and what was shown.
#[test]
fn savepoints_cut_the_list() {
    on_every_engine(|shop| {
        let mut client = shop.begin();
        client.ok(TAKE, &[3.into(), 1.into()]);
        let point = client.transaction.savepoint();
        client.ok(READ, &[1.into()]);
        client.ok(ADD, &[5.into(), "five".into(), 5.into()]);
        client.transaction.roll_back_to(&point);
        assert_eq!(client.ok(READ, &[5.into()]), rows(&[]));
        shop.run(TAKE, &[1.into(), 1.into()]).unwrap();
        client.commit().expect("what has changed was forgotten");
        assert_eq!((shop.quantity(3), shop.quantity(1)), (4, 9));
    });
}

/// Goal: a transaction of many statements is a small program; one of a thousand is that of two.
#[test]
fn repeated_statements_are_a_loop() {
    on_every_engine(|shop| {
        for lines in [2, 300] {
            let mut client = shop.begin();
            for at in 0..lines {
                client.ok(LINE, &[lines.into(), at.into(), 1.into()]);
                client.ok(SET, &[1.into(), at.into()]);
                client.ok(FULL, &[5.into()]);
            }
            client.ok(READ, &[1.into()]);
            client.commit().expect("nobody else is there");
        }
        assert_eq!(shop.quantity(1), 299);
        assert_eq!(shop.database.rows("lines").unwrap().len(), 302);
        // ADD, and the transaction.
        assert_eq!(shop.database.definitions().catalog.procedures().count(), 2);

        // What a turn of the loop was shown has to hold.
        let mut client = shop.begin();
        for item in [1, 2, 3] {
            client.ok(READ, &[item.into()]);
        }
        client.ok(SET, &[1.into(), 0.into()]);
        shop.run(SET, &[2.into(), 17.into()]).unwrap();
        is_conflict(client.commit());
    });
}

/// Goal: a transaction that only reads commits without a call, and reads at one seq.
#[test]
fn reading_alone_never_conflicts() {
    on_every_engine(|shop| {
        let mut client = shop.begin();
        assert_eq!(client.ok(ALL, &[]), rows(&[&[1, 10], &[2, 1], &[3, 5]]));
        shop.run(SET, &[1.into(), 0.into()]).unwrap();
        shop.run(REMOVE, &[3.into()]).unwrap();
        assert_eq!(client.ok(ALL, &[]), rows(&[&[1, 10], &[2, 1], &[3, 5]]));
        client.commit().expect("a snapshot is a place in the order");
    });
}

/// Goal: a speculative transaction takes it that there is a row to change; commit finds out.
#[test]
fn answers_can_be_assumed() {
    on_every_engine(|shop| {
        let options = TransactionOptions { speculative: true, ..Default::default() };
        for (count, is_right) in [(10, true), (11, false)] {
            shop.run(SET, &[1.into(), 0.into()]).unwrap();
            let mut client = Client { shop, transaction: shop.database.begin(options.clone()) };
            assert_eq!(client.ok(TAKE, &[1.into(), count.into()]), Value::BigInt(1));
            shop.run(SET, &[1.into(), 10.into()]).unwrap();
            let outcome = client.commit();
            assert_eq!(outcome.is_ok(), is_right, "{outcome:?}");
            assert_eq!(shop.quantity(1), if is_right { 0 } else { 10 });
        }
    });
}

/// Goal: statements in no order that repeats are a program too, if a long one.
#[test]
fn irregular_statements_are_a_program() {
    let shop = Shop::new(EngineKind::Lazy);
    let mut random = 1u64;
    let mut client = shop.begin();
    for at in 0..150i64 {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        match random >> 61 {
            0 => client.ok(READ, &[1.into()]),
            1 => client.ok(TAKE, &[3.into(), 1.into()]),
            2 => client.ok(SET, &[1.into(), at.into()]),
            3 => client.ok(ALL, &[]),
            4 => client.ok(LINE, &[at.into(), 1.into(), 1.into()]),
            5 => client.ok(FULL, &[3.into()]),
            6 => client.ok(REMOVE, &[at.into()]),
            _ => client.ok(ADD, &[(at + 10).into(), format!("item {at}").into(), 1.into()]),
        };
    }
    let began = std::time::Instant::now();
    client.commit().expect("nobody else is there");
    println!("committed in {:?}", began.elapsed());
}
