//! Numbers handed out in order: sequences, and the numbers that tell rows of a table without a primary key apart.
//!
//! They are handed out in blocks, outside transactions: a row of a table of the database's own says up to where
//! numbers are taken, and it is durable before one of them is used. What is left of a block when the database
//! closes is never used.

use crate::catalog::store;
use crate::catalog::{Oid, Sequence};
use fabius::{Database, Statement};
use fabius_value::{Error, Result, SqlState, Value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex as Waiting;

/// The table that says up to where numbers are taken.
pub const TABLE: &str = "fabius sequences";
/// Numbers of the first block.
const BLOCK: i64 = 32;
/// Numbers of a block, at most, but for whoever asks for more at once.
const BLOCK_MAX: i64 = 4096;

/// The table's definition, as text.
pub fn table_definition() -> String {
    format!("table `{TABLE}` {{ id: bigint, taken: bigint, primary key (id) }}")
}

/// The numbers that are taken but not handed out yet.
#[derive(Default)]
struct Block {
    /// The last number that was handed out; `None` if none ever was.
    last: Option<i64>,
    /// Numbers left in the block.
    left: i64,
    /// Numbers of the next block.
    size: i64,
}

/// All sequences of a database.
pub struct Sequences {
    database: Arc<Database>,
    take: Arc<Statement>,
    blocks: Mutex<HashMap<Oid, Arc<Waiting<Block>>>>,
}

/// Some values of a sequence in a row, handed out together.
#[derive(Clone, Copy, Debug)]
pub struct Reserved {
    /// The first.
    pub first: i64,
    /// How many; fewer than were asked for if the sequence has no more.
    pub count: i64,
}

/// What the numbers of a table's rows are: a sequence without bounds.
pub fn of_rows(oid: Oid) -> Sequence {
    Sequence {
        oid,
        name: crate::catalog::ObjectName { schema: String::new(), name: String::new() },
        start: 1,
        increment: 1,
        minimum: 1,
        maximum: i64::MAX,
        cycle: false,
        owner: None,
    }
}

impl Sequences {
    /// The sequences of a database; its table has to be there.
    ///
    /// # Errors
    /// If the database does not take the programs.
    pub fn new(database: Arc<Database>) -> Result<Sequences> {
        let take = database.statement(&store::procedure(&format!(
            "procedure `fabius take numbers`(id: bigint, taken: bigint) {{
                 upsert `{TABLE}` {{ id: id, taken: taken }}
             }}"
        ))?)?;
        let mut blocks = HashMap::new();
        for row in database.rows(TABLE)? {
            if let [Value::BigInt(oid), Value::BigInt(taken)] = row.as_slice()
                && let Ok(oid) = Oid::try_from(*oid)
            {
                let block = Block { last: Some(*taken), left: 0, size: BLOCK };
                blocks.insert(oid, Arc::new(Waiting::new(block)));
            }
        }
        Ok(Sequences { database, take, blocks: Mutex::new(blocks) })
    }

    fn block(&self, oid: Oid) -> Arc<Waiting<Block>> {
        self.blocks.lock().entry(oid).or_default().clone()
    }

    /// Numbers for rows of a table without a primary key: the first of `count` in a row.
    ///
    /// # Errors
    /// Why they cannot be taken.
    pub async fn row_numbers(&self, table: Oid, count: usize) -> Result<i64> {
        let count = i64::try_from(count).unwrap_or(i64::MAX).max(1);
        let last = self.advance(&of_rows(table), count).await?;
        Ok(last - (count - 1))
    }

    /// The next value.
    ///
    /// # Errors
    /// `2200H` if it has come to its end; why numbers cannot be taken.
    pub async fn next(&self, sequence: &Sequence) -> Result<i64> {
        self.advance(sequence, 1).await
    }

    /// Hands out values in a row: as many as there are, up to `count`.
    ///
    /// # Errors
    /// Why numbers cannot be taken.
    pub async fn reserve(&self, sequence: &Sequence, count: i64) -> Result<Reserved> {
        let block = self.block(sequence.oid);
        let mut block = block.lock().await;
        let step = i128::from(sequence.increment);
        let bound = i128::from(if step > 0 { sequence.maximum } else { sequence.minimum });
        let next = block.last.map_or(i128::from(sequence.start), |last| i128::from(last) + step);
        // A sequence that begins again is not waited for: its numbers are no longer in a row.
        let room = if (bound - next) * step.signum() < 0 { 0 } else { (bound - next).div_euclid(step) + 1 };
        let count = i64::try_from(room).unwrap_or(i64::MAX).min(count);
        if count == 0 {
            return Ok(Reserved { first: sequence.start, count });
        }
        if block.left < count {
            self.refill(sequence, &mut block, count).await?;
        }
        block.left -= count;
        let before = block.last.map_or(i128::from(sequence.start) - step, i128::from);
        let last = before + step * i128::from(count);
        block.last = i64::try_from(last).ok();
        let first = i64::try_from(before + step).map_err(|_| ended(sequence))?;
        Ok(Reserved { first, count })
    }

    /// Takes back all but the first `taken` of reserved values, if no others were handed out since, and nobody is
    /// at it. It does not wait: whoever gives back has done what the values were for, and must be able to say so.
    pub fn give_back(&self, sequence: &Sequence, reserved: &Reserved, taken: i64) {
        let block = self.block(sequence.oid);
        let Ok(mut block) = block.try_lock() else { return };
        let value = |count: i64| {
            let moved = i128::from(sequence.increment) * i128::from(count - 1);
            i64::try_from(i128::from(reserved.first) + moved).ok()
        };
        if reserved.count > 0 && block.last.is_some() && block.last == value(reserved.count) {
            block.last = value(taken).or(block.last);
            block.left += reserved.count - taken;
        }
    }

    /// Hands out `count` values; the last of them.
    async fn advance(&self, sequence: &Sequence, count: i64) -> Result<i64> {
        let block = self.block(sequence.oid);
        let mut block = block.lock().await;
        if block.left < count {
            self.refill(sequence, &mut block, count).await?;
        }
        block.left -= count;
        let last = match block.last {
            Some(last) => {
                last.checked_add(sequence.increment.saturating_mul(count)).ok_or_else(|| ended(sequence))?
            }
            None => sequence.start + sequence.increment * (count - 1),
        };
        block.last = Some(last);
        Ok(last)
    }

    /// Takes a block of numbers that begins behind the last that was handed out.
    async fn refill(&self, sequence: &Sequence, block: &mut Block, count: i64) -> Result<()> {
        let step = i128::from(sequence.increment);
        let bound = i128::from(if step > 0 { sequence.maximum } else { sequence.minimum });
        let mut first = block.last.map_or(i128::from(sequence.start), |last| i128::from(last) + step);
        let mut room = (bound - first) / step + 1;
        if (bound - first) * step.signum() < 0 || room < i128::from(count) {
            if !sequence.cycle {
                return Err(ended(sequence));
            }
            first = i128::from(if step > 0 { sequence.minimum } else { sequence.maximum });
            room = (bound - first) / step + 1;
        }
        let size = i128::from(block.size.max(BLOCK).max(count)).min(room.max(1));
        let taken = i64::try_from(first + step * (size - 1)).map_err(|_| ended(sequence))?;
        self.database
            .run(&self.take, &[Value::BigInt(sequence.oid.into()), Value::BigInt(taken)], None)
            .await?;
        // What was left of the last block follows on, unless the sequence has begun again.
        block.last = i64::try_from(first - step).ok();
        if block.last.is_none() {
            return Err(ended(sequence));
        }
        block.left = i64::try_from(size).unwrap_or(i64::MAX);
        block.size = (block.size.max(BLOCK) * 2).min(BLOCK_MAX);
        Ok(())
    }

    /// `setval`: the value that was last handed out, or, with `is_called` false, that comes next.
    ///
    /// # Errors
    /// `22003` outside its bounds; why it cannot be kept.
    pub async fn set(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<()> {
        if !(sequence.minimum..=sequence.maximum).contains(&value) {
            return Err(Error::new(
                SqlState::OUT_OF_RANGE,
                format!(
                    "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                    sequence.name.name, sequence.minimum, sequence.maximum
                ),
            ));
        }
        let last = if is_called { value } else { value.saturating_sub(sequence.increment) };
        let block = self.block(sequence.oid);
        let mut block = block.lock().await;
        self.database
            .run(&self.take, &[Value::BigInt(sequence.oid.into()), Value::BigInt(last)], None)
            .await?;
        *block = Block { last: Some(last), left: 0, size: BLOCK };
        Ok(())
    }

    /// The last value that was handed out, and whether any was: `SELECT last_value, is_called FROM sequence`.
    pub async fn last(&self, sequence: &Sequence) -> (i64, bool) {
        let block = self.block(sequence.oid);
        let block = block.lock().await;
        match block.last {
            Some(last) if last >= sequence.minimum && last <= sequence.maximum => (last, true),
            _ => (sequence.start, false),
        }
    }
}

/// The error that a sequence has come to its end.
pub fn ended(sequence: &Sequence) -> Error {
    let (what, bound) = match sequence.increment > 0 {
        true => ("maximum", sequence.maximum),
        false => ("minimum", sequence.minimum),
    };
    Error::new(
        SqlState(*b"2200H"),
        format!("nextval: reached {what} value of sequence \"{}\" ({bound})", sequence.name.name),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius::Options;

    /// Goal: giving values back does not wait for whoever takes some; what is not given back stays unused.
    #[tokio::test]
    async fn giving_back_does_not_wait() {
        let database = Arc::new(Database::in_memory(Options::default()));
        database.define(&table_definition()).unwrap();
        let sequences = Sequences::new(database).unwrap();
        let sequence = of_rows(7);
        let reserved = sequences.reserve(&sequence, 10).await.unwrap();
        let block = sequences.block(7);
        let taking = block.lock().await;
        sequences.give_back(&sequence, &reserved, 3);
        drop(taking);
        assert_eq!(sequences.next(&sequence).await, Ok(11));
        let reserved = sequences.reserve(&sequence, 10).await.unwrap();
        sequences.give_back(&sequence, &reserved, 3);
        assert_eq!(sequences.next(&sequence).await, Ok(15));
    }
}
