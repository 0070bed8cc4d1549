//! The strawman: ask everybody, and if that fails, try again some other time.
//!
//! Section III of *A Practical Distributed Mutual Exclusion Protocol in Dynamic Peer-to-Peer Systems*
//! (Lin, Lian, Chen, Zhang 2004), there to show what Sigma is up against. A client asks all n replicas
//! of a name; a replica that has no owner lends it its vote, another rejects it and names its owner;
//! m votes win. A loser gives back what it got, waits a random time and tries again, as ALOHA does.
//!
//! ```text
//! client                         n replicas
//!   │ REQUEST ───────────────────►│││        lend me your vote
//!   │◄─────────── RESPONSE {vote} │││        m of these: in. REQUEST again every ttl/3 renews
//!   │◄─────── RESPONSE {rejected} │││        more than n − m of these, or silence: lost the round
//!   │ RELEASE ───────────────────►│││        then back off at random and bid again
//! ```
//!
//! **Assumes** clock rates within [`Config::margin`]; nothing about delays, loss, duplication or order.
//!
//! **Guarantees** (`shipped`) at most one unexpired holder, whatever is lost, doubled or late, and
//! whoever crashes: votes are leases counted as [`sigmalock_core::lease`] says, and a host without
//! memory abstains for the longest lease.
//!
//! **Does not guarantee** any order, nor that anybody is ever let in: under load everybody holds a few
//! votes and nobody m, and the more so the more the delays vary. It has no fencing tokens, so a holder
//! that sleeps past its deadline can do harm.
//!
//! Over views ([`crate::agreed`]) the replicas are at the members, and with each view a client counts anew. A
//! newcomer asks nobody which votes are out: it waits until they have run out.
//!
//! The `literal` variant differs in three places: it counts a lease from the receipt of the vote, a
//! host that lost its memory votes at once, and nobody remembers which bids are over.

mod client;
mod inspect;
mod message;
mod replica;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use sigmalock_core::{
    Birth, CallId, Context, Incarnation, Input, LocalTime, LockReply, LockRequest, Margin, Name,
    Part, PeerId, Protocol, ReplicaId, RequestId, Span, View,
};

pub use self::message::{Answer, Bid, Body, Message, Verdict};
use crate::agreed::OverViews;
use crate::catalogue::{Card, Family, Listed, Membership, Plan, Promises, Variant};
use crate::parts::hosting::Terms;
use crate::parts::{Driven, GoesBy, Guard, Hosting, Quorum, Users};

/// The most requests a peer has under way at once.
pub const CLAIMS_MAX: usize = 65_536;
/// The most replicas a peer keeps anything about at once.
pub const REPLICAS_MAX: usize = 65_536;
/// The most requests a replica remembers to be over.
pub const CLOSED_MAX: usize = 4_096;

/// What all peers of a swarm must agree on.
#[derive(Debug, Clone, Hash)]
pub struct Config {
    /// m of n.
    pub quorum: Quorum,
    /// To the letter, or fit to survive.
    pub variant: Variant,
    /// The longest lease; so long does a host abstain that may have forgotten a vote.
    pub lease_max: Span,
    /// A loser waits for a time drawn evenly from this range. The paper leaves it open: the smooth
    /// hump of its Figure 3 takes 0 to 100 s, a handful of contenders are best served by a few seconds.
    pub back_off: (Span, Span),
    /// The worst round trip to expect.
    pub round_trip_worst: Span,
    /// The longest a message may be late, copies included; so long is a bid remembered to be over.
    pub flight_max: Span,
    /// What clients give up of a lease for the difference of clock rates.
    pub margin: Margin,
    /// How long before its deadline a holder is told that it is about to lose the lock, at most; of a
    /// short ttl it is a tenth.
    pub warning_max: Span,
    /// Whether votes are kept on disk, so that a restarted host need not abstain.
    pub durable: bool,
}

impl Config {
    /// The defaults of the lab.
    #[must_use]
    pub const fn new(quorum: Quorum, variant: Variant) -> Self {
        Self {
            quorum,
            variant,
            lease_max: Span::from_secs(15),
            back_off: (Span::ZERO, Span::from_secs(4)),
            round_trip_worst: Span::from_millis(500),
            flight_max: Span::from_secs(30),
            margin: Margin::ONE_PERCENT,
            warning_max: Span::from_millis(50),
            durable: false,
        }
    }
    /// After this long without an answer there will be none. Half as long again as the worst round
    /// trip: a client whose clock is fast must not give up just before the slowest answer, every time.
    #[must_use]
    pub fn answer_wait(&self) -> Span {
        self.round_trip_worst * 3 / 2
    }
    /// The shortest ttl that renewals every third of it can keep alive.
    #[must_use]
    pub fn ttl_min(&self) -> Span {
        self.round_trip_worst * 5 / 2
    }
}

