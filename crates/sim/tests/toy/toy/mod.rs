//! The least that a lock protocol can be: ask all hosts of a name for their votes, and if too few come, ask again.
//!
//! ```text
//! client                hosts of the name
//!   │ ASK ─────────────────►│││  lend me your vote; again, every third of a ttl, to renew
//!   │◄──────────────── VOTE │││  m of these: in. Who has lent it to somebody else says nothing
//!   │ DONE ────────────────►│││  it is over, or the round is; then a pause, at random
//! ```

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::fmt;

use sigmalock_core::{
    Birth, CallId, Context, Echo, Incarnation, Input, Inspect, Lease, LocalReport, LocalTime,
    LockReply, LockRequest, Margin, Name, Part, Patience, PeerId, Protocol, ReplicaId,
    ReplicaReport, RequestId, Span,
};

use crate::agreed::OverViews;
use crate::catalogue::{Card, Family, Listed, Membership, Plan, Promises, Variant};
use crate::parts::hosting::Terms;
use crate::parts::{Door, Driven, GoesBy, Guard, Hosting, Quorum, Todo, User, Users};

/// What there is to know of it.
pub const CARD: Card = Card {
    name: "toy",
    about: "ask all, and again",
    source: "nobody's",
    family: Family::Lock,
    memberships: &[Membership::Fixed, Membership::Agreed],
    variants: &[Variant::Shipped],
    promises: Promises::EXCLUSION,
    answers: &[("VOTE", &["ASK"])],
    mutants: &[],
};

/// The most votes that a host has out, and the most users of a peer.
const BOUND: usize = 65_536;

/// A round of a request. What was said of another one does not count.
type Bid = (RequestId, u32);

/// One peer's share of it.
#[derive(Debug, Clone)]
pub struct Toy {
    me: PeerId,
    life: Incarnation,
    quorum: Quorum,
    door: Door,
    round_trip: Span,
    back_off: (Span, Span),
    hosting: Box<dyn Hosting>,
    wishes: Users<Wish>,
    /// As host: to whom each vote is lent, and until when.
    lent: BTreeMap<ReplicaId, (Bid, LocalTime)>,
    /// As host: until then a vote may be out that it does not remember.
    silent_until: LocalTime,
}

#[derive(Debug, Clone)]
struct Wish {
    name: Name,
    ttl: Span,
    only_tries: bool,
    gives_up_at: LocalTime,
    round: u32,
    /// Whether a round is under way.
    asking: bool,
    /// Until when each vote counts.
    votes: BTreeMap<u16, LocalTime>,
    guard: Option<Guard>,
}

impl User for Wish {
    fn name(&self) -> &Name {
        &self.name
    }
    fn guard(&self) -> Option<&Guard> {
        self.guard.as_ref()
    }
    fn guard_mut(&mut self) -> Option<&mut Guard> {
        self.guard.as_mut()
    }
    fn gives_up_at(&self) -> LocalTime {
        self.gives_up_at
    }
}

/// What is said.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Message {
    replica: ReplicaId,
    bid: Bid,
    body: Body,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
enum Body {
    Ask { ttl: Span, sent: LocalTime },
    Vote { echo: Echo, lease: Lease },
    Done,
}

impl sigmalock_core::Message for Message {
    fn kind(&self) -> &'static str {
        match self.body {
            Body::Ask { .. } => "ASK",
            Body::Vote { .. } => "VOTE",
            Body::Done => "DONE",
        }
    }
    fn size_bytes(&self) -> usize {
        64
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (request, round) = self.bid;
        write!(f, "{} {} of {request}.{round}", sigmalock_core::Message::kind(self), self.replica)
    }
}

/// What there are timers for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A round or a pause is over.
    Round(CallId),
    /// Something is due for a user.
    Users,
}

/// A message that no correct peer sends was dropped.
#[derive(Debug, Clone, Copy)]
pub struct Impossible;

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("dropped an impossible message")
    }
}

type Cx<'a> = Context<'a, Toy>;

impl Protocol for Toy {
    type Message = Message;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = Timer;
    type DurableKey = ();
    type Durable = ();
    type Note = Impossible;

    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<Self>) {
        for call in self.wishes.lapse(cx) {
            self.wishes.remove(call);
        }
        match input {
            Input::Start { incarnation, birth } => {
                self.life = incarnation;
                if !matches!(birth, Birth::First) {
                    self.silent_until = cx.now() + self.door.ttl_max;
                }
            }
            Input::Request { id, request } => self.on_call(cx, id, request),
            Input::Fire(Timer::Round(call)) => self.on_round(cx, call),
            Input::Fire(Timer::Users) => self.on_users(cx),
            Input::Receive { from, message } => self.on_message(cx, from, message),
            Input::ViewChanged(view) if self.hosting.follow(&view) => {
                self.quorum = Quorum::of_view(view.members.len());
                if matches!(view.part, Part::Returned | Part::Newcomer) {
                    self.lent.clear();
                }
                self.wishes.calls().into_iter().for_each(|call| self.start_anew(cx, call));
            }
            Input::ViewChanged(_) | Input::PeerUp(_) | Input::PeerDown(_) | Input::Leave => {}
        }
    }
}

