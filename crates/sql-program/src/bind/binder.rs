//! The state of binding one statement: its program so far, its parameters, the names in scope.

use super::bound::{Bound, Known};
use super::catch::Catches;
use super::constant::{Constant, Literals};
use super::inputs::Inputs;
use super::scope::Scope;
use super::stop::{Bind, Place, Stop, wrong};
use super::tree;
use crate::lowered::{Argument, Doubtful, Fate};
use fabius_program::syntax::tree::{Block, Expression, Statement, TypeName};
use fabius_sql_meaning::catalog::Relation;
use fabius_sql_meaning::catalog::{Catalog, ForeignKey, Key, ObjectName, Oid, Table, folded};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::normal_form::NormalForm;
use fabius_sql_syntax::part;
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::{DataType, Error, Value, interval};
use sqlparser::ast;
use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Names that a statement can use besides columns: a procedure's variables and parameters.
pub trait Variables {
    /// What a name means: `x`, `record.field`, `block.x`. Names are folded to lower case unless quoted.
    fn variable(&self, path: &[String]) -> Option<Bound>;

    /// What `$1` (0) and so on mean.
    fn parameter(&self, index: usize) -> Option<Bound>;
}

/// Rows of a table that are to be deleted.
pub(crate) struct Waiting {
    pub(super) table: ObjectName,
    /// The list of their keys.
    pub(super) list: String,
    /// Set when one is added.
    pub(super) any: String,
}

/// What is known of a reference that waits until a statement has written its rows.
pub(super) struct OwnReference {
    pub(super) key: ForeignKey,
    /// A list of the values of the referring columns: of rows that are new, or that referred to rows that are gone.
    pub(super) list: String,
    pub(super) of: Fate,
}

/// A reference whose referring columns have changed along another one.
pub(super) struct Followed {
    pub(super) table: Arc<Table>,
    pub(super) key: ForeignKey,
    /// A list of their new values.
    pub(super) list: String,
}

/// A unique constraint that can be deferred, of whose rows a statement writes some.
pub(super) struct LateKey {
    pub(super) table: Arc<Table>,
    pub(super) key: Key,
    /// A list of the keys that they get.
    pub(super) list: String,
}

/// Binds statements and expressions into a block of a program.
pub struct Binder<'a> {
    /// What names of tables, sequences and functions mean.
    pub catalog: &'a Catalog,
    /// The role whose privileges count.
    pub(crate) asker: Oid,
    /// The text that places are in.
    pub(super) text: &'a str,
    pub(super) types: &'a mut ParameterTypes,
    pub(super) variables: Option<&'a dyn Variables>,
    /// Whether literals become parameters of the program.
    pub(super) lifts: bool,
    /// Whether literals stay all the same: in what the catalog says.
    pub(super) inline: bool,
    /// The literals of the text.
    pub(super) literals: Literals,
    pub(crate) inputs: Inputs,
    /// Whether what is being built may run more than once.
    pub(crate) repeats: bool,
    pub(super) own_parameters: HashMap<usize, Bound>,
    fresh: usize,
    /// The block being built: statements that an expression needs go here too.
    pub block: Block,
    /// The element of a list of rows that is inserted, and how many of its fields are columns.
    pub(super) in_list: Option<(String, usize)>,
    /// References of a table to itself that are checked when a statement has written all its rows.
    pub(super) own_references: Vec<OwnReference>,
    /// References that are checked then since a change came along another one with their columns.
    pub(super) followed: Vec<Followed>,
    /// Unique constraints that are checked then.
    pub(super) late_keys: Vec<LateKey>,
    /// Whether the loop whose body is built next keeps a limit itself.
    pub(super) limited: bool,
    /// Whether a list is bound again, for what is wrong with it: what is within it is not bound a third time.
    pub(super) tells_wrong: bool,
    pub(super) scopes: Vec<Scope>,
    /// The outermost scope that a name was found in.
    pub(super) outermost: Cell<usize>,
    /// What is declared before the loops that are being built, if any are: it keeps its value from row to row.
    pub(super) before: Option<Block>,
    /// How often what is done for a row was bound.
    pub(super) bodies: usize,
    /// How many `UNION`s were bound.
    pub(super) united: usize,
    /// How many queries in the `FROM` of each other are looked at for their columns.
    pub(super) deriving: usize,
    /// How many whole tables the loops around go over.
    pub(super) scans: usize,
    /// Tables that the statement reads.
    pub reads: BTreeSet<ObjectName>,
    /// Tables that it writes.
    pub writes: BTreeSet<ObjectName>,
    /// Those among the tables read that are read behind a write of the same statement.
    pub(super) reads_behind: BTreeSet<ObjectName>,
    /// Expressions whose value is at hand: aggregates once they are computed; and the scope that they are of.
    pub(super) replaced: Vec<(ast::Expr, Bound, usize)>,
    /// How deep expressions, subqueries and cascades are nested.
    pub(super) depth: usize,
    /// Views and referential actions that are being followed.
    pub(crate) following: Vec<ObjectName>,
    /// Exceptions that a function around catches.
    pub(crate) catches: Catches,
    /// Rows that are to be deleted since others are, while that is bound.
    pub(super) waiting: Vec<Waiting>,
    /// Variables that hold the text of an array or interval.
    pub(super) kept_texts: BTreeSet<String>,
    /// Whether a function that is called says something to the client: see
    /// [`Lowered::notices`](crate::lowered::Lowered).
    pub notices: bool,
    /// What is checked when the transaction ends, if it does not hold now.
    pub(crate) doubtful: BTreeSet<Doubtful>,
}

