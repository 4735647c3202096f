//! Random tables with a few rows, as statements that make them.
//!
//! Columns of one name have one type in all tables of a schema, so that `NATURAL` and `USING` join something. Rows have
//! distinct keys; everything else is mostly null or a duplicate.

use super::literal::Literal;
use super::tree::{ALONE, Node};
use super::value_type::ValueType;
use fabius_env::Random;

/// A column of a table or of anything else that rows come from.
#[derive(Clone, Debug)]
pub struct Column {
    pub name: String,
    pub of: ValueType,
    pub is_nullable: bool,
    /// Whether it is computed from others, and so is not written.
    pub is_generated: bool,
    /// Rows of the table whose key it refers to, if it does.
    pub refers_to: Option<usize>,
}

impl Column {
    /// A column that may be null.
    pub fn new(name: String, of: ValueType) -> Column {
        Column { name, of, is_nullable: true, is_generated: false, refers_to: None }
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
    /// The columns of its primary key; none if it has no key.
    pub key: Vec<usize>,
    /// Those of its unique index, if there is one.
    pub unique: Vec<usize>,
    pub rows: usize,
}

/// All tables and views, and the statements that make them.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    pub tables: Vec<Table>,
    pub setup: Vec<Node>,
}

/// Names of columns that are no keys.
const NAMES: [&str; 8] = ["a", "b", "c2", "c5", "e", "c11", "g", "h"];

/// Rows of a table at most, but for large ones.
const ROWS: usize = 9;

/// Rows of a large table at least: more than operators take at a time in some tests of theirs.
const MANY_ROWS: usize = 60;

impl Schema {
    pub fn random(random: &mut Random) -> Schema {
        let mut schema = Schema::default();
        schema.setup.extend(ValueType::ALL.iter().filter_map(|of| of.definition()).map(Node::text));
        let types: Vec<ValueType> = NAMES.iter().map(|_| column_type(random)).collect();
        let key_types = [key_type(random), key_type(random)];
        let large = if random.chance(1, 8) { random.index(4) } else { usize::MAX };
        for at in 0..2 + random.index(3) {
            let rows = if at == large { MANY_ROWS + random.index(60) } else { random.index(ROWS + 1) };
            schema.add_table(random, at, rows, &types, key_types);
        }
        schema
    }

    fn add_table(
        &mut self,
        random: &mut Random,
        at: usize,
        rows: usize,
        types: &[ValueType],
        key_types: [ValueType; 2],
    ) {
        let name = format!("t{at}");
        let group = at as u32 + 1;
        let mut columns = Vec::new();
        let mut key = Vec::new();
        let key_columns = [0, 1, 1, 1, 2, 2][random.index(6)];
        for (place, of) in key_types.into_iter().enumerate().take(key_columns) {
            key.push(columns.len());
            columns.push(Column { is_nullable: false, ..Column::new(format!("k{place}"), of) });
        }
        for (name, of) in NAMES.iter().zip(types) {
            if random.chance(1, 2) || columns.is_empty() {
                let is_nullable = random.chance(3, 4);
                columns.push(Column { is_nullable, ..Column::new((*name).into(), *of) });
            }
        }
        let mut unique = Vec::new();
        if random.chance(1, 3) {
            let candidates: Vec<usize> = (0..columns.len())
                .filter(|at| {
                    !key.contains(at) && columns[*at].of.can_be_key() && has_many_values(columns[*at].of)
                })
                .collect();
            if !candidates.is_empty() {
                unique.push(candidates[random.index(candidates.len())]);
            }
        }
        let foreign_key = self.foreign_key(random, &mut columns, &unique);
        let mut definitions: Vec<Node> = columns.iter().map(|column| definition(random, column)).collect();
        if random.chance(1, 5)
            && let Some((source, expression)) = generated(random, &columns)
        {
            let name = format!("{}_gen", columns[source].name);
            definitions.push(Node::text(format!(
                "{name} {} GENERATED ALWAYS AS ({expression}) STORED",
                columns[source].of.name()
            )));
            columns.push(Column { is_generated: true, ..Column::new(name, columns[source].of) });
        }
        let mut parts = vec![Node::list_of(", ", 1, group, definitions)];
        if !key.is_empty() {
            let names: Vec<Node> = key.iter().map(|at| Node::text(columns[*at].name.clone())).collect();
            parts.push(Node::optional(", PRIMARY KEY ({})", [Node::list(names)]));
        }
        parts.extend(foreign_key);
        if random.chance(1, 6)
            && let Some(check) = check(random, &columns)
        {
            parts.push(Node::optional(&format!(", CHECK ({check})"), []));
        }
        self.setup.push(Node::plain(&format!("CREATE TABLE {name} ({})", "{}".repeat(parts.len())), parts));
        let table = Table { name, columns, key, unique, rows };
        self.add_indexes(random, &table);
        self.add_rows(random, &table, group);
        self.tables.push(table);
    }

