//! Expressions with their types: what binding an expression gives.

use super::constant::{Constant, Quoted};
use super::held::{held, some_value};
use super::stop::Place;
use super::tree;
use fabius_program::syntax::Span;
use fabius_program::syntax::tree::{Expression, ExpressionKind, TypeKind, TypeName};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::interval::Interval;
use fabius_value::{DataType, Value};

/// An expression of a program with its SQL type.
#[derive(Clone, Debug)]
pub struct Bound {
    /// The expression. Of constants and of what is not of a known type yet, it stands for nothing until
    /// [`Binder::settle`](super::Binder::settle) has made it one.
    pub expression: Expression,
    /// The expression's type.
    pub sql_type: SqlType,
    /// Whether it can be null.
    pub nullable: bool,
    /// How the program holds it.
    pub data_type: DataType,
    /// The table and column (from 1) that it is, unchanged; else zeros.
    pub origin: (u32, u16),
    /// What more is known of it.
    pub(super) known: Known,
    /// Where it stands.
    pub(super) place: Place,
}

/// What is known of a value before the statement runs.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// Nothing: the expression computes it.
    Computed,
    /// All of it: the value.
    Constant(Constant),
    /// A literal in quotes, or null, whose type depends on where it stands.
    Literal(Option<Quoted>),
    /// A parameter whose type depends on where it stands.
    Parameter(usize),
    /// An interval, which programs do not hold.
    Interval(Interval),
}

impl Bound {
    /// What an expression computes, in the type that programs hold `sql_type` as.
    pub fn computed(expression: Expression, sql_type: SqlType, nullable: bool) -> Bound {
        let data_type = held(&sql_type);
        Bound::held_as(expression, sql_type, nullable, data_type)
    }

    /// The type as a result of a program: an array that is held as a list is one there too.
    pub(crate) fn result_type(&self) -> TypeName {
        match (&self.sql_type, &self.expression.kind) {
            (SqlType::Array(element), ExpressionKind::Variable(_)) => {
                TypeName { kind: TypeKind::List(tree::scalar(held(element), true)), span: Span::default() }
            }
            _ => tree::scalar_type(self.data_type, self.nullable),
        }
    }

    /// What an expression computes, in another type of programs.
    pub fn held_as(expression: Expression, sql_type: SqlType, nullable: bool, data_type: DataType) -> Bound {
        let (known, place) = (Known::Computed, Place::none());
        let sql_type = match sql_type {
            SqlType::Rounded(of, _) => *of,
            other => other,
        };
        Bound { expression, sql_type, nullable, data_type, origin: (0, 0), known, place }
    }

    /// A value.
    pub(super) fn constant(value: Value, sql_type: SqlType, data_type: DataType) -> Bound {
        Bound::of_constant(Constant::new(value), sql_type, data_type)
    }

    /// A value, perhaps of a literal.
    pub(super) fn of_constant(constant: Constant, sql_type: SqlType, data_type: DataType) -> Bound {
        let nullable = constant.is_null();
        Bound {
            known: Known::Constant(constant),
            ..Bound::held_as(tree::null(), sql_type, nullable, data_type)
        }
    }

    /// `true` or `false`, known.
    pub(super) fn boolean(value: bool) -> Bound {
        Bound::constant(Value::Boolean(value), SqlType::Boolean, DataType::Boolean)
    }

    /// A quoted literal or null.
    pub(super) fn literal(quoted: Option<Quoted>) -> Bound {
        let nullable = quoted.is_none();
        Bound {
            known: Known::Literal(quoted),
            ..Bound::held_as(tree::null(), SqlType::Unknown, nullable, DataType::TEXT)
        }
    }

    /// A parameter without a type yet.
    pub(super) fn parameter(index: usize, nullable: bool) -> Bound {
        Bound {
            known: Known::Parameter(index),
            ..Bound::held_as(tree::null(), SqlType::Unknown, nullable, DataType::TEXT)
        }
    }

    pub(super) fn interval(interval: Interval) -> Bound {
        Bound {
            known: Known::Interval(interval),
            ..Bound::held_as(tree::null(), SqlType::Interval, false, DataType::TEXT)
        }
    }

    /// This expression, standing at a place.
    pub(super) fn at(mut self, place: Place) -> Bound {
        self.place = place;
        self
    }

    /// This value where it is there, else some value of its type: it is not null where it is read.
    pub(crate) fn or_some_value(self) -> Bound {
        let other = tree::literal(&some_value(self.data_type), self.data_type);
        let is_null = self.expression == tree::typed_null(self.data_type);
        let expression = if is_null { other } else { tree::call("coalesce", vec![self.expression, other]) };
        Bound { expression, nullable: false, known: Known::Computed, ..self }
    }

    /// Whether its type depends on where it stands.
    pub(super) fn is_unknown(&self) -> bool {
        self.sql_type == SqlType::Unknown
    }

    /// The expression's value, if it is known: the program depends on it then.
    pub(super) fn value(&self) -> Option<&Value> {
        match &self.known {
            Known::Constant(constant) => Some(constant.value()),
            _ => None,
        }
    }

    /// Whether it is true or false, if that is known.
    pub(super) fn truth(&self) -> Option<bool> {
        match &self.known {
            Known::Constant(constant) => constant.boolean(),
            _ => None,
        }
    }

    /// Whether it is known to be null.
    pub(crate) fn is_null(&self) -> bool {
        match &self.known {
            Known::Literal(text) => text.is_none(),
            Known::Constant(constant) => constant.is_null(),
            _ => false,
        }
    }
}
