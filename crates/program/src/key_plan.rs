//! Keys that are functions of a call's arguments alone, computed before the call runs.
//!
//! A scheduler that knows them can bring rows near before they are needed (the lazy engine prefetches
//! them into the cache for a whole batch), or request locks in advance. Only keys made of parameters,
//! list fields and constants are in the plan; others are found when the program runs.
//!
//! [`KeyPlan::prefixes`] is for a scheduler that has to know of *every* access: each one is in the plan, with
//! as many leading columns of the primary key as are functions of arguments, none at the worst.

use crate::arguments::Arguments;
use crate::catalog::Catalog;
use crate::ir::{Block, Expression, ExpressionKind, Program, StepId, StepKind, Type, VariableId};
use crate::slice::outline::Outline;
use fabius_value::{Datum, TableId, Value, data_type::Family};
use std::collections::HashMap;

/// Key columns at the most that a plan follows.
const PARTS_MAX: usize = 8;

/// Key columns of one lookup, as the places they come from.
#[derive(Clone, Debug, PartialEq)]
struct PlannedKey {
    table: TableId,
    parts: Vec<Part>,
    /// The list parameter whose elements the key varies with, and how many fields one has.
    list: Option<(u16, u16)>,
}

/// Where a key column comes from.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Parameter(u16),
    Field(u16),
    Constant(Value),
}

/// The lookups of a program whose keys are functions of its arguments.
#[derive(Clone, Debug, Default)]
pub struct KeyPlan {
    keys: Vec<PlannedKey>,
}

impl KeyPlan {
    /// The plan of a program.
    pub fn of(program: &Program) -> KeyPlan {
        let mut found = Search { program, fields: HashMap::new(), keys: Vec::new() };
        found.block(&program.body);
        KeyPlan { keys: found.keys }
    }

    /// The plan of all accesses of a program: lookups, inserts and scans, also those under conditions. Of
    /// each, the leading columns of the primary key that are functions of arguments.
    pub fn prefixes(program: &Program, catalog: &Catalog) -> KeyPlan {
        let outline = Outline::of(program);
        let mut found = Search { program, fields: HashMap::new(), keys: Vec::new() };
        let is_steady = |variable: VariableId, assignments| {
            outline.assignments[usize::from(variable.0)].len() == assignments
        };
        for &step in &outline.order {
            let StepKind::ForList { list, fields, .. } = &outline.at(step).step.kind else { continue };
            if outline.is_parameter(*list) && is_steady(*list, 0) {
                let steady = fields.iter().enumerate().filter(|(_, variable)| is_steady(**variable, 1));
                let list_loop = ListLoop { list: list.0, step };
                found.fields.extend(steady.map(|(field, &variable)| (variable, (list_loop, field as u16))));
            }
        }
        let mut keys = Vec::new();
        for &step in &outline.order {
            let (row, values): (_, Vec<Option<&Expression>>) = match &outline.at(step).step.kind {
                StepKind::Locate { row, key } => (row, key.iter().map(Some).collect()),
                StepKind::Insert { row, values } => {
                    let key = &catalog.table(outline.table(*row)).primary_key;
                    (row, key.iter().map(|column| Some(&values[usize::from(column.0)])).collect())
                }
                StepKind::ForScan { row, scan, .. } => {
                    let schema = catalog.table(outline.table(*row));
                    let columns = match scan.index {
                        None => &schema.primary_key,
                        Some(index) => &schema.indexes[usize::from(index.0)].columns,
                    };
                    let equal = |column| {
                        columns
                            .iter()
                            .zip(&scan.equal)
                            .find(|(own, _)| *own == column)
                            .map(|(_, value)| value)
                    };
                    (row, schema.primary_key.iter().map(equal).collect())
                }
                _ => continue,
            };
            let key = found.prefix(outline.table(*row), &values, &|variable| is_steady(variable, 0));
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        KeyPlan { keys }
    }

    /// The planned keys: the table, and how many columns.
    pub fn keys(&self) -> impl Iterator<Item = (TableId, usize)> + '_ {
        self.keys.iter().map(|key| (key.table, key.parts.len()))
    }