/// What there is to know of it.
pub const CARD: Card = Card {
    name: "strawman",
    about: "ask all, back off at random: what one would try first",
    source: "Lin, Lian, Chen, Zhang 2004, Section III",
    family: Family::Lock,
    memberships: &[Membership::Fixed, Membership::Agreed],
    variants: &Variant::ALL,
    promises: Promises::EXCLUSION,
    answers: &[("RESPONSE", &["REQUEST"])],
    mutants: &[],
};

/// One peer's share of the strawman, as client and as host of replicas.
#[derive(Debug, Clone, Hash)]
pub struct Strawman {
    me: PeerId,
    incarnation: Incarnation,
    config: Config,
    hosting: Box<dyn Hosting>,
    /// As client: what this peer's users want or have.
    claims: Users<Claim>,
    /// As host: replicas that are owned, or remember a bid that is over.
    replicas: BTreeMap<ReplicaId, Replica>,
    /// As host: until then a forgotten vote of a former life may be counted by somebody.
    abstains_until: LocalTime,
    sweeping: bool,
}

/// A request of a user of this peer.
#[derive(Debug, Clone, Hash)]
struct Claim {
    name: Name,
    ttl: Span,
    tries_once: bool,
    gives_up_at: LocalTime,
    attempt: u32,
    phase: Phase,
    /// One per replica, ascending.
    seats: Vec<Seat>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Phase {
    Asking,
    BackingOff,
    Inside(Guard),
}

/// What a client knows of a replica in this attempt.
#[derive(Debug, Clone, Copy, Hash)]
struct Seat {
    index: u16,
    asked: Option<PeerId>,
    rejected: bool,
    /// Until when the vote counts; `MIN` without one.
    expiry: LocalTime,
}

/// A replica.
#[derive(Debug, Clone, Default, Hash)]
struct Replica {
    owner: Option<Owner>,
    /// Tombstones: the latest attempt of a request known to be over, and until when to remember.
    closed: BTreeMap<RequestId, (u32, LocalTime)>,
}

#[derive(Debug, Clone, Copy, Hash)]
struct Owner {
    bid: Bid,
    given: LocalTime,
    ttl: Span,
}

/// What the strawman's timers are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer {
    /// What a claim does next that waits: stop waiting for answers, or bid again.
    Step(CallId),
    /// A user's patience is over, or its right is to be renewed, or ends.
    Users,
    /// Time to forget what hosted replicas need not remember.
    Sweep,
}

/// Where durable records are kept.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum DurableKey {
    /// The vote of a replica.
    Vote(ReplicaId),
    /// Present while votes of an earlier life may be forgotten.
    Abstaining,
}

/// What is kept on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Durable {
    /// The vote is lent to this bid for this long at a time.
    Vote(Bid, Span),
    /// This life is not to be trusted with votes at once.
    Abstaining,
}

/// Moments worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// An attempt failed.
    RoundLost,
    /// A REQUEST for a bid that is over, dropped.
    StaleRequest,
    /// A vote nobody here wants any more, given back.
    StaleVote,
    /// A REQUEST rejected for want of memory.
    Abstained,
    /// A message no correct peer sends, dropped.
    Impossible,
    /// A bound was reached: the REQUEST was dropped, or the tombstone was not set.
    Full,
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RoundLost => "lost the round",
            Self::StaleRequest => "dropped a REQUEST of a bid that is over",
            Self::StaleVote => "gave back a vote that came too late",
            Self::Abstained => "abstained",
            Self::Impossible => "dropped an impossible message",
            Self::Full => "reached a bound",
        })
    }
}

type Cx<'a> = Context<'a, Strawman>;

impl<R> Listed<R> for Strawman {
    fn plan(me: PeerId, plan: &Plan<R>) -> Self {
        let config = Config {
            lease_max: plan.lease_max,
            round_trip_worst: plan.round_trip_worst,
            flight_max: plan.flight_max,
            back_off: plan.back_off,
            durable: plan.durable,
            ..Config::new(plan.quorum, plan.variant)
        };
        Self::new(me, config, plan.hosting.clone())
    }
}

