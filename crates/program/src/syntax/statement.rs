//! Tokens to statements; the grammar stands in [`parser`](super::parser).

use super::diagnostic::Diagnostic;
use super::lexer::{Token, TokenKind};
use super::parser::{Parsed, Parser, RESERVED, formed};
use super::tree::*;
use fabius_value::SqlState;

/// What each statement but an assignment begins with, what it is, and an example of it, for hints.
const FORMS: &[(&str, &str, &str)] = &[
    ("let", "a let", "let total = price * count"),
    ("var", "a var", "var total: numeric(12, 2) = 0"),
    ("require", "a require", "require total > 0, \"nothing to pay\""),
    ("insert", "an insert", "insert accounts { id: 1, balance: 0 }"),
    ("upsert", "an upsert", "upsert accounts { id: 1, balance: 0 }"),
    ("update", "an update", "update accounts[id] { balance: 0 }"),
    ("delete", "a delete", "delete accounts[id]"),
    ("append", "an append", "append list (value)"),
    ("sort", "a sort", "sort list by field descending"),
    ("if", "an if", "if condition { ... } else { ... }"),
    ("for", "a for", "for row in accounts[1 .. 9] { ... }"),
    ("return", "a return", "return value, value"),
];

/// What follows a name that a statement begins with.
pub(super) const ASSIGNS: &[&str] = &["=", "+=", "-=", "*=", "/=", "%=", ".", "["];

/// What other languages begin statements with, and what is written here.
const FOREIGN: &[(&str, &str)] = &[
    ("begin", TRANSACTION),
    ("break", TURNS),
    ("call", CALLS),
    ("case", CHOICE),
    ("commit", TRANSACTION),
    ("const", "a variable that keeps its value is written: let total = price * count"),
    ("continue", TURNS),
    ("do", LOOPS),
    ("elif", "write else if"),
    ("elseif", "write else if"),
    ("elsif", "write else if"),
    ("end", "a block ends with }"),
    ("endif", "a block ends with }"),
    ("exec", CALLS),
    ("execute", CALLS),
    ("exit", TURNS),
    ("foreach", LOOPS),
    ("loop", LOOPS),
    ("perform", CALLS),
    ("print", "a procedure tells what it returns: return value"),
    ("raise", FAILURE),
    ("repeat", LOOPS),
    ("rollback", FAILURE),
    ("select", "a row is read where it is used, let a = accounts[id].balance; many are gone over by a for"),
    ("set", "assign without a word: accounts[id].balance = 0, or total = 0"),
    ("switch", CHOICE),
    ("throw", FAILURE),
    ("when", CHOICE),
    ("while", LOOPS),
];
const LOOPS: &str = "every loop is a for: for n in 1 to 10 { ... }, or over a list or the rows of a table";
const TURNS: &str = "a for makes all its turns: use if inside, or where and limit on a table";
const CHOICE: &str = "write if e { ... } else { ... }, or for a value if e then a else b";
const CALLS: &str =
    "procedures do not call each other; the value of a function is used: let n = length(name)";
const TRANSACTION: &str = "a procedure is one transaction: it commits by itself when it ends";
const FAILURE: &str =
    "a procedure takes everything back if a condition is not met: require false, \"message\"";

impl Parser {
    pub(super) fn block(&mut self) -> Parsed<Block> {
        let opened = self.span();
        self.symbol("{").map_err(|error| formed(error, "a block", "{ ... }"))?;
        self.nested(|parser| {
            let mut block = Vec::new();
            while !parser.at_symbol("}") {
                if *parser.peek() == TokenKind::End {
                    let mut error = parser.expected("`}`");
                    let line = parser.line(opened);
                    error.hint = Some(format!("the {{ of line {line} has no }}"));
                    return Err(error);
                }
                block.push(parser.statement()?);
            }
            parser.at += 1;
            Ok(block)
        })
    }

    fn statement(&mut self) -> Parsed<Statement> {
        let form = match self.peek() {
            TokenKind::Word(word) => FORMS.iter().find(|(begins, ..)| begins == word),
            _ => None,
        };
        self.statement_of_any_kind().map_err(|error| match form {
            Some((_, what, form)) => formed(error, what, form),
            None => error,
        })
    }

