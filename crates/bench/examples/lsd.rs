//! What the transactions of the `lsd-*` figures cost without SQL and without connections: the clients' statements are
//! programs, the database is in their process, and messages to it are held back.
//!
//! ```sh
//! cargo run --release -p fabius-bench --example lsd -- [SECONDS [DELAY_MS [CLIENTS]]]
//! ```
//!
//! HOTKEY and ASSERT as in `lsd-8`, and New-Order and Payment of TPC-C in the statements of `lsd-7`. After each line
//! the rows are as its committed transactions leave them. Processor time is that of the process, clients included.

use fabius::{
    Concurrency, Database, Durability, Error, Grain, Hold, Options, Result, SqlState, Statement, Transaction,
    TransactionOptions, Value, block_on,
};
use fabius_bench::machine::processor_time;
use fabius_bench::table::Table;
use fabius_env::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const TABLES: &str = "
    table counters { id: bigint, v: bigint, primary key (id) }
    table warehouse { w: bigint, tax: bigint, ytd: bigint, primary key (w) }
    table district { w: bigint, d: bigint, tax: bigint, ytd: bigint, next: bigint, primary key (w, d) }
    table customer { w: bigint, d: bigint, c: bigint, discount: bigint, balance: bigint, paid: bigint,
        payments: bigint, primary key (w, d, c) }
    table item { i: bigint, price: bigint, primary key (i) }
    table stock { w: bigint, i: bigint, quantity: bigint, ytd: bigint, orders: bigint, primary key (w, i) }
    table orders { w: bigint, d: bigint, o: bigint, c: bigint, lines: bigint, primary key (w, d, o) }
    table order_line { w: bigint, d: bigint, o: bigint, number: bigint, i: bigint, quantity: bigint, amount: bigint,
        primary key (w, d, o, number) }
";

/// A statement's name in [`Statements`] and its program.
macro_rules! statements {
    ($($name:ident: $text:expr,)*) => {
        struct Statements { $($name: Arc<Statement>,)* }

        impl Statements {
            fn prepare(database: &Database) -> Result<Statements> {
                Ok(Statements { $($name: database.statement_text($text)?,)* })
            }
        }
    };
}

