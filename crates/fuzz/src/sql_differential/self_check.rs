//! What a database can be asked about itself, without another one.
//!
//! | check | source |
//! |---|---|
//! | a predicate, its negation and its null part add up to the whole | Rigger and Su, "Finding Bugs in Database Systems via Query Partitioning", 2020 |
//! | rows behind a limit are a piece of the rows without it | the definition of `LIMIT` |

use super::compare::{Difference, are_same_rows, is_part};
use super::generator::Generator;
use super::session::{Answer, Session, Shown};
use super::statement::{Kind, Statement};
use super::tree::Node;
use super::value_type::ValueType;

/// The name of the difference between a whole and its parts.
pub const PARTITION: &str = "a predicate, its negation and its null part do not add up to the whole";

/// The name of the difference between rows behind a limit and all rows.
pub const PREFIX: &str = "the rows behind a limit are not a piece of all rows";

impl Generator<'_> {
    /// A query in parts: one without a condition, which has to give what the other three give together. The statement
    /// has them one after another.
    pub fn partition(&mut self) -> Statement {
        let from = self.joined_tables();
        let mut items = Vec::new();
        for at in 0..1 + self.below(3) {
            let of = self.any_type();
            let value = self.expression(of);
            items.push(Node::plain(&format!("{{}} AS c{at}"), [value]));
        }
        let condition = self.expression(ValueType::Boolean);
        self.scopes.pop();
        Statement::new(
            Kind::Partition,
            Node::plain("SELECT {}{} WHERE {}", [Node::list(items), from, condition]),
        )
    }
}

/// It cannot be asked: one of the queries is refused.
#[derive(Debug)]
pub struct CannotBeAsked;

/// Whether the parts of a query add up to it.
///
/// # Errors
/// If a part is refused.
pub fn partition(session: &mut Session, statement: &Statement) -> Result<Option<Difference>, CannotBeAsked> {
    let parts: Vec<&Node> = statement.node.children().collect();
    let [items, from, condition] = parts.as_slice() else { return Ok(None) };
    let (items, from, condition) = (items.sql(), from.sql(), condition.sql());
    let mut ask = |condition: String| match session.say(&format!("SELECT {items}{from}{condition}")) {
        Answer::Done(shown) => Ok(shown),
        _ => Err(CannotBeAsked),
    };
    let whole = ask(String::new())?;
    let mut sum = Shown { columns: whole.columns.clone(), ..Shown::default() };
    for part in [condition.clone(), format!("NOT ({condition})"), format!("({condition}) IS NULL")] {
        sum.rows.extend(ask(format!(" WHERE {part}"))?.rows);
    }
    if are_same_rows(&whole, &sum) {
        return Ok(None);
    }
    // A query that groups all rows has one for no rows too; shrinking makes some.
    let groups_all = !ask(" WHERE false".into())?.rows.is_empty();
    Ok((!groups_all).then_some(Difference::Itself(PARTITION)))
}

/// Whether the rows that a statement with a limit has given are a piece of all of its rows.
///
/// # Errors
/// If it is refused without the limit.
pub fn prefix(
    session: &mut Session,
    statement: &Statement,
    got: &Shown,
) -> Result<Option<Difference>, CannotBeAsked> {
    let Some(without) = statement.without_limit() else { return Ok(None) };
    match session.ask(&without.message()) {
        Answer::Done(all) => Ok((!is_part(got, &all)).then_some(Difference::Itself(PREFIX))),
        _ => Err(CannotBeAsked),
    }
}
