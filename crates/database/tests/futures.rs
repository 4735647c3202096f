//! Transactions over future values, on every engine.

mod shop;

use fabius::{
    Concurrency, DataType, Error, FutureValue, Grain, Result, RowRange, SqlState, TransactionOptions, Value,
    block_on,
};
use shop::*;

/// The modes that there are: with conditions, and conventional.
fn modes() -> Vec<(&'static str, TransactionOptions)> {
    let optimistic = TransactionOptions::default();
    let pessimistic = TransactionOptions { concurrency: Concurrency::Pessimistic, ..optimistic.clone() };
    let by = |grain, options: &TransactionOptions| TransactionOptions {
        conventional: Some(grain),
        ..options.clone()
    };
    vec![
        ("occ-lsd", optimistic.clone()),
        ("occ-lsd+", TransactionOptions { speculative: true, ..optimistic.clone() }),
        ("2pl-lsd", pessimistic.clone()),
        ("occ", by(Grain::Row, &optimistic)),
        ("2pl", by(Grain::Row, &pessimistic)),
        ("occ, columns", by(Grain::Column, &optimistic)),
        ("2pl, columns", by(Grain::Column, &pessimistic)),
    ]
}

/// Takes some of an item if there are as many; whether there were, as far as it was told.
fn take(
    shop: &Shop,
    options: TransactionOptions,
    item: i64,
    count: i64,
) -> Result<(bool, fabius::FutureTransaction)> {
    let mut transaction = shop.database.futures(options);
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
        for (name, options) in modes() {
            shop.run(SET, &[1.into(), 10.into()]).unwrap();
            let (enough, transaction) = take(shop, options.clone(), 1, 4).unwrap();
            assert!(enough, "{name}");
            block_on(transaction.commit()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
            assert_eq!(shop.quantity(1), 6, "{name}");
            let (enough, transaction) = take(shop, options.clone(), 1, 7).unwrap();
            assert_eq!(enough, options.speculative, "{name}");
            let committed = state(block_on(transaction.commit()));
            // Speculation was wrong.
            assert_eq!(committed, options.speculative.then_some(SqlState::SERIALIZATION_FAILURE), "{name}");
            assert_eq!(shop.quantity(1), 6, "{name}");
        }
    });
}

/// Goal: with conditions, buyers of plenty are not in each other's way; conventional ones are.
#[test]
fn plenty() {
    on_every_engine(|shop| {
        for (name, options) in modes() {
            shop.run(SET, &[1.into(), 10.into()]).unwrap();
            let (_, first) = take(shop, options.clone(), 1, 3).unwrap();
            let (_, second) = take(shop, options.clone(), 1, 3).unwrap();
            let first = state(block_on(first.commit()));
            let second = state(block_on(second.commit()));
            let expected = options.conventional.map(|_| SqlState::SERIALIZATION_FAILURE);
            assert_eq!((first, second), (None, expected), "{name}");
            assert_eq!(shop.quantity(1), if options.conventional.is_some() { 7 } else { 4 }, "{name}");
        }
    });
}

