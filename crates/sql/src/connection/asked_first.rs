//! What a statement whose parts write asks of tables that these change.
//!
//! All parts of a statement see the tables as they were before it (PostgreSQL 15, 7.8.4). So whatever asks such a table
//! and needs no rows of a part that writes is a part of its own, which runs before any that writes:
//!
//! ```text
//! WITH new AS (INSERT INTO t ... ON CONFLICT DO NOTHING RETURNING id)
//!   SELECT id FROM new UNION ALL SELECT id FROM t WHERE name = 'a'
//! --> WITH "asked first 1" AS (SELECT id FROM t WHERE name = 'a'), new AS (INSERT ...)
//!   SELECT id FROM new UNION ALL SELECT * FROM "asked first 1"
//! ```
//!
//! Where a query joins the table with such rows, all of the table is a part of its own.

use fabius_sql_meaning::catalog::{Catalog, ObjectName, Relation, folded};
use fabius_sql_meaning::functions::may_differ;
use fabius_sql_syntax::part;
use fabius_sql_syntax::written::quoted_object;
use fabius_value::{Error, Result};
use sqlparser::ast::{self, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// A statement in which what is asked of changed tables stands first.
pub(super) struct AskedFirst {
    pub(super) query: ast::Query,
    /// Which common table expressions run before those that write.
    pub(super) asked: Vec<bool>,
    /// The one among them whose rows are those of the statement.
    pub(super) answer: Option<usize>,
}

/// What is known of the statement.
struct Asking<'a> {
    catalog: &'a Catalog,
    /// Tables that its parts write.
    changed: &'a [ObjectName],
    /// The tables that a query reads, if it can be planned by itself and gives columns.
    reads_alone: &'a dyn Fn(&ast::Query) -> Option<Vec<ObjectName>>,
    is_recursive: bool,
    /// Common table expressions that need no part that writes.
    first: Vec<ast::Cte>,
    /// Names of the others.
    others: Vec<String>,
    found: Vec<ast::Cte>,
    depth: usize,
}

/// Whether a query is a statement that writes.
pub(super) fn writes(query: &ast::Query) -> bool {
    matches!(
        query.body.as_ref(),
        ast::SetExpr::Insert(_) | ast::SetExpr::Update(_) | ast::SetExpr::Delete(_) | ast::SetExpr::Merge(_)
    )
}

/// Names of relations in a query that may be those of common table expressions.
fn named_in(query: &ast::Query) -> Vec<String> {
    let mut names = Vec::new();
    let _ = ast::visit_relations(query, |name| {
        if let [part] = name.0.as_slice() {
            names.extend(part.as_ident().map(folded));
        }
        ControlFlow::<()>::Continue(())
    });
    names
}

/// `WITH "name" AS (query) SELECT * FROM "name"`, as the common table expression and the query behind it.
fn named(name: &str, query: ast::Query) -> Result<(ast::Cte, ast::Query)> {
    let from = vec![part::alone(part::table(name))];
    Ok((part::common(name, query), part::select(None, vec![part::all_columns()], from, None)?))
}

