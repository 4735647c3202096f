//! How a table's rows are reached: by key, along an index, or all of them.

use super::binder::Binder;
use super::bound::{Bound, Known};
use super::condition::{Comparison, Condition, Members, Membership, Says, has_subquery};
use super::constant::Step;
use super::held::{held, unified};
use super::scope::Relation;
use super::stop::Bind;
use super::tree;
use crate::lowered::Argument;
use fabius_program::ir::BinaryOperator as Op;
use fabius_program::syntax::tree::{self as program, Expression, ExpressionKind};
use fabius_sql_meaning::analysis::row_of;
use fabius_sql_meaning::catalog::Table;
use fabius_sql_meaning::parameter_types;
use fabius_sql_meaning::sql_type::SqlType;
use fabius_sql_meaning::type_rules;
use fabius_sql_meaning::type_rules::{Category, category};
use fabius_value::DataType;
use fabius_value::data_type::Family;
use sqlparser::ast::BinaryOperator as B;

/// A way to a table's rows.
#[derive(Clone, Debug)]
pub(super) struct Access {
    /// The index it goes along; `None` is the primary key.
    pub(super) index: Option<String>,
    /// The index's columns, as places in the table; the hidden row number has none.
    pub(super) columns: Vec<usize>,
    /// What leading columns equal.
    pub(super) equal: Vec<Part>,
    /// Bounds on the next column.
    pub(super) lower: Option<Comparison>,
    pub(super) upper: Option<Comparison>,
    /// The index's columns and then the primary key's: the order that its rows come in.
    pub(super) order: Vec<usize>,
    /// The list that some of the columns are taken from.
    pub(super) list: Option<Membership>,
    /// Whether it finds at most one row for each element of its list.
    pub(super) is_unique: bool,
    /// The better one is taken.
    pub(super) score: u32,
}

/// What a key column equals.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "there are few, and they live briefly")]
pub(super) enum Part {
    /// The other side of a comparison.
    Value(Comparison),
    /// A field of the current element of the list.
    Field(usize),
}

impl Access {
    /// Whether a row is found by its whole primary key.
    pub(super) fn is_point(&self) -> bool {
        self.index.is_none() && self.is_unique
    }

    /// The conditions that it takes values of subqueries from.
    pub(super) fn asks(&self) -> Vec<usize> {
        let list = self.list.iter().filter(|list| matches!(list.values, Members::Query(_)));
        let equal = self.equal.iter().filter_map(|part| match part {
            Part::Value(comparison) => Some(comparison),
            Part::Field(_) => None,
        });
        let compared = equal.chain(&self.lower).chain(&self.upper);
        let compared = compared.filter(|comparison| has_subquery(&comparison.value));
        list.map(|list| list.condition).chain(compared.map(|comparison| comparison.condition)).collect()
    }

    /// Whether it goes over the whole table.
    pub(super) fn is_scan(&self) -> bool {
        self.equal.is_empty() && self.lower.is_none() && self.upper.is_none()
    }
}

/// The ways to a table that its keys and indexes give, best first; the last goes over all of it.
pub(super) fn ways(table: &Table, says: &Says) -> Vec<Access> {
    let place = |name: &String| table.columns.iter().position(|column| column.name == *name);
    let mut ways = Vec::new();
    let mut keys: Vec<(Option<String>, &[String], bool)> = Vec::new();
    if let Some(key) = &table.primary_key {
        keys.push((None, &key.columns, true));
    }
    keys.extend(table.unique.iter().map(|key| (Some(key.name.clone()), key.columns.as_slice(), true)));
    keys.extend(table.indexes.iter().map(|key| (Some(key.name.clone()), key.columns.as_slice(), false)));
    for (index, names, unique) in keys {
        let columns: Option<Vec<usize>> = names.iter().map(place).collect();
        let Some(columns) = columns else { continue };
        let primary: Vec<usize> =
            table.primary_key.iter().flat_map(|key| &key.columns).filter_map(place).collect();
        let mut order = columns.clone();
        order.extend(primary.into_iter().filter(|column| !columns.contains(column)));
        ways.push(way(index.clone(), columns.clone(), order.clone(), unique, says, None));
        for list in &says.memberships {
            if list.columns.iter().all(|column| columns.contains(column)) {
                let way = way(index.clone(), columns.clone(), order.clone(), unique, says, Some(list));
                let uses = way.equal.iter().filter(|part| matches!(part, Part::Field(_))).count();
                if uses == list.columns.len() {
                    ways.push(way);
                }
            }
        }
    }
    ways.push(Access {
        index: None,
        columns: Vec::new(),
        order: Vec::new(),
        equal: Vec::new(),
        lower: None,
        upper: None,
        list: None,
        is_unique: false,
        score: 0,
    });
    ways.sort_by_key(|way| std::cmp::Reverse(way.score));
    ways
}

