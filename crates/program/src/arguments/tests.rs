//! Arguments round-trip, refuse what does not fit, and survive garbage.

use super::*;
use crate::ir::Variable;
use fabius_value::Decimal;
use proptest::prelude::*;

fn program(parameters: Vec<Type>) -> Program {
    let variables: Vec<Variable> =
        parameters.into_iter().enumerate().map(|(at, ty)| Variable { name: format!("p{at}"), ty }).collect();
    Program {
        name: "test".into(),
        parameter_count: variables.len(),
        variables,
        rows: vec![],
        results: vec![],
        body: vec![],
        step_count: 0,
        text: "".into(),
    }
}

fn scalar(data_type: DataType, nullable: bool) -> ScalarType {
    ScalarType { data_type, nullable }
}

fn scalar_types() -> impl Strategy<Value = ScalarType> {
    let data_type = prop_oneof![
        Just(DataType::Boolean),
        Just(DataType::SmallInt),
        Just(DataType::Int),
        Just(DataType::BigInt),
        (1u8..=38)
            .prop_flat_map(|precision| (Just(precision), 0..=precision))
            .prop_map(|(precision, scale)| DataType::Numeric { precision, scale }),
        Just(DataType::Double),
        proptest::option::of(1u32..9).prop_map(|limit| DataType::Text { limit }),
        (1u32..9).prop_map(|length| DataType::Char { length }),
        Just(DataType::Bytea),
        Just(DataType::Date),
        Just(DataType::Timestamp),
    ];
    (data_type, any::<bool>()).prop_map(|(data_type, nullable)| scalar(data_type, nullable))
}

fn types() -> impl Strategy<Value = Type> {
    let field = scalar_types().prop_map(|scalar| Field { name: "f".into(), scalar });
    prop_oneof![
        3 => scalar_types().prop_map(Type::Scalar),
        1 => proptest::collection::vec(field, 1..4).prop_map(Type::List),
    ]
}

/// A value of the type from a seed; null now and then if that is allowed.
fn value_of(scalar: ScalarType, seed: u64) -> Value {
    if scalar.nullable && seed.is_multiple_of(4) {
        return Value::Null;
    }
    let number = seed as i64 >> (seed % 60);
    match scalar.data_type {
        DataType::Boolean => Value::Boolean(seed.is_multiple_of(2)),
        DataType::SmallInt => Value::SmallInt(number as i16),
        DataType::Int => Value::Int(number as i32),
        DataType::BigInt => Value::BigInt(number),
        DataType::Numeric { precision, scale } => {
            let bound = 10i128.pow(precision.into());
            Value::Numeric(Decimal { mantissa: i128::from(number) * i128::from(seed) % bound, scale })
        }
        DataType::Double => Value::Double(number as f64 / 7.0),
        DataType::Text { .. } | DataType::Char { .. } => {
            Value::Text("é日a"[..[0, 2, 5, 6][seed as usize % 4]].into())
                .cast(scalar.data_type)
                .unwrap_or("x".into())
        }
        DataType::Bytea => Value::Bytea(seed.to_le_bytes()[..seed as usize % 8].into()),
        DataType::Date => Value::Date((number % 2_000_000) as i32),
        DataType::Timestamp => Value::Timestamp(number),
    }
}

fn argument_of(ty: &Type, seeds: &mut impl Iterator<Item = u64>) -> Value {
    match ty {
        Type::Scalar(scalar) => value_of(*scalar, seeds.next().unwrap()),
        Type::List(fields) => {
            let rows = seeds.next().unwrap() % 4;
            let mut row =
                || fields.iter().map(|field| value_of(field.scalar, seeds.next().unwrap())).collect();
            Value::List((0..rows).map(|_| row()).collect())
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 2000 }))]

    /// Goal: what was encoded comes back, and only whole encodings are accepted.
    #[test]
    fn round_trip(types in proptest::collection::vec(types(), 0..6), seed: u64) {
        let mut random = fabius_env::Random::seeded(seed);
        let mut seeds = std::iter::repeat_with(|| random.next_u64());
        let program = program(types);
        let values: Vec<Value> = program.variables.iter().map(|p| argument_of(&p.ty, &mut seeds)).collect();
        let bytes = encode(&program, &values).unwrap();
        prop_assert_eq!(to_values(&program, &bytes).unwrap(), values);
        for cut in 0..bytes.len() {
            prop_assert_eq!(decode(&program, &bytes[..cut]).unwrap_err().state(), INVALID_ENCODING);
        }
        let longer = [&bytes[..], &[0]].concat();
        prop_assert_eq!(decode(&program, &longer).unwrap_err().state(), INVALID_ENCODING);
    }

    /// Goal: of selected values the same is read as of all, in the same order; garbage is no trouble.
    #[test]
    fn selected_values_are_those_decoded(
        types in proptest::collection::vec(types(), 1..6),
        chosen in proptest::collection::vec((0u16..5, 0u16..3), 0..4),
        garbage in proptest::collection::vec(any::<u8>(), 0..60),
        seed: u64,
    ) {
        let mut random = fabius_env::Random::seeded(seed);
        let mut seeds = std::iter::repeat_with(|| random.next_u64());
        let program = program(types);
        let values: Vec<Value> = program.variables.iter().map(|p| argument_of(&p.ty, &mut seeds)).collect();
        let bytes = encode(&program, &values).unwrap();
        let chosen: Vec<_> = chosen
            .into_iter()
            .filter(|(parameter, _)| usize::from(*parameter) < program.parameter_count)
            .collect();
        let number = |parameter: usize, field: usize| {
            chosen.iter().position(|of| *of == (parameter as u16, field as u16))
        };
        let mut expected = Vec::new();
        for (parameter, argument) in decode(&program, &bytes).unwrap().iter().enumerate() {
            let (width, all) = match argument {
                Argument::Scalar(value) => (1, std::slice::from_ref(value)),
                Argument::List { width, values } => (*width, &values[..]),
            };
            for (at, value) in all.iter().enumerate() {
                expected.extend(number(parameter, at % width).map(|number| (number, *value)));
            }
        }
        let (selection, mut visited) = (Selection::of(&program, &chosen), Vec::new());
        selection.for_each(&bytes, |number, value| visited.push((number, value))).unwrap();
        prop_assert_eq!(visited, expected);
        let _ = selection.for_each(&garbage, |_, _| {});
    }

    /// Goal: garbage gives values of the right types, whose encoding is that garbage, or an error.
    #[test]
    fn garbage(
        types in proptest::collection::vec(types(), 0..6),
        bytes in proptest::collection::vec(any::<u8>(), 0..60),
    ) {
        let program = program(types);
        if let Ok(values) = to_values(&program, &bytes) {
            prop_assert_eq!(encode(&program, &values).unwrap(), bytes);
        }
    }
}

