//! Conditions taken apart: what each needs, and which of them a key or an index can answer.

use super::binder::Binder;
use super::operator::exchanged;
use super::scope::{Names, Relation, Scope};
use fabius_sql_meaning::analysis::{operands, row_of};
use fabius_sql_meaning::catalog::{column_path, folded};
use fabius_sql_syntax::part;
use sqlparser::ast::{self, BinaryOperator as B, Expr, SetExpr, TableFactor};
use std::ops::ControlFlow;

/// One of the conditions that all have to hold.
#[derive(Clone, Debug)]
pub(super) struct Condition {
    pub(super) expression: Expr,
    /// The relations of the innermost scope that it mentions, a bit for each.
    pub(super) uses: u64,
    /// Whether it has a subquery in it.
    pub(super) has_subquery: bool,
    /// Whether a key or range answers it already.
    pub(super) is_met: bool,
    /// Whether a subquery in it turned out to be about rows that are not reached yet.
    pub(super) comes_late: bool,
}

/// What a condition says of one column, with the other side.
#[derive(Clone, Debug)]
pub(super) struct Comparison {
    /// Which condition says it.
    pub(super) condition: usize,
    /// The column's place in its relation.
    pub(super) column: usize,
    pub(super) operator: B,
    /// What the column is compared with.
    pub(super) value: Expr,
}

/// `(a, b) IN ((1, 2), ...)`, `a = ANY ($1)`, `a IN (SELECT ...)`: columns that take one of several values.
#[derive(Clone, Debug)]
pub(super) struct Membership {
    pub(super) condition: usize,
    pub(super) columns: Vec<usize>,
    pub(super) values: Members,
}

/// The values of a [`Membership`].
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few, and they live briefly")]
pub(super) enum Members {
    /// One row of values after the other.
    Rows(Vec<Vec<Expr>>),
    /// The elements of an array.
    Array(Expr),
    /// The rows of a query, which may turn out not to serve.
    Query(Box<ast::Query>),
}

/// The parts of `a AND b AND c`.
pub(super) fn conjuncts<'e>(expression: &'e Expr, parts: &mut Vec<&'e Expr>) {
    match expression {
        Expr::BinaryOp { left, op: B::And, right } => {
            conjuncts(left, parts);
            conjuncts(right, parts);
        }
        Expr::Nested(inner) => conjuncts(inner, parts),
        other => parts.push(other),
    }
}

/// The relations that an expression mentions, a bit for each; names in subqueries count too.
pub(super) fn uses(expression: &Expr, names: &Names) -> u64 {
    let mut mask = 0;
    let _ = ast::visit_expressions(expression, |part: &Expr| {
        let path = column_path(part).unwrap_or_default();
        names.candidates(&path).into_iter().for_each(|(relation, _)| mask |= 1 << relation);
        ControlFlow::<()>::Continue(())
    });
    mask
}

/// An expression and its parts, subqueries included, but nothing within these.
pub(super) fn each_outside_queries(expression: &Expr, act: &mut dyn FnMut(&Expr)) {
    struct Parts<'f> {
        depth: usize,
        act: &'f mut dyn FnMut(&Expr),
    }
    impl ast::Visitor for Parts<'_> {
        type Break = ();
        fn pre_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            self.depth += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &ast::Query) -> ControlFlow<()> {
            self.depth -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
            if self.depth == 0 {
                (self.act)(expression);
            }
            ControlFlow::Continue(())
        }
    }
    let _ = ast::Visit::visit(expression, &mut Parts { depth: 0, act });
}

/// Whether an expression has a subquery in it.
pub(super) fn has_subquery(expression: &Expr) -> bool {
    ast::visit_expressions(expression, |part: &Expr| match part {
        Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    })
    .is_break()
}

/// The conditions of a `WHERE` or `ON`.
pub(super) fn conditions(expression: Option<&Expr>, names: &Names) -> Vec<Condition> {
    let mut parts = Vec::new();
    if let Some(expression) = expression {
        conjuncts(expression, &mut parts);
    }
    let condition = |part: &Expr| Condition {
        expression: part.clone(),
        uses: uses(part, names),
        has_subquery: has_subquery(part),
        is_met: false,
        comes_late: false,
    };
    parts.into_iter().map(condition).collect()
}

