//! Arithmetic at the ends of every type: each operator gives a value of the type or aborts with the
//! code that the documents name, and the error says what was to be computed. Every case goes through the
//! interpreter and through compiled code, with its operands as arguments, so that nothing is computed
//! before.

use fabius_program::arguments;
use fabius_program::catalog::Catalog;
use fabius_program::compile::compile_whole;
use fabius_program::verify;
use fabius_testing::memory::{Call, Memory, Phase};
use fabius_testing::ways::{never, run_code, run_reference};
use fabius_value::{DataType, Decimal, Value};

/// What an expression over `a` and `b` gives, as text, or its error.
fn value(expression: &str, types: [DataType; 2], values: &[Value; 2]) -> String {
    let [left, right] = types;
    let text = format!(
        "procedure p(a: {left}, b: {right}) {{ require false, ({expression})::text, sqlstate 'VALUE' }}"
    );
    let catalog =
        verify::load(&text, "test", &Catalog::new()).unwrap_or_else(|errors| panic!("{errors}\n{text}"));
    let program = catalog.procedures().next().unwrap().1;
    let bytes = arguments::encode(program, values).unwrap();
    let mut memory = Memory::new(&catalog);
    let interpreted = run_reference(program, &catalog, &mut memory, 1, &bytes).unwrap_err();
    let code = compile_whole(program, &catalog).unwrap();
    let compiled = run_code(&code, &mut memory, &mut Call::new(1), Phase::Whole, &bytes, never).unwrap_err();
    assert_eq!(interpreted, compiled, "{text}");
    let told = compiled.replacen(" (line 2)", "", 1);
    told.strip_prefix("[VALUE] ").unwrap_or(&told).into()
}

fn exact(number: i128, data_type: DataType) -> Value {
    Value::Numeric(Decimal { mantissa: number, scale: 0 }).cast(data_type).unwrap()
}

const WIDEST: DataType = DataType::Numeric { precision: 38, scale: 0 };
const WHOLE: [DataType; 4] = [DataType::SmallInt, DataType::Int, DataType::BigInt, WIDEST];

/// The ends of a type of whole numbers, what is next to them, and small numbers.
fn ends(data_type: DataType) -> Vec<i128> {
    let (low, high) = data_type.exact_range().unwrap();
    vec![low, low + 1, low / 2, -2, -1, 0, 1, 2, high / 2, high - 1, high]
}

fn out_of_range(data_type: DataType) -> String {
    let error = data_type.out_of_range();
    match error.detail() {
        Some(detail) => format!("[22003] {}; {detail} Here: ", error.message()),
        None => format!("[22003] {}; ", error.message()),
    }
}

fn refused(data_type: DataType, operation: &str) -> String {
    let stop = if data_type == WIDEST { "." } else { "" };
    format!("{}{operation}{stop}", out_of_range(data_type))
}

/// Goal: `+ - * / %` of whole numbers are those of mathematics within the type, and 22003 or 22012 beyond.
#[test]
fn whole_numbers_stay_in_their_type() {
    for data_type in WHOLE {
        let (low, high) = data_type.exact_range().unwrap();
        for operator in ["+", "-", "*", "/", "%"] {
            // The quotient of numerics has digits after the point.
            if data_type == WIDEST && operator == "/" {
                continue;
            }
            for left in ends(data_type) {
                for right in ends(data_type) {
                    let result = match operator {
                        "+" => left.checked_add(right),
                        "-" => left.checked_sub(right),
                        "*" => left.checked_mul(right),
                        _ if right == 0 => None,
                        "/" => Some(left / right),
                        _ => Some(left % right),
                    };
                    let operation = format!("{left} {operator} {right}");
                    let expected = match result {
                        Some(number) if (low..=high).contains(&number) => number.to_string(),
                        _ if right == 0 => format!("[22012] division by zero; {operation}"),
                        _ => refused(data_type, &operation),
                    };
                    let operands = [exact(left, data_type), exact(right, data_type)];
                    let given = value(&format!("a {operator} b"), [data_type; 2], &operands);
                    assert_eq!(given, expected, "{data_type}: {operation}");
                }
            }
        }
    }
}

