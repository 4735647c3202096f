//! Where rows are: the partition of a key, and tables that every partition has.
//!
//! A row is in the partition that the *first column* of its primary key says: all rows of a TPC-C
//! warehouse are together. Integers are divided by the number of partitions, other values are hashed.
//!
//! A table is *replicated*, as TPC-C's items, if calls that write elsewhere only read it, and whoever inserts
//! into it touches nothing else. Replicated rows are not copied: a call that holds any partition may read them,
//! because a call that writes them holds them all.

use fabius_program::access::Access;
use fabius_program::catalog::Catalog;
use fabius_program::known_key::AccessKind;
use fabius_value::{DataType, Datum, Key, TableId};

/// Where the rows of each table are.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    /// How many partitions there are.
    pub partitions: usize,
    tables: Vec<Table>,
}

#[derive(Clone, Copy, Debug)]
struct Table {
    /// The type of the first column of its key.
    first: DataType,
    /// Whether some program reads it and writes elsewhere.
    is_shared: bool,
    /// Whether some program does more to it than to fill it.
    is_changed: bool,
}

impl Table {
    #[inline]
    fn is_replicated(&self) -> bool {
        self.is_shared && !self.is_changed
    }
}

impl Layout {
    /// No tables yet.
    pub fn new(partitions: usize) -> Layout {
        Layout { partitions, tables: Vec::new() }
    }

    /// Adds tables that are new.
    pub fn follow(&mut self, catalog: &Catalog) {
        let new = catalog.table_numbers().skip(self.tables.len());
        self.tables.extend(new.map(|(_, schema)| Table {
            first: schema.data_type(schema.primary_key[0]),
            is_shared: false,
            is_changed: false,
        }));
    }

    /// Takes in what a program accesses.
    pub fn learn(&mut self, accesses: &[Access]) {
        for id in accesses.iter().map(|access| access.table) {
            let is_own = |access: &&Access| access.table == id;
            let own = || accesses.iter().filter(is_own);
            let others = || accesses.iter().filter(|access| !is_own(access));
            let fills = |access: &Access| access.kind == AccessKind::Insert || !access.writes_anything();
            let is_written = own().any(Access::writes_anything);
            let table = &mut self.tables[id.0 as usize];
            table.is_changed |= is_written && (others().next().is_some() || !own().all(fills));
            table.is_shared |= !is_written && others().any(Access::writes_anything);
        }
    }

    /// Whether every partition has the table.
    #[inline]
    pub fn is_replicated(&self, table: TableId) -> bool {
        self.tables[table.0 as usize].is_replicated()
    }

    /// The partition of rows whose key begins with this value; `None` for null, which no key has.
    #[inline]
    pub fn partition(&self, table: TableId, first: Datum<'_>) -> Option<usize> {
        match first {
            Datum::Null => None,
            Datum::Int(number) => Some(self.partition_of_number(number)),
            other => {
                let mut key = Key::new();
                key.push(other, self.tables[table.0 as usize].first, false).ok()?;
                Some((key.hash() % self.partitions as u64) as usize)
            }
        }
    }

    /// The number that says which partition an encoded primary key is in; `None` if every partition has it, or if it is
    /// not easily told.
    #[inline]
    pub fn first_number(&self, table: TableId, key: &[u8]) -> Option<i64> {
        let of = &self.tables[table.0 as usize];
        if of.is_replicated() {
            return None;
        }
        match of.first {
            DataType::Int => {
                let bytes: [u8; 4] = key.first_chunk().copied()?;
                Some(i64::from((u32::from_be_bytes(bytes) ^ 1 << 31) as i32))
            }
            DataType::BigInt => {
                let bytes: [u8; 8] = key.first_chunk().copied()?;
                Some((u64::from_be_bytes(bytes) ^ 1 << 63) as i64)
            }
            _ => None,
        }
    }

    /// The partition of rows whose key begins with this number.
    #[inline]
    pub fn partition_of_number(&self, number: i64) -> usize {
        number.rem_euclid(self.partitions as i64) as usize
    }
}
