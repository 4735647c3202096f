//! Goal: no text makes the parser, printer or verifier panic, and whatever is printed reads back as
//! what it was printed from.

use fabius_program::catalog::Catalog;
use fabius_program::syntax::diagnostic::{Source, Span};
use fabius_program::syntax::tree::*;
use fabius_program::syntax::{Definition, parse};
use fabius_program::verify;
use fabius_value::{DataType, Decimal, SqlState};
use proptest::prelude::*;
use std::sync::Arc;

// ---- token soup ----

const PIECES: &[&str] = &[
    "table",
    "procedure",
    "let",
    "var",
    "if",
    "then",
    "else",
    "for",
    "in",
    "to",
    "require",
    "insert",
    "upsert",
    "update",
    "delete",
    "append",
    "return",
    "and",
    "or",
    "not",
    "is",
    "null",
    "true",
    "between",
    "exists",
    "where",
    "by",
    "descending",
    "limit",
    "primary",
    "key",
    "using",
    "hash",
    "unique",
    "index",
    "list",
    "of",
    "int",
    "text",
    "numeric",
    "date",
    "count",
    "distinct",
    "t",
    "k",
    "v",
    "x",
    "l",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    ".",
    "?.",
    "..",
    "<..",
    "..<",
    "=",
    "+=",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "<",
    "<>",
    "::",
    "->",
    "1",
    "2.5",
    "'a'",
    "'2026-01-01'",
    "x'0a'",
    "\"m\"",
    "`q`",
    "// c\n",
    ";",
    "'",
    "\n",
    "é",
    "\u{0}",
];

const FRAGMENTS: &[&str] = &[
    "let x = t[1].v ",
    "t[x].v += 1 ",
    "for x in t[1 ..] { ",
    "} ",
    "if exists t[1] { ",
    "} else { ",
    "x = x + 1 ",
    "var x = 0 ",
    "var l: list of int = [] ",
    "append l (x) ",
    "insert t { k: 1, v: x } ",
    "upsert t { k: x, v: 1 } ",
    "delete t[x] ",
    "delete x ",
    "x.v = 2 ",
    "for x in l { ",
    "for x in 1 to 3 { ",
    "require x > 1, \"m\" ",
    "let y = if x > 1 then x else 2 ",
    "return x ",
    "update t[x] { v: null } ",
    "let y = sum(l) ",
    "let z = l[1] ",
    "for x in t by i[1] where x.v > 1 { ",
    "let w = t[1]?.v ",
];

fn soup() -> impl Strategy<Value = String> {
    let pieces =
        prop::collection::vec(prop::sample::select(PIECES), 0..60).prop_map(|pieces| pieces.join(" "));
    let near = prop::collection::vec(
        prop_oneof![8 => prop::sample::select(FRAGMENTS), 1 => prop::sample::select(PIECES)],
        0..20,
    );
    let procedure = near.prop_map(|fragments| {
        let open = fragments.iter().filter(|fragment| fragment.trim_end().ends_with('{')).count();
        let close = fragments.iter().filter(|fragment| fragment.starts_with('}')).count();
        format!(
            "procedure p(x0: int) -> int null {{ {} {} }}",
            fragments.concat(),
            "}".repeat(open.saturating_sub(close))
        )
    });
    prop_oneof![pieces, procedure, ".{0,80}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_text_panics(text in soup()) {
        let tables = "table t { k: int, v: int, primary key (k), index i (v) }";
        let catalog = verify::load(tables, "tables", &Catalog::new()).unwrap();
        match verify::load(&text, "soup", &catalog) {
            Err(errors) => {
                prop_assert!(!errors.list.is_empty());
                prop_assert!(errors.to_string().contains("soup:"));
            }
            Ok(loaded) => for (_, program) in loaded.procedures() {
                // What the log holds gives the same program.
                let again = verify::load(&program.text, "log", &catalog).unwrap();
                prop_assert_eq!(again.procedures().last().unwrap().1, program);
            }
        }
        if let Ok(definitions) = parse(&text, "soup") {
            round_trip(&definitions)?;
        }
    }

    #[test]
    fn printed_definitions_read_back(definition in definition()) {
        round_trip(&[definition])?;
    }
}

