//! Functions by name, as PostgreSQL has them.
//!
//! Each is declared by its signature as PostgreSQL writes it and a body over values; see [`Definition`]. One
//! table of them serves binding (which overload?), running, and `pg_proc`.
//!
//! | module | functions |
//! |---|---|
//! | [`aggregate`] | of the rows of a group |
//! | [`array`] | of arrays |
//! | [`catalog`] | about the catalog: `pg_get_indexdef`, `format_type` |
//! | [`cluster`] | about the cluster and its nodes |
//! | [`degrees`] | of angles in degrees |
//! | `digest` | digests of bytes |
//! | `defined_type` | of enumerations and domains |
//! | [`json`] | of `json` and `jsonb` |
//! | [`moment`] | of dates, times and intervals |
//! | `moment_pattern` | moments by the patterns of `to_char` |
//! | `moment_reading` | moments read by such a pattern |
//! | [`network`] | of addresses of hosts and networks |
//! | [`number`] | of numbers |
//! | [`number_pattern`] | numbers by patterns |
//! | [`operator`] | operators, which are called by symbols |
//! | [`over_window`] | of a row and those of its window |
//! | `regexp` | of regular expressions |
//! | [`regular_expression`] | patterns: `~`, `LIKE`, `SIMILAR TO` |
//! | [`resolution`] | which of several functions is called |
//! | [`privilege`] | about roles and what they may do |
//! | `python` | what functions of Python are lowered onto |
//! | [`session`] | about the session and its locks |
//! | [`text`] | of text and bytes |

pub mod aggregate;
pub mod array;
mod call;
pub mod catalog;
pub mod cluster;
mod defined_type;
pub mod degrees;
mod digest;
pub mod json;
pub mod moment;
mod moment_pattern;
mod moment_reading;
pub mod network;
pub mod number;
pub mod number_pattern;
pub mod operator;
pub mod over_window;
pub mod privilege;
mod python;
mod regexp;
pub mod regular_expression;
pub mod resolution;
pub mod session;
pub mod text;

pub use call::{Call, Environment};

use crate::catalog::{Catalog, folded};
use crate::sql_type::SqlType;
use crate::type_rules::ANY_CHAR;
use fabius_program::ir::Function;
use fabius_program::operation::function::{self, Signature};
use fabius_value::{Error, Result, SqlState, Value};
use sqlparser::ast::{self, Visit};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// When the same arguments give the same result (`pg_proc.provolatile`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Volatility {
    /// Always.
    Immutable,
    /// Within a statement.
    Stable,
    /// Never.
    Volatile,
}

/// The type of a parameter or result.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// This type.
    Is(SqlType),
    /// Any type.
    Any,
    /// Any type but arrays.
    NonArray,
    /// Any type, the same everywhere in the signature.
    Element,
    /// Any enumeration, the same everywhere in the signature.
    Enumeration,
    /// An array of that type.
    Array,
    /// A type that all arguments of this kind become implicitly.
    Compatible,
    /// An array of that type.
    CompatibleArray,
}

/// What a function does with its arguments, written for values.
pub type Kernel = fn(&[Value], &Call) -> Result<Value>;

/// What a function does.
#[derive(Clone, Copy)]
pub enum Body {
    /// Computes values from values.
    OfValues(Kernel),
    /// What a function of programs does.
    OfPrograms(&'static Signature),
    /// What programs and queries have instructions for.
    BuiltIn(operator::BuiltIn),
    /// Computes a value of the rows of a group.
    Aggregate(aggregate::Aggregate),
    /// Computes a value of a row and those of its window.
    OverWindow(over_window::OverWindow),
}

/// A function or an operator.
#[derive(Clone)]
pub struct Definition {
    /// The function's name.
    pub name: String,
    /// What the function takes.
    pub parameters: Vec<Kind>,
    /// How many of the last parameters may be left out.
    pub optional: usize,
    /// Whether the last parameter may be given any number of times.
    pub is_variadic: bool,
    /// What the function gives.
    pub returns: Kind,
    /// Whether null as an argument makes the result null without asking.
    pub is_strict: bool,
    /// Whether the same arguments give the same result: always, within a statement, never.
    pub volatility: Volatility,
    /// How the result is computed.
    pub body: Body,
    /// The function of programs that does the same, by its name there.
    pub program: Option<&'static str>,
}

impl Definition {
    /// Computes the function.
    ///
    /// # Errors
    /// What the function refuses.
    pub fn apply(&self, arguments: &[Value], call: &Call) -> Result<Value> {
        if self.is_strict && arguments.iter().any(Value::is_null) {
            return Ok(Value::Null);
        }
        match self.body {
            Body::OfValues(kernel) => kernel(arguments, call),
            Body::OfPrograms(line) => function::of_values(line, arguments),
            Body::BuiltIn(_) | Body::Aggregate(_) | Body::OverWindow(_) => {
                Err(Error::new(SqlState(*b"XX000"), format!("{} is no function of one row", self.name)))
            }
        }
    }

