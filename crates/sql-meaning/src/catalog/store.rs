//! The catalog as rows of a table of the database: one per object, as JSON.

use super::access::{Access, DefaultAccess};
use super::role::{BOOTSTRAP, Role, Roles};
use super::{Catalog, Domain, Function, Oid, Sequence, Table, View};
use crate::sql_type::Enumeration;
use fabius_program::syntax::tree::{Definition, ProcedureDefinition};
use fabius_value::{Error, Result, SqlState, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The table that holds the catalog; no SQL name reaches it.
pub const TABLE: &str = "fabius catalog";
/// The number of the row that says which form the rows have.
const FORMAT_ROW: i64 = 0;
/// The number of the row that is another whenever the catalog is: by it a node of a cluster sees that another one has
/// changed it.
const TOKEN_ROW: i64 = i64::MIN;
/// The form that this version writes.
const FORMAT: i64 = 1;
/// The first number of an object that a user made, as in PostgreSQL.
pub const FIRST_OID: Oid = 16_384;
/// The number of the main database, which is there from the beginning.
pub const MAIN_DATABASE: Oid = 5;
/// The number of the schema `public` of the main database, as in PostgreSQL.
pub const PUBLIC_OID: Oid = 2200;

/// Something that is defined.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Object {
    /// A schema; without a name, that `public` of the main database is gone.
    Schema(Oid, String),
    /// A table.
    Table(Table),
    /// A view.
    View(View),
    /// A sequence.
    Sequence(Sequence),
    /// A function or procedure.
    Function(Function),
    /// An enumeration.
    Enumeration(Enumeration),
    /// A domain.
    Domain(Domain),
    /// A comment: the object's number, the column's place or 0, the text.
    Comment(Oid, u16, String),
    /// An extension.
    Extension(Oid, String),
    /// Who owns an object of a number, and who may do what with it.
    Access(Oid, Access),
    /// What is granted on objects that are still to be made.
    DefaultAccess(DefaultAccess),
    /// A role, which is there for all databases.
    Role(Role),
    /// A database besides the main one.
    Database(Oid, String),
    /// An object of such a database.
    Within(Oid, Box<Object>),
}

/// One object that is made, replaced or gone.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The number of the object's row.
    pub row: i64,
    /// What it is from now on; `None` if it is gone.
    pub object: Option<Object>,
}

impl Object {
    /// The number of its row.
    fn row(&self) -> i64 {
        match self {
            Object::Schema(oid, _) | Object::Extension(oid, _) | Object::Database(oid, _) => i64::from(*oid),
            Object::Within(_, object) => object.row(),
            Object::Table(table) => i64::from(table.oid),
            Object::View(view) => i64::from(view.oid),
            Object::Sequence(sequence) => i64::from(sequence.oid),
            Object::Function(function) => i64::from(function.oid),
            Object::Enumeration(of) => i64::from(of.oid),
            Object::Domain(domain) => i64::from(domain.oid),
            Object::Comment(oid, column, _) => comment_row(*oid, *column),
            Object::Access(oid, _) => access_row(*oid),
            Object::DefaultAccess(said) => i64::from(said.oid),
            Object::Role(role) => i64::from(role.oid),
        }
    }
}

/// Rows below this one say who may do what with objects.
const ACCESS_ROWS: i64 = -(1 << 50);

fn access_row(oid: Oid) -> i64 {
    ACCESS_ROWS - i64::from(oid)
}

fn comment_row(oid: Oid, column: u16) -> i64 {
    -(i64::from(oid) << 16 | i64::from(column)) - 1
}

impl From<Object> for Change {
    fn from(object: Object) -> Change {
        Change { row: object.row(), object: Some(object) }
    }
}

impl Change {
    /// The object of a number is gone.
    pub fn gone(oid: Oid) -> Change {
        // It is there without a row.
        let public = (oid == PUBLIC_OID).then(|| Object::Schema(oid, String::new()));
        Change { row: i64::from(oid), object: public }
    }

