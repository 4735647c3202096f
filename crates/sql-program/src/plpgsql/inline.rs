//! A call inside a program: the function's body becomes a part of it.

use super::call::{self, Given, Origin};
use super::compile::{Entity, List, Returned, Scope, Variable, VariablePlace, compile};
use super::definition;
use super::definition::Definition;
use crate::bind::{Bind, Binder, Bound, Stop, tree as build};
use fabius_program::syntax::diagnostic::Source;
use fabius_program::syntax::tree::{Block, ExpressionKind, ScalarName, TypeKind, TypeName};
use fabius_program::syntax::{Span, tree};
use fabius_sql_meaning::catalog;
use fabius_sql_meaning::catalog::FunctionParameter;
use fabius_sql_meaning::catalog::{Function, ObjectName, ParameterMode, Returns};
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::piece;
use fabius_sql_syntax::plpgsql::tree::Nulls;
use fabius_sql_syntax::privilege::Class;
use fabius_value::{Error, SqlState};
use sqlparser::ast;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Calls inside of calls.
const DEPTH_MAX: usize = 20;

/// What a call became.
pub struct Inlined {
    /// What it returns.
    pub returned: Returned,
    /// For each output parameter, the place of its argument.
    pub outputs: Vec<usize>,
}

/// The functions of a call's name.
fn named<'c>(binder: &Binder<'c>, call: &ast::Function) -> Option<&'c [Arc<Function>]> {
    let parts: Vec<String> =
        call.name.0.iter().filter_map(|part| part.as_ident()).map(super::type_name::identifier).collect();
    let name = match &parts[..] {
        [name] => ObjectName { schema: "public".into(), name: name.clone() },
        [schema, name] => ObjectName { schema: schema.clone(), name: name.clone() },
        _ => return None,
    };
    binder.catalog.functions.get(&name).map(Vec::as_slice).filter(|functions| !functions.is_empty())
}

/// A call in an expression; `None` if no function of the catalog has this name.
///
/// # Errors
/// What is wrong with the call, or with the function.
pub fn scalar(binder: &mut Binder<'_>, call: &ast::Function) -> Bind<Option<Bound>> {
    let Some(functions) = named(binder, call) else {
        // A function is not there yet while it is created.
        let name = call.name.0.last().and_then(|part| part.as_ident()).map(super::type_name::identifier);
        let name = name.unwrap_or_default();
        let is_own = |around: &ObjectName| around.name.split_once('(').is_some_and(|(own, _)| own == name);
        return match binder.following.last().is_some_and(is_own) {
            true => Err(calls_itself(&name).into()),
            false => Ok(None),
        };
    };
    let given = call::arguments(binder, call)?;
    let (function, origins) = call::resolve(binder, functions, &given, false)?;
    if matches!(function.returns, Returns::Table(_)) {
        return Err(Error::new(
            SqlState::NOT_SUPPORTED,
            "set-valued function called in context that cannot accept a set",
        )
        .with_hint(format!("Use SELECT ... FROM {}(...).", function.name.name))
        .into());
    }
    let returned = body(binder, function, &origins, given)?;
    match returned {
        Returned::Nothing => {
            Ok(Some(Bound::held_as(build::text(""), SqlType::Void, false, fabius_value::DataType::TEXT)))
        }
        Returned::Row(row) => match <[_; 1]>::try_from(row) {
            Ok([(_, value)]) => Ok(Some(value)),
            Err(_) => Err(Error::new(SqlState::NOT_SUPPORTED, "a record as a value is not supported")
                .with_hint(format!("Use SELECT * FROM {}(...).", function.name.name))
                .into()),
        },
        Returned::Table { .. } => Err(Stop::Beyond("a set as a value".into())),
    }
}

/// `FROM f(...)`: rows in a list, or one row; `None` if no function of the catalog has this name.
///
/// # Errors
/// As [`scalar`].
pub fn table(binder: &mut Binder<'_>, call: &ast::Function) -> Bind<Option<Returned>> {
    let Some(functions) = named(binder, call) else { return Ok(None) };
    let given = call::arguments(binder, call)?;
    let (function, origins) = call::resolve(binder, functions, &given, false)?;
    body(binder, function, &origins, given).map(Some)
}

