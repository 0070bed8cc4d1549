//! How replicas move from host to host, where hosting moves.
//!
//! Whoever sees a peer appear greets it. The greeted one hands over every replica that is now the
//! newcomer's, and says when that was all. A replica that is handed off is gone from here, from memory
//! and disk, before the HAND-OFF is sent; it is sent until it is acknowledged. If the new host goes away
//! before that, nobody knows whether it has used the vote, so the replica comes back with its queue but
//! without its vote, and abstains for the longest lease.

use alloc::boxed::Box;
use alloc::vec::Vec;

use sigmalock_core::{Incarnation, LocalTime, Mode, PeerId, ReplicaId, Span, Token};

use super::host::{Host, HostState};
use super::message::{HANDED_WAITERS_MAX, HandOff, HandOffId, Hello, Message, OWNERS_MAX};
use super::neighbours::pace;
use super::replica::Replica;
use super::{Cx, Durable, DurableKey, Mutant, Note, Timer};
use crate::parts::Rules;

/// So many hand-offs are remembered, to tell copies from news. While there are more, none is taken.
const TAKEN_MAX: usize = 1 << 16;

impl<R: Rules> Host<R> {
    pub(super) fn on_peer_up(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        self.state.views += 1;
        for replica in self.replicas.values_mut() {
            replica.remind(&mut self.state, cx, peer);
        }
        if !cx.hosting.hands_over() || self.state.config.client_only {
            return;
        }
        let Some(neighbour) = self.state.neighbours.meet(peer) else { return };
        neighbour.begin(cx.now());
        self.greet(cx, peer);
        self.route_to(cx, peer);
        self.reconsider_all(cx);
    }

    pub(super) fn on_peer_down(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        self.state.views += 1;
        for replica in self.replicas.values_mut() {
            replica.dismiss(&mut self.state, cx, peer);
        }
        if !cx.hosting.hands_over() {
            return;
        }
        self.void(cx, peer);
        if let Some(neighbour) = self.state.neighbours.get_mut(peer) {
            (neighbour.up, neighbour.hello) = (false, None);
        }
        if !cx.may_vote() {
            // Cut off, or asleep: the others may go on without this host.
            self.replicas.values_mut().for_each(Replica::lose_certainty);
        }
    }

    /// Everything goes to whoever hosts it when this peer is gone.
    pub(super) fn on_leave(&mut self, cx: Cx<'_, '_, R>) {
        self.state.views += 1;
        if !cx.hosting.hands_over() {
            return;
        }
        self.state.leaving = true;
        for id in self.replicas.keys().cloned().collect::<Vec<_>>() {
            self.route(cx, id);
        }
        for peer in self.state.neighbours.ids() {
            self.pump(cx, peer);
        }
    }

    pub(super) fn on_hello(&mut self, cx: Cx<'_, '_, R>, from: PeerId, hello: Hello) {
        if !cx.hosting.hands_over() {
            return cx.note(Note::Malformed);
        }
        if self.state.config.client_only {
            let (floor, unsure, leaving) = (Token::default(), Span::ZERO, false);
            return cx.send(from, Message::HandedOver { hello, floor, unsure, leaving });
        }
        let Some(neighbour) = self.state.neighbours.meet(from) else { return };
        let before = neighbour.hello;
        if before.is_some_and(|known| known.life == hello.life && known.sent >= hello.sent) {
            return;
        }
        let reborn = before.is_some_and(|known| known.life != hello.life);
        neighbour.hello = Some(hello);
        if reborn {
            self.void(cx, from);
        }
        self.route_to(cx, from);
    }

    pub(super) fn on_handed_over(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, hello: Hello, floor: Token, unsure: Span,
        leaving: bool,
    ) {
        let (now, life) = (cx.now(), self.state.incarnation);
        let Some(neighbour) = self.state.neighbours.get_mut(from) else { return };
        if hello.life != life || hello.sent < neighbour.since || hello.sent > now {
            return cx.note(Note::StaleResponse);
        }
        neighbour.hears(now + unsure, leaving);
        self.raise_floor(cx, floor);
        self.reconsider_all(cx);
        for peer in self.state.neighbours.ids() {
            self.tell_if_surer(cx, peer);
        }
    }

