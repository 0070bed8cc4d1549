//! Some peers, the messages between them, and what their users are told.

use std::cell::Cell;
use std::collections::BTreeMap;

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, Inspect, LocalTime, LockReply,
    LockRequest, MemberReply, Name, Patience, PeerId, Protocol, Span, Standing, Surroundings,
    WallTime,
};
use sigmalock_protocols::agreed::{self, Beginning, Config, Mutant, Reply};
use sigmalock_protocols::parts::hosting::ByView;
use sigmalock_protocols::parts::{Broken, Quorum};
use sigmalock_protocols::sigma::{self, Sigma};
use sigmalock_protocols::views;

/// Each of the three may be told to break a rule.
pub(crate) type Agreed = agreed::Agreed<Sigma<Broken>, Broken>;
pub(crate) type Message = agreed::Message<sigma::Message>;
pub(crate) type DurableKey = agreed::DurableKey<sigma::DurableKey>;
pub(crate) type Durable = agreed::Durable<sigma::Durable>;
pub(crate) type Timer = agreed::Timer<sigma::Timer>;

const LEASE_MAX: Span = Span::from_secs(15);
const TTL: Span = Span::from_secs(10);
pub(crate) const STEP: Span = Span::from_millis(50);
/// Two peers that only use the swarm.
pub(crate) const ALICE: u64 = 100;
pub(crate) const BOB: u64 = 101;
/// Three hosts without disks that begin together, and three more from the next hundred on.
pub(crate) const FOUNDERS: [[u64; 3]; 2] = [[200, 201, 202], [300, 301, 302]];

pub(crate) struct Packet {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) message: Message,
}

/// One peer, its timers, its disk, and what its users were told.
pub(crate) struct Place {
    pub(crate) agreed: Agreed,
    pub(crate) timers: BTreeMap<Timer, LocalTime>,
    pub(crate) disk: BTreeMap<DurableKey, Durable>,
    pub(crate) told: Vec<LockReply>,
    /// What its operators were.
    pub(crate) answered: Vec<MemberReply>,
}

/// Some peers, all of whom hear each other, as far as the story lets their messages through.
pub(crate) struct Town {
    pub(crate) places: BTreeMap<u64, Place>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) now: LocalTime,
    pub(crate) mutant: Option<Mutant>,
    /// The rule of views that is left out.
    pub(crate) broken: Option<views::Mutant>,
    /// The rule of Sigma that is.
    pub(crate) sigma: Option<sigma::Mutant>,
    /// How many replicas a host takes.
    pub(crate) replicas_max: Option<usize>,
    pub(crate) lives: u64,
    /// How many records each disk has had.
    pub(crate) written: BTreeMap<u64, u64>,
    /// Of a peer and what it wants done: after how many of its effects it stops, if it does.
    pub(crate) tear: Option<Tear>,
    /// The disk of who was torn.
    pub(crate) torn: Option<BTreeMap<DurableKey, Durable>>,
}

type Tear = Box<dyn Fn(u64, &[Effect<Agreed>]) -> Option<usize>>;

thread_local! {
    /// How many random numbers there were: each is another one, and a test has a thread of its own.
    static DRAWN: Cell<u64> = const { Cell::new(7) };
}

/// The time, and how much a peer has written.
pub(crate) struct Around(pub(crate) LocalTime, pub(crate) u64);

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(1_000_000_000 + self.0.as_micros())
    }
    fn random(&mut self) -> u64 {
        DRAWN.with(|drawn| drawn.replace(drawn.get() + 1))
    }
    fn written(&self) -> u64 {
        self.1
    }
}

fn pairs(one: &[u64], other: &[u64]) -> Vec<(u64, u64)> {
    one.iter().flat_map(|a| other.iter().map(|b| (*a, *b))).collect()
}

pub(crate) fn name() -> Name {
    Name::new("/job").unwrap()
}

pub(crate) fn is_learn(packet: &Packet) -> bool {
    matches!(packet.message, Message::Views(views::Message::Learn(_)))
}

impl Town {
    /// A swarm of so many, with Alice and Bob.
    pub(crate) fn of(members: u64, mutant: Option<Mutant>) -> Self {
        Self::founded(members, mutant, None, None)
    }

