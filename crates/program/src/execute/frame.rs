//! The state of one run.

use crate::arguments::{ArgumentReader, Arguments, check_size, in_parameter, list_value};
use crate::compile::Code;
use crate::compile::code::{ParameterPlace, ResultPlan};
use crate::context::Context;
use crate::turns::Turns;
use bumpalo::Bump;
use fabius_value::{Datum, Result, Value};

/// The state of one run over a context with rows `R` and scans `S`.
#[derive(Debug)]
pub struct Frame<'a, R, S> {
    pub(super) registers: Vec<Datum<'a>>,
    pub(super) rows: Vec<R>,
    pub(super) lists: Vec<Vec<Datum<'a>>>,
    pub(super) scans: Vec<S>,
    pub(super) turns: Turns,
    /// The next instruction.
    pub(super) at: u32,
}

/// The frame for runs over a context.
pub type FrameFor<'a, C> = Frame<'a, <C as Context<'a>>::Row, <C as Context<'a>>::Scan>;

/// What a run of a record action is about, among the bytes of its call's arguments.
#[derive(Clone, Copy, Debug, Default)]
pub struct ElementPlace {
    /// The element, if it is about one: of which list among the parameters, and where it begins.
    pub element: Option<(u16, u32)>,
    /// The element's number.
    pub turn: u32,
    /// Where the scalars behind the lists begin.
    pub behind: u32,
}

impl<R, S> Default for Frame<'_, R, S> {
    fn default() -> Self {
        Frame {
            registers: Vec::new(),
            rows: Vec::new(),
            lists: Vec::new(),
            scans: Vec::new(),
            turns: Turns::default(),
            at: 0,
        }
    }
}

impl<'a, R: Copy + Default, S> Frame<'a, R, S> {
    /// A frame without buffers.
    pub fn new() -> Self {
        Frame::default()
    }

    /// Begins a run of `code` with a call's encoded arguments.
    ///
    /// # Errors
    /// Those of [`arguments::decode`](crate::arguments::decode).
    pub fn start(&mut self, code: &Code, arguments: &'a [u8], arena: &'a Bump) -> Result<()> {
        self.prepare(code, arena);
        check_size(arguments)?;
        let mut reader = ArgumentReader::new(arguments);
        for parameter in &code.parameters {
            let read = match &parameter.place {
                ParameterPlace::Scalar(encoded, place) => reader.scalar(encoded.scalar).map(|datum| {
                    if let Some(register) = place {
                        self.registers[usize::from(register.0)] = datum;
                    }
                }),
                ParameterPlace::List(fields, place) => {
                    let mut unused = Vec::new();
                    let values = match place {
                        Some(list) => &mut self.lists[usize::from(list.0)],
                        None => &mut unused,
                    };
                    reader.length().and_then(|rows| reader.rows(fields, rows, values))
                }
            };
            read.map_err(|error| in_parameter(error, &parameter.name))?;
        }
        reader.finish()
    }

    /// Begins a run of `code` with a call's arguments, which were decoded for the code's program.
    pub fn begin(&mut self, code: &Code, arguments: Arguments<'_, 'a>, arena: &'a Bump) {
        self.prepare(code, arena);
        for (at, parameter) in code.parameters.iter().enumerate() {
            match &parameter.place {
                ParameterPlace::Scalar(_, Some(register)) => {
                    self.registers[usize::from(register.0)] = arguments.of(at)[0];
                }
                ParameterPlace::List(_, Some(list)) => {
                    self.lists[usize::from(list.0)].extend_from_slice(arguments.of(at));
                }
                ParameterPlace::Scalar(_, None) | ParameterPlace::List(_, None) => {}
            }
        }
    }