/// Goal: an error says which parameter, what it expects, and what it got.
#[test]
fn errors_name_the_parameter() {
    let fields = vec![Field { name: "item".into(), scalar: scalar(DataType::Int, false) }];
    let program = program(vec![
        Type::Scalar(scalar(DataType::SmallInt, false)),
        Type::Scalar(scalar(DataType::Text { limit: Some(3) }, true)),
        Type::List(fields),
    ]);
    let list = || Value::List(vec![]);
    let cases: Vec<(Vec<Value>, &str)> = vec![
        (
            vec![],
            "[42883] test takes 3 arguments, 0 given; parameters are (p0: smallint, p1: varchar(3) null, p2: list of (int))",
        ),
        (
            vec![Value::Null, Value::Null, list()],
            "[23502] argument p0: null is not allowed; expected smallint, given null",
        ),
        (
            vec![Value::BigInt(99_999), Value::Null, list()],
            "[22003] argument p0: smallint out of range; expected smallint, given bigint",
        ),
        (
            vec![Value::Boolean(true), Value::Null, list()],
            "[42804] argument p0: boolean does not convert to smallint; expected smallint, given boolean",
        ),
        (
            vec![1i64.into(), "abcd".into(), list()],
            "[22001] argument p1: value too long for type character varying(3); expected varchar(3) null; it has 4 characters",
        ),
        (
            vec![1i64.into(), Value::Null, 1i64.into()],
            "[42804] argument p2: bigint is not a list; expected list of (int), given bigint",
        ),
        (
            vec![1i64.into(), Value::Null, Value::List(vec![vec![1i64.into()], vec![]])],
            "[42804] argument p2: 0 values in a row of 1 fields; expected list of (int); row 2",
        ),
        (
            vec![1i64.into(), Value::Null, Value::List(vec![vec![Value::Null]])],
            "[23502] argument p2: null is not allowed; expected list of (int); row 1",
        ),
    ];
    for (values, expected) in cases {
        assert_eq!(format!("{:?}", encode(&program, &values).unwrap_err()), expected);
    }
}

/// Goal: a false count in a few bytes does not allocate gigabytes.
#[test]
fn a_false_count_is_refused_before_allocating() {
    let fields = vec![Field { name: String::new(), scalar: scalar(DataType::Boolean, false) }];
    let program = program(vec![Type::List(fields)]);
    let mut bytes = Vec::new();
    ArgumentWriter::new(&mut bytes).list(usize::MAX / 2);
    assert_eq!(decode(&program, &bytes).unwrap_err().state(), INVALID_ENCODING);
}

/// Goal: integers of every length are read, wherever the bytes end.
#[test]
fn integers_of_every_length() {
    let integer = scalar(DataType::BigInt, false);
    for value in (0..64).flat_map(|bits| [i64::MIN >> bits, i64::MAX >> bits]) {
        let mut bytes = Vec::new();
        ArgumentWriter::new(&mut bytes).int(value).int(7).int(value);
        let mut reader = ArgumentReader::new(&bytes);
        for expected in [value, 7, value] {
            assert_eq!(reader.scalar(integer).unwrap(), Datum::Int(expected));
        }
        reader.finish().unwrap();
    }
    for longer_than_needed in [&[0x80, 0][..], &[0xff, 0x80, 0x80, 0], &[0x80; 12]] {
        ArgumentReader::new(longer_than_needed).scalar(integer).unwrap_err();
    }
}
