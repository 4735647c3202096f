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
    /// Its name.
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
