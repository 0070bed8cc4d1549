//! The agent: one peer's users are one contender in the swarm.
//!
//! A layer over any lock protocol, which knows nothing of it. Users of one peer that want the same lock
//! queue here, and the swarm sees a single request. When it is granted, the lock goes from hand to hand
//! among them without a message, each time with the next token of the grant's block; after
//! `entries_per_grant` of them it goes back, and whoever waits in the swarm comes first.
//!
//! ```text
//!  users                       agent                          the protocol inside
//!    │ Acquire (1), (2), (3) ──► │ Acquire, for the first ──────► │ … the swarm …
//!    │ ◄──────── Granted (1), 7  │ ◄──────────── Granted, 7 … 8   │
//!    │ Release (1) ────────────► │                                │
//!    │ ◄──────── Granted (2), 8  │  (not a message)               │
//!    │ Release (2) ────────────► │ Release, the block is used up ► │
//!    │                           │ Acquire, for (3) ─────────────► │ … behind all who wait …
//! ```
//!
//! Only exclusive locks are handed on like that. Whoever wants to share a lock is passed on to the swarm as
//! a request of its own: there is nothing to hand on, for nobody has to leave; and a reader that slipped in
//! beside another one here would overtake the writers that wait elsewhere. `permits` makes one of several
//! requests for slots what a user asked for.
//!
//! # What it assumes
//!
//! - What every lock protocol promises: a right ends at its deadline, and nobody else's begins before.
//! - The tokens of a grant are a block of at least `entries_per_grant`, of which it names the first.
//!
//! # What it guarantees
//!
//! - Whatever the protocol inside guarantees. The lock is handed on only by a user that says that it is
//!   out, and only while more than a quarter of what the swarm last lent is left.
//! - Among the users of one peer: first come, first served. Between peers: one that waits is overtaken
//!   by no more than `entries_per_grant` users of any other.
//!
//! Whoever is told `Lost` may still be on its way out: until it says that it is out, or its deadline has
//! passed, the votes stay where they are, as the protocol inside sees to. The others' new request waits
//! in the swarm meanwhile.
//!
//! # Where to read on
//!
//! `local` is the state of one lock, `users` what users ask, `swarm` what the protocol inside answers;
//! `permits` are semaphores.

mod inspect;
mod local;
mod mutant;
mod permits;
mod swarm;
mod users;

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::fmt;

use sigmalock_core::{
    Birth, CallId, Context, Effect, Input, LockReply, LockRequest, Name, Protocol,
};

use crate::agreed::OverViews;
use crate::catalogue::{Card, Family, Membership, Promises, Variant};
use crate::parts::hosting::Terms;
use crate::parts::{Driven, GoesBy, Placement, Rules, Sound};
use local::Local;
pub use mutant::Mutant;
use permits::Permit;

/// What there is to know of it.
pub const CARD: Card = Card {
    name: "agent",
    about: "one peer's users are one contender in the swarm",
    source: "our own",
    family: Family::Layer,
    memberships: &Membership::ALL,
    variants: &Variant::ALL,
    promises: Promises::EXCLUSION,
    answers: &[],
    mutants: Mutant::CARDS,
};

/// The numbers the agent goes by.
#[derive(Debug, Clone)]
pub struct Config<R = Sound> {
    /// How many users are let in under one grant, one after the other. The protocol inside must give so
    /// many tokens with each grant.
    pub entries_per_grant: u64,
    /// Users that wait or are inside; one more is refused.
    pub calls_max: usize,
    /// Which rules it keeps.
    pub rules: R,
}

impl Config {
    /// The defaults, for grants of so many tokens.
    #[must_use]
    pub const fn new(entries_per_grant: u64) -> Self {
        Self::with_rules(entries_per_grant, Sound)
    }
}

impl<R: Rules> Config<R> {
    /// The same, by these rules.
    #[must_use]
    pub const fn with_rules(entries_per_grant: u64, rules: R) -> Self {
        Self { entries_per_grant, calls_max: 1 << 20, rules }
    }

