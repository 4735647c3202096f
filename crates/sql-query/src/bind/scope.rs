//! Names in scope: what SQL calls a plan's columns.

use super::Binder;
use datafusion::common::Column;
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;
use fabius_sql_meaning::analysis::{self, Named};
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

/// Where a column is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// By its name, and in `*`.
    Everywhere,
    /// With its relation, and in `relation.*`: a join has merged it with another of its name.
    OfRelation,
    /// Where it is asked for by name with its relation: what the system keeps of a row.
    OfSystem,
}

/// A column by the names that SQL has for it.
#[derive(Clone, Debug)]
pub(crate) struct ScopeColumn {
    /// The relation's alias or name.
    pub(crate) relation: String,
    /// The relation's schema, if it is a table without an alias.
    pub(crate) schema: Option<String>,
    pub(crate) output: Output,
    pub(crate) sight: Sight,
    /// Whether it is of the relation's primary key.
    pub(crate) is_key: bool,
}

/// A column that a join made of two.
#[derive(Clone, Debug)]
pub(crate) struct Merged {
    pub(crate) name: String,
    pub(crate) typed: Typed,
    /// The place of the column of the scope that it stands before in `*`.
    pub(crate) before: usize,
}

/// The columns that an expression may name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    pub(crate) columns: Vec<ScopeColumn>,
    /// What `JOIN ... USING` made of columns with one name: named without a relation.
    pub(crate) merged: Vec<Merged>,
    /// Of relations whose rows an outer join may miss: a column that is null where it does.
    pub(crate) present: Vec<(String, Column)>,
}

impl Scope {
    pub(crate) fn of_relation(relation: &str, outputs: Vec<Output>) -> Scope {
        let columns = outputs.into_iter().map(|output| ScopeColumn {
            relation: relation.to_string(),
            schema: None,
            output,
            sight: Sight::Everywhere,
            is_key: false,
        });
        Scope { columns: columns.collect(), ..Scope::default() }
    }

    pub(crate) fn join(mut self, other: Scope) -> Scope {
        let left = self.columns.len();
        self.columns.extend(other.columns);
        let merged = other.merged.into_iter();
        self.merged.extend(merged.map(|merged| Merged { before: merged.before + left, ..merged }));
        self.present.extend(other.present);
        self
    }

    /// Whether a column of the plan is one of its own.
    pub(crate) fn has_column(&self, column: &Column) -> bool {
        let is_merged = |merged: &Merged| merged.typed.expr.column_refs().contains(column);
        self.columns.iter().any(|own| own.output.column == *column) || self.merged.iter().any(is_merged)
    }

    /// Finds a column; `None` if there is none.
    fn find(&self, path: &[String]) -> Result<Option<Typed>> {
        let (relation, name) = match path {
            [name] => (None, name),
            [.., relation, name] => (Some(relation), name),
            [] => return Ok(None),
        };
        if relation.is_none()
            && let Some(merged) = self.merged.iter().find(|merged| merged.name == *name)
        {
            return Ok(Some(merged.typed.clone()));
        }
        let schema = if path.len() > 2 { path.get(path.len() - 3) } else { None };
        let mut found = self.columns.iter().filter(|column| {
            column.output.name == *name
                && relation.map_or(column.sight == Sight::Everywhere, |relation| column.relation == *relation)
                && schema.is_none_or(|schema| column.schema.as_ref().is_none_or(|own| own == schema))
        });
        let first = found.next();
        if found.next().is_some() {
            return Err(Error::new(SqlState(*b"42702"), format!("column reference \"{name}\" is ambiguous")));
        }
        let first = first.or_else(|| {
            // The one system column that there is; `*` has it not.
            let is_system = relation.is_none() && name == "tableoid";
            self.columns.iter().find(|column| is_system && column.output.name == *name)
        });
        Ok(first.map(|column| column.output.typed()))
    }

    /// The columns of `*`, in order: each with the name of its relation, which a merged one has not, and its own.
    pub(crate) fn shown(&self) -> Vec<(Option<&str>, &str, Typed)> {
        let mut shown = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            let merged = self.merged.iter().filter(|merged| merged.before == at);
            shown.extend(merged.map(|merged| (None, merged.name.as_str(), merged.typed.clone())));
            if column.sight == Sight::Everywhere {
                let (relation, output) = (column.relation.as_str(), &column.output);
                shown.push((Some(relation), output.name.as_str(), output.typed()));
            }
        }
        shown
    }

    pub(crate) fn has_relation(&self, relation: &str) -> bool {
        self.columns.iter().any(|column| column.relation == relation)
    }
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

    /// What is null where a relation's row is missing, if it may be; an error if there is no such relation.
    pub(super) fn presence(&self, relation: &str) -> Result<Option<Typed>> {
        let level =
            self.levels.iter().rev().enumerate().find(|(_, level)| level.scope.has_relation(relation));
        let Some((depth, level)) = level else {
            return Err(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("missing FROM-clause entry for table \"{relation}\""),
            ));
        };
        let present = level.scope.present.iter().find(|(known, _)| known == relation);
        let typed = present.map(|(_, column)| Typed::new(Expr::Column(column.clone()), SqlType::Boolean));
        Ok(if depth > 0 { typed.map(outward) } else { typed })
    }

    /// What is wrong with a name that no column has.
    pub(super) fn no_column(&self, path: &[String]) -> Error {
        let columns = || self.levels.iter().flat_map(|level| &level.scope.columns);
        analysis::no_column(path, |schema, relation| match schema {
            None => self.levels.iter().any(|level| level.scope.has_relation(relation)),
            Some(schema) => columns()
                .any(|column| column.relation == relation && column.schema.as_deref() == Some(schema)),
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
