//! What bodies assign to, and loops that count: `WHILE i <= n LOOP ... i := i + 1; END LOOP`.

use super::assignment::path_of;
use fabius_sql_syntax::plpgsql::tree::{Expression, Loop, LoopKind, Path, Statement, StatementKind};
use sqlparser::ast::{self, BinaryOperator, Expr};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Does something for every statement, those within others included.
pub fn walk(statements: &[Statement], act: &mut dyn FnMut(&Statement)) {
    for statement in statements {
        act(statement);
        match &statement.kind {
            StatementKind::Block(block) => walk(&block.statements, act),
            StatementKind::If { arms, otherwise } => {
                arms.iter().for_each(|(_, body)| walk(body, act));
                otherwise.iter().for_each(|body| walk(body, act));
            }
            StatementKind::Case { arms, otherwise, .. } => {
                arms.iter().for_each(|(_, body)| walk(body, act));
                otherwise.iter().for_each(|body| walk(body, act));
            }
            StatementKind::Loop(repeat) => walk(&repeat.body, act),
            _ => {}
        }
    }
}

/// Names that statements assign to: the first parts of their paths, and the last.
pub fn assigned_names(statements: &[Statement]) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    walk(statements, &mut |statement| {
        for path in targets(&statement.kind) {
            names.extend(path.parts.first().cloned());
            names.extend(path.parts.last().cloned());
        }
        if let StatementKind::Call(call) = &statement.kind
            && let ast::FunctionArguments::List(list) = &call.args
        {
            for argument in &list.args {
                if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value))
                | ast::FunctionArg::Named { arg: ast::FunctionArgExpr::Expr(value), .. } = argument
                {
                    names.extend(path_of(value).into_iter().flatten());
                }
            }
        }
    });
    names
}

fn targets(statement: &StatementKind) -> Vec<&Path> {
    match statement {
        StatementKind::Assign { target, .. } | StatementKind::AssignElement { target, .. } => vec![target],
        StatementKind::Sql { into: Some(into), .. } => into.targets.iter().collect(),
        StatementKind::RowCount(targets) => targets.iter().collect(),
        StatementKind::Block(block) => {
            let again = block.catches.iter().filter_map(|catch| catch.again.as_ref());
            let again = again.flat_map(|(class, detail)| [class, detail]);
            block.catches.iter().flat_map(|catch| [&catch.caught, &catch.message]).chain(again).collect()
        }
        StatementKind::Loop(Loop { kind: LoopKind::Query { targets, .. }, .. }) => targets.iter().collect(),
        StatementKind::Loop(Loop { kind: LoopKind::Array { target, .. }, .. }) => vec![target],
        _ => Vec::new(),
    }
}

/// A loop whose number of turns is known when it begins.
pub struct Counting {
    /// The variable that counts.
    pub variable: String,
    /// What is added to it each turn.
    pub step: i64,
    /// How it is compared.
    pub operator: BinaryOperator,
    /// What it is compared with.
    pub limit: Expr,
    /// Whether a turn comes before the first comparison.
    pub runs_once: bool,
    /// Which statements of the body remain.
    pub body: std::ops::Range<usize>,
}

