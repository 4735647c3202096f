//! The rows that a call is going to look up, found before it runs.
//!
//! A call looked at [ahead](crate::ahead) is known by the keys that are functions of its arguments. Their records are
//! found while they are brought near, so the program need not look for them again: it most often asks for them in the
//! order in which they were found.

use fabius_storage::Record;
use fabius_value::{Datum, Key, TableId};

/// A row is expected by its key's columns if these are whole numbers, at most so many.
const COLUMNS_MAX: usize = 3;
/// Words of an encoded key, at most.
const WORDS_MAX: usize = 2;
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
    pub likely: Option<&'a Record>,
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

    /// Looks at the likely record, which is near.
    #[inline]
    pub fn check(&mut self) {
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

/// The rows of a call, in the order in which they are expected to be looked up.
#[derive(Default)]
pub struct ExpectedRows<'a> {
    /// The rows.
    pub rows: Vec<ExpectedRow<'a>>,
    next: usize,
}

impl<'a> ExpectedRows<'a> {
    /// The record of a key with these columns, if that is the one expected next and was found. It is what the table's
    /// index has: no record is taken out of it while calls run.
    #[inline]
    pub fn find(&mut self, table: TableId, columns: &[Datum<'_>]) -> Option<&'a Record> {
        let row = self.rows.get(self.next).filter(|row| row.has_key(table, columns))?;
        self.next += 1;
        row.found
    }

    /// The call begins again.
    pub fn restart(&mut self) {
        self.next = 0;
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.next = 0;
    }
}
