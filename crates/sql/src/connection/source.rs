//! Rows for queries.
//!
//! A scan of a table is a program that the transaction runs, like its other statements. Where nothing that it shows has
//! to be kept, it is read at the transaction's seq, some rows at a time, as the query takes them.

use super::given_rows::GivenRows;
use super::open_transaction::{OpenTransaction, Running, ended};
use super::row_lock::{submit_locking, unless_waited};
use super::sql_database::Perspective;
use super::sql_database::SqlDatabase;
use async_trait::async_trait;
use fabius::{Patience, ReaderStandpoint, ScanPlace, Standpoint, Transaction};
use fabius_sql_meaning::catalog::{ObjectName, Oid, ROW_NUMBER};
use fabius_sql_query::row_source::Bound;
use fabius_sql_query::{QueryPlan, RowSource, TableScan};
use fabius_value::{ColumnId, DataType, Datum, Error, IndexId, Result, SqlState, Value};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use std::fmt::Write;
use std::sync::Arc;
use tokio::task::yield_now;

/// Rows of one part of a scan, at most.
const PART_ROWS: usize = 8192;
/// Bytes, about.
const PART_BYTES: usize = 1 << 20;

/// A program's result that is larger comes as that of a query, if it can.
pub(super) const SMALL_BYTES: usize = 4 << 20;

/// What a transaction sees.
pub(super) struct TransactionRows {
    database: Arc<SqlDatabase>,
    /// The number of the database.
    within: Oid,
    running: Running,
    /// The rows of its seq, while it only reads: scans need not be held then.
    stand: Option<Arc<ReaderStandpoint>>,
    /// Whether there is no table to scan.
    reads_nothing: bool,
    /// Whether nobody will ask what it has shown: it is a query's own.
    is_alone: bool,
    /// What parts of the statement have found.
    given: GivenRows,
    /// Who asks.
    patience: Arc<dyn Patience>,
}

impl TransactionRows {
    /// What the transaction sees as a query begins.
    pub(super) async fn new(
        (database, within): (&Arc<SqlDatabase>, Oid),
        running: &Running,
        query: &QueryPlan,
        (open, given, patience): (Option<&mut OpenTransaction>, &GivenRows, Arc<dyn Patience>),
    ) -> Result<TransactionRows> {
        let is_alone = open.is_none();
        let mut locked = running.lock().await;
        let stand = match locked.as_mut() {
            Some(transaction) if transaction.is_reader() && !query.locks_rows && !query.reads.is_empty() => {
                // Queries of one transaction stand at the same place, unless that has moved.
                let known = open.as_ref().and_then(|open| open.stand.upgrade());
                match known.filter(|known| Some(known.seq()) == transaction.seq()) {
                    Some(known) => Some(known),
                    None => Some(Arc::new(transaction.stand().await?)),
                }
            }
            _ => None,
        };
        drop(locked);
        if let (Some(open), Some(stand)) = (open, &stand) {
            open.stand = Arc::downgrade(stand);
        }
        let reads_nothing = query.reads.is_empty();
        Ok(TransactionRows {
            database: database.clone(),
            within,
            running: running.clone(),
            stand,
            reads_nothing,
            is_alone,
            given: given.clone(),
            patience,
        })
    }

    /// Whether later rows are those of the moment at which the query began, whatever the transaction does.
    pub(super) fn stands(&self) -> bool {
        self.stand.is_some() || self.reads_nothing
    }

    /// All rows of a scan, as a statement of the transaction that is not to take more than so many bytes.
    async fn whole(&self, scan: &TableScan, bytes_max: usize) -> Result<Vec<Vec<Value>>> {
        let (text, arguments) = program(scan)?;
        let statement = self.database.program(text)?;
        let mut running = self.running.lock().await;
        let transaction = running.as_mut().ok_or_else(ended)?;
        let results = submit_locking(transaction, &statement, &arguments, (scan.row_lock, bytes_max)).await;
        let results = results.map_err(|error| unless_waited(error, scan.row_lock, &scan.table.name.name))?;
        match results.into_iter().next() {
            Some(Value::List(mut rows)) => {
                if scan.columns.is_empty() {
                    rows.iter_mut().for_each(Vec::clear);
                }
                Ok(rows)
            }
            _ => Ok(Vec::new()),
        }
    }

