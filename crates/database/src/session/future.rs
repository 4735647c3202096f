//! A transaction over values that are not known yet.
//!
//! The operations of lazy state determination (Figure 3 of the paper), for programs in Rust:
//!
//! | paper | here |
//! |---|---|
//! | READ(key), READ(future) | [`read`](FutureTransaction::read), [`read_columns`](FutureTransaction::read_columns): the key may be a future value |
//! | READ by a secondary index | [`first`](FutureTransaction::first), [`rows`](FutureTransaction::rows): by an index, of a range |
//! | IS-TRUE(condition) | [`is_true`](FutureTransaction::is_true) |
//! | WRITE(key, future), WRITE(future, future) | [`write`](FutureTransaction::write), [`insert`](FutureTransaction::insert), [`delete`](FutureTransaction::delete) |
//! | COMMIT, ABORT | [`commit`](FutureTransaction::commit), dropping it |
//!
//! Nothing is read where `read` stands. Arithmetic makes expressions; only `is_true` asks the database, for one
//! bit, and [`value`](FutureTransaction::value) for a value. Both are *observed*: what they have told the program
//! has to be so at commit. Unlike the paper, a future key stays one in reads too, for a program can follow it at
//! commit (3.2, "Futures as keys", resolves it at once).
//!
//! ```
//! use fabius::{Database, Options, TransactionOptions, block_on};
//! use std::sync::Arc;
//!
//! # fn main() -> fabius::Result<()> {
//! let database = Arc::new(Database::in_memory(Options::default()));
//! database.define(
//!     "table stock { item: bigint, quantity: bigint, primary key (item) }
//!      procedure add(item: bigint, quantity: bigint) { insert stock { item: item, quantity: quantity } }",
//! )?;
//! database.call("add", &[5.into(), 42.into()])?;
//!
//! // Figure 1b: buy 4 of item 5, if there are as many.
//! let mut buy = database.futures(TransactionOptions::default());
//! let quantity = buy.read("stock", [5], "quantity");
//! if block_on(buy.is_true(quantity.at_least(4)))? {
//!     buy.write("stock", [5], "quantity", &quantity - 4);
//! }
//! // Others buy too. There are still enough, so they are not in the way.
//! let mut other = database.futures(TransactionOptions::default());
//! let quantity = other.read("stock", [5], "quantity");
//! other.write("stock", [5], "quantity", quantity - 30);
//! block_on(other.commit())?;
//!
//! block_on(buy.commit())?;
//! assert_eq!(database.rows("stock")?, [[5i64.into(), 8i64.into()]]);
//! # Ok(())
//! # }
//! ```
//!
//! Several columns, an index and a range; nothing of them is known until somebody asks:
//!
//! ```
//! use fabius::{Database, Options, RowRange, TransactionOptions, Value, block_on};
//! use std::sync::Arc;
//!
//! # fn main() -> fabius::Result<()> {
//! let database = Arc::new(Database::in_memory(Options::default()));
//! database.define(
//!     "table lines { number: bigint, place: bigint, item: text, count: bigint, price: bigint,
//!          primary key (number, place), index by_item (item) }
//!      procedure add(number: bigint, place: bigint, item: text, count: bigint, price: bigint) {
//!          insert lines { number: number, place: place, item: item, count: count, price: price } }",
//! )?;
//! for (place, item, count, price) in [(1, "pen", 2, 5), (2, "ink", 1, 7), (3, "cup", 4, 3)] {
//!     database.call("add", &[7.into(), place.into(), item.into(), count.into(), price.into()])?;
//! }
//! let mut change = database.futures(TransactionOptions::default());
//! let [count, price] = change.read_columns("lines", [7, 1], ["count", "price"]);
//! let of_ink = RowRange::of("lines").by("by_item").equal(["ink"]);
//! let [place] = change.first(of_ink, ["place"])?;
//! let some = change.rows(RowRange::of("lines").equal([7]).from(2).to(3), ["count"])?;
//! change.write("lines", [7.into(), place], "count", some.sum("count") + &count * &price);
//! assert!(block_on(change.is_true(some.count().equals(2)))?);
//! block_on(change.commit())?;
//! assert_eq!(database.rows("lines")?[1][3], Value::BigInt(15));
//! # Ok(())
//! # }
//! ```
//!
//! The transaction *is* a program, which grows with every operation ([`super::future_program`]):
//!
//! ```text
//! let f0_0 = stock[p0]?.quantity                          read
//! require f0_0 >= p1 is not distinct from p2, "..."       is_true has answered p2
//! update stock[p3] { quantity: f0_0 - p4 }                write
//! ```
//!
//! What is asked runs the part of it that the answer depends on, and no more.

