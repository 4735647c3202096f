//! Queries: `WITH`, set operations, `VALUES`, `ORDER BY`, `LIMIT`.

use super::operator::plain_binary;
use super::plan_part::{MOST, over_window};
use super::scope::rename;
use super::window::sort_of;
use super::{Binder, Common, Level, Output, Relation, Typed, folded};
use crate::arrow_column::arrow_type;
use crate::extent::{self, Extent};
use crate::failure::{inbound, unsupported};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Column;
use datafusion::common::tree_node::TreeNode;
use datafusion::datasource::cte_worktable::CteWorkTable;
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, cast, lit};
use fabius_sql_meaning::analysis::{ListItem, RowCount, RowWindow, list_item, place_of_name, row_count};
use fabius_sql_meaning::output::RowLock;
use fabius_sql_meaning::sql_type::{QUOTIENT, SqlType};
use fabius_sql_meaning::type_rules::{self, looks_different};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::sync::Arc;

/// Which of a query's rows are kept.
struct Window {
    /// How many are left out first.
    skip: Option<Expr>,
    /// How many are kept then.
    fetch: Option<Expr>,
    /// With those that sort as the last of them does.
    with_ties: bool,
}

impl Binder<'_> {
    /// A query.
    pub(crate) fn query(&mut self, query: &ast::Query) -> Result<Relation> {
        if query.for_clause.is_some() || !query.pipe_operators.is_empty() || query.settings.is_some() {
            return Err(unsupported("this form of query is not supported"));
        }
        let before = self.commons.len();
        let result = self.query_with(query);
        self.commons.truncate(before);
        result
    }

    fn query_with(&mut self, query: &ast::Query) -> Result<Relation> {
        let is_relation = std::mem::take(&mut self.is_relation);
        if let Some(with) = &query.with {
            let first = self.commons.len();
            for common in &with.cte_tables {
                let name = folded(&common.alias.name);
                if self.commons.iter().skip(first).any(|other| other.name == name) {
                    return Err(Error::new(
                        SqlState(*b"42712"),
                        format!("WITH query name \"{name}\" specified more than once"),
                    ));
                }
                let named = std::mem::take(&mut self.named_nodes);
                let relation = self.deeper(|binder| binder.common(common, with.recursive))?;
                self.named_nodes = named;
                let nodes = Extent::of(&relation.plan)?.nodes();
                self.commons.push(Common { name: folded(&common.alias.name), relation, nodes });
            }
        }
        let outer_locking = std::mem::take(&mut self.locking);
        for clause in &query.locks {
            self.locks_rows = true;
            let named = clause.of.as_ref().map(|name| super::parts_of(name).last().cloned());
            let names = named.map(|name| name.into_iter().collect());
            self.locking.push((names, RowLock::of(clause)?));
        }
        let window = self.row_window(query)?;
        let no_keys = Vec::new();
        let keys = match query.order_by.as_ref().map(|order| &order.kind) {
            None => &no_keys,
            Some(ast::OrderByKind::Expressions(keys)) => keys,
            Some(ast::OrderByKind::All(_)) => return Err(unsupported("ORDER BY ALL is not supported")),
        };
        self.is_relation = is_relation;
        let relation = match query.body.as_ref() {
            ast::SetExpr::Select(select) => self.select(select, keys),
            ast::SetExpr::Query(inner) => {
                refuse_twice(query, inner)?;
                let relation = self.deeper(|binder| binder.query(inner));
                relation.and_then(|relation| self.order_outputs(relation, keys))
            }
            body => {
                if !query.locks.is_empty() && !matches!(body, ast::SetExpr::Values(_)) {
                    return Err(unsupported("FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT"));
                }
                self.set_expression(body).and_then(|relation| self.order_outputs(relation, keys))
            }
        };
        self.locking = outer_locking;
        let relation = relation?;
        let Window { skip, fetch, with_ties } = window;
        if let (Some(fetch), true) = (&fetch, with_ties) {
            return tied(relation, skip, fetch.clone());
        }
        if skip.is_none() && fetch.is_none() {
            return Ok(relation);
        }
        // DataFusion leaves out a sort beneath an `OFFSET`, unless it has a limit.
        let fetch = fetch.or_else(|| (!keys.is_empty()).then(|| lit(MOST as i64)));
        let plan = LogicalPlanBuilder::from(relation.plan)
            .limit_by_expr(skip, fetch)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Relation { plan, ..relation })
    }

    /// Which of a query's rows are kept.
    fn row_window(&mut self, query: &ast::Query) -> Result<Window> {
        let window = RowWindow::of(query)?;
        let mut count = |count: Option<&ast::Expr>, clause: RowCount| -> Result<Option<Expr>> {
            let Some(count) = count else { return Ok(None) };
            let typed = row_count(self, count, clause)?;
            super::call::refuse_sets([&typed.expr], clause.word())?;
            match &typed.expr {
                Expr::Literal(value, _) if value.is_null() => Ok(None),
                Expr::Literal(datafusion::scalar::ScalarValue::Int64(Some(value)), _) if *value < 0 => {
                    Err(Error::new(clause.state_of_negative(), clause.is_negative()))
                }
                _ => Ok(Some(typed.expr)),
            }
        };
        let fetch = count(window.limit.as_ref(), RowCount::Limit)?;
        if window.with_ties && fetch.is_none() {
            let message = "row count cannot be null in FETCH FIRST ... WITH TIES clause";
            return Err(Error::new(RowCount::Limit.state_of_negative(), message));
        }
        let skip = count(window.offset.as_ref(), RowCount::Offset)?;
        Ok(Window { skip, fetch, with_ties: window.with_ties })
    }

    fn set_expression(&mut self, body: &ast::SetExpr) -> Result<Relation> {
        match body {
            ast::SetExpr::Select(select) => self.select(select, &[]),
            ast::SetExpr::Query(query) => self.deeper(|binder| binder.query(query)),
            ast::SetExpr::Values(values) => self.values(values),
            ast::SetExpr::SetOperation { .. } => self.deeper(|binder| binder.set_operations(body)),
            ast::SetExpr::Table(table) => {
                let name = table.table_name.clone().unwrap_or_default();
                let path = [table.schema_name.clone(), Some(name)].into_iter().flatten().collect::<Vec<_>>();
                let (plan, scope) = self.table(&path, None)?;
                let seen =
                    scope.columns.into_iter().filter(|column| column.sight == super::Sight::Everywhere);
                let columns = seen.map(|column| column.column).collect();
                Ok(Relation { plan, columns })
            }
            _ => Err(unsupported("a writing statement inside of a query is not supported")),
        }
    }

    /// Set operations one behind the other, of which there may be many.
    fn set_operations(&mut self, body: &ast::SetExpr) -> Result<Relation> {
        let (mut first, mut others) = (body, Vec::new());
        while let ast::SetExpr::SetOperation { left, op, set_quantifier, right } = first {
            others.push((*op, *set_quantifier, right));
            first = left;
        }
        let mut all = self.operand(first)?;
        for (operator, quantifier, right) in others.into_iter().rev() {
            let right = self.operand(right)?;
            all = self.set_operation(all, operator, quantifier, right)?;
        }
        Ok(all)
    }

    /// A side of a set operation.
    fn operand(&mut self, side: &ast::SetExpr) -> Result<Relation> {
        self.is_operand = matches!(side, ast::SetExpr::Select(_));
        self.is_relation = true;
        self.set_expression(side)
    }

    /// Gives the columns of a relation types, each under a new name.
    fn retyped(&mut self, relation: Relation, types: &[SqlType]) -> Result<Relation> {
        let is_same =
            relation.columns.iter().zip(types).all(|(column, sql_type)| column.sql_type == *sql_type)
                && relation.plan.schema().fields().len() == relation.columns.len();
        if is_same {
            return Ok(relation);
        }
        let mut expressions = Vec::with_capacity(types.len());
        let mut columns = Vec::with_capacity(types.len());
        for (output, sql_type) in relation.columns.into_iter().zip(types) {
            let typed = self.coerce(output.typed(), sql_type)?;
            let column = self.fresh_column();
            expressions.push(typed.expr.alias(column.name.clone()));
            columns.push(Output { column, sql_type: sql_type.clone(), ..output });
        }
        let plan = LogicalPlanBuilder::from(relation.plan)
            .project(expressions)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Relation { plan, columns })
    }

    fn set_operation(
        &mut self,
        left: Relation,
        operator: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        right: Relation,
    ) -> Result<Relation> {
        let name = operator.to_string();
        if left.columns.len() != right.columns.len() {
            return Err(Error::new(
                SqlState::SYNTAX_ERROR,
                format!("each {name} query must have the same number of columns"),
            ));
        }
        let sides = left.given().into_iter().zip(right.given());
        let types =
            sides.map(|(left, right)| self.common_of([&left, &right], &name)).collect::<Result<Vec<_>>>()?;
        let (mut left, mut right) = (self.retyped(left, &types)?, self.retyped(right, &types)?);
        let is_all = match quantifier {
            ast::SetQuantifier::All => true,
            ast::SetQuantifier::None | ast::SetQuantifier::Distinct => false,
            _ => return Err(unsupported("BY NAME is not supported")),
        };
        let look_different =
            types.iter().any(looks_different) && !(operator == ast::SetOperator::Union && is_all);
        if operator == ast::SetOperator::Union || look_different {
            // Where one side turns out to be empty, the other stands for both: their columns have the same names.
            let names: Vec<String> = types.iter().map(|_| self.fresh_name()).collect();
            left = placed(left, &names)?;
            right = placed(right, &names)?;
        }
        if types.is_empty() {
            return self.set_operation_of_nothing(left, operator, quantifier, right);
        }
        if look_different {
            (left.plan, right.plan) = self.represented_in_both(left.plan, right.plan, &types)?;
        }
        // What stands left gives the names.
        let builder = LogicalPlanBuilder::from(left.plan.clone());
        let plan = match (operator, is_all) {
            (ast::SetOperator::Union, true) => builder.union(right.plan).and_then(LogicalPlanBuilder::build),
            (ast::SetOperator::Union, false) => builder
                .union(right.plan)
                .and_then(LogicalPlanBuilder::distinct)
                .and_then(LogicalPlanBuilder::build),
            // Of equal rows the first meets the first: they are numbered on both sides.
            (ast::SetOperator::Intersect, true) => numbered(left.plan)
                .and_then(|plan| LogicalPlanBuilder::intersect(plan, numbered(right.plan)?, false)),
            (ast::SetOperator::Except | ast::SetOperator::Minus, true) => numbered(left.plan)
                .and_then(|plan| LogicalPlanBuilder::except(plan, numbered(right.plan)?, false)),
            (ast::SetOperator::Intersect, false) => {
                LogicalPlanBuilder::intersect(left.plan, right.plan, false)
            }
            (ast::SetOperator::Except | ast::SetOperator::Minus, false) => {
                LogicalPlanBuilder::except(left.plan, right.plan, false)
            }
        };
        let plan = plan.map_err(inbound)?;
        self.renamed(plan, left.columns, &types)
    }

    /// The rows of two queries with the same columns, in which equal values of both look the same.
    fn represented_in_both(
        &mut self,
        left: LogicalPlan,
        right: LogicalPlan,
        types: &[SqlType],
    ) -> Result<(LogicalPlan, LogicalPlan)> {
        let side = self.fresh_column();
        let marked = |plan: LogicalPlan, is_left: bool| {
            let mut columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
            columns.push(
                Expr::Literal(datafusion::scalar::ScalarValue::Boolean(Some(is_left)), None)
                    .alias(side.name.clone()),
            );
            LogicalPlanBuilder::from(plan).project(columns)
        };
        let shown: Vec<Expr> = left.schema().iter().map(Expr::from).collect();
        let both = marked(left, true)
            .and_then(|left| left.union(marked(right, false)?.build()?))
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        let columns: Vec<_> = both.schema().columns().into_iter().zip(types.iter().cloned()).collect();
        let both = self.represented(both, &columns)?;
        let of = |condition: Expr| {
            LogicalPlanBuilder::from(both.clone())
                .filter(condition)
                .and_then(|builder| builder.project(shown.clone()))
                .and_then(LogicalPlanBuilder::build)
                .map_err(inbound)
        };
        let is_left = Expr::Column(side.clone());
        Ok((of(is_left.clone())?, of(Expr::Not(Box::new(is_left)))?))
    }

    /// A set operation of rows without columns: it has one of its own.
    fn set_operation_of_nothing(
        &mut self,
        left: Relation,
        operator: ast::SetOperator,
        quantifier: ast::SetQuantifier,
        right: Relation,
    ) -> Result<Relation> {
        let mut numbered = |relation: Relation| -> Result<Relation> {
            let column = self.fresh_column();
            let one = Expr::Literal(datafusion::scalar::ScalarValue::Int32(Some(1)), None);
            let plan = LogicalPlanBuilder::from(relation.plan)
                .project([one.alias(column.name.clone())])
                .and_then(LogicalPlanBuilder::build)
                .map_err(inbound)?;
            let output = Output {
                name: String::new(),
                column,
                sql_type: SqlType::Int,
                flavor: super::Flavor::Plain,
                origin: (0, 0),
                is_there: None,
            };
            Ok(Relation { plan, columns: vec![output] })
        };
        let (left, right) = (numbered(left)?, numbered(right)?);
        let all = self.set_operation(left, operator, quantifier, right)?;
        let plan = LogicalPlanBuilder::from(all.plan)
            .project(Vec::<Expr>::new())
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Relation { plan, columns: Vec::new() })
    }

    /// A plan's columns under new names, by their places.
    fn renamed(&mut self, plan: LogicalPlan, outputs: Vec<Output>, types: &[SqlType]) -> Result<Relation> {
        let fields: Vec<Column> =
            plan.schema().iter().map(|(qualifier, field)| Column::from((qualifier, field))).collect();
        let mut expressions = Vec::new();
        let mut columns = Vec::new();
        for ((output, sql_type), field) in outputs.into_iter().zip(types).zip(fields) {
            let column = self.fresh_column();
            expressions.push(Expr::Column(field).alias(column.name.clone()));
            columns.push(Output { column, sql_type: sql_type.clone(), origin: (0, 0), ..output });
        }
        let plan = LogicalPlanBuilder::from(plan)
            .project(expressions)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Relation { plan, columns })
    }

    fn order_outputs(&mut self, relation: Relation, keys: &[ast::OrderByExpr]) -> Result<Relation> {
        if keys.is_empty() {
            return Ok(relation);
        }
        let mut sorts = Vec::with_capacity(keys.len());
        for key in keys {
            let output = self.output_named(&key.expr, &relation.columns)?.ok_or_else(|| match &key.expr {
                ast::Expr::Identifier(name) => self.no_column(&[folded(name)]),
                _ => Error::new(SqlState::NOT_SUPPORTED, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause")
                    .with_detail("Only result column names can be used, not expressions or functions."),
            })?;
            let typed = self.sortable(output.typed())?;
            sorts.push(sort_of(typed, &key.options));
        }
        let plan = LogicalPlanBuilder::from(relation.plan)
            .sort(sorts)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Relation { plan, columns: relation.columns })
    }

    /// The output that a key of `ORDER BY` names by its place or name.
    pub(super) fn output_named<'o>(
        &self,
        key: &ast::Expr,
        outputs: &'o [Output],
    ) -> Result<Option<&'o Output>> {
        let place = match list_item(key, outputs.len(), "ORDER BY")? {
            ListItem::Place(at) => Some(at),
            ListItem::Name(name) => {
                let has_name = |output: &Output| output.name == name;
                let are_same = |one: &Output, other: &Output| one.column == other.column;
                place_of_name(outputs, has_name, are_same, (&name, "ORDER BY"))?
            }
            ListItem::Expression => None,
        };
        Ok(place.map(|at| &outputs[at]))
    }

    fn values(&mut self, values: &ast::Values) -> Result<Relation> {
        // They are a query of their own: what they name is of the queries around them.
        self.levels.push(Level { clause: Some("VALUES"), ..Level::default() });
        let rows = values
            .rows
            .iter()
            .map(|row| row.iter().map(|value| self.expression(value)).collect::<Result<Vec<_>>>())
            .collect::<Result<Vec<_>>>();
        self.levels.pop();
        let rows = rows?;
        let width = rows.first().map_or(0, Vec::len);
        if rows.iter().any(|row| row.len() != width) {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length"));
        }
        let types = (0..width)
            .map(|at| self.common_of(rows.iter().filter_map(|row| row.get(at)), "VALUES"))
            .collect::<Result<Vec<_>>>()?;
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter().zip(&types);
            cells.map(|(typed, sql_type)| self.coerce(typed, sql_type).map(|typed| typed.expr)).collect()
        });
        let rows = rows.collect::<Result<Vec<Vec<Expr>>>>()?;
        super::call::refuse_sets(rows.iter().flatten(), "VALUES")?;
        let plan = match rows.iter().flatten().any(asks) {
            true => self.asking_values(rows, &types)?,
            false => LogicalPlanBuilder::values(rows).and_then(LogicalPlanBuilder::build).map_err(inbound)?,
        };
        let outputs = (1..=width).zip(&types).map(|(at, sql_type)| Output {
            name: format!("column{at}"),
            column: Column::new_unqualified(""),
            sql_type: sql_type.clone(),
            flavor: super::Flavor::Plain,
            origin: (0, 0),
            is_there: None,
        });
        let outputs = outputs.collect();
        self.renamed(plan, outputs, &types)
    }

    /// Rows of `VALUES` that ask something: each column is an array, whose elements become rows.
    fn asking_values(&mut self, rows: Vec<Vec<Expr>>, types: &[SqlType]) -> Result<LogicalPlan> {
        if let [row] = rows.as_slice() {
            // It is a SELECT without FROM.
            let named = row.iter().map(|cell| cell.clone().alias(self.fresh_name())).collect::<Vec<_>>();
            let plan = LogicalPlanBuilder::empty(true).project(named).and_then(LogicalPlanBuilder::build);
            return plan.map_err(inbound);
        }
        let mut cells: Vec<Vec<Typed>> = vec![Vec::with_capacity(rows.len()); types.len()];
        for row in rows {
            for ((cell, sql_type), column) in row.into_iter().zip(types).zip(&mut cells) {
                column.push(Typed::new(cell, sql_type.clone()));
            }
        }
        let arrays = cells.into_iter().zip(types).map(|(cells, sql_type)| {
            let array = SqlType::Array(Box::new(sql_type.clone()));
            let array = self.function_returning("fabius_array", cells, array)?;
            Ok((self.fresh_column(), array.expr))
        });
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let one = LogicalPlanBuilder::empty(true).build().map_err(inbound)?;
        super::plan_part::spread(one, arrays, false)
    }

    /// A common table expression.
    fn common(&mut self, common: &ast::Cte, is_recursive: bool) -> Result<Relation> {
        let name = folded(&common.alias.name);
        let names: Vec<String> = common.alias.columns.iter().map(|column| folded(&column.name)).collect();
        if is_recursive
            && let ast::SetExpr::SetOperation { left, op: ast::SetOperator::Union, set_quantifier, right } =
                common.query.body.as_ref()
            && common.query.with.is_none()
            && mentions(right, &name)
        {
            refuse_around_recursion(&common.query)?;
            return self.recursive(&name, &names, left, right, *set_quantifier == ast::SetQuantifier::All);
        }
        self.is_relation = true;
        let mut relation = self.query(&common.query)?;
        rename(&mut relation.columns, &names, &name)?;
        Ok(relation)
    }

    fn recursive(
        &mut self,
        name: &str,
        names: &[String],
        first: &ast::SetExpr,
        step: &ast::SetExpr,
        is_all: bool,
    ) -> Result<Relation> {
        let first = self.set_expression(first)?;
        let known = |sql_type: &SqlType| match sql_type {
            SqlType::Unknown => SqlType::Text,
            known => known.clone(),
        };
        let mut types: Vec<SqlType> = first.columns.iter().map(|column| known(&column.sql_type)).collect();
        // What the step gives may have more digits than what it is about: then all rows have them.
        for round in 0..WIDENINGS {
            let (work, outputs) = self.work_table(&first.columns, &types, (name, names))?;
            self.commons.push(Common { name: name.to_string(), relation: work.relation, nodes: 1 });
            let bound = self.set_expression(step);
            self.commons.pop();
            let bound = bound?;
            if let Some(wider) = recursive_types(name, &types, &bound.columns, round)? {
                types = wider;
                continue;
            }
            let first = by_place(self.retyped(first, &types)?)?;
            let step = by_place(self.retyped(bound, &types)?)?;
            let plan = LogicalPlanBuilder::from(first)
                .to_recursive_query(work.name, step, !is_all)
                .and_then(LogicalPlanBuilder::build)
                .map_err(inbound)?;
            return self.renamed(plan, outputs, &types);
        }
        Err(unsupported(format!("a recursive query \"{name}\" whose types do not settle is not supported")))
    }

    /// The table of the rows that a step of a recursive query is about, and the columns that the query gives.
    fn work_table(
        &mut self,
        columns: &[Output],
        types: &[SqlType],
        (name, names): (&str, &[String]),
    ) -> Result<(WorkTable, Vec<Output>)> {
        let fields: Vec<Field> = types
            .iter()
            .enumerate()
            .map(|(at, sql_type)| Field::new(format!("r{at}"), arrow_type(sql_type), true))
            .collect();
        let work_name = self.fresh("w");
        let work = CteWorkTable::new(&work_name, Arc::new(Schema::new(fields)));
        let plan = LogicalPlanBuilder::scan(work_name.as_str(), provider_as_source(Arc::new(work)), None)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        let outputs = columns.iter().cloned().zip(types);
        let mut outputs: Vec<Output> = outputs
            .map(|(output, sql_type)| Output { sql_type: sql_type.clone(), origin: (0, 0), ..output })
            .collect();
        rename(&mut outputs, names, name)?;
        let mut columns = outputs.clone();
        for (at, output) in columns.iter_mut().enumerate() {
            output.column = Column::new(Some(work_name.as_str()), format!("r{at}"));
        }
        Ok((WorkTable { name: work_name, relation: Relation { plan, columns } }, outputs))
    }

    /// A copy of a common table expression under names of its own, so that two uses of it can meet.
    pub(super) fn use_common(&mut self, relation: &Relation) -> Result<Relation> {
        let types: Vec<SqlType> = relation.columns.iter().map(|column| column.sql_type.clone()).collect();
        let mut expressions = Vec::new();
        let mut columns = Vec::new();
        for (output, sql_type) in relation.columns.iter().zip(&types) {
            let column = self.fresh_column();
            expressions.push(Expr::Column(output.column.clone()).alias(column.name.clone()));
            columns.push(Output { column, sql_type: sql_type.clone(), ..output.clone() });
        }
        let plan = LogicalPlanBuilder::from(relation.plan.clone())
            .project(expressions)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Relation { plan, columns })
    }

    /// A common table expression by its name.
    ///
    /// # Errors
    /// `54001` if all that were named are too much together.
    pub(super) fn common_named(&mut self, name: &str) -> Result<Option<Relation>> {
        let Some(common) = self.commons.iter().rev().find(|common| common.name == name) else {
            return Ok(None);
        };
        self.named_nodes += common.nodes;
        extent::refuse_nodes(self.named_nodes)?;
        Ok(Some(common.relation.clone()))
    }
}

