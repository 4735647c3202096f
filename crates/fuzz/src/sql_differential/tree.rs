//! Statements as trees: printed to SQL in several forms, and taken apart when a difference is shrunk.
//!
//! A tree knows little of SQL. A node has a role, which says how a smaller statement can be made of it, and parts,
//! which are printed one after another:
//!
//! | role | smaller |
//! |---|---|
//! | `Plain` | only through what is in it |
//! | `Optional` | left out |
//! | `List` | without some of its elements; lists of one group lose the same elements |
//! | `Expression` | a literal, or an expression of the same type that is in it |
//! | `Query` | a query that is in it |
//! | `Word` | a simpler word |
//!
//! What becomes invalid in this way is refused by both databases, and so is not kept.

use super::literal::Literal;
use super::value_type::ValueType;
use std::borrow::Cow;

/// Text, a value, or a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    Text(Cow<'static, str>),
    Literal(Literal),
    Node(Node),
}

/// What a node is, and so what a smaller statement has in its place.
#[derive(Clone, Debug, PartialEq)]
pub enum Role {
    Plain,
    Optional,
    List {
        separator: &'static str,
        least: usize,
        group: u32,
    },
    Expression(ValueType),
    Query,
    Word {
        simpler: &'static str,
    },
    /// The `ORDER BY` of a query; those of the outermost one say which order is compared.
    OrderBy,
    /// An element of it: the column of the result, by position from 1 or by name, that it sorts by.
    OrderKey(OrderKey),
    /// `LIMIT` and `OFFSET`.
    Limit,
}

/// A column of the result that rows are sorted by.
#[derive(Clone, Debug, PartialEq)]
pub enum OrderKey {
    Position(usize),
    Name(String),
    /// Nothing that the result shows.
    Hidden,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub role: Role,
    pub parts: Vec<Part>,
}

/// Lists without a group.
pub const ALONE: u32 = 0;

impl Node {
    /// Text that is never changed.
    pub fn text(text: impl Into<Cow<'static, str>>) -> Node {
        Node { role: Role::Plain, parts: vec![Part::Text(text.into())] }
    }

    /// Nothing.
    pub fn nothing() -> Node {
        Node { role: Role::Plain, parts: Vec::new() }
    }

    /// A template whose `{}` are replaced by nodes.
    ///
    /// # Panics
    /// If there are more or fewer nodes than places.
    pub fn fill(role: Role, template: &str, nodes: impl IntoIterator<Item = Node>) -> Node {
        let mut parts = Vec::new();
        let mut nodes = nodes.into_iter();
        for (at, text) in template.split("{}").enumerate() {
            if at > 0 {
                let node = nodes.next();
                parts.push(Part::Node(node.unwrap_or_else(|| panic!("too few nodes: {template}"))));
            }
            if !text.is_empty() {
                parts.push(Part::Text(text.to_string().into()));
            }
        }
        assert!(nodes.next().is_none(), "too many nodes: {template}");
        Node { role, parts }
    }

    /// The node without a role.
    pub fn plain(template: &str, nodes: impl IntoIterator<Item = Node>) -> Node {
        Node::fill(Role::Plain, template, nodes)
    }

    pub fn expression(of: ValueType, template: &str, nodes: impl IntoIterator<Item = Node>) -> Node {
        Node::fill(Role::Expression(of), template, nodes)
    }

    /// An expression that is never taken apart.
    pub fn raw(of: ValueType, sql: impl Into<Cow<'static, str>>) -> Node {
        Node { role: Role::Expression(of), parts: vec![Part::Text(sql.into())] }
    }

    pub fn optional(template: &str, nodes: impl IntoIterator<Item = Node>) -> Node {
        Node::fill(Role::Optional, template, nodes)
    }

    /// Elements with commas between them, of which one stays.
    pub fn list(elements: Vec<Node>) -> Node {
        Node::list_of(", ", 1, ALONE, elements)
    }

    pub fn list_of(separator: &'static str, least: usize, group: u32, elements: Vec<Node>) -> Node {
        let parts = elements.into_iter().map(Part::Node).collect();
        Node { role: Role::List { separator, least, group }, parts }
    }

