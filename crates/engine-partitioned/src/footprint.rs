//! What a program touches, as far as its text says: tables, and where the first key columns come from.
//!
//! ```text
//! procedure order(w: int, lines: list of (item: int, supply: int))
//!     items[line.item]             items:   field 0 of lines        a whole key of arguments
//!     stock[line.supply, ...]      stock:   field 1 of lines
//!     for o in orders[w, ..]       orders:  parameter 0             a range
//!     orders by date[..]           orders:  unknown                 its index does not begin with the key
//! ```
//!
//! A parameter that the program assigns anew is unknown, and so is all that depends on what it reads.

use fabius_program::catalog::Catalog;
use fabius_program::ir::{Block, Expression, ExpressionKind, Program, RowId, Scan, StepKind, VariableId};
use fabius_value::data_type::Family;
use fabius_value::{ColumnId, TableId, TableSchema, Value};
use std::collections::{BTreeSet, HashMap};

/// Where a value comes from that is known before the call runs.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// An argument.
    Parameter(u16),
    /// A field of an argument that is a list, once for each of its rows.
    Field(u16, u16),
    /// A literal.
    Constant(Value),
}

/// Rows that a step names.
#[derive(Clone, Debug, PartialEq)]
pub struct Touch {
    /// Their table.
    pub table: TableId,
    /// Where the value of the first column of their primary key comes from; `None` if it is not known before.
    pub first: Option<Source>,
    /// Whether it is one row that is looked up by a key that a [`KeyPlan`](fabius_program::key_plan::KeyPlan) computes.
    pub is_planned: bool,
}

/// What a program touches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Footprint {
    /// Rows that it names.
    pub touches: Vec<Touch>,
    /// Tables that it inserts into.
    pub inserts: BTreeSet<TableId>,
    /// Tables of which it changes or deletes rows.
    pub changes: BTreeSet<TableId>,
    /// Whether it claims values of unique indexes.
    pub claims: bool,
}

impl Footprint {
    /// The footprint of a program.
    pub fn of(program: &Program, catalog: &Catalog) -> Footprint {
        let mut assigned = Assigned::default();
        assigned.block(&program.body, program.parameter_count);
        let mut reading = Reading { program, catalog, assigned, found: Footprint::default() };
        reading.block(&program.body);
        reading.found
    }

    /// The tables that it touches.
    pub fn tables(&self) -> impl Iterator<Item = TableId> + '_ {
        self.touches.iter().map(|touch| touch.table)
    }

    /// Whether it writes the table.
    pub fn writes(&self, table: TableId) -> bool {
        self.inserts.contains(&table) || self.changes.contains(&table)
    }
}

/// How often variables are assigned, and those that go through a list of the arguments.
#[derive(Default)]
struct Assigned {
    times: HashMap<VariableId, u32>,
    fields: HashMap<VariableId, Source>,
}

impl Assigned {
    fn note(&mut self, variable: VariableId) {
        *self.times.entry(variable).or_default() += 1;
    }

    fn block(&mut self, block: &Block, parameters: usize) {
        for step in block {
            match &step.kind {
                StepKind::Assign { variable, .. } | StepKind::Exists { variable, .. } => self.note(*variable),
                StepKind::Clear { list } | StepKind::Append { list, .. } | StepKind::Sort { list, .. } => {
                    self.note(*list);
                }
                StepKind::Read { columns, .. } => columns.iter().for_each(|(_, to)| self.note(*to)),
                StepKind::If { then, otherwise, .. } => {
                    self.block(then, parameters);
                    self.block(otherwise, parameters);
                }
                StepKind::ForList { list, fields, body } => {
                    for (field, variable) in fields.iter().enumerate() {
                        self.note(*variable);
                        if usize::from(list.0) < parameters {
                            self.fields.insert(*variable, Source::Field(list.0, field as u16));
                        }
                    }
                    self.block(body, parameters);
                }
                StepKind::ForRange { variable, body, .. } => {
                    self.note(*variable);
                    self.block(body, parameters);
                }
                StepKind::ForScan { scan, body, .. } => {
                    scan.filter.iter().for_each(|filter| self.block(&filter.steps, parameters));
                    self.block(body, parameters);
                }
                StepKind::Locate { .. }
                | StepKind::RequireRow { .. }
                | StepKind::Require { .. }
                | StepKind::Insert { .. }
                | StepKind::Update { .. }
                | StepKind::Delete { .. }
                | StepKind::Return { .. } => {}
            }
        }
    }

    fn count(&self, variable: VariableId) -> u32 {
        self.times.get(&variable).copied().unwrap_or_default()
    }
}

