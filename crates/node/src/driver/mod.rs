//! The driver: one task that owns a protocol and executes its effects.
//!
//! ```text
//!              transport events ─┐                        ┌─► letters to peers (one each per turn)
//!   commands of local sessions ──┼─► turn: feed ► execute ┼─► replies to sessions
//!              timers, the disk ─┘         ▲       │      └─► records to the store
//!                                          └───────┘ messages to itself
//! ```
//!
//! A turn takes all that is ready, up to a bound, and only then speaks: what goes to the same peer goes
//! as one write. `output` keeps what must not be seen before the disk has it.

mod around;
mod calls;
mod counters;
mod faces;
mod leaving;
mod locks;
mod lookups;
mod membership;
mod network;
mod operator;
mod output;
mod peers;
mod standing;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::task::Poll;
use std::time::Duration;

use sigmalock_core::{
    Acquire, Birth, CallId, Context, Effect, Incarnation, Input, Inspect, LocalTime, Message as _,
    PeerId, Protocol, Span, Timers,
};
use sigmalock_protocols::catalogue::Wired;
use sigmalock_protocols::parts::{Ask, Driven, GoesBy, Placement, Sound, Told};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, Sleep};

use self::around::Around;
use self::calls::Calls;
use self::counters::Counters;
use self::leaving::Farewell;
use self::lookups::LookUps;
use self::membership::Outlook;
use self::operator::Errand;
use self::output::{Output, World};
use self::peers::Peers;
use crate::address_book::Contact;
use crate::clock;
use crate::control::Answer;
use crate::handle::Local;
use crate::link::{Command, Event, PeerInfo};
use crate::names::Book;
use crate::origin::Origin;
use crate::store::{Store, WriteError};

/// Inputs from each side in one turn.
const TURN_MAX: usize = 256;
/// Messages to itself in one turn; the rest waits for the next.
const SELF_MAX: usize = 4_096;
/// The driver wakes at least so often: tokio's timers stand still while the machine sleeps.
const SLEEP_MAX: Span = Span::from_secs(1);
/// Whoever wakes so rarely was stopped, and what waits in its sockets is old.
const OVERSLEPT: Span = Span::from_secs(5);
/// How often the placement forgets who has been gone for long.
const TICK: Span = Span::from_secs(10);

/// What a protocol must be to be driven here: whatever is in it, it keeps its rules, can be asked ([`Ask`]) and tells
/// ([`Told`]), and its messages and records have a form outside the process. Each family of services has a file of its
/// own for its users: [`locks`], and [`membership`] for operators.
pub(crate) trait Live:
    Driven
    + GoesBy<Sound>
    + Protocol<Request: TryFrom<Ask>, Reply: Into<Told> + Send + Sync>
    + Wired
    + Inspect
    + Send
    + Sync
    + 'static
{
}

impl<P> Live for P
where
    P: Driven + GoesBy<Sound> + Wired + Inspect + Send + Sync + 'static,
    P::Request: TryFrom<Ask>,
    P::Reply: Into<Told> + Send + Sync,
{
}

/// Why a driver ended.
#[derive(Debug)]
pub(crate) enum Exit {
    /// As asked.
    Left,
    /// The disk does not take what must be on it.
    Disk(String),
    /// The transport is gone.
    Transport,
}

/// What a driver starts from.
pub(crate) struct Setup<P: Protocol> {
    pub(crate) me: PeerInfo,
    pub(crate) protocol: P,
    pub(crate) incarnation: Incarnation,
    pub(crate) birth: Birth<P>,
    /// If its memory is lost, why, in words.
    pub(crate) loss: Option<String>,
    /// How many records its former lives wrote to its data directory.
    pub(crate) writes: u64,
    pub(crate) seed: u64,
    pub(crate) store: Option<Store>,
    /// With open membership: replicas of a name, and votes that hold it.
    pub(crate) votes: (usize, usize),
    pub(crate) lease_max: Span,
    /// Who the others were in former lives.
    pub(crate) known: Vec<Contact>,
    /// What peers are called, to be kept up to date.
    pub(crate) names: Book,
    /// Where this peer was told to look for others: the end of a sentence.
    pub(crate) looks_at: String,
    /// Which swarm this peer says that it belongs to.
    pub(crate) origin: Arc<Origin>,
    pub(crate) mesh_max: usize,
    pub(crate) events: mpsc::Receiver<Event>,
    pub(crate) transport: mpsc::Sender<Command>,
    pub(crate) commands: mpsc::UnboundedReceiver<Local>,
    pub(crate) commands_waiting: Arc<AtomicUsize>,
}

