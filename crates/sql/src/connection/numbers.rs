//! Numbers of sequences, for programs that take them as they go.
//!
//! A program is given some numbers in a row, and says how many it took. What is left goes back, unless somebody has
//! taken the next in the meantime: then it stays unused, as in PostgreSQL the numbers of what was rolled back. If
//! there were too few, the program has aborted, and runs again with more.

use super::Connection;
use super::deferred::Doubt;
use super::row_lock::unless_waited;
use crate::sequence::{self, Reserved};
use fabius::{Hold, Statement};
use fabius_sql_meaning::catalog::{Catalog, ObjectName, Sequence};
use fabius_sql_program::bind::wording;
use fabius_sql_program::lowered;
use fabius_sql_program::lowered::{Lowered, Reserve};
use fabius_value::{Error, Result, SqlState, Value};
use std::sync::Arc;

/// Numbers of a program that has not run yet.
const FIRST: i64 = 32;
/// How many times more numbers it is given that had too few.
const GROWTH: i64 = 16;
/// Numbers of a call, at most: a bound on how often it is tried.
const MOST: i64 = 1 << 24;

/// What a table's name is followed by, in the name of the sequence of its row numbers.
const ROW_NUMBERS: &str = " row number";

/// The table whose rows a name of a sequence numbers.
pub(super) fn row_numbers_of(name: &ObjectName) -> Option<u32> {
    name.name.strip_suffix(ROW_NUMBERS).and_then(|oid| oid.parse().ok())
}

/// The sequence of a name, or that of a table's row numbers.
fn sequence_named(catalog: &Catalog, name: &ObjectName) -> Result<Sequence> {
    if let Some(table) = row_numbers_of(name) {
        return Ok(sequence::of_rows(table));
    }
    let found = catalog.sequences.get(name).map(|sequence| (**sequence).clone());
    found.ok_or_else(|| {
        Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", name.name))
    })
}

impl Connection {
    /// Runs a program with its arguments, in the transaction or as one; its errors are in the words of SQL.
    pub(super) async fn call(
        &mut self,
        catalog: &Catalog,
        (lowered, statement): (&Lowered, &Arc<Statement>),
        mut arguments: Vec<Value>,
    ) -> Result<Vec<Value>> {
        if lowered.reserves.is_empty() {
            let outcome = self.submit(statement, &arguments, lowered.row_lock).await;
            let mut results =
                outcome.map_err(|error| Connection::explained(error, (lowered, statement), catalog))?;
            let lists = lowered.take_doubtful(&mut results);
            self.transaction.doubt(Doubt::all(catalog, lowered, lists));
            return Ok(results);
        }
        let sequences: Vec<Sequence> = lowered
            .reserves
            .iter()
            .map(|reserve| sequence_named(catalog, &reserve.sequence))
            .collect::<Result<_>>()?;
        let mut wanted = vec![FIRST; sequences.len()];
        loop {
            let mut given: Vec<Reserved> = Vec::new();
            for ((sequence, reserve), count) in sequences.iter().zip(&lowered.reserves).zip(&wanted) {
                let reserved = self.database.sequences.reserve(sequence, *count).await?;
                arguments[reserve.at] = Value::BigInt(reserved.first);
                arguments[reserve.at + 1] = Value::BigInt(reserved.count);
                given.push(reserved);
            }
            if self.session.is_keyed() && self.transaction.is_idle() {
                // The first outcome under a key stays: whether there are enough has to be known before.
                let tried = self.start().run(statement, &arguments, Hold::Observe).await;
                if let Some(short) = tried.as_ref().err().and_then(|error| shortage(error, &given)) {
                    self.go_on(&sequences, &given, &mut wanted, short)?;
                    continue;
                }
            }
            match self.submit(statement, &arguments, lowered.row_lock).await {
                Ok(mut results) => {
                    let lists = lowered.take_doubtful(&mut results);
                    self.transaction.doubt(Doubt::all(catalog, lowered, lists));
                    self.numbers_taken(lowered, &sequences, &given, &mut results);
                    return Ok(results);
                }
                Err(error) => {
                    let Some(short) = shortage(&error, &given) else {
                        return Err(Connection::explained(error, (lowered, statement), catalog));
                    };
                    self.go_on(&sequences, &given, &mut wanted, short)?;
                }
            }
        }
    }

    /// Gives all numbers back, and wants more of those that were too few.
    fn go_on(
        &mut self,
        sequences: &[Sequence],
        given: &[Reserved],
        wanted: &mut [i64],
        short: usize,
    ) -> Result<()> {
        for (sequence, reserved) in sequences.iter().zip(given) {
            self.database.sequences.give_back(sequence, reserved, 0);
        }
        if given[short].count < wanted[short] {
            return Err(sequence::ended(&sequences[short]));
        }
        if wanted[short] >= MOST {
            let message = format!("a call takes more than {MOST} numbers of a sequence");
            return Err(
                Error::new(SqlState::PROGRAM_LIMIT, message).with_hint("divide the work among several calls")
            );
        }
        wanted[short] = (wanted[short] * GROWTH).min(MOST);
        Ok(())
    }

    /// Takes out of the results how many numbers were taken, and gives the others back.
    fn numbers_taken(
        &mut self,
        lowered: &Lowered,
        sequences: &[Sequence],
        given: &[Reserved],
        results: &mut Vec<Value>,
    ) {
        let end = results.len() - usize::from(lowered.notices);
        let taken: Vec<Value> = results.drain(end.saturating_sub(sequences.len())..end).collect();
        for ((sequence, reserved), taken) in sequences.iter().zip(given).zip(&taken) {
            let taken = taken.as_integer().unwrap_or_default();
            self.database.sequences.give_back(sequence, reserved, taken);
            if taken > 0 && self.catalog().sequences.contains_key(&sequence.name) {
                let last = reserved.first + sequence.increment * (taken - 1);
                self.session.numbers.note(sequence.oid, last);
            }
        }
    }

    /// An error of a program in the words of SQL, with its place in the functions that the program was made of.
    pub(super) fn explained(
        error: Error,
        (lowered, statement): (&Lowered, &Arc<Statement>),
        catalog: &Catalog,
    ) -> Error {
        let line = error.line().filter(|_| !lowered.places.is_empty());
        let number =
            line.and_then(|line| lowered::places_of_lines(statement.definition()).get(&line).copied());
        let place = number.and_then(|number| lowered.places.get(number.checked_sub(1)?));
        let table = lowered.reads.first().map_or("", |name| name.name.as_str());
        let error = wording::in_words(unless_waited(error, lowered.row_lock, table), catalog);
        match place {
            Some(place) => error.with_context(lowered::context(place)),
            None => error,
        }
    }
}

/// Which reserve was too small.
fn shortage(error: &Error, given: &[Reserved]) -> Option<usize> {
    let number =
        (error.state() == Reserve::SHORT).then(|| error.message().parse::<usize>().ok()).flatten()?;
    (number < given.len()).then_some(number)
}
