//! Statements and the programs that they become: each script of `bind/` has statements, and below each its
//! program (verified and compiled), its arguments, or the error. `UPDATE_GOLDEN=1` writes what is the case.

use fabius_program::catalog::Catalog as Programs;
use fabius_program::compile::compile_whole;
use fabius_program::ir::VariableId;
use fabius_program::slice::{Assumptions, Interval};
use fabius_program::syntax::Source;
use fabius_program::verify;
use fabius_sql_meaning::catalog::store::MAIN_DATABASE;
use fabius_sql_meaning::catalog::{
    Catalog, Check, Column, Deferral, ForeignKey, Key, ObjectName, ReferentialAction, Sequence, Table,
};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_program::bind;
use fabius_sql_program::lowered::{Argument, Lowered};
use fabius_sql_syntax::normal_form::{Literal, NormalForm};
use fabius_value::{ColumnId, TableId, Value};
use std::fmt::Write;
use std::sync::Arc;

fn name(name: &str) -> ObjectName {
    ObjectName { schema: "public".into(), name: name.into() }
}

/// A column as `name type [null] [= default]`.
fn column(text: &str) -> Column {
    let (text, default) = match text.split_once(" = ") {
        Some((text, default)) => (text, Some(default.to_string())),
        None => (text, None),
    };
    let (text, nullable) = match text.strip_suffix(" null") {
        Some(text) => (text, true),
        None => (text, false),
    };
    let (name, sql_type) = text.split_once(' ').expect("a name and a type");
    let sql_type = match sql_type {
        "numeric(12,2)" => SqlType::Numeric(Some((12, 2))),
        "varchar(10)" => SqlType::VarChar(Some(10)),
        "char(4)" => SqlType::Char(4),
        plain => SqlType::of_name(plain).expect("a type"),
    };
    Column { nullable, default, ..Column::plain(name, sql_type) }
}

fn key(name: &str, columns: &str) -> Key {
    let columns = columns.split(", ").map(String::from).collect();
    Key::of(0, name.into(), columns, true)
}

fn table(oid: u32, of: &str, columns: &[&str], primary: &str) -> Table {
    Table {
        oid,
        name: name(of),
        storage: of.into(),
        columns: columns.iter().map(|text| column(text)).collect(),
        primary_key: (!primary.is_empty()).then(|| key(&format!("{of}_pkey"), primary)),
        unique: Vec::new(),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        constraint_comments: std::collections::BTreeMap::new(),
        materialized: None,
    }
}

/// The tables that all scripts are about.
fn tables() -> Vec<Table> {
    let mut t = table(1, "t", &["id int", "v int", "w bigint null", "s text null"], "id");
    t.indexes.push(key("t_v", "v"));
    let mut stock =
        table(2, "stock", &["id int", "qty int", "price numeric(12,2)", "code varchar(10) null"], "id");
    stock.unique.push(key("stock_code", "code"));
    stock.checks.push(Check { name: "stock_qty_check".into(), condition: "qty >= 0".into(), domain: None });
    let orders = [
        "shop int",
        "number bigint",
        "item int null",
        "at timestamptz null = now()",
        "note text null = 'none'",
    ];
    let mut orders = table(3, "orders", &orders, "shop, number");
    orders.indexes.push(key("orders_item", "item"));
    orders.columns[1].sequence = Some(name("orders_number_seq"));
    orders.foreign_keys.push(ForeignKey {
        name: "orders_item_fkey".into(),
        columns: vec!["item".into()],
        parent: name("stock"),
        parent_columns: vec!["id".into()],
        on_delete: ReferentialAction::NoAction,
        on_update: ReferentialAction::Cascade,
        deferral: Deferral::Never,
    });
    let lines = ["shop int", "number bigint", "position int", "amount numeric(12,2)"];
    let mut lines = table(4, "lines", &lines, "shop, number, position");
    lines.foreign_keys.push(ForeignKey {
        name: "lines_order_fkey".into(),
        columns: vec!["shop".into(), "number".into()],
        parent: name("orders"),
        parent_columns: vec!["shop".into(), "number".into()],
        on_delete: ReferentialAction::Cascade,
        on_update: ReferentialAction::NoAction,
        deferral: Deferral::Never,
    });
    let keyless = table(5, "keyless", &["a int null", "b text null"], "");
    let kinds = [
        "id uuid",
        "flag boolean",
        "day date null",
        "moment timestamp null",
        "ratio double precision null",
        "small smallint null",
        "c char(4) null",
        "j json null",
    ];
    vec![t, stock, orders, lines, keyless, table(6, "kinds", &kinds, "id")]
}