    pub(super) fn on_hand_off(&mut self, cx: Cx<'_, '_, R>, from: PeerId, hand_off: &HandOff) {
        let config = &self.state.config;
        let wants = hand_off.waiters.iter().map(|waiter| waiter.ttl);
        let wants = wants.chain(hand_off.owners.iter().flat_map(|o| [o.ttl, o.vote.lease.ttl]));
        let sane = cx.hosting.hands_over()
            && hand_off.owners.len() <= OWNERS_MAX
            && Mode::all_share(hand_off.owners.iter().map(|owner| owner.ticket.mode))
            && usize::from(hand_off.replica.index) < config.quorum.n()
            && hand_off.waiters.len() <= HANDED_WAITERS_MAX
            && wants.into_iter().all(|ttl| ttl > Span::ZERO && ttl <= config.lease_max);
        if !sane {
            return cx.note(Note::Malformed);
        }
        if hand_off.to != self.state.incarnation {
            return cx.note(Note::StaleResponse);
        }
        let now = cx.now();
        let until = now + config.flight_max + config.retry_max * 2;
        let id = &hand_off.replica;
        if !self.taken.contains_key(&hand_off.id) {
            self.taken.retain(|_, until| *until > now);
            if self.taken.len() >= TAKEN_MAX || !self.make(cx, id) {
                return cx.note(Note::TooManyReplicas);
            }
            let Some(replica) = self.replicas.get_mut(id) else { return };
            cx.note(Note::TakenOver);
            self.state.vouch(cx);
            replica.adopt(&mut self.state, cx, hand_off);
            replica.touch(&self.state, cx);
        }
        // Copies come for as long as the sender has not heard of this.
        self.taken.insert(hand_off.id, until);
        cx.send(from, Message::Taken { id: hand_off.id, replica: id.clone() });
        if let Some(replica) = self.replicas.get_mut(id) {
            replica.reconsider(&mut self.state, cx);
        }
        self.route(cx, id.clone());
    }

    pub(super) fn on_taken(
        &mut self, cx: Cx<'_, '_, R>, from: PeerId, id: HandOffId, of: &ReplicaId,
    ) {
        let Some(neighbour) = self.state.neighbours.get_mut(from) else { return };
        if neighbour.under_way.get(of).is_some_and(|hand_off| hand_off.id == id) {
            neighbour.under_way.remove(of);
            neighbour.tries = 0;
            neighbour.takes_more();
            self.pump(cx, from);
        }
    }

    /// Says again what was not answered: the greeting, and what was handed off.
    pub(super) fn on_neighbour_timer(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let now = cx.now();
        let resumes = self.state.breaks(Mutant::ResumesByTimeout);
        let Some(neighbour) = self.state.neighbours.get_mut(peer).filter(|n| n.up) else { return };
        neighbour.tries = neighbour.tries.saturating_add(1);
        let again: Vec<Box<HandOff>> = neighbour.under_way.values().cloned().collect();
        let greet =
            neighbour.owes_word() && now.since(neighbour.since) < self.state.config.lease_max * 2;
        if resumes {
            neighbour.under_way.clear();
            again.iter().for_each(|hand_off| self.resume(cx, hand_off));
            return;
        }
        let idle = again.is_empty();
        for hand_off in again {
            cx.send(peer, Message::HandOff(hand_off));
        }
        if greet {
            self.greet(cx, peer);
        } else if !idle {
            self.remind(cx, peer);
        }
    }

    fn greet(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let hello = Hello { life: self.state.incarnation, sent: cx.now() };
        cx.send(peer, Message::Hello(hello));
        self.remind(cx, peer);
    }

    fn remind(&self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let config = &self.state.config;
        let tries = self.state.neighbours.get(peer).map_or(0, |neighbour| neighbour.tries);
        let pause = pace(config.round_trip_worst, tries, config.retry_max);
        let at = cx.now() + pause;
        cx.set_timer(Timer::Neighbour(peer), at);
    }

    /// Finds all that is this peer's to host, and begins to hand it over.
    fn route_to(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let Some(neighbour) = self.state.neighbours.get_mut(peer) else { return };
        if neighbour.life().is_none() {
            return;
        }
        let theirs = |(id, replica): &(&ReplicaId, &Replica)| {
            !replica.stubborn && cx.hosting.host_of(id) == Some(peer)
        };
        neighbour.waiting = self.replicas.iter().filter(theirs).map(|(id, _)| id.clone()).collect();
        self.pump(cx, peer);
    }

    /// Has a replica handed over if it is somebody else's to host.
    fn route(&mut self, cx: Cx<'_, '_, R>, id: ReplicaId) {
        let host = cx.hosting.host_of(&id).filter(|host| *host != self.state.me);
        let stubborn = self.replicas.get(&id).is_none_or(|replica| replica.stubborn);
        if let Some(host) = host
            && !stubborn
            && let Some(neighbour) = self.state.neighbours.get_mut(host)
            && neighbour.life().is_some()
        {
            neighbour.waiting.insert(id);
            self.pump(cx, host);
        }
    }

    /// Hands over what waits to be, as far as there is room, and says when that was all.
    fn pump(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        while let Some(neighbour) = self.state.neighbours.get_mut(peer)
            && let Some(to) = neighbour.life()
            && let Some(id) = neighbour.next()
        {
            self.hand_off(cx, &id, peer, to);
        }
        self.say_handed_over(cx, peer);
    }

