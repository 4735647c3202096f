//! A shop whose last items are wanted by several clients at once.

#![allow(dead_code, reason = "each test uses a part")]

use fabius::{
    Concurrency, Database, EngineKind, Error, Hold, Options, Result, SqlState, Statement, Transaction,
    TransactionOptions, Value, block_on,
};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};

pub const TABLES: &str = "
    table stock { item: bigint, name: text, quantity: bigint, primary key (item), unique index by_name (name),
        index by_quantity (quantity) }
    table lines { number: bigint, position: int, item: bigint, primary key (number, position) }
";

pub const READ: &str = "procedure r(item: bigint) -> list of (name: text, quantity: bigint) {
    var rows: list of (name: text, quantity: bigint) = []
    for row in stock[item] { append rows (row.name, row.quantity) }
    return rows
}";

pub const TAKE: &str = "procedure t(item: bigint, count: bigint) -> bigint {
    var rows: bigint = 0
    if exists stock[item] {
        if stock[item].quantity >= count {
            stock[item].quantity -= count
            rows += 1
        }
    }
    return rows
}";

pub const ADD: &str = "procedure a(item: bigint, name: text, quantity: bigint) -> bigint {
    insert stock { item: item, name: name, quantity: quantity }
    return 1
}";

pub const SET: &str = "procedure s(item: bigint, quantity: bigint) -> bigint {
    var rows: bigint = 0
    if exists stock[item] {
        stock[item].quantity = quantity
        rows += 1
    }
    return rows
}";

pub const REMOVE: &str = "procedure d(item: bigint) -> bigint {
    var rows: bigint = 0
    for row in stock[item] {
        delete row
        rows += 1
    }
    return rows
}";

pub const ALL: &str = "procedure l() -> list of (item: bigint, quantity: bigint) {
    var rows: list of (item: bigint, quantity: bigint) = []
    for row in stock { append rows (row.item, row.quantity) }
    return rows
}";

pub const FULL: &str = "procedure f(low: bigint) -> list of bigint {
    var rows: list of bigint = []
    for row in stock by by_quantity[low ..] descending { append rows (row.item) }
    return rows
}";

pub const LINE: &str = "procedure i(number: bigint, place: int, item: bigint) -> bigint {
    insert lines { number: number, position: place, item: item }
    return 1
}";

pub struct Shop {
    pub database: Arc<Database>,
}

impl Shop {
    pub fn new(engine: EngineKind) -> Shop {
        let database = Database::in_memory(Options { engine, ..Options::default() });
        database.define(TABLES).expect("tables");
        let shop = Shop { database: Arc::new(database) };
        for (item, name, quantity) in [(1, "pen", 10), (2, "ink", 1), (3, "cup", 5)] {
            shop.run(ADD, &[item.into(), name.into(), quantity.into()]).expect("inserted");
        }
        shop
    }

    pub fn statement(&self, text: &str) -> Arc<Statement> {
        self.database.statement_text(text).expect("a statement")
    }

    pub fn run(&self, text: &str, arguments: &[Value]) -> Result<Vec<Value>> {
        block_on(self.database.run(&self.statement(text), arguments, None)).map(|outcome| outcome.results)
    }

    pub fn begin(&self) -> Client<'_> {
        self.begin_as("", Concurrency::Optimistic)
    }

    pub fn begin_as(&self, label: &str, concurrency: Concurrency) -> Client<'_> {
        let options = TransactionOptions { concurrency, label: label.into(), ..Default::default() };
        Client { shop: self, transaction: self.database.begin(options) }
    }

    pub fn quantity(&self, item: i64) -> i64 {
        match &self.run(READ, &[item.into()]).expect("rows")[0] {
            Value::List(rows) => rows[0][1].as_integer().expect("a number"),
            other => panic!("{other}"),
        }
    }
}

pub struct Client<'s> {
    pub shop: &'s Shop,
    pub transaction: Transaction,
}

impl Client<'_> {
    pub fn run(&mut self, text: &str, arguments: &[Value]) -> Result<Value> {
        block_on(self.holding(text, arguments, Hold::Observe))
    }

    /// Runs a statement, which holds on to what it reads as `hold` says.
    pub async fn holding(&mut self, text: &str, arguments: &[Value], hold: Hold) -> Result<Value> {
        let statement = self.shop.statement(text);
        let results = self.transaction.run(&statement, arguments, hold).await?;
        Ok(results.into_iter().next().expect("a result"))
    }

    pub fn ok(&mut self, text: &str, arguments: &[Value]) -> Value {
        self.run(text, arguments).expect("it runs")
    }

    pub fn commit(self) -> Result<()> {
        block_on(self.transaction.commit(None)).map(drop)
    }
}

pub fn rows(values: &[&[i64]]) -> Value {
    Value::List(values.iter().map(|row| row.iter().map(|value| (*value).into()).collect()).collect())
}

pub fn is_conflict(result: Result<()>) -> Error {
    let error = result.expect_err("a conflict");
    assert_eq!(error.state(), SqlState::SERIALIZATION_FAILURE, "{error:?}");
    error
}

/// Whether a future has to wait.
pub fn waits<F: Future>(future: &mut Pin<Box<F>>) -> bool {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending()
}

pub fn on_every_engine(test: impl Fn(&Shop)) {
    for engine in EngineKind::ALL {
        println!("{engine}");
        test(&Shop::new(engine));
    }
}
