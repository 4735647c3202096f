//! Calls of other programs, and statements of SQL.

use super::class::Class;
use super::hint;
use super::lowering::{Field, Lowering, column_variable, variable};
use super::value::{self, Value, cast};
use crate::bind;
use crate::lowered::Shape;
use fabius_program::syntax::Source;
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::catalog::{Catalog, Function, Returns};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::parameter_types::{ParameterTypes, index_of};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{
    Into, Loop, LoopKind, Path, Query as Asked, Statement as Done, StatementKind as Kind,
};
use fabius_sql_syntax::python::tree::{Call, Query, Statement};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{self, Expr};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// A statement of SQL with its arguments in their places, and what it gives.
struct Meant {
    tree: ast::Statement,
    columns: Vec<OutputColumn>,
}

impl Meant {
    /// Whether a column may be null: not if it is a column that is none, or counts.
    fn may_be_null(&self, at: usize, catalog: &Catalog) -> bool {
        let Some(column) = self.columns.get(at) else { return true };
        let (table, place) = column.origin;
        let own = catalog
            .table_of_oid(table)
            .and_then(|table| table.columns.get(usize::from(place).wrapping_sub(1)));
        match own {
            // Outer joins give nulls for rows that are not there.
            Some(own) => own.nullable || self.tree.to_string().to_ascii_uppercase().contains("JOIN"),
            None => !self.item(at).is_some_and(is_never_null),
        }
    }

    /// What a query computes for a column.
    fn item(&self, at: usize) -> Option<&Expr> {
        let ast::Statement::Query(query) = &self.tree else { return None };
        let ast::SetExpr::Select(select) = query.body.as_ref() else { return None };
        match select.projection.get(at)? {
            ast::SelectItem::UnnamedExpr(expr) | ast::SelectItem::ExprWithAlias { expr, .. } => Some(expr),
            _ => None,
        }
    }
}

/// Whether it is `count(...)`, or `coalesce(..., literal)`, of whichever type.
fn is_never_null(expr: &Expr) -> bool {
    let function = match expr {
        Expr::Function(function) => function,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => return is_never_null(inner),
        _ => return false,
    };
    match function.name.to_string().to_ascii_lowercase().as_str() {
        "count" => true,
        "coalesce" => match &function.args {
            ast::FunctionArguments::List(list) => matches!(
                list.args.last(),
                Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(Expr::Value(last))))
                    if last.value != ast::Value::Null
            ),
            _ => false,
        },
        _ => false,
    }
}

