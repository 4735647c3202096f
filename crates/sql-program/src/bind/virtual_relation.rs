//! What a body can read besides tables: `FROM unnest(a, b)`, `FROM generate_series(1, n)`.

use super::binder::Binder;
use super::bound::Bound;
use super::list::List;
use super::scope::{Relation, Row, Virtual};
use super::stop::{Bind, beyond};
use super::tree;
use fabius_program::syntax::tree::StatementKind;
use fabius_sql_meaning::analysis::Sight;
use fabius_sql_meaning::catalog::folded;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr, TableFactor};

impl Binder<'_> {
    /// The relation that an item of a `FROM` in a body is; `None` if it is none of these.
    pub(super) fn virtual_relation(&mut self, factor: &TableFactor) -> Bind<Option<Relation>> {
        if self.lifts {
            return Ok(None);
        }
        match factor {
            TableFactor::UNNEST { alias, array_exprs, with_offset: false, with_ordinality, .. } => {
                let arrays: Vec<&Expr> = array_exprs.iter().collect();
                self.unnested(&arrays, alias.as_ref(), *with_ordinality).map(Some)
            }
            TableFactor::Table { name, alias, args: Some(args), with_ordinality, .. } => {
                let plain = args.args.iter().map(|argument| match argument {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument)) => Some(argument),
                    _ => None,
                });
                let Some(plain) = plain.collect::<Option<Vec<&Expr>>>() else { return Ok(None) };
                match (name.to_string().to_lowercase().as_str(), plain.as_slice()) {
                    ("unnest", arrays) => self.unnested(arrays, alias.as_ref(), *with_ordinality).map(Some),
                    ("generate_series", [from, to]) if !*with_ordinality => {
                        self.series(from, to, alias.as_ref())
                    }
                    _ => Ok(None),
                }
            }
            _ => Ok(None),
        }
    }

    fn unnested(
        &mut self,
        arrays: &[&Expr],
        alias: Option<&ast::TableAlias>,
        is_numbered: bool,
    ) -> Bind<Relation> {
        let mut lists = Vec::new();
        for array in arrays {
            lists.push(self.list(array)?);
        }
        let mut columns: Vec<(String, SqlType)> =
            lists.iter().map(|list| ("unnest".to_string(), list.element.clone())).collect();
        if is_numbered {
            columns.push(("ordinality".into(), SqlType::BigInt));
        }
        let to = match lists.as_slice() {
            [] => return beyond("unnest of nothing"),
            [only] => only.count(),
            all => tree::call("greatest", all.iter().map(List::count).collect()),
        };
        let rows = Virtual { from: tree::integer(1), to, lists, is_numbered };
        Ok(named("unnest", columns, alias, rows))
    }

    fn series(&mut self, from: &Expr, to: &Expr, alias: Option<&ast::TableAlias>) -> Bind<Option<Relation>> {
        let mut bounds = Vec::new();
        let mut sql_type = SqlType::Int;
        for bound in [from, to] {
            let bound = self.operand(bound)?;
            match bound.sql_type {
                SqlType::Int | SqlType::SmallInt | SqlType::Unknown => {}
                SqlType::BigInt => sql_type = SqlType::BigInt,
                _ => return Ok(None),
            }
            let bound = self.assigned(bound, &SqlType::BigInt)?;
            bounds.push(self.named(bound, "bound")?.expression);
        }
        let (Some(to), Some(from)) = (bounds.pop(), bounds.pop()) else { return Ok(None) };
        let rows = Virtual { from, to, lists: Vec::new(), is_numbered: false };
        Ok(Some(named("generate_series", vec![("generate_series".into(), sql_type)], alias, rows)))
    }

    /// The loop over the rows; `act` is what is done for each.
    pub(super) fn reach_virtual(
        &mut self,
        at: usize,
        rows: &Virtual,
        act: impl FnOnce(&mut Self) -> Bind<()>,
    ) -> Bind<()> {
        let n = self.name("n");
        let number = |sql_type: &SqlType| {
            let value = match sql_type {
                SqlType::Int => tree::cast(tree::variable(&n), DataType::Int),
                _ => tree::variable(&n),
            };
            Bound::computed(value, sql_type.clone(), false)
        };
        let mut values: Vec<Bound> = rows.lists.iter().map(|list| list.at(tree::variable(&n))).collect();
        if rows.is_numbered {
            values.push(number(&SqlType::BigInt));
        }
        if rows.lists.is_empty() {
            values = vec![number(&self.scope().relations[at].columns[0].1.clone())];
        }
        let before = std::mem::replace(&mut self.scope().relations[at].row, Row::Values(values));
        let done = self.nested(|binder| binder.repeated(act));
        self.scope().relations[at].row = before;
        let (body, ()) = done?;
        let kind = StatementKind::ForRange {
            variable: tree::name(&n),
            from: rows.from.clone(),
            to: rows.to.clone(),
            body,
        };
        self.emit(tree::statement(kind));
        Ok(())
    }
}

/// A relation under its alias. An alias without columns is also the name of a single column, as in PostgreSQL.
fn named(
    function: &str,
    mut columns: Vec<(String, SqlType)>,
    alias: Option<&ast::TableAlias>,
    rows: Virtual,
) -> Relation {
    let mut name = function.to_string();
    if let Some(alias) = alias {
        name = folded(&alias.name);
        if alias.columns.is_empty()
            && let Some(first) = columns.first_mut().filter(|_| rows.lists.len() <= 1)
        {
            first.0.clone_from(&name);
        }
        for (column, given) in columns.iter_mut().zip(&alias.columns) {
            column.0 = folded(&given.name);
        }
    }
    let row = Row::Virtual(Box::new(rows));
    Relation { name, schema: None, table: None, columns, sight: Sight::Everywhere, row }
}
