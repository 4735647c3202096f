//! `MERGE`: a query joins the source with the target and says of each row what is to be done; programs do it.
//!
//! ```text
//! MERGE INTO t USING s ON c WHEN MATCHED AND p THEN UPDATE SET a = x WHEN NOT MATCHED THEN INSERT VALUES (y)
//!   1. SELECT t.key, action, CASE WHEN action = 0 THEN x END, CASE WHEN action = 1 THEN y END
//!      FROM s LEFT JOIN t ON c,
//!           LATERAL (SELECT CASE WHEN t.key IS NOT NULL AND p THEN 0 WHEN t.key IS NULL THEN 1 END AS action)
//!   2. rows of the action 0 are updated, those of 1 are inserted
//! ```
//!
//! Rows are deleted first, then updated, then inserted, so that what one row gives up another can have; PostgreSQL goes
//! by the rows of the join, whose order nothing says. A row that two rows of the source would change is an error (SQL,
//! 14.12; PostgreSQL 15, MERGE). References to the target wait until all is done.

use super::assigned::{assigned, not_supported, stored_types};
use super::held_rows::HeldRows;
use super::row_changes::{Target, name_in_from, target};
use super::write_query::convert;
use super::{Connection, Response};
use fabius::Database;
use fabius_program::syntax::Source;
use fabius_sql_meaning::analysis::InsertTargets;
use fabius_sql_meaning::catalog::{Catalog, Column, ConstraintId, ObjectName, Relation, Until, folded};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_program::bind::{self, Bind, RowsOf, lower_delete_rows, lower_update_rows, refuse_updated};
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_query::{self as query, QueryPlan};
use fabius_sql_syntax::part;
use fabius_sql_syntax::privilege::Privilege;
use fabius_sql_syntax::spelling::NOTHING;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast::helpers::attached_token::AttachedToken;
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::collections::{BTreeSet, HashSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;

/// How a `MERGE` runs.
pub(crate) struct Merge {
    pub(super) query: QueryPlan,
    pub(super) table: ObjectName,
    /// So many values at the beginning of a row are the target's key; then comes the action's number.
    key: usize,
    actions: Vec<Action>,
    /// References that wait until all actions have run.
    references: BTreeSet<ConstraintId>,
}

/// What the relation and the column are called that say what is to be done with a row.
const ACTION: &str = " action";

/// What is done with rows of an action, in the order in which actions come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Delete,
    Update,
    Insert,
    Nothing,
}

/// What one `WHEN` does.
struct Action {
    kind: Kind,
    /// The program, but for [`Kind::Nothing`].
    write: Option<BulkWrite>,
    /// Where the values that it writes are in a row.
    values: Range<usize>,
}

/// What one `WHEN` does, before the query is planned.
struct Wanted {
    kind: Kind,
    /// Columns that are given values.
    places: Vec<usize>,
    values: Range<usize>,
}

