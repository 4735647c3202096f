//! References that are checked when a statement has written all of its rows.
//!
//! Those of a table to itself. A statement that writes several rows may bring a row and what it refers to in any
//! order, and may take both away, so these are checked when it has written all of them (PostgreSQL's documentation,
//! `CREATE TABLE`, `NO ACTION`).

use super::binder::{Binder, Followed, OwnReference};
use super::bound::Bound;
use super::constraint::{place, places};
use super::held::held;
use super::stop::Bind;
use super::tree;
use crate::lowered::Fate;
use fabius_program::syntax::tree::{Expression, Statement};
use fabius_sql_meaning::catalog::{ForeignKey, ReferentialAction, Table};
use std::sync::Arc;

impl Binder<'_> {
    /// Lets the references of a table to itself wait.
    pub(super) fn await_own(&mut self, table: &Table, of: Fate) -> Bind<()> {
        for key in &table.foreign_keys {
            let waits = of == Fate::New || key.on_delete == ReferentialAction::NoAction;
            if key.parent != table.name || !waits || self.catalog.waits(table, &key.name).is_some() {
                continue;
            }
            let list = self.name("own");
            let declaration = own_list(table, &key.columns, &list)?;
            self.emit(declaration);
            self.own_references.push(OwnReference { key: key.clone(), list, of });
        }
        Ok(())
    }

    /// Keeps a reference for later, if it waits.
    pub(super) fn keeps_own(&mut self, key: &ForeignKey, of: Fate, values: Vec<Expression>) -> bool {
        // A cascade may meet another table whose key has the same name.
        let is_meant =
            |own: &&OwnReference| own.of == of && own.key.parent == key.parent && own.key.name == key.name;
        let waiting = self.own_references.iter().find(is_meant);
        let Some(own) = waiting else { return false };
        let append = tree::append(&own.list, values);
        self.emit(append);
        true
    }

    /// Does what may change rows, then checks what waits until all are written: references that rows have besides the
    /// one along which they changed, unique constraints that can be deferred.
    pub(super) fn with_followed<T>(&mut self, act: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<T> {
        let outer = (std::mem::take(&mut self.followed), std::mem::take(&mut self.late_keys));
        let (block, done) = self.nested(act)?;
        let followed = std::mem::replace(&mut self.followed, outer.0);
        let late_keys = std::mem::replace(&mut self.late_keys, outer.1);
        for Followed { table, key, list } in &followed {
            let declaration = own_list(table, &key.columns, list)?;
            self.emit(declaration);
        }
        for late in &late_keys {
            let declaration = Binder::late_list(late)?;
            self.emit(declaration);
        }
        self.block.extend(block);
        followed.iter().try_for_each(|Followed { table, key, list }| {
            self.second_pass(list, |binder, each| {
                binder.check_parent(table, key, &listed(table, &key.columns, each)?, None)
            })
        })?;
        late_keys.iter().try_for_each(|late| self.check_late_key(late))?;
        Ok(done)
    }

    /// Keeps the values of a reference until [`Binder::with_followed`] ends.
    pub(super) fn follow_up(&mut self, table: &Arc<Table>, key: &ForeignKey, values: &[Bound]) -> Bind<()> {
        let known = self.followed.iter().find(|it| it.table.name == table.name && it.key.name == key.name);
        let list = match known {
            Some(followed) => followed.list.clone(),
            None => {
                let list = self.name("followed");
                self.followed.push(Followed { table: table.clone(), key: key.clone(), list: list.clone() });
                list
            }
        };
        let columns = places(table, &key.columns)?;
        let values = columns.into_iter().map(|column| self.settled(values[column].clone()));
        let row = values.collect::<Bind<Vec<_>>>()?;
        self.emit(tree::append(&list, row));
        Ok(())
    }

    /// Checks what has waited.
    pub(super) fn check_own(&mut self, table: &Arc<Table>) -> Bind<()> {
        for OwnReference { key, list, of } in std::mem::take(&mut self.own_references) {
            self.second_pass(&list, |binder, each| {
                let referring = listed(table, &key.columns, each)?;
                if of == Fate::New {
                    return binder.check_parent(table, &key, &referring, None);
                }
                let mut columns = Vec::new();
                for (name, value) in key.columns.iter().zip(referring) {
                    columns.push((name.clone(), binder.settled(value)?));
                }
                binder.refuse(table, table, &key, &columns)
            })?;
        }
        Ok(())
    }
}

/// A list for values of columns of a constraint.
pub(super) fn own_list(table: &Table, columns: &[String], list: &str) -> Bind<Statement> {
    let columns = places(table, columns)?.into_iter().enumerate();
    let fields =
        columns.map(|(at, column)| tree::field(&field(at), held(&table.columns[column].sql_type), true));
    Ok(tree::declare_list(list, fields.collect()))
}

/// The values of an element of such a list.
pub(super) fn listed(table: &Table, columns: &[String], each: &str) -> Bind<Vec<Bound>> {
    let columns = columns.iter().enumerate();
    columns
        .map(|(at, name)| {
            let sql_type = table.columns[place(table, name)?].sql_type.clone();
            Ok(Bound::computed(tree::column(tree::loop_row(each), &field(at), false), sql_type, true))
        })
        .collect()
}

fn field(at: usize) -> String {
    format!("r{}", at + 1)
}
