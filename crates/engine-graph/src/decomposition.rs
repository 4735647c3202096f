//! What a call will access, known before it runs (LADS, sections 3.1, 3.3.2 and 4.2.3).
//!
//! A call is decomposed into record actions by the keys that are functions of its arguments, both branches
//! of every condition included. Where a key depends on what is read, or a range is scanned, actions are
//! coarser: such calls of one batch name rows of a table by as many leading columns of its primary key as all of them
//! know beforehand, the table's *prefix*. Calls that know whole keys name records in these ranges ([`crate::range`]),
//! if that lets some of them be taken apart; otherwise all go by the prefix:
//!
//! ```text
//! new_order(w, d, ..)   orders[w, d, ?]   \
//! delivery(w, ..)       orders[w, ?, ..]   >   prefix 1: one queue for each warehouse's orders
//! search(category)      items[?]          \
//! store_bid(item, ..)   items[item]        >   prefix 0, and a queue for each item between two searches
//! ```
//!
//! A unique index binds rows with other keys together: whoever writes into it needs a prefix that its columns
//! determine. A table that no call of a batch writes has no conflicts, hence no actions. In one that no call of the
//! batch deletes rows from, a row that is there when the graph is built is there for all of its calls.
//!
//! The actions of a call are *independent* if there are no logical dependencies among them (definition 2), and
//! none decides whether the others happen (`fabius_program::slice::are_independent`), as long as all rows are there.
//! Actions with logical dependencies have code of their own each (`fabius_program::slice::take_apart`), and decide
//! whether their row is there if that is not known; all others are one, the call.

use crate::graph::Kind;
use fabius_engine::Definitions;
use fabius_engine::entry::Call;
use fabius_program::access::accesses;
use fabius_program::catalog::{Catalog, ProcedureId};
use fabius_program::compile::{Code, compile_action, compile_action_slice, compile_results};
use fabius_program::ir::{Program, Type, Variable, VariableId};
use fabius_program::key_plan::KeyPlan;
use fabius_program::slice::{ColumnBounds, Interval, are_independent, take_apart};
use fabius_value::{ColumnId, Seq, TableId};
use std::ops::Range;

/// A program's accesses.
pub struct Decomposition {
    /// The keys, as functions of arguments.
    pub keys: KeyPlan,
    /// By table accessed: how many leading columns of its primary key are always known.
    prefixes: Vec<(TableId, u8)>,
    /// Whether whole keys are, of all tables.
    is_by_record: bool,
    /// Tables that may be written, and whether rows may go there.
    writes: Vec<(TableId, bool)>,
    /// The first scalar parameter behind lists.
    pub behind: Option<u16>,
    /// If its record actions are independent: what one does, by the list whose element it is about.
    actions: Option<Vec<(Option<u16>, Code)>>,
    /// Whether what an action is about tells its record from others that the call accesses.
    pub is_sole: bool,
    /// The record actions of its calls, if they are taken apart though they depend on each other.
    pub dependent: Option<Dependent>,
}

/// A program as record actions that depend on each other, in the order of the plan of keys.
pub struct Dependent {
    /// The actions.
    pub actions: Vec<DependentAction>,
    /// The one that decides last whether the call aborts.
    pub last_deciding: Option<u32>,
    /// Those that hold what they write until then.
    pub holding: Vec<u32>,
    /// The values that are handed over: which action reads them, in each of its turns.
    pub handed: Vec<u32>,
    /// What the results are, from those.
    pub results: Code,
    /// How many turns loops take for each element of a list, at most.
    pub loops: u64,
    /// Whether there are actions with turns.
    pub has_turns: bool,
}

/// Where things of a call are that is taken apart, counted from its first. If no action has turns, all is where its
/// number says.
#[derive(Clone, Copy)]
pub struct Layout<'a> {
    /// By action: the number of its first turn; then how many turns there are of all actions.
    turns: &'a [u32],
    /// By number: where the value is that is handed over in the first turn.
    values: &'a [u32],
}

impl Layout<'_> {
    /// No action has turns.
    pub const PLAIN: Layout<'static> = Layout { turns: &[], values: &[] };

    /// The numbers of an action's turns; if it has none, it has one.
    #[inline]
    pub fn turns_of(&self, action: u32) -> Range<u32> {
        match self.turns {
            [] => action..action + 1,
            turns => turns[action as usize]..turns[action as usize + 1],
        }
    }

    /// Where a value is that is handed over in this turn.
    #[inline]
    pub fn value(&self, number: u16, turn: u32) -> usize {
        match self.values {
            [] => usize::from(number),
            values => (values[usize::from(number)] + turn) as usize,
        }
    }
}

