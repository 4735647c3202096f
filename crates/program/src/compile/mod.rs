//! Programs to flat register code.
//!
//! ```text
//! require accounts[src].balance >= amount      0  Locate       row 0 := table 0 [r0]
//! accounts[src].balance -= amount              1  RequireRow   row 0
//!                                              2  Read         r3 := row 0 . 1
//!                                              3  JumpCompare  r3 >= r2 -> 5
//!                                              4  Fail
//!                                              5  Binary       r4 := r3 - r2
//!                                              6  Update       row 0 { r4 }
//! ```
//!
//! The products of one program: all of it at once ([`compile_whole`]), or all but its results ([`compile_effects`]);
//! what runs before the outcome is promised ([`compile_now`]), and the rest ([`compile_later`]); what it does for one
//! element of its arguments ([`compile_action`]); what it does to one row ([`compile_action_slice`]), and its results
//! ([`compile_results`]). The phases share their control structure where both have something to do; the tape says what
//! one hands to the other.
//!
//! | module | concept |
//! |---|---|
//! | `instruction.rs` | the instructions |
//! | `code.rs` | instructions and the tables beside them |
//! | `builder.rs` | instructions so far, labels, and who has which register |
//! | `expression.rs` | expressions to instructions |
//! | `condition.rs` | conditions to jumps |
//! | `step.rs`, `repeat.rs` | steps and loops to instructions, by phase |
//! | `action.rs` | steps of a record action's slice |
//! | `join.rs` | lookups by the rows of a scan |
//! | `write.rs` | inserts, updates and fills |
//! | `late_read.rs` | columns that are read where their value is used |
//! | `presence.rs` | which rows are known to be there |
//! | `tape.rs` | what the now-phase hands to the later-phase |

mod action;
mod builder;
pub(crate) mod code;
mod condition;
mod expression;
pub(crate) mod instruction;
mod join;
mod late_read;
mod presence;
mod repeat;
mod step;
mod tape;
mod write;

pub use code::Code;
pub(crate) use step::mentioned;

use crate::catalog::Catalog;
use crate::ir::{Program, RowId, VariableId};
use crate::slice::effects::Effects;
use crate::slice::needs::Slice;
use crate::slice::outline::Outline;
use crate::slice::{ActionSlice, ActionSlices, Phases};
use builder::Builder;
use fabius_value::Result;
use instruction::Register;
use late_read::LateReads;
use presence::Presence;
use std::collections::HashMap;
use tape::{Captured, Tape};

/// The whole program, with its results.
///
/// # Errors
/// `54000` for a program that needs more registers than there are.
pub fn compile_whole(program: &Program, catalog: &Catalog) -> Result<Code> {
    Compiler::new(program, catalog, Part::Whole, None).compile()
}

/// The whole program without what only its results need: it aborts as the whole program does, and writes the same.
///
/// # Errors
/// As [`compile_whole`].
pub fn compile_effects(program: &Program, catalog: &Catalog) -> Result<Code> {
    let effects = Effects::of(program, catalog);
    let compiler = Compiler::new(program, catalog, Part::Effects, None);
    Compiler { effects: Some(&effects), ..compiler }.compile()
}

/// The now-phase. It computes results if the `Return` step has no later part.
///
/// # Errors
/// As [`compile_whole`].
pub fn compile_now(program: &Program, catalog: &Catalog, phases: &Phases) -> Result<Code> {
    Compiler::new(program, catalog, Part::Now, Some(phases)).compile()
}

/// The later-phase, with or without computing results.
///
/// # Errors
/// As [`compile_whole`].
pub fn compile_later(program: &Program, catalog: &Catalog, phases: &Phases, results: bool) -> Result<Code> {
    Compiler::new(program, catalog, Part::Later { results }, Some(phases)).compile()
}

/// A record action of a program whose actions are [independent](crate::slice::are_independent): what it does if the
/// list parameter `element_of` has one element and all others none. It computes no results, and counts no turns.
///
/// # Errors
/// As [`compile_whole`].
pub fn compile_action(program: &Program, catalog: &Catalog, element_of: Option<VariableId>) -> Result<Code> {
    Compiler::new(program, catalog, Part::Action { element_of }, None).compile()
}

/// What an action that others depend on, or that depends on others, does to its row. It computes no results.
///
/// # Errors
/// As [`compile_whole`].
pub fn compile_action_slice(program: &Program, catalog: &Catalog, action: &ActionSlice) -> Result<Code> {
    Compiler::new(program, catalog, Part::Slice { results: false }, None).of_slice(&action.slice).compile()
}

/// The program's results, from what its actions hand over.
///
/// # Errors
/// As [`compile_whole`].
pub fn compile_results(program: &Program, catalog: &Catalog, slices: &ActionSlices) -> Result<Code> {
    Compiler::new(program, catalog, Part::Slice { results: true }, None).of_slice(&slices.results).compile()
}

/// The part of a program that is being compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Whole,
    Effects,
    Now,
    Later { results: bool },
    Action { element_of: Option<VariableId> },
    Slice { results: bool },
}

struct Compiler<'p> {
    program: &'p Program,
    catalog: &'p Catalog,
    part: Part,
    /// Of phase code.
    tape: Option<Tape<'p>>,
    /// Of the code without results.
    effects: Option<&'p Effects>,
    /// Of a slice's code.
    slice: Option<&'p Slice>,
    builder: Builder<'p>,
    presence: Presence,
    late_reads: LateReads,
    outline: Outline<'p>,
    /// By row handle: where its last `Locate` has the key.
    keys: HashMap<RowId, Register>,
    /// By row handle: how many steps locate it.
    locates: Vec<usize>,
    /// By row handle: registers set aside for its key.
    key_blocks: HashMap<RowId, Register>,
    /// Of a slice's code, in a loop: the number of the turn.
    turn: Option<Register>,
    /// In the filter of a scan that the later-phase replays: captures wait for the row to pass.
    waiting: Option<Vec<Captured>>,
}

impl<'p> Compiler<'p> {
    fn new(
        program: &'p Program,
        catalog: &'p Catalog,
        part: Part,
        phases: Option<&'p Phases>,
    ) -> Compiler<'p> {
        let results = part == Part::Later { results: true };
        let outline = Outline::of(program);
        Compiler {
            program,
            catalog,
            part,
            tape: phases.map(|phases| Tape::new(program, phases, results)),
            effects: None,
            slice: None,
            builder: Builder::new(program),
            presence: Presence::nothing(program),
            late_reads: LateReads::of(&outline),
            outline,
            keys: HashMap::new(),
            locates: presence::locates(program),
            key_blocks: HashMap::new(),
            turn: None,
            waiting: None,
        }
    }

    fn of_slice(self, slice: &'p Slice) -> Compiler<'p> {
        Compiler { slice: Some(slice), ..self }
    }

    fn compile(mut self) -> Result<Code> {
        self.block(&self.program.body)?;
        self.builder.finish()
    }
}
