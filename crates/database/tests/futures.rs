//! Transactions over future values, on every engine.

mod shop;

use fabius::{Concurrency, DataType, Error, Futures, Result, SqlState, TransactionOptions, Value, block_on};
use shop::*;

/// The modes that there are: with conditions, and conventional.
fn modes() -> Vec<(&'static str, Futures)> {
    let options = |concurrency| TransactionOptions { concurrency, ..Default::default() };
    let (optimistic, pessimistic) = (options(Concurrency::Optimistic), options(Concurrency::Pessimistic));
    vec![
        ("occ-lsd", Futures { options: optimistic.clone(), ..Default::default() }),
        ("occ-lsd+", Futures { options: optimistic.clone(), speculative: true, ..Default::default() }),
        ("2pl-lsd", Futures { options: pessimistic.clone(), ..Default::default() }),
        ("occ", Futures { options: optimistic, concrete: true, ..Default::default() }),
        ("2pl", Futures { options: pessimistic, concrete: true, ..Default::default() }),
    ]
}

/// Takes some of an item if there are as many; whether there were, as far as it was told.
fn take(shop: &Shop, settings: Futures, item: i64, count: i64) -> Result<(bool, fabius::FutureTransaction)> {
    let mut transaction = shop.database.futures(settings);
    let quantity = block_on(transaction.read_now("stock", [item], "quantity"))?;
    let enough = block_on(transaction.is_true(quantity.at_least(count)))?;
    if enough {
        transaction.write("stock", [item], "quantity", &quantity - count);
    }
    Ok((enough, transaction))
}

fn state(result: Result<impl Sized>) -> Option<SqlState> {
    result.err().map(|error: Error| error.state())
}

/// Goal: in every mode, alone, a transaction does what it says.
#[test]
fn alone() {
    on_every_engine(|shop| {
        for (name, settings) in modes() {
            shop.run(SET, &[1.into(), 10.into()]).unwrap();
            let (enough, transaction) = take(shop, settings.clone(), 1, 4).unwrap();
            assert!(enough, "{name}");
            block_on(transaction.commit()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(shop.quantity(1), 6, "{name}");
            let (enough, transaction) = take(shop, settings.clone(), 1, 7).unwrap();
            assert_eq!(enough, settings.speculative, "{name}");
            let committed = state(block_on(transaction.commit()));
            // Speculation was wrong.
            assert_eq!(committed, settings.speculative.then_some(SqlState::SERIALIZATION_FAILURE), "{name}");
            assert_eq!(shop.quantity(1), 6, "{name}");
        }
    });
}

/// Goal: with conditions, buyers of plenty are not in each other's way; conventional ones are.
#[test]
fn plenty() {
    on_every_engine(|shop| {
        for (name, settings) in modes() {
            shop.run(SET, &[1.into(), 10.into()]).unwrap();
            let (_, first) = take(shop, settings.clone(), 1, 3).unwrap();
            let (_, second) = take(shop, settings.clone(), 1, 3).unwrap();
            let first = state(block_on(first.commit()));
            let second = state(block_on(second.commit()));
            let expected = settings.concrete.then_some(SqlState::SERIALIZATION_FAILURE);
            assert_eq!((first, second), (None, expected), "{name}");
            assert_eq!(shop.quantity(1), if settings.concrete { 7 } else { 4 }, "{name}");
        }
    });
}

/// Goal: of the last item, exactly one is sold.
#[test]
fn the_last_item() {
    on_every_engine(|shop| {
        for (name, settings) in modes() {
            shop.run(SET, &[2.into(), 1.into()]).unwrap();
            let (_, first) = take(shop, settings.clone(), 2, 1).unwrap();
            let (_, second) = take(shop, settings.clone(), 2, 1).unwrap();
            assert_eq!(state(block_on(first.commit())), None, "{name}");
            assert_eq!(state(block_on(second.commit())), Some(SqlState::SERIALIZATION_FAILURE), "{name}");
            assert_eq!(shop.quantity(2), 0, "{name}");
        }
    });
}

/// Goal: keys can be future values, in reads and writes; a read stands where it was made, whatever is written
/// after it; rows can be inserted under keys that nobody knows yet.
#[test]
fn future_keys() {
    on_every_engine(|shop| {
        shop.run(SET, &[2.into(), 3.into()]).unwrap();
        let mut transaction = shop.database.futures(Futures::default());
        let which = transaction.read("stock", [2], "quantity");
        let through = transaction.read("stock", [which.clone()], "quantity");
        transaction.write("stock", [which.clone()], "quantity", &through + 1);
        transaction.write("stock", [1], "quantity", &through * 2);
        transaction.insert(
            "lines",
            [("number", which.clone()), ("position", 1.into()), ("item", &through + &which)],
        );
        let again = transaction.read("stock", [3], "quantity");
        assert!(block_on(transaction.is_true(again.equals(&through + 1))).unwrap());
        let value = block_on(transaction.value(&again, DataType::BigInt)).unwrap();
        assert_eq!(value, Value::BigInt(6));
        let gone = transaction.exists("stock", [9]);
        assert!(!block_on(transaction.is_true(gone)).unwrap());
        block_on(transaction.commit()).unwrap();
        assert_eq!((shop.quantity(1), shop.quantity(3)), (10, 6));
        let line: Vec<Value> = vec![3i64.into(), 1i32.into(), 8i64.into()];
        assert_eq!(shop.database.rows("lines").unwrap(), [line]);
    });
}

/// Goal: write skew is not possible: two conditions over the same two rows, each of which the other breaks.
#[test]
fn conditions_over_several_rows() {
    on_every_engine(|shop| {
        for (name, settings) in modes().into_iter().filter(|(_, settings)| !settings.concrete) {
            shop.run(SET, &[1.into(), 1.into()]).unwrap();
            shop.run(SET, &[3.into(), 1.into()]).unwrap();
            let on_call = |leaving: i64| {
                let mut transaction = shop.database.futures(settings.clone());
                let (first, third) =
                    (transaction.read("stock", [1], "quantity"), transaction.read("stock", [3], "quantity"));
                assert!(block_on(transaction.is_true((&first + &third).at_least(2))).unwrap(), "{name}");
                transaction.write("stock", [leaving], "quantity", 0);
                transaction
            };
            let (one, three) = (on_call(1), on_call(3));
            assert_eq!(state(block_on(one.commit())), None, "{name}");
            assert_eq!(state(block_on(three.commit())), Some(SqlState::SERIALIZATION_FAILURE), "{name}");
            assert_eq!((shop.quantity(1), shop.quantity(3)), (0, 1), "{name}");
        }
    });
}

/// Goal: transactions that differ in values only are one program.
#[test]
fn values_are_parameters() {
    on_every_engine(|shop| {
        let before = shop.database.definitions().catalog.procedures().count();
        for count in 1..4 {
            let (_, transaction) = take(shop, Futures::default(), 1, count).unwrap();
            block_on(transaction.commit()).unwrap();
        }
        assert_eq!(shop.database.definitions().catalog.procedures().count(), before + 1);
    });
}
