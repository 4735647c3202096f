//! What is made of a query: what is done for each row, and which rows those are.

use super::binder::Binder;
use super::bound::Bound;
use super::held::unified;
use super::stop::Bind;
use super::tree;
use fabius_program::syntax::tree::{ColumnDefinition, Expression};
use fabius_sql_meaning::output::OutputColumn;
use fabius_value::DataType;

/// What is done for each row of a query.
pub type RowBody<'b, 'a> = dyn FnMut(&mut Binder<'a>, &[OutputColumn], Vec<Bound>) -> Bind<()> + 'b;

/// `LIMIT` and `OFFSET`, and how a loop counts them.
#[derive(Default)]
pub(super) struct Window {
    pub(super) limit: Option<Expression>,
    pub(super) offset: Option<Expression>,
}

/// The columns of a list whose rows are appended in several places.
#[derive(Default)]
pub(super) struct Gathered {
    pub(super) columns: Vec<OutputColumn>,
    pub types: Vec<(DataType, bool)>,
}

impl Gathered {
    /// Appends a row to the list.
    pub(super) fn add(
        &mut self,
        binder: &mut Binder<'_>,
        list: &str,
        columns: &[OutputColumn],
        values: Vec<Bound>,
    ) -> Bind<()> {
        let mut settled = Vec::new();
        for (at, value) in values.into_iter().enumerate() {
            let value = binder.settle(value)?;
            match self.types.get_mut(at) {
                Some((data_type, nullable)) => {
                    *data_type = unified(*data_type, value.data_type);
                    *nullable |= value.nullable;
                }
                None => self.types.push((value.data_type, value.nullable)),
            }
            settled.push(value.expression);
        }
        if self.columns.is_empty() {
            self.columns = columns.to_vec();
        }
        binder.emit(tree::append(list, settled));
        Ok(())
    }

    /// The fields of an element, given what was appended last.
    pub(super) fn elements(&self, element: &str, values: Vec<Bound>) -> Vec<Bound> {
        let values = values.into_iter().zip(&self.types).enumerate();
        let field = |(at, (value, (data_type, nullable))): (usize, (Bound, &(DataType, bool)))| {
            let field = tree::column(tree::loop_row(element), &format!("c{}", at + 1), false);
            let origin = value.origin;
            Bound { origin, ..Bound::held_as(field, value.sql_type, *nullable, *data_type) }
        };
        values.map(field).collect()
    }

    /// The list's fields.
    pub(super) fn fields(&self) -> Vec<ColumnDefinition> {
        let fields = self.types.iter().enumerate();
        fields
            .map(|(at, (data_type, nullable))| tree::field(&format!("c{}", at + 1), *data_type, *nullable))
            .collect()
    }
}
