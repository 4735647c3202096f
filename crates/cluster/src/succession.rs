//! How a node comes back that has lost what it had promised to keep: as another one, its successor, in the same seat.
//!
//! A node whose log is damaged may have acknowledged what it has no more, and whoever counted on it must not count on
//! it again; so it cannot just be given the rest by the others, and go on under its number. It begins anew, with
//! nothing but the members that it knew of, under the next number of its seat ([`NodeId`]), and asks to be let in.
//! The leader makes of that changes of members as any other:
//!
//! ```text
//!   members    3           3, 3.1 learns                 3.1 learns            3.1
//!               --let in-->               --3 is removed-->         --a vote-->
//!              damaged                                      is filled, follows
//! ```
//!
//! The one that will never be heard again goes before its successor has a vote: with both among those of whom a
//! majority is needed, one more that fails would be too many. Only a seat that has a member can be succeeded to: who
//! was removed stays so.

use crate::Member;
use crate::hard_state::{Fill, HardState};
use crate::opening::unusable;
use fabius_env::{Disk, NodeId};
use fabius_value::{Error, Result, SqlState};
use raft::eraftpb::ConfChangeType;

/// Makes the node in a directory its own successor: when it is opened, its log and its checkpoints go, and it asks to
/// be let in. Gives the node that it is then.
///
/// # Errors
/// `55000` if the directory belongs to no node; `XX001` if what tells who the members are is damaged too; as the disk
/// fails.
pub fn begin_anew(disk: &dyn Disk) -> Result<NodeId> {
    let failed = |error| unusable(disk, error);
    let Some(before) = HardState::read(disk).map_err(failed)? else {
        return Err(Error::new(SqlState::NOT_IN_STATE, "the directory belongs to no node of a cluster")
            .with_detail(disk.directory().display().to_string()));
    };
    let successor = NodeId(before.node).successor();
    let mut members = before.members;
    let own = members.iter().find(|member| member.node == before.node).cloned();
    let Member { address, votes, .. } = own.ok_or_else(|| {
        Error::new(SqlState::NOT_IN_STATE, "this node is no member of its cluster any more")
            .with_hint("a directory that was removed from a cluster does not come back; add a new node")
    })?;
    if predecessors(&members, before.node).next().is_some() {
        // It was on its way into its seat, and the others may never have heard of it.
        members.retain(|member| member.node != before.node);
    }
    members.push(Member { node: successor.0, address, votes: false });
    let state = HardState {
        node: successor.0,
        fill: Fill::TakesOver,
        claims_vote: before.claims_vote || votes,
        members_at: before.members_at,
        members,
        ..HardState::default()
    };
    state.write(disk).map_err(|error| unusable(disk, crate::HardStateError::Disk(error)))?;
    Ok(successor)
}

/// Whether the node in a directory can begin anew, and was not kept out for having computed something else than the
/// others.
pub fn can_begin_anew(disk: &dyn Disk) -> bool {
    let state = HardState::read(disk).ok().flatten();
    let is_member = |state: &HardState| state.members.iter().any(|member| member.node == state.node);
    state.is_some_and(|state| state.differs_at == 0 && is_member(&state))
}

/// The members whose seat a node takes that has come after them.
pub(crate) fn predecessors(members: &[Member], node: u64) -> impl Iterator<Item = &Member> {
    let seat = NodeId(node).seat();
    members.iter().filter(move |member| member.node < node && NodeId(member.node).seat() == seat)
}

/// The next change of members by which a successor comes into its seat, with a vote if it says that there was one;
/// none if it has it, or has no claim to it.
pub(crate) fn next_change(members: &[Member], successor: &Member) -> Option<(ConfChangeType, Member)> {
    let known = members.iter().find(|member| member.node == successor.node);
    let before = predecessors(members, successor.node).next();
    match (before, known) {
        (Some(_), None) => {
            Some((ConfChangeType::AddLearnerNode, Member { votes: false, ..successor.clone() }))
        }
        (Some(before), Some(_)) => Some((ConfChangeType::RemoveNode, before.clone())),
        (None, Some(known)) if successor.votes && !known.votes => {
            Some((ConfChangeType::AddNode, Member { votes: true, ..known.clone() }))
        }
        (None, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabius_env::SimulatedDisk;

    fn member(seat: u64, successions: u64, votes: bool) -> Member {
        Member { node: seat + (successions << 32), address: format!("node{seat}"), votes }
    }

    /// Goal: who is damaged once more before it has its seat takes over the claim, and counts nobody as before it
    /// whom the others may never have heard of.
    #[test]
    fn a_successor_that_is_damaged_too_has_one_of_its_own() {
        let disk = SimulatedDisk::new(1);
        let members = vec![member(1, 0, true), member(2, 0, true), member(3, 0, true)];
        crate::init(&disk, 3, members.clone()).expect("an empty disk");
        for successions in 1..4 {
            let successor = member(3, successions, false);
            assert_eq!(begin_anew(&disk).expect("it knows the members"), NodeId(successor.node));
            let state = HardState::read(&disk).expect("sound").expect("there");
            assert_eq!(state.members, [members.clone(), vec![successor]].concat());
            assert!(
                state.claims_vote && state.fill == Fill::TakesOver && state.node == state.members[3].node
            );
        }
    }

    /// Goal: a successor is let in, then the other is removed, then it has the vote that the seat had; a seat without
    /// a member is nobody's.
    #[test]
    fn a_successor_comes_into_its_seat_step_by_step() {
        for votes in [true, false] {
            let mut members = vec![member(1, 0, true), member(2, 0, true), member(3, 0, votes)];
            let successor = member(3, 1, votes);
            let mut steps = Vec::new();
            while let Some((change, changed)) = next_change(&members, &successor) {
                members.retain(|member| member.node != changed.node);
                if change != ConfChangeType::RemoveNode {
                    members.push(changed);
                }
                steps.push(change);
            }
            assert_eq!(members[2..], [successor]);
            assert_eq!(steps.len(), if votes { 3 } else { 2 });
        }
        assert_eq!(next_change(&[member(1, 0, true), member(13, 0, true)], &member(3, 1, false)), None);
        assert_eq!(next_change(&[member(3, 2, true)], &member(3, 1, false)), None);
    }
}
