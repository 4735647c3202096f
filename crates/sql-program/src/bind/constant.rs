//! Values that are known when a statement is bound, and how they come from its literals.
//!
//! Most literals only become arguments of the program, perhaps converted on the way. Of such a literal the way is
//! kept, as a [`Recipe`], so that a statement of the same [`NormalForm`] needs no binding: its literals go the same
//! way. A literal that binding has looked at has a say in the program, and has to be the same again.

use super::held;
use crate::lowered::Argument;
use fabius_sql_meaning::conversion;
use fabius_sql_meaning::number_literal;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::{self, Fit, TextStyle};
use fabius_sql_meaning::type_rules::{Category, Context, category};
use fabius_sql_syntax::normal_form::{Literal, NormalForm};
use fabius_value::calendar::DATE_RANGE;
use fabius_value::{DataType, Decimal, Result, Value};
use sqlparser::tokenizer::Location;
use std::cell::Cell;
use std::rc::Rc;

/// A value that is known, and where from.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    value: Value,
    way: Option<Way>,
}

/// A text in quotes whose type is not known yet.
#[derive(Clone, Debug)]
pub(super) struct Quoted {
    text: String,
    literal: Option<Rc<LiteralUse>>,
}

/// What binding does with a literal of the text.
#[derive(Debug)]
struct LiteralUse {
    number: usize,
    /// Whether what it says was looked at.
    is_read: Cell<bool>,
}

/// How a value comes from a literal.
#[derive(Clone, Debug)]
struct Way {
    literal: Rc<LiteralUse>,
    steps: Vec<(Step, DataType)>,
}

/// A step from a literal to a value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// A number as it is written.
    Number,
    /// A text as a value of a type.
    Read(SqlType),
    /// A value of one type as one of another.
    Convert(SqlType, SqlType, Context),
    /// The value of a key column that is the same.
    Exactly(DataType),
    /// The number below zero.
    Negate,
    /// The text without blanks at its end.
    TrimEnd,
}

/// How an argument of a program comes from a literal.
#[derive(Clone, Debug, PartialEq)]
pub struct Recipe {
    /// Which literal of the normal form.
    pub literal: usize,
    /// The argument, of the text that was bound.
    pub value: Value,
    /// Each step, and how programs hold what it gives.
    steps: Vec<(Step, DataType)>,
}

/// The literals of the text being bound.
#[derive(Default)]
pub(super) struct Literals {
    literals: Vec<Literal>,
    uses: Vec<Rc<LiteralUse>>,
    /// Arguments that come from them: [`Argument::Literal`] counts these.
    arguments: Vec<Constant>,
}

impl Step {
    /// The value after this step; `None` if there is none.
    fn apply(&self, value: &Value) -> Result<Option<Value>> {
        Ok(match (self, value) {
            (Step::Number, Value::Text(text)) => number_literal::read(text).map(|(value, _)| value),
            (Step::Read(to), Value::Text(text)) => {
                Some(text_format::read(text, to, &TextStyle::default(), Fit::Literal)?)
            }
            (Step::Convert(from, to, conversion), value) => converted(value, from, to, *conversion)?,
            (Step::Exactly(storage), value) => exactly(value, *storage),
            (Step::Negate, value) => negated(value),
            (Step::TrimEnd, Value::Text(text)) => Some(Value::Text(text.trim_end_matches(' ').into())),
            _ => None,
        })
    }
}

/// How programs hold a constant: of numbers with a point, so many digits.
fn held(value: &Value) -> DataType {
    match value {
        Value::Numeric(decimal) => held::decimal_type(*decimal),
        Value::SmallInt(_) => DataType::SmallInt,
        Value::Int(_) => DataType::Int,
        Value::BigInt(_) => DataType::BigInt,
        Value::Double(_) => DataType::Double,
        Value::Boolean(_) => DataType::Boolean,
        // Not a day that programs have: texts that say one are other programs.
        value if is_beyond_programs(value) => DataType::TEXT,
        Value::Date(_) => DataType::Date,
        Value::Timestamp(_) => DataType::Timestamp,
        _ => DataType::TEXT,
    }
}

fn is_beyond_programs(value: &Value) -> bool {
    let (first, last) = DATE_RANGE;
    matches!(value, Value::Date(days) if !(first..=last).contains(days))
}

