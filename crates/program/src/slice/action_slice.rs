//! What each record action of a program runs, if they depend on each other (LADS, sections 3.1, 3.3.1 and 4.2.3).
//!
//! A slice is the program cut down to what one action does to its row, and what it takes to know that: pure steps and
//! conditions are computed again, from the arguments and from values that other actions read and *hand over*.
//!
//! ```text
//!                                              accounts[src]                   accounts[dst]
//! require accounts[src].balance >= amount      read balance, check
//! accounts[src].balance -= amount              write balance
//! accounts[dst].balance += amount                                              read, write balance
//! return accounts[src].balance                 read balance, hand it over
//! ```
//!
//! Actions that can abort the call *decide*: they check a condition, or compute what may not fit. They decide one
//! after the other, in the order of the text, so that the call ends with the error that the whole program ends with.
//! Nothing of the call is written before the last of them has decided.
//!
//! Rows are there when a call begins, and stay, but for those that the program itself inserts or deletes, and those of
//! tables that lose rows. Of these, whether the row is there is read like a column, and decided like a condition.
//!
//! Where keys vary with the elements of an argument list, there is an action for each *turn*. All turns run one slice,
//! which knows its own element only: what is computed from other turns is computed from all of them, when all have
//! handed over what that takes. Turns decide in any order, and the error of the first of them counts.
//!
//! ```text
//!                                        records[keys[1]]   records[keys[2]]   ...   totals[id]
//! for key in keys {
//!     require records[key].left > 0      read left, check   read left, check
//!     total += records[key].left         hand it over       hand it over             take each turn's
//!     records[key].left -= 1             write left         write left
//! }
//! totals[id].sum = total                                                             write sum
//! ```
//!
//! Invariants:
//! - an action comes after those whose values it takes, and after those that check what it computes too;
//! - a turn needs nothing that another turn of its slice has read or computed;
//! - what writes comes after all that decide, or *holds*: it runs before, and writes when the last has decided;
//! - whatever it takes has been handed over if it gets there: both go through the same conditions.

use super::Assumptions;
use super::independence::lists_stand_together;
use super::keyed_action::{Indivisible, actions_by_key};
use super::needs::Slicing;
use super::outline::{Outline, draws_random, expressions};
use super::proof::LONG;
use super::slicing::ActionSlices;
use crate::catalog::Catalog;
use crate::ir::{Program, StepId, StepKind, VariableId};

/// Takes a program apart into record actions, one for each record that its arguments name. Columns have to have values
/// that are assumed, and rows to be there that an action needs ([`ActionSlice::needs_row`](super::ActionSlice)).
///
/// # Errors
/// Why it cannot be.
pub fn take_apart(
    program: &Program,
    catalog: &Catalog,
    assumptions: &dyn Assumptions,
) -> Result<ActionSlices, Indivisible> {
    if program.step_count > LONG {
        return Err(Indivisible::Long);
    }
    if !lists_stand_together(program) {
        return Err(Indivisible::Parameters);
    }
    let outline = Outline::of(program);
    for &step in &outline.order {
        check_step(&outline, step)?;
    }
    let actions = actions_by_key(&outline, catalog, assumptions)?;
    Slicing::new(&outline, &actions).apart(catalog, assumptions)
}

fn check_step(outline: &Outline<'_>, step: StepId) -> Result<(), Indivisible> {
    let node = outline.at(step).step;
    let mut draws = false;
    expressions(node, &mut |value| draws |= draws_random(value));
    if draws {
        return Err(Indivisible::Random);
    }
    match &node.kind {
        StepKind::ForList { list, fields, .. } => {
            let is_argument =
                outline.is_parameter(*list) && outline.assignments[usize::from(list.0)].is_empty();
            let is_steady = |field: &VariableId| outline.assignments[usize::from(field.0)].len() == 1;
            let is_plain = is_argument && fields.iter().all(is_steady) && outline.loops(step).is_empty();
            if is_plain { Ok(()) } else { Err(Indivisible::Loop) }
        }
        StepKind::ForRange { .. } | StepKind::ForScan { .. } => Err(Indivisible::Loop),
        _ => Ok(()),
    }
}
