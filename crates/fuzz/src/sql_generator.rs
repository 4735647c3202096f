//! Random statements that are valid: every expression has a type, every name is in scope.

use crate::input::Input;

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Select,
    Insert,
    Update,
    Delete,
}

/// A statement in parts.
pub(crate) struct Statement {
    pub kind: Kind,
    /// What comes before the query, or the condition.
    head: String,
    /// The query of `SELECT` and `INSERT`, the condition of the others.
    body: String,
    /// What comes behind.
    tail: String,
}

impl Statement {
    /// As it is.
    pub fn plain(&self) -> String {
        format!("{}{}{}", self.head, self.body, self.tail)
    }

    /// In a form that is no program.
    pub fn as_query(&self) -> String {
        let Statement { kind, head, body, tail } = self;
        match kind {
            Kind::Select | Kind::Insert => format!("{head}WITH same AS ({body}) SELECT * FROM same{tail}"),
            Kind::Update | Kind::Delete => {
                format!("{head}(WITH one AS (SELECT true AS t) SELECT t FROM one) AND ({body}){tail}")
            }
        }
    }
}

/// Types of expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Int,
    BigInt,
    Numeric,
    Double,
    Text,
    Boolean,
    Date,
    Timestamp,
}

const TYPES: [Type; 8] = [
    Type::Int,
    Type::BigInt,
    Type::Numeric,
    Type::Double,
    Type::Text,
    Type::Boolean,
    Type::Date,
    Type::Timestamp,
];

/// The columns of the tables.
const COLUMNS: &[(&str, &str, Type)] = &[
    ("a", "id", Type::Int),
    ("a", "n", Type::Int),
    ("a", "b", Type::BigInt),
    ("a", "m", Type::Numeric),
    ("a", "t", Type::Text),
    ("a", "v", Type::Text),
    ("a", "f", Type::Boolean),
    ("a", "d", Type::Date),
    ("a", "s", Type::Timestamp),
    ("a", "x", Type::Double),
    ("c", "k1", Type::Int),
    ("c", "k2", Type::Text),
    ("c", "n", Type::Int),
    ("c", "m", Type::Numeric),
    ("c", "f", Type::Boolean),
];

/// A table under a name.
#[derive(Clone, Debug)]
struct Source {
    table: &'static str,
    alias: String,
}

pub(crate) struct Generator<'b> {
    input: Input<'b>,
    scope: Vec<Source>,
    names: usize,
    depth: usize,
}

impl<'b> Generator<'b> {
    pub fn new(input: Input<'b>) -> Generator<'b> {
        Generator { input, scope: Vec::new(), names: 0, depth: 0 }
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.input.below(choices.len())]
    }

    fn source(&mut self) -> Source {
        self.names += 1;
        Source { table: self.one_of(&["a", "c"]), alias: format!("r{}", self.names) }
    }

    pub fn statement(&mut self) -> Statement {
        self.scope.clear();
        (self.names, self.depth) = (0, 0);
        match self.input.below(8) {
            0 => self.insert(),
            1 | 2 => self.update(),
            3 => self.delete(),
            _ => {
                let (head, tail) = (String::new(), String::new());
                Statement { kind: Kind::Select, head, body: self.query(None), tail }
            }
        }
    }

    fn insert(&mut self) -> Statement {
        // New keys, so that it mostly fits.
        let first = 100 + self.input.below(900);
        let (head, body) = match self.input.below(2) {
            0 => {
                let rest = self.columns_of(&[Type::BigInt, Type::Int, Type::Text, Type::Numeric, Type::Date]);
                ("INSERT INTO a (id, b, n, t, m, d) ", format!("SELECT {first} + r1.id, {rest}"))
            }
            _ => {
                let rest = self.columns_of(&[Type::Text, Type::Int, Type::Boolean]);
                ("INSERT INTO c (k1, k2, n, f) ", format!("SELECT {first} + r1.id, {rest}"))
            }
        };
        let condition = self.expression(Type::Boolean);
        let body = format!("{body} FROM a AS r1 WHERE {condition}");
        Statement { kind: Kind::Insert, head: head.into(), body, tail: String::new() }
    }

    /// Expressions over the rows of `a` as `r1`.
    fn columns_of(&mut self, types: &[Type]) -> String {
        self.scope = vec![Source { table: "a", alias: "r1".into() }];
        self.names = 1;
        let all: Vec<String> = types.iter().map(|wanted| self.expression(*wanted)).collect();
        all.join(", ")
    }

