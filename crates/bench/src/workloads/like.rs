//! `like`: users of a social network like its pages (Doppel's read and write benchmark).
//!
//! A call adds 1 to a page's likes and puts the page as what the user liked last; or it reads both. Pages have
//! Zipfian popularity, for readers as for writers; users are all alike.

use crate::history;
use crate::loader::Loader;
use crate::operation::{Mode, Operation};
use crate::settings::{Domain, Setting};
use crate::target::Target;
use crate::workload::{Client, ClientPlace, Verdict, Workload, WorkloadKind};
use crate::zipf::Zipf;
use fabius::Result;
use fabius_env::Random;
use fabius_program::arguments::{self, Argument, ArgumentWriter};
use fabius_value::Datum;
use std::sync::Arc;

/// As `fabius bench list` shows it.
pub const KIND: WorkloadKind = WorkloadKind {
    name: "like",
    summary: "users like pages of Zipfian popularity, or look at their likes",
    settings: &[
        Setting {
            name: "writes",
            default: "0.5",
            domain: Domain::Number(0.0, 1.0),
            help: "share of calls that like a page",
        },
        Setting {
            name: "theta",
            default: "0.99",
            domain: Domain::Number(0.0, 2.0),
            help: "Zipfian skew among pages; 0 is uniform",
        },
        Setting { name: "users", default: "1000000", domain: Domain::Integer(1, 1 << 32), help: "users" },
        Setting { name: "pages", default: "1000000", domain: Domain::Integer(2, 1 << 32), help: "pages" },
        super::READ_AS,
    ],
    build: |settings| {
        let theta = settings.number("theta").unwrap_or_default();
        Box::new(Like {
            seed: settings.integer("seed"),
            writes_below: super::below(settings.number("writes").unwrap_or_default()),
            users: settings.integer("users"),
            pages: settings.integer("pages"),
            reading: if settings.text("read_as") == "call" { READ } else { READ_SNAPSHOT },
            zipf: Arc::new(Zipf::new(settings.integer("pages"), theta)),
        })
    },
};

const LIKE: usize = 0;
const READ: usize = 1;
const READ_SNAPSHOT: usize = 2;

struct Like {
    seed: u64,
    writes_below: u64,
    users: u64,
    pages: u64,
    reading: usize,
    zipf: Arc<Zipf>,
}

impl Workload for Like {
    fn programs(&self) -> &'static str {
        include_str!("../../programs/like.fab")
    }

    fn operations(&self) -> &'static [Operation] {
        const {
            &[
                Operation::new("like", Mode::Call),
                Operation::new("read_likes", Mode::CallForResult),
                Operation::new("read_likes", Mode::Query),
            ]
        }
    }

    fn load(&self, loader: &mut Loader<'_>) -> Result<()> {
        loader.ranges("load_users", self.users, |_| {})?;
        loader.ranges("load_pages", self.pages, |_| {})
    }

    fn client(&self, place: ClientPlace) -> Box<dyn Client> {
        Box::new(LikeClient {
            random: super::random_for(self.seed, place),
            writes_below: self.writes_below,
            users: self.users,
            reading: self.reading,
            zipf: self.zipf.clone(),
        })
    }

    /// A page has a like for each call of the log, a user the page of the last.
    fn check(&self, target: &Target) -> Result<Verdict> {
        let procedure = target.database.procedure("like")?;
        let mut likes = vec![0i128; self.pages as usize];
        let mut liked = vec![-1i128; self.users as usize];
        let mut logged = 0u64;
        history::calls(target, &mut |call| {
            if call.procedure == procedure.id {
                let decoded = arguments::decode(&procedure.program, call.arguments)?;
                let [Argument::Scalar(Datum::Int(user)), Argument::Scalar(Datum::Int(page))] = decoded[..]
                else {
                    unreachable!("decoded by the procedure's own types")
                };
                likes[page as usize] += 1;
                liked[user as usize] = i128::from(page);
                logged += 1;
            }
            Ok(())
        })?;
        let committed = target.committed("like");
        let mut wrong = 0u64;
        let mut compare = |name: &str, expected: &[i128]| {
            super::rows(target, name, &mut |row| {
                let at = super::integer(&row[0]) as usize;
                wrong += u64::from(super::integer(&row[1]) != expected[at]);
            })
        };
        compare("pages", &likes)?;
        compare("users", &liked)?;
        Ok(if wrong == 0 && logged == committed {
            Ok(format!("pages and users are what the log's {committed} likes make of them"))
        } else {
            Err(format!("{wrong} rows are wrong; {logged} likes in the log, {committed} committed"))
        })
    }
}

struct LikeClient {
    random: Random,
    writes_below: u64,
    users: u64,
    reading: usize,
    zipf: Arc<Zipf>,
}

impl Client for LikeClient {
    fn next(&mut self, arguments: &mut Vec<u8>) -> usize {
        let is_write = super::happens(self.writes_below, &mut self.random);
        let user = self.random.below(self.users) as i64;
        ArgumentWriter::new(arguments).int(user).int(self.zipf.draw(&mut self.random) as i64);
        if is_write { LIKE } else { self.reading }
    }
}
