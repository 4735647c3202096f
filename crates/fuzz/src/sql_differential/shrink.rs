//! Makes a script that shows a difference smaller as long as it shows the same difference.

use super::literal::Literal;
use super::pair::{Differs, Pair, Verdict};
use super::report::Found;
use super::statement::{Kind, PLAIN, Statement};
use super::tree::{ALONE, Node, Part, Role};
use std::io::Result;
use std::time::{Duration, Instant};

/// How long one script may take to shrink.
const PATIENCE: Duration = Duration::from_secs(40);

/// A smaller script with the same difference.
///
/// The history of a difference is what has changed something; if that does not show it, it is all that was sent.
///
/// # Errors
/// If a server cannot be started again.
pub fn shrink(pair: &mut Pair, found: Found, log: Vec<Statement>) -> Result<Found> {
    let begun = Instant::now();
    let (history, last) = (found.history.clone(), found.last.clone());
    let mut shrinking = Shrinking { pair, found, begun };
    if !shrinking.attempt(history, last.clone())? && !shrinking.attempt(log, last)? {
        return Ok(shrinking.found);
    }
    // Most differences do not need the ways in which they were found.
    let plain = |statement: &Statement| statement.sent(PLAIN);
    let history: Vec<Statement> = shrinking.found.history.iter().map(plain).collect();
    shrinking.attempt(history, shrinking.found.last.clone())?;
    shrinking.attempt(shrinking.found.history.clone(), shrinking.found.last.sent(PLAIN))?;
    loop {
        let before = shrinking.size();
        shrinking.drop_statements()?;
        shrinking.simplify()?;
        if shrinking.size() == before || shrinking.is_over() {
            return Ok(shrinking.found);
        }
    }
}

struct Shrinking<'p> {
    pair: &'p mut Pair,
    found: Found,
    begun: Instant,
}

impl Shrinking<'_> {
    fn is_over(&self) -> bool {
        self.begun.elapsed() > PATIENCE
    }

    fn size(&self) -> usize {
        self.found.history.iter().chain([&self.found.last]).map(|statement| statement.node.sql().len()).sum()
    }

    /// Takes a script if it shows the same difference.
    fn attempt(&mut self, history: Vec<Statement>, last: Statement) -> Result<bool> {
        let differs = replay(self.pair, &history, &last)?;
        match differs.filter(|differs| differs.difference == self.found.differs.difference) {
            Some(differs) => {
                self.found = Found { history, last, differs, ..self.found.clone() };
                Ok(true)
            }
            None => Ok(false),
        }
    }

    /// Without as many of the statements before as possible: halves, quarters, single ones.
    fn drop_statements(&mut self) -> Result<()> {
        let mut length = self.found.history.len();
        while length > 0 {
            let mut at = 0;
            while at < self.found.history.len() && !self.is_over() {
                let mut history = self.found.history.clone();
                history.drain(at..(at + length).min(history.len()));
                if !self.attempt(history, self.found.last.clone())? {
                    at += length;
                }
            }
            length /= 2;
        }
        Ok(())
    }

    /// Each statement made smaller, the last one first.
    fn simplify(&mut self) -> Result<()> {
        let mut skip = 0;
        loop {
            let found = self.found.clone();
            let mut candidates = smaller_scripts(&found).skip(skip);
            loop {
                let Some(Smaller { history, last, .. }) = candidates.next() else { return Ok(()) };
                if self.is_over() {
                    return Ok(());
                }
                if self.attempt(history, last)? {
                    break;
                }
                skip += 1;
            }
        }
    }
}

