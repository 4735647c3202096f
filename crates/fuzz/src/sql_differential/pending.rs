//! What the short form of the comparison leaves out for now: features with a fault that is known and not yet mended.

/// A feature that statements may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// `NOT IN (SELECT ...)`.
    NotInQuery,
    /// `*` and `t.*`, also in `RETURNING`.
    AllColumns,
    /// `count(t.*)`.
    CountOfRow,
    /// An aggregate in a subquery whose columns are those of the query around it.
    OuterAggregate,
    /// `((SELECT ...) UNION (SELECT ...))` as a value.
    UnionInParentheses,
    /// Anything but columns in `ROLLUP`, `CUBE` and `GROUPING SETS`.
    ExpressionInGroupingSets,
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
    /// Parameters that are null or of `char(n)`.
    OddParameter,
    /// The sign of a `smallint`.
    SignOfSmallInt,
    /// `NATURAL JOIN` behind a table that is not part of it.
    NaturalBehindOthers,
    /// Subqueries in `RETURNING`.
    QueryInReturning,
    /// `DISTINCT` in `UNION ALL`.
    DistinctInUnion,
    /// Aggregates without keys, and several sets of groups, in a query within another.
    GroupsWithin,
    /// Scalar subqueries that may find nothing.
    ScalarQueryOfRows,
    /// The same key twice in `ON CONFLICT`.
    ConflictTwice,
    /// `min`, `max` and `nullif` of `varchar`.
    VarcharResult,
    /// Subqueries in queries with `ROLLUP` and their like.
    QueryInGroupingQuery,
    /// A `LATERAL` that refers beyond its own query.
    LateralBeyond,
    /// `ANY` and `ALL` of a query.
    AnyOfQuery,
    /// `HAVING` without `GROUP BY` and with subqueries.
    QueryInHaving,
    /// Parameters in writes with `WITH`, `RETURNING` or `ON CONFLICT`.
    ParameterInWrite,
    /// A subquery in the list of `IN`.
    QueryInList,
    /// Subqueries in keys of `GROUP BY`.
    QueryInKey,
    /// Arrays that are compared by order.
    OrderOfArrays,
}

/// Features with the fault that each waits for.
pub const PENDING: &[(Feature, &str)] = &[
    (Feature::NotInQuery, "rows with nulls are kept"),
    (Feature::CountOfRow, "rows that an outer join makes up are counted"),
    (Feature::AllColumns, "tables without a key show a column of their own"),
    (Feature::OuterAggregate, "it is computed in the subquery"),
    (Feature::UnionInParentheses, "it is refused as a syntax error"),
    (Feature::ExpressionInGroupingSets, "it is refused as a syntax error"),
    (Feature::KeyTwice, "XX000"),
    (Feature::WindowByBytes, "XX000"),
    (Feature::QueryInWindow, "XX000"),
    (Feature::QueryInValues, "XX000"),
    (Feature::OuterGrouping, "42803"),
    (Feature::NoName, "`true` is called `bool`"),
    (Feature::OddParameter, "23502 in writes; 22001"),
    (Feature::SignOfSmallInt, "it is an `integer`"),
    (Feature::NaturalBehindOthers, "42703"),
    (Feature::QueryInReturning, "it sees what the statement has written; 42P01"),
    (Feature::DistinctInUnion, "XX000"),
    (Feature::GroupsWithin, "a condition is moved below the aggregate"),
    (Feature::ScalarQueryOfRows, "XX000, as null was not expected"),
    (Feature::ConflictTwice, "it is done where the condition does not hold"),
    (Feature::VarcharResult, "it is of another type"),
    (Feature::QueryInGroupingQuery, "XX000"),
    (Feature::LateralBeyond, "XX000"),
    (Feature::AnyOfQuery, "null instead of true or false for empty queries"),
    (Feature::QueryInHaving, "columns are not refused"),
    (Feature::ParameterInWrite, "they are text or null"),
    (Feature::QueryInList, "it is refused as a syntax error"),
    (Feature::QueryInKey, "42803"),
    (Feature::OrderOfArrays, "null is not the largest"),
];

/// Functions, as `function_list.rs` writes them, with the fault that each waits for.
pub const PENDING_FUNCTIONS: &[(&str, &str)] = &[
    ("to_json({})", "null is the JSON null"),
    ("to_jsonb({})", "null is the JSON null"),
    ("jsonb_set(jsonb_build_object('a', {}), '{a}', to_jsonb({}))", "it is not strict"),
    ("({} @> {})", "null contains null"),
    ("({} <@ {})", "null contains null"),
    ("({} && {})", "null contains null"),
    ("abs({})", "of `real` it is `double precision`"),
    ("to_char({}, '999')", "the sign of what does not fit is lost"),
];
