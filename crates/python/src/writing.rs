//! Python's values as parameters, with the types that psycopg gives them.

use super::classes::Classes;
use super::failure::{no_parameter, raised};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit, TextStyle};
use fabius_value::{Result, Value};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyByteArray, PyBytes, PyFloat, PyInt, PyList, PyMemoryView, PyString, PyTuple};

/// A parameter, with the type that it has by itself; text is of no type yet.
pub struct Parameter {
    pub sql_type: SqlType,
    given: Given,
}

enum Given {
    /// A value that need not be read where the statement wants this type.
    Ready(Value),
    /// The text of a value.
    Text(String),
    /// The elements of an array.
    Elements(Vec<Parameter>),
}

impl Parameter {
    fn ready(sql_type: SqlType, value: Value) -> Parameter {
        Parameter { sql_type, given: Given::Ready(value) }
    }

    fn text(sql_type: SqlType, text: String) -> Parameter {
        Parameter { sql_type, given: Given::Text(text) }
    }

    /// A value as a parameter.
    ///
    /// # Errors
    /// `ProgrammingError` for one of another class.
    pub fn of(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
        let py = value.py();
        if value.is_none() {
            return Ok(Parameter::ready(SqlType::Unknown, Value::Null));
        }
        let classes = Classes::of(py)?;
        let is = |class: &Py<PyAny>| value.is_instance(class.bind(py));
        // One of texts or numbers is that text or number.
        let is_plain = value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>();
        if is(&classes.enumeration)? && !is_plain {
            return Ok(Parameter::text(SqlType::Unknown, value.getattr("name")?.extract()?));
        }
        if value.is_instance_of::<PyBool>() {
            return Ok(Parameter::ready(SqlType::Boolean, Value::Boolean(value.extract()?)));
        }
        if value.is_instance_of::<PyInt>() {
            return whole(value);
        }
        if value.is_instance_of::<PyFloat>() {
            return Ok(Parameter::ready(SqlType::Double, Value::Double(value.extract()?)));
        }
        if value.is_instance_of::<PyString>() {
            return Ok(Parameter::text(SqlType::Unknown, value.extract()?));
        }
        if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
            return Ok(Parameter::ready(SqlType::Bytea, Value::Bytea(value.extract()?)));
        }
        if value.is_instance_of::<PyMemoryView>() {
            let bytes = value.call_method0("tobytes")?;
            return Ok(Parameter::ready(SqlType::Bytea, Value::Bytea(bytes.extract()?)));
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            return array(value);
        }
        if is(&classes.decimal)? {
            return Ok(Parameter::text(SqlType::Numeric(None), shown(value)?));
        }
        if is(&classes.uuid)? {
            return Ok(Parameter::text(SqlType::Uuid, shown(value)?));
        }
        for (class, sql_type) in [(&classes.addresses, SqlType::Inet), (&classes.networks, SqlType::Cidr)] {
            if is(class)? {
                return Ok(Parameter::text(sql_type, shown(value)?));
            }
        }
        if is(&classes.json)? {
            return Ok(Parameter::text(SqlType::Unknown, value.call_method0("dumps")?.extract()?));
        }
        match moment(value, classes)? {
            Some(parameter) => Ok(parameter),
            None => Err(raised(py, &no_parameter(value))),
        }
    }

    /// The value as one of the type that the statement wants.
    ///
    /// # Errors
    /// `22P02` and others for what does not read as that.
    pub fn value(self, wanted: &SqlType, style: &TextStyle) -> Result<Value> {
        let text = match self.given {
            Given::Ready(Value::Null) => return Ok(Value::Null),
            Given::Ready(value) if self.sql_type == *wanted => return Ok(value),
            Given::Ready(Value::Int(number)) if *wanted == SqlType::BigInt => {
                return Ok(Value::BigInt(number.into()));
            }
            Given::Ready(value) => text_format::text(&value, &self.sql_type, style).unwrap_or_default(),
            Given::Text(text) => text,
            Given::Elements(elements) => match wanted {
                SqlType::Array(of)
                    if matches!(**of, SqlType::Int | SqlType::BigInt | SqlType::Text)
                        && elements.iter().all(Parameter::is_single) =>
                {
                    let values = elements.into_iter().map(|element| Ok(vec![element.value(of, style)?]));
                    return Ok(Value::List(values.collect::<Result<_>>()?));
                }
                _ => array_text(elements),
            },
        };
        text_format::read(&text, wanted, style, Fit::Store)
    }

    /// Whether it is no array.
    fn is_single(&self) -> bool {
        !matches!(self.given, Given::Elements(_))
    }

    /// The text of an element, as an array's text has it.
    fn element(self) -> String {
        let text = match self.given {
            Given::Ready(Value::Null) => return "NULL".into(),
            Given::Ready(value) => {
                text_format::text(&value, &self.sql_type, &TextStyle::default()).unwrap_or_default()
            }
            Given::Text(text) => text,
            Given::Elements(elements) => return array_text(elements),
        };
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

fn shown(value: &Bound<'_, PyAny>) -> PyResult<String> {
    value.str()?.extract()
}

/// A whole number, in the smallest type from `integer` on that holds it.
fn whole(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    match value.extract::<i64>() {
        Ok(number) => Ok(match i32::try_from(number) {
            Ok(number) => Parameter::ready(SqlType::Int, Value::Int(number)),
            Err(_) => Parameter::ready(SqlType::BigInt, Value::BigInt(number)),
        }),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => {
            Ok(Parameter::text(SqlType::Numeric(None), shown(value)?))
        }
        Err(error) => Err(error),
    }
}

/// An array of what its first element that is there is; of texts if there is none.
fn array(value: &Bound<'_, PyAny>) -> PyResult<Parameter> {
    let mut of = SqlType::Unknown;
    let mut elements = Vec::new();
    for element in value.try_iter()? {
        let parameter = Parameter::of(&element?)?;
        of = match (of, &parameter.sql_type) {
            (SqlType::Unknown | SqlType::Int, wider) if !matches!(wider, SqlType::Unknown) => wider.clone(),
            (of, _) => of,
        };
        elements.push(parameter);
    }
    let sql_type = match of {
        SqlType::Unknown => SqlType::Unknown,
        of => SqlType::Array(Box::new(of)),
    };
    Ok(Parameter { sql_type, given: Given::Elements(elements) })
}

/// The text of an array.
fn array_text(elements: Vec<Parameter>) -> String {
    let texts: Vec<String> = elements.into_iter().map(Parameter::element).collect();
    format!("{{{}}}", texts.join(","))
}

/// A date, a time, a moment or a length of time.
fn moment(value: &Bound<'_, PyAny>, classes: &Classes) -> PyResult<Option<Parameter>> {
    let py = value.py();
    let is = |class: &Py<PyAny>| value.is_instance(class.bind(py));
    let iso = || value.call_method0("isoformat")?.extract::<String>();
    let has_zone = || Ok::<_, PyErr>(!value.getattr("tzinfo")?.is_none());
    // A datetime is a date too.
    if is(&classes.datetime)? {
        let sql_type = if has_zone()? { SqlType::TimestampTz } else { SqlType::Timestamp };
        return Ok(Some(Parameter::text(sql_type, iso()?)));
    }
    if is(&classes.date)? {
        return Ok(Some(Parameter::text(SqlType::Date, iso()?)));
    }
    if is(&classes.time)? && !has_zone()? {
        return Ok(Some(Parameter::text(SqlType::Time, iso()?)));
    }
    if is(&classes.timedelta)? {
        let part = |name: &str| value.getattr(name)?.extract::<i64>();
        let text = format!(
            "{} days {} seconds {} microseconds",
            part("days")?,
            part("seconds")?,
            part("microseconds")?
        );
        return Ok(Some(Parameter::text(SqlType::Interval, text)));
    }
    Ok(None)
}