impl Merge {
    /// Plans it, perhaps with common table expressions.
    ///
    /// # Errors
    /// What is wrong with it, or what no program can do of it.
    pub(super) fn plan(
        database: &Database,
        catalog: &Arc<Catalog>,
        (with, merge): (Option<&ast::With>, &ast::Merge),
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Bind<Merge> {
        if with.is_some_and(|with| with.recursive) {
            let message = "WITH RECURSIVE is not supported for MERGE statement";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message).into());
        }
        if let ast::TableFactor::Table { name, .. } = &merge.table
            && let Some(Relation::View(view)) = catalog.relation(name)?
        {
            let message = format!("cannot execute MERGE on relation \"{}\"", view.name.name);
            let error = Error::new(SqlState::NOT_SUPPORTED, message);
            return Err(error.with_detail("This operation is not supported for views.").into());
        }
        let target = target(catalog, &part::alone(merge.table.clone()), &privileges(merge))?;
        let source = name_in_from(&merge.source).ok();
        let key = target.key.len();
        let matched = ast::Expr::IsNotNull(Box::new(target.key[0].clone()));
        let mut arms: Vec<(ast::Expr, ast::Expr)> = Vec::new();
        let mut values: Vec<ast::Expr> = Vec::new();
        let mut wanted = Vec::new();
        refuse_unreachable(&merge.clauses)?;
        for clause in &merge.clauses {
            let is_matched = clause.clause_kind == ast::MergeClauseKind::Matched;
            let first = key + 1 + values.len();
            let (kind, places, mut given) = action_of(&clause.action, &target)?;
            let mut holds = clause.predicate.clone().map(|holds| ast::Expr::Nested(Box::new(holds)));
            if !is_matched {
                let mut of_source = OfSource { target: &target, source: source.as_ref(), depth: 0 };
                for expression in given.iter_mut().chain(&mut holds) {
                    if let ControlFlow::Break(error) = expression.visit(&mut of_source) {
                        return Err(error.into());
                    }
                }
            }
            let stands =
                if is_matched { matched.clone() } else { ast::Expr::IsNull(Box::new(target.key[0].clone())) };
            let condition = match holds {
                Some(holds) => part::binary(stands, ast::BinaryOperator::And, holds),
                None => stands,
            };
            arms.push((condition, number(wanted.len())));
            wanted.push(Wanted { kind, places, values: first..first + given.len() });
            values.append(&mut given);
        }
        let action = part::column(ACTION, ACTION);
        let of_action = |at: usize| part::binary(action.clone(), ast::BinaryOperator::Eq, number(at));
        let guarded = wanted.iter().enumerate().flat_map(|(at, one)| one.values.clone().map(move |_| at));
        let values: Vec<_> =
            guarded.zip(values).map(|(at, value)| case(vec![(of_action(at), value)])).collect();
        let items = target.key.iter().cloned().chain([action.clone()]).chain(values);
        let items = items.map(ast::SelectItem::UnnamedExpr).collect();
        let joined = ast::Join {
            relation: target.relation.relation.clone(),
            global: false,
            join_operator: ast::JoinOperator::LeftOuter(ast::JoinConstraint::On((*merge.on).clone())),
        };
        let chosen = ast::TableFactor::Derived {
            lateral: true,
            subquery: Box::new(part::select(None, vec![part::named(case(arms), ACTION)], Vec::new(), None)?),
            alias: Some(part::called(ACTION)),
            sample: None,
        };
        let chosen = ast::Join {
            relation: chosen,
            global: false,
            join_operator: ast::JoinOperator::CrossJoin(ast::JoinConstraint::None),
        };
        let from = ast::TableWithJoins { relation: merge.source.clone(), joins: vec![joined, chosen] };
        let query = query::plan(&part::select(with, items, vec![from], None)?, catalog, types, session)?;
        let references = references_to(catalog, &target, &wanted);
        let catalog = &catalog.with_waiting(&references);
        let actions = wanted
            .into_iter()
            .map(|wanted| wanted.with_program(database, catalog, (&target, &query), types))
            .collect::<Bind<_>>()?;
        Ok(Merge { query, table: target.table.name.clone(), key, actions, references })
    }

    /// Tables that it reads.
    pub(super) fn reads(&self) -> impl Iterator<Item = &ObjectName> {
        self.query.reads.iter().chain(self.programs().flat_map(|write| &write.lowered.reads))
    }

    /// Tables that it writes.
    pub(super) fn writes(&self) -> impl Iterator<Item = &ObjectName> {
        self.programs().flat_map(|write| &write.lowered.writes).chain([&self.table])
    }

    /// Whether it does not only delete rows.
    pub(super) fn adds_rows(&self) -> bool {
        self.actions.iter().any(|action| matches!(action.kind, Kind::Update | Kind::Insert))
    }

    fn programs(&self) -> impl Iterator<Item = &BulkWrite> {
        self.actions.iter().filter_map(|action| action.write.as_ref())
    }

    /// The rows of each action, as its program takes them.
    ///
    /// # Errors
    /// `21000` if a row of the target would be changed twice.
    fn sorted(&self, rows: Vec<Vec<Value>>) -> Result<Vec<Vec<Vec<Value>>>> {
        let mut of_actions: Vec<Vec<Vec<Value>>> = self.actions.iter().map(|_| Vec::new()).collect();
        let mut changed = HashSet::new();
        for mut row in rows {
            let at = row.get(self.key).and_then(Value::as_integer).and_then(|at| usize::try_from(at).ok());
            let Some((at, action)) = at.and_then(|at| Some((at, self.actions.get(at)?))) else { continue };
            let values = row.drain(action.values.clone()).collect();
            row.truncate(self.key);
            match action.kind {
                Kind::Nothing => continue,
                Kind::Insert => row = values,
                Kind::Delete | Kind::Update => {
                    if !changed.insert(format!("{row:?}")) {
                        return Err(Error::new(
                            SqlState(*b"21000"),
                            "MERGE command cannot affect row a second time",
                        )
                        .with_hint("Ensure that not more than one source row matches any one target row."));
                    }
                    row.extend::<Vec<Value>>(values);
                }
            }
            of_actions[at].push(row);
        }
        Ok(of_actions)
    }
}

