//! Who is who: the places of peers in the world's table, their names, and which of them host what.

use sigmalock_core::PeerId;
use sigmalock_protocols::parts::hosting::Fixed;

/// Where the ids of clients with peers of their own begin.
const CLIENTS_FROM: u64 = 1_000;

/// Peers `p0 …` host replicas; peers `p1000 …` are clients.
#[derive(Debug, Clone, Copy)]
pub struct Roster {
    /// How many peers host replicas.
    pub hosts: usize,
    /// Replicas per lock.
    pub replicas: usize,
}

impl Roster {
    fn clients_from(self) -> u64 {
        (self.hosts as u64).max(CLIENTS_FROM)
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
        let hosts = self.hosts as u64;
        if id.0 < hosts {
            Some(id.0 as usize)
        } else {
            let k = id.0.checked_sub(self.clients_from())?;
            Some((hosts + k) as usize)
        }
    }

    #[inline]
    pub(crate) fn id(self, index: usize) -> PeerId {
        if index < self.hosts { PeerId(index as u64) } else { self.client(index - self.hosts) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_places_agree() {
        for hosts in [1, 3, 32, 1_000, 1_024] {
            let roster = Roster { hosts, replicas: 1 };
            for index in 0..hosts + 10 {
                assert_eq!(roster.index(roster.id(index)), Some(index));
            }
        }
        assert_eq!(Roster { hosts: 3, replicas: 3 }.client(0), PeerId(1_000));
        assert_eq!(Roster { hosts: 3, replicas: 3 }.index(PeerId(500)), None);
    }
}
