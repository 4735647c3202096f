//! Ranges of an index, read at a standpoint.

use super::{big, int};
use crate::rig::{Make, Rig};
use fabius_engine::{BatchBuilder, ScanPlace, Standpoint, TableScan};
use fabius_value::{ColumnId, IndexId, Value};

const TABLES: &str = "
table things { shop: int, number: int, price: bigint, note: text null, primary key (shop, number),
               index by_price (price) }
table hashed { id: int, name: varchar(10) null, primary key (id) using hash, index by_name (name) }
procedure put(shop: int, number: int, price: bigint) {
    upsert things { shop: shop, number: number, price: price, note: 'n' || price::text }
}
procedure reprice(shop: int, number: int, by: bigint) { things[shop, number].price += by }
procedure take(shop: int, number: int) { delete things[shop, number] }
procedure name(id: int, name: varchar(10) null) { upsert hashed { id: id, name: name } }
";

pub(super) fn ranges_are_read_at_a_standpoint(make: Make<'_>) {
    let rig = Rig::new(make);
    rig.define(TABLES);
    let mut batch = BatchBuilder::new();
    for shop in 0..3 {
        for number in 0..400 {
            rig.push(&mut batch, "put", &[int(shop), int(number), big(i64::from(number % 7))], None);
        }
    }
    for number in 0..20 {
        let name = if number % 3 == 0 { Value::Null } else { Value::Text(format!("n{:02}", number % 5)) };
        rig.push(&mut batch, "name", &[int(number), name], None);
    }
    rig.push(&mut batch, "take", &[int(1), int(3)], None);
    rig.run(&batch.build());
    let at = Standpoint::held(&rig.foundation);
    // What comes after the standpoint is not seen from there.
    rig.call("take", &[int(1), int(4)]).unwrap();
    rig.call("reprice", &[int(1), int(5), big(100)]).unwrap();
    rig.call("put", &[int(1), int(1000), big(3)]).unwrap();

    let things = at.definitions().catalog.find_table("things").unwrap();
    let hashed = at.definitions().catalog.find_table("hashed").unwrap();
    let whole = |table| TableScan::whole(table, at.definitions().table(table).schema());
    let read = |scan: TableScan, most: usize| {
        let mut rows = Vec::new();
        let schema = at.definitions().table(scan.table).schema().clone();
        let columns = scan.columns.clone();
        let mut visit = |row: &[fabius_value::Datum<'_>]| {
            let values = row.iter().zip(&columns);
            rows.push(
                values
                    .map(|(v, column)| v.to_value(schema.data_type(*column)).to_string())
                    .collect::<Vec<_>>()
                    .join(" "),
            );
            Ok(rows.len() < most)
        };
        rig.engine.scan_at(&at, &scan, &mut visit).unwrap();
        rows
    };
    // The same in parts of so many rows.
    let in_parts = |scan: &TableScan, most: usize| {
        let (mut place, mut rows) = (ScanPlace::Begin, 0);
        while !matches!(place, ScanPlace::End) {
            let mut left = most;
            let mut visit = |_: &[fabius_value::Datum<'_>]| {
                (left, rows) = (left - 1, rows + 1);
                Ok(left > 0)
            };
            rig.engine.scan_on(&at, scan, &mut place, &mut visit).unwrap();
        }
        rows
    };
    let number = vec![ColumnId(1)];
    assert_eq!(read(whole(things), usize::MAX).len(), 1199);
    assert_eq!(read(TableScan { columns: Vec::new(), ..whole(things) }, 5), [""; 5]);
    assert_eq!([1, 7, 256, 5000].map(|most| in_parts(&whole(things), most)), [1199; 4]);

    let in_shop = TableScan { equal: vec![int(1)], columns: number.clone(), ..whole(things) };
    let expected: Vec<String> = (0..400).filter(|n| *n != 3).map(|n: i32| n.to_string()).collect();
    assert_eq!(read(in_shop.clone(), usize::MAX), expected);
    let down = TableScan { descending: true, ..in_shop.clone() };
    assert_eq!(read(down.clone(), usize::MAX), expected.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(in_parts(&down, 10), 399);
    assert_eq!(read(down, 2), ["399", "398"]);
    let between = TableScan { lower: Some((int(2), false)), upper: Some((int(6), true)), ..in_shop.clone() };
    assert_eq!(read(between, usize::MAX), ["4", "5", "6"]);
    assert_eq!(read(TableScan { lower: Some((int(398), true)), ..in_shop.clone() }, 9), ["398", "399"]);
    assert!(read(TableScan { upper: Some((Value::Null, true)), ..in_shop }, 9).is_empty());
    let one = TableScan { equal: vec![int(1), int(5)], columns: vec![ColumnId(2)], ..whole(things) };
    assert_eq!(read(one.clone(), 9), ["5"]);
    assert!(read(TableScan { equal: vec![int(1), int(3)], ..one }, 9).is_empty());

    let by_price =
        TableScan { index: Some(IndexId(0)), equal: vec![big(5)], columns: number, ..whole(things) };
    assert_eq!(read(by_price.clone(), usize::MAX).len(), 57 * 3);
    assert_eq!(read(by_price.clone(), 3), ["5", "12", "19"]);
    assert_eq!(in_parts(&by_price, 2), 57 * 3);
    assert_eq!(read(TableScan { equal: Vec::new(), descending: true, ..by_price }, usize::MAX).len(), 1199);

    let id = vec![ColumnId(0)];
    assert_eq!(
        read(TableScan { equal: vec![int(4)], columns: vec![ColumnId(1)], ..whole(hashed) }, 9),
        ["n04"]
    );
    let by_name = TableScan { index: Some(IndexId(0)), columns: id, ..whole(hashed) };
    let from = TableScan { lower: Some((Value::Text("n03".into()), true)), ..by_name.clone() };
    assert_eq!(read(from, usize::MAX), ["8", "13", "4", "14", "19"]);
    assert_eq!(read(by_name, usize::MAX).len(), 20);
    let unordered = TableScan { descending: true, ..whole(hashed) };
    rig.engine.scan_at(&at, &unordered, &mut |_| Ok(true)).unwrap_err();
}
