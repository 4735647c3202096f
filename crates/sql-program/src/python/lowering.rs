//! What is known of a function while it is lowered: its variables, rows, and names that have a value.

use super::class::Class;
use super::value::Refusal;
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_sql_meaning::catalog::{self, Catalog, Oid, Table};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_syntax::plpgsql::tree::{Expression as Written, Path, Statement as Done};
use fabius_sql_syntax::python::reading::{placed, refused};
use fabius_sql_syntax::python::tree::Function;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::Expr;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The SQLSTATE of a row that is not there.
pub const NO_DATA: &str = "P0002";

/// What the variable of a name is called in SQL, where no column is called so.
pub fn variable(name: &str) -> String {
    format!("py {name}")
}

pub fn key_variable(row: &str, at: usize) -> String {
    format!("py {row} key {}", at + 1)
}

/// What says whether a row that was asked for is there.
pub fn found_variable(row: &str) -> String {
    format!("py {row} found")
}

pub fn column_variable(row: &str, column: &str) -> String {
    format!("py {row}.{column}")
}

/// A name that is a row.
#[derive(Clone)]
pub struct Row {
    pub table: Arc<Table>,
    /// The columns that something asks for.
    pub wanted: Vec<String>,
    /// Whether it was asked for by `get`, so that it may be `None`.
    pub is_optional: bool,
}

/// A column of what a statement of SQL gives.
#[derive(Clone, PartialEq)]
pub struct Field {
    pub column: String,
    /// The type of the variable that has it.
    pub held: SqlType,
    pub may_be_null: bool,
}

impl Row {
    pub fn key(&self) -> &[String] {
        self.table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default()
    }

    /// The type of the variable that has a column of the key: what is asked for is not rounded or cut.
    pub fn key_type(&self, column: &str) -> SqlType {
        match self.sql_type(column) {
            SqlType::Numeric(_) => SqlType::Numeric(None),
            SqlType::Real => SqlType::Double,
            SqlType::VarChar(_) => SqlType::VarChar(None),
            SqlType::Char(_) => type_rules::ANY_CHAR,
            other => other,
        }
    }

    pub fn sql_type(&self, column: &str) -> SqlType {
        self.table.column(column).map_or(SqlType::Text, |column| column.sql_type.of_values())
    }
}

/// Says which places of what a program gives may be `None`.
pub type NullableResults<'f> = dyn Fn(&catalog::Function) -> Result<BTreeSet<usize>> + 'f;

pub struct Lowering<'f> {
    pub source: &'f Source,
    pub function: &'f Function,
    pub catalog: &'f Catalog,
    /// What it gives: `void`, a value, or several.
    pub returns: &'f [SqlType],
    /// The types of globals that it gives behind that.
    pub given_back: &'f [SqlType],
    pub variables: BTreeMap<String, Class>,
    pub rows: BTreeMap<String, Row>,
    /// Names that are what a statement of SQL gives.
    pub results: BTreeMap<String, Vec<Field>>,
    /// Names that have a value, whichever way control has come.
    pub assigned: BTreeSet<String>,
    /// Classes of variables, as far as the function has been seen before.
    pub known: BTreeMap<String, Class>,
    /// Whether what is not known by now never will be.
    pub is_last: bool,
    /// Names, and columns of rows (`row.column`), that are not `None` here though they may be elsewhere.
    pub present: BTreeSet<String>,
    /// Variables that may be `None`.
    pub nullable: BTreeSet<String>,
    /// Places in the keys of tables where something that may be `None` is asked for.
    pub nullable_keys: BTreeSet<(Oid, usize)>,
    /// Places of what it gives that may be `None`, whatever its annotations say.
    pub nullable_results: BTreeSet<usize>,
    /// Such places of programs that it calls, as far as they were asked for.
    pub programs: BTreeMap<String, BTreeSet<usize>>,
    /// What says it of a program.
    pub nullable_results_of: &'f NullableResults<'f>,
    /// What is asked for of names, wherever it is.
    pub wanted: BTreeMap<String, BTreeSet<String>>,
    /// Whether more was asked for than was known when the rows were read.
    pub wants_more: bool,
    pub loops: usize,
    /// What is tested before the statement that is being lowered.
    pub tests: Vec<Done>,
    /// How many conditions decide whether what is being lowered is computed.
    pub conditions: usize,
    /// How many `try` there are so far.
    pub tries: usize,
    /// The handlers that this is in, the innermost last.
    pub handling: Vec<Handling>,
}

/// What a handler is for.
pub struct Handling {
    pub classes: Vec<String>,
    /// The variables of the message, the class and the detail.
    pub caught: [String; 3],
}

/// A row that a statement is about.
pub struct Place {
    pub table: Arc<Table>,
    pub key: Vec<Expr>,
    /// The name that it has.
    pub name: Option<String>,
}

impl Lowering<'_> {
    pub fn refused<T>(&self, span: Span, what: &str, instead: &str) -> Result<T> {
        Err(refused(self.source, span, what, instead))
    }

    pub fn accepted<T>(&self, span: Span, done: std::result::Result<T, Refusal>) -> Result<T> {
        done.map_err(|(what, instead)| refused(self.source, span, &what, &instead))
    }

    /// An error of the function itself, at its place.
    pub fn wrong<T>(&self, span: Span, state: &[u8; 5], message: &str) -> Result<T> {
        Err(placed(Error::new(SqlState(*state), message), self.source, span))
    }

    /// What the function says somewhere.
    pub fn text_of(&self, span: Span) -> &str {
        self.source.text.get(span.start as usize..span.end as usize).unwrap_or("a value")
    }

    /// The line of the function where something stands, from 1.
    pub fn line(&self, span: Span) -> u32 {
        self.source.place(span.start).0
    }

    pub fn written(&self, tree: Expr, span: Span) -> Written {
        Written { tree, span }
    }

    pub fn path(&self, name: String, span: Span) -> Path {
        Path { parts: vec![name], span }
    }
}
