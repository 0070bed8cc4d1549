//! A replica on its way: what it takes along, and what its new host makes of it.

use sigmalock_core::{Context, Echo, Incarnation, Lease, LocalTime};

use super::host::Desk;
use super::message::{HANDED_WAITERS_MAX, HandOff, HandOffId, HandedVote, HandedWaiter};
use super::queue::Waiter;
use super::replica::{End, Owner, Replica};
use super::{DurableKey, Mutant, Sigma};

type Cx<'a, 'b> = &'a mut Context<'b, Sigma>;

impl Replica {
    /// As it goes to its next host. It is frozen: from here on this host must not use it.
    pub(super) fn hand_off(
        &mut self, desk: &mut Desk, cx: Cx<'_, '_>, id: HandOffId, to: Incarnation,
    ) -> HandOff {
        let now = cx.now();
        if self.owner.as_ref().is_some_and(|owner| owner.lease_end(desk) <= now) {
            self.vacate(End::Lapsed);
        }
        let owner = self.owner.as_ref().map(|owner| HandedVote {
            ticket: owner.ticket,
            ttl: owner.ttl,
            vote: owner.vote,
            sent: owner.echo.sent,
            sealed: owner.sealed,
        });
        HandOff {
            id,
            to,
            replica: self.id.clone(),
            sure: self.sure,
            owner,
            waiters: self.queue.handed().take(HANDED_WAITERS_MAX).collect(),
            tokens: self.tokens,
            abstains_for: desk.abstain_until.max(self.abstain_until).since(now),
        }
    }

    /// Somebody else may have hosted it, or may be doing so.
    pub(super) fn lose_certainty(&mut self) {
        if !self.stubborn {
            self.sure = false;
            self.tokens.doubt();
            if let Some(owner) = &mut self.owner {
                owner.stale = true;
            }
            self.dirty = true;
        }
    }

    /// Gone from the disk as well: a later life has no claim to it.
    pub(super) fn erase(&mut self, desk: &Desk, cx: Cx<'_, '_>) {
        if desk.config.durable {
            cx.persist(DurableKey::Replica(self.id.clone()), None);
            for ticket in self.queue.tickets() {
                cx.persist(DurableKey::Waiter { replica: self.id.clone(), ticket }, None);
            }
        }
    }

    /// Becomes what another host had. Its vote is good for a full lease from now: nobody knows how much of
    /// it is left. What was heard of a request there is a true echo here too: this clock reads now, and
    /// the message was sent before.
    pub(super) fn adopt(&mut self, desk: &mut Desk, cx: Cx<'_, '_>, handed: &HandOff) {
        let now = cx.now();
        self.tokens.adopt(handed.tokens, self.sure);
        if let Some(vote) = &handed.owner {
            self.adopt_vote(desk, now, vote, handed.sure);
        }
        if !self.sure {
            self.abstain_until = self.abstain_until.max(now + handed.abstains_for);
            self.sure = handed.sure;
        }
        self.adopt_waiters(desk, now, &handed.waiters);
        self.dirty = true;
        self.save(desk, cx);
    }

    fn adopt_vote(&mut self, desk: &Desk, now: LocalTime, handed: &HandedVote, sure: bool) {
        let &HandedVote { ticket, ttl, mut vote, sent, sealed } = handed;
        let lease_ttl =
            if desk.breaks(Mutant::AdoptsBriefly) { vote.lease.ttl / 4 } else { vote.lease.ttl };
        vote.lease = Lease { given: now.stamp(), ttl: lease_ttl };
        let own = self.owner.as_ref().filter(|own| own.ticket != ticket);
        let keeps_own = self.sure && own.is_some();
        if let Some(own) = own {
            // Two hosts have voted, for two requests. There is nothing to be done about that but not to
            // vote for a third before both votes have run out.
            let theirs = now + vote.lease.ttl;
            self.abstain_until = self.abstain_until.max(own.lease_end(desk).max(theirs));
        }
        if keeps_own || self.tombstones.contains(&ticket.request) {
            self.tokens.raise(vote.proposal);
            return;
        }
        self.vacate(End::Lapsed);
        self.queue.remove(&ticket);
        self.owner = Some(Owner {
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

    fn adopt_waiters(&mut self, desk: &Desk, now: LocalTime, waiters: &[HandedWaiter]) {
        let expires = now + desk.config.retry_max * 2 + desk.config.lease_max;
        for &HandedWaiter { ticket, ttl, sent } in waiters {
            let owns = self.owner.as_ref().is_some_and(|owner| owner.ticket == ticket);
            if owns || self.tombstones.contains(&ticket.request) {
                continue;
            }
            let echo = Echo { sent, heard: now.stamp() };
            let waiter = Waiter { ticket, ttl, echo, expires };
            self.queue.insert(waiter, desk.config.limits.queue_len_max);
        }
    }

    /// What comes back of a replica whose new host went away without a word.
    pub(super) fn come_back(&mut self, desk: &Desk, cx: Cx<'_, '_>, handed: &HandOff) {
        let now = cx.now();
        self.tokens.adopt(handed.tokens, false);
        if let Some(owner) = &handed.owner {
            self.tokens.raise(owner.vote.proposal);
        }
        self.tokens.doubt();
        let abstains_for = handed.abstains_for.max(desk.config.lease_max);
        (self.sure, self.abstain_until) = (false, now + abstains_for);
        self.adopt_waiters(desk, now, &handed.waiters);
        self.dirty = true;
        self.save(desk, cx);
    }
}