/// `CALL p(...)`
///
/// # Errors
/// As [`scalar`].
pub fn call(binder: &mut Binder<'_>, call: &ast::Function, given: Vec<Given>) -> Bind<Inlined> {
    let Some(functions) = named(binder, call) else {
        let types: Vec<String> = given.iter().map(|given| given.value.sql_type.to_string()).collect();
        let message = format!("procedure {}({}) does not exist", call.name, types.join(", "));
        let hint = "No procedure matches the given name and argument types. You might need to add explicit type casts.";
        return Err(Error::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(hint).into());
    };
    let (function, origins) = call::resolve(binder, functions, &given, true)?;
    let outputs = origins
        .iter()
        .zip(&function.parameters)
        .filter(|(_, parameter)| matches!(parameter.mode, ParameterMode::Out | ParameterMode::InOut))
        .map(|(origin, _)| match origin {
            Origin::Argument(at) => *at,
            _ => usize::MAX,
        })
        .collect();
    let returned = body(binder, function, &origins, given)?;
    Ok(Inlined { returned, outputs })
}

/// Whether a call is one of a function that returns a set of values.
pub fn returns_values(binder: &Binder<'_>, call: &ast::Function) -> bool {
    named(binder, call).is_some_and(|functions| {
        functions.iter().all(|f| matches!(&f.returns, Returns::Table(columns) if columns.len() == 1))
    })
}

/// Whether a call is one of a function that returns an array.
pub fn returns_array(binder: &Binder<'_>, call: &ast::Function) -> bool {
    named(binder, call).is_some_and(|functions| {
        functions.iter().all(|f| matches!(f.returns, Returns::Scalar(SqlType::Array(_))))
    })
}

/// Whether a call is one of a function that returns a row which has an array; of one alone, too.
pub fn returns_row_with_array(binder: &Binder<'_>, call: &ast::Function) -> bool {
    let is_array = |sql_type: &SqlType| matches!(sql_type, SqlType::Array(_));
    let has_array = |function: &Arc<Function>| match &function.returns {
        Returns::Scalar(sql_type) => is_array(sql_type),
        Returns::Record(columns) => columns.iter().any(|(_, sql_type)| is_array(sql_type)),
        Returns::Table(_) => false,
    };
    named(binder, call).is_some_and(|functions| functions.iter().all(has_array))
}

fn calls_itself(name: &str) -> Error {
    let message = format!("a function that calls itself is not supported: {name}");
    Error::new(SqlState::NOT_SUPPORTED, message).with_hint("Every call ends: use a loop instead.")
}

/// The body of a function, with its arguments.
fn body(
    binder: &mut Binder<'_>,
    function: &Function,
    origins: &[Origin],
    given: Vec<Given>,
) -> Bind<Returned> {
    binder.catalog.require_call(binder.asker, function)?;
    let definition = definition::parse(&function.definition, binder.catalog)?;
    if definition.is_definers {
        let owner = binder.catalog.access(Class::Function, function.oid).owner;
        let asker = std::mem::replace(&mut binder.asker, owner);
        let returned = body_as(binder, function, &definition, origins, given);
        binder.asker = asker;
        return returned;
    }
    body_as(binder, function, &definition, origins, given)
}