impl Toy {
    fn on_call(&mut self, cx: &mut Cx<'_>, id: CallId, request: LockRequest) {
        match self.wishes.hear(cx, self.door, id, request) {
            Todo::Ask(wish) => {
                let wish = Wish {
                    gives_up_at: wish.patience.ends_at(cx.now()),
                    only_tries: wish.patience == Patience::Try,
                    name: wish.name,
                    ttl: wish.ttl,
                    round: 0,
                    asking: false,
                    votes: BTreeMap::new(),
                    guard: None,
                };
                self.wishes.insert(id, wish);
                self.wishes.watch(cx, id, Timer::Users);
                self.on_round(cx, id);
            }
            Todo::End { call, to, reply } => {
                self.end(cx, call);
                cx.reply(to, reply);
            }
            Todo::Watch(call) => self.wishes.watch(cx, call, Timer::Users),
            Todo::Nothing => {}
        }
    }

    fn on_users(&mut self, cx: &mut Cx<'_>) {
        for call in self.wishes.impatient(cx.now()) {
            self.end(cx, call);
            cx.reply(call, LockReply::TimedOut);
        }
        for call in self.wishes.due(cx.now()) {
            self.ask(cx, call);
            if let Some(Wish { guard: Some(guard), ttl, .. }) = self.wishes.get_mut(call) {
                guard.renew_next(cx.now() + *ttl / 3);
            }
        }
        self.wishes.watch_all(cx, &Timer::Users);
    }

    /// All hosts are asked; or too few have answered, and there is a pause.
    fn on_round(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(wish) = self.wishes.get_mut(call).filter(|wish| wish.guard.is_none()) else {
            return;
        };
        wish.asking = !wish.asking;
        if wish.asking {
            (wish.round, wish.votes) = (wish.round + 1, BTreeMap::new());
            cx.set_timer(Timer::Round(call), cx.now() + self.round_trip * 3 / 2);
            return self.ask(cx, call);
        }
        let only_tries = wish.only_tries;
        self.tell(cx, call, Body::Done);
        if only_tries {
            self.wishes.remove(call);
            return cx.reply(call, LockReply::Busy);
        }
        let (least, most) = self.back_off;
        let pause = least + Span::from_micros(cx.random() % (most - least).as_micros().max(1));
        cx.set_timer(Timer::Round(call), cx.now() + pause);
    }

    /// Others vote from now on.
    fn start_anew(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(wish) = self.wishes.get_mut(call) else { return };
        wish.votes.clear();
        if wish.guard.is_some() {
            self.ask(cx, call);
        } else if wish.asking {
            wish.asking = false;
            self.tell(cx, call, Body::Done);
            self.on_round(cx, call);
        }
    }

    fn end(&mut self, cx: &mut Cx<'_>, call: CallId) {
        self.tell(cx, call, Body::Done);
        self.wishes.remove(call);
        cx.cancel_timer(Timer::Round(call));
    }

    fn ask(&self, cx: &mut Cx<'_>, call: CallId) {
        let Some(wish) = self.wishes.get(call) else { return };
        self.tell(cx, call, Body::Ask { ttl: wish.ttl, sent: cx.now() });
    }

    fn tell(&self, cx: &mut Cx<'_>, call: CallId, body: Body) {
        let Some(wish) = self.wishes.get(call) else { return };
        let bid = (self.request(call), wish.round);
        for index in self.hosting.seats(&wish.name) {
            let replica = ReplicaId { name: wish.name.clone(), index };
            if let Some(host) = self.hosting.host_of(&replica) {
                cx.send(host, Message { replica, bid, body });
            }
        }
    }

    const fn request(&self, call: CallId) -> RequestId {
        RequestId { client: self.me, incarnation: self.life, call }
    }

