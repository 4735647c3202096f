//! SQL statements in bodies: `SELECT INTO`, writes, `PERFORM`, `RETURN QUERY`, `CALL`.

use super::assignment::{Destination, path_of};
use super::declaration::null;
use super::result::Returned;
use super::scope::{Entity, Scope, Slot, Variable, VariablePlace};
use super::{Compiler, NOTICES};
use crate::bind::{Bind, Binder, Bound, Stop, tree as build};
use crate::plpgsql::inline;
use crate::plpgsql::{call, call::Argument};
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{self as program, BinaryOperator, Block};
use fabius_sql_meaning::catalog::ParameterMode;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::{self, Into, Nulls, Path, Query, Statement, StatementKind};
use fabius_value::{DataType, Result, SqlState};
use sqlparser::ast;
use std::cell::RefCell;
use std::ops::ControlFlow;
use std::rc::Rc;

/// What is done for a row, in the block that is given.
type ForRow<'r, 'c> = dyn FnMut(&mut Compiler<'c>, Vec<(OutputColumn, Bound)>, &mut Block) -> Result<()> + 'r;

impl<'c> Compiler<'c> {
    // ---- rows ----

    /// Runs a statement that gives rows, and does something for each of them, one level deeper. The number of rows
    /// written is added to `count`. Whether there is at most one row.
    pub(super) fn rows(
        &mut self,
        query: &Query,
        count: Option<&str>,
        scope: &Scope<'_>,
        block: &mut Block,
        for_row: &mut ForRow<'_, 'c>,
    ) -> Result<bool> {
        self.bind(scope, query.span, block, |compiler, binder| {
            compiler.depth += 1;
            let done = compiler.rows_of(&query.tree, count, binder, for_row);
            compiler.depth -= 1;
            done
        })
    }

    fn rows_of<'b>(
        &mut self,
        statement: &ast::Statement,
        count: Option<&str>,
        binder: &mut Binder<'b>,
        for_row: &mut ForRow<'_, 'c>,
    ) -> Bind<bool> {
        let mut body = |binder: &mut Binder<'b>, columns: &[OutputColumn], values: Vec<Bound>| -> Bind<()> {
            self.take_back(binder);
            let mut block = std::mem::take(&mut binder.block);
            let row = columns.iter().cloned().zip(values).collect();
            let done = for_row(self, row, &mut block);
            binder.block = block;
            self.lend(binder);
            done.map_err(Stop::Wrong)
        };
        match statement {
            ast::Statement::Query(query) => match &*query.body {
                ast::SetExpr::Insert(inner) | ast::SetExpr::Update(inner) | ast::SetExpr::Delete(inner) => {
                    binder.write(inner, count, &mut body)
                }
                _ => binder.for_each_row(query, &mut body).map(|facts| facts.is_single),
            },
            other => binder.write(other, count, &mut body),
        }
    }

    /// The first row of a statement into variables; `strict` wants exactly one.
    pub(super) fn first_row(
        &mut self,
        query: &Query,
        destination: &Destination,
        strict: bool,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let span = query.span;
        let is_write = is_write(&query.tree);
        if let Some(row) = self.row_with_arrays(query, scope, block)? {
            self.store_row(destination, row, span, scope, block)?;
            let rows = self.name("rows");
            self.declare_rows(&rows, 1, block);
            self.set_counts(&rows, block);
            return Ok(());
        }
        let slots = destination.slots();
        if mentions(&query.tree, &slots, scope) {
            // What the statement sees of them is what they were before.
            let found: Vec<Slot> = slots.iter().map(|slot| self.another(slot, block)).collect();
            self.first_row(query, &Destination::Slots(found.clone()), strict, scope, block)?;
            for (slot, found) in slots.iter().zip(found) {
                self.store_in(slot, found.bound(), span, scope, block)?;
            }
            return Ok(());
        }
        if !strict {
            self.clear(destination, span, block)?;
        }
        let rows = self.name("rows");
        let bigint = |value| build::cast(build::integer(value), DataType::BigInt);
        self.declare_rows(&rows, 0, block);
        let count = is_write.then_some(rows.as_str());
        let from = block.len();
        let run = |compiler: &mut Self, query: &Query, block: &mut Block| {
            compiler.rows(query, count, scope, block, &mut |compiler, row, inner| {
                if !is_write {
                    inner.push(build::add(&rows, bigint(1)));
                }
                compiler.store_row(destination, row, span, scope, inner)
            })
        };
        let mut is_single = run(self, query, block)?;
        // Only a query that may have more rows needs to be told to stop.
        if !is_single && let Some(limited) = limited(query, if strict { 2 } else { 1 }) {
            block.truncate(from);
            is_single = run(self, &limited, block)? && !strict;
        }
        let test = |operator| build::binary(operator, build::variable(&rows), bigint(1));
        if strict {
            let message = "query returned no rows".to_string();
            block.push(build::require(test(BinaryOperator::GreaterEqual), b"P0002", message, None));
        }
        if (strict || is_write) && !is_single {
            let failure = program::Failure {
                message: program::Message::Fixed("query returned more than one row".into()),
                state: Some(SqlState(*b"P0003")),
                detail: Some(build::typed_null(DataType::TEXT)),
                hint: Some(build::text("Make sure the query returns a single row, or use LIMIT 1.")),
            };
            let condition = test(BinaryOperator::LessEqual);
            block.push(build::statement(program::StatementKind::Require { condition, failure }));
        }
        self.set_counts(&rows, block);
        Ok(())
    }

    /// Declares the variable that counts the rows of a statement.
    fn declare_rows(&self, rows: &str, count: i128, block: &mut Block) {
        let ty = Some(build::scalar_type(DataType::BigInt, false));
        block.push(build::declare(rows, true, ty, build::cast(build::integer(count), DataType::BigInt)));
    }

    /// A new variable or array of the type of another.
    fn another(&mut self, slot: &Slot, block: &mut Block) -> Slot {
        match slot {
            Slot::Variable(variable) => {
                let own = self.variable(&variable.name, variable.sql_type.clone());
                self.introduce(&own, 0, null(&variable.sql_type), block);
                Slot::Variable(Rc::new(own))
            }
            Slot::List(list) => Slot::List(self.list_variable("array", &list.element, block)),
        }
    }

    /// The only row of a query that calls a function which returns arrays among others.
    fn row_with_arrays(
        &mut self,
        query: &Query,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<Option<Vec<(OutputColumn, Bound)>>> {
        let ast::Statement::Query(tree) = &*query.tree else { return Ok(None) };
        self.bind(scope, query.span, block, |_, binder| binder.row_with_arrays(tree))
    }

    /// Runs a statement of SQL for what it does.
    pub(super) fn run(
        &mut self,
        statement: &ast::Statement,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        if let ast::Statement::Call(function) = statement {
            return self.call(function, span, scope, block);
        }
        let query = Query { tree: Box::new(statement.clone()), span };
        let is_write = is_write(&query.tree);
        let rows = self.counts_rows.then(|| self.name("rows"));
        let bigint = |value| build::cast(build::integer(value), DataType::BigInt);
        if let Some(rows) = &rows {
            self.declare_rows(rows, 0, block);
        }
        let count = rows.as_deref().filter(|_| is_write);
        if self.row_with_arrays(&query, scope, block)?.is_some() {
            if let Some(rows) = rows {
                block.push(build::add(&rows, bigint(1)));
                self.set_counts(&rows, block);
            }
            return Ok(());
        }
        self.rows(&query, count, scope, block, &mut |compiler, row, inner| {
            // Nobody looks at the values, but computing them may fail.
            let values = row.into_iter().map(|(_, value)| value);
            for value in values.filter(|value| !is_write && !matches!(value.sql_type, SqlType::Array(_))) {
                let ty = build::scalar_type(value.data_type, value.nullable);
                inner.push(build::declare(&compiler.name("unseen"), false, Some(ty), value.expression));
            }
            if let (Some(rows), false) = (&rows, is_write) {
                inner.push(build::add(rows, bigint(1)));
            }
            Ok(())
        })?;
        if let Some(rows) = rows {
            self.set_counts(&rows, block);
        }
        Ok(())
    }

    /// An SQL statement, with `INTO` or without.
    pub(super) fn sql(
        &mut self,
        statement: &ast::Statement,
        into: Option<&Into>,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let Some(into) = into else { return self.run(statement, span, scope, block) };
        if let [target] = into.targets.as_slice()
            && let Some(Entity::List(list)) = scope.find(&target.parts)
        {
            let query = Query { tree: Box::new(statement.clone()), span };
            if self.gather(&query, &list, scope, block)? {
                return Ok(());
            }
        }
        let destination = self.destination(&into.targets, scope)?;
        let query = Query { tree: Box::new(statement.clone()), span };
        self.first_row(&query, &destination, into.is_strict, scope, block)
    }

    /// `PERFORM`
    pub(super) fn perform(&mut self, query: &Query, scope: &Scope<'_>, block: &mut Block) -> Result<()> {
        self.run(&query.tree, query.span, scope, block)
    }

    /// `RETURN QUERY`
    pub(super) fn return_query(&mut self, query: &Query, scope: &Scope<'_>, block: &mut Block) -> Result<()> {
        let span = query.span;
        if !matches!(self.output, super::result::Output::Table { .. }) {
            return Err(self.error(b"42804", span, "cannot use RETURN QUERY in a non-SETOF function"));
        }
        self.rows(query, None, scope, block, &mut |compiler, row, inner| {
            compiler.append_row(row, span, scope, inner)
        })?;
        Ok(())
    }

    // ---- FOUND, ROW_COUNT ----

    pub(super) fn declare_found(&mut self, scope: &Scope<'_>) {
        let variable = self.fixed("found", SqlType::Boolean, &self.found.clone());
        scope.declare("found", Entity::Variable(variable));
    }

    /// A variable that the program declares itself, and that is never null.
    fn fixed(&mut self, name: &str, sql_type: SqlType, program: &str) -> Rc<Variable> {
        self.variables += 1;
        let place =
            VariablePlace { program: program.to_string(), nullable: false, depth: usize::MAX, generation: 0 };
        Rc::new(Variable {
            name: name.to_string(),
            sql_type,
            is_constant: true,
            nulls: Nulls::Taken,
            number: self.variables,
            place: RefCell::new(place),
        })
    }

    pub(super) fn declare_row_count(&mut self, block: &mut Block) {
        let ty = Some(build::scalar_type(DataType::BigInt, false));
        let zero = build::cast(build::integer(0), DataType::BigInt);
        let name = self.row_count.clone();
        self.flags.insert(name.clone());
        block.push(build::declare(&name, true, ty, zero));
    }

    fn set_counts(&mut self, rows: &str, block: &mut Block) {
        if !self.counts_rows {
            return;
        }
        let zero = build::cast(build::integer(0), DataType::BigInt);
        let any = build::binary(BinaryOperator::Greater, build::variable(rows), zero);
        block.push(build::assign(&self.found, any));
        block.push(build::assign(&self.row_count, build::variable(rows)));
    }

    /// `GET DIAGNOSTICS x = ROW_COUNT`
    pub(super) fn take_row_count(
        &mut self,
        targets: &[Path],
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        for target in targets {
            let destination = self.destination(std::slice::from_ref(target), scope)?;
            let count = Bound::computed(build::variable(&self.row_count), SqlType::BigInt, false);
            let column = super::assignment::output("row_count", &count);
            self.store_row(&destination, vec![(column, count)], target.span, scope, block)?;
        }
        Ok(())
    }

    // ---- parameters, calls ----

    /// Parameters that the body assigns to become variables.
    pub(super) fn copy_parameters(&mut self, root: &Scope<'_>, tree: &tree::Block, block: &mut Block) {
        let assigned = super::counting::assigned_names(&tree.statements);
        let outputs = self.definition.parameters.iter().filter(|p| p.mode == ParameterMode::InOut);
        let outputs: Vec<&str> = outputs.map(|parameter| parameter.name.as_str()).collect();
        for (number, variable) in root.parameters().into_iter().enumerate() {
            let by_number = format!("${}", number + 1);
            let is_assigned = assigned.contains(&variable.name) || assigned.contains(&by_number);
            if is_assigned || outputs.contains(&variable.name.as_str()) {
                let value = variable.bound();
                self.introduce(&variable, 1, value, block);
            }
        }
    }

    /// `CALL p(...)`
    pub(super) fn call(
        &mut self,
        call: &ast::Function,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let (returned, arguments) = self.bind(scope, span, block, |_, binder| {
            let arguments = call::arguments(binder, call)?;
            let returned = inline::call(binder, call, arguments)?;
            Ok((returned, call::expressions(call)?))
        })?;
        let Returned::Row(row) = returned.returned else { return Ok(()) };
        let places = returned.outputs.iter().map(|at| arguments.get(*at));
        for ((column, value), place) in row.into_iter().zip(places) {
            let path = place.and_then(|argument: &Argument| super::assignment::path_of(&argument.value));
            let Some(parts) = path else {
                let message = format!(
                    "procedure parameter \"{}\" is an output parameter but corresponding argument is not writable",
                    column.name
                );
                return Err(self.error(b"42601", span, message));
            };
            let destination = self.destination(&[Path { parts, span }], scope)?;
            self.store_row(&destination, vec![(column, value)], span, scope, block)?;
        }
        Ok(())
    }
}