/// As [`body`], with the privileges of [`Binder::asker`].
fn body_as(
    binder: &mut Binder<'_>,
    function: &Function,
    definition: &Definition,
    origins: &[Origin],
    given: Vec<Given>,
) -> Bind<Returned> {
    let mut entities = Vec::new();
    let mut nulls = Vec::new();
    for (origin, parameter) in origins.iter().zip(&function.parameters) {
        if !parameter.is_input() {
            continue;
        }
        let value = match origin {
            Origin::Argument(at) => given.get(*at).map(|given| given.value.clone()),
            Origin::Default => {
                let text = parameter.default.clone().unwrap_or_default();
                let span = Span { start: 0, end: text.len() as u32 };
                let tree = piece::expression(&Source::new(text, ""), span)?;
                Some(binder.argument(&tree)?)
            }
            Origin::Rest(at) => {
                let rest: Vec<Bound> = given.iter().skip(*at).map(|given| given.value.clone()).collect();
                Some(gathered(binder, rest, &parameter.sql_type)?)
            }
            Origin::None => None,
        };
        let Some(value) = value else { continue };
        let value = match &parameter.sql_type {
            SqlType::Array(_) => binder.array(value, &parameter.sql_type)?,
            _ => binder.coerced(value, &parameter.sql_type)?,
        };
        let number = entities.len() + 1;
        let entity = entity(binder, &parameter.name, &parameter.sql_type, number, value)?;
        if let Entity::Variable(variable) = &entity
            && variable.place.borrow().nullable
        {
            nulls.push(variable.bound().expression);
        }
        entities.push((parameter.name.clone(), entity));
    }
    if !function.is_strict || nulls.is_empty() {
        return compiled(binder, definition, &entities);
    }
    // `STRICT`: null if an argument is.
    let all_there = build::all(nulls.into_iter().map(|value| build::is_null(value, true)));
    let (mut inner, returned) = binder.nested(|binder| compiled(binder, definition, &entities))?;
    let returned = match returned {
        Returned::Row(row) if row.iter().any(|(_, value)| matches!(value.sql_type, SqlType::Array(_))) => {
            return Err(Stop::Beyond("an array from a function that is STRICT".into()));
        }
        Returned::Row(row) => {
            let mut outer = Vec::new();
            for (column, value) in row {
                let name = binder.name("result");
                let ty = build::scalar_type(value.data_type, true);
                binder.emit(build::declare(&name, true, Some(ty), build::typed_null(value.data_type)));
                inner.push(build::assign(&name, value.expression));
                outer.push((
                    column,
                    Bound::held_as(build::variable(&name), value.sql_type, true, value.data_type),
                ));
            }
            Returned::Row(outer)
        }
        Returned::Table { list, columns } => {
            // The list is declared outside.
            let declares = |statement: &tree::Statement| match &statement.kind {
                tree::StatementKind::Let { name, .. } => name.text == list,
                _ => false,
            };
            if let Some(at) = inner.iter().position(declares) {
                let declaration = inner.remove(at);
                binder.emit(declaration);
            }
            Returned::Table { list, columns }
        }
        Returned::Nothing => Returned::Nothing,
    };
    binder.emit(build::when(all_there, inner, None));
    Ok(returned)
}

/// Compiles a body with null for each parameter.
///
/// # Errors
/// What is wrong with it.
pub fn checked(
    binder: &mut Binder<'_>,
    definition: &Definition,
    parameters: &[FunctionParameter],
) -> fabius_value::Result<()> {
    let mut entities = Vec::new();
    for parameter in parameters.iter().filter(|parameter| parameter.is_input()) {
        let value = match &parameter.sql_type {
            array @ SqlType::Array(_) => gathered(binder, Vec::new(), array),
            sql_type => {
                let data_type = Bound::computed(build::null(), sql_type.clone(), true).data_type;
                Ok(Bound::held_as(build::typed_null(data_type), sql_type.clone(), true, data_type))
            }
        };
        let number = entities.len() + 1;
        let entity = value
            .and_then(|value| entity(binder, &parameter.name, &parameter.sql_type, number, value))
            .map_err(Stop::into_error)?;
        entities.push((parameter.name.clone(), entity));
    }
    compiled(binder, definition, &entities).map(drop).map_err(Stop::into_error)
}

