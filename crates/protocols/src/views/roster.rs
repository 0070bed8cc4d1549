//! A numbered membership.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::sync::Arc;
use core::fmt;

use sigmalock_core::{Member, PeerId};

use super::MEMBERS_MAX;
use crate::parts::quorum::VOTERS_MAX;

/// The number of one membership of one peer, drawn by that peer when it asks to be added, and kept on its disk
/// beside what it promises. A peer is a member of a view only if the view has it under its own badge: who lost
/// its memory lost its badge with it, and cannot be taken, or take itself, for who it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Badge(pub u64);

/// What makes one view out of another: one peer comes or goes.
///
/// A member that lost its memory is never replaced by its new self in one change. The majorities of the two
/// views, `{a, old p}` and `{b, new p}` of three, would have nobody in common who remembers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Change {
    /// This peer comes, under this badge.
    Add(PeerId, Badge),
    /// This peer goes, if it is in under this badge: a late wish ends no later membership.
    Remove(PeerId, Badge),
    /// Some peers are gone, an operator says; they were not asked.
    Forget,
    /// The swarm begins.
    Found,
}

impl Change {
    /// Whom it is about, if it is about one.
    #[must_use]
    pub const fn peer(self) -> Option<PeerId> {
        match self {
            Self::Add(peer, _) | Self::Remove(peer, _) => Some(peer),
            Self::Forget | Self::Found => None,
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(peer, _) => write!(f, "add {peer}"),
            Self::Remove(peer, _) => write!(f, "remove {peer}"),
            Self::Forget => f.write_str("forget the gone"),
            Self::Found => f.write_str("found the swarm"),
        }
    }
}

/// The number of a view without what operators did to it, for people.
#[must_use]
pub const fn count(number: u64) -> u64 {
    number & u32::MAX as u64
}

/// A member of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
struct Membership {
    badge: Badge,
    /// The view in which it came.
    since: u64,
    /// A number that no other member has, for as long as it is in.
    seat: u16,
}

/// A view: who is in, and since which view without a break.
///
/// Views are numbered without gaps. Only an operator who forgets a member begins a new count, whose numbers
/// lie above all of before: the upper half of the number says how often that has happened, and is drawn in
/// part, so that two operators who do not know of each other do not make two views of one number.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Roster {
    /// A number drawn by who founded the swarm: two swarms are two, whatever their views are called.
    origin: u64,
    number: u64,
    /// What made it.
    last: Change,
    members: BTreeMap<PeerId, Membership>,
}

impl Roster {
    /// The first view of a swarm that one peer founds.
    #[must_use]
    pub fn founded_by(peer: PeerId, badge: Badge, origin: u64) -> Self {
        Self::founded_together(&BTreeMap::from([(peer, badge)]), origin)
    }

    /// The first view of a swarm that several found.
    #[must_use]
    pub fn founded_together(founders: &BTreeMap<PeerId, Badge>, origin: u64) -> Self {
        let seats = founders.iter().zip(0..);
        let member = |((peer, badge), seat): ((&PeerId, &Badge), u16)| {
            (*peer, Membership { badge: *badge, since: 1, seat })
        };
        Self { origin, number: 1, last: Change::Found, members: seats.map(member).collect() }
    }

    /// Which swarm it is of.
    #[must_use]
    pub const fn origin(&self) -> u64 {
        self.origin
    }

