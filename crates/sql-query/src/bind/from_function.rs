//! Functions in `FROM`: rows of one column or several, beside what stands before them.

use super::from::{Item, column_names};
use super::plan_part::spread;
use super::scope::{rename, scope_of};
use super::{Binder, Flavor, Output, Scope, Typed, folded};
use crate::failure::{inbound, unsupported};
use datafusion::logical_expr::{Expr, LogicalPlanBuilder};
use fabius_sql_meaning::pg_catalog;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

impl Binder<'_> {
    pub(super) fn function_item(
        &mut self,
        path: &[String],
        arguments: &[ast::FunctionArg],
        alias: Option<&ast::TableAlias>,
        with_ordinality: bool,
        left: Option<&Scope>,
    ) -> Result<Item> {
        let name = match path {
            [name] => name,
            [schema, name] if schema == "pg_catalog" => name,
            _ => {
                return Err(unsupported(format!(
                    "the function {} in FROM is not supported here",
                    path.join(".")
                )));
            }
        };
        if let Some(relation) = pg_catalog::function_relation(name) {
            let (plan, scope) = self.system(relation, name, alias)?;
            return Ok(Item::Relation { plan, scope });
        }
        let call = ast::Function {
            name: ast::ObjectName::from(vec![ast::Ident::new(name.clone())]),
            uses_odbc_syntax: false,
            parameters: ast::FunctionArguments::None,
            args: ast::FunctionArguments::List(ast::FunctionArgumentList {
                duplicate_treatment: None,
                args: arguments.to_vec(),
                clauses: Vec::new(),
            }),
            filter: None,
            null_treatment: None,
            over: None,
            within_group: Vec::new(),
        };
        let arrays = self.beside(left, |binder| {
            if matches!(name.as_str(), "json_each" | "jsonb_each" | "json_each_text" | "jsonb_each_text") {
                return binder.json_each(name, &call);
            }
            let parts: &[(&str, &str)] = match name.as_str() {
                "pg_options_to_table" => {
                    &[("option_name", "fabius_option_names"), ("option_value", "fabius_option_values")]
                }
                "aclexplode" => &[
                    ("grantor", "fabius_acl_grantors"),
                    ("grantee", "fabius_acl_grantees"),
                    ("privilege_type", "fabius_acl_privileges"),
                    ("is_grantable", "fabius_acl_options"),
                ],
                _ => &[],
            };
            if !parts.is_empty() {
                return binder.parts_of_array(&call, name, parts);
            }
            if matches!(
                name.as_str(),
                "json_to_record" | "jsonb_to_record" | "json_to_recordset" | "jsonb_to_recordset"
            ) {
                return binder.json_records(name, arguments, alias);
            }
            if name == "unnest" && arguments.len() > 1 {
                let mut arrays = Vec::new();
                for argument in arguments {
                    if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expression)) = argument {
                        let typed = binder.expression(expression)?;
                        arrays.push(("unnest".to_string(), binder.set_returning("unnest", vec![typed])?));
                    }
                }
                return Ok(arrays);
            }
            let typed = binder.call(&call)?;
            let within = match &typed.expr {
                Expr::Unnest(unnest) => &unnest.expr,
                other => other,
            };
            if super::call::refuse_sets([within], "").is_err() {
                return Err(unsupported("set-returning functions must appear at top level of FROM"));
            }
            let array = match typed.expr {
                Expr::Unnest(unnest) => Typed::new(*unnest.expr, SqlType::Array(Box::new(typed.sql_type))),
                // A function of one value gives one row.
                _ => {
                    let sql_type = SqlType::Array(Box::new(typed.sql_type.clone()));
                    binder.function_returning("fabius_array", vec![typed], sql_type)?
                }
            };
            let column = match name.as_str() {
                "json_array_elements" | "jsonb_array_elements" => "value".to_string(),
                other => other.to_string(),
            };
            Ok(vec![(column, array)])
        })?;
        let (names, arrays) = arrays.into_iter().unzip();
        self.arrays_item(arrays, names, name, alias, with_ordinality)
    }

    /// `json_to_recordset(document) AS alias (column type, ...)`
    fn json_records(
        &mut self,
        name: &str,
        arguments: &[ast::FunctionArg],
        alias: Option<&ast::TableAlias>,
    ) -> Result<Vec<(String, Typed)>> {
        let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(document))] = arguments else {
            return Err(unsupported(format!("this call of {name} is not supported")));
        };
        let json = if name.starts_with("jsonb") { SqlType::JsonB } else { SqlType::Json };
        let typed = self.expression(document)?;
        let document = super::operator::as_text(self.coerce(typed, &json)?);
        let texts = SqlType::Array(Box::new(SqlType::Text));
        let documents = if name.ends_with("set") {
            let flag =
                Typed::literal(datafusion::scalar::ScalarValue::Boolean(Some(false)), SqlType::Boolean);
            self.function("fabius_json_elements", vec![document, flag])?
        } else {
            self.function_returning("fabius_array", vec![document], texts)?
        };
        let mut columns = Vec::new();
        for column in alias.map(|alias| alias.columns.as_slice()).unwrap_or_default() {
            let Some(data_type) = &column.data_type else { continue };
            let (field, sql_type) = (folded(&column.name), self.environment.catalog.type_of(data_type)?);
            let key = super::scope::unknown(&field);
            let kind = super::scope::unknown(match sql_type {
                SqlType::Json | SqlType::JsonB => "json",
                SqlType::Array(_) => "array",
                _ => "text",
            });
            let values = self.function("fabius_json_field", vec![documents.clone(), key, kind])?;
            columns.push((field, self.cast(values, &SqlType::Array(Box::new(sql_type)))?));
        }
        if columns.is_empty() {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                "a column definition list is required for functions returning \"record\"",
            ));
        }
        Ok(columns)
    }

    fn json_each(&mut self, name: &str, call: &ast::Function) -> Result<Vec<(String, Typed)>> {
        let ast::FunctionArguments::List(list) = &call.args else { return Ok(Vec::new()) };
        let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(document))) = list.args.first() else {
            return Err(unsupported(format!("this call of {name} is not supported")));
        };
        let json = if name.starts_with("jsonb") { SqlType::JsonB } else { SqlType::Json };
        let typed = self.expression(document)?;
        let document = super::operator::as_text(self.coerce(typed, &json)?);
        let is_text = name.ends_with("text");
        let flag = Typed::literal(datafusion::scalar::ScalarValue::Boolean(Some(is_text)), SqlType::Boolean);
        let keys = self.function("fabius_json_keys", vec![document.clone()])?;
        let values = self.function("fabius_json_values", vec![document, flag])?;
        let element = if is_text { SqlType::Text } else { json };
        let values = Typed::new(values.expr, SqlType::Array(Box::new(element)));
        Ok(vec![("key".into(), keys), ("value".into(), values)])
    }

    /// A function that takes the elements of an array apart: columns, each with the function that gives the parts.
    fn parts_of_array(
        &mut self,
        call: &ast::Function,
        name: &str,
        parts: &[(&str, &str)],
    ) -> Result<Vec<(String, Typed)>> {
        let ast::FunctionArguments::List(list) = &call.args else { return Ok(Vec::new()) };
        let [ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(array))] = list.args.as_slice() else {
            return Err(unsupported(format!("this call of {name} is not supported")));
        };
        let array = self.expression(array)?;
        let column = |(column, function): &(&str, &str)| {
            Ok((column.to_string(), self.function(function, vec![array.clone()])?))
        };
        parts.iter().map(column).collect()
    }

    pub(super) fn arrays_item(
        &mut self,
        mut arrays: Vec<Typed>,
        mut names: Vec<String>,
        function: &str,
        alias: Option<&ast::TableAlias>,
        with_ordinality: bool,
    ) -> Result<Item> {
        if with_ordinality && !arrays.is_empty() {
            let one = Typed::literal(datafusion::scalar::ScalarValue::Int32(Some(1)), SqlType::Int);
            let each = arrays
                .iter()
                .map(|array| self.function("fabius_subscripts", vec![array.clone(), one.clone()]));
            let each = each.collect::<Result<_>>()?;
            // Of lists that begin alike the longest.
            let places = self.function("fabius_greatest", each)?;
            let places = self.cast(places, &SqlType::Array(Box::new(SqlType::BigInt)))?;
            arrays.push(places);
            names.push("ordinality".into());
        }
        let relation = alias.map_or_else(|| function.to_string(), |alias| folded(&alias.name));
        // A function of one column gives the alias to it too.
        if let (Some(alias), Some(first)) = (alias, names.first_mut())
            && arrays.len() - usize::from(with_ordinality) == 1
        {
            *first = folded(&alias.name);
        }
        let (mut columns, mut outputs) = (Vec::new(), Vec::new());
        for (array, name) in arrays.into_iter().zip(names) {
            let SqlType::Array(element) = array.sql_type else { continue };
            let column = self.fresh_column();
            outputs.push(Output {
                name,
                column: column.clone(),
                sql_type: *element,
                flavor: Flavor::Plain,
                origin: (0, 0),
                is_there: None,
            });
            columns.push((column, array.expr));
        }
        if let Some(alias) = alias {
            rename(&mut outputs, &column_names(alias), &relation)?;
        }
        // The row of a function that gives values is the value itself.
        if let ([output], [(column, _)]) = (outputs.as_mut_slice(), columns.as_slice()) {
            output.is_there = Some(column.clone());
        }
        let scope = scope_of(&relation, outputs);
        let refers = columns.iter().any(|(_, expression)| !expression.column_refs().is_empty());
        if refers {
            return Ok(Item::Arrays { arrays: columns, scope });
        }
        let empty = LogicalPlanBuilder::empty(true).build().map_err(inbound)?;
        let plan = spread(empty, columns, false)?;
        Ok(Item::Relation { plan, scope })
    }
}
