//! Calls as users describe them: written like a call, with ranges in the place of values.
//!
//! ```text
//! call     = [ weight "*" ] procedure "(" [ argument { "," argument } ] ")"
//! argument = value | "[" [ row { "," row } ] [ ";" times ] "]"
//! row      = value | "(" value { "," value } ")"
//! value    = low ".." high | number | "'" text "'" | "null"
//! times    = number | low ".." high              how often the rows are given, drawn anew each time
//!
//! 3*balance(1..1000)     order(1..1000, [(1..100, 1..5); 10])     sum_of([1, 2, 7..9])
//! ```

use fabius::program::arguments;
use fabius::program::ir::{Field, Program, ScalarType, Type};
use fabius::{Database, Result};
use fabius_env::Random;
use fabius_value::{Error, SqlState, Value};
use std::sync::Arc;

/// Rows of a described list, at most.
const ROWS_MAX: i64 = 10_000;

/// A call with ranges in the place of some values.
#[derive(Clone)]
pub struct Template {
    /// Which procedure.
    pub procedure: &'static str,
    /// How often it is called in relation to others.
    pub weight: u64,
    program: Arc<Program>,
    arguments: Vec<Argument>,
}

/// What stands for an argument.
#[derive(Clone, Debug, PartialEq)]
enum Argument {
    Plain(Slot),
    /// These rows, given so often.
    List {
        rows: Vec<Vec<Slot>>,
        times: (i64, i64),
    },
}

/// What stands for a value.
#[derive(Clone, Debug, PartialEq)]
enum Slot {
    /// Always this.
    Fixed(Value),
    /// A whole number from the one to the other, both included.
    Range(i64, i64),
}

/// What gives a number for a range: of an argument with this place, or inside of a list.
type Draw<'d> = dyn FnMut(Option<usize>, i64, i64) -> i64 + 'd;

impl Template {
    /// Reads a description of a call to a procedure of this database.
    ///
    /// # Errors
    /// `22023` and what is wrong with it; values that do not fit their parameters.
    pub fn parse(description: &str, database: &Database) -> Result<Template> {
        let wrong = |why: String| {
            refused(format!("{description:?} describes no call: {why}")).with_hint(
                "write procedure(1..1000, 5, 'text', null, [(1..100, 1..5); 10]), with a weight in front if you like: 3*...",
            )
        };
        let (weight, call) = match description.split_once('*') {
            Some((weight, call)) if !weight.contains('(') => {
                let weight = weight.trim().parse().ok().filter(|weight| (1..=1_000_000).contains(weight));
                (weight.ok_or_else(|| wrong("a weight is a whole number from 1".into()))?, call)
            }
            _ => (1, description),
        };
        let (name, rest) =
            call.trim().split_once('(').ok_or_else(|| wrong("it has no parenthesis".into()))?;
        let inside =
            rest.strip_suffix(')').ok_or_else(|| wrong("it does not end with a parenthesis".into()))?;
        let name = name.trim();
        // Names are lower case, but for those in backquotes.
        let lower = |error| database.procedure(&name.to_ascii_lowercase()).map_err(|_| error);
        let program = database.procedure(name).or_else(lower)?.program.clone();
        let parameters = &program.variables[..program.parameter_count];
        let pieces = pieces(inside, ',');
        if pieces.len() != parameters.len() {
            return Err(wrong(format!("{} has other parameters", signature(&program))));
        }
        let arguments = pieces.into_iter().zip(parameters).map(|(piece, parameter)| {
            let argument = Argument::parse(piece, &parameter.ty);
            argument.map_err(|error| wrong(format!("{}: {}", parameter.name, error.message())))
        });
        let template = Template {
            procedure: program.name.clone().leak(),
            weight,
            arguments: arguments.collect::<Result<_>>()?,
            program: program.clone(),
        };
        template.encode_with(&mut |_, low, _| low)?;
        template.encode_with(&mut |_, _, high| high)?;
        Ok(template)
    }

    /// The first argument that is drawn, if it is no list: its place, and from where to where.
    pub fn first_range(&self) -> Option<(usize, i64, i64)> {
        self.arguments.iter().enumerate().find_map(|(at, argument)| match argument {
            Argument::Plain(Slot::Range(low, high)) => Some((at, *low, *high)),
            _ => None,
        })
    }

    /// Encoded arguments; the number for one place may be given.
    ///
    /// # Errors
    /// None that parsing has not met: there both ends of each range were tried, and the longest lists.
    pub fn encode(&self, random: &mut Random, given: Option<(usize, i64)>) -> Result<Vec<u8>> {
        self.encode_with(&mut |place, low, high| match given {
            Some((chosen, number)) if place == Some(chosen) => number,
            _ => low.wrapping_add_unsigned(random.below(high.abs_diff(low).saturating_add(1))),
        })
    }

