//! Tables: their text, and the text of a program that loads one.

use fabius_env::Random;
use fabius_value::TableSchema;

/// Types of a key's first column: mostly integers, which loops count and arguments hit.
const KEY_TYPES: &[&str] = &[
    "int",
    "int",
    "int",
    "bigint",
    "bigint",
    "smallint",
    "varchar(4)",
    "varchar(4)",
    "char(4)",
    "bytea",
    "date",
    "timestamp",
    "numeric(4, 1)",
];

/// Types of a key's second column.
const SECOND_KEY_TYPES: &[&str] = &["int", "int", "bigint", "bytea", "timestamp"];

const COLUMN_TYPES: &[&str] = &[
    "int",
    "int",
    "bigint",
    "smallint",
    "numeric(6, 2)",
    "numeric(12, 2)",
    "numeric(30, 4)",
    "double precision",
    "varchar(12)",
    "text",
    "char(6)",
    "boolean",
    "date",
    "timestamp",
    "timestamp",
    "bytea",
    "bytea",
];

/// The text of a schema.
pub(super) fn text(random: &mut Random) -> String {
    let tables = 2 + random.index(2);
    (0..tables).map(|at| table(random, at)).collect()
}

fn table(random: &mut Random, at: usize) -> String {
    let keys = 1 + usize::from(random.chance(1, 3));
    let few = 3 + random.index(4);
    // Masks of columns have halves.
    let columns = if random.chance(1, 16) { few + 31 } else { few };
    let mut parts = Vec::new();
    for key in 0..keys {
        let types = if key == 0 { KEY_TYPES } else { SECOND_KEY_TYPES };
        let data_type = types[random.index(types.len())];
        parts.push(format!("k{key}: {data_type}"));
    }
    for column in 0..columns {
        // Every table has something to count with.
        let data_type = if column == 0 { "int" } else { COLUMN_TYPES[random.index(COLUMN_TYPES.len())] };
        let is_nullable = column >= few || column > 0 && random.chance(1, 3);
        let null = if is_nullable { " null" } else { "" };
        parts.push(format!("c{column}: {data_type}{null}"));
    }
    let names: Vec<String> = (0..keys).map(|key| format!("k{key}")).collect();
    let hash = if random.chance(1, 4) { " using hash" } else { "" };
    parts.push(format!("primary key ({}){hash}", names.join(", ")));
    for index in 0..random.index(3) {
        let first = random.index(columns);
        let unique = if random.chance(1, 8) { "unique " } else { "" };
        let second = random.index(columns);
        let more =
            if second != first && random.chance(1, 3) { format!(", c{second}") } else { String::new() };
        parts.push(format!("{unique}index i{index} (c{first}{more})"));
    }
    format!("table t{at} {{\n    {}\n}}\n", parts.join(",\n    "))
}

/// The text of a program that inserts one row given as arguments.
pub(super) fn loader(table: &TableSchema) -> String {
    let parameters: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            format!("{}: {}{}", column.name, column.data_type, if column.nullable { " null" } else { "" })
        })
        .collect();
    let values: Vec<String> = table.columns.iter().map(|column| format!("{0}: {0}", column.name)).collect();
    let (name, parameters, values) = (&table.name, parameters.join(", "), values.join(", "));
    format!("procedure load_{name}({parameters}) {{\n    insert {name} {{ {values} }}\n}}\n")
}
