//! Constraints that are checked when a transaction ends (ISO/IEC 9075-2, constraint mode), and `SET CONSTRAINTS`.
//!
//! ```text
//! statement    under a catalog that says which constraints are deferred; gives back what does not hold: a doubt
//! SET CONSTRAINTS ... IMMEDIATE, COMMIT    what is doubtful is looked up once more
//! ```

use super::Connection;
use fabius_sql_meaning::catalog::{
    Catalog, ConstraintId, ForeignKey, Key, ReferentialAction, Table, Until, parts,
};
use fabius_sql_meaning::type_rules::without_modifiers;
use fabius_sql_program::lowered::{Fate, Lowered};
use fabius_sql_syntax::written::{quoted, quoted_object};
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast;
use std::collections::{BTreeMap, BTreeSet};

/// More doubts about one constraint are settled by looking at the whole table.
const SINGLE: usize = 1000;

/// What `SET CONSTRAINTS` has said in a transaction: whether a constraint is deferred.
#[derive(Clone, Debug, Default)]
pub(super) struct ConstraintModes {
    all: Option<bool>,
    each: BTreeMap<ConstraintId, bool>,
    /// Those that wait until all parts of the running statement have run.
    postponed: BTreeSet<ConstraintId>,
}

/// What did not hold when a statement was over: a reference, or that a key is one row's alone.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Doubt {
    constraint: ConstraintId,
    of: Fate,
    /// Values of the constraint's columns; of references that are to change with a key, the new ones behind them.
    values: Vec<Value>,
}

impl Doubt {
    /// What a program has given back as doubtful.
    pub fn all(catalog: &Catalog, lowered: &Lowered, lists: Vec<Value>) -> Vec<Doubt> {
        let mut doubts = Vec::new();
        for (doubtful, list) in lowered.doubtful.iter().zip(lists) {
            let (Value::List(rows), Some(table)) = (list, catalog.tables.get(&doubtful.table)) else {
                continue;
            };
            let constraint = (table.oid, doubtful.constraint.clone());
            doubts.extend(rows.into_iter().map(|values| Doubt {
                constraint: constraint.clone(),
                of: doubtful.of,
                values,
            }));
        }
        doubts
    }

    /// What the reference does to the rows that refer to what is gone or has changed.
    fn action(&self, key: &ForeignKey) -> Option<ReferentialAction> {
        match self.of {
            Fate::New | Fate::Gone | Fate::Shared => None,
            Fate::Deleted => Some(key.on_delete),
            Fate::Changed => Some(key.on_update),
        }
    }
}

impl ConstraintModes {
    /// The constraints of a catalog that wait.
    pub fn waiting(&self, catalog: &Catalog) -> BTreeMap<ConstraintId, Until> {
        let deferred = catalog.deferrable.keys().filter(|id| self.defers(catalog, id));
        let deferred = deferred.map(|id| (id.clone(), Until::Transaction));
        deferred.chain(self.postponed.iter().map(|id| (id.clone(), Until::Statement))).collect()
    }

    fn defers(&self, catalog: &Catalog, id: &ConstraintId) -> bool {
        let said = self.each.get(id).copied().or(self.all);
        catalog.deferrable.get(id).is_some_and(|initially| said.unwrap_or(*initially))
    }

    fn set(&mut self, named: Option<Vec<ConstraintId>>, is_deferred: bool) {
        match named {
            None => *self = ConstraintModes { all: Some(is_deferred), ..ConstraintModes::default() },
            Some(named) => self.each.extend(named.into_iter().map(|id| (id, is_deferred))),
        }
    }
}

impl Connection {
    /// `SET CONSTRAINTS`; without names, of all that can be deferred.
    pub(super) async fn set_constraints(
        &mut self,
        names: Option<&[ast::ObjectName]>,
        is_deferred: bool,
    ) -> Result<()> {
        if self.transaction.is_idle() {
            self.session.warn(b"25P01", "SET CONSTRAINTS can only be used in transaction blocks");
            return Ok(());
        }
        let catalog = self.catalog();
        let mut named = names.map(|_| Vec::new());
        for name in names.unwrap_or_default() {
            named.get_or_insert_default().extend(deferrable_named(&catalog, name)?);
        }
        if !is_deferred {
            self.settle_doubts(|id| named.as_ref().is_none_or(|named| named.contains(id))).await?;
        }
        if let Some(open) = self.transaction.get_mut() {
            open.constraint_modes.set(named, is_deferred);
        }
        self.session.forget_catalog();
        Ok(())
    }

