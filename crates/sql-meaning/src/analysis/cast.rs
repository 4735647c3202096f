//! What `CAST` makes of a value: one of a type, also of types that only the catalog has.

use super::back_end::BackEnd;
use super::function::function;
use super::named::Named;
use crate::catalog::defined_type::value_as;
use crate::catalog::{Catalog, Domain, folded};
use crate::functions::may_differ;
use crate::sql_type::SqlType;
use fabius_sql_syntax::identifier::quote_literal;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::written;
use fabius_value::{Error, SqlState};
use sqlparser::ast::{self, DataType, Expr};

/// What a cast leads to.
enum Target {
    /// A value of a type.
    Type(SqlType),
    /// An object identifier that shows as a name.
    Named(Named),
    /// `"char"`: a letter.
    Letter,
}

impl Target {
    fn of(to: &DataType, catalog: &Catalog) -> Result<Target, Error> {
        let name = own_name(to);
        if let Some(named) = name.as_deref().and_then(Named::of_name) {
            return Ok(Target::Named(named));
        }
        // The vectors of the catalog are kept as arrays, and what nobody computes with as text.
        let array = |of: SqlType| Ok(Target::Type(SqlType::Array(Box::new(of))));
        match (name.as_deref(), to) {
            (Some("char"), _) => Ok(Target::Letter),
            (Some("int2vector"), _) => array(SqlType::SmallInt),
            (Some("oidvector"), _) => array(SqlType::Oid),
            (
                Some(
                    "cstring" | "aclitem" | "pg_node_tree" | "pg_lsn" | "xid" | "anyarray"
                    | "information_schema" | "sql_identifier" | "character_data",
                ),
                _,
            ) => Ok(Target::Type(SqlType::Text)),
            (_, DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _))) => {
                match own_name(element).as_deref() {
                    Some("regclass" | "regtype" | "regproc") => array(SqlType::Oid),
                    Some("char") => array(SqlType::Text),
                    _ => catalog.type_of(to).map(Target::Type),
                }
            }
            _ => catalog.type_of(to).map(Target::Type),
        }
    }
}

/// The name of a type that the grammar has no words for, without its schema.
fn own_name(to: &DataType) -> Option<String> {
    match to {
        DataType::Regclass => Some("regclass".into()),
        DataType::Custom(name, _) => name.0.last().and_then(|part| part.as_ident()).map(folded),
        _ => None,
    }
}

/// A value as one of a domain, in other words: its conditions are asked one after the other, and refused if they do not
/// hold.
fn of_domain(domain: &Domain, operand: &Expr) -> Result<Expr, Error> {
    let shown = written(operand);
    let text = format!("CAST(({shown}) AS {})", domain.base.written());
    let value = Tokens::of(&text)?.read(|parser| parser.parse_expr())?;
    let name = domain.shown();
    let refused = |check: &str| {
        let (name, check) = (quote_literal(&name), quote_literal(check));
        format!("fabius_not_of_domain({name}, {check}, {text})")
    };
    let mut cases = String::new();
    if domain.is_not_null {
        cases += &format!(" WHEN {text} IS NULL THEN {}", refused(""));
    }
    for check in &domain.checks {
        let condition = written(&value_as(&check.condition, &value)?);
        cases += &format!(" WHEN ({condition}) IS FALSE THEN {}", refused(&check.name));
    }
    Tokens::of(&format!("CASE{cases} ELSE {text} END"))?.read(|parser| parser.parse_expr())
}

/// `CAST (operand AS to)`
pub(super) fn cast<E: BackEnd>(end: &mut E, operand: &Expr, to: &DataType) -> Result<E::Value, E::Stop> {
    if let Some(domain) = end.catalog().domain_of(to)?.filter(|domain| domain.is_constrained()).cloned() {
        // The operand stands in the conditions too.
        if may_differ(end.catalog(), operand) {
            let message = format!(
                "casting what may differ each time to the domain {} is not supported",
                domain.shown()
            );
            let hint = "compute it in a subquery, and cast that";
            return Err(Error::new(SqlState::NOT_SUPPORTED, message).with_hint(hint).into());
        }
        return end.value(&of_domain(&domain, operand)?);
    }
    let target = Target::of(to, end.catalog())?;
    if let (Expr::Array(array), Target::Type(to @ SqlType::Array(_))) = (operand, &target)
        && array.elem.is_empty()
    {
        return end.empty_array(to);
    }
    let value = end.value(operand)?;
    match target {
        Target::Type(to) => end.converted(value, &to),
        Target::Named(named) => end.named(value, named),
        Target::Letter => {
            let text = end.converted(value, &SqlType::Text)?;
            let one = end.unknown(Some("1"));
            function(end, "left", vec![text, one])
        }
    }
}
