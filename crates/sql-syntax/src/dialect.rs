//! PostgreSQL's dialect of sqlparser, with a bound on what reading a statement takes.
//!
//! sqlparser tries one reading of a part and, if that fails, another from the same place. Where parts are within each
//! other it tries twice as often with each, so that thirty calls within each other, or as many `ARRAY[` of which one
//! is not closed, would take hours. So the expressions that are begun are counted: what takes far more than it has
//! tokens is refused.
//!
//! What is read is a tree that everything else goes through, and gives back, by recursion. `1 + 1 + 1` is as deep as
//! it has operators, so these are counted before it is read, as are parentheses. `AND` and `OR` are not bounded like
//! that: object-relational mappers write thousands of them in a row, and it does not matter how they are grouped, so
//! they make a tree that is balanced.

use super::typed_literal::typed_literal;
use fabius_sql_planning::heed;
use fabius_value::{Error, SqlState};
use sqlparser::ast::{BinaryOperator, DescribeAlias, Expr, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, PostgreSqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use std::cell::{Cell, RefCell};

/// Parentheses, subqueries and the like within each other, at most.
const DEPTH: usize = 120;
/// Operators in a row, with the parentheses among them and the operators in these, at most.
const OPERATORS: usize = 256;
/// Expressions that may be begun in any statement.
const ATTEMPTS: usize = 20_000;
/// Expressions that may be begun for each token beyond that.
const ATTEMPTS_OF_TOKEN: usize = 4;

const POSTGRESQL: PostgreSqlDialect = PostgreSqlDialect {};

/// The dialect for the reading of one text.
#[derive(Debug)]
pub struct Bounded {
    most: usize,
    begun: Cell<usize>,
    /// Why reading was to end.
    ended: RefCell<Option<Error>>,
}

impl Bounded {
    /// For so many tokens.
    pub fn of(tokens: usize) -> Bounded {
        let most = ATTEMPTS + tokens * ATTEMPTS_OF_TOKEN;
        Bounded { most, begun: Cell::new(0), ended: RefCell::default() }
    }

    /// A parser of tokens.
    pub fn parser(&self, tokens: Vec<TokenWithSpan>) -> Parser<'_> {
        Parser::new(self).with_recursion_limit(DEPTH).with_tokens_with_locations(tokens)
    }

    /// `54001`, if a bound is why the text was not read; or why nobody waits for that any more.
    pub fn exceeded(&self, error: &ParserError) -> Option<Error> {
        if let Some(ended) = self.ended.take() {
            return Some(ended);
        }
        let detail = if self.begun.get() > self.most {
            format!(
                "reading it would begin more than {} expressions: it nests too deep for its length",
                self.most
            )
        } else if matches!(error, ParserError::RecursionLimitExceeded) {
            format!("it nests more than {DEPTH} deep")
        } else {
            return None;
        };
        Some(too_deep(detail))
    }
}

fn too_deep(detail: String) -> Error {
    Error::new(SqlState(*b"54001"), "stack depth limit exceeded")
        .with_detail(detail)
        .with_hint("divide the statement, or use fewer operators, parentheses and calls within each other")
}

/// How deep a part between parentheses is, as far as it has been seen.
#[derive(Default)]
struct Part {
    /// What began it: a parenthesis, or `CASE`.
    begin: Option<Token>,
    /// Operators since the last `AND`, `OR`, comma or clause.
    operators: usize,
    /// The deepest part among them.
    within: usize,
    /// The deepest that stands between `AND` and `OR`, and how many of each there are.
    item: usize,
    ands: usize,
    ors: usize,
    /// The deepest clause or element of a list.
    clause: usize,
    /// `UNION` and `JOIN`, and commas between tables.
    joined: usize,
    /// Whether tables stand here.
    is_from: bool,
    /// Whether the word before is `DISTINCT`, as in `IS DISTINCT FROM`.
    is_distinct: bool,
}

impl Part {
    fn end_item(&mut self) {
        self.item = self.item.max(self.operators + self.within);
        (self.operators, self.within) = (0, 0);
    }

