//! Open membership: who sees whom, and when.
//!
//! Every peer may have a [`Placement`] of its own, the very one that live peers have. Something that happens (a peer
//! starts, stops, leaves, falls asleep; a cut begins or ends) is noticed by every other peer at a moment of
//! its own: within `delay`, or, where only silence tells, within `delay` after `silence`. So views differ,
//! for no longer than `delay`. A peer that wakes from a sleep long enough for others to have given it up
//! takes all its sessions for lost before it does anything else.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::{Input, Key, LocalTime, Name, PeerId, ReplicaId, Span};
use sigmalock_protocols::parts::{Driven, Placement};

use crate::crowd::Crowd;
use crate::faults::Cut;
use crate::history::TrueTime;
use crate::population::Population;
use crate::rng::Rng;
use crate::twins::Doors;
use crate::watch::Watch;
use crate::world::{Event, World};

/// The membership of an open world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Open {
    /// How many of the hosts are there from the beginning; the others join when the plan says so.
    pub first: usize,
    /// Who is silent for so long is taken for gone.
    pub silence: Span,
    /// What happens is noticed so late at most.
    pub delay: Span,
    /// So long does somebody who is about to leave stay to hand over.
    pub linger: Span,
    /// The longest lease.
    pub lease_max: Span,
    /// If votes weigh zones of the key space: in how many cells it is measured.
    pub cells: Option<u16>,
    /// Whether hosts see which clients they can reach, as live ones do.
    pub clients_seen: bool,
}

impl Open {
    /// The longest that somebody's view is wrong, by anybody's clock: a cut is noticed when there has been
    /// silence, and who slept through something notices it later.
    fn settle(&self) -> Span {
        let longest = self.silence + self.delay * 2;
        longest + longest.millionths(20_000)
    }
}

/// Who sees whom.
#[derive(Debug, Clone)]
pub(crate) struct Overlay {
    pub(crate) open: Open,
    /// For each peer, whom it sees: which life of it.
    views: Vec<BTreeMap<usize, u32>>,
    cuts: Vec<(Cut, TrueTime)>,
    asleep: BTreeMap<usize, TrueTime>,
    /// Hosts that have been here and are expected to be.
    members: BTreeSet<usize>,
    left: BTreeSet<usize>,
    /// Who has to do with which of two that have one name.
    pub(crate) doors: Doors,
    rng: Rng,
    /// For what hosts see of clients, so that it makes no difference to what else is seen.
    rng_of_clients: Rng,
}

impl Overlay {
    pub(crate) fn new(open: Open, seed: u64) -> Self {
        Self {
            open,
            views: Vec::new(),
            cuts: Vec::new(),
            asleep: BTreeMap::new(),
            members: BTreeSet::new(),
            left: BTreeSet::new(),
            doors: Doors::new(),
            rng: Rng::split(seed, 0x6f76_6572),
            rng_of_clients: Rng::split(seed, 0x636c_6e74),
        }
    }

    /// Whether a host is not there, and not expected to come back when the world is healed.
    pub(crate) fn is_absent(&self, index: usize) -> bool {
        self.left.contains(&index) || !self.members.contains(&index)
    }

    /// Whether a peer sees another one, and which life of it.
    pub(crate) fn seen(&self, observer: usize, about: usize) -> Option<u32> {
        self.views.get(observer)?.get(&about).copied()
    }

    fn view(&mut self, index: usize) -> &mut BTreeMap<usize, u32> {
        if self.views.len() <= index {
            self.views.resize_with(index + 1, BTreeMap::new);
        }
        &mut self.views[index]
    }
}

fn key_of(seed: u64, id: PeerId) -> Key {
    let mut rng = Rng::split(seed, 0x6b65_7900_0000 ^ id.0);
    let mut key = [0; 32];
    key.chunks_mut(8).for_each(|part| part.copy_from_slice(&rng.bits().to_be_bytes()));
    Key(key)
}

