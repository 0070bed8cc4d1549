//! A run, step by step: look at any peer between two events, let something go wrong, and let two futures part.
//!
//! A [`Stepper`] is the very run that its configuration means: stepped to its end it has the same history, to the last bit
//! of the digest. Nothing here starts a thread, and nothing leads out of simulated time, so it works in a browser.

use std::fmt::{Debug, Display};

use sigmalock_core::{
    CallId, Inspect, LocalReport, LocalTime, Name, PeerId, ReplicaReport, ViewReport,
};
use sigmalock_protocols::parts::Driven;

use crate::crowd::Crowd;
use crate::faults::Fault;
use crate::history::{Record, TrueTime};
use crate::lab::torture::Victim;
use crate::oracles::Violation;
use crate::run::{Outcome, RunConfig, outcome};
use crate::subject::Subject;
use crate::watch::{Spoken, Watch};
use crate::world::{Event, World};

/// More names of a peer are in no picture.
const NAMES_SHOWN_MAX: usize = 64;

/// A run that goes on when told to. What happens is kept for [`Stepper::take_seen`] if somebody wants to see it.
pub struct Stepper(Box<dyn Scene>);

impl Stepper {
    /// The run of a seed of torture, watched by all oracles.
    #[must_use]
    pub fn of_seed(victim: &Victim, seed: u64) -> Self {
        let (subject, config) = victim.case(seed);
        Self::new(&subject, &config)
    }

    /// Any run, watched by all oracles.
    #[must_use]
    pub fn new(subject: &Subject, config: &RunConfig) -> Self {
        subject.stepper(config)
    }

    pub(crate) fn of<P, C>(world: World<'static, P, C, Tape>) -> Self
    where
        P: Driven + Inspect + Clone + 'static,
        C: Crowd<P> + 'static,
    {
        Self(Box::new(world))
    }

    /// The next event. `false` if there is none: the run is over.
    pub fn step(&mut self) -> bool {
        self.0.step()
    }

    /// All that happens up to this time. `false` if the run is over.
    pub fn run_until(&mut self, at: TrueTime) -> bool {
        self.0.run_until(at)
    }

    /// How late it is.
    #[must_use]
    pub fn now(&self) -> TrueTime {
        self.0.now()
    }

    /// All peers there are, hosts first.
    #[must_use]
    pub fn peers(&self) -> Vec<PeerId> {
        self.0.peers()
    }

    /// What a peer shows of itself; `None` if there is no such peer.
    #[must_use]
    pub fn picture(&self, peer: PeerId) -> Option<Picture> {
        self.0.picture(peer)
    }

    /// The messages on their way, first those that arrive first.
    #[must_use]
    pub fn under_way(&self) -> Vec<UnderWay> {
        self.0.under_way()
    }

    /// Something goes wrong now, or right again. What does not apply is ignored.
    pub fn inject(&mut self, fault: &Fault) {
        self.0.inject(fault);
    }

    /// Another run with the same past, and, unless somebody intervenes in one of them, the same future.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self(self.0.fork())
    }

    /// From now on what happens is kept, or is not.
    pub fn watch(&mut self, on: bool) {
        self.0.tape().is_on = on;
    }

    /// What has happened since this was last asked.
    #[must_use]
    pub fn take_seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.0.tape().seen)
    }

    /// What oracles have objected to so far.
    #[must_use]
    pub fn violations(&self) -> &[Violation] {
        self.0.violations()
    }

    /// A fingerprint of everything that has happened so far.
    #[must_use]
    pub fn digest(&self) -> u64 {
        self.0.digest()
    }

    /// Runs to the end.
    #[must_use]
    pub fn finish(self) -> Outcome {
        self.0.finish()
    }
}

impl Debug for Stepper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stepper").field("now", &self.now()).finish_non_exhaustive()
    }
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnderWay {
    /// Its sender.
    pub from: PeerId,
    /// Its receiver.
    pub to: PeerId,
    /// Its kind.
    pub kind: &'static str,
    /// In words.
    pub text: String,
    /// When it arrives. If that is past, its receiver stands still.
    pub arrives: TrueTime,
}