fn way(
    index: Option<String>,
    columns: Vec<usize>,
    order: Vec<usize>,
    unique: bool,
    says: &Says,
    list: Option<&Membership>,
) -> Access {
    let mut equal = Vec::new();
    for column in &columns {
        let field = list.and_then(|list| list.columns.iter().position(|listed| listed == column));
        let comparison = says
            .comparisons
            .iter()
            .find(|comparison| comparison.column == *column && comparison.operator == B::Eq);
        match (field, comparison) {
            (Some(field), _) => equal.push(Part::Field(field)),
            (None, Some(comparison)) => equal.push(Part::Value(comparison.clone())),
            _ => break,
        }
    }
    let (mut lower, mut upper) = (None, None);
    if let Some(next) = columns.get(equal.len()) {
        for comparison in says.comparisons.iter().filter(|comparison| comparison.column == *next) {
            match comparison.operator {
                B::Gt | B::GtEq if lower.is_none() => lower = Some(comparison.clone()),
                B::Lt | B::LtEq if upper.is_none() => upper = Some(comparison.clone()),
                _ => {}
            }
        }
    }
    let is_unique = unique && equal.len() == columns.len();
    let found = equal.len() as u32;
    let ranged = u32::from(lower.is_some()) + u32::from(upper.is_some());
    let score = match (is_unique, &index) {
        (true, None) => 1000,
        (true, Some(_)) => 900,
        _ => found * 100 + ranged * 20 + if found + ranged > 0 && index.is_none() { 1 } else { 0 },
    };
    let score = score.saturating_sub(u32::from(list.is_some()) * 50).max(u32::from(found + ranged > 0));
    Access { index, columns, order, equal, lower, upper, list: list.cloned(), is_unique, score }
}

/// The list of a way, as the program has it: its name and its fields' types.
pub(super) struct ListParameter {
    pub(super) name: String,
    pub(super) fields: Vec<DataType>,
}

/// A way with its values: what a loop or lookup is made of.
pub(super) struct Reached {
    /// The list to go over first, and what its element is called.
    pub(super) list: Option<(String, String)>,
    /// Values of the leading columns.
    pub(super) equal: Vec<Expression>,
    pub(super) lower: Option<program::Bound>,
    pub(super) upper: Option<program::Bound>,
    /// Conditions that hold of every row that is found.
    pub(super) met: Vec<usize>,
}

