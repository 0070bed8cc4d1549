//! A few peers, the messages between them, and their disks: small enough to be a state that a model checker
//! can count, real enough that the peers run the very code that is shipped.

use std::collections::{BTreeMap, BTreeSet};

use sigmalock_core::{
    Birth, CallId, Context, Effect, Incarnation, Input, LocalTime, PeerId, Span, Surroundings,
    WallTime,
};
use sigmalock_protocols::parts::Broken;
use sigmalock_protocols::views::{
    self, Change, Config, Message, Mutant, Record, Request, Roster, Saved, Standing, Timer,
};

/// One that may be told to break a rule.
pub(crate) type Views = views::Views<Broken>;

pub(crate) const TICK: Span = Span::from_millis(200);

/// A message under way.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Packet {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) message: Message,
}

/// One peer and what belongs to it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) views: Option<Views>,
    pub(crate) disk: Option<Saved>,
    pub(crate) timers: BTreeMap<Timer, LocalTime>,
    /// Whether it is meant to be in, in the end.
    pub(crate) wants_in: bool,
    /// It stops after so many of its next effects: the others are not done.
    pub(crate) tears_after: Option<usize>,
    /// Whether somebody has vouched for the disk that it came back with, or need not.
    vouched_for: bool,
    /// Views that had it in when it lost its memory: what it promised about their successors, nobody knows.
    forgotten: BTreeSet<u64>,
    /// The newest view it knows in this life, and since when.
    learned: (u64, LocalTime),
}

/// All of them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Fleet {
    pub(crate) places: Vec<Place>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) now: LocalTime,
    /// Every view that anybody ever learned.
    pub(crate) seen: BTreeMap<u64, Roster>,
    /// What an oracle objects to.
    pub(crate) objection: Option<String>,
    /// Pairs that do not hear each other.
    pub(crate) cut: BTreeSet<(usize, usize)>,
    mutant: Option<Mutant>,
    lease: Span,
    seed: u64,
}

struct Around<'a>(&'a mut u64);

impl Surroundings for Around<'_> {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(0)
    }
    fn random(&mut self) -> u64 {
        if *self.0 == NO_CHANCE { 0 } else { next(self.0) }
    }
}

/// The seed of a world without chance, as a model checker wants it.
pub(crate) const NO_CHANCE: u64 = u64::MAX;

/// SplitMix64.
pub(crate) fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

pub(crate) fn id(index: usize) -> PeerId {
    PeerId(index as u64)
}

impl Fleet {
    /// So many peers, of which none has started.
    pub(crate) fn new(count: usize, mutant: Option<Mutant>, lease: Span, seed: u64) -> Self {
        let place = Place {
            views: None,
            disk: None,
            timers: BTreeMap::new(),
            wants_in: false,
            tears_after: None,
            vouched_for: true,
            forgotten: BTreeSet::new(),
            learned: (0, LocalTime::MIN),
        };
        Self {
            places: vec![place; count],
            packets: Vec::new(),
            now: LocalTime::from_micros(1_000_000_000),
            seen: BTreeMap::new(),
            objection: None,
            cut: BTreeSet::new(),
            mutant,
            lease,
            seed,
        }
    }

    /// A peer begins a life, and those it reaches meet it.
    pub(crate) fn start(&mut self, index: usize, birth: Birth<Views>) {
        let mut config = Config::with_rules(self.lease, Broken::from(self.mutant));
        config.dead_after = Span::from_secs(5);
        config.round_trip_worst = TICK;
        self.places[index].views = Some(Views::new(id(index), config));
        self.places[index].learned = (0, self.now);
        self.give(index, Input::Start { incarnation: Incarnation(1), birth });
        for other in 0..self.places.len() {
            self.meet(index, other);
        }
    }

    fn meet(&mut self, a: usize, b: usize) {
        if a != b && self.is_up(a) && self.is_up(b) && !self.is_cut(a, b) {
            self.give(a, Input::PeerUp(id(b)));
            self.give(b, Input::PeerUp(id(a)));
        }
    }

    pub(crate) fn crash(&mut self, index: usize) {
        self.places[index].views = None;
        self.places[index].tears_after = None;
        self.places[index].timers.clear();
        self.packets.retain(|packet| packet.to != index);
        for other in 0..self.places.len() {
            self.give(other, Input::PeerDown(id(index)));
        }
    }