    fn update(&mut self) -> Statement {
        let (table, targets): (&'static str, &[(&str, Type)]) = match self.input.below(2) {
            0 => (
                "a",
                &[
                    ("n", Type::Int),
                    ("m", Type::Numeric),
                    ("t", Type::Text),
                    ("f", Type::Boolean),
                    ("d", Type::Date),
                    ("s", Type::Timestamp),
                    ("x", Type::Double),
                ],
            ),
            _ => ("c", &[("n", Type::Int), ("m", Type::Numeric), ("f", Type::Boolean)]),
        };
        self.names = 1;
        self.scope = vec![Source { table, alias: "r1".into() }];
        let (first, second) = (self.input.below(targets.len()), self.input.below(targets.len()));
        let mut assignments = Vec::new();
        for at in [first, second] {
            let (name, of) = targets[at];
            if assignments.is_empty() || second != first {
                assignments.push(format!("{name} = {}", self.expression(of)));
            }
        }
        let body = self.condition();
        let head = format!("UPDATE {table} AS r1 SET {} WHERE ", assignments.join(", "));
        Statement { kind: Kind::Update, head, body, tail: self.returning(table) }
    }

    fn delete(&mut self) -> Statement {
        let table = self.one_of(&["a", "c"]);
        self.names = 1;
        self.scope = vec![Source { table, alias: "r1".into() }];
        let body = self.condition();
        let head = format!("DELETE FROM {table} AS r1 WHERE ");
        Statement { kind: Kind::Delete, head, body, tail: self.returning(table) }
    }

    fn returning(&mut self, table: &str) -> String {
        match self.input.below(3) {
            0 => " RETURNING *".into(),
            1 => format!(" RETURNING {} AS id", if table == "a" { "id" } else { "k1" }),
            _ => String::new(),
        }
    }

    /// A query; of one column if that has a type.
    fn query(&mut self, wanted: Option<Type>) -> String {
        let outer = self.scope.len();
        let first = self.source();
        let mut from = format!("{} AS {}", first.table, first.alias);
        self.scope.push(first);
        let joins = if wanted.is_none() { self.input.below(3) } else { 0 };
        for _ in 0..joins {
            let next = self.source();
            let (table, alias) = (next.table, next.alias.clone());
            self.scope.push(next);
            let of = self.one_of(&TYPES);
            let inner: Vec<Source> = self.scope.split_off(outer);
            let (left, right) = (
                self.column_of(&inner[..inner.len() - 1], of),
                self.column_of(&inner[inner.len() - 1..], of),
            );
            self.scope.extend(inner);
            from += &match (self.input.below(3), left, right) {
                (0, Some(left), Some(right)) => format!(" LEFT JOIN {table} AS {alias} ON {left} = {right}"),
                (_, Some(left), Some(right)) => format!(" JOIN {table} AS {alias} ON {left} = {right}"),
                _ => format!(" CROSS JOIN {table} AS {alias}"),
            };
        }
        let items = match (wanted, self.input.below(5)) {
            (Some(of), _) => self.expression(of),
            (None, 0) => "*".to_string(),
            (None, 1) => self.aggregates(),
            (None, more) => {
                let mut items = Vec::new();
                for at in 0..more {
                    let of = self.one_of(&TYPES);
                    items.push(format!("{} AS c{at}", self.expression(of)));
                }
                items.join(", ")
            }
        };
        // Columns of the same names cannot be told apart in what is around the query.
        let items = match items.as_str() {
            "*" if joins > 0 => self.all_columns(outer),
            _ => items,
        };
        let condition =
            if self.input.below(4) == 0 { String::new() } else { format!(" WHERE {}", self.condition()) };
        self.scope.truncate(outer);
        format!("SELECT {items} FROM {from}{condition}")
    }

    fn all_columns(&self, outer: usize) -> String {
        let mut items = Vec::new();
        for source in &self.scope[outer..] {
            for (_, name, _) in COLUMNS.iter().filter(|(table, ..)| *table == source.table) {
                items.push(format!("{alias}.{name} AS {alias}_{name}", alias = source.alias));
            }
        }
        items.join(", ")
    }

    fn aggregates(&mut self) -> String {
        let mut items = vec!["count(*) AS c0".to_string()];
        for at in 1..=self.input.below(3) {
            let of = self.one_of(&TYPES);
            let argument = self.expression(of);
            let is_number = matches!(of, Type::Int | Type::BigInt | Type::Numeric);
            let function = match (self.input.below(5), of) {
                (0, _) => "count",
                (1, _) if is_number => "sum",
                (2, Type::Boolean) => "bool_or",
                (_, Type::Boolean) => "bool_and",
                (3, _) => "min",
                _ => "max",
            };
            items.push(format!("{function}({argument}) AS c{at}"));
        }
        items.join(", ")
    }

