//! A peer as a host: its replicas, made on demand and forgotten when idle.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::ops::Bound;

use sigmalock_core::{
    Birth, Echo, Incarnation, LocalTime, Mode, Name, Part, PeerId, ReplicaId, ReplicaReport, Span,
    Token, View,
};

use super::inspect;
use super::message::{Ask, Claim, GrantId, HandOffId, Message, Renewal, Spent, Ticket};
use super::neighbours::Neighbours;
use super::replica::Replica;
use super::state_transfer::StateTransfer;
use super::{Config, Cx, Durable, DurableKey, Mutant, Note, Sigma, Timer};
use crate::parts::Rules;
use crate::parts::{Hosting, HybridClock, Quorum};

/// What the replicas of one host share.
#[derive(Debug, Clone, Hash)]
pub(super) struct HostState<R> {
    pub(super) me: PeerId,
    pub(super) config: Config<R>,
    /// Whether others may host tomorrow.
    pub(super) moves: bool,
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
    pub(super) hand_offs: u64,
    /// Counts changes of the driver's view of who hosts what, which come with PeerUp, PeerDown and Leave.
    pub(super) views: u64,
    pub(super) clock: HybridClock,
    /// The other peers, where hosting moves.
    pub(super) neighbours: Neighbours,
    /// This peer is about to go, and has been told so.
    pub(super) leaving: bool,
}

impl<R: Rules> HostState<R> {
    pub(super) fn breaks(&self, mutant: Mutant) -> bool {
        self.config.breaks(mutant)
    }

    /// When it begins to vote, if it abstains.
    pub(super) fn voting_at(&self, now: LocalTime) -> LocalTime {
        if self.abstain_until > now { self.abstain_until } else { LocalTime::NEVER }
    }

    /// Before the first vote: from here on the disk knows them all.
    pub(super) fn vouch(&mut self, cx: Cx<'_, '_, impl Rules>) {
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
#[derive(Debug, Clone, Hash)]
pub(super) struct Host<R> {
    pub(super) state: HostState<R>,
    pub(super) replicas: BTreeMap<ReplicaId, Replica>,
    /// Hand-offs taken, and until when copies of them may come.
    pub(super) taken: BTreeMap<HandOffId, LocalTime>,
    /// What it has found out so far, as the newcomer of a view.
    pub(super) state_transfer: Option<StateTransfer>,
    /// The newest view as whose newcomer it knows what the others promised.
    pub(super) settled: u64,
}

impl<R: Rules> Host<R> {
    pub(super) fn start(
        me: PeerId, config: Config<R>, cx: Cx<'_, '_, R>, incarnation: Incarnation,
        birth: Birth<Sigma<R>>,
    ) -> Self {
        let now = cx.now();
        let state = HostState {
            me,
            config,
            moves: cx.hosting.moves(),
            incarnation,
            abstain_until: LocalTime::MIN,
            floor: Token::default(),
            disk_vouches: false,
            responses: 0,
            grants: 0,
            hand_offs: 0,
            views: 1,
            clock: HybridClock::default(),
            neighbours: Neighbours::default(),
            leaving: false,
        };
        let (replicas, taken) = (BTreeMap::new(), BTreeMap::new());
        let mut host = Self { state, replicas, taken, state_transfer: None, settled: 0 };
        let remembers = match birth {
            Birth::First => true,
            Birth::Amnesiac => false,
            Birth::Recovered(records) => host.recover(cx, records),
        };
        let Self { state, replicas, .. } = &mut host;
        if !remembers && !state.breaks(Mutant::VotesWithoutMemory) {
            state.abstain_until = now + state.config.lease_max;
        }
        if !state.config.durable {
            cx.persist(DurableKey::Floor, None);
        } else if remembers {
            state.vouch(cx);
        }
        // Only now is it known whether it may vote.
        for replica in replicas.values_mut() {
            replica.on_timer(state, cx);
        }
        host
    }

    /// Takes the disk's word, which comes in any order. False if the disk does not vouch for all votes.
    fn recover(&mut self, cx: Cx<'_, '_, R>, records: Vec<(DurableKey, Durable)>) -> bool {
        let now = cx.now();
        let mut waiters = Vec::new();
        let mut vouches = false;
        for (key, record) in records {
            match (key, record) {
                (DurableKey::Replica(id), Durable::Replica(saved)) => {
                    let mut replica = Replica::new(id.clone(), &self.state, now);
                    replica.restore(&mut self.state, now, &saved);
                    self.replicas.insert(id, replica);
                }
                (DurableKey::Waiter { replica, ticket }, Durable::Waiter(ttl)) => {
                    waiters.push((replica, ticket, ttl));
                }
                (DurableKey::Floor, Durable::Floor(floor)) => {
                    self.state.floor = floor;
                    vouches = true;
                }
                _ => cx.note(Note::Malformed),
            }
        }
        for (id, ticket, ttl) in waiters {
            let Self { state, replicas, .. } = &mut *self;
            let replica = replicas.entry(id);
            let replica = replica.or_insert_with_key(|id| Replica::new(id.clone(), state, now));
            replica.restore_waiter(state, now, ticket, ttl);
        }
        vouches
    }

    pub(super) fn on_request(&mut self, cx: Cx<'_, '_, R>, from: PeerId, ask: &Ask) {
        self.on_ask(cx, from, ask, |replica, state, cx| {
            replica.on_request(state, cx, ask);
        });
    }

    pub(super) fn on_yield(&mut self, cx: Cx<'_, '_, R>, from: PeerId, ask: &Ask, grant: GrantId) {
        self.on_ask(cx, from, ask, |replica, state, cx| {
            replica.on_yield(state, cx, ask, grant);
        });
    }

    pub(super) fn on_seal(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, ask: &Ask, grant: GrantId, token: Token,
    ) {
        self.on_ask(cx, from, ask, |replica, state, cx| {
            replica.on_seal(state, cx, ask, grant, token);
        });
    }

    pub(super) fn on_withdraw(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, id: &ReplicaId, ticket: Ticket,
        grant: Option<GrantId>,
    ) {
        if ticket.request.client != from {
            return cx.note(Note::Malformed);
        }
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.on_withdraw(&mut self.state, cx, ticket, grant);
        }
    }

    pub(super) fn on_release(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, id: &ReplicaId, ticket: Ticket, spent: Spent,
    ) {
        if ticket.request.client != from {
            return cx.note(Note::Malformed);
        }
        // What is still here goes as it is to whoever hosts it now, so it had better be up to date.
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.touch(&self.state, cx);
            replica.on_release(&mut self.state, cx, ticket, spent);
            self.sends_on(cx, id, ticket);
        } else {
            self.with_replica(cx, id, ticket, |replica, state, cx| {
                replica.on_release(state, cx, ticket, spent);
            });
        }
    }

