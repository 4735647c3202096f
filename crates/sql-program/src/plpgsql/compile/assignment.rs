//! Assignments: to variables, to records, from a row of a query.

use super::Compiler;
use super::declaration::null;
use super::scope::{Entity, Record, Scope, Slot, Variable, VariablePlace};
use crate::bind::{Bind, Binder, Bound, Stop, tree as build};
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{self as program, Block};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::{Expression, Nulls, Path};
use fabius_value::{Result, SqlState};
use sqlparser::ast;
use std::rc::Rc;

/// How deep a variable is that never gets a successor.
const FIXED: usize = usize::MAX;

/// Where a row goes.
pub enum Destination {
    /// Into variables and arrays, one by one.
    Slots(Vec<Slot>),
    /// Into the fields of a record.
    Record(Rc<Record>),
}

impl Destination {
    /// The variables and arrays; of a record that has had no row yet, none.
    pub(super) fn slots(&self) -> Vec<Slot> {
        match self {
            Destination::Slots(slots) => slots.clone(),
            Destination::Record(record) => {
                record.fields.borrow().iter().flatten().cloned().map(Slot::Variable).collect()
            }
        }
    }
}

impl Compiler<'_> {
    /// `target := e`
    pub(super) fn assign(
        &mut self,
        target: &Path,
        value: &Expression,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        match scope.find(&target.parts).ok_or_else(|| self.no_variable(target))? {
            Entity::Variable(variable) => {
                let sql_type = variable.sql_type.clone();
                let bound = self.bind(scope, value.span, block, |_, binder| {
                    let bound = binder.expression(&value.tree, Some(&sql_type))?;
                    binder.coerced(bound, &sql_type)
                })?;
                self.store(&variable, bound, value.span, block)
            }
            Entity::Record(record) => {
                let Some(fields) = self.record_value(&value.tree, scope) else {
                    let message =
                        "assignment of an expression to a whole record is not supported in a function";
                    return Err(self.error(b"0A000", value.span, message));
                };
                let row =
                    fields.iter().map(|field| (output(&field.name, &field.bound()), field.bound())).collect();
                self.store_row(&Destination::Record(record), row, value.span, scope, block)
            }
            Entity::List(list) => self.assign_list(&list, value, scope, block),
        }
    }

    /// The fields of the record that an expression names.
    pub(super) fn record_value(&self, tree: &ast::Expr, scope: &Scope<'_>) -> Option<Vec<Rc<Variable>>> {
        let path = path_of(tree)?;
        match scope.find(&path)? {
            Entity::Record(record) => record.fields.borrow().clone(),
            _ => None,
        }
    }

    /// Gives a variable a value: a new variable of the program, where the old one would be in the same block.
    pub(super) fn store(
        &mut self,
        variable: &Variable,
        value: Bound,
        span: Span,
        block: &mut Block,
    ) -> Result<()> {
        if variable.is_constant {
            let message = format!("variable \"{}\" is declared CONSTANT", variable.name);
            return Err(self.error(b"22005", span, message));
        }
        let value = self.without_nulls(variable, value, block);
        let place = variable.place.borrow().clone();
        if place.depth == self.depth {
            self.introduce(variable, place.generation + 1, value, block);
            return Ok(());
        }
        if value.nullable && !place.nullable {
            self.found_nullable.insert((variable.number, place.generation));
        }
        block.push(build::assign(&place.program, value.expression));
        Ok(())
    }

    /// Declares the program's variable that a variable is from here on.
    pub(super) fn introduce(
        &mut self,
        variable: &Variable,
        generation: usize,
        value: Bound,
        block: &mut Block,
    ) {
        let nullable = value.nullable || self.nullable.contains(&(variable.number, generation));
        let program = self.name(&variable.name);
        let data_type = Bound::computed(build::null(), variable.sql_type.clone(), true).data_type;
        let ty = build::scalar_type(data_type, nullable);
        block.push(build::declare(&program, true, Some(ty), value.expression));
        variable.place.replace(VariablePlace { program, nullable, depth: self.depth, generation });
    }

    /// A value for a variable: of one that is `NOT NULL` behind a check, of one whose nulls nobody reads without them.
    pub(super) fn without_nulls(&mut self, variable: &Variable, value: Bound, block: &mut Block) -> Bound {
        match variable.nulls {
            Nulls::NeverRead if value.nullable && !value.sql_type.is_kept_as_text() => value.or_some_value(),
            Nulls::Refused if value.nullable => {
                let name = &variable.name;
                let message =
                    format!("null value cannot be assigned to variable \"{name}\" declared NOT NULL");
                let failure = program::Failure {
                    detail: Some(build::typed_null(fabius_value::DataType::TEXT)),
                    ..program::Failure::from(message).with_state(SqlState(*b"22004"))
                };
                let condition = build::is_null(value.expression.clone(), true);
                block.push(build::statement(program::StatementKind::Require { condition, failure }));
                value
            }
            // No text stands for an array or an interval that is not there.
            _ => value,
        }
    }

    /// Where `INTO`, `FOR` and the like put a row.
    pub(super) fn destination(&mut self, targets: &[Path], scope: &Scope<'_>) -> Result<Destination> {
        let mut slots = Vec::new();
        for target in targets {
            match scope.find(&target.parts).ok_or_else(|| self.no_variable(target))? {
                Entity::Variable(variable) => slots.push(Slot::Variable(variable)),
                Entity::List(list) => slots.push(Slot::List(list)),
                Entity::Record(record) if targets.len() == 1 => return Ok(Destination::Record(record)),
                Entity::Record(_) => {
                    let message = "record variable cannot be part of multiple-item INTO list";
                    return Err(self.error(b"42601", target.span, message));
                }
            }
        }
        Ok(Destination::Slots(slots))
    }

    /// Puts a row where it goes. What has no value becomes null, what has no place is dropped.
    pub(super) fn store_row(
        &mut self,
        destination: &Destination,
        row: Vec<(OutputColumn, Bound)>,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let slots = match destination {
            Destination::Slots(slots) => slots.clone(),
            Destination::Record(record) => {
                self.fields(record, &row, span)?.into_iter().map(Slot::Variable).collect()
            }
        };
        // All values are read before any variable changes.
        let mut values = Vec::new();
        let mut row = row.into_iter();
        for slot in &slots {
            let value = match (row.next(), slot) {
                (None, Slot::Variable(variable)) => null(&variable.sql_type),
                (None, Slot::List(list)) => null(&list.array()),
                (Some((_, value)), Slot::Variable(variable)) => {
                    let sql_type = variable.sql_type.clone();
                    self.bind(scope, span, block, |_, binder| binder.coerced(value, &sql_type))?
                }
                (Some((_, value)), Slot::List(list)) => {
                    self.bind(scope, span, block, |_, binder| binder.array(value, &list.array()))?
                }
            };
            values.push(value);
        }
        for (slot, value) in slots.iter().zip(values) {
            self.store_in(slot, value, span, scope, block)?;
        }
        Ok(())
    }

    /// Puts a value of its type into a variable or an array.
    pub(super) fn store_in(
        &mut self,
        slot: &Slot,
        value: Bound,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        match slot {
            Slot::Variable(variable) => self.store(variable, value, span, block),
            Slot::List(list) => self.store_list(list, Some(&value), span, scope, block),
        }
    }

    /// Sets to null what a row would go to.
    pub(super) fn clear(&mut self, destination: &Destination, span: Span, block: &mut Block) -> Result<()> {
        for slot in destination.slots() {
            match slot {
                Slot::Variable(variable) if variable.nulls == Nulls::Refused => {}
                Slot::Variable(variable) => self.store(&variable, null(&variable.sql_type), span, block)?,
                Slot::List(list) => {
                    let empty = build::expression(program::ExpressionKind::EmptyList);
                    block.push(build::assign(&list.program, empty));
                }
            }
        }
        Ok(())
    }

    /// The fields of a record; of one that has had no row yet, those of this one.
    fn fields(
        &mut self,
        record: &Record,
        row: &[(OutputColumn, Bound)],
        span: Span,
    ) -> Result<Vec<Rc<Variable>>> {
        if let Some(fields) = record.fields.borrow().clone() {
            let fits = fields.len() >= row.len()
                && fields.iter().zip(row).all(|(field, (column, _))| field.sql_type == column.sql_type);
            if fits {
                return Ok(fields);
            }
            let message = format!("record \"{}\" with columns that change is not supported", record.name);
            return Err(self
                .error(b"0A000", span, message)
                .with_hint("Use a record of its own for each query."));
        }
        let mut fields = Vec::new();
        for (column, _) in row {
            let field = self.variable(&column.name, column.sql_type.clone());
            let mut declared = Block::new();
            self.introduce(&field, 0, null(&column.sql_type), &mut declared);
            field.place.borrow_mut().depth = FIXED;
            self.hoisted.append(&mut declared);
            fields.push(Rc::new(field));
        }
        record.fields.replace(Some(fields.clone()));
        Ok(fields)
    }
}

/// The name that an expression is.
pub(super) fn path_of(tree: &ast::Expr) -> Option<Vec<String>> {
    use crate::plpgsql::type_name::identifier;
    match tree {
        ast::Expr::Identifier(name) => Some(vec![identifier(name)]),
        ast::Expr::CompoundIdentifier(names) => Some(names.iter().map(identifier).collect()),
        ast::Expr::Nested(inner) => path_of(inner),
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Placeholder(name) => Some(vec![name.clone()]),
            _ => None,
        },
        _ => None,
    }
}

/// A column of a row.
pub(super) fn output(name: &str, bound: &Bound) -> OutputColumn {
    OutputColumn { name: name.to_string(), sql_type: bound.sql_type.clone(), origin: (0, 0) }
}

impl Binder<'_> {
    /// A value as one of a variable's type: PL/pgSQL converts, by way of text if need be.
    pub(crate) fn coerced(&mut self, bound: Bound, to: &SqlType) -> Bind<Bound> {
        match self.assigned(bound.clone(), to) {
            Err(Stop::Wrong(error)) if matches!(&error.state().0, b"42804" | b"42846") => {
                let cast = self.explicit_cast(bound, to)?;
                self.settle(cast)
            }
            done => done,
        }
    }
}
