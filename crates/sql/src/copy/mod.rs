//! `COPY`: rows in and out, as text, as comma-separated values, in binary.
//!
//! | module | concept |
//! |---|---|
//! | `copying` | a `COPY` that takes rows in |
//! | `lines` | data as it arrives, divided into lines |
//! | `fields` | a line's fields, and fields as a line |
//! | `binary` | the binary format |
//!
//! A copy is one transaction, or a part of the client's own. What is small is kept and written at the end. What is
//! large goes, as it comes, into a table of the storage that nobody else sees: a new one, with the rows that were
//! there; so does everything that is copied into a table that the transaction has made or truncated.

mod binary;
pub(crate) mod copying;
mod fields;
mod lines;

use crate::connection::{Connection, CopyIn, Response};
use crate::ddl::Filling;
use crate::lock::{LockKey, LockMode};
use copying::Copying;
use fabius_sql_meaning::catalog::Relation;
use fabius_sql_meaning::catalog::Table;
use fabius_sql_meaning::output::OutputColumn;
use fabius_sql_meaning::text_format::TextStyle;
use fabius_sql_program::bulk_write::BulkWrite;
use fabius_sql_syntax::copy::{CopyFormat, CopyOptions, CopyStatement, CopySubject};
use fabius_sql_syntax::privilege::Privilege;
use fabius_sql_syntax::written::quoted;
use fabius_value::{Error, Result, SqlState, Value};
use futures::StreamExt;
use lines::Lines;

/// Rows that are written together.
const PART_ROWS: usize = 10_000;
/// Bytes of data that are kept until the end, at most.
const KEPT_BYTES: usize = 8 << 20;

fn columns_of(table: &Table, given: &[String]) -> Result<Vec<String>> {
    if given.is_empty() {
        let stored = table.columns.iter().filter(|column| column.generated.is_none());
        return Ok(stored.map(|column| column.name.clone()).collect());
    }
    for (at, name) in given.iter().enumerate() {
        if table.columns[table.place_of(name)?].generated.is_some() {
            return Err(Error::new(SqlState(*b"42P10"), format!("column \"{name}\" is a generated column"))
                .with_detail("Generated columns cannot be used in COPY."));
        }
        if given[..at].contains(name) {
            return Err(Error::new(
                SqlState(*b"42701"),
                format!("column \"{name}\" specified more than once"),
            ));
        }
    }
    Ok(given.to_vec())
}

impl Connection {
    /// `COPY`
    pub(crate) async fn copy(&mut self, copy: &CopyStatement) -> Result<Response> {
        if copy.is_from { self.copy_from(copy).await } else { self.copy_to(copy).await }
    }

