//! Expressions in Python's meaning, as those of SQL.

use super::class::Class;
use super::hint;
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_syntax::part;
use fabius_sql_syntax::python::tree::{Comparison, Operator};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{self, BinaryOperator, Expr};

/// A value of a function.
#[derive(Clone, Debug)]
pub struct Value {
    /// How SQL computes it.
    pub tree: Expr,
    /// What it is, unless it is `None`.
    pub class: Class,
    /// Whether it may be `None`.
    pub is_nullable: bool,
    /// Whether computing it may fail: then it is computed only where Python computes it.
    pub can_fail: bool,
    /// Where it stands.
    pub span: Span,
    /// What it is known by, if it is a name, or a column of a row.
    pub path: Option<String>,
}

/// Why something has no value: what it is, and what to write instead.
pub type Refusal = (String, String);

impl Value {
    /// Of a class, by a computation that cannot fail.
    pub fn of(tree: Expr, class: Class, span: Span) -> Value {
        Value { tree, class, is_nullable: false, can_fail: false, span, path: None }
    }

    /// Whether it counts as true.
    ///
    /// # Errors
    /// For classes that have no such rule here.
    pub fn truth(&self) -> std::result::Result<Expr, Refusal> {
        let differs = |from: Expr| part::binary(self.tree.clone(), BinaryOperator::NotEq, from);
        let truth = match &self.class {
            Class::None => return Ok(boolean(false)),
            Class::Pending => return Ok(boolean(true)),
            Class::List(_) => part::binary(
                function("cardinality", vec![self.tree.clone()]),
                BinaryOperator::Gt,
                number("0"),
            ),
            Class::Boolean => self.tree.clone(),
            Class::Whole | Class::Float | Class::Decimal | Class::Span => differs(number("0")),
            Class::Text => differs(text("")),
            Class::Quotient | Class::Other(_) => {
                let what = format!("a value of type {} as a condition", self.class.name());
                return Err((what, "compare it".into()));
            }
        };
        Ok(if self.is_nullable { function("coalesce", vec![truth, boolean(false)]) } else { truth })
    }
}

/// Whether values of a type are held otherwise in a function than SQL holds them.
pub fn is_held_otherwise(sql_type: &SqlType) -> bool {
    use SqlType::{Char, Enumeration, Interval, Name, Oid, Real};
    matches!(sql_type.of_values(), Char(_) | Enumeration(_) | Interval | Name | Oid | Real)
}

/// The type of variables that SQL puts values of a type in.
pub fn held(sql_type: &SqlType) -> SqlType {
    if is_held_otherwise(sql_type) { sql_type.of_values() } else { Class::of(sql_type).sql_type() }
}

/// What a value of SQL is in a function: a `timedelta`, if it is an interval.
///
/// # Errors
/// Does not fail for types that columns have.
pub fn taken(tree: Expr, sql_type: &SqlType, span: Span) -> Result<Value> {
    let class = Class::of(sql_type);
    let tree = match sql_type.of_values() {
        SqlType::Interval => {
            let micros = function("fabius_python_timedelta", vec![tree]);
            return Ok(Value { can_fail: true, ..Value::of(micros, class, span) });
        }
        // It has its blanks.
        SqlType::Char(length) => {
            let length = number(&length.to_string());
            function("rpad", vec![cast(tree, &SqlType::Text)?, length])
        }
        _ if is_held_otherwise(sql_type) => cast(tree, &class.sql_type())?,
        _ => tree,
    };
    Ok(Value::of(tree, class, span))
}

/// What SQL takes for a value of a function where a type is wanted: an interval for a `timedelta`.
///
/// # Errors
/// Does not fail for types that columns have.
pub fn given(tree: Expr, class: &Class, wanted: &SqlType) -> Result<Expr> {
    let wanted = wanted.of_values();
    match (class, &wanted) {
        (Class::Span, SqlType::Interval) => Ok(as_interval(tree)),
        // Blanks at its end do not count, and it is not cut.
        (Class::Text, SqlType::Char(_)) => cast(tree, &type_rules::ANY_CHAR),
        (Class::Text, SqlType::Enumeration(_)) | (Class::List(_), _) => cast(tree, &wanted),
        _ => Ok(tree),
    }
}

/// A `timedelta` as an interval.
pub fn as_interval(tree: Expr) -> Expr {
    function("fabius_python_interval", vec![tree])
}

/// A number's literal.
pub fn number(digits: &str) -> Expr {
    Expr::value(ast::Value::Number(digits.into(), false))
}