    pub(super) fn on_renew(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, sent: LocalTime, claims: &[Claim],
    ) {
        let echo = Echo { sent, heard: cx.now().stamp() };
        if claims.len() > self.state.config.limits.claims_max {
            return cx.note(Note::Malformed);
        }
        let mine = claims.iter().filter(|claim| claim.ticket.request.client == from);
        let mut renewals = Vec::new();
        for claim in mine {
            if self.sends_on(cx, &claim.replica, claim.ticket) {
                continue;
            }
            let Self { state, replicas, .. } = &mut *self;
            let good = match replicas.get_mut(&claim.replica) {
                Some(replica) => replica.on_claim(state, cx, claim, echo),
                None => Some(false),
            };
            renewals.extend(good.map(|good| Renewal {
                call: claim.ticket.request.call,
                index: claim.replica.index,
                grant: claim.grant,
                good,
            }));
        }
        if !renewals.is_empty() || !self.state.moves {
            cx.send(from, Message::Renewed { echo, renewals });
        }
    }

    pub(super) fn on_timer(&mut self, cx: Cx<'_, '_, R>, id: &ReplicaId) {
        let Some(replica) = self.replicas.get_mut(id) else { return };
        if replica.on_timer(&mut self.state, cx) {
            return;
        }
        self.state.floor = self.state.floor.max(replica.highest_token());
        self.replicas.remove(id);
        if self.state.config.durable {
            cx.persist(DurableKey::Floor, Some(Durable::Floor(self.state.floor)));
            cx.persist(DurableKey::Replica(id.clone()), None);
        }
    }

    /// Peers have agreed on another membership.
    pub(super) fn on_view(&mut self, cx: Cx<'_, '_, R>, view: &View) {
        self.state.views += 1;
        self.state.config.quorum = Quorum::of_view(view.members.len());
        self.state_transfer = None;
        match view.part {
            // Others may have shown tokens meanwhile that this host does not know.
            Part::Stays | Part::Outside => {
                self.replicas.values_mut().for_each(Replica::lose_certainty);
            }
            Part::Returned => self.forget_all(cx),
            Part::Newcomer => {
                self.forget_all(cx);
                self.join(cx, view);
            }
        }
        self.reconsider_all(cx);
    }