    fn encode_with(&self, draw: &mut Draw<'_>) -> Result<Vec<u8>> {
        let parameters = self.arguments.iter().zip(&self.program.variables).enumerate();
        let values = parameters.map(|(at, (argument, parameter))| match (argument, &parameter.ty) {
            (Argument::Plain(slot), Type::Scalar(scalar)) => slot.value(*scalar, Some(at), draw),
            (Argument::List { rows, times }, Type::List(fields)) => {
                let times = draw(None, times.0, times.1);
                let rows = (0..times).flat_map(|_| rows);
                let drawn = rows.map(|row| {
                    row.iter().zip(fields).map(|(slot, field)| slot.value(field.scalar, None, draw)).collect()
                });
                Ok(Value::List(drawn.collect::<Result<_>>()?))
            }
            _ => unreachable!("each argument was parsed for its parameter's type"),
        });
        arguments::encode(&self.program, &values.collect::<Result<Vec<_>>>()?)
    }
}

impl Argument {
    fn parse(text: &str, ty: &Type) -> Result<Argument> {
        let fields = match ty {
            Type::Scalar(scalar) => return Slot::parse(text, *scalar).map(Argument::Plain),
            Type::List(fields) => fields,
        };
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        let parts = pieces(inside.ok_or_else(|| refused("a list stands in brackets: [...]"))?, ';');
        let (rows, times) = match parts[..] {
            [] => ("", (1, 1)),
            [rows] => (rows, (1, 1)),
            [rows, times] => (rows, parse_times(times)?),
            _ => return Err(refused("a list has one semicolon at most")),
        };
        let rows: Vec<_> =
            pieces(rows, ',').into_iter().map(|row| parse_row(row, fields)).collect::<Result<_>>()?;
        if times.1.saturating_mul(rows.len().max(1) as i64) > ROWS_MAX {
            return Err(refused(format!("a described list has {ROWS_MAX} rows at most")));
        }
        Ok(Argument::List { rows, times })
    }
}

fn parse_times(text: &str) -> Result<(i64, i64)> {
    let (low, high) = text.split_once("..").unwrap_or((text, text));
    match (low.trim().parse(), high.trim().parse()) {
        (Ok(low), Ok(high)) if 0 <= low && low <= high => Ok((low, high)),
        _ => Err(refused(format!("{text:?} does not say how often the rows are given"))),
    }
}

fn parse_row(text: &str, fields: &[Field]) -> Result<Vec<Slot>> {
    let inside = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'));
    let values = inside.map_or_else(|| vec![text], |inside| pieces(inside, ','));
    if values.len() != fields.len() {
        return Err(refused(format!("a row has {} values, not {}", fields.len(), values.len())));
    }
    values.into_iter().zip(fields).map(|(value, field)| Slot::parse(value, field.scalar)).collect()
}

impl Slot {
    fn parse(text: &str, scalar: ScalarType) -> Result<Slot> {
        if let Some((low, high)) = text.split_once("..")
            && let (Ok(low), Ok(high)) = (low.trim().parse::<i64>(), high.trim().parse::<i64>())
        {
            if low > high {
                return Err(refused(format!("the range {text} is empty")));
            }
            // Both ends fit, and with them all between.
            for end in [low, high] {
                Value::BigInt(end).cast(scalar.data_type)?;
            }
            return Ok(Slot::Range(low, high));
        }
        if text.eq_ignore_ascii_case("null") {
            return Ok(Slot::Fixed(Value::Null));
        }
        let inside = text.strip_prefix('\'').and_then(|text| text.strip_suffix('\''));
        let text = inside.map_or_else(|| text.to_string(), |inside| inside.replace("''", "'"));
        Value::Text(text).cast(scalar.data_type).map(Slot::Fixed)
    }

    fn value(&self, scalar: ScalarType, place: Option<usize>, draw: &mut Draw<'_>) -> Result<Value> {
        match self {
            Slot::Fixed(value) => Ok(value.clone()),
            Slot::Range(low, high) => Value::BigInt(draw(place, *low, *high)).cast(scalar.data_type),
        }
    }
}

fn refused(why: impl Into<String>) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, why.into())
}

