//! TPC-C with its statements sent one by one (LSD, section 4.1).
//!
//! What differs between the interfaces is what a transaction has to know before it commits:
//!
//! | | conventional | LSD |
//! |---|---|---|
//! | reads | a message each | none: they are parts of expressions, or shown along with the commit |
//! | conditions | tested by the client | a message each (`s_quantity` of New-Order) |
//! | writes | values, along with the commit | expressions, along with the commit |
//!
//! So an order takes its number from its district when it is committed. Conventional locking says `FOR UPDATE` where it
//! is going to write. All five transactions in the standard's mix; customers are known by number, items come from the
//! home warehouse, a delivery is of one district, and columns that no transaction looks at are left out.

use super::client::{self, Client};
use super::clients::{Attempt, Kinds, Work, not_so};
use fabius::Result;
use fabius_env::Random;
use futures::future::join_all;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Statement};

/// How many rows there are.
#[derive(Clone, Copy, Debug)]
pub struct Tpcc {
    /// Warehouses, of ten districts each.
    pub warehouses: i32,
    /// Items.
    pub items: i32,
    /// Customers of a district.
    pub customers: i32,
}

const DISTRICTS: i32 = 10;

const TABLES: &str = "
    DROP TABLE IF EXISTS warehouse, district, customer, history, item, stock, orders, new_order, order_line;
    CREATE TABLE warehouse (w_id int PRIMARY KEY, w_tax int NOT NULL, w_ytd bigint NOT NULL);
    CREATE TABLE district (d_w_id int, d_id int, d_tax int NOT NULL, d_ytd bigint NOT NULL, d_next_o_id int NOT NULL,
        PRIMARY KEY (d_w_id, d_id));
    CREATE TABLE customer (c_w_id int, c_d_id int, c_id int, c_discount int NOT NULL, c_balance bigint NOT NULL,
        c_ytd_payment bigint NOT NULL, c_payment_cnt int NOT NULL, PRIMARY KEY (c_w_id, c_d_id, c_id));
    CREATE TABLE history (h_id bigserial PRIMARY KEY, h_w_id int NOT NULL, h_c_id int NOT NULL, h_amount bigint NOT NULL);
    CREATE TABLE item (i_id int PRIMARY KEY, i_price int NOT NULL);
    CREATE TABLE stock (s_w_id int, s_i_id int, s_quantity int NOT NULL, s_ytd bigint NOT NULL,
        s_order_cnt int NOT NULL, PRIMARY KEY (s_w_id, s_i_id));
    CREATE TABLE orders (o_w_id int, o_d_id int, o_id int, o_c_id int NOT NULL, o_carrier_id int,
        o_ol_cnt int NOT NULL, PRIMARY KEY (o_w_id, o_d_id, o_id));
    CREATE TABLE new_order (no_w_id int, no_d_id int, no_o_id int, PRIMARY KEY (no_w_id, no_d_id, no_o_id));
    CREATE TABLE order_line (ol_w_id int, ol_d_id int, ol_o_id int, ol_number int, ol_i_id int NOT NULL,
        ol_quantity int NOT NULL, ol_amount bigint NOT NULL, PRIMARY KEY (ol_w_id, ol_d_id, ol_o_id, ol_number))";

impl Tpcc {
    /// Makes and fills the tables.
    ///
    /// # Errors
    /// What the server says.
    pub async fn load(&self, client: &Client) -> Result<()> {
        let Tpcc { warehouses, items, customers } = self;
        let sql = &client.sql;
        sql.batch_execute(TABLES).await.map_err(client::refused)?;
        let text =
            format!("INSERT INTO item SELECT i, 100 + i * 7919 % 9900 FROM generate_series(1, {items}) AS i");
        sql.batch_execute(&text).await.map_err(client::refused)?;
        for w in 1..=*warehouses {
            let mut text = format!(
                "INSERT INTO warehouse VALUES ({w}, {w} * 37 % 20, 0);
                 INSERT INTO stock SELECT {w}, i, 10 + i % 90, 0, 0 FROM generate_series(1, {items}) AS i;"
            );
            for d in 1..=DISTRICTS {
                text += &format!(
                    "INSERT INTO district VALUES ({w}, {d}, {d} * 31 % 20, 0, 1);
                     INSERT INTO customer SELECT {w}, {d}, i, i % 50, 0, 0, 0 FROM generate_series(1, {customers}) AS i;"
                );
            }
            sql.batch_execute(&text).await.map_err(client::refused)?;
        }
        Ok(())
    }
}

