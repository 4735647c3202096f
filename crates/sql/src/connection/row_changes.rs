//! `UPDATE` and `DELETE` that are no programs: a query finds the rows and their new values, a program writes them.

use super::assigned::{assigned, not_supported, stored_types};
use super::write_query::WriteQuery;
use fabius::Database;
use fabius_program::syntax::Source;
use fabius_sql_meaning::analysis;
use fabius_sql_meaning::catalog::Relation;
use fabius_sql_meaning::catalog::{Catalog, ROW_NUMBER, Table, folded};
use fabius_sql_meaning::column_name;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_sql_program::bind;
use fabius_sql_program::bind::{Bind, RowsOf, Stop, lower_delete_rows, lower_update_rows};
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_query as query;
use fabius_sql_syntax::part;
use fabius_sql_syntax::privilege::Privilege;
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::Result;
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// The table that is changed, what the statement calls it, and the columns that tell its rows apart.
pub(super) struct Target {
    pub(super) table: Arc<Table>,
    /// The table with its schema, so that no common table expression is taken for it.
    pub(super) relation: ast::TableWithJoins,
    pub(super) alias: Option<String>,
    pub(super) called: String,
    pub(super) key: Vec<ast::Expr>,
}

impl Target {
    fn column(&self, name: &str) -> ast::Expr {
        part::column(&self.called, name)
    }
}

/// The table that a statement changes, if whoever asks may.
pub(super) fn target(catalog: &Catalog, table: &ast::TableWithJoins, needs: &[Privilege]) -> Result<Target> {
    let ast::TableFactor::Table { name, alias, .. } = &table.relation else {
        return Err(not_supported("a change of other than a table"));
    };
    if !table.joins.is_empty() {
        return Err(not_supported("a change of joined tables"));
    }
    let found = catalog.table(name)?.clone();
    for privilege in needs {
        catalog.require(&Relation::Table(&found), *privilege)?;
    }
    let alias = alias.as_ref().map(|alias| folded(&alias.name));
    let called = alias.clone().unwrap_or_else(|| found.name.name.clone());
    let columns = match &found.primary_key {
        Some(key) => key.columns.clone(),
        None => vec![ROW_NUMBER.to_string()],
    };
    let key = columns.iter().map(|column| part::column(&called, column)).collect();
    let mut relation = table.clone();
    if let ast::TableFactor::Table { name, .. } = &mut relation.relation
        && let [table] = name.0.as_slice()
    {
        *name = ast::ObjectName(vec![part::name_part(&found.name.schema), table.clone()]);
    }
    Ok(Target { table: found, relation, alias, called, key })
}

/// `RETURNING` of a statement that names other tables too, as items of the query that finds the rows: the target's
/// columns are what they are assigned.
fn returned(
    items: &[ast::SelectItem],
    target: &Target,
    others: &[ast::TableWithJoins],
    assigned: &HashMap<String, ast::Expr>,
) -> Bind<Vec<ast::SelectItem>> {
    let own = |name: &str| match assigned.get(name) {
        Some(value) => part::named(value.clone(), name),
        None => ast::SelectItem::UnnamedExpr(target.column(name)),
    };
    let all_own = || target.table.visible().map(|column| own(&column.name));
    let mut all = Vec::new();
    for item in items {
        match item {
            ast::SelectItem::Wildcard(_) => {
                all.extend(all_own());
                for other in others {
                    let name = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(name_in_from(
                        &other.relation,
                    )?)]);
                    let kind = ast::SelectItemQualifiedWildcardKind::ObjectName(name);
                    all.push(ast::SelectItem::QualifiedWildcard(kind, Default::default()));
                }
            }
            ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _)
                if name.0.last().and_then(|part| part.as_ident()).map(folded).as_deref()
                    == Some(target.called.as_str()) =>
            {
                all.extend(all_own());
            }
            ast::SelectItem::UnnamedExpr(expression) => {
                let name = column_name::of(expression);
                all.push(part::named(as_written(expression, target, assigned)?, &name));
            }
            ast::SelectItem::ExprWithAlias { expr, alias } => {
                let expr = as_written(expr, target, assigned)?;
                all.push(ast::SelectItem::ExprWithAlias { expr, alias: alias.clone() });
            }
            other => all.push(other.clone()),
        }
    }
    Ok(all)
}

