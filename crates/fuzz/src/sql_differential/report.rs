//! What a campaign has come to: counts, and the scripts of what differs in the format of
//! `crates/cli/tests/sql/scripts`.

use super::Settings;
use super::compare::Difference;
use super::pair::{Differs, Pair, SCHEMA};
use super::session::Answer;
use super::statement::{Kind, Statement, Way};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io::Result;
use std::path::PathBuf;
use std::time::Instant;

/// Scripts that are shrunk of one rough cause: kind of statement and kind of difference.
const SHRUNK_PER_CAUSE: usize = 12;

/// A script whose last statement differs.
#[derive(Clone, Debug)]
pub struct Found {
    pub seed: u64,
    pub history: Vec<Statement>,
    pub last: Statement,
    pub differs: Differs,
    /// What the server said last, if the connection was lost.
    pub last_words: String,
}

/// Counts and differences.
pub struct Report {
    pub folder: PathBuf,
    /// The command that runs one case again, but for its seed.
    command: String,
    pub begun: Instant,
    pub cases: usize,
    pub not_comparable: usize,
    done: BTreeMap<Kind, usize>,
    refused_by_both: BTreeMap<Kind, usize>,
    not_supported: BTreeMap<(Kind, String), usize>,
    /// The shortest statement of each of these.
    shortest: BTreeMap<(Kind, String), String>,
    rough: BTreeMap<(Kind, String), usize>,
    /// What was found before by all workers.
    known: BTreeMap<(Kind, String), usize>,
    causes: BTreeMap<String, Vec<u64>>,
}

/// Longer statements are not shown.
const SHOWN: usize = 600;

/// Words of a statement that say what it is about.
const WORDS: &[&str] = &[
    "NOT IN (SELECT",
    "IN (SELECT",
    "EXISTS",
    "ANY (",
    "ALL (",
    "SOME (",
    "LATERAL",
    "NATURAL",
    "USING",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
    "CROSS JOIN",
    "UNION ALL",
    "UNION",
    "INTERSECT",
    "EXCEPT",
    "WITH RECURSIVE",
    "WITH",
    "ROLLUP",
    "CUBE",
    "GROUPING SETS",
    "GROUP BY",
    "HAVING",
    "DISTINCT ON",
    "DISTINCT",
    "OVER",
    "ORDER BY",
    "LIMIT",
    "OFFSET",
    "FILTER",
    "RETURNING",
    "ON CONFLICT",
    ".*",
    "VALUES",
    "unnest",
    "generate_series",
    "CASE",
];

impl Report {
    pub fn new(settings: &Settings) -> Report {
        let alone = if settings.with_postgres { "" } else { " --alone" };
        Report {
            folder: settings.folder.clone(),
            command: format!("cargo xtask fuzz sql-differential{alone} --cases 1 --seed"),
            begun: Instant::now(),
            cases: 0,
            not_comparable: 0,
            done: BTreeMap::new(),
            refused_by_both: BTreeMap::new(),
            not_supported: BTreeMap::new(),
            shortest: BTreeMap::new(),
            rough: BTreeMap::new(),
            known: BTreeMap::new(),
            causes: BTreeMap::new(),
        }
    }

    pub fn count(&mut self, kind: Kind, is_done: bool) {
        let counts = if is_done { &mut self.done } else { &mut self.refused_by_both };
        *counts.entry(kind).or_default() += 1;
    }

    pub fn not_supported(&mut self, statement: &Statement, message: &str) {
        let cause = (statement.kind, masked(message));
        *self.not_supported.entry(cause.clone()).or_default() += 1;
        self.keep_shorter(cause, statement.node.sql());
    }

    fn keep_shorter(&mut self, cause: (Kind, String), sql: String) {
        let known = self.shortest.entry(cause).or_insert_with(|| sql.clone());
        if sql.len() < known.len() {
            *known = sql;
        }
    }

    /// Statements that were compared.
    pub fn statements(&self) -> usize {
        self.done.values().chain(self.refused_by_both.values()).chain(self.not_supported.values()).sum()
    }

    pub fn differences(&self) -> usize {
        self.rough.values().sum()
    }

    pub fn is_worth_shrinking(&self, found: &Found) -> bool {
        self.known.get(&found.rough_cause()).is_none_or(|count| *count < SHRUNK_PER_CAUSE)
    }

