//! What a program does but for its results: for calls whose results nobody wants.
//!
//! ```text
//! for read in reads {
//!     highest = greatest(highest, t[read.key].value)     the row must be there; its value only the result needs
//! }
//! for write in writes { t[write.key].value = ... }       all of it
//! return highest                                         nothing
//! ```
//!
//! It is the now-phase of a program of which every written value is known now: what decides the outcome, and what is
//! written, with all that these depend on. So a call that aborts does so with the same error, and one that commits
//! leaves the same rows.

use super::now_slice::{Choices, NowSlice};
use super::outline::Outline;
use super::{TypesOnly, delta, proof};
use crate::catalog::Catalog;
use crate::ir::Program;
use fabius_value::ColumnMask;

/// The steps that decide a call's outcome and what it writes.
#[derive(Clone, Debug)]
pub(crate) struct Effects {
    /// By step number: whether it runs.
    pub steps: Vec<bool>,
    /// By step number: for a `Read`, the columns that it reads.
    pub reads: Vec<ColumnMask>,
}

impl Effects {
    /// The effects of a program, whatever its arguments and the data.
    pub fn of(program: &Program, catalog: &Catalog) -> Effects {
        let outline = Outline::of(program);
        let shapes = delta::delta_shapes(&outline, catalog);
        let proofs = proof::prove(&outline, catalog, &shapes, &TypesOnly);
        let mut choices = Choices {
            ordinary: vec![true; shapes.len()],
            reads: vec![ColumnMask::EMPTY; program.step_count],
            writes: vec![ColumnMask::EMPTY; program.step_count],
            steps: vec![false; program.step_count],
            postponed: vec![ColumnMask::EMPTY; program.step_count],
            everything: false,
        };
        for site in &outline.writes {
            choices.writes[usize::from(site.step.0)].insert(site.column);
        }
        let NowSlice { steps, reads, .. } = NowSlice::of(&outline, catalog, &shapes, &proofs, &choices);
        Effects { steps, reads }
    }
}