/// The rows of a window and those that sort as its last one does. Their ranks are those of its rows at most: a rank is
/// the place of the first row that sorts as another does.
fn tied(relation: Relation, skip: Option<Expr>, fetch: Expr) -> Result<Relation> {
    let sort = match &relation.plan {
        LogicalPlan::Projection(shown) => &*shown.input,
        plan => plan,
    };
    let LogicalPlan::Sort(sort) = sort else { return Err(unsupported("WITH TIES of rows in this order")) };
    let rank = over_window(datafusion::functions_window::rank::rank_udwf(), Vec::new(), sort.expr.clone());
    let place = Expr::Column(Column::new_unqualified(rank.schema_name().to_string()));
    let place = cast(place, DataType::Int64);
    let last = skip.clone().map_or(fetch.clone(), |skip| plain_binary(skip, Operator::Plus, fetch));
    let columns: Vec<Expr> =
        relation.columns.iter().map(|output| Expr::Column(output.column.clone())).collect();
    let plan = LogicalPlanBuilder::from((*sort.input).clone())
        .window([rank])
        .and_then(|builder| builder.filter(plain_binary(place, Operator::LtEq, last)))
        .and_then(|builder| builder.sort(sort.expr.clone()))
        .and_then(|builder| builder.limit_by_expr(skip, Some(lit(MOST as i64))))
        .and_then(|builder| builder.project(columns))
        .and_then(LogicalPlanBuilder::build)
        .map_err(inbound)?;
    Ok(Relation { plan, ..relation })
}

