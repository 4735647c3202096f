//! UPDATE.

use super::binder::Binder;
use super::bound::Bound;
use super::condition::has_subquery;
use super::from::Joined;
use super::generated::refuse_updated;
use super::key_change::Moving;
use super::row_body::RowBody;
use super::scope::{Relation, Row};
use super::stop::{Bind, Place, beyond};
use super::tree;
use super::untyped::is_default;
use super::write::Afterwards;
use fabius_program::syntax::tree::Expression;
use fabius_sql_meaning::analysis;
use fabius_sql_meaning::analysis::row_of;
use fabius_sql_meaning::catalog::{Column, ForeignKey, Table, folded};
use fabius_sql_syntax::tokens::Tokens;
use fabius_sql_syntax::written::written;
use sqlparser::ast::{self, AssignmentTarget, Expr, TableFactor};
use std::sync::Arc;

impl<'a> Binder<'a> {
    pub(super) fn update(
        &mut self,
        update: &ast::Update,
        count: Option<&str>,
        returning: &mut RowBody<'_, 'a>,
    ) -> Bind<bool> {
        if update.or.is_some()
            || update.output.is_some()
            || !update.order_by.is_empty()
            || update.limit.is_some()
        {
            return beyond("an UPDATE of this form");
        }
        let TableFactor::Table { name, alias, args: None, .. } = &update.table.relation else {
            return beyond("an UPDATE of this form");
        };
        if !update.table.joins.is_empty() {
            return beyond("an UPDATE of a join");
        }
        let table = self.target(name, &analysis::needs_of_update(update))?;
        let alias = alias.as_ref().map(|alias| folded(&alias.name));
        let others = match &update.from {
            None => &[][..],
            Some(ast::UpdateTableFromKind::AfterSet(from) | ast::UpdateTableFromKind::BeforeSet(from)) => {
                from
            }
        };
        self.reads.insert(table.name.clone());
        let (scope, joined) = self.relations(Some(Relation::table(&table, alias)), others)?;
        let mut targets = Vec::new();
        for assignment in &update.assignments {
            self.assignment(&table, assignment, &mut targets)?;
        }
        for (at, (column, _, place)) in targets.iter().enumerate() {
            if targets[..at].iter().any(|(other, ..)| other == column) {
                let name = &table.columns[*column].name;
                let message = format!("multiple assignments to same column \"{name}\"");
                return self.fail(b"42601", message, *place);
            }
        }
        let mut after = Afterwards { count, items: update.returning.as_deref(), body: returning };
        let relations = scope.relations.clone();
        self.with_names(scope, |binder| {
            binder.update_rows(&table, &relations, &joined, update.selection.as_ref(), &targets, &mut after)
        })
    }

    /// `column = value`, `(a, b) = (x, y)`.
    pub(super) fn assignment(
        &mut self,
        table: &Table,
        assignment: &ast::Assignment,
        targets: &mut Vec<(usize, Expr, Place)>,
    ) -> Bind<()> {
        match &assignment.target {
            AssignmentTarget::ColumnName(name) => {
                let column = self.target_column(table, name)?;
                self.assign(table, column, assignment.value.clone(), Place::of(name), targets)?;
            }
            AssignmentTarget::Tuple(names) => {
                let Some(values) = parts(&assignment.value) else {
                    return beyond("a row that is computed in SET");
                };
                if values.len() != names.len() {
                    let message = "number of columns does not match number of values";
                    return self.fail(b"42601", message, Place::of(&assignment.value));
                }
                for (name, value) in names.iter().zip(values) {
                    let column = self.target_column(table, name)?;
                    self.assign(table, column, value, Place::of(name), targets)?;
                }
            }
        }
        Ok(())
    }

    fn assign(
        &self,
        table: &Table,
        column: usize,
        value: Expr,
        place: Place,
        targets: &mut Vec<(usize, Expr, Place)>,
    ) -> Bind<()> {
        let definition = &table.columns[column];
        if !is_default(&value)
            && let Err(error) = refuse_updated(definition)
        {
            return Err(self.error(error, place));
        }
        targets.push((column, value, place));
        Ok(())
    }

    fn update_rows(
        &mut self,
        table: &Arc<Table>,
        relations: &[Relation],
        joined: &[Joined],
        selection: Option<&Expr>,
        targets: &[(usize, Expr, Place)],
        after: &mut Afterwards<'_, '_, 'a>,
    ) -> Bind<bool> {
        let mut columns: Vec<usize> = targets.iter().map(|(column, ..)| *column).collect();
        columns.extend(self.generated_from(table, &columns)?);
        let key = Relation::key_columns(table);
        let moves = columns.iter().any(|column| key.contains(&table.columns[*column].name));
        let rereads = targets.iter().any(|(_, value, _)| has_subquery(value))
            || selection.is_some_and(has_subquery)
            || relations[1..].iter().any(|other| other.table.as_ref().is_some_and(|t| t.name == table.name))
            || self.referrers(table).iter().any(|(child, _)| child.name == table.name);
        if relations.len() == 1 && !moves {
            let mark = self.mark();
            let mut from = self.from(joined, selection);
            let mut point = true;
            let built = self.loops(&mut from, &mut |binder| {
                point &= matches!(binder.scope().relations[0].row, Row::Key { .. });
                let assignments = binder.assigned_values(table, targets)?;
                let relation = binder.scope().relations[0].clone();
                binder.change_row(table, &relation, assignments, None)?;
                binder.afterwards(after)
            });
            built?;
            let crosses = from.found.indexes.iter().flatten().any(|column| columns.contains(column));
            let is_single = from.found.is_single && point;
            if is_single || !rereads && !crosses {
                return Ok(is_single);
            }
            self.back_to(mark);
        }
        self.update_in_two_passes(table, relations, joined, selection, targets, moves, after)?;
        Ok(false)
    }

