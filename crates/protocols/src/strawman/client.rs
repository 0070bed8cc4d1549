//! The client's part: bid, win or lose, renew, leave.

use alloc::vec::Vec;

use sigmalock_core::{
    CallId, Echo, Lease, LocalTime, LockReply, LockRequest, Name, Patience, PeerId, ReplicaId,
    RequestId, Span,
};

use super::{
    Answer, Bid, Body, CLAIMS_MAX, Claim, Config, Cx, Message, Note, Phase, Seat, Strawman, Timer,
    Verdict,
};
use crate::catalogue::Variant;
use crate::parts::{Door, Guard, Hosting, Todo, User};

impl Strawman {
    pub(super) fn on_call(&mut self, cx: &mut Cx<'_>, id: CallId, request: LockRequest) {
        let door = Door {
            ttl_min: self.config.ttl_min(),
            ttl_max: self.config.lease_max,
            users_max: CLAIMS_MAX,
            modes: false,
        };
        match self.claims.hear(cx, door, id, request) {
            Todo::Ask(wish) => {
                let claim = Claim {
                    name: wish.name,
                    ttl: wish.ttl,
                    tries_once: wish.patience == Patience::Try,
                    gives_up_at: wish.patience.ends_at(cx.now()),
                    attempt: 0,
                    phase: Phase::BackingOff,
                    seats: Vec::new(),
                };
                self.claims.insert(id, claim);
                self.watch(cx, id);
                self.bid(cx, id);
            }
            Todo::End { call, to, reply } => {
                self.give_back(cx, call);
                self.forget(cx, call);
                cx.reply(to, reply);
            }
            Todo::Watch(call) => self.watch(cx, call),
            Todo::Nothing => {}
        }
    }

    fn watch(&mut self, cx: &mut Cx<'_>, call: CallId) {
        self.claims.watch(cx, call, Timer::Users);
    }

    /// Whoever is at its deadline is forgotten. Its votes are left to expire, also those that come in late: it had the
    /// time up to its deadline to stop, and a RELEASE that overtakes others would let the next one in before.
    pub(super) fn check_guards(&mut self, cx: &mut Cx<'_>) {
        for call in self.claims.lapse(cx) {
            self.forget(cx, call);
        }
    }

    /// Patience ends, and rights are renewed.
    pub(super) fn on_users(&mut self, cx: &mut Cx<'_>) {
        for call in self.claims.impatient(cx.now()) {
            self.give_back(cx, call);
            self.end(cx, call, LockReply::TimedOut);
        }
        for call in self.claims.due(cx.now()) {
            self.ask_all(cx, call);
            if let Some(claim) = self.claims.get_mut(call)
                && let Phase::Inside(guard) = &mut claim.phase
            {
                guard.renew_next(cx.now() + claim.ttl / 3);
            }
        }
        self.claims.watch_all(cx, &Timer::Users);
    }

    /// Starts an attempt under a number of its own.
    fn bid(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(claim) = self.claims.get_mut(call) else {
            return debug_assert!(false, "{call:?} is known");
        };
        claim.attempt = claim.attempt.saturating_add(1);
        claim.phase = Phase::Asking;
        claim.seats = Seat::for_all(&*self.hosting, &claim.name);
        self.ask_all(cx, call);
        cx.set_timer(Timer::Step(call), cx.now() + self.config.answer_wait());
    }

    /// Sends REQUESTs to all replicas: the first time they are bids, later they renew.
    fn ask_all(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(claim) = self.claims.get_mut(call) else {
            return debug_assert!(false, "{call:?} is known");
        };
        let request = RequestId { client: self.me, incarnation: self.incarnation, call };
        let bid = Bid { request, attempt: claim.attempt };
        for seat in &mut claim.seats {
            let replica = ReplicaId { name: claim.name.clone(), index: seat.index };
            seat.asked = self.hosting.host_of(&replica);
            if let Some(host) = seat.asked {
                let body = Body::Request { ttl: claim.ttl, sent: cx.now() };
                cx.send(host, Message { replica, bid, body });
            }
        }
    }

    pub(super) fn on_step(&mut self, cx: &mut Cx<'_>, call: CallId) {
        match self.claims.get(call).map(|claim| claim.phase) {
            Some(Phase::Asking) => self.lose_round(cx, call),
            Some(Phase::BackingOff) => self.bid(cx, call),
            Some(Phase::Inside(_)) | None => {}
        }
    }

    pub(super) fn on_response(
        &mut self, cx: &mut Cx<'_>, from: PeerId, replica: ReplicaId, bid: Bid, answer: Answer,
    ) {
        let call = bid.request.call;
        if bid.request.incarnation != self.incarnation {
            // What a former life had is left to expire: its user may be inside until its deadline.
            return;
        }
        let current = self.claims.get_mut(call).filter(|claim| {
            bid.attempt == claim.attempt && !matches!(claim.phase, Phase::BackingOff)
        });
        let Some(claim) = current else {
            // The round is over. Its RELEASE may be lost, so a vote is given back once more.
            if matches!(answer.verdict, Verdict::Vote(_)) {
                cx.note(Note::StaleVote);
                cx.send(from, Message { replica, bid, body: Body::Release });
            }
            return;
        };
        let asked = |seat: &&mut Seat| seat.index == replica.index && seat.asked == Some(from);
        let seat = claim.seats.iter_mut().find(asked);
        let Some(seat) = seat.filter(|_| replica.name == claim.name) else {
            return cx.note(Note::Impossible);
        };
        match answer.verdict {
            Verdict::Vote(lease) => {
                // Every answer is true for itself, so the one that promises most is the one to keep.
                let expiry = expiry(&self.config, cx.now(), answer.echo, lease);
                seat.expiry = seat.expiry.max(expiry);
            }
            Verdict::Rejected { .. } => seat.rejected = true,
        }
        self.count(cx, call);
    }

