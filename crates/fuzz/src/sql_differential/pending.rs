//! What the short form of the comparison leaves out for now: features with a fault that is known and not yet mended.

/// A feature that statements may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// `NOT IN (SELECT ...)`.
    NotInQuery,
    /// `*` and `t.*`.
    AllColumns,
    /// `count(t.*)`.
    CountOfRow,
    /// An aggregate in a subquery whose columns are those of the query around it.
    OuterAggregate,
    /// `((SELECT ...) UNION (SELECT ...))` as a value.
    UnionInParentheses,
    /// Subqueries in `ROLLUP`, `CUBE` and `GROUPING SETS`.
    QueryInGroupingSets,
    /// The same key twice in these.
    KeyTwice,
    /// Windows and `DISTINCT ON` sorted by bytes.
    WindowByBytes,
    /// Subqueries and columns of queries around in window functions.
    QueryInWindow,
    /// Subqueries in `VALUES` of an `INSERT`.
    QueryInValues,
    /// `grouping` of the query around a subquery.
    OuterGrouping,
    /// Columns that have no name.
    NoName,
}

/// Features with the fault that each waits for.
pub const PENDING: &[(Feature, &str)] = &[
    (Feature::NotInQuery, "rows with nulls are kept"),
    (Feature::CountOfRow, "rows that an outer join makes up are counted"),
    (Feature::AllColumns, "tables without a key show a column of their own"),
    (Feature::OuterAggregate, "it is computed in the subquery"),
    (Feature::UnionInParentheses, "it is refused as a syntax error"),
    (Feature::QueryInGroupingSets, "it is refused as a syntax error"),
    (Feature::KeyTwice, "XX000"),
    (Feature::WindowByBytes, "XX000"),
    (Feature::QueryInWindow, "XX000"),
    (Feature::QueryInValues, "XX000"),
    (Feature::OuterGrouping, "42803"),
    (Feature::NoName, "`true` is called `bool`"),
];
