//! What a function returns, and where it gathers it.

use super::Compiler;
use super::assignment::{Destination, output};
use super::declaration::null;
use super::scope::{Entity, List, Scope, Slot, Variable};
use super::sequence::Flow;
use crate::bind::{Bound, tree as build};
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{Block, ColumnDefinition};
use fabius_sql_meaning::catalog::{ParameterMode, Returns};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::{self, Expression, Query, SqlStatement};
use fabius_value::Result;
use sqlparser::ast;
use std::rc::Rc;

/// Where a function gathers what it returns.
#[derive(Clone)]
pub enum Output {
    /// It returns nothing.
    Nothing,
    /// One value.
    Value(Rc<Variable>),
    /// An array.
    List(Rc<List>),
    /// Several: `OUT` parameters, or a row of a table's type.
    Row(Vec<Slot>),
    /// Rows, in a list; the variables are those of `RETURNS TABLE` and `OUT`.
    Table {
        /// The program's list.
        list: String,
        /// The columns of the rows.
        columns: Vec<(String, SqlType)>,
        /// What `RETURN NEXT` without a value appends.
        variables: Option<Vec<Slot>>,
    },
}

/// What a call gives.
#[derive(Clone)]
pub enum Returned {
    /// Nothing: `void`.
    Nothing,
    /// A value or record.
    Row(Vec<(OutputColumn, Bound)>),
    /// Rows in a list of the program; its fields are `c1`, `c2`, ...
    Table {
        /// The list.
        list: String,
        /// The columns.
        columns: Vec<OutputColumn>,
    },
}

