//! Which tables the node that leads keeps others from writing, told to the other nodes of its cluster.
//!
//! Locks on tables are in the memory of the node that leads. A statement of another node does not meet them: it runs
//! there, and its call comes to the leader with all that it stands on written into it as a
//! [requirement](fabius::Requirement). So a lock that excludes writers is written into the state too, before whoever
//! has it goes on:
//!
//! ```text
//! leader:  lock --> close: {table, term, serial} ---> copies rows, defines ---> commits ---> open, unless
//!                                                                                            closed anew
//! others:                   require not closed (no row, or one of a term that is over), and the same catalog
//! ```
//!
//! What a leader has closed is open once its term is over: nothing that it has handed in is agreed on behind an entry
//! of a later term, and what another node requires goes to the leader of a term that that node knows of.

use crate::lock::{LockKey, LockMode, Owner};
use fabius::{Database, Footing, Requirement, Statement, TransactionOptions};
use fabius_sql_meaning::catalog::{Oid, store};
use fabius_value::{Error, Result, SqlState, Value};
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;

/// How long after a table could not be opened that is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// The table that says what is closed.
pub const TABLE: &str = "fabius closed tables";

/// The table's definition, as text.
pub fn table_definition() -> String {
    format!("table `{TABLE}` {{ id: bigint, term: bigint, serial: bigint, primary key (id) }}")
}

/// The tables that this node has closed.
pub struct ClosedTables {
    database: Arc<Database>,
    close: Arc<Statement>,
    open: Arc<Statement>,
    closings: Mutex<Closings>,
    standing: Mutex<HashMap<usize, Arc<Statement>>>,
}

#[derive(Default)]
struct Closings {
    last_serial: i64,
    by_table: HashMap<Oid, Closing>,
}

struct Closing {
    serial: i64,
    term: u64,
    owners: Vec<Owner>,
}

/// What writes stand on that do not stand on the lead of their node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ground {
    /// The [token](fabius_sql_meaning::catalog::Catalog::token) of the catalog by which the first statement was
    /// understood, once there is one.
    pub token: Option<String>,
    /// The tables that are written.
    pub written: BTreeSet<Oid>,
}

impl Ground {
    /// A statement would lock this where its node leads.
    pub fn lock(&mut self, key: &LockKey, mode: LockMode) {
        if let LockKey::Relation(table) = key
            && mode >= LockMode::RowExclusive
        {
            self.written.insert(*table);
        }
    }
}

/// Whether what a write stands on is so in the newest state that this node has.
pub enum Standing {
    /// It is: this is what its call requires.
    Firm(Arc<Requirement>),
    /// A table is closed.
    Closed,
    /// The catalog is another.
    Redefined,
}

/// Opens what was closed in a term. Once that is over, it is open by that.
async fn open(database: Arc<Database>, program: Arc<Statement>, arguments: [Value; 2], term: u64) {
    let options = TransactionOptions { footing: Footing::Term(term), ..TransactionOptions::default() };
    while database.term_of_lead() == Some(term) {
        if database.run_as(&options, &program, &arguments, None).await.is_ok() {
            return;
        }
        tokio::time::sleep(AGAIN).await;
    }
}

