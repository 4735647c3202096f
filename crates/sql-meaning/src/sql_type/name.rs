//! Types by name: as SQL writes them, as PostgreSQL prints them, as object identifiers number them.

use super::SqlType;
use fabius_sql_syntax::identifier::quote_identifier;
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast::{self, ArrayElemTypeDef, CharacterLength, ExactNumberInfo, TimezoneInfo};
use std::fmt;

/// `pg_type` of the types without modifiers: the type, its name there, its number, that of its arrays.
const NUMBERS: &[(SqlType, &str, u32, u32)] = &[
    (SqlType::Boolean, "bool", 16, 1000),
    (SqlType::Bytea, "bytea", 17, 1001),
    (SqlType::Name, "name", 19, 1003),
    (SqlType::BigInt, "int8", 20, 1016),
    (SqlType::SmallInt, "int2", 21, 1005),
    (SqlType::Int, "int4", 23, 1007),
    (SqlType::Text, "text", 25, 1009),
    (SqlType::Oid, "oid", 26, 1028),
    (SqlType::Json, "json", 114, 199),
    (SqlType::Cidr, "cidr", 650, 651),
    (SqlType::Real, "float4", 700, 1021),
    (SqlType::Double, "float8", 701, 1022),
    (SqlType::Unknown, "unknown", 705, 0),
    (SqlType::Inet, "inet", 869, 1041),
    (SqlType::Char(1), "bpchar", 1042, 1014),
    (SqlType::VarChar(None), "varchar", 1043, 1015),
    (SqlType::Date, "date", 1082, 1182),
    (SqlType::Time, "time", 1083, 1183),
    (SqlType::Timestamp, "timestamp", 1114, 1115),
    (SqlType::TimestampTz, "timestamptz", 1184, 1185),
    (SqlType::Interval, "interval", 1186, 1187),
    (SqlType::Numeric(None), "numeric", 1700, 1231),
    (SqlType::Void, "void", 2278, 0),
    (SqlType::Uuid, "uuid", 2950, 2951),
    (SqlType::JsonB, "jsonb", 3802, 3807),
];

impl SqlType {
    /// The type without its modifiers, as it stands in `pg_type`.
    fn plain(&self) -> SqlType {
        match self {
            SqlType::Numeric(_) => SqlType::Numeric(None),
            SqlType::VarChar(_) => SqlType::VarChar(None),
            SqlType::Char(_) => SqlType::Char(1),
            SqlType::Rounded(of, _) => (**of).clone(),
            other => other.clone(),
        }
    }

