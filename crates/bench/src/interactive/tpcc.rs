//! TPC-C with its statements sent one by one (LSD, section 4.1).
//!
//! What differs between the interfaces is what a transaction has to know: conventionally it reads the next order
//! number, quantities and balances, and writes what it has computed; with LSD it sends expressions, and an order takes
//! its number from its district when it is committed. Statements whose answers nobody needs go along with the next
//! message. Columns that no transaction looks at are left out.

use super::client::{self, Client};
use super::clients::Work;
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
                Ok(Statements { $($name: client.sql.prepare($sql).await?,)* })
            }
        }
    };
}

statements! {
    warehouse_tax: "SELECT w_tax FROM warehouse WHERE w_id = $1",
    district_tax: "SELECT d_tax FROM district WHERE d_w_id = $1 AND d_id = $2",
    district: "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = $1 AND d_id = $2",
    set_next_order: "UPDATE district SET d_next_o_id = $3 WHERE d_w_id = $1 AND d_id = $2",
    add_next_order: "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2",
    discount: "SELECT c_discount FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    price: "SELECT i_price FROM item WHERE i_id = $1",
    stock: "SELECT s_quantity, s_ytd, s_order_cnt FROM stock WHERE s_w_id = $1 AND s_i_id = $2",
    set_stock: "UPDATE stock SET s_quantity = $3, s_ytd = $4, s_order_cnt = $5 WHERE s_w_id = $1 AND s_i_id = $2",
    take_stock: "UPDATE stock SET s_quantity = s_quantity - $3, s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1
        WHERE s_w_id = $1 AND s_i_id = $2 AND s_quantity >= $3 + 10",
    refill_stock: "UPDATE stock SET s_quantity = s_quantity - $3 + 91, s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1
        WHERE s_w_id = $1 AND s_i_id = $2",
    order: "INSERT INTO orders VALUES ($1, $2, $3, $4, NULL, $5)",
    new_order: "INSERT INTO new_order VALUES ($1, $2, $3)",
    line: "INSERT INTO order_line VALUES ($1, $2, $3, $4, $5, $6, $7)",
    future_order: "INSERT INTO orders SELECT $1, $2, d_next_o_id - 1, $3, NULL, $4 FROM district WHERE d_w_id = $1 AND d_id = $2",
    future_new_order: "INSERT INTO new_order SELECT $1, $2, d_next_o_id - 1 FROM district WHERE d_w_id = $1 AND d_id = $2",
    future_line: "INSERT INTO order_line SELECT $1, $2, d_next_o_id - 1, $3, $4, $5, $6 FROM district
        WHERE d_w_id = $1 AND d_id = $2",
    warehouse_ytd: "SELECT w_ytd FROM warehouse WHERE w_id = $1",
    set_warehouse_ytd: "UPDATE warehouse SET w_ytd = $2 WHERE w_id = $1",
    add_warehouse_ytd: "UPDATE warehouse SET w_ytd = w_ytd + $2 WHERE w_id = $1",
    district_ytd: "SELECT d_ytd FROM district WHERE d_w_id = $1 AND d_id = $2",
    set_district_ytd: "UPDATE district SET d_ytd = $3 WHERE d_w_id = $1 AND d_id = $2",
    add_district_ytd: "UPDATE district SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2",
    customer: "SELECT c_balance, c_ytd_payment, c_payment_cnt FROM customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    set_customer: "UPDATE customer SET c_balance = $4, c_ytd_payment = $5, c_payment_cnt = $6
        WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    add_customer: "UPDATE customer SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4,
        c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
    history: "INSERT INTO history (h_w_id, h_c_id, h_amount) VALUES ($1, $2, $3)",
    last_order: "SELECT o_id, o_carrier_id FROM orders WHERE o_w_id = $1 AND o_d_id = $2 ORDER BY o_id DESC LIMIT 1",
    lines: "SELECT ol_i_id, ol_quantity, ol_amount FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
    oldest: "SELECT no_o_id FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 ORDER BY no_o_id LIMIT 1",
    delivered: "DELETE FROM new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
    carried: "UPDATE orders SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3",
    recent_items: "SELECT ol_i_id FROM order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3",
}

