//! The state of lowering one procedure: variables, row handles, steps, names, errors.

use super::effects::EffectsOf;
use super::form::bare_call;
use super::known::Known;
use super::scope::{Binding, Declared, Scope};
use super::{Lowered, RENAME, Refused};
use crate::catalog::Catalog;
use crate::ir::{
    self, Expression, ExpressionKind, Field, Program, RowId, RowVariable, ScalarType, Step, StepId, StepKind,
    Type, Variable, VariableId,
};
use crate::syntax::diagnostic::DIAGNOSTICS_MAX;
use crate::syntax::tree::{
    Block, ColumnDefinition, Name, Parameter, ProcedureDefinition, Results, ScalarName, TypeKind, TypeName,
};
use crate::syntax::{Diagnostic, Source, Span};
use fabius_value::{IndexId, SqlState, TableId, limit};
use std::sync::Arc;

/// A loop around the statement being lowered, for what its body must not do.
pub(super) enum OpenLoop {
    /// Over a list.
    List(VariableId),
    /// Over a table, or one of its indexes.
    Scan(TableId, Option<IndexId>),
}

/// Lowers one procedure.
pub(super) struct Lowering<'a> {
    pub(super) catalog: &'a Catalog,
    source: &'a Source,
    variables: Vec<Variable>,
    pub(super) rows: Vec<RowVariable>,
    /// The block being built.
    pub(super) steps: ir::Block,
    pub(super) line: u32,
    pub(super) scope: Scope,
    pub(super) known: Known,
    pub(super) loops: Vec<OpenLoop>,
    /// In a scan's filter nothing may abort for a missing row.
    pub(super) in_filter: bool,
    /// Steps so far, and expression nodes that lowering has doubled.
    step_count: usize,
    copied: usize,
    pub(super) results: Vec<(String, Type)>,
    errors: Vec<Diagnostic>,
}

/// Lowers a procedure; `text` is its canonical text.
pub(super) fn lower(
    definition: &ProcedureDefinition,
    catalog: &Catalog,
    text: Arc<str>,
) -> Result<Program, Vec<Diagnostic>> {
    let mut lowering = Lowering {
        catalog,
        source: &definition.source,
        variables: Vec::new(),
        rows: Vec::new(),
        steps: Vec::new(),
        line: definition.source.line(definition.name.span.start),
        scope: Scope::default(),
        known: Known::default(),
        loops: Vec::new(),
        in_filter: false,
        step_count: 0,
        copied: 0,
        results: Vec::new(),
        errors: Vec::new(),
    };
    lowering.parameters(&definition.parameters);
    lowering.declare_results(definition);
    lowering.statements(&definition.body, true);
    lowering.check_returns(definition);
    if !lowering.errors.is_empty() {
        return Err(lowering.errors);
    }
    let mut body = lowering.steps;
    let mut count = 0;
    number(&mut body, &mut count);
    Ok(Program {
        name: definition.name.text.clone(),
        parameter_count: definition.parameters.len(),
        variables: lowering.variables,
        rows: lowering.rows,
        results: lowering.results,
        body,
        step_count: count,
        text,
    })
}

/// Numbers steps in the order of the text, outer before inner.
fn number(block: &mut ir::Block, count: &mut usize) {
    for step in block {
        step.id = StepId(*count as u16);
        *count += 1;
        match &mut step.kind {
            StepKind::If { then, otherwise, .. } => {
                number(then, count);
                number(otherwise, count);
            }
            StepKind::ForList { body, .. } | StepKind::ForRange { body, .. } => number(body, count),
            StepKind::ForScan { scan, body, .. } => {
                if let Some(filter) = &mut scan.filter {
                    number(&mut filter.steps, count);
                }
                number(body, count);
            }
            _ => {}
        }
    }
}

