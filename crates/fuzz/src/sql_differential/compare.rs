//! Two answers to one statement: whether they are the same as far as the statement determines them.
//!
//! Rows are compared as multisets. Where rows are sorted, the values that they are sorted by come in the same
//! sequence; rows that are equal in these may come in any. Numbers of the types that are not exact, and `numeric`
//! beyond ten digits, are compared with a tolerance, and `numeric` without the zeros at its end.

use super::session::{Answer, Shown};

/// Where the numbers of types begin that are defined: each database numbers its own.
const FIRST_DEFINED: u32 = 16_384;

/// What differs; the same again while a statement is shrunk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Difference {
    /// The connection was closed.
    Lost,
    /// No answer in time.
    Hangs,
    /// One is refused, or both are, but not with the same SQLSTATE. `00000` is success.
    State { expected: String, got: String },
    /// Other columns.
    Columns,
    /// The names of columns.
    Names,
    /// The types of columns, by their numbers in `pg_type`.
    Types { expected: u32, got: u32 },
    /// The tag of the command, which has the number of rows.
    Tag,
    /// Rows.
    Rows,
    /// The number of rows.
    RowCount,
    /// The sequence of rows.
    Order,
    /// The rows of a table after a statement that has changed it.
    Table,
    /// What the database says of itself in two ways (`self_check.rs`).
    Itself(&'static str),
}

impl std::fmt::Display for Difference {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Difference::Lost => write!(to, "connection lost"),
            Difference::Hangs => write!(to, "no answer"),
            Difference::State { expected, got } => write!(to, "SQLSTATE {expected} expected, {got} got"),
            Difference::Columns => write!(to, "number of columns"),
            Difference::Names => write!(to, "names of columns"),
            Difference::Types { expected, got } => write!(to, "type {expected} expected, {got} got"),
            Difference::Tag => write!(to, "command tag"),
            Difference::Rows => write!(to, "rows"),
            Difference::RowCount => write!(to, "number of rows"),
            Difference::Order => write!(to, "order of rows"),
            Difference::Table => write!(to, "rows of the table afterwards"),
            Difference::Itself(what) => write!(to, "{what}"),
        }
    }
}

/// What of the rows a statement determines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Determined {
    /// The columns that rows are sorted by, the first first.
    pub keys: Vec<usize>,
    /// Whether it is only these, because `LIMIT` may take one or another of rows that are equal in them.
    pub keys_only: bool,
}

/// What differs in the answers to a statement, perhaps with a subquery, if anything does.
pub fn difference(
    expected: &Answer,
    got: &Answer,
    determined: &Determined,
    has_subquery: bool,
) -> Option<Difference> {
    let state = |answer: &Answer| answer.state().unwrap_or("00000").to_string();
    match (expected, got) {
        (_, Answer::Lost) => Some(Difference::Lost),
        (_, Answer::Hangs) => Some(Difference::Hangs),
        (Answer::Done(expected), Answer::Done(got)) => difference_of_rows(expected, got, determined),
        // A subquery of several rows is no fault where nobody needs its value.
        (Answer::Refused { state, .. }, Answer::Done(_)) if state == "21000" => None,
        // A merged column of `JOIN ... USING` is the key that it is within a subquery too (`known.rs`).
        (Answer::Refused { state, message }, Answer::Done(_))
            if state == "42803" && message.starts_with("arguments to GROUPING") && has_subquery =>
        {
            None
        }
        // PostgreSQL computes constants beforehand, also for a statement that has no row to compute them for.
        (Answer::Refused { state, .. }, Answer::Done(got))
            if state.starts_with("22") && got.is_of_nothing() =>
        {
            None
        }
        // Fabius computes subqueries that stand by themselves beforehand, also where no row asks for them.
        (Answer::Done(expected), Answer::Refused { state, .. })
            if state.starts_with("22") && has_subquery && expected.is_of_nothing() =>
        {
            None
        }
        (expected, got) if is_same_state(&state(expected), &state(got)) => None,
        (expected, got) => Some(Difference::State { expected: state(expected), got: state(got) }),
    }
}

