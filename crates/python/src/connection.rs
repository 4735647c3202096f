//! A session of a database: statements in, rows out.

use super::failure::{interface_error, raised};
use super::reading::Reading;
use super::replay::LoggedCall;
use super::simulated::writing_the_log;
use super::waiting::wait;
use super::writing::Parameter;
use fabius::Database;
use fabius_sql::connection::{
    Connection as Session, Notice, Prepared, Response, SqlDatabase, TransactionStatus,
};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::TextStyle;
use fabius_value::{Error, Result, SqlState, Value};
use futures::TryStreamExt;
use parking_lot::Mutex;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::sync::{Arc, Weak};

/// A session, until it or its database is closed.
pub type Slot = Mutex<Option<Session>>;

/// A session of a database.
#[pyclass(frozen, module = "fabius._fabius")]
pub struct Connection {
    slot: Arc<Slot>,
    /// The database, if it is on a simulated disk: whose log nobody else writes.
    simulated: Option<Weak<Database>>,
}

/// What a statement gave.
struct Answer {
    tag: String,
    /// The columns and rows of one that gives some.
    rows: Option<(Vec<OutputColumn>, Vec<Vec<Value>>)>,
    style: TextStyle,
}

impl Connection {
    /// A new session of a user; `simulated` is the database, if it is on a simulated disk.
    pub fn of(database: Arc<SqlDatabase>, user: &str, simulated: Option<Weak<Database>>) -> Connection {
        Connection { slot: Arc::new(Mutex::new(Some(Session::new(database, user)))), simulated }
    }

    pub fn slot(&self) -> &Arc<Slot> {
        &self.slot
    }

    /// Does something with the session, one thread at a time and without the interpreter's lock.
    fn with<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&mut Session) -> T + Send) -> PyResult<T> {
        let done = py.detach(|| self.slot.lock().as_mut().map(act));
        done.ok_or_else(|| interface_error(py, "the connection is closed"))
    }

    /// Runs something in the session; what a signal ends is rolled back.
    fn run<T: Send>(
        &self,
        py: Python<'_>,
        act: impl AsyncFnOnce(&mut Session) -> Result<T> + Send,
    ) -> PyResult<T> {
        let done = self.with(py, |session| {
            let done = match self.simulated.clone() {
                None => wait(act(session)),
                Some(database) => wait(writing_the_log(database, act(session))),
            };
            if done.is_err() {
                session.interrupted();
            }
            session.rest();
            done
        })?;
        done?.map_err(|error| raised(py, &error))
    }
}

/// Runs one statement.
async fn answer(session: &mut Session, text: &str, parameters: Vec<Parameter>) -> Result<Answer> {
    let types: Vec<SqlType> = parameters.iter().map(|parameter| parameter.sql_type.clone()).collect();
    let prepared = session.prepare(text, &types).await?;
    if prepared.parameters.len() != parameters.len() {
        let (wanted, given) = (prepared.parameters.len(), parameters.len());
        let message = format!("the statement has {wanted} parameters, but {given} are given");
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let style = session.text_style();
    let values = parameters.into_iter().zip(&prepared.parameters);
    let values = values.map(|(parameter, wanted)| parameter.value(wanted, &style));
    let values = values.collect::<Result<Vec<Value>>>()?;
    match session.execute(&prepared, &values).await? {
        Response::Empty => Ok(Answer { tag: String::new(), rows: None, style }),
        Response::Done { tag } => Ok(Answer { tag, rows: None, style }),
        Response::Rows { columns, rows, tag } => {
            let rows: Vec<Vec<Value>> = rows.try_collect().await?;
            Ok(Answer { tag: format!("{tag} {}", rows.len()), rows: Some((columns, rows)), style })
        }
        Response::CopyIn(_) => {
            let why = "COPY FROM STDIN needs a connection over the wire";
            drop(session.copy_end(Some(why.into())).await);
            Err(Error::new(SqlState::NOT_SUPPORTED, why).with_hint("insert the rows with executemany"))
        }
        Response::CopyOut { .. } => {
            Err(Error::new(SqlState::NOT_SUPPORTED, "COPY TO STDOUT needs a connection over the wire")
                .with_hint("select the rows"))
        }
    }
}

/// What a call gave: its first row, and what it said.
struct Called {
    types: Vec<SqlType>,
    row: Option<Vec<Value>>,
    notices: Vec<Notice>,
    style: TextStyle,
}

/// Runs one statement several times.
async fn answer_each(
    session: &mut Session,
    text: &str,
    calls: Vec<Vec<Parameter>>,
) -> Result<Vec<Result<Called>>> {
    // Each call's values are of the types that the statement wants, whatever those of its neighbours are.
    let types = vec![SqlType::Unknown; calls.first().map_or(0, Vec::len)];
    let prepared = session.prepare(text, &types).await?;
    let style = session.text_style();
    let values = |call: Vec<Parameter>| -> Result<Vec<Value>> {
        let pairs = call.into_iter().zip(&prepared.parameters);
        pairs.map(|(parameter, wanted)| parameter.value(wanted, &style)).collect()
    };
    let mut ready = Vec::with_capacity(calls.len());
    let refused: Vec<Option<Error>> =
        calls.into_iter().map(|call| values(call).map(|values| ready.push(values)).err()).collect();
    let mut answers = session.execute_each(&prepared, &ready).await.into_iter();
    let mut called = Vec::with_capacity(refused.len());
    for refused in refused {
        let lost = || Err(Error::new(SqlState(*b"XX000"), "a call without an answer"));
        called.push(match refused.map_or_else(|| answers.next().unwrap_or_else(lost), Err) {
            Err(error) => Err(error),
            Ok((response, notices)) => {
                let (mut types, mut row) = (Vec::new(), None);
                if let Response::Rows { columns, mut rows, .. } = response {
                    types = columns.iter().map(|column| column.sql_type.clone()).collect();
                    row = rows.try_next().await?;
                }
                Ok(Called { types, row, notices, style: style.clone() })
            }
        });
    }
    Ok(called)
}

/// Notices as Python has them: severity, SQLSTATE and message of each.
fn told_notices<'py>(py: Python<'py>, notices: &[Notice]) -> PyResult<Bound<'py, PyList>> {
    let told = notices.iter().map(|notice| {
        let state = notice.error.state().as_str().to_string();
        PyTuple::new(py, [notice.severity, state.as_str(), notice.error.message()])
    });
    PyList::new(py, told.collect::<PyResult<Vec<_>>>()?)
}

