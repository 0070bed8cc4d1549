//! What every lock protocol is asked and answers, so that one simulator, one set of oracles and one
//! live agent serve them all.

use alloc::collections::BTreeSet;
use core::fmt;

use crate::id::{CallId, PeerId, Token};
use crate::name::Name;
use crate::time::{LocalTime, Span};

/// What a user may ask of a lock protocol.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LockRequest {
    /// Get me this lock. Answered by `Granted`, `Busy`, `TimedOut`, `Cancelled` or `Refused`; after
    /// `Granted`, further replies to the same call are `Extended` and `Lost`. While it waits, any number
    /// of `Queued`.
    Acquire(Acquire),
    /// I have left the critical section that call `held` let me into. Answered by `Released` if the
    /// lock was still held, else by `Refused(UnknownCall)`.
    Release {
        /// The call that acquired the lock.
        held: CallId,
    },
    /// I no longer want what call `call` asked for. That call is answered by `Cancelled` if it was
    /// waiting, and this one by `Refused(UnknownCall)` if it was not.
    Cancel {
        /// The call that is waiting.
        call: CallId,
    },
    /// Whoever of this peer's users is inside must leave: an operator's wish. That user is told `Lost`,
    /// and its right is no longer renewed. It may need a moment to leave, so the lock goes to the next
    /// when the user's own `Release` comes, or at its deadline. Answered at once: by `Released`, which
    /// means that the user was told, or by `Refused(UnknownCall)` if none of this peer's users is inside.
    Evict {
        /// Which lock.
        name: Name,
    },
    /// Go on without these members of an agreed membership: an operator's last resort when half of them or
    /// more are gone for good. If they are not, two may hold the same lock. Answered, when those who are left
    /// have been asked, by `Released` or by `Refused(Forget(…))`.
    Forget {
        /// All who are gone.
        gone: BTreeSet<PeerId>,
        /// Whether the operator vouches for what cannot be verified: see [`ForgetRefusal::Unverified`].
        unverified: bool,
    },
}

/// A wish for a lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Acquire {
    /// Which lock.
    pub name: Name,
    /// In what company.
    pub mode: Mode,
    /// How long a vote lasts without renewal; so long does a dead holder keep others out.
    pub ttl: Span,
    /// How long to wait for it.
    pub patience: Patience,
}

impl Acquire {
    /// A wish to be alone inside.
    #[must_use]
    pub const fn exclusive(name: Name, ttl: Span, patience: Patience) -> Self {
        Self { name, mode: Mode::Exclusive, ttl, patience }
    }
}

/// In what company a lock is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Mode {
    /// By one, a writer.
    #[default]
    Exclusive,
    /// By any number of readers together.
    Shared,
    /// By at most so many: a semaphore. Everybody who uses its name must mean the same number.
    Permit {
        /// How many permits there are; from 1 to [`PERMITS_MAX`].
        of: u16,
    },
}

/// The most permits that a semaphore has.
pub const PERMITS_MAX: u16 = 64;

impl Mode {
    /// Whether any number of holders of these modes may be inside together.
    #[must_use]
    pub const fn shares_with(self, other: Self) -> bool {
        matches!((self, other), (Self::Shared, Self::Shared))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permit { of } => write!(f, "{of}-permit"),
        }
    }
}

/// How long a request is willing to wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Patience {
    /// Not at all: now or `Busy`.
    Try,
    /// This long, then `TimedOut`.
    For(Span),
    /// As long as it takes.
    Forever,
}

/// What a lock protocol answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LockReply {
    /// You are in, until `deadline` on this peer's clock, unless `Extended` moves it.
    Granted {
        /// Shown to the resource, which refuses lower ones, and equal ones of others. `None`: this protocol has no fencing.
        token: Option<Token>,
        /// When the right ends.
        deadline: LocalTime,
        /// Which of the permits of a semaphore it is, counted from 0: no two holders have the same, and
        /// tokens are counted for each. `None`: it is no semaphore.
        slot: Option<u16>,
    },
    /// You are waiting; this may be said any number of times before you are in.
    Queued {
        /// How many are before you, as far as known.
        ahead: u32,
        /// When your turn will come, roughly.
        wait: Span,
    },
    /// Renewal succeeded: you are in until `deadline`.
    Extended {
        /// When the right ends now.
        deadline: LocalTime,
    },
    /// The right is gone, or about to: stop now. Comes before the deadline unless this peer slept.
    Lost,
    /// You are out; the lock goes to the next.
    Released,
    /// It cannot be had now, and you did not want to wait: somebody has it, or too many hosts are away.
    Busy,
    /// You waited as long as you wanted to.
    TimedOut,
    /// You are no longer waiting, as you asked.
    Cancelled,
    /// Not even tried. Nothing changed.
    Refused(Refusal),
}

/// Why a request is refused at once. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Refusal {
    /// A lease shorter than the network can carry.
    #[error("a ttl of less than {at_least} cannot be kept alive over this network")]
    TtlTooShort {
        /// The shortest ttl that would be accepted.
        at_least: Span,
    },
    /// A lease longer than a host that lost its memory waits.
    #[error("a ttl of more than {at_most} is longer than this swarm's longest lease")]
    TtlTooLong {
        /// The longest ttl that would be accepted.
        at_most: Span,
    },
    /// As many requests as this peer can have at once.
    #[error("this peer has {limit} requests under way, which is as many as it takes")]
    TooManyRequests {
        /// The bound.
        limit: usize,
    },
    /// A way of holding a lock that this protocol does not have.
    #[error("this protocol has no {mode} locks")]
    NoSuchMode {
        /// What was asked for.
        mode: Mode,
    },
    /// A semaphore of no permits, or of too many.
    #[error("a semaphore has between 1 and {at_most} permits")]
    BadPermits {
        /// The most.
        at_most: u16,
    },
    /// The name of a semaphore is too long to tell its slots apart.
    #[error("the name is too long for a semaphore: leave three bytes for its slots")]
    NameTooLong,
    /// Nobody is forgotten.
    #[error(transparent)]
    Forget(#[from] ForgetRefusal),
    /// No such call, or it is over.
    #[error("there is no such call under way")]
    UnknownCall,
    /// The same call twice.
    #[error("that call is under way already")]
    DuplicateCall,
}

/// Why nobody is forgotten. Nothing changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum ForgetRefusal {
    /// Nobody can be forgotten who is not in.
    #[error("{0} is not a member of this swarm, as far as this peer knows")]
    NotAMember(PeerId),
    /// A peer cannot forget itself, and somebody must be named.
    #[error("a peer forgets others, not itself; ask another one, and name who is gone")]
    Itself,
    /// One of them can be reached.
    #[error("{0} can be reached, so it is not gone")]
    Here(PeerId),
    /// Somebody who is left did not answer.
    #[error(
        "{0} is a member, was not named, and did not promise to wait: start it, or name it, too, if it is \
         gone for good"
    )]
    Silent(PeerId),
    /// There is a newer view than the one that this peer knew.
    #[error("another peer knows a newer membership than this one did; look at it, and ask again")]
    NewerView,
    /// A change of the membership has been accepted here, and may have been chosen.
    #[error(
        "a change of the membership is under way here and may have been decided already: wait for it, or ask \
         another peer"
    )]
    UnderWay,
    /// The same peer was told to forget others meanwhile.
    #[error("another wish to forget has taken the place of this one")]
    Superseded,
    /// They are enough to have gone on without this peer.
    #[error(
        "those who are named are enough to have gone on without this peer, and whether they did cannot be \
         verified here: it takes a word that says so"
    )]
    Unverified,
}
