//! What peers say to each other about who is in.
//!
//! ```text
//!  whoever wants in, or out                   a member
//!    │ WISH     add me, or remove me ────────► │  who proposes it, when it may
//!
//!  proposer                                   every member
//!    │ PREPARE  I have something to propose ─► │  promises to look at no older ballot
//!    │ ◄────── PROMISE  and this I accepted    │
//!    │ ACCEPT   this comes next ─────────────► │  accepts one successor, on disk first
//!    │ ◄─────────────────────────── ACCEPTED   │
//!    │ LEARN    this is the next view ───────► │  to the old members and the new
//!    │ ◄──── REFUSED  not you, or not yet      │
//!
//!    │ KNOWN    I am at this view ───────────► │  now and then, to all; who knows less is told
//!    │ ◄───────────────── CONFIRMED  so am I   │  in large views
//! ```

use alloc::boxed::Box;
use core::fmt;

use sigmalock_core::{LocalTime, PeerId, Span};

use super::roster::{Badge, Change, Roster};
use super::vouching::Start;

/// One attempt of one peer to have a successor chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Ballot {
    /// Higher ones go first.
    pub round: u64,
    /// Whose it is.
    pub by: PeerId,
}

/// A message about views.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Message {
    /// I want in, or out.
    Wish {
        /// Which of the two.
        change: Change,
        /// The swarm whose views I know, if I know any.
        origin: Option<u64>,
        /// The newest view that I know.
        view: u64,
    },
    /// I am about to propose a successor of this view.
    Prepare {
        /// The view.
        view: u64,
        /// Under this ballot.
        ballot: Ballot,
    },
    /// No older ballot gets anything from me.
    Promise {
        /// The view.
        view: u64,
        /// The ballot.
        ballot: Ballot,
        /// What was accepted here before.
        accepted: Option<(Ballot, Change)>,
    },
    /// This is what comes after the view.
    Accept {
        /// The view.
        view: u64,
        /// The ballot.
        ballot: Ballot,
        /// What comes.
        change: Change,
    },
    /// Accepted.
    Accepted {
        /// The view.
        view: u64,
        /// The ballot.
        ballot: Ballot,
    },
    /// Not now.
    Refused {
        /// The view.
        view: u64,
        /// The ballot that is refused.
        ballot: Ballot,
        /// The newest ballot that was promised something here.
        promised: Option<Ballot>,
        /// How long it is too early, if that is the reason.
        wait: Span,
    },
    /// This is the newest view that I know.
    Learn(Box<Roster>),
    /// I am at this view.
    Known {
        /// The view; 0 if none.
        view: u64,
        /// Whether I, the newest member, have learned what the others promised.
        settled: bool,
        /// My clock; the answer echoes it.
        sent: LocalTime,
        /// In which life, and how many records I have written to my disk.
        writes: Option<(Start, u64)>,
    },
    /// I, a member, have begun a life.
    Began {
        /// As which I am in.
        badge: Badge,
        /// Its number.
        start: Start,
        /// A start of before that is on my disk: the one you remembered.
        after: Option<Start>,
    },
    /// I remember another start of yours.
    Remembered {
        /// As which you are in.
        badge: Badge,
        /// Its number.
        start: Start,
        /// How many records you had written, as far as I have heard.
        writes: u64,
    },
    /// That start is the last one of yours that I know.
    Vouched {
        /// Which.
        start: Start,
    },
    /// I have lost what I promised.
    Forgot {
        /// My disk is not the newest that I had, or not the only one.
        old_disk: bool,
    },
    /// I am in no swarm, and one of so many that begin together.
    Blank {
        /// How many.
        expects: u16,
        /// The number under which I will be a member.
        badge: Badge,
    },
    /// Make this swarm with me.
    Pledge {
        /// Which.
        origin: u64,
        /// Of how many.
        expects: u16,
    },
    /// I am pledged to that swarm.
    Pledged {
        /// Which.
        origin: u64,
    },
    /// I am not pledged to that swarm, and will not be; or I, who proposed it, have given it up.
    Declined {
        /// Which.
        origin: u64,
    },
    /// So am I, as of that message of yours.
    Confirmed {
        /// The view.
        view: u64,
        /// The clock of whoever asked.
        sent: LocalTime,
    },
}

