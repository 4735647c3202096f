//! Constraints: CHECK and REFERENCES, as far as a statement can hurt them.

use super::binder::Binder;
use super::bound::Bound;
use super::held::held;
use super::scope::{Relation, Row};
use super::stop::{Bind, beyond, wrong};
use super::tree;
use crate::lowered::Fate;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Expression, Scan};
use fabius_sql_meaning::catalog::{ForeignKey, ReferentialAction, Table, Until};
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::DataType;
use std::sync::Arc;

impl Binder<'_> {
    /// Checks a new or changed row: `values` of all columns, `changed` those that the statement writes, `words` the
    /// row in an error's detail.
    pub(super) fn check_row(
        &mut self,
        table: &Arc<Table>,
        values: &[Bound],
        changed: &[bool],
        words: Option<&Expression>,
    ) -> Bind<()> {
        self.check_conditions(table, values, changed, words)?;
        self.check_parents(table, values, changed)
    }

    /// As [`Binder::check_row`] for a row that has changed along a reference, which holds then. Others that share its
    /// columns are looked at when the statement has written all rows: what they refer to may change too.
    pub(super) fn check_change(
        &mut self,
        table: &Arc<Table>,
        values: &[Bound],
        changed: &[bool],
        along: Option<&ForeignKey>,
    ) -> Bind<()> {
        let Some(along) = along else { return self.check_row(table, values, changed, None) };
        self.check_conditions(table, values, changed, None)?;
        for key in table.foreign_keys.iter().filter(|key| along.shares_with(key)) {
            self.follow_up(table, key, values)?;
        }
        Ok(())
    }

    /// Checks that what a row refers to is there, by the columns that the statement writes.
    pub(super) fn check_parents(
        &mut self,
        table: &Arc<Table>,
        values: &[Bound],
        changed: &[bool],
    ) -> Bind<()> {
        for key in &table.foreign_keys {
            let columns = places(table, &key.columns)?;
            if columns.iter().any(|column| changed[*column]) {
                let referring: Vec<Bound> = columns.iter().map(|column| values[*column].clone()).collect();
                if key.parent == table.name && !self.own_references.is_empty() {
                    let settled = referring.iter().map(|value| self.settled(value.clone()));
                    let settled = settled.collect::<Bind<Vec<_>>>()?;
                    if self.keeps_own(key, Fate::New, settled) {
                        continue;
                    }
                }
                self.check_parent(table, key, &referring, Some(values))?;
            }
        }
        Ok(())
    }

    /// As [`Binder::check_row`], where it is known that what the row refers to is there.
    pub(super) fn check_conditions(
        &mut self,
        table: &Arc<Table>,
        values: &[Bound],
        changed: &[bool],
        words: Option<&Expression>,
    ) -> Bind<()> {
        for check in &table.checks {
            let condition = self.parsed(&check.condition)?;
            let relation = Relation { row: Row::Values(values.to_vec()), ..Relation::table(table, None) };
            let uses = super::condition::columns_used(&condition, &relation);
            if !uses.iter().any(|column| changed[*column]) {
                continue;
            }
            let inline = std::mem::replace(&mut self.inline, true);
            let bound = self.with_only(vec![relation], |binder| binder.truth(&condition, "CHECK"));
            self.inline = inline;
            let bound = bound?;
            let (nullable, holds) = (bound.nullable, self.settled(bound)?);
            let holds =
                if nullable { tree::call("coalesce", vec![holds, tree::boolean(true)]) } else { holds };
            let (relation, name) = (&table.name.name, &check.name);
            let (message, words) = match &check.domain {
                Some(domain) => {
                    (format!("value for domain {domain} violates check constraint \"{name}\""), None)
                }
                None => {
                    let message =
                        format!("new row for relation \"{relation}\" violates check constraint \"{name}\"");
                    (message, words.cloned())
                }
            };
            self.emit(tree::require(holds, b"23514", message, words));
        }
        Ok(())
    }

    /// The row that is referred to must be there, unless a column is null; `values` are those of a row that is not yet.
    pub(super) fn check_parent(
        &mut self,
        table: &Arc<Table>,
        key: &ForeignKey,
        referring: &[Bound],
        values: Option<&[Bound]>,
    ) -> Bind<()> {
        let Some(parent) = self.catalog.tables.get(&key.parent).cloned() else {
            return Err(wrong(b"42P01", format!("relation \"{}\" does not exist", key.parent.name)).into());
        };
        if referring.iter().any(Bound::is_null) {
            return Ok(());
        }
        self.reads.insert(parent.name.clone());
        let mut settled = Vec::new();
        for value in referring {
            let value = self.settle(value.clone())?;
            settled.push(self.named(value, "ref")?);
        }
        let mut by_column = Vec::new();
        for (name, value) in key.parent_columns.iter().zip(&settled) {
            let at = place(&parent, name)?;
            let to = parent.columns[at].sql_type.of_values();
            let Some(value) = self.key_of(value.clone(), &to)? else {
                return beyond("a reference between types that are not comparable");
            };
            by_column.push((name.clone(), value));
        }
        let mut ways: Vec<Expression> = settled
            .iter()
            .filter(|value| value.nullable)
            .map(|value| tree::is_null(value.expression.clone(), false))
            .collect();
        if let Some(values) = values.filter(|_| parent.name == table.name) {
            // A row may refer to itself.
            let mut same = Vec::new();
            for (name, value) in key.parent_columns.iter().zip(&settled) {
                let own = self.settled(values[place(table, name)?].clone())?;
                same.push(tree::binary(Op::Equal, own, value.expression.clone()));
            }
            ways.push(tree::all(same));
        }
        ways.push(self.row_exists(&parent, &by_column)?);
        let holds = tree::any(ways);
        if self.catalog.waits(table, &key.name).is_some() {
            let values = settled.into_iter().map(|value| value.expression).collect();
            return self.doubt(table, &key.name, Fate::New, (tree::not(holds), values));
        }
        let child = &table.name.name;
        let message =
            format!("insert or update on table \"{child}\" violates foreign key constraint \"{}\"", key.name);
        let detail = key_in_words(&key.columns, &settled).map(|words| {
            let after = format!(") is not present in table \"{}\".", parent.name.name);
            tree::binary(Op::Concatenate, words, tree::text(after))
        });
        self.emit(tree::require(holds, b"23503", message, detail));
        Ok(())
    }

    /// Whether a row with these values in the columns of a key is there.
    pub(super) fn row_exists(
        &mut self,
        table: &Arc<Table>,
        columns: &[(String, Expression)],
    ) -> Bind<Expression> {
        let value =
            |name: &String| columns.iter().find(|(column, _)| column == name).map(|(_, value)| value.clone());
        let primary = Relation::key_columns(table);
        if primary.len() == columns.len()
            && let Some(key) = primary.iter().map(value).collect::<Option<Vec<_>>>()
        {
            return Ok(tree::exists(tree::keyed_row(&table.storage, key)));
        }
        let found = self.name("found");
        let boolean = Some(tree::scalar_type(DataType::Boolean, false));
        self.emit(tree::declare(&found, true, boolean, tree::boolean(false)));
        let mut scan = scan_for(table, columns);
        scan.limit = Some(tree::integer(1));
        let row = self.name("row");
        let block = vec![tree::assign(&found, tree::boolean(true))];
        self.emit(tree::for_each(&row, filtered(scan, &row), block));
        Ok(tree::variable(found))
    }

    /// Tables that refer to this one, with the keys by which they do.
    pub(super) fn referrers(&self, table: &Table) -> Vec<(Arc<Table>, ForeignKey)> {
        let all = self.catalog.tables.values();
        let keys =
            all.flat_map(|child| child.foreign_keys.iter().map(move |key| (child.clone(), key.clone())));
        keys.filter(|(_, key)| key.parent == table.name).collect()
    }

    /// What a row's end means to those that refer to it; `old` are the values of its columns. Before it is deleted.
    pub(super) fn before_delete(&mut self, table: &Arc<Table>, old: &[Bound]) -> Bind<()> {
        for (child, key) in self.referrers(table) {
            let columns = self.referred_columns(table, &child, &key, old)?;
            match (key.on_delete, self.catalog.waits(&child, &key.name)) {
                (action, Some(Until::Statement)) if action.acts() => {
                    self.postpone(&child, &key, Fate::Deleted, &columns)?;
                }
                (ReferentialAction::NoAction, Some(_))
                | (ReferentialAction::Restrict, Some(Until::Statement)) => {
                    self.doubt_referring(&child, &key, &columns)?;
                }
                (ReferentialAction::Restrict, _) => self.refuse(table, &child, &key, &columns)?,
                (ReferentialAction::NoAction, None) => {
                    let values = || columns.iter().map(|(_, value)| value.clone()).collect();
                    let waits = child.name == table.name && self.keeps_own(&key, Fate::Gone, values());
                    if !waits {
                        self.refuse(table, &child, &key, &columns)?;
                    }
                }
                (action, _) => self.follow((table, &child), &key, &columns, (action, None))?,
            }
        }
        Ok(())
    }

    /// The referring columns with the values that mean the row.
    pub(super) fn referred_columns(
        &mut self,
        table: &Arc<Table>,
        child: &Arc<Table>,
        key: &ForeignKey,
        old: &[Bound],
    ) -> Bind<Vec<(String, Expression)>> {
        self.reads.insert(child.name.clone());
        let mut columns = Vec::new();
        for (name, parent) in key.columns.iter().zip(&key.parent_columns) {
            let to = child.columns[place(child, name)?].sql_type.of_values();
            let value = old[place(table, parent)?].clone();
            let value = self.settle(value)?;
            let value = self.named(value, "old")?;
            let Some(value) = self.key_of(value, &to)? else {
                return beyond("a reference between types that are not comparable");
            };
            columns.push((name.clone(), value));
        }
        Ok(columns)
    }

    pub(super) fn refuse(
        &mut self,
        table: &Table,
        child: &Arc<Table>,
        key: &ForeignKey,
        columns: &[(String, Expression)],
    ) -> Bind<()> {
        let referred = self.row_exists(child, columns)?;
        let (parent, of) = (&table.name.name, &child.name.name);
        let message = format!(
            "update or delete on table \"{parent}\" violates foreign key constraint \"{}\" on table \"{of}\"",
            key.name
        );
        let values: Vec<Bound> = columns
            .iter()
            .zip(&key.columns)
            .map(|((_, value), name)| {
                let sql_type = child
                    .columns
                    .iter()
                    .find(|column| column.name == *name)
                    .map(|column| column.sql_type.clone());
                Bound::computed(value.clone(), sql_type.unwrap_or(SqlType::Text), false)
            })
            .collect();
        let detail = key_in_words(&key.parent_columns, &values).map(|words| {
            tree::binary(
                Op::Concatenate,
                words,
                tree::text(format!(") is still referenced from table \"{of}\".")),
            )
        });
        self.emit(tree::require(tree::not(referred), b"23503", message, detail));
        Ok(())
    }

    /// Refuses a change of a key that is referred to.
    pub(super) fn refuse_change(
        &mut self,
        table: &Arc<Table>,
        child: &Arc<Table>,
        key: &ForeignKey,
        old: &[Bound],
    ) -> Bind<()> {
        let columns = self.referred_columns(table, child, key, old)?;
        let waits = self.catalog.waits(child, &key.name);
        match waits
            .is_some_and(|until| key.on_update == ReferentialAction::NoAction || until == Until::Statement)
        {
            true => self.doubt_referring(child, key, &columns),
            false => self.refuse(table, child, key, &columns),
        }
    }
}

