//! The serial oracle: the simplest right thing.
//!
//! One thread runs the log's entries one after the other over ordered maps, with the reference
//! interpreter. It shares nothing with the engines but the programs: no storage, no compiled code, no
//! phases. What an engine answers for any calls, this answers for the same calls in the engine's log
//! order.
//!
//! ```text
//! table orders     key (encoded) -> row
//!                  80000001 80000007 -> [1, 7, 'open']
//! index            not kept: a scan looks at every row, and sorts
//! ```
//!
//! Seqs count as in the log: every call and every definition takes one, also a call that repeats the
//! idempotency key of another and does nothing.

use bumpalo::Bump;
use fabius_engine::constraint::{PRIMARY_KEY, duplicate};
use fabius_engine::idempotency::{KeyWindow, is_final};
use fabius_engine::lend::lend;
use fabius_engine::random::CallRandom;
use fabius_program::catalog::{Catalog, ProcedureId};
use fabius_program::context::{Context, ScanRange, Stop, WriteSet};
use fabius_program::syntax::tree::Dropped;
use fabius_program::{interpret::interpret, syntax, verify};
use fabius_value::{
    ColumnId, Datum, Error, IndexId, Key, Result, Seq, SqlState, TableId, TableSchema, Value, limit,
};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

type Row = Vec<Value>;

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The call's place in the order.
    pub seq: Seq,
    /// What it returned, or why it aborted.
    pub result: Result<Vec<Value>>,
}

/// A database that runs one call after the other.
#[derive(Default)]
pub struct Oracle {
    catalog: Catalog,
    tables: Vec<BTreeMap<Key, Row>>,
    /// Why procedures that were dropped cannot be called.
    gone: HashMap<ProcedureId, Error>,
    keys: HashMap<Vec<u8>, Outcome>,
    key_window: KeyWindow,
    last: Seq,
}

impl Oracle {
    /// An empty database.
    pub fn new() -> Oracle {
        Oracle::default()
    }

    /// The definitions in force.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The seq of the last entry.
    pub fn last(&self) -> Seq {
        self.last
    }

    /// Adds definitions, as one entry.
    ///
    /// # Errors
    /// What the parser and the verifier find wrong; then nothing has changed.
    pub fn define(&mut self, text: &str) -> Result<()> {
        let mut catalog = self.catalog.clone();
        let mut dropped = Vec::new();
        for definition in syntax::parse(text, "definition")? {
            catalog = match definition {
                syntax::Definition::Table(table) => catalog.with_table(verify::table(&table, &catalog)?)?.0,
                syntax::Definition::Procedure(procedure) => {
                    let program = verify::procedure(&procedure, &catalog)?;
                    catalog.with_procedure(program).0
                }
                syntax::Definition::Drop(drop) => match drop.what {
                    Dropped::Table => {
                        let (next, table, gone) = catalog.without_table(&drop.name.text)?;
                        dropped.push(table);
                        let reason = format!("table {} was dropped", drop.name.text);
                        let error = Error::new(SqlState::UNDEFINED_TABLE, reason);
                        self.gone.extend(gone.into_iter().map(|procedure| (procedure, error.clone())));
                        next
                    }
                    Dropped::Procedure => {
                        let (next, procedure) = catalog.without_procedure(&drop.name.text)?;
                        let reason = format!("procedure {} was dropped", drop.name.text);
                        self.gone.insert(procedure, Error::new(SqlState::UNDEFINED_FUNCTION, reason));
                        next
                    }
                },
            };
        }
        self.tables.resize(catalog.table_numbers().count(), BTreeMap::new());
        dropped.iter().for_each(|table: &TableId| self.tables[table.0 as usize].clear());
        self.catalog = catalog;
        self.last = self.last.next();
        Ok(())
    }

    /// Changes how many calls back keys are remembered, as one entry.
    pub fn set_key_window(&mut self, calls: u64) {
        self.last = self.last.next();
        self.key_window = self.key_window.changed(self.last, calls);
    }

    /// Does nothing at the next place in the order.
    pub fn pass(&mut self) {
        self.last = self.last.next();
    }

    /// Runs a call at the next place in the order.
    pub fn call(
        &mut self,
        procedure: ProcedureId,
        arguments: &[u8],
        key: Option<&[u8]>,
        time_us: i64,
    ) -> Outcome {
        let seq = self.last.next();
        self.last = seq;
        let oldest = self.key_window.oldest(seq);
        let first = key.and_then(|key| self.keys.get(key)).filter(|first| first.seq >= oldest);
        if let Some(first) = first {
            return Outcome { seq, result: first.result.clone() };
        }
        let result = self.run(procedure, arguments, seq, time_us);
        if let Some(key) = key.filter(|_| is_final(result.as_ref().err())) {
            self.keys.insert(key.into(), Outcome { seq, result: result.clone() });
        }
        Outcome { seq, result }
    }

