//! A program with its compiled code.

use fabius_program::arguments::Signature;
use fabius_program::catalog::{Catalog, ProcedureId};
use fabius_program::compile::{Code, compile_effects, compile_whole};
use fabius_program::ir::Program;
use fabius_program::key_plan::KeyPlan;
use fabius_value::{Error, Result};
use std::sync::{Arc, OnceLock};

/// A program with its compiled code.
pub struct Procedure {
    /// The procedure's number.
    pub id: ProcedureId,
    /// What it means.
    pub program: Arc<Program>,
    /// What its arguments are decoded by.
    pub signature: Signature,
    /// The keys that its arguments give.
    pub keys: KeyPlan,
    /// All of it, for engines that run calls in one piece.
    pub whole: Code,
    /// All of it but what only results need, once a call has not wanted them; `None` if that does not compile.
    effects: OnceLock<Option<Box<Code>>>,
    /// Whether it writes nothing.
    pub is_read_only: bool,
    /// Why it cannot be called any more, if that is so; then it has no program.
    pub gone: Option<Error>,
}

impl Procedure {
    /// Compiles a program under the catalog that verified it.
    ///
    /// # Errors
    /// `54000` if it is too large.
    pub fn new(id: ProcedureId, program: Arc<Program>, catalog: &Catalog) -> Result<Procedure> {
        let whole = compile_whole(&program, catalog)?;
        let is_read_only = !program.writes_anything();
        let signature = Signature::of(&program);
        let keys = KeyPlan::of(&program);
        Ok(Procedure {
            id,
            program,
            signature,
            keys,
            whole,
            effects: OnceLock::new(),
            is_read_only,
            gone: None,
        })
    }

    /// What an engine runs that runs calls in one piece, for a caller who wants the results or not. The catalog is that
    /// of the definitions in force.
    #[inline]
    pub fn code(&self, wants_result: bool, catalog: &Catalog) -> &Code {
        if wants_result || self.program.results.is_empty() {
            return &self.whole;
        }
        let effects = self.effects.get_or_init(|| compile_effects(&self.program, catalog).ok().map(Box::new));
        effects.as_deref().unwrap_or(&self.whole)
    }

    /// What is left of a procedure that was dropped: its number, and the reason that calls are given.
    ///
    /// # Errors
    /// None; compiling nothing does not fail.
    pub fn gone(id: ProcedureId, reason: Error, catalog: &Catalog) -> Result<Procedure> {
        let nothing = Program {
            name: String::new(),
            parameter_count: 0,
            variables: Vec::new(),
            rows: Vec::new(),
            results: Vec::new(),
            body: Vec::new(),
            step_count: 0,
            text: "".into(),
        };
        let whole = compile_whole(&nothing, catalog)?;
        // A call of it has its place in the log, like one of a number that nothing has.
        Ok(Procedure {
            id,
            program: Arc::new(nothing),
            signature: Signature::default(),
            keys: KeyPlan::default(),
            whole,
            effects: OnceLock::new(),
            is_read_only: false,
            gone: Some(reason),
        })
    }
}
