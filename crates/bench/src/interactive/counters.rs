//! The microbenchmarks HOTKEY and ASSERT (LSD, section 4.2).
//!
//! Counter 0 is everybody's; counter `n` is client `n`'s own. HOTKEY adds 1 to one of them. ASSERT takes 1 away as
//! long as the counter stays above zero, and gives it its initial value otherwise, so that the condition changes with
//! one transaction in `initial`.

use super::client::{self, Client, Interface};
use super::clients::{Attempt, Kinds, Work, not_so};
use fabius::Result;
use fabius_env::Random;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Statement};

/// What a transaction does to its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Adds 1.
    Increment,
    /// Takes 1 away while it stays above zero.
    Decrement {
        /// What it is restored to.
        initial: i64,
    },
}

/// Transactions on one counter each.
#[derive(Clone, Debug)]
pub struct Counters {
    /// What they do.
    pub change: Change,
    /// How many in a thousand go to the shared counter.
    pub hot_per_mille: u64,
}

/// What a connection has prepared.
pub struct Statements {
    read: Statement,
    write: Statement,
    change: Statement,
}

/// Kinds of transactions.
const HOT: usize = 0;
const OWN: usize = 1;

impl Counters {
    /// Makes a counter for each client and the shared one.
    ///
    /// # Errors
    /// What the server says.
    pub async fn load(&self, client: &Client, clients: usize) -> Result<()> {
        let value = self.value_after(0);
        let text = format!(
            "DROP TABLE IF EXISTS counters;
             CREATE TABLE counters (id int PRIMARY KEY, v bigint NOT NULL);
             INSERT INTO counters SELECT i, {value} FROM generate_series(0, {clients}) AS i"
        );
        client.sql.batch_execute(&text).await.map_err(client::refused)
    }

    /// What a counter is after so many transactions, one at a time.
    fn value_after(&self, transactions: u64) -> i64 {
        match self.change {
            Change::Increment => transactions as i64,
            Change::Decrement { initial } => initial - (transactions % initial.max(1) as u64) as i64,
        }
    }

    /// The next value of a counter, computed by the client.
    fn changed(&self, value: i64) -> i64 {
        match self.change {
            Change::Increment => value + 1,
            Change::Decrement { .. } if value > 1 => value - 1,
            Change::Decrement { initial } => initial,
        }
    }
}

impl Work for Counters {
    type Statements = Statements;

    async fn prepare(&self, client: &Client) -> Result<Statements, Error> {
        let change = match self.change {
            Change::Increment => "UPDATE counters SET v = v + 1 WHERE id = $1",
            Change::Decrement { .. } => "UPDATE counters SET v = v - 1 WHERE id = $1 AND v > 1",
        };
        let locked = if client.locks_early() { " FOR UPDATE" } else { "" };
        Ok(Statements {
            read: client.sql.prepare(&format!("SELECT v FROM counters WHERE id = $1{locked}")).await?,
            write: client.sql.prepare("UPDATE counters SET v = $2 WHERE id = $1").await?,
            change: client.sql.prepare(change).await?,
        })
    }

    async fn attempt(
        &self,
        client: &Client,
        statements: &Statements,
        attempt: Attempt,
        random: &mut Random,
    ) -> Result<usize, Error> {
        let is_hot = random.chance(self.hot_per_mille, 1000);
        let id = if is_hot { 0 } else { attempt.client as i32 + 1 };
        let of = Of { client, statements, id };
        match (client.protocol.interface, self.change) {
            (Interface::Conventional(_), _) => of.computed(self).await?,
            (_, Change::Increment) => of.assumed().await?,
            // An assumption that was wrong is not made again (section 3.3.2).
            (Interface::Speculative, _) if !attempt.is_again => of.assumed().await?,
            (_, Change::Decrement { initial }) => of.asked(initial).await?,
        }
        Ok(if is_hot { HOT } else { OWN })
    }

    async fn check(&self, client: &Client, committed: &[Kinds]) -> Result<()> {
        let rows = client.sql.query("SELECT id, v FROM counters ORDER BY id", &[]).await;
        for row in rows.map_err(client::refused)? {
            let (id, value): (i32, i64) = (row.get(0), row.get(1));
            let transactions = match id.checked_sub(1) {
                Some(client) if client >= 0 => committed.get(client as usize).map_or(0, |kinds| kinds[OWN]),
                _ => committed.iter().map(|kinds| kinds[HOT]).sum(),
            };
            let expected = self.value_after(transactions);
            if value != expected {
                return Err(not_so(format!(
                    "counter {id} is {value} and not {expected} after {transactions} transactions"
                )));
            }
        }
        Ok(())
    }
}

/// A transaction on a counter.
struct Of<'c> {
    client: &'c Client,
    statements: &'c Statements,
    id: i32,
}

impl Of<'_> {
    /// Reads, computes, writes: two messages.
    async fn computed(&self, counters: &Counters) -> Result<(), Error> {
        let sql = &self.client.sql;
        let parameters: [&(dyn ToSql + Sync); 1] = [&self.id];
        let read = sql.query_one(&self.statements.read, &parameters);
        let row = self.client.begin("BEGIN", read).await?;
        self.write(counters.changed(row.try_get(0)?)).await
    }

    /// Sends the change and the commit together: one message.
    async fn assumed(&self) -> Result<(), Error> {
        let parameters: [&(dyn ToSql + Sync); 1] = [&self.id];
        let change = self.client.sql.execute(&self.statements.change, &parameters);
        self.client.at_once(change).await.map(drop)
    }

    /// Asks for the condition, and does what the answer says: two messages.
    async fn asked(&self, initial: i64) -> Result<(), Error> {
        let begin = match self.client.protocol.interface {
            Interface::Speculative => "BEGIN; SET LOCAL fabius.concurrency = 'optimistic'",
            _ => "BEGIN",
        };
        let parameters: [&(dyn ToSql + Sync); 1] = [&self.id];
        let change = self.client.sql.execute(&self.statements.change, &parameters);
        match self.client.begin(begin, change).await? {
            0 => self.write(initial).await,
            _ => self.client.commit(async { Ok(()) }).await,
        }
    }

    async fn write(&self, value: i64) -> Result<(), Error> {
        let parameters: [&(dyn ToSql + Sync); 2] = [&self.id, &value];
        let write = self.client.sql.execute(&self.statements.write, &parameters);
        self.client.commit(write).await.map(drop)
    }
}
