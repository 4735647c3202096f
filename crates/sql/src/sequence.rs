//! Numbers handed out in order: sequences, and the numbers that tell rows of a table without a primary key apart.
//!
//! They are handed out in blocks, outside transactions: a row of a table of the database's own says up to where
//! numbers are taken, and a call, ordered and durable as all calls are, takes the next block behind that. So whoever
//! takes numbers gets others than everybody else. What is left of a block when the database closes is never used.

use fabius::{Database, Footing, Outcome, Statement, TransactionOptions};
use fabius_sql_meaning::catalog::ObjectName;
use fabius_sql_meaning::catalog::store;
use fabius_sql_meaning::catalog::{Oid, Sequence};
use fabius_value::{Error, Result, SqlState, Value};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::Mutex as Waiting;

/// The table that says up to where numbers are taken.
pub const TABLE: &str = "fabius sequences";
/// The number of the row that counts how often numbers were set: by it a node of a cluster sees that those it has
/// left of blocks are not to be handed out any more.
const SETTINGS_ROW: i64 = -1;
/// Numbers of the first block.
const BLOCK: i64 = 32;
/// Numbers of a block, at most, but for whoever asks for more at once.
const BLOCK_MAX: i64 = 4096;

/// How often numbers were set, as an expression of a program.
pub fn settings() -> String {
    format!("`{TABLE}`[{SETTINGS_ROW}]?.taken")
}

/// The table's definition, as text.
pub fn table_definition() -> String {
    format!("table `{TABLE}` {{ id: bigint, taken: bigint, primary key (id) }}")
}

/// The program that takes the next block of a sequence: up to `size` numbers, `step` apart, up to `bound`. A sequence
/// that has come to its end begins again at `again`, unless that is null. It gives the first number, and how many
/// there are: none at the end.
fn taking() -> String {
    format!(
        "procedure `fabius take block`(
             id: bigint, start: bigint, step: bigint, bound: bigint, again: bigint null, size: bigint
         ) -> (first: bigint, count: bigint) {{
             var first: numeric(38, 0) = start
             if exists `{TABLE}`[id] {{ first = `{TABLE}`[id].taken::numeric(38, 0) + step }}
             if (step > 0 and first > bound or step < 0 and first < bound) and again is not null {{
                 first = coalesce(again, 0)
             }}
             var count: numeric(38, 0) = 0
             if step > 0 and first <= bound or step < 0 and first >= bound {{
                 count = least(div(bound::numeric(38, 0) - first, step) + 1, size)
                 upsert `{TABLE}` {{ id: id, taken: (first + (count - 1) * step)::bigint }}
             }} else {{
                 first = 0
             }}
             return first::bigint, count::bigint
         }}"
    )
}

/// The numbers that are taken but not handed out yet.
#[derive(Default)]
struct Block {
    /// The next number, if any are left.
    next: i128,
    /// Numbers left in the block.
    left: i64,
    /// How far they are apart.
    step: i64,
    /// Numbers of the next block.
    size: i64,
}