    /// Takes over what others have found before.
    pub fn know(&mut self, others: &Report) {
        self.known = others.rough.clone();
    }

    /// A line for the time while it runs.
    pub fn progress(&self) -> String {
        let seconds = self.begun.elapsed().as_secs_f64();
        let statements = self.statements();
        let rate = statements as f64 / seconds;
        format!(
            "{} cases, {statements} statements, {rate:.0}/s, {} differences, {seconds:.0} s",
            self.cases,
            self.differences()
        )
    }

    pub fn add_unshrunk(&mut self, found: &Found) {
        *self.rough.entry(found.rough_cause()).or_default() += 1;
    }

    /// Writes the script of a difference, and says it.
    pub fn add(&mut self, pair: &mut Pair, found: Found) -> Result<()> {
        self.add_unshrunk(&found);
        let cause = cause(&found);
        eprintln!("{cause} ({}): {} {}", found.last.way.name(), self.command, found.seed);
        let script = script(pair, &found, &self.command)?;
        std::fs::create_dir_all(&self.folder)?;
        std::fs::write(self.folder.join(format!("{}.slt", found.seed)), script)?;
        self.causes.entry(cause).or_default().push(found.seed);
        Ok(())
    }

    /// Takes in what another worker has found.
    pub fn merge(&mut self, other: Report) {
        self.cases += other.cases;
        self.not_comparable += other.not_comparable;
        for (to, from) in [(&mut self.done, other.done), (&mut self.refused_by_both, other.refused_by_both)] {
            from.into_iter().for_each(|(kind, count)| *to.entry(kind).or_default() += count);
        }
        for (to, from) in [(&mut self.not_supported, other.not_supported), (&mut self.rough, other.rough)] {
            from.into_iter().for_each(|(key, count)| *to.entry(key).or_default() += count);
        }
        for (cause, sql) in other.shortest {
            self.keep_shorter(cause, sql);
        }
        for (cause, seeds) in other.causes {
            self.causes.entry(cause).or_default().extend(seeds);
        }
    }

    /// The summary.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        let seconds = self.begun.elapsed().as_secs_f64();
        let statements = self.statements();
        let _ = writeln!(
            text,
            "{} cases, {statements} statements in {seconds:.1} s ({:.0}/s); {} not comparable; {} differences",
            self.cases,
            statements as f64 / seconds,
            self.not_comparable,
            self.differences()
        );
        let _ = writeln!(
            text,
            "\n{:<20} {:>9} {:>16} {:>14}",
            "statements", "done", "refused by both", "not supported"
        );
        for kind in Kind::ALL {
            let not_supported: usize =
                self.not_supported.iter().filter(|((of, _), _)| *of == kind).map(|(_, count)| count).sum();
            let of = |counts: &BTreeMap<Kind, usize>| counts.get(&kind).copied().unwrap_or(0);
            let (done, refused) = (of(&self.done), of(&self.refused_by_both));
            if done + refused + not_supported > 0 {
                let _ = writeln!(text, "{:<20} {done:>9} {refused:>16} {not_supported:>14}", kind.name());
            }
        }
        if !self.not_supported.is_empty() {
            let _ = writeln!(text, "\nnot supported (0A000):");
            let mut messages: Vec<_> = self.not_supported.iter().collect();
            messages.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
            for (cause @ (kind, message), count) in messages {
                let _ = writeln!(text, "{count:>7}  {}: {message}", kind.name());
                if let Some(sql) = self.shortest.get(cause).filter(|sql| sql.len() <= SHOWN) {
                    let _ = writeln!(text, "         {sql}");
                }
            }
        }
        if !self.rough.is_empty() {
            let _ = writeln!(text, "\ndifferences:");
            for ((kind, difference), count) in &self.rough {
                let _ = writeln!(text, "{count:>7}  {}: {difference}", kind.name());
            }
            let _ = writeln!(text, "\nas they are shrunk:");
            for (cause, seeds) in &self.causes {
                let seeds: Vec<String> = seeds.iter().take(6).map(u64::to_string).collect();
                let _ = writeln!(text, "  {cause}\n      seeds {}", seeds.join(" "));
            }
            let _ = writeln!(text, "\nscripts: {}\none again: {} SEED", self.folder.display(), self.command);
        }
        text
    }
}

