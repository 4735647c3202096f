//! Statements and whole procedures.

use super::scope::{Kind, List, Scalar, Scope};
use super::values;
use fabius_env::Random;
use fabius_program::catalog::Catalog;
use fabius_value::{ColumnId, DataType, IndexId, TableId};
use std::fmt::Write;

/// Statements in one procedure, about.
const STATEMENTS: usize = 9;
/// Blocks in blocks.
const NESTING: usize = 3;

/// The text of a procedure over the catalog's tables.
pub(super) fn procedure(random: Random, catalog: &Catalog, is_brief: bool) -> String {
    let mut writer = Writer { is_brief, ..Writer::new(random, catalog) };
    let parameters = writer.parameters();
    let results = if writer.is_brief {
        (0..1 + writer.random.index(2)).for_each(|_| match writer.random.chance(1, 2) {
            true => writer.overwrite_each(),
            false => writer.overwrite(),
        });
        String::new()
    } else {
        (0..1 + writer.random.index(STATEMENTS)).for_each(|_| writer.statement());
        writer.results()
    };
    format!("procedure p({parameters}){results} {{\n{}}}\n", writer.text)
}

/// Writes one procedure.
pub(super) struct Writer<'c> {
    pub random: Random,
    pub catalog: &'c Catalog,
    pub scope: Scope,
    /// In a scan's filter, where no other row is looked up.
    pub in_filter: bool,
    /// In a procedure that only writes to a few rows: see [`Writer::overwrite`].
    pub is_brief: bool,
    text: String,
    depth: usize,
    names: usize,
    /// Tables and indexes that loops around go along.
    scanned: Vec<(TableId, Option<IndexId>)>,
    /// Lists that loops around go over.
    iterated: Vec<String>,
}

impl<'c> Writer<'c> {
    fn new(random: Random, catalog: &'c Catalog) -> Writer<'c> {
        Writer {
            random,
            catalog,
            scope: Scope::default(),
            in_filter: false,
            is_brief: false,
            text: String::new(),
            depth: 0,
            names: 0,
            scanned: Vec::new(),
            iterated: Vec::new(),
        }
    }

    pub fn pick<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        if all.is_empty() { None } else { Some(all[self.random.index(all.len())].clone()) }
    }

    pub fn any_table(&mut self) -> TableId {
        let count = self.catalog.tables().count();
        TableId(self.random.index(count) as u32)
    }

    fn name(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }

