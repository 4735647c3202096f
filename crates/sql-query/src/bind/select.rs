//! `SELECT`.

use super::plan_part::{apart, row_number};
use super::scope::Selected;
use super::wildcard::column;
use super::window::{require_order, sort_of};
use super::{Binder, Level, Output, Relation, Scope, Typed, folded, parts_of};
use crate::failure::{inbound, unsupported};
use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::utils::{
    conjunction, find_window_exprs, split_conjunction, split_conjunction_owned,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use fabius_sql_meaning::analysis::{
    self, Entry, ListItem, Sense, all_columns, list_item, no_relation, place_of_name,
};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::collections::HashSet;
use std::ops::ControlFlow;

/// A key of `ORDER BY` or `DISTINCT ON`: an entry of the list, or an expression of its own.
#[derive(Clone)]
enum Key {
    Selected(usize),
    Own(Typed),
}

/// Windows of one `SELECT` that differ, at most.
const WINDOWS: usize = 128;

impl Binder<'_> {
    /// A `SELECT`, sorted.
    pub(super) fn select(&mut self, select: &ast::Select, keys: &[ast::OrderByExpr]) -> Result<Relation> {
        refuse(select)?;
        let is_operand = std::mem::take(&mut self.is_operand);
        let is_relation = std::mem::take(&mut self.is_relation);
        let has_whole_rows = std::mem::replace(&mut self.has_whole_rows, has_whole_rows(select));
        let from = self.from(&select.from);
        self.has_whole_rows = has_whole_rows;
        let (mut plan, scope) = from?;
        let mut locked = self.locking.iter().filter_map(|(names, _)| names.as_ref()).flatten();
        if let Some(name) = locked.find(|name| !scope.has_relation(None, name)) {
            let message = format!("relation \"{name}\" in FOR UPDATE clause not found in FROM clause");
            return Err(Error::new(SqlState::UNDEFINED_TABLE, message));
        }
        self.levels.push(Level { scope, windows: select.named_window.clone(), ..Level::default() });
        let result = (|| {
            // Of several things that are wrong, the first of the list is told, as in PostgreSQL.
            self.set_clause(super::reads_written(select).then_some("RETURNING"));
            let selected = self.list(&select.projection)?;
            self.set_clause(None);
            if let Some(selection) = &select.selection {
                self.set_clause(Some("WHERE"));
                let condition = self.truth(selection, "WHERE")?;
                self.set_clause(None);
                for condition in plain_first(condition)? {
                    plan = LogicalPlanBuilder::from(plan)
                        .filter(condition)
                        .and_then(LogicalPlanBuilder::build)
                        .map_err(inbound)?;
                }
            }
            self.select_from(plan, selected, select, keys, (is_operand, is_relation))
        })();
        self.levels.pop();
        result
    }

    pub(super) fn set_clause(&mut self, clause: Option<&'static str>) {
        if let Some(level) = self.levels.last_mut() {
            level.clause = clause;
        }
    }

    /// Aggregates over the rows of the query that is bound, so far.
    pub(super) fn aggregates(&self) -> usize {
        self.levels.last().map_or(0, |level| level.aggregates)
    }

    pub(super) fn scope(&self) -> Scope {
        self.levels.last().map(|level| level.scope.clone()).unwrap_or_default()
    }

    fn select_from(
        &mut self,
        mut plan: LogicalPlan,
        mut selected: Vec<Selected>,
        select: &ast::Select,
        keys: &[ast::OrderByExpr],
        (is_operand, is_relation): (bool, bool),
    ) -> Result<Relation> {
        if !is_operand {
            for entry in &mut selected {
                entry.typed = self.known(entry.typed.clone())?;
            }
        }
        let mut having = match &select.having {
            Some(having) => {
                // A key is asked for its value.
                let sense =
                    if has_asking_key(having, &select.group_by) { Sense::Value } else { Sense::Truth };
                let typed = analysis::expression(self, having, sense)?;
                super::call::refuse_sets([&typed.expr], "HAVING")?;
                Some(analysis::condition(self, typed, "HAVING")?.expr)
            }
            None => None,
        };
        let mut on = Vec::new();
        if let Some(ast::Distinct::On(expressions)) = &select.distinct {
            for expression in expressions {
                on.push(self.key(expression, &selected, "DISTINCT ON")?);
            }
        }
        let mut sorts = Vec::new();
        for key in keys {
            sorts.push((self.key(&key.expr, &selected, "ORDER BY")?, key.options));
        }
        // Grouping.
        let groups = self.groups(&select.group_by, &selected)?;
        let has_aggregate = self.aggregates() > 0;
        if groups.is_some() || has_aggregate || having.is_some() {
            let mut within = self
                .levels
                .last_mut()
                .map_or_else(Vec::new, |level| std::mem::take(&mut level.aggregates_within));
            let is_constant = |part: &Expr| part.column_refs().is_empty();
            let of_having = having.iter().flat_map(split_conjunction);
            let has_constant =
                selected.iter().map(|entry| &entry.typed.expr).chain(of_having).any(is_constant);
            let seen: Vec<Column> = within.iter().map(|(_, column)| column.clone()).collect();
            let mut all: Vec<&mut Expr> = selected.iter_mut().map(|entry| &mut entry.typed.expr).collect();
            all.extend(having.as_mut());
            all.extend(within.iter_mut().map(|(typed, _)| &mut typed.expr));
            for key in on.iter_mut().chain(sorts.iter_mut().map(|(key, _)| key)) {
                if let Key::Own(typed) = key {
                    all.push(&mut typed.expr);
                }
            }
            let groups = groups.unwrap_or_default();
            // A condition stays above groups that are there without rows, and above nulls that stand for all values
            // of a key: it would be asked of the rows that are grouped.
            let has_sets = groups.keys.iter().any(|group| matches!(group, Expr::GroupingSet(_)));
            let is_one = groups.keys.is_empty();
            plan = self.group(plan, groups, all, &seen)?;
            if has_sets || (is_one && (is_relation || has_constant)) {
                plan = apart(plan)?;
            }
            if !within.is_empty() {
                let columns = plan.schema().iter().map(Expr::from).collect::<Vec<_>>();
                let within = within.into_iter().map(|(typed, column)| typed.expr.alias(column.name));
                plan = LogicalPlanBuilder::from(plan)
                    .project(columns.into_iter().chain(within))
                    .and_then(LogicalPlanBuilder::build)
                    .map_err(inbound)?;
            }
        }
        if let Some(having) = having {
            plan = LogicalPlanBuilder::from(plan)
                .filter(having)
                .and_then(LogicalPlanBuilder::build)
                .map_err(inbound)?;
        }
        // Windows.
        let mut all: Vec<&mut Expr> = selected.iter_mut().map(|entry| &mut entry.typed.expr).collect();
        for key in on.iter_mut().chain(sorts.iter_mut().map(|(key, _)| key)) {
            if let Key::Own(typed) = key {
                all.push(&mut typed.expr);
            }
        }
        if !find_window_exprs(all.iter().map(|expr| &**expr)).is_empty() {
            plan = self.with_window_keys(plan, &mut all)?;
            let windows = find_window_exprs(all.iter().map(|expr| &**expr));
            refuse_windows(&windows)?;
            plan = LogicalPlanBuilder::window_plan(plan, windows.clone()).map_err(inbound)?;
            for expr in &mut all {
                replace(expr, &windows)?;
            }
        }
        plan = self.spread_sets(plan, all)?;
        self.finish(plan, select, selected, on, sorts)
    }

    /// Computes what windows are divided and ordered by, and what is computed over them, as columns that they name:
    /// DataFusion tells windows apart by texts that leave casts out.
    fn with_window_keys(&mut self, plan: LogicalPlan, all: &mut [&mut Expr]) -> Result<LogicalPlan> {
        let mut computed: Vec<(Expr, Column)> = Vec::new();
        let mut settle = |key: &mut Expr| {
            if matches!(key, Expr::Column(_) | Expr::Literal(..)) {
                return;
            }
            let known = computed.iter().find(|(known, _)| known == key).map(|(_, column)| column.clone());
            let column = known.unwrap_or_else(|| {
                let column = self.fresh_column();
                computed.push((key.clone(), column.clone()));
                column
            });
            *key = Expr::Column(column);
        };
        for expr in all.iter_mut() {
            let changed = std::mem::take(&mut **expr).transform(|part| {
                Ok(match part {
                    Expr::WindowFunction(mut window) => {
                        window.params.partition_by.iter_mut().for_each(&mut settle);
                        window.params.order_by.iter_mut().for_each(|sort| settle(&mut sort.expr));
                        let arguments = window.params.args.iter_mut();
                        arguments.filter(|value| !value.column_refs().is_empty()).for_each(&mut settle);
                        Transformed::yes(Expr::WindowFunction(window))
                    }
                    other => Transformed::no(other),
                })
            });
            **expr = changed.map_err(inbound)?.data;
        }
        if computed.is_empty() {
            return Ok(plan);
        }
        let columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
        let keys = computed.into_iter().map(|(key, column)| key.alias(column.name));
        LogicalPlanBuilder::from(plan)
            .project(columns.into_iter().chain(keys))
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)
    }

    /// Spreads what set-returning functions in expressions give over rows; columns take their places.
    pub(super) fn spread_sets(
        &mut self,
        plan: LogicalPlan,
        expressions: Vec<&mut Expr>,
    ) -> Result<LogicalPlan> {
        // Those whose arguments have such functions come after these: the rounds, each with its arrays.
        let mut rounds: Vec<Vec<(Column, Expr)>> = Vec::new();
        for expr in expressions {
            let taken = std::mem::take(&mut *expr);
            let changed = taken.transform_up(|expr| {
                Ok(match expr {
                    Expr::Unnest(unnest) => {
                        let array = *unnest.expr;
                        let of_round = |arrays: &Vec<(Column, Expr)>| {
                            arrays.iter().any(|(column, _)| array.column_refs().contains(column))
                        };
                        let round = rounds.iter().rposition(of_round).map_or(0, |before| before + 1);
                        if round == rounds.len() {
                            rounds.push(Vec::new());
                        }
                        let known = rounds[round].iter().find(|(_, known)| *known == array);
                        let column = match known {
                            Some((column, _)) => column.clone(),
                            None => {
                                let column = self.fresh_column();
                                rounds[round].push((column.clone(), array));
                                column
                            }
                        };
                        Transformed::yes(Expr::Column(column))
                    }
                    other => Transformed::no(other),
                })
            });
            *expr = changed.map_err(inbound)?.data;
        }
        rounds.into_iter().try_fold(plan, |plan, arrays| super::plan_part::spread(plan, arrays, false))
    }

    /// Rows once each, of columns of such types.
    fn distinct(&mut self, rows: LogicalPlanBuilder, types: Vec<SqlType>) -> Result<LogicalPlanBuilder> {
        let plan = rows.build().map_err(inbound)?;
        let columns: Vec<_> = plan.schema().columns().into_iter().zip(types).collect();
        LogicalPlanBuilder::from(self.represented(plan, &columns)?).distinct().map_err(inbound)
    }

    /// The list itself, `DISTINCT`, and the order.
    fn finish(
        &mut self,
        plan: LogicalPlan,
        select: &ast::Select,
        selected: Vec<Selected>,
        on: Vec<Key>,
        sorts: Vec<(Key, ast::OrderByOptions)>,
    ) -> Result<Relation> {
        let mut outputs: Vec<Output> = Vec::with_capacity(selected.len());
        let mut expressions: Vec<Expr> = Vec::with_capacity(selected.len());
        let types: Vec<_> = selected.iter().map(|entry| entry.typed.sql_type.clone()).collect();
        for entry in selected {
            let typed = match &entry.typed.expr {
                Expr::Placeholder(_) => self.known(entry.typed)?,
                _ => entry.typed,
            };
            let column = self.fresh_column();
            expressions.push(typed.expr.alias(column.name.clone()));
            outputs.push(Output {
                name: entry.name,
                column,
                sql_type: typed.sql_type,
                flavor: typed.flavor,
                origin: typed.origin,
                is_there: None,
            });
        }
        let visible = expressions.len();
        let place = |binder: &mut Self, key: Key, expressions: &mut Vec<Expr>| -> Result<Typed> {
            Ok(match key {
                Key::Selected(at) => {
                    let typed = outputs.get(at).map(Output::typed).ok_or_else(|| unsupported("a key"))?;
                    binder.sortable(typed)?
                }
                Key::Own(typed) => {
                    let typed = binder.known(typed)?;
                    let typed = binder.sortable(typed)?;
                    let bare = |expr: &Expr| {
                        if let Expr::Alias(alias) = expr { *alias.expr.clone() } else { expr.clone() }
                    };
                    if let Some(at) = expressions.iter().position(|expr| bare(expr) == typed.expr) {
                        let schema_name = match &expressions[at] {
                            Expr::Alias(alias) => alias.name.clone(),
                            _ => String::new(),
                        };
                        let column = Expr::Column(Column::new_unqualified(schema_name));
                        return Ok(Typed { expr: column, ..typed });
                    }
                    let column = binder.fresh_column();
                    expressions.push(typed.expr.alias(column.name.clone()));
                    Typed { expr: Expr::Column(column), ..typed }
                }
            })
        };
        let mut on_expressions = Vec::with_capacity(on.len());
        for key in on {
            on_expressions.push(place(self, key, &mut expressions)?.expr);
        }
        let mut sort_keys: Vec<Sort> = Vec::with_capacity(sorts.len());
        let hidden_before = expressions.len();
        for (key, options) in sorts {
            let key = place(self, key, &mut expressions)?;
            sort_keys.push(sort_of(key, &options));
        }
        let is_distinct = matches!(select.distinct, Some(ast::Distinct::Distinct));
        if is_distinct && expressions.len() > hidden_before {
            return Err(Error::new(
                SqlState(*b"42P10"),
                "for SELECT DISTINCT, ORDER BY expressions must appear in select list",
            ));
        }
        let has_hidden = expressions.len() > visible;
        let mut builder = LogicalPlanBuilder::from(plan).project(expressions).map_err(inbound)?;
        if is_distinct {
            builder = self.distinct(builder, types)?;
        }
        let mut has_number = false;
        if !on_expressions.is_empty() {
            let matches_start =
                sort_keys.iter().take(on_expressions.len()).all(|sort| on_expressions.contains(&sort.expr));
            if !matches_start {
                return Err(Error::new(
                    SqlState(*b"42P10"),
                    "SELECT DISTINCT ON expressions must match initial ORDER BY expressions",
                ));
            }
            builder = self.first_of_each(builder, on_expressions, &sort_keys)?;
            has_number = true;
        }
        if !sort_keys.is_empty() {
            builder = builder.sort(sort_keys).map_err(inbound)?;
        }
        if has_hidden || has_number {
            let columns: Vec<Expr> =
                outputs.iter().map(|output| Expr::Column(output.column.clone())).collect();
            builder = builder.project(columns).map_err(inbound)?;
        }
        let plan = builder.build().map_err(inbound)?;
        Ok(Relation { plan, columns: outputs })
    }

    /// `DISTINCT ON`: of each group the row that sorts first.
    fn first_of_each(
        &mut self,
        builder: LogicalPlanBuilder,
        on: Vec<Expr>,
        sorts: &[Sort],
    ) -> Result<LogicalPlanBuilder> {
        let number = row_number(on, sorts.to_vec());
        let name = number.schema_name().to_string();
        let first = super::operator::plain_binary(
            Expr::Column(Column::new_unqualified(name)),
            datafusion::logical_expr::Operator::Eq,
            Expr::Literal(datafusion::scalar::ScalarValue::UInt64(Some(1)), None),
        );
        builder.window([number]).and_then(|builder| builder.filter(first)).map_err(inbound)
    }

    /// An entry of the list that is computed.
    fn entry(&mut self, name: String, expression: &ast::Expr) -> Result<Selected> {
        let before = self.aggregates();
        let typed = self.expression(expression)?;
        Ok(Selected { name, typed, has_aggregate: self.aggregates() > before })
    }

    fn list(&mut self, items: &[ast::SelectItem]) -> Result<Vec<Selected>> {
        let mut selected = Vec::with_capacity(items.len());
        for item in items {
            match Entry::of(item)? {
                Entry::Computed(name, expression) => selected.push(self.entry(name, expression)?),
                Entry::All(wildcard) => {
                    let scope = self.scope();
                    let shown = all_columns(&scope)?;
                    self.note_wildcard(wildcard, || {
                        shown.iter().map(|(relation, name, _)| column(*relation, name)).collect()
                    });
                    let columns = shown.into_iter();
                    selected
                        .extend(columns.map(|(_, name, typed)| Selected::column(name.to_string(), typed)));
                }
                Entry::AllOf { schema, relation, wildcard, .. } => {
                    let columns = self.columns_of(schema.as_deref(), &relation);
                    let columns = columns.ok_or_else(|| no_relation(&relation))?;
                    self.note_wildcard(wildcard, || {
                        columns.iter().map(|(name, _)| column(Some(&relation), name)).collect()
                    });
                    selected.extend(columns.into_iter().map(|(name, typed)| Selected::column(name, typed)));
                }
            }
        }
        Ok(selected)
    }

    /// A key of `ORDER BY` or `DISTINCT ON`, which has an order.
    fn key(&mut self, expression: &ast::Expr, selected: &[Selected], clause: &str) -> Result<Key> {
        let key = self.unordered_key(expression, selected, clause)?;
        let typed = match &key {
            Key::Selected(at) => selected.get(*at).map(|entry| &entry.typed),
            Key::Own(typed) => Some(typed),
        };
        typed.map_or(Ok(()), |typed| require_order(&typed.sql_type))?;
        Ok(key)
    }

    fn unordered_key(&mut self, expression: &ast::Expr, selected: &[Selected], clause: &str) -> Result<Key> {
        match list_item(expression, selected.len(), clause)? {
            ListItem::Place(at) => return Ok(Key::Selected(at)),
            ListItem::Name(name) => {
                let has_name = |entry: &Selected| entry.name == name;
                let are_same = |one: &Selected, other: &Selected| one.typed.expr == other.typed.expr;
                if let Some(at) = place_of_name(selected, has_name, are_same, (&name, clause))? {
                    return Ok(Key::Selected(at));
                }
            }
            ListItem::Expression => {}
        }
        self.expression(expression).map(Key::Own)
    }
}