/// The column of the relation at a place that an expression is.
fn column_of(expression: &Expr, at: usize, names: &Names) -> Option<usize> {
    if let Expr::Nested(inner) = expression {
        return column_of(inner, at, names);
    }
    match names.candidates(&column_path(expression)?).as_slice() {
        [(relation, column)] if *relation == at => Some(*column),
        _ => None,
    }
}

/// What conditions say of columns of one relation, once `reached` relations are at hand.
pub(super) struct Says {
    pub(super) comparisons: Vec<Comparison>,
    pub(super) memberships: Vec<Membership>,
}

impl Binder<'_> {
    /// What the conditions say of the columns of the relation at `at`.
    pub(super) fn says(&self, at: usize, conditions: &[Condition], reached: u64) -> Says {
        let mut says = Says { comparisons: Vec::new(), memberships: Vec::new() };
        for (number, condition) in conditions.iter().enumerate() {
            if condition.is_met
                || condition.uses & (1 << at) == 0
                || condition.uses & !(reached | 1 << at) != 0
            {
                continue;
            }
            self.collect((number, condition.comes_late), &condition.expression, at, reached, &mut says);
        }
        // A list that is computed is computed once, and nothing but literals and parameters has one before.
        let may_compute = self.may_compute_lists();
        says.memberships.retain(|list| match list.values {
            Members::Rows(_) | Members::Array(_) => self.lifts || may_compute,
            Members::Query(_) => may_compute,
        });
        says
    }

    /// Whether lists of keys can be computed before anything is looped over.
    fn may_compute_lists(&self) -> bool {
        self.scopes.last().is_some_and(|scope| scope.relations.len() == 1) && !self.is_in_loop()
    }

    fn collect(
        &self,
        (condition, comes_late): (usize, bool),
        expression: &Expr,
        at: usize,
        reached: u64,
        says: &mut Says,
    ) {
        let Some(Scope { names, .. }) = self.scopes.last() else { return };
        let column = |expression: &Expr| column_of(expression, at, names);
        let may_compute = self.may_compute_lists();
        // What names in subqueries mean is found out when these are asked.
        let at_hand = |expression: &Expr| match has_subquery(expression) {
            true => !comes_late && (may_compute || uses(expression, names) & !reached == 0),
            false => uses(expression, names) & !reached == 0,
        };
        // Lists that are parameters are made before the program runs.
        let may_be_listed = |value: &Expr| is_given(value) || !self.lifts && at_hand(value);
        let mut compare = |column: usize, operator: B, value: &Expr| {
            says.comparisons.push(Comparison { condition, column, operator, value: value.clone() });
        };
        if let Some((columns, query)) = self.asked(expression, &column) {
            if !comes_late {
                let values = Members::Query(Box::new(query));
                says.memberships.push(Membership { condition, columns, values });
            }
            return;
        }
        match expression {
            Expr::BinaryOp { left, op: op @ (B::Eq | B::Lt | B::LtEq | B::Gt | B::GtEq), right } => {
                if let (Some(left), Some(right), B::Eq) = (row_of(left), row_of(right), op) {
                    let pairs = || left.iter().zip(right);
                    let all = pairs().all(|(left, right)| column(left).is_some() && at_hand(right));
                    if left.len() == right.len() && all {
                        for (left, right) in pairs() {
                            if let Some(column) = column(left) {
                                compare(column, B::Eq, right);
                            }
                        }
                    }
                    return;
                }
                if let Some(column) = column(left).filter(|_| at_hand(right)) {
                    compare(column, op.clone(), right);
                } else if let Some(column) = column(right).filter(|_| at_hand(left)) {
                    compare(column, exchanged(op), left);
                }
            }
            Expr::Between { expr, negated: false, low, high } => {
                if let Some(column) = column(expr).filter(|_| at_hand(low) && at_hand(high)) {
                    compare(column, B::GtEq, low);
                    compare(column, B::LtEq, high);
                }
            }
            Expr::IsTrue(inner) => self.collect((condition, comes_late), inner, at, reached, says),
            Expr::InList { expr, list, negated: false } => {
                if let Some(fields) = row_of(expr) {
                    let columns: Option<Vec<usize>> = fields.iter().map(column).collect();
                    let rows: Option<Vec<Vec<Expr>>> =
                        list.iter().map(|item| row_of(item).map(<[Expr]>::to_vec)).collect();
                    if let (Some(columns), Some(rows)) = (columns, rows)
                        && rows.iter().all(|row| row.len() == columns.len() && row.iter().all(may_be_listed))
                    {
                        says.memberships.push(Membership { condition, columns, values: Members::Rows(rows) });
                    }
                } else if let (Some(column), [only]) = (column(expr), list.as_slice())
                    && at_hand(only)
                {
                    compare(column, B::Eq, only);
                } else if let Some(column) = column(expr)
                    && list.iter().all(may_be_listed)
                {
                    let rows = list.iter().map(|item| vec![item.clone()]).collect();
                    says.memberships.push(Membership {
                        condition,
                        columns: vec![column],
                        values: Members::Rows(rows),
                    });
                }
            }
            Expr::AnyOp { left, compare_op: B::Eq, right, .. } => {
                if let Some(column) = column(left) {
                    let values = match &**right {
                        Expr::Array(array) if array.elem.iter().all(is_given) => {
                            Members::Rows(array.elem.iter().map(|item| vec![item.clone()]).collect())
                        }
                        other if is_given(other) || at_hand(other) => Members::Array(other.clone()),
                        _ => return,
                    };
                    says.memberships.push(Membership { condition, columns: vec![column], values });
                }
            }
            Expr::BinaryOp { op: B::Or, .. } => {
                if let Some((columns, rows)) = alternatives(expression, &column) {
                    says.memberships.push(Membership { condition, columns, values: Members::Rows(rows) });
                }
            }
            Expr::Nested(inner) => self.collect((condition, comes_late), inner, at, reached, says),
            _ => {}
        }
    }
}

