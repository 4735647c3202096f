//! Functions about the cluster that this node is of.

use super::{Call, Definition, define, integer_at, text_at};
use fabius::{Database, Member, MemberChange, NodeId};
use fabius_value::{Error, Result, SqlState, Value};
use serde_json::json;
use std::sync::Arc;

/// All of them.
pub fn definitions() -> Vec<Definition> {
    vec![
        define("fabius_cluster() jsonb stable null", |_, c| {
            Ok(c.environment
                .session
                .node()
                .as_deref()
                .and_then(shown)
                .map(Value::Text)
                .unwrap_or(Value::Null))
        }),
        define("fabius_cluster_add(int, text) bool volatile", |a, c| {
            let (node, address) = (number_at(a, 0)?, text_at(a, 1).to_string());
            change(c, MemberChange::Add(Member { node, address, votes: false }))
        }),
        define("fabius_cluster_vote(int) bool volatile", |a, c| {
            let node = number_at(a, 0)?;
            let status = node_of(c)?.member_status();
            let known = status
                .and_then(|status| status.members.into_iter().rfind(|member| seat(member.node) == node));
            let member = known.ok_or_else(|| {
                let message = format!("node {node} is no member of the cluster");
                Error::new(SqlState::NOT_IN_STATE, message)
                    .with_hint("let it in with fabius_cluster_add first")
            })?;
            change(c, MemberChange::Add(Member { node, votes: true, ..member }))
        }),
        define("fabius_cluster_remove(int) bool volatile", |a, c| {
            change(c, MemberChange::Remove(number_at(a, 0)?))
        }),
        define("fabius_cluster_lead(int) bool volatile", |a, c| {
            change(c, MemberChange::Lead(number_at(a, 0)?))
        }),
    ]
}

/// The number by which people call a node.
fn seat(node: u64) -> u64 {
    NodeId(node).seat()
}

/// How the node stands, as JSON; nothing if it is of no cluster.
fn shown(database: &Database) -> Option<String> {
    let status = database.member_status()?;
    let standing = status.standing;
    let members: Vec<_> = status
        .members
        .iter()
        .map(|member| {
            let Member { node, address, votes } = member;
            let (leads, before) = (standing.leader == Some(*node), NodeId(*node).predecessors());
            let mut shown = json!({"node": seat(*node), "address": address, "votes": votes, "leads": leads});
            if before > 0 {
                shown["predecessors"] = before.into();
            }
            shown
        })
        .collect();
    let seats = |nodes: Vec<u64>| nodes.into_iter().map(seat).collect::<Vec<u64>>();
    let compared = status.compared.map(
        |compared| json!({"seq": compared.seq.0, "same": seats(compared.same), "differ": seats(compared.differ)}),
    );
    let shown = json!({
        "node": seat(status.node),
        "leads": standing.leads,
        "leader": standing.leader.map(seat),
        "term": standing.term,
        "first": standing.first,
        "agreed": standing.agreed,
        "taken": status.taken,
        "seq": database.standpoint().seq().0,
        "silent_ms": database.silence().map(|silence| silence.as_millis() as u64),
        "members": members,
        "compared": compared,
        "complaints": status.complaints,
    });
    Some(shown.to_string())
}

fn node_of(call: &Call) -> Result<Arc<Database>> {
    call.environment.session.node().filter(|database| database.member_status().is_some()).ok_or_else(|| {
        Error::new(SqlState::NOT_IN_STATE, "this database is of no cluster")
            .with_hint("fabius cluster init --help tells how to make one")
    })
}

/// Whether a change was made in time.
fn change(call: &Call, change: MemberChange) -> Result<Value> {
    node_of(call)?.change_members(change).map(Value::Boolean)
}

fn number_at(arguments: &[Value], at: usize) -> Result<u64> {
    u64::try_from(integer_at(arguments, at))
        .ok()
        .filter(|node| *node > 0)
        .ok_or_else(|| Error::new(SqlState::INVALID_PARAMETER, "nodes have numbers from 1 on"))
}
