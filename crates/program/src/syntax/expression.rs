//! Tokens to expressions, by precedence climbing.
//!
//! ```text
//! loosest  or
//!          and
//!          not
//!          is null, is not null, is distinct from, is not distinct from
//!          = <> < <= > >=            not chained: a < b < c is refused
//!          between, not between
//!          ||
//!          + -
//!          * / %
//!          - (before an operand)
//! tightest ::type
//!
//! operand = literal | variable | row "." column | name "[" keys "]" [ ( "." | "?." ) column ]
//!         | function "(" [ "distinct" ] arguments ")" | "exists" table "[" keys "]"
//!         | "if" e "then" e { "else" "if" e "then" e } "else" e | "(" e ")" | "[" "]"
//! ```
//!
//! The order is PostgreSQL's. An `if` reaches as far to the right as it can, so as an operand it
//! stands in parentheses.

use super::diagnostic::{Diagnostic, Span};
use super::lexer::TokenKind;
use super::parser::{Parsed, Parser, RESERVED};
use super::statement::ASSIGNS;
use super::tree::*;
use fabius_value::moment_text::{self, DateOrder};
use fabius_value::{SqlState, limit};
use std::ops::RangeInclusive;

/// How tightly an operator binds; see the table above.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Precedence {
    /// `if`, or no operator.
    Any,
    /// `or`
    Or,
    /// `and`
    And,
    /// `not`
    Not,
    /// `is null`
    Is,
    /// `=` and its like
    Comparison,
    /// `between`
    Between,
    /// `||`
    Concatenate,
    /// `+ -`
    Sum,
    /// `* / %`
    Product,
    /// `-`
    Negate,
    /// `::`
    Cast,
    /// Anything without operators.
    Operand,
}

impl Precedence {
    /// The next tighter one.
    pub fn tighter(self) -> Precedence {
        use Precedence::*;
        match self {
            Any => Or,
            Or => And,
            And => Not,
            Not => Is,
            Is => Comparison,
            Comparison => Between,
            Between => Concatenate,
            Concatenate => Sum,
            Sum => Product,
            Product => Negate,
            Negate => Cast,
            Cast | Operand => Operand,
        }
    }
}

/// How an operator is written and how tightly it binds.
pub fn operator_form(operator: BinaryOperator) -> (&'static str, Precedence) {
    match operator {
        BinaryOperator::Or => ("or", Precedence::Or),
        BinaryOperator::And => ("and", Precedence::And),
        BinaryOperator::Equal => ("=", Precedence::Comparison),
        BinaryOperator::NotEqual => ("<>", Precedence::Comparison),
        BinaryOperator::Less => ("<", Precedence::Comparison),
        BinaryOperator::LessEqual => ("<=", Precedence::Comparison),
        BinaryOperator::Greater => (">", Precedence::Comparison),
        BinaryOperator::GreaterEqual => (">=", Precedence::Comparison),
        BinaryOperator::IsDistinct => ("is distinct from", Precedence::Is),
        BinaryOperator::IsNotDistinct => ("is not distinct from", Precedence::Is),
        BinaryOperator::Concatenate => ("||", Precedence::Concatenate),
        BinaryOperator::Add => ("+", Precedence::Sum),
        BinaryOperator::Subtract => ("-", Precedence::Sum),
        BinaryOperator::Multiply => ("*", Precedence::Product),
        BinaryOperator::Divide => ("/", Precedence::Product),
        BinaryOperator::Modulo => ("%", Precedence::Product),
    }
}

fn operator_of(token: &TokenKind) -> Option<BinaryOperator> {
    Some(match token {
        TokenKind::Word(word) => match word.as_str() {
            "or" => BinaryOperator::Or,
            "and" => BinaryOperator::And,
            _ => return None,
        },
        TokenKind::Symbol(symbol) => match *symbol {
            "=" => BinaryOperator::Equal,
            "<>" => BinaryOperator::NotEqual,
            "<" => BinaryOperator::Less,
            "<=" => BinaryOperator::LessEqual,
            ">" => BinaryOperator::Greater,
            ">=" => BinaryOperator::GreaterEqual,
            "||" => BinaryOperator::Concatenate,
            "+" => BinaryOperator::Add,
            "-" => BinaryOperator::Subtract,
            "*" => BinaryOperator::Multiply,
            "/" => BinaryOperator::Divide,
            "%" => BinaryOperator::Modulo,
            _ => return None,
        },
        _ => return None,
    })
}