    pub fn literal(of: ValueType, value: Literal) -> Node {
        Node { role: Role::Expression(of), parts: vec![Part::Literal(value)] }
    }

    pub fn word(word: &'static str, simpler: &'static str) -> Node {
        Node { role: Role::Word { simpler }, parts: vec![Part::Text(word.into())] }
    }

    /// The nodes directly in it.
    pub fn children(&self) -> impl Iterator<Item = &Node> {
        self.parts.iter().filter_map(|part| match part {
            Part::Node(node) => Some(node),
            _ => None,
        })
    }

    /// How many nodes there are.
    pub fn size(&self) -> usize {
        1 + self.children().map(Node::size).sum::<usize>()
    }

    /// The SQL of it, values written out.
    pub fn sql(&self) -> String {
        let mut sql = String::new();
        self.print(&mut |literal| literal.sql(), &mut sql);
        sql
    }

    /// Whether there are sets of groups in it.
    pub fn has_sets(&self) -> bool {
        let sql = self.sql();
        ["ROLLUP (", "CUBE (", "GROUPING SETS ("].iter().any(|word| sql.contains(word))
    }

    /// The SQL of it with some of its values as parameters: every value that is the same is the same parameter, so that
    /// what has to be the same expression in two places stays so.
    pub fn sql_with_parameters(&self, mut is_parameter: impl FnMut() -> bool) -> (String, Vec<Literal>) {
        let (mut written, mut parameters): (Vec<Literal>, Vec<Literal>) = (Vec::new(), Vec::new());
        let mut sql = String::new();
        let mut print = |literal: &Literal| {
            if written.contains(literal) {
                return literal.sql();
            }
            let place = parameters.iter().position(|parameter| parameter == literal);
            if place.is_none() && !(literal.can_be_parameter() && is_parameter()) {
                written.push(literal.clone());
                return literal.sql();
            }
            let place = place.unwrap_or_else(|| {
                parameters.push(literal.clone());
                parameters.len() - 1
            });
            format!("${}", place + 1)
        };
        self.print(&mut print, &mut sql);
        (sql, parameters)
    }

    fn print(&self, literal: &mut dyn FnMut(&Literal) -> String, to: &mut String) {
        let separator = match self.role {
            Role::List { separator, .. } => separator,
            Role::OrderBy => ", ",
            _ => "",
        };
        if self.role == Role::OrderBy {
            to.push_str(" ORDER BY ");
        }
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                to.push_str(separator);
            }
            match part {
                Part::Text(text) => to.push_str(text),
                Part::Literal(value) => to.push_str(&literal(value)),
                Part::Node(node) => node.print(literal, to),
            }
        }
    }

    /// Every node, outer ones first, with the way to it: the places of parts.
    pub fn visit<'n>(&'n self, way: &mut Vec<usize>, see: &mut dyn FnMut(&[usize], &'n Node)) {
        see(way, self);
        for (at, part) in self.parts.iter().enumerate() {
            if let Part::Node(node) = part {
                way.push(at);
                node.visit(way, see);
                way.pop();
            }
        }
    }

    /// The node at the end of a way, to change it.
    pub fn at_mut(&mut self, way: &[usize]) -> Option<&mut Node> {
        way.iter().try_fold(self, |node, at| match node.parts.get_mut(*at) {
            Some(Part::Node(node)) => Some(node),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: trees print what templates say, and the same value is the same parameter everywhere.
    #[test]
    fn trees_are_printed() {
        let one = || Node::literal(ValueType::Int, Literal::new(ValueType::Int, Some("1")));
        let sum = |right| Node::expression(ValueType::Int, "({} + {})", [one(), right]);
        let select = Node::plain("SELECT {}", [Node::list(vec![sum(one()), one()])]);
        assert_eq!(select.sql(), "SELECT (1 + 1), 1");
        let (sql, parameters) = select.sql_with_parameters(|| true);
        assert_eq!((sql.as_str(), parameters.len()), ("SELECT ($1 + $1), $1", 1));
        assert_eq!(select.size(), 6);
    }
}
