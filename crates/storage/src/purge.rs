//! Taking keys out of indexes once no reader can need them.
//!
//! A deleted row keeps its record and index entries for readers of the past. The writer that deletes
//! it (or changes an indexed column, or undoes an insert) leaves a note here, with its seq. A note is
//! acted on in two steps:
//!
//! ```text
//! deleted at seq ---> nobody searches the table below seq ---> nobody reads below seq
//!            note     out of the indexes                       freed
//! ```
//!
//! The first step may come much earlier: a deferred call that has captured a row goes to its versions
//! directly, so a backlog of such calls does not make scans walk over what was deleted long ago. When a
//! note is looked at, the key may have come back; each record counts the notes about it, and leaves its
//! index with the last one.

use crate::fold::{Retired, retire_record};
use crate::{Record, Table, chain};
use crossbeam_epoch::Guard;
use fabius_value::{IndexId, Key, Seq, TableId};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;

/// What a note is about.
enum Subject {
    /// The record itself: its row was deleted, or its insert undone.
    Record,
    /// An entry of a secondary index.
    Entry(IndexId, Box<Key>),
}

struct Note {
    seq: Seq,
    record: NonNull<Record>,
    subject: Subject,
}

/// The notes about one table, about in order of seq: exactly so where one thread writes them.
struct Notes {
    table: Arc<Table>,
    /// In some index.
    entered: VecDeque<Note>,
    /// In no index any more; deleted at that seq.
    unlinked: VecDeque<(Seq, NonNull<Record>)>,
}

impl Drop for Notes {
    /// Frees what is in no index any more, and no table will: when a database is closed with calls left to run.
    fn drop(&mut self) {
        let mut retired = Retired::default();
        let types = self.table.types();
        for (_, record) in self.unlinked.drain(..) {
            // SAFETY: it was taken out of all indexes when it came into this list; with the notes its writers are gone.
            unsafe { retire_record(record, types, &mut retired) };
        }
        retired.hand_over(&crossbeam_epoch::pin());
    }
}

/// All notes, by table.
#[derive(Default)]
pub struct Purge {
    tables: Vec<Option<Notes>>,
    waiting: usize,
}

// SAFETY: records named by notes are owned by their table's index, or by the note once they are out.
unsafe impl Send for Purge {}

impl Purge {
    /// Notes that the row of `record` was deleted, or its insert undone, at `seq`.
    pub fn record(&mut self, seq: Seq, table: &Arc<Table>, record: &Record) {
        self.note(seq, table, record, Subject::Record);
    }

    /// Notes that an entry stopped being right at `seq`.
    pub fn entry(&mut self, seq: Seq, table: &Arc<Table>, record: &Record, index: IndexId, key: Key) {
        table.mark_stale(index);
        self.note(seq, table, record, Subject::Entry(index, Box::new(key)));
    }

    fn note(&mut self, seq: Seq, table: &Arc<Table>, record: &Record, subject: Subject) {
        record.count_notes(1);
        self.waiting += 1;
        let at = table.id().0 as usize;
        if self.tables.len() <= at {
            self.tables.resize_with(at + 1, || None);
        }
        let new = || Notes { table: table.clone(), entered: VecDeque::new(), unlinked: VecDeque::new() };
        let notes = self.tables[at].get_or_insert_with(new);
        notes.entered.push_back(Note { seq, record: record.owner(), subject });
    }

