//! Hosting by hash among those who are there.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use sigmalock_core::{LocalTime, Name, PeerId, ReplicaId};

use super::{Hosting, Placement, Word};

/// Whoever is closest to a replica hosts it, as this peer sees it; hosts hand over what they have.
#[derive(Debug, Clone, Hash)]
pub struct Open {
    placement: Placement,
    replicas: u16,
}

impl Open {
    /// As this view of who is there has it, for so many replicas of each name.
    #[must_use]
    pub const fn new(placement: Placement, replicas: u16) -> Self {
        Self { placement, replicas }
    }
}

impl Hosting for Open {
    fn host_of(&self, replica: &ReplicaId) -> Option<PeerId> {
        self.placement.host_of(replica)
    }
    fn seats(&self, _name: &Name) -> Vec<u16> {
        (0..self.replicas).collect()
    }
    fn has_replica(&self, index: u16) -> bool {
        index < self.replicas
    }
    fn moves(&self) -> bool {
        true
    }
    fn hands_over(&self) -> bool {
        true
    }
    fn may_vote(&self, _now: LocalTime) -> bool {
        self.placement.may_vote()
    }
    fn inherited_until(&self, replica: &ReplicaId, handed_over: Word<'_>) -> LocalTime {
        self.placement.inherited_until(replica, handed_over)
    }
    fn unsure_until(&self, asked_by: PeerId, handed_over: Word<'_>) -> LocalTime {
        self.placement.unsure_until(asked_by, handed_over)
    }
    fn placement(&self) -> Option<&Placement> {
        Some(&self.placement)
    }
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        Some(&mut self.placement)
    }
    fn copy(&self) -> Box<dyn Hosting> {
        Box::new(self.clone())
    }
    fn digest(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}
