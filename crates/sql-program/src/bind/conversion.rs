//! Conversions: a value as one of another type, where PostgreSQL converts.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::constant::Step;
use super::held::held;
use super::stop::{Bind, beyond};
use super::tree;
use fabius_sql_meaning::sql_type::{FREE_SCALE, SqlType};
use fabius_sql_meaning::text_format::{self, Fit, TextStyle};
use fabius_sql_meaning::type_rules::{self, Candidate, Category, Context, category};
use fabius_value::interval;
use fabius_value::{DataType, Error, SqlState, Value};

impl Binder<'_> {
    /// What has no type yet, as a value of this one.
    pub(super) fn resolve(&mut self, bound: Bound, to: &SqlType) -> Bind<Bound> {
        let place = bound.place;
        match &bound.known {
            Known::Literal(None) => Ok(Bound::constant(Value::Null, to.clone(), held(to)).at(place)),
            Known::Literal(Some(quoted)) if *to == SqlType::Interval => {
                let interval = interval::read(quoted.text()).map_err(|error| self.error(error, place))?;
                Ok(Bound::interval(interval).at(place))
            }
            Known::Literal(Some(_)) if matches!(to, SqlType::Array(_)) => {
                beyond(format!("a literal of type {to}"))
            }
            Known::Literal(Some(_))
                if matches!(category(to), Category::Moment | Category::Time) && self.types.has_own_clock =>
            {
                beyond("a moment by the session's clock")
            }
            Known::Literal(Some(quoted)) => {
                let constant = match quoted.read(to) {
                    Err(_) if is_of_now(quoted.text()) => return beyond("a moment of now"),
                    read => read.map_err(|error| self.error(error, place))?,
                };
                if constant.is_beyond_programs() {
                    return beyond("a day beyond those of programs");
                }
                let data_type = match constant.data_type() {
                    numeric @ DataType::Numeric { .. } => numeric,
                    _ => held(to),
                };
                Ok(Bound::of_constant(constant, type_rules::without_modifiers(to), data_type).at(place))
            }
            Known::Parameter(index) => {
                let index = *index;
                self.typed_parameter(index, &type_rules::without_modifiers(to), place)
            }
            _ => Ok(bound),
        }
    }

    /// A value of another type, for an operator, a place that stores it, or because the text says so.
    pub(super) fn convert(&mut self, bound: Bound, to: &SqlType, conversion: Context) -> Bind<Bound> {
        let bound = match (&bound.known, to) {
            // It is cut to its length, as all text is.
            (Known::Literal(Some(_)), SqlType::Char(_)) => self.resolve(bound, &SqlType::Text)?,
            _ if bound.is_unknown() => self.resolve(bound, to)?,
            _ => bound,
        };
        if let SqlType::Rounded(of, digits) = to {
            let bound = self.convert(bound, of, conversion)?;
            return self.with_digits(bound, to, *digits);
        }
        if bound.sql_type == *to {
            return Ok(bound);
        }
        if !type_rules::converts(&bound.sql_type, to, conversion) {
            return self.cannot_convert(&bound, to);
        }
        if bound.sql_type == SqlType::TimestampTz || *to == SqlType::TimestampTz {
            self.in_utc()?;
        }
        if let Known::Constant(value) = &bound.known {
            let converted = value.then(Step::Convert(bound.sql_type.clone(), to.clone(), conversion));
            let Some(converted) = converted.map_err(|error| self.error(error, bound.place))? else {
                return beyond(format!("converting {} to {to}", bound.sql_type));
            };
            if converted.is_beyond_programs() {
                return beyond("a day beyond those of programs");
            }
            let data_type = match (converted.data_type(), to) {
                (numeric @ DataType::Numeric { .. }, SqlType::Numeric(None)) => numeric,
                _ => to.storage().unwrap_or_else(|| held(to)),
            };
            let origin = (0, 0);
            return Ok(Bound {
                origin,
                ..Bound::of_constant(converted, to.clone(), data_type).at(bound.place)
            });
        }
        self.computed_conversion(bound, to, conversion)
    }

    /// A moment or time with so many digits of a second.
    fn with_digits(&mut self, bound: Bound, to: &SqlType, digits: u8) -> Bind<Bound> {
        let origin = (0, 0);
        if let Known::Constant(value) = &bound.known {
            let step = Step::Convert(bound.sql_type.clone(), to.clone(), Context::Explicit);
            let rounded = value.then(step).map_err(|error| self.error(error, bound.place))?;
            let Some(known) = rounded.map(Known::Constant) else { return beyond("rounding this") };
            return Ok(Bound { known, origin, ..bound });
        }
        let function = if bound.sql_type == SqlType::Time { "round_micros" } else { "round_moment" };
        let arguments = vec![bound.expression, tree::integer(digits.into())];
        let expression = tree::call(function, arguments);
        Ok(Bound { expression, origin, known: Known::Computed, ..bound })
    }

    /// Programs have no time zones: where one matters, it has to be UTC.
    pub(super) fn in_utc(&self) -> Bind<()> {
        if self.types.has_own_clock { beyond("the session's time zone") } else { Ok(()) }
    }

    fn computed_conversion(&mut self, bound: Bound, to: &SqlType, conversion: Context) -> Bind<Bound> {
        use Category as C;
        let from = bound.sql_type.clone();
        let (expression, data_type) = match (category(&from), category(to)) {
            (C::Number, C::Number)
                if matches!((&from, to), (SqlType::Real | SqlType::Double, SqlType::Numeric(_)))
                    && self.lifts
                    && self.writes.is_empty() =>
            {
                return beyond(
                    "a float as a numeric that is shown: queries give it as many digits as it is sure of",
                );
            }
            (C::Number, C::Number) => {
                let data_type = match (to, bound.data_type) {
                    (SqlType::Numeric(None), DataType::Numeric { .. }) => bound.data_type,
                    (SqlType::Numeric(None), DataType::SmallInt | DataType::Int | DataType::BigInt) => {
                        DataType::Numeric { precision: 38, scale: 0 }
                    }
                    _ => to.storage().unwrap_or(DataType::Double),
                };
                (cast(&bound, data_type), data_type)
            }
            (C::Text, C::Text) => match (to, conversion) {
                // A bound is kept by the place that stores it; only an explicit cast cuts.
                (SqlType::VarChar(Some(most)) | SqlType::Char(most), Context::Explicit) => {
                    let arguments =
                        vec![bound.expression.clone(), tree::integer(1), tree::integer((*most).into())];
                    let cut = tree::call("substring", arguments);
                    // It is held without the blanks at its end.
                    match to {
                        SqlType::Char(_) => (tree::call("rtrim", vec![cut, tree::text(" ")]), DataType::TEXT),
                        _ => (cut, DataType::TEXT),
                    }
                }
                (SqlType::VarChar(Some(_)) | SqlType::Char(_), _) => {
                    let data_type = to.storage().unwrap_or(DataType::TEXT);
                    (cast(&bound, data_type), data_type)
                }
                _ => (bound.expression.clone(), bound.data_type),
            },
            (C::Moment, C::Moment) => {
                let data_type = held(to);
                (cast(&bound, data_type), data_type)
            }
            (C::Moment, C::Time) => {
                let local = cast(&bound, DataType::Timestamp);
                let day = tree::cast(tree::cast(local.clone(), DataType::Date), DataType::Timestamp);
                (tree::call("micros_between", vec![local, day]), held(to))
            }
            (C::Json, C::Text | C::Json) if *to != SqlType::JsonB => {
                (bound.expression.clone(), DataType::TEXT)
            }
            (C::Boolean, C::Number) => {
                let (one, zero) = (tree::cast(tree::integer(1), DataType::Int), tree::integer(0));
                let number = tree::choice(bound.expression.clone(), one, zero);
                let null = tree::typed_null(DataType::Int);
                let known =
                    tree::choice(tree::is_null(bound.expression.clone(), false), null, number.clone());
                (if bound.nullable { known } else { number }, DataType::Int)
            }
            (C::Number, C::Boolean) => {
                let operator = fabius_program::ir::BinaryOperator::NotEqual;
                (tree::binary(operator, bound.expression.clone(), tree::integer(0)), DataType::Boolean)
            }
            (C::Number, C::Text) if from != SqlType::Real && from != SqlType::Double => {
                let text = cast(&bound, DataType::TEXT);
                // What is held with the places of a type without a scale has zeros that nobody has written.
                let is_padded = from == SqlType::Numeric(None) && bound.data_type.scale() >= FREE_SCALE;
                let trimmed = |text, what: &str| tree::call("rtrim", vec![text, tree::text(what)]);
                let text = if is_padded { trimmed(trimmed(text, "0"), ".") } else { text };
                (text, DataType::TEXT)
            }
            (C::Enumeration, C::Text) => (words(&bound)?, DataType::TEXT),
            (C::Text, C::Enumeration) => return self.labelled(bound, to),
            _ if from == SqlType::Uuid && category(to) == C::Text => {
                (tree::call("uuid_text", vec![bound.expression.clone()]), DataType::TEXT)
            }
            (C::Time, C::Text) => (tree::call("time_text", vec![bound.expression.clone()]), DataType::TEXT),
            (C::Boolean, C::Text) if *to == SqlType::Name => return beyond("a truth as a name"),
            (C::Boolean, C::Text) => (cast(&bound, DataType::TEXT), DataType::TEXT),
            (C::Moment, C::Text) if from != SqlType::TimestampTz => {
                (cast(&bound, DataType::TEXT), DataType::TEXT)
            }
            (C::Text, C::Number | C::Boolean | C::Moment) if *to != SqlType::TimestampTz => {
                let data_type = to.storage().unwrap_or(DataType::TEXT);
                (cast(&bound, data_type), data_type)
            }
            _ => return beyond(format!("converting {from} to {to}")),
        };
        let expression = if *to == SqlType::Real { tree::single(expression) } else { expression };
        let bound = Bound { expression, sql_type: to.clone(), data_type, origin: (0, 0), ..bound };
        match (to, conversion) {
            (SqlType::Char(_) | SqlType::VarChar(Some(_)), _) if category(&from) != C::Text => {
                let text = Bound { sql_type: SqlType::Text, ..bound };
                self.convert(text, to, conversion)
            }
            _ => Ok(bound),
        }
    }

    /// A text as the value of an enumeration that has it as its label.
    fn labelled(&mut self, bound: Bound, to: &SqlType) -> Bind<Bound> {
        let SqlType::Enumeration(of) = to else { return beyond("a label of no enumeration") };
        if of.labels.len() > LABELS_MOST {
            return beyond(format!("the values of {} labels", of.labels.len()));
        }
        let word = self.named(bound, "label")?;
        let is_equal = fabius_program::ir::BinaryOperator::Equal;
        let unknown = tree::call("unknown_label", vec![tree::text(of.shown()), word.expression.clone()]);
        let number = of.labels.iter().rfold(unknown, |others, label| {
            let is_it = tree::binary(is_equal, word.expression.clone(), tree::text(&label.name));
            tree::choice(is_it, tree::cast(tree::integer(label.number.into()), DataType::BigInt), others)
        });
        Ok(Bound::held_as(number, to.clone(), word.nullable, DataType::BigInt).at(word.place))
    }

    fn cannot_convert<T>(&self, bound: &Bound, to: &SqlType) -> Bind<T> {
        let from = &bound.sql_type;
        self.fail(b"42846", format!("cannot cast type {from} to {to}"), bound.place)
    }

    /// A value for a column.
    pub(super) fn stored(&mut self, bound: Bound, column: &str, to: &SqlType) -> Bind<Bound> {
        if to.is_kept_as_text()
            && let Some(text) = self.stored_text(&bound, to)?
        {
            return Ok(text);
        }
        let bound = match &bound.known {
            // A parameter has the column's type; its bounds are the column's to keep.
            Known::Parameter(_) => self.resolve(bound, to)?,
            _ => bound,
        };
        if !bound.is_unknown() && !type_rules::converts(&bound.sql_type, to, Context::Assignment) {
            let from = &bound.sql_type;
            let message = format!("column \"{column}\" is of type {to} but expression is of type {from}");
            let error = Error::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("You will need to rewrite or cast the expression.");
            return Err(self.error(error, bound.place));
        }
        self.convert(bound, to, Context::Assignment)
    }

    /// A value for a column that keeps text of it; `None` if there is no such conversion.
    fn stored_text(&mut self, bound: &Bound, to: &SqlType) -> Bind<Option<Bound>> {
        let place = bound.place;
        let constant = |value| Ok(Some(Bound::constant(value, to.clone(), DataType::TEXT).at(place)));
        let is_alike = match (&bound.sql_type, to) {
            (SqlType::Array(from), SqlType::Array(to)) => fits_as_text(from, to),
            (from, to) => from == to,
        };
        let is_array = matches!((&bound.sql_type, to), (SqlType::Array(_), SqlType::Array(_)))
            && type_rules::converts(&bound.sql_type, to, Context::Assignment);
        if is_array && !is_alike && matches!(bound.known, Known::Computed) {
            return beyond(format!("{} as {to}", bound.sql_type));
        }
        match &bound.known {
            _ if bound.is_null() => constant(Value::Null),
            Known::Literal(Some(quoted)) => {
                let value = text_format::read(quoted.text(), to, &TextStyle::default(), Fit::Store);
                constant(text_format::kept(value.map_err(|error| self.error(error, place))?, to))
            }
            Known::Constant(_) if bound.sql_type == *to => Ok(Some(bound.clone())),
            // An interval is the same text wherever it is.
            Known::Computed
                if is_alike && (*to == SqlType::Interval || self.is_kept_text(&bound.expression)) =>
            {
                Ok(Some(Bound { sql_type: to.clone(), data_type: DataType::TEXT, ..bound.clone() }))
            }
            Known::Interval(known) if is_alike => constant(interval::write(*known).into()),
            Known::Parameter(_) if *to == SqlType::Interval => self.resolve(bound.clone(), to).map(Some),
            Known::Parameter(_) => beyond(format!("a value of type {to}")),
            _ if is_alike => beyond(format!("a value of type {to}")),
            _ => Ok(None),
        }
    }

    /// A value for a place of a type: a variable of a procedure, an argument.
    ///
    /// # Errors
    /// `42804` if there is no such conversion.
    pub fn assigned(&mut self, bound: Bound, to: &SqlType) -> Bind<Bound> {
        if !bound.is_unknown() && !type_rules::converts(&bound.sql_type, to, Context::Assignment) {
            let message = format!("expression is of type {} but {to} is wanted", bound.sql_type);
            return self.fail(b"42804", message, bound.place);
        }
        let bound = self.convert(bound, to, Context::Assignment)?;
        self.settle(bound)
    }

    /// The values as one type: that of `CASE`, `COALESCE`, `IN`, ...
    pub(super) fn unify(&mut self, bounds: Vec<Bound>, what: &str) -> Bind<(Vec<Bound>, SqlType)> {
        let candidates = bounds.iter().map(|bound| Candidate {
            sql_type: if bound.is_unknown() { &SqlType::Unknown } else { &bound.sql_type },
            text: None,
            is_null: bound.is_null(),
        });
        let open = |common: SqlType, _: &Candidate<'_>| type_rules::without_modifiers(&common);
        let to = type_rules::common_of(candidates, what, type_rules::common, open)
            .map_err(|(at, error)| self.error(error, bounds[at].place))?;
        let mut unified = Vec::new();
        for bound in bounds {
            unified.push(self.convert(bound, &to, Context::Implicit)?);
        }
        Ok((unified, to))
    }
}

