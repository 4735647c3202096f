//! The types of a statement's parameters: given by the client, or found while the statement is bound.

use crate::sql_type::SqlType;
use fabius_value::{Error, Result, SqlState};

/// Most parameters of one statement: the wire protocol counts them in 16 bits.
pub const PARAMETERS: usize = 65_535;

/// Types of `$1`, `$2`, ...: [`SqlType::Unknown`] where none is known yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ParameterTypes {
    types: Vec<SqlType>,
    /// Those that may be null; the others are not when the statement runs.
    nulls: std::collections::BTreeSet<usize>,
    /// Whether all may be null.
    has_only_nullable: bool,
    /// Whether the session reads and shows moments otherwise than programs do: in another time zone than UTC, or with
    /// the day before the month.
    pub has_own_clock: bool,
}

impl ParameterTypes {
    /// Begins with the types that the client gives.
    pub fn new(given: &[SqlType]) -> ParameterTypes {
        ParameterTypes { types: given.to_vec(), ..ParameterTypes::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.types.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.types.is_empty()
    }

    /// The type of the parameter at `index` (0 for `$1`); notes that the statement has it.
    ///
    /// # Errors
    /// `54000` for more of them than a statement can have.
    pub fn get(&mut self, index: usize) -> Result<SqlType> {
        if index >= PARAMETERS {
            return Err(Error::new(SqlState::PROGRAM_LIMIT, "too many parameters")
                .with_detail(format!("a statement has at most {PARAMETERS}")));
        }
        if index >= self.types.len() {
            self.types.resize(index + 1, SqlType::Unknown);
        }
        Ok(self.types[index].clone())
    }

    /// Gives the parameter at `index` (0 for `$1`) a type, unless it has one; the type it has then.
    ///
    /// # Errors
    /// As [`ParameterTypes::get`].
    pub fn infer(&mut self, index: usize, sql_type: &SqlType) -> Result<SqlType> {
        if self.get(index)? == SqlType::Unknown {
            self.types[index] = sql_type.clone();
        }
        Ok(self.types[index].clone())
    }

    /// Says that the parameter at `index` (0 for `$1`) may be null. A statement is bound for parameters that are
    /// not, unless told so: a call that passes null needs another binding.
    pub fn allow_null(&mut self, index: usize) {
        self.nulls.insert(index);
    }

    /// The type of the parameter at `index`, as far as it is known.
    pub fn known(&self, index: usize) -> Option<&SqlType> {
        self.types.get(index)
    }

    /// Says that every parameter may be null, for a part of a statement that is bound once for all calls.
    pub fn allow_nulls(&mut self) {
        self.has_only_nullable = true;
    }

    /// The parameters that are no arrays, as far as types are known.
    pub fn scalars(&self) -> impl Iterator<Item = usize> + '_ {
        let is_scalar = |sql_type: &SqlType| !matches!(sql_type, SqlType::Array(_));
        self.types.iter().enumerate().filter(move |(_, it)| is_scalar(it)).map(|(index, _)| index)
    }

    /// Whether the parameter at `index` (0 for `$1`) may be null.
    pub fn may_be_null(&self, index: usize) -> bool {
        self.has_only_nullable || self.nulls.contains(&index)
    }

    /// Takes over the types that a part of the statement has found.
    pub fn learn(&mut self, found: ParameterTypes) {
        self.types = found.types;
    }

    /// The types once the statement is bound. What nothing asked to be of a type is text, as in PostgreSQL.
    pub fn finish(self) -> Vec<SqlType> {
        let known = |sql_type| if sql_type == SqlType::Unknown { SqlType::Text } else { sql_type };
        self.types.into_iter().map(known).collect()
    }
}

/// The index (0 for `$1`) that a placeholder of the syntax tree names.
///
/// # Errors
/// `42P02` for one that is not `$` and a number from 1.
pub fn index_of(placeholder: &str) -> Result<usize> {
    let number = placeholder.strip_prefix('$').and_then(|digits| digits.parse::<usize>().ok());
    number
        .and_then(|number| number.checked_sub(1))
        .ok_or_else(|| Error::new(SqlState(*b"42P02"), format!("there is no parameter {placeholder}")))
}
