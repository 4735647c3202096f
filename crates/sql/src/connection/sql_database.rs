//! A database with its SQL catalog: what all connections share.

use super::plan_cache::PlanCache;
use super::presence::Presence;
use crate::closed_tables::{self, ClosedTables};
use crate::lock::{LockKey, LockTable, Owner, owner_of};
use crate::notification::Notifications;
use crate::sequence::{self, Sequences};
use fabius::{Allowance, Database, Statement};
use fabius_sql_meaning::catalog::Sequence;
use fabius_sql_meaning::catalog::role::{BOOTSTRAP, Roles};
use fabius_sql_meaning::catalog::store::{self, Catalogs, Change, MAIN_DATABASE, Object};
use fabius_sql_meaning::catalog::{Catalog, ConstraintId, Oid, Until};
use fabius_value::{Error, Result, SqlState};
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::{
    AtomicI32, AtomicI64, AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use std::sync::{Arc, OnceLock};

/// What separates a table's name from the number of a table of the storage.
const STORAGE_MARK: &str = " #";

/// Gives up the statement of a connection, or ends it; whether there is such a connection.
type Interrupter = Box<dyn Fn(i32, bool) -> bool + Send + Sync>;

/// A database with its SQL catalog. Shared by all connections.
pub struct SqlDatabase {
    database: Arc<Database>,
    catalogs: RwLock<BTreeMap<Oid, Shared>>,
    /// The version of what is committed: looked at before each statement.
    version: AtomicU64,
    /// The last version that any catalog has.
    versions: AtomicU64,
    oids: AtomicU32,
    storages: AtomicU64,
    processes: AtomicI32,
    change: Arc<Statement>,
    /// The term of which it is known that this node has everything that was agreed on before.
    knows_all_before: AtomicU64,
    /// Reads the newest catalog's token, and how often numbers of sequences were set.
    newest: Arc<Statement>,
    /// How often they were when the numbers that are left of blocks were taken, at most.
    settings: AtomicI64,
    scans: Mutex<HashMap<String, Arc<Statement>>>,
    pub(super) locks: LockTable,
    pub(super) notifications: Notifications,
    /// In a cluster: what others are kept from writing.
    pub(super) closed: Option<ClosedTables>,
    pub(super) sequences: Sequences,
    pub(super) plans: PlanCache,
    pub(super) sessions: Mutex<BTreeMap<i32, Arc<Presence>>>,
    interrupter: OnceLock<Interrupter>,
    name: OnceLock<String>,
    memory: Arc<Allowance>,
    session_bytes: usize,
    rows_bytes: usize,
    /// Idempotency keys of transactions that change the catalog and are committing.
    committing: Mutex<HashSet<String>>,
}

/// A commit whose key no other has that changes the catalog.
pub(super) struct CommitAlone<'d> {
    database: &'d SqlDatabase,
    key: String,
}

impl Drop for CommitAlone<'_> {
    fn drop(&mut self) {
        self.database.committing.lock().remove(&self.key);
    }
}

/// How many bytes sessions may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryBounds {
    /// One session: the setting `session_memory`.
    pub session: usize,
    /// All together: `sessions_memory`.
    pub sessions: usize,
    /// Rows: `rows_memory`.
    pub rows: usize,
}

impl Default for MemoryBounds {
    fn default() -> MemoryBounds {
        MemoryBounds { session: 1 << 30, sessions: 2 << 30, rows: usize::MAX }
    }
}

/// As what a session sees a catalog.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Perspective {
    /// Where names are looked for.
    pub search_path: Vec<String>,
    /// Whose privileges count; that of the [superuser](BOOTSTRAP) for all superusers.
    pub role: Oid,
    /// Constraints that wait, in its transaction or statement.
    pub waiting: BTreeMap<ConstraintId, Until>,
}

impl Perspective {
    /// A superuser's, along a search path.
    pub fn along(search_path: &[String]) -> Perspective {
        Perspective { search_path: search_path.to_vec(), role: BOOTSTRAP, waiting: BTreeMap::new() }
    }
}

/// What is committed of a database, and as sessions see it.
struct Shared {
    /// The database's name, unless it is the main one.
    name: Option<String>,
    committed: Arc<Catalog>,
    perspectives: HashMap<Perspective, Arc<Catalog>>,
}

