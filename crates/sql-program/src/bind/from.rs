//! `FROM` and `WHERE` as loops: each relation reached by the best way that those before it give.

use super::access::{Access, ways};
use super::binder::Binder;
use super::condition::{Condition, Members, Says, conditions};
use super::query_facts::QueryFacts;
use super::scope::{Names, Relation, Row, Scope};
use super::stop::{Bind, beyond};
use super::tree;
use fabius_program::syntax::tree::{Block, Expression, ExpressionKind};
use fabius_sql_meaning::analysis::{Column, Side, Sight};
use fabius_sql_meaning::catalog::folded;
use fabius_sql_syntax::part;
use fabius_sql_syntax::privilege::Privilege;
use fabius_value::DataType;
use sqlparser::ast::{self, Expr, JoinConstraint, JoinOperator, TableFactor};

/// Conditions with subqueries that are decided one within the other, at most.
const SUBQUERIES: usize = 24;

/// Relations of a `FROM` that programs join, at most.
const RELATIONS: usize = 60;

/// How often a statement says what is done for a row, at most: outer joins have that twice, for partners and for nulls.
const BODIES: usize = 600;

/// What a `FROM` says: its relations are the innermost scope while it is bound.
#[derive(Clone)]
pub(super) struct From {
    /// Conditions of `WHERE` and inner joins.
    pub(super) conditions: Vec<Condition>,
    /// For each relation, the conditions of its outer join, if it is on the far side of one.
    pub(super) outer: Vec<Option<Vec<Condition>>>,
    /// The order that rows are wanted in: of which relation, and its columns with whether they descend.
    pub(super) order: Option<Order>,
    /// Which relation's rows may not be looped over along an index of these columns, because they change.
    pub(super) forbidden: Option<(usize, Vec<usize>)>,
    /// At most so many rows, if a loop can say so itself.
    pub(super) limit: Option<Expression>,
    /// Whether the limit is of use only where the order is an index's.
    pub(super) only_ordered_limit: bool,
    /// An order in which so many rows of each element of a list are enough.
    pub(super) first_of_each: Option<(Order, Expression)>,
    /// The relation to begin with.
    pub(super) first: Option<usize>,
    /// What was found out while the loops were built.
    pub(super) found: Found,
}

/// An order along a relation's columns.
#[derive(Clone, Debug)]
pub(super) struct Order {
    pub(super) relation: usize,
    pub(super) columns: Vec<usize>,
    pub(super) descending: bool,
}

/// What building the loops of a `FROM` found out.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Whether there is at most one row.
    pub(super) is_single: bool,
    /// Whether no table is gone over as a whole.
    pub(super) is_keyed: bool,
    /// Whether a table is reached by values that queries around this one give.
    pub(super) is_asked: bool,
    /// Whether every table is reached by values or bounds of a key's first columns.
    pub(super) is_bounded: bool,
    /// Whether rows come in the order that was wanted.
    pub(super) is_ordered: bool,
    /// Whether the limit is kept by the loop.
    pub(super) is_limited: bool,
    /// The columns of the indexes that rows of the first relation are looped over along.
    pub(super) indexes: Vec<Vec<usize>>,
    /// Whether each relation but the first has at most one row for one of the first.
    pub(super) others_are_unique: bool,
}

impl Found {
    /// What is known of a query of these rows.
    pub(super) fn facts(&self) -> QueryFacts {
        QueryFacts {
            is_single: self.is_single,
            is_keyed: self.is_keyed,
            is_selective: self.is_single || self.is_asked,
        }
    }
}