/// A peer at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// Who.
    pub peer: PeerId,
    /// Which of its lives this is, or was.
    pub life: u32,
    /// Whether it lives.
    pub presence: Presence,
    /// What its clock shows.
    pub clock: LocalTime,
    /// What its timers are for, and when they are due by its clock, if they are to fire at all.
    pub timers: Vec<(LocalTime, String)>,
    /// How many records are on its disk.
    pub records: usize,
    /// What it knows of which name, at most 64 of them.
    pub names: Vec<NamePicture>,
    /// Where peers agree on who is in, what it knows of that.
    pub view: Option<ViewReport>,
}

/// Whether a peer lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    Up,
    /// It stands still until then, by true time.
    Asleep(TrueTime),
    /// It does not.
    Down,
}

/// What a peer knows of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePicture {
    /// Which.
    pub name: Name,
    /// The replicas that it hosts.
    pub replicas: Vec<ReplicaReport>,
    /// Its own users.
    pub local: LocalReport,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// When.
    pub at: TrueTime,
    /// What.
    pub what: Sight,
}

/// What can be seen to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    /// A message is handed to the network.
    Sent {
        /// Its sender.
        from: PeerId,
        /// Its receiver.
        to: PeerId,
        /// Its kind.
        kind: &'static str,
        /// In words.
        text: String,
        /// When it arrives, unless the network loses it.
        arrives: Option<TrueTime>,
    },
    /// The network makes a copy of the message just sent.
    Copied {
        /// Its sender.
        from: PeerId,
        /// Its receiver.
        to: PeerId,
        /// When it arrives.
        arrives: TrueTime,
    },
    /// A message is handed to a protocol.
    Delivered {
        /// Its sender.
        from: PeerId,
        /// Its receiver.
        to: PeerId,
        /// Its kind.
        kind: &'static str,
        /// In words.
        text: String,
    },
    /// A message that has come is lost: its receiver is down, or has stood still for too long.
    Lost {
        /// Its sender.
        from: PeerId,
        /// Its receiver.
        to: PeerId,
        /// Its kind.
        kind: &'static str,
        /// In words.
        text: String,
    },
    /// A timer fires.
    Fired(PeerId, String),
    /// A user asks for something.
    Asked(PeerId, CallId, String),
    /// A protocol answers a user.
    Replied(PeerId, CallId, String),
    /// A protocol notes something.
    Noted(PeerId, String),
    /// Something goes wrong, or right again.
    Fault(Fault),
    /// The faults are over.
    Healed,
    /// Something goes into the history.
    Record(Record),
}

/// Keeps what happens, if somebody wants to see it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tape {
    is_on: bool,
    seen: Vec<Seen>,
}

impl Tape {
    fn keep(&mut self, at: TrueTime, what: impl FnOnce() -> Sight) {
        if self.is_on {
            self.seen.push(Seen { at, what: what() });
        }
    }
}

