//! The microbenchmarks HOTKEY and ASSERT (LSD, section 4.2).
//!
//! Counter 0 is everybody's; counter `n` is client `n`'s own. HOTKEY adds 1 to one of them. ASSERT takes 1 away as long as
//! the counter stays above zero, and gives it its initial value otherwise, so that the condition changes with one
//! transaction in `initial`.

use super::client::{self, Client, Interface};
use super::clients::Work;
use fabius::Result;
use fabius_env::Random;
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

impl Counters {
    /// Makes a counter for each client and the shared one.
    ///
    /// # Errors
    /// What the server says.
    pub async fn load(&self, client: &Client, clients: usize) -> Result<()> {
        let value = match self.change {
            Change::Increment => 0,
            Change::Decrement { initial } => initial,
        };
        let text = format!(
            "DROP TABLE IF EXISTS counters;
             CREATE TABLE counters (id int PRIMARY KEY, v bigint NOT NULL);
             INSERT INTO counters SELECT i, {value} FROM generate_series(0, {clients}) AS i"
        );
        client.sql.batch_execute(&text).await.map_err(client::refused)
    }

    /// The next value of a counter, computed by the client.
    fn changed(&self, value: i64) -> i64 {
        match self.change {
            Change::Increment => value + 1,
            Change::Decrement { initial } if value > 1 => (value - 1).min(initial),
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
        Ok(Statements {
            read: client.sql.prepare("SELECT v FROM counters WHERE id = $1").await?,
            write: client.sql.prepare("UPDATE counters SET v = $2 WHERE id = $1").await?,
            change: client.sql.prepare(change).await?,
        })
    }

    async fn attempt(
        &self,
        client: &Client,
        statements: &Statements,
        number: usize,
        random: &mut Random,
    ) -> Result<(), Error> {
        let id = if random.chance(self.hot_per_mille, 1000) { 0 } else { number as i32 + 1 };
        let tried = match (client.protocol.interface, self.change) {
            (Interface::Conventional, _) => self.conventional(client, statements, id).await,
            (Interface::Lsd, Change::Decrement { initial }) => {
                conditional(client, statements, id, initial).await
            }
            _ => match assumed(client, statements, id).await {
                // The assumption was wrong, or somebody else's change has made it so: ask this time.
                Err(error)
                    if client::is_conflict(&error) && matches!(self.change, Change::Decrement { .. }) =>
                {
                    client.roll_back().await?;
                    let Change::Decrement { initial } = self.change else { return Err(error) };
                    restored(client, statements, id, initial).await.and(Err(error))
                }
                other => other,
            },
        };
        if tried.is_err() {
            client.roll_back().await?;
        }
        tried
    }
}

impl Counters {
    /// Reads, computes, writes: two messages.
    async fn conventional(&self, client: &Client, statements: &Statements, id: i32) -> Result<(), Error> {
        let sql = &client.sql;
        let (begun, row) = client
            .round(async {
                tokio::join!(sql.batch_execute("BEGIN"), async {
                    sql.query_one(&statements.read, &[&id]).await
                })
            })
            .await;
        begun?;
        let value = self.changed(row?.try_get(0)?);
        let (written, committed) = client
            .round(async {
                tokio::join!(
                    async { sql.execute(&statements.write, &[&id, &value]).await },
                    sql.batch_execute("COMMIT")
                )
            })
            .await;
        written?;
        committed
    }
}

/// Sends the change and the commit together: one message.
async fn assumed(client: &Client, statements: &Statements, id: i32) -> Result<(), Error> {
    let sql = &client.sql;
    let (begun, changed, committed) = client
        .round(async {
            tokio::join!(
                sql.batch_execute("BEGIN"),
                async { sql.execute(&statements.change, &[&id]).await },
                sql.batch_execute("COMMIT")
            )
        })
        .await;
    begun?;
    changed?;
    committed
}

/// Asks for the condition, and does what the answer says: two messages.
async fn conditional(client: &Client, statements: &Statements, id: i32, initial: i64) -> Result<(), Error> {
    let sql = &client.sql;
    let (begun, changed) = client
        .round(async {
            tokio::join!(sql.batch_execute("BEGIN"), async { sql.execute(&statements.change, &[&id]).await })
        })
        .await;
    begun?;
    if changed? > 0 {
        return client.round(sql.batch_execute("COMMIT")).await;
    }
    let (written, committed) = client
        .round(async {
            tokio::join!(
                async { sql.execute(&statements.write, &[&id, &initial]).await },
                sql.batch_execute("COMMIT")
            )
        })
        .await;
    written?;
    committed
}

/// Restores a counter that has run down, if it has, so that the next attempt's assumption can hold.
async fn restored(client: &Client, statements: &Statements, id: i32, initial: i64) -> Result<(), Error> {
    let sql = &client.sql;
    let value: i64 = client.round(sql.query_one(&statements.read, &[&id])).await?.try_get(0)?;
    if value <= 1 {
        client.round(sql.execute(&statements.write, &[&id, &initial])).await?;
    }
    Ok(())
}
