//! What hosts tell each other of votes that are out: all of a replica when it moves, and who has which vote
//! when a newcomer asks.

use alloc::vec::Vec;

use sigmalock_core::{Incarnation, LocalTime, Name, ReplicaId, Span, Token};

use super::message::{Ticket, Vote};
use super::tokens::Tokens;

/// One hand-off by one life of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HandOffId {
    /// The life of the host that gives.
    pub life: Incarnation,
    /// The number, which grows within that life.
    pub number: u64,
}

/// So many waiters go with a replica. Those behind them ask again by themselves, and find their places
/// by their tickets.
pub const HANDED_WAITERS_MAX: usize = 512;

/// So many readers may have a vote together; one more waits for one of them to leave.
pub const OWNERS_MAX: usize = 1_024;

/// A replica on its way to its next host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HandOff {
    /// Which hand-off; a repeated one is the same.
    pub id: HandOffId,
    /// The life of the new host that it is meant for. Another one knows nothing of what the first did.
    pub to: Incarnation,
    /// The replica.
    pub replica: ReplicaId,
    /// Whether the old host was certain that nobody else has votes out for it.
    pub sure: bool,
    /// Who has the vote: one, or several that may be inside together, at most [`OWNERS_MAX`].
    pub owners: Vec<HandedVote>,
    /// Who waits for it, in order, at most [`HANDED_WAITERS_MAX`].
    pub waiters: Vec<HandedWaiter>,
    /// What is known of its tokens.
    pub(super) tokens: Tokens,
    /// For so long it must not vote.
    pub abstains_for: Span,
}

/// A vote that is out while its replica moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HandedVote {
    /// Whose it is.
    pub ticket: Ticket,
    /// The lease it asked for.
    pub ttl: Span,
    /// The vote; its lease begins anew at the new host.
    pub vote: Vote,
    /// The owner's clock when it sent what was last heard of it.
    pub sent: LocalTime,
    /// Whether it has had a token written down.
    pub sealed: bool,
}

/// A waiter whose replica moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HandedWaiter {
    /// Who waits.
    pub ticket: Ticket,
    /// The lease it wants.
    pub ttl: Span,
    /// Its clock when it sent what was last heard of it.
    pub sent: LocalTime,
}

/// So many replicas are in one page of votes at most.
pub const VOTES_PAGE_MAX: usize = 256;

/// Votes that a host has out, as a newcomer hears of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Votes {
    /// The name after which this page begins, as it was asked for.
    pub after: Option<Name>,
    /// The names that I remember, in order, at most [`VOTES_PAGE_MAX`].
    pub names: Vec<VotesOn>,
    /// Whether there are more.
    pub more: bool,
    /// As high as every token that I ever forgot.
    pub floor: Token,
}

/// Votes that a host has out for one name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct VotesOn {
    /// The name.
    pub name: Name,
    /// Who has the vote: one, or several that may be inside together, at most [`OWNERS_MAX`].
    pub owners: Vec<HandedVote>,
    /// What is known of its tokens.
    pub(super) tokens: Tokens,
    /// For so long I cannot tell who else may count on it.
    pub abstains_for: Span,
}
