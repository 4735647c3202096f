//! Values in statements: written out, or sent as parameters.

use super::value_type::ValueType;

/// A value of a type, as text; `None` is null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Literal {
    of: ValueType,
    value: Option<String>,
    /// Whether the text says no type, as people write it; it is one of a string or null then.
    is_bare: bool,
}

impl Literal {
    pub fn new(of: ValueType, value: Option<&str>) -> Literal {
        Literal { of, value: value.map(str::to_string), is_bare: false }
    }

    /// One whose type the statement has to find out.
    pub fn bare(of: ValueType, value: Option<&str>) -> Literal {
        Literal { is_bare: true, ..Literal::new(of, value) }
    }

    pub fn of(&self) -> ValueType {
        self.of
    }

    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// Whether its type is known, so that a parameter means the same. A parameter of `char(n)` is `text` (`known.rs`).
    pub fn can_be_parameter(&self) -> bool {
        !self.is_bare && !matches!(self.of, ValueType::Char | ValueType::Mood)
    }

    /// How it is written.
    pub fn sql(&self) -> String {
        let Some(value) = &self.value else {
            return if self.is_bare { "NULL".into() } else { format!("NULL::{}", self.of.name()) };
        };
        match self.of {
            ValueType::Int if value.starts_with('-') => format!("({value})"),
            ValueType::Int | ValueType::Boolean => value.clone(),
            ValueType::BigInt if value.len() > 9 => value.clone(),
            _ if self.is_bare => quoted(value),
            ValueType::Numeric if value.contains('.') && !value.starts_with('-') => value.clone(),
            of if of.is_number() && value.starts_with('-') => format!("({value})::{}", of.name()),
            of if of.is_number() => format!("{value}::{}", of.name()),
            of => format!("{}::{}", quoted(value), of.name()),
        }
    }
}

/// A string as SQL writes it.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
