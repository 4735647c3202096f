//! Lists, which are arrays of SQL without nulls.

use super::class::Class;
use super::hint;
use super::lowering::{Lowering, variable};
use super::value::{self, Value, cast, nested};
use fabius_program::syntax::diagnostic::Span;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{Loop, LoopKind, Query, StatementKind as Kind};
use fabius_sql_syntax::python::tree::{Expression, ExpressionKind, Order, Statement};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{self, Expr};

impl Lowering<'_> {
    /// A list's name, and the class of its elements.
    fn list(&self, list: &Expression) -> Result<(String, Class)> {
        if let ExpressionKind::Name(name) = &list.kind {
            match self.variables.get(name) {
                Some(Class::List(element)) => {
                    self.require_assigned(name, list.span)?;
                    return Ok((name.clone(), (**element).clone()));
                }
                Some(Class::Pending) => return Ok((name.clone(), Class::Pending)),
                _ => {}
            }
        }
        let what = "elements of anything but a list";
        self.refused(list.span, what, "use a list, or rows of a table")
    }

    /// What is not known before all that is added to it has been seen: an empty list, or 0.
    pub(super) fn open(&self, name: &str, usual: &Class) -> Class {
        match self.known.get(name) {
            Some(class) if !class.is_pending() => class.clone(),
            _ if self.is_last => usual.clone(),
            _ => match usual {
                Class::List(_) => Class::List(Box::new(Class::Pending)),
                _ => Class::Pending,
            },
        }
    }

    /// `name = []`, or `name = 0` of a class that is seen later.
    pub(super) fn assign_open(&mut self, name: &str, is_list: bool, span: Span) -> Result<Kind> {
        // A list that nothing is put into is of what the function gives, or of anything.
        let usual = match (is_list, self.returns) {
            (true, [returns @ SqlType::Array(_)]) => self.class_of_result(0, returns),
            (true, _) => Class::List(Box::new(Class::Whole)),
            (false, _) => Class::Whole,
        };
        let class = self.open(name, &usual);
        let is_number = matches!(class, Class::Whole | Class::Float | Class::Decimal | Class::Pending);
        if !is_list && !is_number {
            let what = format!("a name that is int and {}", class.name());
            return self.refused(span, &what, "begin with a value of its class: sum(xs, start)");
        }
        let text = if is_list { "{}" } else { "0" };
        let tree = cast(value::text(text), &class.sql_type())?;
        let begun = Value::of(tree, class, span);
        self.assign(name, begun, span)
    }

    /// The class of elements once one of a class is among them.
    fn grown(&mut self, name: &str, element: Class, value: &Value) -> Result<Class> {
        let class = if element.is_pending() { value.class.clone() } else { element };
        if value.is_nullable {
            return self.refused(value.span, "None in a list", "test for it before");
        }
        if !value.class.is_pending() && class != value.class {
            let what = format!("{} in a list of {}", value.class.name(), class.name());
            let instead = hint::conversion(self.text_of(value.span), &value.class, &class);
            return self.refused(value.span, &what, &instead);
        }
        if let Class::List(_) | Class::None = class {
            let what = format!("{} in a list", class.name());
            return self.refused(value.span, &what, "keep one value in an element");
        }
        self.variables.insert(name.to_string(), Class::List(Box::new(class.clone())));
        Ok(class)
    }

    /// `list.append(value)`
    pub(super) fn append(&mut self, list: &Expression, value: &Expression, span: Span) -> Result<Kind> {
        let (name, element) = self.list(list)?;
        let value = self.value(value)?;
        let class = self.grown(&name, element, &value)?;
        let value = cast(value.tree, &class.sql_type())?;
        let own = Expr::Identifier(part::quoted(&variable(&name)));
        let longer = value::function("array_append", vec![own, value]);
        Ok(Kind::Assign { target: self.path(variable(&name), span), value: self.written(longer, span) })
    }

    /// `list[place] = value`
    pub(super) fn set_element(
        &mut self,
        (list, place): (&Expression, &Expression),
        value: &Expression,
        span: Span,
    ) -> Result<Kind> {
        let (name, element) = self.list(list)?;
        let place = self.value(place)?;
        let value = self.value(value)?;
        let class = self.grown(&name, element, &value)?;
        let value = cast(value.tree, &class.sql_type())?;
        Ok(Kind::AssignElement {
            target: self.path(variable(&name), span),
            index: self.written(from_one(place.tree), span),
            value: self.written(value, span),
        })
    }

    /// `list[place]`
    pub(super) fn element(&mut self, list: &Expression, place: &Expression, span: Span) -> Result<Value> {
        let (name, class) = self.list(list)?;
        let place = self.value(place)?;
        let mut tree = Tokens::of("x[1]")?.read(|parser| parser.parse_expr())?;
        if let Expr::CompoundFieldAccess { root, access_chain } = &mut tree {
            **root = Expr::Identifier(part::quoted(&variable(&name)));
            let index = from_one(place.tree);
            *access_chain = vec![ast::AccessExpr::Subscript(ast::Subscript::Index { index })];
        }
        // The place is there.
        Ok(Value { can_fail: place.can_fail, ..Value::of(tree, class, span) })
    }

    /// `for name in list`
    pub(super) fn elements(
        &mut self,
        (name, list): (&str, &Expression),
        order: Option<Order>,
        body: &[Statement],
        span: Span,
    ) -> Result<Kind> {
        let (list, class) = self.list(list)?;
        let before = self.assigned.clone();
        let element = Value::of(Expr::value(ast::Value::Null), class, span);
        self.assign(name, element, span)?;
        let body = self.repeated(body)?;
        self.assigned = before;
        let target = self.path(variable(name), span);
        let own = Expr::Identifier(part::quoted(&variable(&list)));
        let kind = match order {
            None => LoopKind::Array { target, array: self.written(own, span) },
            Some(order) => {
                let descending = if order == Order::Downwards { " DESC" } else { "" };
                let text = format!("SELECT e FROM unnest({own}) AS e ORDER BY e{descending}");
                let tree = ast::Statement::Query(Box::new(part::query(&text)?));
                LoopKind::Query { targets: vec![target], query: Query { tree: Box::new(tree), span } }
            }
        };
        Ok(Kind::Loop(Loop { label: None, kind, body }))
    }
}

/// A place from 0 as one from 1.
fn from_one(place: Expr) -> Expr {
    let number = part::binary(nested(place), ast::BinaryOperator::Plus, value::number("1"));
    cast(nested(number.clone()), &SqlType::Int).unwrap_or(number)
}
