//! Blocks with what they declare.

use super::Compiler;
use super::scope::{Entity, Record, Scope, Variable, VariablePlace};
use super::sequence::{Flow, Target};
use crate::bind::{Bound, Catching, tree as build};
use crate::plpgsql::type_name::{self, Named};
use fabius_program::syntax::diagnostic::Span;
use fabius_program::syntax::tree::Block;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::{
    self, Declaration, DeclarationKind, Nulls, Path, Statement, TypeReference,
};
use fabius_value::{Result, SqlState};
use std::cell::RefCell;
use std::rc::Rc;

impl Compiler<'_> {
    /// A block of the body.
    pub(super) fn block(&mut self, tree: &tree::Block, scope: &Scope<'_>, block: &mut Block) -> Result<Flow> {
        let label = tree.label.as_ref().map(|label| label.text.as_str());
        let inner = Scope::within(scope, label);
        let from = block.len();
        for declaration in &tree.declarations {
            self.declare(declaration, &inner, block)?;
        }
        self.mark_declarations(&mut block[from..], tree.begin);
        let statements: Vec<&Statement> = tree.statements.iter().collect();
        let Some(label) = label else { return self.statements(&statements, &inner, block) };
        let exit = self.flag("left");
        block.push(build::declare(&exit, true, None, build::boolean(false)));
        self.targets.push(Target { label: Some(label.to_string()), exit: exit.clone(), next: None });
        let around = self.catches.around.len();
        // The first that is for a class counts.
        for catch in tree.catches.iter().rev() {
            let (caught, message) =
                (self.program_of(&catch.caught, scope)?, self.program_of(&catch.message, scope)?);
            let again = match &catch.again {
                Some((class, detail)) => {
                    Some((self.program_of(class, scope)?, self.program_of(detail, scope)?))
                }
                None => None,
            };
            let classes = catch.classes.clone();
            self.catches.around.push(Catching { classes, caught, message, again, exit: exit.clone() });
        }
        let flow = self.statements(&statements, &inner, block);
        self.catches.around.truncate(around);
        self.targets.pop();
        let mut flow = flow?;
        if flow.flags.remove(&exit) {
            flow.leaves = false;
        }
        Ok(flow)
    }

    /// The program's variable that a variable is now.
    fn program_of(&self, path: &tree::Path, scope: &Scope<'_>) -> Result<String> {
        match scope.find(&path.parts) {
            Some(Entity::Variable(variable)) => Ok(variable.place.borrow().program.clone()),
            _ => Err(self.no_variable(path)),
        }
    }

    fn declare(&mut self, declaration: &Declaration, scope: &Scope<'_>, block: &mut Block) -> Result<()> {
        let name = &declaration.name;
        let entity = match &declaration.kind {
            DeclarationKind::Alias(of) => scope.find(&of.parts).ok_or_else(|| self.no_variable(of))?,
            DeclarationKind::Variable { is_constant, ty, nulls, default } => {
                match self.named_type(ty, name.span, scope)? {
                    Named::Scalar(SqlType::Array(element)) => {
                        let list = self.list_variable(&name.text, &element, block);
                        if let Some(default) = default {
                            self.assign_list(&list, default, scope, block)?;
                        }
                        Entity::List(list)
                    }
                    Named::Scalar(sql_type) => {
                        let value = match default {
                            Some(default) => self.bind(scope, default.span, block, |_, binder| {
                                let bound = binder.expression(&default.tree, Some(&sql_type))?;
                                binder.coerced(bound, &sql_type)
                            })?,
                            None => null(&sql_type),
                        };
                        let mut variable = self.variable(&name.text, sql_type);
                        (variable.is_constant, variable.nulls) = (*is_constant, *nulls);
                        let value = self.without_nulls(&variable, value, block);
                        self.introduce(&variable, 0, value, block);
                        Entity::Variable(Rc::new(variable))
                    }
                    Named::Row(_) | Named::Record if default.is_some() => {
                        let message = "a default for a record is not supported in a function";
                        return Err(self.error(b"0A000", name.span, message));
                    }
                    Named::Row(columns) => {
                        let mut fields = Vec::new();
                        for (column, sql_type) in columns {
                            let value = null(&sql_type);
                            let field = self.variable(&column, sql_type);
                            self.introduce(&field, 0, value, block);
                            fields.push(Rc::new(field));
                        }
                        Entity::Record(Rc::new(self.record(&name.text, Some(fields))))
                    }
                    Named::Record => Entity::Record(Rc::new(self.record(&name.text, None))),
                }
            }
        };
        if !scope.declare(&name.text, entity) {
            let message = format!("duplicate declaration at or near \"{}\"", name.text);
            return Err(self.error(b"42601", name.span, message));
        }
        Ok(())
    }

    fn record(&mut self, name: &str, fields: Option<Vec<Rc<Variable>>>) -> Record {
        self.variables += 1;
        Record { name: name.to_string(), number: self.variables, fields: RefCell::new(fields) }
    }

    /// The type that a declaration names.
    fn named_type(&self, ty: &TypeReference, span: Span, scope: &Scope<'_>) -> Result<Named> {
        let located = |error: fabius_value::Error| error.at_line(self.definition.source.line(span.start));
        match ty {
            TypeReference::Record => Ok(Named::Record),
            TypeReference::Named(tree) => type_name::named(tree, self.catalog).map_err(located),
            TypeReference::SameAs(path) => {
                if let Some(Entity::Variable(variable)) = scope.find(&path.parts) {
                    return Ok(Named::Scalar(variable.sql_type.clone()));
                }
                if let Some(sql_type) = type_name::column_type(self.catalog, &path.parts) {
                    return Ok(Named::Scalar(sql_type));
                }
                Err(self.no_relation(path))
            }
            TypeReference::RowOf(path) => {
                let table = type_name::table(self.catalog, &path.parts);
                table.map(type_name::row).ok_or_else(|| self.no_relation(path))
            }
        }
    }

    /// A variable that is nowhere yet.
    pub(super) fn variable(&mut self, name: &str, sql_type: SqlType) -> Variable {
        self.variables += 1;
        let place =
            VariablePlace { program: String::new(), nullable: true, depth: self.depth, generation: 0 };
        Variable {
            name: name.to_string(),
            sql_type,
            is_constant: false,
            nulls: Nulls::Taken,
            number: self.variables,
            place: RefCell::new(place),
        }
    }

    fn no_relation(&self, path: &Path) -> fabius_value::Error {
        let message = match &path.parts[..] {
            [table @ .., column] if type_name::table(self.catalog, table).is_some() => {
                format!("column \"{column}\" of relation \"{}\" does not exist", table.join("."))
            }
            [table, _] => format!("relation \"{table}\" does not exist"),
            parts => format!("relation \"{}\" does not exist", parts.join(".")),
        };
        let state = if message.starts_with("column") {
            SqlState::UNDEFINED_COLUMN
        } else {
            SqlState::UNDEFINED_TABLE
        };
        self.error(&state.0, path.span, message)
    }

    /// The error that a name is no variable.
    pub(super) fn no_variable(&self, path: &Path) -> fabius_value::Error {
        let message = format!("\"{}\" is not a known variable", path.parts.join("."));
        self.error(b"42601", path.span, message)
    }
}

/// The null of a type.
pub(super) fn null(sql_type: &SqlType) -> Bound {
    let data_type = Bound::computed(build::null(), sql_type.clone(), true).data_type;
    Bound::held_as(build::typed_null(data_type), sql_type.clone(), true, data_type)
}