statements! {
    put_counter: "procedure p(id: bigint, v: bigint) -> bigint {
        for row in counters[id] { delete row } insert counters { id: id, v: v } return 1 }",
    read: "procedure p(id: bigint) -> bigint { return counters[id].v }",
    write: "procedure p(id: bigint, v: bigint) -> bigint { counters[id].v = v return 1 }",
    increment: "procedure p(id: bigint) -> bigint { counters[id].v += 1 return 1 }",
    decrement: "procedure p(id: bigint) -> bigint {
        var rows: bigint = 0
        if counters[id].v > 1 { counters[id].v -= 1 rows += 1 }
        return rows }",
    put_warehouse: "procedure p(w: bigint, items: bigint, customers: bigint) -> bigint {
        insert warehouse { w: w, tax: 7, ytd: 0 }
        for i in 1 to items { insert stock { w: w, i: i, quantity: 10 + i % 90, ytd: 0, orders: 0 } }
        for d in 1 to 10 {
            insert district { w: w, d: d, tax: 5, ytd: 0, next: 1 }
            for c in 1 to customers {
                insert customer { w: w, d: d, c: c, discount: c % 50, balance: 0, paid: 0, payments: 0 }
            }
        }
        return 1 }",
    put_items: "procedure p(items: bigint) -> bigint {
        for i in 1 to items { insert item { i: i, price: 100 + i * 7919 % 9900 } }
        return 1 }",
    warehouse_tax: "procedure p(w: bigint) -> bigint { return warehouse[w].tax }",
    discount: "procedure p(w: bigint, d: bigint, c: bigint) -> bigint { return customer[w, d, c].discount }",
    district: "procedure p(w: bigint, d: bigint) -> (tax: bigint, next: bigint) {
        return district[w, d].tax, district[w, d].next }",
    district_tax: "procedure p(w: bigint, d: bigint) -> bigint { return district[w, d].tax }",
    set_next: "procedure p(w: bigint, d: bigint, next: bigint) -> bigint { district[w, d].next = next return 1 }",
    add_next: "procedure p(w: bigint, d: bigint) -> bigint { district[w, d].next += 1 return 1 }",
    price: "procedure p(i: bigint) -> bigint { return item[i].price }",
    stock: "procedure p(w: bigint, i: bigint) -> (quantity: bigint, ytd: bigint, orders: bigint) {
        return stock[w, i].quantity, stock[w, i].ytd, stock[w, i].orders }",
    set_stock: "procedure p(w: bigint, i: bigint, quantity: bigint, ytd: bigint, orders: bigint) -> bigint {
        update stock[w, i] { quantity: quantity, ytd: ytd, orders: orders } return 1 }",
    take_stock: "procedure p(w: bigint, i: bigint, count: bigint) -> bigint {
        var rows: bigint = 0
        if stock[w, i].quantity >= count + 10 {
            stock[w, i].quantity -= count stock[w, i].ytd += count stock[w, i].orders += 1 rows += 1
        }
        return rows }",
    refill_stock: "procedure p(w: bigint, i: bigint, count: bigint) -> bigint {
        stock[w, i].quantity += 91 - count stock[w, i].ytd += count stock[w, i].orders += 1 return 1 }",
    order: "procedure p(w: bigint, d: bigint, o: bigint, c: bigint, lines: bigint) -> bigint {
        insert orders { w: w, d: d, o: o, c: c, lines: lines } return 1 }",
    future_order: "procedure p(w: bigint, d: bigint, c: bigint, lines: bigint) -> bigint {
        insert orders { w: w, d: d, o: district[w, d].next - 1, c: c, lines: lines } return 1 }",
    line: "procedure p(w: bigint, d: bigint, o: bigint, n: bigint, i: bigint, count: bigint, amount: bigint) -> bigint {
        insert order_line { w: w, d: d, o: o, number: n, i: i, quantity: count, amount: amount } return 1 }",
    future_line: "procedure p(w: bigint, d: bigint, n: bigint, i: bigint, count: bigint) -> bigint {
        insert order_line { w: w, d: d, o: district[w, d].next - 1, number: n, i: i, quantity: count,
            amount: item[i].price * count } return 1 }",
    warehouse_ytd: "procedure p(w: bigint) -> bigint { return warehouse[w].ytd }",
    set_warehouse_ytd: "procedure p(w: bigint, ytd: bigint) -> bigint { warehouse[w].ytd = ytd return 1 }",
    add_warehouse_ytd: "procedure p(w: bigint, paid: bigint) -> bigint { warehouse[w].ytd += paid return 1 }",
    district_ytd: "procedure p(w: bigint, d: bigint) -> bigint { return district[w, d].ytd }",
    set_district_ytd: "procedure p(w: bigint, d: bigint, ytd: bigint) -> bigint { district[w, d].ytd = ytd return 1 }",
    add_district_ytd: "procedure p(w: bigint, d: bigint, paid: bigint) -> bigint {
        district[w, d].ytd += paid return 1 }",
    customer: "procedure p(w: bigint, d: bigint, c: bigint) -> (balance: bigint, paid: bigint, payments: bigint) {
        return customer[w, d, c].balance, customer[w, d, c].paid, customer[w, d, c].payments }",
    set_customer: "procedure p(w: bigint, d: bigint, c: bigint, balance: bigint, paid: bigint, payments: bigint)
            -> bigint {
        update customer[w, d, c] { balance: balance, paid: paid, payments: payments } return 1 }",
    add_customer: "procedure p(w: bigint, d: bigint, c: bigint, paid: bigint) -> bigint {
        customer[w, d, c].balance -= paid customer[w, d, c].paid += paid customer[w, d, c].payments += 1 return 1 }",
}

/// A line of the table.
#[derive(Clone, Copy)]
struct Protocol {
    name: &'static str,
    concurrency: Concurrency,
    conventional: Option<Grain>,
    speculative: bool,
}

const PROTOCOLS: [Protocol; 7] = {
    use Concurrency::{Optimistic, Pessimistic};
    const fn of(name: &'static str, concurrency: Concurrency, conventional: Option<Grain>) -> Protocol {
        Protocol { name, concurrency, conventional, speculative: false }
    }
    [
        of("OCC", Optimistic, Some(Grain::Row)),
        of("OCC by column", Optimistic, Some(Grain::Column)),
        of("2PL", Pessimistic, Some(Grain::Row)),
        of("2PL by column", Pessimistic, Some(Grain::Column)),
        of("OCC-LSD", Optimistic, None),
        of("2PL-LSD", Pessimistic, None),
        Protocol { name: "OCC-LSD+", concurrency: Optimistic, conventional: None, speculative: true },
    ]
};

