//! The demo's workload: a flash sale.
//!
//! Each shopper wants one of a few hot items: looks at things, puts some into the cart while there
//! are any left, pays, and sometimes asks what is in the cart.

use fabius::Value;
use fabius::program::arguments::ArgumentWriter;
use fabius::{Decimal, Result};
use fabius_bench::loader::Loader;
use fabius_bench::operation::{Mode, Operation};
use fabius_bench::settings::{Domain, Setting, Settings};
use fabius_bench::target::Target;
use fabius_bench::workload::{Client, ClientPlace, Verdict, Workload};
use fabius_env::Random;

/// Names and prices (in cents) of the items.
const ITEMS: [(&str, i64); 6] = [
    ("turntable", 19_900),
    ("espresso machine", 34_950),
    ("folding bicycle", 64_900),
    ("headphones", 8_995),
    ("tent for two", 12_900),
    ("fountain pen", 4_200),
];

/// Settings of the demo: those of every workload, with defaults that suit it.
pub fn settings() -> Settings {
    // Deferred work is not done for its own sake while shoppers keep coming: what is never asked for
    // then need not be done at all.
    const OWN: &[Setting] = &[Setting {
        name: "idle",
        default: "off",
        domain: Domain::Choice(&["auto", "on", "off"]),
        help: "work off the backlog while waiting",
    }];
    Settings::new("flash sale", OWN)
}

/// The sale.
pub struct FlashSale {
    /// What all random choices follow from.
    pub seed: u64,
    /// People who come.
    pub shoppers: u64,
    /// Pieces of each item.
    pub stock: i64,
}

const LOOK: usize = 0;
const PUT: usize = 1;
const PAY: usize = 2;
const ASK: usize = 3;

/// What the rows add up to.
pub struct Books {
    /// Pieces not sold and in no cart.
    pub left: i64,
    /// Pieces in carts.
    pub in_carts: i64,
    /// Pieces paid for.
    pub sold: i64,
    /// What the pieces sold were worth.
    pub worth: Decimal,
    /// What shoppers spent.
    pub spent: Decimal,
    /// What is in the till.
    pub takings: Decimal,
}

impl FlashSale {
    /// Adds up the rows.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn books(&self, target: &Target) -> Result<Books> {
        let cents = |mantissa| Decimal { mantissa, scale: 2 };
        let (mut left, mut in_carts, mut sold, mut worth, mut spent, mut takings) = (0, 0, 0, 0, 0, 0);
        for row in target.database.rows("stock")? {
            let Value::BigInt(item) = row[0] else { unreachable!("the table's own type") };
            left += integer(&row[1]);
            sold += integer(&row[2]);
            worth += integer(&row[2]) * i128::from(ITEMS[item as usize].1);
        }
        for row in target.database.rows("shoppers")? {
            in_carts += integer(&row[1]);
            spent += integer(&row[4]);
        }
        for row in target.database.rows("till")? {
            takings += integer(&row[1]);
        }
        Ok(Books {
            left: left as i64,
            in_carts: in_carts as i64,
            sold: sold as i64,
            worth: cents(worth),
            spent: cents(spent),
            takings: cents(takings),
        })
    }

    /// Pieces of all items to begin with.
    pub fn stock_total(&self) -> i64 {
        self.stock * ITEMS.len() as i64
    }
}

fn integer(value: &Value) -> i128 {
    match value {
        Value::BigInt(v) => (*v).into(),
        Value::Numeric(v) => v.mantissa,
        _ => 0,
    }
}

impl Workload for FlashSale {
    fn programs(&self) -> &'static str {
        include_str!("../programs/flash_sale.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const {
            &[
                Operation::new("look", Mode::Call),
                Operation::new("put_in_cart", Mode::Call),
                Operation::new("pay", Mode::Call),
                Operation::new("my_cart", Mode::CallForResult),
            ]
        }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        loader.call("open_shop", |writer| {
            writer.list(ITEMS.len());
            for (id, (name, price)) in ITEMS.into_iter().enumerate() {
                writer.int(id as i64).text(name).numeric(price.into()).int(self.stock);
            }
        })?;
        loader.ranges("register", self.shoppers, |_| {})
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        let seed = self.seed ^ (place.number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Box::new(Crowd { random: Random::seeded(seed), shoppers: self.shoppers })
    }

    /// Stock, carts and money add up, and each cart that was filled is one piece off the stock.
    fn check(&self, target: &Target) -> Result<Verdict> {
        let books = self.books(target)?;
        let put = target.committed("put_in_cart") as i64;
        let is_right = books.left + books.in_carts + books.sold == self.stock_total()
            && books.in_carts + books.sold == put
            && books.worth == books.spent
            && books.spent == books.takings;
        let found = format!(
            "{} left + {} in carts + {} sold of {}; {put} put into carts; sold for {}, spent {}, in the till {}",
            books.left,
            books.in_carts,
            books.sold,
            self.stock_total(),
            books.worth,
            books.spent,
            books.takings
        );
        Ok(if is_right { Ok(found) } else { Err(found) })
    }
}

/// Some of the shoppers.
struct Crowd {
    random: Random,
    shoppers: u64,
}

impl Client for Crowd {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let shopper = self.random.below(self.shoppers);
        // Everyone has an item in mind, and looks at others too.
        let wanted = shopper as i64 % ITEMS.len() as i64;
        let mut writer = ArgumentWriter::new(arguments);
        writer.int(shopper as i64);
        match self.random.below(100) {
            0..60 => {
                (0..3).for_each(|_| _ = writer.int(self.random.below(ITEMS.len() as u64) as i64));
                LOOK
            }
            60..90 => {
                writer.int(wanted);
                PUT
            }
            90..99 => {
                writer.int(wanted);
                PAY
            }
            _ => ASK,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius::{Durability, EngineKind};
    use fabius_bench::closed_loop::{self, Limit, Plan};
    use fabius_bench::interrupt::Interrupt;
    use fabius_bench::loading;
    use fabius_bench::target::TargetOptions;
    use std::time::Duration;

    /// Goal: on every engine a sold-out sale adds up, also after reopening.
    #[test]
    fn a_sale_adds_up() {
        let sale = FlashSale { seed: 1, shoppers: 200, stock: 100 };
        let settings = settings();
        for engine in EngineKind::ALL {
            let interrupt = Interrupt::default();
            let options = TargetOptions { engine, durability: Durability::None, parent: None, interrupt };
            let target = loading::load(&options, &sale, &settings).unwrap();
            let plan = Plan { threads: 2, limit: Limit::Calls(3000, Duration::from_secs(600)) };
            let measured =
                closed_loop::run(&target, &sale, &settings, plan, &Interrupt::default(), &mut |_| {})
                    .unwrap();
            assert_eq!(measured.seen.committed_total() + measured.seen.aborted_total(), 6000, "{engine}");
            assert!(measured.seen.aborted[PUT] > 0, "{engine}: nothing sold out");
            sale.check(&target).unwrap().unwrap();
            let target = target.reopen(&settings).unwrap();
            sale.check(&target).unwrap().unwrap();
        }
    }
}