/// A message without the names and numbers in it.
fn masked(message: &str) -> String {
    let mut masked = String::new();
    for character in message.chars() {
        match character.is_ascii_digit() {
            true if masked.ends_with('#') => {}
            true => masked.push('#'),
            false => masked.push(character),
        }
    }
    masked.chars().take(110).collect()
}

/// What a difference seems to come from: how the answers differ, and words of the statement that shows it.
fn cause(found: &Found) -> String {
    let sql = found.last.node.sql();
    let words: Vec<&str> = WORDS.iter().copied().filter(|word| sql.contains(word)).collect();
    format!("{}: {} [{}]", found.last.kind.name(), found.differs.difference, words.join(" "))
}

/// The script with PostgreSQL's answers.
fn script(pair: &mut Pair, found: &Found, command: &str) -> Result<String> {
    let Found { seed, history, last, differs, last_words } = found;
    let mut text = format!("# {}, sent as {}.\n# {command} {seed}\n", differs.difference, last.way.name());
    for (what, answer) in [("expected", &differs.expected), ("got", &differs.got)] {
        if let Answer::Refused { state, message } = answer {
            let _ = writeln!(text, "# {what}: {state} {message}");
        }
    }
    if matches!(differs.difference, Difference::Lost | Difference::Hangs) {
        last_words.lines().for_each(|line| text.push_str(&format!("# {line}\n")));
    }
    pair.begin()?;
    for statement in history.iter().chain([last]) {
        let sql = statement.sent(Way { parameters: None, ..statement.way }).message().sql;
        let answer = pair.expected(statement);
        let _ = match &answer {
            Answer::Done(shown) if !shown.columns.is_empty() => {
                let letters: String = shown.columns.iter().map(|column| letter(column.oid)).collect();
                let is_sorted = !statement.determined(shown).is_unordered();
                let sort = if is_sorted || shown.rows.len() < 2 { "" } else { " rowsort" };
                writeln!(text, "\nquery {letters}{sort}\n{sql}\n----\n{}", lines(shown, !sort.is_empty()))
            }
            Answer::Done(shown) => {
                match shown.tag.rsplit(' ').next().and_then(|word| word.parse::<u64>().ok()) {
                    Some(count) => writeln!(text, "\nstatement count {count}\n{sql}"),
                    None => writeln!(text, "\nstatement ok\n{sql}"),
                }
            }
            other => writeln!(text, "\nstatement error ({})\n{sql}", other.state().unwrap_or("no answer")),
        };
    }
    if let Answer::Done(shown) = &differs.got
        && !shown.columns.is_empty()
    {
        let names: Vec<String> =
            shown.columns.iter().map(|column| format!("{} ({})", column.name, column.oid)).collect();
        let _ = writeln!(text, "\n# got: {} {}", shown.tag, names.join(", "));
        lines(shown, false).lines().take(40).for_each(|line| text.push_str(&format!("# {line}\n")));
    }
    // Kept scripts have their tables where others have theirs.
    Ok(text.replace(&format!("{SCHEMA}."), "public."))
}

fn lines(shown: &super::session::Shown, sorted: bool) -> String {
    let value = |cell: &Option<String>| match cell.as_deref() {
        None => "NULL".to_string(),
        Some("") => "(empty)".to_string(),
        Some(text) => text.replace('\n', "\\n"),
    };
    let mut lines: Vec<String> =
        shown.rows.iter().map(|row| row.iter().map(value).collect::<Vec<_>>().join(" ")).collect();
    if sorted {
        lines.sort();
    }
    lines.join("\n")
}

/// The letter of a type in scripts (`crates/cli/tests/sql/client.rs`).
fn letter(oid: u32) -> char {
    match oid {
        16 => 'B',
        16_384.. => 'W',
        21 => 'S',
        23 => 'I',
        20 => 'L',
        1700 => 'N',
        700 => 'F',
        701 => 'R',
        25 => 'T',
        1043 => 'V',
        1042 => 'C',
        17 => 'Y',
        2950 => 'U',
        114 => 'J',
        3802 => 'X',
        1082 => 'D',
        1083 => 'H',
        1114 => 'P',
        1184 => 'Z',
        1186 => 'E',
        1000..=1009
        | 1014..=1016
        | 1021
        | 1022
        | 1028
        | 1115
        | 1182
        | 1183
        | 1185
        | 1187
        | 1231
        | 2951
        | 3807 => 'A',
        _ => '?',
    }
}
