//! Arrays as lists of a program.

use super::bound::Bound;
use super::stop::{Bind, beyond};
use super::tree;
use fabius_program::syntax::tree::{Expression, ExpressionKind};
use fabius_sql_meaning::sql_type::SqlType;

/// An array as a list of the program.
#[derive(Clone, Debug)]
pub(crate) struct List {
    /// The program's variable.
    pub(crate) name: String,
    /// What its elements are.
    pub(crate) element: SqlType,
}

impl List {
    /// The list that a value is.
    pub(crate) fn of(bound: &Bound) -> Bind<List> {
        match (&bound.sql_type, &bound.expression.kind) {
            (SqlType::Array(element), ExpressionKind::Variable(name)) => {
                Ok(List { name: name.clone(), element: (**element).clone() })
            }
            (SqlType::Array(_), _) => beyond("an array that is computed"),
            _ => beyond("what is not an array"),
        }
    }

    pub(super) fn array(&self) -> SqlType {
        SqlType::Array(Box::new(self.element.clone()))
    }

    pub(super) fn bound(&self) -> Bound {
        let data_type = super::held::held(&self.element);
        Bound::held_as(tree::variable(&self.name), self.array(), false, data_type)
    }

    /// An element by its place, from 1; null where there is none.
    pub(super) fn at(&self, index: Expression) -> Bound {
        let element = ExpressionKind::Element { list: tree::name(&self.name), index: Box::new(index) };
        Bound::computed(tree::expression(element), self.element.clone(), true)
    }

    /// How many elements there are, a `bigint`.
    pub(super) fn count(&self) -> Expression {
        tree::call("count", vec![tree::variable(&self.name)])
    }
}
