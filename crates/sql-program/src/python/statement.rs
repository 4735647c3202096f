//! Statements of SQL for rows by their keys, as trees.

use fabius_sql_meaning::catalog::{ObjectName, Table};
use fabius_sql_syntax::part;
use fabius_sql_syntax::plpgsql::tree::{Into, StatementKind as Kind};
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{self, Expr};

/// A table by its schema and name.
fn written(name: &ObjectName) -> ast::ObjectName {
    ast::ObjectName(vec![part::name_part(&name.schema), part::name_part(&name.name)])
}

fn factor(table: &Table) -> ast::TableFactor {
    let mut factor = part::table(&table.name.name);
    if let ast::TableFactor::Table { name, .. } = &mut factor {
        *name = written(&table.name);
    }
    factor
}

/// A column of a table that a statement names.
pub fn column(table: &Table, name: &str) -> Expr {
    part::column(&table.name.name, name)
}

/// What the row of a key satisfies, and no other.
pub fn has_key(table: &Table, key: &[Expr]) -> Option<Expr> {
    let columns = &table.primary_key.as_ref()?.columns;
    let equal = |(name, value): (&String, &Expr)| {
        part::binary(column(table, name), ast::BinaryOperator::Eq, value.clone())
    };
    columns.iter().zip(key).map(equal).reduce(|all, one| part::binary(all, ast::BinaryOperator::And, one))
}

fn items(table: &Table, columns: &[String]) -> Vec<ast::SelectItem> {
    columns.iter().map(|name| ast::SelectItem::UnnamedExpr(column(table, name))).collect()
}

/// `SELECT columns FROM table WHERE condition`; without columns, whether there is a row.
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn select(table: &Table, columns: &[String], condition: Option<Expr>) -> Result<ast::Statement> {
    let items = match columns {
        [] => vec![ast::SelectItem::UnnamedExpr(Expr::value(ast::Value::Number("1".into(), false)))],
        columns => items(table, columns),
    };
    let query = part::select(None, items, vec![part::alone(factor(table))], condition.as_ref())?;
    Ok(ast::Statement::Query(Box::new(query)))
}

/// As [`select`], sorted by columns.
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn select_in_order(
    table: &Table,
    columns: &[String],
    condition: Option<Expr>,
    order: &[String],
) -> Result<ast::Statement> {
    let mut statement = select(table, columns, condition)?;
    if let ast::Statement::Query(query) = &mut statement {
        let by = |name: &String| ast::OrderByExpr::from(ast::Ident::with_quote('"', name));
        let mut keys: Vec<ast::OrderByExpr> = order.iter().map(by).collect();
        for (key, name) in keys.iter_mut().zip(order) {
            key.expr = column(table, name);
        }
        let kind = ast::OrderByKind::Expressions(keys);
        query.order_by = (!order.is_empty()).then_some(ast::OrderBy { kind, interpolate: None });
    }
    Ok(statement)
}

/// `UPDATE table SET name = value WHERE condition RETURNING columns`
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn update(
    table: &Table,
    (name, value): (&str, Expr),
    condition: Option<Expr>,
    returning: &[String],
) -> Result<ast::Statement> {
    let mut statement = Tokens::of("UPDATE t SET c = NULL")?.sql()?;
    if let ast::Statement::Update(update) = &mut statement {
        update.table = part::alone(factor(table));
        let target = ast::AssignmentTarget::ColumnName(ast::ObjectName(vec![part::name_part(name)]));
        update.assignments = vec![ast::Assignment { target, value }];
        update.selection = condition;
        update.returning = (!returning.is_empty()).then(|| items(table, returning));
    }
    Ok(statement)
}

/// `DELETE FROM table WHERE condition`
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn delete(table: &Table, condition: Option<Expr>) -> Result<ast::Statement> {
    let mut statement = Tokens::of("DELETE FROM t")?.sql()?;
    if let ast::Statement::Delete(delete) = &mut statement {
        delete.from = ast::FromTable::WithFromKeyword(vec![part::alone(factor(table))]);
        delete.selection = condition;
    }
    Ok(statement)
}