/// Whether a statement has two faults, and each side tells another one: once some part is left out both tell
/// PostgreSQL's, and once an expression or an order is left out, which nothing else names, both tell that of Fabius.
///
/// # Errors
/// If a server cannot be started again.
pub fn has_two_faults(pair: &mut Pair, found: &Found) -> Result<bool> {
    let Differs { expected, got, .. } = &found.differs;
    let (Some(expected), Some(got)) = (expected.state(), got.state()) else { return Ok(false) };
    // Of what the statement says, not of values.
    if !expected.starts_with("42") || !got.starts_with("42") {
        return Ok(false);
    }
    let (begun, mut both_expect, mut both_get) = (Instant::now(), false, false);
    for smaller in smaller_scripts(found) {
        if begun.elapsed() > PATIENCE {
            break;
        }
        if let Some(Verdict::Same { refusal: Some(state) }) =
            run_script(pair, &smaller.history, &smaller.last)?
        {
            both_expect |= state == expected;
            both_get |= state == got && smaller.adds_no_fault;
        }
        if both_expect && both_get {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A script with one statement smaller.
struct Smaller {
    history: Vec<Statement>,
    last: Statement,
    adds_no_fault: bool,
}

/// Scripts with one statement smaller, the last one first.
fn smaller_scripts(found: &Found) -> impl Iterator<Item = Smaller> {
    let script: Vec<Statement> =
        [&found.last].into_iter().chain(found.history.iter().rev()).cloned().collect();
    let places = 0..script.len();
    places.flat_map(move |at| candidates(&script, at)).map(|candidate| {
        let Candidate { script: mut history, adds_no_fault } = candidate;
        let last = history.remove(0);
        history.reverse();
        Smaller { history, last, adds_no_fault }
    })
}

/// What the last statement of a script differs in, if it does.
pub fn replay(pair: &mut Pair, history: &[Statement], last: &Statement) -> Result<Option<Differs>> {
    match run_script(pair, history, last)? {
        Some(Verdict::Different(differs)) => Ok(Some(*differs)),
        _ => Ok(None),
    }
}

/// What the last statement of a script comes to, if those before it come to the same on both sides.
fn run_script(pair: &mut Pair, history: &[Statement], last: &Statement) -> Result<Option<Verdict>> {
    pair.begin()?;
    for (at, statement) in history.iter().enumerate() {
        let next = history.get(at + 1).unwrap_or(last).node.sql();
        match pair.run(statement) {
            Verdict::Same { .. } => {}
            // What has failed on one side only has to be undone.
            Verdict::NotSupported(_) if next.starts_with("ROLLBACK") => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(pair.run(last)))
}

/// A script with a smaller statement in it.
struct Candidate {
    script: Vec<Statement>,
    /// Whether what is wrong with it was wrong before: nothing has gone that something else names.
    adds_no_fault: bool,
}

/// Scripts in which the statement at a place is smaller, the smallest first.
fn candidates(script: &[Statement], at: usize) -> Vec<Candidate> {
    let root = &script[at].node;
    let mut ways: Vec<(Vec<usize>, Node)> = Vec::new();
    root.visit(&mut Vec::new(), &mut |way, node| ways.push((way.to_vec(), node.clone())));
    let mut all = Vec::new();
    for (way, node) in &ways {
        let replace = |by: Node| {
            let mut script = script.to_vec();
            if let Some(place) = script[at].node.at_mut(way) {
                *place = by;
            }
            script
        };
        let replaced = |by: Node| Candidate { script: replace(by), adds_no_fault: false };
        let omitted = |by: Node| Candidate { script: replace(by), adds_no_fault: true };
        match &node.role {
            Role::Optional if !node.parts.is_empty() => all.push(replaced(Node::nothing())),
            Role::Limit if !node.parts.is_empty() => all.push(omitted(Node::nothing())),
            Role::OrderBy => {
                all.push(omitted(Node::nothing()));
                if node.parts.len() > 1 {
                    all.extend((0..node.parts.len()).map(|at| replaced(without(node, at, 1))));
                }
            }
            Role::List { least, group, .. } => {
                let mut length = node.parts.len().saturating_sub(*least);
                while length > 0 {
                    for first in (0..node.parts.len()).step_by(length) {
                        let length = length.min(node.parts.len() - first);
                        if node.parts.len() - length < *least {
                            continue;
                        }
                        all.push(match *group {
                            ALONE => replaced(without(node, first, length)),
                            group => Candidate {
                                script: without_of_group(script, group, node.parts.len(), first, length),
                                adds_no_fault: false,
                            },
                        });
                    }
                    length /= 2;
                }
            }
            Role::Query => {
                let mut inner = Vec::new();
                node.visit(&mut Vec::new(), &mut |way, node| {
                    if !way.is_empty() && node.role == Role::Query {
                        inner.push(node.clone());
                    }
                });
                inner.sort_by_key(Node::size);
                all.extend(inner.into_iter().map(replaced));
            }
            Role::Expression(of) if node.size() > 1 || !is_simple(node) => {
                let null = Node::literal(*of, Literal::new(*of, None));
                let first = Node::literal(*of, Literal::new(*of, of.values().first().copied()));
                let is_literal = matches!(node.parts.first(), Some(Part::Literal(_)));
                if !is_literal {
                    all.push(omitted(null));
                    all.push(omitted(first));
                }
                let mut inner = Vec::new();
                node.visit(&mut Vec::new(), &mut |way, other| {
                    if !way.is_empty() && other.role == node.role {
                        inner.push(other.clone());
                    }
                });
                inner.sort_by_key(Node::size);
                all.extend(inner.into_iter().map(replaced));
            }
            Role::Word { simpler } if *node != Node::word(simpler, simpler) => {
                all.push(replaced(Node::word(simpler, simpler)));
            }
            _ => {}
        }
    }
    all
}

/// Whether an expression is a column or a value already.
fn is_simple(node: &Node) -> bool {
    match node.parts.as_slice() {
        [Part::Literal(_)] => true,
        [Part::Text(text)] => text.chars().all(|c| c.is_alphanumeric() || c == '.'),
        _ => false,
    }
}

fn without(node: &Node, first: usize, length: usize) -> Node {
    let mut node = node.clone();
    node.parts.drain(first..first + length);
    node
}

/// A script whose lists of a group, if they are of this length, have lost these elements.
fn without_of_group(
    script: &[Statement],
    group: u32,
    count: usize,
    first: usize,
    length: usize,
) -> Vec<Statement> {
    fn lose(node: &mut Node, group: u32, count: usize, first: usize, length: usize) {
        if matches!(node.role, Role::List { group: own, .. } if own == group) && node.parts.len() == count {
            node.parts.drain(first..first + length);
        }
        for part in &mut node.parts {
            if let Part::Node(node) = part {
                lose(node, group, count, first, length);
            }
        }
    }
    let mut script = script.to_vec();
    for statement in &mut script {
        lose(&mut statement.node, group, count, first, length);
    }
    script
}

impl Found {
    /// How it is grouped before it is shrunk.
    pub fn rough_cause(&self) -> (Kind, String) {
        (self.last.kind, self.differs.difference.to_string())
    }
}
