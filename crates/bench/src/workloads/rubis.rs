//! `rubis`: the auction house RUBiS, its bidding mix (Doppel's application benchmark).
//!
//! Seven tables and seventeen transactions; 85 % of the calls only read. The share of each transaction stands in
//! [`MIX`]. Bids are uniform over the auctions, half of them go to one, or auctions have Zipfian popularity. Doppel's
//! two workloads are:
//!
//! | workload | bids of all calls | auction of a bid | settings |
//! |---|---|---|---|
//! | RUBiS-B | as in the bidding mix | any | none |
//! | RUBiS-C | half, the others in proportion | Zipfian, alpha 1.8 | `bids=zipfian bid_share=0.5` |

use super::integer;
use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use crate::zipf::Zipf;
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::ArgumentWriter;
use std::collections::HashMap;
use std::sync::Arc;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "rubis",
    summary: "an auction house: 17 transactions over 7 tables, 85 % of calls read only",
    settings: &[
        Setting {
            name: "bids",
            default: "uniform",
            domain: Domain::Choice(&["uniform", "skewed", "zipfian"]),
            help: "skewed: a share of the bids, top_share, goes to one auction; zipfian: by theta",
        },
        Setting {
            name: "theta",
            default: "1.8",
            domain: Domain::Number(0.0, 2.0),
            help: "if bids are zipfian: skew of the auctions' popularity",
        },
        Setting {
            name: "top_share",
            default: "0.5",
            domain: Domain::Number(0.0, 1.0),
            help: "if bids are skewed: the share that goes to one auction",
        },
        Setting {
            name: "bid_share",
            default: "mix",
            domain: Domain::NumberOr("mix", 0.0, 1.0),
            help: "share of calls that are bids; mix: 8 %, as in the bidding mix",
        },
        Setting { name: "users", default: "1000000", domain: Domain::Integer(100, 1 << 31), help: "users" },
        Setting { name: "items", default: "33000", domain: Domain::Integer(100, 1 << 31), help: "auctions" },
        super::READ_AS,
    ],
    build: |settings| {
        let is_skewed = settings.text("bids") == "skewed";
        let top_share = if is_skewed { settings.number("top_share").unwrap_or_default() } else { 0.0 };
        let items = settings.integer("items");
        let theta = settings.number("theta").unwrap_or_default();
        Box::new(Rubis {
            seed: settings.integer("seed"),
            top_below: super::below(top_share),
            zipf: (settings.text("bids") == "zipfian").then(|| Arc::new(Zipf::new(items, theta))),
            bid_share: settings.number("bid_share"),
            users: settings.integer("users"),
            items,
            reading: if settings.text("read_as") == "call" { 0 } else { READS },
        })
    },
};

const CATEGORIES: u64 = 20;
const REGIONS: u64 = 62;
/// What auctions have to sell to begin with.
const QUANTITY: i128 = 1_000_000;
/// Bids are up to this many cents.
const AMOUNT_MAX: u64 = 10_000_000;

/// Transactions that read; they stand behind those that write, first as calls, then as snapshot queries.
const READS: usize = 12;
const STORE_BID: usize = 0;

/// Procedures with their shares in a thousand calls: a stationary form of the bidding mix, in which 85 % of the
/// interactions read only. Those of its 26 interactions that touch no data are left out.
const MIX: [(&str, u64); 17] = [
    ("store_bid", 80),
    ("store_buy_now", 10),
    ("store_comment", 15),
    ("register_user", 20),
    ("register_item", 25),
    ("browse_categories", 80),
    ("browse_regions", 30),
    ("browse_categories_in_region", 30),
    ("search_items_by_category", 270),
    ("search_items_by_region", 60),
    ("view_item", 220),
    ("view_user_info", 40),
    ("view_bid_history", 25),
    ("view_buy_now", 12),
    ("put_bid", 55),
    ("put_comment", 8),
    ("about_me", 20),
];

const OPERATIONS: [Operation; MIX.len() + READS] = {
    let mut operations = [Operation::new("", Mode::Call); MIX.len() + READS];
    let mut at = 0;
    while at < operations.len() {
        let (place, mode, kind) = match at {
            0..5 => (at, Mode::Call, "write"),
            5..17 => (at, Mode::CallForResult, "read"),
            _ => (at - READS, Mode::Query, "read"),
        };
        let kind = if place == STORE_BID { "bid" } else { kind };
        operations[at] = Operation { procedure: MIX[place].0, kind, mode };
        at += 1;
    }
    operations
};

