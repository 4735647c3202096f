//! Queries as loops.

use super::binder::Binder;
use super::bound::Bound;
use super::from::{From, Order};
use super::query_facts::QueryFacts;
use super::row_body::{Gathered, RowBody, Window};
use super::scope::{Relation, Scope};
use super::sorted::Sorting;
use super::stop::{Bind, Place, Stop, beyond};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{ColumnDefinition, Expression};
use fabius_sql_meaning::analysis::{
    Column, Entry, ListItem, RowCount, RowWindow, all_columns, list_item, no_relation, row_count,
};
use fabius_sql_meaning::catalog::{column_path, folded};
use fabius_sql_meaning::column_name;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::{written, written_ident};
use fabius_value::{DataType, SqlState};
use sqlparser::ast::{self, Expr, SelectItem, SetExpr};

/// `UNION`s of a statement, at most, each as often as it is bound: what is done for rows is there once for each side.
const UNITED: usize = 32;

/// Whether `*` or `t.*` is among the items of a list.
fn is_all(items: &[SelectItem]) -> bool {
    items.iter().any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..)))
}

impl<'a> Binder<'a> {
    /// A query as loops; `body` says what is done for each of its rows, in order. It may be asked for more than
    /// once, for rows of different kinds.
    ///
    /// # Errors
    /// What is wrong with the query, or that programs cannot express it.
    pub fn for_each_row(&mut self, query: &ast::Query, body: &mut RowBody<'_, 'a>) -> Bind<QueryFacts> {
        self.deeper(|binder| binder.query(query, body))
    }