    /// The same, without a rule of Sigma.
    pub(crate) fn breaking(sigma: Option<sigma::Mutant>, members: u64) -> Self {
        Self::founded(members, None, None, sigma)
    }

    /// The same, without a rule of views.
    pub(crate) fn without(broken: Option<views::Mutant>, members: u64) -> Self {
        Self::founded(members, None, broken, None)
    }

    fn founded(
        members: u64, mutant: Option<Mutant>, broken: Option<views::Mutant>,
        sigma: Option<sigma::Mutant>,
    ) -> Self {
        let (places, packets, now) = (BTreeMap::new(), Vec::new(), LocalTime::from_micros(5_000));
        let (written, tear, torn) = (BTreeMap::new(), None, None);
        let (replicas_max, lives) = (None, 0);
        let mut town = Self {
            places,
            packets,
            now,
            mutant,
            broken,
            sigma,
            replicas_max,
            lives,
            written,
            tear,
            torn,
        };
        for peer in (0..members).chain([ALICE, BOB]) {
            town.start(peer, Birth::First);
        }
        town.pass(Span::from_secs(4), |_| true);
        while !(0..members).all(|peer| town.standing(peer) == Standing::Voting) {
            assert!(town.now < LocalTime::from_micros(60_000_000), "they do not get together");
            town.pass(Span::from_secs(1), |_| true);
        }
        town
    }

    pub(crate) fn start(&mut self, peer: u64, birth: Birth<Agreed>) {
        self.start_alone(peer, birth);
        for other in self.places.keys().copied().filter(|other| *other != peer).collect::<Vec<_>>()
        {
            self.give(peer, Input::PeerUp(PeerId(other)));
            self.give(other, Input::PeerUp(PeerId(peer)));
        }
    }

    /// The same, and it meets nobody yet.
    pub(crate) fn start_alone(&mut self, peer: u64, birth: Birth<Agreed>) {
        let beginning = match peer {
            0 => Beginning::Found,
            ALICE | BOB => Beginning::Watch,
            peer if FOUNDERS.as_flattened().contains(&peer) => Beginning::Expect(3),
            _ => Beginning::Join,
        };
        let mut config = Config::with_rules(LEASE_MAX, beginning, Broken::from(self.mutant));
        config.views.rules = self.broken.into();
        let mut locks = sigma::Config {
            lease_max: LEASE_MAX,
            client_only: beginning == Beginning::Watch,
            durable: true,
            ..sigma::Config::with_rules(Quorum::ONE, self.sigma.into())
        };
        self.lives += 1;
        let incarnation = Incarnation(self.lives);
        let disk = match &birth {
            Birth::Recovered(records) => records.iter().cloned().collect(),
            Birth::First | Birth::Amnesiac => BTreeMap::new(),
        };
        if let Some(replicas_max) = self.replicas_max {
            locks.limits.replicas_max = replicas_max;
        }
        let locks = Sigma::new(PeerId(peer), locks, Box::new(ByView::default()));
        let agreed = Agreed::new(PeerId(peer), config, locks);
        let (timers, told, answered) = (BTreeMap::new(), Vec::new(), Vec::new());
        let place = Place { agreed, timers, disk, told, answered };
        self.places.insert(peer, place);
        self.give(peer, Input::Start { incarnation, birth });
    }

    pub(crate) fn stop(&mut self, peer: u64) -> BTreeMap<DurableKey, Durable> {
        let place = self.places.remove(&peer).unwrap();
        self.packets.retain(|packet| packet.to != peer);
        for other in self.places.keys().copied().collect::<Vec<_>>() {
            self.give(other, Input::PeerDown(PeerId(peer)));
        }
        place.disk
    }

