//! What locks see of the world: the members of a view, instead of what the driver knows of hosts.

use alloc::vec::Vec;

use sigmalock_core::{HandedOver, Key, LocalTime, Name, PeerId, ReplicaId, Surroundings, WallTime};

use crate::views::{Roster, Views};

/// The world of one peer in one view.
pub(super) struct InView<'a> {
    pub(super) around: &'a mut dyn Surroundings,
    pub(super) views: &'a Views,
    pub(super) now: LocalTime,
    /// Whether this peer may vote, and from when on.
    pub(super) votes: bool,
    pub(super) votes_from: LocalTime,
    /// It goes on without knowing whether most are still in its view, which is against the rules.
    pub(super) unconfirmed: bool,
}

/// Who hosts a replica.
pub(super) fn host_of(roster: Option<&Roster>, replica: &ReplicaId) -> Option<PeerId> {
    let roster = roster?;
    let sits = |(seat, _): &(u16, PeerId)| *seat == replica.index;
    let host = if roster.is_large() {
        roster.voters(&replica.name).into_iter().find(sits)
    } else {
        roster.seats().find(sits)
    };
    host.map(|(_, peer)| peer)
}

impl Surroundings for InView<'_> {
    fn wall(&self) -> WallTime {
        self.around.wall()
    }
    fn random(&mut self) -> u64 {
        self.around.random()
    }
    fn next_hop(&self, key: &Key) -> Option<PeerId> {
        self.around.next_hop(key)
    }
    fn host_of(&self, replica: &ReplicaId) -> Option<PeerId> {
        host_of(self.views.roster(), replica)
    }
    fn inherited_until(&self, _: &ReplicaId, _: &dyn Fn(PeerId) -> HandedOver) -> LocalTime {
        self.votes_from
    }
    fn may_vote(&self) -> bool {
        self.votes
    }
    fn seats(&self, name: &Name) -> Vec<u16> {
        let voters = self.views.roster().map_or_else(Vec::new, |roster| roster.voters(name));
        voters.into_iter().map(|(seat, _)| seat).collect()
    }
    fn written(&self) -> u64 {
        self.around.written()
    }
    fn counts_until(&self) -> LocalTime {
        if self.unconfirmed { LocalTime::NEVER } else { self.views.counts_until(self.now) }
    }
}
