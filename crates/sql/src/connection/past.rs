//! Reads of the past: `SET fabius.as_of = '2026-11-20 08:30'`, or the number of a call.
//!
//! While the setting is in force, transactions read at that moment, and write nothing. Names mean what they mean now:
//! a table whose rows have got another place since then, or which was not there, cannot be read.

use super::Connection;
use super::session::Session;
use fabius::Moment;
use fabius_sql_meaning::catalog::{Catalog, ObjectName};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit};
use fabius_value::{Error, Result, Seq, SqlState, Value};

/// What a value of `fabius.as_of` means: a sequence number, or a time.
fn moment(text: &str, style: &text_format::TextStyle) -> Result<Moment> {
    if let Ok(seq) = text.trim().parse::<u64>() {
        return Ok(Moment::Seq(Seq(seq)));
    }
    match text_format::read(text.trim(), &SqlType::TimestampTz, style, Fit::Store) {
        Ok(Value::Timestamp(micros)) => Ok(Moment::Time(micros)),
        _ => Err(Error::new(
            SqlState::INVALID_PARAMETER,
            format!("invalid value for parameter \"fabius.as_of\": \"{text}\""),
        )
        .with_hint("give a time, or a number that SELECT fabius.seq() has given")),
    }
}

impl Connection {
    /// Makes the transaction read at the moment that is set, if one is. `names` are the tables that it will read.
    pub(super) async fn stand_in_the_past(&mut self, catalog: &Catalog, names: &[ObjectName]) -> Result<()> {
        let Some(text) = self.session.settings.as_of() else { return Ok(()) };
        let Some(open) = self.transaction.get_mut() else { return Ok(()) };
        let moment = moment(&text, self.session.settings.style())?;
        open.is_read_only = true;
        let running = open.running.clone();
        let mut running = running.lock().await;
        let Some(transaction) = running.as_mut() else { return Ok(()) };
        let definitions = transaction.stand_at(moment).await?;
        for table in names.iter().filter_map(|name| catalog.tables.get(name)) {
            if definitions.catalog.find_table(&table.storage).is_none() {
                let message = format!("relation \"{}\" cannot be read at that time", table.name.name);
                return Err(Error::new(SqlState::NOT_IN_STATE, message)
                    .with_detail("It was created, or its rows were rewritten, afterwards."));
            }
        }
        Ok(())
    }

    /// `fabius.seq()`: the seq at which the transaction reads, or the newest.
    pub(super) async fn current_seq(&mut self) -> Result<Value> {
        let catalog = self.catalog();
        self.stand_in_the_past(&catalog, &[]).await?;
        let own = match self.transaction.get() {
            Some(open) => open.running.lock().await.as_ref().and_then(fabius::Transaction::seq),
            None => None,
        };
        let seq = own.unwrap_or_else(|| self.database.database().standpoint().seq());
        Ok(Value::BigInt(i64::try_from(seq.0).unwrap_or(i64::MAX)))
    }
}

impl Session {
    /// Checks a value that `fabius.as_of` is to have.
    pub(super) fn check_moment(&self, text: &str) -> Result<()> {
        if text.trim().is_empty() { Ok(()) } else { moment(text, self.settings.style()).map(drop) }
    }

    /// Whether transactions read at a moment of the past.
    pub(super) fn reads_the_past(&self) -> bool {
        self.settings.as_of().is_some()
    }
}
