//! The tables and procedures that a program can name.
//!
//! A catalog is immutable; a definition gives a new one with the next version. Numbers are never
//! reused, so that a log entry means the same under every later version.

use crate::ir::Program;
use fabius_value::{Error, Result, SqlState, TableId, TableSchema};
use std::sync::Arc;

/// A procedure's number in its catalog, in order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcedureId(pub u32);

/// The definitions in force at some point of the log.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Goes up by one with every definition.
    pub version: u64,
    tables: Vec<Arc<TableSchema>>,
    procedures: Vec<Arc<Program>>,
}

impl Catalog {
    /// A catalog without definitions.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// The table with this number; panics if there is none (numbers come from the catalog).
    pub fn table(&self, table: TableId) -> &Arc<TableSchema> {
        &self.tables[table.0 as usize]
    }

    /// All tables by number.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Arc<TableSchema>)> {
        self.tables.iter().enumerate().map(|(at, table)| (TableId(at as u32), table))
    }

    /// The table with this name.
    pub fn find_table(&self, name: &str) -> Option<TableId> {
        self.tables.iter().position(|table| table.name == name).map(|at| TableId(at as u32))
    }

    /// The procedure with this number, if there is one.
    pub fn procedure(&self, procedure: ProcedureId) -> Option<&Arc<Program>> {
        self.procedures.get(procedure.0 as usize)
    }

    /// All procedures by number.
    pub fn procedures(&self) -> impl Iterator<Item = (ProcedureId, &Arc<Program>)> {
        self.procedures.iter().enumerate().map(|(at, program)| (ProcedureId(at as u32), program))
    }

    /// The newest procedure with this name: a later definition replaces an earlier one for new
    /// calls, while log entries keep meaning the earlier one.
    pub fn find_procedure(&self, name: &str) -> Option<ProcedureId> {
        self.procedures.iter().rposition(|program| program.name == name).map(|at| ProcedureId(at as u32))
    }

    /// This catalog with one more table.
    ///
    /// # Errors
    /// What [`TableSchema::validate`] finds; `42710` if the name is taken.
    pub fn with_table(&self, schema: TableSchema) -> Result<(Catalog, TableId)> {
        schema.validate()?;
        if self.find_table(&schema.name).is_some() {
            return Err(Error::new(
                SqlState::DUPLICATE_OBJECT,
                format!("table {} exists already", schema.name),
            ));
        }
        let mut next = self.clone();
        next.version += 1;
        next.tables.push(Arc::new(schema));
        Ok((next, TableId(self.tables.len() as u32)))
    }

    /// This catalog with one more procedure.
    pub fn with_procedure(&self, program: Program) -> (Catalog, ProcedureId) {
        let mut next = self.clone();
        next.version += 1;
        next.procedures.push(Arc::new(program));
        (next, ProcedureId(self.procedures.len() as u32))
    }
}