/// What stands between separators outside of quotes, parentheses and brackets; nothing if there is nothing.
fn pieces(text: &str, separator: char) -> Vec<&str> {
    if text.trim().is_empty() {
        return Vec::new();
    }
    let (mut is_quoted, mut depth) = (false, 0);
    let is_between = |c: char| {
        match c {
            '\'' => is_quoted = !is_quoted,
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted => depth -= 1,
            _ => {}
        }
        c == separator && !is_quoted && depth == 0
    };
    text.split(is_between).map(str::trim).collect()
}

/// A procedure with the names of its parameters.
pub fn signature(program: &Program) -> String {
    let parameters = program.variables[..program.parameter_count].iter();
    let names: Vec<&str> = parameters.map(|parameter| parameter.name.as_str()).collect();
    format!("{}({})", program.name, names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn database() -> Database {
        let database = Database::in_memory(fabius::Options { workers: 0, ..fabius::Options::default() });
        database.define(include_str!("../../../programs/bank.fab")).unwrap();
        database
            .define(
                "procedure sum_of(numbers: list of bigint) -> bigint null { return sum(numbers)::bigint }
                 procedure few(numbers: list of int) { }",
            )
            .unwrap();
        database
    }

    fn values(description: &str, given: Option<(usize, i64)>) -> Vec<Value> {
        let template = Template::parse(description, &database()).unwrap();
        let encoded = template.encode(&mut Random::seeded(7), given).unwrap();
        arguments::to_values(&template.program, &encoded).unwrap()
    }

    /// Goal: descriptions become arguments of the parameters' types.
    #[test]
    fn descriptions_are_understood() {
        let description = "3*open_account(1..10, 'a, ''b''', 2.50)";
        let template = Template::parse(description, &database()).unwrap();
        assert_eq!((template.weight, template.procedure), (3, "open_account"));
        assert_eq!(template.first_range(), Some((0, 1, 10)));
        assert_eq!(values(description, Some((0, 4)))[..2], [Value::BigInt(4), Value::Text("a, 'b'".into())]);
        assert_eq!(values("open_account(5, null, 1)", None)[..2], [Value::BigInt(5), Value::Null]);
    }

    /// Goal: lists have the rows that are written, as often as is said, each time drawn anew.
    #[test]
    fn lists_are_drawn() {
        let rows = |description: &str| match &values(description, None)[..] {
            [Value::List(rows)] => rows.clone(),
            other => panic!("{other:?}"),
        };
        for (description, numbers) in [
            ("sum_of([])", &[][..]),
            ("sum_of([3, 5..5])", &[3, 5]),
            ("sum_of([3, 5; 2])", &[3, 5, 3, 5]),
            ("sum_of([1; 0])", &[]),
        ] {
            let expected: Vec<Vec<Value>> =
                numbers.iter().map(|&number| vec![Value::BigInt(number)]).collect();
            assert_eq!(rows(description), expected, "{description}");
        }
        let drawn = rows("open_accounts([(1..1000000, 5.25); 20..30])");
        assert!((20..=30).contains(&drawn.len()));
        assert!(drawn.iter().all(|row| row.len() == 2 && row[1] == drawn[0][1]), "{drawn:?}");
        assert!(drawn.iter().any(|row| row[0] != drawn[0][0]), "{drawn:?}");
    }

    /// Goal: what is wrong with a description is said.
    #[test]
    fn mistakes_are_named() {
        let database = database();
        for (description, why) in [
            ("deposit", "it has no parenthesis"),
            ("deposit(1, 2", "it does not end with a parenthesis"),
            ("deposit(1)", "deposit(id, amount) has other parameters"),
            ("deposit(9..1, 2)", "id: the range 9..1 is empty"),
            ("0*deposit(1, 2)", "a weight is a whole number from 1"),
            ("open_accounts(1)", "rows: a list stands in brackets"),
            ("open_accounts([1])", "rows: a row has 2 values, not 1"),
            ("open_accounts([(1, 2, 3)])", "rows: a row has 2 values, not 3"),
            ("open_accounts([(1, 2); 3; 4])", "rows: a list has one semicolon at most"),
            ("open_accounts([(1, 2); -1])", "\"-1\" does not say how often the rows are given"),
            ("open_accounts([(1, 2); 5000000000])", "a described list has 10000 rows at most"),
            ("sum_of([4..2])", "numbers: the range 4..2 is empty"),
            ("sum_of([; 9223372036854775807])", "a described list has 10000 rows at most"),
            ("few([(0..5000000000); 0..9])", "numbers: integer out of range"),
        ] {
            let error = Template::parse(description, &database).err().unwrap();
            assert!(error.message().contains(why), "{description}: {}", error.message());
        }
        assert!(Template::parse("withdraw(1)", &database).is_err());
        assert!(Template::parse("deposit(1, 'much')", &database).is_err());
    }
}