impl Watch for Tape {
    fn on_send(
        &mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken,
        arrives: Option<TrueTime>,
    ) {
        let (kind, text) = (message.kind(), || message.to_string());
        self.keep(at, || Sight::Sent { from, to, kind, text: text(), arrives });
    }
    fn on_copy(&mut self, at: TrueTime, from: PeerId, to: PeerId, arrives: TrueTime) {
        self.keep(at, || Sight::Copied { from, to, arrives });
    }
    fn on_deliver(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {
        let kind = message.kind();
        self.keep(at, || Sight::Delivered { from, to, kind, text: message.to_string() });
    }
    fn on_lose(&mut self, at: TrueTime, from: PeerId, to: PeerId, message: &dyn Spoken) {
        let kind = message.kind();
        self.keep(at, || Sight::Lost { from, to, kind, text: message.to_string() });
    }
    fn on_fire(&mut self, at: TrueTime, peer: PeerId, timer: &dyn Debug) {
        self.keep(at, || Sight::Fired(peer, format!("{timer:?}")));
    }
    fn on_request(&mut self, at: TrueTime, peer: PeerId, call: CallId, request: &dyn Debug) {
        self.keep(at, || Sight::Asked(peer, call, format!("{request:?}")));
    }
    fn on_reply(&mut self, at: TrueTime, peer: PeerId, call: CallId, reply: &dyn Debug) {
        self.keep(at, || Sight::Replied(peer, call, format!("{reply:?}")));
    }
    fn on_note(&mut self, at: TrueTime, peer: PeerId, note: &dyn Display) {
        self.keep(at, || Sight::Noted(peer, note.to_string()));
    }
    fn on_fault(&mut self, at: TrueTime, fault: &Fault) {
        self.keep(at, || Sight::Fault(fault.clone()));
    }
    fn on_heal(&mut self, at: TrueTime) {
        self.keep(at, || Sight::Healed);
    }
    fn on_record(&mut self, record: &Record) {
        self.keep(record.at, || Sight::Record(record.clone()));
    }
}

/// A world, whatever its protocol and its crowd.
trait Scene {
    fn step(&mut self) -> bool;
    fn run_until(&mut self, at: TrueTime) -> bool;
    fn now(&self) -> TrueTime;
    fn peers(&self) -> Vec<PeerId>;
    fn picture(&self, peer: PeerId) -> Option<Picture>;
    fn under_way(&self) -> Vec<UnderWay>;
    fn inject(&mut self, fault: &Fault);
    fn fork(&self) -> Box<dyn Scene>;
    fn tape(&mut self) -> &mut Tape;
    fn violations(&self) -> &[Violation];
    fn digest(&self) -> u64;
    fn finish(self: Box<Self>) -> Outcome;
}

impl<P, C> Scene for World<'static, P, C, Tape>
where
    P: Driven + Inspect + Clone + 'static,
    C: Crowd<P> + 'static,
{
    fn step(&mut self) -> bool {
        self.advance(self.config.end())
    }

    fn run_until(&mut self, at: TrueTime) -> bool {
        let end = self.config.end();
        self.run(at.min(end));
        if self.over().is_none() {
            self.now = self.now.max(at.min(end));
        }
        self.over().is_none() && self.now < end
    }

    fn now(&self) -> TrueTime {
        self.now
    }

    fn peers(&self) -> Vec<PeerId> {
        (0..self.peers.len()).map(|index| self.population.id(index)).collect()
    }

    fn picture(&self, peer: PeerId) -> Option<Picture> {
        let found = self.population.index(peer).and_then(|index| self.peers.get(index))?;
        let clock = found.clocks.clock.read(self.now);
        let presence = match (&found.protocol, found.paused_until) {
            (None, _) => Presence::Down,
            (Some(_), Some(until)) => Presence::Asleep(until),
            (Some(_), None) => Presence::Up,
        };
        let names = found.protocol.iter().flat_map(|protocol| {
            protocol.names(None, NAMES_SHOWN_MAX).into_iter().map(|name| {
                let replicas = protocol.replicas(clock, &name);
                let local = protocol.local(clock, &name);
                NamePicture { name, replicas, local }
            })
        });
        let timers = found.timers.iter().map(|(at, timer)| (at, format!("{timer:?}")));
        Some(Picture {
            peer,
            life: found.life,
            presence,
            clock,
            timers: timers.collect(),
            records: found.disk.records.len(),
            names: names.collect(),
            view: found.protocol.as_ref().and_then(|protocol| protocol.view(clock)),
        })
    }

    fn under_way(&self) -> Vec<UnderWay> {
        let waiting = self.peers.iter().flat_map(|peer| &peer.mailbox);
        let waiting = waiting.map(|mail| (mail.came, mail.packet));
        let coming = self.queue.in_order().into_iter().filter_map(|(at, event)| match event {
            Event::Deliver(packet) => Some((at, *packet)),
            _ => None,
        });
        let known = waiting.chain(coming).filter_map(|(arrives, packet)| {
            let message = self.messages.get(packet.slot)?;
            let [from, to] = [packet.from, packet.to].map(|end| self.population.id(end as usize));
            let (kind, text) = (Spoken::kind(message), message.to_string());
            Some(UnderWay { from, to, kind, text, arrives })
        });
        known.collect()
    }

    fn inject(&mut self, fault: &Fault) {
        self.apply(fault);
    }

    fn fork(&self) -> Box<dyn Scene> {
        let mut other = self.clone();
        other.watch.seen.clear();
        Box::new(other)
    }

    fn tape(&mut self) -> &mut Tape {
        &mut self.watch
    }

    fn violations(&self) -> &[Violation] {
        self.recorder.violations()
    }

    fn digest(&self) -> u64 {
        self.recorder.digest()
    }

    fn finish(self: Box<Self>) -> Outcome {
        outcome(*self)
    }
}