/// How an action follows another.
#[derive(Clone, Copy, Debug)]
pub struct Follower {
    /// The action that comes after.
    pub action: u32,
    /// Whether each turn of it comes after the same turn of the other.
    pub is_same_turn: bool,
}

/// A record action of such a program.
pub struct DependentAction {
    /// What it does.
    pub code: Code,
    /// How many actions it comes after.
    pub before: u32,
    /// Those that come after it.
    pub followers: Vec<Follower>,
    /// Whether it has a turn for each element of a list.
    pub has_turns: bool,
    /// Whether it can abort the call.
    pub decides: bool,
    /// Whether its record's row has to be there when the graph is built.
    pub needs_row: bool,
    /// Whether it writes its record,
    pub writes: bool,
    /// and only when the last has decided.
    pub holds: bool,
    /// Whether the call may abort when it can run already: not if it decides itself, or comes after all that do.
    pub begins: bool,
}

impl Dependent {
    fn of(program: &Program, catalog: &Catalog, bounds: &ColumnBounds) -> Option<Dependent> {
        let slices = take_apart(program, catalog, bounds).ok()?;
        let before = |at: usize| {
            let mut before: Vec<usize> = slices.actions[at].after.iter().map(|before| before.on).collect();
            before.dedup();
            before
        };
        let numbers = 0..slices.actions.len();
        let actions = slices.actions.iter().enumerate().map(|(at, action)| {
            let followers = numbers.clone().filter(|other| before(*other).contains(&at));
            let followers = followers.map(|follower| Follower {
                action: follower as u32,
                is_same_turn: slices.actions[follower].after_same_turn.contains(&at),
            });
            Some(DependentAction {
                code: compile_action_slice(program, catalog, action).ok()?,
                before: before(at).len() as u32,
                followers: followers.collect(),
                has_turns: action.key.list().is_some(),
                decides: action.decides,
                needs_row: action.needs_row,
                writes: action.writes,
                holds: action.holds,
                begins: slices.deciding.last().is_some_and(|last| {
                    let comes_after = before(at).contains(last) && !action.after_same_turn.contains(last);
                    !action.decides && !comes_after
                }),
            })
        });
        let holding = numbers.clone().filter(|at| slices.actions[*at].holds);
        Some(Dependent {
            actions: actions.collect::<Option<_>>()?,
            last_deciding: slices.deciding.last().map(|last| *last as u32),
            holding: holding.map(|at| at as u32).collect(),
            handed: slices.handed.iter().map(|action| *action as u32).collect(),
            results: compile_results(program, catalog, &slices).ok()?,
            loops: slices.loops as u64,
            has_turns: slices.actions.iter().any(|action| action.key.list().is_some()),
        })
    }

    /// Adds the places of a call's layout, whose first turns, by action, have been added last.
    pub fn add_places(&self, places: &mut Vec<u32>, turns: u32) {
        let first = places.len() - self.actions.len();
        places.push(turns);
        let mut next = 0;
        for &action in &self.handed {
            places.push(next);
            let at = first + action as usize;
            next += places[at + 1] - places[at];
        }
    }

    /// How many values the actions of a call with this layout hand over.
    #[inline]
    pub fn handed_by(&self, layout: Layout<'_>) -> u32 {
        if !self.has_turns {
            return self.handed.len() as u32;
        }
        self.handed.iter().map(|action| layout.turns_of(*action).len() as u32).sum()
    }

    /// The layout of a call: among those of the graph it begins at `first`.
    #[inline]
    pub fn layout<'a>(&self, places: &'a [u32], first: u32) -> Layout<'a> {
        if !self.has_turns {
            return Layout::PLAIN;
        }
        let (turns, values) = places[first as usize..].split_at(self.actions.len() + 1);
        Layout { turns, values }
    }
}

