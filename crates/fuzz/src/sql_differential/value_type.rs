//! The types of values that statements have, and what can be done with each.

/// A type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueType {
    SmallInt,
    Int,
    BigInt,
    Numeric,
    Real,
    Double,
    Text,
    Varchar,
    Char,
    Boolean,
    Date,
    Time,
    Timestamp,
    TimestampTz,
    Interval,
    Uuid,
    Inet,
    Cidr,
    Bytea,
    Json,
    Jsonb,
    Ints,
    Texts,
    Mood,
}

use ValueType::*;

impl ValueType {
    pub const ALL: [ValueType; 24] = [
        SmallInt,
        Int,
        BigInt,
        Numeric,
        Real,
        Double,
        Text,
        Varchar,
        Char,
        Boolean,
        Date,
        Time,
        Timestamp,
        TimestampTz,
        Interval,
        Uuid,
        Inet,
        Cidr,
        Bytea,
        Json,
        Jsonb,
        Ints,
        Texts,
        Mood,
    ];

    /// Types that most columns have, as most of what goes wrong does not need others.
    pub const FREQUENT: [ValueType; 6] = [Int, Int, BigInt, Numeric, Text, Boolean];

    /// What casts and parameters call it.
    pub fn name(self) -> &'static str {
        match self {
            SmallInt => "smallint",
            Int => "int",
            BigInt => "bigint",
            Numeric => "numeric",
            Real => "real",
            Double => "double precision",
            Text => "text",
            Varchar => "varchar",
            // Of several lengths, or beside other text, it is `text` (`known.rs`): so there is one length.
            Char => "char(5)",
            Boolean => "boolean",
            Date => "date",
            Time => "time",
            Timestamp => "timestamp",
            TimestampTz => "timestamptz",
            Interval => "interval",
            Uuid => "uuid",
            Inet => "inet",
            Cidr => "cidr",
            Bytea => "bytea",
            Json => "json",
            Jsonb => "jsonb",
            Ints => "int[]",
            Texts => "text[]",
            Mood => "mood",
        }
    }

    /// The type's number in `pg_type`.
    pub fn oid(self) -> u32 {
        match self {
            SmallInt => 21,
            Int => 23,
            BigInt => 20,
            Numeric => 1700,
            Real => 700,
            Double => 701,
            Text => 25,
            Varchar => 1043,
            Char => 1042,
            Boolean => 16,
            Date => 1082,
            Time => 1083,
            Timestamp => 1114,
            TimestampTz => 1184,
            Interval => 1186,
            Uuid => 2950,
            Inet => 869,
            Cidr => 650,
            Bytea => 17,
            Json => 114,
            Jsonb => 3802,
            Ints => 1007,
            Texts => 1009,
            // Whatever it is: a parameter says it in the statement.
            Mood => 0,
        }
    }

    /// Values to choose from. They are small, so that sums and products fit; those of floating point are sums of a few
    /// powers of two, so that the order in which they are added does not matter; one value has one text.
    pub fn values(self) -> &'static [&'static str] {
        match self {
            SmallInt => &["0", "1", "2", "3", "-1", "5", "7"],
            Int => &["0", "1", "2", "3", "4", "-1", "-3", "5", "7", "10", "42"],
            BigInt => &["0", "1", "2", "3", "-1", "5", "10", "20", "9000000000"],
            Numeric => &["0", "1", "2", "1.5", "-2.25", "10.1", "0.01", "100"],
            Real => &["0", "1", "0.5", "-1.25", "2", "100"],
            Double => &["0", "1", "0.5", "-1.25", "2", "1000000"],
            Text | Varchar => &["", "a", "b", "ab", "Abc", "a%", "_", "foo bar", " x ", "é", "10", "a"],
            Char => &["a", "ab", "abc", "b", "", "x y"],
            Boolean => &["true", "false"],
            Date => &["2024-01-31", "1999-12-31", "2024-02-29", "2000-01-01", "2024-12-30"],
            Time => &["00:00:00", "10:30:00.0625", "23:59:59.5", "12:00:00"],
            Timestamp => &[
                "2024-01-31 10:00:00",
                "1999-12-31 23:59:59.5",
                "2024-02-29 00:00:00",
                "2000-01-01 12:34:56.78912",
            ],
            TimestampTz => &["2024-01-31 10:00:00+00", "1999-12-31 23:59:59.5+00", "2024-07-01 00:00:00+00"],
            Interval => {
                &["1 day", "2 hours", "00:30:00", "1 mon", "1 mon 15 days", "1 year 2 mons", "-3 days"]
            }
            Uuid => &[
                "00000000-0000-0000-0000-000000000000",
                "11111111-2222-3333-4444-555555555555",
                "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            ],
            Inet => &["10.0.0.1", "10.0.0.1/24", "10.2.0.0/16", "192.168.1.5", "::1", "2001:db8::1/64"],
            Cidr => &["10.0.0.0/8", "10.0.0.0/24", "192.168.1.0/24", "10.0.0.1/32", "2001:db8::/32", "::/0"],
            Bytea => &["\\x", "\\x00", "\\xdeadbeef", "\\x6162"],
            Json => &[
                "{\"a\": 1, \"b\": [1, 2]}",
                "[]",
                "null",
                "\"x\"",
                "{\"a\": {\"b\": \"c\"}}",
                "{ \"a\" :1.50, \"b\":[ 1e2,-0.0 ] }",
            ],
            Jsonb => &[
                "{\"a\": 1, \"b\": [1, 2]}",
                "[]",
                "null",
                "\"x\"",
                "{\"a\": {\"b\": \"c\"}}",
                "[1, \"a\", null]",
                "2",
                "{\"a\": 1.50, \"b\": [1e2, 12345678901234567890.125]}",
                "-2.75",
            ],
            Ints => &["{}", "{1}", "{1,2,3}", "{2,NULL}", "{3,1}"],
            Mood => &["ok", "sad", "happy", "over the moon"],
            Texts => &["{}", "{a}", "{a,b}", "{b,NULL,a}", "{foo}"],
        }
    }

    /// The statement that defines it, if it is no type of SQL's own. Its labels are not in the order of their letters.
    pub fn definition(self) -> Option<&'static str> {
        (self == Mood).then_some("CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy', 'over the moon')")
    }

    /// Whether `=` and `DISTINCT` know it.
    pub fn has_equality(self) -> bool {
        self != Json
    }

    /// Whether rows can be sorted by it.
    pub fn has_order(self) -> bool {
        !matches!(self, Json | Jsonb)
    }

    /// Whether `min` and `max` take it.
    pub fn has_extremes(self) -> bool {
        !matches!(self, Json | Jsonb | Boolean | Uuid | Cidr | Bytea)
    }

    /// Whether it can be in a key or an index.
    pub fn can_be_key(self) -> bool {
        !matches!(self, Json | Jsonb | Interval | Ints | Texts)
    }

    pub fn is_number(self) -> bool {
        matches!(self, SmallInt | Int | BigInt | Numeric | Real | Double)
    }
}
