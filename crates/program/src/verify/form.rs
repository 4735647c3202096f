//! The forms that functions are called in, and the names that other languages have for them.

/// Every aggregate, and every function whose types are not fixed, and how it is called. The others
/// are in [`SIGNATURES`](crate::operation::function::SIGNATURES).
pub(super) const FORMS: &[(&str, &str)] = &[
    ("abs", "abs(number)"),
    ("avg", "avg(list.field)"),
    ("bitand", "bitand(integer, integer)"),
    ("bitnot", "bitnot(integer)"),
    ("bitor", "bitor(integer, integer)"),
    ("bitxor", "bitxor(integer, integer)"),
    ("ceil", "ceil(number)"),
    ("coalesce", "coalesce(value, value, ...)"),
    ("concat", "concat(text, text, ...)"),
    ("count", "count(list) or count(distinct list.field)"),
    ("div", "div(number, number)"),
    ("extract", "extract('field', date or timestamp)"),
    ("floor", "floor(number)"),
    ("greatest", "greatest(value, value, ...)"),
    ("least", "least(value, value, ...)"),
    ("length", "length(text or bytea)"),
    ("lower", "lower(text)"),
    ("max", "max(list.field)"),
    ("min", "min(list.field)"),
    ("mod", "mod(number, number)"),
    ("now", "now()"),
    ("overlay", "overlay(text or bytea, replacement, from)"),
    ("random", "random()"),
    ("round", "round(number) or round(numeric, digits)"),
    ("round_even", "round_even(numeric, digits)"),
    ("shift_left", "shift_left(integer, count)"),
    ("shift_right", "shift_right(integer, count)"),
    ("sign", "sign(number)"),
    ("substring", "substring(text or bytea, from, count)"),
    ("sum", "sum(list.field)"),
    ("trunc", "trunc(number) or trunc(numeric, digits)"),
    ("upper", "upper(text)"),
];

/// What other languages call, and what is called here; [`bare_call`] has those without arguments.
pub(super) const FOREIGN: &[(&str, &str)] = &[
    ("ceiling", "ceil(number)"),
    ("char_length", "length(text)"),
    ("character_length", "length(text)"),
    ("current_date", "now()::date"),
    ("current_timestamp", "now()"),
    ("getdate", "now()"),
    ("ifnull", "coalesce(value, value, ...)"),
    ("isnull", "coalesce(value, value, ...), or value is null"),
    ("len", "length(text)"),
    ("localtimestamp", "now()"),
    ("nvl", "coalesce(value, value, ...)"),
    ("pow", "power(number, number)"),
    ("rand", "random()"),
    ("substr", "substring(text, from, count)"),
    ("sysdate", "now()"),
];

/// How a name is called that some write without parentheses.
pub(super) fn bare_call(name: &str) -> Option<&'static str> {
    let mut forms = FORMS.iter().chain(FOREIGN).filter(|(_, form)| form.contains("()"));
    forms.find(|(known, _)| *known == name).map(|(_, form)| *form)
}