fn round_trip(definitions: &[Definition]) -> Result<(), TestCaseError> {
    let printed: String = definitions.iter().map(Definition::to_string).collect();
    let read =
        parse(&printed, "printed").map_err(|errors| TestCaseError::fail(format!("{errors}\n{printed}")))?;
    prop_assert_eq!(definitions, &read, "{}", printed);
    let again: String = read.iter().map(Definition::to_string).collect();
    prop_assert_eq!(printed, again);
    Ok(())
}

// ---- generated definitions ----

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_][a-z0-9_]{0,8}",
        2 => prop::sample::select(PIECES).prop_filter("not empty", |piece| !piece.is_empty()).prop_map(String::from),
        1 => "[A-Za-z`\"' ]{1,8}",
    ]
}

fn name() -> impl Strategy<Value = Name> {
    text().prop_map(|text| Name { text, span: Span::default() })
}

fn data_type() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::Boolean),
        Just(DataType::SmallInt),
        Just(DataType::Int),
        Just(DataType::BigInt),
        (1..=38u8).prop_flat_map(
            |precision| (0..=precision).prop_map(move |scale| DataType::Numeric { precision, scale })
        ),
        Just(DataType::Double),
        prop::option::of(1..1000u32).prop_map(|limit| DataType::Text { limit }),
        (1..1000u32).prop_map(|length| DataType::Char { length }),
        Just(DataType::Bytea),
        Just(DataType::Date),
        Just(DataType::Timestamp),
    ]
}

fn scalar() -> impl Strategy<Value = ScalarName> {
    (data_type(), any::<bool>()).prop_map(|(data_type, nullable)| ScalarName {
        data_type,
        nullable,
        span: Span::default(),
    })
}

fn column() -> impl Strategy<Value = ColumnDefinition> {
    (name(), scalar()).prop_map(|(name, scalar)| ColumnDefinition { name, scalar })
}

fn ty() -> impl Strategy<Value = TypeName> {
    prop_oneof![
        scalar().prop_map(TypeKind::Scalar),
        scalar().prop_map(TypeKind::List),
        prop::collection::vec(column(), 1..4).prop_map(TypeKind::Records),
    ]
    .prop_map(|kind| TypeName { kind, span: Span::default() })
}

fn literal() -> impl Strategy<Value = Literal> {
    prop_oneof![
        Just(Literal::Null),
        any::<bool>().prop_map(Literal::Boolean),
        (0..10i128.pow(38)).prop_map(Literal::Integer),
        (0..10i128.pow(38), 1..=38u8)
            .prop_map(|(mantissa, scale)| Literal::Decimal(Decimal { mantissa, scale })),
        ".{0,10}".prop_map(Literal::Text),
        prop::collection::vec(any::<u8>(), 0..5).prop_map(Literal::Bytea),
        (-4_371_587..=2_932_896i32).prop_map(Literal::Date),
        (-300_000_000_000_000_000..200_000_000_000_000_000i64).prop_map(Literal::Timestamp),
    ]
}

fn operator() -> impl Strategy<Value = BinaryOperator> {
    use BinaryOperator::*;
    prop::sample::select(vec![
        Add,
        Subtract,
        Multiply,
        Divide,
        Modulo,
        Equal,
        NotEqual,
        Less,
        LessEqual,
        Greater,
        GreaterEqual,
        IsDistinct,
        IsNotDistinct,
        And,
        Or,
        Concatenate,
    ])
}

fn row(inner: impl Strategy<Value = Expression>, keyed: bool) -> impl Strategy<Value = RowReference> {
    let key = prop::collection::vec(inner, 1..3);
    (name(), key, any::<bool>()).prop_map(move |(name, key, given)| RowReference {
        name,
        key: (keyed || given).then_some(key),
        span: Span::default(),
    })
}

