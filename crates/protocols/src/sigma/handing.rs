//! A replica on its way: what it takes along, and what its new host makes of it.

use alloc::vec::Vec;

use sigmalock_core::{Echo, Incarnation, Lease, LocalTime, Mode, Span};

use super::host::HostState;
use super::message::{
    HANDED_WAITERS_MAX, HandOff, HandOffId, HandedVote, HandedWaiter, OWNERS_MAX, Vote,
};
use super::owners::Owner;
use super::queue::Waiter;
use super::replica::{End, Replica};
use super::tokens::Tokens;
use super::{Cx, DurableKey, Mutant};
use crate::parts::Rules;

/// A vote that is out, as another host hears of it.
pub(super) fn handed(owner: &Owner) -> HandedVote {
    HandedVote {
        ticket: owner.ticket,
        ttl: owner.ttl,
        vote: owner.vote,
        sent: owner.echo.sent,
        sealed: owner.sealed,
    }
}

impl Replica {
    /// As it goes to its next host. It is frozen: from here on this host must not use it.
    pub(super) fn hand_off(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, id: HandOffId,
        to: Incarnation,
    ) -> HandOff {
        let now = cx.now();
        while let Some(owner) = self.owners.overdue(state, now) {
            self.vacate(state, owner.ticket, End::Lapsed);
        }
        HandOff {
            id,
            to,
            replica: self.id.clone(),
            sure: self.sure,
            owners: self.owners.iter().map(handed).collect(),
            waiters: self.queue.handed().take(HANDED_WAITERS_MAX).collect(),
            tokens: self.tokens.clone(),
            abstains_for: state.abstain_until.max(self.abstain_until).since(now),
        }
    }

    /// Somebody else may have hosted it, or may be doing so.
    pub(super) fn lose_certainty(&mut self) {
        if !self.stubborn {
            self.sure = false;
            self.tokens.doubt();
            self.owners.iter_mut().for_each(|owner| owner.stale = true);
            self.dirty = true;
        }
    }

    /// Gone from the disk as well: a later life has no claim to it.
    pub(super) fn erase(&mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>) {
        if state.config.durable {
            cx.persist(DurableKey::Replica(self.id.clone()), None);
            for ticket in self.queue.tickets() {
                cx.persist(DurableKey::Waiter { replica: self.id.clone(), ticket }, None);
            }
        }
    }

    /// Becomes what another host had. Its votes are good for a full lease from now: nobody knows how much
    /// of them is left. What was heard of a request there is a true echo here too: this clock reads now, and
    /// the message was sent before.
    pub(super) fn adopt(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, handed: &HandOff,
    ) {
        let now = cx.now();
        self.tokens.adopt(&handed.tokens, self.sure);
        self.adopt_votes(state, now, &handed.owners, handed.sure);
        if !self.sure {
            self.abstain_until = self.abstain_until.max(now + handed.abstains_for);
            self.sure = handed.sure;
        }
        self.adopt_waiters(state, now, &handed.waiters);
        self.dirty = true;
        self.save(state, cx);
    }

    fn adopt_votes(
        &mut self, state: &HostState<impl Rules>, now: LocalTime, handed: &[HandedVote], sure: bool,
    ) {
        let clashes = |own: &Owner| {
            let with = |theirs: &HandedVote| {
                theirs.ticket != own.ticket && !theirs.ticket.mode.shares_with(own.ticket.mode)
            };
            handed.iter().any(with)
        };
        if self.owners.iter().any(clashes) {
            // Two hosts have voted, for requests that do not go together. There is nothing to be done
            // about that but not to vote for another before all these votes have run out.
            let own = self.owners.iter().map(|own| own.lease_end(state));
            let theirs = handed.iter().map(|theirs| now + theirs.vote.lease.ttl);
            let until = own.chain(theirs).max().unwrap_or(now);
            self.abstain_until = self.abstain_until.max(until);
            if self.sure {
                for theirs in handed {
                    self.tokens.raise(state, theirs.vote.proposal, theirs.ticket.mode);
                }
                return;
            }
            while let Some(own) = self.owners.eldest() {
                self.vacate(state, own.ticket, End::Lapsed);
            }
        }
        for theirs in handed {
            self.adopt_vote(state, now, theirs, sure);
        }
    }