/// An expression of the catalog whose names are those of the target, whatever other tables there are.
fn of_own_columns(text: &str, target: &Target) -> Result<ast::Expr> {
    let mut expression = Tokens::of(text)?.read(|parser| parser.parse_expr())?;
    let _ = ast::visit_expressions_mut(&mut expression, |part| {
        if let ast::Expr::Identifier(name) = part
            && target.table.column(&folded(name)).is_some()
        {
            *part = target.column(&folded(name));
        }
        ControlFlow::<()>::Continue(())
    });
    Ok(expression)
}

/// What a relation is called by the rest of the statement.
pub(super) fn name_in_from(factor: &ast::TableFactor) -> Result<ast::Ident> {
    let (name, alias) = match factor {
        ast::TableFactor::Table { name, alias, .. } => {
            (name.0.last().and_then(|part| part.as_ident()), alias)
        }
        ast::TableFactor::Derived { alias, .. }
        | ast::TableFactor::UNNEST { alias, .. }
        | ast::TableFactor::Function { alias, .. } => (None, alias),
        _ => return Err(not_supported("RETURNING * with this form of FROM")),
    };
    let alias = alias.as_ref().map(|alias| &alias.name);
    alias.or(name).cloned().ok_or_else(|| not_supported("RETURNING * with this form of FROM"))
}

/// An expression about a row as it is once it is written.
fn as_written(
    expression: &ast::Expr,
    target: &Target,
    assigned: &HashMap<String, ast::Expr>,
) -> Bind<ast::Expr> {
    let mut expression = expression.clone();
    match expression.visit(&mut AsWritten { target, assigned, depth: 0 }) {
        ControlFlow::Break(stop) => Err(stop),
        ControlFlow::Continue(()) => Ok(expression),
    }
}

/// Puts what columns are assigned in their place.
struct AsWritten<'w> {
    target: &'w Target,
    assigned: &'w HashMap<String, ast::Expr>,
    /// How many queries are around what is visited.
    depth: usize,
}

impl AsWritten<'_> {
    /// The target's column that an expression names, as far as its form says.
    fn column(&self, expression: &ast::Expr) -> Option<String> {
        let target = self.target;
        match expression {
            ast::Expr::Identifier(name) => Some(folded(name)),
            ast::Expr::CompoundIdentifier(path) => match path.as_slice() {
                [relation, name] if folded(relation) == target.called => Some(folded(name)),
                [schema, relation, name]
                    if target.alias.is_none()
                        && folded(relation) == target.called
                        && folded(schema) == target.table.name.schema =>
                {
                    Some(folded(name))
                }
                _ => None,
            },
            _ => None,
        }
    }
}

impl VisitorMut for AsWritten<'_> {
    type Break = Stop;

    fn pre_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Stop> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Stop> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<Stop> {
        let Some(value) = self.column(expression).and_then(|name| self.assigned.get(&name)) else {
            return ControlFlow::Continue(());
        };
        // There the name may be that of another relation's column.
        if self.depth > 0 {
            let what = format!("a subquery in RETURNING that names the changed column {expression}");
            return ControlFlow::Break(Stop::Beyond(what));
        }
        *expression = value.clone();
        ControlFlow::Continue(())
    }
}

