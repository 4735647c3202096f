//! Golden explanations: how each procedure splits, and why.
//!
//! A case is a file of `tests/explain/`: programs to load, the procedure, and what is assumed of the
//! data, followed by the explanation that is expected:
//!
//! ```text
//! program ../../../bench/programs/bank.fab
//! procedure transfer
//! assume accounts.balance in 0 .. 1000000.00
//! assume parameter amount in 0.01 .. 10000.00
//! ----
//! transfer: ...
//! ```
//!
//! Lines that start with `| ` are a program in place. `UPDATE_GOLDEN=1` rewrites what follows the line of dashes.

use fabius_program::catalog::Catalog;
use fabius_program::explain::explain;
use fabius_program::ir::{Program, Type, VariableId};
use fabius_program::slice::{Assumptions, Interval, slice};
use fabius_program::verify::load;
use fabius_value::{ColumnId, DataType, Decimal, TableId};
use std::fmt::Write;
use std::path::Path;

#[derive(Default)]
struct Assumed {
    columns: Vec<(TableId, ColumnId, Interval)>,
    parameters: Vec<(VariableId, u16, Interval)>,
    lengths: Vec<(VariableId, u64)>,
}

impl Assumptions for Assumed {
    fn column(&self, table: TableId, column: ColumnId) -> Option<Interval> {
        self.columns.iter().find(|(t, c, _)| (*t, *c) == (table, column)).map(|found| found.2)
    }

    fn parameter(&self, parameter: VariableId, field: u16) -> Option<Interval> {
        self.parameters.iter().find(|(p, f, _)| (*p, *f) == (parameter, field)).map(|found| found.2)
    }

    fn length(&self, parameter: VariableId) -> Option<u64> {
        self.lengths.iter().find(|(p, _)| *p == parameter).map(|found| found.1)
    }
}

fn interval(text: &str, data_type: DataType) -> Interval {
    let (low, high) = text.split_once("..").expect("low .. high");
    let number = |text: &str| {
        let decimal = Decimal::parse(text.trim()).expect("a number");
        decimal.rescale(data_type.scale()).expect("fits").mantissa
    };
    Interval::new(number(low), number(high))
}

/// `accounts.balance in 0 .. 5`, `parameter lines.quantity in 1 .. 10`, `length lines 15`.
fn assume(text: &str, program: &Program, catalog: &Catalog, assumed: &mut Assumed) {
    let variable = |name: &str| {
        let at = program.variables.iter().position(|variable| variable.name == name).expect("a parameter");
        VariableId(at as u16)
    };
    if let Some(length) = text.strip_prefix("length ") {
        let (name, most) = length.split_once(' ').expect("list and length");
        assumed.lengths.push((variable(name), most.parse().expect("a number")));
        return;
    }
    let (name, range) = text.split_once(" in ").expect("name in range");
    let Some(parameter) = name.strip_prefix("parameter ") else {
        let (table, column) = name.split_once('.').expect("table.column");
        let table = catalog.find_table(table).unwrap_or_else(|| panic!("no table {table}"));
        let schema = catalog.table(table);
        let column = schema.column(column).unwrap_or_else(|| panic!("no column {column}"));
        assumed.columns.push((table, column, interval(range, schema.data_type(column))));
        return;
    };
    let (name, field) = parameter.split_once('.').unwrap_or((parameter, ""));
    let parameter = variable(name);
    let (field, data_type) = match &program.variables[usize::from(parameter.0)].ty {
        Type::Scalar(scalar) => (0, scalar.data_type),
        Type::List(fields) => {
            let field = fields.iter().position(|f| f.name == field).expect("a field");
            (field as u16, fields[field].scalar.data_type)
        }
    };
    assumed.parameters.push((parameter, field, interval(range, data_type)));
}

/// Runs a case's header; the explanation.
fn run(header: &str, directory: &Path) -> String {
    let mut catalog = Catalog::new();
    let mut output = String::new();
    let mut procedure: Option<Program> = None;
    let mut assumed = Assumed::default();
    let inline: Vec<&str> = header.lines().filter_map(|line| line.strip_prefix("| ")).collect();
    if !inline.is_empty() {
        catalog = load(&inline.join("\n"), "inline", &catalog).unwrap_or_else(|errors| panic!("{errors}"));
    }
    for line in header.lines().filter(|line| !line.starts_with(['#', '|']) && !line.is_empty()) {
        let (word, rest) = line.split_once(' ').expect("a word and more");
        match word {
            "program" => {
                let text = std::fs::read_to_string(directory.join(rest)).expect("a program file");
                catalog = load(&text, rest, &catalog).unwrap_or_else(|errors| panic!("{errors}"));
            }
            "procedure" => {
                let id = catalog.find_procedure(rest).unwrap_or_else(|| panic!("no procedure {rest}"));
                procedure = catalog.procedure(id).map(|program| Program::clone(program));
            }
            "assume" => {
                assume(rest, procedure.as_ref().expect("a procedure first"), &catalog, &mut assumed);
            }
            other => panic!("unknown word {other}"),
        }
    }
    let program = procedure.expect("a procedure");
    let phases = slice(&program, &catalog, &assumed);
    write!(output, "{}", explain(&program, &catalog, &phases)).expect("a string takes it");
    output
}

/// Goal: every case explains as written down.
#[test]
fn explanations_are_as_written_down() {
    let directory = Path::new("tests/explain");
    let mut cases: Vec<_> = std::fs::read_dir(directory)
        .expect("the cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "golden"))
        .collect();
    cases.sort();
    assert!(cases.len() >= 5, "cases are missing");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    for case in cases {
        let text = std::fs::read_to_string(&case).expect("a case");
        let (header, expected) = text.split_once("----\n").expect("a line of dashes");
        let explained = run(header, directory);
        if update {
            std::fs::write(&case, format!("{header}----\n{explained}")).expect("the case is rewritten");
        } else {
            assert_eq!(explained, expected, "{}", case.display());
        }
    }
}