/// `'Key (a, b)=(' || a || ', ' || b`; `None` if a value has no text in programs.
fn key_in_words(names: &[String], values: &[Bound]) -> Option<Expression> {
    values_in_words(&format!("Key ({})=(", names.join(", ")), values)
}

/// Values with commas, behind what stands before them; `None` if a value has no text in programs.
pub(super) fn values_in_words(before: &str, values: &[Bound]) -> Option<Expression> {
    let mut words = tree::text(before);
    for (at, value) in values.iter().enumerate() {
        if value.data_type == DataType::Bytea {
            return None;
        }
        if at > 0 {
            words = tree::binary(Op::Concatenate, words, tree::text(", "));
        }
        let shown = tree::cast(value.expression.clone(), DataType::TEXT);
        words = tree::binary(Op::Concatenate, words, shown);
    }
    Some(words)
}

/// `Failing row contains (1, null).`; `None` for values that programs do not show as PostgreSQL does.
pub(super) fn row_in_words(table: &Table, values: &[Bound]) -> Option<Expression> {
    let mut words = tree::text("Failing row contains (");
    let seen = values.iter().zip(&table.columns).filter(|(_, column)| !column.is_hidden);
    for (at, (value, column)) in seen.enumerate() {
        let differs = matches!(
            column.sql_type,
            SqlType::Bytea
                | SqlType::Uuid
                | SqlType::Inet
                | SqlType::Cidr
                | SqlType::Time
                | SqlType::Char(_)
                | SqlType::Enumeration(_)
        );
        if differs {
            return None;
        }
        if at > 0 {
            words = tree::binary(Op::Concatenate, words, tree::text(", "));
        }
        let shown = match (value.is_null(), value.data_type) {
            (true, _) => tree::text("null"),
            (false, DataType::Boolean) => {
                let shown = tree::choice(value.expression.clone(), tree::text("t"), tree::text("f"));
                match value.nullable {
                    true => tree::choice(
                        tree::is_null(value.expression.clone(), false),
                        tree::text("null"),
                        shown,
                    ),
                    false => shown,
                }
            }
            (false, _) => {
                let mut shown = tree::cast(value.expression.clone(), DataType::TEXT);
                if column.sql_type == SqlType::TimestampTz {
                    // Programs do not know the session's time zone.
                    shown = tree::binary(Op::Concatenate, shown, tree::text("+00"));
                }
                match value.nullable {
                    true => tree::call("coalesce", vec![shown, tree::text("null")]),
                    false => shown,
                }
            }
        };
        words = tree::binary(Op::Concatenate, words, shown);
    }
    Some(tree::binary(Op::Concatenate, words, tree::text(").")))
}

