//! What SQL names mean: tables, views, sequences, functions.
//!
//! A catalog is immutable and shared; a DDL statement makes the next one. It is kept as rows of a table of the
//! database's own, one per object, so that changing it is a transaction like any other. A table's rows are in a
//! table of the storage that no SQL name reaches but through here: `ALTER TABLE` and `TRUNCATE` make a new one,
//! fill it, and let the catalog point at it.
//!
//! What a name means depends on the connection too (its `search_path`, its temporary tables, what it has defined
//! and not committed), so each looks at a catalog of its own, mostly a shared one. Two that say the same have the
//! same [`Catalog::version`].

pub mod access;
pub mod defined_type;
pub mod extension;
mod lookup;
pub mod named_relation;
pub mod role;
pub mod store;

pub use lookup::{
    Relation, SYSTEM, TEMPORARY, TEMPORARY_SHOWN, column_path, folded, name_of_text, parts, schema_shown,
};

use crate::sql_type::{Enumeration, SqlType};
use access::{Access, DefaultAccess};
pub use fabius_sql_syntax::command::Identity;
use fabius_sql_syntax::identifier::quote_qualified;
pub use fabius_sql_syntax::object_name::ObjectName;
use fabius_value::{Error, Result, SqlState};
use role::Roles;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// An object's number, as `pg_class.oid`.
pub type Oid = u32;

/// Everything that is defined, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// The number of the database that it is of.
    pub database: Oid,
    /// Two catalogs with the same version say the same.
    pub version: u64,
    /// Another one for each catalog that was ever committed; empty for those of earlier versions.
    pub token: String,
    /// Where names without a schema are looked for, besides `pg_temp` and `pg_catalog`, which come first.
    pub search_path: Vec<String>,
    /// Schemas besides `pg_catalog` and `information_schema`.
    pub schemas: BTreeMap<String, Oid>,
    /// Tables.
    pub tables: BTreeMap<ObjectName, Arc<Table>>,
    /// Views.
    pub views: BTreeMap<ObjectName, Arc<View>>,
    /// Sequences.
    pub sequences: BTreeMap<ObjectName, Arc<Sequence>>,
    /// Functions and procedures; one name may have several with different arguments.
    pub functions: BTreeMap<ObjectName, Vec<Arc<Function>>>,
    /// Types that are defined.
    pub enumerations: BTreeMap<ObjectName, Arc<Enumeration>>,
    /// Domains.
    pub domains: BTreeMap<ObjectName, Arc<Domain>>,
    /// `COMMENT ON`: by the object's number, and the column's place from 1, or 0.
    pub comments: BTreeMap<(Oid, u16), String>,
    /// `CREATE EXTENSION`: their numbers by their names.
    pub extensions: BTreeMap<String, Oid>,
    /// Materialized views that are not populated.
    pub unpopulated: BTreeSet<ObjectName>,
    /// Constraints that can be deferred, and whether they are from the beginning.
    pub deferrable: BTreeMap<ConstraintId, bool>,
    /// Roles, which are those of all databases.
    pub roles: Arc<Roles>,
    /// Whose privileges count: the role of who asks.
    pub role: Oid,
    /// Who owns what, and who may do what with it, where that is not [usual](access::Access::of).
    pub access: BTreeMap<Oid, Access>,
    /// `ALTER DEFAULT PRIVILEGES`
    pub default_access: BTreeMap<Oid, DefaultAccess>,
    /// References whose checks and actions wait, for the transaction or the statement whose catalog this is.
    pub waiting: BTreeMap<ConstraintId, Until>,
}

/// A constraint: its table's number, and its name.
pub type ConstraintId = (Oid, String);