/// How many cells of the key space each of these peers owns.
pub(crate) fn zones_of(seed: u64, peers: &[PeerId], cells: u16) -> BTreeMap<PeerId, u16> {
    let mut zones = BTreeMap::new();
    let Some((first, others)) = peers.split_first() else { return zones };
    let nothing = Span::ZERO;
    let view = Placement::new(*first, key_of(seed, *first), true, nothing, nothing);
    let mut view = view.by_zone(cells);
    for peer in others {
        view.up(*peer, key_of(seed, *peer), true, LocalTime::MIN);
    }
    let Ok(name) = Name::new("/zones") else { return zones };
    for index in 0..cells {
        let owner = view.host_of(&ReplicaId { name: name.clone(), index });
        *zones.entry(owner.unwrap_or(*first)).or_default() += 1;
    }
    zones
}

/// What a peer that has yet to begin sees of an open world: nobody.
pub(crate) fn placement(open: &Open, seed: u64, population: Population, me: PeerId) -> Placement {
    let hosts = me.0 < population.hosts as u64;
    let placement = Placement::new(me, key_of(seed, me), hosts, open.lease_max, open.settle());
    match open.cells {
        Some(cells) => placement.by_zone(cells),
        None => placement,
    }
}

impl<P: Driven, C: Crowd<P>, W: Watch> World<'_, P, C, W> {
    /// A peer is about to begin a life: it knows who is in the swarm, from its address book or from who it
    /// joins through, and sees nobody yet.
    pub(crate) fn enter_overlay(&mut self, index: usize) {
        let (seed, population) = (self.config.seed, self.population);
        let Some(overlay) = &mut self.overlay else { return };
        let hosts = population.is_host(index);
        let peer = &mut self.peers[index];
        let now = peer.clocks.clock.read(self.now);
        if let Some(placement) = peer.protocol.as_mut().and_then(P::placement_mut) {
            for id in overlay.members.iter().map(|member| population.id(*member)) {
                placement.expect(id, key_of(seed, id), true, now);
            }
            placement.at_least(overlay.members.len(), now);
            placement.unsettle(now);
        }
        overlay.view(index).clear();
        overlay.asleep.remove(&index);
        overlay.left.remove(&index);
        if hosts {
            overlay.members.insert(index);
        }
    }

    /// Everybody looks at a peer, and it at everybody, some time after `after`.
    pub(crate) fn schedule_looks(&mut self, index: usize, after: Span) {
        if self.overlay.is_none() {
            return;
        }
        for other in (0..self.peers.len()).filter(|other| *other != index) {
            self.schedule_look(other, index, after);
            self.schedule_look(index, other, after);
        }
    }

    pub(crate) fn schedule_look(&mut self, observer: usize, about: usize, after: Span) {
        let Some(overlay) = &mut self.overlay else { return };
        let rng = if self.population.is_host(about) {
            &mut overlay.rng
        } else if overlay.open.clients_seen && self.population.is_host(observer) {
            &mut overlay.rng_of_clients
        } else {
            return;
        };
        let at = self.now + after + rng.span(Span::ZERO, overlay.open.delay);
        let (observer, about) = (observer as u32, about as u32);
        self.queue.push(at, Event::Look { observer, about });
    }

    pub(crate) fn on_cut(&mut self, cut: &Cut) {
        let Some(overlay) = &mut self.overlay else { return };
        overlay.cuts.push((cut.clone(), self.now));
        let silence = overlay.open.silence;
        (0..self.peers.len()).for_each(|index| self.schedule_looks(index, silence));
    }

    /// The cuts of this id end, or all of them.
    pub(crate) fn on_mended(&mut self, id: Option<u32>) {
        let Some(overlay) = &mut self.overlay else { return };
        overlay.cuts.retain(|(cut, _)| id.is_some_and(|id| cut.id != id));
        (0..self.peers.len()).for_each(|index| self.schedule_looks(index, Span::ZERO));
    }

    pub(crate) fn on_asleep(&mut self, index: usize) {
        let Some(overlay) = &mut self.overlay else { return };
        overlay.asleep.entry(index).or_insert(self.now);
        let silence = overlay.open.silence;
        self.schedule_looks(index, silence);
    }

    /// A peer wakes. If it slept for long, the others may have given it up: its sessions are over.
    pub(crate) fn on_awake(&mut self, index: usize) {
        let Some(overlay) = &mut self.overlay else { return };
        let Some(since) = overlay.asleep.remove(&index) else { return };
        if self.now.since(since) >= overlay.open.silence / 2 {
            let seen: Vec<usize> = overlay.view(index).keys().copied().collect();
            seen.into_iter().for_each(|about| self.see(index, about, None));
        }
        self.schedule_looks(index, Span::ZERO);
    }

    /// A host is told that it will leave.
    pub(crate) fn leave_overlay(&mut self, index: usize) {
        let Some(linger) = self.overlay.as_ref().map(|overlay| overlay.open.linger) else { return };
        if let Some(placement) = self.peers[index].protocol.as_mut().and_then(P::placement_mut) {
            placement.leave();
        }
        self.input(index, Input::Leave);
        self.queue.push(self.now + linger, Event::Gone { peer: index as u32 });
    }

    /// It has had its time to hand over.
    pub(crate) fn on_gone(&mut self, index: usize) {
        if self.peers[index].is_up() {
            if let Some(overlay) = &mut self.overlay {
                overlay.left.insert(index);
                overlay.members.remove(&index);
            }
            self.crash(index);
        }
    }

    pub(crate) fn on_look(&mut self, observer: usize, about: usize) {
        if !self.peers[observer].is_up() {
            return;
        }
        if self.peers[observer].paused_until.is_some() {
            // It looks again when it wakes.
            return;
        }
        if self.population.twin_of.is_some() && self.look_at_twins(observer, about) {
            return;
        }
        let Some(overlay) = &mut self.overlay else { return };
        let known = overlay.view(observer).get(&about).copied();
        let life = self.sees(observer, about, known.is_some()).then(|| self.peers[about].life);
        if known != life {
            if known.is_some() {
                self.see(observer, about, None);
            }
            if life.is_some() {
                self.see(observer, about, life);
            }
        }
    }

    /// Whether heartbeats go to and fro. Who has a session keeps it through a short silence; who has none
    /// cannot begin one.
    pub(crate) fn sees(&self, observer: usize, about: usize, session: bool) -> bool {
        let Some(overlay) = &self.overlay else { return false };
        let patience = if session { overlay.open.silence } else { Span::ZERO };
        let silent = |since: TrueTime| self.now.since(since) >= patience;
        let (a, b) = (self.population.id(observer), self.population.id(about));
        let cut =
            |(cut, since): &(Cut, TrueTime)| (cut.stops(a, b) || cut.stops(b, a)) && silent(*since);
        self.peers[about].is_up()
            && !overlay.asleep.get(&about).is_some_and(|since| silent(*since))
            && !overlay.cuts.iter().any(cut)
    }

    /// Whom a peer has lost, and how long ago: it tells everybody whom it meets.
    fn lost_by(&self, index: usize) -> Vec<(PeerId, Key, Span)> {
        let now = self.peers[index].clocks.clock.read(self.now);
        let placement = self.peers[index].protocol.as_ref().and_then(P::placement);
        let lost = placement.into_iter().flat_map(|placement| placement.lost(now));
        lost.map(|(id, key, at)| (id, key, now.since(at))).collect()
    }

    pub(crate) fn see(&mut self, observer: usize, about: usize, life: Option<u32>) {
        let (seed, id) = (self.config.seed, self.population.name(about));
        let lost = self.lost_by(about);
        let peer = &mut self.peers[observer];
        let now: LocalTime = peer.clocks.clock.read(self.now);
        let Some(overlay) = &mut self.overlay else { return };
        let mut placement = peer.protocol.as_mut().and_then(P::placement_mut);
        let input = match life {
            Some(life) => {
                overlay.view(observer).insert(about, life);
                if let Some(placement) = &mut placement {
                    for (id, key, ago) in lost {
                        placement.mourn(id, key, now - ago);
                    }
                    placement.up(id, key_of(seed, id), self.population.is_host(about), now);
                }
                Input::PeerUp(id)
            }
            None => {
                overlay.view(observer).remove(&about);
                if let Some(placement) = &mut placement {
                    placement.down(id, now, overlay.left.contains(&about));
                }
                Input::PeerDown(id)
            }
        };
        self.input(observer, input);
    }
}
