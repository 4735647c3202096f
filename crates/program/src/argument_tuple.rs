//! Tuples of expressions that are functions of a call's arguments alone, computed before the call runs.
//!
//! ```text
//! for line in lines { stock[line.supply, line.item].quantity -= line.quantity }
//!
//! tuple (line.supply, line.item): one for each element of the argument `lines`
//! ```
//!
//! Expressions of a tuple are parameters, fields of the elements of one list parameter, and constants.
//! Whoever plans with tuples gets all of them, whether the program comes by the step that they stand in
//! or not.

use crate::arguments::Arguments;
use crate::ir::{Expression, ExpressionKind, Program, StepId, StepKind, Type, VariableId};
use crate::slice::outline::Outline;
use fabius_value::{Datum, Value, data_type::Family};
use std::collections::HashMap;

/// Expressions of a tuple.
const PARTS_MAX: usize = 16;

/// A tuple of expressions, as the places that their values come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ArgumentTuple {
    parts: Vec<Part>,
    /// The list parameter whose elements the tuple varies with, and how many fields one has.
    list: Option<(u16, u16)>,
}

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Parameter(u16),
    Field(u16),
    Constant(Value),
}

/// What a value is a copy of.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    /// A field of the elements of a list parameter, or the only one of a scalar parameter: parameter and field.
    Argument(u16, u16),
    /// A constant.
    Constant(Value),
}

impl ArgumentTuple {
    /// Where its first value comes from, if it has one.
    pub fn first(&self) -> Option<Origin> {
        Some(match (self.parts.first()?, self.list) {
            (Part::Parameter(parameter), _) => Origin::Argument(*parameter, 0),
            (Part::Field(field), Some((list, _))) => Origin::Argument(list, *field),
            (Part::Field(_), None) => unreachable!("a field is one of a list's elements"),
            (Part::Constant(value), _) => Origin::Constant(value.clone()),
        })
    }

    /// How many expressions it has.
    pub fn len(&self) -> usize {
        self.parts.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// The list parameter whose elements it varies with.
    pub fn list(&self) -> Option<u16> {
        self.list.map(|(list, _)| list)
    }

    /// Computes the tuple for a call with these arguments, once or for each element of a list: its values, and the
    /// list with the element's number.
    #[inline]
    pub fn for_each<'k>(
        &'k self,
        arguments: Arguments<'k, '_>,
        mut visit: impl FnMut(&[Datum<'k>], Option<(u16, usize)>),
    ) {
        let mut values = [Datum::Null; PARTS_MAX];
        let values = &mut values[..self.parts.len()];
        for (value, part) in values.iter_mut().zip(&self.parts) {
            match part {
                Part::Parameter(at) => *value = arguments.of(usize::from(*at))[0],
                Part::Constant(constant) => *value = Datum::from_value(constant),
                Part::Field(_) => {}
            }
        }
        let Some((list, width)) = self.list else { return visit(values, None) };
        let elements = arguments.of(usize::from(list)).chunks_exact(usize::from(width));
        for (row, element) in elements.enumerate() {
            for (value, part) in values.iter_mut().zip(&self.parts) {
                if let Part::Field(field) = part {
                    *value = element[usize::from(*field)];
                }
            }
            visit(values, Some((list, row)));
        }
    }
}

/// A loop over a list parameter. Two loops over one list are at different elements of it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ListLoop {
    list: VariableId,
    step: StepId,
}

/// Finds out which expressions of a program are functions of its arguments.
pub(crate) struct TuplePlanner<'p> {
    program: &'p Program,
    /// Variables that stand for a field of the current element of a list parameter.
    fields: HashMap<VariableId, (ListLoop, u16)>,
    /// By parameter: whether it keeps its value.
    is_kept: Vec<bool>,
}

impl<'p> TuplePlanner<'p> {
    /// A planner for a program with this outline.
    pub fn new(program: &'p Program, outline: &Outline<'_>) -> TuplePlanner<'p> {
        let assignments = |variable: VariableId| outline.assignments[usize::from(variable.0)].len();
        let mut fields = HashMap::new();
        for &step in &outline.order {
            let StepKind::ForList { list, fields: names, .. } = &outline.at(step).step.kind else { continue };
            if outline.is_parameter(*list) && assignments(*list) == 0 {
                let steady = names.iter().enumerate().filter(|(_, variable)| assignments(**variable) == 1);
                let list_loop = ListLoop { list: *list, step };
                fields.extend(steady.map(|(field, &variable)| (variable, (list_loop, field as u16))));
            }
        }
        let is_kept =
            (0..program.parameter_count).map(|at| assignments(VariableId(at as u16)) == 0).collect();
        TuplePlanner { program, fields, is_kept }
    }

    /// The tuple of these expressions, if they make one.
    pub fn tuple<'e>(
        &self,
        expressions: impl ExactSizeIterator<Item = &'e Expression>,
    ) -> Option<ArgumentTuple> {
        let count = expressions.len();
        Some(self.leading(expressions.map(Some))).filter(|tuple| tuple.len() == count)
    }

    /// The longest tuple that the first of these expressions make; where one is missing, it ends.
    pub fn leading<'e>(&self, expressions: impl Iterator<Item = Option<&'e Expression>>) -> ArgumentTuple {
        let mut around = None;
        let parts = expressions.map_while(|expression| self.part(expression?, &mut around));
        let parts = parts.take(PARTS_MAX).collect();
        let list = around.map(|around: ListLoop| {
            let Type::List(fields) = &self.program.variables[usize::from(around.list.0)].ty else {
                unreachable!("loops are over lists");
            };
            (around.list.0, fields.len() as u16)
        });
        ArgumentTuple { parts, list }
    }

    /// A part of a tuple that varies with the elements of the loop `around`, which may be this part's.
    fn part(&self, expression: &Expression, around: &mut Option<ListLoop>) -> Option<Part> {
        match &expression.kind {
            ExpressionKind::Constant(value) => Some(Part::Constant(value.clone())),
            ExpressionKind::Cast(inner)
                if expression.ty.data_type.family() == Family::Integer
                    && inner.ty.data_type.family() == Family::Integer =>
            {
                self.part(inner, around)
            }
            ExpressionKind::Variable(variable) => {
                if let Some(&(of, field)) = self.fields.get(variable) {
                    return (*around.get_or_insert(of) == of).then_some(Part::Field(field));
                }
                let is_kept = self.is_kept.get(usize::from(variable.0)).is_some_and(|kept| *kept);
                is_kept.then_some(Part::Parameter(variable.0))
            }
            _ => None,
        }
    }
}
