//! `FROM` and joins.

use super::operator::plain_binary;
use super::plan_part::spread;
use super::scope::{rename, scope_of};
use super::{Binder, Flavor, Level, Output, Relation, Scope, ScopeColumn, Sight, Typed, folded, parts_of};
use crate::failure::{inbound, unsupported};
use crate::leaf::{Leaf, LeafProvider};
use crate::outer_reference::asks_outside;
use datafusion::common::{Column, JoinType};
use datafusion::datasource::provider_as_source;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator};
use fabius_sql_meaning::analysis::Side;
use fabius_sql_meaning::catalog::{Relation as CatalogRelation, Table, View};
use fabius_sql_meaning::pg_catalog;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::part;
use fabius_sql_syntax::privilege::{Class, Privilege};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;
use std::sync::Arc;

/// Something in `FROM`, before it is joined to what stands left of it.
pub(super) enum Item {
    /// A relation that stands by itself, or with references to the outer query only.
    Relation { plan: LogicalPlan, scope: Scope },
    /// A relation that refers to what stands left of it.
    Lateral { plan: LogicalPlan, scope: Scope },
    /// Arrays made of what stands left of it, whose elements become rows.
    Arrays { arrays: Vec<(Column, Expr)>, scope: Scope },
}

pub(super) type Joined = (LogicalPlan, Scope);