/// The rows with these values in these columns, along the index that knows most of them.
pub(super) fn scan_for(table: &Table, columns: &[(String, Expression)]) -> Scan {
    let keys = table.primary_key.iter().map(|key| (None, key));
    let others = table.unique.iter().chain(&table.indexes).map(|key| (Some(key.name.clone()), key));
    let value =
        |name: &String| columns.iter().find(|(column, _)| column == name).map(|(_, value)| value.clone());
    let best = keys
        .chain(others)
        .map(|(index, key)| (index, key.columns.iter().map_while(value).collect::<Vec<_>>(), key))
        .max_by_key(|(index, equal, _)| (equal.len(), index.is_none()));
    let (index, equal, covered) = match best {
        Some((index, equal, key)) if !equal.is_empty() => {
            let covered: Vec<String> = key.columns[..equal.len()].to_vec();
            (index, equal, covered)
        }
        _ => (None, Vec::new(), Vec::new()),
    };
    // What the index does not answer is left to `filtered`, by a variable that stands for the row.
    let rest = columns.iter().filter(|(name, _)| !covered.contains(name)).map(|(name, value)| {
        tree::binary(Op::Equal, tree::column(tree::loop_row(ROW), name, false), value.clone())
    });
    let rest: Vec<Expression> = rest.collect();
    Scan {
        index: index.map(tree::name),
        range: tree::range(equal, None, None),
        filter: (!rest.is_empty()).then(|| tree::all(rest)),
        ..tree::scan(&table.storage)
    }
}