/// A text's literal.
pub fn text(text: &str) -> Expr {
    Expr::value(ast::Value::SingleQuotedString(text.into()))
}

/// A truth's literal.
pub fn boolean(value: bool) -> Expr {
    Expr::value(ast::Value::Boolean(value))
}

/// A value as one of a type.
///
/// # Errors
/// Does not fail for types that columns have.
pub fn cast(value: Expr, sql_type: &SqlType) -> Result<Expr> {
    part::cast(value, &sql_type.written())
}

/// A call of a function of the system.
pub fn function(name: &str, arguments: Vec<Expr>) -> Expr {
    let call =
        Tokens::of(&format!("{name}(NULL)")).and_then(|tokens| tokens.read(|parser| parser.parse_expr()));
    let mut call = call.unwrap_or_else(|_| Expr::value(ast::Value::Null));
    if let Expr::Function(ast::Function { args: ast::FunctionArguments::List(list), .. }) = &mut call {
        let unnamed = |argument| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument));
        list.args = arguments.into_iter().map(unnamed).collect();
    } else {
        debug_assert!(false, "{name} has a syntax of its own");
    }
    call
}

/// `CASE WHEN condition THEN then ELSE otherwise END`
pub fn case(condition: Expr, then: Expr, otherwise: Expr) -> Expr {
    Expr::Case {
        case_token: ast::helpers::attached_token::AttachedToken::empty(),
        end_token: ast::helpers::attached_token::AttachedToken::empty(),
        operand: None,
        conditions: vec![ast::CaseWhen { condition, result: then }],
        else_result: Some(Box::new(otherwise)),
    }
}

/// All of the truths, or any of them; what may fail is computed only where those before it leave it open.
pub fn joined(is_and: bool, truths: Vec<(Expr, bool)>) -> Expr {
    let operator = if is_and { BinaryOperator::And } else { BinaryOperator::Or };
    let mut truths = truths.into_iter().rev();
    let Some((last, mut can_fail)) = truths.next() else { return boolean(is_and) };
    truths.fold(last, |rest, (truth, fails)| {
        let joined = match (can_fail, is_and) {
            (false, _) => part::binary(nested(truth), operator.clone(), nested(rest)),
            (true, true) => case(truth, rest, boolean(false)),
            (true, false) => case(truth, boolean(true), rest),
        };
        can_fail |= fails;
        joined
    })
}

/// In parentheses, as trees that are printed need them.
pub fn nested(value: Expr) -> Expr {
    Expr::Nested(Box::new(value))
}

/// The left operand of an operator: what is chained (`a + b - c`) stays a chain, which may be longer than deep.
fn chained(left: &Expr, operator: &BinaryOperator) -> Expr {
    let level = |operator: &BinaryOperator| match operator {
        BinaryOperator::Plus | BinaryOperator::Minus => 1,
        BinaryOperator::Multiply => 2,
        BinaryOperator::StringConcat => 3,
        _ => 0,
    };
    match left {
        Expr::Nested(inner) => match inner.as_ref() {
            Expr::BinaryOp { op, .. } if level(op) == level(operator) && level(op) > 0 => (**inner).clone(),
            _ => left.clone(),
        },
        _ => nested(left.clone()),
    }
}

/// What to do about a moment that has no time zone.
pub const ZONE: &str = "give it a time zone: x.replace(tzinfo=timezone.utc)";

/// What to do about a value that may be `None`.
pub const MAY_BE_NONE: &str = "test it first (`if x is None: ...`), or declare the column NOT NULL";

/// What an operation gives on a value whose class is not known yet: the class of the other, if that is.
fn pending(left: &Value, right: &Value, span: Span) -> Option<Value> {
    let other = match (&left.class, &right.class) {
        (Class::Pending, other) | (other, Class::Pending) => other.clone(),
        _ => return None,
    };
    Some(Value { can_fail: true, ..Value::of(Expr::value(ast::Value::Null), other, span) })
}

