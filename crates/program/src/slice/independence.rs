//! Whether a program's record actions need nothing of each other (LADS, definition 2).
//!
//! ```text
//! for line in lines { stock[line.item].sold += line.count }     independent: an action for each line
//! require stock[first].left > 0                                 not: it decides whether the others happen
//! ```
//!
//! Then the program does the same for an element of a list whether or not there are others, so an action is the
//! program run with nothing but its own element. What is read may go into results: they are another matter.

use super::Assumptions;
use super::delta::delta_shapes;
use super::outline::{Outline, draws_random, variables};
use super::proof::prove;
use crate::catalog::Catalog;
use crate::ir::{Expression, Program, StepId, StepKind, Type, Variable, VariableId};
use crate::record_action::{RecordAction, record_actions};

/// Whether each record action can be executed alone, in any order, if all rows that the program names are there:
/// then nothing else makes it abort but too many elements, one loop turn each
/// ([`LOOP_TURNS`](fabius_value::limit::LOOP_TURNS)), and columns have values that are assumed.
pub fn are_independent(program: &Program, catalog: &Catalog, assumptions: &dyn Assumptions) -> bool {
    // No index tells more rows apart than the primary key does.
    let is_alone = |action: &RecordAction| {
        let changes_rows = action.inserts || action.deletes || action.coarse;
        let has_indexes = !catalog.table(action.table).indexes.is_empty();
        action.dependencies.is_empty() && action.previous.is_none() && !changes_rows && !has_indexes
    };
    let outline = Outline::of(program);
    let is_plain = |step: &StepId| Known { outline: &outline, at: *step }.step();
    lists_stand_together(program)
        && outline.order.iter().all(is_plain)
        && record_actions(program, catalog).iter().all(is_alone)
        && {
            let proofs = prove(&outline, catalog, &delta_shapes(&outline, catalog), assumptions);
            proofs.failures.is_empty()
        }
}

/// Whether no scalar stands between lists among the parameters, so that it is known where those behind the lists begin.
pub fn lists_stand_together(program: &Program) -> bool {
    let parameters = &program.variables[..program.parameter_count];
    let is_list = |parameter: &Variable| matches!(parameter.ty, Type::List(_));
    let kinds = parameters.chunk_by(|one, next| is_list(one) == is_list(next));
    kinds.filter(|kind| is_list(&kind[0])).count() <= 1
}

/// What a step can know in one turn of its loop alone.
struct Known<'o, 'p> {
    outline: &'o Outline<'p>,
    at: StepId,
}

impl Known<'_, '_> {
    /// Whether what the step does to rows follows from scalar arguments, the element and the row itself.
    fn step(&self) -> bool {
        let outline = self.outline;
        match &outline.at(self.at).step.kind {
            StepKind::Assign { .. }
            | StepKind::Exists { .. }
            | StepKind::Read { .. }
            | StepKind::RequireRow { .. }
            | StepKind::Return { .. } => true,
            StepKind::Locate { key, .. } => {
                let loops = outline.loops(self.at);
                let varies = |step: &StepId| key.iter().any(|part| self.is_of_element(part, *step));
                key.iter().all(|part| self.expression(part)) && loops.iter().all(varies)
            }
            StepKind::Update { sets, .. } => sets.iter().all(|(_, value)| self.expression(value)),
            StepKind::If { condition, .. } => self.expression(condition),
            StepKind::ForList { list, .. } => {
                let is_argument =
                    outline.is_parameter(*list) && outline.assignments[usize::from(list.0)].is_empty();
                let is_same = |step: &StepId| match &outline.at(*step).step.kind {
                    StepKind::ForList { list: other, .. } => other == list,
                    _ => false,
                };
                let is_only = outline.order.iter().filter(|step| is_same(step)).count() == 1;
                is_argument && is_only && outline.loops(self.at).is_empty()
            }
            _ => false,
        }
    }

    fn expression(&self, expression: &Expression) -> bool {
        let mut is_known = !draws_random(expression);
        variables(expression, &mut |variable| is_known &= self.variable(variable));
        is_known
    }

    /// A variable that is assigned in one place means the same whatever other turns do.
    fn variable(&self, variable: VariableId) -> bool {
        let outline = self.outline;
        match outline.assignments[usize::from(variable.0)][..] {
            [] => {
                let is_scalar =
                    matches!(outline.program.variables[usize::from(variable.0)].ty, Type::Scalar(_));
                is_scalar && outline.is_parameter(variable)
            }
            [step] if outline.dominates(step, self.at) => match &outline.at(step).step.kind {
                StepKind::ForList { .. } | StepKind::Read { .. } | StepKind::Exists { .. } => true,
                StepKind::Assign { value, .. } => Known { outline, at: step }.expression(value),
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether an expression uses the element of this loop over a list.
    fn is_of_element(&self, expression: &Expression, step: StepId) -> bool {
        let mut found = false;
        variables(expression, &mut |variable| {
            found |= self.outline.assignments[usize::from(variable.0)] == [step];
        });
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slice::TypesOnly;
    use crate::verify;

    fn independent(body: &str) -> bool {
        let text = format!(
            "table t {{ a: int, b: int, c: int, primary key (a) }}
            procedure p(x: int, y: int, l: list of (k: int, v: int), m: list of int) -> bigint {{
                var n: bigint = 0
                {body}
                return n
            }}"
        );
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("it verifies");
        let (_, program) = catalog.procedures().next().expect("a procedure");
        are_independent(program, &catalog, &TypesOnly)
    }

    /// Goal: what an element alone tells is independent; what other rows, other elements or their number tell is not.
    #[test]
    fn an_action_knows_its_own_element_only() {
        assert!(independent("for e in l { t[e.k].c = e.v }"));
        assert!(independent("for k in m { n = greatest(n, t[k].c) } for e in l { t[e.k].c = x }"));
        assert!(independent("for k in m { n = greatest(n, t[k].c) }"));
        assert!(independent("t[x].b = y t[y].c = x"));
        assert!(independent("for e in l { t[e.k].c = t[e.k].b }"));
        assert!(independent("for e in l { if e.v > 0 { t[e.k].c = 1 } }"));
        assert!(!independent("t[x].c = t[y].c"));
        assert!(!independent("for e in l { t[e.k].c = t[e.v].c }"));
        assert!(!independent("for e in l { n = greatest(n, e.v) t[e.k].c = 1 if n > 3 { t[e.v].b = 1 } }"));
        assert!(!independent("for e in l { t[x].c = e.v }"));
        assert!(!independent("t[x].c = count(l)::int"));
        assert!(!independent("for e in l { require e.v > 0, \"v\" t[e.k].c = e.v }"));
        assert!(!independent("for e in l { t[e.k].c = e.v + 1 }"));
        assert!(!independent("for e in l { for k in m { t[e.k].c = k } }"));
    }
}
