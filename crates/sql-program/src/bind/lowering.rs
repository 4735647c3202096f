//! A whole statement as a program.

use super::binder::Binder;
use super::row_body::Gathered;
use super::stop::{Bind, Stop, beyond};
use super::tree;
use crate::lowered::{Lowered, Shape, places_of_lines};
use fabius_program::explain::{Origin, Report, report, report_of};
use fabius_program::slice::{Assumptions, Ordinary, slice};
use fabius_program::syntax::Source;
use fabius_program::syntax::tree::{Block, Parameter, ProcedureDefinition, Results, StatementKind};
use fabius_sql_meaning::catalog::Catalog;
use fabius_sql_meaning::output::RowLock;
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_syntax::normal_form::NormalForm;
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::{DataType, Result};
use sqlparser::ast::{self, Statement};
use std::sync::Arc;

/// A statement as a program. `None`: no program can express it; the caller takes the query path (SELECT), or computes
/// the rows by a query (writes). With the text's normal form, the program says which of its literals are arguments.
///
/// # Errors
/// What is wrong with the statement, in PostgreSQL's words, with its place in the text.
pub fn lower(
    statement: &Statement,
    source: &Arc<Source>,
    catalog: &Catalog,
    types: &mut ParameterTypes,
    form: Option<&NormalForm>,
) -> Result<Option<Lowered>> {
    let binder = Binder::new(catalog, &source.text, types).with_literals(form);
    let lowered = match statement {
        Statement::Query(query) => binder.lower_query(query, source),
        Statement::Insert(insert) => {
            binder.lower_write(statement, insert.returning.is_some(), "INSERT", source)
        }
        Statement::Update(update) => {
            binder.lower_write(statement, update.returning.is_some(), "UPDATE", source)
        }
        Statement::Delete(delete) => {
            binder.lower_write(statement, delete.returning.is_some(), "DELETE", source)
        }
        _ => return Ok(None),
    };
    match lowered {
        Ok(lowered) => Ok(Some(lowered)),
        Err(Stop::Beyond(_)) => Ok(None),
        Err(Stop::Wrong(error)) => Err(error),
    }
}

/// What there is to say of a statement's program: for `EXPLAIN`. `assumed` is what is known of the values in the
/// tables, if not that they are [`Ordinary`]. With a `body` it is said of the lines of a function that all of it comes
/// from ([`Lowered::body`]).
///
/// # Errors
/// What the verifier finds wrong.
pub fn explained(
    lowered: &Lowered,
    programs: &fabius_program::catalog::Catalog,
    assumed: Option<&dyn Assumptions>,
    body: Option<&Source>,
) -> Result<Report> {
    let program = fabius_program::verify::procedure(&lowered.definition, programs)?;
    let ordinary = Ordinary { program: &program, catalog: programs };
    let phases = slice(&program, programs, assumed.unwrap_or(&ordinary));
    let Some(body) = body else { return Ok(report(&program, programs, &phases)) };
    let places = places_of_lines(&lowered.definition);
    let line_of = |line: u32| {
        let place = places.get(&line).and_then(|place| lowered.places.get(place.checked_sub(1)?));
        place.and_then(|place| place.last()).map_or(0, |frame| frame.at.1)
    };
    Ok(report_of(&program, programs, &phases, &Origin { text: &body.text, line_of: &line_of }))
}

/// What an item of `FROM` joins.
fn factors(item: &ast::TableWithJoins) -> impl Iterator<Item = &ast::TableFactor> {
    std::iter::once(&item.relation).chain(item.joins.iter().map(|join| &join.relation))
}

/// The name that programs of statements have.
const NAME: &str = "statement";

impl Binder<'_> {
    fn lower_query(mut self, query: &ast::Query, source: &Arc<Source>) -> Bind<Lowered> {
        let row_lock = match query.locks.as_slice() {
            [] => None,
            [lock] if lock.of.is_none() => Some(RowLock::of(lock)?),
            _ => return beyond("locks of some tables"),
        };
        if row_lock.is_some()
            && let ast::SetExpr::Select(select) = query.body.as_ref()
        {
            for factor in select.from.iter().flat_map(factors) {
                if let ast::TableFactor::Table { name, .. } = factor {
                    let table = self.table(name)?;
                    self.require(&table, Privilege::Update)?;
                }
            }
        }
        if let Some((results, columns)) = self.arrays(query)? {
            return Ok(self.finish(source, results, Shape::OneRow(columns), "SELECT", None));
        }
        let collected = self.collected(query)?;
        self.emit(tree::statement(StatementKind::Return { values: vec![tree::variable(&collected.list)] }));
        let results = Results::One(tree::records(collected.fields));
        Ok(self.finish(source, results, Shape::Rows(collected.columns), "SELECT", row_lock))
    }

    fn lower_write(
        mut self,
        statement: &Statement,
        returns: bool,
        tag: &'static str,
        source: &Arc<Source>,
    ) -> Bind<Lowered> {
        let (count, list) = ("count", self.name("returned"));
        let mut gathered = Gathered::default();
        let (block, _) = self.nested(|binder| {
            binder.write(statement, Some(count), &mut |binder, columns, values| {
                gathered.add(binder, &list, columns, values)
            })
        })?;
        self.finish_write(block, returns.then_some((list, gathered)), tag, source)
    }

    /// The program of a write: its block between the declarations of its results and their return.
    pub(super) fn finish_write(
        mut self,
        block: Block,
        returned: Option<(String, Gathered)>,
        tag: &'static str,
        source: &Arc<Source>,
    ) -> Bind<Lowered> {
        self.check_reads_behind()?;
        let count = "count";
        let bigint = tree::scalar_type(DataType::BigInt, false);
        self.emit(tree::declare(count, true, Some(bigint.clone()), tree::integer(0)));
        if let Some((list, gathered)) = &returned {
            self.emit(tree::declare_list(list, gathered.fields()));
        }
        self.block.extend(block);
        let mut values = vec![tree::variable(count)];
        let (results, shape) = match returned {
            Some((list, gathered)) => {
                values.push(tree::variable(&list));
                let named = |name: &str, ty| Parameter { name: tree::name(name), ty };
                let rows = tree::records(gathered.fields());
                let results = vec![named("count", bigint), named("rows", rows)];
                (Results::Named(results), Shape::CountAndRows(gathered.columns))
            }
            None => (Results::One(bigint), Shape::Count),
        };
        self.emit(tree::statement(StatementKind::Return { values }));
        Ok(self.finish(source, results, shape, tag, None))
    }

    /// The program of what was bound.
    pub(crate) fn finish(
        mut self,
        source: &Arc<Source>,
        results: Results,
        shape: Shape,
        tag: &'static str,
        row_lock: Option<RowLock>,
    ) -> Lowered {
        let results = self.with_drawings(results);
        let results = self.with_notices(results);
        let results = self.with_doubtful(results);
        let literals = self.literals.recipes(&mut self.inputs.arguments);
        let definition = ProcedureDefinition {
            source: source.clone(),
            name: tree::name(NAME),
            parameters: Vec::new(),
            results,
            body: self.block,
        };
        let mut lowered = Lowered {
            definition,
            arguments: Vec::new(),
            literals,
            shape,
            tag,
            reads: self.reads.into_iter().collect(),
            writes: self.writes.into_iter().collect(),
            reserves: Vec::new(),
            places: Vec::new(),
            paths: Vec::new(),
            row_lock,
            notices: self.notices,
            doubtful: self.doubtful.into_iter().collect(),
        };
        self.inputs.into_lowered(&mut lowered);
        lowered
    }
}
