//! What every lock protocol is asked and answers, so that one simulator, one set of oracles and one
//! live agent serve them all.

use core::fmt;

use crate::id::{CallId, Token};
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
    /// The user that call `held` let in does not answer, or does again: from now on its right is not renewed, or is. It
    /// ends at its deadline, and nobody else is let in before. Answered by `Released` if that user is inside, else by
    /// `Refused(UnknownCall)`.
    Renew {
        /// The call that acquired the lock.
        held: CallId,
        /// Whether its right is renewed.
        on: bool,
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
    /// By at most so many: a semaphore. Whoever is inside with another number, or waits, keeps it out.
    Permit {
        /// How many permits there are; from 1 to [`PERMITS_MAX`].
        of: u16,
    },
    /// By whoever has this one of so many permits. Users ask for any permit; this is what becomes of that.
    Slot {
        /// How many permits there are; from 1 to [`PERMITS_MAX`].
        of: u16,
        /// Which, counted from 0.
        index: u16,
    },
}

/// The most permits that a semaphore has.
pub const PERMITS_MAX: u16 = 64;

impl Mode {
    /// Whether holders of these modes may be inside together: readers with readers, and different slots of one
    /// number of permits. Of any permits that is not known before they have slots.
    #[must_use]
    pub const fn shares_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Shared, Self::Shared) => true,
            (Self::Slot { of, index }, Self::Slot { of: theirs, index: other }) => {
                of == theirs && index != other
            }
            _ => false,
        }
    }

    /// Whether holders of all these modes may be inside together.
    pub fn all_share(modes: impl IntoIterator<Item = Self>) -> bool {
        let mut modes = modes.into_iter();
        let Some(first) = modes.next() else { return true };
        let mut slots = first.slot_bit();
        modes.all(|mode| {
            let bit = mode.slot_bit();
            let shares = match (first, mode) {
                (Self::Slot { of, .. }, Self::Slot { of: theirs, .. }) => {
                    of == theirs && bit != 0 && slots != 0 && slots & bit == 0
                }
                _ => first.shares_with(mode),
            };
            slots |= bit;
            shares
        })
    }

    /// What somebody has who asked in this mode and was given that slot.
    #[must_use]
    pub const fn with(self, slot: Option<u16>) -> Self {
        match (self, slot) {
            (Self::Permit { of }, Some(index)) => Self::Slot { of, index },
            _ => self,
        }
    }

    /// How many permits there are, if it is about permits.
    #[must_use]
    pub const fn permits(self) -> Option<u16> {
        match self {
            Self::Permit { of } | Self::Slot { of, .. } => Some(of),
            Self::Exclusive | Self::Shared => None,
        }
    }

    /// Whether there can be such a thing: as many permits as there may be, and a slot among them.
    #[must_use]
    pub const fn is_possible(self) -> bool {
        match self {
            Self::Exclusive | Self::Shared => true,
            Self::Permit { of } => of >= 1 && of <= PERMITS_MAX,
            Self::Slot { of, index } => of <= PERMITS_MAX && index < of,
        }
    }

    /// Its slot in a set of slots; none if it has none, or an impossible one.
    #[must_use]
    pub const fn slot_bit(self) -> u64 {
        match self {
            Self::Slot { index, .. } if index < PERMITS_MAX => 1 << index,
            _ => 0,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exclusive => f.write_str("exclusive"),
            Self::Shared => f.write_str("shared"),
            Self::Permit { of } => write!(f, "{of}-permit"),
            Self::Slot { of, index } => write!(f, "slot {index} of {of}"),
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

impl Patience {
    /// When it ends, for whoever begins to wait now; `NEVER` if it does not, or there is none.
    #[must_use]
    pub fn ends_at(self, now: LocalTime) -> LocalTime {
        match self {
            Self::For(span) => now + span,
            Self::Try | Self::Forever => LocalTime::NEVER,
        }
    }
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
        /// tokens grow for each. `None`: it is no permit.
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
    #[error(
        "a ttl of more than {at_most} is longer than this swarm's longest lease: ask for {at_most} or less, or start all \
         its peers with a longer --lease-max"
    )]
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
    #[error("the lock protocol of this swarm has no {}", what(*.mode))]
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
    /// Others are inside with another number of permits, or wait for one and were first.
    #[error(
        "this name is in use with {of} permits: whoever uses it at the same time must mean the same number"
    )]
    OtherPermits {
        /// Their number.
        of: u16,
    },
    /// No such call, or it is over.
    #[error("there is no such call under way")]
    UnknownCall,
    /// The same call twice.
    #[error("that call is under way already")]
    DuplicateCall,
}

/// What there is none of, where there is no such mode.
const fn what(mode: Mode) -> &'static str {
    match mode {
        Mode::Exclusive => "locks for one",
        Mode::Shared => "readers",
        Mode::Permit { .. } | Mode::Slot { .. } => "permits",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn slot(of: u16, index: u16) -> Mode {
        Mode::Slot { of, index }
    }

    #[test]
    fn readers_share_with_readers_and_slots_of_one_number_with_each_other() {
        let modes = [Mode::Exclusive, Mode::Shared, slot(2, 0), slot(2, 1), slot(3, 1), slot(3, 2)];
        let together = [(1, 1), (2, 3), (3, 2), (4, 5), (5, 4)];
        for (i, one) in modes.into_iter().enumerate() {
            for (j, other) in modes.into_iter().enumerate() {
                assert_eq!(one.shares_with(other), together.contains(&(i, j)), "{one}, {other}");
            }
        }
    }

    #[test]
    fn many_share_if_any_two_of_them_do() {
        assert!(Mode::all_share([]) && Mode::all_share([Mode::Exclusive]));
        assert!(
            Mode::all_share([Mode::Shared; 3]) && Mode::all_share((0..64).map(|i| slot(64, i)))
        );
        assert!(!Mode::all_share([Mode::Exclusive; 2]));
        assert!(!Mode::all_share([slot(3, 0), slot(3, 1), slot(3, 0)]), "one slot twice");
        assert!(!Mode::all_share([slot(3, 0), slot(2, 1)]), "two numbers");
        assert!(!Mode::all_share([slot(3, 0), Mode::Shared]));
        assert!(!Mode::all_share([slot(99, 70), slot(99, 71)]), "what cannot be shares nothing");
    }

    #[test]
    fn there_are_at_most_so_many_permits_and_no_slots_beyond_them() {
        let permit = |of| Mode::Permit { of };
        assert!(permit(1).is_possible() && permit(PERMITS_MAX).is_possible());
        assert!(!permit(0).is_possible() && !permit(PERMITS_MAX + 1).is_possible());
        assert!(slot(1, 0).is_possible() && slot(64, 63).is_possible());
        assert!(!slot(0, 0).is_possible() && !slot(2, 2).is_possible());
        assert!(!slot(65, 0).is_possible());
    }
}
