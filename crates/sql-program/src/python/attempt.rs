//! `try`: a block that exceptions of some classes end, and what follows for each of them.
//!
//! ```text
//! try:                             <<try 1>> BEGIN body END          a raise of A within it, or within what it calls:
//!     body                         IF caught 1 THEN handler              caught 1 := true; EXIT try 1
//! except A: handler                ELSE otherwise
//! else: otherwise                  END IF
//! ```
//!
//! As in Python, what the body has done until then stays done, and `raise` within a handler raises once more what it
//! has caught, with the detail that this had.

use super::body::leaves;
use super::class::Class;
use super::lowering::{Handling, Lowering, NO_DATA, variable};
use super::message::{ABORTED, RAISED, ROW_NOT_FOUND};
use super::presence::binds;
use super::value::{self, Value, text};
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::Name;
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{
    Block, Catch, Level, RaiseOption, Statement as Done, StatementKind as Kind,
};
use fabius_sql_syntax::python::tree::{Handler, Try};
use fabius_value::Result;
use sqlparser::ast::{BinaryOperator, Expr};
use std::collections::BTreeSet;

/// Names that have a value, and what is not `None`.
type Known = (BTreeSet<String>, BTreeSet<String>);

impl Lowering<'_> {
    /// `try: body except A: handler else: otherwise`
    pub(super) fn tried(&mut self, tried: &Try, span: Span, done: &mut Vec<Done>) -> Result<()> {
        self.tries += 1;
        let label = format!("try {}", self.tries);
        let caught_of = |what: &str| format!("{label} {what}");
        let caught = ["message", "class", "detail"].map(caught_of);
        self.variables.extend(caught.iter().map(|name| (name.clone(), Class::Text)));
        self.nullable.extend(caught.iter().cloned());
        let mut catches = Vec::new();
        let [message, class, detail] = &caught;
        for (number, handler) in tried.handlers.iter().enumerate() {
            let caught = caught_of(&format!("caught {}", number + 1));
            let never = Value::of(value::boolean(false), Class::Boolean, span);
            done.push(Done { kind: self.assign(&caught, never, span)?, span });
            catches.push(Catch {
                classes: handler.classes.clone(),
                caught: self.path(variable(&caught), span),
                message: self.path(variable(message), span),
                again: handler
                    .is_reraised
                    .then(|| (self.path(variable(class), span), self.path(variable(detail), span))),
            });
        }
        let before = (self.assigned.clone(), self.present.clone());
        let body = self.block(&tried.body)?;
        let body_leaves = leaves(&body);
        let otherwise = self.block(&tried.otherwise)?;
        let ends =
            (!body_leaves && !leaves(&otherwise)).then(|| (self.assigned.clone(), self.present.clone()));
        // What a handler begins with: the body may have come to any of its statements.
        (self.assigned, self.present) = before;
        self.forget_assigned(&tried.body);
        let rows = self.rows.keys().filter(|row| binds(&tried.body, row)).cloned().collect::<Vec<_>>();
        self.assigned.retain(|name| !rows.contains(name));
        let (arms, ends) = self.handlers(tried, &catches, &caught, (ends, span))?;
        let name = Name { text: label, span };
        let block =
            Block { label: Some(name), declarations: Vec::new(), begin: span, statements: body, catches };
        done.push(Done { kind: Kind::Block(block), span });
        let otherwise = if body_leaves { None } else { Some(otherwise) };
        done.extend(chosen(arms, otherwise, span));
        // Behind it is known what is known wherever it ends.
        let both = |(one, two): Known, (assigned, present): Known| (&one & &assigned, &two & &present);
        if let Some((assigned, present)) = ends.into_iter().reduce(both) {
            (self.assigned, self.present) = (assigned, present);
        }
        Ok(())
    }

    /// What is done for each handler, with the condition for it, and what is known where it, or something before, ends.
    fn handlers(
        &mut self,
        tried: &Try,
        catches: &[Catch],
        caught: &[String; 3],
        (ends, span): (Option<Known>, Span),
    ) -> Result<(Vec<Arm>, Vec<Known>)> {
        let begin = (self.assigned.clone(), self.present.clone());
        let (mut arms, mut ends) = (Vec::new(), Vec::from_iter(ends));
        for (Handler { classes, name, body, .. }, catch) in tried.handlers.iter().zip(catches) {
            (self.assigned, self.present) = begin.clone();
            let mut handler = Vec::new();
            if let Some(name) = name {
                let told = Value::of(quoted(&variable(&caught[0])), Class::Text, span);
                handler.push(Done { kind: self.assign(name, told, span)?, span });
            }
            self.handling.push(Handling { classes: classes.clone(), caught: caught.clone() });
            let lowered = self.block(body);
            self.handling.pop();
            handler.extend(lowered?);
            // The exception's name has no value behind its handler.
            self.assigned.retain(|assigned| Some(assigned) != name.as_ref());
            if !leaves(&handler) {
                ends.push((self.assigned.clone(), self.present.clone()));
            }
            let caught = catch.caught.parts.iter().map(|part| quoted(part)).next();
            let caught = caught.unwrap_or_else(|| value::boolean(false));
            arms.push((self.written(caught, span), handler));
        }
        Ok((arms, ends))
    }

    /// `raise` of what has been caught
    pub(super) fn reraise(&self, depth: usize, span: Span) -> Result<Kind> {
        let Some(Handling { classes, caught }) = self.handling.iter().nth_back(depth) else {
            return self.refused(span, "raise outside of a handler", "name what is raised");
        };
        let [message, class, detail] = caught.each_ref().map(|name| quoted(&variable(name)));
        let raised = |one: &str| {
            let state = (RaiseOption::State, self.written(text(state_of(one)), span));
            let detail = (RaiseOption::Detail, self.written(detail.clone(), span));
            self.raising((Level::Exception, Some(one.into())), message.clone(), vec![state, detail], span)
        };
        // A handler for what nothing raises is never come to.
        let Some((last, others)) = classes.split_last() else { return Ok(raised(RAISED)) };
        let last = raised(last);
        if others.is_empty() {
            return Ok(last);
        }
        let arm = |one: &String| {
            let is_of = part::binary(class.clone(), BinaryOperator::Eq, text(one));
            (self.written(is_of, span), vec![Done { kind: raised(one), span }])
        };
        let arms = others.iter().map(arm).collect();
        Ok(Kind::If { arms, otherwise: Some(vec![Done { kind: last, span }]) })
    }
}

/// The SQLSTATE of an exception of a class.
fn state_of(class: &str) -> &'static str {
    match class {
        ABORTED => "P0001",
        ROW_NOT_FOUND => NO_DATA,
        _ => RAISED,
    }
}

/// A condition, and what is done if it holds.
type Arm = (fabius_sql_syntax::plpgsql::tree::Expression, Vec<Done>);

/// The handler of what was caught, or what follows else; without that, one of the handlers it is.
fn chosen(mut arms: Vec<Arm>, otherwise: Option<Vec<Done>>, span: Span) -> Vec<Done> {
    let last = match otherwise {
        Some(otherwise) => otherwise,
        None => arms.pop().map(|(_, handler)| handler).unwrap_or_default(),
    };
    if arms.is_empty() {
        return last;
    }
    let otherwise = (!last.is_empty()).then_some(last);
    vec![Done { kind: Kind::If { arms, otherwise }, span }]
}

fn quoted(name: &str) -> Expr {
    Expr::Identifier(part::quoted(name))
}