impl sigmalock_core::Message for Message {
    fn kind(&self) -> &'static str {
        match self {
            Self::Wish { .. } => "WISH",
            Self::Prepare { .. } => "PREPARE",
            Self::Promise { .. } => "PROMISE",
            Self::Accept { .. } => "ACCEPT",
            Self::Accepted { .. } => "ACCEPTED",
            Self::Refused { .. } => "REFUSED",
            Self::Learn(_) => "LEARN",
            Self::Known { .. } => "KNOWN",
            Self::Confirmed { .. } => "CONFIRMED",
            Self::Began { .. } => "BEGAN",
            Self::Remembered { .. } => "REMEMBERED",
            Self::Vouched { .. } => "VOUCHED",
            Self::Forgot { .. } => "FORGOT",
            Self::Blank { .. } => "BLANK",
            Self::Pledge { .. } => "PLEDGE",
            Self::Pledged { .. } => "PLEDGED",
            Self::Declined { .. } => "DECLINED",
        }
    }

    fn size_bytes(&self) -> usize {
        1 + match self {
            Self::Wish { .. } => 34,
            Self::Prepare { .. } | Self::Accepted { .. } => 24,
            Self::Promise { accepted, .. } => 25 + if accepted.is_some() { 33 } else { 0 },
            Self::Accept { .. } => 41,
            Self::Refused { .. } => 48,
            Self::Learn(roster) => 28 + 24 * roster.members().len(),
            Self::Known { .. } => 30,
            Self::Began { after, .. } => 17 + if after.is_some() { 8 } else { 0 },
            Self::Remembered { .. } => 21,
            Self::Forgot { .. } => 1,
            Self::Confirmed { .. } => 16,
            Self::Blank { .. } | Self::Pledge { .. } => 10,
            Self::Pledged { .. } | Self::Declined { .. } | Self::Vouched { .. } => 8,
        }
    }
}

impl Message {
    /// The ballot that whoever hears this must outbid.
    pub(super) fn ballot(&self) -> Option<Ballot> {
        match self {
            Self::Prepare { ballot, .. } | Self::Accept { ballot, .. } => Some(*ballot),
            Self::Refused { promised, .. } => *promised,
            _ => None,
        }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(sigmalock_core::Message::kind(self))?;
        match self {
            Self::Wish { change, .. } => write!(f, " {change}"),
            Self::Prepare { view, ballot } | Self::Accepted { view, ballot } => {
                write!(f, " {view} ballot {}", ballot.round)
            }
            Self::Promise { view, ballot, accepted } => {
                write!(f, " {view} ballot {}", ballot.round)?;
                accepted.iter().try_for_each(|(_, change)| write!(f, ", accepted: {change}"))
            }
            Self::Accept { view, ballot, change } => {
                write!(f, " {view} ballot {} {change}", ballot.round)
            }
            Self::Refused { view, wait, .. } => write!(f, " {view} for {wait}"),
            Self::Learn(roster) => write!(f, " {roster}"),
            Self::Known { view, .. } | Self::Confirmed { view, .. } => write!(f, " {view}"),
            Self::Began { start, .. }
            | Self::Remembered { start, .. }
            | Self::Vouched { start } => {
                write!(f, " {:016x}", start.0)
            }
            Self::Forgot { old_disk: true } => f.write_str(", by an old disk"),
            Self::Forgot { old_disk: false } => Ok(()),
            Self::Blank { expects, .. } => write!(f, ", one of {expects}"),
            Self::Pledge { origin, .. } | Self::Pledged { origin } | Self::Declined { origin } => {
                write!(f, " {origin:016x}")
            }
        }
    }
}