    /// The rows of a scan if they are few; else they are noted as shown, to be read at the standpoint.
    async fn small(&self, stand: &Standpoint<'_>, scan: &TableScan) -> Result<Option<Vec<Vec<Value>>>> {
        let is_reader = self.running.lock().await.as_ref().is_some_and(Transaction::is_reader);
        if is_reader {
            match self.whole(scan, SMALL_BYTES).await {
                Err(error) if error.state() == SqlState::OUT_OF_MEMORY => {}
                other => return other.map(Some),
            }
        }
        let (text, arguments) = program(scan)?;
        let statement = self.database.program(text)?;
        if let Some(transaction) = self.running.lock().await.as_mut() {
            transaction.note(stand.seq(), &statement, &arguments)?;
        }
        Ok(None)
    }
}

type Parts = BoxStream<'static, Result<Vec<Vec<Value>>>>;

fn part(rows: Vec<Vec<Value>>) -> Parts {
    futures::stream::iter([Ok(rows)]).boxed()
}

/// The rows of a scan at a standpoint, as they are taken.
fn parts(database: Arc<SqlDatabase>, stand: Arc<ReaderStandpoint>, scan: &TableScan) -> Result<Parts> {
    let (scan, limit) = (beneath(&stand, scan)?, scan.limit.unwrap_or(usize::MAX));
    let begin = (ScanPlace::Begin, limit, false);
    let next = move |(mut place, left, has_begun): (ScanPlace, usize, bool)| {
        let rows = if left == 0 || matches!(place, ScanPlace::End) {
            Ok(None)
        } else {
            next_part(&database, &stand, &scan, &mut place, left).map(Some)
        };
        async move {
            if has_begun {
                // Others have their turn, and whoever waits may give up.
                yield_now().await;
            }
            Ok(rows?.map(|rows| {
                let left = left - rows.len();
                (rows, (place, left, true))
            }))
        }
    };
    Ok(futures::stream::try_unfold(begin, next).boxed())
}

fn next_part(
    database: &SqlDatabase,
    stand: &Standpoint<'_>,
    scan: &fabius::TableScan,
    place: &mut ScanPlace,
    left: usize,
) -> Result<Vec<Vec<Value>>> {
    let types = stand.definitions().table(scan.table).types().clone();
    let (mut rows, mut bytes) = (Vec::new(), 0);
    let mut visit = |row: &[Datum<'_>]| {
        let values = row.iter().zip(&scan.columns);
        let row: Vec<Value> =
            values.map(|(value, column)| value.to_value(types[usize::from(column.0)])).collect();
        bytes += row.iter().map(Value::bytes).sum::<usize>();
        rows.push(row);
        Ok(rows.len() < left.min(PART_ROWS) && bytes < PART_BYTES)
    };
    database.database().engine().scan_on(stand, scan, place, &mut visit)?;
    Ok(rows)
}

/// A scan in the words of the database beneath.
fn beneath(stand: &Standpoint<'_>, scan: &TableScan) -> Result<fabius::TableScan> {
    let definitions = stand.definitions();
    let gone = |name: &str| {
        Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" is not there any more"))
    };
    let name = &scan.table.name.name;
    let table = definitions.catalog.find_table(&scan.table.storage).ok_or_else(|| gone(name))?;
    let schema = definitions.table(table).schema();
    let index = match &scan.index {
        Some(index) if scan.table.primary_key.as_ref().is_none_or(|key| key.name != *index) => {
            let at = schema.indexes.iter().position(|known| known.name == *index);
            Some(IndexId(at.ok_or_else(|| gone(index))? as u16))
        }
        _ => None,
    };
    let column = |place: &usize| -> Result<ColumnId> {
        let name = scan.table.columns.get(*place).map_or(ROW_NUMBER, |column| &column.name);
        let at = schema.columns.iter().position(|column| column.name == name);
        Ok(ColumnId(at.ok_or_else(|| gone(name))? as u8))
    };
    let bound = |bound: &Option<Bound>| bound.as_ref().map(|bound| (bound.value.clone(), bound.is_inclusive));
    Ok(fabius::TableScan {
        table,
        index,
        equal: scan.equal.clone(),
        lower: bound(&scan.lower),
        upper: bound(&scan.upper),
        descending: false,
        columns: scan.columns.iter().map(column).collect::<Result<_>>()?,
    })
}