/// A table as SQL sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The table's number.
    pub oid: Oid,
    /// The table's name.
    pub name: ObjectName,
    /// The table of the storage that holds its rows; its columns have these columns' names.
    pub storage: String,
    /// Columns, in the order of `SELECT *`.
    pub columns: Vec<Column>,
    /// The primary key. Without one, rows are told apart by a hidden column ([`ROW_NUMBER`]).
    pub primary_key: Option<Key>,
    /// Unique constraints and unique indexes.
    pub unique: Vec<Key>,
    /// Indexes that take rows with one key: those that are not unique, and those of unique constraints that can be
    /// deferred ([`Table::late_keys`]).
    pub indexes: Vec<Key>,
    /// `CHECK` constraints.
    pub checks: Vec<Check>,
    /// `REFERENCES` constraints.
    pub foreign_keys: Vec<ForeignKey>,
    /// `COMMENT ON CONSTRAINT`: by the constraint's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub constraint_comments: BTreeMap<String, String>,
    /// The query whose rows it keeps, of a materialized view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialized: Option<Materialized>,
}

/// What makes a table a materialized view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Materialized {
    /// The query, with relations named with their schemas.
    pub query: String,
    /// Whether it has been refreshed with data since it was made, or was made without: else it cannot be read.
    pub is_populated: bool,
}

impl Table {
    /// The column of a name.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// The place of a column, from 0.
    pub fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| column.name == name)
    }

    /// The place of a column that has to be there.
    ///
    /// # Errors
    /// `42703`
    pub fn place_of(&self, name: &str) -> Result<usize> {
        self.position(name).ok_or_else(|| self.no_column(name))
    }

    /// That it has no such column.
    pub fn no_column(&self, name: &str) -> Error {
        no_column(&self.name, name)
    }

    /// Drops references, and the hidden indexes that none of the others needs.
    pub fn keep_references(&mut self, is_kept: impl FnMut(&ForeignKey) -> bool) {
        self.foreign_keys.retain(is_kept);
        let references = &self.foreign_keys;
        let is_needed =
            |key: &Key| references.iter().any(|foreign| key.columns.starts_with(&foreign.columns));
        self.indexes.retain(|key| !key.is_hidden || is_needed(key));
    }

    /// Whether it has a constraint of this name.
    pub fn has_constraint(&self, name: &str) -> bool {
        let keys = self.keys().filter(|key| key.is_constraint);
        keys.map(|key| &key.name)
            .chain(self.own_checks().map(|check| &check.name))
            .chain(self.foreign_keys.iter().map(|key| &key.name))
            .any(|known| known == name)
    }

    /// The primary key, unique key or index of a name.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys().find(|key| key.name == name)
    }

    /// The primary key, the unique keys, the indexes.
    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.primary_key.iter().chain(&self.unique).chain(&self.indexes)
    }

    /// The unique constraints that can be deferred.
    pub fn late_keys(&self) -> impl Iterator<Item = &Key> {
        self.indexes.iter().filter(|key| key.deferral != Deferral::Never)
    }

    /// The constraints that may be checked behind a statement, each with its columns: references, and unique
    /// constraints that can be deferred.
    pub fn late_constraints(&self) -> impl Iterator<Item = (&String, &Vec<String>, Deferral)> {
        let references = self.foreign_keys.iter().map(|key| (&key.name, &key.columns, key.deferral));
        references.chain(self.late_keys().map(|key| (&key.name, &key.columns, key.deferral)))
    }

    /// The constraints that can be deferred, and whether they are from the beginning.
    pub fn deferrable(&self) -> impl Iterator<Item = (ConstraintId, bool)> {
        let deferrable = self.late_constraints().filter(|(.., deferral)| *deferral != Deferral::Never);
        deferrable
            .map(|(name, _, deferral)| ((self.oid, name.clone()), deferral == Deferral::InitiallyDeferred))
    }

    /// The conditions that are not of domains.
    pub fn own_checks(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.domain.is_none())
    }

    /// The columns that users see.
    pub fn visible(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.is_hidden)
    }

    /// Whether any of its columns is generated.
    pub fn has_generated(&self) -> bool {
        self.columns.iter().any(|column| column.generated.is_some())
    }

    /// Whether each connection has its own.
    pub fn is_temporary(&self) -> bool {
        self.name.schema == TEMPORARY
    }
}

/// That a relation has no such column.
pub fn no_column(relation: &ObjectName, name: &str) -> Error {
    let message = format!("column \"{name}\" of relation \"{}\" does not exist", relation.name);
    Error::new(SqlState::UNDEFINED_COLUMN, message)
}

