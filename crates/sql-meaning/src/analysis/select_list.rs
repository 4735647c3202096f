//! Lists of `SELECT` and `RETURNING`: what their entries are, and what the columns are called.

use super::scope::{Column, Scope};
use crate::catalog::{folded, parts};
use crate::column_name;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, Expr, SelectItem};

/// An entry of a list, as it is written.
pub enum Entry<'q> {
    /// An expression, after the name of its column.
    Computed(String, &'q Expr),
    /// `*`
    All(&'q ast::WildcardAdditionalOptions),
    /// `relation.*`, perhaps with a schema.
    AllOf {
        /// The schema.
        schema: Option<String>,
        /// The relation, or the alias of one.
        relation: String,
        /// The name as it is written.
        name: &'q ast::ObjectName,
        /// Where the `*` stands.
        wildcard: &'q ast::WildcardAdditionalOptions,
    },
}

impl Entry<'_> {
    /// Takes an entry apart.
    ///
    /// # Errors
    /// `0A000` if it is none of SQL.
    pub fn of(item: &SelectItem) -> Result<Entry<'_>> {
        match item {
            SelectItem::UnnamedExpr(expression) => {
                Ok(Entry::Computed(column_name::of(expression), expression))
            }
            SelectItem::ExprWithAlias { expr, alias } => Ok(Entry::Computed(folded(alias), expr)),
            SelectItem::Wildcard(wildcard) if is_plain(wildcard) => Ok(Entry::All(wildcard)),
            SelectItem::QualifiedWildcard(
                ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                wildcard,
            ) if is_plain(wildcard) => {
                let (schema, relation) = parts(name)?;
                Ok(Entry::AllOf { schema, relation, name, wildcard })
            }
            other => {
                let message = format!("{other} in a select list is not supported");
                Err(Error::new(SqlState::NOT_SUPPORTED, message))
            }
        }
    }
}

/// Whether a `*` stands by itself, without options that SQL has not.
fn is_plain(options: &ast::WildcardAdditionalOptions) -> bool {
    options.opt_ilike.is_none()
        && options.opt_exclude.is_none()
        && options.opt_except.is_none()
        && options.opt_replace.is_none()
        && options.opt_rename.is_none()
}

/// A column that `*` stands for: the name of its relation, which one that a join merged has not, and its own.
pub type Shown<'s, V> = (Option<&'s str>, &'s str, V);

/// The columns of `*`.
///
/// # Errors
/// `42601` where there is no `FROM`.
pub fn all_columns<C: Column>(scope: &Scope<C>) -> Result<Vec<Shown<'_, C::Value>>>
where
    C::Value: Clone,
{
    if scope.columns.is_empty() {
        return Err(Error::new(SqlState::SYNTAX_ERROR, "SELECT * with no tables specified is not valid"));
    }
    Ok(scope.shown())
}

/// That no relation of a name is in sight.
pub fn no_relation(relation: &str) -> Error {
    Error::new(SqlState::UNDEFINED_TABLE, format!("missing FROM-clause entry for table \"{relation}\""))
}
