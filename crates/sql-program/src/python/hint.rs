//! What to write instead of what is refused.

use super::class::Class;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::python::tree::Operator;

/// How what a function says somewhere becomes a value of another class.
pub fn conversion(said: &str, from: &Class, to: &Class) -> String {
    let said = if said.len() > 30 || said.contains('\n') { "..." } else { said };
    let function = match (from, to) {
        (Class::Float | Class::Text, Class::Decimal) => {
            return "pass it as a Decimal, or write it as one: Decimal(\"1.5\")".into();
        }
        (other, Class::Other(SqlType::Json | SqlType::JsonB)) if *other != Class::Other(SqlType::Json) => {
            return "pass it as a document: annotate a parameter fabius.Json".into();
        }
        (Class::Other(SqlType::Json | SqlType::JsonB), _)
        | (_, Class::Other(SqlType::Json | SqlType::JsonB)) => {
            return "call the function with side=\"client\", where documents are converted".into();
        }
        (Class::List(_), _) | (_, Class::List(_)) => "",
        (_, Class::Text) => "str",
        (Class::Whole | Class::Float | Class::Decimal | Class::Text, Class::Boolean) => "bool",
        (Class::Boolean | Class::Float | Class::Decimal | Class::Quotient | Class::Text, Class::Whole) => {
            "int"
        }
        (Class::Boolean | Class::Whole | Class::Decimal | Class::Quotient | Class::Text, Class::Float) => {
            "float"
        }
        (Class::Boolean | Class::Whole, Class::Decimal) => "Decimal",
        _ => "",
    };
    match function {
        "" => format!("pass it to the function as a {}: annotate a parameter so", to.name()),
        function => format!("convert it: {function}({said})"),
    }
}

/// How two values that an operator does not take together come to be of one class.
pub fn operands(operator: Operator, left: &Class, right: &Class) -> String {
    use Class::{Boolean, Decimal, Float, Span, Text, Whole};
    let said = match (operator, left, right) {
        (Operator::Modulo, Text, _) => "write an f-string: f\"{x} of {y}\"",
        (Operator::Add, Text, _) | (Operator::Add, _, Text) => {
            "convert what is no str: str(x); or write an f-string: f\"{x}{y}\""
        }
        (Operator::And | Operator::Or | Operator::ExclusiveOr, Boolean, Boolean) => {
            "write `x and y`, `x or y` or `x != y`"
        }
        (Operator::Divide, Span, Whole | Float) => "divide by a whole number, rounded down: d // n",
        (Operator::Divide, Span, Span) => {
            "write `d // e`, or divide their seconds: d.total_seconds() / e.total_seconds()"
        }
        (Operator::Multiply, Span, Float) | (Operator::Multiply, Float, Span) => {
            "multiply by a whole number, and divide by one: d * 3 // 2"
        }
        (Operator::FloorDivide | Operator::Modulo, Decimal, _)
        | (Operator::FloorDivide | Operator::Modulo, _, Decimal) => {
            "round the quotient: int(x / y), or (x / y).quantize(Decimal(\"0.01\"))"
        }
        (_, Float, Decimal) | (_, Decimal, Float) => "convert the Decimal: float(x)",
        (_, Text, _) | (_, _, Text) => "convert the str: int(x), or float(x)",
        (Operator::Add | Operator::Subtract, Class::Other(_), Whole) => "add a time: timedelta(days=n)",
        _ => "convert one of the values",
    };
    said.into()
}

/// What to write instead of a call of a function that is not there; `None` if nothing in particular.
pub fn function(name: &str) -> Option<&'static str> {
    Some(match name {
        "input" => "ask before the call, and pass what was said as an argument",
        "map" | "filter" | "reversed" => "write a comprehension: [f(x) for x in xs if ...]",
        "isinstance" | "type" | "issubclass" => {
            "leave it out: a parameter is of the class that it is annotated with"
        }
        "getattr" | "setattr" | "hasattr" | "vars" => "name the column: row.qty",
        "bytes" | "bytearray" => "pass it as an argument: annotate a parameter `: bytes`",
        "pow" => "write a power with a literal exponent (x ** 2), or a loop",
        "divmod" => "take both parts: q, r = divmod(x, y)",
        "ord" | "chr" | "hash" | "id" | "bin" | "hex" | "oct" => {
            "compute it before the call, and pass it as an argument"
        }
        "next" | "iter" => "write a loop, and leave it by break",
        "eval" | "exec" | "compile" | "globals" | "locals" => {
            "write out what is to be done, or call the function with side=\"client\""
        }
        "tuple" | "frozenset" => "make a list: list(xs), or [x for x in xs]",
        _ => return None,
    })
}

/// What to write instead of a call of a method that is not there; `None` if nothing in particular.
pub fn method(name: &str) -> Option<&'static str> {
    Some(match name {
        "format" => "write an f-string: f\"{x} of {y}\"",
        "encode" | "decode" | "title" | "capitalize" | "swapcase" | "casefold" | "center" | "translate" => {
            "do it with the argument before the call, or with the result after it"
        }
        "fromisoformat" | "strptime" | "fromtimestamp" => {
            "pass what it gives as an argument: annotate a parameter `: date` or `: datetime`"
        }
        "commit" | "rollback" | "begin" | "savepoint" => {
            "leave it out: all of the function is one transaction, which `raise` undoes"
        }
        "update" => "change a row: db.table[key].column = value; or several: db.execute(\"update ...\")",
        "all" | "fetchall" | "first" | "fetchone" => {
            "use .one(), .scalar(), or a loop: for row in db.sql(...)"
        }
        "dumps" | "loads" => "do it before the call, and pass what it gives as an argument",
        "total" | "count" | "sum" => "ask by a statement: db.sql(\"select count(*) from ...\").scalar()",
        _ => return None,
    })
}