/// Whether the text of every value of one type is that of a value of another: none is too long, none has more digits.
fn fits_as_text(from: &SqlType, to: &SqlType) -> bool {
    let is_free = |of: &SqlType| matches!(of, SqlType::Text | SqlType::VarChar(None));
    let is_wider = type_rules::is_integer(from) && type_rules::is_integer(to);
    from == to
        || is_free(to) && (is_free(from) || matches!(from, SqlType::VarChar(_)))
        || is_wider && type_rules::rank(from) <= type_rules::rank(to)
}

fn cast(bound: &Bound, data_type: DataType) -> fabius_program::syntax::tree::Expression {
    if bound.data_type == data_type {
        return bound.expression.clone();
    }
    tree::cast(bound.expression.clone(), data_type)
}

/// Labels that are asked for one after the other; of more, queries know the words.
const LABELS_MOST: usize = 32;

/// The words of an enumeration's values, label by label.
fn words(bound: &Bound) -> Bind<fabius_program::syntax::tree::Expression> {
    let SqlType::Enumeration(of) = &bound.sql_type else { return beyond("a word of no enumeration") };
    if of.labels.len() > LABELS_MOST {
        return beyond(format!("the words of {} labels", of.labels.len()));
    }
    let is_equal = fabius_program::ir::BinaryOperator::Equal;
    // What is never null has a label: where it is none of the others, it is the last.
    let (asked, otherwise) = match of.labels.split_last() {
        Some((last, others)) if !bound.nullable => (others, tree::text(&last.name)),
        _ => (&of.labels[..], tree::typed_null(DataType::TEXT)),
    };
    Ok(asked.iter().rfold(otherwise, |others, label| {
        let is_it = tree::binary(is_equal, bound.expression.clone(), tree::integer(label.number.into()));
        tree::choice(is_it, tree::text(&label.name), others)
    }))
}

/// Whether a text says when by the time at which it is read: `now`, `today`.
fn is_of_now(text: &str) -> bool {
    ["now", "today", "tomorrow", "yesterday"].iter().any(|word| text.trim().eq_ignore_ascii_case(word))
}
