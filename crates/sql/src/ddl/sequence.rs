//! `CREATE SEQUENCE`, `ALTER SEQUENCE`.

use crate::connection::Connection;
use fabius_sql_meaning::catalog::store::{Change, Object};
use fabius_sql_meaning::catalog::{ObjectName, Sequence, TEMPORARY, folded};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_syntax::command::{SequenceChange, SequenceOptions};
use fabius_value::{Error, Result, SqlState};
use sqlparser::ast;

fn invalid(message: String) -> Error {
    Error::new(SqlState::INVALID_PARAMETER, message)
}

/// A sequence for numbers of a type.
pub(super) fn sequence_of(oid: u32, name: ObjectName, sql_type: &SqlType) -> Sequence {
    let maximum = match sql_type {
        SqlType::SmallInt => i16::MAX.into(),
        SqlType::Int => i32::MAX.into(),
        _ => i64::MAX,
    };
    Sequence { oid, name, start: 1, increment: 1, minimum: 1, maximum, cycle: false, owner: None }
}

/// Gives a sequence what options say.
///
/// # Errors
/// `22023` for bounds and steps that do not go together.
pub(super) fn adjust(sequence: &mut Sequence, options: &SequenceOptions, is_new: bool) -> Result<()> {
    let sql_type = options.sql_type.as_ref().map(SqlType::from_ast).transpose()?;
    let (least, most) = match &sql_type {
        Some(SqlType::SmallInt) => (i16::MIN.into(), i16::MAX.into()),
        Some(SqlType::Int) => (i32::MIN.into(), i32::MAX.into()),
        None | Some(SqlType::BigInt) if sequence.maximum <= i32::MAX.into() && !is_new => {
            (i32::MIN.into(), i32::MAX.into())
        }
        None | Some(SqlType::BigInt) => (i64::MIN, i64::MAX),
        Some(_) => return Err(invalid("sequence type must be smallint, integer, or bigint".into())),
    };
    if let Some(increment) = options.increment {
        if increment == 0 {
            return Err(invalid("INCREMENT must not be zero".into()));
        }
        sequence.increment = increment;
    }
    let ascends = sequence.increment > 0;
    match options.minimum {
        Some(Some(minimum)) => sequence.minimum = minimum,
        Some(None) => sequence.minimum = if ascends { 1 } else { least },
        None if is_new => sequence.minimum = if ascends { 1 } else { least },
        None => {}
    }
    match options.maximum {
        Some(Some(maximum)) => sequence.maximum = maximum,
        Some(None) => sequence.maximum = if ascends { most } else { -1 },
        None if is_new && options.sql_type.is_some() => sequence.maximum = if ascends { most } else { -1 },
        None if is_new && !ascends => sequence.maximum = -1,
        None => {}
    }
    if sequence.minimum >= sequence.maximum {
        return Err(invalid(format!(
            "MINVALUE ({}) must be less than MAXVALUE ({})",
            sequence.minimum, sequence.maximum
        )));
    }
    match options.start {
        Some(start) => sequence.start = start,
        None if is_new => sequence.start = if ascends { sequence.minimum } else { sequence.maximum },
        None => {}
    }
    if sequence.start < sequence.minimum {
        return Err(invalid(format!(
            "START value ({}) cannot be less than MINVALUE ({})",
            sequence.start, sequence.minimum
        )));
    }
    if sequence.start > sequence.maximum {
        return Err(invalid(format!(
            "START value ({}) cannot be greater than MAXVALUE ({})",
            sequence.start, sequence.maximum
        )));
    }
    if let Some(cycle) = options.cycle {
        sequence.cycle = cycle;
    }
    Ok(())
}

impl Connection {
    pub(super) async fn create_sequence(
        &mut self,
        name: &ast::ObjectName,
        if_not_exists: bool,
        is_temporary: bool,
        options: &SequenceOptions,
    ) -> Result<String> {
        let name = self.name_for_new(name, is_temporary)?;
        if self.claim(&name, if_not_exists).await? {
            let sql_type = options.sql_type.as_ref().map_or(Ok(SqlType::BigInt), SqlType::from_ast)?;
            let mut sequence = sequence_of(self.database().new_oid(), name, &sql_type);
            adjust(&mut sequence, options, true)?;
            self.set_owner(&mut sequence, options)?;
            self.record(Change::from(Object::Sequence(sequence)), is_temporary);
        }
        Ok("CREATE SEQUENCE".into())
    }

    fn set_owner(&mut self, sequence: &mut Sequence, options: &SequenceOptions) -> Result<()> {
        match &options.owner {
            None => {}
            Some(None) => sequence.owner = None,
            Some(Some(owner)) => {
                let mut of = owner.clone();
                let column = of.0.pop().and_then(|part| part.as_ident().map(folded)).unwrap_or_default();
                let table = self.catalog().table(&of)?.clone();
                table.place_of(&column)?;
                sequence.owner = Some((table.name.clone(), column));
            }
        }
        Ok(())
    }

    pub(super) async fn alter_sequence(
        &mut self,
        name: &ast::ObjectName,
        if_exists: bool,
        change: &SequenceChange,
    ) -> Result<String> {
        let catalog = self.catalog();
        if if_exists && catalog.relation(name)?.is_none() {
            self.session.notice(Error::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist, skipping"),
            ));
            return Ok("ALTER SEQUENCE".into());
        }
        let mut sequence = (**catalog.sequence(name)?).clone();
        catalog.require_owner(sequence.oid)?;
        match change {
            SequenceChange::Rename(to) => {
                let before = sequence.name.clone();
                sequence.name = ObjectName { schema: before.schema.clone(), name: to.clone() };
                self.claim(&sequence.name, false).await?;
                for table in catalog.tables.values() {
                    if table.columns.iter().any(|column| column.sequence.as_ref() == Some(&before)) {
                        let mut table = (**table).clone();
                        let columns = table.columns.iter_mut();
                        columns
                            .filter(|column| column.sequence.as_ref() == Some(&before))
                            .for_each(|column| column.sequence = Some(sequence.name.clone()));
                        self.put_table(table);
                    }
                }
            }
            SequenceChange::Options(options) => {
                adjust(&mut sequence, options, false)?;
                self.set_owner(&mut sequence, options)?;
                if let Some(restart) = options.restart {
                    let value = restart.unwrap_or(sequence.start);
                    self.database().set_sequence(&sequence, value, false).await?;
                }
            }
        }
        let is_temporary = sequence.name.schema == TEMPORARY;
        self.record(Change::from(Object::Sequence(sequence)), is_temporary);
        Ok("ALTER SEQUENCE".into())
    }
}
