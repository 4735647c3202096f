//! How much of each key that a program names is known before a call runs.
//!
//! A step that names rows names them by a key: a row by its primary key, a new row by the columns of every index, a
//! range by the equal leading columns of one index. Of each key the *prefix* is known: as many leading columns as are
//! functions of a call's arguments ([`ArgumentTuple`]). Whoever locks, schedules or divides before calls run goes by
//! prefixes (Calvin, section 3.2; LADS, section 3.1; H-Store's single-partition calls).
//!
//! ```text
//! insert orders { w: w, id: districts[w].next, .. }      orders[w, ?]          prefix (w) of two columns
//! for o in orders by day[today] { .. }                   orders by day[today]  prefix (today) of one column,
//!                                                        orders[?, ?]          and none of the primary key's two
//! ```

use crate::argument_tuple::{ArgumentTuple, TuplePlanner};
use crate::catalog::Catalog;
use crate::ir::{Expression, Program, RowId, Scan, StepId, StepKind};
use crate::slice::outline::Outline;
use fabius_value::{ColumnId, IndexId, TableId, TableSchema};

/// How rows are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AccessKind {
    /// One row by its whole primary key.
    Row,
    /// A new row.
    Insert,
    /// A range of an index.
    Range,
}

/// A key, and how much of it is known.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownKey {
    /// Columns of this index in its order, of the primary key if `None`.
    pub index: Option<IndexId>,
    /// How many leading columns are named.
    pub columns: usize,
    /// Those of them that are functions of a call's arguments, as far as they are the first.
    pub prefix: ArgumentTuple,
}

impl KnownKey {
    /// Whether all that is named is known.
    pub fn is_whole(&self) -> bool {
        self.prefix.len() == self.columns
    }
}

/// The rows that one step names.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedRows {
    /// The `Locate`, `Insert` or `ForScan`.
    pub step: StepId,
    /// The handle that it sets.
    pub row: RowId,
    /// The table.
    pub table: TableId,
    /// How rows are named.
    pub kind: AccessKind,
    /// Whether the program updates or deletes them, unless a filter has dropped them.
    pub is_written: bool,
    /// Whether a filter drops some of them.
    pub is_filtered: bool,
    /// The primary key, as far as it is named; then, of a new row, every index, of a range that of its index if it has
    /// one.
    pub keys: Vec<KnownKey>,
}

impl NamedRows {
    /// The known leading columns of the primary key.
    pub fn prefix(&self) -> &ArgumentTuple {
        &self.keys[0].prefix
    }

    /// The key by which a range is found, or a row.
    pub fn found_by(&self) -> &KnownKey {
        match self.kind {
            AccessKind::Range => self.keys.last().expect("there is the primary key's"),
            AccessKind::Row | AccessKind::Insert => &self.keys[0],
        }
    }
}

/// The rows that each step of a program names, in the order of the text.
pub fn named_rows(program: &Program, catalog: &Catalog) -> Vec<NamedRows> {
    named_rows_of(&Outline::of(program), catalog)
}

pub(crate) fn named_rows_of(outline: &Outline<'_>, catalog: &Catalog) -> Vec<NamedRows> {
    let planner = TuplePlanner::new(outline.program, outline);
    let mut is_written = vec![false; outline.program.rows.len()];
    for &step in &outline.order {
        if let StepKind::Update { row, .. } | StepKind::Delete { row } = &outline.at(step).step.kind {
            is_written[usize::from(row.0)] = true;
        }
    }
    let named = outline.order.iter().filter_map(|&step| {
        let (row, kind) = match &outline.at(step).step.kind {
            StepKind::Locate { row, .. } => (*row, AccessKind::Row),
            StepKind::Insert { row, .. } => (*row, AccessKind::Insert),
            StepKind::ForScan { row, .. } => (*row, AccessKind::Range),
            _ => return None,
        };
        let table = outline.table(row);
        let kind_of_step = &outline.at(step).step.kind;
        let is_filtered =
            matches!(kind_of_step, StepKind::ForScan { scan: Scan { filter: Some(_), .. }, .. });
        let keys = keys(kind_of_step, catalog.table(table), &planner);
        let is_written = is_written[usize::from(row.0)];
        Some(NamedRows { step, row, table, kind, is_written, is_filtered, keys })
    });
    named.collect()
}

fn keys(step: &StepKind, schema: &TableSchema, planner: &TuplePlanner<'_>) -> Vec<KnownKey> {
    let known = |index, values: &mut dyn Iterator<Item = Option<&Expression>>, columns| KnownKey {
        index,
        columns,
        prefix: planner.leading(values),
    };
    match step {
        StepKind::Locate { key, .. } => vec![known(None, &mut key.iter().map(Some), key.len())],
        StepKind::Insert { values, .. } => {
            let of = |index, columns: &[ColumnId]| {
                let mut values = columns.iter().map(|column| Some(&values[usize::from(column.0)]));
                known(index, &mut values, columns.len())
            };
            let secondary = schema.indexes.iter().enumerate();
            std::iter::once(of(None, &schema.primary_key))
                .chain(secondary.map(|(at, index)| of(Some(IndexId(at as u16)), &index.columns)))
                .collect()
        }
        StepKind::ForScan { scan, .. } => {
            let found_by = known(scan.index, &mut scan.equal.iter().map(Some), scan.equal.len());
            let Some(index) = scan.index else { return vec![found_by] };
            let columns = &schema.indexes[usize::from(index.0)].columns;
            let equal = |column: &ColumnId| {
                columns.iter().zip(&scan.equal).find(|(own, _)| *own == column).map(|(_, value)| value)
            };
            let primary = &schema.primary_key;
            vec![known(None, &mut primary.iter().map(equal), primary.len()), found_by]
        }
        other => unreachable!("{other:?} names no row"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;

    /// How many columns of each primary key are known.
    fn known(body: &str) -> Vec<usize> {
        let text = format!(
            "table t {{ a: int, b: int, c: int, d: int, primary key (a, b), index by_c (c, a) }}
            procedure p(x: int, l: list of (k: int, v: int), y: int) {{ {body} }}"
        );
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("it verifies");
        let (_, program) = catalog.procedures().next().expect("a procedure");
        named_rows(program, &catalog).iter().map(|named| named.prefix().len()).collect()
    }

    /// Goal: a prefix is what can be computed for every turn of every loop, and no more.
    #[test]
    fn prefixes_are_no_longer_than_what_is_known() {
        assert_eq!(known("t[x, y].c = 1"), [2]);
        assert_eq!(known("t[x, t[x, y].c].c = 1"), [2, 1]);
        assert_eq!(known("for e in l { t[e.k, e.v].c = x }"), [2]);
        assert_eq!(known("for e in l { t[x, e.v].c = x }"), [2]);
        assert_eq!(known("for e in l { t[e.k, y].c = x }"), [2]);
        // Two loops over one list are at different elements of it.
        assert_eq!(known("for e in l { for f in l { t[e.k, f.k].c = x } }"), [1]);
        assert_eq!(known("for r in t[x, 1 ..< 5] { r.c = 1 }"), [1]);
        assert_eq!(known("for r in t by by_c[y, x] { r.d = 1 }"), [1]);
        assert_eq!(known("for r in t by by_c[y] { r.d = 1 }"), [0]);
        assert_eq!(known("for n in 1 to 5 { insert t { a: n::int, b: x, c: 1, d: 1 } }"), [0]);
    }
}