    fn breaks(&self, mutant: Mutant) -> bool {
        self.rules.breaks(mutant)
    }
}

/// The users of one peer, before the protocol that they use.
#[derive(Clone)]
pub struct Agent<P: Protocol, R = Sound> {
    inner: P,
    config: Config<R>,
    /// The users that wait or are inside, and for which lock.
    calls: BTreeMap<CallId, Name>,
    locks: BTreeMap<Name, Local>,
    /// The agent's own calls to the protocol inside that may still be answered, and how many there were.
    asked: BTreeMap<CallId, Name>,
    asked_last: u64,
    /// The users that wait for, or have, a permit of a semaphore.
    permits: BTreeMap<CallId, Permit>,
    /// Whose the agent's calls for slots are.
    slots: BTreeMap<CallId, CallId>,
    /// What the protocol inside has answered, to be dealt with once all else it wants is passed on.
    answers: VecDeque<(CallId, LockReply)>,
    /// Kept for its memory.
    effects: Vec<Effect<P>>,
}

/// What the agent and the protocol inside set timers for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Timer<T> {
    /// A user's patience ends or, if it has lost the lock, its deadline is here.
    Call(CallId),
    /// A timer of the protocol inside.
    Inner(T),
}

/// Moments worth counting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Note<N> {
    /// The lock went from one user to the next without a message.
    HandedOver,
    /// Users still wait here, but those in the swarm come first.
    BlockUsedUp,
    /// A note of the protocol inside.
    Inner(N),
}

impl<N: fmt::Display> fmt::Display for Note<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HandedOver => f.write_str("handed over locally"),
            Self::BlockUsedUp => f.write_str("block of tokens used up"),
            Self::Inner(note) => note.fmt(f),
        }
    }
}

/// What a user's call is to the protocol inside, if it is passed on: an even number. Users' own numbers must
/// be below 2⁶³.
const fn passed(call: CallId) -> CallId {
    CallId(call.0.wrapping_mul(2))
}

/// Whose call it is that the protocol inside answers, if it was passed on.
const fn passed_from(call: CallId) -> Option<CallId> {
    if call.0.is_multiple_of(2) { Some(CallId(call.0 / 2)) } else { None }
}

type Cx<'a, 'b, P, R> = &'a mut Context<'b, Agent<P, R>>;

impl<P: Protocol<Request = LockRequest, Reply = LockReply>, R: Rules> Agent<P, R> {
    /// An agent over a protocol that has not started yet.
    #[must_use]
    pub fn new(inner: P, config: Config<R>) -> Self {
        Self {
            inner,
            config,
            calls: BTreeMap::new(),
            locks: BTreeMap::new(),
            asked: BTreeMap::new(),
            asked_last: 0,
            permits: BTreeMap::new(),
            slots: BTreeMap::new(),
            answers: VecDeque::new(),
            effects: Vec::new(),
        }
    }

    /// The protocol inside.
    #[must_use]
    pub const fn inner(&self) -> &P {
        &self.inner
    }

