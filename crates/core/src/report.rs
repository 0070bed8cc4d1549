//! What a lock protocol shows of itself to people: pictures of a moment, for `inspect` and `explain`,
//! never a base for decisions.

use alloc::vec::Vec;

use crate::id::{CallId, RequestId, Token};
use crate::lock::Mode;
use crate::name::Name;
use crate::protocol::Surroundings;
use crate::time::{LocalTime, Span};

/// How many waiters a report names; more are only counted.
pub const WAITERS_SHOWN_MAX: usize = 64;
/// How many owners of a vote, or users inside, a report names.
pub const OWNERS_SHOWN_MAX: usize = 64;

/// A protocol that can be looked into.
pub trait Inspect {
    /// The replicas of a name that this peer hosts.
    fn replicas(
        &self, around: &dyn Surroundings, now: LocalTime, name: &Name,
    ) -> Vec<ReplicaReport>;
    /// What this peer's own users have to do with a name.
    fn local(&self, now: LocalTime, name: &Name) -> LocalReport;
    /// Names that this peer hosts or uses, in the order of [`Name`], after `after`, at most `limit`.
    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name>;
}

/// A replica, at its host.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ReplicaReport {
    /// Which of the n.
    pub index: u16,
    /// Who has the vote: one, or readers together, at most [`OWNERS_SHOWN_MAX`].
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
    /// Who is inside: one, or readers together, at most [`OWNERS_SHOWN_MAX`].
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
