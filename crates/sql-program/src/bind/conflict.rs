//! ON CONFLICT.

use super::binder::Binder;
use super::bound::Bound;
use super::held::held;
use super::insert::{Target, Touched};
use super::scope::{Relation, Row, Scope};
use super::stop::{Bind, Place, beyond};
use super::tree;
use fabius_program::syntax::tree::Expression;
use fabius_sql_meaning::catalog::{Catalog, Table, folded};
use fabius_sql_meaning::parameter_types::ParameterTypes;
use fabius_sql_syntax::spelling::TARGET;
use fabius_sql_syntax::tokens::Tokens;
use fabius_value::DataType;
use sqlparser::ast;
use sqlparser::tokenizer::Token;
use std::collections::BTreeSet;

/// The field that says whether a row was written.
const IS_WRITTEN: &str = "is_written";

const NO_ARBITER: &str = "there is no unique or exclusion constraint matching the ON CONFLICT specification";

/// What inserts the row, as a block of its own.
type Inserting<'i, 'a> =
    dyn Fn(&mut Binder<'a>, &mut Target<'_, '_, 'a>) -> Bind<(fabius_program::syntax::tree::Block, ())> + 'i;

impl<'a> Binder<'a> {
    /// Inserts a row unless it meets another; then `ON CONFLICT` says what is done.
    pub(super) fn insert_or(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        conflict: &ast::OnConflict,
        new: Vec<Bound>,
        columns: Vec<(String, Expression)>,
    ) -> Bind<()> {
        let table = target.table.clone();
        self.reads.insert(table.name.clone());
        let keys = self.arbiters(&table, conflict)?;
        let insert = |binder: &mut Binder<'a>, target: &mut Target<'_, '_, 'a>| {
            binder.nested(|binder| {
                // What a row refers to has to be there only if the row is.
                binder.check_parents(&table, &new, &vec![true; new.len()])?;
                binder.emit(tree::insert(&table.storage, columns.clone()));
                binder.inserted(target, &new)
            })
        };
        match &conflict.action {
            ast::OnConflictAction::DoNothing => {
                let mut taken = Vec::new();
                for key in &keys {
                    let mut values = Vec::new();
                    for name in key {
                        let at = super::constraint::place(&table, name)?;
                        values.push((name.clone(), new[at].expression.clone()));
                    }
                    taken.push(self.row_exists(&table, &values)?);
                }
                let (block, ()) = insert(self, target)?;
                self.emit(tree::when(tree::not(tree::any(taken)), block, None));
                Ok(())
            }
            ast::OnConflictAction::DoUpdate(update) => {
                let [key] = keys.as_slice() else {
                    let message = "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    return self.fail(b"42601", message, Place::none());
                };
                let primary = Relation::key_columns(&table);
                let by_primary = key.len() == primary.len() && primary.iter().all(|name| key.contains(name));
                if by_primary {
                    let place = self.key_among(&table, &new)?;
                    let row = tree::keyed_row(&table.storage, place.clone());
                    let existing = Binder::keyed(&table, target.alias.clone(), place);
                    let (update, ()) =
                        self.nested(|binder| binder.update_instead(target, existing, (update, key), &new))?;
                    let (mut block, ()) = insert(self, target)?;
                    block.extend(target.touching(&new, true));
                    self.emit(tree::when(tree::exists(row), update, Some(block)));
                    return Ok(());
                }
                self.update_by_unique(target, key, update, &new, &insert)
            }
        }
    }

