//! Arithmetic and comparison on values that are not known yet.

use fabius_program::syntax::tree::BinaryOperator;
use fabius_value::Value;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};
use std::sync::Arc;

/// A value that is not known yet: what a row holds, or what is computed of that. It is known when the
/// transaction commits, or before if somebody asks for it
/// ([`FutureTransaction::value`](super::future::FutureTransaction::value)).
///
/// It means something to the transaction that it comes from, and nothing to any other.
#[derive(Clone, Debug)]
pub struct FutureValue(pub(super) Arc<Node>);

/// What a future value is.
#[derive(Debug)]
pub(super) enum Node {
    /// What a step of the transaction has found: this column of those that it reads.
    Read(usize, usize),
    /// A function of all rows that a step has found, of one column or of whole rows.
    Aggregate(&'static str, usize, Option<String>),
    /// A column of one of the rows that a step has found, by its place from 1.
    Element(usize, i64, String),
    /// `e is not distinct from true`
    IsTrue(FutureValue),
    /// A value that is known.
    Constant(Value),
    /// `-e`
    Negate(FutureValue),
    /// `not e`
    Not(FutureValue),
    /// `e is null`
    IsNull(FutureValue),
    /// `a + b`, `a < b`, `a and b`
    Binary(BinaryOperator, FutureValue, FutureValue),
}

impl FutureValue {
    pub(super) fn new(node: Node) -> FutureValue {
        FutureValue(Arc::new(node))
    }

    /// The steps whose results are parts of it.
    pub(super) fn for_each_step(&self, visit: &mut impl FnMut(usize)) {
        match &*self.0 {
            Node::Read(step, _) | Node::Aggregate(_, step, _) | Node::Element(step, ..) => visit(*step),
            Node::Constant(_) => {}
            Node::Negate(operand) | Node::Not(operand) | Node::IsNull(operand) | Node::IsTrue(operand) => {
                operand.for_each_step(visit);
            }
            Node::Binary(_, left, right) => {
                left.for_each_step(visit);
                right.for_each_step(visit);
            }
        }
    }

    /// The value, if it is known.
    pub(super) fn constant(&self) -> Option<&Value> {
        match &*self.0 {
            Node::Constant(value) => Some(value),
            _ => None,
        }
    }

    fn with(&self, operator: BinaryOperator, other: impl Into<FutureValue>) -> FutureValue {
        FutureValue::new(Node::Binary(operator, self.clone(), other.into()))
    }

    /// `self = other`; unknown if either is null.
    pub fn equals(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::Equal, other)
    }

    /// `self <> other`; unknown if either is null.
    pub fn differs(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::NotEqual, other)
    }

    /// `self < other`
    pub fn below(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::Less, other)
    }

    /// `self <= other`
    pub fn at_most(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::LessEqual, other)
    }

    /// `self > other`
    pub fn above(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::Greater, other)
    }

    /// `self >= other`
    pub fn at_least(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::GreaterEqual, other)
    }

    /// `self and other`
    pub fn and(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::And, other)
    }

    /// `self or other`
    pub fn or(&self, other: impl Into<FutureValue>) -> FutureValue {
        self.with(BinaryOperator::Or, other)
    }

    /// `not self`
    pub fn negated(&self) -> FutureValue {
        FutureValue::new(Node::Not(self.clone()))
    }

    /// `self is null`: for a column, also if its row is missing.
    pub fn is_null(&self) -> FutureValue {
        FutureValue::new(Node::IsNull(self.clone()))
    }
}

impl<V: Into<Value>> From<V> for FutureValue {
    /// A value that is known.
    fn from(value: V) -> FutureValue {
        FutureValue::new(Node::Constant(value.into()))
    }
}

impl From<&FutureValue> for FutureValue {
    /// A copy of the value.
    fn from(value: &FutureValue) -> FutureValue {
        value.clone()
    }
}

macro_rules! arithmetic {
    ($($trait:ident, $method:ident, $operator:ident;)*) => {$(
        impl<T: Into<FutureValue>> $trait<T> for FutureValue {
            type Output = FutureValue;
            fn $method(self, other: T) -> FutureValue {
                self.with(BinaryOperator::$operator, other)
            }
        }
        impl<T: Into<FutureValue>> $trait<T> for &FutureValue {
            type Output = FutureValue;
            fn $method(self, other: T) -> FutureValue {
                self.with(BinaryOperator::$operator, other)
            }
        }
    )*};
}
arithmetic! {
    Add, add, Add;
    Sub, sub, Subtract;
    Mul, mul, Multiply;
    Div, div, Divide;
    Rem, rem, Modulo;
}

impl Neg for FutureValue {
    type Output = FutureValue;
    fn neg(self) -> FutureValue {
        FutureValue::new(Node::Negate(self))
    }
}
