//! A use of a function, and what it may ask about.

use crate::catalog::Catalog;
use crate::catalog::Oid;
use crate::catalog::role::{BOOTSTRAP, POSTGRES};
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
        match self.catalog.roles.get(oid) {
            Some(role) => role.name.clone(),
            None if oid == BOOTSTRAP => self.session.superuser(),
            None => format!("unknown (OID={oid})"),
        }
    }

    /// The role of a name.
    pub fn role_named(&self, name: &str) -> Option<Oid> {
        let is_bootstrap = name == self.session.superuser() || name == POSTGRES;
        self.catalog.roles.named(name).map(|role| role.oid).or(is_bootstrap.then_some(BOOTSTRAP))
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