    /// A column that refers to the key of a table before.
    fn foreign_key(&self, random: &mut Random, columns: &mut [Column], unique: &[usize]) -> Option<Node> {
        let target = self.tables.last().filter(|table| table.key.len() == 1 && random.chance(1, 3))?;
        let key = &target.columns[target.key[0]];
        let at = (0..columns.len()).find(|at| {
            let column = &columns[*at];
            let is_free = !column.name.starts_with('k') && !column.is_generated && !unique.contains(at);
            column.of == key.of && is_free
        })?;
        columns[at].refers_to = Some(target.rows);
        // What is referred to has to be there.
        columns[at].is_nullable |= target.rows == 0;
        let action = ["", "", " ON DELETE CASCADE", " ON DELETE SET NULL"][random.index(4)];
        let (column, table, key) = (&columns[at].name, &target.name, &key.name);
        let when = ["", "", " DEFERRABLE", " DEFERRABLE INITIALLY DEFERRED"][random.index(4)];
        let clause = format!(", FOREIGN KEY ({column}) REFERENCES {table} ({key}){action}{when}");
        Some(Node::optional(&clause, []))
    }

    fn add_indexes(&mut self, random: &mut Random, table: &Table) {
        let name = &table.name;
        for at in &table.unique {
            let column = &table.columns[*at].name;
            self.setup.push(Node::text(format!("CREATE UNIQUE INDEX {name}_{column} ON {name} ({column})")));
        }
        // One that every table keeps, whose columns nobody sees.
        if !table.key.is_empty() && random.chance(1, 6) {
            let keys: Vec<&str> = table.key.iter().map(|at| table.columns[*at].name.as_str()).collect();
            let some = &table.columns[random.index(table.columns.len())].name;
            let create = format!(
                "CREATE UNIQUE INDEX {name}_some ON {name} ({}) WHERE {some} IS NOT NULL",
                keys.join(", ")
            );
            self.setup.push(Node::text(create));
        }
        for number in 0..random.index(3) {
            let can: Vec<&Column> = table.columns.iter().filter(|column| column.of.can_be_key()).collect();
            if can.is_empty() {
                return;
            }
            let first = random.index(can.len());
            let columns = can.iter().cycle().skip(first).take((1 + random.index(2)).min(can.len()));
            let columns = columns.map(|column| Node::text(column.name.clone())).collect();
            let create = format!("CREATE INDEX {name}_i{number} ON {name} ({{}})");
            self.setup.push(Node::plain(&create, [Node::list(columns)]));
        }
    }

    fn add_rows(&mut self, random: &mut Random, table: &Table, group: u32) {
        if table.rows == 0 {
            return;
        }
        let written = || table.columns.iter().enumerate().filter(|(_, column)| !column.is_generated);
        let mut rows: Vec<Node> = Vec::new();
        for row in 0..table.rows {
            let values = written().map(|(at, column)| {
                let value = if table.key.contains(&at) {
                    let place = table.key.iter().position(|key| *key == at);
                    Some(key_value(column.of, key_part(row, place.unwrap_or(0), table.key.len())))
                } else if column.is_nullable && (random.chance(1, 3) || column.refers_to == Some(0)) {
                    None
                } else if let Some(rows) = column.refers_to {
                    Some(key_value(column.of, random.index(rows)))
                } else if table.unique.contains(&at) {
                    Some(key_value(column.of, row))
                } else {
                    let values = column.of.values();
                    // The first ones are more frequent.
                    let most = if random.chance(1, 2) { values.len().min(3) } else { values.len() };
                    Some(values[random.index(most)].to_string())
                };
                Node::literal(column.of, Literal::bare(column.of, value.as_deref()))
            });
            rows.push(Node::plain("({})", [Node::list_of(", ", 1, group, values.collect())]));
        }
        // Rows do not come in the order of their keys.
        for at in (1..rows.len()).rev() {
            rows.swap(at, random.index(at + 1));
        }
        let names = written().map(|(_, column)| Node::text(column.name.clone())).collect();
        let insert = format!("INSERT INTO {} ({{}}) VALUES {{}}", table.name);
        self.setup.push(Node::plain(
            &insert,
            [Node::list_of(", ", 1, group, names), Node::list_of(", ", 1, ALONE, rows)],
        ));
    }
}