    fn number(&self) -> Option<&'static (SqlType, &'static str, u32, u32)> {
        let plain = self.plain();
        NUMBERS.iter().find(|(sql_type, ..)| *sql_type == plain)
    }

    /// `pg_type.oid`.
    pub fn oid(&self) -> u32 {
        match self {
            SqlType::Array(element) => element.array_oid(),
            SqlType::Enumeration(of) => of.oid,
            other => other.number().map_or(705, |number| number.2),
        }
    }

    /// `pg_type.typarray`: the number of the type's arrays, 0 if it has none.
    pub fn array_oid(&self) -> u32 {
        match self {
            SqlType::Enumeration(of) => of.array_oid,
            other => other.number().map_or(0, |number| number.3),
        }
    }

    /// `pg_type.typname`: `int4`, `_int4`.
    pub fn internal_name(&self) -> String {
        match self {
            SqlType::Array(element) => format!("_{}", element.internal_name()),
            SqlType::Enumeration(of) => of.name.clone(),
            other => other.number().map_or("unknown", |number| number.1).to_string(),
        }
    }

    /// The type of a number of `pg_type`; 0 and 705 are [`SqlType::Unknown`], `None` one that is not known.
    pub fn of_oid(oid: u32) -> Option<SqlType> {
        if oid == 0 {
            return Some(SqlType::Unknown);
        }
        NUMBERS.iter().find_map(|(sql_type, _, own, array)| match oid {
            _ if oid == *own => Some(sql_type.clone()),
            _ if oid == *array => Some(SqlType::Array(Box::new(sql_type.clone()))),
            _ => None,
        })
    }

    /// The type as a statement names it, whatever is along the search path.
    pub fn written(&self) -> String {
        match self {
            SqlType::Array(element) => format!("{}[]", element.written()),
            SqlType::Enumeration(of) => {
                format!("{}.{}", quote_identifier(&of.schema), quote_identifier(&of.name))
            }
            other => other.to_string(),
        }
    }

    /// `atttypmod`: what stands in brackets behind the type, as PostgreSQL encodes it; -1 for nothing.
    pub fn modifier(&self) -> i32 {
        match self {
            SqlType::VarChar(Some(length)) | SqlType::Char(length) => {
                i32::try_from(*length).map_or(-1, |length| length + 4)
            }
            SqlType::Numeric(Some((precision, scale))) => {
                (i32::from(*precision) << 16 | i32::from(*scale)) + 4
            }
            SqlType::Rounded(_, digits) => (*digits).into(),
            SqlType::Array(element) => element.modifier(),
            _ => -1,
        }
    }

    /// The type with a modifier (`atttypmod`); `None` if there is none that says something.
    pub fn with_modifier(&self, modifier: i32) -> Option<SqlType> {
        let length = || u32::try_from(modifier - 4).ok();
        Some(match self {
            SqlType::VarChar(_) => SqlType::VarChar(Some(length().filter(|length| *length > 0)?)),
            SqlType::Char(_) => SqlType::Char(length().filter(|length| *length > 0)?),
            SqlType::Numeric(_) => SqlType::Numeric(Some(((length()? >> 16) as u8, length()? as u8))),
            SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz if (0..=6).contains(&modifier) => {
                SqlType::Rounded(Box::new(self.clone()), modifier as u8)
            }
            SqlType::Array(element) => SqlType::Array(Box::new(element.with_modifier(modifier)?)),
            _ => return None,
        })
    }

    /// A moment's type with so many digits of a second, of which there are 6 at most.
    fn rounded(self, digits: Option<u64>) -> SqlType {
        match digits {
            Some(digits) => SqlType::Rounded(Box::new(self), digits.min(6) as u8),
            None => self,
        }
    }

    /// `typlen`: bytes of a value, -1 where they vary.
    pub fn length(&self) -> i16 {
        match self {
            SqlType::Boolean => 1,
            SqlType::SmallInt => 2,
            SqlType::Int | SqlType::Oid | SqlType::Real | SqlType::Date | SqlType::Void => 4,
            SqlType::Enumeration(_) => 4,
            SqlType::BigInt | SqlType::Double | SqlType::Time | SqlType::Timestamp | SqlType::TimestampTz => {
                8
            }
            SqlType::Rounded(of, _) => of.length(),
            SqlType::Interval | SqlType::Uuid => 16,
            SqlType::Name => 64,
            SqlType::Unknown => -2,
            _ => -1,
        }
    }

    /// The type that SQL writes so.
    ///
    /// # Errors
    /// `42704` for a type that does not exist, `0A000` for one that PostgreSQL has and Fabius has not.
    pub fn from_ast(data_type: &ast::DataType) -> Result<SqlType> {
        use ast::DataType as D;
        Ok(match data_type {
            D::Bool | D::Boolean => SqlType::Boolean,
            D::SmallInt(None) | D::Int2(None) => SqlType::SmallInt,
            D::Int(None) | D::Integer(None) | D::Int4(None) => SqlType::Int,
            D::BigInt(None) | D::Int8(None) => SqlType::BigInt,
            D::Real | D::Float4 => SqlType::Real,
            D::DoublePrecision | D::Float8 | D::Double(ExactNumberInfo::None) => SqlType::Double,
            D::Float(ExactNumberInfo::None) => SqlType::Double,
            D::Float(ExactNumberInfo::Precision(1..=24)) => SqlType::Real,
            D::Float(ExactNumberInfo::Precision(25..=53)) => SqlType::Double,
            D::Numeric(info) | D::Decimal(info) | D::Dec(info) => SqlType::Numeric(digits(*info)?),
            D::Text => SqlType::Text,
            D::Varchar(length) | D::CharacterVarying(length) | D::CharVarying(length) => {
                SqlType::VarChar(character_length(*length)?)
            }
            D::Char(length) | D::Character(length) => SqlType::Char(character_length(*length)?.unwrap_or(1)),
            D::Bytea => SqlType::Bytea,
            D::Date => SqlType::Date,
            D::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                SqlType::Time.rounded(*digits)
            }
            D::Timestamp(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
                SqlType::Timestamp.rounded(*digits)
            }
            D::Timestamp(digits, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => {
                SqlType::TimestampTz.rounded(*digits)
            }
            D::Interval { fields: None, precision: None } => SqlType::Interval,
            D::Interval { .. } => {
                let message = format!("{} is not supported", data_type.to_string().to_lowercase());
                return Err(Error::new(SqlState::NOT_SUPPORTED, message)
                    .with_hint("an interval has all its fields and microseconds: write interval"));
            }
            D::Uuid => SqlType::Uuid,
            D::JSON => SqlType::Json,
            D::JSONB => SqlType::JsonB,
            D::Array(
                ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::AngleBracket(element),
            ) => {
                match SqlType::from_ast(element)? {
                    // PostgreSQL's arrays have one type whatever their dimensions.
                    array @ SqlType::Array(_) => array,
                    element => SqlType::Array(Box::new(element)),
                }
            }
            D::Custom(name, modifiers) => return named(name, modifiers),
            other => return Err(no_type(&other.to_string().to_lowercase())),
        })
    }

    /// The type of a name of `pg_type` or of SQL, without modifiers: `int4`, `timestamp with time zone`.
    pub fn of_name(name: &str) -> Option<SqlType> {
        let name = name.trim().to_lowercase();
        if let Some(element) = name.strip_suffix("[]").or_else(|| name.strip_prefix('_')) {
            return SqlType::of_name(element).map(|element| SqlType::Array(Box::new(element)));
        }
        if let Some((sql_type, ..)) = NUMBERS.iter().find(|(_, internal, ..)| *internal == name) {
            return Some(sql_type.clone());
        }
        Some(match name.as_str() {
            "boolean" => SqlType::Boolean,
            "smallint" => SqlType::SmallInt,
            "integer" | "int" => SqlType::Int,
            "bigint" => SqlType::BigInt,
            "real" => SqlType::Real,
            "double precision" => SqlType::Double,
            "decimal" => SqlType::Numeric(None),
            "character varying" => SqlType::VarChar(None),
            "character" | "char" => SqlType::Char(1),
            "time without time zone" => SqlType::Time,
            "timestamp without time zone" => SqlType::Timestamp,
            "timestamp with time zone" => SqlType::TimestampTz,
            _ => return None,
        })
    }
}

