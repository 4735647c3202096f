//! What `ON CONFLICT DO UPDATE` assigns where no program can compute it: a query does, of the rows that are met.
//!
//! ```text
//! INSERT INTO t (k, a) SELECT ... ON CONFLICT (k) DO UPDATE SET a = f(excluded.a) WHERE c
//!   1. SELECT ...                                                                      --> proposed rows
//!   2. SELECT place, f(excluded.a) FROM t, proposed AS excluded WHERE t.k = excluded.k AND (c)
//!   3. the proposed rows, each with what was found for it, are written by a program
//! ```
//!
//! A row that meets one of the same statement is an error in any case (PostgreSQL 15, INSERT).

use super::Connection;
use super::assigned::{assigned, not_supported, stored_types};
use super::given_rows;
use super::held_rows::HeldRows;
use fabius_sql_meaning::catalog::{Catalog, Table, folded};
use fabius_sql_meaning::conversion;
use fabius_sql_meaning::functions::may_differ;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::text_format::Fit;
use fabius_sql_program::bind::{self, FOUND, RowsOf};
use fabius_sql_query::{self as query, QueryPlan};
use fabius_sql_syntax::part;
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// What proposed rows are called.
const EXCLUDED: &str = "excluded";

/// The place of a proposed row among those of its statement, as a column.
const PLACE: &str = " place";

/// What is asked of the rows that proposed ones meet.
pub(super) struct MetRows {
    /// Gives places of proposed rows, and what is assigned to the rows that these meet.
    pub(super) query: QueryPlan,
    /// What it knows the proposed rows by.
    number: u64,
    /// The types of what it gives once that is converted for its columns; at the end, whether a row is met.
    pub(super) types: Vec<SqlType>,
}

impl MetRows {
    /// Plans it, and what remains for a program; `None` if `ON CONFLICT` does not assign.
    ///
    /// # Errors
    /// What is wrong with the assignments.
    pub(super) fn plan(
        catalog: &Arc<Catalog>,
        conflict: &ast::OnConflict,
        rows: &RowsOf<'_>,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Result<Option<(MetRows, ast::OnInsert)>> {
        let table = rows.table;
        let ast::OnConflictAction::DoUpdate(update) = &conflict.action else { return Ok(None) };
        let Some(key) = bind::arbiter(catalog, table, conflict) else { return Ok(None) };
        let number = given_rows::next_number();
        let (excluded, known) = proposed(catalog, rows, number)?;
        let called = rows.alias.clone().unwrap_or_else(|| table.name.name.clone());
        if !key.iter().all(|name| known.contains(name)) {
            return Ok(None);
        }
        let mut items = vec![ast::SelectItem::UnnamedExpr(part::column(EXCLUDED, PLACE))];
        let (mut places, mut assignments) = (Vec::new(), Vec::new());
        for assignment in &update.assignments {
            for (name, value) in assigned(assignment)? {
                let path: Vec<String> =
                    name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect();
                let place = path.first().filter(|_| path.len() == 1).and_then(|name| table.position(name));
                // The program has said so if it is none.
                let Some(place) = place else { return Ok(None) };
                let column = &table.columns[place];
                if bind::is_own_key(&key, &column.name, &value) {
                    continue;
                }
                let value = match column.generated {
                    // That it is given DEFAULT was seen when the statement was bound.
                    Some(_) => value,
                    None => {
                        let found = part::column(FOUND, &part::given_column(places.len()));
                        let typed = bind::typed(&value, column);
                        if typed == drawn() {
                            return Ok(None);
                        }
                        refuse_unknown(&typed, table, &known)?;
                        items.push(ast::SelectItem::UnnamedExpr(typed));
                        places.push(place);
                        found
                    }
                };
                assignments.push(ast::Assignment { target: ast::AssignmentTarget::ColumnName(name), value });
            }
        }
        let met = part::column(FOUND, &part::given_column(places.len()));
        let mut existing = part::table(&table.name.name);
        if let ast::TableFactor::Table { name, alias, .. } = &mut existing {
            name.0.insert(0, part::name_part(&table.name.schema));
            *alias = rows.alias.as_deref().map(part::called);
        }
        let equal = key.iter().map(|name| ast::Expr::BinaryOp {
            left: Box::new(part::column(&called, name)),
            op: ast::BinaryOperator::Eq,
            right: Box::new(part::column(EXCLUDED, name)),
        });
        update.selection.iter().try_for_each(|condition| refuse_unknown(condition, table, &known))?;
        let condition = update.selection.clone().map(|condition| ast::Expr::Nested(Box::new(condition)));
        let all = equal.chain(condition).reduce(|left, right| ast::Expr::BinaryOp {
            left: Box::new(left),
            op: ast::BinaryOperator::And,
            right: Box::new(right),
        });
        let from = [existing, excluded].map(part::alone).to_vec();
        let query = query::plan(&part::select(None, items, from, all.as_ref())?, catalog, types, session)?;
        let mut types = stored_types(query.columns.get(1..).unwrap_or_default(), &places, table);
        types.push(SqlType::Boolean);
        let action = ast::OnConflictAction::DoUpdate(ast::DoUpdate { assignments, selection: Some(met) });
        let on = ast::OnInsert::OnConflict(ast::OnConflict { action, ..conflict.clone() });
        Ok(Some((MetRows { query, number, types }, on)))
    }
}

