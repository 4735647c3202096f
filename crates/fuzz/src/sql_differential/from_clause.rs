//! Random `FROM` clauses: tables and what else gives rows, joined in every way.

use super::generator::{Generator, Leaf, Relation, Scope};
use super::literal::Literal;
use super::pending::Feature;
use super::tree::{ALONE, Node};
use super::value_type::ValueType;

/// Rows of all tables of a `FROM`, multiplied, at most.
const ROWS: usize = 2_000;

/// Something in `FROM`.
struct Source {
    node: Node,
    name: String,
    columns: Vec<(String, ValueType)>,
    /// Columns that tell its rows apart, if there are some.
    total: Option<Vec<String>>,
    rows: usize,
}

/// The names that a join has without the name of a table before them.
type Names = Vec<(String, ValueType)>;

impl Generator<'_> {
    /// ` FROM ...`, with its scope, which the caller ends. The scope is there even if there is no `FROM`.
    pub fn joined_tables(&mut self) -> Node {
        self.scopes.push(Scope { total: Some(Vec::new()), rows: 1, ..Scope::default() });
        let Some(first) = self.source(false) else { return Node::nothing() };
        let mut names = first.columns.clone();
        let first_node = first.node.clone();
        self.enter(&first);
        let mut joins = Vec::new();
        let mut begin = 0;
        let mut merged: Vec<(String, ValueType)> = Vec::new();
        let mut all_names: Names = Vec::new();
        while joins.len() < 3 && self.budget > 0 && self.chance(2, 5) {
            let can_be_lateral = joins.is_empty() || self.allows(Feature::LateralBeyond);
            let is_lateral = can_be_lateral && self.chance(1, 8) && self.can_have_query();
            let Some(source) = self.source(is_lateral) else { break };
            if self.scope().rows * source.rows.max(1) > ROWS {
                break;
            }
            let common: Vec<(String, ValueType)> = names
                .iter()
                .filter(|(name, of)| {
                    of.has_equality()
                        && names.iter().filter(|(other, _)| other == name).count() == 1
                        && source.columns.iter().filter(|(other, _)| other == name).count() == 1
                })
                .cloned()
                .collect();
            let is_ambiguous = source.columns.iter().any(|(name, of)| {
                let there = names.iter().filter(|(other, _)| other == name).count();
                there > 1 || (there == 1 && !of.has_equality())
            });
            // Another table before may have a column of that name too.
            let is_behind = !joins.is_empty();
            let choice = self.below(10);
            if is_lateral {
                let (template, comma) = self.one_of(&[
                    (", LATERAL {}", true),
                    (" CROSS JOIN LATERAL {}", false),
                    (" LEFT JOIN LATERAL {} ON true", false),
                    (" JOIN LATERAL {} ON true", false),
                ]);
                if comma {
                    all_names.append(&mut names);
                    begin = self.scope().leaves.len();
                }
                joins.push(Node::optional(template, [source.node.clone()]));
                names.extend(source.columns.clone());
                self.enter(&source);
                if !self.allows(Feature::LateralBeyond) {
                    break;
                }
            } else if choice < 2 {
                let comma = choice == 0;
                if comma {
                    all_names.append(&mut names);
                    begin = self.scope().leaves.len();
                }
                joins.push(Node::optional(
                    if comma { ", {}" } else { " CROSS JOIN {}" },
                    [source.node.clone()],
                ));
                names.extend(source.columns.clone());
                self.enter(&source);
            } else if choice < 4
                && !common.is_empty()
                && (!is_behind || self.allows(Feature::NaturalBehindOthers))
            {
                let word = self.join_word();
                let natural = self.chance(1, 3) && !is_ambiguous;
                let using = match natural {
                    true => common.clone(),
                    false => common[..1 + self.below(common.len())].to_vec(),
                };
                let list = using.iter().map(|(name, _)| Node::text(name.clone())).collect();
                joins.push(match natural {
                    true => Node::optional(" NATURAL {} {}", [word, source.node.clone()]),
                    false => {
                        Node::optional(" {} {} USING ({})", [word, source.node.clone(), Node::list(list)])
                    }
                });
                let is_used = |name: &str| using.iter().any(|(other, _)| other == name);
                names.extend(source.columns.iter().filter(|(name, _)| !is_used(name)).cloned());
                merged.extend(using);
                self.enter(&source);
            } else {
                let word = self.join_word();
                let is_full = word.sql().starts_with("FULL");
                let earlier: Vec<Leaf> =
                    self.scopes.last_mut().expect("a scope").leaves.drain(..begin).collect();
                let left = self.scope().leaves.len();
                let node = source.node.clone();
                names.extend(source.columns.clone());
                self.enter(&source);
                let condition = self.join_condition(left, is_full);
                self.scopes.last_mut().expect("a scope").leaves.splice(..0, earlier);
                joins.push(Node::optional(" {} {} ON {}", [word, node, condition]));
            }
        }
        all_names.append(&mut names);
        for (name, of) in merged {
            if all_names.iter().filter(|(other, _)| *other == name).count() == 1 {
                let node = Node::raw(of, name);
                self.scopes.last_mut().expect("a scope").leaves.push(Leaf { node, of, is_local: true });
            }
        }
        Node::plain(" FROM {}{}", [first_node, Node::list_of("", 0, ALONE, joins)])
    }

    fn join_word(&mut self) -> Node {
        let words = ["JOIN", "JOIN", "INNER JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"];
        Node::word(self.one_of(&words), "JOIN")
    }

    /// Makes the columns of something in `FROM` visible.
    fn enter(&mut self, source: &Source) {
        let scope = self.scopes.last_mut().expect("a scope");
        let qualified = |name: &String| format!("{}.{name}", source.name);
        scope.leaves.extend(source.columns.iter().map(|(name, of)| Generator::leaf_of(qualified(name), *of)));
        scope.sources.push(source.name.clone());
        scope.rows *= source.rows.max(1);
        match (&mut scope.total, &source.total) {
            (Some(total), Some(key)) => total.extend(key.iter().map(qualified)),
            (total, _) => *total = None,
        }
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
        if pairs.is_empty() || (!is_full && self.chance(1, 6)) {
            return self.on_condition();
        }
        let mut terms = Vec::new();
        for _ in 0..1 + self.below(2) {
            let (one, other) = self.one_of(&pairs);
            terms.push(Node::expression(ValueType::Boolean, "{} = {}", [one, other]));
        }
        if !is_full && self.chance(1, 5) {
            terms.push(self.on_condition());
        }
        Node::expression(ValueType::Boolean, "({})", [Node::list_of(" AND ", 1, ALONE, terms)])
    }

    fn on_condition(&mut self) -> Node {
        match self.allows(Feature::OuterInOn) {
            true => self.expression(ValueType::Boolean),
            false => self.without_queries(|generator| generator.expression(ValueType::Boolean)),
        }
    }

    /// Something that gives rows; a lateral one sees what is in `FROM` before it.
    fn source(&mut self, is_lateral: bool) -> Option<Source> {
        let choice = if is_lateral { 15 + self.below(5) } else { self.below(20) };
        match choice {
            0 => Some(self.values()),
            1 => Some(self.table_function()),
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
        Source { node, name, columns, total, rows: relation.rows }
    }

    fn derived_table(&mut self, is_lateral: bool) -> Source {
        // What is not lateral does not see its neighbours.
        let hidden = if is_lateral { None } else { self.scopes.pop() };
        // What is lateral does not see beyond its neighbours.
        let beyond = match is_lateral && !self.allows(Feature::LateralBeyond) {
            true => {
                let own = self.scopes.len() - 1;
                self.scopes.drain(..own).collect()
            }
            false => Vec::new(),
        };
        let can_be_sorted = !is_lateral || self.allows(Feature::LateralBeyond);
        let (node, outputs) = match can_be_sorted && self.chance(1, 4) {
            true => {
                let types: Vec<ValueType> =
                    (0..1 + self.below(3)).map(|_| self.type_with(ValueType::has_order)).collect();
                let rows = 1 + self.below(3);
                self.first_rows(&types, rows)
            }
            false if is_lateral && !self.allows(Feature::LateralBeyond) => {
                self.without_queries(|generator| {
                    generator.is_own_only = false;
                    generator.query(None)
                })
            }
            false => self.query(None),
        };
        self.scopes.splice(..0, beyond);
        self.scopes.extend(hidden);
        let name = self.name("r");
        let columns: Vec<(String, ValueType)> =
            outputs.into_iter().map(|output| (output.name, output.of)).collect();
        let node = Node::plain(&format!("({{}}) AS {name}"), [node]);
        Source { node, name, total: total(&columns), columns, rows: 6 }
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
        Source { node, name, total: total(&columns), columns, rows: count }
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
        Source { node, name, total: total(&columns), columns, rows: 4 }
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

    /// A condition along columns, as they are looked up in an index.
    pub fn key_condition(&mut self) -> Node {
        let mut terms = Vec::new();
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

    /// Whether the query's rows may be shown with all their columns.
    pub fn can_show_all(&self) -> bool {
        self.allows(Feature::AllColumns) && !self.scope().sources.is_empty()
    }
}

/// All columns, if rows can be sorted by them.
fn total(columns: &[(String, ValueType)]) -> Option<Vec<String>> {
    let can = columns.iter().all(|(_, of)| of.has_order());
    can.then(|| columns.iter().map(|(name, _)| name.clone()).collect())
}
