//! What INSERT, UPDATE and DELETE have in common.

use super::aggregate::has_aggregate;
use super::binder::Binder;
use super::bound::Bound;
use super::condition::each_outside_queries;
use super::held::held;
use super::row_body::RowBody;
use super::scope::{Relation, Row};
use super::stop::{Bind, Place, Stop, beyond};
use super::tree;
use crate::lowered::Argument;
use fabius_program::syntax::tree::{Block, Expression};
use fabius_sql_meaning::catalog::{Column, Table, folded};
use fabius_sql_meaning::functions::may_differ;
use fabius_sql_meaning::type_rules::{Context, without_modifiers};
use fabius_sql_syntax::privilege::Privilege;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::written;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr, SelectItem, Visit, Visitor};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What a statement does with each row that it has written.
pub(super) struct Afterwards<'r, 'b, 'a> {
    /// The variable that counts rows.
    pub(super) count: Option<&'r str>,
    /// `RETURNING`.
    pub(super) items: Option<&'r [SelectItem]>,
    /// What is done with what it returns.
    pub(super) body: &'r mut RowBody<'b, 'a>,
}

/// The expression of an item, unless it is `*`.
fn expression_of(item: &SelectItem) -> Option<&Expr> {
    match item {
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
            Some(expression)
        }
        _ => None,
    }
}

/// Whether there is a subquery in an expression.
pub(super) fn asks(expression: &Expr) -> bool {
    struct Asks;
    impl Visitor for Asks {
        type Break = ();

        fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            ControlFlow::Break(())
        }
    }
    expression.visit(&mut Asks).is_break()
}

impl<'a> Binder<'a> {
    /// INSERT, UPDATE or DELETE. Adds the number of rows to the variable `count`; `returning` is what is done for
    /// each row of `RETURNING`. Gives whether there is at most one.
    ///
    /// # Errors
    /// What is wrong with the statement, or that programs cannot express it.
    pub fn write(
        &mut self,
        statement: &ast::Statement,
        count: Option<&str>,
        returning: &mut RowBody<'_, 'a>,
    ) -> Bind<bool> {
        let before = self.replaced.len();
        let is_single = self.with_followed(|binder| match statement {
            ast::Statement::Insert(insert) => {
                binder.ask_ahead(insert.returning.as_deref());
                binder.insert(insert, count, returning)
            }
            ast::Statement::Update(update) => {
                binder.ask_ahead(update.returning.as_deref());
                binder.update(update, count, returning)
            }
            ast::Statement::Delete(delete) => {
                binder.ask_ahead(delete.returning.as_deref());
                binder.delete(delete, count, returning)
            }
            _ => beyond("a statement of this kind"),
        })?;
        self.replaced.truncate(before);
        Ok(is_single)
    }

    /// Asks subqueries of `RETURNING` that are not about the rows written before any is: so they see what was there.
    fn ask_ahead(&mut self, returning: Option<&[SelectItem]>) {
        // The rows that `ANY` and `ALL` are about are no single value.
        let (mut subqueries, mut of_rows) = (Vec::new(), Vec::new());
        for expression in returning.unwrap_or_default().iter().filter_map(expression_of) {
            each_outside_queries(expression, &mut |part| match part {
                Expr::AnyOp { right, .. } | Expr::AllOp { right, .. } => of_rows.push(right.as_ref().clone()),
                Expr::Subquery(_) | Expr::Exists { .. } => subqueries.push(part.clone()),
                _ => {}
            });
        }
        subqueries.retain(|subquery| !of_rows.contains(subquery));
        for subquery in subqueries {
            // One that cannot be asked here is about those rows.
            if let Ok((block, value)) = self.nested(|binder| binder.operand(&subquery)) {
                self.block.extend(block);
                self.replaced.push((subquery, value, 0));
            }
        }
    }

    /// The table that a statement writes, and what it has to be allowed to do with it.
    pub(super) fn target(&mut self, name: &ast::ObjectName, needs: &[Privilege]) -> Bind<Arc<Table>> {
        let table = self.table(name)?;
        for privilege in needs {
            self.require(&table, *privilege)?;
        }
        if super::binder::is_system(&table.name.schema) {
            let message = format!("permission denied: \"{}\" is a system catalog", table.name.name);
            return self.fail(b"42501", message, Place::of(name));
        }
        self.writes.insert(table.name.clone());
        Ok(table)
    }

    /// A column that a statement gives a value.
    pub(super) fn target_column(&mut self, table: &Table, name: &ast::ObjectName) -> Bind<usize> {
        let Some(ast::ObjectNamePart::Identifier(last)) = name.0.last() else {
            return beyond("a column of this form");
        };
        if name.0.len() > 1 {
            return beyond("a field of a column");
        }
        self.target_ident(table, last)
    }

    /// A column that a statement gives a value.
    pub(super) fn target_ident(&mut self, table: &Table, name: &ast::Ident) -> Bind<usize> {
        table.place_of(&folded(name)).map_err(|error| self.error(error, Place::of_ident(name)))
    }

    /// Counts a written row and returns what `RETURNING` wants of it; the relation's row is as it is now.
    pub(super) fn afterwards(&mut self, after: &mut Afterwards<'_, '_, 'a>) -> Bind<()> {
        if let Some(count) = after.count {
            self.emit(tree::add(count, tree::cast(tree::integer(1), DataType::BigInt)));
        }
        if let Some(items) = after.items {
            for expression in items.iter().filter_map(expression_of) {
                if has_aggregate(expression) {
                    let message = "aggregate functions are not allowed in RETURNING";
                    return self.fail(b"42803", message, Place::of(expression));
                }
            }
            let (columns, values) = self.behind_write_if(true, |binder| binder.items(items))?;
            (after.body)(self, &columns, values)?;
        }
        Ok(())
    }