/// Compiles a body into the binder's block.
///
/// # Errors
/// What is wrong with it.
pub fn compiled(
    binder: &mut Binder<'_>,
    definition: &Definition,
    entities: &[(String, Entity)],
) -> Bind<Returned> {
    let types: Vec<String> =
        catalog::input_types(&definition.parameters).map(SqlType::internal_name).collect();
    let itself = ObjectName {
        schema: definition.name.schema.clone(),
        name: format!("{}({})", definition.name.name, types.join(",")),
    };
    if binder.following.contains(&itself) || binder.following.len() >= DEPTH_MAX {
        return Err(calls_itself(&definition.name.name).into());
    }
    let mut root = Scope::root(&definition.name.name);
    for (name, entity) in entities {
        if !name.is_empty() {
            root.declare(name, entity.clone());
        }
        root.add_parameter(entity.clone());
    }
    let mut following = binder.following.clone();
    following.push(itself);
    let mut block = Block::new();
    let compiled = compile(binder.catalog, definition, &root, (&mut *binder, &following), &mut block);
    let compiled = compiled.map_err(|error| {
        let has_context = error.place().is_some_and(|place| place.context.is_some());
        match error.line() {
            Some(line) if !has_context => error.with_context(format!(
                "compilation of PL/pgSQL function \"{}\" near line {line}",
                definition.name.name
            )),
            _ => error,
        }
    })?;
    binder.set_next_name(compiled.next_name);
    binder.reads.extend(compiled.reads);
    binder.writes.extend(compiled.writes);
    binder.notices |= compiled.notices;
    binder.catches.escapes.extend(compiled.escapes);
    binder.doubtful.extend(compiled.doubtful);
    binder.block.append(&mut block);
    Ok(compiled.returned)
}

/// An argument as what a name of the body stands for.
fn entity(
    binder: &mut Binder<'_>,
    name: &str,
    sql_type: &SqlType,
    number: usize,
    value: Bound,
) -> Bind<Entity> {
    if let SqlType::Array(element) = sql_type {
        let ExpressionKind::Variable(program) = &value.expression.kind else {
            return Err(Stop::Beyond("an array that is computed".into()));
        };
        let list = List { program: program.clone(), element: (**element).clone() };
        return Ok(Entity::List(Rc::new(list)));
    }
    let program = match &value.expression.kind {
        ExpressionKind::Variable(program) => program.clone(),
        _ => {
            let program = binder.name(if name.is_empty() { "argument" } else { name });
            let ty = build::scalar_type(value.data_type, value.nullable);
            binder.emit(build::declare(&program, false, Some(ty), value.expression));
            program
        }
    };
    let place = VariablePlace { program, nullable: value.nullable, depth: 0, generation: 0 };
    Ok(Entity::Variable(Rc::new(Variable {
        name: name.to_string(),
        sql_type: sql_type.clone(),
        is_constant: false,
        nulls: Nulls::Taken,
        number,
        place: RefCell::new(place),
    })))
}

/// Values as an array.
pub fn gathered(binder: &mut Binder<'_>, values: Vec<Bound>, array: &SqlType) -> Bind<Bound> {
    let SqlType::Array(element) = array else { return Err(Stop::Beyond("an array of this type".into())) };
    let list = binder.name("array");
    let probe = Bound::computed(build::null(), (**element).clone(), true);
    let scalar = ScalarName { data_type: probe.data_type, nullable: true, span: Span::default() };
    let ty = TypeName { kind: TypeKind::List(scalar), span: Span::default() };
    let empty = build::expression(ExpressionKind::EmptyList);
    binder.emit(build::declare(&list, true, Some(ty), empty));
    for value in values {
        let value = binder.coerced(value, element)?;
        binder.emit(build::append(&list, vec![value.expression]));
    }
    Ok(Bound::held_as(build::variable(&list), array.clone(), false, probe.data_type))
}

/// Rows of a call in `FROM`, as columns of what they are in.
pub fn row_of_list(element: &str, columns: &[OutputColumn]) -> Vec<Bound> {
    let field = |(at, column): (usize, &OutputColumn)| {
        let value = build::column(build::loop_row(element), &format!("c{}", at + 1), false);
        Bound::computed(value, column.sql_type.clone(), true)
    };
    columns.iter().enumerate().map(field).collect()
}