impl Decomposition {
    fn of(program: &Program, catalog: &Catalog, bounds: &ColumnBounds) -> Decomposition {
        let keys = KeyPlan::prefixes(program, catalog);
        let mut prefixes: Vec<(TableId, u8)> =
            keys.keys().map(|(table, known)| (table, known as u8)).collect();
        let mut writes = Vec::new();
        for access in accesses(program, catalog).iter().filter(|access| access.writes_anything()) {
            writes.push((access.table, access.deletes));
            let schema = catalog.table(access.table);
            let unique = schema.indexes.iter().filter(|index| index.unique);
            for index in unique.filter(|index| index.columns.iter().any(|c| access.writes.contains(*c))) {
                let bound = schema.primary_key.iter().take_while(|column| index.columns.contains(column));
                prefixes.push((access.table, bound.count() as u8));
            }
        }
        let is_whole =
            |(table, known): &(TableId, u8)| usize::from(*known) == catalog.table(*table).primary_key.len();
        let is_by_record = prefixes.iter().all(is_whole);
        let action =
            |list: Option<u16>| Some((list, compile_action(program, catalog, list.map(VariableId)).ok()?));
        let actions =
            are_independent(program, catalog, bounds).then(|| keys.lists().into_iter().map(action).collect());
        let is_sole = keys.has_one_for_each_element();
        let dependent = Dependent::of(program, catalog, bounds);
        let parameters = &program.variables[..program.parameter_count];
        let is_list = |parameter: &Variable| matches!(parameter.ty, Type::List(_));
        let lists = parameters.iter().rposition(is_list);
        let behind = lists.map(|last| last + 1).filter(|behind| *behind < parameters.len());
        Decomposition {
            keys,
            prefixes,
            is_by_record,
            writes,
            behind: behind.map(|behind| behind as u16),
            actions: actions.flatten(),
            is_sole,
            dependent,
        }
    }

    /// Whether whole keys are known of all rows that it names in a table.
    #[inline(never)]
    fn is_by_record_in(&self, table: TableId, columns: usize) -> bool {
        let mut known = self.prefixes.iter().filter(|(of, _)| *of == table);
        known.all(|(_, known)| usize::from(*known) == columns)
    }

    /// Whether its calls may be taken apart.
    fn is_divisible(&self) -> bool {
        self.is_by_record && (self.actions.is_some() || self.dependent.is_some())
    }

    /// What an independent action does that is about this element of the arguments.
    ///
    /// # Panics
    /// If it is no independent action.
    #[inline]
    pub fn action(&self, element: Option<(u16, u32)>) -> &Code {
        let list = element.map(|(list, _)| list);
        let found = self.actions.iter().flatten().find(|(of, _)| *of == list);
        &found.expect("the action is independent").1
    }

    /// Whether an independent action writes its record that is about an element of this list.
    pub fn writes_at(&self, list: Option<u16>) -> bool {
        self.actions.iter().flatten().any(|(of, code)| *of == list && code.has_writes())
    }
}

/// The decompositions of all procedures, by number.
#[derive(Default)]
pub struct Decompositions {
    all: Vec<Decomposition>,
    /// What they assume of columns.
    bounds: ColumnBounds,
}

impl Decompositions {
    /// Goes on from rows with these values, by table and column: the lowest and the highest number.
    pub fn begin(&mut self, catalog: &Catalog, ranges: &[Vec<Option<(i128, i128)>>]) {
        for (table, columns) in (0..).zip(ranges) {
            for (column, range) in (0..).zip(columns) {
                let &Some((low, high)) = range else { continue };
                self.bounds.include(catalog, TableId(table), ColumnId(column), Interval { low, high });
            }
        }
    }

    /// Adds those of procedures that are new, and makes those again whose tables may have values that they did not have
    /// before; `last` is the last call that they are for.
    #[inline]
    pub fn follow(&mut self, definitions: &Definitions, last: Seq) {
        let is_known = definitions.procedures.len() == self.all.len();
        if !is_known || last.0 >= self.bounds.calls() {
            self.follow_procedures(definitions, last);
        }
    }

    #[cold]
    fn follow_procedures(&mut self, definitions: &Definitions, last: Seq) {
        let catalog = &definitions.catalog;
        let programs: Vec<_> =
            definitions.procedures.iter_from(0).map(|procedure| procedure.program.clone()).collect();
        let programs: Vec<&Program> = programs.iter().map(|program| &**program).collect();
        let wider = self.bounds.follow(catalog, &programs, last.0);
        for (decomposition, program) in self.all.iter_mut().zip(&programs) {
            if decomposition.prefixes.iter().any(|(table, _)| wider.contains(table)) {
                *decomposition = Decomposition::of(program, catalog, &self.bounds);
            }
        }
        let new = programs[self.all.len()..].iter();
        let new: Vec<_> = new.map(|program| Decomposition::of(program, catalog, &self.bounds)).collect();
        self.all.extend(new);
    }

