//! Which of PostgreSQL's modules a database can say that it has.
//!
//! What Fabius has of them is there without them. A database keeps that it was asked for one, because tools ask first
//! and look later.

use super::{Catalog, Oid};

/// A module that can be asked for.
pub struct Extension {
    /// The module's name.
    pub name: &'static str,
    /// The version that PostgreSQL 15 has.
    pub version: &'static str,
    /// What PostgreSQL says of it.
    pub comment: &'static str,
    /// What of it is not there.
    pub missing: Option<&'static str>,
}

/// The extension that every database has.
pub const PLPGSQL: &str = "plpgsql";
const PLPGSQL_OID: Oid = 13_499;

/// All that can be asked for.
pub const EXTENSIONS: [Extension; 7] = [
    Extension {
        name: "btree_gin",
        version: "1.3",
        comment: "support for indexing common datatypes in GIN",
        missing: None,
    },
    Extension {
        name: "btree_gist",
        version: "1.7",
        comment: "support for indexing common datatypes in GiST",
        missing: None,
    },
    Extension {
        name: "citext",
        version: "1.6",
        comment: "data type for case-insensitive character strings",
        missing: Some("the type citext"),
    },
    Extension {
        name: "hstore",
        version: "1.8",
        comment: "data type for storing sets of (key, value) pairs",
        missing: Some("the type hstore with its functions"),
    },
    Extension {
        name: "pgcrypto",
        version: "1.3",
        comment: "cryptographic functions",
        missing: Some("its functions, but for gen_random_uuid(),"),
    },
    Extension { name: PLPGSQL, version: "1.0", comment: "PL/pgSQL procedural language", missing: None },
    Extension {
        name: "uuid-ossp",
        version: "1.1",
        comment: "generate universally unique identifiers (UUIDs)",
        missing: Some("its functions, but for uuid_generate_v4(),"),
    },
];

/// The extensions that a database has, with their numbers.
pub fn installed(catalog: &Catalog) -> impl Iterator<Item = (Oid, &'static Extension)> {
    EXTENSIONS.iter().filter_map(|extension| Some((oid_of(catalog, extension.name)?, extension)))
}

/// The number of an extension, if the database has it.
pub fn oid_of(catalog: &Catalog, name: &str) -> Option<Oid> {
    if name == PLPGSQL { Some(PLPGSQL_OID) } else { catalog.extensions.get(name).copied() }
}
