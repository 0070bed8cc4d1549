//! One replica: who has its vote, who waits for it, and which token comes next.

use alloc::vec::Vec;

use sigmalock_core::report::{OWNERS_SHOWN_MAX, WAITERS_SHOWN_MAX};
use sigmalock_core::{
    Echo, Lease, LocalTime, Mode, OwnerReport, PeerId, ReplicaId, ReplicaReport, RequestId, Span,
    Token,
};

use super::host::HostState;
use super::message::{Answer, Ask, Claim, GrantId, Spent, Ticket, Used, Vote};
use super::owners::{Owner, Owners};
use super::queue::{Queue, Waiter};
use super::tokens::Tokens;
use super::{Cx, Mutant, Note, Timer};
use crate::parts::Rules;
use crate::parts::{Alarm, Hosting, Tombstones};

/// A replica.
#[derive(Debug, Clone, Hash)]
pub(super) struct Replica {
    pub(super) id: ReplicaId,
    pub(super) owners: Owners,
    pub(super) queue: Queue,
    pub(super) tombstones: Tombstones<RequestId>,
    pub(super) tokens: Tokens,
    /// The paper's T_CS: how long a vote stays with one owner, smoothed.
    pub(super) service: Span,
    used_at: LocalTime,
    pub(super) alarm: Alarm,
    /// Until then it does not vote, whatever else its host may remember.
    pub(super) abstain_until: LocalTime,
    /// Whether it is certain that no other host has votes out for it. Where hosting moves, that has to
    /// be found out first.
    pub(super) sure: bool,
    /// Whether this peer hosts it, as of which view of the swarm.
    mine: (bool, u64),
    /// It goes on whoever hosts it: some mutants do.
    pub(super) stubborn: bool,
    /// Whether what is on disk is out of date.
    pub(super) dirty: bool,
}

/// How the time of an owner ends.
#[derive(Debug, Clone, Copy)]
pub(super) enum End {
    /// Given back: what was proposed was not shown, or the token that was shown is known.
    Returned,
    /// Not given back in time: whatever was proposed may have been shown.
    Lapsed,
}

impl Replica {
    pub(super) fn new(id: ReplicaId, state: &HostState<impl Rules>, now: LocalTime) -> Self {
        Self {
            id,
            owners: Owners::default(),
            queue: Queue::default(),
            tombstones: Tombstones::new(state.config.limits.tombstones_max),
            tokens: Tokens::forgotten(state.floor),
            service: state.config.service_default,
            used_at: now,
            alarm: Alarm::new(),
            abstain_until: LocalTime::MIN,
            sure: !state.moves || state.breaks(Mutant::TakesOverBlindly),
            mine: (false, 0),
            stubborn: false,
            dirty: false,
        }
    }