type Parameters<'p> = &'p [&'p (dyn ToSql + Sync)];

impl Work for Tpcc {
    type Statements = Statements;

    async fn prepare(&self, client: &Client) -> Result<Statements, Error> {
        Statements::prepare(client).await
    }

    async fn attempt(
        &self,
        client: &Client,
        statements: &Statements,
        number: usize,
        random: &mut Random,
    ) -> Result<(), Error> {
        let w = number as i32 % self.warehouses + 1;
        let d = random.below(DISTRICTS as u64) as i32 + 1;
        let c = random.below(self.customers as u64) as i32 + 1;
        let terminal = Terminal { tpcc: self, client, statements, w, d, c };
        let tried = match random.below(100) {
            0..45 => terminal.new_order(random).await,
            45..88 => terminal.payment(100 + random.below(500_000) as i64).await,
            88..92 => terminal.order_status().await,
            92..96 => terminal.delivery(random.below(10) as i32 + 1).await,
            _ => terminal.stock_level(10 + random.below(11) as i32).await,
        };
        if tried.is_err() {
            client.roll_back().await?;
        }
        tried
    }
}

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
    async fn one(&self, statement: &Statement, parameters: Parameters<'_>) -> Result<Row, Error> {
        self.client.round(self.client.sql.query_one(statement, parameters)).await
    }

    async fn write(&self, statement: &Statement, parameters: Parameters<'_>) -> Result<u64, Error> {
        self.client.round(self.client.sql.execute(statement, parameters)).await
    }

    /// Sends writes whose answers nobody needs, and the commit, in one message.
    async fn commit_with(&self, writes: &[(&Statement, Parameters<'_>)]) -> Result<(), Error> {
        let sql = &self.client.sql;
        let sent = writes.iter().map(|(statement, parameters)| sql.execute(*statement, parameters));
        let (written, committed) =
            self.client.round(async { tokio::join!(join_all(sent), sql.batch_execute("COMMIT")) }).await;
        written.into_iter().collect::<Result<Vec<u64>, Error>>()?;
        committed
    }

    async fn begin_with(&self, statement: &Statement, parameters: Parameters<'_>) -> Result<Vec<Row>, Error> {
        let sql = &self.client.sql;
        let (begun, rows) = self
            .client
            .round(async { tokio::join!(sql.batch_execute("BEGIN"), sql.query(statement, parameters)) })
            .await;
        begun?;
        rows
    }

    async fn new_order(&self, random: &mut Random) -> Result<(), Error> {
        let Terminal { statements: s, w, d, c, .. } = self;
        let mut lines: Vec<(i32, i32)> = Vec::new();
        for _ in 0..5 + random.below(11) {
            let item = random.below(self.tpcc.items as u64) as i32 + 1;
            if lines.iter().all(|line| line.0 != item) {
                lines.push((item, random.below(10) as i32 + 1));
            }
        }
        let count = lines.len() as i32;
        self.begin_with(&s.warehouse_tax, &[w]).await?;
        self.one(&s.discount, &[w, d, c]).await?;
        let mut order = 0;
        if self.client.is_lazy() {
            self.one(&s.district_tax, &[w, d]).await?;
        } else {
            order = self.one(&s.district, &[w, d]).await?.try_get(1)?;
            self.write(&s.set_next_order, &[w, d, &(order + 1)]).await?;
        }
        let mut priced = Vec::new();
        for (at, (item, quantity)) in lines.iter().enumerate() {
            let price: i32 = self.one(&s.price, &[item]).await?.try_get(0)?;
            let amount = i64::from(price) * i64::from(*quantity);
            priced.push((at as i32 + 1, *item, *quantity, amount));
            if self.client.is_lazy() {
                if self.write(&s.take_stock, &[w, item, quantity]).await? == 0 {
                    self.write(&s.refill_stock, &[w, item, quantity]).await?;
                }
            } else {
                let row = self.one(&s.stock, &[w, item]).await?;
                let (left, ytd, orders): (i32, i64, i32) =
                    (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
                let left = if left >= quantity + 10 { left - quantity } else { left - quantity + 91 };
                let changed: Parameters<'_> = &[w, item, &left, &(ytd + i64::from(*quantity)), &(orders + 1)];
                self.write(&s.set_stock, changed).await?;
            }
        }
        if self.client.is_lazy() {
            let rows: Vec<[&(dyn ToSql + Sync); 6]> = priced
                .iter()
                .map(|(at, item, quantity, amount)| -> [&(dyn ToSql + Sync); 6] {
                    [w, d, at, item, quantity, amount]
                })
                .collect();
            let (district, order): (Parameters<'_>, Parameters<'_>) = (&[w, d], &[w, d, c, &count]);
            let mut writes = vec![
                (&s.add_next_order, district),
                (&s.future_order, order),
                (&s.future_new_order, district),
            ];
            writes.extend(rows.iter().map(|row| (&s.future_line, row.as_slice())));
            return self.commit_with(&writes).await;
        }
        let rows: Vec<[&(dyn ToSql + Sync); 7]> = priced
            .iter()
            .map(|(at, item, quantity, amount)| -> [&(dyn ToSql + Sync); 7] {
                [w, d, &order, at, item, quantity, amount]
            })
            .collect();
        let (head, key): (Parameters<'_>, Parameters<'_>) = (&[w, d, &order, c, &count], &[w, d, &order]);
        let mut writes = vec![(&s.order, head), (&s.new_order, key)];
        writes.extend(rows.iter().map(|row| (&s.line, row.as_slice())));
        self.commit_with(&writes).await
    }

    async fn payment(&self, amount: i64) -> Result<(), Error> {
        let Terminal { statements: s, w, d, c, .. } = self;
        let history: (&Statement, Parameters<'_>) = (&s.history, &[w, c, &amount]);
        if self.client.is_lazy() {
            self.begin_with(&s.discount, &[w, d, c]).await?;
            let paid: Parameters<'_> = &[w, d, c, &amount];
            return self
                .commit_with(&[
                    (&s.add_warehouse_ytd, &[w, &amount]),
                    (&s.add_district_ytd, &[w, d, &amount]),
                    (&s.add_customer, paid),
                    history,
                ])
                .await;
        }
        let rows = self.begin_with(&s.warehouse_ytd, &[w]).await?;
        let ytd: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0))?;
        self.write(&s.set_warehouse_ytd, &[w, &(ytd + amount)]).await?;
        let ytd: i64 = self.one(&s.district_ytd, &[w, d]).await?.try_get(0)?;
        self.write(&s.set_district_ytd, &[w, d, &(ytd + amount)]).await?;
        let row = self.one(&s.customer, &[w, d, c]).await?;
        let (balance, paid, count): (i64, i64, i32) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let changed: Parameters<'_> = &[w, d, c, &(balance - amount), &(paid + amount), &(count + 1)];
        self.commit_with(&[(&s.set_customer, changed), history]).await
    }

    async fn order_status(&self) -> Result<(), Error> {
        let Terminal { statements: s, w, d, c, .. } = self;
        self.begin_with(&s.customer, &[w, d, c]).await?;
        let last = self.client.round(self.client.sql.query_opt(&s.last_order, &[w, d])).await?;
        if let Some(last) = last {
            let order: i32 = last.try_get(0)?;
            self.client.round(self.client.sql.query(&s.lines, &[w, d, &order])).await?;
        }
        self.commit_with(&[]).await
    }

    async fn delivery(&self, carrier: i32) -> Result<(), Error> {
        let Terminal { statements: s, w, d, .. } = self;
        let oldest = self.begin_with(&s.oldest, &[w, d]).await?;
        let Some(oldest) = oldest.first() else { return self.commit_with(&[]).await };
        let order: i32 = oldest.try_get(0)?;
        let carried: Parameters<'_> = &[w, d, &order, &carrier];
        self.commit_with(&[(&s.delivered, &[w, d, &order]), (&s.carried, carried)]).await
    }

    async fn stock_level(&self, below: i32) -> Result<(), Error> {
        let Terminal { statements: s, w, d, .. } = self;
        let rows = self.begin_with(&s.district, &[w, d]).await?;
        let next: i32 = rows.first().map_or(Ok(1), |row| row.try_get(1))?;
        let from = (next - 20).max(1);
        let lines = self.client.round(self.client.sql.query(&s.recent_items, &[w, d, &from])).await?;
        let mut items = lines.iter().map(|row| row.try_get(0)).collect::<Result<Vec<i32>, Error>>()?;
        items.sort_unstable();
        items.dedup();
        let asked =
            items.iter().map(|item| async move { self.client.sql.query_one(&s.stock, &[w, item]).await });
        let mut low = 0;
        for row in self.client.round(join_all(asked)).await {
            low += i32::from(row?.try_get::<_, i32>(0)? < below);
        }
        debug_assert!(low >= 0);
        self.commit_with(&[]).await
    }
}
