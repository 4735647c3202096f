//! Names of columns in sight: the relations of a `FROM`, and what `USING` and `NATURAL` make of columns with one name
//! (PostgreSQL's documentation, "Table Expressions").

use fabius_value::{Error, Result, SqlState};
use std::collections::BTreeSet;

/// A column as a back end knows it.
pub trait Column {
    /// What the back end makes of its name.
    type Value;

    /// The column's own name.
    fn name(&self) -> &str;

    /// The column as a value.
    fn value(&self) -> Self::Value;
}

/// Where a column is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// By its name, and in `*`.
    Everywhere,
    /// With its relation, and in `relation.*`: a join has merged it with another of its name.
    OfRelation,
    /// Where it is asked for by name with its relation: what the system keeps of a row.
    OfSystem,
}

/// A column by the names that SQL has for it.
#[derive(Clone, Debug)]
pub struct ScopeColumn<C> {
    /// The relation's alias or name.
    pub relation: String,
    /// The relation's schema, if it is named by its own name.
    pub schema: Option<String>,
    /// The column.
    pub column: C,
    /// Where it is seen.
    pub sight: Sight,
    /// Whether it is of the relation's primary key.
    pub is_key: bool,
}

impl<C> ScopeColumn<C> {
    /// A column of a relation that is in no schema.
    pub fn new(relation: &str, column: C, sight: Sight) -> ScopeColumn<C> {
        ScopeColumn { relation: relation.to_string(), schema: None, column, sight, is_key: false }
    }
}

/// A column that a join made of two.
#[derive(Clone, Debug)]
pub struct Merged<V> {
    /// The name of both.
    pub name: String,
    /// What it is.
    pub value: V,
    /// The place of the column of the scope that it stands before in `*`.
    pub before: usize,
}

/// The columns that an expression may name.
#[derive(Clone, Debug)]
pub struct Scope<C: Column> {
    /// The columns of its relations, in their order.
    pub columns: Vec<ScopeColumn<C>>,
    /// What `USING` made of columns with one name: named without a relation.
    pub merged: Vec<Merged<C::Value>>,
}

impl<C: Column> Default for Scope<C> {
    fn default() -> Scope<C> {
        Scope { columns: Vec::new(), merged: Vec::new() }
    }
}

/// The sides of a join, as messages call them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// What stands before it.
    Left,
    /// What stands behind it.
    Right,
}

