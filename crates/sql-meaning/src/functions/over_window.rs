//! Functions that only windows have (PostgreSQL 15, 9.22).

use super::{Body, Definition, declare};

/// What a function makes of a row among those of its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverWindow {
    /// `cume_dist`
    CumulativeDistribution,
    /// `dense_rank`
    DenseRank,
    /// `first_value`
    First,
    /// `lag`
    Lag,
    /// `last_value`
    Last,
    /// `lead`
    Lead,
    /// `nth_value`
    Nth,
    /// `ntile`
    Tile,
    /// `percent_rank`
    PercentRank,
    /// `rank`
    Rank,
    /// `row_number`
    RowNumber,
}

/// The functions.
pub(super) fn definitions() -> Vec<Definition> {
    use OverWindow as O;
    let all = [
        ("cume_dist() double_precision", O::CumulativeDistribution),
        ("dense_rank() bigint", O::DenseRank),
        ("first_value(anyelement) anyelement", O::First),
        ("lag(anyelement) anyelement", O::Lag),
        ("lag(anyelement, int) anyelement", O::Lag),
        ("lag(anycompatible, int, anycompatible) anycompatible", O::Lag),
        ("last_value(anyelement) anyelement", O::Last),
        ("lead(anyelement) anyelement", O::Lead),
        ("lead(anyelement, int) anyelement", O::Lead),
        ("lead(anycompatible, int, anycompatible) anycompatible", O::Lead),
        ("nth_value(anyelement, int) anyelement", O::Nth),
        ("ntile(int) int", O::Tile),
        ("percent_rank() double_precision", O::PercentRank),
        ("rank() bigint", O::Rank),
        ("row_number() bigint", O::RowNumber),
    ];
    all.into_iter().map(|(signature, function)| declare(signature, Body::OverWindow(function))).collect()
}
