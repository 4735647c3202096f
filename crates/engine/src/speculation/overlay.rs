//! What a transaction has written and not committed.
//!
//! Whole rows over those of a snapshot, with the entries they have in their tables' indexes, so that scans
//! find them in order:
//!
//! ```text
//! rows      key            row, or nothing if it is deleted
//! entries   index columns, key -> key        of the rows that are there
//! changes   (table, key, what stood there before) ...      taken back from the end
//! ```

use fabius_storage::Table;
use fabius_value::{Datum, IndexId, Key, Result, TableId, Value};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// What noting a change takes besides key and image, about.
const CHANGE_BYTES: usize = 200;

/// The bytes of a key.
pub type KeyBytes = Box<[u8]>;

/// A row, or nothing where one was deleted.
pub type Image = Option<Arc<[Value]>>;

/// An image, and how many changes there were when its key first got one.
#[derive(Clone)]
struct Written {
    since: usize,
    image: Image,
}

/// One table's part.
#[derive(Clone, Default)]
struct TableOverlay {
    rows: BTreeMap<KeyBytes, Written>,
    /// By index: entry to key.
    entries: Vec<BTreeMap<KeyBytes, KeyBytes>>,
}

/// A change, to be taken back.
#[derive(Clone)]
struct Change {
    table: Arc<Table>,
    key: KeyBytes,
    before: Option<Written>,
}

/// A point in a transaction's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(usize);

/// What a transaction has written.
#[derive(Clone, Default)]
pub struct Overlay {
    tables: BTreeMap<TableId, TableOverlay>,
    changes: Vec<Change>,
}

impl Overlay {
    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The point after everything written so far.
    pub fn mark(&self) -> Mark {
        Mark(self.changes.len())
    }

    /// Takes back everything written since.
    pub fn undo_to(&mut self, mark: Mark) {
        while self.changes.len() > mark.0 {
            let Some(Change { table, key, before }) = self.changes.pop() else { return };
            self.place(&table, key, before);
        }
    }

    /// Keys written since a point, with their tables; a key may come more than once.
    pub fn written_since(&self, mark: Mark) -> impl Iterator<Item = (TableId, &KeyBytes)> {
        self.changes.iter().skip(mark.0).map(|change| (change.table.id(), &change.key))
    }

    /// Keys written up to a point, with their tables; a key may come more than once.
    pub fn written_before(&self, mark: Mark) -> impl Iterator<Item = (TableId, &KeyBytes)> {
        self.changes.iter().take(mark.0).map(|change| (change.table.id(), &change.key))
    }

    /// What the images written since a point take in memory, about, with what is needed to take them back.
    pub fn bytes_since(&self, mark: Mark) -> usize {
        let bytes = |(table, key): (TableId, &KeyBytes)| {
            let image = self.image(table, key).and_then(Option::as_deref).unwrap_or_default();
            CHANGE_BYTES + 2 * key.len() + image.iter().map(Value::bytes).sum::<usize>()
        };
        self.written_since(mark).map(bytes).sum()
    }

    /// The image of a key, if the transaction has written it.
    pub fn image(&self, table: TableId, key: &[u8]) -> Option<&Image> {
        self.tables.get(&table)?.rows.get(key).map(|written| &written.image)
    }

    /// Whether a key had an image at that point.
    pub(super) fn had_image(&self, table: TableId, key: &[u8], at: Mark) -> bool {
        self.tables
            .get(&table)
            .and_then(|table| table.rows.get(key))
            .is_some_and(|written| written.since < at.0)
    }

    /// Stores an image. The caller has checked that the row's entries are not too long.
    pub(super) fn set(&mut self, table: &Arc<Table>, key: &[u8], image: Image) {
        let before = self.tables.get(&table.id()).and_then(|rows| rows.rows.get(key)).cloned();
        let since = before.as_ref().map_or(self.changes.len(), |before| before.since);
        self.changes.push(Change { table: table.clone(), key: key.into(), before });
        self.place(table, key.into(), Some(Written { since, image }));
    }

    fn place(&mut self, table: &Table, key: KeyBytes, written: Option<Written>) {
        let overlay = self.tables.entry(table.id()).or_default();
        overlay.entries.resize_with(table.index_count(), BTreeMap::new);
        let before = match &written {
            Some(written) => overlay.rows.insert(key.clone(), written.clone()),
            None => overlay.rows.remove(&key),
        };
        for (at, entries) in overlay.entries.iter_mut().enumerate() {
            let entry = |image: &[Value]| entry(table, IndexId(at as u16), image, &key).ok();
            if let Some(old) = before.as_ref().and_then(|before| before.image.as_deref()).and_then(entry) {
                entries.remove(old.bytes());
            }
            if let Some(new) = written.as_ref().and_then(|written| written.image.as_deref()).and_then(entry) {
                entries.insert(new.bytes().into(), key.clone());
            }
        }
    }

    /// Entries between two bounds, in ascending order, with the keys they lead to; of the primary key the
    /// entries are the keys.
    pub(super) fn entries(
        &self,
        table: TableId,
        index: Option<IndexId>,
        lower: &[u8],
        upper: Option<&[u8]>,
    ) -> Vec<(KeyBytes, KeyBytes)> {
        let Some(overlay) = self.tables.get(&table) else { return Vec::new() };
        let upper = upper.map_or(Bound::Unbounded, Bound::Excluded);
        let bounds: (Bound<&[u8]>, Bound<&[u8]>) = (Bound::Included(lower), upper);
        match index {
            None => overlay
                .rows
                .range::<[u8], _>(bounds)
                .filter(|(_, written)| written.image.is_some())
                .map(|(key, _)| (key.clone(), key.clone()))
                .collect(),
            Some(index) => overlay.entries.get(usize::from(index.0)).map_or_else(Vec::new, |entries| {
                entries.range::<[u8], _>(bounds).map(|(entry, key)| (entry.clone(), key.clone())).collect()
            }),
        }
    }
}

/// The entry of a row in an index.
///
/// # Errors
/// `54000` if it is too long.
pub(super) fn entry(table: &Table, index: IndexId, row: &[Value], key: &[u8]) -> Result<Key> {
    let mut entry = Key::new();
    table.encode_entry(index, |column| Datum::from_value(&row[usize::from(column.0)]), key, &mut entry)?;
    Ok(entry)
}
