//! Functions that have words of their own instead of commas.

use super::back_end::BackEnd;
use super::expression::value;
use sqlparser::ast::{self, Expr};

/// `SUBSTRING (text FROM 2)` and others; what is none of them is declined.
pub(super) fn analysed<E: BackEnd>(end: &mut E, whole: &Expr) -> Result<E::Value, E::Stop> {
    let one = || Expr::value(ast::Value::Number("1".into(), false));
    const WHOLE: ast::CeilFloorKind = ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime);
    match whole {
        Expr::Extract { field, expr, .. } => {
            let field = end.text(field.to_string().trim_matches('\'').to_lowercase().as_str());
            let moment = value(end, expr)?;
            end.function("extract", vec![field, moment], whole)
        }
        Expr::Position { expr, r#in } => function(end, "position", [&**expr, r#in], whole),
        Expr::Substring { expr, substring_from, substring_for, .. } => {
            let one = one();
            let from = substring_from.as_deref().unwrap_or(&one);
            function(end, "substring", [&**expr, from].into_iter().chain(substring_for.as_deref()), whole)
        }
        Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
            let name = match trim_where {
                Some(ast::TrimWhereField::Leading) => "ltrim",
                Some(ast::TrimWhereField::Trailing) => "rtrim",
                _ => "btrim",
            };
            let characters = trim_what.as_deref().into_iter().chain(trim_characters.iter().flatten());
            function(end, name, std::iter::once(&**expr).chain(characters), whole)
        }
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let parts = [&**expr, overlay_what, overlay_from];
            function(end, "overlay", parts.into_iter().chain(overlay_for.as_deref()), whole)
        }
        Expr::Ceil { expr, field } if *field == WHOLE => function(end, "ceil", [&**expr], whole),
        Expr::Floor { expr, field } if *field == WHOLE => function(end, "floor", [&**expr], whole),
        Expr::AtTimeZone { timestamp, time_zone } => {
            function(end, "timezone", [&**time_zone, timestamp], whole)
        }
        Expr::Tuple(_) => Err(end.declined("a row value outside of comparisons and IN".into())),
        Expr::Prefixed { .. } => Err(end.declined("this kind of literal".into())),
        other => Err(end.declined(format!("the expression {other}"))),
    }
}

fn function<'e, E: BackEnd>(
    end: &mut E,
    name: &str,
    arguments: impl IntoIterator<Item = &'e Expr>,
    whole: &Expr,
) -> Result<E::Value, E::Stop> {
    let arguments = arguments.into_iter().map(|argument| value(end, argument)).collect::<Result<_, _>>()?;
    end.function(name, arguments, whole)
}