pub(super) type Body<'b, 'a> = dyn FnMut(&mut Binder<'a>) -> Bind<()> + 'b;

impl<'a> Binder<'a> {
    /// The relations of a `FROM`, behind that of the table that is written, with what joins them. They are to become
    /// the innermost scope.
    pub(super) fn relations(
        &mut self,
        target: Option<Relation>,
        from: &[ast::TableWithJoins],
    ) -> Bind<(Scope, Vec<Joined>)> {
        let mut scope = Scope::of(target.into_iter().collect());
        let mut joined: Vec<Joined> = scope.relations.iter().map(|_| Joined::Inner(None)).collect();
        for item in from {
            let mut names = self.relation(&item.relation, &scope.names, &mut scope.relations)?;
            Self::refuse_named_twice(&scope.names, &names)?;
            joined.push(Joined::Inner(None));
            for join in &item.joins {
                let (constraint, is_outer) = match &join.join_operator {
                    JoinOperator::Join(on) | JoinOperator::Inner(on) => (on, false),
                    JoinOperator::CrossJoin(on) => (on, false),
                    JoinOperator::Left(on) | JoinOperator::LeftOuter(on) => (on, true),
                    _ => return beyond("this kind of join"),
                };
                let beside = match &join.relation {
                    TableFactor::Derived { lateral: true, .. } => scope.names.clone().join(names.clone()),
                    _ => Names::default(),
                };
                let right = self.relation(&join.relation, &beside, &mut scope.relations)?;
                Self::refuse_named_twice(&scope.names, &right)?;
                Self::refuse_named_twice(&names, &right)?;
                let merged = match constraint {
                    JoinConstraint::None | JoinConstraint::On(_) => Vec::new(),
                    JoinConstraint::Natural => names.names_in_common(&right),
                    JoinConstraint::Using(columns) => {
                        let name = |path: Vec<String>| path.last().cloned().unwrap_or_default();
                        columns
                            .iter()
                            .map(|column| super::binder::path(column).map(name))
                            .collect::<Bind<_>>()?
                    }
                };
                let on;
                (names, on) = merge(names, right, merged, &scope.relations)?;
                let on = match constraint {
                    JoinConstraint::On(on) => Some(on.clone()),
                    _ => on,
                };
                joined.push(if is_outer { Joined::Outer(on) } else { Joined::Inner(on) });
            }
            scope.names = scope.names.join(names);
        }
        Ok((scope, joined))
    }

    /// Adds what a part of a `FROM` stands for to the relations, whose `names` it can use if it is lateral: what its
    /// columns are called.
    fn relation(
        &mut self,
        factor: &TableFactor,
        names: &Names,
        relations: &mut Vec<Relation>,
    ) -> Bind<Names> {
        let at = relations.len();
        if at == RELATIONS {
            return beyond("a FROM of so many tables");
        }
        if let Some(relation) = self.virtual_relation(factor)? {
            let names = relation.names(at);
            relations.push(relation);
            return Ok(names);
        }
        match factor {
            TableFactor::Table { name, alias, args: None, version: None, sample: None, .. } => {
                let table = self.table(name)?;
                self.require(&table, Privilege::Select)?;
                self.reads.insert(table.name.clone());
                let relation = Relation::table(&table, alias.as_ref().map(|alias| folded(&alias.name)));
                let mut names = relation.names(at);
                let given = alias.iter().flat_map(|alias| &alias.columns);
                let mut seen = names.columns.iter_mut().filter(|column| column.sight == Sight::Everywhere);
                for name in given {
                    let Some(column) = seen.next() else { return beyond("more names than columns") };
                    column.column.rename(folded(&name.name));
                }
                relations.push(relation);
                Ok(names)
            }
            TableFactor::Derived { lateral, subquery, alias: Some(alias), sample: None } => {
                let relation = self.derived(subquery, *lateral, alias, names.clone(), relations)?;
                let names = relation.names(at);
                relations.push(relation);
                Ok(names)
            }
            TableFactor::NestedJoin { .. } => beyond("a join in parentheses"),
            _ => beyond("a subquery in FROM"),
        }
    }

    fn refuse_named_twice(names: &Names, more: &Names) -> Bind<()> {
        names.refuse_twice(more)?;
        // Conditions of joins are written with the names of their relations.
        match more.columns.iter().any(|column| names.has_relation(None, &column.relation)) {
            true => beyond("tables of one name"),
            false => Ok(()),
        }
    }

    /// Takes the conditions of a `FROM` and `WHERE` apart.
    pub(super) fn from(&self, joined: &[Joined], selection: Option<&Expr>) -> From {
        let names = self.scopes.last().map(|scope| scope.names.clone()).unwrap_or_default();
        let mut all = conditions(selection, &names);
        let mut outer = Vec::new();
        for joined in joined {
            match joined {
                Joined::Inner(on) => {
                    all.extend(conditions(on.as_ref(), &names));
                    outer.push(None);
                }
                Joined::Outer(on) => outer.push(Some(conditions(on.as_ref(), &names))),
            }
        }
        let found = Found {
            is_single: true,
            is_ordered: true,
            is_keyed: true,
            is_bounded: true,
            others_are_unique: true,
            ..Found::default()
        };
        From {
            conditions: all,
            outer,
            order: None,
            forbidden: None,
            limit: None,
            only_ordered_limit: false,
            first_of_each: None,
            first: None,
            found,
        }
    }

    /// Builds the loops; `body` is what is done for each row, and may be asked for more than once.
    pub(super) fn loops(&mut self, from: &mut From, body: &mut Body<'_, 'a>) -> Bind<()> {
        if self.before.is_some() {
            return self.reach_next(from, 0, body);
        }
        self.before = Some(Block::new());
        let built = self.nested(|binder| binder.reach_next(from, 0, body));
        self.block.extend(self.before.take().unwrap_or_default());
        self.block.extend(built?.0);
        Ok(())
    }

    pub(super) fn reach_next(&mut self, from: &mut From, reached: u64, body: &mut Body<'_, 'a>) -> Bind<()> {
        // What can be decided by now is.
        let is_all = reached.count_ones() as usize == self.scope().relations.len();
        let ready = |condition: &Condition| !condition.is_met && condition.uses & !reached == 0;
        let of_kind = |has_subquery: bool| {
            let all = from.conditions.iter().enumerate();
            all.filter(move |(_, condition)| ready(condition) && condition.has_subquery == has_subquery)
        };
        let subqueries = of_kind(true).filter(|_| is_all);
        let decided: Vec<usize> = of_kind(false).chain(subqueries).map(|(at, _)| at).collect();
        match decided.is_empty() {
            true => self.reach_row(from, reached, body),
            false => self.decide(from, &decided, reached, body),
        }
    }

    /// Goes on where conditions hold, if there are any.
    fn decide(
        &mut self,
        from: &mut From,
        decided: &[usize],
        reached: u64,
        body: &mut Body<'_, 'a>,
    ) -> Bind<()> {
        // Each of them stands within the one before.
        if decided.iter().filter(|at| from.conditions[**at].has_subquery).count() > SUBQUERIES {
            return beyond("so many conditions with subqueries");
        }
        let mut holds = Vec::new();
        let mut rest = decided.iter();
        let mut needed = None;
        for at in rest.by_ref() {
            let expression = from.conditions[*at].expression.clone();
            from.conditions[*at].is_met = true;
            let (block, condition) = self.nested(|binder| {
                let bound = binder.truth(&expression, "WHERE")?;
                if bound.truth() == Some(true) { Ok(None) } else { binder.settled(bound).map(Some) }
            })?;
            if !block.is_empty() {
                needed = Some((block, condition));
                break;
            }
            holds.extend(condition);
        }
        let rest = rest.as_slice();
        if holds.is_empty() && needed.is_none() {
            let done = self.reach_row(from, reached, body);
            decided.iter().for_each(|at| from.conditions[*at].is_met = false);
            return done;
        }
        from.found.is_limited = false;
        let limit = from.limit.take();
        let (then, ()) = self.nested(|binder| match needed {
            // Statements that a condition needs stand where those before it hold.
            Some((block, condition)) => {
                binder.block = block;
                let (then, ()) = binder.deeper(|binder| {
                    binder.nested(|binder| match rest.is_empty() {
                        true => binder.reach_row(from, reached, body),
                        false => binder.decide(from, rest, reached, body),
                    })
                })?;
                match condition {
                    Some(condition) if !then.is_empty() => binder.emit(tree::when(condition, then, None)),
                    Some(_) => {}
                    None => binder.block.extend(then),
                }
                Ok(())
            }
            None => binder.reach_row(from, reached, body),
        })?;
        from.limit = limit;
        if holds.is_empty() {
            self.block.extend(then);
        } else if !then.is_empty() {
            self.emit(tree::when(tree::all(holds), then, None));
        }
        decided.iter().for_each(|at| from.conditions[*at].is_met = false);
        Ok(())
    }

    /// Reaches one more relation, all that can be decided being so.
    fn reach_row(&mut self, from: &mut From, reached: u64, body: &mut Body<'_, 'a>) -> Bind<()> {
        if reached.count_ones() as usize == self.scope().relations.len() {
            self.limited = from.found.is_limited;
            self.bodies += 1;
            return if self.bodies > BODIES { beyond("so many outer joins") } else { body(self) };
        }
        let (at, access) = self.next_relation(from, reached)?;
        match from.outer[at].clone() {
            None => self.reach_inner(from, at, &access, reached, body),
            Some(on) => self.reach_outer(from, at, on, reached, body),
        }
    }

    /// The relation to reach next, and the ways to it, best first.
    fn next_relation(&mut self, from: &From, reached: u64) -> Bind<(usize, Vec<Access>)> {
        let relations = self.scope().relations.clone();
        let mut best: Option<(usize, Vec<Access>)> = None;
        let waiting = |at: usize| reached & 1 << at == 0;
        let inner_waits = (0..relations.len()).any(|at| waiting(at) && from.outer[at].is_none());
        for (at, relation) in relations.iter().enumerate().filter(|(at, _)| waiting(*at)) {
            if let Row::Virtual(_) = &relation.row {
                // It depends on nothing, and others may be found by it.
                return Ok((at, Vec::new()));
            }
            if let Row::Derived(derived) = &relation.row
                && !derived.is_ready(reached)
            {
                continue;
            }
            if let Some(on) = &from.outer[at] {
                if inner_waits || on.iter().any(|condition| condition.uses & !(reached | 1 << at) != 0) {
                    continue;
                }
                return Ok((at, Vec::new()));
            }
            if let Row::Derived(_) = &relation.row {
                return Ok((at, Vec::new()));
            }
            let Some(table) = &relation.table else { return beyond("what is not a table") };
            let says = self.says(at, &from.conditions, reached);
            let mut ways = ways(table, &says);
            if let Some((forbidden, columns)) = &from.forbidden
                && *forbidden == at
            {
                ways.retain(|way| {
                    way.is_point() || way.index.is_none() || !way.columns.iter().any(|c| columns.contains(c))
                });
            }
            if let Some(order) = from.order.as_ref().filter(|order| order.relation == at) {
                let best = score(&ways);
                let ordered = ways.iter().filter(|way| gives(way, order)).map(|way| way.score).max();
                // The order is free where an index gives it that finds as few rows; to stop at a limit it is
                // worth more than a range.
                let stops = from.limit.is_some() && best < 100 && !from.only_ordered_limit;
                if ordered.is_some_and(|score| score >= best || stops) {
                    ways.sort_by_key(|way| {
                        (std::cmp::Reverse(gives(way, order)), std::cmp::Reverse(way.score))
                    });
                }
            }
            if from.first == Some(at) {
                return Ok((at, ways));
            }
            let is_better = match &best {
                None => true,
                Some((_, so_far)) if score(&ways) != score(so_far) => score(&ways) > score(so_far),
                Some((other, _)) => {
                    let leads_to = |at: usize| self.best_behind(&relations, from, reached | 1 << at);
                    leads_to(at) > leads_to(*other)
                }
            };
            if is_better {
                best = Some((at, ways));
            }
        }
        match best {
            Some(best) => Ok(best),
            None => beyond("a join whose conditions come too late"),
        }
    }

    /// How good the best way is to a relation that is reached later, once some are.
    fn best_behind(&self, relations: &[Relation], from: &From, reached: u64) -> u32 {
        let waiting = relations
            .iter()
            .enumerate()
            .filter(|(at, _)| reached & 1 << at == 0 && from.outer[*at].is_none());
        let scores = waiting.filter_map(|(at, relation)| {
            let says = self.says(at, &from.conditions, reached);
            Some(score(&ways(relation.table.as_ref()?, &says)))
        });
        scores.max().unwrap_or(0)
    }

    fn reach_inner(
        &mut self,
        from: &mut From,
        at: usize,
        ways: &[Access],
        reached: u64,
        body: &mut Body<'_, 'a>,
    ) -> Bind<()> {
        let relation = self.scope().relations[at].clone();
        if let Row::Virtual(rows) = &relation.row {
            from.found.is_single = false;
            from.found.is_ordered = false;
            from.found.is_asked = true;
            let limit = from.limit.take();
            let done =
                self.reach_virtual(at, rows, |binder| binder.reach_next(from, reached | 1 << at, body));
            from.limit = limit;
            return done;
        }
        if let Row::Derived(derived) = &relation.row {
            return self.reach_derived(from, at, derived, None, reached, body);
        }
        let Some(table) = relation.table.clone() else { return beyond("what is not a table") };
        let mut chosen = None;
        for access in ways {
            let before = self.block.len();
            let around = self.scopes.len() - 1;
            let (keys, _) = self.noting_outer(|binder| {
                let keys = binder.reach(&table, access, &from.conditions)?;
                from.found.is_asked |= keys.is_some() && binder.outermost.get() < around;
                Ok(keys)
            })?;
            if let Some(keys) = keys {
                chosen = Some((access.clone(), keys));
                break;
            }
            self.block.truncate(before);
            let asks = access.asks();
            if !asks.is_empty() {
                asks.into_iter().for_each(|asks| from.conditions[asks].comes_late = true);
                return self.reach_row(from, reached, body);
            }
        }
        let Some((access, mut keys)) = chosen else { return beyond("a table that cannot be reached") };
        if access.is_scan() && reached != 0 && self.lifts {
            return beyond("a join that is not along a key");
        }
        from.found.is_keyed &= !access.equal.is_empty();
        from.found.is_bounded &= !access.is_scan();
        let path = self.path_in_words(&relation, &access);
        if !self.inputs.paths.contains(&path) {
            self.inputs.paths.push(path);
        }
        let met = keys.met.clone();
        met.iter().for_each(|met| from.conditions[*met].is_met = true);
        let list = keys.list.take();
        if list.is_some() || !access.is_unique {
            from.found.is_single = false;
            from.found.others_are_unique &= at == 0;
        }
        if at == 0 && access.index.is_some() {
            from.found.indexes.push(access.columns.clone());
        }
        let ordered = from.order.as_ref().is_none_or(|order| {
            let alone = reached == 0 && order.relation == at;
            alone && list.is_none() && gives(&access, order) || access.is_unique && list.is_none()
        });
        from.found.is_ordered &= ordered;
        self.scans += usize::from(access.is_scan());
        let done = match list {
            None => self.reach_rows(from, at, &relation, &access, keys, reached, body),
            Some((list, element)) => {
                let limit = from.limit.take();
                let (block, ()) = self.nested(|binder| {
                    binder.repeated(|binder| {
                        binder.reach_rows(from, at, &relation, &access, keys, reached, body)
                    })
                })?;
                from.limit = limit;
                self.emit(tree::for_list(&element, &list, block));
                Ok(())
            }
        };
        self.scans -= usize::from(access.is_scan());
        met.iter().for_each(|met| from.conditions[*met].is_met = false);
        self.scope().relations[at].row = Row::Absent;
        done
    }

    #[allow(clippy::too_many_arguments)] // the state of one relation, taken apart at once
    fn reach_rows(
        &mut self,
        from: &mut From,
        at: usize,
        relation: &Relation,
        access: &Access,
        keys: super::access::Reached,
        reached: u64,
        body: &mut Body<'_, 'a>,
    ) -> Bind<()> {
        let storage = relation.table.as_ref().map_or("", |table| table.storage.as_str()).to_string();
        if access.is_point() {
            let row = tree::keyed_row(&storage, keys.equal.clone());
            self.scope().relations[at].row = Row::Key { key: keys.equal, optional: false };
            let limit = from.limit.take();
            let (then, ()) = self.nested(|binder| binder.reach_next(from, reached | 1 << at, body))?;
            from.limit = limit;
            self.emit(tree::when(tree::exists(row), then, None));
            return Ok(());
        }
        let row = self.name("row");
        self.scope().relations[at].row = Row::Loop(row.clone());
        let (mut filters, filtered) = self.filters(from, at, reached)?;
        filtered.iter().for_each(|filtered| from.conditions[*filtered].is_met = true);
        let of_each = from.first_of_each.clone();
        let of_each = of_each.filter(|(order, _)| {
            access.list.is_some() && order.relation == at && gives_within(access, order)
        });
        let is_limited = from.limit.is_some() && from.found.is_ordered || of_each.is_some();
        let partners = match is_limited && reached == 0 {
            true => self.sole_partners(from, at),
            false => None,
        };
        for column in partners.iter().flatten() {
            let value = self.scope().relations[at].value(*column)?;
            filters.push(tree::is_null(value.expression, true));
        }
        let filter = (!filters.is_empty()).then(|| tree::all(filters));
        let mut scan = self.loop_over(relation, access, keys, filter);
        scan.descending = from.order.as_ref().is_some_and(|order| order.relation == at && order.descending)
            && from.found.is_ordered;
        let limit = from.limit.take();
        match of_each {
            _ if partners.is_none() => {}
            Some((order, limit)) => (scan.descending, scan.limit) = (order.descending, Some(limit)),
            None => {
                scan.limit.clone_from(&limit);
                from.found.is_limited = true;
            }
        }
        let limited = from.found.is_limited;
        let (block, ()) =
            self.nested(|binder| binder.repeated(|binder| binder.reach_next(from, reached | 1 << at, body)))?;
        from.found.is_limited = limited;
        from.limit = limit;
        self.emit(tree::for_each(&row, scan, block));
        filtered.iter().for_each(|filtered| from.conditions[*filtered].is_met = false);
        Ok(())
    }

    /// The conditions that a loop's own filter can decide, and which they are.
    fn filters(&mut self, from: &From, at: usize, reached: u64) -> Bind<(Vec<Expression>, Vec<usize>)> {
        let (mut filters, mut filtered) = (Vec::new(), Vec::new());
        for (number, condition) in from.conditions.iter().enumerate() {
            let ready = condition.uses & !(reached | 1 << at) == 0 && condition.uses & 1 << at != 0;
            if condition.is_met || !ready || condition.has_subquery {
                continue;
            }
            let (block, bound) = self.nested(|binder| binder.truth(&condition.expression, "WHERE"))?;
            let settled = self.settled(bound)?;
            if block.is_empty() && !names_row_by_key(&settled) {
                filters.push(settled);
                filtered.push(number);
            }
        }
        Ok((filters, filtered))
    }

    /// The far side of an outer join: its rows, or nulls if there is none.
    fn reach_outer(
        &mut self,
        from: &mut From,
        at: usize,
        on: Vec<Condition>,
        reached: u64,
        body: &mut Body<'_, 'a>,
    ) -> Bind<()> {
        let relations = self.scope().relations.clone();
        let relation = relations[at].clone();
        if let Row::Derived(derived) = &relation.row {
            return self.reach_derived(from, at, derived, Some(on), reached, body);
        }
        let Some(table) = relation.table.clone() else { return beyond("what is not a table") };
        let says = Says { memberships: Vec::new(), ..self.says(at, &on, reached) };
        let mut chosen = None;
        for access in ways(&table, &says) {
            if let Some(keys) = self.reach(&table, &access, &on)? {
                chosen = Some((access, keys));
                break;
            }
        }
        let Some((access, keys)) = chosen else { return beyond("a table that cannot be reached") };
        if access.is_scan() && self.lifts {
            return beyond("a join that is not along a key");
        }
        let path = self.path_in_words(&relation, &access);
        if !self.inputs.paths.contains(&path) {
            self.inputs.paths.push(path);
        }
        let rest: Vec<&Condition> =
            on.iter().enumerate().filter(|(number, _)| !keys.met.contains(number)).map(|(_, c)| c).collect();
        if access.is_point() && rest.is_empty() {
            self.scope().relations[at].row = Row::Key { key: keys.equal, optional: true };
            self.reach_next(from, reached | 1 << at, body)?;
            self.scope().relations[at].row = Row::Absent;
            return Ok(());
        }
        if !access.is_unique {
            from.found.is_single = false;
            from.found.others_are_unique = false;
        }
        let found = self.name("found");
        let boolean = Some(tree::scalar_type(DataType::Boolean, false));
        self.emit(tree::declare(&found, true, boolean, tree::boolean(false)));
        let row = self.name("row");
        self.scope().relations[at].row = Row::Loop(row.clone());
        let (block, ()) = self.nested(|binder| {
            binder.partner(rest, &found, |binder| binder.reach_next(from, reached | 1 << at, body))
        })?;
        let scan = self.loop_over(&relation, &access, keys, None);
        self.emit(tree::for_each(&row, scan, block));
        self.scope().relations[at].row = Row::Nulls;
        let (block, ()) = self.nested(|binder| binder.reach_next(from, reached | 1 << at, body))?;
        self.emit(tree::when(tree::not(tree::variable(found)), block, None));
        self.scope().relations[at].row = Row::Absent;
        Ok(())
    }

    /// A row of an outer join's far side: `act` is done, and noted in `found`, if it meets the conditions.
    pub(super) fn partner<'c>(
        &mut self,
        on: impl IntoIterator<Item = &'c Condition>,
        found: &str,
        act: impl FnOnce(&mut Self) -> Bind<()>,
    ) -> Bind<()> {
        let mut all = Vec::new();
        for condition in on {
            all.push(self.condition(&condition.expression, "JOIN/ON")?);
        }
        let (then, ()) = self.nested(|binder| {
            binder.emit(tree::assign(found, tree::boolean(true)));
            binder.repeated(act)
        })?;
        match all.is_empty() {
            true => self.block.extend(then),
            false => self.emit(tree::when(tree::all(all), then, None)),
        }
        Ok(())
    }

    fn path_in_words(&self, relation: &Relation, access: &Access) -> String {
        let table = relation.table.as_ref().map_or("", |table| table.name.name.as_str());
        let by = match (&access.index, access.is_scan()) {
            (_, true) => return format!("Scan of all rows of {table}"),
            (None, _) => "primary key".to_string(),
            (Some(index), _) => format!("index {index}"),
        };
        let columns = relation.table.iter().flat_map(|table| &table.columns).collect::<Vec<_>>();
        let name = |at: &usize| columns.get(*at).map_or("", |column| column.name.as_str());
        let used = access.equal.len() + usize::from(access.lower.is_some() || access.upper.is_some());
        let names: Vec<&str> = access.columns.iter().take(used).map(name).collect();
        let kind = if access.is_point() { "Row" } else { "Rows" };
        let list = match access.list.as_ref().map(|list| &list.values) {
            None => "",
            Some(Members::Query(_)) => ", for each row of a query",
            Some(_) => ", for each of a list",
        };
        format!("{kind} of {table} by {by} ({}){list}", names.join(", "))
    }
}

