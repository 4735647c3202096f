//! What is known of a query once its loops are built.

/// What is known of a query once its loops are built.
#[derive(Clone, Debug, Default)]
pub struct QueryFacts {
    /// Whether it gives at most one row.
    pub is_single: bool,
    /// Whether every table is reached by values of a key's first columns.
    pub is_keyed: bool,
    /// Whether it goes over one row at most, or over those that values of queries around it ask for.
    pub is_selective: bool,
}
