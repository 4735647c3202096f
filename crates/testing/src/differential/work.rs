//! What is handed in: tables, rows, programs, and batches of calls.

use crate::generate;
use crate::rig::Rig;
use fabius_engine::{Batch, BatchBuilder};
use fabius_env::Random;
use fabius_program::catalog::Catalog;
use fabius_value::{Column, Seq, TableId, TableSchema, Value};
use std::fmt::{self, Display};
use std::sync::Arc;

/// Programs that come in later, between calls.
const SPARE: usize = 3;

/// The definitions and rows of one seed.
pub struct Work {
    catalog: Catalog,
    tables: Vec<String>,
    programs: Vec<String>,
    spare: Vec<String>,
    rows: Vec<(TableId, Vec<Value>)>,
}

/// A batch, with what it takes to find its calls in the log and to hand them in again.
///
/// A call of a batch is found by its idempotency key, and a call without one by its seq, if it is handed in alone.
/// Where several come together without keys, calls that look alike are counted. Whatever has no key must write,
/// because an engine need not log what only reads.
#[derive(Clone)]
pub struct Submitted {
    /// The batch.
    pub batch: Arc<Batch>,
    /// The batch's calls.
    pub calls: Vec<Planned>,
    /// What had been promised when it was made: its calls come after that.
    pub after: Seq,
}

/// One call of a batch.
#[derive(Clone)]
pub struct Planned {
    /// The procedure's name.
    pub name: String,
    /// The arguments.
    pub arguments: Vec<Value>,
    /// The call's idempotency key.
    pub key: Option<Vec<u8>>,
    /// Whether anybody will ask for what it returns.
    pub wants_result: bool,
}

impl Work {
    /// Tables, so many programs, and rows.
    pub fn generate(random: &mut Random, programs: usize) -> Work {
        let catalog = generate::schema(random.next_u64());
        let tables = catalog.tables().map(|(_, schema)| table_text(schema)).collect();
        // Of many small writes to few rows, whatever can become of a row in between does.
        let is_brief = random.chance(2, 5);
        let mut program = |name: String| {
            let program = match is_brief {
                true => generate::brief_program(random.next_u64(), &catalog),
                false => generate::program(random.next_u64(), &catalog),
            };
            // Every program has the same name, and a name of its own here.
            program.text.replacen(&format!("procedure {}", program.name), &format!("procedure {name}"), 1)
        };
        let programs = (0..programs).map(|number| program(format!("p{number}"))).collect();
        let spare = (0..SPARE).map(|number| program(format!("spare{number}"))).collect();
        let rows = generate::rows(random.next_u64(), &catalog);
        Work { catalog, tables, programs, spare, rows }
    }

    /// Defines everything, and loads the rows.
    pub fn define(&self, rig: &Rig) {
        self.tables.iter().for_each(|text| rig.define(text));
        self.readable().for_each(|schema| rig.define(&reader_text(schema)));
        self.programs.iter().for_each(|text| rig.define(text));
        for (table, _) in self.catalog.tables() {
            rig.define(&generate::loader(&self.catalog, table).text);
        }
        let mut batch = BatchBuilder::new();
        for (table, row) in &self.rows {
            rig.push(&mut batch, &format!("load_{}", self.catalog.table(*table).name), row, None);
        }
        rig.run(&batch.build());
    }

    /// Defines one program more, between calls; gives its name.
    pub fn define_spare(&self, rig: &Rig, number: usize) -> String {
        rig.define(&self.spare[number % SPARE]);
        format!("spare{}", number % SPARE)
    }

    /// Whether all of it, but for spare programs, is defined, after a crash.
    pub fn is_defined(&self, rig: &Rig) -> bool {
        let catalog = rig.foundation.definitions().catalog.clone();
        self.tables().all(|name| catalog.find_table(name).is_some())
            && (0..self.programs.len()).all(|number| catalog.find_procedure(&format!("p{number}")).is_some())
    }

    /// Tables that a program can go over, each with one that gives all its rows: see [`Work::reader`].
    fn readable(&self) -> impl Iterator<Item = &TableSchema> {
        self.catalog.tables().map(|(_, schema)| &**schema).filter(|schema| !schema.hash)
    }

