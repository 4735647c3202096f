//! An UPDATE that gives rows other primary keys: all of them are taken out, then put in, so that keys may change
//! places. What that means to the rows that refer to them.

use super::binder::Binder;
use super::bound::Bound;
use super::scope::Relation;
use super::stop::{Bind, beyond};
use super::tree;
use super::write::Afterwards;
use crate::lowered::Fate;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::Expression;
use fabius_sql_meaning::catalog::{ForeignKey, ReferentialAction, Table, Until};
use std::sync::Arc;

/// Rows that get other keys.
pub(super) struct Moving<'m, 'a> {
    pub(super) table: &'m Arc<Table>,
    /// The list of their keys and new values.
    pub(super) list: &'m str,
    /// What the statement calls the table.
    pub(super) alias: Option<String>,
    /// The key that an element of the list has.
    pub(super) key: &'m dyn Fn(&str) -> Vec<Expression>,
    /// The columns that the statement sets, and what to.
    pub(super) assignments: &'m Assignments<'m, 'a>,
    /// The reference along which the change comes: what it refers to changes with the rows.
    pub(super) along: Option<&'m ForeignKey>,
}

type Assignments<'m, 'a> = dyn Fn(&mut Binder<'a>, &str) -> Bind<Vec<(usize, Bound)>> + 'm;

impl<'a> Binder<'a> {
    /// Takes the rows out, then puts them in with their new keys.
    pub(super) fn move_rows(
        &mut self,
        moving: &Moving<'_, 'a>,
        after: &mut Afterwards<'_, '_, 'a>,
    ) -> Bind<()> {
        let table = moving.table;
        let moved = self.name("moved");
        let types = super::constraint::types(table);
        let columns = table.columns.iter().zip(&types).enumerate();
        let columns = columns.map(|(at, (column, data_type))| {
            tree::field(&format!("c{}", at + 1), *data_type, column.nullable)
        });
        self.emit(tree::declare_list(&moved, columns.collect()));
        self.second_pass(moving.list, |binder, each| {
            let (block, ()) = binder.nested(|binder| binder.take_out(moving, each, &moved))?;
            let row = tree::keyed_row(&table.storage, (moving.key)(each));
            binder.emit(tree::when(tree::exists(row), block, None));
            Ok(())
        })?;
        self.second_pass(&moved, |binder, each| {
            let mut values = Vec::new();
            let mut columns = Vec::new();
            for (at, (column, data_type)) in table.columns.iter().zip(&types).enumerate() {
                let field = tree::column(tree::loop_row(each), &format!("c{}", at + 1), false);
                columns.push((column.name.clone(), field.clone()));
                values.push(Bound::held_as(field, column.sql_type.clone(), column.nullable, *data_type));
            }
            let changed = vec![true; table.columns.len()];
            binder.check_change(table, &values, &changed, moving.along)?;
            binder.emit(tree::insert(&table.storage, columns));
            binder.note_late_keys(table, &values, &changed)?;
            let key = binder.key_among(table, &values)?;
            let relation = Binder::keyed(table, moving.alias.clone(), key);
            binder.with_scope(vec![relation], |binder| binder.afterwards(after))
        })
    }

    /// Adds a row with its new values to a list, and deletes it.
    fn take_out(&mut self, moving: &Moving<'_, 'a>, each: &str, moved: &str) -> Bind<()> {
        let table = moving.table;
        let key = (moving.key)(each);
        let relation: Relation = Binder::keyed(table, moving.alias.clone(), key.clone());
        let old = self.current(&relation)?;
        let mut new = old.clone();
        let mut changed = vec![false; table.columns.len()];
        for (column, value) in (moving.assignments)(self, each)? {
            new[column] = if table.has_generated() { self.settle(value)? } else { value };
            changed[column] = true;
        }
        self.generate(table, &mut new, &mut changed)?;
        let new = new.into_iter().zip(&table.columns);
        let new: Vec<Bound> =
            new.map(|(value, column)| self.not_null(table, column, value, None)).collect::<Bind<_>>()?;
        self.key_changes(table, &old, &new)?;
        self.emit(tree::append(moved, new.into_iter().map(|value| value.expression).collect()));
        self.emit(tree::delete(tree::keyed_row(&table.storage, key)));
        Ok(())
    }

    /// What a changed key means to the rows that refer to it.
    pub(super) fn key_changes(&mut self, table: &Arc<Table>, old: &[Bound], new: &[Bound]) -> Bind<()> {
        for (child, key) in self.referrers(table) {
            let places = super::constraint::places(table, &key.parent_columns)?;
            let mut differs = Vec::new();
            let mut values = Vec::new();
            for place in &places {
                let (before, now) = (self.settle(old[*place].clone())?, self.settle(new[*place].clone())?);
                differs.push(tree::binary(Op::NotEqual, before.expression, now.expression.clone()));
                values.push(now);
            }
            let (block, ()) = self.nested(|binder| match key.on_update {
                ReferentialAction::NoAction | ReferentialAction::Restrict => {
                    binder.refuse_change(table, &child, &key, old)
                }
                _ if binder.catalog.waits(&child, &key.name) == Some(Until::Statement) => {
                    let mut columns = binder.referred_columns(table, &child, &key, old)?;
                    columns.extend(binder.referred_columns(table, &child, &key, new)?);
                    binder.postpone(&child, &key, Fate::Changed, &columns)
                }
                _ if child.name == table.name => beyond("a changed key that the same table refers to"),
                action => {
                    let columns = binder.referred_columns(table, &child, &key, old)?;
                    let new = (action == ReferentialAction::Cascade).then_some(values.as_slice());
                    binder.follow((table, &child), &key, &columns, (action, new))
                }
            })?;
            self.emit(tree::when(tree::any(differs), block, None));
        }
        Ok(())
    }
}