fn digits(info: ExactNumberInfo) -> Result<Option<(u8, u8)>> {
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(None),
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    if !(1..=1000).contains(&precision) {
        return Err(Error::new(
            SqlState::INVALID_PARAMETER,
            format!("NUMERIC precision {precision} must be between 1 and 1000"),
        ));
    }
    // Of more digits, those that fit are kept: a number with others is refused (22003).
    let precision = precision.min(38);
    if scale < 0 || scale as u64 > precision {
        return Err(Error::new(
            SqlState::NOT_SUPPORTED,
            format!("numeric({precision}, {scale}) is not supported"),
        )
        .with_hint("a numeric has at most 38 digits, 0 to all of them after the point"));
    }
    Ok(Some((precision as u8, scale as u8)))
}

fn character_length(length: Option<CharacterLength>) -> Result<Option<u32>> {
    let Some(CharacterLength::IntegerLength { length, .. }) = length else { return Ok(None) };
    match u32::try_from(length) {
        Ok(length @ 1..=10_485_760) => Ok(Some(length)),
        Ok(0) => Err(Error::new(SqlState::INVALID_PARAMETER, "length for type varchar must be at least 1")),
        _ => Err(Error::new(SqlState::INVALID_PARAMETER, "length for type varchar cannot exceed 10485760")),
    }
}

