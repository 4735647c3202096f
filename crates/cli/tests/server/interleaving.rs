//! Several connections, step by step.
//!
//! ```text
//! a: update test set value = 11 where id = 1     in a block of a's, which its first step begins
//! C: select value from test                      a capital: a statement of its own, in no block
//! b: commit
//! ```
//!
//! A step that has to wait is left waiting, and the steps of others go on; its own next steps come when it is done.
//! So a script runs in one way only: after each step every connection either rests, or the server says that it waits.
//!
//! What came of it is compared with what the same transactions do one after the other: if no order of those that
//! committed shows each of them the same, and leaves the same rows, an anomaly has happened.

use crate::support::{Server, connect};
use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_postgres::{Client, SimpleQueryMessage};

/// How long a step usually takes, at most: only then the server is asked whether it waits.
const USUALLY: Duration = Duration::from_millis(3);
/// How long everybody may be busy without anybody getting on.
const PATIENCE: Duration = Duration::from_secs(20);

/// What one connection does next.
#[derive(Clone, Debug)]
pub struct Step {
    pub who: char,
    pub text: String,
}

impl Step {
    pub fn new(who: char, text: &str) -> Step {
        Step { who, text: text.to_string() }
    }

    /// The steps of a script.
    pub fn read(script: &str) -> Vec<Step> {
        let step = |line: &str| {
            let (who, text) = line.trim().split_once(": ").unwrap_or_else(|| panic!("no step: {line}"));
            Step::new(who.chars().next().expect("a name"), text)
        };
        script.lines().filter(|line| !line.trim().is_empty()).map(step).collect()
    }
}

/// All ways to interleave lists of steps, each list in its order.
pub fn interleavings(lists: &[Vec<Step>]) -> Vec<Vec<Step>> {
    if lists.iter().all(Vec::is_empty) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, list) in lists.iter().enumerate() {
        if let Some((first, rest)) = list.split_first() {
            let mut others = lists.to_vec();
            others[at] = rest.to_vec();
            all.extend(interleavings(&others).into_iter().map(|tail| [vec![first.clone()], tail].concat()));
        }
    }
    all
}

/// What a statement gave: its rows and tag, or the SQLSTATE of its error.
pub type Given = Result<Vec<String>, String>;

/// A transaction, as it went.
#[derive(Debug)]
pub struct Transaction {
    pub who: char,
    /// The transaction's statements with what they gave, the last one that failed included.
    pub given: Vec<(String, Given)>,
    /// Whether it has committed; `None` while it is open.
    pub has_committed: Option<bool>,
    began: usize,
    ended: usize,
}

/// What came of a script.
#[derive(Debug)]
pub struct Played {
    /// In the order in which they began.
    pub transactions: Vec<Transaction>,
    /// The rows that are there at the end.
    pub rows: Vec<String>,
}

impl Played {
    /// Those who have committed, in the order in which they began: `ab`.
    pub fn committed(&self) -> String {
        self.transactions.iter().filter(|one| one.has_committed == Some(true)).map(|one| one.who).collect()
    }
}

/// One connection of a script.
struct Actor {
    client: Arc<Client>,
    process: i32,
    running: Option<(String, JoinHandle<Given>)>,
    next: VecDeque<String>,
    /// The connection's open transaction, by its place among all.
    open: Option<usize>,
}

/// A stage on which scripts are played: a server with tables, and connections that are used again.
pub struct Stage {
    observer: Client,
    conninfo: String,
    actors: BTreeMap<char, Actor>,
    /// Fills the tables anew.
    reset: String,
    /// Shows what is to be compared at the end.
    show: String,
    /// Counts what happens.
    clock: usize,
    /// Rung when a step is done.
    done: Arc<Notify>,
}

async fn run(client: &Client, text: &str) -> Given {
    match client.simple_query(text).await {
        Ok(messages) => {
            let shown = messages.iter().filter_map(|message| match message {
                SimpleQueryMessage::Row(row) => {
                    let values = (0..row.len()).map(|at| row.get(at).unwrap_or("null"));
                    Some(values.collect::<Vec<_>>().join(","))
                }
                SimpleQueryMessage::CommandComplete(count) => Some(format!("({count})")),
                _ => None,
            });
            let mut shown: Vec<String> = shown.collect();
            shown.sort();
            Ok(shown)
        }
        Err(error) => Err(error.code().map_or_else(|| error.to_string(), |code| code.code().to_string())),
    }
}

impl Stage {
    pub async fn new(server: &Server, reset: &str, show: &str) -> Stage {
        Stage {
            observer: connect(&server.conninfo()).await,
            conninfo: server.conninfo(),
            actors: BTreeMap::new(),
            reset: reset.to_string(),
            show: show.to_string(),
            clock: 0,
            done: Arc::default(),
        }
    }

    /// Runs statements before anything is played.
    pub async fn run(&self, text: &str) {
        run(&self.observer, text).await.expect("it succeeds");
    }