    /// The tables of the keys, one for each.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.keys.iter().map(|key| key.table)
    }

    /// Whether an element, or the scalars if there are no elements, tells which key is meant.
    pub fn has_one_for_each_element(&self) -> bool {
        let is_double = |at: usize| self.keys[..at].iter().any(|key| key.list == self.keys[at].list);
        let has_scalar_key = self.keys.iter().any(|key| key.list.is_none());
        self.keys.len() == 1 || !has_scalar_key && !(0..self.keys.len()).any(is_double)
    }

    /// Computes the keys of a call with these arguments.
    pub fn for_each<'k>(
        &'k self,
        arguments: Arguments<'k, '_>,
        mut visit: impl FnMut(TableId, &[Datum<'k>]),
    ) {
        self.for_each_element(arguments, |table, values, _| visit(table, values));
    }

    /// The same, with the element that each key varies with: the list's number among the parameters, and the row;
    /// whether no key was left out.
    #[inline]
    pub fn for_each_element<'k>(
        &'k self,
        arguments: Arguments<'k, '_>,
        mut visit: impl FnMut(TableId, &[Datum<'k>], Option<(u16, usize)>),
    ) -> bool {
        let mut parts = [Datum::Null; PARTS_MAX];
        let mut has_all = true;
        for key in &self.keys {
            if key.parts.len() > PARTS_MAX {
                has_all = false;
                continue;
            }
            // A null finds no row.
            let mut visit_whole = |parts: &[Datum<'k>], element| {
                let is_whole = !parts.iter().any(|part| part.is_null());
                has_all &= is_whole;
                if is_whole {
                    visit(key.table, parts, element);
                }
            };
            let parts = &mut parts[..key.parts.len()];
            for (slot, part) in parts.iter_mut().zip(&key.parts) {
                match part {
                    Part::Parameter(at) => *slot = arguments.of(usize::from(*at))[0],
                    Part::Constant(value) => *slot = Datum::from_value(value),
                    Part::Field(_) => {}
                }
            }
            let Some((list, width)) = key.list else {
                visit_whole(parts, None);
                continue;
            };
            let elements = arguments.of(usize::from(list)).chunks_exact(usize::from(width));
            for (row, element) in elements.enumerate() {
                for (slot, part) in parts.iter_mut().zip(&key.parts) {
                    if let Part::Field(field) = part {
                        *slot = element[usize::from(*field)];
                    }
                }
                visit_whole(parts, Some((list, row)));
            }
        }
        has_all
    }
}

/// A loop over a list parameter. Two loops over one list are at different elements of it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ListLoop {
    list: u16,
    step: StepId,
}

struct Search<'p> {
    program: &'p Program,
    /// Loop variables over list parameters: the loop, and the field.
    fields: HashMap<VariableId, (ListLoop, u16)>,
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
                            let list_loop = ListLoop { list: list.0, step: step.id };
                            self.fields.insert(variable, (list_loop, field as u16));
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
        let list = list.map(|list: ListLoop| self.with_width(list.list));
        let planned = parts.map(|parts| PlannedKey { table, parts, list });
        self.keys.extend(planned.filter(|planned| !self.keys.contains(planned)));
    }

    /// A list parameter and how many fields its elements have.
    fn with_width(&self, list: u16) -> (u16, u16) {
        match &self.program.variables[usize::from(list)].ty {
            Type::List(fields) => (list, fields.len() as u16),
            Type::Scalar(_) => unreachable!("loops are over lists"),
        }
    }

    /// The leading key columns that [`KeyPlan::for_each`] can compute, whatever the arguments are.
    fn prefix(
        &self,
        table: TableId,
        values: &[Option<&Expression>],
        is_steady: &dyn Fn(VariableId) -> bool,
    ) -> PlannedKey {
        let mut key = PlannedKey { table, parts: Vec::new(), list: None };
        let mut own_loop = None;
        for value in values.iter().take(PARTS_MAX) {
            let mut list = own_loop;
            let Some(part) = value.and_then(|value| self.part(value, &mut list)) else { break };
            if matches!(part, Part::Parameter(at) if !is_steady(VariableId(at))) {
                break;
            }
            own_loop = list;
            key.list = list.map(|list| self.with_width(list.list));
            key.parts.push(part);
        }
        key
    }

    fn part(&self, expression: &Expression, list: &mut Option<ListLoop>) -> Option<Part> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify;

    /// How many columns of each access's key are known.
    fn known(body: &str) -> Vec<usize> {
        let text = format!(
            "table t {{ a: int, b: int, c: int, primary key (a, b) }}
            procedure p(x: int, l: list of (k: int, v: int), y: int) {{ {body} }}"
        );
        let catalog = verify::load(&text, "test", &Catalog::new()).expect("it verifies");
        let (_, program) = catalog.procedures().next().expect("a procedure");
        KeyPlan::prefixes(program, &catalog).keys().map(|(_, columns)| columns).collect()
    }

    /// Goal: a planned prefix is what `for_each` can compute for every turn of every loop, and no more.
    #[test]
    fn prefixes_are_no_longer_than_what_is_known() {
        assert_eq!(known("t[x, y].c = 1"), [2]);
        assert_eq!(known("t[x, t[x, y].c].c = 1"), [2, 1]);
        assert_eq!(known("for e in l { t[e.k, e.v].c = x }"), [2]);
        assert_eq!(known("for e in l { t[x, e.v].c = x }"), [2]);
        assert_eq!(known("for e in l { t[e.k, y].c = x }"), [2]);
        // Two loops over one list are at different elements of it.
        assert_eq!(known("for e in l { for f in l { t[e.k, f.k].c = x } }"), [1]);
        assert_eq!(known("for r in t[x, 1 ..< 5] { r.c = 1 }"), [1]);
        assert_eq!(known("for n in 1 to 5 { insert t { a: n::int, b: x, c: 1 } }"), [0]);
    }
}
