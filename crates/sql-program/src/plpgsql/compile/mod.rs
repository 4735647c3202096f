//! Bodies as blocks of a program.
//!
//! ```text
//! statements of the body --> statements of the program, in the same order
//!     x := e                     let x_7 = e, or x_3 = e inside of an if or a loop
//!     SELECT ... INTO            loops of the query, with assignments inside
//!     RETURN, EXIT, CONTINUE     what follows goes into the other branch, or behind a flag
//!     RAISE EXCEPTION            require false, ...
//! ```

mod array;
mod assignment;
mod branch;
mod counting;
mod declaration;
mod outcome;
mod place;
mod polish;
mod query;
mod raise;
mod repeat;
mod result;
mod scope;
mod sequence;

pub use query::declare_notices;
pub use result::Returned;
pub use scope::{Entity, List, Scope, Variable, VariablePlace};

use super::definition::Definition;
use crate::bind::{Bind, Binder, Catches, Inputs, Stop};
use crate::lowered::Doubtful;
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::Block;
use fabius_sql_meaning::catalog::{Catalog, ObjectName, Oid};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_syntax::plpgsql::tree::Body;
use fabius_sql_syntax::python::reading::{placed, refused};
use fabius_value::{Error, Result};
use result::Output;
use sequence::Target;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The list that `RAISE NOTICE` and its like append to.
pub const NOTICES: &str = "notices";

/// How often a body is compiled to find out which variables can be null.
const ROUNDS_MAX: usize = 12;

/// Compiles one call of a function: its body, with arguments given.
pub struct Compiler<'c> {
    catalog: &'c Catalog,
    definition: &'c Definition,
    /// What the next generated name has as its number.
    next_name: usize,
    reads: BTreeSet<ObjectName>,
    writes: BTreeSet<ObjectName>,
    /// Functions that this one is called from, and it.
    following: Vec<ObjectName>,
    /// The role whose privileges count.
    asker: Oid,
    /// What the program is given so far.
    inputs: Inputs,
    /// Whether the call may be made more than once in a run.
    repeats: bool,
    /// The function as errors call it.
    signature: Arc<str>,
    /// Whether anything is said to the client.
    notices: bool,
    doubtful: BTreeSet<Doubtful>,
    /// How deep the program's block is that is being built.
    depth: usize,
    /// Variables, by number and generation, that can be null though they begin with a value.
    nullable: BTreeSet<(usize, usize)>,
    found_nullable: BTreeSet<(usize, usize)>,
    variables: usize,
    /// Loops and labelled blocks around.
    targets: Vec<Target>,
    /// Exceptions that blocks around catch, those of callers included.
    catches: Catches,
    /// Flags that say where control went.
    flags: BTreeSet<String>,
    /// Where the function's value goes.
    output: Output,
    returned: String,
    /// Declarations that belong before everything.
    hoisted: Block,
    found: String,
    row_count: String,
    counts_rows: bool,
}

/// What the caller's program gets.
pub struct Compiled {
    /// What is returned.
    pub returned: Returned,
    /// As [`Binder::next_name`].
    pub next_name: usize,
    /// Tables read.
    pub reads: BTreeSet<ObjectName>,
    /// Tables written.
    pub writes: BTreeSet<ObjectName>,
    /// Whether [`NOTICES`] is appended to.
    pub notices: bool,
    /// Flags of callers' blocks that the call may have set.
    pub escapes: BTreeSet<String>,
    /// As [`Lowered::doubtful`](crate::lowered::Lowered).
    pub doubtful: BTreeSet<Doubtful>,
}

