//! The engine: peers, a network and an event queue in true time.
//!
//! ```text
//!   queue ──event──► deliver / fire / user / fault ──input──► protocol ──effects──► queue
//! ```
//!
//! A run is repeatable bit for bit: events of one instant come in the order in which they were
//! scheduled, every random number comes from a stream split from the run's seed, and no hash map is
//! ever iterated.

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::rc::Rc;

use sigmalock_core::{Birth, CallId, Context, Effect, Input, LocalTime, Message, PeerId, Span};
use sigmalock_protocols::parts::Driven;

use crate::crowd::Crowd;
use crate::history::{Ledger, TrueTime, What};
use crate::measure::{Histogram, Tally};
use crate::network::{End, Wires};
use crate::notes::Notes;
use crate::output::Said;
use crate::overlay::Overlay;
use crate::peer::{Around, Mail, Peer};
use crate::population::Population;
use crate::queue::{Queue, Slab};
use crate::recorder::Recorder;
use crate::rng::Rng;
use crate::run::RunConfig;
use crate::twins::Way;
use crate::watch::Watch;

/// A message under way. What it says stays in one slot from sending to delivery, so that events are
/// small whatever messages weigh.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packet {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) slot: u32,
    pub(crate) kind: u8,
    /// In which session it was sent, where that matters.
    pub(crate) session: u8,
}

/// What can happen next.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event<D> {
    /// A message arrives.
    Deliver(Packet),
    /// A peer's earliest timer is due, unless superseded.
    Alarm { peer: u32, number: u32 },
    /// A user does something.
    User(D),
    /// A fault of the plan.
    Planned(u32),
    /// A step of the script.
    Scripted(u32),
    /// A peer that one of its users crashed comes back.
    Return { peer: u32 },
    /// A host's memory ends.
    LifeEnds { peer: u32 },
    /// A pause ends, unless it was made longer.
    Wake { peer: u32 },
    /// A write may be done, or one may be due.
    Disk { peer: u32 },
    /// All peers hear that one went down or came up.
    Hint { about: PeerId, up: bool },
    /// A peer of an open world looks whether another one is there.
    Look { observer: u32, about: u32 },
    /// A peer of an open world that was about to leave has left.
    Gone { peer: u32 },
    /// The faults are over.
    Heal,
    /// From here on things are measured.
    Measure,
}

/// So many events under way mean that messages breed messages. Far below what the queue can number,
/// and one step adds only a few.
const EVENTS_UNDER_WAY_MAX: usize = 1 << 21;
/// So many events at one instant mean that a protocol keeps itself busy without time passing.
const EVENTS_PER_INSTANT_MAX: u32 = 200_000;

/// A run under way. A clone of it has the same future, unless somebody intervenes.
#[derive(Clone)]
pub(crate) struct World<'a, P: Driven, C: Crowd<P>, W: Watch> {
    pub(crate) config: Rc<RunConfig>,
    make: Rc<dyn Fn(PeerId) -> P + 'a>,
    pub(crate) now: TrueTime,
    pub(crate) queue: Queue<Event<C::Deed>>,
    pub(crate) messages: Slab<P::Message>,
    pub(crate) peers: Vec<Peer<P, C::Deed>>,
    pub(crate) population: Population,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) wires: Wires,
    pub(crate) users: C,
    pub(crate) recorder: Recorder<'a>,
    pub(crate) watch: W,
    pub(crate) tally: Tally,
    pub(crate) notes: Notes<P::Note>,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    pub(crate) rng: Rng,
    pub(crate) healed: bool,
    pub(crate) events: u64,
    pub(crate) delivered: u64,
    pub(crate) entries: u64,
    pub(crate) entries_measured: u64,
    pub(crate) ledger_before: Ledger,
    pub(crate) waits: Histogram,
    /// So many events have come at this very instant.
    at_this_instant: u32,
    /// When the run was over, if it did not go on to its end.
    over: Option<TrueTime>,
    effects: Vec<Effect<P>>,
}

