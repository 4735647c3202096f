//! Statements that are valid, run as programs and as queries: the two ways of running SQL agree.
//!
//! ```text
//! bytes           choices of the generator, two bytes for each
//! ```
//!
//! | statement | as a program, if there is one | as a query |
//! |---|---|---|
//! | `SELECT ...` | as it is | `WITH same AS (SELECT ...) SELECT * FROM same` |
//! | `UPDATE`, `DELETE ... WHERE c` | as it is | `... WHERE (WITH one AS (SELECT true AS t) SELECT t FROM one) AND (c)` |
//! | `INSERT ... SELECT ...` | as it is | `INSERT ... WITH same AS (SELECT ...) SELECT * FROM same` |
//!
//! Programs have no `WITH`, so that the second form goes the other way. Types and rows, or the SQLSTATE, are the same;
//! writes leave the same rows.

use crate::input::Input;
use crate::sql_generator::{Generator, Kind};
use crate::sql_rig::{Rig, Shown};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::Result;

/// Tables with some of everything; numbers are small, so that nothing overflows.
const TABLES: &str = "
    CREATE TABLE a (id int PRIMARY KEY, n int, b bigint NOT NULL, m numeric(10,2), t text, v varchar(8), f boolean,
        d date, s timestamp, x double precision);
    CREATE INDEX a_n ON a (n, t);
    CREATE UNIQUE INDEX a_b ON a (b);
    CREATE TABLE c (k1 int, k2 text, n int NOT NULL, m numeric(6,3), f boolean NOT NULL DEFAULT true, PRIMARY KEY (k1, k2));
    CREATE INDEX c_n ON c (n);
    INSERT INTO a VALUES
        (1, 1, 10, 1.50, 'one', 'a', true, '2024-01-31', '2024-01-31 10:00:00', 0.5),
        (2, NULL, 20, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
        (3, -3, 30, -2.25, 'Three', 'bc', false, '1999-12-31', '1999-12-31 23:59:59.5', -1.25),
        (4, 1, 40, 0.00, '', '', true, '2024-02-29', '2024-02-29 00:00:00', 0),
        (5, 7, -50, 99.99, 'one', 'a%b_', false, '2024-01-31', NULL, 100);
    INSERT INTO c VALUES (1, 'one', 1, 1.125, true), (1, 'two', 2, NULL, false), (3, 'Three', 1, -0.5, true), (9, '', -4, 0, false)";

pub(crate) fn run(bytes: &[u8]) {
    let mut generator = Generator::new(Input::new(bytes));
    let mut rigs = [Rig::new(TABLES), Rig::new(TABLES)];
    for _ in 0..STATEMENTS {
        let statement = generator.statement();
        let (program, query) = (statement.plain(), statement.as_query());
        let [one, other] = &mut rigs;
        let told = || format!("{program}\n{query}");
        agree(&one.one(&program), &other.one(&query), &told());
        if statement.kind != Kind::Select {
            for table in ["a", "c"] {
                let rows = format!("SELECT * FROM {table}");
                agree(&one.one(&rows), &other.one(&rows), &told());
            }
        }
    }
    rigs.into_iter().for_each(Rig::check);
}

/// Statements of one input.
const STATEMENTS: usize = 4;

fn agree(one: &Result<Shown>, other: &Result<Shown>, told: &str) {
    match (one, other) {
        (Ok(one), Ok(other)) => {
            let types = |shown: &Shown| -> Vec<SqlType> { shown.types.iter().map(plain).collect() };
            assert_eq!(types(one), types(other), "types\n{told}");
            assert_eq!(one.tag, other.tag, "tags\n{told}");
            let sorted = |shown: &Shown| {
                let cells = |row: &Vec<Option<String>>| -> Vec<Option<String>> {
                    row.iter()
                        .zip(&shown.types)
                        .map(|(cell, of)| cell.as_deref().map(|text| value(text, of)))
                        .collect()
                };
                let mut rows: Vec<_> = shown.rows.iter().map(cells).collect();
                rows.sort();
                rows
            };
            assert_eq!(sorted(one), sorted(other), "rows\n{told}");
        }
        (Err(one), Err(other)) => assert_eq!(one.state(), other.state(), "{one:?}\n{other:?}\n{told}"),
        (Ok(rows), Err(error)) => panic!("as a query: {error:?}, as a program: {rows:?}\n{told}"),
        (Err(error), Ok(rows)) => panic!("as a program: {error:?}, as a query: {rows:?}\n{told}"),
    }
}

/// A value's text; of numbers without the zeros at their ends, as the digits after the point may differ.
fn value(text: &str, of: &SqlType) -> String {
    match of {
        SqlType::Numeric(_) if text.contains('.') => {
            text.trim_end_matches('0').trim_end_matches('.').to_string()
        }
        _ => text.to_string(),
    }
}

/// The type without the digits that a cast has asked for: what surrounds the query does not know them.
fn plain(sql_type: &SqlType) -> SqlType {
    match sql_type {
        SqlType::Numeric(_) => SqlType::Numeric(None),
        SqlType::VarChar(_) => SqlType::VarChar(None),
        other => other.clone(),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    (0..60u64)
        .map(|seed| {
            let mut random = fabius_env::Random::seeded(seed);
            let mut bytes = vec![0; 400];
            random.fill(&mut bytes);
            bytes
        })
        .collect()
}
