//! What names of columns mean where they stand.

use super::binder::Binder;
use super::bound::Bound;
use super::scope::{Found, Relation, Scope};
use super::stop::{Bind, Place, Stop};
use fabius_sql_meaning::analysis;

impl Binder<'_> {
    /// The innermost scope.
    pub(super) fn scope(&mut self) -> &mut Scope {
        if self.scopes.is_empty() {
            self.scopes.push(Scope::default());
        }
        let last = self.scopes.len() - 1;
        &mut self.scopes[last]
    }

    /// Binds something with other relations in scope, outer ones behind them.
    pub(super) fn with_scope<T>(
        &mut self,
        relations: Vec<Relation>,
        act: impl FnOnce(&mut Self) -> Bind<T>,
    ) -> Bind<T> {
        self.scopes.push(Scope { relations });
        let done = act(self);
        self.scopes.pop();
        done
    }

    /// Binds something that sees these relations only: a `CHECK` or a `DEFAULT`.
    pub(super) fn with_only<T>(
        &mut self,
        relations: Vec<Relation>,
        act: impl FnOnce(&mut Self) -> Bind<T>,
    ) -> Bind<T> {
        let outer = std::mem::replace(&mut self.scopes, vec![Scope { relations }]);
        let variables = self.variables.take();
        let done = act(self);
        self.variables = variables;
        self.scopes = outer;
        done
    }

    /// What a name of one or more parts means; `None` if nothing has it.
    pub(super) fn lookup(&self, path: &[String], place: Place) -> Bind<Option<Found>> {
        for (out, scope) in self.scopes.iter().rev().enumerate() {
            let mut found = None;
            for (at, relation) in scope.relations.iter().enumerate() {
                let column = match path {
                    [column] => relation.column(column).filter(|column| !relation.hidden.contains(column)),
                    [name, column] if relation.name == *name => relation.column(column),
                    [schema, name, column] => match &relation.table {
                        Some(table) if table.name.schema == *schema && relation.name == *name => {
                            relation.column(column)
                        }
                        _ => None,
                    },
                    _ => None,
                };
                let Some(column) = column else { continue };
                if found.is_some() {
                    let message = format!("column reference \"{}\" is ambiguous", path.join("."));
                    return self.fail(b"42702", message, place);
                }
                found = Some(Found::Column { out, relation: at, column });
            }
            if let Some(found) = found {
                if self.variables.is_some_and(|variables| variables.variable(path).is_some()) {
                    let message = format!("column reference \"{}\" is ambiguous", path.join("."));
                    let detail = "It could refer to either a PL/pgSQL variable or a table column.";
                    return Err(self.error(super::stop::wrong(b"42702", message).with_detail(detail), place));
                }
                return Ok(Some(found));
            }
        }
        Ok(self.variables.and_then(|variables| variables.variable(path)).map(Found::Variable))
    }

    /// A name as an expression.
    pub(super) fn column_or_variable(&self, path: &[String]) -> Bind<Option<Bound>> {
        Ok(match self.lookup(path, Place::none())? {
            Some(Found::Variable(bound)) => Some(bound),
            Some(Found::Column { out, relation, column }) => {
                let scope = &self.scopes[self.scopes.len() - 1 - out];
                Some(scope.relations[relation].value(column)?)
            }
            None => None,
        })
    }

    /// That there is no such column.
    pub(super) fn unknown_column(&self, path: &[String]) -> Stop {
        let relations = || self.scopes.iter().flat_map(|scope| &scope.relations);
        if let [name] = path {
            if relations().any(|relation| relation.name == *name) {
                return Stop::Beyond("a whole row as a value".into());
            }
            if matches!(name.as_str(), "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid") {
                return Stop::Beyond(format!("system column {name}"));
            }
        }
        let is_of = |relation: &Relation, schema: &str| {
            relation.table.as_ref().is_some_and(|table| table.name.schema == schema)
        };
        let sees = |schema: Option<&str>, name: &str| {
            let mut named = relations().filter(|relation| relation.name == name);
            named.any(|relation| schema.is_none_or(|schema| is_of(relation, schema)))
        };
        analysis::no_column(path, sees).into()
    }
}