impl Lowering<'_> {
    // ---- errors ----

    pub(super) fn report(&mut self, Refused(refused): Refused) {
        if let Some(diagnostic) = refused
            && self.errors.len() <= DIAGNOSTICS_MAX
        {
            self.errors.push(*diagnostic);
        }
    }

    pub(super) fn invalid(&self, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic::new(SqlState::INVALID_DEFINITION, span, message)
    }

    fn too_many(&self, span: Span, what: &str) -> Refused {
        let message =
            format!("the procedure has too many {what}, at most {} are allowed", limit::PROGRAM_PARTS);
        Diagnostic::new(SqlState::PROGRAM_LIMIT, span, message).into()
    }

    // ---- parts ----

    pub(super) fn emit(&mut self, kind: StepKind, span: Span) -> Lowered<()> {
        self.step_count += 1;
        if self.step_count > limit::PROGRAM_PARTS {
            return Err(self.too_many(span, "steps"));
        }
        self.steps.push(Step { id: StepId(0), line: self.line, kind });
        Ok(())
    }

    pub(super) fn new_variable(&mut self, name: String, ty: Type, span: Span) -> Lowered<VariableId> {
        if self.variables.len() == limit::PROGRAM_PARTS {
            return Err(self.too_many(span, "variables"));
        }
        self.variables.push(Variable { name, ty });
        Ok(VariableId((self.variables.len() - 1) as u16))
    }

    pub(super) fn new_scalar(&mut self, name: String, scalar: ScalarType, span: Span) -> Lowered<VariableId> {
        self.new_variable(name, Type::Scalar(scalar), span)
    }

    pub(super) fn new_row(&mut self, name: String, table: TableId, span: Span) -> Lowered<RowId> {
        if self.rows.len() == limit::PROGRAM_PARTS {
            return Err(self.too_many(span, "rows"));
        }
        self.rows.push(RowVariable { name, table });
        Ok(RowId((self.rows.len() - 1) as u16))
    }

    /// A scalar variable as an expression.
    pub(super) fn variable(&self, variable: VariableId) -> Expression {
        match &self.variables[usize::from(variable.0)].ty {
            Type::Scalar(scalar) => Expression { kind: ExpressionKind::Variable(variable), ty: *scalar },
            Type::List(_) => unreachable!("only scalars are expressions"),
        }
    }

    /// Whether an expression of this size may stand in the program once more. Copies of copies could
    /// grow without bound (`x between a and b` stands for two comparisons of `x`).
    pub(super) fn copy(&mut self, expression: &Expression, span: Span) -> Lowered<Expression> {
        self.copied += size(expression);
        if self.copied > limit::PROGRAM_BYTES {
            return Err(Diagnostic::new(
                SqlState::PROGRAM_LIMIT,
                span,
                "the procedure's expressions are too large",
            )
            .into());
        }
        Ok(expression.clone())
    }

    // ---- names ----

    pub(super) fn declare(&mut self, name: &Name, binding: Binding) -> Lowered<()> {
        if self.scope.declare(&name.text, binding) {
            return Ok(());
        }
        let message = format!("{} is declared already", name.text);
        let error = Diagnostic::new(SqlState::DUPLICATE_OBJECT, name.span, message);
        Err(error.with_hint("a name means one thing in a procedure: choose another").into())
    }

    fn parameters(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            let declared = self.field_names(&parameter.ty).and_then(|()| {
                let ty = type_of(&parameter.ty);
                let name = parameter.name.text.clone();
                let variable = self.new_variable(name, ty.clone(), parameter.name.span)?;
                let binding = match ty {
                    Type::Scalar(scalar) => {
                        Binding::Scalar { variable, scalar, declared: Declared::Parameter }
                    }
                    Type::List(fields) => Binding::List { variable, fields, mutable: false },
                };
                self.declare(&parameter.name, binding)
            });
            if let Err(refused) = declared {
                self.report(refused);
                self.scope.declare(&parameter.name.text, Binding::Refused);
            }
        }
    }

    fn declare_results(&mut self, definition: &ProcedureDefinition) {
        match &definition.results {
            Results::None => {}
            Results::One(ty) => {
                let checked = self.field_names(ty);
                self.results.push((definition.name.text.clone(), type_of(ty)));
                checked.unwrap_or_else(|refused| self.report(refused));
            }
            Results::Named(results) => {
                for (at, result) in results.iter().enumerate() {
                    if results[..at].iter().any(|other| other.name == result.name) {
                        let message = format!("two results named {}", result.name.text);
                        let error = Diagnostic::new(SqlState::DUPLICATE_OBJECT, result.name.span, message);
                        self.report(error.with_hint(RENAME).into());
                    }
                    self.field_names(&result.ty).unwrap_or_else(|refused| self.report(refused));
                    self.results.push((result.name.text.clone(), type_of(&result.ty)));
                }
            }
        }
    }

    /// The fields of a list have different names.
    pub(super) fn field_names(&self, ty: &TypeName) -> Lowered<()> {
        let TypeKind::Records(fields) = &ty.kind else { return Ok(()) };
        for (at, field) in fields.iter().enumerate() {
            if fields[..at].iter().any(|other| other.name == field.name) {
                let message = format!("two fields named {}", field.name.text);
                let error = Diagnostic::new(SqlState::DUPLICATE_OBJECT, field.name.span, message);
                return Err(error.with_hint(RENAME).into());
            }
        }
        Ok(())
    }

    /// A variable, or why there is none of this name.
    pub(super) fn lookup(&self, name: &str, span: Span) -> Lowered<&Binding> {
        match self.scope.get(name) {
            Some(Binding::Refused) => Err(Refused(None)),
            Some(binding) => Ok(binding),
            None => Err(self.unknown_variable(name, span).into()),
        }
    }

    pub(super) fn unknown_variable(&self, name: &str, span: Span) -> Diagnostic {
        let error = Diagnostic::new(SqlState::UNDEFINED_COLUMN, span, format!("unknown variable {name}"));
        if self.catalog.find_table(name).is_some() {
            return error.with_hint(format!("{name} is a table: name a row by its key, {name}[key].column"));
        }
        if let Some(line) = self.scope.left(name) {
            return error.with_hint(format!(
                "it is visible only in its block, of line {line}; what is used after a block is declared before it"
            ));
        }
        if let Some(call) = bare_call(name) {
            return error.with_hint(format!("write {call}"));
        }
        let has_column = |(_, table): &(&str, TableId)| self.catalog.table(*table).column(name).is_some();
        if let Some((row, _)) = self.scope.rows().find(has_column) {
            return error.with_hint(format!("it is a column of the row: {row}.{name}"));
        }
        error.did_you_mean(name, self.scope.names(), || {
            let known: Vec<&str> = self.scope.names().collect();
            Some(match known.as_slice() {
                [] => format!("declare it before: let {name} = ..., or take it as a parameter"),
                known => format!("declare it before: let {name} = ...; known here are {}", listed(known)),
            })
        })
    }

    pub(super) fn find_table(&self, name: &Name) -> Lowered<TableId> {
        if let Some(table) = self.catalog.find_table(&name.text) {
            return Ok(table);
        }
        let error =
            Diagnostic::new(SqlState::UNDEFINED_TABLE, name.span, format!("unknown table {}", name.text));
        if self.scope.get(&name.text).is_some() {
            return Err(error.with_hint(format!("{} is a variable here", name.text)).into());
        }
        let tables = || self.catalog.tables().map(|(_, schema)| schema.name.as_str());
        let otherwise = || Some(known_tables(tables()));
        Err(error.did_you_mean(&name.text, tables(), otherwise).into())
    }

    // ---- blocks ----

    /// Lowers a block that `effects` were taken of; what it learns is forgotten.
    pub(super) fn block(&mut self, block: &Block) -> ir::Block {
        let outer = std::mem::take(&mut self.steps);
        let known = self.known.clone();
        let (mark, line) = (self.scope.enter(), self.line);
        self.statements(block, false);
        self.scope.leave(mark, line);
        self.known = known;
        std::mem::replace(&mut self.steps, outer)
    }

    /// Undoes what these blocks may undo.
    pub(super) fn forget<'b>(&mut self, blocks: impl IntoIterator<Item = &'b Block>) {
        let effects = EffectsOf::blocks(blocks, self.catalog, &self.scope);
        self.known.apply(&effects);
    }

    fn statements(&mut self, block: &Block, outermost: bool) {
        for (at, statement) in block.iter().enumerate() {
            self.line = self.source.line(statement.span.start);
            let last = outermost && at + 1 == block.len();
            if let Err(refused) = self.statement(statement, last) {
                self.report(refused);
            }
        }
    }
}