impl ClosedTables {
    /// Those of a database, whose table has to be there.
    ///
    /// # Errors
    /// If the database does not take the programs.
    pub fn new(database: Arc<Database>) -> Result<ClosedTables> {
        let close = database.statement(&store::procedure(&format!(
            "procedure `fabius close table`(id: bigint, term: bigint, serial: bigint) {{
                 upsert `{TABLE}` {{ id: id, term: term, serial: serial }}
             }}"
        ))?)?;
        let open = database.statement(&store::procedure(&format!(
            "procedure `fabius open table`(id: bigint, serial: bigint) {{
                 if `{TABLE}`[id]?.serial = serial {{ delete `{TABLE}`[id] }}
             }}"
        ))?)?;
        let (closings, standing) = (Mutex::default(), Mutex::default());
        Ok(ClosedTables { database, close, open, closings, standing })
    }

    /// An owner has a lock of this node, which leads in this term: returns once no other node writes what others may
    /// not write beside it.
    ///
    /// # Errors
    /// `40001` if this node does not lead in that term any more.
    pub async fn close(&self, key: &LockKey, mode: LockMode, owner: Owner, term: u64) -> Result<()> {
        let LockKey::Relation(table) = *key else { return Ok(()) };
        if !mode.excludes_writers() {
            return Ok(());
        }
        let serial = {
            let closings = &mut *self.closings.lock();
            let closing = closings.by_table.entry(table).or_insert_with(|| {
                closings.last_serial += 1;
                Closing { serial: closings.last_serial, term, owners: Vec::new() }
            });
            closing.term = closing.term.max(term);
            if !closing.owners.contains(&owner) {
                closing.owners.push(owner);
            }
            closing.serial
        };
        let stated = i64::try_from(term).unwrap_or(i64::MAX);
        let arguments = [Value::BigInt(table.into()), Value::BigInt(stated), Value::BigInt(serial)];
        let options = TransactionOptions { footing: Footing::Term(term), ..TransactionOptions::default() };
        self.database.run_as(&options, &self.close, &arguments, None).await.map(drop)
    }

    /// Opens what an owner has closed of this, unless others have closed it too. Does not wait.
    pub fn open(&self, owner: Owner, keys: &[LockKey]) {
        let closings = &mut *self.closings.lock();
        for key in keys {
            let LockKey::Relation(table) = key else { continue };
            let Some(closing) = closings.by_table.get_mut(table) else { continue };
            closing.owners.retain(|other| *other != owner);
            if closing.owners.is_empty() {
                let arguments = [Value::BigInt((*table).into()), Value::BigInt(closing.serial)];
                // Without a runtime the process is ending, and its lead with it.
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(open(self.database.clone(), self.open.clone(), arguments, closing.term));
                }
                closings.by_table.remove(table);
            }
        }
    }

    /// The program that reads what a write of so many tables stands on.
    fn standing(&self, tables: usize) -> Result<Arc<Statement>> {
        if let Some(known) = self.standing.lock().get(&tables) {
            return Ok(known.clone());
        }
        let list = |each: &dyn Fn(usize) -> String| (1..=tables).map(each).collect::<String>();
        let text = format!(
            "procedure `fabius standing`(row: bigint{}) -> (token: text null{}) {{ return `{}`[row]?.body{} }}",
            list(&|at| format!(", t{at}: bigint")),
            list(&|at| format!(", c{at}: bigint null")),
            store::TABLE,
            list(&|at| format!(", `{TABLE}`[t{at}]?.term")),
        );
        let made = self.database.statement(&store::procedure(&text)?)?;
        self.standing.lock().insert(tables, made.clone());
        Ok(made)
    }

    /// Whether what a write stands on is so in the newest state that this node has.
    ///
    /// # Errors
    /// If that cannot be read.
    pub async fn look(&self, ground: &Ground) -> Result<Standing> {
        // Before the state is read: what is of a term that was over by then is over.
        let term = self.database.member_status().map_or(0, |status| status.standing.term);
        let statement = self.standing(ground.written.len())?;
        let tables = ground.written.iter().map(|table| Value::BigInt((*table).into()));
        let arguments: Vec<Value> = std::iter::once(store::token_row()).chain(tables).collect();
        let results = self.database.read(&statement, &arguments, usize::MAX, None).await?.results;
        let [token, closed @ ..] = results.as_slice() else {
            return Err(Error::new(SqlState::DATA_CORRUPTED, "the catalog's token cannot be read"));
        };
        if !ground.token.as_ref().is_some_and(|understood| store::is_newest(token, understood)) {
            return Ok(Standing::Redefined);
        }
        let is_closed =
            |of: &Value| of.as_integer().is_some_and(|of| u64::try_from(of).is_ok_and(|of| of >= term));
        if closed.iter().any(is_closed) {
            return Ok(Standing::Closed);
        }
        Ok(Standing::Firm(Arc::new(Requirement { statement, arguments, results })))
    }
}