    /// A condition, often one along a key.
    fn condition(&mut self) -> String {
        let Some(last) = self.scope.last().cloned() else { return self.expression(Type::Boolean) };
        let key = match (last.table, self.input.below(6)) {
            ("a", 0) => format!("{}.id = {}", last.alias, self.small()),
            ("a", 1) => format!("{}.n = {}", last.alias, self.small()),
            ("a", 2) => format!("{}.id BETWEEN {} AND {}", last.alias, self.small(), self.small()),
            ("a", 3) => format!("{}.b IN ({}0, {}0, 20)", last.alias, self.small(), self.small()),
            (_, 0) => format!("{}.k1 = {} AND {}.k2 > 'a'", last.alias, self.small(), last.alias),
            (_, 1) => format!("{}.n >= {}", last.alias, self.small()),
            (_, 2) => format!("({}.k1, {}.k2) = ({}, 'one')", last.alias, last.alias, self.small()),
            _ => return self.expression(Type::Boolean),
        };
        match self.input.below(3) {
            0 => key,
            1 => format!("{key} AND {}", self.expression(Type::Boolean)),
            _ => format!("({key} OR {})", self.expression(Type::Boolean)),
        }
    }

    fn small(&mut self) -> usize {
        1 + self.input.below(6)
    }

    fn column_of(&mut self, sources: &[Source], of: Type) -> Option<String> {
        let mut found = Vec::new();
        for source in sources {
            let columns = COLUMNS.iter().filter(|(table, _, is)| *table == source.table && *is == of);
            found.extend(columns.map(|(_, name, _)| format!("{}.{name}", source.alias)));
        }
        if found.is_empty() { None } else { Some(found.swap_remove(self.input.below(found.len()))) }
    }

    fn expression(&mut self, of: Type) -> String {
        self.depth += 1;
        let made = match self.depth > 4 || self.input.is_empty() || self.input.below(3) == 0 {
            true => self.leaf(of),
            false => self.composed(of),
        };
        self.depth -= 1;
        made
    }

    fn leaf(&mut self, of: Type) -> String {
        let sources = self.scope.clone();
        if self.input.below(4) > 0
            && let Some(column) = self.column_of(&sources, of)
        {
            return column;
        }
        let literals: &[&str] = match of {
            Type::Int => &["0", "1", "-3", "7", "CAST(NULL AS int)"],
            Type::BigInt => &["CAST(5 AS bigint)", "9000000000", "CAST('-7' AS bigint)"],
            Type::Numeric => &["1.5", "0.0", "-2.25", "CAST(3 AS numeric)", "10.10"],
            Type::Double => &["CAST(0.5 AS double precision)", "CAST('-2' AS double precision)"],
            Type::Text => &[
                "'one'",
                "''",
                "'a%'",
                "'something longer'",
                "CAST('Three' AS varchar(4))",
                "CAST(NULL AS text)",
            ],
            Type::Boolean => &["true", "false", "CAST(NULL AS boolean)"],
            Type::Date => &["DATE '2024-01-31'", "CAST('1999-12-31' AS date)"],
            Type::Timestamp => {
                &["TIMESTAMP '2024-01-31 10:00:00'", "CAST('1999-12-31 23:59:59.5' AS timestamp)"]
            }
        };
        self.one_of(literals).to_string()
    }

