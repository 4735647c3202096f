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
        self.with_names(Scope::of(relations), act)
    }

    /// Binds something with a scope as the innermost.
    pub(super) fn with_names<T>(&mut self, scope: Scope, act: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<T> {
        self.scopes.push(scope);
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
        let outer = std::mem::replace(&mut self.scopes, vec![Scope::of(relations)]);
        let variables = self.variables.take();
        let done = act(self);
        self.variables = variables;
        self.scopes = outer;
        done
    }

    /// What a name of one or more parts means; `None` if nothing has it.
    pub(super) fn lookup(&self, path: &[String], place: Place) -> Bind<Option<Found>> {
        for (out, scope) in self.scopes.iter().rev().enumerate() {
            let found = scope.names.find(path).map_err(|error| self.error(error, place))?;
            if let Some((relation, column)) = found {
                if self.variables.is_some_and(|variables| variables.variable(path).is_some()) {
                    let message = format!("column reference \"{}\" is ambiguous", path.join("."));
                    let detail = "It could refer to either a PL/pgSQL variable or a table column.";
                    return Err(self.error(super::stop::wrong(b"42702", message).with_detail(detail), place));
                }
                let at = self.scopes.len() - 1 - out;
                self.outermost.set(self.outermost.get().min(at));
                return Ok(Some(Found::Column { out, relation, column }));
            }
        }
        Ok(self.variables.and_then(|variables| variables.variable(path)).map(Found::Variable))
    }

    /// Does something; also gives whether names in it meant columns of the scopes that are there.
    pub(super) fn noting_outer<T>(&mut self, act: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<(T, bool)> {
        let before = self.outermost.replace(usize::MAX);
        let done = act(self);
        let within = self.outermost.get();
        self.outermost.set(before.min(within));
        Ok((done?, within < self.scopes.len()))
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
        let sees = |schema: Option<&str>, relation: &str| {
            self.scopes.iter().any(|scope| scope.names.has_relation(schema, relation))
        };
        if let [name] = path {
            if sees(None, name) {
                return Stop::Beyond("a whole row as a value".into());
            }
            if matches!(name.as_str(), "ctid" | "xmin" | "xmax" | "cmin" | "cmax" | "tableoid") {
                return Stop::Beyond(format!("system column {name}"));
            }
        }
        analysis::no_column(path, sees).into()
    }
}
