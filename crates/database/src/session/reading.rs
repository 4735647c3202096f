//! What a transaction reads without keeping it.
//!
//! A transaction that has not written is a reader at a seq: what it has shown was so there, and nothing else counts.
//! So what is large need not be kept as it is shown; the statement that shows it is *noted*. Once the transaction
//! writes, or locks, what it has shown has to hold at another place in the order, and noted statements are run again,
//! at the seq where they were read, to become observations like others:
//!
//! ```text
//! select (large)   noted                    select (large)   noted
//! commit           nothing to check         update           observed: select, update
//!                                           commit           [select; require ...] [update; require 1 row]
//! ```

use super::hold::Hold;
use super::noted::Noted;
use super::observation::Observation;
use super::recall::room;
use super::transaction::Transaction;
use super::transaction_options::Concurrency;
use crate::{Database, Statement};
use fabius_engine::Standpoint;
use fabius_engine::speculation::{Overlay, Speculated};
use fabius_value::{Error, Result, Seq, SqlState, Value};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Where a transaction reads; it may outlive the transaction, and counts as one.
pub struct ReaderStandpoint {
    at: Standpoint<'static>,
    database: Arc<Database>,
}

impl Deref for ReaderStandpoint {
    type Target = Standpoint<'static>;

    fn deref(&self) -> &Standpoint<'static> {
        &self.at
    }
}

impl Drop for ReaderStandpoint {
    fn drop(&mut self) {
        self.database.sessions().open.fetch_sub(1, Relaxed);
    }
}

impl Transaction {
    /// Whether what it sees are the rows of a seq: it has written nothing, and locks nothing that it reads.
    pub fn is_reader(&self) -> bool {
        let locks =
            self.options.concurrency == Concurrency::Pessimistic || self.options.conventional.is_some();
        self.is_past || (!locks && self.overlay.is_empty() && !self.has_assumed)
    }

    /// The rows of its seq, for as long as the caller likes. What of them is shown is to be [noted](Transaction::note).
    ///
    /// # Errors
    /// `53400` if there are too many transactions.
    pub async fn stand(&mut self) -> Result<ReaderStandpoint> {
        self.database.refuse_too_many()?;
        let seq = self.reading_at().await?;
        let foundation = self.database.foundation();
        let snapshot = self.snapshot.as_ref().map(|snapshot| snapshot.at(seq));
        let snapshot =
            snapshot.ok_or_else(|| Error::new(SqlState(*b"XX000"), "a reader without a snapshot"))?;
        let at = Standpoint::past(snapshot, foundation.definitions_at(seq));
        self.database.sessions().open.fetch_add(1, Relaxed);
        Ok(ReaderStandpoint { at, database: self.database.clone() })
    }

    /// What was read at a standpoint of its own counts as shown: the same as this statement shows there, which writes
    /// nothing.
    ///
    /// # Errors
    /// As [`Transaction::run`], if the transaction has begun to write meanwhile.
    pub fn note(&mut self, at: Seq, statement: &Arc<Statement>, arguments: &[Value]) -> Result<()> {
        if self.is_past {
            return Ok(());
        }
        let noted = Noted { statement: statement.clone(), arguments: arguments.to_vec(), at };
        if self.is_reader() {
            self.noted.push(noted);
            return Ok(());
        }
        let observation = self.observe(&noted)?;
        self.put_in_front(vec![observation]);
        Ok(())
    }

    /// Makes observations of what is noted, before something is written or locked.
    pub(super) fn record(&mut self) -> Result<()> {
        if self.noted.is_empty() {
            return Ok(());
        }
        let before = self.held.bytes();
        let noted = std::mem::take(&mut self.noted);
        match noted.iter().map(|noted| self.observe(noted)).collect() {
            Ok(observations) => self.put_in_front(observations),
            Err(error) => {
                self.held.shrink_to(before);
                self.noted = noted;
                return Err(error);
            }
        }
        Ok(())
    }

    /// Runs a noted statement again.
    fn observe(&mut self, noted: &Noted) -> Result<Arc<Observation>> {
        let Noted { statement, arguments, at } = noted;
        let encoded: Arc<[u8]> = statement.encode(arguments)?.into();
        let room = room(self.held.left(), self.options.recall.as_ref());
        let engine = self.database.engine();
        let ran = engine.speculate(*at, statement.procedure(), &encoded, &mut Overlay::default(), room);
        let Speculated { results, footprint } = ran.map_err(|error| self.held.refusal(error))?;
        let observation = Observation {
            statement: statement.clone(),
            arguments: arguments.clone(),
            encoded,
            results,
            footprint,
            hold: Hold::Observe,
            is_apart: false,
        };
        self.held.take(observation.bytes())?;
        Ok(Arc::new(observation))
    }

    /// Puts what was shown of the snapshot alone before everything else. Going back to a savepoint does not forget it.
    fn put_in_front(&mut self, observations: Vec<Arc<Observation>>) {
        let bytes: usize = observations.iter().map(|observation| observation.bytes()).sum();
        let begin = Overlay::default().mark();
        self.in_front += observations.len();
        self.begins.iter_mut().for_each(|(_, held)| *held += bytes);
        self.begins.splice(0..0, observations.iter().map(|_| (begin, 0)));
        self.observations.splice(0..0, observations);
    }
}
