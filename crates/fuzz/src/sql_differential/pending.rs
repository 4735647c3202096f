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
}

/// Features with the fault that each waits for.
pub const PENDING: &[(Feature, &str)] = &[
    (Feature::NotInQuery, "rows with nulls are kept"),
    (Feature::CountOfRow, "rows that an outer join makes up are counted"),
];