    /// What was promised in another membership is void; tokens are not. A newcomer would go on with it beside what
    /// it takes on. (Who returned waits for a lease, by when it would be over.) What stayed on disk would do no harm,
    /// because whoever gets the vote next is written there instead; but a restart would give it back to somebody who
    /// is gone.
    fn forget_all(&mut self, cx: Cx<'_, '_, R>) {
        if self.state.breaks(Mutant::KeepsOldVotes) {
            return self.replicas.values_mut().for_each(Replica::lose_certainty);
        }
        for (id, mut replica) in core::mem::take(&mut self.replicas) {
            self.raise_floor(cx, replica.highest_token());
            cx.cancel_timer(Timer::Replica(id));
            replica.erase(&self.state, cx);
        }
    }

    /// Whether nothing is left here, nor on its way to another host.
    pub(super) fn has_handed_over(&self) -> bool {
        self.replicas.is_empty() && self.state.neighbours.under_way() == 0
    }

    /// How many replicas this host remembers.
    pub(super) fn len(&self) -> usize {
        self.replicas.len()
    }

    pub(super) fn reports(
        &self, hosting: &dyn Hosting, now: LocalTime, name: &Name,
    ) -> Vec<ReplicaReport> {
        let first = ReplicaId { name: name.clone(), index: 0 };
        let of_name = self.replicas.range(first..=inspect::beyond(name));
        of_name.map(|(_, replica)| replica.report(&self.state, hosting, now)).collect()
    }

    /// The name of each replica, in order.
    pub(super) fn names_after(&self, after: Option<&Name>) -> impl Iterator<Item = &Name> {
        let from = after.map_or(Bound::Unbounded, |name| Bound::Excluded(inspect::beyond(name)));
        self.replicas.range((from, Bound::Unbounded)).map(|(id, _)| &id.name)
    }

    fn on_ask(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, ask: &Ask,
        then: impl FnOnce(&mut Replica, &mut HostState<R>, Cx<'_, '_, R>),
    ) {
        let sane = ask.ticket.request.client == from
            && !matches!(ask.ticket.mode, Mode::Permit { .. })
            && ask.ticket.mode.is_possible()
            && ask.ttl > Span::ZERO
            && ask.ttl <= self.state.config.lease_max;
        if !sane {
            return cx.note(Note::Malformed);
        }
        self.state.clock.observe(ask.ticket.order);
        self.with_replica(cx, &ask.replica, ask.ticket, then);
    }

    fn with_replica(
        &mut self, cx: Cx<'_, '_, R>, id: &ReplicaId, ticket: Ticket,
        then: impl FnOnce(&mut Replica, &mut HostState<R>, Cx<'_, '_, R>),
    ) {
        if !cx.hosting.has_replica(id.index) {
            return cx.note(Note::Malformed);
        }
        if self.sends_on(cx, id, ticket) {
            return;
        }
        if !self.make(cx, id) {
            return cx.note(Note::TooManyReplicas);
        }
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.touch(&self.state, cx);
            then(replica, &mut self.state, cx);
        }
    }

    /// Sees to it that there is such a replica. False if there are too many.
    pub(super) fn make(&mut self, cx: Cx<'_, '_, R>, id: &ReplicaId) -> bool {
        if !self.replicas.contains_key(id) {
            if self.replicas.len() >= self.state.config.limits.replicas_max {
                return false;
            }
            self.replicas.insert(id.clone(), Replica::new(id.clone(), &self.state, cx.now()));
        }
        true
    }

    /// Whether somebody else hosts that replica. Where hosts hand over, the client is told who; where peers
    /// agree on who is in, it will find out.
    fn sends_on(&mut self, cx: Cx<'_, '_, R>, id: &ReplicaId, ticket: Ticket) -> bool {
        let here = self.replicas.get_mut(id);
        let mine = here.is_some_and(|replica| replica.stubborn || replica.is_mine(&self.state, cx));
        if !self.state.moves || mine {
            return false;
        }
        let host = cx.hosting.host_of(id);
        if !cx.hosting.hands_over() {
            return host != Some(self.state.me);
        }
        let host = host.filter(|host| *host != self.state.me);
        if let Some(to) = host {
            cx.note(Note::SentOn);
            let replica = id.clone();
            cx.send(ticket.request.client, Message::Moved { replica, ticket, to });
        }
        host.is_some()
    }
}