    /// Whether users call it by its name: it is neither an operator nor behind one.
    pub fn has_public_name(&self) -> bool {
        self.name.starts_with(char::is_alphabetic) && !self.name.starts_with("fabius_")
    }

    /// The function, which programs have under a name of their own.
    fn in_programs(self, name: &'static str) -> Definition {
        Definition { program: Some(name), ..self }
    }
}

/// A function from its signature: `lower(text) text`, `round(numeric, int?) numeric`, `concat(any...) text`. Words
/// behind it: `null` for a function that is asked about null too, `stable`, `volatile`.
fn define(signature: &str, kernel: Kernel) -> Definition {
    declare(signature, Body::OfValues(kernel))
}

/// A function, by its signature, that does what one of programs does.
fn of_programs(signature: &str, function: Function) -> Definition {
    let line = Signature::of(function).expect("a function of fixed types");
    declare(signature, Body::OfPrograms(line)).in_programs(line.name)
}

fn declare(signature: &str, body: Body) -> Definition {
    let (name, rest) = signature.split_once('(').expect("a signature has parameters");
    let (parameters, rest) = rest.split_once(')').expect("a signature's parameters end");
    let mut words = rest.split_whitespace();
    let kind = |word: &str| match word {
        "any" => Kind::Any,
        "anynonarray" => Kind::NonArray,
        "anyelement" => Kind::Element,
        "anyenum" => Kind::Enumeration,
        "anyarray" => Kind::Array,
        "anycompatible" => Kind::Compatible,
        "anycompatiblearray" => Kind::CompatibleArray,
        // Of any length.
        "bpchar" => Kind::Is(ANY_CHAR),
        name => Kind::Is(SqlType::of_name(&name.replace('_', " ")).expect("a signature's types exist")),
    };
    let words_of: Vec<&str> = parameters.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    let returns = kind(words.next().expect("a signature has a result"));
    let flags: Vec<&str> = words.collect();
    Definition {
        name: name.to_string(),
        parameters: words_of
            .iter()
            .map(|word| kind(word.trim_end_matches("...").trim_end_matches('?')))
            .collect(),
        optional: words_of.iter().filter(|word| word.ends_with('?')).count(),
        is_variadic: words_of.last().is_some_and(|word| word.ends_with("...")),
        returns,
        is_strict: !flags.contains(&"null"),
        volatility: match () {
            () if flags.contains(&"volatile") => Volatility::Volatile,
            () if flags.contains(&"stable") => Volatility::Stable,
            () => Volatility::Immutable,
        },
        body,
        program: None,
    }
}

/// All functions, by name.
pub static FUNCTIONS: LazyLock<HashMap<String, Vec<Definition>>> = LazyLock::new(|| {
    let mut all: HashMap<String, Vec<Definition>> = HashMap::new();
    let groups = [
        aggregate::definitions(),
        array::definitions(),
        catalog::definitions(),
        degrees::definitions(),
        digest::definitions(),
        defined_type::definitions(),
        json::definitions(),
        moment::definitions(),
        moment::operators(),
        network::definitions(),
        number::definitions(),
        number_pattern::definitions(),
        python::definitions(),
        regexp::definitions(),
        cluster::definitions(),
        privilege::definitions(),
        session::definitions(),
        over_window::definitions(),
        text::definitions(),
        operator::definitions(),
    ];
    for definition in groups.into_iter().flatten() {
        all.entry(definition.name.clone()).or_default().push(definition);
    }
    for (symbol, function, takes) in operator::SYMBOLS {
        let called = all.get(*function).into_iter().flatten();
        let called = called
            .filter(|it| takes.is_none() || it.parameters.first() == takes.clone().map(Kind::Is).as_ref());
        let named = called.cloned().map(|it| Definition { name: symbol.to_string(), ..it });
        let named: Vec<Definition> = named.collect();
        all.entry(symbol.to_string()).or_default().extend(named);
    }
    all
});

/// Whether a part of a statement may give another value each time it is computed: it calls a function that is volatile,
/// or one of a user.
pub fn may_differ(catalog: &Catalog, part: &impl Visit) -> bool {
    let found = ast::visit_expressions(part, |part| {
        let ast::Expr::Function(call) = part else { return ControlFlow::Continue(()) };
        let name = call.name.0.last().and_then(|part| part.as_ident()).map(folded).unwrap_or_default();
        let mut known = FUNCTIONS.get(&name).into_iter().flatten();
        let is_volatile = known.any(|known| known.volatility == Volatility::Volatile);
        let is_own = catalog.functions_named(&call.name).is_ok_and(|own| !own.is_empty());
        if is_volatile || is_own { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.is_break()
}

/// The text at a place of the arguments; empty if it is none.
pub fn text_at(arguments: &[Value], at: usize) -> &str {
    match arguments.get(at) {
        Some(Value::Text(text)) => text,
        _ => "",
    }
}

/// The integer at a place of the arguments; 0 if it is none.
pub fn integer_at(arguments: &[Value], at: usize) -> i64 {
    arguments.get(at).and_then(Value::as_integer).unwrap_or(0)
}

/// The number at a place of the arguments; 0 if it is none.
pub fn double_at(arguments: &[Value], at: usize) -> f64 {
    arguments.get(at).and_then(Value::as_double).unwrap_or_default()
}

/// The truth at a place of the arguments; false if it is none.
pub fn truth_at(arguments: &[Value], at: usize) -> bool {
    matches!(arguments.get(at), Some(Value::Boolean(true)))
}

/// The elements of the array at a place of the arguments.
pub fn elements_at(arguments: &[Value], at: usize) -> Vec<Value> {
    match arguments.get(at) {
        Some(Value::List(rows)) => rows.iter().map(|row| row.first().cloned().unwrap_or_default()).collect(),
        _ => Vec::new(),
    }
}

/// An array of values.
pub fn array_of(values: impl IntoIterator<Item = Value>) -> Value {
    Value::List(values.into_iter().map(|value| vec![value]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Columns of a line of the documentation.
    const WIDTH: usize = 118;

    /// The functions by name, without those that only operators and other functions call.
    fn listed() -> String {
        let public = FUNCTIONS.values().flatten().filter(|definition| definition.has_public_name());
        let names: BTreeSet<&str> = public.map(|definition| definition.name.as_str()).collect();
        let (mut text, mut width) = (String::new(), 0);
        for (at, name) in names.iter().enumerate() {
            let word = format!("`{name}`{}", if at + 1 < names.len() { "," } else { "." });
            if width > 0 && width + 1 + word.len() > WIDTH {
                text.push('\n');
                width = 0;
            } else if width > 0 {
                text.push(' ');
                width += 1;
            }
            width += word.len();
            text += &word;
        }
        text + "\n"
    }

    /// Goal: `docs/sql.md` lists the functions of the table. `UPDATE_GOLDEN=1` writes the list.
    #[test]
    fn the_documentation_lists_all_functions() {
        const BEGIN: &str = "<!-- crates/sql-meaning/src/functions -->\n";
        const END: &str = "<!-- end of functions -->\n";
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sql.md");
        let text = std::fs::read_to_string(&path).expect("docs/sql.md");
        let (before, rest) = text.split_once(BEGIN).expect("the beginning of the list");
        let (list, after) = rest.split_once(END).expect("the end of the list");
        let expected = listed();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, format!("{before}{BEGIN}{expected}{END}{after}")).expect("it is written");
            return;
        }
        assert_eq!(list, expected, "UPDATE_GOLDEN=1 writes the list");
    }
}
