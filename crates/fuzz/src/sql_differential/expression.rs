//! Random expressions of a type.

use super::function_list::{AGGREGATES, FUNCTIONS, Function, SORTED_AGGREGATES};
use super::generator::Generator;
use super::literal::Literal;
use super::tree::Node;
use super::value_type::ValueType;

/// How deep expressions are nested at most.
const DEPTH: usize = 4;

impl Generator<'_> {
    pub fn expression(&mut self, of: ValueType) -> Node {
        self.budget -= 1;
        self.depth += 1;
        let is_leaf = self.depth > DEPTH || self.budget <= 0 || self.chance(2, 5);
        let node = if is_leaf { self.leaf(of) } else { self.composed(of) };
        self.depth -= 1;
        node
    }

    fn leaf(&mut self, of: ValueType) -> Node {
        if self.chance(4, 5)
            && let Some(column) = self.column(of)
        {
            return column;
        }
        self.literal(of)
    }

    fn composed(&mut self, of: ValueType) -> Node {
        if self.scopes.last().is_some_and(|scope| scope.ungrouped.is_some())
            && self.chance(1, 2)
            && let Some(aggregate) = self.aggregate(of)
        {
            return aggregate;
        }
        if of == ValueType::Boolean && self.chance(3, 4) {
            return self.predicate();
        }
        match self.below(10) {
            0 => self.case(of),
            1 => Node::expression(of, "coalesce({}, {})", [self.expression(of), self.expression(of)]),
            2 if of.has_equality() => {
                Node::expression(of, "nullif({}, {})", [self.expression(of), self.expression(of)])
            }
            3 if of.has_order() => {
                let template = self.one_of(&["greatest({}, {})", "least({}, {})"]);
                Node::expression(of, template, [self.expression(of), self.expression(of)])
            }
            4 | 5 if self.can_have_query() => self.scalar_subquery(of),
            _ => self.function(of),
        }
    }

    /// Whether a query fits into the expression.
    pub fn can_have_query(&self) -> bool {
        self.query_depth < 3 && self.budget > 4
    }

    fn function(&mut self, of: ValueType) -> Node {
        let fitting: Vec<&Function> = FUNCTIONS.iter().filter(|(_, result, _)| *result == of).collect();
        if fitting.is_empty() {
            return self.leaf(of);
        }
        let function = *self.one_of(&fitting);
        self.call(&function)
    }

    /// A call of a function, its arguments of its types or of types that become these.
    pub fn call(&mut self, (template, of, types): &Function) -> Node {
        let mut arguments = Vec::new();
        let was_typed = self.is_typed;
        // Nothing around the argument says what it is.
        self.is_typed = template.starts_with("to_json");
        for argument in *types {
            let near = match argument {
                ValueType::Text if *of != ValueType::Texts && self.chance(1, 6) => ValueType::Varchar,
                other => *other,
            };
            arguments.push(self.expression(near));
        }
        self.is_typed = was_typed;
        Node::expression(*of, template, arguments)
    }

    /// An expression that says which type it has.
    pub(super) fn typed(&mut self, of: ValueType) -> Node {
        let was_typed = std::mem::replace(&mut self.is_typed, true);
        let expression = self.expression(of);
        self.is_typed = was_typed;
        expression
    }

    /// An expression that need not say which type it has, for it stands beside one that does.
    pub(super) fn beside(&mut self, of: ValueType) -> Node {
        if of == ValueType::Char || !self.chance(1, 4) {
            return self.expression(of);
        }
        let value = self.one_of(of.values());
        Node::literal(of, Literal::bare(of, Some(value)))
    }

    fn case(&mut self, of: ValueType) -> Node {
        if self.chance(1, 3) {
            let compared = self.type_with(ValueType::has_equality);
            let parts =
                [self.expression(compared), self.expression(compared), self.typed(of), self.beside(of)];
            return Node::expression(of, "CASE {} WHEN {} THEN {} ELSE {} END", parts);
        }
        let mut parts = vec![self.expression(ValueType::Boolean), self.typed(of)];
        if self.chance(1, 2) {
            let value = self.beside(of);
            parts.push(Node::optional(" ELSE {}", [value]));
        } else {
            parts.push(Node::nothing());
        }
        Node::expression(of, "CASE WHEN {} THEN {}{} END", parts)
    }

    /// A query of one value: an aggregate, or the first row of some.
    fn scalar_subquery(&mut self, of: ValueType) -> Node {
        if self.chance(1, 3) && of.has_order() {
            let (query, _) = self.first_rows(&[of], 1);
            return Node::expression(of, "({})", [query]);
        }
        if of == ValueType::Ints && self.chance(1, 2) {
            let (query, _) = self.first_rows(&[ValueType::Int], 3);
            return Node::expression(of, "ARRAY({})", [query]);
        }
        if of == ValueType::Texts && self.chance(1, 2) {
            // The rows come in the order that the query gave them.
            let (query, _) = self.first_rows(&[ValueType::Text], 3);
            return Node::expression(of, "(SELECT array_agg(o.v) FROM ({}) AS o(v))", [query]);
        }
        self.query_depth += 1;
        let from = self.joined_tables();
        let condition = self.optional_condition();
        self.group_all();
        // One of the query around leaves this one's rows as they are.
        let was_own_only = std::mem::replace(&mut self.is_own_only, true);
        let value = self.aggregate(of);
        self.is_own_only = was_own_only;
        let having = self.optional_having();
        self.scopes.pop();
        self.query_depth -= 1;
        // Without an aggregate there may be many rows.
        let Some(value) = value else { return self.leaf(of) };
        Node::expression(of, "(SELECT {}{}{}{})", [value, from, condition, having])
    }

    /// An aggregate of this type, in a query that has groups.
    pub fn aggregate(&mut self, of: ValueType) -> Option<Node> {
        let level = self.scopes.len() - 1;
        let ungrouped = *self.scopes[level].ungrouped.clone()?;
        let grouped = std::mem::replace(&mut self.scopes[level], ungrouped);
        let was_own_only = self.is_own_only;
        // Mostly it would be where no aggregate may be.
        self.is_own_only |= !self.chance(1, 20);
        let node = self.aggregate_within(of);
        self.is_own_only = was_own_only;
        self.scopes[level] = grouped;
        node
    }

    fn aggregate_within(&mut self, of: ValueType) -> Option<Node> {
        let sorted: Vec<&Function> =
            SORTED_AGGREGATES.iter().filter(|(_, result, _)| *result == of).collect();
        let plain: Vec<&Function> = AGGREGATES.iter().filter(|(_, result, _)| *result == of).collect();
        let choice = self.below(4);
        let is_sorted_only = plain.is_empty() && !of.has_extremes();
        let call = if (choice == 0 || is_sorted_only) && !sorted.is_empty() {
            self.sorted_aggregate(&sorted)?
        } else if of == ValueType::BigInt && choice < 3 && self.chance(1, 3) {
            let counted = self.type_with(ValueType::has_equality);
            let argument = self.expression(counted);
            Node::expression(of, "count(DISTINCT {})", [argument])
        } else if of == ValueType::BigInt && choice < 3 {
            let sources = self.scope().sources.clone();
            match self.chance(2, 3) && !sources.is_empty() {
                true => Node::raw(of, format!("count({}.*)", self.one_of(&sources))),
                false => Node::raw(of, "count(*)"),
            }
        } else if of.has_extremes() && choice < 3 {
            let template = self.one_of(&["min({})", "max({})"]);
            let argument = self.expression(of);
            Node::expression(of, template, [argument])
        } else if !plain.is_empty() {
            let function = *self.one_of(&plain);
            self.call(&function)
        } else {
            return None;
        };
        let is_plain = !call.sql().starts_with("round(");
        if is_plain && self.chance(1, 6) {
            let condition = self.expression(ValueType::Boolean);
            let filter = Node::optional(" FILTER (WHERE {})", [condition]);
            return Some(Node::expression(of, "{}{}", [call, filter]));
        }
        Some(call)
    }

    /// One that sorts its input by what it aggregates. It is kept as it is while a statement is shrunk.
    fn sorted_aggregate(&mut self, sorted: &[&Function]) -> Option<Node> {
        let (template, of, types) = *self.one_of(sorted);
        let argument = self.column(types[0])?.sql();
        Some(Node::raw(of, template.replace("{}", &argument)))
    }
}