impl WriteQuery {
    /// Plans an `UPDATE`, perhaps with common table expressions.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn update(
        database: &Database,
        catalog: &Arc<Catalog>,
        with: Option<&ast::With>,
        update: &ast::Update,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Bind<WriteQuery> {
        let target = target(catalog, &update.table, &analysis::needs_of_update(update))?;
        let table = &target.table;
        let mut values = target.key.clone();
        let (mut columns, mut assignments_by_name) = (Vec::new(), HashMap::new());
        let assignments: Vec<_> = update
            .assignments
            .iter()
            .map(assigned)
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect();
        for (name, value) in assignments {
            let path: Vec<String> = name.0.iter().filter_map(|part| part.as_ident()).map(folded).collect();
            let name = path.first().cloned().unwrap_or_default();
            let place = table.position(&name).filter(|_| path.len() == 1);
            let place = place.ok_or_else(|| table.no_column(&name))?;
            if table.columns[place].generated.is_some() {
                // It follows from the others; that it is given DEFAULT was seen when the statement was bound.
                continue;
            }
            let value = bind::typed(&value, &table.columns[place]);
            let stored = part::cast(value.clone(), &table.columns[place].sql_type.written())?;
            assignments_by_name.insert(name, stored);
            columns.push(place);
            values.push(value);
        }
        let generated: Vec<(String, ast::Expr)> = table
            .columns
            .iter()
            .filter_map(|column| Some((&column.name, &column.sql_type, column.generated.as_ref()?)))
            .map(|(name, sql_type, text)| {
                let value = as_written(&of_own_columns(text, &target)?, &target, &assignments_by_name)?;
                Ok((name.clone(), part::cast(value, &sql_type.written())?))
            })
            .collect::<Bind<_>>()?;
        assignments_by_name.extend(generated);
        let others = match &update.from {
            None => &[][..],
            Some(
                ast::UpdateTableFromKind::BeforeSet(tables) | ast::UpdateTableFromKind::AfterSet(tables),
            ) => tables.as_slice(),
        };
        let width = values.len();
        let mut items: Vec<_> = values.into_iter().map(ast::SelectItem::UnnamedExpr).collect();
        let returning = update.returning.as_deref();
        if let Some(returning) = returning {
            items.extend(returned(returning, &target, others, &assignments_by_name)?);
        }
        let tables = std::iter::once(&target.relation).chain(others).cloned().collect();
        let query = part::select(with, items, tables, update.selection.as_ref())?;
        let query = query::plan(&query, catalog, types, session)?;
        let key = target.key.len();
        let stored = stored_types(&query.columns[key..width], &columns, table);
        let rows = RowsOf {
            table,
            alias: target.alias.clone(),
            columns: &columns,
            types: &stored,
            conflict: None,
            found: &[],
            returning: None,
        };
        let source = Arc::new(Source::new("UPDATE", "statement"));
        let write =
            BulkWrite::of(database, lower_update_rows(&rows, &source, catalog)?, Vec::new(), &stored)?;
        let returned = returning.map(|_| width);
        Ok(WriteQuery { write, query, met: None, table: table.name.clone(), tag: "UPDATE", key, returned })
    }

    /// Plans a `DELETE`, perhaps with common table expressions.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn delete(
        database: &Database,
        catalog: &Arc<Catalog>,
        with: Option<&ast::With>,
        delete: &ast::Delete,
        types: &mut ParameterTypes,
        session: &Arc<dyn SessionFacts>,
    ) -> Bind<WriteQuery> {
        let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
        let [changed] = from.as_slice() else {
            return Err(not_supported("DELETE from several tables").into());
        };
        let target = target(catalog, changed, &analysis::needs_of_delete(delete))?;
        let others = delete.using.as_deref().unwrap_or_default();
        let mut items: Vec<_> = target.key.iter().cloned().map(ast::SelectItem::UnnamedExpr).collect();
        let returning = delete.returning.as_deref();
        if let Some(returning) = returning {
            items.extend(returned(returning, &target, others, &HashMap::new())?);
        }
        let tables = std::iter::once(&target.relation).chain(others).cloned().collect();
        let query = part::select(with, items, tables, delete.selection.as_ref())?;
        let query = query::plan(&query, catalog, types, session)?;
        let rows = RowsOf {
            table: &target.table,
            alias: target.alias.clone(),
            columns: &[],
            types: &[],
            conflict: None,
            found: &[],
            returning: None,
        };
        let source = Arc::new(Source::new("DELETE", "statement"));
        let write = BulkWrite::of(database, lower_delete_rows(&rows, &source, catalog)?, Vec::new(), &[])?;
        let key = target.key.len();
        let returned = returning.map(|_| key);
        Ok(WriteQuery {
            write,
            query,
            met: None,
            table: target.table.name.clone(),
            tag: "DELETE",
            key,
            returned,
        })
    }
}