/// Whether a change makes, replaces or removes a role, which is one of all databases.
fn is_of_roles(change: &Change, roles: &Roles) -> bool {
    match &change.object {
        Some(object) => matches!(object, Object::Role(_)),
        None => Oid::try_from(change.row).is_ok_and(|oid| roles.get(oid).is_some()),
    }
}

/// Names by which clients that do not know better mean the main database.
const OTHER_NAMES: [&str; 2] = ["postgres", "template1"];

impl Shared {
    fn new(name: Option<String>, catalog: Catalog, versions: &AtomicU64) -> Shared {
        let version = versions.fetch_add(1, Relaxed) + 1;
        Shared { name, committed: Arc::new(Catalog { version, ..catalog }), perspectives: HashMap::new() }
    }
}

impl SqlDatabase {
    /// Reads the catalog of a database, or begins one there.
    ///
    /// # Errors
    /// A catalog of a newer version, or one that cannot be read.
    pub async fn open(database: Arc<Database>) -> Result<Arc<SqlDatabase>> {
        SqlDatabase::open_within(database, MemoryBounds::default()).await
    }

    /// Reads the catalog of a database, or begins one there, with bounds for what sessions may hold.
    ///
    /// # Errors
    /// As [`SqlDatabase::open`].
    pub async fn open_within(database: Arc<Database>, memory: MemoryBounds) -> Result<Arc<SqlDatabase>> {
        // In a cluster there may be a catalog that this node does not have yet.
        database.catch_up().await?;
        define_once(&database, store::TABLE, &store::table_definition())?;
        define_once(&database, sequence::TABLE, &sequence::table_definition())?;
        if database.is_replicated() {
            define_once(&database, closed_tables::TABLE, &closed_tables::table_definition())?;
        }
        let catalogs = Catalogs::read(database.rows(store::TABLE)?)?;
        if !database.is_replicated() {
            // In a cluster they may be those of a transaction that goes on at another node.
            drop_unnamed_storage(&database, &catalogs)?;
        }
        let change = database.statement(&store::change_program()?)?;
        let newest = database.statement(&store::procedure(&format!(
            "procedure `fabius newest`(row: bigint) -> (token: text null, settings: bigint null) {{
                 return `{}`[row]?.body, {}
             }}",
            store::TABLE,
            sequence::settings()
        ))?)?;
        let closed = database.is_replicated().then(|| ClosedTables::new(database.clone())).transpose()?;
        let sequences = Sequences::new(database.clone())?;
        let (oids, storages) =
            (AtomicU32::new(catalogs.last_oid() + 1), AtomicU64::new(last_storage(&database) + 1));
        let beneath = database.clone();
        // Locks, and what names mean, are in the memory of the node that leads.
        database.hand_in_where_it_leads();
        let versions = AtomicU64::new(1);
        let shared = catalogs.databases.into_iter();
        let shared = shared.map(|(oid, (name, catalog))| (oid, Shared::new(name, catalog, &versions)));
        Ok(Arc::new(SqlDatabase {
            catalogs: RwLock::new(shared.collect()),
            version: AtomicU64::new(1),
            versions,
            oids,
            storages,
            processes: AtomicI32::new(1),
            change,
            newest,
            knows_all_before: AtomicU64::new(0),
            settings: AtomicI64::new(0),
            scans: Mutex::default(),
            notifications: Notifications::default(),
            locks: LockTable::new(move || condition_waits(&beneath)),
            closed,
            sequences,
            plans: PlanCache::default(),
            sessions: Mutex::default(),
            interrupter: OnceLock::new(),
            name: OnceLock::new(),
            memory: Allowance::new("sessions_memory", memory.sessions),
            session_bytes: memory.session,
            rows_bytes: memory.rows,
            committing: Mutex::default(),
            database,
        }))
    }

    /// Says how statements of other connections are given up (`pg_cancel_backend`), or connections ended
    /// (`pg_terminate_backend`): it is given the connection's number, and whether it is to end.
    pub fn interrupt_by(&self, interrupter: impl Fn(i32, bool) -> bool + Send + Sync + 'static) {
        // Whoever serves the database says so once.
        let _ = self.interrupter.set(Box::new(interrupter));
    }

    pub(crate) fn interrupt(&self, process: i32, ends: bool) -> bool {
        self.interrupter.get().is_some_and(|interrupter| interrupter(process, ends))
    }

    /// Says what the main database is called, which is `fabius` otherwise.
    pub fn call_it(&self, name: &str) {
        // Whoever serves the database says so once.
        let _ = self.name.set(name.to_string());
    }

    /// What the main database is called.
    pub(crate) fn name(&self) -> &str {
        self.name.get().map_or("fabius", String::as_str)
    }

    /// What a new session may hold.
    pub(super) fn session_memory(&self) -> Arc<Allowance> {
        self.memory.share("session_memory", self.session_bytes)
    }

    /// Refuses to write rows where there are too many.
    ///
    /// # Errors
    /// `53200`
    pub(super) fn refuse_rows(&self) -> Result<()> {
        if self.rows_bytes == usize::MAX {
            return Ok(());
        }
        match self.database.rows_bytes() {
            bytes if bytes > self.rows_bytes => Err(Error::new(SqlState::OUT_OF_MEMORY, "out of memory")
                .with_detail(format!(
                    "rows_memory allows {} bytes for rows, which take {bytes}",
                    self.rows_bytes
                ))
                .with_hint("delete rows or drop tables that are not needed, or raise rows_memory")),
            _ => Ok(()),
        }
    }

    /// The database beneath.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// The version of the committed catalog.
    pub fn version(&self) -> u64 {
        self.version.load(Acquire)
    }

    /// A version that no catalog has.
    pub(super) fn new_version(&self) -> u64 {
        self.versions.fetch_add(1, Relaxed) + 1
    }

    /// A number for something new.
    pub(crate) fn new_oid(&self) -> Oid {
        self.oids.fetch_add(1, Relaxed)
    }

    /// A number for a connection.
    pub(super) fn new_process(&self) -> i32 {
        self.processes.fetch_add(1, Relaxed)
    }

    /// A name that no table of the storage ever had.
    pub(crate) fn new_storage(&self, table: &str) -> String {
        let number = format!("{STORAGE_MARK}{}", self.storages.fetch_add(1, Relaxed));
        let most = fabius_value::limit::NAME_BYTES - number.len();
        let end = (0..=most.min(table.len())).rev().find(|end| table.is_char_boundary(*end)).unwrap_or(0);
        format!("{}{number}", table[..end].replace('`', "_"))
    }

    /// A database's committed catalog as some see it. There is nothing in it if the database is gone.
    pub(crate) fn catalog(&self, database: Oid, perspective: Perspective) -> Arc<Catalog> {
        let gone = || Arc::new(Catalog { version: self.new_version(), ..Catalog::of(database) });
        {
            let catalogs = self.catalogs.read();
            let Some(shared) = catalogs.get(&database) else { return gone() };
            let committed = &shared.committed;
            let is_usual = perspective.role == committed.role && perspective.waiting.is_empty();
            if is_usual && committed.search_path == perspective.search_path {
                return committed.clone();
            }
            if let Some(found) = shared.perspectives.get(&perspective) {
                return found.clone();
            }
        }
        let mut catalogs = self.catalogs.write();
        let Some(shared) = catalogs.get_mut(&database) else { return gone() };
        let catalog = Arc::new(Catalog {
            version: self.new_version(),
            search_path: perspective.search_path.clone(),
            role: perspective.role,
            waiting: perspective.waiting.clone(),
            ..(*shared.committed).clone()
        });
        // Connections with paths and waiting constraints of their own, at most.
        if shared.perspectives.len() >= 1000 {
            shared.perspectives.clear();
        }
        shared.perspectives.insert(perspective, catalog.clone());
        catalog
    }

    /// The roles that are committed.
    pub fn roles(&self) -> Arc<Roles> {
        let catalogs = self.catalogs.read();
        catalogs.get(&MAIN_DATABASE).map(|main| main.committed.roles.clone()).unwrap_or_default()
    }

    /// The committed catalogs of all databases, with their names.
    pub(crate) fn catalogs(&self) -> Vec<(String, Arc<Catalog>)> {
        let catalogs = self.catalogs.read();
        let named = |shared: &Shared| shared.name.clone().unwrap_or_else(|| self.name().to_string());
        catalogs.values().map(|shared| (named(shared), shared.committed.clone())).collect()
    }

    /// Whether this is a node of a cluster that does not lead it: it can be read from.
    pub(crate) fn is_standby(&self) -> bool {
        !self.database.leads()
    }

    /// Why something is refused that only the node that leads can do.
    pub(crate) fn refuse_to_lead(&self, what: &str) -> Error {
        let message = format!("cannot {what} on a node that does not lead its cluster");
        let error = Error::new(SqlState(*b"25006"), message);
        match self.database.member_status().and_then(|status| status.standing.leader) {
            Some(leader) => error.with_hint(format!(
                "node {leader} leads; connect to that one, as clients do that are given all nodes and \
                 target_session_attrs=read-write"
            )),
            None => error.with_hint("the cluster has no leader at the moment; try again"),
        }
    }

    /// This node leads its cluster in a term: waits until it has everything that was agreed on before, and names mean
    /// what they meant then. What is defined in that term is defined here.
    ///
    /// # Errors
    /// As [`SqlDatabase::come_up_to_date`].
    pub(super) async fn know_all_before(&self, term: u64) -> Result<()> {
        if self.knows_all_before.load(Acquire) < term {
            self.come_up_to_date(false).await?;
            self.knows_all_before.fetch_max(term, AcqRel);
        }
        Ok(())
    }

    /// In a cluster: waits until what is read here is the newest, unless `at_once`, and sees to it that names mean
    /// what they mean there. Elsewhere that is so already.
    ///
    /// # Errors
    /// Why the node has stopped; a catalog that cannot be read.
    pub(super) async fn come_up_to_date(&self, at_once: bool) -> Result<()> {
        if !self.database.is_replicated() {
            return Ok(());
        }
        if !at_once {
            self.database.catch_up().await?;
        }
        let newest = self.database.read(&self.newest, &[store::token_row()], usize::MAX, None).await?;
        let [token, settings] = newest.results.as_slice() else { return Ok(()) };
        let settings = settings.as_integer().unwrap_or_default();
        if self.settings.swap(settings, Relaxed) != settings {
            self.sequences.forget();
        }
        let is_newest = |main: &Shared| store::is_newest(token, &main.committed.token);
        if self.catalogs.read().get(&MAIN_DATABASE).is_some_and(is_newest) {
            return Ok(());
        }
        // Read while nobody else replaces them, so that they never go back.
        self.replace(|catalogs| {
            let read = Catalogs::read(self.database.rows(store::TABLE)?)?;
            self.oids.fetch_max(read.last_oid() + 1, Relaxed);
            self.storages.fetch_max(last_storage(&self.database) + 1, Relaxed);
            let shared = read.databases.into_iter();
            *catalogs = shared
                .map(|(oid, (name, catalog))| (oid, Shared::new(name, catalog, &self.versions)))
                .collect();
            Ok(())
        })
    }

    /// Gives up locks, in whatever modes.
    pub(super) fn release_locks(&self, owner: Owner, keys: &[LockKey]) {
        if let Some(closed) = &self.closed {
            closed.open(owner, keys);
        }
        self.locks.release(owner, keys);
    }

    /// Changes that were made in a database are committed: from now on everybody sees them.
    pub(super) fn publish(&self, database: Oid, changes: &[Change]) {
        let published = self.replace(|catalogs| {
            let mut changed: BTreeMap<Oid, Catalog> = BTreeMap::new();
            let roles = |catalogs: &BTreeMap<Oid, Shared>| {
                catalogs.get(&MAIN_DATABASE).map(|main| main.committed.roles.clone()).unwrap_or_default()
            };
            for change in changes {
                if is_of_roles(change, &roles(catalogs)) {
                    for (oid, shared) in &*catalogs {
                        changed.entry(*oid).or_insert_with(|| (*shared.committed).clone()).apply(change);
                    }
                    continue;
                }
                let (within, change) = match &change.object {
                    Some(Object::Database(oid, name)) => {
                        match catalogs.get_mut(oid) {
                            Some(shared) => shared.name = Some(name.clone()),
                            None => {
                                let catalog = Catalog { roles: roles(catalogs), ..Catalog::of(*oid) };
                                let shared = Shared::new(Some(name.clone()), catalog, &self.versions);
                                catalogs.insert(*oid, shared);
                            }
                        }
                        continue;
                    }
                    Some(Object::Within(oid, object)) => {
                        (*oid, Change { row: change.row, object: Some((**object).clone()) })
                    }
                    _ => (database, change.clone()),
                };
                if change.object.is_none()
                    && let Ok(oid) = Oid::try_from(change.row)
                    && catalogs.get(&oid).is_some_and(|shared| shared.name.is_some())
                {
                    catalogs.remove(&oid);
                    continue;
                }
                let Some(shared) = catalogs.get(&within) else { continue };
                changed.entry(within).or_insert_with(|| (*shared.committed).clone()).apply(&change);
            }
            for (oid, catalog) in changed {
                let Some(shared) = catalogs.get_mut(&oid) else { continue };
                *shared = Shared::new(shared.name.take(), catalog, &self.versions);
            }
            Ok(())
        });
        debug_assert!(published.is_ok(), "nothing is read for it");
    }

    fn replace(&self, next: impl FnOnce(&mut BTreeMap<Oid, Shared>) -> Result<()>) -> Result<()> {
        let mut catalogs = self.catalogs.write();
        next(&mut catalogs)?;
        self.version.store(self.new_version(), Release);
        drop(catalogs);
        self.plans.clear();
        self.scans.lock().clear();
        Ok(())
    }

    /// All databases: numbers and names.
    pub(crate) fn databases(&self) -> Vec<(Oid, String)> {
        self.catalogs().into_iter().map(|(name, catalog)| (catalog.database, name)).collect()
    }

    /// The connections to a database: their numbers.
    pub(crate) fn sessions_of(&self, database: Oid) -> Vec<i32> {
        let sessions = self.sessions.lock();
        let of = sessions.values().filter(|presence| presence.database.0 == database);
        of.map(|presence| presence.process).collect()
    }

    /// The committed catalogs of all databases.
    pub(super) fn all_catalogs(&self) -> Vec<Arc<Catalog>> {
        self.catalogs.read().values().map(|shared| shared.committed.clone()).collect()
    }

    /// The number and the name of the database that a name means.
    ///
    /// # Errors
    /// `3D000` if there is none; in a cluster, why the node has stopped.
    pub async fn database_named(&self, name: &str) -> Result<(Oid, String)> {
        let known = || {
            let found = self.known_database(name)?;
            self.databases().into_iter().find(|(oid, _)| *oid == found)
        };
        if let Some(found) = known().filter(|(oid, _)| *oid == MAIN_DATABASE) {
            return Ok(found);
        }
        // It may have been made, or dropped, at another node.
        self.come_up_to_date(false).await?;
        known().ok_or_else(|| {
            let names = self.databases().into_iter().map(|(_, name)| format!("\"{name}\""));
            Error::new(SqlState(*b"3D000"), format!("database \"{name}\" does not exist"))
                .with_hint(format!("there are {}", names.collect::<Vec<_>>().join(", ")))
        })
    }

    /// The number of the database that a name means here.
    pub(crate) fn known_database(&self, name: &str) -> Option<Oid> {
        let found = self.databases().into_iter().find(|(_, known)| known == name);
        found.map(|(oid, _)| oid).or_else(|| OTHER_NAMES.contains(&name).then_some(MAIN_DATABASE))
    }

    /// Whether a committed catalog has a table with its rows in this table of the storage.
    pub(super) fn is_named(&self, storage: &str) -> bool {
        let catalogs = self.catalogs.read();
        let mut tables = catalogs.values().flat_map(|shared| shared.committed.tables.values());
        tables.any(|table| table.storage == storage)
    }

    /// Keeps others with the same key from committing changes of the catalog meanwhile: whether a key is new is
    /// known before.
    ///
    /// # Errors
    /// `40001` if another is committing.
    pub(super) fn commit_alone(&self, key: &str) -> Result<CommitAlone<'_>> {
        if !self.committing.lock().insert(key.to_string()) {
            let message = "another transaction with this idempotency key is being committed";
            return Err(Error::new(SqlState::SERIALIZATION_FAILURE, message)
                .with_hint("send the transaction again: it then gets the outcome of the other"));
        }
        Ok(CommitAlone { database: self, key: key.to_string() })
    }

    /// The program that writes changes of a database's catalog, and its arguments.
    pub(super) fn change(
        &self,
        database: Oid,
        changes: &[Change],
    ) -> Result<(Arc<Statement>, Vec<fabius_value::Value>)> {
        Ok((self.change.clone(), store::change_arguments(changes, database, new_token())?))
    }

    /// The program of a text, compiled once.
    pub(crate) fn program(&self, text: String) -> Result<Arc<Statement>> {
        if let Some(found) = self.scans.lock().get(&text) {
            return Ok(found.clone());
        }
        let statement = self.database.statement_text(&text)?;
        self.scans.lock().insert(text, statement.clone());
        Ok(statement)
    }
}

