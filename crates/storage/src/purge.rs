//! Taking keys out of indexes once no reader can need them.
//!
//! A deleted row keeps its record and index entries for readers of the past. The writer that deletes
//! it (or changes an indexed column, or undoes an insert) leaves a note here, with its seq; when
//! `collected` has reached that seq, the note is looked at again and, unless the key has come back
//! meanwhile, the entry or record goes. Each record counts the notes about it and outlives them all.

use crate::fold::{Retired, retire_record};
use crate::{Record, Table, chain};
use crossbeam_epoch::Guard;
use fabius_value::{IndexId, Key, Seq};
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
    table: Arc<Table>,
    record: NonNull<Record>,
    subject: Subject,
}

/// Notes in order of seq.
#[derive(Default)]
pub struct Purge {
    notes: VecDeque<Note>,
}

// SAFETY: records named by notes are owned by their table's index until the note itself is acted on.
unsafe impl Send for Purge {}

impl Purge {
    /// Notes that the row of `record` was deleted, or its insert undone, at `seq`.
    pub fn record(&mut self, seq: Seq, table: &Arc<Table>, record: &Record) {
        record.count_notes(1);
        self.notes.push_back(Note {
            seq,
            table: table.clone(),
            record: record.owner(),
            subject: Subject::Record,
        });
    }

    /// Notes that an entry stopped being right at `seq`.
    pub fn entry(&mut self, seq: Seq, table: &Arc<Table>, record: &Record, index: IndexId, key: Key) {
        record.count_notes(1);
        table.mark_stale(index);
        let subject = Subject::Entry(index, Box::new(key));
        self.notes.push_back(Note { seq, table: table.clone(), record: record.owner(), subject });
    }

    /// How many notes wait.
    pub fn len(&self) -> usize {
        self.notes.len()
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.notes.is_empty()
    }

    /// Acts on the notes that `collected` has reached, at most `most` of them; called by the writer
    /// of all records named.
    pub fn run(&mut self, collected: Seq, most: usize, retired: &mut Retired, guard: &Guard) {
        for _ in 0..most {
            let Some(note) = self.notes.pop_front_if(|note| note.seq <= collected) else { return };
            // SAFETY: a record stays as long as notes about it wait.
            let record = unsafe { note.record.as_ref() };
            if let Subject::Entry(index, key) = note.subject
                && !came_back(&note.table, index, &key, record, collected)
            {
                note.table.remove_entry(index, &key, guard);
            }
            // The last note decides about the record, so that none is left about one that is gone.
            if record.count_notes(-1) > 0 {
                continue;
            }
            // SAFETY: the writer reads its own chain.
            let head = unsafe { record.head().as_ref() };
            if head.is_none_or(|head| head.is_tombstone() && head.seq() <= note.seq) {
                note.table.unlink(record, guard);
                retire_record(note.record, note.table.types(), retired);
            }
        }
    }
}

/// Whether some reader, now or later, finds the record's row with the entry's key: one who begins at the
/// newest version at or below `collected`, or above it. (Below that, versions no longer say what the row
/// was: what a newer one shadows may be gone.)
fn came_back(table: &Table, index: IndexId, key: &Key, record: &Record, collected: Seq) -> bool {
    let mut at = record.head();
    // SAFETY: the writer reads its own chain.
    while let Some(version) = unsafe { at.as_ref() } {
        // SAFETY: as above; indexed columns are never stickies.
        if unsafe { chain::is_present(at) && table.entry_is_current(index, key, at) } {
            return true;
        }
        if version.seq() <= collected {
            break;
        }
        at = version.next();
    }
    false
}