/// Goal: of the last item, exactly one is sold.
#[test]
fn the_last_item() {
    on_every_engine(|shop| {
        for (name, options) in modes() {
            shop.run(SET, &[2.into(), 1.into()]).unwrap();
            let (_, first) = take(shop, options.clone(), 2, 1).unwrap();
            let (_, second) = take(shop, options.clone(), 2, 1).unwrap();
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
        let mut transaction = shop.database.futures(TransactionOptions::default());
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

/// Goal: conventional transactions over futures depend on rows, or on columns of rows, as they say.
#[test]
fn columns_are_objects() {
    on_every_engine(|shop| {
        for (name, options) in modes().into_iter().filter(|(_, options)| options.conventional.is_some()) {
            let depends_on_row = options.conventional == Some(Grain::Row);
            shop.run(SET, &[1.into(), 10.into()]).unwrap();
            let (enough, transaction) = take(shop, options.clone(), 1, 4).unwrap();
            assert!(enough, "{name}");
            let mut other = shop.database.futures(TransactionOptions {
                lock_timeout: Some(std::time::Duration::ZERO),
                ..options.clone()
            });
            other.write("stock", [1], "name", name);
            let renamed = state(block_on(other.commit()));
            let taken = state(block_on(transaction.commit()));
            let expected = match (depends_on_row, options.concurrency) {
                (false, _) => (None, None),
                (true, Concurrency::Optimistic) => (None, Some(SqlState::SERIALIZATION_FAILURE)),
                (true, Concurrency::Pessimistic) => (Some(SqlState::LOCK_NOT_AVAILABLE), None),
            };
            assert_eq!((renamed, taken), expected, "{name}");
        }
    });
}

/// Goal: write skew is not possible: two conditions over the same two rows, each of which the other breaks.
#[test]
fn conditions_over_several_rows() {
    on_every_engine(|shop| {
        for (name, options) in modes().into_iter().filter(|(_, options)| options.conventional.is_none()) {
            shop.run(SET, &[1.into(), 1.into()]).unwrap();
            shop.run(SET, &[3.into(), 1.into()]).unwrap();
            let on_call = |leaving: i64| {
                let mut transaction = shop.database.futures(options.clone());
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
            let (_, transaction) = take(shop, TransactionOptions::default(), 1, count).unwrap();
            block_on(transaction.commit()).unwrap();
        }
        assert_eq!(shop.database.definitions().catalog.procedures().count(), before + 1);
    });
}

/// Goal: columns of a row are read together, as are rows by an index and of a range; what they are is known when
/// somebody asks, or at commit.
#[test]
fn several_columns_an_index_and_ranges() {
    on_every_engine(|shop| {
        for (place, item) in [(1, 10), (2, 20), (3, 30)] {
            shop.run(LINE, &[7.into(), Value::Int(place), item.into()]).unwrap();
        }
        let mut transaction = shop.database.futures(TransactionOptions::default());
        let [name, quantity] = transaction.read_columns("stock", [1], ["name", "quantity"]);
        let [missing, _] = transaction.read_columns("stock", [99], ["name", "quantity"]);
        let by_name = RowRange::of("stock").by("by_name").equal(["cup"]);
        let [item, of_cup] = transaction.first(by_name, ["item", "quantity"]).unwrap();
        let most = RowRange::of("stock").by("by_quantity").descending();
        let [most] = transaction.first(most, ["item"]).unwrap();
        let none = RowRange::of("stock").by("by_name").equal(["jar"]);
        let [nothing] = transaction.first(none, ["item"]).unwrap();
        let lines = RowRange::of("lines").equal([7]).from(2);
        let lines = transaction.rows(lines, ["position", "item"]).unwrap();
        assert_eq!(transaction.looked_up(), 0, "nothing is read before somebody asks");

        assert!(block_on(transaction.is_true(name.equals("pen").and(missing.is_null()))).unwrap());
        assert!(block_on(transaction.is_true(nothing.is_null().and(most.equals(1)))).unwrap());
        let known = block_on(transaction.row_values(&lines)).unwrap();
        assert_eq!(known, [[Value::Int(2), 20i64.into()], [Value::Int(3), 30i64.into()]]);
        let range =
            (lines.min("item") + lines.max("item")).equals(lines.sum("item")).and(lines.count().equals(2));
        assert!(block_on(transaction.is_true(range)).unwrap());
        transaction.write("stock", [item], "quantity", &of_cup + &quantity + lines.sum("item"));
        block_on(transaction.commit()).unwrap();
        assert_eq!(shop.quantity(3), 5 + 10 + 50);
    });
}

/// Goal: a range that was asked about is a condition: others may add to it what does not change the answer.
#[test]
fn ranges_are_conditions() {
    on_every_engine(|shop| {
        for (name, options) in modes().into_iter().filter(|(_, options)| !options.speculative) {
            let number = name.len() as i64 + 100 * options.concurrency as i64;
            shop.run(LINE, &[number.into(), Value::Int(1), 10.into()]).unwrap();
            let count_lines = |at_most: i64| {
                let mut transaction = shop.database.futures(options.clone());
                let lines = RowRange::of("lines").equal([number]);
                let lines = transaction.rows(lines, ["item"]).unwrap();
                assert!(block_on(transaction.is_true(lines.count().at_most(at_most))).unwrap(), "{name}");
                transaction.write("stock", [1], "quantity", number);
                transaction
            };
            let (few, many) = (count_lines(1), count_lines(9));
            let mut other = shop.database.futures(TransactionOptions {
                lock_timeout: Some(std::time::Duration::ZERO),
                ..Default::default()
            });
            let line = |value: i64| FutureValue::from(value);
            other.insert(
                "lines",
                [("number", line(number)), ("position", Value::Int(2).into()), ("item", line(5))],
            );
            let added = block_on(other.commit());
            let waits = options.concurrency == Concurrency::Pessimistic;
            assert_eq!(state(added), waits.then_some(SqlState::LOCK_NOT_AVAILABLE), "{name}");
            let expected = (!waits).then_some(SqlState::SERIALIZATION_FAILURE);
            assert_eq!(state(block_on(few.commit())), expected, "{name}");
            assert_eq!(state(block_on(many.commit())), None, "{name}");
        }
    });
}

/// Goal: a question costs what its answer depends on, not the whole transaction again: one row for each, however many
/// have been read, asked and written before, unless it is of a row that was written.
#[test]
fn questions_cost_what_they_add() {
    on_every_engine(|shop| {
        for item in 10..60i64 {
            shop.run(ADD, &[item.into(), format!("item {item}").into(), item.into()]).unwrap();
        }
        let pessimistic = TransactionOptions { concurrency: Concurrency::Pessimistic, ..Default::default() };
        for options in [TransactionOptions::default(), pessimistic] {
            let before = shop.database.definitions().catalog.procedures().count();
            let mut transaction = shop.database.futures(options);
            for (asked, item) in (10..60i64).enumerate() {
                let quantity = transaction.read("stock", [item], "quantity");
                assert!(block_on(transaction.is_true(quantity.at_least(item))).unwrap());
                assert_eq!(transaction.looked_up(), 2 * asked + 1);
                let value = block_on(transaction.value(&quantity, DataType::BigInt)).unwrap();
                assert_eq!(value, Value::BigInt(item));
                assert_eq!(transaction.looked_up(), 2 * asked + 2);
                transaction.write("stock", [item], "quantity", &quantity + 1);
            }
            // The rows that a read depends on: what was written to it before, and what that was made of.
            let again = transaction.read("stock", [20], "quantity");
            let so_far = transaction.looked_up();
            assert_eq!(block_on(transaction.value(&again, DataType::BigInt)).unwrap(), Value::BigInt(21));
            assert_eq!(transaction.looked_up(), so_far + 1);
            block_on(transaction.commit()).unwrap();
            assert_eq!(shop.quantity(20), 21);
            assert!(shop.database.definitions().catalog.procedures().count() <= before + 1);
            for item in 10..60i64 {
                shop.run(SET, &[item.into(), item.into()]).unwrap();
            }
        }
    });
}
