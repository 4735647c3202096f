//! A use of a function, and what it may ask about.

use crate::catalog::Catalog;
use crate::catalog::Oid;
use crate::session_facts::SessionFacts;
use crate::sql_type::SqlType;
use crate::text_format::TextStyle;
use std::sync::Arc;

/// What functions may ask about.
#[derive(Clone)]
pub struct Environment {
    /// What is defined.
    pub catalog: Arc<Catalog>,
    /// The session.
    pub session: Arc<dyn SessionFacts>,
    /// How the session reads and writes values.
    pub style: TextStyle,
}

impl Environment {
    /// What a role is called.
    pub fn role_name(&self, oid: Oid) -> String {
        self.catalog.roles.name(oid, &self.session.superuser())
    }

    /// The role of a name.
    pub fn role_named(&self, name: &str) -> Option<Oid> {
        self.catalog.roles.find(name, &self.session.superuser())
    }
}

/// One use of a function in a query.
pub struct Call {
    /// The types of its arguments.
    pub types: Vec<SqlType>,
    /// The type of its result.
    pub returns: SqlType,
    /// What it may ask about.
    pub environment: Arc<Environment>,
}