/// The arguments that another text's literals become, by the recipes of a text of the same normal form; `None` if the
/// other text has to be bound, as it may be another program: literals that are no arguments have to be the same, and
/// the same ones have to be equal among themselves, because binding compares parts of a statement with each other.
pub fn arguments<A: FromIterator<Value>>(
    recipes: &[Recipe],
    own: &[Literal],
    other: &[Literal],
) -> Option<A> {
    let is_free = |number: usize| recipes.iter().any(|recipe| recipe.literal == number);
    let mut pairs = own.iter().zip(other).enumerate();
    let is_same = own.len() == other.len()
        && pairs.all(|(number, (own, other))| own.text == other.text || is_free(number))
        && NormalForm::repeats_as(own, other);
    if !is_same {
        return None;
    }
    recipes.iter().map(|recipe| recipe.apply(&other[recipe.literal])).collect()
}

impl Recipe {
    /// The argument that a literal of another text becomes; `None` if it is not an argument of the same kind: then
    /// the text has to be bound.
    fn apply(&self, literal: &Literal) -> Option<Value> {
        let mut value = Value::Text(literal.text.clone());
        for (step, wanted) in &self.steps {
            value = step.apply(&value).ok()??;
            if value.is_null() || held(&value) != *wanted {
                return None;
            }
        }
        Some(value)
    }
}

impl Constant {
    /// A value from elsewhere.
    pub fn new(value: Value) -> Constant {
        Constant { value, way: None }
    }

    /// The value, looked at: the program depends on it.
    pub fn value(&self) -> &Value {
        if let Some(way) = &self.way {
            way.literal.is_read.set(true);
        }
        &self.value
    }

    /// Whether it is null; no literal is.
    pub fn is_null(&self) -> bool {
        self.value.is_null()
    }

    /// How programs hold it, as far as that depends on the value; the same for all that go the same way.
    pub fn data_type(&self) -> DataType {
        held(&self.value)
    }

    /// Whether it is a day that programs do not compute with, looked at if so.
    pub fn is_beyond_programs(&self) -> bool {
        let is_beyond = is_beyond_programs(&self.value);
        if is_beyond {
            self.value();
        }
        is_beyond
    }

    /// Whether it is such a boolean, looked at if so.
    pub fn boolean(&self) -> Option<bool> {
        match self.value {
            Value::Boolean(value) => {
                self.value();
                Some(value)
            }
            _ => None,
        }
    }

    /// One step further; `None` if it cannot be taken, for this value.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn then(&self, step: Step) -> Result<Option<Constant>> {
        let after = step.apply(&self.value);
        let Ok(Some(value)) = after else {
            // That it could not be taken is a look at the value.
            self.value();
            return after.map(|_| None);
        };
        let way = self.way.clone().map(|mut way| {
            way.steps.push((step, held(&value)));
            way
        });
        Ok(Some(Constant { value, way }))
    }
}

impl Quoted {
    /// A text from elsewhere.
    pub fn new(text: impl Into<String>) -> Quoted {
        Quoted { text: text.into(), literal: None }
    }

    /// The text, looked at: the program depends on it.
    pub fn text(&self) -> &str {
        if let Some(literal) = &self.literal {
            literal.is_read.set(true);
        }
        &self.text
    }

    /// As a value of a type.
    ///
    /// # Errors
    /// Why it is none.
    pub fn read(&self, to: &SqlType) -> Result<Constant> {
        let way = self.literal.clone().map(|literal| Way { literal, steps: Vec::new() });
        let text = Constant { value: Value::Text(self.text.clone()), way };
        Ok(text.then(Step::Read(to.clone()))?.unwrap_or(text))
    }
}

impl Literals {
    /// Those of a normal form.
    pub fn of(form: Option<&NormalForm>) -> Literals {
        let literals = form.map(|form| form.literals.clone()).unwrap_or_default();
        let uses =
            (0..literals.len()).map(|number| Rc::new(LiteralUse { number, is_read: Cell::new(false) }));
        Literals { uses: uses.collect(), literals, arguments: Vec::new() }
    }

    /// The one at a place, if it says the same.
    fn at(&self, place: Location, text: &str) -> Option<Rc<LiteralUse>> {
        let found = self.literals.binary_search_by_key(&(place.line, place.column), |literal| {
            (literal.place.line, literal.place.column)
        });
        found
            .ok()
            .filter(|number| self.literals[*number].text == text)
            .map(|number| self.uses[number].clone())
    }

