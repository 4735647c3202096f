//! A transaction over values that are not known yet.
//!
//! The operations of lazy state determination (Figure 3 of the paper), for programs in Rust:
//!
//! | paper | here |
//! |---|---|
//! | READ(key), READ(future) | [`read`](FutureTransaction::read): the key may be a future value |
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
//! use fabius::{Database, Options, block_on};
//! use fabius::session::future::Futures;
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
//! let mut buy = database.futures(Futures::default());
//! let quantity = buy.read("stock", [5], "quantity");
//! if block_on(buy.is_true(quantity.at_least(4)))? {
//!     buy.write("stock", [5], "quantity", &quantity - 4);
//! }
//! // Others buy too. There are still enough, so they are not in the way.
//! let mut other = database.futures(Futures::default());
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
//! The transaction *is* a program, which grows with every operation:
//!
//! ```text
//! let f1 = stock[p1]?.quantity                            read
//! require f1 >= p2 is not distinct from o1, "..."         is_true has answered o1
//! update stock[p3] { quantity: f1 - p4 }                  write
//! ```

use super::expression::{FutureValue, Node};
use super::hold::Hold;
use super::observation::Observation;
use super::request::{Asked, Asking, Wish, until_granted};
use super::transaction_options::{Concurrency, TransactionOptions};
use super::wait::Wait;
use super::wound_wait::Owner;
use crate::statement::Caller;
use crate::{Database, Statement};
use fabius_engine::speculation::Overlay;
use fabius_engine::{HeldSnapshot, Room};
use fabius_program::compose::{CHANGED, scalar_type};
use fabius_program::syntax::tree::{
    BinaryOperator, Block, Expression, ExpressionKind, Failure, Literal, Name, Parameter,
    ProcedureDefinition, Results, RowReference, Statement as TreeStatement, StatementKind,
};
use fabius_program::syntax::{Source, Span};
use fabius_value::{DataType, Error, Result, Seq, SqlState, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// How a transaction over future values goes about.
#[derive(Clone, Debug, Default)]
pub struct Futures {
    /// As for any transaction.
    pub options: TransactionOptions,
    /// Conditions are taken to be true without asking; commit finds out (OCC-LSD+, section 3.3.2).
    pub speculative: bool,
    /// Reads are made where they stand, and what they find is observed: a conventional transaction.
    pub concrete: bool,
}

/// A transaction over values that are not known yet. Dropping it rolls it back.
pub struct FutureTransaction {
    database: Arc<Database>,
    settings: Futures,
    parameters: Vec<Parameter>,
    arguments: Vec<Value>,
    body: Block,
    reads: usize,
    has_written: bool,
    snapshot: Option<HeldSnapshot>,
    owner: Option<Arc<Owner>>,
    /// What it has asked last; everything asked before is required in it.
    asked: Option<Arc<Observation>>,
    /// What is wrong with an operation that could not say so.
    failed: Option<Error>,
}

impl Database {
    /// Begins a transaction over future values.
    pub fn futures(self: &Arc<Self>, settings: Futures) -> FutureTransaction {
        self.sessions().open.fetch_add(1, Relaxed);
        FutureTransaction {
            database: self.clone(),
            settings,
            parameters: Vec::new(),
            arguments: Vec::new(),
            body: Vec::new(),
            reads: 0,
            has_written: false,
            snapshot: None,
            owner: None,
            asked: None,
            failed: None,
        }
    }
}

impl FutureTransaction {
    /// What a column of a row holds at this point of the transaction; null if the row is not there.
    pub fn read<K: Into<FutureValue>>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
        column: &str,
    ) -> FutureValue {
        let row = self.row(table, key);
        self.bind(ExpressionKind::Column { row, optional: true, column: Name::new(column) })
    }

    /// Whether a row is there at this point of the transaction.
    pub fn exists<K: Into<FutureValue>>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
    ) -> FutureValue {
        let row = self.row(table, key);
        self.bind(ExpressionKind::Exists(row))
    }

    fn bind(&mut self, kind: ExpressionKind) -> FutureValue {
        self.reads += 1;
        let name = Name::new(format!("f{}", self.reads));
        self.push(StatementKind::Let { name, mutable: false, ty: None, value: Expression::from(kind) });
        FutureValue::new(Node::Read(self.reads))
    }

    /// Stores a value in a column of a row, which has to be there at commit.
    pub fn write<K: Into<FutureValue>>(
        &mut self,
        table: &str,
        key: impl IntoIterator<Item = K>,
        column: &str,
        value: impl Into<FutureValue>,
    ) {
        let row = self.row(table, key);
        let value = self.expression(&value.into());
        self.has_written = true;
        self.push(StatementKind::Update { row, columns: vec![(Name::new(column), value)] });
    }

    /// Adds a row; its key may consist of future values.
    pub fn insert<V: Into<FutureValue>>(
        &mut self,
        table: &str,
        columns: impl IntoIterator<Item = (&'static str, V)>,
    ) {
        let columns =
            columns.into_iter().map(|(column, value)| (Name::new(column), self.expression(&value.into())));
        let columns = columns.collect();
        self.has_written = true;
        self.push(StatementKind::Insert { table: Name::new(table), columns, upsert: false });
    }

    /// Deletes a row, which has to be there at commit.
    pub fn delete<K: Into<FutureValue>>(&mut self, table: &str, key: impl IntoIterator<Item = K>) {
        let row = self.row(table, key);
        self.has_written = true;
        self.push(StatementKind::Delete { row });
    }

    /// Whether a condition holds; null counts as not. The answer has to be so at commit. A speculative
    /// transaction takes it to be true.
    ///
    /// # Errors
    /// What is wrong with the transaction's operations; `40001` if it has to give way to an older one, or what
    /// it was told has changed; `55P03` if a lock was not granted in time.
    pub async fn is_true(&mut self, condition: impl Into<FutureValue>) -> Result<bool> {
        let condition = self.expression(&condition.into());
        let is_true = BinaryOperator::IsNotDistinct;
        let condition = binary(is_true, condition, literal(Literal::Boolean(true)));
        let answer = match self.settings.speculative {
            true => Value::Boolean(true),
            false => self.ask(condition.clone(), DataType::Boolean).await?,
        };
        let holds = answer == Value::Boolean(true);
        self.observe(condition, DataType::Boolean, answer);
        Ok(holds)
    }

    /// What a future value is, of this type. It has to be so at commit.
    ///
    /// # Errors
    /// As [`FutureTransaction::is_true`].
    pub async fn value(&mut self, value: &FutureValue, data_type: DataType) -> Result<Value> {
        let value = self.expression(value);
        let answer = self.ask(value.clone(), data_type).await?;
        self.observe(value, data_type, answer.clone());
        Ok(answer)
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
        if !self.settings.concrete {
            return Ok(value);
        }
        let definitions = self.database.definitions();
        let missing = |state, what: String| Error::new(state, format!("there is no {what}"));
        let id = definitions.catalog.find_table(table);
        let id = id.ok_or_else(|| missing(SqlState::UNDEFINED_TABLE, format!("table {table:?}")))?;
        let columns = &definitions.table(id).schema().columns;
        let found = columns.iter().find(|of| of.name == column);
        let column = found.ok_or_else(|| {
            missing(SqlState::UNDEFINED_COLUMN, format!("column {column} in table {table}"))
        })?;
        let value = self.value(&value, column.data_type).await?;
        Ok(FutureValue::new(Node::Constant(value)))
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
        if !self.has_written && !self.settings.speculative {
            return Ok(self.seen().unwrap_or_else(|| self.database.foundation().promised()));
        }
        let program = self.program(None)?;
        let caller = Caller { owner: self.owner.clone(), ..Caller::of(&self.settings.options) };
        let arguments = std::mem::take(&mut self.arguments);
        match self.database.run_by(&caller, &program, &arguments, None).await {
            Ok(outcome) => Ok(outcome.seq),
            Err(error) => Err(self.as_conflict(error)),
        }
    }

    fn as_conflict(&self, error: Error) -> Error {
        let is_wound = self.owner.as_ref().is_some_and(|owner| owner.wounded().is_some());
        match (&self.asked, self.seen()) {
            (Some(asked), Some(seen)) if error.state() == SqlState::SERIALIZATION_FAILURE && !is_wound => {
                self.database.conflict(&self.settings.options.label, seen, std::slice::from_ref(asked))
            }
            _ => error,
        }
    }

    fn seen(&self) -> Option<Seq> {
        self.snapshot.as_ref().map(HeldSnapshot::seq)
    }

    fn broken(&self) -> Option<Error> {
        self.failed.clone().or_else(|| self.owner.as_ref()?.wounded())
    }

    // ---- asking ----

    /// What an expression is, after everything the transaction has done so far.
    async fn ask(&mut self, wanted: Expression, data_type: DataType) -> Result<Value> {
        if let Some(error) = self.broken() {
            return Err(error);
        }
        let statement = self.program(Some((wanted, data_type)))?;
        let arguments = self.arguments.clone();
        let encoded: Arc<[u8]> = statement.encode(&arguments)?.into();
        let asked = match self.settings.options.concurrency {
            Concurrency::Optimistic => {
                let snapshot = match self.snapshot.take() {
                    Some(snapshot) => snapshot,
                    None => self.database.hold_snapshot()?,
                };
                let at = snapshot.seq();
                self.snapshot = Some(snapshot);
                self.ask_at(at, &statement, &arguments, &encoded)?
            }
            Concurrency::Pessimistic => self.ask_locked(&statement, &arguments, &encoded).await?,
        };
        let answer = asked.results.first().cloned().unwrap_or_default();
        self.asked = Some(asked);
        self.database.durable(self.seen().unwrap_or_default()).await?;
        Ok(answer)
    }

    fn ask_at(
        &self,
        at: Seq,
        statement: &Arc<Statement>,
        arguments: &[Value],
        encoded: &Arc<[u8]>,
    ) -> Result<Arc<Observation>> {
        let engine = self.database.engine();
        let answer = engine.speculate(
            at,
            statement.procedure(),
            encoded,
            &mut Overlay::default(),
            Room::unbounded(),
        )?;
        Ok(Arc::new(Observation {
            statement: statement.clone(),
            arguments: arguments.to_vec(),
            encoded: encoded.clone(),
            results: answer.results,
            footprint: answer.footprint,
            hold: Hold::Lock,
        }))
    }

    /// The answer on the newest state, locked.
    async fn ask_locked(
        &mut self,
        statement: &Arc<Statement>,
        arguments: &[Value],
        encoded: &Arc<[u8]>,
    ) -> Result<Arc<Observation>> {
        let (database, timeout) = (self.database.clone(), self.settings.options.lock_timeout);
        let (label, age) = (&self.settings.options.label, self.settings.options.age);
        let owner = self.owner.get_or_insert_with(|| database.sessions().admission.owner(label, age)).clone();
        let ask = |wish: Wish<'_>| self.try_locked(&owner, statement, arguments, encoded, wish);
        until_granted(&database, &owner, timeout, ask).await
    }

    fn try_locked(
        &mut self,
        owner: &Arc<Owner>,
        statement: &Arc<Statement>,
        arguments: &[Value],
        encoded: &Arc<[u8]>,
        wish: Wish<'_>,
    ) -> Result<Result<Arc<Observation>, Wait>> {
        let database = self.database.clone();
        database.with_gate(owner, statement.tables(), |gate| {
            let mut asking = Asking { database: &database, gate, owner };
            let snapshot = database.hold_snapshot()?;
            let asked = self.ask_at(snapshot.seq(), statement, arguments, encoded)?;
            match asking.lock(std::slice::from_ref(&asked), &asked, wish) {
                Asked::Granted => {
                    self.snapshot = Some(snapshot);
                    Ok(Ok(asked))
                }
                Asked::Blocked(wait) => Ok(Err(wait)),
            }
        })
    }

    /// Requires from here on that an expression is what it was said to be.
    fn observe(&mut self, wanted: Expression, data_type: DataType, answer: Value) {
        let name = format!("o{}", self.parameters.len() + 1);
        self.parameters.push(Parameter { name: Name::new(&name), ty: scalar_type(data_type, true) });
        self.arguments.push(answer);
        let condition = binary(BinaryOperator::IsNotDistinct, wanted, Expression::variable(&name));
        let failure = Failure::from(CHANGED).with_state(SqlState::SERIALIZATION_FAILURE);
        self.push(StatementKind::require(condition, failure));
    }

    // ---- the program ----

    fn program(&self, wanted: Option<(Expression, DataType)>) -> Result<Arc<Statement>> {
        let mut body = self.body.clone();
        let mut results = Results::None;
        if let Some((value, data_type)) = wanted {
            results = Results::One(scalar_type(data_type, true));
            body.push(TreeStatement {
                kind: StatementKind::Return { values: vec![value] },
                span: Span::default(),
            });
        }
        self.database.interned(&ProcedureDefinition {
            source: Arc::new(Source::new("", "transaction")),
            name: Name::new("transaction"),
            parameters: self.parameters.clone(),
            results,
            body,
        })
    }

    fn push(&mut self, kind: StatementKind) {
        self.body.push(TreeStatement { kind, span: Span::default() });
    }

    fn row<K: Into<FutureValue>>(&mut self, table: &str, key: impl IntoIterator<Item = K>) -> RowReference {
        let key = key.into_iter().map(|value| self.expression(&value.into())).collect();
        RowReference { name: Name::new(table), key: Some(key), span: Span::default() }
    }

    /// An expression of the program; values become parameters, so that transactions that differ in values only
    /// are one program.
    fn expression(&mut self, value: &FutureValue) -> Expression {
        match &*value.0 {
            Node::Read(number) => Expression::variable(format!("f{number}")),
            Node::Constant(value) => self.constant(value),
            Node::Negate(operand) => {
                Expression::from(ExpressionKind::Negate(Box::new(self.expression(operand))))
            }
            Node::Not(operand) => Expression::from(ExpressionKind::Not(Box::new(self.expression(operand)))),
            Node::IsNull(operand) => {
                let operand = Box::new(self.expression(operand));
                Expression::from(ExpressionKind::IsNull { operand, negated: false })
            }
            Node::Binary(operator, left, right) => {
                let (left, right) = (self.expression(left), self.expression(right));
                binary(*operator, left, right)
            }
        }
    }

    fn constant(&mut self, value: &Value) -> Expression {
        let data_type = match value {
            Value::Null => return literal(Literal::Null),
            Value::Boolean(_) => DataType::Boolean,
            Value::SmallInt(_) => DataType::SmallInt,
            Value::Int(_) => DataType::Int,
            Value::BigInt(_) => DataType::BigInt,
            Value::Numeric(decimal) => DataType::Numeric { precision: 38, scale: decimal.scale },
            Value::Double(_) => DataType::Double,
            Value::Text(_) => DataType::Text { limit: None },
            Value::Bytea(_) => DataType::Bytea,
            Value::Date(_) => DataType::Date,
            Value::Timestamp(_) => DataType::Timestamp,
            Value::List(_) => {
                let error = Error::new(SqlState::DATATYPE_MISMATCH, "a list is not a value of a column");
                self.failed.get_or_insert(error);
                return literal(Literal::Null);
            }
        };
        let name = format!("p{}", self.parameters.len() + 1);
        self.parameters.push(Parameter { name: Name::new(&name), ty: scalar_type(data_type, false) });
        self.arguments.push(value.clone());
        Expression::variable(&name)
    }
}

impl Drop for FutureTransaction {
    fn drop(&mut self) {
        if let Some(owner) = &self.owner {
            self.database.set_locks(owner, &[]);
        }
        self.database.sessions().open.fetch_sub(1, Relaxed);
    }
}

fn literal(literal: Literal) -> Expression {
    Expression::from(ExpressionKind::Literal(literal))
}

fn binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression {
    Expression::from(ExpressionKind::Binary(operator, Box::new(left), Box::new(right)))
}