    /// That of a procedure, if there is one of this number.
    pub fn get(&self, procedure: ProcedureId) -> Option<&Decomposition> {
        self.all.get(procedure.0 as usize)
    }
}

/// How the calls of one batch tell records apart.
pub struct Prefixes {
    tables: Vec<Prefix>,
    /// By procedure: whether its calls' actions are independent, if nobody waits for what they read.
    independent: Vec<bool>,
    /// By procedure: whether its calls' actions are taken apart though they depend on each other.
    dependent: Vec<bool>,
}

/// What is known of a table.
#[derive(Clone, Copy)]
struct Prefix {
    columns: u8,
    /// How many columns the key has, if that is more, and some call may be taken apart that names records.
    of_records: Option<u8>,
    is_written: bool,
    loses_rows: bool,
}

impl Prefixes {
    /// The prefixes for calls of these procedures.
    pub fn of(
        decompositions: &Decompositions,
        procedures: impl Iterator<Item = ProcedureId>,
        definitions: &Definitions,
    ) -> Prefixes {
        let nothing = Prefix { columns: u8::MAX, of_records: None, is_written: false, loses_rows: false };
        let mut tables = vec![nothing; definitions.tables.len()];
        let mut called = vec![false; decompositions.all.len()];
        procedures.for_each(|procedure| {
            called.get_mut(procedure.0 as usize).into_iter().for_each(|called| *called = true);
        });
        for (decomposition, _) in decompositions.all.iter().zip(&called).filter(|(_, called)| **called) {
            for (table, columns) in &decomposition.prefixes {
                let prefix = &mut tables[table.0 as usize];
                prefix.columns = prefix.columns.min(*columns);
                if decomposition.is_divisible() {
                    prefix.of_records = Some(definitions.table(*table).schema().primary_key.len() as u8);
                }
            }
            for (table, loses_rows) in &decomposition.writes {
                let prefix = &mut tables[table.0 as usize];
                prefix.is_written = true;
                prefix.loses_rows |= loses_rows;
            }
        }
        for prefix in &mut tables {
            prefix.of_records = prefix.of_records.filter(|whole| *whole != prefix.columns);
        }
        let none = vec![false; called.len()];
        let mut prefixes = Prefixes { tables, independent: none.clone(), dependent: none };
        for number in (0..called.len()).filter(|number| called[*number]) {
            let decomposition = &decompositions.all[number];
            let is_divisible =
                decomposition.is_divisible() && definitions.procedure(ProcedureId(number as u32)).is_ok();
            let is_written = |table: TableId| prefixes.tables[table.0 as usize].is_written;
            let has_rows = |table: TableId| is_written(table) && prefixes.keeps_rows(table);
            prefixes.independent[number] = is_divisible
                && decomposition.actions.is_some()
                && decomposition.prefixes.iter().all(|(table, _)| has_rows(*table));
            prefixes.dependent[number] = is_divisible && decomposition.dependent.is_some();
        }
        prefixes
    }

    /// By how many columns of its primary key calls of a program tell a table's rows apart, and how many of them are
    /// those of a range, if there are coarse actions beside those on records; `None` if nothing in the batch writes the
    /// table.
    #[inline]
    pub fn get(&self, decomposition: &Decomposition, table: TableId) -> Option<(usize, Option<usize>)> {
        let prefix = &self.tables[table.0 as usize];
        let columns = usize::from(prefix.columns);
        match prefix.of_records {
            _ if !prefix.is_written => None,
            None => Some((columns, None)),
            Some(whole) => {
                let is_by_record = decomposition.is_by_record_in(table, whole.into());
                Some((if is_by_record { whole.into() } else { columns }, Some(columns)))
            }
        }
    }

    /// Whether no call deletes rows of a table, so that those which are there stay.
    #[inline]
    pub fn keeps_rows(&self, table: TableId) -> bool {
        !self.tables[table.0 as usize].loses_rows
    }

    /// How a call is executed. Idempotency keys belong to calls as a whole.
    #[inline]
    pub fn kind(&self, call: &Call<'_>) -> Kind {
        let has = |all: &[bool]| all.get(call.procedure.0 as usize).is_some_and(|has| *has);
        if call.key.is_some() {
            Kind::Whole
        } else if !call.wants_result && has(&self.independent) {
            Kind::Independent
        } else if has(&self.dependent) {
            Kind::Dependent
        } else {
            Kind::Whole
        }
    }
}
