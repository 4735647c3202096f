//! What a program has looked at.

use super::overlay::{KeyBytes, Mark, Overlay};
use fabius_value::TableId;
use std::collections::BTreeSet;

/// Bytes that noting a row takes besides its key, about.
pub(super) const NOTE_BYTES: usize = 48;

/// The rows a program has looked at, there or not, and the tables it has gone over a range of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Table and key of each row.
    pub rows: BTreeSet<(TableId, KeyBytes)>,
    /// Tables with a range, of which any row may be one more.
    pub scanned: BTreeSet<TableId>,
}

impl Footprint {
    /// Whether writes after `mark` may have changed any of it.
    pub fn meets(&self, overlay: &Overlay, mark: Mark) -> bool {
        overlay.written_since(mark).any(|(table, key)| self.has(table, key))
    }

    /// Whether any of it was written before `mark`.
    pub fn meets_before(&self, overlay: &Overlay, mark: Mark) -> bool {
        overlay.written_before(mark).any(|(table, key)| self.has(table, key))
    }

    fn has(&self, table: TableId, key: &KeyBytes) -> bool {
        self.scanned.contains(&table) || self.rows.contains(&(table, key.clone()))
    }

    /// What it takes in memory, about.
    pub fn bytes(&self) -> usize {
        self.rows.iter().map(|(_, key)| key.len() + NOTE_BYTES).sum()
    }

    /// The footprint's tables.
    pub fn tables(&self) -> BTreeSet<TableId> {
        self.rows.iter().map(|(table, _)| *table).chain(self.scanned.iter().copied()).collect()
    }
}
