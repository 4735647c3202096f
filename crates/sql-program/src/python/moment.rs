//! Moments, days, and times between them, which are microseconds.

use super::class::Class;
use super::lowering::Lowering;
use super::value::{self, Value, cast, nested, number, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::python::tree::{Expression, Operator};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{BinaryOperator, Expr};

/// Methods of moments, and of times between them, that are there; all without arguments.
pub const METHODS: [&str; 11] = [
    "date",
    "toordinal",
    "time",
    "weekday",
    "isoweekday",
    "isoformat",
    "total_seconds",
    "timestamp",
    "replace(tzinfo=utc)",
    "replace(tzinfo=None)",
    "astimezone(utc)",
];

/// What makes moments of numbers that have been looked at: a day of the days since the first one, a time of the
/// microseconds of its day, a moment of both, and a moment with another day, or with another time.
/// `part of` is a number of 32 bits.
pub const FUNCTIONS: [&str; 7] =
    ["date of", "time of", "datetime of", "datetime.combine", "date replaced", "time replaced", "part of"];

/// The first day that Python has.
const FIRST_DAY: &str = "0001-01-01 00:00:00";

const DAY: &str = "86400000000";
const HOUR: &str = "3600000000";
const MINUTE: &str = "60000000";
const SECOND: &str = "1000000";

/// Whether values of a class are moments, or days.
pub fn is_moment(class: &Class) -> bool {
    matches!(class, Class::Other(SqlType::Date | SqlType::Timestamp | SqlType::TimestampTz))
}

fn whole(digits: &str) -> Result<Expr> {
    cast(number(digits), &SqlType::BigInt)
}

fn binary(left: Expr, operator: BinaryOperator, right: Expr) -> Expr {
    nested(part::binary(nested(left), operator, nested(right)))
}

/// `of % by`, which is not negative.
fn remainder(of: &Expr, by: &str) -> Result<Expr> {
    let rest = binary(of.clone(), BinaryOperator::Modulo, whole(by)?);
    let positive = binary(rest, BinaryOperator::Plus, whole(by)?);
    Ok(binary(positive, BinaryOperator::Modulo, whole(by)?))
}

/// The days of a time, as microseconds.
fn days(of: &Expr) -> Result<Expr> {
    Ok(binary(of.clone(), BinaryOperator::Minus, remainder(of, DAY)?))
}

/// A field of a moment.
fn field(name: &str, of: &Expr) -> Result<Expr> {
    let mut tree = Tokens::of(&format!("extract({name} FROM x)"))?.read(|parser| parser.parse_expr())?;
    if let Expr::Extract { expr, .. } = &mut tree {
        **expr = of.clone();
    }
    cast(tree, &SqlType::BigInt)
}

/// Microseconds as seconds, rounded once.
fn seconds(micros: Expr) -> Result<Expr> {
    let digits = cast(micros, &SqlType::Text)?;
    cast(binary(digits, BinaryOperator::StringConcat, text("e-6")), &SqlType::Double)
}

/// A moment as `isoformat` writes it.
fn iso(moment: &Expr, sql_type: &SqlType, between: &str) -> Result<Expr> {
    if *sql_type == SqlType::Date {
        return cast(moment.clone(), &SqlType::Text);
    }
    if *sql_type == SqlType::Time {
        let plain = cast(moment.clone(), &SqlType::Text)?;
        let plain = value::function("left", vec![plain, number("8")]);
        return with_fraction(plain, remainder(&micros_of_day(moment), SECOND)?);
    }
    let local = cast(moment.clone(), &SqlType::Timestamp)?;
    let whole_seconds = value::function("date_trunc", vec![text("second"), local.clone()]);
    let plain = cast(whole_seconds, &SqlType::Text)?;
    let plain = match between {
        " " => plain,
        _ => value::function("replace", vec![plain, text(" "), text(between)]),
    };
    let all = with_fraction(plain, remainder(&field("microseconds", &local)?, SECOND)?)?;
    Ok(match sql_type {
        SqlType::TimestampTz => binary(all, BinaryOperator::StringConcat, text("+00:00")),
        _ => all,
    })
}

/// The microseconds of a time of the day.
fn micros_of_day(time: &Expr) -> Expr {
    value::function("fabius_python_micros", vec![time.clone(), number("6")])
}

/// A time, and six digits of its second if there are some.
fn with_fraction(plain: Expr, micros: Expr) -> Result<Expr> {
    let is_whole = part::binary(micros.clone(), BinaryOperator::Eq, number("0"));
    let digits = value::function("lpad", vec![cast(micros, &SqlType::Text)?, number("6"), text("0")]);
    let fraction = binary(text("."), BinaryOperator::StringConcat, digits);
    Ok(binary(plain, BinaryOperator::StringConcat, value::case(is_whole, text(""), fraction)))
}

/// What `str` makes of a moment; `None` of what is none.
pub fn shown(value: &Value) -> Result<Option<Expr>> {
    match &value.class {
        Class::Other(sql_type) if is_moment(&value.class) || *sql_type == SqlType::Time => {
            iso(&value.tree, sql_type, " ").map(Some)
        }
        _ => Ok(None),
    }
}

/// A moment that is moved, or the time between two; `None` for other operands.
pub fn calculated(operator: Operator, left: &Value, right: &Value) -> Result<Option<(Expr, Class)>> {
    let (moment, span) = match (&left.class, &right.class) {
        (one, Class::Span) if is_moment(one) => (left, right),
        (Class::Span, other) if is_moment(other) && operator == Operator::Add => (right, left),
        (one, other) if one == other && is_moment(one) && operator == Operator::Subtract => {
            let moments = [left, right].map(|value| cast(nested(value.tree.clone()), &SqlType::Timestamp));
            let moments = moments.into_iter().collect::<Result<Vec<_>>>()?;
            return Ok(Some((value::function("fabius_python_between", moments), Class::Span)));
        }
        _ => return Ok(None),
    };
    if !matches!(operator, Operator::Add | Operator::Subtract) {
        return Ok(None);
    }
    let is_date = moment.class == Class::Other(SqlType::Date);
    // A day is moved by whole days.
    let micros = if is_date { days(&span.tree)? } else { span.tree.clone() };
    let micros = match operator {
        Operator::Subtract => binary(whole("0")?, BinaryOperator::Minus, micros),
        _ => micros,
    };
    let local = cast(nested(moment.tree.clone()), &SqlType::Timestamp)?;
    Ok(Some((cast(moved(local, micros), &moment.class.sql_type())?, moment.class.clone())))
}

/// What users call a function that makes moments.
pub fn named(function: &str) -> &str {
    match function {
        "date replaced" | "time replaced" => "replace",
        _ => function.strip_suffix(" of").unwrap_or(function),
    }
}

/// A moment that one of `FUNCTIONS` makes; `None` for other functions, and of other values.
pub fn made(function: &str, values: &[Value]) -> Result<Option<(Expr, Class)>> {
    let of = |sql_type: &SqlType, moment: Expr| -> Result<Option<(Expr, Class)>> {
        Ok(Some((cast(moment, sql_type)?, Class::Other(sql_type.clone()))))
    };
    let day = |days: &Value| -> Result<Expr> {
        Ok(moved(first_day()?, binary(days.tree.clone(), BinaryOperator::Multiply, whole(DAY)?)))
    };
    Ok(match (function, values) {
        ("date of", [days]) if days.class == Class::Whole => of(&SqlType::Date, day(days)?)?,
        ("time of", [micros]) if micros.class == Class::Whole => {
            of(&SqlType::Time, moved(first_day()?, micros.tree.clone()))?
        }
        ("datetime of", [date, micros]) if micros.class == Class::Whole => {
            of(&SqlType::Timestamp, moved(midnight(date)?, micros.tree.clone()))?
        }
        ("datetime.combine", [date, time])
            if is_moment(&date.class) && time.class == Class::Other(SqlType::Time) =>
        {
            of(&SqlType::Timestamp, moved(midnight(date)?, micros_of_day(&time.tree)))?
        }
        ("part of", [part]) if matches!(part.class, Class::Whole | Class::Boolean) => {
            let small = cast(part.tree.clone(), &SqlType::Int)?;
            Some((cast(nested(small), &SqlType::BigInt)?, Class::Whole))
        }
        ("date replaced", [moment, days]) if days.class == Class::Whole => match &moment.class {
            Class::Other(SqlType::Date) => of(&SqlType::Date, day(days)?)?,
            Class::Other(sql_type @ (SqlType::Timestamp | SqlType::TimestampTz)) => {
                let local = cast(nested(moment.tree.clone()), &SqlType::Timestamp)?;
                let micros = value::function("fabius_python_between", vec![local, midnight(moment)?]);
                of(sql_type, moved(day(days)?, micros))?
            }
            _ => None,
        },
        ("time replaced", [moment, micros]) if micros.class == Class::Whole => match &moment.class {
            Class::Other(SqlType::Time) => of(&SqlType::Time, moved(first_day()?, micros.tree.clone()))?,
            Class::Other(sql_type @ (SqlType::Timestamp | SqlType::TimestampTz)) => {
                of(sql_type, moved(midnight(moment)?, micros.tree.clone()))?
            }
            _ => None,
        },
        _ => None,
    })
}

fn first_day() -> Result<Expr> {
    cast(text(FIRST_DAY), &SqlType::Timestamp)
}

/// The begin of a moment's day.
fn midnight(moment: &Value) -> Result<Expr> {
    let local = cast(nested(moment.tree.clone()), &SqlType::Timestamp)?;
    cast(cast(local, &SqlType::Date)?, &SqlType::Timestamp)
}

fn moved(local: Expr, micros: Expr) -> Expr {
    value::function("fabius_python_moved", vec![local, micros])
}

impl Lowering<'_> {
    /// An attribute of a value: a part of a moment, or of a time.
    pub(super) fn part(
        &mut self,
        object: &Expression,
        class: &Class,
        name: &str,
        span: Span,
    ) -> Result<Value> {
        let value = self.value(object)?;
        let of = |tree: Expr| Ok(Value { can_fail: true, ..Value::of(tree, Class::Whole, span) });
        if class.is_pending() {
            return of(value.tree);
        }
        let is_timed = matches!(class, Class::Other(SqlType::Timestamp | SqlType::TimestampTz));
        let own = &value.tree;
        match (name, class) {
            _ if value.is_nullable => {}
            ("year" | "month" | "day", class) if is_moment(class) => return of(field(name, own)?),
            ("hour" | "minute", _) if is_timed => return of(field(name, own)?),
            ("second", _) if is_timed => {
                let micros = field("microseconds", own)?;
                return of(binary(micros, BinaryOperator::Divide, whole(SECOND)?));
            }
            ("microsecond", _) if is_timed => return of(remainder(&field("microseconds", own)?, SECOND)?),
            ("hour", Class::Other(SqlType::Time)) => {
                return of(binary(micros_of_day(own), BinaryOperator::Divide, whole(HOUR)?));
            }
            ("minute", Class::Other(SqlType::Time)) => {
                let minutes = binary(micros_of_day(own), BinaryOperator::Divide, whole(MINUTE)?);
                return of(remainder(&minutes, "60")?);
            }
            ("second", Class::Other(SqlType::Time)) => {
                let seconds = binary(micros_of_day(own), BinaryOperator::Divide, whole(SECOND)?);
                return of(remainder(&seconds, "60")?);
            }
            ("microsecond", Class::Other(SqlType::Time)) => {
                return of(remainder(&micros_of_day(own), SECOND)?);
            }
            ("days", Class::Span) => {
                return of(binary(days(own)?, BinaryOperator::Divide, whole(DAY)?));
            }
            ("seconds", Class::Span) => {
                return of(binary(remainder(own, DAY)?, BinaryOperator::Divide, whole(SECOND)?));
            }
            ("microseconds", Class::Span) => return of(remainder(own, SECOND)?),
            _ => {}
        }
        self.not_of(&value, name, "a date, a datetime and a timedelta have parts: year, hour, days", span)
    }

    /// Refuses what a value does not have.
    pub(super) fn not_of<T>(&self, value: &Value, name: &str, instead: &str, span: Span) -> Result<T> {
        let of = value.class.name();
        match value.is_nullable {
            true => self.refused(span, &format!("{name} of a {of} that may be None"), value::MAY_BE_NONE),
            false => self.refused(span, &format!("{name} of a {of}"), instead),
        }
    }

    /// A method of a moment, or of a time.
    pub(super) fn method_of_moment(
        &mut self,
        object: &Expression,
        method: &str,
        span: Span,
    ) -> Result<Value> {
        let value = self.value(object)?;
        let of = |tree: Expr, class: Class| Ok(Value { can_fail: true, ..Value::of(tree, class, span) });
        let own = &value.tree;
        match (method, &value.class) {
            (_, class) if class.is_pending() => return of(own.clone(), Class::Pending),
            _ if value.is_nullable => {}
            ("weekday", class) if is_moment(class) => {
                let minus = binary(field("isodow", own)?, BinaryOperator::Minus, number("1"));
                return of(minus, Class::Whole);
            }
            ("toordinal", class) if is_moment(class) => {
                let micros = value::function("fabius_python_between", vec![midnight(&value)?, first_day()?]);
                let days = binary(micros, BinaryOperator::Divide, whole(DAY)?);
                return of(binary(days, BinaryOperator::Plus, whole("1")?), Class::Whole);
            }
            ("isoweekday", class) if is_moment(class) => return of(field("isodow", own)?, Class::Whole),
            ("replace(tzinfo=utc)", Class::Other(SqlType::Timestamp)) => {
                return of(cast(own.clone(), &SqlType::TimestampTz)?, Class::Other(SqlType::TimestampTz));
            }
            ("replace(tzinfo=None)", Class::Other(SqlType::TimestampTz)) => {
                return of(cast(own.clone(), &SqlType::Timestamp)?, Class::Other(SqlType::Timestamp));
            }
            ("replace(tzinfo=utc)" | "astimezone(utc)", Class::Other(SqlType::TimestampTz))
            | ("replace(tzinfo=None)", Class::Other(SqlType::Timestamp)) => {
                return of(own.clone(), value.class.clone());
            }
            ("isoformat", Class::Other(sql_type))
                if is_moment(&value.class) || *sql_type == SqlType::Time =>
            {
                return of(iso(own, sql_type, "T")?, Class::Text);
            }
            ("date", Class::Other(SqlType::Timestamp | SqlType::TimestampTz)) => {
                return of(cast(own.clone(), &SqlType::Date)?, Class::Other(SqlType::Date));
            }
            ("time", Class::Other(SqlType::Timestamp | SqlType::TimestampTz)) => {
                let local = cast(own.clone(), &SqlType::Timestamp)?;
                return of(cast(local, &SqlType::Time)?, Class::Other(SqlType::Time));
            }
            ("total_seconds", Class::Span) => return of(seconds(own.clone())?, Class::Float),
            ("timestamp", Class::Other(SqlType::TimestampTz)) => {
                let begin = cast(text("1970-01-01 00:00:00"), &SqlType::Timestamp)?;
                let local = cast(own.clone(), &SqlType::Timestamp)?;
                let micros = value::function("fabius_python_between", vec![local, begin]);
                return of(seconds(micros)?, Class::Float);
            }
            _ => {}
        }
        self.not_of(&value, method, "compute it before the call, and pass it as an argument", span)
    }
}
