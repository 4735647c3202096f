//! A database in memory, as simple as can be: every version of every column, looked through from the
//! newest to the oldest.
//!
//! It serves whole runs and the two phases. A column's versions at their calls' places in the order:
//!
//! ```text
//! call 1 inserted 5, call 2 added 3, call 3 left its value for later:
//!
//!     balance: [ (1, Value 5), (2, Delta Add 3), (3, Sticky) ]
//!
//! read at 2 = 8;  read at 4: blocked by 3, until call 3's later-phase fills its version
//! ```

use bumpalo::Bump;
use fabius_env::Random;
use fabius_program::catalog::Catalog;
use fabius_program::context::{Context, DeltaOperator, ScanRange, Stop, WriteSet};
use fabius_program::operation::{BinaryOperation, compare};
use fabius_value::{
    ColumnId, DataType, Datum, Error, IndexId, Key, Result, SqlState, TableId, TableSchema, Value,
};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A row's number in its table, from 1; 0 is no row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handle(u32);

#[derive(Clone, Debug)]
enum Content {
    Value(Value),
    Delta(DeltaOperator, Value),
    Sticky,
}

#[derive(Clone, Debug, Default)]
struct Row {
    there: Vec<(u64, bool)>,
    columns: Vec<Vec<(u64, Content)>>,
}

#[derive(Clone, Debug, Default)]
struct Table {
    rows: Vec<Row>,
    by_key: BTreeMap<Key, u32>,
}

/// All tables.
#[derive(Clone, Debug)]
pub struct Memory {
    catalog: Catalog,
    tables: Vec<Table>,
}

/// A value without its type, which the column or variable gives.
fn own(datum: Datum<'_>) -> Value {
    datum.to_value(DataType::BigInt)
}

impl Memory {
    /// Empty tables.
    pub fn new(catalog: &Catalog) -> Memory {
        Memory { catalog: catalog.clone(), tables: catalog.tables().map(|_| Table::default()).collect() }
    }

    /// Every row there is, as text: `accounts[1] balance=5`.
    pub fn dump(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for (table, schema) in self.catalog.tables() {
            for at in self.tables[table.0 as usize].by_key.values() {
                if !self.there(table, Handle(*at), u64::MAX) {
                    continue;
                }
                let columns = (0..schema.columns.len()).map(|column| {
                    let column = ColumnId(column as u8);
                    let value = self.value(table, Handle(*at), column, u64::MAX, None);
                    let value = value.unwrap_or_else(|seq| panic!("{} is unfilled by {seq}", schema.name));
                    let value = Datum::from_value(&value).to_value(schema.data_type(column));
                    format!("{}={value}", schema.columns[usize::from(column.0)].name)
                });
                lines.push(format!("{}: {}", schema.name, columns.collect::<Vec<_>>().join(" ")));
            }
        }
        lines
    }

    /// Takes back everything that a call wrote.
    pub fn undo(&mut self, seq: u64) {
        for row in self.tables.iter_mut().flat_map(|table| &mut table.rows) {
            row.there.retain(|(at, _)| *at != seq);
            row.columns.iter_mut().for_each(|versions| versions.retain(|(at, _)| *at != seq));
        }
    }

    fn row(&self, table: TableId, row: Handle) -> &Row {
        &self.tables[table.0 as usize].rows[row.0 as usize - 1]
    }

    fn row_mut(&mut self, table: TableId, row: Handle) -> &mut Row {
        &mut self.tables[table.0 as usize].rows[row.0 as usize - 1]
    }

    fn there(&self, table: TableId, row: Handle, seq: u64) -> bool {
        let seen = self.row(table, row).there.iter().rev().find(|(at, _)| *at <= seq);
        seen.is_some_and(|(_, there)| *there)
    }