    /// A number of the text; `None` if it has too many digits.
    pub fn number(&self, text: &str, place: Location) -> Option<Constant> {
        let way = self.at(place, text).map(|literal| Way { literal, steps: Vec::new() });
        Constant { value: Value::Text(text.into()), way }.then(Step::Number).ok()?
    }

    /// A text in quotes.
    pub fn quoted(&self, text: &str, place: Location) -> Quoted {
        Quoted { text: text.into(), literal: self.at(place, text) }
    }

    /// A constant as an argument.
    pub fn argument(&mut self, constant: Constant) -> Argument {
        if constant.way.is_none() {
            return Argument::Constant(constant.value);
        }
        self.arguments.push(constant);
        Argument::Literal(self.arguments.len() - 1)
    }

    /// The recipes of arguments whose literals are nothing else; the others become constants.
    pub fn recipes(self, arguments: &mut [Argument]) -> Vec<Recipe> {
        let mut recipes = Vec::new();
        let finals = self.arguments.into_iter().map(|constant| match constant.way {
            Some(way) if !way.literal.is_read.get() => {
                let literal = way.literal.number;
                recipes.push(Recipe { literal, value: constant.value, steps: way.steps });
                Argument::Literal(recipes.len() - 1)
            }
            _ => Argument::Constant(constant.value),
        });
        let finals: Vec<Argument> = finals.collect();
        arguments.iter_mut().for_each(|argument| replace(argument, &finals));
        recipes
    }
}

fn replace(argument: &mut Argument, finals: &[Argument]) {
    match argument {
        Argument::Literal(number) => *argument = finals[*number].clone(),
        Argument::Rows(rows) | Argument::Set(rows) => {
            rows.iter_mut().flatten().for_each(|argument| replace(argument, finals));
        }
        _ => {}
    }
}

/// A constant converted ahead; `None` if that is not known here: what a session's settings change, and types that
/// programs do not have.
pub(super) fn converted(
    value: &Value,
    from: &SqlType,
    to: &SqlType,
    context: Context,
) -> Result<Option<Value>> {
    use Category as C;
    let is_float = matches!(from, SqlType::Real | SqlType::Double);
    let is_unknown = match (category(from), category(to)) {
        (C::Array | C::Interval, _) | (_, C::Array | C::Interval) => true,
        (C::Number, C::Text) => is_float,
        (C::Moment, C::Text) => *from == SqlType::TimestampTz,
        (C::Bytea, C::Text) => true,
        _ => false,
    };
    if value.is_null() || is_unknown {
        return Ok(value.is_null().then_some(Value::Null));
    }
    let fit = match (to, context) {
        // Its digits are its own.
        (SqlType::Numeric(None), _) => Fit::Literal,
        (_, Context::Explicit) => Fit::Cast,
        _ => Fit::Store,
    };
    let converted = conversion::convert(value, from, to, &TextStyle::default(), fit)?;
    Ok(Some(match converted {
        Value::Numeric(decimal) if is_float && fit == Fit::Literal => Value::Numeric(decimal.trimmed()),
        converted => converted,
    }))
}

/// A value in a key column's type, if it has exactly this value there.
pub(super) fn exactly(value: &Value, storage: DataType) -> Option<Value> {
    let cast = value.cast(storage).ok()?;
    let same = match (value, &cast) {
        (Value::Text(before), Value::Text(after)) => match storage {
            DataType::Char { .. } => before.trim_end_matches(' ') == after,
            _ => before == after,
        },
        (Value::Numeric(decimal), after) => {
            let back = after.cast(DataType::Numeric { precision: 38, scale: decimal.scale.min(38) }).ok()?;
            back == *value || storage == DataType::Double
        }
        (Value::Double(number), after) => match after.cast(DataType::Double).ok()? {
            Value::Double(back) => back == *number,
            _ => false,
        },
        _ => true,
    };
    same.then_some(cast)
}

/// A number below zero as one above, and the reverse.
pub(super) fn negated(value: &Value) -> Option<Value> {
    match value {
        Value::SmallInt(v) => v.checked_neg().map(Value::SmallInt),
        Value::Int(v) => v.checked_neg().map(Value::Int),
        Value::BigInt(v) => v.checked_neg().map(Value::BigInt),
        Value::Double(v) => Some(Value::Double(-v)),
        Value::Numeric(v) => Some(Value::Numeric(Decimal { mantissa: -v.mantissa, ..*v })),
        _ => None,
    }
}