    /// Collects the keys and new values first, and writes after the loop.
    #[allow(clippy::too_many_arguments)] // the parts of an UPDATE
    fn update_in_two_passes(
        &mut self,
        table: &Arc<Table>,
        relations: &[Relation],
        joined: &[Joined],
        selection: Option<&Expr>,
        targets: &[(usize, Expr, Place)],
        moves: bool,
        after: &mut Afterwards<'_, '_, 'a>,
    ) -> Bind<()> {
        let list = self.name("changes");
        let mut from = self.from(joined, selection);
        let mut fields: Vec<(fabius_value::DataType, bool)> = Vec::new();
        let mut sql_types = Vec::new();
        let others_returned = after.items.is_some() && relations.len() > 1;
        if others_returned {
            return beyond("RETURNING of an UPDATE with FROM");
        }
        let (block, ()) = self.nested(|binder| {
            binder.loops(&mut from, &mut |binder| {
                let relation = binder.scope().relations[0].clone();
                let mut row = relation.key()?;
                let assignments = binder.assigned_values(table, targets)?;
                fields =
                    super::scope::key_types(table).into_iter().map(|data_type| (data_type, false)).collect();
                sql_types.clear();
                for (_, value) in assignments {
                    let value = binder.settle(value)?;
                    fields.push((value.data_type, value.nullable));
                    sql_types.push(value.sql_type.clone());
                    row.push(value.expression);
                }
                binder.emit(tree::append(&list, row));
                Ok(())
            })
        })?;
        // Each row is changed once: another row that matches it would change it again.
        if relations.len() > 1 && !from.found.others_are_unique {
            return beyond("an UPDATE whose rows may have several partners");
        }
        if fields.is_empty() {
            return Ok(());
        }
        let named = fields.iter().enumerate();
        let named = named
            .map(|(at, (data_type, nullable))| tree::field(&format!("k{}", at + 1), *data_type, *nullable));
        self.emit(tree::declare_list(&list, named.collect()));
        self.block.extend(block);
        let width = super::scope::key_types(table).len();
        let field =
            |each: &str, at: usize| tree::column(tree::loop_row(each), &format!("k{}", at + 1), false);
        let alias = relations[0].schema.is_none().then(|| relations[0].name.clone());
        let key = |each: &str| -> Vec<Expression> { (0..width).map(|at| field(each, at)).collect() };
        let assignments = |_: &mut Binder<'a>, each: &str| {
            let values = targets.iter().zip(&sql_types).enumerate();
            Ok(values
                .map(|(at, ((column, ..), sql_type))| {
                    let (data_type, nullable) = fields[width + at];
                    let value =
                        Bound::held_as(field(each, width + at), sql_type.clone(), nullable, data_type);
                    (*column, value)
                })
                .collect())
        };
        if !moves {
            return self.second_pass(&list, |binder, each| {
                let relation = Binder::keyed(table, alias, key(each));
                let assignments = assignments(binder, each)?;
                binder.with_scope(vec![relation.clone()], |binder| {
                    binder.change_row(table, &relation, assignments, None)?;
                    binder.afterwards(after)
                })
            });
        }
        self.move_rows(
            &Moving { table, list: &list, alias, key: &key, assignments: &assignments, along: None },
            after,
        )
    }

    /// The new values of a SET, in the row that is reached.
    pub(super) fn assigned_values(
        &mut self,
        table: &Arc<Table>,
        targets: &[(usize, Expr, Place)],
    ) -> Bind<Vec<(usize, Bound)>> {
        let mut assignments = Vec::new();
        for (column, value, _) in targets {
            let definition = &table.columns[*column];
            let value = match is_default(value) {
                true => self.default_value(definition)?,
                false => self.operand(value)?,
            };
            assignments.push((*column, self.stored(value, &definition.name, &definition.sql_type)?));
        }
        Ok(assignments)
    }

    /// Changes a row that is reached, whose key stays.
    pub(super) fn change_row(
        &mut self,
        table: &Arc<Table>,
        relation: &Relation,
        assignments: Vec<(usize, Bound)>,
        along: Option<&ForeignKey>,
    ) -> Bind<()> {
        let old = self.current(relation)?;
        let mut new = old.clone();
        let mut changed = vec![false; table.columns.len()];
        for (column, value) in &assignments {
            new[*column] = value.clone();
            changed[*column] = true;
        }
        let is_checked =
            !table.checks.is_empty() || along.map_or(!table.foreign_keys.is_empty(), |key| key.shares(table));
        if is_checked || table.has_generated() || table.late_keys().next().is_some() {
            for (column, value) in &assignments {
                // What a check or a generated column reads is what is stored.
                if value.is_null() {
                    new[*column] = value.clone();
                } else {
                    new[*column] = self.settle(value.clone())?;
                }
            }
        }
        let generated = self.generate(table, &mut new, &mut changed)?;
        if is_checked {
            self.check_change(table, &new, &changed, along)?;
        }
        self.note_late_keys(table, &new, &changed)?;
        let referred = self.referrers(table).into_iter().any(|(_, key)| {
            key.parent_columns.iter().any(|name| {
                table.columns.iter().position(|column| column.name == *name).is_some_and(|at| changed[at])
            })
        });
        if referred {
            self.key_changes(table, &old, &new)?;
        }
        let mut columns = Vec::new();
        let given = assignments.iter().map(|(column, _)| column);
        let given = given.filter(|column| table.columns[**column].generated.is_none());
        for column in given.chain(&generated) {
            let value = new[*column].clone();
            let value = match value.nullable {
                true => self.not_null(table, &table.columns[*column], value, None)?.expression,
                false => self.settled(value)?,
            };
            columns.push((table.columns[*column].name.clone(), value));
        }
        let row = match &relation.row {
            Row::Loop(row) => tree::loop_row(row),
            Row::Key { key, .. } => tree::keyed_row(&table.storage, key.clone()),
            _ => return beyond("a row that is not reached"),
        };
        self.emit(tree::update(row, columns));
        Ok(())
    }

    /// A value that its column takes, null refused; `words` are the row in the error's detail.
    pub(super) fn not_null(
        &mut self,
        table: &Table,
        column: &Column,
        value: Bound,
        words: Option<&Expression>,
    ) -> Bind<Bound> {
        let value = self.settle(value)?;
        if column.nullable || !value.nullable && !value.is_null() {
            return Ok(value);
        }
        let name = self.name("v");
        let ty = tree::scalar_type(value.data_type, true);
        self.emit(tree::declare(&name, false, Some(ty), value.expression));
        let value = Bound { expression: tree::variable(name), ..value };
        let message = not_null_message(table, column);
        let there = tree::is_null(value.expression.clone(), true);
        self.emit(tree::require(there, b"23502", message, words.cloned()));
        // Known to be there from here on.
        let value = value.or_some_value();
        Ok(if value.sql_type.is_kept_as_text() { self.kept_text(value) } else { value })
    }
}