    fn run(
        &mut self,
        procedure: ProcedureId,
        arguments: &[u8],
        seq: Seq,
        time_us: i64,
    ) -> Result<Vec<Value>> {
        let program =
            self.catalog.procedure(procedure).cloned().ok_or_else(|| match self.gone.get(&procedure) {
                Some(reason) => reason.clone(),
                None => {
                    let message = format!("there is no procedure number {}", procedure.0);
                    Error::new(SqlState::UNDEFINED_FUNCTION, message)
                }
            })?;
        let catalog = self.catalog.clone();
        let arena = Bump::new();
        let mut run = Run {
            catalog: &catalog,
            tables: &mut self.tables,
            arena: &arena,
            rows: Vec::new(),
            before: Vec::new(),
            random: CallRandom::new(seq),
            time_us,
        };
        match interpret(&program, &catalog, arguments, &mut run, &arena) {
            Ok(results) => Ok(results),
            Err(Stop::Abort(error)) => {
                run.undo();
                Err(error)
            }
            Err(Stop::Blocked | Stop::Restart) => unreachable!("there is nothing to wait for"),
        }
    }

    /// Every row of a table, in the order of its key.
    pub fn rows(&self, table: TableId) -> Vec<Row> {
        self.tables[table.0 as usize].values().cloned().collect()
    }
}

/// A row that a program holds: its number in [`Run::rows`], from 1; 0 is no row.
#[derive(Clone, Copy, Default)]
struct Handle(usize);

/// One call.
struct Run<'o, 'a> {
    catalog: &'o Catalog,
    tables: &'o mut Vec<BTreeMap<Key, Row>>,
    arena: &'a Bump,
    /// Every row that the call has named, there or not.
    rows: Vec<(TableId, Key)>,
    /// What stood where the call has written, in the order of its writes.
    before: Vec<(TableId, Key, Option<Row>)>,
    random: CallRandom,
    time_us: i64,
}

/// The rows that were in the range when the scan was opened.
struct Found {
    table: TableId,
    keys: std::vec::IntoIter<Key>,
}

impl<'a> Run<'_, 'a> {
    fn undo(&mut self) {
        for (table, key, row) in self.before.drain(..).rev() {
            let rows = &mut self.tables[table.0 as usize];
            match row {
                Some(row) => rows.insert(key, row),
                None => rows.remove(&key),
            };
        }
    }

    fn schema(&self, table: TableId) -> Arc<TableSchema> {
        self.catalog.table(table).clone()
    }

    fn handle(&mut self, table: TableId, key: Key) -> Handle {
        self.rows.push((table, key));
        Handle(self.rows.len())
    }

    fn key(&self, row: Handle) -> &Key {
        &self.rows[row.0 - 1].1
    }

    fn row(&self, table: TableId, row: Handle) -> Option<&Row> {
        self.tables[table.0 as usize].get(self.key(row))
    }

    fn store(&mut self, table: TableId, key: Key, row: Option<Row>) {
        let rows = &mut self.tables[table.0 as usize];
        let before = match row {
            Some(row) => rows.insert(key.clone(), row),
            None => rows.remove(&key),
        };
        self.before.push((table, key, before));
    }

    /// Refuses a row whose indexed values another row has, or whose index keys are too long.
    fn check_indexes(
        &self,
        table: TableId,
        key: &Key,
        row: &Row,
        is_new: impl Fn(IndexId) -> bool,
    ) -> Result<()> {
        let schema = self.schema(table);
        for (at, index) in schema.indexes.iter().enumerate() {
            let id = IndexId(at as u16);
            if !is_new(id) {
                continue;
            }
            let mut entry = Key::new();
            for column in encoded_columns(&schema, Some(id), row)? {
                entry.extend(&column);
            }
            let values: Vec<Datum<'_>> =
                index.columns.iter().map(|column| Datum::from_value(&row[usize::from(column.0)])).collect();
            if index.unique && values.iter().all(|value| !value.is_null()) {
                let wanted = encoded_columns(&schema, Some(id), row)?;
                for (other, values_there) in &self.tables[table.0 as usize] {
                    if other != key && encoded_columns(&schema, Some(id), values_there)? == wanted {
                        return Err(duplicate(&schema, &index.columns, &values, &index.name));
                    }
                }
            }
            if entry.bytes().len() + key.bytes().len() > limit::KEY_BYTES {
                return Err(fabius_value::key::entry_too_long(&schema, id));
            }
        }
        Ok(())
    }
}

