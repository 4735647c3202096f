//! Which partitions a call touches, from its program and its arguments.
//!
//! ```text
//! procedure order(w: int, lines: list of (item: int, supply: int))
//!     items[line.item]             items:   field 0 of lines        replicated
//!     stock[line.supply, ...]      stock:   field 1 of lines
//!     for o in orders[w, ..]       orders:  parameter 0
//!     orders by date[..]           orders:  unknown                 its index does not begin with the key
//! ```
//!
//! A call whose partitions are not known before it runs, because keys depend on what it reads, or a scan
//! goes across them, touches all. So does a call that writes a replicated table, and one that writes a unique
//! value which rows of other partitions might have.

use crate::layout::Layout;
use crate::partition_set::PartitionSet;
use fabius_engine::Definitions;
use fabius_engine::entry::Call;
use fabius_program::access::{Access, accesses};
use fabius_program::argument_tuple::Origin;
use fabius_program::arguments::{DecodedArguments, Selection};
use fabius_program::catalog::Catalog;
use fabius_program::ir::Program;
use fabius_program::key_plan::KeyPlan;
use fabius_program::known_key::AccessKind;
use fabius_value::{ColumnId, Datum, TableId, Value};
use std::sync::Arc;

/// The routes of all procedures under some definitions.
#[derive(Clone, Default)]
pub struct Routes {
    /// The definitions.
    pub definitions: Arc<Definitions>,
    /// Where rows are.
    pub layout: Layout,
    /// By procedure number.
    routes: Vec<Arc<Route>>,
}

/// What is known of one procedure's calls.
pub struct Route {
    /// Of all rows that it names, the leading key columns that follow from arguments.
    keys: KeyPlan,
    /// The arguments that are first columns of these keys.
    leads: Selection,
    /// By lead: the tables whose keys begin with it.
    lead_tables: Vec<Vec<TableId>>,
    /// Keys that begin with a constant.
    fixed: Vec<(TableId, Value)>,
    /// Tables of which it touches rows whose first key column does not.
    unknown: Vec<TableId>,
    /// Tables that it writes.
    written: Vec<TableId>,
    /// Tables of which it touches more than records with known keys: ranges, new rows, unique values.
    unbounded: Vec<TableId>,
}

impl Routes {
    /// No procedures yet.
    pub fn new(partitions: usize) -> Routes {
        Routes { layout: Layout::new(partitions), ..Routes::default() }
    }

    /// The routes under definitions that are these and more.
    pub fn follow(&self, definitions: &Arc<Definitions>) -> Routes {
        let mut routes = Routes { definitions: definitions.clone(), ..self.clone() };
        let catalog = &definitions.catalog;
        routes.layout.follow(catalog);
        for procedure in definitions.procedures.iter_from(self.routes.len()) {
            let accesses = accesses(&procedure.program, catalog);
            routes.layout.learn(&accesses);
            let keys = KeyPlan::prefixes(&procedure.program, catalog);
            routes.routes.push(Arc::new(Route::of(&procedure.program, keys, &accesses, catalog)));
        }
        routes
    }

    fn route(&self, call: &Call<'_>) -> Option<&Route> {
        self.routes.get(call.procedure.0 as usize).map(|route| &**route)
    }

    /// The partitions that a call touches; none if it needs no partition in particular. Arguments that do not
    /// decode touch nothing: the call will abort before it begins.
    pub fn partitions(&self, call: &Call<'_>) -> PartitionSet {
        let Some(route) = self.route(call) else { return PartitionSet::EMPTY };
        if route.is_everywhere(&self.layout) {
            return PartitionSet::first(self.layout.partitions);
        }
        let mut set = PartitionSet::EMPTY;
        let mut add = |table, value| {
            if !self.layout.is_replicated(table)
                && let Some(partition) = self.layout.partition(table, value)
            {
                set.insert(partition);
            }
        };
        route.fixed.iter().for_each(|(table, value)| add(*table, Datum::from_value(value)));
        let mut last = None;
        let read = route.leads.for_each(call.arguments, |lead, value| {
            // Most often a list's rows are all of one partition.
            if let Datum::Int(number) = value {
                let before = last.replace((lead, number));
                if before == last {
                    return;
                }
            }
            route.lead_tables[lead].iter().for_each(|table| add(*table, value));
        });
        if read.is_ok() { set } else { PartitionSet::EMPTY }
    }

