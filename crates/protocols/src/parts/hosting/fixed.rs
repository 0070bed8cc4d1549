//! Hosting that never changes.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use sigmalock_core::{Name, PeerId, ReplicaId};

use super::Hosting;

/// The first so many peers host so many replicas of every name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fixed {
    /// Peers 0, 1, 2 … are hosts.
    pub hosts: u64,
    /// Replicas of each name.
    pub replicas: u16,
}

impl Hosting for Fixed {
    /// Consecutive hosts from a place that depends on the name, or replica i on peer i when there are as many
    /// hosts as replicas.
    fn host_of(&self, replica: &ReplicaId) -> Option<PeerId> {
        if replica.index >= self.replicas || self.hosts == 0 {
            return None;
        }
        let exact = self.hosts == u64::from(self.replicas);
        let offset = if exact { 0 } else { spread(&replica.name) };
        Some(PeerId((u64::from(replica.index) + offset) % self.hosts))
    }

    fn seats(&self, _name: &Name) -> Vec<u16> {
        (0..self.replicas).collect()
    }

    fn has_replica(&self, index: u16) -> bool {
        index < self.replicas
    }

    fn copy(&self) -> Box<dyn Hosting> {
        Box::new(*self)
    }
    fn digest(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

fn spread(name: &Name) -> u64 {
    name.as_str()
        .bytes()
        .fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn the_replicas_of_a_name_are_on_distinct_hosts() {
        let replica = |index| ReplicaId { name: Name::new("/a").unwrap(), index };
        let many = Fixed { hosts: 12, replicas: 9 };
        let hosts: BTreeSet<_> = (0..9).map(|i| many.host_of(&replica(i)).unwrap()).collect();
        assert_eq!(hosts.len(), 9);
        assert_eq!(many.host_of(&replica(9)), None);
        let exact = Fixed { hosts: 9, replicas: 9 };
        assert!((0..9).all(|i| exact.host_of(&replica(i)) == Some(PeerId(u64::from(i)))));
    }
}