fn named(name: &ast::ObjectName, modifiers: &[String]) -> Result<SqlType> {
    let parts: Vec<String> = name
        .0
        .iter()
        .filter_map(|part| part.as_ident())
        .map(
            |ident| {
                if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
            },
        )
        .collect();
    let last = match parts.as_slice() {
        [only] => only,
        [schema, last] if schema == "pg_catalog" => last,
        _ => return Err(no_type(&parts.join("."))),
    };
    let found = SqlType::of_name(last).ok_or_else(|| no_type(last))?;
    let number = |at: usize| modifiers.get(at).and_then(|text| text.parse::<u64>().ok());
    Ok(match (found, number(0)) {
        (SqlType::VarChar(None), Some(length)) => {
            SqlType::VarChar(character_length(Some(CharacterLength::IntegerLength { length, unit: None }))?)
        }
        (SqlType::Char(_), Some(length)) => SqlType::Char(
            character_length(Some(CharacterLength::IntegerLength { length, unit: None }))?.unwrap_or(1),
        ),
        (SqlType::Numeric(None), Some(precision)) => SqlType::Numeric(digits(
            ExactNumberInfo::PrecisionAndScale(precision, number(1).unwrap_or(0) as i64),
        )?),
        (found, _) => found,
    })
}

/// Types that PostgreSQL has and a user may well ask for.
const ABSENT: &[&str] = &[
    "bit",
    "bit varying",
    "box",
    "cidr",
    "circle",
    "hstore",
    "inet",
    "int4range",
    "int8range",
    "line",
    "lseg",
    "macaddr",
    "money",
    "numrange",
    "path",
    "point",
    "polygon",
    "tsquery",
    "tsrange",
    "tstzrange",
    "tsvector",
    "xml",
    "timetz",
    "time with time zone",
    "varbit",
    "jsonpath",
];

fn no_type(name: &str) -> Error {
    if ABSENT.iter().any(|absent| name == *absent || name.starts_with(&format!("{absent}("))) {
        return Error::new(SqlState::NOT_SUPPORTED, format!("type {name} is not supported"));
    }
    Error::new(SqlState(*b"42704"), format!("type \"{name}\" does not exist"))
}

impl fmt::Display for SqlType {
    /// As PostgreSQL's `format_type` shows it: `character varying(20)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SqlType::Boolean => "boolean",
            SqlType::SmallInt => "smallint",
            SqlType::Int => "integer",
            SqlType::BigInt => "bigint",
            SqlType::Oid => "oid",
            SqlType::Real => "real",
            SqlType::Double => "double precision",
            SqlType::Numeric(None) => "numeric",
            SqlType::Numeric(Some((precision, scale))) => return write!(f, "numeric({precision},{scale})"),
            SqlType::Text => "text",
            SqlType::VarChar(None) => "character varying",
            SqlType::VarChar(Some(length)) => return write!(f, "character varying({length})"),
            SqlType::Char(length) => return write!(f, "character({length})"),
            SqlType::Name => "name",
            SqlType::Bytea => "bytea",
            SqlType::Date => "date",
            SqlType::Time => "time without time zone",
            SqlType::Timestamp => "timestamp without time zone",
            SqlType::TimestampTz => "timestamp with time zone",
            SqlType::Interval => "interval",
            SqlType::Uuid => "uuid",
            SqlType::Inet => "inet",
            SqlType::Cidr => "cidr",
            SqlType::Json => "json",
            SqlType::JsonB => "jsonb",
            SqlType::Enumeration(of) => return f.write_str(&of.shown()),
            SqlType::Rounded(of, digits) => {
                let name = of.to_string();
                let (word, zone) = name.split_once(' ').unwrap_or((&name, ""));
                return write!(f, "{word}({digits}) {zone}");
            }
            SqlType::Array(element) => return write!(f, "{element}[]"),
            SqlType::Void => "void",
            SqlType::Unknown => "unknown",
        })
    }
}