/// A relation whose columns have these names in its plan.
fn placed(relation: Relation, names: &[String]) -> Result<Relation> {
    let columns = relation.columns.iter().zip(names);
    let expressions = columns.map(|(output, name)| Expr::Column(output.column.clone()).alias(name.clone()));
    let plan = LogicalPlanBuilder::from(relation.plan)
        .project(expressions.collect::<Vec<_>>())
        .and_then(LogicalPlanBuilder::build)
        .map_err(inbound)?;
    let columns = relation.columns.into_iter().zip(names);
    let columns = columns.map(|(output, name)| Output { column: Column::new_unqualified(name), ..output });
    Ok(Relation { plan, columns: columns.collect() })
}

/// Refuses what stands both in a query in parentheses and behind them.
fn refuse_twice(outer: &ast::Query, inner: &ast::Query) -> Result<()> {
    let refuse = |what: &str| {
        Err(Error::new(SqlState::SYNTAX_ERROR, format!("multiple {what} clauses are not allowed")))
    };
    let has_limit = |query: &ast::Query| query.limit_clause.is_some() || query.fetch.is_some();
    match () {
        () if outer.order_by.is_some() && inner.order_by.is_some() => refuse("ORDER BY"),
        () if has_limit(outer) && has_limit(inner) => refuse("LIMIT"),
        () if outer.with.is_some() && inner.with.is_some() => refuse("WITH"),
        () => Ok(()),
    }
}