impl Asking<'_> {
    /// Whether a query asks a table that changes, as far as names tell.
    fn asks(&self, query: &ast::Query) -> bool {
        let found = ast::visit_relations(query, |name| match self.catalog.relation(name) {
            Ok(Some(Relation::Table(table))) if self.changed.contains(&table.name) => ControlFlow::Break(()),
            Ok(Some(Relation::View(_))) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        });
        found.is_break()
    }

    /// Whether a query names a part that writes, or one that needs such a part.
    fn needs_others(&self, query: &ast::Query) -> bool {
        named_in(query).iter().any(|name| self.others.contains(name))
    }

    /// A query with the common table expressions that it needs.
    fn whole(&self, query: &ast::Query) -> ast::Query {
        let mut needed = named_in(query);
        let mut all: Vec<ast::Cte> = Vec::new();
        for common in self.first.iter().rev() {
            if needed.contains(&folded(&common.alias.name)) {
                needed.extend(named_in(&common.query));
                all.insert(0, common.clone());
            }
        }
        let mut whole = query.clone();
        let mut is_recursive = self.is_recursive;
        if let Some(own) = whole.with.take() {
            all.extend(own.cte_tables);
            is_recursive |= own.recursive;
        }
        whole.with = part::with(is_recursive, all);
        whole
    }

    /// Whether a query can be planned by itself and reads a table that changes.
    fn reads_changed(&self, query: &ast::Query) -> bool {
        let reads = (self.reads_alone)(&self.whole(query)).unwrap_or_default();
        reads.iter().any(|table| self.changed.contains(table))
    }

    fn can_be_first(&self, query: &ast::Query) -> bool {
        !writes(query)
            && query.locks.is_empty()
            && self.asks(query)
            && !self.needs_others(query)
            && self.reads_changed(query)
    }

    /// Makes a part of a query, or finds the one that it is already: a key of `GROUP BY` stands in several places.
    /// Gives what stands in its place.
    fn take(&mut self, query: ast::Query) -> Result<ast::Query> {
        let known = self.found.iter().find(|common| *common.query == query);
        if let Some(known) = known.filter(|_| !may_differ(self.catalog, &query)) {
            return Ok(named(&known.alias.name.value, query)?.1);
        }
        // Those of a statement around this one are among the first.
        let place = self.first.len() + self.found.len() + 1;
        let (common, instead) = named(&format!("asked first {place}"), query)?;
        self.found.push(common);
        Ok(instead)
    }

    /// Takes the sides of set operations, each for itself.
    fn take_sides(&mut self, body: &mut ast::SetExpr) -> Result<()> {
        let ast::SetExpr::SetOperation { left, right, .. } = body else { return Ok(()) };
        for side in [left, right] {
            self.take_sides(side)?;
            if !matches!(side.as_ref(), ast::SetExpr::Select(_)) {
                continue;
            }
            let alone = ast::Query { body: side.clone(), ..part::query("SELECT 1")? };
            if self.can_be_first(&alone) {
                *side = self.take(alone)?.body;
            }
        }
        Ok(())
    }
}

/// Takes all of a changed table, or of a view of one, where a query joins it with rows of parts that write.
struct WholeTables<'w, 'a> {
    asking: &'w mut Asking<'a>,
    commons: Vec<String>,
}

impl VisitorMut for WholeTables<'_, '_> {
    type Break = Error;