    fn composed(&mut self, of: Type) -> String {
        let any = self.input.below(8);
        match any {
            0 => {
                let (condition, one) = (self.expression(Type::Boolean), self.expression(of));
                return format!("CASE WHEN {condition} THEN {one} ELSE {} END", self.expression(of));
            }
            1 => return format!("coalesce({}, {})", self.expression(of), self.expression(of)),
            2 => return format!("nullif({}, {})", self.expression(of), self.expression(of)),
            3 if self.depth < 4 => {
                let sort = self.one_of(&["min", "max"]);
                if of != Type::Boolean {
                    let outer = self.scope.len();
                    let source = self.source();
                    let from = format!("{} AS {}", source.table, source.alias);
                    self.scope.push(source);
                    let (value, condition) = (self.expression(of), self.condition());
                    self.scope.truncate(outer);
                    return format!("(SELECT {sort}({value}) FROM {from} WHERE {condition})");
                }
                return format!("EXISTS ({})", self.query(Some(Type::Int)));
            }
            _ => {}
        }
        let choice = self.input.below(6);
        let [l, r] = match of {
            Type::Boolean => [String::new(), String::new()],
            _ => [self.expression(of), self.expression(of)],
        };
        match (of, choice) {
            (Type::Int, 0) => format!("({l} + {r})"),
            (Type::Int, 1) => format!("({l} - {r})"),
            (Type::Int, 2) => format!("(({l}) % 1000 * ({r} % 1000) % 1000)"),
            (Type::Int, 3) => format!("length({})", self.expression(Type::Text)),
            (Type::Int, 4) => format!("({l} / {})", self.one_of(&["2", "-3", "7"])),
            (Type::Int, _) => format!("abs({l})"),
            (Type::BigInt, 0) => format!("({l} + {})", self.expression(Type::Int)),
            (Type::BigInt, 1) => format!("({l} - {r})"),
            (Type::BigInt, 2) => format!("CAST({} AS bigint)", self.expression(Type::Int)),
            (Type::BigInt, _) => format!("greatest({l}, {r})"),
            (Type::Numeric, 0) => format!("({l} + {r})"),
            (Type::Numeric, 1) => format!("({l} - {})", self.expression(Type::Int)),
            (Type::Numeric, 2) => format!("round({l}, {})", self.one_of(&["0", "1", "2"])),
            (Type::Numeric, 3) => format!("CAST({} AS numeric(12,2))", self.expression(Type::Int)),
            (Type::Numeric, _) => format!("least({l}, {r})"),
            (Type::Double, 0) => format!("({l} + {r})"),
            (Type::Double, 1) => format!("({l} * 0.5)"),
            (Type::Double, _) => format!("CAST({} AS double precision)", self.expression(Type::Int)),
            (Type::Text, 0) => format!("({l} || {r})"),
            (Type::Text, 1) => format!("upper({l})"),
            (Type::Text, 2) => format!("substring({l}, {}, {})", self.one_of(&["1", "2", "0"]), self.small()),
            (Type::Text, 3) => format!("CAST({} AS text)", self.expression(Type::Int)),
            (Type::Text, 4) => format!("CAST({} AS varchar(3))", self.expression(Type::Text)),
            (Type::Text, _) => format!("lower({l})"),
            (Type::Date, 0) => format!("({l} + {})", self.small()),
            (Type::Date, 1) => format!("CAST({} AS date)", self.expression(Type::Timestamp)),
            (Type::Date, _) => format!("greatest({l}, {r})"),
            (Type::Timestamp, 0) => format!("CAST({} AS timestamp)", self.expression(Type::Date)),
            (Type::Timestamp, 1) => format!("({l} + INTERVAL '1 day 2 hours')"),
            (Type::Timestamp, _) => format!("least({l}, {r})"),
            (Type::Boolean, choice) => self.predicate(choice),
        }
    }

    fn predicate(&mut self, choice: usize) -> String {
        if choice < 2 {
            let (l, r) = (self.expression(Type::Boolean), self.expression(Type::Boolean));
            return format!("({l} {} {r})", if choice == 0 { "AND" } else { "OR" });
        }
        if choice == 2 {
            let inner = self.expression(Type::Boolean);
            let test = self.one_of(&["NOT ", "", "", ""]);
            let behind =
                if test.is_empty() { self.one_of(&[" IS TRUE", " IS NOT FALSE", " IS NULL"]) } else { "" };
            return format!("({test}({inner}){behind})");
        }
        let of = self.one_of(&TYPES);
        let l = self.expression(of);
        match (choice, self.input.below(6)) {
            (3, 0) => format!("({l} IS NULL)"),
            (3, 1) => format!("({l} IS NOT NULL)"),
            (3, 2) => format!("({l} IN ({}, {}))", self.expression(of), self.expression(of)),
            (3, 3) => format!("({l} NOT BETWEEN {} AND {})", self.expression(of), self.expression(of)),
            (3, 4) if self.depth < 4 => format!("({l} IN ({}))", self.query(Some(of))),
            (3, _) => format!("({l} IS DISTINCT FROM {})", self.expression(of)),
            (_, 0) if of == Type::Text => {
                format!("({l} LIKE {})", self.one_of(&["'o%'", "'%e'", "'_n_'", "''"]))
            }
            _ => format!("({l} {} {})", self.one_of(&["=", "<>", "<", "<=", ">", ">="]), self.expression(of)),
        }
    }
}