/// Whether a statement names one of the variables and arrays.
fn mentions(statement: &ast::Statement, slots: &[Slot], scope: &Scope<'_>) -> bool {
    let is_one = |entity: &Entity| {
        slots.iter().any(|slot| match (slot, entity) {
            (Slot::Variable(variable), Entity::Variable(named)) => variable.number == named.number,
            (Slot::List(list), Entity::List(named)) => list.program == named.program,
            _ => false,
        })
    };
    let found = ast::visit_expressions(statement, |part| {
        match path_of(part).and_then(|path| scope.find(&path)).is_some_and(|entity| is_one(&entity)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found.is_break()
}

/// Whether a statement writes.
pub(super) fn is_write(statement: &ast::Statement) -> bool {
    match statement {
        ast::Statement::Query(query) => matches!(
            &*query.body,
            ast::SetExpr::Insert(_) | ast::SetExpr::Update(_) | ast::SetExpr::Delete(_)
        ),
        _ => true,
    }
}

/// A query that gives no more rows than are looked at. Aggregates give one anyway.
fn limited(query: &Query, most: u32) -> Option<Query> {
    let ast::Statement::Query(tree) = &*query.tree else { return None };
    let ast::SetExpr::Select(select) = &*tree.body else { return None };
    if tree.limit_clause.is_some() || tree.fetch.is_some() || select.from.is_empty() {
        return None;
    }
    let mut tree = tree.clone();
    let limit = ast::Expr::value(ast::Value::Number(most.to_string(), false));
    tree.limit_clause =
        Some(ast::LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by: Vec::new() });
    Some(Query { tree: Box::new(ast::Statement::Query(tree)), span: query.span })
}

/// Tables that statements write, as far as the text says; `None` if they call something.
pub(super) fn written_tables(statements: &[Statement]) -> Option<Vec<String>> {
    let mut tables = Vec::new();
    let mut known = true;
    super::counting::walk(statements, &mut |statement| match &statement.kind {
        StatementKind::Call(_) | StatementKind::Perform(_) => known = false,
        StatementKind::Sql { statement, .. } => match table_of(statement) {
            Some(name) => tables.push(name),
            None => known &= !is_write(statement),
        },
        _ => {}
    });
    known.then_some(tables)
}

/// The last part of a table's name, however it is written.
pub(super) fn table_name(name: &ast::ObjectName) -> Option<String> {
    Some(name.0.last()?.as_ident()?.value.to_lowercase())
}

fn table_of(statement: &ast::Statement) -> Option<String> {
    match statement {
        ast::Statement::Insert(insert) => match &insert.table {
            ast::TableObject::TableName(name) => table_name(name),
            _ => None,
        },
        ast::Statement::Update(update) => match &update.table.relation {
            ast::TableFactor::Table { name, .. } => table_name(name),
            _ => None,
        },
        ast::Statement::Delete(delete) => {
            let (ast::FromTable::WithFromKeyword(tables) | ast::FromTable::WithoutKeyword(tables)) =
                &delete.from;
            match tables.first().map(|table| &table.relation) {
                Some(ast::TableFactor::Table { name, .. }) => table_name(name),
                _ => None,
            }
        }
        _ => None,
    }
}

/// The list that notices go to.
pub fn declare_notices() -> program::Statement {
    let field = |name: &str, nullable| build::field(name, DataType::TEXT, nullable);
    let fields = vec![
        field("severity", false),
        field("code", false),
        field("message", false),
        field("detail", true),
        field("hint", true),
    ];
    build::declare_list(NOTICES, fields)
}