impl<'a, P: Driven, C: Crowd<P>, W: Watch> World<'a, P, C, W> {
    pub(crate) fn new(
        config: Rc<RunConfig>, make: impl Fn(PeerId) -> P + 'a, users: C, recorder: Recorder<'a>,
        watch: W,
    ) -> Self {
        let script = config.script.clone().unwrap_or_default();
        let mut world = Self {
            make: Rc::new(make),
            now: TrueTime(0),
            queue: Queue::new(),
            messages: Slab::new(),
            peers: Vec::new(),
            population: config.population(),
            overlay: config.open.map(|open| Overlay::new(open, config.seed)),
            wires: Wires::new(config.network.clone(), config.seed, script.links, script.rules),
            users,
            recorder,
            watch,
            tally: Tally::default(),
            notes: Notes::new(),
            faults: BTreeMap::new(),
            rng: Rng::split(config.seed, 0x776f_726c),
            healed: false,
            events: 0,
            delivered: 0,
            entries: 0,
            entries_measured: 0,
            ledger_before: Ledger::default(),
            waits: Histogram::default(),
            at_this_instant: 0,
            over: None,
            effects: Vec::new(),
            config,
        };
        if let Some(last) = world.population.places().checked_sub(1) {
            world.ensure_peer(last);
        }
        C::gather(&mut world);
        world.plan();
        world
    }

    /// Goes on until `end`, or until all are content after the heal.
    pub(crate) fn run(&mut self, end: TrueTime) {
        while self.advance(end) {}
    }

    /// When the run was over, if it is: before its end.
    pub(crate) fn over(&self) -> Option<TrueTime> {
        self.over
    }

    /// The next event, unless it is later than `until` or the run is over. Says whether there was one.
    #[inline]
    pub(crate) fn advance(&mut self, until: TrueTime) -> bool {
        if self.over.is_some() {
            return false;
        }
        let Some((at, event)) = self.queue.pop(until) else { return false };
        self.at_this_instant = if at == self.now { self.at_this_instant + 1 } else { 0 };
        self.now = at;
        self.events += 1;
        if self.at_this_instant > EVENTS_PER_INSTANT_MAX {
            self.object_to_standstill(event);
            self.over = Some(at);
            return true;
        }
        self.step(event);
        if self.is_over() {
            self.over = Some(at);
        }
        true
    }

    /// Whether all are content after the heal, or the run is out of control, or violated something.
    #[inline]
    fn is_over(&mut self) -> bool {
        if self.healed && self.config.script.is_none() && self.users.is_content() {
            return true;
        }
        let sentence = if self.events > self.config.events_max {
            format!("{} events and no end", self.events)
        } else if self.queue.len() > EVENTS_UNDER_WAY_MAX {
            format!("{} events under way: messages breed", self.queue.len())
        } else {
            return self.config.stop_at_violation && self.recorder.violated();
        };
        self.recorder.object("engine", self.now, sentence);
        true
    }

    fn object_to_standstill(&mut self, event: Event<C::Deed>) {
        let busy = match event {
            Event::Alarm { peer, .. } => {
                let id = self.population.id(peer as usize);
                let timers = &self.peers[peer as usize].timers;
                format!("{id} fires and sets timers in one instant, for ever: {timers:?}")
            }
            Event::Deliver(packet) => {
                self.lose_letter(packet);
                format!("{} gets messages without end", self.population.id(packet.to as usize))
            }
            _ => "something happens without end".to_owned(),
        };
        self.recorder.object("engine", self.now, format!("time stands still: {busy}"));
    }

    #[inline]
    fn step(&mut self, event: Event<C::Deed>) {
        match event {
            Event::Deliver(packet) => self.deliver(packet),
            Event::Alarm { peer, number } => self.fire(peer as usize, number),
            Event::User(deed) => C::act(self, deed),
            Event::Planned(index) => self.on_planned(index as usize),
            Event::Scripted(index) => self.on_scripted(index as usize),
            Event::Return { peer } => self.on_return(peer as usize),
            Event::LifeEnds { peer } => self.on_life_ends(peer as usize),
            Event::Wake { peer } => self.on_wake(peer as usize),
            Event::Disk { peer } => self.on_disk(peer as usize),
            Event::Hint { about, up } => self.on_hint(about, up),
            Event::Look { observer, about } => self.on_look(observer as usize, about as usize),
            Event::Gone { peer } => self.on_gone(peer as usize),
            Event::Heal => self.heal(),
            Event::Measure => self.ledger_before = self.tally.ledger(),
        }
    }