/// What clients do.
#[derive(Clone, Copy)]
enum Work {
    /// Adds 1 to the shared counter, so many times in a thousand, or to the client's own.
    Hotkey { per_mille: u64 },
    /// Takes 1 away from the shared counter or the client's own, which is restored before it is 0.
    Assert { per_mille: u64, initial: i64 },
    /// New-Order and Payment, about as often as each other.
    Tpcc { warehouses: i64 },
}

const ITEMS: i64 = 10_000;
const CUSTOMERS: i64 = 100;

/// How a run is made.
#[derive(Clone, Copy)]
struct Load {
    clients: u64,
    time: Duration,
    delay: Duration,
}

/// What all clients have done.
#[derive(Default)]
struct Tally {
    committed: AtomicU64,
    aborted: AtomicU64,
    messages: AtomicU64,
    latency_us: AtomicU64,
    orders: AtomicU64,
    paid: AtomicU64,
    /// Transactions of each counter.
    counters: Vec<AtomicU64>,
}

/// A client, and its transaction if one is open.
struct Client {
    database: Arc<Database>,
    statements: Arc<Statements>,
    tally: Arc<Tally>,
    protocol: Protocol,
    work: Work,
    delay: Duration,
    number: i64,
    open: Option<Transaction>,
}

fn number(results: &[Value], at: usize) -> i64 {
    results.get(at).and_then(Value::as_integer).unwrap_or_default()
}

impl Client {
    async fn message(&self) {
        self.tally.messages.fetch_add(1, Relaxed);
        if !self.delay.is_zero() {
            tokio::time::sleep(self.delay).await;
        }
    }

    /// Runs a statement in the transaction, which begins with its first.
    async fn run(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        hold: Hold,
    ) -> Result<Vec<Value>> {
        if self.open.is_none() {
            let Protocol { concurrency, conventional, speculative, .. } = self.protocol;
            let options = TransactionOptions { concurrency, conventional, speculative, ..Default::default() };
            self.open = Some(self.database.begin(options));
        }
        let transaction = self.open.as_mut().expect("it was begun");
        transaction.run(statement, arguments, hold).await
    }

    /// A statement in a message of its own.
    async fn ask(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        hold: Hold,
    ) -> Result<Vec<Value>> {
        self.message().await;
        self.run(statement, arguments, hold).await
    }

    /// A read of what is going to be written.
    async fn ask_to_write(&mut self, statement: &Arc<Statement>, arguments: &[Value]) -> Result<Vec<Value>> {
        let locks = self.protocol.concurrency == Concurrency::Pessimistic;
        self.ask(statement, arguments, if locks { Hold::LockForUpdate } else { Hold::Observe }).await
    }

    async fn read(&mut self, statement: &Arc<Statement>, arguments: &[Value]) -> Result<Vec<Value>> {
        self.ask(statement, arguments, Hold::Observe).await
    }

    /// The last statements and the commit in one message.
    async fn commit(&mut self, last: &[(&Arc<Statement>, Vec<Value>)]) -> Result<()> {
        self.message().await;
        for (statement, arguments) in last {
            self.run(statement, arguments, Hold::Observe).await?;
        }
        match self.open.take() {
            Some(transaction) => transaction.commit(None).await.map(drop),
            None => Ok(()),
        }
    }

