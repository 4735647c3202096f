//! Random queries: what is selected, grouped, united, sorted.

use super::function_list::INEXACT;
use super::generator::{Generator, Leaf, Output, Scope};
use super::pending::Feature;
use super::tree::{ALONE, Node, OrderKey, Part, Role};
use super::value_type::ValueType;

/// A `SELECT` without what comes behind it.
struct Core {
    node: Node,
    outputs: Vec<Output>,
    /// Whether it may be sorted by what it does not show, and by which expressions.
    hidden: Vec<Node>,
    is_distinct: bool,
    /// Whether it ends with a sorting of its own, so that no other can come behind.
    is_sorted: bool,
}

/// What may come at the end of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Any,
    /// Nothing: a sorting is added.
    Open,
    /// Nothing, and no `DISTINCT` either.
    Plain,
}

const DIRECTIONS: [&str; 6] = ["", "", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"];

/// Whether an expression has a column in it: `r1.a`.
fn has_column(node: &Node) -> bool {
    let sql = node.sql();
    let mut names = sql.split('r').skip(1).map(|rest| rest.trim_start_matches(|c: char| c.is_ascii_digit()));
    names.any(|rest| rest.starts_with('.'))
}

impl Generator<'_> {
    /// A query whose rows are determined but not sorted.
    pub fn query(&mut self, wanted: Option<&[ValueType]>) -> (Node, Vec<Output>) {
        self.query_that(wanted, Ending::Any)
    }

    fn query_that(&mut self, wanted: Option<&[ValueType]>, ending: Ending) -> (Node, Vec<Output>) {
        self.query_depth += 1;
        let can_unite = self.allows(Feature::UnionWithin);
        let (node, outputs) = match can_unite && self.budget > 6 && self.chance(1, 5) {
            true => self.set_operation(wanted),
            false => {
                let core = self.core(wanted, ALONE, false, ending);
                (core.node, core.outputs)
            }
        };
        self.query_depth -= 1;
        (Node { role: Role::Query, parts: vec![Part::Node(node)] }, outputs)
    }

    /// A query in an expression.
    pub fn subquery(&mut self, wanted: &[ValueType]) -> Node {
        if self.chance(1, 8) && wanted.iter().all(|of| of.has_order()) {
            let rows = 1 + self.below(3);
            return self.first_rows(wanted, rows).0;
        }
        self.query(Some(wanted)).0
    }

    /// A query of any columns, for `EXISTS`.
    pub fn any_subquery(&mut self) -> Node {
        if self.chance(1, 2) {
            self.query_depth += 1;
            let from = self.joined_tables();
            let condition = self.optional_condition();
            self.scopes.pop();
            self.query_depth -= 1;
            return Node::fill(Role::Query, "SELECT 1{}{}", [from, condition]);
        }
        self.query(None).0
    }

    /// A query sorted by all of its columns, with a limit: its rows are determined.
    pub fn first_rows(&mut self, types: &[ValueType], rows: usize) -> (Node, Vec<Output>) {
        if !self.allows(Feature::OrderOfRows) {
            return self.query(Some(types));
        }
        let can_be_distinct = self.allows(Feature::DistinctWithLimit);
        let ending = if can_be_distinct { Ending::Open } else { Ending::Plain };
        let (query, outputs) = self.query_that(Some(types), ending);
        let mut keys = Vec::new();
        for at in 1..=outputs.len() {
            keys.push(format!("{at}{}", self.one_of(&DIRECTIONS)));
        }
        let offset = if self.chance(1, 5) { " OFFSET 1" } else { "" };
        let limit = Node::optional(&format!(" ORDER BY {} LIMIT {rows}{offset}", keys.join(", ")), []);
        (Node::fill(Role::Query, "{}{}", [query, limit]), outputs)
    }

    /// Queries of the same types, united or subtracted.
    fn set_operation(&mut self, wanted: Option<&[ValueType]>) -> (Node, Vec<Output>) {
        let types: Vec<ValueType> = match wanted {
            Some(types) => types.to_vec(),
            None => (0..1 + self.below(3)).map(|_| self.any_type()).collect(),
        };
        let group = self.group();
        let mut outputs = Vec::new();
        let mut node = Node::nothing();
        let in_parentheses = self.allows(Feature::UnionInParentheses) && self.chance(1, 2);
        let ending = match (self.allows(Feature::DistinctInUnion), in_parentheses) {
            (false, _) => Ending::Plain,
            (true, true) => Ending::Any,
            (true, false) => Ending::Open,
        };
        let arms = if in_parentheses { 2 + self.below(2) } else { 2 };
        for at in 0..arms {
            let arm = self.core(Some(&types), group, false, ending);
            let arm_node = Node { role: Role::Query, parts: vec![Part::Node(arm.node)] };
            if at == 0 {
                (node, outputs) = (arm_node, arm.outputs);
                continue;
            }
            let is_all = !types.iter().all(|of| of.has_equality());
            let word = match is_all {
                true => "UNION ALL",
                false if !self.allows(Feature::DistinctSetOperation) => "UNION ALL",
                false => self.one_of(&[
                    "UNION ALL",
                    "UNION ALL",
                    "UNION",
                    "INTERSECT",
                    "EXCEPT",
                    "INTERSECT ALL",
                    "EXCEPT ALL",
                ]),
            };
            // What is in parentheses is not bound to the wrong neighbour.
            let template = if in_parentheses { "({}) {} ({})" } else { "{} {} {}" };
            node = Node::fill(Role::Query, template, [node, Node::word(word, "UNION ALL"), arm_node]);
        }
        (node, outputs)
    }

    /// One `SELECT`.
    fn core(&mut self, wanted: Option<&[ValueType]>, group: u32, is_outermost: bool, ending: Ending) -> Core {
        let from = match wanted.is_some() && self.chance(1, 12) {
            true => {
                self.scopes.push(Scope { total: Some(Vec::new()), rows: 1, ..Scope::default() });
                Node::nothing()
            }
            false => self.joined_tables(),
        };
        let condition = self.optional_condition();
        let has_from = !self.scope().sources.is_empty();
        let grouping = match self.below(4) {
            0 if has_from && self.budget > 3 => {
                let is_within = !is_outermost && !self.allows(Feature::GroupsWithin);
                self.group_by(is_within)
            }
            _ => Node::nothing(),
        };
        let is_grouped = self.scope().ungrouped.is_some();
        let no_queries = self.scope().has_sets && !self.allows(Feature::QueryInGroupingQuery);
        let were_without = self.is_without_queries;
        self.is_without_queries |= no_queries;
        let types: Vec<ValueType> = match wanted {
            Some(types) => types.to_vec(),
            None => (0..1 + self.below(4)).map(|_| self.any_type()).collect(),
        };
        let can_be_distinct = types.iter().all(|of| of.has_equality());
        let can_be_distinct = can_be_distinct && ending != Ending::Plain;
        let distinct = if self.chance(1, 8) && can_be_distinct { "DISTINCT " } else { "" };
        if wanted.is_none() && !is_grouped && group == ALONE && self.chance(1, 8) && self.can_show_all() {
            return self.all_columns(from, condition, is_outermost);
        }
        let (mut items, mut outputs) = (Vec::new(), Vec::new());
        for of in &types {
            let value = if self.chance(1, 8) && has_from && self.allows(Feature::Window) {
                self.window_call(*of)
            } else if is_outermost && distinct.is_empty() && self.chance(1, 10) {
                self.inexact(*of)
            } else if let Some(column) = self.column_here(*of)
                && self.chance(1, 3)
            {
                column
            } else {
                self.expression(*of)
            };
            let name = self.name("c");
            // Without a name the databases make one up.
            let is_named = !is_outermost || !self.allows(Feature::NoName) || self.chance(3, 4);
            items.push(match is_named {
                true => Node::plain(&format!("{{}} AS {name}"), [value]),
                false => value,
            });
            outputs.push(Output { name: if is_named { name } else { String::new() }, of: *of });
        }
        let total = self.window_total();
        if distinct.is_empty()
            && !is_grouped
            && group == ALONE
            && ending == Ending::Any
            && self.allows(Feature::DistinctOn)
            && self.chance(1, 10)
            && let Some(total) = total
            && let Some(key) = self.scope().leaves.iter().find(|leaf| self.sorts_windows(leaf.of)).cloned()
        {
            // Which row of several is shown is determined by sorting by all that tells them apart.
            let key = Node::text(key.node.sql());
            let sorted = std::iter::once(key.sql()).chain(total).collect::<Vec<String>>().join(", ");
            self.scopes.pop();
            let parts = [key, Node::list_of(", ", 1, group, items), from, condition, Node::text(sorted)];
            let node = Node::plain("SELECT DISTINCT ON ({}) {}{}{} ORDER BY {}", parts);
            return Core { node, outputs, hidden: Vec::new(), is_distinct: true, is_sorted: true };
        }
        let mut hidden = Vec::new();
        if is_outermost && distinct.is_empty() {
            for _ in 0..2 {
                let of = self.type_with(ValueType::has_order);
                // A constant would be the position of a column, or be refused.
                if let Some(column) = self.column_here(of) {
                    let other = self.expression(of);
                    hidden.push(Node::expression(of, "coalesce({}, {})", [column, other]));
                }
            }
        }
        self.scopes.pop();
        self.is_without_queries = were_without;
        let parts = [Node::text(distinct), Node::list_of(", ", 1, group, items), from, condition, grouping];
        let node = Node::plain("SELECT {}{}{}{}{}", parts);
        Core { node, outputs, hidden, is_distinct: !distinct.is_empty(), is_sorted: false }
    }

    /// `SELECT *` or `SELECT t.*`.
    fn all_columns(&mut self, from: Node, condition: Node, is_outermost: bool) -> Core {
        let sources = self.scope().sources.clone();
        let source = self.one_of(&sources);
        let is_one = sources.len() == 1;
        // Within another query names have to differ.
        let star = match is_one || (is_outermost && self.chance(1, 2)) {
            true => "*".to_string(),
            false => format!("{source}.*"),
        };
        let shown = self.scope().leaves.iter().filter(|leaf| !leaf.is_local);
        let prefix = format!("{source}.");
        let outputs = shown
            .filter_map(|leaf| {
                let text = leaf.node.sql();
                let name = if star == "*" {
                    text.split('.').next_back()?.to_string()
                } else {
                    text.strip_prefix(&prefix)?.to_string()
                };
                Some(Output { name, of: leaf.of })
            })
            .collect();
        self.scopes.pop();
        let node = Node::plain(&format!("SELECT {star}{{}}{{}}"), [from, condition]);
        Core { node, outputs, hidden: Vec::new(), is_distinct: false, is_sorted: false }
    }

    fn inexact(&mut self, of: ValueType) -> Node {
        let fitting: Vec<_> = INEXACT.iter().filter(|(_, result, _)| *result == of).collect();
        if fitting.is_empty() {
            return self.expression(of);
        }
        let function = *self.one_of(&fitting);
        self.call(&function)
    }

    /// ` GROUP BY ... HAVING ...`; from then on the scope has groups. Without keys or with several sets of them only if
    /// it may.
    fn group_by(&mut self, with_keys_only: bool) -> Node {
        let base = self.scope().clone();
        let choice = if with_keys_only { 5 } else { self.below(6) };
        let only_columns = !self.allows(Feature::ExpressionInKey);
        let mut keys: Vec<Leaf> = Vec::new();
        for _ in 0..self.below(4) {
            let of = self.type_with(ValueType::has_equality);
            let node = match only_columns || self.chance(2, 3) {
                true => self.column_here(of),
                // A value alone would be a position.
                false => {
                    // A constant would be the position of a column, or be refused.
                    Some(self.expression(of)).filter(has_column)
                }
            };
            let Some(node) = node else { continue };
            // A column that `USING` has merged has a name with its table too.
            let name = |node: &Node| node.sql().split('.').next_back().unwrap_or_default().to_string();
            let is_twice = keys.iter().any(|key| name(&key.node) == name(&node));
            if !is_twice || self.allows(Feature::KeyTwice) {
                // Within subqueries, only columns are known to be grouped.
                let is_local = node.children().next().is_some();
                keys.push(Leaf { node: Node::raw(of, node.sql()), of, is_local });
            }
        }
        if keys.is_empty() && with_keys_only {
            return Node::nothing();
        }
        let list = || keys.iter().map(|key| key.node.clone()).collect::<Vec<Node>>();
        let mut sets = true;
        let clause = match (keys.len(), choice) {
            (0, _) => {
                sets = false;
                Node::nothing()
            }
            (_, 0) => Node::optional(" GROUP BY ROLLUP ({})", [Node::list(list())]),
            (_, 1) => Node::optional(" GROUP BY CUBE ({})", [Node::list(list())]),
            (count, 2) => {
                let mut of: Vec<Node> = Vec::new();
                for at in 0..1 + self.below(3) {
                    let members: Vec<Node> = list().into_iter().skip(at % count).take(1 + at % 2).collect();
                    of.push(Node::plain("({})", [Node::list_of(", ", 0, ALONE, members)]));
                }
                // Every key has to be in one of them.
                of.push(Node::plain("({})", [Node::list_of(", ", 0, ALONE, list())]));
                Node::optional(" GROUP BY GROUPING SETS ({})", [Node::list(of)])
            }
            _ => {
                sets = false;
                Node::optional(" GROUP BY {}", [Node::list(list())])
            }
        };
        let total = keys.iter().all(|key| key.of.has_order()).then(|| {
            let mut total: Vec<String> = keys.iter().map(|key| key.node.sql()).collect();
            if sets {
                total.push(format!("grouping({})", total.join(", ")));
            }
            total
        });
        let mut leaves = keys.clone();
        if sets {
            let arguments: Vec<String> = keys.iter().map(|key| key.node.sql()).collect();
            let mut grouping =
                Generator::leaf_of(format!("grouping({})", arguments.join(", ")), ValueType::Int);
            grouping.is_local = !self.allows(Feature::OuterGrouping);
            leaves.push(grouping);
        }
        let scope = self.scopes.last_mut().expect("the query's own");
        *scope = Scope {
            leaves,
            sources: base.sources.clone(),
            total,
            rows: base.rows,
            has_sets: sets,
            ungrouped: Some(Box::new(base)),
        };
        let can_have = !sets || self.allows(Feature::GroupsWithin);
        let having = match can_have && self.chance(1, 4) {
            true => {
                let condition = match self.allows(Feature::QueryInHaving) || (!keys.is_empty() && !sets) {
                    true => self.expression(ValueType::Boolean),
                    false => self.without_queries(|generator| generator.expression(ValueType::Boolean)),
                };
                Node::optional(" HAVING {}", [condition])
            }
            false => Node::nothing(),
        };
        Node::plain("{}{}", [clause, having])
    }

    /// A column of the innermost query.
    fn column_here(&mut self, of: ValueType) -> Option<Node> {
        let fitting: Vec<Node> =
            self.scope().leaves.iter().filter(|leaf| leaf.of == of).map(|leaf| leaf.node.clone()).collect();
        (!fitting.is_empty()).then(|| self.one_of(&fitting))
    }

    /// A whole `SELECT` statement.
    pub fn select_statement(&mut self) -> Node {
        let relations = self.relations.len();
        let with = match self.chance(1, 6) {
            true => self.with_clause(),
            false => Node::nothing(),
        };
        let (mut can_have_limit, mut can_be_sorted) = (true, true);
        let (body, outputs, hidden) = match self.budget > 6 && self.chance(1, 7) {
            true => {
                let (node, outputs) = self.set_operation(None);
                can_be_sorted = self.allows(Feature::OrderOfRows);
                (node, outputs, Vec::new())
            }
            false => {
                let core = self.core(None, ALONE, true, Ending::Any);
                if core.is_sorted {
                    self.relations.truncate(relations);
                    return Node::fill(Role::Query, "{}{}", [with, core.node]);
                }
                can_have_limit = !core.is_distinct || self.allows(Feature::DistinctWithLimit);
                let hidden = if core.is_distinct { Vec::new() } else { core.hidden };
                (core.node, core.outputs, hidden)
            }
        };
        let order = if can_be_sorted { self.order_by(&outputs, hidden) } else { Node::nothing() };
        let limit = match self.below(6) {
            _ if !can_have_limit => String::new(),
            0 if self.chance(1, 4) => format!(" FETCH FIRST {} ROWS ONLY", 1 + self.below(4)),
            0 => format!(" LIMIT {}", 1 + self.below(4)),
            1 => format!(" LIMIT {} OFFSET {}", 1 + self.below(4), self.below(4)),
            2 if self.chance(1, 3) => format!(" OFFSET {}", self.below(3)),
            _ => String::new(),
        };
        let limit = match limit.is_empty() {
            true => Node::nothing(),
            false => Node::fill(Role::Limit, &limit, []),
        };
        self.relations.truncate(relations);
        Node::fill(Role::Query, "{}{}{}{}", [with, body, order, limit])
    }

    fn order_by(&mut self, outputs: &[Output], hidden: Vec<Node>) -> Node {
        let mut keys = Vec::new();
        let mut hidden = hidden.into_iter();
        let count = if self.chance(1, 3) { 0 } else { 1 + self.below(3) };
        for _ in 0..count {
            let at = self.below(outputs.len().max(1));
            let Some(output) = outputs.get(at).filter(|output| output.of.has_order()) else { continue };
            let direction = Node::optional(self.one_of(&DIRECTIONS), []);
            let is_unique = outputs.iter().filter(|other| other.name == output.name).count() == 1;
            let not_shown = if self.chance(1, 6) { hidden.next() } else { None };
            let (node, key) = match not_shown {
                Some(expression) => (expression, OrderKey::Hidden),
                None if is_unique && !output.name.is_empty() && self.chance(1, 2) => {
                    (Node::text(output.name.clone()), OrderKey::Name(output.name.clone()))
                }
                None => (Node::text((at + 1).to_string()), OrderKey::Position(at + 1)),
            };
            keys.push(Part::Node(Node::fill(Role::OrderKey(key), "{}{}", [node, direction])));
        }
        match keys.is_empty() {
            true => Node::nothing(),
            false => Node { role: Role::OrderBy, parts: keys },
        }
    }

    /// `WITH ...`, some of it recursive; its queries can be read from then on.
    pub fn with_clause(&mut self) -> Node {
        let mut parts = Vec::new();
        let is_recursive = self.chance(1, 3);
        for at in 0..1 + self.below(2) {
            let name = self.name("w");
            let (node, outputs) = match is_recursive && at == 0 {
                true => self.recursive(&name),
                false => {
                    let (query, outputs) = self.query(None);
                    let how = self.one_of(&["", "", "", "MATERIALIZED ", "NOT MATERIALIZED "]);
                    (Node::plain(&format!("{name} AS {how}({{}})"), [query]), outputs)
                }
            };
            parts.push(node);
            let columns =
                outputs.into_iter().map(|output| super::schema::Column::new(output.name, output.of));
            let columns = columns.collect();
            self.relations.push(super::generator::Relation { name, columns, key: Vec::new(), rows: 6 });
        }
        let template = if is_recursive { "WITH RECURSIVE {} " } else { "WITH {} " };
        Node::optional(template, [Node::list_of(", ", 1, ALONE, parts)])
    }

    /// A query that reads itself a few times.
    fn recursive(&mut self, name: &str) -> (Node, Vec<Output>) {
        let (counter, value) = (self.name("n"), self.name("c"));
        // The same type to the last digit.
        let of = self.one_of(&[
            ValueType::Int,
            ValueType::BigInt,
            ValueType::Text,
            ValueType::Boolean,
            ValueType::Date,
        ]);
        let (start, _) = self.query(Some(&[of]));
        let start_name = self.name("s");
        let word = self.one_of(&["UNION ALL", "UNION"]);
        self.scopes.push(Scope {
            leaves: vec![
                Generator::leaf_of(format!("{name}.{counter}"), ValueType::Int),
                Generator::leaf_of(format!("{name}.{value}"), of),
            ],
            sources: vec![name.to_string()],
            total: None,
            ungrouped: None,
            has_sets: false,
            rows: 6,
        });
        let next = self.expression(of);
        self.scopes.pop();
        let template = format!(
            "{name}({counter}, {value}) AS (SELECT 1, {start_name}.* FROM ({{}}) AS {start_name} {word} \
             SELECT {name}.{counter} + 1, {{}} FROM {name} WHERE {name}.{counter} < 3)"
        );
        let outputs = vec![Output { name: counter, of: ValueType::Int }, Output { name: value, of }];
        (Node::plain(&template, [start, next]), outputs)
    }
}