impl Binder<'_> {
    /// The columns that are among what a query gives, if an expression says that, and the query.
    fn asked(
        &self,
        expression: &Expr,
        column: &impl Fn(&Expr) -> Option<usize>,
    ) -> Option<(Vec<usize>, ast::Query)> {
        let (left, query) = match expression {
            Expr::InSubquery { expr, subquery, negated: false } => (expr, &**subquery),
            Expr::AnyOp { left, compare_op: B::Eq, right, .. } if let Expr::Subquery(query) = &**right => {
                (left, &**query)
            }
            Expr::Exists { subquery, negated: false } => {
                let SetExpr::Select(select) = &*subquery.body else { return None };
                return self.has_row_for_each(select).then(|| as_membership(subquery, select, column))?;
            }
            _ => return None,
        };
        let columns: Option<Vec<usize>> = operands(left).iter().map(column).collect();
        Some((columns?, query.clone()))
    }
}

/// Whether the value is known before the program runs: a literal, a parameter, or a cast of one.
pub(super) fn is_given(expression: &Expr) -> bool {
    match expression {
        Expr::Value(_) | Expr::TypedString(_) => true,
        Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => is_given(inner),
        Expr::UnaryOp { op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus, expr } => is_given(expr),
        _ => false,
    }
}

/// What `EXISTS (query)` says as an `IN`: the columns of a relation that the query compares with something, and the
/// query that gives this. `column` says which of its columns an expression is.
///
/// Names without a relation may be those of the query's own tables, and are left as they are.
fn as_membership(
    query: &ast::Query,
    select: &ast::Select,
    column: impl Fn(&Expr) -> Option<usize>,
) -> Option<(Vec<usize>, ast::Query)> {
    if query.limit_clause.is_some() || query.fetch.is_some() || select.having.is_some() {
        return None;
    }
    let mut own = Vec::new();
    for item in &select.from {
        let joined = item.joins.iter().map(|join| &join.relation);
        for factor in std::iter::once(&item.relation).chain(joined) {
            let TableFactor::Table { name, alias, args: None, .. } = factor else { return None };
            let last = name.0.last().and_then(ast::ObjectNamePart::as_ident);
            own.push(folded(alias.as_ref().map(|alias| &alias.name).or(last)?));
        }
    }
    let of_relation = |expression: &Expr| {
        let path = column_path(expression).filter(|path| path.len() > 1)?;
        let relation = &path[path.len() - 2];
        if own.contains(relation) { None } else { column(expression) }
    };
    let (mut parts, mut rest) = (Vec::new(), Vec::new());
    conjuncts(select.selection.as_ref()?, &mut parts);
    let (mut columns, mut values) = (Vec::new(), Vec::new());
    for part in parts {
        let compared = match part {
            Expr::BinaryOp { left, op: B::Eq, right } => of_relation(left)
                .map(|column| (column, right))
                .or_else(|| of_relation(right).map(|column| (column, left))),
            _ => None,
        };
        match compared {
            Some((column, value)) if !columns.contains(&column) => {
                columns.push(column);
                values.push(ast::SelectItem::UnnamedExpr((**value).clone()));
            }
            _ => rest.push(part.clone()),
        }
    }
    if columns.is_empty() {
        return None;
    }
    let mut query = query.clone();
    query.order_by = None;
    let SetExpr::Select(select) = &mut *query.body else { return None };
    select.distinct = None;
    select.projection = values;
    select.selection = rest.into_iter().reduce(|all, one| part::binary(all, B::And, one));
    Some((columns, query))
}

