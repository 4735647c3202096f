//! `cart`: shopping carts that are filled, then bought or cleared (lazy evaluation, section 4.3).
//!
//! Each client adds 20 items to its cart (reads one inventory record, writes the cart), then checks
//! out: it buys (reads the cart, updates the inventory) or clears the cart (a blind write, which
//! makes the 20 additions pointless). A client that buys waits for the price.

use super::integer;
use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::ArgumentWriter;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "cart",
    summary: "carts that get 20 items each, and are then bought or cleared",
    settings: &[
        Setting {
            name: "blind",
            default: "0.5",
            domain: Domain::Number(0.0, 1.0),
            help: "share of check-outs that clear the cart without looking (a blind write)",
        },
        Setting {
            name: "items",
            default: "100000",
            domain: Domain::Integer(20, 1 << 32),
            help: "items in the inventory",
        },
        Setting {
            name: "clients",
            default: "8000",
            domain: Domain::Integer(1, 1 << 24),
            help: "carts, taken in turn",
        },
    ],
    build: |settings| {
        Box::new(Cart {
            seed: settings.integer("seed"),
            blind: settings.number("blind").unwrap_or(0.5),
            items: settings.integer("items"),
            clients: settings.integer("clients"),
        })
    },
};

/// Items that a client adds before it checks out.
const ADDED: usize = 20;
/// Each item's stock to begin with.
const STOCK: i64 = 1_000_000_000;

struct Cart {
    seed: u64,
    blind: f64,
    items: u64,
    clients: u64,
}

const ADD: usize = 0;
const BUY: usize = 1;
const CLEAR: usize = 2;

impl Workload for Cart {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/cart.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const {
            &[
                Operation::new("add_item", Mode::Call),
                Operation::new("buy", Mode::CallForResult),
                Operation::new("clear", Mode::Call),
            ]
        }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        let mut random = Random::seeded(self.seed);
        let numbers: Vec<u64> = (0..self.items).collect();
        for numbers in numbers.chunks(500) {
            loader.call("load_items", |writer| {
                writer.list(numbers.len());
                for &number in numbers {
                    writer.int(number as i64).numeric(random.below(10_000).into()).int(STOCK);
                }
            })?;
        }
        loader.ranges("load_carts", self.clients, |_| {})
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        // Carts are divided among the threads; a cart's calls follow each other on one thread.
        let carts = (place.number as u64..self.clients).step_by(place.count);
        Box::new(CartClient {
            random: super::random_for(self.seed, place),
            blind: self.blind,
            items: self.items,
            carts: carts.map(|id| Session { id: id as i64, items: Vec::with_capacity(ADDED) }).collect(),
            turn: 0,
        })
    }

    /// What left the stock was sold, was in carts that were bought, and was paid for at its price.
    fn check(&self, target: &Target) -> Result<Verdict> {
        let (mut left, mut sold, mut worth, mut bought, mut spent) = (0, 0, 0, 0, 0);
        super::rows(target, "inventory", &mut |row| {
            left += integer(&row[2]);
            sold += integer(&row[3]);
            worth += integer(&row[3]) * integer(&row[1]);
        })?;
        super::rows(target, "carts", &mut |row| {
            bought += integer(&row[4]);
            spent += integer(&row[5]);
        })?;
        let buys = i128::from(target.committed("buy"));
        let expected = buys * ADDED as i128;
        let is_right = sold == expected
            && bought == expected
            && spent == worth
            && left + sold == i128::from(self.items) * i128::from(STOCK);
        let found = format!(
            "{buys} purchases of {ADDED}: {sold} sold, {bought} bought, worth {worth}, paid {spent} (in cents)"
        );
        Ok(if is_right { Ok(found) } else { Err(found) })
    }

    fn in_flight_max(&self, clients: usize) -> usize {
        // A cart's next call must not overtake the one before.
        (self.clients as usize / clients).max(1)
    }
}

struct Session {
    id: i64,
    items: Vec<i64>,
}

struct CartClient {
    random: Random,
    blind: f64,
    items: u64,
    carts: Vec<Session>,
    turn: usize,
}

impl Client for CartClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let at = self.turn;
        self.turn = if at + 1 == self.carts.len() { 0 } else { at + 1 };
        let cart = &mut self.carts[at];
        let mut writer = ArgumentWriter::new(arguments);
        writer.int(cart.id);
        if cart.items.len() < ADDED {
            let item = self.random.below(self.items) as i64;
            writer.int(item);
            cart.items.push(item);
            return ADD;
        }
        let is_blind = self.random.unit_f64() < self.blind;
        if is_blind {
            cart.items.clear();
            return CLEAR;
        }
        writer.list(cart.items.len());
        cart.items.drain(..).for_each(|item| _ = writer.int(item));
        BUY
    }
}
