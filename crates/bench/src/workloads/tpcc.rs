//! `tpcc`: the TPC-C benchmark (revision 5.11), its five transactions in the standard mix.
//!
//! | file | one noun |
//! |---|---|
//! | `input.rs` | the standard's random texts, names and numbers (clauses 2.1.6, 4.3.2) |
//! | `population.rs` | the rows to begin with (clause 4.3.3) |
//! | `terminal.rs` | the calls (clauses 2.4 to 2.8, 5.2.3) |
//! | `consistency.rs` | the check (clause 3.3.2, conditions 1 to 4) |
//!
//! Keying and think times are left out: terminals are as fast as they are answered. A terminal takes
//! a new warehouse for every transaction. New-Order, Payment and Delivery wait for their outcome;
//! Order-Status and Stock-Level wait for their rows.

mod consistency;
mod input;
mod population;
mod terminal;

use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting, Settings};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use fabius::Result;
use terminal::Terminal;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "tpcc",
    summary: "TPC-C: the five transactions in the standard mix",
    settings: &[
        Setting { name: "warehouses", default: "1", domain: Domain::Integer(1, 10_000), help: "warehouses" },
        Setting {
            name: "mix",
            default: "full",
            domain: Domain::Choice(&["full", "new-order"]),
            help: "all five transactions, or New-Order only",
        },
        Setting {
            name: "cross",
            default: "standard",
            domain: Domain::NumberOr("standard", 0.0, 1.0),
            help: "share of New-Orders and Payments that touch another warehouse; standard: 1 % of lines, 15 % of payments",
        },
        Setting {
            name: "items",
            default: "100000",
            domain: Domain::Integer(100, 1 << 24),
            help: "items; the standard has 100,000",
        },
        Setting {
            name: "customers",
            default: "3000",
            domain: Domain::Integer(10, 100_000),
            help: "customers, and orders to begin with, of each district; the standard has 3,000",
        },
        Setting {
            name: "results",
            default: "off",
            domain: Domain::Choice(&["on", "off"]),
            help: "on: terminals wait for what New-Order, Payment and Delivery return",
        },
    ],
    build: |settings| {
        Box::new(TpcC {
            scale: Scale::new(settings),
            is_full: settings.text("mix") == "full",
            cross: settings.number("cross"),
            seed: settings.integer("seed"),
            wants_results: settings.text("results") == "on",
        })
    },
};

/// Districts of a warehouse.
pub const DISTRICTS: u64 = 10;

/// How large everything is.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// Warehouses.
    pub warehouses: u64,
    /// Items.
    pub items: u64,
    /// Customers of a district, and orders it begins with.
    pub customers: u64,
}

impl Scale {
    fn new(settings: &Settings) -> Scale {
        Scale {
            warehouses: settings.integer("warehouses"),
            items: settings.integer("items"),
            customers: settings.integer("customers"),
        }
    }
}

struct TpcC {
    scale: Scale,
    is_full: bool,
    cross: Option<f64>,
    seed: u64,
    wants_results: bool,
}

const fn operation(procedure: &'static str, kind: &'static str, mode: Mode) -> Operation {
    Operation { procedure, kind, mode }
}

/// The operations, with calls run in a mode; `terminal.rs` gives their places.
const fn operations(calls: Mode) -> [Operation; 7] {
    [
        operation("new_order", "new-order", calls),
        operation("payment", "payment", calls),
        operation("payment_by_name", "payment", calls),
        operation("order_status", "order-status", Mode::Query),
        operation("order_status_by_name", "order-status", Mode::Query),
        operation("delivery", "delivery", calls),
        operation("stock_level", "stock-level", Mode::Query),
    ]
}

const OPERATIONS: &[Operation] = &operations(Mode::Call);
const OPERATIONS_FOR_RESULTS: &[Operation] = &operations(Mode::CallForResult);

impl Workload for TpcC {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/tpcc.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        if self.wants_results { OPERATIONS_FOR_RESULTS } else { OPERATIONS }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        population::load(self.scale, self.seed, loader)
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        Box::new(Terminal::new(
            self.scale,
            self.is_full,
            self.cross,
            place,
            super::random_for(self.seed, place),
        ))
    }

    fn check(&self, target: &Target) -> Result<Verdict> {
        consistency::check(target, self.scale)
    }
}
