//! Who waits for a replica's vote.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sigmalock_core::{Echo, LocalTime, PeerId, Span};

use super::message::{HandedWaiter, Ticket};

/// The waiters in ticket order, so that a place in the queue is an index.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
    /// One of them that goes before all others: it is inside already, and needs the vote to stay there.
    first: Option<Ticket>,
    /// Who has come (with the lease it wants) and gone since the disk was last told.
    unsaved: Vec<(Ticket, Option<Span>)>,
}

/// One of them.
#[derive(Debug, Clone)]
pub(super) struct Waiter {
    pub(super) ticket: Ticket,
    pub(super) ttl: Span,
    pub(super) echo: Echo,
    /// Not heard from until then, it is taken for dead.
    pub(super) expires: LocalTime,
}

impl Queue {
    pub(super) fn is_empty(&self) -> bool {
        self.waiters.is_empty()
    }
    pub(super) fn len(&self) -> usize {
        self.waiters.len()
    }
    pub(super) fn first(&self) -> Option<&Waiter> {
        self.waiters.get(self.next(false)?)
    }
    /// This one is inside, and goes first.
    pub(super) fn prefer(&mut self, ticket: Ticket) {
        self.first = Some(ticket);
    }
    fn next(&self, youngest: bool) -> Option<usize> {
        let preferred = self.first.and_then(|first| self.place_of(&first).ok());
        preferred.or(if youngest { self.waiters.len().checked_sub(1) } else { Some(0) })
    }
    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.waiters.iter().map(|waiter| waiter.ticket)
    }
    /// As they go to another host.
    pub(super) fn handed(&self) -> impl Iterator<Item = HandedWaiter> {
        let handed = |w: &Waiter| HandedWaiter { ticket: w.ticket, ttl: w.ttl, sent: w.echo.sent };
        self.waiters.iter().map(handed)
    }

    /// Queues a request, or takes note that it asked again. False if there is no room.
    pub(super) fn insert(&mut self, waiter: Waiter, len_max: usize) -> bool {
        match self.place_of(&waiter.ticket) {
            Ok(place) => {
                let known = &mut self.waiters[place];
                known.echo = known.echo.newer(waiter.echo);
            }
            Err(_) if self.waiters.len() >= len_max => return false,
            Err(place) => {
                self.unsaved.push((waiter.ticket, Some(waiter.ttl)));
                self.waiters.insert(place, waiter);
            }
        }
        true
    }

    /// A waiter and how many are before it.
    pub(super) fn find_mut(&mut self, ticket: &Ticket) -> Option<(usize, &mut Waiter)> {
        let place = self.place_of(ticket).ok()?;
        Some((place, &mut self.waiters[place]))
    }

    pub(super) fn remove(&mut self, ticket: &Ticket) {
        if let Ok(place) = self.place_of(ticket) {
            self.waiters.remove(place);
            self.unsaved.push((*ticket, None));
        }
    }

    /// Drops those of a client. Whether there were any.
    pub(super) fn dismiss(&mut self, client: PeerId) -> bool {
        let Self { waiters, unsaved, .. } = self;
        let before = waiters.len();
        waiters.retain(|waiter| {
            let stays = waiter.ticket.request.client != client;
            if !stays {
                unsaved.push((waiter.ticket, None));
            }
            stays
        });
        waiters.len() < before
    }

    /// The oldest, or (against the rules) the youngest.
    pub(super) fn peek(&self, youngest: bool) -> Option<&Waiter> {
        self.waiters.get(self.next(youngest)?)
    }

    /// Puts the first for whom this holds before all others, which is against the rules.
    pub(super) fn bring_forward(&mut self, may: impl Fn(&Waiter) -> bool) {
        if let Some(place) = self.waiters.iter().position(may)
            && let Some(waiter) = self.waiters.remove(place)
        {
            self.waiters.push_front(waiter);
        }
    }

    /// Takes the oldest, or (against the rules) the youngest.
    pub(super) fn pop(&mut self, youngest: bool) -> Option<Waiter> {
        let next = self.waiters.remove(self.next(youngest)?);
        self.unsaved.extend(next.as_ref().map(|waiter| (waiter.ticket, None)));
        next
    }

    /// Drops those not heard from for too long.
    pub(super) fn prune(&mut self, now: LocalTime) {
        let Self { waiters, unsaved, .. } = self;
        waiters.retain(|waiter| {
            let stays = waiter.expires > now;
            if !stays {
                unsaved.push((waiter.ticket, None));
            }
            stays
        });
    }

    /// What the disk has yet to be told: who has come and who has gone, in that order.
    pub(super) fn take_unsaved(&mut self) -> impl Iterator<Item = (Ticket, Option<Span>)> {
        self.unsaved.drain(..)
    }

    fn place_of(&self, ticket: &Ticket) -> Result<usize, usize> {
        self.waiters.binary_search_by(|waiter| waiter.ticket.cmp(ticket))
    }
}
