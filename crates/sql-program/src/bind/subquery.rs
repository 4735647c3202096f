//! Subqueries in expressions, as loops before the statement that needs them.

use super::binder::Binder;
use super::bound::Bound;
use super::expression::logic;
use super::query_facts::QueryFacts;
use super::scope::Row;
use super::stop::{Bind, Place, beyond};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Block, Statement};
use fabius_sql_meaning::analysis;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr};

impl<'a> Binder<'a> {
    /// `[NOT] EXISTS (query)`
    pub(super) fn any_row(&mut self, query: &ast::Query, negated: bool) -> Bind<Bound> {
        let found = self.name("found");
        let query = self.any_columns(query);
        let ((block, facts), is_of_row) = self.noting_outer(|binder| {
            binder.nested(|binder| {
                binder.for_each_row(&query, &mut |binder, _, _| {
                    binder.emit(tree::assign(&found, tree::boolean(true)));
                    Ok(())
                })
            })
        })?;
        let boolean = Some(tree::scalar_type(DataType::Boolean, false));
        let declared = vec![tree::declare(&found, true, boolean, tree::boolean(false))];
        self.ask(declared, block, &facts, is_of_row)?;
        let found = tree::variable(found);
        Ok(logic(if negated { tree::not(found) } else { found }, false))
    }

    /// Runs the block of a subquery, whose results are declared; for the first row alone that needs it, if it is not
    /// about the rows around.
    fn ask(
        &mut self,
        declared: Vec<Statement>,
        block: Block,
        facts: &QueryFacts,
        is_of_row: bool,
    ) -> Bind<()> {
        self.refuse_for_each_row(facts, is_of_row)?;
        if is_of_row || self.before.is_none() || !self.is_in_loop() {
            self.block.extend(declared);
            self.block.extend(block);
            return Ok(());
        }
        let asked = self.name("asked");
        let before = self.before.get_or_insert_default();
        before.extend(declared);
        before.push(tree::declare(&asked, true, None, tree::boolean(false)));
        let ask = std::iter::once(tree::assign(&asked, tree::boolean(true))).chain(block).collect();
        self.emit(tree::when(tree::not(tree::variable(asked)), ask, None));
        Ok(())
    }

    /// Whether rows of a table are gone over around what is bound.
    pub(super) fn is_in_loop(&self) -> bool {
        let mut relations = self.scopes.iter().flat_map(|scope| &scope.relations);
        relations.any(|relation| match relation.row {
            Row::Loop(_) => true,
            // Of a query in FROM, or of what is computed.
            Row::Values(_) => relation.table.is_none(),
            _ => false,
        })
    }

    /// What is asked for each row of another table does not go over a whole table; if there are many of these rows, and
    /// none is to change, it does not go over the same rows each time, either.
    pub(super) fn refuse_for_each_row(&self, facts: &QueryFacts, is_of_row: bool) -> Bind<()> {
        if !self.lifts || !self.is_in_loop() {
            return Ok(());
        }
        if !facts.is_keyed {
            return beyond("a subquery over a whole table for each row");
        }
        if self.scans > 0 && self.writes.is_empty() && is_of_row && !facts.is_selective {
            return beyond("a subquery over the same rows for each row");
        }
        Ok(())
    }

