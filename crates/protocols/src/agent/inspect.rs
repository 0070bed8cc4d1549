//! What the agent adds to the picture of the protocol inside: its users.

use alloc::vec::Vec;

use sigmalock_core::{
    HolderReport, Inspect, LocalReport, LocalTime, Name, Protocol, ReplicaReport, Surroundings,
    WAITERS_SHOWN_MAX,
};

use super::Agent;

impl<P: Protocol + Inspect> Inspect for Agent<P> {
    fn replicas(
        &self, around: &dyn Surroundings, now: LocalTime, name: &Name,
    ) -> Vec<ReplicaReport> {
        self.inner.replicas(around, now, name)
    }

    fn local(&self, now: LocalTime, name: &Name) -> LocalReport {
        let inside = self.inner.local(now, name);
        let Some(local) = self.locks.get(name) else { return LocalReport::default() };
        let holder = local.inside.as_ref().map(|user| HolderReport {
            call: user.call,
            request: inside.holder.and_then(|holder| holder.request),
            token: user.grant.token,
            held_for: now.since(user.since),
            ends_in: user.grant.deadline.since(now),
        });
        let waiters = local.waiting.iter().take(WAITERS_SHOWN_MAX).map(|waiter| waiter.call);
        LocalReport {
            holder,
            waiters: waiters.collect(),
            waiting: u32::try_from(local.waiting.len()).unwrap_or(u32::MAX),
            votes: inside.votes,
        }
    }

    /// All that users want is asked of the protocol inside, so it knows the names.
    fn names(&self, after: Option<&Name>, limit: usize) -> Vec<Name> {
        self.inner.names(after, limit)
    }
}
