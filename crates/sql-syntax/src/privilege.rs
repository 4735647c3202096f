//! What can be granted.
//!
//! Privileges and their letters are PostgreSQL's (its documentation, 5.7 "Privileges").

use serde::{Deserialize, Serialize};

/// One thing that may be done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Privilege {
    /// Rows are added.
    Insert,
    /// Rows are read; a sequence's number is.
    Select,
    /// Rows are changed; a sequence's number is set.
    Update,
    /// Rows are taken out.
    Delete,
    /// All rows are taken out at once.
    Truncate,
    /// Foreign keys refer to it.
    References,
    /// Triggers are made.
    Trigger,
    /// A function is called.
    Execute,
    /// A schema is looked into, a sequence counted, a type used.
    Usage,
    /// Objects are made in it.
    Create,
    /// Temporary tables are made.
    Temporary,
    /// Sessions are begun.
    Connect,
}

use Privilege::{
    Connect, Create, Delete, Execute, Insert, References, Select, Temporary, Trigger, Truncate, Update, Usage,
};

impl Privilege {
    /// All, in the order in which `aclitem` writes them.
    pub const ALL: [Privilege; 12] = [
        Insert, Select, Update, Delete, Truncate, References, Trigger, Execute, Usage, Create, Temporary,
        Connect,
    ];

    /// The letter that `aclitem` writes.
    pub fn letter(self) -> char {
        match self {
            Insert => 'a',
            Select => 'r',
            Update => 'w',
            Delete => 'd',
            Truncate => 'D',
            References => 'x',
            Trigger => 't',
            Execute => 'X',
            Usage => 'U',
            Create => 'C',
            Temporary => 'T',
            Connect => 'c',
        }
    }

    /// The word that SQL has for it.
    pub fn word(self) -> &'static str {
        match self {
            Insert => "INSERT",
            Select => "SELECT",
            Update => "UPDATE",
            Delete => "DELETE",
            Truncate => "TRUNCATE",
            References => "REFERENCES",
            Trigger => "TRIGGER",
            Execute => "EXECUTE",
            Usage => "USAGE",
            Create => "CREATE",
            Temporary => "TEMPORARY",
            Connect => "CONNECT",
        }
    }

    /// The privilege of a word, in capitals or not.
    pub fn of_word(word: &str) -> Option<Privilege> {
        if word.eq_ignore_ascii_case("TEMP") {
            return Some(Temporary);
        }
        Privilege::ALL.into_iter().find(|privilege| privilege.word().eq_ignore_ascii_case(word))
    }
}

/// A set of privileges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Privileges(u16);

impl Privileges {
    /// None.
    pub const NONE: Privileges = Privileges(0);

    /// Those of a list.
    pub const fn of(list: &[Privilege]) -> Privileges {
        let (mut bits, mut at) = (0, 0);
        while at < list.len() {
            bits |= 1 << list[at] as u16;
            at += 1;
        }
        Privileges(bits)
    }

    /// Whether one is among them.
    pub fn has(self, one: Privilege) -> bool {
        self.0 & (1 << one as u16) != 0
    }

    /// Those that are in both.
    pub fn and(self, other: Privileges) -> Privileges {
        Privileges(self.0 & other.0)
    }

    /// Those that are in one of both.
    pub fn or(self, other: Privileges) -> Privileges {
        Privileges(self.0 | other.0)
    }

    /// Those that are not in the other.
    pub fn without(self, other: Privileges) -> Privileges {
        Privileges(self.0 & !other.0)
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// In the order of [`Privilege::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Privilege> {
        Privilege::ALL.into_iter().filter(move |one| self.has(*one))
    }
}

/// Kinds of objects that have the same privileges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Class {
    /// A table or view.
    Table,
    /// A sequence.
    Sequence,
    /// A database.
    Database,
    /// A schema.
    Schema,
    /// A function or procedure.
    Function,
    /// A type or domain.
    Type,
}

impl Class {
    /// All.
    pub const ALL: [Class; 6] =
        [Class::Table, Class::Sequence, Class::Database, Class::Schema, Class::Function, Class::Type];

    /// What there is to grant.
    pub fn privileges(self) -> Privileges {
        Privileges::of(match self {
            Class::Table => &[Insert, Select, Update, Delete, Truncate, References, Trigger],
            Class::Sequence => &[Select, Update, Usage],
            Class::Database => &[Create, Temporary, Connect],
            Class::Schema => &[Usage, Create],
            Class::Function => &[Execute],
            Class::Type => &[Usage],
        })
    }

    /// What everybody may do with a new one.
    pub fn public(self) -> Privileges {
        Privileges::of(match self {
            Class::Table | Class::Sequence | Class::Schema => &[],
            Class::Database => &[Temporary, Connect],
            Class::Function => &[Execute],
            Class::Type => &[Usage],
        })
    }

    /// What messages call it.
    pub fn word(self) -> &'static str {
        match self {
            Class::Table => "table",
            Class::Sequence => "sequence",
            Class::Database => "database",
            Class::Schema => "schema",
            Class::Function => "function",
            Class::Type => "type",
        }
    }

    /// The letter of `pg_default_acl.defaclobjtype`.
    pub fn letter(self) -> char {
        match self {
            Class::Table => 'r',
            Class::Sequence => 'S',
            Class::Database => 'd',
            Class::Schema => 'n',
            Class::Function => 'f',
            Class::Type => 'T',
        }
    }
}