struct Rubis {
    seed: u64,
    top_below: u64,
    /// Popularity of auctions among bids, unless all are alike but one.
    zipf: Option<Arc<Zipf>>,
    bid_share: Option<f64>,
    users: u64,
    items: u64,
    /// How far behind its call a transaction that reads stands in [`OPERATIONS`].
    reading: usize,
}

impl Workload for Rubis {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/rubis.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        &OPERATIONS
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        loader.ranges("load_regions", REGIONS, |_| {})?;
        loader.ranges("load_categories", CATEGORIES, |_| {})?;
        loader.ranges("load_users", self.users, |writer| _ = writer.int(REGIONS as i64))?;
        loader.ranges("load_items", self.items, |writer| {
            writer.int(self.users as i64).int(CATEGORIES as i64).int(REGIONS as i64);
        })
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        Box::new(RubisClient {
            random: super::random_for(self.seed, place),
            top_below: self.top_below,
            zipf: self.zipf.clone(),
            bid_below: self.bid_share.map(super::below),
            users: self.users,
            items: self.items,
            reading: self.reading,
            // Numbers of its own for every client of every run, above those of the loader.
            next_id: ((1 + place.run) << 48 | (place.number as u64) << 36) as i64,
        })
    }

    /// What the auctions say of their bids is what the bids say; ratings and quantities add up, and there is
    /// a row for each call that adds one.
    fn check(&self, target: &Target) -> Result<Verdict> {
        // By item: how many, the highest, and who bid that.
        let mut bids: HashMap<i128, (i128, i128, Vec<i128>)> = HashMap::new();
        let mut count = 0;
        super::rows(target, "bids", &mut |row| {
            let (bidder, amount) = (integer(&row[2]), integer(&row[3]));
            let (bids, highest, bidders) = bids.entry(integer(&row[1])).or_default();
            *bids += 1;
            if amount > *highest {
                *highest = amount;
                bidders.clear();
            }
            if amount == *highest {
                bidders.push(bidder);
            }
            count += 1;
        })?;
        let (mut wrong, mut items, mut left) = (0u64, 0u64, 0);
        super::rows(target, "items", &mut |row| {
            let [bid, highest, bidder] = [8, 9, 10].map(|column| integer(&row[column]));
            let is_right = match bids.get(&integer(&row[0])) {
                Some(found) => (bid, highest) == (found.0, found.1) && found.2.contains(&bidder),
                None => (bid, highest, bidder) == (0, 0, 0),
            };
            wrong += u64::from(!is_right);
            items += 1;
            left += integer(&row[5]);
        })?;
        let (mut users, mut rated, mut ratings, mut comments) = (0u64, 0, 0, 0u64);
        super::rows(target, "users", &mut |row| {
            users += 1;
            rated += integer(&row[3]);
        })?;
        super::rows(target, "comments", &mut |row| {
            comments += 1;
            ratings += integer(&row[4]);
        })?;
        let (mut purchases, mut bought) = (0u64, 0);
        super::rows(target, "buy_now", &mut |row| {
            purchases += 1;
            bought += integer(&row[3]);
        })?;
        let of = |procedure: &str| target.committed(procedure);
        let are_rows_there = count == of("store_bid")
            && purchases == of("store_buy_now")
            && comments == of("store_comment")
            && users == self.users + of("register_user")
            && items == self.items + of("register_item");
        let begun = i128::from(items) * QUANTITY;
        let found = format!(
            "{count} bids of {} calls, {wrong} auctions disagree with theirs; ratings {rated} of {ratings}, \
             {bought} sold and {left} left of {begun}",
            of("store_bid")
        );
        let is_right = are_rows_there && wrong == 0 && rated == ratings && left + bought == begun;
        Ok(if is_right { Ok(found) } else { Err(found) })
    }
}

struct RubisClient {
    random: Random,
    top_below: u64,
    zipf: Option<Arc<Zipf>>,
    bid_below: Option<u64>,
    users: u64,
    items: u64,
    reading: usize,
    next_id: i64,
}

