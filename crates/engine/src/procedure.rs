//! A program with its compiled code.

use fabius_program::catalog::{Catalog, ProcedureId};
use fabius_program::compile::{Code, compile_whole};
use fabius_program::ir::Program;
use fabius_program::slice::{TypesOnly, slice};
use fabius_value::Result;
use std::sync::Arc;

/// A program with its compiled code.
pub struct Procedure {
    /// Its number.
    pub id: ProcedureId,
    /// What it means.
    pub program: Arc<Program>,
    /// All of it, for engines that run calls in one piece.
    pub whole: Code,
    /// Whether it writes nothing.
    pub is_read_only: bool,
}

impl Procedure {
    /// Compiles a program under the catalog that verified it.
    ///
    /// # Errors
    /// `54000` if it is too large.
    pub fn new(id: ProcedureId, program: Arc<Program>, catalog: &Catalog) -> Result<Procedure> {
        let whole = compile_whole(&program, catalog)?;
        let is_read_only = !slice(&program, catalog, &TypesOnly).writes_anything;
        Ok(Procedure { id, program, whole, is_read_only })
    }
}
