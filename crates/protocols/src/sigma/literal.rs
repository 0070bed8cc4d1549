//! Sigma to the letter: Figures 5 and 6 of the paper, and its lease and informed backoff where the
//! text describes them. It is here to be compared with the shipped variant, holes included: the
//! simulator's tests `literal_holes` have one for each. Do not mend them.
//!
//! ```text
//! client                                  replica
//!   │ REQUEST {timestamp} ────────────────►│   OnRequest: own it, or queue
//!   │◄────── RESPONSE {owner, its timestamp}│
//!   │ YIELD ───────────────────────────────►│   OnYield: back into the queue, next
//!   │◄────── RESPONSE {owner: you}          │   RespQueue: your turn
//!   │ RELEASE ─────────────────────────────►│   OnRelease
//! ```
//!
//! A client is a peer, and its id is all the identity there is: a peer that has left and asks again is
//! the same client. So it wants a lock once at a time; a second wish for the same name is refused.

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
    Acquire, CallId, Context, Input, LocalTime, LockReply, LockRequest, Name, Patience, PeerId,
    Protocol, Refusal, ReplicaId, Span, Token,
};

pub use self::message::{LiteralBody, LiteralMessage};
use self::replica::Replica;
use crate::catalogue::{Listed, Plan};
use crate::parts::{Door, Driven, GoesBy, Guard, Hosting, Quorum, Todo, User, Users};

/// How much of the paper, and what it does not say.
#[derive(Debug, Clone)]
pub struct LiteralConfig {
    /// m of n.
    pub quorum: Quorum,
    /// The renewable lease of Section IV; `None`: the pseudo code alone, where votes last for ever.
    pub lease: Option<Span>,
    /// Whether replicas advise a waiter when to ask again: Tw = TCS · (P + ½).
    pub informed_backoff: bool,
    /// Show the obvious token, the highest grant counter of the votes. The paper has none.
    pub obvious_token: bool,
}

impl LiteralConfig {
    /// The pseudo code alone.
    #[must_use]
    pub const fn new(quorum: Quorum) -> Self {
        Self { quorum, lease: None, informed_backoff: false, obvious_token: false }
    }
    /// The whole of Section IV.
    #[must_use]
    pub const fn whole(quorum: Quorum) -> Self {
        Self { lease: Some(Span::from_secs(10)), informed_backoff: true, ..Self::new(quorum) }
    }
}

/// Of ttls and bounds the paper says nothing.
const DOOR: Door =
    Door { ttl_min: Span::ZERO, ttl_max: Span::MAX, users_max: usize::MAX, modes: false };

/// One peer's share of the literal Sigma.
#[derive(Debug, Clone)]
pub struct Literal {
    me: PeerId,
    config: LiteralConfig,
    hosting: Box<dyn Hosting>,
    /// As client: Lamport's clock, and what is wanted.
    clock: u64,
    wishes: Users<Wish>,
    /// As host.
    replicas: BTreeMap<ReplicaId, Replica>,
}

#[derive(Debug, Clone)]
struct Wish {
    name: Name,
    tries_once: bool,
    gives_up_at: LocalTime,
    timestamp: u64,
    resp: Vec<Option<Resp>>,
    guard: Option<Guard>,
}

/// `resp[i]`: the owner of replica i as last heard.
#[derive(Debug, Clone, Copy)]
struct Resp {
    owner: PeerId,
    grant: u64,
    /// The lease, counted from receipt.
    until: LocalTime,
}

/// What the timers of the literal Sigma are for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LiteralTimer {
    /// A waiter's patience ends, or a holder renews its votes, or its lease ends.
    Users,
    /// The time Tw is over: ask this replica again.
    Retry(ReplicaId),
    /// The lease of a hosted replica's owner ends.
    Expire(ReplicaId),
}

/// Moments worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiteralNote {
    /// A message for a replica that does not exist, dropped.
    Impossible,
    /// A REQUEST beyond what a queue or a host takes, dropped.
    Full,
}

impl fmt::Display for LiteralNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Impossible => "dropped an impossible message",
            Self::Full => "reached a bound",
        })
    }
}

type Cx<'a> = Context<'a, Literal>;

impl Driven for Literal {}

/// None that it can be told to break.
impl<R> GoesBy<R> for Literal {}

impl<R> Listed<R> for Literal {
    fn plan(me: PeerId, plan: &Plan<R>) -> Self {
        let config = if plan.bare {
            LiteralConfig::new(plan.quorum)
        } else {
            LiteralConfig::whole(plan.quorum)
        };
        Self::new(me, config, plan.hosting.clone())
    }
}

impl Protocol for Literal {
    type Message = LiteralMessage;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = LiteralTimer;
    type DurableKey = ();
    type Durable = ();
    type Note = LiteralNote;