/// A column in `CREATE TABLE`.
fn definition(random: &mut Random, column: &Column) -> Node {
    let of = match column.of {
        ValueType::Numeric => ["numeric", "numeric", "numeric(12,3)", "numeric(12,1)"][random.index(4)],
        ValueType::Varchar => "varchar(12)",
        ValueType::Time => ["time", "time(0)", "time(1)"][random.index(3)],
        ValueType::Timestamp => ["timestamp", "timestamp(0)", "timestamp(3)"][random.index(3)],
        ValueType::TimestampTz => ["timestamptz", "timestamptz(0)", "timestamptz(1)"][random.index(3)],
        of => of.name(),
    };
    let not_null = if column.is_nullable || column.name.starts_with('k') { "" } else { " NOT NULL" };
    Node::plain(&format!("{} {of}{{}}", column.name), [Node::optional(not_null, [])])
}

/// A column that is computed from another: which, and how.
fn generated(random: &mut Random, columns: &[Column]) -> Option<(usize, String)> {
    let at = random.index(columns.len());
    let Column { name, of, .. } = &columns[at];
    let expression = match of {
        ValueType::Int | ValueType::BigInt => format!("{name} + 1"),
        ValueType::Text => format!("upper({name})"),
        ValueType::Boolean => format!("NOT {name}"),
        ValueType::Numeric => format!("round({name} * 2, 2)"),
        _ => return None,
    };
    Some((at, expression))
}

/// A condition that all rows of the first values hold.
fn check(random: &mut Random, columns: &[Column]) -> Option<String> {
    let column = &columns[random.index(columns.len())];
    let name = &column.name;
    match column.of {
        ValueType::Int => Some(format!("{name} <> 12")),
        ValueType::Text => Some(format!("length({name}) < 9")),
        ValueType::Numeric => Some(format!("{name} > -100")),
        _ => None,
    }
}

fn column_type(random: &mut Random) -> ValueType {
    match random.chance(1, 2) {
        true => ValueType::FREQUENT[random.index(ValueType::FREQUENT.len())],
        false => ValueType::ALL[random.index(ValueType::ALL.len())],
    }
}

fn key_type(random: &mut Random) -> ValueType {
    use ValueType::*;
    [Int, Int, Int, BigInt, Text, Varchar, Uuid, Date, Timestamp, Numeric, SmallInt, Inet][random.index(12)]
}

/// Whether `key_value` has enough values of it.
fn has_many_values(of: ValueType) -> bool {
    use ValueType::*;
    matches!(
        of,
        SmallInt | Int | BigInt | Numeric | Text | Varchar | Uuid | Inet | Date | Timestamp | TimestampTz
    )
}

/// The number that one part of a key has in a row: rows that are near have the same first part.
pub fn key_part(row: usize, part: usize, parts: usize) -> usize {
    match (parts, part) {
        (2, 0) => row / 3,
        (2, _) => row % 3,
        _ => row,
    }
}

/// A value that no other number gives.
pub fn key_value(of: ValueType, number: usize) -> String {
    use ValueType::*;
    match of {
        Text | Varchar => format!("{}{}", ["a", "b", "ab"][number % 3], number / 3),
        Uuid => format!("00000000-0000-0000-0000-{number:012}"),
        Inet => format!("10.0.{}.{}/24", number / 256 % 256, number % 256),
        Date => format!("{}-{:02}-{:02}", 2024 + number / 336, 1 + number / 28 % 12, 1 + number % 28),
        Timestamp | TimestampTz => {
            let (day, rest) = (number / 24, number % 24);
            format!("2024-{:02}-{:02} {rest:02}:00:00", 1 + day / 28 % 12, 1 + day % 28)
        }
        Numeric => format!("{}.{}", number / 2, [0, 5][number % 2]),
        _ => number.to_string(),
    }
}
