//! Expressions as a reader of the program's text would write them.
//!
//! For messages, keys and `explain`: variables by their names (a read's variable is named by what it
//! reads, so `stock[line.item].quantity - line.count` comes out as it was written); casts that the
//! verifier added are left out.

use crate::ir::{
    Aggregate, BinaryOperator, Bits, Expression, ExpressionKind, Function, Program, Rounding, UnaryOperator,
    VariableId,
};
use crate::operation::function::Signature;
use fabius_value::Value;

/// The text of an expression.
pub(crate) fn expression_text(program: &Program, expression: &Expression) -> String {
    text(program, expression, 0)
}

fn text(program: &Program, expression: &Expression, around: u8) -> String {
    let name = |variable: VariableId| program.variables[usize::from(variable.0)].name.clone();
    let list =
        |all: &[Expression]| all.iter().map(|one| text(program, one, 0)).collect::<Vec<_>>().join(", ");
    match &expression.kind {
        ExpressionKind::Constant(Value::Text(value)) => format!("'{}'", value.replace('\'', "''")),
        ExpressionKind::Constant(value) => value.to_string(),
        ExpressionKind::Variable(variable) => name(*variable),
        ExpressionKind::Cast(operand) => text(program, operand, around),
        ExpressionKind::Unary(operator, operand) => {
            let operand = text(program, operand, 9);
            match operator {
                UnaryOperator::Negate => format!("-{operand}"),
                UnaryOperator::Not => format!("not {operand}"),
                UnaryOperator::IsNull => format!("{operand} is null"),
            }
        }
        ExpressionKind::Binary(operator, left, right) => {
            let (sign, strength) = sign(*operator);
            let inside =
                format!("{} {sign} {}", text(program, left, strength), text(program, right, strength + 1));
            if strength < around { format!("({inside})") } else { inside }
        }
        ExpressionKind::Case { arms, otherwise } => {
            let mut inside = String::new();
            for (condition, value) in arms {
                inside +=
                    &format!("if {} then {} else ", text(program, condition, 0), text(program, value, 0));
            }
            inside += &text(program, otherwise, 0);
            if around > 0 { format!("({inside})") } else { inside }
        }
        ExpressionKind::Call(Function::Extract(field), arguments) => {
            format!("extract('{}', {})", field.name(), list(arguments))
        }
        ExpressionKind::Call(function, arguments) => format!("{}({})", called(*function), list(arguments)),
        ExpressionKind::Aggregate { aggregate, list, field } => {
            let field = field_name(program, *list, *field);
            format!("{}({}{field})", aggregated(*aggregate), name(*list))
        }
        ExpressionKind::Element { list, index, field } => {
            let field = field_name(program, *list, *field);
            format!("{}[{}]{field}", name(*list), text(program, index, 0))
        }
        ExpressionKind::Now => "now()".into(),
        ExpressionKind::Random => "random()".into(),
    }
}

fn field_name(program: &Program, list: VariableId, field: u16) -> String {
    match &program.variables[usize::from(list.0)].ty {
        crate::ir::Type::List(fields) => match fields.get(usize::from(field)) {
            Some(field) if !field.name.is_empty() => format!(".{}", field.name),
            _ => String::new(),
        },
        crate::ir::Type::Scalar(_) => String::new(),
    }
}

fn sign(operator: BinaryOperator) -> (&'static str, u8) {
    match operator {
        BinaryOperator::Or => ("or", 1),
        BinaryOperator::And => ("and", 2),
        BinaryOperator::Equal => ("=", 4),
        BinaryOperator::NotEqual => ("<>", 4),
        BinaryOperator::Less => ("<", 4),
        BinaryOperator::LessEqual => ("<=", 4),
        BinaryOperator::Greater => (">", 4),
        BinaryOperator::GreaterEqual => (">=", 4),
        BinaryOperator::IsDistinct => ("is distinct from", 3),
        BinaryOperator::IsNotDistinct => ("is not distinct from", 3),
        BinaryOperator::Concatenate => ("||", 5),
        BinaryOperator::Add => ("+", 6),
        BinaryOperator::Subtract => ("-", 6),
        BinaryOperator::Multiply => ("*", 7),
        BinaryOperator::Divide => ("/", 7),
        BinaryOperator::Modulo => ("%", 7),
    }
}

/// A function by its name.
pub(crate) fn called(function: Function) -> &'static str {
    match function {
        Function::Abs => "abs",
        Function::Length => "length",
        Function::Lower => "lower",
        Function::Upper => "upper",
        Function::Substring => "substring",
        Function::Overlay => "overlay",
        Function::Least => "least",
        Function::Greatest => "greatest",
        Function::Coalesce => "coalesce",
        Function::Concat => "concat",
        Function::Round(Rounding::Nearest) => "round",
        Function::Round(Rounding::NearestEven) => "round_even",
        Function::Round(Rounding::TowardZero) => "trunc",
        Function::Round(Rounding::Down) => "floor",
        Function::Round(Rounding::Up) => "ceil",
        Function::Sign => "sign",
        Function::DivideWhole => "div",
        Function::Bits(Bits::And) => "bitand",
        Function::Bits(Bits::Or) => "bitor",
        Function::Bits(Bits::Xor) => "bitxor",
        Function::Bits(Bits::Left) => "shift_left",
        Function::Bits(Bits::Right) => "shift_right",
        Function::BitNot => "bitnot",
        Function::Extract(_) => "extract",
        fixed => Signature::of(fixed).map_or("", |line| line.name),
    }
}

/// An aggregate by its name.
pub(crate) fn aggregated(aggregate: Aggregate) -> &'static str {
    match aggregate {
        Aggregate::Count | Aggregate::CountDistinct => "count",
        Aggregate::Sum => "sum",
        Aggregate::Min => "min",
        Aggregate::Max => "max",
        Aggregate::Average => "avg",
    }
}
