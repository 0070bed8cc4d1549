//! One lock, as far as this peer's users are concerned.

use alloc::collections::VecDeque;

use sigmalock_core::{CallId, LocalTime, Span, Token};

/// Who is inside, who waits, and the request that stands for them in the swarm.
#[derive(Debug, Clone, Default)]
pub(super) struct Local {
    /// The request in the swarm that is not granted yet. There is none while somebody is inside, unless
    /// that one was told to leave.
    pub(super) asked: Option<Asked>,
    pub(super) inside: Option<Inside>,
    /// First come, first served.
    pub(super) waiting: VecDeque<Waiter>,
    /// How long users stay inside, smoothed.
    pub(super) service: Span,
}

/// A request in the swarm, for the first of those who wait here.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    /// The agent's call.
    pub(super) call: CallId,
    pub(super) ttl: Span,
    /// How many are before it in the swarm and when its turn comes, once that is known.
    pub(super) place: Option<(u32, Span)>,
}

/// What the swarm has granted this peer.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grant {
    /// The agent's call.
    pub(super) call: CallId,
    pub(super) ttl: Span,
    /// The token of whoever is inside.
    pub(super) token: Option<Token>,
    pub(super) deadline: LocalTime,
    /// How far off the deadline was when it was last set: a lease, or only a claim window.
    pub(super) lent: Span,
    /// How many users were let in under it, that one included.
    pub(super) entries: u64,
}

/// A user that is inside.
#[derive(Debug, Clone)]
pub(super) struct Inside {
    /// The user's call.
    pub(super) call: CallId,
    /// Under which grant.
    pub(super) grant: Grant,
    pub(super) since: LocalTime,
    /// It was told to leave, and may still be on its way out.
    pub(super) lost: bool,
    /// Its right is not renewed.
    pub(super) paused: bool,
}

/// A user that waits.
#[derive(Debug, Clone)]
pub(super) struct Waiter {
    pub(super) call: CallId,
    pub(super) ttl: Span,
    /// It wants the lock now or not at all. Only the first of all is let wait for the answer.
    pub(super) only_try: bool,
    /// What it was last told of its place.
    pub(super) told: Option<u32>,
}

impl Local {
    /// Whether nobody waits or is inside.
    pub(super) fn is_idle(&self) -> bool {
        self.inside.is_none() && self.waiting.is_empty()
    }

    /// Whether somebody is inside who was not told to leave.
    pub(super) fn is_held(&self) -> bool {
        self.inside.as_ref().is_some_and(|inside| !inside.lost)
    }

    pub(super) fn is_inside(&self, call: CallId) -> bool {
        self.inside.as_ref().is_some_and(|inside| inside.call == call)
    }

    pub(super) fn place_of(&self, call: CallId) -> Option<usize> {
        self.waiting.iter().position(|waiter| waiter.call == call)
    }

    /// How many are before the first that waits here, and how long they will take, if known.
    pub(super) fn before_the_first(&self, now: LocalTime) -> Option<(u32, Span)> {
        match &self.inside {
            Some(inside) if !inside.lost => Some((1, self.service - now.since(inside.since))),
            _ => self.asked.as_ref()?.place,
        }
    }

    /// The one inside is out.
    pub(super) fn leave(&mut self, now: LocalTime) -> Option<Inside> {
        let inside = self.inside.take()?;
        let held = now.since(inside.since);
        let fresh = self.service == Span::ZERO;
        self.service = if fresh { held } else { (self.service * 7 + held) / 8 };
        Some(inside)
    }
}

/// The places that are told when the queue moves: all of the first, ever fewer further back. So a long
/// queue costs little each time it moves, and everybody in it hears of it as its own place comes along.
pub(super) fn places_told(len: usize) -> impl Iterator<Item = usize> {
    let next = |place: &usize| Some(place + (place / 16).next_power_of_two());
    core::iter::successors(Some(0), next).take_while(move |place| *place < len)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_ten_thousand_that_wait_few_are_told_of_a_move_and_the_first_always() {
        assert!((0..32).all(|place| places_told(99).any(|told| told == place)));
        assert!(places_told(10_000).count() < 200);
        assert_eq!(places_told(0).count(), 0);
    }
}