/// `INSERT INTO table (columns) VALUES (values) [ON CONFLICT (key) DO UPDATE SET other = excluded.other]`
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn insert(
    table: &Table,
    values: Vec<(String, Expr)>,
    instead: Option<(&[String], &[String])>,
    returning: &[String],
) -> Result<ast::Statement> {
    let (columns, values): (Vec<String>, Vec<Expr>) = values.into_iter().unzip();
    let text =
        if columns.is_empty() { "INSERT INTO t DEFAULT VALUES" } else { "INSERT INTO t (c) VALUES (NULL)" };
    let conflict = instead.map_or_else(String::new, |(key, others)| {
        let written = |name: &String| part::quoted(name).to_string();
        let key: Vec<String> = key.iter().map(written).collect();
        let changes: Vec<String> =
            others.iter().map(written).map(|name| format!("{name} = excluded.{name}")).collect();
        // A row that is there is given back too.
        let changes = match changes.is_empty() {
            true => key.iter().map(|name| format!("{name} = excluded.{name}")).collect(),
            false => changes,
        };
        format!(" ON CONFLICT ({}) DO UPDATE SET {}", key.join(", "), changes.join(", "))
    });
    let mut statement = Tokens::of(&format!("{text}{conflict}"))?.sql()?;
    if let ast::Statement::Insert(insert) = &mut statement {
        insert.table = ast::TableObject::TableName(written(&table.name));
        insert.returning = (!returning.is_empty()).then(|| items(table, returning));
        insert.columns = columns.iter().map(|name| ast::ObjectName(vec![part::name_part(name)])).collect();
        if let Some(source) = &mut insert.source
            && let ast::SetExpr::Values(rows) = source.body.as_mut()
            && let Some(row) = rows.rows.first_mut()
        {
            row.content = values;
        }
    }
    Ok(statement)
}

/// `SELECT 1 FROM table WHERE condition`, as a truth: whether there is such a row.
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub fn exists(table: &Table, condition: Option<Expr>) -> Result<Expr> {
    let item = ast::SelectItem::UnnamedExpr(Expr::value(ast::Value::Number("1".into(), false)));
    let query = part::select(None, vec![item], vec![part::alone(factor(table))], condition.as_ref())?;
    Ok(Expr::Exists { subquery: Box::new(query), negated: false })
}

/// Makes one `UPDATE` of two of the same row, if that is the same: `None`, or the second if it is not. Nothing may look
/// at what is between them: no constraint, no generated column, and not what the second assigns.
pub fn join(table: &Table, first: &mut Kind, second: Kind) -> Option<Kind> {
    let (Kind::Sql { statement: one, into: seen }, Kind::Sql { statement: other, into: more }) =
        (first, &second)
    else {
        return Some(second);
    };
    let (ast::Statement::Update(one), ast::Statement::Update(other)) = (&mut **one, &**other) else {
        return Some(second);
    };
    let assigned = |update: &ast::Update| -> Vec<String> {
        update.assignments.iter().map(|assignment| assignment.target.to_string()).collect()
    };
    let (before, after) = (assigned(one), assigned(other));
    let is_of_one_row = one.table == other.table && one.selection == other.selection;
    let is_plain = before.iter().chain(&after).all(|column| is_plain(table, column));
    let values: Vec<String> =
        other.assignments.iter().map(|assignment| assignment.value.to_string()).collect();
    let targets = seen.iter().flat_map(|seen| &seen.targets).flat_map(|path| &path.parts);
    let names: Vec<String> = targets.map(|name| part::quoted(name).to_string()).collect();
    let looks = values.iter().any(|value| names.iter().any(|name| value.contains(name)));
    if !is_of_one_row || !is_plain || looks || after.iter().any(|column| before.contains(column)) {
        return Some(second);
    }
    one.assignments.extend(other.assignments.iter().cloned());
    if let Some(more) = more {
        one.returning.get_or_insert_default().extend(other.returning.iter().flatten().cloned());
        let both = seen.get_or_insert_with(|| Into { is_strict: more.is_strict, targets: Vec::new() });
        both.targets.extend(more.targets.iter().cloned());
    }
    None
}

/// Whether nothing but its own type says what a column may hold.
fn is_plain(table: &Table, written: &str) -> bool {
    let is_it = |name: &String| part::quoted(name).to_string() == written || *name == written;
    let keys = table.unique.iter().chain(&table.primary_key);
    table.checks.is_empty()
        && table.columns.iter().all(|column| column.generated.is_none())
        && table.columns.iter().any(|column| is_it(&column.name) && column.domain.is_none())
        && !keys.flat_map(|key| &key.columns).any(is_it)
        && !table.foreign_keys.iter().flat_map(|key| &key.columns).any(is_it)
}