    async fn attempt(&mut self, is_again: bool, random: &mut Random) -> Result<()> {
        let s = self.statements.clone();
        let is_conventional = self.protocol.conventional.is_some();
        match self.work {
            Work::Tpcc { warehouses } => {
                let w = self.number % warehouses + 1;
                let (d, c) = (1 + random.below(10) as i64, 1 + random.below(CUSTOMERS as u64) as i64);
                match random.below(88) < 45 {
                    true => self.new_order(&s, [w, d, c], random).await,
                    false => self.payment(&s, [w, d, c], 100 + random.below(500_000) as i64).await,
                }
            }
            Work::Hotkey { per_mille } => {
                let id = if random.chance(per_mille, 1000) { 0 } else { self.number + 1 };
                if is_conventional {
                    let value = number(&self.ask_to_write(&s.read, &[id.into()]).await?, 0);
                    self.commit(&[(&s.write, vec![id.into(), (value + 1).into()])]).await?;
                } else {
                    self.commit(&[(&s.increment, vec![id.into()])]).await?;
                }
                self.tally.counters[id as usize].fetch_add(1, Relaxed);
                Ok(())
            }
            Work::Assert { per_mille, initial } => {
                let id = if random.chance(per_mille, 1000) { 0 } else { self.number + 1 };
                let restored = vec![id.into(), initial.into()];
                if is_conventional {
                    let value = number(&self.ask_to_write(&s.read, &[id.into()]).await?, 0);
                    let value = if value > 1 { value - 1 } else { initial };
                    self.commit(&[(&s.write, vec![id.into(), value.into()])]).await?;
                } else if self.protocol.speculative && !is_again {
                    self.commit(&[(&s.decrement, vec![id.into()])]).await?;
                } else {
                    // An assumption that was wrong is not made again (section 3.3.2).
                    self.protocol.speculative = false;
                    let asked = self.ask(&s.decrement, &[id.into()], Hold::Observe).await;
                    self.protocol.speculative = is_again;
                    match number(&asked?, 0) {
                        0 => self.commit(&[(&s.write, restored)]).await?,
                        _ => self.commit(&[]).await?,
                    }
                }
                self.tally.counters[id as usize].fetch_add(1, Relaxed);
                Ok(())
            }
        }
    }

    async fn new_order(&mut self, s: &Statements, [w, d, c]: [i64; 3], random: &mut Random) -> Result<()> {
        let mut lines: Vec<(i64, i64)> = Vec::new();
        for _ in 0..5 + random.below(11) {
            let item = 1 + random.below(ITEMS as u64) as i64;
            if lines.iter().all(|line| line.0 != item) {
                lines.push((item, 1 + random.below(10) as i64));
            }
        }
        let (place, count) = ([w.into(), d.into()], lines.len() as i64);
        let customer = vec![w.into(), d.into(), c.into()];
        let mut last: Vec<(&Arc<Statement>, Vec<Value>)> = Vec::new();
        if self.protocol.conventional.is_some() {
            self.read(&s.warehouse_tax, &place[..1]).await?;
            self.read(&s.discount, &customer).await?;
            let order = number(&self.ask_to_write(&s.district, &place).await?, 1);
            let head = [w, d, order, c, count].map(Value::from).to_vec();
            last.push((&s.set_next, [w, d, order + 1].map(Value::from).to_vec()));
            last.push((&s.order, head));
            for (at, (item, quantity)) in (1..).zip(&lines) {
                let price = number(&self.read(&s.price, &[(*item).into()]).await?, 0);
                let found = self.ask_to_write(&s.stock, &[w.into(), (*item).into()]).await?;
                let [left, ytd, orders] = [0, 1, 2].map(|at| number(&found, at));
                let left = if left >= quantity + 10 { left - quantity } else { left - quantity + 91 };
                let stock = [w, *item, left, ytd + quantity, orders + 1];
                let line = [w, d, order, at, *item, *quantity, price * quantity];
                last.push((&s.set_stock, stock.map(Value::from).to_vec()));
                last.push((&s.line, line.map(Value::from).to_vec()));
            }
        } else {
            let mut refills = Vec::new();
            for (item, quantity) in &lines {
                let taken = [w, *item, *quantity].map(Value::from).to_vec();
                if number(&self.read(&s.take_stock, &taken).await?, 0) == 0 {
                    refills.push(taken);
                }
            }
            last.extend(refills.into_iter().map(|taken| (&s.refill_stock, taken)));
            last.push((&s.add_next, place.to_vec()));
            last.push((&s.future_order, [w, d, c, count].map(Value::from).to_vec()));
            last.push((&s.warehouse_tax, vec![w.into()]));
            last.push((&s.district_tax, place.to_vec()));
            last.push((&s.discount, customer));
            for (at, (item, quantity)) in (1..).zip(&lines) {
                last.push((&s.future_line, [w, d, at, *item, *quantity].map(Value::from).to_vec()));
            }
        }
        self.commit(&last).await?;
        self.tally.orders.fetch_add(1, Relaxed);
        Ok(())
    }