fn catalogs() -> (Catalog, Programs) {
    let mut catalog = Catalog::of(MAIN_DATABASE);
    let mut text = String::new();
    for table in tables() {
        let _ = writeln!(text, "table {} {{", table.storage);
        for column in &table.columns {
            let storage = column.sql_type.storage().expect("a column's type");
            let _ =
                writeln!(text, "`{}`: {storage}{},", column.name, if column.nullable { " null" } else { "" });
        }
        match &table.primary_key {
            Some(key) => {
                let _ = writeln!(text, "primary key ({}),", key.columns.join(", "));
            }
            None => text += "`fabius row number`: bigint,\nprimary key (`fabius row number`),\n",
        }
        for key in &table.unique {
            let _ = writeln!(text, "unique index {} ({}),", key.name, key.columns.join(", "));
        }
        for key in &table.indexes {
            let _ = writeln!(text, "index {} ({}),", key.name, key.columns.join(", "));
        }
        text += "}\n";
        catalog.tables.insert(table.name.clone(), Arc::new(table));
    }
    let sequence = Sequence {
        oid: 9,
        name: name("orders_number_seq"),
        start: 1,
        increment: 1,
        minimum: 1,
        maximum: i64::MAX,
        cycle: false,
        owner: None,
    };
    catalog.sequences.insert(sequence.name.clone(), Arc::new(sequence));
    (catalog, verify::load(&text, "tables", &Programs::new()).expect("tables"))
}

/// All numbers are small: no sum can overflow.
struct SmallNumbers;

impl Assumptions for SmallNumbers {
    fn column(&self, _: TableId, _: ColumnId) -> Option<Interval> {
        Some(Interval::new(-10_000, 10_000))
    }

    fn parameter(&self, _: VariableId, _: u16) -> Option<Interval> {
        Some(Interval::new(-10_000, 10_000))
    }
}

/// What becomes of one statement.
fn outcome(sql: &str, catalog: &Catalog, programs: &Programs) -> String {
    let dialect = sqlparser::dialect::PostgreSqlDialect {};
    let parsed = match sqlparser::parser::Parser::parse_sql(&dialect, sql) {
        Ok(parsed) => parsed,
        Err(error) => return format!("does not parse: {error}\n"),
    };
    let source = Arc::new(Source::new(sql, "statement"));
    let mut types = ParameterTypes::default();
    if let sqlparser::ast::Statement::Explain { statement, .. } = &parsed[0] {
        let lowered = bind::lower(statement, &source, catalog, &mut types, None).expect("a statement");
        let Some(lowered) = lowered else { return "no program\n".into() };
        let report = bind::explained(&lowered, programs, Some(&SmallNumbers), None).expect("a program");
        let lines = report.shown(&str::to_string);
        let paths: String = lowered.paths.iter().map(|path| format!("{path}\n")).collect();
        let mut text = format!("{paths}\n{}\n\n{lines}", report.summary);
        for (title, rows) in report.sections {
            let _ = write!(text, "\n{title}\n{rows}");
        }
        return text;
    }
    let lowered = match bind::lower(&parsed[0], &source, catalog, &mut types, None) {
        Ok(Some(lowered)) => lowered,
        Ok(None) => return "no program\n".into(),
        Err(error) => {
            let place = error.position().map_or(String::new(), |place| format!(" at {place}"));
            let detail = error.detail().map_or(String::new(), |detail| format!("\n  {detail}"));
            return format!("{}{place}: {}{detail}\n", error.state(), error.message());
        }
    };
    let mut text = lowered.definition.to_string();
    match verify::procedure(&lowered.definition, programs) {
        Ok(program) => {
            let _ = compile_whole(&program, programs);
        }
        Err(errors) => {
            let facts: Vec<&str> = errors.list.iter().map(|fact| fact.message.as_str()).collect();
            let _ = writeln!(text, "DOES NOT VERIFY: {facts:?}");
        }
    }
    for (at, argument) in lowered.arguments.iter().enumerate() {
        let _ = writeln!(text, "{} {argument:?}", if at == 0 { "arguments" } else { "         " });
    }
    let types = types.finish();
    if !types.is_empty() {
        let types: Vec<String> = types.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "parameters {}", types.join(", "));
    }
    text
}