/// `left op right`
///
/// # Errors
/// For classes that have no such operator here.
pub fn calculated(
    operator: Operator,
    left: Value,
    right: Value,
    span: Span,
) -> std::result::Result<Value, Refusal> {
    if let Some(pending) = pending(&left, &right, span) {
        return Ok(pending);
    }
    if let Some(nullable) = [&left, &right].into_iter().find(|value| value.is_nullable) {
        let what = format!("{} with a {} that may be None", operator.symbol(), nullable.class.name());
        return Err((what, MAY_BE_NONE.into()));
    }
    let no_operator = || {
        let what = format!("{} {} {}", left.class.name(), operator.symbol(), right.class.name());
        (what, hint::operands(operator, &left.class, &right.class))
    };
    let plain = |symbol: BinaryOperator| {
        part::binary(chained(&left.tree, &symbol), symbol, nested(right.tree.clone()))
    };
    use Class::{Decimal, Float, Span as Time, Text, Whole};
    let (tree, class) = match (operator, &left.class, &right.class) {
        (Operator::Multiply, Text, Whole) => {
            let bound = |digits: &str| cast(number(digits), &SqlType::BigInt).map_err(|_| no_operator());
            let times = function("greatest", vec![right.tree.clone(), bound("0")?]);
            let times = function("least", vec![times, bound("2147483647")?]);
            let times = cast(times, &SqlType::Int).map_err(|_| no_operator())?;
            (function("repeat", vec![left.tree.clone(), times]), Text)
        }
        (Operator::Add, Text, Text) => (plain(BinaryOperator::StringConcat), Text),
        (Operator::Add | Operator::Subtract | Operator::Multiply, one, other) => {
            let class = match (one, other) {
                (Whole, Whole) => Whole,
                (Time, Time) if operator != Operator::Multiply => Time,
                (Time, Whole) | (Whole, Time) if operator == Operator::Multiply => Time,
                (Decimal, Decimal | Whole) | (Whole, Decimal) => Decimal,
                (Float, Float | Whole) | (Whole, Float) => Float,
                _ => return Err(no_operator()),
            };
            let symbol = match operator {
                Operator::Add => BinaryOperator::Plus,
                Operator::Subtract => BinaryOperator::Minus,
                _ => BinaryOperator::Multiply,
            };
            (plain(symbol), class)
        }
        (Operator::Divide, Float, Float | Whole) | (Operator::Divide, Whole, Float) => {
            (plain(BinaryOperator::Divide), Float)
        }
        (Operator::Divide, Whole, Whole) => {
            (function("fabius_python_divide", vec![left.tree.clone(), right.tree.clone()]), Float)
        }
        (Operator::FloorDivide | Operator::Modulo, Whole, Whole)
        | (Operator::FloorDivide, Time, Whole)
        | (Operator::FloorDivide | Operator::Modulo, Time, Time) => {
            // SQL cuts towards zero, and a remainder has the sign of the dividend; Python's has that of the divisor.
            let zero = || number("0");
            let remainder = || nested(plain(BinaryOperator::Modulo));
            let is_negative = |value: Expr| nested(part::binary(value, BinaryOperator::Lt, zero()));
            let is_off = part::binary(
                nested(part::binary(remainder(), BinaryOperator::NotEq, zero())),
                BinaryOperator::And,
                nested(part::binary(
                    is_negative(remainder()),
                    BinaryOperator::NotEq,
                    is_negative(nested(right.tree.clone())),
                )),
            );
            let (plain, by) = match operator {
                Operator::Modulo => (plain(BinaryOperator::Modulo), nested(right.tree.clone())),
                _ => (plain(BinaryOperator::Divide), number("-1")),
            };
            let class = match (operator, &left.class, &right.class) {
                (Operator::FloorDivide, Time, Whole) | (Operator::Modulo, Time, _) => Time,
                _ => Whole,
            };
            (part::binary(nested(plain), BinaryOperator::Plus, case(is_off, by, zero())), class)
        }
        (_, Whole, Whole) => (of_bits(operator, &left.tree, &right.tree).map_err(|_| no_operator())?, Whole),
        _ => return Err(no_operator()),
    };
    let can_fail = class != Text || operator != Operator::Add || left.can_fail || right.can_fail;
    Ok(Value { can_fail, ..Value::of(nested(tree), class, span) })
}

/// Powers, shifts and operators on bits of whole numbers.
fn of_bits(operator: Operator, left: &Expr, right: &Expr) -> Result<Expr> {
    let plain =
        |symbol: BinaryOperator, right: Expr| part::binary(nested(left.clone()), symbol, nested(right));
    let exact = |name: &str| function(name, vec![left.clone(), right.clone()]);
    Ok(match operator {
        Operator::Power => exact("fabius_python_power"),
        Operator::ShiftLeft => exact("fabius_python_shift"),
        Operator::And => plain(BinaryOperator::BitwiseAnd, right.clone()),
        Operator::Or => plain(BinaryOperator::BitwiseOr, right.clone()),
        Operator::ExclusiveOr => plain(BinaryOperator::PGBitwiseXor, right.clone()),
        // What is moved by more is only its sign.
        _ => {
            let count = function("least", vec![right.clone(), cast(number("63"), &SqlType::BigInt)?]);
            plain(BinaryOperator::PGBitwiseShiftRight, cast(count, &SqlType::Int)?)
        }
    })
}

