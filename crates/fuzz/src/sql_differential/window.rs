//! Random window functions. What depends on the order of rows that are equal in it is sorted by all that tells rows
//! apart.

use super::generator::Generator;
use super::tree::Node;
use super::value_type::ValueType::{self, BigInt, Boolean, Double, Int, Ints, Numeric, Text};

/// Frames that do not depend on the order of rows that are equal.
const FRAMES: [&str; 6] = [
    "",
    "",
    " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " GROUPS BETWEEN CURRENT ROW AND 1 FOLLOWING",
];

/// Frames that do.
const ROW_FRAMES: [&str; 5] = [
    " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    " ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    " ROWS 2 PRECEDING",
    " ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
];

/// Sums that a frame has to forget when what is far leaves it.
const FAR_SUMS: [&str; 3] = [
    "sum(CASE WHEN {} THEN 'NaN'::double precision ELSE 1.5 END)",
    "sum(CASE WHEN {} THEN 'Infinity'::double precision ELSE 1.5 END)",
    "avg(CASE WHEN {} THEN 1e20::double precision ELSE 1.5 END)",
];

impl Generator<'_> {
    /// A window function of this type, or an expression if there is none.
    pub fn window_call(&mut self, of: ValueType) -> Node {
        let was_typed = std::mem::replace(&mut self.is_typed, true);
        let node = self.any_window_call(of);
        self.is_typed = was_typed;
        node
    }

    /// All that tells the rows of the query apart, if there is something that does.
    pub fn window_total(&self) -> Option<Vec<String>> {
        self.scope().total.clone().filter(|total| !total.is_empty())
    }

    fn any_window_call(&mut self, of: ValueType) -> Node {
        let partition = match self.chance(1, 2) {
            true => {
                let by = self.type_with(ValueType::has_order);
                let key = self.expression(by);
                Node::optional("PARTITION BY {}", [key])
            }
            false => Node::nothing(),
        };
        let total = self.window_total();
        if let Some(total) = total
            && self.chance(1, 2)
            && let Some(call) = self.of_rows(of)
        {
            let frame = match self.chance(1, 2) {
                true => self.one_of(&ROW_FRAMES),
                false => "",
            };
            let can_have_frame =
                !["row_number", "ntile", "lag", "lead"].iter().any(|name| call.sql().starts_with(name));
            let frame = if can_have_frame { Node::optional(frame, []) } else { Node::nothing() };
            let key = self.type_with(ValueType::has_order);
            let first = self.expression(key);
            let direction = Node::optional(self.one_of(&["", " DESC", " NULLS FIRST"]), []);
            let first = Node::optional("{}{}, ", [first, direction]);
            let order = Node::plain(" ORDER BY {}{}", [first, Node::text(total.join(", "))]);
            return Node::expression(of, "{} OVER ({}{}{})", [call, partition, order, frame]);
        }
        let Some(call) = self.of_peers(of) else { return self.expression(of) };
        let needs_order =
            ["rank", "dense", "percent", "cume"].iter().any(|name| call.sql().starts_with(name));
        let range = self.chance(1, 6);
        let key = if range { Int } else { self.type_with(ValueType::has_order) };
        let mut order = Node::nothing();
        let mut frame = Node::nothing();
        if needs_order || self.chance(3, 4) {
            let first = self.expression(key);
            let direction =
                Node::optional(self.one_of(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]), []);
            order = Node::plain(" ORDER BY {}{}", [first, direction]);
            if !needs_order {
                let bounds = match range {
                    true => " RANGE BETWEEN 1 PRECEDING AND 2 FOLLOWING",
                    false => self.one_of(&FRAMES),
                };
                frame = Node::optional(bounds, []);
            }
        }
        Node::expression(of, "{} OVER ({}{}{})", [call, partition, order, frame])
    }

    /// One that depends on the order of all rows.
    fn of_rows(&mut self, of: ValueType) -> Option<Node> {
        Some(match (of, self.below(7)) {
            (BigInt, 0 | 1) => Node::expression(of, "row_number()", []),
            (Int, 0) => Node::expression(of, "ntile(3)", []),
            (Numeric, 0) => {
                let argument = self.expression(Int);
                Node::expression(of, "lead({}, 1, -1.4)", [argument])
            }
            (_, 0 | 1) => {
                let template =
                    self.one_of(&["lag({})", "lead({})", "lag({}, 2)", "lead({}, 1, {})", "lag({}, 0)"]);
                let count = template.matches("{}").count();
                let arguments: Vec<Node> = (0..count).map(|_| self.expression(of)).collect();
                Node::expression(of, template, arguments)
            }
            (_, 2 | 3) => {
                let template = self.one_of(&["first_value({})", "last_value({})", "nth_value({}, 2)"]);
                let argument = self.expression(of);
                Node::expression(of, template, [argument])
            }
            (Text, 4) => {
                let arguments = [self.expression(Text), self.expression(Text)];
                Node::expression(of, "string_agg({}, {})", arguments)
            }
            (Ints, 4) => {
                let argument = self.expression(Int);
                Node::expression(of, "array_agg({})", [argument])
            }
            _ => self.of_peers(of).filter(|call| call.sql().starts_with(['s', 'm', 'b']))?,
        })
    }

    /// One that gives the same for rows that are equal.
    fn of_peers(&mut self, of: ValueType) -> Option<Node> {
        let (template, argument) = match (of, self.below(4)) {
            (BigInt, 0) => ("rank()", None),
            (BigInt, 1) => ("dense_rank()", None),
            (BigInt, 2) => ("count(*)", None),
            (BigInt, _) => ("sum({})", Some(Int)),
            (Double, 0) => ("percent_rank()", None),
            (Double, 1) => ("cume_dist()", None),
            (Double, 2) => (self.one_of(&FAR_SUMS), Some(Boolean)),
            (Double, _) => ("sum({})", Some(Double)),
            (Numeric, 0 | 1) => ("sum({})", Some(Numeric)),
            (Numeric, 2) => ("avg({})", Some(Int)),
            (Boolean, 0) => ("bool_and({})", Some(Boolean)),
            (Boolean, _) => ("bool_or({})", Some(Boolean)),
            (Int, 0) => (self.one_of(&["bit_and({})", "bit_or({})", "bit_xor({})"]), Some(Int)),
            (of, 0..=1) if of.has_extremes() => ("min({})", Some(of)),
            (of, _) if of.has_extremes() => ("max({})", Some(of)),
            _ => return None,
        };
        let arguments: Vec<Node> = argument.map(|of| self.expression(of)).into_iter().collect();
        Some(Node::expression(of, template, arguments))
    }
}
