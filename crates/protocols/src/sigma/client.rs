//! A peer as a client: its requests under way, its guards, its renewals.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;

use sigmalock_core::{
    CallId, Echo, Incarnation, LocalTime, LockReply, LockRequest, PeerId, ReplicaId, RequestId,
    Token, View,
};

use super::attempt::{Attempt, Step};
use super::message::{Answer, Claim, GrantId, Message, Renewal, Response, Spent, Ticket, Used};
use super::{Config, Cx, Mutant, Note, Timer};
use crate::parts::Rules;
use crate::parts::placement::PEERS_MAX;
use crate::parts::{Door, HybridClock, Quorum, Todo, User, Users};

/// How many finished requests are remembered, to tell a late grant from a lost RELEASE.
const FINISHED_MAX: usize = 1_024;
/// How often a request that is over is sent on, for each replica.
const SENT_ON_MAX: usize = 2;

/// The client's side of Sigma.
#[derive(Debug, Clone, Hash)]
pub(super) struct Client<R> {
    config: Config<R>,
    me: PeerId,
    incarnation: Incarnation,
    clock: HybridClock,
    attempts: Users<Attempt>,
    finished: VecDeque<Finished>,
    /// Of the first so many of them no RELEASE is on its way any more.
    arrived: usize,
    /// Hosts that cannot be reached: what is sent to them does not arrive.
    down: BTreeSet<PeerId>,
}

/// A request that is over.
#[derive(Debug, Clone, Hash)]
struct Finished {
    request: RequestId,
    /// The token it showed, if it was inside.
    token: Option<Token>,
    /// How often it was sent on to another host since.
    moves: usize,
    /// Until then its RELEASE need not have arrived, where it was sent.
    release_arrives_by: LocalTime,
    told: Vec<PeerId>,
}

impl Finished {
    /// What it has to say of tokens.
    fn spent(&self) -> Spent {
        let used = |token| Spent::Token(Used { token, knew: None });
        self.token.map_or(Spent::Nothing, used)
    }
}

impl<R: Rules> Client<R> {
    pub(super) fn new(config: Config<R>, me: PeerId, incarnation: Incarnation) -> Self {
        Self {
            config,
            me,
            incarnation,
            clock: HybridClock::default(),
            attempts: Users::default(),
            finished: VecDeque::new(),
            arrived: 0,
            down: BTreeSet::new(),
        }
    }

    pub(super) const fn config(&self) -> &Config<R> {
        &self.config
    }

    pub(super) fn attempts(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().map(|(_, attempt)| attempt)
    }

    pub(super) fn on_request(&mut self, cx: Cx<'_, '_, R>, id: CallId, request: LockRequest) {
        let door = Door {
            ttl_min: self.config.ttl_min(),
            ttl_max: self.config.lease_max,
            users_max: self.config.limits.requests_max,
            modes: true,
        };
        match self.attempts.hear(cx, door, id, request) {
            Todo::Ask(wish) => {
                let order = self.clock.tick(cx.wall());
                let request =
                    RequestId { client: self.me, incarnation: self.incarnation, call: id };
                let ticket = Ticket { order, request, mode: wish.mode };
                let attempt = Attempt::start(&self.config, cx, ticket, &wish, &self.down);
                self.attempts.insert(id, attempt);
            }
            Todo::End { call, to, reply } => {
                self.finish(cx, call, None);
                let blunder = self.config.breaks(Mutant::AnswersTheHolder);
                cx.reply(if blunder { call } else { to }, reply);
            }
            Todo::Watch(call) => self.watch(cx, call),
            Todo::Nothing => {}
        }
    }

    /// Looks at every guard's deadline, before anything else is believed: this peer may have slept.
    pub(super) fn check_guards(&mut self, cx: Cx<'_, '_, R>) {
        for call in self.attempts.lapse(cx) {
            self.finish(cx, call, None);
        }
    }

    pub(super) fn on_response(&mut self, cx: Cx<'_, '_, R>, from: PeerId, response: &Response) {
        self.clock.observe(response.clock);
        let Response { replica, ticket, answer, .. } = response;
        let call = ticket.request.call;
        match self.attempts.get_mut(call).filter(|attempt| attempt.ticket == *ticket) {
            Some(attempt) => {
                let step = attempt.on_response(&self.config, cx, from, response);
                self.after(cx, call, step);
            }
            None if matches!(answer, Answer::Yours { .. }) => {
                self.refuse_vote(cx, from, replica, *ticket);
            }
            None => {}
        }
    }

    pub(super) fn on_recall(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, replica: &ReplicaId, ticket: Ticket,
        grant: GrantId,
    ) {
        match self.attempts.get_mut(ticket.request.call).filter(|a| a.ticket == ticket) {
            Some(attempt) => attempt.on_recall(&self.config, cx, replica.index, grant),
            None => self.refuse_vote(cx, from, replica, ticket),
        }
    }

    pub(super) fn on_renewed(&mut self, cx: Cx<'_, '_, R>, echo: Echo, renewals: &[Renewal]) {
        for renewal in renewals {
            if let Some(attempt) = self.attempts.get_mut(renewal.call) {
                attempt.on_renewal(&self.config, cx, *renewal, echo);
                self.watch(cx, renewal.call);
            }
        }
    }

