//! Values that come several at once: those of a row of SQL, and those that another program gives.

use super::class::Class;
use super::lowering::{Lowering, variable};
use super::value::Value;
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::catalog::Returns;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{Into, Statement as Done, StatementKind as Kind};
use fabius_sql_syntax::python::tree::{Call, Constant, Expression, ExpressionKind};
use fabius_value::Result;
use sqlparser::ast::{self, Expr};

impl Lowering<'_> {
    /// `a, b = row`, of what a statement gives, or `a, b = program(arguments)`
    pub(super) fn receive(
        &mut self,
        names: &[String],
        value: &Expression,
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<()> {
        if let ExpressionKind::Program(call) = &value.kind {
            return self.receive_of(names, call, span, done);
        }
        let count = match &value.kind {
            ExpressionKind::Name(row) => self.results.get(row).map(Vec::len),
            _ => None,
        };
        let Some(count) = count else {
            let instead = "write as many values (a, b = x, y), or take the row's columns: row.qty";
            return self.refused(span, "several targets for one value", instead);
        };
        if count != names.len() {
            let what = format!("{} targets for a row of {count} columns", names.len());
            return self.refused(span, &what, "give each column a target");
        }
        for (at, name) in names.iter().enumerate() {
            if let Some(value) = self.field_at(value, at, span)? {
                done.push(Done { kind: self.assign(name, value, span)?, span });
            }
        }
        Ok(())
    }

    fn receive_of(&mut self, names: &[String], call: &Call, span: Span, done: &mut Vec<Done>) -> Result<()> {
        let (program, arguments) = self.arguments(call, span)?;
        let Returns::Record(columns) = &program.returns else {
            return self.refused(span, "several targets for one value", "give it one target");
        };
        if columns.len() != names.len() {
            let what = format!("{} targets for {} values", names.len(), columns.len());
            return self.refused(span, &what, "give each value a target");
        }
        let nullable = self.nullable_results(&program)?;
        let mut targets = Vec::new();
        for (at, (name, (_, sql_type))) in names.iter().zip(columns).enumerate() {
            let class = Class::of_parameter(sql_type);
            let class = if call.gives_spans.contains(&at) { class.spanned() } else { class };
            let is_nullable = call.may_be_none.contains(&at) || nullable.contains(&at);
            let null = Expr::value(ast::Value::Null);
            self.assign(name, Value { is_nullable, ..Value::of(null, class, span) }, span)?;
            targets.push(self.path(variable(name), span));
        }
        let query = part::rows_of(&call.program, arguments)?;
        let statement = Box::new(ast::Statement::Query(Box::new(query)));
        let into = Some(Into { is_strict: false, targets });
        done.push(Done { kind: Kind::Sql { statement, into }, span });
        Ok(())
    }

    /// `row[1]`, of what a statement gives; `None` for any other element.
    pub(super) fn element_of_row(
        &mut self,
        row: &Expression,
        place: &[Expression],
        span: Span,
    ) -> Result<Option<Value>> {
        let ExpressionKind::Name(name) = &row.kind else { return Ok(None) };
        if let Some(row) = self.rows.get(name) {
            let column = row.table.visible().next().map_or("column", |column| column.name.as_str());
            let instead = format!("name the column: {name}.{column}");
            return self.refused(span, "a row's column by its place", &instead);
        }
        let Some(fields) = self.results.get(name) else { return Ok(None) };
        let count = fields.len();
        let [Expression { kind: ExpressionKind::Constant(Constant::Whole(digits)), .. }] = place else {
            return self.refused(span, "a row's column by a place that is computed", "name it: row.column");
        };
        match digits.parse::<usize>().ok().filter(|at| *at < count) {
            Some(at) => self.field_at(row, at, span),
            None => self.refused(
                span,
                &format!("column {digits} of a row of {count}"),
                "the first is that at 0; or name it: row.column",
            ),
        }
    }

    /// The column at a place, from 0, of what a statement gives.
    fn field_at(&self, row: &Expression, at: usize, span: Span) -> Result<Option<Value>> {
        let ExpressionKind::Name(name) = &row.kind else { return Ok(None) };
        let Some(fields) = self.results.get(name) else { return Ok(None) };
        match fields.get(at) {
            Some(field) => self.field((name, fields), &field.column, span).map(Some),
            None => Ok(None),
        }
    }
}