    fn end_clause(&mut self) {
        self.end_item();
        self.clause = self.clause.max(self.item + balanced_height(self.ands) + balanced_height(self.ors));
        (self.item, self.ands, self.ors) = (0, 0, 0);
    }

    fn depth(mut self) -> usize {
        self.end_clause();
        self.clause + self.joined
    }

    fn pass(&mut self, token: &Token) {
        use Keyword as K;
        let is_distinct = std::mem::take(&mut self.is_distinct);
        match token {
            Token::Comma | Token::SemiColon => {
                self.end_clause();
                self.joined += usize::from(self.is_from);
            }
            Token::Word(Word { keyword, quote_style: None, .. }) => match keyword {
                K::AND => {
                    self.end_item();
                    self.ands += 1;
                }
                K::OR => {
                    self.end_item();
                    self.ors += 1;
                }
                K::UNION | K::EXCEPT | K::INTERSECT | K::JOIN => {
                    self.end_clause();
                    self.joined += 1;
                }
                K::SELECT
                | K::FROM
                | K::WHERE
                | K::ON
                | K::SET
                | K::HAVING
                | K::GROUP
                | K::ORDER
                | K::LIMIT
                | K::VALUES
                | K::USING
                | K::RETURNING
                | K::WHEN
                | K::THEN
                | K::ELSE => {
                    self.end_clause();
                    self.is_from = match keyword {
                        K::FROM => !is_distinct,
                        K::ON | K::USING | K::WHEN | K::THEN | K::ELSE => self.is_from,
                        _ => false,
                    };
                }
                K::DISTINCT => self.is_distinct = true,
                K::NOT
                | K::IS
                | K::LIKE
                | K::ILIKE
                | K::IN
                | K::COLLATE
                | K::AT
                | K::SIMILAR
                | K::BETWEEN
                | K::NOTNULL => self.operators += 1,
                _ => {}
            },
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::DollarQuotedString(_)
            | Token::Placeholder(_)
            | Token::Period => {}
            _ => self.operators += 1,
        }
    }
}

/// How high the tree of a chain of so many operators is.
fn balanced_height(operators: usize) -> usize {
    operators.checked_ilog2().map_or(0, |log| log as usize + 1)
}

/// The operands of a chain as a tree that is as low as can be, in the same order.
pub fn balanced<T>(mut operands: Vec<T>, join: impl Fn(T, T) -> T) -> Option<T> {
    while operands.len() > 1 {
        let mut pairs = Vec::with_capacity(operands.len().div_ceil(2));
        let mut rest = operands.into_iter();
        while let Some(left) = rest.next() {
            pairs.push(match rest.next() {
                Some(right) => join(left, right),
                None => left,
            });
        }
        operands = pairs;
    }
    operands.pop()
}

/// Refuses tokens that make too deep a tree.
///
/// # Errors
/// `54001`
pub fn refuse_depth(tokens: &[TokenWithSpan]) -> Result<(), Error> {
    let mut parts = vec![Part::default()];
    let is_word = |token: &Token, wanted: Keyword| match token {
        Token::Word(Word { keyword, quote_style: None, .. }) => *keyword == wanted,
        _ => false,
    };
    for TokenWithSpan { token, .. } in tokens {
        let is_begin = matches!(token, Token::LParen | Token::LBracket | Token::LBrace);
        let begun = parts.last().and_then(|part| part.begin.as_ref());
        let is_end = match token {
            Token::RParen => begun == Some(&Token::LParen),
            Token::RBracket => begun == Some(&Token::LBracket),
            Token::RBrace => begun == Some(&Token::LBrace),
            other => is_word(other, Keyword::END) && begun.is_some_and(|begun| is_word(begun, Keyword::CASE)),
        };
        if is_begin || is_word(token, Keyword::CASE) {
            if parts.len() > DEPTH {
                return Err(too_deep(format!("it nests more than {DEPTH} deep")));
            }
            if let Some(part) = parts.last_mut().filter(|_| *token == Token::LBracket) {
                part.operators += 1;
            }
            parts.push(Part { begin: Some(token.clone()), ..Part::default() });
        } else if is_end {
            let within = parts.pop().map_or(0, Part::depth);
            if let Some(part) = parts.last_mut() {
                part.within = part.within.max(within + 1);
            }
        } else if let Some(part) = parts.last_mut() {
            part.pass(token);
        }
    }
    // What is still open is as deep as it would be if it were closed here.
    let depth = parts.into_iter().rev().fold(0, |within, mut part| {
        part.within = part.within.max(within);
        part.depth()
    });
    match depth > OPERATORS {
        true => Err(too_deep(format!(
            "it has more than {OPERATORS} operators in a row, with parentheses among them"
        ))),
        false => Ok(()),
    }
}

