//! What the columns of a query's result are called.

use crate::catalog::folded;
use crate::sql_type::SqlType;
use sqlparser::ast;

/// The name that PostgreSQL gives the column of an expression (`FigureColname` in its parse_target.c).
pub fn of(expression: &ast::Expr) -> String {
    figured(expression).map_or_else(|| "?column?".to_string(), |(name, _)| name)
}

/// The `SELECT` that gives a query's columns their names.
fn first_select(mut body: &ast::SetExpr) -> Option<&ast::Select> {
    loop {
        body = match body {
            ast::SetExpr::Select(select) => return Some(select),
            ast::SetExpr::SetOperation { left, .. } => left,
            ast::SetExpr::Query(query) => &query.body,
            _ => return None,
        };
    }
}

/// A name, and whether it is strong: a cast gives its type's name only where nothing better is found.
fn figured(expression: &ast::Expr) -> Option<(String, bool)> {
    use ast::Expr as E;
    let strong = |name: &str| Some((name.to_string(), true));
    match expression {
        E::Identifier(ident) => Some((folded(ident), true)),
        E::CompoundIdentifier(idents) => idents.last().map(|ident| (folded(ident), true)),
        E::Nested(inner) | E::Collate { expr: inner, .. } => figured(inner),
        E::Function(function) => last(&function.name).map(|name| (name, true)),
        E::Cast { expr, data_type, .. } => match figured(expr) {
            Some((name, true)) => Some((name, true)),
            _ => {
                let name = match data_type {
                    ast::DataType::Regclass => "regclass".to_string(),
                    ast::DataType::Custom(name, _) => last(name).unwrap_or_default(),
                    ast::DataType::Array(ast::ArrayElemTypeDef::SquareBracket(element, _))
                        if let ast::DataType::Custom(name, _) = &**element =>
                    {
                        last(name).unwrap_or_default()
                    }
                    other => match SqlType::from_ast(other) {
                        Ok(SqlType::Array(element)) => element.internal_name(),
                        Ok(sql_type) => sql_type.internal_name(),
                        Err(_) => return None,
                    },
                };
                Some((name, false))
            }
        },
        E::TypedString(typed) => {
            SqlType::from_ast(&typed.data_type).ok().map(|sql_type| (sql_type.internal_name(), false))
        }
        E::Interval(_) => Some(("interval".into(), false)),
        E::Case { else_result, .. } => match else_result.as_deref().and_then(figured) {
            Some((name, true)) => Some((name, true)),
            _ => Some(("case".into(), false)),
        },
        E::BinaryOp { op: ast::BinaryOperator::Overlaps, .. } => strong("overlaps"),
        E::Exists { negated: false, .. } => strong("exists"),
        E::Subquery(query) => match first_select(&query.body)?.projection.first() {
            Some(ast::SelectItem::UnnamedExpr(inner)) => figured(inner),
            Some(ast::SelectItem::ExprWithAlias { alias, .. }) => Some((folded(alias), true)),
            _ => None,
        },
        E::Array(_) => strong("array"),
        E::Extract { .. } => strong("extract"),
        E::Position { .. } => strong("position"),
        E::Substring { shorthand: true, .. } => strong("substr"),
        E::Substring { .. } => strong("substring"),
        E::Overlay { .. } => strong("overlay"),
        E::Ceil { .. } => strong("ceil"),
        E::Floor { .. } => strong("floor"),
        E::AtTimeZone { .. } => strong("timezone"),
        E::Trim { trim_where, .. } => strong(match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        E::Tuple(_) => strong("row"),
        E::CompoundFieldAccess { root, access_chain } => {
            let fields = access_chain.iter().rev().find_map(|access| match access {
                ast::AccessExpr::Dot(E::Identifier(ident)) => Some((folded(ident), true)),
                _ => None,
            });
            fields.or_else(|| figured(root))
        }
        _ => None,
    }
}

/// The last part of a name.
fn last(name: &ast::ObjectName) -> Option<String> {
    name.0.last().and_then(|part| part.as_ident()).map(folded)
}
