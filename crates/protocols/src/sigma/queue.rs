//! Who waits for a replica's vote.

use alloc::collections::VecDeque;

use sigmalock_core::{Echo, LocalTime, Span};

use super::message::{Ask, Ticket};

/// The waiters in ticket order, so that a place in the queue is an index.
#[derive(Debug, Clone, Default)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
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
    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.waiters.iter().map(|waiter| waiter.ticket)
    }

    /// Queues a request, or takes note that it asked again. False if there is no room.
    pub(super) fn insert(&mut self, ask: &Ask, echo: Echo, len_max: usize) -> bool {
        match self.place_of(&ask.ticket) {
            Ok(place) => {
                let waiter = &mut self.waiters[place];
                waiter.echo = waiter.echo.newer(echo);
            }
            Err(_) if self.waiters.len() >= len_max => return false,
            Err(place) => {
                let (ticket, ttl) = (ask.ticket, ask.ttl);
                // The answer sets the expiry, once the place in the queue is known.
                let expires = LocalTime::NEVER;
                self.waiters.insert(place, Waiter { ticket, ttl, echo, expires });
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
        }
    }

    /// Takes the oldest, or (against the rules) the youngest.
    pub(super) fn pop(&mut self, youngest: bool) -> Option<Waiter> {
        if youngest { self.waiters.pop_back() } else { self.waiters.pop_front() }
    }

    /// Drops those not heard from for too long.
    pub(super) fn prune(&mut self, now: LocalTime) {
        self.waiters.retain(|waiter| waiter.expires > now);
    }

    fn place_of(&self, ticket: &Ticket) -> Result<usize, usize> {
        self.waiters.binary_search_by(|waiter| waiter.ticket.cmp(ticket))
    }
}
