//! Syntax to IR: names are looked up, types checked and made explicit, every access to a row becomes
//! a step of its own.
//!
//! ```text
//! tree --printer--> canonical text --parser--> tree --lowering--> ir::Program
//! ```
//!
//! A program is lowered from its canonical text, so that the lines it names are the same when the
//! text comes back from the log; errors are shown in the text it was read from.
//!
//! | module | concept |
//! |---|---|
//! | [`table`](mod@self) (`table.rs`) | table definitions |
//! | `lowering.rs` | the state of lowering one procedure: variables, rows, steps, errors |
//! | `statement.rs`, `write.rs`, `repeat.rs` | statements, writes, loops |
//! | `expression.rs`, `function.rs` | expressions, functions and aggregates |
//! | `row.rs` | row handles and reads |
//! | `known.rs`, `effects.rs` | which handles and reads hold where |
//! | `scope.rs` | names |
//! | `typing.rs` | which types fit together |
//!
//! **What an expression reads.** The reads of a statement happen right before it, left to right, those
//! in an arm of an `if` expression that is not taken included. Every row that an expression names must
//! be there, or the call aborts; `?.` gives null for a row that may be missing.

mod effects;
mod expression;
mod form;
mod function;
mod known;
mod lowering;
mod repeat;
mod row;
mod scope;
mod statement;
mod table;
mod typing;
mod write;

use crate::catalog::Catalog;
use crate::ir::Program;
use crate::syntax::diagnostic::DIAGNOSTICS_MAX;
use crate::syntax::tree::{DropDefinition, Dropped};
use crate::syntax::{Definition, Diagnostic, Diagnostics, ProcedureDefinition, Source, parse};
use fabius_value::{SqlState, limit};
use std::sync::Arc;

pub use table::table;

/// Why something was not lowered: a fact, or nothing if it follows from an earlier one.
#[derive(Debug)]
struct Refused(Option<Box<Diagnostic>>);

impl From<Diagnostic> for Refused {
    fn from(diagnostic: Diagnostic) -> Refused {
        Refused(Some(Box::new(diagnostic)))
    }
}

/// The hint for a second thing of a name.
const RENAME: &str = "give one of them another name";

type Lowered<T> = Result<T, Refused>;

/// Verifies a procedure.
///
/// # Errors
/// Everything in it that does not follow the rules, up to one more than [`DIAGNOSTICS_MAX`] facts.
pub fn procedure(definition: &ProcedureDefinition, catalog: &Catalog) -> Result<Program, Diagnostics> {
    let refuse = |state, message: String| Diagnostics {
        source: definition.source.clone(),
        list: vec![Diagnostic::new(state, definition.name.span, message)],
    };
    let text = definition.to_string();
    if text.len() > limit::PROGRAM_BYTES {
        let message =
            format!("a procedure of {} bytes, at most {} are allowed", text.len(), limit::PROGRAM_BYTES);
        return Err(refuse(SqlState::PROGRAM_LIMIT, message));
    }
    let canonical = parse(&text, &definition.name.text)
        .map_err(|errors| refuse(errors.list[0].state, errors.list[0].message.clone()))?;
    let [Definition::Procedure(canonical)] = canonical.as_slice() else {
        return Err(refuse(SqlState::SYNTAX_ERROR, "not the tree of one procedure".into()));
    };
    lowering::lower(canonical, catalog, text.into()).map_err(|errors| {
        // The same facts again, with places in the user's own text.
        match lowering::lower(definition, catalog, Arc::from("")) {
            Err(list) => Diagnostics { source: definition.source.clone(), list },
            Ok(_) => Diagnostics { source: canonical.source.clone(), list: errors },
        }
    })
}

/// A catalog without what is dropped.
///
/// # Errors
/// As [`Catalog::without_table`] and [`Catalog::without_procedure`].
fn without(drop: &DropDefinition, catalog: &Catalog) -> fabius_value::Result<Catalog> {
    Ok(match drop.what {
        Dropped::Table => catalog.without_table(&drop.name.text)?.0,
        Dropped::Procedure => catalog.without_procedure(&drop.name.text)?.0,
    })
}

/// Reads a text and adds its tables and procedures to a catalog, in their order.
///
/// # Errors
/// What does not parse; otherwise everything found in the tables; otherwise in the procedures.
pub fn load(text: &str, file: &str, catalog: &Catalog) -> Result<Catalog, Diagnostics> {
    let mut catalog = catalog.clone();
    let mut errors: Vec<Diagnostic> = Vec::new();
    let mut tables_refused = false;
    let mut names = std::collections::HashSet::new();
    for definition in parse(text, file)? {
        match definition {
            Definition::Table(definition) => match table(&definition, &catalog) {
                Ok(schema) => {
                    catalog = catalog
                        .with_table(schema)
                        .map_err(|error| {
                            let fact = Diagnostic::new(error.state(), definition.name.span, error.message());
                            Diagnostics { source: definition.source.clone(), list: vec![fact] }
                        })?
                        .0;
                }
                Err(refused) => {
                    tables_refused = true;
                    errors.extend(refused.list);
                }
            },
            Definition::Drop(_) if tables_refused => {}
            Definition::Drop(drop) => {
                names.remove(&drop.name.text);
                match without(&drop, &catalog) {
                    Ok(without) => catalog = without,
                    Err(error) => {
                        errors.push(Diagnostic::new(error.state(), drop.name.span, error.message()));
                    }
                }
            }
            // Without its tables, a procedure only has errors that follow from theirs.
            Definition::Procedure(_) if tables_refused => {}
            Definition::Procedure(definition) => {
                if !names.insert(definition.name.text.clone()) {
                    let message = format!("two procedures named {}", definition.name.text);
                    let error = Diagnostic::new(SqlState::DUPLICATE_OBJECT, definition.name.span, message);
                    errors.push(error.with_hint(RENAME));
                    continue;
                }
                match procedure(&definition, &catalog) {
                    Ok(program) => catalog = catalog.with_procedure(program).0,
                    Err(refused) => errors.extend(refused.list),
                }
            }
        }
    }
    errors.truncate(DIAGNOSTICS_MAX + 1);
    if errors.is_empty() {
        return Ok(catalog);
    }
    Err(Diagnostics { source: Arc::new(Source::new(text, file)), list: errors })
}