    /// Comes back with its disk, or without.
    pub(crate) fn restart(&mut self, index: usize, with_disk: bool) {
        if !with_disk {
            let had_it = self.seen.values().filter(|roster| roster.contains(id(index)));
            self.places[index].forgotten = had_it.map(Roster::number).collect();
            self.places[index].disk = None;
        }
        let records = self.places[index].disk.iter().map(|saved| (Record, saved.clone())).collect();
        let accepted = self.places[index].disk.as_ref().and_then(|saved| saved.acceptor.accepted());
        self.start(index, if with_disk { Birth::Recovered(records) } else { Birth::Amnesiac });
        let member = self.views(index).map(Views::standing) == Some(Standing::Member);
        self.places[index].vouched_for = !member;
        if self.views(index).is_some_and(|views| views.accepted() != accepted) {
            self.objection = Some(format!("{} has forgotten what it accepted", id(index)));
        }
        if self.places[index].wants_in {
            self.ask(index, Request::Join);
        } else {
            self.leave(index);
        }
    }

    pub(crate) fn ask(&mut self, index: usize, request: Request) {
        self.places[index].wants_in |= !matches!(request, Request::Settled { .. });
        self.give(index, Input::Request { id: CallId(1), request });
    }

    pub(crate) fn leave(&mut self, index: usize) {
        self.places[index].wants_in = false;
        self.give(index, Input::Leave);
    }

    pub(crate) fn cut(&mut self, a: usize, b: usize) {
        self.cut.insert((a.min(b), a.max(b)));
        self.give(a, Input::PeerDown(id(b)));
        self.give(b, Input::PeerDown(id(a)));
    }

    pub(crate) fn mend(&mut self, a: usize, b: usize) {
        if self.cut.remove(&(a.min(b), a.max(b))) {
            self.meet(a, b);
        }
    }

    pub(crate) fn is_cut(&self, a: usize, b: usize) -> bool {
        self.cut.contains(&(a.min(b), a.max(b)))
    }

    pub(crate) fn is_up(&self, index: usize) -> bool {
        self.places[index].views.is_some()
    }

    /// Delivers one of the messages under way.
    pub(crate) fn deliver(&mut self, packet: Packet) {
        if !self.is_cut(packet.from, packet.to) {
            let Packet { from, to, message } = packet;
            self.places[to].vouched_for |= matches!(message, Message::Vouched { .. });
            self.give(to, Input::Receive { from: id(from), message });
        }
    }

    /// Fires a timer, whether it is due or not: clocks may be anything.
    pub(crate) fn fire(&mut self, index: usize, timer: Timer) {
        self.places[index].timers.remove(&timer);
        self.give(index, Input::Fire(timer));
    }

    /// Time passes, and what is due fires. Newcomers learn at once what the others promised.
    pub(crate) fn tick(&mut self) {
        self.now += TICK;
        for index in 0..self.places.len() {
            let due = |(timer, at): (&Timer, &LocalTime)| (*at <= self.now).then_some(*timer);
            let due: Vec<Timer> = self.places[index].timers.iter().filter_map(due).collect();
            due.into_iter().for_each(|timer| self.fire(index, timer));
            self.settle(index);
        }
    }

    fn settle(&mut self, index: usize) {
        let roster = self.views(index).and_then(Views::roster);
        if let Some(roster) = roster.filter(|roster| roster.is_newcomer(id(index))) {
            let view = roster.number();
            self.give(index, Input::Request { id: CallId(2), request: Request::Settled { view } });
        }
    }

    /// Those who came back are vouched for, if they are: where time stands still nobody has anything to say twice.
    pub(crate) fn vouch(&mut self) {
        use Message::{Began, Remembered, Vouched};
        let about_that =
            |p: &Packet| matches!(p.message, Began { .. } | Remembered { .. } | Vouched { .. });
        while let Some(at) = self.packets.iter().position(about_that) {
            let packet = self.packets.swap_remove(at);
            self.deliver(packet);
        }
    }

    pub(crate) fn views(&self, index: usize) -> Option<&Views> {
        self.places[index].views.as_ref()
    }

