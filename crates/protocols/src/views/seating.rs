//! Who of a view votes on a name.
//!
//! Up to [`VOTERS_MAX`] members all of them do, and more than half of the votes hold a name. Above that it is
//! the [`VOTERS_MAX`] whose hash with the name is the lowest, and six votes of nine. So a change by one peer
//! changes the voters of a name by one at most, and the quorums of neighbouring views always meet:
//!
//! ```text
//!   9 members, 5 votes;  10 members, 6 votes of 9:  5 + 6 > 10
//!   voters that differ by one, among 10 in all:      6 + 6 > 10
//! ```

use alloc::vec::Vec;

use sha2::{Digest, Sha256};
use sigmalock_core::{Name, PeerId};

use super::Roster;
use crate::parts::quorum::VOTERS_MAX;

impl Roster {
    /// Whether names are voted on by some of the members only.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.members().len() > VOTERS_MAX
    }

    /// Who votes on a name, by their seats.
    #[must_use]
    pub fn voters(&self, name: &Name) -> Vec<(u16, PeerId)> {
        let mut voters: Vec<(u16, PeerId)> = self.seats().collect();
        if self.is_large() {
            let name = hash(name);
            let rank = |voter: &(u16, PeerId)| (mix(name ^ mix(voter.1.0)), voter.1);
            voters.select_nth_unstable_by_key(VOTERS_MAX - 1, rank);
            voters.truncate(VOTERS_MAX);
        }
        voters.sort_unstable();
        voters
    }
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
    use super::super::{Badge, Change};
    use super::*;
    use crate::parts::Quorum;
    use alloc::collections::BTreeSet;
    use alloc::format;

    fn names() -> Vec<Name> {
        (0..200).map(|k| Name::new(&format!("/job/{k}")).unwrap()).collect()
    }

    #[test]
    fn quorums_of_neighbouring_views_always_meet() {
        let mut roster = Roster::founded_by(PeerId(1), Badge(1), 9);
        for peer in 2..40 {
            let next = roster.after(Change::Add(PeerId(peer), Badge(peer))).unwrap();
            let (m, m_next) =
                (Quorum::of_view(roster.members().len()).m(), Quorum::of_view(peer as usize).m());
            for name in names() {
                let here: BTreeSet<_> = roster.voters(&name).into_iter().collect();
                let there: BTreeSet<_> = next.voters(&name).into_iter().collect();
                assert!(m + m_next > here.union(&there).count());
                assert!(2 * m_next > there.len());
            }
            roster = next;
        }
    }

    #[test]
    fn a_change_by_one_peer_changes_the_voters_by_one_at_most_and_all_take_their_share() {
        let mut roster = Roster::founded_by(PeerId(1), Badge(1), 9);
        for peer in 2..=30 {
            roster = roster.after(Change::Add(PeerId(peer), Badge(peer))).unwrap();
        }
        let less = roster.after(Change::Remove(PeerId(7), Badge(7))).unwrap();
        let mut share = alloc::collections::BTreeMap::<PeerId, usize>::new();
        for name in names() {
            let before: BTreeSet<_> = roster.voters(&name).into_iter().collect();
            let after: BTreeSet<_> = less.voters(&name).into_iter().collect();
            assert_eq!((before.len(), after.len()), (VOTERS_MAX, VOTERS_MAX));
            assert!(before.difference(&after).count() <= 1);
            before.iter().for_each(|(_, peer)| *share.entry(*peer).or_default() += 1);
        }
        // 200 names with nine voters each, on 30 peers: 60 on average.
        assert_eq!(share.len(), 30);
        assert!(share.values().all(|names| (30..100).contains(names)), "{share:?}");
    }
}
