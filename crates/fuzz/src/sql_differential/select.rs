//! Random queries: what is selected, grouped, united, sorted.

use super::function_list::INEXACT;
use super::generator::{Generator, Leaf, Output, Scope};
use super::tree::{ALONE, Node, OrderKey, Part, Role};
use super::value_type::ValueType;

/// A `SELECT` without what comes behind it.
struct Core {
    node: Node,
    outputs: Vec<Output>,
    /// Whether it may be sorted by what it does not show, and by which expressions.
    hidden: Vec<Node>,
    /// Whether it ends with a sorting of its own, so that no other can come behind.
    is_sorted: bool,
}

/// What may come at the end of a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Any,
    /// Nothing: a sorting is added.
    Open,
}

const DIRECTIONS: [&str; 6] = ["", "", " DESC", " ASC", " NULLS FIRST", " DESC NULLS LAST"];

/// What a query is grouped by.
#[derive(Clone)]
struct Key {
    sql: String,
    /// What the query shows of it, if it may.
    leaf: Option<Leaf>,
}

impl Key {
    fn column(node: Node, of: ValueType) -> Key {
        Key { sql: node.sql(), leaf: Some(Leaf { node, of, is_local: false }) }
    }
}

/// `(a IS NULL)`.
fn is_null(column: &str) -> String {
    format!("({column} IS NULL)")
}