/// Adds a table of our own, if nobody else has, on this node or another.
fn define_once(database: &Database, table: &str, definition: &str) -> Result<()> {
    let is_there = || database.definitions().catalog.find_table(table).is_some();
    if is_there() {
        return Ok(());
    }
    match database.define(definition) {
        Err(_) if is_there() => Ok(()),
        defined => defined,
    }
}

/// A token that no catalog has had.
fn new_token() -> String {
    let id = fabius::identity::make();
    id.to_string()
}

/// Which connections wait for the conditions of which.
fn condition_waits(database: &Database) -> Vec<(Owner, Owner)> {
    let waits = database.waits().into_iter();
    waits.filter_map(|wait| Some((owner_of(&wait.waiting)?, owner_of(&wait.holder)?))).collect()
}

/// The number that the name of a table of the storage ends in.
fn storage_number(name: &str) -> Option<u64> {
    name.rsplit_once(STORAGE_MARK).and_then(|(_, number)| number.parse().ok())
}

/// The greatest number that a table of the storage has.
fn last_storage(database: &Database) -> u64 {
    let definitions = database.definitions();
    definitions
        .catalog
        .tables()
        .filter_map(|(_, table)| storage_number(&table.name))
        .max()
        .unwrap_or_default()
}

/// Drops tables of the storage that no table of a catalog has its rows in: those of transactions that a crash
/// has ended, those that were left when one committed just before, and those of temporary tables.
fn drop_unnamed_storage(database: &Database, catalogs: &Catalogs) -> Result<()> {
    let tables = catalogs.databases.values().flat_map(|(_, catalog)| catalog.tables.values());
    let named: HashSet<&str> = tables.map(|table| table.storage.as_str()).collect();
    let definitions = database.definitions();
    let names = definitions.catalog.tables().map(|(_, table)| &table.name);
    let unnamed = names.filter(|name| storage_number(name).is_some() && !named.contains(name.as_str()));
    let drops: String = unnamed.map(|name| format!("drop table `{name}`\n")).collect();
    if drops.is_empty() { Ok(()) } else { database.define(&drops) }
}

