//! What a `*` stands for.

use super::Binder;
use fabius_value::Result;
use sqlparser::ast::{self, SelectItem};
use sqlparser::tokenizer::Location;

/// A `*`, by its place in the text, and the columns that it stands for.
pub(crate) type Wildcard = (Location, Vec<SelectItem>);

impl Binder<'_> {
    /// What each `*` of a query's text stands for.
    pub(crate) fn wildcards_of(&mut self, query: &ast::Query) -> Result<Vec<Wildcard>> {
        self.wildcards = Some(Vec::new());
        self.query(query)?;
        Ok(self.wildcards.take().unwrap_or_default())
    }

    /// Notes what a `*` stands for, if that is asked.
    pub(super) fn note_wildcard(
        &mut self,
        options: &ast::WildcardAdditionalOptions,
        columns: impl FnOnce() -> Vec<SelectItem>,
    ) {
        if let Some(wildcards) = &mut self.wildcards {
            wildcards.push((options.wildcard_token.0.span.start, columns()));
        }
    }
}

/// A column of a list, by its name and perhaps that of its relation.
pub(super) fn column(relation: Option<&str>, name: &str) -> SelectItem {
    let quoted = |name: &str| ast::Ident::with_quote('"', name);
    // A relation that the text has no name for.
    SelectItem::UnnamedExpr(match relation.filter(|relation| !relation.starts_with('?')) {
        Some(relation) => ast::Expr::CompoundIdentifier(vec![quoted(relation), quoted(name)]),
        None => ast::Expr::Identifier(quoted(name)),
    })
}