impl Wanted {
    fn with_program(
        self,
        database: &Database,
        catalog: &Catalog,
        (target, query): (&Target, &QueryPlan),
        types: &mut ParameterTypes,
    ) -> Bind<Action> {
        let stored = stored_types(&query.columns[self.values.clone()], &self.places, &target.table);
        let rows = RowsOf {
            table: &target.table,
            alias: target.alias.clone(),
            columns: &self.places,
            types: &stored,
            conflict: None,
            found: &[],
            returning: None,
        };
        let source = Arc::new(Source::new("MERGE", "statement"));
        let write = match self.kind {
            Kind::Nothing => None,
            Kind::Insert => Some(BulkWrite::insert(database, catalog, &rows, types)?),
            Kind::Update => {
                let lowered = lower_update_rows(&rows, &source, catalog)?;
                Some(BulkWrite::of(database, lowered, Vec::new(), &stored)?)
            }
            Kind::Delete => {
                let lowered = lower_delete_rows(&rows, &source, catalog)?;
                Some(BulkWrite::of(database, lowered, Vec::new(), &[])?)
            }
        };
        Ok(Action { kind: self.kind, write, values: self.values })
    }
}

/// What a `WHEN` does: the columns that it gives values, and those.
fn action_of(action: &ast::MergeAction, target: &Target) -> Bind<(Kind, Vec<usize>, Vec<ast::Expr>)> {
    let table = &target.table;
    if kind_of(action) == Kind::Nothing {
        return Ok((Kind::Nothing, Vec::new(), Vec::new()));
    }
    match action {
        ast::MergeAction::Delete { .. } => Ok((Kind::Delete, Vec::new(), Vec::new())),
        ast::MergeAction::Update(update) => {
            let (mut places, mut values) = (Vec::new(), Vec::new());
            for assignment in &update.assignments {
                for (name, value) in assigned(assignment)? {
                    let path: Vec<String> =
                        name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect();
                    let place =
                        table.place_of(path.first().filter(|_| path.len() == 1).map_or("", |name| name))?;
                    let column = &table.columns[place];
                    match bind::is_default(&value) {
                        // It follows from the others.
                        true if column.generated.is_some() => continue,
                        true => {}
                        false => refuse_updated(column)?,
                    }
                    if places.contains(&place) {
                        let message = format!("multiple assignments to same column \"{}\"", column.name);
                        return Err(Error::new(SqlState::SYNTAX_ERROR, message).into());
                    }
                    places.push(place);
                    values.push(match bind::is_default(&value) {
                        true => defaulted(&value, column)?,
                        false => bind::typed(&value, column),
                    });
                }
            }
            if values.iter().any(bind::is_default) {
                return Err(not_supported("DEFAULT of a sequence in an UPDATE of MERGE").into());
            }
            Ok((Kind::Update, places, values))
        }
        ast::MergeAction::Insert(insert) => {
            let mut targets = InsertTargets::of(table, &insert.columns).map_err(|(error, _)| error)?;
            let ast::MergeInsertKind::Values(given) = &insert.kind else {
                return Err(not_supported("INSERT ROW in MERGE").into());
            };
            let [row] = given.rows.as_slice() else {
                return Err(Error::new(SqlState::SYNTAX_ERROR, "an INSERT of MERGE inserts one row").into());
            };
            targets.take(row.content.len())?;
            let (mut places, mut values) = (Vec::new(), Vec::new());
            for (place, value) in targets.places.into_iter().zip(row.content.iter()) {
                let column = &table.columns[place];
                // What is left out has its default.
                if !bind::is_default(value) {
                    bind::refuse_given([column].into_iter())?;
                    places.push(place);
                    values.push(bind::typed(value, column));
                }
            }
            Ok((Kind::Insert, places, values))
        }
    }
}