/// See the module.
pub(crate) struct Driver<P: Protocol> {
    me: PeerInfo,
    protocol: P,
    around: Around,
    timers: Timers<P::Timer>,
    effects: Vec<Effect<P>>,
    to_self: VecDeque<P::Message>,
    now: LocalTime,
    born: LocalTime,
    ticked: LocalTime,
    /// Until then this peer votes for nobody, because it has lost its memory.
    abstains_until: LocalTime,
    /// Why it has, in words.
    loss: Option<String>,
    calls: Calls,
    /// Calls of operators, and who asked.
    errands: BTreeMap<CallId, Errand>,
    /// Questions to other peers.
    queries: BTreeMap<u64, (PeerId, oneshot::Sender<Answer>)>,
    last_query: u64,
    lookups: LookUps,
    peers: Peers,
    output: Output,
    counters: Counters,
    ending: Vec<u64>,
    votes: (usize, usize),
    outlook: Outlook,
    names: Book,
    lease_max: Span,
    events: mpsc::Receiver<Event>,
    transport: mpsc::Sender<Command>,
    commands: mpsc::UnboundedReceiver<Local>,
    commands_waiting: Arc<AtomicUsize>,
    arrived: Vec<Event>,
    asked: Vec<Local>,
    found: Vec<(CallId, Acquire)>,
    sleep: Pin<Box<Sleep>>,
    armed_for: LocalTime,
    farewell: Option<Farewell>,
    leaving_since: Option<LocalTime>,
    failed: Option<Exit>,
}

impl<P: Live> Driver<P> {
    pub(crate) fn new(setup: Setup<P>) -> Self {
        let now = clock::now();
        let amnesiac = matches!(setup.birth, Birth::Amnesiac);
        let mut driver = Self {
            around: Around::new(setup.seed),
            protocol: setup.protocol,
            timers: Timers::new(),
            effects: Vec::new(),
            to_self: VecDeque::new(),
            now,
            born: now,
            ticked: now,
            abstains_until: if amnesiac { now + setup.lease_max } else { LocalTime::MIN },
            loss: setup.loss,
            calls: Calls::default(),
            errands: BTreeMap::new(),
            queries: BTreeMap::new(),
            last_query: 0,
            lookups: LookUps::new(setup.mesh_max),
            peers: Peers::default(),
            output: Output::new(setup.store, setup.writes),
            counters: Counters::default(),
            ending: Vec::new(),
            votes: setup.votes,
            outlook: Outlook::new(setup.looks_at, setup.origin, setup.known),
            names: setup.names,
            lease_max: setup.lease_max,
            events: setup.events,
            transport: setup.transport,
            commands: setup.commands,
            commands_waiting: setup.commands_waiting,
            arrived: Vec::new(),
            asked: Vec::new(),
            found: Vec::new(),
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed_for: LocalTime::MIN,
            farewell: None,
            leaving_since: None,
            failed: None,
            me: setup.me,
        };
        driver.feed(Input::Start { incarnation: setup.incarnation, birth: setup.birth });
        driver.learn_names();
        driver.say_where_it_belongs();
        driver
    }

    /// Drives until told to leave, or until it cannot go on.
    pub(crate) async fn run(mut self) -> Exit {
        loop {
            let committed = self.gather().await;
            self.turn(committed);
            if let Some(exit) = self.failed.take() {
                return exit;
            }
            if self.has_left() {
                return self.part().await;
            }
            // Whoever has something for this task says it first, and the next turn takes it all.
            tokio::task::yield_now().await;
        }
    }

    /// Waits until there is something to do, and takes what there is.
    async fn gather(&mut self) -> Option<Result<(), WriteError>> {
        self.arm();
        poll_fn(|cx| {
            let mut ready = !self.to_self.is_empty();
            let mut committed = None;
            if let Poll::Ready(result) = self.output.poll_committed(cx) {
                committed = Some(result);
            }
            if let Poll::Ready(count) = self.events.poll_recv_many(cx, &mut self.arrived, TURN_MAX)
            {
                ready = true;
                if count == 0 {
                    self.failed = Some(Exit::Transport);
                }
            }
            if let Poll::Ready(count) = self.commands.poll_recv_many(cx, &mut self.asked, TURN_MAX)
            {
                ready = true;
                self.commands_waiting.fetch_sub(count, Relaxed);
                if count == 0 {
                    self.failed = Some(Exit::Left);
                }
            }
            self.found.append(&mut self.lookups.poll_found(cx));
            ready |= !self.found.is_empty();
            if self.sleep.as_mut().poll(cx).is_ready() {
                ready = true;
                self.armed_for = LocalTime::MIN;
            }
            if ready || committed.is_some() { Poll::Ready(committed) } else { Poll::Pending }
        })
        .await
    }

