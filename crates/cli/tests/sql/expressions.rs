//! Single expressions, run as a program and as a query: both are what PostgreSQL says.
//!
//! A file in `expressions` has one expression a line, about the columns of [`TABLE`] or about none, and what
//! PostgreSQL 15 gives: the letter of its type (`client.rs`) and its value, or a SQLSTATE. Where Fabius gives
//! something else, lines below say what, and how it was run:
//!
//! ```text
//! i / 3.0 --> N 2.3333333333333333
//!     query --> N 2.3333333333
//! ```
//!
//! `UPDATE_SCRIPTS=1` writes what comes.

use crate::client::Client;
use sqllogictest::DBOutput;
use sqllogictest::harness::Failed;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A table with one row that has a column of each type.
const TABLE: &str = "CREATE TABLE one (id int PRIMARY KEY, s smallint, i int, b bigint, m numeric(10,2), u numeric, r real,
    x double precision, t text, v varchar(8), c char(4), f boolean, d date, h time, p timestamp, z timestamptz, e interval, y bytea,
    g uuid, j jsonb, a int[], nothing int)";
const ROW: &str =
    "INSERT INTO one VALUES (1, 2, 7, 3000000000, 12.50, 1.23456789, 1.5, 2.5, 'text', 'abc', 'ab', true,
    '2024-01-31', '10:30:00', '2024-01-31 10:30:00', '2024-01-31 10:30:00+00', '1 day 02:00:00', '\\x0102',
    'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{\"a\": 1}', '{1,2,3}', NULL)";

/// What stands between an expression and what it gives.
const GIVES: &str = " --> ";
const INDENT: &str = "    ";

/// The ways in which an expression is run.
const WAYS: [(&str, &str, &str); 2] = [
    ("program", "SELECT ", " AS v FROM one WHERE id = 1"),
    ("query", "WITH same AS (SELECT ", " AS v FROM one WHERE id = 1) SELECT v FROM same"),
];

/// A file of expressions.
pub struct Expressions {
    pub name: String,
    path: PathBuf,
}

/// A line of it: an expression with what it gives, and what it gives here, if that is something else.
struct Case {
    expression: String,
    gives: String,
    differs: Vec<(String, String)>,
}

/// A part of a file.
enum Part {
    /// A comment, or nothing.
    Text(String),
    Case(Case),
}

impl Expressions {
    /// Those of a folder, by name.
    pub fn all(folder: &Path) -> Vec<Expressions> {
        let entries = std::fs::read_dir(folder).expect("the expressions").flatten();
        let mut all: Vec<Expressions> = entries
            .filter_map(|entry| {
                let name = entry.file_name().to_str()?.strip_suffix(".txt")?.to_string();
                Some(Expressions { name, path: entry.path() })
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    fn parts(&self) -> Result<Vec<Part>, Failed> {
        let mut parts: Vec<Part> = Vec::new();
        for line in std::fs::read_to_string(&self.path)?.lines() {
            if line.is_empty() || line.starts_with('#') {
                parts.push(Part::Text(line.to_string()));
                continue;
            }
            let (left, gives) = line.rsplit_once(GIVES).unwrap_or((line, ""));
            match (left.strip_prefix(INDENT), parts.last_mut()) {
                (Some(way), Some(Part::Case(case))) => case.differs.push((way.into(), gives.into())),
                _ => parts.push(Part::Case(Case {
                    expression: left.into(),
                    gives: gives.into(),
                    differs: Vec::new(),
                })),
            }
        }
        Ok(parts)
    }

    /// Checks what PostgreSQL gives.
    ///
    /// # Errors
    /// What differs.
    pub fn check_postgresql(&self, mut client: Client) -> Result<(), Failed> {
        prepare(&mut client)?;
        let mut wrong = String::new();
        for case in self.parts()?.iter().filter_map(Part::case) {
            let gives = given(&mut client, WAYS[0], &case.expression);
            if gives != case.gives {
                writeln!(wrong, "{}\n  gives {gives}\n  expected {}", case.expression, case.gives)?;
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
    }

    /// Checks what Fabius gives.
    ///
    /// # Errors
    /// What differs.
    pub fn check_fabius(&self, mut client: Client) -> Result<(), Failed> {
        prepare(&mut client)?;
        let mut wrong = String::new();
        for case in self.parts()?.iter().filter_map(Part::case) {
            for way in WAYS {
                let gives = given(&mut client, way, &case.expression);
                let known = case.differs.iter().find(|(name, _)| name == way.0);
                let expected = known.map_or(&case.gives, |(_, gives)| gives);
                if gives != *expected {
                    writeln!(wrong, "{}\n  {} gives {gives}\n  expected {expected}", case.expression, way.0)?;
                }
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
    }

    /// Writes what both give.
    ///
    /// # Errors
    /// If it cannot be read or written.
    pub fn update(&self, mut postgresql: Client, mut fabius: Client) -> Result<(), Failed> {
        prepare(&mut postgresql)?;
        prepare(&mut fabius)?;
        let mut text = String::new();
        for part in self.parts()? {
            let case = match part {
                Part::Text(line) => {
                    writeln!(text, "{line}")?;
                    continue;
                }
                Part::Case(case) => case,
            };
            let gives = given(&mut postgresql, WAYS[0], &case.expression);
            writeln!(text, "{}{GIVES}{gives}", case.expression)?;
            for way in WAYS {
                let here = given(&mut fabius, way, &case.expression);
                if here != gives {
                    writeln!(text, "{INDENT}{}{GIVES}{here}", way.0)?;
                }
            }
        }
        Ok(std::fs::write(&self.path, text)?)
    }
}

impl Part {
    fn case(&self) -> Option<&Case> {
        match self {
            Part::Text(_) => None,
            Part::Case(case) => Some(case),
        }
    }
}

fn prepare(client: &mut Client) -> Result<(), Failed> {
    for text in ["SET timezone = 'UTC'", TABLE, ROW] {
        client.answer(text).map_err(|refused| format!("{text}: {refused}"))?;
    }
    Ok(())
}

fn given(client: &mut Client, (_, before, behind): (&str, &str, &str), expression: &str) -> String {
    match client.answer(&format!("{before}{expression}{behind}")) {
        Ok(DBOutput::Rows { types, rows }) => {
            let letters: String = types.iter().map(sqllogictest::ColumnType::to_char).collect();
            let values: Vec<String> =
                rows.into_iter().flatten().map(|value| value.escape_debug().to_string()).collect();
            format!("{letters} {}", values.join(" "))
        }
        Ok(_) => "no rows".into(),
        Err(refused) => refused.state,
    }
}
