//! The tables and procedures that a program can name.
//!
//! A catalog is immutable; a definition gives a new one with the next version, which shares with the
//! one before what it did not change. Numbers are never reused, so that a log entry means the same
//! under every later version; what was dropped keeps its number.

use crate::ir::Program;
use crate::shelf::Shelf;
use fabius_value::{Error, Result, SqlState, TableId, TableSchema};
use std::collections::HashMap;
use std::sync::Arc;

/// A procedure's number in its catalog, in order of definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcedureId(pub u32);

/// The definitions in force at some point of the log.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// Goes up by one with every definition.
    pub version: u64,
    tables: Vec<Entry>,
    procedures: Shelf<Option<Arc<Program>>>,
    table_names: Names,
    procedure_names: Names,
}

/// A table, or one that was.
#[derive(Clone, Debug)]
struct Entry {
    schema: Arc<TableSchema>,
    dropped: bool,
}

impl Catalog {
    /// A catalog without definitions.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// The table with this number, also after it was dropped; panics if there never was one (numbers
    /// come from the catalog).
    pub fn table(&self, table: TableId) -> &Arc<TableSchema> {
        &self.tables[table.0 as usize].schema
    }

    /// All tables by number, without those that were dropped.
    pub fn tables(&self) -> impl Iterator<Item = (TableId, &Arc<TableSchema>)> {
        let numbered = self.tables.iter().enumerate();
        numbered.filter(|(_, entry)| !entry.dropped).map(|(at, entry)| (TableId(at as u32), &entry.schema))
    }

    /// Every number that a table has or had, in order, with its schema.
    pub fn table_numbers(&self) -> impl Iterator<Item = (TableId, &Arc<TableSchema>)> {
        self.tables.iter().enumerate().map(|(at, entry)| (TableId(at as u32), &entry.schema))
    }

    /// Whether the table with this number was dropped.
    pub fn is_dropped(&self, table: TableId) -> bool {
        self.tables[table.0 as usize].dropped
    }

    /// The table with this name.
    pub fn find_table(&self, name: &str) -> Option<TableId> {
        self.table_names.get(name).map(TableId)
    }

    /// The procedure with this number, if there is one.
    pub fn procedure(&self, procedure: ProcedureId) -> Option<&Arc<Program>> {
        self.procedures.get(procedure.0 as usize)?.as_ref()
    }

    /// All procedures by number, without those that were dropped.
    pub fn procedures(&self) -> impl Iterator<Item = (ProcedureId, &Arc<Program>)> {
        let numbered = self.procedures.iter().enumerate();
        numbered.filter_map(|(at, program)| Some((ProcedureId(at as u32), program.as_ref()?)))
    }

    /// The newest procedure with this name: a later definition replaces an earlier one for new
    /// calls, while log entries keep meaning the earlier one.
    pub fn find_procedure(&self, name: &str) -> Option<ProcedureId> {
        self.procedure_names.get(name).map(ProcedureId)
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
        let mut next = self.next();
        let id = self.tables.len() as u32;
        next.table_names.set(&schema.name, Some(id));
        next.tables.push(Entry { schema: Arc::new(schema), dropped: false });
        Ok((next, TableId(id)))
    }

    /// This catalog with one more procedure.
    pub fn with_procedure(&self, program: Program) -> (Catalog, ProcedureId) {
        let mut next = self.next();
        let id = self.procedures.len() as u32;
        next.procedure_names.set(&program.name, Some(id));
        next.procedures.push(Some(Arc::new(program)));
        (next, ProcedureId(id))
    }

    /// This catalog without a table, and without the procedures that name it, whose numbers are given
    /// too.
    ///
    /// # Errors
    /// `42P01` if there is no such table.
    pub fn without_table(&self, name: &str) -> Result<(Catalog, TableId, Vec<ProcedureId>)> {
        let Some(table) = self.find_table(name) else {
            return Err(Error::new(SqlState::UNDEFINED_TABLE, format!("table {name} does not exist")));
        };
        let names_it = |program: &Program| program.rows.iter().any(|row| row.table == table);
        let gone: Vec<ProcedureId> =
            self.procedures().filter(|(_, program)| names_it(program)).map(|(id, _)| id).collect();
        let mut next = self.next();
        next.tables[table.0 as usize].dropped = true;
        next.table_names.set(name, None);
        gone.iter().for_each(|procedure| next.forget(*procedure));
        Ok((next, table, gone))
    }

    /// This catalog without the newest procedure of a name; its number is given too.
    ///
    /// # Errors
    /// `42883` if there is no such procedure.
    pub fn without_procedure(&self, name: &str) -> Result<(Catalog, ProcedureId)> {
        let Some(procedure) = self.find_procedure(name) else {
            return Err(Error::new(SqlState::UNDEFINED_FUNCTION, format!("procedure {name} does not exist")));
        };
        let mut next = self.next();
        next.forget(procedure);
        Ok((next, procedure))
    }

    fn next(&self) -> Catalog {
        Catalog { version: self.version + 1, ..self.clone() }
    }

    fn forget(&mut self, procedure: ProcedureId) {
        if let Some(name) = self.procedure(procedure).map(|program| program.name.clone())
            && self.find_procedure(&name) == Some(procedure)
        {
            self.procedure_names.set(&name, None);
        }
        self.procedures.set(procedure.0 as usize, None);
    }
}

/// Names in how many parts: a change copies one of them.
const PARTS: usize = 256;

/// Numbers by name; versions share the parts that they have in common.
#[derive(Clone, Debug, Default)]
struct Names(Vec<Arc<HashMap<Arc<str>, u32>>>);

impl Names {
    /// The part that a name is in (FNV-1a over its bytes).
    fn part(name: &str) -> usize {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        (hash >> 32) as usize % PARTS
    }

    fn get(&self, name: &str) -> Option<u32> {
        self.0.get(Names::part(name))?.get(name).copied()
    }

    fn set(&mut self, name: &str, number: Option<u32>) {
        if self.0.is_empty() {
            self.0.resize_with(PARTS, Arc::default);
        }
        let part = Arc::make_mut(&mut self.0[Names::part(name)]);
        match number {
            Some(number) => part.insert(name.into(), number),
            None => part.remove(name),
        };
    }
}