    /// Binds what runs behind a write of a row, if it does.
    pub(super) fn behind_write_if<T>(
        &mut self,
        is_behind: bool,
        bind: impl FnOnce(&mut Self) -> Bind<T>,
    ) -> Bind<T> {
        let reads_before = std::mem::take(&mut self.reads);
        let bound = bind(self);
        if is_behind {
            self.reads_behind.extend(self.reads.iter().cloned());
        }
        self.reads.extend(reads_before);
        bound
    }

    /// Subqueries see tables as they were before the statement: behind a write, none may look at what has been written.
    pub(super) fn check_reads_behind(&self) -> Bind<()> {
        match self.reads_behind.is_disjoint(&self.writes) {
            true => Ok(()),
            false => beyond("a subquery about a table that the statement has written to"),
        }
    }

    /// A column's `DEFAULT`; null if it has none.
    pub(super) fn default_value(&mut self, column: &Column) -> Bind<Bound> {
        if let Some(sequence) = &column.sequence {
            // An identity's sequence is a part of its table.
            if column.identity.is_none()
                && let Some(sequence) = self.catalog.sequences.get(sequence)
            {
                self.catalog.require_next(self.asker, sequence)?;
            }
            let next = self.next_value(sequence.clone());
            return self.convert(next, &column.sql_type, Context::Assignment);
        }
        let Some(text) = &column.default else { return Ok(Bound::literal(None)) };
        let expression = self.parsed(text)?;
        let inline = std::mem::replace(&mut self.inline, true);
        let before = (self.block.len(), self.inputs.clone());
        let value = self.with_only(Vec::new(), |binder| {
            let value = binder.operand(&expression)?;
            binder.stored(value, &column.name, &column.sql_type)
        });
        self.inline = inline;
        let Err(Stop::Beyond(what)) = value else { return value };
        self.block.truncate(before.0);
        self.inputs = before.1;
        let value = self.computed_default(column, &expression).ok_or(Stop::Beyond(what))?;
        self.stored(value, &column.name, &column.sql_type)
    }

    /// A default that a query computes before the program runs; `None` if each row of a loop would want another.
    fn computed_default(&mut self, column: &Column, expression: &Expr) -> Option<Bound> {
        let differs = may_differ(self.catalog, expression);
        if differs && self.repeats {
            return None;
        }
        let text = written(&super::untyped::typed(expression, column));
        let argument = Argument::Computed(text.into(), column.sql_type.clone());
        let data_type = held(&column.sql_type);
        let known = self.inputs.arguments.iter().position(|known| *known == argument);
        let name = match known.filter(|_| !differs) {
            Some(at) => self.inputs.parameters[at].name.text.clone(),
            None => self.add_parameter("p", tree::scalar_type(data_type, true), argument),
        };
        if column.sql_type.is_kept_as_text() {
            self.kept_texts.insert(name.clone());
        }
        let value = tree::variable(name);
        Some(Bound::held_as(value, without_modifiers(&column.sql_type), true, data_type))
    }

    /// An expression of the catalog.
    pub(super) fn parsed(&self, text: &str) -> Bind<Expr> {
        let parsed = Tokens::of(text).and_then(|tokens| tokens.read(|parser| parser.parse_expr()));
        parsed.map_err(|error| {
            super::stop::wrong(b"XX000", format!("an expression of the catalog does not parse: {error}"))
                .into()
        })
    }

    /// The values of a relation's columns as they are.
    pub(super) fn current(&self, relation: &Relation) -> Bind<Vec<Bound>> {
        (0..relation.columns.len()).map(|at| relation.value(at)).collect()
    }

    /// The key that values of all columns have.
    pub(super) fn key_among(&mut self, table: &Table, values: &[Bound]) -> Bind<Vec<Expression>> {
        let mut key = Vec::new();
        for name in Relation::key_columns(table) {
            let Some(at) = table.columns.iter().position(|column| column.name == name) else {
                return beyond("the key of a table without one");
            };
            key.push(self.settled(values[at].clone())?);
        }
        Ok(key)
    }

    /// A relation whose row is found by a key.
    pub(super) fn keyed(table: &Arc<Table>, alias: Option<String>, key: Vec<Expression>) -> Relation {
        Relation { row: Row::Key { key, optional: false }, ..Relation::table(table, alias) }
    }

    /// What can be put back if a way of binding turns out not to do.
    pub(super) fn mark(&self) -> Mark {
        Mark { inputs: self.inputs.clone(), own: self.own_parameters.clone(), block: self.block.len() }
    }

    /// Forgets what was bound since.
    pub(super) fn back_to(&mut self, mark: Mark) {
        self.inputs = mark.inputs;
        self.own_parameters = mark.own;
        self.block.truncate(mark.block);
    }

    /// Goes over a list of keys and values in a second pass: the element's fields are `k1..` and `v1..`.
    pub(super) fn second_pass(
        &mut self,
        list: &str,
        act: impl FnOnce(&mut Self, &str) -> Bind<()>,
    ) -> Bind<()> {
        let element = self.name("each");
        let (block, ()): (Block, ()) =
            self.nested(|binder| binder.repeated(|binder| act(binder, &element)))?;
        self.emit(tree::for_list(&element, list, block));
        Ok(())
    }
}

/// See [`Binder::mark`].
pub(super) struct Mark {
    inputs: super::inputs::Inputs,
    own: std::collections::HashMap<usize, Bound>,
    block: usize,
}
