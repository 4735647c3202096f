//! What names mean in a body: variables, records, parameters.
//!
//! A variable of the body is a variable of the program, or several after each other: where a straight line of
//! statements assigns to it, it gets a new one, so that the program's types say what is known of its value by then.

use crate::bind::tree as build;
use crate::bind::{Bound, Variables};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::plpgsql::tree::Nulls;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The names of one block; those of the blocks around it are behind.
pub struct Scope<'p> {
    /// The block around it.
    parent: Option<&'p Scope<'p>>,
    /// The block's label, or the function's name.
    label: Option<String>,
    names: RefCell<BTreeMap<String, Entity>>,
    /// `$1`, `$2`, ...: of the function's own scope.
    parameters: Vec<Entity>,
}

/// What a name stands for.
#[derive(Clone)]
pub enum Entity {
    /// One value.
    Variable(Rc<Variable>),
    /// Several, with names.
    Record(Rc<Record>),
    /// A list.
    List(Rc<List>),
}

/// One value.
pub struct Variable {
    /// The variable's name in the body.
    pub name: String,
    /// The variable's type.
    pub sql_type: SqlType,
    /// `CONSTANT`.
    pub is_constant: bool,
    /// Whether it may be null.
    pub nulls: Nulls,
    /// The variable's number in the function, in the order of the text.
    pub number: usize,
    /// Where it is now.
    pub place: RefCell<VariablePlace>,
}

/// The program's variable that a variable is.
#[derive(Clone)]
pub struct VariablePlace {
    /// The variable's name in the program.
    pub program: String,
    /// Whether it can be null.
    pub nullable: bool,
    /// How deep the block is that declares it.
    pub depth: usize,
    /// How many there were before.
    pub generation: usize,
}

/// `RECORD`, `%ROWTYPE`, the row of a loop.
pub struct Record {
    /// The record's name.
    pub name: String,
    /// The record's number in the function.
    pub number: usize,
    /// The record's fields, once they are known.
    pub fields: RefCell<Option<Vec<Rc<Variable>>>>,
}

/// An array.
pub struct List {
    /// The program's list.
    pub program: String,
    /// What its elements are.
    pub element: SqlType,
}

/// Where a value of a row goes.
#[derive(Clone)]
pub enum Slot {
    /// Into a variable.
    Variable(Rc<Variable>),
    /// Into an array.
    List(Rc<List>),
}

impl Slot {
    /// What it has.
    pub fn bound(&self) -> Bound {
        match self {
            Slot::Variable(variable) => variable.bound(),
            Slot::List(list) => list.bound(),
        }
    }
}

impl List {
    /// The type of the array.
    pub fn array(&self) -> SqlType {
        SqlType::Array(Box::new(self.element.clone()))
    }

    /// The array as a value.
    pub fn bound(&self) -> Bound {
        let held = Bound::computed(build::null(), self.element.clone(), true).data_type;
        Bound::held_as(build::variable(self.program.clone()), self.array(), false, held)
    }
}

impl<'p> Scope<'p> {
    /// The function's own: its parameters.
    pub fn root(function: &str) -> Scope<'static> {
        Scope {
            parent: None,
            label: Some(function.into()),
            names: RefCell::default(),
            parameters: Vec::new(),
        }
    }

    /// A block's.
    pub fn within(parent: &'p Scope<'p>, label: Option<&str>) -> Scope<'p> {
        Scope {
            parent: Some(parent),
            label: label.map(str::to_string),
            names: RefCell::default(),
            parameters: Vec::new(),
        }
    }

    /// Gives an entity a name; whether the name was free.
    pub fn declare(&self, name: &str, entity: Entity) -> bool {
        self.names.borrow_mut().insert(name.to_string(), entity).is_none()
    }

    /// Adds `$n`.
    pub fn add_parameter(&mut self, entity: Entity) {
        self.parameters.push(entity);
    }

    /// The parameters that are single values.
    pub fn parameters(&self) -> Vec<Rc<Variable>> {
        let values = self.parameters.iter().filter_map(|parameter| match parameter {
            Entity::Variable(variable) => Some(variable.clone()),
            _ => None,
        });
        values.collect()
    }

    /// Puts parameters back to where they are before the body runs.
    pub fn reset(&self, places: &[VariablePlace]) {
        for (variable, place) in self.parameters().iter().zip(places) {
            variable.place.replace(place.clone());
        }
    }

    /// What `x`, `label.x`, `record.field`, `$1` stand for.
    pub fn find(&self, path: &[String]) -> Option<Entity> {
        if let [only] = path
            && let Some(number) = only.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok())
        {
            return self.numbered(number.checked_sub(1)?);
        }
        let own = match path {
            [label, rest @ ..] if !rest.is_empty() && self.label.as_deref() == Some(label) => self.own(rest),
            _ => None,
        };
        let found = self.own(path).or(own);
        found.or_else(|| self.parent.and_then(|parent| parent.find(path)))
    }

    fn numbered(&self, index: usize) -> Option<Entity> {
        match self.parent {
            Some(parent) => parent.numbered(index),
            None => self.parameters.get(index).cloned(),
        }
    }

    fn own(&self, path: &[String]) -> Option<Entity> {
        let names = self.names.borrow();
        match path {
            [name] => names.get(name).cloned(),
            [name, field] => match names.get(name)? {
                Entity::Record(record) => record.field(field).map(Entity::Variable),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Record {
    /// A field.
    pub fn field(&self, name: &str) -> Option<Rc<Variable>> {
        let fields = self.fields.borrow();
        fields.as_ref()?.iter().find(|field| field.name == name).cloned()
    }
}

impl Variable {
    /// The variable's value.
    pub fn bound(&self) -> Bound {
        let place = self.place.borrow();
        let value = build::variable(place.program.clone());
        Bound::computed(value, self.sql_type.clone(), place.nullable)
    }
}

impl Entity {
    /// The value of what is a variable.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Entity::Variable(variable) => Some(variable.bound()),
            Entity::List(list) => {
                let array = SqlType::Array(Box::new(list.element.clone()));
                Some(Bound::computed(build::variable(list.program.clone()), array, false))
            }
            Entity::Record(_) => None,
        }
    }
}

impl Variables for Scope<'_> {
    fn variable(&self, path: &[String]) -> Option<Bound> {
        self.find(path)?.bound()
    }

    fn parameter(&self, index: usize) -> Option<Bound> {
        self.numbered(index)?.bound()
    }
}