/// The hidden column that tells rows of a table without a primary key apart: a `bigint` from a sequence.
pub const ROW_NUMBER: &str = "fabius row number";

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// The column's type.
    pub sql_type: SqlType,
    /// Whether null is allowed.
    pub nullable: bool,
    /// The `DEFAULT` expression, as SQL.
    pub default: Option<String>,
    /// The sequence that a `serial` or identity column takes its values from.
    pub sequence: Option<ObjectName>,
    /// `GENERATED ... AS IDENTITY`: whether values may be given.
    #[serde(default)]
    pub identity: Option<Identity>,
    /// `GENERATED ALWAYS AS (...) STORED`: the expression, as SQL.
    #[serde(default)]
    pub generated: Option<String>,
    /// Whether it is there for a key that is not made of columns alone ([`Key::written`]), and no user sees it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// The number of the domain that it was declared of; its type is the domain's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<Oid>,
}

impl Column {
    /// A column of a name and type, of which nothing more is said.
    pub fn plain(name: impl Into<String>, sql_type: SqlType) -> Column {
        Column {
            name: name.into(),
            sql_type,
            nullable: true,
            default: None,
            sequence: None,
            identity: None,
            generated: None,
            is_hidden: false,
            domain: None,
        }
    }

    /// Whether the database alone gives it values.
    pub fn is_always_generated(&self) -> bool {
        self.generated.is_some() || self.identity == Some(Identity::Always)
    }
}

/// A key: a primary key, unique constraint or index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Key {
    /// The index's number.
    pub oid: Oid,
    /// The key's name, as `items_pkey`.
    pub name: String,
    /// Columns, most significant first.
    pub columns: Vec<String>,
    /// Whether it was declared as a constraint, not as an index.
    pub is_constraint: bool,
    /// When it is checked, if it is a unique constraint.
    #[serde(default, skip_serializing_if = "Deferral::is_default")]
    pub deferral: Deferral,
    /// What a unique index of expressions, or of some rows, was declared as. Its columns are hidden ones then, which
    /// are generated: null where a row is not in the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<WrittenKey>,
    /// What else was said of the index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Box<IndexLayout>>,
    /// Whether nobody has asked for it: changes of the other side of a reference look for rows along it. No catalog
    /// shows it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
}

/// What was said of an index that changes no answer: it is shown, and no more.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexLayout {
    /// Of each key; nothing if nothing was said of any.
    pub keys: Vec<KeyLayout>,
    /// `INCLUDE`: columns that the index was asked to hold besides.
    pub included: Vec<String>,
}

/// What was said of a key of an index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyLayout {
    /// `DESC`
    pub is_descending: bool,
    /// Whether nulls come first, if it was said.
    pub nulls_first: Option<bool>,
    /// The operator class.
    pub operator_class: Option<String>,
}

impl KeyLayout {
    /// Whether nulls come first: where they count as greater than all else, those of `DESC` do.
    pub fn has_nulls_first(&self) -> bool {
        self.nulls_first.unwrap_or(self.is_descending)
    }

    /// What stands behind the key: ` text_pattern_ops DESC NULLS LAST`.
    fn words(&self) -> String {
        let class = self.operator_class.as_ref().map_or_else(String::new, |class| format!(" {class}"));
        let order = if self.is_descending { " DESC" } else { "" };
        let nulls = match self.has_nulls_first() {
            first if first == self.is_descending => "",
            true => " NULLS FIRST",
            false => " NULLS LAST",
        };
        format!("{class}{order}{nulls}")
    }
}

/// A unique index as it was declared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WrittenKey {
    /// Columns and expressions, as SQL.
    pub keys: Vec<String>,
    /// Which rows the index has, as SQL; all without one.
    pub predicate: Option<String>,
}

impl Key {
    /// A key of columns.
    pub fn of(oid: Oid, name: String, columns: Vec<String>, is_constraint: bool) -> Key {
        Key {
            oid,
            name,
            columns,
            is_constraint,
            deferral: Deferral::Never,
            written: None,
            layout: None,
            is_hidden: false,
        }
    }