/// The program of a scan, as text, and its arguments.
fn program(scan: &TableScan) -> Result<(String, Vec<Value>)> {
    let table = &scan.table;
    let unstored = || Error::new(SqlState::NOT_SUPPORTED, "a column of this type is not stored");
    let data_type = |name: &str| -> Result<DataType> {
        match table.column(name) {
            Some(column) => column.sql_type.storage().ok_or_else(unstored),
            None => Ok(DataType::BigInt),
        }
    };
    let key = scan.index.as_ref().and_then(|name| table.key(name));
    let mut parameters = Vec::new();
    let mut arguments = Vec::new();
    let mut range = Vec::new();
    if let Some(key) = key {
        for (at, value) in scan.equal.iter().enumerate() {
            let Some(column) = key.columns.get(at) else { break };
            parameters.push(format!("e{at}: {}", data_type(column)?));
            arguments.push(value.clone());
            range.push(format!("e{at}"));
        }
        if let Some(column) = key.columns.get(scan.equal.len())
            && (scan.lower.is_some() || scan.upper.is_some())
        {
            let column = data_type(column)?;
            for (name, bound) in [("low", &scan.lower), ("high", &scan.upper)] {
                if let Some(bound) = bound {
                    parameters.push(format!("{name}: {column}"));
                    arguments.push(bound.value.clone());
                }
            }
            let lower = scan.lower.as_ref().map_or("", |_| "low");
            let upper = scan.upper.as_ref().map_or("", |_| "high");
            let below = if scan.lower.as_ref().is_some_and(|bound| !bound.is_inclusive) { "<" } else { "" };
            let above = if scan.upper.as_ref().is_some_and(|bound| !bound.is_inclusive) { "<" } else { "" };
            range.push(format!("{lower} {below}..{above} {upper}"));
        }
    }
    let mut fields = Vec::new();
    let mut values = Vec::new();
    for (at, place) in scan.columns.iter().enumerate() {
        let column = table.columns.get(*place);
        let name = column.map_or(ROW_NUMBER, |column| &column.name);
        let null = if column.is_some_and(|column| column.nullable) { " null" } else { "" };
        fields.push(format!("c{at}: {}{null}", data_type(name)?));
        values.push(format!("row.`{}`", name.replace('`', "``")));
    }
    if fields.is_empty() {
        fields.push("c0: boolean".into());
        values.push("true".into());
    }
    let fields = fields.join(", ");
    let mut loops = format!("for row in `{}`", table.storage);
    let is_primary = key.is_some() && key == table.primary_key.as_ref();
    if let Some(key) = key.filter(|_| !is_primary) {
        let _ = write!(loops, " by `{}`", key.name.replace('`', "``"));
    }
    if !range.is_empty() {
        let _ = write!(loops, " [{}]", range.join(", "));
    }
    if let Some(limit) = scan.limit {
        parameters.push("most: bigint".into());
        arguments.push(Value::BigInt(i64::try_from(limit).unwrap_or(i64::MAX)));
        loops.push_str(" limit most");
    }
    let text = format!(
        "procedure scan({}) -> list of ({fields}) {{ var rows: list of ({fields}) = [] {loops} {{ append rows ({}) }} return rows }}",
        parameters.join(", "),
        values.join(", ")
    );
    Ok((text, arguments))
}

#[async_trait]
impl RowSource for TransactionRows {
    fn scan(self: Arc<Self>, scan: TableScan) -> BoxStream<'static, Result<Vec<Vec<Value>>>> {
        let parts = async move {
            match self.stand.clone().filter(|_| scan.row_lock.is_none()) {
                None => self.whole(&scan, usize::MAX).await.map(part),
                Some(stand) if self.is_alone => parts(self.database.clone(), stand, &scan),
                Some(stand) => match self.small(&stand, &scan).await? {
                    Some(rows) => Ok(part(rows)),
                    None => parts(self.database.clone(), stand, &scan),
                },
            }
        };
        futures::stream::once(parts).try_flatten().boxed()
    }

    fn over(&self) -> Option<Error> {
        self.patience.over()
    }

    fn given(&self, number: u64, columns: &[usize]) -> Result<Vec<Vec<Value>>> {
        let rows = self.given.get(number, columns);
        rows.ok_or_else(|| Error::new(SqlState::UNDEFINED_TABLE, "these rows do not exist"))
    }

    async fn sequence(&self, name: &ObjectName) -> Result<(i64, bool)> {
        let catalog =
            self.database.catalog(self.within, Perspective::along(std::slice::from_ref(&name.schema)));
        match catalog.sequences.get(name) {
            Some(sequence) => self.database.sequences.last(sequence).await,
            None => Ok((1, false)),
        }
    }
}
