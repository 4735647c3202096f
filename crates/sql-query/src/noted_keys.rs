//! What a lookup join knows of one side before it reads the other: which keys are asked for, and whether rows are few.

use datafusion::arrow::array::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::error::Result as FusionResult;
use datafusion::physical_expr::PhysicalExpr;
use parking_lot::Mutex;
use std::collections::HashSet;
use std::sync::Arc;

/// How few rows an operator gives, as far as keys and limits tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fewness {
    Unknown,
    /// Those between bounds on a key.
    Bounded,
    /// One for each group.
    Grouped,
    /// Those of some values of the first columns of a key.
    Some,
    /// A bounded number.
    Few,
}

/// Different keys that are looked up at most.
pub(super) const KEYS: usize = 1000;
/// Rows of a left side at most whose keys are looked up.
const ROWS: usize = 8 * KEYS;
/// Bytes of keys that are looked up at most.
const BYTES: usize = 1 << 20;

/// The values that the left side of a join asks for.
#[derive(Debug, Default)]
pub(super) struct Noted(Mutex<Notes>);

#[derive(Debug, Default)]
struct Notes {
    keys: HashSet<Vec<ScalarValue>>,
    rows: usize,
    bytes: usize,
    /// Whether they are too many to look up.
    are_many: bool,
    /// Whether all rows have been seen.
    is_complete: bool,
}

impl Notes {
    /// Gives up if they have become too many.
    fn give_up_if_many(&mut self) {
        if self.rows > ROWS || self.keys.len() > KEYS || self.bytes > BYTES {
            *self = Notes { are_many: true, ..Notes::default() };
        }
    }
}

impl Noted {
    /// Begins anew: a recursive query runs its operators more than once.
    pub(super) fn begin(&self) {
        *self.0.lock() = Notes::default();
    }

    /// Notes the values of some expressions in rows.
    pub(super) fn note(&self, columns: &[Arc<dyn PhysicalExpr>], batch: &RecordBatch) -> FusionResult<()> {
        let mut notes = self.0.lock();
        notes.rows += batch.num_rows();
        notes.give_up_if_many();
        if notes.are_many {
            return Ok(());
        }
        let columns = columns
            .iter()
            .map(|column| column.evaluate(batch)?.into_array(batch.num_rows()))
            .collect::<FusionResult<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            // Null is equal to nothing.
            if columns.iter().any(|column| column.is_null(row)) {
                continue;
            }
            let key = columns.iter().map(|column| ScalarValue::try_from_array(column, row));
            let key = key.collect::<FusionResult<Vec<_>>>()?;
            let bytes: usize = key.iter().map(ScalarValue::size).sum();
            if notes.keys.insert(key) {
                notes.bytes += bytes;
            }
            notes.give_up_if_many();
            if notes.are_many {
                return Ok(());
            }
        }
        Ok(())
    }

    /// All rows have been seen.
    pub(super) fn end(&self) {
        self.0.lock().is_complete = true;
    }

    /// The keys, if all are known and they are few.
    pub(super) fn keys(&self) -> Option<HashSet<Vec<ScalarValue>>> {
        let notes = self.0.lock();
        (notes.is_complete && !notes.are_many).then(|| notes.keys.clone())
    }
}
