//! A numbered membership.

use alloc::collections::BTreeMap;
use core::fmt;

use sigmalock_core::PeerId;

/// What makes one view out of another: one peer comes or goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Change {
    /// This peer comes.
    Add(PeerId),
    /// This peer goes.
    Remove(PeerId),
}

impl Change {
    /// Whom it is about.
    #[must_use]
    pub const fn peer(self) -> PeerId {
        match self {
            Self::Add(peer) | Self::Remove(peer) => peer,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(peer) => write!(f, "add {peer}"),
            Self::Remove(peer) => write!(f, "remove {peer}"),
        }
    }
}

/// A view: who is in, and since which view without a break.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Roster {
    number: u64,
    /// What made it.
    last: Change,
    members: BTreeMap<PeerId, u64>,
}

impl Roster {
    /// The first view of a swarm.
    #[must_use]
    pub fn founded_by(peer: PeerId) -> Self {
        Self { number: 1, last: Change::Add(peer), members: BTreeMap::from([(peer, 1)]) }
    }

    /// The next view, if the change makes sense: nobody comes twice, and somebody stays.
    #[must_use]
    pub fn after(&self, change: Change) -> Option<Self> {
        let mut next =
            Self { number: self.number + 1, last: change, members: self.members.clone() };
        let changes = match change {
            Change::Add(peer) => next.members.insert(peer, next.number).is_none(),
            Change::Remove(peer) => next.members.remove(&peer).is_some(),
        };
        (changes && !next.members.is_empty()).then_some(next)
    }

    /// Its number. The first is 1.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// What made it out of the one before.
    #[must_use]
    pub const fn last(&self) -> Change {
        self.last
    }

    /// Who is in, ascending.
    pub fn members(&self) -> impl ExactSizeIterator<Item = PeerId> {
        self.members.keys().copied()
    }

    /// Whether a peer is in.
    #[must_use]
    pub fn contains(&self, peer: PeerId) -> bool {
        self.members.contains_key(&peer)
    }

    /// More than half.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Whether a vote that a host stamped with a view counts in this one: the host has been in all the
    /// time, and the stamp is not from later.
    #[must_use]
    pub fn counts(&self, host: PeerId, stamp: u64) -> bool {
        stamp <= self.number && self.members.get(&host).is_some_and(|since| *since <= stamp)
    }
}

impl fmt::Display for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view {}:", self.number)?;
        self.members.keys().try_for_each(|peer| write!(f, " {peer}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_differ_by_one_peer_and_never_end_empty() {
        let one = Roster::founded_by(PeerId(1));
        assert_eq!(one.after(Change::Remove(PeerId(1))), None);
        assert_eq!(one.after(Change::Add(PeerId(1))), None);
        assert_eq!(one.after(Change::Remove(PeerId(2))), None);
        let two = one.after(Change::Add(PeerId(2))).unwrap();
        assert_eq!((two.number(), two.majority()), (2, 2));
        assert!(two.members().eq([PeerId(1), PeerId(2)]));
    }

    #[test]
    fn a_vote_counts_while_its_host_stays_and_never_ahead_of_time() {
        let two = Roster::founded_by(PeerId(1)).after(Change::Add(PeerId(2))).unwrap();
        let counts = |roster: &Roster, stamp| roster.counts(PeerId(2), stamp);
        assert!(!counts(&two, 1) && counts(&two, 2) && !counts(&two, 3));
        let without = two.after(Change::Remove(PeerId(2))).unwrap();
        assert!(!counts(&without, 2));
        let again = without.after(Change::Add(PeerId(2))).unwrap();
        assert!(!counts(&again, 2) && !counts(&again, 3) && counts(&again, 4));
    }
}
