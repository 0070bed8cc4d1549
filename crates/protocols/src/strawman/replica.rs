//! The replica's part: lend the vote to one bid at a time.

use sigmalock_core::{Echo, Lease, LocalTime, ReplicaId, Span};

use super::{
    Answer, Bid, Body, CLOSED_MAX, Cx, Durable, DurableKey, Message, Note, Owner, REPLICAS_MAX,
    Replica, Strawman, Timer, Verdict,
};

impl Strawman {
    /// A first REQUEST, a copy of it and a renewal are all the same: if the vote is free or already
    /// this bid's, it is lent from now on.
    pub(super) fn on_request(
        &mut self, cx: &mut Cx<'_>, replica: ReplicaId, bid: Bid, ttl: Span, sent: LocalTime,
    ) {
        if ttl > self.config.lease_max {
            return cx.note(Note::Impossible);
        }
        if self.replicas.len() >= REPLICAS_MAX && !self.replicas.contains_key(&replica) {
            return cx.note(Note::Full);
        }
        let echo = Echo { sent, heard: cx.now().stamp() };
        let verdict = match self.owner_of(cx.now(), &replica) {
            Some(owner) if owner.bid != bid => Verdict::Rejected { owner: Some(owner.bid) },
            None if self.is_closed(&replica, bid) => return cx.note(Note::StaleRequest),
            _ if !self.hosting.may_vote(cx.now()) => {
                cx.note(Note::Abstained);
                Verdict::Rejected { owner: None }
            }
            None if cx.now() < self.abstains_until => {
                cx.note(Note::Abstained);
                Verdict::Rejected { owner: None }
            }
            before => {
                let owner = Owner { bid, given: cx.now(), ttl };
                self.replicas.entry(replica.clone()).or_default().owner = Some(owner);
                if self.config.durable && before.is_none() {
                    let value = Some(Durable::Vote(bid, ttl));
                    cx.persist(DurableKey::Vote(replica.clone()), value);
                }
                self.sweep_later(cx);
                Verdict::Vote(Lease { given: cx.now().stamp(), ttl })
            }
        };
        let body = Body::Response(Answer { echo, verdict });
        cx.send(bid.request.client, Message { replica, bid, body });
    }

    pub(super) fn on_release(&mut self, cx: &mut Cx<'_>, replica: ReplicaId, bid: Bid) {
        if let Some(state) = self.replicas.get_mut(&replica)
            && state.owner.is_some_and(|owner| owner.bid == bid)
        {
            state.owner = None;
            if self.config.durable {
                cx.persist(DurableKey::Vote(replica.clone()), None);
            }
        }
        if self.shipped() {
            self.close(cx, replica, bid);
        }
    }

    /// Remembers that a bid is over, so that a REQUEST that was overtaken by its own RELEASE, or a late
    /// copy of one, does not make an owner of somebody who has left.
    fn close(&mut self, cx: &mut Cx<'_>, replica: ReplicaId, bid: Bid) {
        let full = self.replicas.len() >= REPLICAS_MAX && !self.replicas.contains_key(&replica);
        let state = (!full).then(|| self.replicas.entry(replica).or_default());
        match state {
            Some(state) if state.closed.len() < CLOSED_MAX => {
                let until = cx.now() + self.config.flight_max;
                let entry = state.closed.entry(bid.request).or_insert((bid.attempt, until));
                *entry = (entry.0.max(bid.attempt), until);
            }
            _ => cx.note(Note::Full),
        }
        self.sweep_later(cx);
    }

    fn is_closed(&self, replica: &ReplicaId, bid: Bid) -> bool {
        let closed = self.replicas.get(replica).and_then(|state| state.closed.get(&bid.request));
        closed.is_some_and(|(attempt, _)| bid.attempt <= *attempt)
    }

    pub(super) fn owner_of(&self, now: LocalTime, replica: &ReplicaId) -> Option<Owner> {
        self.replicas.get(replica)?.owner.filter(|owner| now < owner.until())
    }

    pub(super) fn sweep_later(&mut self, cx: &mut Cx<'_>) {
        if !self.sweeping {
            self.sweeping = true;
            cx.set_timer(Timer::Sweep, cx.now() + self.config.lease_max);
        }
    }

    /// Forgets expired owners and tombstones, then replicas with nothing left to remember.
    pub(super) fn on_sweep(&mut self, cx: &mut Cx<'_>) {
        let (now, durable) = (cx.now(), self.config.durable);
        self.sweeping = false;
        self.replicas.retain(|replica, state| {
            if state.owner.is_some_and(|owner| owner.until() <= now) {
                state.owner = None;
                if durable {
                    cx.persist(DurableKey::Vote(replica.clone()), None);
                }
            }
            state.closed.retain(|_, (_, until)| *until > now);
            !state.is_idle()
        });
        if self.abstains_until > LocalTime::MIN && now >= self.abstains_until {
            self.abstains_until = LocalTime::MIN;
            if durable {
                cx.persist(DurableKey::Abstaining, None);
            }
        }
        if !self.replicas.is_empty() || self.abstains_until > LocalTime::MIN {
            self.sweep_later(cx);
        }
    }
}

impl Owner {
    pub(super) fn until(&self) -> LocalTime {
        self.given + self.ttl
    }
}

impl Replica {
    fn is_idle(&self) -> bool {
        self.owner.is_none() && self.closed.is_empty()
    }
}