/// A column as Python is told of it: its name, its type's name and the type's number.
type Told = (String, String, u32);

/// A statement's tag, and its columns and rows if it gives some.
type Given = (String, Option<Vec<Told>>, Option<Py<PyList>>);

fn told(column: &OutputColumn) -> Told {
    (column.name.clone(), column.sql_type.to_string(), column.sql_type.oid())
}

#[pymethods]
impl Connection {
    /// Runs a statement with parameters `$1`, `$2`, ...: its tag, then its columns and rows, or `None` twice.
    fn execute(&self, py: Python<'_>, text: &str, parameters: &Bound<'_, PyAny>) -> PyResult<Given> {
        let parameters = parameters.try_iter()?.map(|parameter| Parameter::of(&parameter?));
        let parameters = parameters.collect::<PyResult<Vec<_>>>()?;
        let answer = self.run(py, async |session| answer(session, text, parameters).await)?;
        let Some((columns, rows)) = answer.rows else { return Ok((answer.tag, None, None)) };
        let types: Vec<SqlType> = columns.iter().map(|column| column.sql_type.clone()).collect();
        let reading = Reading { types: &types, style: &answer.style };
        let rows = rows.iter().map(|row| reading.row(py, row)).collect::<PyResult<Vec<_>>>()?;
        Ok((answer.tag, Some(columns.iter().map(told).collect()), Some(PyList::new(py, rows)?.unbind())))
    }

    /// Runs a statement once for each list of parameters, each as a transaction of its own: for each its first row, or
    /// `None`, and the notices, or else an exception.
    fn execute_each(&self, py: Python<'_>, text: &str, calls: Vec<Bound<'_, PyAny>>) -> PyResult<Py<PyList>> {
        let read = |parameters: &Bound<'_, PyAny>| {
            parameters.try_iter()?.map(|parameter| Parameter::of(&parameter?)).collect::<PyResult<Vec<_>>>()
        };
        // What is no parameter ends its own call.
        let mut ready = Vec::with_capacity(calls.len());
        let refused: Vec<Option<PyErr>> =
            calls.iter().map(|call| read(call).map(|call| ready.push(call)).err()).collect();
        let answers = self.run(py, async |session| answer_each(session, text, ready).await)?;
        let (given, mut answers) = (PyList::empty(py), answers.into_iter());
        for refused in refused {
            if let Some(refused) = refused {
                given.append(refused.into_value(py))?;
                continue;
            }
            let Some(answer) = answers.next() else { break };
            match answer {
                Err(error) => given.append(raised(py, &error).into_value(py))?,
                Ok(Called { types, row, notices, style }) => {
                    let reading = Reading { types: &types, style: &style };
                    let row = row.map(|row| reading.row(py, &row)).transpose()?;
                    given.append((row, told_notices(py, &notices)?))?;
                }
            }
        }
        Ok(given.unbind())
    }

    /// The parameters that a statement was run with, if a call of the log was a run of it; those in the places
    /// `optional` may have been null.
    fn parameters_of(
        &self,
        py: Python<'_>,
        text: &str,
        optional: Vec<usize>,
        call: &LoggedCall,
    ) -> PyResult<Option<Py<PyAny>>> {
        let found = self.run(py, async |session| {
            let prepared = session.prepare(text, &[]).await?;
            let values = session.parameters_of(&prepared, &optional, &call.0).await?;
            Ok(values.map(|values| (prepared, values, session.text_style())))
        })?;
        let read = |(prepared, values, style): (Arc<Prepared>, Vec<Value>, TextStyle)| {
            Reading { types: &prepared.parameters, style: &style }.row(py, &values)
        };
        found.map(read).transpose()
    }

    /// Divides a text into its statements.
    fn split(&self, py: Python<'_>, text: &str) -> PyResult<Vec<String>> {
        let ranges = self.run(py, async |session| session.split(text).await)?;
        Ok(ranges.into_iter().filter_map(|range| text.get(range).map(str::to_string)).collect())
    }

    /// Where the transaction stands: `idle`, `open` or `failed`.
    #[getter]
    fn status(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(match self.with(py, |session| session.status())? {
            TransactionStatus::Idle => "idle",
            TransactionStatus::Open => "open",
            TransactionStatus::Failed => "failed",
        })
    }

    /// Notices since the last time: severity, SQLSTATE and message of each.
    fn notices(&self, py: Python<'_>) -> PyResult<Py<PyList>> {
        let notices = self.with(py, Session::take_notices)?;
        Ok(told_notices(py, &notices)?.unbind())
    }

    /// Ends the session; an open transaction is rolled back. Once more, nothing happens.
    fn close(&self, py: Python<'_>) {
        let slot = self.slot.clone();
        py.detach(|| drop(slot.lock().take()));
    }

    /// Whether it is closed.
    #[getter]
    fn is_closed(&self, py: Python<'_>) -> bool {
        py.detach(|| self.slot.lock().is_none())
    }
}
