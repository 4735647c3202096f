//! The calls: which transaction comes next, and its input data.

use super::input::{self, between};
use super::{DISTRICTS, Scale};
use crate::workload::{Client, ClientPlace};
use fabius_env::Random;
use fabius_program::arguments::ArgumentWriter;

// Places in `super::OPERATIONS`.
const NEW_ORDER: usize = 0;
const PAYMENT: usize = 1;
const PAYMENT_BY_NAME: usize = 2;
const ORDER_STATUS: usize = 3;
const ORDER_STATUS_BY_NAME: usize = 4;
const DELIVERY: usize = 5;
const STOCK_LEVEL: usize = 6;

/// Someone who makes transactions, one after another.
pub struct Terminal {
    scale: Scale,
    is_full: bool,
    cross: Option<f64>,
    random: Random,
    next_history: i64,
}

impl Terminal {
    /// A terminal; `cross` is the share of New-Orders and Payments that touch another warehouse, or
    /// the standard's rule.
    pub fn new(
        scale: Scale,
        is_full: bool,
        cross: Option<f64>,
        place: ClientPlace,
        random: Random,
    ) -> Terminal {
        // History rows have no key in the standard; here each gets a number of its own.
        let next_history = (place.run as i64 + 1) << 48 | (place.number as i64) << 40;
        Terminal { scale, is_full, cross, random, next_history }
    }

    fn warehouse(&mut self) -> u64 {
        between(&mut self.random, 1, self.scale.warehouses)
    }

    fn district(&mut self) -> u64 {
        between(&mut self.random, 1, DISTRICTS)
    }

    /// A warehouse other than `home`, uniformly.
    fn remote(&mut self, home: u64) -> u64 {
        let other = between(&mut self.random, 1, self.scale.warehouses - 1);
        if other >= home { other + 1 } else { other }
    }

    /// Clause 2.4.1.
    fn new_order(&mut self, arguments: &mut Vec<u8>) -> usize {
        let (w_id, d_id) = (self.warehouse(), self.district());
        let c_id = input::customer(&mut self.random, self.scale.customers);
        let lines = between(&mut self.random, 5, 15) as usize;
        let is_rolled_back = self.random.chance(1, 100);
        // With a share given, one line of that many orders is remote; else each line by itself.
        let has_remotes = self.scale.warehouses > 1;
        let has_one = has_remotes && self.cross.is_some_and(|share| self.random.unit_f64() < share);
        let remote_line = has_one.then(|| self.random.index(lines));
        let mut writer = ArgumentWriter::new(arguments);
        writer.int(w_id as i64).int(d_id as i64).int(c_id as i64).list(lines);
        for line in 0..lines {
            let is_unused = is_rolled_back && line == lines - 1;
            let item = if is_unused {
                self.scale.items + 1
            } else {
                input::item(&mut self.random, self.scale.items)
            };
            let is_remote = match self.cross {
                Some(_) => remote_line == Some(line),
                None => has_remotes && self.random.chance(1, 100),
            };
            let supplier = if is_remote { self.remote(w_id) } else { w_id };
            writer.int(item as i64).int(supplier as i64).int(between(&mut self.random, 1, 10) as i64);
        }
        NEW_ORDER
    }

    /// Clause 2.5.1.
    fn payment(&mut self, arguments: &mut Vec<u8>) -> usize {
        let (w_id, d_id) = (self.warehouse(), self.district());
        let is_remote = self.scale.warehouses > 1 && self.random.unit_f64() < self.cross.unwrap_or(0.15);
        let (c_w_id, c_d_id) = if is_remote { (self.remote(w_id), self.district()) } else { (w_id, d_id) };
        let amount = between(&mut self.random, 100, 500_000);
        self.next_history += 1;
        let mut writer = ArgumentWriter::new(arguments);
        writer.int(self.next_history).int(w_id as i64).int(d_id as i64).int(c_w_id as i64).int(c_d_id as i64);
        let is_by_name = self.customer(&mut writer);
        writer.numeric(amount.into());
        if is_by_name { PAYMENT_BY_NAME } else { PAYMENT }
    }

    /// Clause 2.6.1.
    fn order_status(&mut self, arguments: &mut Vec<u8>) -> usize {
        let mut writer = ArgumentWriter::new(arguments);
        writer.int(self.warehouse() as i64).int(self.district() as i64);
        if self.customer(&mut writer) { ORDER_STATUS_BY_NAME } else { ORDER_STATUS }
    }

    /// Writes a customer: by last name in 60 % of the cases; whether so.
    fn customer(&mut self, writer: &mut ArgumentWriter<'_>) -> bool {
        let is_by_name = self.random.chance(60, 100);
        if is_by_name {
            let number = input::last_name_number(&mut self.random, input::LAST_RUN, self.scale.customers);
            writer.text(&input::last_name(number));
        } else {
            writer.int(input::customer(&mut self.random, self.scale.customers) as i64);
        }
        is_by_name
    }

    /// Clause 2.7.1.
    fn delivery(&mut self, arguments: &mut Vec<u8>) -> usize {
        let (w_id, carrier) = (self.warehouse(), between(&mut self.random, 1, 10));
        ArgumentWriter::new(arguments).int(w_id as i64).int(carrier as i64);
        DELIVERY
    }

    /// Clause 2.8.1.
    fn stock_level(&mut self, arguments: &mut Vec<u8>) -> usize {
        let (w_id, d_id) = (self.warehouse(), self.district());
        let threshold = between(&mut self.random, 10, 20);
        ArgumentWriter::new(arguments).int(w_id as i64).int(d_id as i64).int(threshold as i64);
        STOCK_LEVEL
    }
}

impl Client for Terminal {
    /// 45 % New-Order, 43 % Payment, 4 % each of the others (clause 5.2.3).
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        if !self.is_full {
            return self.new_order(arguments);
        }
        match self.random.below(100) {
            0..45 => self.new_order(arguments),
            45..88 => self.payment(arguments),
            88..92 => self.order_status(arguments),
            92..96 => self.delivery(arguments),
            _ => self.stock_level(arguments),
        }
    }
}