/// Goal: the lowest integer has no opposite in its type; every numeric has one.
#[test]
fn only_the_lowest_integer_has_no_opposite() {
    for data_type in WHOLE {
        let high = data_type.exact_range().unwrap().1;
        for number in ends(data_type) {
            let fits = -high <= number;
            let operand = [exact(number, data_type), exact(0, data_type)];
            let given = |expression: &str| value(expression, [data_type; 2], &operand);
            let expected = |result: i128, text: String| {
                if fits { result.to_string() } else { refused(data_type, &text) }
            };
            assert_eq!(given("-a"), expected(-number, format!("-({number})")), "{data_type}");
            assert_eq!(given("abs(a)"), expected(number.abs(), format!("abs({number})")), "{data_type}");
        }
    }
}

/// Goal: a cast from any type of whole numbers to any other keeps the number or is refused.
#[test]
fn casts_between_whole_numbers_keep_the_number() {
    for from in WHOLE {
        let (low, high) = from.exact_range().unwrap();
        for to in WHOLE {
            let (first, last) = to.exact_range().unwrap();
            for number in ends(to).into_iter().flat_map(|end| [end - 1, end, end + 1]) {
                if !(low..=high).contains(&number) {
                    continue;
                }
                let expected = match (first..=last).contains(&number) {
                    true => number.to_string(),
                    false => refused(to, &format!("{number}::{to}")),
                };
                let operands = [exact(number, from), exact(0, from)];
                assert_eq!(value(&format!("a::{to}"), [from; 2], &operands), expected, "from {from}");
            }
        }
    }
}