impl Lowering<'_> {
    fn program(&self, name: &str, span: Span) -> Result<&Arc<Function>> {
        let written = ast::ObjectName(vec![part::name_part(name)]);
        match self.catalog.functions_named(&written)? {
            [function] => Ok(function),
            _ => self.wrong(span, b"42883", &format!("there is no program {name}")),
        }
    }

    /// `program(arguments)`, and what it gives.
    fn called(&mut self, call: &Call, span: Span) -> Result<(Expr, Arc<Function>, SqlType)> {
        let (program, arguments) = self.arguments(call, span)?;
        let Returns::Scalar(returns) = &program.returns else {
            let instead = "give its values names: a, b = function(...)";
            return self.refused(span, "a call of a function that gives several values", instead);
        };
        let returns = returns.clone();
        Ok((value::function(&part::quoted(&call.program).to_string(), arguments), program, returns))
    }

    /// The program that is called, and what it is given.
    pub(super) fn arguments(&mut self, call: &Call, span: Span) -> Result<(Arc<Function>, Vec<Expr>)> {
        let Call { program: name, arguments, optional, .. } = call;
        let function = self.program(name, span)?.clone();
        let mut values = Vec::new();
        for (at, (argument, parameter)) in arguments.iter().zip(&function.parameters).enumerate() {
            let value = self.value(argument)?;
            let wanted = Class::of_parameter(&parameter.sql_type);
            let wanted = if call.spans.contains(&at) { wanted.spanned() } else { wanted };
            let is_optional = optional.contains(&at);
            let value = if is_optional { value } else { self.sure(value) };
            if value.is_nullable && !is_optional {
                let what = format!("{} where it may be None", self.text_of(argument.span));
                return self.refused(
                    argument.span,
                    &what,
                    "test it before, or annotate the parameter `| None`",
                );
            }
            let fits = value.class == wanted
                || value.class.is_pending()
                || value.class == Class::None
                || (value.class == Class::Whole && matches!(wanted, Class::Decimal | Class::Float));
            if !fits {
                let named = parameter.name.trim_start_matches("py ");
                let what = format!("{} for {named}, which is {}", value.class.name(), wanted.name());
                let instead = hint::conversion(self.text_of(argument.span), &value.class, &wanted);
                return self.refused(argument.span, &what, &instead);
            }
            values.push(cast(value.tree, &parameter.sql_type)?);
        }
        self.forget_all_columns();
        Ok((function, values))
    }

    /// Places of what a program gives that may be `None`.
    pub(super) fn nullable_results(&mut self, function: &Function) -> Result<BTreeSet<usize>> {
        let name = &function.name.name;
        if let Some(known) = self.programs.get(name) {
            return Ok(known.clone());
        }
        let results = (self.nullable_results_of)(function)?;
        self.programs.insert(name.clone(), results.clone());
        Ok(results)
    }

    /// What a program gives.
    pub(super) fn called_value(&mut self, call: &Call, span: Span) -> Result<Value> {
        let (tree, program, returns) = self.called(call, span)?;
        if returns == SqlType::Void {
            return self.refused(
                span,
                "the value of a function that returns none",
                "call it in a line of its own",
            );
        }
        let class = Class::of_parameter(&returns);
        let class = if call.gives_spans.is_empty() { class } else { class.spanned() };
        let is_nullable = !call.may_be_none.is_empty() || !self.nullable_results(&program)?.is_empty();
        Ok(Value { can_fail: true, is_nullable, ..Value::of(tree, class, span) })
    }

    /// A call of a program that stands by itself.
    pub(super) fn perform(&mut self, call: &Call, span: Span, done: &mut Vec<Done>) -> Result<()> {
        let (program, arguments) = self.arguments(call, span)?;
        let query = match &program.returns {
            Returns::Scalar(_) => {
                let value = value::function(&part::quoted(&call.program).to_string(), arguments);
                part::select(None, vec![ast::SelectItem::UnnamedExpr(value)], Vec::new(), None)?
            }
            _ => part::rows_of(&call.program, arguments)?,
        };
        let tree = Box::new(ast::Statement::Query(Box::new(query)));
        done.push(Done { kind: Kind::Perform(Asked { tree, span }), span });
        Ok(())
    }

    /// A statement with its arguments, in its columns' types.
    fn meant(&mut self, query: &Query, span: Span) -> Result<Meant> {
        let at_its_place = |error: fabius_value::Error, lowering: &Self| {
            let place = lowering.wrong::<()>(span, &error.state().0, error.message());
            place.err().unwrap_or(error)
        };
        let read = Tokens::of(&query.text).and_then(|tokens| tokens.sql());
        let mut tree = read.map_err(|error| at_its_place(error, self))?;
        let arguments = query.arguments.iter().map(|argument| self.value(argument));
        let arguments = arguments.collect::<Result<Vec<_>>>()?;
        let source = Arc::new(Source::new(query.text.as_str(), "statement"));
        // An argument is of the type that the statement wants, as a literal is.
        let mut types = ParameterTypes::new(&vec![SqlType::Unknown; arguments.len()]);
        let lowered = bind::lower(&tree, &source, self.catalog, &mut types, None);
        let lowered = lowered.map_err(|error| at_its_place(error, self))?;
        let mut values = Vec::new();
        for (at, argument) in arguments.into_iter().enumerate() {
            if argument.class == Class::Span {
                values.push(value::as_interval(argument.tree));
                continue;
            }
            let own = argument.class.sql_type();
            let wanted = types.known(at).filter(|wanted| {
                **wanted != SqlType::Unknown
                    && (argument.class != Class::Whole || type_rules::is_integer(wanted))
                    && argument.class != Class::Decimal
            });
            values.push(cast(argument.tree, wanted.unwrap_or(&own))?);
        }
        let Some(lowered) = lowered else {
            let what = "a statement that programs do not express";
            return self.refused(
                span,
                what,
                "say it in smaller parts, or call the function with side=\"client\"",
            );
        };
        let columns = match lowered.shape {
            Shape::Rows(columns) | Shape::CountAndRows(columns) | Shape::OneRow(columns) => columns,
            Shape::Count => Vec::new(),
        };
        let flow = ast::visit_expressions_mut(&mut tree, |part| {
            if let Expr::Value(ast::ValueWithSpan { value: ast::Value::Placeholder(name), .. }) = part {
                match index_of(name).ok().and_then(|index| values.get(index)) {
                    Some(value) => *part = value::nested(value.clone()),
                    None => return ControlFlow::Break(name.clone()),
                }
            }
            ControlFlow::Continue(())
        });
        if let ControlFlow::Break(name) = flow {
            return self.wrong(span, b"42P02", &format!("the statement has no argument for {name}"));
        }
        self.forget_all_columns();
        Ok(Meant { tree, columns })
    }

    /// A statement that stands by itself.
    pub(super) fn execute(&mut self, query: &Query, span: Span, done: &mut Vec<Done>) -> Result<()> {
        let Meant { tree, .. } = self.meant(query, span)?;
        let kind = match &tree {
            ast::Statement::Query(_) => Kind::Perform(Asked { tree: Box::new(tree), span }),
            _ => Kind::Sql { statement: Box::new(tree), into: None },
        };
        done.push(Done { kind, span });
        Ok(())
    }

    /// The columns of a result by their names, which become variables of a name.
    fn fields(&mut self, name: &str, meant: &Meant, span: Span) -> Result<()> {
        let mut fields: Vec<Field> = Vec::new();
        for (at, column) in meant.columns.iter().enumerate() {
            if fields.iter().any(|field| field.column == column.name) {
                let what = format!("two columns of the name {}", column.name);
                return self.refused(span, &what, "give them names with AS");
            }
            fields.push(Field {
                column: column.name.clone(),
                held: value::held(&column.sql_type),
                may_be_null: meant.may_be_null(at, self.catalog),
            });
        }
        if self.variables.contains_key(name) || self.rows.contains_key(name) {
            return self.refused(span, "a name that is a row and something else", "use two names");
        }
        if self.results.get(name).is_some_and(|before| *before != fields) {
            return self.refused(span, "a name that is a row of two results", "use two names");
        }
        self.results.insert(name.to_string(), fields);
        self.forget_columns(name);
        Ok(())
    }

    fn targets(&self, name: &str, columns: &[OutputColumn], span: Span) -> Vec<Path> {
        columns.iter().map(|column| self.path(column_variable(name, &column.name), span)).collect()
    }

    /// `name = db.execute(...).one()`, `.scalar()` or `.rowcount`
    pub(super) fn bind_result(
        &mut self,
        name: &str,
        (query, method): (&Query, &str),
        span: Span,
        done: &mut Vec<Done>,
    ) -> Result<bool> {
        let meant = self.meant(query, span)?;
        let (tree, columns) = (meant.tree.clone(), meant.columns.clone());
        if method == "rowcount" {
            let count = Value::of(value::number("0"), Class::Whole, span);
            self.assign(name, count, span)?;
            done.push(Done { kind: Kind::Sql { statement: Box::new(tree), into: None }, span });
            let target = self.path(variable(name), span);
            done.push(Done { kind: Kind::RowCount(vec![target]), span });
            return Ok(true);
        }
        if columns.is_empty() {
            return self.refused(
                span,
                "rows of a statement that gives none",
                "write RETURNING, or call it alone",
            );
        }
        let targets = match method {
            "one" => {
                self.fields(name, &meant, span)?;
                self.assigned.insert(name.to_string());
                self.targets(name, &columns, span)
            }
            "scalar" => {
                let [column] = columns.as_slice() else {
                    return self.refused(span, "scalar of several columns", "use one()");
                };
                let null = Expr::value(ast::Value::Null);
                let is_nullable = meant.may_be_null(0, self.catalog);
                if value::is_held_otherwise(&column.sql_type) {
                    // It has a name of its own until it is what Python calls it.
                    self.loops += 1;
                    let held = format!("result of {}", self.loops);
                    let class = Class::Other(column.sql_type.of_values());
                    self.assign(&held, Value { is_nullable, ..Value::of(null, class, span) }, span)?;
                    let target = self.path(variable(&held), span);
                    let into = Some(Into { is_strict: true, targets: vec![target] });
                    done.push(Done { kind: Kind::Sql { statement: Box::new(tree), into }, span });
                    let tree = Expr::Identifier(part::quoted(&variable(&held)));
                    let value = Value { is_nullable, ..value::taken(tree, &column.sql_type, span)? };
                    let kind = self.assign(name, value, span)?;
                    done.push(Done { kind, span });
                    return Ok(true);
                }
                let own = Value { is_nullable, ..Value::of(null, Class::of(&column.sql_type), span) };
                self.assign(name, own, span)?;
                vec![self.path(variable(name), span)]
            }
            _ => {
                let what = format!("{method} of a result");
                return self.refused(span, &what, "use one(), scalar(), rowcount, or a loop");
            }
        };
        let into = Some(Into { is_strict: true, targets });
        done.push(Done { kind: Kind::Sql { statement: Box::new(tree), into }, span });
        Ok(true)
    }

    /// `for name in db.execute(...)`
    pub(super) fn results_of(
        &mut self,
        name: &str,
        query: &Query,
        body: &[Statement],
        span: Span,
    ) -> Result<Kind> {
        let meant = self.meant(query, span)?;
        let (tree, columns) = (meant.tree.clone(), meant.columns.clone());
        if columns.is_empty() {
            return self.refused(span, "a loop over a statement that gives no rows", "write RETURNING");
        }
        self.fields(name, &meant, span)?;
        let targets = self.targets(name, &columns, span);
        let before = self.assigned.clone();
        self.assigned.insert(name.to_string());
        let body = self.repeated_of(name, body)?;
        self.assigned = before;
        self.assigned.remove(name);
        let query = Asked { tree: Box::new(tree), span };
        Ok(Kind::Loop(Loop { label: None, kind: LoopKind::Query { targets, query }, body }))
    }
}