/// The table of the rows that a step of a recursive query is about.
struct WorkTable {
    name: String,
    relation: Relation,
}

/// How often a recursive query is bound until its numerics have digits enough: by those of its step, then by those that
/// a `numeric` has that does not say.
const WIDENINGS: usize = 3;

/// The types of a recursive query's columns if its step gives numerics of more digits; `None` if they are right.
///
/// # Errors
/// `42804` for a column of another type than that of the first term; `42601` for another number of columns.
fn recursive_types(
    name: &str,
    types: &[SqlType],
    step: &[Output],
    round: usize,
) -> Result<Option<Vec<SqlType>>> {
    if step.len() != types.len() {
        let message = "each UNION query must have the same number of columns";
        return Err(Error::new(SqlState::SYNTAX_ERROR, message));
    }
    let mut wider = types.to_vec();
    for (at, (column, sql_type)) in step.iter().zip(types).enumerate() {
        let common = super::coerce::common_type(&column.sql_type, sql_type);
        let fits = match (&common, sql_type) {
            // Digits that are declared are part of the type.
            (Some(SqlType::Numeric(_)), SqlType::Numeric(Some((..=37, _)))) => column.sql_type == *sql_type,
            (Some(SqlType::Numeric(_)), SqlType::Numeric(digits)) => {
                if column.sql_type.scale() > sql_type.scale() && digits.is_some() {
                    let may_settle = round == 0 && column.sql_type != QUOTIENT;
                    wider[at] = if may_settle { column.sql_type.clone() } else { SqlType::Numeric(None) };
                }
                true
            }
            (Some(common), sql_type) => common == sql_type,
            (None, _) => false,
        };
        if !fits {
            let message = format!(
                "recursive query \"{name}\" column {} has type {sql_type} in non-recursive term but type {} overall",
                at + 1,
                type_rules::without_modifiers(&column.sql_type)
            );
            return Err(Error::new(SqlState::DATATYPE_MISMATCH, message)
                .with_hint("Cast the output of the non-recursive term to the correct type."));
        }
    }
    Ok((wider != types).then_some(wider))
}

