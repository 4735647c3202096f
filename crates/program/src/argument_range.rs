//! What values a call's arguments have, beside what proofs rely on (see [`crate::slice`]).

use crate::arguments::{Argument, ArgumentReader, decode};
use crate::ir::{Program, Type, VariableId};
use crate::slice::Interval;
use fabius_value::{Datum, Result};

/// What proofs rely on of the arguments of a call.
#[derive(Clone, Debug, Default)]
pub struct Reliance {
    /// Parameter (field 0 for scalars), field, and the interval its values must be in.
    pub intervals: Vec<(VariableId, u16, Interval)>,
    /// List parameters and the most elements they may have.
    pub lengths: Vec<(VariableId, u64)>,
}

/// Whether encoded arguments are within what proofs relied on. Arguments that do not decode are not.
pub fn holds(reliance: &Reliance, program: &Program, bytes: &[u8]) -> bool {
    let named = reliance
        .intervals
        .iter()
        .map(|relied| relied.0)
        .chain(reliance.lengths.iter().map(|relied| relied.0));
    let Some(last) = named.max() else { return true };
    let mut reader = ArgumentReader::new(bytes);
    program.variables[..=usize::from(last.0)].iter().enumerate().all(|(at, parameter)| {
        let parameter_id = VariableId(at as u16);
        let within = |field: usize, datum: Datum<'_>| {
            let relied = |relied: &&(VariableId, u16, Interval)| {
                relied.0 == parameter_id && usize::from(relied.1) == field
            };
            let interval = reliance.intervals.iter().find(relied).map(|relied| relied.2);
            interval.is_none_or(|interval| exact(datum).is_none_or(|value| interval.has(value)))
        };
        match &parameter.ty {
            Type::Scalar(scalar) => reader.scalar(*scalar).is_ok_and(|datum| within(0, datum)),
            Type::List(fields) => {
                let Ok(length) = reader.length() else { return false };
                let most =
                    reliance.lengths.iter().find(|relied| relied.0 == parameter_id).map(|relied| relied.1);
                most.is_none_or(|most| length as u64 <= most)
                    && (0..length).all(|_| {
                        fields.iter().enumerate().all(|(field, declared)| {
                            reader.scalar(declared.scalar).is_ok_and(|datum| within(field, datum))
                        })
                    })
            }
        }
    })
}

/// The interval of each parameter's fields in a call ([`Interval::EMPTY`] where there is no exact
/// number), and the length of each list.
///
/// # Errors
/// Those of [`decode`].
pub fn ranges(program: &Program, bytes: &[u8]) -> Result<Vec<(Vec<Interval>, u64)>> {
    let arguments = decode(program, bytes)?;
    Ok(arguments
        .iter()
        .map(|argument| match argument {
            Argument::Scalar(datum) => (vec![exact(*datum).map_or(Interval::EMPTY, Interval::only)], 0),
            Argument::List { width, values } => {
                let mut fields = vec![Interval::EMPTY; *width];
                for (at, &datum) in values.iter().enumerate() {
                    let field = &mut fields[at % width];
                    *field = exact(datum).map_or(*field, |value| field.hull(Interval::only(value)));
                }
                (fields, (values.len() / (*width).max(1)) as u64)
            }
        })
        .collect())
}

fn exact(datum: Datum<'_>) -> Option<i128> {
    match datum {
        Datum::Int(value) => Some(value.into()),
        Datum::Numeric(value) => Some(value),
        _ => None,
    }
}
