//! Figure 6: the replica.

use alloc::collections::BTreeSet;

use sigmalock_core::{LocalTime, PeerId, ReplicaId, Span};

use super::{Cx, Literal, LiteralBody, LiteralConfig, LiteralMessage, LiteralNote, LiteralTimer};

/// The most a replica queues and the most replicas a peer hosts; what is beyond is dropped.
const BOUND: usize = 1 << 16;
/// The paper does not say what TCS is before the second release; a second.
const TCS_AT_FIRST: Span = Span::from_secs(1);

/// One of the n.
#[derive(Debug, Clone, Default)]
pub(super) struct Replica {
    /// Cowner and Towner.
    pub(super) owner: Option<(PeerId, u64)>,
    /// By timestamp.
    pub(super) queue: BTreeSet<(u64, PeerId)>,
    pub(super) grants: u64,
    /// For TCS: the latest release, the sum of the intervals between releases, their number.
    released: Option<LocalTime>,
    intervals: (Span, u64),
}

impl Literal {
    pub(super) fn on_request(
        &mut self, cx: &mut Cx<'_>, id: &ReplicaId, client: PeerId, timestamp: u64,
    ) {
        let known = self.replicas.get(id);
        if known.map_or(self.replicas.len(), |replica| replica.queue.len()) >= BOUND {
            return cx.note(LiteralNote::Full);
        }
        let replica = self.replicas.entry(id.clone()).or_default();
        if replica.owner.is_none() {
            replica.set_owner(cx, &self.config, id, client, timestamp);
        } else {
            replica.queue.insert((timestamp, client));
        }
        replica.send_response(cx, &self.config, id, client, true);
    }

    pub(super) fn on_release(&mut self, cx: &mut Cx<'_>, id: &ReplicaId, client: PeerId) {
        let Some(replica) = self.replicas.get_mut(id) else { return };
        if replica.is_owned_by(client) {
            replica.owner = None;
            replica.count_release(cx.now());
            if !replica.queue.is_empty() {
                replica.resp_queue(cx, &self.config, id);
            }
        } else if let Some(entry) = replica.queue.iter().find(|(_, c)| *c == client).copied() {
            replica.queue.remove(&entry);
        }
    }

    pub(super) fn on_yield(&mut self, cx: &mut Cx<'_>, id: &ReplicaId, client: PeerId) {
        let Some(replica) = self.replicas.get_mut(id) else { return };
        if let Some((owner, timestamp)) = replica.owner.filter(|(owner, _)| *owner == client) {
            replica.queue.insert((timestamp, owner));
            replica.resp_queue(cx, &self.config, id);
            if !replica.is_owned_by(client) {
                replica.send_response(cx, &self.config, id, client, true);
            }
        }
    }

    pub(super) fn on_renew(&mut self, cx: &mut Cx<'_>, id: ReplicaId, client: PeerId) {
        let owned = self.replicas.get(&id).is_some_and(|replica| replica.is_owned_by(client));
        if let Some(lease) = self.config.lease.filter(|_| owned) {
            cx.set_timer(LiteralTimer::Expire(id.clone()), cx.now() + lease);
            cx.send(client, LiteralMessage { replica: id, body: LiteralBody::Renewed });
        }
    }

    /// "When the lease expires, replica will grant permission to the next client (if any)."
    pub(super) fn on_expire(&mut self, cx: &mut Cx<'_>, id: &ReplicaId) {
        let Some(replica) = self.replicas.get_mut(id) else { return };
        replica.owner = None;
        if !replica.queue.is_empty() {
            replica.resp_queue(cx, &self.config, id);
        }
    }
}

impl Replica {
    fn is_owned_by(&self, client: PeerId) -> bool {
        self.owner.is_some_and(|(owner, _)| owner == client)
    }

    fn resp_queue(&mut self, cx: &mut Cx<'_>, config: &LiteralConfig, id: &ReplicaId) {
        if let Some((timestamp, client)) = self.queue.pop_first() {
            self.set_owner(cx, config, id, client, timestamp);
            self.send_response(cx, config, id, client, false);
        }
    }

    fn set_owner(
        &mut self, cx: &mut Cx<'_>, config: &LiteralConfig, id: &ReplicaId, client: PeerId,
        timestamp: u64,
    ) {
        self.owner = Some((client, timestamp));
        self.grants = self.grants.saturating_add(1);
        if let Some(lease) = config.lease {
            cx.set_timer(LiteralTimer::Expire(id.clone()), cx.now() + lease);
        }
    }

    fn send_response(
        &self, cx: &mut Cx<'_>, config: &LiteralConfig, id: &ReplicaId, to: PeerId, asked: bool,
    ) {
        let Some((owner, timestamp)) = self.owner else {
            return debug_assert!(false, "a replica that answers has an owner");
        };
        let wait = config.informed_backoff.then(|| self.advised_wait(to));
        let body = LiteralBody::Response { owner, timestamp, grant: self.grants, wait, asked };
        cx.send(to, LiteralMessage { replica: id.clone(), body });
    }

    /// Tw = TCS · (P + ½).
    fn advised_wait(&self, client: PeerId) -> Span {
        let position = self.queue.iter().position(|(_, c)| *c == client).unwrap_or(0);
        let (sum, count) = self.intervals;
        let tcs = if count == 0 { TCS_AT_FIRST } else { sum / count };
        tcs * (2 * position as u64 + 1) / 2
    }

    fn count_release(&mut self, now: LocalTime) {
        if let Some(before) = self.released.replace(now) {
            self.intervals = (self.intervals.0 + now.since(before), self.intervals.1 + 1);
        }
    }
}