/// An expression and the operators on the longest path to one of its leaves.
pub(super) type Tall = (Expression, usize);

impl Parser {
    /// A whole expression.
    pub(super) fn expression(&mut self) -> Parsed<Expression> {
        self.tall().map(|(expression, _)| expression)
    }

    pub(super) fn tall(&mut self) -> Parsed<Tall> {
        self.nested(|parser| parser.operators(Precedence::Any))
    }

    /// Operators that bind at least as tightly as `least`.
    fn operators(&mut self, least: Precedence) -> Parsed<Tall> {
        let start = self.span();
        let mut left = self.prefix(least)?;
        let mut most = Precedence::Cast;
        loop {
            let (tall, extended) = self.infix(left, start, least..=most)?;
            if !extended {
                return Ok(tall);
            }
            // `x is null + 1` must not be read as `(x is null) + 1`.
            if matches!(tall.0.kind, ExpressionKind::IsNull { .. }) {
                most = Precedence::Is;
            }
            left = self.checked(tall)?;
        }
    }

    fn checked(&self, tall: Tall) -> Parsed<Tall> {
        if tall.1 > limit::EXPRESSION_HEIGHT {
            return Err(Box::new(
                Diagnostic::new(
                    SqlState::PROGRAM_LIMIT,
                    tall.0.span,
                    format!("an expression with more than {} operators in a row", limit::EXPRESSION_HEIGHT),
                )
                .with_hint("divide it with parentheses or variables"),
            ));
        }
        Ok(tall)
    }

    /// Extends `left` by one operator that binds as tightly as allowed, or gives it back with `false`.
    fn infix(
        &mut self,
        left: Tall,
        start: Span,
        allowed: RangeInclusive<Precedence>,
    ) -> Parsed<(Tall, bool)> {
        let negated =
            self.at_word("not") && matches!(self.peek_after(1), TokenKind::Word(word) if word == "between");
        let (kind, height) = if self.at_symbol("::") && allowed.contains(&Precedence::Cast) {
            self.advance();
            let data_type = self.data_type()?;
            (ExpressionKind::Cast { operand: Box::new(left.0), data_type }, left.1)
        } else if self.at_word("is") && allowed.contains(&Precedence::Is) {
            self.advance();
            let negated = self.eat_word("not");
            if self.eat_word("distinct") {
                self.word("from")?;
                let operator =
                    if negated { BinaryOperator::IsNotDistinct } else { BinaryOperator::IsDistinct };
                let right = self.operators(Precedence::Is.tighter())?;
                let height = left.1.max(right.1);
                (ExpressionKind::Binary(operator, Box::new(left.0), Box::new(right.0)), height)
            } else if self.eat_word("null") {
                (ExpressionKind::IsNull { operand: Box::new(left.0), negated }, left.1)
            } else {
                return Err(self.expected("`null` or `distinct from`"));
            }
        } else if (self.at_word("between") || negated) && allowed.contains(&Precedence::Between) {
            self.advance();
            if negated {
                self.advance();
            }
            let low = self.operators(Precedence::Between.tighter())?;
            self.word("and")?;
            let high = self.operators(Precedence::Between.tighter())?;
            let height = left.1.max(low.1).max(high.1);
            let (operand, low, high) = (Box::new(left.0), Box::new(low.0), Box::new(high.0));
            (ExpressionKind::Between { operand, low, high, negated }, height)
        } else if let Some(operator) = operator_of(self.peek())
            && allowed.contains(&operator_form(operator).1)
        {
            let (_, precedence) = operator_form(operator);
            self.advance();
            let right = self.operators(precedence.tighter())?;
            if precedence == Precedence::Comparison
                && operator_of(self.peek()).is_some_and(|next| operator_form(next).1 == precedence)
            {
                let mut error = self.error("comparisons are not chained");
                error.hint = Some("write a < b and b < c, or x between a and b".into());
                return Err(error);
            }
            let height = left.1.max(right.1);
            (ExpressionKind::Binary(operator, Box::new(left.0), Box::new(right.0)), height)
        } else if let Some(error) = self.foreign_operator() {
            return Err(error);
        } else {
            return Ok((left, false));
        };
        Ok(((Expression { kind, span: self.span_from(start) }, height + 1), true))
    }

