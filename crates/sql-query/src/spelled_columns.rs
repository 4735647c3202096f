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
    let mut spelled = query.clone();
    let wildcards = binder.wildcards_of(query)?;
    let _ = ast::VisitMut::visit(&mut spelled, &mut Spelling(wildcards));
    Ok(spelled)
}

struct Spelling(Vec<Wildcard>);

impl ast::VisitorMut for Spelling {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        let list = std::mem::take(&mut select.projection);
        for item in list {
            let options = match &item {
                SelectItem::Wildcard(options) | SelectItem::QualifiedWildcard(_, options) => Some(options),
                _ => None,
            };
            let place = options.map(|options| options.wildcard_token.0.span.start);
            match self.0.iter().find(|(at, _)| Some(*at) == place) {
                Some((_, columns)) => select.projection.extend(columns.iter().cloned()),
                None => select.projection.push(item),
            }
        }
        ControlFlow::Continue(())
    }
}