/// A relation's columns as those of a recursive query: both of its terms have them by their places.
fn by_place(relation: Relation) -> Result<LogicalPlan> {
    let columns = relation.columns.iter().enumerate();
    let expressions = columns.map(|(at, output)| Expr::Column(output.column.clone()).alias(format!("r{at}")));
    LogicalPlanBuilder::from(relation.plan)
        .project(expressions.collect::<Vec<_>>())
        .and_then(LogicalPlanBuilder::build)
        .map_err(inbound)
}

/// A plan with one more column: which of the rows equal to it each is.
fn numbered(plan: LogicalPlan) -> datafusion::error::Result<LogicalPlan> {
    let columns: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
    let number = super::plan_part::row_number(columns.clone(), Vec::new());
    let name = Expr::Column(Column::new_unqualified(number.schema_name().to_string()));
    let shown = columns.into_iter().chain([name.alias("number of equals")]);
    LogicalPlanBuilder::from(plan).window([number])?.project(shown.collect::<Vec<_>>())?.build()
}

/// Whether an expression asks about the query around it, or has a query within.
fn asks(expression: &Expr) -> bool {
    let has_query =
        |expr: &Expr| Ok(matches!(expr, Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_)));
    expression.contains_outer() || expression.exists(has_query).unwrap_or(true)
}

/// Refuses what would need all rows of a recursion before there are all.
fn refuse_around_recursion(query: &ast::Query) -> Result<()> {
    let limit = match &query.limit_clause {
        Some(ast::LimitClause::LimitOffset { limit, offset, .. }) => (limit.is_some(), offset.is_some()),
        _ => (false, false),
    };
    let places = [
        ("ORDER BY", query.order_by.is_some()),
        ("OFFSET", limit.1),
        ("LIMIT", limit.0 || query.fetch.is_some()),
        ("FOR UPDATE/SHARE", !query.locks.is_empty()),
    ];
    match places.into_iter().find(|(_, is_there)| *is_there) {
        Some((place, _)) => Err(unsupported(format!("{place} in a recursive query is not implemented"))),
        None => Ok(()),
    }
}

/// Whether a query's text names a relation.
fn mentions(body: &ast::SetExpr, name: &str) -> bool {
    use std::ops::ControlFlow;
    let found = ast::visit_relations(body, |relation| {
        let is_named = matches!(super::parts_of(relation).as_slice(), [only] if only == name);
        if is_named { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.is_break()
}
