//! Arrays as variables: lists that are filled and emptied. An array that was never given a value is empty.

use super::Compiler;
use super::scope::{Entity, List, Scope};
use crate::bind::{Bound, tree as build};
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::{Block, ExpressionKind, StatementKind, TypeKind, TypeName};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::{Expression, Query};
use fabius_value::{DataType, Result};
use sqlparser::ast;
use std::rc::Rc;

impl Compiler<'_> {
    /// A variable that is an array, empty.
    pub(super) fn list_variable(&mut self, name: &str, element: &SqlType, block: &mut Block) -> Rc<List> {
        let program = self.name(name);
        block.push(empty_list(&program, element));
        Rc::new(List { program, element: element.clone() })
    }

    /// `array := e`
    pub(super) fn assign_list(
        &mut self,
        list: &List,
        value: &Expression,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        if let Some(added) = self.added(list, &value.tree, scope) {
            let bound = self.bind(scope, value.span, block, |_, binder| {
                let bound = binder.expression(&added, Some(&list.element))?;
                binder.coerced(bound, &list.element)
            })?;
            block.push(build::append(&list.program, vec![bound.expression]));
            return Ok(());
        }
        let given = self.bind(scope, value.span, block, |_, binder| {
            let given = binder.argument(&value.tree)?;
            if given.is_null() { Ok(None) } else { binder.array(given, &list.array()).map(Some) }
        })?;
        self.store_list(list, given.as_ref(), value.span, scope, block)
    }

    /// Gives an array the elements of another; of none, and of null, it becomes empty.
    pub(super) fn store_list(
        &mut self,
        list: &List,
        value: Option<&Bound>,
        span: Span,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let value = value.filter(|value| !value.is_null());
        self.bind(scope, span, block, |_, binder| {
            let from = value.map(crate::bind::List::of).transpose()?.map(|from| from.name);
            if from.as_ref() != Some(&list.program) {
                binder.emit(build::assign(&list.program, build::expression(ExpressionKind::EmptyList)));
                if let Some(from) = from {
                    binder.append_all(&list.program, &from);
                }
            }
            Ok(())
        })
    }

    /// What `a := a || x` and `a := array_append(a, x)` add to the array itself.
    fn added(&self, list: &List, tree: &ast::Expr, scope: &Scope<'_>) -> Option<ast::Expr> {
        let is_itself = |tree: &ast::Expr| {
            let path = super::assignment::path_of(tree);
            let entity = path.and_then(|path| scope.find(&path));
            matches!(entity, Some(Entity::List(found)) if found.program == list.program)
        };
        let is_scalar = |tree: &ast::Expr| match super::assignment::path_of(tree) {
            Some(path) => matches!(scope.find(&path), Some(Entity::Variable(_))),
            None => matches!(tree, ast::Expr::Value(_)),
        };
        match tree {
            ast::Expr::BinaryOp { left, op: ast::BinaryOperator::StringConcat, right }
                if is_itself(left) && is_scalar(right) =>
            {
                Some((**right).clone())
            }
            ast::Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("array_append") => {
                let ast::FunctionArguments::List(arguments) = &call.args else { return None };
                match arguments.args.as_slice() {
                    [
                        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array)),
                        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)),
                    ] if is_itself(array) => Some(value.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// `array[index] := e`: a list is only added to, so that it is made again.
    pub(super) fn assign_element(
        &mut self,
        list: &List,
        (index, value): (&Expression, &Expression),
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<()> {
        let place = self.bind(scope, index.span, block, |_, binder| {
            let bound = binder.expression(&index.tree, Some(&SqlType::BigInt))?;
            binder.coerced(bound, &SqlType::BigInt)
        })?;
        let value = self.bind(scope, value.span, block, |_, binder| {
            let bound = binder.expression(&value.tree, Some(&list.element))?;
            binder.coerced(bound, &list.element)
        })?;
        let message = "array subscript in assignment must not be null";
        block.push(build::require(
            build::is_null(place.expression.clone(), true),
            b"22004",
            message.to_string(),
            None,
        ));
        let message = "array subscript out of range: arrays begin at 1";
        let fits = build::binary(Op::GreaterEqual, place.expression.clone(), build::integer(1));
        block.push(build::require(fits, b"2202E", message.to_string(), None));
        let held = self.hold("value", &value, block);
        let at = self.hold("place", &place, block);
        let (made, n, each) = (self.name("array"), self.name("n"), self.name("element"));
        block.push(empty_list(&made, &list.element));
        let there = ExpressionKind::Element {
            list: build::name(&list.program),
            index: Box::new(build::variable(&n)),
        };
        let is_it = build::binary(Op::Equal, build::variable(&n), build::variable(&at));
        let next = build::choice(is_it, build::variable(&held), build::expression(there));
        let count = build::call("count", vec![build::variable(&list.program)]);
        block.push(build::statement(StatementKind::ForRange {
            variable: build::name(&n),
            from: build::integer(1),
            to: build::call("greatest", vec![count, build::variable(&at)]),
            body: vec![build::append(&made, vec![next])],
        }));
        block.push(build::assign(&list.program, build::expression(ExpressionKind::EmptyList)));
        let append = vec![build::append(&list.program, vec![build::variable(&each)])];
        block.push(build::for_list(&each, &made, append));
        Ok(())
    }

    /// A value as a variable of the program.
    fn hold(&mut self, stem: &str, value: &Bound, block: &mut Block) -> String {
        let name = self.name(stem);
        let ty = build::scalar_type(value.data_type, value.nullable);
        block.push(build::declare(&name, false, Some(ty), value.expression.clone()));
        name
    }

    /// `SELECT array_agg(e) INTO array FROM ...`; whether the query is of this form.
    pub(super) fn gather(
        &mut self,
        query: &Query,
        list: &List,
        scope: &Scope<'_>,
        block: &mut Block,
    ) -> Result<bool> {
        let Some(rows) = gathered_rows(query) else { return Ok(false) };
        let made = self.name("array");
        block.push(empty_list(&made, &list.element));
        let element = list.element.clone();
        self.rows(&rows, None, scope, block, &mut |compiler, mut row, inner| {
            let Some((_, value)) = row.pop() else { return Ok(()) };
            let value =
                compiler.bind(scope, query.span, inner, |_, binder| binder.coerced(value, &element))?;
            inner.push(build::append(&made, vec![value.expression]));
            Ok(())
        })?;
        let each = self.name("element");
        block.push(build::assign(&list.program, build::expression(ExpressionKind::EmptyList)));
        let append = vec![build::append(&list.program, vec![build::variable(&each)])];
        block.push(build::for_list(&each, &made, append));
        Ok(true)
    }
}

/// `var list: list of type = []`
fn empty_list(name: &str, element: &SqlType) -> fabius_program::syntax::tree::Statement {
    let data_type: DataType = Bound::computed(build::null(), element.clone(), true).data_type;
    let ty = TypeName { kind: TypeKind::List(build::scalar(data_type, true)), span: Span::default() };
    build::declare(name, true, Some(ty), build::expression(ExpressionKind::EmptyList))
}

/// The query of the values that `SELECT array_agg(e ORDER BY o) FROM ...` gathers.
fn gathered_rows(query: &Query) -> Option<Query> {
    let ast::Statement::Query(tree) = &*query.tree else { return None };
    let ast::SetExpr::Select(select) = &*tree.body else { return None };
    let [item] = select.projection.as_slice() else { return None };
    let (ast::SelectItem::UnnamedExpr(tree_of) | ast::SelectItem::ExprWithAlias { expr: tree_of, .. }) = item
    else {
        return None;
    };
    let ast::Expr::Function(call) = tree_of else { return None };
    if !call.name.to_string().eq_ignore_ascii_case("array_agg") || call.filter.is_some() {
        return None;
    }
    let ast::FunctionArguments::List(list) = &call.args else { return None };
    let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value))] = list.args.as_slice() else {
        return None;
    };
    let order = match list.clauses.as_slice() {
        [] if list.duplicate_treatment.is_none() => None,
        [ast::FunctionArgumentClause::OrderBy(order)] => {
            Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order.clone()), interpolate: None })
        }
        _ => return None,
    };
    let mut select = select.clone();
    select.projection = vec![ast::SelectItem::UnnamedExpr(value.clone())];
    let mut tree = tree.clone();
    tree.body = Box::new(ast::SetExpr::Select(select));
    tree.order_by = order;
    Some(Query { tree: Box::new(ast::Statement::Query(tree)), span: query.span })
}
