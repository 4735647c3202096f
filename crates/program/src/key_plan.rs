//! Keys that are functions of a call's arguments alone, computed before the call runs.
//!
//! A scheduler that knows them can bring rows near before they are needed (the lazy engine prefetches
//! them into the cache for a whole batch), or request locks in advance. Only keys made of parameters,
//! list fields and constants are in the plan; others are found when the program runs.

use crate::arguments::ArgumentReader;
use crate::ir::{Block, Expression, ExpressionKind, Program, ScalarType, StepKind, Type, VariableId};
use fabius_value::{Datum, TableId, Value, data_type::Family};
use std::collections::HashMap;

/// Key columns of one lookup, as the places they come from.
#[derive(Clone, Debug)]
struct PlannedKey {
    table: TableId,
    parts: Vec<Part>,
    /// The list parameter whose elements the key varies with.
    list: Option<u16>,
}

/// Where a key column comes from.
#[derive(Clone, Debug)]
enum Part {
    Parameter(u16),
    Field(u16),
    Constant(Value),
}

/// The lookups of a program whose keys are functions of its arguments.
#[derive(Clone, Debug, Default)]
pub struct KeyPlan {
    keys: Vec<PlannedKey>,
    parameters: Vec<Declared>,
}

#[derive(Clone, Debug)]
enum Declared {
    Scalar(ScalarType),
    List(Vec<ScalarType>),
}

impl KeyPlan {
    /// The plan of a program.
    pub fn of(program: &Program) -> KeyPlan {
        let mut found = Search { program, fields: HashMap::new(), keys: Vec::new() };
        found.block(&program.body);
        let parameters =
            program.variables[..program.parameter_count].iter().map(|parameter| match &parameter.ty {
                Type::Scalar(scalar) => Declared::Scalar(*scalar),
                Type::List(fields) => Declared::List(fields.iter().map(|field| field.scalar).collect()),
            });
        KeyPlan { parameters: parameters.collect(), keys: found.keys }
    }

    /// Whether there is nothing to compute.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The tables of the keys, one for each.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.keys.iter().map(|key| key.table)
    }

    /// Computes the keys of a call with these encoded arguments, as far as they decode. Keys of later
    /// parameters than a list may refer to scalars before it only.
    pub fn for_each(&self, arguments: &[u8], mut visit: impl FnMut(TableId, &[Datum<'_>])) {
        const PARTS_MAX: usize = 8;
        let mut reader = ArgumentReader::new(arguments);
        let mut scalars = [Datum::Null; 16];
        let mut fields = [Datum::Null; 16];
        let mut make = |key: &PlannedKey, scalars: &[Datum<'_>; 16], fields: &[Datum<'_>; 16]| {
            let mut parts = [Datum::Null; PARTS_MAX];
            if key.parts.len() > PARTS_MAX {
                return;
            }
            for (slot, part) in parts.iter_mut().zip(&key.parts) {
                *slot = match part {
                    Part::Parameter(at) => scalars.get(usize::from(*at)).copied().unwrap_or_default(),
                    Part::Field(at) => fields.get(usize::from(*at)).copied().unwrap_or_default(),
                    Part::Constant(value) => Datum::from_value(value),
                };
                if slot.is_null() {
                    return;
                }
            }
            visit(key.table, &parts[..key.parts.len()]);
        };
        for (at, parameter) in self.parameters.iter().enumerate() {
            match parameter {
                Declared::Scalar(scalar) => {
                    let Ok(value) = reader.scalar(*scalar) else { return };
                    if let Some(slot) = scalars.get_mut(at) {
                        *slot = value;
                    }
                }
                Declared::List(declared) => {
                    let Ok(length) = reader.length() else { return };
                    for _ in 0..length {
                        for (field, scalar) in declared.iter().enumerate() {
                            let Ok(value) = reader.scalar(*scalar) else { return };
                            if let Some(slot) = fields.get_mut(field) {
                                *slot = value;
                            }
                        }
                        self.keys
                            .iter()
                            .filter(|key| key.list == Some(at as u16))
                            .for_each(|key| make(key, &scalars, &fields));
                    }
                }
            }
        }
        self.keys.iter().filter(|key| key.list.is_none()).for_each(|key| make(key, &scalars, &fields));
    }
}

struct Search<'p> {
    program: &'p Program,
    /// Loop variables over list parameters: the list and the field.
    fields: HashMap<VariableId, (u16, u16)>,
    keys: Vec<PlannedKey>,
}

impl Search<'_> {
    fn block(&mut self, block: &Block) {
        for step in block {
            match &step.kind {
                StepKind::Locate { row, key } => self.key(self.program.rows[usize::from(row.0)].table, key),
                StepKind::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                StepKind::ForList { list, fields, body } => {
                    if usize::from(list.0) < self.program.parameter_count {
                        for (field, &variable) in fields.iter().enumerate() {
                            self.fields.insert(variable, (list.0, field as u16));
                        }
                    }
                    self.block(body);
                }
                StepKind::ForRange { body, .. } | StepKind::ForScan { body, .. } => self.block(body),
                _ => {}
            }
        }
    }

    fn key(&mut self, table: TableId, key: &[Expression]) {
        let mut list = None;
        let parts = key.iter().map(|part| self.part(part, &mut list)).collect::<Option<Vec<_>>>();
        self.keys.extend(parts.map(|parts| PlannedKey { table, parts, list }));
    }

    fn part(&self, expression: &Expression, list: &mut Option<u16>) -> Option<Part> {
        match &expression.kind {
            ExpressionKind::Constant(value) => Some(Part::Constant(value.clone())),
            ExpressionKind::Cast(inner)
                if expression.ty.data_type.family() == Family::Integer
                    && inner.ty.data_type.family() == Family::Integer =>
            {
                self.part(inner, list)
            }
            ExpressionKind::Variable(variable) => {
                if let Some(&(from, field)) = self.fields.get(variable) {
                    return (*list.get_or_insert(from) == from).then_some(Part::Field(field));
                }
                let is_parameter = usize::from(variable.0) < self.program.parameter_count;
                is_parameter.then_some(Part::Parameter(variable.0))
            }
            _ => None,
        }
    }
}