    /// A comment is gone.
    pub fn no_comment(oid: Oid, column: u16) -> Change {
        Change { row: comment_row(oid, column), object: None }
    }

    /// Nothing is said any more of who may do what with an object.
    pub fn no_access(oid: Oid) -> Change {
        Change { row: access_row(oid), object: None }
    }
}

impl Catalog {
    /// A main database's catalog with nothing in it but the schema `public`.
    pub fn empty() -> Catalog {
        let mut catalog = Catalog::of(MAIN_DATABASE);
        catalog.schemas.insert("public".into(), PUBLIC_OID);
        catalog
    }

    /// A database's catalog with nothing in it.
    pub fn of(database: Oid) -> Catalog {
        Catalog { database, search_path: vec!["public".into()], role: BOOTSTRAP, ..Catalog::default() }
    }

    /// Makes a change. The caller gives the catalog a new version.
    pub fn apply(&mut self, change: &Change) {
        self.forget(change.row);
        match change.object.clone() {
            None => {}
            Some(Object::Schema(_, name)) if name.is_empty() => {}
            Some(Object::Schema(oid, name)) => drop(self.schemas.insert(name, oid)),
            Some(Object::Extension(oid, name)) => drop(self.extensions.insert(name, oid)),
            Some(Object::Table(table)) => {
                self.deferrable.extend(table.deferrable());
                if table.materialized.as_ref().is_some_and(|view| !view.is_populated) {
                    self.unpopulated.insert(table.name.clone());
                }
                self.tables.insert(table.name.clone(), Arc::new(table));
            }
            Some(Object::View(view)) => drop(self.views.insert(view.name.clone(), Arc::new(view))),
            Some(Object::Sequence(sequence)) => {
                self.sequences.insert(sequence.name.clone(), Arc::new(sequence));
            }
            Some(Object::Function(function)) => {
                self.functions.entry(function.name.clone()).or_default().push(Arc::new(function));
            }
            Some(Object::Enumeration(of)) => {
                self.enumerations.insert(Catalog::name_of(&of), Arc::new(of));
            }
            Some(Object::Domain(domain)) => {
                self.domains.insert(domain.name.clone(), Arc::new(domain));
            }
            Some(Object::Comment(oid, column, text)) => drop(self.comments.insert((oid, column), text)),
            Some(Object::Access(oid, access)) => drop(self.access.insert(oid, access)),
            Some(Object::DefaultAccess(said)) => drop(self.default_access.insert(said.oid, said)),
            Some(Object::Role(role)) => Arc::make_mut(&mut self.roles).put(role),
            // What is of all databases, or of another.
            Some(Object::Database(..) | Object::Within(..)) => {}
        }
    }

    /// Takes out what had the row.
    fn forget(&mut self, row: i64) {
        if row <= ACCESS_ROWS {
            self.access.retain(|oid, _| access_row(*oid) != row);
            return;
        }
        if row < 0 {
            self.comments.retain(|(oid, column), _| comment_row(*oid, *column) != row);
            return;
        }
        let is_it = |oid: Oid| i64::from(oid) == row;
        self.schemas.retain(|_, oid| !is_it(*oid));
        self.extensions.retain(|_, oid| !is_it(*oid));
        let (tables, unpopulated) = (&mut self.tables, &mut self.unpopulated);
        tables.retain(|name, table| {
            let is_gone = is_it(table.oid);
            if is_gone {
                unpopulated.remove(name);
            }
            !is_gone
        });
        self.deferrable.retain(|(table, _), _| !is_it(*table));
        self.views.retain(|_, view| !is_it(view.oid));
        self.sequences.retain(|_, sequence| !is_it(sequence.oid));
        self.enumerations.retain(|_, of| !is_it(of.oid));
        self.domains.retain(|_, domain| !is_it(domain.oid));
        for functions in self.functions.values_mut() {
            functions.retain(|function| !is_it(function.oid));
        }
        self.functions.retain(|_, functions| !functions.is_empty());
        self.default_access.retain(|oid, _| !is_it(*oid));
        if let Ok(oid) = Oid::try_from(row)
            && self.roles.get(oid).is_some()
        {
            Arc::make_mut(&mut self.roles).take_out(oid);
        }
    }