/// All sequences of a database.
pub struct Sequences {
    database: Arc<Database>,
    take: Arc<Statement>,
    give_back: Arc<Statement>,
    set: Arc<Statement>,
    taken: Arc<Statement>,
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
        name: ObjectName { schema: String::new(), name: String::new() },
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
        let statement = |text: &str| database.statement(&store::procedure(text)?);
        let take = statement(&taking())?;
        let give_back = statement(&format!(
            "procedure `fabius give block back`(id: bigint, until: bigint, taken: bigint) {{
                 if `{TABLE}`[id]?.taken = until {{ `{TABLE}`[id].taken = taken }}
             }}"
        ))?;
        let set = statement(&format!(
            "procedure `fabius set numbers`(id: bigint, taken: bigint) {{
                 upsert `{TABLE}` {{ id: id, taken: taken }}
                 let settings: bigint = coalesce(`{TABLE}`[{SETTINGS_ROW}]?.taken, 0)
                 upsert `{TABLE}` {{ id: {SETTINGS_ROW}, taken: settings + 1 }}
             }}"
        ))?;
        let taken = statement(&format!(
            "procedure `fabius numbers taken`(id: bigint) -> bigint null {{
                 return `{TABLE}`[id]?.taken
             }}"
        ))?;
        Ok(Sequences { database, take, give_back, set, taken, blocks: Mutex::default() })
    }

    /// Calls a program, which stands on nothing that this node remembers.
    async fn call(&self, program: &Statement, arguments: &[Value]) -> Result<Outcome> {
        let options = TransactionOptions { footing: Footing::Nothing, ..TransactionOptions::default() };
        self.database.run_as(&options, program, arguments, None).await
    }

    /// Forgets what is left of all blocks: numbers were set by another node.
    pub fn forget(&self) {
        self.blocks.lock().clear();
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
        self.all_of(&of_rows(table), count).await
    }

    /// The next value.
    ///
    /// # Errors
    /// `2200H` if it has come to its end; why numbers cannot be taken.
    pub async fn next(&self, sequence: &Sequence) -> Result<i64> {
        self.all_of(sequence, 1).await
    }

    /// Hands out `count` values in a row; the first of them.
    async fn all_of(&self, sequence: &Sequence, count: i64) -> Result<i64> {
        let block = self.block(sequence.oid);
        let mut block = block.lock().await;
        self.keep_step(sequence, &mut block).await?;
        while block.left < count {
            if !self.refill(sequence, &mut block, count).await? {
                return Err(ended(sequence));
            }
        }
        Ok(block.hand_out(sequence, count).first)
    }

    /// Hands out values in a row: as many as there are, up to `count`.
    ///
    /// # Errors
    /// Why numbers cannot be taken.
    pub async fn reserve(&self, sequence: &Sequence, count: i64) -> Result<Reserved> {
        let block = self.block(sequence.oid);
        let mut block = block.lock().await;
        self.keep_step(sequence, &mut block).await?;
        // A sequence that begins again is not waited for: its numbers are no longer in a row.
        while block.left < count && !(sequence.cycle && block.left > 0) {
            if !self.refill(sequence, &mut block, count).await? {
                break;
            }
        }
        let count = count.min(block.left);
        Ok(block.hand_out(sequence, count))
    }

    /// Takes back all but the first `taken` of reserved values, if no others were handed out since, and nobody is
    /// at it. It does not wait: whoever gives back has done what the values were for, and must be able to say so.
    pub fn give_back(&self, sequence: &Sequence, reserved: &Reserved, taken: i64) {
        let block = self.block(sequence.oid);
        let Ok(mut block) = block.try_lock() else { return };
        let behind =
            |count: i64| i128::from(reserved.first) + i128::from(sequence.increment) * i128::from(count);
        if reserved.count > 0 && block.next == behind(reserved.count) {
            block.next = behind(taken);
            block.left += reserved.count - taken;
        }
    }

    /// Gives the numbers of a block back, unless others have taken some since, if they are no longer as far apart as
    /// the sequence's are.
    async fn keep_step(&self, sequence: &Sequence, block: &mut Block) -> Result<()> {
        if block.left > 0 && block.step != sequence.increment {
            let bounds = [block.behind(block.left - 1), block.behind(-1)].map(i64::try_from);
            if let [Ok(until), Ok(taken)] = bounds {
                let arguments = [sequence.oid.into(), until, taken].map(Value::BigInt);
                self.call(&self.give_back, &arguments).await?;
            }
            *block = Block::default();
        }
        Ok(())
    }

    /// Takes another block, for `count` numbers that are wanted; whether there was one. What was left of the last one
    /// comes before it, unless others have taken numbers meanwhile.
    async fn refill(&self, sequence: &Sequence, block: &mut Block, count: i64) -> Result<bool> {
        let (bound, other) = match sequence.increment > 0 {
            true => (sequence.maximum, sequence.minimum),
            false => (sequence.minimum, sequence.maximum),
        };
        let again = if sequence.cycle { Value::BigInt(other) } else { Value::Null };
        let wanted = Value::BigInt(block.size.max(BLOCK).max(count - block.left));
        let of = [sequence.oid.into(), sequence.start, sequence.increment, bound].map(Value::BigInt);
        let arguments: Vec<Value> = of.into_iter().chain([again, wanted]).collect();
        let outcome = self.call(&self.take, &arguments).await?;
        let [Value::BigInt(first), Value::BigInt(taken @ 1..)] = outcome.results.as_slice() else {
            return Ok(false);
        };
        match block.left > 0 && block.behind(block.left) == i128::from(*first) {
            true => block.left += taken,
            false => (block.next, block.left) = ((*first).into(), *taken),
        }
        block.step = sequence.increment;
        block.size = (block.size.max(BLOCK) * 2).min(BLOCK_MAX);
        Ok(true)
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
        self.call(&self.set, &[Value::BigInt(sequence.oid.into()), Value::BigInt(last)]).await?;
        *block = Block::default();
        Ok(())
    }

    /// The last value that was handed out, and whether any was: `SELECT last_value, is_called FROM sequence`.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub async fn last(&self, sequence: &Sequence) -> Result<(i64, bool)> {
        let block = self.block(sequence.oid);
        let block = block.lock().await;
        let last = match block.left {
            0 => {
                let id = [Value::BigInt(sequence.oid.into())];
                let outcome = self.database.read(&self.taken, &id, usize::MAX, None).await?;
                outcome.results.first().and_then(Value::as_integer)
            }
            _ => i64::try_from(block.behind(-1)).ok(),
        };
        let last = last.filter(|last| (sequence.minimum..=sequence.maximum).contains(last));
        Ok(last.map_or((sequence.start, false), |last| (last, true)))
    }
}

impl Block {
    /// The number that comes so many behind the next.
    fn behind(&self, count: i64) -> i128 {
        self.next + i128::from(self.step) * i128::from(count)
    }

    /// Hands out numbers, which are left.
    fn hand_out(&mut self, sequence: &Sequence, count: i64) -> Reserved {
        let first = i64::try_from(self.next).unwrap_or(sequence.start);
        if count > 0 {
            self.next = self.behind(count);
            self.left -= count;
        }
        Reserved { first, count }
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

    /// Goal: whoever hands out numbers of a database hands out others than everybody else, whatever it remembers.
    #[tokio::test]
    async fn nobody_hands_out_a_number_of_another() {
        let database = Arc::new(Database::in_memory(Options::default()));
        database.define(&table_definition()).unwrap();
        let some = [Sequences::new(database.clone()).unwrap(), Sequences::new(database).unwrap()];
        let bounded = Sequence { maximum: 150, ..of_rows(7) };
        let mut seen = std::collections::BTreeSet::new();
        for turn in 0.. {
            match some[turn % 2].next(&bounded).await {
                Ok(number) => assert!(seen.insert(number), "{number} twice"),
                Err(error) if error.state() == SqlState(*b"2200H") => break,
                Err(error) => panic!("{error:?}"),
            }
        }
        assert!(seen.len() > 100 && seen.last() <= Some(&150), "{seen:?}");
        let rows = some[0].row_numbers(8, 5000).await.unwrap();
        let others = some[1].row_numbers(8, 5000).await.unwrap();
        assert!(rows.abs_diff(others) >= 5000, "{rows} {others}");
        some[1].set(&bounded, 20, true).await.unwrap();
        assert_eq!(some[1].next(&bounded).await, Ok(21));
    }
}