    /// Looks at the votes: in, still in, or no longer able to win.
    fn count(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let (n, m) = (self.config.quorum.n(), self.config.quorum.m());
        let Some(claim) = self.claims.get_mut(call) else {
            return debug_assert!(false, "{call:?} is known");
        };
        let deadline = claim.deadline(m).min(self.hosting.counts_until());
        let warning = self.config.warning_max.min(claim.ttl / 10);
        match &mut claim.phase {
            Phase::Asking if deadline > cx.now() + warning => {
                let renew_at = cx.now() + claim.ttl / 3;
                let guard = Guard::new(call, cx.now(), deadline, warning, renew_at);
                claim.phase = Phase::Inside(guard);
                cx.cancel_timer(Timer::Step(call));
                self.watch(cx, call);
                cx.reply(call, LockReply::Granted { token: None, deadline, slot: None });
            }
            Phase::Asking => {
                let lost = |b: &&Seat| b.rejected && b.expiry == LocalTime::MIN;
                if claim.seats.iter().filter(lost).count() > n - m {
                    self.lose_round(cx, call);
                }
            }
            // Each of the last votes to come in moves the deadline a little: not worth telling.
            Phase::Inside(guard) if deadline >= guard.deadline() + claim.ttl / 8 => {
                guard.extend(cx, deadline);
            }
            Phase::Inside(_) | Phase::BackingOff => {}
        }
    }

    fn lose_round(&mut self, cx: &mut Cx<'_>, call: CallId) {
        cx.note(Note::RoundLost);
        self.give_back(cx, call);
        let Some(claim) = self.claims.get_mut(call) else {
            return debug_assert!(false, "{call:?} is known");
        };
        if claim.tries_once {
            return self.end(cx, call, LockReply::Busy);
        }
        claim.phase = Phase::BackingOff;
        let (least, most) = self.config.back_off;
        let range_us = (most - least).as_micros();
        let pause = least + Span::from_micros(cx.random() % range_us.saturating_add(1).max(1));
        cx.set_timer(Timer::Step(call), cx.now() + pause);
    }

    /// Tells every replica that may have lent its vote, or may be about to, that the bid is over.
    fn give_back(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(claim) = self.claims.get(call).filter(|c| !matches!(c.phase, Phase::BackingOff))
        else {
            return;
        };
        let request = RequestId { client: self.me, incarnation: self.incarnation, call };
        let bid = Bid { request, attempt: claim.attempt };
        for seat in &claim.seats {
            let may_vote = seat.expiry > LocalTime::MIN || !seat.rejected;
            if let Some(host) = seat.asked.filter(|_| may_vote) {
                let replica = ReplicaId { name: claim.name.clone(), index: seat.index };
                cx.send(host, Message { replica, bid, body: Body::Release });
            }
        }
    }

    /// Others vote from now on: who asks does so once more, and who is inside has what time it has, unless they
    /// renew it.
    pub(super) fn count_anew(&mut self, cx: &mut Cx<'_>) {
        for call in self.claims.calls() {
            let Some(claim) = self.claims.get_mut(call) else { continue };
            match claim.phase {
                Phase::Asking => {
                    self.give_back(cx, call);
                    self.bid(cx, call);
                }
                Phase::Inside(guard) if !guard.is_lost() => {
                    claim.seats = Seat::for_all(&*self.hosting, &claim.name);
                    if guard.renew_at() < LocalTime::NEVER {
                        self.ask_all(cx, call);
                    }
                }
                Phase::BackingOff | Phase::Inside(_) => {}
            }
        }
    }

    fn end(&mut self, cx: &mut Cx<'_>, call: CallId, reply: LockReply) {
        if self.forget(cx, call) {
            cx.reply(call, reply);
        }
    }

    /// There is nothing left to do for a claim. False if that is known.
    fn forget(&mut self, cx: &mut Cx<'_>, call: CallId) -> bool {
        cx.cancel_timer(Timer::Step(call));
        self.claims.remove(call).is_some()
    }
}

impl Seat {
    /// One for each replica of a name, none of which has been asked.
    fn for_all(hosting: &dyn Hosting, name: &Name) -> Vec<Self> {
        let seat = |index| Self { index, asked: None, rejected: false, expiry: LocalTime::MIN };
        hosting.seats(name).into_iter().map(seat).collect()
    }
}

impl User for Claim {
    fn name(&self) -> &Name {
        &self.name
    }
    fn guard(&self) -> Option<&Guard> {
        match &self.phase {
            Phase::Inside(guard) => Some(guard),
            Phase::Asking | Phase::BackingOff => None,
        }
    }
    fn guard_mut(&mut self) -> Option<&mut Guard> {
        match &mut self.phase {
            Phase::Inside(guard) => Some(guard),
            Phase::Asking | Phase::BackingOff => None,
        }
    }
    fn gives_up_at(&self) -> LocalTime {
        self.gives_up_at
    }
}

impl Claim {
    /// Until when m votes count: the m-th latest expiry.
    fn deadline(&self, m: usize) -> LocalTime {
        let mut expiries: Vec<_> = self.seats.iter().map(|b| b.expiry).collect();
        if expiries.len() < m {
            return LocalTime::MIN;
        }
        *expiries.select_nth_unstable_by(m - 1, |a, b| b.cmp(a)).1
    }
}

/// Until when the client may count a vote.
fn expiry(config: &Config, now: LocalTime, echo: Echo, lease: Lease) -> LocalTime {
    match config.variant {
        Variant::Literal => now + lease.ttl,
        Variant::Shipped => config.margin.expiry(echo, lease),
    }
}
