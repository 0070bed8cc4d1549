//! What must be true of every history, one property a file.
//!
//! | oracle | promises |
//! |---|---|
//! | [`exclusion`] | at most one unexpired holder of a lock at any true instant, or readers only, or one for each permit |
//! | [`tokens`] | tokens strictly increase from grant to grant; readers' lie between the writers around them |
//! | [`register`] | a fenced register takes no write of the past and refuses none of the present |
//! | [`notice`] | whoever is awake is told before its deadline that its lock is lost |
//! | [`answered`] | every request is answered, once, or explained |
//! | [`fifo`] | without faults, who asked well before another is let in before it |
//! | [`turns`] | the same where peers have agents: nobody is overtaken by more than a grant of another peer |
//! | [`stall`] | after the heal no lock stays empty while somebody waits |
//! | [`idle`] | without faults no lock is empty for 3 worst round trips while somebody waits |
//! | [`sharing`] | without faults no reader is kept out by readers, and no permit is left that somebody waits for |
//! | [`refusals`] | without faults, who means another number of permits than others is told so |
//! | [`progress`] | where clients take several locks at once, nobody waits in a circle |
//! | [`doubles`] | of two peers that run with copies of one disk, one finds out |
//! | [`accounting`] | every message is accounted for, and every answer has a cause |
//!
//! | [`succession`] | each view has one successor, and neighbours have a memory in common |
//! | [`acceptance`] | nobody accepts a successor but a member that knows all it promised, and not too soon |
//! | [`promises`] | what a member says that it promised is on its disk, and kept |
//! | [`convergence`] | after the heal all who want in are in one view, and nobody else is |
//!
//! The last four are about peers that agree on who is in ([`of_members`]), the others about locks; [`accounting`] is about both.
//!
//! Each has a mutant that it must catch: [`sigmalock_protocols::parts::MutantCard::oracle`].
//!
//! An oracle sees the history go by once and keeps only what is under way, so that runs can be long.

pub mod acceptance;
pub mod accounting;
pub mod answered;
mod board;
pub mod convergence;
pub mod doubles;
pub mod exclusion;
pub mod fifo;
pub mod idle;
pub mod notice;
pub mod progress;
pub mod promises;
pub mod refusals;
pub mod register;
pub mod sharing;
pub mod stall;
pub mod succession;
pub mod tokens;
pub mod turns;

#[cfg(test)]
mod tale;

use sigmalock_core::Span;
use sigmalock_protocols::catalogue::Answers;

pub use self::acceptance::Acceptance;
pub use self::accounting::Accounting;
pub use self::answered::Answered;
pub use self::convergence::Convergence;
pub use self::doubles::Doubles;
pub use self::exclusion::Exclusion;
pub use self::fifo::Fifo;
pub use self::idle::Idle;
pub use self::notice::Notice;
pub use self::progress::Progress;
pub use self::promises::Promises;
pub use self::refusals::Refusals;
pub use self::register::Register;
pub use self::sharing::Sharing;
pub use self::stall::Stall;
pub use self::succession::Succession;
pub use self::tokens::Tokens;
pub use self::turns::Turns;
use crate::history::{Ledger, Record, TrueTime};

/// What an oracle may know of the run beside its history.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Replicas per lock.
    pub replicas: usize,
    /// The longest one-way delay the network model has, late duplicates aside.
    pub one_way_worst: Span,
    /// Whether any fault, loss, clock error or crash is possible in this run. Copies of messages, early
    /// or late, are not: they must cost nobody anything.
    pub faulty: bool,
    /// Whether the protocol keeps a queue, and so promises order and no idleness. One that backs off
    /// at random promises neither.
    pub queues: bool,
    /// Which kinds of messages answer which.
    pub answers: Answers,
    /// If peers have agents: how many of a peer's users are let in under one grant.
    pub entries_per_grant: Option<u64>,
    /// Whether clients take several locks at once.
    pub several: bool,
    /// The longest lease.
    pub lease_max: Span,
    /// How long after the heal a request may still wait.
    pub patience_after_heal: Span,
    /// Whether a copy of a peer's disk is started beside it, and a member is met that remembers.
    pub twins: bool,
}

/// A property that a history does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Which oracle says so.
    pub oracle: &'static str,
    /// When it became visible.
    pub at: TrueTime,
    /// What is wrong, in a sentence.
    pub sentence: String,
}

/// Watches a history go by and objects. Keeps no more than it needs, so that runs can be long.
pub trait Oracle: Fork {
    /// Its name, as violations and the documentation spell it.
    fn name(&self) -> &'static str;
    /// The next record, in true-time order.
    fn see(&mut self, record: &Record, violations: &mut Vec<Violation>);
    /// The run is over.
    fn finish(&mut self, end: TrueTime, ledger: &Ledger, violations: &mut Vec<Violation>);
}

/// An oracle that can judge on in two runs that part. All that can be cloned can.
pub trait Fork {
    /// Another one, which has seen the same.
    fn fork(&self) -> Box<dyn Oracle>;
}

impl<O: Oracle + Clone + 'static> Fork for O {
    fn fork(&self) -> Box<dyn Oracle> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Oracle> {
    fn clone(&self) -> Self {
        (**self).fork()
    }
}

/// The names of all oracles.
pub const NAMES: [&str; 18] = [
    "exclusion",
    "tokens",
    "register",
    "notice",
    "answered",
    "fifo",
    "turns",
    "stall",
    "idle",
    "sharing",
    "refusals",
    "progress",
    "doubles",
    "accounting",
    "succession",
    "acceptance",
    "promises",
    "convergence",
];

/// What must be true where peers agree on who is in, and of nothing else.
#[must_use]
pub fn of_members(setting: Setting) -> Vec<Box<dyn Oracle>> {
    vec![
        Box::new(Succession::default()),
        Box::new(Acceptance::new(setting)),
        Box::new(Promises::default()),
        Box::new(Convergence::new(setting)),
        Box::new(Accounting::new(setting)),
    ]
}

/// All that must be true of locks, as far as it applies.
#[must_use]
pub fn all(setting: Setting) -> Vec<Box<dyn Oracle>> {
    let mut oracles: Vec<Box<dyn Oracle>> = vec![
        Box::new(Exclusion::default()),
        Box::new(Tokens::default()),
        Box::new(Register::default()),
        Box::new(Answered::new(setting)),
        Box::new(Notice::default()),
        Box::new(Stall::new(setting)),
        Box::new(Accounting::new(setting)),
    ];
    if setting.twins {
        oracles.push(Box::new(Doubles::default()));
    }
    if setting.several {
        oracles.push(Box::new(Progress::new(setting)));
    }
    if setting.queues && !setting.faulty {
        oracles.push(match setting.entries_per_grant {
            Some(entries) => Box::new(Turns::new(setting, entries)),
            None => Box::new(Fifo::new(setting)),
        });
        oracles.push(Box::new(Idle::new(setting)));
        oracles.push(Box::new(Sharing::new(setting)));
        oracles.push(Box::new(Refusals::new(setting)));
    }
    oracles
}