    /// DO UPDATE by a unique key that is not the primary one: the row's primary key is looked up first.
    fn update_by_unique(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        key: &[String],
        update: &ast::DoUpdate,
        new: &[Bound],
        insert: &Inserting<'_, 'a>,
    ) -> Bind<()> {
        let table = target.table.clone();
        let list = self.name("existing");
        let types = super::scope::key_types(&table);
        let fields = types.iter().enumerate();
        let fields =
            fields.map(|(at, data_type)| tree::field(&format!("k{}", at + 1), *data_type, false)).collect();
        self.emit(tree::declare_list(&list, fields));
        let row = self.name("row");
        let index = table.unique.iter().find(|unique| {
            unique.columns.len() == key.len() && unique.columns.iter().all(|name| key.contains(name))
        });
        let Some(index) = index.cloned() else { return beyond("a unique key that is not there") };
        let mut equal = Vec::new();
        for name in &index.columns {
            equal.push(new[super::constraint::place(&table, name)?].expression.clone());
        }
        let mut scan = tree::scan(&table.storage);
        scan.index = Some(tree::name(&index.name));
        scan.range = tree::range(equal, None, None);
        let names = Relation::key_columns(&table);
        let found = names.iter().map(|name| tree::column(tree::loop_row(&row), name, false)).collect();
        self.emit(tree::for_each(&row, scan, vec![tree::append(&list, found)]));
        self.second_pass(&list, |binder, each| {
            let field = |at: usize| tree::column(tree::loop_row(each), &format!("k{}", at + 1), false);
            let place = (0..types.len()).map(field).collect();
            let existing = Binder::keyed(&table, target.alias.clone(), place);
            binder.update_instead(target, existing, (update, key), new)
        })?;
        let (mut block, ()) = insert(self, target)?;
        block.extend(target.touching(new, true));
        let none = tree::binary(
            fabius_program::ir::BinaryOperator::Equal,
            tree::call("count", vec![tree::variable(&list)]),
            tree::integer(0),
        );
        self.emit(tree::when(none, block, None));
        Ok(())
    }

    fn update_instead(
        &mut self,
        target: &mut Target<'_, '_, 'a>,
        existing: Relation,
        (update, arbiter): (&ast::DoUpdate, &[String]),
        new: &[Bound],
    ) -> Bind<()> {
        let table = target.table.clone();
        let excluded = Relation {
            name: "excluded".into(),
            row: Row::Values(new.to_vec()),
            ..Relation::table(&table, None)
        };
        let mut targets = Vec::new();
        for assignment in &update.assignments {
            self.assignment(&table, assignment, &mut targets)?;
        }
        targets.retain(|(column, value, _)| !is_own_key(arbiter, &table.columns[*column].name, value));
        let key = Relation::key_columns(&table);
        if targets.iter().any(|(column, ..)| key.contains(&table.columns[*column].name)) {
            return beyond("ON CONFLICT DO UPDATE of the primary key");
        }
        let relations = [existing.clone(), excluded].into_iter().chain(target.found.clone());
        self.with_scope(relations.collect(), |binder| {
            // Rows before this one, if there are several, may have been written.
            let is_behind = target.touched.is_some();
            let condition = binder.behind_write_if(is_behind, |binder| {
                update.selection.as_ref().map(|selection| binder.condition(selection, "WHERE")).transpose()
            })?;
            let (block, ()) = binder.nested(|binder| {
                let assignments =
                    binder.behind_write_if(is_behind, |binder| binder.assigned_values(&table, &targets))?;
                if !assignments.is_empty() {
                    binder.change_row(&table, &existing, assignments, None)?;
                }
                binder.block.extend(target.touching(new, true));
                let existing = binder.scope().relations.drain(..1).collect();
                *binder.scope() = Scope::of(existing);
                binder.afterwards(&mut target.after)
            })?;
            match condition {
                Some(condition) => {
                    let passed_over = target.touching(new, false).map(|noted| vec![noted]);
                    binder.emit(tree::when(condition, block, passed_over));
                }
                None => binder.block.extend(block),
            }
            Ok(())
        })
    }