    /// What is said of an object: of each column by its place from 1, of all of it by 0.
    pub fn comments_on(&self, oid: Oid) -> Vec<(u16, String)> {
        let said = self.comments.range((oid, 0)..=(oid, u16::MAX));
        said.map(|((_, column), text)| (*column, text.clone())).collect()
    }

    /// The greatest number that anything has.
    pub fn last_oid(&self) -> Oid {
        let keys = self.tables.values().flat_map(|table| table.keys().map(|key| key.oid).chain([table.oid]));
        keys.chain(self.schemas.values().chain(self.extensions.values()).copied())
            .chain(self.views.values().map(|view| view.oid))
            .chain(self.sequences.values().map(|sequence| sequence.oid))
            .chain(self.functions.values().flatten().map(|function| function.oid))
            .chain(self.enumerations.values().flat_map(|of| {
                let labels = of.labels.iter().map(|label| label.oid);
                labels.chain([of.oid, of.array_oid])
            }))
            .chain(self.domains.values().map(|domain| domain.oid.max(domain.array_oid)))
            .chain(self.default_access.keys().copied())
            .chain(self.roles.iter().map(|role| role.oid))
            .chain([FIRST_OID - 1])
            .max()
            .unwrap_or(FIRST_OID)
    }

    /// The numbers of the rows of everything in it.
    pub fn rows(&self) -> Vec<i64> {
        let comments = self.comments.keys().map(|(oid, column)| comment_row(*oid, *column));
        let oids = self.schemas.values().chain(self.extensions.values()).copied();
        let oids = oids.chain(self.tables.values().map(|table| table.oid));
        let oids = oids.chain(self.views.values().map(|view| view.oid));
        let oids = oids.chain(self.sequences.values().map(|sequence| sequence.oid));
        let oids = oids.chain(self.functions.values().flatten().map(|function| function.oid));
        let oids = oids.chain(self.enumerations.values().map(|of| of.oid));
        let oids = oids.chain(self.domains.values().map(|domain| domain.oid));
        let oids = oids.chain(self.default_access.keys().copied());
        let access = self.access.keys().map(|oid| access_row(*oid));
        oids.map(i64::from).chain(comments).chain(access).collect()
    }
}

/// The catalogs of all databases.
#[derive(Debug, Default)]
pub struct Catalogs {
    /// See [`Catalog::token`].
    pub token: String,
    /// By number: the name, which the main database does not have here, and the catalog.
    pub databases: BTreeMap<Oid, (Option<String>, Catalog)>,
}

impl Catalogs {
    fn with(&mut self, database: Oid) -> &mut (Option<String>, Catalog) {
        self.databases.entry(database).or_insert_with(|| (None, Catalog::of(database)))
    }

    /// Reads them from the rows of [`TABLE`].
    ///
    /// # Errors
    /// `XX001` for rows that cannot be read, `0A000` for those of a newer version.
    pub fn read(rows: Vec<Vec<Value>>) -> Result<Catalogs> {
        let mut all = Catalogs::default();
        let mut roles = Roles::default();
        all.databases.insert(MAIN_DATABASE, (None, Catalog::empty()));
        for row in rows {
            let [Value::BigInt(number), Value::Text(body)] = row.as_slice() else {
                return Err(Error::new(SqlState::DATA_CORRUPTED, "the catalog's table has other columns"));
            };
            if *number == TOKEN_ROW {
                all.token = body.clone();
                continue;
            }
            if *number == FORMAT_ROW {
                if body.parse::<i64>().ok().is_none_or(|format| format > FORMAT) {
                    return Err(Error::new(SqlState::NOT_SUPPORTED, "the catalog is of a newer version")
                        .with_detail(format!("it has form {body}, this version reads up to {FORMAT}")));
                }
                continue;
            }
            let object: Object = serde_json::from_str(body).map_err(|error| {
                Error::new(SqlState::DATA_CORRUPTED, "a row of the catalog cannot be read")
                    .with_detail(format!("row {number}: {error}"))
            })?;
            let (database, object) = match object {
                Object::Database(oid, name) => {
                    all.with(oid).0 = Some(name);
                    continue;
                }
                Object::Role(role) => {
                    roles.put(role);
                    continue;
                }
                Object::Within(database, object) => (database, *object),
                object => (MAIN_DATABASE, object),
            };
            all.with(database).1.apply(&Change { row: *number, object: Some(object) });
        }
        all.databases.retain(|oid, (name, _)| *oid == MAIN_DATABASE || name.is_some());
        let roles = Arc::new(roles);
        for (_, catalog) in all.databases.values_mut() {
            catalog.token.clone_from(&all.token);
            catalog.roles = roles.clone();
        }
        Ok(all)
    }

