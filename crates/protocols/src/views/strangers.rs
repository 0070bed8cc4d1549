//! Peers of other swarms. There is nothing to be done about them but to say so.

use alloc::collections::BTreeSet;

use sigmalock_core::PeerId;

use super::Views;

/// So many of them are remembered; of more nothing is said.
const STRANGERS_MAX: usize = 64;

/// Those who can be reached, as far as known.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Strangers(BTreeSet<PeerId>);

impl Strangers {
    /// Somebody is of another swarm.
    pub(super) fn meet(&mut self, peer: PeerId) {
        if self.0.len() < STRANGERS_MAX {
            self.0.insert(peer);
        }
    }

    /// It can no longer be reached.
    pub(super) fn part(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }
}

impl Views {
    /// Those who can be reached and are of another swarm, as far as known.
    pub fn strangers(&self) -> impl Iterator<Item = PeerId> {
        self.strangers.0.iter().copied()
    }
}
