//! DELETE.

use super::binder::Binder;
use super::cascade::key_of;
use super::condition::has_subquery;
use super::from::Joined;
use super::row_body::RowBody;
use super::scope::{Relation, Row};
use super::stop::{Bind, beyond};
use super::tree;
use super::write::Afterwards;
use crate::lowered::Fate;
use fabius_sql_meaning::analysis;
use fabius_sql_meaning::catalog::{Table, folded};
use sqlparser::ast::{self, Expr, FromTable, TableFactor};
use std::sync::Arc;

impl<'a> Binder<'a> {
    pub(super) fn delete(
        &mut self,
        delete: &ast::Delete,
        count: Option<&str>,
        returning: &mut RowBody<'_, 'a>,
    ) -> Bind<bool> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [ast::TableWithJoins { relation, joins }] = from.as_slice() else {
            return beyond("a DELETE of this form");
        };
        let TableFactor::Table { name, alias, args: None, .. } = relation else {
            return beyond("a DELETE of this form");
        };
        if !joins.is_empty()
            || !delete.tables.is_empty()
            || delete.output.is_some()
            || !delete.order_by.is_empty()
            || delete.limit.is_some()
        {
            return beyond("a DELETE of this form");
        }
        let table = self.target(name, &analysis::needs_of_delete(delete))?;
        self.reads.insert(table.name.clone());
        let target = Relation::table(&table, alias.as_ref().map(|alias| folded(&alias.name)));
        let (scope, joined) = self.relations(Some(target), delete.using.as_deref().unwrap_or_default())?;
        let mut after = Afterwards { count, items: delete.returning.as_deref(), body: returning };
        let selection = delete.selection.as_ref();
        let relations = scope.relations.clone();
        self.with_names(scope, |binder| {
            binder.delete_rows(&table, &relations, &joined, selection, &mut after)
        })
    }

    fn delete_rows(
        &mut self,
        table: &Arc<Table>,
        relations: &[Relation],
        joined: &[Joined],
        selection: Option<&Expr>,
        after: &mut Afterwards<'_, '_, 'a>,
    ) -> Bind<bool> {
        let own_referrer = self.referrers(table).iter().any(|(child, _)| child.name == table.name);
        let rereads = relations.len() > 1
            || selection.is_some_and(has_subquery)
            || own_referrer
            || self.is_in_circle(table);
        let mut from = self.from(joined, selection);
        if !rereads {
            self.loops(&mut from, &mut |binder| {
                let relation = binder.scope().relations[0].clone();
                binder.delete_row(table, &relation, after)
            })?;
            return Ok(from.found.is_single);
        }
        let list = self.declare_keys(table, "gone");
        let (block, ()) = self.nested(|binder| {
            binder.loops(&mut from, &mut |binder| {
                let key = binder.scope().relations[0].key()?;
                binder.emit(tree::append(&list, key));
                Ok(())
            })
        })?;
        if after.items.is_some() && relations.len() > 1 {
            return beyond("RETURNING of a DELETE with USING");
        }
        self.block.extend(block);
        let alias = relations[0].schema.is_none().then(|| relations[0].name.clone());
        self.await_own(table, Fate::Gone)?;
        self.with_circle(table, |binder| {
            binder.second_pass(&list, |binder, each| {
                let key = key_of(table, each);
                let relation = Binder::keyed(table, alias, key.clone());
                // Several partners name a row several times; a cascade may have taken it.
                let (then, ()) = binder.nested(|binder| {
                    binder.with_scope(vec![relation.clone()], |binder| {
                        binder.delete_row(table, &relation, after)
                    })
                })?;
                binder.emit(tree::when(tree::exists(tree::keyed_row(&table.storage, key)), then, None));
                Ok(())
            })
        })?;
        self.check_own(table)?;
        Ok(false)
    }

    /// Deletes a row that is reached, after what it returns has been read.
    pub(super) fn delete_row(
        &mut self,
        table: &Arc<Table>,
        relation: &Relation,
        after: &mut Afterwards<'_, '_, 'a>,
    ) -> Bind<()> {
        let old = self.current(relation)?;
        self.before_delete(table, &old)?;
        self.afterwards(after)?;
        let row = match &relation.row {
            Row::Loop(row) => tree::loop_row(row),
            Row::Key { key, .. } => tree::keyed_row(&table.storage, key.clone()),
            _ => return beyond("a row that is not reached"),
        };
        self.emit(tree::delete(row));
        Ok(())
    }
}