    /// Sees to it that this task wakes for the next timer. One that is armed too early is left alone.
    fn arm(&mut self) {
        let latest = self.output.due_at().min(self.now + SLEEP_MAX).min(self.farewell_until());
        let wanted = self.timers.next().map_or(latest, |next| next.min(latest));
        if self.armed_for == LocalTime::MIN || wanted < self.armed_for {
            self.armed_for = wanted;
            let pause = Duration::from_micros(wanted.since(clock::now()).as_micros());
            self.sleep.as_mut().reset(Instant::now() + pause);
        }
    }

    /// One turn: takes in all that was gathered, then speaks.
    fn turn(&mut self, committed: Option<Result<(), WriteError>>) {
        let before = self.now;
        self.now = self.now.max(clock::now());
        self.counters.batches += 1;
        if self.now.since(before) > OVERSLEPT {
            self.overslept();
        }
        match committed {
            Some(Ok(())) => self.with_world(Output::committed),
            Some(Err(error)) => self.failed = Some(Exit::Disk(error.0)),
            None => {}
        }
        let mut arrived = std::mem::take(&mut self.arrived);
        for event in arrived.drain(..) {
            self.on_event(event);
        }
        self.arrived = arrived;
        let mut asked = std::mem::take(&mut self.asked);
        for local in asked.drain(..) {
            self.on_local(local);
        }
        self.asked = asked;
        for _ in 0..TURN_MAX {
            let Some(timer) = self.timers.pop_due(self.now) else { break };
            self.feed(Input::Fire(timer));
        }
        self.hear_self();
        self.ask_for_found();
        self.calls.prune(self.now);
        self.look_at_view();
        self.see_off();
        if self.now.since(self.ticked) >= TICK {
            self.ticked = self.now;
            let now = self.now;
            self.with_placement(|placement| placement.tick(now));
        }
        if self.failed.is_none() {
            self.with_world(Output::flush);
        }
        for session in std::mem::take(&mut self.ending) {
            // What it has not given back it may be inside of until the lease ends: whoever does not read does not know yet.
            self.close(session, true);
        }
    }

    fn with_world(&mut self, then: impl FnOnce(&mut Output, &mut World<'_>)) {
        let mut world = World {
            now: self.now,
            peers: &mut self.peers,
            calls: &self.calls,
            counters: &mut self.counters,
            ending: &mut self.ending,
        };
        then(&mut self.output, &mut world);
    }

    /// Tells this peer's own view of who is there, if the protocol goes by one.
    fn with_placement(&mut self, then: impl FnOnce(&mut Placement)) {
        self.protocol.placement_mut().map(then);
    }

    /// Asks whoever in this peer serves that. False if nobody does.
    fn ask(&mut self, id: CallId, ask: Ask) -> bool {
        let Ok(request) = ask.try_into() else { return false };
        self.feed(Input::Request { id, request });
        true
    }

    /// Gives the protocol an input, and does what it wants done.
    fn feed(&mut self, input: Input<P>) {
        self.counters.inputs += 1;
        self.around.written = self.output.writes();
        let mut cx = Context::new(self.now, &mut self.around, &mut self.effects);
        self.protocol.handle(&mut cx, input);
        let mut effects = std::mem::take(&mut self.effects);
        for effect in effects.drain(..) {
            self.execute(effect);
        }
        self.effects = effects;
        self.look_at_memory();
    }

    /// The messages of this peer to itself are on nobody's wire.
    fn hear_self(&mut self) {
        for _ in 0..SELF_MAX {
            let Some(message) = self.to_self.pop_front() else { return };
            self.counters.to_self += 1;
            self.feed(Input::Receive { from: self.me.peer, message });
        }
    }

    fn execute(&mut self, effect: Effect<P>) {
        match effect {
            Effect::Send { to, message } if to == self.me.peer => self.to_self.push_back(message),
            Effect::Send { to, message } => {
                if self.peers.say(to, &message) {
                    self.counters.sent.add(message.kind());
                } else {
                    self.counters.unsent += 1;
                }
            }
            Effect::SetTimer { timer, at } => self.timers.set(timer, at),
            Effect::CancelTimer(timer) => self.timers.cancel(&timer),
            Effect::Reply { id, reply } => self.on_reply(id, reply),
            Effect::Note(note) => self.counters.notes.add(&note),
            Effect::Persist { key, value } => {
                let mut encoded = Ok(());
                self.with_world(|output, world| {
                    encoded = output.persist(&key, value.as_ref(), world);
                });
                if let Err(error) = encoded {
                    self.failed = Some(Exit::Disk(error.to_string()));
                }
            }
        }
    }

    fn on_reply(&mut self, id: CallId, reply: P::Reply) {
        match reply.into() {
            Told::Lock(reply) => self.on_lock_reply(id, reply),
            Told::Members(reply) => self.on_members_reply(id, reply),
        }
    }
}