impl Binder<'_> {
    /// All of `FROM`.
    pub(super) fn from(&mut self, from: &[ast::TableWithJoins]) -> Result<Joined> {
        let mut left: Option<Joined> = None;
        for item in from {
            if left.is_some() && item.joins.iter().any(stands_apart) {
                let scope = left.as_ref().map(|left| &left.1);
                let (plan, scope) = self.beside(scope, |binder| binder.table_with_joins(None, item))?;
                let right = match asks_outside(&plan) {
                    true => Item::Lateral { plan, scope },
                    false => Item::Relation { plan, scope },
                };
                left = Some(self.cross(left, right)?);
            } else {
                left = Some(self.table_with_joins(left, item)?);
            }
        }
        match left {
            Some(left) => Ok(left),
            None => {
                let plan = LogicalPlanBuilder::empty(true).build().map_err(inbound)?;
                Ok((plan, Scope::default()))
            }
        }
    }

    fn table_with_joins(&mut self, left: Option<Joined>, item: &ast::TableWithJoins) -> Result<Joined> {
        let first = self.item(&item.relation, left.as_ref().map(|left| &left.1))?;
        let mut joined = self.cross(left, first)?;
        for join in &item.joins {
            let right = self.item(&join.relation, Some(&joined.1))?;
            joined = self.join(joined, right, &join.join_operator)?;
        }
        Ok(joined)
    }

    fn cross(&mut self, left: Option<Joined>, right: Item) -> Result<Joined> {
        match (left, right) {
            (None, Item::Relation { plan, scope } | Item::Lateral { plan, scope }) => Ok((plan, scope)),
            (None, Item::Arrays { .. }) => Err(unsupported("a function in FROM refers to nothing")),
            (Some(left), right) => {
                self.join(left, right, &ast::JoinOperator::CrossJoin(ast::JoinConstraint::None))
            }
        }
    }

    fn item(&mut self, factor: &ast::TableFactor, left: Option<&Scope>) -> Result<Item> {
        use ast::TableFactor as F;
        match factor {
            F::Table { name, alias, args: None, sample: None, version: None, .. } => {
                let (plan, scope) = self.table(&parts_of(name), alias.as_ref())?;
                let (plan, scope) = self.told_apart(plan, scope)?;
                Ok(Item::Relation { plan, scope })
            }
            F::Table { name, alias, args: Some(arguments), with_ordinality, .. } => {
                self.function_item(&parts_of(name), &arguments.args, alias.as_ref(), *with_ordinality, left)
            }
            F::Function { name, args, alias, with_ordinality, .. } => {
                self.function_item(&parts_of(name), args, alias.as_ref(), *with_ordinality, left)
            }
            F::UNNEST { alias, array_exprs, with_ordinality, with_offset: false, .. } => {
                let arrays = |binder: &mut Self| {
                    array_exprs
                        .iter()
                        .map(|expression| {
                            let typed = binder.expression(expression)?;
                            binder.set_returning("unnest", vec![typed])
                        })
                        .collect::<Result<Vec<_>>>()
                };
                let arrays = self.beside(left, arrays)?;
                let names = vec!["unnest".to_string(); arrays.len()];
                self.arrays_item(arrays, names, "unnest", alias.as_ref(), *with_ordinality)
            }
            F::Derived { lateral, subquery, alias, sample: None } => {
                self.is_relation = !*lateral;
                let relation = if *lateral {
                    self.beside(left, |binder| binder.deeper(|binder| binder.query(subquery)))
                } else {
                    self.deeper(|binder| binder.query(subquery))
                }?;
                let is_lateral = *lateral && asks_outside(&relation.plan);
                let name = alias.as_ref().map_or_else(|| self.fresh("?"), |alias| folded(&alias.name));
                let mut columns = relation.columns;
                if let Some(alias) = alias {
                    rename(&mut columns, &column_names(alias), &name)?;
                }
                let (plan, scope) = (relation.plan, scope_of(&name, columns));
                Ok(if is_lateral { Item::Lateral { plan, scope } } else { Item::Relation { plan, scope } })
            }
            F::NestedJoin { table_with_joins, alias } => {
                let joined = self.table_with_joins(None, table_with_joins)?;
                let (plan, scope) = match alias {
                    None => joined,
                    Some(alias) => self.called(joined, alias)?,
                };
                Ok(Item::Relation { plan, scope })
            }
            F::Table { sample: Some(_), .. } | F::Derived { sample: Some(_), .. } => {
                Err(unsupported("TABLESAMPLE is not supported"))
            }
            other => Err(unsupported(format!("{other} in FROM is not supported"))),
        }
    }

    /// A join under a name of its own: its relations cannot be named any more.
    fn called(&mut self, (plan, scope): Joined, alias: &ast::TableAlias) -> Result<Joined> {
        let (mut expressions, mut outputs) = (Vec::new(), Vec::new());
        for (_, name, typed) in scope.shown() {
            let column = self.fresh_column();
            expressions.push(typed.expr.alias(column.name.clone()));
            outputs.push(Output {
                name: name.to_string(),
                column,
                sql_type: typed.sql_type,
                flavor: typed.flavor,
                origin: typed.origin,
                is_there: None,
            });
        }
        let plan = LogicalPlanBuilder::from(plan)
            .project(expressions)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        self.aliased(Relation { plan, columns: outputs }, (None, ""), Some(alias))
    }

    /// Binds with what stands left in sight, as the innermost query.
    pub(super) fn beside<T>(
        &mut self,
        left: Option<&Scope>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.levels.push(Level {
            scope: left.cloned().unwrap_or_default(),
            clause: Some("functions in FROM"),
            ..Level::default()
        });
        let result = bind(self);
        self.levels.pop();
        result
    }

    /// A table, view, sequence, system relation or common table expression.
    pub(super) fn table(&mut self, path: &[String], alias: Option<&ast::TableAlias>) -> Result<Joined> {
        if let [name] = path
            && let Some(relation) = self.common_named(name)?
        {
            let relation = self.use_common(&relation)?;
            return self.aliased(relation, (None, name), alias);
        }
        if let ([name], Some(alias)) = (path, alias)
            && let Some(number) = part::given_number(name)
        {
            return self.given(number, alias);
        }
        let catalog = self.environment.catalog.clone();
        let (schema, name) = match path {
            [name] => (None, name),
            [schema, name] | [_, schema, name] => (Some(schema.as_str()), name),
            _ => return Err(no_table(path)),
        };
        if let Some(relation) = pg_catalog::relation(schema, name) {
            return self.system(relation, name, alias);
        }
        let found = match self.reader {
            // Names in a view were found when it was made.
            Some(_) => {
                let mut candidates = catalog.candidates(schema, name).into_iter();
                candidates.find_map(|name| catalog.relation_named(&name))
            }
            None => catalog.relation_along(schema, name)?,
        };
        let Some(relation) = found else { return Err(no_table(path)) };
        catalog.require_as(self.reader.unwrap_or(catalog.role), &relation, Privilege::Select)?;
        match relation {
            CatalogRelation::Table(table) => self.stored(table, alias),
            CatalogRelation::View(view) => self.view(view, alias),
            CatalogRelation::Sequence(sequence) => {
                let leaf = Leaf::Sequence(sequence.clone());
                let outputs = self.leaf(leaf, name)?;
                self.aliased(outputs, (Some(&sequence.name.schema), name), alias)
            }
            CatalogRelation::Index(..) => {
                let message = format!("cannot open relation \"{name}\"");
                Err(Error::new(SqlState(*b"42809"), message)
                    .with_detail("This operation is not supported for indexes."))
            }
        }
    }

    /// Rows that were found before: the alias has their columns with types.
    fn given(&mut self, number: u64, alias: &ast::TableAlias) -> Result<Joined> {
        let column = |column: &ast::TableAliasColumnDef| {
            let data_type = column.data_type.as_ref().ok_or_else(|| no_table(&[folded(&alias.name)]))?;
            Ok((folded(&column.name), self.environment.catalog.type_of(data_type)?))
        };
        let columns = alias.columns.iter().map(column).collect::<Result<_>>()?;
        let bound = self.leaf(Leaf::Given { number, columns }, "given")?;
        self.aliased(bound, (None, "given"), Some(alias))
    }

    /// A leaf under a name of its own in the plan.
    fn leaf(&mut self, leaf: Leaf, name: &str) -> Result<Relation> {
        let unique = self.fresh(&format!("{name}_"));
        let provider = LeafProvider::new(leaf, self.environment.clone());
        let columns = provider
            .columns()
            .into_iter()
            .map(|(name, sql_type, flavor)| Output {
                column: Column::new(Some(unique.as_str()), name.clone()),
                name,
                sql_type,
                flavor,
                origin: (0, 0),
                is_there: None,
            })
            .collect();
        let reference = datafusion::common::TableReference::bare(unique);
        let plan = LogicalPlanBuilder::scan(reference, provider_as_source(Arc::new(provider)), None)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)?;
        Ok(Relation { plan, columns })
    }

    pub(super) fn system(
        &mut self,
        relation: &'static pg_catalog::Relation,
        name: &str,
        alias: Option<&ast::TableAlias>,
    ) -> Result<Joined> {
        let bound = self.leaf(Leaf::System(relation), name)?;
        let (plan, mut scope) = self.aliased(bound, (Some(&relation.schema), name), alias)?;
        // Every relation of the catalog can be asked which it is.
        if !scope.columns.iter().any(|column| column.column.name == "tableoid") {
            let relation_name = alias.map_or_else(|| name.to_string(), |alias| folded(&alias.name));
            let column = self.fresh_column();
            let literal =
                Expr::Literal(datafusion::scalar::ScalarValue::Int64(Some(relation.oid().into())), None);
            let mut expressions: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
            expressions.push(literal.alias(column.name.clone()));
            let plan = LogicalPlanBuilder::from(plan)
                .project(expressions)
                .and_then(LogicalPlanBuilder::build)
                .map_err(inbound)?;
            let output = Output {
                name: "tableoid".into(),
                column,
                sql_type: SqlType::Oid,
                flavor: Flavor::Plain,
                origin: (0, 0),
                is_there: None,
            };
            scope.columns.push(ScopeColumn::new(&relation_name, output, Sight::OfSystem));
            return Ok((plan, scope));
        }
        Ok((plan, scope))
    }

    fn stored(&mut self, table: &Arc<Table>, alias: Option<&ast::TableAlias>) -> Result<Joined> {
        if !self.reads.contains(&table.name) {
            self.reads.push(table.name.clone());
        }
        let known_as = alias.map_or_else(|| table.name.name.clone(), |alias| folded(&alias.name));
        let named =
            |names: &Option<Vec<String>>| names.as_ref().is_none_or(|names| names.contains(&known_as));
        if self.locking.iter().any(|(names, _)| named(names)) {
            let reader = self.reader.unwrap_or(self.environment.catalog.role);
            self.environment.catalog.require_as(reader, &CatalogRelation::Table(table), Privilege::Update)?;
        }
        let row_lock = self.locking.iter().filter(|(names, _)| named(names)).map(|(_, lock)| *lock).max();
        let leaf = Leaf::Table { table: table.clone(), row_lock };
        let mut bound = self.leaf(leaf, &table.name.name)?;
        for (at, output) in bound.columns.iter_mut().enumerate() {
            output.origin = (table.oid, u16::try_from(at + 1).unwrap_or(0));
        }
        // What users do not see comes last, and has no other names.
        let unseen = bound.columns.split_off(table.visible().count());
        let (plan, mut scope) = self.aliased(bound, (Some(&table.name.schema), &table.name.name), alias)?;
        let key = table.primary_key.as_ref().map(|key| key.columns.as_slice()).unwrap_or_default();
        for (column, stored) in scope.columns.iter_mut().zip(&table.columns) {
            column.is_key = key.contains(&stored.name);
        }
        let unseen = unseen.into_iter();
        scope.columns.extend(unseen.map(|column| ScopeColumn::new(&known_as, column, Sight::OfSystem)));
        Ok((plan, scope))
    }

    fn view(&mut self, view: &Arc<View>, alias: Option<&ast::TableAlias>) -> Result<Joined> {
        let ast::Statement::Query(query) = Tokens::of(&view.query)?.sql()? else {
            return Err(unsupported(format!("the view {} is not a query", view.name.name)));
        };
        // A view sees nothing of where it is used, and reads what its owner may read.
        let owner = self.environment.catalog.access(Class::Table, view.oid).owner;
        let reader = self.reader.replace(owner);
        let (levels, commons) = (std::mem::take(&mut self.levels), std::mem::take(&mut self.commons));
        let (locking, wildcards) = (std::mem::take(&mut self.locking), self.wildcards.take());
        self.is_relation = true;
        let bound = self.deeper(|binder| binder.query(&query));
        (self.levels, self.commons, self.locking) = (levels, commons, locking);
        (self.wildcards, self.reader) = (wildcards, reader);
        let mut bound = bound?;
        let names: Vec<String> = view.columns.iter().map(|(name, _)| name.clone()).collect();
        rename(&mut bound.columns, &names, &view.name.name)?;
        for (at, output) in bound.columns.iter_mut().enumerate() {
            output.origin = (view.oid, u16::try_from(at + 1).unwrap_or(0));
        }
        self.aliased(bound, (Some(&view.name.schema), &view.name.name), alias)
    }

    /// A relation by its alias, or else by its own name, with which its schema may be named.
    fn aliased(
        &mut self,
        relation: Relation,
        (schema, name): (Option<&str>, &str),
        alias: Option<&ast::TableAlias>,
    ) -> Result<Joined> {
        let mut columns = relation.columns;
        let Some(alias) = alias else {
            let mut scope = scope_of(name, columns);
            scope.columns.iter_mut().for_each(|column| column.schema = schema.map(str::to_string));
            return Ok((relation.plan, scope));
        };
        let known_as = folded(&alias.name);
        rename(&mut columns, &column_names(alias), &known_as)?;
        Ok((relation.plan, scope_of(&known_as, columns)))
    }

    fn join(&mut self, left: Joined, right: Item, operator: &ast::JoinOperator) -> Result<Joined> {
        use ast::JoinOperator as J;
        let (join_type, constraint) = match operator {
            J::Join(constraint) | J::Inner(constraint) => (JoinType::Inner, constraint),
            J::CrossJoin(constraint) => (JoinType::Inner, constraint),
            J::Left(constraint) | J::LeftOuter(constraint) => (JoinType::Left, constraint),
            J::Right(constraint) | J::RightOuter(constraint) => (JoinType::Right, constraint),
            J::FullOuter(constraint) => (JoinType::Full, constraint),
            _ => return Err(unsupported("this kind of join is not supported")),
        };
        let (mut left_plan, mut left_scope) = left;
        let mut right = right;
        if self.has_whole_rows {
            if matches!(join_type, JoinType::Right | JoinType::Full) {
                left_plan = self.marked(left_plan, &mut left_scope)?;
            }
            if let (
                JoinType::Left | JoinType::Full,
                Item::Relation { plan, scope } | Item::Lateral { plan, scope },
            ) = (join_type, &mut right)
            {
                *plan = self.marked(plan.clone(), scope)?;
            }
        }
        let right_scope = match &right {
            Item::Relation { scope, .. } | Item::Lateral { scope, .. } | Item::Arrays { scope, .. } => {
                scope.clone()
            }
        };
        left_scope.refuse_twice(&right_scope)?;
        let (scope, condition) = self.constraint(left_scope, right_scope, constraint, join_type)?;
        let is_true = condition.is_none();
        let plan = match right {
            Item::Relation { plan, .. } => join_plans(left_plan, plan, join_type, condition)?,
            Item::Lateral { plan, .. } => {
                if !matches!(join_type, JoinType::Inner | JoinType::Left) {
                    return Err(Error::new(
                        SqlState(*b"42P10"),
                        "The combining JOIN type must be INNER or LEFT for a LATERAL reference.",
                    ));
                }
                let row = match join_type {
                    JoinType::Inner => super::lateral_row::beside(&left_plan, &plan).map_err(inbound)?,
                    _ => None,
                };
                match (row, condition) {
                    (Some(plan), None) => plan,
                    (Some(plan), Some(condition)) => LogicalPlanBuilder::from(plan)
                        .filter(condition)
                        .and_then(LogicalPlanBuilder::build)
                        .map_err(inbound)?,
                    (None, condition) => {
                        let nested = LogicalPlan::Subquery(super::subquery::nested(plan));
                        join_plans(left_plan, nested, join_type, condition)?
                    }
                }
            }
            Item::Arrays { arrays, .. } => {
                let plan = spread(left_plan, arrays, join_type == JoinType::Left && is_true)?;
                match condition {
                    None => plan,
                    Some(condition) if join_type == JoinType::Inner => LogicalPlanBuilder::from(plan)
                        .filter(condition)
                        .and_then(LogicalPlanBuilder::build)
                        .map_err(inbound)?,
                    Some(_) => {
                        return Err(unsupported(
                            "an outer join with a function of the other side's columns has to be ON true",
                        ));
                    }
                }
            }
        };
        Ok((plan, scope))
    }

    /// A plan with a column that tells whether its row is there, behind an outer join that may not have found it.
    fn marked(&mut self, plan: LogicalPlan, scope: &mut Scope) -> Result<LogicalPlan> {
        let mut columns =
            scope.columns.iter_mut().filter(|column| column.column.is_there.is_none()).peekable();
        if columns.peek().is_none() {
            return Ok(plan);
        }
        let column = self.fresh_column();
        let there = Expr::Literal(datafusion::scalar::ScalarValue::Boolean(Some(true)), None);
        let mut expressions: Vec<Expr> = plan.schema().iter().map(Expr::from).collect();
        expressions.push(there.alias(column.name.clone()));
        columns.for_each(|own| own.column.is_there = Some(column.clone()));
        LogicalPlanBuilder::from(plan)
            .project(expressions)
            .and_then(LogicalPlanBuilder::build)
            .map_err(inbound)
    }

    fn constraint(
        &mut self,
        left: Scope,
        right: Scope,
        constraint: &ast::JoinConstraint,
        join_type: JoinType,
    ) -> Result<(Scope, Option<Expr>)> {
        let names: Vec<String> = match constraint {
            ast::JoinConstraint::None => Vec::new(),
            ast::JoinConstraint::On(condition) => {
                let scope = left.join(right);
                self.levels.push(Level {
                    scope: scope.clone(),
                    clause: Some("JOIN conditions"),
                    ..Level::default()
                });
                let bound = self.truth(condition, "JOIN/ON");
                self.levels.pop();
                let bound = bound?;
                let is_true =
                    matches!(&bound, Expr::Literal(datafusion::scalar::ScalarValue::Boolean(Some(true)), _));
                return Ok((scope, if is_true { None } else { Some(bound) }));
            }
            ast::JoinConstraint::Using(names) => {
                names.iter().filter_map(|name| parts_of(name).last().cloned()).collect()
            }
            ast::JoinConstraint::Natural => left.names_in_common(&right),
        };
        let (mut left, mut right) = (left, right);
        let mut condition: Option<Expr> = None;
        let mut merged = Vec::new();
        for name in names {
            let l = left.give_to_merged(&name, Side::Left)?;
            let r = right.give_to_merged(&name, Side::Right)?;
            let common = self.common_of([&l, &r], "JOIN/USING")?;
            let equal = self.operator(l.clone(), "=", r.clone())?.expr;
            condition = Some(match condition {
                None => equal,
                Some(before) => plain_binary(before, Operator::And, equal),
            });
            let one = match join_type {
                JoinType::Right => self.coerce(r, &common)?,
                JoinType::Full => {
                    let (l, r) = (self.coerce(l, &common)?, self.coerce(r, &common)?);
                    Typed::new(datafusion::functions::core::expr_fn::coalesce(vec![l.expr, r.expr]), common)
                }
                // Of two that are equal, the one that is of the common type already.
                JoinType::Inner if l.sql_type != common && r.sql_type == common => r,
                _ => self.coerce(l, &common)?,
            };
            merged.push((name, one));
        }
        Ok((left.join_merged(right, merged), condition))
    }
}