/// Compiles a call into a block. `root` has the parameters, which are variables of the program by now.
///
/// # Errors
/// What is wrong with the body, with its line.
pub fn compile(
    catalog: &Catalog,
    definition: &Definition,
    root: &Scope<'_>,
    (binder, following): (&mut Binder<'_>, &[ObjectName]),
    block: &mut Block,
) -> Result<Compiled> {
    let mut nullable = BTreeSet::new();
    let places: Vec<VariablePlace> =
        root.parameters().iter().map(|variable| variable.place.borrow().clone()).collect();
    for _ in 0..ROUNDS_MAX {
        root.reset(&places);
        let mut compiler =
            Compiler::new(catalog, definition, (binder.next_name(), following), nullable.clone());
        (compiler.inputs, compiler.repeats) = (binder.inputs.clone(), binder.repeats);
        compiler.asker = binder.asker;
        compiler.catches.around.clone_from(&binder.catches.around);
        let mut body = Block::new();
        let returned = compiler.body(root, &mut body)?;
        if compiler.found_nullable.is_subset(&nullable) {
            let mut flags = compiler.flags;
            flags.insert(compiler.found);
            let mut whole = compiler.hoisted;
            whole.append(&mut body);
            polish::polish(&mut whole, &flags, &returned);
            block.append(&mut whole);
            binder.inputs = compiler.inputs;
            return Ok(Compiled {
                returned,
                next_name: compiler.next_name,
                reads: compiler.reads,
                writes: compiler.writes,
                notices: compiler.notices,
                escapes: compiler.catches.escapes,
                doubtful: compiler.doubtful,
            });
        }
        nullable.append(&mut compiler.found_nullable);
    }
    Err(Error::new(
        fabius_value::SqlState::PROGRAM_LIMIT,
        "the function has too many variables that may be null",
    ))
}

impl<'c> Compiler<'c> {
    fn new(
        catalog: &'c Catalog,
        definition: &'c Definition,
        (first_name, following): (usize, &[ObjectName]),
        nullable: BTreeSet<(usize, usize)>,
    ) -> Compiler<'c> {
        let following = following.to_vec();
        let lower = definition.source.text.to_lowercase();
        let mut compiler = Compiler {
            catalog,
            definition,
            next_name: first_name,
            reads: BTreeSet::new(),
            writes: BTreeSet::new(),
            following,
            asker: catalog.role,
            inputs: Inputs::default(),
            repeats: false,
            signature: place::signature(definition),
            notices: false,
            doubtful: BTreeSet::new(),
            depth: 0,
            nullable,
            found_nullable: BTreeSet::new(),
            variables: 1000,
            targets: Vec::new(),
            catches: Catches::default(),
            flags: BTreeSet::new(),
            output: Output::Nothing,
            returned: String::new(),
            hoisted: Block::new(),
            found: String::new(),
            row_count: String::new(),
            counts_rows: definition.language == "python"
                || lower.contains("found")
                || lower.contains("row_count"),
        };
        compiler.returned = compiler.flag("returned");
        compiler.found = compiler.name("found");
        compiler.row_count = compiler.name("row_count");
        compiler
    }

    fn body(&mut self, root: &Scope<'_>, block: &mut Block) -> Result<Returned> {
        match &self.definition.body {
            Body::Block(body) => self.procedural(root, body, block),
            Body::Sql(statements) => self.sql_body(root, statements, block),
        }
    }

    /// A name that nothing else in the program has.
    fn name(&mut self, stem: &str) -> String {
        self.next_name += 1;
        let stem: String = stem.chars().take(30).collect();
        format!("{stem}_{}", self.next_name)
    }

    /// The name of a flag, which is declared only if it is asked.
    fn flag(&mut self, stem: &str) -> String {
        let name = self.name(stem);
        self.flags.insert(name.clone());
        name
    }

    /// Binds a part of the body; what it needs first goes to the block.
    fn bind<'s, T>(
        &mut self,
        scope: &'s Scope<'s>,
        span: Span,
        block: &mut Block,
        act: impl for<'b> FnOnce(&mut Self, &mut Binder<'b>) -> Bind<T>,
    ) -> Result<T> {
        let definition = self.definition;
        let text = &definition.source.text;
        let mut types = ParameterTypes::default();
        let mut binder = Binder::within(self.catalog, text, &mut types, scope, self.next_name);
        binder.following = self.following.clone();
        binder.asker = self.asker;
        binder.block = std::mem::take(block);
        self.lend(&mut binder);
        binder.repeats = self.repeats || self.targets.iter().any(|target| target.next.is_some());
        let done = act(self, &mut binder);
        self.take_back(&mut binder);
        self.reads.append(&mut binder.reads);
        self.writes.append(&mut binder.writes);
        self.notices |= binder.notices;
        self.doubtful.append(&mut binder.doubtful);
        *block = std::mem::take(&mut binder.block);
        done.map_err(|stop| self.located(stop, span))
    }

    /// Lets a binder go on with names and parameters.
    fn lend(&mut self, binder: &mut Binder<'_>) {
        binder.set_next_name(self.next_name);
        binder.inputs = std::mem::take(&mut self.inputs);
        binder.catches = std::mem::take(&mut self.catches);
    }

    /// Goes on where a binder stopped.
    fn take_back(&mut self, binder: &mut Binder<'_>) {
        self.next_name = self.next_name.max(binder.next_name());
        self.inputs = std::mem::take(&mut binder.inputs);
        self.catches = std::mem::take(&mut binder.catches);
    }

    /// An error with its line in the body.
    fn located(&self, stop: Stop, span: Span) -> Error {
        let error = stop.into_error();
        if error.line().is_some() {
            return error;
        }
        if self.definition.language == "python" {
            if error.state() == fabius_value::SqlState(*b"54001") {
                let instead = "give a part of it a name, and write that";
                return refused(&self.definition.source, span, "parts this deep", instead);
            }
            return placed(error.without_position(), &self.definition.source, span);
        }
        let line = match error.position() {
            Some(position) => {
                let before = self.definition.source.text.chars().take(position.saturating_sub(1) as usize);
                1 + before.filter(|c| *c == '\n').count() as u32
            }
            None => self.definition.source.line(span.start),
        };
        error.without_position().at_line(line)
    }

    /// An error at a place of the body.
    fn error(&self, state: &[u8; 5], span: Span, message: impl Into<String>) -> Error {
        let error = Error::new(fabius_value::SqlState(*state), message);
        match self.definition.language.as_str() {
            "python" => placed(error, &self.definition.source, span),
            _ => error.at_line(self.definition.source.line(span.start)),
        }
    }
}
