//! What clients and hosts say to each other.
//!
//! ```text
//!  client                                   host of a replica
//!    │ REQUEST  I want it ──────────────────► │  free: the vote is yours │ taken: you are queued
//!    │ ◄────────── RESPONSE  yours / queued   │
//!    │ ◄─────────────────── GRANT  your turn  │  (the same message, unasked)
//!    │ YIELD    nobody can win, next please ► │  gives one grant back and asks again
//!    │ ◄───── RECALL  an older one waits here │  answered by YIELD, unless it has won
//!    │ WITHDRAW go on without me ───────────► │  it hears of too few to win, and asks again when that changes
//!    │ SEAL     write this token down ──────► │  only where the votes propose different tokens
//!    │ RENEW    I am still inside ──────────► │  one for all the names of a client at a host
//!    │ ◄──────────────────────────── RENEWED  │
//!    │ RELEASE  done, and this was my token ► │  leaves a tombstone
//! ```
//!
//! Where hosting moves, hosts also speak to each other, and clients are sent on:
//!
//! ```text
//!  newcomer                                 who hosted before it
//!    │ HELLO    I see you ──────────────────► │
//!    │ ◄───────── HAND-OFF  a replica is yours │  one for each, frozen here from now on; repeated until
//!    │ TAKEN    I have it ──────────────────► │
//!    │ ◄────────── HANDED-OVER  that was all  │  and so long I cannot vouch for others
//!
//!  client                                   a former host
//!    │ (anything about a replica) ──────────► │
//!    │ ◄──────── MOVED  somebody else has it  │
//! ```
//!
//! Where peers agree on who is in, a newcomer asks the others what they promised:
//!
//! ```text
//!  newcomer of a view                       a member of it and of the one before
//!    │ FETCH    which votes are out? ───────► │  if it knows that itself
//!    │ ◄────────────── VOTES  these, and more │  page by page
//! ```

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use sigmalock_core::{
    CallId, Echo, Incarnation, Lease, LocalTime, Mode, Name, PeerId, ReplicaId, RequestId, Span,
    Token,
};

pub use super::payload::{
    HANDED_WAITERS_MAX, HandOff, HandOffId, HandedVote, HandedWaiter, OWNERS_MAX, VOTES_PAGE_MAX,
    Votes, VotesOn,
};
use crate::parts::Hlc;

/// A request and its place in the order of all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ticket {
    /// When it was drawn: queues are in this order.
    pub order: Hlc,
    /// Whose it is.
    pub request: RequestId,
    /// In what company it wants the lock.
    pub mode: Mode,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.request.fmt(f)
    }
}

/// One giving of a vote by one life of a host. Numbers grow within that life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct GrantId {
    /// The life of the host.
    pub life: Incarnation,
    /// The number.
    pub number: u64,
}

/// A vote as its host describes it to its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Vote {
    /// Which grant it is.
    pub grant: GrantId,
    /// From when and for how long.
    pub lease: Lease,
    /// The fencing token this host proposes, written down here for as long as the vote lasts.
    pub proposal: Token,
}

/// What every message that asks something of a replica begins with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ask {
    /// The replica.
    pub replica: ReplicaId,
    /// The request.
    pub ticket: Ticket,
    /// The lease it wants.
    pub ttl: Span,
    /// The client's clock at sending; the answer echoes it.
    pub sent: LocalTime,
    /// Whether it is inside already, and only wants more votes to stay there: it goes first.
    pub inside: bool,
}

/// What a request that ends has to say of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Spent {
    /// It was never inside: what was proposed to it may be proposed again.
    Nothing,
    /// It was inside, with this token.
    Token(Used),
    /// It is over, and nobody remembers whether it was inside.
    Unknown,
}

/// A token that was shown to the user, and so must never be proposed again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Used {
    /// The token.
    pub token: Token,
    /// The voting life of the addressed host that the winner had heard from before the token was
    /// sealed, or whose vote it holds. Every token shown before that life began to vote is lower: the
    /// winner sealed later, or was inside all the while, so that nobody else could show one.
    pub knew: Option<Incarnation>,
}

/// A vote that its owner wants renewed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Claim {
    /// The replica that gave it.
    pub replica: ReplicaId,
    /// The request it was given to.
    pub ticket: Ticket,
    /// Which grant.
    pub grant: GrantId,
    /// The token the owner goes by.
    pub used: Used,
}

/// What became of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Renewal {
    /// The call of the request, in the client's own numbering.
    pub call: CallId,
    /// Which replica.
    pub index: u16,
    /// Which grant.
    pub grant: GrantId,
    /// Whether the vote is good for another full lease. If not, the host has no such vote out.
    pub good: bool,
}