/// `a, b`, of which so many stay while a statement is shrunk.
fn list_of_keys(least: usize, keys: &[Key]) -> Node {
    let keys = keys.iter().map(|key| Node::text(key.sql.clone())).collect();
    Node::list_of(", ", least, ALONE, keys)
}

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
        let (node, outputs) = match self.budget > 6 && self.chance(1, 5) {
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
        // PostgreSQL takes keys of sets that a condition makes equal to a constant for sorted.
        let (query, outputs) = loop {
            let found = self.query_that(Some(types), Ending::Open);
            if !found.0.has_sets() {
                break found;
            }
        };
        let mut keys = Vec::new();
        for at in 1..=outputs.len() {
            keys.push(format!("{at}{}", self.one_of(&DIRECTIONS)));
        }
        let window = match self.below(8) {
            0 => format!("LIMIT {rows} OFFSET 1"),
            // One row alone may be wanted.
            1 if rows > 1 => "OFFSET 1".to_string(),
            _ => format!("LIMIT {rows}"),
        };
        let limit = Node::optional(&format!(" ORDER BY {} {window}", keys.join(", ")), []);
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
        let in_parentheses = self.chance(1, 2);
        let ending = if in_parentheses { Ending::Any } else { Ending::Open };
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
        if self.budget > 3 && self.can_have_query() && self.chance(1, 12) {
            return self.totals(wanted, group);
        }
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
            0 if has_from && self.budget > 3 => self.group_by(),
            _ => Node::nothing(),
        };
        let is_grouped = self.scope().ungrouped.is_some();
        let types: Vec<ValueType> = match wanted {
            Some(types) => types.to_vec(),
            None => (0..1 + self.below(4)).map(|_| self.any_type()).collect(),
        };
        let can_be_distinct = types.iter().all(|of| of.has_equality());
        let has_sets = self.scope().has_sets;
        let distinct = if self.chance(1, 8) && can_be_distinct && !has_sets { "DISTINCT " } else { "" };
        if wanted.is_none() && !is_grouped && has_from && group == ALONE && self.chance(1, 8) {
            return self.all_columns(from, condition, is_outermost);
        }
        // PostgreSQL takes keys of sets that a condition makes equal to a constant for sorted.
        let sorts_as_written = !has_sets || condition.sql().is_empty() && !from.sql().contains(" ON ");
        let (mut items, mut outputs) = (Vec::new(), Vec::new());
        for of in &types {
            // Rows that are the same in all columns can stand in either order in each of several windows.
            let has_window = items.iter().any(|item: &Node| item.sql().contains(" OVER ("));
            let value = if self.chance(1, 8) && has_from && !has_window && sorts_as_written {
                self.window_call(*of)
            } else if is_outermost && distinct.is_empty() && self.chance(1, 10) {
                self.inexact(*of)
            } else if !is_outermost && self.chance(1, 8) {
                // What is the same in each row is claimed to be so.
                self.literal(*of)
            } else if let Some(column) = self.column_here(*of)
                && self.chance(1, 3)
            {
                column
            } else {
                self.expression(*of)
            };
            let name = self.name("c");
            // Without a name the databases make one up.
            let is_named = !is_outermost || self.chance(3, 4);
            items.push(match is_named {
                true => Node::plain(&format!("{{}} AS {name}"), [value]),
                false => value,
            });
            outputs.push(Output { name: if is_named { name } else { String::new() }, of: *of });
        }
        let total = self.window_total();
        let has_windows = items.iter().any(|item| item.sql().contains(" OVER ("));
        if distinct.is_empty()
            && !has_windows
            && !is_grouped
            && group == ALONE
            && ending == Ending::Any
            && self.chance(1, 10)
            && let Some(total) = total
            && let Some(key) = self.scope().leaves.iter().find(|leaf| leaf.of.has_order()).cloned()
        {
            // Which row of several is shown is determined by sorting by all that tells them apart.
            let key = Node::text(key.node.sql());
            let sorted = std::iter::once(key.sql()).chain(total).collect::<Vec<String>>().join(", ");
            self.scopes.pop();
            let parts = [key, Node::list_of(", ", 1, group, items), from, condition, Node::text(sorted)];
            let node = Node::plain("SELECT DISTINCT ON ({}) {}{}{} ORDER BY {}", parts);
            return Core { node, outputs, hidden: Vec::new(), is_sorted: true };
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
        let parts = [Node::text(distinct), Node::list_of(", ", 1, group, items), from, condition, grouping];
        let node = Node::plain("SELECT {}{}{}{}{}", parts);
        Core { node, outputs, hidden, is_sorted: false }
    }

    /// Aggregates of all rows: one row, also of none.
    fn totals(&mut self, wanted: Option<&[ValueType]>, group: u32) -> Core {
        let from = self.one_source();
        let condition = self.optional_condition();
        let types: Vec<ValueType> = match wanted {
            Some(types) => types.to_vec(),
            None => (0..1 + self.below(2)).map(|_| self.any_type()).collect(),
        };
        self.group_all();
        let (mut items, mut outputs) = (Vec::new(), Vec::new());
        for of in types {
            let value = self.aggregate(of).unwrap_or_else(|| self.literal(of));
            let name = self.name("c");
            items.push(Node::plain(&format!("{{}} AS {name}"), [value]));
            outputs.push(Output { name, of });
        }
        let having = self.optional_having();
        self.scopes.pop();
        let parts = [Node::list_of(", ", 1, group, items), from, condition, having];
        let node = Node::plain("SELECT {}{}{}{}", parts);
        Core { node, outputs, hidden: Vec::new(), is_sorted: false }
    }

    /// From here on the query has one group, of all of its rows.
    pub fn group_all(&mut self) {
        let base = self.scopes.last().cloned().unwrap_or_default();
        let scope = self.scopes.last_mut().expect("the query's own");
        scope.leaves.clear();
        scope.total = None;
        scope.ungrouped = Some(Box::new(base));
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
        Core { node, outputs, hidden: Vec::new(), is_sorted: false }
    }

    fn inexact(&mut self, of: ValueType) -> Node {
        let fitting: Vec<_> = INEXACT.iter().filter(|(_, result, _)| *result == of).collect();
        if fitting.is_empty() {
            return self.expression(of);
        }
        let function = *self.one_of(&fitting);
        self.call(&function)
    }

    /// ` GROUP BY ... HAVING ...`; from then on the scope has groups.
    fn group_by(&mut self) -> Node {
        let base = self.scope().clone();
        let has_sets = self.chance(1, 2);
        let elements = match has_sets {
            true => self.elements_of_sets(),
            false => (0..self.below(4)).filter_map(|_| self.group_key()).map(|key| vec![key]).collect(),
        };
        let keys = elements.concat();
        let clause = match has_sets {
            _ if keys.is_empty() => Node::nothing(),
            true => self.sets_of_groups(&elements),
            false => Node::optional(" GROUP BY {}", [list_of_keys(1, &keys)]),
        };
        let mut leaves: Vec<Leaf> = keys.iter().filter_map(|key| key.leaf.clone()).collect();
        if has_sets && !leaves.is_empty() {
            let shown = keys.iter().filter(|key| key.leaf.is_some());
            let arguments: Vec<String> = shown.map(|key| key.sql.clone()).collect();
            let grouping = format!("grouping({})", arguments.join(", "));
            // Within subqueries, it is of columns only.
            let is_local = leaves.iter().any(|leaf| leaf.is_local);
            leaves.push(Leaf { is_local, ..Generator::leaf_of(grouping, ValueType::Int) });
        }
        let is_total = keys.iter().all(|key| key.leaf.as_ref().is_some_and(|leaf| leaf.of.has_order()));
        let total = is_total.then(|| leaves.iter().map(|leaf| leaf.node.sql()).collect());
        *self.scopes.last_mut().expect("the query's own") = Scope {
            leaves,
            sources: base.sources.clone(),
            total,
            rows: base.rows,
            ungrouped: Some(Box::new(base)),
            has_sets,
        };
        let having = self.optional_having();
        Node::plain("{}{}", [clause, having])
    }

    /// ` HAVING ...`, at times.
    pub fn optional_having(&mut self) -> Node {
        let condition = match self.below(12) {
            0 => self.known_beforehand(),
            1 | 2 => self.expression(ValueType::Boolean),
            _ => return Node::nothing(),
        };
        Node::optional(" HAVING {}", [condition])
    }

    /// A key of `GROUP BY` without sets.
    fn group_key(&mut self) -> Option<Key> {
        let of = self.type_with(ValueType::has_equality);
        if self.chance(2, 3) {
            return self.column_here(of).map(|node| Key::column(node, of));
        }
        let node = self.expression(of);
        let sql = node.sql();
        // A longer chain around it does not have it as a part (`known.rs`).
        let is_chain = of == ValueType::Boolean && (sql.contains(" AND ") || sql.contains(" OR "));
        // A constant would be the position of a column, or be refused.
        if is_chain || !has_column(&node) {
            return None;
        }
        // Within subqueries, only columns are known to be grouped.
        let is_local = node.children().next().is_some();
        Some(Key { leaf: Some(Leaf { node: Node::raw(of, sql.clone()), of, is_local }), sql })
    }

    /// Elements of `ROLLUP` and its like.
    ///
    /// Where PostgreSQL 15 does not find a key again, it shows its value instead of null. So no key is a constant,
    /// which it computes beforehand (`known.rs`); a subquery is not shown, as it plans each by itself; and `a IS
    /// NULL`, whose negation is `a IS NOT NULL` to it, is shown as a number, and not beside `a`.
    fn elements_of_sets(&mut self) -> Vec<Vec<Key>> {
        let mut elements: Vec<Vec<Key>> = (0..self.below(4)).filter_map(|_| self.element_of_sets()).collect();
        let beside: Vec<String> = elements.iter().flatten().map(|key| is_null(&key.sql)).collect();
        elements.retain(|keys| keys.iter().all(|key| !beside.contains(&key.sql)));
        elements
    }

    /// A key, or two columns as one.
    fn element_of_sets(&mut self) -> Option<Vec<Key>> {
        let of = self.type_with(ValueType::has_equality);
        let column = self.column_here(of)?;
        Some(match self.below(12) {
            0 | 1 => {
                let other = self.type_with(ValueType::has_equality);
                let second = self.column_here(other)?;
                vec![Key::column(column, of), Key::column(second, other)]
            }
            2 | 3 => {
                let sql = is_null(&column.sql());
                let number = Generator::leaf_of(format!("CAST({sql} AS int)"), ValueType::Int);
                vec![Key { sql, leaf: Some(Leaf { is_local: true, ..number }) }]
            }
            // A name without a table could be that of a column of the subquery's own.
            4 if has_column(&column) => vec![Key { sql: self.count_of_same(&column, of)?, leaf: None }],
            _ => vec![Key::column(column, of)],
        })
    }

    /// A subquery that counts the rows of something that have the value of a column.
    fn count_of_same(&mut self, column: &Node, of: ValueType) -> Option<String> {
        let mut fitting = Vec::new();
        for relation in &self.relations {
            let same = relation.columns.iter().filter(|other| other.of == of);
            fitting.extend(same.map(|other| (relation.name.clone(), other.name.clone())));
        }
        if fitting.is_empty() {
            return None;
        }
        let (relation, other) = self.one_of(&fitting);
        let name = self.name("r");
        Some(format!("(SELECT count(*) FROM {relation} AS {name} WHERE {name}.{other} = {})", column.sql()))
    }

    /// ` GROUP BY ROLLUP (...)` and its like.
    fn sets_of_groups(&mut self, elements: &[Vec<Key>]) -> Node {
        let template = match self.below(3) {
            0 => " GROUP BY ROLLUP ({})",
            1 => " GROUP BY CUBE ({})",
            _ => return self.grouping_sets(&elements.concat()),
        };
        let element = |keys: &Vec<Key>| match keys.len() {
            1 => list_of_keys(1, keys),
            _ => Node::plain("({})", [list_of_keys(1, keys)]),
        };
        Node::optional(template, [Node::list(elements.iter().map(element).collect())])
    }

    fn grouping_sets(&mut self, keys: &[Key]) -> Node {
        let set = |keys: &[Key]| Node::plain("({})", [list_of_keys(0, keys)]);
        let mut sets = Vec::new();
        for at in 0..1 + self.below(3) {
            let first = at % keys.len();
            let end = keys.len().min(first + 1 + at % 2);
            sets.push(set(&keys[first..end]));
        }
        // Every key has to be in one of them.
        sets.push(set(keys));
        Node::optional(" GROUP BY GROUPING SETS ({})", [Node::list(sets)])
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
        let (body, outputs, hidden) = match self.budget > 6 && self.chance(1, 7) {
            true => {
                let (node, outputs) = self.set_operation(None);
                (node, outputs, Vec::new())
            }
            false => {
                let core = self.core(None, ALONE, true, Ending::Any);
                if core.is_sorted {
                    self.relations.truncate(relations);
                    return Node::fill(Role::Query, "{}{}", [with, core.node]);
                }
                (core.node, core.outputs, core.hidden)
            }
        };
        let order = self.order_by(&outputs, hidden);
        let limit = match self.below(6) {
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
            has_sets: false,
            ungrouped: None,
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
