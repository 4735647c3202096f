//! Functions of the catalog in a statement: their arguments, `FROM f(...)`, what they say.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::constant::Quoted;
use super::held;
use super::query_facts::QueryFacts;
use super::row_body::{RowBody, Window};
use super::scope::{Relation, Row};
use super::stop::{Bind, beyond};
use super::tree;
use crate::lowered::Argument;
use crate::plpgsql::{self, NOTICES, Returned};
use fabius_program::syntax::Span;
use fabius_program::syntax::tree::{Parameter, Results, StatementKind, TypeKind, TypeName};
use fabius_sql_meaning::analysis::Sight;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::array_literal;
use fabius_sql_meaning::type_rules::{self, Context};
use sqlparser::ast::{self, Expr, TableFactor};

impl<'a> Binder<'a> {
    /// Whether a value of one type can be given where another is wanted.
    pub(crate) fn accepts(&self, from: &SqlType, to: &SqlType) -> bool {
        match (from, to) {
            (SqlType::Array(from), SqlType::Array(to)) => from == to || self.accepts(from, to),
            _ => type_rules::converts(from, to, Context::Implicit),
        }
    }

    /// An argument of a function: a value, whose type may depend on the function, or an array as a list.
    pub(crate) fn argument(&mut self, expression: &Expr) -> Bind<Bound> {
        match expression {
            Expr::Nested(inner) => self.argument(inner),
            Expr::Array(array) => {
                let mut values = Vec::new();
                for value in &array.elem {
                    values.push(self.operand(value)?);
                }
                let (values, element) = self.unify(values, "ARRAY")?;
                let element = if element == SqlType::Unknown { SqlType::Text } else { element };
                plpgsql::gathered(self, values, &SqlType::Array(Box::new(element)))
            }
            Expr::Cast { expr, data_type, .. } => match self.catalog.type_of(data_type) {
                Ok(array @ SqlType::Array(_)) => {
                    let value = self.argument(expr)?;
                    self.array(value, &array)
                }
                _ => self.operand(expression),
            },
            _ => {
                if let Some(made) = self.made_array(expression)? {
                    return Ok(made);
                }
                let value = self.operand(expression)?;
                match (&value.known, &value.sql_type, expression) {
                    (Known::Computed, SqlType::Array(_), Expr::Value(value_of)) => {
                        let array = value.sql_type.clone();
                        match (&value_of.value, self.variables) {
                            (ast::Value::Placeholder(name), None) => {
                                let index = parameter_types::index_of(name)?;
                                self.array_parameter(index, &array)
                            }
                            _ => Ok(value),
                        }
                    }
                    _ => Ok(value),
                }
            }
        }
    }

    /// What has no type yet, or another array, as an array of a type.
    pub(crate) fn array(&mut self, value: Bound, array: &SqlType) -> Bind<Bound> {
        match &value.known {
            Known::Parameter(index) => {
                let index = *index;
                let array = self.types.infer(index, array)?;
                self.array_parameter(index, &array)
            }
            Known::Literal(Some(quoted)) => {
                let elements = array_literal::elements(quoted.text());
                let elements = elements.map_err(|error| self.error(error, value.place))?.into_iter();
                let literal = |element: Option<String>| Bound::literal(element.as_deref().map(Quoted::new));
                plpgsql::gathered(self, elements.map(literal).collect(), array)
            }
            _ if matches!(value.sql_type, SqlType::Array(_)) => Ok(value),
            _ => beyond("an array that is computed"),
        }
    }

    fn array_parameter(&mut self, index: usize, array: &SqlType) -> Bind<Bound> {
        if self.types.may_be_null(index) {
            return beyond("an array that is null");
        }
        let element = match array {
            SqlType::Array(element) => held::held(element),
            other => held::held(other),
        };
        let kind = TypeKind::List(tree::scalar(element, true));
        let name = self.add_list(TypeName { kind, span: Span::default() }, Argument::Parameter(index));
        Ok(Bound::held_as(tree::variable(name), array.clone(), false, element))
    }