/// Conditions of a `WHERE` that are looked at for subqueries, at most.
const CONDITIONS: usize = 100;

/// A condition as one without subqueries, and behind it one with them. Subqueries become joins with all that stands
/// below them; conditions that join the tables of `FROM` have to stand there too, or all pairs of rows are made.
fn plain_first(condition: Expr) -> Result<Vec<Expr>> {
    let parts = split_conjunction_owned(condition.clone());
    if !(2..=CONDITIONS).contains(&parts.len()) {
        return Ok(vec![condition]);
    }
    let (mut plain, mut asking) = (Vec::new(), Vec::new());
    for part in parts {
        let asks = part.exists(|expr| {
            Ok(matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_)))
        });
        if asks.map_err(inbound)? { asking.push(part) } else { plain.push(part) }
    }
    if plain.is_empty() || asking.is_empty() {
        return Ok(vec![condition]);
    }
    Ok([plain, asking].into_iter().filter_map(conjunction).collect())
}

/// What the `FROM` of a `SELECT` names, at any depth.
#[derive(Default)]
struct Named {
    relations: Vec<String>,
    has_outer_join: bool,
}

impl Named {
    fn join(&mut self, tables: &ast::TableWithJoins) {
        use ast::JoinOperator as J;
        self.has_outer_join |= tables.joins.iter().any(|join| {
            matches!(
                join.join_operator,
                J::Left(_) | J::LeftOuter(_) | J::Right(_) | J::RightOuter(_) | J::FullOuter(_)
            )
        });
    }
}

