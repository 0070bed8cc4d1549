//! What people get to see of it.

use alloc::vec::Vec;

use sigmalock_core::{
    Inspect, LocalReport, LocalTime, MemberReport, Name, PeerId, ReplicaReport, Span, Standing,
    ViewReport,
};

use super::{Agreed, OverViews};
use crate::parts::Quorum;
use crate::parts::Rules;
use crate::parts::hosting::voters;
use crate::views::{self, Change, Roster};

impl<P: OverViews + Inspect, R: Rules> Inspect for Agreed<P, R> {
    fn replicas(&self, now: LocalTime, name: &Name) -> Vec<ReplicaReport> {
        self.inside.replicas(now, name)
    }

    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        self.inside.local(now, name)
    }

    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        self.inside.names(after, limit)
    }

    fn view(&self, now: LocalTime) -> Option<ViewReport> {
        let roster = self.views.roster();
        let member = |peer: PeerId| MemberReport {
            peer,
            since: roster.and_then(|roster| roster.since(peer)).map_or(0, views::count),
            forgot: self.views.has_forgotten(peer),
            silent_for: self.silent_for(peer, now),
        };
        let members: Vec<_> = roster.into_iter().flat_map(Roster::members).map(member).collect();
        let quorum = Quorum::of_view(members.len());
        let standing = self.standing(now, &members);
        Some(ViewReport {
            number: roster.map_or(0, Roster::count),
            forced: self.is_forced(),
            gets_locks: self.gets_locks(now, &members, standing),
            standing,
            members,
            votes: (quorum.n() as u16, quorum.m() as u16),
            strangers: self.views.strangers().collect(),
            rivals: self.views.rivals().collect(),
            outdated: self.views.outdated().collect(),
            vouched_in: self.views.vouched_in(now),
        })
    }

    fn seats(&self, name: &Name) -> Vec<(u16, PeerId)> {
        let members = self.views.roster().map(Roster::seats).unwrap_or_default();
        voters(&members, name).into_iter().map(|member| (member.seat, member.peer)).collect()
    }
}

impl<P: OverViews, R: Rules> Agreed<P, R> {
    fn is_forced(&self) -> bool {
        self.views.roster().is_some_and(|roster| roster.last() == Change::Forget)
    }

    /// For how long a member has not been reached, as far as this peer knows.
    fn silent_for(&self, peer: PeerId, now: LocalTime) -> Option<Span> {
        let silent = peer != self.me && !self.views.reaches(peer);
        silent.then(|| self.views.silent_since(peer).map_or(Span::ZERO, |since| now.since(since)))
    }

    /// A peer that does not vote asks the members all the same, as a client does.
    fn gets_locks(&self, now: LocalTime, members: &[MemberReport], standing: Standing) -> bool {
        let votes = |member: &&MemberReport| {
            let mute = member.peer == self.me && standing != Standing::Voting;
            !mute && member.silent_for.is_none() && !member.forgot
        };
        let needed = members.len() / 2 + 1;
        // Where an operator had somebody forgotten, or hosts without disks have made a swarm, nobody votes for a while.
        let founder = self.since == 1;
        let nobody = (self.is_forced() || founder) && matches!(standing, Standing::Learning { .. });
        !nobody
            && !self.views.has_rivals()
            && !members.is_empty()
            && members.iter().filter(votes).count() >= needed
            && self.views.counts_until(now) > now
    }

    fn standing(&self, now: LocalTime, members: &[MemberReport]) -> Standing {
        if let Some((here, expected)) = self.views.founding() {
            let pledged_to = self.views.pledged_to();
            return Standing::Founding { here: here as u16, expected: expected as u16, pledged_to };
        }
        match (self.views.standing(), self.views.loss()) {
            (views::Standing::Member, _) if self.views.is_vouched_for() => {}
            (views::Standing::Member, _) => return Standing::Unvouched,
            (_, Some(views::Loss::OldDisk)) => return Standing::OldDisk,
            (views::Standing::Outside, None) => return Standing::Outside,
            (views::Standing::Lost, _) | (_, Some(views::Loss::Gone)) => return Standing::Lost,
        }
        let votes = |member: &&MemberReport| member.silent_for.is_none() && !member.forgot;
        let up = members.iter().filter(votes).count();
        let needed = members.len() / 2 + 1;
        if up < needed || self.views.counts_until(now) <= now {
            Standing::Minority { up: up as u16, needed: needed as u16 }
        } else if self.views.is_astray() || self.views.has_rivals() {
            Standing::Unvouched
        } else if self.promises_from > now {
            Standing::Learning { for_at_most: self.promises_from.since(now) }
        } else {
            Standing::Voting
        }
    }
}