impl RubisClient {
    /// A place in [`MIX`].
    fn draw(&mut self) -> usize {
        let mut total = 1000;
        let mut first = 0;
        if let Some(below) = self.bid_below {
            if super::happens(below, &mut self.random) {
                return STORE_BID;
            }
            total -= MIX[STORE_BID].1;
            first = 1;
        }
        let mut rest = self.random.below(total);
        for (at, (_, share)) in MIX.iter().enumerate().skip(first) {
            if rest < *share {
                return at;
            }
            rest -= share;
        }
        unreachable!("the shares add up to a thousand")
    }
}

/// The auction of a bid: by popularity, or the first with the share behind `top_below`, else `any`.
fn auction(zipf: Option<&Zipf>, top_below: u64, any: i64, random: &mut Random) -> i64 {
    match zipf {
        Some(zipf) => zipf.draw(random) as i64,
        None if super::happens(top_below, random) => 0,
        None => any,
    }
}

impl Client for RubisClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let at = self.draw();
        let random = &mut self.random;
        let user = random.below(self.users) as i64;
        let item = random.below(self.items) as i64;
        let other = random.below(self.users) as i64;
        let category = random.below(CATEGORIES) as i64;
        let region = random.below(REGIONS) as i64;
        let mut writer = ArgumentWriter::new(arguments);
        if at < MIX.len() - READS {
            self.next_id += 1;
            writer.int(self.next_id);
        }
        match MIX[at].0 {
            "store_bid" => {
                let item = auction(self.zipf.as_deref(), self.top_below, item, random);
                writer.int(item).int(user).int(1 + random.below(AMOUNT_MAX) as i64)
            }
            "store_buy_now" => writer.int(item).int(user).int(1),
            "store_comment" => {
                let rating = random.below(11) as i64 - 5;
                writer.int(user).int(other).int(item).int(rating).text("as it was described, and soon here")
            }
            "register_user" => writer.int(region),
            "register_item" => writer.int(user).int(category).int(QUANTITY as i64).int(100_000),
            "browse_categories_in_region" => writer.int(region),
            "search_items_by_category" => writer.int(category),
            "search_items_by_region" => writer.int(region).int(category),
            "view_user_info" => writer.int(user),
            "put_bid" | "put_comment" => writer.int(item).int(user),
            "about_me" => writer.int(user).int(user),
            "view_item" | "view_bid_history" | "view_buy_now" => writer.int(item),
            _ => &mut writer,
        };
        if at < MIX.len() - READS { at } else { at + self.reading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: 17 transactions, of whose calls 85 % read only.
    #[test]
    fn the_mix_is_the_bidding_mix() {
        let writes = &MIX[..MIX.len() - READS];
        assert_eq!(MIX.iter().map(|(_, share)| share).sum::<u64>(), 1000);
        assert_eq!(writes.iter().map(|(_, share)| share).sum::<u64>(), 150);
        assert_eq!(OPERATIONS[MIX.len()].procedure, "browse_categories");
        assert_eq!(OPERATIONS[MIX.len() + READS - 1].procedure, "about_me");
    }

    /// Goal: of RUBiS-C's calls half are bids, the others are in proportion, and the most popular auction has its
    /// Zipfian share of bids.
    #[test]
    fn half_of_rubis_c_are_bids() {
        let settings = KIND.defaults().with(&[("bids", &"zipfian"), ("bid_share", &0.5)]);
        let mut client = (KIND.build)(&settings).client(ClientPlace { number: 0, count: 1, run: 0 });
        let (mut calls, mut arguments) = ([0u32; MIX.len()], Vec::new());
        for _ in 0..100_000 {
            arguments.clear();
            calls[client.next(&mut arguments)] += 1;
        }
        for (at, (name, share)) in MIX.iter().enumerate() {
            let expected = if at == STORE_BID { 50_000.0 } else { 50_000.0 * *share as f64 / 920.0 };
            let found = f64::from(calls[at]);
            assert!((found - expected).abs() < 5.0 * expected.sqrt(), "{name}: {found}, not {expected}");
        }
        let (zipf, mut random) = (Zipf::new(33_000, 1.8), Random::seeded(1));
        let popular = (0..100_000).filter(|_| auction(Some(&zipf), 0, 7, &mut random) == 0).count();
        assert!(
            (52_000..55_000).contains(&popular),
            "{popular} of 100,000 bids are on the most popular auction"
        );
        assert_eq!(auction(None, 0, 7, &mut random), 7, "any");
        assert_eq!(auction(None, u64::MAX, 7, &mut random), 0, "the one that all bids go to");
    }
}
