//! Classes of Python, and the types of SQL that have their values.

use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;

/// A class of Python, as far as operators tell classes apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Class {
    /// `None`
    None,
    /// `bool`
    Boolean,
    /// `int`, of 64 bits
    Whole,
    /// `float`
    Float,
    /// `Decimal`
    Decimal,
    /// `Decimal` with more digits than are kept, as a text: what a division gives until it is rounded.
    Quotient,
    /// `str`
    Text,
    /// `timedelta`, in microseconds.
    Span,
    /// `list` of one class.
    List(Box<Class>),
    /// What is not known before all of the function has been seen.
    Pending,
    /// Another type of SQL, which is only compared and handed on.
    Other(SqlType),
}

impl Class {
    /// The class of values of a type.
    pub fn of(sql_type: &SqlType) -> Class {
        match sql_type {
            SqlType::Boolean => Class::Boolean,
            other if type_rules::is_integer(other) => Class::Whole,
            SqlType::Oid => Class::Whole,
            SqlType::Double | SqlType::Real => Class::Float,
            SqlType::Numeric(_) => Class::Decimal,
            SqlType::Text | SqlType::VarChar(_) | SqlType::Char(_) | SqlType::Name => Class::Text,
            SqlType::Enumeration(_) => Class::Text,
            SqlType::Interval => Class::Span,
            other => Class::Other(other.of_values()),
        }
    }

    /// The class of parameters of a type, whose lists have no `None` in them.
    pub fn of_parameter(sql_type: &SqlType) -> Class {
        match sql_type {
            SqlType::Array(element) => Class::List(Box::new(Class::of(element))),
            other => Class::of(other),
        }
    }

    /// The class of times that are held as numbers of a class.
    pub fn spanned(self) -> Class {
        match self {
            Class::List(element) => Class::List(Box::new(element.spanned())),
            _ => Class::Span,
        }
    }

    /// Whether something of it is not known yet.
    pub fn is_pending(&self) -> bool {
        match self {
            Class::Pending => true,
            Class::List(element) => element.is_pending(),
            _ => false,
        }
    }

    /// The type of variables that hold it.
    pub fn sql_type(&self) -> SqlType {
        match self {
            Class::None | Class::Text | Class::Quotient | Class::Pending => SqlType::Text,
            Class::List(element) => SqlType::Array(Box::new(element.sql_type())),
            Class::Boolean => SqlType::Boolean,
            Class::Whole | Class::Span => SqlType::BigInt,
            Class::Float => SqlType::Double,
            Class::Decimal => SqlType::Numeric(None),
            Class::Other(sql_type) => sql_type.clone(),
        }
    }

    /// What Python calls it.
    pub fn name(&self) -> String {
        match self {
            Class::None => "None".into(),
            Class::Boolean => "bool".into(),
            Class::Whole => "int".into(),
            Class::Float => "float".into(),
            Class::Decimal | Class::Quotient => "Decimal".into(),
            Class::Text => "str".into(),
            Class::Span => "timedelta".into(),
            Class::List(element) => format!("list[{}]", element.name()),
            Class::Pending => "a value".into(),
            Class::Other(SqlType::TimestampTz) => "datetime".into(),
            Class::Other(SqlType::Bytea) => "bytes".into(),
            Class::Other(SqlType::Uuid) => "UUID".into(),
            Class::Other(SqlType::Time) => "time".into(),
            Class::Other(sql_type) => sql_type.to_string(),
        }
    }
}