    pub(crate) fn give(&mut self, peer: u64, input: Input<Agreed>) {
        let Some(place) = self.places.get_mut(&peer) else { return };
        let mut effects = Vec::new();
        let written = self.written.entry(peer).or_default();
        let mut around = Around(self.now, *written);
        place.agreed.handle(&mut Context::new(self.now, &mut around, &mut effects), input);
        let torn = self.tear.as_ref().and_then(|tear| tear(peer, &effects));
        let done = torn.unwrap_or(effects.len());
        for effect in effects.into_iter().take(done) {
            *written += u64::from(matches!(effect, Effect::Persist { .. }));
            match effect {
                Effect::Send { to, message } => {
                    self.packets.push(Packet { from: peer, to: to.0, message });
                }
                Effect::Persist { key, value: Some(value) } => {
                    drop(place.disk.insert(key, value));
                }
                Effect::Persist { key, value: None } => drop(place.disk.remove(&key)),
                Effect::SetTimer { timer, at } => drop(place.timers.insert(timer, at)),
                Effect::CancelTimer(timer) => drop(place.timers.remove(&timer)),
                Effect::Reply { reply: Reply::Inside(reply), .. } => place.told.push(reply),
                Effect::Reply { reply: Reply::Members(reply), .. } => place.answered.push(reply),
                Effect::Note(_) => {}
            }
        }
        if torn.is_some() {
            self.tear = None;
            self.torn = Some(self.stop(peer));
        }
    }

    /// Time passes, in steps, in each of which what was said before is heard; unless the story holds it back.
    pub(crate) fn pass(&mut self, span: Span, heard: impl Fn(&Packet) -> bool) {
        let end = self.now + span;
        while self.now < end {
            self.now += STEP;
            let (now, held): (Vec<_>, Vec<_>) =
                std::mem::take(&mut self.packets).into_iter().partition(&heard);
            self.packets = held;
            for Packet { from, to, message } in now {
                self.give(to, Input::Receive { from: PeerId(from), message });
            }
            for peer in self.places.keys().copied().collect::<Vec<_>>() {
                let timers = &self.places[&peer].timers;
                let due = timers.iter().filter(|(_, at)| **at <= self.now);
                for timer in due.map(|(timer, _)| timer.clone()).collect::<Vec<_>>() {
                    self.places.get_mut(&peer).unwrap().timers.remove(&timer);
                    self.give(peer, Input::Fire(timer));
                }
            }
        }
    }

    pub(crate) fn ask(&mut self, peer: u64) {
        self.ask_for(peer, CallId(1), name());
    }

    pub(crate) fn ask_for(&mut self, peer: u64, id: CallId, name: Name) {
        self.acquire(peer, id, name, TTL);
    }

    /// For as long as a lease may be.
    pub(crate) fn ask_for_long(&mut self, peer: u64) {
        self.acquire(peer, CallId(1), name(), LEASE_MAX);
    }

    fn acquire(&mut self, peer: u64, id: CallId, name: Name, ttl: Span) {
        let wish = Acquire::exclusive(name, ttl, Patience::Forever);
        self.give(peer, Input::Request { id, request: LockRequest::Acquire(wish).into() });
    }

    pub(crate) fn release(&mut self, peer: u64) {
        let request = LockRequest::Release { held: CallId(1) }.into();
        self.give(peer, Input::Request { id: CallId(2), request });
    }

    /// Two groups lose sight of each other.
    pub(crate) fn part(&mut self, one: &[u64], other: &[u64]) {
        for (a, b) in pairs(one, other) {
            self.give(a, Input::PeerDown(PeerId(b)));
            self.give(b, Input::PeerDown(PeerId(a)));
        }
    }

    /// They see each other again.
    pub(crate) fn meet(&mut self, one: &[u64], other: &[u64]) {
        for (a, b) in pairs(one, other) {
            self.give(a, Input::PeerUp(PeerId(b)));
            self.give(b, Input::PeerUp(PeerId(a)));
        }
    }

    pub(crate) fn standing(&self, peer: u64) -> Standing {
        self.places[&peer].agreed.view(self.now).unwrap().standing
    }

    pub(crate) fn view(&self, peer: u64) -> (u64, Vec<u64>) {
        let view = self.places[&peer].agreed.view(self.now).unwrap();
        (view.number, view.members.iter().map(|member| member.peer.0).collect())
    }

    pub(crate) fn is_inside(&self, peer: u64) -> bool {
        let told = &self.places[&peer].told;
        told.iter().any(|reply| matches!(reply, LockReply::Granted { .. }))
            && !told.contains(&LockReply::Lost)
    }
}