    /// `SELECT ... FROM f(...)` of a function of the catalog; `None` if the `FROM` is anything else.
    pub(super) fn selected_function(
        &mut self,
        select: &ast::Select,
        window: &Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<Option<QueryFacts>> {
        let [ast::TableWithJoins { relation, joins }] = select.from.as_slice() else { return Ok(None) };
        let (call, alias) = match relation {
            TableFactor::Table { name, alias, args: Some(args), with_ordinality: false, .. }
                if joins.is_empty() =>
            {
                (called(name, args), alias)
            }
            _ => return Ok(None),
        };
        let Some(returned) = plpgsql::table(self, &call)? else { return Ok(None) };
        let name =
            call.name.0.last().and_then(|part| part.as_ident()).map(fabius_sql_meaning::catalog::folded);
        let mut relation = Relation {
            name: name.unwrap_or_default(),
            schema: None,
            table: None,
            columns: Vec::new(),
            sight: Sight::Everywhere,
            row: Row::Absent,
        };
        let columns = match &returned {
            Returned::Nothing => return beyond("a function that returns void in FROM"),
            Returned::Row(row) => row.iter().map(|(column, _)| column.clone()).collect(),
            Returned::Table { columns, .. } => columns.clone(),
        };
        relation.columns =
            columns.iter().map(|column| (column.name.clone(), column.sql_type.clone())).collect();
        if let Some(alias) = alias {
            relation.name = fabius_sql_meaning::catalog::folded(&alias.name);
            if let [only] = relation.columns.as_mut_slice()
                && alias.columns.is_empty()
            {
                only.0.clone_from(&relation.name);
            }
            for (column, name) in relation.columns.iter_mut().zip(&alias.columns) {
                column.0 = fabius_sql_meaning::catalog::folded(&name.name);
            }
        }
        let (taken, skipped) = (self.name("taken"), self.name("skipped"));
        self.declare_window(window, &taken, &skipped);
        match returned {
            Returned::Table { list, .. } => {
                let element = self.name("row");
                relation.row = Row::Values(plpgsql::row_of_list(&element, &columns));
                let (block, ()) = self.nested(|binder| {
                    binder.repeated(|binder| {
                        binder.function_row(select, relation, window, (&taken, &skipped), body)
                    })
                })?;
                self.emit(tree::for_list(&element, &list, block));
                Ok(Some(QueryFacts { is_single: false, is_keyed: true, is_selective: true }))
            }
            Returned::Row(row) => {
                relation.row = Row::Values(row.into_iter().map(|(_, value)| value).collect());
                self.function_row(select, relation, window, (&taken, &skipped), body)?;
                Ok(Some(QueryFacts { is_single: true, is_keyed: true, is_selective: true }))
            }
            Returned::Nothing => Ok(None),
        }
    }

    fn function_row(
        &mut self,
        select: &ast::Select,
        relation: Relation,
        window: &Window,
        (taken, skipped): (&str, &str),
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<()> {
        self.with_scope(vec![relation], |binder| {
            let condition = match &select.selection {
                Some(condition) => Some(binder.condition(condition, "WHERE")?),
                None => None,
            };
            let (block, ()) = binder.nested(|binder| {
                let (columns, values) = binder.projection(select)?;
                if window.limit.is_none() && window.offset.is_none() {
                    return body(binder, &columns, values);
                }
                binder.windowed(window, taken, skipped, |binder| body(binder, &columns, values))
            })?;
            match condition {
                Some(condition) => binder.emit(tree::when(condition, block, None)),
                None => binder.block.extend(block),
            }
            Ok(())
        })
    }

    /// A program that says something to its client has a list of that as its last result.
    pub(super) fn with_notices(&mut self, results: Results) -> Results {
        if !self.notices {
            return results;
        }
        let declaration = plpgsql::declare_notices();
        let StatementKind::Let { ty: Some(ty), .. } = &declaration.kind else { return results };
        let last = Parameter { name: tree::name(NOTICES), ty: ty.clone() };
        self.block.insert(0, declaration);
        super::inputs::with_result(&mut self.block, results, last, tree::variable(NOTICES))
    }
}

/// The call that a function in `FROM` is.
pub(super) fn called(name: &ast::ObjectName, arguments: &ast::TableFunctionArgs) -> ast::Function {
    let list = ast::FunctionArgumentList {
        duplicate_treatment: None,
        args: arguments.args.clone(),
        clauses: Vec::new(),
    };
    ast::Function {
        name: name.clone(),
        uses_odbc_syntax: false,
        parameters: ast::FunctionArguments::None,
        args: ast::FunctionArguments::List(list),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    }
}
