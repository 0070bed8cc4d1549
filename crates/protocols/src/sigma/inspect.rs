//! What Sigma shows of itself to people.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use sigmalock_core::report::{OWNERS_SHOWN_MAX, WAITERS_SHOWN_MAX};
use sigmalock_core::{
    CallId, HolderReport, Inspect, LocalReport, LocalTime, Name, ReplicaId, ReplicaReport,
    VotesReport,
};

use super::Sigma;
use super::attempt::Attempt;
use super::client::Client;
use super::seat::News;
use crate::parts::{Rules, User};

impl<R: Rules> Inspect for Sigma<R> {
    fn replicas(&self, now: LocalTime, name: &Name) -> Vec<ReplicaReport> {
        let host = self.roles.as_ref().map(|(_, host)| host);
        host.map_or_else(Vec::new, |host| host.reports(&*self.hosting, now, name))
    }

    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        self.roles
            .as_ref()
            .map_or_else(LocalReport::default, |(client, _)| client.report(now, name))
    }

    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        let Some((client, host)) = &self.roles else { return Vec::new() };
        let mut names: BTreeSet<&Name> = client.names_after(after).collect();
        let mut hosted: Vec<&Name> = Vec::new();
        for name in host.names_after(after) {
            // A name's replicas come one after the other.
            if hosted.last() != Some(&name) {
                if hosted.len() == limit {
                    break;
                }
                hosted.push(name);
            }
        }
        names.extend(hosted);
        names.into_iter().take(limit).cloned().collect()
    }
}

impl<R: Rules> Client<R> {
    fn report(&self, now: LocalTime, name: &Name) -> LocalReport {
        let mut report = LocalReport::default();
        let mut waiting: Vec<&Attempt> = Vec::new();
        for attempt in self.attempts().filter(|attempt| attempt.name == *name) {
            match attempt.guard() {
                Some(guard) if report.holders.len() < OWNERS_SHOWN_MAX => {
                    report.holders.push(HolderReport {
                        call: attempt.call(),
                        mode: attempt.ticket.mode,
                        request: Some(attempt.ticket.request),
                        token: attempt.token().map(|token| self.config().block_start(token)),
                        held_for: now.since(guard.since()),
                        ends_in: guard.deadline().since(now),
                    });
                }
                Some(_) => {}
                None => waiting.push(attempt),
            }
        }
        waiting.sort_unstable_by_key(|attempt| attempt.ticket);
        report.votes = waiting.first().map(|first| first.votes_report());
        report.waiting = waiting.len() as u32;
        let calls = waiting.iter().map(|attempt| attempt.call());
        report.waiters = calls.take(WAITERS_SHOWN_MAX).collect::<Vec<CallId>>();
        report
    }

    fn names_after<'a>(&'a self, after: Option<&'a Name>) -> impl Iterator<Item = &'a Name> {
        let names = self.attempts().map(|attempt| &attempt.name);
        names.filter(move |name| after.is_none_or(|after| *name > after))
    }
}

impl Attempt {
    fn votes_report(&self) -> VotesReport {
        let mut report = VotesReport::default();
        for seat in self.tally.seats() {
            *match seat.news {
                News::Mine(_) => &mut report.mine,
                News::Theirs(..) => &mut report.theirs,
                News::Nobody | News::Silent => &mut report.nobody,
                News::Unknown => &mut report.unknown,
            } += 1;
        }
        report
    }
}

/// The first replica of all names after this one.
pub(super) fn beyond(name: &Name) -> ReplicaId {
    ReplicaId { name: name.clone(), index: u16::MAX }
}