    fn hand_off(&mut self, cx: Cx<'_, '_, R>, id: &ReplicaId, peer: PeerId, to: Incarnation) {
        let Some(mut replica) = self.replicas.remove(id) else { return };
        cx.note(Note::HandedOff);
        cx.cancel_timer(Timer::Replica(id.clone()));
        self.state.hand_offs += 1;
        let number = HandOffId { life: self.state.incarnation, number: self.state.hand_offs };
        let mut hand_off = replica.hand_off(&mut self.state, cx, number, to);
        self.raise_floor(cx, replica.highest_token());
        if self.state.breaks(Mutant::VotesAfterHandingOff) {
            (replica.stubborn, replica.alarm) = (true, crate::parts::Alarm::new());
            replica.touch(&self.state, cx);
            self.replicas.insert(id.clone(), replica);
        } else {
            replica.erase(&self.state, cx);
        }
        if self.state.breaks(Mutant::HandsOffOneReader) {
            hand_off.owners.truncate(1);
        }
        if self.state.breaks(Mutant::HandsOffWithoutTheVote) {
            hand_off.owners.clear();
        }
        let hand_off = Box::new(hand_off);
        cx.send(peer, Message::HandOff(hand_off.clone()));
        if let Some(neighbour) = self.state.neighbours.get_mut(peer) {
            neighbour.under_way.insert(id.clone(), hand_off);
        }
        self.remind(cx, peer);
    }

    /// Answers a greeting, if all that is to be handed over has been.
    fn say_handed_over(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let HostState { neighbours, floor, leaving, .. } = &mut self.state;
        let unsure_until = cx.hosting.unsure_until(peer, &|peer| neighbours.handed_over_by(peer));
        let Some(neighbour) = neighbours.get_mut(peer).filter(|n| n.up && n.has_all()) else {
            return;
        };
        if let Some(hello) = neighbour.hello {
            neighbour.told = unsure_until;
            let unsure = unsure_until.since(cx.now());
            let (floor, leaving) = (*floor, *leaving);
            cx.send(peer, Message::HandedOver { hello, floor, unsure, leaving });
        }
    }

    /// Somebody was told that this peer cannot vouch for others until some time, which has come sooner.
    fn tell_if_surer(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let neighbours = &self.state.neighbours;
        let told = neighbours.get(peer).map_or(LocalTime::MIN, |neighbour| neighbour.told);
        let unsure_until =
            |peer| cx.hosting.unsure_until(peer, &|peer| neighbours.handed_over_by(peer));
        if told > cx.now() && unsure_until(peer) < told {
            self.say_handed_over(cx, peer);
        }
    }

    /// A peer is gone, or has lost its memory of this session. What was on the way to it may have been
    /// used, or not: nobody can tell any more.
    fn void(&mut self, cx: Cx<'_, '_, R>, peer: PeerId) {
        let Some(neighbour) = self.state.neighbours.get_mut(peer) else { return };
        let under_way = core::mem::take(&mut neighbour.under_way);
        let waiting = core::mem::take(&mut neighbour.waiting);
        for (id, hand_off) in under_way {
            if !self.make(cx, &id) {
                continue;
            }
            if let Some(replica) = self.replicas.get_mut(&id) {
                replica.come_back(&self.state, cx, &hand_off);
                replica.touch(&self.state, cx);
                replica.reconsider(&mut self.state, cx);
            }
            self.route(cx, id);
        }
        for id in waiting {
            if let Some(replica) = self.replicas.get_mut(&id) {
                // It may have been tired of waiting, and begun to vote.
                replica.lose_certainty();
            }
            self.route(cx, id);
        }
    }

    /// What a mutant does about a hand-off that is not acknowledged.
    fn resume(&mut self, cx: Cx<'_, '_, R>, hand_off: &HandOff) {
        if self.make(cx, &hand_off.replica)
            && let Some(replica) = self.replicas.get_mut(&hand_off.replica)
        {
            replica.stubborn = true;
            replica.adopt(&mut self.state, cx, hand_off);
            replica.touch(&self.state, cx);
            replica.reconsider(&mut self.state, cx);
        }
    }

    /// Something has changed that may let replicas vote.
    pub(super) fn reconsider_all(&mut self, cx: Cx<'_, '_, R>) {
        for replica in self.replicas.values_mut() {
            replica.reconsider(&mut self.state, cx);
        }
    }

    pub(super) fn raise_floor(&mut self, cx: Cx<'_, '_, R>, floor: Token) {
        if floor > self.state.floor {
            self.state.floor = floor;
            if self.state.config.durable && self.state.disk_vouches {
                cx.persist(DurableKey::Floor, Some(Durable::Floor(floor)));
            }
        }
    }
}