macro_rules! statements {
    ($($name:ident: $sql:expr,)*) => {
        /// What a connection has prepared.
        pub struct Statements { $($name: Statement,)* }

        impl Statements {
            async fn prepare(client: &Client) -> Result<Statements, Error> {
                let lock = if client.locks_early() { "FOR UPDATE" } else { "" };
                Ok(Statements { $($name: client.sql.prepare(&$sql.replace("{lock}", lock)).await?,)* })
            }
        }
    };
}

statements! {
    warehouse_tax: "SELECT w_tax FROM warehouse WHERE w_id = $1",
    district_tax: "SELECT d_tax FROM district WHERE d_w_id = $1 AND d_id = $2",
    next_order: "SELECT d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
    district: "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2 {lock}",
    set_next_order: "UPDATE district SET d_next_o_id = $3 WHERE d_w_id = $1 AND d_id = $2",
    add_next_order: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2",
    discount: "SELECT c_discount FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    price: "SELECT i_price FROM item WHERE i_id = $1",
    quantity: "SELECT s_quantity FROM stock WHERE s_w_id = $1 AND s_i_id = $2",
    stock: "SELECT s_quantity, s_ytd, s_order_cnt FROM stock WHERE s_w_id = $1 AND s_i_id = $2 {lock}",
    set_stock: "UPDATE stock SET s_quantity = $3, s_ytd = $4, s_order_cnt = $5 WHERE s_w_id = $1 AND s_i_id = $2",
    take_stock: "UPDATE stock SET s_quantity = s_quantity - $3, s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1
        WHERE s_w_id = $1 AND s_i_id = $2 AND s_quantity >= $3 + 10",
    refill_stock: "UPDATE stock SET s_quantity = s_quantity - $3 + 91, s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1
        WHERE s_w_id = $1 AND s_i_id = $2",
    order: "INSERT INTO orders VALUES ($1, $2, $3, $4, NULL, $5)",
    new_order: "INSERT INTO new_order VALUES ($1, $2, $3)",
    line: "INSERT INTO order_line VALUES ($1, $2, $3, $4, $5, $6, $7)",
    future_order: "INSERT INTO orders SELECT $1, $2, d_next_o_id - 1, $3, NULL, $4
        FROM district WHERE d_w_id = $1 AND d_id = $2",
    future_new_order: "INSERT INTO new_order SELECT $1, $2, d_next_o_id - 1 FROM district WHERE d_w_id = $1 AND d_id = $2",
    future_line: "INSERT INTO order_line SELECT $1, $2, d_next_o_id - 1, $3, $4, $5, i_price * $5
        FROM district JOIN item ON i_id = $4 WHERE d_w_id = $1 AND d_id = $2",
    warehouse_ytd: "SELECT w_ytd FROM warehouse WHERE w_id = $1 {lock}",
    set_warehouse_ytd: "UPDATE warehouse SET w_ytd = $2 WHERE w_id = $1",
    add_warehouse_ytd: "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1",
    district_ytd: "SELECT d_ytd FROM district WHERE d_w_id = $1 AND d_id = $2 {lock}",
    set_district_ytd: "UPDATE district SET d_ytd = $3 WHERE d_w_id = $1 AND d_id = $2",
    add_district_ytd: "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2",
    balance: "SELECT c_balance FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    customer: "SELECT c_balance, c_ytd_payment, c_payment_cnt FROM customer
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 {lock}",
    set_customer: "UPDATE customer SET c_balance = $4, c_ytd_payment = $5, c_payment_cnt = $6
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    add_customer: "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4,
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    history: "INSERT INTO history (h_w_id, h_c_id, h_amount) VALUES ($1, $2, $3)",
    last_order: "SELECT o_id, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 ORDER BY o_id DESC LIMIT 1",
    lines: "SELECT ol_i_id, ol_quantity, ol_amount FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
    oldest: "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1 {lock}",
    delivered: "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
    carried: "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3",
    recent_items: "SELECT ol_i_id FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 AND ol_o_id < $4",
}

type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];
type Writes<'p> = Vec<(&'p Statement, Parameters<'p>)>;

/// Kinds of transactions.
const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;
const ORDER_STATUS: usize = 2;
const DELIVERY: usize = 3;
const STOCK_LEVEL: usize = 4;

impl Work for Tpcc {
    type Statements = Statements;

