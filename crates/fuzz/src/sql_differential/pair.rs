//! The two databases side by side: fresh for each script, and brought back when one of them was lost.
//!
//! Where there is no PostgreSQL, the other one is Fabius too, which runs every statement as a query, and queries as
//! they are written: so programs and plans that were optimized are both compared with plans that were not.

use super::case::is_wrong;
use super::compare::{Determined, Difference, are_same_rows, difference, is_part};
use super::self_check;
use super::server::{Fabius, Postgres};
use super::session::{Answer, Message, Session};
use super::statement::{Form, Kind, PLAIN, Statement, Way};
use std::io::Result;
use std::path::PathBuf;
use std::sync::Arc;

/// The schema of a case's tables.
pub const SCHEMA: &str = "script";

/// Scripts that one server runs: what it keeps of schemas that are gone is not what is looked for.
const SCRIPTS_PER_SERVER: usize = 300;

/// A session on each.
pub struct Pair {
    program: PathBuf,
    log: PathBuf,
    server: Fabius,
    scripts: usize,
    fabius: Session,
    other: Session,
    other_server: Other,
    worker: usize,
    /// Whether the last statement has left either in a state in which nothing more can be asked.
    is_lost: bool,
}

/// Where the other session is.
enum Other {
    Postgres(Arc<Postgres>),
    /// One whose queries are not optimized.
    Fabius(Fabius),
}

impl Other {
    fn session(&self, worker: usize) -> Result<Session> {
        match self {
            Other::Postgres(postgres) => postgres.session(worker),
            Other::Fabius(server) => server.session(),
        }
    }
}

/// What one statement has come to on both.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// They agree: it was done, or refused by both; the SQLSTATE of PostgreSQL then.
    Same {
        refusal: Option<String>,
    },
    /// Fabius does not have it.
    NotSupported(String),
    /// PostgreSQL does not have it, or takes too long, or there are too many rows.
    NotComparable,
    Different(Box<Differs>),
}

/// A difference with both answers.
#[derive(Clone, Debug)]
pub struct Differs {
    pub difference: Difference,
    pub expected: Answer,
    pub got: Answer,
}

impl Pair {
    pub fn new(
        postgres: Option<Arc<Postgres>>,
        worker: usize,
        program: PathBuf,
        log: PathBuf,
    ) -> Result<Pair> {
        let server = Fabius::start(&program, log.clone())?;
        let fabius = server.session()?;
        let other_server = match postgres {
            Some(postgres) => Other::Postgres(postgres),
            None => Other::Fabius(Fabius::start_as_written(&program, log.with_extension("other.log"))?),
        };
        let other = other_server.session(worker)?;
        Ok(Pair { program, log, server, scripts: 0, fabius, other, other_server, worker, is_lost: false })
    }

