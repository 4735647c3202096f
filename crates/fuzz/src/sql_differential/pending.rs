//! What the comparison can leave out, and does for now: features with a fault that is known and not yet mended.

use super::value_type::ValueType::{self, *};

/// A feature that statements may have, and that can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// `IN (SELECT ...)`.
    InQuery,
    /// `*` and `t.*`, also in `RETURNING`.
    AllColumns,
    /// `count(t.*)`.
    CountOfRow,
    /// An aggregate in a subquery whose columns are those of the query around it.
    OuterAggregate,
    /// `((SELECT ...) UNION (SELECT ...))` as a value.
    UnionInParentheses,
    /// Anything but columns in `GROUP BY`.
    ExpressionInKey,
    /// One key twice in `GROUP BY` or a grouping set.
    KeyTwice,
    /// Windows and `DISTINCT ON` divided or sorted by bytes, booleans or arrays.
    WindowByOddType,
    /// Window functions.
    Window,
    /// `DISTINCT` with a limit.
    DistinctWithLimit,
    /// The order of rows.
    OrderOfRows,
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
    /// `NATURAL JOIN` and `USING` behind a table that is not part of the join.
    NaturalBehindOthers,
    /// Columns of the query around in `ON`.
    OuterInOn,
    /// `DISTINCT ON`.
    DistinctOn,
    /// Subqueries in `RETURNING` and `ON CONFLICT`.
    QueryInReturning,
    /// `DISTINCT` in `UNION ALL`.
    DistinctInUnion,
    /// Aggregates without keys, and several sets of groups, in a query within another; `HAVING` of such sets.
    GroupsWithin,
    /// Scalar subqueries that may find nothing.
    ScalarQueryOfRows,
    /// One key twice among the rows of an `INSERT` with `ON CONFLICT`.
    ConflictTwice,
    /// `min`, `max` and `nullif` of `varchar`, and `CASE` of `char(n)`.
    VarcharResult,
    /// Subqueries in queries with `ROLLUP` and their like.
    QueryInGroupingQuery,
    /// A `LATERAL` that refers beyond its own query, or with `RIGHT` and `FULL JOIN` behind it.
    LateralBeyond,
    /// `ANY` and `ALL` of a query.
    AnyOfQuery,
    /// `HAVING` without `GROUP BY` and with subqueries.
    QueryInHaving,
    /// Parameters in writes with `WITH`, `RETURNING` or `ON CONFLICT`.
    ParameterInWrite,
    /// A subquery in the list of `IN`.
    QueryInList,
    /// `IS DISTINCT FROM` of `numeric`.
    DistinctNumeric,
    /// Statements that are wrong on purpose.
    WrongStatement,
    /// `ON CONFLICT` of a table with a foreign key.
    ConflictWithForeignKey,
    /// `nullif`.
    Nullif,
    /// Those of `PENDING_FUNCTIONS`.
    Function,
    /// Aggregates that sort their input.
    SortedAggregate,
    /// Another time zone than UTC.
    TimeZone,
    /// `UNION ALL` in a query within another.
    UnionWithin,
    /// `IS TRUE` and its like.
    TruthTest,
    /// `UNION`, `INTERSECT` and `EXCEPT`; `UNION ALL` is there.
    DistinctSetOperation,
    /// Arrays and intervals that are compared by order.
    OddOrder,
}

/// Features with the fault that each waits for.
pub const PENDING: &[(Feature, &str)] = &[
    (Feature::OuterAggregate, "nested ones are not always refused (42803)"),
    (Feature::ExpressionInKey, "it is refused as a syntax error in ROLLUP and CUBE"),
    (Feature::OuterGrouping, "42803"),
    (Feature::OddParameter, "one of char(n) is text"),
    (Feature::QueryInReturning, "it sees what the statement has written; 42P01"),
    (Feature::ConflictTwice, "it is done where the condition does not hold"),
    (Feature::VarcharResult, "it is of another type"),
    (Feature::QueryInHaving, "columns are not refused"),
    (Feature::TimeZone, "programs do not look at it when they make dates"),
    (Feature::Function, "see there"),
    (Feature::OddOrder, "programs compare arrays as text"),
];

const OVERLAPS: &str = "(({}, {}) OVERLAPS (DATE '2024-01-01', DATE '2024-02-01'))";

/// What is left out if these are not, by their names; `all` are all.
///
/// # Errors
/// A name that there is not.
pub fn without(names: &[String]) -> Result<Vec<Feature>, String> {
    let all = || PENDING.iter().map(|(feature, _)| *feature);
    let name = |feature: Feature| format!("{feature:?}");
    if names.iter().any(|name| name == "all") {
        return Ok(Vec::new());
    }
    match names.iter().find(|wanted| all().all(|feature| name(feature) != **wanted)) {
        Some(wanted) => {
            let names: Vec<String> = all().map(name).collect();
            Err(format!("nothing called {wanted} waits; there are all, {}", names.join(", ")))
        }
        None => Ok(all().filter(|feature| !names.contains(&name(*feature))).collect()),
    }
}

/// Functions, as `function_list.rs` writes them, and their results, with the fault that each waits for.
pub const PENDING_FUNCTIONS: &[(&str, ValueType, &str)] = &[
    ("to_json({})", Json, "null is the JSON null"),
    ("to_jsonb({})", Jsonb, "null is the JSON null"),
    ("jsonb_set(jsonb_build_object('a', {}), '{a}', to_jsonb({}))", Jsonb, "it is not strict"),
    ("({} # {})", Int, "null # null is 0"),
    ("({} # {})", BigInt, "null # null is 0"),
    ("({} @> {})", Boolean, "null contains null"),
    ("({} <@ {})", Boolean, "null contains null"),
    ("({} && {})", Boolean, "null contains null"),
    ("({} = ANY ({}))", Boolean, "null of an empty array"),
    ("({} > ANY ({}))", Boolean, "null of an empty array"),
    ("({} <> ALL ({}))", Boolean, "null of an empty array"),
    (OVERLAPS, Boolean, "false instead of null"),
    ("({} -> -1)", Jsonb, "a scalar has no elements"),
    ("({} ->> 0)", Text, "a scalar has no elements"),
    ("abs({})", SmallInt, "it is an `integer`"),
    ("(-{})", SmallInt, "it is an `integer`"),
    ("abs({})", Real, "it is `double precision`"),
    ("(-{})", Interval, "42883 in ON CONFLICT"),
    ("justify_days({})", Interval, "programs leave days that are negative"),
    ("justify_hours({})", Interval, "programs leave hours that are negative"),
    ("sum({})", Interval, "42883 in ON CONFLICT"),
    ("to_char({}, '999')", Text, "the sign of what does not fit is lost"),
];