/// Deeper statements are refused (54001).
const DEPTH: usize = 60;

impl<'a> Binder<'a> {
    /// Begins a program of its own, whose literals become parameters.
    pub fn new(catalog: &'a Catalog, text: &'a str, types: &'a mut ParameterTypes) -> Binder<'a> {
        Binder {
            catalog,
            asker: catalog.role,
            text,
            types,
            variables: None,
            lifts: true,
            inline: false,
            literals: Literals::default(),
            inputs: Inputs::default(),
            repeats: false,
            own_parameters: HashMap::new(),
            fresh: 0,
            block: Block::new(),
            in_list: None,
            own_references: Vec::new(),
            followed: Vec::new(),
            late_keys: Vec::new(),
            limited: false,
            tells_wrong: false,
            scopes: Vec::new(),
            outermost: Cell::new(usize::MAX),
            before: None,
            bodies: 0,
            united: 0,
            deriving: 0,
            scans: 0,
            reads: BTreeSet::new(),
            writes: BTreeSet::new(),
            reads_behind: BTreeSet::new(),
            replaced: Vec::new(),
            depth: 0,
            following: Vec::new(),
            catches: Catches::default(),
            waiting: Vec::new(),
            notices: false,
            doubtful: BTreeSet::new(),
            kept_texts: BTreeSet::new(),
        }
    }

    /// Begins a program of a text whose normal form is known: which literals are arguments is found out.
    pub(crate) fn with_literals(mut self, form: Option<&NormalForm>) -> Self {
        self.literals = Literals::of(form);
        self
    }

    /// Begins a part of a procedure: literals stay, names that are no columns are `variables`, and generated
    /// names begin at `first_name`, so that those of several parts differ.
    pub fn within(
        catalog: &'a Catalog,
        text: &'a str,
        types: &'a mut ParameterTypes,
        variables: &'a dyn Variables,
        first_name: usize,
    ) -> Binder<'a> {
        let fresh = first_name;
        Binder { variables: Some(variables), lifts: false, fresh, ..Binder::new(catalog, text, types) }
    }

    /// What the next part's generated names begin at.
    pub fn next_name(&self) -> usize {
        self.fresh
    }

    /// Generated names begin at this number, or later.
    pub fn set_next_name(&mut self, next: usize) {
        self.fresh = self.fresh.max(next);
    }

    /// A name that nothing else has.
    pub fn name(&mut self, stem: &str) -> String {
        self.fresh += 1;
        format!("{stem}_{}", self.fresh)
    }

    /// Adds a statement to the block being built.
    pub fn emit(&mut self, statement: Statement) {
        self.block.push(statement);
    }

