//! A statement as a program, with where its arguments come from.

use crate::bind::Recipe;
use fabius_program::syntax::Source;
use fabius_program::syntax::tree::{Definition, ProcedureDefinition, Statement, StatementKind};
use fabius_sql_meaning::catalog::ObjectName;
use fabius_sql_meaning::output::{OutputColumn, RowLock};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{SqlState, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a parameter of the program gets its value.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// The statement's own parameter, from 0 for `$1`.
    Parameter(usize),
    /// A value that the text says: taken out, so that statements that differ in it only are one program.
    Constant(Value),
    /// The value of a literal that has no say in the program: of [`Lowered::literals`].
    Literal(usize),
    /// When the transaction began, in microseconds, UTC.
    TransactionTime,
    /// The next value of a sequence; one for each time that the statement runs.
    NextValue(ObjectName),
    /// A fresh random number in [0, 1).
    Random,
    /// A fresh random UUID.
    RandomUuid,
    /// A fresh random `bigint`, from which the program draws.
    Seed,
    /// What an expression of the catalog, as SQL, gives where queries compute it; as a value of a type.
    Computed(Arc<str>, SqlType),
    /// Two in a row: the first number of one of [`Lowered::reserves`], and how many there are.
    Reserved,
    /// Rows of values, computed before the program runs: one element per row, one argument per field.
    Rows(Vec<Vec<Argument>>),
    /// A set of rows, computed before the program runs: rows with a null are left out, none is there twice, and they
    /// ascend.
    Set(Vec<Vec<Argument>>),
    /// The elements of the statement's array parameter, from 0 for `$1`, as such a set of rows of one field.
    Elements(usize),
}

/// Numbers of a sequence that a program takes as it goes, in a row. It returns how many it took; if there are too
/// few, it aborts with [`Reserve::SHORT`], and its place among the reserves as the message.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserve {
    /// The sequence.
    pub sequence: ObjectName,
    /// Which parameter is the first number; the one behind it is how many there are.
    pub at: usize,
}

impl Reserve {
    /// What a program aborts with that needs more numbers than it was given.
    pub const SHORT: SqlState = SqlState(*b"FB001");
}

/// Where in a function a part of a program comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// How deep calls are nested there.
    pub depth: usize,
    /// What PostgreSQL says of it: `PL/pgSQL function f(integer) line 3 at RAISE`.
    pub words: Arc<str>,
    /// The SQL that runs there, if it is a statement of its own.
    pub sql: Option<Arc<str>>,
    /// The function's body, and the line of it, from 1; 0 if it is about none.
    pub at: (Arc<Source>, u32),
}

/// Where an error has arisen, in words: the frames of a place, one a line.
pub fn context(place: &[Frame]) -> String {
    let mut lines = Vec::new();
    for frame in place {
        lines.extend(frame.sql.as_ref().map(|sql| format!("SQL statement \"{sql}\"")));
        lines.push(frame.words.to_string());
    }
    lines.join("\n")
}

/// What a statement gives back.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Rows: the program's result 0 is the list of them.
    Rows(Vec<OutputColumn>),
    /// How many rows were affected: the program's result 0, a `bigint`.
    Count,
    /// `RETURNING`: result 0 is the count, result 1 the list of rows.
    CountAndRows(Vec<OutputColumn>),
    /// A function's value or record: the program's results are the columns of one row.
    OneRow(Vec<OutputColumn>),
}

/// What a statement does with the rows that it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fate {
    /// Inserted, or changed.
    New,
    /// Deleted, or what they were before a change.
    Gone,
    /// Deleted, and those that refer to them are to follow.
    Deleted,
    /// Their keys changed, and those that refer to them are to be changed too: the values before, then the new ones.
    Changed,
    /// Inserted, or changed, so that another row has the key of a unique constraint too.
    Shared,
}

/// A list of values that a program gives back: of columns that refer to a row that is not there, if they are of a new
/// row, or was there, if that is gone; of a unique constraint, if several rows have them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Doubtful {
    /// The table whose constraint it is.
    pub table: ObjectName,
    /// The constraint's name.
    pub constraint: String,
    /// What the statement did with the row.
    pub of: Fate,
    /// The program's variable.
    pub list: String,
}

/// A statement as a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Lowered {
    /// The program; its errors point into the statement's text.
    pub definition: ProcedureDefinition,
    /// One for each of the program's parameters.
    pub arguments: Vec<Argument>,
    /// How some of them come from literals of the text.
    pub literals: Vec<Recipe>,
    /// What it gives back.
    pub shape: Shape,
    /// The word of the command's tag: `SELECT`, `INSERT`, `UPDATE`, `DELETE`, `CALL`.
    pub tag: &'static str,
    /// Tables that it reads.
    pub reads: Vec<ObjectName>,
    /// Tables that it writes.
    pub writes: Vec<ObjectName>,
    /// Numbers that the program takes as it goes: for each, it returns how many, behind the results of the shape.
    pub reserves: Vec<Reserve>,
    /// Where in functions statements come from, the innermost first: where the span of a statement begins is the
    /// number of its place, from 1; 0 for what is not from a function.
    pub places: Vec<Vec<Frame>>,
    /// The ways that it takes to tables, in words.
    pub paths: Vec<String>,
    /// `FOR UPDATE`, `FOR SHARE`: what it reads may not change until the transaction ends.
    pub row_lock: Option<RowLock>,
    /// Whether the program's last result, besides those of the shape, is a list of what `RAISE NOTICE` and its like
    /// said: `(severity: text, code: text, message: text, detail: text null, hint: text null)`.
    pub notices: bool,
    /// References that are checked when the transaction ends: for each, the program's last results have a list of the
    /// values of its columns that do not hold now.
    pub doubtful: Vec<Doubtful>,
}

impl Lowered {
    /// The body of the function that the statement calls, if all of its program comes from one.
    pub fn body(&self) -> Option<&Arc<Source>> {
        let mut used = Vec::new();
        starts(&self.definition.body, &mut used);
        let place_of = |start: &u32| self.places.get((*start as usize).checked_sub(1)?)?.last();
        let frames = || used.iter().filter_map(place_of).map(|frame| &frame.at);
        let (first, _) = frames().find(|(_, line)| *line > 0)?;
        frames().all(|(body, _)| body == first).then_some(first)
    }
}

/// For lines of a program's text the places that its statements have in the tree that it was printed from, from 1.
pub fn places_of_lines(definition: &ProcedureDefinition) -> BTreeMap<u32, usize> {
    let read = fabius_program::syntax::parse(&definition.to_string(), "").unwrap_or_default();
    let [Definition::Procedure(printed)] = read.as_slice() else { return BTreeMap::new() };
    let (mut lines, mut places) = (Vec::new(), Vec::new());
    starts(&printed.body, &mut lines);
    starts(&definition.body, &mut places);
    if lines.len() != places.len() {
        return BTreeMap::new();
    }
    let lines = lines.into_iter().map(|start| printed.source.line(start));
    lines.zip(places.into_iter().map(|place| place as usize)).collect()
}

/// Where the spans of all statements begin, in their order.
fn starts(block: &[Statement], all: &mut Vec<u32>) {
    for statement in block {
        all.push(statement.span.start);
        match &statement.kind {
            StatementKind::If { arms, otherwise } => {
                arms.iter().for_each(|(_, then)| starts(then, all));
                otherwise.iter().for_each(|otherwise| starts(otherwise, all));
            }
            StatementKind::ForRange { body, .. } | StatementKind::ForEach { body, .. } => {
                starts(body, all);
            }
            _ => {}
        }
    }
}
