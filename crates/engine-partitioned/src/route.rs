//! Which partitions a call touches, from its arguments.
//!
//! A call whose partitions are not known before it runs, because keys depend on what it reads, or a scan
//! goes across them, touches all. So does a call that writes a replicated table.

use crate::footprint::{Footprint, Source, Touch};
use crate::layout::{Layout, hash_of};
use crate::partition_set::PartitionSet;
use fabius_engine::Definitions;
use fabius_engine::entry::Call;
use fabius_program::arguments::ArgumentReader;
use fabius_program::arguments::{Arguments, Signature};
use fabius_program::ir::{Program, ScalarType, Type};
use fabius_program::key_plan::KeyPlan;
use fabius_value::{Datum, TableId};
use std::sync::Arc;

/// The routes of all procedures under some definitions.
#[derive(Default)]
pub struct Routes {
    /// The definitions.
    pub definitions: Arc<Definitions>,
    /// Where rows are.
    pub layout: Layout,
    /// By procedure number.
    routes: Vec<Route>,
}

/// What is known of one procedure's calls.
pub struct Route {
    /// What it touches.
    pub footprint: Footprint,
    /// Whether its calls touch all partitions, whatever their arguments.
    is_everywhere: bool,
    /// Partitions that all of its calls touch.
    always: PartitionSet,
    /// Parameters as far as they matter: which of them say partitions.
    parameters: Vec<Parameter>,
    /// Records that its calls touch.
    pub keys: KeyPlan,
    signature: Signature,
    /// Whether these are all that they touch.
    is_of_records: bool,
}

enum Parameter {
    Scalar(ScalarType, bool),
    List(Vec<(ScalarType, bool)>),
}

impl Routes {
    /// The routes under some definitions, with so many partitions.
    pub fn of(definitions: Arc<Definitions>, partitions: usize) -> Routes {
        let catalog = &definitions.catalog;
        let footprints: Vec<Footprint> = definitions
            .procedures
            .iter()
            .map(|procedure| Footprint::of(&procedure.program, catalog))
            .collect();
        let firsts = catalog.table_numbers().map(|(_, schema)| schema.data_type(schema.primary_key[0]));
        let layout = Layout::of(partitions, firsts, &footprints);
        let routes = footprints
            .into_iter()
            .zip(definitions.procedures.iter())
            .map(|(footprint, procedure)| Route::of(footprint, &procedure.program, &layout))
            .collect();
        Routes { definitions, layout, routes }
    }

    /// The route of a procedure, if there is such a procedure.
    #[inline]
    pub fn route(&self, call: &Call<'_>) -> Option<&Route> {
        self.routes.get(call.procedure.0 as usize)
    }

    /// The partitions that a call touches; none if it needs no partition in particular.
    #[inline]
    pub fn partitions(&self, call: &Call<'_>) -> PartitionSet {
        self.route(call).map_or(PartitionSet::EMPTY, |route| route.partitions(call.arguments, &self.layout))
    }

    /// Whether a call gets a place in the log.
    #[inline]
    pub fn is_logged(&self, call: &Call<'_>, draws_random: impl Fn(usize) -> bool) -> bool {
        let procedure = self.definitions.procedure(call.procedure);
        call.key.is_some()
            || procedure
                .map_or(true, |procedure| !procedure.is_read_only || draws_random(procedure.id.0 as usize))
    }
}

impl Footprint {
    /// Whether it is nothing but records with planned keys: no ranges, no new rows, no unique values.
    fn is_of_records(&self, layout: &Layout) -> bool {
        let is_record = |touch: &Touch| layout.is_replicated(touch.table) || touch.is_planned;
        !self.claims && self.inserts.is_empty() && self.touches.iter().all(is_record)
    }
}

impl Route {
    /// Visits the records that a call touches, of tables that are divided, with partition and hash, and
    /// whether it may change them; `false` if they cannot be told from its arguments.
    pub fn visit_records(
        &self,
        arguments: &[u8],
        layout: &Layout,
        mut visit: impl FnMut(usize, u64, bool),
    ) -> bool {
        if !self.is_of_records || self.is_everywhere {
            return false;
        }
        let mut decoded = Arguments::default();
        if decoded.decode(&self.signature, arguments).is_err() {
            // It aborts before it touches anything.
            return true;
        }
        self.keys.for_each(&decoded, |table, key| {
            if let Some(partition) = layout.partition(key[0])
                && !layout.is_replicated(table)
            {
                visit(partition, hash_of(u64::from(table.0), key), self.footprint.writes(table));
            }
        });
        true
    }

    fn of(footprint: Footprint, program: &Program, layout: &Layout) -> Route {
        let mut route = Route {
            is_everywhere: false,
            always: PartitionSet::EMPTY,
            parameters: program.variables[..program.parameter_count]
                .iter()
                .map(|parameter| match &parameter.ty {
                    Type::Scalar(scalar) => Parameter::Scalar(*scalar, false),
                    Type::List(fields) => {
                        Parameter::List(fields.iter().map(|field| (field.scalar, false)).collect())
                    }
                })
                .collect(),
            signature: Signature::of(program),
            keys: KeyPlan::of(program),
            is_of_records: footprint.is_of_records(layout),
            footprint,
        };
        let mut used = 0;
        let is_written = |table: TableId| route.footprint.writes(table);
        for Touch { table, first, .. } in &route.footprint.touches {
            if layout.is_replicated(*table) {
                route.is_everywhere |= is_written(*table);
                continue;
            }
            match first {
                None => route.is_everywhere = true,
                Some(Source::Constant(value)) => {
                    let partition = layout.partition(Datum::from_value(value));
                    partition.into_iter().for_each(|partition| route.always.insert(partition));
                }
                Some(Source::Parameter(at)) => {
                    used = used.max(usize::from(*at) + 1);
                    if let Parameter::Scalar(_, says) = &mut route.parameters[usize::from(*at)] {
                        *says = true;
                    }
                }
                Some(Source::Field(at, field)) => {
                    used = used.max(usize::from(*at) + 1);
                    if let Parameter::List(fields) = &mut route.parameters[usize::from(*at)] {
                        fields[usize::from(*field)].1 = true;
                    }
                }
            }
        }
        route.parameters.truncate(used);
        route
    }

    /// The partitions that a call with these arguments touches. Arguments that do not decode touch nothing:
    /// the call will abort before it begins.
    fn partitions(&self, arguments: &[u8], layout: &Layout) -> PartitionSet {
        if self.is_everywhere {
            return PartitionSet::first(layout.partitions);
        }
        let mut set = self.always;
        let mut add = |value| layout.partition(value).into_iter().for_each(|partition| set.insert(partition));
        let mut reader = ArgumentReader::new(arguments);
        for parameter in &self.parameters {
            match parameter {
                Parameter::Scalar(scalar, says) => match reader.scalar(*scalar) {
                    Ok(value) if *says => add(value),
                    Ok(_) => {}
                    Err(_) => return set,
                },
                Parameter::List(fields) => {
                    let Ok(length) = reader.length() else { return set };
                    for (scalar, says) in (0..length).flat_map(|_| fields) {
                        match reader.scalar(*scalar) {
                            Ok(value) if *says => add(value),
                            Ok(_) => {}
                            Err(_) => return set,
                        }
                    }
                }
            }
        }
        set
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
        Routes::of(Arc::new(definitions), 8)
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