    /// Lets references wait until [`Connection::end_postponing`]. Does nothing within a statement in which some do.
    pub(super) fn postpone(&mut self, references: BTreeSet<ConstraintId>) -> bool {
        let open = self.transaction.get_mut().filter(|open| open.constraint_modes.postponed.is_empty());
        let Some(open) = open.filter(|_| !references.is_empty()) else { return false };
        open.constraint_modes.postponed = references;
        self.session.forget_catalog();
        true
    }

    /// Does what the references ask for that have waited until all parts of a statement had run; nothing if one failed.
    ///
    /// # Errors
    /// `23503`, and whatever changing the rows gives that refer to others.
    pub(super) async fn end_postponing<T>(&mut self, postpones: bool, outcome: Result<T>) -> Result<T> {
        if !postpones {
            return outcome;
        }
        let ended = self.settle_postponed(outcome.is_ok()).await;
        outcome.and_then(|done| ended.map(|()| done))
    }

    async fn settle_postponed(&mut self, have_run: bool) -> Result<()> {
        let Some(open) = self.transaction.get_mut() else { return Ok(()) };
        let postponed = std::mem::take(&mut open.constraint_modes.postponed);
        self.session.forget_catalog();
        if !have_run || open.doubts.is_empty() {
            return Ok(());
        }
        let catalog = self.catalog();
        let mut acting = Vec::new();
        for (oid, name) in &postponed {
            let table = catalog.tables.values().find(|table| table.oid == *oid);
            let key = table
                .and_then(|table| Some((table, table.foreign_keys.iter().find(|key| key.name == *name)?)));
            let Some((table, key)) = key else { continue };
            let is_it = |doubt: &mut Doubt| doubt.constraint.0 == *oid && doubt.constraint.1 == *name;
            let Some(open) = self.transaction.get_mut() else { return Ok(()) };
            acting.extend(
                open.doubts
                    .extract_if(.., |doubt| is_it(doubt) && doubt.action(key).is_some())
                    .map(|doubt| (table.clone(), key.clone(), doubt)),
            );
        }
        for (table, key, doubt) in acting {
            Box::pin(self.act(&table, &key, &doubt)).await?;
        }
        let modes = self.transaction.get().map(|open| open.constraint_modes.clone()).unwrap_or_default();
        self.settle_doubts(|id| postponed.contains(id) && !modes.defers(&catalog, id)).await
    }

    /// `CASCADE`, `SET NULL` and `SET DEFAULT`, for the rows that refer to one that is gone or has another key.
    async fn act(&mut self, table: &Table, key: &ForeignKey, doubt: &Doubt) -> Result<()> {
        let Some(action) = doubt.action(key) else { return Ok(()) };
        let (count, child) = (key.columns.len(), quoted_object(&table.name));
        let each = |write: &dyn Fn(usize, String) -> String, between: &str| {
            let columns = key.columns.iter().enumerate();
            columns.map(|(at, column)| write(at + 1, quoted(column))).collect::<Vec<_>>().join(between)
        };
        let is_meant = each(&|at, column| format!("{column} = ${at}"), " AND ");
        let set = |value: &dyn Fn(usize) -> String| {
            let set = each(&|at, column| format!("{column} = {}", value(at)), ", ");
            format!("UPDATE {child} SET {set} WHERE {is_meant}")
        };
        let text = match action {
            ReferentialAction::Cascade if doubt.of == Fate::Deleted => {
                format!("DELETE FROM {child} WHERE {is_meant}")
            }
            ReferentialAction::Cascade => set(&|at| format!("${}", count + at)),
            ReferentialAction::SetDefault => set(&|_| "DEFAULT".to_string()),
            _ => set(&|_| "NULL".to_string()),
        };
        let types = key.columns.iter().filter_map(|own| table.column(own));
        let types: Vec<_> = types.map(|column| without_modifiers(&column.sql_type)).collect();
        let types: Vec<_> = types.iter().chain(&types).take(doubt.values.len()).cloned().collect();
        self.query_rows(&text, &types, &doubt.values).await.map(|_| ())
    }