    /// Visits the records that a call touches, of tables that are divided: partition, table, key, and whether
    /// it may write there. `false` if its arguments do not tell them.
    pub fn visit_records<'c>(
        &self,
        call: &Call<'c>,
        decoded: &mut DecodedArguments<'c>,
        mut visit: impl FnMut(usize, TableId, &[Datum<'_>], bool),
    ) -> bool {
        let Some(route) = self.route(call) else { return true };
        let is_divided = |table: &TableId| !self.layout.is_replicated(*table);
        if route.is_everywhere(&self.layout) || route.unbounded.iter().any(is_divided) {
            return false;
        }
        let Ok(procedure) = self.definitions.procedure(call.procedure) else { return true };
        decoded.clear();
        let Ok(place) = decoded.push(&procedure.signature, call.arguments) else { return true };
        route.keys.for_each(decoded.at(place), |table, key| {
            if is_divided(&table)
                && let Some(partition) = self.layout.partition(table, key[0])
            {
                visit(partition, table, key, route.written.contains(&table));
            }
        });
        true
    }
}

impl Route {
    fn of(program: &Program, keys: KeyPlan, accesses: &[Access], catalog: &Catalog) -> Route {
        let (mut leads, mut lead_tables, mut fixed) = (Vec::new(), Vec::<Vec<TableId>>::new(), Vec::new());
        for (table, first) in keys.first_columns() {
            match first {
                Some(Origin::Argument(parameter, field)) => {
                    let lead = (parameter, field);
                    let number = leads.iter().position(|known| *known == lead).unwrap_or_else(|| {
                        leads.push(lead);
                        lead_tables.push(Vec::new());
                        leads.len() - 1
                    });
                    lead_tables[number].push(table);
                }
                Some(Origin::Constant(value)) => fixed.push((table, value)),
                None => {}
            }
        }
        let leads = Selection::of(program, &leads);
        let (unknown, written, unbounded) = (Vec::new(), Vec::new(), Vec::new());
        let mut route = Route { keys, leads, lead_tables, fixed, unknown, written, unbounded };
        for (table, known) in route.keys.keys() {
            if known == 0 {
                route.unknown.push(table);
            }
            if known < catalog.table(table).primary_key.len() {
                route.unbounded.push(table);
            }
        }
        for access in accesses {
            let schema = catalog.table(access.table);
            let is_written = |column: &ColumnId| access.writes.contains(*column);
            let mut claims_any = false;
            for index in schema.indexes.iter().filter(|index| index.unique) {
                if index.columns.iter().any(is_written) {
                    claims_any = true;
                    if !index.columns.contains(&schema.primary_key[0]) {
                        route.unknown.push(access.table);
                    }
                }
            }
            if access.kind != AccessKind::Row || claims_any {
                route.unbounded.push(access.table);
            }
            if access.writes_anything() {
                route.written.push(access.table);
            }
        }
        route
    }

    /// Whether its calls touch all partitions, whatever their arguments.
    fn is_everywhere(&self, layout: &Layout) -> bool {
        self.unknown.iter().any(|table| !layout.is_replicated(*table))
            || self.written.iter().any(|table| layout.is_replicated(*table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_engine::entry::encode_definition;
    use fabius_program::arguments;
    use fabius_value::{Seq, Value};

    const SHOP: &str = "
        table item { id: int, name: text, primary key (id) }
        table stock { w: int, item: int, left: int, primary key (w, item) }
        table orders { w: int, id: int, day: int, code: int,
            primary key (w, id), index by_day (day), index by_code (code, w), unique index only_code (code) }
        procedure load_item(id: int) { insert item { id: id, name: 'x' } }
        procedure sell(w: int, lines: list of (item: int, supply: int)) {
            for line in lines {
                require item[line.item].name is not null, \"no such item\"
                stock[line.supply, line.item].left -= 1
            }
            stock[w, 0].left += 1
        }
        procedure of_day(day: int) -> bigint {
            var found: list of int = []
            for o in orders by by_day[day] { append found (o.id) }
            return count(found)
        }
        procedure of_code(w: int) -> bigint {
            var found: list of int = []
            for o in orders by by_code[1, w] { append found (o.id) }
            return count(found)
        }
        procedure shift(w: int, other: int) {
            var place: int = w
            if other > 0 { place = other }
            stock[place, 1].left += 1
        }
        procedure order(w: int, id: int) { insert orders { w: w, id: id, day: 0, code: id } }";

    fn routes() -> Routes {
        let definitions = Definitions::default().with(Seq(1), &encode_definition(SHOP)).unwrap();
        Routes::new(8).follow(&Arc::new(definitions))
    }

    fn touched(routes: &Routes, name: &str, values: &[Value]) -> Vec<usize> {
        let id = routes.definitions.catalog.find_procedure(name).unwrap();
        let program = &routes.definitions.procedures.get(id.0 as usize).unwrap().program;
        let bytes = arguments::encode(program, values).unwrap();
        let call = Call { procedure: id, arguments: &bytes, key: None, wants_result: false };
        routes.partitions(&call).iter().collect()
    }

    /// Goal: partitions are found from arguments and lists, and items are everywhere.
    #[test]
    fn calls_go_where_their_rows_are() {
        let routes = routes();
        let lines = |list: &[(i32, i32)]| {
            Value::List(list.iter().map(|line| vec![line.0.into(), line.1.into()]).collect())
        };
        assert_eq!(touched(&routes, "sell", &[3.into(), lines(&[(7, 3), (5, 3)])]), [3]);
        assert_eq!(touched(&routes, "sell", &[3.into(), lines(&[(7, 3), (5, 14)])]), [3, 6]);
        assert_eq!(touched(&routes, "of_code", &[9.into()]), [1]);
        let everywhere: Vec<usize> = (0..8).collect();
        assert_eq!(touched(&routes, "load_item", &[1.into()]), everywhere);
    }

    /// Goal: what is not known before, or is in conflict across partitions, takes all of them.
    #[test]
    fn what_is_not_known_goes_everywhere() {
        let (routes, everywhere) = (routes(), (0..8).collect::<Vec<usize>>());
        assert_eq!(touched(&routes, "of_day", &[3.into()]), everywhere);
        assert_eq!(touched(&routes, "shift", &[3.into(), 4.into()]), everywhere);
        assert_eq!(touched(&routes, "order", &[3.into(), 4.into()]), everywhere, "codes are unique");
    }
}
