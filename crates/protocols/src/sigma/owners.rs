//! Who has a replica's vote: one writer, or readers together, or one for each slot of a semaphore.

use alloc::vec::Vec;

use sigmalock_core::{Echo, Lease, LocalTime, Mode, Span};

use super::Mutant;
use super::host::HostState;
use super::message::{OWNERS_MAX, Ticket, Vote};
use crate::parts::Rules;

/// Those who have the vote, at most [`OWNERS_MAX`]; any two of them may be inside together.
#[derive(Debug, Clone, Default, Hash)]
pub(super) struct Owners(Vec<Owner>);

/// One of them.
#[derive(Debug, Clone, Hash)]
pub(super) struct Owner {
    pub(super) ticket: Ticket,
    /// The lease it asked for; `vote.lease` may be the shorter claim window.
    pub(super) ttl: Span,
    pub(super) vote: Vote,
    pub(super) echo: Echo,
    pub(super) since: LocalTime,
    /// Whether it has had a token written down, which counts as shown from then on.
    pub(super) sealed: bool,
    pub(super) recalled_at: Option<LocalTime>,
    /// Whether another host may have voted since the proposal was made, so that it may be too low.
    pub(super) stale: bool,
}

impl Owner {
    pub(super) fn lease_end(&self, state: &HostState<impl Rules>) -> LocalTime {
        let Lease { given, ttl } = self.vote.lease;
        if state.breaks(Mutant::NeverEndsLeases) {
            return LocalTime::NEVER;
        }
        let early = if state.breaks(Mutant::EndsLeasesEarly) { ttl / 4 } else { Span::ZERO };
        LocalTime::from_micros(given.as_micros()) + (ttl - early)
    }

    /// The owner is alive, as of this message. A late copy of an old one shows nothing, and so changes
    /// nothing, unless it brings the first claim.
    pub(super) fn renew_by(&mut self, echo: Echo, ttl: Span) {
        if echo.sent > self.echo.sent || ttl > self.vote.lease.ttl {
            self.vote.lease = Lease { given: echo.heard, ttl };
        }
        self.echo = self.echo.newer(echo);
    }
}

impl Owners {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Owner> {
        self.0.iter()
    }
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Owner> {
        self.0.iter_mut()
    }

    /// The owner with this ticket, if it is one.
    pub(super) fn get(&self, ticket: &Ticket) -> Option<&Owner> {
        self.0.iter().find(|owner| owner.ticket == *ticket)
    }
    pub(super) fn get_mut(&mut self, ticket: &Ticket) -> Option<&mut Owner> {
        self.0.iter_mut().find(|owner| owner.ticket == *ticket)
    }

    /// Whoever asked first.
    pub(super) fn eldest(&self) -> Option<&Owner> {
        self.0.iter().min_by_key(|owner| owner.ticket)
    }

    /// The one who stands for all of them in what this request is told: whoever asked first of those that it
    /// cannot be inside with; of all, if it could be with any.
    pub(super) fn eldest_for(&self, mode: Mode) -> Option<&Owner> {
        self.0.iter().min_by_key(|owner| (owner.ticket.mode.shares_with(mode), owner.ticket))
    }

    /// The permit that is out, of several the one that was asked for first.
    pub(super) fn permit(&self) -> Option<Ticket> {
        let tickets = self.0.iter().map(|owner| owner.ticket);
        tickets.filter(|ticket| ticket.mode.permits().is_some()).min()
    }

    /// How many of them keep others in this mode out; readers are before readers, too.
    pub(super) fn before(&self, mode: Mode) -> usize {
        match mode {
            Mode::Exclusive | Mode::Shared => self.0.len(),
            _ => self.0.iter().filter(|owner| !owner.ticket.mode.shares_with(mode)).count(),
        }
    }

    /// Whether one more may have the vote, too.
    pub(super) fn admit(&self, state: &HostState<impl Rules>, mode: Mode) -> bool {
        let shares = |owner: &Owner| shares(state, mode, owner.ticket.mode);
        self.0.len() < OWNERS_MAX && self.0.iter().all(shares)
    }

    pub(super) fn insert(&mut self, owner: Owner) {
        self.0.push(owner);
    }

    pub(super) fn take(&mut self, ticket: &Ticket) -> Option<Owner> {
        let place = self.0.iter().position(|owner| owner.ticket == *ticket)?;
        Some(self.0.remove(place))
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Takes all others out.
    pub(super) fn all_but(&mut self, ticket: &Ticket) -> Self {
        let mine = self.take(ticket);
        core::mem::replace(self, Self(mine.into_iter().collect()))
    }
    /// Those who were taken out are there again, before all that came since.
    pub(super) fn put_back(&mut self, others: Self) {
        let since = core::mem::replace(self, others);
        self.0.extend(since.0);
    }

    /// Somebody whose lease is over, if there is anybody.
    pub(super) fn overdue(&self, state: &HostState<impl Rules>, now: LocalTime) -> Option<&Owner> {
        self.0.iter().find(|owner| owner.lease_end(state) <= now)
    }

    /// When the next of their leases ends.
    pub(super) fn lease_end(&self, state: &HostState<impl Rules>) -> LocalTime {
        self.0.iter().map(|owner| owner.lease_end(state)).min().unwrap_or(LocalTime::NEVER)
    }
}

/// Whether these two may have the vote together.
fn shares(state: &HostState<impl Rules>, mode: Mode, with: Mode) -> bool {
    let breaks = |rule| state.breaks(rule);
    match (mode, with) {
        (Mode::Shared, _) if breaks(Mutant::KeepsReadersApart) => false,
        (_, Mode::Shared) if breaks(Mutant::LetsWritersJoinReaders) => true,
        (Mode::Slot { .. }, Mode::Exclusive) if breaks(Mutant::LetsPermitsJoinWriters) => true,
        (Mode::Shared, Mode::Slot { .. }) if breaks(Mutant::LetsReadersJoinPermits) => true,
        (Mode::Slot { of, index }, Mode::Slot { of: theirs, index: other }) => {
            let same = of == theirs && index == other && breaks(Mutant::GivesASlotTwice);
            let mixed = of != theirs && index != other && breaks(Mutant::MixesPermits);
            same || mixed || mode.shares_with(with)
        }
        _ => mode.shares_with(with),
    }
}
