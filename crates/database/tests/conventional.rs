//! Conventional transactions, optimistic and pessimistic, by rows and by columns.

mod shop;

use fabius::{Concurrency, Grain, Hold, SqlState, TransactionOptions, Value, block_on};
use shop::*;

const NAME: &str = "procedure n(item: bigint, name: text) -> bigint {
    stock[item].name = name
    return 1
}";

const QUANTITY: &str = "procedure q(item: bigint) -> bigint { return stock[item].quantity }";

const FIRST: &str = "procedure first(low: bigint, high: bigint) -> list of bigint {
    var items: list of bigint = []
    for row in stock[low .. high] limit 1 { append items (row.item) }
    return items
}";

fn begin(shop: &Shop, concurrency: Concurrency, grain: Grain) -> Client<'_> {
    let conventional = Some(grain);
    let options = TransactionOptions { concurrency, conventional, ..Default::default() };
    Client { shop, transaction: shop.database.begin(options) }
}

fn is_refused(result: fabius::Result<()>) -> bool {
    match result {
        Ok(()) => false,
        Err(error) => {
            assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{error:?}");
            true
        }
    }
}

/// Goal: versions are compared, not values: a value that has changed and changed back is a conflict.
#[test]
fn what_changes_back_is_a_conflict() {
    on_every_engine(|shop| {
        for grain in [Grain::Row, Grain::Column] {
            let mut client = begin(shop, Concurrency::Optimistic, grain);
            client.ok(QUANTITY, &[1.into()]);
            client.ok(SET, &[3.into(), 7.into()]);
            for quantity in [11, 10] {
                shop.run(SET, &[1.into(), quantity.into()]).unwrap();
            }
            let error = is_conflict(client.commit());
            let detail = error.detail().unwrap();
            assert_eq!(detail, "statement 1; stock (item) = (1): was written, as it was before");
        }
    });
}

/// Goal: columns of one row are different objects at the grain of columns, and one object at that of rows.
#[test]
fn columns_are_objects() {
    on_every_engine(|shop| {
        for grain in [Grain::Row, Grain::Column] {
            let mut client = begin(shop, Concurrency::Optimistic, grain);
            client.ok(QUANTITY, &[1.into()]);
            client.ok(SET, &[3.into(), 7.into()]);
            shop.run(NAME, &[1.into(), format!("{grain:?}").into()]).unwrap();
            assert_eq!(is_refused(client.commit()), grain == Grain::Row, "{grain:?}");
            // That the row is there is what its key says.
            let mut client = begin(shop, Concurrency::Optimistic, grain);
            client.ok(QUANTITY, &[2.into()]);
            client.ok(SET, &[3.into(), 7.into()]);
            shop.run(REMOVE, &[2.into()]).unwrap();
            shop.run(ADD, &[2.into(), "ink".into(), 1.into()]).unwrap();
            assert!(is_refused(client.commit()), "{grain:?}");
        }
    });
}

/// Goal: readers of an object do not wait for each other, a writer waits for them; at the grain of columns writers of
/// different columns do not wait either.
#[test]
fn locks_are_shared_and_exclusive() {
    on_every_engine(|shop| {
        for grain in [Grain::Row, Grain::Column] {
            let mut readers = [(); 2].map(|()| begin(shop, Concurrency::Pessimistic, grain));
            let mut writer = begin(shop, Concurrency::Pessimistic, grain);
            for reader in &mut readers {
                reader.ok(QUANTITY, &[1.into()]);
            }
            {
                let name: [Value; 2] = [1.into(), format!("{grain:?} again").into()];
                let mut renaming = Box::pin(writer.holding(NAME, &name, Hold::Observe));
                assert_eq!(waits(&mut renaming), grain == Grain::Row);
                if grain == Grain::Row {
                    assert_eq!(shop.database.waits()[0].row, "stock (item) = (1)");
                    assert_eq!(shop.database.condition_locks().len(), 2);
                }
                for reader in readers {
                    assert!(grain == Grain::Column || waits(&mut renaming));
                    reader.commit().unwrap();
                }
                if grain == Grain::Row {
                    block_on(renaming).unwrap();
                }
            }
            writer.commit().unwrap();
            assert_eq!((shop.database.condition_locks(), shop.database.waits()), (vec![], vec![]));
        }
    });
}

/// Goal: of two who have read and want to write, the older goes on and the younger gives way.
#[test]
fn the_older_wounds_the_younger() {
    on_every_engine(|shop| {
        for grain in [Grain::Row, Grain::Column] {
            let mut older = begin(shop, Concurrency::Pessimistic, grain);
            let mut younger = begin(shop, Concurrency::Pessimistic, grain);
            older.ok(QUANTITY, &[1.into()]);
            younger.ok(QUANTITY, &[1.into()]);
            {
                let set: [Value; 2] = [1.into(), 9.into()];
                let mut waiting = Box::pin(younger.holding(SET, &set, Hold::Observe));
                assert!(waits(&mut waiting));
                older.ok(SET, &[1.into(), 8.into()]);
                let error = block_on(waiting).unwrap_err();
                assert!(error.detail().unwrap().contains("gave way to"), "{error:?}");
            }
            assert!(is_refused(younger.commit()));
            older.commit().unwrap();
            assert_eq!(shop.quantity(1), 8);
        }
    });
}

/// Goal: nobody adds a row where one was looked for, as far as was looked; what is behind is free.
#[test]
fn ranges_are_locked_as_far_as_they_were_gone_over() {
    on_every_engine(|shop| {
        let _ = shop.run(REMOVE, &[2.into()]);
        let mut client = begin(shop, Concurrency::Pessimistic, Grain::Row);
        let mut other = begin(shop, Concurrency::Pessimistic, Grain::Row);
        assert_eq!(client.ok(FIRST, &[2.into(), 100.into()]), Value::List(vec![vec![3i64.into()]]));
        other.ok(ADD, &[50.into(), "jar".into(), 5.into()]);
        {
            let row: [Value; 3] = [2.into(), "ink".into(), 1.into()];
            let mut adding = Box::pin(other.holding(ADD, &row, Hold::Observe));
            assert!(waits(&mut adding));
            client.commit().unwrap();
            block_on(adding).unwrap();
        }
        other.commit().unwrap();
    });
}

/// Goal: a call by somebody else waits for a conventional transaction's locks, as long as it wants to.
#[test]
fn calls_wait_for_locks() {
    on_every_engine(|shop| {
        let mut client = begin(shop, Concurrency::Pessimistic, Grain::Row);
        client.ok(QUANTITY, &[1.into()]);
        let set = shop.statement(SET);
        let arguments: [Value; 2] = [1.into(), 12.into()];
        let impatient =
            TransactionOptions { lock_timeout: Some(std::time::Duration::ZERO), ..Default::default() };
        let refused = block_on(shop.database.run_as(&impatient, &set, &arguments, None)).unwrap_err();
        assert_eq!(refused.state(), SqlState::LOCK_NOT_AVAILABLE);
        let mut call = Box::pin(shop.database.run(&set, &arguments, None));
        assert!(waits(&mut call));
        assert_eq!(client.ok(QUANTITY, &[1.into()]), Value::BigInt(10));
        client.commit().unwrap();
        block_on(call).unwrap();
        assert_eq!(shop.quantity(1), 12);
    });
}