    async fn payment(&mut self, s: &Statements, [w, d, c]: [i64; 3], paid: i64) -> Result<()> {
        let customer = [w, d, c].map(Value::from);
        if self.protocol.conventional.is_some() {
            let warehouse = number(&self.ask_to_write(&s.warehouse_ytd, &customer[..1]).await?, 0);
            let district = number(&self.ask_to_write(&s.district_ytd, &customer[..2]).await?, 0);
            let found = self.ask_to_write(&s.customer, &customer).await?;
            let [balance, so_far, payments] = [0, 1, 2].map(|at| number(&found, at));
            let changed = [w, d, c, balance - paid, so_far + paid, payments + 1];
            self.commit(&[
                (&s.set_warehouse_ytd, vec![w.into(), (warehouse + paid).into()]),
                (&s.set_district_ytd, vec![w.into(), d.into(), (district + paid).into()]),
                (&s.set_customer, changed.map(Value::from).to_vec()),
            ])
            .await?;
        } else {
            self.commit(&[
                (&s.add_warehouse_ytd, vec![w.into(), paid.into()]),
                (&s.add_district_ytd, vec![w.into(), d.into(), paid.into()]),
                (&s.add_customer, [w, d, c, paid].map(Value::from).to_vec()),
            ])
            .await?;
        }
        self.tally.paid.fetch_add(paid as u64, Relaxed);
        Ok(())
    }

