//! Arrays, which programs hold as lists: elements, lengths, `ANY`, and arrays made of others.

use super::binder::Binder;
use super::bound::Bound;
use super::held::some_value;
use super::list::List;
use super::scope::Found;
use super::stop::{Bind, Place, beyond};
use super::tree;
use crate::plpgsql::Returned;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::Span;
use fabius_program::syntax::tree::{ExpressionKind, Parameter, Results, StatementKind, TypeKind, TypeName};
use fabius_sql_meaning::analysis;
use fabius_sql_meaning::catalog;
use fabius_sql_meaning::catalog::column_path;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::without_modifiers;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr};

impl Binder<'_> {
    /// `SELECT f(...)` of a function that returns an array, or `SELECT * FROM f(...)` of one that returns arrays among
    /// others: its results, and the columns that they are. A list of rows could not hold them.
    pub(super) fn arrays(&mut self, query: &ast::Query) -> Bind<Option<(Results, Vec<OutputColumn>)>> {
        if let Some(row) = self.row_with_arrays(query)? {
            let (columns, values): (Vec<OutputColumn>, Vec<Bound>) = row.into_iter().unzip();
            let result = |(at, value): (usize, &Bound)| Parameter {
                name: tree::name(format!("c{}", at + 1)),
                ty: value.result_type(),
            };
            let results = values.iter().enumerate().map(result).collect();
            let values = values.into_iter().map(|value| value.expression).collect();
            self.emit(tree::statement(StatementKind::Return { values }));
            return Ok(Some((Results::Named(results), columns)));
        }
        let ast::SetExpr::Select(select) = &*query.body else { return Ok(None) };
        let [item] = select.projection.as_slice() else { return Ok(None) };
        let (call, name) = match item {
            ast::SelectItem::UnnamedExpr(Expr::Function(call)) => (call, None),
            ast::SelectItem::ExprWithAlias { expr: Expr::Function(call), alias } => {
                (call, Some(catalog::folded(alias)))
            }
            _ => return Ok(None),
        };
        let is_plain = select.from.is_empty() && select.selection.is_none() && query.limit_clause.is_none();
        if !is_plain || !crate::plpgsql::returns_array(self, call) {
            return Ok(None);
        }
        let Some(value) = crate::plpgsql::scalar(self, call)? else { return Ok(None) };
        let list = List::of(&value)?;
        let ty = value.result_type();
        self.emit(tree::statement(StatementKind::Return { values: vec![value.expression.clone()] }));
        let own = call.name.0.last().and_then(|part| part.as_ident()).map(catalog::folded);
        let name = name.or(own).unwrap_or_default();
        let column = OutputColumn { name, sql_type: list.array(), origin: (0, 0) };
        Ok(Some((Results::One(ty), vec![column])))
    }

    /// The row of `SELECT * FROM f(...)`, of a function that returns arrays among others; `None` of anything else.
    pub(crate) fn row_with_arrays(&mut self, query: &ast::Query) -> Bind<Option<Vec<(OutputColumn, Bound)>>> {
        let ast::SetExpr::Select(select) = &*query.body else { return Ok(None) };
        let ([ast::SelectItem::Wildcard(_)], [ast::TableWithJoins { relation, joins }]) =
            (select.projection.as_slice(), select.from.as_slice())
        else {
            return Ok(None);
        };
        let ast::TableFactor::Table { name, args: Some(args), with_ordinality: false, .. } = relation else {
            return Ok(None);
        };
        let is_plain = joins.is_empty() && select.selection.is_none() && query.limit_clause.is_none();
        let call = super::table_function::called(name, args);
        if !is_plain || !crate::plpgsql::returns_row_with_array(self, &call) {
            return Ok(None);
        }
        match crate::plpgsql::table(self, &call)? {
            Some(Returned::Row(row)) => Ok(Some(row)),
            _ => beyond("arrays in rows"),
        }
    }

    /// The list that an expression is; what it needs first goes to the block.
    pub(crate) fn list(&mut self, expression: &Expr) -> Bind<List> {
        let bound = self.argument(expression)?;
        match self.is_text(&bound.expression) {
            true => beyond("an array that is kept as text"),
            false => List::of(&bound),
        }
    }

    /// A new list, empty.
    fn new_list(&mut self, element: &SqlType) -> List {
        let list = List { name: self.name("array"), element: element.clone() };
        let scalar = tree::scalar(super::held::held(element), true);
        let ty = TypeName { kind: TypeKind::List(scalar), span: Span::default() };
        self.emit(tree::declare(&list.name, true, Some(ty), tree::expression(ExpressionKind::EmptyList)));
        list
    }

    /// Adds all elements of a list to another.
    pub(crate) fn append_all(&mut self, to: &str, from: &str) {
        let each = self.name("element");
        self.emit(tree::for_list(&each, from, vec![tree::append(to, vec![tree::variable(&each)])]));
    }

    /// `array[index]`
    pub(super) fn element(&mut self, root: &Expr, chain: &[ast::AccessExpr]) -> Bind<Bound> {
        let [ast::AccessExpr::Subscript(ast::Subscript::Index { index })] = chain else {
            return beyond("a part of a value of this form");
        };
        let list = self.list(root)?;
        let index = self.operand(index)?;
        let index = self.assigned(index, &SqlType::Int)?;
        let index = self.settled(index)?;
        Ok(list.at(tree::cast(index, DataType::BigInt)))
    }

    /// Functions of arrays that give one value; `None` if the function is another.
    pub(super) fn array_function(&mut self, name: &str, arguments: &[&Expr]) -> Bind<Option<Bound>> {
        let (array, dimension) = match (name, arguments) {
            ("cardinality", [array]) => (array, None),
            ("array_length" | "array_upper" | "array_lower", [array, dimension]) => (array, Some(dimension)),
            _ => return Ok(None),
        };
        let list = self.list(array)?;
        let count = tree::cast(list.count(), DataType::Int);
        let Some(dimension) = dimension else {
            return Ok(Some(Bound::computed(count, SqlType::Int, false)));
        };
        let dimension = self.operand(dimension)?;
        let dimension = self.assigned(dimension, &SqlType::BigInt)?;
        let dimension = self.settled(dimension)?;
        let value = if name == "array_lower" { tree::integer(1) } else { count.clone() };
        let is_there = tree::all([
            tree::binary(Op::Equal, dimension, tree::integer(1)),
            tree::binary(Op::Greater, count, tree::integer(0)),
        ]);
        let value = tree::choice(is_there, tree::cast(value, DataType::Int), tree::typed_null(DataType::Int));
        Ok(Some(Bound::computed(value, SqlType::Int, true)))
    }

    /// Functions and operators that make arrays; `None` if the expression is another.
    pub(super) fn made_array(&mut self, expression: &Expr) -> Bind<Option<Bound>> {
        let (name, arguments): (String, Vec<&Expr>) = match expression {
            Expr::BinaryOp { left, op: ast::BinaryOperator::StringConcat, right } => {
                let is_array = [left, right].iter().any(|side| self.is_array(side));
                if !is_array {
                    return Ok(None);
                }
                // What has no type is an array too, beside one.
                if [left, right]
                    .iter()
                    .any(|side| matches!(***side, Expr::Value(ref value) if is_unknown(value)))
                {
                    return beyond("an array as a text");
                }
                let name = match (self.is_array(left), self.is_array(right)) {
                    (true, false) => "array_append",
                    (false, true) => "array_prepend",
                    _ => "array_cat",
                };
                (name.to_string(), vec![left, right])
            }
            Expr::Function(function) => {
                let ast::FunctionArguments::List(list) = &function.args else { return Ok(None) };
                let plain = list.args.iter().map(|argument| match argument {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) => Some(argument),
                    _ => None,
                });
                let Some(plain) = plain.collect::<Option<Vec<_>>>() else { return Ok(None) };
                (function.name.to_string().to_lowercase(), plain)
            }
            _ => return Ok(None),
        };
        let (array, value, comes_first) = match (name.as_str(), arguments.as_slice()) {
            ("array_append", [array, value]) => (array, value, false),
            ("array_prepend", [value, array]) => (array, value, true),
            ("array_cat", [one, other]) => {
                let (one, other) = (self.list(one)?, self.list(other)?);
                if one.element != other.element {
                    return beyond("joining arrays of two types");
                }
                let made = self.new_list(&one.element);
                self.append_all(&made.name, &one.name);
                self.append_all(&made.name, &other.name);
                return Ok(Some(made.bound()));
            }
            _ => return Ok(None),
        };
        let list = self.list(array)?;
        if list.element != without_modifiers(&list.element) {
            return beyond("joining to an array whose elements have a length or digits");
        }
        let value = self.operand(value)?;
        if matches!(value.sql_type, SqlType::Array(_)) {
            return beyond("joining an array that is computed");
        }
        let value = self.coerced(value, &list.element)?;
        let made = self.new_list(&list.element);
        if comes_first {
            self.emit(tree::append(&made.name, vec![value.expression.clone()]));
        }
        self.append_all(&made.name, &list.name);
        if !comes_first {
            self.emit(tree::append(&made.name, vec![value.expression]));
        }
        Ok(Some(made.bound()))
    }

    /// Whether an expression is an array, as far as it says so itself.
    fn is_array(&self, expression: &Expr) -> bool {
        match expression {
            Expr::Nested(inner) => self.is_array(inner),
            Expr::Array(_) => true,
            Expr::Cast { data_type: ast::DataType::Array(_), .. } => true,
            Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(name), .. }) => {
                let index = parameter_types::index_of(name).ok();
                index.is_some_and(|index| matches!(self.types.known(index), Some(SqlType::Array(_))))
            }
            Expr::Function(function) => {
                matches!(
                    function.name.to_string().to_lowercase().as_str(),
                    "array_append" | "array_prepend" | "array_cat"
                )
            }
            Expr::BinaryOp { left, op: ast::BinaryOperator::StringConcat, right } => {
                self.is_array(left) || self.is_array(right)
            }
            _ => {
                let Some(path) = column_path(expression) else { return false };
                match self.lookup(&path, Place::of(expression)) {
                    Ok(Some(Found::Column { out, relation, column })) => {
                        let scope = self.scopes.iter().rev().nth(out);
                        let relation = scope.and_then(|scope| scope.relations.get(relation));
                        let column = relation.and_then(|relation| relation.columns.get(column));
                        column.is_some_and(|(_, sql_type)| matches!(sql_type, SqlType::Array(_)))
                    }
                    Ok(Some(Found::Variable(variable))) => matches!(variable.sql_type, SqlType::Array(_)),
                    _ => false,
                }
            }
        }
    }

    /// `left operator ANY (array)`, `ALL`.
    pub(super) fn any_element(
        &mut self,
        left: &Expr,
        symbol: &str,
        array: &Expr,
        is_any: bool,
    ) -> Bind<Bound> {
        if self.lifts {
            return beyond("ANY of an array");
        }
        let list = self.list(array)?;
        let (any, each) = (self.name("any"), self.name("element"));
        let ty = tree::scalar_type(DataType::Boolean, true);
        self.emit(tree::declare(&any, true, Some(ty), tree::boolean(!is_any)));
        let each_value = Bound::computed(tree::variable(&each), list.element.clone(), true);
        let (mut block, compared) = self.nested(|binder| {
            let value = binder.operand(left);
            let compared = value.and_then(|value| analysis::infix(binder, value, symbol, each_value));
            binder.settled(compared?)
        })?;
        let joined = tree::binary(if is_any { Op::Or } else { Op::And }, tree::variable(&any), compared);
        block.push(tree::assign(&any, joined));
        self.emit(tree::for_list(&each, &list.name, block));
        Ok(super::expression::logic(tree::variable(any), true))
    }

    /// The elements of a list as keys: in order, each once, none null. Rows of one field, `f1`.
    pub(super) fn as_keys(&mut self, list: &List) -> (String, DataType) {
        let data_type = super::held::held(&list.element);
        let found = self.name("found");
        self.emit(tree::declare_list(&found, tree::key_fields(&[data_type])));
        let each = self.name("element");
        let there = tree::is_null(tree::variable(&each), true);
        let zero = tree::literal(&some_value(data_type), data_type);
        let known = tree::call("coalesce", vec![tree::variable(&each), zero]);
        let append = vec![tree::append(&found, vec![known])];
        self.emit(tree::for_list(&each, &list.name, vec![tree::when(there, append, None)]));
        (self.each_key_once(&found, &[data_type]), data_type)
    }
}

/// Whether a literal or parameter says of no type that it is of it.
fn is_unknown(value: &ast::ValueWithSpan) -> bool {
    use ast::Value as V;
    !matches!(value.value, V::Number(..) | V::Boolean(_))
}