    fn handle(&mut self, cx: &mut Cx<'_>, input: Input<Self>) {
        match input {
            Input::Request { id, request } => self.on_call(cx, id, request),
            Input::Receive { from, message } => self.on_message(cx, from, message),
            Input::Fire(LiteralTimer::Users) => self.on_users(cx),
            Input::Fire(LiteralTimer::Retry(replica)) => self.on_retry(cx, replica),
            Input::Fire(LiteralTimer::Expire(replica)) => self.on_expire(cx, &replica),
            // A replica that lost its memory is as good as new to the paper.
            Input::Start { .. } => {}
            Input::PeerUp(_) | Input::PeerDown(_) | Input::Leave | Input::ViewChanged(_) => {}
        }
    }
}

impl Literal {
    /// A peer about to start.
    #[must_use]
    pub fn new(me: PeerId, config: LiteralConfig, hosting: Box<dyn Hosting>) -> Self {
        let (wishes, replicas) = (Users::default(), BTreeMap::new());
        Self { me, config, hosting, clock: 0, wishes, replicas }
    }

    fn on_call(&mut self, cx: &mut Cx<'_>, id: CallId, request: LockRequest) {
        if matches!(request, LockRequest::Renew { .. } | LockRequest::Evict { .. }) {
            return cx.reply(id, LockReply::Refused(Refusal::UnknownCall));
        }
        match self.wishes.hear(cx, DOOR, id, request) {
            Todo::Ask(wish) => self.request(cx, id, wish),
            Todo::End { call, to, reply } => {
                self.leave(cx, call);
                cx.reply(to, reply);
            }
            Todo::Watch(_) | Todo::Nothing => {}
        }
    }

    fn watch(&mut self, cx: &mut Cx<'_>, call: CallId) {
        self.wishes.watch(cx, call, LiteralTimer::Users);
    }

    fn on_users(&mut self, cx: &mut Cx<'_>) {
        for call in self.wishes.lapse(cx) {
            self.wishes.remove(call);
        }
        for call in self.wishes.impatient(cx.now()) {
            self.give_up(cx, call, LockReply::TimedOut);
        }
        for call in self.wishes.due(cx.now()) {
            self.on_renew_due(cx, call);
        }
        self.wishes.watch_all(cx, &LiteralTimer::Users);
    }

    /// Who wants that lock, or has it.
    fn whose(&self, name: &Name) -> Option<CallId> {
        self.wishes.iter().find(|(_, wish)| wish.name == *name).map(|(call, _)| call)
    }

    fn on_message(&mut self, cx: &mut Cx<'_>, from: PeerId, message: LiteralMessage) {
        let LiteralMessage { replica, body } = message;
        if usize::from(replica.index) >= self.config.quorum.n() {
            return cx.note(LiteralNote::Impossible);
        }
        match body {
            LiteralBody::Request { timestamp } => self.on_request(cx, &replica, from, timestamp),
            LiteralBody::Release => self.on_release(cx, &replica, from),
            LiteralBody::Yield => self.on_yield(cx, &replica, from),
            LiteralBody::Renew => self.on_renew(cx, replica, from),
            LiteralBody::Renewed => self.on_renewed(cx, &replica),
            LiteralBody::Response { owner, timestamp, grant, wait, .. } => {
                self.clock = self.clock.max(timestamp);
                self.on_response(cx, &replica, owner, grant, wait);
            }
        }
    }
}

/// Figure 5, the client.
impl Literal {
    fn request(&mut self, cx: &mut Cx<'_>, call: CallId, wish: Acquire) {
        if self.whose(&wish.name).is_some() {
            let refusal = Refusal::TooManyRequests { limit: 1 };
            return cx.reply(call, LockReply::Refused(refusal));
        }
        self.clock = self.clock.saturating_add(1);
        let timestamp = self.clock;
        self.send_all(cx, &wish.name, LiteralBody::Request { timestamp });
        let resp = alloc::vec![None; self.config.quorum.n()];
        let (name, guard) = (wish.name, None);
        let tries_once = wish.patience == Patience::Try;
        let gives_up_at = wish.patience.ends_at(cx.now());
        let wish = Wish { name, tries_once, gives_up_at, timestamp, resp, guard };
        self.wishes.insert(call, wish);
        self.watch(cx, call);
    }

    fn on_response(
        &mut self, cx: &mut Cx<'_>, replica: &ReplicaId, owner: PeerId, grant: u64,
        wait: Option<Span>,
    ) {
        let (me, quorum) = (self.me, self.config.quorum);
        // A client that is done has no use for it, and nobody tells the replica.
        let Some(call) = self.whose(&replica.name) else { return };
        let Some(wish) = self.wishes.get_mut(call) else { return };
        if let Some(wait) = wait.filter(|_| owner != me) {
            cx.set_timer(LiteralTimer::Retry(replica.clone()), cx.now() + wait);
        }
        let until = self.config.lease.map_or(LocalTime::NEVER, |lease| cx.now() + lease);
        wish.resp[usize::from(replica.index)] = Some(Resp { owner, grant, until });
        if wish.guard.is_some() {
            return;
        }
        let (leader, votes) = wish.most_popular();
        let somebody_wins = votes >= quorum.m();
        let nobody_wins = quorum.nobody_can_win(wish.resp.iter().flatten().count(), votes);
        if somebody_wins && leader == Some(me) {
            self.enter(cx, call);
        } else if wish.tries_once && (somebody_wins || nobody_wins) {
            self.give_up(cx, call, LockReply::Busy);
        } else if nobody_wins {
            for (index, resp) in (0..).zip(&mut wish.resp) {
                if resp.is_some_and(|resp| resp.owner == me) {
                    *resp = None;
                    send(
                        &*self.hosting,
                        cx,
                        ReplicaId { name: replica.name.clone(), index },
                        LiteralBody::Yield,
                    );
                }
            }
        }
        // Case 2: some one else wins, just wait.
    }