    fn statement_of_any_kind(&mut self) -> Parsed<Statement> {
        let start = self.span();
        let kind = match self.peek() {
            TokenKind::Quoted(_) => self.assignment()?,
            TokenKind::Word(word) => match word.as_str() {
                "let" | "var" => self.variable()?,
                "require" => self.require()?,
                "insert" | "upsert" => self.insert()?,
                "update" => {
                    self.at += 1;
                    StatementKind::Update { row: self.row()?, columns: self.columns()? }
                }
                "delete" => {
                    self.at += 1;
                    StatementKind::Delete { row: self.row()? }
                }
                "append" => {
                    self.at += 1;
                    let list = self.name("a list")?;
                    self.symbol("(")?;
                    StatementKind::Append { list, values: self.listed(")", Parser::expression)? }
                }
                "sort" if matches!(self.peek_after(1), TokenKind::Word(_) | TokenKind::Quoted(_)) => {
                    self.sort()?
                }
                "if" => self.branch()?,
                "for" => self.repeat()?,
                "return" => {
                    self.at += 1;
                    let mut values = vec![self.expression()?];
                    while self.eat_symbol(",") {
                        values.push(self.expression()?);
                    }
                    StatementKind::Return { values }
                }
                _ => self.assignment()?,
            },
            _ => return Err(self.no_statement()),
        };
        Ok(Statement { kind, span: self.span_from(start) })
    }

    fn variable(&mut self) -> Parsed<StatementKind> {
        let mutable = self.at_word("var");
        self.at += 1;
        let name = self.name("the variable's name")?;
        let ty = if self.eat_symbol(":") { Some(self.ty()?) } else { None };
        if !self.eat_symbol("=") {
            let mut error = self.expected("`=`");
            error.hint =
                Some("a variable is given its first value where it is declared; a list: = []".into());
            return Err(error);
        }
        Ok(StatementKind::Let { name, mutable, ty, value: self.expression()? })
    }

    fn require(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        let condition = self.expression()?;
        if !self.at_symbol(",") {
            let mut error = self.expected("`,`");
            error.hint = Some("say what the caller is told: require e, \"message\"".into());
            return Err(error);
        }
        self.at += 1;
        let message = match self.peek() {
            TokenKind::Message(_) => {
                let TokenKind::Message(message) = self.advance().kind else { unreachable!() };
                Message::Fixed(message)
            }
            TokenKind::End | TokenKind::Symbol("}") => {
                return Err(self.expected("a message in double quotes"));
            }
            _ => Message::Computed(self.expression()?),
        };
        let mut failure = Failure { message, state: None, detail: None, hint: None };
        let mut comma = self.eat_symbol(",");
        if comma && self.eat_word("sqlstate") {
            failure.state = Some(self.state()?);
            comma = self.eat_symbol(",");
        }
        for (word, part) in [("detail", &mut failure.detail), ("hint", &mut failure.hint)] {
            if comma && self.eat_word(word) {
                *part = Some(self.expression()?);
                comma = self.eat_symbol(",");
            }
        }
        if comma {
            return Err(self.expected("`sqlstate`, `detail` or `hint`, in this order"));
        }
        Ok(StatementKind::Require { condition, failure })
    }

    fn sort(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        let list = self.name("a list")?;
        let is_by =
            self.at_word("by") && matches!(self.peek_after(1), TokenKind::Word(_) | TokenKind::Quoted(_));
        if !is_by {
            return Ok(StatementKind::Sort { list, keys: vec![self.sort_key(None)?] });
        }
        self.advance();
        let mut keys = Vec::new();
        loop {
            let field = self.any_name("a field")?;
            keys.push(self.sort_key(Some(field))?);
            if !self.eat_symbol(",") {
                return Ok(StatementKind::Sort { list, keys });
            }
        }
    }

    fn sort_key(&mut self, field: Option<Name>) -> Parsed<SortKey> {
        // The next statement may assign to a variable of this name.
        let is_name = matches!(self.peek_after(1), TokenKind::Symbol(next) if ASSIGNS.contains(next));
        let descending = !is_name && self.eat_word("descending");
        let mut nulls_first = descending;
        let is_end =
            |token: &TokenKind| matches!(token, TokenKind::Word(word) if word == "first" || word == "last");
        if self.at_word("nulls") && is_end(self.peek_after(1)) {
            self.advance();
            nulls_first = self.at_word("first");
            self.advance();
        }
        Ok(SortKey { field, descending, nulls_first })
    }

    fn state(&mut self) -> Parsed<SqlState> {
        let state = match self.peek() {
            TokenKind::Text(text) => SqlState::parse(text),
            _ => None,
        };
        let Some(state) = state else {
            let mut error = self.expected("a SQLSTATE");
            error.hint = Some("five digits and capital letters in single quotes: sqlstate '23514'".into());
            return Err(error);
        };
        self.advance();
        Ok(state)
    }