/// What a `MERGE` needs on its target.
fn privileges(merge: &ast::Merge) -> Vec<Privilege> {
    let of_action = |clause: &ast::MergeClause| match kind_of(&clause.action) {
        Kind::Delete => Some(Privilege::Delete),
        Kind::Update => Some(Privilege::Update),
        Kind::Insert => Some(Privilege::Insert),
        Kind::Nothing => None,
    };
    std::iter::once(Privilege::Select).chain(merge.clauses.iter().filter_map(of_action)).collect()
}

/// What is done; `DO NOTHING` is spelled as a value for a column that no table has ([`NOTHING`]).
fn kind_of(action: &ast::MergeAction) -> Kind {
    let is_nothing = |name: &ast::ObjectName| {
        let only = name.0.first().filter(|_| name.0.len() == 1).and_then(|part| part.as_ident());
        only.is_some_and(|name| name.value == NOTHING)
    };
    match action {
        ast::MergeAction::Delete { .. } => Kind::Delete,
        ast::MergeAction::Insert(insert) if insert.columns.iter().any(is_nothing) => Kind::Nothing,
        ast::MergeAction::Insert(_) => Kind::Insert,
        ast::MergeAction::Update(update) => match update.assignments.as_slice() {
            [ast::Assignment { target: ast::AssignmentTarget::ColumnName(name), .. }] if is_nothing(name) => {
                Kind::Nothing
            }
            _ => Kind::Update,
        },
    }
}

/// Refuses what stands behind a `WHEN` of its kind without a condition.
fn refuse_unreachable(clauses: &[ast::MergeClause]) -> Result<()> {
    let mut unconditional = Vec::new();
    for clause in clauses {
        if unconditional.contains(&clause.clause_kind) {
            let message = "unreachable WHEN clause specified after unconditional WHEN clause";
            return Err(Error::new(SqlState::SYNTAX_ERROR, message));
        }
        if clause.predicate.is_none() {
            unconditional.push(clause.clause_kind);
        }
    }
    Ok(())
}

/// References to the target, which are looked at when all has been written, if several actions write.
fn references_to(catalog: &Catalog, target: &Target, wanted: &[Wanted]) -> BTreeSet<ConstraintId> {
    let is_part = catalog.waiting.values().any(|until| *until == Until::Statement);
    if is_part || wanted.iter().filter(|wanted| wanted.kind != Kind::Nothing).count() < 2 {
        return BTreeSet::new();
    }
    let keys =
        catalog.tables.values().flat_map(|child| child.foreign_keys.iter().map(move |key| (child, key)));
    let to_target = keys.filter(|(_, key)| key.parent == target.table.name);
    to_target.map(|(child, key)| (child.oid, key.name.clone())).collect()
}

/// `DEFAULT` as what it stands for, of the column's type.
fn defaulted(value: &ast::Expr, column: &Column) -> Result<ast::Expr> {
    let typed = bind::typed(value, column);
    if bind::is_default(&typed) { Ok(typed) } else { part::cast(typed, &column.sql_type.written()) }
}

fn number(of: usize) -> ast::Expr {
    ast::Expr::value(ast::Value::Number(of.to_string(), false))
}