/// The columns of an index, or of the primary key.
fn index_columns(schema: &TableSchema, index: Option<IndexId>) -> &[ColumnId] {
    match index {
        None => &schema.primary_key,
        Some(index) => &schema.indexes[usize::from(index.0)].columns,
    }
}

/// The byte form of one column's value in a key.
fn encoded(schema: &TableSchema, column: ColumnId, value: Datum<'_>) -> Result<Vec<u8>> {
    let nullable = schema.columns[usize::from(column.0)].nullable;
    let mut key = Key::new();
    key.push(value, schema.data_type(column), nullable)?;
    Ok(key.bytes().to_vec())
}

/// The byte forms of a row's values in an index, column by column.
fn encoded_columns(schema: &TableSchema, index: Option<IndexId>, row: &Row) -> Result<Vec<Vec<u8>>> {
    let columns = index_columns(schema, index).iter();
    let parts: Vec<Vec<u8>> = columns
        .map(|&column| encoded(schema, column, Datum::from_value(&row[usize::from(column.0)])))
        .collect::<Result<_>>()?;
    if parts.iter().map(Vec::len).sum::<usize>() > limit::KEY_BYTES {
        return Err(fabius_value::key::too_long());
    }
    Ok(parts)
}

/// The primary key of values given in key order.
fn primary_key<'v>(schema: &TableSchema, values: impl Iterator<Item = Datum<'v>>) -> Result<Key> {
    let mut key = Key::new();
    for (&column, value) in schema.primary_key.iter().zip(values) {
        key.push(value, schema.data_type(column), false)?;
    }
    Ok(key)
}

impl<'a> Context<'a> for Run<'_, 'a> {
    type Row = Handle;
    type Scan = Found;

    fn locate(&mut self, table: TableId, key: &[Datum<'a>]) -> Result<Handle, Stop> {
        let key = primary_key(&self.schema(table), key.iter().copied())?;
        Ok(self.handle(table, key))
    }

    fn exists(&mut self, table: TableId, row: Handle) -> Result<bool, Stop> {
        Ok(row.0 > 0 && self.row(table, row).is_some())
    }

    fn read(&mut self, table: TableId, row: Handle, column: ColumnId) -> Result<Datum<'a>, Stop> {
        Ok(self.row(table, row).map_or(Datum::Null, |row| lend(self.arena, &row[usize::from(column.0)])))
    }

    fn scan_open(&mut self, range: ScanRange<'_, 'a>) -> Result<Found, Stop> {
        let schema = self.schema(range.table);
        let columns = index_columns(&schema, range.index);
        let equal: Vec<Vec<u8>> = range
            .equal
            .iter()
            .zip(columns)
            .map(|(&value, &column)| encoded(&schema, column, value))
            .collect::<Result<_>>()?;
        let bound = |bound: Option<(Datum<'a>, bool)>| -> Result<Option<(Vec<u8>, bool)>> {
            let Some((value, inclusive)) = bound else { return Ok(None) };
            Ok(Some((encoded(&schema, columns[equal.len()], value)?, inclusive)))
        };
        let (lower, upper) = (bound(range.lower)?, bound(range.upper)?);
        let mut found = Vec::new();
        for (key, row) in &self.tables[range.table.0 as usize] {
            let parts = encoded_columns(&schema, range.index, row)?;
            let is_equal = parts.iter().zip(&equal).all(|(have, want)| have == want);
            let has_bound = lower.is_some() || upper.is_some();
            let is_inside = !has_bound || {
                let next = &parts[equal.len()];
                let is_null = row[usize::from(columns[equal.len()].0)].is_null();
                let above = |(low, inclusive): &(Vec<u8>, bool)| next > low || *inclusive && next == low;
                let below = |(high, inclusive): &(Vec<u8>, bool)| next < high || *inclusive && next == high;
                !is_null && lower.as_ref().is_none_or(above) && upper.as_ref().is_none_or(below)
            };
            if is_equal && is_inside {
                found.push((parts.concat(), key.clone()));
            }
        }
        found.sort_by(|left, right| (&left.0, &left.1).cmp(&(&right.0, &right.1)));
        if range.descending {
            found.reverse();
        }
        let keys: Vec<Key> = found.into_iter().map(|(_, key)| key).collect();
        Ok(Found { table: range.table, keys: keys.into_iter() })
    }

    fn scan_next(&mut self, scan: &mut Found) -> Result<Option<Handle>, Stop> {
        for key in scan.keys.by_ref() {
            // The loop's body may have deleted it.
            if self.tables[scan.table.0 as usize].contains_key(&key) {
                return Ok(Some(self.handle(scan.table, key)));
            }
        }
        Ok(None)
    }