    fn query(&mut self, query: &ast::Query, body: &mut RowBody<'_, 'a>) -> Bind<QueryFacts> {
        if query.with.is_some()
            || query.for_clause.is_some()
            || query.settings.is_some()
            || query.format_clause.is_some()
            || !query.pipe_operators.is_empty()
        {
            return beyond("a query of this form");
        }
        let order = match &query.order_by {
            None => &[][..],
            Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order), interpolate: None }) => order,
            Some(_) => return beyond("ORDER BY ALL"),
        };
        match &*query.body {
            SetExpr::Select(select) => {
                let window = self.window(query)?;
                self.select(select, order, window, body)
            }
            rows if order.is_empty() && query.limit_clause.is_none() && query.fetch.is_none() => {
                self.rows_of(rows, body)
            }
            _ => beyond("a query of this form"),
        }
    }

    /// Rows in any order.
    fn rows_of(&mut self, rows: &SetExpr, body: &mut RowBody<'_, 'a>) -> Bind<QueryFacts> {
        match rows {
            SetExpr::Select(select) => self.select(select, &[], Window::default(), body),
            SetExpr::Query(inner) if inner.locks.is_empty() => self.query(inner, body),
            SetExpr::Values(values) => self.values(values, body),
            SetExpr::SetOperation {
                op: ast::SetOperator::Union,
                set_quantifier: ast::SetQuantifier::All,
                left,
                right,
            } => {
                if self.united == UNITED {
                    return beyond("so many queries united");
                }
                self.united += 1;
                self.union_all([left, right], body)
            }
            _ => beyond("a query of this form"),
        }
    }

    /// `UNION ALL` of rows that are reached by keys, and whose columns have the same types.
    fn union_all(&mut self, sides: [&SetExpr; 2], body: &mut RowBody<'_, 'a>) -> Bind<QueryFacts> {
        let mut of_first: Option<Vec<OutputColumn>> = None;
        let mut all = QueryFacts { is_single: false, is_keyed: true, is_selective: true };
        for side in sides {
            let facts = self.rows_of(side, &mut |binder, columns, values| {
                let columns = columns.iter().map(|column| OutputColumn { origin: (0, 0), ..column.clone() });
                let columns: Vec<OutputColumn> = columns.collect();
                let first = of_first.get_or_insert_with(|| columns.clone());
                let mut types =
                    first.iter().map(|of| &of.sql_type).zip(columns.iter().map(|of| &of.sql_type));
                let is_alike = first.len() == columns.len() && types.all(|(first, other)| first == other);
                if !is_alike || values.iter().any(Bound::is_unknown) {
                    return beyond("a UNION of several types");
                }
                body(binder, first, values)
            })?;
            all.is_keyed &= facts.is_keyed;
            all.is_selective &= facts.is_selective;
        }
        match self.lifts && !all.is_keyed {
            true => beyond("a UNION of whole tables"),
            false => Ok(all),
        }
    }

    fn values(&mut self, values: &ast::Values, body: &mut RowBody<'_, 'a>) -> Bind<QueryFacts> {
        let [only] = values.rows.as_slice() else { return beyond("VALUES of several rows") };
        let mut bounds = Vec::new();
        let mut columns = Vec::new();
        for (at, value) in only.content.iter().enumerate() {
            let bound = self.expression(value, None)?;
            let name = format!("column{}", at + 1);
            columns.push(OutputColumn { name, sql_type: bound.sql_type.clone(), origin: (0, 0) });
            bounds.push(bound);
        }
        body(self, &columns, bounds)?;
        Ok(QueryFacts { is_single: true, is_keyed: true, is_selective: true })
    }

    fn window(&mut self, query: &ast::Query) -> Bind<Window> {
        let window = RowWindow::of(query)?;
        if window.with_ties {
            return beyond("FETCH ... WITH TIES");
        }
        let mut count = |count: Option<&Expr>, clause: RowCount| -> Bind<Option<Expression>> {
            let Some(count) = count else { return Ok(None) };
            let bound = row_count(self, count, clause)?;
            if bound.is_null() {
                return Ok(None);
            }
            let bound = self.settle(bound)?;
            let bound = self.named(bound, "limit")?;
            Ok(Some(bound.expression))
        };
        let limit = count(window.limit.as_ref(), RowCount::Limit)?;
        Ok(Window { limit, offset: count(window.offset.as_ref(), RowCount::Offset)? })
    }

    fn select(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        window: Window,
        body: &mut RowBody<'_, 'a>,
    ) -> Bind<QueryFacts> {
        let grouped = match &select.group_by {
            ast::GroupByExpr::Expressions(keys, modifiers) => !keys.is_empty() || !modifiers.is_empty(),
            ast::GroupByExpr::All(_) => true,
        };
        let is_distinct = match &select.distinct {
            None | Some(ast::Distinct::All) => false,
            Some(ast::Distinct::Distinct) => true,
            Some(ast::Distinct::On(_)) => return beyond("DISTINCT ON"),
        };
        if select.top.is_some()
            || select.into.is_some()
            || !select.lateral_views.is_empty()
            || select.prewhere.is_some()
            || !select.connect_by.is_empty()
            || !select.named_window.is_empty()
            || select.qualify.is_some()
            || select.value_table_mode.is_some()
            || select.exclude.is_some()
        {
            return beyond("a query of this form");
        }
        if grouped {
            return self.grouped(&Sorting { select, order, is_distinct }, &window, body);
        }
        if is_aggregated(select) {
            return self.aggregated(select, window, body);
        }
        if select.having.is_some() {
            return beyond("HAVING without aggregates");
        }
        if let Some(from_set) = self.set_in_list(select) {
            return self.select(&from_set, order, window, body);
        }
        if order.is_empty()
            && !is_distinct
            && let Some(facts) = self.selected_function(select, &window, body)?
        {
            return Ok(facts);
        }
        let wanted = Sorting { select, order, is_distinct };
        let (scope, joined) = self.relations(None, &select.from)?;
        let relations = scope.relations.clone();
        self.with_names(scope, |binder| {
            let mut from = binder.from(&joined, select.selection.as_ref());
            from.order = binder.order(select, order, &relations)?;
            if is_distinct || !order.is_empty() && from.order.is_none() {
                return binder.sorted(&wanted, from, &window, body);
            }
            let wants_order = !order.is_empty();
            let needs_window = window.limit.is_some() || window.offset.is_some();
            from.limit = match (&window.limit, &window.offset) {
                (Some(limit), None) => Some(limit.clone()),
                (Some(limit), Some(offset)) => Some(tree::binary(Op::Add, limit.clone(), offset.clone())),
                _ => None,
            };
            let (taken, skipped) = (binder.name("taken"), binder.name("skipped"));
            let mut columns: Option<Vec<OutputColumn>> = None;
            let mut counts = false;
            let looped = binder.nested(|binder| {
                binder.loops(&mut from, &mut |binder| {
                    // Before what is within has loops of its own.
                    let is_limited = std::mem::take(&mut binder.limited);
                    let (names, values) = binder.projection(select)?;
                    columns = Some(names.clone());
                    if !needs_window || is_limited && window.offset.is_none() {
                        return body(binder, &names, values);
                    }
                    counts = true;
                    binder.windowed(&window, &taken, &skipped, |binder| body(binder, &names, values))
                })
            });
            let (block, ()) = looped.map_err(|stop| binder.first_of(stop, select))?;
            let found = from.found.clone();
            if wants_order && !found.is_single && !found.is_ordered {
                let first_of_each = from.order.take().zip(from.limit.take());
                let from = From { first_of_each, ..binder.from(&joined, select.selection.as_ref()) };
                return binder.sorted(&wanted, from, &window, body);
            }
            if counts {
                let zero = || tree::cast(tree::integer(0), DataType::BigInt);
                let bigint = || Some(tree::scalar_type(DataType::BigInt, false));
                if window.limit.is_some() {
                    binder.emit(tree::declare(&taken, true, bigint(), zero()));
                }
                if window.offset.is_some() {
                    binder.emit(tree::declare(&skipped, true, bigint(), zero()));
                }
                binder.check_window(&window);
            }
            binder.block.extend(block);
            Ok(found.facts())
        })
    }

    /// `SELECT f(...)` of a function that returns a set, as `SELECT * FROM f(...)`.
    fn set_in_list(&self, select: &ast::Select) -> Option<ast::Select> {
        let [item] = select.projection.as_slice() else { return None };
        let (call, alias) = match item {
            SelectItem::UnnamedExpr(Expr::Function(call)) => (call, None),
            SelectItem::ExprWithAlias { expr: Expr::Function(call), alias } => (call, Some(alias)),
            _ => return None,
        };
        if !select.from.is_empty() || !crate::plpgsql::returns_values(self, call) {
            return None;
        }
        let alias = alias.map_or_else(String::new, |alias| format!(" AS {}", written_ident(alias)));
        let text = format!("SELECT * FROM {}{alias}", written(&Expr::Function(call.clone())));
        let query = Tokens::of(&text).and_then(|tokens| tokens.read(|parser| parser.parse_query())).ok()?;
        match *query.body {
            SetExpr::Select(mut from_set) => {
                from_set.selection.clone_from(&select.selection);
                Some(*from_set)
            }
            _ => None,
        }
    }

    /// Negative counts are refused before anything is read.
    fn check_window(&mut self, window: &Window) {
        for (count, clause) in [(&window.limit, RowCount::Limit), (&window.offset, RowCount::Offset)] {
            let Some(count) = count else { continue };
            let at_least = tree::binary(Op::GreaterEqual, count.clone(), tree::integer(0));
            let holds = tree::call("coalesce", vec![at_least, tree::boolean(true)]);
            let SqlState(state) = clause.state_of_negative();
            self.emit(tree::require(holds, &state, clause.is_negative(), None));
        }
    }

    /// Declares what a window counts.
    pub(super) fn declare_window(&mut self, window: &Window, taken: &str, skipped: &str) {
        let zero = || tree::cast(tree::integer(0), DataType::BigInt);
        let bigint = || Some(tree::scalar_type(DataType::BigInt, false));
        if window.limit.is_some() {
            self.emit(tree::declare(taken, true, bigint(), zero()));
        }
        if window.offset.is_some() {
            self.emit(tree::declare(skipped, true, bigint(), zero()));
        }
        self.check_window(window);
    }

    /// Does something for the rows of a window only.
    pub(super) fn windowed(
        &mut self,
        window: &Window,
        taken: &str,
        skipped: &str,
        act: impl FnOnce(&mut Self) -> Bind<()>,
    ) -> Bind<()> {
        let one = || tree::cast(tree::integer(1), DataType::BigInt);
        let (mut block, ()) = self.nested(act)?;
        if let Some(limit) = &window.limit {
            let fits = tree::binary(Op::Less, tree::variable(taken), limit.clone());
            let fits = tree::call("coalesce", vec![fits, tree::boolean(true)]);
            block.insert(0, tree::add(taken, one()));
            block = vec![tree::when(fits, block, None)];
        }
        if let Some(offset) = &window.offset {
            let offset = tree::call("coalesce", vec![offset.clone(), tree::integer(0)]);
            let before = tree::binary(Op::Less, tree::variable(skipped), offset);
            block = vec![tree::when(before, vec![tree::add(skipped, one())], Some(block))];
        }
        self.block.extend(block);
        Ok(())
    }

    /// `ORDER BY` as an order along columns of one relation.
    fn order(
        &mut self,
        select: &ast::Select,
        order: &[ast::OrderByExpr],
        relations: &[Relation],
    ) -> Bind<Option<Order>> {
        let mut found: Option<Order> = None;
        for item in order {
            if item.with_fill.is_some() {
                return beyond("an order of this form");
            }
            let descending = item.options.asc == Some(false);
            // Nulls come last going up and first going down, in indexes as in PostgreSQL.
            if item.options.nulls_first.is_some_and(|first| first != descending) {
                return Ok(None);
            }
            let Some((relation, column)) = self.ordered_column(select, &item.expr)? else {
                return Ok(None);
            };
            if !super::expression::is_ordered(&relations[relation].columns[column].1) {
                return Ok(None);
            }
            match &mut found {
                None => found = Some(Order { relation, columns: vec![column], descending }),
                Some(found) if found.relation == relation && found.descending == descending => {
                    found.columns.push(column);
                }
                Some(_) => return Ok(None),
            }
        }
        Ok(found)
    }

    /// The relation's column that an item of `ORDER BY` is: by its number or name in the result, or its own.
    fn ordered_column(&mut self, select: &ast::Select, item: &Expr) -> Bind<Option<(usize, usize)>> {
        let mut item = item.clone();
        let stands_for = list_item(&item, usize::MAX, "ORDER BY");
        if let ListItem::Place(at) = stands_for.map_err(|error| self.error(error, Place::of(&item)))? {
            item = match select.projection.get(at) {
                Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. })
                    if !is_all(&select.projection) =>
                {
                    expr.clone()
                }
                _ => return Ok(self.expanded(select).get(at).copied().flatten()),
            };
        }
        if let Expr::Identifier(name) = &item {
            let wanted = folded(name);
            let mut named = select.projection.iter().filter_map(|item| match item {
                SelectItem::ExprWithAlias { expr, alias } if folded(alias) == wanted => Some(expr),
                SelectItem::UnnamedExpr(expr) if column_name::of(expr) == wanted => Some(expr),
                _ => None,
            });
            item = match (named.next(), named.next()) {
                (Some(_), Some(_)) => return Ok(None),
                (Some(named), None) => named.clone(),
                (None, _) if is_all(&select.projection) => {
                    // One of several columns of that name may be the one that is shown.
                    let columns = &self.scope().names.columns;
                    if columns.iter().filter(|column| column.column.name() == wanted).count() > 1 {
                        return Ok(None);
                    }
                    item
                }
                (None, _) => item,
            };
        }
        let Some(path) = column_path(&item) else { return Ok(None) };
        Ok(match self.lookup(&path, Place::of(&item))? {
            Some(super::scope::Found::Column { out: 0, relation, column }) => Some((relation, column)),
            _ => None,
        })
    }

    /// For each column of the result, the relation's column that it is.
    fn expanded(&mut self, select: &ast::Select) -> Vec<Option<(usize, usize)>> {
        let names = &self.scope().names;
        let expanded = select.projection.iter().flat_map(|item| match item {
            SelectItem::Wildcard(_) => names.shown().into_iter().map(|(.., at)| Some(at)).collect(),
            _ => vec![None],
        });
        expanded.collect()
    }

    /// The values of a `SELECT` list, with their names.
    pub(super) fn projection(&mut self, select: &ast::Select) -> Bind<(Vec<OutputColumn>, Vec<Bound>)> {
        self.items(&select.projection)
    }

    /// Of what is wrong with a query the first: what is wrong with its list comes before what is wrong with its
    /// conditions, which are bound first.
    fn first_of(&mut self, stop: Stop, select: &ast::Select) -> Stop {
        if !matches!(stop, Stop::Wrong(_)) || std::mem::replace(&mut self.tells_wrong, true) {
            return stop;
        }
        let list = self.projection(select);
        self.tells_wrong = false;
        match list {
            Err(Stop::Wrong(of_list)) => Stop::Wrong(of_list),
            _ => stop,
        }
    }

    /// The values of a list of items, with their names.
    pub(super) fn items(&mut self, items: &[SelectItem]) -> Bind<(Vec<OutputColumn>, Vec<Bound>)> {
        let (mut columns, mut values) = (Vec::new(), Vec::new());
        for item in items {
            match Entry::of(item)? {
                Entry::Computed(name, expression) => {
                    let value = self.expression(expression, None)?;
                    columns.push(output(name, &value));
                    values.push(value);
                }
                Entry::All(_) => {
                    let scope = self.scope().clone();
                    for (_, name, at) in all_columns(&scope.names)? {
                        let value = self.settled_column(&scope, at)?;
                        columns.push(output(name.to_string(), &value));
                        values.push(value);
                    }
                }
                Entry::AllOf { schema, relation, name, .. } => {
                    let (schema, scope) = (schema.as_deref(), self.scope().clone());
                    if !scope.names.has_relation(schema, &relation) {
                        return Err(self.error(no_relation(&relation), Place::of(name)));
                    }
                    for column in scope.names.columns_of(schema, &relation) {
                        let value = self.settled_column(&scope, column.column.value())?;
                        columns.push(output(column.column.name().to_string(), &value));
                        values.push(value);
                    }
                }
            }
        }
        if columns.is_empty() {
            return beyond("a result without columns");
        }
        Ok((columns, values))
    }

    fn settled_column(&mut self, scope: &Scope, (relation, column): (usize, usize)) -> Bind<Bound> {
        let value = scope.relations[relation].value(column)?;
        self.settle(value)
    }

    /// A query's rows collected in a list; its name, columns, and whether it has at most one element.
    pub(super) fn collected(&mut self, query: &ast::Query) -> Bind<Collected> {
        let list = self.name("result");
        let mut gathered = Gathered::default();
        let (block, _) = self.nested(|binder| {
            binder.for_each_row(query, &mut |binder, columns, values| {
                gathered.add(binder, &list, columns, values)
            })
        })?;
        let fields = gathered.fields();
        self.emit(tree::declare_list(&list, fields.clone()));
        self.block.extend(block);
        Ok(Collected { list, fields, columns: gathered.columns })
    }
}

/// Rows that a query gave, in a list.
pub(super) struct Collected {
    pub(super) list: String,
    pub(super) fields: Vec<ColumnDefinition>,
    pub(super) columns: Vec<OutputColumn>,
}

fn output(name: String, value: &Bound) -> OutputColumn {
    OutputColumn { name, sql_type: value.sql_type.clone(), origin: value.origin }
}

/// Whether a `SELECT` has aggregates.
pub fn is_aggregated(select: &ast::Select) -> bool {
    let items = select.projection.iter().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    items.chain(&select.having).any(super::aggregate::has_aggregate)
}