    /// Case 1: success.
    fn enter(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let (me, m) = (self.me, self.config.quorum.m());
        let Some(wish) = self.wishes.get_mut(call) else {
            return debug_assert!(false, "who enters has asked");
        };
        let Some(deadline) = wish.lease_end(me, m).filter(|end| *end > cx.now()) else { return };
        let renew_at = self.config.lease.map_or(LocalTime::NEVER, |lease| cx.now() + lease / 3);
        wish.guard = Some(Guard::new(call, cx.now(), deadline, Span::ZERO, renew_at));
        let grants = wish.resp.iter().flatten().filter(|r| r.owner == me).map(|r| r.grant);
        let token = grants.max().filter(|_| self.config.obvious_token).map(Token);
        self.watch(cx, call);
        cx.reply(call, LockReply::Granted { token, deadline, slot: None });
    }

    /// Release.
    fn leave(&mut self, cx: &mut Cx<'_>, call: CallId) {
        if let Some(wish) = self.wishes.remove(call) {
            self.send_all(cx, &wish.name, LiteralBody::Release);
        }
    }

    /// Whoever wanted the lock no longer does, and is told why.
    fn give_up(&mut self, cx: &mut Cx<'_>, call: CallId, reply: LockReply) {
        self.leave(cx, call);
        cx.reply(call, reply);
    }

    fn on_retry(&mut self, cx: &mut Cx<'_>, replica: ReplicaId) {
        let call = self.whose(&replica.name);
        let Some(wish) = call.and_then(|call| self.wishes.get(call)) else { return };
        let known = wish.resp[usize::from(replica.index)];
        if wish.guard.is_none() && known.is_none_or(|resp| resp.owner != self.me) {
            send(&*self.hosting, cx, replica, LiteralBody::Request { timestamp: wish.timestamp });
        }
    }

    fn on_renew_due(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let (Some(wish), Some(lease)) = (self.wishes.get_mut(call), self.config.lease) else {
            return;
        };
        for (index, resp) in (0..).zip(&wish.resp) {
            if resp.is_some_and(|resp| resp.owner == self.me) {
                let replica = ReplicaId { name: wish.name.clone(), index };
                send(&*self.hosting, cx, replica, LiteralBody::Renew);
            }
        }
        if let Some(guard) = &mut wish.guard {
            guard.renew_next(cx.now() + lease / 3);
        }
    }

    fn on_renewed(&mut self, cx: &mut Cx<'_>, replica: &ReplicaId) {
        let call = self.whose(&replica.name);
        let Some(wish) = call.and_then(|call| self.wishes.get_mut(call)) else { return };
        let Some(lease) = self.config.lease else { return };
        if let Some(resp) = &mut wish.resp[usize::from(replica.index)] {
            resp.until = cx.now() + lease;
        }
        let end = wish.lease_end(self.me, self.config.quorum.m());
        if let (Some(guard), Some(end)) = (&mut wish.guard, end) {
            guard.extend(cx, end);
        }
    }

    fn send_all(&self, cx: &mut Cx<'_>, name: &Name, body: LiteralBody) {
        for index in (0..).take(self.config.quorum.n()) {
            send(&*self.hosting, cx, ReplicaId { name: name.clone(), index }, body);
        }
    }
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

impl Wish {
    /// The owner named by most replicas, and how many name it.
    fn most_popular(&self) -> (Option<PeerId>, usize) {
        let mut owners: Vec<_> = self.resp.iter().flatten().map(|resp| resp.owner).collect();
        owners.sort_unstable();
        let runs = owners.chunk_by(PartialEq::eq);
        runs.max_by_key(|run| run.len()).map_or((None, 0), |run| (run.first().copied(), run.len()))
    }
    /// The m-th latest end of the client's votes.
    fn lease_end(&self, me: PeerId, m: usize) -> Option<LocalTime> {
        let mine = self.resp.iter().flatten().filter(|resp| resp.owner == me);
        let mut ends: Vec<_> = mine.map(|resp| resp.until).collect();
        ends.sort_unstable_by(|a, b| b.cmp(a));
        ends.get(m - 1).copied()
    }
}

fn send(hosting: &dyn Hosting, cx: &mut Cx<'_>, replica: ReplicaId, body: LiteralBody) {
    if let Some(host) = hosting.host_of(&replica) {
        cx.send(host, LiteralMessage { replica, body });
    }
}