/// Whether refusals with these SQLSTATEs are the same.
fn is_same_state(expected: &str, got: &str) -> bool {
    // Which of several constraints is named is not determined. PostgreSQL refuses a second change of a row (21000) at
    // once, Fabius when the statement ends.
    let is_violation = |state: &str| state.starts_with("23") || state == "21000";
    // PostgreSQL has checked a row before it computes the next one.
    let is_later_row = is_violation(expected) && got.starts_with("22");
    (is_violation(expected) && is_violation(got)) || is_later_row || (expected == got && got != "XX000")
}

fn difference_of_rows(expected: &Shown, got: &Shown, determined: &Determined) -> Option<Difference> {
    if expected.columns.len() != got.columns.len() {
        return Some(Difference::Columns);
    }
    for (expected, got) in expected.columns.iter().zip(&got.columns) {
        let is_defined = |oid: u32| oid >= FIRST_DEFINED;
        let are_defined = is_defined(expected.oid) && is_defined(got.oid);
        if expected.oid != got.oid && !are_defined {
            return Some(Difference::Types { expected: expected.oid, got: got.oid });
        }
    }
    if expected.columns.iter().zip(&got.columns).any(|(expected, got)| expected.name != got.name) {
        return Some(Difference::Names);
    }
    if expected.rows.len() != got.rows.len() {
        return Some(Difference::RowCount);
    }
    let (expected_rows, got_rows) = (Row::all(expected), Row::all(got));
    if !determined.keys_only && !same_rows(&expected_rows, &got_rows) {
        return Some(Difference::Rows);
    }
    let same_keys = |(expected, got): (&Row, &Row)| {
        let mut keys = determined.keys.iter().filter(|key| **key < expected.0.len());
        keys.all(|key| expected.0[*key].is_same(&got.0[*key]))
    };
    if !expected_rows.iter().zip(&got_rows).all(same_keys) {
        return Some(Difference::Order);
    }
    if expected.tag != got.tag {
        return Some(Difference::Tag);
    }
    None
}

/// Whether all rows of one answer are among those of another.
pub fn is_part(part: &Shown, whole: &Shown) -> bool {
    let mut rest = Row::all(whole);
    Row::all(part).iter().all(|row| {
        let place = rest.iter().position(|other| row.is_same(other));
        place.map(|place| rest.swap_remove(place)).is_some()
    })
}

/// Whether two answers have the same rows in any order.
pub fn are_same_rows(one: &Shown, other: &Shown) -> bool {
    same_rows(&Row::all(one), &Row::all(other))
}

fn same_rows(one: &[Row], other: &[Row]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    let sorted = |rows: &[Row]| {
        let mut rows = rows.to_vec();
        rows.sort_by(|a, b| a.0.iter().map(|cell| &cell.text).cmp(b.0.iter().map(|cell| &cell.text)));
        rows
    };
    let (one, mut other) = (sorted(one), sorted(other));
    if one.iter().zip(&other).all(|(one, other)| one.is_same(other)) {
        return true;
    }
    // Numbers that are nearly the same may have been sorted differently.
    one.iter().all(|row| {
        let place = other.iter().position(|other| row.is_same(other));
        place.map(|place| other.swap_remove(place)).is_some()
    })
}

#[derive(Clone, Debug)]
struct Row(Vec<Cell>);

/// A value: its text, and of numbers what is compared with a tolerance.
#[derive(Clone, Debug)]
struct Cell {
    text: Option<String>,
    number: Option<f64>,
}

impl Row {
    fn all(shown: &Shown) -> Vec<Row> {
        let row = |row: &Vec<Option<String>>| {
            Row(row
                .iter()
                .zip(&shown.columns)
                .map(|(cell, column)| Cell::new(cell.as_deref(), column.oid))
                .collect())
        };
        shown.rows.iter().map(row).collect()
    }

    fn is_same(&self, other: &Row) -> bool {
        self.0.len() == other.0.len() && self.0.iter().zip(&other.0).all(|(one, other)| one.is_same(other))
    }
}

