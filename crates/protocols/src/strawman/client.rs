//! The client's part: bid, win or lose, renew, leave.

use alloc::vec::Vec;

use sigmalock_core::{
    Acquire, CallId, Echo, Lease, LocalTime, LockReply, Mode, Name, Patience, PeerId, Refusal,
    ReplicaId, RequestId, Span,
};

use super::{
    Answer, Ballot, Bid, Body, CLAIMS_MAX, Claim, Config, Cx, Message, Note, Phase, Strawman,
    Timer, Verdict,
};
use crate::catalogue::Variant;
use crate::parts::Hosting;

impl Strawman {
    pub(super) fn on_acquire(&mut self, cx: &mut Cx<'_>, id: CallId, wish: Acquire) {
        if let Err(refusal) = self.check(id, &wish) {
            return cx.reply(id, LockReply::Refused(refusal));
        }
        if let Patience::For(span) = wish.patience {
            cx.set_timer(Timer::Patience(id), cx.now() + span);
        }
        let claim = Claim {
            name: wish.name,
            ttl: wish.ttl,
            tries_once: wish.patience == Patience::Try,
            attempt: 0,
            renewed: true,
            phase: Phase::BackingOff,
            ballots: Vec::new(),
            since: LocalTime::MIN,
        };
        self.claims.insert(id, claim);
        self.bid(cx, id);
    }

    fn check(&self, id: CallId, wish: &Acquire) -> Result<(), Refusal> {
        if wish.mode != Mode::Exclusive {
            Err(Refusal::NoSuchMode { mode: wish.mode })
        } else if wish.ttl < self.config.ttl_min() {
            Err(Refusal::TtlTooShort { at_least: self.config.ttl_min() })
        } else if wish.ttl > self.config.lease_max {
            Err(Refusal::TtlTooLong { at_most: self.config.lease_max })
        } else if self.claims.contains_key(&id) {
            Err(Refusal::DuplicateCall)
        } else if self.claims.len() >= CLAIMS_MAX {
            Err(Refusal::TooManyRequests { limit: CLAIMS_MAX })
        } else {
            Ok(())
        }
    }

    /// Starts an attempt under a number of its own.
    fn bid(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(claim) = self.claims.get_mut(&call) else { return };
        claim.attempt = claim.attempt.saturating_add(1);
        claim.phase = Phase::Asking;
        claim.ballots = Ballot::for_all(&*self.hosting, &claim.name);
        self.ask_all(cx, call);
        cx.set_timer(Timer::Step(call), cx.now() + self.config.answer_wait());
    }

    /// Sends REQUESTs to all replicas: the first time they are bids, later they renew.
    fn ask_all(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(claim) = self.claims.get_mut(&call) else { return };
        let request = RequestId { client: self.me, incarnation: self.incarnation, call };
        let bid = Bid { request, attempt: claim.attempt };
        for ballot in &mut claim.ballots {
            let replica = ReplicaId { name: claim.name.clone(), index: ballot.index };
            ballot.asked = self.hosting.host_of(&replica);
            if let Some(host) = ballot.asked {
                let body = Body::Request { ttl: claim.ttl, sent: cx.now() };
                cx.send(host, Message { replica, bid, body });
            }
        }
    }

