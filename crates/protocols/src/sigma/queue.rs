//! Who waits for a replica's vote.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use sigmalock_core::lock::PERMITS_MAX;
use sigmalock_core::{Echo, LocalTime, Mode, PeerId, Span};

use super::Mutant;
use super::host::HostState;
use super::message::{HandedWaiter, Ticket};
use super::owners::Owners;
use crate::parts::Rules;

/// The waiters in ticket order, so that a place in the queue is an index.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Queue {
    waiters: VecDeque<Waiter>,
    /// One of them that goes before all others: it is inside already, and needs the vote to stay there.
    first: Option<Ticket>,
    /// Who has come (with the lease it wants) and gone since the disk was last told.
    unsaved: Vec<(Ticket, Option<Span>)>,
    /// Before then nobody is taken for dead.
    quiet_until: LocalTime,
}

/// One of them.
#[derive(Debug, Clone, Hash)]
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
    /// This one is inside, and goes first.
    pub(super) fn prefer(&mut self, ticket: Ticket) {
        self.first = Some(ticket);
    }

    /// The place of the next one that may have the vote beside its owners: the oldest, or (against the rules)
    /// the youngest. Whoever has to wait makes all behind it wait, but for those who want another slot of as
    /// many permits.
    pub(super) fn next(&self, state: &HostState<impl Rules>, owners: &Owners) -> Option<usize> {
        let preferred = self.first.and_then(|first| self.place_of(&first).ok());
        let youngest = state.breaks(Mutant::ServesYoungestFirst);
        let first =
            preferred.or(if youngest { self.waiters.len().checked_sub(1) } else { Some(0) })?;
        let mode = self.waiters.get(first)?.ticket.mode;
        if owners.admit(state, mode) {
            return Some(first);
        }
        let of = mode.permits().filter(|_| !state.breaks(Mutant::LinesUpSlots))?;
        let modes = self.waiters.iter().map(|waiter| waiter.ticket.mode);
        let mut wanted = 0;
        for (place, mode) in modes.enumerate().take_while(|(_, mode)| mode.permits() == Some(of)) {
            if wanted & mode.slot_bit() == 0 && owners.admit(state, mode) {
                return Some(place);
            }
            wanted |= mode.slot_bit();
            if wanted.count_ones() == u32::from(of) {
                break;
            }
        }
        None
    }

    /// The oldest who waits for a permit.
    pub(super) fn permit(&self) -> Option<Ticket> {
        self.tickets().find(|ticket| ticket.mode.permits().is_some())
    }

    pub(super) fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.waiters.iter().map(|waiter| waiter.ticket)
    }
    /// Those that people are shown: everybody once. Whoever wants a permit waits for each slot, so it is those
    /// who wait for the slot that most do.
    pub(super) fn shown(&self) -> impl Iterator<Item = Ticket> {
        let mut lines = [0u32; PERMITS_MAX as usize];
        for bit in self.tickets().map(|ticket| ticket.mode.slot_bit()).filter(|bit| *bit != 0) {
            lines[bit.trailing_zeros() as usize] += 1;
        }
        let longest = (0..PERMITS_MAX).rev().max_by_key(|slot| lines[usize::from(*slot)]);
        self.tickets().filter(move |ticket| match ticket.mode {
            Mode::Slot { index, .. } => Some(index) == longest,
            Mode::Exclusive | Mode::Shared | Mode::Permit { .. } => true,
        })
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
                self.quiet_until = self.quiet_until.min(waiter.expires);
                self.waiters.insert(place, waiter);
            }
        }
        true
    }

    /// The place of a waiter and how many are before it; of those who want other slots, nobody is.
    pub(super) fn find(&self, ticket: &Ticket) -> Option<(usize, usize)> {
        let place = self.place_of(ticket).ok()?;
        let before = match ticket.mode {
            Mode::Exclusive | Mode::Shared => place,
            mode => self.tickets().take(place).filter(|t| !t.mode.shares_with(mode)).count(),
        };
        Some((place, before))
    }

    /// The one at a place is told when to ask again, and is to be heard from until then. What it asked last.
    pub(super) fn expect(&mut self, place: usize, until: LocalTime) -> Echo {
        self.quiet_until = self.quiet_until.min(until);
        self.waiters[place].expires = until;
        self.waiters[place].echo
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

    /// Puts the first for whom this holds before all others, which is against the rules.
    pub(super) fn bring_forward(&mut self, may: impl Fn(&Waiter) -> bool) {
        if let Some(place) = self.waiters.iter().position(may)
            && let Some(waiter) = self.waiters.remove(place)
        {
            self.waiters.push_front(waiter);
        }
    }

    /// Takes the one at a place out.
    pub(super) fn take(&mut self, place: usize) -> Option<Waiter> {
        let next = self.waiters.remove(place);
        self.unsaved.extend(next.as_ref().map(|waiter| (waiter.ticket, None)));
        next
    }

    /// Drops those not heard from for too long.
    pub(super) fn prune(&mut self, now: LocalTime) {
        if now < self.quiet_until {
            return;
        }
        let Self { waiters, unsaved, quiet_until, .. } = self;
        *quiet_until = LocalTime::NEVER;
        waiters.retain(|waiter| {
            let stays = waiter.expires > now;
            if stays {
                *quiet_until = waiter.expires.min(*quiet_until);
            } else {
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