    /// Makes transactions until the time is over, each until it commits.
    async fn work(mut self, end: Instant) -> Result<()> {
        let mut random = Random::seeded(self.number as u64 + 1);
        while Instant::now() < end {
            let (began, choices) = (Instant::now(), random.clone());
            let mut is_again = false;
            loop {
                random = choices.clone();
                match self.attempt(is_again, &mut random).await {
                    Ok(()) => {
                        self.tally.committed.fetch_add(1, Relaxed);
                        self.tally.latency_us.fetch_add(began.elapsed().as_micros() as u64, Relaxed);
                        break;
                    }
                    Err(error) if error.state() == SqlState::SERIALIZATION_FAILURE => {}
                    Err(error) => return Err(error),
                }
                self.tally.aborted.fetch_add(1, Relaxed);
                if self.open.take().is_some() {
                    self.message().await;
                }
                is_again = true;
                if Instant::now() >= end {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// A database with the rows of some work.
fn load(work: Work, clients: u64) -> Result<(Arc<Database>, Arc<Statements>)> {
    let options = Options { durability: Durability::None, ..Options::default() };
    let database = Arc::new(Database::in_memory(options));
    database.define(TABLES)?;
    let statements = Arc::new(Statements::prepare(&database)?);
    let run = |statement: &Statement, arguments: &[Value]| block_on(database.run(statement, arguments, None));
    match work {
        Work::Tpcc { warehouses } => {
            run(&statements.put_items, &[ITEMS.into()])?;
            for w in 1..=warehouses {
                run(&statements.put_warehouse, &[w.into(), ITEMS.into(), CUSTOMERS.into()])?;
            }
        }
        Work::Hotkey { .. } | Work::Assert { .. } => {
            let initial = if let Work::Assert { initial, .. } = work { initial } else { 0 };
            for id in 0..=clients as i64 {
                run(&statements.put_counter, &[id.into(), initial.into()])?;
            }
        }
    }
    Ok((database, statements))
}

/// Whether the rows are what the committed transactions leave, one after the other.
fn check(work: Work, database: &Database, tally: &Tally) -> Result<()> {
    let column = |table: &str, at: usize| -> Result<Vec<i64>> {
        Ok(database.rows(table)?.iter().map(|row| number(row, at)).collect())
    };
    let sum = |table: &str, at: usize| -> Result<i64> { Ok(column(table, at)?.iter().sum()) };
    let pairs = match work {
        Work::Tpcc { .. } => vec![
            (column("orders", 0)?.len() as i64, tally.orders.load(Relaxed) as i64),
            (sum("district", 4)? - column("district", 0)?.len() as i64, tally.orders.load(Relaxed) as i64),
            (sum("orders", 4)?, column("order_line", 0)?.len() as i64),
            (sum("stock", 3)?, sum("order_line", 5)?),
            (sum("warehouse", 2)?, tally.paid.load(Relaxed) as i64),
            (sum("district", 3)?, tally.paid.load(Relaxed) as i64),
            (sum("customer", 5)?, tally.paid.load(Relaxed) as i64),
        ],
        Work::Hotkey { .. } | Work::Assert { .. } => {
            let made = tally.counters.iter().map(|made| made.load(Relaxed) as i64);
            let after = made.map(|made| match work {
                Work::Assert { initial, .. } => initial - made % initial,
                _ => made,
            });
            column("counters", 1)?.into_iter().zip(after).collect()
        }
    };
    match pairs.iter().find(|(there, wanted)| there != wanted) {
        None => Ok(()),
        Some((there, wanted)) => {
            Err(Error::new(SqlState(*b"XX000"), format!("there is {there}, not {wanted}")))
        }
    }
}

fn measure(work: Work, load_: Load, table: &mut Table) -> Result<()> {
    for protocol in PROTOCOLS {
        let is_counter = !matches!(work, Work::Tpcc { .. });
        let is_redundant = is_counter && protocol.conventional == Some(Grain::Column);
        if is_redundant || protocol.speculative && !matches!(work, Work::Assert { .. }) {
            continue;
        }
        let (database, statements) = load(work, load_.clients)?;
        let counters = (0..=load_.clients).map(|_| AtomicU64::new(0)).collect();
        let tally = Arc::new(Tally { counters, ..Tally::default() });
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let runtime = runtime.expect("threads for the clients");
        let used = processor_time(std::process::id());
        let began = Instant::now();
        runtime.block_on(async {
            let clients: Vec<_> = (0..load_.clients as i64)
                .map(|number| {
                    let (database, statements) = (database.clone(), statements.clone());
                    let (tally, delay) = (tally.clone(), load_.delay);
                    let client =
                        Client { database, statements, tally, protocol, work, delay, number, open: None };
                    tokio::spawn(client.work(began + load_.time))
                })
                .collect();
            for client in clients {
                client.await.expect("a client")?;
            }
            Ok::<_, Error>(())
        })?;
        let elapsed = began.elapsed();
        let used = processor_time(std::process::id()).zip(used).map(|(after, before)| after - before);
        check(work, &database, &tally)?;
        let count = tally.committed.load(Relaxed).max(1) as f64;
        let aborted = tally.aborted.load(Relaxed) as f64;
        table.row([
            match work {
                Work::Hotkey { per_mille } => format!("HOTKEY {} %", per_mille / 10),
                Work::Assert { per_mille, initial } => {
                    format!("ASSERT {}, {initial}", if per_mille == 0 { "own" } else { "hot" })
                }
                Work::Tpcc { warehouses } => format!("TPC-C {warehouses}"),
            },
            protocol.name.to_string(),
            format!("{:.0}", count / elapsed.as_secs_f64()),
            format!("{:.1} ms", tally.latency_us.load(Relaxed) as f64 / count / 1e3),
            format!("{:.0} %", aborted / (aborted + count) * 100.0),
            format!("{:.2}", tally.messages.load(Relaxed) as f64 / count),
            used.map_or("not told".into(), |used| format!("{:.0} us", used.as_secs_f64() * 1e6 / count)),
        ]);
    }
    Ok(())
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse::<f64>().unwrap_or(1.0));
    let time = Duration::from_secs_f64(numbers.next().unwrap_or(2.0));
    let delay = Duration::from_secs_f64(numbers.next().unwrap_or(1.0) / 1e3);
    let load = Load { clients: numbers.next().unwrap_or(64.0) as u64, time, delay };
    let mut table =
        Table::new(["", "", "transactions/s", "mean latency", "aborted", "messages", "processor time"]);
    let works = [
        Work::Hotkey { per_mille: 0 },
        Work::Hotkey { per_mille: 500 },
        Work::Hotkey { per_mille: 1000 },
        Work::Assert { per_mille: 0, initial: 1000 },
        Work::Assert { per_mille: 1000, initial: 1000 },
        Work::Tpcc { warehouses: 1 },
        Work::Tpcc { warehouses: 8 },
        Work::Tpcc { warehouses: 32 },
    ];
    for work in works {
        measure(work, load, &mut table)?;
    }
    print!("{} clients, messages held back by {delay:?}\n{table}", load.clients);
    Ok(())
}
