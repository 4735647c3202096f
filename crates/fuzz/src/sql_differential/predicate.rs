//! Random conditions.

use super::generator::Generator;
use super::pending::Feature;
use super::tree::Node;
use super::value_type::ValueType::{self, Boolean};

const COMPARISONS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

impl Generator<'_> {
    /// A condition that is composed of others or of values.
    pub fn predicate(&mut self) -> Node {
        match self.below(16) {
            0 | 1 => self.connected("AND"),
            2 | 3 => self.connected("OR"),
            4 => Node::expression(Boolean, "(NOT {})", [self.expression(Boolean)]),
            5 if self.allows(Feature::TruthTest) => {
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
                let allows_numeric = self.allows(Feature::DistinctNumeric);
                let of =
                    self.type_with(|of| of.has_equality() && (of != ValueType::Numeric || allows_numeric));
                let template = self.one_of(&["({} IS DISTINCT FROM {})", "({} IS NOT DISTINCT FROM {})"]);
                let parts = [self.expression(of), self.expression(of)];
                Node::expression(Boolean, template, parts)
            }
            8 => {
                let of = self.ordered_type();
                let template = self.one_of(&["({} BETWEEN {} AND {})", "({} NOT BETWEEN {} AND {})"]);
                let parts = [self.expression(of), self.expression(of), self.expression(of)];
                Node::expression(Boolean, template, parts)
            }
            9 => self.in_list(),
            10 => self.row_comparison(),
            11 | 12 if self.can_have_query() => self.subquery_predicate(),
            _ => self.comparison(),
        }
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
            _ => self.ordered_type(),
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

    /// A type whose values can be compared by order.
    fn ordered_type(&mut self) -> ValueType {
        loop {
            let of = self.any_type();
            if self.can_be_ordered(of) {
                return of;
            }
        }
    }

    pub fn can_be_ordered(&self, of: ValueType) -> bool {
        let is_odd = matches!(of, ValueType::Ints | ValueType::Texts | ValueType::Interval);
        of.has_order() && (!is_odd || self.allows(Feature::OddOrder))
    }

    fn in_list(&mut self) -> Node {
        let of = self.type_with(ValueType::has_equality);
        let value = self.expression(of);
        let count = 1 + self.below(3);
        let make = |generator: &mut Self| (0..count).map(|_| generator.expression(of)).collect();
        let list = match self.allows(Feature::QueryInList) {
            true => make(self),
            false => self.without_queries(make),
        };
        let word = self.one_of(&["IN", "NOT IN"]);
        Node::expression(Boolean, "({} {} ({}))", [value, Node::text(word), Node::list(list)])
    }

    /// Rows of two or three values.
    fn row_comparison(&mut self) -> Node {
        let count = 2 + self.below(2);
        let types: Vec<ValueType> = (0..count).map(|_| self.ordered_type()).collect();
        let left = self.row(&types);
        if self.chance(1, 3) {
            let make = |generator: &mut Self| vec![generator.row(&types), generator.row(&types)];
            let rows = match self.allows(Feature::QueryInList) {
                true => make(self),
                false => self.without_queries(make),
            };
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
        match self.below(6) {
            0 | 1 => {
                let query = self.any_subquery();
                let template = self.one_of(&["EXISTS ({})", "(NOT EXISTS ({}))"]);
                Node::expression(Boolean, template, [query])
            }
            2 | 3 if self.allows(Feature::InQuery) => {
                let of = self.type_with(ValueType::has_equality);
                let value = self.expression(of);
                let word = self.one_of(&["IN", "NOT IN"]);
                let query = self.subquery(&[of]);
                Node::expression(Boolean, "({} {} ({}))", [value, Node::text(word), query])
            }
            4 if self.allows(Feature::InQuery) => {
                let types =
                    [self.type_with(ValueType::has_equality), self.type_with(ValueType::has_equality)];
                let word = self.one_of(&["IN", "NOT IN"]);
                let row = self.row(&types);
                let query = self.subquery(&types);
                Node::expression(Boolean, "({} {} ({}))", [row, Node::text(word), query])
            }
            _ if !self.allows(Feature::AnyOfQuery) => self.comparison(),
            _ => {
                let of = self.ordered_type();
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
