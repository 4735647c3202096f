//! Loops: over integers, lists, and ranges of tables.

use super::Lowered;
use super::lowering::{Lowering, OpenLoop, counted, given};
use super::scope::{Binding, Declared};
use super::typing::assigned;
use crate::ir::{self, Expression, Filter, RowId, ScalarType, ScanBound, StepKind, VariableId};
use crate::syntax::tree::{self, Block, Bound, Name};
use crate::syntax::{Diagnostic, Span};
use fabius_value::{ColumnId, DataType, IndexId, SqlState, TableId};

impl Lowering<'_> {
    /// `for n in a to b { ... }`.
    pub(super) fn for_range(
        &mut self,
        name: &Name,
        from: &tree::Expression,
        to: &tree::Expression,
        body: &Block,
        span: Span,
    ) -> Lowered<()> {
        let from = self.bigint(from, "the first value of a for")?;
        let to = self.bigint(to, "the last value of a for")?;
        let scalar = ScalarType { data_type: DataType::BigInt, nullable: false };
        let variable = self.new_scalar(name.text.clone(), scalar, name.span)?;
        let binding = Binding::Scalar { variable, scalar, declared: Declared::For };
        let body = self.loop_body(name, binding, None, body)?;
        self.emit(StepKind::ForRange { variable, from, to, body }, span)
    }

    /// `for x in list { ... }` or `for row in table ... { ... }`.
    pub(super) fn for_each(
        &mut self,
        name: &Name,
        scan: &tree::Scan,
        body: &Block,
        span: Span,
    ) -> Lowered<()> {
        match self.scope.get(&scan.name.text).cloned() {
            Some(Binding::Refused) => Err(super::Refused(None)),
            Some(Binding::List { variable, fields, .. }) => {
                self.for_list(name, scan, variable, fields, body, span)
            }
            Some(_) if self.catalog.find_table(&scan.name.text).is_none() => {
                let error =
                    self.invalid(scan.name.span, format!("{} is neither a list nor a table", scan.name));
                Err(error.with_hint(format!("for integers write for {name} in 1 to {}", scan.name)).into())
            }
            _ => self.for_scan(name, scan, body, span),
        }
    }

    fn for_list(
        &mut self,
        name: &Name,
        scan: &tree::Scan,
        list: VariableId,
        fields: Vec<ir::Field>,
        body: &Block,
        span: Span,
    ) -> Lowered<()> {
        if scan.index.is_some()
            || scan.range.is_some()
            || scan.filter.is_some()
            || scan.descending
            || scan.limit.is_some()
        {
            let error = self.invalid(scan.span, "a list is gone over as a whole");
            return Err(error
                .with_hint("by, ranges, where, descending and limit are for tables; use if")
                .into());
        }
        let plain = fields.len() == 1 && fields[0].name.is_empty();
        let mut variables = Vec::new();
        for field in &fields {
            let text = if plain { name.text.clone() } else { format!("{}.{}", name.text, field.name) };
            variables.push(self.new_scalar(text, field.scalar, name.span)?);
        }
        let binding = if plain {
            Binding::Scalar { variable: variables[0], scalar: fields[0].scalar, declared: Declared::For }
        } else {
            Binding::Record { fields: fields.into_iter().zip(variables.iter().copied()).collect() }
        };
        let body = self.loop_body(name, binding, Some(OpenLoop::List(list)), body)?;
        self.emit(StepKind::ForList { list, fields: variables, body }, span)
    }

    /// Lowers a body that runs any number of times.
    fn loop_body(
        &mut self,
        name: &Name,
        binding: Binding,
        open: Option<OpenLoop>,
        body: &Block,
    ) -> Lowered<ir::Block> {
        let (line, mark, loops) = (self.line, self.scope.enter(), self.loops.len());
        let row = match binding {
            Binding::Row { row, table } => Some((row, table)),
            _ => None,
        };
        self.declare(name, binding)?;
        self.forget([body]);
        if let Some((row, table)) = row {
            self.known.require(row, table);
        }
        self.loops.extend(open);
        let body = self.block(body);
        self.loops.truncate(loops);
        self.scope.leave(mark, line);
        self.line = line;
        Ok(body)
    }

    // ---- tables ----

    fn for_scan(&mut self, name: &Name, scan: &tree::Scan, body: &Block, span: Span) -> Lowered<()> {
        let table = self.find_table(&scan.name)?;
        let (index, columns) = self.scanned_columns(table, scan)?;
        let (equal, lower, upper) = self.scan_range(table, scan, &columns)?;
        let limit = match &scan.limit {
            Some(limit) => Some(self.bigint(limit, "a limit")?),
            None => None,
        };
        let row = self.new_row(name.text.clone(), table, name.span)?;
        let binding = Binding::Row { row, table };
        let filter = match &scan.filter {
            Some(filter) => Some(self.filter(name, row, table, filter)?),
            None => None,
        };
        let body = self.loop_body(name, binding, Some(OpenLoop::Scan(table, index)), body)?;
        let scan = ir::Scan { index, equal, lower, upper, descending: scan.descending, filter, limit };
        self.emit(StepKind::ForScan { row, scan, body }, span)
    }

    /// The index that a scan goes along, and its columns.
    fn scanned_columns(
        &self,
        table: TableId,
        scan: &tree::Scan,
    ) -> Lowered<(Option<IndexId>, Vec<ColumnId>)> {
        let schema = self.catalog.table(table);
        let names = || schema.indexes.iter().map(|index| index.name.as_str());
        let along = || format!("go along an index: by {}", names().collect::<Vec<_>>().join(" or by "));
        let Some(name) = &scan.index else {
            if !schema.hash {
                return Ok((None, schema.primary_key.clone()));
            }
            let message =
                format!("the primary key of {} is a hash, which has no order to go along", schema.name);
            let hint = match schema.indexes.is_empty() {
                true => "leave using hash out of the table, or add an index".into(),
                false => along(),
            };
            return Err(self.invalid(scan.span, message).with_hint(hint).into());
        };
        match schema.index(&name.text) {
            Some(index) => Ok((Some(index), schema.indexes[usize::from(index.0)].columns.clone())),
            None => {
                let message = format!("table {} has no index {name}", schema.name);
                let error = Diagnostic::new(SqlState::UNDEFINED_COLUMN, name.span, message);
                let otherwise = || (!schema.indexes.is_empty()).then(along);
                Err(error.did_you_mean(&name.text, names(), otherwise).into())
            }
        }
    }

    #[allow(clippy::type_complexity)] // the three parts of a range, taken apart at once
    fn scan_range(
        &mut self,
        table: TableId,
        scan: &tree::Scan,
        columns: &[ColumnId],
    ) -> Lowered<(Vec<Expression>, Option<ScanBound>, Option<ScanBound>)> {
        let Some(range) = &scan.range else { return Ok((Vec::new(), None, None)) };
        let bounded = range.lower.is_some() || range.upper.is_some();
        let count = range.equal.len() + usize::from(bounded);
        if count > columns.len() {
            let schema = self.catalog.table(table);
            let names: Vec<&str> =
                columns.iter().map(|column| schema.columns[usize::from(column.0)].name.as_str()).collect();
            let message = format!("the index has {}, {}", counted(columns.len(), "column"), given(count));
            let error = self.invalid(scan.span, message);
            return Err(error.with_hint(format!("its columns are {}", names.join(", "))).into());
        }
        let mut equal = Vec::new();
        for (value, &column) in range.equal.iter().zip(columns) {
            equal.push(self.scan_value(table, column, value)?);
        }
        let mut bound = |bound: &Option<Bound>| -> Lowered<Option<ScanBound>> {
            let Some(bound) = bound else { return Ok(None) };
            let value = self.scan_value(table, columns[range.equal.len()], &bound.value)?;
            Ok(Some(ScanBound { value, inclusive: bound.inclusive }))
        };
        let lower = bound(&range.lower)?;
        let upper = bound(&range.upper)?;
        Ok((equal, lower, upper))
    }

    fn scan_value(
        &mut self,
        table: TableId,
        column: ColumnId,
        value: &tree::Expression,
    ) -> Lowered<Expression> {
        let schema = self.catalog.table(table);
        let data_type = schema.data_type(column);
        let place = format!("key column {}.{}", schema.name, schema.columns[usize::from(column.0)].name);
        let operand = self.operand(value, Some(data_type))?;
        assigned(operand, data_type, &place)
    }

    /// What it reads is not known in the body: the filter may run elsewhere, or not again.
    fn filter(
        &mut self,
        name: &Name,
        row: RowId,
        table: TableId,
        condition: &tree::Expression,
    ) -> Lowered<Filter> {
        let mark = self.scope.enter();
        self.declare(name, Binding::Row { row, table })?;
        let known = self.known.clone();
        self.known.require(row, table);
        let outer = std::mem::take(&mut self.steps);
        self.in_filter = true;
        let condition = self.condition(condition);
        self.in_filter = false;
        let steps = std::mem::replace(&mut self.steps, outer);
        self.known = known;
        self.scope.leave(mark, self.line);
        Ok(Filter { steps, condition: condition? })
    }
}