    /// What stands behind a key in the index's definition.
    pub fn words_behind(&self, place: usize) -> String {
        self.layout_of(place).map(KeyLayout::words).unwrap_or_default()
    }

    /// What was said of a key.
    pub fn layout_of(&self, place: usize) -> Option<&KeyLayout> {
        self.layout.as_ref()?.keys.get(place)
    }

    /// The columns that the index was asked to hold besides.
    pub fn included(&self) -> &[String] {
        self.layout.as_ref().map_or(&[], |layout| &layout.included)
    }

    /// The columns of the keys, then those that it was asked to hold besides.
    pub fn all_columns(&self) -> impl Iterator<Item = &String> {
        self.columns.iter().chain(self.included())
    }

    /// Whether a column is one of those.
    pub fn has(&self, column: &str) -> bool {
        self.all_columns().any(|own| own == column)
    }

    /// What it is made of, as SQL.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.written.as_ref().map_or(&self.columns, |written| &written.keys).iter().map(String::as_str)
    }
}

/// A `CHECK` constraint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The check's name.
    pub name: String,
    /// The condition, as SQL.
    pub condition: String,
    /// The domain whose condition it is, as messages name it, if it is not the table's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
}

/// A domain: a type with conditions that its values meet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Domain {
    /// `pg_type.oid`.
    pub oid: Oid,
    /// The number of the type of its arrays.
    pub array_oid: Oid,
    /// The domain's name.
    pub name: ObjectName,
    /// The type that its values have.
    pub base: SqlType,
    /// `NOT NULL`
    pub is_not_null: bool,
    /// The `DEFAULT` expression, as SQL.
    pub default: Option<String>,
    /// Conditions about `VALUE`.
    pub checks: Vec<Check>,
}

impl Domain {
    /// Whether not every value of its type is one of it.
    pub fn is_constrained(&self) -> bool {
        self.is_not_null || !self.checks.is_empty()
    }

    /// The name as messages show it: with its schema unless that is searched by default.
    pub fn shown(&self) -> String {
        quote_qualified(&self.name.schema, &self.name.name)
    }
}

/// A `REFERENCES` constraint. The columns have an index of their own, so that the other side can be changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// The constraint's name.
    pub name: String,
    /// Columns of this table.
    pub columns: Vec<String>,
    /// The table that they refer to.
    pub parent: ObjectName,
    /// The parent's columns: its primary key or a unique key.
    pub parent_columns: Vec<String>,
    /// What happens to rows here when the row there is deleted.
    pub on_delete: ReferentialAction,
    /// What happens to rows here when the key there is updated.
    pub on_update: ReferentialAction,
    /// When it is checked.
    #[serde(default, skip_serializing_if = "Deferral::is_default")]
    pub deferral: Deferral,
}

impl ForeignKey {
    /// Whether another reference of the table has a column of this one.
    pub fn shares_with(&self, other: &ForeignKey) -> bool {
        other.name != self.name && other.columns.iter().any(|column| self.columns.contains(column))
    }

    /// Whether any of its table has.
    pub fn shares(&self, table: &Table) -> bool {
        table.foreign_keys.iter().any(|other| self.shares_with(other))
    }
}

/// When a constraint is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Deferral {
    /// `NOT DEFERRABLE`: when a statement has written its rows.
    #[default]
    Never,
    /// `DEFERRABLE`: as well, unless `SET CONSTRAINTS` says otherwise.
    InitiallyImmediate,
    /// `DEFERRABLE INITIALLY DEFERRED`: when the transaction ends, unless `SET CONSTRAINTS` says otherwise.
    InitiallyDeferred,
}

/// How long what a reference asks for waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Until {
    /// Checks and actions wait until all parts of a statement have run.
    Statement,
    /// Checks wait until the transaction ends.
    Transaction,
}

impl Deferral {
    fn is_default(&self) -> bool {
        *self == Deferral::default()
    }
}