/// Stands for a loop's row until it has a name.
const ROW: &str = "row_";

/// The scan with its row's own name in its filter.
pub(super) fn filtered(mut scan: Scan, row: &str) -> Scan {
    use fabius_program::syntax::tree::ExpressionKind as K;
    fn rename(expression: &mut Expression, to: &str) {
        match &mut expression.kind {
            K::Binary(_, left, right) => {
                rename(left, to);
                rename(right, to);
            }
            K::Column { row, .. } if row.name.text == ROW => row.name.text = to.to_string(),
            _ => {}
        }
    }
    if let Some(filter) = &mut scan.filter {
        rename(filter, row);
    }
    scan
}

pub(super) fn place(table: &Table, name: &str) -> Bind<usize> {
    match table.columns.iter().position(|column| column.name == name) {
        Some(at) => Ok(at),
        None => Err(wrong(b"42703", format!("column \"{name}\" does not exist")).into()),
    }
}

pub(super) fn places(table: &Table, names: &[String]) -> Bind<Vec<usize>> {
    names.iter().map(|name| place(table, name)).collect()
}

/// How the columns are held.
pub(super) fn types(table: &Table) -> Vec<DataType> {
    table
        .columns
        .iter()
        .map(|column| column.sql_type.storage().unwrap_or_else(|| held(&column.sql_type)))
        .collect()
}