/// The place of a word that stands twice where it can stand once: sqlparser would go as deep as there are such words,
/// without a bound.
pub fn repeated(tokens: &[TokenWithSpan]) -> Option<usize> {
    let word = |at: usize| match tokens.get(at).map(|token| &token.token) {
        Some(Token::Word(Word { keyword, quote_style: None, .. })) => *keyword,
        _ => Keyword::NoKeyword,
    };
    let mut at = 0;
    while word(at) == Keyword::EXPLAIN {
        at += 1;
        if tokens.get(at).is_some_and(|token| token.token == Token::LParen) {
            at += tokens[at..].iter().take_while(|token| token.token != Token::RParen).count() + 1;
        }
        while matches!(word(at), Keyword::ANALYZE | Keyword::VERBOSE) {
            at += 1;
        }
        if word(at) == Keyword::EXPLAIN {
            return Some(at);
        }
    }
    (1..tokens.len()).find(|at| match word(at - 1) {
        // A column may be called so, and be one: it stands twice.
        Keyword::INTERVAL => word(*at) == Keyword::INTERVAL && word(at + 1) == Keyword::INTERVAL,
        Keyword::ARRAY => tokens[*at].token == Token::Lt,
        _ => false,
    })
}

/// Whether a query in parentheses begins here, directly behind another parenthesis, with `UNION` or its like behind it.
fn begins_set_operation(parser: &Parser) -> bool {
    let first = parser.get_current_index() + 1;
    let token = |at: usize| &parser.token_at(at).token;
    if *token(first - 1) != Token::LParen || *token(first) != Token::LParen {
        return false;
    }
    let sets = [Keyword::UNION, Keyword::INTERSECT, Keyword::EXCEPT];
    begins_query(parser, 0)
        && end_of_parentheses(parser, first).is_some_and(|end| sets.contains(&keyword_at(parser, end + 1)))
}

/// Whether `(VALUES (` begins here. The parenthesis of a call's arguments is passed already where one is read.
fn begins_values(parser: &Parser) -> bool {
    let token = |ahead: usize| &parser.peek_nth_token_ref(ahead).token;
    *token(0) == Token::LParen && keyword(token(1)) == Keyword::VALUES && *token(2) == Token::LParen
}

fn values(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Subquery(query))
}

/// Whether what is in parentheses, so many tokens ahead, is a query.
fn begins_query(parser: &Parser, ahead: usize) -> bool {
    let mut inner = (ahead..).map(|ahead| &parser.peek_nth_token_ref(ahead).token);
    inner.find(|token| **token != Token::LParen).is_some_and(begins_with)
}

/// Whether a query begins with a token.
fn begins_with(token: &Token) -> bool {
    matches!(keyword(token), Keyword::SELECT | Keyword::VALUES | Keyword::WITH | Keyword::TABLE)
}

fn keyword_at(parser: &Parser, at: usize) -> Keyword {
    keyword(&parser.token_at(at).token)
}

fn keyword(token: &Token) -> Keyword {
    match token {
        Token::Word(Word { keyword, quote_style: None, .. }) => *keyword,
        _ => Keyword::NoKeyword,
    }
}

