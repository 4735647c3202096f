//! Row handles and reads: one lookup per key, one check that the row is there, one read per column,
//! as far as [`Known`](super::known::Known) reaches.

use super::Lowered;
use super::lowering::{Lowering, counted};
use super::scope::Binding;
use super::table::unknown_column;
use super::typing::{Operand, assigned};
use crate::ir::{Expression, RowId, ScalarType, StepKind};
use crate::syntax::tree::{self, Name, RowReference};
use crate::syntax::{Diagnostic, Span};
use fabius_value::{ColumnId, DataType, SqlState, TableId};

impl Lowering<'_> {
    /// The handle of `table[key]`; the row may be missing.
    pub(super) fn locate(&mut self, reference: &RowReference) -> Lowered<(RowId, TableId)> {
        let table = self.find_table(&reference.name)?;
        let schema = self.catalog.table(table).clone();
        let values = reference.key.as_deref().unwrap_or_default();
        if values.len() != schema.primary_key.len() {
            let names: Vec<&str> = schema
                .primary_key
                .iter()
                .map(|column| schema.columns[usize::from(column.0)].name.as_str())
                .collect();
            let message = format!(
                "table {} has a key of {}, this one has {}",
                schema.name,
                counted(names.len(), "column"),
                values.len()
            );
            let error = self.invalid(reference.span, message);
            return Err(error.with_hint(format!("write {}[{}]", schema.name, names.join(", "))).into());
        }
        let mut key = Vec::new();
        for (value, &column) in values.iter().zip(&schema.primary_key) {
            let data_type = schema.data_type(column);
            let operand = self.operand(value, Some(data_type))?;
            let place = format!("key column {}.{}", schema.name, schema.columns[usize::from(column.0)].name);
            key.push(assigned(operand, data_type, &place)?);
        }
        if let Some(row) = self.known.find(table, &key) {
            return Ok((row, table));
        }
        let row = self.new_row(reference.to_string(), table, reference.span)?;
        self.emit(StepKind::Locate { row, key: key.clone() }, reference.span)?;
        self.known.locate(row, table, key);
        Ok((row, table))
    }

    /// Aborts the call if the row is missing, unless it is known to be there.
    pub(super) fn require_row(&mut self, row: RowId, table: TableId, span: Span) -> Lowered<()> {
        if self.known.is_present(row) {
            return Ok(());
        }
        if self.in_filter {
            let error = self.invalid(span, "a filter cannot abort for a row that is missing");
            return Err(error.with_hint("write ?. to read null then").into());
        }
        self.emit(StepKind::RequireRow { row }, span)?;
        self.known.require(row, table);
        Ok(())
    }

    /// A column of a row, read into a variable that is named as in the text.
    pub(super) fn read(
        &mut self,
        row: RowId,
        table: TableId,
        column: ColumnId,
        name: String,
        span: Span,
    ) -> Lowered<Expression> {
        let optional = !self.known.is_present(row);
        if let Some(variable) = self.known.find_read(row, column, optional) {
            return Ok(self.variable(variable));
        }
        let schema = &self.catalog.table(table).columns[usize::from(column.0)];
        let scalar = ScalarType { data_type: schema.data_type, nullable: schema.nullable || optional };
        let variable = self.new_scalar(name, scalar, span)?;
        self.known.read(row, &self.rows, column, variable, optional);
        let line = self.line;
        match self.steps.last_mut() {
            Some(step) if step.line == line => match &mut step.kind {
                StepKind::Read { row: same, columns } if *same == row => {
                    columns.push((column, variable));
                    return Ok(self.variable(variable));
                }
                _ => {}
            },
            _ => {}
        }
        self.emit(StepKind::Read { row, columns: vec![(column, variable)] }, span)?;
        Ok(self.variable(variable))
    }

    /// `row.column`, `table[key].column`, `table[key]?.column`, `record.field`, `list[i].field`.
    pub(super) fn column(
        &mut self,
        reference: &RowReference,
        optional: bool,
        column: &Name,
        span: Span,
    ) -> Lowered<Operand> {
        let name = format!("{reference}{}.{column}", if optional { "?" } else { "" });
        if optional && reference.key.is_none() {
            let error = self
                .invalid(span, format!("?. is for rows that may be missing, {} is there", reference.name));
            return Err(error.with_hint("write .").into());
        }
        let value = match (&reference.key, self.scope.get(&reference.name.text)) {
            (Some(key), Some(Binding::List { .. })) => {
                if optional {
                    let error = self.invalid(span, "?. is for rows of tables");
                    return Err(error.with_hint("an element outside a list is null anyway; write .").into());
                }
                let [index] = key.as_slice() else {
                    return Err(self.invalid(reference.span, "a list has one index").into());
                };
                self.element(&reference.name, index, Some(column))?
            }
            (Some(_), _) => {
                let (row, table) = self.locate(reference)?;
                let id = self.find_column(table, column)?;
                if !optional {
                    self.require_row(row, table, reference.span)?;
                }
                self.read(row, table, id, name, span)?
            }
            (None, _) => match self.lookup(&reference.name.text, reference.name.span)?.clone() {
                Binding::Row { row, table } => {
                    let id = self.find_column(table, column)?;
                    self.require_row(row, table, reference.span)?;
                    self.read(row, table, id, name, span)?
                }
                Binding::Record { fields } => {
                    let found = fields.iter().find(|(field, _)| field.name == column.text);
                    let Some((_, variable)) = found else {
                        let names = fields.iter().map(|(field, _)| field.name.as_str());
                        return Err(unknown_field(&reference.name, column, names).into());
                    };
                    self.variable(*variable)
                }
                Binding::List { .. } => {
                    let error = self.invalid(span, format!("{} is a list", reference.name));
                    let hint =
                        format!("go over it with for, or take one element: {}[1].{column}", reference.name);
                    return Err(error.with_hint(hint).into());
                }
                Binding::Scalar { scalar, .. } => {
                    let data_type = scalar.data_type;
                    let message = format!("{} is {data_type} and has no columns", reference.name);
                    let hint = "columns are those of rows: of a loop over a table, or table[key]";
                    return Err(self.invalid(span, message).with_hint(hint).into());
                }
                Binding::Refused => unreachable!("lookup refuses these"),
            },
        };
        Ok(Operand::typed(value, span))
    }

    /// A row to write to: it must be there.
    pub(super) fn row_to_write(&mut self, reference: &RowReference) -> Lowered<(RowId, TableId)> {
        let (row, table) = if reference.key.is_some() {
            self.locate(reference)?
        } else {
            match self.lookup(&reference.name.text, reference.name.span)? {
                Binding::Row { row, table } => (*row, *table),
                _ => {
                    let error = self.invalid(reference.span, format!("{} is not a row", reference.name));
                    let hint = "name it by its key, table[key], or write inside a for over a table";
                    return Err(error.with_hint(hint).into());
                }
            }
        };
        self.require_row(row, table, reference.span)?;
        Ok((row, table))
    }

    pub(super) fn find_column(&self, table: TableId, name: &Name) -> Lowered<ColumnId> {
        let schema = self.catalog.table(table);
        schema.column(&name.text).ok_or_else(|| unknown_column(name, schema).into())
    }

    /// A list's field at an index; null outside the list.
    pub(super) fn element(
        &mut self,
        list: &Name,
        index: &tree::Expression,
        field: Option<&Name>,
    ) -> Lowered<Expression> {
        let (variable, at, scalar) = self.list_field(list, field, list.span)?;
        let operand = self.operand(index, Some(DataType::BigInt))?;
        let index = Box::new(assigned(operand, DataType::BigInt, "a list's index")?);
        let kind = crate::ir::ExpressionKind::Element { list: variable, index, field: at };
        Ok(Expression { kind, ty: ScalarType { nullable: true, ..scalar } })
    }

    /// A list variable and one of its fields; no field is meant if the list has plain values.
    pub(super) fn list_field(
        &self,
        list: &Name,
        field: Option<&Name>,
        span: Span,
    ) -> Lowered<(crate::ir::VariableId, u16, ScalarType)> {
        let Binding::List { variable, fields, .. } = self.lookup(&list.text, list.span)? else {
            return Err(self.no_list(list).into());
        };
        let plain = fields.len() == 1 && fields[0].name.is_empty();
        let names = || fields.iter().map(|field| field.name.as_str());
        let at = match field {
            None if plain => 0,
            None => {
                let error = self.invalid(span, format!("{list} has several fields"));
                return Err(error
                    .with_hint(format!("name one of {}", names().collect::<Vec<_>>().join(", ")))
                    .into());
            }
            Some(field) if plain => {
                return Err(self
                    .invalid(field.span, format!("{list} has plain values without fields"))
                    .into());
            }
            Some(field) => match names().position(|name| name == field.text) {
                Some(at) => at,
                None => return Err(unknown_field(list, field, names()).into()),
            },
        };
        Ok((*variable, at as u16, fields[at].scalar))
    }
}

fn unknown_field<'a>(of: &Name, field: &Name, names: impl Iterator<Item = &'a str> + Clone) -> Diagnostic {
    Diagnostic::new(SqlState::UNDEFINED_COLUMN, field.span, format!("{of} has no field {field}"))
        .did_you_mean(&field.text, names.clone(), || {
            Some(format!("its fields are {}", names.collect::<Vec<_>>().join(", ")))
        })
}