    /// The next view, if the change makes sense: nobody comes twice, somebody stays, and there is room.
    #[must_use]
    pub fn after(&self, change: Change) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        let mut next = Self { number, last: change, ..self.clone() };
        let changes = match change {
            Change::Add(peer, badge) if next.members.len() < MEMBERS_MAX => {
                let member = Membership { badge, since: number, seat: self.free_seat() };
                next.members.insert(peer, member).is_none()
            }
            Change::Remove(peer, badge) => {
                next.members.remove(&peer).is_some_and(|member| member.badge == badge)
            }
            Change::Add(..) | Change::Forget | Change::Found => false,
        };
        (changes && !next.members.is_empty()).then_some(next)
    }

    /// For a rule to break on purpose: a member is replaced by its new self in one change.
    pub(super) fn replacing(&self, peer: PeerId, badge: Badge) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        let mut next = Self { number, last: Change::Add(peer, badge), ..self.clone() };
        let member = next.members.get_mut(&peer).filter(|member| member.badge != badge)?;
        (member.badge, member.since) = (badge, number);
        Some(next)
    }

    /// The view that an operator makes who goes on without some members.
    #[must_use]
    pub fn without(&self, gone: &BTreeSet<PeerId>, random: u64) -> Option<Self> {
        let count = (self.number & u64::from(u32::MAX)).checked_add(1)?;
        let times = (self.number >> 48).checked_add(1).filter(|times| *times < 1 << 16)?;
        let number = (times << 48) | ((random & 0xffff) << 32) | count;
        let mut members = self.members.clone();
        members.retain(|peer, _| !gone.contains(peer));
        let fits = !members.is_empty() && members.len() + gone.len() == self.members.len();
        fits.then_some(Self { number, last: Change::Forget, members, ..*self })
    }

    fn free_seat(&self) -> u16 {
        let taken: BTreeSet<u16> = self.members.values().map(|member| member.seat).collect();
        (0..).find(|seat| !taken.contains(seat)).unwrap_or_default()
    }

    /// Whether it can be what it says: what comes from outside may be anything.
    pub(super) fn is_sane(&self) -> bool {
        let seats: BTreeSet<u16> = self.members.values().map(|member| member.seat).collect();
        let fits = |m: &Membership| usize::from(m.seat) < MEMBERS_MAX && m.since <= self.number;
        self.number > 0
            && (1..=MEMBERS_MAX).contains(&self.members.len())
            && seats.len() == self.members.len()
            && self.members.values().all(fits)
    }

    /// Its number. The first is 1.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// What made it out of the one before.
    #[must_use]
    pub const fn last(&self) -> Change {
        self.last
    }

    /// Who is in, ascending.
    pub fn members(&self) -> impl ExactSizeIterator<Item = PeerId> {
        self.members.keys().copied()
    }

    /// Whether a peer is in.
    #[must_use]
    pub fn contains(&self, peer: PeerId) -> bool {
        self.members.contains_key(&peer)
    }

    /// The badge of a member.
    #[must_use]
    pub fn badge(&self, peer: PeerId) -> Option<Badge> {
        self.members.get(&peer).map(|member| member.badge)
    }

    /// Whether a peer is what is new in it.
    #[must_use]
    pub fn is_newcomer(&self, peer: PeerId) -> bool {
        matches!(self.last, Change::Add(newcomer, _) if newcomer == peer)
    }

    /// More than half.
    #[must_use]
    pub fn majority(&self) -> usize {
        self.members.len() / 2 + 1
    }

    /// Since which view a peer has been in without a break.
    #[must_use]
    pub fn since(&self, peer: PeerId) -> Option<u64> {
        self.members.get(&peer).map(|member| member.since)
    }

    /// Everybody with their seats, by peer.
    #[must_use]
    pub fn seats(&self) -> Arc<[Member]> {
        self.members
            .iter()
            .map(|(peer, member)| Member { peer: *peer, seat: member.seat })
            .collect()
    }

    /// Whether names are voted on by some of the members only.
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.members.len() > VOTERS_MAX
    }

    /// The number without what operators did to it, for people.
    #[must_use]
    pub const fn count(&self) -> u64 {
        count(self.number)
    }
}