    /// Empties both.
    pub fn begin(&mut self) -> Result<()> {
        self.scripts += 1;
        if self.is_lost || self.scripts > SCRIPTS_PER_SERVER {
            self.server = Fabius::start(&self.program, self.log.clone())?;
            self.fabius = self.server.session()?;
            if let Other::Fabius(_) = self.other_server {
                let log = self.log.with_extension("other.log");
                self.other_server = Other::Fabius(Fabius::start_as_written(&self.program, log)?);
                self.other = self.other_server.session(self.worker)?;
            }
            (self.is_lost, self.scripts) = (false, 0);
        }
        if self.other.say("ROLLBACK") == Answer::Lost {
            self.other = self.other_server.session(self.worker)?;
        }
        for session in [&mut self.fabius, &mut self.other] {
            session.say("ROLLBACK");
            session.say(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE"));
            let texts = [
                &format!("CREATE SCHEMA {SCHEMA}"),
                &format!("SET search_path = {SCHEMA}"),
                "SET TIME ZONE 'UTC'",
                "SET statement_timeout = '10s'",
            ];
            for text in texts {
                match session.say(text) {
                    Answer::Done(_) => {}
                    other => return Err(std::io::Error::other(format!("{text}: {other:?}"))),
                }
            }
        }
        Ok(())
    }

    /// The last lines of the server's log.
    pub fn last_words(&self) -> String {
        self.server.last_words()
    }

    /// Whether the reference that a refusal names holds in Fabius: it can be declared once more.
    fn holds(&mut self, refusal: &str) -> bool {
        let Some(name) =
            refusal.split("foreign key constraint \"").nth(1).and_then(|rest| rest.split('"').next())
        else {
            return false;
        };
        let declared = self.fabius.say(&format!(
            "SELECT conrelid::regclass, pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = '{name}'"
        ));
        let Some([Some(table), Some(definition)]) =
            declared.shown().and_then(|shown| shown.rows.first()).map(Vec::as_slice)
        else {
            return false;
        };
        matches!(self.fabius.say(&format!("ALTER TABLE {table} ADD {definition}")), Answer::Done(_))
    }

    /// Runs a statement on both. What Fabius refuses because it does not have it, PostgreSQL does not get: so
    /// both have the same rows afterwards.
    pub fn run(&mut self, statement: &Statement) -> Verdict {
        let message = statement.message();
        let got = self.fabius.ask(&message);
        self.is_lost |= matches!(got, Answer::Lost | Answer::Hangs);
        if let Answer::Refused { state, message } = &got
            && (state == "0A000" || message.starts_with("subquery uses ungrouped column"))
        {
            return Verdict::NotSupported(message.clone());
        }
        // What it did not commit, PostgreSQL does not.
        if let Answer::Refused { state, message } = &got
            && state == "54000"
            && message.starts_with("transaction too large")
        {
            let _ = self.other.say("ROLLBACK");
            return Verdict::NotComparable;
        }
        // It is ended in time.
        if got.state() == Some("57014") {
            return Verdict::NotComparable;
        }
        let expected = match self.is_lost {
            true => Answer::Done(Default::default()),
            false => self.other.ask(&self.other_message(statement, message)),
        };
        if matches!(expected.state(), Some("0A000" | "57014" | "54001" | "XX000"))
            || !matches!(expected, Answer::Done(_) | Answer::Refused { .. })
            || got == Answer::Large
        {
            return Verdict::NotComparable;
        }
        // Which of the parts of a statement runs first is not determined (`known.rs`); that references hold is.
        if let (Kind::WithWrites, Answer::Refused { state, message }, Answer::Done(_)) =
            (statement.kind, &expected, &got)
            && state == "23503"
            && self.holds(message)
        {
            return Verdict::NotComparable;
        }
        let determined = expected.shown().map(|shown| statement.determined(shown)).unwrap_or_default();
        let has_subquery = statement.node.sql().contains("(SELECT ");
        let mut found = difference(&expected, &got, &determined, has_subquery);
        // What PostgreSQL computes while it plans may be of rows that there are not.
        if let (Some(Difference::State { .. }), Answer::Refused { state, .. }, Answer::Done(_)) =
            (&found, &expected, &got)
            && state.starts_with("22")
            && self.other.say(&format!("EXPLAIN {}", statement.node.sql())).state() == Some(state)
        {
            found = None;
        }
        // Which of several errors is told is not determined.
        let refusals = expected.state().into_iter().chain(got.state());
        if matches!(found, Some(Difference::State { .. }))
            && refusals.clone().count() == 2
            && refusals.clone().any(|state| is_wrong(statement, state))
        {
            found = None;
        }
        if found.is_none() && determined.keys_only {
            found = self.difference_within_limit(statement, &expected, &got);
        }
        if found.is_none()
            && let Some(shown) = got.shown()
        {
            let checked = match statement.kind {
                Kind::Partition => self_check::partition(&mut self.fabius, statement),
                Kind::Select if determined.keys_only => {
                    self_check::prefix(&mut self.fabius, statement, shown)
                }
                _ => Ok(None),
            };
            // A transaction has failed on one side only then.
            let Ok(checked) = checked else { return Verdict::NotComparable };
            found = checked;
        }
        // What one side alone refuses, and may, has ended a transaction there: it ends on the other side too.
        if found.is_none() {
            match (expected.state(), got.state()) {
                (Some(_), None) => drop(self.fabius.say("SELECT 1 / 0")),
                (None, Some(_)) => drop(self.other.say("SELECT 1 / 0")),
                _ => {}
            }
        }
        let is_probe = statement.kind == Kind::Probe;
        match found {
            Some(Difference::Rows | Difference::RowCount) if is_probe => {
                Verdict::Different(Box::new(Differs { difference: Difference::Table, expected, got }))
            }
            Some(difference) => Verdict::Different(Box::new(Differs { difference, expected, got })),
            None if got.shown().is_some() => Verdict::Same { refusal: None },
            None => Verdict::Same { refusal: Some(expected.state().unwrap_or_default().to_string()) },
        }
    }

    /// What the other one gets: the same, or a query if it is Fabius too.
    fn other_message(&self, statement: &Statement, message: Message) -> Message {
        match (&self.other_server, statement.kind) {
            (Other::Postgres(_), _) | (_, Kind::Setup | Kind::Control) => message,
            _ => statement.sent(Way { form: Form::Query, ..statement.way }).message(),
        }
    }

    /// Other rows behind a limit are right if they are among all rows.
    fn difference_within_limit(
        &mut self,
        statement: &Statement,
        expected: &Answer,
        got: &Answer,
    ) -> Option<Difference> {
        let (expected, got) = (expected.shown()?, got.shown()?);
        if are_same_rows(expected, got) {
            return None;
        }
        let all = self.other.ask(&statement.without_limit()?.message());
        match is_part(got, all.shown()?) {
            true => None,
            false => Some(Difference::Rows),
        }
    }

    /// What PostgreSQL alone says.
    pub fn expected(&mut self, statement: &Statement) -> Answer {
        self.other.ask(&statement.sent(PLAIN).message())
    }

    /// Ends what is open on both.
    pub fn roll_back(&mut self, text: &str) {
        for session in [&mut self.fabius, &mut self.other] {
            session.say(text);
        }
    }
}

impl Determined {
    /// Whether rows may come in any order.
    pub fn is_unordered(&self) -> bool {
        self.keys.is_empty()
    }
}