struct Reading<'p> {
    program: &'p Program,
    catalog: &'p Catalog,
    assigned: Assigned,
    found: Footprint,
}

impl Reading<'_> {
    fn table(&self, row: RowId) -> TableId {
        self.program.rows[usize::from(row.0)].table
    }

    fn touch(&mut self, table: TableId, first: Option<Source>, is_planned: bool) {
        self.found.touches.push(Touch { table, first, is_planned });
    }

    fn block(&mut self, block: &Block) {
        for step in block {
            match &step.kind {
                StepKind::Locate { row, key } => {
                    let sources: Vec<_> = key.iter().map(|part| self.source(part)).collect();
                    let is_planned = is_planned(&sources);
                    self.touch(self.table(*row), sources.into_iter().next().flatten(), is_planned);
                }
                StepKind::Insert { row, values } => {
                    let table = self.table(*row);
                    let first = self.catalog.table(table).primary_key[0];
                    self.touch(table, self.source(&values[usize::from(first.0)]), false);
                    self.found.inserts.insert(table);
                    self.claim(table, |_| true);
                }
                StepKind::Update { row, sets } => {
                    let table = self.table(*row);
                    self.found.changes.insert(table);
                    self.claim(table, |columns| sets.iter().any(|(column, _)| columns.contains(column)));
                }
                StepKind::Delete { row } => {
                    let table = self.table(*row);
                    self.found.changes.insert(table);
                }
                StepKind::ForScan { row, scan, body } => {
                    let table = self.table(*row);
                    let first = self.first_of_range(self.catalog.table(table), scan);
                    self.touch(table, first, false);
                    scan.filter.iter().for_each(|filter| self.block(&filter.steps));
                    self.block(body);
                }
                StepKind::If { then, otherwise, .. } => {
                    self.block(then);
                    self.block(otherwise);
                }
                StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => self.block(body),
                _ => {}
            }
        }
    }

    /// Notes that a unique value is claimed which rows of other partitions might have.
    fn claim(&mut self, table: TableId, is_written: impl Fn(&[ColumnId]) -> bool) {
        let schema = self.catalog.table(table);
        let first = schema.primary_key[0];
        for index in schema.indexes.iter().filter(|index| index.unique && is_written(&index.columns)) {
            self.found.claims = true;
            if !index.columns.contains(&first) {
                self.touch(table, None, false);
            }
        }
    }

    /// The value of the first key column that all rows of a range have.
    fn first_of_range(&self, schema: &TableSchema, scan: &Scan) -> Option<Source> {
        let columns = match scan.index {
            None => &schema.primary_key,
            Some(index) => &schema.indexes[usize::from(index.0)].columns,
        };
        let place = columns.iter().position(|column| *column == schema.primary_key[0])?;
        self.source(scan.equal.get(place)?)
    }

    fn source(&self, expression: &Expression) -> Option<Source> {
        match &expression.kind {
            ExpressionKind::Constant(value) => Some(Source::Constant(value.clone())),
            ExpressionKind::Cast(inner)
                if expression.ty.data_type.family() == Family::Integer
                    && inner.ty.data_type.family() == Family::Integer =>
            {
                self.source(inner)
            }
            ExpressionKind::Variable(variable) if usize::from(variable.0) < self.program.parameter_count => {
                (self.assigned.count(*variable) == 0).then_some(Source::Parameter(variable.0))
            }
            ExpressionKind::Variable(variable) => {
                let source = self.assigned.fields.get(variable)?;
                (self.assigned.count(*variable) == 1).then(|| source.clone())
            }
            _ => None,
        }
    }
}

/// Whether a key plan has the key of these parts, with what it can keep in mind: few parameters, one list,
/// and beside its fields only parameters before it.
fn is_planned(sources: &[Option<Source>]) -> bool {
    const PARTS_MAX: usize = 8;
    const PARAMETERS_MAX: u16 = 16;
    let mut list = None;
    for source in sources {
        match source {
            Some(Source::Field(from, field)) if *field < PARAMETERS_MAX => {
                if *list.get_or_insert(*from) != *from {
                    return false;
                }
            }
            None | Some(Source::Field(..)) => return false,
            Some(Source::Parameter(_) | Source::Constant(_)) => {}
        }
    }
    let end = list.unwrap_or(PARAMETERS_MAX).min(PARAMETERS_MAX);
    let is_before = |source: &Option<Source>| !matches!(source, Some(Source::Parameter(at)) if *at >= end);
    sources.len() <= PARTS_MAX && sources.iter().all(is_before)
}
