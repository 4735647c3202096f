//! Some values of encoded arguments, read without decoding the others.
//!
//! Whoever only has to know where a call goes asks for little of what it is given:
//!
//! ```text
//! order(w: int, lines: list of (item: int, supply: int), memo: text)
//!
//! selected     w, lines.supply      visited: 0 7   1 7   1 7   1 9      not read: items, memo
//! ```

use super::reader::cut_short;
use super::{ArgumentReader, EncodedType};
use crate::ir::{Program, Type};
use fabius_value::{Datum, Result};

/// Values to be read from a program's encoded arguments.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// As far as any value is selected.
    parameters: Box<[Parameter]>,
}

#[derive(Clone, Debug)]
struct Parameter {
    fields: Box<[Field]>,
    is_list: bool,
}

/// A scalar, or a field of a list; with its number among the selected ones.
#[derive(Clone, Debug)]
struct Field {
    encoded: EncodedType,
    selected: Option<usize>,
}

impl Selection {
    /// These values of a program's arguments, by parameter and field; a scalar is field 0.
    pub fn of(program: &Program, values: &[(u16, u16)]) -> Selection {
        let count = values.iter().map(|(parameter, _)| usize::from(*parameter) + 1).max().unwrap_or(0);
        let parameters = program.variables[..count].iter().enumerate().map(|(number, parameter)| {
            let field = |(at, scalar)| Field {
                encoded: EncodedType::new(scalar),
                selected: values.iter().position(|value| *value == (number as u16, at as u16)),
            };
            match &parameter.ty {
                Type::Scalar(scalar) => Parameter { fields: [field((0, *scalar))].into(), is_list: false },
                Type::List(fields) => {
                    let scalars = fields.iter().map(|field| field.scalar).enumerate();
                    Parameter { fields: scalars.map(field).collect(), is_list: true }
                }
            }
        });
        Selection { parameters: parameters.collect() }
    }

    /// Visits the selected values of a call's arguments in the order in which they are encoded, those of a list row by
    /// row: the number among the selected ones, and the value.
    ///
    /// # Errors
    /// As [`decode`](super::decode), as far as the values were read.
    #[inline]
    pub fn for_each<'a>(&self, bytes: &'a [u8], mut visit: impl FnMut(usize, Datum<'a>)) -> Result<()> {
        let mut reader = ArgumentReader::new(bytes);
        for Parameter { fields, is_list } in &self.parameters {
            let rows = if *is_list { reader.length()? } else { 1 };
            if fields.is_empty() && rows > 0 {
                return Err(cut_short());
            }
            for _ in 0..rows {
                for Field { encoded, selected } in fields {
                    match selected {
                        Some(number) => reader.field(encoded, |value| visit(*number, value))?,
                        None => reader.skip(encoded)?,
                    }
                }
            }
        }
        Ok(())
    }
}