impl fmt::Display for Roster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "view {}:", self.count())?;
        self.members.keys().try_for_each(|peer| write!(f, " {peer}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn add(peer: u64) -> Change {
        Change::Add(PeerId(peer), Badge(peer))
    }

    fn remove(peer: u64) -> Change {
        Change::Remove(PeerId(peer), Badge(peer))
    }

    #[test]
    fn views_differ_by_one_peer_and_never_end_empty() {
        let one = Roster::founded_by(PeerId(1), Badge(1), 9);
        assert_eq!(one.after(remove(1)), None);
        assert_eq!(one.after(add(1)), None);
        assert_eq!(one.after(remove(2)), None);
        let two = one.after(add(2)).unwrap();
        assert_eq!((two.number(), two.majority()), (2, 2));
        assert!(two.members().eq([PeerId(1), PeerId(2)]));
    }

    #[test]
    fn who_comes_back_is_new_and_nobody_shares_a_seat() {
        let two = Roster::founded_by(PeerId(1), Badge(1), 9).after(add(2)).unwrap();
        assert_eq!(two.since(PeerId(2)), Some(2));
        let without = two.after(remove(1)).unwrap();
        let three = without.after(add(3)).unwrap();
        let again = three.after(add(1)).unwrap();
        assert_eq!(again.since(PeerId(1)), Some(5));
        let seats: Vec<(u16, PeerId)> = again.seats().iter().map(|m| (m.seat, m.peer)).collect();
        assert_eq!(seats, [(2, PeerId(1)), (1, PeerId(2)), (0, PeerId(3))]);
    }

    #[test]
    fn a_membership_ends_by_its_own_number_and_nobody_is_replaced_in_one_change() {
        let two = Roster::founded_by(PeerId(1), Badge(1), 9).after(add(2)).unwrap();
        assert_eq!(two.after(Change::Remove(PeerId(2), Badge(7))), None);
        assert_eq!(two.after(Change::Add(PeerId(2), Badge(7))), None);
        let again = two.after(remove(2)).unwrap().after(Change::Add(PeerId(2), Badge(7))).unwrap();
        assert_eq!(again.badge(PeerId(2)), Some(Badge(7)));
        assert_eq!(again.after(remove(2)), None, "that was another membership");
    }

    #[test]
    fn there_is_room_for_so_many_and_no_more() {
        let mut full = Roster::founded_by(PeerId(0), Badge(0), 9);
        for peer in 1..MEMBERS_MAX as u64 {
            full = full.after(add(peer)).unwrap();
        }
        assert!(full.is_sane() && full.after(add(u64::MAX)).is_none());
    }

    #[test]
    fn a_view_that_an_operator_made_is_newer_than_all_that_come_without_one() {
        let two = Roster::founded_by(PeerId(1), Badge(1), 9).after(add(2)).unwrap();
        let alone = two.without(&[PeerId(2)].into(), 7).unwrap();
        let (mut later, mut come) = (two.clone(), true);
        for _ in 0..1_000 {
            let change = if come { add(3) } else { remove(3) };
            (later, come) = (later.after(change).unwrap(), !come);
        }
        assert!(alone.number() > later.number() && alone.count() == 3);
        assert_ne!(alone.number(), two.without(&[PeerId(1)].into(), 8).unwrap().number());
        assert!(alone.without(&[PeerId(1)].into(), 0).is_none());
    }

    #[test]
    fn rosters_that_make_no_sense_are_seen_through() {
        let good = Roster::founded_by(PeerId(1), Badge(1), 9).after(add(2)).unwrap();
        assert!(good.is_sane());
        let member = |since, seat| Membership { badge: Badge(0), since, seat };
        let with = |members: &[Membership]| {
            let members = members.iter().zip(1..).map(|(m, peer)| (PeerId(peer), *m)).collect();
            Roster { members, ..good.clone() }
        };
        assert!(!with(&[]).is_sane());
        assert!(!with(&[member(1, 0), member(2, 0)]).is_sane());
        assert!(!with(&[member(3, 0)]).is_sane());
        assert!(!with(&[member(1, MEMBERS_MAX as u16)]).is_sane());
        assert!(!Roster { number: 0, ..good.clone() }.is_sane());
    }
}