/// `left < right`
///
/// # Errors
/// For classes that are not compared so here.
pub fn compared(left: &Value, comparison: Comparison, right: &Value) -> std::result::Result<Expr, Refusal> {
    if left.class.is_pending() || right.class.is_pending() {
        return Ok(boolean(true));
    }
    if matches!(comparison, Comparison::In | Comparison::NotIn) {
        return within(left, comparison, right);
    }
    let is_equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    let is_identity = matches!(comparison, Comparison::Is | Comparison::IsNot);
    let negated = matches!(comparison, Comparison::NotEqual | Comparison::IsNot);
    if is_equality || is_identity {
        let other = match (&left.class, &right.class) {
            (_, Class::None) => Some(left),
            (Class::None, _) => Some(right),
            _ => None,
        };
        if let Some(other) = other {
            let tree = Box::new(nested(other.tree.clone()));
            return Ok(match negated {
                true => Expr::IsNotNull(tree),
                false => Expr::IsNull(tree),
            });
        }
    }
    if is_identity {
        return Err(("is of anything but None".into(), "write ==".into()));
    }
    if let Class::List(_) = left.class {
        return Err(("a comparison of lists".into(), "compare their elements in a loop".into()));
    }
    if [left, right].iter().any(|value| matches!(value.class, Class::Other(SqlType::Json | SqlType::JsonB))) {
        return Err(("a comparison of json".into(), "call the function with side=\"client\"".into()));
    }
    let are_alike = match (&left.class, &right.class) {
        (Class::Whole | Class::Decimal, Class::Whole | Class::Decimal) => true,
        (one, other) => one == other,
    };
    if !are_alike {
        let what = format!("{} {} {}", left.class.name(), comparison.symbol(), right.class.name());
        let instead = match (&left.class, &right.class) {
            (Class::Other(SqlType::Timestamp), _) | (_, Class::Other(SqlType::Timestamp)) => ZONE,
            _ => "convert one of the values",
        };
        return Err((what, instead.into()));
    }
    let (one, other) = (nested(left.tree.clone()), nested(right.tree.clone()));
    if left.is_nullable || right.is_nullable {
        // `None` equals `None`, and has no place in an order.
        if !is_equality {
            let what = format!("{} of what may be None", comparison.symbol());
            return Err((what, MAY_BE_NONE.into()));
        }
        let (one, other) = (Box::new(one), Box::new(other));
        return Ok(match negated {
            true => Expr::IsDistinctFrom(one, other),
            false => Expr::IsNotDistinctFrom(one, other),
        });
    }
    let operator = match comparison {
        Comparison::Equal | Comparison::Is | Comparison::In => BinaryOperator::Eq,
        Comparison::NotEqual | Comparison::IsNot | Comparison::NotIn => BinaryOperator::NotEq,
        Comparison::Less => BinaryOperator::Lt,
        Comparison::LessOrEqual => BinaryOperator::LtEq,
        Comparison::Greater => BinaryOperator::Gt,
        Comparison::GreaterOrEqual => BinaryOperator::GtEq,
    };
    Ok(part::binary(one, operator, other))
}

/// `left in right`: an element of a list, or a part of a text.
fn within(left: &Value, comparison: Comparison, right: &Value) -> std::result::Result<Expr, Refusal> {
    let truth = match (&left.class, &right.class) {
        (one, Class::List(element)) if *one == **element => {
            let truth = Expr::AnyOp {
                left: Box::new(nested(left.tree.clone())),
                compare_op: BinaryOperator::Eq,
                right: Box::new(right.tree.clone()),
                is_some: false,
            };
            // Lists have no `None` in them.
            if left.is_nullable { function("coalesce", vec![truth, boolean(false)]) } else { truth }
        }
        (Class::Text, Class::Text) if !left.is_nullable && !right.is_nullable => {
            let place = function("strpos", vec![right.tree.clone(), left.tree.clone()]);
            part::binary(place, BinaryOperator::Gt, number("0"))
        }
        (one, other) => {
            let what = format!("{} {} {}", one.name(), comparison.symbol(), other.name());
            return Err((what, "ask for an element of a list, or for a part of a text".into()));
        }
    };
    Ok(match comparison {
        Comparison::NotIn => Expr::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(nested(truth)) },
        _ => truth,
    })
}