impl Binder<'_> {
    /// The values of a way; `None` if they do not serve as keys of their columns.
    pub(super) fn reach(
        &mut self,
        table: &Table,
        access: &Access,
        conditions: &[Condition],
    ) -> Bind<Option<Reached>> {
        let mut reached =
            Reached { list: None, equal: Vec::new(), lower: None, upper: None, met: Vec::new() };
        let fields = match &access.list {
            Some(list) => {
                let Some(parameter) = self.list_parameter(table, list)? else { return Ok(None) };
                let element = self.name("key");
                reached.list = Some((parameter.name, element.clone()));
                reached.met.push(list.condition);
                Some((element, parameter.fields))
            }
            None => None,
        };
        let mut answered: Vec<usize> = Vec::new();
        for (part, &column) in access.equal.iter().zip(&access.columns) {
            let to = &table.columns[column].sql_type;
            let value = match part {
                Part::Field(at) => match &fields {
                    Some((element, types)) => {
                        let value = tree::column(tree::loop_row(element), &tree::key_field(*at), false);
                        let data_type = types.get(*at).copied().unwrap_or(DataType::TEXT);
                        key_value(&Bound::held_as(value, to.clone(), false, data_type), to)
                    }
                    None => None,
                },
                Part::Value(comparison) => {
                    let value = self.compared(comparison, to)?;
                    answered.push(comparison.condition);
                    match value {
                        Some(value) => self.key_of(value, to)?,
                        None => None,
                    }
                }
            };
            let Some(value) = value else { return Ok(None) };
            reached.equal.push(value);
        }
        let next = access.columns.get(access.equal.len());
        let to = next.map(|column| table.columns[*column].sql_type.of_values());
        let nullable = next.is_some_and(|column| table.columns[*column].nullable);
        for (comparison, is_lower) in [(&access.lower, true), (&access.upper, false)] {
            let (Some(comparison), Some(to)) = (comparison, &to) else { continue };
            let Some(value) = self.compared(comparison, to)? else { continue };
            let Some(value) = self.bound_of(value, to)? else { continue };
            let inclusive = matches!(comparison.operator, B::GtEq | B::LtEq);
            let bound = Some(program::Bound { value, inclusive });
            // Nulls come last: only an upper bound keeps them out.
            if !nullable || !is_lower || access.upper.is_some() {
                answered.push(comparison.condition);
            }
            if is_lower {
                reached.lower = bound;
            } else {
                reached.upper = bound;
            }
        }
        if nullable && reached.upper.is_none() {
            let lower = access.lower.as_ref().map(|lower| lower.condition);
            answered.retain(|condition| Some(*condition) != lower);
        }
        for (number, condition) in conditions.iter().enumerate() {
            let parts = parts_of(&condition.expression);
            if answered.iter().filter(|answered| **answered == number).count() >= parts {
                reached.met.push(number);
            }
        }
        Ok(Some(reached))
    }

    /// The other side of a comparison, if the column can be compared with it as it is.
    fn compared(&mut self, comparison: &Comparison, column: &SqlType) -> Bind<Option<Bound>> {
        if !has_subquery(&comparison.value) {
            let value = self.operand(&comparison.value)?;
            return self.compared_with(value, &comparison.operator.to_string(), column);
        }
        let mark = self.mark();
        let value = self.operand(&comparison.value);
        match value.and_then(|value| self.compared_with(value, &comparison.operator.to_string(), column)) {
            Ok(value) => Ok(value),
            // What is wrong is said where the condition is computed, in its turn.
            Err(_) => {
                self.back_to(mark);
                Ok(None)
            }
        }
    }

    /// A value that a column of a type is compared with, if the column can be compared with it as it is.
    pub(super) fn compared_with(
        &mut self,
        value: Bound,
        operator: &str,
        column: &SqlType,
    ) -> Bind<Option<Bound>> {
        let place = value.place;
        if matches!((column, &value.sql_type), (SqlType::VarChar(_), SqlType::Char(_))) {
            // Blanks at the column's end do not count, and the index has them.
            return Ok(None);
        }
        let probe = Bound::computed(tree::null(), column.clone(), false);
        let (probe, value) = self.comparable(probe, operator, value, place)?;
        Ok((held(&probe.sql_type) == held(column)).then_some(value))
    }

    /// A value as that of a key column; where it cannot be there, null, which finds nothing.
    pub(super) fn key_of(&mut self, value: Bound, column: &SqlType) -> Bind<Option<Expression>> {
        Ok(self.key_bound(value, column)?.map(|key| key.expression))
    }

    /// As [`Binder::key_of`], with its type.
    pub(super) fn key_bound(&mut self, value: Bound, column: &SqlType) -> Bind<Option<Bound>> {
        let storage = column.storage().unwrap_or(DataType::TEXT);
        if let Known::Constant(constant) = &value.known {
            let exact = constant.then(Step::Exactly(storage))?.filter(|exact| !exact.is_null());
            return Ok(Some(match exact {
                None => Bound::held_as(tree::typed_null(storage), column.clone(), true, storage),
                Some(exact) => {
                    Bound::held_as(self.constant(exact, held(column)), column.clone(), false, held(column))
                }
            }));
        }
        let value = self.settle(value)?;
        let serves = key_value(&value, column).is_some();
        if !serves {
            return Ok(None);
        }
        let value = self.named_key(value)?;
        let Some(key) = key_value(&value, column) else { return Ok(None) };
        if !matches!(key.kind, ExpressionKind::If { .. }) {
            let data_type = if key == value.expression { value.data_type } else { storage };
            return Ok(Some(Bound::held_as(key, column.clone(), value.nullable, data_type)));
        }
        // A guarded key is written once.
        let name = self.name("key");
        self.emit(tree::declare(&name, false, Some(tree::scalar_type(storage, true)), key));
        Ok(Some(Bound::held_as(tree::variable(name), column.clone(), true, storage)))
    }

    /// Keys are written for every column that is read: what is long gets a name.
    fn named_key(&mut self, value: Bound) -> Bind<Bound> {
        if let ExpressionKind::Column { row, .. } = &value.expression.kind
            && row.key.is_none()
        {
            return Ok(value);
        }
        self.named(value, "key")
    }

    /// A value as a bound on a column, if it has its type exactly.
    fn bound_of(&mut self, value: Bound, column: &SqlType) -> Bind<Option<Expression>> {
        let storage = column.storage().unwrap_or(DataType::TEXT);
        if let Known::Constant(constant) = &value.known {
            return Ok(match constant.then(Step::Exactly(storage))? {
                Some(exact) if !exact.is_null() => Some(self.constant(exact, held(column))),
                _ => None,
            });
        }
        let value = self.settle(value)?;
        let serves = value.data_type == storage
            || storage == DataType::Double
            || storage == DataType::Timestamp && value.data_type == DataType::Date
            || value.data_type.family() == Family::Integer
                && storage.family() == Family::Integer
                && width(value.data_type) <= width(storage);
        if !serves {
            return Ok(None);
        }
        Ok(Some(self.named_key(value)?.expression))
    }

    /// The values of an `IN` as a list, most often a parameter.
    fn list_parameter(&mut self, table: &Table, list: &Membership) -> Bind<Option<ListParameter>> {
        let types: Vec<SqlType> =
            list.columns.iter().map(|column| table.columns[*column].sql_type.of_values()).collect();
        let rows = match &list.values {
            Members::Rows(rows) if !self.lifts => return self.listed_keys(&types, rows),
            Members::Rows(rows) => rows,
            Members::Array(array) if !self.lifts => {
                let list = self.list(array)?;
                if category(&list.element) != category(&types[0]) || held(&list.element) != held(&types[0]) {
                    return Ok(None);
                }
                let (name, data_type) = self.as_keys(&list);
                return Ok(Some(ListParameter { name, fields: vec![data_type] }));
            }
            Members::Query(query) => return self.query_keys(&types, query),
            Members::Array(array) => {
                let bound = self.operand(array)?;
                let element = type_rules::without_modifiers(&types[0]);
                let bound = match &bound.known {
                    Known::Parameter(_) => self.resolve(bound, &SqlType::Array(Box::new(element)))?,
                    _ => bound,
                };
                let (SqlType::Array(found), Some(index)) = (&bound.sql_type, self.parameter_of(array)) else {
                    return Ok(None);
                };
                if category(found) != category(&types[0]) {
                    return Ok(None);
                }
                let data_type = held(found);
                let ty = tree::records(tree::key_fields(&[data_type]));
                let name = self.add_list(ty, Argument::Elements(index));
                return Ok(Some(ListParameter { name, fields: vec![data_type] }));
            }
        };
        let mut fields: Vec<Option<DataType>> = vec![None; types.len()];
        let mut arguments = Vec::new();
        'rows: for row in rows {
            let mut values = Vec::new();
            for ((value, to), field) in row.iter().zip(&types).zip(&mut fields) {
                let bound = self.operand(value)?;
                let place = bound.place;
                let index = match &bound.known {
                    Known::Parameter(index) => Some(*index),
                    _ => self.parameter_of(value),
                };
                let (argument, data_type) = if let Known::Parameter(index) = bound.known {
                    let found = self.types.infer(index, &type_rules::without_modifiers(to))?;
                    (Argument::Parameter(index), held(&found))
                } else {
                    let probe = Bound::computed(tree::null(), to.clone(), false);
                    let (_, bound) = self.comparable(probe, "=", bound, place)?;
                    match (&bound.known, index) {
                        (Known::Constant(constant), _) => {
                            let storage = to.storage().unwrap_or(DataType::TEXT);
                            match constant.then(Step::Exactly(storage))? {
                                Some(exact) if !exact.is_null() => (self.literals.argument(exact), held(to)),
                                _ => continue 'rows,
                            }
                        }
                        (_, Some(index)) => (Argument::Parameter(index), bound.data_type),
                        _ => return Ok(None),
                    }
                };
                let wide = field.map_or(data_type, |so_far| unified(so_far, data_type));
                if wide.family() != data_type.family() {
                    return Ok(None);
                }
                *field = Some(wide);
                values.push(argument);
            }
            arguments.push(values);
        }
        let fields: Vec<DataType> =
            fields.into_iter().zip(&types).map(|(field, to)| field.unwrap_or_else(|| held(to))).collect();
        let name = self.add_list(tree::records(tree::key_fields(&fields)), Argument::Set(arguments));
        Ok(Some(ListParameter { name, fields }))
    }

    fn parameter_of(&self, expression: &sqlparser::ast::Expr) -> Option<usize> {
        use sqlparser::ast::Expr;
        match expression {
            Expr::Nested(inner) | Expr::Cast { expr: inner, .. } => self.parameter_of(inner),
            Expr::Value(value) => match &value.value {
                sqlparser::ast::Value::Placeholder(name) => parameter_types::index_of(name).ok(),
                _ => None,
            },
            _ => None,
        }
    }

    /// A loop over what is reached, with a filter.
    pub(super) fn loop_over(
        &self,
        relation: &Relation,
        access: &Access,
        reached: Reached,
        filter: Option<Expression>,
    ) -> program::Scan {
        let storage = relation.table.as_ref().map_or("", |table| table.storage.as_str());
        program::Scan {
            index: access.index.as_ref().map(tree::name),
            range: tree::range(reached.equal, reached.lower, reached.upper),
            filter,
            ..tree::scan(storage)
        }
    }
}

