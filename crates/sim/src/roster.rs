//! Who is who: the places of peers in the world's table, their names, and which of them host what.

use sigmalock_core::{Name, PeerId};

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

    /// The peer that hosts replica `index` of a name: consecutive hosts from a place that depends on
    /// the name, or replica i on peer i when there are as many hosts as replicas.
    #[must_use]
    pub fn host_of(self, name: &Name, index: u16) -> Option<PeerId> {
        let index = usize::from(index);
        if index >= self.replicas {
            return None;
        }
        let offset = if self.hosts == self.replicas { 0 } else { spread(name) };
        Some(PeerId(((index + offset) % self.hosts) as u64))
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

fn spread(name: &Name) -> usize {
    name.as_str().bytes().fold(7, |sum: usize, byte| {
        sum.wrapping_mul(31).wrapping_add(usize::from(byte)) & 0xffff_ffff
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

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

    #[test]
    fn the_replicas_of_a_name_are_on_distinct_hosts() {
        let name = Name::new("/a").unwrap();
        let roster = Roster { hosts: 12, replicas: 9 };
        let hosts: BTreeSet<_> = (0..9).map(|i| roster.host_of(&name, i).unwrap()).collect();
        assert_eq!(hosts.len(), 9);
        assert_eq!(roster.host_of(&name, 9), None);
        let exact = Roster { hosts: 9, replicas: 9 };
        assert!((0..9u16).all(|i| exact.host_of(&name, i) == Some(PeerId(u64::from(i)))));
    }
}