/// PostgreSQL's words for a null where none may be.
pub(super) fn not_null_message(table: &Table, column: &Column) -> String {
    format!(
        "null value in column \"{}\" of relation \"{}\" violates not-null constraint",
        column.name, table.name.name
    )
}

/// The values of a row that is written as `(x, y)`, `ROW(x, y)` or `(SELECT x, y ...)`: of a query, each is one of
/// its own.
fn parts(value: &Expr) -> Option<Vec<Expr>> {
    if let Some(values) = row_of(value) {
        return Some(values.to_vec());
    }
    match value {
        Expr::Nested(inner) => parts(inner).or_else(|| Some(vec![(**inner).clone()])),
        Expr::Function(call) if call.name.to_string().eq_ignore_ascii_case("row") => {
            let ast::FunctionArguments::List(list) = &call.args else { return None };
            let values = list.args.iter().map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) => Some(value.clone()),
                _ => None,
            });
            values.collect()
        }
        Expr::Subquery(query) => {
            let ast::SetExpr::Select(select) = &*query.body else { return None };
            let one = |item: &ast::SelectItem| {
                let is_value =
                    matches!(item, ast::SelectItem::UnnamedExpr(_) | ast::SelectItem::ExprWithAlias { .. });
                let mut query = query.clone();
                let mut select = select.clone();
                select.projection = vec![item.clone()];
                query.body = Box::new(ast::SetExpr::Select(select));
                is_value.then_some(Expr::Subquery(query))
            };
            // An aggregate makes one row of all, also for the values beside it.
            if select.projection.iter().any(|item| item.to_string().contains('(')) {
                return parts_of_row_of(query, select.projection.len());
            }
            select.projection.iter().map(one).collect()
        }
        _ => None,
    }
}

/// The columns of a query's row, each as a query of its own.
fn parts_of_row_of(query: &ast::Query, columns: usize) -> Option<Vec<Expr>> {
    let names: Vec<String> = (1..=columns).map(|at| format!("c{at}")).collect();
    let part = |name: &String| {
        let text = format!("(SELECT {name} FROM ({}) AS part({}))", written(query), names.join(", "));
        Tokens::of(&text).and_then(|tokens| tokens.read(|parser| parser.parse_expr())).ok()
    };
    names.iter().map(part).collect()
}