    /// Plays a script from the beginning; `mode` is everybody's `fabius.concurrency`.
    pub async fn play(&mut self, script: &[Step], mode: impl Fn(char) -> &'static str) -> Played {
        run(&self.observer, &self.reset).await.expect("the tables are filled");
        for step in script {
            if !self.actors.contains_key(&step.who) {
                let client = Arc::new(connect(&self.conninfo).await);
                let process =
                    client.query_one("SELECT pg_backend_pid()", &[]).await.expect("a number").get(0);
                let actor = Actor { client, process, running: None, next: VecDeque::new(), open: None };
                self.actors.insert(step.who, actor);
            }
        }
        for (who, actor) in &self.actors {
            run(&actor.client, &format!("SET fabius.concurrency = '{}'", mode(*who))).await.expect("a mode");
        }
        let mut transactions = Vec::new();
        for step in script {
            self.actors.get_mut(&step.who).expect("an actor").next.push_back(step.text.clone());
            self.settle(&mut transactions).await;
        }
        let waits = |(who, actor): (&char, &Actor)| actor.running.is_some().then_some(*who);
        let waiting: String = self.actors.iter().filter_map(waits).collect();
        assert!(waiting.is_empty(), "{waiting} still wait: {transactions:?}");
        assert!(transactions.iter().all(|one: &Transaction| one.has_committed.is_some()), "{transactions:?}");
        let rows = run(&self.observer, &self.show).await.expect("the rows");
        Played { transactions, rows }
    }

    /// Goes on until everybody rests or waits.
    async fn settle(&mut self, transactions: &mut Vec<Transaction>) {
        let mut begun = Instant::now();
        loop {
            let mut has_moved = false;
            for (who, actor) in &mut self.actors {
                self.clock += 1;
                has_moved |= actor.go_on(*who, transactions, self.clock, &self.done).await;
            }
            if has_moved {
                begun = Instant::now();
                continue;
            }
            let busy: HashSet<i32> = self
                .actors
                .values()
                .filter(|actor| actor.running.is_some())
                .map(|actor| actor.process)
                .collect();
            if busy.is_empty() {
                return;
            }
            let is_done = tokio::time::timeout(USUALLY, self.done.notified()).await.is_ok();
            if !is_done && busy.is_subset(&self.waiting().await) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "nobody gets on: {transactions:?}");
        }
    }

    /// Who waits for a lock, as the server says.
    async fn waiting(&self) -> HashSet<i32> {
        let query = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
        let rows = self.observer.query(query, &[]).await.expect("who waits");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// Whether some order of the transactions that committed shows each the same and leaves the same rows.
    pub async fn is_serializable(&mut self, played: &Played) -> bool {
        let committed: Vec<&Transaction> =
            played.transactions.iter().filter(|one| one.has_committed == Some(true)).collect();
        for order in orders(committed.len()) {
            let order: Vec<&Transaction> = order.into_iter().map(|at| committed[at]).collect();
            // What had ended when another began comes before it.
            let keeps_time = order
                .iter()
                .enumerate()
                .all(|(at, one)| order[at..].iter().all(|later| later.ended >= one.began));
            if keeps_time && self.gives_the_same(&order, &played.rows).await {
                return true;
            }
        }
        false
    }

    async fn gives_the_same(&mut self, order: &[&Transaction], rows: &[String]) -> bool {
        run(&self.observer, &self.reset).await.expect("the tables are filled");
        for transaction in order {
            let is_block = transaction.who.is_lowercase();
            if is_block {
                run(&self.observer, "BEGIN").await.expect("a block");
            }
            for (text, given) in &transaction.given {
                if run(&self.observer, text).await != *given {
                    run(&self.observer, "ROLLBACK").await.expect("the block ends");
                    return false;
                }
            }
            if is_block {
                run(&self.observer, "COMMIT").await.expect("nobody else is there");
            }
        }
        run(&self.observer, &self.show).await.as_deref() == Ok(rows)
    }
}

impl Actor {
    /// Takes in what has come, and begins what is next; whether there was anything to do.
    async fn go_on(
        &mut self,
        who: char,
        transactions: &mut Vec<Transaction>,
        now: usize,
        done: &Arc<Notify>,
    ) -> bool {
        if let Some((text, running)) = self.running.take_if(|(_, running)| running.is_finished()) {
            let given = running.await.expect("it does not panic");
            let at = self.open.expect("a transaction");
            let transaction = &mut transactions[at];
            let is_over = match text.as_str() {
                "commit" => Some(given.is_ok()),
                "rollback" => Some(false),
                _ if given.is_err() => Some(false),
                _ if who.is_uppercase() => Some(true),
                _ => None,
            };
            if !matches!(text.as_str(), "commit" | "rollback") || given.is_err() {
                transaction.given.push((text, given.clone()));
            }
            if is_over.is_some() {
                transaction.has_committed = is_over;
                transaction.ended = now;
                self.open = None;
                if given.is_err() && who.is_lowercase() {
                    // What it wanted to do besides is of no use any more.
                    self.next.clear();
                    run(&self.client, "ROLLBACK").await.expect("the block ends");
                }
            }
            return true;
        }
        if self.running.is_some() {
            return false;
        }
        let Some(text) = self.next.pop_front() else { return false };
        let is_new = self.open.is_none();
        if is_new {
            if matches!(text.as_str(), "commit" | "rollback") {
                return true;
            }
            self.open = Some(transactions.len());
            transactions.push(Transaction {
                who,
                given: Vec::new(),
                has_committed: None,
                began: now,
                ended: usize::MAX,
            });
        }
        let (client, statement, done) = (self.client.clone(), text.clone(), done.clone());
        let begins = is_new && who.is_lowercase();
        let work = async move {
            if begins {
                run(&client, "BEGIN").await.expect("a block");
            }
            let given = run(&client, &statement).await;
            done.notify_one();
            given
        };
        self.running = Some((text, tokio::spawn(work)));
        true
    }
}

/// All orders of so many.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for new in 0..count {
        let longer = |order: Vec<usize>| {
            (0..=order.len()).map(move |at| [&order[..at], &[new], &order[at..]].concat())
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}