use super::conventional::Locking;
use super::conventional::grain::Grain;
use super::expression::{FutureValue, Node};
use super::future_program::{self, Made, Step};
use super::hold::Hold;
use super::observation::Observation;
use super::request::{Asked, Asking, Wish, until_granted};
use super::row_range::{FutureRows, RowRange};
use super::transaction_options::{Concurrency, TransactionOptions};
use super::wait::Wait;
use super::wound_wait::Owner;
use crate::statement::Caller;
use crate::{Database, Statement};
use fabius_engine::speculation::Overlay;
use fabius_engine::{HeldSnapshot, Room};
use fabius_value::{DataType, Error, Result, Seq, SqlState, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A transaction over values that are not known yet. Dropping it rolls it back.
pub struct FutureTransaction {
    database: Arc<Database>,
    options: TransactionOptions,
    steps: Vec<Step>,
    has_written: bool,
    snapshot: Option<HeldSnapshot>,
    owner: Option<Arc<Owner>>,
    /// What it has asked, each by itself.
    asked: Vec<Arc<Observation>>,
}

impl Database {
    /// Begins a transaction over future values. In a conventional one reads are made where they stand
    /// ([`FutureTransaction::read_now`]); a speculative one takes conditions to be true without asking.
    pub fn futures(self: &Arc<Self>, options: TransactionOptions) -> FutureTransaction {
        self.sessions().open.fetch_add(1, Relaxed);
        FutureTransaction {
            database: self.clone(),
            options,
            steps: Vec::new(),
            has_written: false,
            snapshot: None,
            owner: None,
            asked: Vec::new(),
        }
    }
}

fn values<V: Into<FutureValue>>(values: impl IntoIterator<Item = V>) -> Vec<FutureValue> {
    values.into_iter().map(Into::into).collect()
}

impl FutureTransaction {
    fn push(&mut self, step: Step) -> usize {
        self.steps.push(step);
        self.steps.len() - 1
    }

    /// What a column of a row holds at this point of the transaction; null if the row is not there.
    pub fn read<K: Into<FutureValue>>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
        column: &str,
    ) -> FutureValue {
        let [value] = self.read_columns(table, key, [column]);
        value
    }

    /// What columns of a row hold at this point of the transaction; null, all of them, if the row is not there.
    pub fn read_columns<K: Into<FutureValue>, const N: usize>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
        columns: [&str; N],
    ) -> [FutureValue; N] {
        let (table, columns) = (table.to_string(), columns.map(str::to_string).to_vec());
        let step = self.push(Step::Read { table, key: values(key), columns });
        std::array::from_fn(|place| FutureValue::new(Node::Read(step, place)))
    }

    /// Whether a row is there at this point of the transaction.
    pub fn exists<K: Into<FutureValue>>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
    ) -> FutureValue {
        let step = self.push(Step::Read { table: table.to_string(), key: values(key), columns: Vec::new() });
        FutureValue::new(Node::Read(step, 0))
    }

    /// What columns of the first row of a range hold at this point of the transaction; null if there is none. With
    /// [`RowRange::by`] that is a read by a secondary index.
    ///
    /// # Errors
    /// `42P01`, `42703` for what does not exist.
    pub fn first<const N: usize>(&mut self, range: RowRange, columns: [&str; N]) -> Result<[FutureValue; N]> {
        let columns = self.typed(&range.table, &columns)?;
        let step = self.push(Step::First { range, columns });
        Ok(std::array::from_fn(|place| FutureValue::new(Node::Read(step, place))))
    }

    /// The rows of a range at this point of the transaction, with these columns.
    ///
    /// # Errors
    /// `42P01`, `42703` for what does not exist.
    pub fn rows(&mut self, range: RowRange, columns: impl AsRef<[&'static str]>) -> Result<FutureRows> {
        let columns = self.typed(&range.table, columns.as_ref())?;
        let step = self.push(Step::Rows { range, columns: columns.clone() });
        Ok(FutureRows { step, columns })
    }

    /// Columns of a table with their types.
    fn typed(&self, table: &str, columns: &[&str]) -> Result<Vec<(String, DataType)>> {
        let definitions = self.database.definitions();
        let missing = |state, what: String| Error::new(state, format!("there is no {what}"));
        let id = definitions.catalog.find_table(table);
        let id = id.ok_or_else(|| missing(SqlState::UNDEFINED_TABLE, format!("table {table:?}")))?;
        let schema = definitions.table(id).schema();
        let typed = columns.iter().map(|name| {
            let column = schema.columns.iter().find(|column| column.name == *name);
            let column = column.ok_or_else(|| {
                missing(SqlState::UNDEFINED_COLUMN, format!("column {name} in table {table}"))
            })?;
            Ok(((*name).to_string(), column.data_type))
        });
        typed.collect()
    }

    /// Stores a value in a column of a row, which has to be there at commit.
    pub fn write<K: Into<FutureValue>>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
        column: &str,
        value: impl Into<FutureValue>,
    ) {
        self.has_written = true;
        let (table, columns) = (table.to_string(), vec![(column.to_string(), value.into())]);
        self.push(Step::Update { table, key: values(key), columns });
    }

    /// Adds a row; its key may consist of future values.
    pub fn insert<V: Into<FutureValue>>(
        &mut self,
        table: &str,
        columns: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        self.has_written = true;
        let columns = columns.into_iter().map(|(column, value)| (column.to_string(), value.into()));
        let columns = columns.collect();
        self.push(Step::Insert { table: table.to_string(), columns });
    }

    /// Deletes a row, which has to be there at commit.
    pub fn delete<K: Into<FutureValue>>(&mut self, table: &str, key: impl IntoIterator<Item = K>) {
        self.has_written = true;
        self.push(Step::Delete { table: table.to_string(), key: values(key) });
    }

    /// Whether a condition holds; null counts as not. The answer has to be so at commit. A speculative
    /// transaction takes it to be true.
    ///
    /// # Errors
    /// What is wrong with the operations that it depends on; `40001` if it has to give way to an older one; `55P03` if
    /// a lock was not granted in time.
    pub async fn is_true(&mut self, condition: impl Into<FutureValue>) -> Result<bool> {
        let condition = FutureValue::new(Node::IsTrue(condition.into()));
        if self.options.speculative {
            let answer = Value::Boolean(true);
            self.push(Step::Observed { value: condition, data_type: DataType::Boolean, answer });
            return Ok(true);
        }
        let answers = self.ask(vec![(condition, DataType::Boolean)]).await?;
        Ok(answers == [Value::Boolean(true)])
    }

    /// What a future value is, of this type. It has to be so at commit.
    ///
    /// # Errors
    /// As [`FutureTransaction::is_true`].
    pub async fn value(&mut self, value: &FutureValue, data_type: DataType) -> Result<Value> {
        let mut answers = self.ask(vec![(value.clone(), data_type)]).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// What the rows of a range are. All of that has to be so at commit.
    ///
    /// # Errors
    /// As [`FutureTransaction::is_true`].
    pub async fn row_values(&mut self, rows: &FutureRows) -> Result<Vec<Vec<Value>>> {
        let count = self.value(&rows.count(), DataType::BigInt).await?.as_integer().unwrap_or_default();
        let wanted = (1..=count).flat_map(|row| {
            let element = move |(column, data_type): &(String, DataType)| {
                (FutureValue::new(Node::Element(rows.step, row, column.clone())), *data_type)
            };
            rows.columns.iter().map(element)
        });
        let wanted: Vec<_> = wanted.collect();
        if wanted.is_empty() {
            return Ok(vec![Vec::new(); count as usize]);
        }
        let answers = self.ask(wanted).await?;
        Ok(answers.chunks(rows.columns.len()).map(<[Value]>::to_vec).collect())
    }

    /// Reads as [`FutureTransaction::read`] does. In a conventional transaction the value is read here, and has to
    /// be so at commit; in a pessimistic one it is locked. Otherwise nothing is read.
    ///
    /// # Errors
    /// As [`FutureTransaction::is_true`]; `42P01`, `42703` for what does not exist.
    pub async fn read_now<K: Into<FutureValue>>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
        column: &str,
    ) -> Result<FutureValue> {
        let value = self.read(table, key, column);
        if self.options.conventional.is_none() {
            return Ok(value);
        }
        let typed = self.typed(table, &[column])?;
        let value = self.value(&value, typed[0].1).await?;
        Ok(FutureValue::new(Node::Constant(value)))
    }

    /// How many rows were looked up to answer what it has asked: what asking has cost so far.
    pub fn looked_up(&self) -> usize {
        self.asked.iter().map(|asked| asked.footprint.rows.len()).sum()
    }

    /// Commits. Gives its place in the order: its own if it has written, else that of what it has seen.
    ///
    /// # Errors
    /// `40001` if something that it was told has changed: trying again may help. Class 23 if it violates a
    /// constraint, `P0002` if a row to write is not there, class 22 if a value does not fit. Nothing was written
    /// then.
    pub async fn commit(mut self) -> Result<Seq> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        if !self.has_written && !self.options.speculative {
            return self.commit_reads();
        }
        let options = &self.options;
        if let (Some(grain), Some(seen)) = (options.compares_by(), self.seen()) {
            self.database.compare_versions(&options.label, &self.asked, grain, seen)?;
        }
        let all = self.steps.iter().enumerate();
        let Made { definition, arguments } = future_program::program(all, &[])?;
        let program = self.database.interned(&definition)?;
        let mut caller = Caller { owner: self.owner.clone(), ..Caller::of(options) };
        if let (Some(owner), Some(grain)) = (&self.owner, options.locks_by()) {
            let encoded = program.encode(&arguments)?;
            let how = (grain, options.lock_timeout);
            self.database.lock_written(owner, program.procedure(), &encoded, how).await?;
            caller.is_conventional = true;
        }
        self.steps.clear();
        match self.database.run_by(&caller, &program, &arguments, None).await {
            Ok(outcome) => Ok(outcome.seq),
            Err(error) => Err(self.as_conflict(error)),
        }
    }

    /// Ends a transaction that has only asked: what it was told has to have been so at one place in the order.
    fn commit_reads(&self) -> Result<Seq> {
        let Some(seen) = self.seen() else { return Ok(self.database.foundation().promised()) };
        // What was asked under locks was asked at several places; whoever was past its admission may have come between.
        let has_moved = self.options.concurrency == Concurrency::Pessimistic && self.asked.len() > 1;
        let holds = |asked: &Arc<Observation>| {
            let (engine, mut overlay) = (self.database.engine(), Overlay::default());
            let procedure = asked.statement.procedure();
            let again = engine.speculate(seen, procedure, &asked.encoded, &mut overlay, Room::unbounded());
            again.is_ok_and(|again| again.results == asked.results)
        };
        if has_moved && !self.asked.iter().all(holds) {
            return Err(self.database.conflict(&self.options.label, seen, &self.asked));
        }
        Ok(seen)
    }

    fn as_conflict(&self, error: Error) -> Error {
        let is_wound = self.owner.as_ref().is_some_and(|owner| owner.wounded().is_some());
        match self.seen() {
            Some(seen)
                if error.state() == SqlState::SERIALIZATION_FAILURE
                    && !is_wound
                    && !self.asked.is_empty() =>
            {
                self.database.conflict(&self.options.label, seen, &self.asked)
            }
            _ => error,
        }
    }

    fn seen(&self) -> Option<Seq> {
        self.snapshot.as_ref().map(HeldSnapshot::seq)
    }

    fn broken(&self) -> Option<Error> {
        self.owner.as_ref()?.wounded()
    }

    // ---- asking ----

    /// What values are at this point of the transaction. From here on they have to be so.
    async fn ask(&mut self, wanted: Vec<(FutureValue, DataType)>) -> Result<Vec<Value>> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        let question = self.question(&wanted)?;
        let asked = match self.options.concurrency {
            Concurrency::Optimistic => {
                let snapshot = match self.snapshot.take() {
                    Some(snapshot) => snapshot,
                    None => self.database.hold_snapshot()?,
                };
                let at = snapshot.seq();
                self.snapshot = Some(snapshot);
                question.at(&self.database, at)?
            }
            Concurrency::Pessimistic => match self.options.locks_by() {
                Some(grain) => self.ask_on_locked(&question, grain).await?,
                None => self.ask_locked(&question).await?,
            },
        };
        self.database.durable(self.seen().unwrap_or_default()).await?;
        let answers = asked.results.clone();
        self.asked.push(asked);
        for ((value, data_type), answer) in wanted.into_iter().zip(&answers) {
            self.push(Step::Observed { value, data_type, answer: answer.clone() });
        }
        Ok(answers)
    }

    /// The program of what values depend on.
    fn question(&self, wanted: &[(FutureValue, DataType)]) -> Result<Question> {
        let values: Vec<FutureValue> = wanted.iter().map(|(value, _)| value.clone()).collect();
        let needed = future_program::needed(&self.steps, &values, &self.database.definitions());
        let steps = needed.iter().map(|at| (*at, &self.steps[*at]));
        let Made { definition, arguments } = future_program::program(steps, wanted)?;
        let statement = self.database.interned(&definition)?;
        let encoded = statement.encode(&arguments)?.into();
        Ok(Question { statement, arguments, encoded })
    }

    fn owner(&mut self) -> Arc<Owner> {
        let (database, options) = (&self.database, &self.options);
        let new = || database.sessions().admission.owner(&options.label, options.age);
        self.owner.get_or_insert_with(new).clone()
    }

    /// The answer on the newest state, of objects that are locked.
    async fn ask_on_locked(&mut self, question: &Question, grain: Grain) -> Result<Arc<Observation>> {
        let (owner, database) = (self.owner(), self.database.clone());
        let timeout = self.options.lock_timeout;
        // What was looked at when all of it was locked.
        let mut locked = None;
        loop {
            let snapshot = database.hold_snapshot()?;
            let at = snapshot.seq();
            let asked = question.at(&database, at)?;
            let locking = match locked.as_ref() == Some(&asked.footprint) {
                true => Locking::Held,
                false => database.lock_observed(&owner, &asked, &BTreeSet::new(), (grain, at))?,
            };
            match locking {
                Locking::Held => {
                    self.snapshot = Some(snapshot);
                    return Ok(asked);
                }
                Locking::Late => locked = Some(asked.footprint.clone()),
                Locking::Blocked(wanted) => database.lock(&owner, &wanted, timeout).await?,
            }
        }
    }

    /// The answer on the newest state, locked.
    async fn ask_locked(&mut self, question: &Question) -> Result<Arc<Observation>> {
        let (owner, database) = (self.owner(), self.database.clone());
        let timeout = self.options.lock_timeout;
        let ask = |wish: Wish<'_>| self.try_locked(&owner, question, wish);
        until_granted(&database, &owner, timeout, ask).await
    }

    fn try_locked(
        &mut self,
        owner: &Arc<Owner>,
        question: &Question,
        wish: Wish<'_>,
    ) -> Result<Result<Arc<Observation>, Wait>> {
        let database = self.database.clone();
        database.with_gate(owner, question.statement.tables(), |gate| {
            let mut asking = Asking { database: &database, gate, owner };
            let snapshot = database.hold_snapshot()?;
            let asked = question.at(&database, snapshot.seq())?;
            let all: Vec<_> = self.asked.iter().chain([&asked]).cloned().collect();
            match asking.lock(&all, &asked, wish) {
                Asked::Granted => {
                    self.snapshot = Some(snapshot);
                    Ok(Ok(asked))
                }
                Asked::Blocked(wait) => Ok(Err(wait)),
            }
        })
    }
}

/// A program that answers something, on the rows alone.
struct Question {
    statement: Arc<Statement>,
    arguments: Vec<Value>,
    encoded: Arc<[u8]>,
}

impl Question {
    /// The answer at a seq, at which the caller holds a snapshot.
    fn at(&self, database: &Database, at: Seq) -> Result<Arc<Observation>> {
        let (procedure, mut overlay) = (self.statement.procedure(), Overlay::default());
        let answer =
            database.engine().speculate(at, procedure, &self.encoded, &mut overlay, Room::unbounded())?;
        Ok(Arc::new(Observation {
            statement: self.statement.clone(),
            arguments: self.arguments.clone(),
            encoded: self.encoded.clone(),
            results: answer.results,
            footprint: answer.footprint,
            hold: Hold::Lock,
            is_apart: true,
        }))
    }
}

impl Drop for FutureTransaction {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            self.database.set_locks(owner, &[]);
            self.database.sessions().lock_table.release(owner);
        }
        self.database.sessions().open.fetch_sub(1, Relaxed);
    }
}