    /// Looks once more at what did not hold.
    ///
    /// # Errors
    /// `23503`, `23505`
    pub(super) async fn settle_doubts(&mut self, which: impl Fn(&ConstraintId) -> bool) -> Result<()> {
        let Some(open) = self.transaction.get_mut().filter(|open| !open.doubts.is_empty()) else {
            return Ok(());
        };
        let (doubts, rest) = open.doubts.drain(..).partition(|doubt: &Doubt| which(&doubt.constraint));
        open.doubts = rest;
        let mut by_constraint: BTreeMap<ConstraintId, Vec<Doubt>> = BTreeMap::new();
        for doubt in doubts {
            let known: &mut Vec<Doubt> = by_constraint.entry(doubt.constraint.clone()).or_default();
            if known.last() != Some(&doubt) {
                known.push(doubt);
            }
        }
        for ((oid, name), doubts) in by_constraint {
            let catalog = self.catalog();
            let Some(table) = catalog.tables.values().find(|table| table.oid == oid).cloned() else {
                continue;
            };
            let named = |key: &str| key == name;
            let mut references: Vec<_> = table.foreign_keys.iter().filter(|key| named(&key.name)).collect();
            let mut unique: Vec<_> = table.late_keys().filter(|key| named(&key.name)).collect();
            let mut each: Vec<_> = doubts.iter().map(Some).collect();
            let is_renamed = references.is_empty() && unique.is_empty();
            if is_renamed {
                references.extend(&table.foreign_keys);
                unique.extend(table.late_keys());
            }
            if is_renamed || doubts.len() > SINGLE {
                each = vec![None];
            }
            for doubt in each {
                for key in &references {
                    self.verify_reference(&table, key, doubt).await?;
                }
                for key in &unique {
                    self.verify_unique(&table, key, doubt).await?;
                }
            }
        }
        Ok(())
    }

    /// Looks whether a table's reference holds: for all of its rows, or for those that something doubtful is about.
    ///
    /// # Errors
    /// `23503`
    pub(crate) async fn verify_reference(
        &mut self,
        table: &Table,
        key: &ForeignKey,
        doubt: Option<&Doubt>,
    ) -> Result<()> {
        let pairs = key.columns.iter().zip(&key.parent_columns);
        let mut conditions: Vec<String> =
            key.columns.iter().map(|own| format!("c.{} IS NOT NULL", quoted(own))).collect();
        if doubt.is_some() {
            let meant = key.columns.iter().enumerate();
            conditions.extend(meant.map(|(at, own)| format!("c.{} = ${}", quoted(own), at + 1)));
        }
        let equal: Vec<String> =
            pairs.map(|(own, parent)| format!("p.{} = c.{}", quoted(parent), quoted(own))).collect();
        let own: Vec<String> = key.columns.iter().map(|own| format!("c.{}::text", quoted(own))).collect();
        let text = format!(
            "SELECT {} FROM {} c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} p WHERE {}) LIMIT 1",
            own.join(", "),
            quoted_object(&table.name),
            conditions.join(" AND "),
            quoted_object(&key.parent),
            equal.join(" AND ")
        );
        let (types, values) = match doubt {
            None => (Vec::new(), [].as_slice()),
            Some(doubt) => {
                let types = key.columns.iter().filter_map(|own| table.column(own));
                (types.map(|column| without_modifiers(&column.sql_type)).collect(), doubt.values.as_slice())
            }
        };
        let rows = Box::pin(self.query_rows(&text, &types, values)).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let values = row.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let child = &table.name.name;
        let parent = &key.parent.name;
        let (message, detail) = match doubt.map(|doubt| doubt.of) {
            Some(Fate::Gone) => (
                format!(
                    "update or delete on table \"{parent}\" violates foreign key constraint \"{}\" on table \
                     \"{child}\"",
                    key.name
                ),
                format!(
                    "Key ({})=({values}) is still referenced from table \"{child}\".",
                    key.parent_columns.join(", ")
                ),
            ),
            _ => (
                format!(
                    "insert or update on table \"{child}\" violates foreign key constraint \"{}\"",
                    key.name
                ),
                format!("Key ({})=({values}) is not present in table \"{parent}\".", key.columns.join(", ")),
            ),
        };
        Err(Error::new(SqlState(*b"23503"), message)
            .with_detail(detail)
            .with_table(&table.name.schema, child)
            .with_constraint(&key.name))
    }