/// How many nodes an expression has.
fn size(expression: &Expression) -> usize {
    1 + match &expression.kind {
        ExpressionKind::Unary(_, operand)
        | ExpressionKind::Cast(operand)
        | ExpressionKind::Element { index: operand, .. } => size(operand),
        ExpressionKind::Binary(_, left, right) => size(left) + size(right),
        ExpressionKind::Case { arms, otherwise } => {
            size(otherwise)
                + arms.iter().map(|(condition, value)| size(condition) + size(value)).sum::<usize>()
        }
        ExpressionKind::Call(_, arguments) => arguments.iter().map(size).sum(),
        ExpressionKind::Constant(_)
        | ExpressionKind::Variable(_)
        | ExpressionKind::Aggregate { .. }
        | ExpressionKind::Now
        | ExpressionKind::Random => 0,
    }
}

fn scalar_of(scalar: &ScalarName) -> ScalarType {
    ScalarType { data_type: scalar.data_type, nullable: scalar.nullable }
}

/// A type as the IR has it.
pub(super) fn type_of(ty: &TypeName) -> Type {
    match &ty.kind {
        TypeKind::Scalar(scalar) => Type::Scalar(scalar_of(scalar)),
        TypeKind::List(scalar) => Type::List(vec![Field { name: String::new(), scalar: scalar_of(scalar) }]),
        TypeKind::Records(fields) => {
            let field = |field: &ColumnDefinition| Field {
                name: field.name.text.clone(),
                scalar: scalar_of(&field.scalar),
            };
            Type::List(fields.iter().map(field).collect())
        }
    }
}