    fn on_message(&mut self, cx: &mut Cx<'_>, from: PeerId, message: Message) {
        let Message { replica, bid, body } = message;
        let client = if matches!(body, Body::Vote { .. }) { self.me } else { from };
        if bid.0.client != client || !self.hosting.has_replica(replica.index) {
            return cx.note(Impossible);
        }
        match body {
            Body::Ask { ttl, sent } => self.on_ask(cx, replica, bid, ttl, sent),
            Body::Vote { echo, lease } => self.on_vote(cx, from, replica, bid, echo, lease),
            Body::Done => {
                if self.lent.get(&replica).is_some_and(|(owner, _)| *owner == bid) {
                    self.lent.remove(&replica);
                }
            }
        }
    }

    fn on_ask(
        &mut self, cx: &mut Cx<'_>, replica: ReplicaId, bid: Bid, ttl: Span, sent: LocalTime,
    ) {
        let now = cx.now();
        let theirs =
            self.lent.get(&replica).is_some_and(|(owner, end)| *owner != bid && *end > now);
        if theirs
            || ttl > self.door.ttl_max
            || now < self.silent_until
            || !self.hosting.may_vote(now)
        {
            return;
        }
        if self.lent.len() >= BOUND {
            self.lent.retain(|_, (_, end)| *end > now);
        }
        if self.lent.len() < BOUND {
            self.lent.insert(replica.clone(), (bid, now + ttl));
            let echo = Echo { sent, heard: now.stamp() };
            let lease = Lease { given: now.stamp(), ttl };
            cx.send(bid.0.client, Message { replica, bid, body: Body::Vote { echo, lease } });
        }
    }

    fn on_vote(
        &mut self, cx: &mut Cx<'_>, from: PeerId, replica: ReplicaId, bid: Bid, echo: Echo,
        lease: Lease,
    ) {
        let (request, round) = bid;
        if request.incarnation != self.life {
            // Somebody of a former life may be inside until its deadline.
            return;
        }
        let call = request.call;
        let wish = self.wishes.get_mut(call);
        let Some(wish) = wish.filter(|wish| wish.asking && wish.round == round) else {
            return cx.send(from, Message { replica, bid, body: Body::Done });
        };
        if replica.name != wish.name || self.hosting.host_of(&replica) != Some(from) {
            return cx.note(Impossible);
        }
        let end = wish.votes.entry(replica.index).or_insert(LocalTime::MIN);
        *end = (*end).max(Margin::ONE_PERCENT.expiry(echo, lease));
        let mut ends: Vec<LocalTime> = wish.votes.values().copied().collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        let Some(deadline) = ends.get(self.quorum.m() - 1) else { return };
        let deadline = (*deadline).min(self.hosting.counts_until());
        let (now, lead) = (cx.now(), wish.ttl / 50);
        match &mut wish.guard {
            Some(guard) if deadline >= guard.deadline() + wish.ttl / 8 => {
                guard.extend(cx, deadline);
            }
            None if deadline > now + lead => {
                wish.guard = Some(Guard::new(call, now, deadline, lead, now + wish.ttl / 3));
                cx.cancel_timer(Timer::Round(call));
                cx.reply(call, LockReply::Granted { token: None, deadline, slot: None });
                self.wishes.watch(cx, call, Timer::Users);
            }
            Some(_) | None => {}
        }
    }
}

impl<R> GoesBy<R> for Toy {}

impl<R> Listed<R> for Toy {
    fn plan(me: PeerId, plan: &Plan<R>) -> Self {
        let (ttl_min, ttl_max) = (plan.ttl_min(), plan.lease_max);
        Self {
            me,
            life: Incarnation(0),
            quorum: plan.quorum,
            door: Door { ttl_min, ttl_max, users_max: BOUND, modes: false },
            round_trip: plan.round_trip_worst,
            back_off: plan.back_off,
            hosting: plan.hosting.clone(),
            wishes: Users::default(),
            lent: BTreeMap::new(),
            silent_until: LocalTime::MIN,
        }
    }
}

impl Driven for Toy {
    fn hosted(&self) -> usize {
        self.lent.len()
    }
}

impl OverViews for Toy {
    fn is_promise(message: &Message) -> bool {
        matches!(message.body, Body::Vote { .. })
    }
    fn stand(&mut self, terms: Terms) {
        self.hosting.stand(terms);
    }
}

impl Inspect for Toy {
    fn replicas(&self, _: LocalTime, _: &Name) -> Vec<ReplicaReport> {
        Vec::new()
    }
    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        self.wishes.report(now, name, |call| self.request(call))
    }
    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        let mut names: Vec<Name> = self.wishes.iter().map(|(_, wish)| wish.name.clone()).collect();
        names.retain(|name| after.is_none_or(|after| name > after));
        names.sort_unstable();
        names.dedup();
        names.truncate(limit);
        names
    }
}