/// The names of both sides of a join that merges columns, and the condition that these are equal.
fn merge(
    mut left: Names,
    mut right: Names,
    columns: Vec<String>,
    relations: &[Relation],
) -> Bind<(Names, Option<Expr>)> {
    let (mut merged, mut all) = (Vec::with_capacity(columns.len()), None);
    for name in columns {
        let sides = [left.give_to_merged(&name, Side::Left)?, right.give_to_merged(&name, Side::Right)?];
        let [own, other] = sides.map(|(relation, column)| &relations[relation].columns[column].1);
        if own != other {
            return beyond("a join of columns of different types");
        }
        let named = |names: &Names, value: (usize, usize)| {
            let named = names.columns.iter().find(|column| column.column.value() == value)?;
            Some(Box::new(part::column(&named.relation, named.column.name())))
        };
        let (Some(left_side), Some(right_side)) = (named(&left, sides[0]), named(&right, sides[1])) else {
            return beyond("a merged column of no relation");
        };
        let equal = Expr::BinaryOp { left: left_side, op: ast::BinaryOperator::Eq, right: right_side };
        all = Some(match all {
            None => equal,
            Some(all) => part::binary(all, ast::BinaryOperator::And, equal),
        });
        merged.push((name, sides[0]));
    }
    Ok((left.join_merged(right, merged), all))
}

