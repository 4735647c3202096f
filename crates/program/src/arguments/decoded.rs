//! Arguments decoded once, for all that ask for them.
//!
//! A scheduler wants keys of them, a proof their ranges, a run its registers. The values of all parameters
//! stand one after the other:
//!
//! ```text
//! transfer(src: bigint, lines: list of (item: int, price: numeric(8, 2)), memo: text)
//!
//! values    7 | 2  2.50  3  1.00 | "rent"
//! ends      1                    5        6
//! ```

use super::{ArgumentReader, check_size, in_parameter};
use crate::execute::emptied;
use crate::ir::{Program, ScalarType, Type};
use fabius_value::{DataType, Datum, Result};

/// A scalar type, with the bounds that its encoded values are checked against.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedType {
    pub scalar: ScalarType,
    /// The range of an integer type that has no null: these are common, and read without further ado.
    pub integers: Option<(i64, i64)>,
}

impl EncodedType {
    pub fn new(scalar: ScalarType) -> EncodedType {
        let integers = match scalar.data_type {
            _ if scalar.nullable => None,
            DataType::SmallInt => Some((i16::MIN.into(), i16::MAX.into())),
            DataType::Int => Some((i32::MIN.into(), i32::MAX.into())),
            DataType::BigInt | DataType::Timestamp => Some((i64::MIN, i64::MAX)),
            _ => None,
        };
        EncodedType { scalar, integers }
    }
}

/// The parameter types of a program, as decoding wants them.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    parameters: Box<[Parameter]>,
}

#[derive(Clone, Debug)]
struct Parameter {
    name: String,
    fields: Box<[EncodedType]>,
    is_list: bool,
}

impl Signature {
    /// That of a program.
    pub fn of(program: &Program) -> Signature {
        let parameters = program.variables[..program.parameter_count].iter().map(|parameter| {
            let (fields, is_list) = match &parameter.ty {
                Type::Scalar(scalar) => (Box::from([EncodedType::new(*scalar)]), false),
                Type::List(fields) => {
                    (fields.iter().map(|field| EncodedType::new(field.scalar)).collect(), true)
                }
            };
            Parameter { name: parameter.name.clone(), fields, is_list }
        });
        Signature { parameters: parameters.collect() }
    }
}

/// The decoded arguments of calls, one call after another.
#[derive(Debug, Default)]
pub struct DecodedArguments<'a> {
    values: Vec<Datum<'a>>,
    /// By call and parameter: where its values end, counted from the call's first.
    ends: Vec<u32>,
}

/// Where the arguments of one call begin.
#[derive(Clone, Copy, Debug, Default)]
pub struct ArgumentPlace {
    value: u32,
    end: u32,
}

/// The decoded arguments of one call.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'r, 'a> {
    values: &'r [Datum<'a>],
    ends: &'r [u32],
}

impl<'a> DecodedArguments<'a> {
    /// Decodes the arguments of one call more.
    ///
    /// # Errors
    /// Those of [`decode`](super::decode).
    pub fn push(&mut self, signature: &Signature, bytes: &'a [u8]) -> Result<ArgumentPlace> {
        self.push_from(signature, bytes, |_, _| {})
    }

    /// Decodes the arguments of one call more; `begin` is told of each row of each parameter where it begins among the
    /// bytes.
    ///
    /// # Errors
    /// As above.
    #[inline]
    pub fn push_from(
        &mut self,
        signature: &Signature,
        bytes: &'a [u8],
        mut begin: impl FnMut(usize, usize),
    ) -> Result<ArgumentPlace> {
        check_size(bytes)?;
        let place = ArgumentPlace { value: self.values.len() as u32, end: self.ends.len() as u32 };
        let mut reader = ArgumentReader::new(bytes);
        for (number, parameter) in signature.parameters.iter().enumerate() {
            let mut begin = |left: usize| begin(number, bytes.len() - left);
            let read = if parameter.is_list {
                reader
                    .length()
                    .and_then(|rows| reader.rows_from(&parameter.fields, rows, &mut self.values, &mut begin))
            } else {
                begin(reader.left());
                reader.field(&parameter.fields[0], |value| self.values.push(value))
            };
            read.map_err(|error| in_parameter(error, &parameter.name))?;
            self.ends.push(self.values.len() as u32 - place.value);
        }
        reader.finish().map(|()| place)
    }

    /// The arguments that were decoded to a place.
    #[inline]
    pub fn at(&self, place: ArgumentPlace) -> Arguments<'_, 'a> {
        Arguments { values: &self.values[place.value as usize..], ends: &self.ends[place.end as usize..] }
    }

    /// How many values there are, of all calls.
    pub fn count(&self) -> usize {
        self.values.len()
    }

    /// Forgets all calls.
    pub fn clear(&mut self) {
        self.values.clear();
        self.ends.clear();
    }

    /// No calls, in the same buffers.
    pub fn recycle<'b>(mut self) -> DecodedArguments<'b> {
        self.ends.clear();
        DecodedArguments { values: emptied(self.values), ends: self.ends }
    }
}

impl<'r, 'a> Arguments<'r, 'a> {
    /// The values of a parameter: one, or those of a list row by row.
    #[inline]
    pub fn of(&self, parameter: usize) -> &'r [Datum<'a>] {
        let start = if parameter == 0 { 0 } else { self.ends[parameter - 1] };
        &self.values[start as usize..self.ends[parameter] as usize]
    }
}