    /// The keys whose conflicts an ON CONFLICT means.
    fn arbiters(&mut self, table: &Table, conflict: &ast::OnConflict) -> Bind<Vec<Vec<String>>> {
        let keys = || table.primary_key.iter().chain(&table.unique);
        let late =
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
        match &conflict.conflict_target {
            None if table.late_keys().next().is_some() => self.fail(b"55000", late, Place::none()),
            None => Ok(keys().map(|key| key.columns.clone()).collect()),
            Some(ast::ConflictTarget::Columns(names)) => {
                if let [name] = names.as_slice()
                    && let Some(written) = name.value.strip_prefix(TARGET)
                {
                    return match written_arbiter(table, written)? {
                        Some(key) => Ok(vec![key]),
                        None => self.fail(b"42P10", NO_ARBITER, Place::none()),
                    };
                }
                let mut columns = Vec::new();
                for name in names {
                    let at = self.target_ident(table, name)?;
                    columns.push(table.columns[at].name.clone());
                }
                let same = |key: &Vec<String>| {
                    key.iter().all(|name| columns.contains(name))
                        && columns.iter().all(|name| key.contains(name))
                };
                match keys().map(|key| key.columns.clone()).find(same) {
                    Some(key) => Ok(vec![key]),
                    None if table.late_keys().any(|key| same(&key.columns)) => {
                        self.fail(b"55000", late, Place::none())
                    }
                    None => self.fail(b"42P10", NO_ARBITER, Place::none()),
                }
            }
            Some(ast::ConflictTarget::OnConstraint(name)) => {
                let wanted = super::binder::path(name)?.pop().unwrap_or_default();
                match keys().find(|key| key.name == wanted) {
                    Some(key) => Ok(vec![key.columns.clone()]),
                    None if table.late_keys().any(|key| key.name == wanted) => {
                        self.fail(b"55000", late, Place::of(name))
                    }
                    None => {
                        let of = &table.name.name;
                        let message = format!("constraint \"{wanted}\" for table \"{of}\" does not exist");
                        self.fail(b"42704", message, Place::of(name))
                    }
                }
            }
        }
    }
}

/// Whether a column of the arbiter is given the proposed row's value, which is its own: `SET id = excluded.id`.
#[must_use]
pub fn is_own_key(arbiter: &[String], column: &str, value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::CompoundIdentifier(path)
        if matches!(path.as_slice(), [relation, name] if folded(relation) == "excluded" && folded(name) == column))
        && arbiter.iter().any(|name| name == column)
}

/// The columns of the key whose conflicts `ON CONFLICT DO UPDATE` means, if there is one.
#[must_use]
pub fn arbiter(catalog: &Catalog, table: &Table, conflict: &ast::OnConflict) -> Option<Vec<String>> {
    let mut types = ParameterTypes::default();
    let mut keys = Binder::new(catalog, "", &mut types).arbiters(table, conflict).ok()?;
    keys.pop().filter(|_| keys.is_empty())
}

/// The key that a target of `ON CONFLICT` with expressions or a condition means: the columns of the first that has the
/// same keys, and the same rows if not all.
fn written_arbiter(table: &Table, target: &str) -> Bind<Option<Vec<String>>> {
    let normal = |text: &str| -> Result<String, fabius_value::Error> {
        let mut expression = Tokens::of(text)?.read(|parser| parser.parse_expr())?;
        while let ast::Expr::Nested(inner) = expression {
            expression = *inner;
        }
        Ok(expression.to_string().to_lowercase())
    };
    let mut tokens = Tokens::of(target)?;
    let keys = tokens.take(|parser| {
        parser.expect_token(&Token::LParen)?;
        let keys = parser.parse_comma_separated(|parser| parser.parse_expr())?;
        parser.expect_token(&Token::RParen)?;
        Ok(keys.iter().map(ToString::to_string).collect::<Vec<_>>())
    })?;
    let keys = keys.iter().map(|key| normal(key)).collect::<Result<BTreeSet<_>, _>>()?;
    let predicate = match tokens.accept(&["WHERE"]) {
        true => Some(normal(tokens.rest())?),
        false => None,
    };
    for key in table.primary_key.iter().chain(&table.unique) {
        let own = key.keys().map(normal).collect::<Result<BTreeSet<_>, _>>()?;
        let of = key.written.as_ref().and_then(|written| written.predicate.as_deref());
        let of = of.map(normal).transpose()?;
        if own == keys && (of.is_none() || of == predicate) {
            return Ok(Some(key.columns.clone()));
        }
    }
    Ok(None)
}