fn node(kind: ExpressionKind) -> Expression {
    Expression { kind, span: Span::default() }
}

fn expression() -> impl Strategy<Value = Expression> {
    let leaf = prop_oneof![
        3 => literal().prop_map(ExpressionKind::Literal),
        3 => text().prop_map(ExpressionKind::Variable),
        1 => Just(ExpressionKind::EmptyList),
    ]
    .prop_map(node);
    leaf.prop_recursive(5, 24, 3, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        prop_oneof![
            (row(inner.clone(), false), any::<bool>(), name())
                .prop_map(|(row, optional, column)| ExpressionKind::Column { row, optional, column }),
            (name(), boxed()).prop_map(|(list, index)| ExpressionKind::Element { list, index }),
            row(inner.clone(), true).prop_map(ExpressionKind::Exists),
            ("f[a-z]{2,5}", prop::collection::vec(inner.clone(), 0..3)).prop_map(|(text, arguments)| {
                let function = Name { text: format!("{text}_"), span: Span::default() };
                ExpressionKind::Call { function, distinct: false, arguments }
            }),
            name().prop_map(|list| ExpressionKind::Call {
                function: Name { text: "count".into(), span: Span::default() },
                distinct: true,
                arguments: vec![node(ExpressionKind::Variable(list.text))],
            }),
            boxed().prop_map(ExpressionKind::Negate),
            boxed().prop_map(ExpressionKind::Not),
            (boxed(), any::<bool>())
                .prop_map(|(operand, negated)| ExpressionKind::IsNull { operand, negated }),
            (boxed(), boxed(), boxed(), any::<bool>()).prop_map(|(operand, low, high, negated)| {
                ExpressionKind::Between { operand, low, high, negated }
            }),
            (operator(), boxed(), boxed())
                .prop_map(|(operator, left, right)| ExpressionKind::Binary(operator, left, right)),
            (operator(), boxed(), boxed())
                .prop_map(|(operator, left, right)| ExpressionKind::Binary(operator, left, right)),
            (prop::collection::vec((inner.clone(), inner.clone()), 1..3), boxed())
                .prop_map(|(arms, otherwise)| ExpressionKind::If { arms, otherwise }),
            (boxed(), data_type())
                .prop_map(|(operand, data_type)| ExpressionKind::Cast { operand, data_type }),
        ]
        .prop_map(node)
    })
}

fn failure() -> impl Strategy<Value = Failure> {
    let message = prop_oneof![".{0,10}".prop_map(Message::Fixed), expression().prop_map(Message::Computed)];
    let state = prop::option::of("[1-9A-Z][0-9A-Z]{4}".prop_map(|code| SqlState::parse(&code).unwrap()));
    let part = || prop::option::of(expression());
    (message, state, part(), part()).prop_map(|(message, state, detail, hint)| Failure {
        message,
        state,
        detail,
        hint,
    })
}

fn columns() -> impl Strategy<Value = Vec<(Name, Expression)>> {
    prop::collection::vec((name(), expression()), 1..4)
}

fn range() -> impl Strategy<Value = Range> {
    let bound = || (expression(), any::<bool>()).prop_map(|(value, inclusive)| Bound { value, inclusive });
    (
        prop::collection::vec(expression(), 0..3),
        prop::option::of(bound()),
        prop::option::of(bound()),
        expression(),
    )
        .prop_map(|(mut equal, lower, upper, one)| {
            if equal.is_empty() && lower.is_none() && upper.is_none() {
                equal.push(one);
            }
            Range { equal, lower, upper }
        })
}

