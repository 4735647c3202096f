//! Unique constraints that can be deferred (PostgreSQL's documentation, `CREATE TABLE`, `DEFERRABLE`).
//!
//! Their index takes rows that share a key. A statement keeps the keys of the rows that it writes, and looks who else
//! has them when it has written all: what is shared then is an error, or is given back as doubtful where the constraint
//! waits for the end of the transaction.

use super::binder::{Binder, LateKey};
use super::bound::Bound;
use super::constraint::{filtered, places, scan_for, values_in_words};
use super::late_reference::{listed, own_list};
use super::stop::Bind;
use super::tree;
use crate::lowered::Fate;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, Statement};
use fabius_sql_meaning::catalog::Table;
use fabius_value::DataType;
use std::sync::Arc;

impl Binder<'_> {
    /// Keeps the keys of a row that is written, by the columns that the statement writes.
    pub(super) fn note_late_keys(
        &mut self,
        table: &Arc<Table>,
        values: &[Bound],
        changed: &[bool],
    ) -> Bind<()> {
        for key in table.late_keys() {
            let columns = places(table, &key.columns)?;
            let values = || columns.iter().map(|column| values[*column].clone());
            if !columns.iter().any(|column| changed[*column]) || values().any(|value| value.is_null()) {
                continue;
            }
            let known = self.late_keys.iter().find(|late| late.key.oid == key.oid);
            let list = match known {
                Some(late) => late.list.clone(),
                None => {
                    let list = self.name("keys");
                    let (table, key) = (table.clone(), key.clone());
                    self.late_keys.push(LateKey { table, key, list: list.clone() });
                    list
                }
            };
            let row = values().map(|value| self.settled(value)).collect::<Bind<Vec<_>>>()?;
            self.emit(tree::append(&list, row));
        }
        Ok(())
    }

    /// The list of keys that are kept.
    pub(super) fn late_list(LateKey { table, key, list }: &LateKey) -> Bind<Statement> {
        own_list(table, &key.columns, list)
    }

    /// Looks who else has the keys that were kept.
    pub(super) fn check_late_key(&mut self, LateKey { table, key, list }: &LateKey) -> Bind<()> {
        self.second_pass(list, |binder, each| {
            let own = listed(table, &key.columns, each)?;
            let mut columns = Vec::new();
            for (name, value) in key.columns.iter().zip(&own) {
                let to = value.sql_type.of_values();
                let Some(value) = binder.key_of(value.clone(), &to)? else {
                    return super::stop::beyond("a unique constraint of values that are not comparable");
                };
                columns.push((name.clone(), value));
            }
            let is_null = own.iter().map(|value| tree::is_null(value.expression.clone(), false));
            let shared = binder.is_shared(table, &columns);
            let ways: Vec<Expression> = is_null.chain([tree::not(shared)]).collect();
            let is_own = tree::any(ways);
            if binder.catalog.waits(table, &key.name).is_some() {
                let values = own.into_iter().map(|value| value.expression).collect();
                return binder.doubt(table, &key.name, Fate::Shared, (tree::not(is_own), values));
            }
            // As the storage words it of its own unique indexes: see `wording`.
            let message = format!("duplicate key in \"{}\"", table.storage);
            let detail = values_in_words(&format!("({}) = (", key.columns.join(", ")), &own);
            let end = tree::text(format!(") is there already ({})", key.name));
            let detail = detail.map(|words| tree::binary(Op::Concatenate, words, end));
            binder.emit(tree::require(is_own, b"23505", message, detail));
            Ok(())
        })
    }

    /// Whether more than one row has these values.
    fn is_shared(&mut self, table: &Table, columns: &[(String, Expression)]) -> Expression {
        let (having, row) = (self.name("having"), self.name("row"));
        let number = |value| tree::cast(tree::integer(value), DataType::BigInt);
        let bigint = Some(tree::scalar_type(DataType::BigInt, false));
        self.emit(tree::declare(&having, true, bigint, number(0)));
        let mut scan = scan_for(table, columns);
        scan.limit = Some(tree::integer(2));
        let count = vec![tree::add(&having, number(1))];
        self.emit(tree::for_each(&row, filtered(scan, &row), count));
        tree::binary(Op::Greater, tree::variable(having), number(1))
    }
}