/// Recognises a loop that counts.
pub fn counting(repeat: &Loop) -> Option<Counting> {
    let body = &repeat.body;
    let is_exit = |statement: &Statement| -> Option<Expression> {
        match &statement.kind {
            StatementKind::Leave { is_continue: false, label, when: Some(condition) }
                if label.is_none()
                    || label.as_ref().map(|l| &l.text) == repeat.label.as_ref().map(|l| &l.text) =>
            {
                Some(condition.clone())
            }
            _ => None,
        }
    };
    let (condition, negated, runs_once, range) = match &repeat.kind {
        LoopKind::While(condition) => (condition.clone(), false, false, 0..body.len()),
        LoopKind::Forever => match (body.first().and_then(is_exit), body.last().and_then(is_exit)) {
            (Some(condition), _) => (condition, true, false, 1..body.len()),
            (None, Some(condition)) => (condition, true, true, 0..body.len() - 1),
            _ => return None,
        },
        _ => return None,
    };
    let inner = body.get(range.clone())?;
    let (variable, operator, limit) = comparison(&condition.tree, negated)?;
    let step = match &inner.last()?.kind {
        StatementKind::Assign { target, value } if target.parts == [variable.clone()] => {
            step(&value.tree, &variable)?
        }
        _ => return None,
    };
    let towards = match operator {
        BinaryOperator::Lt | BinaryOperator::LtEq => step > 0,
        BinaryOperator::Gt | BinaryOperator::GtEq => step < 0,
        _ => false,
    };
    let before = &inner[..inner.len() - 1];
    let assigned = assigned_names(before);
    let mut continues = false;
    let mut is_hidden = false;
    walk(before, &mut |statement| match &statement.kind {
        StatementKind::Leave { is_continue: true, .. } => continues = true,
        StatementKind::Block(block) => is_hidden |= !block.declarations.is_empty(),
        _ => {}
    });
    let is_still = names_of(&limit)?.iter().all(|name| *name != variable && !assigned.contains(name));
    if !towards || continues || is_hidden || assigned.contains(&variable) || !is_still {
        return None;
    }
    Some(Counting { variable, step, operator, limit, runs_once, body: range })
}

/// `variable < limit`, or what its opposite is.
fn comparison(tree: &Expr, negated: bool) -> Option<(String, BinaryOperator, Expr)> {
    use BinaryOperator as B;
    let Expr::BinaryOp { left, op, right } = tree else {
        return match tree {
            Expr::Nested(inner) => comparison(inner, negated),
            Expr::UnaryOp { op: ast::UnaryOperator::Not, expr } => comparison(expr, !negated),
            _ => None,
        };
    };
    let exchanged = |op: &B| match op {
        B::Lt => B::Gt,
        B::LtEq => B::GtEq,
        B::Gt => B::Lt,
        B::GtEq => B::LtEq,
        other => other.clone(),
    };
    let opposite = |op: B| match op {
        B::Lt => B::GtEq,
        B::LtEq => B::Gt,
        B::Gt => B::LtEq,
        B::GtEq => B::Lt,
        other => other,
    };
    let one_name = |tree: &Expr| match path_of(tree)?.as_slice() {
        [name] => Some(name.clone()),
        _ => None,
    };
    let constant = |tree: &Expr| names_of(tree).is_some_and(|names| names.is_empty());
    let (name, op, limit) = match (one_name(left), one_name(right)) {
        (Some(name), _) if !constant(left) => (name, op.clone(), (**right).clone()),
        (_, Some(name)) => (name, exchanged(op), (**left).clone()),
        _ => return None,
    };
    Some((name, if negated { opposite(op) } else { op }, limit))
}

/// The constant that is added to the variable.
fn step(tree: &Expr, variable: &str) -> Option<i64> {
    let Expr::BinaryOp { left, op, right } = tree else { return None };
    let number = |tree: &Expr| match tree {
        Expr::Value(value) => match &value.value {
            ast::Value::Number(text, _) => text.parse::<i64>().ok(),
            _ => None,
        },
        _ => None,
    };
    let is_variable = |tree: &Expr| path_of(tree).is_some_and(|path| path == [variable]);
    match op {
        BinaryOperator::Plus if is_variable(left) => number(right),
        BinaryOperator::Plus if is_variable(right) => number(left),
        BinaryOperator::Minus if is_variable(left) => number(right)?.checked_neg(),
        _ => None,
    }
}

/// Names in an expression; `None` if its value may change otherwise: a query, or a call.
fn names_of(tree: &Expr) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let known = ast::visit_expressions(tree, |part| {
        match part {
            Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => {
                return ControlFlow::Break(());
            }
            Expr::Function(call)
                if !matches!(
                    call.name.to_string().to_lowercase().as_str(),
                    "array_length" | "cardinality" | "array_upper" | "least" | "greatest" | "abs" | "length"
                ) =>
            {
                return ControlFlow::Break(());
            }
            part => names.extend(path_of(part).into_iter().flatten()),
        }
        ControlFlow::Continue(())
    });
    known.is_continue().then_some(names)
}