/// `CASE WHEN condition THEN result ... END`
fn case(arms: Vec<(ast::Expr, ast::Expr)>) -> ast::Expr {
    let conditions = arms.into_iter().map(|(condition, result)| ast::CaseWhen { condition, result });
    ast::Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: conditions.collect(),
        else_result: None,
    }
}

/// Makes names of `WHEN NOT MATCHED`, which sees no row of the target, those of the source.
struct OfSource<'m> {
    target: &'m Target,
    /// What the source is called, if it is one relation.
    source: Option<&'m ast::Ident>,
    /// How many queries are around what is visited.
    depth: usize,
}

impl VisitorMut for OfSource<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Error> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<Error> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        let called = &self.target.called;
        match expression {
            ast::Expr::Identifier(name) if self.target.table.column(&folded(name)).is_some() => {
                let Some(source) = self.source else {
                    let what =
                        format!("the name {name} without a relation in WHEN NOT MATCHED of this source");
                    return ControlFlow::Break(not_supported(&what));
                };
                *expression = ast::Expr::CompoundIdentifier(vec![source.clone(), name.clone()]);
            }
            ast::Expr::CompoundIdentifier(path)
                if path.len() >= 2 && folded(&path[path.len() - 2]) == *called =>
            {
                let message = format!("invalid reference to FROM-clause entry for table \"{called}\"");
                let there = format!("There is an entry for table \"{called}\", but it cannot be referenced");
                let error = Error::new(SqlState(*b"42P01"), message);
                return ControlFlow::Break(
                    error.with_detail(format!("{there} from this part of the query.")),
                );
            }
            ast::Expr::Subquery(query)
            | ast::Expr::Exists { subquery: query, .. }
            | ast::Expr::InSubquery { subquery: query, .. }
                if names_target(query, self.target) =>
            {
                let what = "a subquery in WHEN NOT MATCHED with a name that is a column's of the target";
                return ControlFlow::Break(not_supported(what));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

/// Whether a name in a subquery may be that of a column of the target, of which `WHEN NOT MATCHED` has no row; it may
/// be one of the subquery's own relations as well.
fn names_target(query: &ast::Query, target: &Target) -> bool {
    let found = ast::visit_expressions(query, |part| {
        let is_of_target = match part {
            ast::Expr::Identifier(name) => target.table.column(&folded(name)).is_some(),
            ast::Expr::CompoundIdentifier(path) => {
                path.len() >= 2 && folded(&path[path.len() - 2]) == target.called
            }
            _ => false,
        };
        if is_of_target { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.is_break()
}

impl Connection {
    /// The rows are found first, then written.
    pub(super) async fn merge(
        &mut self,
        catalog: &Arc<Catalog>,
        merge: &Merge,
        parameters: &[Value],
    ) -> Result<Response> {
        let is_alone = self.begin_alone();
        let postpones = self.postpone(merge.references.clone());
        // References wait in it.
        let catalog = if postpones { self.catalog() } else { catalog.clone() };
        let outcome = self.merge_rows(&catalog, merge, parameters).await;
        let outcome = self.end_postponing(postpones, outcome).await;
        let count = self.end_alone(is_alone, outcome).await?;
        Ok(Response::Done { tag: format!("MERGE {count}") })
    }

    async fn merge_rows(
        &mut self,
        catalog: &Arc<Catalog>,
        merge: &Merge,
        parameters: &[Value],
    ) -> Result<i64> {
        let HeldRows { rows, .. } = self.rows_of(&merge.query, parameters).await?;
        let style = self.text_style();
        let rows = merge.sorted(rows)?;
        let mut all: Vec<_> = merge.actions.iter().zip(rows).collect();
        all.sort_by_key(|(action, _)| action.kind);
        let mut count = 0;
        for (action, mut rows) in all {
            let Some(write) = &action.write else { continue };
            let given = &merge.query.columns[action.values.clone()];
            for row in &mut rows {
                let first = row.len() - given.len();
                convert(&mut row[first..], given, &write.types, &style)?;
            }
            count += self.write_rows(catalog, (write, parameters), rows, false).await?.count;
        }
        Ok(count)
    }
}
