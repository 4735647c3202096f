//! What is known where control has come to: what is not `None`, by tests of it and by what was assigned; and which rows
//! are as they were read, because nothing else can have written them since.

use super::lowering::Lowering;
use fabius_sql_meaning::catalog::{ForeignKey, ReferentialAction, Table};
use fabius_sql_syntax::plpgsql::tree::Statement as Done;
use fabius_sql_syntax::python::tree::{
    Comparison, Constant, Expression, ExpressionKind, Statement, StatementKind,
};
use fabius_value::Result;
use std::collections::BTreeSet;

/// Names, and columns of rows, that a condition says are there.
type Facts = BTreeSet<String>;

/// What a name or a column of a row is known by.
pub fn path_of(expression: &Expression) -> Option<String> {
    match &expression.kind {
        ExpressionKind::Name(name) => Some(name.clone()),
        ExpressionKind::Attribute(object, column) => match &object.kind {
            ExpressionKind::Name(name) => Some(format!("{name}.{column}")),
            _ => None,
        },
        _ => None,
    }
}

/// What says that a row of a name is as it was read. No name and no column is called so.
fn fresh(row: &str) -> String {
    format!("{row} is fresh")
}

/// What is there if a condition holds, and what is there if it does not.
pub fn facts(condition: &Expression) -> (Facts, Facts) {
    let none = Facts::new;
    match &condition.kind {
        ExpressionKind::Not(inner) => {
            let (holds, fails) = facts(inner);
            (fails, holds)
        }
        ExpressionKind::Joined(is_and, all) => {
            let all: Vec<(Facts, Facts)> = all.iter().map(facts).collect();
            let holding = all.iter().flat_map(|(holds, _)| holds.clone()).collect();
            let failing = all.iter().flat_map(|(_, fails)| fails.clone()).collect();
            if *is_and { (holding, none()) } else { (none(), failing) }
        }
        ExpressionKind::Compare(first, others) => match others.as_slice() {
            [(comparison, other)] if matches!(other.kind, ExpressionKind::Constant(Constant::None)) => {
                let path: Facts = path_of(first).into_iter().collect();
                match comparison {
                    Comparison::Is | Comparison::Equal => (none(), path),
                    Comparison::IsNot | Comparison::NotEqual => (path, none()),
                    _ => (none(), none()),
                }
            }
            _ => (none(), none()),
        },
        // What counts as true is not `None`.
        _ => (path_of(condition).into_iter().collect(), none()),
    }
}