    fn insert(&mut self) -> Parsed<StatementKind> {
        let upsert = self.at_word("upsert");
        self.at += 1;
        Ok(StatementKind::Insert { table: self.name("a table")?, columns: self.columns()?, upsert })
    }

    fn columns(&mut self) -> Parsed<Vec<(Name, Expression)>> {
        self.symbol("{")?;
        self.listed("}", |parser| {
            let column = parser.any_name("a column")?;
            parser.symbol(":")?;
            Ok((column, parser.expression()?))
        })
    }

    /// Every `else if` counts as one more level: that is how deep the steps are nested.
    fn branch(&mut self) -> Parsed<StatementKind> {
        self.advance();
        let mut arms = vec![(self.expression()?, self.block()?)];
        let mut otherwise = None;
        let (depth, chained) = (self.depth, self.chained);
        while otherwise.is_none() && self.eat_word("else") {
            if self.eat_word("if") {
                arms.push(self.nested(|parser| Ok((parser.expression()?, parser.block()?)))?);
                self.depth += 1;
                self.chained += 1;
            } else {
                otherwise = Some(self.block()?);
            }
        }
        (self.depth, self.chained) = (depth, chained);
        Ok(StatementKind::If { arms, otherwise })
    }

    fn repeat(&mut self) -> Parsed<StatementKind> {
        self.at += 1;
        let variable = self.name("the loop's variable")?;
        self.word("in")?;
        if self.at_scan() {
            let scan = Box::new(self.scan()?);
            return Ok(StatementKind::ForEach { variable, scan, body: self.block()? });
        }
        let from = self.expression()?;
        if !self.at_word("to") {
            let mut error = self.expected("`to`");
            error.hint = Some("a for goes over a list, a table, or integers: for n in 1 to 10".into());
            return Err(error);
        }
        self.at += 1;
        Ok(StatementKind::ForRange { variable, from, to: self.expression()?, body: self.block()? })
    }

    /// Whether a list or table stands here, rather than the first integer of a range: what follows
    /// the name and its brackets tells.
    fn at_scan(&self) -> bool {
        match self.peek() {
            TokenKind::Quoted(_) => {}
            TokenKind::Word(word) if !RESERVED.contains(&word.as_str()) => {}
            _ => return false,
        }
        let mut after = 1;
        if *self.peek_after(1) == TokenKind::Symbol("[") {
            let mut open = 0;
            loop {
                match self.peek_after(after) {
                    TokenKind::Symbol("[") => open += 1,
                    TokenKind::Symbol("]") => open -= 1,
                    TokenKind::Symbol(".." | "<.." | "..<" | "<..<") if open == 1 => return true,
                    TokenKind::End => return true,
                    _ => {}
                }
                after += 1;
                if open == 0 {
                    break;
                }
            }
        }
        match self.peek_after(after) {
            TokenKind::Symbol(symbol) => *symbol == "{",
            TokenKind::Word(word) => ["by", "where", "descending", "limit"].contains(&word.as_str()),
            _ => false,
        }
    }

    fn scan(&mut self) -> Parsed<Scan> {
        let start = self.span();
        let name = self.name("a list or table")?;
        let index = if self.eat_word("by") { Some(self.any_name("an index")?) } else { None };
        let range = if self.eat_symbol("[") { Some(self.nested(Parser::range)?) } else { None };
        let filter = if self.eat_word("where") { Some(self.expression()?) } else { None };
        let descending = self.eat_word("descending");
        let limit = if self.eat_word("limit") { Some(self.expression()?) } else { None };
        if ["by", "where", "descending", "limit"].into_iter().any(|word| self.at_word(word)) {
            let mut error = self.expected("`{`");
            error.hint = Some("the order is: by index[range] where e descending limit n".into());
            return Err(error);
        }
        let span = self.span_from(start);
        Ok(Scan { name, index, range, filter, descending, limit, span })
    }