    pub(super) fn on_step(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(claim) = self.claims.get(&call) else { return };
        match claim.phase {
            Phase::Asking => self.lose_round(cx, call),
            Phase::BackingOff => self.bid(cx, call),
            Phase::Inside { deadline } if cx.now() >= deadline => self.lose_lock(cx, call),
            Phase::Leaving { .. } => {
                self.forget(cx, call);
            }
            Phase::Inside { .. } => {
                let next = cx.now() + claim.ttl / 3;
                if claim.renewed {
                    self.ask_all(cx, call);
                }
                cx.set_timer(Timer::Step(call), next);
            }
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
        let current = self
            .claims
            .get_mut(&call)
            .filter(|claim| bid.attempt == claim.attempt && claim.phase != Phase::BackingOff);
        let Some(claim) = current else {
            // The round is over. Its RELEASE may be lost, so a vote is given back once more.
            if matches!(answer.verdict, Verdict::Vote(_)) {
                cx.note(Note::StaleVote);
                cx.send(from, Message { replica, bid, body: Body::Release });
            }
            return;
        };
        let asked =
            |ballot: &&mut Ballot| ballot.index == replica.index && ballot.asked == Some(from);
        let ballot = claim.ballots.iter_mut().find(asked);
        let Some(ballot) = ballot.filter(|_| replica.name == claim.name) else {
            return cx.note(Note::Impossible);
        };
        match answer.verdict {
            Verdict::Vote(lease) => {
                // Every answer is true for itself, so the one that promises most is the one to keep.
                let expiry = expiry(&self.config, cx.now(), answer.echo, lease);
                ballot.expiry = ballot.expiry.max(expiry);
            }
            Verdict::Rejected { .. } => ballot.rejected = true,
        }
        self.count(cx, call);
    }

    /// Looks at the votes: in, still in, or no longer able to win.
    fn count(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let (n, m) = (self.config.quorum.n(), self.config.quorum.m());
        let Some(claim) = self.claims.get_mut(&call) else { return };
        let deadline = claim.deadline(m).min(self.hosting.counts_until());
        let warning = self.config.warning_max.min(claim.ttl / 10);
        match claim.phase {
            Phase::Asking if deadline > cx.now() + warning => {
                claim.phase = Phase::Inside { deadline };
                claim.since = cx.now();
                cx.cancel_timer(Timer::Patience(call));
                cx.set_timer(Timer::Step(call), cx.now() + claim.ttl / 3);
                cx.set_timer(Timer::Lapse(call), deadline - warning);
                cx.reply(call, LockReply::Granted { token: None, deadline, slot: None });
            }
            Phase::Asking => {
                let lost = |b: &&Ballot| b.rejected && b.expiry == LocalTime::MIN;
                if claim.ballots.iter().filter(lost).count() > n - m {
                    self.lose_round(cx, call);
                }
            }
            // A peer that slept may find the answers to its renewals before its timers.
            Phase::Inside { deadline: before } if cx.now() >= before => self.lose_lock(cx, call),
            // Each of the last votes to come in moves the deadline a little: not worth telling.
            Phase::Inside { deadline: before } if deadline >= before + claim.ttl / 8 => {
                claim.phase = Phase::Inside { deadline };
                cx.set_timer(Timer::Lapse(call), deadline - warning);
                cx.reply(call, LockReply::Extended { deadline });
            }
            Phase::Inside { .. } | Phase::Leaving { .. } | Phase::BackingOff => {}
        }
    }

    fn lose_round(&mut self, cx: &mut Cx<'_>, call: CallId) {
        cx.note(Note::RoundLost);
        self.give_back(cx, call);
        let Some(claim) = self.claims.get_mut(&call) else { return };
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
        let Some(claim) = self.claims.get(&call).filter(|c| c.phase != Phase::BackingOff) else {
            return;
        };
        let request = RequestId { client: self.me, incarnation: self.incarnation, call };
        let bid = Bid { request, attempt: claim.attempt };
        for ballot in &claim.ballots {
            let may_vote = ballot.expiry > LocalTime::MIN || !ballot.rejected;
            if let Some(host) = ballot.asked.filter(|_| may_vote) {
                let replica = ReplicaId { name: claim.name.clone(), index: ballot.index };
                cx.send(host, Message { replica, bid, body: Body::Release });
            }
        }
    }

    /// Others vote from now on: who asks does so once more, and who is inside has what time it has, unless they
    /// renew it.
    pub(super) fn count_anew(&mut self, cx: &mut Cx<'_>) {
        for call in self.claims.keys().copied().collect::<Vec<_>>() {
            let Some(claim) = self.claims.get_mut(&call) else { continue };
            match claim.phase {
                Phase::Asking => {
                    self.give_back(cx, call);
                    self.bid(cx, call);
                }
                Phase::Inside { .. } => {
                    claim.ballots = Ballot::for_all(&*self.hosting, &claim.name);
                    if claim.renewed {
                        self.ask_all(cx, call);
                    }
                }
                Phase::BackingOff | Phase::Leaving { .. } => {}
            }
        }
    }

    pub(super) fn on_leave(&mut self, cx: &mut Cx<'_>, id: CallId, held: CallId) {
        match self.claims.get(&held).map(|claim| claim.phase) {
            Some(Phase::Inside { deadline } | Phase::Leaving { deadline })
                if cx.now() < deadline =>
            {
                self.give_back(cx, held);
                self.forget(cx, held);
                cx.reply(id, LockReply::Released);
            }
            Some(Phase::Inside { .. }) => {
                self.lose_lock(cx, held);
                cx.reply(id, LockReply::Refused(Refusal::UnknownCall));
            }
            _ => cx.reply(id, LockReply::Refused(Refusal::UnknownCall)),
        }
    }

    pub(super) fn on_cancel(&mut self, cx: &mut Cx<'_>, id: CallId, call: CallId) {
        if self.is_waiting(call) {
            self.give_back(cx, call);
            self.end(cx, call, LockReply::Cancelled);
        } else {
            cx.reply(id, LockReply::Refused(Refusal::UnknownCall));
        }
    }

    /// The right of whoever is inside is not renewed any more, or is again.
    pub(super) fn on_renew(&mut self, cx: &mut Cx<'_>, id: CallId, held: CallId, on: bool) {
        let inside = |claim: &&mut Claim| matches!(claim.phase, Phase::Inside { .. });
        let Some(claim) = self.claims.get_mut(&held).filter(inside) else {
            return cx.reply(id, LockReply::Refused(Refusal::UnknownCall));
        };
        claim.renewed = on;
        cx.reply(id, LockReply::Released);
    }

    /// Whoever is inside must leave, and may need a moment for that.
    pub(super) fn on_evict(&mut self, cx: &mut Cx<'_>, id: CallId, name: &Name) {
        let inside = |claim: &Claim| matches!(claim.phase, Phase::Inside { .. });
        let theirs = |(_, claim): &(&CallId, &Claim)| claim.name == *name && inside(claim);
        let Some(call) = self.claims.iter().find(theirs).map(|(call, _)| *call) else {
            return cx.reply(id, LockReply::Refused(Refusal::UnknownCall));
        };
        cx.reply(id, LockReply::Released);
        self.lose_lock(cx, call);
    }

    pub(super) fn on_patience(&mut self, cx: &mut Cx<'_>, call: CallId) {
        if self.is_waiting(call) {
            self.give_back(cx, call);
            self.end(cx, call, LockReply::TimedOut);
        }
    }

    pub(super) fn on_lapse(&mut self, cx: &mut Cx<'_>, call: CallId) {
        self.lose_lock(cx, call);
    }

    /// Tells the holder to stop. Its votes are left to expire, also those that come in late: it may need the
    /// time up to its deadline to stop, and a RELEASE would let the next one in before.
    fn lose_lock(&mut self, cx: &mut Cx<'_>, call: CallId) {
        let Some(claim) = self.claims.get_mut(&call) else { return };
        let Phase::Inside { deadline } = claim.phase else { return };
        claim.phase = Phase::Leaving { deadline };
        cx.cancel_timer(Timer::Lapse(call));
        cx.set_timer(Timer::Step(call), deadline);
        cx.reply(call, LockReply::Lost);
    }

    fn is_waiting(&self, call: CallId) -> bool {
        let waits = |c: &Claim| matches!(c.phase, Phase::Asking | Phase::BackingOff);
        self.claims.get(&call).is_some_and(waits)
    }

    fn end(&mut self, cx: &mut Cx<'_>, call: CallId, reply: LockReply) {
        if self.forget(cx, call) {
            cx.reply(call, reply);
        }
    }

    /// There is nothing left to do for a claim. False if that is known.
    fn forget(&mut self, cx: &mut Cx<'_>, call: CallId) -> bool {
        cx.cancel_timer(Timer::Step(call));
        cx.cancel_timer(Timer::Patience(call));
        cx.cancel_timer(Timer::Lapse(call));
        self.claims.remove(&call).is_some()
    }
}

impl Ballot {
    /// One for each replica of a name, none of which has been asked.
    fn for_all(hosting: &dyn Hosting, name: &Name) -> Vec<Self> {
        let ballot = |index| Self { index, asked: None, rejected: false, expiry: LocalTime::MIN };
        hosting.seats(name).into_iter().map(ballot).collect()
    }
}

impl Claim {
    /// Until when m votes count: the m-th latest expiry.
    fn deadline(&self, m: usize) -> LocalTime {
        let mut expiries: Vec<_> = self.ballots.iter().map(|b| b.expiry).collect();
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
