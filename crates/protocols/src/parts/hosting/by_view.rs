//! Hosting by a membership that peers agree on.
//!
//! Every member has a seat, a number that is its own for as long as it stays. Up to [`VOTERS_MAX`] members all
//! of them host a name, and more than half of the votes hold it. Above that it is the [`VOTERS_MAX`] whose hash
//! with the name is the lowest, and six votes of nine. So a change by one peer changes the hosts of a name by
//! one at most, and the quorums of neighbouring views always meet:
//!
//! ```text
//!   9 members, 5 votes;  10 members, 6 votes of 9:  5 + 6 > 10
//!   voters that differ by one, among 10 in all:      6 + 6 > 10
//! ```

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::hash::{Hash, Hasher};

use sha2::{Digest, Sha256};
use sigmalock_core::{LocalTime, Member, Name, PeerId, ReplicaId, View};

use super::{Hosting, Word};
use crate::parts::quorum::{REPLICAS_MAX, VOTERS_MAX};

/// The members of the newest view that this peer knows host, and the terms on which it is one of them.
#[derive(Debug, Clone, Hash)]
pub struct ByView {
    members: Arc<[Member]>,
    terms: Terms,
}

/// On which terms a peer is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Terms {
    /// Whether it may promise anything, from some time on.
    pub promises: bool,
    /// From when on. Until then others may have promises out that it does not know of.
    pub promises_from: LocalTime,
    /// Until when it is certain that promises counted now are not passed over by a later view.
    pub counts_until: LocalTime,
}

impl Terms {
    /// Of a peer that is in no view.
    pub const NONE: Self =
        Self { promises: false, promises_from: LocalTime::MIN, counts_until: LocalTime::NEVER };

    /// Whether it may promise anything by now.
    #[must_use]
    pub fn may_promise(&self, now: LocalTime) -> bool {
        self.promises && self.promises_from <= now
    }
}

impl Default for ByView {
    fn default() -> Self {
        Self { members: Arc::new([]), terms: Terms::NONE }
    }
}

impl Hosting for ByView {
    fn host_of(&self, replica: &ReplicaId) -> Option<PeerId> {
        let sits = |member: &Member| member.seat == replica.index;
        let host = if self.members.len() > VOTERS_MAX {
            voters(&self.members, &replica.name).into_iter().find(sits)
        } else {
            self.members.iter().copied().find(sits)
        };
        host.map(|member| member.peer)
    }
    fn seats(&self, name: &Name) -> Vec<u16> {
        voters(&self.members, name).into_iter().map(|member| member.seat).collect()
    }
    fn has_replica(&self, index: u16) -> bool {
        index < REPLICAS_MAX
    }
    fn moves(&self) -> bool {
        true
    }
    fn asks_others(&self) -> bool {
        true
    }
    fn may_vote(&self, now: LocalTime) -> bool {
        self.terms.may_promise(now)
    }
    fn inherited_until(&self, _replica: &ReplicaId, _handed_over: Word<'_>) -> LocalTime {
        self.terms.promises_from
    }
    fn counts_until(&self) -> LocalTime {
        self.terms.counts_until
    }
    fn follow(&mut self, view: &View) -> bool {
        self.members = view.members.clone();
        true
    }
    fn stand(&mut self, terms: Terms) {
        self.terms = terms;
    }
    fn copy(&self) -> Box<dyn Hosting> {
        Box::new(self.clone())
    }
    fn digest(&self, mut state: &mut dyn Hasher) {
        self.hash(&mut state);
    }
}

/// Who of these members votes on a name, by their seats.
#[must_use]
pub fn voters(members: &[Member], name: &Name) -> Vec<Member> {
    let mut voters = members.to_vec();
    if members.len() > VOTERS_MAX {
        let name = hash(name);
        let rank = |voter: &Member| (mix(name ^ mix(voter.peer.0)), voter.peer);
        voters.select_nth_unstable_by_key(VOTERS_MAX - 1, rank);
        voters.truncate(VOTERS_MAX);
    }
    voters.sort_unstable_by_key(|voter| (voter.seat, voter.peer));
    voters
}

fn hash(name: &Name) -> u64 {
    let digest: [u8; 32] = Sha256::digest(name.as_str()).into();
    digest[..8].iter().fold(0, |hash, byte| hash << 8 | u64::from(*byte))
}

/// Spreads what is close together.
const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parts::Quorum;
    use crate::views::{Badge, Change, Roster};
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::format;

    fn names() -> Vec<Name> {
        (0..200).map(|k| Name::new(&format!("/job/{k}")).unwrap()).collect()
    }

    fn add(roster: &Roster, peer: u64) -> Roster {
        roster.after(Change::Add(PeerId(peer), Badge(peer))).unwrap()
    }

    fn voters_in(roster: &Roster, name: &Name) -> BTreeSet<Member> {
        voters(&roster.seats(), name).into_iter().collect()
    }

    #[test]
    fn quorums_of_neighbouring_views_always_meet() {
        let mut roster = Roster::founded_by(PeerId(1), Badge(1), 9);
        for peer in 2..40 {
            let next = add(&roster, peer);
            let (m, m_next) =
                (Quorum::of_view(roster.members().len()).m(), Quorum::of_view(peer as usize).m());
            for name in names() {
                let (here, there) = (voters_in(&roster, &name), voters_in(&next, &name));
                assert!(m + m_next > here.union(&there).count());
                assert!(2 * m_next > there.len());
            }
            roster = next;
        }
    }

    #[test]
    fn a_change_by_one_peer_changes_the_voters_by_one_at_most_and_all_take_their_share() {
        let first = Roster::founded_by(PeerId(1), Badge(1), 9);
        let roster = (2..=30).fold(first, |roster, peer| add(&roster, peer));
        let less = roster.after(Change::Remove(PeerId(7), Badge(7))).unwrap();
        let mut share = BTreeMap::<PeerId, usize>::new();
        for name in names() {
            let (before, after) = (voters_in(&roster, &name), voters_in(&less, &name));
            assert_eq!((before.len(), after.len()), (VOTERS_MAX, VOTERS_MAX));
            assert!(before.difference(&after).count() <= 1);
            before.iter().for_each(|voter| *share.entry(voter.peer).or_default() += 1);
        }
        // 200 names with nine voters each, on 30 peers: 60 on average.
        assert_eq!(share.len(), 30);
        assert!(share.values().all(|names| (30..100).contains(names)), "{share:?}");
    }
}