/// What joins a relation to those before it.
pub(super) enum Joined {
    /// By this condition, or by none.
    Inner(Option<Expr>),
    /// `LEFT JOIN`.
    Outer(Option<Expr>),
}

/// How good the best of some ways is.
fn score(ways: &[Access]) -> u32 {
    ways.first().map_or(0, |way| way.score)
}

/// Whether a way gives rows in an order.
fn gives(access: &Access, order: &Order) -> bool {
    if access.is_unique && access.list.is_none() {
        return true;
    }
    access.list.is_none() && gives_within(access, order)
}

/// Whether it gives those of each element of its list, if it has one, in an order.
fn gives_within(access: &Access, order: &Order) -> bool {
    if access.columns.is_empty() {
        return false;
    }
    let fixed = &access.columns[..access.equal.len()];
    let mut rest = access.order[access.equal.len()..].iter();
    order.columns.iter().filter(|column| !fixed.contains(column)).all(|column| rest.next() == Some(column))
}

/// Whether an expression reads a row that it names by key, which a loop's filter cannot.
fn names_row_by_key(expression: &Expression) -> bool {
    use ExpressionKind as K;
    let any = |parts: &[Expression]| parts.iter().any(names_row_by_key);
    match &expression.kind {
        K::Column { row, .. } => row.key.is_some(),
        K::Exists(_) => true,
        K::Element { index, .. } => names_row_by_key(index),
        K::Call { arguments, .. } => any(arguments),
        K::Negate(operand) | K::Not(operand) => names_row_by_key(operand),
        K::IsNull { operand, .. } | K::Cast { operand, .. } => names_row_by_key(operand),
        K::Between { operand, low, high, .. } => {
            names_row_by_key(operand) || names_row_by_key(low) || names_row_by_key(high)
        }
        K::Binary(_, left, right) => names_row_by_key(left) || names_row_by_key(right),
        K::If { arms, otherwise } => {
            names_row_by_key(otherwise)
                || arms
                    .iter()
                    .any(|(condition, value)| names_row_by_key(condition) || names_row_by_key(value))
        }
        K::Literal(_) | K::Variable(_) | K::EmptyList => false,
    }
}