impl Driven for Strawman {
    fn hosted(&self) -> usize {
        self.replicas.len()
    }
}

/// None of which it can be told to break.
impl<R> GoesBy<R> for Strawman {}

impl OverViews for Strawman {
    fn is_promise(message: &Message) -> bool {
        matches!(message.body, Body::Response(_))
    }
    fn stand(&mut self, terms: Terms) {
        self.hosting.stand(terms);
    }
}

impl Protocol for Strawman {
    type Message = Message;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = Timer;
    type DurableKey = DurableKey;
    type Durable = Durable;
    type Note = Note;

    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<Self>) {
        self.check_guards(cx);
        match input {
            Input::Start { incarnation, birth } => self.on_start(cx, incarnation, birth),
            Input::Request { id, request } => self.on_call(cx, id, request),
            Input::Fire(Timer::Step(call)) => self.on_step(cx, call),
            Input::Fire(Timer::Users) => self.on_users(cx),
            Input::Fire(Timer::Sweep) => self.on_sweep(cx),
            Input::Receive { from, message } => self.on_message(cx, from, message),
            Input::ViewChanged(view) => {
                if self.hosting.follow(&view) {
                    self.on_view(cx, &view);
                }
            }
            Input::PeerUp(_) | Input::PeerDown(_) | Input::Leave => {}
        }
    }
}

impl Strawman {
    /// A peer about to start.
    #[must_use]
    pub fn new(me: PeerId, config: Config, hosting: Box<dyn Hosting>) -> Self {
        Self {
            me,
            incarnation: Incarnation(0),
            config,
            hosting,
            claims: Users::default(),
            replicas: BTreeMap::new(),
            abstains_until: LocalTime::MIN,
            sweeping: false,
        }
    }

    fn shipped(&self) -> bool {
        self.config.variant == Variant::Shipped
    }

    fn on_start(&mut self, cx: &mut Cx<'_>, incarnation: Incarnation, birth: Birth<Self>) {
        self.incarnation = incarnation;
        let (kept, forgetful) = match birth {
            Birth::First => (Vec::new(), false),
            // A peer that keeps nothing on disk recovers nothing, whatever its driver calls it.
            Birth::Recovered(kept) => (kept, !self.config.durable),
            Birth::Amnesiac => (Vec::new(), true),
        };
        let mut abstains = forgetful;
        for (key, value) in kept {
            match (key, value) {
                // Nobody knows how long the peer was down, so the lease runs anew.
                (DurableKey::Vote(replica), Durable::Vote(bid, ttl)) => {
                    let owner = Some(Owner { bid, given: cx.now(), ttl });
                    self.replicas.entry(replica).or_default().owner = owner;
                }
                (DurableKey::Abstaining, Durable::Abstaining) => abstains = true,
                _ => cx.note(Note::Impossible),
            }
        }
        if abstains && self.shipped() {
            self.abstains_until = cx.now() + self.config.lease_max;
            if self.config.durable {
                cx.persist(DurableKey::Abstaining, Some(Durable::Abstaining));
            }
        }
        if abstains || !self.replicas.is_empty() {
            self.sweep_later(cx);
        }
    }

    /// Peers have agreed on another membership. What this one promised as a member that it is no more is void.
    fn on_view(&mut self, cx: &mut Cx<'_>, view: &View) {
        self.config.quorum = Quorum::of_view(view.members.len());
        if matches!(view.part, Part::Returned | Part::Newcomer) {
            for (replica, _) in core::mem::take(&mut self.replicas) {
                if self.config.durable {
                    cx.persist(DurableKey::Vote(replica), None);
                }
            }
        }
        self.count_anew(cx);
    }

    fn on_message(&mut self, cx: &mut Cx<'_>, from: PeerId, message: Message) {
        let Message { replica, bid, body } = message;
        let is_answer = matches!(body, Body::Response(_));
        let client = if is_answer { self.me } else { from };
        if !self.hosting.has_replica(replica.index) || bid.request.client != client {
            return cx.note(Note::Impossible);
        }
        match body {
            Body::Request { ttl, sent } => self.on_request(cx, replica, bid, ttl, sent),
            Body::Release => self.on_release(cx, replica, bid),
            Body::Response(answer) => self.on_response(cx, from, replica, bid, answer),
        }
    }
}