    fn range(&mut self) -> Parsed<Range> {
        let mut range = Range { equal: Vec::new(), lower: None, upper: None };
        loop {
            let value = if self.at_range_symbol() { None } else { Some(self.expression()?) };
            if !self.at_range_symbol() {
                range.equal.extend(value);
                if self.eat_symbol("]") {
                    return Ok(range);
                }
                if !self.eat_symbol(",") {
                    return Err(self.expected("`,`, `..` or `]`"));
                }
                continue;
            }
            let Token { kind: TokenKind::Symbol(symbol), span } = self.advance() else { unreachable!() };
            range.lower = value.map(|value| Bound { value, inclusive: !symbol.starts_with('<') });
            if !self.at_symbol("]") {
                range.upper = Some(Bound { value: self.expression()?, inclusive: !symbol.ends_with('<') });
            }
            if range.lower.is_none() && symbol.starts_with('<')
                || range.upper.is_none() && symbol.ends_with('<')
            {
                let message = format!("{symbol} excludes a bound that is not given");
                let error = Diagnostic::new(SqlState::SYNTAX_ERROR, span, message);
                return Err(Box::new(error.with_hint("write .. where the range has no end")));
            }
            if range.lower.is_none() && range.upper.is_none() {
                let error = Diagnostic::new(SqlState::SYNTAX_ERROR, span, "a range needs a bound");
                return Err(Box::new(
                    error.with_hint("leave the whole column out to take every value of it"),
                ));
            }
            if !self.eat_symbol("]") {
                let mut error = self.expected("`]`");
                error.hint = Some("only the last column of a key can have a range".into());
                return Err(error);
            }
            return Ok(range);
        }
    }

    fn at_range_symbol(&self) -> bool {
        matches!(self.peek(), TokenKind::Symbol(".." | "<.." | "..<" | "<..<"))
    }

    /// `name` or `name[key]`, and the height it adds to an expression.
    pub(super) fn row_reference(&mut self) -> Parsed<(RowReference, usize)> {
        let name = self.name("a table or row")?;
        let (mut key, mut tallest) = (None, 0);
        if self.eat_symbol("[") {
            key = Some(self.listed("]", |parser| {
                let (value, height) = parser.tall()?;
                tallest = tallest.max(height + 1);
                Ok(value)
            })?);
        }
        let span = self.span_from(name.span);
        Ok((RowReference { name, key, span }, tallest))
    }

    fn row(&mut self) -> Parsed<RowReference> {
        self.row_reference().map(|(row, _)| row)
    }

    fn assignment(&mut self) -> Parsed<StatementKind> {
        let row = match self.row() {
            Ok(row) => row,
            Err(mut error) if error.hint.is_some() && self.at_reserved() => {
                error.hint = self.no_statement().hint;
                error.message = self.no_statement().message;
                return Err(error);
            }
            Err(error) => return Err(error),
        };
        let target = if self.eat_symbol(".") {
            Target::Column { row, column: self.any_name("a column")? }
        } else if row.key.is_none() {
            Target::Variable(row.name)
        } else {
            let mut error = self.expected("`.`");
            error.hint = Some(match self.at_symbol("?.") {
                true => "what is written must be there: use . and not ?.".into(),
                false => "a column is assigned to: table[key].column = e".into(),
            });
            return Err(error);
        };
        let operator = match self.peek() {
            TokenKind::Symbol("=") => None,
            TokenKind::Symbol("+=") => Some(BinaryOperator::Add),
            TokenKind::Symbol("-=") => Some(BinaryOperator::Subtract),
            TokenKind::Symbol("*=") => Some(BinaryOperator::Multiply),
            TokenKind::Symbol("/=") => Some(BinaryOperator::Divide),
            TokenKind::Symbol("%=") => Some(BinaryOperator::Modulo),
            _ => return Err(self.not_an_assignment(&target)),
        };
        self.at += 1;
        Ok(StatementKind::Assign { target, operator, value: self.expression()? })
    }

    fn no_statement(&self) -> Box<Diagnostic> {
        let mut error = self.expected("a statement or `}`");
        let begins: Vec<&str> = FORMS.iter().map(|(begins, ..)| *begins).collect();
        error.hint =
            Some(format!("a statement begins with {}, or assigns: table[key].column = e", begins.join(", ")));
        error
    }

    fn at_reserved(&self) -> bool {
        matches!(self.peek(), TokenKind::Word(word) if RESERVED.contains(&word.as_str()))
    }

    /// A name that begins no statement is often a misspelt word, or one of another language.
    fn not_an_assignment(&self, target: &Target) -> Box<Diagnostic> {
        let mut error = self.expected("`=`, `+=` or another assignment");
        error.hint = self.no_statement().hint;
        let Target::Variable(name) = target else { return error };
        let foreign = FOREIGN.iter().find(|(word, _)| *word == name.text).map(|(_, hint)| *hint);
        let called = self.at_symbol("(").then_some(CALLS);
        let begins = FORMS.iter().map(|(begins, ..)| *begins);
        let unknown =
            Diagnostic::new(SqlState::SYNTAX_ERROR, name.span, format!("unknown statement {}", name.text));
        let unknown = match foreign {
            Some(hint) => unknown.with_hint(hint),
            None => unknown.did_you_mean(&name.text, begins, || called.map(String::from)),
        };
        if unknown.hint.is_some() { Box::new(unknown) } else { error }
    }
}
