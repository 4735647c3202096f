//! Types by name and by number: SQL's own, and those that are defined here; and what uses these.

use super::{Catalog, Column, Domain, Function, ObjectName, Oid, Returns, Table, View, parts};
use crate::sql_type::{Enumeration, SqlType};
use fabius_sql_syntax::Command;
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, ArrayElemTypeDef, DataType, Expr};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

impl Catalog {
    /// The type that SQL writes so. SQL's own come first, unless a schema is said.
    ///
    /// # Errors
    /// As [`SqlType::from_ast`], and `0A000` for a domain with constraints: only columns and casts keep them.
    pub fn type_of(&self, data_type: &DataType) -> Result<SqlType> {
        match data_type {
            DataType::Custom(name, modifiers) if modifiers.is_empty() => match self.enumeration(name)? {
                Some(of) => Ok(SqlType::Enumeration(of.clone())),
                None => match self.domain(name)? {
                    Some(domain) if domain.is_constrained() => Err(out_of_place(domain)),
                    Some(domain) => Ok(domain.base.clone()),
                    None => SqlType::from_ast(data_type),
                },
            },
            DataType::Array(ArrayElemTypeDef::SquareBracket(element, _)) => match self.type_of(element)? {
                array @ SqlType::Array(_) => Ok(array),
                element => Ok(SqlType::Array(Box::new(element))),
            },
            _ => SqlType::from_ast(data_type),
        }
    }

    /// The enumeration that a name stands for, if there is one and the name is not one of SQL's own types.
    ///
    /// # Errors
    /// As [`parts`].
    pub fn enumeration(&self, name: &ast::ObjectName) -> Result<Option<&Arc<Enumeration>>> {
        self.defined(&self.enumerations, name)
    }

    /// The domain that a name stands for, if there is one and the name is not one of SQL's own types.
    ///
    /// # Errors
    /// As [`parts`].
    pub fn domain(&self, name: &ast::ObjectName) -> Result<Option<&Arc<Domain>>> {
        self.defined(&self.domains, name)
    }

    fn defined<'c, T>(
        &self,
        all: &'c BTreeMap<ObjectName, Arc<T>>,
        name: &ast::ObjectName,
    ) -> Result<Option<&'c Arc<T>>> {
        if all.is_empty() {
            return Ok(None);
        }
        let (schema, short) = parts(name)?;
        if schema.is_none() && SqlType::of_name(&short).is_some() {
            return Ok(None);
        }
        Ok(self.candidates(schema.as_deref(), &short).iter().find_map(|name| all.get(name)))
    }

    /// The domain that a type's name stands for.
    ///
    /// # Errors
    /// As [`parts`].
    pub fn domain_of(&self, data_type: &DataType) -> Result<Option<&Arc<Domain>>> {
        match data_type {
            DataType::Custom(name, modifiers) if modifiers.is_empty() => self.domain(name),
            _ => Ok(None),
        }
    }

    /// The type of a number of `pg_type`: see [`SqlType::of_oid`].
    pub fn type_of_oid(&self, oid: Oid) -> Option<SqlType> {
        let of_domain = || {
            let mut domains = self.domains.values();
            domains.find(|domain| domain.oid == oid).map(|domain| domain.base.clone())
        };
        SqlType::of_oid(oid).or_else(of_domain).or_else(|| {
            self.enumerations.values().find_map(|of| {
                let own = SqlType::Enumeration(of.clone());
                match oid {
                    _ if oid == of.oid => Some(own),
                    _ if oid == of.array_oid => Some(SqlType::Array(Box::new(own))),
                    _ => None,
                }
            })
        })
    }

    /// The full name of an enumeration.
    pub fn name_of(of: &Enumeration) -> ObjectName {
        ObjectName { schema: of.schema.clone(), name: of.name.clone() }
    }

    /// Whether SQL that is kept names a type: a view's query, a condition, a default.
    pub fn is_named_in(&self, of: &Enumeration, text: &str) -> bool {
        let is_it = |data_type: &DataType| {
            self.type_of(data_type).is_ok_and(
                |found| matches!(found.innermost(), SqlType::Enumeration(found) if found.oid == of.oid),
            )
        };
        let visit = |part: &Expr| match part {
            Expr::Cast { data_type, .. } if is_it(data_type) => ControlFlow::Break(()),
            Expr::TypedString(typed) if is_it(&typed.data_type) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let read = Tokens::of(text);
        if let Ok(expression) = read.and_then(|tokens| tokens.read(|parser| parser.parse_expr())) {
            return ast::visit_expressions(&expression, visit).is_break();
        }
        match fabius_sql_syntax::parse(text) {
            Ok(Command::Sql(statement)) => ast::visit_expressions(&*statement, visit).is_break(),
            _ => false,
        }
    }
}

fn out_of_place(domain: &Domain) -> Error {
    let message = format!("the domain {}, which has constraints, is not supported here", domain.shown());
    Error::new(SqlState::NOT_SUPPORTED, message)
        .with_hint("columns can be of it, and values can be cast to it")
}

/// A domain's condition with an expression for its `VALUE`.
///
/// # Errors
/// `42601` if it is no expression.
pub fn value_as(condition: &str, value: &Expr) -> Result<Expr> {
    let mut condition = Tokens::of(condition)?.read(|parser| parser.parse_expr())?;
    let _ = ast::visit_expressions_mut(&mut condition, |part| {
        if matches!(part, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("value"))
        {
            *part = Expr::Nested(Box::new(value.clone()));
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(condition)
}

/// Whether a type is an enumeration, or an array of it.
pub fn is_of(sql_type: &SqlType, oid: Oid) -> bool {
    matches!(sql_type.innermost(), SqlType::Enumeration(of) if of.oid == oid)
}

/// What has types that can become others when an enumeration is altered.
pub trait Typed {
    /// The types that it has.
    fn types_mut(&mut self) -> Vec<&mut SqlType>;

    /// Has the newest form of an enumeration; whether it has it at all.
    fn follow(&mut self, newest: &Arc<Enumeration>) -> bool {
        let mut follows = false;
        for sql_type in self.types_mut() {
            let mut innermost = sql_type;
            while let SqlType::Array(element) = innermost {
                innermost = element;
            }
            if matches!(innermost, SqlType::Enumeration(of) if of.oid == newest.oid) {
                *innermost = SqlType::Enumeration(newest.clone());
                follows = true;
            }
        }
        follows
    }
}

impl Typed for Table {
    fn types_mut(&mut self) -> Vec<&mut SqlType> {
        self.columns.iter_mut().map(|Column { sql_type, .. }| sql_type).collect()
    }
}

impl Typed for View {
    fn types_mut(&mut self) -> Vec<&mut SqlType> {
        self.columns.iter_mut().map(|(_, sql_type)| sql_type).collect()
    }
}

impl Typed for Function {
    fn types_mut(&mut self) -> Vec<&mut SqlType> {
        let parameters = self.parameters.iter_mut().map(|parameter| &mut parameter.sql_type);
        let returns = match &mut self.returns {
            Returns::Scalar(sql_type) => vec![sql_type],
            Returns::Record(columns) | Returns::Table(columns) => {
                columns.iter_mut().map(|(_, sql_type)| sql_type).collect()
            }
        };
        parameters.chain(returns).collect()
    }
}
