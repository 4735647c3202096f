//! Goal: functions and procedures give what PostgreSQL gives, as programs that can be read.
//!
//! Each file in `tests/functions` is a list of cases: `=== name`, statements with empty lines between them, `---`,
//! what each gave. `explain` before a statement shows its program instead. The case named `schema` is run before
//! each of the others. `UPDATE_GOLDEN=1 cargo test` rewrites outputs.

use fabius::{Database, Error, Options, Value};
use fabius_program::syntax::Source;
use fabius_sql_meaning::catalog::store::MAIN_DATABASE;
use fabius_sql_meaning::catalog::{Catalog, Column, Key, ObjectName, Table};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_program::bind;
use fabius_sql_program::lowered::{Argument, Lowered, Shape};
use fabius_sql_program::plpgsql;
use sqlparser::ast;
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A database with its catalog, without a connection's other concerns.
struct World {
    database: Database,
    catalog: Catalog,
    sequences: BTreeMap<ObjectName, i64>,
}

impl World {
    fn new() -> World {
        let database = Database::in_memory(Options::default());
        let catalog = Catalog::of(MAIN_DATABASE);
        World { database, catalog, sequences: BTreeMap::new() }
    }

    /// Runs a statement; what it gave, as text.
    fn run(&mut self, text: &str) -> String {
        self.try_run(text).unwrap_or_else(|error| show_error(&error))
    }

    fn try_run(&mut self, text: &str) -> Result<String, Error> {
        let (text, explains) = match text.strip_prefix("explain ") {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if plpgsql::is_create(text) {
            let creation = plpgsql::create(text, &self.catalog)?;
            let functions = self.catalog.functions.entry(creation.function.name.clone()).or_default();
            functions.retain(|known| creation.function.oid == 0 || known.oid != creation.function.oid);
            let mut function = creation.function;
            function.oid = functions.len() as u32 + 1;
            functions.push(Arc::new(function));
            return Ok(String::new());
        }
        if plpgsql::is_do(text) {
            let lowered = plpgsql::lower_do(text, &self.catalog)?;
            return if explains { Ok(lowered.definition.to_string()) } else { self.execute(&lowered) };
        }
        let parser = Parser::new(&PostgreSqlDialect {}).try_with_sql(text);
        let statement = parser.and_then(|mut parser| parser.parse_statement()).expect("a statement");
        if let ast::Statement::CreateTable(table) = &statement {
            self.create_table(table);
            return Ok(String::new());
        }
        let source = Arc::new(Source::new(text, ""));
        let mut types = ParameterTypes::default();
        let lowered = match plpgsql::lower_call(&statement, &source, &self.catalog, &mut types, None)? {
            Some(lowered) => lowered,
            None => match bind::lower(&statement, &source, &self.catalog, &mut types, None)? {
                Some(lowered) => lowered,
                None => return Ok("no program".into()),
            },
        };
        if explains { Ok(lowered.definition.to_string()) } else { self.execute(&lowered) }
    }

    fn create_table(&mut self, create: &ast::CreateTable) {
        let name = create.name.to_string();
        let mut key = Vec::new();
        let mut columns = Vec::new();
        for column in &create.columns {
            let is = |wanted: fn(&ast::ColumnOption) -> bool| {
                column.options.iter().any(|option| wanted(&option.option))
            };
            let is_key = is(|option| matches!(option, ast::ColumnOption::PrimaryKey(_)));
            if is_key {
                key.push(column.name.value.clone());
            }
            columns.push(Column {
                nullable: !is_key && !is(|option| matches!(option, ast::ColumnOption::NotNull)),
                ..Column::plain(
                    column.name.value.clone(),
                    SqlType::from_ast(&column.data_type).expect("a type"),
                )
            });
        }
        for constraint in &create.constraints {
            if let ast::TableConstraint::PrimaryKey(primary) = constraint {
                key.extend(primary.columns.iter().map(|column| column.column.expr.to_string()));
            }
        }
        for column in &mut columns {
            column.nullable &= !key.contains(&column.name);
        }
        let mut text = format!("table {name} {{\n");
        for column in &columns {
            let null = if column.nullable { " null" } else { "" };
            let storage = column.sql_type.storage().expect("a type of columns");
            writeln!(text, "{}: {storage}{null},", column.name).expect("written");
        }
        writeln!(text, "primary key ({}) }}", key.join(", ")).expect("written");
        self.database.define(&text).expect("a table");
        let object = ObjectName { schema: "public".into(), name: name.clone() };
        let primary_key = Key::of(2, format!("{name}_pkey"), key, true);
        let table = Table {
            oid: 1,
            name: object.clone(),
            storage: name,
            columns,
            primary_key: Some(primary_key),
            unique: Vec::new(),
            indexes: Vec::new(),
            checks: Vec::new(),
            foreign_keys: Vec::new(),
            constraint_comments: std::collections::BTreeMap::new(),
            materialized: None,
        };
        self.catalog.tables.insert(object, Arc::new(table));
    }

    fn argument(&mut self, argument: &Argument) -> Value {
        match argument {
            Argument::Constant(value) => value.clone(),
            Argument::TransactionTime => Value::Timestamp(0),
            Argument::NextValue(sequence) => {
                let last = self.sequences.entry(sequence.clone()).or_default();
                *last += 1;
                Value::BigInt(*last)
            }
            Argument::Rows(rows) | Argument::Set(rows) => {
                let row = |row: &Vec<Argument>| row.iter().map(|value| self.argument(value)).collect();
                Value::List(rows.iter().map(row).collect())
            }
            other => panic!("no value for {other:?}"),
        }
    }

    fn execute(&mut self, lowered: &Lowered) -> Result<String, Error> {
        let arguments: Vec<Value> =
            lowered.arguments.iter().map(|argument| self.argument(argument)).collect();
        let statement = match self.database.statement(&lowered.definition) {
            Ok(statement) => statement,
            Err(error) => return Ok(format!("NOT A PROGRAM:\n{}\n{error}\n", lowered.definition)),
        };
        let outcome = futures::executor::block_on(self.database.run(&statement, &arguments, None))?;
        let mut results = outcome.results;
        let mut text = String::new();
        if lowered.notices {
            for notice in rows(&results.pop().expect("notices")) {
                let [severity, _, message, detail, hint] = &notice[..] else {
                    panic!("a notice has 5 fields")
                };
                writeln!(text, "{severity}:  {message}").expect("written");
                for (word, more) in [("DETAIL", detail), ("HINT", hint)] {
                    if !more.is_empty() {
                        writeln!(text, "{word}:  {more}").expect("written");
                    }
                }
            }
        }
        match &lowered.shape {
            Shape::Rows(columns) => {
                let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                writeln!(text, "{}", names.join("|")).expect("written");
                for row in rows(&results[0]) {
                    writeln!(text, "{}", row.join("|")).expect("written");
                }
            }
            Shape::Count => writeln!(text, "{} {}", lowered.tag, show(&results[0])).expect("written"),
            Shape::CountAndRows(_) => {
                writeln!(text, "{} {:?}", lowered.tag, rows(&results[1])).expect("written")
            }
            Shape::OneRow(columns) if columns.is_empty() => {
                writeln!(text, "{}", lowered.tag).expect("written")
            }
            Shape::OneRow(columns) => {
                let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                let row: Vec<String> = results.iter().map(show).collect();
                writeln!(text, "{}\n{}", names.join("|"), row.join("|")).expect("written");
            }
        }
        Ok(text)
    }
}

fn rows(list: &Value) -> Vec<Vec<String>> {
    let Value::List(list) = list else { panic!("a list") };
    list.iter().map(|row| row.iter().map(show).collect()).collect()
}

/// A value as psql shows it.
fn show(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Boolean(value) => if *value { "t" } else { "f" }.into(),
        Value::Text(text) => text.to_string(),
        other => other.to_string(),
    }
}

