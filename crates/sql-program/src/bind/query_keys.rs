//! Rows that are found by what a query gives: `key IN (SELECT ...)`, `EXISTS (SELECT ... WHERE x = key)`.
//!
//! ```text
//! UPDATE t SET n = 0                        for row in jobs by jobs_state['new'] { append found (row.t_id) }
//! WHERE id IN (SELECT t_id FROM jobs        sort found by f1
//!              WHERE state = 'new')         for each in found { if each differs from the last { append keys (each) } }
//!                                           for key in keys { if exists t[key] { ... } }
//! ```

use super::access::ListParameter;
use super::binder::Binder;
use super::bound::Bound;
use super::held::unified;
use super::stop::{Bind, beyond};
use super::tree;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{Block, SortKey, StatementKind};
use fabius_sql_meaning::analysis;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr};

/// A list of keys that is being gathered.
struct Keys<'k> {
    list: String,
    /// The types of the columns that they are keys of.
    types: &'k [SqlType],
    /// How programs hold them.
    fields: Vec<Option<DataType>>,
}

impl Binder<'_> {
    /// The rows of a query as keys of columns of these types: in order, each once, none with a null. `None` if they
    /// do not serve: the query is about the row that they are to find, or goes over a whole table.
    pub(super) fn query_keys(
        &mut self,
        types: &[SqlType],
        query: &ast::Query,
    ) -> Bind<Option<ListParameter>> {
        let mark = self.mark();
        let gathered = self.gathered_keys(types, query);
        if !matches!(gathered, Ok(Some(_))) {
            // What is wrong is said where the condition is computed, in its turn.
            self.back_to(mark);
            return Ok(None);
        }
        gathered
    }

    fn gathered_keys(&mut self, types: &[SqlType], query: &ast::Query) -> Bind<Option<ListParameter>> {
        let mut keys = Keys { list: self.name("found"), types, fields: vec![None; types.len()] };
        let (block, facts) = self.nested(|binder| {
            binder.for_each_row(query, &mut |binder, _, values| {
                analysis::refuse_other_width(types.len(), values.len())?;
                binder.add_key(&mut keys, values)
            })
        })?;
        if self.lifts && !facts.is_keyed {
            return Ok(None);
        }
        Ok(self.finish_keys(keys, block, facts.is_single))
    }

    /// Rows of values as keys of columns of these types, as [`Binder::query_keys`] has those of a query.
    pub(super) fn listed_keys(
        &mut self,
        types: &[SqlType],
        rows: &[Vec<Expr>],
    ) -> Bind<Option<ListParameter>> {
        let mut keys = Keys { list: self.name("found"), types, fields: vec![None; types.len()] };
        let mark = self.mark();
        let gathered = self.nested(|binder| {
            for row in rows {
                let values = row.iter().map(|value| binder.operand(value)).collect::<Bind<_>>()?;
                binder.add_key(&mut keys, values)?;
            }
            Ok(())
        });
        match gathered {
            Ok((block, ())) => Ok(self.finish_keys(keys, block, false)),
            // What is wrong is said where the condition is computed, in its turn.
            Err(_) => {
                self.back_to(mark);
                Ok(None)
            }
        }
    }

    /// Adds a row of values to a list of keys, unless one of them is null or cannot be in its column.
    fn add_key(&mut self, keys: &mut Keys<'_>, values: Vec<Bound>) -> Bind<()> {
        let (mut row, mut there) = (Vec::new(), Vec::new());
        for ((value, to), field) in values.into_iter().zip(keys.types).zip(&mut keys.fields) {
            let key = match self.compared_with(value, "=", to)? {
                Some(value) => self.key_bound(value, to)?,
                None => None,
            };
            let Some(key) = key else { return beyond("values that are no keys of the column") };
            let wide = field.map_or(key.data_type, |so_far| unified(so_far, key.data_type));
            if wide.family() != key.data_type.family() {
                return beyond("values of several kinds");
            }
            *field = Some(wide);
            if key.nullable {
                there.push(tree::is_null(key.expression.clone(), true));
            }
            let known = if key.nullable { key.or_some_value() } else { key };
            row.push(known.expression);
        }
        let append = tree::append(&keys.list, row);
        self.emit(match there.is_empty() {
            true => append,
            false => tree::when(tree::all(there), vec![append], None),
        });
        Ok(())
    }

    /// The list of keys that a block gathers, each once; `None` if it has none.
    fn finish_keys(&mut self, keys: Keys<'_>, gather: Block, is_single: bool) -> Option<ListParameter> {
        let fields: Vec<DataType> = keys.fields.into_iter().collect::<Option<_>>()?;
        self.emit(tree::declare_list(&keys.list, tree::key_fields(&fields)));
        self.block.extend(gather);
        let name = if is_single { keys.list } else { self.each_key_once(&keys.list, &fields) };
        Some(ListParameter { name, fields })
    }

    /// A list of keys in order, each once.
    pub(super) fn each_key_once(&mut self, list: &str, fields: &[DataType]) -> String {
        let keys = self.name("keys");
        self.emit(tree::declare_list(&keys, tree::key_fields(fields)));
        let sorted_by = |at| SortKey {
            field: Some(tree::name(tree::key_field(at))),
            descending: false,
            nulls_first: false,
        };
        let sort_keys = (0..fields.len()).map(sorted_by).collect();
        self.emit(tree::statement(StatementKind::Sort { list: tree::name(list), keys: sort_keys }));
        let each = self.name("key");
        let field = |at| tree::column(tree::loop_row(&each), &tree::key_field(at), false);
        let (mut differs, mut keep) = (Vec::new(), Vec::new());
        for (at, data_type) in fields.iter().enumerate() {
            let last = self.name("last");
            let ty = tree::scalar_type(*data_type, true);
            self.emit(tree::declare(&last, true, Some(ty), tree::typed_null(*data_type)));
            differs.push(tree::binary(Op::IsDistinct, field(at), tree::variable(&last)));
            keep.push(tree::assign(&last, field(at)));
        }
        keep.push(tree::append(&keys, (0..fields.len()).map(field).collect()));
        self.emit(tree::for_list(&each, list, vec![tree::when(tree::any(differs), keep, None)]));
        keys
    }
}
