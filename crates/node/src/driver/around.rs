//! What the protocol sees around it.

use sigmalock_core::{HandedOver, Key, LocalTime, PeerId, ReplicaId, Surroundings, WallTime};
use sigmalock_protocols::parts::Placement;

use crate::clock;

/// The world as lent to the protocol during one input.
#[derive(Debug)]
pub(crate) struct Around {
    pub(crate) placement: Placement,
    /// Records ever written to the store.
    pub(crate) written: u64,
    random: u64,
}

impl Around {
    pub(crate) const fn new(placement: Placement, seed: u64) -> Self {
        Self { placement, written: 0, random: seed }
    }
}

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        clock::wall()
    }

    /// SplitMix64: jitter needs no more.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn next_hop(&self, _key: &Key) -> Option<PeerId> {
        None
    }
    fn host_of(&self, replica: &ReplicaId) -> Option<PeerId> {
        self.placement.host_of(replica)
    }
    fn inherited_until(
        &self, replica: &ReplicaId, handed_over: &dyn Fn(PeerId) -> HandedOver,
    ) -> LocalTime {
        self.placement.inherited_until(replica, handed_over)
    }
    fn unsure_until(
        &self, asked_by: PeerId, handed_over: &dyn Fn(PeerId) -> HandedOver,
    ) -> LocalTime {
        self.placement.unsure_until(asked_by, handed_over)
    }
    fn written(&self) -> u64 {
        self.written
    }
    fn may_vote(&self) -> bool {
        self.placement.may_vote()
    }
}
