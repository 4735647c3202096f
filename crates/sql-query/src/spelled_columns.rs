//! `*` as the columns that it stands for now. What a view says must not change when its tables get others.

use crate::bind::{Binder, Wildcard};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::functions::Environment;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::session_facts::SessionFacts;
use fabius_value::Result;
use sqlparser::ast::{self, SelectItem};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A query, read from a text, whose lists say all their columns by name.
///
/// # Errors
/// What is wrong with it.
pub fn with_spelled_columns(
    query: &ast::Query,
    catalog: &Arc<Catalog>,
    session: &Arc<dyn SessionFacts>,
) -> Result<ast::Query> {
    let (catalog, session, style) = (catalog.clone(), session.clone(), session.text_style());
    let environment = Arc::new(Environment { catalog, session, style });
    let mut types = ParameterTypes::default();
    let mut binder = Binder::new(environment, &mut types);
    let wildcards = binder.wildcards_of(query)?;
    let mut spelled = query.clone();
    let mut spelling = Spelling { wildcards, known: Vec::new() };
    let _ = ast::Visit::visit(query, &mut spelling);
    let _ = ast::VisitMut::visit(&mut spelled, &mut spelling);
    Ok(spelled)
}

/// Lists of columns for those that have a `*`.
struct Spelling {
    wildcards: Vec<Wildcard>,
    /// The lists of each `SELECT` that was bound. One that stands twice, as a key of `GROUP BY`, is bound once.
    known: Vec<(ast::Select, Vec<SelectItem>)>,
}

impl Spelling {
    /// A list whose every `*` is known.
    fn list(&self, select: &ast::Select) -> Option<Vec<SelectItem>> {
        let mut list = Vec::with_capacity(select.projection.len());
        for item in &select.projection {
            match item {
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => {
                    let place = options.wildcard_token.0.span.start;
                    list.extend(self.wildcards.iter().find(|(at, _)| *at == place)?.1.iter().cloned());
                }
                other => list.push(other.clone()),
            }
        }
        Some(list)
    }
}

fn has_wildcard(select: &ast::Select) -> bool {
    let is_wildcard =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    select.projection.iter().any(is_wildcard)
}

impl ast::Visitor for Spelling {
    type Break = ();

    fn pre_visit_select(&mut self, select: &ast::Select) -> ControlFlow<()> {
        if has_wildcard(select)
            && let Some(list) = self.list(select)
        {
            self.known.push((select.clone(), list));
        }
        ControlFlow::Continue(())
    }
}

impl ast::VisitorMut for Spelling {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        if has_wildcard(select) {
            let alike = || self.known.iter().find(|(known, _)| known == select).map(|(_, list)| list.clone());
            if let Some(list) = self.list(select).or_else(alike) {
                select.projection = list;
            }
        }
        ControlFlow::Continue(())
    }
}