impl Target<'_, '_, '_> {
    /// Notes that a row is written, or passed over because the condition of `DO UPDATE` does not hold.
    fn touching(&self, new: &[Bound], is_written: bool) -> Option<fabius_program::syntax::tree::Statement> {
        let touched = self.touched.as_ref()?;
        let key = touched.columns.iter().map(|at| new[*at].expression.clone());
        Some(tree::append(&touched.list, key.chain([tree::boolean(is_written)]).collect()))
    }
}

impl Binder<'_> {
    /// Declares the list of rows that `ON CONFLICT DO UPDATE` has come by.
    pub(super) fn touched_rows(
        &mut self,
        table: &Table,
        conflict: &ast::OnConflict,
    ) -> Bind<Option<Touched>> {
        if !matches!(conflict.action, ast::OnConflictAction::DoUpdate(_)) {
            return Ok(None);
        }
        let keys = self.arbiters(table, conflict)?;
        let [key] = keys.as_slice() else { return Ok(None) };
        let list = self.name("touched");
        let (mut columns, mut fields) = (Vec::new(), Vec::new());
        for (at, name) in key.iter().enumerate() {
            let place = super::constraint::place(table, name)?;
            let data_type = held(&table.columns[place].sql_type);
            fields.push(tree::field(&format!("k{}", at + 1), data_type, true));
            columns.push(place);
        }
        fields.push(tree::field(IS_WRITTEN, DataType::Boolean, false));
        self.emit(tree::declare_list(&list, fields));
        Ok(Some(Touched { list, columns }))
    }

    /// Refuses a statement that comes by a row that it has written before.
    pub(super) fn refuse_twice(&mut self, touched: &Touched) {
        use fabius_program::ir::BinaryOperator as Op;
        use fabius_program::syntax::tree::{Failure, Message, SortKey, StatementKind};
        let field = |at: usize| format!("k{}", at + 1);
        let keys = (0..touched.columns.len()).map(|at| SortKey {
            field: Some(tree::name(field(at))),
            descending: false,
            nulls_first: false,
        });
        let sort = StatementKind::Sort { list: tree::name(&touched.list), keys: keys.collect() };
        self.emit(tree::statement(sort));
        let (at, each) = (self.name("at"), self.name("row"));
        let bigint = || Some(tree::scalar_type(DataType::BigInt, false));
        self.emit(tree::declare(&at, true, bigint(), tree::cast(tree::integer(0), DataType::BigInt)));
        // Equal keys are next to each other, in the order in which they were noted; a key that is null is none.
        let before = |name: &str| {
            let row = tree::keyed_row(&touched.list, vec![tree::variable(&at)]);
            tree::column(row, name, false)
        };
        let same = (0..touched.columns.len()).map(|column| {
            let name = field(column);
            tree::binary(Op::Equal, tree::column(tree::loop_row(&each), &name, false), before(&name))
        });
        let is_second = tree::all(same.chain([before(IS_WRITTEN)]));
        let is_new = tree::not(tree::call("coalesce", vec![is_second, tree::boolean(false)]));
        let failure = Failure {
            message: Message::Fixed("ON CONFLICT DO UPDATE command cannot affect row a second time".into()),
            state: Some(fabius_value::SqlState(*b"21000")),
            detail: Some(tree::typed_null(DataType::TEXT)),
            hint: Some(tree::text(
                "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
            )),
        };
        let require = tree::statement(StatementKind::Require { condition: is_new, failure });
        let next = tree::add(&at, tree::cast(tree::integer(1), DataType::BigInt));
        self.emit(tree::for_list(&each, &touched.list, vec![require, next]));
    }
}