    async fn prepare(&self, client: &Client) -> Result<Statements, Error> {
        Statements::prepare(client).await
    }

    async fn attempt(
        &self,
        client: &Client,
        statements: &Statements,
        attempt: Attempt,
        random: &mut Random,
    ) -> Result<usize, Error> {
        let w = attempt.client as i32 % self.warehouses + 1;
        let d = random.below(DISTRICTS as u64) as i32 + 1;
        let c = random.below(self.customers as u64) as i32 + 1;
        let terminal = Terminal { tpcc: self, client, statements, w, d, c };
        Ok(match random.below(100) {
            0..45 => {
                terminal.new_order(random).await?;
                NEW_ORDER
            }
            45..88 => {
                terminal.payment(100 + random.below(500_000) as i64).await?;
                PAYMENT
            }
            88..92 => {
                terminal.order_status().await?;
                ORDER_STATUS
            }
            92..96 => {
                terminal.delivery(random.below(10) as i32 + 1).await?;
                DELIVERY
            }
            _ => {
                terminal.stock_level(10 + random.below(11) as i32).await?;
                STOCK_LEVEL
            }
        })
    }

    /// The standard's consistency conditions 1 to 4, and that orders and payments are all there.
    async fn check(&self, client: &Client, committed: &[Kinds]) -> Result<()> {
        for (what, counted) in CONDITIONS {
            let row = client.sql.query_one(*counted, &[]).await.map_err(client::refused)?;
            let exceptions: i64 = row.get(0);
            if exceptions != 0 {
                return Err(not_so(format!("{what} does not hold in {exceptions} places")));
            }
        }
        for (kind, table) in [(NEW_ORDER, "orders"), (PAYMENT, "history")] {
            let row = client.sql.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await;
            let (there, made): (i64, u64) =
                (row.map_err(client::refused)?.get(0), committed.iter().map(|kinds| kinds[kind]).sum());
            if there != made as i64 {
                return Err(not_so(format!("{table} has {there} rows, but {made} transactions made one")));
            }
        }
        Ok(())
    }
}

/// Consistency conditions, each with a query that counts where it does not hold.
const CONDITIONS: &[(&str, &str)] = &[
    (
        "condition 1 (w_ytd is the sum of d_ytd)",
        "SELECT count(*) FROM warehouse
         WHERE w_ytd <> (SELECT sum(d_ytd) FROM district WHERE d_w_id = w_id)",
    ),
    (
        "condition 2 (d_next_o_id follows the last order)",
        "SELECT count(*) FROM district WHERE d_next_o_id - 1 <>
            (SELECT coalesce(max(o_id), 0) FROM orders WHERE o_w_id = d_w_id AND o_d_id = d_id)",
    ),
    (
        "condition 3 (new orders have no gaps)",
        "SELECT count(*) FROM (SELECT max(no_o_id) - min(no_o_id) + 1 AS range, count(*) AS orders
            FROM new_order GROUP BY no_w_id, no_d_id) AS districts WHERE range <> orders",
    ),
    (
        "condition 4 (orders have as many lines as they say)",
        "SELECT count(*) FROM
            (SELECT o_w_id AS w, o_d_id AS d, sum(o_ol_cnt) AS said FROM orders GROUP BY o_w_id, o_d_id) AS orders
            JOIN (SELECT ol_w_id AS lw, ol_d_id AS ld, count(*) AS there FROM order_line GROUP BY ol_w_id, ol_d_id)
                AS lines ON w = lw AND d = ld
         WHERE said <> there",
    ),
    (
        "that what was paid is what customers have paid",
        "SELECT count(*) FROM (SELECT sum(h_amount) AS paid FROM history) AS history,
            (SELECT sum(c_ytd_payment) AS paid FROM customer) AS customers WHERE history.paid <> customers.paid",
    ),
    (
        "that what was taken from stock is what was ordered",
        "SELECT count(*) FROM (SELECT sum(s_ytd) AS taken FROM stock) AS stock,
            (SELECT sum(ol_quantity) AS ordered FROM order_line) AS lines WHERE taken <> ordered",
    ),
];

/// Who makes a transaction.
struct Terminal<'t> {
    tpcc: &'t Tpcc,
    client: &'t Client,
    statements: &'t Statements,
    w: i32,
    d: i32,
    c: i32,
}

