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
    Acquire, CallId, Context, Input, LocalTime, LockReply, LockRequest, Mode, Name, Patience,
    PeerId, Protocol, Refusal, ReplicaId, Span, Token,
};

pub use self::message::{LiteralBody, LiteralMessage};
use self::replica::Replica;
use crate::catalogue::{Listed, Plan};
use crate::parts::{Driven, GoesBy, Hosting, Quorum};

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

/// One peer's share of the literal Sigma.
#[derive(Debug, Clone)]
pub struct Literal {
    me: PeerId,
    config: LiteralConfig,
    hosting: Box<dyn Hosting>,
    /// As client: Lamport's clock, and what is wanted.
    clock: u64,
    wishes: BTreeMap<Name, Wish>,
    /// As host.
    replicas: BTreeMap<ReplicaId, Replica>,
}

#[derive(Debug, Clone)]
struct Wish {
    call: CallId,
    tries_once: bool,
    timestamp: u64,
    resp: Vec<Option<Resp>>,
    deadline: Option<LocalTime>,
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
    /// A waiter's patience ends.
    Patience(Name),
    /// A holder renews its votes.
    Renew(Name),
    /// A holder's lease ends.
    Lapse(Name),
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
            Input::Fire(LiteralTimer::Patience(name)) => {
                self.give_up(cx, &name, LockReply::TimedOut);
            }
            Input::Fire(LiteralTimer::Renew(name)) => self.on_renew_due(cx, &name),
            Input::Fire(LiteralTimer::Lapse(name)) => self.on_lapse(cx, &name),
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
        let (wishes, replicas) = (BTreeMap::new(), BTreeMap::new());
        Self { me, config, hosting, clock: 0, wishes, replicas }
    }

    fn on_call(&mut self, cx: &mut Cx<'_>, id: CallId, request: LockRequest) {
        let (call, inside, answered, reply) = match request {
            LockRequest::Acquire(wish) => return self.request(cx, id, wish),
            LockRequest::Release { held } => (held, true, id, LockReply::Released),
            LockRequest::Cancel { call } => (call, false, call, LockReply::Cancelled),
            LockRequest::Renew { .. } | LockRequest::Evict { .. } => {
                return cx.reply(id, LockReply::Refused(Refusal::UnknownCall));
            }
        };
        let mine = |(_, w): &(&Name, &Wish)| w.call == call && w.deadline.is_some() == inside;
        match self.wishes.iter().find(mine).map(|(name, _)| name.clone()) {
            Some(name) => {
                self.leave(cx, &name);
                cx.reply(answered, reply);
            }
            None => cx.reply(id, LockReply::Refused(Refusal::UnknownCall)),
        }
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
        if wish.mode != Mode::Exclusive {
            let refusal = Refusal::NoSuchMode { mode: wish.mode };
            return cx.reply(call, LockReply::Refused(refusal));
        }
        if self.wishes.contains_key(&wish.name) {
            let refusal = Refusal::TooManyRequests { limit: 1 };
            return cx.reply(call, LockReply::Refused(refusal));
        }
        self.clock = self.clock.saturating_add(1);
        let timestamp = self.clock;
        self.send_all(cx, &wish.name, LiteralBody::Request { timestamp });
        if let Patience::For(span) = wish.patience {
            cx.set_timer(LiteralTimer::Patience(wish.name.clone()), cx.now() + span);
        }
        let tries_once = wish.patience == Patience::Try;
        let resp = alloc::vec![None; self.config.quorum.n()];
        self.wishes.insert(wish.name, Wish { call, tries_once, timestamp, resp, deadline: None });
    }

    fn on_response(
        &mut self, cx: &mut Cx<'_>, replica: &ReplicaId, owner: PeerId, grant: u64,
        wait: Option<Span>,
    ) {
        let (me, quorum) = (self.me, self.config.quorum);
        // A client that is done has no use for it, and nobody tells the replica.
        let Some(wish) = self.wishes.get_mut(&replica.name) else { return };
        if let Some(wait) = wait.filter(|_| owner != me) {
            cx.set_timer(LiteralTimer::Retry(replica.clone()), cx.now() + wait);
        }
        let until = self.config.lease.map_or(LocalTime::NEVER, |lease| cx.now() + lease);
        wish.resp[usize::from(replica.index)] = Some(Resp { owner, grant, until });
        if wish.deadline.is_some() {
            return;
        }
        let (leader, votes) = wish.most_popular();
        let somebody_wins = votes >= quorum.m();
        let nobody_wins = quorum.nobody_can_win(wish.resp.iter().flatten().count(), votes);
        if somebody_wins && leader == Some(me) {
            self.enter(cx, &replica.name);
        } else if wish.tries_once && (somebody_wins || nobody_wins) {
            self.give_up(cx, &replica.name, LockReply::Busy);
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
    fn enter(&mut self, cx: &mut Cx<'_>, name: &Name) {
        let (me, m) = (self.me, self.config.quorum.m());
        let Some(wish) = self.wishes.get_mut(name) else { return };
        let Some(deadline) = wish.lease_end(me, m).filter(|end| *end > cx.now()) else { return };
        wish.deadline = Some(deadline);
        let grants = wish.resp.iter().flatten().filter(|r| r.owner == me).map(|r| r.grant);
        let token = grants.max().filter(|_| self.config.obvious_token).map(Token);
        cx.cancel_timer(LiteralTimer::Patience(name.clone()));
        if let Some(lease) = self.config.lease {
            cx.set_timer(LiteralTimer::Renew(name.clone()), cx.now() + lease / 3);
            cx.set_timer(LiteralTimer::Lapse(name.clone()), deadline);
        }
        cx.reply(wish.call, LockReply::Granted { token, deadline, slot: None });
    }

    /// Release.
    fn leave(&mut self, cx: &mut Cx<'_>, name: &Name) -> Option<CallId> {
        self.send_all(cx, name, LiteralBody::Release);
        self.end(cx, name)
    }

    /// Whoever wanted the lock no longer does, and is told why.
    fn give_up(&mut self, cx: &mut Cx<'_>, name: &Name, reply: LockReply) {
        if let Some(call) = self.leave(cx, name) {
            cx.reply(call, reply);
        }
    }

    fn end(&mut self, cx: &mut Cx<'_>, name: &Name) -> Option<CallId> {
        let wish = self.wishes.remove(name)?;
        cx.cancel_timer(LiteralTimer::Patience(name.clone()));
        cx.cancel_timer(LiteralTimer::Renew(name.clone()));
        cx.cancel_timer(LiteralTimer::Lapse(name.clone()));
        Some(wish.call)
    }

    fn on_retry(&mut self, cx: &mut Cx<'_>, replica: ReplicaId) {
        let Some(wish) = self.wishes.get(&replica.name) else { return };
        let known = wish.resp[usize::from(replica.index)];
        if wish.deadline.is_none() && known.is_none_or(|resp| resp.owner != self.me) {
            send(&*self.hosting, cx, replica, LiteralBody::Request { timestamp: wish.timestamp });
        }
    }

    fn on_renew_due(&mut self, cx: &mut Cx<'_>, name: &Name) {
        let (Some(wish), Some(lease)) = (self.wishes.get(name), self.config.lease) else { return };
        for (index, resp) in (0..).zip(&wish.resp) {
            if resp.is_some_and(|resp| resp.owner == self.me) {
                send(
                    &*self.hosting,
                    cx,
                    ReplicaId { name: name.clone(), index },
                    LiteralBody::Renew,
                );
            }
        }
        cx.set_timer(LiteralTimer::Renew(name.clone()), cx.now() + lease / 3);
    }

    fn on_renewed(&mut self, cx: &mut Cx<'_>, replica: &ReplicaId) {
        let (Some(wish), Some(lease)) = (self.wishes.get_mut(&replica.name), self.config.lease)
        else {
            return;
        };
        if let Some(resp) = &mut wish.resp[usize::from(replica.index)] {
            resp.until = cx.now() + lease;
        }
        let end = wish.lease_end(self.me, self.config.quorum.m());
        if let (Some(deadline), Some(end)) = (wish.deadline, end)
            && end > deadline
        {
            wish.deadline = Some(end);
            cx.set_timer(LiteralTimer::Lapse(replica.name.clone()), end);
            cx.reply(wish.call, LockReply::Extended { deadline: end });
        }
    }

    fn on_lapse(&mut self, cx: &mut Cx<'_>, name: &Name) {
        if let Some(call) = self.end(cx, name) {
            cx.reply(call, LockReply::Lost);
        }
    }

    fn send_all(&self, cx: &mut Cx<'_>, name: &Name, body: LiteralBody) {
        for index in (0..).take(self.config.quorum.n()) {
            send(&*self.hosting, cx, ReplicaId { name: name.clone(), index }, body);
        }
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