fn show_error(error: &Error) -> String {
    let mut text = format!("ERROR:  {}: {}\n", error.state(), error.message());
    if let Some(line) = error.line().filter(|_| error.place().is_some_and(|place| place.context.is_some())) {
        writeln!(text, "LINE:  {line}").expect("written");
    }
    for (word, more) in [("DETAIL", error.detail()), ("HINT", error.hint())] {
        if let Some(more) = more {
            writeln!(text, "{word}:  {more}").expect("written");
        }
    }
    text
}

fn run_file(path: &Path) {
    let content = std::fs::read_to_string(path).expect("a file of cases");
    let (head, cases) = content.split_once("=== ").expect("a file has cases");
    let mut rewritten = head.to_string();
    let mut schema = String::new();
    for case in cases.split("\n=== ") {
        let (name, rest) = case.split_once('\n').expect("a case has a name");
        let text = rest.split_once("\n---").map_or(rest, |(text, _)| text).trim_end();
        if name == "schema" {
            schema = text.to_string();
            write!(rewritten, "=== {name}\n{text}\n\n").expect("written");
            continue;
        }
        let mut world = World::new();
        for statement in schema.split("\n\n").filter(|statement| !statement.trim().is_empty()) {
            let given = world.run(statement.trim().trim_end_matches(';'));
            assert!(!given.starts_with("ERROR"), "{given}");
        }
        let mut output = String::new();
        for statement in text.split("\n\n") {
            output += &world.run(statement.trim().trim_end_matches(';'));
        }
        write!(rewritten, "=== {name}\n{text}\n---\n{}\n\n", output.trim_end()).expect("written");
    }
    let rewritten = format!("{}\n", rewritten.trim_end());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, rewritten).expect("the file is rewritten");
        return;
    }
    for (line, (was, is)) in content.lines().zip(rewritten.lines()).enumerate() {
        assert_eq!(
            was,
            is,
            "{}:{}: run with UPDATE_GOLDEN=1 and read the difference",
            path.display(),
            line + 1
        );
    }
    assert_eq!(
        content.lines().count(),
        rewritten.lines().count(),
        "{}: run with UPDATE_GOLDEN=1",
        path.display()
    );
}

#[test]
fn functions_give_what_is_written_down() {
    let mut files: Vec<PathBuf> = std::fs::read_dir("tests/functions")
        .expect("the cases")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let only = std::env::var("ONLY").unwrap_or_default();
    for file in files.iter().filter(|file| file.to_string_lossy().contains(&only)) {
        run_file(file);
    }
}