/// A program with its arguments, as far as they do not depend on when it runs.
fn program(lowered: &Lowered, literals: &[Value]) -> String {
    fn filled(argument: &Argument, literals: &[Value]) -> Argument {
        let all = |rows: &[Vec<Argument>]| -> Vec<Vec<Argument>> {
            rows.iter().map(|row| row.iter().map(|one| filled(one, literals)).collect()).collect()
        };
        match argument {
            Argument::Literal(number) => Argument::Constant(literals[*number].clone()),
            Argument::Rows(rows) => Argument::Rows(all(rows)),
            Argument::Set(rows) => Argument::Set(all(rows)),
            other => other.clone(),
        }
    }
    let arguments: Vec<Argument> = lowered.arguments.iter().map(|one| filled(one, literals)).collect();
    format!("{}\n{arguments:?}\n{:?}", lowered.definition, lowered.shape)
}

/// A statement that runs as another of its normal form, with its own literals, is what binding makes of it.
#[test]
fn statements_of_one_normal_form_are_one_program() {
    let (catalog, _) = catalogs();
    let bound = |sql: &str, form: &NormalForm| {
        let dialect = sqlparser::dialect::PostgreSqlDialect {};
        let parsed = sqlparser::parser::Parser::parse_sql(&dialect, sql).ok()?;
        let source = Arc::new(Source::new(sql, "statement"));
        bind::lower(parsed.first()?, &source, &catalog, &mut ParameterTypes::default(), Some(form)).ok()?
    };
    let (mut tried, mut alike) = (0, 0);
    for file in std::fs::read_dir("tests/bind").expect("scripts").flatten() {
        let script = std::fs::read_to_string(file.path()).expect("a script");
        for block in format!("\n{script}").split("\n> ") {
            let sql = block.split("\n\n").next().unwrap_or_default().trim();
            let Some(form) = NormalForm::of(sql) else { continue };
            let Some(lowered) = bound(sql, &form) else { continue };
            for literal in &form.literals {
                for said in
                    ["0", "1", "2", "7", "40000", "2.5", "10.25", "", "a", "t", "2020-02-03", "a%", "x "]
                {
                    let Some(other) = replaced(sql, literal, said) else { continue };
                    let Some(others) = NormalForm::of(&other).filter(|others| others.text == form.text)
                    else {
                        continue;
                    };
                    tried += 1;
                    let values: Option<Vec<Value>> =
                        bind::arguments(&lowered.literals, &form.literals, &others.literals);
                    let Some(values) = values else { continue };
                    alike += 1;
                    let own = bound(&other, &others).unwrap_or_else(|| panic!("not bound: {other}"));
                    let own_values: Vec<Value> =
                        own.literals.iter().map(|recipe| recipe.value.clone()).collect();
                    assert_eq!(program(&lowered, &values), program(&own, &own_values), "{sql}\n{other}");
                }
            }
        }
    }
    assert!(alike > 300 && alike < tried, "{alike} of {tried} ran as another");
}

/// The text with another literal in the place of one.
fn replaced(sql: &str, literal: &Literal, said: &str) -> Option<String> {
    let line: usize = sql.split_inclusive('\n').take(literal.place.line as usize - 1).map(str::len).sum();
    let start = line + sql[line..].char_indices().nth(literal.place.column as usize - 1)?.0;
    let (before, after) = sql.split_at(start);
    let after = match after.strip_prefix('\'') {
        Some(quoted) => {
            let doubled = literal.text.matches('\'').count();
            return Some(format!("{before}'{said}{}", &quoted[literal.text.len() + doubled..]));
        }
        None => &after[literal.text.len()..],
    };
    Some(format!("{before}{said}{after}"))
}