impl Terminal<'_> {
    /// A read, in a message of its own.
    async fn one(&self, statement: &Statement, parameters: Parameters<'_>) -> Result<Row, Error> {
        self.client.step(self.client.sql.query_one(statement, parameters)).await
    }

    async fn begin(&self, statement: &Statement, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        self.client.begin("BEGIN", self.client.sql.query(statement, parameters)).await
    }

    /// Sends reads and writes whose answers nothing depends on, and the commit, in one message.
    async fn commit(&self, last: &[(&Statement, Parameters<'_>)]) -> Result<(), Error> {
        let sent = last.iter().map(|(statement, parameters)| self.client.sql.query(*statement, parameters));
        let answers = self.client.commit(async { Ok(join_all(sent).await) }).await?;
        answers.into_iter().try_for_each(|answer| answer.map(drop))
    }

    async fn new_order(&self, random: &mut Random) -> Result<(), Error> {
        let mut lines: Vec<(i32, i32)> = Vec::new();
        for _ in 0..5 + random.below(11) {
            let item = random.below(self.tpcc.items as u64) as i32 + 1;
            if lines.iter().all(|line| line.0 != item) {
                lines.push((item, random.below(10) as i32 + 1));
            }
        }
        match self.client.is_lazy() {
            true => self.lazy_order(&lines).await,
            false => self.conventional_order(&lines).await,
        }
    }

    /// A message for each item: whether there is enough of it. All else goes along with the commit.
    async fn lazy_order(&self, lines: &[(i32, i32)]) -> Result<(), Error> {
        let Terminal { statements: s, w, d, c, .. } = self;
        let taken: Vec<[&(dyn ToSql + Sync); 3]> = lines
            .iter()
            .map(|(item, quantity)| -> [&(dyn ToSql + Sync); 3] { [w, item, quantity] })
            .collect();
        let ordered: Vec<(i32, &(i32, i32))> = (1..).zip(lines).collect();
        let rows: Vec<[&(dyn ToSql + Sync); 5]> = ordered
            .iter()
            .map(|(at, (item, quantity))| -> [&(dyn ToSql + Sync); 5] { [w, d, at, item, quantity] })
            .collect();
        let count = lines.len() as i32;
        let (district, order): (Parameters<'_>, Parameters<'_>) = (&[w, d], &[w, d, c, &count]);
        let customer: Parameters<'_> = &[w, d, c];
        let mut last: Writes<'_> = Vec::new();
        for (at, taken) in taken.iter().enumerate() {
            let take = self.client.sql.execute(&s.take_stock, taken);
            let found = match at {
                0 => self.client.begin("BEGIN", take).await?,
                _ => self.client.step(take).await?,
            };
            if found == 0 {
                last.push((&s.refill_stock, taken));
            }
        }
        last.extend([
            (&s.add_next_order, district),
            (&s.future_order, order),
            (&s.future_new_order, district),
            (&s.warehouse_tax, &district[..1]),
            (&s.district_tax, district),
            (&s.discount, customer),
        ]);
        last.extend(rows.iter().map(|row| (&s.future_line, row.as_slice())));
        self.commit(&last).await
    }

    async fn conventional_order(&self, lines: &[(i32, i32)]) -> Result<(), Error> {
        let Terminal { statements: s, w, d, c, .. } = self;
        self.begin(&s.warehouse_tax, &[w]).await?;
        self.one(&s.discount, &[w, d, c]).await?;
        let order: i32 = self.one(&s.district, &[w, d]).await?.try_get(1)?;
        let (mut amounts, mut stocks) = (Vec::new(), Vec::new());
        for (item, quantity) in lines {
            let price: i32 = self.one(&s.price, &[item]).await?.try_get(0)?;
            amounts.push(i64::from(price) * i64::from(*quantity));
            let row = self.one(&s.stock, &[w, item]).await?;
            let (left, ytd, orders): (i32, i64, i32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            let left = if left >= quantity + 10 { left - quantity } else { left - quantity + 91 };
            stocks.push((left, ytd + i64::from(*quantity), orders + 1));
        }
        let numbers: Vec<i32> = (1..).take(lines.len()).collect();
        let changed: Vec<[&(dyn ToSql + Sync); 5]> = lines
            .iter()
            .zip(&stocks)
            .map(|((item, _), (left, ytd, orders))| -> [&(dyn ToSql + Sync); 5] {
                [w, item, left, ytd, orders]
            })
            .collect();
        let rows: Vec<[&(dyn ToSql + Sync); 7]> = lines
            .iter()
            .zip(numbers.iter().zip(&amounts))
            .map(|((item, quantity), (at, amount))| -> [&(dyn ToSql + Sync); 7] {
                [w, d, &order, at, item, quantity, amount]
            })
            .collect();
        let (count, next) = (lines.len() as i32, order + 1);
        let (head, key): (Parameters<'_>, Parameters<'_>) = (&[w, d, &order, c, &count], &[w, d, &order]);
        let counter: Parameters<'_> = &[w, d, &next];
        let mut writes: Writes<'_> =
            vec![(&s.set_next_order, counter), (&s.order, head), (&s.new_order, key)];
        writes.extend(changed.iter().map(|row| (&s.set_stock, row.as_slice())));
        writes.extend(rows.iter().map(|row| (&s.line, row.as_slice())));
        self.commit(&writes).await
    }

    async fn payment(&self, amount: i64) -> Result<(), Error> {
        let Terminal { statements: s, client, w, d, c, .. } = self;
        let history: (&Statement, Parameters<'_>) = (&s.history, &[w, c, &amount]);
        if client.is_lazy() {
            let (warehouse, district): (Parameters<'_>, Parameters<'_>) = (&[w, &amount], &[w, d, &amount]);
            let customer: Parameters<'_> = &[w, d, c, &amount];
            let writes = [
                (&s.add_warehouse_ytd, warehouse),
                (&s.add_district_ytd, district),
                (&s.add_customer, customer),
                history,
            ];
            let sent = writes.iter().map(|(statement, parameters)| client.sql.query(*statement, parameters));
            let answers = client.at_once(async { Ok(join_all(sent).await) }).await?;
            return answers.into_iter().try_for_each(|answer| answer.map(drop));
        }
        let rows = self.begin(&s.warehouse_ytd, &[w]).await?;
        let warehouse: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        let district: i64 = self.one(&s.district_ytd, &[w, d]).await?.try_get(0)?;
        let row = self.one(&s.customer, &[w, d, c]).await?;
        let (balance, paid, count): (i64, i64, i32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        self.commit(&[
            (&s.set_warehouse_ytd, &[w, &(warehouse + amount)]),
            (&s.set_district_ytd, &[w, d, &(district + amount)]),
            (&s.set_customer, &[w, d, c, &(balance - amount), &(paid + amount), &(count + 1)]),
            history,
        ])
        .await
    }

    async fn order_status(&self) -> Result<(), Error> {
        let Terminal { statements: s, w, d, c, .. } = self;
        self.begin(&s.balance, &[w, d, c]).await?;
        let last = self.client.step(self.client.sql.query_opt(&s.last_order, &[w, d])).await?;
        let Some(last) = last else { return self.commit(&[]).await };
        let order: i32 = last.try_get(0)?;
        self.commit(&[(&s.lines, &[w, d, &order])]).await
    }

    async fn delivery(&self, carrier: i32) -> Result<(), Error> {
        let Terminal { statements: s, w, d, .. } = self;
        let oldest = self.begin(&s.oldest, &[w, d]).await?;
        let Some(oldest) = oldest.first() else { return self.commit(&[]).await };
        let order: i32 = oldest.try_get(0)?;
        let carried: Parameters<'_> = &[w, d, &order, &carrier];
        self.commit(&[(&s.delivered, &[w, d, &order]), (&s.carried, carried)]).await
    }

    async fn stock_level(&self, below: i32) -> Result<(), Error> {
        let Terminal { statements: s, w, d, .. } = self;
        let rows = self.begin(&s.next_order, &[w, d]).await?;
        let next: i32 = rows.first().map_or(Ok(1), |row| row.try_get(0))?;
        let first = next - 20;
        let recent = [w, d, &first, &next].map(|number| number as &(dyn ToSql + Sync));
        let lines = self.client.step(self.client.sql.query(&s.recent_items, &recent)).await?;
        let mut items = lines.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i32>, Error>>()?;
        items.sort_unstable();
        items.dedup();
        let mut low = 0;
        for part in items.chunks(MESSAGE) {
            let asked = part
                .iter()
                .map(|item| async move { self.client.sql.query_one(&s.quantity, &[w, item]).await });
            for row in self.client.step(async { Ok(join_all(asked).await) }).await? {
                low += i32::from(row?.try_get::<_, i32>(0)? < below);
            }
        }
        std::hint::black_box(low);
        self.commit(&[]).await
    }
}

/// Statements of one message that asks for many quantities.
const MESSAGE: usize = 1000;