/// How many comparisons answer a condition.
fn parts_of(expression: &sqlparser::ast::Expr) -> usize {
    use sqlparser::ast::Expr;
    match expression {
        Expr::Between { .. } => 2,
        Expr::Nested(inner) => parts_of(inner),
        Expr::BinaryOp { left, op: B::Eq, .. } => row_of(left).map_or(1, <[Expr]>::len),
        _ => 1,
    }
}

fn width(data_type: DataType) -> u8 {
    match data_type {
        DataType::SmallInt => 2,
        DataType::Int => 4,
        _ => 8,
    }
}

/// A computed value as that of a key column: guarded where it may not be in the column's range.
fn key_value(value: &Bound, column: &SqlType) -> Option<Expression> {
    let storage = column.storage()?;
    let (from, expression) = (value.data_type, value.expression.clone());
    if from == storage || held(column) == from && category(column) != Category::Text {
        return Some(expression);
    }
    let guarded = |fits: Expression| {
        let cast = tree::cast(expression.clone(), storage);
        tree::choice(fits, cast, tree::typed_null(storage))
    };
    match (from.family(), storage.family()) {
        (Family::Text, Family::Text) => match storage {
            DataType::Text { limit: Some(most) } | DataType::Char { length: most } => {
                let length = tree::call("length", vec![expression.clone()]);
                Some(guarded(tree::binary(Op::LessEqual, length, tree::integer(most.into()))))
            }
            _ => Some(expression),
        },
        (Family::Integer, Family::Integer) if width(from) <= width(storage) => Some(expression),
        (Family::Integer, Family::Integer | Family::Numeric) => {
            let (least, most) = match storage {
                DataType::Numeric { precision, scale } => {
                    let whole = 10i128.checked_pow((precision - scale).into())? - 1;
                    (-whole, whole)
                }
                other => other.exact_range()?,
            };
            let within = tree::expression(ExpressionKind::Between {
                operand: Box::new(expression.clone()),
                low: Box::new(tree::integer(least)),
                high: Box::new(tree::integer(most)),
                negated: false,
            });
            Some(guarded(within))
        }
        (Family::Integer | Family::Numeric, Family::Double) => Some(tree::cast(expression, storage)),
        (Family::Date, Family::Timestamp) => Some(expression),
        _ => None,
    }
}