    /// A former host names the present one. A request that is over has yet to say so there.
    pub(super) fn on_moved(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, replica: &ReplicaId, ticket: Ticket, to: PeerId,
    ) {
        let RequestId { client, incarnation, call } = ticket.request;
        if !cx.hosting.hands_over() || (client, incarnation) != (self.me, self.incarnation) {
            return cx.note(Note::Malformed);
        }
        match self.attempts.get_mut(call).filter(|attempt| attempt.ticket == ticket) {
            Some(attempt) => attempt.on_moved(&self.config, cx, from, replica.index, to),
            None => {
                let over = self.finished.iter_mut().find(|over| over.request == ticket.request);
                let spent = match over {
                    Some(over) if over.moves >= SENT_ON_MAX * self.config.quorum.n() => return,
                    Some(over) => {
                        over.moves += 1;
                        over.spent()
                    }
                    // Nobody counts how often: hosts that do not agree must not send it round in circles.
                    None if cx.hosting.host_of(replica) != Some(to) => return,
                    None => Spent::Unknown,
                };
                cx.send(to, Message::Release { replica: replica.clone(), ticket, spent });
            }
        }
    }

    pub(super) fn on_timer(&mut self, cx: Cx<'_, '_, R>, call: CallId) {
        if let Some(attempt) = self.attempts.get_mut(call) {
            let step = attempt.on_timer(&self.config, cx);
            self.after(cx, call, step);
        }
    }

    pub(super) fn on_peer(&mut self, cx: Cx<'_, '_, R>, peer: PeerId, up: bool) {
        if up {
            self.down.remove(&peer);
        } else {
            // What was on its way to it is lost.
            let on_their_way = self.finished.iter_mut().skip(self.arrived);
            on_their_way.for_each(|over| over.told.retain(|host| *host != peer));
            if self.down.len() < PEERS_MAX {
                self.down.insert(peer);
            }
        }
        for call in self.attempts.calls() {
            if let Some(attempt) = self.attempts.get_mut(call) {
                let step = attempt.on_peer(&self.config, cx, peer, up);
                self.after(cx, call, step);
            }
        }
    }

    /// Peers have agreed on another membership.
    pub(super) fn on_view(&mut self, cx: Cx<'_, '_, R>, view: &View) {
        self.config.quorum = Quorum::of_view(view.members.len());
        for call in self.attempts.calls() {
            if let Some(attempt) = self.attempts.get_mut(call) {
                let step = attempt.on_view(&self.config, cx, &self.down);
                self.after(cx, call, step);
            }
        }
    }

    /// Renews all guards that are due, or nearly, with one message per host.
    pub(super) fn renew(&mut self, cx: Cx<'_, '_, R>) {
        let now = cx.now();
        let mut by_host: BTreeMap<PeerId, Vec<Claim>> = BTreeMap::new();
        for (_, attempt) in self.attempts.iter_mut() {
            let Some(guard) = attempt.guard() else { continue };
            let slack = guard.deadline().since(now) / 6;
            if !guard.is_lost() && guard.renew_at() <= now + slack {
                for (host, claim) in attempt.claims(now) {
                    by_host.entry(host).or_default().push(claim);
                }
            }
        }
        for (host, claims) in by_host {
            for claims in claims.chunks(self.config.limits.claims_max.max(1)) {
                cx.send(host, Message::Renew { sent: now, claims: claims.to_vec() });
            }
        }
        self.attempts.watch_all(cx, &Timer::Renewal);
    }

    /// Makes sure that this peer wakes for the next renewal and the next deadline.
    fn watch(&mut self, cx: Cx<'_, '_, R>, call: CallId) {
        self.attempts.watch(cx, call, Timer::Renewal);
    }

    fn after(&mut self, cx: Cx<'_, '_, R>, call: CallId, step: Step) {
        match step {
            Step::Continue => self.watch(cx, call),
            Step::Over(LockReply::TimedOut) if self.config.breaks(Mutant::EndsInSilence) => {
                self.finish(cx, call, None);
            }
            Step::Over(reply) => self.finish(cx, call, Some(reply)),
        }
    }

    fn finish(&mut self, cx: Cx<'_, '_, R>, call: CallId, reply: Option<LockReply>) {
        let Some(attempt) = self.attempts.remove(call) else {
            return debug_assert!(false, "{call:?} ends once");
        };
        attempt.release(cx);
        self.forget_arrived(cx.now());
        if self.finished.len() == FINISHED_MAX {
            self.finished.pop_front();
            self.arrived = self.arrived.saturating_sub(1);
        }
        self.finished.push_back(Finished {
            request: attempt.ticket.request,
            token: attempt.token(),
            moves: 0,
            release_arrives_by: cx.now() + self.config.round_trip_worst,
            told: attempt.hosts().filter(|host| !self.down.contains(host)).collect(),
        });
        if let Some(reply) = reply {
            cx.reply(call, reply);
        }
    }

    /// Where a RELEASE was sent need not be known once it must have arrived.
    fn forget_arrived(&mut self, now: LocalTime) {
        while let Some(over) = self.finished.get_mut(self.arrived)
            && over.release_arrives_by <= now
        {
            over.told = Vec::new();
            self.arrived += 1;
        }
    }

    /// A vote for a request that is over: its RELEASE is on the way, or was lost.
    fn refuse_vote(&self, cx: Cx<'_, '_, R>, host: PeerId, replica: &ReplicaId, ticket: Ticket) {
        let is_it = |finished: &&Finished| finished.request == ticket.request;
        let finished = self.finished.iter().rev().find(is_it);
        let on_its_way =
            |over: &Finished| over.release_arrives_by > cx.now() && over.told.contains(&host);
        // What a former life had is left to run out: its user may still be before the deadline.
        if (ticket.request.client, ticket.request.incarnation) != (self.me, self.incarnation)
            || finished.is_some_and(on_its_way)
        {
            return;
        }
        cx.note(Note::LateVoteReturned);
        let (replica, spent) = (replica.clone(), finished.map_or(Spent::Unknown, Finished::spent));
        cx.send(host, Message::Release { replica, ticket, spent });
    }
}
