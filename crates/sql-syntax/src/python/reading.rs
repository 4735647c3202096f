//! A function's JSON as its tree.

use super::tree::{
    Call, Comparison, Constant, Expression, ExpressionKind, Function, Handler, KeyRange, Operator, Order,
    Query, Selection, Statement, StatementKind, Try,
};
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_sql_planning::heed;
use fabius_value::{Error, Result, SqlState};
use serde_json::Value as Json;

/// A body's text for messages, and its tree.
///
/// # Errors
/// `42601` for what is no function that `fabius` for Python has written, `0A000` for what programs do not express.
pub fn read(body: &str, name: &str) -> Result<(Source, Function)> {
    let json: Json = serde_json::from_str(body).map_err(|error| malformed(&error.to_string()))?;
    let text = json["source"].as_str().ok_or_else(|| malformed("there is no source"))?;
    let source = Source::new(text, name);
    let mut reader = Reader { source: &source, depth: 0 };
    let word = |field: &str, usual: &str| json[field].as_str().unwrap_or(usual).to_string();
    let names = |field: &str| {
        let names = json[field].as_array().map(Vec::as_slice).unwrap_or_default();
        names.iter().filter_map(|name| name.as_str().map(str::to_string)).collect()
    };
    let tree = &json["tree"];
    let span = reader.span(tree)?;
    let function = Function {
        optional: names("optional"),
        spans: names("spans"),
        gives_spans: places(&json["gives spans"]),
        given_back: names("given back"),
        database: word("database", "db"),
        package: word("package", "fabius"),
        body: reader.block(&tree["body"])?.into(),
        span,
    };
    Ok((source, function))
}

/// A part of a function that programs do not express: what it is, where, and what to write instead.
pub fn refused(source: &Source, span: Span, what: &str, instead: &str) -> Error {
    let error = Error::new(SqlState::NOT_SUPPORTED, format!("a compiled transaction cannot have {what}"));
    placed(error, source, span).with_hint(instead.to_string())
}

/// An error at its place in a function, which its detail begins with: the line's number, the line, and a caret.
#[must_use]
pub fn placed(error: Error, source: &Source, span: Span) -> Error {
    let (line, column, text) = source.place(span.start);
    let before = column as usize - 1;
    let said = source.text.get(span.start as usize..span.end as usize).unwrap_or_default();
    let width = said.lines().next().unwrap_or_default().chars().count().max(1);
    let width = width.min(text.chars().count().saturating_sub(before).max(1));
    let place = format!("line {line}:\n{text}\n{}{}", " ".repeat(before), "^".repeat(width));
    let detail = match error.detail() {
        Some(detail) => format!("{place}\n{detail}"),
        None => place,
    };
    error.at_line(line).with_detail(detail)
}

/// Places in a list.
fn places(json: &Json) -> Vec<usize> {
    let places = json.as_array().map(Vec::as_slice).unwrap_or_default();
    places.iter().filter_map(|place| place.as_u64().and_then(|place| usize::try_from(place).ok())).collect()
}

fn malformed(why: &str) -> Error {
    Error::new(
        SqlState::SYNTAX_ERROR,
        format!("a body in the language python is written by its client: {why}"),
    )
}

/// How deep parts of a function may stand within one another.
const DEPTH: usize = 100;

struct Reader<'s> {
    source: &'s Source,
    depth: usize,
}

