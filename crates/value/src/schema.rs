//! Tables, columns, indexes, and the numbers that name them.

use crate::{DataType, Error, Result, SqlState, limit};
use std::fmt;

/// A call's place in the input log, from 1; 0 is before every call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seq(pub u64);

impl Seq {
    /// Before every call.
    pub const ZERO: Seq = Seq(0);
    /// After every call.
    pub const MAX: Seq = Seq(u64::MAX);

    /// The place right before this one: what a call at this seq reads.
    pub fn before(self) -> Seq {
        Seq(self.0 - 1)
    }

    /// The place right after this one.
    pub fn next(self) -> Seq {
        Seq(self.0 + 1)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A table's number in its catalog, in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TableId(pub u32);

/// A column's place in its table, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnId(pub u8);

/// A secondary index's place in its table's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexId(pub u16);

/// A set of a table's columns.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct ColumnMask(pub u64);

impl ColumnMask {
    /// No column.
    pub const EMPTY: ColumnMask = ColumnMask(0);

    /// The first `count` columns.
    pub fn first(count: usize) -> ColumnMask {
        ColumnMask(if count >= 64 { u64::MAX } else { (1 << count) - 1 })
    }

    /// Just this column.
    pub fn of(column: ColumnId) -> ColumnMask {
        ColumnMask(1 << column.0)
    }

    /// Whether the column is in the set.
    pub fn contains(self, column: ColumnId) -> bool {
        self.0 >> column.0 & 1 == 1
    }

    /// Whether every column of `other` is in the set.
    pub fn covers(self, other: ColumnMask) -> bool {
        other.0 & !self.0 == 0
    }

    /// Whether no column is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the two sets share a column.
    pub fn intersects(self, other: ColumnMask) -> bool {
        self.0 & other.0 != 0
    }

    /// Columns in either.
    pub fn union(self, other: ColumnMask) -> ColumnMask {
        ColumnMask(self.0 | other.0)
    }

    /// Columns here but not in `other`.
    pub fn without(self, other: ColumnMask) -> ColumnMask {
        ColumnMask(self.0 & !other.0)
    }

    /// Columns in both.
    pub fn intersection(self, other: ColumnMask) -> ColumnMask {
        ColumnMask(self.0 & other.0)
    }

    /// Adds a column.
    pub fn insert(&mut self, column: ColumnId) {
        self.0 |= 1 << column.0;
    }

    /// How many columns.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// How many columns of the set come before `column`: its slot in a packed row.
    #[inline]
    pub fn rank(self, column: ColumnId) -> usize {
        match self.0 & ((1 << column.0) - 1) {
            // Counting takes a good many steps on machines that may lack an instruction for it.
            0 => 0,
            before => before.count_ones() as usize,
        }
    }

    /// The columns in ascending order.
    pub fn iter(self) -> impl Iterator<Item = ColumnId> + Clone {
        let mut rest = self.0;
        std::iter::from_fn(move || {
            (rest != 0).then(|| {
                let column = ColumnId(rest.trailing_zeros() as u8);
                rest &= rest - 1;
                column
            })
        })
    }
}

impl fmt::Debug for ColumnMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|column| column.0)).finish()
    }
}

impl FromIterator<ColumnId> for ColumnMask {
    fn from_iter<I: IntoIterator<Item = ColumnId>>(columns: I) -> ColumnMask {
        let mut mask = ColumnMask::EMPTY;
        columns.into_iter().for_each(|column| mask.insert(column));
        mask
    }
}

/// A column: name, type, whether it may be null.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Lower-case name.
    pub name: String,
    /// The column's type.
    pub data_type: DataType,
    /// Whether null is allowed.
    pub nullable: bool,
}

/// A secondary index: its columns in order, whether they must be unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// Lower-case name, unique in the table.
    pub name: String,
    /// Indexed columns, most significant first.
    pub columns: Vec<ColumnId>,
    /// Whether no two rows may share non-null values.
    pub unique: bool,
}

/// A table: columns, primary key, secondary indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// Lower-case name.
    pub name: String,
    /// Columns in order.
    pub columns: Vec<Column>,
    /// Primary key columns, most significant first; never nullable.
    pub primary_key: Vec<ColumnId>,
    /// `using hash`: whole-key lookups only, no scans by primary key.
    pub hash: bool,
    /// Secondary indexes in order of creation.
    pub indexes: Vec<IndexSchema>,
}

impl TableSchema {
    /// The column with this name.
    pub fn column(&self, name: &str) -> Option<ColumnId> {
        self.columns.iter().position(|column| column.name == name).map(|at| ColumnId(at as u8))
    }

    /// The index with this name.
    pub fn index(&self, name: &str) -> Option<IndexId> {
        self.indexes.iter().position(|index| index.name == name).map(|at| IndexId(at as u16))
    }

    /// The type of a column.
    pub fn data_type(&self, column: ColumnId) -> DataType {
        self.columns[column.0 as usize].data_type
    }

    /// The columns of the primary key, as a set.
    pub fn key_mask(&self) -> ColumnMask {
        self.primary_key.iter().copied().collect()
    }

    /// The columns that any secondary index holds.
    pub fn indexed_mask(&self) -> ColumnMask {
        self.indexes.iter().flat_map(|index| index.columns.iter().copied()).collect()
    }

    /// Every column.
    pub fn all_mask(&self) -> ColumnMask {
        ColumnMask::first(self.columns.len())
    }

    /// Checks everything that does not need other tables.
    ///
    /// # Errors
    /// Too many columns, names that are empty, too long or given twice, no primary key, a nullable
    /// or repeated key column, an index without columns.
    pub fn validate(&self) -> Result<()> {
        let invalid = |message: String| Err(Error::new(SqlState::INVALID_DEFINITION, message));
        let table = &self.name;
        if self.columns.len() > limit::COLUMNS {
            return Err(Error::new(
                SqlState::PROGRAM_LIMIT,
                format!(
                    "table {table} has {} columns, at most {} are allowed",
                    self.columns.len(),
                    limit::COLUMNS
                ),
            ));
        }
        let names = self.columns.iter().map(|c| &c.name).chain(self.indexes.iter().map(|i| &i.name));
        for name in names.chain([table]) {
            if name.is_empty() || name.len() > limit::NAME_BYTES {
                return invalid(format!("name {name:?} must have 1 to {} bytes", limit::NAME_BYTES));
            }
        }
        for (at, column) in self.columns.iter().enumerate() {
            if self.columns[..at].iter().any(|other| other.name == column.name) {
                return invalid(format!("table {table} has two columns named {}", column.name));
            }
        }
        for (at, index) in self.indexes.iter().enumerate() {
            if self.indexes[..at].iter().any(|other| other.name == index.name) {
                return invalid(format!("table {table} has two indexes named {}", index.name));
            }
            if index.columns.is_empty() {
                return invalid(format!("index {} of table {table} has no columns", index.name));
            }
            if index.columns.iter().copied().collect::<ColumnMask>().len() != index.columns.len() {
                return invalid(format!("index {} of table {table} names a column twice", index.name));
            }
        }
        if self.primary_key.is_empty() {
            return invalid(format!("table {table} has no primary key"));
        }
        if self.key_mask().len() != self.primary_key.len() {
            return invalid(format!("primary key of table {table} names a column twice"));
        }
        for &column in &self.primary_key {
            let column = &self.columns[column.0 as usize];
            if column.nullable {
                return invalid(format!("primary key column {table}.{} must not be null", column.name));
            }
        }
        Ok(())
    }
}
