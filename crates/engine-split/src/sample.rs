//! Which records to split: those that calls conflict on although they could commute (Doppel's conflict
//! sampling).
//!
//! ```text
//!                     conflicts of calls that apply the operations to x
//! impact(x, op)  =    -------------------------------------------------
//!                     conflicts of calls that do anything else to x
//! ```

use fabius_program::slice::operation::{Operation, TableOperations};
use fabius_storage::Record;
use fabius_value::{ColumnId, TableId};
use std::collections::HashMap;

/// Records that are kept in mind; then all begins anew, with what is contended now.
const RECORDS_MAX: usize = 1024;

/// A record by its name, which stays when the record goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The table.
    pub table: TableId,
    /// The encoded primary key.
    pub key: Box<[u8]>,
}

/// A record that may be worth splitting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The record's name.
    pub name: Name,
    /// The operations that calls apply to its columns.
    pub operations: Vec<(ColumnId, Operation)>,
}

#[derive(Default)]
struct Sample {
    operations: Vec<(ColumnId, Operation)>,
    applying: u32,
    others: u32,
}

/// Conflicts by record.
#[derive(Default)]
pub struct Samples {
    records: HashMap<Name, Sample>,
}

/// What a program applies to a table's rows, if it does nothing that speaks against splitting them.
pub fn applied(operations: &TableOperations) -> Option<&[(ColumnId, Operation)]> {
    operations.is_splittable().then_some(&operations.applied[..])
}

impl Samples {
    /// Begins anew.
    pub fn forget(&mut self) {
        self.records.clear();
    }

    /// A call that does this to the rows of a table was refused for a record; gives how many were that
    /// apply the same operations.
    pub fn conflict(&mut self, table: TableId, record: &Record, does: Option<&TableOperations>) -> u32 {
        if self.records.len() >= RECORDS_MAX {
            self.records.clear();
        }
        let sample = self.records.entry(Name { table, key: record.key().into() }).or_default();
        let applies = does.and_then(applied).is_some_and(|operations| sample.join(operations));
        if applies {
            sample.applying += 1
        } else {
            sample.others += 1
        }
        sample.applying
    }

    /// Takes out the records to split, in an order that depends on nothing else: those with so many
    /// conflicts, and so much impact.
    pub fn take(&mut self, conflicts_min: u32, impact_percent: u32) -> Vec<Candidate> {
        let is_hot = |sample: &Sample| {
            let impact =
                u64::from(sample.applying) * 100 >= u64::from(sample.others) * u64::from(impact_percent);
            sample.applying >= conflicts_min && impact
        };
        let hot = self.records.extract_if(|_, sample| is_hot(sample));
        let mut hot: Vec<Candidate> =
            hot.map(|(name, sample)| Candidate { name, operations: sample.operations }).collect();
        hot.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        hot
    }
}