    pub(crate) fn give(&mut self, index: usize, input: Input<Views>) {
        let Some(views) = &mut self.places[index].views else { return };
        let restored = matches!(input, Input::Start { .. });
        let before = views.accepted();
        let mut effects = Vec::new();
        let mut around = Around(&mut self.seed);
        views.handle_with(self.now, &mut around, &mut effects, input);
        let after = views.accepted();
        let place = &mut self.places[index];
        let matters = |e: &Effect<Views>| matches!(e, Effect::Persist { .. } | Effect::Send { .. });
        let torn = effects.iter().filter(|e| matters(e)).count() > 1;
        let done = place.tears_after.filter(|_| torn).map_or(effects.len(), |after| after + 1);
        let torn = done < effects.len();
        for effect in effects.into_iter().take(done) {
            match effect {
                Effect::Send { to, message } => {
                    let to = to.0 as usize;
                    if let Some(objection) = unwritten(&message, place.disk.as_ref()) {
                        self.objection = Some(objection);
                    }
                    if matches!(message, Message::Known { .. }) {
                        // Said so often that nothing else would be heard: the last one will do.
                        let other = |p: &Packet| {
                            (p.from, p.to) != (index, to)
                                || !matches!(p.message, Message::Known { .. })
                        };
                        self.packets.retain(other);
                    }
                    self.packets.push(Packet { from: index, to, message });
                }
                Effect::Persist { value, .. } => place.disk = value,
                Effect::SetTimer { timer, at } => drop(place.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(place.timers.remove(&timer)),
                Effect::Reply { .. } | Effect::Note(_) => {}
            }
        }
        if torn {
            return self.crash(index);
        }
        self.look(index);
        if before != after && after.is_some() && !restored {
            self.look_at_acceptance(index);
        }
    }

    /// The oracle of one successor: whoever knows a view of some number knows the same.
    fn look(&mut self, index: usize) {
        let Some(roster) = self.views(index).and_then(Views::roster).cloned() else { return };
        self.places[index].vouched_for |=
            !roster.contains(id(index)) || roster.members().len() == 1;
        if roster.number() != self.places[index].learned.0 {
            self.places[index].learned = (roster.number(), self.now);
        }
        let known = self.seen.entry(roster.number()).or_insert_with(|| roster.clone());
        if *known != roster {
            self.objection = Some(format!("two successors: {known} and {roster}"));
        }
        let before = roster.number().checked_sub(1).and_then(|number| self.seen.get(&number));
        if let Some(before) = before.filter(|before| !have_somebody_in_common(before, &roster)) {
            self.objection =
                Some(format!("two majorities without a memory: {before} and {roster}"));
        }
    }

    /// The oracle of acceptance: only members do who know what they promised, and only when votes of older
    /// views have run out, or somebody new has come who knows of them.
    fn look_at_acceptance(&mut self, index: usize) {
        let Some(views) = self.views(index) else { return };
        let (view, since) = self.places[index].learned;
        let added = views.roster().is_some_and(|view| matches!(view.last(), Change::Add(..)));
        let in_time = view == 1 || added || self.now.since(since) >= self.lease;
        let place = &self.places[index];
        let knows = !place.forgotten.contains(&view) && place.vouched_for;
        if views.standing() != Standing::Member || !in_time || !knows {
            self.objection =
                Some(format!("{} accepts a successor of {view}, and must not", id(index)));
        }
    }
}

/// Whether any majority of one view and any of the other have a member in common, with one memory.
fn have_somebody_in_common(one: &Roster, other: &Roster) -> bool {
    let memories = |roster: &Roster| {
        roster.members().map(|peer| (peer, roster.badge(peer))).collect::<BTreeSet<_>>()
    };
    one.majority() + other.majority() > memories(one).union(&memories(other)).count()
}

/// The oracle of disks: what somebody promises is written down before it is said, and so is the badge under which it
/// wants in, or says that it is there.
fn unwritten(message: &Message, disk: Option<&Saved>) -> Option<String> {
    let written = match message {
        Message::Promise { view, ballot, .. } | Message::Accepted { view, ballot } => disk
            .is_some_and(|saved| {
                let about = saved.roster.as_ref().map(Roster::number) == Some(*view);
                about && saved.acceptor.promised() >= Some(*ballot)
            }),
        Message::Wish { change: Change::Add(_, badge), .. }
        | Message::Blank { badge, .. }
        | Message::Began { badge, .. } => disk.is_some_and(|saved| saved.badge == Some(*badge)),
        _ => true,
    };
    (!written).then(|| format!("{message} is said, and not on disk"))
}

/// Gives a protocol an input in a world made for it.
trait Handle {
    fn handle_with(
        &mut self, now: LocalTime, around: &mut dyn Surroundings, effects: &mut Vec<Effect<Views>>,
        input: Input<Views>,
    );
}

impl Handle for Views {
    fn handle_with(
        &mut self, now: LocalTime, around: &mut dyn Surroundings, effects: &mut Vec<Effect<Views>>,
        input: Input<Views>,
    ) {
        use sigmalock_core::Protocol as _;
        self.handle(&mut Context::new(now, around, effects), input);
    }
}
