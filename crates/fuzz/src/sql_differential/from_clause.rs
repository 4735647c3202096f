//! Random `FROM` clauses: tables and what else gives rows, joined in every way.

use super::generator::{Generator, Leaf, Relation, Scope};
use super::literal::Literal;
use super::tree::{ALONE, Node, Role};
use super::value_type::ValueType;

/// Rows of all tables of a `FROM`, multiplied, at most.
const ROWS: usize = 2_000;

/// Something in `FROM`.
#[derive(Clone)]
struct Source {
    node: Node,
    /// One table, or those of a join in parentheses.
    tables: Vec<Named>,
    rows: usize,
}

/// A table under the name that it has in the query.
#[derive(Clone)]
struct Named {
    name: String,
    columns: Names,
    /// Columns that tell its rows apart, if there are some.
    total: Option<Vec<String>>,
}

/// Names of columns without the name of a table before them.
type Names = Vec<(String, ValueType)>;

/// A `FROM` while it grows.
struct Joining {
    joins: Vec<Node>,
    /// The names of what is joined since the last comma.
    names: Names,
    /// Those before it.
    names_before: Names,
    /// The leaf with which the first table since the last comma begins.
    begin: usize,
    /// Columns that are one of several tables.
    merged: Names,
}

impl Source {
    fn one(node: Node, name: String, columns: Names, rows: usize) -> Source {
        let total = total(&columns);
        Source { node, tables: vec![Named { name, columns, total }], rows }
    }

    fn names(&self) -> Names {
        self.tables.iter().flat_map(|table| table.columns.clone()).collect()
    }
}

fn count(names: &Names, name: &str) -> usize {
    names.iter().filter(|(other, _)| other == name).count()
}

fn type_of(names: &Names, name: &str) -> Option<ValueType> {
    names.iter().find(|(other, _)| other == name).map(|(_, of)| *of)
}

/// Whether one of two is `char(n)`: the column that they are merged to would be `text` (`known.rs`).
fn is_padded_once(one: ValueType, other: Option<ValueType>) -> bool {
    other.is_some_and(|other| (one == ValueType::Char) != (other == ValueType::Char))
}

impl Joining {
    /// Columns that both sides have once.
    fn common(&self, names: &Names) -> Names {
        let can = |(name, of): &&(String, ValueType)| {
            of.has_equality()
                && count(&self.names, name) == 1
                && count(names, name) == 1
                && !is_padded_once(*of, type_of(names, name))
        };
        self.names.iter().filter(can).cloned().collect()
    }

    /// Whether `NATURAL` would not know which column is meant.
    fn is_ambiguous(&self, names: &Names) -> bool {
        names.iter().any(|(name, of)| match count(&self.names, name) {
            0 => false,
            1 => {
                let is_unlike = is_padded_once(*of, type_of(&self.names, name));
                !of.has_equality() || count(names, name) > 1 || is_unlike
            }
            _ => true,
        })
    }

    /// A comma: what comes behind is joined with itself first.
    fn comma(&mut self, leaves: usize) {
        self.names_before.append(&mut self.names);
        self.begin = leaves;
    }
}