    /// Begins a run of a [record action](crate::compile::compile_action) or of a
    /// [slice](crate::compile::compile_action_slice). Lists stand together among the parameters.
    ///
    /// # Errors
    /// As [`start`](Frame::start), if the arguments are not well-formed.
    #[inline]
    pub fn start_action(
        &mut self,
        code: &Code,
        arguments: &'a [u8],
        place: ElementPlace,
        arena: &'a Bump,
    ) -> Result<()> {
        if code.list_count > 0 {
            self.start(code, arguments, arena)?;
        } else {
            self.prepare(code, arena);
            let mut reader = ArgumentReader::new(arguments);
            for parameter in &code.parameters[..code.parameters_used] {
                let ParameterPlace::Scalar(encoded, register) = &parameter.place else {
                    reader = ArgumentReader::new(&arguments[place.behind as usize..]);
                    continue;
                };
                reader.field(encoded, |datum| {
                    if let Some(register) = register {
                        self.registers[usize::from(register.0)] = datum;
                    }
                })?;
            }
        }
        if let Some(register) = code.turn {
            self.registers[usize::from(register.0)] = Datum::Int(place.turn.into());
        }
        let Some((list, begin)) = place.element else { return Ok(()) };
        let ParameterPlace::List(types, _) = &code.parameters[usize::from(list)].place else {
            unreachable!("elements are of lists");
        };
        let mut reader = ArgumentReader::new(&arguments[begin as usize..]);
        for (encoded, register) in types.iter().zip(&code.element) {
            reader.field(encoded, |datum| self.registers[usize::from(register.0)] = datum)?;
        }
        Ok(())
    }

    /// Makes room for what the code needs, and puts its constants where it finds them.
    fn prepare(&mut self, code: &Code, arena: &'a Bump) {
        self.at = 0;
        self.turns = Turns::default();
        self.scans.clear();
        // What an earlier run left in the registers does no harm: code writes before it reads.
        if self.registers.len() < code.register_count {
            self.registers.resize(code.register_count, Datum::Null);
        }
        if self.rows.len() < code.row_count {
            self.rows.resize(code.row_count, R::default());
        }
        if self.lists.len() < code.list_count {
            self.lists.resize_with(code.list_count, Vec::new);
        }
        self.lists[..code.list_count].iter_mut().for_each(Vec::clear);
        for (register, datum) in &code.constants.scalars {
            self.registers[usize::from(register.0)] = *datum;
        }
        for (register, text) in &code.constants.texts {
            self.registers[usize::from(register.0)] = Datum::Text(arena.alloc_str(text));
        }
        for (register, bytes) in &code.constants.bytes {
            self.registers[usize::from(register.0)] = Datum::Bytes(arena.alloc_slice_copy(bytes));
        }
    }

    /// The instruction where the last run has ended or stopped.
    pub fn stopped_at(&self) -> u32 {
        self.at
    }

    /// The program's results after a run that ended well; `None` if the code does not compute them.
    pub fn results(&self, code: &Code) -> Option<Vec<Value>> {
        code.computes_results().then(|| self.returned(code).collect())
    }

    /// The program's results one by one; none if the code does not compute them.
    pub fn returned(&self, code: &Code) -> impl Iterator<Item = Value> {
        code.results.iter().flatten().map(|plan| match plan {
            ResultPlan::Scalar(register, data_type) => {
                self.registers[usize::from(register.0)].to_value(*data_type)
            }
            ResultPlan::List(list, fields) => list_value(fields, &self.lists[usize::from(list.0)]),
        })
    }

    /// An empty frame with this one's buffers, for runs over another arena.
    pub fn recycle<'b, Q, T>(self) -> Frame<'b, Q, T> {
        Frame {
            registers: emptied(self.registers),
            rows: emptied(self.rows),
            lists: self.lists.into_iter().map(emptied).collect(),
            scans: emptied(self.scans),
            turns: Turns::default(),
            at: 0,
        }
    }
}

/// The vector's buffer as one of another type (the standard library collects in place if the layouts
/// are alike).
pub fn emptied<T, U>(mut vector: Vec<T>) -> Vec<U> {
    vector.clear();
    vector.into_iter().map(|_| unreachable!("the vector is empty")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: recycling a frame allocates nothing; suspended frames are small.
    #[test]
    fn buffers_survive_recycling() {
        let mut datums: Vec<Datum<'_>> = Vec::with_capacity(100);
        datums.push(Datum::Int(1));
        let place = datums.as_ptr() as usize;
        let emptied: Vec<Datum<'static>> = emptied(datums);
        assert_eq!((emptied.len(), emptied.capacity(), emptied.as_ptr() as usize), (0, 100, place));
        assert!(size_of::<Frame<'_, u64, u64>>() <= 112);
    }
}
