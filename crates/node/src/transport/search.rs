//! Whom to look for, and how eagerly.
//!
//! A cut may end at any time, and then whoever belongs together should be together at once. So members are looked for
//! every second, for as long as they are members; that costs less than the heartbeats of the session that there would be.
//! Where nobody knows who belongs here, the same is true of everybody who was here within the hour.

use std::collections::BTreeSet;
use std::time::Duration;

use sigmalock_core::PeerId;

use super::contact::Pace;
use super::limits::{REDIAL_EVERY, REDIALS_PER_SECOND_MAX, STRANGER_EVERY_MAX};
use crate::config::Membership;

/// Who belongs here, as far as this peer knows.
#[derive(Debug)]
pub(super) enum Search {
    /// Nobody agrees on that.
    Everybody,
    /// These.
    Members(BTreeSet<PeerId>),
}

impl Search {
    pub(super) fn new(membership: Membership) -> Self {
        match membership {
            Membership::Open | Membership::Fixed => Self::Everybody,
            Membership::Agreed => Self::Members(BTreeSet::new()),
        }
    }

    /// From now on these belong here.
    pub(super) fn members(&mut self, members: BTreeSet<PeerId>) {
        *self = Self::Members(members);
    }

    /// How to look for this one, as one of so many.
    pub(super) fn pace(&self, peer: PeerId, sought: usize) -> Pace {
        let (every_max, for_ever) = match self {
            Self::Everybody => (REDIAL_EVERY.1, false),
            Self::Members(members) if members.contains(&peer) => (REDIAL_EVERY.1, true),
            Self::Members(_) => (STRANGER_EVERY_MAX, false),
        };
        let sought = u32::try_from(sought).unwrap_or(u32::MAX);
        let in_turn = Duration::from_secs(1).saturating_mul(sought) / REDIALS_PER_SECOND_MAX;
        Pace { every_max: every_max.max(in_turn), for_ever }
    }
}

#[cfg(test)]
mod tests {
    use super::super::contact::Redial;
    use super::*;
    use tokio::time::Instant;

    /// The pauses of so many attempts, in seconds.
    fn pauses(pace: Pace, attempts: usize) -> Vec<f64> {
        let mut redial = Redial::within(Duration::ZERO);
        let mut pause = || redial.again(pace).then(|| redial.at - Instant::now());
        (0..attempts).map_while(|_| pause()).map(|pause| pause.as_secs_f64()).collect()
    }

    #[test]
    fn a_member_is_tried_every_second_however_long_it_is_away_and_a_stranger_ever_less() {
        let mut search = Search::new(Membership::Agreed);
        search.members([PeerId(1)].into());
        let member = pauses(search.pace(PeerId(1), 5), 10_000);
        assert_eq!(member.len(), 10_000, "it is never given up");
        assert!(member.iter().all(|pause| *pause <= 1.0));
        assert!(member[20..].iter().all(|pause| *pause > 0.7), "nor dialed without a pause");
        let stranger = pauses(search.pace(PeerId(2), 5), 20);
        assert!(stranger[10..].iter().all(|pause| (22.0..=30.0).contains(pause)), "{stranger:?}");
        let somebody = Search::new(Membership::Open).pace(PeerId(2), 5);
        assert!(pauses(somebody, 100).iter().all(|pause| *pause <= 1.0));
        assert!(!somebody.for_ever);
    }

    #[test]
    fn however_many_are_sought_only_so_many_are_dialed_in_a_second() {
        let mut search = Search::new(Membership::Agreed);
        search.members((0..1_024).map(PeerId).collect());
        for sought in [1, 25, 64, 200, 1_023, 4_096] {
            let every = search.pace(PeerId(1), sought).every_max.as_secs_f64();
            let rate = sought as f64 / every;
            assert!(rate <= f64::from(REDIALS_PER_SECOND_MAX), "{sought}: {rate}");
        }
    }
}