/// Whether a join is only of what stands between its commas: its columns' names, or which rows it keeps.
fn stands_apart(join: &ast::Join) -> bool {
    use ast::JoinOperator as J;
    match &join.join_operator {
        J::Right(_) | J::RightOuter(_) | J::FullOuter(_) => true,
        J::Join(constraint) | J::Inner(constraint) | J::Left(constraint) | J::LeftOuter(constraint) => {
            matches!(constraint, ast::JoinConstraint::Using(_) | ast::JoinConstraint::Natural)
        }
        _ => false,
    }
}

fn join_plans(
    left: LogicalPlan,
    right: LogicalPlan,
    kind: JoinType,
    on: Option<Expr>,
) -> Result<LogicalPlan> {
    let builder = LogicalPlanBuilder::from(left);
    let builder = match (kind, on) {
        (JoinType::Inner, None) => builder.cross_join(right),
        (kind, None) => {
            let always = Expr::Literal(datafusion::scalar::ScalarValue::Boolean(Some(true)), None);
            builder.join_on(right, kind, [always])
        }
        (kind, on) => builder.join_on(right, kind, on),
    };
    builder.and_then(LogicalPlanBuilder::build).map_err(inbound)
}

pub(super) fn column_names(alias: &ast::TableAlias) -> Vec<String> {
    alias.columns.iter().map(|column| folded(&column.name)).collect()
}

fn no_table(path: &[String]) -> Error {
    Error::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", path.join(".")))
}
