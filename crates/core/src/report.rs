//! What a lock protocol shows of itself to people: pictures of a moment, for `inspect` and `explain`,
//! never a base for decisions.

use alloc::vec::Vec;

use crate::id::{CallId, PeerId, RequestId, Token};
use crate::lock::Mode;
use crate::name::Name;
use crate::time::{LocalTime, Span};

/// How many waiters a report names; more are only counted.
pub const WAITERS_SHOWN_MAX: usize = 64;
/// How many owners of a vote, or users inside, a report names.
pub const OWNERS_SHOWN_MAX: usize = 64;

/// A protocol that can be looked into.
pub trait Inspect {
    /// The replicas of a name that this peer hosts.
    fn replicas(&self, now: LocalTime, name: &Name) -> Vec<ReplicaReport>;
    /// What this peer's own users have to do with a name.
    fn local(&self, now: LocalTime, name: &Name) -> LocalReport;
    /// Names that this peer hosts or uses, in the order of [`Name`], after `after`, at most `limit`.
    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name>;
    /// The membership that peers have agreed on; `None` where they do not.
    fn view(&self, _now: LocalTime) -> Option<ViewReport> {
        None
    }
    /// Where peers agree on who is in: who hosts a name, and as which replica of it.
    fn seats(&self, _name: &Name) -> Vec<(u16, PeerId)> {
        Vec::new()
    }
}

/// An agreed membership, as one peer knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ViewReport {
    /// Its number; 0 if this peer knows of none.
    pub number: u64,
    /// Who is in, ascending.
    pub members: Vec<MemberReport>,
    /// How many vote on a name, and how many votes hold it.
    pub votes: (u16, u16),
    /// Whether an operator made it, who had members forgotten.
    pub forced: bool,
    /// How this peer stands to it.
    pub standing: Standing,
    /// Whether users of this peer get locks, by its own vote or those of others, as far as it knows: it reaches enough
    /// members that vote.
    pub gets_locks: bool,
    /// Peers that can be reached and are of another swarm, as far as known.
    pub strangers: Vec<PeerId>,
    /// Peers that can be reached and are in another view of this number: while they are there, this peer does not vote.
    pub rivals: Vec<PeerId>,
    /// Peers that came back with an old disk, as they said, and have not been taken in anew since.
    pub outdated: Vec<PeerId>,
    /// With [`Standing::Unvouched`], once somebody has vouched: for so long at most it waits for the others that it
    /// reaches.
    pub vouched_in: Option<Span>,
}

/// A member of a view, as one peer sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MemberReport {
    /// Who.
    pub peer: PeerId,
    /// The view in which it came.
    pub since: u64,
    /// It has said that it lost its memory: it votes for nobody until it has been removed and added again.
    pub forgot: bool,
    /// Since when it cannot be reached from here, if so.
    pub silent_for: Option<Span>,
}

/// How a peer stands to the swarm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Standing {
    /// Not in: it has not been added yet, has left, or was taken for dead.
    Outside,
    /// In no swarm yet, and one of so many hosts that make one together.
    Founding {
        /// How many of them it reaches, itself included.
        here: u16,
        /// How many there must be.
        expected: u16,
        /// Another one that has proposed a swarm, has this peer's pledge to it, and alone can decide on it.
        pledged_to: Option<PeerId>,
        /// Another one that was told another number, which is this: while it is there, there is no swarm.
        told_otherwise: Option<(PeerId, u16)>,
    },
    /// It lost what it promised, and waits to be removed and added again.
    Lost,
    /// The same: its disk is not the newest that it had, and others remember more. An old backup was put back, or
    /// another peer has run, or runs, with a copy of it.
    OldDisk,
    /// In, but it has just come back, or in sight, and not enough members have vouched for its disk yet; or somebody is in
    /// another view of this number, and nobody knows who is right.
    Unvouched,
    /// In, and finding out which votes are out; it votes when it knows, at the latest after so long.
    Learning {
        /// How long.
        for_at_most: Span,
    },
    /// In, but it reaches too few of the members to get anybody a lock.
    Minority {
        /// How many it reaches, itself included.
        up: u16,
        /// How many it takes.
        needed: u16,
    },
    /// In, and voting.
    Voting,
}

/// A replica, at its host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReplicaReport {
    /// Which of the n.
    pub index: u16,
    /// Who has the vote: one, or several that may be inside together, at most [`OWNERS_SHOWN_MAX`].
    pub owners: Vec<OwnerReport>,
    /// Those who wait, oldest first, at most [`WAITERS_SHOWN_MAX`].
    pub waiters: Vec<RequestId>,
    /// How many wait in all.
    pub waiting: u32,
    /// The highest token known here.
    pub token: Token,
    /// For so long it gives its vote to nobody, because it may not remember all of them.
    pub abstains_for: Span,
}

/// Who has a vote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OwnerReport {
    /// The request.
    pub request: RequestId,
    /// In what company it has it.
    pub mode: Mode,
    /// Since when.
    pub held_for: Span,
    /// When the vote runs out, if it is not renewed.
    pub ends_in: Span,
}

/// A peer's own users and one name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LocalReport {
    /// Who is inside: one, or several that may be inside together, at most [`OWNERS_SHOWN_MAX`].
    pub holders: Vec<HolderReport>,
    /// The calls that wait, next first, at most [`WAITERS_SHOWN_MAX`].
    pub waiters: Vec<CallId>,
    /// How many wait in all.
    pub waiting: u32,
    /// For a request that waits in the swarm: what it knows of its n replicas.
    pub votes: Option<VotesReport>,
}

/// Who is inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HolderReport {
    /// The call that let it in.
    pub call: CallId,
    /// In what company it is inside.
    pub mode: Mode,
    /// What the swarm knows it as.
    pub request: Option<RequestId>,
    /// Its token.
    pub token: Option<Token>,
    /// Since when.
    pub held_for: Span,
    /// When the right ends, if it is not renewed.
    pub ends_in: Span,
}

/// What a request knows of its replicas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VotesReport {
    /// Votes it has.
    pub mine: u16,
    /// Votes that others have.
    pub theirs: u16,
    /// Replicas whose hosts are away, or abstain.
    pub nobody: u16,
    /// Replicas not heard of yet.
    pub unknown: u16,
}