impl Lowering<'_> {
    /// Does something where more is known to be there.
    pub(super) fn knowing<T>(&mut self, facts: Facts, act: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.present.clone();
        self.present.extend(facts);
        let done = act(self);
        self.present = before;
        done
    }

    /// A row has other columns from here on, as far as is known.
    pub(super) fn forget_columns(&mut self, row: &str) {
        let begin = format!("{row}.");
        self.present.retain(|path| !path.starts_with(&begin));
    }

    /// Rows may have changed, whichever they are.
    pub(super) fn forget_all_columns(&mut self) {
        self.present.retain(|path| !path.contains('.') && !path.ends_with(" is fresh"));
    }

    /// A row has just been read.
    pub(super) fn is_read(&mut self, row: &str) {
        self.present.insert(fresh(row));
    }

    /// Whether a row is as it was read.
    pub(super) fn is_fresh(&self, row: &str) -> bool {
        self.present.contains(&fresh(row))
    }

    /// A row of a table is written, by a name or by its key alone: those of other names may be the same.
    pub(super) fn is_written(&mut self, table: &Table, by: Option<&str>) {
        // What refers to it may follow.
        let follows = |key: &ForeignKey| {
            key.parent == table.name
                && !matches!(key.on_update, ReferentialAction::NoAction | ReferentialAction::Restrict)
        };
        if self.catalog.tables.values().any(|other| other.foreign_keys.iter().any(follows)) {
            let kept = by.filter(|name| self.is_fresh(name)).map(str::to_string);
            self.forget_all_columns();
            self.present.extend(kept.map(|name| fresh(&name)));
        }
        let table = table.oid;
        let rows = self.rows.iter().filter(|(name, row)| row.table.oid == table && by != Some(name));
        for (name, _) in rows {
            self.present.remove(&fresh(name));
        }
    }

    /// The body of a loop over rows.
    pub(super) fn repeated_of(&mut self, row: &str, body: &[Statement]) -> Result<Vec<Done>> {
        self.forget_assigned(body);
        // The rows were read before the loop: what it does may be to those that are still to come.
        let mut written = BTreeSet::new();
        let is_known = written_by(body, &mut written);
        let mut facts = Facts::from([row.to_string()]);
        if is_known && written.iter().all(|name| name == row) && !binds(body, row) {
            facts.insert(fresh(row));
        }
        let (block, _) = self.knowing(facts, |lowering| lowering.branch(body))?;
        Ok(block)
    }

    /// Before statements that run again and again: what they assign may have become `None`, and rows of other names may
    /// be those that they write.
    pub(super) fn forget_assigned(&mut self, statements: &[Statement]) {
        self.forget_values(statements);
        let mut written = BTreeSet::new();
        let is_known = written_by(statements, &mut written);
        self.present.retain(|path| match path.strip_suffix(" is fresh") {
            Some(row) => is_known && written.iter().all(|name| name == row),
            None => true,
        });
    }

    fn forget_values(&mut self, statements: &[Statement]) {
        for statement in statements {
            match &statement.kind {
                StatementKind::Assign(target, _) | StatementKind::Augment(target, ..) => match &target.kind {
                    ExpressionKind::Name(name) => {
                        self.forget_columns(name);
                        self.present.remove(name);
                    }
                    ExpressionKind::Attribute(object, _) => match &object.kind {
                        ExpressionKind::Name(name) => self.forget_columns(name),
                        _ => self.forget_all_columns(),
                    },
                    _ => {}
                },
                StatementKind::Range(name, ..)
                | StatementKind::Elements(name, ..)
                | StatementKind::Results(name, ..)
                | StatementKind::Rows(name, ..) => {
                    self.forget_columns(name);
                    self.present.remove(name);
                }
                StatementKind::Receive(names, _) => self.present.retain(|path| !names.contains(path)),
                _ => {}
            }
            statement.kind.branches().into_iter().for_each(|branch| self.forget_values(branch));
        }
    }
}

/// The names by which statements write rows; whether there are no other writes.
fn written_by(statements: &[Statement], names: &mut BTreeSet<String>) -> bool {
    statements.iter().all(|statement| match &statement.kind {
        StatementKind::Assign(target, value) | StatementKind::Augment(target, _, value) => {
            let is_known = match &target.kind {
                ExpressionKind::Attribute(object, _) => match &object.kind {
                    ExpressionKind::Name(name) => {
                        names.insert(name.clone());
                        true
                    }
                    _ => false,
                },
                _ => true,
            };
            is_known && !matches!(value.kind, ExpressionKind::Program(_) | ExpressionKind::Call(..))
        }
        StatementKind::Results(..) | StatementKind::Delete(_) => false,
        StatementKind::Expression(value) => matches!(
            &value.kind,
            ExpressionKind::Call(function, ..)
                if matches!(&function.kind, ExpressionKind::Attribute(_, name) if name == "require" || name == "insert")
        ),
        kind => kind.branches().into_iter().all(|branch| written_by(branch, names)),
    })
}

/// Whether statements give a name another value.
pub fn binds(statements: &[Statement], name: &str) -> bool {
    statements.iter().any(|statement| {
        let is_bound = match &statement.kind {
            StatementKind::Assign(target, _) => path_of(target).is_some_and(|path| path == name),
            StatementKind::Range(own, ..)
            | StatementKind::Elements(own, ..)
            | StatementKind::Results(own, ..)
            | StatementKind::Rows(own, ..) => own == name,
            _ => false,
        };
        is_bound || statement.kind.branches().into_iter().any(|branch| binds(branch, name))
    })
}