/// What a host answers about one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Answer {
    /// The vote is yours.
    Yours {
        /// The vote.
        vote: Vote,
        /// False if no message of yours is the cause: your turn has come, or what was proposed to you
        /// has changed because somebody else has left.
        asked: bool,
    },
    /// You are in the queue.
    Queued {
        /// Who has the vote; of several the one who asked first, if possible one that you cannot be inside
        /// with. `None` while the host abstains.
        owner: Option<Ticket>,
        /// How many are before you, those who have the vote included.
        ahead: u32,
        /// With permits: somebody here means another number of them.
        other: Option<OtherNumber>,
        /// When your turn comes, roughly.
        turn: Span,
        /// The paper's informed backoff: ask again after this long.
        wait: Span,
    },
    /// You are not even in the queue: it is full. Ask again later.
    Full {
        /// Who has the vote.
        owner: Option<Ticket>,
        /// How much later.
        wait: Span,
    },
}

/// Somebody who has the vote for a permit, or waits for one, and means another number of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OtherNumber {
    /// The number.
    pub of: u16,
    /// Whether it asked before you.
    pub before_you: bool,
}

/// What a replica has to say about a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Response {
    /// The replica.
    pub replica: ReplicaId,
    /// The request.
    pub ticket: Ticket,
    /// The life of the host.
    pub life: Incarnation,
    /// Grows with every response of that life; older ones are stale.
    pub sequence: u64,
    /// The last message about this request, as the host heard it.
    pub echo: Echo,
    /// The host's logical clock.
    pub clock: Hlc,
    /// What it says.
    pub answer: Answer,
}

/// A greeting, as its answers name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hello {
    /// The life of the peer that greets.
    pub life: Incarnation,
    /// Its clock.
    pub sent: LocalTime,
}

/// A message of Sigma.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Message {
    /// I want the lock. Idempotent: a retry is the same message.
    Request(Ask),
    /// I give this grant back, and ask again.
    Yield(Ask, GrantId),
    /// Write this token down for this grant.
    Seal(Ask, GrantId, Token),
    /// I cannot win for now: let the others pass. I may ask again.
    Withdraw {
        /// The replica.
        replica: ReplicaId,
        /// The request.
        ticket: Ticket,
        /// The grant it gives back, if it has one.
        grant: Option<GrantId>,
    },
    /// I am done, or no longer want it.
    Release {
        /// The replica.
        replica: ReplicaId,
        /// The request that is over.
        ticket: Ticket,
        /// The token it showed, if it was inside.
        spent: Spent,
    },
    /// I am still inside, with these votes of yours.
    Renew {
        /// The client's clock at sending.
        sent: LocalTime,
        /// The votes.
        claims: Vec<Claim>,
    },
    /// What a replica has to say about a request.
    Response(Response),
    /// Somebody older than you waits here: yield this grant, unless you are sealing or inside.
    Recall {
        /// The replica.
        replica: ReplicaId,
        /// The request that owns the vote.
        ticket: Ticket,
        /// The grant.
        grant: GrantId,
    },
    /// These claims are renewed as of the echo, and these are not.
    Renewed {
        /// The RENEW, as the host heard it.
        echo: Echo,
        /// What became of each claim.
        renewals: Vec<Renewal>,
    },
    /// I do not host that replica: ask this peer.
    Moved {
        /// The replica.
        replica: ReplicaId,
        /// The request that was asked about.
        ticket: Ticket,
        /// Who hosts it, as far as I know.
        to: PeerId,
    },
    /// I see you. Whatever you host that is mine now, hand it over, and say when that is done.
    Hello(Hello),
    /// This replica is yours.
    HandOff(Box<HandOff>),
    /// I have it, on disk if I have one.
    Taken {
        /// Which hand-off.
        id: HandOffId,
        /// Which replica.
        replica: ReplicaId,
    },
    /// You have all that I hosted and that is yours.
    HandedOver {
        /// The greeting that this answers.
        hello: Hello,
        /// As high as every token that I ever forgot.
        floor: Token,
        /// For so long I cannot vouch that I got all there was from those before me.
        unsure: Span,
        /// I am leaving: all I had is somewhere else now.
        leaving: bool,
    },
    /// I am new in our view: which votes are out, of names after this one?
    Fetch {
        /// The name.
        after: Option<Name>,
    },
    /// These.
    Votes(Box<Votes>),
}

impl Message {
    /// Whether it says what a host of the sender's view has promised. Only those who are in the same view
    /// may count on it.
    #[must_use]
    pub const fn is_promise(&self) -> bool {
        matches!(self, Self::Response(_) | Self::Renewed { .. } | Self::Votes(_))
    }
}