fn scan() -> impl Strategy<Value = Scan> {
    let option = prop::option::of::<BoxedStrategy<Expression>>;
    (
        name(),
        prop::option::of(name()),
        prop::option::of(range()),
        option(expression().boxed()),
        any::<bool>(),
        option(expression().boxed()),
    )
        .prop_map(|(name, index, range, filter, descending, limit)| Scan {
            name,
            index,
            range,
            filter,
            descending,
            limit,
            span: Span::default(),
        })
}

fn statement() -> impl Strategy<Value = Statement> {
    let operators = vec![
        None,
        Some(BinaryOperator::Add),
        Some(BinaryOperator::Subtract),
        Some(BinaryOperator::Multiply),
        Some(BinaryOperator::Divide),
        Some(BinaryOperator::Modulo),
    ];
    let target = prop_oneof![
        name().prop_map(Target::Variable),
        (row(expression(), false), name()).prop_map(|(row, column)| Target::Column { row, column }),
    ];
    let leaf = prop_oneof![
        (name(), any::<bool>(), prop::option::of(ty()), expression())
            .prop_map(|(name, mutable, ty, value)| StatementKind::Let { name, mutable, ty, value }),
        (target, prop::sample::select(operators), expression())
            .prop_map(|(target, operator, value)| StatementKind::Assign { target, operator, value }),
        (expression(), failure())
            .prop_map(|(condition, failure)| StatementKind::Require { condition, failure }),
        (name(), columns(), any::<bool>()).prop_map(|(table, columns, upsert)| StatementKind::Insert {
            table,
            columns,
            upsert
        }),
        (row(expression(), false), columns())
            .prop_map(|(row, columns)| StatementKind::Update { row, columns }),
        row(expression(), false).prop_map(|row| StatementKind::Delete { row }),
        (name(), prop::collection::vec(expression(), 1..3))
            .prop_map(|(list, values)| StatementKind::Append { list, values }),
        prop::collection::vec(expression(), 1..3).prop_map(|values| StatementKind::Return { values }),
    ]
    .prop_map(|kind| Statement { kind, span: Span::default() });
    leaf.prop_recursive(3, 12, 3, |inner| {
        let block = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            (prop::collection::vec((expression(), block()), 1..3), prop::option::of(block()))
                .prop_map(|(arms, otherwise)| StatementKind::If { arms, otherwise }),
            (name(), expression(), expression(), block())
                .prop_map(|(variable, from, to, body)| StatementKind::ForRange { variable, from, to, body }),
            (name(), scan(), block()).prop_map(|(variable, scan, body)| StatementKind::ForEach {
                variable,
                scan: Box::new(scan),
                body
            }),
        ]
        .prop_map(|kind| Statement { kind, span: Span::default() })
    })
}

fn parameters() -> impl Strategy<Value = Vec<Parameter>> {
    prop::collection::vec((name(), ty()).prop_map(|(name, ty)| Parameter { name, ty }), 1..4)
}

fn definition() -> impl Strategy<Value = Definition> {
    let results =
        prop_oneof![Just(Results::None), ty().prop_map(Results::One), parameters().prop_map(Results::Named),];
    let source = || Arc::new(Source::new("", ""));
    let names = || prop::collection::vec(name(), 1..3);
    let index = (name(), names(), any::<bool>()).prop_map(|(name, columns, unique)| IndexDefinition {
        name,
        columns,
        unique,
    });
    prop_oneof![
        3 => (name(), prop::option::of(parameters()), results, prop::collection::vec(statement(), 0..5)).prop_map(
            move |(name, parameters, results, body)| Definition::Procedure(ProcedureDefinition {
                source: source(),
                name,
                parameters: parameters.unwrap_or_default(),
                results,
                body,
            })
        ),
        1 => (
            name(),
            prop::collection::vec(column(), 1..5),
            names(),
            any::<bool>(),
            prop::collection::vec(index, 0..3),
        )
            .prop_map(move |(name, columns, primary_key, hash, indexes)| Definition::Table(TableDefinition {
                source: source(),
                name,
                columns,
                primary_key,
                hash,
                indexes,
            })),
    ]
}