/// What follows `ON DELETE` or `ON UPDATE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReferentialAction {
    /// `NO ACTION`: refused, if it still hurts when the statement is over, or the transaction.
    #[serde(rename = "Refuse")]
    NoAction,
    /// `CASCADE`
    Cascade,
    /// `SET NULL`
    SetNull,
    /// `SET DEFAULT`
    SetDefault,
    /// `RESTRICT`: refused at once.
    Restrict,
}

impl ReferentialAction {
    /// Whether it changes rows, and does not refuse.
    pub fn acts(self) -> bool {
        matches!(
            self,
            ReferentialAction::Cascade | ReferentialAction::SetNull | ReferentialAction::SetDefault
        )
    }
}

/// A view.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct View {
    /// The view's number.
    pub oid: Oid,
    /// The view's name.
    pub name: ObjectName,
    /// Columns: names and types.
    pub columns: Vec<(String, SqlType)>,
    /// The query, as SQL.
    pub query: String,
}

/// A sequence. Its last value is a row of the database; numbers are handed out in blocks, outside transactions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sequence {
    /// The sequence's number.
    pub oid: Oid,
    /// The sequence's name.
    pub name: ObjectName,
    /// The first value.
    pub start: i64,
    /// What is added each time.
    pub increment: i64,
    /// The least value.
    pub minimum: i64,
    /// The greatest value.
    pub maximum: i64,
    /// Whether it begins again at the end.
    pub cycle: bool,
    /// The column that owns it, dropped together: table and column.
    pub owner: Option<(ObjectName, String)>,
}

impl Sequence {
    /// The type of its values: the smallest that its maximum is the largest value of.
    pub fn sql_type(&self) -> SqlType {
        match self.maximum {
            most if most == i64::from(i16::MAX) => SqlType::SmallInt,
            most if most == i64::from(i32::MAX) => SqlType::Int,
            _ => SqlType::BigInt,
        }
    }
}

/// A function or procedure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Function {
    /// The function's number.
    pub oid: Oid,
    /// The function's name.
    pub name: ObjectName,
    /// Parameters, in order; `OUT` ones too, but not the columns of `RETURNS TABLE`.
    pub parameters: Vec<FunctionParameter>,
    /// What it returns.
    pub returns: Returns,
    /// `sql` or `plpgsql`.
    pub language: String,
    /// The body as given; of `RETURN e` and `BEGIN ATOMIC`, these words too.
    pub body: String,
    /// Whether it is a procedure, run by `CALL`.
    pub is_procedure: bool,
    /// `STRICT`: null if any argument is, without being run.
    pub is_strict: bool,
    /// What it may do, as declared.
    pub volatility: Volatility,
    /// `CREATE FUNCTION ...`, as given: what is compiled into each statement that calls it.
    pub definition: String,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionParameter {
    /// The parameter's name; may be empty.
    pub name: String,
    /// The parameter's type; an array's for `VARIADIC`.
    pub sql_type: SqlType,
    /// Which way it goes.
    pub mode: ParameterMode,
    /// What it is if it is left out, as SQL.
    pub default: Option<String>,
}

impl FunctionParameter {
    /// Whether callers give it.
    pub fn is_input(&self) -> bool {
        self.mode != ParameterMode::Out
    }
}

/// Types of the arguments that tell functions of one name apart: those that go in.
pub fn input_types(parameters: &[FunctionParameter]) -> impl Iterator<Item = &SqlType> {
    parameters.iter().filter(|parameter| parameter.is_input()).map(|parameter| &parameter.sql_type)
}

/// Which way a parameter goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ParameterMode {
    /// `IN`
    In,
    /// `OUT`
    Out,
    /// `INOUT`
    InOut,
    /// `VARIADIC`: takes all further arguments.
    Variadic,
}

/// What a function may do, as declared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Volatility {
    /// `IMMUTABLE`: the same for the same arguments, for ever.
    Immutable,
    /// `STABLE`: within a statement.
    Stable,
    /// `VOLATILE`: anything.
    Volatile,
}

/// What a function returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Returns {
    /// One value; `void` too.
    Scalar(SqlType),
    /// A row of `OUT` parameters.
    Record(Vec<(String, SqlType)>),
    /// `RETURNS TABLE (...)` or `SETOF`.
    Table(Vec<(String, SqlType)>),
}