    /// Gives a protocol an input and carries out its effects.
    #[inline]
    pub(crate) fn input(&mut self, index: usize, input: Input<P>) {
        if self.peers[index].is_up() {
            C::on_input(self, index, &input);
        }
        let peer = &mut self.peers[index];
        let written = peer.written();
        let Some(protocol) = &mut peer.protocol else { return };
        let was_member = self.population.twin_of.is_some() && protocol.is_member();
        let local = peer.clocks.clock.read(self.now);
        let wall = peer.clocks.wall(self.now);
        let mut around = Around { wall, rng: &mut peer.rng, written };
        let mut effects = mem::take(&mut self.effects);
        protocol.handle(&mut Context::new(local, &mut around, &mut effects), input);
        let torn = peer.is_torn_by(&effects);
        if torn {
            effects.truncate(self.rng.between(1, effects.len() as u64 - 1) as usize);
        }
        let mut timers_changed = false;
        for effect in effects.drain(..) {
            match effect {
                Effect::Send { to, message } if self.waits(index, Some(to)) => {
                    self.hold(index, Said::Message(to, message));
                }
                Effect::Send { to, message } => self.send(index, to, message),
                Effect::SetTimer { timer, at } => {
                    self.peers[index].timers.set(timer, at);
                    timers_changed = true;
                }
                Effect::CancelTimer(timer) => self.peers[index].timers.cancel(&timer),
                Effect::Persist { key, value } => self.persist(index, key, value),
                Effect::Reply { id, reply } if self.waits(index, None) => {
                    self.hold(index, Said::Reply(id, reply));
                }
                Effect::Reply { id, reply } => self.reply(index, id, reply),
                Effect::Note(note) => {
                    self.watch.on_note(self.now, self.population.id(index), &note);
                    self.notes.add(&note);
                }
            }
        }
        self.effects = effects;
        if torn {
            return self.crash(index);
        }
        if timers_changed {
            self.arm(index);
        }
        self.flush(index);
        C::on_turn(self, index);
        if self.population.twin_of.is_some() {
            self.look_who_noticed(index, was_member);
        }
    }

    /// A user asks for something.
    pub(crate) fn request(&mut self, index: usize, id: CallId, request: P::Request) {
        self.watch.on_request(self.now, self.population.id(index), id, &request);
        self.input(index, Input::Request { id, request });
    }

    pub(crate) fn reply(&mut self, index: usize, call: CallId, reply: P::Reply) {
        self.watch.on_reply(self.now, self.population.id(index), call, &reply);
        C::on_reply(self, index, call, reply);
    }

    #[inline]
    pub(crate) fn send(&mut self, from: usize, to: PeerId, message: P::Message) {
        C::on_said(self, from, to, &message);
        let kind_name = message.kind();
        let kind = self.tally.place(kind_name);
        let row = self.tally.row(kind);
        row.sent += 1;
        row.sent_bytes += message.size_bytes() as u64;
        let from_id = self.population.id(from);
        let known = self.population.index(to).filter(|to| *to < self.peers.len());
        let Some(way) = known.and_then(|to| self.way(from, to)) else {
            self.watch.on_send(self.now, from_id, to, &message, None);
            self.tally.row(kind).lost += 1;
            return;
        };
        let to = self.population.id(way.to);
        let from_end = End { index: from, id: from_id };
        let to_end = End { index: way.to, id: to };
        let fate = self.wires.fate(self.now, from_end, to_end, kind_name);
        self.watch.on_send(self.now, from_id, to, &message, fate.arrives);
        if let Some(copy) = fate.copy {
            self.watch.on_copy(self.now, from_id, to, copy);
            self.tally.row(kind).duplicated += 1;
            self.post(copy, from, way, kind, message.clone());
        }
        match fate.arrives {
            Some(at) => self.post(at, from, way, kind, message),
            None => self.tally.row(kind).lost += 1,
        }
    }

    #[inline]
    fn post(&mut self, at: TrueTime, from: usize, way: Way, kind: u8, message: P::Message) {
        let slot = self.messages.insert(message);
        let Way { to, session } = way;
        let packet = Packet { from: from as u32, to: to as u32, slot, kind, session };
        self.queue.push(at, Event::Deliver(packet));
    }