    /// How many notes wait.
    pub fn len(&self) -> usize {
        self.waiting
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// The oldest of those that are looked at next, if any waits.
    pub fn oldest(&self) -> Option<Seq> {
        let of_table = |notes: &Notes| {
            let entered = notes.entered.front().map(|note| note.seq);
            entered.into_iter().chain(notes.unlinked.front().map(|(seq, _)| *seq)).min()
        };
        self.tables.iter().flatten().filter_map(of_table).min()
    }

    /// Acts on the notes of each table, at most `most` of them; called by the writer of all records
    /// named. Nobody searches a table below the seq that `searched` gives, now or later, and nobody
    /// reads below `collected`.
    pub fn run(
        &mut self,
        searched: impl Fn(TableId) -> Seq,
        collected: Seq,
        most: usize,
        retired: &mut Retired,
        guard: &Guard,
    ) {
        for place in &mut self.tables {
            let Some(notes) = place else { continue };
            let searched = searched(notes.table.id());
            for _ in 0..most {
                let Some(note) = notes.entered.pop_front_if(|note| note.seq <= searched) else { break };
                if !notes.unlink(note, searched, guard) {
                    self.waiting -= 1;
                }
            }
            for _ in 0..most {
                // SAFETY: a record stays as long as notes about it wait. Whoever still shortens its chain goes on
                // first.
                let is_free = |record: NonNull<Record>| unsafe { record.as_ref() }.begin_shortening();
                let freed =
                    notes.unlinked.pop_front_if(|(seq, record)| *seq <= collected && is_free(*record));
                let Some((_, record)) = freed else { break };
                // SAFETY: it was taken out of all indexes when it came into this list, and nobody reads below where
                // that was; its shortening was begun above and never ends, so that nobody else shortens it.
                unsafe { retire_record(record, notes.table.types(), retired) };
                self.waiting -= 1;
            }
            // A table that was dropped goes with the last note about it.
            let is_done = notes.entered.is_empty() && notes.unlinked.is_empty();
            if is_done && Arc::strong_count(&notes.table) == 1 {
                *place = None;
            }
        }
    }
}

impl Notes {
    /// The first step; whether the record has left its index, and waits to be freed.
    fn unlink(&mut self, note: Note, searched: Seq, guard: &Guard) -> bool {
        // SAFETY: a record stays as long as notes about it wait.
        let record = unsafe { note.record.as_ref() };
        if let Subject::Entry(index, key) = note.subject
            && !came_back(&self.table, index, &key, record, searched)
        {
            self.table.remove_entry(index, &key, guard);
        }
        // The last note decides about the record, so that none is left about one that is gone.
        if record.count_notes(-1) > 0 {
            return false;
        }
        // SAFETY: the writer reads its own chain.
        let head = unsafe { record.head().as_ref() };
        if head.is_some_and(|head| !head.is_tombstone() || head.seq() > searched) {
            return false;
        }
        self.table.unlink(record, guard);
        // The note of a later deletion may have come before this one.
        let deleted = head.map_or(note.seq, |tombstone| tombstone.seq().max(note.seq));
        self.unlinked.push_back((deleted, note.record));
        true
    }
}

/// Whether some reader, now or later, finds the record's row with the entry's key: one who begins at the
/// newest version at or below `searched`, or above it. (Below that, versions no longer say what the row
/// was: what a newer one shadows may be gone.)
fn came_back(table: &Table, index: IndexId, key: &Key, record: &Record, searched: Seq) -> bool {
    let mut at = record.head();
    // SAFETY: the writer reads its own chain.
    while let Some(version) = unsafe { at.as_ref() } {
        // SAFETY: the writer, who purges, reads its own chain; indexed columns are never stickies.
        if unsafe { chain::is_present(at) && table.entry_is_current(index, key, at) } {
            return true;
        }
        if version.seq() <= searched {
            break;
        }
        at = version.next();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Version;
    use fabius_value::{Column, ColumnId, ColumnMask, DataType, Datum, TableSchema};

    /// A table with the row 1, deleted at 12.
    fn table_of_a_deleted_row() -> (Arc<Table>, Key) {
        let column = Column { name: "id".into(), data_type: DataType::BigInt, nullable: false };
        let schema = TableSchema {
            name: "rows".into(),
            columns: vec![column],
            primary_key: vec![ColumnId(0)],
            hash: false,
            indexes: Vec::new(),
        };
        let table = Arc::new(Table::new(TableId(0), Arc::new(schema)));
        let guard = crossbeam_epoch::pin();
        let mut key = Key::new();
        key.push(Datum::Int(1), DataType::BigInt, false).expect("a short key");
        let (record, _) = table.find_or_create(&key, &guard);
        record.push(Version::of_values(Seq(5), ColumnMask::first(1), &[Datum::Int(1)], table.types()));
        record.push(Version::create_tombstone(Seq(12)));
        (table, key)
    }

    /// Goal: a deleted row leaves the index also when the note of an insert that was undone before comes after that
    /// of the deletion.
    #[test]
    fn notes_may_come_late() {
        let (table, key) = table_of_a_deleted_row();
        let guard = crossbeam_epoch::pin();
        let record = table.find(&key, &guard).expect("readers of the past need it");
        let (mut purge, mut retired) = (Purge::default(), Retired::default());
        purge.record(Seq(12), &table, record);
        purge.record(Seq(11), &table, record);
        purge.run(|_| Seq(11), Seq(11), 10, &mut retired, &guard);
        assert!(table.find(&key, &guard).is_some(), "the deletion may not be seen yet");
        purge.run(|_| Seq(12), Seq(11), 10, &mut retired, &guard);
        assert!(table.find(&key, &guard).is_none());
        assert_eq!(purge.len(), 1, "somebody may read the row");
        purge.run(|_| Seq(12), Seq(12), 10, &mut retired, &guard);
        assert!(purge.is_empty());
        retired.hand_over(&guard);
    }

    /// Goal: a record goes with the last of the notes about it and not before, however many there are: a row may be
    /// deleted and come back many times while somebody reads the past. Of more than it can count it never goes.
    #[test]
    fn there_may_be_many_notes() {
        for (count, goes) in [(65_534, true), (65_535, false), (65_537, false), (131_073, false)] {
            let (table, key) = table_of_a_deleted_row();
            let guard = crossbeam_epoch::pin();
            let record = table.find(&key, &guard).expect("readers of the past need it");
            let (mut purge, mut retired) = (Purge::default(), Retired::default());
            (0..count).for_each(|_| purge.record(Seq(12), &table, record));
            purge.run(|_| Seq(12), Seq(12), count - 1, &mut retired, &guard);
            assert!(table.find(&key, &guard).is_some());
            purge.run(|_| Seq(12), Seq(12), 1, &mut retired, &guard);
            assert_eq!((purge.len(), table.find(&key, &guard).is_none()), (0, goes), "{count} notes");
            retired.hand_over(&guard);
        }
    }
}
