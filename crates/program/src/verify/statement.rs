//! Statements that are neither writes to tables nor loops.

use super::Lowered;
use super::lowering::{Lowering, OpenLoop, counted, given, type_of, type_text};
use super::scope::{Binding, Declared};
use super::typing::{assigned, settled};
use crate::ir::{
    Expression, Failure, Field, Message, Returned, ScalarType, SortKey, StepKind, Type, VariableId,
};
use crate::syntax::tree::{
    self, BinaryOperator, Block, ExpressionKind, Name, ProcedureDefinition, Statement, StatementKind, Target,
    TypeName,
};
use crate::syntax::{Diagnostic, Span};
use fabius_value::{DataType, SqlState};

impl Lowering<'_> {
    fn failure(&mut self, failure: &tree::Failure, span: Span) -> Lowered<Failure> {
        let state = failure.state.unwrap_or(SqlState::RAISED);
        if SqlState::parse(state.as_str()) != Some(state) {
            return Err(self.invalid(span, format!("{state} is not a SQLSTATE of an error")).into());
        }
        let message = match &failure.message {
            tree::Message::Fixed(message) => Message::Fixed(message.clone()),
            tree::Message::Computed(message) => {
                let operand = self.operand(message, Some(DataType::TEXT))?;
                Message::Computed(assigned(operand, DataType::TEXT, "a message")?)
            }
        };
        let mut text = |expression: &Option<tree::Expression>, place| match expression {
            Some(expression) => {
                let operand = self.operand(expression, Some(DataType::TEXT))?;
                assigned(operand, DataType::TEXT, place).map(Some)
            }
            None => Ok(None),
        };
        Ok(Failure {
            state,
            message,
            detail: text(&failure.detail, "a detail")?,
            hint: text(&failure.hint, "a hint")?,
        })
    }

    /// One statement; `last` if it ends the procedure's body.
    pub(super) fn statement(&mut self, statement: &Statement, last: bool) -> Lowered<()> {
        let span = statement.span;
        match &statement.kind {
            StatementKind::Let { name, mutable, ty, value } => {
                let declared = self.declaration(name, *mutable, ty.as_ref(), value);
                if declared.is_err() {
                    self.scope.declare(&name.text, Binding::Refused);
                }
                declared
            }
            StatementKind::Assign { target, operator, value } => match target {
                Target::Variable(name) => self.assignment(name, *operator, value, span),
                Target::Column { row, column } => self.assign_column(row, column, *operator, value, span),
            },
            StatementKind::Require { condition, failure } => {
                let condition = self.condition(condition)?;
                let failure = self.failure(failure, span)?;
                self.emit(StepKind::Require { condition, failure }, span)
            }
            StatementKind::Insert { table, columns, upsert: false } => self.insert(table, columns, span),
            StatementKind::Insert { table, columns, upsert: true } => self.upsert(table, columns, span),
            StatementKind::Update { row, columns } => self.update(row, columns, span),
            StatementKind::Delete { row } => self.delete(row, span),
            StatementKind::Append { list, values } => self.append(list, values, span),
            StatementKind::Sort { list, keys } => self.sort(list, keys, span),
            StatementKind::If { arms, otherwise } => {
                let blocks = arms.iter().map(|(_, block)| block).chain(otherwise);
                let branched = self.branch(arms, otherwise.as_ref(), span);
                self.forget(blocks);
                branched
            }
            StatementKind::ForRange { variable, from, to, body } => {
                self.for_range(variable, from, to, body, span)
            }
            StatementKind::ForEach { variable, scan, body } => self.for_each(variable, scan, body, span),
            StatementKind::Return { values } => {
                if !last {
                    let error = self.invalid(span, "return is not the last statement of the procedure");
                    let hint = "compute the results in variables and return them at the end";
                    return Err(error.with_hint(hint).into());
                }
                self.return_values(values, span)
            }
        }
    }

    // ---- variables ----

    fn declaration(
        &mut self,
        name: &Name,
        mutable: bool,
        ty: Option<&TypeName>,
        value: &tree::Expression,
    ) -> Lowered<()> {
        let wanted = match ty {
            Some(ty) => {
                self.field_names(ty)?;
                Some(type_of(ty))
            }
            None => None,
        };
        let is_empty_list = matches!(value.kind, ExpressionKind::EmptyList);
        match wanted {
            Some(Type::List(fields)) => self.list_declaration(name, mutable, fields, value),
            None if is_empty_list => {
                let error = self.invalid(value.span, "the type of the list is not known");
                Err(error.with_hint(format!("say it: var {name}: list of int = []")).into())
            }
            Some(Type::Scalar(scalar)) => {
                let span = value.span;
                let operand = self.operand(value, Some(scalar.data_type))?;
                let value = assigned(operand, scalar.data_type, &format!("variable {name}"))?;
                self.check_null(name, scalar, &value, Some(mutable), span)?;
                self.new_binding(name, scalar, mutable, value)
            }
            None => {
                let value = self.value(value)?;
                self.new_binding(name, value.ty, mutable, value)
            }
        }
    }

    fn list_declaration(
        &mut self,
        name: &Name,
        mutable: bool,
        fields: Vec<Field>,
        value: &tree::Expression,
    ) -> Lowered<()> {
        if !matches!(value.kind, ExpressionKind::EmptyList) {
            let error = self.invalid(value.span, "a list begins empty");
            return Err(error.with_hint("write = [] and append to it").into());
        }
        if !mutable {
            let error = self.invalid(name.span, "a list that cannot change stays empty");
            return Err(error.with_hint(format!("write var {name}")).into());
        }
        let variable = self.new_variable(name.text.clone(), Type::List(fields.clone()), name.span)?;
        self.declare(name, Binding::List { variable, fields, mutable })?;
        self.emit(StepKind::Clear { list: variable }, name.span)
    }

    fn new_binding(
        &mut self,
        name: &Name,
        scalar: ScalarType,
        mutable: bool,
        value: Expression,
    ) -> Lowered<()> {
        let variable = self.new_scalar(name.text.clone(), scalar, name.span)?;
        let declared = if mutable { Declared::Var } else { Declared::Let };
        self.declare(name, Binding::Scalar { variable, scalar, declared })?;
        self.emit(StepKind::Assign { variable, value }, name.span)
    }

    /// Null is not assigned to a variable that cannot hold it. `declared` as mutable, if the value
    /// is the variable's first.
    fn check_null(
        &self,
        name: &Name,
        scalar: ScalarType,
        value: &Expression,
        declared: Option<bool>,
        span: Span,
    ) -> Lowered<()> {
        if scalar.nullable || !value.ty.nullable {
            return Ok(());
        }
        let message = format!("{name} cannot be null, this value can be");
        let error = Diagnostic::new(SqlState::NOT_NULL_VIOLATION, span, message);
        let word = if declared == Some(false) { "let" } else { "var" };
        Err(error
            .with_hint(format!(
                "declare {word} {name}: {} null, or use coalesce(value, other)",
                scalar.data_type
            ))
            .into())
    }

    fn sort(&mut self, list: &Name, keys: &[tree::SortKey], span: Span) -> Lowered<()> {
        let variable = match self.lookup(&list.text, list.span)?.clone() {
            Binding::List { variable, mutable: true, .. } => variable,
            other => return Err(self.not_assignable(list, &other).into()),
        };
        self.check_not_iterated(variable, list)?;
        let mut lowered = Vec::new();
        for key in keys {
            let (_, field, _) = self.list_field(list, key.field.as_ref(), span)?;
            lowered.push(SortKey { field, descending: key.descending, nulls_first: key.nulls_first });
        }
        self.known.assigned(variable);
        self.emit(StepKind::Sort { list: variable, keys: lowered }, span)
    }

    fn assignment(
        &mut self,
        name: &Name,
        operator: Option<BinaryOperator>,
        value: &tree::Expression,
        span: Span,
    ) -> Lowered<()> {
        let (variable, scalar) = match self.lookup(&name.text, name.span)?.clone() {
            Binding::Scalar { variable, scalar, declared: Declared::Var } => (variable, scalar),
            Binding::List { variable, mutable: true, .. } => {
                if operator.is_some() || !matches!(value.kind, ExpressionKind::EmptyList) {
                    let error = self.invalid(span, "only the empty list is assigned to a list");
                    return Err(error.with_hint(format!("{name} = [] empties it, append adds to it")).into());
                }
                self.check_not_iterated(variable, name)?;
                self.known.assigned(variable);
                return self.emit(StepKind::Clear { list: variable }, span);
            }
            other => return Err(self.not_assignable(name, &other).into()),
        };
        let operand = match operator {
            None => self.operand(value, Some(scalar.data_type))?,
            Some(operator) => {
                let left =
                    tree::Expression { kind: ExpressionKind::Variable(name.text.clone()), span: name.span };
                let value = self.binary(operator, &left, value, span)?;
                super::typing::Operand::typed(value, span)
            }
        };
        let value_span = operand.span;
        let value = assigned(operand, scalar.data_type, &format!("variable {name}"))?;
        self.check_null(name, scalar, &value, None, value_span)?;
        self.known.assigned(variable);
        self.emit(StepKind::Assign { variable, value }, span)
    }

    fn not_assignable(&self, name: &Name, binding: &Binding) -> Diagnostic {
        let error = self.invalid(name.span, format!("{name} cannot be assigned to"));
        error.with_hint(match binding {
            Binding::Row { .. } => format!("assign to one of its columns: {name}.column = e"),
            Binding::Record { .. } => "it is an element of a list, which a for does not change".into(),
            Binding::Scalar { declared: Declared::Parameter, .. } => {
                format!("a parameter keeps its value; change a variable of your own: var other = {name}")
            }
            Binding::Scalar { declared: Declared::For, .. } => {
                format!("the for gives it its values; change a variable of your own: var other = {name}")
            }
            Binding::List { .. } => "it is a parameter; declare a list of your own with var".into(),
            _ => "it is declared with let; declare it with var".into(),
        })
    }

    // ---- lists ----

    fn append(&mut self, list: &Name, values: &[tree::Expression], span: Span) -> Lowered<()> {
        let (variable, fields) = match self.lookup(&list.text, list.span)? {
            Binding::List { variable, fields, mutable: true } => (*variable, fields.clone()),
            Binding::List { .. } => {
                let error =
                    self.invalid(list.span, format!("{list} is a parameter and cannot be appended to"));
                return Err(error.with_hint("declare a list of your own with var").into());
            }
            _ => return Err(self.no_list(list).into()),
        };
        self.check_not_iterated(variable, list)?;
        if values.len() != fields.len() {
            let message = format!("{list} has {}, {}", counted(fields.len(), "field"), given(values.len()));
            let error = self.invalid(span, message);
            return Err(error.with_hint(format!("it is a {}", type_text(&Type::List(fields)))).into());
        }
        let mut row = Vec::new();
        for (value, field) in values.iter().zip(&fields) {
            let place = match field.name.as_str() {
                "" => format!("a value of {list}"),
                name => format!("field {list}.{name}"),
            };
            let operand = self.operand(value, Some(field.scalar.data_type))?;
            let converted = assigned(operand, field.scalar.data_type, &place)?;
            if converted.ty.nullable && !field.scalar.nullable {
                let message = format!("{place} cannot be null, this value can be");
                let error = Diagnostic::new(SqlState::NOT_NULL_VIOLATION, value.span, message);
                let hint = format!("declare the field {} null, or use coalesce", field.scalar.data_type);
                return Err(error.with_hint(hint).into());
            }
            row.push(converted);
        }
        self.known.assigned(variable);
        self.emit(StepKind::Append { list: variable, values: row }, span)
    }

    fn check_not_iterated(&self, list: VariableId, name: &Name) -> Lowered<()> {
        if self.loops.iter().any(|open| matches!(open, OpenLoop::List(iterated) if *iterated == list)) {
            let error = self.invalid(name.span, format!("{name} changes inside a for over it"));
            return Err(error.with_hint("collect in another list").into());
        }
        Ok(())
    }

    // ---- branches ----

    /// Conditions after the first are computed only if those before were not true.
    fn branch(
        &mut self,
        arms: &[(tree::Expression, Block)],
        otherwise: Option<&Block>,
        span: Span,
    ) -> Lowered<()> {
        let [(condition, block), rest @ ..] = arms else { return Ok(()) };
        let condition = self.condition(condition)?;
        let line = self.line;
        let then = self.block(block);
        self.line = line;
        let otherwise = if rest.is_empty() {
            otherwise.map(|block| self.block(block)).unwrap_or_default()
        } else {
            let outer = std::mem::take(&mut self.steps);
            let known = self.known.clone();
            let branched = self.branch(rest, otherwise, span);
            self.known = known;
            let steps = std::mem::replace(&mut self.steps, outer);
            branched?;
            steps
        };
        self.line = line;
        self.emit(StepKind::If { condition, then, otherwise }, span)
    }

    // ---- results ----

    fn return_values(&mut self, values: &[tree::Expression], span: Span) -> Lowered<()> {
        let results = self.results.clone();
        if values.len() != results.len() {
            let has = counted(results.len(), "result");
            let error = self.invalid(span, format!("the procedure has {has}, {}", given(values.len())));
            let hint = match values.len() {
                1 if results.is_empty() => "say what it returns after its parameters: -> int".into(),
                more if more > results.len() => {
                    "say what it returns after its parameters: -> (a: int, b: int)".into()
                }
                _ => {
                    let names: Vec<&str> = results.iter().map(|(name, _)| name.as_str()).collect();
                    format!("give a value for each: return {}", names.join(", "))
                }
            };
            return Err(error.with_hint(hint).into());
        }
        let mut returned = Vec::new();
        for (value, (name, ty)) in values.iter().zip(&results) {
            returned.push(match ty {
                Type::Scalar(scalar) => {
                    let operand = self.operand(value, Some(scalar.data_type))?;
                    let result = assigned(operand, scalar.data_type, &format!("result {name}"))?;
                    if result.ty.nullable && !scalar.nullable {
                        let message = format!("result {name} cannot be null, this value can be");
                        let error = Diagnostic::new(SqlState::NOT_NULL_VIOLATION, value.span, message);
                        let hint = format!("declare the result {} null, or use coalesce", scalar.data_type);
                        return Err(error.with_hint(hint).into());
                    }
                    Returned::Scalar(result)
                }
                Type::List(_) => Returned::List(self.returned_list(value, name, ty)?),
            });
        }
        self.emit(StepKind::Return { values: returned }, span)
    }

    fn returned_list(&mut self, value: &tree::Expression, name: &str, ty: &Type) -> Lowered<VariableId> {
        let ExpressionKind::Variable(list) = &value.kind else {
            let error = self.invalid(value.span, format!("result {name} is a list"));
            return Err(error.with_hint("return a list variable").into());
        };
        let Binding::List { variable, fields, .. } = self.lookup(list, value.span)? else {
            return Err(self.no_list(&Name { text: list.clone(), span: value.span }).into());
        };
        let Type::List(wanted) = ty else { unreachable!("the caller asked for a list") };
        let fits = wanted.len() == fields.len()
            && wanted.iter().zip(fields).all(|(wanted, field)| {
                wanted.scalar.data_type == field.scalar.data_type
                    && (wanted.scalar.nullable || !field.scalar.nullable)
            });
        if fits {
            return Ok(*variable);
        }
        let found = type_text(&Type::List(fields.clone()));
        let message = format!("result {name} is a {}, {list} is a {found}", type_text(ty));
        let error = Diagnostic::new(SqlState::DATATYPE_MISMATCH, value.span, message);
        Err(error.with_hint(format!("declare the result, or the list, a {found}")).into())
    }

    /// Something that is used as a list and is none.
    pub(super) fn no_list(&self, name: &Name) -> Diagnostic {
        let lists = self.scope.lists();
        let hint = match lists.is_empty() {
            true => "declare one: var l: list of int = []".into(),
            false => format!("lists here are {}", super::lowering::listed(&lists)),
        };
        self.invalid(name.span, format!("{name} is not a list")).with_hint(hint)
    }

    /// A procedure with results ends with `return`.
    pub(super) fn check_returns(&mut self, definition: &ProcedureDefinition) {
        let returns =
            definition.body.last().is_some_and(|last| matches!(last.kind, StatementKind::Return { .. }));
        if !self.results.is_empty() && !returns {
            let message = format!("procedure {} does not end with return", definition.name);
            let error = self.invalid(definition.name.span, message);
            self.report(error.with_hint("its results are given by the last statement: return e").into());
        }
    }

    /// An expression as a `bigint` of its own.
    pub(super) fn bigint(&mut self, expression: &tree::Expression, place: &str) -> Lowered<Expression> {
        let bigint = fabius_value::DataType::BigInt;
        let operand = self.operand(expression, Some(bigint))?;
        assigned(operand, bigint, place)
            .and_then(|value| settled(super::typing::Operand::typed(value, expression.span)))
    }
}
