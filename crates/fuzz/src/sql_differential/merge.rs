//! Random `MERGE`.
//!
//! Rows of the source are joined along columns that tell the rows of the target apart, or those of the source. What
//! several of them would do with one row is an error in both databases. Rows are deleted only where no row that is
//! inserted can have what they give up: which comes first is not determined.

use super::generator::{Generator, Scope};
use super::literal::Literal;
use super::schema::{Column, Table, key_part, key_value};
use super::statement::Kind;
use super::tree::{ALONE, Node};
use super::value_type::ValueType;
use super::write::Write;

/// What rows are merged from.
struct Merged {
    node: Node,
    columns: Vec<Column>,
    /// Columns of the target, and those of the source that they have to be equal to.
    joined: Vec<(usize, String)>,
    /// Whether a row of the target finds at most one row.
    is_unique: bool,
}

impl Generator<'_> {
    /// `MERGE INTO ... USING ... ON ... WHEN ...`, or nothing if there is nothing to join the table by.
    pub(super) fn merge(&mut self, table: &Table) -> Option<Write> {
        let source = self.merged(table)?;
        let (target, name) = self.named_table(table);
        let mut terms = Vec::new();
        for (at, other) in &source.joined {
            terms.push(format!("{name}.{} = {other}", table.columns[*at].name));
        }
        self.enter_table(table, &name);
        let own = source.columns.iter().map(|column| Generator::leaf_of(column.name.clone(), column.of));
        let own: Vec<_> = own.collect();
        let scope = self.scopes.last_mut().expect("the table's");
        scope.leaves.extend(own.iter().cloned());
        let both = self.scopes.pop().expect("both");
        let source_alone = Scope { leaves: own, ..both.clone() };

        self.scopes.push(both.clone());
        let more = match self.chance(1, 4) {
            true => {
                let condition = self.expression(ValueType::Boolean);
                Node::optional(" AND {}", [condition])
            }
            false => Node::nothing(),
        };
        self.scopes.pop();

        let is_told_apart_by =
            |key: &[usize]| key.iter().all(|at| source.joined.iter().any(|(joined, _)| joined == at));
        let deletes = source.is_unique && is_told_apart_by(&table.key) && is_told_apart_by(&table.unique);
        let group = self.group();
        let mut arms = Vec::new();
        let mut is_closed = [false; 2];
        for _ in 0..1 + self.below(4) {
            let is_matched = self.chance(1, 2);
            if is_closed[usize::from(is_matched)] {
                continue;
            }
            let scope = if is_matched { both.clone() } else { source_alone.clone() };
            self.scopes.push(scope);
            let condition = match self.chance(1, 2) {
                true => {
                    let condition = self.expression(ValueType::Boolean);
                    Node::optional(" AND {}", [condition])
                }
                false => {
                    is_closed[usize::from(is_matched)] = true;
                    Node::nothing()
                }
            };
            let action = match (is_matched, self.below(5)) {
                (_, 0) => Node::text("DO NOTHING"),
                (true, 1) if deletes => Node::text("DELETE"),
                (true, _) => match self.set_list(table) {
                    Some(set) => Node::plain("UPDATE SET {}", [set]),
                    None => Node::text("DO NOTHING"),
                },
                (false, _) => self.inserted(table, &source.joined, group),
            };
            self.scopes.pop();
            let word = if is_matched { "MATCHED" } else { "NOT MATCHED" };
            arms.push(Node::plain(&format!("WHEN {word}{{}} THEN {{}}"), [condition, action]));
        }
        let arms = Node::list_of(" ", 1, ALONE, arms);
        let template = format!("MERGE INTO {target} USING {{}} ON {}{{}} {{}}", terms.join(" AND "));
        let node = Node::plain(&template, [source.node, more, arms]);
        Some(Write { node, kind: Kind::Merge, table: table.clone(), returned: Vec::new() })
    }

    /// Rows of another table, or of numbers that may be keys.
    fn merged(&mut self, table: &Table) -> Option<Merged> {
        let is_numbered = |at: &usize| {
            let of = table.columns[*at].of;
            of.is_number() || matches!(of, ValueType::Text | ValueType::Varchar)
        };
        let key = if table.key.is_empty() { &table.unique } else { &table.key };
        let numbers = !key.is_empty() && key.iter().all(is_numbered);
        match numbers && self.chance(1, 2) {
            true => Some(self.numbered_source(table, key)),
            false => self.table_as_source(table),
        }
    }

    /// Rows with the columns of the target, whose keys are numbers of a series.
    fn numbered_source(&mut self, table: &Table, key: &[usize]) -> Merged {
        let group = self.group();
        let places: Vec<usize> =
            (0..table.columns.len()).filter(|at| !table.columns[*at].is_generated).collect();
        let types: Vec<ValueType> = places.iter().map(|at| table.columns[*at].of).collect();
        let rows = self.selected_rows(table, &places, &types, group);
        let name = self.name("r");
        let mut names = Vec::new();
        let mut columns = Vec::new();
        let mut joined = Vec::new();
        for at in places {
            let column = self.name("c");
            let whole = format!("{name}.{column}");
            if key.contains(&at) {
                joined.push((at, whole.clone()));
            }
            names.push(Node::text(column));
            columns.push(Column::new(whole, table.columns[at].of));
        }
        let names = Node::list_of(", ", 1, group, names);
        let node = Node::plain(&format!("({{}}) AS {name} ({{}})"), [rows, names]);
        Merged { node, columns, joined, is_unique: true }
    }

    /// Another table, joined along its key or unique index, or else along any column.
    fn table_as_source(&mut self, table: &Table) -> Option<Merged> {
        let other = self.one_of(&self.schema.tables);
        let name = self.name("r");
        let unique = if other.key.is_empty() { &other.unique } else { &other.key };
        let partner = |column: &Column| table.columns.iter().position(|own| own.of == column.of);
        let whole = |at: usize| format!("{name}.{}", other.columns[at].name);
        let along = |at: &usize| Some((partner(&other.columns[*at])?, whole(*at)));
        let mut joined: Vec<(usize, String)> = unique.iter().filter_map(along).collect();
        let is_unique = !unique.is_empty() && joined.len() == unique.len();
        if joined.is_empty() {
            joined.extend((0..other.columns.len()).find_map(|at| along(&at)));
        }
        let columns =
            other.columns.iter().enumerate().map(|(at, column)| Column::new(whole(at), column.of)).collect();
        let node = Node::text(format!("{} AS {name}", other.name));
        (!joined.is_empty()).then_some(Merged { node, columns, joined, is_unique })
    }

    /// `INSERT ...` of a row that the target does not have by the columns that it is joined by.
    fn inserted(&mut self, table: &Table, joined: &[(usize, String)], group: u32) -> Node {
        let mut names = Vec::new();
        let mut values = Vec::new();
        let number = self.below(2 * table.rows.max(3));
        for (at, column) in table.columns.iter().enumerate() {
            let of = column.of;
            let value = if column.is_generated {
                continue;
            } else if let Some((_, other)) = joined.iter().find(|(joined, _)| *joined == at) {
                Node::raw(of, other.clone())
            } else if let Some(part) = table.key.iter().position(|key| *key == at) {
                let value = key_value(of, key_part(number, part, table.key.len()));
                Node::literal(of, Literal::new(of, Some(&value)))
            } else if column.is_nullable && self.chance(1, 4) {
                continue;
            } else if self.chance(1, 10) {
                Node::text("DEFAULT")
            } else {
                self.assigned(of)
            };
            names.push(Node::text(column.name.clone()));
            values.push(value);
        }
        if names.is_empty() {
            return Node::text("INSERT DEFAULT VALUES");
        }
        let names = Node::list_of(", ", 1, group, names);
        let values = Node::list_of(", ", 1, group, values);
        Node::plain("INSERT ({}) VALUES ({})", [names, values])
    }
}
