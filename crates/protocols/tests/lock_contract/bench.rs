//! A few peers of one protocol, driven by hand: three that guard, and two that users ask. What is said takes ten
//! milliseconds, clocks agree, and nothing goes wrong that a test does not do.

use std::collections::BTreeMap;

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, LocalTime, LockReply, LockRequest,
    Mode, Name, Patience, PeerId, Protocol, Span, Surroundings, Timers, WallTime,
};
use sigmalock_protocols::parts::{self, Ask};

/// The peers that guard.
pub(crate) const HOSTS: u64 = 3;
/// Two that users ask.
pub(crate) const ANNA: u64 = 3;
pub(crate) const BERT: u64 = 4;

pub(crate) const TTL: Span = Span::from_secs(10);
const ONE_WAY: Span = Span::from_millis(10);
/// Longer than anything takes that nobody stands in the way of.
pub(crate) const SOON: Span = Span::from_secs(8);

/// A protocol that guards locks.
pub(crate) trait Lock: Protocol<Request: TryFrom<Ask>, Reply: Into<parts::Told>> {}
impl<P: Protocol<Request: TryFrom<Ask>, Reply: Into<parts::Told>>> Lock for P {}

/// What such a protocol is, and how to get some.
#[derive(Clone, Copy)]
pub(crate) struct Kit<P> {
    pub(crate) peer: fn(PeerId) -> P,
    /// Whether it is as published, and knows neither ttls, nor operators, nor lives of peers, and one request of a peer for
    /// a lock at a time. What it does not know it refuses.
    pub(crate) as_published: bool,
    /// How long it takes until all is ready.
    pub(crate) ready: Span,
}

struct Around {
    now: LocalTime,
    drawn: u64,
}

impl Surroundings for Around {
    fn wall(&self) -> WallTime {
        WallTime::from_micros(1_000_000 + self.now.as_micros())
    }
    fn random(&mut self) -> u64 {
        self.drawn = self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.drawn >> 16
    }
}

struct Place<P: Protocol> {
    protocol: P,
    timers: Timers<P::Timer>,
    /// Whether it hears nobody, and nobody hears it.
    cut: bool,
}

/// What was said to a call, in order, and when.
pub(crate) type Told = Vec<(LocalTime, LockReply)>;

pub(crate) struct Bench<P: Lock> {
    peer: fn(PeerId) -> P,
    pub(crate) now: LocalTime,
    places: BTreeMap<u64, Place<P>>,
    mail: BTreeMap<(LocalTime, u64), (u64, u64, P::Message)>,
    sent: u64,
    calls: u64,
    lives: u64,
    drawn: u64,
    told: BTreeMap<(u64, u64), Told>,
}

pub(crate) fn name() -> Name {
    Name::new("/job").unwrap()
}

impl<P: Lock> Bench<P> {
    pub(crate) fn new(kit: &Kit<P>) -> Self {
        let mut bench = Self {
            peer: kit.peer,
            now: LocalTime::from_micros(1_000_000),
            places: BTreeMap::new(),
            mail: BTreeMap::new(),
            sent: 0,
            calls: 0,
            lives: 0,
            drawn: 7,
            told: BTreeMap::new(),
        };
        for peer in 0..=BERT {
            bench.start(peer, Birth::First);
        }
        bench.pass(kit.ready);
        bench
    }

    fn start(&mut self, peer: u64, birth: Birth<P>) {
        self.lives += 1;
        let place =
            Place { protocol: (self.peer)(PeerId(peer)), timers: Timers::new(), cut: false };
        self.places.insert(peer, place);
        self.give(peer, Input::Start { incarnation: Incarnation(self.lives), birth });
        for other in self.places.keys().copied().filter(|other| *other != peer).collect::<Vec<_>>()
        {
            self.give(peer, Input::PeerUp(PeerId(other)));
            self.give(other, Input::PeerUp(PeerId(peer)));
        }
    }

    pub(crate) fn protocol(&self, peer: u64) -> &P {
        &self.places[&peer].protocol
    }

    /// It begins a new life, of which nobody else hears.
    pub(crate) fn restart(&mut self, peer: u64) {
        self.places.remove(&peer);
        self.told.retain(|(whose, _), _| *whose != peer);
        self.start(peer, Birth::First);
    }

    pub(crate) fn cut(&mut self, peer: u64) {
        self.places.get_mut(&peer).unwrap().cut = true;
    }