    fn line(&mut self, text: &str) {
        let indent = 4 * (self.depth + 1);
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    /// Declares parameters: keys first, then values, then perhaps a list.
    fn parameters(&mut self) -> String {
        let mut parts = vec!["a: int".to_string(), "b: varchar(4)".into(), "n: bigint".into()];
        for (name, kind) in [("a", Kind::Integer), ("b", Kind::Text), ("n", Kind::Integer)] {
            let key = name != "n";
            self.scope.scalars.push(Scalar { name: name.into(), kind, nullable: false, mutable: false, key });
        }
        let types: &[(&str, Kind)] = &[
            ("int", Kind::Integer),
            ("numeric(8, 2)", Kind::Numeric),
            ("double precision", Kind::Double),
            ("text", Kind::Text),
            ("date", Kind::Date),
            ("timestamp", Kind::Timestamp),
            ("bytea", Kind::Bytes),
            ("boolean", Kind::Boolean),
        ];
        for _ in 0..self.random.index(4) {
            let (data_type, kind) = types[self.random.index(types.len())];
            let (name, nullable) = (self.name("p"), self.random.chance(1, 4));
            parts.push(format!("{name}: {data_type}{}", if nullable { " null" } else { "" }));
            let key = !nullable && matches!(kind, Kind::Date | Kind::Timestamp | Kind::Bytes);
            self.scope.scalars.push(Scalar { name, kind, nullable, mutable: false, key });
        }
        if self.random.chance(1, 2) {
            let name = self.name("l");
            let fields = if self.random.chance(1, 2) {
                parts.push(format!("{name}: list of int"));
                vec![(String::new(), Kind::Integer, false)]
            } else {
                parts.push(format!("{name}: list of (k: int, v: numeric(8, 2) null)"));
                vec![("k".into(), Kind::Integer, false), ("v".into(), Kind::Numeric, true)]
            };
            self.scope.lists.push(List { name, fields, mutable: false });
        }
        parts.join(", ")
    }

    /// Writes the `return`, if there is one; what follows the parameters.
    fn results(&mut self) -> String {
        if self.random.chance(1, 4) {
            return String::new();
        }
        let (mut declared, mut values) = (Vec::new(), Vec::new());
        for at in 0..1 + self.random.index(3) {
            let kind = Kind::USUAL[self.random.index(Kind::USUAL.len())];
            let value = self.expression(kind, 1);
            declared.push(format!("r{at}: {} null", kind.type_name()));
            values.push(value.text);
        }
        let lists: Vec<List> = self.scope.lists.iter().filter(|list| list.mutable).cloned().collect();
        if let Some(list) = self.pick(&lists) {
            declared.push(format!("r: {}", list_type(&list)));
            values.push(list.name);
        }
        self.line(&format!("return {}", values.join(", ")));
        format!(" -> ({})", declared.join(", "))
    }

    fn block(&mut self, statements: usize) {
        let scope = self.scope.clone();
        self.depth += 1;
        for _ in 0..statements {
            self.statement();
        }
        self.depth -= 1;
        self.scope = scope;
    }

    fn statement(&mut self) {
        let nested = self.depth >= NESTING;
        match self.random.index(if nested { 14 } else { 20 }) {
            0 | 1 => self.declare(),
            2 => self.assign(),
            3 => self.require(),
            4..=7 => self.assign_column(),
            8 | 9 => self.update(),
            10 => self.insert(),
            11 => self.upsert(),
            12 => self.delete(),
            13 if self.random.chance(1, 3) => self.sort(),
            13 => self.append(),
            14 | 15 => self.branch(),
            16 => self.for_range(),
            17 => self.for_list(),
            _ => self.for_scan(),
        }
    }

    /// Writes to a row that many others are written to by, too, by what it is or without asking: calls that do make
    /// chains of deferred ones, and make those pointless that others have left there.
    fn overwrite(&mut self) {
        let table = if self.random.chance(1, 2) { TableId(0) } else { self.any_table() };
        let row = self.row_by_key(table);
        let kind = self.random.index(12);
        if kind == 0 {
            return self.upsert();
        }
        self.line(&format!("if exists {row} {{"));
        self.depth += 1;
        let scope = self.scope.clone();
        if self.random.chance(2, 3) {
            self.scope.rows.push((row.clone(), table));
        }
        match kind {
            1 => self.line(&format!("delete {row}")),
            2..7 => self.assign_column_of(table, &row),
            _ => self.update_of(table, &row),
        }
        self.scope = scope;
        self.close(true);
    }

    /// Writes to the rows that the elements of an argument name: calls that do are taken apart, turn by turn.
    fn overwrite_each(&mut self) {
        let lists = self.scope.lists.clone();
        let Some(list) = self.pick(&lists) else { return self.overwrite() };
        let scope = self.scope.clone();
        self.scope.scalars.iter_mut().for_each(|scalar| scalar.key &= scalar.kind != Kind::Integer);
        self.open_list(&list);
        self.is_brief = false;
        for _ in 0..1 + self.random.index(2) {
            if self.random.chance(1, 4) {
                self.require();
            }
            let table = self.any_table();
            let row = self.row_by_key(table);
            let asks = self.random.chance(1, 2);
            if asks {
                self.line(&format!("if exists {row} {{"));
                self.depth += 1;
            }
            self.scope.rows.push((row.clone(), table));
            self.assign_column_of(table, &row);
            self.close(asks);
        }
        self.is_brief = true;
        self.scope = scope;
        self.close(true);
    }

    /// Opens a loop over a list, with its element in scope.
    fn open_list(&mut self, list: &List) {
        let name = self.name("e");
        self.line(&format!("for {name} in {} {{", list.name));
        self.depth += 1;
        for (field, kind, nullable) in &list.fields {
            let name = if field.is_empty() { name.clone() } else { format!("{name}.{field}") };
            let key = *kind == Kind::Integer;
            self.scope.scalars.push(Scalar { name, kind: *kind, nullable: *nullable, mutable: false, key });
        }
    }

    fn declare(&mut self) {
        if self.random.chance(1, 5) {
            let name = self.name("l");
            let kinds = [Kind::Integer, Kind::Numeric, Kind::Text, Kind::Bytes, Kind::Timestamp];
            let fields = if self.random.chance(1, 2) {
                vec![(String::new(), kinds[self.random.index(kinds.len())], true)]
            } else {
                let second = kinds[self.random.index(kinds.len())];
                vec![("x".into(), Kind::Integer, true), ("y".into(), second, true)]
            };
            let list = List { name, fields, mutable: true };
            self.line(&format!("var {}: {} = []", list.name, list_type(&list)));
            self.scope.lists.push(list);
            return;
        }
        let kind = Kind::USUAL[self.random.index(Kind::USUAL.len())];
        let (value, name, mutable) = (self.expression(kind, 2), self.name("v"), self.random.chance(1, 2));
        let word = if mutable { "var" } else { "let" };
        let null = if value.nullable { " null" } else { "" };
        self.line(&format!("{word} {name}: {}{null} = {}", kind.type_name(), value.text));
        self.scope.scalars.push(Scalar { name, kind, nullable: value.nullable, mutable, key: false });
    }

    fn assign(&mut self) {
        let mutable: Vec<Scalar> =
            self.scope.scalars.iter().filter(|scalar| scalar.mutable).cloned().collect();
        let Some(scalar) = self.pick(&mutable) else { return self.declare() };
        let value = self.expression(scalar.kind, 2);
        let text = match value.nullable && !scalar.nullable {
            true => format!("coalesce({}, {})", value.text, scalar.name),
            false => value.text,
        };
        let text = match scalar.kind {
            // Sums of sums in loops soon leave every range.
            Kind::Integer | Kind::Numeric => format!("({text}) % 10000"),
            _ => text,
        };
        self.line(&format!("{} = {text}", scalar.name));
    }

    fn require(&mut self) {
        let condition = self.condition(1).text;
        let message = self.name("requirement ");
        // Alone, every second one would fail.
        match self.random.index(3) {
            0 if self.random.chance(1, 2) => self.line(&format!("require {condition}, \"{message}\"")),
            0 => {
                let (said, detail) =
                    (self.expression(Kind::Text, 1).text, self.expression(Kind::Text, 1).text);
                self.line(&format!(
                    "require {condition}, '{message}' || {said}, sqlstate '23514', detail {detail}"
                ));
            }
            _ => self.line(&format!("require ({condition}) or a < 5, \"{message}\"")),
        }
    }

    /// Columns that may be updated here.
    fn updatable(&self, table: TableId) -> Vec<ColumnId> {
        let schema = self.catalog.table(table);
        let mut fixed = schema.key_mask();
        for (scanned, index) in &self.scanned {
            if let Some(index) = index
                && *scanned == table
            {
                fixed = fixed.union(schema.indexes[usize::from(index.0)].columns.iter().copied().collect());
            }
        }
        schema.all_mask().without(fixed).iter().collect()
    }

    /// A row to write to: its table and how to name it; opens a block that asks whether it is there.
    fn row_to_write(&mut self) -> (TableId, String, bool) {
        let rows = self.scope.rows.clone();
        if let Some((name, table)) = self.pick(&rows)
            && self.random.chance(3, 4)
        {
            return (table, name, false);
        }
        let table = self.any_table();
        let row = self.row_by_key(table);
        let asks = self.random.chance(24, 25);
        if asks {
            self.line(&format!("if exists {row} {{"));
            self.depth += 1;
        }
        (table, row, asks)
    }

    fn close(&mut self, open: bool) {
        if open {
            self.depth -= 1;
            self.line("}");
        }
    }

    fn assign_column(&mut self) {
        let (table, row, open) = self.row_to_write();
        self.assign_column_of(table, &row);
        self.close(open);
    }

    fn assign_column_of(&mut self, table: TableId, row: &str) {
        let columns = self.updatable(table);
        if let Some(column) = self.pick(&columns) {
            let schema = self.catalog.table(table).columns[usize::from(column.0)].clone();
            let kind = Kind::of(schema.data_type);
            let number = matches!(kind, Kind::Integer | Kind::Numeric);
            if number && self.random.chance(2, 3) {
                let operator = ["+=", "-=", "greatest", "least"][self.random.index(4)];
                let operand = self.leaf(kind);
                let operand = match operand.nullable && !schema.nullable {
                    true => format!("coalesce({}, 1)", operand.text),
                    false => operand.text,
                };
                let name = &schema.name;
                self.line(&match operator {
                    "+=" | "-=" => format!("{row}.{name} {operator} {operand}"),
                    _ => format!("{row}.{name} = {operator}({row}.{name}, {operand})"),
                });
            } else {
                let value = self.value_for(table, column, 2);
                self.line(&format!("{row}.{} = {value}", schema.name));
            }
        }
    }

    fn update(&mut self) {
        let (table, row, open) = self.row_to_write();
        self.update_of(table, &row);
        self.close(open);
    }

    fn update_of(&mut self, table: TableId, row: &str) {
        let columns = self.updatable(table);
        let values = self.values(table, columns, 2);
        if !values.is_empty() {
            self.line(&format!("update {row} {{ {values} }}"));
        }
    }

    /// `c0: ..., c1: ...` for some of the columns.
    fn values(&mut self, table: TableId, mut columns: Vec<ColumnId>, of: u64) -> String {
        let random = &mut self.random;
        // Of many, not many at once.
        let of = of * (columns.len() as u64).div_ceil(8);
        columns.retain(|_| random.chance(1, of));
        if self.random.chance(1, 3) {
            columns.reverse();
        }
        let schema = self.catalog.table(table).clone();
        let value = |column: ColumnId| {
            let name = &schema.columns[usize::from(column.0)].name;
            format!("{name}: {}", self.value_for(table, column, 2))
        };
        columns.into_iter().map(value).collect::<Vec<String>>().join(", ")
    }

    /// A table that may get rows here.
    fn table_to_extend(&mut self) -> Option<TableId> {
        let scanned: Vec<TableId> = self.scanned.iter().map(|(table, _)| *table).collect();
        Some(self.any_table()).filter(|table| !scanned.contains(table))
    }

    fn new_row(&mut self, table: TableId, keys: &[String]) -> String {
        let schema = self.catalog.table(table).clone();
        let key = schema.key_mask();
        let mut parts = Vec::new();
        for (column, value) in schema.primary_key.iter().zip(keys) {
            parts.push(format!("{}: {value}", schema.columns[usize::from(column.0)].name));
        }
        for column in schema.all_mask().without(key).iter() {
            let declared = &schema.columns[usize::from(column.0)];
            let of = 2 * schema.columns.len().div_ceil(8) as u64;
            if !declared.nullable || self.random.chance(1, of) {
                parts.push(format!("{}: {}", declared.name, self.value_for(table, column, 1)));
            }
        }
        format!("{} {{ {} }}", schema.name, parts.join(", "))
    }

    fn keys(&mut self, table: TableId) -> Vec<String> {
        let schema = self.catalog.table(table).clone();
        schema.primary_key.iter().map(|column| self.key_value(schema.data_type(*column))).collect()
    }

    fn insert(&mut self) {
        let Some(table) = self.table_to_extend() else { return };
        let keys = self.keys(table);
        let row = self.new_row(table, &keys);
        if self.random.chance(1, 12) {
            return self.line(&format!("insert {row}"));
        }
        let key = format!("{}[{}]", self.catalog.table(table).name, keys.join(", "));
        self.line(&format!("if not exists {key} {{"));
        self.depth += 1;
        self.line(&format!("insert {row}"));
        self.close(true);
    }

    fn upsert(&mut self) {
        let Some(table) = self.table_to_extend() else { return };
        let keys = self.keys(table);
        let row = self.new_row(table, &keys);
        self.line(&format!("upsert {row}"));
    }

    fn delete(&mut self) {
        let (_, row, open) = self.row_to_write();
        self.line(&format!("delete {row}"));
        self.close(open);
    }

    fn sort(&mut self) {
        let lists: Vec<List> = self.scope.lists.iter().filter(|list| list.mutable).cloned().collect();
        let Some(list) = self.pick(&lists) else { return self.declare() };
        if self.iterated.contains(&list.name) {
            return self.declare();
        }
        let direction = ["", " descending", " nulls first", " descending nulls last"][self.random.index(4)];
        let by = match list.fields.len() {
            1 => String::new(),
            _ => [" by x", " by y", " by y, x"][self.random.index(3)].to_string(),
        };
        self.line(&format!("sort {}{by}{direction}", list.name));
    }

    fn append(&mut self) {
        let lists =
            self.scope.lists.iter().filter(|list| list.mutable && !self.iterated.contains(&list.name));
        let lists: Vec<List> = lists.cloned().collect();
        let Some(list) = self.pick(&lists) else { return self.declare() };
        let values: Vec<String> =
            list.fields.iter().map(|(_, kind, _)| self.expression(*kind, 1).text).collect();
        self.line(&format!("append {} ({})", list.name, values.join(", ")));
    }

    fn branch(&mut self) {
        let condition = self.condition(1).text;
        self.line(&format!("if {condition} {{"));
        let statements = 1 + self.random.index(2);
        self.block(statements);
        if self.random.chance(1, 2) {
            self.line("} else {");
            self.block(1);
        }
        self.line("}");
    }

    fn for_range(&mut self) {
        let (name, from) = (self.name("n"), self.random.below(KEYS_HALF));
        let to = match self.random.index(3) {
            0 => "n".to_string(),
            _ => format!("{}", from + self.random.below(3)),
        };
        self.line(&format!("for {name} in {from} to least({to}, 5) {{"));
        let scope = self.scope.clone();
        self.scope.scalars.push(Scalar {
            name,
            kind: Kind::Integer,
            nullable: false,
            mutable: false,
            key: true,
        });
        let statements = 1 + self.random.index(2);
        self.block(statements);
        self.scope = scope;
        self.line("}");
    }

    fn for_list(&mut self) {
        let lists = self.scope.lists.clone();
        let Some(list) = self.pick(&lists) else { return self.for_range() };
        let scope = self.scope.clone();
        self.open_list(&list);
        self.depth -= 1;
        self.iterated.push(list.name);
        let statements = 1 + self.random.index(2);
        self.block(statements);
        self.iterated.pop();
        self.scope = scope;
        self.line("}");
    }

    fn for_scan(&mut self) {
        let table = self.any_table();
        let schema = self.catalog.table(table).clone();
        let indexes = (0..schema.indexes.len() as u16).map(IndexId);
        let mut ways: Vec<Option<IndexId>> = indexes.map(Some).collect();
        if !schema.hash {
            ways.push(None);
        }
        let Some(index) = self.pick(&ways) else { return self.for_list() };
        let name = self.name("r");
        let (by, columns) = match index {
            Some(index) => {
                let index = &schema.indexes[usize::from(index.0)];
                (format!(" by {}", index.name), index.columns.clone())
            }
            None => (String::new(), schema.primary_key.clone()),
        };
        let types: Vec<DataType> = columns.iter().map(|column| schema.data_type(*column)).collect();
        let range = self.range(&types);
        let outer = self.scope.clone();
        self.scope.rows.push((name.clone(), table));
        self.in_filter = true;
        let filter = match self.random.chance(1, 3) {
            true => format!(" where {}", self.condition(1).text),
            false => String::new(),
        };
        self.in_filter = false;
        let descending = if self.random.chance(1, 3) { " descending" } else { "" };
        let limit = match self.random.index(8) {
            0 | 1 => format!(" limit {}", self.random.below(4)),
            2 => " limit n".into(),
            _ => String::new(),
        };
        self.line(&format!("for {name} in {}{by}{range}{filter}{descending}{limit} {{", schema.name));
        self.scanned.push((table, index));
        let statements = 1 + self.random.index(2);
        self.block(statements);
        self.scanned.pop();
        self.scope = outer;
        self.line("}");
    }

    /// `[a, 1 .. 4]` over leading columns of an index.
    fn range(&mut self, types: &[DataType]) -> String {
        if self.random.chance(1, 3) {
            return String::new();
        }
        let equal = self.random.index(types.len() + 1);
        let mut parts: Vec<String> = types[..equal].iter().map(|ty| self.bound(*ty)).collect();
        if let Some(next) = types.get(equal)
            && (parts.is_empty() || self.random.chance(1, 2))
        {
            let dots = ["..", "<..", "..<", "<..<"][self.random.index(4)];
            let (low, high) = (self.bound(*next), self.bound(*next));
            parts.push(match (dots, self.random.index(3)) {
                (".." | "<..", 0) => format!("{low} {dots}"),
                (".." | "..<", 1) => format!("{dots} {high}"),
                _ => format!("{low} {dots} {high}"),
            });
        }
        format!("[{}]", parts.join(", "))
    }

    fn bound(&mut self, data_type: DataType) -> String {
        match Kind::of(data_type) {
            Kind::Integer => self.key_value(data_type),
            kind @ (Kind::Text | Kind::Bytes | Kind::Date | Kind::Timestamp) => {
                values::key_literal(kind, self.random.below(super::KEYS))
            }
            kind => self.leaf(kind).text,
        }
    }
}

const KEYS_HALF: u64 = super::KEYS / 2;

fn list_type(list: &List) -> String {
    match list.fields.as_slice() {
        [(name, kind, _)] if name.is_empty() => format!("list of {} null", kind.type_name()),
        fields => {
            let fields: Vec<String> =
                fields.iter().map(|(name, kind, _)| format!("{name}: {} null", kind.type_name())).collect();
            format!("list of ({})", fields.join(", "))
        }
    }
}