/// `EXPLAIN (SELECT ...)`, whose parenthesis sqlparser takes for that of options.
fn explained_query(parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
    let is_query = parser.peek_nth_token_ref(1).token == Token::LParen && begins_query(parser, 1);
    if keyword(&parser.peek_token_ref().token) != Keyword::EXPLAIN || !is_query {
        return None;
    }
    parser.next_token();
    let explained = parser.parse_statement().map(|statement| Statement::Explain {
        describe_alias: DescribeAlias::Explain,
        analyze: false,
        verbose: false,
        query_plan: false,
        estimate: false,
        statement: Box::new(statement),
        format: None,
        options: None,
    });
    Some(explained)
}

/// Whether `IN ((SELECT ...), ...)` begins here, or the same with `NOT`: a list, which sqlparser takes for a query.
fn begins_list_with_subquery(parser: &Parser) -> Option<bool> {
    let first = parser.get_current_index() + 1;
    let token = |at: usize| &parser.token_at(at).token;
    let is_word = |at: usize, wanted: Keyword| keyword_at(parser, at) == wanted;
    let is_negated = is_word(first, Keyword::NOT);
    let at = first + usize::from(is_negated);
    if !is_word(at, Keyword::IN) || *token(at + 1) != Token::LParen || *token(at + 2) != Token::LParen {
        return None;
    }
    let inner = (at + 2..).find(|at| *token(*at) != Token::LParen)?;
    let end = begins_with(token(inner)).then(|| end_of_parentheses(parser, at + 2)).flatten()?;
    // A query may go on behind the parentheses of its first part.
    let goes_on = [
        Keyword::UNION,
        Keyword::INTERSECT,
        Keyword::EXCEPT,
        Keyword::ORDER,
        Keyword::LIMIT,
        Keyword::OFFSET,
        Keyword::FETCH,
    ];
    let is_query = *token(end + 1) == Token::RParen || goes_on.contains(&keyword_at(parser, end + 1));
    (!is_query).then_some(is_negated)
}

fn list_with_subquery(parser: &mut Parser, value: &Expr, is_negated: bool) -> Result<Expr, ParserError> {
    if is_negated {
        parser.expect_keyword(Keyword::NOT)?;
    }
    parser.expect_keyword(Keyword::IN)?;
    parser.expect_token(&Token::LParen)?;
    let list = parser.parse_comma_separated(Parser::parse_expr)?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::InList { expr: Box::new(value.clone()), list, negated: is_negated })
}