impl Reader<'_> {
    fn deeper<T>(&mut self, span: Span, read: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        heed()?;
        if self.depth >= DEPTH {
            return Err(refused(self.source, span, "parts this deep", "divide it"));
        }
        self.depth += 1;
        let done = read(self);
        self.depth -= 1;
        done
    }

    /// The place of a node: `[line, column, end line, end column]`, columns in bytes.
    fn span(&self, node: &Json) -> Result<Span> {
        let at = |index: usize| node["at"][index].as_u64().and_then(|number| u32::try_from(number).ok());
        let (Some(line), Some(column), Some(end_line), Some(end_column)) = (at(0), at(1), at(2), at(3))
        else {
            return Err(malformed("a node has no place"));
        };
        let place = |line: u32, column: u32| {
            let start =
                self.source.start_of_line(line).ok_or_else(|| malformed("a node is beyond the source"))?;
            Ok::<_, Error>((start + column).min(self.source.text.len() as u32))
        };
        let (start, end) = (place(line, column)?, place(end_line, end_column)?);
        if start > end || !self.source.text.is_char_boundary(start as usize) {
            return Err(malformed("a node has no place"));
        }
        Ok(Span { start, end })
    }

    fn kind<'j>(&self, node: &'j Json) -> Result<&'j str> {
        node["class"].as_str().ok_or_else(|| malformed("a node has no class"))
    }

    fn list<'j>(&self, node: &'j Json, field: &str) -> Result<&'j [Json]> {
        node[field].as_array().map(Vec::as_slice).ok_or_else(|| malformed(&format!("a node has no {field}")))
    }

    fn word(&self, node: &Json, field: &str) -> Result<String> {
        let word = node[field].as_str().ok_or_else(|| malformed(&format!("a node has no {field}")));
        word.map(str::to_string)
    }

    fn block(&mut self, statements: &Json) -> Result<Vec<Statement>> {
        let all = statements.as_array().ok_or_else(|| malformed("a node has no body"))?;
        all.iter().map(|statement| self.statement(statement)).collect()
    }

    fn statement(&mut self, node: &Json) -> Result<Statement> {
        let span = self.span(node)?;
        let kind = self.deeper(span, |reader| reader.statement_kind(node, span))?;
        Ok(Statement { kind, span })
    }

    fn statement_kind(&mut self, node: &Json, span: Span) -> Result<StatementKind> {
        Ok(match self.kind(node)? {
            "Assign" => {
                let [target] = self.list(node, "targets")? else {
                    return Err(refused(self.source, span, "several targets", "assign one after the other"));
                };
                StatementKind::Assign(self.expression(target)?, self.expression(&node["value"])?)
            }
            "AnnAssign" if !node["value"].is_null() => {
                StatementKind::Assign(self.expression(&node["target"])?, self.expression(&node["value"])?)
            }
            "AnnAssign" | "Pass" => StatementKind::Nothing,
            "AugAssign" => StatementKind::Augment(
                self.expression(&node["target"])?,
                self.operator(&node["op"], span)?,
                self.expression(&node["value"])?,
            ),
            "If" => StatementKind::If(
                self.expression(&node["test"])?,
                self.block(&node["body"])?,
                self.block(&node["orelse"])?,
            ),
            "While" | "For" if !self.list(node, "orelse")?.is_empty() => {
                return Err(refused(
                    self.source,
                    span,
                    "else behind a loop",
                    "set a variable where the loop breaks",
                ));
            }
            "While" => StatementKind::While(self.expression(&node["test"])?, self.block(&node["body"])?),
            "For" => self.loop_over(node)?,
            "Append" => {
                StatementKind::Append(self.expression(&node["list"])?, self.expression(&node["value"])?)
            }
            "SetElement" => StatementKind::SetElement(
                self.expression(&node["list"])?,
                self.expression(&node["place"])?,
                self.expression(&node["value"])?,
            ),
            "Received" => {
                let names = self.list(node, "names")?.iter();
                let names = names.map(|name| name.as_str().map(String::from)).collect::<Option<_>>();
                let names = names.ok_or_else(|| malformed("names that are no texts"))?;
                StatementKind::Receive(names, self.expression(&node["value"])?)
            }
            "Said" => StatementKind::Say(self.word(node, "state")?, self.expression(&node["value"])?),
            "Raised" => StatementKind::Raise(self.word(node, "kind")?, self.expression(&node["message"])?),
            "Reraised" => {
                let depth = node["depth"].as_u64().ok_or_else(|| malformed("a handler has no number"))?;
                StatementKind::Reraise(usize::try_from(depth).unwrap_or(usize::MAX))
            }
            "Tried" => self.tried(node)?,
            "Declared" => StatementKind::Declare(self.word(node, "name")?),
            "Break" => StatementKind::Break,
            "Continue" => StatementKind::Continue,
            "Return" if node["value"].is_null() => StatementKind::Return(None),
            "Return" if self.kind(&node["value"])? == "Tuple" => {
                StatementKind::ReturnAll(self.expressions(&node["value"], "elts")?)
            }
            "Return" => StatementKind::Return(Some(self.expression(&node["value"])?)),
            "Delete" => {
                let [target] = self.list(node, "targets")? else {
                    return Err(refused(self.source, span, "several targets", "delete one after the other"));
                };
                StatementKind::Delete(self.expression(target)?)
            }
            "Expr" => {
                let value = self.expression(&node["value"])?;
                match value.kind {
                    ExpressionKind::Constant(Constant::Text(_)) => StatementKind::Nothing,
                    _ => StatementKind::Expression(value),
                }
            }
            other => {
                let (what, instead) = described(other);
                return Err(refused(self.source, span, what, instead));
            }
        })
    }

    /// `try: body except classes as name: body else: orelse`
    fn tried(&mut self, node: &Json) -> Result<StatementKind> {
        let mut handlers = Vec::new();
        for handler in self.list(node, "handlers")? {
            let classes = self.list(handler, "classes")?.iter();
            let classes = classes.map(|class| class.as_str().map(str::to_string)).collect::<Option<_>>();
            handlers.push(Handler {
                classes: classes.ok_or_else(|| malformed("a handler has no classes"))?,
                name: handler["name"].as_str().map(str::to_string),
                body: self.block(&handler["body"])?,
                is_reraised: handler["reraised"].as_bool().unwrap_or(false),
            });
        }
        let (body, otherwise) = (self.block(&node["body"])?, self.block(&node["orelse"])?);
        Ok(StatementKind::Try(Try { body, handlers, otherwise }))
    }

    /// `for target in iter: body`
    fn loop_over(&mut self, node: &Json) -> Result<StatementKind> {
        let (target, over) = (self.expression(&node["target"])?, self.expression(&node["iter"])?);
        let ExpressionKind::Name(variable) = target.kind else {
            let instead = "take a name, and its parts in the loop";
            return Err(refused(self.source, target.span, "this target of a loop", instead));
        };
        let body = self.block(&node["body"])?;
        let over_this = |reader: &Self| {
            let instead = "loop over range(...), a list, db.table, db.table.where(...) or db.execute(...)";
            refused(reader.source, over.span, "a loop over this", instead)
        };
        Ok(match over.kind {
            ExpressionKind::Query(query) => StatementKind::Results(variable, query, body),
            ExpressionKind::Name(_) => StatementKind::Elements(variable, over, None, body),
            ExpressionKind::Attribute(..) => {
                StatementKind::Rows(variable, over, Selection::Equal(Vec::new()), body)
            }
            ExpressionKind::Call(function, mut arguments, named) => match function.kind {
                ExpressionKind::Name(name) if name == "range" && named.is_empty() => {
                    StatementKind::Range(variable, arguments, body)
                }
                ExpressionKind::Name(name) if name == "sorted" && arguments.len() == 2 => {
                    let is_reverse = matches!(
                        arguments.pop().map(|last| last.kind),
                        Some(ExpressionKind::Constant(Constant::Boolean(true)))
                    );
                    let order = if is_reverse { Order::Downwards } else { Order::Upwards };
                    let list = arguments.pop().ok_or_else(|| malformed("a loop over nothing"))?;
                    StatementKind::Elements(variable, list, Some(order), body)
                }
                ExpressionKind::Attribute(table, name) if name == "where" && arguments.is_empty() => {
                    StatementKind::Rows(variable, *table, Selection::Equal(named), body)
                }
                ExpressionKind::Attribute(table, name) if name == "[:]" && arguments.len() >= 2 => {
                    let mut bound = || {
                        let is_open = |kind: &_| matches!(kind, ExpressionKind::Constant(Constant::None));
                        arguments.pop().filter(|bound| !is_open(&bound.kind))
                    };
                    let (upper, lower) = (bound(), bound());
                    let range = KeyRange { prefix: arguments, lower, upper };
                    StatementKind::Rows(variable, *table, Selection::Range(Box::new(range)), body)
                }
                _ => return Err(over_this(self)),
            },
            _ => return Err(over_this(self)),
        })
    }

    /// A call of another program.
    fn program(&mut self, node: &Json) -> Result<ExpressionKind> {
        Ok(ExpressionKind::Program(Call {
            program: self.word(node, "function")?,
            arguments: self.expressions(node, "args")?,
            optional: places(&node["optional"]),
            spans: places(&node["spans"]),
            may_be_none: places(&node["may_be_none"]),
            gives_spans: places(&node["gives_spans"]),
        }))
    }

    /// `db.execute(text, (a, b))`
    fn query(&mut self, node: &Json) -> Result<ExpressionKind> {
        let text = self.word(node, "text")?;
        Ok(ExpressionKind::Query(Query { text, arguments: self.expressions(node, "args")? }))
    }

    fn expression(&mut self, node: &Json) -> Result<Expression> {
        let span = self.span(node)?;
        let kind = self.deeper(span, |reader| reader.expression_kind(node, span))?;
        Ok(Expression { kind, span })
    }

    fn boxed(&mut self, node: &Json) -> Result<Box<Expression>> {
        self.expression(node).map(Box::new)
    }

    fn expressions(&mut self, node: &Json, field: &str) -> Result<Vec<Expression>> {
        self.list(node, field)?.iter().map(|element| self.expression(element)).collect()
    }

    fn expression_kind(&mut self, node: &Json, span: Span) -> Result<ExpressionKind> {
        Ok(match self.kind(node)? {
            "Constant" => ExpressionKind::Constant(self.constant(node, span)?),
            "Name" => ExpressionKind::Name(self.word(node, "id")?),
            "Attribute" => ExpressionKind::Attribute(self.boxed(&node["value"])?, self.word(node, "attr")?),
            "Subscript" => {
                let key = &node["slice"];
                let key = match self.kind(key)? {
                    "Tuple" => self.expressions(key, "elts")?,
                    _ => vec![self.expression(key)?],
                };
                ExpressionKind::Subscript(self.boxed(&node["value"])?, key)
            }
            "BinOp" => {
                let operator = self.operator(&node["op"], span)?;
                ExpressionKind::Binary(operator, self.boxed(&node["left"])?, self.boxed(&node["right"])?)
            }
            "UnaryOp" => {
                let operand = self.boxed(&node["operand"])?;
                match self.kind(&node["op"])? {
                    "Not" => ExpressionKind::Not(operand),
                    "USub" => ExpressionKind::Negative(operand),
                    "UAdd" => operand.kind,
                    _ => return Err(refused(self.source, span, "this operator", "use arithmetic")),
                }
            }
            "BoolOp" => {
                let is_and = self.kind(&node["op"])? == "And";
                ExpressionKind::Joined(is_and, self.expressions(node, "values")?)
            }
            "Compare" => {
                let first = self.boxed(&node["left"])?;
                let others = self.expressions(node, "comparators")?;
                let operators =
                    self.list(node, "ops")?.iter().map(|operator| self.comparison(operator, span));
                let operators = operators.collect::<Result<Vec<_>>>()?;
                ExpressionKind::Compare(first, operators.into_iter().zip(others).collect())
            }
            "IfExp" => ExpressionKind::Conditional(
                self.boxed(&node["test"])?,
                self.boxed(&node["body"])?,
                self.boxed(&node["orelse"])?,
            ),
            "Empty" => ExpressionKind::Empty,
            "Zero" => ExpressionKind::Zero,
            "Element" => ExpressionKind::Element(self.boxed(&node["list"])?, self.boxed(&node["place"])?),
            "Called" => self.program(node)?,
            "Query" => self.query(node)?,
            "Tuple" => ExpressionKind::Tuple(self.expressions(node, "elts")?),
            "JoinedStr" => ExpressionKind::Formatted(self.expressions(node, "values")?),
            "FormattedValue" => {
                if node["conversion"].as_i64() != Some(-1) || !node["format_spec"].is_null() {
                    let what = "a value in an f-string with a format";
                    return Err(refused(self.source, span, what, "format it where the result is used"));
                }
                return self.expression(&node["value"]).map(|value| ExpressionKind::Formatted(vec![value]));
            }
            "Call" => {
                let named = self.list(node, "keywords")?.iter().map(|keyword| {
                    let name = keyword["arg"].as_str().ok_or_else(|| {
                        refused(self.source, span, "arguments of a mapping (**)", "write them one by one")
                    })?;
                    Ok((name.to_string(), &keyword["value"]))
                });
                let named = named.collect::<Result<Vec<_>>>()?;
                let named = named.into_iter().map(|(name, value)| Ok((name, self.expression(value)?)));
                let named = named.collect::<Result<Vec<_>>>()?;
                ExpressionKind::Call(self.boxed(&node["func"])?, self.expressions(node, "args")?, named)
            }
            other => {
                let (what, instead) = described(other);
                return Err(refused(self.source, span, what, instead));
            }
        })
    }

    fn constant(&self, node: &Json, span: Span) -> Result<Constant> {
        Ok(match (node["type"].as_str(), &node["value"]) {
            (Some("NoneType"), _) => Constant::None,
            (Some("bool"), Json::Bool(value)) => Constant::Boolean(*value),
            (Some("int"), Json::String(digits)) => Constant::Whole(digits.clone()),
            (Some("float"), Json::String(text)) => {
                Constant::Float(text.parse().map_err(|_| malformed("a float is none"))?)
            }
            (Some("str"), Json::String(text)) => Constant::Text(text.clone()),
            (Some(other), _) => {
                let what = format!("a literal of class {other}");
                return Err(refused(self.source, span, &what, "pass it as an argument, in a type of SQL"));
            }
            (None, _) => return Err(malformed("a literal has no class")),
        })
    }

    fn operator(&self, node: &Json, span: Span) -> Result<Operator> {
        Ok(match self.kind(node)? {
            "Add" => Operator::Add,
            "Sub" => Operator::Subtract,
            "Mult" => Operator::Multiply,
            "Div" => Operator::Divide,
            "FloorDiv" => Operator::FloorDivide,
            "Mod" => Operator::Modulo,
            "Pow" => Operator::Power,
            "BitAnd" => Operator::And,
            "BitOr" => Operator::Or,
            "BitXor" => Operator::ExclusiveOr,
            "LShift" => Operator::ShiftLeft,
            "RShift" => Operator::ShiftRight,
            _ => return Err(refused(self.source, span, "this operator", "use arithmetic")),
        })
    }

    fn comparison(&self, node: &Json, span: Span) -> Result<Comparison> {
        Ok(match self.kind(node)? {
            "Eq" => Comparison::Equal,
            "NotEq" => Comparison::NotEqual,
            "Lt" => Comparison::Less,
            "LtE" => Comparison::LessOrEqual,
            "Gt" => Comparison::Greater,
            "GtE" => Comparison::GreaterOrEqual,
            "Is" => Comparison::Is,
            "IsNot" => Comparison::IsNot,
            "In" => Comparison::In,
            "NotIn" => Comparison::NotIn,
            _ => return Err(refused(self.source, span, "this comparison", "write it otherwise")),
        })
    }
}

/// What a class of nodes is called, and what to write instead.
fn described(class: &str) -> (&'static str, &'static str) {
    match class {
        "List" | "Set" | "Dict" | "ListComp" | "SetComp" | "DictComp" => {
            ("a collection as a value", "give it a name, and use its elements")
        }
        "GeneratorExp" => ("a generator as a value", "use it in sum, any, all, min, max, list or sorted"),
        "Lambda" | "FunctionDef" | "ClassDef" => ("a definition", "define it outside of the transaction"),
        "AsyncFunctionDef" | "AsyncFor" | "AsyncWith" | "Await" => {
            ("await", "a transaction waits for nothing: await what it needs before it is called")
        }
        "TryStar" => ("try", "let the exception end the transaction, and catch it around the call"),
        "With" => ("with", "do what it does outside of the transaction"),
        "Import" | "ImportFrom" => ("import", "import it outside of the transaction"),
        "Yield" | "YieldFrom" => ("yield", "return what is wanted"),
        "Starred" => ("*", "write the values one by one"),
        "Slice" => ("a slice", "use one value at a time"),
        _ => ("this", "write it otherwise, or call the function with side=\"client\""),
    }
}
