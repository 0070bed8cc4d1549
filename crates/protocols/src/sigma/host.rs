//! A peer as a host: its replicas, made on demand and forgotten when idle.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use sigmalock_core::{
    Birth, Context, Echo, Incarnation, LocalTime, Name, PeerId, ReplicaId, ReplicaReport, Span,
    Token,
};

use super::inspect;
use super::message::{Ask, Claim, GrantId, Message, Renewal, Spent, Ticket};
use super::replica::Replica;
use super::{Config, Durable, DurableKey, Mutant, Note, Sigma};
use crate::parts::HybridClock;

/// What the replicas of one host share.
#[derive(Debug, Clone)]
pub(super) struct Desk {
    pub(super) config: Config,
    pub(super) incarnation: Incarnation,
    /// Until then this host may have votes out that it does not remember.
    pub(super) abstain_until: LocalTime,
    /// As high as every token of every name this host has forgotten.
    pub(super) floor: Token,
    /// Whether the disk says that whatever was voted is on it. It must not, as long as a forgotten
    /// vote may be out: a second restart would take the disk's word.
    pub(super) disk_vouches: bool,
    /// The last response and grant numbers; never reset, so that a replica forgotten and made anew
    /// is not mistaken for its own past.
    pub(super) responses: u64,
    pub(super) grants: u64,
    pub(super) clock: HybridClock,
}

impl Desk {
    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.config.breaks(mutant)
    }

    /// When it begins to vote, if it abstains.
    pub(super) fn voting_at(&self, now: LocalTime) -> LocalTime {
        if self.abstain_until > now { self.abstain_until } else { LocalTime::NEVER }
    }

    /// Before the first vote: from here on the disk knows them all.
    pub(super) fn vouch(&mut self, cx: Cx<'_, '_>) {
        if self.config.durable && !self.disk_vouches {
            self.disk_vouches = true;
            cx.persist(DurableKey::Floor, Some(Durable::Floor(self.floor)));
        }
    }

    pub(super) fn next_grant(&mut self) -> GrantId {
        self.grants += 1;
        GrantId { life: self.incarnation, number: self.grants }
    }
}

/// The host's side of Sigma.
#[derive(Debug, Clone)]
pub(super) struct Host {
    desk: Desk,
    replicas: BTreeMap<ReplicaId, Replica>,
}

type Cx<'a, 'b> = &'a mut Context<'b, Sigma>;

impl Host {
    pub(super) fn start(
        config: Config, cx: Cx<'_, '_>, incarnation: Incarnation, birth: Birth<Sigma>,
    ) -> Self {
        let now = cx.now();
        let mut desk = Desk {
            config,
            incarnation,
            abstain_until: LocalTime::MIN,
            floor: Token::default(),
            disk_vouches: false,
            responses: 0,
            grants: 0,
            clock: HybridClock::default(),
        };
        let mut replicas = BTreeMap::new();
        let mut remembers = matches!(birth, Birth::First);
        if let Birth::Recovered(records) = birth {
            for (key, record) in records {
                match (key, record) {
                    (DurableKey::Replica(id), Durable::Replica(saved)) => {
                        let mut replica = Replica::new(id.clone(), &desk, now);
                        replica.restore(&mut desk, now, &saved);
                        replica.on_timer(&mut desk, cx);
                        replicas.insert(id, replica);
                    }
                    (DurableKey::Floor, Durable::Floor(floor)) => {
                        desk.floor = floor;
                        remembers = true;
                    }
                    _ => cx.note(Note::Malformed),
                }
            }
        }
        if !remembers && !desk.breaks(Mutant::VotesWithoutMemory) {
            desk.abstain_until = now + desk.config.lease_max;
        }
        if !desk.config.durable {
            cx.persist(DurableKey::Floor, None);
        } else if remembers {
            desk.vouch(cx);
        }
        Self { desk, replicas }
    }

    pub(super) fn on_request(&mut self, cx: Cx<'_, '_>, from: PeerId, ask: &Ask) {
        self.on_ask(cx, from, ask, |replica, desk, cx| {
            replica.on_request(desk, cx, ask);
        });
    }

    pub(super) fn on_yield(&mut self, cx: Cx<'_, '_>, from: PeerId, ask: &Ask, grant: GrantId) {
        self.on_ask(cx, from, ask, |replica, desk, cx| {
            replica.on_yield(desk, cx, ask, grant);
        });
    }