type Alternatives = (Vec<usize>, Vec<Vec<Expr>>);

/// `a = 1 AND b = 2 OR a = 3 AND b = 4`: the columns and the rows of values.
fn alternatives(expression: &Expr, column: &impl Fn(&Expr) -> Option<usize>) -> Option<Alternatives> {
    match expression {
        Expr::Nested(inner) => alternatives(inner, column),
        Expr::BinaryOp { left, op: B::Or, right } => {
            let (columns, mut rows) = alternatives(left, column)?;
            let (others, more) = alternatives(right, column)?;
            let places: Option<Vec<usize>> =
                columns.iter().map(|column| others.iter().position(|other| other == column)).collect();
            let places = places.filter(|_| columns.len() == others.len())?;
            rows.extend(more.iter().map(|row| places.iter().map(|at| row[*at].clone()).collect()));
            Some((columns, rows))
        }
        Expr::InList { expr, list, negated: false } => {
            let column = column(expr)?;
            list.iter()
                .all(is_given)
                .then(|| (vec![column], list.iter().map(|item| vec![item.clone()]).collect()))
        }
        _ => {
            let mut parts = Vec::new();
            conjuncts(expression, &mut parts);
            let (mut columns, mut values) = (Vec::new(), Vec::new());
            for part in parts {
                let Expr::BinaryOp { left, op: B::Eq, right } = part else { return None };
                let (found, value) = match (column(left), column(right)) {
                    (Some(found), _) if is_given(right) => (found, right),
                    (_, Some(found)) if is_given(left) => (found, left),
                    _ => return None,
                };
                if columns.contains(&found) {
                    return None;
                }
                columns.push(found);
                values.push((**value).clone());
            }
            Some((columns, vec![values]))
        }
    }
}

/// The columns of a relation that an expression names.
pub(super) fn columns_used(expression: &Expr, relation: &Relation) -> Vec<usize> {
    let mut columns = Vec::new();
    let _ = ast::visit_expressions(expression, |part: &Expr| {
        let name = match part {
            Expr::Identifier(name) => Some(folded(name)),
            Expr::CompoundIdentifier(parts) => parts.last().map(folded),
            _ => None,
        };
        let place = |name: String| relation.columns.iter().position(|(column, _)| *column == name);
        columns.extend(name.and_then(place));
        ControlFlow::<()>::Continue(())
    });
    columns
}
