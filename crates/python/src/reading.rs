//! Values of SQL as Python's, as psycopg maps them.

use super::classes::Classes;
use super::failure::raised;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit, TextStyle, array_literal};
use fabius_value::Value;
use fabius_value::interval::Interval;
use fabius_value::network::Network;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

const SECOND: i64 = 1_000_000;
const DAY: i64 = 86_400 * SECOND;
/// What Python calls the day 1970-01-01.
const EPOCH_ORDINAL: i32 = 719_163;

/// The columns' types of rows, and how the session shows values.
pub struct Reading<'r> {
    pub types: &'r [SqlType],
    pub style: &'r TextStyle,
}

impl Reading<'_> {
    /// A row as a tuple.
    pub fn row(&self, py: Python<'_>, row: &[Value]) -> PyResult<Py<PyAny>> {
        let fields = row.iter().zip(self.types).map(|(value, sql_type)| self.value(py, value, sql_type));
        let fields = fields.collect::<PyResult<Vec<_>>>()?;
        PyTuple::new(py, fields)?.into_py_any(py)
    }

    fn value(&self, py: Python<'_>, value: &Value, sql_type: &SqlType) -> PyResult<Py<PyAny>> {
        let classes = Classes::of(py)?;
        match (value, sql_type) {
            (Value::Null, _) => Ok(py.None()),
            (value, SqlType::Rounded(of, _)) => self.value(py, value, of),
            (Value::Boolean(value), _) => value.into_py_any(py),
            (Value::SmallInt(value), _) => value.into_py_any(py),
            (Value::Int(value), _) => value.into_py_any(py),
            (Value::BigInt(micros), SqlType::Time) => self.time(py, value, *micros),
            (Value::BigInt(value), SqlType::BigInt | SqlType::Oid) => value.into_py_any(py),
            (Value::Double(value), _) => value.into_py_any(py),
            (Value::Numeric(number), _) => classes.decimal.call1(py, (sql_type.shown(*number).to_string(),)),
            (Value::Bytea(bytes), SqlType::Bytea) => PyBytes::new(py, bytes).into_py_any(py),
            (Value::Bytea(bytes), SqlType::Uuid) => {
                let given = PyDict::new(py);
                given.set_item("bytes", PyBytes::new(py, bytes))?;
                classes.uuid.call(py, (), Some(&given))
            }
            (Value::Bytea(bytes), SqlType::Inet | SqlType::Cidr) => {
                let network = Network::of_bytes(bytes).filter(|host| host.bits == host.width());
                let class = match (network, sql_type) {
                    (_, SqlType::Cidr) => &classes.ip_network,
                    (Some(_), _) => &classes.ip_address,
                    (None, _) => &classes.ip_interface,
                };
                class.call1(py, (text_format::text(value, sql_type, self.style),))
            }
            (Value::Date(days), _) => self.date(py, value, *days),
            (Value::Timestamp(micros), SqlType::TimestampTz) => self.moment_with_zone(py, value, *micros),
            (Value::Timestamp(micros), _) => self.moment(py, (value, sql_type), &classes.epoch, *micros),
            (Value::Text(text), SqlType::Json | SqlType::JsonB) => classes.read_json.call1(py, (text,)),
            (value, SqlType::Interval) => interval(py, Interval::of_value(value).unwrap_or_default()),
            (Value::Text(text), SqlType::Array(element)) => {
                let elements = array_literal::elements(text).map_err(|error| raised(py, &error))?;
                let elements = elements.iter().map(|element_text| match element_text {
                    None => Ok(py.None()),
                    Some(text) => {
                        let read = text_format::read(text, element, self.style, Fit::Literal);
                        self.value(py, &read.map_err(|error| raised(py, &error))?, element)
                    }
                });
                PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_py_any(py)
            }
            (Value::List(rows), SqlType::Array(element)) => {
                let elements = rows.iter().map(|row| match row.first() {
                    None => Ok(py.None()),
                    Some(value) => self.value(py, value, element),
                });
                PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_py_any(py)
            }
            (value, sql_type) => text_format::text(value, sql_type, self.style).into_py_any(py),
        }
    }

    fn date(&self, py: Python<'_>, value: &Value, days: i32) -> PyResult<Py<PyAny>> {
        let ordinal = days.checked_add(EPOCH_ORDINAL);
        let date = ordinal.map(|ordinal| Classes::of(py)?.date_of_ordinal.call1(py, (ordinal,)));
        date.and_then(Result::ok).map_or_else(|| Err(self.beyond(py, value, &SqlType::Date)), Ok)
    }

    fn time(&self, py: Python<'_>, value: &Value, micros: i64) -> PyResult<Py<PyAny>> {
        let seconds = micros / SECOND;
        let parts = (seconds / 3600, seconds / 60 % 60, seconds % 60, micros % SECOND);
        // There is no 24:00 in Python.
        Classes::of(py)?.time.call1(py, parts).map_err(|_| self.beyond(py, value, &SqlType::Time))
    }

    fn moment(
        &self,
        py: Python<'_>,
        (value, sql_type): (&Value, &SqlType),
        epoch: &Py<PyAny>,
        micros: i64,
    ) -> PyResult<Py<PyAny>> {
        let passed =
            Classes::of(py)?.timedelta.call1(py, (micros.div_euclid(DAY), 0, micros.rem_euclid(DAY)));
        let moment = passed.and_then(|passed| epoch.call_method1(py, "__add__", (passed,)));
        moment.map_err(|_| self.beyond(py, value, sql_type))
    }

    /// A moment with the session's offset from UTC.
    fn moment_with_zone(&self, py: Python<'_>, value: &Value, micros: i64) -> PyResult<Py<PyAny>> {
        let classes = Classes::of(py)?;
        let moment = self.moment(py, (value, &SqlType::TimestampTz), &classes.epoch_utc, micros)?;
        let offset = match self.style.is_utc() {
            true => 0,
            false => (self.style.local(micros) - micros) / SECOND,
        };
        if offset == 0 {
            return Ok(moment);
        }
        let zone = classes.timezone.call1(py, (classes.timedelta.call1(py, (0, offset))?,))?;
        let local = moment.call_method1(py, "astimezone", (zone,));
        local.map_err(|_| self.beyond(py, value, &SqlType::TimestampTz))
    }

    /// That Python has no such value.
    fn beyond(&self, py: Python<'_>, value: &Value, sql_type: &SqlType) -> PyErr {
        let text = text_format::text(value, sql_type, self.style).unwrap_or_default();
        let message = format!("{sql_type} {text} is none of Python's: cast it to text in the statement");
        let made = Classes::of(py).and_then(|classes| classes.data_error.call1(py, (message,)));
        made.map_or_else(|failure| failure, |error| PyErr::from_value(error.into_bound(py)))
    }
}

/// Months have 30 days, years 365, as in psycopg.
fn interval(py: Python<'_>, interval: Interval) -> PyResult<Py<PyAny>> {
    let (seconds, micros) = (interval.micros.div_euclid(SECOND), interval.micros.rem_euclid(SECOND));
    Classes::of(py)?.timedelta.call1(py, (interval.timedelta_days(), seconds, micros))
}