    async fn copy_from(&mut self, copy: &CopyStatement) -> Result<Response> {
        let CopySubject::Table(name, given) = &copy.subject else {
            return Err(Error::new(SqlState::SYNTAX_ERROR, "COPY FROM needs a table"));
        };
        if copy.filter.is_some() {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "COPY FROM ... WHERE is not supported"));
        }
        let is_alone = self.begin_alone();
        let begun = self.begin_copy(name, given, &copy.options, is_alone).await;
        match begun {
            Ok(copying) => {
                let columns = copying.columns.len();
                let is_binary = copy.options.format == CopyFormat::Binary;
                self.set_copying(Some(copying));
                Ok(Response::CopyIn(CopyIn { columns, is_binary }))
            }
            Err(error) => self.end_alone(is_alone, Err(error)).await,
        }
    }

    async fn begin_copy(
        &mut self,
        name: &sqlparser::ast::ObjectName,
        given: &[String],
        options: &CopyOptions,
        is_alone: bool,
    ) -> Result<Copying> {
        if self.transaction.is_read_only() {
            return Err(self.refuse_to_write("COPY FROM"));
        }
        self.refuse_void_locks()?;
        self.refuse_pessimistic()?;
        let catalog = self.catalog();
        let table = catalog.table(name)?.clone();
        catalog.require(&Relation::Table(&table), Privilege::Insert)?;
        self.lock_all(&[LockKey::Relation(table.oid)], LockMode::RowExclusive).await?;
        let catalog = self.catalog();
        self.understand(&catalog);
        let table = (**catalog.table(name)?).clone();
        let columns = columns_of(&table, given)?;
        let insert = BulkWrite::new(self.database().database(), &catalog, &table, &columns)?;
        let is_aside = self.transaction.can_write_aside(&table.storage);
        Ok(Copying {
            table,
            columns,
            options: options.clone(),
            insert,
            catalog,
            lines: Lines::default(),
            rows: Vec::new(),
            count: 0,
            bytes: 0,
            is_aside,
            is_alone,
            has_begun: false,
        })
    }

    /// Takes in a part of what the client copies.
    ///
    /// # Errors
    /// A line that does not fit, with its number. The copy has then failed.
    pub async fn copy_data(&mut self, data: &[u8]) -> Result<()> {
        let Some(mut copying) = self.take_copying() else {
            return Err(Error::new(SqlState(*b"08P01"), "no copy is under way"));
        };
        let taken = self.take_in(&mut copying, data, false).await;
        match taken {
            Ok(()) => {
                self.set_copying(Some(copying));
                Ok(())
            }
            Err(error) => self.give_up_copy(&copying, error).await,
        }
    }

    async fn give_up_copy<T>(&mut self, copying: &Copying, error: Error) -> Result<T> {
        if copying.is_alone {
            self.end_implicit(false).await?;
        } else {
            self.fail();
        }
        Err(error)
    }

    /// Ends the copy: `COPY n`.
    ///
    /// # Errors
    /// As [`Connection::copy_data`]; `failure` is the client's own reason to give it up.
    pub async fn copy_end(&mut self, failure: Option<String>) -> Result<Response> {
        let Some(mut copying) = self.take_copying() else {
            return Err(Error::new(
                SqlState(*b"57014"),
                failure.unwrap_or_else(|| "no copy is under way".into()),
            ));
        };
        if let Some(reason) = failure {
            return self.give_up_copy(&copying, Error::new(SqlState(*b"57014"), reason)).await;
        }
        let mut ended = self.take_in(&mut copying, &[], true).await;
        if ended.is_ok() {
            ended = self.write_kept(&mut copying).await;
        }
        if let Err(error) = ended {
            return self.give_up_copy(&copying, error).await;
        }
        let done = Response::Done { tag: format!("COPY {}", copying.count) };
        self.end_alone(copying.is_alone, Ok(done)).await
    }

    async fn take_in(&mut self, copying: &mut Copying, data: &[u8], is_last: bool) -> Result<()> {
        copying.lines.push(data);
        let style = self.text_style();
        let types = copying.insert.types.clone();
        loop {
            let row = match copying.options.format {
                CopyFormat::Binary => {
                    if !copying.has_begun {
                        if !binary::begin(&mut copying.lines)? {
                            break;
                        }
                        copying.has_begun = true;
                    }
                    binary::row(&mut copying.lines, &types)?
                }
                format => {
                    let quote = (format == CopyFormat::Csv)
                        .then_some((copying.options.quote, copying.options.escape));
                    let Some(line) = copying.lines.next(quote, is_last)? else { break };
                    if std::mem::replace(&mut copying.has_begun, true) || !copying.options.header {
                        let number = copying.lines.number();
                        let row = fields::row(&line, &copying.options, &copying.columns, &types, &style);
                        let row = row.map_err(|error| {
                            let context = format!("COPY {}, line {number}", copying.table.name.name);
                            let context = match error.place().and_then(|place| place.context.as_ref()) {
                                Some(field) => format!("{context}, column {field}"),
                                None => format!("{context}: \"{}\"", String::from_utf8_lossy(&line)),
                            };
                            error.with_context(context)
                        })?;
                        Some(row)
                    } else {
                        fields::check_header(&line, &copying.options, &copying.columns)?;
                        continue;
                    }
                }
            };
            let Some(row) = row else { break };
            copying.rows.push(row);
            copying.count += 1;
            if copying.rows.len() >= PART_ROWS && copying.is_aside {
                self.write_kept(copying).await?;
            }
        }
        copying.bytes += data.len();
        if copying.bytes > KEPT_BYTES && !copying.is_aside {
            self.go_aside(copying).await?;
        }
        Ok(())
    }

    /// Too much to keep: the table's rows, and what is copied, go to a table of the storage of their own.
    async fn go_aside(&mut self, copying: &mut Copying) -> Result<()> {
        if self.transaction.has_run() || self.stands_elsewhere() {
            // The transaction reads at a moment of its own: what it writes is a part of it.
            self.write_kept(copying).await?;
            copying.bytes = 0;
            return Ok(());
        }
        self.lock_all(&[LockKey::Relation(copying.table.oid)], LockMode::AccessExclusive).await?;
        let catalog = self.catalog();
        let before = catalog
            .tables
            .get(&copying.table.name)
            .map_or_else(|| copying.table.clone(), |table| (**table).clone());
        let mut after = before.clone();
        self.rebuild(&before, &mut after, &Filling::default()).await?;
        self.put_table(after.clone());
        copying.catalog = self.catalog();
        copying.insert =
            BulkWrite::new(self.database().database(), &copying.catalog, &after, &copying.columns)?;
        copying.table = after;
        copying.is_aside = true;
        self.write_kept(copying).await
    }

    async fn write_kept(&mut self, copying: &mut Copying) -> Result<()> {
        let rows = std::mem::take(&mut copying.rows);
        self.write_rows(&copying.catalog.clone(), (&copying.insert, &[]), rows, copying.is_aside)
            .await
            .map(drop)
    }

    async fn copy_to(&mut self, copy: &CopyStatement) -> Result<Response> {
        let text = match &copy.subject {
            CopySubject::Query(text) => text.clone(),
            CopySubject::Table(name, given) => {
                let table = self.catalog().table(name)?.clone();
                let columns = columns_of(&table, given)?;
                let names: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
                format!(
                    "SELECT {} FROM {}.{}",
                    names.join(", "),
                    quoted(&table.name.schema),
                    quoted(&table.name.name)
                )
            }
        };
        let prepared = Box::pin(self.prepare(&text, &[])).await?;
        let Response::Rows { columns, rows, .. } = Box::pin(self.execute(&prepared, &[])).await? else {
            return Err(Error::new(SqlState::NOT_SUPPORTED, "COPY query must have a RETURNING clause"));
        };
        let count = columns.len();
        let is_binary = copy.options.format == CopyFormat::Binary;
        let (options, style) = (copy.options.clone(), self.text_style());
        let header = options.header.then(|| fields::header(&columns, &options));
        let data = if is_binary {
            let begin = futures::stream::iter([Ok(binary::HEADER.to_vec())]);
            let end = futures::stream::iter([Ok(binary::TRAILER.to_vec())]);
            let rows = rows.map(move |row| binary::write(&row?, &columns));
            begin.chain(rows).chain(end).boxed()
        } else {
            let shown = move |row: Result<Vec<Value>>| Ok(line(&row?, &columns, &options, &style));
            let header = futures::stream::iter(header.into_iter().map(Ok));
            header.chain(rows.map(shown)).boxed()
        };
        Ok(Response::CopyOut {
            columns: count,
            is_binary,
            has_header: copy.options.header && !is_binary,
            data,
        })
    }
}

fn line(row: &[Value], columns: &[OutputColumn], options: &CopyOptions, style: &TextStyle) -> Vec<u8> {
    fields::write(row, columns, options, style)
}