    fn adopt_vote(
        &mut self, state: &HostState<impl Rules>, now: LocalTime, handed: &HandedVote, sure: bool,
    ) {
        let &HandedVote { ticket, ttl, mut vote, sent, sealed } = handed;
        let lease_ttl =
            if state.breaks(Mutant::AdoptsBriefly) { vote.lease.ttl / 4 } else { vote.lease.ttl };
        vote.lease = Lease { given: now.stamp(), ttl: lease_ttl };
        if self.tombstones.contains(&ticket.request) {
            return self.tokens.raise(state, vote.proposal, ticket.mode);
        }
        self.vacate(state, ticket, End::Lapsed);
        self.queue.remove(&ticket);
        self.owners.insert(Owner {
            ticket,
            ttl,
            vote,
            echo: Echo { sent, heard: now.stamp() },
            since: now,
            sealed,
            recalled_at: None,
            stale: !sure,
        });
    }

    /// Becomes what a newcomer's replica must be, if these requests may have won without it: it is theirs
    /// for a full lease, as they are told; or, if they do not go together, nobody's.
    pub(super) fn take_on(
        &mut self, state: &mut HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>,
        winners: &[HandedVote], tokens: &Tokens, abstains_for: Span,
    ) {
        let now = cx.now();
        self.tokens.adopt(tokens, true);
        self.tokens.doubt();
        self.touch(state, cx);
        self.dirty = true;
        let over = |winner: &&HandedVote| !self.tombstones.contains(&winner.ticket.request);
        let winners: Vec<HandedVote> = winners.iter().filter(over).copied().collect();
        let together = Mode::all_share(winners.iter().map(|winner| winner.ticket.mode));
        let longest = winners.iter().map(|winner| winner.ttl).max();
        let apart = longest.filter(|_| !together || winners.len() > OWNERS_MAX);
        let between = apart.filter(|_| !state.breaks(Mutant::VotesBetweenTwo));
        let abstains_for = abstains_for.max(between.unwrap_or(Span::ZERO));
        self.abstain_until = self.abstain_until.max(now + abstains_for);
        for winner in &winners {
            self.tokens.raise(state, winner.vote.proposal, winner.ticket.mode);
        }
        if apart.is_none() {
            for winner in &winners {
                let winner = renumbered(state, winner);
                self.adopt_vote(state, now, &winner, false);
            }
        }
        self.save(state, cx);
        self.tell_owners(state, cx);
    }

    fn adopt_waiters(
        &mut self, state: &HostState<impl Rules>, now: LocalTime, waiters: &[HandedWaiter],
    ) {
        let expires = now + state.config.retry_max * 2 + state.config.lease_max;
        for &HandedWaiter { ticket, ttl, sent } in waiters {
            if self.owners.get(&ticket).is_some() || self.tombstones.contains(&ticket.request) {
                continue;
            }
            let echo = Echo { sent, heard: now.stamp() };
            let waiter = Waiter { ticket, ttl, echo, expires };
            self.queue.insert(waiter, state.config.limits.queue_len_max);
        }
    }

    /// What comes back of a replica whose new host went away without a word.
    pub(super) fn come_back(
        &mut self, state: &HostState<impl Rules>, cx: Cx<'_, '_, impl Rules>, handed: &HandOff,
    ) {
        let now = cx.now();
        self.tokens.adopt(&handed.tokens, false);
        for owner in &handed.owners {
            self.tokens.raise(state, owner.vote.proposal, owner.ticket.mode);
        }
        self.tokens.doubt();
        let abstains_for = handed.abstains_for.max(state.config.lease_max);
        (self.sure, self.abstain_until) = (false, now + abstains_for);
        self.adopt_waiters(state, now, &handed.waiters);
        self.dirty = true;
        self.save(state, cx);
    }
}

/// A vote that is this host's own, though it was another's first.
fn renumbered(state: &mut HostState<impl Rules>, handed: &HandedVote) -> HandedVote {
    let lease = Lease { given: handed.vote.lease.given, ttl: handed.ttl };
    let vote = Vote { grant: state.next_grant(), lease, proposal: handed.vote.proposal };
    HandedVote { vote, sealed: true, ..*handed }
}