/// Goal: the same of types with digits after the point, dates, timestamps and doubles, as the documents say.
#[test]
fn other_types_stay_in_their_range() {
    let (first, last) = (Value::Timestamp(i64::MIN).to_string(), Value::Timestamp(i64::MAX).to_string());
    let (first, last) = (first.as_str(), last.as_str());
    let (early, late) =
        (Value::Timestamp(i64::MIN + 1).to_string(), Value::Timestamp(i64::MAX - 1).to_string());
    let (early, late) = (early.as_str(), late.as_str());
    // The ends of time have no date that can be read.
    let parse = |data_type: DataType, text: &str| match text {
        _ if text == first => Value::Timestamp(i64::MIN),
        _ if text == last => Value::Timestamp(i64::MAX),
        _ if text == early => Value::Timestamp(i64::MIN + 1),
        _ if text == late => Value::Timestamp(i64::MAX - 1),
        text => Value::parse(text, data_type).unwrap(),
    };
    let (date, moment, int, big) = (DataType::Date, DataType::Timestamp, DataType::Int, DataType::BigInt);
    let small = DataType::Numeric { precision: 4, scale: 2 };
    let fine = DataType::Numeric { precision: 38, scale: 10 };
    let most = "9999999999999999999999999999.9999999999";
    let least = "-9999999999999999999999999999.9999999999";
    let nines = "9".repeat(38);
    let double = DataType::Double;
    let (huge, tiny) = ("1.7976931348623157e308", "5e-324");
    let field = |precision: u8, scale: u8| {
        format!(
            "[22003] numeric field overflow; A field with precision {precision}, scale {scale} must round to an \
             absolute value less than 10^{}. Here: ",
            precision - scale
        )
    };
    let (overflow, underflow) =
        ("[22003] value out of range: overflow; ", "[22003] value out of range: underflow; ");
    let cases: &[(DataType, &str, &str, DataType, &str, String)] = &[
        // A sum has a digit more than its operands, as long as there is one.
        (small, "99.99", "a + b", small, "99.99", "199.98".into()),
        (small, "-99.99", "a - b", small, "99.99", "-199.98".into()),
        (small, "99.99", "(a + b)::numeric(4, 2)", small, "0.01", field(4, 2) + "100.00::numeric(4, 2)."),
        (small, "-99.99", "(a - b)::numeric(4, 2)", small, "0.01", field(4, 2) + "-100.00::numeric(4, 2)."),
        (small, "-99.99", "a * b", small, "99.99", "-9998.0001".into()),
        (small, "-99.99", "a / b", small, "0.01", "-9999.000000".into()),
        (small, "99.99", "a / b", small, "0.00", "[22012] division by zero; 99.99 / 0.00".into()),
        (small, "99.99", "a % b", small, "0.00", "[22012] division by zero; 99.99 % 0.00".into()),
        (fine, most, "a + b", fine, "0", most.into()),
        (fine, most, "a + b", fine, "0.0000000001", field(38, 10) + &format!("{most} + 0.0000000001.")),
        (fine, least, "a - b", fine, "0.0000000001", field(38, 10) + &format!("{least} - 0.0000000001.")),
        (fine, least, "a + b", fine, most, "0.0000000000".into()),
        (fine, most, "a * b", small, "1.00", field(38, 12) + &format!("{most} * 1.00.")),
        (fine, most, "a / b", small, "0.01", field(38, 10) + &format!("{most} / 0.01.")),
        (fine, most, "a % b", fine, "0.0000000001", "0.0000000000".into()),
        (fine, least, "-a", fine, "0", most.into()),
        (WIDEST, &nines, "a / b", WIDEST, "-1", field(38, 6) + &format!("{nines} / -1.")),
        (WIDEST, &nines, "div(a, b)", WIDEST, "-1", format!("-{nines}")),
        // Days.
        (date, "9999-12-31", "a + b", int, "0", "9999-12-31".into()),
        (date, "9999-12-31", "a + b", int, "1", "[22003] date out of range; 9999-12-31 + 1".into()),
        (date, "9999-12-31", "b + a", int, "1", "[22003] date out of range; 9999-12-31 + 1".into()),
        (date, "9999-12-31", "a - b", int, "-1", "[22003] date out of range; 9999-12-31 - -1".into()),
        (date, "10000-01-01 BC", "a - b", int, "0", "10000-01-01 BC".into()),
        (date, "10000-01-01 BC", "a - b", int, "1", "[22003] date out of range; 10000-01-01 BC - 1".into()),
        (date, "10000-01-01 BC", "a + b", int, "-1", "[22003] date out of range; 10000-01-01 BC + -1".into()),
        (date, "10000-01-01 BC", "a + b", int, "7304483", "9999-12-31".into()),
        (date, "9999-12-31", "a - b", date, "10000-01-01 BC", "7304483".into()),
        (
            date,
            "9999-12-31",
            "a - b",
            int,
            "-2147483648",
            "[22003] date out of range; 9999-12-31 - -2147483648".into(),
        ),
        // Microseconds and months; the first moment and the last are the infinite ones, which stay as they are.
        (moment, last, "add_micros(a, b)", big, "0", last.into()),
        (moment, last, "add_micros(a, b)", big, "1", last.into()),
        (moment, first, "add_micros(a, b)", big, "-1", first.into()),
        (moment, last, "add_months(a, b)", big, "1", last.into()),
        (moment, first, "add_months(a, b)", big, "-1", first.into()),
        (
            moment,
            late,
            "add_micros(a, b)",
            big,
            "2",
            format!("[22008] timestamp out of range; add_micros({late}, 2)"),
        ),
        (
            moment,
            early,
            "add_micros(a, b)",
            big,
            "-2",
            format!("[22008] timestamp out of range; add_micros({early}, -2)"),
        ),
        (
            moment,
            late,
            "add_months(a, b)",
            big,
            "1",
            format!("[22008] timestamp out of range; add_months({late}, 1)"),
        ),
        (
            moment,
            early,
            "add_months(a, b)",
            big,
            "-1",
            format!("[22008] timestamp out of range; add_months({early}, -1)"),
        ),
        (moment, last, "micros_between(a, b)", moment, "1970-01-01", i64::MAX.to_string()),
        (moment, first, "micros_between(a, b)", moment, "1970-01-01", i64::MIN.to_string()),
        (
            moment,
            last,
            "micros_between(a, b)",
            moment,
            "1969-12-31 23:59:59.999999",
            format!("[22008] timestamp out of range; micros_between({last}, 1969-12-31 23:59:59.999999)"),
        ),
        (moment, first, "date_trunc('day', a)", moment, first, first.into()),
        // Doubles, as PostgreSQL has them.
        (
            double,
            huge,
            "a + b",
            double,
            huge,
            format!("{overflow}1.7976931348623157e308 + 1.7976931348623157e308"),
        ),
        (
            double,
            huge,
            "-a - b",
            double,
            huge,
            format!("{overflow}-1.7976931348623157e308 - 1.7976931348623157e308"),
        ),
        (double, huge, "a * b", double, "2", format!("{overflow}1.7976931348623157e308 * 2")),
        (double, huge, "a / b", double, "0.5", format!("{overflow}1.7976931348623157e308 / 0.5")),
        (double, tiny, "a * b", double, "0.5", format!("{underflow}5e-324 * 0.5")),
        (double, tiny, "a / b", double, "2", format!("{underflow}5e-324 / 2")),
        (double, tiny, "a - b", double, tiny, "0".into()),
        (double, "1", "a / b", double, "0", "[22012] division by zero; 1 / 0".into()),
        (double, "Infinity", "a - b", double, "Infinity", "NaN".into()),
        (double, "Infinity", "a + b", double, huge, "Infinity".into()),
        (double, "NaN", "a / b", double, "0", "NaN".into()),
        (double, "NaN", "a::int", double, "0", "[22003] integer out of range; NaN::int".into()),
        (
            double,
            "9223372036854775808",
            "a::bigint",
            double,
            "0",
            "[22003] bigint out of range; 9.223372036854776e+18::bigint".into(),
        ),
        (double, "-9223372036854775808", "a::bigint", double, "0", i64::MIN.to_string()),
        (double, "Infinity", "a::numeric(4, 2)", double, "0", field(4, 2) + "inf::numeric(4, 2)."),
    ];
    let mut wrong = Vec::new();
    for (left, a, expression, right, b, expected) in cases {
        let given = value(expression, [*left, *right], &[parse(*left, a), parse(*right, b)]);
        if given != *expected {
            wrong.push(format!("{expression} of {a}, {b}\n   is {given}\n  not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Goal: a sum over a list is checked like any other.
#[test]
fn sums_stay_in_range() {
    let text = "procedure p(l: list of bigint) -> bigint null { return sum(l) }";
    let catalog = verify::load(text, "test", &Catalog::new()).unwrap_or_else(|errors| panic!("{errors}"));
    let program = catalog.procedures().next().unwrap().1;
    let code = compile_whole(program, &catalog).unwrap();
    let sum = |numbers: &[i64]| {
        let list = Value::List(numbers.iter().map(|number| vec![Value::BigInt(*number)]).collect());
        let bytes = arguments::encode(program, &[list]).unwrap();
        let mut memory = Memory::new(&catalog);
        let interpreted = run_reference(program, &catalog, &mut memory, 1, &bytes);
        let compiled = run_code(&code, &mut memory, &mut Call::new(1), Phase::Whole, &bytes, never);
        assert_eq!(interpreted, compiled.map(|results| results.unwrap_or_default()));
        interpreted
    };
    assert_eq!(sum(&[i64::MAX, 1, -1]), Ok(vec![Value::BigInt(i64::MAX)]));
    let refused = "[22003] bigint out of range (line 2); sum of 2 values";
    assert_eq!(sum(&[i64::MAX, 1]), Err(refused.into()));
    assert_eq!(sum(&[i64::MIN, -1]), Err(refused.into()));
}
