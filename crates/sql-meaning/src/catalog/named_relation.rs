//! Names of relations in a query: with their schemas, or as short as the search path lets them be.

use super::{Catalog, ObjectName, Relation, TEMPORARY, folded, parts};
use fabius_sql_syntax::Command;
use fabius_sql_syntax::identifier::quote_identifier;
use sqlparser::ast::{self, ObjectNamePart, VisitMut, VisitorMut, visit_relations};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// How relations are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Naming {
    /// With their schemas.
    Whole,
    /// Without, where the search path leads to them.
    Short,
}

/// A query with the relations that it names named so. Common table expressions keep their names.
pub fn along(catalog: &Catalog, query: &ast::Query, naming: Naming) -> ast::Query {
    let mut query = query.clone();
    let mut commons = Commons::default();
    let _ = query.visit(&mut commons);
    let _ = query.visit(&mut Renaming { catalog, naming, commons: commons.names });
    query
}

/// The names of common table expressions, wherever they stand.
#[derive(Default)]
struct Commons {
    names: BTreeSet<String>,
}

impl VisitorMut for Commons {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        let commons = query.with.iter().flat_map(|with| &with.cte_tables);
        self.names.extend(commons.map(|common| folded(&common.alias.name)));
        ControlFlow::Continue(())
    }
}

struct Renaming<'c> {
    catalog: &'c Catalog,
    naming: Naming,
    commons: BTreeSet<String>,
}

impl VisitorMut for Renaming<'_> {
    type Break = ();

    fn pre_visit_relation(&mut self, relation: &mut ast::ObjectName) -> ControlFlow<()> {
        let Ok((schema, name)) = parts(relation) else { return ControlFlow::Continue(()) };
        if schema.is_none() && self.commons.contains(&name) {
            return ControlFlow::Continue(());
        }
        let found = match self.catalog.relation(relation) {
            Ok(Some(Relation::Table(table))) => &table.name,
            Ok(Some(Relation::View(view))) => &view.name,
            Ok(Some(Relation::Sequence(sequence))) => &sequence.name,
            _ => return ControlFlow::Continue(()),
        };
        if found.schema == TEMPORARY {
            return ControlFlow::Continue(());
        }
        let part = |name: &str| {
            let is_plain = quote_identifier(name) == name;
            let ident = if is_plain { ast::Ident::new(name) } else { ast::Ident::with_quote('"', name) };
            ObjectNamePart::Identifier(ident)
        };
        let is_short =
            self.naming == Naming::Short && !self.commons.contains(&found.name) && self.leads_to(found);
        relation.0 = match is_short {
            true => vec![part(&found.name)],
            false => vec![part(&found.schema), part(&found.name)],
        };
        ControlFlow::Continue(())
    }
}

impl Renaming<'_> {
    /// Whether the search path leads from a relation's short name to it.
    fn leads_to(&self, relation: &ObjectName) -> bool {
        let mut along = self.catalog.candidates(None, &relation.name).into_iter();
        along.find(|name| self.catalog.relation_named(name).is_some()).as_ref() == Some(relation)
    }
}

/// The relations that a view's query names.
pub fn relations_of(catalog: &Catalog, query: &str) -> BTreeSet<ObjectName> {
    let mut names = BTreeSet::new();
    let Ok(Command::Sql(statement)) = fabius_sql_syntax::parse(query) else {
        return names;
    };
    let _ = visit_relations(&*statement, |relation| {
        names.extend(parts(relation).ok().and_then(|(schema, short)| {
            let candidates = catalog.candidates(schema.as_deref(), &short);
            candidates.into_iter().find(|name| catalog.relation_named(name).is_some())
        }));
        ControlFlow::<()>::Continue(())
    });
    names
}