    /// The greatest number that anything has.
    pub fn last_oid(&self) -> Oid {
        let last = self.databases.iter().map(|(oid, (_, catalog))| catalog.last_oid().max(*oid));
        last.max().unwrap_or(FIRST_OID)
    }
}

/// The table and the procedure of the catalog, as text.
pub fn table_definition() -> String {
    format!("table `{TABLE}` {{ id: bigint, body: text, primary key (id) }}")
}

/// The program that makes changes: rows to put, rows that are gone.
///
/// # Errors
/// None but for a fault in the program's text.
pub fn change_program() -> Result<ProcedureDefinition> {
    procedure(&format!(
        "procedure `fabius change catalog`(puts: list of (id: bigint, body: text), gone: list of bigint) {{
             for put in puts {{
                 upsert `{TABLE}` {{ id: put.id, body: put.body }}
             }}
             for id in gone {{
                 if exists `{TABLE}`[id] {{
                     delete `{TABLE}`[id]
                 }}
             }}
         }}"
    ))
}

/// The number of the row with the newest catalog's [token](Catalog::token), which has no literal of its own.
pub fn token_row() -> Value {
    Value::BigInt(TOKEN_ROW)
}

/// Whether a row of the newest state, `null` if it is not there, says that a catalog is the newest.
pub fn is_newest(row: &Value, token: &str) -> bool {
    match row {
        Value::Text(newest) => *newest == token,
        _ => token.is_empty(),
    }
}

/// The arguments of [`change_program`], for changes that are made in a database; `token` is one that no catalog has
/// had.
///
/// # Errors
/// `54000` for an object that is too large.
pub fn change_arguments(changes: &[Change], database: Oid, token: String) -> Result<Vec<Value>> {
    let mut puts = vec![
        vec![Value::BigInt(FORMAT_ROW), Value::Text(FORMAT.to_string())],
        vec![Value::BigInt(TOKEN_ROW), Value::Text(token)],
    ];
    let mut gone = Vec::new();
    for change in changes {
        match &change.object {
            None => gone.push(vec![Value::BigInt(change.row)]),
            Some(object) => {
                let within = match object {
                    Object::Database(..) | Object::Role(_) | Object::Within(..) => None,
                    object if database != MAIN_DATABASE => {
                        Some(Object::Within(database, Box::new(object.clone())))
                    }
                    _ => None,
                };
                let body = serde_json::to_string(within.as_ref().unwrap_or(object)).map_err(|error| {
                    Error::new(SqlState::PROGRAM_LIMIT, "the object cannot be stored")
                        .with_detail(error.to_string())
                })?;
                puts.push(vec![Value::BigInt(change.row), Value::Text(body)]);
            }
        }
    }
    Ok(vec![Value::List(puts), Value::List(gone)])
}

/// A procedure from its text.
///
/// # Errors
/// What the parser finds wrong.
pub fn procedure(text: &str) -> Result<ProcedureDefinition> {
    let mut definitions = fabius_program::syntax::parse(text, "sql")?;
    match definitions.pop() {
        Some(Definition::Procedure(procedure)) if definitions.is_empty() => Ok(procedure),
        _ => Err(Error::new(SqlState::INVALID_DEFINITION, "one procedure was expected")),
    }
}
