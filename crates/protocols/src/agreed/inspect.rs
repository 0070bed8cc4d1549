//! What people get to see of it.

use alloc::vec::Vec;

use sigmalock_core::{
    Inspect, LocalReport, LocalTime, MemberReport, Name, PeerId, ReplicaReport, Standing,
    ViewReport,
};

use super::{Agreed, OverViews};
use crate::parts::Rules;
use crate::parts::hosting::voters;
use crate::views::Roster;

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
        let mut report = self.views.view(now)?;
        if report.standing == Standing::Voting && self.promises_from > now {
            report.standing = Standing::Learning { for_at_most: self.promises_from.since(now) };
        }
        report.gets_locks = self.gets_locks(now, &report);
        Some(report)
    }

    fn seats(&self, name: &Name) -> Vec<(u16, PeerId)> {
        let members = self.views.roster().map(Roster::seats).unwrap_or_default();
        voters(&members, name).into_iter().map(|member| (member.seat, member.peer)).collect()
    }
}

impl<P: OverViews, R: Rules> Agreed<P, R> {
    /// A peer that does not vote asks the members all the same, as a client does.
    fn gets_locks(&self, now: LocalTime, view: &ViewReport) -> bool {
        let ViewReport { members, standing, forced, .. } = view;
        let votes = |member: &&MemberReport| {
            let mute = member.peer == self.me && *standing != Standing::Voting;
            !mute && member.silent_for.is_none() && !member.forgot
        };
        let needed = members.len() / 2 + 1;
        // Where an operator had somebody forgotten, or hosts without disks have made a swarm, nobody votes for a while.
        let founder = self.since == 1;
        let nobody = (*forced || founder) && matches!(standing, Standing::Learning { .. });
        !nobody
            && !self.views.has_rivals()
            && !members.is_empty()
            && members.iter().filter(votes).count() >= needed
            && self.views.counts_until(now) > now
    }
}