#[test]
fn statements_become_these_programs() {
    let (catalog, programs) = catalogs();
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let (mut changed, mut refused) = (Vec::new(), Vec::new());
    let mut files: Vec<_> =
        std::fs::read_dir("tests/bind").expect("scripts").flatten().map(|entry| entry.path()).collect();
    files.sort();
    for file in files {
        let script = std::fs::read_to_string(&file).expect("a script");
        let mut now = String::new();
        for block in format!("\n{script}").split("\n> ") {
            let sql = block.split("\n\n").next().unwrap_or_default().trim();
            if !sql.is_empty() {
                let outcome = outcome(sql, &catalog, &programs);
                if outcome.contains("DOES NOT VERIFY") {
                    refused.push(sql.to_string());
                }
                let _ = write!(now, "> {sql}\n\n{outcome}\n");
            }
        }
        if now != script {
            if update {
                std::fs::write(&file, &now).expect("written");
            }
            changed.push(file.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    assert!(refused.is_empty(), "programs that do not verify: {refused:#?}");
    assert!(update || changed.is_empty(), "not as they were: {changed:?} (UPDATE_GOLDEN=1 writes them)");
}

/// Every column of every table in every kind of condition, assignment and join: what is bound verifies and compiles.
#[test]
fn whatever_is_bound_verifies() {
    let (catalog, programs) = catalogs();
    let values = [
        "1",
        "-5",
        "5000000000",
        "99999999999999999999",
        "1.5",
        "'7'",
        "'abc'",
        "'2026-01-02'",
        "true",
        "NULL",
        "$1",
        "now()",
        "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
        "$1::int",
        "$1::bigint",
        "$1::numeric",
        "$1::text",
        "$1::date",
        "1e3",
        "(SELECT max(id) FROM t)",
    ];
    let mut statements = Vec::new();
    for table in tables() {
        let of = &table.name.name;
        for column in &table.columns {
            let c = format!("\"{}\"", column.name);
            for value in values {
                for operator in ["=", "<", ">=", "<>", "IS DISTINCT FROM", "+", "||", "LIKE"] {
                    statements.push(format!("SELECT {c} {operator} {value} FROM {of} ORDER BY {c} DESC"));
                }
                statements.push(format!("SELECT * FROM {of} WHERE {c} = {value}"));
                statements.push(format!(
                    "SELECT * FROM {of} WHERE {c} BETWEEN {value} AND {value} LIMIT 2 OFFSET 1"
                ));
                statements.push(format!(
                    "SELECT min({c}), count(DISTINCT {c}), sum({c}) FROM {of} WHERE {c} > {value}"
                ));
                statements
                    .push(format!("SELECT coalesce({c}, {value}) FROM {of} WHERE {c} IN ({value}, {value})"));
                statements.push(format!("UPDATE {of} SET {c} = {value} WHERE {c} < {value} RETURNING *"));
                statements.push(format!("UPDATE {of} SET {c} = {c} + {value}"));
                statements.push(format!("DELETE FROM {of} WHERE {c} = {value} RETURNING {c}"));
                statements.push(format!("INSERT INTO {of} ({c}) VALUES ({value})"));
                let row: Vec<&str> = table.columns.iter().map(|_| value).collect();
                let row = row.join(", ");
                statements.push(format!("INSERT INTO {of} VALUES ({row})"));
                statements
                    .push(format!("INSERT INTO {of} VALUES ({row}) ON CONFLICT DO NOTHING RETURNING {c}"));
                statements
                    .push(format!("INSERT INTO {of} VALUES ({row}), ({row}), ({row}), ({row}), ({row})"));
            }
            for other in tables() {
                let (to, key) = (&other.name.name, &other.columns[0].name);
                statements.push(format!(
                    "SELECT a.*, b.* FROM {of} a JOIN {to} b ON b.{key} = a.{c} WHERE a.{c} = $1"
                ));
                statements
                    .push(format!("SELECT a.{c}, b.{key} FROM {of} a LEFT JOIN {to} b ON b.{key} = a.{c}"));
                statements.push(format!("DELETE FROM {of} a USING {to} b WHERE b.{key} = a.{c}"));
                statements.push(format!("UPDATE {of} a SET {c} = b.{key} FROM {to} b WHERE b.{key} = a.{c}"));
                statements.push(format!("INSERT INTO {of} ({c}) SELECT {key} FROM {to} WHERE {key} = $1"));
                statements
                    .push(format!("SELECT EXISTS (SELECT 1 FROM {to} b WHERE b.{key} = a.{c}) FROM {of} a"));
            }
        }
    }
    let (mut refused, mut programs_made) = (Vec::new(), 0);
    for sql in statements {
        let outcome = outcome(&sql, &catalog, &programs);
        programs_made += usize::from(outcome.starts_with("procedure"));
        if let Some((_, facts)) = outcome.split_once("DOES NOT VERIFY: ") {
            refused.push(format!("{sql}: {}", facts.lines().next().unwrap_or_default()));
        }
    }
    assert!(refused.is_empty(), "{} do not verify: {:#?}", refused.len(), &refused[..refused.len().min(40)]);
    assert!(programs_made > 2000, "only {programs_made} programs");
}
