//! Random conditions.

use super::generator::{Generator, Leaf};
use super::tree::Node;
use super::value_type::ValueType::{self, Boolean};

const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

/// Conditions about the session.
const OF_THE_SESSION: [&str; 3] = [
    "(current_schema() = 'pg_catalog')",
    "(now() > timestamptz '2001-01-01 00:00:00+00')",
    "(current_setting('client_encoding') = 'LATIN1')",
];

impl Generator<'_> {
    /// A condition that is composed of others or of values.
    pub fn predicate(&mut self) -> Node {
        if self.chance(1, 8)
            && let Some(condition) = self.between_queries()
        {
            return condition;
        }
        match self.below(16) {
            0 | 1 => self.connected("AND"),
            2 | 3 => self.connected("OR"),
            4 => Node::expression(Boolean, "(NOT {})", [self.expression(Boolean)]),
            5 => {
                let test = self.one_of(&[
                    "TRUE",
                    "NOT TRUE",
                    "FALSE",
                    "NOT FALSE",
                    "UNKNOWN",
                    "NOT UNKNOWN",
                    "NULL",
                ]);
                let inner = self.expression(Boolean);
                Node::expression(Boolean, "({} IS {})", [inner, Node::text(test)])
            }
            6 => {
                let of = self.any_type();
                let template = self.one_of(&["({} IS NULL)", "({} IS NOT NULL)"]);
                let value = self.expression(of);
                Node::expression(Boolean, template, [value])
            }
            7 => {
                let of = self.type_with(ValueType::has_equality);
                let template = self.one_of(&["({} IS DISTINCT FROM {})", "({} IS NOT DISTINCT FROM {})"]);
                let parts = [self.expression(of), self.expression(of)];
                Node::expression(Boolean, template, parts)
            }
            8 => {
                let of = self.type_with(ValueType::has_order);
                let template = self.one_of(&["({} BETWEEN {} AND {})", "({} NOT BETWEEN {} AND {})"]);
                let parts = [self.expression(of), self.expression(of), self.expression(of)];
                Node::expression(Boolean, template, parts)
            }
            9 => self.in_list(),
            10 => self.row_comparison(),
            11 | 12 if self.can_have_query() => self.subquery_predicate(),
            13 if self.chance(1, 3) => self.comparison_of_constants(),
            _ => self.comparison(),
        }
    }

    /// A condition about two columns of a query and one of a query around it.
    fn between_queries(&mut self) -> Option<Node> {
        let (own, around) = self.scopes.split_last().filter(|_| !self.is_own_only)?;
        let outer: Vec<&Leaf> = around.iter().flat_map(|scope| &scope.leaves).collect();
        let alike = |of: ValueType| own.leaves.iter().filter(move |leaf| leaf.of == of);
        let fits = |leaf: &&Leaf| leaf.of.has_order() && !leaf.is_local && alike(leaf.of).count() > 1;
        let outer: Vec<&Leaf> = outer.into_iter().filter(fits).collect();
        let outer = *outer.get(self.random.index(outer.len().max(1)))?;
        let own: Vec<Node> = alike(outer.of).map(|leaf| leaf.node.clone()).collect();
        let outer = outer.node.clone();
        let (first, second) = (self.one_of(&own), self.one_of(&own));
        let template = self.one_of(&["(least({}, {}) {} {})", "(nullif({}, {}) {} {})"]);
        let operator = self.one_of(&COMPARISONS);
        Some(Node::expression(Boolean, template, [first, outer, Node::word(operator, "="), second]))
    }

    /// A condition that is known before the query has a row: about a row of a query around it, or about the session.
    pub fn known_beforehand(&mut self) -> Node {
        let around = self.scopes.split_last().filter(|_| !self.is_own_only).map(|(_, around)| around);
        let leaves = around.into_iter().flatten().flat_map(|scope| &scope.leaves);
        let leaves: Vec<Leaf> =
            leaves.filter(|leaf| leaf.of.has_order() && !leaf.is_local).cloned().collect();
        if leaves.is_empty() || self.chance(1, 4) {
            return Node::raw(Boolean, self.one_of(&OF_THE_SESSION));
        }
        let leaf = self.one_of(&leaves);
        let operator = Node::word(self.one_of(&COMPARISONS), "=");
        let value = self.literal(leaf.of);
        Node::expression(Boolean, "({} {} {})", [leaf.node, operator, value])
    }

    /// A comparison of two constants, of which one may be missing: mostly it holds in no row.
    fn comparison_of_constants(&mut self) -> Node {
        let of = self.type_with(ValueType::has_equality);
        let (shown, other) = (self.literal(of), self.literal(of));
        let condition = self.expression(Boolean);
        Node::expression(Boolean, "(CASE WHEN {} THEN {} END = {})", [condition, shown, other])
    }

    fn connected(&mut self, word: &'static str) -> Node {
        let mut terms = vec![self.expression(Boolean), self.expression(Boolean)];
        if self.chance(1, 4) {
            terms.push(self.expression(Boolean));
        }
        let separator = if word == "AND" { " AND " } else { " OR " };
        Node::expression(Boolean, "({})", [Node::list_of(separator, 1, super::tree::ALONE, terms)])
    }

    pub fn comparison(&mut self) -> Node {
        let operator = self.one_of(&COMPARISONS);
        let of = match operator {
            "=" | "<>" => self.type_with(ValueType::has_equality),
            _ => self.type_with(ValueType::has_order),
        };
        let right = match of {
            ValueType::Int if self.chance(1, 5) => {
                self.one_of(&[ValueType::BigInt, ValueType::Numeric, ValueType::SmallInt])
            }
            ValueType::Text if self.chance(1, 5) => self.one_of(&[ValueType::Varchar, ValueType::Char]),
            of => of,
        };
        let parts = [self.expression(of), Node::word(operator, "="), self.expression(right)];
        Node::expression(Boolean, "({} {} {})", parts)
    }

    fn in_list(&mut self) -> Node {
        let of = self.type_with(ValueType::has_equality);
        let value = self.typed(of);
        let count = 1 + self.below(3);
        let list = (0..count).map(|_| self.beside(of)).collect();
        let word = self.one_of(&["IN", "NOT IN"]);
        Node::expression(Boolean, "({} {} ({}))", [value, Node::text(word), Node::list(list)])
    }

    /// Rows of two or three values.
    fn row_comparison(&mut self) -> Node {
        let count = 2 + self.below(2);
        let types: Vec<ValueType> = (0..count).map(|_| self.type_with(ValueType::has_order)).collect();
        let left = self.row(&types);
        if self.chance(1, 3) {
            let rows = vec![self.row(&types), self.row(&types)];
            let word = self.one_of(&["IN", "NOT IN"]);
            return Node::expression(Boolean, "({} {} ({}))", [left, Node::text(word), Node::list(rows)]);
        }
        let operator = self.one_of(&COMPARISONS);
        let right = self.row(&types);
        Node::expression(Boolean, "({} {} {})", [left, Node::word(operator, "="), right])
    }

    fn row(&mut self, types: &[ValueType]) -> Node {
        let values = types.iter().map(|of| self.expression(*of)).collect();
        Node::plain("({})", [Node::list(values)])
    }

    fn subquery_predicate(&mut self) -> Node {
        if self.chance(1, 4)
            && let Some(predicate) = self.asked_by_key()
        {
            return predicate;
        }
        match self.below(6) {
            0 | 1 => {
                let query = self.any_subquery();
                let template = self.one_of(&["EXISTS ({})", "(NOT EXISTS ({}))"]);
                Node::expression(Boolean, template, [query])
            }
            2 | 3 => {
                let of = self.type_with(ValueType::has_equality);
                let value = self.expression(of);
                let word = self.one_of(&["IN", "NOT IN"]);
                let query = self.subquery(&[of]);
                Node::expression(Boolean, "({} {} ({}))", [value, Node::text(word), query])
            }
            4 => {
                let types =
                    [self.type_with(ValueType::has_equality), self.type_with(ValueType::has_equality)];
                let word = self.one_of(&["IN", "NOT IN"]);
                let row = self.row(&types);
                let query = self.subquery(&types);
                Node::expression(Boolean, "({} {} ({}))", [row, Node::text(word), query])
            }
            _ => {
                let of = self.type_with(ValueType::has_order);
                let operator = self.one_of(&COMPARISONS);
                let word = self.one_of(&["ANY", "ALL", "SOME"]);
                let value = self.expression(of);
                let query = self.subquery(&[of]);
                let parts = [value, Node::word(operator, "="), Node::text(word), query];
                Node::expression(Boolean, "({} {} {} ({}))", parts)
            }
        }
    }
}