    /// Whether no user waits or is inside, and nothing is kept of any that did.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let locks = self.calls.is_empty() && self.locks.is_empty() && self.asked.is_empty();
        locks && self.permits.is_empty() && self.slots.is_empty()
    }

    /// Gives the protocol inside an input, and passes on what it wants, in its order. Only its answers
    /// wait: they may lead to further inputs, whose effects must come after all of these.
    fn pass_in(&mut self, cx: Cx<'_, '_, P, R>, input: Input<P>) {
        self.with_inner(cx, |inner, cx| inner.handle(cx, input));
    }

    fn with_inner(&mut self, cx: Cx<'_, '_, P, R>, act: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let mut effects = core::mem::take(&mut self.effects);
        act(&mut self.inner, &mut cx.inner(&mut effects));
        for effect in effects.drain(..) {
            match effect {
                Effect::Persist { key, value } => cx.persist(key, value),
                Effect::Send { to, message } => cx.send(to, message),
                Effect::SetTimer { timer, at } => cx.set_timer(Timer::Inner(timer), at),
                Effect::CancelTimer(timer) => cx.cancel_timer(Timer::Inner(timer)),
                Effect::Note(note) => cx.note(Note::Inner(note)),
                Effect::Reply { id, reply } => self.answers.push_back((id, reply)),
            }
        }
        self.effects = effects;
    }

    /// Deals with what the protocol inside has answered.
    fn answer(&mut self, cx: Cx<'_, '_, P, R>) {
        while let Some((call, reply)) = self.answers.pop_front() {
            self.on_answer(cx, call, reply);
        }
    }

    /// The number that the agent's next call to the protocol inside has. They are odd.
    const fn next_call(&self) -> CallId {
        CallId(self.asked_last * 2 + 1)
    }

    /// A call to the protocol inside, under a number of the agent's own.
    fn call(&mut self, cx: Cx<'_, '_, P, R>, request: LockRequest) {
        let id = self.next_call();
        self.asked_last += 1;
        self.pass_in(cx, Input::Request { id, request });
    }

    /// A user's own call, which is none of the agent's business.
    fn pass_call(&mut self, cx: Cx<'_, '_, P, R>, id: CallId, request: LockRequest) {
        self.pass_in(cx, Input::Request { id: passed(id), request });
    }
}

impl<P: Protocol<Request = LockRequest, Reply = LockReply>, R: Rules> Protocol for Agent<P, R> {
    type Message = P::Message;
    type Request = LockRequest;
    type Reply = LockReply;
    type Timer = Timer<P::Timer>;
    type DurableKey = P::DurableKey;
    type Durable = P::Durable;
    type Note = Note<P::Note>;

    fn handle(&mut self, cx: &mut Context<'_, Self>, input: Input<Self>) {
        match input {
            Input::Start { incarnation, birth } => {
                let birth = match birth {
                    Birth::First => Birth::First,
                    Birth::Recovered(records) => Birth::Recovered(records),
                    Birth::Amnesiac => Birth::Amnesiac,
                };
                self.pass_in(cx, Input::Start { incarnation, birth });
            }
            Input::Receive { from, message } => self.pass_in(cx, Input::Receive { from, message }),
            Input::Fire(Timer::Inner(timer)) => self.pass_in(cx, Input::Fire(timer)),
            Input::Fire(Timer::Call(call)) => self.on_timer(cx, call),
            Input::Request { id, request } => self.on_request(cx, id, request),
            Input::PeerUp(peer) => self.pass_in(cx, Input::PeerUp(peer)),
            Input::PeerDown(peer) => self.pass_in(cx, Input::PeerDown(peer)),
            Input::Leave => self.pass_in(cx, Input::Leave),
            Input::ViewChanged(view) => self.pass_in(cx, Input::ViewChanged(view)),
        }
        self.answer(cx);
    }
}

impl<P: Protocol + GoesBy<R>, R: Rules> GoesBy<R> for Agent<P, R> {}

impl<P, R: Rules> Driven for Agent<P, R>
where
    P: Driven + Protocol<Request = LockRequest, Reply = LockReply>,
{
    fn placement(&self) -> Option<&Placement> {
        self.inner.placement()
    }
    fn placement_mut(&mut self) -> Option<&mut Placement> {
        self.inner.placement_mut()
    }
    fn hosted(&self) -> usize {
        self.inner.hosted()
    }
    fn may_go(&self) -> bool {
        self.inner.may_go()
    }
}

impl<P, R: Rules> OverViews for Agent<P, R>
where
    P: OverViews + Protocol<Request = LockRequest, Reply = LockReply>,
{
    fn is_promise(message: &P::Message) -> bool {
        P::is_promise(message)
    }
    fn stand(&mut self, terms: Terms) {
        self.inner.stand(terms);
    }
    fn go_on(&mut self, cx: &mut Context<'_, Self>) {
        self.with_inner(cx, P::go_on);
        self.answer(cx);
    }
    fn settled(&self) -> u64 {
        self.inner.settled()
    }
}

impl<P: Protocol + fmt::Debug, R> fmt::Debug for Agent<P, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Agent").field("inner", &self.inner).field("locks", &self.locks).finish()
    }
}