impl<C: Column> Scope<C>
where
    C::Value: Clone,
{
    /// What stands on both sides of a join, or of a comma.
    #[must_use]
    pub fn join(mut self, other: Scope<C>) -> Scope<C> {
        let left = self.columns.len();
        self.columns.extend(other.columns);
        let merged = other.merged.into_iter();
        self.merged.extend(merged.map(|merged| Merged { before: merged.before + left, ..merged }));
        self
    }

    /// Refuses a relation that has the name of one which is there already.
    ///
    /// # Errors
    /// `42712`
    pub fn refuse_twice(&self, other: &Scope<C>) -> Result<()> {
        // What nobody can name is in nobody's way.
        let named = |column: &&ScopeColumn<C>| !column.relation.starts_with('?');
        let own: BTreeSet<_> =
            self.columns.iter().filter(named).map(|column| (&column.relation, &column.schema)).collect();
        let twice = other.columns.iter().find(|column| own.contains(&(&column.relation, &column.schema)));
        match twice {
            None => Ok(()),
            Some(column) => {
                let message = format!("table name \"{}\" specified more than once", column.relation);
                Err(Error::new(SqlState(*b"42712"), message))
            }
        }
    }

    /// The names that both sides of a `NATURAL JOIN` have, in the order of the left one.
    pub fn names_in_common(&self, right: &Scope<C>) -> Vec<String> {
        let others: BTreeSet<&str> = right.shown().into_iter().map(|(_, name, _)| name).collect();
        let own = self.shown().into_iter().map(|(_, name, _)| name);
        own.filter(|name| others.contains(name)).map(str::to_string).collect()
    }

    /// The column that one side of a join gives to a merged one; it is found with its relation only from here on.
    ///
    /// # Errors
    /// `42703` if the side has no such column, `42702` if it has several.
    pub fn give_to_merged(&mut self, name: &str, side: Side) -> Result<C::Value> {
        let side = if side == Side::Left { "left" } else { "right" };
        let merged = self.merged.iter().position(|merged| merged.name == name);
        let mut named = self
            .columns
            .iter_mut()
            .filter(|column| column.column.name() == name && column.sight == Sight::Everywhere);
        let first = named.next();
        if named.next().is_some() || first.is_some() && merged.is_some() {
            let message = format!("common column name \"{name}\" appears more than once in {side} table");
            return Err(Error::new(SqlState(*b"42702"), message));
        }
        match (merged, first) {
            (Some(at), _) => Ok(self.merged.remove(at).value),
            (None, Some(column)) => {
                column.sight = Sight::OfRelation;
                Ok(column.column.value())
            }
            (None, None) => {
                let message =
                    format!("column \"{name}\" specified in USING clause does not exist in {side} table");
                Err(Error::new(SqlState::UNDEFINED_COLUMN, message))
            }
        }
    }

    /// Both sides of a join with the columns that it merged, which stand first in `*`.
    #[must_use]
    pub fn join_merged(self, right: Scope<C>, merged: Vec<(String, C::Value)>) -> Scope<C> {
        let mut scope = self.join(right);
        let merged = merged.into_iter().map(|(name, value)| Merged { name, value, before: 0 });
        scope.merged.splice(..0, merged);
        scope
    }

    /// Finds a column by its name, or by those of its relation and schema before it; `None` if there is none.
    ///
    /// # Errors
    /// `42702` if it may be one of several, `42P09` if its relation may.
    pub fn find(&self, path: &[String]) -> Result<Option<C::Value>> {
        let [qualifiers @ .., name] = path else { return Ok(None) };
        let relation = qualifiers.last();
        let mut merged = self.merged.iter().filter(|merged| relation.is_none() && merged.name == *name);
        let mut named = self.named(path);
        let is_ambiguous = |others: usize| match others {
            0 => Ok(()),
            _ => {
                let message = format!("column reference \"{name}\" is ambiguous");
                Err(Error::new(SqlState(*b"42702"), message))
            }
        };
        if let Some(first) = merged.next() {
            is_ambiguous(merged.count() + named.count())?;
            return Ok(Some(first.value.clone()));
        }
        if let Some(first) = named.next() {
            if let Some(relation) = relation
                && self.named(path).any(|other| other.schema != first.schema)
            {
                let message = format!("table reference \"{relation}\" is ambiguous");
                return Err(Error::new(SqlState(*b"42P09"), message));
            }
            is_ambiguous(named.count())?;
            return Ok(Some(first.column.value()));
        }
        // The one system column that there is; `*` has it not.
        let is_system = relation.is_none() && name == "tableoid";
        let of_system = self.columns.iter().find(|column| is_system && column.column.name() == name);
        Ok(of_system.map(|column| column.column.value()))
    }

    /// The columns that a name may mean, besides merged ones.
    fn named<'s>(&'s self, path: &'s [String]) -> impl Iterator<Item = &'s ScopeColumn<C>> {
        let (name, relation) = (path.last(), path.len().checked_sub(2).map(|at| &path[at]));
        let schema = path.len().checked_sub(3).map(|at| &path[at]);
        self.columns.iter().filter(move |column| {
            Some(column.column.name()) == name.map(String::as_str)
                && relation.map_or(column.sight == Sight::Everywhere, |relation| column.relation == *relation)
                && schema.is_none_or(|schema| column.schema.as_ref() == Some(schema))
        })
    }

    /// All that a name may mean: one value, unless it is ambiguous.
    pub fn candidates(&self, path: &[String]) -> Vec<C::Value> {
        let is_bare = path.len() == 1;
        let merged = self.merged.iter().filter(|merged| is_bare && path.first() == Some(&merged.name));
        let named = self.named(path).map(|column| column.column.value());
        merged.map(|merged| merged.value.clone()).chain(named).collect()
    }

    /// The columns of `*`, in order: each with the name of its relation, which a merged one has not, and its own.
    pub fn shown(&self) -> Vec<(Option<&str>, &str, C::Value)> {
        let mut shown = Vec::with_capacity(self.columns.len());
        for (at, column) in self.columns.iter().enumerate() {
            let merged = self.merged.iter().filter(|merged| merged.before == at);
            shown.extend(merged.map(|merged| (None, merged.name.as_str(), merged.value.clone())));
            if column.sight == Sight::Everywhere {
                shown.push((Some(column.relation.as_str()), column.column.name(), column.column.value()));
            }
        }
        shown
    }

    /// The columns of `relation.*`, or `schema.relation.*`, in order.
    pub fn columns_of<'s>(
        &'s self,
        schema: Option<&'s str>,
        relation: &'s str,
    ) -> impl Iterator<Item = &'s ScopeColumn<C>> {
        let shown = self.columns.iter().filter(|column| column.sight != Sight::OfSystem);
        shown.filter(move |column| {
            column.relation == relation
                && schema.is_none_or(|schema| column.schema.as_deref() == Some(schema))
        })
    }

    /// Whether a relation is in sight, perhaps of a schema.
    pub fn has_relation(&self, schema: Option<&str>, relation: &str) -> bool {
        self.columns.iter().any(|column| {
            column.relation == relation
                && schema.is_none_or(|schema| column.schema.as_deref() == Some(schema))
        })
    }
}