impl sigmalock_core::Message for Message {
    fn kind(&self) -> &'static str {
        match self {
            Self::Request(_) => "REQUEST",
            Self::Yield(..) => "YIELD",
            Self::Seal(..) => "SEAL",
            Self::Withdraw { .. } => "WITHDRAW",
            Self::Release { .. } => "RELEASE",
            Self::Renew { .. } => "RENEW",
            Self::Response(Response { answer: Answer::Yours { asked: false, .. }, .. }) => "GRANT",
            Self::Response(_) => "RESPONSE",
            Self::Recall { .. } => "RECALL",
            Self::Renewed { .. } => "RENEWED",
            Self::Moved { .. } => "MOVED",
            Self::Hello(_) => "HELLO",
            Self::HandOff(_) => "HAND-OFF",
            Self::Taken { .. } => "TAKEN",
            Self::HandedOver { .. } => "HANDED-OVER",
            Self::Fetch { .. } => "FETCH",
            Self::Votes(_) => "VOTES",
        }
    }

    fn size_bytes(&self) -> usize {
        const TICKET: usize = 33;
        const GRANT: usize = 16;
        let named = |replica: &ReplicaId| 3 + replica.name.as_str().len() + TICKET;
        1 + match self {
            Self::Request(ask) => named(&ask.replica) + 16,
            Self::Yield(ask, _) => named(&ask.replica) + 16 + GRANT,
            Self::Seal(ask, ..) => named(&ask.replica) + 16 + GRANT + 8,
            Self::Withdraw { replica, .. } => named(replica) + 1 + GRANT,
            Self::Release { replica, spent, .. } => {
                named(replica) + if matches!(spent, Spent::Token(_)) { 17 } else { 1 }
            }
            Self::Renew { claims, .. } => {
                10 + claims.iter().map(|c| named(&c.replica) + GRANT + 17).sum::<usize>()
            }
            Self::Response(Response { replica, answer, .. }) => {
                named(replica)
                    + 40
                    + match answer {
                        Answer::Yours { .. } => 2 + GRANT + 24,
                        Answer::Queued { other, .. } => {
                            2 + TICKET + 20 + if other.is_some() { 3 } else { 0 }
                        }
                        Answer::Full { .. } => 2 + TICKET + 8,
                    }
            }
            Self::Recall { replica, .. } => named(replica) + GRANT,
            Self::Renewed { renewals, .. } => 26 + 27 * renewals.len(),
            Self::Moved { replica, .. } => named(replica) + 8,
            Self::Hello(_) => 16,
            Self::HandOff(hand_off) => {
                let owners = 1 + hand_off.owners.len() * (TICKET + GRANT + 40);
                named(&hand_off.replica) + 43 + owners + hand_off.waiters.len() * (TICKET + 16)
            }
            Self::Taken { replica, .. } => 19 + replica.name.as_str().len(),
            Self::HandedOver { .. } => 33,
            Self::Fetch { after } => 1 + after.as_ref().map_or(0, |name| name.as_str().len()),
            Self::Votes(votes) => {
                let on = |on: &VotesOn| {
                    on.name.as_str().len() + 27 + on.owners.len() * (TICKET + GRANT + 40)
                };
                16 + votes.names.iter().map(on).sum::<usize>()
            }
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(sigmalock_core::Message::kind(self))?;
        match self {
            Self::Request(ask) => write!(f, " {}", ask.ticket),
            Self::Yield(ask, grant) => write!(f, " {} grant {}", ask.ticket, grant.number),
            Self::Seal(ask, _, token) => write!(f, " {} token {token}", ask.ticket),
            Self::Withdraw { ticket, .. } => write!(f, " {ticket}"),
            Self::Release { ticket, spent: Spent::Token(used), .. } => {
                write!(f, " {ticket} token {}", used.token)
            }
            Self::Release { ticket, .. } => write!(f, " {ticket}"),
            Self::Renew { claims, .. } => write!(f, " {} votes", claims.len()),
            Self::Response(Response { ticket, answer, .. }) => match answer {
                Answer::Yours { vote, .. } => write!(
                    f,
                    " {ticket} yours, grant {} for {}, token {}",
                    vote.grant.number, vote.lease.ttl, vote.proposal
                ),
                Answer::Queued { owner: Some(owner), .. } => {
                    write!(f, " {ticket} queued behind {owner}")
                }
                Answer::Queued { owner: None, .. } => write!(f, " {ticket} queued, abstaining"),
                Answer::Full { .. } => write!(f, " {ticket} queue full"),
            },
            Self::Recall { ticket, grant, .. } => write!(f, " {ticket} grant {}", grant.number),
            Self::Renewed { renewals, .. } => {
                write!(f, " {} votes", renewals.iter().filter(|r| r.good).count())
            }
            Self::Moved { replica, ticket, to } => write!(f, " {ticket} {replica} to {to}"),
            Self::Hello(_) => Ok(()),
            Self::HandOff(hand_off) => {
                let HandOff { replica, owners, waiters, .. } = &**hand_off;
                write!(f, " {replica}")?;
                for owner in owners {
                    write!(f, " with the vote of {}", owner.ticket)?;
                }
                write!(f, " and {} waiting", waiters.len())
            }
            Self::Taken { replica, .. } => write!(f, " {replica}"),
            Self::HandedOver { leaving: true, .. } => f.write_str(" all, leaving"),
            Self::HandedOver { .. } => Ok(()),
            Self::Fetch { after } => after.iter().try_for_each(|name| write!(f, " after {name}")),
            Self::Votes(votes) => write!(f, " on {} names", votes.names.len()),
        }
    }
}