    fn give(&mut self, peer: u64, input: Input<P>) {
        let Some(place) = self.places.get_mut(&peer) else { return };
        let mut effects = Vec::new();
        let mut around = Around { now: self.now, drawn: self.drawn };
        place.protocol.handle(&mut Context::new(self.now, &mut around, &mut effects), input);
        self.drawn = around.drawn;
        for effect in effects {
            match effect {
                Effect::Send { to, message } => {
                    self.sent += 1;
                    let at = if to.0 == peer { self.now } else { self.now + ONE_WAY };
                    self.mail.insert((at, self.sent), (peer, to.0, message));
                }
                Effect::SetTimer { timer, at } => place.timers.set(timer, at),
                Effect::CancelTimer(timer) => place.timers.cancel(&timer),
                Effect::Reply { id, reply } => {
                    let parts::Told::Lock(reply) = reply.into() else { continue };
                    self.told.entry((peer, id.0)).or_default().push((self.now, reply));
                }
                Effect::Persist { .. } | Effect::Note(_) => {}
            }
        }
    }

    /// Time passes: what was said arrives, and what is due fires.
    pub(crate) fn pass(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            let mail = self.mail.keys().next().map(|(at, _)| *at);
            let due = |(peer, place): (&u64, &Place<P>)| Some((place.timers.next()?, *peer));
            let timer = self.places.iter().filter_map(due).min();
            let next = mail.into_iter().chain(timer.map(|(at, _)| at)).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if mail == Some(next) {
                let (_, (from, to, message)) = self.mail.pop_first().unwrap();
                let hears = |peer| self.places.get(&peer).is_some_and(|place| !place.cut);
                if from == to || hears(from) && hears(to) {
                    self.give(to, Input::Receive { from: PeerId(from), message });
                }
            } else if let Some((_, peer)) = timer {
                let timers = &mut self.places.get_mut(&peer).unwrap().timers;
                if let Some(timer) = timers.pop_due(self.now) {
                    self.give(peer, Input::Fire(timer));
                }
            }
        }
        self.now = end;
    }

    /// A user says something, under a call of its own.
    pub(crate) fn say(&mut self, peer: u64, request: LockRequest) -> u64 {
        self.calls += 1;
        self.say_again(peer, self.calls, request);
        self.calls
    }

    pub(crate) fn say_again(&mut self, peer: u64, call: u64, request: LockRequest) {
        let request = Ask::Lock(request).try_into().ok().expect("it guards locks");
        self.put(peer, call, request);
    }

    /// Puts a request as the protocol has them.
    pub(crate) fn put(&mut self, peer: u64, call: u64, request: P::Request) {
        self.give(peer, Input::Request { id: CallId(call), request });
    }

    pub(crate) fn ask(&mut self, peer: u64, patience: Patience) -> u64 {
        self.say(peer, wish(Mode::Exclusive, TTL, patience))
    }

    /// What was said to a call, other than its place in the queue.
    pub(crate) fn told(&self, peer: u64, call: u64) -> Vec<LockReply> {
        self.when_told(peer, call).into_iter().map(|(_, reply)| reply).collect()
    }

    pub(crate) fn when_told(&self, peer: u64, call: u64) -> Told {
        let told = self.told.get(&(peer, call)).into_iter().flatten();
        told.filter(|(_, reply)| !matches!(reply, LockReply::Queued { .. })).copied().collect()
    }

    /// Until when the call is inside, if it is.
    pub(crate) fn inside_until(&self, peer: u64, call: u64) -> Option<LocalTime> {
        self.told(peer, call).into_iter().fold(None, |inside, reply| match reply {
            LockReply::Granted { deadline, .. } | LockReply::Extended { deadline } => {
                Some(deadline)
            }
            _ => None.filter(|_: &LocalTime| inside.is_some()),
        })
    }

    /// Somebody asks, and is inside soon.
    pub(crate) fn let_in(&mut self, peer: u64) -> u64 {
        let call = self.ask(peer, Patience::Forever);
        self.pass(SOON);
        assert!(self.inside_until(peer, call).is_some(), "{:?}", self.told(peer, call));
        call
    }

    pub(crate) fn release(&mut self, peer: u64, held: u64) -> u64 {
        self.say(peer, LockRequest::Release { held: CallId(held) })
    }
}

pub(crate) fn wish(mode: Mode, ttl: Span, patience: Patience) -> LockRequest {
    LockRequest::Acquire(Acquire { name: name(), mode, ttl, patience })
}
