//! What is asked of every node in the end.

use super::customers::Tally;
use super::{ANSWER, NAP, PATIENCE, connect, failed, shown_by, silent, who_leads};
use crate::message::out;
use fabius::Result;
use fabius_bench::table::grouped;
use std::time::Instant;
use tokio_postgres::Client;

/// Whether every node has every order that was acknowledged, each once, and all have the same digests.
pub(super) async fn prove(nodes: &[String], tally: &Tally) -> Result<bool> {
    let leader = who_leads(nodes).await?;
    leader.batch_execute("CHECKPOINT").await.map_err(|error| failed("no checkpoint is taken", &error))?;
    let mut is_right = true;
    for (at, conninfo) in nodes.iter().enumerate() {
        let client = reach(conninfo).await?;
        let mut wrong = count(&client, tally).await?;
        wrong.extend(compare(&client, nodes.len()).await?);
        let verdict = match &wrong[..] {
            [] => format!(
                "{} orders, each once, and as many pieces sold; its digests are those of all",
                grouped(tally.total() as f64)
            ),
            wrong => format!("WRONG: {}", wrong.join("; ")),
        };
        out(&format!("  node {}: {verdict}\n", at + 1));
        is_right &= wrong.is_empty();
    }
    Ok(is_right)
}

async fn reach(conninfo: &str) -> Result<Client> {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(client) = connect(conninfo).await {
            return Ok(client);
        }
        tokio::time::sleep(NAP).await;
    }
    Err(silent("a node does not answer"))
}

/// What is wrong with the rows that a node has.
async fn count(client: &Client, tally: &Tally) -> Result<Vec<String>> {
    let refused = |error| failed("a node does not answer", &error);
    let mut wrong = Vec::new();
    for (customer, told) in (0i32..).zip(tally.acknowledged()) {
        let query = "SELECT count(*), coalesce(max(number), 0) FROM orders WHERE customer = $1";
        let row = client.query_one(query, &[&customer]).await.map_err(refused)?;
        let (there, last) = (row.get::<_, i64>(0), row.get::<_, i64>(1));
        if (there, last) != (told as i64, told as i64) {
            wrong.push(format!(
                "{told} orders of customer {customer} were acknowledged, {there} are there, to number {last}"
            ));
        }
    }
    let row = client.query_one("SELECT sold FROM stock WHERE item = 1", &[]).await.map_err(refused)?;
    let (sold, total) = (row.get::<_, i64>(0), tally.total());
    if sold != total as i64 {
        wrong.push(format!("{total} pieces were ordered, {sold} are sold"));
    }
    Ok(wrong)
}

/// What is wrong with the digests that a node has compared: of the newest checkpoint, which all nodes take.
async fn compare(client: &Client, nodes: usize) -> Result<Option<String>> {
    let begun = Instant::now();
    let mut found = String::new();
    while begun.elapsed() < PATIENCE {
        let shown = shown_by(client, ANSWER).await.unwrap_or_default();
        let of = |which: &str| shown["compared"][which].as_array().map_or(0, Vec::len);
        if of("same") == nodes {
            return Ok(None);
        }
        found = shown["compared"].to_string();
        tokio::time::sleep(NAP).await;
    }
    Ok(Some(format!("digests do not agree: {found}")))
}
