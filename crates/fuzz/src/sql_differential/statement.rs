//! Statements of a script: what kind each is, and the ways in which one is sent.

use super::compare::Determined;
use super::session::{Message, Protocol, Shown};
use super::tree::{Node, OrderKey, Part, Role};
use fabius_env::Random;

/// What a statement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It makes a table, an index, a view, or its first rows.
    Setup,
    Select,
    /// A query whose parts have to add up to the whole (`self_check.rs`).
    Partition,
    Insert,
    Update,
    Delete,
    Merge,
    /// `WITH` whose parts write.
    WithWrites,
    /// `BEGIN`, `COMMIT` and their like.
    Control,
    /// Asks for all rows of a table, after it was written to.
    Probe,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Setup => "setup",
            Kind::Select => "SELECT",
            Kind::Partition => "SELECT in parts",
            Kind::Insert => "INSERT",
            Kind::Update => "UPDATE",
            Kind::Delete => "DELETE",
            Kind::Merge => "MERGE",
            Kind::WithWrites => "WITH ... writes",
            Kind::Control => "BEGIN, COMMIT, ...",
            Kind::Probe => "rows afterwards",
        }
    }

    /// Whether it leaves everything as it was.
    pub fn only_reads(self) -> bool {
        matches!(self, Kind::Select | Kind::Partition | Kind::Probe)
    }

    /// Whether it changes rows of tables that statements read.
    pub fn writes(self) -> bool {
        matches!(self, Kind::Insert | Kind::Update | Kind::Delete | Kind::Merge | Kind::WithWrites)
    }
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    pub kind: Kind,
    pub node: Node,
    /// The tables that it writes to.
    pub tables: Vec<String>,
    /// How it is sent.
    pub way: Way,
}

/// The form that a statement is sent in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As it is: mostly a program.
    Plain,
    /// With a `WITH` that nothing reads: programs have none.
    Query,
}

/// A way in which a statement is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    pub form: Form,
    pub protocol: Protocol,
    /// The seed that chooses which values are parameters, if any are.
    pub parameters: Option<u64>,
}

/// As people type it.
pub const PLAIN: Way = Way { form: Form::Plain, protocol: Protocol::Simple, parameters: None };

impl Way {
    /// A way to send a statement in a form.
    pub fn random(random: &mut Random, form: Form) -> Way {
        let protocol = match random.below(6) {
            0..=2 => return Way { form, ..PLAIN },
            3 | 4 => Protocol::Extended,
            _ => Protocol::Binary,
        };
        let parameters = random.chance(1, 2).then(|| random.next_u64());
        Way { form, protocol, parameters }
    }

    /// What it is, for people.
    pub fn name(self) -> String {
        let form = if self.form == Form::Plain { "plain" } else { "query" };
        let protocol = match self.protocol {
            Protocol::Simple => "simple",
            Protocol::Extended => "extended",
            Protocol::Binary => "binary",
        };
        let parameters = if self.parameters.is_some() { ", with parameters" } else { "" };
        format!("{form}, {protocol}{parameters}")
    }
}

impl Statement {
    pub fn new(kind: Kind, node: Node) -> Statement {
        Statement { kind, node, tables: Vec::new(), way: PLAIN }
    }

    pub fn text(kind: Kind, text: impl Into<String>) -> Statement {
        Statement::new(kind, Node::text(text.into()))
    }

    /// The statement, sent in another way.
    pub fn sent(&self, way: Way) -> Statement {
        Statement { way, ..self.clone() }
    }

    /// The message that sends it.
    pub fn message(&self) -> Message {
        let way = self.way;
        let (sql, parameters) = match way.parameters {
            None => (self.node.sql(), Vec::new()),
            Some(seed) => {
                let mut random = Random::seeded(seed);
                self.node.sql_with_parameters(|| random.chance(1, 2))
            }
        };
        let sql = match way.form {
            Form::Query if !sql.starts_with("WITH ") => format!("WITH unread AS (SELECT 1) {sql}"),
            _ => sql,
        };
        Message { sql, parameters, protocol: way.protocol }
    }

    /// What of its rows it determines.
    pub fn determined(&self, expected: &Shown) -> Determined {
        let mut determined = Determined::default();
        let has_limit = self.node.children().any(|node| node.role == Role::Limit);
        let keys = self.node.children().filter(|node| node.role == Role::OrderBy).flat_map(Node::children);
        for key in keys {
            let column = match &key.role {
                Role::OrderKey(OrderKey::Position(at)) => Some(at - 1),
                Role::OrderKey(OrderKey::Name(name)) => {
                    expected.columns.iter().position(|column| column.name == *name)
                }
                _ => None,
            };
            match column.filter(|column| *column < expected.columns.len()) {
                Some(column) => determined.keys.push(column),
                // What comes behind decides only among rows that cannot be told apart here.
                None => break,
            }
        }
        if self.node.has_sets() {
            determined.keys.clear();
        }
        determined.keys_only = has_limit;
        determined
    }

    /// The statement without its limit, if it has one.
    pub fn without_limit(&self) -> Option<Statement> {
        let mut all = self.clone();
        all.node.parts.retain(|part| !matches!(part, Part::Node(node) if node.role == Role::Limit));
        (all != *self).then_some(all)
    }
}