/// `DEFAULT`, as it remains where that is a number of a sequence.
fn drawn() -> ast::Expr {
    ast::Expr::Identifier(ast::Ident::new("DEFAULT"))
}

/// Refuses an expression about a column of proposed rows that is not known before these are written.
///
/// # Errors
/// `0A000`
fn refuse_unknown(expression: &ast::Expr, table: &Table, known: &BTreeSet<String>) -> Result<()> {
    let unknown = ast::visit_expressions(expression, |part| match part {
        ast::Expr::CompoundIdentifier(path) => match path.as_slice() {
            [relation, name] if folded(relation) == EXCLUDED && table.position(&folded(name)).is_some() => {
                match known.contains(&folded(name)) {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(folded(name)),
                }
            }
            _ => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    });
    match unknown {
        ControlFlow::Break(name) => {
            let what = format!("{EXCLUDED}.{name}, whose default is volatile, in this ON CONFLICT");
            Err(not_supported(&what))
        }
        ControlFlow::Continue(()) => Ok(()),
    }
}

/// The proposed rows as a relation, with defaults and what is generated, and the columns that are known.
fn proposed(
    catalog: &Catalog,
    rows: &RowsOf<'_>,
    number: u64,
) -> Result<(ast::TableFactor, BTreeSet<String>)> {
    let table = rows.table;
    let counted = bind::counted(table, rows.columns);
    let given = |at| ast::Expr::Identifier(part::quoted(&part::given_column(at)));
    let mut known = BTreeSet::new();
    let mut items = vec![part::named(given(rows.columns.len() + counted.len()), PLACE)];
    for (place, column) in table.columns.iter().enumerate().filter(|(_, column)| column.generated.is_none()) {
        let at = rows.columns.iter().position(|given| *given == place);
        let number = || Some(rows.columns.len() + counted.iter().position(|(of, _)| *of == Some(place))?);
        let value = match at.or_else(number) {
            Some(at) => given(at),
            None => match bind::typed(&drawn(), column) {
                value if value == drawn() || may_differ(catalog, &value) => continue,
                value => value,
            },
        };
        items.push(part::named(part::cast(value, &column.sql_type.written())?, &column.name));
        known.insert(column.name.clone());
    }
    let numbers = counted.iter().map(|_| &SqlType::BigInt);
    let types = rows.types.iter().chain(numbers).chain([&SqlType::BigInt]).map(SqlType::written);
    let types: Vec<String> = types.collect();
    let from = vec![part::alone(part::given(number, types.iter().map(String::as_str))?)];
    let mut relation = derived(part::select(None, items, from, None)?);
    let mut computed = vec![part::all_columns()];
    for column in &table.columns {
        let Some(text) = &column.generated else { continue };
        let value = Tokens::of(text)?.read(|parser| parser.parse_expr())?;
        let is_known = ast::visit_expressions(&value, |part| match part {
            ast::Expr::Identifier(name)
                if table.position(&folded(name)).is_some() && !known.contains(&folded(name)) =>
            {
                ControlFlow::Break(())
            }
            _ => ControlFlow::Continue(()),
        });
        if is_known.is_continue() {
            computed.push(part::named(part::cast(value, &column.sql_type.written())?, &column.name));
        }
    }
    for item in &computed {
        if let ast::SelectItem::ExprWithAlias { alias, .. } = item {
            known.insert(alias.value.clone());
        }
    }
    if computed.len() > 1 {
        relation = derived(part::select(None, computed, vec![part::alone(relation)], None)?);
    }
    Ok((relation, known))
}

fn derived(query: ast::Query) -> ast::TableFactor {
    ast::TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query),
        alias: Some(part::called(EXCLUDED)),
        sample: None,
    }
}

impl Connection {
    /// Finds what is assigned to the rows that proposed ones meet, and puts it behind these.
    pub(super) async fn meet(
        &mut self,
        met: &MetRows,
        rows: &mut [Vec<Value>],
        parameters: &[Value],
    ) -> Result<()> {
        let mut proposed = HeldRows::new(self.session.holding());
        for (place, row) in rows.iter().enumerate() {
            let mut row = row.clone();
            row.push(Value::BigInt(i64::try_from(place).unwrap_or(i64::MAX)));
            proposed.push(row)?;
        }
        let before = self.execution.given.clone();
        self.execution.given.insert(met.number, proposed);
        let found = self.rows_of(&met.query, parameters).await;
        self.execution.given = before;
        let width = met.types.len() - 1;
        let style = self.text_style();
        let given = |row: &Vec<Value>| row.first().and_then(Value::as_integer);
        let own = rows.first().map_or(0, Vec::len);
        for mut found in found?.rows {
            let place = given(&found).and_then(|place| usize::try_from(place).ok());
            let Some(row) = place.and_then(|place| rows.get_mut(place)) else { continue };
            if row.len() > own {
                let message = "a proposed row meets more than one";
                return Err(Error::new(SqlState(*b"XX000"), message));
            }
            let columns = met.query.columns.iter().skip(1).zip(&met.types);
            for (value, (from, to)) in found.drain(1..).zip(columns) {
                row.push(match from.sql_type == *to {
                    true => value,
                    false => conversion::convert(&value, &from.sql_type, to, &style, Fit::Store)?,
                });
            }
            row.push(Value::Boolean(true));
        }
        for row in rows.iter_mut().filter(|row| row.len() == own) {
            row.extend(std::iter::repeat_n(Value::Null, width));
            row.push(Value::Boolean(false));
        }
        Ok(())
    }
}