/// A type as the text form writes it.
pub(super) fn type_text(ty: &Type) -> String {
    let scalar = |scalar: &ScalarType| {
        let null = if scalar.nullable { " null" } else { "" };
        format!("{}{null}", scalar.data_type)
    };
    match ty {
        Type::Scalar(ty) => scalar(ty),
        Type::List(fields) if fields.len() == 1 && fields[0].name.is_empty() => {
            format!("list of {}", scalar(&fields[0].scalar))
        }
        Type::List(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|field| format!("{}: {}", field.name, scalar(&field.scalar))).collect();
            format!("list of ({})", fields.join(", "))
        }
    }
}

/// `1 column`, `2 columns`.
pub(super) fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// `here is 1`, `here are 2`.
pub(super) fn given(count: usize) -> String {
    format!("here {} {count}", if count == 1 { "is" } else { "are" })
}

/// Names in a hint: the first of many.
pub(super) fn listed(names: &[&str]) -> String {
    const SHOWN: usize = 12;
    let more = if names.len() > SHOWN { ", ..." } else { "" };
    format!("{}{more}", names[..names.len().min(SHOWN)].join(", "))
}

/// Which tables there are, as a hint.
fn known_tables<'t>(names: impl Iterator<Item = &'t str>) -> String {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.as_slice() {
        [] => "there are no tables yet: define one before its procedures".into(),
        names => format!("tables are {}", listed(names)),
    }
}
