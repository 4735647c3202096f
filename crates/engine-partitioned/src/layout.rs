//! Where rows are: the partition of a key, and tables that every partition has.
//!
//! A row is in the partition that the *first column* of its primary key says: all rows of a TPC-C
//! warehouse are together. Integers are divided by the number of partitions, other values are hashed.
//!
//! A table is *replicated*, as TPC-C's items, if calls that write elsewhere only read it, and whoever writes it
//! touches nothing else. Replicated rows are not copied: a call that holds any partition may read them,
//! because a call that writes them holds them all.

use crate::footprint::Footprint;
use fabius_value::{DataType, Datum, TableId};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Where the rows of each table are.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// How many partitions there are.
    pub partitions: usize,
    tables: Vec<Table>,
}

#[derive(Clone, Copy, Debug)]
struct Table {
    is_replicated: bool,
    first: DataType,
}

impl Layout {
    /// The layout of tables, given the types of the first columns of their keys and what all programs touch.
    pub fn of(partitions: usize, firsts: impl Iterator<Item = DataType>, programs: &[Footprint]) -> Layout {
        let table = |(at, first)| {
            let id = TableId(at as u32);
            Table { first, is_replicated: is_replicated(id, programs) }
        };
        Layout { partitions, tables: firsts.enumerate().map(table).collect() }
    }

    /// Whether every partition has the table.
    #[inline]
    pub fn is_replicated(&self, table: TableId) -> bool {
        self.tables[table.0 as usize].is_replicated
    }

    /// The partition of a value of the first key column; `None` for null, which no key has.
    #[inline]
    pub fn partition(&self, first: Datum<'_>) -> Option<usize> {
        let count = self.partitions as u64;
        match first {
            Datum::Null => None,
            Datum::Int(value) => Some(value.rem_euclid(count as i64) as usize),
            other => Some((hash_of(0, &[other]) % count) as usize),
        }
    }

    /// The partition of an encoded primary key; `None` if every partition has it, or if it is not easily told.
    #[inline]
    pub fn partition_of_key(&self, table: TableId, key: &[u8]) -> Option<usize> {
        let Table { is_replicated, first } = self.tables[table.0 as usize];
        if is_replicated {
            return None;
        }
        let value = match first {
            DataType::Int => {
                let bytes: [u8; 4] = key.first_chunk().copied()?;
                i64::from((u32::from_be_bytes(bytes) ^ 1 << 31) as i32)
            }
            DataType::BigInt => {
                let bytes: [u8; 8] = key.first_chunk().copied()?;
                (u64::from_be_bytes(bytes) ^ 1 << 63) as i64
            }
            _ => return None,
        };
        self.partition(Datum::Int(value))
    }
}

fn is_replicated(table: TableId, programs: &[Footprint]) -> bool {
    let writes_elsewhere =
        |program: &Footprint| program.inserts.iter().chain(&program.changes).any(|written| *written != table);
    let mut is_read_by_writers = false;
    for program in programs {
        let writes = program.writes(table);
        if writes && program.tables().any(|touched| touched != table) {
            return false;
        }
        if writes && program.changes.contains(&table) {
            return false;
        }
        is_read_by_writers |=
            !writes && program.tables().any(|touched| touched == table) && writes_elsewhere(program);
    }
    is_read_by_writers
}

/// A hash of key columns, the same in every run.
pub fn hash_of(salt: u64, columns: &[Datum<'_>]) -> u64 {
    let mut hasher = DefaultHasher::new();
    salt.hash(&mut hasher);
    for column in columns {
        match column {
            Datum::Null => 0u8.hash(&mut hasher),
            Datum::Boolean(value) => value.hash(&mut hasher),
            Datum::Int(value) => value.hash(&mut hasher),
            Datum::Numeric(value) => value.hash(&mut hasher),
            Datum::Double(value) => (value + 0.0).to_bits().hash(&mut hasher),
            Datum::Text(value) => value.hash(&mut hasher),
            Datum::Bytes(value) => value.hash(&mut hasher),
        }
    }
    hasher.finish()
}