    /// Whether it may say that a vote is good, or good for longer: nobody else hosts it, this peer is not
    /// cut off, and no former host's word is missing.
    pub(super) fn may_confirm(
        &mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> bool {
        if !state.moves || self.stubborn {
            return true;
        }
        if !cx.may_vote() || !self.is_mine(state, cx) {
            return false;
        }
        self.sure |= self.inherited_until(state, cx) <= cx.now();
        if self.sure {
            self.freshen_proposal(state, cx);
        }
        self.sure
    }

    /// Whether this peer hosts it. Asked with every message, so the answer is kept while the view lasts.
    pub(super) fn is_mine(
        &mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> bool {
        if self.mine.1 != state.views && state.moves {
            self.mine = (cx.hosting.host_of(&self.id) == Some(state.me), state.views);
        }
        self.mine.0
    }

    /// What was proposed before another host may have voted is proposed anew, before the vote is good for
    /// any longer.
    fn freshen_proposal(&mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        for owner in self.owners.iter_mut().filter(|owner| owner.stale) {
            let proposal = self.tokens.propose(state, cx, owner.ticket.mode);
            (owner.vote.proposal, owner.stale) = (owner.vote.proposal.max(proposal), false);
            self.dirty = true;
        }
    }

    /// Until when another host may have votes out for it.
    fn inherited_until(
        &self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> LocalTime {
        if self.sure {
            return LocalTime::MIN;
        }
        cx.hosting.inherited_until(&self.id, &|peer| state.neighbours.handed_over_by(peer))
    }

    /// When it begins to vote, as far as that is a matter of time.
    pub(super) fn voting_at(
        &self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> LocalTime {
        state.abstain_until.max(self.abstain_until).max(self.inherited_until(state, cx))
    }

    /// REQUEST.
    pub(super) fn on_request(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ask: &Ask,
    ) {
        self.settle(state, cx);
        self.answer(state, cx, ask);
    }

    /// YIELD: a RELEASE of one grant and a REQUEST, in one.
    pub(super) fn on_yield(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ask: &Ask,
        grant: GrantId,
    ) {
        self.settle(state, cx);
        self.take_back(state, cx, ask.ticket, grant);
        self.answer(state, cx, ask);
    }

    fn take_back(
        &mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ticket: Ticket,
        grant: GrantId,
    ) {
        let any = state.breaks(Mutant::AcceptsAnyYield);
        if self.owners.get(&ticket).is_some_and(|owner| owner.vote.grant == grant || any) {
            cx.note(Note::Yielded);
            self.vacate(state, ticket, End::Returned);
        }
    }

    /// WITHDRAW: it goes on without a request, which may come again.
    pub(super) fn on_withdraw(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ticket: Ticket,
        grant: Option<GrantId>,
    ) {
        if let Some(grant) = grant {
            self.take_back(state, cx, ticket, grant);
        }
        self.queue.remove(&ticket);
        self.settle(state, cx);
    }

    /// SEAL: writes a token down, for a present owner only and never below what was proposed.
    pub(super) fn on_seal(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ask: &Ask,
        grant: GrantId, token: Token,
    ) {
        self.settle(state, cx);
        let echo = Echo { sent: ask.sent, heard: cx.now().stamp() };
        let confirms = self.may_confirm(state, cx);
        if let Some(owner) = self.owners.get_mut(&ask.ticket)
            && confirms
            && owner.vote.grant == grant
            && owner.vote.proposal <= token
        {
            owner.vote.proposal = token;
            owner.sealed = true;
            owner.renew_by(echo, owner.ttl);
            self.tokens.proposal_sealed(state, token, ask.ticket.mode);
            self.dirty = true;
        }
        self.answer(state, cx, ask);
    }

    /// RELEASE: ends a request, wherever it stands.
    pub(super) fn on_release(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, ticket: Ticket,
        spent: Spent,
    ) {
        let now = cx.now();
        if !state.breaks(Mutant::ForgetsTombstones) {
            self.tombstones.insert(ticket.request, now, now + state.config.flight_max);
        }
        if let Spent::Token(used) = spent {
            self.learn(state, ticket, used);
        }
        match self.owners.get(&ticket) {
            Some(owner) => {
                let held = now.since(owner.since);
                self.service = (self.service * 7 + held) / 8;
                let end = match spent {
                    Spent::Nothing | Spent::Token(_) => End::Returned,
                    Spent::Unknown => End::Lapsed,
                };
                self.vacate(state, ticket, end);
                if state.breaks(Mutant::FreesAllReaders) {
                    self.owners.clear();
                }
            }
            None => {
                self.queue.remove(&ticket);
                self.propose_anew(state, cx, ticket.mode);
            }
        }
        if state.breaks(Mutant::SitsOnVotes) {
            return self.save(state, cx);
        }
        self.settle(state, cx);
    }

    /// One claim of a RENEW: whether the vote is the claimant's for another full lease, if that can be
    /// said.
    pub(super) fn on_claim(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, claim: &Claim,
        echo: Echo,
    ) -> Option<bool> {
        self.settle(state, cx);
        self.learn(state, claim.ticket, claim.used);
        if !self.may_confirm(state, cx) {
            self.save(state, cx);
            return None;
        }
        let owner = self.owners.get_mut(&claim.ticket);
        let good = owner.filter(|owner| owner.vote.grant == claim.grant).map(|owner| {
            owner.renew_by(echo, owner.ttl);
        });
        self.save(state, cx);
        Some(good.is_some())
    }

    /// The replica's timer. False if the replica has nothing left to remember.
    pub(super) fn on_timer(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) -> bool {
        let now = cx.now();
        self.alarm.fired();
        self.tombstones.prune(now);
        self.queue.prune(now);
        self.settle(state, cx);
        let idle_at = self.used_at + state.config.limits.idle_after;
        let empty = self.owners.is_empty() && self.queue.is_empty() && self.tombstones.is_empty();
        if empty && idle_at <= now && state.abstain_until.max(self.abstain_until) <= now {
            return false;
        }
        let next = if idle_at > now { idle_at } else { now + state.config.limits.idle_after };
        self.wake_at(cx, next.min(self.owners.lease_end(state)).min(state.voting_at(now)));
        self.wake_to_vote(state, cx);
        true
    }

    /// Whether somebody waits who could have the vote, if it was there to give.
    fn is_wanted(&self, state: &HostState<impl Rules>) -> bool {
        self.queue.next(state, &self.owners).is_some()
    }

    /// Somebody waits for it to vote: it wakes when it may.
    pub(super) fn wake_to_vote(
        &mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) {
        if state.moves && self.is_wanted(state) {
            let at = self.voting_at(state, cx);
            if at > cx.now() {
                self.wake_at(cx, at);
            }
        }
    }

    /// Something has changed that may let it vote.
    pub(super) fn reconsider(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) {
        self.settle(state, cx);
        self.wake_to_vote(state, cx);
    }

    /// A client cannot be reached: its requests do not wait, or each would keep the others waiting for a
    /// claim window. When it is back it asks again, and its ticket has its old place.
    pub(super) fn dismiss(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, client: PeerId,
    ) {
        if !state.breaks(Mutant::WaitsForTheUnreachable) && self.queue.dismiss(client) {
            self.save(state, cx);
        }
    }

    /// What it leaves behind when it is forgotten.
    pub(super) fn highest_token(&self) -> Token {
        self.tokens.highest()
    }

    pub(super) fn report(
        &self, state: &HostState<impl Rules>, hosting: &dyn Hosting, now: LocalTime,
    ) -> ReplicaReport {
        let handed_over = |peer| state.neighbours.handed_over_by(peer);
        let inherited_until = match self.sure {
            true => LocalTime::MIN,
            false => hosting.inherited_until(&self.id, &handed_over),
        };
        let voting_at = state.abstain_until.max(self.abstain_until).max(inherited_until);
        let owner = |owner: &Owner| OwnerReport {
            request: owner.ticket.request,
            mode: owner.ticket.mode,
            held_for: now.since(owner.since),
            ends_in: owner.lease_end(state).since(now),
        };
        ReplicaReport {
            index: self.id.index,
            owners: self.owners.iter().take(OWNERS_SHOWN_MAX).map(owner).collect(),
            waiters: self.queue.shown().take(WAITERS_SHOWN_MAX).map(|t| t.request).collect(),
            waiting: self.queue.shown().count() as u32,
            token: self.tokens.highest(),
            abstains_for: voting_at.since(now),
        }
    }

    pub(super) fn touch(&mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        let now = cx.now();
        self.used_at = now;
        self.wake_at(cx, state.voting_at(now).min(now + state.config.limits.idle_after));
    }

    /// Ends leases that are over, and gives a vote that is free to the next in the queue.
    pub(super) fn settle(&mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        while let Some(owner) = self.owners.overdue(state, cx.now()) {
            let claimed = owner.vote.lease.ttl == owner.ttl;
            cx.note(if claimed { Note::LeaseLapsed } else { Note::ClaimLapsed });
            self.vacate(state, owner.ticket, End::Lapsed);
        }
        self.pass_on(state, cx, None);
        self.save(state, cx);
    }

    /// An owner's time ends.
    pub(super) fn vacate(&mut self, state: &HostState<impl Rules>, ticket: Ticket, end: End) {
        let Some(owner) = self.owners.take(&ticket) else { return };
        self.dirty = true;
        if owner.stale {
            self.tokens.raise(state, owner.vote.proposal, ticket.mode);
        } else if owner.sealed || matches!(end, End::Lapsed) {
            self.tokens.proposal_spent(state, owner.vote.proposal, ticket.mode);
        }
    }

    /// Gives the vote to the first in the queue, and to those behind it who may have it too, if it is
    /// there to give. Whoever has to wait makes all behind it wait: a writer is passed by nobody.
    /// `asker` is about to be answered anyway, so it needs no message of its own and, being awake, no
    /// claim window.
    pub(super) fn pass_on(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
        asker: Option<Ticket>,
    ) {
        let now = cx.now();
        let abstain_until = state.abstain_until.max(self.abstain_until);
        if abstain_until > now || self.next(state).is_none() || !self.may_confirm(state, cx) {
            return;
        }
        while let Some(place) = self.next(state)
            && let Some(next) = self.queue.take(place)
        {
            if next.expires <= now && asker != Some(next.ticket) {
                cx.note(Note::WaiterExpired);
                continue;
            }
            self.give(state, cx, &next, asker == Some(next.ticket));
        }
    }

    /// The place of the next in the queue that may have the vote.
    fn next(&mut self, state: &HostState<impl Rules>) -> Option<usize> {
        if state.breaks(Mutant::LetsReadersPass) {
            self.queue.bring_forward(|waiter| self.owners.admit(state, waiter.ticket.mode));
        }
        self.queue.next(state, &self.owners)
    }

    fn give(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, next: &Waiter,
        asked: bool,
    ) {
        let now = cx.now();
        state.vouch(cx);
        let ttl = if asked { next.ttl } else { state.config.claim_window.min(next.ttl) };
        let vote = Vote {
            grant: state.next_grant(),
            lease: Lease { given: now.stamp(), ttl },
            proposal: self.tokens.propose(state, cx, next.ticket.mode),
        };
        self.owners.insert(Owner {
            ticket: next.ticket,
            ttl: next.ttl,
            vote,
            echo: next.echo,
            since: now,
            sealed: false,
            recalled_at: None,
            stale: false,
        });
        self.dirty = true;
        self.wake_at(cx, now + ttl);
        if !asked {
            self.save(state, cx);
            self.send(state, cx, next.ticket, next.echo, Answer::Yours { vote, asked });
        }
    }

    /// The token proposed to a present owner has meanwhile been shown by somebody that was inside before it:
    /// proposes a higher one, and says so, which saves the owner a SEAL.
    fn propose_anew(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, after: Mode,
    ) {
        let mut told = Vec::new();
        for owner in self.owners.iter_mut().filter(|o| !o.ticket.mode.shares_with(after)) {
            let above = self.tokens.least(state, owner.ticket.mode);
            if owner.vote.proposal < above {
                owner.vote.proposal = above;
                told.push((owner.ticket, owner.echo, owner.vote));
            }
        }
        self.dirty |= !told.is_empty();
        for (ticket, echo, vote) in told {
            self.save(state, cx);
            self.send(state, cx, ticket, echo, Answer::Yours { vote, asked: false });
        }
    }

    /// A request has shown a token. Where hosting moves, that its winner knew this life of the host says
    /// nothing: the replica may have been elsewhere meanwhile. Nor does it with permits: another one may be out
    /// with a higher token, given before that life. That it used this replica's own proposal, or a higher
    /// token, does.
    fn learn(&mut self, state: &HostState<impl Rules>, ticket: Ticket, used: Used) {
        let before = self.tokens.clone();
        let slot = ticket.mode.permits().is_some() && !state.breaks(Mutant::TrustsOtherSlots);
        if state.moves || slot {
            self.tokens.learn(state, Used { knew: None, ..used }, ticket.mode);
            let fresh = self.owners.get(&ticket).filter(|owner| !owner.stale);
            if fresh.is_some_and(|owner| owner.vote.proposal <= used.token) {
                self.tokens.proposal_sealed(state, used.token, ticket.mode);
            }
        } else {
            self.tokens.learn(state, used, ticket.mode);
        }
        self.dirty |= self.tokens != before;
    }

    /// A client can be reached whose vote was restored from disk: it may have given it back meanwhile, and
    /// will say so.
    pub(super) fn remind(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, client: PeerId,
    ) {
        let restored = |owner: &&Owner| {
            owner.echo.sent == LocalTime::MIN && owner.ticket.request.client == client
        };
        let told = self.owners.iter().filter(restored).map(|o| (o.ticket, o.echo, o.vote));
        for (ticket, echo, vote) in told.collect::<Vec<_>>() {
            self.send(state, cx, ticket, echo, Answer::Yours { vote, asked: false });
        }
    }

    /// Tells all who have the vote that they do.
    pub(super) fn tell_owners(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
    ) {
        let told: Vec<_> = self.owners.iter().map(|o| (o.ticket, o.echo, o.vote)).collect();
        for (ticket, echo, vote) in told {
            self.send(state, cx, ticket, echo, Answer::Yours { vote, asked: false });
        }
    }

    fn wake_at(&mut self, cx: Cx<'_, '_, impl Rules>, at: LocalTime) {
        if self.alarm.must_set(at) {
            cx.set_timer(Timer::Replica(self.id.clone()), at);
        }
    }
}
