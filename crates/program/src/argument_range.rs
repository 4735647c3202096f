//! What values a call's arguments have, beside what proofs rely on (see [`crate::slice`]).

use crate::arguments::Arguments;
use crate::ir::{Program, Type, VariableId};
use crate::slice::Interval;
use fabius_value::Datum;

/// What proofs rely on of the arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Reliance {
    /// Parameter (field 0 for scalars), field, and the interval its values must be in.
    pub intervals: Vec<(VariableId, u16, Interval)>,
    /// List parameters and the most elements they may have.
    pub lengths: Vec<(VariableId, u64)>,
}

/// Whether a call's arguments are within what proofs relied on.
pub fn holds(reliance: &Reliance, arguments: Arguments<'_, '_>, program: &Program) -> bool {
    let width = |parameter: &VariableId| match &program.variables[usize::from(parameter.0)].ty {
        Type::Scalar(_) => 1,
        Type::List(fields) => fields.len(),
    };
    reliance.lengths.iter().all(|(parameter, most)| {
        arguments.of(usize::from(parameter.0)).len() as u64 <= most.saturating_mul(width(parameter) as u64)
    }) && reliance.intervals.iter().all(|(parameter, field, interval)| {
        let values = arguments.of(usize::from(parameter.0)).iter();
        let mut values = values.skip(usize::from(*field)).step_by(width(parameter));
        values.all(|datum| exact(*datum).is_none_or(|value| interval.has(value)))
    })
}

/// The interval of each parameter's fields in a call ([`Interval::EMPTY`] where there is no exact
/// number), and the length of each list.
pub fn ranges(program: &Program, arguments: Arguments<'_, '_>) -> Vec<(Vec<Interval>, u64)> {
    let parameters = program.variables[..program.parameter_count].iter().enumerate();
    parameters
        .map(|(at, parameter)| {
            let values = arguments.of(at);
            match &parameter.ty {
                Type::Scalar(_) => (vec![exact(values[0]).map_or(Interval::EMPTY, Interval::only)], 0),
                Type::List(declared) => {
                    let mut fields = vec![Interval::EMPTY; declared.len()];
                    for (at, &datum) in values.iter().enumerate() {
                        let field = &mut fields[at % declared.len()];
                        *field = exact(datum).map_or(*field, |value| field.hull(Interval::only(value)));
                    }
                    (fields, (values.len() / declared.len()) as u64)
                }
            }
        })
        .collect()
}

fn exact(datum: Datum<'_>) -> Option<i128> {
    match datum {
        Datum::Int(value) => Some(value.into()),
        Datum::Numeric(value) => Some(value),
        _ => None,
    }
}
