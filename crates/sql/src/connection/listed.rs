//! Cursors and prepared statements of a session, as `pg_cursors` and `pg_prepared_statements` list them.

use super::Connection;
use super::clock::now_us;
use fabius_sql_meaning::session_facts::{ListedCursor, ListedStatement};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::command::Scroll;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a session has that is listed, by the numbers of the entries.
#[derive(Default)]
pub(super) struct Listed {
    entries: Mutex<(u64, BTreeMap<u64, Entry>)>,
}

enum Entry {
    Cursor(ListedCursor),
    Statement(ListedStatement),
}

/// An entry, which ends with it.
pub struct Listing {
    listed: Arc<Listed>,
    number: u64,
}

impl Drop for Listing {
    fn drop(&mut self) {
        self.listed.entries.lock().1.remove(&self.number);
    }
}

impl Listed {
    fn put(self: &Arc<Self>, entry: Entry) -> Listing {
        let mut entries = self.entries.lock();
        let number = entries.0;
        entries.0 += 1;
        entries.1.insert(number, entry);
        Listing { listed: self.clone(), number }
    }

    pub fn cursors(&self) -> Vec<ListedCursor> {
        let of_cursors = |entry: &Entry| match entry {
            Entry::Cursor(cursor) => Some(cursor.clone()),
            Entry::Statement(_) => None,
        };
        self.entries.lock().1.values().filter_map(of_cursors).collect()
    }

    pub fn statements(&self) -> Vec<ListedStatement> {
        let of_statements = |entry: &Entry| match entry {
            Entry::Statement(statement) => Some(statement.clone()),
            Entry::Cursor(_) => None,
        };
        self.entries.lock().1.values().filter_map(of_statements).collect()
    }

    /// Lists a cursor, and what was written for it.
    pub fn cursor(self: &Arc<Self>, name: &str, text: &str, is_held: bool, scroll: Scroll) -> Listing {
        self.put(Entry::Cursor(ListedCursor {
            name: name.to_string(),
            text: text.to_string(),
            is_held,
            scrolls: scroll != Scroll::Forward,
            since_us: now_us(),
        }))
    }
}

impl Connection {
    /// Lists a prepared statement; whether it is one of SQL, or of the protocol.
    pub fn list_statement(&self, name: &str, text: &str, types: &[SqlType], is_of_sql: bool) -> Listing {
        self.session.facts.listed.put(Entry::Statement(ListedStatement {
            name: name.to_string(),
            text: text.to_string(),
            since_us: now_us(),
            parameters: types.iter().map(SqlType::oid).collect(),
            is_of_sql,
        }))
    }
}