    /// A column at a place in the order; the call that has to fill it first if it is sticky. A
    /// later-phase looks through what its own call has not filled yet.
    fn value(
        &self,
        table: TableId,
        row: Handle,
        column: ColumnId,
        seq: u64,
        later: Option<u64>,
    ) -> Result<Value, u64> {
        let data_type = self.catalog.table(table).data_type(column);
        let mut deltas = Vec::new();
        for (at, content) in self.row(table, row).columns[usize::from(column.0)].iter().rev() {
            match content {
                _ if *at > seq => {}
                Content::Value(value) => {
                    let folded = deltas
                        .into_iter()
                        .rev()
                        .fold(value.clone(), |value, (op, operand)| apply(op, &value, operand, data_type));
                    return Ok(folded);
                }
                Content::Delta(op, operand) => deltas.push((*op, operand)),
                Content::Sticky if later == Some(*at) => {}
                Content::Sticky => return Err(*at),
            }
        }
        panic!("a row that is there has a value in every column");
    }
}

fn apply(operator: DeltaOperator, value: &Value, operand: &Value, data_type: DataType) -> Value {
    let (left, right) = (Datum::from_value(value), Datum::from_value(operand));
    let arena = Bump::new();
    match operator {
        DeltaOperator::Add => {
            let add = fabius_program::ir::BinaryOperator::Add;
            let add = BinaryOperation::of(add, data_type, data_type, data_type).unwrap();
            own(add.apply(left, right, &arena).expect("a delta that was promised cannot fail"))
        }
        DeltaOperator::Max if compare(right, left) == Some(Ordering::Greater) => operand.clone(),
        DeltaOperator::Min if compare(right, left) == Some(Ordering::Less) => operand.clone(),
        DeltaOperator::Max | DeltaOperator::Min => value.clone(),
    }
}

/// What runs over the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// All of it.
    Whole,
    /// The now-phase.
    Now,
    /// The later-phase.
    Later,
}

/// Something on a capture tape.
#[derive(Clone, Debug, PartialEq)]
enum Taped {
    Value(Value),
    Row(Handle),
}

/// One call's own state, which outlives a blocked run.
#[derive(Clone, Debug)]
pub struct Call {
    /// The call's place in the order.
    pub seq: u64,
    /// The call whose later-phase blocked this one.
    pub blocked_by: Option<u64>,
    /// Blocks some requests, chosen by this generator, once each.
    pub obstacles: Option<Random>,
    tape: Vec<Taped>,
    restored: usize,
    random: Random,
}

impl Call {
    /// A call without history.
    pub fn new(seq: u64) -> Call {
        Call {
            seq,
            blocked_by: None,
            obstacles: None,
            tape: Vec::new(),
            restored: 0,
            random: Random::seeded(seq),
        }
    }

    /// Whether the later-phase has taken everything off the tape.
    pub fn tape_is_used_up(&self) -> bool {
        self.restored == self.tape.len()
    }
}

/// The view of one call.
pub struct View<'m, 'a> {
    /// The rows.
    pub memory: &'m mut Memory,
    /// The call that runs.
    pub call: &'m mut Call,
    /// What of the call runs.
    pub phase: Phase,
    /// Where what it reads lives.
    pub arena: &'a Bump,
}

/// The rows that a scan found when it was opened.
pub struct Found {
    table: TableId,
    rows: std::vec::IntoIter<Handle>,
}