impl Sample {
    /// Adds operations, if there is one for each column then.
    fn join(&mut self, operations: &[(ColumnId, Operation)]) -> bool {
        let fits = |(column, operation): &(ColumnId, Operation)| {
            self.operations.iter().all(|(known, other)| known != column || other == operation)
        };
        if !operations.iter().all(fits) {
            return false;
        }
        for operation in operations {
            if !self.operations.contains(operation) {
                self.operations.push(*operation);
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_value::ColumnMask;
    use std::ptr::NonNull;

    const TABLE: TableId = TableId(1);

    /// A record for as long as a test needs it.
    struct Named(NonNull<Record>);

    impl Named {
        fn new(key: &[u8]) -> Named {
            Named(Record::create(key))
        }

        fn record(&self) -> &Record {
            // SAFETY: it lives as long as this.
            unsafe { self.0.as_ref() }
        }
    }

    impl Drop for Named {
        fn drop(&mut self) {
            // SAFETY: nobody else has seen it.
            unsafe { Record::free(self.0) };
        }
    }

    fn applies(column: u8, operation: Operation) -> TableOperations {
        let (read, written) = (ColumnMask::EMPTY, ColumnMask::EMPTY);
        let applied = vec![(ColumnId(column), operation)];
        TableOperations { table: TABLE, applied, read, written, deletes: false }
    }

    /// Samples of a record on which so many calls that add and so many others conflicted.
    fn samples(record: &Record, adding: u32, others: u32) -> Samples {
        let mut samples = Samples::default();
        (0..adding).for_each(|_| _ = samples.conflict(TABLE, record, Some(&applies(1, Operation::Add))));
        (0..others).for_each(|_| _ = samples.conflict(TABLE, record, None));
        samples
    }

    /// Goal: what counts for a record are calls that apply one operation to each of its columns; calls that apply
    /// another to one of them, that write or delete besides, or that do nothing of the kind, count against it.
    #[test]
    fn conflicts_are_counted_for_and_against() {
        let named = Named::new(b"a");
        let mut samples = Samples::default();
        let mut counted = |does: Option<&TableOperations>| samples.conflict(TABLE, named.record(), does);
        assert_eq!(counted(Some(&applies(1, Operation::Add))), 1);
        assert_eq!(counted(Some(&applies(2, Operation::Max))), 2, "of another column");
        assert_eq!(counted(Some(&applies(1, Operation::Max))), 2, "the column is added to");
        let writes = TableOperations { written: ColumnMask::first(1), ..applies(1, Operation::Add) };
        let deletes = TableOperations { deletes: true, ..applies(1, Operation::Add) };
        assert_eq!(counted(Some(&writes)), 2);
        assert_eq!(counted(Some(&deletes)), 2);
        assert_eq!(counted(None), 2);
        assert_eq!(samples.take(2, 51), [], "two for it, and four against it");
        let operations = vec![(ColumnId(1), Operation::Add), (ColumnId(2), Operation::Max)];
        let name = Name { table: TABLE, key: named.record().key().into() };
        assert_eq!(samples.take(2, 50), [Candidate { name, operations }]);
    }

    /// Goal: a record is split if enough calls conflict that could commute, and if they are enough beside the others.
    #[test]
    fn a_record_is_taken_for_its_conflicts_and_their_impact() {
        let named = Named::new(b"a");
        let is_taken = |adding, others| !samples(named.record(), adding, others).take(64, 50).is_empty();
        assert!(is_taken(64, 0) && !is_taken(63, 0));
        assert!(is_taken(64, 128) && !is_taken(64, 129));
    }

    /// Goal: what is taken is counted anew, and what is not goes on being counted; records come in the order of their
    /// names.
    #[test]
    fn what_is_not_taken_goes_on_being_counted() {
        let keys = [b"c", b"a", b"b"].map(|key| Named::new(key));
        let add = applies(1, Operation::Add);
        let mut samples = Samples::default();
        for (named, conflicts) in keys.iter().zip([3, 3, 2]) {
            (0..conflicts).for_each(|_| _ = samples.conflict(TABLE, named.record(), Some(&add)));
        }
        let taken = |samples: &mut Samples| -> Vec<Box<[u8]>> {
            samples.take(3, 50).into_iter().map(|candidate| candidate.name.key).collect()
        };
        assert_eq!(taken(&mut samples), [Box::from(&b"a"[..]), Box::from(&b"c"[..])]);
        assert_eq!(samples.conflict(TABLE, keys[1].record(), Some(&add)), 1);
        assert_eq!(samples.conflict(TABLE, keys[2].record(), Some(&add)), 3);
        assert_eq!(taken(&mut samples), [Box::from(&b"b"[..])]);
    }

    /// Goal: no more records are kept in mind than there is room for: then counting begins anew.
    #[test]
    fn counting_begins_anew_with_too_many_records() {
        let hot = Named::new(b"hot");
        let mut samples = samples(hot.record(), 5, 0);
        let rare = (1..RECORDS_MAX as u32).map(|number| Named::new(&number.to_be_bytes()));
        rare.for_each(|named| _ = samples.conflict(TABLE, named.record(), None));
        assert_eq!(samples.records.len(), RECORDS_MAX);
        assert_eq!(samples.conflict(TABLE, hot.record(), Some(&applies(1, Operation::Add))), 1);
        assert_eq!(samples.records.len(), 1);
    }
}
