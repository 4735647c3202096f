//! Functions of Python within expressions.

use super::class::Class;
use super::expression::as_number;
use super::hint;
use super::lowering::Lowering;
use super::moment::is_moment;
use super::text::METHODS;
use super::value::{self, Value, cast, nested, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{Statement as Done, StatementKind as Kind};
use fabius_sql_syntax::python::tree::{Expression, ExpressionKind};
use fabius_value::Result;
use sqlparser::ast::{self, BinaryOperator, Expr};

/// Functions that are there.
const FUNCTIONS: [&str; 13] = [
    "abs",
    "len",
    "str",
    "min",
    "max",
    "bool",
    "int",
    "float",
    "Decimal",
    "round",
    "format",
    "repr",
    "timedelta",
];

impl Lowering<'_> {
    /// A call within an expression.
    pub(super) fn call(
        &mut self,
        function: &Expression,
        (arguments, named): (&[Expression], &[(String, Expression)]),
        span: Span,
    ) -> Result<Value> {
        if let (ExpressionKind::Attribute(object, method), []) = (&function.kind, named) {
            if METHODS.contains(&method.as_str()) || method == "[:]" {
                return self.method(object, method, arguments, span);
            }
            if super::decimal::METHODS.contains(&method.as_str()) {
                return self.method_of_decimal(object, method, arguments, span);
            }
            if super::moment::METHODS.contains(&method.as_str()) && arguments.is_empty() {
                return self.method_of_moment(object, method, span);
            }
        }
        let name = match &function.kind {
            ExpressionKind::Name(name) if named.is_empty() => name.as_str(),
            _ => "",
        };
        if !FUNCTIONS.contains(&name) && !super::moment::FUNCTIONS.contains(&name) {
            return self.no_function(function, span);
        }
        if let ("bool", [value]) = (name, arguments) {
            let (truth, can_fail) = self.truth(value)?;
            return Ok(Value { can_fail, ..Value::of(nested(truth), Class::Boolean, span) });
        }
        let is_rounding = matches!(name, "round" | "int" | "float" | "format");
        let values = arguments
            .iter()
            .map(|argument| if is_rounding { self.unrounded(argument) } else { self.value(argument) })
            .collect::<Result<Vec<_>>>()?;
        if let Some(pending) = values.iter().find(|value| value.class.is_pending()) {
            let class = match name {
                "len" | "int" => Class::Whole,
                "str" | "format" | "repr" => Class::Text,
                "timedelta" => Class::Span,
                _ => pending.class.clone(),
            };
            return Ok(Value { can_fail: true, ..Value::of(Expr::value(ast::Value::Null), class, span) });
        }
        let values: Vec<Value> = match name {
            "str" | "repr" => values,
            _ => values.into_iter().map(|value| self.sure(value)).collect(),
        };
        match (name, values.as_slice(), arguments) {
            ("round", [value, _], [_, digits]) => {
                if let Some(rounded) = self.rounded(value, digits, span)? {
                    return Ok(rounded);
                }
            }
            ("format", [value, _], [_, format]) => return self.format(value, format, span),
            _ => {}
        }
        match self.function(name, &values, span)? {
            Some(value) => Ok(value),
            None => {
                let classes: Vec<String> = values.iter().map(|value| value.class.name()).collect();
                let what = match name {
                    "part of" => format!("a {} as a part of a moment", classes.join(", ")),
                    _ => format!("{}({})", super::moment::named(name), classes.join(", ")),
                };
                let instead = match (name, values.iter().any(|value| value.is_nullable)) {
                    (_, true) => value::MAY_BE_NONE,
                    ("int", _) if values.len() > 1 => "write int(text), of digits of base 10",
                    ("Decimal", _) => "pass it as a Decimal, or write it as one: Decimal(\"1.5\")",
                    ("timedelta", _) => "give it whole numbers: timedelta(hours=36)",
                    (name, _) if super::moment::FUNCTIONS.contains(&name) => {
                        "its parts are whole numbers, a day and a time: convert them by int(...)"
                    }
                    ("min" | "max", _) => "convert the values to one class",
                    _ => "give it values of another class, or compute it before the call",
                };
                self.refused(span, &what, instead)
            }
        }
    }

    /// Refuses a call of what is not there.
    fn no_function<T>(&self, function: &Expression, span: Span) -> Result<T> {
        let (name, known, instead) = match &function.kind {
            ExpressionKind::Name(name) if FUNCTIONS.contains(&name.as_str()) => {
                let what = format!("this call of {name}");
                return self.refused(span, &what, "leave its named arguments out");
            }
            ExpressionKind::Attribute(_, name) if super::moment::METHODS.contains(&name.as_str()) => {
                return self.refused(span, &format!("this call of {name}"), "leave its arguments out");
            }
            ExpressionKind::Attribute(_, name) => (
                name.as_str(),
                hint::method(name),
                format!("of texts, these are there: {}", METHODS.join(", ")),
            ),
            ExpressionKind::Name(name) => {
                (name.as_str(), hint::function(name), format!("these are there: {}", FUNCTIONS.join(", ")))
            }
            _ => ("this", None, "give it a name".into()),
        };
        self.refused(span, &format!("a call of {name}"), known.unwrap_or(&instead))
    }

    /// `int(text)`, `float(text)`: a `ValueError` before the statement if it is no number.
    fn read(&mut self, name: &str, value: &Value, span: Span) -> Result<Value> {
        let (function, what, class) = match name {
            "int" => ("fabius_python_whole", "invalid literal for int() with base 10: ", Class::Whole),
            _ => ("fabius_python_double", "could not convert string to float: ", Class::Float),
        };
        let read = value::function(function, vec![value.tree.clone()]);
        let shown = value::function("fabius_python_repr", vec![value.tree.clone()]);
        let message = part::binary(text(what), BinaryOperator::StringConcat, shown);
        let raise = self.exception(("ValueError", "ValueError"), message, span);
        let is_none = self.written(part::binary(read.clone(), BinaryOperator::Eq, text("")), span);
        let then = vec![Done { kind: raise, span }];
        self.tests.push(Done { kind: Kind::If { arms: vec![(is_none, then)], otherwise: None }, span });
        let tree = nested(cast(read, &class.sql_type())?);
        Ok(Value { can_fail: true, ..Value::of(tree, class, span) })
    }

    /// A function of values that are there.
    fn function(&mut self, name: &str, values: &[Value], span: Span) -> Result<Option<Value>> {
        let can_fail = values.iter().any(|value| value.can_fail);
        let of = |tree: Expr, class: Class| Value { can_fail, ..Value::of(tree, class, span) };
        if let ("str", [value]) = (name, values) {
            return Ok(Some(of(nested(self.shown(value.clone())?), Class::Text)));
        }
        if let ("repr", [value]) = (name, values) {
            if value.class == Class::Text {
                let shown = value::function("fabius_python_repr", vec![value.tree.clone()]);
                let shown = match value.is_nullable {
                    true => value::function("coalesce", vec![shown, text("None")]),
                    false => shown,
                };
                return Ok(Some(Value { can_fail: true, ..Value::of(shown, Class::Text, span) }));
            }
            let is_other = matches!(value.class, Class::Span | Class::Other(SqlType::Uuid | SqlType::Time));
            if is_moment(&value.class) || is_other {
                let what = format!("the repr of a {}", value.class.name());
                let instead = "show it without !r, or ask before whether it is there: `if x in xs`";
                return self.refused(span, &what, instead);
            }
            return Ok(Some(of(nested(self.shown(value.clone())?), Class::Text)));
        }
        if values.iter().any(|value| value.is_nullable) {
            return Ok(None);
        }
        Ok(Some(match (name, values) {
            ("len", [value]) if value.class == Class::Text => {
                let length = value::function("char_length", vec![value.tree.clone()]);
                of(cast(length, &SqlType::BigInt)?, Class::Whole)
            }
            ("len", [value]) if matches!(value.class, Class::List(_)) => {
                let length = value::function("cardinality", vec![value.tree.clone()]);
                of(cast(length, &SqlType::BigInt)?, Class::Whole)
            }
            ("abs", [value])
                if matches!(value.class, Class::Whole | Class::Float | Class::Decimal | Class::Span) =>
            {
                let tree = value::function("abs", vec![value.tree.clone()]);
                Value { can_fail: true, ..Value::of(tree, value.class.clone(), span) }
            }
            ("min" | "max", [first, _, ..])
                if (matches!(first.class, Class::Whole | Class::Decimal | Class::Text | Class::Span)
                    || is_moment(&first.class)
                    || first.class == Class::Other(SqlType::Time))
                    && values.iter().all(|value| value.class == first.class) =>
            {
                let name = if name == "min" { "least" } else { "greatest" };
                let trees = values.iter().map(|value| value.tree.clone()).collect();
                of(value::function(name, trees), first.class.clone())
            }
            ("int" | "round", [value]) if value.class == Class::Whole => of(value.tree.clone(), Class::Whole),
            ("int", [value]) if value.class == Class::Boolean => as_number(value.clone())?,
            ("int" | "float", [value]) if value.class == Class::Text => self.read(name, value, span)?,
            ("int", [value]) if value.class == Class::Float => {
                let whole = value::function("trunc", vec![value.tree.clone()]);
                Value { can_fail: true, ..Value::of(cast(whole, &SqlType::BigInt)?, Class::Whole, span) }
            }
            // To the nearest, and of two as near to the even one.
            ("round", [value]) if value.class == Class::Float => {
                let whole = value::function("round", vec![value.tree.clone()]);
                Value { can_fail: true, ..Value::of(cast(whole, &SqlType::BigInt)?, Class::Whole, span) }
            }
            ("round" | "int", [value]) if matches!(value.class, Class::Decimal | Class::Quotient) => {
                let whole = super::decimal::whole(value, name == "int")?;
                Value { can_fail: true, ..Value::of(cast(whole, &SqlType::BigInt)?, Class::Whole, span) }
            }
            ("timedelta", [value]) if value.class == Class::Whole => of(value.tree.clone(), Class::Span),
            ("float", [value])
                if matches!(value.class, Class::Whole | Class::Float | Class::Decimal | Class::Quotient) =>
            {
                of(cast(value.tree.clone(), &SqlType::Double)?, Class::Float)
            }
            ("Decimal", [value]) if matches!(value.class, Class::Whole | Class::Decimal) => {
                of(cast(value.tree.clone(), &SqlType::Numeric(None))?, Class::Decimal)
            }
            _ => return Ok(super::moment::made(name, values)?.map(|(tree, class)| of(tree, class))),
        }))
    }
}