    /// Looks whether keys are one row's alone: all of a constraint, or those that something doubtful is about.
    ///
    /// # Errors
    /// `23505`
    pub(crate) async fn verify_unique(
        &mut self,
        table: &Table,
        key: &Key,
        doubt: Option<&Doubt>,
    ) -> Result<()> {
        let own: Vec<String> = key.columns.iter().map(|own| quoted(own)).collect();
        let conditions = own.iter().enumerate().map(|(at, own)| match doubt {
            Some(_) => format!("{own} = ${}", at + 1),
            None => format!("{own} IS NOT NULL"),
        });
        let texts: Vec<String> = own.iter().map(|own| format!("min({own}::text)")).collect();
        let text = format!(
            "SELECT {} FROM {} WHERE {} GROUP BY {} HAVING count(*) > 1 LIMIT 1",
            texts.join(", "),
            quoted_object(&table.name),
            conditions.collect::<Vec<_>>().join(" AND "),
            own.join(", ")
        );
        let values = doubt.map_or(&[][..], |doubt| &doubt.values);
        let types = key.columns.iter().filter_map(|own| table.column(own)).take(values.len());
        let types: Vec<_> = types.map(|column| without_modifiers(&column.sql_type)).collect();
        let rows = Box::pin(self.query_rows(&text, &types, values)).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let values = row.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let message = format!("duplicate key value violates unique constraint \"{}\"", key.name);
        Err(Error::new(SqlState::UNIQUE_VIOLATION, message)
            .with_detail(format!("Key ({})=({values}) already exists.", key.columns.join(", ")))
            .with_table(&table.name.schema, &table.name.name)
            .with_constraint(&key.name))
    }

    /// Whether an error of a statement by itself is about a constraint that transactions check when they end.
    pub(super) fn is_of_deferred(&mut self, error: &Error) -> bool {
        let constraint = error.place().and_then(|place| place.constraint.clone());
        let Some(constraint) = constraint.filter(|_| self.transaction.is_idle()) else { return false };
        let is_keyed = self.session.settings.idempotency_key().is_some();
        !is_keyed
            && self
                .catalog()
                .deferrable
                .iter()
                .any(|((_, name), initially)| *initially && *name == constraint)
    }

    /// Refuses a change of a table about whose rows something is doubtful.
    ///
    /// # Errors
    /// `55006`
    pub(crate) fn refuse_doubtful(&self, table: &Table) -> Result<()> {
        let doubts = self.transaction.get().into_iter().flat_map(|open| &open.doubts);
        match doubts.into_iter().any(|doubt| doubt.constraint.0 == table.oid) {
            true => Err(Error::new(
                SqlState(*b"55006"),
                format!("cannot ALTER TABLE \"{}\" because it has pending trigger events", table.name.name),
            )
            .with_hint("SET CONSTRAINTS ALL IMMEDIATE checks what is deferred now.")),
            false => Ok(()),
        }
    }
}

/// The constraints that a name means.
fn deferrable_named(catalog: &Catalog, name: &ast::ObjectName) -> Result<Vec<ConstraintId>> {
    let (schema, name) = parts(name)?;
    let mut known = false;
    for candidate in catalog.candidates(schema.as_deref(), &name) {
        let tables = catalog.tables.values().filter(|table| table.name.schema == candidate.schema);
        let having =
            tables.filter(|table| table.has_constraint(&name)).map(|table| (table.oid, name.clone()));
        let (deferrable, fixed): (Vec<_>, Vec<_>) =
            having.partition(|id| catalog.deferrable.contains_key(id));
        known |= !fixed.is_empty();
        if !deferrable.is_empty() {
            return Ok(deferrable);
        }
    }
    Err(match known {
        true => Error::new(SqlState(*b"42809"), format!("constraint \"{name}\" is not deferrable")),
        false => Error::new(SqlState(*b"42704"), format!("constraint \"{name}\" does not exist")),
    })
}