    /// After an operand: an operator of SQL that is none here.
    fn foreign_operator(&self) -> Option<Box<Diagnostic>> {
        const FOREIGN: &[(&str, &str)] = &[
            ("in", "write x = 1 or x = 2; what is in a list is found by a for over it"),
            ("like", "it is a function: like(text, pattern)"),
            ("ilike", "it is a function: ilike(text, pattern)"),
        ];
        let after = usize::from(self.at_word("not"));
        let TokenKind::Word(word) = self.peek_after(after) else { return None };
        let (word, hint) = FOREIGN.iter().find(|(foreign, _)| foreign == word)?;
        // These are names too, and may begin the next statement.
        let assigned_to = ASSIGNS.iter().any(|next| *self.peek_after(after + 1) == TokenKind::Symbol(next));
        if assigned_to && !RESERVED.contains(word) {
            return None;
        }
        let mut error = self.error(format!("there is no operator {word}"));
        error.hint = Some((*hint).into());
        Some(error)
    }

    fn prefix(&mut self, least: Precedence) -> Parsed<Tall> {
        let start = self.span();
        let looser = |precedence: Precedence| least > precedence;
        let (kind, height) = if self.at_word("not") || self.at_word("if") {
            let own = if self.at_word("not") { Precedence::Not } else { Precedence::Any };
            if looser(own) {
                let mut error = self.expected("an operand");
                error.hint = Some("put it in parentheses".into());
                return Err(error);
            }
            if self.at_word("if") {
                self.nested(Parser::conditional)?
            } else {
                self.advance();
                let operand = self.nested(|parser| parser.operators(Precedence::Not))?;
                (ExpressionKind::Not(Box::new(operand.0)), operand.1)
            }
        } else if self.at_symbol("-") {
            self.advance();
            let operand = self.nested(|parser| parser.operators(Precedence::Negate))?;
            (ExpressionKind::Negate(Box::new(operand.0)), operand.1)
        } else {
            return self.operand();
        };
        self.checked((Expression { kind, span: self.span_from(start) }, height + 1))
    }

    fn conditional(&mut self) -> Parsed<(ExpressionKind, usize)> {
        let (mut arms, mut tallest) = (Vec::new(), 0);
        loop {
            self.word("if")?;
            let condition = self.operators(Precedence::Any)?;
            self.word("then")?;
            let value = self.operators(Precedence::Any)?;
            if !self.at_word("else") {
                let mut error = self.expected("`else`");
                error.hint =
                    Some("an if in an expression says what its value is otherwise: else null".into());
                return Err(error);
            }
            self.advance();
            tallest = tallest.max(condition.1).max(value.1);
            arms.push((condition.0, value.0));
            if !self.at_word("if") {
                let otherwise = self.operators(Precedence::Any)?;
                let kind = ExpressionKind::If { arms, otherwise: Box::new(otherwise.0) };
                return Ok((kind, tallest.max(otherwise.1)));
            }
        }
    }

