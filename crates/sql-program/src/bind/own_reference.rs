//! References of a table to itself. A statement that writes several rows may bring a row and what it refers to in any
//! order, and may take both away, so these are checked when it has written all of them (PostgreSQL's documentation,
//! `CREATE TABLE`, `NO ACTION`).

use super::binder::{Binder, OwnReference};
use super::bound::Bound;
use super::constraint::{place, places};
use super::held::held;
use super::stop::Bind;
use super::tree;
use crate::lowered::Fate;
use fabius_program::syntax::tree::Expression;
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
            let columns = places(table, &key.columns)?.into_iter().enumerate();
            let fields = columns
                .map(|(at, column)| tree::field(&field(at), held(&table.columns[column].sql_type), true));
            self.emit(tree::declare_list(&list, fields.collect()));
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

    /// Checks what has waited.
    pub(super) fn check_own(&mut self, table: &Arc<Table>) -> Bind<()> {
        for OwnReference { key, list, of } in std::mem::take(&mut self.own_references) {
            self.second_pass(&list, |binder, each| {
                let mut referring = Vec::new();
                for (at, name) in key.columns.iter().enumerate() {
                    let sql_type = table.columns[place(table, name)?].sql_type.clone();
                    let value = tree::column(tree::loop_row(each), &field(at), false);
                    referring.push(Bound::computed(value, sql_type, true));
                }
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

fn field(at: usize) -> String {
    format!("r{}", at + 1)
}