    #[inline]
    pub(crate) fn deliver(&mut self, packet: Packet) {
        let heard = self.population.twin_of.is_none() || self.is_of_this_session(packet);
        let peer = &mut self.peers[packet.to as usize];
        if peer.protocol.is_none() || !heard {
            self.lose_letter(packet);
        } else if peer.paused_until.is_some() {
            peer.mailbox.push(Mail { came: self.now, packet });
        } else {
            self.hand_over(packet);
        }
    }

    pub(crate) fn lose_letter(&mut self, packet: Packet) {
        self.tally.row(packet.kind).lost += 1;
        if let Some(message) = self.messages.take(packet.slot) {
            let (from, to) = (packet.from as usize, packet.to as usize);
            self.watch.on_lose(
                self.now,
                self.population.id(from),
                self.population.id(to),
                &message,
            );
        }
    }

    #[inline]
    pub(crate) fn hand_over(&mut self, packet: Packet) {
        let Packet { from, to, slot, kind, .. } = packet;
        let Some(message) = self.messages.take(slot) else { return };
        self.tally.row(kind).delivered += 1;
        self.delivered += 1;
        self.recorder.deliver(self.now, from, to, kind);
        let [from, sender, to_id] = {
            let (from, to) = (from as usize, to as usize);
            [self.population.name(from), self.population.id(from), self.population.id(to)]
        };
        self.watch.on_deliver(self.now, sender, to_id, &message);
        self.input(to as usize, Input::Receive { from, message });
    }

    /// Sees to it that the peer's earliest timer has its entry in the queue.
    fn arm(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        let Some(next) = peer.timers.next() else { return };
        if next >= peer.alarm.set_for || peer.paused_until.is_some() {
            return;
        }
        peer.alarm.number = peer.alarm.number.wrapping_add(1);
        peer.alarm.set_for = next;
        let at = peer.clocks.clock.when(next).max(self.now);
        let event = Event::Alarm { peer: index as u32, number: peer.alarm.number };
        self.queue.push(at, event);
    }

    fn fire(&mut self, index: usize, number: u32) {
        let peer = &mut self.peers[index];
        if peer.alarm.number == number && peer.paused_until.is_none() {
            peer.alarm.set_for = LocalTime::NEVER;
            self.fire_due(index);
        }
    }

    /// Fires what is due now. A timer that a protocol sets for now or the past while this goes on
    /// is due in another event, so that a restless protocol cannot stop the world in here.
    pub(crate) fn fire_due(&mut self, index: usize) {
        let local = self.peers[index].clocks.clock.read(self.now);
        let mut left = self.peers[index].timers.len();
        while left > 0 {
            let Some(timer) = self.peers[index].timers.pop_due(local) else { break };
            self.watch.on_fire(self.now, self.population.id(index), &timer);
            self.input(index, Input::Fire(timer));
            left -= 1;
        }
        self.arm(index);
    }

    /// The peer of this id, which begins its first life if it has none.
    pub(crate) fn ensure_peer(&mut self, index: usize) {
        while self.peers.len() <= index {
            let at = self.peers.len();
            let mut peer = Peer::new(self.population.id(at), self.config.seed, self.config.clocks);
            peer.disk.undone = self.config.loses_writes().then(VecDeque::new);
            self.peers.push(peer);
            let joins_later = self
                .config
                .open
                .is_some_and(|open| (open.first..self.population.hosts).contains(&at));
            let is_twin = self.population.twins().is_some_and(|[_, twin]| twin == at);
            if !joins_later && !is_twin {
                self.start(at, Birth::First);
            }
        }
    }

    pub(crate) fn start(&mut self, index: usize, birth: Birth<P>) {
        let id = self.population.id(index);
        // Ideal clocks are for stories, and stories count lives from one.
        let scramble = self.config.clocks != Default::default();
        let moves = self.overlay.is_some();
        self.peers[index].be_born(scramble, moves);
        self.peers[index].protocol = Some((self.make)(self.population.name(index)));
        self.enter_overlay(index);
        let incarnation = self.peers[index].incarnation;
        self.record(What::Started(id));
        self.input(index, Input::Start { incarnation, birth });
        self.schedule_looks(index, Span::ZERO);
        C::on_start(self, index);
    }

    pub(crate) fn record(&mut self, what: What) {
        let record = self.recorder.record(self.now, what);
        self.watch.on_record(&record);
    }
}