    /// Builds a block of its own.
    pub fn nested<T>(&mut self, build: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<(Block, T)> {
        let outer = std::mem::take(&mut self.block);
        let built = build(self);
        let block = std::mem::replace(&mut self.block, outer);
        Ok((block, built?))
    }

    /// Does something one level deeper.
    pub(super) fn deeper<T>(&mut self, act: impl FnOnce(&mut Self) -> Bind<T>) -> Bind<T> {
        if self.depth == DEPTH {
            return Err(wrong(b"54001", "stack depth limit exceeded").into());
        }
        self.depth += 1;
        let done = act(self);
        self.depth -= 1;
        done
    }

    // ---- errors ----

    /// An error at a place.
    pub(super) fn fail<T>(&self, state: &[u8; 5], message: impl Into<String>, place: Place) -> Bind<T> {
        Err(self.error(wrong(state, message), place))
    }

    /// An error at a place.
    pub(super) fn error(&self, error: Error, place: Place) -> Stop {
        Stop::Wrong(place.mark(error, self.text))
    }

    // ---- parameters ----

    /// A new scalar parameter.
    pub(super) fn add_scalar(
        &mut self,
        data_type: DataType,
        nullable: bool,
        argument: Argument,
    ) -> Expression {
        tree::variable(self.add_parameter("p", tree::scalar_type(data_type, nullable), argument))
    }

    /// A new list parameter.
    pub(super) fn add_list(&mut self, ty: TypeName, argument: Argument) -> String {
        self.add_parameter("rows", ty, argument)
    }

    /// The statement's own parameter, 0 for `$1`, as far as its type is known.
    pub(super) fn own_parameter(&mut self, index: usize, place: Place) -> Bind<Bound> {
        if let Some(variables) = self.variables {
            return match variables.parameter(index) {
                Some(bound) => Ok(bound.at(place)),
                None => self.fail(b"42P02", format!("there is no parameter ${}", index + 1), place),
            };
        }
        if let Some(bound) = self.own_parameters.get(&index) {
            return Ok(bound.clone().at(place));
        }
        let sql_type = self.types.get(index)?;
        if sql_type == SqlType::Unknown {
            return Ok(Bound::parameter(index, self.types.may_be_null(index)).at(place));
        }
        self.typed_parameter(index, &sql_type, place)
    }

    /// The statement's own parameter, as a value of a type if it has none yet.
    pub(super) fn typed_parameter(&mut self, index: usize, wanted: &SqlType, place: Place) -> Bind<Bound> {
        if let Some(bound) = self.own_parameters.get(&index) {
            return Ok(bound.clone().at(place));
        }
        let sql_type = self.types.infer(index, wanted)?;
        let nullable = self.types.may_be_null(index);
        let data_type = super::held::held(&sql_type);
        let expression = if matches!(sql_type, SqlType::Array(_)) {
            tree::null()
        } else {
            self.add_scalar(data_type, nullable, Argument::Parameter(index))
        };
        let bound = Bound::held_as(expression, sql_type, nullable, data_type);
        self.own_parameters.insert(index, bound.clone());
        Ok(bound.at(place))
    }

    /// A constant where the program can use it.
    pub(super) fn constant(&mut self, constant: Constant, data_type: DataType) -> Expression {
        if constant.is_null() {
            return tree::typed_null(data_type);
        }
        if let Some(value) = constant.boolean() {
            return tree::boolean(value);
        }
        if self.lifts && !self.inline {
            let argument = self.literals.argument(constant);
            return self.add_scalar(data_type, false, argument);
        }
        tree::literal(constant.value(), data_type)
    }

    /// The bound as something that the program computes. What has no type yet is text.
    pub fn settle(&mut self, bound: Bound) -> Bind<Bound> {
        let bound = match &bound.known {
            Known::Literal(_) | Known::Parameter(_) => self.resolve(bound, &SqlType::Text)?,
            _ => bound,
        };
        match bound.known.clone() {
            Known::Constant(value) => {
                let expression = self.constant(value, bound.data_type);
                let bound = Bound { expression, known: Known::Computed, ..bound };
                if bound.sql_type.is_kept_as_text() {
                    return Ok(self.kept_text(bound));
                }
                Ok(bound)
            }
            Known::Interval(known) => {
                let text = Value::Text(interval::write(known));
                self.settle(Bound::constant(text, SqlType::Interval, DataType::TEXT).at(bound.place))
            }
            // A column's is the text that is stored; other arrays are lists.
            _ if matches!(bound.sql_type, SqlType::Array(_)) && !self.is_kept_text(&bound.expression) => {
                super::stop::beyond("an array")
            }
            _ => Ok(bound),
        }
    }

    /// The text of an array or interval, in a variable that is known to hold one.
    pub(super) fn kept_text(&mut self, bound: Bound) -> Bound {
        use fabius_program::syntax::tree::ExpressionKind as E;
        let name = match &bound.expression.kind {
            E::Variable(name) => name.clone(),
            _ => {
                let name = self.name("kept");
                let ty = tree::scalar_type(bound.data_type, bound.nullable);
                self.emit(tree::declare(&name, false, Some(ty), bound.expression.clone()));
                name
            }
        };
        self.kept_texts.insert(name.clone());
        Bound { expression: tree::variable(name), ..bound }
    }

    /// Whether an expression is the text that a column keeps of an array or interval.
    pub(super) fn is_kept_text(&self, expression: &Expression) -> bool {
        use fabius_program::syntax::tree::ExpressionKind as E;
        match &expression.kind {
            E::Column { .. } => true,
            E::Variable(name) => self.kept_texts.contains(name),
            _ => false,
        }
    }

    /// Whether an expression is such a text, or a parameter, which is one value.
    pub(super) fn is_text(&self, expression: &Expression) -> bool {
        use fabius_program::syntax::tree::{ExpressionKind as E, TypeKind};
        let is_value = |name: &String| {
            let mut parameters = self.inputs.parameters.iter();
            parameters.any(|known| known.name.text == *name && matches!(known.ty.kind, TypeKind::Scalar(_)))
        };
        self.is_kept_text(expression) || matches!(&expression.kind, E::Variable(name) if is_value(name))
    }

    /// The expression of [`Binder::settle`].
    pub(super) fn settled(&mut self, bound: Bound) -> Bind<Expression> {
        Ok(self.settle(bound)?.expression)
    }

    /// The bound as a variable or parameter, so that it can be written more than once.
    pub(super) fn named(&mut self, bound: Bound, stem: &str) -> Bind<Bound> {
        use fabius_program::syntax::tree::ExpressionKind as E;
        let bound = self.settle(bound)?;
        if matches!(bound.expression.kind, E::Variable(_) | E::Literal(_)) {
            return Ok(bound);
        }
        if let E::Column { row, .. } = &bound.expression.kind
            && row.key.is_none()
        {
            return Ok(bound);
        }
        if bound.sql_type.is_kept_as_text() {
            return Ok(self.kept_text(bound));
        }
        let name = self.name(stem);
        let ty = tree::scalar_type(bound.data_type, bound.nullable);
        self.emit(tree::declare(&name, false, Some(ty), bound.expression));
        Ok(Bound { expression: tree::variable(name), ..bound })
    }

    // ---- tables ----

    /// Refuses to do with a table what who asks may not.
    pub(super) fn require(&self, table: &Arc<Table>, privilege: Privilege) -> Bind<()> {
        Ok(self.catalog.require_as(self.asker, &Relation::Table(table), privilege)?)
    }

    /// The table that a name means.
    pub(super) fn table(&mut self, name: &ast::ObjectName) -> Bind<Arc<Table>> {
        let found = self.catalog.relation(name).map_err(|error| self.error(error, Place::of(name)))?;
        if let Some(Relation::Table(table)) = found {
            return Ok(table.clone());
        }
        let path = path(name)?;
        let is_known = found.is_some()
            || matches!(path.as_slice(), [.., schema, _] if is_system(schema))
            || matches!(path.as_slice(), [only] if only.starts_with("pg_"))
            || matches!(path.as_slice(), [only] if part::given_number(only).is_some());
        if is_known {
            return super::stop::beyond(format!("relation {}", path.join(".")));
        }
        let message = format!("relation \"{}\" does not exist", path.join("."));
        self.fail(b"42P01", message, Place::of(name))
    }
}

/// Whether a schema is PostgreSQL's own.
pub(super) fn is_system(schema: &str) -> bool {
    matches!(schema, "pg_catalog" | "information_schema" | "fabius")
}

/// The parts of a name.
pub(super) fn path(name: &ast::ObjectName) -> Bind<Vec<String>> {
    let part = |part: &ast::ObjectNamePart| match part {
        ast::ObjectNamePart::Identifier(name) => Ok(folded(name)),
        ast::ObjectNamePart::Function(_) => super::stop::beyond("a name computed by a function"),
    };
    name.0.iter().map(part).collect()
}