impl ast::Visitor for Named {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &ast::TableFactor) -> ControlFlow<()> {
        match factor {
            ast::TableFactor::Table { alias: Some(alias), .. }
            | ast::TableFactor::Derived { alias: Some(alias), .. }
            | ast::TableFactor::Function { alias: Some(alias), .. }
            | ast::TableFactor::UNNEST { alias: Some(alias), .. } => {
                self.relations.push(folded(&alias.name));
            }
            ast::TableFactor::Table { name, .. } => self.relations.extend(parts_of(name).pop()),
            ast::TableFactor::NestedJoin { table_with_joins, .. } => self.join(table_with_joins),
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether a `SELECT` with outer joins has calls with whole rows of relations: `count(t.*)`, `row_to_json(t)`.
fn has_whole_rows(select: &ast::Select) -> bool {
    let mut named = Named::default();
    select.from.iter().for_each(|from| named.join(from));
    let _ = ast::Visit::visit(&select.from, &mut named);
    if !named.has_outer_join {
        return false;
    }
    let is_row = |argument: &ast::FunctionArg| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(_)) => true,
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(ast::Expr::Identifier(name))) => {
            named.relations.contains(&folded(name))
        }
        _ => false,
    };
    let found = ast::visit_expressions(select, |part| match part {
        ast::Expr::Function(ast::Function { args: ast::FunctionArguments::List(list), .. })
            if list.args.iter().any(is_row) =>
        {
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Whether an expression has a key of `GROUP BY` as a part that is a question to a subquery.
fn has_asking_key(expression: &ast::Expr, group_by: &ast::GroupByExpr) -> bool {
    let mut keys = Vec::new();
    let _ = ast::visit_expressions(group_by, |key| {
        if matches!(key, ast::Expr::InSubquery { .. } | ast::Expr::AnyOp { .. } | ast::Expr::AllOp { .. }) {
            keys.push(key.clone());
        }
        ControlFlow::<()>::Continue(())
    });
    let found = ast::visit_expressions(expression, |part| match keys.contains(part) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    !keys.is_empty() && found.is_break()
}

/// Refuses windows that are too many: the rows are sorted anew for each.
fn refuse_windows(windows: &[Expr]) -> Result<()> {
    let different = windows.iter().filter_map(|window| match window {
        Expr::WindowFunction(function) => Some((&function.params.partition_by, &function.params.order_by)),
        _ => None,
    });
    if different.collect::<HashSet<_>>().len() <= WINDOWS {
        return Ok(());
    }
    Err(Error::new(SqlState(*b"54000"), "too many windows")
        .with_detail(format!("a SELECT can have at most {WINDOWS} windows that differ")))
}

/// Replaces expressions that are computed below by their columns.
fn replace(expr: &mut Expr, computed: &[Expr]) -> Result<()> {
    let taken = std::mem::take(expr);
    let changed = taken.transform_down(|expr| {
        Ok(if matches!(expr, Expr::WindowFunction(_)) && computed.contains(&expr) {
            let column = Column::new_unqualified(expr.schema_name().to_string());
            Transformed::new(Expr::Column(column), true, TreeNodeRecursion::Jump)
        } else {
            Transformed::no(expr)
        })
    });
    *expr = changed.map_err(inbound)?.data;
    Ok(())
}

/// What PostgreSQL has and this does not, in a `SELECT`.
fn refuse(select: &ast::Select) -> Result<()> {
    if select.into.is_some() {
        return Err(unsupported("SELECT INTO is not supported"));
    }
    if select.top.is_some()
        || select.qualify.is_some()
        || !select.connect_by.is_empty()
        || select.prewhere.is_some()
    {
        return Err(unsupported("this form of SELECT is not supported"));
    }
    Ok(())
}
