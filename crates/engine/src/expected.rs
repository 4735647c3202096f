//! The rows that a call is going to look up, found before it runs.
//!
//! A call looked at [ahead](crate::ahead) is known by the keys that are functions of its arguments. Their records are
//! found while they are brought near, so the program need not look for them again: it most often asks for them in the
//! order in which they were found, or for those of two tables in turns.

use crate::Definitions;
use crossbeam_epoch::Guard;
use fabius_storage::{Record, Version};
use fabius_value::{Datum, Key, TableId};

/// A row is expected by its key's columns if these are whole numbers, at most so many.
const COLUMNS_MAX: usize = 3;
/// Words of an encoded key, at most.
const WORDS_MAX: usize = 2;
/// Rows that are looked at for the one that is asked for, at most.
const LOOKS_MAX: usize = 32;
/// Says that the key is not of that kind.
const UNKNOWN: u8 = u8::MAX;

/// A row by its key.
pub struct ExpectedRow<'a> {
    /// Its table.
    pub table: TableId,
    /// How many columns the key has.
    columns: u8,
    /// How many bytes it has, encoded.
    bytes: u8,
    /// Its hash.
    pub hash: u64,
    /// The record that it most likely leads to.
    likely: Option<&'a Record>,
    /// The record, once it has been looked at.
    found: Option<&'a Record>,
    values: [i64; COLUMNS_MAX],
    words: [u64; WORDS_MAX],
}

impl<'a> ExpectedRow<'a> {
    /// A row of which nothing is found yet; the key has these columns.
    #[inline]
    pub fn new(table: TableId, columns: &[Datum<'_>], key: &Key) -> ExpectedRow<'a> {
        let bytes = key.bytes().len();
        let mut row = ExpectedRow {
            table,
            columns: UNKNOWN,
            bytes: bytes as u8,
            hash: key.hash(),
            likely: None,
            found: None,
            values: [0; COLUMNS_MAX],
            words: key.words(),
        };
        if columns.len() <= COLUMNS_MAX && bytes <= 8 * WORDS_MAX {
            row.columns = columns.len() as u8;
            for (value, column) in row.values.iter_mut().zip(columns) {
                match column {
                    Datum::Int(column) => *value = *column,
                    _ => row.columns = UNKNOWN,
                }
            }
        }
        row
    }

    /// Goes from the index, whose bucket is near, to the likely record, and asks for its memory.
    #[inline]
    pub fn find_record(&mut self, definitions: &'a Definitions, guard: &'a Guard) {
        self.likely = definitions.table(self.table).likely_record(self.hash, guard);
        self.likely.into_iter().for_each(Record::prefetch);
    }

    /// Looks at the likely record, which is near, and asks for its newest version.
    #[inline]
    pub fn find_version(&mut self) {
        self.check();
        self.newest_version().into_iter().for_each(Version::prefetch);
    }

    /// Asks for the memory of the likely record once more: meanwhile it may have been written by others, or have gone.
    #[inline]
    pub fn prefetch_record(&self) {
        self.likely.into_iter().for_each(Record::prefetch);
    }

    /// The newest version of the likely record.
    #[inline]
    pub fn newest_version(&self) -> Option<&'a Version> {
        // SAFETY: linked versions stay readable while the epoch is pinned, as it is for as long as the record is known.
        self.likely.and_then(|record| unsafe { record.head().as_ref() })
    }

    /// Whether the likely record is that of the key.
    #[inline]
    fn check(&mut self) {
        if self.columns == UNKNOWN {
            return;
        }
        let mut key = [0; 8 * WORDS_MAX];
        for (bytes, word) in key.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *bytes = word.to_be_bytes();
        }
        let key = &key[..usize::from(self.bytes)];
        self.found = self.likely.filter(|record| record.key() == key);
    }

    #[inline]
    fn has_key(&self, table: TableId, columns: &[Datum<'_>]) -> bool {
        let is_equal =
            |(column, value): (&Datum<'_>, &i64)| matches!(column, Datum::Int(own) if own == value);
        self.table == table
            && usize::from(self.columns) == columns.len()
            && columns.iter().zip(&self.values).all(is_equal)
    }
}

/// Where the rows are that a call may look up next: behind the one that it has looked up last, or, where it looks up those
/// of two tables in turns, behind the last of the other table.
#[derive(Clone, Copy, Default)]
pub struct Cursor([usize; 2]);

impl Cursor {
    /// The record of a key with these columns, if that is among `rows` and was found, and is still in its table's index.
    #[inline]
    pub fn find<'a>(
        &mut self,
        rows: &[ExpectedRow<'a>],
        table: TableId,
        columns: &[Datum<'_>],
    ) -> Option<&'a Record> {
        let is_at = |at: usize| rows.get(at).is_some_and(|row| row.has_key(table, columns));
        let [last, other] = self.0;
        let at = if is_at(last) {
            last
        } else if is_at(other) {
            self.0[1] = last;
            other
        } else {
            let at = rows.iter().take(LOOKS_MAX).position(|row| row.has_key(table, columns))?;
            self.0[1] = last;
            at
        };
        self.0[0] = at + 1;
        rows[at].found.filter(|record| !record.is_unlinked())
    }
}

/// The rows of a call, in the order in which they are expected to be looked up.
#[derive(Default)]
pub struct ExpectedRows<'a> {
    /// The rows.
    pub rows: Vec<ExpectedRow<'a>>,
    cursor: Cursor,
}

impl<'a> ExpectedRows<'a> {
    /// See [`Cursor::find`].
    #[inline]
    pub fn find(&mut self, table: TableId, columns: &[Datum<'_>]) -> Option<&'a Record> {
        self.cursor.find(&self.rows, table, columns)
    }

    /// The call begins again.
    pub fn restart(&mut self) {
        self.cursor = Cursor::default();
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.restart();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::DataType;

    /// Goal: rows are found in the order of the keys, in another one, and again; what is not expected is not found.
    #[test]
    fn rows_are_found_in_any_order() {
        let mut rows = Vec::new();
        for (table, number) in [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)] {
            let mut key = Key::new();
            key.push(Datum::Int(number), DataType::BigInt, false).expect("a short key");
            let mut row = ExpectedRow::new(TableId(table), &[Datum::Int(number)], &key);
            // SAFETY: freed at the end.
            row.likely = Some(unsafe { Record::create(key.bytes()).as_ref() });
            row.find_version();
            rows.push(row);
        }
        let in_order = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)];
        let in_turns = [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3), (0, 3), (0, 3), (1, 1)];
        let mut cursor = Cursor::default();
        for (table, number) in in_order.into_iter().chain(in_turns) {
            let found = cursor.find(&rows, TableId(table), &[Datum::Int(number)]);
            let place = table as usize * 3 + number as usize - 1;
            assert!(std::ptr::eq(found.expect("it is expected"), rows[place].likely.expect("made above")));
        }
        assert!(cursor.find(&rows, TableId(2), &[Datum::Int(1)]).is_none());
        assert!(cursor.find(&rows, TableId(0), &[Datum::Int(4)]).is_none());
        assert!(cursor.find(&[], TableId(0), &[Datum::Int(1)]).is_none());
        let records: Vec<_> = rows.iter().filter_map(|row| row.likely).map(Record::owner).collect();
        drop(rows);
        // SAFETY: made above, and nothing refers to them any more.
        records.into_iter().for_each(|record| unsafe { Record::free(record) });
    }
}
