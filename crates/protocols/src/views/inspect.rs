//! What people get to see of it. Of locks it knows nothing.

use alloc::vec::Vec;

use sigmalock_core::{
    Inspect, LocalReport, LocalTime, MemberReport, Name, PeerId, ReplicaReport, Span, Standing,
    ViewReport,
};

use super::{Change, Loss, Roster, Views, count};
use crate::parts::{Quorum, Rules};

impl<R: Rules> Inspect for Views<R> {
    fn replicas(&self, _: LocalTime, _: &Name) -> Vec<ReplicaReport> {
        Vec::new()
    }

    fn local(&self, _: LocalTime, _: &Name) -> LocalReport {
        LocalReport::default()
    }

    fn names(&self, _: Option<&Name>, _: usize) -> Vec<Name> {
        Vec::new()
    }

    fn view(&self, now: LocalTime) -> Option<ViewReport> {
        let roster = self.roster();
        let member = |peer: PeerId| MemberReport {
            peer,
            since: roster.and_then(|roster| roster.since(peer)).map_or(0, count),
            forgot: self.has_forgotten(peer),
            silent_for: self.silent_for(peer, now),
        };
        let members: Vec<_> = roster.into_iter().flat_map(Roster::members).map(member).collect();
        let quorum = Quorum::of_view(members.len());
        let standing = self.standing_for_people(now, &members);
        Some(ViewReport {
            number: roster.map_or(0, Roster::count),
            forced: roster.is_some_and(|roster| roster.last() == Change::Forget),
            gets_locks: standing == Standing::Voting,
            standing,
            members,
            votes: (quorum.n() as u16, quorum.m() as u16),
            strangers: self.strangers().collect(),
            rivals: self.rivals().collect(),
            outdated: self.outdated().collect(),
            vouched_in: self.vouched_in(now),
        })
    }
}

impl<R: Rules> Views<R> {
    /// For how long a member has not been reached, as far as this peer knows.
    fn silent_for(&self, peer: PeerId, now: LocalTime) -> Option<Span> {
        let silent = peer != self.me && !self.reaches(peer);
        silent.then(|| self.silent_since(peer).map_or(Span::ZERO, |since| now.since(since)))
    }

    fn standing_for_people(&self, now: LocalTime, members: &[MemberReport]) -> Standing {
        if let Some((here, expected)) = self.founding() {
            let (here, expected) = (here as u16, expected as u16);
            let (pledged_to, told_otherwise) = (self.pledged_to(), self.told_otherwise());
            return Standing::Founding { here, expected, pledged_to, told_otherwise };
        }
        match (self.standing(), self.loss()) {
            (super::Standing::Member, _) if self.is_vouched_for() => {}
            (super::Standing::Member, _) => return Standing::Unvouched,
            (_, Some(Loss::OldDisk)) => return Standing::OldDisk,
            (super::Standing::Outside, None) => return Standing::Outside,
            (super::Standing::Lost, _) | (_, Some(Loss::Gone)) => return Standing::Lost,
        }
        let votes = |member: &&MemberReport| member.silent_for.is_none() && !member.forgot;
        let up = members.iter().filter(votes).count();
        let needed = members.len() / 2 + 1;
        if up < needed || self.counts_until(now) <= now {
            Standing::Minority { up: up as u16, needed: needed as u16 }
        } else if self.is_astray() || self.has_rivals() {
            Standing::Unvouched
        } else {
            Standing::Voting
        }
    }
}
