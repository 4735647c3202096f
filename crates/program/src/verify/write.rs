//! Writes: insert, upsert, update, delete, and assignments to columns.

use super::Lowered;
use super::expression::is_not_null;
use super::lowering::{Lowering, OpenLoop};
use super::typing::{self, Operand, assigned};
use crate::abort::null_in_column_message;
use crate::ir::{BinaryOperator, Expression, ExpressionKind, Failure, RowId, ScalarType, StepKind};
use crate::syntax::tree::{self, Name, RowReference};
use crate::syntax::{Diagnostic, Span};
use fabius_value::{ColumnId, ColumnMask, DataType, SqlState, TableId, Value};

/// Columns and the values they get.
type Sets = Vec<(ColumnId, Expression)>;

impl Lowering<'_> {
    /// `row.column = e`, `row.column += e`.
    pub(super) fn assign_column(
        &mut self,
        row: &RowReference,
        column: &Name,
        operator: Option<BinaryOperator>,
        value: &tree::Expression,
        span: Span,
    ) -> Lowered<()> {
        let (handle, table) = self.row_to_write(row)?;
        let id = self.find_column(table, column)?;
        self.check_updatable(table, id, column.span)?;
        let operand = match operator {
            None => self.operand(value, Some(self.catalog.table(table).data_type(id)))?,
            Some(operator) => {
                let target = row.span.to(column.span);
                let kind = tree::ExpressionKind::Column {
                    row: row.clone(),
                    optional: false,
                    column: column.clone(),
                };
                let left = tree::Expression { kind, span: target };
                Operand::typed(self.binary(operator, &left, value, span)?, value.span)
            }
        };
        let value = self.stored(table, id, operand)?;
        self.store(handle, table, vec![(id, value)], span)
    }

    /// `update row { column: e }`.
    pub(super) fn update(
        &mut self,
        row: &RowReference,
        columns: &[(Name, tree::Expression)],
        span: Span,
    ) -> Lowered<()> {
        let (handle, table) = self.row_to_write(row)?;
        let sets = self.sets(table, columns)?;
        for ((name, _), (column, _)) in columns.iter().zip(&sets) {
            self.check_updatable(table, *column, name.span)?;
        }
        self.store(handle, table, sets, span)
    }

    fn store(&mut self, row: RowId, table: TableId, sets: Sets, span: Span) -> Lowered<()> {
        let written: ColumnMask = sets.iter().map(|(column, _)| *column).collect();
        self.emit(StepKind::Update { row, sets }, span)?;
        written.iter().for_each(|column| self.known.updated(table, column));
        Ok(())
    }

    /// `delete row`.
    pub(super) fn delete(&mut self, row: &RowReference, span: Span) -> Lowered<()> {
        let (handle, table) = self.row_to_write(row)?;
        self.emit(StepKind::Delete { row: handle }, span)?;
        self.known.deleted(table);
        Ok(())
    }

    /// `insert table { column: e }`.
    pub(super) fn insert(
        &mut self,
        table: &Name,
        columns: &[(Name, tree::Expression)],
        span: Span,
    ) -> Lowered<()> {
        let (id, values) = self.new_row_values(table, columns)?;
        let primary_key = &self.catalog.table(id).primary_key;
        let key: Vec<Expression> =
            primary_key.iter().map(|column| values[usize::from(column.0)].clone()).collect();
        let row = self.new_row(format!("insert {table}"), id, span)?;
        self.emit(StepKind::Insert { row, values }, span)?;
        self.known.inserted(id);
        self.known.locate(row, id, key);
        self.known.require(row, id);
        Ok(())
    }

    /// `upsert table { column: e }`: an update of the columns given if the row is there, else an insert.
    pub(super) fn upsert(
        &mut self,
        table: &Name,
        columns: &[(Name, tree::Expression)],
        span: Span,
    ) -> Lowered<()> {
        let (id, values) = self.new_row_values(table, columns)?;
        let schema = self.catalog.table(id).clone();
        let given: ColumnMask = columns.iter().filter_map(|(name, _)| schema.column(&name.text)).collect();
        let written = given.without(schema.key_mask());
        for (name, _) in columns {
            let column = self.find_column(id, name)?;
            if written.contains(column) {
                self.check_updatable(id, column, name.span)?;
            }
        }
        let key: Vec<Expression> =
            schema.primary_key.iter().map(|column| values[usize::from(column.0)].clone()).collect();
        let named = |column: &ColumnId| {
            let name = &schema.columns[usize::from(column.0)].name;
            columns.iter().find(|(given, _)| given.text == *name).map(|(_, value)| value.to_string())
        };
        let names: Vec<String> = schema.primary_key.iter().filter_map(named).collect();
        let name = format!("{table}[{}]", names.join(", "));
        let row = match self.known.find(id, &key) {
            Some(row) => row,
            None => {
                let row = self.new_row(name.clone(), id, span)?;
                self.emit(StepKind::Locate { row, key }, span)?;
                row
            }
        };
        let boolean = ScalarType { data_type: DataType::Boolean, nullable: false };
        let exists = self.new_scalar(format!("exists {name}"), boolean, span)?;
        self.emit(StepKind::Exists { variable: exists, row }, span)?;
        let mut sets = Vec::new();
        for column in written.iter() {
            sets.push((column, self.copy(&values[usize::from(column.0)], span)?));
        }
        let outer = std::mem::take(&mut self.steps);
        let updated = if sets.is_empty() { Ok(()) } else { self.emit(StepKind::Update { row, sets }, span) };
        let then = std::mem::take(&mut self.steps);
        let inserted = self
            .new_row(format!("insert {table}"), id, span)
            .and_then(|new| self.emit(StepKind::Insert { row: new, values }, span));
        let otherwise = std::mem::replace(&mut self.steps, outer);
        updated.and(inserted)?;
        let condition = self.variable(exists);
        self.emit(StepKind::If { condition, then, otherwise }, span)?;
        self.known.inserted(id);
        Ok(())
    }

    /// A value for every column of a new row: those given, null for the others.
    fn new_row_values(
        &mut self,
        table: &Name,
        columns: &[(Name, tree::Expression)],
    ) -> Lowered<(TableId, Vec<Expression>)> {
        let id = self.find_table(table)?;
        let schema = self.catalog.table(id).clone();
        if self.loops.iter().any(|open| matches!(open, OpenLoop::Scan(scanned, _) if *scanned == id)) {
            let error = self.invalid(table.span, format!("{table} gets rows inside a for over it"));
            return Err(error
                .with_hint("append what is to be inserted to a list, and insert after the loop")
                .into());
        }
        let sets = self.sets(id, columns)?;
        let mut values: Vec<Expression> =
            schema.columns.iter().map(|column| typing::constant(Value::Null, column.data_type)).collect();
        let mut given = ColumnMask::EMPTY;
        for (column, value) in sets {
            values[usize::from(column.0)] = value;
            given.insert(column);
        }
        let missing: Vec<&str> = schema
            .all_mask()
            .without(given)
            .iter()
            .map(|column| &schema.columns[usize::from(column.0)])
            .filter(|column| !column.nullable)
            .map(|column| column.name.as_str())
            .collect();
        if !missing.is_empty() {
            let message =
                format!("columns of {table} that cannot be null are missing: {}", missing.join(", "));
            let error = Diagnostic::new(SqlState::NOT_NULL_VIOLATION, table.span, message);
            return Err(error
                .with_hint("give each a value; only columns declared null may be left out")
                .into());
        }
        Ok((id, values))
    }

    /// Columns and their values, in the order of the text.
    fn sets(&mut self, table: TableId, columns: &[(Name, tree::Expression)]) -> Lowered<Sets> {
        let mut sets: Sets = Vec::new();
        let mut seen = ColumnMask::EMPTY;
        for (name, value) in columns {
            let column = self.find_column(table, name)?;
            if seen.contains(column) {
                let error = self.invalid(name.span, format!("column {name} is given twice"));
                return Err(error.with_hint("leave one of its values out").into());
            }
            seen.insert(column);
            let operand = self.operand(value, Some(self.catalog.table(table).data_type(column)))?;
            let value = self.stored(table, column, operand)?;
            sets.push((column, value));
        }
        Ok(sets)
    }

    /// A value as its column stores it. One that can be null is checked first if the column cannot.
    fn stored(&mut self, table: TableId, column: ColumnId, operand: Operand) -> Lowered<Expression> {
        let schema = self.catalog.table(table).clone();
        let stored = &schema.columns[usize::from(column.0)];
        let span = operand.span;
        let place = format!("column {}.{}", schema.name, stored.name);
        let value = assigned(operand, stored.data_type, &place)?;
        if stored.nullable || !value.ty.nullable {
            return Ok(value);
        }
        let message = null_in_column_message(&schema.name, &stored.name);
        let state = SqlState::NOT_NULL_VIOLATION;
        let value = match &value.kind {
            ExpressionKind::Constant(_) => {
                let hint = format!("give it a value, or declare it {} null", stored.data_type);
                return Err(Diagnostic::new(state, span, message).with_hint(hint).into());
            }
            ExpressionKind::Variable(_) => value,
            _ => {
                let scalar = value.ty;
                let variable = self.new_scalar(place, scalar, span)?;
                self.emit(StepKind::Assign { variable, value }, span)?;
                self.variable(variable)
            }
        };
        let failure = Failure::fixed(state, message);
        self.emit(StepKind::Require { condition: is_not_null(value.clone()), failure }, span)?;
        Ok(value)
    }

    /// Key columns name the row, and columns of an index that a loop goes along place it in the loop.
    fn check_updatable(&self, table: TableId, column: ColumnId, span: Span) -> Lowered<()> {
        let schema = self.catalog.table(table);
        let name = &schema.columns[usize::from(column.0)].name;
        if schema.key_mask().contains(column) {
            let message = format!("{name} is in the primary key of {} and cannot be changed", schema.name);
            return Err(self.invalid(span, message).with_hint("delete the row and insert another").into());
        }
        let along = |open: &&OpenLoop| match open {
            OpenLoop::Scan(scanned, Some(index)) => {
                *scanned == table && schema.indexes[usize::from(index.0)].columns.contains(&column)
            }
            _ => false,
        };
        if let Some(OpenLoop::Scan(_, Some(index))) = self.loops.iter().find(along) {
            let index = &schema.indexes[usize::from(index.0)].name;
            let message = format!("{name} changes inside a for along index {index}, which holds it");
            let hint = "append the keys to a list, and update after the loop";
            return Err(self.invalid(span, message).with_hint(hint).into());
        }
        Ok(())
    }
}