impl<'a> View<'_, 'a> {
    fn lend(&self, value: &Value) -> Datum<'a> {
        match value {
            Value::Text(text) => Datum::Text(self.arena.alloc_str(text)),
            Value::Bytea(bytes) => Datum::Bytes(self.arena.alloc_slice_copy(bytes)),
            other => match Datum::from_value(other) {
                Datum::Boolean(v) => Datum::Boolean(v),
                Datum::Int(v) => Datum::Int(v),
                Datum::Numeric(v) => Datum::Numeric(v),
                Datum::Double(v) => Datum::Double(v),
                _ => Datum::Null,
            },
        }
    }

    /// Blocks now and then, never twice in a row.
    fn obstacle(&mut self) -> Result<(), Stop> {
        if let Some(random) = &mut self.call.obstacles
            && self.call.blocked_by.take().is_none()
            && random.chance(1, 3)
        {
            self.call.blocked_by = Some(0);
            return Err(Stop::Blocked);
        }
        Ok(())
    }

    fn value(&mut self, table: TableId, row: Handle, column: ColumnId) -> Result<Value, Stop> {
        let seq = self.call.seq;
        let later = (self.phase == Phase::Later).then_some(seq);
        self.memory.value(table, row, column, seq, later).map_err(|blocker| {
            assert_ne!(blocker, seq, "the now-phase reads what it left for later");
            assert_ne!(self.phase, Phase::Whole);
            self.call.blocked_by = Some(blocker);
            Stop::Blocked
        })
    }

    fn schema(&self, table: TableId) -> std::sync::Arc<TableSchema> {
        self.memory.catalog.table(table).clone()
    }

    fn index_columns(schema: &TableSchema, index: Option<IndexId>) -> &[ColumnId] {
        match index {
            Some(index) => &schema.indexes[usize::from(index.0)].columns,
            None => &schema.primary_key,
        }
    }

    /// The rows there are.
    fn rows(&self, table: TableId) -> Vec<Handle> {
        let count = self.memory.tables[table.0 as usize].rows.len() as u32;
        let all = (1..=count).map(Handle);
        all.filter(|row| self.memory.there(table, *row, self.call.seq)).collect()
    }

    /// Refuses values that another row has in a unique index.
    fn check_unique(
        &mut self,
        table: TableId,
        except: Option<Handle>,
        new: &[(ColumnId, Value)],
    ) -> Result<(), Stop> {
        let schema = self.schema(table);
        for index in schema.indexes.iter().filter(|index| index.unique) {
            if !index.columns.iter().any(|column| new.iter().any(|(written, _)| written == column)) {
                continue;
            }
            let mut wanted = Vec::new();
            for column in &index.columns {
                wanted.push(match (new.iter().find(|(written, _)| written == column), except) {
                    (Some((_, value)), _) => value.clone(),
                    (None, Some(row)) => self.value(table, row, *column)?,
                    (None, None) => unreachable!("an insert gives every column"),
                });
            }
            for row in self.rows(table) {
                let mut same = Some(row) != except;
                for (column, wanted) in index.columns.iter().zip(&wanted) {
                    let value = self.value(table, row, *column)?;
                    same &= compare(Datum::from_value(&value), Datum::from_value(wanted))
                        == Some(Ordering::Equal);
                }
                if same {
                    return Err(duplicate(&schema.name, &index.name));
                }
            }
        }
        Ok(())
    }

    fn store(&mut self, table: TableId, row: Handle, column: ColumnId, content: Content) {
        let seq = self.call.seq;
        let data_type = self.memory.catalog.table(table).data_type(column);
        let versions = &mut self.memory.row_mut(table, row).columns[usize::from(column.0)];
        let at = versions.partition_point(|(at, _)| *at < seq);
        match (versions.get_mut(at), content) {
            (Some((own, before)), Content::Delta(op, operand)) if *own == seq => {
                // The call's own deltas on one column add up.
                let Content::Delta(first, other) = before else {
                    panic!("a delta after another kind of write of the same call");
                };
                assert_eq!(*first, op);
                *before = Content::Delta(op, apply(op, other, &operand, data_type));
            }
            (Some((own, before)), content) if *own == seq => *before = content,
            (_, content) => versions.insert(at, (seq, content)),
        }
    }

    fn store_all(&mut self, table: TableId, row: Handle, write: WriteSet<'_, 'a>) {
        for (column, value) in write.columns.iter().zip(write.values) {
            self.store(table, row, column, Content::Value(own(*value)));
        }
        for (column, op, operand) in &write.deltas.iter().collect::<Vec<_>>() {
            assert!(!operand.is_null(), "a delta needs an operand");
            self.store(table, row, *column, Content::Delta(*op, own(*operand)));
        }
        for column in write.sticky.iter() {
            self.store(table, row, column, Content::Sticky);
        }
    }

    fn set_there(&mut self, table: TableId, row: Handle, there: bool) {
        let seq = self.call.seq;
        let versions = &mut self.memory.row_mut(table, row).there;
        match versions.last_mut() {
            Some((at, before)) if *at == seq => *before = there,
            _ => versions.push((seq, there)),
        }
    }

    fn key(&self, table: TableId, key: &[Datum<'_>]) -> Key {
        let schema = self.memory.catalog.table(table);
        let mut encoded = Key::new();
        for (column, datum) in schema.primary_key.iter().zip(key) {
            assert!(!datum.is_null());
            encoded.push(*datum, schema.data_type(*column), false).unwrap();
        }
        encoded
    }
}