    pub(super) fn on_seal(
        &mut self, cx: Cx<'_, '_>, from: PeerId, ask: &Ask, grant: GrantId, token: Token,
    ) {
        self.on_ask(cx, from, ask, |replica, desk, cx| {
            replica.on_seal(desk, cx, ask, grant, token);
        });
    }

    pub(super) fn on_release(
        &mut self, cx: Cx<'_, '_>, from: PeerId, id: &ReplicaId, ticket: Ticket, spent: Spent,
    ) {
        if ticket.request.client != from {
            return cx.note(Note::Malformed);
        }
        self.with_replica(cx, id, |replica, desk, cx| {
            replica.on_release(desk, cx, ticket, spent);
        });
    }

    pub(super) fn on_renew(
        &mut self, cx: Cx<'_, '_>, from: PeerId, sent: LocalTime, claims: &[Claim],
    ) {
        let echo = Echo { sent, heard: cx.now().stamp() };
        if claims.len() > self.desk.config.limits.claims_max {
            return cx.note(Note::Malformed);
        }
        let mine = claims.iter().filter(|claim| claim.ticket.request.client == from);
        let renewals: Vec<Renewal> = mine
            .map(|claim| Renewal {
                call: claim.ticket.request.call,
                index: claim.replica.index,
                grant: claim.grant,
                good: self
                    .replicas
                    .get_mut(&claim.replica)
                    .is_some_and(|replica| replica.on_claim(&mut self.desk, cx, claim, echo)),
            })
            .collect();
        cx.send(from, Message::Renewed { echo, renewals });
    }

    pub(super) fn on_timer(&mut self, cx: Cx<'_, '_>, id: &ReplicaId) {
        let Some(replica) = self.replicas.get_mut(id) else { return };
        if replica.on_timer(&mut self.desk, cx) {
            return;
        }
        self.desk.floor = self.desk.floor.max(replica.highest_token());
        self.replicas.remove(id);
        if self.desk.config.durable {
            cx.persist(DurableKey::Floor, Some(Durable::Floor(self.desk.floor)));
            cx.persist(DurableKey::Replica(id.clone()), None);
        }
    }

    /// How many replicas this host remembers.
    pub(super) fn len(&self) -> usize {
        self.replicas.len()
    }

    pub(super) fn reports(&self, now: LocalTime, name: &Name) -> Vec<ReplicaReport> {
        let first = ReplicaId { name: name.clone(), index: 0 };
        let of_name = self.replicas.range(first..=inspect::beyond(name));
        of_name.map(|(_, replica)| replica.report(&self.desk, now)).collect()
    }

    /// The name of each replica, in order.
    pub(super) fn names_after(&self, after: Option<&Name>) -> impl Iterator<Item = &Name> {
        let from = after.map_or(Bound::Unbounded, |name| Bound::Excluded(inspect::beyond(name)));
        self.replicas.range((from, Bound::Unbounded)).map(|(id, _)| &id.name)
    }

    fn on_ask(
        &mut self, cx: Cx<'_, '_>, from: PeerId, ask: &Ask,
        then: impl FnOnce(&mut Replica, &mut Desk, Cx<'_, '_>),
    ) {
        let sane = ask.ticket.request.client == from
            && ask.ttl > Span::ZERO
            && ask.ttl <= self.desk.config.lease_max;
        if !sane {
            return cx.note(Note::Malformed);
        }
        self.desk.clock.observe(ask.ticket.order);
        self.with_replica(cx, &ask.replica, then);
    }

    fn with_replica(
        &mut self, cx: Cx<'_, '_>, id: &ReplicaId,
        then: impl FnOnce(&mut Replica, &mut Desk, Cx<'_, '_>),
    ) {
        if usize::from(id.index) >= self.desk.config.quorum.n() {
            return cx.note(Note::Malformed);
        }
        if !self.replicas.contains_key(id) {
            if self.replicas.len() >= self.desk.config.limits.replicas_max {
                return cx.note(Note::TooManyReplicas);
            }
            self.replicas.insert(id.clone(), Replica::new(id.clone(), &self.desk, cx.now()));
        }
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.touch(&self.desk, cx);
            then(replica, &mut self.desk, cx);
            // A no-op, but for one mutant.
            replica.save_now(&self.desk, cx);
        }
    }
}
