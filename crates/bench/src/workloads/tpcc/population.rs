//! The rows to begin with (clause 4.3.3.1).

use super::input::{self, between, data, digits, text, zip};
use super::{DISTRICTS, Scale};
use crate::loader::Loader;
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::ArgumentWriter;

/// Rows of one loading call.
const ROWS: usize = 500;
/// Of 3,000 orders, the last 900 are not delivered yet.
const UNDELIVERED: (u64, u64) = (900, 3000);

/// Loads everything.
///
/// # Errors
/// Why a loading call aborted.
pub fn load(scale: Scale, seed: u64, loader: &mut Loader<'_>) -> Result<()> {
    let mut random = Random::seeded(seed);
    let items: Vec<u64> = (1..=scale.items).collect();
    for numbers in items.chunks(ROWS) {
        loader.call("load_items", |writer| {
            writer.list(numbers.len());
            for &number in numbers {
                writer.int(number as i64).int(between(&mut random, 1, 10_000) as i64);
                writer.text(&text(&mut random, 14, 24)).numeric(between(&mut random, 100, 10_000).into());
                writer.text(&data(&mut random));
            }
        })?;
    }
    for w_id in 1..=scale.warehouses {
        warehouse(scale, w_id as i64, &mut random, loader)?;
    }
    Ok(())
}

fn warehouse(scale: Scale, w_id: i64, random: &mut Random, loader: &mut Loader<'_>) -> Result<()> {
    loader.call("load_warehouse", |writer| {
        writer.int(w_id);
        place(writer, random);
        writer.numeric(30_000_000);
    })?;
    let items: Vec<u64> = (1..=scale.items).collect();
    for numbers in items.chunks(ROWS) {
        loader.call("load_stock", |writer| {
            writer.int(w_id).list(numbers.len());
            for &number in numbers {
                writer.int(number as i64).int(between(random, 10, 100) as i64);
                writer.text(&text(random, 240, 240)).text(&data(random));
            }
        })?;
    }
    for d_id in 1..=DISTRICTS as i64 {
        loader.call("load_district", |writer| {
            writer.int(w_id).int(d_id);
            place(writer, random);
            writer.numeric(3_000_000).int(scale.customers as i64 + 1);
        })?;
        customers(scale, w_id, d_id, random, loader)?;
        orders(scale, w_id, d_id, random, loader)?;
    }
    Ok(())
}

/// Name, address and tax of a warehouse or district.
fn place(writer: &mut ArgumentWriter<'_>, random: &mut Random) {
    writer.text(&text(random, 6, 10));
    address(writer, random);
    writer.numeric(between(random, 0, 2000).into());
}

fn address(writer: &mut ArgumentWriter<'_>, random: &mut Random) {
    writer.text(&text(random, 10, 20)).text(&text(random, 10, 20)).text(&text(random, 10, 20));
    writer.text(&text(random, 2, 2)).text(&zip(random));
}

fn customers(scale: Scale, w_id: i64, d_id: i64, random: &mut Random, loader: &mut Loader<'_>) -> Result<()> {
    let numbers: Vec<u64> = (1..=scale.customers).collect();
    for numbers in numbers.chunks(ROWS) {
        loader.call("load_customers", |writer| {
            writer.int(w_id).int(d_id).list(numbers.len());
            for &number in numbers {
                // The first thousand have each last name once.
                let last = match number {
                    1..=input::LAST_NAMES => number - 1,
                    _ => input::last_name_number(random, input::LAST_LOAD, scale.customers),
                };
                writer.int(number as i64).text(&text(random, 8, 16)).text(&input::last_name(last));
                address(writer, random);
                writer.text(&digits(random, 16)).text(if random.chance(1, 10) { "BC" } else { "GC" });
                writer.numeric(between(random, 0, 5000).into()).text(&text(random, 300, 500));
            }
        })?;
    }
    for numbers in numbers.chunks(ROWS) {
        loader.call("load_history", |writer| {
            writer.int(w_id).int(d_id).list(numbers.len());
            for &number in numbers {
                let id = (w_id * DISTRICTS as i64 + d_id - 1) * scale.customers as i64 + number as i64;
                writer.int(id).int(number as i64).text(&text(random, 12, 24));
            }
        })?;
    }
    Ok(())
}

/// An order to begin with.
struct Order {
    id: u64,
    customer: u64,
    is_delivered: bool,
    lines: u64,
}

fn orders(scale: Scale, w_id: i64, d_id: i64, random: &mut Random, loader: &mut Loader<'_>) -> Result<()> {
    let undelivered_from = scale.customers - scale.customers * UNDELIVERED.0 / UNDELIVERED.1 + 1;
    let customers = input::permutation(random, scale.customers);
    let order = |(at, customer): (usize, &u64)| {
        let id = at as u64 + 1;
        Order { id, customer: *customer, is_delivered: id < undelivered_from, lines: between(random, 5, 15) }
    };
    let orders: Vec<Order> = customers.iter().enumerate().map(order).collect();
    for orders in orders.chunks(ROWS) {
        loader.call("load_orders", |writer| {
            writer.int(w_id).int(d_id).list(orders.len());
            for order in orders {
                let carrier = order.is_delivered.then(|| between(random, 1, 10) as i64);
                writer.int(order.id as i64).int(order.customer as i64);
                writer.null_or(carrier, |writer, carrier| writer.int(carrier)).int(order.lines as i64);
            }
        })?;
    }
    for orders in orders.chunks(ROWS / 10) {
        loader.call("load_order_lines", |writer| {
            let lines: u64 = orders.iter().map(|order| order.lines).sum();
            writer.int(w_id).int(d_id).list(lines as usize);
            for order in orders {
                for number in 1..=order.lines {
                    let amount = if order.is_delivered { 0 } else { between(random, 1, 999_999) };
                    writer
                        .int(order.id as i64)
                        .int(number as i64)
                        .int(between(random, 1, scale.items) as i64);
                    writer.boolean(order.is_delivered).numeric(amount.into()).text(&text(random, 24, 24));
                }
            }
        })?;
    }
    Ok(())
}