fn duplicate(table: &str, index: &str) -> Stop {
    Error::new(SqlState::UNIQUE_VIOLATION, format!("key exists already in {table}"))
        .with_detail(format!("index {index}"))
        .into()
}

impl<'a> Context<'a> for View<'_, 'a> {
    type Row = Handle;
    type Scan = Found;

    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Handle, Stop> {
        self.obstacle()?;
        let key = self.key(table, key);
        Ok(self.memory.tables[table.0 as usize].by_key.get(&key).map_or(Handle(0), |row| Handle(*row)))
    }

    fn exists(&mut self, table: TableId, row: Handle) -> Result<bool, Stop> {
        self.obstacle()?;
        Ok(self.memory.there(table, row, self.call.seq))
    }

    fn read(&mut self, table: TableId, row: Handle, column: ColumnId) -> Result<Datum<'a>, Stop> {
        self.obstacle()?;
        if self.phase != Phase::Later {
            assert!(self.memory.there(table, row, self.call.seq), "reads a row that is not there");
        }
        let value = self.value(table, row, column)?;
        Ok(self.lend(&value))
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<Found, Stop> {
        self.obstacle()?;
        let schema = self.schema(range.table);
        let columns = Self::index_columns(&schema, range.index);
        let mut found: Vec<(Key, Handle)> = Vec::new();
        for row in self.rows(range.table) {
            let mut key = Key::new();
            let mut inside = true;
            for (at, column) in columns.iter().chain(&schema.primary_key).enumerate() {
                let value = self.value(range.table, row, *column)?;
                let datum = Datum::from_value(&value);
                let schema = &schema.columns[usize::from(column.0)];
                key.push(datum, schema.data_type, schema.nullable).unwrap();
                if let Some(equal) = range.equal.get(at) {
                    inside &= compare(datum, *equal) == Some(Ordering::Equal);
                }
                if at == range.equal.len() && at < columns.len() {
                    let within = |bound: Option<(Datum<'_>, bool)>, wanted: Ordering| match bound {
                        Some((bound, inclusive)) => compare(datum, bound)
                            .is_some_and(|order| order == wanted || (inclusive && order.is_eq())),
                        None => true,
                    };
                    inside &= within(range.lower, Ordering::Greater) && within(range.upper, Ordering::Less);
                }
            }
            if inside {
                found.push((key, row));
            }
        }
        found.sort_by(|l, r| if range.descending { r.0.cmp(&l.0) } else { l.0.cmp(&r.0) });
        let rows: Vec<Handle> = found.into_iter().map(|(_, row)| row).collect();
        Ok(Found { table: range.table, rows: rows.into_iter() })
    }

    fn scan_next(&mut self, scan: &mut Found) -> Result<Option<Handle>, Stop> {
        self.obstacle()?;
        Ok(scan.rows.by_ref().find(|row| self.memory.there(scan.table, *row, self.call.seq)))
    }

