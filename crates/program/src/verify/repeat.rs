//! Loops: over integers, lists, and ranges of tables.

use super::Lowered;
use super::lowering::{Lowering, OpenLoop};
use super::scope::Binding;
use super::typing::assigned;
use crate::ir::{self, Expression, Filter, ScalarType, ScanBound, StepKind, VariableId};
use crate::syntax::Span;
use crate::syntax::tree::{self, Block, Bound, Name};
use fabius_value::{ColumnId, DataType, IndexId, TableId};

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
        let body = self.loop_body(name, Binding::Scalar { variable, scalar, mutable: false }, None, body)?;
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
                let error = self.invalid(scan.name.span, format!("{} is neither a list nor a table", scan.name));
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
        if scan.index.is_some() || scan.range.is_some() || scan.filter.is_some() || scan.descending || scan.limit.is_some()
        {
            let error = self.invalid(scan.span, "a list is gone over as a whole");
            return Err(error.with_hint("by, ranges, where, descending and limit are for tables; use if").into());
        }
        let plain = fields.len() == 1 && fields[0].name.is_empty();
        let mut variables = Vec::new();
        for field in &fields {
            let text = if plain { name.text.clone() } else { format!("{}.{}", name.text, field.name) };
            variables.push(self.new_scalar(text, field.scalar, name.span)?);
        }
        let binding = if plain {
            Binding::Scalar { variable: variables[0], scalar: fields[0].scalar, mutable: false }
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
        self.forget([body]);
        self.declare(name, binding)?;
        self.loops.extend(open);
        let body = self.block(body);
        self.loops.truncate(loops);
        self.scope.leave(mark);
        self.line = line;
        Ok(body)
    }

    fn for_scan(&mut self, name: &Name, scan: &tree::Scan, body: &Block, span: Span) -> Lowered<()> {
        let table = self.find_table(&scan.name)?;
        let (index, columns) = self.scanned_columns(table, scan)?;
        let (equal, lower, upper) = self.scan_range(table, scan, &columns)?;
        let limit = match &scan.limit {
            Some(limit) => Some(self.bigint(limit, "a limit")?),
            None => None,
        };
        let row = self.new_row(name.text.clone(), table, name.span)?;
        let known = self.known.clone();
        self.known.require(row, table);
        let filter = match &scan.filter {
            Some(filter) => Some(self.filter(name, Binding::Row { row, table }, filter)?),
            None => None,
        };
        let open = OpenLoop::Scan(table, index);
        let body = self.loop_body(name, Binding::Row { row, table }, Some(open), body)?;
        self.known = known;
        self.forget_after_loop(body_of(scan, name, span), &body);
        let scan = ir::Scan { index, equal, lower, upper, descending: scan.descending, filter, limit };
        self.emit(StepKind::ForScan { row, scan, body }, span)
    }
}
