//! What counts as one object: a row, or each column of it.

use fabius_program::catalog::Catalog;
use fabius_program::ir::{Block, Program, StepKind};
use fabius_value::{ColumnMask, TableId};
use std::collections::BTreeMap;

/// What a conventional transaction takes for one object of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Grain {
    /// A row: whoever writes any of it is in the way of whoever reads any of it.
    Row,
    /// A column of a row. That a row is there is what its key columns say.
    Column,
}

/// How an object is accessed: which columns are read, and which written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) read: ColumnMask,
    pub(crate) written: ColumnMask,
}

impl Access {
    /// Every column is written.
    pub(crate) const EXCLUSIVE: Access = Access { read: ColumnMask::EMPTY, written: EVERY };

    /// Whether two transactions cannot have both: one writes what the other one reads or writes.
    pub(crate) fn excludes(self, other: Access) -> bool {
        self.written.intersects(other.read.union(other.written)) || other.written.intersects(self.read)
    }

    pub(crate) fn union(self, other: Access) -> Access {
        Access { read: self.read.union(other.read), written: self.written.union(other.written) }
    }
}

const EVERY: ColumnMask = ColumnMask(u64::MAX);

/// Which columns a program may access, by table.
#[derive(Debug, Default)]
pub(crate) struct Accesses(BTreeMap<TableId, Access>);

impl Accesses {
    /// What the steps of a program name.
    pub(crate) fn of(program: &Program, catalog: &Catalog) -> Accesses {
        let mut accesses = Accesses::default();
        for row in &program.rows {
            let key = &catalog.table(row.table).primary_key;
            key.iter().for_each(|column| accesses.of_table(row.table).read.insert(*column));
        }
        accesses.block(program, catalog, &program.body);
        accesses
    }

    fn of_table(&mut self, table: TableId) -> &mut Access {
        self.0.entry(table).or_default()
    }

    fn block(&mut self, program: &Program, catalog: &Catalog, block: &Block) {
        let table = |row: fabius_program::ir::RowId| program.rows[usize::from(row.0)].table;
        for step in block {
            match &step.kind {
                StepKind::Read { row, columns } => {
                    columns.iter().for_each(|(column, _)| self.of_table(table(*row)).read.insert(*column));
                }
                StepKind::Update { row, sets } => {
                    let access = self.of_table(table(*row));
                    sets.iter().for_each(|(column, _)| access.written.insert(*column));
                }
                StepKind::Insert { row, .. } | StepKind::Delete { row } => {
                    self.of_table(table(*row)).written = EVERY;
                }
                StepKind::If { then, otherwise, .. } => {
                    self.block(program, catalog, then);
                    self.block(program, catalog, otherwise);
                }
                StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => {
                    self.block(program, catalog, body);
                }
                StepKind::ForScan { row, scan, body } => {
                    if let Some(index) = scan.index {
                        let columns = &catalog.table(table(*row)).indexes[usize::from(index.0)].columns;
                        let access = self.of_table(table(*row));
                        columns.iter().for_each(|column| access.read.insert(*column));
                    }
                    scan.filter.iter().for_each(|filter| self.block(program, catalog, &filter.steps));
                    self.block(program, catalog, body);
                }
                _ => {}
            }
        }
    }

    /// How the program accesses a row of a table that it only reads.
    pub(crate) fn reading(&self, table: TableId, grain: Grain) -> Access {
        let read = match grain {
            Grain::Row => EVERY,
            Grain::Column => self.0.get(&table).map_or(EVERY, |access| access.read),
        };
        Access { read, written: ColumnMask::EMPTY }
    }

    /// How it accesses a row that it has written.
    pub(crate) fn writing(&self, table: TableId, grain: Grain) -> Access {
        match grain {
            Grain::Row => Access::EXCLUSIVE,
            Grain::Column => self.0.get(&table).copied().unwrap_or(Access::EXCLUSIVE),
        }
    }

    /// How it accesses a row that it writes at one moment, so that nobody depends on what it reads.
    pub(crate) fn blindly_writing(&self, table: TableId) -> Access {
        let written = self.0.get(&table).map_or(EVERY, |access| access.written);
        Access { read: ColumnMask::EMPTY, written }
    }

    /// How it accesses a row that it reads in order to write it: what it reads, it is going to write, but for the key
    /// if there is anything else.
    pub(crate) fn reading_for_update(&self, table: TableId, key: ColumnMask, grain: Grain) -> Access {
        let Access { read, .. } = self.reading(table, grain);
        match read.without(key) {
            _ if grain == Grain::Row => Access::EXCLUSIVE,
            ColumnMask::EMPTY => Access::EXCLUSIVE,
            written => Access { read, written },
        }
    }
}