    fn insert(&mut self, table: TableId, write: WriteSet<'_, 'a>) -> Result<Handle, Stop> {
        self.obstacle()?;
        let schema = self.schema(table);
        assert_eq!(write.columns.union(write.sticky), schema.all_mask(), "an insert gives every column");
        assert!(write.columns.covers(schema.key_mask()) && write.columns.covers(schema.indexed_mask()));
        let new: Vec<(ColumnId, Value)> =
            write.columns.iter().zip(write.values.iter().map(|value| own(*value))).collect();
        let value_of = |column: &ColumnId| &new.iter().find(|(written, _)| written == column).unwrap().1;
        let key: Vec<Datum<'_>> =
            schema.primary_key.iter().map(|column| Datum::from_value(value_of(column))).collect();
        let key = self.key(table, &key);
        let known = self.memory.tables[table.0 as usize].by_key.get(&key).copied();
        if known.is_some_and(|row| self.memory.there(table, Handle(row), self.call.seq)) {
            return Err(duplicate(&schema.name, "primary key"));
        }
        self.check_unique(table, None, &new)?;
        let row = Handle(known.unwrap_or_else(|| {
            let table = &mut self.memory.tables[table.0 as usize];
            table.rows.push(Row { there: vec![], columns: vec![vec![]; schema.columns.len()] });
            table.by_key.insert(key, table.rows.len() as u32);
            table.rows.len() as u32
        }));
        self.set_there(table, row, true);
        self.store_all(table, row, write);
        Ok(row)
    }

    fn update(&mut self, table: TableId, row: Handle, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        self.obstacle()?;
        assert!(self.memory.there(table, row, self.call.seq), "updates a row that is not there");
        assert!(
            !write.sticky.intersects(self.schema(table).indexed_mask()),
            "indexed columns are written now"
        );
        let new: Vec<(ColumnId, Value)> =
            write.columns.iter().zip(write.values.iter().map(|value| own(*value))).collect();
        self.check_unique(table, Some(row), &new)?;
        self.store_all(table, row, write);
        Ok(())
    }

    fn delete(&mut self, table: TableId, row: Handle) -> Result<(), Stop> {
        self.obstacle()?;
        assert!(self.memory.there(table, row, self.call.seq), "deletes a row that is not there");
        self.set_there(table, row, false);
        Ok(())
    }

    fn now(&self) -> i64 {
        1_000_000 * self.call.seq as i64
    }

    fn random(&mut self) -> f64 {
        assert_ne!(self.phase, Phase::Later, "random numbers are taken in the now-phase");
        self.call.random.unit_f64()
    }

    fn capture(&mut self, value: Datum<'a>) {
        assert_eq!(self.phase, Phase::Now);
        self.call.tape.push(Taped::Value(own(value)));
    }

    fn capture_row(&mut self, row: Handle) {
        assert_eq!(self.phase, Phase::Now);
        self.call.tape.push(Taped::Row(row));
    }

    fn restore(&mut self) -> Datum<'a> {
        assert_eq!(self.phase, Phase::Later);
        self.call.restored += 1;
        match self.call.tape[self.call.restored - 1].clone() {
            Taped::Value(value) => self.lend(&value),
            Taped::Row(_) => panic!("restores a value where a row was captured"),
        }
    }

    fn restore_row(&mut self) -> Handle {
        assert_eq!(self.phase, Phase::Later);
        self.call.restored += 1;
        match self.call.tape[self.call.restored - 1] {
            Taped::Row(row) => row,
            Taped::Value(_) => panic!("restores a row where a value was captured"),
        }
    }

    fn fill(&mut self, table: TableId, row: Handle, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        self.obstacle()?;
        assert_eq!(self.phase, Phase::Later);
        assert!(write.deltas.is_empty() && write.sticky.is_empty());
        for (column, value) in write.columns.iter().zip(write.values) {
            let seq = self.call.seq;
            let versions = &mut self.memory.row_mut(table, row).columns[usize::from(column.0)];
            let (_, content) =
                versions.iter_mut().find(|(at, _)| *at == seq).expect("the now-phase left it for later");
            *content = Content::Value(own(*value));
        }
        Ok(())
    }

    fn is_missing(&self, row: Handle) -> bool {
        row == Handle(0)
    }
}
