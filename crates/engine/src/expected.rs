//! The rows that a call is going to look up, found before it does.
//!
//! A call looked at [ahead](crate::ahead) is known by the keys that are functions of its arguments, a loop over a
//! range by the columns of its [rows](crate::join). Their records are found while they are brought near, so the
//! program need not look for them again: it most often asks for them in the order in which they were found, or for
//! those of two tables in turns.

use crate::Definitions;
use crossbeam_epoch::Guard;
use fabius_storage::{Record, Table, Version};
use fabius_value::short_key::COLUMNS_MAX;
use fabius_value::{Datum, Key, ShortKey, TableId};

/// Rows that are looked at for the one that is asked for, at most: those of a turn of two joins.
const LOOKS_MAX: usize = 32;

/// A row by its key.
pub struct ExpectedRow<'a> {
    /// The row's table.
    pub table: TableId,
    /// Columns of the key; 0 if it is not short, so that a program has to look for the row itself.
    columns: u8,
    values: [i64; COLUMNS_MAX],
    key: ShortKey,
    /// The key's hash.
    hash: u64,
    /// The record that it most likely leads to.
    likely: Option<&'a Record>,
    /// The record, once it has been looked at.
    found: Option<&'a Record>,
}

/// Adds the row whose key has these columns, and asks for the memory that looking it up reads first; not if its table
/// has no hash index. A key that is not short is encoded in `encoded`.
#[inline]
pub fn expect<'a>(
    rows: &mut Vec<ExpectedRow<'a>>,
    table: &Table,
    columns: &[Datum<'_>],
    encoded: &mut Key,
    guard: &Guard,
) {
    let short = table.short_key(columns);
    let hash = match &short {
        Some(key) => key.hash(),
        None if table.encode_key(columns, encoded).is_ok() => encoded.hash(),
        // No row has a key that is too long.
        None => return,
    };
    if !table.prefetch(hash, guard) {
        return;
    }
    let (columns, key) = short.map_or((&columns[..0], ShortKey::default()), |key| (columns, key));
    let value = |at: usize| columns.get(at).map_or(0, |value| value.int());
    rows.push(ExpectedRow {
        table: table.id(),
        columns: columns.len() as u8,
        values: [value(0), value(1), value(2)],
        key,
        hash,
        likely: None,
        found: None,
    });
}

impl<'a> ExpectedRow<'a> {
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
        self.found = self.likely.filter(|record| self.key.has_bytes(record.key()));
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

/// Where the rows are that a call may look up next: behind the one that it has looked up last, or, where it looks up
/// those of two tables in turns, behind the last of the other table.
#[derive(Clone, Copy, Default)]
pub struct Cursor([usize; 2]);

impl Cursor {
    /// The record of a key with these columns, if that is among `rows` and was found, and is still in its table's
    /// index.
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
    use crate::entry::encode_definition;
    use fabius_value::Seq;

    /// Goal: rows are found in the order of the keys, in another one, and again; what is not expected is not found.
    #[test]
    fn rows_are_found_in_any_order() {
        let text = "table a { id: bigint, primary key (id) using hash }
                    table b { id: bigint, primary key (id) using hash }";
        let definitions = Definitions::default().with(Seq(1), &encode_definition(text)).expect("it is right");
        let table = |number: u32| definitions.table(TableId(number));
        let (guard, mut rows) = (crossbeam_epoch::pin(), Vec::new());
        for (number, id) in [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)] {
            let (columns, mut key) = ([Datum::Int(id)], Key::new());
            expect(&mut rows, table(number), &columns, &mut key, &guard);
            table(number).encode_key(&columns, &mut key).expect("a short key");
            let row = rows.last_mut().expect("just expected");
            // SAFETY: freed at the end.
            row.likely = Some(unsafe { Record::create(key.bytes()).as_ref() });
            row.find_version();
        }
        let in_order = [(0, 1), (0, 2), (0, 3), (1, 1), (1, 2), (1, 3)];
        let in_turns = [(0, 1), (1, 1), (0, 2), (1, 2), (0, 3), (1, 3), (0, 3), (0, 3), (1, 1)];
        let mut cursor = Cursor::default();
        for (table, id) in in_order.into_iter().chain(in_turns) {
            let found = cursor.find(&rows, TableId(table), &[Datum::Int(id)]);
            let place = table as usize * 3 + id as usize - 1;
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