    fn operand(&mut self) -> Parsed<Tall> {
        let start = self.span();
        let literal = |literal| (ExpressionKind::Literal(literal), 0);
        let (kind, height) = match self.peek().clone() {
            TokenKind::Integer(number) => {
                self.advance();
                literal(Literal::Integer(number))
            }
            TokenKind::Decimal(number) => {
                self.advance();
                literal(Literal::Decimal(number))
            }
            TokenKind::Text(text) => {
                self.advance();
                literal(Literal::Text(text))
            }
            TokenKind::Bytes(bytes) => {
                self.advance();
                literal(Literal::Bytea(bytes))
            }
            TokenKind::Message(_) => {
                let mut error = self.expected("an expression");
                error.hint = Some("texts stand in single quotes: 'text'".into());
                return Err(error);
            }
            TokenKind::Symbol("(") => {
                self.advance();
                let mut inner = self.tall()?;
                self.symbol(")")?;
                inner.0.span = self.span_from(start);
                return Ok(inner);
            }
            TokenKind::Symbol("[") => {
                self.advance();
                if !self.at_symbol("]") {
                    let mut error = self.expected("`]`");
                    error.hint = Some("only the empty list [] is written so; elements are appended".into());
                    return Err(error);
                }
                self.advance();
                (ExpressionKind::EmptyList, 0)
            }
            TokenKind::Word(word) => match (word.as_str(), self.peek_after(1)) {
                ("null", _) => {
                    self.advance();
                    literal(Literal::Null)
                }
                ("true" | "false", _) => {
                    self.advance();
                    literal(Literal::Boolean(word == "true"))
                }
                ("date" | "timestamp", TokenKind::Text(_)) => literal(self.moment(&word)?),
                ("exists", _) => {
                    self.advance();
                    let (row, height) = self.row_reference()?;
                    if row.key.is_none() {
                        let mut error = self.expected("`[`");
                        error.hint = Some("name the row by its whole key: exists table[key]".into());
                        return Err(error);
                    }
                    (ExpressionKind::Exists(row), height)
                }
                (_, TokenKind::Symbol("(")) => self.call()?,
                _ => self.path()?,
            },
            TokenKind::Quoted(_) => self.path()?,
            _ => return Err(self.expected("an expression")),
        };
        Ok((Expression { kind, span: self.span_from(start) }, height))
    }

    fn moment(&mut self, word: &str) -> Parsed<Literal> {
        self.advance();
        let TokenKind::Text(text) = self.peek() else { unreachable!() };
        let literal = match word {
            "date" => moment_text::read_date(text, DateOrder::MonthDay).map(Literal::Date),
            _ => moment_text::read_timestamp(text, DateOrder::MonthDay).map(Literal::Timestamp),
        };
        let Some(literal) = literal else {
            let shown: String = text.chars().take(80).collect();
            let error = Diagnostic::new(
                SqlState::INVALID_DATETIME,
                self.span(),
                format!("'{shown}' is not a {word}"),
            );
            return Err(Box::new(error.with_hint(match word {
                "date" => "write date '2026-11-20'",
                _ => "write timestamp '2026-11-20 08:30:00'",
            })));
        };
        self.advance();
        Ok(literal)
    }

    fn call(&mut self) -> Parsed<(ExpressionKind, usize)> {
        let function = self.name("a function")?;
        self.symbol("(")?;
        if self.eat_symbol(")") {
            return Ok((ExpressionKind::Call { function, distinct: false, arguments: Vec::new() }, 0));
        }
        let distinct = self.at_word("distinct")
            && match self.peek_after(1) {
                TokenKind::Quoted(_) => true,
                TokenKind::Word(word) => !RESERVED.contains(&word.as_str()),
                _ => false,
            };
        if distinct {
            self.advance();
        }
        let mut tallest = 0;
        let arguments = self.listed(")", |parser| {
            let (argument, height) = parser.tall()?;
            tallest = tallest.max(height);
            Ok(argument)
        })?;
        Ok((ExpressionKind::Call { function, distinct, arguments }, tallest + 1))
    }

    /// A variable, or a column of a row, record or list element.
    fn path(&mut self) -> Parsed<(ExpressionKind, usize)> {
        let (mut row, height) = self.row_reference().map_err(|mut error| {
            error.message = error.message.replace("a table or row", "an expression");
            error
        })?;
        let optional = self.at_symbol("?.");
        if optional || self.at_symbol(".") {
            self.advance();
            let column = self.any_name("a column")?;
            return Ok((ExpressionKind::Column { row, optional, column }, height));
        }
        match row.key.as_mut() {
            None => Ok((ExpressionKind::Variable(row.name.text), height)),
            Some(key) if key.len() == 1 => {
                let index = Box::new(key.remove(0));
                Ok((ExpressionKind::Element { list: row.name, index }, height))
            }
            Some(_) => {
                let mut error = self.expected("`.`");
                error.hint = Some("a row is not a value; name one of its columns: table[key].column".into());
                Err(error)
            }
        }
    }
}