impl Cell {
    fn new(text: Option<&str>, oid: u32) -> Cell {
        const NUMERIC: u32 = 1700;
        match (text, oid) {
            (Some(text), NUMERIC | 700 | 701) => {
                let number = text.parse::<f64>().ok();
                let mut text = text;
                if oid == NUMERIC && text.contains('.') {
                    text = text.trim_end_matches('0').trim_end_matches('.');
                }
                let text = if matches!(text, "-0" | "") { "0" } else { text };
                Cell { text: Some(text.to_string()), number }
            }
            _ => Cell { text: text.map(str::to_string), number: None },
        }
    }

    fn is_same(&self, other: &Cell) -> bool {
        const TOLERANCE: f64 = 1e-8;
        match (self.number, other.number) {
            _ if self.text == other.text => true,
            (Some(one), Some(other)) => (one - other).abs() <= TOLERANCE * one.abs().max(1.0),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::session::Column;
    use super::*;

    fn shown(oid: u32, cells: &[&str]) -> Answer {
        let columns = vec![Column { name: "c".into(), oid, is_binary: false }];
        let rows = cells.iter().map(|cell| vec![Some((*cell).to_string())]).collect();
        Answer::Done(Shown { columns, rows, tag: format!("SELECT {}", cells.len()) })
    }

    /// Goal: rows are compared in the order that is determined and as exactly as their type is.
    #[test]
    fn answers_are_compared() {
        let difference = |expected: &Answer, got: &Answer, determined: &Determined| {
            super::difference(expected, got, determined, false)
        };
        let any = Determined::default();
        let sorted = Determined { keys: vec![0], keys_only: false };
        let (one, other) = (shown(23, &["1", "2"]), shown(23, &["2", "1"]));
        assert_eq!(difference(&one, &other, &any), None);
        assert_eq!(difference(&one, &other, &sorted), Some(Difference::Order));
        assert_eq!(difference(&one, &shown(23, &["1", "1"]), &any), Some(Difference::Rows));
        assert_eq!(difference(&one, &shown(23, &["1"]), &any), Some(Difference::RowCount));
        assert_eq!(difference(&shown(1700, &["1.50"]), &shown(1700, &["1.5"]), &any), None);
        let refused = |state: &str| Answer::Refused { state: state.into(), message: String::new() };
        assert_eq!(difference(&refused("22003"), &shown(23, &[]), &any), None);
        assert_eq!(super::difference(&shown(23, &[]), &refused("22003"), &any, true), None);
        assert!(super::difference(&shown(23, &["1"]), &refused("22003"), &any, true).is_some());
        for (expected, got) in [
            (refused("22003"), shown(23, &["1"])),
            (refused("42883"), shown(23, &[])),
            (shown(23, &[]), refused("22003")),
        ] {
            assert!(matches!(difference(&expected, &got, &any), Some(Difference::State { .. })));
        }
        assert_eq!(difference(&shown(701, &["0.3"]), &shown(701, &["0.30000000000000004"]), &any), None);
        let types = Some(Difference::Types { expected: 23, got: 20 });
        assert_eq!(difference(&shown(23, &["1"]), &shown(20, &["1"]), &any), types);
        let refused = |state: &str| Answer::Refused { state: state.into(), message: String::new() };
        assert_eq!(difference(&refused("22012"), &refused("22012"), &any), None);
        assert!(difference(&refused("XX000"), &refused("XX000"), &any).is_some());
        assert_eq!(difference(&refused("23502"), &refused("23505"), &any), None);
        assert_eq!(difference(&refused("21000"), &refused("23505"), &any), None);
        assert_eq!(difference(&refused("23502"), &refused("22012"), &any), None);
        assert_eq!(difference(&refused("23505"), &refused("21000"), &any), None);
        assert!(difference(&refused("22012"), &refused("21000"), &any).is_some());
        assert_eq!(difference(&refused("21000"), &one, &any), None);
    }
}