    /// A table and the program that reads it, if there is one.
    pub fn reader(&self, random: &mut Random) -> Option<(&str, String)> {
        let readable: Vec<&TableSchema> = self.readable().collect();
        let schema = readable.get(random.index(readable.len().max(1)))?;
        Some((&schema.name, reader_name(schema)))
    }

    /// The names of its tables.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.catalog.tables().map(|(_, schema)| schema.name.as_str())
    }

    /// A batch of up to so many random calls, not yet handed in, of the programs and perhaps a spare one;
    /// `id` makes its keys unique.
    pub fn batch(
        &self,
        rig: &Rig,
        random: &mut Random,
        calls: usize,
        id: &str,
        spare: Option<&str>,
    ) -> Submitted {
        let is_alone = random.chance(1, 3);
        let has_names = !is_alone && random.chance(2, 3);
        let count = if is_alone { 1 } else { 1 + random.index(calls) };
        let call = |place| {
            let name = match spare {
                Some(spare) if random.chance(1, 4) => spare.to_string(),
                _ => format!("p{}", random.index(self.programs.len())),
            };
            let procedure = rig.procedure(&name);
            let arguments = generate::arguments(random.next_u64(), &procedure.program);
            let key = (has_names || procedure.is_read_only).then(|| format!("{id} {place}").into_bytes());
            let wants_result = (is_alone || key.is_some()) && random.chance(1, 2);
            Planned { name, arguments, key, wants_result }
        };
        Submitted::of(rig, (0..count).map(call).collect(), rig.foundation.promised())
    }
}

impl Submitted {
    /// Whether another engine, which may lack the newest definitions, can take its calls again.
    pub fn can_be_repeated(&self, rig: &Rig) -> bool {
        let catalog = rig.foundation.definitions().catalog.clone();
        self.calls.iter().all(|call| call.key.is_some() && catalog.find_procedure(&call.name).is_some())
    }

    /// A batch of these calls, not yet handed in, which come after a seq.
    pub fn of(rig: &Rig, calls: Vec<Planned>, after: Seq) -> Submitted {
        let mut builder = BatchBuilder::new();
        for Planned { name, arguments, key, wants_result } in &calls {
            rig.push_call(&mut builder, name, arguments, key.as_deref(), *wants_result);
        }
        Submitted { batch: builder.build(), calls, after }
    }

    /// Whether the call at a place can only be told from calls that look different.
    pub fn is_nameless(&self, place: usize) -> bool {
        self.calls.len() > 1 && self.calls[place].key.is_none()
    }
}

impl Display for Work {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tables
            .iter()
            .chain(&self.programs)
            .chain(&self.spare)
            .try_for_each(|text| writeln!(formatter, "{text}"))
    }
}

fn reader_name(schema: &TableSchema) -> String {
    format!("read_{}", schema.name)
}

/// A program that gives all rows of a table.
fn reader_text(schema: &TableSchema) -> String {
    let list = |part: &dyn Fn(&Column) -> String| {
        let parts: Vec<String> = schema.columns.iter().map(part).collect();
        parts.join(", ")
    };
    let fields = list(&|column| {
        format!("{}: {}{}", column.name, column.data_type, if column.nullable { " null" } else { "" })
    });
    let values = list(&|column| format!("row.{}", column.name));
    format!(
        "procedure {}() -> list of ({fields}) {{
             var rows: list of ({fields}) = []
             for row in {} {{ append rows ({values}) }}
             return rows
         }}",
        reader_name(schema),
        schema.name
    )
}

/// A table's definition as text.
fn table_text(schema: &TableSchema) -> String {
    let names = |columns: &[fabius_value::ColumnId]| {
        let names: Vec<&str> =
            columns.iter().map(|column| schema.columns[usize::from(column.0)].name.as_str()).collect();
        names.join(", ")
    };
    let mut parts: Vec<String> = Vec::new();
    for column in &schema.columns {
        parts.push(format!(
            "{}: {}{}",
            column.name,
            column.data_type,
            if column.nullable { " null" } else { "" }
        ));
    }
    parts.push(format!(
        "primary key ({}){}",
        names(&schema.primary_key),
        if schema.hash { " using hash" } else { "" }
    ));
    for index in &schema.indexes {
        let unique = if index.unique { "unique " } else { "" };
        parts.push(format!("{unique}index {} ({})", index.name, names(&index.columns)));
    }
    format!("table {} {{ {} }}", schema.name, parts.join(", "))
}