    fn insert(&mut self, table: TableId, write: WriteSet<'_, 'a>) -> Result<Handle, Stop> {
        let schema = self.schema(table);
        let columns = schema.columns.iter().zip(write.values);
        let row: Row = columns.map(|(column, value)| value.to_value(column.data_type)).collect();
        let values = schema.primary_key.iter().map(|column| write.values[usize::from(column.0)]);
        let key = primary_key(&schema, values.clone())?;
        if self.tables[table.0 as usize].contains_key(&key) {
            let values: Vec<Datum<'_>> = values.collect();
            return Err(duplicate(&schema, &schema.primary_key, &values, PRIMARY_KEY).into());
        }
        self.check_indexes(table, &key, &row, |_| true)?;
        self.store(table, key.clone(), Some(row));
        Ok(self.handle(table, key))
    }

    fn update(&mut self, table: TableId, row: Handle, write: WriteSet<'_, 'a>) -> Result<(), Stop> {
        let schema = self.schema(table);
        let key = self.key(row).clone();
        let before = self.row(table, row).expect("a row that is updated is there").clone();
        let mut after = before.clone();
        for (column, value) in write.columns.iter().zip(write.values) {
            after[usize::from(column.0)] = value.to_value(schema.data_type(column));
        }
        let is_new = |index| {
            encoded_columns(&schema, Some(index), &before).ok()
                != encoded_columns(&schema, Some(index), &after).ok()
        };
        self.check_indexes(table, &key, &after, is_new)?;
        self.store(table, key, Some(after));
        Ok(())
    }

    fn delete(&mut self, table: TableId, row: Handle) -> Result<(), Stop> {
        let key = self.key(row).clone();
        self.store(table, key, None);
        Ok(())
    }

    fn now(&self) -> i64 {
        self.time_us
    }

    fn random(&mut self) -> f64 {
        self.random.next()
    }

    fn is_missing(&self, row: Handle) -> bool {
        row.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_program::arguments::encode;

    const SHOP: &str = "
        table stock { item: int, code: char(4) null, quantity: int, primary key (item), unique index by_code (code) }
        procedure add(item: int, code: char(4) null, quantity: int) {
            insert stock { item: item, code: code, quantity: quantity }
        }
        procedure take(item: int, quantity: int) -> int {
            stock[item].quantity -= quantity
            require stock[item].quantity >= 0, \"out of stock\"
            return stock[item].quantity
        }
        procedure above(low: int) -> list of int {
            var items: list of int = []
            for row in stock[low <..] descending { append items (row.item) }
            return items
        }";

    fn call(oracle: &mut Oracle, name: &str, values: &[Value], key: Option<&[u8]>) -> Outcome {
        let id = oracle.catalog().find_procedure(name).unwrap();
        let program = oracle.catalog().procedure(id).unwrap();
        let arguments = encode(program, values).unwrap();
        oracle.call(id, &arguments, key, 0)
    }

    #[test]
    fn calls_run_one_after_the_other() {
        let mut oracle = Oracle::new();
        oracle.define(SHOP).unwrap();
        let (one, five, three) = (Value::Int(1), Value::Int(5), Value::Int(3));
        let code = || Value::Text("a".into());
        call(&mut oracle, "add", &[one.clone(), code(), five.clone()], None).result.unwrap();
        let taken = call(&mut oracle, "add", &[three.clone(), code(), five.clone()], None);
        assert_eq!((taken.seq, taken.result.unwrap_err().state()), (Seq(3), SqlState::UNIQUE_VIOLATION));
        call(&mut oracle, "add", &[three.clone(), Value::Null, five], None).result.unwrap();
        let first = call(&mut oracle, "take", &[one.clone(), three.clone()], Some(b"k"));
        assert_eq!(first.result, Ok(vec![Value::Int(2)]));
        // The same key again does nothing, and takes a seq.
        let again = call(&mut oracle, "take", &[one.clone(), three.clone()], Some(b"k"));
        assert_eq!(again, Outcome { seq: Seq(6), ..first });
        // An abort leaves no trace.
        assert!(call(&mut oracle, "take", &[one.clone(), three.clone()], None).result.is_err());
        let quantities: Vec<Value> = oracle.rows(TableId(0)).iter().map(|row| row[2].clone()).collect();
        assert_eq!(quantities, [Value::Int(2), Value::Int(5)]);
        let above = call(&mut oracle, "above", &[Value::Int(0)], None).result.unwrap();
        assert_eq!(above, [Value::List(vec![vec![three], vec![one]])]);
    }
}