impl Compiler<'_> {
    /// A body in PL/pgSQL.
    pub(super) fn procedural(
        &mut self,
        root: &Scope<'_>,
        tree: &tree::Block,
        block: &mut Block,
    ) -> Result<Returned> {
        for flag in [self.returned.clone(), self.found.clone()] {
            block.push(build::declare(&flag, true, None, build::boolean(false)));
        }
        self.declare_row_count(block);
        self.copy_parameters(root, tree, block);
        let scope = Scope::within(root, Some(&self.definition.name.name));
        self.declare_found(&scope);
        self.declare_output(&scope, true, block)?;
        let flow = self.block(tree, &scope, block)?;
        self.check_returned(&flow, block);
        self.catches.escapes = flow.flags;
        self.catches.escapes.remove(&self.returned);
        self.mark_rest(block);
        Ok(self.returned_values())
    }

    /// Statements of SQL: the last gives the result.
    pub(super) fn sql_body(
        &mut self,
        root: &Scope<'_>,
        statements: &[SqlStatement],
        block: &mut Block,
    ) -> Result<Returned> {
        self.counts_rows = false;
        let scope = Scope::within(root, Some(&self.definition.name.name));
        self.declare_output(&scope, false, block)?;
        let Some((last, before)) = statements.split_last() else {
            return match self.output {
                Output::Nothing => Ok(Returned::Nothing),
                _ => Err(self.return_mismatch(Span::default())),
            };
        };
        for (at, statement) in before.iter().enumerate() {
            let from = block.len();
            self.run(&statement.statement, statement.span, &scope, block)?;
            self.mark_of_sql(&mut block[from..], at + 1);
        }
        let from = block.len();
        let query = Query { tree: Box::new(last.statement.clone()), span: last.span };
        match self.output.clone() {
            Output::Nothing => self.run(&last.statement, last.span, &scope, block)?,
            Output::Table { .. } => self.return_query(&query, &scope, block)?,
            Output::List(list) => {
                if !self.gather(&query, &list, &scope, block)? {
                    let message =
                        "a function in SQL that returns an array which is not gathered is not supported";
                    return Err(self
                        .error(b"0A000", last.span, message)
                        .with_hint("Select array_agg(...), or write it in PL/pgSQL."));
                }
            }
            Output::Value(variable) => {
                let destination = Destination::Slots(vec![Slot::Variable(variable)]);
                self.first_row(&query, &destination, false, &scope, block)?;
            }
            Output::Row(slots) => {
                let destination = Destination::Slots(slots);
                self.first_row(&query, &destination, false, &scope, block)?;
            }
        }
        self.mark_of_sql(&mut block[from..], statements.len());
        Ok(self.returned_values())
    }

    /// `OUT` parameters, the columns of `RETURNS TABLE`, the value to return.
    fn declare_output(&mut self, scope: &Scope<'_>, names_them: bool, block: &mut Block) -> Result<()> {
        let has_outputs = self
            .definition
            .parameters
            .iter()
            .any(|parameter| matches!(parameter.mode, ParameterMode::Out | ParameterMode::InOut));
        let named = names_them && self.definition.names_columns;
        self.output = match self.definition.returns.clone() {
            Returns::Scalar(SqlType::Void) => Output::Nothing,
            Returns::Scalar(SqlType::Array(element)) if !has_outputs => {
                Output::List(self.list_variable("result", &element, block))
            }
            Returns::Scalar(sql_type) => {
                let columns = [(String::new(), sql_type)];
                match self.outputs(&columns, named && has_outputs, scope, block)?.as_slice() {
                    [Slot::Variable(variable)] => Output::Value(variable.clone()),
                    [Slot::List(list)] => Output::List(list.clone()),
                    _ => Output::Nothing,
                }
            }
            Returns::Record(columns) => Output::Row(self.outputs(&columns, named, scope, block)?),
            Returns::Table(columns) => {
                let list = self.name("rows");
                let fields: Vec<ColumnDefinition> = columns
                    .iter()
                    .enumerate()
                    .map(|(at, (_, sql_type))| {
                        let data_type = Bound::computed(build::null(), sql_type.clone(), true).data_type;
                        build::field(&format!("c{}", at + 1), data_type, true)
                    })
                    .collect();
                block.push(build::declare_list(&list, fields));
                let variables = named.then(|| self.outputs(&columns, true, scope, block)).transpose()?;
                Output::Table { list, columns, variables }
            }
        };
        Ok(())
    }

    /// Variables and arrays for what is returned; `INOUT` parameters are there already.
    fn outputs(
        &mut self,
        columns: &[(String, SqlType)],
        named: bool,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Vec<Slot>> {
        let outs: Vec<(String, ParameterMode)> = self
            .definition
            .parameters
            .iter()
            .filter(|parameter| matches!(parameter.mode, ParameterMode::Out | ParameterMode::InOut))
            .map(|parameter| (parameter.name.clone(), parameter.mode))
            .collect();
        let mut slots = Vec::new();
        for (at, (name, sql_type)) in columns.iter().enumerate() {
            let out = outs.get(at);
            let name = out.map_or(name, |(name, _)| name).clone();
            if named
                && out.is_some_and(|(_, mode)| *mode == ParameterMode::InOut)
                && let Some(Entity::Variable(variable)) = scope.find(std::slice::from_ref(&name))
            {
                slots.push(Slot::Variable(variable));
                continue;
            }
            let stem = if name.is_empty() { "result" } else { &name };
            if let SqlType::Array(element) = sql_type {
                let list = self.list_variable(stem, element, block);
                // An `INOUT` parameter begins as what is given.
                if named
                    && out.is_some_and(|(_, mode)| *mode == ParameterMode::InOut)
                    && let Some(Entity::List(given)) = scope.find(std::slice::from_ref(&name))
                {
                    self.store_list(&list, Some(&given.bound()), Span::default(), scope, block)?;
                }
                if named && !name.is_empty() {
                    scope.declare(&name, Entity::List(list.clone()));
                }
                slots.push(Slot::List(list));
                continue;
            }
            let variable = self.variable(stem, sql_type.clone());
            self.introduce(&variable, 0, null(sql_type), block);
            let variable = Rc::new(variable);
            if named && !name.is_empty() {
                scope.declare(&name, Entity::Variable(variable.clone()));
            }
            slots.push(Slot::Variable(variable));
        }
        Ok(slots)
    }

    /// `RETURN`
    pub(super) fn return_value(
        &mut self,
        value: Option<&Expression>,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Flow> {
        let has_outputs = self
            .definition
            .parameters
            .iter()
            .any(|parameter| matches!(parameter.mode, ParameterMode::Out | ParameterMode::InOut));
        let refuse = |message: &str| Err(self.error(b"42804", span, message));
        match (&self.output.clone(), value) {
            (Output::Nothing | Output::Table { .. }, None) => {}
            (Output::Value(_) | Output::List(_) | Output::Row(_), None) if has_outputs => {}
            (_, None) => return Err(self.error(b"42601", span, "missing expression at or near \";\"")),
            (Output::Nothing, Some(_)) if self.definition.is_procedure => {
                return refuse("RETURN cannot have a parameter in a procedure");
            }
            (Output::Nothing, Some(value)) => {
                // `RETURN f()` in a function that returns void.
                if !matches!(value.tree, ast::Expr::Value(_)) {
                    return refuse("RETURN cannot have a parameter in function returning void");
                }
            }
            (Output::Table { .. }, Some(_)) => {
                let hint = "Use RETURN NEXT or RETURN QUERY.";
                return refuse("RETURN cannot have a parameter in function returning set")
                    .map_err(|error| error.with_hint(hint));
            }
            (_, Some(_)) if has_outputs => {
                return refuse("RETURN cannot have a parameter in function with OUT parameters");
            }
            (Output::Value(variable), Some(value)) => {
                let sql_type = variable.sql_type.clone();
                let bound = self.bind(scope, value.span, block, |_, binder| {
                    let bound = binder.expression(&value.tree, Some(&sql_type))?;
                    binder.coerced(bound, &sql_type)
                })?;
                self.store(variable, bound, span, block)?;
            }
            (Output::List(list), Some(value)) => self.assign_list(list, value, scope, block)?,
            (Output::Row(slots), Some(value)) => {
                let row = self.row_value(value, scope, block)?;
                let destination = Destination::Slots(slots.clone());
                self.store_row(&destination, row, span, scope, block)?;
            }
        }
        let returned = self.returned.clone();
        block.push(build::assign(&returned, build::boolean(true)));
        Ok(Flow { leaves: true, flags: [returned].into() })
    }

    /// The fields of a record, or of `ROW(...)`.
    fn row_value(
        &mut self,
        value: &Expression,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Vec<(OutputColumn, Bound)>> {
        if let Some(fields) = self.record_value(&value.tree, scope) {
            return Ok(fields
                .iter()
                .map(|field| (output(&field.name, &field.bound()), field.bound()))
                .collect());
        }
        let ast::Expr::Tuple(items) = &value.tree else {
            return Err(self.error(
                b"42804",
                value.span,
                "cannot return non-composite value from function returning composite type",
            ));
        };
        self.bind(scope, value.span, block, |_, binder| {
            let mut row = Vec::new();
            for item in items {
                let bound = binder.expression(item, None)?;
                row.push((output("", &bound), bound));
            }
            Ok(row)
        })
    }

    /// `RETURN NEXT`
    pub(super) fn return_next(
        &mut self,
        value: Option<&Expression>,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let Output::Table { columns, variables, .. } = self.output.clone() else {
            return Err(self.error(b"42804", span, "cannot use RETURN NEXT in a non-SETOF function"));
        };
        let row = match (value, variables) {
            (None, Some(variables)) => {
                variables.iter().map(|slot| (output("", &slot.bound()), slot.bound())).collect()
            }
            (Some(_), Some(_)) => {
                let message = "RETURN NEXT cannot have a parameter in function with OUT parameters";
                return Err(self.error(b"42804", span, message));
            }
            (None, None) => return Err(self.error(b"42601", span, "missing expression at or near \";\"")),
            (Some(value), None) if columns.len() == 1 => {
                let sql_type = columns[0].1.clone();
                let bound = self.bind(scope, value.span, block, |_, binder| {
                    binder.expression(&value.tree, Some(&sql_type))
                })?;
                vec![(output(&columns[0].0, &bound), bound)]
            }
            (Some(value), None) => self.row_value(value, scope, block)?,
        };
        self.append_row(row, span, scope, block)
    }

    /// Adds a row to what is returned.
    pub(super) fn append_row(
        &mut self,
        row: Vec<(OutputColumn, Bound)>,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let Output::Table { list, columns, .. } = self.output.clone() else { return Ok(()) };
        if row.len() != columns.len() {
            return Err(self
                .error(b"42804", span, "structure of query does not match function result type")
                .with_detail(format!(
                    "{} columns are returned, {} are expected.",
                    row.len(),
                    columns.len()
                )));
        }
        let mut values = Vec::new();
        for ((_, value), (_, sql_type)) in row.into_iter().zip(&columns) {
            let value = self.bind(scope, span, block, |_, binder| binder.coerced(value, sql_type))?;
            values.push(value.expression);
        }
        block.push(build::append(&list, values));
        Ok(())
    }

    /// A function with a value has to return it.
    fn check_returned(&mut self, flow: &Flow, block: &mut Block) {
        let has_outputs = self
            .definition
            .parameters
            .iter()
            .any(|parameter| matches!(parameter.mode, ParameterMode::Out | ParameterMode::InOut));
        let is_free = has_outputs || matches!(self.output, Output::Nothing | Output::Table { .. });
        if is_free || flow.leaves {
            return;
        }
        let condition = match flow.flags.contains(&self.returned) {
            true => build::variable(&self.returned),
            false => build::boolean(false),
        };
        let message = "control reached end of function without RETURN";
        block.push(build::require(condition, b"2F005", message.to_string(), None));
    }

    fn returned_values(&self) -> Returned {
        let column = |name: &str, sql_type: &SqlType| OutputColumn {
            name: name.to_string(),
            sql_type: sql_type.clone(),
            origin: (0, 0),
        };
        match (&self.output, &self.definition.returns) {
            (Output::Nothing, _) => Returned::Nothing,
            (Output::Value(variable), _) => {
                let name = &self.definition.name.name;
                Returned::Row(vec![(column(name, &variable.sql_type), variable.bound())])
            }
            (Output::List(list), _) => {
                Returned::Row(vec![(column(&self.definition.name.name, &list.array()), list.bound())])
            }
            (Output::Row(slots), Returns::Record(columns)) => {
                let value = |(slot, (name, sql_type)): (&Slot, &(String, SqlType))| {
                    (column(name, sql_type), slot.bound())
                };
                Returned::Row(slots.iter().zip(columns).map(value).collect())
            }
            (Output::Row(slots), _) => {
                let values = slots.iter().map(Slot::bound);
                Returned::Row(values.map(|value| (output("", &value), value)).collect())
            }
            (Output::Table { list, columns, .. }, _) => Returned::Table {
                list: list.clone(),
                columns: columns.iter().map(|(name, sql_type)| column(name, sql_type)).collect(),
            },
        }
    }

    fn return_mismatch(&self, span: Span) -> fabius_value::Error {
        let message = "return type mismatch in function declared to return a value";
        self.error(b"42P13", span, message)
            .with_detail("Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
    }
}
