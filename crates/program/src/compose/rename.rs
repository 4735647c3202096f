//! A body with its variables under new names.
//!
//! Names mean what they mean to the verifier: `name[key]` is an element if a list of that name is in scope,
//! else a row of the table.

use crate::syntax::tree::{
    Block, Bound, Expression, ExpressionKind, Failure, Message, Name, ProcedureDefinition, Range,
    RowReference, Scan, Statement, StatementKind, Target, TypeKind,
};
use fabius_value::limit;

/// A name with a prefix. One that becomes too long keeps its beginning, and gets a number made of the whole.
pub(super) fn prefixed(prefix: &str, name: &str) -> String {
    let whole = format!("{prefix}{name}");
    if whole.len() <= limit::NAME_BYTES {
        return whole;
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mut end = limit::NAME_BYTES - 17;
    while !whole.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}_{hash:016x}", &whole[..end])
}

/// A variable in scope.
struct Variable {
    name: String,
    is_list: bool,
}

/// The variables in scope, and what is put before their names.
pub(super) struct Renaming<'p> {
    prefix: &'p str,
    scope: Vec<Variable>,
}

impl<'p> Renaming<'p> {
    /// Begins with a procedure's parameters.
    pub(super) fn of(procedure: &ProcedureDefinition, prefix: &'p str) -> Renaming<'p> {
        let parameters = procedure.parameters.iter().map(|parameter| Variable {
            name: parameter.name.text.clone(),
            is_list: !matches!(parameter.ty.kind, TypeKind::Scalar(_)),
        });
        Renaming { prefix, scope: parameters.collect() }
    }

    fn declare(&mut self, name: &Name, is_list: bool) -> Name {
        self.scope.push(Variable { name: name.text.clone(), is_list });
        self.prefixed(name)
    }

    fn prefixed(&self, name: &Name) -> Name {
        Name { text: prefixed(self.prefix, &name.text), span: name.span }
    }

    fn is_variable(&self, name: &str) -> bool {
        self.scope.iter().any(|variable| variable.name == name)
    }

    fn is_list(&self, name: &str) -> bool {
        self.scope.iter().any(|variable| variable.is_list && variable.name == name)
    }

    fn variable(&self, name: &Name) -> Name {
        if self.is_variable(&name.text) { self.prefixed(name) } else { name.clone() }
    }

    fn list(&self, name: &Name) -> Name {
        if self.is_list(&name.text) { self.prefixed(name) } else { name.clone() }
    }

    pub(super) fn block(&mut self, block: &Block) -> Block {
        let outer = self.scope.len();
        let block = block.iter().map(|statement| self.statement(statement)).collect();
        self.scope.truncate(outer);
        block
    }

    fn statement(&mut self, statement: &Statement) -> Statement {
        let kind = match &statement.kind {
            StatementKind::Let { name, mutable, ty, value } => {
                let value = self.expression(value);
                let is_list = ty.as_ref().is_some_and(|ty| !matches!(ty.kind, TypeKind::Scalar(_)));
                let name = self.declare(name, is_list);
                StatementKind::Let { name, mutable: *mutable, ty: ty.clone(), value }
            }
            StatementKind::Assign { target, operator, value } => StatementKind::Assign {
                target: match target {
                    Target::Variable(name) => Target::Variable(self.variable(name)),
                    Target::Column { row, column } => {
                        Target::Column { row: self.row(row), column: column.clone() }
                    }
                },
                operator: *operator,
                value: self.expression(value),
            },
            StatementKind::Require { condition, failure } => StatementKind::Require {
                condition: self.expression(condition),
                failure: self.failure(failure),
            },
            StatementKind::Insert { table, columns, upsert } => StatementKind::Insert {
                table: table.clone(),
                columns: self.columns(columns),
                upsert: *upsert,
            },
            StatementKind::Update { row, columns } => {
                StatementKind::Update { row: self.row(row), columns: self.columns(columns) }
            }
            StatementKind::Delete { row } => StatementKind::Delete { row: self.row(row) },
            StatementKind::Append { list, values } => {
                StatementKind::Append { list: self.variable(list), values: self.expressions(values) }
            }
            StatementKind::Sort { list, keys } => {
                StatementKind::Sort { list: self.variable(list), keys: keys.clone() }
            }
            StatementKind::If { arms, otherwise } => StatementKind::If {
                arms: arms.iter().map(|(when, then)| (self.expression(when), self.block(then))).collect(),
                otherwise: otherwise.as_ref().map(|block| self.block(block)),
            },
            StatementKind::ForRange { variable, from, to, body } => {
                let (from, to) = (self.expression(from), self.expression(to));
                let (variable, body) = self.turn(variable, body);
                StatementKind::ForRange { variable, from, to, body }
            }
            StatementKind::ForEach { variable, scan, body } => {
                let scan = Box::new(self.scan(variable, scan));
                let (variable, body) = self.turn(variable, body);
                StatementKind::ForEach { variable, scan, body }
            }
            StatementKind::Return { values } => StatementKind::Return { values: self.expressions(values) },
        };
        Statement { kind, span: statement.span }
    }

    /// A loop's body, in which its variable is in scope.
    fn turn(&mut self, variable: &Name, body: &Block) -> (Name, Block) {
        let outer = self.scope.len();
        let variable = self.declare(variable, false);
        let body = self.block(body);
        self.scope.truncate(outer);
        (variable, body)
    }

    fn scan(&mut self, row: &Name, scan: &Scan) -> Scan {
        let bound = |of: &Self, bound: &Option<Bound>| {
            let bound = bound.as_ref()?;
            Some(Bound { value: of.expression(&bound.value), inclusive: bound.inclusive })
        };
        let range = scan.range.as_ref().map(|range| Range {
            equal: self.expressions(&range.equal),
            lower: bound(self, &range.lower),
            upper: bound(self, &range.upper),
        });
        let limit = scan.limit.as_ref().map(|limit| self.expression(limit));
        let name = self.list(&scan.name);
        let outer = self.scope.len();
        self.declare(row, false);
        let filter = scan.filter.as_ref().map(|filter| self.expression(filter));
        self.scope.truncate(outer);
        Scan {
            name,
            index: scan.index.clone(),
            range,
            filter,
            descending: scan.descending,
            limit,
            span: scan.span,
        }
    }

    fn failure(&self, failure: &Failure) -> Failure {
        let optional = |value: &Option<Expression>| value.as_ref().map(|value| self.expression(value));
        Failure {
            message: match &failure.message {
                Message::Fixed(message) => Message::Fixed(message.clone()),
                Message::Computed(message) => Message::Computed(self.expression(message)),
            },
            state: failure.state,
            detail: optional(&failure.detail),
            hint: optional(&failure.hint),
        }
    }

    fn columns(&self, columns: &[(Name, Expression)]) -> Vec<(Name, Expression)> {
        columns.iter().map(|(name, value)| (name.clone(), self.expression(value))).collect()
    }

    /// A loop's row, an element of a list, or a row of a table.
    fn row(&self, row: &RowReference) -> RowReference {
        let name = if row.key.is_none() { self.variable(&row.name) } else { self.list(&row.name) };
        let key = row.key.as_ref().map(|key| self.expressions(key));
        RowReference { name, key, span: row.span }
    }

    fn expressions(&self, expressions: &[Expression]) -> Vec<Expression> {
        expressions.iter().map(|expression| self.expression(expression)).collect()
    }

    fn boxed(&self, expression: &Expression) -> Box<Expression> {
        Box::new(self.expression(expression))
    }

    fn expression(&self, expression: &Expression) -> Expression {
        let kind = match &expression.kind {
            ExpressionKind::Literal(literal) => ExpressionKind::Literal(literal.clone()),
            ExpressionKind::EmptyList => ExpressionKind::EmptyList,
            ExpressionKind::Variable(name) if self.is_variable(name) => {
                ExpressionKind::Variable(prefixed(self.prefix, name))
            }
            ExpressionKind::Variable(name) => ExpressionKind::Variable(name.clone()),
            ExpressionKind::Column { row, optional, column } => {
                ExpressionKind::Column { row: self.row(row), optional: *optional, column: column.clone() }
            }
            ExpressionKind::Element { list, index } => {
                ExpressionKind::Element { list: self.list(list), index: self.boxed(index) }
            }
            ExpressionKind::Exists(row) => ExpressionKind::Exists(self.row(row)),
            ExpressionKind::Call { function, distinct, arguments } => ExpressionKind::Call {
                function: function.clone(),
                distinct: *distinct,
                arguments: self.expressions(arguments),
            },
            ExpressionKind::Negate(operand) => ExpressionKind::Negate(self.boxed(operand)),
            ExpressionKind::Not(operand) => ExpressionKind::Not(self.boxed(operand)),
            ExpressionKind::IsNull { operand, negated } => {
                ExpressionKind::IsNull { operand: self.boxed(operand), negated: *negated }
            }
            ExpressionKind::Between { operand, low, high, negated } => ExpressionKind::Between {
                operand: self.boxed(operand),
                low: self.boxed(low),
                high: self.boxed(high),
                negated: *negated,
            },
            ExpressionKind::Binary(operator, left, right) => {
                ExpressionKind::Binary(*operator, self.boxed(left), self.boxed(right))
            }
            ExpressionKind::If { arms, otherwise } => ExpressionKind::If {
                arms: arms
                    .iter()
                    .map(|(when, then)| (self.expression(when), self.expression(then)))
                    .collect(),
                otherwise: self.boxed(otherwise),
            },
            ExpressionKind::Cast { operand, data_type } => {
                ExpressionKind::Cast { operand: self.boxed(operand), data_type: *data_type }
            }
        };
        Expression { kind, span: expression.span }
    }
}
