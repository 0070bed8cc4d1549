//! What the agent adds to the picture of the protocol inside: its users.

use alloc::vec::Vec;

use sigmalock_core::{
    CallId, HolderReport, Inspect, LocalReport, LocalTime, Mode, Name, PeerId, Protocol,
    ReplicaReport, ViewReport, WAITERS_SHOWN_MAX,
};

use super::{Agent, passed_from};

impl<P: Protocol, R> Agent<P, R> {
    /// The user whose own request in the swarm this is.
    fn whose(&self, call: CallId) -> Option<CallId> {
        passed_from(call).or_else(|| self.slots.get(&call).copied())
    }
}

impl<P: Protocol + Inspect, R> Inspect for Agent<P, R> {
    fn replicas(&self, now: LocalTime, name: &Name) -> Vec<ReplicaReport> {
        self.inner.replicas(now, name)
    }

    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        let inner = self.inner.local(now, name);
        let mut report = LocalReport { votes: inner.votes, ..LocalReport::default() };
        // Those who have requests of their own in the swarm, and then those who queue here.
        for holder in &inner.holders {
            if let Some(call) = self.whose(holder.call) {
                report.holders.push(HolderReport { call, ..*holder });
            }
        }
        // Whoever waits for a permit does so once, and for every slot in the swarm.
        report.waiters.extend(inner.waiters.iter().filter_map(|call| passed_from(*call)));
        let permits = self.permits.iter().filter(|(_, permit)| permit.waits_for(name));
        report.waiters.extend(permits.map(|(user, _)| *user));
        report.waiters.sort_unstable();
        report.waiting = report.waiters.len() as u32;
        report.waiters.truncate(WAITERS_SHOWN_MAX);
        let Some(local) = self.locks.get(name) else { return report };
        report.holders.extend(local.inside.as_ref().map(|user| {
            let same = |holder: &&HolderReport| holder.call == user.grant.call;
            HolderReport {
                call: user.call,
                mode: Mode::Exclusive,
                request: inner.holders.iter().find(same).and_then(|holder| holder.request),
                token: user.grant.token,
                held_for: now.since(user.since),
                ends_in: user.grant.deadline.since(now),
            }
        }));
        let room = WAITERS_SHOWN_MAX.saturating_sub(report.waiters.len());
        report.waiters.extend(local.waiting.iter().take(room).map(|waiter| waiter.call));
        report.waiting += u32::try_from(local.waiting.len()).unwrap_or(u32::MAX);
        report
    }

    /// All that users want is asked of the protocol inside, so it knows the names.
    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        self.inner.names(after, limit)
    }

    fn view(&self, now: LocalTime) -> Option<ViewReport> {
        self.inner.view(now)
    }

    fn seats(&self, name: &Name) -> Vec<(u16, PeerId)> {
        self.inner.seats(name)
    }
}