/// The place of the parenthesis that ends the one at a place.
fn end_of_parentheses(parser: &Parser, begin: usize) -> Option<usize> {
    let mut depth = 0usize;
    for at in begin.. {
        match &parser.token_at(at).token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::EOF => return None,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// How tight a sign binds: less than `::` and `[]`, more than `COLLATE` and `^` (PostgreSQL 15, 4.1.6).
const SIGN: u8 = 125;

/// An operator before its operand, which binds as PostgreSQL has it: `-2 ^ 2` is 4, `@ -5 + 3` is 2.
fn prefix_operator(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let other = POSTGRESQL.prec_value(Precedence::PgOther);
    let (op, precedence) = match &parser.peek_token_ref().token {
        Token::Plus => (UnaryOperator::Plus, SIGN),
        Token::Minus => (UnaryOperator::Minus, SIGN),
        Token::Tilde => (UnaryOperator::BitwiseNot, other),
        Token::AtSign => (UnaryOperator::PGAbs, other),
        Token::PGSquareRoot => (UnaryOperator::PGSquareRoot, other),
        Token::PGCubeRoot => (UnaryOperator::PGCubeRoot, other),
        _ => return None,
    };
    parser.next_token();
    let operand = parser.parse_subexpr(precedence);
    Some(operand.map(|operand| Expr::UnaryOp { op, expr: Box::new(operand) }))
}

/// Whether a token is the word behind what `IS NULL` is asked of too.
fn is_isnull(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("isnull"))
}

impl Dialect for Bounded {
    fn dialect(&self) -> std::any::TypeId {
        POSTGRESQL.dialect()
    }

    /// Reads `EXPLAIN (SELECT ...)`.
    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        explained_query(parser)
    }

    /// Reads `(SELECT ...) UNION (SELECT ...)` within parentheses, which sqlparser ends at the first query,
    /// `(VALUES ...)`, and operators before their operand.
    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        self.begun.set(self.begun.get() + 1);
        if let Err(ended) = heed() {
            self.ended.replace(Some(ended));
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        if self.begun.get() > self.most {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        match begins_values(parser) {
            true => Some(values(parser)),
            false if begins_set_operation(parser) => Some(parser.parse_query().map(Expr::Subquery)),
            false => prefix_operator(parser).or_else(|| typed_literal(parser)),
        }
    }

    /// Reads all of `AND b AND c` at once, and the same with `OR`; `IS DISTINCT FROM b` without what follows `b`; and
    /// `ISNULL`.
    fn parse_infix(
        &self,
        parser: &mut Parser,
        first: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if is_isnull(&parser.peek_token_ref().token) {
            parser.next_token();
            return Some(Ok(Expr::IsNull(Box::new(first.clone()))));
        }
        if let Some(is_negated) = begins_list_with_subquery(parser) {
            return Some(list_with_subquery(parser, first, is_negated));
        }
        let is_distinct = parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]);
        if is_distinct
            || parser.parse_keywords(&[Keyword::IS, Keyword::NOT, Keyword::DISTINCT, Keyword::FROM])
        {
            let form = if is_distinct { Expr::IsDistinctFrom } else { Expr::IsNotDistinctFrom };
            let second = parser.parse_subexpr(precedence);
            return Some(second.map(|second| form(Box::new(first.clone()), Box::new(second))));
        }
        let (keyword, operator) = match &parser.peek_token_ref().token {
            Token::Word(Word { keyword: Keyword::AND, .. }) => (Keyword::AND, BinaryOperator::And),
            Token::Word(Word { keyword: Keyword::OR, .. }) => (Keyword::OR, BinaryOperator::Or),
            _ => return None,
        };
        let mut operands = vec![first.clone()];
        while parser.parse_keyword(keyword) {
            match parser.parse_subexpr(precedence) {
                Ok(operand) => operands.push(operand),
                Err(error) => return Some(Err(error)),
            }
        }
        let join = |left, right| Expr::BinaryOp {
            left: Box::new(left),
            op: operator.clone(),
            right: Box::new(right),
        };
        balanced(operands, join).map(Ok)
    }

    /// `ON` and `FOR` are no names: `INSERT INTO t SELECT 1 ON CONFLICT ...`, `SELECT 1 FOR UPDATE`.
    fn is_select_item_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        let may_be = explicit || !matches!(kw, Keyword::ON | Keyword::FOR);
        may_be && POSTGRESQL.is_select_item_alias(explicit, kw, parser)
    }

    /// A name is read as an expression otherwise, and what turns out not to be one is read a second time.
    fn supports_named_fn_args_with_expr_name(&self) -> bool {
        false
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        POSTGRESQL.identifier_quote_style(identifier)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        POSTGRESQL.is_delimited_identifier_start(ch)
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        POSTGRESQL.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        POSTGRESQL.is_identifier_part(ch)
    }

    fn supports_unicode_string_literal(&self) -> bool {
        POSTGRESQL.supports_unicode_string_literal()
    }

    fn is_reserved_for_identifier(&self, kw: Keyword) -> bool {
        POSTGRESQL.is_reserved_for_identifier(kw)
    }

    fn is_custom_operator_part(&self, ch: char) -> bool {
        POSTGRESQL.is_custom_operator_part(ch)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        match &parser.peek_token_ref().token {
            token if is_isnull(token) => Some(Ok(self.prec_value(Precedence::Is))),
            // sqlparser takes them for comparisons.
            Token::Tilde
            | Token::TildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
            | Token::Word(Word { keyword: Keyword::OPERATOR, quote_style: None, .. }) => {
                Some(Ok(self.prec_value(Precedence::PgOther)))
            }
            _ => POSTGRESQL.get_next_precedence(parser),
        }
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        POSTGRESQL.supports_filter_during_aggregation()
    }

    fn supports_group_by_expr(&self) -> bool {
        POSTGRESQL.supports_group_by_expr()
    }

    fn prec_value(&self, prec: Precedence) -> u8 {
        POSTGRESQL.prec_value(prec)
    }

    fn allow_extract_custom(&self) -> bool {
        POSTGRESQL.allow_extract_custom()
    }

    fn allow_extract_single_quotes(&self) -> bool {
        POSTGRESQL.allow_extract_single_quotes()
    }

    fn supports_create_index_with_clause(&self) -> bool {
        POSTGRESQL.supports_create_index_with_clause()
    }

    fn supports_explain_with_utility_options(&self) -> bool {
        POSTGRESQL.supports_explain_with_utility_options()
    }

    fn supports_listen_notify(&self) -> bool {
        POSTGRESQL.supports_listen_notify()
    }

    fn supports_factorial_operator(&self) -> bool {
        POSTGRESQL.supports_factorial_operator()
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        POSTGRESQL.supports_bitwise_shift_operators()
    }

    fn supports_comment_on(&self) -> bool {
        POSTGRESQL.supports_comment_on()
    }

    fn supports_load_extension(&self) -> bool {
        POSTGRESQL.supports_load_extension()
    }

    fn supports_named_fn_args_with_colon_operator(&self) -> bool {
        POSTGRESQL.supports_named_fn_args_with_colon_operator()
    }

    fn supports_empty_projections(&self) -> bool {
        POSTGRESQL.supports_empty_projections()
    }

    fn supports_nested_comments(&self) -> bool {
        POSTGRESQL.supports_nested_comments()
    }

    fn supports_string_escape_constant(&self) -> bool {
        POSTGRESQL.supports_string_escape_constant()
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        POSTGRESQL.supports_numeric_literal_underscores()
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        POSTGRESQL.supports_array_typedef_with_brackets()
    }

    fn supports_geometric_types(&self) -> bool {
        POSTGRESQL.supports_geometric_types()
    }

    fn supports_set_names(&self) -> bool {
        POSTGRESQL.supports_set_names()
    }

    fn supports_alter_column_type_using(&self) -> bool {
        POSTGRESQL.supports_alter_column_type_using()
    }

    fn supports_notnull_operator(&self) -> bool {
        POSTGRESQL.supports_notnull_operator()
    }

    fn supports_interval_options(&self) -> bool {
        POSTGRESQL.supports_interval_options()
    }

    fn supports_insert_table_alias(&self) -> bool {
        POSTGRESQL.supports_insert_table_alias()
    }

    fn supports_create_table_like_parenthesized(&self) -> bool {
        POSTGRESQL.supports_create_table_like_parenthesized()
    }

    fn supports_select_wildcard_with_alias(&self) -> bool {
        POSTGRESQL.supports_select_wildcard_with_alias()
    }

    fn supports_comma_separated_trim(&self) -> bool {
        POSTGRESQL.supports_comma_separated_trim()
    }

    fn supports_xml_expressions(&self) -> bool {
        POSTGRESQL.supports_xml_expressions()
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        POSTGRESQL.supports_comment_optimizer_hint()
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;
    use fabius_value::SqlState;

    fn state(text: &str) -> SqlState {
        match parse(text) {
            Ok(_) => SqlState(*b"00000"),
            Err(error) => error.state(),
        }
    }

    /// Goal: nothing within itself, closed or not, is read for ever or overflows the stack.
    #[test]
    fn what_nests_too_deep_is_refused() {
        let closed = [
            ("ARRAY[", "]"),
            ("(ARRAY[", "])"),
            ("f(ARRAY[", "])"),
            ("ARRAY[CASE WHEN a THEN ", " END]"),
            ("(", ")"),
            ("((SELECT ", "))"),
            ("CAST(", " AS int)"),
            ("f(", ")"),
            ("f(1, ", ")"),
            ("f(1 + ", ")"),
            ("f(", ") OVER (ORDER BY 1)"),
            ("position(", ")"),
            ("position((", "))"),
            ("overlay(", ", 'a', 1)"),
            ("substring(", " FROM 1)"),
            ("interval(", ")"),
            ("date(", ")"),
            ("NOT(", ")"),
            ("{fn f(", ")}"),
            ("- ", ""),
            ("1 IN (", ")"),
        ];
        for (begin, end) in closed {
            for (begins, ends) in [(500, 500), (500, 0), (30, 0)] {
                let text = format!("SELECT {}1{}", begin.repeat(begins), end.repeat(ends));
                let state = state(&text);
                let is_refused = [SqlState(*b"54001"), SqlState::SYNTAX_ERROR].contains(&state);
                assert!(is_refused || end.is_empty(), "{begin} {begins} {ends}: {state:?}");
            }
        }
        for chain in
            ["+1", "::int", "[1]", "::int[]", " COLLATE a", " IS NULL", " UNION SELECT 1", "::ARRAY<"]
        {
            let text = format!("SELECT 1{}", chain.repeat(50_000));
            assert_eq!(state(&text), SqlState(*b"54001"), "{chain}");
        }
        let tables = ["t"; 300].join(", ");
        assert_eq!(state(&format!("SELECT 1 FROM {tables}")), SqlState(*b"54001"));
        let inward = format!("SELECT {}1{}", "f(1, ".repeat(50), format!("){}", "+1".repeat(30)).repeat(50));
        assert_eq!(state(&inward), SqlState(*b"54001"));
        for text in ["EXPLAIN ", "EXPLAIN (VERBOSE) ", "SELECT INTERVAL "] {
            let text = format!("{}1", text.replace("SELECT ", "").repeat(5000));
            assert_eq!(state(&text), SqlState::SYNTAX_ERROR, "{}", &text[..20]);
            assert_eq!(state(&format!("SELECT {text}")), SqlState::SYNTAX_ERROR, "{}", &text[..20]);
        }
    }

    /// Goal: a query in parentheses is explained, and options in parentheses are options.
    #[test]
    fn what_is_explained_may_be_in_parentheses() {
        let query = "EXPLAIN (COSTS OFF) SELECT 1";
        for text in ["EXPLAIN (SELECT 1)", "EXPLAIN ((SELECT 1) UNION ALL (VALUES (2))) LIMIT 1", query] {
            assert_eq!(state(text), SqlState(*b"00000"), "{text}");
        }
        for text in ["EXPLAIN (SELECT 1", "EXPLAIN (SELECT 1) SELECT 1", "EXPLAIN ((COSTS OFF)) SELECT 1"] {
            assert_eq!(state(text), SqlState::SYNTAX_ERROR, "{text}");
        }
    }

    /// Goal: what people write is read, however it is combined.
    #[test]
    fn what_nests_as_statements_do_is_read() {
        for (begin, end) in [
            ("ARRAY[", "]"),
            ("coalesce(1, ", ")"),
            ("(", ")"),
            ("CASE WHEN a THEN ", " END"),
            ("(SELECT ", ")"),
            ("CAST(", " AS int)"),
            ("substring(", " FROM 1)"),
            ("replace(", ", 'a', 'b')"),
        ] {
            let text = format!("SELECT {}1{}", begin.repeat(25), end.repeat(25));
            assert_eq!(state(&text), SqlState(*b"00000"), "{begin}");
        }
        for chain in ["+1", " OR a = 1", " AND a IS NOT NULL", "||'a'", "::int"] {
            let text = format!("SELECT 1{}", chain.repeat(250));
            assert_eq!(state(&text), SqlState(*b"00000"), "{chain}");
        }
        for chain in [" OR a = 1", " AND a IS NOT NULL", " AND (a = 1 OR b = 2) OR NOT c"] {
            let text = format!("SELECT 1{}", chain.repeat(50_000));
            assert_eq!(state(&text), SqlState(*b"00000"), "{chain}");
            assert_eq!(state(&format!("{text} AND")), SqlState::SYNTAX_ERROR, "{chain}");
        }
        let many = vec!["a IS DISTINCT FROM 1"; 800].join(", ");
        assert_eq!(
            state(&format!("SELECT {many} FROM t, u WHERE a IN (1) ORDER BY {many}")),
            SqlState(*b"00000")
        );
        let many = vec!["f(1, g(2), ARRAY[3])"; 5000].join(", ");
        assert_eq!(state(&format!("SELECT ARRAY[{many}]")), SqlState(*b"00000"));
    }
}