impl SqlDatabase {
    /// Numbers for rows of a table without a primary key: the first of so many.
    pub(crate) async fn row_numbers(&self, table: Oid, count: usize) -> Result<i64> {
        self.sequences.row_numbers(table, count).await
    }

    /// Sets a sequence, at once and for everybody.
    pub(crate) async fn set_sequence(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<()> {
        self.sequences.set(sequence, value, is_called).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::{Connection, run_counting};
    use fabius::Options;

    /// Goal: what a crash has left of the storage is dropped at the next opening; nothing else is, and numbers of
    /// what was there are not given again.
    #[tokio::test]
    async fn storage_without_a_name_is_dropped() {
        let database = Arc::new(Database::in_memory(Options::default()));
        let mut connection = Connection::new(SqlDatabase::open(database.clone()).await.unwrap(), "me");
        run_counting(&mut connection, "CREATE TABLE t (a integer PRIMARY KEY)").await;
        run_counting(&mut connection, "INSERT INTO t VALUES (1)").await;
        drop(connection);
        let table = |name: &str| format!("table `{name}` {{ id: bigint, primary key (id) }}");
        database.define(&[table("left #700"), table("by itself"), table("# seven")].join("\n")).unwrap();
        let sql = SqlDatabase::open(database.clone()).await.unwrap();
        let has = |name: &str| database.definitions().catalog.find_table(name).is_some();
        assert!(!has("left #700") && has("by itself") && has("# seven"));
        let mut connection = Connection::new(sql, "me");
        assert_eq!(run_counting(&mut connection, "SELECT a FROM t").await, 1);
    }
}
