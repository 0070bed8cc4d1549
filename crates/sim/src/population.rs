//! Who is who: the places of peers in the world's table, their names, and which of them host what.

use sigmalock_core::PeerId;
use sigmalock_protocols::parts::hosting::Fixed;

/// Where the ids of clients with peers of their own begin,
pub(crate) const CLIENTS_FROM: u64 = 1_000;
/// and those of twins.
const TWINS_FROM: u64 = 1_000_000;

/// Peers `p0 …` host replicas; peers `p1000 …` are clients. Where a copy of the disk of `p2` may run beside it, that one is
/// `p1000002` to faults and in histories; peers take each for the other.
#[derive(Debug, Clone, Copy)]
pub struct Population {
    /// How many peers host replicas, without the twin.
    pub hosts: usize,
    /// Replicas per lock.
    pub replicas: usize,
    /// The host that has a twin.
    pub twin_of: Option<PeerId>,
}

impl Population {
    fn clients_from(self) -> u64 {
        (self.hosts as u64).max(CLIENTS_FROM)
    }

    /// How many places hosts have in the table, the twin's included: it comes after all the others.
    pub(crate) fn places(self) -> usize {
        self.hosts + usize::from(self.twin_of.is_some())
    }

    #[inline]
    pub(crate) fn is_host(self, index: usize) -> bool {
        index < self.places()
    }

    /// The id of the twin, if there is one.
    #[must_use]
    pub fn twin(self) -> Option<PeerId> {
        self.twin_of.map(|peer| PeerId(TWINS_FROM + peer.0))
    }

    /// The places of the two.
    #[inline]
    pub(crate) fn twins(self) -> Option<[usize; 2]> {
        self.twin_of.map(|peer| [peer.0 as usize, self.hosts])
    }

    /// What peers call the one at this place.
    #[inline]
    pub(crate) fn name(self, index: usize) -> PeerId {
        match self.twin_of {
            Some(peer) if index == self.hosts => peer,
            _ => self.id(index),
        }
    }

    /// The id of the k-th peer of clients.
    #[must_use]
    pub fn client(self, k: usize) -> PeerId {
        PeerId(self.clients_from() + k as u64)
    }

    /// The ids of the hosts.
    pub fn host_ids(self) -> impl Iterator<Item = PeerId> {
        (0..self.hosts as u64).map(PeerId)
    }

    /// Who hosts what, if that never changes.
    #[must_use]
    pub fn hosting(self) -> Fixed {
        let replicas = u16::try_from(self.replicas).unwrap_or(u16::MAX);
        Fixed { hosts: self.hosts as u64, replicas }
    }

    #[inline]
    pub(crate) fn index(self, id: PeerId) -> Option<usize> {
        if id.0 < self.hosts as u64 {
            Some(id.0 as usize)
        } else if self.twin_of.is_some() && self.twin() == Some(id) {
            Some(self.hosts)
        } else {
            let k = id.0.checked_sub(self.clients_from())?;
            Some(self.places() + k as usize)
        }
    }

    #[inline]
    pub(crate) fn id(self, index: usize) -> PeerId {
        match self.twin() {
            _ if index < self.hosts => PeerId(index as u64),
            Some(twin) if index == self.hosts => twin,
            _ => self.client(index - self.places()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_places_agree() {
        for hosts in [1, 3, 32, 1_000, 1_024] {
            for twin_of in [None, Some(PeerId(hosts as u64 - 1))] {
                let population = Population { hosts, replicas: 1, twin_of };
                for index in 0..hosts + 10 {
                    assert_eq!(population.index(population.id(index)), Some(index));
                }
            }
        }
        let population = Population { hosts: 3, replicas: 3, twin_of: None };
        assert_eq!((population.client(0), population.index(PeerId(500))), (PeerId(1_000), None));
        let population = Population { twin_of: Some(PeerId(2)), ..population };
        assert_eq!((population.id(3), population.name(3)), (PeerId(1_000_002), PeerId(2)));
    }
}
