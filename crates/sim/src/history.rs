//! What happened in a run, in true time: the only thing oracles see.

use std::collections::BTreeMap;

use sigmalock_core::{LocalTime, LockReply, Mode, Name, PeerId, RequestId, Span, Token};
use sigmalock_protocols::views::{Badge, Ballot, Roster, Standing};

/// True time of the simulated world, in microseconds since its beginning. No peer can read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TrueTime(pub u64);

impl TrueTime {
    /// The time since `earlier`; zero if that is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Span {
        Span::from_micros(self.0.saturating_sub(earlier.0))
    }
}

impl std::ops::Add<Span> for TrueTime {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.as_micros()))
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Record {
    /// When, in true time; records come in this order.
    pub at: TrueTime,
    /// What.
    pub what: What,
}

/// What can happen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum What {
    /// A client asked for a lock.
    Asked {
        /// Its request.
        request: RequestId,
        /// The lock.
        name: Name,
        /// In what company it wants it.
        mode: Mode,
        /// Whether it waits for ever.
        forever: bool,
        /// If it waits for a time: the true instant at which its own clock shows the end of it.
        until: Option<TrueTime>,
    },
    /// It was let in.
    Granted {
        /// The request.
        request: RequestId,
        /// The fencing token, where the protocol has one.
        token: Option<Token>,
        /// The true instant at which the client's own clock shows its deadline.
        until: TrueTime,
        /// Which of a semaphore's permits it has.
        slot: Option<u16>,
    },
    /// Its deadline moved.
    Extended {
        /// The request.
        request: RequestId,
        /// The true instant of the new deadline.
        until: TrueTime,
    },
    /// It was told that its lock is gone.
    Lost(RequestId),
    /// It left the critical section and gave the lock back.
    Released(RequestId),
    /// After it was told that its lock is gone it left the critical section, and said so.
    Left(RequestId),
    /// It ended without the lock: busy, timed out, cancelled or refused.
    Ended(RequestId, Ending),
    /// It wrote to the fenced register that the lock protects; or read it, if it only shares the lock.
    Wrote {
        /// The request under which it did.
        request: RequestId,
        /// The token it showed.
        token: Token,
        /// Whether the register took it.
        accepted: bool,
    },
    /// It said something about a lock that it had or waited for, under a call of its own.
    Answered {
        /// That call.
        request: RequestId,
        /// What it said.
        word: Word,
        /// What it was told there and then.
        replies: Vec<LockReply>,
    },
    /// A peer stopped; what its life had asked for will not be answered.
    Crashed(PeerId),
    /// A peer began a life.
    Started(PeerId),
    /// A peer stands still; it notices nothing, and its users with it.
    FellAsleep(PeerId),
    /// It goes on.
    Woke(PeerId),
    /// All faults are over; from here on the world is kind.
    Healed,
    /// Something among peers that agree on who is in.
    Views(OfViews),
    /// A copy of a peer's disk is started on another machine.
    Doubled(PeerId),
    /// One of the two has come to know that it is not the member that it was by its disk.
    Noticed(PeerId),
}

/// What can happen among peers that agree on who is in.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum OfViews {
    /// A peer begins a life, and wants in.
    Began {
        /// Which.
        peer: PeerId,
        /// Nothing is left of what its former self promised.
        forgot: bool,
    },
    /// It has read its disk.
    Recalls {
        /// Which.
        peer: PeerId,
        /// What it has accepted is what its disk says.
        recalls: bool,
        /// How it stands to the swarm.
        standing: Standing,
        /// What its clock shows.
        clock: LocalTime,
    },
    /// It is told to leave for good.
    Leaves(PeerId),
    /// It is at another view.
    Learned {
        /// Which.
        peer: PeerId,
        /// What its clock shows.
        clock: LocalTime,
        /// The view.
        roster: Roster,
    },
    /// It stands to the swarm in another way.
    Stands {
        /// Which.
        peer: PeerId,
        /// How.
        standing: Standing,
    },
    /// It hears that its last start is the last one that somebody knows.
    Vouched(PeerId),
    /// The newcomer of this view is told that it knows what the others promised.
    Settled(u64),
    /// A peer accepts a successor of its view.
    Accepted {
        /// Which.
        peer: PeerId,
        /// The view.
        view: u64,
        /// How it stands to the swarm.
        standing: Standing,
        /// What its clock shows.
        clock: LocalTime,
    },
    /// It says to another one that it promises, or has accepted, something about the successor of a view.
    Promised {
        /// Which.
        peer: PeerId,
        /// As which it is a member, as far as it knows.
        badge: Option<Badge>,
        /// The view.
        view: u64,
        /// Under which ballot.
        ballot: Ballot,
        /// It has accepted a successor.
        accepts: bool,
        /// That is on its disk.
        written: bool,
    },
}

/// What a user says that wants no lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    /// It gives one back.
    Release,
    /// It no longer waits.
    Cancel,
    /// Another one is to be put out.
    Evict,
    /// Nothing of that kind: the call was another one.
    Nothing,
}

/// How a request ended without the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ending {
    /// It only tried, and somebody had the lock.
    Busy,
    /// Its patience ended.
    TimedOut,
    /// Its user cancelled it.
    Cancelled,
    /// It was refused at once.
    Refused,
    /// Others mean this number of permits, which is not its own.
    OtherPermits(u16),
}

/// Where every message went, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ledger {
    /// One row per kind of message.
    pub kinds: BTreeMap<&'static str, Row>,
}

impl Ledger {
    /// What was sent, messages and bytes of each kind, since the ledger read `earlier`.
    #[must_use]
    pub fn sent_since(&self, earlier: &Self) -> Traffic {
        let before = |kind| earlier.kinds.get(kind).copied().unwrap_or_default();
        let rows = self.kinds.iter().map(|(kind, row)| {
            let before = before(kind);
            (*kind, (row.sent - before.sent, row.sent_bytes - before.sent_bytes))
        });
        Traffic { kinds: rows.collect() }
    }
}

/// Messages sent in some span of time, and their bytes, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages and bytes of each kind.
    pub kinds: BTreeMap<&'static str, (u64, u64)>,
}

impl Traffic {
    /// How many messages of one kind.
    #[must_use]
    pub fn of(&self, kind: &str) -> u64 {
        self.kinds.get(kind).map_or(0, |(messages, _)| *messages)
    }
    /// How many messages.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.kinds.values().map(|(messages, _)| messages).sum()
    }
    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.kinds.values().map(|(_, bytes)| bytes).sum()
    }
}

/// What became of the messages of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    /// Handed to the network by protocols.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Copies the network made.
    pub duplicated: u64,
    /// Handed to a protocol.
    pub delivered: u64,
    /// Lost by the network, cut off by a partition, or addressed to a peer that was down.
    pub lost: u64,
    /// Still under way when the run ended.
    pub in_flight: u64,
}