    /// The one value of a query; null if it has no row.
    pub(super) fn one_value(&mut self, query: &ast::Query) -> Bind<Bound> {
        let result = self.name("value");
        let count = self.name("rows");
        let mut kind: Option<(Bound, DataType)> = None;
        let place = Place::of(query);
        let ((mut block, facts), is_of_row) = self.noting_outer(|binder| {
            binder.nested(|binder| {
                binder.for_each_row(query, &mut |binder, _, mut values| {
                    let (Some(value), true) = (values.pop(), values.is_empty()) else {
                        return Err(binder.error(analysis::only_one_column(), place));
                    };
                    let data_type = match &kind {
                        Some((_, so_far)) => super::held::unified(*so_far, value.data_type),
                        None => value.data_type,
                    };
                    binder.emit(tree::add(&count, tree::cast(tree::integer(1), DataType::BigInt)));
                    binder.emit(tree::assign(&result, value.expression.clone()));
                    kind = Some((value, data_type));
                    Ok(())
                })
            })
        })?;
        let Some((value, data_type)) = kind else {
            return Ok(Bound::literal(None));
        };
        let nothing = Some(tree::scalar_type(data_type, true));
        let bigint = Some(tree::scalar_type(DataType::BigInt, false));
        let declared = vec![
            tree::declare(&result, true, nothing, tree::null()),
            tree::declare(&count, true, bigint, tree::integer(0)),
        ];
        if !facts.is_single {
            let one = tree::binary(Op::LessEqual, tree::variable(&count), tree::integer(1));
            let message = "more than one row returned by a subquery used as an expression";
            block.push(tree::require(one, b"21000", message, None));
        }
        self.ask(declared, block, &facts, is_of_row)?;
        Ok(Bound::held_as(tree::variable(result), value.sql_type, true, data_type))
    }

    /// `operand IN (SELECT ...)`: null if there is no equal value but a null.
    pub(super) fn among_rows(&mut self, operand: &Expr, query: &ast::Query, negated: bool) -> Bind<Bound> {
        let bounds: Vec<Bound> =
            analysis::operands(operand).iter().map(|operand| self.operand(operand)).collect::<Bind<_>>()?;
        let result = self.name("found");
        let mut nullable = false;
        let (block, facts) = self.nested(|binder| {
            binder.for_each_row(query, &mut |binder, _, values| {
                analysis::refuse_other_width(bounds.len(), values.len())?;
                let mut all: Option<Bound> = None;
                for (bound, value) in bounds.iter().zip(values) {
                    let equal = analysis::infix(binder, bound.clone(), "=", value)?;
                    all = Some(match all {
                        None => equal,
                        Some(all) => binder.logical(Op::And, all, equal)?,
                    });
                }
                let Some(equal) = all else { return beyond("IN of no columns") };
                nullable |= equal.nullable;
                let equal = binder.settled(equal)?;
                let either = tree::any([tree::variable(&result), equal]);
                binder.emit(tree::assign(&result, either));
                Ok(())
            })
        })?;
        let boolean = Some(tree::scalar_type(DataType::Boolean, nullable));
        self.refuse_for_each_row(&facts, true)?;
        self.emit(tree::declare(&result, true, boolean, tree::boolean(false)));
        self.block.extend(block);
        let found = tree::variable(result);
        Ok(logic(if negated { tree::not(found) } else { found }, nullable))
    }

    /// The query with a constant for its columns, if they do not matter: EXISTS asks for rows only.
    fn any_columns(&self, query: &ast::Query) -> ast::Query {
        let mut query = query.clone();
        if let ast::SetExpr::Select(select) = &mut *query.body
            && self.has_row_for_each(select)
        {
            let one = Expr::value(ast::Value::Boolean(true));
            select.projection = vec![ast::SelectItem::UnnamedExpr(one)];
            query.order_by = None;
            if select.distinct == Some(ast::Distinct::Distinct) {
                select.distinct = None;
            }
        }
        query
    }

    /// Whether a `SELECT` has a row for each of what it selects from, whatever its columns are.
    pub(super) fn has_row_for_each(&self, select: &ast::Select) -> bool {
        let gives_set = |item: &ast::SelectItem| match item {
            ast::SelectItem::UnnamedExpr(Expr::Function(call))
            | ast::SelectItem::ExprWithAlias { expr: Expr::Function(call), .. } => {
                crate::plpgsql::returns_values(self, call)
            }
            _ => false,
        };
        !super::select::is_aggregated(select)
            && !analysis::calls_sets(&select.projection)
            && !select.projection.iter().any(gives_set)
    }
}
