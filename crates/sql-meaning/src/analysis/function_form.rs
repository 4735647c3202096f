//! Functions that have words of their own instead of commas.

use super::back_end::BackEnd;
use super::function::function;
use sqlparser::ast::{self, Expr};

/// `SUBSTRING (text FROM 2)` and others; what is none of them is declined.
pub(super) fn analysed<E: BackEnd>(end: &mut E, whole: &Expr) -> Result<E::Value, E::Stop> {
    let one = || Expr::value(ast::Value::Number("1".into(), false));
    const WHOLE: ast::CeilFloorKind = ast::CeilFloorKind::DateTimeField(ast::DateTimeField::NoDateTime);
    match whole {
        Expr::Extract { field, expr, .. } => {
            let field = end.unknown(Some(&field.to_string().trim_matches('\'').to_lowercase()));
            let moment = end.value(expr)?;
            function(end, "extract", vec![field, moment])
        }
        Expr::Position { expr, r#in } => call(end, "position", [&**expr, r#in]),
        Expr::Substring { expr, substring_from, substring_for, shorthand, .. } => {
            let one = one();
            let from = substring_from.as_deref().unwrap_or(&one);
            let name = if *shorthand { "substr" } else { "substring" };
            call(end, name, [&**expr, from].into_iter().chain(substring_for.as_deref()))
        }
        Expr::Trim { expr, trim_where, trim_what, trim_characters } => {
            let name = match trim_where {
                Some(ast::TrimWhereField::Leading) => "ltrim",
                Some(ast::TrimWhereField::Trailing) => "rtrim",
                _ => "btrim",
            };
            let characters = trim_what.as_deref().into_iter().chain(trim_characters.iter().flatten());
            call(end, name, std::iter::once(&**expr).chain(characters))
        }
        Expr::Overlay { expr, overlay_what, overlay_from, overlay_for } => {
            let parts = [&**expr, overlay_what, overlay_from];
            call(end, "overlay", parts.into_iter().chain(overlay_for.as_deref()))
        }
        Expr::Ceil { expr, field } if *field == WHOLE => call(end, "ceil", [&**expr]),
        Expr::Floor { expr, field } if *field == WHOLE => call(end, "floor", [&**expr]),
        Expr::AtTimeZone { timestamp, time_zone } => call(end, "timezone", [&**time_zone, timestamp]),
        Expr::Tuple(_) => Err(end.declined("a row value outside of comparisons and IN".into())),
        Expr::Prefixed { .. } => Err(end.declined("this kind of literal".into())),
        other => Err(end.declined(format!("the expression {other}"))),
    }
}

fn call<'e, E: BackEnd>(
    end: &mut E,
    name: &str,
    arguments: impl IntoIterator<Item = &'e Expr>,
) -> Result<E::Value, E::Stop> {
    let arguments = arguments.into_iter().map(|argument| end.value(argument)).collect::<Result<_, _>>()?;
    function(end, name, arguments)
}
