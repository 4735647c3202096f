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
    /// How far it has gone over them.
    pub ranges: Vec<KeyRange>,
}

/// A range of a table's primary key, in which a row more or less may be noticed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// The table.
    pub table: TableId,
    /// The first key that is in it, if there is such a row.
    pub lower: KeyBytes,
    /// The first key behind it; `None` if it has no end.
    pub upper: Option<KeyBytes>,
}

impl KeyRange {
    /// Every key of a table.
    pub fn whole(table: TableId) -> KeyRange {
        KeyRange { table, lower: KeyBytes::default(), upper: None }
    }

    /// Whether a key of the table is in it.
    pub fn contains(&self, key: &[u8]) -> bool {
        *self.lower <= *key && self.upper.as_ref().is_none_or(|upper| *key < **upper)
    }
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
        let rows = self.rows.iter().map(|(_, key)| key.len() + NOTE_BYTES);
        let end = |range: &KeyRange| range.upper.as_ref().map_or(0, |upper| upper.len());
        let ranges = self.ranges.iter().map(|range| range.lower.len() + end(range) + NOTE_BYTES);
        rows.chain(ranges).sum()
    }

    /// The footprint's tables.
    pub fn tables(&self) -> BTreeSet<TableId> {
        self.rows.iter().map(|(table, _)| *table).chain(self.scanned.iter().copied()).collect()
    }
}
