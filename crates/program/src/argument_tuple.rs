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

use crate::arguments::ArgumentReader;
use crate::ir::{Expression, ExpressionKind, Program, ScalarType, StepId, StepKind, Type, VariableId};
use crate::slice::outline::Outline;
use fabius_value::{Datum, Value, data_type::Family};
use std::collections::HashMap;

/// Parameters, and fields of a list, that tuples can name.
const PLACES_MAX: usize = 16;
/// Expressions of a tuple.
const PARTS_MAX: usize = 16;

/// The tuples of a program.
#[derive(Clone, Debug, Default)]
pub struct ArgumentTuples {
    tuples: Vec<Tuple>,
    parameters: Vec<Declared>,
}

#[derive(Clone, Debug)]
struct Tuple {
    parts: Vec<Part>,
    /// The list parameter whose elements the tuple varies with.
    list: Option<u16>,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
enum Part {
    Parameter(u16),
    Field(u16),
    Constant(Value),
}

#[derive(Clone, Debug)]
enum Declared {
    Scalar(ScalarType),
    List(Vec<ScalarType>),
}

impl ArgumentTuples {
    /// How many there are; they are numbered from 0.
    pub fn len(&self) -> usize {
        self.tuples.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tuples.is_empty()
    }

    /// Computes the tuples of a call with these encoded arguments, as far as they decode (with others, the
    /// call aborts before it reads anything): the number of the tuple, and its values.
    pub fn for_each(&self, arguments: &[u8], mut visit: impl FnMut(usize, &[Datum<'_>])) {
        let mut reader = ArgumentReader::new(arguments);
        let mut scalars = [Datum::Null; PLACES_MAX];
        let mut fields = [Datum::Null; PLACES_MAX];
        let mut make = |list: Option<u16>, scalars: &[Datum<'_>], fields: &[Datum<'_>]| {
            for (number, tuple) in self.tuples.iter().enumerate().filter(|(_, tuple)| tuple.list == list) {
                let mut values = [Datum::Null; PARTS_MAX];
                for (value, part) in values.iter_mut().zip(&tuple.parts) {
                    *value = match part {
                        Part::Parameter(at) => scalars[usize::from(*at)],
                        Part::Field(at) => fields[usize::from(*at)],
                        Part::Constant(value) => Datum::from_value(value),
                    };
                }
                visit(number, &values[..tuple.parts.len()]);
            }
        };
        for (at, parameter) in self.parameters.iter().enumerate() {
            match parameter {
                Declared::Scalar(scalar) => {
                    let Ok(value) = reader.scalar(*scalar) else { return };
                    if let Some(place) = scalars.get_mut(at) {
                        *place = value;
                    }
                }
                Declared::List(declared) => {
                    let Ok(length) = reader.length() else { return };
                    for _ in 0..length {
                        for (field, scalar) in declared.iter().enumerate() {
                            let Ok(value) = reader.scalar(*scalar) else { return };
                            if let Some(place) = fields.get_mut(field) {
                                *place = value;
                            }
                        }
                        make(Some(at as u16), &scalars, &fields);
                    }
                }
            }
        }
        make(None, &scalars, &fields);
    }
}

/// A field of the current element in a loop over a list parameter.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ElementField {
    list: u16,
    field: u16,
    /// The loop: another one over the same list is at another element.
    of: StepId,
}

/// Finds out which expressions of a program are functions of its arguments.
pub struct TuplePlanner<'p> {
    program: &'p Program,
    /// Variables that stand for a field of the current element of a list parameter.
    fields: HashMap<VariableId, ElementField>,
    /// By parameter: whether it keeps its value.
    is_kept: Vec<bool>,
    tuples: Vec<Tuple>,
}

impl<'p> TuplePlanner<'p> {
    /// A planner without tuples.
    pub fn new(program: &'p Program) -> TuplePlanner<'p> {
        let outline = Outline::of(program);
        let assignments = |variable: VariableId| outline.assignments[usize::from(variable.0)].len();
        let mut fields = HashMap::new();
        for &step in &outline.order {
            let StepKind::ForList { list, fields: names, .. } = &outline.at(step).step.kind else { continue };
            for (field, &variable) in names.iter().enumerate() {
                if outline.is_parameter(*list) && assignments(variable) == 1 && field < PLACES_MAX {
                    fields.insert(variable, ElementField { list: list.0, field: field as u16, of: step });
                }
            }
        }
        let is_kept =
            (0..program.parameter_count.min(PLACES_MAX)).map(|at| assignments(VariableId(at as u16)) == 0);
        TuplePlanner { program, fields, is_kept: is_kept.collect(), tuples: Vec::new() }
    }

    /// Whether these make a tuple.
    pub fn can<'e>(&self, expressions: impl IntoIterator<Item = &'e Expression>) -> bool {
        self.tuple(&mut expressions.into_iter()).is_some()
    }

    /// Adds a tuple, if these make one; gives its number.
    pub fn add<'e>(&mut self, expressions: impl IntoIterator<Item = &'e Expression>) -> Option<usize> {
        let tuple = self.tuple(&mut expressions.into_iter())?;
        self.tuples.push(tuple);
        Some(self.tuples.len() - 1)
    }

    /// The tuples that were added.
    pub fn finish(self) -> ArgumentTuples {
        let parameters = self.program.variables[..self.program.parameter_count].iter().map(|parameter| {
            match &parameter.ty {
                Type::Scalar(scalar) => Declared::Scalar(*scalar),
                Type::List(fields) => Declared::List(fields.iter().map(|field| field.scalar).collect()),
            }
        });
        ArgumentTuples { parameters: parameters.collect(), tuples: self.tuples }
    }

    fn tuple(&self, expressions: &mut dyn Iterator<Item = &Expression>) -> Option<Tuple> {
        let mut around = None;
        let parts = expressions.map(|part| self.part(part, &mut around)).collect::<Option<Vec<_>>>()?;
        let list = around.map(|(list, _)| list);
        // Elements are decoded where the list stands, so scalars behind it are not known yet.
        let is_known = |part: &Part| match part {
            Part::Parameter(at) => list.is_none_or(|list| *at < list),
            Part::Field(_) | Part::Constant(_) => true,
        };
        (parts.len() <= PARTS_MAX && parts.iter().all(is_known)).then_some(Tuple { parts, list })
    }

    fn part(&self, expression: &Expression, around: &mut Option<(u16, StepId)>) -> Option<Part> {
        match &expression.kind {
            ExpressionKind::Constant(value) => Some(Part::Constant(value.clone())),
            ExpressionKind::Cast(inner)
                if expression.ty.data_type.family() == Family::Integer
                    && inner.ty.data_type.family() == Family::Integer =>
            {
                self.part(inner, around)
            }
            ExpressionKind::Variable(variable) => {
                if let Some(&ElementField { list, field, of }) = self.fields.get(variable) {
                    return (*around.get_or_insert((list, of)) == (list, of)).then_some(Part::Field(field));
                }
                let is_kept = self.is_kept.get(usize::from(variable.0)).is_some_and(|kept| *kept);
                is_kept.then_some(Part::Parameter(variable.0))
            }
            _ => None,
        }
    }
}
