//! What a generated text can mention at some point.

use fabius_value::data_type::Family;
use fabius_value::{DataType, TableId};

/// The kinds of values that generated programs compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Boolean,
    Integer,
    Numeric,
    Double,
    Text,
    Bytes,
    Date,
    Timestamp,
}

impl Kind {
    /// Those that expressions are mostly of.
    pub const USUAL: &[Kind] = &[
        Kind::Integer,
        Kind::Integer,
        Kind::Integer,
        Kind::Numeric,
        Kind::Numeric,
        Kind::Numeric,
        Kind::Text,
        Kind::Bytes,
        Kind::Double,
        Kind::Date,
        Kind::Timestamp,
    ];

    /// The kind of a type.
    pub fn of(data_type: DataType) -> Kind {
        match data_type.family() {
            Family::Boolean => Kind::Boolean,
            Family::Integer => Kind::Integer,
            Family::Numeric => Kind::Numeric,
            Family::Double => Kind::Double,
            Family::Text => Kind::Text,
            Family::Date => Kind::Date,
            Family::Bytea => Kind::Bytes,
            Family::Timestamp => Kind::Timestamp,
        }
    }

    /// A type that declares it.
    pub fn type_name(self) -> &'static str {
        match self {
            Kind::Boolean => "boolean",
            Kind::Integer => "bigint",
            Kind::Numeric => "numeric(38, 8)",
            Kind::Double => "double precision",
            Kind::Text => "text",
            Kind::Bytes => "bytea",
            Kind::Date => "date",
            Kind::Timestamp => "timestamp",
        }
    }
}

/// A text and whether its value can be null.
#[derive(Clone, Debug)]
pub(super) struct Term {
    pub text: String,
    pub nullable: bool,
}

/// A scalar: a variable, or a field of the element that a loop is at.
#[derive(Clone, Debug)]
pub(super) struct Scalar {
    pub name: String,
    pub kind: Kind,
    pub nullable: bool,
    pub mutable: bool,
    /// Whether its values are keys, mostly.
    pub key: bool,
}

/// A list: its fields by name (one without a name for plain values).
#[derive(Clone, Debug)]
pub(super) struct List {
    pub name: String,
    pub fields: Vec<(String, Kind, bool)>,
    pub mutable: bool,
}

/// Names in scope; blocks take them away again.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    pub scalars: Vec<Scalar>,
    pub lists: Vec<List>,
    /// Rows of loops over tables.
    pub rows: Vec<(String, TableId)>,
}
