//! Names in scope: what SQL calls a plan's columns.

use super::Binder;
use datafusion::common::Column;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::{self, Merged, Named, Sight, no_relation};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules::Candidate;
use fabius_value::{Error, Result, SqlState};

/// What a value is besides its type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flavor {
    /// Nothing.
    #[default]
    Plain,
    /// An object identifier that shows as the name of what it is of: `regclass`.
    Named(Named),
    /// An array whose subscripts begin at 0: `int2vector`, `oidvector`.
    Vector,
    /// A row of `information_schema._pg_expandarray`, kept as its `x`.
    Expanded,
}

/// An expression and its type.
#[derive(Clone, Debug)]
pub(crate) struct Typed {
    pub(crate) expr: Expr,
    pub(crate) sql_type: SqlType,
    pub(crate) flavor: Flavor,
    pub(crate) origin: (u32, u16),
}

impl Typed {
    pub(crate) fn new(expr: Expr, sql_type: SqlType) -> Typed {
        let sql_type = sql_type.of_values();
        Typed { expr, sql_type, flavor: Flavor::Plain, origin: (0, 0) }
    }

    /// A literal whose type is settled.
    pub(crate) fn literal(value: ScalarValue, sql_type: SqlType) -> Typed {
        Typed::new(Expr::Literal(value, None), sql_type)
    }

    /// What it says of the type that it has together with others.
    pub(crate) fn candidate(&self) -> Candidate<'_> {
        let is_null = matches!(&self.expr, Expr::Literal(value, _) if value.is_null());
        Candidate { sql_type: &self.sql_type, text: self.unknown_text(), is_null }
    }

    /// The text of a literal of unknown type.
    pub(crate) fn unknown_text(&self) -> Option<&str> {
        match (&self.sql_type, &self.expr) {
            (SqlType::Unknown, Expr::Literal(ScalarValue::Utf8(Some(text)), _)) => Some(text),
            _ => None,
        }
    }
}

/// A column that a query gives.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    pub(crate) name: String,
    pub(crate) column: Column,
    pub(crate) sql_type: SqlType,
    pub(crate) flavor: Flavor,
    pub(crate) origin: (u32, u16),
    /// A column that is null where an outer join has missed the row, if one may.
    pub(crate) is_there: Option<Column>,
}

impl Output {
    pub(crate) fn typed(&self) -> Typed {
        Typed {
            expr: Expr::Column(self.column.clone()),
            sql_type: self.sql_type.clone(),
            flavor: self.flavor,
            origin: self.origin,
        }
    }
}

impl analysis::Column for Output {
    type Value = Typed;

    fn name(&self) -> &str {
        &self.name
    }

    fn value(&self) -> Typed {
        self.typed()
    }
}

/// The columns that an expression may name.
pub(crate) type Scope = analysis::Scope<Output>;

/// A column by the names that SQL has for it.
pub(crate) type ScopeColumn = analysis::ScopeColumn<Output>;

/// What a relation's columns are to expressions.
pub(super) fn scope_of(relation: &str, outputs: Vec<Output>) -> Scope {
    let columns = outputs.into_iter().map(|output| ScopeColumn::new(relation, output, Sight::Everywhere));
    Scope { columns: columns.collect(), ..Scope::default() }
}

/// Whether a column of the plan is one of a scope's own.
pub(super) fn has_column(scope: &Scope, column: &Column) -> bool {
    let is_merged = |merged: &Merged<Typed>| merged.value.expr.column_refs().contains(column);
    scope.columns.iter().any(|own| own.column.column == *column) || scope.merged.iter().any(is_merged)
}

impl Binder<'_> {
    /// Finds a column in the innermost query that has it; further out it is a reference to the outer query's row.
    pub(super) fn find_column(&self, path: &[String]) -> Result<Option<Typed>> {
        for (depth, level) in self.levels.iter().rev().enumerate() {
            if let Some(mut typed) = level.scope.find(path)? {
                if depth > 0 {
                    typed = outward(typed);
                }
                return Ok(Some(typed));
            }
        }
        Ok(None)
    }

    /// A relation's columns with their names; `None` if no relation of the name is in sight.
    pub(super) fn columns_of(&self, schema: Option<&str>, relation: &str) -> Option<Vec<(String, Typed)>> {
        let mut levels = self.levels.iter().rev().enumerate();
        let (depth, level) = levels.find(|(_, level)| level.scope.has_relation(schema, relation))?;
        let columns = level.scope.columns_of(schema, relation).map(|column| {
            let typed = column.column.typed();
            (column.column.name.clone(), if depth > 0 { outward(typed) } else { typed })
        });
        Some(columns.collect())
    }

    /// What is null where a relation's row is missing, if it may be; an error if there is no such relation.
    pub(super) fn presence(&self, relation: &str) -> Result<Option<Typed>> {
        let mut levels = self.levels.iter().rev().enumerate();
        let level = levels.find(|(_, level)| level.scope.has_relation(None, relation));
        let Some((depth, level)) = level else {
            return Err(no_relation(relation));
        };
        let present =
            level.scope.columns_of(None, relation).find_map(|column| column.column.is_there.clone());
        let typed = present.map(|column| Typed::new(Expr::Column(column), SqlType::Boolean));
        Ok(if depth > 0 { typed.map(outward) } else { typed })
    }

    /// What is wrong with a name that no column has.
    pub(super) fn no_column(&self, path: &[String]) -> Error {
        analysis::no_column(path, |schema, relation| {
            self.levels.iter().any(|level| level.scope.has_relation(schema, relation))
        })
    }
}

/// A column as an inner query sees it.
pub(super) fn outward(typed: Typed) -> Typed {
    use crate::arrow_column::arrow_type;
    use datafusion::common::tree_node::{Transformed, TreeNode};
    let sql_type = typed.sql_type.clone();
    let expr = typed.expr.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => {
                let field = datafusion::arrow::datatypes::Field::new(
                    column.name.clone(),
                    arrow_type(&sql_type),
                    true,
                );
                Transformed::yes(Expr::OuterReferenceColumn(field.into(), column))
            }
            other => Transformed::no(other),
        })
    });
    Typed { expr: expr.map(|transformed| transformed.data).unwrap_or(typed.expr), ..typed }
}

/// A literal of unknown type.
pub(super) fn unknown(text: &str) -> Typed {
    Typed::literal(ScalarValue::Utf8(Some(text.to_string())), SqlType::Unknown)
}

/// False.
pub(super) fn false_literal() -> Expr {
    Expr::Literal(ScalarValue::Boolean(Some(false)), None)
}

/// An expression of the list, with the name of its column.
pub(super) struct Selected {
    pub(super) name: String,
    pub(super) typed: Typed,
    /// Whether there are aggregates in it over this query's rows.
    pub(super) has_aggregate: bool,
}

impl Selected {
    /// A column of what is selected from.
    pub(super) fn column(name: String, typed: Typed) -> Selected {
        Selected { name, typed, has_aggregate: false }
    }
}

/// Names columns anew, as many as there are names.
pub(super) fn rename(columns: &mut [Output], names: &[String], relation: &str) -> Result<()> {
    if names.len() > columns.len() {
        return Err(Error::new(
            SqlState(*b"42P10"),
            format!(
                "table \"{relation}\" has {} columns available but {} columns specified",
                columns.len(),
                names.len()
            ),
        ));
    }
    for (column, name) in columns.iter_mut().zip(names) {
        column.name = name.clone();
    }
    Ok(())
}
