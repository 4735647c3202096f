//! Random statements that write.
//!
//! An `UPDATE ... FROM` may find several rows for one that it changes; which it takes is not determined. So what it
//! sets and returns is of the changed table alone, unless the other one is joined along its whole key or unique
//! index.

use super::generator::{Generator, Relation, Scope};
use super::literal::Literal;
use super::pair::SCHEMA;
use super::schema::{Column, Table, key_part, key_value};
use super::statement::{Kind, Statement};
use super::tree::{ALONE, Node};
use super::value_type::ValueType;

/// A statement that writes, with the columns that it returns.
pub(super) struct Write {
    pub node: Node,
    pub kind: Kind,
    pub table: Table,
    pub returned: Vec<Column>,
}

impl Generator<'_> {
    /// A statement that writes; one in a few is part of a `WITH`.
    pub fn write_statement(&mut self) -> Statement {
        let relations = self.relations.len();
        if self.chance(1, 8) {
            return self.with_writes();
        }
        let with = match self.chance(1, 12) {
            true => self.with_clause(),
            false => Node::nothing(),
        };
        let write = self.write(false);
        self.relations.truncate(relations);
        let node = Node::plain("{}{}", [with, write.node]);
        Statement { tables: self.touched(vec![write.table.name]), ..Statement::new(write.kind, node) }
    }

    /// The tables that change when these do: all, if a row of one may be deleted with another's.
    fn touched(&self, tables: Vec<String>) -> Vec<String> {
        let refers = |table: &Table| table.columns.iter().any(|column| column.refers_to.is_some());
        match self.schema.tables.iter().any(refers) {
            true => self.schema.tables.iter().map(|table| table.name.clone()).collect(),
            false => tables,
        }
    }

    fn write(&mut self, is_part: bool) -> Write {
        let table = self.one_of(&self.schema.tables);
        self.write_into(table, is_part)
    }

    fn write_into(&mut self, table: Table, is_part: bool) -> Write {
        if !is_part
            && self.chance(1, 6)
            && let Some(merge) = self.merge(&table)
        {
            return merge;
        }
        match self.below(3) {
            0 => self.insert(table, is_part),
            1 => self.update(table, is_part),
            _ => self.delete(table, is_part),
        }
    }

    /// A `WITH` that writes and a statement that reads what it returns.
    fn with_writes(&mut self) -> Statement {
        let write = self.write(true);
        let name = self.name("w");
        let part = Node::plain(&format!("WITH {name} AS ({{}}) "), [write.node]);
        let relation =
            Relation { name: name.clone(), columns: write.returned.clone(), key: Vec::new(), rows: 6 };
        // What others read of tables is what was there before.
        let relations = self.relations.clone();
        match self.chance(1, 2) {
            true => self.relations.push(relation),
            false => self.relations = vec![relation],
        }
        let mut tables = vec![write.table.name.clone()];
        let is_apart = |table: &&Table| table.name != write.table.name;
        let others: Vec<Table> = self.schema.tables.iter().filter(is_apart).cloned().collect();
        let rest = match self.chance(1, 2) && !others.is_empty() {
            true => {
                let table = self.one_of(&others);
                let other = self.write_into(table, false);
                tables.push(other.table.name);
                other.node
            }
            false => self.query(None).0,
        };
        self.relations = relations;
        Statement {
            tables: self.touched(tables),
            ..Statement::new(Kind::WithWrites, Node::plain("{}{}", [part, rest]))
        }
    }

    fn insert(&mut self, table: Table, is_part: bool) -> Write {
        let group = self.group();
        let mut columns: Vec<usize> = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let is_needed = table.key.contains(&at) || !column.is_nullable;
            if !column.is_generated && (is_needed || self.chance(3, 4)) {
                columns.push(at);
            }
        }
        if columns.is_empty() {
            columns.push(0);
        }
        let names = columns.iter().map(|at| Node::text(table.columns[*at].name.clone())).collect();
        let is_defaults = columns.iter().all(|at| table.columns[*at].is_nullable) && self.chance(1, 10);
        if is_defaults && !is_part {
            let node = Node::text(format!("INSERT INTO {} DEFAULT VALUES", table.name));
            return Write { node, kind: Kind::Insert, table, returned: Vec::new() };
        }
        let source = match self.chance(1, 4) {
            true => {
                // Rows that are selected would mostly have keys that are there.
                let types: Vec<ValueType> = columns.iter().map(|at| table.columns[*at].of).collect();
                self.selected_rows(&table, &columns, &types, group)
            }
            false => {
                let mut rows: Vec<Node> = Vec::new();
                for _ in 0..1 + self.below(3) {
                    rows.push(self.new_row(&table, &columns, group));
                }
                Node::plain("VALUES {}", [Node::list(rows)])
            }
        };
        let conflict = self.on_conflict(&table);
        let (returning, returned) = self.returning(&table, &table.name.clone(), is_part);
        let template = format!("INSERT INTO {} ({{}}) {{}}{{}}{{}}", table.name);
        let node =
            Node::plain(&template, [Node::list_of(", ", 1, group, names), source, conflict, returning]);
        Write { node, kind: Kind::Insert, table, returned }
    }

    /// A row to insert: its key may be there already.
    fn new_row(&mut self, table: &Table, columns: &[usize], group: u32) -> Node {
        let number = self.below(2 * table.rows.max(3));
        let mut values = Vec::new();
        for at in columns {
            let column = &table.columns[*at];
            values.push(if let Some(part) = table.key.iter().position(|key| key == at) {
                let value = key_value(column.of, key_part(number, part, table.key.len()));
                Node::literal(column.of, Literal::new(column.of, Some(&value)))
            } else if table.unique.contains(at) {
                let value = key_value(column.of, number);
                Node::literal(column.of, Literal::new(column.of, Some(&value)))
            } else if let Some(rows) = column.refers_to
                && self.chance(4, 5)
            {
                let value = key_value(column.of, self.random.index(rows.max(1)));
                Node::literal(column.of, Literal::new(column.of, Some(&value)))
            } else if self.chance(1, 10) {
                Node::text("DEFAULT")
            } else if self.chance(1, 2) {
                self.literal(column.of)
            } else {
                self.assigned(column.of)
            });
        }
        Node::plain("({})", [Node::list_of(", ", 1, group, values)])
    }

    /// Rows of a query to insert. Their keys are numbers of a series, so that not all of them are there.
    pub(super) fn selected_rows(
        &mut self,
        table: &Table,
        columns: &[usize],
        types: &[ValueType],
        group: u32,
    ) -> Node {
        let has_key = columns.iter().any(|at| table.key.contains(at) || table.unique.contains(at));
        if !has_key && self.chance(1, 2) {
            return self.query(Some(types)).0;
        }
        let name = self.name("r");
        let counter = format!("{name}.n");
        let first = self.below(2 * table.rows.max(3));
        self.scopes.push(Scope {
            leaves: vec![Generator::leaf_of(counter.clone(), ValueType::Int)],
            sources: vec![name.clone()],
            total: Some(vec![counter.clone()]),
            has_sets: false,
            ungrouped: None,
            rows: 3,
        });
        let mut items = Vec::new();
        for at in columns {
            let of = table.columns[*at].of;
            let is_key = table.key.contains(at) || table.unique.contains(at);
            items.push(match (is_key, of) {
                (false, of) => self.assigned(of),
                (true, ValueType::Text | ValueType::Varchar) => Node::raw(of, format!("'n' || {counter}")),
                (true, of) if of.is_number() => Node::raw(of, format!("{counter}::{}", of.name())),
                (true, of) => self.literal(of),
            });
        }
        let condition = self.optional_condition();
        self.scopes.pop();
        let template = format!("SELECT {{}} FROM generate_series({first}, {}) AS {name}(n){{}}", first + 2);
        Node::plain(&template, [Node::list_of(", ", 1, group, items), condition])
    }

    fn on_conflict(&mut self, table: &Table) -> Node {
        let target = match (table.key.is_empty(), table.unique.is_empty()) {
            (false, _) => &table.key,
            (true, false) => &table.unique,
            (true, true) => return Node::nothing(),
        };
        let names: Vec<&str> = target.iter().map(|at| table.columns[*at].name.as_str()).collect();
        let target = format!("({})", names.join(", "));
        match self.below(5) {
            0 => Node::optional(" ON CONFLICT DO NOTHING", []),
            1 => Node::optional(&format!(" ON CONFLICT {target} DO NOTHING"), []),
            2 | 3 => {
                let own = &table.name;
                self.scopes.push(Scope::default());
                let scope = self.scopes.last_mut().expect("just now");
                for source in [own.as_str(), "excluded"] {
                    let columns = table.columns.iter().filter(|column| !column.is_generated);
                    scope
                        .leaves
                        .extend(columns.map(|column| {
                            Generator::leaf_of(format!("{source}.{}", column.name), column.of)
                        }));
                }
                let (set, condition) = (self.set_list(table), self.optional_condition());
                self.scopes.pop();
                match set {
                    Some(set) => {
                        let template = format!(" ON CONFLICT {target} DO UPDATE SET {{}}{{}}");
                        Node::optional(&template, [set, condition])
                    }
                    None => Node::nothing(),
                }
            }
            _ => Node::nothing(),
        }
    }

    /// `a = ..., b = ...` of columns that no key has.
    pub(super) fn set_list(&mut self, table: &Table) -> Option<Node> {
        let mut free: Vec<usize> = (0..table.columns.len())
            .filter(|at| {
                !table.key.contains(at) && !table.unique.contains(at) && !table.columns[*at].is_generated
            })
            .collect();
        if free.is_empty() {
            return None;
        }
        let mut set = Vec::new();
        for _ in 0..1 + self.below(2.min(free.len())) {
            if free.is_empty() {
                break;
            }
            let at = free.swap_remove(self.below(free.len()));
            let Column { name, of, .. } = table.columns[at].clone();
            if self.chance(1, 12) {
                set.push(Node::text(format!("{name} = DEFAULT")));
                continue;
            }
            if self.chance(1, 10)
                && let Some(other) = free.pop()
            {
                let other = table.columns[other].clone();
                let values = [self.assigned(of), self.assigned(other.of)];
                set.push(Node::plain(&format!("({name}, {}) = ({{}}, {{}})", other.name), values));
                continue;
            }
            let value = self.assigned(of);
            set.push(Node::plain(&format!("{name} = {{}}"), [value]));
        }
        Some(Node::list(set))
    }

    /// A value that a column of a type takes, however long it is.
    pub(super) fn assigned(&mut self, of: ValueType) -> Node {
        let value = self.expression(of);
        match of {
            ValueType::Varchar => Node::expression(of, "CAST({} AS varchar(12))", [value]),
            ValueType::Char => Node::expression(of, "CAST({} AS char(5))", [value]),
            ValueType::Numeric => Node::expression(of, "round({} % 1000, 3)", [value]),
            _ => value,
        }
    }

    /// `table AS name` and the name; sometimes the table by its schema, which names its columns then.
    pub(super) fn named_table(&mut self, table: &Table) -> (String, String) {
        if self.chance(1, 8) {
            let whole = format!("{SCHEMA}.{}", table.name);
            return (whole.clone(), whole);
        }
        let name = self.name("r");
        (format!("{} AS {name}", table.name), name)
    }

    fn update(&mut self, table: Table, is_part: bool) -> Write {
        let (target, name) = self.named_table(&table);
        self.enter_table(&table, &name);
        let (from, is_unique) = self.other_table(" FROM ");
        let own = self.scopes.last().cloned().unwrap_or_default();
        if !is_unique {
            self.keep_own(&table);
        }
        let set = self.set_list(&table);
        *self.scopes.last_mut().expect("the table's") = own;
        let condition = self.write_condition(&from.1);
        if !is_unique {
            self.keep_own(&table);
        }
        let (returning, returned) = self.returning_here(&table, is_part);
        self.scopes.pop();
        let Some(set) = set else { return self.delete(table, is_part) };
        let template = format!("UPDATE {target} SET {{}}{{}}{{}}{{}}");
        let node = Node::plain(&template, [set, from.0, condition, returning]);
        Write { node, kind: Kind::Update, table, returned }
    }

    fn delete(&mut self, table: Table, is_part: bool) -> Write {
        let (target, name) = self.named_table(&table);
        self.enter_table(&table, &name);
        let (using, is_unique) = self.other_table(" USING ");
        let condition = self.write_condition(&using.1);
        if !is_unique {
            self.keep_own(&table);
        }
        let (returning, returned) = self.returning_here(&table, is_part);
        self.scopes.pop();
        let template = format!("DELETE FROM {target}{{}}{{}}{{}}");
        let node = Node::plain(&template, [using.0, condition, returning]);
        Write { node, kind: Kind::Delete, table, returned }
    }

    /// A scope with a table alone.
    pub(super) fn enter_table(&mut self, table: &Table, name: &str) {
        let columns = &table.columns;
        let leaves =
            columns.iter().map(|column| Generator::leaf_of(format!("{name}.{}", column.name), column.of));
        let leaves = leaves.collect();
        self.scopes.push(Scope {
            leaves,
            sources: vec![name.into()],
            total: None,
            has_sets: false,
            ungrouped: None,
            rows: table.rows.max(1),
        });
    }

    /// Leaves only the columns of the table that is written to in scope. The other table stays a source: `*` has its
    /// columns too.
    fn keep_own(&mut self, table: &Table) {
        self.scopes.last_mut().expect("the table's").leaves.truncate(table.columns.len());
    }

    /// Another table beside the one that is written to, with the condition that joins them; whether each row of the one
    /// finds at most one of the other.
    fn other_table(&mut self, word: &str) -> ((Node, Option<Node>), bool) {
        if !self.chance(1, 3) {
            return ((Node::nothing(), None), true);
        }
        let other = self.one_of(&self.schema.tables);
        let name = self.name("r");
        let own: Vec<(Node, ValueType)> =
            self.scope().leaves.iter().map(|leaf| (leaf.node.clone(), leaf.of)).collect();
        let mut terms = Vec::new();
        let unique = if other.key.is_empty() { &other.unique } else { &other.key };
        for at in unique {
            let Column { name: column, of, .. } = &other.columns[*at];
            let fitting: Vec<Node> =
                own.iter().filter(|(_, other)| other == of).map(|(node, _)| node.clone()).collect();
            if !fitting.is_empty() {
                let side = self.one_of(&fitting);
                // It is not simplified: then more than one row might be found.
                terms.push(format!("{} = {name}.{column}", side.sql()));
            }
        }
        let is_unique = !unique.is_empty() && terms.len() == unique.len();
        let scope = self.scopes.last_mut().expect("the table's");
        let leaves = other
            .columns
            .iter()
            .map(|column| Generator::leaf_of(format!("{name}.{}", column.name), column.of));
        scope.leaves.extend(leaves);
        scope.sources.push(name.clone());
        let joined = (!terms.is_empty()).then(|| Node::text(terms.join(" AND ")));
        ((Node::text(format!("{word}{} AS {name}", other.name)), joined), is_unique)
    }

    fn write_condition(&mut self, joined: &Option<Node>) -> Node {
        let condition = match self.chance(1, 2) {
            true => self.key_condition(),
            false => self.expression(ValueType::Boolean),
        };
        let condition = Node::list_of("", 0, ALONE, vec![condition]);
        match joined {
            Some(joined) => {
                let more = Node::optional(" AND {}", [condition]);
                Node::plain(" WHERE {}{}", [joined.clone(), more])
            }
            None => Node::optional(" WHERE {}", [condition]),
        }
    }

    fn returning(&mut self, table: &Table, name: &str, is_part: bool) -> (Node, Vec<Column>) {
        self.enter_table(table, name);
        let result = self.returning_here(table, is_part);
        self.scopes.pop();
        result
    }

    /// ` RETURNING ...`, always for a part of a `WITH`.
    fn returning_here(&mut self, table: &Table, is_part: bool) -> (Node, Vec<Column>) {
        if !is_part && self.chance(1, 2) {
            return (Node::nothing(), Vec::new());
        }
        if self.scope().sources.len() == 1 && self.chance(1, 4) {
            let node = if is_part { Node::text(" RETURNING *") } else { Node::optional(" RETURNING *", []) };
            return (node, table.columns.clone());
        }
        let (mut items, mut columns) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.below(3) {
            let of = self.any_type();
            let name = self.name("c");
            let value = self.expression(of);
            items.push(Node::plain(&format!("{{}} AS {name}"), [value]));
            columns.push(Column::new(name, of));
        }
        let list = [Node::list(items)];
        let node = match is_part {
            true => Node::plain(" RETURNING {}", list),
            false => Node::optional(" RETURNING {}", list),
        };
        (node, columns)
    }
}
