//! A database in memory that is asked in SQL, as the server asks it, with a limit on time.

use fabius::{Database, Options};
use fabius_sql::connection::{Connection, Response, SqlDatabase, TransactionStatus};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format;
use fabius_value::{Error, Result, SqlState, Value};
use futures::StreamExt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a statement may take before it is given up, as a statement timeout gives it up.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a statement may keep its thread all the same: more is a hang.
const HANG: Duration = Duration::from_secs(60);

/// Rows of one result that are looked at.
const ROWS: usize = 10_000;

/// A database with one connection.
pub(crate) struct Rig {
    database: Arc<SqlDatabase>,
    connection: Connection,
}

/// What a statement has shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shown {
    /// The statement's tag, without the count of rows.
    pub tag: String,
    /// Types of the columns.
    pub types: Vec<SqlType>,
    /// Rows as text; `None` is null.
    pub rows: Vec<Vec<Option<String>>>,
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let built = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        built.expect("threads")
    })
}

/// Ends the process if what it guards keeps its thread for ever, after saying what that was.
struct Watch(Arc<tokio::sync::Notify>);

impl Watch {
    fn over(what: &str) -> Watch {
        let (done, what) = (Arc::new(tokio::sync::Notify::new()), what.to_string());
        let waits = done.clone();
        runtime().spawn(async move {
            if tokio::time::timeout(HANG, waits.notified()).await.is_err() {
                eprintln!("this has taken more than {} s: {what}", HANG.as_secs());
                std::process::abort();
            }
        });
        Watch(done)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

impl Rig {
    /// A database with what a script makes.
    pub fn new(script: &str) -> Rig {
        let database = Arc::new(Database::in_memory(Options::default()));
        let database = runtime().block_on(SqlDatabase::open(database)).expect("a database in memory");
        let mut rig = Rig { connection: Connection::new(database.clone(), "fuzz"), database };
        for answer in rig.run(script) {
            answer.unwrap_or_else(|error| panic!("{script}: {error:?}"));
        }
        rig
    }

    /// Runs the statements of a text one by one.
    pub fn run(&mut self, text: &str) -> Vec<Result<Shown>> {
        match runtime().block_on(self.connection.split(text)) {
            Ok(parts) => parts.into_iter().map(|bytes| self.one(&text[bytes])).collect(),
            Err(error) => vec![Err(checked(error, text))],
        }
    }

    /// Runs one statement.
    pub fn one(&mut self, text: &str) -> Result<Shown> {
        let _watch = Watch::over(text);
        let connection = &mut self.connection;
        let answer =
            runtime().block_on(async { tokio::time::timeout(PATIENCE, answer(connection, text)).await });
        self.connection.take_notices();
        match answer {
            Ok(answer) => answer.map_err(|error| checked(error, text)),
            Err(_) => {
                self.connection.interrupted();
                Err(Error::new(SqlState::CANCELED, "it takes too long"))
            }
        }
    }

    /// Another client comes after whatever was done: the catalog reads back, every table can be read, and each
    /// row is found by its key.
    pub fn check(mut self) {
        runtime().block_on(self.connection.end_implicit(false)).expect("a rollback");
        if self.connection.status() != TransactionStatus::Idle {
            self.one("ROLLBACK").expect("a rollback");
        }
        let database = self.database.database().clone();
        drop(self.connection);
        let again = runtime().block_on(SqlDatabase::open(database)).expect("the catalog reads back");
        let mut rig = Rig { connection: Connection::new(again.clone(), "another"), database: again };
        let tables = rig.one(
            "SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) FROM information_schema.tables \
             WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')",
        );
        for row in tables.expect("tables are listed").rows {
            let Some(Some(table)) = row.into_iter().next() else { continue };
            let all = rig.one(&format!("SELECT * FROM {table}"));
            let all = all.unwrap_or_else(|error| panic!("{table} is not readable: {error:?}"));
            let counted = rig.one(&format!("SELECT count(*) FROM {table}")).expect("rows are counted");
            let count = counted.rows[0][0].clone().unwrap_or_default();
            assert!(all.rows.len() == ROWS || count == all.rows.len().to_string(), "{table}: {count} rows");
        }
    }
}

/// An error that a client can be shown.
fn checked(error: Error, text: &str) -> Error {
    let code = error.state();
    let state = code.as_str();
    assert!(state != "XX000" && state != "00000", "{text}\n{error:?}");
    assert!(state.len() == 5 && !error.message().is_empty(), "{text}\n{error:?}");
    error
}

async fn answer(connection: &mut Connection, text: &str) -> Result<Shown> {
    let prepared = connection.prepare(text, &[]).await?;
    let parameters: Vec<Value> = prepared.parameters.iter().map(parameter).collect();
    let mut response = connection.execute(&prepared, &parameters).await?;
    if let Response::CopyIn(copy) = &response {
        let line = vec!["1"; copy.columns].join("\t") + "\n";
        connection.copy_data(line.as_bytes()).await?;
        response = connection.copy_end(None).await?;
    }
    Ok(match response {
        Response::Empty => Shown { tag: String::new(), types: Vec::new(), rows: Vec::new() },
        Response::Done { tag } => Shown { tag, types: Vec::new(), rows: Vec::new() },
        Response::Rows { columns, mut rows, tag } => {
            let types: Vec<SqlType> = columns.into_iter().map(|column| column.sql_type).collect();
            let style = connection.text_style();
            let mut shown = Vec::new();
            while let Some(row) = rows.next().await {
                let cells = row?.into_iter().zip(&types);
                shown.push(
                    cells.map(|(value, sql_type)| text_format::text(&value, sql_type, &style)).collect(),
                );
                if shown.len() == ROWS {
                    break;
                }
            }
            Shown { tag: tag.to_string(), types, rows: shown }
        }
        Response::CopyOut { mut data, .. } => {
            while let Some(part) = data.next().await {
                part?;
            }
            Shown { tag: "COPY".into(), types: Vec::new(), rows: Vec::new() }
        }
        Response::CopyIn(_) => unreachable!("a copy that was ended"),
    })
}

/// A value for a parameter.
fn parameter(sql_type: &SqlType) -> Value {
    match sql_type {
        SqlType::SmallInt => Value::SmallInt(1),
        SqlType::Int => Value::Int(1),
        SqlType::BigInt => Value::BigInt(1),
        SqlType::Text => Value::Text("x".into()),
        _ => Value::Null,
    }
}
