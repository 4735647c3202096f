//! Someone who holds locks.

use fabius_value::TableId;

/// Someone who holds locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Who: the label of its transaction.
    pub holder: String,
    /// The tables of which it has locked something.
    pub tables: Vec<TableId>,
    /// How many statements it has locked the answers of, or in a conventional transaction how many rows and ranges.
    pub statements: usize,
}