    fn pre_visit_table_factor(&mut self, factor: &mut ast::TableFactor) -> ControlFlow<Error> {
        let ast::TableFactor::Table { name, alias, args: None, .. } = factor else {
            return ControlFlow::Continue(());
        };
        let is_common = matches!(name.0.as_slice(), [part]
            if part.as_ident().is_some_and(|name| self.commons.contains(&folded(name))));
        let name = match self.asking.catalog.relation(name) {
            Ok(Some(Relation::Table(table))) if !is_common => &table.name,
            Ok(Some(Relation::View(view))) if !is_common => &view.name,
            _ => return ControlFlow::Continue(()),
        };
        let whole = match part::query(&format!("SELECT * FROM {}", quoted_object(name))) {
            Ok(whole) => whole,
            Err(error) => return ControlFlow::Break(error),
        };
        if !self.asking.reads_changed(&whole) {
            return ControlFlow::Continue(());
        }
        let instead = match self.asking.take(whole) {
            Ok(query) => query,
            Err(error) => return ControlFlow::Break(error),
        };
        if let ast::SetExpr::Select(select) = *instead.body
            && let Some(only) = select.from.into_iter().next()
        {
            let called = alias.take().or_else(|| Some(part::called(&name.name)));
            *factor = only.relation;
            if let ast::TableFactor::Table { alias, .. } = factor {
                *alias = called;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Goes through a query, and through a statement that writes but for the table that it writes.
fn visit_but_target<V: VisitorMut>(query: &mut ast::Query, visitor: &mut V) -> ControlFlow<V::Break> {
    match query.body.as_mut() {
        ast::SetExpr::Update(ast::Statement::Update(update)) => {
            update.assignments.visit(visitor)?;
            update.from.visit(visitor)?;
            update.selection.visit(visitor)?;
            update.returning.visit(visitor)
        }
        ast::SetExpr::Delete(ast::Statement::Delete(delete)) => {
            delete.using.visit(visitor)?;
            delete.selection.visit(visitor)?;
            delete.returning.visit(visitor)
        }
        ast::SetExpr::Merge(ast::Statement::Merge(merge)) => {
            merge.source.visit(visitor)?;
            merge.on.visit(visitor)?;
            merge.clauses.visit(visitor)
        }
        _ => query.visit(visitor),
    }
}

impl VisitorMut for Asking<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Error> {
        self.depth += 1;
        let taken = match self.depth > 1 && self.can_be_first(query) {
            true => self.take(query.clone()).map(|instead| *query = instead),
            false => self.take_sides(&mut query.body),
        };
        match taken {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn post_visit_query(&mut self, _: &mut ast::Query) -> ControlFlow<Error> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

/// Puts what a statement asks of the tables that it changes before what changes them, as far as that needs none of it.
///
/// # Errors
/// Does not fail: what it begins from can be read.
pub(super) fn asked_first(
    catalog: &Catalog,
    query: &ast::Query,
    changed: &[ObjectName],
    reads_alone: &dyn Fn(&ast::Query) -> Option<Vec<ObjectName>>,
) -> Result<AskedFirst> {
    let commons = query.with.as_ref().map(|with| with.cte_tables.as_slice()).unwrap_or_default();
    let as_it_is = || AskedFirst { query: query.clone(), asked: vec![false; commons.len()], answer: None };
    let mut asking = Asking {
        catalog,
        changed,
        reads_alone,
        is_recursive: query.with.as_ref().is_some_and(|with| with.recursive),
        first: Vec::new(),
        others: Vec::new(),
        found: Vec::new(),
        depth: 0,
    };
    if !asking.asks(query) {
        return Ok(as_it_is());
    }
    let mut rest = Vec::new();
    for common in commons {
        match writes(&common.query) || asking.needs_others(&common.query) {
            true => {
                asking.others.push(folded(&common.alias.name));
                rest.push(common.clone());
            }
            false => asking.first.push(common.clone()),
        }
    }
    let asked: Vec<bool> = asking.first.iter().map(|common| asking.can_be_first(&common.query)).collect();
    for common in &mut rest {
        if let ControlFlow::Break(error) = common.query.visit(&mut asking) {
            return Err(error);
        }
    }
    let mut main = ast::Query { with: None, ..query.clone() };
    let mut answer = None;
    if asking.can_be_first(&main) {
        answer = Some(asking.first.len() + asking.found.len());
        asking.take(main.clone())?;
    } else if let ControlFlow::Break(error) = main.visit(&mut asking) {
        return Err(error);
    }
    let names = commons.iter().map(|common| folded(&common.alias.name)).collect();
    let mut tables = WholeTables { asking: &mut asking, commons: names };
    let bodies = rest.iter_mut().map(|common| common.query.as_mut());
    let main_too = answer.is_none().then_some(&mut main);
    for body in bodies.chain(main_too) {
        if let ControlFlow::Break(error) = visit_but_target(body, &mut tables) {
            return Err(error);
        }
    }
    let Asking { first, found, .. } = asking;
    let mut places = asked;
    places.resize(first.len() + found.len(), true);
    places.resize(first.len() + found.len() + rest.len(), false);
    main.with = query.with.as_ref().map(|with| ast::With {
        cte_tables: first.into_iter().chain(found).chain(rest).collect(),
        ..with.clone()
    });
    Ok(AskedFirst { query: main, asked: places, answer })
}