impl Generator<'_> {
    /// ` FROM ...`, with its scope, which the caller ends. The scope is there even if there is no `FROM`.
    pub fn joined_tables(&mut self) -> Node {
        self.scopes.push(Scope { total: Some(Vec::new()), rows: 1, ..Scope::default() });
        let Some(first) = self.source(false) else { return Node::nothing() };
        self.enter(&first);
        let (names, joins, merged) = (first.names(), Vec::new(), Vec::new());
        let mut joining = Joining { joins, names, names_before: Vec::new(), begin: 0, merged };
        while joining.joins.len() < 3 && self.budget > 0 && self.chance(2, 5) {
            let is_lateral = self.chance(1, 8) && self.can_have_query();
            let Some(source) = self.source(is_lateral) else { break };
            if self.scope().rows * source.rows.max(1) > ROWS {
                break;
            }
            if is_lateral {
                self.join_lateral(&mut joining, &source);
                continue;
            }
            let common = joining.common(&source.names());
            match self.below(10) {
                0 | 1 => self.join_each(&mut joining, &source),
                2 | 3 if !common.is_empty() => self.join_by_name(&mut joining, &source, &common),
                _ => self.join_on(&mut joining, &source),
            }
        }
        let Joining { joins, mut names, mut names_before, merged, .. } = joining;
        names_before.append(&mut names);
        for (name, of) in merged {
            if count(&names_before, &name) == 1 {
                let leaf = Leaf { node: Node::raw(of, name), of, is_local: true };
                self.scopes.last_mut().expect("a scope").leaves.push(leaf);
            }
        }
        Node::plain(" FROM {}{}", [first.node, Node::list_of("", 0, ALONE, joins)])
    }

    /// ` FROM ...` of one query or table, with its scope.
    pub fn one_source(&mut self) -> Node {
        self.scopes.push(Scope { total: Some(Vec::new()), rows: 1, ..Scope::default() });
        let source = match self.chance(1, 2) {
            true => Some(self.derived_table(false)),
            false => self.source(false),
        };
        let Some(source) = source else { return Node::nothing() };
        self.enter(&source);
        Node::plain(" FROM {}", [source.node])
    }

    fn join_lateral(&mut self, joining: &mut Joining, source: &Source) {
        let (template, is_comma) = self.one_of(&[
            (", LATERAL {}", true),
            (" CROSS JOIN LATERAL {}", false),
            (" LEFT JOIN LATERAL {} ON true", false),
            (" JOIN LATERAL {} ON true", false),
        ]);
        if is_comma {
            joining.comma(self.scope().leaves.len());
        }
        joining.joins.push(Node::optional(template, [source.node.clone()]));
        joining.names.extend(source.names());
        self.enter(source);
    }

    /// Every row with every row.
    fn join_each(&mut self, joining: &mut Joining, source: &Source) {
        let is_comma = self.chance(1, 2);
        if is_comma {
            joining.comma(self.scope().leaves.len());
        }
        let template = if is_comma { ", {}" } else { " CROSS JOIN {}" };
        joining.joins.push(Node::optional(template, [source.node.clone()]));
        joining.names.extend(source.names());
        self.enter(source);
    }

    /// `NATURAL` or `USING`.
    fn join_by_name(&mut self, joining: &mut Joining, source: &Source, common: &Names) {
        let word = self.join_word();
        let is_natural = self.chance(1, 3) && !joining.is_ambiguous(&source.names());
        let using = if is_natural { common.clone() } else { common[..1 + self.below(common.len())].to_vec() };
        let node = source.node.clone();
        let list = Node::list(using.iter().map(|(name, _)| Node::text(name.clone())).collect());
        joining.joins.push(match is_natural {
            true => Node::optional(" NATURAL {} {}", [word, node]),
            false => Node::optional(" {} {} USING ({})", [word, node, list]),
        });
        joining.names.extend(source.names().into_iter().filter(|(name, _)| count(&using, name) == 0));
        joining.merged.extend(using);
        self.enter(source);
    }

    /// `ON`, which sees what is joined since the last comma.
    fn join_on(&mut self, joining: &mut Joining, source: &Source) {
        let word = self.join_word();
        let is_full = word.sql().starts_with("FULL");
        let scope = self.scopes.last_mut().expect("a scope");
        let before: Vec<Leaf> = scope.leaves.drain(..joining.begin).collect();
        let left = scope.leaves.len();
        joining.names.extend(source.names());
        self.enter(source);
        let condition = self.join_condition(left, is_full);
        self.scopes.last_mut().expect("a scope").leaves.splice(..0, before);
        joining.joins.push(Node::optional(" {} {} ON {}", [word, source.node.clone(), condition]));
    }

    fn join_word(&mut self) -> Node {
        let words = ["JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
        Node::word(self.one_of(&words), "JOIN")
    }

    /// Makes the columns of something in `FROM` visible.
    fn enter(&mut self, source: &Source) {
        let scope = self.scopes.last_mut().expect("a scope");
        scope.rows *= source.rows.max(1);
        for table in &source.tables {
            let qualified = |name: &String| format!("{}.{name}", table.name);
            scope
                .leaves
                .extend(table.columns.iter().map(|(name, of)| Generator::leaf_of(qualified(name), *of)));
            scope.sources.push(table.name.clone());
            match (&mut scope.total, &table.total) {
                (Some(total), Some(key)) => total.extend(key.iter().map(qualified)),
                (total, _) => *total = None,
            }
        }
    }

    /// A join in parentheses.
    fn joined_pair(&mut self) -> Option<Source> {
        let hidden = self.scopes.pop();
        self.scopes.push(Scope { total: Some(Vec::new()), rows: 1, ..Scope::default() });
        let sides = (self.source(false), self.source(false));
        let pair = sides.0.zip(sides.1).map(|(one, other)| {
            self.enter(&one);
            let left = self.scope().leaves.len();
            self.enter(&other);
            let word = self.join_word();
            let condition = self.join_condition(left, word.sql().starts_with("FULL"));
            let node = Node::plain("({} {} {} ON {})", [one.node, word, other.node, condition]);
            let tables = one.tables.into_iter().chain(other.tables).collect();
            Source { node, tables, rows: one.rows.max(1) * other.rows.max(1) }
        });
        self.scopes.pop();
        self.scopes.extend(hidden);
        pair
    }

    /// The condition of a join whose right side begins at a leaf.
    fn join_condition(&mut self, left: usize, is_full: bool) -> Node {
        let leaves = &self.scope().leaves;
        let mut pairs = Vec::new();
        for one in &leaves[..left] {
            for other in &leaves[left..] {
                if one.of == other.of && one.of.has_equality() {
                    pairs.push((one.node.clone(), other.node.clone()));
                }
            }
        }
        if is_full && self.chance(1, 8) {
            return Node::raw(ValueType::Boolean, self.one_of(&["true", "false"]));
        }
        if pairs.is_empty() || (!is_full && self.chance(1, 6)) {
            return match !is_full && self.chance(1, 3) {
                true => self.known_beforehand(),
                false => self.expression(ValueType::Boolean),
            };
        }
        let mut terms = Vec::new();
        for _ in 0..1 + self.below(2) {
            // Columns of one name are joined more often, as keys are.
            let name = |node: &Node| node.sql().split('.').next_back().map(str::to_string);
            let named: Vec<(Node, Node)> =
                pairs.iter().filter(|(one, other)| name(one) == name(other)).cloned().collect();
            let (one, other) = match self.chance(1, 2) && !named.is_empty() {
                true => self.one_of(&named),
                false => self.one_of(&pairs),
            };
            terms.push(Node::expression(ValueType::Boolean, "{} = {}", [one, other]));
        }
        if !is_full && self.chance(1, 5) {
            let term = match self.chance(1, 3) {
                true => self.known_beforehand(),
                false => self.expression(ValueType::Boolean),
            };
            terms.push(term);
        }
        Node::expression(ValueType::Boolean, "({})", [Node::list_of(" AND ", 1, ALONE, terms)])
    }

    /// Something that gives rows; a lateral one sees what is in `FROM` before it.
    fn source(&mut self, is_lateral: bool) -> Option<Source> {
        let choice = if is_lateral { 15 + self.below(5) } else { self.below(20) };
        match choice {
            0 => Some(self.values()),
            1 => Some(self.table_function()),
            2 if self.budget > 4 && self.chance(1, 2) => self.joined_pair(),
            2 | 15.. if self.can_have_query() => Some(self.derived_table(is_lateral)),
            _ => {
                if self.relations.is_empty() {
                    return None;
                }
                let relation = self.one_of(&self.relations.clone());
                Some(self.relation(&relation))
            }
        }
    }

    fn relation(&mut self, relation: &Relation) -> Source {
        let name = self.name("r");
        let columns: Vec<(String, ValueType)> =
            relation.columns.iter().map(|column| (column.name.clone(), column.of)).collect();
        let total = match relation.key.is_empty() {
            false => Some(relation.key.clone()),
            true => total(&columns),
        };
        let node = Node::text(format!("{} AS {name}", relation.name));
        Source { node, tables: vec![Named { name, columns, total }], rows: relation.rows }
    }

    fn derived_table(&mut self, is_lateral: bool) -> Source {
        // What is not lateral does not see its neighbours.
        let hidden = if is_lateral { None } else { self.scopes.pop() };
        let (node, outputs) = match self.below(8) {
            // Few columns, of which one or two determine all.
            0 | 1 => {
                let types: Vec<ValueType> =
                    (0..1 + self.below(2)).map(|_| self.type_with(ValueType::has_order)).collect();
                let (query, outputs) = self.query(Some(&types));
                let name = self.name("r");
                (
                    Node::fill(Role::Query, &format!("SELECT DISTINCT * FROM ({{}}) AS {name}"), [query]),
                    outputs,
                )
            }
            2 | 3 => {
                let types: Vec<ValueType> =
                    (0..1 + self.below(3)).map(|_| self.type_with(ValueType::has_order)).collect();
                let rows = 1 + self.below(3);
                self.first_rows(&types, rows)
            }
            _ => self.query(None),
        };
        self.scopes.extend(hidden);
        let name = self.name("r");
        let columns: Vec<(String, ValueType)> =
            outputs.into_iter().map(|output| (output.name, output.of)).collect();
        let node = Node::plain(&format!("({{}}) AS {name}"), [node]);
        Source::one(node, name, columns, 6)
    }

    fn values(&mut self) -> Source {
        let name = self.name("r");
        let types: Vec<ValueType> = (0..1 + self.below(3)).map(|_| self.any_type()).collect();
        let mut rows = Vec::new();
        let group = self.group();
        for _ in 0..1 + self.below(3) {
            let value = |generator: &mut Self, of: ValueType| {
                let null = generator.chance(1, 6);
                let value = (!null).then(|| generator.one_of(of.values()));
                Node::literal(of, Literal::new(of, value))
            };
            let row = types.iter().map(|of| value(self, *of)).collect();
            rows.push(Node::plain("({})", [Node::list_of(", ", 1, group, row)]));
        }
        let columns: Vec<(String, ValueType)> = types.iter().map(|of| (self.name("v"), *of)).collect();
        let names = columns.iter().map(|(name, _)| Node::text(name.clone())).collect();
        let count = rows.len();
        let node = Node::plain(
            &format!("(VALUES {{}}) AS {name}({{}})"),
            [Node::list(rows), Node::list_of(", ", 1, group, names)],
        );
        Source::one(node, name, columns, count)
    }

    fn table_function(&mut self) -> Source {
        let name = self.name("r");
        let (call, of) = self.one_of(&[
            ("generate_series(1, 3)", ValueType::Int),
            ("generate_series(5, 1, -2)", ValueType::Int),
            ("unnest('{3,1,NULL,1}'::int[])", ValueType::Int),
            ("unnest('{a,b,a}'::text[])", ValueType::Text),
        ]);
        let column = self.name("n");
        let node = Node::text(format!("{call} AS {name}({column})"));
        let columns = vec![(column, of)];
        Source::one(node, name, columns, 4)
    }

    /// ` WHERE ...`, mostly.
    pub fn optional_condition(&mut self) -> Node {
        if self.chance(1, 4) {
            return Node::nothing();
        }
        let condition = match self.chance(1, 3) {
            true => self.key_condition(),
            false => self.expression(ValueType::Boolean),
        };
        Node::optional(" WHERE {}", [condition])
    }

    /// A column that is compared with what is found by a table's key: what it finds in turn may be looked up.
    pub fn asked_by_key(&mut self) -> Option<Node> {
        let keyed: Vec<Relation> =
            self.relations.iter().filter(|relation| !relation.key.is_empty()).cloned().collect();
        let of = self.type_with(ValueType::has_equality);
        let column = self.column(of).filter(|_| !keyed.is_empty())?;
        let relation = self.one_of(&keyed);
        let key = relation.columns.iter().find(|column| column.name == relation.key[0])?.of;
        self.query_depth += 1;
        self.scopes.push(Scope { total: Some(Vec::new()), rows: 1, ..Scope::default() });
        let source = self.relation(&relation);
        self.enter(&source);
        let found = Node::raw(key, format!("{}.{}", source.tables[0].name, relation.key[0]));
        let mut terms = vec![Node::expression(ValueType::Boolean, "{} = {}", [found, self.literal(key)])];
        if self.chance(1, 3) {
            terms.push(self.expression(ValueType::Boolean));
        }
        let given = self.typed(of);
        let can_correlate = !self.is_own_only && self.chance(1, 2);
        self.scopes.pop();
        self.query_depth -= 1;
        let (query, template) = match can_correlate {
            true => {
                let equal = Node::expression(ValueType::Boolean, "{} = {}", [given, column]);
                terms.insert(self.below(2), equal);
                let terms = Node::list_of(" AND ", 1, ALONE, terms);
                let query = Node::fill(Role::Query, "SELECT 1 FROM {} WHERE {}", [source.node, terms]);
                (vec![query], self.one_of(&["EXISTS ({})", "EXISTS ({})", "(NOT EXISTS ({}))"]))
            }
            false => {
                let terms = Node::list_of(" AND ", 1, ALONE, terms);
                let parts = [given, source.node, terms];
                let query = Node::fill(Role::Query, "SELECT {} FROM {} WHERE {}", parts);
                (vec![column, query], self.one_of(&["({} IN ({}))", "({} = ANY ({}))", "({} NOT IN ({}))"]))
            }
        };
        Some(Node::expression(ValueType::Boolean, template, query))
    }

    /// A condition along columns, as they are looked up in an index.
    pub fn key_condition(&mut self) -> Node {
        let mut terms = Vec::new();
        if self.can_have_query() && self.chance(1, 4) {
            terms.extend(self.asked_by_key());
        }
        for _ in 0..1 + self.below(2) {
            let of = self.type_with(ValueType::has_order);
            let (Some(column), value) = (self.column(of), self.literal(of)) else { continue };
            let template = self.one_of(&["{} = {}", "{} = {}", "{} > {}", "{} <= {}"]);
            terms.push(Node::expression(ValueType::Boolean, template, [column, value]));
        }
        if terms.is_empty() || self.chance(1, 3) {
            terms.push(self.expression(ValueType::Boolean));
        }
        Node::expression(ValueType::Boolean, "({})", [Node::list_of(" AND ", 1, ALONE, terms)])
    }
}

/// All columns, if rows can be sorted by them.
fn total(columns: &[(String, ValueType)]) -> Option<Vec<String>> {
    let can = columns.iter().all(|(_, of)| of.has_order());
    can.then(|| columns.iter().map(|(name, _)| name.clone()).collect())
}
